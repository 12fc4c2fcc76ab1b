/* SPDX-License-Identifier: Apache-2.0 */
/* A TL1 switch of 8 x 8 on the bench, without waits. */
#ifndef WEFT_TESTS_UNIT_DRIVERS_TL1_SWITCHES_H
#define WEFT_TESTS_UNIT_DRIVERS_TL1_SWITCHES_H

#include "tests/unit/drivers/rig.h"

static inline struct rig *set_up_as(const char *driver, const char *fault)
{
	struct rig *r = test_calloc(1, sizeof(*r));

	rig_init(r, driver, 8, 8, false);
	rig_option(r, "gap_ms", "0");
	rig_option(r, "settle_ms", "0");
	rig_start_emulator(r, "8x8", fault);
	rig_open(r);
	return r;
}

static inline void tear_down(struct rig *r)
{
	rig_fini(r);
	test_free(r);
}

#endif
