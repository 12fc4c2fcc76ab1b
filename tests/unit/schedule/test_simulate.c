/* SPDX-License-Identifier: Apache-2.0 */
/* Simulated schedules: against the cost model, and against plain replays. */
#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "lib/base/number/rng.h"
#include "tests/unit/schedule/common.h"

static const char *const graphs[] = {
	"K(3)", "K(2,3)", "Ring(7)", "UniRing(2,5)", "Torus(3,4)", "Mesh(3,3)", "Hypercube(4)",
	"C(9,{1,4})", "DiC(11,{1,3})", "GenKautz(2,11)", "GenKautz(3,16)", "Kautz(2,2)",
	"DBJMod(2,3)", "Lat(Ring(5),700)", "Cap(Torus(3,3),3)", "Prod(Ring(3),K(3))",
	"Xpander(3,3,1)", "Jellyfish(10,3,2)",
};

#define GRAPHS (sizeof(graphs) / sizeof(graphs[0]))

static const enum coll_kind kinds[] = {
	COLL_ALLGATHER, COLL_REDUCE_SCATTER, COLL_ALLREDUCE, COLL_ALLTOALL,
};

#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

static struct coll_sched *make(enum coll_kind kind, const char *expr)
{
	return kind == COLL_ALLTOALL ? paths(kind, expr, 2, 0) : bfb(kind, expr);
}

static struct coll_sched *unfold(const struct coll_sched *s)
{
	struct coll_sched *all;
	struct err err = { 0 };

	must(coll_unfold(s, &all, &err), &err);
	return all;
}

/* An equal schedule, written out, whose arcs have capacities 1..3 and latencies of their own. */
static struct coll_sched *roughen(const struct coll_sched *s, uint64_t seed)
{
	const struct topo *t = coll_topo(s);
	const struct coll_xfer *x;
	struct err err = { 0 };
	struct coll_sched *out, *all = unfold(s);
	struct topo *copy;
	struct rng rng;
	int64_t n;

	rng_seed(&rng, seed);
	must(topo_new(topo_n(t), &copy, &err), &err);
	for (int i = 0; i < topo_m(t); i++) {
		const struct topo_arc *a = topo_arc(t, i);

		must(topo_add_arc(copy, a->src, a->dst, 1 + (int64_t)rng_below(&rng, 3),
				  (int64_t)rng_below(&rng, 5000), &err), &err);
	}
	topo_freeze(copy);
	must(coll_new(coll_kind_of(s), copy, coll_chunks(s), 0, coll_root(s), &out, &err), &err);
	x = coll_xfers(all, &n);
	for (int64_t i = 0; i < n; i++) {
		must(coll_add(out, &x[i], &err), &err);
	}
	finish(out);
	coll_free(all);
	return out;
}

static struct coll_sim simulate(const struct coll_sched *s, const struct coll_sim_options *o)
{
	struct coll_sim sim = { 0 };
	struct err err = { 0 };

	must(coll_simulate(s, o, &sim, NULL, &err), &err);
	return sim;
}

static double time_of(const struct coll_sched *s, struct coll_sim_options o, bool asynchronous)
{
	struct coll_sim sim;
	double time;

	o.asynchronous = asynchronous;
	sim = simulate(s, &o);
	time = sim.time_ns;
	coll_sim_fini(&sim);
	return time;
}

static void planned(const struct coll_sched *s, const struct coll_cost *c, int64_t *time,
		    int64_t *bound)
{
	struct coll_report r;
	struct err err = { 0 };

	coll_report_init(&r);
	must(coll_verify(s, &r, &err), &err);
	must(coll_time(s, &r, c, time, bound, &err), &err);
	coll_report_fini(&r);
}

/* ---- asynchronously, by the definition ---- */

/* What comes to `node` of the shard (and destination) of x before its step: when
 * the last of it has come. O(transfers). */
static double arrival(const struct coll_sched *s, const double *end, const struct coll_xfer *x)
{
	int64_t n;
	const struct coll_xfer *y = coll_xfers(s, &n);
	double last = 0;

	for (int64_t i = 0; i < n && y[i].step < x->step; i++) {
		if (topo_arc(coll_topo(s), y[i].arc)->dst == topo_arc(coll_topo(s), x->arc)->src &&
		    y[i].origin == x->origin && y[i].dest == x->dest && y[i].first <= x->last &&
		    y[i].last >= x->first) {
			last = fmax(last, end[i]);
		}
	}
	return last;
}

/* Transfers in order; those of an arc in a step are one message. */
static double plain_asynchronous(const struct coll_sched *s, const struct coll_sim_options *o)
{
	int64_t n, to;
	const struct coll_xfer *x = coll_xfers(s, &n);
	double *end = calloc((size_t)n + 1, sizeof(*end)), last = 0;
	double *free_at = calloc((size_t)topo_m(coll_topo(s)) + 1, sizeof(*free_at));
	double chunk = (double)o->cost.size_bytes * 8e9 / (double)o->cost.link_bps /
		       coll_ranks(s) / coll_chunks(s);

	for (int64_t i = 0; i < n; i = to) {
		const struct topo_arc *a = topo_arc(coll_topo(s), x[i].arc);
		double begin = free_at[x[i].arc], work = 0;

		for (to = i; to < n && x[to].step == x[i].step && x[to].arc == x[i].arc; to++) {
			begin = fmax(begin, arrival(s, end, &x[to]));
			work += chunk * (x[to].last - x[to].first + 1);
		}
		begin += (double)(o->cost.alpha_ns + o->cost.message_ns + o->cost.hop_ns +
				  a->latency_ns);
		free_at[x[i].arc] = begin + work / (double)a->cap;
		for (int64_t k = i; k < to; k++) {
			end[k] = free_at[x[i].arc];
		}
		last = fmax(last, free_at[x[i].arc]);
	}
	free(free_at);
	free(end);
	return last;
}

static void assert_near(double a, double b)
{
	if (fabs(a - b) > 1e-9 * (fabs(a) + fabs(b))) {
		fail_msg("%.15g is not %.15g", a, b);
	}
}

static void assert_alike(const struct coll_sched *s, const struct coll_sched *all,
			 struct coll_sim_options o)
{
	struct coll_sim a = simulate(s, &o), b = simulate(all, &o);

	assert_near(a.time_ns, b.time_ns);
	assert_near(a.utilisation, b.utilisation);
	assert_int_equal(a.n_steps, b.n_steps);
	for (int i = 0; i < a.n_steps; i++) {
		assert_near(a.steps[i].begin_ns, b.steps[i].begin_ns);
		assert_near(a.steps[i].end_ns, b.steps[i].end_ns);
		assert_int_equal(a.steps[i].messages, b.steps[i].messages);
	}
	assert_near(a.loads[0].share, b.loads[0].share);
	coll_sim_fini(&a);
	coll_sim_fini(&b);
}

/* Where arcs share nothing, lockstep is the cost model, and asynchronous lies
 * between the bound and lockstep. Compact and written out are alike. */
static void check(const struct coll_sched *s)
{
	struct coll_sim_options o = { .cost = { 1000, 30, 500, 0, 3000000000, 100000 } };
	struct coll_sched *all = unfold(s);
	double lockstep, asynchronous;
	int64_t time, bound;

	planned(s, &o.cost, &time, &bound);
	lockstep = time_of(s, o, false);
	assert_true(lockstep <= (double)time + 1e-6 && lockstep > (double)time - 1 - 1e-6);
	asynchronous = time_of(s, o, true);
	assert_true(asynchronous >= (double)bound - 1);
	assert_true(asynchronous <= lockstep * (1 + 1e-9));
	assert_near(asynchronous, plain_asynchronous(all, &o));
	assert_alike(s, all, o);
	o.asynchronous = true;
	assert_alike(s, all, o);
	coll_free(all);
}

static void test_against_cost(void **state)
{
	(void)state;
	for (size_t g = 0; g < GRAPHS; g++) {
		for (size_t k = 0; k < KINDS; k++) {
			struct coll_sched *s = make(kinds[k], graphs[g]);
			struct coll_sched *rough = roughen(s, g * KINDS + k);

			check(s);
			check(rough);
			coll_free(rough);
			coll_free(s);
		}
	}
}

/* Steps are alpha each, and add up; what a message does not need it does not
 * wait for. */
static void test_steps(void **state)
{
	struct coll_sim_options o = { .cost = { 1000, 0, 0, 0, 8000000000, 3000 } };
	struct coll_sched *s = empty(COLL_BROADCAST, "K(3)", 1);
	struct coll_sim sim;

	(void)state;
	for (int shard = 0; shard < 3; shard++) {
		send_part(s, 0, 0, 1, shard, 0, 0, COLL_OP_COPY);
	}
	send_part(s, 2, 1, 2, 0, 0, 0, COLL_OP_COPY);
	send_part(s, 2, 0, 2, 1, 0, 0, COLL_OP_COPY);
	send_part(s, 3, 0, 2, 2, 0, 0, COLL_OP_COPY);
	finish(s);
	sim = simulate(s, &o);
	assert_int_equal(sim.n_steps, 4);
	assert_near(sim.time_ns, 4000 + 3000 + 1000 + 1000);
	assert_int_equal(sim.steps[0].messages, 1);
	assert_int_equal(sim.steps[1].messages, 0);
	assert_int_equal(sim.steps[2].messages, 2);
	assert_near(sim.steps[2].begin_ns, 5000);
	assert_near(sim.steps[2].end_ns, 7000);
	assert_int_equal(sim.n_loads, 3);
	assert_int_equal(sim.loads[0].number, topo_find_arc(coll_topo(s), 0, 1));
	assert_near(sim.loads[0].share, 3000 / sim.time_ns);
	assert_near(sim.utilisation, 6000 / sim.time_ns / 6);
	coll_sim_fini(&sim);
	o.asynchronous = true;
	sim = simulate(s, &o);
	assert_near(sim.time_ns, 4000 + 2000);	/* 1 to 2 waits for 0 to 1 */
	assert_near(sim.steps[2].begin_ns, 0);	/* from the root at once */
	assert_near(sim.steps[3].end_ns, 4000);
	coll_sim_fini(&sim);
	coll_free(s);
}

/* ---- shared limits ---- */

/* K(3) where the arcs out of node 0 share a capacity of 1. */
static struct coll_sched *limited(int chunks)
{
	static const int arcs[][2] = { { 0, 1 }, { 0, 2 }, { 1, 0 }, { 1, 2 }, { 2, 0 }, { 2, 1 } };
	static const int32_t out[] = { 0, 1 };
	struct err err = { 0 };
	struct coll_sched *s;
	struct topo *t;

	must(topo_new(3, &t, &err), &err);
	for (int i = 0; i < 6; i++) {
		must(topo_add_arc(t, arcs[i][0], arcs[i][1], 1, 0, &err), &err);
	}
	must(topo_add_limit(t, out, 2, 1, &err), &err);
	topo_freeze(t);
	must(coll_new(COLL_BROADCAST, t, chunks, 2, 0, &s, &err), &err);
	return s;
}

static void test_limit(void **state)
{
	struct coll_sim_options o = { .cost = { 0, 0, 0, 0, 8000000000, 3000 } };
	struct coll_sched *s = limited(1);
	struct coll_sim sim;

	(void)state;
	send_part(s, 0, 0, 1, 0, 0, 0, COLL_OP_COPY);
	send_part(s, 0, 0, 1, 1, 0, 0, COLL_OP_COPY);
	send_part(s, 0, 0, 2, 2, 0, 0, COLL_OP_COPY);
	finish(s);
	sim = simulate(s, &o);
	/* Halves until the one chunk is through at 2000, then alone. */
	assert_near(sim.time_ns, 3000);
	assert_true(sim.loads[0].is_limit);
	assert_int_equal(sim.loads[0].number, 0);
	assert_near(sim.loads[0].share, 1);
	assert_near(sim.loads[1].share, 2.0 / 3);
	coll_sim_fini(&sim);
	coll_free(s);
}

/* ---- routes ---- */

#define MAX_ROUTE 64

/* The arcs of a random shortest path, from its end. */
static int random_path(const struct topo *t, int from, int to, struct rng *rng, int32_t *hops)
{
	int32_t dist[128];
	int n, at = to;

	topo_bfs(t, from, dist);
	n = dist[to];
	for (int i = n - 1; i >= 0; i--) {
		const int32_t *in;
		int count = topo_in(t, at, &in), k;

		do {
			k = (int)rng_below(rng, (uint64_t)count);
		} while (dist[topo_arc(t, in[k])->src] != i);
		hops[i] = in[k];
		at = topo_arc(t, in[k])->src;
	}
	return n;
}

static void add_routes(struct coll_sched *s, int arc, int n, struct rng *rng)
{
	const struct topo_arc *a = topo_arc(coll_topo(s), arc);
	int32_t hops[MAX_ROUTE];
	struct err err = { 0 };

	for (int i = 0; i < n; i++) {
		struct coll_arc_route r = { .arc = arc, .hops = hops,
					    .weight = 1 + (int32_t)rng_below(rng, 3) };

		r.n = random_path(coll_physical(s), a->src, a->dst, rng, hops);
		must(coll_add_route(s, &r, &err), &err);
	}
}

/* Every rank sends all others its shard, in random steps: one chunk each over
 * one route (equal), or any part of it over some. */
static struct coll_sched *scattered(const char *physical, bool equal, uint64_t seed)
{
	struct topo *t = graph_of(physical);
	struct coll_sched *s;
	struct err err = { 0 };
	struct rng rng;
	char k[32];

	rng_seed(&rng, seed);
	snprintf(k, sizeof(k), "K(%d)", topo_n(t));
	must(coll_new(COLL_ALLGATHER, graph_of(k), equal ? 1 : 8, 0, 0, &s, &err), &err);
	must(coll_set_physical(s, t, COLL_ROUTING_EXPLICIT, 0, &err), &err);
	for (int a = 0; a < topo_m(coll_topo(s)); a++) {
		int src = topo_arc(coll_topo(s), a)->src;
		struct coll_xfer x = { (int)rng_below(&rng, 4), a, src, COLL_NO_DEST, 0,
				       equal ? 0 : (int)rng_below(&rng, 8), COLL_OP_COPY, 0 };

		add_routes(s, a, equal ? 1 : 1 + (int)rng_below(&rng, 3), &rng);
		must(coll_add(s, &x, &err), &err);
	}
	finish(s);
	return s;
}

static int64_t planned_of(const struct coll_sched *s, const struct coll_cost *c)
{
	struct coll_report r;
	struct err err = { 0 };
	int64_t ns;

	coll_report_init(&r);
	must(coll_time(s, &r, c, &ns, NULL, &err), &err);
	coll_report_fini(&r);
	return ns;
}

/* The fullest arc has to carry what it has, and where all have as much, never
 * waits. Else it may: some schedule must show it. */
static void test_routes(void **state)
{
	static const char *const physical[] = { "Ring(6)", "Mesh(3,3)", "GenKautz(2,8)",
						"Torus(3,4)", "Cap(Hypercube(3),2)" };
	struct coll_sim_options o = { .cost = { 1000, 0, 0, 0, 1000000000, 90000 } };
	int slower = 0;

	(void)state;
	for (int seed = 0; seed < 100; seed++) {
		struct coll_sched *s = scattered(physical[seed % 5], true, (uint64_t)seed);
		double time = time_of(s, o, false);
		struct coll_cost late = o.cost;

		assert_near(ceil(time - 1e-6), (double)planned_of(s, &o.cost));
		late.hop_ns = 700;
		late.message_ns = 90;
		time = time_of(s, (struct coll_sim_options){ .cost = late }, false);
		assert_true(time <= (double)planned_of(s, &late) + 1e-6);
		coll_free(s);

		s = scattered(physical[seed % 5], false, (uint64_t)seed);
		time = time_of(s, o, false);
		assert_true(time > (double)planned_of(s, &o.cost) - 1 - 1e-6);
		slower += time > (double)planned_of(s, &o.cost) * 1.001;
		coll_free(s);
	}
	assert_true(slower > 0);
}

/* ---- compact schedules with routes and limits ---- */

/* A ring both ways whose nodes share a limit for what they send, and a pair of
 * switches in series that all are on, which share another one for what they get;
 * every node's two links to them a third. */
static struct topo *ring_with_switches(int n)
{
	struct err err = { 0 };
	struct topo *t;
	int32_t up[32];

	must(topo_new(n + 2, &t, &err), &err);
	topo_set_node(t, n, TOPO_SWITCH, 0);
	topo_set_node(t, n + 1, TOPO_SWITCH, 0);
	for (int u = 0; u < n; u++) {
		const int32_t sent[] = { 4 * u, 4 * u + 1, 4 * u + 2 };
		const int32_t on_switch[] = { 4 * u + 2, 4 * u + 3 };

		must(topo_add_arc(t, u, (u + 1) % n, 2, 10, &err), &err);
		must(topo_add_arc(t, u, (u + n - 1) % n, 2, 10, &err), &err);
		must(topo_add_arc(t, u, n, 3, 500, &err), &err);
		must(topo_add_arc(t, n + 1, u, 3, 0, &err), &err);
		must(topo_add_limit(t, sent, 3, 4, &err), &err);
		must(topo_add_limit(t, on_switch, 2, 4, &err), &err);
		up[u] = 4 * u + 2;
	}
	must(topo_add_arc(t, n, n + 1, 2 * n, 0, &err), &err);
	must(topo_add_limit(t, up, n, n, &err), &err);
	topo_freeze(t);
	return t;
}

static struct topo_group *rotation(int n)
{
	int32_t image[32];
	struct topo_group *g;
	struct err err = { 0 };

	for (int u = 0; u < n; u++) {
		image[u] = (u + 1) % n;
	}
	image[n] = n;
	image[n + 1] = n + 1;
	must(topo_group_new(n + 2, n, 1, &n, image, &g, &err), &err);
	return g;
}

/* Anything that moves shards over a circulant, over two or three routes each. It
 * is no collective. */
static struct coll_sched *random_compact(int n, struct rng *rng)
{
	static const enum coll_op ops[] = { COLL_OP_COPY, COLL_OP_REDUCE };
	struct coll_sched *s;
	struct err err = { 0 };
	char c[32];
	int first;

	snprintf(c, sizeof(c), "C(%d,{2,3})", n);
	must(coll_new(COLL_ALLREDUCE, graph_of(c), 6, 0, 0, &s, &err), &err);
	must(coll_set_group(s, rotation(n), &err), &err);
	must(coll_set_physical(s, ring_with_switches(n), COLL_ROUTING_EXPLICIT, 0, &err), &err);
	for (int a = 0, out = topo_out(coll_topo(s), 0, &first); a < out; a++) {
		add_routes(s, first + a, 2 + (int)rng_below(rng, 2), rng);
	}
	for (int i = 0; i < 40; i++) {
		struct coll_xfer x = { (int)rng_below(rng, 5),
				       (int)rng_below(rng, (uint64_t)topo_m(coll_topo(s))),
				       (int)rng_below(rng, (uint64_t)n), COLL_NO_DEST, 0, 0,
				       ops[rng_below(rng, 2)], 0 };

		x.first = (int)rng_below(rng, 6);
		x.last = x.first + (int)rng_below(rng, (uint64_t)(6 - x.first));
		must(coll_add(s, &x, &err), &err);
	}
	finish(s);
	return s;
}

static void test_compact(void **state)
{
	struct coll_sim_options o = { .cost = { 1000, 30, 500, 0, 1000000000, 90000 } };
	struct rng rng;

	(void)state;
	for (int seed = 0; seed < 100; seed++) {
		struct coll_sched *s, *all;

		rng_seed(&rng, (uint64_t)seed);
		s = random_compact(7 + seed % 6, &rng);
		all = unfold(s);
		o.asynchronous = seed % 2;
		assert_alike(s, all, o);
		coll_free(all);
		coll_free(s);
	}
}

/* ---- light, and what is refused ---- */

static void assert_error(const struct coll_sched *s, struct coll_sim_options o, int code)
{
	struct coll_sim sim = { 0 };
	struct err err = { 0 };

	assert_int_equal(coll_simulate(s, &o, &sim, NULL, &err), code);
	coll_sim_fini(&sim);
}

/* Two lightpaths carry twice as much as the arc. */
static void test_light(void **state)
{
	struct coll_sim_options o = { .cost = { 1000, 0, 0, 0, 8000000000, 2000 } };
	struct err err = { 0 };
	struct coll_sched *s;

	(void)state;
	must(coll_new(COLL_ALLGATHER, graph_of("K(2)"), 1, 2, 0, &s, &err), &err);
	send_part(s, 0, 0, 1, 0, 0, 0, COLL_OP_COPY);
	send_part(s, 0, 1, 0, 1, 0, 0, COLL_OP_COPY);
	for (int i = 0; i < 3; i++) {
		struct coll_light l = { .step = 0, .arc = i % 2, .channel = (uint16_t)i };

		must(coll_add_light(s, &l, &err), &err);
	}
	finish(s);
	assert_near(time_of(s, o, false), 1000 + 1000);
	o.asynchronous = true;
	assert_error(s, o, WEFT_EUNSUPPORTED);
	coll_free(s);
}

/* Steps that need other light are longer, as the cost model has it. */
static void test_retune(void **state)
{
	static const int channels[][3] = { { 0, 0, 0 }, { 0, 1, 0 }, { 0, 0, 1 } };
	struct coll_sim_options o = { .cost = { 10, 0, 0, 700, 8000000000, 4000 } };

	(void)state;
	for (int i = 0; i < 3; i++) {
		struct coll_sched *s = round_of_four(channels[i]);
		struct coll_sim sim = simulate(s, &o);

		assert_near(sim.time_ns, (double)planned_of(s, &o.cost));
		assert_near(sim.steps[0].end_ns, 1010);
		assert_near(sim.steps[1].end_ns, i == 1 ? 2720 : 2020);
		coll_sim_fini(&sim);
		coll_free(s);
	}
}

static void test_refused(void **state)
{
	struct coll_sim_options good = { .cost = { 1, 0, 0, 0, 1, 1 } }, o = good;
	struct coll_sched *s = bfb(COLL_ALLGATHER, "K(3)"), *part;
	struct err err = { 0 };

	(void)state;
	o.cost.alpha_ns = -1;
	assert_error(s, o, WEFT_EINVAL);
	o = good;
	o.cost.link_bps = 0;
	assert_error(s, o, WEFT_EINVAL);
	o = good;
	o.cost.size_bytes = -1;
	assert_error(s, o, WEFT_EINVAL);
	o = good;
	o.cost.hop_ns = -1;
	assert_error(s, o, WEFT_EINVAL);
	o = good;
	o.cost.message_ns = -1;
	assert_error(s, o, WEFT_EINVAL);
	o = good;
	o.cost.retune_ns = -1;
	assert_error(s, o, WEFT_EINVAL);
	o = good;
	o.cost.alpha_ns = INT64_MAX;
	o.cost.hop_ns = INT64_MAX;
	assert_error(s, o, WEFT_ELIMIT);
	must(coll_part_of(s, 1, &part, &err), &err);
	assert_error(part, good, WEFT_EUNSUPPORTED);
	coll_free(part);
	coll_free(s);
}

/* ---- the picture ---- */

static int count(const char *text, const char *what)
{
	int n = 0;

	for (; (text = strstr(text, what)); text++) {
		n++;
	}
	return n;
}

static struct buf draw(const struct coll_sched *s, int64_t size, bool asynchronous)
{
	struct coll_sim_options o = { .cost = { size ? 1000 : 0, 0, 0, 0, 8000000000, size },
				      .asynchronous = asynchronous };
	struct coll_sim sim = { 0 };
	struct err err = { 0 };
	struct buf svg = { 0 };

	must(coll_simulate(s, &o, &sim, &svg, &err), &err);
	assert_non_null(strstr(buf_cstr(&svg), "</svg>"));
	coll_sim_fini(&sim);
	return svg;
}

static void assert_count(struct coll_sched *s, bool asynchronous, const char *what, int n)
{
	struct buf a = draw(s, 20000, asynchronous), b = draw(s, 20000, asynchronous);

	assert_string_equal(buf_cstr(&a), buf_cstr(&b));
	assert_int_equal(count(buf_cstr(&a), what), n);
	buf_fini(&a);
	buf_fini(&b);
}

/* All arcs of a ring are full in all steps: a row for each, a bar for each
 * step, and one of each colour in the key. */
static void test_picture(void **state)
{
	struct coll_sched *ring = bfb(COLL_ALLREDUCE, "UniRing(1,4)"), *all = unfold(ring);
	struct coll_sched *large = bfb(COLL_ALLGATHER, "GenKautz(2,256)");
	struct buf none = draw(ring, 0, false);

	(void)state;
	assert_count(all, false, "\xe2\x86\x92", 4);
	assert_count(all, false, "\"fill c0\"", 5);
	assert_count(all, false, "\"fill c1\"", 5);
	assert_count(ring, false, "\xe2\x86\x92", 1);
	assert_count(ring, true, " and 3 alike", 1);
	assert_count(ring, true, "\"fill c0\"", 2);
	/* 512 arcs, two nodes a row. */
	assert_count(large, true, ">out of ", 128);
	buf_fini(&none);
	coll_free(large);
	coll_free(all);
	coll_free(ring);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_against_cost),
		cmocka_unit_test(test_steps),
		cmocka_unit_test(test_limit),
		cmocka_unit_test(test_routes),
		cmocka_unit_test(test_compact),
		cmocka_unit_test(test_light),
		cmocka_unit_test(test_retune),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_picture),
	};

	return cmocka_run_group_tests_name("schedule/simulate", tests, NULL, NULL);
}
