/*
 * What happens, told to those who watch. The newest events are kept in one
 * ring for all; a watcher is a place in it. Each is sent no more than a
 * little ahead of what it reads, so a slow one costs no more than a fast
 * one; one that falls behind the ring is told to look anew.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/daemon/core/private.h"
#include "controller/proto_convert/report.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"

#define RING 1024		/* events kept */
#define AHEAD ((size_t)4 << 10)	/* unsent bytes a watcher may have */

/* An event, with memory for its strings. */
struct event {
	Weft__V1__WatchEvent m;
	char device[CONF_MAX_NAME + 1], port[16], text[256];
	char trace[DAEMON_TRACE_SIZE];
};

struct watcher {
	TAILQ_ENTRY(watcher) link;
	struct daemon *d;
	struct rpc_call *call;
	int64_t next;		/* sequence to be sent */
	bool anew;		/* to be told so first */
};

/* What was last told of a device. */
struct seen {
	char name[CONF_MAX_NAME + 1];
	bool reachable, drift;
	char epoch[sizeof(((struct drv_snapshot *)0)->epoch)];
	uint64_t failed;	/* parts of a ring that failed or lost their
				 * wave, mixed; 0: none */
};

struct events {
	struct event ring[RING];
	int64_t first, next;	/* sequences: the oldest kept, one to come */
	TAILQ_HEAD(, watcher) watchers;
	struct seen *seen;
	int n_seen;
};

/* Sequences begin with the time, so that they grow over restarts, whose
 * events are fewer than microseconds have passed. */
int daemon_events_init(struct daemon *d, struct err *err)
{
	struct events *e = calloc(1, sizeof(*e));

	if (!e) {
		return err_nomem(err);
	}
	e->first = e->next = clk_wall_ns() / 1000;
	TAILQ_INIT(&e->watchers);
	d->events = e;
	return 0;
}

void daemon_events_fini(struct daemon *d)
{
	if (d->events) {
		free(d->events->seen);
		free(d->events);
	}
}

/* ---- watchers ------------------------------------------------------------ */

static void watcher_free(struct watcher *w)
{
	TAILQ_REMOVE(&w->d->events->watchers, w, link);
	free(w);
}

static void on_gone(struct rpc_call *call, void *arg)
{
	(void)call;
	watcher_free(arg);
}

static int send_resync(struct watcher *w, struct err *err)
{
	Weft__V1__WatchEvent m = WEFT__V1__WATCH_EVENT__INIT;
	struct events *e = w->d->events;
	char text[64];

	m.kind = WEFT__V1__EVENT_KIND__EVENT_KIND_RESYNC;
	m.sequence = e->next - 1;
	m.at_ns = clk_wall_ns();
	m.generation = store_generation(w->d->store);
	snprintf(text, sizeof(text), "resync from generation %" PRId64,
		 m.generation);
	m.text = text;
	w->anew = false;
	w->next = e->next;
	return rpc_send(w->call, &m.base, err);
}

/* Sends what the watcher has not seen, as far as it reads. */
static void pump(struct watcher *w)
{
	struct events *e = w->d->events;
	struct rpc_call *call = w->call;
	struct err err = { 0 };
	int r = 0;

	while (r == 0 && rpc_call_unsent(call) < AHEAD &&
	       (w->anew || w->next < e->next)) {
		if (w->anew || w->next < e->first) {
			r = send_resync(w, &err);
		} else {
			r = rpc_send(call, &e->ring[w->next++ % RING].m.base,
				     &err);
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
	const Weft__V1__Number *after =
		((const Weft__V1__WatchRequest *)msg)->after;
	struct daemon *d = arg;
	struct events *e = d->events;
	struct watcher *w = calloc(1, sizeof(*w));
	struct err err = { 0 };

	if (!w || d->draining) {
		free(w);
		err_set(&err, d->draining ? WEFT_EUNAVAIL : WEFT_ENOMEM,
			d->draining ? "weftd is stopping" : "out of memory");
		rpc_finish_err(call, &err);
		return;
	}
	w->d = d;
	w->call = call;
	w->anew = !after || after->value < e->first - 1 ||
		  after->value >= e->next;
	w->next = w->anew ? e->next : after->value + 1;
	TAILQ_INSERT_TAIL(&e->watchers, w, link);
	rpc_call_on_cancel(call, on_gone, w);
	rpc_call_on_ready(call, on_ready, w);
	pump(w);
}

void daemon_watch_end(struct daemon *d)
{
	struct watcher *w;
	struct err err = { 0 };

	err_set(&err, WEFT_EUNAVAIL, "weftd is stopping");
	while ((w = TAILQ_FIRST(&d->events->watchers))) {
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
	if (lead >= 0xc0 &&
	    len - at + 1 < (lead >= 0xf0 ? 4u : lead >= 0xe0 ? 3u : 2u)) {
		text[at - 1] = '\0';
	}
}

/* ---- events -------------------------------------------------------------- */

void daemon_event(struct daemon *d, const struct daemon_event *what,
		  const char *fmt, ...)
{
	struct events *e = d->events;
	struct event *ev = &e->ring[e->next % RING];
	struct watcher *w, *next;
	va_list ap;

	weft__v1__watch_event__init(&ev->m);
	va_start(ap, fmt);
	vsnprintf(ev->text, sizeof(ev->text), fmt, ap);
	va_end(ap);
	drop_partial(ev->text);
	snprintf(ev->device, sizeof(ev->device), "%s",
		 what->device ? what->device : "");
	snprintf(ev->port, sizeof(ev->port), "%s",
		 what->port ? what->port : "");
	ev->m.sequence = e->next++;
	ev->m.at_ns = clk_wall_ns();
	ev->m.kind = what->kind;
	ev->m.generation = store_generation(d->store);
	ev->m.text = ev->text;
	ev->m.device = ev->device;
	ev->m.port = ev->port;
	ev->m.change = what->change;
	ev->m.verdict = what->verdict;
	snprintf(ev->trace, sizeof(ev->trace), "%s",
		 what->trace ? what->trace : "");
	ev->m.trace_id = ev->trace;
	if (e->next - e->first > RING) {
		e->first = e->next - RING;
	}
	if (what->device) {
		const struct log_field f = { "device", what->device };

		/* Nobody may have been watching. */
		log_with(LOG_INFO, "weftd", &f, 1, "%s", ev->text);
	}
	daemon_page_changed(d);
	for (w = TAILQ_FIRST(&e->watchers); w; w = next) {
		next = TAILQ_NEXT(w, link);
		pump(w);
	}
}

void daemon_out_events(const struct daemon *d, struct out *o, int most)
{
	const struct events *e = d->events;
	char kind[32];

	out_array(o, "events");
	for (int64_t i = e->next - 1; i >= e->first && most-- > 0; i--) {
		const Weft__V1__WatchEvent *m = &e->ring[i % RING].m;

		out_object(o, NULL);
		out_int(o, "sequence", m->sequence);
		wire_out_time(o, "at", m->at_ns);
		out_str(o, "kind", wire_enum(&weft__v1__event_kind__descriptor,
					     (int)m->kind, kind,
					     sizeof(kind)));
		out_str(o, "text", m->text);
		out_str(o, "device", m->device);
		out_end(o);
	}
	out_end(o);
}

/* ---- devices ------------------------------------------------------------- */

static void tell(struct daemon *d, Weft__V1__EventKind kind, const char *device,
		 const char *text)
{
	const struct daemon_event ev = { .kind = kind, .device = device };

	daemon_event(d, &ev, "%s: %s", device, text);
}

#define KIND(k) WEFT__V1__EVENT_KIND__EVENT_KIND_##k

/* Mostly in the place where it was. */
static const struct seen *find(const struct events *e, int place,
			       const char *name)
{
	for (int i = 0; i < e->n_seen; i++) {
		const struct seen *s = &e->seen[(place + i) % e->n_seen];

		if (strcmp(s->name, name) == 0) {
			return s;
		}
	}
	return NULL;
}

/* A device of which nothing was told is one that answers and is as meant. */
static void compare(struct daemon *d, const struct seen *before,
		    const struct seen *now, const struct apply_device *a)
{
	static const struct seen usual = { .reachable = true };
	char text[96];

	before = before ? before : &usual;
	if (before->reachable != now->reachable) {
		tell(d, now->reachable ? KIND(DEVICE_REACHABLE)
				       : KIND(DEVICE_UNREACHABLE),
		     now->name, now->reachable ? "answers" : a->problem);
	}
	if (before->epoch[0] && now->epoch[0] &&
	    strcmp(before->epoch, now->epoch) != 0) {
		tell(d, KIND(DEVICE_RESTARTED), now->name, "restarted");
	}
	if (before->failed != now->failed) {
		tell(d, now->failed ? KIND(PART_FAILED) : KIND(PART_RECOVERED),
		     now->name, now->failed ? a->problem
					    : "all parts work again");
	}
	if (before->drift == now->drift) {
		return;
	}
	if (now->drift) {
		snprintf(text, sizeof(text), "not as intended: %d missing, %d "
			 "unexpected", a->n_missing, a->n_unexpected);
	}
	tell(d, now->drift ? KIND(DRIFT_FOUND) : KIND(DRIFT_RESOLVED), now->name,
	     now->drift ? text : "as intended again");
}

static uint64_t mix_parts(uint64_t hash, const struct ring_fault *v, int n)
{
	const uint8_t *at = (const uint8_t *)v;

	for (size_t i = 0; i < (size_t)n * sizeof(*v); i++) {
		hash = (hash ^ at[i]) * UINT64_C(0x100000001b3);
	}
	return hash;
}

static uint64_t mix_failed(const struct drv_snapshot *s)
{
	return mix_parts(mix_parts((uint64_t)s->n_dead + (uint64_t)s->n_lost,
				   s->dead, s->n_dead), s->lost, s->n_lost);
}

static void look(struct seen *s, const struct seen *before,
		 const struct apply_device *a)
{
	snprintf(s->name, sizeof(s->name), "%s", a->name);
	s->reachable = a->reachable;
	s->drift = before && before->drift;
	s->failed = before ? before->failed : 0;
	snprintf(s->epoch, sizeof(s->epoch), "%s",
		 before ? before->epoch : "");
	if (a->reachable) {
		s->drift = a->n_missing > 0 || a->n_unexpected > 0;
		s->failed = mix_failed(&a->snap);
		snprintf(s->epoch, sizeof(s->epoch), "%s", a->snap.epoch);
	}
}

void daemon_observe(struct daemon *d)
{
	struct events *e = d->events;
	const struct apply_device *a;
	struct seen *now;
	int n, k = 0;

	a = apply_devices(d->apply, &n);
	now = calloc((size_t)n + 1, sizeof(*now));
	if (!now) {
		return;		/* told after the next reading */
	}
	for (int i = 0; i < n; i++) {
		const struct seen *before = find(e, k, a[i].name);

		if (a[i].driver && a[i].driver[0]) {
			look(&now[k], before, &a[i]);
			compare(d, before, &now[k++], &a[i]);
		}
	}
	daemon_page_changed(d);
	free(e->seen);
	e->seen = now;
	e->n_seen = k;
}
