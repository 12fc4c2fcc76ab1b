/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of the room share. Include after cmocka.h. */
#ifndef WEFT_TESTS_UNIT_OPTREE_COMMON_H
#define WEFT_TESTS_UNIT_OPTREE_COMMON_H

#include "optree/optree.h"

/* One fibre of 40 Gbit/s channels, 25 us a step. */
static inline struct optree_params params(int n, int channels, int64_t bytes)
{
	return (struct optree_params){
		.n = n, .channels = channels, .fibres = 1,
		.shard_bytes = bytes, .channel_bps = 40000000000,
		.alpha_ns = 25000,
	};
}

/* Replays a plan that is written out: its steps, and its time in the cost
 * model, no more than it says. */
static inline int64_t replay(const struct optree_params *p,
			     const struct optree_plan *plan)
{
	struct coll_cost cost = { .alpha_ns = p->alpha_ns, .link_bps = p->channel_bps,
				  .size_bytes = p->shard_bytes * p->n };
	struct coll_report report;
	struct err err = { 0 };
	int64_t ns;

	coll_report_init(&report);
	assert_int_equal(coll_verify(plan->sched, &report, &err), 0);
	assert_int_equal(report.steps, plan->steps);
	assert_int_equal(coll_time(plan->sched, &report, &cost, &ns, NULL,
				   &err), 0);
	/* Chunks are whole, so a plan may say more than the load takes. */
	assert_true(ns <= plan->time_ns);
	coll_report_fini(&report);
	return ns;
}

#endif
