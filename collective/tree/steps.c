/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Paths put into steps. Every arc has a queue of the chunks that wait for it.
 * In a step each arc first passes what may not wait, then what the quota of the
 * step leaves room for; what has passed joins the next queue after the step.
 */
#include <stdlib.h>

#include "collective/tree/scatter.h"
#include "lib/base/alloc.h"
#include "lib/base/heap.h"
#include "lib/base/order.h"

#define KEY_UNIT 1024	/* of keys, in a chunk over a unit of capacity */

/* Chunks of a path that wait for its arc `hop`. */
struct tree_wait {
	int path, hop;
	int first, n;
	int left;		/* hops, this one too */
	int64_t key;		/* the least passes first */
};

static inline bool goes_first(struct tree_wait a, struct tree_wait b)
{
	return a.key != b.key ? a.key < b.key
			      : a.path != b.path ? a.path < b.path : a.first < b.first;
}

HEAP(tree_queue, struct tree_wait);
HEAP_FUNCTIONS(tree_queue, struct tree_wait, goes_first)

struct tree_steps {
	const struct tree_net *net;
	const struct tree_paths *paths;
	struct coll_sched *s;
	enum tree_order order;
	int64_t hop_key;	/* what a hop adds to the key */
	int steps;		/* 0: as many as it takes */
	int step;
	int64_t *due;		/* steps: what a unit has to pass in all up to a step */
	int64_t passed;		/* quotas of the steps before */
	struct tree_queue *queues;	/* m */
	int64_t *sent;		/* m: chunks in this step */
	bool *busy;		/* m: in `active` */
	VEC(int) active;	/* arcs with a queue */
	VEC(struct tree_wait) moved;	/* in this step */
	struct arrays arrays;
};

/* ---- what has to pass ---- */

/* Chunks that have to cross an arc in or before a step. */
struct tree_due {
	int arc, step;
	int64_t n;
};

ORDER_BY(by_arc, struct tree_due, arc, step)

/* due[s]: the largest, over the arcs, of what has to cross it up to step s, a
 * unit of its capacity. */
static void find_due(struct tree_steps *w)
{
	const struct tree_paths *p = w->paths;
	struct tree_due *list = x_new(p->arcs.n + 1, sizeof(*list));
	int64_t sum = 0;

	for (size_t i = 0; i < p->list.n; i++) {
		const struct tree_path *path = &p->list.v[i];

		for (int k = 0; k < path->len; k++) {
			list[path->arcs + k] = (struct tree_due){
				p->arcs.v[path->arcs + k], w->steps - path->len + k, path->n,
			};
		}
	}
	qsort(list, p->arcs.n, sizeof(*list), by_arc);
	for (size_t i = 0; i < p->arcs.n; i++) {
		int64_t cap = w->net->arcs[list[i].arc].cap, units;

		sum = i > 0 && list[i].arc == list[i - 1].arc ? sum + list[i].n : list[i].n;
		units = (sum + cap - 1) / cap;
		w->due[list[i].step] = units > w->due[list[i].step] ? units : w->due[list[i].step];
	}
	for (int s = 1; s < w->steps; s++) {
		w->due[s] = w->due[s - 1] > w->due[s] ? w->due[s - 1] : w->due[s];
	}
	free(list);
}

/* ---- steps ---- */

static void wait_for(struct tree_steps *w, struct tree_wait wait)
{
	int arc = w->paths->arcs.v[w->paths->list.v[wait.path].arcs + wait.hop];

	if (!w->busy[arc]) {
		w->busy[arc] = true;
		vec_push(&w->active, arc);
	}
	tree_queue_push(&w->queues[arc], wait);
}

/* The first n chunks of the queue's top cross the arc. */
static int pass(struct tree_steps *w, int arc, int n, struct err *err)
{
	struct tree_wait wait = tree_queue_pop(&w->queues[arc]);
	const struct tree_path *path = &w->paths->list.v[wait.path];
	struct coll_xfer x = {
		.step = w->step, .arc = arc, .origin = path->dest, .dest = COLL_NO_DEST,
		.first = wait.first, .last = wait.first + n - 1,
	};

	if (n < wait.n) {
		struct tree_wait rest = wait;

		rest.first += n;
		rest.n -= n;
		tree_queue_add(&w->queues[arc], rest);
	}
	wait.n = n;
	wait.hop++;
	wait.left--;
	wait.key += w->hop_key;
	w->sent[arc] += n;
	if (wait.left > 0) {
		vec_push(&w->moved, wait);
	}
	return coll_add(w->s, &x, err);
}

/* What may not wait for another step; *quota grows to what that takes. */
static int pass_due(struct tree_steps *w, int arc, int64_t *quota, struct err *err)
{
	struct tree_queue *q = &w->queues[arc];
	int64_t cap = w->net->arcs[arc].cap;
	int rc = 0;

	w->sent[arc] = 0;
	while (rc == 0 && w->steps > 0 && q->n > 0 && q->v[0].left >= w->steps - w->step) {
		rc = pass(w, arc, q->v[0].n, err);
	}
	if ((w->sent[arc] + cap - 1) / cap > *quota) {
		*quota = (w->sent[arc] + cap - 1) / cap;
	}
	return rc;
}

static int pass_more(struct tree_steps *w, int arc, int64_t quota, struct err *err)
{
	struct tree_queue *q = &w->queues[arc];
	int64_t room = quota * w->net->arcs[arc].cap;
	int rc = 0;

	while (rc == 0 && q->n > 0 && w->sent[arc] < room) {
		int64_t left = room - w->sent[arc];

		rc = pass(w, arc, q->v[0].n < left ? q->v[0].n : (int)left, err);
	}
	return rc;
}

/* What has moved waits for its next arc; arcs without a queue are left out. */
static void settle(struct tree_steps *w)
{
	size_t kept = 0;

	for (size_t i = 0; i < w->active.n; i++) {
		int arc = w->active.v[i];

		w->busy[arc] = w->queues[arc].n > 0;
		if (w->busy[arc]) {
			w->active.v[kept++] = arc;
		}
	}
	w->active.n = kept;
	for (size_t i = 0; i < w->moved.n; i++) {
		wait_for(w, w->moved.v[i]);
	}
	w->moved.n = 0;
}

static int run_step(struct tree_steps *w, int64_t quota, struct err *err)
{
	int rc = 0;

	if (w->steps > 0) {
		quota = w->due[w->step] > w->passed ? w->due[w->step] - w->passed : 0;
	}
	for (size_t i = 0; i < w->active.n && rc == 0; i++) {
		rc = pass_due(w, w->active.v[i], &quota, err);
	}
	for (size_t i = 0; i < w->active.n && rc == 0; i++) {
		rc = pass_more(w, w->active.v[i], quota, err);
	}
	if (rc) {
		return rc;
	}
	w->passed += quota;
	w->step++;
	settle(w);
	return 0;
}

/* The chunks of path i wait for its first arc: all at once, or one by one, each
 * for its turn in a period of `room`; where in it the first comes differs from
 * path to path by the golden ratio. */
static void enter_path(struct tree_steps *w, int i)
{
	const struct tree_path *path = &w->paths->list.v[i];
	struct tree_wait wait = { i, 0, path->first, path->n, path->len, -path->len };
	int64_t turn = (uint32_t)i * UINT32_C(2654435769) >> 16;

	if (w->order == TREE_FARTHEST) {
		wait_for(w, wait);
		return;
	}
	wait.n = 1;
	for (int j = 0; j < path->n; j++) {
		wait.first = path->first + j;
		wait.key = w->paths->room * KEY_UNIT / path->n * j +
			   w->paths->room * KEY_UNIT / path->n * turn / 65536;
		wait_for(w, wait);
	}
}

static void begin(struct tree_steps *w)
{
	const struct tree_paths *p = w->paths;

	arrays_add(&w->arrays, w->queues, w->net->m);
	arrays_add(&w->arrays, w->sent, w->net->m);
	arrays_add(&w->arrays, w->busy, w->net->m);
	arrays_add(&w->arrays, w->due, w->steps);
	for (size_t i = 0; i < p->list.n; i++) {
		enter_path(w, (int)i);
	}
	if (w->steps > 0) {
		find_due(w);
	}
}

int tree_add_steps(const struct tree_net *net, const struct tree_paths *p,
		   enum tree_order order, int64_t quota, struct coll_sched *s, struct err *err)
{
	struct tree_steps w = {
		.net = net, .paths = p, .s = s, .order = order,
		.hop_key = order == TREE_FARTHEST ? 1 : quota * KEY_UNIT,
		.steps = quota > 0 ? 0 : p->longest,
	};
	int rc = 0;

	begin(&w);
	while (rc == 0 && w.active.n > 0) {
		rc = run_step(&w, quota, err);
	}
	for (int a = 0; a < net->m && w.queues; a++) {
		vec_fini(&w.queues[a]);
	}
	vec_fini(&w.active);
	vec_fini(&w.moved);
	arrays_fini(&w.arrays);
	return rc;
}
