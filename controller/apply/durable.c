/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What waits for the disk, and for those who have the store too, while the loop goes on.
 *
 * One sync is under way at a time, on a worker; those who ask meanwhile share the next one,
 * so that the devices of a stage need one for all of them.
 */
#include <stdlib.h>

#include "controller/apply/private.h"
#include "lib/base/alloc.h"
#include "lib/base/clock.h"

static void begin_sync(struct apply *a);

/* On a worker: touches nothing but the store's file, and the result. */
static void run_sync(uv_work_t *req)
{
	struct apply_syncs *s = req->data;
	const int64_t begun_ns = clk_now_ns();

	s->rc = store_sync(s->a->store, &s->err);
	s->took_ns = clk_now_ns() - begun_ns;
}

/* The disk has it, or not. Where others have the store too it is theirs before it is done. */
static void serve(struct apply *a, struct durable_wait *w, int rc, const struct err *err)
{
	if (rc == 0 && w->position > store_published(a->store)) {
		w->next = a->syncs.unpublished;
		a->syncs.unpublished = w;
		return;
	}
	w->done(rc, err, w->arg);
}

void apply_published(struct apply *a)
{
	struct durable_wait *w = a->syncs.unpublished;
	const struct err none = { 0 };

	a->syncs.unpublished = NULL;
	while (w && !a->closing) {
		struct durable_wait *next = w->next;

		serve(a, w, 0, &none);
		w = next;
	}
}

/* Those who ask again from within wait for the next one. */
static void after_sync(uv_work_t *req, int status)
{
	struct apply_syncs *s = req->data;
	struct apply *a = s->a;
	struct durable_wait *w = s->served;
	const struct err err = s->err;
	const int rc = s->rc;

	(void)status;
	s->running = false;
	s->served = NULL;
	store_sync_ended(a->store, s->last, rc, &err, s->took_ns);
	if ((s->waiting || s->again) && !s->running && !a->closing) {
		begin_sync(a);
	}
	while (w && !a->closing) {
		struct durable_wait *next = w->next;

		serve(a, w, rc, &err);
		w = next;
	}
	a->ended(a);
}

static void begin_sync(struct apply *a)
{
	struct apply_syncs *s = &a->syncs;

	s->a = a;
	s->req.data = s;
	s->err = (struct err){ 0 };
	s->served = s->waiting;
	s->waiting = NULL;
	s->running = true;
	s->again = false;
	s->last = store_last(a->store);
	uv_queue_work(a->loop, &s->req, run_sync, after_sync);
}

void apply_when_durable(struct apply *a, struct durable_wait *w, durable_cb done, void *arg)
{
	struct apply_syncs *s = &a->syncs;

	char log[STORE_LOG_MAX];

	*w = (struct durable_wait){ .position = store_position(a->store, log), .done = done,
				    .arg = arg, .next = s->waiting };
	s->waiting = w;
	if (!s->running && !a->closing) {
		begin_sync(a);
	}
}

void apply_sync_later(struct apply *a)
{
	a->syncs.again = a->syncs.running;
	if (!a->syncs.running && !a->closing) {
		begin_sync(a);
	}
}

struct copying {
	struct apply *a;
	uv_work_t req;
	void (*done)(int rc, const struct err *err, void *arg);
	void *arg;
	int rc;
	struct err err;
};

static void run_copy(uv_work_t *req)
{
	struct copying *c = req->data;

	c->rc = store_copy(c->a->store, &c->err);
}

static void after_copy(uv_work_t *req, int status)
{
	struct copying *c = req->data;
	struct apply *a = c->a;

	(void)status;
	if (!a->closing) {
		c->done(c->rc, &c->err, c->arg);
	}
	free(c);
	a->n_working--;
	a->ended(a);
}

void apply_copy_store(struct apply *a, void (*done)(int rc, const struct err *err, void *arg),
		      void *arg)
{
	struct copying *c = x_new(1, sizeof(*c));

	*c = (struct copying){ .req.data = c, .a = a, .done = done, .arg = arg };
	a->n_working++;
	uv_queue_work(a->loop, &c->req, run_copy, after_copy);
}
