/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The processes in which weftd plans: there is no exec here, so what such a process does is
 * done by a worker of weftd's, by the same function and over the same bytes. It ends with weftd.
 */
#include <stdlib.h>

#include "controller/daemon/core/plan_process.h"
#include "lib/base/alloc.h"
#include "tests/sim/oracle/wraps.h"

struct plan_process {
	uv_loop_t *loop;
	uv_work_t work;
	struct plan_child *child;
	struct buf question, answer;
	plan_answered *answered;
	void *arg;
	bool works, freed;
};

WRAP(int, plan_process_new, uv_loop_t *loop, const struct plan_limits *limits,
     struct plan_process **out, struct err *err)
{
	struct plan_process *p = x_new(1, sizeof(*p));

	(void)limits, (void)err;
	p->loop = loop;
	p->child = plan_child_new();
	*out = p;
	return 0;
}

static void release(struct plan_process *p)
{
	plan_child_free(p->child);
	buf_fini(&p->question);
	buf_fini(&p->answer);
	free(p);
}

static void run(uv_work_t *work)
{
	struct plan_process *p = work->data;

	buf_reset(&p->answer);
	plan_child_answer(p->child, p->question.data, p->question.len, &p->answer);
	buf_fini(&p->question);
}

static void after(uv_work_t *work, int status)
{
	struct plan_process *p = work->data;

	(void)status;
	p->works = false;
	if (p->freed) {
		release(p);
	} else {
		p->answered(0, &p->answer, &(struct err){ 0 }, p->arg);
	}
}

WRAP(void, plan_process_ask, struct plan_process *p, struct buf *question, plan_answered *answered,
     void *arg)
{
	p->question = *question;
	*question = (struct buf){ 0 };
	p->answered = answered;
	p->arg = arg;
	p->works = true;
	p->work.data = p;
	uv_queue_work(p->loop, &p->work, run, after);
}

WRAP(void, plan_process_free, struct plan_process *p)
{
	if (p && p->works) {
		p->freed = true;
	} else if (p) {
		release(p);
	}
}

/* Each has one of its own. */
WRAP(void, plan_process_rest, struct plan_process *p, struct plan_process **place)
{
	(void)place;
	release(p);
}
