/* Private to the room: what the paper compares OpTree with, as schedules. */
#ifndef WEFT_OPTREE_BASELINE_H
#define WEFT_OPTREE_BASELINE_H

#include "optree/optree.h"
#include "optree/sym.h"

/* Ring: every item goes on to the next node in every step, one channel. */
int baseline_ring(const struct optree_params *p, struct optree_sym *out,
		  struct err *err);

/* Neighbour exchange (even n): pairs exchange their items, then alternately
 * with the other neighbour the two items that came last. WEFT_EUNSUPPORTED
 * for odd n. */
int baseline_ne(const struct optree_params *p, struct optree_plan *out,
		struct err *err);

/*
 * Wrht as an all-gather: groups of 2w+1 nodes send to the one in their
 * middle, these exchange what they have by all-to-all, and pass everything
 * on to their groups, one lightpath for each item and receiver. The paper's
 * 4w+3 steps count 2w+1 for each of the last two parts, which is too little
 * for n items unless one light feeds many receivers.
 */
int baseline_wrht(const struct optree_params *p, struct optree_plan *out,
		  struct err *err);

#endif
