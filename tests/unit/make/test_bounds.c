/* SPDX-License-Identifier: Apache-2.0 */
/* The lower bound of time against every schedule over routes that is made here: swing and its
 * relatives, and others embedded by shortest paths, at many costs and sizes. */
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "collective/bfb/bfb.h"
#include "collective/torus/torus.h"
#include "tests/unit/schedule/common.h"

#define LINK_BPS INT64_C(400000000000)

static const struct coll_cost costs[] = {
	{ .alpha_ns = 0, .forwards = true, .hop_ns = 400 },
	{ .alpha_ns = 500, .forwards = true, .hop_ns = 400 },
	{ .alpha_ns = 1500, .forwards = true, .hop_ns = 400, .message_ns = 500 },
	{ .alpha_ns = 100 }, { .alpha_ns = 0, .forwards = true, .hop_ns = 10, .message_ns = 3000 },
};

#define COSTS (sizeof(costs) / sizeof(costs[0]))

/* One step over the largest distance, or with the bandwidth bound. */
static double simple_bound(const struct coll_sched *s, const struct coll_report *r,
			   const struct coll_cost *c)
{
	double step = (double)(c->alpha_ns + c->message_ns), load;
	double far = (double)c->hop_ns * topo_diameter(coll_physical(s));

	load = (double)c->hop_ns + mpq_get_d(r->bandwidth_bound) / coll_ports(s) *
					   (double)c->size_bytes * 8e9 / (double)c->link_bps;
	return step + (far > load ? far : load);
}

/* Each message by its own time. */
static void check_overlapped(const struct coll_sched *s, const struct coll_report *r,
			     const char *name)
{
	for (size_t i = 0; i < COSTS * 3; i++) {
		struct coll_sim_options o = { .cost = costs[i / 3], .asynchronous = true };
		struct coll_sim sim = { 0 };
		struct err err = { 0 };
		int64_t time, bound;

		o.cost.link_bps = LINK_BPS;
		o.cost.steps_overlap = true;
		o.cost.size_bytes = INT64_C(1000) << 6 * (i % 3);
		must(coll_time(s, r, &o.cost, &time, &bound, &err), &err);
		must(coll_simulate(s, &o, &sim, NULL, &err), &err);
		if (sim.time_ns < (double)bound - 1) {
			fail_msg("%s, cost %zu: simulated in %g ns, bound %lld", name, i,
				 sim.time_ns, (long long)bound);
		}
		coll_sim_fini(&sim);
	}
}

static void check(struct coll_sched *s, const char *name)
{
	struct coll_report r;
	struct err err = { 0 };

	coll_report_init(&r);
	must(coll_verify(s, &r, &err), &err);
	for (size_t i = 0; i < COSTS && coll_is_embedded(s); i++) {
		struct coll_cost c = costs[i];
		int64_t before = 0, time, bound;

		c.link_bps = LINK_BPS;
		for (c.size_bytes = 1; c.size_bytes < INT64_C(1) << 32; c.size_bytes *= 9) {
			must(coll_time(s, &r, &c, &time, &bound, &err), &err);
			if (bound > time || bound < before ||
			    (double)bound < simple_bound(s, &r, &c) * (1 - 1e-9)) {
				fail_msg("%s, cost %zu, %lld bytes: %lld ns, bound %lld", name, i,
					 (long long)c.size_bytes, (long long)time,
					 (long long)bound);
			}
			before = bound;
		}
	}
	if (coll_ranks(s) <= 16) {
		check_overlapped(s, &r, name);
	}
	coll_report_fini(&r);
	coll_free(s);
}

/* Those that are the fastest somewhere, and all lines as they come. */
static void check_shape(const char *expr, enum coll_kind kind)
{
	struct topo *t = graph_of(expr);
	struct torus_shape *shape;
	struct torus_spec spec;
	struct coll_sched *s;
	struct err err = { 0 };

	must(torus_shape_new(t, NULL, TORUS_PLAIN, true, &shape, &err), &err);
	for (int i = 0; i < (int)COSTS * 4; i++) {
		struct coll_cost c = costs[i / 4];

		c.link_bps = LINK_BPS;
		c.size_bytes = INT64_C(32) << 8 * (i % 4);
		if (torus_choose(shape, kind, &c, NULL, &spec, &err)) {
			assert_int_equal(err.code, WEFT_EUNSUPPORTED);
			err_clear(&err);
			continue;
		}
		must(torus_make(shape, &spec, kind, 0, &s, &err), &err);
		check(s, expr);
	}
	for (int i = 0; i < 2 * TORUS_LINES; i++) {
		spec = (struct torus_spec){ .lines = (enum torus_lines)(i / 2),
					    .rounds = i % 2 ? 0 : -1 };
		if (spec.lines == TORUS_LEVELS || torus_make(shape, &spec, kind, 0, &s, &err)) {
			err_clear(&err);
			continue;
		}
		check(s, expr);
	}
	torus_shape_free(shape);
	topo_free(t);
}

static void relatives_of_swing(void **state)
{
	static const char *const exprs[] = {
		"Ring(3)", "Ring(4)", "Ring(5)", "Ring(6)", "Ring(9)", "Ring(16)", "Torus(3,3)",
		"Torus(4,4)", "Torus(8,2)", "Torus(5,3)", "Torus(6,6)", "Torus(4,4,4)", "Mesh(4,4)",
		"Hypercube(4)", "K(7)", "Prod(K(4),Ring(4))",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(exprs) / sizeof(exprs[0]); i++) {
		check_shape(exprs[i], COLL_ALLREDUCE);
		if (i % 4 == 0) {
			check_shape(exprs[i], COLL_ALLGATHER);
			check_shape(exprs[i], COLL_REDUCE);
		}
	}
}

#define PHYSICAL 12

/* What is made on one digraph, over the shortest paths of another. */
static void embedded_in_others(void **state)
{
	static const char *const physical[] = {
		"Jellyfish(12,3,1)", "Jellyfish(12,4,2)", "GenKautz(2,12)", "UniRing(1,12)",
		"Torus(4,3)", "Mesh(12)", "Mesh(3,4)", "Ring(12)", "C(12,{1,5})", "HyperX(4,3)",
		"HammingMesh(2,3,1)", "HyperX(12)",
	};
	static const char *const logical[] = { "K(12)", "UniRing(1,12)", "Torus(3,4)",
					       "C(12,{2,3})" };
	static const enum coll_kind kinds[] = { COLL_ALLREDUCE, COLL_ALLGATHER,
						COLL_REDUCE_SCATTER, COLL_BROADCAST };

	(void)state;
	for (int i = 0; i < PHYSICAL * 4 * 4; i++) {
		struct err err = { 0 };
		struct coll_sched *s, *out;

		if (kinds[i / PHYSICAL / 4] == COLL_BROADCAST) {
			s = paths(COLL_BROADCAST, logical[i / PHYSICAL % 4], 1, 0);
		} else {
			s = bfb(kinds[i / PHYSICAL / 4], logical[i / PHYSICAL % 4]);
		}
		must(coll_embed(s, graph_of(physical[i % PHYSICAL]), COLL_ROUTING_MINIMAL_SPLIT, 0,
				&out, &err),
		     &err);
		check(out, physical[i % PHYSICAL]);
		check(s, logical[i / PHYSICAL % 4]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(relatives_of_swing),
		cmocka_unit_test(embedded_in_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
