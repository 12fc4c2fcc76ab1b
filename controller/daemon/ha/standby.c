/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Standing by while another weftd leads. The store is only read, or follows that of
 * the leader, and no device is opened: many of them take one session at a time. What
 * the store knows is answered; everything else names the leader. A lease that has
 * shown no beat for its whole time, measured by our own clock from when we saw the last
 * one, is taken over.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/daemon/ha/ha.h"
#include "lib/base/alloc.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/coroutine/coroutine.h"

#define NS_PER_MS 1000000

/* Lives until the loop has closed its handles. */
struct standby {
	struct daemon_env *env;
	struct election *election;
	uv_timer_t timer;
	uv_signal_t term, intr;
	struct part_wait *wait;	/* for the election's descriptor, or NULL */
	int n_handles;
	int64_t lease_ms;
	struct store_lease seen;
	int64_t seen_ns;	/* monotonic: when it was new; 0: never */
	bool looks;		/* a look, and what follows on it, is under way */
	bool leads;
	int wait_fd;		/* as the last look left it */
	bool stopping, ended_once;
	void (*ended)(bool leads, void *arg);
	void *arg;
};

static const char *name_or_none(const char *holder)
{
	return holder[0] ? holder : "no weftd";
}

const char *standby_leader(const struct standby *s)
{
	return name_or_none(s->seen.holder);
}

int standby_permit(struct standby *s, const char *path, struct err *err)
{
	static const char *const answered[] = {
		"/weft.v1.FabricService/Status", "/weft.v1.FabricService/History",
		"/weft.v1.FabricService/Audit", "/weft.v1.FabricService/ExternalChanges",
		"/weft.v1.JobsService/ListJobs",
	};
	struct err ignored = { 0 };

	if (strncmp(path, "/grpc.", 6) == 0) {
		return 0;
	}
	for (size_t i = 0; i < sizeof(answered) / sizeof(*answered); i++) {
		if (strcmp(path, answered[i]) == 0) {
			/* As it is now, where that costs nothing; on_time finds out what it
			 * means. */
			if (s->election->is_local) {
				s->election->look(s->election, &ignored);
			}
			return 0;
		}
	}
	err_set(err, WEFT_EUNAVAIL, "this weftd stands by: %s leads", standby_leader(s));
	err_hint(err, "ask the one that leads");
	return err->code;
}

/* ---- watching ------------------------------------------------------------ */

static void on_time(uv_timer_t *timer);

static void on_change(void *arg)
{
	on_time(&((struct standby *)arg)->timer);
}

/* Once it leads, or is to stop, and nothing is under way. */
static void end(struct standby *s)
{
	if (!s->ended_once && !s->looks) {
		s->ended_once = true;
		uv_timer_stop(&s->timer);
		part_wait_stop(&s->wait);
		s->ended(s->leads, s->arg);
	}
}

static void take_over(struct standby *s)
{
	struct err err = { 0 };

	if (s->election->lead(s->election, &s->seen, &err)) {
		/* Whoever was faster has a beat that is seen the next time; a lock
		 * that is in the way goes by itself. */
		log_info("weftd", "%s", err.msg);
		return;
	}
	log_warn("weftd", "%s%s; this one leads now (term %llu)",
		 standby_leader(s), s->seen.holder[0] ? " is silent" : " leads",
		 (unsigned long long)store_fence(s->env->store));
	s->leads = true;
}

/* Says when it begins that nothing is known of the others; the status has the newest reason. */
static void tell_problem(struct standby *s, const char *why)
{
	struct ha_status *status = &s->election->status;

	if (why[0] && !status->problem[0]) {
		log_warn("weftd", "%s", why);
	}
	snprintf(status->problem, sizeof(status->problem), "%s", why);
}

/* Who leads, and whether this one does from now on. */
static void look(void *arg)
{
	struct standby *s = arg;
	const struct store_lease *lease = &s->election->status.leader;
	struct err err = { 0 };
	int64_t now;

	s->wait_fd = -1;
	if (s->election->look(s->election, &err)) {
		tell_problem(s, err.msg);
		return;
	}
	tell_problem(s, "");
	now = clk_now_ns();	/* not before: while it waited for a lock there may have been a
				 * beat */
	if (!s->seen_ns || lease->beat != s->seen.beat || lease->term != s->seen.term) {
		if (strcmp(lease->holder, s->seen.holder) != 0) {
			log_info("weftd", "%s leads", name_or_none(lease->holder));
		}
		s->seen = *lease;
		s->seen_ns = now;
	}
	if (!s->stopping && (!lease->holder[0] ||
			     now - s->seen_ns > s->lease_ms * NS_PER_MS)) {
		take_over(s);
	}
	if (!s->leads && s->election->wait_fd) {
		s->wait_fd = s->election->wait_fd(s->election);
	}
}

static void after_look(void *arg)
{
	struct standby *s = arg;

	s->looks = false;
	part_wait_start(s->env, s->wait_fd, on_change, s, &s->wait);
	if (s->leads || s->stopping) {
		end(s);
	}
}

static void on_time(uv_timer_t *timer)
{
	struct standby *s = timer->data;

	if (!s->looks && !s->ended_once) {
		s->looks = true;
		co_start(s->env->loop, look, after_look, s);
	}
}

static void on_signal(uv_signal_t *handle, int number)
{
	struct standby *s = handle->data;

	(void)number;
	if (!s->ended_once) {
		notify_send("STOPPING=1");
		s->stopping = true;
		end(s);
	}
}

/* ---- life ---------------------------------------------------------------- */

static void on_closed(uv_handle_t *handle)
{
	struct standby *s = handle->data;

	if (--s->n_handles == 0) {
		free(s);
	}
}

void standby_free(struct standby *s)
{
	if (s) {
		part_wait_stop(&s->wait);
		uv_close((uv_handle_t *)&s->timer, on_closed);
		uv_close((uv_handle_t *)&s->term, on_closed);
		uv_close((uv_handle_t *)&s->intr, on_closed);
	}
}

struct standby *standby_new(struct daemon_env *env, struct election *election, int64_t lease_ms,
			    void (*ended)(bool leads, void *arg), void *arg)
{
	struct standby *s = x_new(1, sizeof(*s));

	s->env = env;
	s->election = election;
	s->lease_ms = lease_ms;
	s->ended = ended;
	s->arg = arg;
	s->n_handles = 3;
	uv_timer_init(env->loop, &s->timer);
	uv_signal_init(env->loop, &s->term);
	uv_signal_init(env->loop, &s->intr);
	s->timer.data = s->term.data = s->intr.data = s;
	uv_signal_start(&s->term, on_signal, SIGTERM);
	uv_signal_start(&s->intr, on_signal, SIGINT);
	uv_timer_start(&s->timer, on_time, 0, (uint64_t)lease_ms / 8);
	return s;
}
