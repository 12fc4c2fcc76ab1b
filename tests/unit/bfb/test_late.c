/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Late takers and staggered pieces. The optimum over given pieces is found again by one
 * large linear program with a column for every origin, node, piece, link and step, without
 * groups, cuts or symmetry; and no schedule is below what a program of flows allows any.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>

#include "collective/bfb/late.h"
#include "lib/base/number/rng.h"
#include "lib/lp/lp.h"
#include "tests/unit/schedule/common.h"

/* A strongly connected digraph: a cycle and more arcs. */
static struct topo *random_digraph(struct rng *rng, int n, int more, int max_cap)
{
	struct err err = { 0 };
	struct topo *t;

	must(topo_new(n, &t, &err), &err);
	for (int u = 0; u < n; u++) {
		must(topo_add_arc(t, u, (u + 1) % n, 1 + (int64_t)rng_below(rng, max_cap), 0,
				  &err), &err);
	}
	for (int i = 0; i < more; i++) {
		must(topo_add_arc(t, (int)rng_below(rng, n), (int)rng_below(rng, n),
				  1 + (int64_t)rng_below(rng, max_cap), 0, &err), &err);
	}
	topo_freeze(t);
	return t;
}

static struct topo *copy_of(const struct topo *t)
{
	struct err err = { 0 };
	struct topo *copy;

	must(topo_copy(t, &copy, &err), &err);
	return copy;
}

/* T_B in M/B and steps of what was replayed. */
static double replay(struct coll_sched *s, int *steps)
{
	struct err err = { 0 };
	struct coll_report r;
	double factor;

	coll_report_init(&r);
	must(coll_verify(s, &r, &err), &err);
	factor = mpq_get_d(r.bandwidth_factor);
	*steps = r.steps;
	coll_report_fini(&r);
	return factor;
}

/* ---- the same optimum another way ---- */

/* Rows of one program: sums of sizes, of what arrives, of loads. */
struct written_out {
	const struct topo *t;
	const struct topo_group *g;
	const struct bfb_pieces *p;
	struct lp *lp;
	int sizes;	/* row: they add up to a shard */
	int *arrives;	/* row of (origin, piece, node) */
	int *room;	/* row of (step, arc) */
};

static int due(const struct written_out *w, int origin, int piece, int node)
{
	int by = w->g ? topo_group_inverse(w->g, topo_group_element(w->g, origin)) : 0;
	int source = w->g ? topo_group_first(w->g, origin) : origin;

	node = w->g ? topo_group_move(w->g, by, node) : node;
	return w->p->due[((size_t)piece * (size_t)w->p->sources + (size_t)source) *
			 (size_t)w->p->n + (size_t)node];
}

static void write_rows(struct written_out *w)
{
	struct err err = { 0 };
	int n = w->p->n;

	must(lp_add_row(w->lp, LP_EQ, 1, &w->sizes, &err), &err);
	for (int i = 0; i < n * w->p->count * n; i++) {
		must(lp_add_row(w->lp, LP_EQ, 0, &w->arrives[i], &err), &err);
	}
	for (int i = 0; i < w->p->steps * topo_m(w->t); i++) {
		must(lp_add_row(w->lp, LP_GE, 0, &w->room[i], &err), &err);
	}
}

static int arrives(const struct written_out *w, int origin, int piece, int node)
{
	return w->arrives[(origin * w->p->count + piece) * w->p->n + node];
}

/* Piece sizes leave for all nodes; loads make room on all arcs. */
static void write_sizes_and_loads(struct written_out *w)
{
	int n = w->p->n, m = topo_m(w->t), most = 1 + n * n + m;
	double *v = malloc((size_t)most * sizeof(*v));
	int *rows = malloc((size_t)most * sizeof(*rows));
	struct err err = { 0 };

	for (int k = 0; k < w->p->count; k++) {
		int at = 0;

		rows[at] = w->sizes;
		v[at++] = 1;
		for (int o = 0; o < n; o++) {
			for (int u = 0; u < n; u++) {
				rows[at] = arrives(w, o, k, u);
				v[at] = -1;
				at += u != o;
			}
		}
		must(lp_add_col(w->lp, 0, 0, LP_INF, false, at, rows, v, NULL, &err), &err);
	}
	for (int t = 0; t < w->p->steps; t++) {
		for (int a = 0; a < m; a++) {
			rows[a] = w->room[t * m + a];
			v[a] = (double)topo_arc(w->t, a)->cap;
		}
		must(lp_add_col(w->lp, 1, 0, LP_INF, false, m, rows, v, NULL, &err), &err);
	}
	free(v);
	free(rows);
}

/* Who has a piece may send it to who must get it, in the steps between. */
static void write_transfers(struct written_out *w, int origin, int piece)
{
	static const double v[] = { 1, -1 };
	int m = topo_m(w->t);
	struct err err = { 0 };

	for (int a = 0; a < m; a++) {
		const struct topo_arc *x = topo_arc(w->t, a);

		if (x->dst == origin || x->src == x->dst) {
			continue;
		}
		for (int t = due(w, origin, piece, x->src) + 1; t <= due(w, origin, piece, x->dst);
		     t++) {
			int rows[] = { arrives(w, origin, piece, x->dst),
				       w->room[(t - 1) * m + a] };

			must(lp_add_col(w->lp, 0, 0, LP_INF, false, 2, rows, v, NULL, &err), &err);
		}
	}
}

static double optimum_written_out(const struct topo *t, const struct topo_group *g,
				  const struct bfb_pieces *p)
{
	struct written_out w = { .t = t, .g = g, .p = p };
	struct lp_result res;
	struct err err = { 0 };

	w.arrives = malloc((size_t)(p->n * p->n * p->count) * sizeof(int));
	w.room = malloc((size_t)(p->steps * topo_m(t)) * sizeof(int));
	w.lp = lp_new();
	must(0, &err);
	write_rows(&w);
	write_sizes_and_loads(&w);
	for (int o = 0; o < p->n; o++) {
		for (int k = 0; k < p->count; k++) {
			write_transfers(&w, o, k);
		}
	}
	must(lp_run(w.lp, NULL, &res, &err), &err);
	assert_int_equal(res.outcome, LP_OPTIMAL);
	lp_free(w.lp);
	free(w.arrives);
	free(w.room);
	return res.objective;
}

/* Both ways; returns the loads. */
static double assert_optimum(const struct topo *t, int extra)
{
	struct topo_group *g = NULL;
	struct bfb_late l;
	struct err err = { 0 };
	double sum = 0, other;

	must(topo_group_find(t, &g, &err), &err);
	must(bfb_late_solve(&l, t, g, g ? topo_group_orbits(g) : topo_n(t), extra, NULL, &err),
	     &err);
	for (int k = 0; k < l.p.steps; k++) {
		sum += l.x[k];
	}
	other = optimum_written_out(t, g, &l.p);
	if (fabs(sum - other) > 1e-5 * (1 + other)) {
		fail_msg("loads of %.9f, written out %.9f", sum, other);
	}
	bfb_late_fini(&l);
	topo_group_free(g);
	return sum;
}

static void test_optimum(void **state)
{
	static const char *const graphs[] = {
		"GenKautz(2,9)", "GenKautz(2,8)", "Mesh(2,3)", "C(9,{1,4})", "DeBruijn(2,3)",
		"DiCay(7:3,r=2,{(1,1),(3,0)})", NULL,
	};
	struct rng rng;

	(void)state;
	rng_seed(&rng, 17);
	for (int i = 0; i < 16; i++) {
		struct topo *t = random_digraph(&rng, 5 + i % 3, 5 + i % 4, 1 + i % 2);

		assert_optimum(t, i % 3 == 0);
		topo_free(t);
	}
	for (const char *const *e = graphs; *e; e++) {
		struct topo *t = graph_of(*e);

		assert_optimum(t, 0);
		topo_free(t);
	}
}

/* ---- a bound for any schedule ---- */

/* In any schedule every origin's shard reaches every node: a flow of one over links and steps,
 * nowhere more than what is sent there of this shard. That is all this program asks. */
struct any_schedule {
	const struct topo *t;
	struct lp *lp;
	int n, m, steps;
	int *kept;	/* row of (pair, time, node): what comes is there or goes on */
	int *sent;	/* row of (pair, step, arc) */
	int *room;	/* row of (step, arc) */
};

static void any_rows(struct any_schedule *y)
{
	struct err err = { 0 };
	int pairs = y->n * y->n, times = y->steps + 1;

	for (int i = 0; i < pairs * times * y->n; i++) {
		int o = i / (times * y->n) / y->n, v = i / (times * y->n) % y->n;
		int t = i / y->n % times, u = i % y->n;
		double rhs = (t == y->steps && u == v) - (t == 0 && u == o);

		must(lp_add_row(y->lp, LP_EQ, o == v ? 0 : rhs, &y->kept[i], &err), &err);
	}
	for (int i = 0; i < pairs * y->steps * y->m; i++) {
		must(lp_add_row(y->lp, LP_GE, 0, &y->sent[i], &err), &err);
	}
	for (int i = 0; i < y->steps * y->m; i++) {
		must(lp_add_row(y->lp, LP_GE, 0, &y->room[i], &err), &err);
	}
}

static int kept(const struct any_schedule *y, int pair, int time, int node)
{
	return y->kept[(pair * (y->steps + 1) + time) * y->n + node];
}

/* The flow of one pair: it stays, or crosses an arc. */
static void any_flow(struct any_schedule *y, int pair)
{
	static const double v[] = { -1, 1, -1 };
	struct err err = { 0 };

	for (int t = 0; t < y->steps; t++) {
		for (int u = 0; u < y->n; u++) {
			int rows[] = { kept(y, pair, t, u), kept(y, pair, t + 1, u) };

			must(lp_add_col(y->lp, 0, 0, 1, false, 2, rows, v, NULL, &err), &err);
		}
		for (int a = 0; a < y->m; a++) {
			const struct topo_arc *x = topo_arc(y->t, a);
			int rows[] = { kept(y, pair, t, x->src), kept(y, pair, t + 1, x->dst),
				       y->sent[(pair * y->steps + t) * y->m + a] };

			if (x->src != x->dst) {
				must(lp_add_col(y->lp, 0, 0, 1, false, 3, rows, v, NULL, &err),
				     &err);
			}
		}
	}
}

/* What is sent of an origin's shard over each arc, and the loads. */
static void any_loads(struct any_schedule *y)
{
	int most = y->n + y->m + 1;
	double *v = malloc((size_t)most * sizeof(*v));
	int *rows = malloc((size_t)most * sizeof(*rows));
	struct err err = { 0 };

	for (int t = 0; t < y->steps; t++) {
		for (int a = 0; a < y->m; a++) {
			for (int o = 0; o < y->n; o++) {
				for (int d = 0; d < y->n; d++) {
					rows[d] = y->sent[((o * y->n + d) * y->steps + t) * y->m +
							  a];
					v[d] = 1;
				}
				rows[y->n] = y->room[t * y->m + a];
				v[y->n] = -1;
				must(lp_add_col(y->lp, 0, 0, 1, false, y->n + 1, rows, v, NULL,
						&err), &err);
			}
		}
		for (int a = 0; a < y->m; a++) {
			rows[a] = y->room[t * y->m + a];
			v[a] = (double)topo_arc(y->t, a)->cap;
		}
		must(lp_add_col(y->lp, 1, 0, LP_INF, false, y->m, rows, v, NULL, &err), &err);
	}
	free(v);
	free(rows);
}

static double bound_of_any(const struct topo *t, int steps)
{
	struct any_schedule y = { .t = t, .n = topo_n(t), .m = topo_m(t), .steps = steps };
	size_t pairs = (size_t)(y.n * y.n);
	struct lp_result res;
	struct err err = { 0 };

	y.kept = malloc(pairs * (size_t)(steps + 1) * (size_t)y.n * sizeof(int));
	y.sent = malloc(pairs * (size_t)(steps * y.m) * sizeof(int));
	y.room = malloc((size_t)(steps * y.m) * sizeof(int));
	y.lp = lp_new();
	must(0, &err);
	any_rows(&y);
	for (int pair = 0; pair < y.n * y.n; pair++) {
		if (pair / y.n != pair % y.n) {
			any_flow(&y, pair);
		}
	}
	any_loads(&y);
	must(lp_run(y.lp, NULL, &res, &err), &err);
	assert_int_equal(res.outcome, LP_OPTIMAL);
	lp_free(y.lp);
	free(y.kept);
	free(y.sent);
	free(y.room);
	return res.objective;
}

static void test_bound_of_any(void **state)
{
	struct rng rng;
	int met = 0;

	(void)state;
	rng_seed(&rng, 5);
	for (int i = 0; i < 8; i++) {
		struct topo *t = random_digraph(&rng, 4, 3 + i % 3, 1 + i % 2);
		int extra = i % 2;
		double sum = assert_optimum(t, extra);
		double bound = bound_of_any(t, topo_diameter(t) + extra);

		assert_true(sum >= bound * (1 - 1e-6));
		met += sum <= bound * (1 + 1e-5);
		topo_free(t);
	}
	assert_true(met >= 4);
}

/* ---- schedules ---- */

/* What late takers reach, replayed and against breadth-first broadcast. */
static double assert_late(enum coll_kind kind, const struct topo *t, int extra, double *bfb_factor)
{
	int phases = kind == COLL_ALLREDUCE ? 2 : 1, steps, least;
	struct coll_sched *s, *b;
	struct err err = { 0 };
	double factor;
	mpq_t bound;

	must(coll_late(kind, copy_of(t), extra, NULL, &s, &err), &err);
	must(coll_bfb(kind, copy_of(t), &b, &err), &err);
	factor = replay(s, &steps);
	*bfb_factor = replay(b, &least);
	assert_true(steps <= least + phases * extra);
	assert_true(coll_chunks(s) <= COLL_BFB_MAX_CHUNKS);
	/* Loads of a step are rounded up when there are most chunks. */
	assert_true(factor <= *bfb_factor + (coll_chunks(s) < COLL_BFB_MAX_CHUNKS ? 1e-9 : 0.01));
	assert_int_equal(topo_group_order(coll_group(s)), topo_group_order(coll_group(b)));
	mpq_init(bound);
	coll_late_bound(kind, t, bound);
	assert_true(factor >= mpq_get_d(bound) - 1e-12);
	mpq_clear(bound);
	coll_free(s);
	coll_free(b);
	return factor;
}

static void test_never_worse(void **state)
{
	static const enum coll_kind kinds[] = {
		COLL_ALLGATHER, COLL_REDUCE_SCATTER, COLL_ALLREDUCE,
	};
	struct rng rng;
	int better = 0;

	(void)state;
	rng_seed(&rng, 3);
	for (int i = 0; i < 30; i++) {
		struct topo *t = random_digraph(&rng, 5 + i % 6, 5 + i % 9, 1 + i % 3);
		double before;

		better += assert_late(kinds[i % 3], t, i % 2, &before) < before - 1e-9;
		topo_free(t);
	}
	assert_true(better > 10);
}

/* Where breadth-first broadcast is not balanced: the bound exactly, in its steps or in one
 * more. */
static void test_bound_met(void **state)
{
	static const struct {
		const char *expr;
		int extra;
	} rows[] = {
		{ "DiCay(25:4,r=7,{(17,3),(1,0),(7,0),(18,3)})", 0 },
		{ "DiCay(32:8,r=29,{(9,0),(26,4),(9,7),(10,7)})", 0 },
		{ "DiCay(16:4,r=3,{(9,3),(4,3),(9,0)})", 0 },
		{ "DiCay(5:20,r=2,{(1,11),(1,17),(4,16),(2,7)})", 1 },
		{ "Jellyfish(32,4,1)", 1 },
		{ "Cap(Jellyfish(32,4,1),400)", 1 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct topo *t = graph_of(rows[i].expr);
		double n = topo_n(t), before, factor;

		factor = assert_late(COLL_ALLGATHER, t, rows[i].extra, &before);
		assert_true(before > (n - 1) / n + 1e-9);
		assert_true(fabs(factor - (n - 1) / n) < 1e-12);
		topo_free(t);
	}
}

/* ---- by time ---- */

/* By the prices of c, and whether anything takes less than below_ns; made->time_ns. */
static struct coll_sched *make_timed(enum coll_kind kind, const struct topo *t, int extra,
				     const struct coll_cost *c, double below_ns, int64_t *ns)
{
	struct coll_late_aim aim = { c, below_ns, COLL_LATE_MAX_WORK };
	struct coll_sched *s;
	struct coll_report r;
	struct err err = { 0 };

	must(coll_late(kind, copy_of(t), extra, &aim, &s, &err), &err);
	coll_report_init(&r);
	if (s) {
		must(coll_verify(s, &r, &err), &err);
		must(coll_time(s, &r, c, ns, NULL, &err), &err);
	}
	coll_report_fini(&r);
	return s;
}

/* Near the exact one; with half its time to beat there is none, with a little more there is. */
static void assert_timed(enum coll_kind kind, const struct topo *t, int extra)
{
	const struct coll_cost c = { .alpha_ns = 1000, .link_bps = 100000000000,
				     .size_bytes = 1 << 22 };
	struct coll_sched *exact, *s;
	struct coll_report r;
	struct err err = { 0 };
	int64_t ns, exact_ns;

	must(coll_late(kind, copy_of(t), extra, NULL, &exact, &err), &err);
	coll_report_init(&r);
	must(coll_verify(exact, &r, &err), &err);
	must(coll_time(exact, &r, &c, &exact_ns, NULL, &err), &err);
	s = make_timed(kind, t, extra, &c, 0, &ns);
	assert_non_null(s);
	assert_true((double)ns < (double)exact_ns * 1.001);
	coll_free(s);
	assert_null(make_timed(kind, t, extra, &c, (double)exact_ns / 2, &ns));
	s = make_timed(kind, t, extra, &c, (double)exact_ns * 1.01, &ns);
	/* Steps that are left unused count in advance: without them it is made with fewer. */
	assert_true(s || extra > 0);
	assert_true(!s || (double)ns < (double)exact_ns * 1.01);
	coll_free(s);
	coll_free(exact);
	coll_report_fini(&r);
}

/* Digraphs that are their own reverse are solved once for both halves, also with parallel links of
 * different capacities. */
static void test_timed(void **state)
{
	static const enum coll_kind kinds[] = {
		COLL_ALLGATHER, COLL_REDUCE_SCATTER, COLL_ALLREDUCE,
	};
	static const char *const graphs[] = {
		"GenKautz(2,24)", "Mesh(3,5)", "Jellyfish(14,3,2)", "Prod(Cap(Ring(4),2),Ring(3))",
		"Multi(Mesh(2,3),2)", "DiCay(7:3,r=2,{(1,1),(3,0)})", NULL,
	};
	struct rng rng;

	(void)state;
	rng_seed(&rng, 5);
	for (int i = 0; i < 12; i++) {
		struct topo *t = random_digraph(&rng, 5 + i % 6, 5 + i % 9, 1 + i % 3);

		assert_timed(kinds[i % 3], t, i % 2);
		topo_free(t);
	}
	for (const char *const *e = graphs; *e; e++) {
		struct topo *t = graph_of(*e);

		assert_timed(COLL_ALLREDUCE, t, 0);
		assert_timed(COLL_ALLREDUCE, t, 1);
		topo_free(t);
	}
}

/* Links whose capacities have a common divisor, and one far larger. */
static struct topo *unequal(int64_t unit, int64_t large)
{
	struct err err = { 0 };
	struct topo *t;

	must(topo_new(4, &t, &err), &err);
	for (int u = 0; u < 4; u++) {
		must(topo_add_arc(t, u, (u + 1) % 4, unit, 0, &err), &err);
		must(topo_add_arc(t, u, (u + 3) % 4, u ? 2 * unit : large, 0, &err), &err);
	}
	topo_freeze(t);
	return t;
}

static void test_capacities(void **state)
{
	struct topo *t = unequal(1000000, 3000000), *small = unequal(1, 3);
	struct coll_sched *s;
	struct err err = { 0 };
	double before, factor = assert_late(COLL_ALLGATHER, t, 0, &before);

	(void)state;
	assert_true(fabs(factor - assert_late(COLL_ALLGATHER, small, 0, &before)) < 1e-12);
	topo_free(t);
	topo_free(small);
	assert_int_equal(coll_late(COLL_ALLGATHER, unequal(1, 1 << 20), 0, NULL, &s, &err),
			 WEFT_ELIMIT);
	assert_non_null(strstr(err.msg, "1048576 times the common divisor"));
}

static void test_refused(void **state)
{
	static const int single[][2] = { { 0, 1 } };
	struct coll_sched *s;
	struct err err = { 0 };

	(void)state;
	assert_int_equal(coll_late(COLL_ALLGATHER, graph_from(2, 1, single), 0, NULL, &s, &err),
			 WEFT_EINFEASIBLE);
	assert_non_null(strstr(err.msg, "rank 1 cannot reach rank 0"));
	assert_int_equal(coll_late(COLL_ALLGATHER, graph_of("K(3)"), -1, NULL, &s, &err),
			 WEFT_EINVAL);
	assert_int_equal(coll_late(COLL_ALLGATHER, graph_of("K(3)"), COLL_LATE_MAX_EXTRA + 1,
				   NULL, &s, &err), WEFT_EINVAL);
	assert_int_equal(coll_late(COLL_ALLTOALL, graph_of("K(3)"), 0, NULL, &s, &err),
			 WEFT_EUNSUPPORTED);
	assert_int_equal(coll_late(COLL_ALLGATHER, graph_of("UniRing(1,300)"), 0, NULL, &s, &err),
			 WEFT_ELIMIT);
	assert_non_null(strstr(err.msg, "299 steps"));
	assert_int_equal(coll_late(COLL_ALLGATHER, graph_of("Jellyfish(4096,4,1)"), 0, NULL, &s,
				   &err), WEFT_ELIMIT);
	assert_null(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_optimum),
		cmocka_unit_test(test_bound_of_any),
		cmocka_unit_test(test_never_worse),
		cmocka_unit_test(test_bound_met),
		cmocka_unit_test(test_timed),
		cmocka_unit_test(test_capacities),
		cmocka_unit_test(test_refused),
	};

	return cmocka_run_group_tests_name("bfb/late", tests, NULL, NULL);
}
