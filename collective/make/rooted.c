/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Broadcast, reduce, gather and scatter.
 *
 * Where ranks pass on messages, a tree over them need not follow links: one that takes so many hops
 * in a step is less deep, which is faster where steps cost more than what its messages load.
 */
#include <stdlib.h>

#include "collective/make/private.h"
#include "lib/base/alloc.h"
#include "lib/base/number/rat.h"

static int offer_rooted(const struct coll_make_query *q, const struct coll_algorithm *self,
			const struct coll_cost *cost, struct coll_made *best, struct err *err)
{
	struct coll_tree_options opt = { q->kind, q->root, cost, q->batches };
	struct coll_made one = { .algorithm = self };
	int rc = coll_tree_make(q->topo, &opt, &one.sched, &one.tree, err);

	one.batches = one.tree.batches;
	return rc ? rc : make_offer(q, &one, best, err);
}

/* The cost with the rate that links of the logical digraph came to when they were embedded. */
static int embedded_cost(const struct coll_make_query *q, const struct coll_made *best,
			 struct coll_cost *cost, struct err *err)
{
	struct coll_report r;
	mpq_t rate;
	int rc;

	*cost = *q->cost;
	coll_report_init(&r);
	mpq_init(rate);
	rc = coll_verify(best->logical, &r, err);
	if (rc == 0 && mpq_sgn(best->report.shard_times) > 0) {
		mpq_div(rate, r.shard_times, best->report.shard_times);
		cost->link_bps = (int64_t)(mpq_get_d(rate) * (double)cost->link_bps);
		cost->link_bps = cost->link_bps > 0 ? cost->link_bps : 1;
	}
	mpq_clear(rate);
	coll_report_fini(&r);
	return rc;
}

/* Where switches copy or sum, the fewest steps, too: what the root sends to many, or gets of
 * them, may load its links once. */
static int offer_shallow(const struct coll_make_query *q, const struct coll_algorithm *self,
			 struct coll_made *best, struct err *err)
{
	struct coll_cost cost = *q->cost;

	if (!coll_switches_can(q->fabric->topo, TOPO_CAN_COPY | TOPO_CAN_REDUCE)) {
		return 0;
	}
	cost.size_bytes = 0;
	return offer_rooted(q, self, &cost, best, err);
}

/* Nodes times arcs up to which trees of fewer steps than hops are made, and of so many steps. */
#define MAX_SHORT_WORK (1 << 20)
#define MAX_SHORT_STEPS 4

/* A tree of the fewest hops from the root: of those that may be a node's parent the one that has
 * the fewest children yet. into: the digraph whose arcs lead back. */
static void find_parents(const struct topo *into, const int32_t *dist, int far, int32_t *parent)
{
	int32_t *children = x_new((size_t)topo_n(into), sizeof(*children));

	for (int v = 0, d = 1; d <= far; v = (v + 1) % topo_n(into), d += v == 0) {
		int first, end = topo_out(into, v, &first) + first, best = -1;

		for (int a = first; a < end && dist[v] == d; a++) {
			int u = topo_arc(into, a)->dst;

			if (dist[u] == d - 1 && (best < 0 || children[u] < children[best])) {
				best = u;
			}
		}
		if (best >= 0) {
			parent[v] = best;
			children[best]++;
		}
	}
	free(children);
}

/* The same tree over ranks at every stride-th depth, to the root or from it. */
static int take_strides(const struct coll_make_query *q, bool towards, const int32_t *dist,
			const int32_t *parent, int stride, struct topo **out, struct err *err)
{
	int n = topo_n(q->topo), rc = topo_new(n, out, err);

	for (int v = 0; v < n && !rc; v++) {
		int u = v;

		for (int k = (dist[v] - 1) % stride; v != q->root && k >= 0; k--) {
			u = parent[u];
		}
		rc = u == v ? 0 : topo_add_arc(*out, towards ? v : u, towards ? u : v, 1, 0, err);
	}
	if (rc == 0) {
		topo_freeze(*out);
	}
	return rc;
}

/* Over all shortest paths, and over one, as each costs a message; in vain where that cannot be. */
static void offer_strides(const struct coll_make_query *q, const struct coll_algorithm *self,
			  const struct topo *tree, struct coll_made *best)
{
	struct coll_fabric links = { .topo = (struct topo *)q->topo,
				     .name = (char *)(q->expr ? q->expr : "") };
	struct coll_make_query how = *q;
	struct coll_cost cost = *q->cost;

	how.topo = tree;
	how.batches = 0;
	how.fabric = q->fabric ? q->fabric : &links;
	cost.size_bytes = 0;
	offer_rooted(&how, self, &cost, best, NULL);
	links.routing = COLL_ROUTING_DIMENSION_ORDER;
	if (!q->fabric) {
		offer_rooted(&how, self, &cost, best, NULL);
	}
}

/* Trees of one step and a few more, in vain where one cannot be made. */
static void offer_short(const struct coll_make_query *q, const struct coll_algorithm *self,
			struct coll_made *best)
{
	bool towards = q->kind == COLL_REDUCE || q->kind == COLL_GATHER;
	int n = topo_n(q->topo), far = 0, rc = 0;
	int32_t *dist, *parent;
	struct topo *back, *tree;

	if (topo_transpose(q->topo, &back, NULL, NULL)) {
		return;
	}
	dist = x_alloc((size_t)n, sizeof(*dist));
	parent = x_new((size_t)n, sizeof(*parent));
	topo_bfs(towards ? back : q->topo, q->root, dist);
	for (int v = 0; v < n; v++) {
		far = dist[v] > far ? dist[v] : far;
	}
	find_parents(towards ? q->topo : back, dist, far, parent);
	for (int steps = 1; steps <= MAX_SHORT_STEPS && steps <= far && !rc; steps++) {
		tree = NULL;
		rc = take_strides(q, towards, dist, parent, (far + steps - 1) / steps, &tree, NULL);
		if (rc == 0) {
			offer_strides(q, self, tree, best);
		}
		topo_free(tree);
	}
	topo_free(back);
	free(dist);
	free(parent);
}

/* Whether that is worth a try: ranks forward, and steps may be what it takes long for. */
static bool may_be_short(const struct coll_make_query *q, const struct coll_made *best)
{
	return q->cost && q->cost->forwards && !q->links_only && q->batches <= 1 &&
	       topo_ranks(q->topo) == topo_n(q->topo) &&
	       (int64_t)topo_n(q->topo) * topo_m(q->topo) <= MAX_SHORT_WORK &&
	       (double)best->time_ns > (double)best->bound_ns * MET(q);
}

/* The synthesiser chooses by the cost for itself; where links have other rates once they are
 * embedded, it chooses once more. */
int make_by_rooted(const struct coll_make_query *q, const struct coll_algorithm *self,
		   struct coll_made *best, struct err *err)
{
	struct coll_cost cost;
	int rc = q->min_cost ? make_by_forest(q, self, best, err)
			     : offer_rooted(q, self, q->cost, best, err);

	if (rc == 0 && !q->min_cost && may_be_short(q, best)) {
		offer_short(q, self, best);
	}
	if (rc || q->min_cost || !q->cost || !q->fabric ||
	    (rc = offer_shallow(q, self, best, err)) || (rc = embedded_cost(q, best, &cost, err))) {
		return rc;
	}
	return offer_rooted(q, self, &cost, best, err);
}

int make_predict_trees(const struct coll_make_query *q, struct coll_prediction *out,
		       struct err *err)
{
	struct coll_tree_options opt = { .kind = q->kind, .root = q->root, .cost = q->cost };
	struct coll_tree_info info;
	int64_t gcd;
	int rc = coll_tree_figures(q->topo, &opt, &info, err);

	if (rc || info.load_den == 0) {
		return rc ? rc : WEFT_ELIMIT;
	}
	out->ports = topo_max_degree(q->topo);
	gcd = rat_gcd(out->ports, info.load_den);
	out->steps = info.steps;
	out->num = info.load_num * (out->ports / gcd);
	out->den = info.load_den / gcd;
	make_time_prediction(q->cost, out);
	return 0;
}
