/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bounds by cuts: what has to cross the boundary of a set of nodes, in time.
 *
 * They hold on any digraph with switches and memories, for no node makes more of what
 * crosses a cut than there is. They are exact on digraphs of terminals for all collectives
 * with copies only (Edmonds 1973), and for all-reduce where every arc has its reverse.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "collective/bound/bound.h"
#include "collective/schedule/cut_bound.h"
#include "collective/schedule/private.h"
#include "lib/base/alloc.h"
#include "lib/base/number/rat.h"

#define MAX_CAP (INT64_C(1) << 40)	/* of all arcs together */
/* Ranks times arcs beyond which partitions are left out. */
#define MAX_PARTITION_WORK (1 << 23)

/* The arcs of a digraph, perhaps reversed. Arcs that share a limit and their head pass a node
 * of their own before it, from which one arc of the limit's capacity leads on; those that
 * share their tail likewise. Other limits are left out. */
struct cut_net {
	int n, m, ranks;
	int64_t unit;
	struct graph_arc *arcs;
	int *sinks, n_sinks;	/* one rank of each orbit */
	struct arrays arrays;
};

int coll_cut_arcs(const struct topo *t, struct graph_arc *arcs, int64_t *unit, struct err *err)
{
	int64_t sum = 0;

	*unit = 0;
	for (int a = 0; a < topo_m(t); a++) {
		const struct topo_arc *arc = topo_arc(t, a);

		*unit = arc->src != arc->dst ? rat_gcd(*unit, arc->cap) : *unit;
	}
	for (int i = 0; i < topo_n_limits(t); i++) {
		*unit = rat_gcd(*unit, topo_limit(t, i)->cap);
	}
	*unit = *unit > 0 ? *unit : 1;
	for (int a = 0; a < topo_m(t); a++) {
		const struct topo_arc *arc = topo_arc(t, a);
		int64_t cap = arc->src != arc->dst ? arc->cap / *unit : 0;

		arcs[a] = (struct graph_arc){ arc->src, arc->dst, cap };
		if (cap > MAX_CAP - sum) {
			return err_set(err, WEFT_ELIMIT, "the capacities, in lowest terms, add up "
				       "to more than 2^40");
		}
		sum += cap;
	}
	return 0;
}

static int32_t *end_of(struct graph_arc *arc, bool head)
{
	return head ? &arc->to : &arc->from;
}

/* Arcs of a limit get a common node at one end, if they share that end. */
static void share_end(struct cut_net *c, const struct topo_limit *l, bool head)
{
	int32_t end = *end_of(&c->arcs[l->arcs[0]], head);

	for (int i = 0; i < l->n; i++) {
		if (*end_of(&c->arcs[l->arcs[i]], head) != end) {
			return;
		}
	}
	for (int i = 0; i < l->n; i++) {
		*end_of(&c->arcs[l->arcs[i]], head) = c->n;
	}
	c->arcs[c->m++] = (struct graph_arc){
		head ? c->n : end, head ? end : c->n, l->cap / c->unit,
	};
	c->n++;
}

static int cut_net_init(struct cut_net *c, const struct topo *t, const struct topo_group *g,
			struct err *err)
{
	int rc;

	*c = (struct cut_net){ .n = topo_n(t), .m = topo_m(t), .ranks = topo_ranks(t) };
	arrays_add(&c->arrays, c->arcs, c->m + 2 * topo_n_limits(t));
	arrays_add(&c->arrays, c->sinks, c->ranks);
	for (int v = 0; v < c->ranks; v++) {
		if (topo_group_first(g, v) == v) {
			c->sinks[c->n_sinks++] = v;
		}
	}
	rc = coll_cut_arcs(t, c->arcs, &c->unit, err);
	for (int i = 0; i < topo_n_limits(t) && rc == 0; i++) {
		share_end(c, topo_limit(t, i), true);
		share_end(c, topo_limit(t, i), false);
	}
	return rc;
}

static void reverse(struct cut_net *c)
{
	for (int a = 0; a < c->m; a++) {
		int32_t from = c->arcs[a].from;

		c->arcs[a].from = c->arcs[a].to;
		c->arcs[a].to = from;
	}
}

/* ---- digraphs whose nodes are all alike ---- */

/* Arcs of one capacity, none parallel. */
static bool is_simple(const struct topo *t)
{
	int *last = x_alloc((size_t)topo_n(t), sizeof(*last));
	bool simple = true;

	for (int v = 0; v < topo_n(t); v++) {
		last[v] = -1;
	}
	for (int a = 0; simple && a < topo_m(t); a++) {
		const struct topo_arc *arc = topo_arc(t, a);

		simple = arc->cap == topo_arc(t, 0)->cap && last[arc->dst] != arc->src;
		last[arc->dst] = arc->src;
	}
	free(last);
	return simple;
}

/* Arcs out of a node that lead to others. */
static int64_t links_of(const struct topo *t, int u)
{
	int64_t links = 0;
	int first, n = topo_out(t, u, &first);

	for (int a = first; a < first + n; a++) {
		links += topo_arc(t, a)->dst != u;
	}
	return links;
}

/*
 * Where a group moves any node to any other, and arcs are alike and not parallel, no set
 * has a thinner boundary than one node (Hamidoune 1977, Mader 1971): neither for an
 * all-gather, as no other set is missing more, nor for the parts of a partition.
 */
static bool single_node(const struct topo *t, const struct topo_group *g, enum coll_kind kind,
			mpq_t bound)
{
	int n = topo_n(t);
	bool known = g && n == topo_ranks(t) && topo_group_orbits(g) == 1 && is_simple(t);

	if (known) {
		rat_set(bound, kind == COLL_ALLREDUCE ? 2 * ((int64_t)n - 1) : n - 1, n);
		coll_scale(bound, 1, links_of(t, 0) * topo_arc(t, 0)->cap);
	}
	return known;
}

/* ---- cuts ---- */

/* 1 / the least cut from rank `from`, in vectors per unit of capacity. */
static int vector_time(const struct cut_net *c, int from, struct graph_time *time,
		       struct err *err)
{
	*time = (struct graph_time){ 1, 0 };
	return graph_root_cut(c->n, c->arcs, c->m, from, c->ranks, &time->den, err);
}

/* A switch that reduces does for the ranks around it what one of them could do: it is in a part
 * with them if its arcs are so wide, 2 p `den`, that a boundary of p parts that cuts them is none.
 * False where it has other neighbours, limits are shared, or numbers too large. */
static bool widen_sums(struct cut_net *c, const struct topo *t, int64_t den)
{
	bool *sums = x_new((size_t)topo_n(t), sizeof(*sums));
	bool known = (__int128)2 * c->ranks * den * c->m <= MAX_CAP / 2;

	for (int v = c->ranks; v < topo_n(t); v++) {
		sums[v] = topo_node_kind(t, v) == TOPO_SWITCH &&
			  (topo_node_flags(t, v) & TOPO_CAN_REDUCE);
		known = known && (!sums[v] || topo_n_limits(t) == 0);
	}
	for (int a = 0; a < topo_m(t); a++) {
		const struct topo_arc *arc = topo_arc(t, a);
		int other = sums[arc->src] ? arc->dst : arc->src;

		if (sums[arc->src] || sums[arc->dst]) {
			c->arcs[a].cap = known ? 2 * c->ranks * den : 0;
			known = known && other < c->ranks;
		}
	}
	free(sums);
	return known;
}

/* Each side of a cut between ranks has to send a vector, and to get one. */
static int allreduce_time(struct cut_net *c, const struct topo *t, bool partitions,
			  struct graph_time *time, struct err *err)
{
	struct graph_time in, parts;
	int rc;

	if ((rc = vector_time(c, 0, time, err))) {
		return rc;
	}
	reverse(c);
	rc = vector_time(c, 0, &in, err);
	reverse(c);
	time->den = in.den < time->den ? in.den : time->den;
	if (rc || !partitions || !widen_sums(c, t, time->den)) {
		return rc;
	}
	rc = graph_partition_time(c->n, c->arcs, c->m, c->ranks, &parts, err);
	if (rc == 0 && (__int128)parts.num * time->den > (__int128)parts.den * time->num) {
		*time = parts;
	}
	return rc;
}

/* In vectors per unit of capacity. */
static int cut_bound(const struct topo *t, const struct topo_group *g, enum coll_kind kind,
		     int root, mpq_t bound, struct err *err)
{
	struct graph_time time = { 0, 1 };
	struct cut_net c = { 0 };
	int64_t shares = 1;
	int rc = cut_net_init(&c, t, g, err);

	if (rc) {
		goto out;
	}
	if (kind == COLL_REDUCE || kind == COLL_GATHER || kind == COLL_REDUCE_SCATTER) {
		reverse(&c);
	}
	if (kind == COLL_ALLREDUCE) {
		bool few = (int64_t)c.ranks * (c.m + c.ranks) <= MAX_PARTITION_WORK;

		rc = allreduce_time(&c, t, few, &time, err);
	} else if (kind == COLL_BROADCAST || kind == COLL_REDUCE) {
		rc = vector_time(&c, root, &time, err);
	} else if (kind == COLL_SCATTER || kind == COLL_GATHER) {
		rc = graph_scatter_time(c.n, c.arcs, c.m, root, c.ranks, &time, err);
		shares = c.ranks;
	} else {
		rc = graph_allgather_time(c.n, c.arcs, c.m, c.ranks, c.sinks, c.n_sinks, &time,
					  err);
		shares = c.ranks;
	}
	if (rc == 0 && time.den == 0) {
		rc = err_set(err, WEFT_EINFEASIBLE, "not all ranks can reach each other");
	}
	if (rc == 0) {
		rat_set(bound, time.num, time.den);
		coll_scale(bound, 1, c.unit);
		coll_scale(bound, 1, shares);
	}
out:
	arrays_fini(&c.arrays);
	return rc;
}

/* Whoever gets sums that others made takes in no more than the vector. */
void coll_node_bound(enum coll_kind kind, const struct topo *t, mpq_t bound)
{
	bool sums = kind == COLL_ALLREDUCE && coll_switches_can(t, TOPO_CAN_REDUCE);
	bool whole = kind == COLL_BROADCAST || kind == COLL_REDUCE || sums;
	int ranks = topo_ranks(t);

	rat_set(bound, whole ? ranks > 1 : ranks - 1, whole ? 1 : ranks);
	if (kind == COLL_ALLREDUCE && !sums) {
		coll_scale(bound, 2, 1);
	}
}

static int bound_rootless(const struct topo *t, const struct topo_group *g, enum coll_kind kind,
			  mpq_t bound, struct err *err)
{
	struct topo_group *own = NULL;
	int rc = 0;

	if (!g && (rc = topo_group_find(t, &own, err))) {
		return rc;
	}
	if (!single_node(t, g ? g : own, kind, bound)) {
		rc = cut_bound(t, g ? g : own, kind, 0, bound, err);
	}
	topo_group_free(own);
	return rc;
}

int coll_bound(const struct topo *t, const struct topo_group *g, enum coll_kind kind, int root,
	       int ports, mpq_t bound, struct err *err)
{
	mpq_t cut;
	int rc;

	coll_node_bound(kind, t, bound);
	if (topo_ranks(t) < 2 || kind == COLL_ALLTOALL) {
		return 0;
	}
	if (coll_has_root(kind) && (root < 0 || root >= topo_ranks(t))) {
		return err_set(err, WEFT_EINVAL, "root %d is not one of the %d ranks", root,
			       topo_ranks(t));
	}
	mpq_init(cut);
	rc = coll_has_root(kind) ? cut_bound(t, NULL, kind, root, cut, err)
				 : bound_rootless(t, g, kind, cut, err);
	coll_scale(cut, ports, 1);
	if (rc == 0 && mpq_cmp(cut, bound) > 0) {
		mpq_set(bound, cut);
	}
	mpq_clear(cut);
	return rc;
}

/* ---- steps ---- */

/* Whether only ranks keep data, and a group of the physical digraph takes any to any other. */
static int are_alike(const struct coll_sched *s, bool *alike, struct err *err)
{
	const struct topo *t = coll_physical(s);
	struct topo_group *own = NULL;
	int rc = 0;

	*alike = false;
	if (topo_holders(t) != s->ranks) {
		return 0;
	}
	if (coll_symmetry(s) && topo_group_orbits(coll_symmetry(s)) == 1) {
		*alike = true;
		return 0;
	}
	rc = topo_group_find(t, &own, err);
	if (!rc && !own) {
		own = topo_group_digits(t);
	}
	*alike = !rc && own && topo_group_orbits(own) == 1;
	topo_group_free(own);
	return rc;
}

/* The ranks within so many hops of a node, up to hops; to it, where towards. */
static int count_within(const struct coll_sched *s, int from, bool towards, int hops,
			int64_t **within, struct err *err)
{
	const struct topo *t = coll_physical(s);
	int32_t *dist = x_alloc((size_t)topo_n(t), sizeof(*dist));
	struct topo *back = NULL;
	int rc = towards ? topo_transpose(t, &back, NULL, err) : 0;

	*within = x_new((size_t)hops + 1, sizeof(**within));
	if (rc == 0) {
		topo_bfs(back ? back : t, from, dist);
	}
	for (int v = 0; v < s->ranks && rc == 0; v++) {
		(*within)[dist[v]]++;
	}
	for (int j = 1; j <= hops; j++) {
		(*within)[j] += (*within)[j - 1];
	}
	topo_free(back);
	free(dist);
	return rc;
}

/* Ranks up to which pairs of them are looked for. */
#define MAX_PAIRED 512

/* Distances between all ranks of a digraph in which they are unlike, row after row. */
struct pairs {
	int n;
	int32_t *dist, *to, *seen;	/* to: by rank, that which it is the partner of, -1 */
};

/* Finds u a partner so many hops away or farther; others may take another one (Kuhn). */
static bool find_partner(struct pairs *p, int u, int hops, int round)
{
	const int32_t *dist = p->dist + (size_t)u * (size_t)p->n;

	for (int pass = 0; pass < 2; pass++) {
		for (int v = 0; v < p->n; v++) {
			if (dist[v] < hops || p->seen[v] == round || (!pass && p->to[v] >= 0)) {
				continue;
			}
			p->seen[v] = round;
			if (p->to[v] < 0 || find_partner(p, p->to[v], hops, round)) {
				p->to[v] = u;
				return true;
			}
		}
	}
	return false;
}

static bool all_have_partners(struct pairs *p, int hops)
{
	memset(p->to, -1, (size_t)p->n * sizeof(*p->to));
	memset(p->seen, -1, (size_t)p->n * sizeof(*p->seen));
	for (int u = 0; u < p->n; u++) {
		if (!find_partner(p, u, hops, u)) {
			return false;
		}
	}
	return true;
}

/* The most ranks within so many hops of one, or that have so many hops to it, below `hops`. */
static void largest_balls(const struct pairs *p, int hops, int64_t *most)
{
	int64_t *ball = x_alloc(2 * (size_t)hops, sizeof(*ball));

	for (int u = 0; u < p->n; u++) {
		memset(ball, 0, 2 * (size_t)hops * sizeof(*ball));
		for (int v = 0; v < p->n; v++) {
			int out = p->dist[(size_t)u * (size_t)p->n + (size_t)v];
			int in = p->dist[(size_t)v * (size_t)p->n + (size_t)u];

			ball[out < hops ? out : 0] += out < hops;
			ball[hops + (in < hops ? in : 0)] += in < hops;
		}
		for (int j = 0; j < 2 * hops; j++) {
			ball[j] += j % hops > 0 ? ball[j - 1] : 0;
			most[j % hops] = ball[j] > most[j % hops] ? ball[j] : most[j % hops];
		}
	}
	most[hops] = p->n;
	free(ball);
}

/* The most hops that every rank has to a partner of its own, and balls, where ranks are unlike. */
static void pair_ranks(const struct coll_sched *s, struct bound_net *net, int64_t **within)
{
	const struct topo *t = coll_physical(s);
	struct pairs p = { .n = s->ranks };
	int32_t *dist;

	if (net->alike || topo_holders(t) != s->ranks || s->ranks > MAX_PAIRED) {
		return;
	}
	dist = x_alloc((size_t)topo_n(t), sizeof(*dist));
	p.dist = x_alloc((size_t)p.n * (size_t)p.n, sizeof(*dist));
	p.to = x_alloc((size_t)p.n, sizeof(*dist));
	p.seen = x_alloc((size_t)p.n, sizeof(*dist));
	for (int u = 0; u < p.n; u++) {
		topo_bfs(t, u, dist);
		memcpy(p.dist + (size_t)u * (size_t)p.n, dist, (size_t)p.n * sizeof(*dist));
	}
	net->pair_hops = net->diameter;
	while (net->pair_hops > 0 && !all_have_partners(&p, net->pair_hops)) {
		net->pair_hops--;
	}
	*within = x_new((size_t)net->pair_hops + 1, sizeof(**within));
	if (net->pair_hops > 0) {
		largest_balls(&p, net->pair_hops, *within);
	}
	net->pair_within = *within;
	free(dist);
	free(p.dist);
	free(p.to);
	free(p.seen);
}

/* Nodes by their distance, those of none left out: what of the order is filled. */
static int sort_by_distance(const struct topo *t, int hops, const int32_t *dist, int32_t *order)
{
	int32_t *first = x_new((size_t)hops + 2, sizeof(*first));
	int n;

	for (int v = 0; v < topo_n(t); v++) {
		if (dist[v] >= 0 && dist[v] <= hops) {
			first[dist[v] + 1]++;
		}
	}
	for (int j = 0; j <= hops; j++) {
		first[j + 1] += first[j];
	}
	n = first[hops + 1];
	for (int v = 0; v < topo_n(t); v++) {
		if (dist[v] >= 0 && dist[v] <= hops) {
			order[first[dist[v]]++] = v;
		}
	}
	free(first);
	return n;
}

/* Of the node `hops` hops away from a node to which the fewest shortest paths lead. O(m). */
static int fewest_paths(const struct topo *t, int from, int hops, const int32_t *dist)
{
	double *paths = x_new((size_t)topo_n(t), sizeof(*paths));
	int32_t *order = x_alloc((size_t)topo_n(t), sizeof(*order));
	int to = -1, n = sort_by_distance(t, hops, dist, order);

	paths[from] = 1;
	for (int i = 0, a, end; i < n; i++) {
		for (end = topo_out(t, order[i], &a), end += a; a < end; a++) {
			int v = topo_arc(t, a)->dst;

			if (dist[v] == dist[order[i]] + 1) {
				paths[v] += paths[order[i]];
			}
		}
	}
	for (int v = 0; v < topo_ranks(t); v++) {
		to = dist[v] == hops && (to < 0 || paths[v] < paths[to]) ? v : to;
	}
	free(order);
	free(paths);
	return to;
}

/* What the shortest paths between two nodes take, the farthest and with the fewest of them: the
 * sum over their hops of 1 / the capacity of all arcs that may be that hop. O(m). */
static int narrow_of(const struct topo *t, const struct coll_far *far, double *narrow,
		     struct err *err)
{
	int32_t *dist = x_alloc(2 * (size_t)topo_n(t), sizeof(*dist)), *rest = dist + topo_n(t);
	double *cap = x_new((size_t)far->hops, sizeof(*cap));
	struct topo *back = NULL;
	int rc = topo_transpose(t, &back, NULL, err);

	*narrow = 0;
	if (rc == 0) {
		topo_bfs(t, far->from, dist);
		topo_bfs(back, fewest_paths(t, far->from, far->hops, dist), rest);
	}
	for (int a = 0; a < topo_m(t) && rc == 0; a++) {
		const struct topo_arc *arc = topo_arc(t, a);
		int j = dist[arc->src];

		if (j >= 0 && j < far->hops && rest[arc->dst] == far->hops - j - 1) {
			cap[j] += (double)arc->cap;
		}
	}
	for (int j = 0; j < far->hops && rc == 0; j++) {
		*narrow += 1 / cap[j];
	}
	topo_free(back);
	free(cap);
	free(dist);
	return rc;
}

/* Degree and capacity, and the port of a broadcast or a reduce. */
static void add_arcs(const struct coll_sched *s, struct bound_net *net)
{
	const struct topo *t = coll_physical(s);
	int64_t *port = x_new((size_t)topo_n(t), sizeof(*port));

	for (int u = 0; u < topo_holders(t); u++) {
		int links = (int)links_of(t, u);

		net->degree = links > net->degree ? links : net->degree;
	}
	for (int a = 0; a < topo_m(t); a++) {
		const struct topo_arc *arc = topo_arc(t, a);
		int near = s->kind == COLL_REDUCE ? arc->dst : arc->src;
		int far = s->kind == COLL_REDUCE ? arc->src : arc->dst;

		if (arc->src != arc->dst) {
			net->capacity += (double)arc->cap;
			net->widest = fmax(net->widest, (double)arc->cap);
			net->near = arc->src < topo_holders(t) && arc->dst < topo_holders(t)
					    ? 1 : net->near;
			port[far] += far != s->root ? arc->cap : 0;
			port[near] += near == s->root ? arc->cap : 0;
		}
	}
	for (int u = 0; u < s->ranks; u++) {
		net->port = (double)port[u] > net->port ? (double)port[u] : net->port;
	}
	free(port);
}

int coll_steps_bound(const struct coll_sched *s, const struct coll_far *far, int64_t latency_ns,
		     const mpq_t volume, const struct coll_cost *c, int64_t *ns, struct err *err)
{
	bool helped = coll_switches_can(coll_physical(s), TOPO_CAN_COPY | TOPO_CAN_REDUCE);
	struct bound_net net = {
		.ranks = s->ranks, .diameter = far->hops, .steps = far->steps, .near = 2,
		.gathers = s->kind == COLL_REDUCE,
		.sums = s->kind == COLL_ALLREDUCE && topo_holders(coll_physical(s)) == s->ranks,
		.whole = (s->kind == COLL_BROADCAST || s->kind == COLL_REDUCE) && !helped,
		.routed = coll_may_route(s, c),
	};
	struct bound_cost cost = {
		.alpha = (double)c->alpha_ns, .message = (double)c->message_ns,
		.hop = (double)c->hop_ns + (double)latency_ns,
		.vector = (double)c->size_bytes * 8e9 / (double)c->link_bps,
	};
	int64_t *within = NULL, *balls = NULL;
	double time = 0;
	int rc = 0;

	*ns = 0;
	if (s->lights.n > 0 || far->hops == 0) {
		return 0;
	}
	cost.load = mpq_get_d(volume) * cost.vector;
	add_arcs(s, &net);
	net.pair = s->kind == COLL_ALLREDUCE && !net.routed && !helped ? (double)far->port : 0;
	/* What counts messages, or volume by them, does not hold where switches copy. */
	if (s->kind != COLL_GATHER && !s->demands && !helped) {
		rc = count_within(s, far->from, net.gathers, far->hops, &within, err);
	}
	if (!rc && s->kind == COLL_ALLREDUCE && !helped) {
		rc = are_alike(s, &net.alike, err);
		pair_ranks(s, &net, &balls);
	}
	if (!rc && net.pair > 0) {
		rc = narrow_of(coll_physical(s), far, &net.narrow, err);
	}
	net.within = within;
	if (!rc) {
		time = c->steps_overlap ? bound_time_overlapped(&net, &cost)
					: bound_time(&net, &cost);
	}
	free(within);
	free(balls);
	if (!rc && time >= 9e18) {
		return err_set(err, WEFT_ELIMIT, "the bound does not fit 64 bits of nanoseconds");
	}
	*ns = (int64_t)time;
	return rc;
}
