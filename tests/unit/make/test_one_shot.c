/* SPDX-License-Identifier: Apache-2.0 */
/* All-reduces in as many steps as the digraph is wide. */
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <setjmp.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include <math.h>

#include "collective/bfb/bfb.h"
#include "collective/make/make.h"
#include "lib/base/alloc.h"
#include "lib/base/number/rng.h"
#include "tests/unit/tree/common.h"

static const struct coll_cost small = {
	.alpha_ns = 10000, .link_bps = INT64_C(100000000000), .size_bytes = 256,
};

static struct topo *digraph(const char *expr)
{
	struct topo *t = NULL;

	assert_int_equal(topo_parse(expr, &t, NULL, NULL), 0);
	return t;
}

static struct coll_made make(const struct topo *t, const char *name, const struct coll_cost *cost)
{
	struct coll_make_query q = { .kind = COLL_ALLREDUCE, .topo = t, .cost = cost,
				     .extra_steps = -1 };
	struct coll_made m;
	struct err err = { 0 };

	q.algorithm = name ? coll_algorithm_find(name, q.kind) : NULL;
	must(coll_make(&q, &m, &err), &err);
	return m;
}

/* What is under a number of a rank, by contributions; of a chunk of the vector. */
static uint64_t *kept_at(uint64_t *kept, const struct coll_sched *s, int rank, int number,
			 size_t at)
{
	size_t n = (size_t)coll_ranks(s), all = n * (size_t)coll_chunks(s);

	return &kept[((size_t)rank * n + (size_t)number) * all + at];
}

/* What comes to a chunk of the vector at a rank: added to its own, or (whole) in its place; or a
 * copy of all. */
static void take(uint64_t *sum, bool *own, bool whole, uint8_t op, uint64_t what, uint64_t all)
{
	if (op == COLL_OP_COPY) {
		assert_true(what == all);
		*sum = 0;
	} else if (whole && *own) {
		*sum = 0;
		*own = false;
	}
	assert_true(op == COLL_OP_COPY || whole == !*own);
	assert_false(*sum & what);
	*sum |= what;
}

/* Whose contributions every rank has of each chunk of each shard, and nothing else: what is sent
 * has to be there as its step begins, and comes once. Chunks that share a message are counted in
 * *vectors once: the fullest arc of each step over its capacity, added up. */
static void replay(const struct coll_sched *s, double *vectors)
{
	size_t n = (size_t)coll_ranks(s), all = n * (size_t)coll_chunks(s);
	uint64_t *now = x_new(n * n * all, sizeof(*now));
	uint64_t *next = x_new(n * n * all, sizeof(*next));
	uint64_t *sum = x_new(n * all, sizeof(*sum));
	double *load = x_new((size_t)topo_m(coll_topo(s)), sizeof(*load)), most = 0;
	bool *own = x_new(n * all, sizeof(*own));
	const struct coll_xfer *x;
	int64_t count;

	assert_true(n <= 64);
	for (size_t i = 0; i < n * all; i++) {
		sum[i] = UINT64_C(1) << i / all;
		own[i] = true;
	}
	x = coll_xfers(s, &count);
	*vectors = 0;
	for (int64_t i = 0; i < count; i++) {
		const struct topo_arc *a = topo_arc(coll_topo(s), x[i].arc);
		int from = x[i].op == COLL_OP_FORWARD ? x[i].dest : a->src;
		int to = x[i].kept ? coll_kept_number((int)n, x[i].kept) : from;
		bool apart = coll_is_apart((int)n, x[i].kept);
		bool whole = coll_is_whole((int)n, x[i].kept);
		bool joined = i > 0 && x[i].kept && x[i].kept == x[i - 1].kept &&
			      x[i].arc == x[i - 1].arc && x[i].step == x[i - 1].step &&
			      x[i].origin == x[i - 1].origin && x[i].first == x[i - 1].first;

		if (i > 0 && x[i].step != x[i - 1].step) {
			memcpy(now, next, n * n * all * sizeof(*now));
			memset(load, 0, (size_t)topo_m(coll_topo(s)) * sizeof(*load));
			*vectors += most;
			most = 0;
		}
		load[x[i].arc] += joined ? 0 : (double)(x[i].last - x[i].first + 1) /
						       (double)all / (double)a->cap;
		most = load[x[i].arc] > most ? load[x[i].arc] : most;
		for (int c = x[i].first; c <= x[i].last; c++) {
			size_t at = (size_t)(x[i].origin * coll_chunks(s) + c);
			size_t there = (size_t)a->dst * all + at;
			uint64_t what = x[i].op == COLL_OP_REDUCE ? UINT64_C(1) << a->src
					: x[i].op == COLL_OP_COPY
						? sum[(size_t)a->src * all + at]
						: *kept_at(now, s, a->src, from, at);

			assert_true(what != 0);
			if (!apart) {
				take(&sum[there], &own[there], whole, x[i].op, what,
				     UINT64_MAX >> (64 - n));
			}
			if (!whole && x[i].op != COLL_OP_COPY) {
				*kept_at(next, s, a->dst, to, at) |= what;
			}
		}
	}
	*vectors += most;
	for (size_t i = 0; i < n * all; i++) {
		assert_true(sum[i] == UINT64_MAX >> (64 - n));
	}
	free(now);
	free(next);
	free(sum);
	free(own);
	free(load);
}

/* As many steps as the digraph is wide, at most N times the T_B of the all-gather, and every
 * contribution everywhere. */
static void check(const struct topo *t)
{
	struct coll_made m = make(t, "one-shot", &small);
	struct coll_sched *all;
	struct err err = { 0 };
	double vectors;
	mpq_t factor, n;
	int steps;

	mpq_inits(factor, n, NULL);
	must(coll_bfb_factor(COLL_ALLGATHER, t, &steps, factor, &err), &err);
	mpq_set_si(n, topo_n(t), 1);
	mpq_mul(factor, factor, n);
	assert_int_equal(m.report.steps, steps);
	if (coll_chunks(m.sched) < COLL_BFB_MAX_CHUNKS / 2) {
		assert_true(mpq_cmp(m.report.bandwidth_factor, factor) <= 0);
	}
	must(coll_unfold(m.sched, &all, &err), &err);
	replay(all, &vectors);
	assert_true(fabs(vectors * coll_ports(m.sched) -
			 mpq_get_d(m.report.bandwidth_factor)) < 1e-9);
	must(coll_verify(all, NULL, &err), &err);
	coll_free(all);
	coll_made_fini(&m);
	mpq_clears(factor, n, NULL);
}

static void every_contribution(void **state)
{
	static const char *const exprs[] = {
		"UniRing(1,5)", "Mesh(3,3)", "Kautz(2,3)", "Torus(3,4)", "Odd(3)", "SlimFly(5)",
		"Hypercube(4)", "Jellyfish(16,3,1)", "Cap(Ring(4),2)",
	};
	struct rng r;

	(void)state;
	for (size_t i = 0; i < sizeof(exprs) / sizeof(exprs[0]); i++) {
		struct topo *t = digraph(exprs[i]);

		check(t);
		topo_free(t);
	}
	rng_seed(&r, 43);
	for (int i = 0; i < 40; i++) {
		int n = 2 + (int)rng_below(&r, 9);
		struct topo *t = random_digraph(&r, n, (int)rng_below(&r, 20), 3, 1, 0);

		check(t);
		topo_free(t);
	}
}

/* Sums that go the same way are one: so many vectors over a link, where each by itself takes
 * `plain`; of a job, whose programs do not merge, that. */
static void merged(void **state)
{
	static const struct { const char *expr; int vectors, plain; } rows[] = {
		{ "Mesh(8,8)", 14, 68 }, { "GenKautz(4,64)", 3, 21 }, { "GenKautz(4,100)", 4, 53 },
		{ "SlimFly(5)", 2, 7 }, { "Jellyfish(32,4,1)", 8, 11 }, { "UniRing(1,5)", 4, 4 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct topo *t = digraph(rows[i].expr);
		struct coll_made m = make(t, "one-shot", &small);
		int ports = coll_ports(m.sched);

		assert_int_equal(mpq_cmp_si(m.report.bandwidth_factor, rows[i].vectors * ports, 1),
				 0);
		assert_int_equal(coll_merges(m.sched), rows[i].vectors < rows[i].plain);
		coll_made_fini(&m);
		topo_free(t);
	}
}

/* With some more steps, for less T_B: sums at a few nodes of each neighbourhood, or where walks
 * end, and copies from there. All contributions come, and never more steps than were allowed. */
static void hybrids(void **state)
{
	static const struct { const char *expr; int extra, steps, num, den; } rows[] = {
		{ "GenKautz(4,64)", 1, 4, 4, 1 }, { "GenKautz(4,48)", 1, 4, 16, 3 },
		{ "GenKautz(2,16)", 2, 6, 4, 1 }, { "Jellyfish(32,4,1)", 1, 5, 52, 3 },
		{ "Kautz(2,3)", 2, 6, 8, 3 },
		{ "Jellyfish(32,4,1)", 2, 6, 21, 2 }, { "Jellyfish(32,4,1)", 8, 7, 128, 17 },
		{ "GenKautz(2,9)", 4, 4, 16, 3 }, { "Multi(Jellyfish(16,3,1),2)", 2, 6, 9, 1 },
		{ "Mesh(5,5)", 1, 9, 18, 1 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct topo *t = digraph(rows[i].expr);
		struct coll_make_query q = {
			.kind = COLL_ALLREDUCE, .topo = t, .extra_steps = rows[i].extra,
			.algorithm = coll_algorithm_find("one-shot", COLL_ALLREDUCE),
		};
		struct coll_made m;
		struct coll_sched *all;
		struct err err = { 0 };
		double vectors;

		must(coll_make(&q, &m, &err), &err);
		assert_int_equal(m.report.steps, rows[i].steps);
		assert_int_equal(mpq_cmp_si(m.report.bandwidth_factor, rows[i].num,
					    (unsigned long)rows[i].den), 0);
		must(coll_unfold(m.sched, &all, &err), &err);
		replay(all, &vectors);
		assert_true(fabs(vectors * coll_ports(m.sched) -
				 mpq_get_d(m.report.bandwidth_factor)) < 1e-9);
		coll_free(all);
		coll_made_fini(&m);
		topo_free(t);
	}
}

/* "auto" takes it for vectors that are short beside a step, and never for long ones. */
static void short_vectors(void **state)
{
	static const struct { const char *expr; int64_t ns; } fastest[] = {
		{ "Kautz(2,3)", 40082 }, { "SlimFly(5)", 20041 }, { "Mesh(4,4)", 60123 },
		{ "GenKautz(4,64)", 30062 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(fastest) / sizeof(fastest[0]); i++) {
		struct topo *t = digraph(fastest[i].expr);
		struct coll_cost large = small;
		struct coll_made m = make(t, NULL, &small);

		assert_string_equal(m.algorithm->name, "one-shot");
		assert_int_equal(m.time_ns, fastest[i].ns);
		coll_made_fini(&m);
		if (topo_n(t) < 64) {
			large.size_bytes = 1 << 24;
			m = make(t, NULL, &large);
			assert_string_not_equal(m.algorithm->name, "one-shot");
			coll_made_fini(&m);
		}
		topo_free(t);
	}
}

/* Where nodes forward a single step is enough: over all shortest paths, as far as their number is
 * small, and over one beyond. */
static void at_once(void **state)
{
	static const struct { const char *expr; enum coll_routing routing; int64_t ns; } rows[] = {
		{ "Torus(4,4,4)", COLL_ROUTING_MINIMAL_SPLIT, 2921 },
		{ "Torus(8,8)", COLL_ROUTING_MINIMAL_SPLIT, 3741 },
		{ "Torus(16,4)", COLL_ROUTING_MINIMAL_SPLIT, 4582 },
		{ "Hypercube(6)", COLL_ROUTING_MINIMAL_SPLIT, 2921 },
		{ "Mesh(4,4)", COLL_ROUTING_MINIMAL_SPLIT, 2912 },
		{ "Torus(3,3,3,3)", COLL_ROUTING_MINIMAL_SPLIT, 2118 },
		{ "Torus(4,4,4,4)", COLL_ROUTING_EXPLICIT, 3782 },
	};
	const struct coll_cost cost = {
		.alpha_ns = 500, .hop_ns = 400, .forwards = true, .size_bytes = 32,
		.link_bps = INT64_C(400000000000),
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct topo *t = digraph(rows[i].expr);
		struct coll_made m = make(t, NULL, &cost);
		struct coll_sched *all;
		struct err err = { 0 };

		assert_string_equal(m.algorithm->name, "one-shot");
		assert_int_equal(m.report.steps, 1);
		assert_int_equal(coll_routing(m.sched), rows[i].routing);
		assert_int_equal(m.time_ns, rows[i].ns);
		assert_true(m.bound_ns <= m.time_ns);
		if (coll_ranks(m.sched) <= 64) {
			must(coll_unfold(m.sched, &all, &err), &err);
			must(coll_verify(all, NULL, &err), &err);
			replay(all, &(double){ 0 });
			coll_free(all);
		}
		coll_made_fini(&m);
		topo_free(t);
	}
}

/* What a step takes in which every rank sends its vector to each other over one route, by what
 * these come to: each is a path, the shortest. */
static double routes_ns(const struct coll_sched *s, const struct coll_cost *c)
{
	const struct topo *t = coll_physical(s), *all = coll_topo(s);
	double vector = (double)c->size_bytes * 8e9 / (double)c->link_bps, most = 0;
	int *load = x_new((size_t)topo_m(t), sizeof(*load));
	int *first = x_new((size_t)topo_m(t), sizeof(*first));
	int32_t *dist = x_alloc((size_t)topo_n(t), sizeof(*dist));

	assert_int_equal(coll_n_arc_routes(s), topo_n(t) * (topo_n(t) - 1));
	for (int64_t i = 0; i < 2 * coll_n_arc_routes(s); i++) {
		struct coll_arc_route r = coll_arc_route(s, i % coll_n_arc_routes(s));
		int at = topo_arc(all, r.arc)->src, fullest = 0;

		topo_bfs(t, at, dist);
		assert_int_equal(dist[topo_arc(all, r.arc)->dst], r.n);
		for (int h = 0; h < r.n; h++) {
			assert_int_equal(topo_arc(t, r.hops[h])->src, at);
			at = topo_arc(t, r.hops[h])->dst;
			load[r.hops[h]] += i < coll_n_arc_routes(s);
			fullest = load[r.hops[h]] > fullest ? load[r.hops[h]] : fullest;
		}
		assert_int_equal(at, topo_arc(all, r.arc)->dst);
		first[r.hops[0]] += i < coll_n_arc_routes(s);
		if (i >= coll_n_arc_routes(s)) {
			most = fmax(most, (double)c->hop_ns * r.n + vector * fullest +
						  (double)c->message_ns * first[r.hops[0]]);
		}
	}
	free(load);
	free(first);
	free(dist);
	return (double)c->alpha_ns + most;
}

/* Where a message costs as such, or there are very many paths, over one: links carry nearly the
 * same. */
static void one_path_each(void **state)
{
	static const char *const exprs[] = {
		"C(60,{1,7})", "Torus(5,8)", "Mesh(3,4)", "Kautz(2,3)", "Jellyfish(20,4,1)",
	};
	const struct coll_cost cost = {
		.alpha_ns = 1500, .hop_ns = 100, .message_ns = 5, .forwards = true,
		.size_bytes = 256, .link_bps = INT64_C(400000000000),
	};

	(void)state;
	for (size_t i = 0; i < sizeof(exprs) / sizeof(exprs[0]); i++) {
		struct topo *t = digraph(exprs[i]);
		struct coll_made m = make(t, "one-shot", &cost);
		struct coll_sched *all;
		struct err err = { 0 };

		assert_int_equal(m.report.steps, 1);
		must(coll_unfold(m.sched, &all, &err), &err);
		must(coll_verify(all, NULL, &err), &err);
		replay(all, &(double){ 0 });
		assert_true(fabs(routes_ns(all, &cost) - (double)m.time_ns) <= 1);
		coll_free(all);
		coll_made_fini(&m);
		topo_free(t);
	}
}

/* The time of merged sums is known before they are made, and a bound of it before that. */
static void foretold(void **state)
{
	static const char *const exprs[] = { "Kautz(2,3)", "Mesh(4,4)", "Multi(GenKautz(2,9),2)",
					     "Torus(4,5)", "GenKautz(3,30)", "Cap(Ring(6),2)" };
	struct rng r;
	int hybrids = 0;

	(void)state;
	rng_seed(&r, 44);
	for (int i = 0; i < 60; i++) {
		struct coll_cost cost = { .alpha_ns = 500, .link_bps = INT64_C(400000000000),
					  .size_bytes = 256 << 2 * (i % 5) };
		struct topo *t = i < 30 ? digraph(exprs[i / 5])
					: random_digraph(&r, 3 + (int)rng_below(&r, 9),
							 (int)rng_below(&r, 20), 3, 1, 0);
		struct coll_make_query q = coll_make_job(COLL_ALLREDUCE, NULL, t, &cost);
		double ns, least;
		struct coll_made m;

		q.algorithm = coll_algorithm_find("one-shot", q.kind);
		must(coll_make_sums_time(&q, 0, &ns, NULL), NULL);
		must(coll_make_sums_min(&q, &least, NULL), NULL);
		must(coll_make(&q, &m, NULL), NULL);
		assert_true(least <= ns + 1e-6);
		assert_true((double)m.time_ns <= ns + 2);
		/* Each vector by itself may take less. */
		assert_true(!coll_is_alike(m.sched) || (double)m.time_ns >= ns - 2);
		hybrids += m.report.steps > topo_diameter(t);
		must(coll_make_sums_time(&q, ns * (1 - 1e-6), &least, NULL), NULL);
		assert_true(least == HUGE_VAL);
		coll_made_fini(&m);
		topo_free(t);
	}
	assert_true(hybrids > 9);
}

/* Of a job, too, more than a million transfers fit, over links and in a step, not any number. */
static void large_for_jobs(void **state)
{
	struct topo *t = digraph("Mesh(4,25)");
	struct coll_cost cost = { .alpha_ns = 100000, .hop_ns = 1, .forwards = true,
				  .size_bytes = 8, .link_bps = INT64_C(400000000000) };
	struct coll_make_query q =
		coll_make_job(COLL_ALLREDUCE, coll_algorithm_find("one-shot", COLL_ALLREDUCE), t,
			      &cost);
	struct coll_made m;
	struct err err = { 0 };

	(void)state;
	q.no_merge = true;
	must(coll_make(&q, &m, &err), &err);
	assert_int_equal(err.code, 0);
	assert_int_equal(m.report.steps, 1);
	coll_made_fini(&m);
	cost.forwards = false;
	cost.hop_ns = 0;
	must(coll_make(&q, &m, &err), &err);
	assert_int_equal(m.report.steps, 27);
	assert_true(m.report.transfers > 1 << 20);
	coll_made_fini(&m);
	topo_free(t);
	q.topo = t = digraph("Mesh(2,100)");
	assert_int_equal(coll_make(&q, &m, &err), WEFT_ELIMIT);
	topo_free(t);
}

/* Of random digraphs too; never where ranks pass on nothing. */
static void at_once_anywhere(void **state)
{
	struct coll_cost cost = small;
	struct rng r;

	(void)state;
	cost.hop_ns = 500;
	rng_seed(&r, 38);
	for (int i = 0; i < 40; i++) {
		int n = 2 + (int)rng_below(&r, 9);
		struct topo *t = random_digraph(&r, n, (int)rng_below(&r, 20), 3, 1, 0);
		struct coll_made m;
		struct coll_sched *all;
		struct err err = { 0 };

		cost.forwards = false;
		m = make(t, "one-shot", &cost);
		assert_int_equal(m.report.steps, topo_diameter(t));
		coll_made_fini(&m);
		cost.forwards = true;
		m = make(t, "one-shot", &cost);
		assert_int_equal(m.report.steps, 1);
		assert_true(m.time_ns >= cost.alpha_ns + topo_diameter(t) * cost.hop_ns);
		must(coll_unfold(m.sched, &all, &err), &err);
		replay(all, &(double){ 0 });
		coll_free(all);
		coll_made_fini(&m);
		topo_free(t);
	}
}

/* A reduce and a broadcast are in it although sums are forwarded, each in no more time. */
static void trimmed(void **state)
{
	static const enum coll_kind kinds[] = { COLL_REDUCE, COLL_BROADCAST };
	struct topo *t = digraph("Kautz(2,2)");
	struct coll_made m = make(t, "one-shot", &small);
	struct err err = { 0 };

	(void)state;
	for (int i = 0; i < 2 * topo_ranks(t); i++) {
		struct coll_sched *out;
		struct coll_report r;
		int64_t ns;

		must(coll_trim(m.sched, kinds[i % 2], i / 2, &out, &err), &err);
		coll_report_init(&r);
		must(coll_verify(out, &r, &err), &err);
		must(coll_time(out, &r, &small, &ns, NULL, &err), &err);
		assert_true(ns <= m.time_ns);
		coll_report_fini(&r);
		coll_free(out);
	}
	coll_made_fini(&m);
	topo_free(t);
}

/* Of ranks without a symmetry the transfers of vectors by themselves are too many soon, which is
 * said at once; merged they are not. */
static void too_large(void **state)
{
	struct topo *t = digraph("Jellyfish(300,4,1)");
	struct coll_make_query q = { .kind = COLL_ALLREDUCE, .topo = t, .cost = &small,
				     .max_transfers = 1, .no_merge = true };
	struct coll_made m;
	struct err err = { 0 };

	(void)state;
	q.algorithm = coll_algorithm_find("one-shot", q.kind);
	assert_int_equal(coll_make(&q, &m, &err), WEFT_ELIMIT);
	assert_non_null(strstr(err.msg, "transfers are too many"));
	m = make(t, "one-shot", &small);
	assert_int_equal(m.report.steps, topo_diameter(t));
	assert_true(coll_is_alike(m.sched));
	coll_made_fini(&m);
	topo_free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_contribution), cmocka_unit_test(merged),
		cmocka_unit_test(hybrids), cmocka_unit_test(foretold),
		cmocka_unit_test(short_vectors),
		cmocka_unit_test(trimmed), cmocka_unit_test(too_large),
		cmocka_unit_test(at_once), cmocka_unit_test(at_once_anywhere),
		cmocka_unit_test(one_path_each), cmocka_unit_test(large_for_jobs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
