/* SPDX-License-Identifier: Apache-2.0 */
/* What only drivers know of a fabric file. */
#include <string.h>

#include "controller/dry_run/dry_run.h"

/* "device: what "name" does not exist", at the device's line of the file. */
static void bad_device(const struct model_device *d, const char *file, const char *what,
		       const char *name, const char *driver, struct err_list *errs)
{
	struct err e = { 0 };

	err_set(&e, WEFT_EINVAL, "%s: %s \"%s\" does not exist", d->name, what, name);
	err_at(&e, file, d->place.line, d->place.col);
	err_hint(&e, "\"weft device drivers%s%s\" lists them", driver[0] ? " " : "", driver);
	err_list_add(errs, &e);
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

void dry_run_check(const struct model_device *d, const char *file, struct err_list *errs)
{
	const struct drv_class *cls = drv_find(d->driver);
	struct err e = { 0 };

	if (!cls) {
		bad_device(d, file, "driver", d->driver, "", errs);
		return;
	}
	if ((cls->kind == DRV_RING) != (d->kind == MODEL_RING)) {
		err_set(&e, WEFT_EINVAL, "%s: driver \"%s\" is for %s", d->name, d->driver,
			cls->kind == DRV_RING ? "rings" : "switches");
		err_at(&e, file, d->place.line, d->place.col);
		err_list_add(errs, &e);
	}
	for (int i = 0; i < d->n_options; i++) {
		if (!has_option(cls, d->options[i].key)) {
			bad_device(d, file, "option", d->options[i].key, cls->name, errs);
		}
	}
}
