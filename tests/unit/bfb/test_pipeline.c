/* SPDX-License-Identifier: Apache-2.0 */
/* Batches: what they cost is what replay finds. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "collective/schedule/schedule.h"
#include "tests/unit/schedule/common.h"

static const char *const graphs[] = {
	"K(4)", "Ring(5)", "Torus(3,4)", "GenKautz(2,7)", "GenKautz(3,10)",
	"GenKautz(4,25)", "Mesh(3,3)", "Diamond", "Cap(Ring(4),3)", NULL,
};

/* The fullest arc's sum over steps, in M/B: what batches approach. */
static void floor_of(const struct coll_sched *s, mpq_t out)
{
	int m = topo_m(coll_topo(s));
	int64_t n, *sum = calloc((size_t)m, sizeof(*sum)), most = 0;
	struct coll_sched *flat = unfolded(s);
	const struct coll_xfer *x = coll_xfers(flat, &n);

	for (int64_t i = 0; i < n; i++) {
		sum[x[i].arc] += x[i].last - x[i].first + 1;
		most = sum[x[i].arc] > most ? sum[x[i].arc] : most;
	}
	mpq_set_si(out, (long)(most * coll_ports(s)),
		   (unsigned long)coll_chunks(s) *
			   (unsigned long)coll_ranks(s) *
			   (unsigned long)topo_arc(coll_topo(s), 0)->cap);
	mpq_canonicalize(out);
	coll_free(flat);
	free(sum);
}

/* steps alpha + T_B, in the units of the ratio alpha : M/B that is asked. */
static void time_of(const struct coll_report *r, long alpha, long mb, mpq_t out)
{
	mpq_t x;

	mpq_init(x);
	mpq_set_si(x, mb, 1);
	mpq_mul(out, r->bandwidth_factor, x);
	mpq_set_si(x, alpha * r->steps, 1);
	mpq_add(out, out, x);
	mpq_clear(x);
}

/* Batches made and replayed, for one schedule. */
static void replay_all(const struct coll_sched *s, struct coll_report *r,
		       int most)
{
	struct err err = { 0 };
	mpq_t least;

	mpq_init(least);
	floor_of(s, least);
	for (int k = 1; k <= most; k++) {
		struct coll_sched *p;

		coll_report_init(&r[k]);
		must(coll_pipeline(s, k, &p, &err), &err);
		must(coll_verify(p, &r[k], &err), &err);
		assert_int_equal(r[k].steps, coll_steps(s) + k - 1);
		assert_true(mpq_cmp(r[k].bandwidth_factor,
				    r[1].bandwidth_factor) <= 0);
		assert_true(mpq_cmp(r[k].bandwidth_factor, least) >= 0);
		if (r[1].bandwidth_optimal) {
			assert_true(r[k].bandwidth_optimal);
		}
		coll_free(p);
	}
	mpq_clear(least);
}

/* The number of batches that is the best unmade is the first of the best that
 * were made and replayed. */
static void test_replayed(void **state)
{
	enum { MOST = 24 };
	int chosen[MOST + 1] = { 0 }, cases = 0;

	(void)state;
	for (const char *const *e = graphs; *e; e++) {
		struct coll_sched *s = bfb(COLL_ALLREDUCE, *e);
		struct coll_report r[MOST + 1];
		struct err err = { 0 };
		mpq_t time, best;

		mpq_inits(time, best, NULL);
		replay_all(s, r, MOST);
		/* M/B of 3 us to 11 ms. */
		for (long kib = 1; kib <= 4096; kib *= 2) {
			struct coll_cost c = {
				.alpha_ns = 10000,
				.link_bps = 1024L * 3000000 / coll_ports(s),
				.size_bytes = kib * 1024 };
			int want = 1, got;
			double ns;

			for (int k = 1; k <= MOST; k++) {
				time_of(&r[k], 3 * 10000, kib * 8000, time);
				if (k == 1 || mpq_cmp(time, best) < 0) {
					mpq_set(best, time);
					want = k;
				}
			}
			must(coll_pipeline_best(s, &c, MOST, &got, &ns, &err), &err);
			assert_int_equal(got, want);
			chosen[got]++;
			cases++;
		}
		for (int k = 1; k <= MOST; k++) {
			coll_report_fini(&r[k]);
		}
		mpq_clears(time, best, NULL);
		coll_free(s);
	}
	/* None, all that may be, and numbers between. */
	assert_true(chosen[1] > 10 && chosen[MOST] > 1);
	assert_true(chosen[1] + chosen[MOST] < cases - 5);
}

/* The fewest batches that do what more would do, by making them all. */
static void test_fewest(void **state)
{
	enum { MOST = 12 };
	int less = 0, as_asked = 0;

	(void)state;
	for (const char *const *e = graphs; *e; e++) {
		struct coll_sched *s = bfb(COLL_ALLREDUCE, *e);
		struct coll_report r[MOST + 1];
		struct err err = { 0 };

		replay_all(s, r, MOST);
		for (int asked = 1; asked <= MOST; asked++) {
			int want = 1, got;

			while (mpq_cmp(r[want].bandwidth_factor, r[asked].bandwidth_factor) > 0) {
				want++;
			}
			must(coll_pipeline_fewest(s, asked, &got, &err), &err);
			assert_int_equal(got, want);
			less += got < asked;
			as_asked += got == asked && asked > 1;
		}
		for (int k = 1; k <= MOST; k++) {
			coll_report_fini(&r[k]);
		}
		coll_free(s);
	}
	assert_true(less > MOST && as_asked > MOST);
}

/* Nothing to gain where all links are full; much where they are not. */
static void test_best(void **state)
{
	struct coll_cost c = { .alpha_ns = 1000, .link_bps = 25000000000,
			       .size_bytes = 1 << 30 };
	struct coll_sched *s = bfb(COLL_ALLREDUCE, "Torus(4,4)");
	struct err err = { 0 };
	int batches;
	double ns;

	(void)state;
	must(coll_pipeline_best(s, &c, COLL_MAX_BATCHES, &batches, &ns,
				&err), &err);
	assert_int_equal(batches, 1);
	coll_free(s);
	s = bfb(COLL_ALLREDUCE, "GenKautz(2,24)");
	must(coll_pipeline_best(s, &c, COLL_MAX_BATCHES, &batches, &ns,
				&err), &err);
	assert_true(batches > 10);
	/* A small message has no time to lose with further steps. */
	c.size_bytes = 1024;
	must(coll_pipeline_best(s, &c, COLL_MAX_BATCHES, &batches, &ns,
				&err), &err);
	assert_int_equal(batches, 1);
	coll_free(s);
}

static void test_refused(void **state)
{
	struct coll_sched *s = bfb(COLL_ALLGATHER, "GenKautz(2,7)"), *p;
	struct coll_light l = { .arc = 0 };
	struct err err = { 0 };
	int batches;

	(void)state;
	assert_int_equal(coll_pipeline(s, 0, &p, &err), WEFT_EINVAL);
	assert_int_equal(coll_pipeline_fewest(s, 0, &batches, &err), WEFT_EINVAL);
	assert_int_equal(coll_pipeline(s, COLL_MAX_BATCHES + 1, &p, &err),
			 WEFT_EINVAL);
	must(coll_add_light(s, &l, &err), &err);
	finish(s);
	assert_int_equal(coll_pipeline(s, 2, &p, &err), WEFT_EUNSUPPORTED);
	assert_null(p);
	coll_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_replayed),
		cmocka_unit_test(test_fewest),
		cmocka_unit_test(test_best),
		cmocka_unit_test(test_refused),
	};

	return cmocka_run_group_tests_name("bfb/pipeline", tests, NULL,
					   NULL);
}
