/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Readings of all devices, and what follows from them. They reach the store in one
 * transaction, after all of a round are there: one flush to disk however many
 * devices there are.
 */
#include <stdlib.h>
#include <string.h>

#include "controller/apply/private.h"
#include "lib/base/alloc.h"
#include "lib/base/log.h"

int apply_refresh(struct apply *a, struct err *err)
{
	struct store_journal *v;
	int n;
	int rc = store_open_changes(a->store, &v, &n, err);

	if (rc) {
		return rc;
	}
	store_journals_free(a->open, a->n_open);
	a->open = v;
	a->n_open = n;
	for (int i = 0; a->set && i < a->set->n; i++) {
		device_assess(a->set->v[i]);
	}
	return 0;
}

/* Devices that both have belong to another fabric now. */
void apply_switch(struct apply *a, struct device_set *set)
{
	a->set = set;
	a->version++;
	for (int i = 0; set && i < set->n; i++) {
		set->v[i]->file = &set->fabric->devices[i];
		device_assess(set->v[i]);
	}
}

void apply_use(struct apply *a, struct device_set *set)
{
	struct device_set *old = a->set;

	apply_switch(a, set);
	device_set_free(old);
}

/* ---- readings ------------------------------------------------------------ */

static void observe(const struct device *d, struct store_observed *o, struct optics_xc *xcs,
		    struct store_age *ages)
{
	const struct drv_snapshot *s = &d->now.snap;

	*o = (struct store_observed){
		.device = d->name, .read_at_ns = d->now.read_at_ns,
		.epoch = (char *)s->epoch, .identity = (char *)s->identity,
		.xcs = xcs, .n_xcs = s->n_xcs,
		.has_program = s->programs.n > 0,
		.ages = ages, .n_ages = d->intent.n_xcs,
	};
	for (int i = 0; i < d->intent.n_xcs; i++) {
		ages[i] = (struct store_age){ d->intent.xcs[i], d->circuits[i].health,
					      d->circuits[i].since_ns };
	}
	for (int i = 0; i < s->n_xcs; i++) {
		xcs[i] = s->xcs[i].xc;
	}
	if (s->programs.n) {
		ring_programs_digest(&s->programs, o->program_digest);
	}
}

/* All unsaved readings in one transaction. */
static int save_readings(struct apply *a, struct err *err)
{
	size_t n = 0, n_xcs = 0, n_ages = 0;
	struct store_observed *v;
	struct optics_xc *xcs;
	struct store_age *ages;
	int rc;

	for (struct device *d = a->devices; d; d = d->next) {
		n += d->unsaved;
		n_xcs += d->unsaved ? d->now.snap.n_xcs : 0;
		n_ages += d->unsaved ? d->intent.n_xcs : 0;
	}
	if (n == 0) {
		return 0;
	}
	v = x_new(n, sizeof(*v));
	xcs = x_new(n_xcs + 1, sizeof(*xcs));
	ages = x_new(n_ages + 1, sizeof(*ages));
	n = n_xcs = n_ages = 0;
	for (struct device *d = a->devices; d; d = d->next) {
		if (d->unsaved) {
			observe(d, &v[n++], xcs + n_xcs, ages + n_ages);
			n_xcs += d->now.snap.n_xcs;
			n_ages += d->intent.n_xcs;
		}
	}
	rc = store_observed_put(a->store, v, (int)n, err);
	for (struct device *d = a->devices; d && rc == 0; d = d->next) {
		d->unsaved = false;
	}
	free(v);
	free(xcs);
	free(ages);
	return rc;
}

void apply_save_readings(struct apply *a)
{
	struct err err = { 0 };

	if (save_readings(a, &err)) {
		log_error("apply", "readings are not saved: %s", err.msg);
	}
	for (struct device *d = a->devices; d; d = d->next) {
		if (loss_save(d, &err)) {
			log_error("apply", "losses are not saved: %s", err.msg);
		}
	}
	timings_save(a);
	apply_sync_later(a);
}

/* One round of readings; outlives the engine if that is closed meanwhile. */
struct read_all {
	struct apply *a;
	void (*done)(int rc, const struct err *err, void *arg);
	void *arg;
	int waiting;			/* answers, and the timer */
	int rc;				/* the first error */
	struct err err;
	uv_timer_t timer;		/* the later turn of the loop */
	struct device_op ops[];		/* one for each device of the set */
};

static void on_read_closed(uv_handle_t *h)
{
	free(h->data);
}

static void one_read(struct read_all *r)
{
	if (--r->waiting) {
		return;
	}
	if (!r->a->closing) {
		apply_save_readings(r->a);
	}
	r->done(r->rc, &r->err, r->arg);
	uv_close((uv_handle_t *)&r->timer, on_read_closed);
}

static void on_read(struct device *d, int rc, const struct err *err, void *arg)
{
	struct read_all *r = arg;

	(void)d;
	if (rc && !r->rc) {
		r->rc = rc;
		r->err = *err;
	}
	one_read(r);
}

static void on_read_empty(uv_timer_t *timer)
{
	one_read(timer->data);
}

static bool is_named(const char *const *names, int n, const char *name)
{
	for (int i = 0; i < n; i++) {
		if (strcmp(names[i], name) == 0) {
			return true;
		}
	}
	return !names;
}

void apply_read_some(struct apply *a, const char *const *names, int n_names,
		     void (*done)(int rc, const struct err *err, void *arg),
		     void *arg)
{
	int n = a->set ? a->set->n : 0;
	struct read_all *r = x_new(1, sizeof(*r) + n * sizeof(r->ops[0]));

	r->a = a;
	r->done = done;
	r->arg = arg;
	r->waiting = 1;
	uv_timer_init(a->loop, &r->timer);
	r->timer.data = r;
	uv_timer_start(&r->timer, on_read_empty, 0, 0);
	for (int i = 0; i < n; i++) {
		if (!a->set->v[i]->now.elsewhere && is_named(names, n_names, a->set->v[i]->name)) {
			r->waiting++;
			device_read(a->set->v[i], &r->ops[i], on_read, r);
		}
	}
}

void apply_read(struct apply *a, void (*done)(int rc, const struct err *err, void *arg), void *arg)
{
	apply_read_some(a, NULL, 0, done, arg);
}
