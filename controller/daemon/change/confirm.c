/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changes that go back unless they are confirmed. What waits is in the store,
 * noted with the commit itself; here is only the clock. Going back is a
 * change like any other, but that the floor of capacity does not stop it; when
 * it fails it is tried again, as no operator may be there to do it.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "controller/daemon/change/private.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"

#define RETRY_MS 30000		/* after going back has failed */
#define NS_PER_MS 1000000

/* "change N WHAT", for those who watch. */
static void emit(struct changes *c, Weft__V1__EventKind kind, int64_t change, const char *what)
{
	const struct daemon_event ev = { .kind = kind, .change = change };

	event_emit(c->env->events, &ev, "change %" PRId64 " %s", change, what);
}

/* Goes back; on failure the clock is set to try again. */
void changes_confirm_expired(void *arg)
{
	struct changes *c = arg;
	struct err err = { 0 };

	if (c->env->draining || c->now || !c->confirm.change) {
		return;
	}
	if (c->confirm.back_to) {
		log_warn("weftd", "change %" PRId64 " was not confirmed in time: back "
			 "to the configuration of change %" PRId64,
			 c->confirm.change, c->confirm.back_to);
	} else {
		log_warn("weftd", "change %" PRId64 " was not confirmed in time: it is "
			 "the first one, and its jobs go", c->confirm.change);
	}
	if (c->clock.tried != c->confirm.change) {
		emit(c, EVENT_KIND(CONFIRM_EXPIRED), c->confirm.change,
		     "was not confirmed in time");
	}
	c->clock.tried = c->confirm.change;
	if (changes_begin_back(c, NULL, c->confirm.back_to, "not confirmed in time", &err)) {
		log_error("weftd", "cannot go back: %s", err.msg);
		changes_watch_confirm(c);
	}
}

/* What a restart left of its time. A clock that was set meanwhile, or was not
 * yet set, may be anything: no change waits longer than was asked for. */
static int64_t left_ns(const struct store_confirm *c)
{
	int64_t left = c->by_ns - clk_wall_ns();

	return left < 0 ? 0 : left > c->within_ns ? c->within_ns : left;
}

/* Milliseconds until what waits goes back, or is tried again. */
static int64_t wait_ms(struct changes *c)
{
	struct confirm_clock *clock = &c->clock;
	int64_t left;

	if (clock->tried == c->confirm.change) {
		return RETRY_MS;
	}
	if (clock->change != c->confirm.change) {
		clock->change = c->confirm.change;
		clock->due_ns = clk_now_ns() + left_ns(&c->confirm);
	}
	left = clock->due_ns - clk_now_ns();
	return left > 0 ? (left + NS_PER_MS - 1) / NS_PER_MS : 0;
}

void changes_watch_confirm(struct changes *c)
{
	int64_t before = c->confirm.change;
	struct err err = { 0 };

	if (store_confirming(c->env->store, &c->confirm, &err)) {
		log_error("weftd", "%s", err.msg);
	}
	if (!c->confirm.change || c->env->read_only) {
		part_timer_stop(c->clock.timer);
		return;
	}
	if (c->confirm.change != before) {
		emit(c, EVENT_KIND(CONFIRM_WAITING), c->confirm.change,
		     "goes back unless it is confirmed");
	}
	part_timer_start(c->clock.timer, wait_ms(c));
}

/* change: the one that the caller means, 0: any. */
static int confirm(struct changes *c, int64_t change, struct err *err)
{
	if (c->now) {
		return err_set(err, WEFT_ESTALE, "a change is under way");
	}
	if (!c->confirm.change) {
		return err_set(err, WEFT_ENOTFOUND, "no change waits for its confirmation");
	}
	if (change && change != c->confirm.change) {
		return err_set(err, WEFT_ENOTFOUND, "it is change %" PRId64
			       " that waits, not change %" PRId64,
			       c->confirm.change, change);
	}
	return store_confirm(c->env->store, err);
}

void handle_confirm(struct rpc_call *call, const ProtobufCMessage *msg, void *arg)
{
	const Weft__V1__ConfirmRequest *req = (const void *)msg;
	Weft__V1__ConfirmResponse res = WEFT__V1__CONFIRM_RESPONSE__INIT;
	struct changes *c = arg;
	struct err err = { 0 };

	if (!env_may_change(c->env, call)) {
		return;
	}
	res.change = c->confirm.change;
	if (confirm(c, req->change, &err)) {
		rpc_finish_err(call, &err);
		return;
	}
	log_info("weftd", "change %" PRId64 " is confirmed", res.change);
	env_audit_call(c->env, call, res.change, "confirmed");
	emit(c, EVENT_KIND(CONFIRMED), res.change, "is confirmed");
	changes_watch_confirm(c);
	rpc_send(call, &res.base, &err);
	rpc_finish(call, RPC_OK, NULL);
}
