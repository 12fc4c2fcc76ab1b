/*
 * A broadcast written out: its lightpaths as arcs of a digraph, its transfers
 * and its light, step by step. What follows a scatter as an all-gather is
 * written by optree_sym_expand() and appended.
 */
#include <stdio.h>
#include <stdlib.h>

#include "optree/broadcast/broadcast.h"

struct broadcast_writer {
	const struct optree_params *p;
	const struct optree_broadcast *b;
	struct optree_sym where;	/* its light: colours to channels */
	VEC(struct rwa_arc) arcs;	/* of the digraph, in its order */
	struct coll_sched *out;
};

/* ---- the digraph ---- */

static int by_ends(const void *a, const void *b)
{
	const struct rwa_arc *x = a, *y = b;

	if (x->src != y->src) {
		return x->src < y->src ? -1 : 1;
	}
	return x->dst != y->dst ? (x->dst < y->dst ? -1 : 1) : (int)x->dir - (int)y->dir;
}

static int add_arc(struct broadcast_writer *w, int from, int to, int dir)
{
	struct rwa_arc a = { .src = broadcast_rank(w->p, w->b->root, from),
			     .dst = broadcast_rank(w->p, w->b->root, to), .dir = (uint8_t)dir };

	return vec_push(&w->arcs, a) ? WEFT_ENOMEM : 0;
}

/* The k-th node of a direction. */
static int offset_of(const struct broadcast_writer *w, int dir, int k)
{
	return dir == RWA_CW || k == 0 ? k : w->p->n - k;
}

static int collect_arcs(struct broadcast_writer *w)
{
	const struct broadcast_stream *s = &w->b->stream;
	int rc = 0;

	for (size_t k = 0; k < w->b->sends.n && !rc; k++) {
		const struct broadcast_send *x = &w->b->sends.v[k];

		rc = add_arc(w, x->from, x->to, x->dir);
	}
	for (int dir = 0; s->steps && dir < 2; dir++) {
		for (int k = 0; k < s->hops[dir] && !rc; k++) {
			rc = add_arc(w, offset_of(w, dir, k), offset_of(w, dir, k + 1), dir);
		}
	}
	return rc;
}

static int make_topo(struct broadcast_writer *w, struct topo **out, struct err *err)
{
	size_t kept = 0;
	int rc = topo_new(w->p->n, out, err);

	qsort(w->arcs.v, w->arcs.n, sizeof(*w->arcs.v), by_ends);
	for (size_t k = 0; k < w->arcs.n && !rc; k++) {
		if (kept == 0 || by_ends(&w->arcs.v[kept - 1], &w->arcs.v[k]) != 0) {
			w->arcs.v[kept++] = w->arcs.v[k];
			rc = topo_add_arc(*out, w->arcs.v[k].src, w->arcs.v[k].dst, 1, 0, err);
		}
	}
	w->arcs.n = kept;
	if (rc) {
		return rc;
	}
	return topo_freeze(*out, err);
}

/* ---- transfers and light ---- */

static int add_lights(struct broadcast_writer *w, int32_t step, int32_t arc, int32_t colour,
		      int64_t count, struct err *err)
{
	const struct optree_params *p = w->p;
	const struct rwa_arc *a = &w->arcs.v[arc];
	struct rwa_ring ring = { p->n, p->fibres, p->channels };
	int64_t lost = p->loss ? rwa_path_loss_mdb(&ring, p->loss,
				 optree_links(p, a->src, a->dst, a->dir)) : 0;
	int rc = 0;

	for (int64_t k = 0; k < count && !rc; k++) {
		struct coll_light l = { .step = step, .arc = arc, .dir = a->dir,
					.loss_mdb = (int32_t)lost };

		optree_sym_colour(&w->where, a->dir, colour + (int32_t)k, &l.fibre, &l.channel);
		rc = coll_add_light(w->out, &l, err);
	}
	return rc;
}

/* Chunks of the vector over one lightpath, on as many channels as it needs. */
static int add_send(struct broadcast_writer *w, const struct broadcast_send *x, struct err *err)
{
	struct rwa_arc key = { .src = broadcast_rank(w->p, w->b->root, x->from),
			       .dst = broadcast_rank(w->p, w->b->root, x->to), .dir = x->dir };
	const struct rwa_arc *a = bsearch(&key, w->arcs.v, w->arcs.n, sizeof(key), by_ends);
	int32_t arc = (int32_t)(a - w->arcs.v);
	int64_t count = x->end - x->first, each = w->b->chunks;
	int rc = add_lights(w, x->step, arc, x->colour, count < x->width ? count : x->width, err);

	for (int64_t at = x->first; at < x->end && !rc;) {
		int64_t shard = at / each, stop = (shard + 1) * each;

		stop = stop < x->end ? stop : x->end;
		rc = coll_add(w->out, &(struct coll_xfer){
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
	return coll_finish(w->out, err);
}

static int write_own(struct broadcast_writer *w, struct err *err)
{
	const struct optree_params *p = w->p;
	struct rwa_ring ring = { p->n, p->fibres, p->channels };
	struct topo *topo = NULL;
	char name[64];
	int rc;

	optree_sym_init(&w->where, COLL_BROADCAST, &ring);
	if ((rc = optree_sym_place(&w->where, p, err))) {
		return rc;
	}
	if ((rc = collect_arcs(w))) {
		return err_nomem(err);
	}
	if ((rc = make_topo(w, &topo, err))) {
		topo_free(topo);
		return rc;
	}
	rc = coll_new(COLL_BROADCAST, topo, w->b->chunks, w->where.w[0] + w->where.w[1],
		      w->b->root, &w->out, err);
	if (rc) {
		return rc;
	}
	snprintf(name, sizeof(name), p->line ? "segment of %d nodes" : "WDM ring of %d nodes",
		 p->n);
	coll_set_topo_name(w->out, name);
	return fill(w, err);
}

/* The all-gather behind the scatter. */
static int append_gather(struct broadcast_writer *w, struct err *err)
{
	struct coll_sched *gather, *both;
	int rc = optree_sym_expand(w->b->gather, w->p, &gather, err);

	if (rc) {
		return rc;
	}
	rc = collectives_sequence(COLL_BROADCAST, w->out, gather, &both, err);
	coll_free(gather);
	if (rc == 0) {
		coll_free(w->out);
		w->out = both;
	}
	return rc;
}

int broadcast_write(const struct optree_params *p, const struct optree_broadcast *b,
		    struct coll_sched **out, struct err *err)
{
	struct broadcast_writer w = { .p = p, .b = b };
	int rc = write_own(&w, err);

	*out = NULL;
	if (!rc && b->gather) {
		rc = append_gather(&w, err);
	}
	if (!rc && !(rc = coll_verify(w.out, NULL, err)) &&
	    !(rc = collectives_check_light(p, w.out, err))) {
		*out = w.out;
	} else {
		coll_free(w.out);
	}
	optree_sym_fini(&w.where);
	vec_fini(&w.arcs);
	return rc;
}
