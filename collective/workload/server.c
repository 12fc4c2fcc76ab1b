/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Steps on servers of several ranks.
 *
 * Ranks are numbered server by server, so the last axes of a mesh lie within servers, and at most
 * one axis lies partly there. What runs along those needs no port. A collective along others has
 * circuits between ranks at the same place of their servers, by the ports of these: rails, alike
 * at all places. A group of it has some ranks of each of its servers, and its schedule is made on
 * their rails and on what of a server is theirs: the links of its ranks, and of links between
 * switches and memories as much as each group of the server gets.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "collective/workload/private.h"
#include "lib/base/alloc.h"
#include "lib/base/number/rat.h"

#define INSIDE_BPS INT64_C(8000000000)	/* a GB/s, as capacities inside are */

int workload_set_server(struct workload *w, const char *expr, const int *port_at, struct err *err)
{
	struct topo *t;
	int left, rc = topo_parse(expr, &t, NULL, err);

	if (rc) {
		return rc;
	}
	left = topo_ranks(t);
	for (size_t i = w->axes.n; i-- > 0;) {
		struct workload_axis *a = &w->axes.v[i];

		a->inside = a->size < left ? a->size : left;
		if (a->size % a->inside || left % a->inside) {
			rc = err_set(err, WEFT_EINVAL, "axis %s: %d ranks, where %d are in one "
				     "server", a->name, a->size, left);
			topo_free(t);
			return rc;
		}
		left /= a->inside;
	}
	if (left > 1) {
		topo_free(t);
		return err_set(err, WEFT_EINVAL, "fewer ranks than a server has");
	}
	w->server = t;
	w->server_expr = x_dup(expr);
	w->port_at = x_new((size_t)topo_ranks(t), sizeof(*w->port_at));
	memcpy(w->port_at, port_at, (size_t)topo_ranks(t) * sizeof(*w->port_at));
	return 0;
}

int workload_servers(const struct workload *w, uint32_t axes)
{
	int n = 1;

	for (size_t i = 0; i < w->axes.n; i++) {
		n *= axes >> i & 1 ? w->axes.v[i].size / w->axes.v[i].inside : 1;
	}
	return n;
}

int ranks_inside(const struct workload *w, uint32_t axes)
{
	return workload_ranks(w, axes) / workload_servers(w, axes);
}

/* ---- what of a server is a group's ---- */

/* A group's part of a server: its ranks, in their order, memories and switches that they reach
 * through no other rank. */
struct server_part {
	VEC(int) nodes;		/* of the server */
	int *place;		/* [nodes of the server] in that list, or -1 */
	int ranks;		/* the first of them */
	int sharers;		/* groups that share what is between the others */
};

static void part_fini(struct server_part *p)
{
	vec_fini(&p->nodes);
	free(p->place);
}

/* That of the group of a rank of the first server. */
static void find_part(const struct workload *w, uint32_t axes, int rank, struct server_part *p)
{
	const struct topo *t = w->server;
	int *group = x_new((size_t)workload_ranks(w, axes), sizeof(*group));

	*p = (struct server_part){ .ranks = ranks_inside(w, axes) };
	p->place = x_alloc((size_t)topo_n(t), sizeof(*p->place));
	memset(p->place, -1, (size_t)topo_n(t) * sizeof(*p->place));
	p->sharers = topo_ranks(t) / p->ranks;
	workload_group(w, axes, rank, group);
	for (int i = 0; i < p->ranks; i++) {
		p->place[group[i]] = (int)p->nodes.n;
		vec_push(&p->nodes, group[i]);
	}
	for (size_t i = 0; i < p->nodes.n; i++) {
		int first, n = topo_out(t, p->nodes.v[i], &first);

		for (int a = first; a < first + n; a++) {
			int to = topo_arc(t, a)->dst;

			if (p->place[to] < 0 && to >= topo_ranks(t)) {
				p->place[to] = (int)p->nodes.n;
				vec_push(&p->nodes, to);
			}
		}
	}
	/* In the server's order, so that parts can be compared, and memories come first. */
	p->nodes.n = (size_t)p->ranks;
	for (int v = topo_ranks(t); v < topo_n(t); v++) {
		if (p->place[v] >= 0) {
			p->place[v] = (int)p->nodes.n;
			vec_push(&p->nodes, v);
		}
	}
	free(group);
}

/* Bits a second of an arc of the server for the part; 0: it is none of its own. */
static int64_t part_bps(const struct workload *w, const struct server_part *p,
			const struct topo_arc *arc)
{
	bool shared = arc->src >= topo_ranks(w->server) && arc->dst >= topo_ranks(w->server);

	return p->place[arc->src] < 0 || p->place[arc->dst] < 0 ? 0 :
	       arc->cap * INSIDE_BPS / (shared ? p->sharers : 1);
}

/* Whether one part is the other by the order of its nodes. O(arcs^2). */
static bool are_alike(const struct workload *w, const struct server_part *a,
		      const struct server_part *b)
{
	const struct topo *t = w->server;
	bool alike = a->nodes.n == b->nodes.n;

	for (int i = 0; alike && i < a->ranks; i++) {
		alike = a->place[w->port_at[a->nodes.v[i]]] == b->place[w->port_at[b->nodes.v[i]]];
	}
	for (int i = 0; alike && i < topo_m(t); i++) {
		const struct topo_arc *arc = topo_arc(t, i);
		int64_t bps = part_bps(w, a, arc), other = 0;
		int first, n = bps ? topo_out(t, b->nodes.v[a->place[arc->src]], &first) : 0;

		for (int k = 0; k < n; k++) {
			const struct topo_arc *o = topo_arc(t, first + k);

			other += b->place[o->dst] == a->place[arc->dst] ? part_bps(w, b, o) : 0;
		}
		/* Of parallel arcs, those of both sides together. */
		n = bps ? topo_out(t, arc->src, &first) : 0;
		for (int k = 0; k < n; k++) {
			const struct topo_arc *o = topo_arc(t, first + k);

			other -= o->dst == arc->dst ? part_bps(w, a, o) : 0;
		}
		alike = other == 0;
	}
	return alike;
}

/* The part of the first group, like which are those of all others. WEFT_EUNSUPPORTED. */
static int common_part(const struct workload *w, const struct workload_op *op,
		       struct server_part *out, struct err *err)
{
	struct server_part other;
	int rc = 0;

	find_part(w, op->axes, 0, out);
	for (int i = 0; i < out->ranks && !rc; i++) {
		if (out->place[w->port_at[out->nodes.v[i]]] < 0) {
			rc = err_set(err, WEFT_EUNSUPPORTED, "%s: the ports of a rank are behind "
				     "another", op->name);
		}
	}
	for (int r = 1; r < topo_ranks(w->server) && !rc; r++) {
		find_part(w, op->axes, r, &other);
		if (!are_alike(w, out, &other)) {
			rc = err_set(err, WEFT_EUNSUPPORTED, "%s: its groups are not alike within "
				     "a server", op->name);
		}
		part_fini(&other);
	}
	return rc;
}

/* What bounds a rank: bits a second in or out of the narrowest, and of all together into them. */
struct rank_capacity {
	double in, out, all;
};

/* Of the ranks of a part, by its links and by the ports that are at the rank itself; ports at
 * another node are reached over those links. */
static struct rank_capacity find_capacity(const struct workload_planner *pl, uint32_t axes,
					  const struct server_part *p)
{
	const struct workload *w = pl->w;
	double ports = workload_servers(w, axes) > 1
			       ? (double)pl->p->link_bps * pl->p->ports : 0;
	struct rank_capacity least = { INFINITY, INFINITY, 0 };

	for (int i = 0; i < p->ranks; i++) {
		int rank = p->nodes.v[i];
		double own = w->port_at[rank] == rank ? ports : 0, in = own, out = own;

		for (int a = 0; a < topo_m(w->server); a++) {
			const struct topo_arc *arc = topo_arc(w->server, a);

			in += arc->dst == rank ? (double)part_bps(w, p, arc) : 0;
			out += arc->src == rank ? (double)part_bps(w, p, arc) : 0;
		}
		least.in = fmin(least.in, in);
		least.out = fmin(least.out, out);
		least.all += in;
	}
	/* What is summed elsewhere does not come to ranks one by one. */
	for (size_t i = (size_t)p->ranks; i < p->nodes.n; i++) {
		if (topo_node_flags(w->server, p->nodes.v[i]) & TOPO_CAN_REDUCE) {
			least.all = INFINITY;
		}
	}
	return least;
}

double rank_bound(const struct workload_planner *pl, const struct workload_op *op)
{
	double n = workload_ranks(pl->w, op->axes), bits = (double)op->bytes * 8e9, ns = 0;
	struct rank_capacity c;
	struct server_part p;

	if (n < 2 || op->shift || !pl->w->server) {
		return 0;
	}
	find_part(pl->w, op->axes, 0, &p);
	c = find_capacity(pl, op->axes, &p);
	if (op->kind == COLL_ALLREDUCE) {
		ns = fmax(bits / fmin(c.in, c.out), 2 * (n - 1) / n * bits * p.ranks / c.all);
	} else if (op->kind == COLL_ALLTOALL) {
		ns = (n - 1) / n * bits / fmin(c.in, c.out);
	} else {
		ns = (n - 1) / n * bits / (op->kind == COLL_ALLGATHER ? c.in : c.out);
	}
	part_fini(&p);
	return ns;
}

/* ---- the digraph of a group ---- */

/* The capacity that 1 stands for. */
static int64_t find_unit(const struct workload *w, const struct server_part *p, bool has_rails,
			 int64_t link_bps)
{
	int64_t unit = has_rails ? link_bps : 0;

	for (int a = 0; a < topo_m(w->server); a++) {
		unit = rat_gcd(part_bps(w, p, topo_arc(w->server, a)), unit);
	}
	return unit;
}

struct group_digraph {
	const struct workload *w;
	struct server_part part;
	int servers, memories;	/* memories: of a part */
	int64_t unit;
	struct topo *t;
};

/* Ranks first, then memories, then switches, server by server. */
static int node_of(const struct group_digraph *g, int server, int place)
{
	const struct server_part *p = &g->part;
	int others = (int)p->nodes.n - p->ranks, switches = others - g->memories;

	if (place < p->ranks) {
		return server * p->ranks + place;
	}
	place -= p->ranks;
	return g->servers * p->ranks +
	       (place < g->memories ? server * g->memories + place
				    : g->servers * g->memories + server * switches + place -
				      g->memories);
}

static int add_servers(struct group_digraph *g, struct err *err)
{
	const struct topo *t = g->w->server;
	int rc = 0;

	for (int s = 0; s < g->servers; s++) {
		for (size_t i = 0; i < g->part.nodes.n; i++) {
			topo_set_node(g->t, node_of(g, s, (int)i),
				      topo_node_kind(t, g->part.nodes.v[i]),
				      topo_node_flags(t, g->part.nodes.v[i]));
		}
		for (int a = 0; a < topo_m(t) && !rc; a++) {
			const struct topo_arc *arc = topo_arc(t, a);
			int64_t bps = part_bps(g->w, &g->part, arc);

			rc = bps < g->unit ? 0 :
			     topo_add_arc(g->t, node_of(g, s, g->part.place[arc->src]),
					  node_of(g, s, g->part.place[arc->dst]), bps / g->unit,
					  arc->latency_ns, err);
		}
	}
	return rc;
}

/* Circuits between the nodes that have the ranks' ports, or between the ranks themselves. */
static int add_rails(struct group_digraph *g, const struct topo *rails, int64_t link_bps,
		     bool between_ranks, struct err *err)
{
	int rc = 0;

	for (int i = 0; i < g->part.ranks; i++) {
		int at = between_ranks ? i : g->part.place[g->w->port_at[g->part.nodes.v[i]]];

		for (int a = 0; a < topo_m(rails) && !rc; a++) {
			const struct topo_arc *arc = topo_arc(rails, a);

			rc = topo_add_arc(g->t, node_of(g, arc->src, at), node_of(g, arc->dst, at),
					  arc->cap * (link_bps / g->unit), 0, err);
		}
	}
	return rc;
}

static int build(struct group_digraph *g, const struct topo *rails, int64_t link_bps,
		 bool between_ranks, struct topo **out, struct err *err)
{
	int rc = topo_new(g->servers * (int)g->part.nodes.n, &g->t, err);

	if (!rc && (rc = add_servers(g, err)) == 0 &&
	    (rc = add_rails(g, rails, link_bps, between_ranks, err)) == 0) {
		topo_freeze(g->t);
		*out = g->t;
	} else {
		topo_free(g->t);
	}
	g->t = NULL;
	return rc;
}

int server_group(const struct workload *w, const struct workload_params *p,
		 const struct workload_light *l, int op, struct server_digraph *out,
		 struct err *err)
{
	const struct workload_op *o = &w->ops.v[op];
	struct group_digraph g = { .w = w, .servers = workload_servers(w, o->axes) };
	struct topo *rails = NULL, *direct = NULL;
	int rc = common_part(w, o, &g.part, err);

	*out = (struct server_digraph){ 0 };
	for (size_t i = 0; i < g.part.nodes.n; i++) {
		g.memories += topo_node_kind(w->server, g.part.nodes.v[i]) == TOPO_MEMORY;
	}
	g.unit = find_unit(w, &g.part, g.servers > 1, p->link_bps);
	out->unit_bps = g.unit;
	if (rc || (rc = workload_group_topo(w, l, op, &rails, err)) ||
	    (rc = build(&g, rails, p->link_bps, false, &out->physical, err)) ||
	    (rc = build(&g, rails, p->link_bps, true, &direct, err)) ||
	    (rc = coll_terminals_see(direct, &out->seen, err))) {
		goto out;
	}
	out->groups = x_new((size_t)(g.servers * g.part.ranks), sizeof(*out->groups));
	for (int i = 0; i < g.servers * g.part.ranks; i++) {
		out->groups[i] = i / g.part.ranks;
	}
out:
	topo_free(rails);
	topo_free(direct);
	part_fini(&g.part);
	return rc;
}

void server_digraph_fini(struct server_digraph *d)
{
	topo_free(d->physical);
	topo_free(d->seen);
	free(d->groups);
}
