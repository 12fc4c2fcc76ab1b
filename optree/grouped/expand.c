/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A grouped plan written out: every item's transfers and every lightpath, on a
 * digraph with one arc for each source, sink and direction. What is sent to a
 * node that has part of it, which is the node's own item or what it gathered, is
 * sent without that part.
 */
#include <stdlib.h>

#include "optree/grouped/grouped.h"

struct writer {
	const struct optree_groups *g;
	bool mirror;
	struct ring_writer ring;
	const struct grouped_round *round;
	int32_t step;
	struct err *err;
};

static int place(const struct writer *w, int v)
{
	return w->mirror ? (w->g->n - v) % w->g->n : v;
}

static int sink_of(const struct writer *w, int src, int dir, int len)
{
	int n = w->g->n;

	return dir == RWA_CW ? (src + len) % n : (src - len + n) % n;
}

static void add_paths(struct writer *w)
{
	const struct optree_groups *g = w->g;

	for (size_t i = 0; i < g->paths.n; i++) {
		const struct grouped_path *x = &g->paths.v[i];

		ring_writer_add(&w->ring, place(w, x->src),
				place(w, sink_of(w, x->src, x->dir, x->len)), x->dir ^ w->mirror);
	}
}

static int32_t arc_of(const struct writer *w, const struct grouped_path *x)
{
	return ring_writer_arc(&w->ring, place(w, x->src),
			       place(w, sink_of(w, x->src, x->dir, x->len)), x->dir ^ w->mirror);
}

/* A part of the vector, or piece of it: of shard by shard. */
static int write_part(struct writer *w, int group, struct coll_xfer *t)
{
	int chunks = w->g->chunks, rc = 0;
	struct grouped_part part = grouped_part(w->g, group);
	int64_t unit = chunks / w->g->units, end = part.end * unit;

	t->op = w->round->level < w->g->shape.owners ? COLL_OP_REDUCE : COLL_OP_COPY;
	for (int64_t at = part.first * unit, next; at < end && !rc; at = next) {
		next = (at / chunks + 1) * chunks < end ? (at / chunks + 1) * chunks : end;
		t->origin = (int32_t)(at / chunks);
		t->first = (int32_t)(at % chunks);
		t->last = (int32_t)((next - 1) % chunks);
		rc = coll_add(w->ring.out, t, w->err);
	}
	return rc;
}

/* Pieces of an all-to-all: of a group for others, for another one, or of others for the group. */
static int write_pieces(struct writer *w, const struct grouped_stage *s, int group, int to,
			struct coll_xfer *t)
{
	int first = s->first[group], end = s->first[group + 1], n = w->g->n, rc = 0;
	int level = w->round->level, stages = w->g->shape.stages;

	t->op = COLL_OP_COPY;
	for (int i = first; i < end; i++) {
		for (int k = 0; k < n && !rc; k++) {
			if (level == stages ? k < s->own[to] || k >= s->own_end[to]
					    : k >= first && k < end) {
				continue;
			}
			t->origin = place(w, level > stages ? k : i);
			t->dest = place(w, level > stages ? i : k);
			rc = coll_add(w->ring.out, t, w->err);
		}
	}
	return rc;
}

/* A group's items, but for those that the sink has, or the whole vector. */
static int write_hop(void *data, const struct grouped_hop *h)
{
	struct writer *w = data;
	const struct grouped_stage *s = grouped_stage_of(w->g, w->round);
	const struct grouped_path *x = grouped_path_of(w->g, w->round, h);
	int to = sink_of(w, x->src, x->dir, x->len);
	bool sums = w->g->shape.sums;
	struct coll_xfer t = { .step = w->step + x->slot, .arc = arc_of(w, x),
			       .dest = COLL_NO_DEST, .last = w->g->chunks - 1,
			       .op = sums && w->round->level <= w->g->shape.stages
					     ? COLL_OP_REDUCE : COLL_OP_COPY };
	int rc = 0;

	if (w->g->shape.owners) {
		return write_part(w, h->group, &t);
	}
	if (w->g->shape.pieces) {
		return write_pieces(w, s, h->group, to, &t);
	}
	for (t.origin = 0; t.origin < w->g->n && sums && !rc; t.origin++) {
		rc = coll_add(w->ring.out, &t, w->err);
	}
	for (int32_t i = sums ? 0 : s->first[h->group];
	     !sums && i < s->first[h->group + 1] && !rc; i++) {
		if (i < s->own[to] || i >= s->own_end[to]) {
			t.origin = place(w, i);
			rc = coll_add(w->ring.out, &t, w->err);
		}
	}
	return rc;
}

static int write_lights(struct writer *w)
{
	int rc = 0;

	for (size_t i = w->round->path; i < w->round->path + w->round->n_paths && !rc; i++) {
		const struct grouped_path *x = &w->g->paths.v[i];

		rc = ring_writer_light(&w->ring, w->step + x->slot, arc_of(w, x), x->dir, x->first,
				       x->width, w->err);
	}
	return rc;
}

static int write_rounds(struct writer *w)
{
	const struct optree_groups *g = w->g;
	int rc = 0;

	for (size_t i = 0; i < g->rounds.n && !rc; i++) {
		w->round = &g->rounds.v[i];
		rc = grouped_each_hop(g, w->round, write_hop, w);
		if (!rc) {
			rc = write_lights(w);
		}
		w->step += w->round->slots;
	}
	return rc;
}

static int check_size(const struct optree_groups *g, struct err *err)
{
	int64_t groups = g->stage[g->shape.stages].count;
	int64_t transfers = (int64_t)g->n * (g->shape.pieces
						     ? (int64_t)g->n * (2 * g->shape.stages + 1)
					     : g->shape.sums ? 2 * g->n + groups * groups
							     : g->n + g->shape.stages);

	if (g->shape.owners) {
		transfers = 2 * (int64_t)g->n * g->n * g->shape.owners + 2 * (int64_t)g->paths.n;
	}

	if (g->lightpaths > COLL_MAX_LIGHTS || transfers > COLL_MAX_XFERS) {
		return err_set(err, WEFT_ELIMIT, "%lld lights and %lld transfers: a written "
			       "schedule holds at most %d and %d", (long long)g->lightpaths,
			       (long long)transfers, COLL_MAX_LIGHTS, COLL_MAX_XFERS);
	}
	return 0;
}

int grouped_expand(const struct optree_groups *g, const struct optree_params *p, bool mirror,
		   struct coll_sched **out, struct err *err)
{
	struct writer w = { .g = g, .mirror = mirror, .ring.p = p, .err = err };
	enum coll_kind kind = g->shape.pieces ? COLL_ALLTOALL
			    : g->shape.sums || g->shape.owners ? COLL_ALLREDUCE : COLL_ALLGATHER;
	int rc = check_size(g, err);

	*out = NULL;
	if (rc == 0) {
		add_paths(&w);
	}
	if (rc || (rc = ring_writer_begin(&w.ring, kind, g->chunks, 2 * g->w, 0, err)) ||
	    (rc = write_rounds(&w)) || (rc = coll_finish(w.ring.out, err)) ||
	    (rc = collectives_prove(p, w.ring.out, err))) {
		coll_free(w.ring.out);
	} else {
		*out = w.ring.out;
	}
	vec_fini(&w.ring.arcs);
	return rc;
}
