/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events of a switch over RESTCONF.
 *
 * Public facts: the names of the notifications (the switches' YANG module, as
 * ONOS' NETCONF driver subscribes to it), that notification-log/log can be read
 * and that answers carry an ETag (quintons/polatis2). Reconstructed by RFC 8040,
 * not seen from these switches: the list of streams, the stream, and what an
 * entry of the log looks like (an `id` that counts up, and the notification).
 * So a device that has neither is left alone, with one line in the log.
 */
#include "drivers/restconf/events.h"

#include <stdlib.h>
#include <string.h>

#include "drivers/restconf/restconf.h"
#include "lib/base/alloc.h"
#include "lib/base/buf.h"
#include "lib/base/log.h"

#define STREAM_PATH_MAX 256
/* A notification is a few hundred bytes. */
#define MAX_LINE (64 << 10)

struct restconf_events {
	struct driver_base *h;
	struct http_client *client;	/* the driver's */
	struct http_client *stream;	/* of its own, or NULL */
	struct http_conf conf;		/* to make it */
	int64_t every_ms;
	uv_timer_t timer;
	enum { UNKNOWN, STREAM, LOG, NEITHER } how;
	char path[STREAM_PATH_MAX];	/* STREAM */
	struct buf line, data;		/* STREAM: what came, and the event so far */
	bool marked;			/* LOG: it was read before */
	int64_t last_id;		/* LOG: the last entry that we know */
	char etag[HTTP_ETAG_MAX];	/* LOG: as it was then */
	bool closing;
	void (*closed)(void *);
	void *closed_arg;
};

static void on_tick(uv_timer_t *t);

static void tick_later(struct restconf_events *ev)
{
	if (!ev->closing && ev->how != NEITHER) {
		uv_timer_start(&ev->timer, on_tick, (uint64_t)ev->every_ms, 0);
	}
}

static void give_up(struct restconf_events *ev, const char *why)
{
	log_info("drivers", "%s: it reports no events: %s", ev->h->drv.name, why);
	ev->how = NEITHER;
}

static void report(const struct restconf_note *note, void *arg)
{
	struct restconf_events *ev = arg;
	const struct driver_base *h = ev->h;
	int flat = note->port - 1;
	struct drv_event e = {
		.text = note->text,
		.kind = note->alarm ? DRV_EVENT_ALARM :
			note->change ? DRV_EVENT_CHANGED : DRV_EVENT_NOTE,
		.has_port = flat >= 0 && flat < h->n_in + (h->any_to_any ? 0 : h->n_out),
	};

	if (e.has_port) {
		e.is_out = !h->any_to_any && flat >= h->n_in;
		e.index = e.is_out ? flat - h->n_in : flat;
	}
	if (!h->drv.event) {
		log_warn("drivers", "%s reports: %s", h->drv.name, note->text);
	}
	base_event(ev->h, &e);
}

/* ---- the log --------------------------------------------------------------- */

/* What was there when we came is of the past. */
static void on_log(const struct http_answer *a, void *arg)
{
	struct restconf_events *ev = arg;
	int64_t after = ev->marked ? ev->last_id : INT64_MAX, last = 0;
	struct err err = { 0 };

	if (a->rc == 0 && (a->status == 200 || a->status == 204)) {
		if (restconf_parse_log(a->body, after, report, ev, &last, &err)) {
			give_up(ev, err.msg);
		}
		ev->last_id = last;
		ev->marked = true;
		snprintf(ev->etag, sizeof(ev->etag), "%s", a->etag);
	} else if (a->rc == 0 && a->status >= 400 && a->status < 500 && a->status != 429) {
		give_up(ev, "it has no notification log that we may read");
	}
	tick_later(ev);
}

/* ---- the stream ------------------------------------------------------------ */

static void take_event(struct restconf_events *ev)
{
	struct restconf_note note;
	struct err err = { 0 };

	if (ev->data.len == 0) {
		return;
	}
	if (restconf_parse_note(buf_cstr(&ev->data), &note, &err)) {
		log_warn("drivers", "%s: an event: %s", ev->h->drv.name, err.msg);
	} else {
		report(&note, ev);
	}
	buf_reset(&ev->data);
}

/* A line of a stream of events: data of the event so far, or a blank one that
 * ends it; all others are of no interest. */
static void take_line(struct restconf_events *ev, const char *line, size_t len)
{
	len -= len && line[len - 1] == '\r';
	if (len == 0) {
		take_event(ev);
	} else if (len >= 5 && memcmp(line, "data:", 5) == 0 &&
		   ev->data.len + len < MAX_LINE && !memchr(line, 0, len)) {
		buf_add(&ev->data, line + 5, len - 5);
	}
}

static void on_data(const char *bytes, size_t len, void *arg)
{
	struct restconf_events *ev = arg;
	size_t at = 0;
	const char *lf;

	buf_add(&ev->line, bytes, len);
	while (at < ev->line.len &&
	       (lf = memchr(ev->line.data + at, '\n', ev->line.len - at))) {
		take_line(ev, ev->line.data + at, (size_t)(lf - ev->line.data) - at);
		at = (size_t)(lf - ev->line.data) + 1;
	}
	buf_consume(&ev->line, at);
	if (ev->line.len > MAX_LINE) {
		buf_reset(&ev->line);
	}
}

/* It ended, which is no end of events: it is asked for again, in a while. */
static void on_stream_end(const struct http_answer *a, void *arg)
{
	struct restconf_events *ev = arg;

	log_info("drivers", "%s: the stream of events ended: %s", ev->h->drv.name,
		 a->rc ? a->err->msg : a->status == 200 ? "by the device" : "it was refused");
	buf_reset(&ev->line);
	buf_reset(&ev->data);
	if (a->rc == 0 && a->status != 200) {
		ev->how = LOG;
	}
	tick_later(ev);
}

static void listen_to(struct restconf_events *ev)
{
	const struct http_call q = {
		.method = "GET", .path = ev->path, .accept = "text/event-stream",
		.done = on_stream_end, .data = on_data, .arg = ev };

	if (!ev->stream && http_client_new(ev->h->drv.loop, &ev->conf, &ev->stream, NULL)) {
		tick_later(ev);
	} else {
		http_ask(ev->stream, &q);
	}
}

static void on_streams(const struct http_answer *a, void *arg)
{
	struct restconf_events *ev = arg;

	if (a->rc == 0) {
		ev->how = a->status == 200 &&
			  restconf_parse_stream(a->body, ev->path, sizeof(ev->path)) ?
			  STREAM : LOG;
		uv_timer_start(&ev->timer, on_tick, 0, 0);
	} else {
		tick_later(ev);
	}
}

/* ---- life ------------------------------------------------------------------- */

/* The device is asked when nothing else is under way. */
static void on_tick(uv_timer_t *t)
{
	struct restconf_events *ev = t->data;
	struct http_call q = { .method = "GET", .accept = RESTCONF_JSON, .repeatable = true,
				  .arg = ev };

	if (ev->how == STREAM) {
		listen_to(ev);
		return;
	}
	q.path = ev->how == LOG ? RESTCONF_LOG : RESTCONF_STREAMS;
	q.done = ev->how == LOG ? on_log : on_streams;
	q.unless_etag = ev->how == LOG ? ev->etag : NULL;
	if (ev->h->op != BASE_IDLE) {
		tick_later(ev);
	} else {
		http_ask(ev->client, &q);
	}
}

struct restconf_events *restconf_events_new(struct driver_base *h, struct http_client *client,
					    const struct http_conf *conf, int64_t every_ms)
{
	struct restconf_events *ev = x_new(1, sizeof(*ev));

	ev->h = h;
	ev->client = client;
	ev->conf = *conf;
	ev->every_ms = every_ms;
	uv_timer_init(h->drv.loop, &ev->timer);
	ev->timer.data = ev;
	tick_later(ev);
	return ev;
}

static void on_timer_closed(uv_handle_t *t)
{
	struct restconf_events *ev = t->data;
	void (*cb)(void *) = ev->closed;
	void *arg = ev->closed_arg;

	buf_fini(&ev->line);
	buf_fini(&ev->data);
	free(ev);
	cb(arg);
}

static void on_stream_closed(void *arg)
{
	struct restconf_events *ev = arg;

	uv_close((uv_handle_t *)&ev->timer, on_timer_closed);
}

void restconf_events_close(struct restconf_events *ev, void (*cb)(void *arg), void *arg)
{
	ev->closing = true;
	ev->closed = cb;
	ev->closed_arg = arg;
	if (ev->stream) {
		http_close(ev->stream, on_stream_closed, ev);
	} else {
		on_stream_closed(ev);
	}
}
