/* SPDX-License-Identifier: Apache-2.0 */
/* Hierarchical schedules: ranks of hosts that have several, against hosts of one rank on the same
 * links. */
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "collective/make/make.h"
#include "tests/unit/schedule/common.h"
#include "tests/unit/world.h"

static const struct coll_cost cost = {
	.alpha_ns = 1000, .link_bps = INT64_C(100000000000), .size_bytes = 1 << 26,
};

/* The ranks of hosts that are joined as the expression says: `ranks` in each, which have arcs of
 * this capacity to each other; the k-th link out of a host, and into it, is at its k-th rank. */
static struct topo *hosts_of(const char *expr, int ranks, int64_t inside, int32_t *groups)
{
	struct topo *hosts = NULL, *t = NULL;
	int out[64] = { 0 }, in[64] = { 0 };

	assert_int_equal(topo_parse(expr, &hosts, NULL, NULL), 0);
	assert_true(topo_n(hosts) <= 64);
	assert_int_equal(topo_new(topo_n(hosts) * ranks, &t, NULL), 0);
	for (int u = 0; u < topo_n(t); u++) {
		groups[u] = u / ranks;
		for (int i = 0; i < ranks; i++) {
			int v = u / ranks * ranks + i;

			if (v != u) {
				assert_int_equal(topo_add_arc(t, u, v, inside, 0, NULL), 0);
			}
		}
	}
	for (int a = 0; a < topo_m(hosts); a++) {
		const struct topo_arc *arc = topo_arc(hosts, a);
		int u = arc->src * ranks + out[arc->src]++ % ranks;
		int v = arc->dst * ranks + in[arc->dst]++ % ranks;

		assert_int_equal(topo_add_arc(t, u, v, 1, 0, NULL), 0);
	}
	topo_freeze(t);
	topo_free(hosts);
	return t;
}

/* What was made, in ns; by the algorithm of this name, NULL: the fastest. Replayed. */
static int64_t make(const struct topo *t, enum coll_kind kind, const char *name,
		    const int32_t *groups)
{
	struct coll_make_query q = coll_make_job(kind, NULL, t, &cost);
	struct coll_made made;
	struct err err = { 0 };
	int64_t ns;

	q.algorithm = name ? coll_algorithm_find(name, kind) : NULL;
	q.groups = groups;
	if (coll_make(&q, &made, &err)) {
		fail_msg("%s", err.msg);
	}
	assert_int_equal(coll_verify(made.sched, NULL, NULL), 0);
	ns = made.time_ns;
	assert_true(ns >= made.bound_ns);
	coll_made_fini(&made);
	return ns;
}

static const enum coll_kind kinds[] = { COLL_ALLGATHER, COLL_REDUCE_SCATTER, COLL_ALLREDUCE };

/* Hosts, and the steps of the all-gather between them. */
static const struct { const char *expr; int steps; } cases[] = {
	{ "K(4)", 1 }, { "C(8,{1,2,3})", 2 }, { "Hypercube(3)", 3 }, { "Multi(Torus(3,3),2)", 2 },
	{ "Kautz(2,2)", 2 }, { "Jellyfish(10,3,1)", 3 },
};

/* Where inside is no limit, hosts of several ranks are nearly as fast as hosts of one: but for
 * the steps inside, before, after and between those of the links. */
static void as_hosts_of_one_rank(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		for (int k = 0; k < 3; k++) {
			int ranks = 2 + (int)((i + (size_t)k) % 3);
			int64_t steps = (cases[i].steps + 2) * (kinds[k] == COLL_ALLREDUCE ? 2 : 1);
			int32_t groups[64];
			struct topo *one = hosts_of(cases[i].expr, 1, 1, groups);
			int64_t host_ns = make(one, kinds[k], NULL, NULL), ns;
			struct topo *t = hosts_of(cases[i].expr, ranks, 1000, groups);

			ns = make(t, kinds[k], "hierarchical", groups);
			if (ns > host_ns * 102 / 100 + steps * cost.alpha_ns) {
				fail_msg("%s of %d ranks, %s: %lld ns, hosts of one %lld",
					 cases[i].expr, ranks, coll_kind_name(kinds[k]),
					 (long long)ns, (long long)host_ns);
			}
			topo_free(one);
			topo_free(t);
		}
	}
}

/* More inside, or twice the links, is never slower. */
static void more_is_faster(void **state)
{
	static const char *const doubled[] = { "K(4)", "Multi(K(4),2)", "Torus(3,3)",
					       "Multi(Torus(3,3),2)" };
	int64_t last = 0;

	(void)state;
	for (int i = 0; i < ALL_OR_SOME(4, 2); i++) {
		int64_t before = INT64_MAX;

		for (int64_t inside = 1; inside <= 16; inside *= 4) {
			int32_t groups[64];
			struct topo *t = hosts_of(doubled[i], 4, inside, groups);
			int64_t ns = make(t, COLL_ALLGATHER, NULL, groups);

			assert_true(ns <= before);
			before = ns;
			topo_free(t);
		}
		assert_true(i % 2 == 0 || before <= last * 55 / 100);
		last = before;
	}
}

/* Ranks of no group, of groups that differ in size, and of nothing that is wider. */
static void no_groups(void **state)
{
	int32_t groups[64];
	struct topo *t = hosts_of("K(4)", 3, 4, groups);
	struct coll_make_query q = coll_make_job(COLL_ALLGATHER, NULL, t, &cost);
	struct coll_made made;
	struct err err;

	(void)state;
	q.algorithm = coll_algorithm_find("hierarchical", COLL_ALLGATHER);
	q.groups = groups;
	groups[0] = 1;
	assert_int_equal(coll_make(&q, &made, &err), WEFT_EUNSUPPORTED);
	assert_non_null(strstr(err.msg, "groups of equal size"));
	/* Found by the capacity of arcs. */
	q.groups = NULL;
	assert_int_equal(coll_make(&q, &made, &err), 0);
	coll_made_fini(&made);
	topo_free(t);
	t = hosts_of("K(4)", 3, 1, groups);
	q.topo = t;
	assert_int_equal(coll_make(&q, &made, &err), WEFT_EUNSUPPORTED);
	topo_free(t);
}

/* Ranks of groups that are joined one direction only inside: made without groups. */
static void one_direction(void **state)
{
	static const int arcs[][3] = {
		{ 0, 1, 4 }, { 2, 3, 4 }, { 1, 2, 1 }, { 3, 0, 1 }, { 1, 0, 1 }, { 3, 2, 1 },
	};
	struct topo *t = NULL;

	(void)state;
	assert_int_equal(topo_new(4, &t, NULL), 0);
	for (size_t a = 0; a < sizeof(arcs) / sizeof(arcs[0]); a++) {
		assert_int_equal(topo_add_arc(t, arcs[a][0], arcs[a][1], arcs[a][2], 0, NULL), 0);
	}
	topo_freeze(t);
	for (int k = 0; k < 3; k++) {
		make(t, kinds[k], NULL, NULL);
	}
	topo_free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(as_hosts_of_one_rank), cmocka_unit_test(more_is_faster),
		cmocka_unit_test(no_groups), cmocka_unit_test(one_direction),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
