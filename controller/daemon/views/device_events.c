/*
 * What devices say of their own accord: told to those who watch, and a reason
 * to read the device again, so that what somebody else did shows at once and
 * not at the next slow round. A device that never stops talking is told in
 * part, and read less and less often.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/daemon/core/private.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/vec.h"

#define S INT64_C(1000000000)
#define SETTLE_MS 50		/* several reports come of one change */
#define BUSY_MS 200		/* until somebody else's turn is over */
#define LEAST_GAP_NS S		/* between two readings of a device */
#define MOST_GAP_NS (32 * S)
#define QUIET_NS (60 * S)	/* after which it is believed again */
#define WINDOW_NS (10 * S)
#define WINDOW_LINES 20		/* told of a device in a window */

struct speaker {
	char name[CONF_MAX_NAME + 1];
	int64_t window_ns;	/* when it began */
	int n_told;
	int64_t n_dropped;
	bool wants_reading;
	int64_t read_ns, gap_ns;	/* the last one because of it */
};

/* Lives until the loop has closed its timer, which may be after the daemon. */
struct news {
	uv_timer_t timer;
	struct daemon *d;
	VEC(struct speaker) speakers;
	bool reading;
};

static struct speaker *find(struct news *n, const char *name)
{
	struct speaker s = { .gap_ns = LEAST_GAP_NS };

	for (size_t i = 0; i < n->speakers.n; i++) {
		if (strcmp(n->speakers.v[i].name, name) == 0) {
			return &n->speakers.v[i];
		}
	}
	snprintf(s.name, sizeof(s.name), "%s", name);
	s.window_ns = s.read_ns = clk_now_ns() - QUIET_NS;
	return vec_push(&n->speakers, s) ? NULL :
	       &n->speakers.v[n->speakers.n - 1];
}

/* ---- told ---------------------------------------------------------------- */

static bool may_tell(struct speaker *s)
{
	int64_t now = clk_now_ns();

	if (now - s->window_ns >= WINDOW_NS) {
		if (s->n_dropped) {
			log_warn("weftd", "%s: %" PRId64 " more lines of its "
				 "were not told", s->name, s->n_dropped);
		}
		s->window_ns = now;
		s->n_told = 0;
		s->n_dropped = 0;
	}
	if (s->n_told == WINDOW_LINES) {
		s->n_dropped++;
		return false;
	}
	s->n_told++;
	return true;
}

static void tell(struct daemon *d, const char *device,
		 const struct drv_event *ev)
{
	char port[16] = "";
	const struct daemon_event what = {
		.kind = WEFT__V1__EVENT_KIND__EVENT_KIND_DEVICE_REPORT,
		.device = device, .port = port,
	};

	if (ev->has_port) {
		snprintf(port, sizeof(port), "%s %d", ev->is_out ? "out" : "in",
			 ev->index + 1);
	}
	daemon_event(d, &what, "%s: %s%s%s: %s", device,
		     drv_event_name(ev->kind), port[0] ? " " : "", port,
		     ev->text);
}

/* ---- read ---------------------------------------------------------------- */

static void read_soon(struct news *n, int64_t at_least_ms);

static void after_reading(int rc, const struct err *err, void *arg)
{
	struct work *w = arg;
	struct news *n = w->d->news;

	if (rc) {
		log_debug("weftd", "news: %s", err->msg);
	}
	n->reading = false;
	daemon_work_free(w);
	read_soon(n, SETTLE_MS);
}

static int64_t due_ns(const struct speaker *s)
{
	return s->read_ns + s->gap_ns;
}

static void read_now(struct work *w)
{
	struct news *n = w->d->news;
	int64_t now = clk_now_ns();
	const char **names = calloc(n->speakers.n + 1, sizeof(*names));
	int k = 0;

	for (size_t i = 0; names && i < n->speakers.n; i++) {
		struct speaker *s = &n->speakers.v[i];

		if (!s->wants_reading || due_ns(s) > now) {
			continue;
		}
		s->gap_ns = now - s->read_ns >= QUIET_NS ? LEAST_GAP_NS :
			    s->gap_ns * 2 > MOST_GAP_NS ? MOST_GAP_NS :
							  s->gap_ns * 2;
		s->read_ns = now;
		s->wants_reading = false;
		names[k++] = s->name;
	}
	apply_reading_for(w->d->apply, STORE_BY_EVENT);
	apply_read_some(w->d->apply, names, k, after_reading, w);
	free(names);
}

static void on_due(uv_timer_t *timer)
{
	struct news *n = timer->data;
	struct daemon *d = n->d;
	struct err err = { 0 };

	if (d->draining || n->reading) {
		return;
	}
	if (d->change || d->turn || d->reading) {
		uv_timer_start(&n->timer, on_due, BUSY_MS, 0);
		return;
	}
	n->reading = true;
	if (daemon_turn(d, read_now, NULL, &err)) {
		n->reading = false;
		log_warn("weftd", "news: %s", err.msg);
	}
}

/* The timer is set for the first device that wants to be read. */
static void read_soon(struct news *n, int64_t at_least_ms)
{
	int64_t now = clk_now_ns(), first = INT64_MAX, ms;

	for (size_t i = 0; i < n->speakers.n; i++) {
		const struct speaker *s = &n->speakers.v[i];

		if (s->wants_reading && due_ns(s) < first) {
			first = due_ns(s);
		}
	}
	if (first == INT64_MAX || n->reading || n->d->draining) {
		return;
	}
	ms = first > now ? (first - now + 999999) / 1000000 : 0;
	uv_timer_start(&n->timer, on_due, (uint64_t)
		       (ms > at_least_ms ? ms : at_least_ms), 0);
}

static void on_news(const char *device, const struct drv_event *ev, void *arg)
{
	struct daemon *d = arg;
	struct speaker *s = find(d->news, device);

	if (!s) {
		return;		/* the slow round finds it */
	}
	if (may_tell(s)) {
		tell(d, device, ev);
	}
	if (ev->kind != DRV_EVENT_NOTE) {
		s->wants_reading = true;
		read_soon(d->news, SETTLE_MS);
	}
}

int daemon_news_init(struct daemon *d, struct err *err)
{
	d->news = calloc(1, sizeof(*d->news));
	if (!d->news) {
		return err_nomem(err);
	}
	d->news->d = d;
	uv_timer_init(d->loop, &d->news->timer);
	d->news->timer.data = d->news;
	apply_on_news(d->apply, on_news, d);
	return 0;
}

static void on_closed(uv_handle_t *handle)
{
	struct news *n = handle->data;

	vec_fini(&n->speakers);
	free(n);
}

void daemon_news_fini(struct daemon *d)
{
	if (d->news) {
		uv_close((uv_handle_t *)&d->news->timer, on_closed);
		d->news = NULL;
	}
}
