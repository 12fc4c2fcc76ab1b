/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a circuit loses, computed from the power monitors at both its ends,
 * for drivers whose devices measure power and no loss. Private to drivers.
 *
 * Both monitors may be wrong, each by its own error and in either direction,
 * so a loss is good to the sum of the two. Monitors that see no light have
 * nothing to report.
 */
#ifndef WEFT_DRIVERS_CORE_POWER_MONITORS_H
#define WEFT_DRIVERS_CORE_POWER_MONITORS_H

#include "drivers/core/driver_base.h"
#include "drivers/core/xc_map.h"

#define MONITOR_OPTIONS                                                       \
	{ "dark_dbm", "power below this is no light to compute losses from",   \
	  "-40" },                                                            \
	{ "power_error_mdb", "how wrong a monitor may be, in 0.001 dB",       \
	  "500" }

#define MONITORED_SIDES                                                       \
	{ "power", "sides with power monitors: none, in, out or both", "none" }

struct power_monitors {
	int64_t dark_dbm, error_mdb;
};

/* Reads the options above. WEFT_EINVAL. */
int power_monitors_init(struct power_monitors *m, const struct drv_class *cls,
			const struct drv_config *cfg, struct err *err);

/* Reads the option `power`: which sides have monitors. WEFT_EINVAL. */
int power_monitors_sides(enum drv_power *sides, const struct drv_class *cls,
			 const struct drv_config *cfg, struct err *err);
/* Whether a flat port of m has one. */
bool power_monitors_at(enum drv_power sides, const struct xc_map *m, int flat);

/* Gives each tuned circuit of the snapshot under way that has no loss the
 * difference of the powers at its ends, where both carry light; where either does not, it has no
 * signal. A difference
 * below zero by no more than the error is zero, a larger one is no loss. Not
 * for any-to-any switches, where it is not known which end light enters by.
 * O(circuits + ports). */
void power_monitors_losses(const struct power_monitors *m, struct driver_base *h);

#endif
