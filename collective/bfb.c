/*
 * Breadth-first-broadcast schedules; see collective.h.
 *
 * A program belongs to the node that takes the shards: at step t node u
 * takes the shard of every rank at distance t, over the links that end
 * shortest paths. First all programs are solved; their loads decide the
 * chunks P; then each is split into whole chunks.
 */
#include <stdlib.h>
#include <string.h>

#include "collective/balance.h"
#include "collective/find.h"
#include "collective/private.h"
#include "collective/shift.h"
#include "collective/timed.h"
#include "collective/tops.h"
#include "lib/base/parallel.h"
#include "lib/base/rat.h"

/* Up to this part of the nodes searching from each is cheaper than growing
 * the sets of all. */
#define FEW_SOURCES 64

/* One direction: the all-gather of a digraph. */
struct side {
	const struct topo *t;
	bool moved;		/* the first nodes are solved and moved by: */
	struct shift shift;
	int sources;		/* nodes that receipts are made for:
				 * shift.fixed, or all */
	int diameter;
	struct tops tops;	/* the largest load of a level */
	const struct timed *timed;	/* NULL: latencies do not matter */
	struct timed_list until;	/* else: when a level is done, */
	struct timed_list bounds;	/* and no earlier than */
};

/* The links into one node and who can use them. */
struct view {
	const struct topo *t;
	int node, n_links;
	int32_t *links;		/* arcs into the node, self-loops left out */
	int64_t *caps, *latencies;
	int32_t *first;		/* arcs into a node: source[first[node]] ... */
	int32_t *source;	/* where each comes from: one array to walk */
	int words;
	uint64_t *usable;	/* a row a rank: links that end its shortest
				 * paths */
	int32_t *dist;		/* to the node */
	int32_t *queue;		/* ranks by distance */
	int levels;
	int *level;		/* where a distance begins in the queue;
				 * level[levels + 1] = its end */
};

/* A part of a shard that the node that was solved takes. */
struct receipt {
	int32_t dist, link, origin, first, last;
};

struct receipts {
	struct receipt *v;
	size_t n, cap;
};

/* ---- views ---- */

static void view_fini(struct view *v)
{
	free(v->links);
	free(v->caps);
	free(v->latencies);
	free(v->first);
	free(v->source);
	free(v->usable);
	free(v->dist);
	free(v->queue);
	free(v->level);
}

static void load_sources(struct view *v)
{
	int k = 0;

	for (int u = 0; u < topo_n(v->t); u++) {
		const int32_t *arcs;
		int n = topo_in(v->t, u, &arcs);

		v->first[u] = k;
		for (int i = 0; i < n; i++) {
			v->source[k++] = topo_arc(v->t, arcs[i])->src;
		}
	}
	v->first[topo_n(v->t)] = k;
}

static int view_init(struct view *v, const struct topo *t, struct err *err)
{
	size_t n = topo_n(t), degree = topo_max_degree(t);

	memset(v, 0, sizeof(*v));
	v->t = t;
	v->words = (int)(degree / 64 + 1);
	v->links = malloc((degree + 1) * sizeof(*v->links));
	v->caps = malloc((degree + 1) * sizeof(*v->caps));
	v->latencies = malloc((degree + 1) * sizeof(*v->latencies));
	v->first = malloc((n + 1) * sizeof(*v->first));
	v->source = malloc(((size_t)topo_m(t) + 1) * sizeof(*v->source));
	v->usable = malloc(n * v->words * sizeof(*v->usable));
	v->dist = malloc(n * sizeof(*v->dist));
	v->queue = malloc(n * sizeof(*v->queue));
	v->level = malloc((n + 2) * sizeof(*v->level));
	if (!v->links || !v->caps || !v->latencies || !v->first ||
	    !v->source || !v->usable || !v->dist || !v->queue || !v->level) {
		return err_nomem(err);
	}
	load_sources(v);
	return 0;
}

static uint64_t *usable(const struct view *v, int rank)
{
	return v->usable + (size_t)rank * v->words;
}

static void load_links(struct view *v)
{
	const int32_t *arcs;
	int n = topo_in(v->t, v->node, &arcs);

	v->n_links = 0;
	for (int i = 0; i < n; i++) {
		const struct topo_arc *a = topo_arc(v->t, arcs[i]);

		if (a->src != a->dst) {
			v->links[v->n_links] = arcs[i];
			v->latencies[v->n_links] = a->latency_ns;
			v->caps[v->n_links++] = a->cap;
		}
	}
}

/* Enters w, one hop before a node at distance `dist`, when it is new; true
 * when that is its distance. */
static bool enter(struct view *v, int w, int32_t dist, int *tail)
{
	if (v->dist[w] < 0) {
		v->dist[w] = dist + 1;
		v->queue[(*tail)++] = w;
		memset(usable(v, w), 0, (size_t)v->words * sizeof(*v->usable));
	}
	return v->dist[w] == dist + 1;
}

/* Ranks one hop before the node itself use the links. */
static void visit_node(struct view *v, int *tail)
{
	for (int i = 0; i < v->n_links; i++) {
		int w = topo_arc(v->t, v->links[i])->src;

		enter(v, w, 0, tail);
		usable(v, w)[i / 64] |= UINT64_C(1) << (i % 64);
	}
}

/* Ranks one hop before x can use what x can. */
static void visit(struct view *v, int x, int *tail)
{
	const uint64_t *from = usable(v, x);
	int32_t dist = v->dist[x];

	for (int k = v->first[x]; k < v->first[x + 1]; k++) {
		int w = v->source[k];

		if (enter(v, w, dist, tail)) {
			for (int i = 0; i < v->words; i++) {
				usable(v, w)[i] |= from[i];
			}
		}
	}
}

/* The same with one word a rank, as nearly all digraphs have: this is where
 * synthesis spends its time. */
static void visit_fast(struct view *v, int x, int *tail)
{
	uint64_t from = v->usable[x], *to = v->usable;
	int32_t next = v->dist[x] + 1, *dist = v->dist;
	const int32_t *end = v->source + v->first[x + 1];

	for (const int32_t *w = v->source + v->first[x]; w < end; w++) {
		if (dist[*w] < 0) {
			dist[*w] = next;
			v->queue[(*tail)++] = *w;
			to[*w] = from;
		} else if (dist[*w] == next) {
			to[*w] |= from;
		}
	}
}

/* Breadth-first search backwards from node. WEFT_EINFEASIBLE names a rank
 * that cannot reach it. */
static int view_load(struct view *v, int node, struct err *err)
{
	int n = topo_n(v->t), tail = 0;

	v->node = node;
	load_links(v);
	for (int u = 0; u < n; u++) {
		v->dist[u] = -1;
	}
	v->dist[node] = 0;
	v->levels = 0;
	v->level[0] = 0;
	v->queue[tail++] = node;
	for (int head = 0; head < tail; head++) {
		int x = v->queue[head];

		if (v->dist[x] > v->levels) {
			v->level[++v->levels] = head;
		}
		if (head == 0) {
			visit_node(v, &tail);
		} else if (v->words == 1) {
			visit_fast(v, x, &tail);
		} else {
			visit(v, x, &tail);
		}
	}
	v->level[v->levels + 1] = tail;
	for (int u = 0; u < n && tail < n; u++) {
		if (v->dist[u] < 0) {
			return err_set(err, WEFT_EINFEASIBLE,
				       "the digraph is not strongly "
				       "connected: rank %d cannot reach rank "
				       "%d", u, node);
		}
	}
	return 0;
}

static int cmp_usable(const void *pa, const void *pb, void *arg)
{
	const struct view *v = arg;
	int32_t a = *(const int32_t *)pa, b = *(const int32_t *)pb;
	int c;

	if (v->words == 1) {
		c = (v->usable[a] > v->usable[b]) -
		    (v->usable[a] < v->usable[b]);
	} else {
		c = memcmp(usable(v, a), usable(v, b),
			   (size_t)v->words * sizeof(*v->usable));
	}
	return c ? c : a < b ? -1 : a > b;
}

/* ---- programs ---- */

static void balance_fini(struct balance *b)
{
	free(b->groups);
	free(b->use);
}

static int add_group(const struct view *v, const uint64_t *links,
		     struct balance *b, size_t *cap, struct err *err)
{
	struct balance_group *g = &b->groups[b->n_groups++];

	*g = (struct balance_group){ .first = b->n_use };
	if (vec_grow((void **)&b->use, cap, (size_t)b->n_use + v->n_links,
		     sizeof(*b->use))) {
		return err_nomem(err);
	}
	for (int w = 0; w < v->n_links; w++) {
		if (links[w / 64] >> (w % 64) & 1) {
			b->use[b->n_use++] = w;
		}
	}
	g->n = b->n_use - g->first;
	return 0;
}

/* The program of the view's node at distance t: ranks with equal links side
 * by side in the queue, a group each. balance_fini also after an error. */
static int load_program(struct view *v, int t, struct balance *b,
			struct err *err)
{
	int32_t *ranks = v->queue + v->level[t];
	int n = v->level[t + 1] - v->level[t], rc = 0;
	size_t cap = 0, row = (size_t)v->words * sizeof(*v->usable);

	*b = (struct balance){ .n_links = v->n_links, .cap = v->caps };
	b->groups = malloc((size_t)n * sizeof(*b->groups));
	if (!b->groups) {
		return err_nomem(err);
	}
	qsort_r(ranks, n, sizeof(*ranks), cmp_usable, v);
	for (int i = 0; i < n && !rc; i++) {
		const uint64_t *links = usable(v, ranks[i]);

		if (i == 0 || memcmp(links, usable(v, ranks[i - 1]), row)) {
			rc = add_group(v, links, b, &cap, err);
		}
		b->groups[b->n_groups - 1].items++;
	}
	return rc;
}

/* Raises the top of level t. */
static int raise_top(struct side *s, int t, struct ratio load, struct err *err)
{
	while (s->tops.n < (size_t)t) {
		if (vec_push(&s->tops, (struct ratio){ 0, 1 })) {
			return err_nomem(err);
		}
	}
	if (ratio_cmp(load, s->tops.v[t - 1]) > 0) {
		s->tops.v[t - 1] = load;
	}
	return 0;
}

/* The least load of the view's node at distance t; or, when that is less than
 * `top`, the largest of other nodes, perhaps top: it decides nothing then. */
static int solve_level(struct view *v, int t, struct ratio top,
		       struct ratio *load, struct err *err)
{
	int64_t items[1 << BALANCE_MAX_SUBSETS];
	struct balance b;
	int rc;

	if (v->n_links <= BALANCE_MAX_SUBSETS) {
		memset(items, 0, sizeof(*items) << v->n_links);
		for (int i = v->level[t]; i < v->level[t + 1]; i++) {
			items[*usable(v, v->queue[i])]++;
		}
		*load = balance_subsets(items, v->caps, v->n_links);
		return 0;
	}
	rc = load_program(v, t, &b, err);
	if (!rc && top.num > 0 && balance_is_below(&b, top)) {
		*load = top;
	} else if (!rc) {
		rc = balance_solve(&b, load, err);
	}
	balance_fini(&b);
	return rc;
}

/* When the view's node has all of distance t, whole chunks of it over
 * share[use]. Raises the time of the level. b: balance_fini, also after an
 * error; *share: free(). */
static int time_level(struct side *s, struct view *v, int t,
		      struct balance *b, int64_t **share, struct err *err)
{
	int rc = load_program(v, t, b, err);

	*share = NULL;
	if (!rc) {
		*share = malloc(((size_t)b->n_use + 1) * sizeof(**share));
		rc = *share ? timed_list_need(&s->until, (size_t)t, err)
			    : err_nomem(err);
	}
	rc = rc ? rc : timed_list_need(&s->bounds, (size_t)t, err);
	return rc ? rc : timed_solve(s->timed, b, v->latencies,
				     s->until.v[t - 1], s->bounds.v[t - 1],
				     *share, err);
}

static int time_node(struct side *s, struct view *v, int node, struct err *err)
{
	int rc = view_load(v, node, err);

	for (int t = 1; t <= v->levels && !rc; t++) {
		struct balance b;
		int64_t *share;

		rc = time_level(s, v, t, &b, &share, err);
		free(share);
		balance_fini(&b);
	}
	return rc;
}

static int solve_node(struct side *s, struct view *v, int node,
		      struct err *err)
{
	int rc = view_load(v, node, err);

	for (int t = 1; t <= v->levels && !rc; t++) {
		struct ratio load = { 0, 1 }, top = { 0, 1 };

		if (s->tops.n >= (size_t)t) {
			top = s->tops.v[t - 1];
		}
		rc = solve_level(v, t, top, &load, err);
		rc = rc ? rc : raise_top(s, t, load, err);
	}
	return rc;
}

static void side_fini(struct side *s)
{
	vec_fini(&s->tops);
	timed_list_fini(&s->until);
	timed_list_fini(&s->bounds);
}

/* Node by node: where a few stand for all, and where bits would take too much
 * memory. */
static int solve_nodes(struct side *s, struct err *err)
{
	struct view v;
	int rc = view_init(&v, s->t, err);

	for (int u = 0; u < s->sources && !rc; u++) {
		rc = s->timed ? time_node(s, &v, u, err)
			      : solve_node(s, &v, u, err);
	}
	view_fini(&v);
	return rc;
}

/* Nodes, the first of all, that stand for the rest: translations move them,
 * and the mirror turns a run that they move round. */
static int count_solved(const struct side *s)
{
	return shift_mirrors(s->t) ? s->sources - s->sources / 2 : s->sources;
}

/* Solves all programs of t. side_fini also after an error. */
static int side_solve(struct side *s, const struct topo *t,
		      const struct timed *timed, struct err *err)
{
	int n = topo_n(t), rc;

	*s = (struct side){ .t = t, .timed = timed };
	rc = shift_find(t, &s->shift, &s->moved, err);
	s->sources = s->moved ? s->shift.fixed : n;
	if (!rc && !timed && s->sources > n / FEW_SOURCES && tops_can(t)) {
		rc = tops_solve(t, count_solved(s), &s->tops, err);
	} else if (!rc) {
		rc = solve_nodes(s, err);
	}
	s->diameter = (int)(timed ? s->until.n : s->tops.n);
	return rc;
}

/* ---- chunks ---- */

/* Sum over the levels of the largest load when rounded up to whole chunks
 * of P, as numerator over P. */
static int64_t rounded(const struct side *sides, int n, int64_t p)
{
	int64_t sum = 0;

	for (int i = 0; i < n; i++) {
		for (size_t t = 0; t < sides[i].tops.n; t++) {
			sum += ratio_ceil_mul(sides[i].tops.v[t], p);
		}
	}
	return sum;
}

/* Least common denominator of all tops, 0 when above the limit. */
static int64_t common_chunks(const struct side *sides, int n)
{
	int64_t p = 1;

	for (int i = 0; i < n; i++) {
		for (size_t t = 0; t < sides[i].tops.n; t++) {
			int64_t den = sides[i].tops.v[t].den;

			p *= den / coll_gcd(den, p);
			if (p > COLL_BFB_MAX_CHUNKS) {
				return 0;
			}
		}
	}
	return p;
}

static int choose_chunks(const struct side *sides, int n)
{
	int64_t best = common_chunks(sides, n);
	struct ratio least, r;

	if (best) {
		return (int)best;
	}
	best = 1;
	least = (struct ratio){ rounded(sides, n, 1), 1 };
	for (int64_t p = 2; p <= COLL_BFB_MAX_CHUNKS; p++) {
		r = (struct ratio){ rounded(sides, n, p), p };
		if (ratio_cmp(r, least) < 0) {
			least = r;
			best = p;
		}
	}
	return (int)best;
}

/* Deals the shares of one group out to its ranks, whole shards as far as
 * they go: at most ranks + links - 1 ranges. Consumes share. */
static int deal(const struct balance *b, const struct balance_group *g,
		const int32_t *ranks, int t, int chunks, int64_t *share,
		struct receipts *out, struct err *err)
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
			if (vec_push(out, (struct receipt){ t, b->use[i],
				     ranks[k], from, from + part - 1 })) {
				return err_nomem(err);
			}
			from += part;
		}
	}
	return 0;
}

/* Whole chunks by the time at which level t is done, which is known. */
static int split_timed(const struct side *s, const struct view *v, int t,
		       const struct balance *b, int64_t *share,
		       struct err *err)
{
	mpq_t until, bound;
	int rc;

	mpq_inits(until, bound, NULL);
	mpq_set(until, s->until.v[t - 1]);
	rc = timed_solve(s->timed, b, v->latencies, until, bound, share, err);
	mpq_clears(until, bound, NULL);
	return rc;
}

/* What the view's node takes at distance t, with the load of that distance or
 * the least above it that whole chunks allow. */
static int split_level(const struct side *s, struct view *v, int t, int chunks,
		       struct receipts *out, struct err *err)
{
	const int32_t *ranks = v->queue + v->level[t];
	struct balance b;
	int64_t *share = NULL;
	int rc = load_program(v, t, &b, err);

	if (!rc) {
		share = malloc(((size_t)b.n_use + 1) * sizeof(*share));
		rc = share ? 0 : err_nomem(err);
	}
	if (!rc && s->timed) {
		rc = split_timed(s, v, t, &b, share, err);
	} else if (!rc) {
		struct ratio load = s->tops.v[t - 1];
		struct ratio most = { load.num * chunks, load.den };

		rc = balance_split(&b, chunks, &most, share, err);
	}
	for (int g = 0; g < b.n_groups && !rc; g++) {
		rc = deal(&b, &b.groups[g], ranks, t, chunks, share, out, err);
		ranks += b.groups[g].items;
	}
	free(share);
	balance_fini(&b);
	return rc;
}

/* ---- the schedule ---- */

/* Nodes from which on the receipts are made on several threads. */
#define SHARED_NODES 256

/* Where the transfers of a side go: all-gather forwards from step `base`;
 * reduce-scatter backwards in time over the arcs that `back` names. */
struct target {
	int base;
	const int32_t *back;	/* NULL: forwards */
};

/* The transfers of a part of the nodes, or of the translations. */
struct yield {
	VEC(struct coll_xfer) xfers;
	int rc;
	struct err err;
};

struct crew {
	const struct side *s;
	const struct target *to;
	int chunks, n_parts;
	struct yield parts[PARALLEL_MAX];
};

static int emit(const struct crew *c, const struct receipt *r, int origin,
		int arc, struct yield *out)
{
	struct coll_xfer x = {
		.step = c->to->base + r->dist - 1, .arc = arc,
		.origin = origin, .dest = COLL_NO_DEST, .first = r->first,
		.last = r->last, .op = COLL_COPY,
	};

	if (c->to->back) {
		x.step = c->to->base + c->s->diameter - r->dist;
		x.arc = c->to->back[arc];
		x.op = COLL_REDUCE;
	}
	return vec_push(&out->xfers, x) ? err_nomem(&out->err) : 0;
}

/* The view's node's receipts, moved by translations from .. to - 1. */
static int emit_moved(const struct crew *c, const struct view *v,
		      const struct receipts *rs, int from, int to,
		      struct yield *out)
{
	const struct shift *shift = &c->s->shift;
	int32_t *moved = malloc(((size_t)v->n_links + 1) * sizeof(*moved));
	int rc = moved ? 0 : err_nomem(&out->err);

	for (int by = from; by < to && !rc; by++) {
		rc = shift_links(c->s->t, shift, v->node, by, v->links,
				 v->n_links, moved, &out->err);
		for (size_t i = 0; i < rs->n && !rc; i++) {
			const struct receipt *r = &rs->v[i];

			rc = emit(c, r, shift_node(shift, r->origin, by),
				  moved[r->link], out);
		}
	}
	free(moved);
	return rc;
}

static int emit_node(const struct crew *c, const struct view *v,
		     const struct receipts *rs, struct yield *out)
{
	int rc = 0;

	for (size_t i = 0; i < rs->n && !rc; i++) {
		const struct receipt *r = &rs->v[i];

		rc = emit(c, r, r->origin, v->links[r->link], out);
	}
	return rc;
}

static int make_receipts(const struct crew *c, struct view *v, int node,
			 struct receipts *rs, struct err *err)
{
	int rc = view_load(v, node, err);

	rs->n = 0;
	for (int t = 1; t <= v->levels && !rc; t++) {
		rc = split_level(c->s, v, t, c->chunks, rs, err);
	}
	return rc;
}

/* Some of the nodes; or, where they move, all that stand for the rest, moved
 * some of the ways. */
static void emit_part(void *arg, int i)
{
	struct crew *c = arg;
	const struct side *s = c->s;
	struct yield *out = &c->parts[i];
	struct receipts rs = { 0 };
	struct view v;
	int from, to, lo = 0, hi = s->sources;
	int rc = view_init(&v, s->t, &out->err);

	parallel_cut(s->moved ? s->shift.moves : s->sources, c->n_parts, i,
		     &from, &to);
	if (!s->moved) {
		lo = from;
		hi = to;
	}
	for (int u = lo; u < hi && !rc; u++) {
		rc = make_receipts(c, &v, u, &rs, &out->err);
		if (!rc) {
			rc = s->moved ? emit_moved(c, &v, &rs, from, to, out)
				      : emit_node(c, &v, &rs, out);
		}
	}
	out->rc = rc;
	vec_fini(&rs);
	view_fini(&v);
}

/* Part by part, so that the threads do not show. */
static int side_emit(const struct side *s, const struct target *to,
		     struct coll_sched *sched, struct err *err)
{
	struct crew c = { .s = s, .to = to, .chunks = sched->chunks };
	int rc = 0;

	c.n_parts = topo_n(s->t) < SHARED_NODES ? 1 : parallel_width();
	parallel_run(c.n_parts, emit_part, &c);
	for (int i = 0; i < c.n_parts; i++) {
		struct yield *p = &c.parts[i];

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

/* What is scheduled: the digraph forwards, its transpose, or both. */
struct bfb {
	struct side sides[2];
	int n_sides;
	struct topo *reversed;	/* NULL for all-gather */
	int32_t *back;		/* arcs of reversed to arcs of the digraph */
};

static void bfb_fini(struct bfb *b)
{
	for (int i = 0; i < b->n_sides; i++) {
		side_fini(&b->sides[i]);
	}
	topo_free(b->reversed);
	free(b->back);
}

static int bfb_solve(struct bfb *b, enum coll_kind kind, const struct topo *t,
		     const struct timed *timed, struct err *err)
{
	int rc = 0;

	memset(b, 0, sizeof(*b));
	if (kind != COLL_ALLGATHER) {
		b->back = malloc(((size_t)topo_m(t) + 1) * sizeof(*b->back));
		rc = b->back ? topo_transpose(t, &b->reversed, b->back, err)
			     : err_nomem(err);
		rc = rc ? rc : side_solve(&b->sides[b->n_sides++],
					  b->reversed, timed, err);
	}
	if (kind != COLL_REDUCE_SCATTER && !rc) {
		rc = side_solve(&b->sides[b->n_sides++], t, timed, err);
	}
	return rc;
}

static int bfb_emit(const struct bfb *b, struct coll_sched *sched,
		    struct err *err)
{
	struct target to = { .base = 0 };
	int rc = 0;

	for (int i = 0; i < b->n_sides && !rc; i++) {
		const struct side *s = &b->sides[i];

		to.back = s->t == b->reversed ? b->back : NULL;
		rc = side_emit(s, &to, sched, err);
		to.base += s->diameter;
	}
	return rc;
}

int coll_bfb(enum coll_kind kind, struct topo *topo, struct coll_sched **out,
	     struct err *err)
{
	return coll_bfb_cut(kind, topo, 0, out, err);
}

/* An empty schedule: checks the digraph, which it takes over, the kind and the
 * chunks; 0 of these are for later. */
static int begin(enum coll_kind kind, struct topo *topo, int chunks,
		 struct coll_sched **out, struct err *err)
{
	*out = NULL;
	if (chunks < 0 || chunks > COLL_MAX_CHUNKS) {
		topo_free(topo);
		return err_set(err, WEFT_EINVAL, "%d chunks: expected 1 to %d",
			       chunks, COLL_MAX_CHUNKS);
	}
	if (kind == COLL_ALLTOALL || kind == COLL_BROADCAST) {
		topo_free(topo);
		return err_set(err, WEFT_EUNSUPPORTED,
			       "breadth-first broadcast makes no %s",
			       coll_kind_name(kind));
	}
	return coll_new(kind, topo, 1, 0, 0, out, err);
}

/* The transfers of what is solved, in so many chunks, replayed. */
static int complete(const struct bfb *b, struct coll_sched *sched, int chunks,
		    struct err *err)
{
	int rc;

	sched->chunks = chunks;
	rc = bfb_emit(b, sched, err);
	rc = rc ? rc : coll_finish(sched, err);
	if (!rc && coll_prove(sched, NULL, err)) {
		rc = err_wrap(err, "breadth-first broadcast");
	}
	return rc;
}

int coll_bfb_cut(enum coll_kind kind, struct topo *topo, int chunks,
		 struct coll_sched **out, struct err *err)
{
	struct coll_sched *sched;
	struct bfb b = { .n_sides = 0 };
	int rc = begin(kind, topo, chunks, &sched, err);

	*out = NULL;
	rc = rc ? rc : bfb_solve(&b, kind, topo, NULL, err);
	if (!rc) {
		chunks = chunks ? chunks : choose_chunks(b.sides, b.n_sides);
		rc = complete(&b, sched, chunks, err);
	}
	bfb_fini(&b);
	if (rc) {
		coll_free(sched);
		return rc;
	}
	*out = sched;
	return 0;
}

/* ---- with latencies ---- */

/* Numbers of chunks that are tried until the time is this near to the bound
 * that holds for any. */
static const int ladder[] = { 1, 2, 4, 12, 60, 720, COLL_BFB_MAX_CHUNKS };
#define NEAR_NUM 1001
#define NEAR_DEN 1000

/* The times of all levels, and what they cannot be below. */
static void sum_times(const struct bfb *b, mpq_t time, mpq_t bound)
{
	rat_set(time, 0, 1);
	rat_set(bound, 0, 1);
	for (int i = 0; i < b->n_sides; i++) {
		timed_list_add(&b->sides[i].until, time);
		timed_list_add(&b->sides[i].bounds, bound);
	}
}

/* True when the time is near the bound. */
static bool is_near(const mpq_t time, const mpq_t bound)
{
	mpq_t most;
	bool near;

	mpq_init(most);
	rat_set(most, NEAR_NUM, NEAR_DEN);
	mpq_mul(most, most, bound);
	near = mpq_cmp(time, most) <= 0;
	mpq_clear(most);
	return near;
}

/* Solves with so many chunks; raises the bound. */
static int time_cut(struct bfb *b, enum coll_kind kind, const struct topo *t,
		    struct timed *p, int chunks, mpq_t time, mpq_t bound,
		    struct err *err)
{
	mpq_t least;
	int rc;

	mpq_init(least);
	bfb_fini(b);
	p->chunks = chunks;
	rc = bfb_solve(b, kind, t, p, err);
	if (!rc) {
		sum_times(b, time, least);
	}
	if (!rc && mpq_cmp(least, bound) > 0) {
		mpq_set(bound, least);
	}
	mpq_clear(least);
	return rc;
}

/* Solves in the finest cut, for the bound; then with more and more chunks, or
 * with those asked for. */
static int time_sides(struct bfb *b, enum coll_kind kind, const struct topo *t,
		      struct timed *p, int chunks, mpq_t bound, struct err *err)
{
	size_t rungs = sizeof(ladder) / sizeof(ladder[0]);
	bool near = false;
	mpq_t time;
	int rc;

	mpq_init(time);
	rc = time_cut(b, kind, t, p, COLL_BFB_MAX_CHUNKS, time, bound, err);
	if (!rc && chunks) {
		rc = time_cut(b, kind, t, p, chunks, time, bound, err);
		near = true;
	}
	for (size_t i = 0; i < rungs && !rc && !near; i++) {
		rc = time_cut(b, kind, t, p, ladder[i], time, bound, err);
		near = is_near(time, bound);
	}
	mpq_clear(time);
	return rc;
}

/* Time of a shard on a link of capacity one. */
static void shard_time(const struct coll_cost *c, int ranks, mpq_t ns)
{
	mpq_t f;

	mpq_init(f);
	rat_set(ns, c->size_bytes, ranks);
	rat_set(f, INT64_C(8000000000), c->link_bps);
	mpq_mul(ns, ns, f);
	mpq_clear(f);
}

static int steps_of(const struct bfb *b)
{
	int steps = 0;

	for (int i = 0; i < b->n_sides; i++) {
		steps += b->sides[i].diameter;
	}
	return steps;
}

/* bound + steps alpha, rounded up. */
static int whole_bound(const struct bfb *b, const struct coll_cost *c,
		       mpq_t bound, int64_t *ns, struct err *err)
{
	mpq_t alpha, steps;
	mpz_t whole;
	int rc = 0;

	mpq_inits(alpha, steps, NULL);
	mpz_init(whole);
	rat_set(alpha, c->alpha_ns, 1);
	rat_set(steps, steps_of(b), 1);
	mpq_mul(alpha, alpha, steps);
	mpq_add(alpha, alpha, bound);
	mpz_cdiv_q(whole, mpq_numref(alpha), mpq_denref(alpha));
	*ns = mpz_get_si(whole);
	if (!mpz_fits_slong_p(whole)) {
		rc = err_set(err, WEFT_ELIMIT,
			     "the time does not fit 64 bits of nanoseconds");
	}
	mpq_clears(alpha, steps, NULL);
	mpz_clear(whole);
	return rc;
}

int coll_bfb_timed(enum coll_kind kind, struct topo *topo, int chunks,
		   const struct coll_cost *cost, struct coll_sched **out,
		   int64_t *bound_ns, struct err *err)
{
	struct coll_sched *sched;
	struct bfb b = { .n_sides = 0 };
	struct timed p;
	mpq_t bound;
	int rc = begin(kind, topo, chunks, &sched, err);

	*out = NULL;
	mpq_inits(p.shard_ns, bound, NULL);
	if (!rc && (cost->alpha_ns < 0 || cost->size_bytes < 1 ||
		    cost->link_bps < 1)) {
		rc = err_set(err, WEFT_EINVAL, "cost needs alpha >= 0, a size "
			     "of at least a byte and a link rate of at least "
			     "1 bps");
	}
	if (!rc) {
		shard_time(cost, topo_n(topo), p.shard_ns);
		rc = time_sides(&b, kind, topo, &p, chunks, bound, err);
	}
	rc = rc ? rc : whole_bound(&b, cost, bound, bound_ns, err);
	rc = rc ? rc : complete(&b, sched, p.chunks, err);
	bfb_fini(&b);
	mpq_clears(p.shard_ns, bound, NULL);
	if (rc) {
		coll_free(sched);
		return rc;
	}
	*out = sched;
	return 0;
}

/* ---- figures alone ---- */

/* *factor = sum of the tops * ports / N. */
static void sum_tops(const struct bfb *b, int64_t ports, int64_t n,
		     mpq_t factor)
{
	mpq_t part;

	mpq_init(part);
	mpq_set_ui(factor, 0, 1);
	for (int i = 0; i < b->n_sides; i++) {
		for (size_t t = 0; t < b->sides[i].tops.n; t++) {
			rat_set(part, b->sides[i].tops.v[t].num,
				b->sides[i].tops.v[t].den);
			mpq_add(factor, factor, part);
		}
	}
	rat_set(part, ports, n);
	mpq_mul(factor, factor, part);
	mpq_clear(part);
}

/* The largest capacity out of or into a node, as coll_new takes it. */
static int64_t count_ports(const struct topo *t)
{
	int64_t most = 0;

	for (int u = 0; u < topo_n(t); u++) {
		int64_t out = 0, into = 0;
		const int32_t *arcs;
		int first, n = topo_out(t, u, &first);

		for (int a = first; a < first + n; a++) {
			out += topo_arc(t, a)->cap;
		}
		n = topo_in(t, u, &arcs);
		for (int i = 0; i < n; i++) {
			into += topo_arc(t, arcs[i])->cap;
		}
		out = into > out ? into : out;
		most = out > most ? out : most;
	}
	return most;
}

int coll_bfb_factor(enum coll_kind kind, const struct topo *topo, int *steps,
		    mpq_t factor, struct err *err)
{
	struct bfb b = { .n_sides = 0 };
	int rc;

	if (kind == COLL_ALLTOALL || kind == COLL_BROADCAST) {
		return err_set(err, WEFT_EUNSUPPORTED,
			       "breadth-first broadcast makes no %s",
			       coll_kind_name(kind));
	}
	rc = bfb_solve(&b, kind, topo, NULL, err);
	if (!rc) {
		*steps = 0;
		for (int i = 0; i < b.n_sides; i++) {
			*steps += b.sides[i].diameter;
		}
		sum_tops(&b, count_ports(topo), topo_n(topo), factor);
	}
	bfb_fini(&b);
	return rc;
}
