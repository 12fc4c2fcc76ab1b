/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Moves of a run, shifted to later steps and back to earlier ones until there are fewer steps, and
 * written down.
 *
 * A run decides step by step and does not see the end. Its moves are taken from the last to
 * the first, and each is put as late as what waits for it and the room on its arc allow; then from
 * the first to the last, as early as possible. The step that a move had is always free for it, so
 * that there are never more steps, and mostly there are fewer (justification: Valls, Ballestin,
 * Quintanilla, EJOR 165, 2005). Only where arcs share nothing, as each is looked at alone.
 */
#include <stdlib.h>
#include <string.h>

#include "collective/tree/stagger/stagger_private.h"
#include "lib/base/alloc.h"

#define ROUNDS 3
#define ENOUGH 256		/* a round that gains fewer than 1 in so many steps is the last */
#define MAX_CELLS (INT64_C(1) << 24)	/* arcs times steps */
#define ROUNDING 1e-9

struct stagger_shifts {
	const struct stagger *s;
	const struct stagger_cut *cut;
	struct stagger_pace *pace;
	int32_t *at;
	int64_t n;		/* of at */
	int64_t n_moves;
	int32_t *order;		/* moves by their steps */
	int steps;		/* of at most */
	double longest;		/* step */
	double least;		/* batch */
	int32_t *used;		/* cell, arc * steps + step: labels */
	int32_t *next;		/* a cell there or further on that may have room, as a step */
	struct arrays arrays;
};

bool stagger_may_shift(const struct stagger *s)
{
	return s->f->routes.n == 0 && !s->f->group && topo_n_limits(s->physical) == 0;
}

int32_t *stagger_moves_new(const struct stagger *s, const struct stagger_cut *cut)
{
	int64_t n = 2 * (int64_t)cut->batches.n * s->n;
	int32_t *at = x_alloc((size_t)n + 1, sizeof(*at));

	memset(at, 0xff, (size_t)n * sizeof(*at));
	return at;
}

/* ---- what a move waits for, and what waits for it ---- */

static const struct stagger_tree *tree_of(const struct stagger_shifts *w, int batch, bool in)
{
	return stagger_tree_of(w->s, w->cut, w->pace, batch, in);
}

static int parent_of(const struct stagger_shifts *w, const struct stagger_tree *t, int v)
{
	const struct topo_arc *a = topo_arc(w->s->f->logical, t->t->via[v]);

	return t->t->inwards ? a->dst : a->src;
}

/* The last step of the moves of a node's children, or the first. */
static int of_children(const struct stagger_shifts *w, int batch, bool in, int v, bool last)
{
	const struct stagger_tree *t = tree_of(w, batch, in);
	const int32_t *at = w->at + stagger_move(w->s, batch, in, 0);
	int best = last ? -1 : w->steps;

	for (int i = t ? t->first[v] : 0; t && i < t->first[v + 1]; i++) {
		int other = at[t->child[i]];

		best = (last ? other > best : other < best) ? other : best;
	}
	return best;
}

/* The step before which a move may not be, or after which. What comes together at a root spreads
 * from there. */
static int limit_of(const struct stagger_shifts *w, int batch, bool in, int v, bool late)
{
	const struct stagger_tree *t = tree_of(w, batch, in);
	int up = parent_of(w, t, v), other;

	if (in != late) {
		other = of_children(w, batch, in, v, !late);
	} else if (up == t->t->root) {
		other = of_children(w, batch, !in, up, !late);
	} else {
		other = w->at[stagger_move(w->s, batch, in, up)];
	}
	return late ? other - 1 : other + 1;
}

/* ---- room ---- */

static double room_of(const struct stagger_shifts *w, int arc)
{
	return w->s->loads.cap[arc] * w->longest * (1 + ROUNDING);
}

static int arc_of(const struct stagger_shifts *w, int64_t move, int *batch, bool *in, int *v)
{
	*v = (int)(move % w->s->n);
	*batch = (int)(move / w->s->n / 2);
	*in = move / w->s->n % 2;
	return tree_of(w, *batch, *in)->t->via[*v];
}

/* The labels in each cell, and the longest step. */
static void count_used(struct stagger_shifts *w)
{
	int batch, v;
	bool in;

	memset(w->used, 0, (size_t)w->s->m * (size_t)w->steps * sizeof(*w->used));
	for (int64_t i = 0; i < w->n; i++) {
		if (w->at[i] >= 0) {
			int arc = arc_of(w, i, &batch, &in, &v);
			int32_t *used = &w->used[(int64_t)arc * w->steps + w->at[i]];
			double time;

			*used += w->cut->batches.v[batch].size;
			time = *used / w->s->loads.cap[arc];
			w->longest = time > w->longest ? time : w->longest;
		}
	}
}

/* From `step` on, the first with room, which is used. */
static int use_step(struct stagger_shifts *w, int arc, int step, int by, int size)
{
	int32_t *next = w->next + (int64_t)arc * w->steps;
	int32_t *used = w->used + (int64_t)arc * w->steps;
	double room = room_of(w, arc);
	int at = step;

	while (next[at] != at) {
		at = next[at];
	}
	for (int after; step != at; step = after) {
		after = next[step];
		next[step] = at;
	}
	while (used[at] + size > room) {
		at += by;
	}
	used[at] += size;
	if (used[at] + w->least > room && at + by >= 0 && at + by < w->steps) {
		next[at] = at + by;
	}
	return at;
}

static void clear_room(struct stagger_shifts *w)
{
	memset(w->used, 0, (size_t)w->s->m * (size_t)w->steps * sizeof(*w->used));
	for (int64_t i = 0; i < (int64_t)w->s->m * w->steps; i++) {
		w->next[i] = (int32_t)(i % w->steps);
	}
}

/* ---- rounds ---- */

/* By counting. */
static void sort_moves(struct stagger_shifts *w)
{
	int64_t *first = x_new((size_t)w->steps + 2, sizeof(*first));

	for (int64_t i = 0; i < w->n; i++) {
		if (w->at[i] >= 0) {
			first[w->at[i] + 2]++;
		}
	}
	for (int i = 0; i < w->steps; i++) {
		first[i + 1] += first[i];
	}
	for (int64_t i = 0; i < w->n; i++) {
		if (w->at[i] >= 0) {
			w->order[first[w->at[i] + 1]++] = (int32_t)i;
		}
	}
	w->n_moves = first[w->steps];
	free(first);
}

/* All moves late, or early; how many steps there are then. */
static int shift_all(struct stagger_shifts *w, bool late)
{
	int batch, v, steps = 0;
	bool in;

	sort_moves(w);
	clear_room(w);
	for (int64_t k = 0; k < w->n_moves; k++) {
		int64_t i = w->order[late ? w->n_moves - 1 - k : k];
		int arc = arc_of(w, i, &batch, &in, &v);

		w->at[i] = use_step(w, arc, limit_of(w, batch, in, v, late), late ? -1 : 1,
				    w->cut->batches.v[batch].size);
		steps = w->at[i] >= steps ? w->at[i] + 1 : steps;
	}
	return steps;
}

/* The time of all steps, each of its fullest arc's. */
static double time_of(const struct stagger_shifts *w, int steps)
{
	double sum = 0;

	for (int step = 0; step < steps; step++) {
		double top = 0;

		for (int a = 0; a < w->s->m; a++) {
			double time = w->used[(int64_t)a * w->steps + step] / w->s->loads.cap[a];

			top = time > top ? time : top;
		}
		sum += top;
	}
	return sum;
}

void stagger_shift(const struct stagger *s, const struct stagger_cut *cut,
		   struct stagger_pace *pace, int32_t *at)
{
	struct stagger_shifts w = {
		.s = s, .cut = cut, .pace = pace, .at = at, .steps = pace->steps,
		.n = 2 * (int64_t)cut->batches.n * s->n, .least = INT32_MAX,
	};

	if ((int64_t)s->m * w.steps > MAX_CELLS) {
		return;
	}
	for (size_t i = 0; i < cut->batches.n; i++) {
		w.least = cut->batches.v[i].size < w.least ? cut->batches.v[i].size : w.least;
	}
	arrays_add(&w.arrays, w.order, w.n);
	arrays_add(&w.arrays, w.used, (int64_t)s->m * w.steps);
	arrays_add(&w.arrays, w.next, (int64_t)s->m * w.steps);
	count_used(&w);
	for (int round = 0; round < ROUNDS; round++) {
		shift_all(&w, true);
		pace->steps = shift_all(&w, false);
		pace->time = time_of(&w, pace->steps);
		if (w.steps - pace->steps <= w.steps / ENOUGH) {
			break;
		}
		w.steps = pace->steps;
	}
	arrays_fini(&w.arrays);
}

/* ---- transfers ---- */

/* Labels of a batch over an arc: of one shard or several. */
static int add_labels(const struct stagger *s, const struct stagger_cut *cut, int batch,
		      struct coll_xfer x, struct coll_sched *sched, struct err *err)
{
	const struct stagger_batch *b = &cut->batches.v[batch];
	int64_t chunks = cut->chunks, end = b->first + b->size;
	int rc = 0;

	for (int64_t at = b->first, to; at < end && rc == 0; at = to) {
		to = (at / chunks + 1) * chunks;
		to = to < end ? to : end;
		x.origin = (int32_t)(at / chunks);
		x.origin = s->origins ? s->origins[x.origin] : x.origin;
		x.first = (int32_t)(at % chunks);
		x.last = x.first + (int32_t)(to - at) - 1;
		rc = coll_add(sched, &x, err);
	}
	return rc;
}

int stagger_add(const struct stagger *s, const struct stagger_cut *cut,
		const struct stagger_pace *pace, const int32_t *at, struct coll_sched *sched,
		struct err *err)
{
	int rc = 0;

	for (int batch = 0; batch < (int)cut->batches.n; batch++) {
		for (int64_t i = 0; i < 2 * s->n && rc == 0; i++) {
			bool in = i >= s->n;
			int step = at[stagger_move(s, batch, false, 0) + i];
			const struct stagger_tree *t = stagger_tree_of(s, cut, pace, batch, in);

			rc = step < 0 ? 0 : add_labels(s, cut, batch, (struct coll_xfer){
				.step = pace->first + (pace->backwards ? pace->steps - 1 - step
								       : step),
				.arc = t->t->via[i % s->n], .dest = COLL_NO_DEST,
				.op = in != pace->backwards ? COLL_OP_REDUCE : COLL_OP_COPY,
			}, sched, err);
		}
	}
	return rc;
}
