/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What devices report of their own accord goes to those who watch, and is a
 * reason to read the device again, so that what another user did shows at once
 * and not at the next slow round. Of a device that never stops reporting only
 * some lines are passed on in a window of time, and it is read less and less
 * often.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/daemon/views/private.h"
#include "lib/base/alloc.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/vec.h"

#define S INT64_C(1000000000)
#define SETTLE_MS 50		/* several reports come of one change */
#define BUSY_MS 200		/* until another request's slot is over */
#define MIN_GAP_NS S		/* between two readings of a device */
#define MAX_GAP_NS (32 * S)
#define QUIET_NS (60 * S)	/* after which it is believed again */
#define WINDOW_NS (10 * S)
#define WINDOW_LINES 20		/* of a device in a window */

/* A device that has reported something. */
struct event_source {
	char name[CONF_MAX_NAME + 1];
	int64_t window_ns;	/* monotonic: when it began */
	int n_reported;		/* lines passed on in the window */
	int64_t n_dropped;	/* in the window */
	bool wants_reading;	/* when the gap since the last is over */
	int64_t read_ns;	/* monotonic: when its reports last made us read it */
	int64_t gap_ns;		/* until the next; doubles while reports go on */
};

struct device_events {
	struct part_timer *timer;	/* for the first that is due */
	struct daemon_env *env;
	struct plan_queue *queue;
	VEC(struct event_source) sources;	/* devices that ever reported */
	bool reading;		/* has or waits for a slot; it sets the timer at
				 * its end */
};

/* Made when missing, so that its first report is passed on and read for at once. */
static struct event_source *find(struct device_events *n, const char *name)
{
	struct event_source s = { .gap_ns = MIN_GAP_NS };

	for (size_t i = 0; i < n->sources.n; i++) {
		if (strcmp(n->sources.v[i].name, name) == 0) {
			return &n->sources.v[i];
		}
	}
	snprintf(s.name, sizeof(s.name), "%s", name);
	s.window_ns = s.read_ns = clk_now_ns() - QUIET_NS;
	vec_push(&n->sources, s);
	return &n->sources.v[n->sources.n - 1];
}

/* ---- reports ------------------------------------------------------------- */

/* False when the window's lines are used up. What was dropped is logged when the next
 * window begins, as a number. */
static bool may_report(struct event_source *s)
{
	int64_t now = clk_now_ns();

	if (now - s->window_ns >= WINDOW_NS) {
		if (s->n_dropped) {
			log_warn("weftd", "%s: %" PRId64 " more of its "
				 "reports were dropped", s->name, s->n_dropped);
		}
		s->window_ns = now;
		s->n_reported = 0;
		s->n_dropped = 0;
	}
	if (s->n_reported == WINDOW_LINES) {
		s->n_dropped++;
		return false;
	}
	s->n_reported++;
	return true;
}

/* Passes a report on to those who watch. */
static void report(struct daemon_env *env, const char *device, const struct drv_event *ev)
{
	char port[16] = "";
	const struct daemon_event what = {
		.kind = WEFT__V1__EVENT_KIND__EVENT_KIND_DEVICE_REPORT,
		.device = device, .port = port,
	};

	if (ev->has_port) {
		snprintf(port, sizeof(port), "%s %d", ev->is_out ? "out" : "in", ev->index + 1);
	}
	event_emit(env->events, &what, "%s: %s%s%s: %s", device,
		     drv_event_name(ev->kind), port[0] ? " " : "", port,
		     ev->text);
}

/* ---- read ---------------------------------------------------------------- */

static void read_soon(struct device_events *n, int64_t at_least_ms);

static void after_reading(int rc, const struct err *err, void *arg)
{
	struct plan_request *slot = arg;
	struct device_events *n = slot->arg;

	if (rc) {
		log_debug("weftd", "device events: %s", err->msg);
	}
	n->reading = false;
	plan_request_free(slot);
	read_soon(n, SETTLE_MS);
}

static int64_t due_ns(const struct event_source *s)
{
	return s->read_ns + s->gap_ns;
}

/* Has the slot: reads the devices that are due by now, in one go. */
static void read_now(struct plan_request *slot)
{
	struct device_events *n = slot->arg;
	int64_t now = clk_now_ns();
	const char **names = x_new(n->sources.n + 1, sizeof(*names));
	int k = 0;

	for (size_t i = 0; i < n->sources.n; i++) {
		struct event_source *s = &n->sources.v[i];

		if (!s->wants_reading || due_ns(s) > now) {
			continue;
		}
		if (now - s->read_ns >= QUIET_NS) {
			s->gap_ns = MIN_GAP_NS;
		} else {
			s->gap_ns = s->gap_ns * 2 > MAX_GAP_NS ? MAX_GAP_NS : s->gap_ns * 2;
		}
		s->read_ns = now;
		s->wants_reading = false;
		names[k++] = s->name;
	}
	apply_reading_for(n->env->apply, STORE_BY_EVENT);
	apply_read_some(n->env->apply, names, k, after_reading, slot);
	free(names);
}

/* Asks for a slot unless something else is under way: that reads the devices that it
 * needs by itself, and what is left is read after it. */
static void on_due(void *arg)
{
	struct device_events *n = arg;

	if (n->env->draining || n->reading) {
		return;
	}
	if (plan_queue_busy(n->queue)) {
		part_timer_start(n->timer, BUSY_MS);
		return;
	}
	n->reading = true;
	plan_queue_slot(n->queue, read_now, n);
}

/* The timer is set for the first device that wants to be read, and for no less than
 * at_least_ms from now. */
static void read_soon(struct device_events *n, int64_t at_least_ms)
{
	int64_t now = clk_now_ns(), first = INT64_MAX, ms;

	for (size_t i = 0; i < n->sources.n; i++) {
		const struct event_source *s = &n->sources.v[i];

		if (s->wants_reading && due_ns(s) < first) {
			first = due_ns(s);
		}
	}
	if (first == INT64_MAX || n->reading || n->env->draining) {
		return;
	}
	ms = first > now ? (first - now + 999999) / 1000000 : 0;
	part_timer_start(n->timer, ms > at_least_ms ? ms : at_least_ms);
}

/* Called by the engine for each report. A note is for people only: it says nothing of
 * the device's state, so nothing is read. */
static void on_event(const char *device, const struct drv_event *ev, void *arg)
{
	struct device_events *n = arg;
	struct event_source *s = find(n, device);

	if (may_report(s)) {
		report(n->env, device, ev);
	}
	if (ev->kind != DRV_EVENT_NOTE) {
		s->wants_reading = true;
		read_soon(n, SETTLE_MS);
	}
}

struct device_events *device_events_new(struct daemon_env *env, struct plan_queue *queue)
{
	struct device_events *n = x_new(1, sizeof(*n));

	n->env = env;
	n->queue = queue;
	n->timer = part_timer_new(env, on_due, n);
	apply_on_device_event(env->apply, on_event, n);
	return n;
}

void device_events_free(struct device_events *n)
{
	if (n) {
		part_timer_free(n->timer);
		vec_fini(&n->sources);
		free(n);
	}
}
