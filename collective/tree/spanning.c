/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An all-reduce along spanning trees that are used in both directions.
 *
 * Where every arc has its reverse, a partition of the ranks into p parts with capacity c between
 * them, one way, takes every all-reduce (p - 1) / c at least; and so many spanning trees that each
 * partition is just full exist (Tutte, Nash-Williams 1961). On each, a part of the vector is
 * summed towards the middle of the tree and copied back: no reduce-scatter and
 * all-gather is faster, and where some ranks have thinner links than others these
 * take up to twice as long, as they make sums in all ranks alike.
 */
#include <math.h>
#include <stdlib.h>

#include "collective/schedule/cut_bound.h"
#include "collective/tree/private.h"
#include "collective/tree/spanning.h"
#include "lib/base/alloc.h"
#include "lib/base/number/rat.h"

/* Steps of time, of the least one, that are tried where trees are fewer than it needs. */
#define FINE 1024

/* Of all arcs, those without a reverse are one in so many at most. */
#define FEW 16

struct spanning_net {
	const struct topo *t;
	int n, m;			/* m: edges, each two arcs */
	int alone;			/* arcs without a reverse, self-loops apart */
	struct graph_arc *arcs;		/* of t, in lowest terms; those alone of capacity 0 */
	int64_t unit;
	struct graph_arc *edges;	/* the same capacities; packed: how many trees fit */
	int32_t *forward, *back;	/* by edge: its arcs */
	int trees;
	int32_t *list;			/* of packed trees: n - 1 edges each */
	struct arrays arrays;
};

/* ---- edges ---- */

/* The arc back for each arc u -> v with u < v: parallel ones by capacity, as in
 * topo_is_symmetric. */
static void pair_arcs(struct spanning_net *s)
{
	bool *taken = x_new((size_t)topo_m(s->t) + 1, sizeof(*taken));

	for (int a = 0; a < topo_m(s->t); a++) {
		const struct topo_arc *arc = topo_arc(s->t, a);
		int first, n = topo_out(s->t, arc->dst, &first), b = first;

		if (arc->src >= arc->dst) {
			continue;
		}
		while (b < first + n && (taken[b] || topo_arc(s->t, b)->dst != arc->src ||
					 topo_arc(s->t, b)->cap != arc->cap)) {
			b++;
		}
		if (b < first + n) {
			taken[a] = taken[b] = true;
			s->forward[s->m] = a;
			s->back[s->m] = b;
			s->edges[s->m++] = s->arcs[a];
		}
	}
	for (int a = 0; a < topo_m(s->t); a++) {
		s->arcs[a].cap = taken[a] ? s->arcs[a].cap : 0;
		s->alone += !taken[a] && s->arcs[a].from != s->arcs[a].to;
	}
	free(taken);
}

static int root_of(int32_t *up, int v)
{
	while (up[v] != v) {
		v = up[v] = up[up[v]];
	}
	return v;
}

/* Whether edges join all nodes. */
static bool is_joined(const struct spanning_net *s)
{
	int32_t *up = x_alloc((size_t)s->n, sizeof(*up));
	int parts = s->n;

	for (int v = 0; v < s->n; v++) {
		up[v] = v;
	}
	for (int e = 0; e < s->m; e++) {
		int u = root_of(up, s->edges[e].from), v = root_of(up, s->edges[e].to);

		parts -= u != v;
		up[u] = v;
	}
	free(up);
	return parts == 1;
}

static int net_init(struct spanning_net *s, const struct topo *t, struct err *err)
{
	int rc;

	*s = (struct spanning_net){ .t = t, .n = topo_n(t) };
	arrays_add(&s->arrays, s->arcs, topo_m(t));
	arrays_add(&s->arrays, s->edges, topo_m(t));
	arrays_add(&s->arrays, s->forward, topo_m(t));
	arrays_add(&s->arrays, s->back, topo_m(t));
	rc = coll_cut_arcs(t, s->arcs, &s->unit, err);
	if (rc == 0) {
		pair_arcs(s);
	}
	return rc;
}

/* ---- how many trees, and how often an edge is used ---- */

/* Trees that use an edge at most, of so many, in (FINE + more) / FINE of the least time. */
static void set_limits(struct spanning_net *s, const struct graph_time *least, int more)
{
	for (int e = 0; e < s->m; e++) {
		__int128 uses = (__int128)s->arcs[s->forward[e]].cap * s->trees * least->num *
				(FINE + more);

		uses /= (__int128)least->den * FINE;
		s->edges[e].cap = uses < s->trees ? (int64_t)uses : s->trees;
	}
}

/* Whether so many trees fit: every partition has room for them. */
static int do_fit(const struct spanning_net *s, bool *fit, struct err *err)
{
	struct graph_arc *both = x_alloc(2 * (size_t)s->m + 1, sizeof(*both));
	struct graph_time time = { 0, 1 };
	int rc;

	for (int e = 0; e < s->m; e++) {
		both[2 * e] = s->edges[e];
		both[2 * e + 1] = (struct graph_arc){ s->edges[e].to, s->edges[e].from,
						      s->edges[e].cap };
	}
	rc = graph_partition_time(s->n, both, 2 * s->m, s->n, &time, err);
	*fit = rc == 0 && time.num * s->trees <= time.den;
	free(both);
	if (rc == WEFT_EINFEASIBLE) {
		err_clear(err);
		rc = 0;
	}
	return rc;
}

/* The least time in which so many trees fit, up to a share of 1 / FINE: the very least, where edges
 * are used a whole number of times. */
static int choose_limits(struct spanning_net *s, const struct graph_time *least, struct err *err)
{
	int low = -1, high = 0;
	bool fit = s->trees % least->den == 0;
	int rc = 0;

	while (rc == 0 && !fit) {
		set_limits(s, least, high);
		rc = do_fit(s, &fit, err);
		low = fit ? low : high;
		high = fit ? high : 2 * high + 1;
	}
	while (rc == 0 && high - low > 1) {
		int middle = low + (high - low) / 2;

		set_limits(s, least, middle);
		rc = do_fit(s, &fit, err);
		low = fit ? low : middle;
		high = fit ? middle : high;
	}
	set_limits(s, least, high);
	return rc;
}

/* ---- the trees as a forest ---- */

/* The node from which the farthest is nearest. */
static int middle_of(const struct topo *t, int32_t *dist)
{
	int best = 0, radius = topo_n(t);

	for (int v = 0; v < topo_n(t); v++) {
		int farthest = 0;

		topo_bfs(t, v, dist);
		for (int u = 0; u < topo_n(t); u++) {
			farthest = dist[u] > farthest ? dist[u] : farthest;
		}
		if (farthest < radius) {
			radius = farthest;
			best = v;
		}
	}
	return best;
}

/* A tree as a digraph of its own; arc a of it is edge a / 2, sorted as it was added. */
static int tree_topo(const struct spanning_net *s, const int32_t *tree, struct topo **out,
		     struct err *err)
{
	int rc = topo_new(s->n, out, err);

	for (int i = 0; i < s->n - 1 && rc == 0; i++) {
		const struct graph_arc *e = &s->edges[tree[i]];

		rc = topo_add_arc(*out, e->from, e->to, 1, 0, err);
		if (rc == 0) {
			rc = topo_add_arc(*out, e->to, e->from, 1, 0, err);
		}
	}
	if (rc == 0) {
		topo_freeze(*out);
	}
	return rc;
}

/* The two trees along spanning tree `tree`, from its middle and towards it. */
static int add_pair(const struct spanning_net *s, const int32_t *tree, struct coll_forest *f,
		    int32_t *dist, struct err *err)
{
	struct topo *own = NULL;
	int rc = tree_topo(s, tree, &own, err), root = rc ? 0 : middle_of(own, dist);

	for (int inwards = 0; inwards < 2 && rc == 0; inwards++) {
		struct coll_forest_tree x = {
			.root = root, .inwards = inwards, .weight = s->n,
			.via = x_alloc((size_t)s->n, sizeof(*x.via)),
		};

		vec_push(&f->trees, x);
	}
	if (rc == 0) {
		topo_bfs(own, root, dist);
	}
	for (int i = 0; i < s->n - 1 && rc == 0; i++) {
		const struct graph_arc *e = &s->edges[tree[i]];
		bool down = dist[e->from] < dist[e->to];
		int v = down ? e->to : e->from;
		struct coll_forest_tree *pair = &f->trees.v[f->trees.n - 2];

		pair[0].via[v] = down ? s->forward[tree[i]] : s->back[tree[i]];
		pair[1].via[v] = down ? s->back[tree[i]] : s->forward[tree[i]];
		pair[0].via[root] = pair[1].via[root] = -1;
		pair[0].depth = pair[1].depth = dist[v] > pair[0].depth ? dist[v] : pair[0].depth;
	}
	topo_free(own);
	return rc;
}

/* Uses of the fullest edge over its capacity, each of 1 / trees of the vector. */
static void set_time(const struct spanning_net *s, struct coll_forest *f)
{
	int64_t *uses = x_new((size_t)s->m + 1, sizeof(*uses));
	mpq_t time;

	mpq_init(time);
	for (int64_t i = 0; i < (int64_t)s->trees * (s->n - 1); i++) {
		int e = s->list[i];

		uses[e]++;
		rat_set(time, uses[e] * s->n, topo_arc(s->t, s->forward[e])->cap);
		if (mpq_cmp(time, f->time) > 0) {
			mpq_set(f->time, time);
		}
	}
	rat_set(time, s->trees, 1);
	mpq_div(f->time, f->time, time);
	mpq_clear(time);
	free(uses);
}

static int make_forest(const struct spanning_net *s, struct coll_forest *f, struct err *err)
{
	int32_t *dist = x_alloc((size_t)s->n, sizeof(*dist));
	int rc = 0;

	for (int j = 0; j < s->trees && rc == 0; j++) {
		rc = add_pair(s, s->list + (size_t)j * (size_t)(s->n - 1), f, dist, err);
	}
	f->share = s->trees;
	free(dist);
	if (rc == 0) {
		set_time(s, f);
	}
	return rc;
}

/* As many as are exact; or of so many and a few less those of which whole ones on a link are the
 * fullest. */
static int count_trees(const struct graph_time *least, int max_trees)
{
	double each = (double)least->num / (double)least->den, lost = HUGE_VAL;
	int best = max_trees;

	if (least->den <= max_trees) {
		return (int)(max_trees / least->den * least->den);
	}
	for (int n = max_trees; n > max_trees - max_trees / 4; n--) {
		double now = ceil(n * each) / (n * each);

		best = now < lost ? n : best;
		lost = now < lost ? now : lost;
	}
	return best;
}

static int pack(struct spanning_net *s, int max_trees, struct err *err)
{
	struct graph_time least;
	int rc = graph_partition_time(s->n, s->arcs, topo_m(s->t), s->n, &least, err);

	if (rc == 0) {
		s->trees = count_trees(&least, max_trees);
		rc = choose_limits(s, &least, err);
	}
	return rc ? rc : graph_pack_spanning_trees(s->n, s->edges, s->m, s->trees, &s->list, err);
}

bool coll_forest_has_spanning(const struct topo *t)
{
	struct spanning_net s = { 0 };
	bool has = topo_is_plain(t) && topo_n(t) > 1 && net_init(&s, t, NULL) == 0 &&
		   (s.alone == 0 || ((int64_t)s.alone * FEW <= topo_m(t) && is_joined(&s)));

	arrays_fini(&s.arrays);
	return has;
}

int coll_forest_allreduce(const struct topo *t, int max_trees, struct coll_forest *out,
			  struct err *err)
{
	struct spanning_net s = { 0 };
	int rc = topo_check_plain(t, "an all-reduce by spanning trees", err);

	if (rc) {
		return rc;
	}
	if (max_trees < 1) {
		return err_set(err, WEFT_EINVAL, "%d trees: expected at least one", max_trees);
	}
	if (!coll_forest_has_spanning(t)) {
		return err_set(err, WEFT_EUNSUPPORTED, "spanning trees in both directions need "
			       "two ranks and the reverse of nearly every arc");
	}
	(void)((rc = topo_copy(t, &out->logical, err)) || (rc = net_init(&s, t, err)) ||
	       (rc = pack(&s, max_trees, err)) || (rc = make_forest(&s, out, err)));
	free(s.list);
	arrays_fini(&s.arrays);
	return rc;
}
