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
	struct coll_sched *sched;	/* NULL: only figures */
	struct stagger_queue *queues;	/* m */
	bool *busy;		/* m: in `active` */
	VEC(int32_t) active;	/* arcs with a queue */
	struct stagger_tops tops;
	VEC(struct stagger_wait) moved;	/* in this step */
	int32_t *missing;	/* inwards: batch * n + node: children to come */
	double *left, *waiting, *used;	/* by resource: in all, in queues, in this step */
	int64_t to_do;		/* moves */
	int step, last;		/* last: known when there is a schedule */
	double time;
	struct arrays arrays;
};

/* ---- what waits ---- */

static const struct stagger_piece *piece_of(const struct stagger_steps *w, int batch)
{
	return &w->cut->pieces.v[w->cut->batches.v[batch].piece];
}

/* The tree along which a batch comes together, or spreads; NULL: none. */
static const struct stagger_tree *tree_of(const struct stagger_steps *w, int batch, bool in)
{
	const struct stagger_piece *p = piece_of(w, batch);
	bool inwards = in != w->pace->backwards;
	int tree = inwards ? p->in : p->out;

	if (w->pace->part == (inwards ? STAGGER_OUT : STAGGER_IN)) {
		return NULL;
	}
	return tree >= 0 ? &w->s->trees[tree] : NULL;
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
	int64_t turn = turn_of(w->pace->in_turn * b->at - left, batch);

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

/* Labels of a batch over an arc: of one shard or several. */
static int add_transfers(const struct stagger_steps *w, const struct stagger_wait *wait, int arc,
			 struct err *err)
{
	const struct stagger_batch *b = &w->cut->batches.v[batch_of(wait->turn)];
	int64_t chunks = w->cut->chunks, end = b->first + b->size;
	struct coll_xfer x = {
		.step = w->pace->first + (w->pace->backwards ? w->last - w->step : w->step),
		.arc = arc, .dest = COLL_NO_DEST,
		.op = wait->in != w->pace->backwards ? COLL_OP_REDUCE : COLL_OP_COPY,
	};
	int rc = 0;

	for (int64_t at = b->first, to; at < end && rc == 0; at = to) {
		to = (at / chunks + 1) * chunks;
		to = to < end ? to : end;
		x.origin = (int32_t)(at / chunks);
		x.origin = w->s->origins ? w->s->origins[x.origin] : x.origin;
		x.first = (int32_t)(at % chunks);
		x.last = x.first + (int32_t)(to - at) - 1;
		rc = coll_add(w->sched, &x, err);
	}
	return rc;
}

static int pass(struct stagger_steps *w, int arc, struct err *err)
{
	struct stagger_wait wait = stagger_queue_pop(&w->queues[arc]);
	double size = w->cut->batches.v[batch_of(wait.turn)].size;

	count(w, w->used, arc, size);
	count(w, w->left, arc, -size);
	count(w, w->waiting, arc, -size);
	w->to_do--;
	vec_push(&w->moved, wait);
	return w->sched ? add_transfers(w, &wait, arc, err) : 0;
}

/* Where arcs share nothing, one after the other. */
static int pass_apart(struct stagger_steps *w, double time, struct err *err)
{
	int rc = 0;

	for (size_t i = 0; i < w->active.n; i++) {
		int arc = w->active.v[i];
		struct stagger_queue *q = &w->queues[arc];

		while (rc == 0 && q->n > 0 &&
		       has_room(w, arc, w->cut->batches.v[batch_of(q->v[0].turn)].size, time)) {
			rc = pass(w, arc, err);
		}
	}
	return rc;
}

/* All that fits, what comes first before the others. */
static int pass_all(struct stagger_steps *w, double time, struct err *err)
{
	int rc = 0;

	if (w->s->f->routes.n == 0 && !w->s->f->group && topo_n_limits(w->s->physical) == 0) {
		return pass_apart(w, time, err);
	}

	vec_reserve(&w->tops, w->active.n);
	w->tops.n = 0;
	for (size_t i = 0; i < w->active.n; i++) {
		int arc = w->active.v[i];

		stagger_tops_add(&w->tops, (struct stagger_top){ w->queues[arc].v[0].turn, arc });
	}
	while (w->tops.n > 0 && rc == 0) {
		struct stagger_top top = w->tops.v[0];
		struct stagger_queue *q = &w->queues[top.arc];
		bool goes = has_room(w, top.arc, w->cut->batches.v[batch_of(top.turn)].size, time);

		rc = goes ? pass(w, top.arc, err) : 0;
		if (goes && q->n > 0) {
			stagger_tops_replace(&w->tops,
					     (struct stagger_top){ q->v[0].turn, top.arc });
		} else {
			stagger_tops_pop(&w->tops);
		}
	}
	return rc;
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
static int run_step(struct stagger_steps *w, struct err *err)
{
	double time = choose_time(w);
	int rc = pass_all(w, time, err);

	while (rc == 0 && w->moved.n == 0) {
		time = 2 * time + w->pace->most / 16;
		rc = pass_all(w, time, err);
	}
	if (rc == 0) {
		settle(w);
	}
	return rc;
}

int stagger_run(const struct stagger *s, const struct stagger_cut *cut, struct stagger_pace *pace,
		struct coll_sched *sched, struct err *err)
{
	struct stagger_steps w = {
		.s = s, .cut = cut, .pace = pace, .sched = sched, .last = pace->steps - 1,
	};
	int rc = 0;

	begin(&w);
	while (rc == 0 && w.to_do > 0) {
		rc = run_step(&w, err);
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
	return rc;
}
