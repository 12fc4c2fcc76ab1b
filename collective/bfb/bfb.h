/* What breadth-first broadcast takes, without making its schedule. */
#ifndef WEFT_COLLECTIVE_BFB_BFB_H
#define WEFT_COLLECTIVE_BFB_BFB_H

#include <gmp.h>

#include "collective/schedule/schedule.h"

/* Steps and T_B (in M/B) of the schedule that coll_bfb would make with as many
 * chunks as it likes, without making it; bounds.h tells how long that takes. Errors
 * as coll_bfb. */
int coll_bfb_factor(enum coll_kind kind, const struct topo *topo, int *steps,
		    mpq_t factor, struct err *err);

#endif
