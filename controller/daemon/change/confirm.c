/*
 * Changes that go back unless they are confirmed. What waits is in the store,
 * noted with the commit itself; here is only the clock. Going back is a
 * change like any other, but that the floor of capacity does not stop it; when
 * it fails it is tried again, as nobody may be there to do it.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "controller/daemon/core/private.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"

#define RETRY_MS 30000
#define NS_PER_MS 1000000

/* Lives until the loop has closed its timer, which may be after the daemon. */
struct confirm_clock {
	uv_timer_t timer;
	struct daemon *d;
	int64_t change;		/* whose time it is */
	int64_t due_ns;		/* monotonic: who sets the clock moves nothing */
	int64_t tried;		/* the change whose going back was begun */
};

static void tell(struct daemon *d, Weft__V1__EventKind kind, int64_t change,
		 const char *what)
{
	const struct daemon_event ev = { .kind = kind, .change = change };

	daemon_event(d, &ev, "change %" PRId64 " %s", change, what);
}

static void on_time_over(uv_timer_t *timer)
{
	struct confirm_clock *clock = timer->data;
	struct daemon *d = clock->d;
	struct err err = { 0 };

	if (d->draining || d->change || !d->confirm.change) {
		return;
	}
	log_warn("weftd", "change %" PRId64 " was not confirmed in time: back "
		 "to the configuration of change %" PRId64,
		 d->confirm.change, d->confirm.back_to);
	if (clock->tried != d->confirm.change) {
		tell(d, WEFT__V1__EVENT_KIND__EVENT_KIND_CONFIRM_EXPIRED,
		     d->confirm.change, "was not confirmed in time");
	}
	clock->tried = d->confirm.change;
	if (daemon_go_back(d, NULL, d->confirm.back_to,
			   "not confirmed in time", &err)) {
		log_error("weftd", "cannot go back: %s", err.msg);
		daemon_confirm_watch(d);
	}
}

static int need_clock(struct daemon *d)
{
	if (d->clock) {
		return 0;
	}
	d->clock = calloc(1, sizeof(*d->clock));
	if (!d->clock) {
		return WEFT_ENOMEM;
	}
	d->clock->d = d;
	uv_timer_init(d->loop, &d->clock->timer);
	d->clock->timer.data = d->clock;
	return 0;
}

/* What a restart left of its time. A clock that was set meanwhile, or was not
 * yet set, may say anything: nobody waits longer than was asked for. */
static int64_t left_ns(const struct store_confirm *c)
{
	int64_t left = c->by_ns - clk_wall_ns();

	return left < 0 ? 0 : left > c->within_ns ? c->within_ns : left;
}

/* Milliseconds until what waits goes back, or is tried again. */
static uint64_t wait_ms(const struct daemon *d)
{
	struct confirm_clock *clock = d->clock;
	int64_t left;

	if (clock->tried == d->confirm.change) {
		return RETRY_MS;
	}
	if (clock->change != d->confirm.change) {
		clock->change = d->confirm.change;
		clock->due_ns = clk_now_ns() + left_ns(&d->confirm);
	}
	left = clock->due_ns - clk_now_ns();
	return left > 0 ? (uint64_t)((left + NS_PER_MS - 1) / NS_PER_MS) : 0;
}

void daemon_confirm_watch(struct daemon *d)
{
	int64_t before = d->confirm.change;
	struct err err = { 0 };

	if (store_confirming(d->store, &d->confirm, &err)) {
		log_error("weftd", "%s", err.msg);
	}
	if (!d->confirm.change) {
		if (d->clock) {
			uv_timer_stop(&d->clock->timer);
		}
		return;
	}
	if (need_clock(d)) {
		log_error("weftd", "no memory for the clock of a change that "
				   "is to be confirmed");
		return;
	}
	if (d->confirm.change != before) {
		tell(d, WEFT__V1__EVENT_KIND__EVENT_KIND_CONFIRM_WAITING,
		     d->confirm.change, "goes back unless it is confirmed");
	}
	uv_update_time(d->loop);
	uv_timer_start(&d->clock->timer, on_time_over, wait_ms(d), 0);
}

static void on_closed(uv_handle_t *handle)
{
	free(handle->data);
}

void daemon_confirm_fini(struct daemon *d)
{
	if (d->clock) {
		uv_close((uv_handle_t *)&d->clock->timer, on_closed);
		d->clock = NULL;
	}
}

static int confirm(struct daemon *d, int64_t change, struct err *err)
{
	if (d->change) {
		return err_set(err, WEFT_ESTALE, "a change is under way");
	}
	if (!d->confirm.change) {
		return err_set(err, WEFT_ENOTFOUND,
			       "no change waits for its confirmation");
	}
	if (change && change != d->confirm.change) {
		return err_set(err, WEFT_ENOTFOUND, "it is change %" PRId64
			       " that waits, not change %" PRId64,
			       d->confirm.change, change);
	}
	return store_confirm(d->store, err);
}

void handle_confirm(struct rpc_call *call, const ProtobufCMessage *msg,
		    void *arg)
{
	const Weft__V1__ConfirmRequest *req =
		(const Weft__V1__ConfirmRequest *)msg;
	Weft__V1__ConfirmResponse res = WEFT__V1__CONFIRM_RESPONSE__INIT;
	struct daemon *d = arg;
	struct err err = { 0 };

	if (!daemon_may_change(d, call)) {
		return;
	}
	res.change = d->confirm.change;
	if (confirm(d, req->change, &err)) {
		rpc_finish_err(call, &err);
		return;
	}
	log_info("weftd", "change %" PRId64 " is confirmed", res.change);
	daemon_audit_call(d, call, res.change, "confirmed");
	tell(d, WEFT__V1__EVENT_KIND__EVENT_KIND_CONFIRMED, res.change,
	     "is confirmed");
	daemon_confirm_watch(d);
	rpc_send(call, &res.base, &err);
	rpc_finish(call, RPC_OK, NULL);
}
