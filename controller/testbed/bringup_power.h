/* Bring-up by power: what switches' outputs and unmonitored devices' pairs
 * share. */
#ifndef WEFT_TESTBED_BRINGUP_POWER_H
#define WEFT_TESTBED_BRINGUP_POWER_H

#include "controller/testbed/bringup_private.h"

#define POWER_PATIENCE_US 200000	/* before a fibre is called dark */

/* ---- bringup_power.c ---- */

/* Reads the levels of one device, or of all; those without monitors only until
 * b->has_levels, for they have nothing new to tell. WEFT_ESTALE: a circuit
 * there is not ours. */
int bringup_read_levels(struct bringup_run *r, int device,
			struct bringup_levels *l, struct err *err);
int bringup_read_all(struct bringup_run *r, struct bringup_levels *levels,
		     struct err *err);
/* Of the input, or the output, where light arrived. */
int32_t bringup_level(const struct bringup_levels *v, enum bringup_reach reach,
		      int device, int port);
/* What was dark in base and is lit now: where light from the output, or of a
 * laser (device -1), leads. */
void bringup_find_far(const struct bringup_run *r, int device, int out,
		      struct bringup_far *far);
/* Lights a switch's source over the devices before it. */
int bringup_light_source(struct bringup_run *r, int device, struct err *err);
/* Circuits at the bottom of the record that feed switches over unmonitored
 * devices. */
int bringup_count_feeds(const struct bringup *b);

/* ---- bringup_power_pairs.c ---- */

int bringup_power_try_pair(struct bringup_run *r, struct bringup_try *t,
			   struct err *err);

#endif
