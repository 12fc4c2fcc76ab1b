/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A plan written as a journal. Pure.
 *
 * The steps of a device are sorted by stage, operation and circuit; what is kept
 * or left alone belongs to no stage and comes last. The order is what lets a run
 * take its stage as one range, and step_find() search.
 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "controller/apply/private.h"
#include "lib/base/alloc.h"

int work_count(const struct store_work *w, enum store_op op)
{
	int n = 0;

	for (int i = 0; i < w->n_steps; i++) {
		n += w->steps[i].op == op;
	}
	return n;
}

int work_moves(const struct store_work *w)
{
	return w->n_steps - work_count(w, STORE_KEEP) -
	       work_count(w, STORE_LEAVE);
}

int step_op(const struct store_step *st, int stage)
{
	if (st->op == STORE_LEAVE || st->is_straggler) {
		return STEP_NONE;
	}
	if (stage == STAGE_ALL || st->stage == stage || st->op == STORE_KEEP) {
		return (int)st->op;
	}
	if (st->op == STORE_LOAD) {
		return STEP_NONE;
	}
	return (st->op == STORE_ADD) == (st->stage < stage) ? STORE_KEEP : STEP_NONE;
}

static void push(struct store_work *w, enum store_op op, struct optics_xc xc, int stage)
{
	w->steps[w->n_steps++] = (struct store_step){ .op = op, .xc = xc,
						      .stage = stage };
}

/* Stage by stage, deletes before adds; what is kept last. */
static int by_order(const void *a, const void *b)
{
	const struct store_step *s = a, *t = b;

	if (s->stage != t->stage) {
		return (s->stage > t->stage) - (s->stage < t->stage);
	}
	return s->op != t->op ? (s->op > t->op) - (s->op < t->op) : optics_xc_cmp(&s->xc, &t->xc);
}

int step_find(const struct store_work *w, int stage, enum store_op op, struct optics_xc xc)
{
	const struct store_step key = { .op = op, .xc = xc, .stage = stage };
	const struct store_step *found =
		w->n_steps ? bsearch(&key, w->steps, (size_t)w->n_steps,
				     sizeof(key), by_order) : NULL;

	return found ? (int)(found - w->steps) : -1;
}

static bool is_in(int n, const struct optics_xc *list, struct optics_xc xc)
{
	return n && bsearch(&xc, list, (size_t)n, sizeof(xc), optics_xc_cmp);
}

static void write_circuits(const struct plan_device *d, struct store_work *w)
{
	for (int i = 0; i < d->n_del; i++) {
		push(w, STORE_DEL, d->del[i], d->del_stage[i]);
	}
	for (int i = 0; i < d->n_add; i++) {
		push(w, STORE_ADD, d->add[i], d->add_stage[i]);
	}
	for (int i = 0; i < d->n_want; i++) {
		if (is_in(d->n_leave, d->leave, d->want[i])) {
			push(w, STORE_LEAVE, d->want[i], INT_MAX);
		} else if (!is_in(d->n_add, d->add, d->want[i])) {
			push(w, STORE_KEEP, d->want[i], INT_MAX);
		}
	}
	if (w->n_steps) {
		qsort(w->steps, w->n_steps, sizeof(*w->steps), by_order);
	}
}

/* Programs may be large, so they move instead of being copied. */
static void write_program(struct plan_device *d, struct store_work *w)
{
	w->has_old = d->had_program;
	w->old_programs = d->old_programs;
	memset(&d->old_programs, 0, sizeof(d->old_programs));
	w->has_new = d->has_program;
	w->new_programs = d->programs;
	memset(&d->programs, 0, sizeof(d->programs));
	if (d->load_program) {
		push(w, STORE_LOAD, (struct optics_xc){ 0, 0 }, d->load_stage);
	}
}

static void write_work(const struct plan *p, struct plan_device *d, struct store_work *w)
{
	const struct model_device *m = &p->fabric->devices[d->device];

	w->device = x_dup(m->name);
	w->is_ring = m->kind == MODEL_RING;
	w->steps = x_new((size_t)d->n_del + d->n_add + d->n_want + 1, sizeof(*w->steps));
	if (w->is_ring) {
		write_program(d, w);
	} else {
		write_circuits(d, w);
	}
}

/* Of jobs that stay as they are nothing is to be told later. */
static void write_gains(const struct plan *p, struct store_journal *out)
{
	static const enum store_effect effects[] = {
		[PLAN_CHANGES] = STORE_CHANGES, [PLAN_BEGINS] = STORE_BEGINS,
		[PLAN_ENDS] = STORE_ENDS,
	};

	out->gains = x_new((size_t)p->n_gains + 1, sizeof(*out->gains));
	for (int i = 0; i < p->n_gains; i++) {
		const struct plan_gain *g = &p->gains[i];
		struct store_gain *to = &out->gains[out->n_gains];

		if (g->effect == PLAN_STAYS) {
			continue;
		}
		*to = (struct store_gain){
			.job = x_dup(g->name), .effect = effects[g->effect],
			.size_bytes = g->size_bytes, .before_ns = g->before_ns,
			.before_whole_ns = g->before_whole_ns, .after_ns = g->after_ns,
			.after_whole_ns = g->after_whole_ns, .down_ns = g->down_ns,
		};
		out->n_gains++;
	}
}

void journal_from_plan(struct plan *p, const struct change_order *order, struct store_journal *out)
{
	memset(out, 0, sizeof(*out));
	store_order_copy(order, &out->change.order);
	out->change.expected_down_ns = p->down_ns;
	out->change.config_name = x_dup(p->fabric->config.name);
	out->change.summary = x_dup("");
	out->works = x_new(p->n_devices, sizeof(*out->works));
	out->n_works = p->n_devices;
	for (int i = 0; i < p->n_devices; i++) {
		write_work(p, &p->devices[i], &out->works[i]);
	}
	write_gains(p, out);
	out->topologies = x_dup(p->topologies ? p->topologies : "");
	out->empties = x_dup(p->evacuated);
}
