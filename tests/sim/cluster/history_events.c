/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What those who watch have seen, and what other people do to light. Events of one weftd have
 * sequences without gaps: whoever watches, or goes on after the last that it has seen, sees all
 * that others see, each once, or is told that some are missing.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/vec.h"
#include "tests/sim/cluster/cluster.h"
#include "tests/sim/cluster/history.h"

#define HEARD_NS (2 * SIM_S)	/* of a change that was acknowledged */

/* From the first event after a resync to the end of the connection. */
struct session {
	int weftd;
	int64_t since, last_at;		/* when the first and the last event came */
	VEC(int64_t) changes;		/* whose end was heard */
};

struct watcher {
	char name[48];
	int weftd;
	int64_t last;			/* sequence; 0: a resync has to come first */
	VEC(struct session) sessions;
};

struct event {
	int weftd;
	int64_t sequence;
	uint32_t hash;
};

struct ended {
	int weftd;
	int64_t change, begin, end;
};

struct circuit {
	int device, in, out;
	enum history_others state;
};

static struct {
	VEC(struct watcher) watchers;
	VEC(struct event) events;
	VEC(struct ended) ended;
	VEC(struct circuit) circuits;
} e;

/* ---- events ---- */

static struct watcher *find_watcher(const char *name)
{
	struct watcher w = { 0 };

	for (size_t i = 0; i < e.watchers.n; i++) {
		if (strcmp(e.watchers.v[i].name, name) == 0) {
			return &e.watchers.v[i];
		}
	}
	snprintf(w.name, sizeof(w.name), "%s", name);
	vec_push(&e.watchers, w);
	return &e.watchers.v[e.watchers.n - 1];
}

void history_watch_begin(const char *watcher, int weftd, int64_t after)
{
	struct watcher *w = find_watcher(watcher);

	w->weftd = weftd;
	w->last = after;
}

void history_watch_end(const char *watcher)
{
	find_watcher(watcher)->weftd = -1;
}

static uint32_t hash_text(const char *text)
{
	uint32_t x = 2166136261u;

	while (*text) {
		x = (x ^ (unsigned char)*text++) * 16777619u;
	}
	return x;
}

/* All who see an event see the same. */
static void check_same(const struct watcher *w, int64_t sequence, const char *text)
{
	const struct event mine = { w->weftd, sequence, hash_text(text) };

	for (size_t i = e.events.n; i-- > 0;) {
		const struct event *o = &e.events.v[i];

		if (o->weftd == mine.weftd && o->sequence == sequence) {
			if (o->hash != mine.hash) {
				sim_fail("events", "%s: event %" PRId64 " of %s is another one "
					 "than others saw: %s", w->name, sequence,
					 cluster_machine(w->weftd), text);
			}
			return;
		}
	}
	vec_push(&e.events, mine);
}

static void begin_session(struct watcher *w)
{
	vec_push(&w->sessions, (struct session){ .weftd = w->weftd, .since = sim_now(),
						 .last_at = sim_now() });
}

/* The one that goes on; of a watcher that resumed, after what it has missed. */
static struct session *session_of(struct watcher *w)
{
	if (w->sessions.n == 0 || w->sessions.v[w->sessions.n - 1].weftd != w->weftd) {
		begin_session(w);
	}
	return &w->sessions.v[w->sessions.n - 1];
}

void history_event(const char *watcher, int weftd, int64_t sequence, bool resync,
		   int64_t change, const char *text)
{
	struct watcher *w = find_watcher(watcher);
	struct session *s;

	w->weftd = weftd;
	if (resync) {
		w->last = sequence;
		begin_session(w);
		return;
	}
	if (w->last == 0) {
		sim_fail("events", "%s: the first event of %s is no resync", watcher,
			 cluster_machine(weftd));
	} else if (sequence != w->last + 1) {
		sim_fail("events", "%s: event %" PRId64 " of %s comes after %" PRId64 ": %s",
			 watcher, sequence, cluster_machine(weftd), w->last, text);
	}
	w->last = sequence;
	check_same(w, sequence, text);
	s = session_of(w);
	s->last_at = sim_now();
	if (change) {
		vec_push(&s->changes, change);
	}
}

void history_change_ended(int weftd, int64_t change, int64_t begin_ns)
{
	vec_push(&e.ended, (struct ended){ weftd, change, begin_ns, sim_now() });
}

/* A session that began before the change and saw something long after it saw its end. */
static void check_heard(const struct watcher *w, const struct session *s, const struct ended *x)
{
	if (s->weftd != x->weftd || s->since >= x->begin || s->last_at < x->end + HEARD_NS) {
		return;
	}
	for (size_t i = 0; i < s->changes.n; i++) {
		if (s->changes.v[i] == x->change) {
			return;
		}
	}
	sim_fail("events", "%s watched %s, but heard nothing of the end of change %" PRId64 " at "
		 "%.6f s", w->name, cluster_machine(x->weftd), x->change, (double)x->end / SIM_S);
}

void history_check_events(void)
{
	for (size_t i = 0; i < e.ended.n; i++) {
		for (size_t k = 0; k < e.watchers.n; k++) {
			const struct watcher *w = &e.watchers.v[k];

			for (size_t m = 0; m < w->sessions.n; m++) {
				check_heard(w, &w->sessions.v[m], &e.ended.v[i]);
			}
		}
	}
}

/* ---- other people's light ---- */

static struct circuit *find_circuit(int device, int in, int out)
{
	for (size_t i = 0; i < e.circuits.n; i++) {
		struct circuit *c = &e.circuits.v[i];

		if (c->device == device && c->in == in && c->out == out) {
			return c;
		}
	}
	return NULL;
}

void history_others_set(int device, int in, int out, enum history_others state)
{
	struct circuit *c = find_circuit(device, in, out);

	if (c) {
		c->state = state;
	} else {
		vec_push(&e.circuits, (struct circuit){ device, in, out, state });
	}
}

enum history_others history_others(int device, int in, int out)
{
	const struct circuit *c = find_circuit(device, in, out);

	return c ? c->state : HISTORY_NOT_OTHERS;
}

void history_others_lost(int device)
{
	for (size_t i = 0; i < e.circuits.n; i++) {
		struct circuit *c = &e.circuits.v[i];

		if (c->device == device && c->state == HISTORY_OTHERS) {
			c->state = HISTORY_MAYBE_OTHERS;
		}
	}
}

void history_clear_events(void)
{
	for (size_t i = 0; i < e.watchers.n; i++) {
		for (size_t k = 0; k < e.watchers.v[i].sessions.n; k++) {
			vec_fini(&e.watchers.v[i].sessions.v[k].changes);
		}
		vec_fini(&e.watchers.v[i].sessions);
	}
	vec_fini(&e.watchers);
	vec_fini(&e.events);
	vec_fini(&e.ended);
	vec_fini(&e.circuits);
}
