/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The drivers that are built in, and how a device finds its own by name. A new
 * driver is a line in this table, sorted by name, and its declaration in
 * driver_base.h.
 */
#include "drivers/core/driver.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "drivers/core/driver_base.h"

static const struct drv_class *const classes[] = {
	&drv_calient_tl1,
	&drv_glimmerglass_tl1,
	&drv_linux_ring,
	&drv_linux_tc,
	&drv_mrr_reg,
	&drv_polatis_restconf,
	&drv_polatis_scpi,
	&drv_polatis_tl1,
	&drv_rome_cli,
	&drv_sim,
	&drv_sim_ring,
	&drv_sonic_ocs,
	&drv_telescent_cli,
	NULL,
};

const struct drv_class *const *drv_all(void)
{
	return classes;
}

const struct drv_class *drv_find(const char *name)
{
	for (int i = 0; classes[i]; i++) {
		if (strcmp(classes[i]->name, name) == 0) {
			return classes[i];
		}
	}
	return NULL;
}

static int not_found(const char *driver, struct err *err)
{
	char known[ERR_FILE_MAX] = "";
	size_t len = 0;

	for (int i = 0; classes[i] && len < sizeof(known); i++) {
		len += snprintf(known + len, sizeof(known) - len, "%s%s",
				i ? ", " : "", classes[i]->name);
	}
	err_set(err, WEFT_ENOTFOUND, "no driver '%s'; there are: %s", driver, known);
	return WEFT_ENOTFOUND;
}

int drv_open(uv_loop_t *loop, const char *driver, const struct drv_config *cfg,
	     struct drv **out, struct err *err)
{
	const struct drv_class *cls = drv_find(driver);
	int rc;

	if (!cls) {
		return not_found(driver, err);
	}
	assert(cls->abi == DRV_ABI);
	rc = cls->open(cls, loop, cfg, out, err);
	if (rc) {
		err_wrap(err, "device %s", cfg->name);
	}
	return rc;
}
