/*
 * The slow round: devices that say nothing of their own accord are read now
 * and then, so that what somebody else did to them, or a restart, is found
 * without anybody asking. What is found is told to those who watch, like
 * after any other reading; nothing is sent. A round has its turn among the
 * requests, and the next one is set only when it is over.
 */
#include <stdlib.h>

#include "controller/daemon/core/private.h"
#include "controller/daemon/hosts/hosts.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/rng.h"

/* Lives until the loop has closed its timer, which may be after the daemon. */
struct poll {
	uv_timer_t timer;
	struct daemon *d;
	int64_t every_ms;
};

static void on_round(uv_timer_t *timer);

/* A tenth more or less, so that several daemons do not keep in step. */
static void set_next(struct daemon *d)
{
	struct poll *p = d->poll;
	int64_t tenth;

	if (p && !d->draining) {
		tenth = p->every_ms / 10;
		uv_timer_start(&p->timer, on_round, (uint64_t)
			       (p->every_ms - tenth +
				(int64_t)(rng_mix((uint64_t)clk_now_ns()) %
					  (uint64_t)(2 * tenth + 1))), 0);
	}
}

static void after_look(struct daemon *d, void *arg)
{
	daemon_work_free(arg);
	jobs_looked(d->orders);
	set_next(d);
}

static void after_round(int rc, const struct err *err, void *arg)
{
	struct work *w = arg;

	if (rc) {
		log_debug("weftd", "poll: %s", err->msg);
	}
	daemon_hosts_look(w->d, after_look, w);
}

static void read_now(struct work *w)
{
	apply_reading_for(w->d->apply, STORE_BY_POLL);
	apply_read(w->d->apply, after_round, w);
}

static void on_round(uv_timer_t *timer)
{
	struct poll *p = timer->data;
	struct daemon *d = p->d;
	struct err err = { 0 };

	if (d->draining) {
		return;
	}
	/* Whoever has his turn now reads what he needs himself. */
	if (d->change || d->turn || d->reading) {
		set_next(d);
	} else if (daemon_turn(d, read_now, NULL, &err)) {
		log_warn("weftd", "poll: %s", err.msg);
		set_next(d);
	}
}

int daemon_poll_init(struct daemon *d, int64_t every_ms, struct err *err)
{
	if (every_ms == 0) {
		return 0;
	}
	d->poll = calloc(1, sizeof(*d->poll));
	if (!d->poll) {
		return err_nomem(err);
	}
	d->poll->d = d;
	d->poll->every_ms = every_ms;
	uv_timer_init(d->loop, &d->poll->timer);
	d->poll->timer.data = d->poll;
	set_next(d);
	return 0;
}

static void on_closed(uv_handle_t *handle)
{
	free(handle->data);
}

void daemon_poll_fini(struct daemon *d)
{
	if (d->poll) {
		uv_close((uv_handle_t *)&d->poll->timer, on_closed);
		d->poll = NULL;
	}
}
