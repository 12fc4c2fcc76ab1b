/* SPDX-License-Identifier: Apache-2.0 */
/* checklist 23: what goes dark while a plan is carried out, and how long. */
#include "tests/unit/plan/fixture.h"

/* Four hosts on two switches with a port each on both; moving light takes
 * 20 ms on the first, 30 ms on the second, a transceiver 1 s to come back. */
#define HOSTS                                                           \
	"weft: 1\nfabric: t\nhosts:\n"                                  \
	"  - { name: 'h[0-3]', ports: 'p[0-1]', rate: 100Gbps, "       \
	"reactivation: 1s }\n"
#define SWITCHES(kind)                                                  \
	kind ":\n"                                                      \
	"  - { name: a, size: 8x8, driver: sim, switch-time: 20ms }\n"     \
	"  - { name: b, size: 8x8, driver: sim, switch-time: 30ms }\n"     \
	"fibres:\n"                                                     \
	"  - { from: 'h[0-3].p0', to: 'a.[1-4]' }\n"                  \
	"  - { from: 'h[0-3].p1', to: 'b.[1-4]' }\n"
#define JOB(nodes)                                                      \
	"jobs:\n"                                                       \
	"  - { name: j, nodes: [" nodes "], collective: allreduce, "    \
	"size: 1MiB, topology: 'UniRing(2,4)' }\n"

static struct model_fabric *fabric;
static struct plan_times learned;	/* of the second plan */

/* From the light of one configuration to another. */
static struct plan *change(const char *before, const char *after,
			   struct plan_outages *out)
{
	struct model_fabric *f = fabric_of(before);
	struct plan *p = NULL, *q = NULL;
	struct plan_light light[2] = { 0 };
	struct plan_base base = { .intent = light, .observed = light,
				  .times = learned };
	struct err err = { 0 };

	assert_int_equal(plan_make(f, NULL, &p, &err), 0);
	for (int i = 0; i < p->n_devices; i++) {
		light[p->devices[i].device] = (struct plan_light){
			.known = true, .xcs = p->devices[i].want,
			.n_xcs = p->devices[i].n_want };
	}
	fabric = fabric_of(after);
	assert_int_equal(plan_make(fabric, &base, &q, &err), 0);
	plan_free(p);
	model_free(f);
	plan_outages(q, out);
	return q;
}

static void end(struct plan *p, struct plan_outages *o)
{
	plan_outages_fini(o);
	plan_free(p);
	model_free(fabric);
}

/* Each switch is a stage, and its receivers have light again with it. */
static void switches_are_dark_one_after_the_other(void **state)
{
	struct plan_outages o;
	struct plan *p = change(HOSTS SWITCHES("switches")
				JOB("h0, h1, h2, h3"),
				HOSTS SWITCHES("switches")
				JOB("h3, h2, h1, h0"), &o);

	(void)state;
	assert_int_equal(p->n_stages, 2);
	assert_int_equal(o.n, 8);
	for (int i = 0; i < o.n; i++) {
		assert_int_equal(o.v[i].stage, i / 4);
		assert_int_equal(o.v[i].back_stage, i / 4);
		assert_int_equal(o.v[i].down_ns, i < 4 ? 1040000000 :
							 1060000000);
		assert_int_equal(fabric->ports[o.v[i].rx_port].rx_device,
				 i / 4);
	}
	for (int h = 0; h < 4; h++) {
		assert_int_equal(o.hosts[h].links, 4);
		assert_int_equal(o.hosts[h].down_ns, 1060000000);
		assert_false(o.hosts[h].ends);
	}
	assert_int_equal(o.jobs[0].links, 8);
	assert_int_equal(o.jobs[0].down_ns, 1060000000);
	end(p, &o);
}

/* A robot moves one fibre after the other. */
static void a_panel_takes_all_its_moves(void **state)
{
	struct plan_outages o;
	struct plan *p = change(HOSTS SWITCHES("panels")
				JOB("h0, h1, h2, h3"),
				HOSTS SWITCHES("panels")
				JOB("h3, h2, h1, h0"), &o);

	(void)state;
	assert_int_equal(o.n, 8);
	assert_int_equal(o.v[0].down_ns, 8 * 20000000LL + 1000000000);
	assert_int_equal(o.v[7].down_ns, 8 * 30000000LL + 1000000000);
	assert_int_equal(p->down_ns, o.v[7].down_ns);
	end(p, &o);
}

#define RING_OF_ONE_PORT \
	"jobs:\n  - { name: j, nodes: 'h[0-3]', ports: p0, collective: allreduce, size: 1MiB, " \
	"topology: 'UniRing(1,4)' }\n"

/* Ports that had no light before are waited for as well, each of a robot's moves: 8 of 20 ms,
 * then 4 of 30, and the transceiver. */
static void a_job_waits_for_all_its_light(void **state)
{
	struct plan_outages o;
	struct plan *p = change(HOSTS SWITCHES("panels") RING_OF_ONE_PORT,
				HOSTS SWITCHES("panels") JOB("h3, h2, h1, h0"), &o);

	(void)state;
	assert_int_equal(o.n, 4);
	assert_int_equal(o.jobs[0].down_ns, 1160000000);
	assert_int_equal(o.jobs[0].stalled_ns, 1280000000);
	end(p, &o);
}

static void what_is_not_lit_again_ends(void **state)
{
	struct plan_outages o;
	struct plan *p = change(HOSTS SWITCHES("switches")
				JOB("h0, h1, h2, h3"),
				HOSTS SWITCHES("switches"), &o);

	(void)state;
	assert_int_equal(o.n, 8);
	for (int i = 0; i < o.n; i++) {
		assert_int_equal(o.v[i].back_stage, -1);
		assert_int_equal(o.v[i].down_ns, -1);
	}
	assert_true(o.hosts[2].ends);
	assert_int_equal(o.hosts[2].down_ns, 0);
	end(p, &o);
	/* And what was not lit is not missed. */
	p = change(HOSTS SWITCHES("switches"),
		   HOSTS SWITCHES("switches") JOB("h0, h1, h2, h3"), &o);
	assert_int_equal(o.n, 0);
	assert_int_equal(o.hosts[0].links, 0);
	assert_int_equal(o.jobs[0].links, 0);
	end(p, &o);
}

/* checklist 26: what was seen goes before what the file says, port by port and
 * device by device, and it is said which was taken. */
static void learned_times_go_first(void **state)
{
	static const int64_t ports[8] = { 5, 5, 5, 5, 5, 5, 5, 5 };
	static const int64_t devices[2] = { 2000, 0 };
	struct plan_outages o;
	struct plan *p;

	(void)state;
	learned = (struct plan_times){ 8, 2, ports, devices };
	p = change(HOSTS SWITCHES("switches") JOB("h0, h1, h2, h3"),
		   HOSTS SWITCHES("switches") JOB("h3, h2, h1, h0"), &o);
	assert_int_equal(o.v[0].down_ns, 4005);
	assert_int_equal(p->devices[0].switch_ns, 4000);
	assert_int_equal(p->devices[0].downtime_source, PLAN_TIMES_LEARNED);
	assert_int_equal(p->devices[1].down_ns, 60000005);
	assert_int_equal(p->devices[1].downtime_source, PLAN_TIMES_SOME_LEARNED);
	assert_int_equal(p->downtime_source, PLAN_TIMES_SOME_LEARNED);
	end(p, &o);
	learned = (struct plan_times){ 0 };
	p = change(HOSTS SWITCHES("switches") JOB("h0, h1, h2, h3"),
		   HOSTS SWITCHES("switches") JOB("h3, h2, h1, h0"), &o);
	assert_int_equal(p->downtime_source, PLAN_TIMES_CONFIGURED);
	end(p, &o);
}

/* ---- what a job gains ------------------------------------------------------ */

/* The plan that reverses the ring of job j, which took so long before. */
static struct plan *gains(const char *after, const struct plan_before *b, int n)
{
	struct plan_outages o;
	struct plan *p = change(HOSTS SWITCHES("switches") JOB("h0, h1, h2, h3"), after, &o);

	plan_gains(p, b, n);
	assert_true(p->gains_known);
	plan_outages_fini(&o);
	return p;
}

static void free_gains(struct plan *p)
{
	plan_free(p);
	model_free(fabric);
}

#define REVERSED HOSTS SWITCHES("switches") JOB("h3, h2, h1, h0")

/* The job is dark while any of its receivers is: 40 ms and a second on the first
 * switch, from 40 ms on for 1.06 s on the second. */
static void an_outage_without_gain_is_never_paid_back(void **state)
{
	struct plan_before b = { "j", "allreduce", 4, 1 << 20, 0, 0 };
	struct plan *p = gains(REVERSED, &b, 1);

	(void)state;
	b.time_ns = b.whole_ns = p->jobs[0].time_ns;
	/* It could not run: whatever the outage, there is no better. */
	assert_int_equal(p->n_warnings, 0);
	assert_int_equal(plan_payback(&p->gains[0]), 0);
	free_gains(p);
	p = gains(REVERSED, &b, 1);
	assert_int_equal(p->n_gains, 1);
	assert_int_equal(p->gains[0].effect, PLAN_CHANGES);
	assert_int_equal(p->gains[0].down_ns, 1100000000);
	assert_int_equal(p->gains[0].after_ns, b.time_ns);
	assert_int_equal(plan_payback(&p->gains[0]), -1);
	assert_int_equal(p->n_warnings, 1);
	assert_non_null(strstr(p->warnings[0], "job j: an outage of 1.1 s is never paid back"));
	free_gains(p);
}

/* By counting up, for times around the edges. */
static void an_outage_is_paid_back_after_so_many_collectives(void **state)
{
	static const int64_t downs[] = { 1, 2, 7, 8, 9, 1100 };

	(void)state;
	for (int64_t saved = 1; saved < 12; saved++) {
		for (size_t i = 0; i < sizeof(downs) / sizeof(*downs); i++) {
			struct plan_gain g = { .effect = PLAN_CHANGES, .before_ns = 100 + saved,
					       .after_ns = 100, .down_ns = downs[i] };
			int64_t k = 0, paid = 0;

			while (paid < downs[i]) {
				paid += saved;
				k++;
			}
			assert_int_equal(plan_payback(&g), k);
		}
	}
}

/* Another size is another job; one that is in no plan ends; where one begins,
 * what the others pay for is told, and no warning. */
static void jobs_begin_and_end(void **state)
{
	const struct plan_before before[] = {
		{ "j", "allreduce", 4, 1 << 20, 5, 5 },
		{ "old", "allgather", 2, 1 << 10, 0, 7 },
	};
	struct plan *p = gains(REVERSED, before, 2);

	(void)state;
	assert_int_equal(p->n_gains, 2);
	assert_string_equal(p->gains[1].name, "old");
	assert_int_equal(p->gains[1].effect, PLAN_ENDS);
	assert_int_equal(p->gains[1].before_whole_ns, 7);
	assert_int_equal(p->n_warnings, 0);
	free_gains(p);
	p = gains(REVERSED, &before[1], 1);
	assert_int_equal(p->gains[0].effect, PLAN_BEGINS);
	assert_int_equal(p->gains[0].before_ns, 0);
	assert_int_equal(p->n_warnings, 0);
	free_gains(p);
	/* Nothing moves. */
	p = gains(HOSTS SWITCHES("switches") JOB("h0, h1, h2, h3"), NULL, 0);
	struct plan_before same = { "j", "allreduce", 4, 1 << 20, p->jobs[0].time_ns,
				    p->jobs[0].time_ns };
	free_gains(p);
	p = gains(HOSTS SWITCHES("switches") JOB("h0, h1, h2, h3"), &same, 1);
	assert_int_equal(p->gains[0].effect, PLAN_STAYS);
	assert_int_equal(p->gains[0].down_ns, 0);
	free_gains(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(switches_are_dark_one_after_the_other),
		cmocka_unit_test(a_panel_takes_all_its_moves),
		cmocka_unit_test(a_job_waits_for_all_its_light),
		cmocka_unit_test(what_is_not_lit_again_ends),
		cmocka_unit_test(learned_times_go_first),
		cmocka_unit_test(an_outage_without_gain_is_never_paid_back),
		cmocka_unit_test(an_outage_is_paid_back_after_so_many_collectives),
		cmocka_unit_test(jobs_begin_and_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
