/* weft check, weft device: what can be said of devices without touching
 * them. */
#include <stdlib.h>
#include <string.h>

#include "controller/cli/core/private.h"
#include "controller/plan/plan.h"
#include "drivers/core/driver.h"

/* ---- check ---- */

/* "device: what "name" does not exist", at the device's line of the fabric
 * file. */
static int bad_device(const struct model_fabric *f, const struct model_device *d, struct err *e,
		      const char *what, const char *name)
{
	err_set(e, WEFT_EINVAL, "%s: %s \"%s\" does not exist", d->name, what, name);
	err_at(e, f->config.name, d->place.line, d->place.col);
	return e->code;
}

static bool has_option(const struct drv_class *cls, const char *key)
{
	for (const struct drv_option_spec *o = cls->options; o && o->key; o++) {
		if (strcmp(o->key, key) == 0) {
			return true;
		}
	}
	return false;
}

/* Driver and option names, which only the drivers know. */
static void check_device(const struct model_fabric *f,
			 const struct model_device *d, struct err_list *errs)
{
	const struct drv_class *cls = drv_find(d->driver);
	struct err e = { 0 };

	if (!cls) {
		bad_device(f, d, &e, "driver", d->driver);
		err_hint(&e, "\"weft device drivers\" lists them");
		err_list_add(errs, &e);
		return;
	}
	if ((cls->kind == DRV_RING) != (d->kind == MODEL_RING)) {
		err_set(&e, WEFT_EINVAL, "%s: driver \"%s\" is for %s", d->name,
			d->driver,
			cls->kind == DRV_RING ? "rings" : "switches");
		err_at(&e, f->config.name, d->place.line, d->place.col);
		err_list_add(errs, &e);
	}
	for (int i = 0; i < d->n_options; i++) {
		if (!has_option(cls, d->options[i].key)) {
			bad_device(f, d, &e, "option", d->options[i].key);
			err_hint(&e, "\"weft device drivers %s\" lists them", cls->name);
			err_list_add(errs, &e);
		}
	}
}

/* All mistakes of all devices in the order of the file: all but the last are
 * printed, the last is in err. */
static int check_devices(const struct model_fabric *f, struct err *err)
{
	struct err_list errs = { 0 };
	int r = 0;

	for (int i = 0; i < f->n_devices; i++) {
		const struct model_device *d = &f->devices[i];

		/* A patch panel is moved by hand. */
		if (d->kind != MODEL_PANEL || d->driver[0]) {
			check_device(f, d, &errs);
		}
	}
	if (errs.n > 0) {
		err_list_sort(&errs);
		r = errs.v[0].code;
		cli_report_list(&errs, err);
	}
	err_list_fini(&errs);
	return r;
}

/* What a plan refuses in this file whatever the devices hold, as for devices
 * that are all dark. */
static int check_plan(const struct model_fabric *f, struct err *err)
{
	const struct plan_base dark = { .mode = PLAN_SAFE };
	struct plan *p = NULL;
	int r = plan_make(f, &dark, &p, err);

	plan_free(p);
	return r;
}

/* Without weftd. {fabric, valid, hosts, ports, devices, jobs} and for
 * programs sha256, the hash of the file by which plans name it. */
int cmd_check(struct cli *c, struct err *err)
{
	struct model_fabric *f = NULL;
	struct out *o;
	int r = cli_load_fabric(c->argv[0], &f, err);

	if (r || (r = check_devices(f, err)) || (r = check_plan(f, err))) {
		model_free(f);
		return r;
	}
	o = out_new(c->format);
	out_str(o, "fabric", f->name);
	out_bool(o, "valid", true);
	out_int(o, "hosts", f->n_hosts);
	out_int(o, "ports", f->n_ports);
	out_int(o, "devices", f->n_devices);
	out_int(o, "jobs", f->n_jobs);
	out_machine_only(o);
	out_str(o, "sha256", f->hash);
	model_free(f);
	return cli_print(o, err);
}

/* ---- device drivers ---- */

/* name, kind, summary; with its options, and always for programs, also what
 * it can do: sets_ports, recovers and options [{option, default, help}]. */
static void out_driver(const struct cli *c, struct out *o,
		       const struct drv_class *cls, bool options)
{
	out_str(o, "name", cls->name);
	out_str(o, "kind", cls->kind == DRV_RING ? "ring" : "switch");
	out_str(o, "summary", cls->summary);
	if (!options && c->format == OUT_TABLE) {
		return;
	}
	out_bool(o, "sets_ports", cls->port_set != NULL);
	out_array(o, "recovers");
	for (unsigned bit = DRV_HOMING; bit <= DRV_CLEAR; bit <<= 1) {
		if (cls->recoveries & bit) {
			out_str(o, NULL, drv_recovery_name(bit));
		}
	}
	out_end(o);
	out_array(o, "options");
	for (const struct drv_option_spec *s = cls->options; s && s->key; s++) {
		out_object(o, NULL);
		out_str(o, "option", s->key);
		out_str(o, "default", s->def);
		out_str(o, "help", s->help);
		out_end(o);
	}
	out_end(o);
}

static int print_driver(struct cli *c, const char *name, struct err *err)
{
	const struct drv_class *cls = drv_find(name);
	struct out *o;

	if (!cls) {
		err_set(err, WEFT_ENOTFOUND, "driver \"%s\" does not exist", name);
		err_hint(err, "\"weft device drivers\" lists them");
		return err->code;
	}
	o = out_new(c->format);
	out_driver(c, o, cls, true);
	return cli_print(o, err);
}

/* "drivers" as a list, or all of one. Without weftd. */
int cmd_device_drivers(struct cli *c, struct err *err)
{
	struct out *o;

	if (c->argc == 1) {
		return print_driver(c, c->argv[0], err);
	}
	o = out_new(c->format);
	out_array(o, "drivers");
	for (const struct drv_class *const *d = drv_all(); *d; d++) {
		out_object(o, NULL);
		out_driver(c, o, *d, false);
		out_end(o);
	}
	out_end(o);
	return cli_print(o, err);
}
