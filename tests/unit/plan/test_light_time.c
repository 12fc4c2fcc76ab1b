/* SPDX-License-Identifier: Apache-2.0 */
/* What a plan says of schedules whose light changes between their steps. */
#include "tests/unit/plan/fixture.h"

#include "controller/plan/private.h"
#include "tests/unit/schedule/common.h"

/* The slower of two switches takes 30 ms, the slowest transceiver 2 s. */
#define FABRIC                                                                  \
	"weft: 1\nfabric: t\nhosts:\n"                                          \
	"  - { name: 'h[0-2]', ports: 'p[0-1]', rate: 8Gbps, reactivation: 1s }\n" \
	"  - { name: h3, ports: 'p[0-1]', rate: 8Gbps, reactivation: 2s }\n"      \
	"switches:\n"                                                            \
	"  - { name: a, size: 8x8, driver: sim, switch-time: 20ms }\n"           \
	"  - { name: b, size: 8x8, driver: sim, switch-time: 30ms }\n"           \
	"  - { name: c, size: 8x8, driver: sim, switch-time: 90ms }\n"           \
	"fibres:\n"                                                              \
	"  - { from: 'h[0-3].p0', to: 'a.[1-4]' }\n"                             \
	"  - { from: 'h[0-3].p1', to: 'b.[1-4]' }\n"                             \
	"jobs:\n"                                                                \
	"  - { name: j, nodes: all, collective: allgather, size: 4000B, "        \
	"topology: 'UniRing(2,4)', alpha: 10us }\n"

#define STAYS (3 * (10000 + 1000))	/* three steps, 1000 bytes each */

static int64_t time_of(const struct plan_base *base, const int channel[3])
{
	struct model_fabric *f = fabric_of(FABRIC);
	struct plan_ctx ctx = { .fabric = f, .base = base };
	const struct plan_job job = { .job = 0 };
	struct coll_sched *s = round_of_four(channel);
	struct coll_report r;
	struct err err = { 0 };
	int64_t ns, bound;

	coll_report_init(&r);
	must(plan_time(&ctx, &job, s, &r, &ns, &bound, &err), &err);
	assert_true(bound <= ns);
	coll_report_fini(&r);
	coll_free(s);
	model_free(f);
	return ns;
}

static void switches_of_the_job_are_waited_for(void **state)
{
	struct plan_base base = { 0 };

	(void)state;
	assert_int_equal(time_of(&base, (int[]){ 0, 0, 0 }), STAYS);
	assert_int_equal(time_of(&base, (int[]){ 0, 0, 1 }), STAYS + 2060000000);
	assert_int_equal(time_of(&base, (int[]){ 0, 1, 2 }), STAYS + 2 * INT64_C(2060000000));
}

static void learned_times_go_first(void **state)
{
	static const int64_t ports[8] = { [6] = 40, [7] = 50, [0] = 1 }, devices[3] = { 7, 9, 99 };
	struct plan_base base = { .times = { 8, 3, ports, devices } };

	(void)state;
	assert_int_equal(time_of(&base, (int[]){ 4, 5, 5 }), STAYS + 1000000000 + 2 * 9);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(switches_of_the_job_are_waited_for),
		cmocka_unit_test(learned_times_go_first),
	};

	return cmocka_run_group_tests_name("plan/light_time", tests, NULL, NULL);
}
