/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cost: random digraphs with switches, memories and shared limits, against linear programs that
 * know neither symmetry nor trees: for every root and every set of memories that copy, a flow to
 * each node that wants a copy, at most the capacity taken on each path through switches. And
 * all-reduces against all partitions of the nodes.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collective/cost/cost.h"
#include "lib/base/number/rng.h"
#include "lib/lp/lp.h"

#define MAX_NODES 9
#define MAX_PATHS 400
#define ACCURACY 1e-5

/* A path through switches between nodes that hold data. */
struct random_path {
	int from, to, n;
	int arcs[MAX_NODES];
};

struct random_case {
	struct topo *t;
	struct random_path path[MAX_PATHS];
	int paths;
	struct lp *lp;
	int time;		/* column; -1: fixed */
	int *load;		/* row by arc, then by limit */
};

static int below(struct rng *rng, int n)
{
	return (int)rng_below(rng, (uint64_t)n);
}

/* Terminals on a ring so that all are joined, memories and switches with a few of them; on some
 * digraphs costs and shared limits. */
static struct topo *random_digraph(struct rng *rng)
{
	char text[4000] = "undirected\n";
	int terminals = 2 + below(rng, 3), memories = below(rng, 3), switches = below(rng, 2);
	int n = terminals + memories + switches;
	size_t at;
	struct topo *t;
	struct err err = { 0 };

	at = strlen(text);
	for (int u = terminals; u < n; u++) {
		at += (size_t)snprintf(text + at, sizeof(text) - at, "%s %d\n",
				       u < terminals + memories ? "memory" : "switch", u);
	}
	at += (size_t)snprintf(text + at, sizeof(text) - at, "limit a %d\n", 1 + below(rng, 9));
	at += (size_t)snprintf(text + at, sizeof(text) - at, "0 1 %d 0 %d a\n", 1 + below(rng, 5),
			       below(rng, 3));
	for (int u = 1; u < n; u++) {
		int links = u < terminals ? 1 : 2;

		for (int i = 0; i < links; i++) {
			at += (size_t)snprintf(text + at, sizeof(text) - at, "%d %d %d 0 %d%s\n",
					       (u + i) % terminals == u ? 0 : (u + i) % terminals,
					       u == (u + i) % terminals ? (u + 1) % n : u,
					       1 + below(rng, 5), below(rng, 3),
					       below(rng, 4) ? "" : " a");
		}
	}
	for (int i = below(rng, 5); i > 0; i--) {
		int u = below(rng, n), v = below(rng, n);

		if (u != v) {
			at += (size_t)snprintf(text + at, sizeof(text) - at, "%d %d %d 0 %d\n", u,
					       v, 1 + below(rng, 5), below(rng, 3));
		}
	}
	if (topo_from_edges(text, strlen(text), &t, &err)) {
		fail_msg("%s: %s", text, err.msg);
	}
	return t;
}

static bool holds(const struct topo *t, int u)
{
	return topo_node_flags(t, u) & TOPO_CAN_COPY;
}

/* All simple paths from `from` through switches. */
static void list_paths(struct random_case *x, int from, int u, int n, int *arcs, unsigned seen)
{
	int first, degree = topo_out(x->t, u, &first);

	for (int a = first; a < first + degree; a++) {
		int v = topo_arc(x->t, a)->dst;

		if (seen >> v & 1) {
			continue;
		}
		arcs[n] = a;
		if (holds(x->t, v)) {
			struct random_path *p = &x->path[x->paths++];

			assert_true(x->paths <= MAX_PATHS);
			*p = (struct random_path){ from, v, n + 1, { 0 } };
			memcpy(p->arcs, arcs, ((size_t)n + 1) * sizeof(*arcs));
		} else {
			list_paths(x, from, v, n + 1, arcs, seen | 1U << v);
		}
	}
}

static int add_row(struct lp *lp, enum lp_sense sense, double rhs)
{
	int row;

	assert_int_equal(lp_add_row(lp, sense, rhs, &row, NULL), 0);
	return row;
}

/* Rows of loads; with a time their right-hand side, else its column. */
static void begin(struct random_case *x, double time)
{
	int m = topo_m(x->t), limits = topo_n_limits(x->t), rows[200];
	double caps[200];

	x->lp = lp_new();
	x->load = calloc((size_t)(m + limits), sizeof(*x->load));
	for (int i = 0; i < m + limits; i++) {
		int64_t cap = i < m ? topo_arc(x->t, i)->cap : topo_limit(x->t, i - m)->cap;

		rows[i] = x->load[i] = add_row(x->lp, LP_LE, time < 0 ? 0 : time * (double)cap);
		caps[i] = -(double)cap;
	}
	if (time < 0) {
		assert_int_equal(lp_add_col(x->lp, 1, 0, LP_INF, false, m + limits, rows, caps,
					    NULL, NULL), 0);
	}
}

/* What a path takes: a column with one more row, of value `by`. */
static int add_taken(struct random_case *x, const struct random_path *p, bool costs,
		     const int *more, const double *by, int n)
{
	int rows[300], used = 0, col;
	double values[300], cost = 0;

	for (int i = 0; i < topo_m(x->t) + topo_n_limits(x->t); i++) {
		int times = 0;

		for (int k = 0; k < p->n; k++) {
			const int32_t *limits;
			int on = topo_arc_limits(x->t, p->arcs[k], &limits);

			times += p->arcs[k] == i;
			for (int l = 0; l < on; l++) {
				times += topo_m(x->t) + limits[l] == i;
			}
		}
		if (times) {
			rows[used] = x->load[i];
			values[used++] = times;
		}
	}
	for (int i = 0; i < n; i++) {
		rows[used] = more[i];
		values[used++] = by[i];
	}
	for (int k = 0; k < p->n; k++) {
		cost += (double)topo_arc(x->t, p->arcs[k])->cost;
	}
	assert_int_equal(lp_add_col(x->lp, costs ? cost : 0, 0, LP_INF, false, used, rows, values,
				    &col, NULL), 0);
	return col;
}

/* One root and one set of memories: its share is a column in row `whole`. */
static void add_class(struct random_case *x, int root, unsigned set, int whole, bool costs)
{
	int n = topo_n(x->t), *taken[MAX_NODES], *node[MAX_NODES], rows[100], used = 0;
	double values[100];

	rows[used] = whole;
	values[used++] = 1;
	for (int d = 0; d < n; d++) {
		taken[d] = NULL;
		if (!(set >> d & 1) || d == root) {
			continue;
		}
		taken[d] = calloc((size_t)x->paths, sizeof(int));
		node[d] = calloc((size_t)n, sizeof(int));
		for (int v = 0; v < n; v++) {
			node[d][v] = add_row(x->lp, LP_EQ, 0);
		}
		/* in - out = share at d, less a share at the root. */
		rows[used] = node[d][d];
		values[used++] = -1;
		rows[used] = node[d][root];
		values[used++] = 1;
		for (int i = 0; i < x->paths; i++) {
			taken[d][i] = add_row(x->lp, LP_LE, 0);
		}
	}
	assert_int_equal(lp_add_col(x->lp, 0, 0, LP_INF, false, used, rows, values, NULL, NULL), 0);
	for (int i = 0; i < x->paths; i++) {
		const struct random_path *p = &x->path[i];
		int more[MAX_NODES], k = 0;
		double by[MAX_NODES];

		if (!(set >> p->from & 1) || !(set >> p->to & 1)) {
			continue;
		}
		for (int d = 0; d < n; d++) {
			if (taken[d]) {
				const int flow[] = { taken[d][i], node[d][p->from],
						     node[d][p->to] };
				const double unit[] = { 1, -1, 1 };

				more[k] = taken[d][i];
				by[k++] = -1;
				assert_int_equal(lp_add_col(x->lp, 0, 0, LP_INF, false, 3, flow,
							    unit, NULL, NULL), 0);
			}
		}
		add_taken(x, p, costs, more, by, k);
	}
	for (int d = 0; d < n; d++) {
		if (taken[d]) {
			free(taken[d]);
			free(node[d]);
		}
	}
}

/* Least time (time < 0) or, at that time, cost of an all-gather or broadcast. */
static double solve(struct random_case *x, int root, double time)
{
	struct lp_result res;
	struct err err = { 0 };
	unsigned terminals = (1U << topo_ranks(x->t)) - 1, memories = 0;

	for (int u = topo_ranks(x->t); u < topo_n(x->t); u++) {
		memories |= (unsigned)holds(x->t, u) << u;
	}
	begin(x, time);
	for (int o = 0; o < topo_ranks(x->t); o++) {
		int whole;

		if (root >= 0 && o != root) {
			continue;
		}
		whole = add_row(x->lp, LP_EQ, 1);
		for (unsigned s = memories;; s = (s - 1) & memories) {
			add_class(x, o, terminals | s, whole, time >= 0);
			if (s == 0) {
				break;
			}
		}
	}
	if (lp_run(x->lp, NULL, &res, &err)) {
		fail_msg("%s", err.msg);
	}
	assert_int_equal(res.outcome, LP_OPTIMAL);
	lp_free(x->lp);
	free(x->load);
	return res.objective;
}

static void rate_of(const struct topo *t, enum coll_kind kind, int root, bool alone,
		    struct coll_rate *r)
{
	struct coll_rate_demand demand = { kind, root, 1 };
	struct coll_rate_options opt = { .min_cost = true, .alone = alone };
	struct err err = { 0 };

	coll_rate_init(r);
	if (coll_rate_find(t, &demand, 1, &opt, r, &err)) {
		fail_msg("%s", err.msg);
	}
}

static void expect_near(const char *what, int i, double got, double want)
{
	if (fabs(got - want) > ACCURACY * (1 + want)) {
		fail_msg("case %d: %s %.9g, expected %.9g", i, what, got, want);
	}
}

static void against_programs(void **state)
{
	struct rng rng;
	int copied = 0;

	(void)state;
	rng_seed(&rng, 77);
	for (int i = 0; i < 60; i++) {
		static struct random_case x;
		struct coll_rate r, alone;
		int root = i % 3 ? -1 : 0, arcs[MAX_NODES];
		enum coll_kind kind = root < 0 ? COLL_ALLGATHER : COLL_BROADCAST;

		x.t = random_digraph(&rng);
		x.paths = 0;
		for (int u = 0; u < topo_n(x.t); u++) {
			if (holds(x.t, u)) {
				list_paths(&x, u, u, 0, arcs, 1U << u);
			}
		}
		copied += topo_holders(x.t) > topo_ranks(x.t);
		rate_of(x.t, kind, root < 0 ? 0 : root, false, &r);
		rate_of(x.t, kind, root < 0 ? 0 : root, true, &alone);
		assert_true(mpq_equal(r.time, alone.time));
		assert_true(mpq_equal(r.cost, alone.cost));
		assert_true(mpq_equal(r.time, r.time_bound));
		assert_true(mpq_equal(r.cost, r.cost_bound));
		expect_near("time", i, mpq_get_d(r.time), solve(&x, root, -1));
		expect_near("cost", i, mpq_get_d(r.cost),
			    solve(&x, root, mpq_get_d(r.time) * (1 + 1e-9)));
		coll_rate_fini(&r);
		coll_rate_fini(&alone);
		topo_free(x.t);
	}
	assert_true(copied > 10);
}

/* Most of (parts - 1) / capacity between parts, one direction, over all partitions of n nodes. */
static double strength(const struct topo *t, int u, int parts, int *part)
{
	double best = 0, between = 0;

	if (u < topo_n(t)) {
		for (int p = 0; p <= parts; p++) {
			part[u] = p;
			best = fmax(best, strength(t, u + 1, p == parts ? parts + 1 : parts, part));
		}
		return best;
	}
	for (int a = 0; a < topo_m(t); a++) {
		const struct topo_arc *arc = topo_arc(t, a);

		between += part[arc->src] != part[arc->dst] ? (double)arc->cap / 2 : 0;
	}
	return between > 0 ? (parts - 1) / between : 0;
}

/* One tree both ways for each piece (Tutte 1961, Nash-Williams 1961). */
static void all_reduces(void **state)
{
	static const char leaf[] = "undirected\n0 1 4\n1 2 4\n2 0 4\n2 3 1\n";
	struct rng rng;
	struct coll_rate r;
	struct topo *t;

	(void)state;
	rng_seed(&rng, 11);
	for (int i = 0; i < 40; i++) {
		int n = 3 + below(&rng, 4), part[MAX_NODES];
		char text[1000] = "undirected\n";
		size_t at = strlen(text);

		for (int u = 1; u < n; u++) {
			at += (size_t)snprintf(text + at, sizeof(text) - at, "%d %d %d\n",
					       below(&rng, u), u, 1 + below(&rng, 6));
		}
		for (int k = below(&rng, 6); k > 0; k--) {
			int u = below(&rng, n), v = below(&rng, n);

			at += (size_t)snprintf(text + at, sizeof(text) - at, "%d %d %d\n", u,
					       u == v ? (v + 1) % n : v, 1 + below(&rng, 6));
		}
		assert_int_equal(topo_from_edges(text, strlen(text), &t, NULL), 0);
		rate_of(t, COLL_ALLREDUCE, 0, false, &r);
		assert_true(mpq_equal(r.time, r.time_bound));
		expect_near("all-reduce", i, mpq_get_d(r.time), strength(t, 0, 0, part));
		coll_rate_fini(&r);
		topo_free(t);
	}
	/* Half of what a reduce-scatter and an all-gather take. */
	assert_int_equal(topo_from_edges(leaf, strlen(leaf), &t, NULL), 0);
	rate_of(t, COLL_ALLREDUCE, 0, false, &r);
	assert_int_equal(mpq_cmp_ui(r.time, 1, 1), 0);
	coll_rate_fini(&r);
	topo_free(t);
}

/* One program on a digraph of terminals, and what cuts and packed trees say. */
static void compare(const struct topo *t, enum coll_kind kind, bool min_cost)
{
	struct coll_rate_demand demand = { kind, 1, 2 };
	struct coll_rate_options opt = { .min_cost = min_cost };
	struct coll_rate r[2];

	for (int i = 0; i < 2; i++) {
		struct err err = { 0 };

		coll_rate_init(&r[i]);
		opt.sensitivity = i;
		if (coll_rate_find(t, &demand, 1, &opt, &r[i], &err)) {
			fail_msg("%s", err.msg);
		}
		assert_true(mpq_equal(r[i].time, r[i].time_bound));
		assert_true(mpq_equal(r[i].cost, r[i].cost_bound));
	}
	assert_true(mpq_equal(r[0].time, r[1].time));
	assert_true(mpq_equal(r[0].cost, r[1].cost));
	coll_rate_fini(&r[0]);
	coll_rate_fini(&r[1]);
}

static void cuts(void **state)
{
	struct rng rng;

	(void)state;
	rng_seed(&rng, 23);
	for (int i = 0; i < 40; i++) {
		int n = 2 + below(&rng, 6);
		char text[2000];
		size_t at = 0;
		struct topo *t;

		for (int a = 0; a < n + below(&rng, 10); a++) {
			int u = a < n ? a : below(&rng, n);
			int v = a < n ? (a + 1) % n : below(&rng, n);

			at += (size_t)snprintf(text + at, sizeof(text) - at, "%d %d %d 0 %d\n", u,
					       v, 1 + below(&rng, 1000), below(&rng, 4));
		}
		assert_int_equal(topo_from_edges(text, at, &t, NULL), 0);
		for (int kind = 0; kind < COLL_KINDS; kind++) {
			if (kind != COLL_ALLREDUCE && kind != COLL_ALLTOALL) {
				compare(t, (enum coll_kind)kind, i % 2);
			}
		}
		topo_free(t);
	}
}

/* What is reduced goes through memories, what is copied from them. */
static void transposed(void **state)
{
	struct rng rng;

	(void)state;
	rng_seed(&rng, 3);
	for (int i = 0; i < 30; i++) {
		struct topo *t = random_digraph(&rng), *back, *plain;
		struct coll_rate in, out;

		/* Memories as switches, which no copy is made at. */
		assert_int_equal(topo_transpose(t, &back, NULL, NULL), 0);
		assert_int_equal(topo_new(topo_n(t), &plain, NULL), 0);
		for (int u = topo_ranks(t); u < topo_n(t); u++) {
			topo_set_node(plain, u, TOPO_SWITCH, 0);
		}
		for (int a = 0; a < topo_m(back); a++) {
			const struct topo_arc *arc = topo_arc(back, a);

			assert_int_equal(topo_add_arc_like(plain, arc->src, arc->dst, arc, NULL),
					 0);
		}
		assert_int_equal(topo_copy_limits(back, NULL, plain, NULL), 0);
		topo_freeze(plain);
		rate_of(t, COLL_REDUCE_SCATTER, 0, false, &in);
		rate_of(plain, COLL_ALLGATHER, 0, i % 2, &out);
		assert_true(mpq_equal(in.time, out.time));
		assert_true(mpq_equal(in.cost, out.cost));
		coll_rate_fini(&in);
		coll_rate_fini(&out);
		topo_free(plain);
		topo_free(back);
		topo_free(t);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(against_programs),
		cmocka_unit_test(all_reduces),
		cmocka_unit_test(cuts),
		cmocka_unit_test(transposed),
	};

	return cmocka_run_group_tests_name("cost/random", tests, NULL, NULL);
}
