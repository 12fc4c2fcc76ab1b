/* SPDX-License-Identifier: Apache-2.0 */
/* Topologies by time: the order, the times, and the sizes at which another is faster, each
 * against going through all. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "collective/finder/finder.h"
#include "collective/finder/private.h"
#include "lib/base/number/rng.h"
#include "tests/unit/schedule/common.h"
#include "tests/unit/world.h"

static struct coll_want want(int n, int d, bool both, enum coll_kind kind, int64_t size)
{
	return (struct coll_want){
		.q = { .n = n, .degree = d, .bidirectional = both, .kind = kind },
		.cost = { .alpha_ns = 10000, .hop_ns = 500, .forwards = true,
			  .link_bps = INT64_C(25000000000), .size_bytes = size },
	};
}

static struct coll_choices *choices(const struct coll_want *w)
{
	struct coll_choices *c;
	struct err err = { 0 };

	must(coll_choices_new(w, NULL, &c, &err), &err);
	return c;
}

/* What coll_make gives on it; INT64_MAX: no topology for the want. */
static int64_t made_ns(const struct coll_want *w, const char *expr)
{
	struct coll_make_query q;
	struct coll_made m;
	struct topo *t;
	int64_t ns;

	assert_int_equal(topo_parse(expr, &t, NULL, NULL), 0);
	if (topo_n(t) != w->q.n || topo_max_degree(t) > w->q.degree ||
	    (w->q.bidirectional && !topo_is_symmetric(t))) {
		topo_free(t);
		return INT64_MAX;
	}
	q = coll_make_job(w->q.kind, w->algorithm, t, &w->cost);
	q.expr = expr;
	assert_int_equal(coll_make(&q, &m, NULL), 0);
	topo_free(t);
	assert_int_equal(coll_verify(m.sched, NULL, NULL), 0);
	ns = m.time_ns;
	coll_made_fini(&m);
	return ns;
}

/* Closed forms against what is built. */
static void families(void **state)
{
	(void)state;
	for (int n = 2; n <= 36; n++) {
		for (int d = 1; d <= 6; d++) {
			struct finder_families all = { 0 };

			finder_list_families(n, d, d % 2, &all);
			for (size_t i = 0; i < all.list.n; i++) {
				const struct finder_family *f = &all.list.v[i];
				struct topo *t;
				int32_t dist[36], far = 0;

				assert_int_equal(topo_parse(f->expr, &t, NULL, NULL), 0);
				topo_bfs(t, 0, dist);
				for (int v = 0; v < n; v++) {
					far = dist[v] > far ? dist[v] : far;
				}
				assert_int_equal(topo_n(t), n);
				assert_int_equal(topo_max_degree(t), f->ports);
				assert_int_equal(far, f->diameter);
				assert_true(f->ports <= d);
				topo_free(t);
			}
			vec_fini(&all.list);
		}
	}
}

/* An all-reduce of few bytes goes by exchanges, or with its sums merged, in half the steps of what
 * is best for many; what is said of it is what is made, and no other topology of so many ports is
 * faster. */
static void by_exchanges(void **state)
{
	static const struct {
		int n, d;
		const char *expr;
		int steps;
	} rows[] = { { 16, 6, "Pow(K(4),2)", 2 },
		     { 81, 8, "GenKautz(8,81)", 3 },
		     { 6, 5, "K(6)", 1 } };
	static const char *const others[] = { "GenKautz(6,16)", "Hypercube(4)", "GenKautz(8,81)",
					      "K(3,3)", "Torus(9,9)", "Torus(3,3,3,3)" };

	(void)state;
	for (size_t r = 0; r < sizeof(rows) / sizeof(rows[0]); r++) {
		struct coll_want w = want(rows[r].n, rows[r].d, false, COLL_ALLREDUCE, 1 << 10);
		struct coll_choices *c;
		struct coll_choice one;
		struct coll_made m;

		w.cost.hop_ns = 0;
		w.cost.forwards = false;
		c = choices(&w);
		assert_int_equal(coll_choices_next(c, &one, NULL), 0);
		assert_string_equal(one.expr, rows[r].expr);
		assert_int_equal(one.steps, rows[r].steps);
		assert_int_equal(coll_choices_make(c, one.expr, &m, NULL), 0);
		assert_int_equal(m.time_ns, one.time_ns);
		assert_int_equal(made_ns(&w, one.expr), one.time_ns);
		for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
			assert_true(made_ns(&w, others[i]) >= one.time_ns);
		}
		coll_made_fini(&m);
		coll_choices_free(c);
	}
}

/* The one that merges sums best is found, although broadcasts on others take less time; also in
 * some more steps than it is wide. */
static void by_sums(void **state)
{
	static const struct {
		int n, d, steps;
		bool both;
		int64_t size;
		const char *expr;
	} rows[] = { { 100, 4, 4, false, 4 << 10, "GenKautz(4,100)" },
		     { 64, 4, 4, false, 16 << 10, "GenKautz(4,64)" } };

	(void)state;
	for (size_t r = 0; r < sizeof(rows) / sizeof(rows[0]); r++) {
		struct coll_want w = want(rows[r].n, rows[r].d, rows[r].both, COLL_ALLREDUCE,
					  rows[r].size);
		struct coll_choices *c;
		struct coll_choice one;

		w.cost = (struct coll_cost){ .alpha_ns = 500, .link_bps = INT64_C(400000000000),
					     .size_bytes = rows[r].size };
		c = choices(&w);
		assert_int_equal(coll_choices_next(c, &one, NULL), 0);
		assert_string_equal(one.expr, rows[r].expr);
		assert_string_equal(one.algorithm, "one-shot");
		assert_int_equal(one.steps, rows[r].steps);
		assert_int_equal(made_ns(&w, one.expr), one.time_ns);
		coll_choices_free(c);
	}
}

/* Nothing else that could be thought of is faster than the first, whose time is that of its
 * schedule; what follows is no faster. */
static void first_is_fastest(void **state)
{
	static const struct {
		int n, d;
		bool both;
	} rows[] = {
		{ 8, 4, true }, { 9, 2, false }, { 12, 3, true }, { 13, 3, true }, { 16, 2, false },
		{ 4, 6, false }, { 7, 5, true },
	};
	static const char *const others[] = {
		"K(4,4)", "C(8,{1,2})", "Hypercube(3)", "Diamond", "GenKautz(2,9)", "Torus(3,3)",
		"Ring(9)", "UniRing(2,9)", "C(12,{1,6})", "Prod(Ring(6),K(2))", "Ring(13)",
		"GenKautz(2,16)", "Pow(UniRing(1,4),2)", "K(4)", "Multi(K(4),2)", "C(7,{1,2})",
		"Multi(Ring(7),2)", "Deg(Ring(4),2)", "L(GenKautz(2,8))",
	};
	static const enum coll_kind kinds[] = {
		COLL_ALLREDUCE, COLL_ALLGATHER, COLL_REDUCE_SCATTER, COLL_BROADCAST, COLL_REDUCE,
		COLL_ALLTOALL, COLL_GATHER, COLL_SCATTER,
	};

	(void)state;
	for (size_t r = 0; r < sizeof(rows) / sizeof(rows[0]); r++) {
		for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
			if (ALL_OR_SOME(!in_turn(r + k, 4), r != 1)) {
				continue;
			}
			struct coll_want w = want(rows[r].n, rows[r].d, rows[r].both, kinds[k],
						  k % 2 ? 1 << 13 : 1 << 21);
			struct coll_choices *c = choices(&w);
			struct coll_choice one, next;
			struct coll_made m;
			char expr[256];

			assert_int_equal(coll_choices_next(c, &one, NULL), 0);
			snprintf(expr, sizeof(expr), "%s", one.expr);
			assert_int_equal(coll_choices_make(c, one.expr, &m, NULL), 0);
			assert_int_equal(m.time_ns, one.time_ns);
			assert_int_equal(m.report.steps, one.steps);
			assert_int_equal(mpq_cmp_si(m.report.bandwidth_factor, one.num * one.ports,
						    (unsigned long)(one.den * w.q.degree)),
					 0);
			assert_int_equal(made_ns(&w, expr), one.time_ns);
			coll_made_fini(&m);
			for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
				if (made_ns(&w, others[i]) < one.time_ns) {
					fail_msg("%d nodes of %d, %s: %s is faster than %s",
						 w.q.n, w.q.degree, coll_kind_name(w.q.kind),
						 others[i], expr);
				}
			}
			if (coll_choices_next(c, &next, NULL) == 0) {
				assert_true(next.time_ns >= one.time_ns);
				assert_string_not_equal(next.expr, expr);
			}
			coll_choices_free(c);
		}
	}
}

/* All of them come, in order, each once. */
static void all_in_order(void **state)
{
	struct coll_want w = want(16, 4, false, COLL_ALLREDUCE, 1 << 16);
	struct coll_choices *c = choices(&w);
	struct coll_choice one;
	int64_t before = 0;
	int n = 0, rc;

	(void)state;
	while ((rc = coll_choices_next(c, &one, NULL)) == 0) {
		assert_true(one.time_ns >= before);
		assert_int_equal(made_ns(&w, one.expr), one.time_ns);
		before = one.time_ns;
		n++;
	}
	assert_int_equal(rc, WEFT_ENOTFOUND);
	/* Two of the frontier, then Hypercube, Ring, UniRing, tori. */
	assert_true(n >= 6);
	coll_choices_free(c);
}

static void unsupported(void **state)
{
	struct coll_want w = want(8, 2, false, COLL_SCATTER, 1 << 20);
	struct coll_choices *c;
	struct err err = { 0 };

	(void)state;
	w.algorithm = coll_algorithm_find("trimmed", COLL_SCATTER);
	assert_int_equal(coll_choices_new(&w, NULL, &c, &err), WEFT_EUNSUPPORTED);
	assert_non_null(strstr(err.msg, "only for paths"));
	w = want(8192, 80, false, COLL_ALLTOALL, 1 << 20);
	assert_int_equal(coll_choices_new(&w, NULL, &c, &err), WEFT_ELIMIT);
	assert_non_null(strstr(err.msg, "8192 nodes"));
}

/* ---- ranges ---- */

/* Twice the time of a point in units in which it is whole, exactly. */
static __int128 exact(const struct coll_point *p, const struct coll_cost *c, int ports,
		      int64_t size)
{
	return (__int128)p->steps * (c->alpha_ns + c->hop_ns) * p->den * ports * c->link_bps +
	       (__int128)p->num * size * INT64_C(8000000000);
}

/* The point of the least time, of equals that of the fewest steps. */
static size_t fastest(const struct coll_frontier *f, const bool *skip, const struct coll_cost *c,
		      int ports, int64_t size)
{
	size_t best = f->points.n;

	for (size_t i = 0; i < f->points.n; i++) {
		if (!skip[i] && (best == f->points.n ||
				 exact(&f->points.v[i], c, ports, size) *
				 f->points.v[best].den < exact(&f->points.v[best], c, ports, size) *
				 f->points.v[i].den)) {
			best = i;
		}
	}
	return best;
}

static void ranges(void **state)
{
	struct rng r;

	(void)state;
	rng_seed(&r, 17);
	for (int k = 0; k < 2000; k++) {
		struct coll_cost cost = { .alpha_ns = (int64_t)rng_below(&r, 4) * 700,
					  .hop_ns = (int64_t)rng_below(&r, 3),
					  .link_bps = 1000000 * (1 + (int64_t)rng_below(&r, 90)) };
		int ports = 1 + (int)rng_below(&r, 4), steps = 0, n = 1 + (int)rng_below(&r, 6);
		int64_t num = 90;
		struct coll_frontier f = { 0 };
		struct coll_range out[6];
		bool skip[6];
		size_t found;

		for (int i = 0; i < n && num > 1; i++) {
			steps += 1 + (int)rng_below(&r, 5);
			num -= 1 + (int64_t)rng_below(&r, 12);
			num = num < 1 ? 1 : num;
			skip[i] = rng_below(&r, 4) == 0;
			vec_push(&f.points, ((struct coll_point){
				.steps = steps, .num = num, .den = 30 }));
		}
		found = coll_ranges(&f, skip, &cost, ports, out);
		assert_true(found > 0 || fastest(&f, skip, &cost, ports, 0) == f.points.n);
		for (size_t i = 0; i < found; i++) {
			int64_t from = out[i].from_bytes;
			int64_t to = i + 1 < found ? out[i + 1].from_bytes - 1 : from + 100000;

			assert_int_equal(i == 0 ? from : 0, 0);
			assert_true(to >= from);
			/* Where steps cost nothing all take as long for no bytes. */
			from += cost.alpha_ns + cost.hop_ns == 0;
			assert_int_equal(fastest(&f, skip, &cost, ports, from), out[i].point);
			assert_int_equal(fastest(&f, skip, &cost, ports, to), out[i].point);
		}
		vec_fini(&f.points);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(families),	    cmocka_unit_test(by_exchanges),
		cmocka_unit_test(by_sums),	    cmocka_unit_test(first_is_fastest),
		cmocka_unit_test(all_in_order),	    cmocka_unit_test(unsupported),
		cmocka_unit_test(ranges),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
