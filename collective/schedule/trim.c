/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A broadcast, or a reduce, out of a schedule in which what the root has comes to all, or what all
 * have to the root: what its root has no part in is left out.
 *
 * Forwards in time, what a rank has of the root's vector goes with each of its transfers, sums or
 * not, to those that have nothing of it yet: a broadcast, as in an all-reduce it comes to all.
 * Backwards in time the same makes a reduce: whoever sends to one whose sum goes to the root later
 * sends the sum of all that it has, and does so the last time that it can. Whether it is a sum, a
 * copy or a forward that is replaced does not matter, as each rank sends once. So a gather is what
 * leads to the root in an all-gather, a scatter what its contributions pass in a reduce-scatter.
 * Steps in which nothing is left go. So none is slower than what it is made of.
 */
#include <stdlib.h>

#include "collective/schedule/private.h"
#include "lib/base/alloc.h"

#define MAX_CELLS (INT64_C(1) << 26)	/* chunks of all shards times ranks */

/* Of a chunk at a node: forwards whether it has it, backwards whether it has sent its sum. */
enum trim_cell { TRIM_NO, TRIM_YES, TRIM_COMES };

struct coll_trim {
	const struct coll_sched *s;	/* every transfer for itself */
	bool forwards;		/* in time: a broadcast, a scatter */
	uint8_t op;
	uint8_t *cells;		/* (shard * chunks + chunk) * nodes + node */
	VEC(size_t) set;	/* cells, when the step at hand is done */
	VEC(struct coll_xfer) kept;
	bool *used;		/* steps */
};

static uint8_t *cell_of(const struct coll_trim *t, const struct coll_xfer *x, int chunk, int node)
{
	size_t n = (size_t)topo_n(t->s->topo), chunks = (size_t)t->s->chunks;

	return &t->cells[((size_t)x->origin * chunks + (size_t)chunk) * n + (size_t)node];
}

/* Whether a chunk of a transfer stays. */
static bool stays(struct coll_trim *t, const struct coll_xfer *x, int chunk)
{
	const struct topo_arc *a = topo_arc(t->s->topo, x->arc);
	uint8_t *from = cell_of(t, x, chunk, t->forwards ? a->src : a->dst);
	uint8_t *to = cell_of(t, x, chunk, t->forwards ? a->dst : a->src);

	if (*from != TRIM_YES || *to != TRIM_NO) {
		return false;
	}
	*to = TRIM_COMES;
	vec_push(&t->set, (size_t)(to - t->cells));
	return true;
}

/* What stays of a transfer. */
static void trim_xfer(struct coll_trim *t, const struct coll_xfer *x)
{
	struct coll_xfer part = *x;
	bool open = false;

	part.op = t->op;
	part.dest = COLL_NO_DEST;
	part.kept = 0;
	for (int chunk = x->first; chunk <= x->last; chunk++) {
		if (!stays(t, x, chunk)) {
			open = false;
			continue;
		}
		if (!open) {
			part.first = chunk;
			vec_push(&t->kept, part);
		}
		open = true;
		t->kept.v[t->kept.n - 1].last = chunk;
		t->used[x->step] = true;
	}
}

static void end_step(struct coll_trim *t)
{
	for (size_t i = 0; i < t->set.n; i++) {
		t->cells[t->set.v[i]] = TRIM_YES;
	}
	t->set.n = 0;
}

/* All transfers, which are sorted by their steps, from the first or from the last. */
static void trim_all(struct coll_trim *t, int root)
{
	const struct coll_sched *s = t->s;
	size_t n = s->xfers.n, labels = (size_t)s->ranks * (size_t)s->chunks;

	for (size_t label = 0; label < labels; label++) {
		t->cells[label * (size_t)topo_n(s->topo) + (size_t)root] = TRIM_YES;
	}
	for (size_t i = 0; i < n; i++) {
		const struct coll_xfer *x = &s->xfers.v[t->forwards ? i : n - 1 - i];

		trim_xfer(t, x);
		if (i + 1 == n || x[t->forwards ? 1 : -1].step != x->step) {
			end_step(t);
		}
	}
}

static int add_kept(struct coll_trim *t, struct coll_sched *out, struct err *err)
{
	int32_t *number = x_new((size_t)t->s->steps + 1, sizeof(*number));
	int rc = 0;

	for (int step = 0; step < t->s->steps; step++) {
		number[step + 1] = number[step] + t->used[step];
	}
	for (size_t i = 0; i < t->kept.n && rc == 0; i++) {
		t->kept.v[i].step = number[t->kept.v[i].step];
		rc = coll_add(out, &t->kept.v[i], err);
	}
	free(number);
	return rc;
}

/* out: empty, with all that s has but its transfers. */
static int trim(const struct coll_sched *s, struct coll_sched *out, struct err *err)
{
	struct coll_trim t = {
		.s = s, .forwards = out->kind == COLL_BROADCAST || out->kind == COLL_SCATTER,
		.op = coll_is_sum(out->kind) ? COLL_OP_REDUCE : COLL_OP_COPY,
	};
	int64_t cells = (int64_t)s->ranks * s->chunks * topo_n(s->topo);
	int rc;

	if (cells > MAX_CELLS) {
		return err_set(err, WEFT_ELIMIT, "%d ranks of %d chunks are too many to trim",
			       s->ranks, s->chunks);
	}
	t.cells = x_new((size_t)cells, sizeof(*t.cells));
	t.used = x_new((size_t)s->steps + 1, sizeof(*t.used));
	trim_all(&t, out->root);
	rc = add_kept(&t, out, err);
	free(t.cells);
	free(t.used);
	vec_fini(&t.set);
	vec_fini(&t.kept);
	return rc ? rc : coll_finish(out, err);
}

enum coll_kind coll_trimmed_from(enum coll_kind kind)
{
	return kind == COLL_GATHER    ? COLL_ALLGATHER
	       : kind == COLL_SCATTER ? COLL_REDUCE_SCATTER
				      : COLL_ALLREDUCE;
}

int coll_trim(const struct coll_sched *s, enum coll_kind kind, int root, struct coll_sched **out,
	      struct err *err)
{
	const struct coll_sched *flat = NULL;
	struct coll_sched *own = NULL, *made = NULL;
	int rc = 0;

	*out = NULL;
	if (s->kind != coll_trimmed_from(kind) || s->lights.n > 0 || !coll_has_root(kind)) {
		return err_set(err, WEFT_EUNSUPPORTED, "a %s out of a %s%s: not supported",
			       coll_kind_name(kind), coll_kind_name(s->kind),
			       s->lights.n > 0 ? " with light" : "");
	}
	if ((rc = coll_flat(s, &flat, &own, err)) ||
	    (rc = coll_new_flat(flat, kind, &made, err))) {
		goto out;
	}
	made->root = root;
	rc = trim(flat, made, err);
out:
	coll_free(own);
	if (rc) {
		coll_free(made);
		return rc;
	}
	*out = made;
	return 0;
}
