/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A symmetric schedule written out: every node's transfers and lightpaths, on
 * a digraph with one arc for each node and kind of lightpath (direction and
 * length). The result passes coll_verify() and rwa_ring_check() like any other
 * schedule, which proves the symmetric form a second time by other means.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/order.h"
#include "optree/private.h"

/* Arcs of the digraph: one for each node and distinct (dir, len). */
struct expansion {
	const struct optree_sym *s;
	const struct optree_params *p;
	int n;
	struct arrays arrays;	/* owns kind, kinds and arc */
	int32_t *kind;		/* 2 n: number of (dir, len), -1 */
	int32_t *kinds;		/* dir * n + len of each number */
	int n_kinds;
	int32_t *arc;		/* n * n_kinds */
	struct coll_sched *out;
};

static void grid_fini(struct expansion *g)
{
	arrays_fini(&g->arrays);
}

static void grid_init(struct expansion *g, const struct optree_sym *s,
		      const struct optree_params *p)
{
	size_t n = (size_t)s->ring.n;

	*g = (struct expansion){ .s = s, .p = p, .n = s->ring.n };
	arrays_add(&g->arrays, g->kind, 2 * n);
	arrays_add(&g->arrays, g->kinds, 2 * n);
	for (size_t k = 0; k < 2 * n; k++) {
		g->kind[k] = -1;
	}
	for (size_t i = 0; i < s->moves.n; i++) {
		int32_t key = s->moves.v[i].dir * g->n + s->moves.v[i].len;

		if (g->kind[key] < 0) {
			g->kind[key] = g->n_kinds;
			g->kinds[g->n_kinds++] = key;
		}
	}
	arrays_add(&g->arrays, g->arc, n * (size_t)g->n_kinds + 1);
}

static int sink_of(const struct expansion *g, int node, int32_t key)
{
	int len = key % g->n;

	return key < g->n ? (node + len) % g->n : (node - len + g->n) % g->n;
}

/* The line ends before such a lightpath does. */
static bool past_end(const struct expansion *g, int node, int32_t key)
{
	int len = key % g->n;

	return g->s->line && (key < g->n ? node + len >= g->n : node < len);
}

struct kind_end {
	int32_t dst, kind;
};

ORDER_BY(by_end, struct kind_end, dst, kind)

/* Arcs are added in the digraph's own order, so their numbers are known. */
static int make_topo(struct expansion *g, struct topo **out, struct err *err)
{
	struct kind_end *ends = x_alloc((size_t)g->n_kinds + 1, sizeof(*ends));
	int32_t next = 0;
	int rc = topo_new(g->n, out, err);

	for (int u = 0; u < g->n && !rc; u++) {
		int n_ends = 0;

		for (int k = 0; k < g->n_kinds; k++) {
			if (!past_end(g, u, g->kinds[k])) {
				ends[n_ends++] = (struct kind_end){
					sink_of(g, u, g->kinds[k]), k };
			}
		}
		qsort(ends, (size_t)n_ends, sizeof(*ends), by_end);
		for (int k = 0; k < n_ends && !rc; k++) {
			g->arc[(size_t)u * g->n_kinds + ends[k].kind] = next++;
			rc = topo_add_arc(*out, u, ends[k].dst, 1, 0, err);
		}
	}
	free(ends);
	if (rc) {
		return rc;
	}
	topo_freeze(*out);
	return 0;
}

/* The slot and channels that node u's lightpath of this move has. */
static int add_lights(struct expansion *g, const struct sym_round *r, const struct sym_move *m,
		      int32_t step, int u, int32_t *slot, struct err *err)
{
	const struct rwa_ring *ring = &g->s->ring;
	int32_t key = m->dir * g->n + m->len, v = sink_of(g, u, key);
	int32_t arc = g->arc[(size_t)u * g->n_kinds + g->kind[key]];
	int64_t lost = g->p->loss ? rwa_path_loss_mdb(ring, g->p->loss,
				optree_links(g->p, u, v, m->dir)) : 0;
	int rc = 0;

	*slot = step;
	for (size_t i = m->band; i < m->band + m->n_bands; i++) {
		const struct sym_band *b = &g->s->bands.v[i];
		int class = optree_sym_band_class(g->s, b, m->dir == RWA_CW ? u : v);
		int32_t first = b->base + class * b->width;

		if (r->slots > 1) {
			int per = r->per_slot[m->dir];

			*slot += (b->base + class) / per;
			first = r->from[m->dir] + (b->base + class) % per * b->width;
		}
		for (int k = 0; k < b->width && !rc; k++) {
			struct coll_light l = { .step = *slot, .arc = arc, .dir = m->dir,
						.loss_mdb = (int32_t)lost };

			optree_sym_colour(g->s, m->dir, first + k, &l.fibre, &l.channel);
			rc = coll_add_light(g->out, &l, err);
		}
	}
	return rc;
}

/* The node whose item the hop carries from node u; -1: beyond the line. */
static int origin_of(const struct expansion *g, const struct sym_move *m,
		     const struct sym_hop *h, int u)
{
	int behind = optree_sym_behind(g->s, m, h);
	int origin = m->dir == RWA_CW ? u - behind : u + behind;

	if (g->s->line && h->dest >= 0) {
		int links = optree_sym_links(g->s, m, h);
		int to = m->dir == RWA_CW ? origin + links : origin - links;

		return origin < g->n && to >= 0 && to < g->n ? origin : -1;
	}
	if (g->s->line) {
		return origin < g->n ? origin : -1;
	}
	return (u - h->at + g->n) % g->n;
}

/* What node u sends over a move; lights it when there is anything. */
static int add_hops(struct expansion *g, const struct sym_round *r, const struct sym_move *m,
		    int32_t step, int u, struct err *err)
{
	int32_t kind = g->kind[m->dir * g->n + m->len], slot = -1;
	int rc;

	for (size_t h = 0; h < m->n_hops; h++) {
		const struct sym_hop *hop = &g->s->hops.v[m->hop + h];
		struct coll_xfer x = {
			.arc = g->arc[(size_t)u * g->n_kinds + kind],
			.origin = origin_of(g, m, hop, u), .dest = COLL_NO_DEST,
			.first = hop->first, .last = hop->last,
			.op = COLL_OP_COPY };

		if (x.origin < 0) {
			continue;
		}
		if (slot < 0 && (rc = add_lights(g, r, m, step, u, &slot, err))) {
			return rc;
		}
		x.step = slot;
		if (hop->dest >= 0) {
			x.dest = (x.origin + hop->dest) % g->n;
		}
		if ((rc = coll_add(g->out, &x, err))) {
			return rc;
		}
	}
	return 0;
}

/* Node u's moves of a round in the order of their arcs: a long schedule is
 * then sorted as it is written. */
static void order_moves(const struct expansion *g, const struct sym_round *r,
			int u, struct kind_end *order)
{
	for (size_t k = 0; k < r->n_moves; k++) {
		const struct sym_move *m = &g->s->moves.v[r->move + k];
		int32_t kind = g->kind[m->dir * g->n + m->len];
		int32_t arc = g->arc[(size_t)u * g->n_kinds + kind];
		size_t i = k;

		for (; i > 0 && order[i - 1].dst > arc; i--) {
			order[i] = order[i - 1];
		}
		order[i] = (struct kind_end){ arc, (int32_t)k };
	}
}

/* All nodes' lightpaths of a round, and what is on them. */
static int add_round(struct expansion *g, const struct sym_round *r, int32_t step, struct err *err)
{
	struct kind_end *order = x_alloc(r->n_moves + 1, sizeof(*order));
	int rc = 0;

	for (int u = 0; u < g->n && !rc; u++) {
		order_moves(g, r, u, order);
		for (size_t k = 0; k < r->n_moves && !rc; k++) {
			const struct sym_move *m = &g->s->moves.v[r->move + (size_t)order[k].kind];

			if (!past_end(g, u, m->dir * g->n + m->len)) {
				rc = add_hops(g, r, m, step, u, err);
			}
		}
	}
	free(order);
	return rc;
}

static int fill(struct expansion *g, struct err *err)
{
	const struct optree_sym *s = g->s;
	int32_t step = 0;
	int rc = 0;

	for (size_t i = 0; i < s->rounds.n && !rc; i++) {
		const struct sym_round *r = &s->rounds.v[i];

		rc = add_round(g, r, step, err);
		step += r->slots;
	}
	if (rc || (rc = coll_finish(g->out, err))) {
		return rc;
	}
	return collectives_prove(g->p, g->out, err);
}

static int check_size(const struct optree_sym *s, struct err *err)
{
	if (s->lightpaths > COLL_MAX_LIGHTS || (int64_t)s->hops.n * s->ring.n > COLL_MAX_XFERS) {
		return err_set(err, WEFT_ELIMIT,
			       "%lld lights and %lld transfers: a written "
			       "schedule holds at most %d and %d",
			       (long long)s->lightpaths,
			       (long long)s->hops.n * s->ring.n,
			       COLL_MAX_LIGHTS, COLL_MAX_XFERS);
	}
	return 0;
}

int optree_sym_expand(const struct optree_sym *s, const struct optree_params *p,
		      struct coll_sched **out, struct err *err)
{
	struct expansion g = { 0 };
	struct topo *topo = NULL;
	char name[64];
	int rc = check_size(s, err);

	*out = NULL;
	if (rc) {
		goto out;
	}
	grid_init(&g, s, p);
	if ((rc = make_topo(&g, &topo, err))) {
		topo_free(topo);
		goto out;
	}
	if ((rc = coll_new(s->kind, topo, s->chunks, s->w[0] + s->w[1], 0, &g.out, err)) ||
	    (rc = fill(&g, err))) {
		coll_free(g.out);
		goto out;
	}
	snprintf(name, sizeof(name), g.s->line ? "segment of %d nodes"
					       : "WDM ring of %d nodes", g.n);
	coll_set_topo_name(g.out, name);
	*out = g.out;
out:
	grid_fini(&g);
	return rc;
}
