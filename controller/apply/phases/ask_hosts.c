/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Traffic leaves circuits before a stage takes them away, and hosts are asked.
 * This room knows no network: what hosts are asked goes through apply_hosts, and
 * a fabric may want that to be done, tried or left out (changes: drain).
 */
#include <stdlib.h>

#include "controller/apply/private.h"
#include "lib/base/alloc.h"

/* What was asked to stop goes on taking back. */
static bool progress(const struct apply_question *q, const char *text)
{
	struct change *c = q->arg;

	if (text) {
		change_event(c, NULL, false, "%s", text);
	}
	return (c->cancel && c->phase != PHASE_UNDO) || c->a->closing;
}

static void question_set(struct change *c, struct plan_arc *arcs, int n,
			 void (*done)(struct apply_question *q))
{
	struct apply_question *q = &c->question;

	free(q->paths);
	*q = (struct apply_question){
		.plan = c->plan, .stage = c->runs[c->first].stage, .n = n,
		.want = (enum apply_level)(APPLY_SETTLED + c->set->fabric->changes.verify),
		.paths = x_new((size_t)n + 1, sizeof(*q->paths)),
		.began_ns = c->began_ns, .lit_ns = c->lit_ns,
		.progress = progress,
		.done = done, .arg = c,
	};
	for (int i = 0; i < n; i++) {
		q->paths[i].arc = arcs[i];
	}
	free(arcs);
}

enum phase ask_hosts(struct change *c, struct plan_arc *arcs, int n,
		     void (*done)(struct apply_question *q),
		     void (*ask)(struct apply_question *q, void *arg))
{
	question_set(c, arcs, n, done);
	if (n == 0) {
		return PHASE_OVER;
	}
	c->waiting = 2;		/* the answer may come at once */
	ask(&c->question, c->a->hosts.arg);
	return --c->waiting ? PHASE_WAITS : PHASE_OVER;
}

static void on_drained(struct apply_question *q)
{
	struct change *c = q->arg;
	const struct model_changes *ch = &c->set->fabric->changes;
	bool refuse = ch->drain == MODEL_DRAIN_REQUIRE && !c->ignore_traffic;
	struct err err = { 0 };

	for (int i = 0; i < q->n; i++) {
		if (!q->paths[i].failed) {
			continue;
		}
		if (!refuse) {
			change_event(c, NULL, true, "goes all the same: %s", q->paths[i].why);
			continue;
		}
		err_set(&err, WEFT_EVERIFY, "not drained: %s", q->paths[i].why);
		err_hint(&err, "stop it, or go on all the same with "
			 "\"changes: { drain: try }\"");
		change_fail(c, err.code, &err);
	}
	change_op_done(c);
}

enum phase drain_begin(struct change *c)
{
	const struct apply_hosts *h = &c->a->hosts;
	struct plan_arc *arcs;
	int n;

	if (!h->drain || c->set->fabric->changes.drain == MODEL_DRAIN_OFF || c->first == c->end) {
		return PHASE_OVER;
	}
	plan_stage_removes(c->plan, c->runs[c->first].stage, &arcs, &n);
	return ask_hosts(c, arcs, n, on_drained, h->drain);
}

/* ---- before a stage is taken back ------------------------------------------ */

/* There is no way but back: what does not fall silent is only told. */
static void on_undo_drained(struct apply_question *q)
{
	struct change *c = q->arg;

	for (int i = 0; i < q->n; i++) {
		if (q->paths[i].failed) {
			change_event(c, NULL, true, "taken back all the same: %s",
				     q->paths[i].why);
		}
	}
	c->undo_drained(c);
}

void drain_undo(struct change *c, int stage, void (*next)(struct change *c))
{
	const struct apply_hosts *h = &c->a->hosts;
	struct plan_arc *arcs = NULL;
	int n = 0;

	c->undo_drained = next;
	if (c->plan && h->drain && c->set->fabric->changes.drain != MODEL_DRAIN_OFF) {
		plan_stage_adds(c->plan, stage, &arcs, &n);
	}
	if (n == 0) {
		free(arcs);
		next(c);
		return;
	}
	question_set(c, arcs, n, on_undo_drained);
	/* Routes go over what stays: the circuits after the stage, but for its own. */
	c->question.stage = stage + 1;
	h->drain(&c->question, h->arg);
}
