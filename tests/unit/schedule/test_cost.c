/* SPDX-License-Identifier: Apache-2.0 */
/* Loads, bounds and times. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/unit/schedule/common.h"

/* The steps' times are those of the whole, which is rounded up. */
static void assert_steps_add_up(const struct coll_sched *s, const struct coll_cost *c,
				int64_t time_ns)
{
	double *step_ns = calloc((size_t)coll_steps(s) + 1, sizeof(*step_ns)), sum = 0;
	struct err err = { 0 };

	must(coll_step_times(s, c, step_ns, &err), &err);
	for (int i = 0; i < coll_steps(s); i++) {
		assert_true(step_ns[i] >= (double)c->alpha_ns);
		sum += step_ns[i];
	}
	assert_true(sum > (double)time_ns - 1.01 && sum < (double)time_ns + 0.01);
	free(step_ns);
}

static void times_of(struct coll_sched *s, const struct coll_cost *c,
		     int64_t *time_ns, int64_t *bound_ns)
{
	struct err err = { 0 };
	struct coll_report r;

	coll_report_init(&r);
	must(coll_verify(s, &r, &err), &err);
	must(coll_time(s, &r, c, time_ns, bound_ns, &err), &err);
	coll_report_fini(&r);
	assert_steps_add_up(s, c, *time_ns);
}

/* Five steps of 10 us and 341/256 of 1 MiB over four links of 25 Gbit/s,
 * for each half of an all-reduce. */
static void test_time_of_kautz(void **state)
{
	struct coll_cost c = { .alpha_ns = 10000, .link_bps = 25000000000,
				  .size_bytes = 1 << 20 };
	struct coll_sched *s = bfb(COLL_ALLREDUCE, "GenKautz(4,1024)");
	int64_t time_ns, bound_ns;

	(void)state;
	assert_factor(s, "341/128", "2");
	times_of(s, &c, &time_ns, &bound_ns);
	/* 8 * 2^20 bit / 100 Gbit/s = 83886.08 ns for one M/B. */
	assert_int_equal(time_ns, 100000 + 223478);
	/* 9 steps: in 8 or less ranks with a self-loop need 4/3 M/B in four, and in the others. */
	assert_int_equal(bound_ns, 90000 + 167772);
	coll_free(s);
}

static void test_time_is_rounded_up(void **state)
{
	struct coll_cost c = { .alpha_ns = 0, .link_bps = 8000000000,
				  .size_bytes = 1 };
	struct coll_sched *s = bfb(COLL_ALLGATHER, "K(3)");
	int64_t time_ns;

	(void)state;
	times_of(s, &c, &time_ns, NULL);	/* a third of a byte */
	assert_int_equal(time_ns, 1);
	c.size_bytes = 3;
	times_of(s, &c, &time_ns, NULL);
	assert_int_equal(time_ns, 1);
	c.size_bytes = 4;
	times_of(s, &c, &time_ns, NULL);
	assert_int_equal(time_ns, 2);
	c.size_bytes = 0;
	c.alpha_ns = 7;
	times_of(s, &c, &time_ns, NULL);
	assert_int_equal(time_ns, 7);
	coll_free(s);
}

/* A step waits for the slowest arc that it uses. */
static void test_latency(void **state)
{
	static const int64_t latency[] = { 100, 300, 200 };
	struct coll_cost c = { .alpha_ns = 1000, .link_bps = 1000000000,
				  .size_bytes = 0 };
	struct err err = { 0 };
	struct coll_sched *s;
	struct topo *t;
	int64_t time_ns, bound_ns;

	(void)state;
	must(topo_new(3, &t, &err), &err);
	for (int u = 0; u < 3; u++) {
		must(topo_add_arc(t, u, (u + 1) % 3, 1, latency[u], &err),
		     &err);
	}
	topo_freeze(t);
	must(coll_new(COLL_BROADCAST, t, 1, 0, 0, &s, &err), &err);
	for (int shard = 0; shard < 3; shard++) {
		send_part(s, 0, 0, 1, shard, 0, 0, COLL_OP_COPY);
		send_part(s, 1, 1, 2, shard, 0, 0, COLL_OP_COPY);
	}
	finish(s);
	times_of(s, &c, &time_ns, &bound_ns);
	assert_int_equal(time_ns, 2000 + 100 + 300);
	assert_int_equal(bound_ns, 2000 + 2 * 100);
	coll_free(s);
}

static void test_time_refuses(void **state)
{
	struct coll_cost c = { .alpha_ns = -1, .link_bps = 1,
				  .size_bytes = 1 };
	struct coll_sched *s = bfb(COLL_ALLGATHER, "K(3)");
	struct coll_report r;
	struct err err = { 0 };
	int64_t ns;

	(void)state;
	coll_report_init(&r);
	must(coll_verify(s, &r, &err), &err);
	assert_int_equal(coll_time(s, &r, &c, &ns, NULL, &err), WEFT_EINVAL);
	c = (struct coll_cost){ .alpha_ns = 0, .link_bps = 0,
				  .size_bytes = 1 };
	assert_int_equal(coll_time(s, &r, &c, &ns, NULL, &err), WEFT_EINVAL);
	c = (struct coll_cost){ .alpha_ns = 0, .link_bps = 1,
				  .size_bytes = -1 };
	assert_int_equal(coll_time(s, &r, &c, &ns, NULL, &err), WEFT_EINVAL);
	c = (struct coll_cost){ .alpha_ns = 0, .link_bps = 1,
				  .size_bytes = INT64_MAX };
	assert_int_equal(coll_time(s, &r, &c, &ns, NULL, &err), WEFT_ELIMIT);
	coll_report_fini(&r);
	coll_free(s);
}

/* On a ring of eight a rank's shards make 2 (1 + 2 + 3) + 4 hops: 8 shard
 * times over two arcs each. Those half way round go clockwise from the odd
 * ranks only, which leaves an arc idle in each of the four steps. */
static void test_distance_bound(void **state)
{
	struct coll_sched *s = empty(COLL_ALLTOALL, "Ring(8)", 1);

	(void)state;
	for (int o = 0; o < 8; o++) {
		for (int k = 1; k < 8; k++) {
			int dir = k < 4 || (k == 4 && o % 2) ? 1 : -1;
			int hops = dir > 0 ? k : 8 - k;

			for (int h = 0; h < hops; h++) {
				int u = (o + dir * h + 8) % 8;

				send_to(s, h, u, (u + dir + 8) % 8, o,
					(o + k) % 8);
			}
		}
	}
	finish(s);
	assert_factor(s, "5/2", "2");
	coll_free(s);
}

/* The largest load counts, per unit of capacity and in shards. */
static void test_loads(void **state)
{
	struct err err = { 0 };
	struct coll_report r;
	struct coll_sched *s;
	struct topo *t;

	(void)state;
	must(topo_new(2, &t, &err), &err);
	must(topo_add_arc(t, 0, 1, 3, 0, &err), &err);
	must(topo_add_arc(t, 1, 0, 1, 0, &err), &err);
	topo_freeze(t);
	must(coll_new(COLL_ALLGATHER, t, 4, 0, 0, &s, &err), &err);
	send_part(s, 0, 0, 1, 0, 0, 3, COLL_OP_COPY);
	send_part(s, 0, 1, 0, 1, 0, 0, COLL_OP_COPY);
	send_part(s, 1, 1, 0, 1, 1, 3, COLL_OP_COPY);
	finish(s);
	coll_report_init(&r);
	must(coll_verify(s, &r, &err), &err);
	assert_int_equal(mpq_cmp_ui(r.shard_times, 13, 12), 0);
	assert_int_equal(r.chunk_hops, 8);
	assert_int_equal(r.transfers, 3);
	assert_int_equal(r.steps, 2);
	assert_int_equal(r.nodes, 2);
	coll_report_fini(&r);
	coll_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_time_of_kautz),
		cmocka_unit_test(test_time_is_rounded_up),
		cmocka_unit_test(test_latency),
		cmocka_unit_test(test_time_refuses),
		cmocka_unit_test(test_distance_bound),
		cmocka_unit_test(test_loads),
	};

	return cmocka_run_group_tests_name("schedule/cost", tests, NULL,
					   NULL);
}
