/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stream of events for those who watch (rpc Watch). The newest events are
 * kept in one ring for all watchers; a watcher is a place in it. Each is sent
 * no more than a little ahead of what it reads, so a slow one costs no more
 * memory than a fast one. One that falls behind the ring gets an event of kind
 * RESYNC and has to ask for the status again.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "controller/daemon/core/core.h"
#include "controller/proto_convert/report.h"
#include "lib/base/alloc.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"

#define RING 1024		/* events kept */
#define AHEAD ((size_t)4 << 10)	/* unsent bytes a watcher may have */

/* An event, with memory for its strings. */
struct stream_event {
	Weft__V1__WatchResponse m;
	char device[CONF_MAX_NAME + 1], port[16], job[CONF_MAX_NAME + 1], text[256];
	char trace[TRACE_SIZE];
};

struct watcher {
	TAILQ_ENTRY(watcher) link;
	struct event_stream *stream;
	struct rpc_call *call;
	int64_t next;		/* sequence to be sent */
	bool resync;		/* to be sent first */
};

struct event_stream {
	struct daemon_env *env;
	struct stream_event ring[RING];	/* sequence s is at s % RING */
	int64_t first, next;	/* sequences: the oldest kept, one to come */
	TAILQ_HEAD(, watcher) watchers;
};

/* Sequences begin with the time, so that they grow over restarts, whose
 * events are fewer than microseconds have passed. */
struct event_stream *event_stream_new(struct daemon_env *env)
{
	struct event_stream *e = x_new(1, sizeof(*e));

	e->env = env;
	e->first = e->next = clk_wall_ns() / 1000;
	TAILQ_INIT(&e->watchers);
	return e;
}

void event_stream_free(struct event_stream *e)
{
	free(e);
}

/* ---- watchers ------------------------------------------------------------ */

static void watcher_free(struct watcher *w)
{
	TAILQ_REMOVE(&w->stream->watchers, w, link);
	free(w);
}

static void on_gone(struct rpc_call *call, void *arg)
{
	(void)call;
	watcher_free(arg);
}

/* The watcher has missed events: it has to ask for the status again, and goes on
 * from here. */
static int send_resync(struct watcher *w, struct err *err)
{
	Weft__V1__WatchResponse m = WEFT__V1__WATCH_RESPONSE__INIT;
	struct event_stream *e = w->stream;
	char text[64];

	m.kind = EVENT_KIND(RESYNC);
	m.sequence = e->next - 1;
	m.at_ns = clk_wall_ns();
	m.generation = store_generation(e->env->store);
	snprintf(text, sizeof(text), "resync from generation %" PRId64,
		 m.generation);
	m.text = text;
	w->resync = false;
	w->next = e->next;
	return rpc_send(w->call, &m.base, err);
}

/* Sends what the watcher has not seen, as far as it reads; may end its call and
 * free it. */
static void pump(struct watcher *w)
{
	struct event_stream *e = w->stream;
	struct rpc_call *call = w->call;
	struct err err = { 0 };
	int r = 0;

	while (r == 0 && rpc_call_unsent(call) < AHEAD && (w->resync || w->next < e->next)) {
		if (w->resync || w->next < e->first) {
			r = send_resync(w, &err);
		} else {
			r = rpc_send(call, &e->ring[w->next++ % RING].m.base, &err);
		}
	}
	if (r) {
		watcher_free(w);
		rpc_finish_err(call, &err);
	}
}

static void on_ready(struct rpc_call *call, void *arg)
{
	(void)call;
	pump(arg);
}

void handle_watch(struct rpc_call *call, const ProtobufCMessage *msg, void *arg)
{
	const Weft__V1__Number *after = ((const Weft__V1__WatchRequest *)msg)->after;
	struct event_stream *e = arg;
	struct watcher *w;

	if (!env_may_change(e->env, call)) {
		return;
	}
	w = x_new(1, sizeof(*w));
	w->stream = e;
	w->call = call;
	w->resync = !after || after->value < e->first - 1 || after->value >= e->next;
	w->next = w->resync ? e->next : after->value + 1;
	TAILQ_INSERT_TAIL(&e->watchers, w, link);
	rpc_call_on_cancel(call, on_gone, w);
	rpc_call_on_ready(call, on_ready, w);
	pump(w);
}

void event_stream_end_calls(struct event_stream *e)
{
	struct watcher *w;
	struct err err = { 0 };

	err_set(&err, WEFT_EUNAVAIL, "weftd is stopping");
	while ((w = TAILQ_FIRST(&e->watchers))) {
		struct rpc_call *call = w->call;

		watcher_free(w);
		rpc_finish_err(call, &err);
	}
}

/* What vsnprintf has cut may end in a part of a character. */
static void drop_partial(char *text)
{
	size_t len = strlen(text), at = len;
	unsigned char lead;

	while (at > 0 && ((unsigned char)text[at - 1] & 0xc0) == 0x80) {
		at--;
	}
	lead = at > 0 ? (unsigned char)text[at - 1] : 0;
	if (lead >= 0xc0 && len - at + 1 < (lead >= 0xf0 ? 4u : lead >= 0xe0 ? 3u : 2u)) {
		text[at - 1] = '\0';
	}
}

/* ---- events -------------------------------------------------------------- */

void event_emit(struct event_stream *e, const struct daemon_event *what, const char *fmt, ...)
{
	struct stream_event *ev = &e->ring[e->next % RING];
	struct watcher *w, *next;
	va_list ap;

	weft__v1__watch_response__init(&ev->m);
	va_start(ap, fmt);
	vsnprintf(ev->text, sizeof(ev->text), fmt, ap);
	va_end(ap);
	drop_partial(ev->text);
	snprintf(ev->device, sizeof(ev->device), "%s", what->device ? what->device : "");
	snprintf(ev->port, sizeof(ev->port), "%s", what->port ? what->port : "");
	snprintf(ev->job, sizeof(ev->job), "%s", what->job ? what->job : "");
	snprintf(ev->trace, sizeof(ev->trace), "%s", what->trace ? what->trace : "");
	ev->m.sequence = e->next++;
	ev->m.at_ns = clk_wall_ns();
	ev->m.kind = what->kind;
	ev->m.generation = store_generation(e->env->store);
	ev->m.text = ev->text;
	ev->m.device = ev->device;
	ev->m.port = ev->port;
	ev->m.job = ev->job;
	ev->m.change = what->change;
	ev->m.verdict = what->verdict;
	ev->m.trace_id = ev->trace;
	if (e->next - e->first > RING) {
		e->first = e->next - RING;
	}
	if (what->device) {
		const struct log_field f = { "device", what->device };

		/* There may be no watcher. */
		log_with(LOG_INFO, "weftd", &f, 1, "%s", ev->text);
	}
	env_changed(e->env);
	for (w = TAILQ_FIRST(&e->watchers); w; w = next) {
		next = TAILQ_NEXT(w, link);
		pump(w);
	}
}

void event_stream_out(const struct event_stream *e, struct out *o, int max)
{
	out_array(o, "events");
	for (int64_t i = e->next - 1; i >= e->first && max-- > 0; i--) {
		out_object(o, NULL);
		msg_out_event(o, &e->ring[i % RING].m);
		out_end(o);
	}
	out_end(o);
}
