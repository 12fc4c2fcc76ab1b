/* SPDX-License-Identifier: Apache-2.0 */
/* Constructions: every one replays, with the figures of its theorem. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "collective/bfb/bfb.h"
#include "tests/unit/schedule/common.h"

struct figures {
	int n, steps;
	mpq_t factor;
};

/* Steps and T_B of a schedule, freed. */
static void measure(struct coll_sched *s, struct figures *f)
{
	struct coll_report r;
	struct err err = { 0 };

	coll_report_init(&r);
	must(coll_verify(s, &r, &err), &err);
	f->n = r.nodes;
	f->steps = r.steps;
	mpq_init(f->factor);
	mpq_set(f->factor, r.bandwidth_factor);
	coll_report_fini(&r);
	coll_free(s);
}

static struct figures expanded(enum coll_kind kind, const char *expr)
{
	struct coll_sched *s;
	struct figures f;
	struct err err = { 0 };

	must(coll_expand(kind, expr, &s, &err), &err);
	measure(s, &f);
	return f;
}

static struct figures plain(enum coll_kind kind, const char *expr)
{
	struct figures f;

	measure(bfb(kind, expr), &f);
	return f;
}

static void is(const char *what, struct figures f, int steps, const char *q)
{
	char text[128];

	if (f.steps != steps ||
	    strcmp(rat_str(f.factor, text, sizeof(text)), q) != 0) {
		fail_msg("%s: %d steps and %s, expected %d and %s", what,
			 f.steps, rat_str(f.factor, text, sizeof(text)),
			 steps, q);
	}
	mpq_clear(f.factor);
}

static const char *const bases[] = {
	"K(3)", "K(4)", "UniRing(1,4)", "UniRing(2,3)", "Ring(5)", "K(2,2)",
	"C(7,{1,2})", "DiC(7,{1,3})", "Diamond", "Hypercube(3)",
	"GenKautz(2,7)", "Kautz(2,1)", NULL,
};

/* factor <= base + num/den; with `same`, equal. */
static void exceeds_by(const char *what, struct figures got, mpq_t base,
		       int64_t num, int64_t den, bool same)
{
	mpq_t sum, more;
	int cmp;

	mpq_init(sum);
	mpq_init(more);
	mpq_set_si(more, (long)num, (unsigned long)den);
	mpq_canonicalize(more);
	mpq_add(sum, base, more);
	cmp = mpq_cmp(got.factor, sum);
	if (same ? cmp != 0 : cmp > 0) {
		fail_msg("%s: T_B is not that of the theorem", what);
	}
	mpq_clear(sum);
	mpq_clear(more);
}

static void test_line(void **state)
{
	static const enum coll_kind kinds[] = { COLL_ALLGATHER,
						COLL_REDUCE_SCATTER };

	(void)state;
	for (const char *const *e = bases; *e; e++) {
		for (int k = 0; k < 2; k++) {
			char text[64];
			struct figures base, got;

			if (strcmp(*e, "UniRing(1,4)") == 0) {
				continue;	/* its own line graph */
			}
			base = plain(kinds[k], *e);
			snprintf(text, sizeof(text), "L(%s)", *e);
			got = expanded(kinds[k], text);
			assert_int_equal(got.steps, base.steps + 1);
			exceeds_by(text, got, base.factor, 1, base.n, false);
			mpq_clear(base.factor);
			mpq_clear(got.factor);
		}
	}
}

static void test_degree(void **state)
{
	(void)state;
	for (const char *const *e = bases; *e; e++) {
		for (int k = 2; k < 4; k++) {
			char text[64];
			struct figures base, got;

			if (strstr(*e, "GenKautz")) {
				continue;	/* self-loops */
			}
			base = plain(COLL_ALLGATHER, *e);
			snprintf(text, sizeof(text), "Deg(%s,%d)", *e, k);
			got = expanded(COLL_ALLGATHER, text);
			assert_int_equal(got.n, k * base.n);
			assert_int_equal(got.steps, base.steps + 1);
			exceeds_by(text, got, base.factor, k - 1,
				   (int64_t)k * base.n, true);
			mpq_clear(base.factor);
			mpq_clear(got.factor);
		}
	}
}

static void test_power(void **state)
{
	(void)state;
	for (const char *const *e = bases; *e; e++) {
		for (int k = 2; k < 4; k++) {
			char text[64];
			struct figures base = plain(COLL_ALLGATHER, *e), got;
			int n = base.n, all = k == 2 ? n * n : n * n * n;
			mpq_t scale;

			snprintf(text, sizeof(text), "Pow(%s,%d)", *e, k);
			got = expanded(COLL_ALLGATHER, text);
			assert_int_equal(got.steps, k * base.steps);
			mpq_init(scale);
			mpq_set_si(scale, n * (long)(all - 1),
				   (unsigned long)(n - 1) *
					   (unsigned long)all);
			mpq_canonicalize(scale);
			mpq_mul(scale, scale, base.factor);
			assert_int_equal(mpq_cmp(scale, got.factor), 0);
			mpq_clear(scale);
			mpq_clear(base.factor);
			mpq_clear(got.factor);
		}
	}
}

/* Both halves run at once on arcs of half the bandwidth: as good as X where
 * the transpose is. */
static void test_both(void **state)
{
	static const char *const reverse_symmetric[] = {
		"UniRing(1,5)", "UniRing(2,3)", "DiC(7,{1,3})", "Diamond",
		"K(4)", "Kautz(2,2)", NULL,
	};

	(void)state;
	for (const char *const *e = reverse_symmetric; *e; e++) {
		char text[64];
		struct figures base = plain(COLL_ALLGATHER, *e), got;

		snprintf(text, sizeof(text), "Bi(%s)", *e);
		got = expanded(COLL_ALLGATHER, text);
		assert_int_equal(got.steps, base.steps);
		exceeds_by(text, got, base.factor, 0, 1, true);
		mpq_clear(base.factor);
		mpq_clear(got.factor);
	}
	is("Bi(GenKautz(2,7))", expanded(COLL_REDUCE_SCATTER,
					 "Bi(GenKautz(2,7))"), 3, "12/7");
}

static void test_nested(void **state)
{
	(void)state;
	/* Figure 3: corollary 10.1 on K(4,4), d = 4. */
	is("L2(K(4,4))", expanded(COLL_ALLGATHER, "L2(K(4,4))"), 4, "33/32");
	is("L(L(K(4,4)))", expanded(COLL_ALLGATHER, "L(L(K(4,4)))"), 4,
	   "33/32");
	/* Pow(Deg()): BW-optimal. */
	is("Pow(Deg(K(2),2),2)", expanded(COLL_ALLREDUCE,
					  "Pow(Deg(K(2),2),2)"), 8, "15/8");
	is("L(Deg(K(3),2))", expanded(COLL_ALLREDUCE, "L(Deg(K(3),2))"), 6,
	   "2");
}

static void test_refused(void **state)
{
	static const struct {
		const char *expr;
		int rc;
	} bad[] = {
		{ "K(4)", WEFT_EUNSUPPORTED },
		{ "Prod(K(2),K(3))", WEFT_EUNSUPPORTED },
		{ "L(", WEFT_EINVAL },
		{ "Pow(Cycle)", WEFT_EINVAL },
	};
	struct coll_sched *s;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct err err = { 0 };

		assert_int_equal(coll_expand(COLL_ALLGATHER, bad[i].expr, &s,
					     &err), bad[i].rc);
		assert_null(s);
	}
	assert_int_equal(coll_expand(COLL_ALLTOALL, "L(K(3))", &s,
				     &(struct err){ 0 }), WEFT_EUNSUPPORTED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_line),
		cmocka_unit_test(test_degree),
		cmocka_unit_test(test_power),
		cmocka_unit_test(test_both),
		cmocka_unit_test(test_nested),
		cmocka_unit_test(test_refused),
	};

	return cmocka_run_group_tests_name("bfb/expand", tests, NULL,
					   NULL);
}
