/* Private to the room: composed all-gathers as sequences of levels. */
#ifndef WEFT_OPTREE_COMPOSE_H
#define WEFT_OPTREE_COMPOSE_H

#include <stdbool.h>
#include <stdint.h>

#include "optree/optree.h"
#include "optree/sym.h"

#define COMPOSE_MAX_LEVELS OPTREE_MAX_DEPTH
#define COMPOSE_MAX_CHUNKS 5040

/*
 * One level: the nodes that hold an item are at most `gap` links apart, and
 * afterwards at most `stride`. New holders come from both ends of each gap,
 * `jump` from each end in a round: 1 is a relay, half of what the gap lacks a
 * direct level.
 */
struct compose_level {
	int32_t gap, stride, jump;
	int32_t from[2], room[2];	/* colours it may use; 0, 0: all */
};

/*
 * One way: new holders come from one end of each gap only, the first `cw` of
 * an item's `units` clockwise, the others counter-clockwise by the mirrored
 * levels. So directions of unequal width get their share each, and on a line
 * the whole item goes both ways (cw = units).
 */
struct compose_shape {
	int levels;
	struct compose_level level[COMPOSE_MAX_LEVELS];
	bool one_way;
	int units, cw;
	double estimate_ns;
};

/* A hop in a round, chunks in units as optree_sym_light() takes them. */
struct compose_record {
	int32_t round, len;
	struct sym_hop hop;
	uint8_t dir;
};

struct compose_records {
	struct compose_record *v;
	size_t n, cap;
};

/* Sorts the records and appends them as hops, moves and rounds; ends: first
 * round after each level. 0 or WEFT_ENOMEM. O(n log n). */
int compose_gather(struct compose_records *rec, const int *ends,
		   struct optree_sym *s);

/* Chunks an item may be cut into: at most one a byte. */
int compose_max_chunks(const struct optree_params *p);

/* Time of a symmetric schedule: steps and chunks, rounded up to whole ns;
 * -1 when it does not fit 64 bits. */
int64_t compose_time_ns(const struct optree_params *p,
			const struct optree_sym *s);

/* The same when idle channels are retuned meanwhile (p->overlap; else as
 * compose_time_ns(), which must fit). times: when each step's data begins and
 * ends, in ns, or NULL. 0, WEFT_ENOMEM. O(steps w). */
int overlap_time_ns(const struct optree_params *p, const struct optree_sym *s,
		    double *times, int64_t *ns, struct err *err);

/* How many classes of a move are lit in a slot of its round; the first of
 * them, and its first colour. */
int32_t overlap_lit(const struct sym_round *r, const struct sym_move *m,
		    int slot, int32_t *class, int32_t *first);

/* It has no more lights than the parameters allow. */
bool compose_may_light(const struct optree_params *p,
		       const struct optree_sym *s);

/* One or the other, as p->overlap says. *ns: -1 when it does not fit. */
int compose_times(const struct optree_params *p, const struct optree_sym *s,
		  int64_t *ns, struct err *err);

/*
 * The fastest all-gather of levels: a dynamic programme over the distances
 * between holders proposes sequences, the best of them are built and timed
 * exactly. *out is initialised; freed by optree_sym_fini() on success.
 * reach: links of the longest lightpath, >= 1. WEFT_EINFEASIBLE.
 */
int compose_best(const struct optree_params *p, int reach,
		 struct compose_shape *shape, struct optree_sym *out,
		 struct err *err);

/*
 * The fastest all-to-all found: every piece takes a shortest way (pieces for
 * the opposite node half each way) in hops of levels, the far ones first: at
 * a level of this stride it makes hops of up to `jump` strides as long as
 * one fits in what is left of its way. All loads are least possible, so
 * levels only trade steps for whole channels. *out is initialised. Errors as
 * compose_best().
 */
int compose_exchange(const struct optree_params *p, int reach,
		     struct compose_shape *shape, struct optree_sym *out,
		     struct err *err);

#endif
