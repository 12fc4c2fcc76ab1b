/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The end of a change: its verdict in the store, the fabric that stays, and what its
 * devices have proven.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/apply/private.h"
#include "lib/base/alloc.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"

/* What is large of a change that is over. */
struct leftovers {
	uv_work_t req;
	struct apply *a;
	struct plan *plan;
	struct store_journal journal;
};

static void run_free(uv_work_t *req)
{
	struct leftovers *l = req->data;

	plan_free(l->plan);
	store_journal_fini(&l->journal);
}

static void after_free(uv_work_t *req, int status)
{
	struct leftovers *l = req->data;
	struct apply *a = l->a;

	(void)status;
	free(l);
	a->n_working--;
	a->ended(a);
}

/* On a worker: tens of thousands of circuits take a while. The engine lives until then. */
static void free_later(struct apply *a, struct plan *plan, struct store_journal *journal)
{
	struct leftovers *l;

	if (a->closing) {
		plan_free(plan);
		store_journal_fini(journal);
		return;
	}
	l = x_new(1, sizeof(*l));
	*l = (struct leftovers){ .req.data = l, .a = a, .plan = plan, .journal = *journal };
	a->n_working++;
	uv_queue_work(a->loop, &l->req, run_free, after_free);
}

void change_free(struct change *c)
{
	for (int i = 0; i < c->n_runs; i++) {
		free(c->runs[i].items);
		free(c->runs[i].item_step);
		free(c->runs[i].before);
		free(c->runs[i].tries);
	}
	free(c->runs);
	free(c->question.paths);
	buf_fini(&c->unrecovered);
	free_later(c->a, c->plan, &c->journal);
	free(c);
}

static void end_journal(struct change *c)
{
	static const enum store_verdict verdicts[] = {
		[APPLY_REFUSED] = STORE_REFUSED,
		[APPLY_ROLLED_BACK] = STORE_ROLLED_BACK,
		[APPLY_STUCK] = STORE_STUCK,
	};
	struct err err = { 0 };
	bool unrecorded = c->phase == PHASE_COMMIT;

	if (!c->journal.change.id || c->res.verdict < APPLY_REFUSED || unrecorded) {
		return;
	}
	if (store_end(c->a->store, c->journal.change.id,
		      verdicts[c->res.verdict], c->err.msg, &err)) {
		log_error("apply", "change %lld: %s", (long long)c->journal.change.id, err.msg);
		change_event(c, NULL, true, "%s", err.msg);
	}
}

/* The new fabric stays when it is true now, or when its devices hold light
 * that an operator has to look at; otherwise the old one comes back. */
static void settle_set(struct change *c)
{
	bool stays = c->res.verdict == APPLY_COMMITTED ||
		     c->res.verdict == APPLY_STUCK || !c->before;
	struct device_set *drop = stays ? c->before : c->set;

	apply_switch(c->a, stays ? c->set : c->before);
	c->set = c->before = NULL;
	device_set_free(drop);
}

/* Of the devices that the change concerns: those it ran on, or, where there
 * was nothing to do, all that light is intended on. UNVERIFIED without any. */
static enum apply_level min_level(const struct change *c)
{
	const struct device_set *s = c->a->set;
	enum apply_level least = APPLY_ERROR_FREE;
	bool any = false;

	for (int i = 0; i < s->n; i++) {
		const struct device *d = s->v[i];
		bool concerned = c->n_runs == 0 && !d->now.elsewhere &&
				 (d->intent.n_xcs || d->intent.has_program);

		for (int k = 0; k < c->n_runs && !concerned; k++) {
			concerned = c->runs[k].dev == d;
		}
		if (concerned && d->now.level < least) {
			least = d->now.level;
		}
		any = any || concerned;
	}
	return any ? least : APPLY_UNVERIFIED;
}

/* The least of what a device holds now, whichever change made it. */
static void take_proof(struct apply_run *r)
{
	const struct store_light *l = &r->dev->intent;
	int proof = l->n_xcs ? l->proofs[0] : (int)r->proof;

	for (int i = 1; i < l->n_xcs; i++) {
		proof = l->proofs[i] < proof ? l->proofs[i] : proof;
	}
	r->dev->proof = (enum apply_level)proof;
	memset(r->dev->program_proofs, (int)r->proof, (size_t)l->programs.n);
}

/* Intent is the new one now, and what was proven is proven of it. */
static void refresh_devices(struct change *c)
{
	struct err err = { 0 };

	for (int i = 0; i < c->a->set->n; i++) {
		if (device_load_intent(c->a->set->v[i], &err)) {
			log_error("apply", "%s", err.msg);
		}
		if (c->res.verdict == APPLY_COMMITTED) {
			external_committed(c->a->set->v[i], c->res.change, c->restores);
		}
	}
	for (int i = 0; i < c->n_runs && c->res.verdict == APPLY_COMMITTED; i++) {
		take_proof(&c->runs[i]);
	}
	if (c->res.verdict == APPLY_COMMITTED) {
		external_retire(c->a, c->res.change);
	}
}

/* The change is over: what it was is told, and another may begin. */
static void report_end(void *arg)
{
	struct change *c = arg;
	struct apply *a = c->a;
	struct apply_result res;

	c->res.generation = store_generation(a->store);
	c->res.level = min_level(c);
	c->res.took_ns = clk_now_ns() - c->started_ns;
	res = c->res;
	a->change = NULL;
	c->on_done(c->rc, &res, &c->err, c->arg);
	change_free(c);
}

static void save_end(void *arg)
{
	struct change *c = arg;

	apply_save_readings(c->a);
	apply_later(c->a, YIELD_US, report_end, c);
}

static void assess_end(void *arg)
{
	struct change *c = arg;
	struct err err = { 0 };

	if (apply_refresh(c->a, &err)) {
		log_error("apply", "%s", err.msg);
	}
	apply_later(c->a, YIELD_US, save_end, c);
}

static void refresh_end(void *arg)
{
	struct change *c = arg;

	refresh_devices(c);
	apply_later(c->a, YIELD_US, assess_end, c);
}

/* The first failure stays; what others did may be its cause. */
static void name_external(struct change *c)
{
	char more[32] = "";

	if (c->n_external > 1) {
		snprintf(more, sizeof(more), " and %d more", c->n_external - 1);
	}
	if (c->rc && c->n_external) {
		err_wrap(&c->err, "changed by others while this change ran: %s%s", c->external,
			 more);
	}
}

/* In steps, as each goes through all devices, and requests come meanwhile. */
void change_end(struct change *c)
{
	name_external(c);
	end_journal(c);
	c->phase = PHASE_END;
	settle_set(c);
	apply_later(c->a, YIELD_US, refresh_end, c);
}

void change_abandon(struct change *c)
{
	struct apply *a = c->a;
	bool sent = false;

	for (int i = 0; i < c->n_runs; i++) {
		sent = sent || c->runs[i].sent;
	}
	if (!c->rc && c->phase != PHASE_END) {
		c->rc = err_set(&c->err, WEFT_ECANCELED, "the controller "
				"stopped in the middle of the change");
	}
	if (c->phase != PHASE_END) {
		err_hint(&c->err, "the light stays; the journal explains it at the "
			 "next start");
		c->res.verdict = sent ? APPLY_STUCK : APPLY_REFUSED;
	}
	c->res.generation = store_generation(a->store);
	c->res.took_ns = clk_now_ns() - c->started_ns;
	a->change = NULL;
	c->on_done(c->rc, &c->res, &c->err, c->arg);
	device_set_free(c->before);
	change_free(c);
}
