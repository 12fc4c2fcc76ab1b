/* SPDX-License-Identifier: Apache-2.0 */
/* Breadth-first broadcast with latencies, against a linear program for every
 * set of links that a node may use. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "collective/bfb/bfb.h"
#include "lib/base/number/rng.h"
#include "lib/lp/lp.h"
#include "tests/unit/schedule/common.h"

/* What node u takes at distance d over some of its links. */
struct level {
	const struct topo *t;
	const int32_t *in, *dist;	/* dist[v * n + w] */
	int u, d, links;
};

static bool may_use(const struct level *l, int v, int link)
{
	int n = topo_n(l->t), w = topo_arc(l->t, l->in[link])->src;

	return w != l->u && l->dist[v * n + l->u] == l->d &&
	       l->dist[v * n + w] == l->d - 1;
}

/* Program (13) with the links of `set`, all of which are waited for; a shard
 * takes `ns` on a capacity of one. Negative when some shard has no link. */
static double time_by_lp(const struct level *l, unsigned set, double ns)
{
	int n = topo_n(l->t), row[8];
	struct lp_result res;
	struct err err = { 0 };
	struct lp *lp;
	double ones[8], time = -1;
	int used = 0;
	bool whole = true;

	lp = lp_new();
	must(0, &err);
	for (int i = 0; i < l->links; i++) {
		const struct topo_arc *a = topo_arc(l->t, l->in[i]);

		if (set >> i & 1) {
			must(lp_add_row(lp, LP_GE, (double)a->latency_ns,
					&row[used], &err), &err);
			ones[used++] = 1;
		}
	}
	must(lp_add_col(lp, 1, 0, LP_INF, false, used, row, ones, NULL, &err),
	     &err);
	for (int v = 0; v < n; v++) {
		int shard, options = 0, k = 0;

		if (l->dist[v * n + l->u] != l->d) {
			continue;
		}
		must(lp_add_row(lp, LP_EQ, 1, &shard, &err), &err);
		for (int i = 0; i < l->links; i++) {
			double cap = (double)topo_arc(l->t, l->in[i])->cap;

			if (!(set >> i & 1)) {
				continue;
			}
			if (may_use(l, v, i)) {
				int rows[2] = { row[k], shard };
				double val[2] = { -ns / cap, 1 };

				must(lp_add_col(lp, 0, 0, LP_INF, false, 2,
						rows, val, NULL, &err), &err);
				options++;
			}
			k++;
		}
		whole = whole && options > 0;
	}
	if (whole) {
		must(lp_run(lp, NULL, &res, &err), &err);
		assert_int_equal(res.outcome, LP_OPTIMAL);
		time = res.objective;
	}
	lp_free(lp);
	return time;
}

/* The least over all sets of links. */
static double level_by_lp(const struct level *l, double ns)
{
	double best = -1;

	for (unsigned set = 1; set < 1u << l->links; set++) {
		double time = time_by_lp(l, set, ns);

		if (time >= 0 && (best < 0 || time < best)) {
			best = time;
		}
	}
	return best;
}

/* Sum over the distances of the slowest node's time, without alpha. */
static double gather_by_lp(const struct topo *t, double ns)
{
	int n = topo_n(t), diameter = topo_diameter(t);
	int32_t *dist = malloc((size_t)n * n * sizeof(*dist));
	double sum = 0;

	assert_non_null(dist);
	for (int v = 0; v < n; v++) {
		topo_bfs(t, v, dist + (size_t)v * n);
	}
	for (int d = 1; d <= diameter; d++) {
		double top = 0;

		for (int u = 0; u < n; u++) {
			struct level l = { .t = t, .dist = dist, .u = u,
					   .d = d };
			double time;
			bool any = false;

			l.links = topo_in(t, u, &l.in);
			for (int v = 0; v < n; v++) {
				any = any || dist[v * n + u] == d;
			}
			time = any ? level_by_lp(&l, ns) : 0;
			assert_true(time >= 0);
			top = time > top ? time : top;
		}
		sum += top;
	}
	free(dist);
	return sum;
}

/* A cycle and random arcs, at most four into a node. */
static struct topo *random_graph(struct rng *rng, int n, int extra)
{
	static const int64_t latencies[] = { 0, 40, 100, 700, 5000 };
	struct err err = { 0 };
	int into[8] = { 0 };
	struct topo *t;

	must(topo_new(n, &t, &err), &err);
	for (int i = 0; i < n + extra; i++) {
		int u = i < n ? i : (int)rng_below(rng, n);
		int v = i < n ? (i + 1) % n : (int)rng_below(rng, n);

		if (into[v]++ < 4) {
			must(topo_add_arc(t, u, v,
					  1 + (int)rng_below(rng, 3),
					  latencies[rng_below(rng, 5)], &err),
			     &err);
		}
	}
	topo_freeze(t);
	return t;
}

static int64_t time_of(const struct coll_sched *s, const struct coll_cost *c)
{
	struct coll_report r;
	struct err err = { 0 };
	int64_t ns;

	coll_report_init(&r);
	must(coll_verify(s, &r, &err), &err);
	must(coll_time(s, &r, c, &ns, NULL, &err), &err);
	coll_report_fini(&r);
	return ns;
}

static struct coll_sched *timed(enum coll_kind kind, struct topo *t, int chunks,
				const struct coll_cost *c, int64_t *bound)
{
	struct coll_sched *s;
	struct err err = { 0 };

	must(coll_bfb_timed(kind, t, chunks, c, &s, bound, &err), &err);
	return s;
}

static void test_random_against_lp(void **state)
{
	struct err err = { 0 };
	struct rng rng;
	int faster = 0;

	(void)state;
	rng_seed(&rng, 13);
	for (int i = 0; i < 24; i++) {
		int n = 2 + (int)rng_below(&rng, 5);
		struct coll_cost c = { .alpha_ns = 10, .link_bps = 1000000000,
				  .size_bytes = 1 + (int64_t)rng_below( &rng, 1000) };
		struct topo *t = random_graph(&rng, n, (int)rng_below(
						&rng, 2 * n)), *back, *same;
		double ns = (double)c.size_bytes * 8 / n;
		double want = gather_by_lp(t, ns) + 10.0 * topo_diameter(t);
		struct coll_sched *s, *plain;
		int64_t bound;

		must(topo_transpose(t, &back, NULL, &err), &err);
		must(topo_transpose(back, &same, NULL, &err), &err);
		s = timed(COLL_ALLGATHER, same, 0, &c, &bound);
		assert_true((double)bound <= want * (1 + 1e-9) + 1);
		assert_true((double)bound >= want * 0.998 - 1);
		assert_true((double)time_of(s, &c) >= want * (1 - 1e-9) - 1);
		assert_true((double)time_of(s, &c) <= want * 1.002 + 1);
		/* Its reverse does as well on the reversed digraph. */
		plain = timed(COLL_REDUCE_SCATTER, back, 0, &c, &bound);
		assert_int_equal(time_of(plain, &c), time_of(s, &c));
		coll_free(plain);
		must(coll_bfb(COLL_ALLGATHER, t, &plain, &err), &err);
		assert_true(time_of(plain, &c) >= bound);
		faster += time_of(plain, &c) > time_of(s, &c) + 10;
		coll_free(plain);
		coll_free(s);
	}
	/* Latencies move shares in most of these. */
	assert_true(faster > 8);
}

/* One node is solved and moved where the links' latencies repeat. */
static void test_translations_against_lp(void **state)
{
	static const char *const exprs[] = {
		"Prod(Lat(Ring(3),400),Cap(Ring(4),2))",
		"Prod(Lat(UniRing(1,4),2000),Ring(3))",
	};
	struct coll_cost c = { .alpha_ns = 10, .link_bps = 1000000000,
				  .size_bytes = 600 };

	(void)state;
	for (size_t i = 0; i < sizeof(exprs) / sizeof(exprs[0]); i++) {
		struct topo *t = graph_of(exprs[i]);
		double ns = (double)c.size_bytes * 8 / topo_n(t);
		double want = gather_by_lp(t, ns) + 10.0 * topo_diameter(t);
		int64_t bound;
		struct coll_sched *s = timed(COLL_ALLGATHER, t, 0, &c, &bound);

		assert_true((double)bound <= want * (1 + 1e-9) + 1);
		assert_true((double)time_of(s, &c) >= want * (1 - 1e-9) - 1);
		assert_true((double)time_of(s, &c) <= want * 1.002 + 1);
		coll_free(s);
	}
}

/* Two links, of no latency and of 1000 ns; a shard takes 8 ns a byte / 2. */
static struct topo *two_links(void)
{
	struct err err = { 0 };
	struct topo *t;

	must(topo_new(2, &t, &err), &err);
	for (int u = 0; u < 2; u++) {
		must(topo_add_arc(t, u, 1 - u, 1, 0, &err), &err);
		must(topo_add_arc(t, u, 1 - u, 1, 1000, &err), &err);
	}
	topo_freeze(t);
	return t;
}

static void test_two_links(void **state)
{
	static const struct {
		int64_t bytes;
		int chunks;
		int64_t ns;
	} rows[] = {
		{ 100, 0, 400 },	/* done before the slow one begins */
		{ 250, 0, 1000 },
		{ 2500, 20, 5500 },	/* 11 of 20 chunks over the fast one */
		{ 2500, 2, 6000 },	/* a half each */
		{ 2500, 1, 10000 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct coll_cost c = { .alpha_ns = 7, .link_bps = 1000000000,
				  .size_bytes = rows[i].bytes };
		struct coll_sched *s;
		int64_t bound;

		s = timed(COLL_ALLGATHER, two_links(), rows[i].chunks, &c,
			  &bound);
		assert_int_equal(time_of(s, &c), 7 + rows[i].ns);
		assert_true(bound <= 7 + rows[i].ns);
		coll_free(s);
		s = timed(COLL_ALLREDUCE, two_links(), rows[i].chunks, &c,
			  &bound);
		assert_int_equal(time_of(s, &c), 2 * (7 + rows[i].ns));
		coll_free(s);
	}
}

/* Then it is the program without latencies. */
static void test_equal_latencies(void **state)
{
	static const char *const exprs[] = {
		"Lat(Torus(3,4),250)", "Lat(GenKautz(2,9),30)", "Ring(6)",
		"Lat(Cap(Hypercube(3),4),9)",
	};
	struct coll_cost c = { .alpha_ns = 100, .link_bps = 1000000000,
				  .size_bytes = 12000 };

	(void)state;
	for (size_t i = 0; i < sizeof(exprs) / sizeof(exprs[0]); i++) {
		struct coll_sched *plain = bfb(COLL_ALLREDUCE, exprs[i]);
		int64_t bound;
		struct coll_sched *s = timed(COLL_ALLREDUCE,
					     graph_of(exprs[i]),
					     coll_chunks(plain), &c, &bound);

		assert_int_equal(time_of(s, &c), time_of(plain, &c));
		assert_int_equal(bound, time_of(plain, &c));
		coll_free(plain);
		coll_free(s);
	}
}

static void test_refusals(void **state)
{
	static const int arcs[][2] = { { 0, 1 }, { 1, 2 } };
	struct coll_cost c = { .alpha_ns = 1, .link_bps = 1,
				  .size_bytes = 0 };
	struct coll_sched *s;
	struct err err = { 0 };
	int64_t bound;

	(void)state;
	assert_int_equal(coll_bfb_timed(COLL_ALLGATHER, two_links(), 0, &c, &s,
					&bound, &err), WEFT_EINVAL);
	c.size_bytes = 1;
	assert_int_equal(coll_bfb_timed(COLL_ALLTOALL, two_links(), 0, &c, &s,
					&bound, &err), WEFT_EUNSUPPORTED);
	assert_int_equal(coll_bfb_timed(COLL_ALLGATHER, two_links(), -1, &c,
					&s, &bound, &err), WEFT_EINVAL);
	assert_int_equal(coll_bfb_timed(COLL_ALLGATHER,
					graph_from(3, 2, arcs), 0, &c, &s,
					&bound, &err), WEFT_EINFEASIBLE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random_against_lp),
		cmocka_unit_test(test_translations_against_lp),
		cmocka_unit_test(test_two_links),
		cmocka_unit_test(test_equal_latencies),
		cmocka_unit_test(test_refusals),
	};

	return cmocka_run_group_tests_name("bfb/latency", tests, NULL,
					   NULL);
}
