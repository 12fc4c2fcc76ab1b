/* SPDX-License-Identifier: Apache-2.0 */
/* Without RESTCONF: its devices are named, and cannot be opened. */
#include "drivers/core/driver_base.h"

static const struct drv_option_spec options[] = { { NULL, NULL, NULL } };

static int refuse(const struct drv_class *cls, uv_loop_t *loop, const struct drv_config *cfg,
		  struct drv **out, struct err *err)
{
	*out = NULL;
	return build_lacks(cls->name, err);
}

const struct drv_class drv_polatis_restconf = {
	.name = "polatis-restconf",
	.summary = "not in this build",
	.abi = DRV_ABI,
	.kind = DRV_SPACE,
	.options = options,
	.open = refuse,
};
