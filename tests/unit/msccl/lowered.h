/* SPDX-License-Identifier: Apache-2.0 */
/* What all ways of lowering are tried on. Include after cmocka.h. */
#ifndef WEFT_TESTS_UNIT_MSCCL_LOWERED_H
#define WEFT_TESTS_UNIT_MSCCL_LOWERED_H

#include "collective/bfb/bfb.h"
#include "collective/schedule/schedule.h"
#include "collective/torus/torus.h"
#include "runtime/msccl/msccl.h"
#include "tests/unit/schedule/chains.h"
#include "tests/unit/schedule/common.h"
#include "tests/unit/schedule/merged.h"
#include "tests/unit/world.h"

static const char *const graphs[] = {
	"UniRing(1,2)", "Ring(3)", "UniRing(1,5)", "Ring(8)", "K(4)", "K(9)",
	"K(3,3)", "K(4,4)", "Torus(3,3)", "Torus(2,4)", "Torus(3,2,2)",
	"Hypercube(3)", "Hypercube(4)", "C(9,{1,2})", "C(12,{2,3})",
	"DiC(7,{1,3})", "GenKautz(2,6)", "GenKautz(3,10)", "GenKautz(2,11)",
	"Diamond", "Mesh(3,3)", "Deg(K(3),2)", NULL,
};

/* Twelve families of 8 to 64 ranks. */
static const char *const families[12][4] = {
	{ "Ring(8)", "Ring(16)", "Ring(32)", "Ring(64)" },
	{ "UniRing(2,8)", "UniRing(1,16)", "UniRing(3,32)", "UniRing(1,64)" },
	{ "K(8)", "K(16)", "K(32)", "K(64)" },
	{ "K(4,4)", "K(8,8)", "K(12,12)", "K(16,16)" },
	{ "Hypercube(3)", "Hypercube(4)", "Hypercube(5)", "Hypercube(6)" },
	{ "Torus(3,3)", "Torus(4,4)", "Torus(4,8)", "Torus(8,8)" },
	{ "Torus(2,2,2)", "Torus(3,3,2)", "Torus(3,3,4)", "Torus(4,4,4)" },
	{ "C(9,{1,2})", "C(16,{1,4})", "C(32,{1,7})", "C(64,{7,8})" },
	{ "DiC(9,{1,3})", "DiC(16,{1,5})", "DiC(32,{3,4,7})", "DiC(64,{1,8})" },
	{ "GenKautz(2,9)", "GenKautz(3,16)", "GenKautz(4,32)", "GenKautz(4,64)" },
	{ "TwistedHypercube(3)", "TwistedTorus(4,4,2)", "TwistedTorus(4,8,4)",
	  "TwistedTorus(8,8,4)" },
	{ "Mesh(3,3)", "L(K(4,4))", "Deg(K(4,4),4)", "Pow(K(4),3)" },
};

static inline struct coll_sched *of_family(enum coll_kind kind, const char *expr)
{
	return kind == COLL_ALLTOALL || kind == COLL_BROADCAST
		       ? paths(kind, expr, kind == COLL_ALLTOALL ? 1 : 48, 0) : bfb(kind, expr);
}

/* Algorithms on coordinates, whose partners are no neighbours; `runs` frees its schedule. */
static inline void for_each_on_coordinates(void (*runs)(struct coll_sched *s))
{
	static const struct torus_spec specs[] = {
		{ .lines = TORUS_SWING, .rounds = -1 }, { .lines = TORUS_SWING, .rounds = 0 },
		{ .lines = TORUS_DOUBLING, .rounds = 0, .one_port = true },
		{ .lines = TORUS_BUCKET, .rounds = -1, .in_step = true },
	};
	static const char *const shapes[] = { "Torus(4)", "Torus(6)", "Torus(7)", "Torus(4,2)" };
	struct err err = { 0 };

	for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
		struct torus_shape *shape;
		struct topo *t;

		must(topo_parse(shapes[i], &t, NULL, &err), &err);
		must(torus_shape_new(t, NULL, TORUS_PLAIN, true, &shape, &err), &err);
		for (size_t k = 0; k < sizeof(specs) / sizeof(specs[0]); k++) {
			struct coll_sched *s;

			must(torus_make(shape, &specs[k], COLL_ALLREDUCE, 0, &s, &err), &err);
			runs(s);
		}
		torus_shape_free(shape);
		topo_free(t);
	}
}

/* Exchanges along chains, and the same in batches that overlap; `runs` frees its schedule. */
static inline void for_each_chain(void (*runs)(struct coll_sched *s))
{
	static const struct chain_plan plans[] = {
		{ "Ring(3)", 1, { { 1, 3 } } }, { "Ring(4)", 1, { { 1, 4 } } },
		{ "Ring(7)", 1, { { 1, 7 } } }, { "C(8,{1,2})", 2, { { 1, 2 }, { 2, 4 } } },
		{ "C(12,{1,3})", 2, { { 1, 3 }, { 3, 4 } } },
		{ "C(15,{1,5})", 2, { { 1, 5 }, { 5, 3 } } },
	};
	struct err err = { 0 };

	for (size_t i = 0; i < sizeof(plans) / sizeof(plans[0]); i++) {
		struct coll_sched *s = chains(&plans[i]), *p;

		if (i % 2 || ALL_OR_SOME(true, false)) {
			must(coll_pipeline(s, 3, &p, &err), &err);
			runs(p);
		}
		runs(s);
	}
	runs(torus_chains(3, 3));
	runs(torus_chains(2, 4));
}

/* Sums that are merged on their way, also in batches; `runs` frees its schedule. */
static inline void for_each_merged(void (*runs)(struct coll_sched *s))
{
	static const char *const small[] = { "Ring(4)", "K(4)", "Ring(5)", "GenKautz(2,6)",
					     "Hypercube(3)" };
	struct err err = { 0 };
	struct rng rng;

	rng_seed(&rng, 44);
	for (int i = 0; i < 30; i++) {
		runs(random_merged(small[i % 5], 1 + i % 3, i % 2, &rng));
	}
	for (int i = 0; i < 4; i++) {
		struct coll_sched *s = i < 2 ? merged_moore("Odd(3)", 2, i % 2)
					     : merged_walks("GenKautz(2,4)", 2, i % 2), *p;

		must(coll_pipeline(s, 2, &p, &err), &err);
		runs(s);
		runs(p);
	}
}

/* By Simple, in one copy. */
static inline int msccl_lower(const struct coll_sched *s, enum msccl_dialect dialect,
			      struct msccl *out, struct err *err)
{
	struct msccl_options o = { .dialect = dialect, .instances = 1 };

	return msccl_lower_as(s, &o, out, err);
}

/* The file of a schedule: lowered, proven, written. */
static inline int msccl_export(const struct coll_sched *s, enum msccl_dialect dialect,
			       struct buf *out, struct err *err)
{
	struct msccl p;
	int rc = msccl_lower(s, dialect, &p, err);

	if (rc) {
		return rc;
	}
	msccl_write(&p, out);
	msccl_fini(&p);
	return 0;
}

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
