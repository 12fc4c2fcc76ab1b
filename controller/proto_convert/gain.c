/* SPDX-License-Identifier: Apache-2.0 */
/* What a plan means for a job, as a message. */
#include "controller/proto_convert/proto_convert.h"

void msg_gain_init(struct msg_gain *g, const struct plan_gain *from)
{
	static const Weft__V1__JobEffect effects[] = {
		[PLAN_STAYS] = WEFT__V1__JOB_EFFECT__JOB_EFFECT_STAYS,
		[PLAN_CHANGES] = WEFT__V1__JOB_EFFECT__JOB_EFFECT_CHANGES,
		[PLAN_BEGINS] = WEFT__V1__JOB_EFFECT__JOB_EFFECT_BEGINS,
		[PLAN_ENDS] = WEFT__V1__JOB_EFFECT__JOB_EFFECT_ENDS,
	};
	Weft__V1__JobGain *m = &g->m;
	int64_t payback = plan_payback(from);

	weft__v1__job_gain__init(m);
	m->job = from->name;
	m->effect = effects[from->effect];
	m->size_bytes = from->size_bytes;
	m->before_ns = msg_number(&g->before, from->before_ns > 0, from->before_ns);
	m->before_whole_ns = msg_number(&g->before_whole, from->before_whole_ns > 0,
					from->before_whole_ns);
	m->after_ns = msg_number(&g->after, from->after_ns > 0, from->after_ns);
	m->after_whole_ns = msg_number(&g->after_whole, from->after_whole_ns > 0,
				       from->after_whole_ns);
	m->down_ns = from->down_ns;
	m->payback = msg_number(&g->payback, payback >= 0, payback);
}
