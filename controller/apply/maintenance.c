/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An operator's request to a device beside its circuits: a port enabled or disabled,
 * a robot's homing run, resonators that search again, errors cleared. No
 * plan, and no undo: one operation, read before and after.
 */
#include <stdlib.h>
#include <string.h>

#include "controller/apply/private.h"
#include "lib/base/alloc.h"

static void finish(struct maintenance *c)
{
	struct apply *a = c->a;

	a->maintenance = NULL;
	if (!a->closing) {
		apply_save_readings(a);
	}
	c->cb(c->rc, &c->outcome, &c->err, c->arg);
	device_unref(c->d);
	free(c);
}

/* What became of it was read already; this is for whoever asks next. */
static void on_read_after(struct device *d, int rc, const struct err *err, void *arg)
{
	(void)d;
	(void)rc;
	(void)err;
	finish(arg);
}

static void on_done(struct device *d, int rc, int n, const struct drv_outcome *outcomes,
		    const struct err *err, void *arg)
{
	struct maintenance *c = arg;

	c->rc = rc;
	c->err = *err;
	if (n == 1) {
		c->outcome = outcomes[0];
	}
	if (rc == 0 && c->outcome.error == DRV_ERR_TRAFFIC) {
		c->rc = err_set(&c->err, WEFT_EVERIFY, "%s: %s", d->name, c->outcome.text);
	}
	if (d->closing) {
		finish(c);
	} else {
		device_read(d, &c->op, on_read_after, c);
	}
}

/* Resonators search for the waves that are there, so these must be the ones
 * that are meant. */
static int check_light(const struct device *d, struct err *err)
{
	const struct apply_device *now = &d->now;

	if (now->n_missing || now->n_unexpected || now->n_pending) {
		err_set(err, WEFT_ESTALE, "%s: its programs are not as "
			"intended", d->name);
		err_hint(err, "\"weft diff\" shows what differs, \"weft "
			      "apply\" loads them");
		return err->code;
	}
	return 0;
}

static void on_read_before(struct device *d, int rc, const struct err *err, void *arg)
{
	struct maintenance *c = arg;

	c->rc = rc;
	c->err = *err;
	if (rc == 0 && c->what.recovery == DRV_RELOCK) {
		c->rc = check_light(d, &c->err);
	}
	if (c->rc == 0 && d->closing) {
		c->rc = err_set(&c->err, WEFT_ECANCELED, "%s: the device was "
				"closed", d->name);
	}
	if (c->rc) {
		finish(c);
	} else {
		apply_save_readings(c->a);	/* with the audit so far */
		device_maintain(d, &c->op, &c->what, on_done, c);
	}
}

int apply_maintenance_check(const struct apply *a, const char *device,
		     const struct apply_maintenance *what, struct err *err)
{
	const struct device *d = a->set ? device_set_find(a->set, device) : NULL;
	const struct drv_class *cls = d && d->drv ? d->drv->cls : NULL;

	if (d && d->now.elsewhere) {
		return err_set(err, WEFT_EUNAVAIL, "%s: %s", device, d->now.problem);
	}
	if (!cls) {
		return err_set(err, WEFT_ENOTFOUND, "there is no device \"%s\" "
			       "with a driver", device);
	}
	if (what->recovery ? !(cls->recoveries & what->recovery) : !cls->port_set) {
		return err_set(err, WEFT_EUNSUPPORTED, "%s: driver %s knows no "
			       "%s", device, cls->name, what->recovery ?
			       drv_recovery_name(what->recovery) :
			       "way to enable or disable ports");
	}
	return 0;
}

int apply_maintain(struct apply *a, const char *device, const struct apply_maintenance *what,
		   apply_maintenance_cb cb, void *arg, struct err *err)
{
	struct maintenance *c;
	int rc = apply_maintenance_check(a, device, what, err);

	if (rc) {
		return rc;
	}
	if (apply_busy(a)) {
		return err_set(err, WEFT_ESTALE, "a change is under way");
	}
	c = x_new(1, sizeof(*c));
	c->a = a;
	c->d = device_ref(device_set_find(a->set, device));
	c->what = *what;
	c->outcome.result = DRV_SKIPPED;
	c->cb = cb;
	c->arg = arg;
	a->maintenance = c;
	device_read(c->d, &c->op, on_read_before, c);
	return 0;
}
