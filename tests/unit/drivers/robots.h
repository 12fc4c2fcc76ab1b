/* SPDX-License-Identifier: Apache-2.0 */
/* A robot on the bench: quick to be asked again, with an emulator. */
#ifndef WEFT_TESTS_UNIT_DRIVERS_ROBOTS_H
#define WEFT_TESTS_UNIT_DRIVERS_ROBOTS_H

#include "tests/unit/drivers/rig.h"

/* 8x8; fault and key may be NULL. */
static inline struct rig *robot_rig(const char *driver, const char *fault,
				    const char *key, const char *value)
{
	struct rig *r = test_calloc(1, sizeof(*r));

	assert_non_null(r);
	rig_init(r, driver, 8, 8, false);
	rig_option(r, "gap_ms", "0");
	rig_option(r, "poll_ms", "2");
	if (key) {
		rig_option(r, key, value);
	}
	rig_start_emulator(r, "8x8", fault);
	rig_open(r);
	return r;
}

static inline void robot_tear_down(struct rig *r)
{
	rig_fini(r);
	test_free(r);
}

#endif
