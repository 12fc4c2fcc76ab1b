/* A change on its way through the phases. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/apply/private.h"
#include "lib/base/clk.h"
#include "lib/base/log.h"

/* Light that still moves is read again, each time after a longer wait. */
#define SETTLE_ROUNDS 8
#define SETTLE_MOST_US 1000000

static void enter(struct change *c, enum phase phase);
static const char *phase_name(enum phase phase);

/* ---- what is said -------------------------------------------------------- */

static void tell(struct change *c, enum phase phase, const struct device *d,
		 bool is_problem, const char *text)
{
	struct apply_event ev = {
		.phase = phase_name(phase), .device = d ? d->name : "",
		.text = text, .is_problem = is_problem,
		.done = c->done, .total = c->total,
	};

	if (c->journal.change.id) {
		store_audit(c->a->store, c->journal.change.id, ev.device,
			    STORE_EVENT, text);
	}
	if (c->on_event) {
		c->on_event(&ev, c->arg);
	}
}

void change_event(struct change *c, const struct device *d, bool is_problem,
		  const char *fmt, ...)
{
	char text[ERR_MSG_MAX];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	tell(c, c->phase, d, is_problem, text);
}

void change_progress(struct change *c, const struct device *d,
		     const struct drv_event *ev)
{
	const struct apply_event e = {
		.phase = phase_name(c->phase), .device = d->name,
		.text = ev->text, .done = c->done, .total = c->total,
		.eta_ns = ev->eta_ms > 0 ? ev->eta_ms * 1000000 : 0,
	};

	if (c->on_event) {
		c->on_event(&e, c->arg);
	}
}

void change_fail(struct change *c, int rc, const struct err *err)
{
	if (c->rc) {
		return;
	}
	c->rc = rc;
	c->err = *err;
	change_event(c, NULL, true, "%s", err->msg);
}

/* ---- the phases' common way ---------------------------------------------- */

static enum phase next_phase(struct change *c);

/* One of the operations that the phase waits for has been answered. */
static void op_done(struct change *c)
{
	struct err err = { 0 };
	enum phase next;

	if (--c->waiting || c->a->closing) {
		return;
	}
	if (c->cancel && !c->rc) {
		err_set(&err, WEFT_ECANCELED, "stopped on request");
		change_fail(c, err.code, &err);
	}
	next = c->rc ? PHASE_UNDO : next_phase(c);
	next = c->rc ? PHASE_UNDO : next;
	enter(c, c->rc && c->stop ? PHASE_STOP : next);
}

static void op_failed(struct run *r, int rc, const struct err *err)
{
	change_fail(r->c, rc, err);
	op_done(r->c);
}

/* ---- the gate ------------------------------------------------------------ */

/* Whether the change goes on without one more circuit of the stage in scope:
 * if so the circuit is left to be repaired, else err is what stops it. */
static bool may_straggle(struct run *r, int step, const struct err *err)
{
	struct change *c = r->c;
	const struct model_changes *ch = &c->set->fabric->changes;
	struct store_step *st = &r->w->steps[step];
	int64_t verified = c->n_stage_adds - c->n_stragglers - 1;

	if (st->op != STORE_ADD || st->stage != r->stage || r->replace) {
		return false;
	}
	if (verified * MODEL_PPM < c->n_stage_adds * ch->gate_ppm) {
		c->stop = c->stop || (ch->stop && !c->rc);
		return false;
	}
	c->n_stragglers++;
	st->is_straggler = true;
	snprintf(st->note, sizeof(st->note), "%.*s", STORE_NOTE_MAX - 1,
		 err->msg);
	change_event(c, r->dev, true, "left to be repaired: %s", err->msg);
	return true;
}

/* Puts the circuits that the change was carried out without on the list. */
static int record_stragglers(struct change *c, int *n, struct err *err)
{
	struct store_repair *v;
	int rc, max = 0;

	for (int i = 0; i < c->journal.n_works; i++) {
		max += c->journal.works[i].n_steps;
	}
	v = calloc(max + 1, sizeof(*v));
	if (!v) {
		return err_nomem(err);
	}
	*n = 0;
	for (int i = 0; i < c->journal.n_works; i++) {
		struct store_work *w = &c->journal.works[i];

		for (int k = 0; k < w->n_steps; k++) {
			if (w->steps[k].is_straggler) {
				v[(*n)++] = (struct store_repair){
					.device = w->device,
					.xc = w->steps[k].xc,
					.change = c->journal.change.id,
					.why = w->steps[k].note };
			}
		}
	}
	rc = *n ? store_repairs_put(c->a->store, v, *n, err) : 0;
	free(v);
	return rc;
}

/* ---- check --------------------------------------------------------------- */

static bool wants_all(const struct run *r)
{
	(void)r;
	return true;
}

/* One reading of a device is enough to check all its stages by. */
static bool wants_check(const struct run *r)
{
	return !r->c->whole || r->is_first;
}

/* Steps that are `op` to the run's stage. */
static int run_count(const struct run *r, enum store_op op)
{
	int n = 0;

	for (int i = 0; i < r->w->n_steps; i++) {
		n += step_op(&r->w->steps[i], r->stage) == (int)op;
	}
	return n;
}

/* Whether one command for the whole map is right: it must save commands and
 * put no circuit at risk that the plan does not move, as a device may cut the
 * command short and this process may not live to repair it. */
static bool replace_saves(const struct run *r)
{
	const struct drv_snapshot *s = &r->dev->now.snap;
	int n_del = run_count(r, STORE_DEL);
	int n_add = run_count(r, STORE_ADD);
	int max = s->caps.max_batch;

	/* All deleted ones are there, so an equal count means that there are
	 * no others. */
	return s->caps.atomic_replace && n_del && n_add && !r->w->is_ring &&
	       run_count(r, STORE_KEEP) == 0 && (max == 0 || n_add <= max) &&
	       s->n_xcs == n_del;
}

static int remember_before(struct run *r, struct err *err)
{
	const struct drv_snapshot *s = &r->dev->now.snap;

	free(r->before);
	r->before = calloc(s->n_xcs + 1, sizeof(*r->before));
	if (!r->before) {
		return err_nomem(err);
	}
	for (r->n_before = 0; r->n_before < s->n_xcs; r->n_before++) {
		r->before[r->n_before] = s->xcs[r->n_before].xc;
	}
	snprintf(r->epoch, sizeof(r->epoch), "%s", s->epoch);
	r->replace = replace_saves(r);
	return 0;
}

static void on_checked(struct device *d, int rc, const struct err *err,
		       void *arg)
{
	struct run *r = arg;
	struct err own = { 0 };

	if (rc == 0) {
		err = &own;
		rc = compare_before(r->w, r->c->whole ? STAGE_ALL : r->stage,
				    d, &own);
		rc = rc ? rc : remember_before(r, &own);
	}
	if (rc) {
		op_failed(r, rc, err);
		return;
	}
	if (d->now.restarted) {
		change_event(r->c, d, true, "%s restarted since it was last "
			     "read", d->name);
	}
	change_event(r->c, d, false, "as the plan expects");
	op_done(r->c);
}

static void begin_check(struct run *r)
{
	device_read(r->dev, &r->op, on_checked, r);
}

/* ---- delete, add, load --------------------------------------------------- */

static bool wants_delete(const struct run *r)
{
	return !r->replace && run_count(r, STORE_DEL) > 0;
}

static bool wants_add(const struct run *r)
{
	return r->replace || run_count(r, STORE_ADD) > 0;
}

static bool wants_load(const struct run *r)
{
	return run_count(r, STORE_LOAD) > 0;
}

static void put_item(struct run *r, int step)
{
	r->items[r->n_sent] = (struct drv_item){
		.op = r->w->steps[step].op == STORE_DEL ? DRV_DEL : DRV_ADD,
		.xc = r->w->steps[step].xc,
	};
	r->item_step[r->n_sent++] = step;
}

/* The next steps of one kind, from r->first on, as many as fit a batch. */
static void collect_steps(struct run *r, enum store_op op)
{
	int max = r->dev->now.snap.caps.max_batch;

	r->n_sent = 0;
	while (r->first < r->end && r->w->steps[r->first].op != op) {
		r->first++;
	}
	for (int i = r->first; i < r->end &&
	     r->w->steps[i].op == op && (max == 0 || r->n_sent < max); i++) {
		put_item(r, i);
	}
	r->batch = (struct drv_batch){ .mode = DRV_SAFE, .items = r->items,
				       .n_items = r->n_sent };
}

/* The whole map: nothing is kept beside what is made. */
static void collect_map(struct run *r)
{
	r->n_sent = 0;
	for (int i = r->begin; i < r->end; i++) {
		if (r->w->steps[i].op == STORE_ADD) {
			put_item(r, i);
		}
	}
	r->batch = (struct drv_batch){ .mode = DRV_REPLACE,
				       .items = r->items,
				       .n_items = r->n_sent };
}

static void collect_program(struct run *r)
{
	const struct light_ring *p = work_new(r->w);

	r->n_sent = 0;
	put_item(r, r->first);
	r->batch = (struct drv_batch){ .programs = p ? p : &r->dark };
}

static void set_states(struct run *r, enum store_step_state st)
{
	for (int i = 0; i < r->n_sent; i++) {
		r->w->steps[r->item_step[i]].state = st;
	}
	for (int i = r->begin; i < r->end && r->replace; i++) {
		r->w->steps[i].state = st;
	}
}

/* The steps of the batch under way: all of them when it is the whole map. */
static int mark_batch(struct run *r, struct err *err)
{
	int first = r->replace ? r->begin : r->first;
	int n = r->replace ? r->end - r->begin : r->n_sent;

	return store_mark(r->c->a->store, &r->c->journal, r->index, first, n,
			  err);
}

static void on_sent(struct device *d, int rc, int n,
		    const struct drv_outcome *outcomes, const struct err *err,
		    void *arg);

/* The journal knows what is in flight before it is sent. */
static void send_batch(struct run *r)
{
	struct err err = { 0 };
	int rc;

	set_states(r, STORE_SENT);
	rc = mark_batch(r, &err);
	if (rc) {
		set_states(r, STORE_PLANNED);
		op_failed(r, rc, &err);
		return;
	}
	r->sent = true;
	device_submit(r->dev, &r->op, &r->batch, on_sent, r);
}

static void send_next(struct run *r)
{
	struct change *c = r->c;

	if (c->phase == PHASE_DELETE) {
		collect_steps(r, STORE_DEL);
	} else if (c->phase == PHASE_LOAD) {
		collect_program(r);
	} else if (r->replace) {
		collect_map(r);
	} else {
		collect_steps(r, STORE_ADD);
	}
	send_batch(r);
}

static void begin_send(struct run *r)
{
	r->first = r->begin;
	send_next(r);
}

static enum store_step_state state_of(const struct run *r,
				      const struct drv_outcome *o)
{
	switch (o->result) {
	case DRV_DONE:
		return STORE_DONE;
	case DRV_REFUSED:
		return r->replace ? STORE_UNKNOWN : STORE_DENIED;
	case DRV_SKIPPED:
		/* A whole map half written has lost what was skipped. */
		return r->replace ? STORE_UNKNOWN : STORE_PLANNED;
	default:
		return STORE_UNKNOWN;
	}
}

static void take_outcomes(struct run *r, int n,
			  const struct drv_outcome *outcomes)
{
	set_states(r, r->replace && n == r->n_sent ? STORE_DONE :
						     STORE_UNKNOWN);
	for (int i = 0; i < n && n == r->n_sent; i++) {
		struct store_step *st = &r->w->steps[r->item_step[i]];
		const struct drv_outcome *o = &outcomes[i];

		st->state = state_of(r, o);
		snprintf(st->note, sizeof(st->note), "%s%s%s", o->code,
			 o->code[0] && o->text[0] ? " " : "", o->text);
		r->unmeasured |= o->evidence != DRV_MEASURED &&
				 st->op != STORE_DEL;
		r->c->done += st->state == STORE_DONE;
	}
	for (int i = r->begin; i < r->end && r->replace; i++) {
		r->c->done += r->w->steps[i].op == STORE_DEL &&
			      r->w->steps[i].state == STORE_DONE;
	}
}

/* Keeps the circuits that failed, for those who want more than the first. */
static void keep_failed(const struct run *r, int n,
			const struct drv_outcome *outcomes)
{
	struct apply_result *res = &r->c->res;
	char what[48];

	for (int i = 0; i < n && n == r->n_sent; i++) {
		const struct drv_outcome *o = &outcomes[i];
		struct apply_failed *f = &res->failed[res->n_failed];

		if (o->result == DRV_DONE || o->result == DRV_SKIPPED ||
		    res->n_failed == APPLY_MAX_FAILED) {
			continue;
		}
		step_text(&r->w->steps[r->item_step[i]], what, sizeof(what));
		snprintf(f->name, sizeof(f->name), "%.*s: %s", MODEL_MAX_NAME,
			 r->dev->name, what);
		snprintf(f->why, sizeof(f->why), "%s: %.30s%s%.40s",
			 drv_result_name(o->result), o->code,
			 o->code[0] && o->text[0] ? " " : "", o->text);
		res->n_failed++;
	}
}

/* Says which circuit it was; the driver knows items only. */
static int name_failure(const struct run *r, int n,
			const struct drv_outcome *outcomes, int rc,
			const struct err *err, struct err *own)
{
	char what[48];

	for (int i = 0; i < n && n == r->n_sent; i++) {
		const struct drv_outcome *o = &outcomes[i];

		if (o->result == DRV_DONE || o->result == DRV_SKIPPED) {
			continue;
		}
		step_text(&r->w->steps[r->item_step[i]], what, sizeof(what));
		return err_set(own, rc, "%s: %s: %s %s: %s%s%s", r->dev->name,
			       what, phase_name(r->c->phase),
			       drv_result_name(o->result), o->code,
			       o->code[0] ? " " : "",
			       o->text[0] ? o->text : err->msg);
	}
	*own = *err;
	return rc;
}

/* What the ring runs now; programs that stay were not touched. */
static void report_load(struct run *r)
{
	const struct light_ring *now = r->batch.programs;
	const struct light_ring *old = work_old(r->w);

	for (int i = 0; i < now->n; i++) {
		const struct light_pack *p = &now->v[i];
		const struct light_pack *had =
			old ? light_ring_find(old, p->name) : NULL;

		if (!had || !light_pack_equal(had, p)) {
			change_event(r->c, r->dev, false, "%s: program of %u "
				     "steps loaded, %zu bytes", p->name,
				     p->steps, p->len);
		}
	}
	for (int i = 0; old && i < old->n; i++) {
		if (!light_ring_find(now, old->v[i].name)) {
			change_event(r->c, r->dev, false, "%s: program ended",
				     old->v[i].name);
		}
	}
}

static void report_progress(struct run *r)
{
	static const char *const verbs[] = {
		[PHASE_DELETE] = "deleted", [PHASE_ADD] = "made",
	};

	if (r->c->phase == PHASE_LOAD) {
		report_load(r);
	} else if (r->replace) {
		change_event(r->c, r->dev, false, "map of %d circuits set at "
			     "once", r->n_sent);
	} else {
		change_event(r->c, r->dev, false, "%d circuit%s %s", r->n_sent,
			     r->n_sent == 1 ? "" : "s", verbs[r->c->phase]);
	}
}

/* More of the same kind follow when a batch was too small for them. */
static bool has_more(struct run *r)
{
	enum store_op op = r->w->steps[r->first].op;

	while (r->first < r->end && r->w->steps[r->first].op == op &&
	       (r->w->steps[r->first].state != STORE_PLANNED ||
		r->w->steps[r->first].is_straggler)) {
		r->first++;
	}
	return !r->replace && r->first < r->end &&
	       r->w->steps[r->first].op == op;
}

/* Circuits that the device refused may be some that the change goes on
 * without, unless what became of others is unknown; those that were skipped
 * follow. err names the first. */
static void on_refused(struct run *r, int n,
		       const struct drv_outcome *outcomes, int rc,
		       const struct err *err)
{
	bool left = false;
	char what[48];

	for (int i = 0; i < n && n == r->n_sent; i++) {
		const struct drv_outcome *o = &outcomes[i];
		struct err own = *err;

		if (o->result == DRV_DONE || o->result == DRV_SKIPPED) {
			continue;
		}
		if (left) {
			step_text(&r->w->steps[r->item_step[i]], what,
				  sizeof(what));
			err_set(&own, rc, "%s: %s: %s %s", r->dev->name, what,
				o->code, o->text);
		}
		left = o->result == DRV_REFUSED &&
		       may_straggle(r, r->item_step[i], &own);
		if (!left) {
			break;
		}
	}
	if (!left) {
		change_fail(r->c, rc, err);
	}
}

static void on_sent(struct device *d, int rc, int n,
		    const struct drv_outcome *outcomes, const struct err *err,
		    void *arg)
{
	struct run *r = arg;
	struct err own = { 0 };

	(void)d;
	take_outcomes(r, n, outcomes);
	if (rc) {
		keep_failed(r, n, outcomes);
		rc = name_failure(r, n, outcomes, rc, err, &own);
		on_refused(r, n, outcomes, rc, &own);
	} else {
		report_progress(r);
	}
	rc = mark_batch(r, &own);
	if (rc) {
		change_fail(r->c, rc, &own);
	}
	if (r->c->rc || r->c->cancel || r->c->a->closing || !has_more(r)) {
		op_done(r->c);
		return;
	}
	send_next(r);
}

/* ---- read back, settle, read again --------------------------------------- */

static void note_restart(struct run *r, struct err *err)
{
	const char *epoch = r->dev->now.snap.epoch;

	if (!r->epoch[0] || strcmp(r->epoch, epoch) == 0) {
		return;
	}
	change_event(r->c, r->dev, true, "%s restarted during the change",
		     r->dev->name);
	snprintf(r->epoch, sizeof(r->epoch), "%s", epoch);
	r->restarted = true;
	if (err->code) {
		err_wrap(err, "%s restarted during the change",
			 r->dev->name);
	}
}

/* A circuit of somebody else's that went away while weft worked on the same
 * device is not weft's to restore, but it must not go unnoticed. */
static void check_neighbours(struct run *r)
{
	char xc[48];

	for (int i = 0; i < r->n_before; i++) {
		bool ours = false;

		for (int k = 0; k < r->w->n_steps && !ours; k++) {
			ours = light_xc_cmp(&r->w->steps[k].xc,
					    &r->before[i]) == 0;
		}
		if (!ours && !snap_find(&r->dev->now.snap, r->before[i])) {
			change_event(r->c, r->dev, true, "%s, not part of "
				     "this change, went away during it",
				     xc_text(r->before[i], xc, sizeof(xc)));
		}
	}
}

/* Circuits that are not there are left to be repaired while the gate allows
 * it, unless the device restarted: then more than a circuit went. */
static int compare_run(struct run *r, struct err *err)
{
	bool restarted = strcmp(r->epoch, r->dev->now.snap.epoch) != 0;
	int rc, at;

	do {
		*err = (struct err){ 0 };
		rc = compare_after(r->w, r->stage, r->dev, &r->settling, &at,
				   err);
	} while (rc == WEFT_EVERIFY && at >= 0 && !restarted &&
		 compare_gap(&r->w->steps[at], r->dev) &&
		 may_straggle(r, at, err));
	return rc;
}

static void on_read(struct device *d, int rc, const struct err *err,
		    void *arg)
{
	struct run *r = arg;
	struct err own = { 0 };

	(void)d;
	r->settling = false;
	if (rc == 0) {
		err = &own;
		rc = compare_run(r, &own);
		note_restart(r, &own);
	}
	if (rc) {
		op_failed(r, rc, err);
		return;
	}
	if (r->c->phase == PHASE_READ_AGAIN && !r->settling) {
		check_neighbours(r);
	}
	op_done(r->c);
}

static void begin_read(struct run *r)
{
	device_read(r->dev, &r->op, on_read, r);
}

static void on_settled(void *arg)
{
	enter(arg, PHASE_READ_AGAIN);
}

static void enter_settle(struct change *c)
{
	int64_t wait_us = 0, longest;

	for (int i = c->first; i < c->end; i++) {
		const struct drv_caps *caps = &c->runs[i].dev->now.snap.caps;

		wait_us = caps->settle_us > wait_us ? caps->settle_us :
						      wait_us;
	}
	longest = wait_us > SETTLE_MOST_US ? wait_us : SETTLE_MOST_US;
	if (c->settle_rounds > 0) {
		wait_us = (wait_us > 10000 ? wait_us : 10000)
			  << c->settle_rounds;
	}
	apply_later(c->a, wait_us < longest ? wait_us : longest, on_settled,
		    c);
}

/* ---- commit -------------------------------------------------------------- */

static void count_steps(const struct change *c, int counts[4])
{
	memset(counts, 0, 4 * sizeof(*counts));
	for (int i = 0; i < c->journal.n_works; i++) {
		for (int op = 0; op < 4; op++) {
			counts[op] += work_count(&c->journal.works[i],
						 (enum store_op)op);
		}
	}
}

/* Of what this change has touched. */
static enum apply_level least_proof(const struct change *c)
{
	enum apply_level least = APPLY_MEASURED;

	for (int i = 0; i < c->n_runs; i++) {
		if (c->runs[i].proof < least) {
			least = c->runs[i].proof;
		}
	}
	return least;
}

static void enter_commit(struct change *c)
{
	int n[4], n_devices = 0, n_left = 0;
	char text[200];

	for (int i = 0; i < c->n_runs; i++) {
		n_devices += c->runs[i].is_first;
	}
	count_steps(c, n);
	snprintf(text, sizeof(text), "%d deleted, %d made, %d program%s loaded "
		 "on %d device%s", n[STORE_DEL], n[STORE_ADD], n[STORE_LOAD],
		 n[STORE_LOAD] == 1 ? "" : "s", n_devices,
		 n_devices == 1 ? "" : "s");
	c->rc = record_stragglers(c, &n_left, &c->err);
	if (c->rc) {
		enter(c, PHASE_UNDO);
		return;
	}
	if (n_left) {
		snprintf(text + strlen(text), sizeof(text) - strlen(text),
			 "; %d of them to be repaired", n_left);
	}
	c->rc = store_commit(c->a->store, c->journal.change.id, text,
			     least_proof(c), &c->err);
	if (c->rc) {
		/* Undoing now could contradict what the disk may yet hold;
		 * recovery decides by reading the devices. */
		err_wrap(&c->err, "the light is as planned, but that could "
			 "not be recorded");
		err_hint(&c->err, "once the disk takes it, the change is "
			 "settled by reading the devices");
		change_event(c, NULL, true, "%s", c->err.msg);
		c->res.verdict = APPLY_STUCK;
	} else {
		c->res.verdict = APPLY_COMMITTED;
		change_event(c, NULL, false, "committed: %s", text);
	}
	change_end(c);
}

/* Under the gate, where the fabric says that somebody is to look at it: the
 * journal stays open and explains every circuit. */
static void enter_stop(struct change *c)
{
	err_wrap(&c->err, "stopped under the gate of %g%%",
		 (double)c->set->fabric->changes.gate_ppm / 10000);
	err_hint(&c->err, "nothing was rolled back; apply again or roll "
		 "back");
	change_event(c, NULL, true, "%s", c->err.msg);
	c->res.verdict = APPLY_STUCK;
	change_end(c);
}

/* ---- prepare ------------------------------------------------------------- */

static int config_of(const struct model_fabric *f, struct store_config *out,
		     struct err *err)
{
	*out = (struct store_config){
		.name = strdup(f->file ? f->file : ""),
		.text = malloc(f->text_len + 1),
		.len = f->text_len,
	};
	if (!out->name || !out->text) {
		store_config_fini(out);
		return err_nomem(err);
	}
	memcpy(out->text, f->text ? f->text : "", f->text_len);
	out->text[f->text_len] = '\0';
	snprintf(out->hash, sizeof(out->hash), "%s", f->hash);
	return 0;
}

static bool same_intent(const struct store_work *w,
			const struct store_light *l)
{
	const struct light_ring *has = l->has_program &&
		l->programs.n ? &l->programs : NULL;

	if (w->n_steps != l->n_xcs || !program_same(has, work_new(w))) {
		return false;
	}
	for (int i = 0; i < w->n_steps; i++) {
		if (light_xc_cmp(&w->steps[i].xc, &l->xcs[i]) != 0) {
			return false;
		}
	}
	return true;
}

/* Nothing to send, and nothing to remember that is not remembered yet. */
static bool nothing_to_do(struct change *c)
{
	struct store_config cfg;
	bool same;

	if (c->n_runs || c->a->n_open ||
	    store_config(c->a->store, &cfg, NULL)) {
		return false;
	}
	same = strcmp(cfg.hash, c->set->fabric->hash) == 0;
	store_config_fini(&cfg);
	for (int i = 0; i < c->journal.n_works && same; i++) {
		const struct store_work *w = &c->journal.works[i];

		same = same_intent(w, &devset_find(c->set, w->device)->intent);
	}
	return same;
}

static void tell_removed(struct change *c)
{
	char **names;
	int n;

	if (store_intent_devices(c->a->store, &names, &n, NULL)) {
		return;
	}
	for (int i = 0; i < n; i++) {
		if (!devset_find(c->set, names[i])) {
			change_event(c, NULL, true, "%s is no longer in the "
				     "configuration: its light stays as it is "
				     "and is forgotten", names[i]);
		}
	}
	model_names_free(names);
}

static void enter_prepare(struct change *c)
{
	struct store_config cfg;
	int rc;

	if (nothing_to_do(c)) {
		c->res.verdict = APPLY_NOTHING_TO_DO;
		change_end(c);
		return;
	}
	rc = config_of(c->set->fabric, &cfg, &c->err);
	if (rc == 0) {
		rc = store_begin(c->a->store, &c->journal, &cfg, &c->err);
		store_config_fini(&cfg);
	}
	if (rc) {
		c->rc = rc;
		c->res.verdict = APPLY_REFUSED;
		change_end(c);
		return;
	}
	c->res.change = c->journal.change.id;
	change_event(c, NULL, false, "change %lld is in the journal",
		     (long long)c->res.change);
	tell_removed(c);
	enter(c, c->n_runs ? PHASE_CHECK : PHASE_COMMIT);
}

/* ---- the table ----------------------------------------------------------- */

/* A phase either goes to all devices in scope that want it and waits for
 * them, or does its own thing. */
static const struct phase_def {
	const char *name;
	void (*enter)(struct change *c);
	bool (*wants)(const struct run *r);
	void (*begin)(struct run *r);
	enum phase next;
} phases[] = {
	[PHASE_PREPARE] = { .name = "prepare", .enter = enter_prepare },
	[PHASE_CHECK] = { "check", NULL, wants_check, begin_check,
			  PHASE_DELETE },
	[PHASE_DELETE] = { "delete", NULL, wants_delete, begin_send,
			   PHASE_ADD },
	[PHASE_ADD] = { "add", NULL, wants_add, begin_send, PHASE_LOAD },
	[PHASE_LOAD] = { "load", NULL, wants_load, begin_send,
			 PHASE_READ_BACK },
	[PHASE_READ_BACK] = { "read back", NULL, wants_all, begin_read,
			      PHASE_SETTLE },
	[PHASE_SETTLE] = { .name = "settle", .enter = enter_settle },
	[PHASE_READ_AGAIN] = { "read again", NULL, wants_all, begin_read,
			       PHASE_COMMIT },
	[PHASE_COMMIT] = { .name = "commit", .enter = enter_commit },
	[PHASE_UNDO] = { .name = "undo", .enter = undo_begin },
	[PHASE_STOP] = { .name = "stop", .enter = enter_stop },
	[PHASE_END] = { .name = "end" },
};

static const char *phase_name(enum phase phase)
{
	return phases[phase].name;
}

static void enter(struct change *c, enum phase phase)
{
	const struct phase_def *def = &phases[phase];

	if (c->a->closing) {
		return;		/* an event's receiver closed the engine */
	}
	c->phase = phase;
	if (def->enter) {
		def->enter(c);
		return;
	}
	c->waiting = 1;
	for (int i = c->first; i < c->end; i++) {
		if (def->wants(&c->runs[i])) {
			c->waiting++;
			def->begin(&c->runs[i]);
		}
	}
	op_done(c);
}

/* Narrows the scope to the stage that begins at run `first`. */
static void scope_stage(struct change *c, int first)
{
	const struct plan_stage *st;
	char text[ERR_MSG_MAX];

	c->whole = false;
	c->first = c->end = first;
	while (c->end < c->n_runs &&
	       c->runs[c->end].stage == c->runs[first].stage) {
		c->end++;
	}
	c->settle_rounds = 0;
	c->n_stage_adds = c->n_stragglers = 0;
	for (int i = c->first; i < c->end; i++) {
		c->n_stage_adds += run_count(&c->runs[i], STORE_ADD);
	}
	if (c->plan->n_stages > 1 && first < c->n_runs) {
		st = &c->plan->stages[c->runs[first].stage];
		snprintf(text, sizeof(text), "stage %d of %d, domain %s: %d to "
			 "delete, %d to make, %d to load",
			 c->runs[first].stage + 1, c->plan->n_stages,
			 st->domain, st->n_del, st->n_add, st->n_loads);
		/* A stage begins with its check, whatever went before. */
		tell(c, PHASE_CHECK, NULL, false, text);
	}
}

static bool still_settling(const struct change *c)
{
	for (int i = c->first; i < c->end; i++) {
		if (c->runs[i].settling) {
			return true;
		}
	}
	return false;
}

static bool has_stragglers(const struct run *r)
{
	for (int i = r->begin; i < r->end; i++) {
		if (r->w->steps[i].is_straggler) {
			return true;
		}
	}
	return false;
}

static void prove(struct change *c)
{
	for (int i = c->first; i < c->end; i++) {
		struct run *r = &c->runs[i];

		r->proof = has_stragglers(r) ? APPLY_UNVERIFIED :
			   r->unmeasured ? APPLY_SETTLED : APPLY_MEASURED;
		change_event(c, r->dev, false, "read back twice: as planned%s",
			     r->proof ? "" : ", but what is to be repaired");
	}
}

/* Light that never settled: to be repaired, or too much of it. */
static void give_up_settling(struct change *c)
{
	struct err err = { 0 };

	for (int i = c->first; i < c->end && !c->rc; i++) {
		struct run *r = &c->runs[i];
		int at;

		do {
			err = (struct err){ 0 };
			compare_after(r->w, r->stage, r->dev, &r->settling,
				      &at, &err);
			if (r->settling && !may_straggle(r, at, &err)) {
				change_fail(c, WEFT_EVERIFY, &err);
			}
		} while (r->settling && !c->rc);
	}
}

static enum phase after_read_again(struct change *c)
{
	if (still_settling(c)) {
		if (++c->settle_rounds < SETTLE_ROUNDS) {
			return PHASE_SETTLE;
		}
		give_up_settling(c);
		if (c->rc) {
			return PHASE_UNDO;
		}
	}
	prove(c);
	if (c->end == c->n_runs) {
		return PHASE_COMMIT;
	}
	scope_stage(c, c->end);
	return PHASE_CHECK;
}

static enum phase next_phase(struct change *c)
{
	/* The first check is of all devices, so that a plan that cannot be
	 * carried through moves nothing at all. */
	if (c->phase == PHASE_CHECK && c->whole) {
		scope_stage(c, 0);
	}
	return c->phase == PHASE_READ_AGAIN ? after_read_again(c) :
					      phases[c->phase].next;
}

/* ---- end ----------------------------------------------------------------- */

static void change_free(struct change *c)
{
	for (int i = 0; i < c->n_runs; i++) {
		free(c->runs[i].items);
		free(c->runs[i].item_step);
		free(c->runs[i].before);
		free(c->runs[i].tries);
	}
	free(c->runs);
	buf_fini(&c->left);
	store_journal_fini(&c->journal);
	plan_free(c->plan);
	free(c);
}

static void record_end(struct change *c)
{
	static const enum store_verdict verdicts[] = {
		[APPLY_REFUSED] = STORE_REFUSED,
		[APPLY_ROLLED_BACK] = STORE_ROLLED_BACK,
		[APPLY_STUCK] = STORE_STUCK,
	};
	struct err err = { 0 };
	bool unrecorded = c->phase == PHASE_COMMIT;

	if (!c->journal.change.id || c->res.verdict < APPLY_REFUSED ||
	    unrecorded) {
		return;
	}
	if (store_end(c->a->store, c->journal.change.id,
		      verdicts[c->res.verdict], c->err.msg, &err)) {
		log_error("apply", "change %lld: %s",
			  (long long)c->journal.change.id, err.msg);
		change_event(c, NULL, true, "%s", err.msg);
	}
}

/* The new fabric stays when it is true now, or when its devices hold light
 * that somebody has to look at; otherwise the old one comes back. */
static void settle_set(struct change *c)
{
	bool stays = c->res.verdict == APPLY_COMMITTED ||
		     c->res.verdict == APPLY_STUCK || !c->before;
	struct devset *drop = stays ? c->before : c->set;

	c->a->set = stays ? c->set : c->before;
	c->set = c->before = NULL;
	devset_free(drop);
}

static enum apply_level least_level(const struct change *c)
{
	const struct devset *s = c->a->set;
	enum apply_level least = APPLY_MEASURED;

	for (int i = 0; i < s->n; i++) {
		const struct device *d = s->v[i];
		bool concerned = c->n_runs == 0 &&
			(d->intent.n_xcs || d->intent.has_program);

		for (int k = 0; k < c->n_runs && !concerned; k++) {
			concerned = c->runs[k].dev == d;
		}
		if (concerned && d->now.level < least) {
			least = d->now.level;
		}
	}
	return least;
}

/* Intent is the new one now, and what was proven is proven of it. */
static void refresh_devices(struct change *c)
{
	struct err err = { 0 };

	for (int i = 0; i < c->n_runs &&
	     c->res.verdict == APPLY_COMMITTED; i++) {
		struct run *r = &c->runs[i];

		if (r->is_first || r->proof < r->dev->proof) {
			r->dev->proof = r->proof;
		}
	}
	for (int i = 0; i < c->a->set->n; i++) {
		if (device_load_intent(c->a->set->v[i], &err)) {
			log_error("apply", "%s", err.msg);
		}
	}
}

void change_end(struct change *c)
{
	struct apply *a = c->a;
	struct apply_result res;
	struct err err = { 0 };

	record_end(c);
	c->phase = PHASE_END;
	settle_set(c);
	a->change = NULL;
	refresh_devices(c);
	if (apply_refresh(a, &err)) {
		log_error("apply", "%s", err.msg);
	}
	apply_save_readings(a);
	c->res.generation = store_generation(a->store);
	c->res.level = least_level(c);
	c->res.took_ns = clk_now_ns() - c->started_ns;
	res = c->res;
	c->on_done(c->rc, &res, &c->err, c->arg);
	change_free(c);
}

void change_abandon(struct change *c)
{
	struct apply *a = c->a;
	bool sent = false;

	for (int i = 0; i < c->n_runs; i++) {
		sent = sent || c->runs[i].sent;
	}
	if (!c->rc) {
		c->rc = err_set(&c->err, WEFT_ECANCELED, "the controller "
				"stopped in the middle of the change");
	}
	err_hint(&c->err, "the light stays; the journal explains it at the "
		 "next start");
	c->res.verdict = sent ? APPLY_STUCK : APPLY_REFUSED;
	c->res.generation = store_generation(a->store);
	c->res.took_ns = clk_now_ns() - c->started_ns;
	a->change = NULL;
	c->on_done(c->rc, &c->res, &c->err, c->arg);
	devset_free(c->before);
	change_free(c);
}

/* ---- start --------------------------------------------------------------- */

/* The steps of a stage stand together in the journal. */
static bool find_steps(const struct store_work *w, int stage, int *begin,
		       int *end)
{
	for (*begin = 0; *begin < w->n_steps &&
	     w->steps[*begin].stage < stage; ++*begin) {
	}
	for (*end = *begin; *end < w->n_steps &&
	     w->steps[*end].stage == stage; ++*end) {
	}
	return *end > *begin;
}

static int init_run(struct change *c, int index, int stage, struct run *r,
		    struct err *err)
{
	struct store_work *w = &c->journal.works[index];

	*r = (struct run){ .c = c, .w = w, .index = index, .stage = stage,
			   .dev = devset_find(c->set, w->device) };
	find_steps(w, stage, &r->begin, &r->end);
	r->is_first = r->begin == 0;
	r->items = calloc(w->n_steps, sizeof(*r->items));
	r->item_step = calloc(w->n_steps, sizeof(*r->item_step));
	r->tries = calloc(w->n_steps, sizeof(*r->tries));
	return r->items && r->item_step && r->tries ? 0 : err_nomem(err);
}

static int count_stages(const struct store_work *w)
{
	int n = 0;

	for (int i = 0; i < w->n_steps && w->steps[i].stage != INT_MAX; i++) {
		n += i == 0 || w->steps[i].stage != w->steps[i - 1].stage;
	}
	return n;
}

static int init_runs(struct change *c, struct err *err)
{
	int rc = 0, n = 0, n_works = c->journal.n_works, begin, end;

	for (int i = 0; i < n_works; i++) {
		c->total += work_moves(&c->journal.works[i]);
		n += count_stages(&c->journal.works[i]);
	}
	c->runs = calloc(n + 1, sizeof(*c->runs));
	if (!c->runs) {
		return err_nomem(err);
	}
	for (int k = 0; k < c->plan->n_stages && rc == 0; k++) {
		for (int i = 0; i < n_works && rc == 0; i++) {
			if (find_steps(&c->journal.works[i], k, &begin,
				       &end)) {
				rc = init_run(c, i, k, &c->runs[c->n_runs++],
					      err);
			}
		}
	}
	c->end = c->n_runs;
	c->whole = true;
	return rc;
}

static int check_start(const struct apply *a, const struct plan *p,
		       struct err *err)
{
	if (a->change || a->recovery) {
		return err_set(err, WEFT_ESTALE, "another change is under way");
	}
	if (apply_unsettled(a)) {
		err_set(err, WEFT_ESTALE, "change %lld was left open and must "
			"be settled first", (long long)apply_unsettled(a));
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
	return 0;
}

static void on_start(void *arg)
{
	enter(arg, PHASE_PREPARE);
}

int apply_start(struct apply *a, struct plan *plan,
		struct model_fabric *fabric, const struct apply_request *req,
		apply_event_cb on_event, apply_done_cb on_done, void *arg,
		struct err *err)
{
	struct change *c = calloc(1, sizeof(*c));
	int rc = c ? check_start(a, plan, err) : err_nomem(err);

	if (rc) {
		free(c);
		plan_free(plan);
		model_free(fabric);
		return rc;
	}
	*c = (struct change){ .a = a, .plan = plan, .on_event = on_event,
			      .on_done = on_done, .arg = arg,
			      .started_ns = clk_now_ns() };
	rc = devset_new(a, fabric, a->set, &c->set, err);
	if (rc) {
		model_free(fabric);
	}
	rc = rc ? rc : journal_from_plan(plan, req, &c->journal, err);
	rc = rc ? rc : init_runs(c, err);
	if (rc) {
		devset_free(c->set);
		change_free(c);
		return rc;
	}
	c->before = a->set;
	a->set = c->set;
	a->change = c;
	apply_later(a, 0, on_start, c);
	return 0;
}

bool apply_busy(const struct apply *a)
{
	return a->change || a->recovery;
}

void apply_cancel(struct apply *a)
{
	if (a->change) {
		a->change->cancel = true;
	}
}
