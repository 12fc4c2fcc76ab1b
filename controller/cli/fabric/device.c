/* SPDX-License-Identifier: Apache-2.0 */
/* weft check, weft device: what can be said of devices without touching
 * them. */
#include <stdlib.h>
#include <string.h>

#include "controller/cli/core/private.h"
#include "controller/plan/plan.h"
#include "drivers/core/driver.h"

/* ---- check ---- */

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

	if (r || (r = check_plan(f, err))) {
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
