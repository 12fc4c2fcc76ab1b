/* SPDX-License-Identifier: Apache-2.0 */
/* The bound of an all-to-all by what crosses thin arcs and arcs between switches, against flows,
 * and by the steps that messages need from rank to rank. */
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <setjmp.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "collective/make/make.h"
#include "lib/base/number/rat.h"
#include "lib/base/number/rng.h"
#include "tests/unit/tree/common.h"

/* Of the terminals of t, which has switches. Returns T_B over its bound, never below 1. */
static double above_bound(const struct topo *t)
{
	struct coll_fabric f = { .name = "fabric" };
	struct coll_make_query q = coll_make_job(COLL_ALLTOALL, NULL, NULL, NULL);
	struct topo *seen = NULL;
	struct coll_made m;
	struct err err = { 0 };
	double above;

	if (topo_ranks(t) < topo_n(t)) {
		must(topo_copy(t, &f.topo, &err), &err);
		must(coll_terminals_see(t, &seen, &err), &err);
		q.fabric = &f;
		q.physical = f.topo;
	}
	q.topo = seen ? seen : t;
	must(coll_make(&q, &m, &err), &err);
	assert_true(mpq_cmp(m.report.bandwidth_factor, m.report.bandwidth_bound) >= 0);
	above = mpq_get_d(m.report.bandwidth_factor) / mpq_get_d(m.report.bandwidth_bound);
	coll_made_fini(&m);
	topo_free(seen);
	topo_free(f.topo);
	return above;
}

static void never_above(void **state)
{
	struct rng r;

	(void)state;
	rng_seed(&r, 40);
	for (int i = 0; i < 60; i++) {
		int switches = i % 2 ? 1 + (int)rng_below(&r, 3) : 0;
		int n = 3 + switches + (int)rng_below(&r, 5);
		struct topo *t = random_digraph(&r, n, (int)rng_below(&r, 3 * (uint64_t)n), 12, 1,
						switches);

		above_bound(t);
		topo_free(t);
	}
}

/* ---- behind switches ---- */

/* Of the ranks of a fabric with switches, by "auto". */
static struct coll_made make_behind(const struct topo *t, enum coll_kind kind,
				    const struct coll_cost *cost)
{
	struct coll_fabric f = { .name = "fabric" };
	struct coll_make_query q = coll_make_job(kind, NULL, NULL, cost);
	struct topo *seen = NULL;
	struct coll_made m;
	struct err err = { 0 };

	must(topo_copy(t, &f.topo, &err), &err);
	must(coll_terminals_see(t, &seen, &err), &err);
	q.topo = seen;
	q.fabric = &f;
	q.physical = f.topo;
	must(coll_make(&q, &m, &err), &err);
	topo_free(seen);
	topo_free(f.topo);
	return m;
}

/* The best rate of a flow, as an exact number with its proof: no bound is above. */
static void never_above_the_rate(const struct topo *t, const struct coll_made *m)
{
	struct mcf_options opt = { .gap = MCF_DEFAULT_GAP };
	struct mcf_proof *proof = NULL;
	struct mcf_result res;
	struct mcf *flow;
	struct err err = { 0 };
	mpq_t least;

	must(mcf_new(t, false, &flow, &err), &err);
	must(mcf_exact(flow, t, &opt, &res, &proof, &err), &err);
	mpq_init(least);
	rat_set(least, coll_ports(m->sched), coll_ranks(m->sched));
	mpq_mul(least, least, proof->congestion);
	assert_true(mpq_cmp(m->report.bandwidth_bound, least) <= 0);
	assert_true(mpq_get_d(m->report.bandwidth_bound) > mpq_get_d(least) * 0.998);
	mpq_clear(least);
	mcf_proof_free(proof);
	mcf_free(flow);
}

/* The most messages one after the other that data needs, of paths that end at every rank: Floyd and
 * Warshall over arcs that count where they lead to a rank. */
static int messages_needed(const struct topo *t)
{
	int n = topo_n(t), most = 0, *d = calloc((size_t)n * (size_t)n, sizeof(*d));

	for (int i = 0; i < n * n; i++) {
		d[i] = i % (n + 1) == 0 ? 0 : n;
	}
	for (int a = 0; a < topo_m(t); a++) {
		const struct topo_arc *arc = topo_arc(t, a);
		int *at = &d[arc->src * n + arc->dst];

		*at = arc->dst >= topo_ranks(t) ? 0 : *at > 1 ? 1 : *at;
	}
	for (int k = 0; k < n; k++) {
		for (int i = 0; i < n * n; i++) {
			int via = d[i / n * n + k] + d[k * n + i % n];

			d[i] = via < d[i] ? via : d[i];
		}
	}
	for (int i = 0; i < topo_ranks(t) * n; i++) {
		most = i % n < topo_ranks(t) && d[i] > most ? d[i] : most;
	}
	free(d);
	return most;
}

/* So many steps the bound has, and no schedule fewer; where ranks pass on messages, as in routes
 * that are as short as those through switches, one. */
static void steps_by_messages(const struct topo *t, enum coll_kind kind)
{
	struct coll_cost cost = { .alpha_ns = 1000000, .link_bps = INT64_C(8000000000),
				  .size_bytes = 1 };
	struct coll_made m = make_behind(t, kind, &cost);
	bool one = coll_has_root(kind) || coll_through_ranks(m.sched);
	int64_t needed = (one ? 1 : messages_needed(t)) * cost.alpha_ns, time, bound;

	assert_true(m.bound_ns >= needed);
	assert_true(m.bound_ns <= m.time_ns);
	if (coll_is_embedded(m.sched)) {
		cost.forwards = true;
		assert_int_equal(coll_time(m.sched, &m.report, &cost, &time, &bound, NULL), 0);
		assert_true(bound < m.bound_ns || needed == cost.alpha_ns);
	}
	if (kind == COLL_ALLTOALL) {
		never_above_the_rate(t, &m);
	}
	coll_made_fini(&m);
}

static void behind_switches(void **state)
{
	struct rng r;

	(void)state;
	rng_seed(&r, 38);
	for (int i = 0; i < 4 * COLL_KINDS; i++) {
		int switches = 1 + (int)rng_below(&r, 3);
		int n = 3 + switches + (int)rng_below(&r, 4);
		struct topo *t = random_digraph(&r, n, (int)rng_below(&r, 2 * (uint64_t)n), 12, 1,
						switches);

		steps_by_messages(t, (enum coll_kind)(i % COLL_KINDS));
		topo_free(t);
	}
}

/* What a flow on the fabric proves: 8, 56 and 8 % above by distances and cuts. */
static void as_flows_prove(void **state)
{
	static const char *const exprs[] = { "Rails(4,8)", "DgxA100(2,pcie)", "DgxA100(1,nvlink)" };
	const struct coll_cost cost = { .alpha_ns = 1000, .link_bps = INT64_C(8000000000),
					.size_bytes = 1 << 28 };

	(void)state;
	for (size_t i = 0; i < sizeof(exprs) / sizeof(exprs[0]); i++) {
		struct topo *t = NULL;
		struct coll_report r;

		assert_int_equal(topo_parse(exprs[i], &t, NULL, NULL), 0);
		struct coll_made m = make_behind(t, COLL_ALLTOALL, &cost);

		assert_true((double)m.time_ns < (double)m.bound_ns * 1.001);
		coll_report_init(&r);
		assert_int_equal(coll_verify(m.sched, &r, NULL), 0);
		assert_true(mpq_get_d(r.bandwidth_bound) * 1.05 <
			    mpq_get_d(m.report.bandwidth_bound));
		coll_raise_bound(m.sched, &r);
		assert_true(mpq_equal(r.bandwidth_bound, m.report.bandwidth_bound));
		coll_report_fini(&r);
		coll_made_fini(&m);
		topo_free(t);
	}
}

/* ---- links alone ---- */

/* Three boxes that are wide inside: what crosses between them decides. */
static void boxes(void **state)
{
	struct topo *t = NULL;

	(void)state;
	assert_int_equal(topo_new(12, &t, NULL), 0);
	for (int u = 0; u < 12; u++) {
		for (int v = 0; v < 12; v++) {
			bool inside = u / 4 == v / 4;

			if (u != v && (inside || u % 4 == v % 4)) {
				assert_int_equal(topo_add_arc(t, u, v, inside ? 100 : 1, 0, NULL),
						 0);
			}
		}
	}
	topo_freeze(t);
	assert_true(above_bound(t) < 1.03);
	topo_free(t);
}

/* On a mesh links in the middle decide, and on generalized Kautz graphs lengths of paths that no
 * flow can all have: the flow's own bound is the schedule's. */
static void of_the_flow(void **state)
{
	static const struct {
		const char *expr;
		double most;
	} known[] = {
		{ "Mesh(4,4)", 1.03 }, { "Mesh(3,5)", 1.03 }, { "GenKautz(4,64)", 1.05 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		struct topo *t = NULL;
		double above;

		assert_int_equal(topo_parse(known[i].expr, &t, NULL, NULL), 0);
		above = above_bound(t);
		if (above > known[i].most) {
			fail_msg("%s: %g times its bound", known[i].expr, above);
		}
		topo_free(t);
	}
}

/* Two boxes, each a ring of eight, behind a switch that is much thinner: messages stay in their box
 * where they can, and those that leave it are in batches, so that the switch never rests. */
static void boxes_behind_a_switch(void **state)
{
	const struct coll_cost cost = { .alpha_ns = 500, .link_bps = INT64_C(8000000000),
					.size_bytes = 256 << 20 };
	struct coll_fabric f = { .name = "fabric" };
	struct coll_make_query q = coll_make_job(COLL_ALLTOALL, NULL, NULL, &cost);
	struct topo *seen = NULL;
	struct coll_made m;
	struct err err = { 0 };

	(void)state;
	must(topo_new(17, &f.topo, &err), &err);
	topo_set_node(f.topo, 16, TOPO_SWITCH, 0);
	for (int u = 0; u < 16; u++) {
		int next = u / 8 * 8 + (u + 1) % 8;

		must(topo_add_arc(f.topo, u, next, 50, 0, &err), &err);
		must(topo_add_arc(f.topo, next, u, 50, 0, &err), &err);
		must(topo_add_arc(f.topo, u, 16, 16, 0, &err), &err);
		must(topo_add_arc(f.topo, 16, u, 16, 0, &err), &err);
	}
	topo_freeze(f.topo);
	must(coll_terminals_see(f.topo, &seen, &err), &err);
	q.topo = seen;
	q.fabric = &f;
	q.physical = f.topo;
	must(coll_make(&q, &m, &err), &err);
	if (m.time_ns * 100 > m.bound_ns * 102) {
		fail_msg("%lld ns of %lld", (long long)m.time_ns, (long long)m.bound_ns);
	}
	coll_made_fini(&m);
	topo_free(seen);
	topo_free(f.topo);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(never_above), cmocka_unit_test(behind_switches),
		cmocka_unit_test(as_flows_prove), cmocka_unit_test(boxes),
		cmocka_unit_test(of_the_flow), cmocka_unit_test(boxes_behind_a_switch),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
