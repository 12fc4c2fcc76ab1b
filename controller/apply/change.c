/*
 * A change on its way through the phases.
 *
 * A change is a list of runs, one for each stage and device with something to
 * send, stage by stage. A phase either begins an operation on every run in
 * scope that wants it and waits until all are answered, or does its own thing;
 * the table below says which. The first check is of all runs at once, before
 * anything is sent; then the scope narrows to one stage after the other, since
 * a stage touches one failure domain. A failure anywhere leads to undo after
 * the operations under way have been answered, never before: what a device is
 * doing must be known before anything is taken back.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/apply/private.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"

static enum phase next_phase(struct change *c);

/* ---- what is said -------------------------------------------------------- */

static void report(struct change *c, enum phase phase, const struct device *d,
		 bool is_problem, const char *text)
{
	struct apply_event ev = {
		.phase = change_phase_name(phase), .device = d ? d->name : "",
		.text = text, .is_problem = is_problem,
		.done = c->done, .total = c->total,
	};

	if (c->journal.change.id) {
		store_audit(c->a->store, c->journal.change.id, ev.device, STORE_EVENT, text);
	}
	if (c->on_event) {
		c->on_event(&ev, c->arg);
	}
}

void change_event(struct change *c, const struct device *d, bool is_problem, const char *fmt, ...)
{
	char text[ERR_MSG_MAX];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	report(c, c->phase, d, is_problem, text);
}

/* The run whose batch is under way on the device, or NULL. */
static const struct apply_run *find_sending(const struct change *c, const struct device *d)
{
	for (int i = c->first; i < c->end; i++) {
		if (c->runs[i].dev == d) {
			return &c->runs[i];
		}
	}
	return NULL;
}

/* What a device that moves one after the other has left: of its batch by what it
 * tells, of the moves after it at the same pace. */
static int64_t time_left(const struct apply_run *r, const struct drv_event *ev)
{
	int64_t batch = ev->eta_ms > 0 ? ev->eta_ms * 1000000 : 0;
	int in_batch = ev->total - ev->done, later = 0;

	for (int i = 0; i < r->w->n_steps; i++) {
		later += r->w->steps[i].state == STORE_PLANNED &&
			 r->w->steps[i].op <= STORE_ADD && !r->w->steps[i].is_straggler;
	}
	return in_batch > 0 ? batch + batch / in_batch * later : batch;
}

void change_progress(struct change *c, const struct device *d, const struct drv_event *ev)
{
	const struct apply_run *r = c->phase < PHASE_UNDO ? find_sending(c, d) : NULL;
	const struct apply_event e = {
		.phase = change_phase_name(c->phase), .device = d->name, .text = ev->text,
		/* Those of the batch are counted once it is answered. */
		.done = c->done + (r ? ev->done : 0), .total = c->total,
		.eta_ns = r ? time_left(r, ev) : ev->eta_ms > 0 ? ev->eta_ms * 1000000 : 0,
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

void change_note_external(struct change *c, const struct device *d,
			  const struct store_external_change *f)
{
	char what[64];

	store_external_text(f, what, sizeof(what));
	if (c->n_external++ == 0) {
		snprintf(c->external, sizeof(c->external), "%s %s (%s)", d->name, what, f->who);
		change_event(c, d, true, "changed by others while this change ran: %s (%s)", what,
			     f->who);
	}
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

/* ---- which devices a phase goes to --------------------------------------- */

static bool wants_all(const struct apply_run *r)
{
	(void)r;
	return true;
}

/* One reading of a device is enough to check all its stages by. */
static bool wants_check(const struct apply_run *r)
{
	return !r->c->whole || r->is_first;
}

int run_count(const struct apply_run *r, enum store_op op)
{
	int n = 0;

	for (int i = 0; i < r->w->n_steps; i++) {
		n += step_op(&r->w->steps[i], r->stage) == (int)op;
	}
	return n;
}

static bool wants_delete(const struct apply_run *r)
{
	return !r->replace && (run_count(r, STORE_DEL) > 0 || execute_clears(r));
}

static bool wants_add(const struct apply_run *r)
{
	return r->replace || run_count(r, STORE_ADD) > 0;
}

static bool wants_load(const struct apply_run *r)
{
	return run_count(r, STORE_LOAD) > 0;
}

/* ---- the table ----------------------------------------------------------- */

/* A phase either goes to all devices in scope that want it and waits for
 * them, or does its own thing. */
static const struct phase_def {
	const char *name;
	void (*enter)(struct change *c);
	bool (*wants)(const struct apply_run *r);
	void (*begin)(struct apply_run *r);
	enum phase next;
} phases[] = {
	[PHASE_PREPARE] = { .name = "prepare", .enter = journal_prepare },
	[PHASE_CHECK] = { "check", NULL, wants_check, precheck_begin,
			  PHASE_DRAIN },
	[PHASE_WAIT] = { .name = "wait", .enter = wait_begin },
	[PHASE_DRAIN] = { .name = "drain", .enter = drain_begin,
			  .next = PHASE_DELETE },
	[PHASE_DELETE] = { "delete", NULL, wants_delete, execute_begin,
			   PHASE_ADD },
	[PHASE_ADD] = { "add", NULL, wants_add, execute_begin, PHASE_LOAD },
	[PHASE_LOAD] = { "load", NULL, wants_load, execute_begin,
			 PHASE_READ_BACK },
	[PHASE_READ_BACK] = { "read back", NULL, wants_all, readback_begin,
			      PHASE_SETTLE },
	[PHASE_SETTLE] = { .name = "settle", .enter = readback_settle },
	[PHASE_READ_AGAIN] = { "read again", NULL, wants_all, readback_begin,
			       PHASE_VERIFY },
	[PHASE_VERIFY] = { .name = "verify", .enter = verify_begin },
	[PHASE_COMMIT] = { .name = "commit", .enter = journal_commit },
	[PHASE_UNDO] = { .name = "undo", .enter = undo_begin },
	[PHASE_STOP] = { .name = "stop", .enter = journal_stop },
	[PHASE_END] = { .name = "end" },
};

const char *change_phase_name(enum phase phase)
{
	return phases[phase].name;
}

void change_enter(struct change *c, enum phase phase)
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
	change_op_done(c);
}

void change_scope(struct change *c, int first)
{
	const struct plan_stage *st;
	char text[ERR_MSG_MAX];

	c->whole = false;
	c->first = c->end = first;
	while (c->end < c->n_runs && c->runs[c->end].stage == c->runs[first].stage) {
		c->end++;
	}
	c->settle_rounds = 0;
	c->began_ns = c->lit_ns = 0;
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
		report(c, PHASE_CHECK, NULL, false, text);
	}
}

/* ---- the phases' common way ---------------------------------------------- */

void change_op_done(struct change *c)
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
	change_enter(c, c->rc && c->stop ? PHASE_STOP : next);
}

void change_op_failed(struct apply_run *r, int rc, const struct err *err)
{
	change_fail(r->c, rc, err);
	change_op_done(r->c);
}

static enum phase next_phase(struct change *c)
{
	/* The first check is of all devices, so that a plan that cannot be
	 * carried through moves nothing at all. */
	if (c->phase == PHASE_CHECK && c->whole) {
		struct err err = { 0 };
		int rc = precheck_power(c, &err);

		if (rc) {
			change_fail(c, rc, &err);
			return PHASE_UNDO;
		}
		return wait_or(c, 0, PHASE_DRAIN);
	}
	if (c->phase == PHASE_WAIT) {
		/* Time has passed since its first check. */
		change_scope(c, c->next);
		return PHASE_CHECK;
	}
	return c->phase == PHASE_READ_AGAIN ? readback_next(c) :
	       c->phase == PHASE_VERIFY ? verify_next(c) :
					 phases[c->phase].next;
}

/* ---- end ----------------------------------------------------------------- */

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
	a->n_freeing--;
	if (a->closing) {
		apply_work_ended(a);
	}
}

/* On a worker: tens of thousands of circuits take a while. The engine lives until then. */
static void free_later(struct apply *a, struct plan *plan, struct store_journal *journal)
{
	struct leftovers *l = a->closing ? NULL : calloc(1, sizeof(*l));

	if (!l) {
		plan_free(plan);
		store_journal_fini(journal);
		return;
	}
	*l = (struct leftovers){ .req.data = l, .a = a, .plan = plan, .journal = *journal };
	a->n_freeing++;
	uv_queue_work(a->loop, &l->req, run_free, after_free);
}

static void change_free(struct change *c)
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

struct change *change_running(const struct apply *a)
{
	return a->change && a->change->phase != PHASE_END ? a->change : NULL;
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

/* ---- start --------------------------------------------------------------- */

/* The steps of a stage stand together in the journal. */
static bool find_steps(const struct store_work *w, int stage, int *begin, int *end)
{
	for (*begin = 0; *begin < w->n_steps && w->steps[*begin].stage < stage; ++*begin) {
	}
	for (*end = *begin; *end < w->n_steps && w->steps[*end].stage == stage; ++*end) {
	}
	return *end > *begin;
}

static int init_run(struct change *c, int index, int stage, struct device *dev,
		    struct apply_run *r, struct err *err)
{
	struct store_work *w = &c->journal.works[index];

	*r = (struct apply_run){ .c = c, .w = w, .index = index, .stage = stage, .dev = dev };
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

/* The device of a work, NULL: another weftd leads it. */
static struct device *own_device(const struct change *c, const struct store_work *w)
{
	struct device *d = device_set_find(c->set, w->device);

	return d->now.elsewhere ? NULL : d;
}

static int init_runs(struct change *c, int n_stages, struct err *err)
{
	int rc = 0, n = 0, n_works = c->journal.n_works, begin, end;
	struct device *d;

	for (int i = 0; i < n_works; i++) {
		n += count_stages(&c->journal.works[i]);
	}
	c->runs = calloc(n + 1, sizeof(*c->runs));
	if (!c->runs) {
		return err_nomem(err);
	}
	for (int k = 0; k < n_stages && rc == 0; k++) {
		for (int i = 0; i < n_works && rc == 0; i++) {
			struct store_work *w = &c->journal.works[i];

			if (find_steps(w, k, &begin, &end) && (d = own_device(c, w))) {
				rc = init_run(c, i, k, d, &c->runs[c->n_runs++], err);
				c->total += end - begin;
			}
		}
	}
	c->end = c->n_runs;
	c->whole = true;
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
	return 0;
}

static void on_start(void *arg)
{
	change_enter(arg, PHASE_PREPARE);
}

int apply_start(struct apply *a, struct plan *plan, struct model_fabric *fabric,
		const struct apply_request *req, apply_event_cb on_event, apply_done_cb on_done,
		void *arg, struct err *err)
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
			      .ignore_traffic = req->ignore_traffic,
			      .started_ns = clk_now_ns() };
	rc = device_set_new(a, fabric, a->set, &c->set, err);
	if (rc) {
		model_free(fabric);
	}
	if (rc || (rc = journal_from_plan(plan, req, &c->journal, err)) ||
	    (rc = init_runs(c, plan->n_stages, err))) {
		device_set_free(c->set);
		change_free(c);
		return rc;
	}
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

int change_undo_open(struct apply *a, struct store_journal *j, struct device_set *set,
		     const struct err *why, apply_event_cb on_event, apply_done_cb on_done,
		     void *arg, struct err *err)
{
	struct change *c = calloc(1, sizeof(*c));
	int rc;

	if (!c) {
		store_journal_fini(j);
		device_set_free(set);
		return err_nomem(err);
	}
	*c = (struct change){ .a = a, .set = set, .journal = *j, .on_event = on_event,
			      .on_done = on_done, .arg = arg, .rc = why->code, .err = *why,
			      .res.change = j->change.id, .started_ns = clk_now_ns() };
	memset(j, 0, sizeof(*j));
	/* The file has no stages: all steps of a device are of one. */
	rc = init_runs(c, 1, err);
	if (rc) {
		device_set_free(set);
		change_free(c);
		return rc;
	}
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
	change_enter(c, PHASE_UNDO);
	return 0;
}

bool apply_busy(const struct apply *a)
{
	return a->change || a->recovery || a->maintenance;
}

int64_t apply_running(const struct apply *a)
{
	return a->change ? a->change->journal.change.id : 0;
}

void apply_cancel(struct apply *a)
{
	if (!a->change) {
		return;
	}
	a->change->cancel = true;
	for (int i = 0; i < a->change->n_runs && a->change->phase < PHASE_UNDO; i++) {
		device_cancel(a->change->runs[i].dev);
	}
}
