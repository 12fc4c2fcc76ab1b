/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Faults of weft that are planted: each is a function that does not do what it should, in the
 * place of the one that the product calls, while it is switched on. What the rules hear of stores
 * and devices is below them: the truth.
 */
#include "tests/sim/oracle/planted.h"

#include <stdlib.h>
#include <string.h>

#include "controller/apply/private.h"
#include "controller/daemon/jobs/private.h"
#include "controller/store/private.h"
#include "lib/base/alloc.h"
#include "lib/rpc/rpc.h"
#include "tests/sim/oracle/oracle_parts.h"
#include "tests/sim/oracle/wraps.h"

/* Which of those that could be hit are. */
#define ONE_IN 6

enum planted_fault {
	NONE, NO_UNDO, LATE_JOURNAL, NO_SYNC, NO_LEASE, NOT_READ_BACK, LIGHT_OF_OTHERS, TOLD_EARLY,
	SKIPPED_ENTRY, HOST_TWICE, LOST_EVENT, LOST_ON_RESUME, SYNC_AT_ONCE,
};

static const struct {
	const char *name, *what;
} faults[] = {
	[NO_UNDO] = { "no-undo", "a change that failed is not taken back" },
	[LATE_JOURNAL] = { "late-journal", "a command is sent before the journal says so" },
	[NO_SYNC] = { "no-sync", "the store says that it has synced, and has not" },
	[NO_LEASE] = { "no-lease", "the lease is not looked at before a command" },
	[NOT_READ_BACK] = { "not-read-back", "what a device has done is believed unread" },
	[LIGHT_OF_OTHERS] = { "light-of-others", "a circuit of another user is deleted" },
	[TOLD_EARLY] = { "told-early", "a change is acknowledged before others have it" },
	[SKIPPED_ENTRY] = { "skipped-entry", "a standby skips an entry of the log" },
	[HOST_TWICE] = { "host-twice", "a job is given hosts that another has" },
	[LOST_EVENT] = { "lost-event", "an event is not sent to one who watches" },
	[LOST_ON_RESUME] = { "lost-on-resume", "a watch that goes on begins one event late" },
	[SYNC_AT_ONCE] = { "sync-at-once", "the loop waits for the disk before each command" },
};

#define N_FAULTS (int)(sizeof(faults) / sizeof(faults[0]))

static enum planted_fault on;

bool plant(const char *name)
{
	for (int i = 1; i < N_FAULTS; i++) {
		if (strcmp(faults[i].name, name) == 0) {
			on = (enum planted_fault)i;
			return true;
		}
	}
	return false;
}

void planted_list(FILE *to)
{
	for (int i = 1; i < N_FAULTS; i++) {
		fprintf(to, "plant %s: %s\n", faults[i].name, faults[i].what);
	}
}

/* The fault is on, and it is this one's turn. */
static bool hits(enum planted_fault f, int one_in)
{
	static int turns;

	return on == f && ++turns % one_in == 0;
}

/* ---- changes ------------------------------------------------------------- */

WRAP(enum phase, undo_begin, struct change *c)
{
	if (on != NO_UNDO) {
		return __real_undo_begin(c);
	}
	c->res.verdict = APPLY_ROLLED_BACK;
	return PHASE_END;
}

static bool is_in_flight(const struct store_work *w)
{
	for (int i = 0; i < w->n_steps; i++) {
		if (w->steps[i].state == STORE_SENT) {
			return true;
		}
	}
	return false;
}

WRAP(int, store_mark, struct store *s, const struct store_journal *j, int work, struct err *err)
{
	if (on == LATE_JOURNAL && is_in_flight(&j->works[work])) {
		return 0;
	}
	if (on == SYNC_AT_ONCE) {
		watched_store_sync(s, err);
	}
	return watched_store_mark(s, j, work, err);
}

WRAP(int, store_sync, struct store *s, struct err *err)
{
	return on == NO_SYNC ? 0 : watched_store_sync(s, err);
}

WRAP(void, apply_before_command, struct apply *a, void (*fn)(void *arg), void *arg)
{
	if (on != NO_LEASE) {
		__real_apply_before_command(a, fn, arg);
	}
}

WRAP(int, compare_after, const struct store_work *w, int stage, const struct device *d,
     bool *settling, int *at, struct err *err)
{
	if (on != NOT_READ_BACK) {
		return __real_compare_after(w, stage, d, settling, at, err);
	}
	*settling = false;
	*at = -1;
	return 0;
}

/* One of those that are deleted is another than was asked for. */
static const struct drv_batch *spoil(const char *device, const struct drv_batch *b)
{
	struct drv_batch *out = x_new(1, sizeof(*out));
	struct drv_item *items = x_new((size_t)b->n_items + 1, sizeof(*items));
	struct optics_xc other;

	*out = *b;
	memcpy(items, b->items, (size_t)b->n_items * sizeof(*items));
	out->items = items;
	for (int i = 0; i < b->n_items; i++) {
		if (items[i].op == DRV_DEL && oracle_find_other(device, &other)) {
			items[i].xc = other;
			break;
		}
	}
	return out;
}

WRAP(void, drv_submit, struct drv *dev, const struct drv_batch *batch, drv_submit_cb cb, void *arg)
{
	watched_drv_submit(dev, on == LIGHT_OF_OTHERS && !batch->programs ?
			   spoil(dev->name, batch) : batch, cb, arg);
}

/* ---- several weftd ------------------------------------------------------- */

/* It is said that others have what they do not: the newest is not even on its way. */
WRAP(int64_t, store_published, const struct store *s)
{
	return on == TOLD_EARLY && s->publish ? INT64_MAX : __real_store_published(s);
}

/* What one leader has not given away yet: always its last transaction. */
struct held {
	store_publish_fn publish;
	void *arg;
	struct store_entry entry;	/* position 0: nothing is held */
	uint8_t digest[STORE_DIGEST_LEN];
	struct buf changes;
};

static void publish_late(void *arg, const struct store_entry *entry)
{
	struct held *h = arg;

	if (h->entry.position) {
		h->publish(h->arg, &h->entry);
	}
	buf_reset(&h->changes);
	buf_add(&h->changes, entry->changes, entry->len);
	memcpy(h->digest, entry->digest, sizeof(h->digest));
	h->entry = *entry;
	h->entry.digest = h->digest;
	h->entry.changes = h->changes.data;
}

WRAP(void, store_publish, struct store *s, store_publish_fn fn, void *arg)
{
	struct held *h;

	if (on != TOLD_EARLY || !fn) {
		__real_store_publish(s, fn, arg);
		return;
	}
	h = x_new(1, sizeof(*h));
	*h = (struct held){ .publish = fn, .arg = arg };
	__real_store_publish(s, publish_late, h);
}

WRAP(int, store_follow, struct store *s, int64_t position, const void *changes, size_t len,
     struct err *err)
{
	const uint8_t *digest = (const uint8_t *)changes + len - STORE_DIGEST_LEN;

	if (!hits(SKIPPED_ENTRY, ONE_IN)) {
		return __real_store_follow(s, position, changes, len, err);
	}
	s->position = position;
	memcpy(s->digest, digest, sizeof(s->digest));
	return db_run(s, err, "UPDATE replica SET position = ?, digest = ?", "ib", position, digest,
		      STORE_DIGEST_LEN);
}

/* ---- jobs and events ----------------------------------------------------- */

WRAP(void, job_view_mark, struct job_view *v, const struct jobs *jobs, const char *const *except,
     int n)
{
	if (on != HOST_TWICE) {
		__real_job_view_mark(v, jobs, except, n);
	}
}

WRAP(int, rpc_send, struct rpc_call *call, const ProtobufCMessage *response, struct err *err)
{
	bool is_event = response->descriptor == &weft__v1__watch_response__descriptor;

	return is_event && hits(LOST_EVENT, ONE_IN) ? 0 : __real_rpc_send(call, response, err);
}

WRAP(void, handle_watch, struct rpc_call *call, const ProtobufCMessage *msg, void *arg)
{
	Weft__V1__Number *after = ((const Weft__V1__WatchRequest *)msg)->after;

	if (on == LOST_ON_RESUME && after) {
		after->value++;
	}
	__real_handle_watch(call, msg, arg);
}
