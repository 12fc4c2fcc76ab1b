/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Batches that go along trees, put into steps.
 *
 * Every logical arc has a queue of the batches that wait for it. In a step the one that comes first
 * of all queues' tops passes, while the arcs that it takes have room for it, until nothing fits any
 * more; what has passed waits for the next arcs after the step.
 *
 * How full a step may be: with R the time of the fullest arc for all that it has still to pass, a
 * step of time q is lost on an arc that has less than q waiting, unless it can afford to idle. No
 * step loses anything that is at most R less the largest, over the arcs, of what will come to it
 * later: sum of steps then stays what the fullest arc needs. That is the pace, between two limits:
 * the most sets how many steps there are, the least that there are not too many at the beginning,
 * when little waits anywhere.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "collective/tree/stagger/stagger_private.h"

#define ROUNDING 1e-9

/* A batch that waits for an arc. */
struct stagger_wait {
	int64_t turn;		/* the least goes first; the lowest bits are the batch */
	int32_t node;		/* outwards the head of the arc, inwards the tail */
	bool in;
};

/* An arc, by the top of its queue. */
struct stagger_top {
	int64_t turn;
	int32_t arc;
};

#define BATCH_BITS 24			/* MAX_TIMED_MOVES batches at most */
#define TURN_SCALE (1 << 16)		/* of parts of an arc */

/* The place among those that wait: of the same, the batch of the lower number is before. */
static inline int64_t turn_of(double key, int batch)
{
	return ((int64_t)floor(key * TURN_SCALE) * (INT64_C(1) << BATCH_BITS)) | batch;
}

static inline int batch_of(int64_t turn)
{
	return (int)(turn & ((INT64_C(1) << BATCH_BITS) - 1));
}

static inline bool waits_before(struct stagger_wait a, struct stagger_wait b)
{
	return a.turn < b.turn;
}

static inline bool tops_before(struct stagger_top a, struct stagger_top b)
{
	return a.turn != b.turn ? a.turn < b.turn : a.arc < b.arc;
}

HEAP(stagger_queue, struct stagger_wait);
HEAP_FUNCTIONS(stagger_queue, struct stagger_wait, waits_before)
HEAP(stagger_tops, struct stagger_top);
HEAP_FUNCTIONS(stagger_tops, struct stagger_top, tops_before)

struct stagger_steps {
	const struct stagger *s;
	const struct stagger_cut *cut;
	struct stagger_pace *pace;
	int32_t *at;		/* steps by move; NULL: only figures */
	struct stagger_queue *queues;	/* m */
	bool *busy;		/* m: in `active` */
	VEC(int32_t) active;	/* arcs with a queue */
	struct stagger_tops tops;
	VEC(struct stagger_wait) moved;	/* in this step */
	int32_t *missing;	/* inwards: batch * n + node: children to come */
	double *left, *waiting, *used;	/* by resource: in all, in queues, in this step */
	int64_t to_do;		/* moves */
	int step;
	double time;
	struct arrays arrays;
};

/* ---- what waits ---- */

static const struct stagger_tree *tree_of(const struct stagger_steps *w, int batch, bool in)
{
	return stagger_tree_of(w->s, w->cut, w->pace, batch, in);
}

/* amount[] += times what a batch takes of the arc. */
static void count(const struct stagger_steps *w, double *amount, int arc, double times)
{
	const struct stagger_loads *l = &w->s->loads;

	for (int i = l->first[arc]; i < l->first[arc + 1]; i++) {
		amount[l->uses.v[i].resource] += times * (double)l->uses.v[i].amount;
	}
}

static void enqueue(struct stagger_steps *w, int batch, int node, bool in)
{
	const struct stagger_batch *b = &w->cut->batches.v[batch];
	const struct stagger_tree *t = tree_of(w, batch, in);
	const struct stagger_tree *out = tree_of(w, batch, false);
	int arc = t->t->via[node];
	int left = in ? t->depth[node] + (out ? out->t->depth : 0) : t->height[node];
	double at = w->pace->among ? b->among : b->at;
	int64_t turn = turn_of(w->pace->in_turn * at - left, batch);

	count(w, w->waiting, arc, b->size);
	if (!w->busy[arc]) {
		w->busy[arc] = true;
		vec_push(&w->active, arc);
	}
	stagger_queue_push(&w->queues[arc], (struct stagger_wait){ turn, node, in });
}

/* A batch has come to a node, whole: on to where it is wanted. */
static void spread(struct stagger_steps *w, int batch, int node)
{
	const struct stagger_tree *t = tree_of(w, batch, false);

	for (int i = t->first[node]; i < t->first[node + 1]; i++) {
		enqueue(w, batch, t->child[i], false);
	}
}

/* All that a node has to add to a batch is there: on towards the root, or from there out. */
static void sum_up(struct stagger_steps *w, int batch, int node)
{
	const struct stagger_tree *t = tree_of(w, batch, true);

	if (node != t->t->root) {
		enqueue(w, batch, node, true);
	} else if (tree_of(w, batch, false)) {
		spread(w, batch, node);
	}
}

static void arrive(struct stagger_steps *w, const struct stagger_wait *moved)
{
	int batch = batch_of(moved->turn);
	const struct stagger_tree *t = tree_of(w, batch, moved->in);
	const struct topo_arc *arc = topo_arc(w->s->f->logical, t->t->via[moved->node]);
	int up = t->t->inwards ? arc->dst : arc->src;

	if (!moved->in) {
		spread(w, batch, moved->node);
	} else if (--w->missing[(int64_t)batch * w->s->n + up] == 0) {
		sum_up(w, batch, up);
	}
}

/* ---- the beginning ---- */

static void count_tree(struct stagger_steps *w, int batch, const struct stagger_tree *t)
{
	for (int v = 0; t && v < w->s->n; v++) {
		if (t->t->via[v] >= 0) {
			count(w, w->left, t->t->via[v], w->cut->batches.v[batch].size);
			w->to_do++;
		}
	}
}

/* Nodes to which nothing comes begin. */
static void begin_inwards(struct stagger_steps *w, int batch)
{
	const struct stagger_tree *t = tree_of(w, batch, true);
	int32_t *missing = &w->missing[(int64_t)batch * w->s->n];

	for (int v = 0; v < w->s->n; v++) {
		missing[v] = t->first[v + 1] - t->first[v];
	}
	for (int v = 0; v < w->s->n; v++) {
		if (missing[v] == 0 && (t->t->via[v] >= 0 || v == t->t->root)) {
			sum_up(w, batch, v);
		}
	}
}

static void begin(struct stagger_steps *w)
{
	size_t n = w->cut->batches.n, sums = 0;

	arrays_add(&w->arrays, w->queues, w->s->m);
	arrays_add(&w->arrays, w->busy, w->s->m);
	arrays_add(&w->arrays, w->left, w->s->loads.n);
	arrays_add(&w->arrays, w->waiting, w->s->loads.n);
	arrays_add(&w->arrays, w->used, w->s->loads.n);
	for (size_t i = 0; i < n; i++) {
		sums += tree_of(w, (int)i, true) != NULL;
	}
	arrays_add(&w->arrays, w->missing, sums > 0 ? n * (size_t)w->s->n : 0);
	for (int i = 0; i < (int)n; i++) {
		const struct stagger_tree *in = tree_of(w, i, true), *out = tree_of(w, i, false);

		count_tree(w, i, in);
		count_tree(w, i, out);
		if (in) {
			begin_inwards(w, i);
		} else {
			spread(w, i, out->t->root);
		}
	}
}

/* ---- steps ---- */

/* The time of this step. */
static double choose_time(const struct stagger_steps *w)
{
	const struct stagger_loads *l = &w->s->loads;
	double left = 0, to_come = 0, time;

	for (int i = 0; i < l->n; i++) {
		double all = w->left[i] / l->cap[i];
		double later = (w->left[i] - w->waiting[i]) / l->cap[i];

		left = all > left ? all : left;
		to_come = later > to_come ? later : to_come;
	}
	time = left - to_come;
	time = time > w->pace->most ? w->pace->most : time;
	return time < w->pace->least ? w->pace->least : time;
}

static bool has_room(const struct stagger_steps *w, int arc, int size, double time)
{
	const struct stagger_loads *l = &w->s->loads;

	for (int i = l->first[arc]; i < l->first[arc + 1]; i++) {
		const struct stagger_use *u = &l->uses.v[i];

		if (w->used[u->resource] + (double)u->amount * size >
		    l->cap[u->resource] * time * (1 + ROUNDING)) {
			return false;
		}
	}
	return true;
}

static void pass(struct stagger_steps *w, int arc)
{
	struct stagger_wait wait = stagger_queue_pop(&w->queues[arc]);
	double size = w->cut->batches.v[batch_of(wait.turn)].size;

	count(w, w->used, arc, size);
	count(w, w->left, arc, -size);
	count(w, w->waiting, arc, -size);
	w->to_do--;
	vec_push(&w->moved, wait);
	if (w->at) {
		w->at[stagger_move(w->s, batch_of(wait.turn), wait.in, wait.node)] = w->step;
	}
}

/* Where arcs share nothing, one after the other. */
static void pass_apart(struct stagger_steps *w, double time)
{
	for (size_t i = 0; i < w->active.n; i++) {
		int arc = w->active.v[i];
		struct stagger_queue *q = &w->queues[arc];

		while (q->n > 0 &&
		       has_room(w, arc, w->cut->batches.v[batch_of(q->v[0].turn)].size, time)) {
			pass(w, arc);
		}
	}
}

/* All that fits, what comes first before the others. */
static void pass_all(struct stagger_steps *w, double time)
{
	if (stagger_may_shift(w->s)) {
		pass_apart(w, time);
		return;
	}

	vec_reserve(&w->tops, w->active.n);
	w->tops.n = 0;
	for (size_t i = 0; i < w->active.n; i++) {
		int arc = w->active.v[i];

		stagger_tops_add(&w->tops, (struct stagger_top){ w->queues[arc].v[0].turn, arc });
	}
	while (w->tops.n > 0) {
		struct stagger_top top = w->tops.v[0];
		struct stagger_queue *q = &w->queues[top.arc];
		bool goes = has_room(w, top.arc, w->cut->batches.v[batch_of(top.turn)].size, time);

		if (goes) {
			pass(w, top.arc);
		}
		if (goes && q->n > 0) {
			stagger_tops_replace(&w->tops,
					     (struct stagger_top){ q->v[0].turn, top.arc });
		} else {
			stagger_tops_pop(&w->tops);
		}
	}
}

/* The step's time is that of its fullest arc. What has moved goes on, and arcs without a queue
 * are left out. */
static void settle(struct stagger_steps *w)
{
	const struct stagger_loads *l = &w->s->loads;
	double top = 0;
	size_t kept = 0;

	for (int i = 0; i < l->n; i++) {
		top = w->used[i] > top * l->cap[i] ? w->used[i] / l->cap[i] : top;
		w->used[i] = 0;
	}
	w->time += top;
	w->step++;
	for (size_t i = 0; i < w->active.n; i++) {
		int arc = w->active.v[i];

		w->busy[arc] = w->queues[arc].n > 0;
		if (w->busy[arc]) {
			w->active.v[kept++] = arc;
		}
	}
	w->active.n = kept;
	for (size_t i = 0; i < w->moved.n; i++) {
		arrive(w, &w->moved.v[i]);
	}
	w->moved.n = 0;
}

/* A step in which not even one batch fits anywhere is made longer. */
static void run_step(struct stagger_steps *w)
{
	double time = choose_time(w);

	pass_all(w, time);
	while (w->moved.n == 0) {
		time = 2 * time + w->pace->most / 16;
		pass_all(w, time);
	}
	settle(w);
}

void stagger_run(const struct stagger *s, const struct stagger_cut *cut, struct stagger_pace *pace,
		 int32_t *at)
{
	struct stagger_steps w = { .s = s, .cut = cut, .pace = pace, .at = at };

	begin(&w);
	while (w.to_do > 0) {
		run_step(&w);
	}
	pace->steps = w.step;
	pace->time = w.time;
	for (int a = 0; a < s->m && w.queues; a++) {
		vec_fini(&w.queues[a]);
	}
	vec_fini(&w.active);
	vec_fini(&w.tops);
	vec_fini(&w.moved);
	arrays_fini(&w.arrays);
}
