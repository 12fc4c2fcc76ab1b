/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changes that were open when the process ended, or whose end the disk did
 * not take: the devices are read, the readings decide, and nothing is sent.
 * Newest first, as a change that turns out to have happened covers the older
 * ones. Where others had a part in a change they decide, and it may have to be
 * undone; so may one that hung on a device that was away (apply_resume).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/apply/private.h"
#include "lib/base/alloc.h"
#include "lib/base/log.h"

#define READ_ROUNDS 3
#define BACK_OFF_US 100000

/* One device of the change at hand. */
struct recovery_read {
	struct recovery *r;
	struct store_work *w;		/* of r->v[r->at] */
	int index;			/* of w there */
	struct device *dev;		/* NULL: cannot be opened, so all its
					 * steps stay unknown */
	struct device_op op;
	bool read;			/* in one of the rounds */
	bool late;			/* what it was sent may yet be done */
};

struct recovery {
	struct apply *a;
	void (*done)(int rc, const char *text, void *arg);
	void *arg;
	struct store_journal *v;	/* [n] open changes, newest first */
	int n, at;			/* at: the one at hand */
	struct device_set *set;		/* of the change at hand, or NULL */
	bool asks;			/* others what is to become of the change at hand */
	enum apply_outcome outcome;	/* of the change at hand */
	struct err why;			/* it is undone */
	bool had_fabric;		/* the engine, before that */
	struct recovery_read *readings;
	int n_readings;			/* one for each device it moved */
	int waiting, rounds;		/* answers; rounds of reading so far */
	int n_before, n_planned, n_unknown;	/* steps that move light */
	bool hung;			/* it was being taken back, or a device did
					 * not answer: it goes back */
	bool keeps;			/* what was to stay is there */
	int n_lost;			/* sent with a whole map, and gone */
	struct buf text;		/* a clause for each change */
	int rc;				/* the first error */
};

static void next_change(struct recovery *r);
static void read_round(void *arg);

/* ---- end ----------------------------------------------------------------- */

static void drop_change(struct recovery *r)
{
	free(r->readings);
	r->readings = NULL;
	r->n_readings = 0;
	device_set_free(r->set);
	r->set = NULL;
}

static void recovery_free(struct recovery *r)
{
	drop_change(r);
	store_journals_free(r->v, r->n);
	buf_fini(&r->text);
	free(r);
}

void recovery_abandon(struct recovery *r)
{
	r->a->recovery = NULL;
	r->done(WEFT_ECANCELED, "stopped before the open changes were settled", r->arg);
	recovery_free(r);
}

static void finish(struct recovery *r)
{
	struct apply *a = r->a;
	struct err err = { 0 };

	drop_change(r);
	a->recovery = NULL;
	a->resume = false;
	if (apply_refresh(a, &err)) {
		log_error("apply", "%s", err.msg);
	}
	apply_save_readings(a);
	r->done(r->rc, r->text.len ? buf_cstr(&r->text) : "no change was open", r->arg);
	recovery_free(r);
}

static void fail(struct recovery *r, int rc, const struct err *err)
{
	if (!r->rc) {
		r->rc = rc;
	}
	buf_printf(&r->text, "%s%s", r->text.len ? "; " : "", err->msg);
}

static void change_over(struct recovery *r)
{
	drop_change(r);
	r->at++;
	next_change(r);
}

/* ---- deciding ------------------------------------------------------------ */

static void report(struct recovery *r, int64_t change, const char *what)
{
	buf_printf(&r->text, "%schange %lld %s", r->text.len ? "; " : "", (long long)change,
		   what);
}

static void explain_step(struct recovery *r, const struct recovery_read *rd,
			 const struct store_step *st)
{
	char what[48], text[STORE_NOTE_MAX];

	snprintf(text, sizeof(text), "%s %s: %s", store_op_name(st->op),
		 step_text(st, what, sizeof(what)),
		 store_step_state_name(st->state));
	store_audit(r->a->store, r->v[r->at].change.id, rd->w->device, STORE_EVENT, text);
}

static void count_step(struct recovery *r, struct recovery_read *rd, struct store_step *st)
{
	enum store_step_state now = rd->read ?
		compare_step(rd->w, st, &rd->dev->now.snap) : STORE_UNKNOWN;

	if (st->op == STORE_LEAVE) {
		return;
	}
	if (st->op == STORE_KEEP) {
		r->keeps = r->keeps && now == STORE_AS_PLANNED;
		r->n_lost += now != STORE_AS_PLANNED && st->state != STORE_PLANNED;
		return;
	}
	if (now == STORE_AS_BEFORE && rd->dev->now.snap.late && step_is_unknown(st)) {
		now = STORE_UNKNOWN;
		rd->late = true;
	}
	r->hung = r->hung || st->state == STORE_UNKNOWN;
	if (st->state != STORE_PLANNED || now == STORE_AS_PLANNED) {
		st->state = now;	/* else it was never sent, and is not ours to take back */
	}
	r->n_before += now == STORE_AS_BEFORE;
	r->n_planned += now == STORE_AS_PLANNED;
	r->n_unknown += now == STORE_UNKNOWN;
	explain_step(r, rd, st);
}

static int count_steps(struct recovery *r, struct err *err)
{
	int rc = 0;

	r->n_before = r->n_planned = r->n_unknown = r->n_lost = 0;
	r->keeps = true;
	r->hung = r->v[r->at].change.undoing;
	for (int i = 0; i < r->n_readings && rc == 0; i++) {
		struct recovery_read *rd = &r->readings[i];

		for (int k = 0; k < rd->w->n_steps; k++) {
			count_step(r, rd, &rd->w->steps[k]);
		}
		rc = store_mark(r->a->store, &r->v[r->at], rd->index, err);
	}
	return rc;
}

static bool all_read(const struct recovery *r)
{
	bool all = true;

	for (int i = 0; i < r->n_readings; i++) {
		all = all && r->readings[i].read && !r->readings[i].late;
	}
	return all;
}

static int settle_undone(struct recovery *r, struct err *err)
{
	const struct store_change *ch = &r->v[r->at].change;
	bool undone = ch->undoing || ch->verdict == STORE_STUCK;

	report(r, ch->id, undone ? "is rolled back: the devices hold what was before" :
			"never happened: the devices hold what was before");
	return store_end(r->a->store, ch->id, undone ? STORE_ROLLED_BACK :
			 STORE_ABORTED, "settled by reading the devices: "
			 "all as before", err);
}

static int settle_done(struct recovery *r, struct err *err)
{
	bool all = r->n_before + r->n_unknown == 0 && r->keeps;
	int rc = store_commit(r->a->store, r->v[r->at].change.id,
			      all ? "settled by reading the devices: all as planned"
				  : "committed as by all others that had a part in it",
			      all ? APPLY_READ_BACK : APPLY_UNVERIFIED, err);

	if (rc) {
		return rc;
	}
	report(r, r->v[r->at].change.id, all ? "is committed: the devices hold all that was planned"
		      : "is committed as by all others, though not all devices hold what was "
			"planned");
	if (r->set) {
		apply_use(r->a, r->set);
		r->set = NULL;
	}
	for (int i = 0; r->a->set && i < r->a->set->n && rc == 0; i++) {
		rc = device_load_intent(r->a->set->v[i], err);
		external_committed(r->a->set->v[i], r->v[r->at].change.id, false);
	}
	r->at = r->n;		/* the older ones are superseded */
	return rc;
}

static int settle_mixed(struct recovery *r, struct err *err)
{
	const struct store_change *ch = &r->v[r->at].change;
	int total = r->n_before + r->n_planned + r->n_unknown, rc;
	char text[200];

	snprintf(text, sizeof(text), "is half done: of %d steps %d are as "
		 "planned, %d as before, %d unknown, %d kept circuits are "
		 "lost; nothing was sent", total, r->n_planned, r->n_before,
		 r->n_unknown, r->n_lost);
	report(r, ch->id, text);
	if (r->n_unknown && !r->rc) {
		r->rc = WEFT_EUNAVAIL;
	}
	/* Without a fabric of its own the engine shows this one's devices. */
	if (!r->a->set && r->set) {
		apply_use(r->a, r->set);
		r->set = NULL;
	}
	/* That it hung is not seen from the steps any more. */
	if (r->hung && all_read(r) && !ch->undoing &&
	    (rc = store_undoing(r->a->store, ch->id, err))) {
		return rc;
	}
	return ch->verdict != STORE_RUNNING ? 0 :
	       store_end(r->a->store, ch->id, STORE_INTERRUPTED, text, err);
}

static void undo(struct recovery *r);

static void decide(struct recovery *r)
{
	const struct store_change *ch = &r->v[r->at].change;
	struct err err = { 0 };
	int rc = count_steps(r, &err);

	if (rc == 0 && r->outcome == APPLY_COMMIT) {
		rc = settle_done(r, &err);
	} else if (rc == 0 && r->n_planned + r->n_unknown + r->n_lost == 0) {
		rc = settle_undone(r, &err);
	} else if (rc == 0 && r->n_before + r->n_unknown == 0 && r->keeps &&
		   !ch->undoing && ch->verdict != STORE_STUCK) {
		rc = settle_done(r, &err);
	} else if (rc == 0 && r->a->resume && r->hung && all_read(r)) {
		err_set(&r->why, WEFT_ECANCELED, "taken back, as all its devices answer again (%s)",
			ch->summary);
		undo(r);
		return;
	} else if (rc == 0) {
		rc = settle_mixed(r, &err);
	}
	if (rc) {
		fail(r, rc, &err);
	}
	change_over(r);
}

/* ---- undoing ------------------------------------------------------------- */

static void log_event(const struct apply_event *ev, void *arg)
{
	(void)arg;
	log_info("apply", "%s: %s%s%s", ev->phase, ev->device, ev->device[0] ? ": " : "", ev->text);
}

static void on_undone(int rc, const struct apply_result *res, const struct err *err, void *arg)
{
	struct recovery *r = arg;

	if (r->a->closing) {
		return;
	}
	if (res->verdict == APPLY_STUCK) {
		fail(r, rc, err);
	} else {
		report(r, res->change, res->verdict == APPLY_REFUSED ?
		       "is taken back: nothing had been sent" :
		       "is rolled back: the devices were brought back to what was before");
	}
	/* The change's fabric stays to show what could not be undone. */
	if (!r->had_fabric && res->verdict != APPLY_STUCK) {
		apply_use(r->a, NULL);
	}
	change_over(r);
}

static void undo(struct recovery *r)
{
	struct device_set *set = r->set;
	struct err err = { 0 };

	if (!set) {
		err_set(&err, WEFT_EUNAVAIL, "change %lld is to be undone, but its devices cannot "
			"be opened", (long long)r->v[r->at].change.id);
		fail(r, err.code, &err);
		change_over(r);
		return;
	}
	r->set = NULL;
	r->had_fabric = r->a->set;
	change_undo_open(r->a, &r->v[r->at], set, &r->why, log_event, on_undone, r);
}

/* ---- reading ------------------------------------------------------------- */

static void round_done(struct recovery *r)
{
	bool all = true;

	if (--r->waiting || r->a->closing) {
		return;
	}
	for (int i = 0; i < r->n_readings; i++) {
		all = all && (r->readings[i].read || !r->readings[i].dev);
	}
	if (all || ++r->rounds == READ_ROUNDS) {
		decide(r);
		return;
	}
	apply_later(r->a, (int64_t)BACK_OFF_US << r->rounds, read_round, r);
}

static void on_read(struct device *d, int rc, const struct err *err, void *arg)
{
	struct recovery_read *rd = arg;

	rd->read = rc == 0;
	if (rc) {
		log_warn("apply", "%s: %s", d->name, err->msg);
	}
	round_done(rd->r);
}

static void read_round(void *arg)
{
	struct recovery *r = arg;

	r->waiting = 1;
	for (int i = 0; i < r->n_readings; i++) {
		struct recovery_read *rd = &r->readings[i];

		if (rd->dev && !rd->read) {
			r->waiting++;
			device_read(rd->dev, &rd->op, on_read, rd);
		}
	}
	round_done(r);
}

/* The devices that the change meant, which the present fabric may not
 * have. Without its configuration, those that have the same name. */
static void open_set(struct recovery *r)
{
	struct model_fabric *fabric = NULL;
	struct store_config cfg;
	struct err_list errs = { 0 };
	struct err err = { 0 };
	int rc = store_change_config(r->a->store, r->v[r->at].change.id, &cfg, &err);

	if (rc == 0) {
		rc = model_parse_config(&cfg.config, &fabric, &errs);
		store_config_fini(&cfg);
		if (rc && errs.n) {
			err = errs.v[0];
		}
		err_list_fini(&errs);
	}
	if (rc == 0) {
		rc = device_set_new(r->a, fabric, r->a->set, &r->set, &err);
		if (rc) {
			model_free(fabric);
		}
	}
	if (rc) {
		log_warn("apply", "change %lld: its devices: %s",
			 (long long)r->v[r->at].change.id, err.msg);
	}
}

static void list_readings(struct recovery *r)
{
	struct store_journal *j = &r->v[r->at];

	r->readings = x_new(j->n_works + 1, sizeof(*r->readings));
	for (int i = 0; i < j->n_works; i++) {
		struct store_work *w = &j->works[i];
		struct device *d = device_set_find(r->set, w->device);

		d = d ? d : device_set_find(r->a->set, w->device);
		if (work_moves(w) > 0 && !(d && d->now.elsewhere)) {
			r->readings[r->n_readings++] = (struct recovery_read){
				.r = r, .w = w, .index = i, .dev = d,
			};
		}
	}
}

/* Only of a change that its process did not end others may know more. */
static void next_change(struct recovery *r)
{
	static const struct err no_reason;
	const struct store_change *ch;

	if (r->at >= r->n) {
		finish(r);
		return;
	}
	ch = &r->v[r->at].change;
	r->asks = true;
	if (r->a->on_open && ch->verdict == STORE_RUNNING) {
		r->a->on_open(ch, r->a->on_open_arg);
	} else {
		apply_set_outcome(r->a, APPLY_BY_READING, 0, &no_reason);
	}
}

void apply_set_outcome(struct apply *a, enum apply_outcome outcome, int rc, const struct err *err)
{
	struct recovery *r = a->recovery;

	if (!r || !r->asks) {
		return;
	}
	r->asks = false;
	r->outcome = outcome;
	r->why = *err;
	if (rc) {
		fail(r, rc, err);
		change_over(r);
		return;
	}
	open_set(r);
	if (r->outcome == APPLY_UNDO) {
		if (!r->why.code) {
			err_set(&r->why, WEFT_ECANCELED, "taken back after a restart");
		}
		undo(r);
		return;
	}
	list_readings(r);
	r->rounds = 0;
	read_round(r);
}

static void on_begin(void *arg)
{
	struct recovery *r = arg;
	struct err err = { 0 };
	int rc = store_open_changes(r->a->store, &r->v, &r->n, &err);

	if (rc) {
		fail(r, rc, &err);
		finish(r);
		return;
	}
	next_change(r);
}

/* ---- devices that are waited for ------------------------------------------ */

/* One that may yet do what it was sent, too. */
static bool is_hung_on(const struct store_work *w, const struct device *d)
{
	bool hung = !d->now.reachable && work_moves(w);

	for (int i = 0; i < w->n_steps && !hung; i++) {
		hung = d->now.snap.late && step_is_unknown(&w->steps[i]);
	}
	return hung;
}

int apply_hangs_on(const struct apply *a, const char **names, int max)
{
	int n = 0;

	for (int i = 0; a->n_open && i < a->open[0].n_works && n < max; i++) {
		const struct store_work *w = &a->open[0].works[i];
		const struct device *d = device_set_find(a->set, w->device);

		if (d && !d->now.elsewhere && is_hung_on(w, d)) {
			names[n++] = d->name;
		}
	}
	return n;
}

void apply_on_open(struct apply *a, void (*fn)(const struct store_change *ch, void *arg),
		   void *arg)
{
	a->on_open = fn;
	a->on_open_arg = arg;
}

void apply_recover(struct apply *a, void (*done)(int rc, const char *text, void *arg), void *arg)
{
	struct recovery *r;

	if (apply_busy(a)) {
		done(WEFT_ESTALE, "a change is under way", arg);
		return;
	}
	r = x_new(1, sizeof(*r));
	*r = (struct recovery){ .a = a, .done = done, .arg = arg };
	a->recovery = r;
	apply_later(a, 0, on_begin, r);
}
