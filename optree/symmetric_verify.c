/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The proof of symmetric schedules: it replays node 0's item alone and checks each class of
 * lightpaths once; rotation extends both to all nodes.
 */
#include <stdbool.h>
#include <stdlib.h>

#include "lib/base/order.h"
#include "optree/private.h"

struct lit_band {
	int32_t dir, len;
	struct sym_band band;
};

ORDER_BY(by_colour, struct lit_band, dir, band.base, band.at)

struct proof {
	const struct optree_sym *s;
	int n;
	uint32_t all;		/* all units */
	struct arrays arrays;	/* owns all that follow */
	uint32_t *have;		/* all-gather: units held, by offset; on a
				 * line those of the other direction from n on */
	int32_t *place;		/* all-to-all: of each unit, by destination; on
				 * a line once more for the other direction */
	uint32_t *moved;	/* units that move this round, likewise */
	int64_t *more;		/* of optree_sym_senders() */
	int32_t *last;		/* tiling: end of the last lightpath, a class */
	int32_t *needs;		/* classes of a tile that is proven; 0: not */
	VEC(struct lit_band) lit;	/* bands of a round */
};

static void proof_fini(struct proof *p)
{
	arrays_fini(&p->arrays);
	vec_fini(&p->lit);
}

static int proof_init(struct proof *p, const struct optree_sym *s, struct err *err)
{
	size_t n = (size_t)s->ring.n;

	*p = (struct proof){ .s = s, .n = s->ring.n };
	if (s->units < 1 || s->units > SYM_MAX_UNITS) {
		return err_set(err, WEFT_EVERIFY, "%d units of an item: 1 to "
			       "%d are supported", s->units, SYM_MAX_UNITS);
	}
	p->all = (UINT32_C(1) << s->units) - 1;
	arrays_add(&p->arrays, p->have, 2 * n);
	arrays_add(&p->arrays, p->place, 2 * (size_t)s->units * n);
	arrays_add(&p->arrays, p->moved, 2 * n);
	arrays_add(&p->arrays, p->more, 2 * (n + 1));
	arrays_add(&p->arrays, p->last, 2 * n);
	arrays_add(&p->arrays, p->needs, n + 1);
	p->have[0] = p->have[n] = p->all;
	return 0;
}

/* Which units of the item a hop carries; 0: not whole units. */
static uint32_t units_of(const struct proof *p, const struct sym_hop *h)
{
	int64_t chunks = p->s->chunks, units = p->s->units;
	int64_t first = h->first * units, end = (h->last + 1) * units;

	if (h->first == 0 && h->last == chunks - 1) {
		return p->all;
	}
	if (h->first < 0 || h->last < h->first || h->last >= chunks ||
	    chunks % units || first % chunks || end % chunks) {
		return 0;
	}
	return ((UINT32_C(1) << end / chunks) - 1) &
	       ~((UINT32_C(1) << first / chunks) - 1);
}

/* Where an offset is found: a line has two directions from the origin. */
static int index_of(const struct proof *p, const struct sym_move *m, int at)
{
	return (p->s->line && m->dir == RWA_CCW ? p->n : 0) + at;
}

static uint32_t *held(struct proof *p, const struct sym_move *m, int at)
{
	return &p->have[index_of(p, m, at)];
}

static int to_of(int n, const struct sym_move *m, int at)
{
	return m->dir == RWA_CW ? (at + m->len) % n : (at - m->len + n) % n;
}

static int fault(struct err *err, size_t round, const struct sym_move *m,
		 const struct sym_hop *h, const char *what)
{
	return err_set(err, WEFT_EVERIFY,
		       "round %zu: offset %d, %d links %s, chunks %d to %d: %s",
		       round, h->at, m->len,
		       m->dir == RWA_CW ? "clockwise" : "counter-clockwise",
		       h->first, h->last, what);
}

/* A piece of an all-to-all can go one way only, and on a line no further than
 * to whom it is for. */
static int check_piece(struct proof *p, size_t round, const struct sym_move *m,
		       const struct sym_hop *h, struct err *err)
{
	uint32_t units = units_of(p, h), *moved;

	if (h->dest < 1 || h->dest >= p->n) {
		return fault(err, round, m, h, "no node wants it");
	}
	if (p->s->line && optree_sym_behind(p->s, m, h) + m->len > optree_sym_links(p->s, m, h)) {
		return fault(err, round, m, h, "past the end of the line");
	}
	moved = &p->moved[index_of(p, m, h->dest)];
	if (*moved & units) {
		return fault(err, round, m, h, "sent twice");
	}
	*moved |= units;
	for (int k = 0; k < p->s->units; k++) {
		if ((units >> k & 1) &&
		    p->place[p->s->units * index_of(p, m, h->dest) + k] != h->at) {
			return fault(err, round, m, h, "sent before it is held");
		}
	}
	return 0;
}

/* What is sent is held. */
static int check_send(struct proof *p, size_t round, const struct sym_move *m,
		      const struct sym_hop *h, struct err *err)
{
	uint32_t units = units_of(p, h);

	if (!units || h->at < 0 || h->at >= p->n) {
		return fault(err, round, m, h, "not a part of the item");
	}
	if (p->s->line && optree_sym_behind(p->s, m, h) + m->len >= p->n) {
		return fault(err, round, m, h, "past the end of the line");
	}
	if (p->s->kind == COLL_ALLGATHER) {
		return (units & ~*held(p, m, h->at))
			       ? fault(err, round, m, h, "sent before it is held")
			       : 0;
	}
	return check_piece(p, round, m, h, err);
}

static int arrive(struct proof *p, size_t round, const struct sym_move *m,
		  const struct sym_hop *h, struct err *err)
{
	uint32_t units = units_of(p, h);
	int to = to_of(p->n, m, h->at);

	if (p->s->kind == COLL_ALLGATHER) {
		if (*held(p, m, to) & units) {
			return fault(err, round, m, h, "delivered twice");
		}
		*held(p, m, to) |= units;
		return 0;
	}
	p->moved[index_of(p, m, h->dest)] = 0;
	for (int k = 0; k < p->s->units; k++) {
		if (units >> k & 1) {
			p->place[p->s->units * index_of(p, m, h->dest) + k] = to;
		}
	}
	return 0;
}

typedef int each_hop(struct proof *, size_t, const struct sym_move *,
		     const struct sym_hop *, struct err *);

static int for_hops(struct proof *p, size_t round, each_hop *f, struct err *err)
{
	const struct sym_round *r = &p->s->rounds.v[round];
	int rc = 0;

	for (size_t i = r->move; i < r->move + r->n_moves && !rc; i++) {
		const struct sym_move *m = &p->s->moves.v[i];

		for (size_t h = 0; h < m->n_hops && !rc; h++) {
			rc = f(p, round, m, &p->s->hops.v[m->hop + h], err);
		}
	}
	return rc;
}

/* Offset v has all units; on a line in each direction. */
static bool is_there(const struct proof *p, int v)
{
	if (p->s->kind == COLL_ALLGATHER) {
		return p->have[v] == p->all && (!p->s->line || p->have[p->n + v] == p->all);
	}
	for (int k = 0; k < p->s->units; k++) {
		if (p->place[p->s->units * v + k] != v ||
		    (p->s->line && p->place[p->s->units * (p->n + v) + k] != v)) {
			return false;
		}
	}
	return true;
}

static int check_arrived(const struct proof *p, struct err *err)
{
	for (int v = 1; v < p->n; v++) {
		if (!is_there(p, v)) {
			return err_set(err, WEFT_EVERIFY,
				       "the item of rank 0 does not arrive "
				       "at rank %d", v);
		}
	}
	return 0;
}

/* Lightpaths of len links from every node, class by class: going once round,
 * each begins where the one before has ended, and so does the first. The
 * number of classes goes to needs[len]. */
static int prove_tiling(struct proof *p, int len, struct err *err)
{
	int n = p->n, paths = p->s->line ? n - len : n;
	int32_t *end = p->last, *first = p->last + n;

	for (int c = 0; c < n; c++) {
		end[c] = first[c] = -1;
	}
	for (int v = 0; v < paths; v++) {
		int c = optree_sym_class_of(p->s, len, v);

		if (c < 0 || c >= n || end[c] > v) {
			goto clash;
		}
		first[c] = first[c] < 0 ? v : first[c];
		end[c] = v + len;
		p->needs[len] = c >= p->needs[len] ? c + 1 : p->needs[len];
	}
	for (int c = 0; c < p->needs[len]; c++) {
		if (end[c] > first[c] + n && !p->s->line) {
			goto clash;
		}
	}
	return 0;
clash:
	return err_set(err, WEFT_EVERIFY,
		       "lightpaths of %d links on a ring of %d share a link "
		       "in one class", len, n);
}

/* A move has channels, as many as its bands; they are put with the others of the round. */
static bool put_bands(struct proof *p, const struct sym_round *r, const struct sym_move *m)
{
	int64_t width = 0;

	if (m->band + m->n_bands > p->s->bands.n || (r->slots > 1 && m->n_bands != 1)) {
		return false;
	}
	for (size_t k = m->band; k < m->band + m->n_bands; k++) {
		const struct sym_band *b = &p->s->bands.v[k];

		if (b->width < 1 || b->at < 0 || b->at > b->tile - m->len || b->tile > p->n ||
		    (p->s->line && b->tile != m->len)) {
			return false;
		}
		width += b->width;
		vec_push(&p->lit, ((struct lit_band){ m->dir, m->len, *b }));
	}
	return width == m->width;
}

/* A band lies behind the one before: on the same channels, with the same tile, or behind all of
 * that. NULL: it is the first of its direction, and begins at `first` at least. */
static bool follows(const struct proof *p, const struct sym_round *r, const struct lit_band *before,
		    const struct lit_band *x, int64_t first)
{
	const struct sym_band *a, *b = &x->band;

	if (!before) {
		return b->base >= first;
	}
	a = &before->band;
	if (r->slots > 1 && a->width != b->width) {
		return false;
	}
	if (a->base == b->base) {
		return a->tile == b->tile && a->width == b->width && b->at >= a->at + before->len;
	}
	return b->base >= a->base + (int64_t)p->needs[a->tile] * (r->slots > 1 ? 1 : a->width);
}

/* The bands of a round are apart, and within its colours, which are within those that there are. */
static bool fits(struct proof *p, const struct sym_round *r)
{
	qsort(p->lit.v, p->lit.n, sizeof(*p->lit.v), by_colour);
	for (size_t i = 0; i < p->lit.n; i++) {
		const struct lit_band *x = &p->lit.v[i];
		const struct lit_band *before = i > 0 && x[-1].dir == x->dir ? x - 1 : NULL;
		int64_t from = r->from[x->dir], room = r->room[x->dir], per = r->per_slot[x->dir];
		int64_t end = x->band.base + (int64_t)p->needs[x->band.tile] *
						     (r->slots > 1 ? 1 : x->band.width);

		if (!follows(p, r, before, x, r->slots > 1 ? 0 : from) || from < 0 ||
		    from + room > p->s->w[x->dir] ||
		    (r->slots > 1 ? x->band.width * per > room || end > r->slots * per
				  : end > from + room)) {
			return false;
		}
	}
	return true;
}

static int light_fault(const struct proof *p, size_t round, const struct sym_move *m,
		       struct err *err)
{
	return err_set(err, WEFT_EVERIFY,
		       "round %zu: the light of %d links does not fit %d channels", round, m->len,
		       p->s->w[m->dir]);
}

/* Tiles share no link in a class, do not overlap, and fit. */
static int prove_light(struct proof *p, size_t round, struct err *err)
{
	const struct sym_round *r = &p->s->rounds.v[round];
	int rc = 0;

	p->lit.n = 0;
	for (size_t i = r->move; i < r->move + r->n_moves; i++) {
		const struct sym_move *m = &p->s->moves.v[i];

		if (m->len < 1 || m->len >= p->n || m->width < 1 || m->dir > RWA_CCW) {
			return err_set(err, WEFT_EVERIFY,
				       "round %zu: no lightpath has %d links "
				       "and %d channels", round, m->len,
				       m->width);
		}
		if (!put_bands(p, r, m) ||
		    m->chunks != optree_sym_senders(p->s, m, p->more).chunks) {
			return light_fault(p, round, m, err);
		}
	}
	for (size_t i = 0; i < p->lit.n && !rc; i++) {
		if (!p->needs[p->lit.v[i].band.tile]) {
			rc = prove_tiling(p, p->lit.v[i].band.tile, err);
		}
	}
	if (!rc && r->n_moves && !fits(p, r)) {
		return light_fault(p, round, &p->s->moves.v[r->move], err);
	}
	return rc;
}

int optree_sym_verify(const struct optree_sym *s, struct err *err)
{
	struct proof p;
	int rc = proof_init(&p, s, err);

	for (size_t i = 0; i < s->rounds.n && !rc; i++) {
		if (!(rc = prove_light(&p, i, err)) && !(rc = for_hops(&p, i, check_send, err))) {
			rc = for_hops(&p, i, arrive, err);
		}
	}
	if (!rc) {
		rc = check_arrived(&p, err);
	}
	proof_fini(&p);
	return rc;
}
