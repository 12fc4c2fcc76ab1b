/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The start of a change: a plan as a journal and as runs, one for each stage and
 * device with something to send, stage by stage; or the journal of an earlier process, to be
 * undone.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/apply/private.h"
#include "lib/base/alloc.h"
#include "lib/base/clock.h"

/* The steps of a stage stand together in the journal. */
static bool find_steps(const struct store_work *w, int stage, int *begin, int *end)
{
	for (*begin = 0; *begin < w->n_steps && w->steps[*begin].stage < stage; ++*begin) {
	}
	for (*end = *begin; *end < w->n_steps && w->steps[*end].stage == stage; ++*end) {
	}
	return *end > *begin;
}

static void init_run(struct change *c, int index, int stage, struct device *dev,
		     struct apply_run *r)
{
	struct store_work *w = &c->journal.works[index];

	*r = (struct apply_run){ .c = c, .w = w, .index = index, .stage = stage, .dev = dev };
	find_steps(w, stage, &r->begin, &r->end);
	r->is_first = r->begin == 0;
	r->items = x_new(w->n_steps, sizeof(*r->items));
	r->item_step = x_new(w->n_steps, sizeof(*r->item_step));
	r->tries = x_new(w->n_steps, sizeof(*r->tries));
}

static int count_stages(const struct store_work *w)
{
	int n = 0;

	for (int i = 0; i < w->n_steps && w->steps[i].stage != INT_MAX; i++) {
		n += i == 0 || w->steps[i].stage != w->steps[i - 1].stage;
	}
	return n;
}

/* The device of a work, NULL: another weftd leads it. */
static struct device *own_device(const struct change *c, const struct store_work *w)
{
	struct device *d = device_set_find(c->set, w->device);

	return d->now.elsewhere ? NULL : d;
}

static void init_runs(struct change *c, int n_stages)
{
	int n = 0, n_works = c->journal.n_works, begin, end;
	struct device *d;

	for (int i = 0; i < n_works; i++) {
		n += count_stages(&c->journal.works[i]);
	}
	c->runs = x_new(n + 1, sizeof(*c->runs));
	for (int k = 0; k < n_stages; k++) {
		for (int i = 0; i < n_works; i++) {
			struct store_work *w = &c->journal.works[i];

			if (find_steps(w, k, &begin, &end) && (d = own_device(c, w))) {
				init_run(c, i, k, d, &c->runs[c->n_runs++]);
				c->total += end - begin;
			}
		}
	}
	c->end = c->n_runs;
	c->whole = true;
}

static int check_half_done(const struct device *d, struct err *err)
{
	struct work_cursor at = { 0 };
	const struct store_work *w;

	while ((w = device_next_work(d, &at))) {
		if (work_moves(w)) {
			err_set(err, WEFT_EUNAVAIL, "change %lld is half done at %s, which does "
				"not answer", (long long)at.journal->change.id, d->name);
			err_hint(err, "a device that is gone for good is to be taken out of the "
				 "file");
			return WEFT_EUNAVAIL;
		}
	}
	return 0;
}

static bool is_intended(const struct device *d, const struct plan_device *p)
{
	const struct store_light *l = &d->intent;

	return l->n_xcs == p->n_want && l->has_program == p->has_program &&
	       (l->n_xcs == 0 ||
		memcmp(l->xcs, p->want, (size_t)l->n_xcs * sizeof(*l->xcs)) == 0) &&
	       (!l->has_program || ring_programs_equal(&l->programs, &p->programs));
}

/* An earlier process, perhaps on another machine, read it last: that nothing is to be sent to
 * change what is intended there follows from what may be long over. */
static int check_unread(const struct device *d, const struct plan_device *p, struct err *err)
{
	const bool sends = p->n_add || p->n_del || p->load_program;

	return (d->now.ever_read && !d->from_store) || sends || is_intended(d, p) ? 0 :
	       err_set(err, WEFT_EUNAVAIL, "%s does not answer, and has not since this weftd began",
		       d->name);
}

/* A commit covers what earlier changes left half done, and says what is at all devices from then
 * on. So each one of which that has to be known must have been read, even if nothing is to be
 * sent to it. */
static int check_devices(const struct apply *a, const struct plan *p, struct err *err)
{
	int rc = 0;

	for (int i = 0; i < p->n_devices && rc == 0; i++) {
		const struct plan_device *v = &p->devices[i];
		const struct device *d = plan_input_device(a, &p->fabric->devices[v->device]);

		if (d && !d->now.elsewhere && !d->now.reachable) {
			if ((rc = check_half_done(d, err)) == 0) {
				rc = check_unread(d, v, err);
			}
		}
	}
	return rc;
}

static int check_start(const struct apply *a, const struct plan *p, struct err *err)
{
	if (apply_busy(a)) {
		return err_set(err, WEFT_ESTALE, "another change is under way");
	}
	if (apply_unresolved(a)) {
		err_set(err, WEFT_ESTALE, "change %lld was left open and must "
			"be settled first", (long long)apply_unresolved(a));
		err_hint(err, "that is tried before every request: \"weft "
			 "status\" says what is wrong");
		return WEFT_ESTALE;
	}
	if (strcmp(p->state_uuid, store_uuid(a->store)) != 0) {
		return err_set(err, WEFT_ESTALE, "the plan was made from "
			       "another controller's state");
	}
	if (p->generation != store_generation(a->store)) {
		err_set(err, WEFT_ESTALE, "the plan was made from generation "
			"%lld, the present one is %lld",
			(long long)p->generation,
			(long long)store_generation(a->store));
		err_hint(err, "plan again");
		return WEFT_ESTALE;
	}
	return check_devices(a, p, err);
}

static void on_start(void *arg)
{
	change_walk(arg, PHASE_PREPARE);
}

int apply_start(struct apply *a, struct plan *plan, struct model_fabric *fabric,
		const struct apply_request *req, apply_event_cb on_event, apply_done_cb on_done,
		void *arg, struct err *err)
{
	struct change *c;
	int rc = check_start(a, plan, err);

	if (rc) {
		plan_free(plan);
		model_free(fabric);
		return rc;
	}
	c = x_new(1, sizeof(*c));
	*c = (struct change){ .a = a, .plan = plan, .on_event = on_event,
			      .on_done = on_done, .arg = arg, .walk = change_walk,
			      .ignore_traffic = req->ignore_traffic,
			      .started_ns = clk_now_ns() };
	rc = device_set_new(a, fabric, a->set, &c->set, err);
	if (rc) {
		model_free(fabric);
		change_free(c);
		return rc;
	}
	journal_from_plan(plan, &req->order, &c->journal);
	init_runs(c, plan->n_stages);
	snprintf(c->peer, sizeof(c->peer), "%s", req->peer ? req->peer : "");
	c->restores = req->restores;
	c->ready = req->ready;
	c->before = a->set;
	apply_switch(a, c->set);
	a->change = c;
	apply_later(a, YIELD_US, on_start, c);
	return 0;
}

/* What may have been sent by the earlier process. */
static bool was_sent(const struct store_work *w)
{
	for (int i = 0; i < w->n_steps; i++) {
		if (w->steps[i].state != STORE_PLANNED) {
			return true;
		}
	}
	return false;
}

void change_undo_open(struct apply *a, struct store_journal *j, struct device_set *set,
		      const struct err *why, apply_event_cb on_event, apply_done_cb on_done,
		      void *arg)
{
	struct change *c = x_new(1, sizeof(*c));

	*c = (struct change){ .a = a, .set = set, .journal = *j, .on_event = on_event,
			      .on_done = on_done, .arg = arg, .walk = change_walk,
			      .rc = why->code, .err = *why,
			      .res.change = j->change.id, .started_ns = clk_now_ns() };
	memset(j, 0, sizeof(*j));
	/* The file has no stages: all steps of a device are of one. */
	init_runs(c, 1);
	for (int i = 0; i < c->n_runs; i++) {
		struct apply_run *r = &c->runs[i];

		r->sent = was_sent(r->w);
		/* Once it was read it cannot tell any more whether it restarted
		 * since the change began. */
		r->restarted = !r->dev->from_store;
		snprintf(r->epoch, sizeof(r->epoch), "%s", r->dev->now.snap.epoch);
	}
	c->before = a->set;
	apply_switch(a, set);
	a->change = c;
	change_walk(c, PHASE_UNDO);
}
