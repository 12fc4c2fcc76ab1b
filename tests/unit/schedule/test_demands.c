/* SPDX-License-Identifier: Apache-2.0 */
/* All-to-alls in which pairs send unlike amounts: made from flows, replayed, written and read,
 * turned around, and refused by those who know blocks of one size only. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "collective/flow/flow.h"
#include "lib/base/number/rng.h"
#include "tests/unit/schedule/common.h"

/* What u sends to v: a function of v - u, or any. */
static struct flow_demands matrix(int n, bool shifts, uint64_t seed)
{
	char *text = calloc(1, (size_t)n * n * 16), *at = text;
	struct flow_demands d;
	struct err err = { 0 };
	struct rng rng;

	rng_seed(&rng, seed);
	for (int i = 0; i < n * n; i++) {
		int by = (i % n - i / n + n) % n;
		int size = shifts ? by * by % 7 : (int)rng_below(&rng, 5) * (int)rng_below(&rng, 9);

		/* Never all zeros. */
		size = by == 0 ? 0 : i == 1 && !shifts ? size + 1 : size;
		at += snprintf(at, 16, "%d%c", size, i % n == n - 1 ? '\n' : ' ');
	}
	must(flow_demands_parse(text, strlen(text), n, &d, &err), &err);
	free(text);
	return d;
}

static struct coll_sched *make(const char *expr, const struct flow_demands *d,
			       struct mcf_sched_info *info)
{
	struct mcf_sched_options opt = { .flow.gap = 1e-4, .demands = d, .loss = 0.02 };
	struct topo *t = graph_of(expr);
	struct coll_sched *s;
	struct err err = { 0 };

	must(mcf_schedule(t, &opt, &s, info, &err), &err);
	topo_free(t);
	return s;
}

/* Every pair has what its demand takes, and the load is what the flow promised. */
static void test_random(void **state)
{
	static const char *const graphs[] = { "Torus(3,3)", "GenKautz(3,10)", "K(7)", "Torus(8)" };

	(void)state;
	for (size_t i = 0; i < 16; i++) {
		const char *expr = graphs[i / 2 % 4];
		struct topo *t = graph_of(expr);
		struct flow_demands d = matrix(topo_n(t), false, i);
		struct mcf_sched_info info;
		struct coll_sched *s = make(expr, &d, &info);
		struct coll_report r;
		struct err err = { 0 };

		coll_report_init(&r);
		must(coll_verify(s, &r, &err), &err);
		for (int u = 0; u < d.n; u++) {
			for (int v = 0; v < d.n; v++) {
				int64_t p = coll_chunks(s), has = coll_demands(s)[u * d.n + v];

				assert_true(has * d.largest >= flow_demand(&d, u, v) * p);
				assert_true((has - 1) * d.largest < flow_demand(&d, u, v) * p);
			}
		}
		assert_true(mpq_get_d(r.shard_times) >= info.flow.bound * (1 - 1e-9));
		assert_true(mpq_get_d(r.shard_times) <= info.flow.congestion * 1.25);
		coll_report_fini(&r);
		coll_free(s);
		flow_demands_fini(&d);
		topo_free(t);
	}
}

static void expect_same(const struct coll_sched *a, const struct coll_sched *b)
{
	struct buf x = { 0 }, y = { 0 };

	coll_to_json(a, &x);
	coll_to_json(b, &y);
	assert_string_equal(buf_cstr(&x), buf_cstr(&y));
	buf_fini(&x);
	buf_fini(&y);
}

/* Both forms, and there and back by other ways; compact where the matrix is kept. */
static void check_forms(struct coll_sched *s)
{
	struct buf json = { 0 }, proto = { 0 };
	struct coll_sched *a, *b, *c;
	struct err err = { 0 };
	int to[64];

	coll_to_json(s, &json);
	coll_to_proto(s, &proto);
	assert_non_null(strstr(buf_cstr(&json), "\"version\": 4"));
	must(coll_from_bytes(json.data, json.len, &a, &err), &err);
	must(coll_from_bytes(proto.data, proto.len, &b, &err), &err);
	expect_same(s, a);
	expect_same(s, b);
	must(coll_verify(a, NULL, &err), &err);
	coll_free(b);
	must(coll_unfold(a, &b, &err), &err);
	must(coll_verify(b, NULL, &err), &err);
	must(coll_reverse(b, &c, &err), &err);
	must(coll_verify(c, NULL, &err), &err);
	assert_int_equal(coll_demands(c)[1], coll_demands(b)[coll_ranks(b)]);
	coll_free(c);
	for (int u = 0; u < coll_ranks(s); u++) {
		to[u] = (u * 5 + 2) % coll_ranks(s);
	}
	must(coll_rename(b, to, &c, &err), &err);
	must(coll_verify(c, NULL, &err), &err);
	coll_free(c);
	must(coll_part_of(s, 1, &c, &err), &err);
	coll_free(c);
	assert_int_equal(coll_pipeline(b, 2, &c, &err), WEFT_EUNSUPPORTED);
	assert_int_equal(coll_refuse_demands(s, "programs", &err), WEFT_EUNSUPPORTED);
	coll_free(a);
	coll_free(b);
	buf_fini(&json);
	buf_fini(&proto);
}

static void test_forms(void **state)
{
	(void)state;
	for (int shifts = 0; shifts < 2; shifts++) {
		struct flow_demands d = matrix(8, shifts, 3);
		struct mcf_sched_info info;
		struct coll_sched *s = make("Torus(8)", &d, &info);

		assert_true((coll_group(s) != NULL) == shifts);
		check_forms(s);
		coll_free(s);
		flow_demands_fini(&d);
	}
}

static void add(struct coll_sched *s, int step, int arc, int origin, int dest, int last)
{
	struct coll_xfer x = { step, arc, origin, dest, 0, last, COLL_OP_COPY, 0 };
	struct err err = { 0 };

	must(coll_add(s, &x, &err), &err);
}

/* K(3), arcs 0 -> 1, 0 -> 2, 1 -> 0, ...: 2 of 3 chunks from 0 to 1, 1 from 2 to 0. */
static void test_faults(void **state)
{
	static const int32_t demands[] = { 0, 2, 0, 0, 0, 0, 1, 0, 0 };
	static const int32_t bad[][9] = { { 0, 4 }, { 0, -1 }, { 1, 1 }, { 0 } };
	struct coll_xfer beyond = { 0, 0, 0, 1, 2, 2, COLL_OP_COPY, 0 };
	struct coll_sched *s = empty(COLL_ALLTOALL, "K(3)", 3);
	struct coll_report r;
	struct err err = { 0 };

	(void)state;
	for (size_t i = 0; i < 4; i++) {
		assert_int_equal(coll_set_demands(s, bad[i], &err), WEFT_EINVAL);
	}
	must(coll_set_demands(s, demands, &err), &err);
	assert_int_equal(coll_add(s, &beyond, &err), WEFT_EINVAL);
	add(s, 0, 0, 0, 1, 1);
	must(coll_finish(s, &err), &err);
	assert_int_equal(coll_verify(s, NULL, &err), WEFT_EVERIFY);
	assert_non_null(strstr(err.msg, "shard 2 for rank 0 chunk 0 does not arrive"));
	add(s, 0, 4, 2, 0, 0);
	must(coll_finish(s, &err), &err);
	coll_report_init(&r);
	must(coll_verify(s, &r, &err), &err);
	/* Two thirds of a shard over a link of two, of three shards: 4/9. */
	assert_int_equal(mpq_cmp_ui(r.bandwidth_factor, 4, 9), 0);
	assert_int_equal(mpq_cmp_ui(r.bandwidth_bound, 2, 9), 0);
	coll_report_fini(&r);
	coll_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random),
		cmocka_unit_test(test_forms),
		cmocka_unit_test(test_faults),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
