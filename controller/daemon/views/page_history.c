/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the web page draws over time: the rate of each job, and of each device
 * the weakest light, the worst drift of a loss, and what is not locked.
 *
 * Samples are in memory only, taken when something was read or has changed.
 * There is room for a fixed number: when it is used up, samples of more than a
 * day are dropped, else every second one of the older three quarters, so that
 * the newest hours are fine and the day before them is coarse. Each quantity is
 * a series with one number a sample.
 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "controller/daemon/views/private.h"
#include "lib/base/alloc.h"
#include "lib/base/clock.h"
#include "lib/base/vec.h"

#define SAMPLES 1024
#define SERIES 512		/* more are not kept */
#define AGE_NS (INT64_C(24) * 3600 * 1000000000)
#define ABSENT INT32_MIN
#define NS_PER_MS INT64_C(1000000)

struct history_series {
	const char *what;	/* a constant: "rate", ... */
	char *name;		/* of the job or device; owned */
	int32_t v[SAMPLES];
};

struct page_history {
	int n;			/* samples */
	int64_t ever;		/* number of the newest, from 1 */
	int64_t seq[SAMPLES], at_ns[SAMPLES];
	VEC(struct history_series *) series;
};

struct page_history *page_history_new(void)
{
	return x_new(1, sizeof(struct page_history));
}

static void series_free(struct history_series *s)
{
	free(s->name);
	free(s);
}

void page_history_free(struct page_history *h)
{
	if (h) {
		for (size_t i = 0; i < h->series.n; i++) {
			series_free(h->series.v[i]);
		}
		vec_fini(&h->series);
		free(h);
	}
}

int64_t page_history_newest(const struct page_history *h)
{
	return h->ever;
}

/* ---- samples ------------------------------------------------------------- */

/* Keeps the samples for which keep says so, in all series. */
static void filter(struct page_history *h, bool (*keep)(const struct page_history *h, int i))
{
	int n = 0;

	for (int i = 0; i < h->n; i++) {
		if (!keep(h, i)) {
			continue;
		}
		h->seq[n] = h->seq[i];
		h->at_ns[n] = h->at_ns[i];
		for (size_t k = 0; k < h->series.n; k++) {
			h->series.v[k]->v[n] = h->series.v[k]->v[i];
		}
		n++;
	}
	h->n = n;
}

static bool is_recent(const struct page_history *h, int i)
{
	return h->at_ns[h->n - 1] - h->at_ns[i] < AGE_NS;
}

static bool is_new_or_even(const struct page_history *h, int i)
{
	return i >= h->n / 4 * 3 || i % 2 == 0;
}

/* Series of jobs and devices that are gone, with their last sample. */
static void drop_empty(struct page_history *h)
{
	size_t n = 0;

	for (size_t k = 0; k < h->series.n; k++) {
		struct history_series *s = h->series.v[k];
		int i = 0;

		while (i < h->n && s->v[i] == ABSENT) {
			i++;
		}
		if (i < h->n) {
			h->series.v[n++] = s;
		} else {
			series_free(s);
		}
	}
	h->series.n = n;
}

/* After it there is room for one more. */
static void make_room(struct page_history *h)
{
	if (h->n == SAMPLES) {
		filter(h, is_recent);
		if (h->n == SAMPLES) {
			filter(h, is_new_or_even);
		}
		drop_empty(h);
	}
}

static struct history_series *find_series(struct page_history *h, const char *what,
					  const char *name)
{
	for (size_t k = 0; k < h->series.n; k++) {
		struct history_series *s = h->series.v[k];

		if (s->what == what && strcmp(s->name, name) == 0) {
			return s;
		}
	}
	return NULL;
}

/* NULL when there are too many. */
static struct history_series *add_series(struct page_history *h, const char *what,
					 const char *name)
{
	struct history_series *s;

	if (h->series.n == SERIES) {
		return NULL;
	}
	s = x_new(1, sizeof(*s));
	s->what = what;
	s->name = x_dup(name);
	for (int i = 0; i < SAMPLES; i++) {
		s->v[i] = ABSENT;
	}
	vec_push(&h->series, s);
	return s;
}

void page_history_begin(struct page_history *h)
{
	make_room(h);
	h->seq[h->n] = ++h->ever;
	h->at_ns[h->n] = clk_wall_ns();
	for (size_t k = 0; k < h->series.n; k++) {
		h->series.v[k]->v[h->n] = ABSENT;
	}
	h->n++;
}

void page_history_put(struct page_history *h, const char *what, const char *name, int64_t value)
{
	struct history_series *s = find_series(h, what, name);

	if (!s) {
		s = add_series(h, what, name);
	}
	if (s) {
		s->v[h->n - 1] = value > INT32_MAX ? INT32_MAX
				 : value <= ABSENT ? ABSENT + 1 : (int32_t)value;
	}
}

/* ---- what is known -------------------------------------------------------- */

static const char rate[] = "rate", power[] = "power", drift[] = "drift", unlocked[] = "unlocked";

/* In thousandths of the rate with all light. */
static void sample_job(struct page_history *h, const Weft__V1__PlanJob *j)
{
	page_history_put(h, rate, j->name, (int64_t)(1000 * j->rate + 0.5));
}

/* The weakest light at an output, in thousandths of a dBm. */
static void sample_power(struct page_history *h, const struct apply_device *a)
{
	int64_t least = INT64_MAX;

	for (int i = 0; i < a->snap.n_ports; i++) {
		const struct drv_port *p = &a->snap.ports[i];

		if (p->is_out && p->has_power && p->power_mdbm < least) {
			least = p->power_mdbm;
		}
	}
	if (least != INT64_MAX) {
		page_history_put(h, power, a->name, least);
	}
}

/* The most that a circuit loses more than when it was good, in thousandths of a dB. */
static void sample_drift(struct page_history *h, const struct views *d, int device,
			 const struct apply_device *a)
{
	int64_t most = INT64_MIN;

	for (int i = 0; i < a->snap.n_xcs; i++) {
		const struct drv_xc *x = &a->snap.xcs[i];
		struct apply_loss loss;

		apply_loss(d->env->apply, device, x, &loss);
		if (x->has_loss && loss.has_good && x->loss_mdb - loss.good_mdb > most) {
			most = x->loss_mdb - loss.good_mdb;
		}
	}
	if (most != INT64_MIN) {
		page_history_put(h, drift, a->name, most);
	}
}

void page_history_take(struct page_history *h, const struct views *d)
{
	const struct job_rows *rows = shown_jobs(d);
	const struct model_fabric *f = apply_fabric(d->env->apply);
	const struct apply_device *a;
	int n;

	page_history_begin(h);
	for (size_t i = 0; rows && i < rows->n; i++) {
		sample_job(h, rows->v[i]);
	}
	a = apply_devices(d->env->apply, &n);
	for (int i = 0; f && i < n; i++) {
		if (!a[i].ever_read || !a[i].reachable) {
			continue;
		}
		sample_power(h, &a[i]);
		sample_drift(h, d, i, &a[i]);
		if (f->devices[i].kind == MODEL_RING) {
			page_history_put(h, unlocked, a[i].name,
					 a[i].snap.n_unlocked + a[i].snap.n_dead);
		}
	}
}

/* ---- as JSON -------------------------------------------------------------- */

/* null for what was not known. */
static void out_series(const struct history_series *s, int from, int n, struct buf *b)
{
	buf_printf(b, "{\"what\":\"%s\",\"name\":", s->what);
	out_json_quote(b, s->name);
	buf_str(b, ",\"values\":[");
	for (int i = from; i < n; i++) {
		buf_str(b, i > from ? "," : "");
		if (s->v[i] == ABSENT) {
			buf_str(b, "null");
		} else {
			buf_printf(b, "%d", s->v[i]);
		}
	}
	buf_str(b, "]}");
}

void page_history_out(const struct page_history *h, int64_t after, struct buf *b)
{
	int from = 0;

	while (from < h->n && h->seq[from] <= after) {
		from++;
	}
	buf_printf(b, "{\"newest\":%lld,\"at_ms\":[", (long long)h->ever);
	for (int i = from; i < h->n; i++) {
		buf_printf(b, "%s%lld", i > from ? "," : "",
			   (long long)(h->at_ns[i] / NS_PER_MS));
	}
	buf_str(b, "],\"series\":[");
	for (size_t k = 0; k < h->series.n; k++) {
		buf_str(b, k ? "," : "");
		out_series(h->series.v[k], from, h->n, b);
	}
	buf_str(b, "]}\n");
}
