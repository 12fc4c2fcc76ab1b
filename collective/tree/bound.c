/*
 * The cuts that bound collectives with a root.
 *
 * Broadcast: the least cut that parts the root from a rank (Edmonds 1973).
 * Scatter: the set of ranks that is fullest, ranks over capacity into it. By
 * Newton's method: while a maximum flow that takes one shard to every rank within
 * the time does not exist, its minimum cut is a fuller set. Few steps, all exact.
 */
#include <stdlib.h>

#include "collective/tree/private.h"
#include "lib/base/rat.h"

/* ---- the digraph ---- */

static int take_arcs(struct tree_net *net, const struct topo *t, struct err *err)
{
	int64_t unit = 0, sum = 0;

	for (int a = 0; a < net->m; a++) {
		const struct topo_arc *arc = topo_arc(t, a);

		unit = arc->src != arc->dst ? rat_gcd(unit, arc->cap) : unit;
	}
	net->unit = unit > 0 ? unit : 1;
	for (int a = 0; a < net->m; a++) {
		const struct topo_arc *arc = topo_arc(t, a);
		int64_t cap = arc->src != arc->dst ? arc->cap / net->unit : 0;

		net->arcs[a] = (struct graph_arc){ arc->src, arc->dst, cap };
		if (cap > TREE_MAX_CAP - sum) {
			return err_set(err, WEFT_ELIMIT, "the capacities, in lowest terms, add up "
				       "to more than 2^40");
		}
		sum += cap;
	}
	return 0;
}

int tree_net_init(struct tree_net *net, const struct topo *t, int root, struct err *err)
{
	int rc;

	*net = (struct tree_net){
		.n = topo_n(t), .m = topo_m(t), .ranks = topo_ranks(t), .root = root,
	};
	if (root < 0 || root >= net->ranks) {
		return err_set(err, WEFT_EINVAL, "root %d is not one of the %d ranks", root,
			       net->ranks);
	}
	arrays_add(&net->arrays, net->arcs, net->m);
	arrays_add(&net->arrays, net->dist, net->n);
	if (net->arrays.failed) {
		return err_nomem(err);
	}
	rc = take_arcs(net, t, err);
	topo_bfs(t, root, net->dist);
	for (int v = 0; v < net->ranks && rc == 0; v++) {
		if (net->dist[v] < 0) {
			rc = err_set(err, WEFT_EINFEASIBLE, "no path between root %d and rank %d",
				     root, v);
		}
	}
	return rc;
}

void tree_net_fini(struct tree_net *net)
{
	arrays_fini(&net->arrays);
}

/* ---- the fullest cut ---- */

static int64_t cap_of(const struct tree_net *net, const bool *only, int a)
{
	return only && !only[a] ? 0 : net->arcs[a].cap;
}

/* Arcs of num times their capacity, and den from every rank to the sink n. */
static int build(const struct tree_net *net, const bool *only, int64_t num, int64_t den,
		 struct graph_flow **out, struct err *err)
{
	int rc = graph_flow_new(net->n + 1, out, err);

	for (int a = 0; a < net->m && rc == 0; a++) {
		rc = graph_flow_add(*out, net->arcs[a].from, net->arcs[a].to,
				    cap_of(net, only, a) * num, 0, NULL, err);
	}
	for (int v = 0; v < net->ranks && rc == 0; v++) {
		rc = v == net->root ? 0 : graph_flow_add(*out, v, net->n, den, 0, NULL, err);
	}
	return rc;
}

/* The ranks in a set and the capacity into it, as a fraction. */
static void fullness(const struct tree_net *net, const bool *only, const bool *set,
		     int64_t *num, int64_t *den)
{
	int64_t ranks = 0, cap = 0, gcd;

	for (int v = 0; v < net->ranks; v++) {
		ranks += set[v];
	}
	for (int a = 0; a < net->m; a++) {
		bool enters = !set[net->arcs[a].from] && set[net->arcs[a].to];

		cap += enters ? cap_of(net, only, a) : 0;
	}
	gcd = rat_gcd(ranks, cap);
	*num = ranks / gcd;
	*den = cap / gcd;
}

/* One step of Newton's method: whether all ranks get their share within
 * num/den; else the cut that is fuller. */
static int improve(const struct tree_net *net, const bool *only, bool *set,
		   int64_t *num, int64_t *den, bool *done, struct err *err)
{
	struct graph_flow *f = NULL;
	int64_t value;
	int rc;

	if ((rc = build(net, only, *num, *den, &f, err)) ||
	    (rc = graph_flow_max(f, net->root, net->n, INT64_MAX, &value, err))) {
		goto out;
	}
	*done = value == (net->ranks - 1) * *den;
	if (!*done) {
		rc = graph_flow_cut(f, net->n, set, err);
	}
	if (!*done && rc == 0) {
		fullness(net, only, set, num, den);
	}
out:
	graph_flow_free(f);
	return rc;
}

int tree_fullest_cut(const struct tree_net *net, const bool *only, int64_t *num,
		     int64_t *den, struct err *err)
{
	bool *set = calloc((size_t)net->n + 1, sizeof(*set)), done = net->ranks < 2;
	int rc = set ? 0 : err_nomem(err);

	*num = 0;
	*den = 1;
	for (int v = 0; v < net->n && rc == 0; v++) {
		set[v] = v != net->root;
	}
	if (rc == 0 && !done) {
		fullness(net, only, set, num, den);
	}
	while (rc == 0 && !done) {
		rc = improve(net, only, set, num, den, &done, err);
	}
	free(set);
	return rc;
}

/* ---- bounds ---- */

/* 1 / the least cut, in vectors per unit of capacity. */
static int min_cut(const struct tree_net *net, mpq_t bound, struct err *err)
{
	int64_t cut;
	int rc = graph_root_cut(net->n, net->arcs, net->m, net->root, net->ranks, &cut, err);

	if (rc == 0) {
		rat_set(bound, 1, cut);
	}
	return rc;
}

static int fullest_cut(const struct tree_net *net, mpq_t bound, struct err *err)
{
	int64_t num, den;
	mpq_t ranks;
	int rc = tree_fullest_cut(net, NULL, &num, &den, err);

	if (rc == 0) {
		mpq_init(ranks);
		rat_set(bound, num, den);
		rat_set(ranks, net->ranks, 1);
		mpq_div(bound, bound, ranks);
		mpq_clear(ranks);
	}
	return rc;
}

/* What cuts say, or what the ports of a node do. */
static int bound_of(const struct tree_net *net, bool whole, int ports, mpq_t bound,
		    struct err *err)
{
	mpq_t by_ports, units;
	int rc = net->ranks < 2 ? 0 : whole ? min_cut(net, bound, err)
					    : fullest_cut(net, bound, err);

	if (net->ranks < 2) {
		rat_set(bound, 0, 1);
	}
	if (rc) {
		return rc;
	}
	mpq_inits(by_ports, units, NULL);
	rat_set(units, ports, net->unit);
	mpq_mul(bound, bound, units);
	rat_set(by_ports, net->ranks - 1, whole && net->ranks > 1 ? net->ranks - 1 : net->ranks);
	if (mpq_cmp(by_ports, bound) > 0) {
		mpq_set(bound, by_ports);
	}
	mpq_clears(by_ports, units, NULL);
	return 0;
}

int coll_tree_bound(const struct topo *t, enum coll_kind kind, int root, int ports,
		    mpq_t bound, struct err *err)
{
	bool towards = kind == COLL_REDUCE || kind == COLL_GATHER;
	struct topo *back = NULL;
	struct tree_net net = { 0 };
	int rc;

	if (!coll_has_root(kind)) {
		return err_set(err, WEFT_EINVAL, "%s has no root", coll_kind_name(kind));
	}
	if (towards && (rc = topo_transpose(t, &back, NULL, err))) {
		return rc;
	}
	rc = tree_net_init(&net, towards ? back : t, root, err);
	if (rc == 0) {
		rc = bound_of(&net, kind == COLL_BROADCAST || kind == COLL_REDUCE, ports, bound, err);
	}
	tree_net_fini(&net);
	topo_free(back);
	return rc;
}
