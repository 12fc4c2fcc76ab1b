/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The largest loads of a digraph by distance, for all nodes at once.
 *
 * The sets of ranks within t hops are rows of bits; a hop is one OR for every arc.
 * For each node the ranks exactly t hops away are dealt to its links greedily, at
 * the largest load that other nodes have shown to be needed so far: links that
 * few ranks can use first, and ranks that can use one link only before those that
 * can use two. Mostly that succeeds, and the node is settled by counting bits.
 * Only where it fails does level_fit.c find the node's own least load, which then
 * is the largest so far. Nodes are shared out to threads; the result does not
 * depend on their number, as a maximum does not depend on order.
 */
#include "collective/bfb/private.h"

#include <stdlib.h>
#include <string.h>

#include "collective/bfb/balance.h"
#include "collective/schedule/schedule.h"
#include "lib/base/bits.h"
#include "lib/base/number/rat.h"

/* Nodes that are dealt before it shows whether that works. */
#define MIN_TRIES 16

/* Rows of bits: bit v of row u of `near` (`far`): v reaches u within t - 1
 * (t) hops. */
struct bfb_reach {
	const struct topo *t;
	int n, words, sources;
	uint64_t *near, *far;
	int32_t *n_near, *n_far;	/* bits set in a row */
	int32_t *n_last;		/* in a row two hops back */
	int32_t *first, *source;	/* arcs into a node, self-loops left
					 * out: source[first[node]] ... */
	int64_t *cap;
	struct arrays arrays;		/* all of these */
};

/* A shard of which only a part is dealt out. */
struct bfb_bounds_part {
	int node;
	int64_t left;		/* in units; a shard has top.den of them */
};

/* What one thread needs to look at nodes. */
struct bfb_level_search {
	const struct bfb_reach *r;
	struct bfb_ratio top;		/* of the level, so far */
	uint64_t *fresh;		/* who is exactly t hops away */
	uint64_t *rest;			/* those of them not dealt out yet */
	uint64_t *once, *twice;		/* a row a link: who may use one, two
					 * of the links that come later */
	struct bfb_bounds_part parts[BFB_LEVEL_MAX_LINKS + 1];
	int n_parts;
	int order[BFB_LEVEL_MAX_LINKS];	/* links, those of few shards first */
	int64_t here[BFB_LEVEL_MAX_LINKS];	/* shards that a link could carry */
	int tried, dealt;		/* at this level: nodes, successes */
	struct bfb_level spread;
	struct arrays arrays;		/* the four rows */
};

bool bfb_bounds_can(const struct topo *t)
{
	return topo_n(t) <= BFB_BOUNDS_MAX_NODES && topo_max_degree(t) <= BFB_LEVEL_MAX_LINKS;
}

/* ---- rows ---- */

static uint64_t *row(const struct bfb_reach *r, uint64_t *rows, int u)
{
	return rows + (size_t)u * r->words;
}

static void load_arcs(struct bfb_reach *r)
{
	int k = 0;

	for (int u = 0; u < r->n; u++) {
		const int32_t *arcs;
		int n = topo_in(r->t, u, &arcs);

		r->first[u] = k;
		for (int i = 0; i < n; i++) {
			const struct topo_arc *a = topo_arc(r->t, arcs[i]);

			if (a->src != u) {
				r->source[k] = a->src;
				r->cap[k++] = a->cap;
			}
		}
	}
	r->first[r->n] = k;
}

/* Every node reaches itself within no hops. */
static void reach_init(struct bfb_reach *r, const struct topo *t, int sources)
{
	size_t n = (size_t)topo_n(t), m = (size_t)topo_m(t), words;

	*r = (struct bfb_reach){ .t = t, .n = (int)n, .sources = sources };
	words = (n + 63) / 64;
	r->words = (int)words;
	arrays_add(&r->arrays, r->near, n * words);
	arrays_add(&r->arrays, r->far, n * words);
	arrays_add(&r->arrays, r->n_near, n);
	arrays_add(&r->arrays, r->n_far, n);
	arrays_add(&r->arrays, r->n_last, n);
	arrays_add(&r->arrays, r->first, n + 1);
	arrays_add(&r->arrays, r->source, m);
	arrays_add(&r->arrays, r->cap, m);
	load_arcs(r);
	for (int u = 0; u < r->n; u++) {
		bits_add(row(r, r->near, u), u);
		r->n_near[u] = 1;
	}
}

/* Fills the far rows; false when they are the near ones. */
static bool reach_step(struct bfb_reach *r)
{
	bool grown = false;

	for (int u = 0; u < r->n; u++) {
		uint64_t *to = row(r, r->far, u);

		memcpy(to, row(r, r->near, u), (size_t)r->words * sizeof(*to));
		r->n_far[u] = r->n_near[u];
		if (r->n_near[u] == r->n) {
			continue;
		}
		for (int k = r->first[u]; k < r->first[u + 1]; k++) {
			bits_or(to, row(r, r->near, r->source[k]), r->words);
		}
		r->n_far[u] = (int32_t)bits_count(to, r->words);
		grown = grown || r->n_far[u] > r->n_near[u];
	}
	return grown;
}

static void reach_turn(struct bfb_reach *r)
{
	uint64_t *rows = r->near;
	int32_t *counts = r->n_last;

	r->near = r->far;
	r->far = rows;
	r->n_last = r->n_near;
	r->n_near = r->n_far;
	r->n_far = counts;
}

/* The first node that is not reached by all, and the first that does not. */
static int say_unreached(struct bfb_reach *r, struct err *err)
{
	int u = 0, v = 0;

	while (r->n_near[u] == r->n) {
		u++;
	}
	while (bits_has(row(r, r->near, u), v)) {
		v++;
	}
	return err_set(err, WEFT_EINFEASIBLE, "the digraph is not strongly "
		       "connected: rank %d cannot reach rank %d", v, u);
}

/* ---- one node ---- */

static void raise_to(struct bfb_ratio *top, int64_t num, int64_t den)
{
	if ((__int128)num * top->den > (__int128)top->num * den) {
		int64_t common = rat_gcd(num, den);

		*top = (struct bfb_ratio){ num / common, den / common };
	}
}

static bool within(int64_t items, int64_t cap, struct bfb_ratio top)
{
	return (__int128)items * top.den <= (__int128)top.num * cap;
}

static int64_t capacity_into(const struct bfb_reach *r, int u)
{
	int64_t sum = 0;

	for (int k = r->first[u]; k < r->first[u + 1]; k++) {
		sum += r->cap[k];
	}
	return sum;
}

/* A shard t hops away is t - 1 hops away from the link that it comes over:
 * no more than those can be on it, whatever the shares. */
static bool settled_by_size(const struct bfb_level_search *l, int u)
{
	const struct bfb_reach *r = l->r;
	int64_t all = r->n_far[u] - r->n_near[u];

	for (int k = r->first[u]; k < r->first[u + 1]; k++) {
		int64_t most = r->n_near[r->source[k]] -
			       r->n_last[r->source[k]];

		most = most < all ? most : all;
		if (!within(most, r->cap[k], l->top)) {
			return false;
		}
	}
	return true;
}

/* The same with what each link could carry counted. Raises the top to what
 * sets of all links but one must carry. */
static bool settled_by_counts(struct bfb_level_search *l, int u)
{
	const struct bfb_reach *r = l->r;
	int64_t all = r->n_far[u] - r->n_near[u], caps = capacity_into(r, u);
	const uint64_t *near = row(r, r->near, u), *far = row(r, r->far, u);
	bool settled = true;

	for (int i = 0; i < r->words; i++) {
		l->fresh[i] = far[i] & ~near[i];
	}
	for (int k = r->first[u]; k < r->first[u + 1]; k++) {
		int64_t here = bits_count_and(l->fresh, row(r, r->near, r->source[k]), r->words);

		l->here[k - r->first[u]] = here;
		settled = settled && within(here, r->cap[k], l->top);
		if (caps > r->cap[k]) {
			raise_to(&l->top, all - here, caps - r->cap[k]);
		}
	}
	return settled;
}

/* Sorts the links into u and notes for each who can wait for later ones. */
static void plan_dealing(struct bfb_level_search *l, int u)
{
	const struct bfb_reach *r = l->r;
	int n = r->first[u + 1] - r->first[u];

	for (int w = 0; w < n; w++) {
		int k = w;

		for (; k > 0 && l->here[l->order[k - 1]] > l->here[w]; k--) {
			l->order[k] = l->order[k - 1];
		}
		l->order[k] = w;
	}
	memset(row(r, l->once, n - 1), 0, (size_t)r->words * sizeof(*l->once));
	memset(row(r, l->twice, n - 1), 0, (size_t)r->words * sizeof(*l->twice));
	for (int k = n - 1; k > 0; k--) {
		int v = r->source[r->first[u] + l->order[k]];

		bits_twice(row(r, l->once, k - 1), row(r, l->twice, k - 1), row(r, l->once, k),
			   row(r, l->twice, k), row(r, r->near, v), r->words);
	}
}

/* Dealing at one link: what it can carry, who can wait. */
struct bfb_hand {
	const uint64_t *near, *once, *twice;
	int64_t room;
};

/* What no later link can carry; the room may fall below zero. */
static void deal_forced(struct bfb_level_search *l, struct bfb_hand *h)
{
	h->room -= l->top.den *
		   bits_take(l->rest, h->near, h->once, l->r->n, l->r->words);
	for (int i = 0; i < l->n_parts; i++) {
		struct bfb_bounds_part *p = &l->parts[i];

		if (bits_has(h->near, p->node) && !bits_has(h->once, p->node)) {
			h->room -= p->left;
			p->left = 0;
		}
	}
}

static void deal_parts(struct bfb_level_search *l, struct bfb_hand *h)
{
	int kept = 0;

	for (int i = 0; i < l->n_parts; i++) {
		struct bfb_bounds_part p = l->parts[i];

		if (bits_has(h->near, p.node)) {
			int64_t take = p.left < h->room ? p.left : h->room;

			h->room -= take;
			p.left -= take;
		}
		if (p.left > 0) {
			l->parts[kept++] = p;
		}
	}
	l->n_parts = kept;
}

/* Whole shards of those that cannot wait for two more links, or of all. */
static void deal_whole(struct bfb_level_search *l, struct bfb_hand *h, const uint64_t *wait)
{
	h->room -= l->top.den * bits_take(l->rest, h->near, wait,
					  h->room / l->top.den, l->r->words);
}

/* Fills the room that no whole shard fits with a part of one. */
static void deal_rest(struct bfb_level_search *l, struct bfb_hand *h)
{
	for (int i = 0; i < l->r->words && h->room > 0; i++) {
		uint64_t set = l->rest[i] & h->near[i];

		if (set) {
			l->rest[i] &= ~(set & -set);
			l->parts[l->n_parts++] = (struct bfb_bounds_part){
				64 * i + __builtin_ctzll(set),
				l->top.den - h->room };
			h->room = 0;
		}
	}
}

/* Deals the shards to the links within the top, to each first those that
 * cannot wait. */
static bool deal(struct bfb_level_search *l, int u)
{
	const struct bfb_reach *r = l->r;
	int n = r->first[u + 1] - r->first[u];
	uint64_t left = 0;

	plan_dealing(l, u);
	memcpy(l->rest, l->fresh, (size_t)r->words * sizeof(*l->rest));
	l->n_parts = 0;
	for (int k = 0; k < n; k++) {
		int arc = r->first[u] + l->order[k];
		struct bfb_hand h = { row(r, r->near, r->source[arc]),
				  row(r, l->once, k), row(r, l->twice, k),
				  l->top.num * r->cap[arc] };

		deal_forced(l, &h);
		if (h.room < 0) {
			return false;
		}
		deal_parts(l, &h);
		deal_whole(l, &h, h.twice);
		deal_whole(l, &h, NULL);
		deal_rest(l, &h);
	}
	for (int i = 0; i < r->words; i++) {
		left |= l->rest[i];
	}
	return left == 0 && l->n_parts == 0;
}

/* When dealing works nothing more need be known. Where it mostly does not, it
 * is no longer tried at this level: a program costs less. */
static bool settled_by_dealing(struct bfb_level_search *l, int u)
{
	bool settled;

	if (l->tried >= MIN_TRIES && 2 * l->dealt < l->tried) {
		return false;
	}
	settled = deal(l, u);
	l->tried++;
	l->dealt += settled;
	return settled;
}

/* Adds the fresh of word i of the rows to the program: columns of the rows of
 * the links are what each may use. */
static void add_fresh(struct bfb_level_search *l, int u, int i)
{
	const struct bfb_reach *r = l->r;
	int first = r->first[u], n = r->first[u + 1] - first;
	uint64_t rows[BFB_LEVEL_MAX_LINKS], usable[64];

	for (int k = 0; k < n; k++) {
		rows[k] = row(r, r->near, r->source[first + k])[i];
	}
	bits_turn(rows, n, usable);
	for (uint64_t set = l->fresh[i]; set; set &= set - 1) {
		bfb_level_add(&l->spread, usable[__builtin_ctzll(set)]);
	}
}

/* Raises the top to the least load of u, when it is more. */
static void solve(struct bfb_level_search *l, int u)
{
	const struct bfb_reach *r = l->r;
	int from = r->first[u];
	bool fits = false;

	bfb_level_begin(&l->spread, r->first[u + 1] - from, r->cap + from,
			r->n_far[u] - r->n_near[u]);
	for (int i = 0; i < r->words; i++) {
		if (l->fresh[i]) {
			add_fresh(l, u, i);
		}
	}
	while (!fits) {
		bfb_level_fits(&l->spread, &l->top, &fits);
	}
}

static void look_init(struct bfb_level_search *l, const struct bfb_reach *r)
{
	size_t words = (size_t)r->words;
	size_t links = (size_t)topo_max_degree(r->t) + 1;

	*l = (struct bfb_level_search){ .r = r, .top = { 0, 1 } };
	arrays_add(&l->arrays, l->fresh, words);
	arrays_add(&l->arrays, l->rest, words);
	arrays_add(&l->arrays, l->once, links * words);
	arrays_add(&l->arrays, l->twice, links * words);
}

/* What the capacity of all links together must carry comes first: it is most
 * often the top, and nodes are settled against it. */
static void solve_level(struct bfb_level_search *l)
{
	const struct bfb_reach *r = l->r;

	l->top = (struct bfb_ratio){ 0, 1 };
	l->tried = l->dealt = 0;
	for (int u = 0; u < r->sources; u++) {
		raise_to(&l->top, r->n_far[u] - r->n_near[u], capacity_into(r, u));
	}
	for (int u = 0; u < r->sources; u++) {
		if (r->n_far[u] > r->n_near[u] && !settled_by_size(l, u) &&
		    !settled_by_counts(l, u) && !settled_by_dealing(l, u)) {
			solve(l, u);
		}
	}
}

int bfb_bounds_solve(const struct topo *t, int sources, struct bfb_bounds *out, struct err *err)
{
	struct bfb_level_search l = { 0 };
	struct bfb_reach r;
	int rc = 0;

	reach_init(&r, t, sources);
	look_init(&l, &r);
	while (reach_step(&r)) {
		solve_level(&l);
		vec_push(out, l.top);
		reach_turn(&r);
	}
	for (int u = 0; u < r.n && !rc; u++) {
		if (r.n_near[u] < r.n) {
			rc = say_unreached(&r, err);
		}
	}
	arrays_fini(&l.arrays);
	bfb_level_fini(&l.spread);
	arrays_fini(&r.arrays);
	return rc;
}

/* ---- of bandwidth ---- */

/* The least capacity into a node, or out of one, self-loops left out. */
static int64_t min_capacity(const struct topo *t, bool out)
{
	int64_t least = INT64_MAX;

	for (int u = 0; u < topo_n(t); u++) {
		const int32_t *in;
		int first, n = out ? topo_out(t, u, &first) : topo_in(t, u, &in);
		int64_t sum = 0;

		for (int i = 0; i < n; i++) {
			const struct topo_arc *a = topo_arc(t, out ? first + i : in[i]);

			sum += a->src != a->dst ? a->cap : 0;
		}
		least = sum < least ? sum : least;
	}
	return least;
}

void coll_late_bound(enum coll_kind kind, const struct topo *topo, mpq_t bound)
{
	int64_t n = topo_n(topo), ports = bfb_count_ports(topo);
	mpq_t part;

	mpq_init(part);
	mpq_set_ui(bound, 0, 1);
	for (int out = 0; out < 2; out++) {
		int64_t cap = min_capacity(topo, out);

		if (cap > 0 && kind != (out ? COLL_ALLGATHER : COLL_REDUCE_SCATTER)) {
			rat_set(part, (n - 1) * ports, n);
			mpz_mul_si(mpq_denref(part), mpq_denref(part), cap);
			mpq_canonicalize(part);
			mpq_add(bound, bound, part);
		}
	}
	mpq_clear(part);
}
