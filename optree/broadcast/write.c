/* SPDX-License-Identifier: Apache-2.0 */
/* A broadcast written out: its transfers and its light, step by step. What follows a scatter as
 * an all-gather is written by optree_sym_expand() and appended. */
#include <stdlib.h>

#include "optree/broadcast/broadcast.h"

struct broadcast_writer {
	const struct optree_broadcast *b;
	struct ring_writer ring;
};

static int rank_of(const struct broadcast_writer *w, int offset)
{
	return broadcast_rank(w->ring.p, w->b->root, offset);
}

/* ---- the digraph ---- */

static void add_path(struct broadcast_writer *w, int from, int to, int dir)
{
	ring_writer_add(&w->ring, rank_of(w, from), rank_of(w, to), dir);
}

/* The k-th node of a direction. */
static int offset_of(const struct broadcast_writer *w, int dir, int k)
{
	return dir == RWA_CW || k == 0 ? k : w->ring.p->n - k;
}

static void add_paths(struct broadcast_writer *w)
{
	const struct broadcast_stream *s = &w->b->stream;

	for (size_t k = 0; k < w->b->sends.n; k++) {
		const struct broadcast_send *x = &w->b->sends.v[k];

		add_path(w, x->from, x->to, x->dir);
	}
	for (int dir = 0; s->steps && dir < 2; dir++) {
		for (int k = 0; k < s->hops[dir]; k++) {
			add_path(w, offset_of(w, dir, k), offset_of(w, dir, k + 1), dir);
		}
	}
}

/* ---- transfers and light ---- */

/* Chunks of the vector over one lightpath, on as many channels as it needs. */
static int add_send(struct broadcast_writer *w, const struct broadcast_send *x, struct err *err)
{
	int32_t arc = ring_writer_arc(&w->ring, rank_of(w, x->from), rank_of(w, x->to), x->dir);
	int64_t count = x->end - x->first, each = w->b->chunks;
	int rc = ring_writer_light(&w->ring, x->step, arc, x->dir, x->colour,
				   count < x->width ? count : x->width, err);

	for (int64_t at = x->first; at < x->end && !rc;) {
		int64_t shard = at / each, stop = (shard + 1) * each;

		stop = stop < x->end ? stop : x->end;
		rc = coll_add(w->ring.out, &(struct coll_xfer){
			.step = x->step, .arc = arc, .origin = (int32_t)shard,
			.dest = COLL_NO_DEST, .first = (int32_t)(at - shard * each),
			.last = (int32_t)(stop - 1 - shard * each), .op = COLL_OP_COPY }, err);
		at = stop;
	}
	return rc;
}

/* Step number `number` of the stream, in one direction. */
static int add_stream_step(struct broadcast_writer *w, int32_t number, int dir, struct err *err)
{
	const struct broadcast_stream *s = &w->b->stream;
	int rc = 0;

	for (int k = 0; k < s->hops[dir] && !rc; k++) {
		struct broadcast_send x = {
			.step = w->b->send_steps + number, .from = offset_of(w, dir, k),
			.to = offset_of(w, dir, k + 1), .dir = (uint8_t)dir,
			.width = (int32_t)s->width[dir] };

		if (k <= number) {
			broadcast_emission(s, dir, number - k, &x.first, &x.end);
		} else if (s->seeded) {
			broadcast_seed(s, offset_of(w, dir, k - number), &x.first, &x.end);
		}
		rc = x.first < x.end ? add_send(w, &x, err) : 0;
	}
	return rc;
}

static int fill(struct broadcast_writer *w, struct err *err)
{
	int rc = 0;

	for (size_t k = 0; k < w->b->sends.n && !rc; k++) {
		rc = add_send(w, &w->b->sends.v[k], err);
	}
	for (int32_t k = 0; k < w->b->stream.steps && !rc; k++) {
		if (!(rc = add_stream_step(w, k, RWA_CW, err))) {
			rc = add_stream_step(w, k, RWA_CCW, err);
		}
	}
	if (rc) {
		return rc;
	}
	return coll_finish(w->ring.out, err);
}

static int write_own(struct broadcast_writer *w, struct err *err)
{
	const struct optree_params *p = w->ring.p;
	int rc;

	add_paths(w);
	rc = ring_writer_begin(&w->ring, COLL_BROADCAST, w->b->chunks,
			       (int)(tree_width(p, RWA_CW) + tree_width(p, RWA_CCW)), w->b->root,
			       err);
	return rc ? rc : fill(w, err);
}

/* The all-gather behind the scatter. */
static int append_gather(struct broadcast_writer *w, struct err *err)
{
	struct coll_sched *gather, *both;
	int rc = optree_sym_expand(w->b->gather, w->ring.p, &gather, err);

	if (rc) {
		return rc;
	}
	rc = collectives_sequence(COLL_BROADCAST, w->ring.out, gather, &both, err);
	coll_free(gather);
	if (rc == 0) {
		coll_free(w->ring.out);
		w->ring.out = both;
	}
	return rc;
}

int broadcast_expand(const struct optree_params *p, struct optree_plan *plan, struct err *err)
{
	struct broadcast_writer w = { .b = plan->broadcast, .ring.p = p };
	int rc;

	if (plan->lightpaths > COLL_MAX_LIGHTS) {
		return err_set(err, WEFT_ELIMIT, "%lld lights: a written schedule holds at most %d",
			       (long long)plan->lightpaths, COLL_MAX_LIGHTS);
	}
	rc = write_own(&w, err);
	if (!rc && w.b->gather) {
		rc = append_gather(&w, err);
	}
	if (!rc && !(rc = collectives_prove(p, w.ring.out, err))) {
		plan->sched = w.ring.out;
	} else {
		coll_free(w.ring.out);
	}
	vec_fini(&w.ring.arcs);
	return rc;
}
