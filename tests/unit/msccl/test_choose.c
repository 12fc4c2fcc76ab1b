/* SPDX-License-Identifier: Apache-2.0 */
/* Programs by the size of calls: what is chosen, and that each is proven as it
 * is written. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "runtime/msccl/msccl.h"
#include "tests/unit/msccl/msccl_read.h"
#include "tests/unit/msccl/lowered.h"

#define GBPS 1000000000LL

static const struct msccl_request every = {
	.protos = { true, true, true }, .link_bps = 400 * GBPS,
};

/* What is written is read and proven again. */
static void holds(const struct msccl *p, enum msccl_dialect dialect)
{
	struct err err = { 0 };
	struct buf b = { 0 };
	struct msccl again;

	msccl_write(p, &b);
	must(msccl_read(b.data, b.len, dialect, &again, &err), &err);
	assert_int_equal(again.proto, p->proto);
	assert_int_equal(again.min_bytes, p->min_bytes);
	assert_int_equal(again.max_bytes, p->max_bytes);
	must(msccl_check(&again, dialect, &err), &err);
	msccl_fini(&again);
	buf_fini(&b);
}

/* From 0 on, without gap or overlap, by rising bandwidth of the protocols. */
static void sizes_join(const struct msccl_choices *c)
{
	int64_t from = 0;

	for (int i = 0; i < c->n; i++) {
		assert_int_equal(c->v[i].p.min_bytes, from);
		from = c->v[i].p.max_bytes + 1;
		assert_int_equal(c->v[i].p.max_bytes == 0, i == c->n - 1);
		assert_true(c->v[i].p.max_bytes == 0 || c->v[i].p.max_bytes >= from - 1);
		if (i > 0) {
			assert_int_not_equal(c->v[i].p.proto, MSCCL_LL);
			assert_int_not_equal(c->v[i - 1].p.proto, MSCCL_SIMPLE);
		}
	}
}

static void chosen(struct coll_sched *s, enum msccl_dialect dialect)
{
	struct msccl_request w = every;
	struct msccl_choices c;
	struct err err = { 0 };

	w.dialect = dialect;
	must(msccl_choose(s, &w, &c, &err), &err);
	assert_true(c.n > 0);
	sizes_join(&c);
	for (int i = 0; i < c.n; i++) {
		holds(&c.v[i].p, dialect);
	}
	msccl_choices_fini(&c);
	coll_free(s);
}

static void test_sizes(void **state)
{
	static const char *const exprs[] = { "Ring(8)", "K(6)", "Hypercube(3)", "C(12,{2,3})",
					     "GenKautz(2,11)", "Diamond" };

	(void)state;
	for (size_t e = 0; e < sizeof(exprs) / sizeof(exprs[0]); e++) {
		for (int d = 0; d < 2; d++) {
			chosen(bfb(COLL_ALLREDUCE, exprs[e]), (enum msccl_dialect)d);
			chosen(bfb(COLL_ALLGATHER, exprs[e]), (enum msccl_dialect)d);
			chosen(paths(COLL_ALLTOALL, exprs[e], 2, 0), (enum msccl_dialect)d);
			chosen(paths(COLL_BROADCAST, exprs[e], 4, 0), (enum msccl_dialect)d);
		}
	}
}

/* Channels for the rate of a link at 160 Gbit/s each, where threadblocks allow. */
static void test_copies(void **state)
{
	struct coll_sched *s = bfb(COLL_ALLREDUCE, "UniRing(1,6)");
	struct msccl_request w = { .protos = { [MSCCL_SIMPLE] = true } };
	struct msccl_choices c;
	struct err err = { 0 };

	(void)state;
	for (int k = 1; k <= 6; k++) {
		w.link_bps = (160 * k - 80) * GBPS;
		must(msccl_choose(s, &w, &c, &err), &err);
		assert_int_equal(c.v[0].p.beside, k);
		assert_int_equal(c.v[0].p.channels % k, 0);
		holds(&c.v[0].p, MSCCL_AZURE);
		msccl_choices_fini(&c);
	}
	w.tbs = 3;
	must(msccl_choose(s, &w, &c, &err), &err);
	assert_in_range(c.v[0].p.gpus[0].tbs.n, 1, 3);
	assert_non_null(strstr(c.v[0].why, "limits allow no more"));
	msccl_choices_fini(&c);
	coll_free(s);
}

/* A faster link makes LL's calls fewer; slower hops do not enter. */
static void test_rates(void **state)
{
	struct coll_sched *s = bfb(COLL_ALLREDUCE, "Ring(8)");
	struct msccl_request w = { .protos = { [MSCCL_SIMPLE] = true, [MSCCL_LL] = true },
				.instances = 1 };
	struct msccl_choices c;
	struct err err = { 0 };
	int64_t last = INT64_MAX;

	(void)state;
	for (w.link_bps = 10 * GBPS; w.link_bps >= GBPS / 1000; w.link_bps /= 10) {
		must(msccl_choose(s, &w, &c, &err), &err);
		assert_int_equal(c.n, 2);
		assert_true(c.v[0].p.max_bytes < last);
		last = c.v[0].p.max_bytes;
		msccl_choices_fini(&c);
	}
	coll_free(s);
}

/* RCCL ends a send of LL without a barrier: no step may wait for its flag. */
static void test_early_flags(void **state)
{
	struct coll_sched *s = bfb(COLL_ALLREDUCE, "Torus(4,4)");
	struct msccl_options o = { .dialect = MSCCL_RCCL, .proto = MSCCL_LL, .instances = 1 };
	struct err err = { 0 };
	struct msccl p;
	int waits = 0;

	(void)state;
	must(msccl_lower_as(s, &o, &p, &err), &err);
	for (int r = 0; r < p.ranks; r++) {
		for (size_t t = 0; t < p.gpus[r].tbs.n; t++) {
			for (size_t k = 0; k < p.gpus[r].tbs.v[t].steps.n; k++) {
				const struct msccl_step *x = &p.gpus[r].tbs.v[t].steps.v[k];

				assert_false(x->type == MSCCL_SEND && x->has_dep);
			}
		}
	}
	msccl_fini(&p);
	/* The same program for Azure waits, and is refused for RCCL. */
	o.dialect = MSCCL_AZURE;
	must(msccl_lower_as(s, &o, &p, &err), &err);
	for (int r = 0; r < p.ranks; r++) {
		for (size_t t = 0; t < p.gpus[r].tbs.n; t++) {
			for (size_t k = 0; k < p.gpus[r].tbs.v[t].steps.n; k++) {
				waits += p.gpus[r].tbs.v[t].steps.v[k].type == MSCCL_SEND &&
					 p.gpus[r].tbs.v[t].steps.v[k].has_dep;
			}
		}
	}
	assert_true(waits > 0);
	assert_int_equal(msccl_check(&p, MSCCL_RCCL, &err), WEFT_EVERIFY);
	assert_non_null(strstr(err.msg, "flag RCCL raises before all threads have read"));
	msccl_fini(&p);
	coll_free(s);
}

/* Azure's LL: 32 KiB a piece; calls so large are one chunk a piece. */
static void test_split(void **state)
{
	struct msccl p = { .ranks = 8, .loop = 16, .proto = MSCCL_LL, .kind = COLL_ALLREDUCE };

	(void)state;
	assert_int_equal(msccl_split(&p, MSCCL_AZURE, 16), 71);
	assert_int_equal(msccl_split(&p, MSCCL_AZURE, 16 * 16384), 2);
	assert_int_equal(msccl_split(&p, MSCCL_AZURE, 16 * 16384 + 1), 1);
	assert_int_equal(msccl_split(&p, MSCCL_RCCL, 16 * 16384), 1);
	assert_int_equal(msccl_split(&p, MSCCL_AZURE, INT64_MAX), 1);
	p.proto = MSCCL_SIMPLE;
	assert_int_equal(msccl_split(&p, MSCCL_AZURE, 16 << 20), 2);
	assert_int_equal(msccl_split(&p, MSCCL_AZURE, (16 << 20) + 16), 1);
	p.kind = COLL_BROADCAST;
	assert_int_equal(msccl_split(&p, MSCCL_RCCL, 16 << 18), 2);
	p.proto = MSCCL_LL128;
	assert_int_equal(msccl_split(&p, MSCCL_AZURE, 16 * 576000), 1);
	assert_int_equal(msccl_split(&p, MSCCL_AZURE, 16 * 288000), 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_copies),
		cmocka_unit_test(test_rates),
		cmocka_unit_test(test_early_flags),
		cmocka_unit_test(test_split),
	};

	return cmocka_run_group_tests_name("msccl/choose", tests, NULL, NULL);
}
