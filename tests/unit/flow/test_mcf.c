/* SPDX-License-Identifier: Apache-2.0 */
/* All-to-all flows: known optima, certificates, linear programs as oracles,
 * failed links, limits. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>

#include "collective/flow/private.h"
#include "lib/base/alloc.h"
#include "lib/base/number/rng.h"
#include "lib/lp/lp.h"
#include "tests/unit/schedule/common.h"

static struct mcf_result solve(const struct topo *t, bool symmetry, double gap)
{
	struct mcf_options opt = { .gap = gap };
	struct mcf_result res;
	struct err err = { 0 };
	struct mcf *p;

	must(mcf_new(t, symmetry, &p, &err), &err);
	must(mcf_run(p, &opt, &res, &err), &err);
	mcf_free(p);
	if (res.stop != MCF_REACHED || res.gap > gap) {
		fail_msg("%d nodes: stopped by %d at [%.12g, %.12g]",
			 topo_n(t), res.stop, res.bound, res.congestion);
	}
	assert_true(res.bound <= res.congestion * (1 + 1e-12));
	return res;
}

/* The optimum lies between bound and congestion, with and without the use of
 * symmetry. */
static void assert_optimum(const char *expr, double rate)
{
	struct topo *t = graph_of(expr);

	for (int symmetry = 0; symmetry < 2; symmetry++) {
		struct mcf_result r = solve(t, symmetry, 1e-5);

		if (!(r.bound <= 1 / rate * (1 + 1e-9) &&
		      r.congestion >= 1 / rate * (1 - 1e-9))) {
			fail_msg("%s: 1/F = %.12g is not in [%.12g, %.12g]",
				 expr, 1 / rate, r.bound, r.congestion);
		}
	}
	topo_free(t);
}

/* What reaches every terminal from every source and stays there is one
 * unit. */
static void assert_demands_met(const struct mcf *p)
{
	for (int s = 0; s < mcf_sources(p); s++) {
		const double *flow = mcf_flow_of(p, s);

		for (int v = 0; v < p->net.n; v++) {
			double stays = 0;

			for (int a = 0; a < p->net.m; a++) {
				stays += p->net.dst[a] == v ? flow[a] : 0;
				stays -= p->net.src[a] == v ? flow[a] : 0;
			}
			if (v != p->source[s]) {
				assert_true(fabs(stays - p->net.terminal[v]) <
					    1e-9);
			}
		}
	}
}

static void test_known_optima(void **state)
{
	static const struct {
		const char *expr;
		double rate;
	} known[] = {
		{ "K(4,4)", 2 / 5. }, { "Hypercube(3)", 1 / 4. },
		{ "Hypercube(4)", 1 / 8. }, { "Hypercube(5)", 1 / 16. },
		{ "Torus(3,3)", 1 / 3. }, { "Torus(4,4)", 1 / 8. },
		{ "Torus(5,5)", 1 / 15. }, { "Torus(6,6)", 1 / 27. },
		{ "Torus(8,8)", 1 / 64. }, { "Torus(3,3,3)", 1 / 9. },
		{ "GenKautz(4,16)", 7 / 53. }, { "GenKautz(4,25)", 2 / 27. },
		{ "GenKautz(4,36)", 8 / 187. },
		{ "GenKautz(4,64)", 15 / 691. },
		{ "GenKautz(4,81)", 0.016818222667 },
		{ "GenKautz(4,100)", 14 / 1133. },
		{ "GenKautz(4,128)", 16 / 1857. },
		{ "K(2)", 1 }, { "UniRing(3,2)", 3 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		assert_optimum(known[i].expr, known[i].rate);
	}
}

/* One source stands for all, and its loads for all arcs. */
static void test_orbits(void **state)
{
	struct topo *t = graph_of("Torus(16,16,16)");
	struct mcf_options opt = { .gap = 0 };
	struct mcf_result res;
	struct err err = { 0 };
	struct mcf *p;

	(void)state;
	must(mcf_new(t, true, &p, &err), &err);
	assert_int_equal(mcf_sources(p), 1);
	assert_int_equal(p->orbits.n_classes, 1);
	must(mcf_run(p, &opt, &res, &err), &err);
	assert_int_equal(res.stop, MCF_REACHED);
	assert_true(res.congestion == 8192 && res.bound == 8192);
	mcf_free(p);
	topo_free(t);
}

/* The orbits of line digraphs, which come from smaller ones underneath, are those that a search
 * through all nodes finds: where demands are given, all alike, it is searched. */
static void test_line_digraphs(void **state)
{
	static const char *const exprs[] = {
		"GenKautz(4,64)", "GenKautz(4,512)", "GenKautz(2,48)", "GenKautz(3,54)",
		"DeBruijn(2,5)", "DeBruijn(3,3)", "Kautz(2,4)", "Kautz(3,2)", "L(K(3,3))",
		"L(Mesh(3,3))", "L(L(Ring(5)))", "GenKautz(4,100)", "GenKautz(4,30)", "Torus(4,4)",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(exprs) / sizeof(exprs[0]); i++) {
		struct topo *t = graph_of(exprs[i]);
		struct flow_orbits found = { 0 }, searched = { 0 };
		struct flow_demands d = { .n = topo_n(t), .largest = 1 };
		struct flow_net net;
		struct err err = { 0 };

		d.size = x_new((size_t)d.n * (size_t)d.n, sizeof(*d.size));
		for (int uv = 0; uv < d.n * d.n; uv++) {
			d.size[uv] = uv / d.n != uv % d.n;
		}
		must(flow_net_from(t, NULL, &net, &err), &err);
		flow_orbits_find(&net, NULL, true, NULL, &found);
		flow_orbits_find(&net, &d, true, NULL, &searched);
		assert_true(flow_orbits_check(&net, NULL, &found));
		assert_int_equal(found.n_classes, searched.n_classes);
		assert_memory_equal(found.orbit_of, searched.orbit_of,
				    (size_t)net.n * sizeof(*found.orbit_of));
		flow_orbits_fini(&found);
		flow_orbits_fini(&searched);
		flow_demands_fini(&d);
		flow_net_fini(&net);
		topo_free(t);
	}
}

/* 8192 sources fall into a few hundred orbits without a search. */
static void test_large_line_digraph(void **state)
{
	struct topo *t = graph_of("GenKautz(4,8192)");
	struct err err = { 0 };
	struct mcf *p;

	(void)state;
	must(mcf_new(t, true, &p, &err), &err);
	assert_int_equal(mcf_sources(p), 452);
	mcf_free(p);
	topo_free(t);
}

/* ---- oracles ---- */

struct rows {
	struct lp *lp;
	int *cap, *node;	/* of arcs; of commodities times nodes */
};

/* Rows: arcs (load <= U), then conservation of each commodity at each node.
 * demand(c, v) units of commodity c end at v. */
static void add_rows(struct rows *r, const struct topo *t, int commodities,
		     int (*demand)(int c, int v, int n))
{
	int n = topo_n(t);
	struct err err = { 0 };

	r->lp = lp_new();
	must(0, &err);
	r->cap = calloc((size_t)topo_m(t), sizeof(*r->cap));
	r->node = calloc((size_t)commodities * n, sizeof(*r->node));
	for (int a = 0; a < topo_m(t); a++) {
		must(lp_add_row(r->lp, LP_LE, 0, &r->cap[a], &err), &err);
	}
	for (int c = 0; c < commodities; c++) {
		for (int v = 0; v < n; v++) {
			must(lp_add_row(r->lp, LP_EQ, demand(c, v, n),
					&r->node[c * n + v], &err), &err);
		}
	}
}

static void add_columns(struct rows *r, const struct topo *t, int commodities)
{
	int n = topo_n(t), m = topo_m(t), col;
	double *minus = calloc((size_t)m, sizeof(*minus));
	struct err err = { 0 };

	for (int a = 0; a < m; a++) {
		minus[a] = -(double)topo_arc(t, a)->cap;
	}
	must(lp_add_col(r->lp, 1, 0, LP_INF, false, m, r->cap, minus, &col,
			&err), &err);
	free(minus);
	for (int c = 0; c < commodities; c++) {
		for (int a = 0; a < m; a++) {
			const struct topo_arc *arc = topo_arc(t, a);
			int rows[3] = {
				r->cap[a], r->node[c * n + arc->src],
				r->node[c * n + arc->dst],
			};
			double values[3] = { 1, -1, 1 };

			if (arc->src != arc->dst) {
				must(lp_add_col(r->lp, 0, 0, LP_INF, false, 3,
						rows, values, &col, &err),
				     &err);
			}
		}
	}
}

static double oracle(const struct topo *t, int commodities,
		     int (*demand)(int c, int v, int n))
{
	struct lp_result res;
	struct rows r;
	struct err err = { 0 };

	add_rows(&r, t, commodities, demand);
	add_columns(&r, t, commodities);
	must(lp_run(r.lp, NULL, &res, &err), &err);
	assert_int_equal(res.outcome, LP_OPTIMAL);
	lp_free(r.lp);
	free(r.cap);
	free(r.node);
	return res.objective;
}

static int grouped_demand(int c, int v, int n)
{
	return v == c ? 1 - n : 1;
}

static int link_demand(int c, int v, int n)
{
	int s = c / n, t = c % n;

	return s == t ? 0 : v == s ? -1 : v == t;
}

static void assert_agrees(const struct topo *t, bool links)
{
	int n = topo_n(t);
	double u = oracle(t, n, grouped_demand);
	struct mcf_result r = solve(t, false, 1e-6);

	if (links) {
		assert_true(fabs(oracle(t, n * n, link_demand) - u) <
			    1e-5 * u);
	}
	assert_true(r.bound < u * (1 + 1e-5));
	assert_true(r.congestion > u * (1 - 1e-5));
}

static void test_link_and_grouped_programs(void **state)
{
	static const char *const small[] = {
		"K(4,4)", "Torus(3,3)", "Hypercube(3)", "GenKautz(2,7)",
	};
	static const char *const large[] = {
		"GenKautz(4,16)", "GenKautz(3,20)", "Torus(3,3,2)",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(small) / sizeof(small[0]); i++) {
		struct topo *t = graph_of(small[i]);

		assert_agrees(t, true);
		topo_free(t);
	}
	for (size_t i = 0; i < sizeof(large) / sizeof(large[0]); i++) {
		struct topo *t = graph_of(large[i]);

		assert_agrees(t, false);
		topo_free(t);
	}
}

/* A ring both ways with chords; capacities by `cap`. */
static struct topo *chorded(int n, int64_t (*cap)(int i))
{
	struct err err = { 0 };
	struct topo *t;

	must(topo_new(n, &t, &err), &err);
	for (int u = 0; u < n; u++) {
		must(topo_add_arc(t, u, (u + 1) % n, cap(3 * u), 0, &err),
		     &err);
		must(topo_add_arc(t, (u + 1) % n, u, cap(3 * u + 1), 0, &err),
		     &err);
		must(topo_add_arc(t, u, (u * 3 + 2) % n, cap(3 * u + 2), 0,
				  &err), &err);
	}
	topo_freeze(t);
	return t;
}

static int64_t mixed(int i)
{
	return 1 + i * 7 % 5;
}

static int64_t twelve_orders(int i)
{
	static const int64_t caps[] = { 1, 1000, 1000000, 1000000000,
					1000000000000 };

	return caps[i * 7 % 5];
}

static void test_unequal_capacities(void **state)
{
	struct topo *t = chorded(11, mixed);

	(void)state;
	assert_agrees(t, false);
	topo_free(t);
	t = chorded(11, twelve_orders);
	solve(t, true, 1e-3);
	topo_free(t);
}

/* Hosts behind a switch: the switch has no demand, and the bottleneck is the
 * arc of a host. */
static void test_switch_has_no_demand(void **state)
{
	struct err err = { 0 };
	struct mcf_result r;
	struct topo *t;

	(void)state;
	must(topo_new(5, &t, &err), &err);
	topo_set_node(t, 4, TOPO_SWITCH, 0);
	for (int u = 0; u < 4; u++) {
		must(topo_add_arc(t, u, 4, u == 2 ? 1 : 2, 0, &err), &err);
		must(topo_add_arc(t, 4, u, 2, 0, &err), &err);
	}
	topo_freeze(t);
	r = solve(t, true, 1e-9);
	assert_true(fabs(r.congestion - 3) < 1e-6);
	topo_free(t);
}

static void test_failed_links(void **state)
{
	struct topo *t = graph_of("GenKautz(4,64)");
	bool *dropped = calloc((size_t)topo_m(t), sizeof(*dropped));
	struct mcf_options opt = { .gap = 1e-4 };
	struct mcf_result before, warm, cold;
	struct mcf *p, *q, *c;
	struct err err = { 0 };

	(void)state;
	must(mcf_new(t, true, &p, &err), &err);
	must(mcf_run(p, &opt, &before, &err), &err);
	dropped[5] = dropped[77] = true;
	must(mcf_without(p, t, dropped, &q, &err), &err);
	must(mcf_run(q, &opt, &warm, &err), &err);
	mcf_free(p);
	must(mcf_new(t, false, &p, &err), &err);
	must(mcf_without(p, t, dropped, &c, &err), &err);
	must(mcf_run(c, &opt, &cold, &err), &err);
	assert_true(warm.congestion > before.bound);
	/* What is left there, be it a mean of several, is such a flow. */
	flow_measure(q);
	assert_true(flow_congestion(q) < warm.congestion * (1 + 1e-3));
	assert_demands_met(q);
	assert_true(warm.bound <= cold.congestion * (1 + 1e-9));
	assert_true(cold.bound <= warm.congestion * (1 + 1e-9));
	mcf_free(c);
	mcf_free(q);
	for (int a = 0; a < topo_m(t); a++) {
		dropped[a] = topo_arc(t, a)->dst == 9;
	}
	assert_int_equal(mcf_without(p, t, dropped, &q, &err),
			 WEFT_EINFEASIBLE);
	assert_non_null(strstr(err.msg, "to node 9"));
	mcf_free(p);
	topo_free(t);
	free(dropped);
}

static void test_refused(void **state)
{
	static const int arcs[][2] = { { 0, 1 }, { 1, 2 }, { 2, 1 } };
	struct topo *t = graph_from(3, 3, arcs);
	struct err err = { 0 };
	struct mcf *p;

	(void)state;
	assert_int_equal(mcf_new(t, true, &p, &err), WEFT_EINFEASIBLE);
	assert_non_null(strstr(err.msg, "to node 0"));
	topo_free(t);
	t = graph_from(1, 0, NULL);
	assert_int_equal(mcf_new(t, true, &p, &err), WEFT_EINVAL);
	topo_free(t);
}

/* A limit still leaves a certificate, and the next run goes on from it. */
static void test_limits(void **state)
{
	volatile bool cancel = true;
	struct topo *t = graph_of("GenKautz(4,200)");
	struct mcf_options opt = { .gap = 1e-3, .cancel = &cancel };
	struct mcf_result first, second;
	struct err err = { 0 };
	struct mcf *p;

	(void)state;
	must(mcf_new(t, false, &p, &err), &err);
	must(mcf_run(p, &opt, &first, &err), &err);
	assert_int_equal(first.stop, MCF_CANCELED);
	assert_true(first.bound > 0 && first.bound <= first.congestion);
	opt.cancel = NULL;
	opt.max_passes = 3;
	must(mcf_run(p, &opt, &second, &err), &err);
	assert_int_equal(second.stop, MCF_PASSES);
	assert_true(second.bound >= first.bound);
	opt.deadline = deadline_in(1, NULL);
	must(mcf_run(p, &opt, &second, &err), &err);
	assert_int_equal(second.stop, MCF_TIME);
	opt = (struct mcf_options){ .gap = 1e-3 };
	must(mcf_run(p, &opt, &second, &err), &err);
	assert_int_equal(second.stop, MCF_REACHED);
	opt.gap = -1;
	assert_int_equal(mcf_run(p, &opt, &second, &err), WEFT_EINVAL);
	mcf_free(p);
	topo_free(t);
}

/* ---- rates without flows ---- */

/* Each unlike its like, some none at all. */
static struct flow_demands unlike_demands(int n)
{
	struct flow_demands d = { .n = n, .largest = 9 };

	d.size = x_new((size_t)n * (size_t)n, sizeof(*d.size));
	for (int u = 0; u < n; u++) {
		for (int v = 0; v < n; v++) {
			d.size[u * n + v] = u == v ? 0 : (u * 7 + v * v) % 10;
		}
	}
	return d;
}

/* 66 hosts in rings of 6, one host of each at a switch in the middle. */
static struct topo *rings_at_switch(void)
{
	struct err err = { 0 };
	struct topo *t;

	must(topo_new(67, &t, &err), &err);
	topo_set_node(t, 66, TOPO_SWITCH, 0);
	for (int u = 0; u < 66; u++) {
		int next = u % 6 == 5 ? u - 5 : u + 1;

		must(topo_add_arc(t, u, next, 20 + u % 5, 0, &err), &err);
		must(topo_add_arc(t, next, u, 20, 0, &err), &err);
		if (u % 6 == 0) {
			must(topo_add_arc(t, u, 66, 30 + u, 0, &err), &err);
			must(topo_add_arc(t, 66, u, 40, 0, &err), &err);
		}
	}
	topo_freeze(t);
	return t;
}

/* The optimum, which the other passes enclose, is between what is achieved and what is proven. */
static void assert_rate(struct topo *t, const struct flow_demands *d)
{
	struct mcf_options rough = { .gap = 0.008 }, fine = { .gap = 2e-4 };
	struct mcf_result rate, res;
	struct err err = { 0 };
	struct mcf *p;

	must(mcf_new_demands(t, true, d, &p, &err), &err);
	assert_true(mcf_sources(p) >= 64);
	must(mcf_run(p, &fine, &res, &err), &err);
	mcf_free(p);
	must(mcf_rate(t, d, &rough, &rate, &err), &err);
	assert_int_equal(rate.stop, MCF_REACHED);
	assert_true(rate.congestion <= rate.bound * 1.008);
	assert_true(rate.bound <= res.congestion * (1 + 1e-12));
	assert_true(rate.congestion >= res.bound * (1 - 1e-12));
	topo_free(t);
}

static void test_rate(void **state)
{
	struct flow_demands d = unlike_demands(66);

	(void)state;
	assert_rate(graph_of("Jellyfish(64,3,1)"), NULL);
	assert_rate(chorded(71, mixed), NULL);
	assert_rate(rings_at_switch(), NULL);
	assert_rate(rings_at_switch(), &d);
	flow_demands_fini(&d);
}

/* Loads are at least those of some flow if and only if they cost at whatever prices no less than
 * the cheapest paths of all pairs do (Iri 1971), the first trees no more where arcs cost alike. */
static void assert_loads_of_flow(const struct topo *t, struct rng *rng)
{
	struct err err = { 0 };
	struct flow_means *f;
	struct mcf *p;

	must(mcf_new(t, true, &p, &err), &err);
	for (int k = 0; k < p->orbits.n_classes; k++) {
		p->price[k] = 1;
	}
	f = flow_means_new(p);
	for (int i = 0; i < 12; i++) {
		flow_means_pass(f);
		p->rho = 0.3 / flow_congestion(p);
		for (int trial = 0; trial < 8; trial++) {
			double cost = 0, sum = 0;

			for (int k = 0; k < p->orbits.n_classes; k++) {
				double price = (double)(rng_below(rng, 1000) + 1) / 1000;

				p->mult[k] = pow(price, trial * trial);
				cost += p->mult[k] * p->load[k];
				sum += p->mult[k] * p->class_cap[k];
			}
			mcf_prove(p, p->mult);
			assert_true(cost >= p->last_bound * sum * (1 - 1e-9));
		}
	}
	flow_means_free(f);
	mcf_free(p);
}

static void test_loads_of_flow(void **state)
{
	static const char *const exprs[] = { "Jellyfish(12,3,1)", "GenKautz(3,23)", "Mesh(3,4)" };
	struct rng rng;

	(void)state;
	rng_seed(&rng, 5);
	for (int i = 0; i < 3; i++) {
		struct topo *t = graph_of(exprs[i]);

		assert_loads_of_flow(t, &rng);
		topo_free(t);
	}
}

/* A limit leaves what the first passes achieve and prove. */
static void test_rate_limits(void **state)
{
	volatile bool cancel = true;
	struct topo *t = graph_of("Jellyfish(64,3,1)");
	struct mcf_options opt = { .gap = 0.01, .cancel = &cancel };
	struct mcf_result res;
	struct err err = { 0 };

	(void)state;
	must(mcf_rate(t, NULL, &opt, &res, &err), &err);
	assert_int_equal(res.stop, MCF_CANCELED);
	assert_int_equal(res.passes, 1);
	assert_true(res.bound > 0 && res.congestion > res.bound * 1.01);
	opt.cancel = NULL;
	opt.max_passes = 2;
	must(mcf_rate(t, NULL, &opt, &res, &err), &err);
	assert_int_equal(res.stop, MCF_PASSES);
	assert_true(res.bound > 0 && res.congestion > res.bound * 1.01);
	topo_free(t);
}

static void test_deterministic(void **state)
{
	struct topo *t = graph_of("GenKautz(3,50)");
	struct mcf_result a = solve(t, true, 1e-4), b = solve(t, true, 1e-4);

	(void)state;
	assert_memory_equal(&a.congestion, &b.congestion, sizeof(double));
	assert_memory_equal(&a.bound, &b.bound, sizeof(double));
	assert_int_equal(a.passes, b.passes);
	topo_free(t);
}

static void test_degree_bound(void **state)
{
	(void)state;
	/* 4 at depth 1, 11 at depth 2. */
	assert_true(mcf_degree_bound(16, 4) == (4 + 2 * 11) / 4.);
	assert_true(mcf_degree_bound(2, 1) == 1);
	assert_true(mcf_degree_bound(4, 1) == 6);
}

/* A load that is no number is worse than all others, wherever it stands. */
static void test_no_number(void **state)
{
	struct topo *t = graph_of("Hypercube(3)");
	struct mcf_options opt = { .gap = 0.01 };
	struct mcf_result res;
	struct err err = { 0 };
	struct mcf *p;

	(void)state;
	must(mcf_new(t, false, &p, &err), &err);
	must(mcf_run(p, &opt, &res, &err), &err);
	for (int k = 0; k < p->orbits.n_classes; k += p->orbits.n_classes - 1) {
		double load = p->load[k];

		p->load[k] = NAN;
		assert_true(flow_congestion(p) == HUGE_VAL);
		p->load[k] = load;
		assert_true(flow_congestion(p) >= res.bound * (1 - 1e-12));
		assert_true(flow_congestion(p) < HUGE_VAL);
	}
	mcf_free(p);
	topo_free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_known_optima),
		cmocka_unit_test(test_orbits), cmocka_unit_test(test_line_digraphs),
		cmocka_unit_test(test_large_line_digraph),
		cmocka_unit_test(test_link_and_grouped_programs),
		cmocka_unit_test(test_unequal_capacities),
		cmocka_unit_test(test_switch_has_no_demand),
		cmocka_unit_test(test_failed_links),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_rate), cmocka_unit_test(test_loads_of_flow),
		cmocka_unit_test(test_rate_limits),
		cmocka_unit_test(test_deterministic),
		cmocka_unit_test(test_degree_bound), cmocka_unit_test(test_no_number),
	};

	return cmocka_run_group_tests_name("flow/mcf", tests, NULL,
					   NULL);
}
