/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Times of random schedules, embedded or not, compact or not, against a recomputation
 * in plain rationals that follows every message of every step by itself, and
 * against their lower bounds.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "lib/base/number/rng.h"
#include "tests/unit/schedule/common.h"

#define INSTANCES 400
#define MAX_NODES 16
#define MAX_ROUTES 3

static int below(struct rng *r, int n)
{
	return (int)rng_below(r, (uint64_t)n);
}

/* ---- instances ---- */

/* A cycle through all nodes in random order, and more arcs. */
static void add_arcs(struct rng *r, struct topo *t, int n, bool alike)
{
	struct err err = { 0 };
	int order[MAX_NODES];

	for (int i = 0; i < n; i++) {
		int j = below(r, i + 1);

		order[i] = order[j];
		order[j] = i;
	}
	for (int i = 0; i < n + below(r, 2 * n); i++) {
		int u = i < n ? order[i] : below(r, n);
		int v = i < n ? order[(i + 1) % n] : below(r, n);

		must(topo_add_arc(t, u, v, alike ? 1 : 1 + below(r, 3), alike ? 0 : below(r, 500),
				  &err), &err);
	}
}

static void add_limits(struct rng *r, struct topo *t, int m)
{
	struct err err = { 0 };

	for (int i = 0; i < below(r, 4); i++) {
		int32_t arcs[3];
		int n = 1 + below(r, 3);

		arcs[0] = below(r, m);
		for (int k = 1; k < n; k++) {
			arcs[k] = (arcs[k - 1] + 1) % m;
		}
		must(topo_add_limit(t, arcs, n < m ? n : 1, 1 + below(r, 3), &err), &err);
	}
}

static struct topo *random_graph(struct rng *r, int terminals, int switches, bool alike)
{
	struct err err = { 0 };
	struct topo *t;
	int n = terminals + switches;

	must(topo_new(n, &t, &err), &err);
	for (int u = terminals; u < n; u++) {
		topo_set_node(t, u, TOPO_SWITCH, 0);
	}
	add_arcs(r, t, n, alike);
	if (switches) {
		add_limits(r, t, n);
	}
	topo_freeze(t);
	return t;
}

/* A random simple path from `at` to `to`; the number of its arcs, 0: none. */
static int walk(struct rng *r, const struct topo *t, int at, int to, bool *seen, int32_t *hops)
{
	int first, degree = topo_out(t, at, &first), turn = below(r, degree ? degree : 1);

	seen[at] = true;
	for (int i = 0; i < degree; i++) {
		int arc = first + (i + turn) % degree, v = topo_arc(t, arc)->dst, more;

		if (seen[v]) {
			continue;
		}
		hops[0] = arc;
		more = v == to ? 1 : walk(r, t, v, to, seen, hops + 1);
		if (more) {
			return v == to ? 1 : more + 1;
		}
	}
	return 0;
}

static void add_routes(struct rng *r, struct coll_sched *s, int arc)
{
	const struct topo_arc *a = topo_arc(coll_topo(s), arc);
	struct err err = { 0 };

	if (a->src == a->dst) {
		return;
	}
	for (int i = 0; i < 1 + below(r, MAX_ROUTES); i++) {
		bool seen[MAX_NODES] = { false };
		int32_t hops[MAX_NODES];
		struct coll_arc_route route = { arc, 1 + below(r, 5), hops, 0 };

		route.n = walk(r, coll_physical(s), a->src, a->dst, seen, hops);
		assert_true(route.n > 0);
		must(coll_add_route(s, &route, &err), &err);
	}
}

/* Embeds s, all arcs of an orbit alike, in a digraph that its group keeps. */
static void embed(struct rng *r, struct coll_sched *s, struct topo *physical)
{
	struct err err = { 0 };
	struct topo_action *orbits;

	must(coll_set_physical(s, physical, COLL_ROUTING_EXPLICIT, 0, &err), &err);
	must(topo_action_new(coll_topo(s), coll_group(s), &orbits, &err), &err);
	for (int o = 0; o < topo_action_orbits(orbits); o++) {
		add_routes(r, s, topo_action_first(orbits, o));
	}
	topo_action_free(orbits);
	finish(s);
}

static struct coll_sched *random_bfb(struct rng *r, int n)
{
	enum coll_kind kind = (enum coll_kind)below(r, COLL_ALLREDUCE + 1);
	struct err err = { 0 };
	struct coll_sched *s;

	must(coll_bfb(kind, random_graph(r, n, 0, below(r, 2)), &s, &err), &err);
	return s;
}

static struct coll_sched *random_paths(struct rng *r, int *n)
{
	static const char *const exprs[] = { "Ring(5)", "K(4)", "Mesh(2,3)", "GenKautz(2,7)" };
	int i = below(r, 4);

	*n = (int[]){ 5, 4, 6, 7 }[i];
	return paths(below(r, 2) ? COLL_ALLTOALL : COLL_BROADCAST, exprs[i], 1 + below(r, 3), 0);
}

/* A circulant in a circulant, compact. */
static struct coll_sched *random_symmetric(struct rng *r)
{
	struct err err = { 0 };
	struct coll_sched *s;
	char logical[64], physical[64];
	int n = 5 + below(r, 6);

	snprintf(logical, sizeof(logical), "C(%d,{1,%d})", n, 2 + below(r, n / 2 - 1));
	snprintf(physical, sizeof(physical), "Lat(C(%d,{1,%d}),%d)", n, 2 + below(r, n / 2 - 1),
		 below(r, 500));
	must(coll_bfb((enum coll_kind)below(r, COLL_ALLREDUCE + 1), graph_of(logical), &s, &err),
	     &err);
	embed(r, s, graph_of(physical));
	return s;
}

static struct coll_sched *random_sched(struct rng *r)
{
	int n = 3 + below(r, 6), how = below(r, 4);
	struct coll_sched *s;

	if (how == 0) {
		return random_symmetric(r);
	}
	s = how == 1 ? random_paths(r, &n) : random_bfb(r, n);
	if (how != 2) {
		struct coll_sched *flat = unfolded(s);

		coll_free(s);
		s = flat;
		embed(r, s, random_graph(r, n, below(r, 4), false));
	}
	return s;
}

static int64_t sometimes(struct rng *r, int64_t most)
{
	return below(r, 3) ? (int64_t)rng_below(r, (uint64_t)most) : 0;
}

/* ---- the same by hand ---- */

/* One step: what every physical arc carries, in chunks, and its messages. */
struct hand {
	const struct coll_sched *s;	/* not compact */
	const struct coll_cost *c;
	mpq_t *load, chunk_ns;
	int *messages;
	bool *used;		/* logical arcs */
};

static int64_t weight_of(const struct coll_sched *s, int arc)
{
	int64_t sum = 0;

	for (int64_t i = 0; i < coll_n_arc_routes(s); i++) {
		struct coll_arc_route route = coll_arc_route(s, i);

		sum += route.arc == arc ? route.weight : 0;
	}
	return sum;
}

/* The i-th route, or the i-th arc as its own. */
static struct coll_arc_route route_of(const struct coll_sched *s, int64_t i, int32_t *self)
{
	*self = (int32_t)i;
	return coll_is_embedded(s) ? coll_arc_route(s, i)
				   : (struct coll_arc_route){ *self, 1, self, 1 };
}

static int64_t n_routes(const struct coll_sched *s)
{
	return coll_is_embedded(s) ? coll_n_arc_routes(s) : topo_m(coll_topo(s));
}

static void carry(struct hand *h, const struct coll_xfer *x)
{
	int64_t total = coll_is_embedded(h->s) ? weight_of(h->s, x->arc) : 1;
	mpq_t part;

	mpq_init(part);
	for (int64_t i = 0; i < n_routes(h->s); i++) {
		int32_t self;
		struct coll_arc_route route = route_of(h->s, i, &self);

		if (route.arc != x->arc) {
			continue;
		}
		rat_set(part, (int64_t)(x->last - x->first + 1) * route.weight, total);
		for (int k = 0; k < route.n; k++) {
			mpq_add(h->load[route.hops[k]], h->load[route.hops[k]], part);
		}
		h->messages[route.hops[0]] += !h->used[x->arc];
	}
	h->used[x->arc] = true;
	mpq_clear(part);
}

static void take_larger(mpq_t most, const mpq_t sum, int64_t cap)
{
	mpq_t q;

	mpq_init(q);
	rat_set(q, 1, cap);
	mpq_mul(q, q, sum);
	if (mpq_cmp(q, most) > 0) {
		mpq_set(most, q);
	}
	mpq_clear(q);
}

static void add_limits_of(const struct hand *h, int arc, mpq_t most)
{
	const struct topo *t = coll_physical(h->s);
	mpq_t sum;

	mpq_init(sum);
	for (int l = 0; l < topo_n_limits(t); l++) {
		const struct topo_limit *limit = topo_limit(t, l);
		bool in = false;

		mpq_set_ui(sum, 0, 1);
		for (int i = 0; i < limit->n; i++) {
			in |= limit->arcs[i] == arc;
			mpq_add(sum, sum, h->load[limit->arcs[i]]);
		}
		if (in) {
			take_larger(most, sum, limit->cap);
		}
	}
	mpq_clear(sum);
}

static void route_time(const struct hand *h, const struct coll_arc_route *route, mpq_t time)
{
	mpq_t part;

	mpq_init(part);
	mpq_set_ui(time, 0, 1);
	for (int k = 0; k < route->n; k++) {
		take_larger(time, h->load[route->hops[k]],
			    topo_arc(coll_physical(h->s), route->hops[k])->cap);
		add_limits_of(h, route->hops[k], time);
	}
	mpq_mul(time, time, h->chunk_ns);
	for (int k = 0; k < route->n; k++) {
		rat_set(part, topo_arc(coll_physical(h->s), route->hops[k])->latency_ns +
				      h->c->hop_ns, 1);
		mpq_add(time, time, part);
	}
	rat_set(part, h->c->message_ns * h->messages[route->hops[0]], 1);
	mpq_add(time, time, part);
	mpq_clear(part);
}

static void add_step(struct hand *h, int step, mpq_t sum)
{
	int64_t n;
	const struct coll_xfer *x = coll_xfers(h->s, &n);
	mpq_t most, time;

	mpq_inits(most, time, NULL);
	for (int a = 0; a < topo_m(coll_physical(h->s)); a++) {
		mpq_set_ui(h->load[a], 0, 1);
		h->messages[a] = 0;
	}
	memset(h->used, 0, (size_t)topo_m(coll_topo(h->s)) * sizeof(*h->used));
	for (int64_t i = 0; i < n; i++) {
		if (x[i].step == step) {
			carry(h, &x[i]);
		}
	}
	for (int64_t i = 0; i < n_routes(h->s); i++) {
		int32_t self;
		struct coll_arc_route route = route_of(h->s, i, &self);

		if (h->used[route.arc]) {
			route_time(h, &route, time);
			take_larger(most, time, 1);
		}
	}
	mpq_add(sum, sum, most);
	mpq_clears(most, time, NULL);
}

static int64_t time_by_hand(const struct coll_sched *s, const struct coll_cost *c)
{
	int m = topo_m(coll_physical(s));
	struct hand h = { .s = s, .c = c, .load = malloc((size_t)m * sizeof(*h.load)),
			  .messages = calloc((size_t)m, sizeof(int)),
			  .used = calloc((size_t)topo_m(coll_topo(s)), sizeof(bool)) };
	mpq_t sum;
	mpz_t whole;
	int64_t ns;

	mpq_inits(h.chunk_ns, sum, NULL);
	mpz_init(whole);
	for (int a = 0; a < m; a++) {
		mpq_init(h.load[a]);
	}
	rat_set(h.chunk_ns, c->size_bytes * 8, (int64_t)coll_ranks(s) * coll_chunks(s));
	rat_set(sum, 1000000000, c->link_bps);
	mpq_mul(h.chunk_ns, h.chunk_ns, sum);
	rat_set(sum, c->alpha_ns * coll_steps(s), 1);
	for (int step = 0; step < coll_steps(s); step++) {
		add_step(&h, step, sum);
	}
	mpz_cdiv_q(whole, mpq_numref(sum), mpq_denref(sum));
	ns = mpz_get_si(whole);
	for (int a = 0; a < m; a++) {
		mpq_clear(h.load[a]);
	}
	mpq_clears(h.chunk_ns, sum, NULL);
	mpz_clear(whole);
	free(h.load);
	free(h.messages);
	free(h.used);
	return ns;
}

/* ---- tests ---- */

/* Steps add up to the whole, compact and written out. */
static void assert_steps(const struct coll_sched *s, const struct coll_sched *flat,
			 const struct coll_cost *c, int64_t time_ns)
{
	int n = coll_steps(s);
	double *step_ns = calloc(2 * (size_t)n + 1, sizeof(*step_ns)), sum = 0;
	struct err err = { 0 };

	must(coll_step_times(s, c, step_ns, &err), &err);
	must(coll_step_times(flat, c, step_ns + n, &err), &err);
	for (int i = 0; i < n; i++) {
		assert_true(step_ns[i] == step_ns[n + i]);
		sum += step_ns[i];
	}
	assert_true(sum > (double)time_ns * (1 - 1e-12) - 1.01);
	assert_true(sum < (double)time_ns * (1 + 1e-12) + 0.01);
	free(step_ns);
}

static void check(struct rng *r, struct coll_sched *s)
{
	struct coll_cost c = {
		.alpha_ns = sometimes(r, 5000), .hop_ns = sometimes(r, 1000),
		.message_ns = sometimes(r, 1000), .size_bytes = sometimes(r, 1000000),
		.link_bps = 1000000 + (int64_t)rng_below(r, 100000000000),
	};
	struct coll_sched *flat = unfolded(s);
	struct coll_report report;
	struct err err = { 0 };
	int64_t time_ns, bound_ns, flat_ns, flat_bound;

	coll_report_init(&report);
	must(coll_verify(s, &report, &err), &err);
	must(coll_time(s, &report, &c, &time_ns, &bound_ns, &err), &err);
	assert_int_equal(time_ns, time_by_hand(flat, &c));
	assert_true(bound_ns <= time_ns);
	assert_steps(s, flat, &c, time_ns);
	must(coll_verify(flat, &report, &err), &err);
	must(coll_time(flat, &report, &c, &flat_ns, &flat_bound, &err), &err);
	assert_int_equal(flat_ns, time_ns);
	assert_int_equal(flat_bound, bound_ns);
	coll_report_fini(&report);
	coll_free(flat);
}

static void test_random(void **state)
{
	int compact = 0, embedded = 0, limited = 0;
	struct rng r;

	(void)state;
	rng_seed(&r, 15);
	for (int i = 0; i < INSTANCES; i++) {
		struct coll_sched *s = random_sched(&r);

		check(&r, s);
		compact += coll_group(s) != NULL;
		embedded += coll_is_embedded(s);
		limited += topo_n_limits(coll_physical(s)) > 0;
		coll_free(s);
	}
	assert_true(compact > 20);
	assert_true(embedded > 100);
	assert_true(limited > 50);
}

/* A group of the terminals only is not read beyond its end: every arc needs its own routes. */
static void test_group_too_small(void **state)
{
	struct coll_sched *s = bfb(COLL_ALLGATHER, "Ring(6)");
	struct coll_arc_route r = { .weight = 1, .n = 2 };
	struct err err = { 0 };
	int32_t hops[2];

	(void)state;
	assert_non_null(coll_group(s));
	must(coll_set_physical(s, graph_of("Star(6)"), COLL_ROUTING_EXPLICIT, 0, &err), &err);
	r.hops = hops;
	for (; r.arc < 12; r.arc++) {
		const struct topo_arc *a = topo_arc(coll_topo(s), r.arc);

		hops[0] = topo_find_arc(coll_physical(s), a->src, 6);
		hops[1] = topo_find_arc(coll_physical(s), 6, a->dst);
		if (r.arc == 11) {
			assert_int_equal(coll_finish(s, &err), WEFT_EINVAL);
			assert_non_null(strstr(err.msg, "arc 11 ("));
			assert_non_null(strstr(err.msg, "carries and has no route"));
		}
		must(coll_add_route(s, &r, &err), &err);
	}
	finish(s);
	must(coll_verify(s, NULL, &err), &err);
	coll_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random),
		cmocka_unit_test(test_group_too_small),
	};

	return cmocka_run_group_tests_name("schedule/cost_random", tests, NULL, NULL);
}
