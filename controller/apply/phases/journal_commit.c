/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the store is told of a change: how it begins, before anything is sent,
 * and that it is true. What is to be repaired is written first, then the new
 * intent and the verdict in one transaction; if that fails the devices are left
 * as planned, for what the disk holds is then unknown.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/apply/private.h"

/* ---- prepare ------------------------------------------------------------- */

static bool same_intent(const struct store_work *w, const struct store_light *l)
{
	const struct ring_programs *has = l->has_program && l->programs.n ? &l->programs : NULL;

	if (w->n_steps != l->n_xcs || !program_same(has, work_new(w))) {
		return false;
	}
	for (int i = 0; i < w->n_steps; i++) {
		if (optics_xc_cmp(&w->steps[i].xc, &l->xcs[i]) != 0) {
			return false;
		}
	}
	return true;
}

/* Nothing to send anywhere, and nothing to remember that is not remembered yet. Where others carry
 * out a part all find the same, so what is open here alone does not count. */
static bool nothing_to_do(struct change *c)
{
	struct store_config cfg;
	bool same;

	if (c->n_runs || c->plan->evacuated[0] || (c->a->n_open && !c->ready) ||
	    store_config(c->a->store, &cfg, NULL)) {
		return false;
	}
	same = strcmp(cfg.hash, c->set->fabric->hash) == 0;
	store_config_fini(&cfg);
	for (int i = 0; i < c->journal.n_works && same; i++) {
		const struct store_work *w = &c->journal.works[i];

		same = work_moves(w) == 0 &&
		       same_intent(w, &device_set_find(c->set, w->device)->intent);
	}
	return same;
}

static void report_removed(struct change *c)
{
	char **names;
	int n;

	if (store_intent_devices(c->a->store, &names, &n, NULL)) {
		return;
	}
	for (int i = 0; i < n; i++) {
		if (!device_set_find(c->set, names[i])) {
			change_event(c, NULL, true, "%s is no longer in the "
				     "configuration: its light stays as it is "
				     "and is forgotten", names[i]);
		}
	}
	model_names_free(names);
}

static enum phase refuse(struct change *c)
{
	c->res.verdict = APPLY_REFUSED;
	return PHASE_END;
}

/* The journal is on the disk, or it is not (rc). */
static void on_begun(int rc, const struct err *err, void *arg)
{
	struct change *c = arg;

	c->res.change = c->journal.change.id;
	if (rc) {
		change_fail(c, rc, err);
		c->walk(c, refuse(c));
		return;
	}
	change_event(c, NULL, false, "change %lld is in the journal%s%s",
		     (long long)c->res.change,
		     c->peer[0] ? ", asked for by " : "", c->peer);
	report_removed(c);
	c->walk(c, c->n_runs || c->ready ? PHASE_CHECK : PHASE_COMMIT);
}

enum phase journal_prepare(struct change *c)
{
	if (c->rc) {
		return refuse(c);
	}
	if (nothing_to_do(c)) {
		c->res.verdict = APPLY_NOTHING_TO_DO;
		return PHASE_END;
	}
	c->rc = store_begin(c->a->store, &c->journal, &c->set->fabric->config, &c->err);
	if (c->rc) {
		return refuse(c);
	}
	apply_when_durable(c->a, &c->recorded, on_begun, c);
	return PHASE_WAITS;
}

/* ---- commit -------------------------------------------------------------- */

static void count_steps(const struct change *c, int counts[4])
{
	memset(counts, 0, 4 * sizeof(*counts));
	for (int i = 0; i < c->journal.n_works; i++) {
		for (int op = 0; op < 4; op++) {
			counts[op] += work_count(&c->journal.works[i], (enum store_op)op);
		}
	}
}

/* Of what this change has touched; nothing proves nothing. */
static enum apply_level min_proof(const struct change *c)
{
	enum apply_level least = c->n_runs ? APPLY_ERROR_FREE : APPLY_UNVERIFIED;

	for (int i = 0; i < c->n_runs; i++) {
		if (c->runs[i].proof < least) {
			least = c->runs[i].proof;
		}
	}
	return least;
}

/* "8 made, 1 program loaded on 2 devices": what there was none of is left out. */
static void put_counts(const int n[4], int n_devices, char *text, size_t size)
{
	char deleted[32] = "", made[32] = "", loaded[48] = "";

	if (n[STORE_DEL]) {
		snprintf(deleted, sizeof(deleted), "%d deleted", n[STORE_DEL]);
	}
	if (n[STORE_ADD]) {
		snprintf(made, sizeof(made), "%s%d made", n[STORE_DEL] ? ", " : "", n[STORE_ADD]);
	}
	if (n[STORE_LOAD]) {
		snprintf(loaded, sizeof(loaded), "%s%d program%s loaded",
			 n[STORE_DEL] || n[STORE_ADD] ? ", " : "", n[STORE_LOAD],
			 n[STORE_LOAD] == 1 ? "" : "s");
	}
	if (!deleted[0] && !made[0] && !loaded[0]) {
		snprintf(text, size, "no light changed");
		return;
	}
	snprintf(text, size, "%s%s%s on %d device%s", deleted, made, loaded, n_devices,
		 n_devices == 1 ? "" : "s");
}

/* The store has the commit, and the disk too, or it does not (rc). */
static enum phase committed(struct change *c, int rc, const struct err *err)
{
	if (rc) {
		/* Undoing now could contradict what the disk may yet hold;
		 * recovery decides by reading the devices. */
		c->rc = rc;
		c->err = *err;
		err_wrap(&c->err, "the light is as planned, but that could "
			 "not be recorded");
		err_hint(&c->err, "once the disk takes it, the change is "
			 "settled by reading the devices");
		change_event(c, NULL, true, "%s", c->err.msg);
		c->res.verdict = APPLY_STUCK;
	} else {
		c->res.verdict = APPLY_COMMITTED;
		change_event(c, NULL, false, "committed: %s", c->summary);
	}
	return PHASE_END;
}

static void on_committed(int rc, const struct err *err, void *arg)
{
	struct change *c = arg;

	c->walk(c, committed(c, rc, err));
}

enum phase journal_commit(struct change *c)
{
	int n[4], n_devices = 0, n_left = 0, rc;
	char left[48] = "", text[sizeof(c->summary) - sizeof(left)];
	struct err err = { 0 };

	for (int i = 0; i < c->journal.n_works; i++) {
		n_devices += work_moves(&c->journal.works[i]) > 0;
	}
	count_steps(c, n);
	put_counts(n, n_devices, text, sizeof(text));
	rc = tolerance_record(c, &n_left, &err);
	if (rc && !c->decided) {
		change_fail(c, rc, &err);
		return PHASE_UNDO;
	}
	c->res.n_left = n_left;
	if (n_left) {
		snprintf(left, sizeof(left), "; %d of them to be repaired", n_left);
	}
	snprintf(c->summary, sizeof(c->summary), "%s%s", text, left);
	if (rc || (rc = store_commit_proven(c->a->store, &c->journal, c->summary,
					    (int)min_proof(c), &err))) {
		return committed(c, rc, &err);
	}
	apply_when_durable(c->a, &c->recorded, on_committed, c);
	return PHASE_WAITS;
}

enum phase journal_stop(struct change *c)
{
	err_wrap(&c->err, "stopped under the gate of %g%%",
		 (double)c->set->fabric->changes.gate_ppm / 10000);
	err_hint(&c->err, "nothing was rolled back; apply again or roll "
		 "back");
	change_event(c, NULL, true, "%s", c->err.msg);
	c->res.verdict = APPLY_STUCK;
	return PHASE_END;
}
