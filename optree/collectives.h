/* Private to the room: what make.c and collectives.c share. */
#ifndef WEFT_OPTREE_COLLECTIVES_H
#define WEFT_OPTREE_COLLECTIVES_H

#include "optree/compose.h"
#include "optree/optree.h"

/* Turns a written all-gather into a reduce-scatter or all-reduce; verified,
 * with its light. *s is replaced, or unchanged after an error. Reversed
 * lightpaths go the other way round: where the directions have different
 * light, `mirror` is the all-gather to reverse, as mirrored by
 * optree_sym_expand(); else NULL. */
int collectives_convert(const struct optree_params *p, enum coll_kind kind,
			const struct coll_sched *mirror,
			struct coll_sched **s, struct err *err);

/* Proves a symmetric form and reports on it. Takes what is in *s over. */
int make_from_sym(const struct optree_params *p, enum optree_algorithm how,
		  struct optree_sym *s, struct optree_plan *out,
		  struct err *err);

/* Levels of the shape, for people. */
void make_levels_of(const struct optree_params *p,
		    const struct compose_shape *shape,
		    struct optree_plan *out);

/* Links that light goes at most; WEFT_EINFEASIBLE when not one. */
int make_reach(const struct optree_params *p, int *reach, struct err *err);

#endif
