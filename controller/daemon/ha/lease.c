/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Leading others. The leader proves that it lives every quarter of the lease, and
 * believes to lead for two thirds of it after the beginning of the last beat that
 * was taken; another takes over no earlier than a whole lease after that. Both measure
 * intervals by their own clocks only.
 *
 * A leader that was stopped, or cut off from the others, ends on the spot when
 * it finds out: at its next beat, and before its next command to a device. It
 * leaves the circuits as they are, and whoever leads then reads the devices before
 * anything else.
 */
#include <stdlib.h>
#include <unistd.h>

#include "controller/daemon/ha/ha.h"
#include "lib/base/alloc.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/coroutine/coroutine.h"

#define NS_PER_MS 1000000
#define EXIT_DEPOSED 75
#define IDLE_MS 10

/* Lives until the loop has closed its timer. */
struct lease {
	uv_timer_t timer;
	struct election *election;
	int64_t lease_ns;
	int64_t until_ns;	/* clk_boot_ns: it leads for sure */
	bool silent;		/* the last beat failed, as the log says */
	bool beats;		/* a beat is under way */
	int rc;			/* of the last beat */
	struct err err;
	void (*yielded)(void *arg);	/* or NULL: it does not yield */
	void *yielded_arg;
};

/* Nothing is cleaned up: the circuits and the store are another leader's. */
void lease_end_process(const struct election *e, const char *why)
{
	log_error("weftd", "leads no more, and ends: %s", why);
	_exit(e->stops ? 0 : EXIT_DEPOSED);
}

static void before_command(void *arg)
{
	const struct lease *l = arg;

	if (clk_boot_ns() > l->until_ns) {
		lease_end_process(l->election, "its lease ran out before a command to a device");
	}
}

static void beat(void *arg)
{
	struct lease *l = arg;

	l->err = (struct err){ 0 };
	l->rc = l->election->beat(l->election, &l->err);
}

static void take_proof(struct lease *l)
{
	l->until_ns = l->election->proven_ns + l->lease_ns / 3 * 2;
}

static void after_beat(void *arg)
{
	struct lease *l = arg;

	l->beats = false;
	if (l->rc == WEFT_ESTALE) {
		lease_end_process(l->election, l->err.msg);
	}
	if (l->rc && !l->silent) {
		log_warn("weftd", "%s", l->err.msg);
	}
	l->silent = l->rc != 0;
	take_proof(l);
}

static void on_beat(uv_timer_t *timer)
{
	struct lease *l = timer->data;

	if (!l->beats && !l->yielded) {
		l->beats = true;
		co_start(timer->loop, beat, after_beat, l);
	}
	if (clk_boot_ns() > l->until_ns) {
		lease_end_process(l->election, "its lease ran out");
	}
}

static void on_closed(uv_handle_t *handle)
{
	free(handle->data);
}

struct lease *lease_new(struct daemon_env *env, struct election *election, int64_t lease_ms)
{
	struct lease *l = x_new(1, sizeof(*l));

	l->election = election;
	l->lease_ns = lease_ms * NS_PER_MS;
	take_proof(l);
	uv_timer_init(env->loop, &l->timer);
	l->timer.data = l;
	uv_timer_start(&l->timer, on_beat, 0, (uint64_t)lease_ms / 4);
	apply_before_command(env->apply, before_command, l);
	return l;
}

static void yield(void *arg)
{
	struct lease *l = arg;
	struct err err = { 0 };

	while (l->beats) {
		co_poll(NULL, IDLE_MS);
	}
	if (l->election->yield(l->election, &err)) {
		log_warn("weftd", "%s", err.msg);
	}
	uv_timer_stop(&l->timer);
}

static void after_yield(void *arg)
{
	struct lease *l = arg;

	l->yielded(l->yielded_arg);
}

void lease_yield(struct lease *l, void (*done)(void *arg), void *arg)
{
	if (!l) {
		done(arg);
		return;
	}
	l->yielded = done;
	l->yielded_arg = arg;
	co_start(l->timer.loop, yield, after_yield, l);
}

void lease_free(struct lease *l)
{
	if (l) {
		uv_close((uv_handle_t *)&l->timer, on_closed);
	}
}
