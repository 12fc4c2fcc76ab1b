/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whole chunks of what the programs say, node by node, as transfers of the schedule.
 *
 * A receipt is what one node takes: chunks of a shard over a link at a distance.
 * Where the digraph has a group, receipts are made for the first node of each orbit
 * only: the schedule is compact. Each thread fills a list of its own, and the lists are
 * joined in order, so that the bytes do not depend on how many threads there are.
 */
#include <stdlib.h>
#include <string.h>

#include "collective/bfb/private.h"
#include "lib/base/alloc.h"
#include "lib/base/parallel.h"

/* Nodes from which on the receipts are made on several threads. */
#define SHARED_NODES 256

/* A part of a shard that the node that was solved takes. */
struct bfb_receipt {
	int32_t dist, link, origin, first, last;
};

struct bfb_receipts {
	struct bfb_receipt *v;
	size_t n, cap;
};

/* Deals the shares of one group out to its ranks, whole shards as far as
 * they go: at most ranks + links - 1 ranges. Consumes share. */
static void deal(const struct bfb_program *b, const struct bfb_group *g, const int32_t *ranks,
		 int t, int chunks, int64_t *share, struct bfb_receipts *out)
{
	int i = g->first;

	for (int64_t k = 0; k < g->items; k++) {
		for (int from = 0; from < chunks;) {
			int64_t left = chunks - from;
			int part;

			while (share[i] == 0) {
				i++;
			}
			part = (int)(share[i] < left ? share[i] : left);
			share[i] -= part;
			vec_push(out, (struct bfb_receipt){ t, b->use[i],
				     ranks[k], from, from + part - 1 });
			from += part;
		}
	}
}

/* Whole chunks by the time at which level t is done, which is known. */
static int split_timed(const struct bfb_side *s, const struct bfb_view *v, int t,
		       const struct bfb_program *b, int64_t *share, struct err *err)
{
	mpq_t until, bound;
	int rc;

	mpq_inits(until, bound, NULL);
	mpq_set(until, s->until.v[t - 1]);
	rc = bfb_timing_solve(s->timed, b, v->latencies, until, bound, share, err);
	mpq_clears(until, bound, NULL);
	return rc;
}

/* What the view's node takes at distance t, with the load of that distance or
 * the least above it that whole chunks allow, or as it was solved for all distances: from *known
 * on, which moves on. */
static int split_level(const struct bfb_side *s, struct bfb_view *v, int t, int chunks,
		       const int64_t **known, struct bfb_receipts *out, struct err *err)
{
	const int32_t *ranks = v->queue + v->level[t];
	struct bfb_program b;
	int64_t *share = NULL;
	int rc = 0;

	bfb_load_program(v, t, &b);
	share = x_alloc((size_t)b.n_use + 1, sizeof(*share));
	if (s->steady) {
		memcpy(share, *known, (size_t)b.n_use * sizeof(*share));
		*known += b.n_use;
	} else if (s->timed) {
		rc = split_timed(s, v, t, &b, share, err);
	} else {
		struct bfb_ratio load = s->tops.v[t - 1];
		struct bfb_ratio most = { load.num * chunks, load.den };

		rc = bfb_program_split(&b, chunks, &most, share, err);
	}
	for (int g = 0; g < b.n_groups && !rc; g++) {
		deal(&b, &b.groups[g], ranks, t, chunks, share, out);
		ranks += b.groups[g].items;
	}
	free(share);
	bfb_program_fini(&b);
	return rc;
}

/* The transfers into a part of the nodes. */
struct bfb_emit_part {
	VEC(struct coll_xfer) xfers;
	int rc;
	struct err err;
};

struct bfb_emission {
	const struct bfb_side *s;
	const struct bfb_target *to;
	int chunks, n_parts;
	struct bfb_emit_part parts[PARALLEL_MAX];
};

static void emit(const struct bfb_emission *c, const struct bfb_receipt *r, int arc,
		 struct bfb_emit_part *out)
{
	struct coll_xfer x = {
		.step = c->to->base + r->dist - 1, .arc = arc,
		.origin = r->origin, .dest = COLL_NO_DEST, .first = r->first,
		.last = r->last, .op = COLL_OP_COPY,
	};

	if (c->to->back) {
		x.step = c->to->base + c->s->diameter - r->dist;
		x.arc = c->to->back[arc];
		x.op = COLL_OP_REDUCE;
	}
	vec_push(&out->xfers, x);
}

static void emit_node(const struct bfb_emission *c, const struct bfb_view *v,
		      const struct bfb_receipts *rs, struct bfb_emit_part *out)
{
	for (size_t i = 0; i < rs->n; i++) {
		const struct bfb_receipt *r = &rs->v[i];

		emit(c, r, v->links[r->link], out);
	}
}

static int make_receipts(const struct bfb_emission *c, struct bfb_view *v, int node,
			 struct bfb_receipts *rs, struct err *err)
{
	const struct bfb_steady *steady = c->s->steady;
	const int64_t *known = steady ? &steady->share[steady->first[node]] : NULL;
	int rc = bfb_view_load(v, node, err);

	rs->n = 0;
	for (int t = 1; t <= v->levels && !rc; t++) {
		rc = split_level(c->s, v, t, c->chunks, &known, rs, err);
	}
	return rc;
}

static void emit_part(void *arg, int i)
{
	struct bfb_emission *c = arg;
	const struct bfb_side *s = c->s;
	struct bfb_emit_part *out = &c->parts[i];
	struct bfb_receipts rs = { 0 };
	struct bfb_view v;
	int from, to, rc = 0;

	bfb_view_init(&v, s->t);
	parallel_cut(s->sources, c->n_parts, i, &from, &to);
	for (int u = from; u < to && !rc; u++) {
		rc = make_receipts(c, &v, u, &rs, &out->err);
		if (!rc) {
			emit_node(c, &v, &rs, out);
		}
	}
	out->rc = rc;
	vec_fini(&rs);
	bfb_view_fini(&v);
}

/* Part by part, so that the threads do not show. */
int bfb_side_emit(const struct bfb_side *s, const struct bfb_target *to,
		  struct coll_sched *sched, struct err *err)
{
	struct bfb_emission c = { .s = s, .to = to, .chunks = coll_chunks(sched) };
	int rc = 0;

	c.n_parts = s->sources < SHARED_NODES ? 1 : parallel_width();
	parallel_run(c.n_parts, emit_part, &c);
	for (int i = 0; i < c.n_parts; i++) {
		struct bfb_emit_part *p = &c.parts[i];

		if (!rc && p->rc) {
			rc = p->rc;
			if (err) {
				*err = p->err;
			}
		}
		for (size_t k = 0; k < p->xfers.n && !rc; k++) {
			rc = coll_add(sched, &p->xfers.v[k], err);
		}
		vec_fini(&p->xfers);
	}
	return rc;
}
