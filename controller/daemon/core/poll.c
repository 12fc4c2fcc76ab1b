/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The slow round: devices that report nothing of their own accord are read now
 * and then, so that what another user did to them, or a restart, is found
 * without a request. What is found goes to those who watch, like after any
 * other reading; nothing is changed. A round has its slot among the requests,
 * and the next one is set only when it is over.
 */
#include <stdlib.h>

#include "controller/daemon/core/plan_queue.h"
#include "lib/base/alloc.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/number/rng.h"

struct poll {
	struct part_timer *timer;
	struct daemon_env *env;
	struct plan_queue *queue;
	struct plan_request *round;	/* has the slot, or NULL */
	int64_t every_ms;
	void (*after_read)(void *arg);
	void *arg;
};

/* A tenth more or less, so that several daemons do not keep in step. */
static void set_next(struct poll *p)
{
	int64_t tenth = p->every_ms / 10;

	if (!p->env->draining) {
		part_timer_start(p->timer, p->every_ms - tenth +
				 (int64_t)(rng_mix((uint64_t)clk_now_ns()) %
					   (uint64_t)(2 * tenth + 1)));
	}
}

void poll_round_end(struct poll *p)
{
	plan_request_free(p->round);
	p->round = NULL;
	set_next(p);
}

static void on_read(int rc, const struct err *err, void *arg)
{
	struct poll *p = arg;

	if (rc) {
		log_debug("weftd", "poll: %s", err->msg);
	}
	p->after_read(p->arg);
}

static void read_now(struct plan_request *r)
{
	struct poll *p = r->arg;

	p->round = r;
	apply_reading_for(p->env->apply, STORE_BY_POLL);
	apply_read(p->env->apply, on_read, p);
}

static void on_time(void *arg)
{
	struct poll *p = arg;

	if (p->env->draining) {
		return;
	}
	/* Whoever has the slot now reads what he needs himself. */
	if (plan_queue_busy(p->queue)) {
		set_next(p);
	} else {
		plan_queue_slot(p->queue, read_now, p);
	}
}

struct poll *poll_new(struct daemon_env *env, struct plan_queue *q, int64_t every_ms,
		      void (*after_read)(void *arg), void *arg)
{
	struct poll *p;

	if (every_ms == 0) {
		return NULL;
	}
	p = x_new(1, sizeof(*p));
	p->env = env;
	p->queue = q;
	p->every_ms = every_ms;
	p->after_read = after_read;
	p->arg = arg;
	p->timer = part_timer_new(env, on_time, p);
	set_next(p);
	return p;
}

void poll_free(struct poll *p)
{
	if (p) {
		part_timer_free(p->timer);
		free(p);
	}
}
