/* SPDX-License-Identifier: Apache-2.0 */
/* Fewer chunks for runtimes that a schedule does not fit. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "collective/bfb/bfb.h"
#include "collective/schedule/schedule.h"
#include "runtime/msccl/msccl.h"
#include "tests/unit/msccl/lowered.h"

/* A runtime that takes so many chunks a shard, and counts its tries. */
struct picky {
	int most, tries;
	int answer;	/* to what exceeds that */
};

static int take(const struct coll_sched *s, void *arg, struct err *err)
{
	struct picky *p = arg;

	p->tries++;
	return coll_chunks(s) <= p->most
		       ? 0 : err_set(err, p->answer, "%d chunks",
				     coll_chunks(s));
}

/* Chunks of what fits, verified. */
static int fits(const struct coll_sched *s, struct picky *p)
{
	struct coll_sched *out = NULL;
	struct err err = { 0 };
	int chunks;

	must(coll_bfb_fewer_chunks(s, take, p, &out, &err), &err);
	must(coll_verify(out, NULL, &err), &err);
	assert_int_equal(coll_kind_of(out), coll_kind_of(s));
	assert_string_equal(coll_topo_name(out), coll_topo_name(s));
	chunks = coll_chunks(out);
	coll_free(out);
	return chunks;
}

static void refuses(const struct coll_sched *s, struct picky p, int code)
{
	struct coll_sched *out = NULL;
	struct err err = { 0 };

	assert_int_equal(coll_bfb_fewer_chunks(s, take, &p, &out, &err), code);
	assert_null(out);
}

/* Exact loads first, where these need fewer chunks than the batches do; else
 * halves. */
static void test_order(void **state)
{
	struct coll_sched *s = bfb(COLL_ALLREDUCE, "Torus(4,4)"), *b;
	struct err err = { 0 };
	int exact = coll_chunks(s);

	(void)state;
	must(coll_pipeline(s, 5, &b, &err), &err);
	assert_int_equal(coll_chunks(b), 5 * exact);
	assert_int_equal(fits(b, &(struct picky){ 5 * exact - 1, 0,
						  WEFT_ELIMIT }), exact);
	for (int most = 1; most < exact; most++) {
		int want = exact / 2;

		while (want > most) {
			want /= 2;
		}
		assert_int_equal(fits(s, &(struct picky){ most, 0,
							  WEFT_ELIMIT }),
				 want);
	}
	coll_free(s);
	coll_free(b);
}

static void test_refused(void **state)
{
	struct coll_sched *s = bfb(COLL_ALLGATHER, "Torus(4,4)");
	struct coll_sched *whole = bfb(COLL_ALLGATHER, "UniRing(1,4)");
	struct coll_sched *all = paths(COLL_ALLTOALL, "K(4)", 2, 0);
	struct picky one = { 0, 0, WEFT_ELIMIT };
	struct coll_sched *out = NULL;
	struct err err = { 0 };

	(void)state;
	/* When one chunk does not fit, no more are tried. */
	assert_int_equal(coll_bfb_fewer_chunks(s, take, &one, &out, &err), WEFT_ELIMIT);
	assert_int_equal(one.tries, 1);
	/* Errors that are no limits end the search. */
	refuses(s, (struct picky){ 0, 0, WEFT_EVERIFY }, WEFT_EVERIFY);
	refuses(s, (struct picky){ 1, 0, WEFT_EVERIFY }, WEFT_EVERIFY);
	refuses(whole, (struct picky){ 9, 0, WEFT_ELIMIT },
		WEFT_EUNSUPPORTED);
	refuses(all, (struct picky){ 9, 0, WEFT_ELIMIT }, WEFT_EUNSUPPORTED);
	coll_free(s);
	coll_free(whole);
	coll_free(all);
}

static int lower_rccl(const struct coll_sched *s, void *arg, struct err *err)
{
	struct msccl p;
	int rc = msccl_lower(s, MSCCL_RCCL, &p, err);

	(void)arg;
	if (rc == 0) {
		msccl_fini(&p);
	}
	return rc;
}

/* On a runtime: batches that need too many elements, and what is advised. */
static void test_real_limit(void **state)
{
	struct coll_sched *s = bfb(COLL_ALLREDUCE, "Ring(64)"), *b, *out;
	struct err err = { 0 };

	(void)state;
	must(coll_pipeline(s, 32, &b, &err), &err);
	assert_int_equal(lower_rccl(b, NULL, &err), WEFT_ELIMIT);
	/* The whole of what is needed, not where the count ended: 63 * 2
	 * steps of 32 batches, a send and a receive both ways, halved. */
	assert_non_null(strstr(err.msg, "at least 4225 elements"));
	must(coll_bfb_fewer_chunks(b, lower_rccl, NULL, &out, &err), &err);
	assert_int_equal(coll_chunks(out), coll_chunks(s));
	coll_free(out);
	coll_free(b);
	coll_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_real_limit),
	};

	return cmocka_run_group_tests_name("bfb/fewer_chunks", tests,
					   NULL, NULL);
}
