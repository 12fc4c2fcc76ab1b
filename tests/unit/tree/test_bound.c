/* SPDX-License-Identifier: Apache-2.0 */
/* The bounds against two others who know them: all cuts one by one, and linear
 * programs of what any schedule has to move. */
#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "common.h"
#include "lib/lp/lp.h"

#define MAX_ROWS 256

static const enum coll_kind kinds[] = {
	COLL_BROADCAST, COLL_REDUCE, COLL_GATHER, COLL_SCATTER, COLL_ALLGATHER, COLL_REDUCE_SCATTER,
};

static bool is_reversed(enum coll_kind kind)
{
	return is_towards(kind) || kind == COLL_REDUCE_SCATTER;
}

/* Capacity into a set of nodes, or out of it. */
static int64_t boundary(const struct topo *t, unsigned set, bool outwards)
{
	int64_t cap = 0;

	for (int a = 0; a < topo_m(t); a++) {
		const struct topo_arc *arc = topo_arc(t, a);
		int from = outwards ? arc->dst : arc->src;
		int to = outwards ? arc->src : arc->dst;

		cap += !(set >> from & 1) && (set >> to & 1) ? arc->cap : 0;
	}
	return cap;
}

/* What has to cross the boundary of a set of nodes, in vectors times ranks over
 * capacity; with a root the set is without it. */
static void fullness(const struct topo *t, int ranks, unsigned set, enum coll_kind kind, mpq_t q)
{
	int64_t inside = __builtin_popcount(set & ((1u << ranks) - 1)), need = inside;

	if (!coll_has_root(kind)) {
		need = inside > 0 ? ranks - inside : 0;
	} else if (is_whole(kind)) {
		need = inside > 0 ? ranks : 0;
	}
	rat_set(q, need, need ? boundary(t, set, is_reversed(kind)) : 1);
}

/* At least what one node does, and no less than q. */
static void use_ports(mpq_t q, enum coll_kind kind, int ranks, int ports)
{
	mpq_t by;

	mpq_init(by);
	rat_set(by, ports, ranks);
	mpq_mul(q, q, by);
	rat_set(by, is_whole(kind) ? ranks : kind == COLL_ALLREDUCE ? 2 * (ranks - 1) : ranks - 1,
		ranks);
	if (mpq_cmp(by, q) > 0) {
		mpq_set(q, by);
	}
	mpq_clear(by);
}

/* The bound by the definition in bound.h. */
static void all_cuts(const struct topo *t, int ranks, enum coll_kind kind, int root, int ports,
		     mpq_t best)
{
	mpq_t q;

	mpq_init(q);
	rat_set(best, 0, 1);
	for (unsigned set = 1; set < 1u << topo_n(t); set++) {
		if (!coll_has_root(kind) || !(set >> root & 1)) {
			fullness(t, ranks, set, kind, q);
			if (mpq_cmp(q, best) > 0) {
				mpq_set(best, q);
			}
		}
	}
	use_ports(best, kind, ranks, ports);
	mpq_clear(q);
}

static void test_all_cuts(void **state)
{
	mpq_t bound, cuts;
	struct rng r;

	(void)state;
	rng_seed(&r, 21);
	mpq_inits(bound, cuts, NULL);
	for (int i = 0; i < 1500; i++) {
		struct err err = { 0 };
		int ranks = 2 + (int)rng_below(&r, 5), switches = (int)rng_below(&r, 3);
		int more = (int)rng_below(&r, 12), unit = 1 + (int)rng_below(&r, 3);
		struct topo *t = random_digraph(&r, ranks + switches, more, 9, unit, switches);
		enum coll_kind kind = kinds[i % 6];
		int root = (int)rng_below(&r, (uint64_t)ranks), ports = 1 + (int)rng_below(&r, 40);

		must(coll_bound(t, NULL, kind, root, ports, bound, &err), &err);
		all_cuts(t, ranks, kind, root, ports, cuts);
		assert_true(mpq_equal(bound, cuts));
		topo_free(t);
	}
	mpq_clears(bound, cuts, NULL);
}

/* Capacity of the least cut between some ranks and the others. */
static int64_t min_into(const struct topo *t, int ranks, unsigned part)
{
	int64_t least = INT64_MAX;

	for (unsigned others = 0; others < 1u << (topo_n(t) - ranks); others++) {
		int64_t cap = boundary(t, part | others << ranks, false);

		least = cap < least ? cap : least;
	}
	return least;
}

/* Partitions one by one: ranks from `at` on join a part or begin one. */
static void all_partitions(const struct topo *t, int ranks, int at, unsigned *parts, int n,
			   mpq_t best)
{
	int64_t cap = 0;
	mpq_t q;

	if (at < ranks) {
		for (int i = 0; i <= n; i++) {
			parts[i] = i < n ? parts[i] : 0;
			parts[i] |= 1u << at;
			all_partitions(t, ranks, at + 1, parts, i < n ? n : n + 1, best);
			parts[i] &= ~(1u << at);
		}
		return;
	}
	for (int i = 0; i < n; i++) {
		cap += min_into(t, ranks, parts[i]);
	}
	mpq_init(q);
	if (n > 1) {
		rat_set(q, 2 * (n - 1), cap);
	}
	if (mpq_cmp(q, best) > 0) {
		mpq_set(best, q);
	}
	mpq_clear(q);
}

static void test_all_partitions(void **state)
{
	mpq_t bound, best, q;
	struct rng r;

	(void)state;
	rng_seed(&r, 22);
	mpq_inits(bound, best, q, NULL);
	for (int i = 0; i < 400; i++) {
		struct err err = { 0 };
		int ranks = 2 + (int)rng_below(&r, 4), switches = (int)rng_below(&r, 3);
		int more = (int)rng_below(&r, 14);
		struct topo *t = random_digraph(&r, ranks + switches, more, 9, 1, switches);
		int ports = 1 + (int)rng_below(&r, 40);
		unsigned parts[8];

		must(coll_bound(t, NULL, COLL_ALLREDUCE, 0, ports, bound, &err), &err);
		rat_set(best, 0, 1);
		all_partitions(t, ranks, 0, parts, 0, best);
		for (unsigned set = 1; set < (1u << ranks) - 1; set++) {
			rat_set(q, 1, min_into(t, ranks, set));
			if (mpq_cmp(q, best) > 0) {
				mpq_set(best, q);
			}
		}
		rat_set(q, ranks, 1);
		mpq_mul(best, best, q);
		use_ports(best, COLL_ALLREDUCE, ranks, ports);
		assert_true(mpq_equal(bound, best));
		topo_free(t);
	}
	mpq_clears(bound, best, q, NULL);
}

/* A linear program whose column T is the time, with rows cap[a]: what arc a
 * carries is at most T times its capacity. */
struct program {
	const struct topo *t;
	struct lp *lp;
	int cap[MAX_ROWS];
};

static void program_init(struct program *p, const struct topo *t)
{
	struct err err = { 0 };
	double caps[MAX_ROWS];
	int col;

	p->t = t;
	p->lp = lp_new();
	must(0, &err);
	for (int a = 0; a < topo_m(t); a++) {
		must(lp_add_row(p->lp, LP_LE, 0, &p->cap[a], &err), &err);
		caps[a] = -(double)topo_arc(t, a)->cap;
	}
	must(lp_add_col(p->lp, 1, 0, LP_INF, false, topo_m(t), p->cap, caps, &col, &err), &err);
}

/* A flow that ends with demand[v] in node v; what it carries on arc a enters row
 * on[a]. */
static void add_flow(struct program *p, const double *demand, const int *on)
{
	struct err err = { 0 };
	int row[MAX_ROWS], col;

	for (int v = 0; v < topo_n(p->t); v++) {
		must(lp_add_row(p->lp, LP_EQ, demand[v], &row[v], &err), &err);
	}
	for (int a = 0; a < topo_m(p->t); a++) {
		const struct topo_arc *arc = topo_arc(p->t, a);
		int rows[] = { on[a], row[arc->src], row[arc->dst] };
		double values[] = { 1, -1, 1 };

		if (arc->src != arc->dst) {
			must(lp_add_col(p->lp, 0, 0, LP_INF, false, 3, rows, values, &col, &err),
			     &err);
		}
	}
}

/* Scatter: one flow, a shard for every rank. */
static void add_shards(struct program *p, int root)
{
	double demand[MAX_ROWS];

	for (int v = 0; v < topo_n(p->t); v++) {
		demand[v] = v == root ? 1 - topo_n(p->t) : 1;
	}
	add_flow(p, demand, p->cap);
}

/* Broadcast: a flow of the vector to every rank, of which an arc carries the
 * largest, since data is copied. */
static void add_copies(struct program *p, int root)
{
	struct err err = { 0 };
	int on[MAX_ROWS], n = topo_n(p->t), m = topo_m(p->t);
	static int rows[MAX_ROWS][MAX_ROWS];
	double ones[MAX_ROWS];

	for (int a = 0; a < m; a++) {
		int list[MAX_ROWS], col;

		list[0] = p->cap[a];
		ones[0] = 1;
		for (int v = 0; v < n; v++) {
			must(lp_add_row(p->lp, LP_LE, 0, &rows[v][a], &err), &err);
			list[v + 1] = rows[v][a];
			ones[v + 1] = -1;
		}
		must(lp_add_col(p->lp, 0, 0, LP_INF, false, n + 1, list, ones, &col, &err), &err);
	}
	for (int v = 0; v < n; v++) {
		double demand[MAX_ROWS] = { 0 };

		if (v != root) {
			memcpy(on, rows[v], sizeof(on));
			demand[v] = n;
			demand[root] = -n;
			add_flow(p, demand, on);
		}
	}
}

static void test_programs(void **state)
{
	struct rng r;
	mpq_t bound;

	(void)state;
	rng_seed(&r, 22);
	mpq_init(bound);
	for (int i = 0; i < 120; i++) {
		struct err err = { 0 };
		int n = 2 + (int)rng_below(&r, 4), more = (int)rng_below(&r, 8);
		struct topo *t = random_digraph(&r, n, more, 7, 1, 0);
		int root = (int)rng_below(&r, (uint64_t)n);
		bool whole = i % 2;
		struct lp_result res;
		struct program p;

		program_init(&p, t);
		if (whole) {
			add_copies(&p, root);
		} else {
			add_shards(&p, root);
		}
		must(lp_run(p.lp, NULL, &res, &err), &err);
		assert_int_equal(res.outcome, LP_OPTIMAL);
		/* So many ports that only cuts count. */
		must(coll_bound(t, NULL, whole ? COLL_BROADCAST : COLL_SCATTER, root, 1000, bound,
				     &err), &err);
		assert_true(fabs(mpq_get_d(bound) - res.objective * 1000 / n) <
			    1e-5 * mpq_get_d(bound));
		lp_free(p.lp);
		topo_free(t);
	}
	mpq_clear(bound);
}

/* Bounds in closed form. */
static void test_families(void **state)
{
	static const struct {
		const char *expr;
		enum coll_kind kind;
		int64_t num, den;
	} known[] = {
		{ "Ring(8)", COLL_BROADCAST, 1, 1 },
		{ "UniRing(1,5)", COLL_SCATTER, 4, 5 },
		{ "K(8)", COLL_GATHER, 7, 8 },
		{ "Hypercube(5)", COLL_REDUCE, 1, 1 },
		{ "Torus(4,6)", COLL_SCATTER, 23, 24 },
		{ "Mesh(4,4)", COLL_BROADCAST, 2, 1 },	/* 4 ports, 2 in the corner */
		{ "Mesh(4,4)", COLL_SCATTER, 15, 8 },
		{ "GenKautz(2,24)", COLL_BROADCAST, 1, 1 },
		{ "GenKautz(4,64)", COLL_BROADCAST, 4, 3 },	/* a self-loop somewhere */
	};
	mpq_t bound, want;

	(void)state;
	mpq_inits(bound, want, NULL);
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		struct err err = { 0 };
		struct topo *t;

		must(topo_parse(known[i].expr, &t, NULL, &err), &err);
		must(coll_bound(t, NULL, known[i].kind, 0, topo_max_degree(t), bound, &err), &err);
		rat_set(want, known[i].num, known[i].den);
		assert_true(mpq_equal(bound, want));
		topo_free(t);
	}
	mpq_clears(bound, want, NULL);
}

static void test_bad_input(void **state)
{
	struct err err = { 0 };
	struct topo *t;
	mpq_t bound;

	(void)state;
	mpq_init(bound);
	must(topo_parse("K(4)", &t, NULL, &err), &err);
	assert_int_equal(coll_bound(t, NULL, COLL_SCATTER, 4, 3, bound, NULL), WEFT_EINVAL);
	assert_int_equal(coll_bound(t, NULL, COLL_SCATTER, -1, 3, bound, NULL), WEFT_EINVAL);
	topo_free(t);
	must(topo_from_edges("0 1\n1 2\n", 8, &t, &err), &err);
	must(coll_bound(t, NULL, COLL_BROADCAST, 0, 1, bound, &err), &err);
	assert_int_equal(coll_bound(t, NULL, COLL_BROADCAST, 1, 1, bound, NULL), WEFT_EINFEASIBLE);
	must(coll_bound(t, NULL, COLL_GATHER, 2, 1, bound, &err), &err);
	assert_int_equal(coll_bound(t, NULL, COLL_GATHER, 0, 1, bound, NULL), WEFT_EINFEASIBLE);
	topo_free(t);
	mpq_clear(bound);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_cuts),
		cmocka_unit_test(test_all_partitions),
		cmocka_unit_test(test_programs),
		cmocka_unit_test(test_families),
		cmocka_unit_test(test_bad_input),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
