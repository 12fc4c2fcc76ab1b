/* What all ways of lowering are tried on. Include after cmocka.h. */
#ifndef WEFT_TESTS_UNIT_MSCCL_LOWERED_H
#define WEFT_TESTS_UNIT_MSCCL_LOWERED_H

#include "collective/bfb/bfb.h"
#include "collective/schedule/schedule.h"
#include "tests/unit/schedule/common.h"

static const char *const graphs[] = {
	"UniRing(1,2)", "Ring(3)", "UniRing(1,5)", "Ring(8)", "K(4)", "K(9)",
	"K(3,3)", "K(4,4)", "Torus(3,3)", "Torus(2,4)", "Torus(3,2,2)",
	"Hypercube(3)", "Hypercube(4)", "C(9,{1,2})", "C(12,{2,3})",
	"DiC(7,{1,3})", "GenKautz(2,6)", "GenKautz(3,10)", "GenKautz(2,11)",
	"Diamond", "Mesh(3,3)", "Deg(K(3),2)", NULL,
};

/* Constructions, and the same in batches that overlap; `runs` frees its
 * schedule. */
static inline void for_each_construction(void (*runs)(struct coll_sched *s))
{
	static const char *const exprs[] = {
		"L(K(3,3))", "Deg(UniRing(1,4),2)", "Pow(UniRing(1,3),2)",
		"Bi(DiC(7,{1,3}))", "L(Pow(K(2),2))", NULL,
	};
	struct err err = { 0 };
	struct coll_sched *s, *p;

	for (const char *const *e = exprs; *e; e++) {
		must(coll_expand(COLL_ALLREDUCE, *e, &s, &err), &err);
		must(coll_pipeline(s, 3, &p, &err), &err);
		runs(s);
		runs(p);
	}
}

#endif
