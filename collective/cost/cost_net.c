/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The digraph that is searched for trees, and its rows: what symmetry leaves of t.
 *
 * Servers that are alike and meet in shared switches only can change places freely. An optimal
 * tree can take what comes from other servers from those that have it first, two for each kind of
 * node; all servers beyond these may do what the cheapest of them does. So a few are kept, and
 * the last one stands for the rest with its weight. What an orbit of arcs is follows from two of
 * them: an automorphism of these and the shared nodes is one of all.
 */
#include <stdlib.h>
#include <string.h>

#include "collective/cost/private.h"
#include "lib/base/alloc.h"
#include "lib/base/number/rng.h"

#define ROUNDS 3
#define MAX_TRIES 16
#define NAUTY_MOST 200000	/* nodes and arcs; beyond no symmetry is looked for */

/* Of t: parts of nodes, and arcs of each part in an order that is the same for all. */
struct cost_parts {
	const struct topo *t;
	int n, size;		/* parts, and nodes in each */
	int arcs;		/* of each part */
	int32_t *part;		/* of a node; -1: shared */
	int32_t *place;		/* of a node in its part */
	int32_t *arc_part, *arc_place;	/* likewise; -1: between shared nodes */
	int32_t *at;		/* arc `i` of part p: at[p * arcs + i] */
	int32_t *class_of;	/* of an arc: the first arc of its orbit */
	int32_t *node_class, *limit_class;
	int32_t *up;		/* room */
	uint64_t *colour, *next;
	struct arrays arrays;
};

/* ---- parts ---- */

static uint64_t arc_colour(const struct topo_arc *a, bool out)
{
	return rng_mix(((uint64_t)a->cap << 1 | out) ^
		       rng_mix((uint64_t)a->latency_ns ^ rng_mix((uint64_t)a->cost)));
}

static void refine(struct cost_parts *p)
{
	const struct topo *t = p->t;

	for (int u = 0; u < topo_n(t); u++) {
		p->next[u] = rng_mix(p->colour[u]);
	}
	for (int a = 0; a < topo_m(t); a++) {
		const struct topo_arc *arc = topo_arc(t, a);

		p->next[arc->src] += rng_mix(arc_colour(arc, true) ^ p->colour[arc->dst]);
		p->next[arc->dst] += rng_mix(arc_colour(arc, false) ^ p->colour[arc->src]);
	}
	memcpy(p->colour, p->next, (size_t)topo_n(t) * sizeof(*p->colour));
}

static int32_t root_of(int32_t *up, int32_t x)
{
	while (up[x] != x) {
		up[x] = up[up[x]];
		x = up[x];
	}
	return x;
}

/* Numbers the parts that are left without the switches of this colour; false: they differ in
 * size, or there is only one. */
static bool cut_at(struct cost_parts *p, uint64_t colour, int first)
{
	const struct topo *t = p->t;
	int n = topo_n(t);

	for (int u = 0; u < n; u++) {
		bool shared = topo_node_kind(t, u) == TOPO_SWITCH && p->colour[u] == colour;

		p->up[u] = u;
		p->part[u] = shared ? -1 : -2;
	}
	for (int a = 0; a < topo_m(t); a++) {
		const struct topo_arc *arc = topo_arc(t, a);

		if (p->part[arc->src] != -1 && p->part[arc->dst] != -1) {
			p->up[root_of(p->up, arc->src)] = root_of(p->up, arc->dst);
		}
	}
	p->n = 0;
	/* The part of `first` is number 0; next[] counts nodes by number. */
	p->part[root_of(p->up, first)] = p->n++;
	p->next[0] = 0;
	for (int u = 0; u < n; u++) {
		int32_t r = p->part[u] == -1 ? -1 : root_of(p->up, u);

		if (r >= 0 && p->part[r] == -2) {
			p->part[r] = p->n;
			p->next[p->n++] = 0;
		}
		if (r >= 0) {
			p->place[u] = (int32_t)p->next[p->part[r]]++;
		}
	}
	for (int u = 0; u < n; u++) {
		if (p->part[u] != -1) {
			p->part[u] = p->part[root_of(p->up, u)];
		}
	}
	p->size = (int)p->next[0];
	for (int i = 1; i < p->n; i++) {
		if (p->next[i] != p->next[0]) {
			return false;
		}
	}
	return p->n > 1;
}

static bool is_node_like(const struct cost_parts *p, int u, int v)
{
	return (p->part[u] == -1 || p->part[v] == -1 ? u == v : p->place[u] == p->place[v]) &&
	       topo_node_kind(p->t, u) == topo_node_kind(p->t, v) &&
	       topo_node_flags(p->t, u) == topo_node_flags(p->t, v);
}

static bool is_arc_like(const struct cost_parts *p, int a, int b)
{
	const struct topo_arc *x = topo_arc(p->t, a), *y = topo_arc(p->t, b);

	return is_node_like(p, x->src, y->src) && is_node_like(p, x->dst, y->dst) &&
	       x->cap == y->cap && x->latency_ns == y->latency_ns && x->cost == y->cost;
}

/* Which part an arc is of, and the arcs of all parts in order; false: not as many. */
static bool place_arcs(struct cost_parts *p)
{
	int m = topo_m(p->t), total = 0;

	memset(p->next, 0, (size_t)p->n * sizeof(*p->next));
	for (int a = 0; a < m; a++) {
		const struct topo_arc *arc = topo_arc(p->t, a);
		int of = p->part[arc->src] >= 0 ? p->part[arc->src] : p->part[arc->dst];

		p->arc_part[a] = of;
		p->arc_place[a] = of < 0 ? -1 : (int32_t)p->next[of]++;
		total += of >= 0;
	}
	p->arcs = (int)p->next[0];
	if ((int64_t)p->arcs * p->n != total) {
		return false;
	}
	for (int i = 1; i < p->n; i++) {
		if (p->next[i] != p->next[0]) {
			return false;
		}
	}
	for (int a = 0; a < m; a++) {
		if (p->arc_part[a] >= 0) {
			p->at[(size_t)p->arc_part[a] * p->arcs + p->arc_place[a]] = a;
		}
	}
	return true;
}

/* Whether exchanging nodes in the order of their numbers takes any part to any. */
static bool are_parts_alike(struct cost_parts *p)
{
	if (!place_arcs(p)) {
		return false;
	}
	for (int a = 0; a < topo_m(p->t); a++) {
		if (p->arc_part[a] >= 0 && !is_arc_like(p, a, p->at[p->arc_place[a]])) {
			return false;
		}
	}
	return true;
}

static void one_part(struct cost_parts *p)
{
	p->n = 1;
	p->size = topo_n(p->t);
	for (int u = 0; u < p->size; u++) {
		p->part[u] = 0;
		p->place[u] = u;
	}
	place_arcs(p);
}

/* Tries the switches of each colour as what parts share. */
static void find_parts(struct cost_parts *p, int first)
{
	const struct topo *t = p->t;
	uint64_t tried[MAX_TRIES];
	int tries = 0;

	for (int u = 0; u < topo_n(t); u++) {
		p->colour[u] = topo_node_flags(t, u) << 4 | topo_node_kind(t, u);
	}
	for (int i = 0; i < ROUNDS; i++) {
		refine(p);
	}
	for (int u = topo_n(t) - 1; u >= 0 && tries < MAX_TRIES; u--) {
		bool again = topo_node_kind(t, u) != TOPO_SWITCH;

		for (int i = 0; i < tries && !again; i++) {
			again = tried[i] == p->colour[u];
		}
		if (again) {
			continue;
		}
		tried[tries++] = p->colour[u];
		if (cut_at(p, p->colour[u], first) && are_parts_alike(p)) {
			return;
		}
	}
	one_part(p);
}

/* ---- orbits ---- */

/* Part 0, another, and what is shared, as a digraph: copy[u] its node u of t, arc[a] its arc a. */
static int two_parts(const struct cost_parts *p, struct topo **out, int32_t *copy, int32_t *arc,
		     struct err *err)
{
	const struct topo *t = p->t;
	struct topo *two;
	int n = 0, m = 0, rc;

	for (int u = 0; u < topo_n(t); u++) {
		copy[u] = p->part[u] <= 1 ? n++ : -1;
	}
	if ((rc = topo_new(n, &two, err))) {
		return rc;
	}
	for (int u = 0; u < topo_n(t); u++) {
		if (copy[u] >= 0) {
			topo_set_node(two, copy[u], topo_node_kind(t, u), topo_node_flags(t, u));
		}
	}
	/* Arcs by source, in the order of their numbers: so they stay. */
	for (int a = 0; a < topo_m(t) && rc == 0; a++) {
		const struct topo_arc *x = topo_arc(t, a);

		if (copy[x->src] >= 0 && copy[x->dst] >= 0) {
			arc[m++] = a;
			rc = topo_add_arc_like(two, copy[x->src], copy[x->dst], x, err);
		}
	}
	if (rc == 0) {
		rc = topo_copy_limits(t, NULL, two, err);
	}
	if (rc) {
		topo_free(two);
		return rc;
	}
	topo_freeze(two);
	*out = two;
	return 0;
}

/* Shared nodes, the root and its part are told apart from others. */
static void colour_nodes(const struct cost_parts *p, int root, const int32_t *copy, int32_t *colour)
{
	for (int u = 0; u < topo_n(p->t); u++) {
		if (copy[u] >= 0) {
			colour[copy[u]] = p->part[u] < 0 ? 0
					  : u == root ? 1
					  : root >= 0 && p->part[u] == 0 ? 2 : 3;
		}
	}
}

/* Names of orbits in the smaller digraph become those of t. Other parts are as part 1. */
static void spread_orbits(struct cost_parts *p, const int32_t *copy, const int32_t *arc,
			  const int32_t *of_node, const int32_t *of_arc, int m)
{
	for (int a = 0; a < m; a++) {
		p->class_of[arc[a]] = arc[of_arc[a]];
	}
	for (int a = 0; a < topo_m(p->t); a++) {
		if (p->arc_part[a] > 1) {
			p->class_of[a] = p->class_of[p->at[(size_t)p->arcs + p->arc_place[a]]];
		}
	}
	for (int u = 0; u < topo_n(p->t); u++) {
		p->node_class[u] = copy[u] < 0 ? -1 : of_node[copy[u]];
	}
}

static int all_orbits(struct cost_parts *p, int root, struct err *err)
{
	size_t n = (size_t)topo_n(p->t), m = (size_t)topo_m(p->t) + 1;
	int32_t *copy, *arc, *colour, *of_node, *of_arc;
	struct arrays room = { 0 };
	struct topo *two = NULL;
	int rc;

	arrays_add(&room, copy, n);
	arrays_add(&room, colour, n);
	arrays_add(&room, of_node, n);
	arrays_add(&room, arc, m);
	arrays_add(&room, of_arc, m);
	rc = two_parts(p, &two, copy, arc, err);
	if (rc == 0) {
		colour_nodes(p, root, copy, colour);
		topo_orbits(two, colour, of_node, of_arc, p->limit_class);
	}
	if (rc == 0) {
		spread_orbits(p, copy, arc, of_node, of_arc, topo_m(two));
	}
	topo_free(two);
	arrays_fini(&room);
	return rc;
}

/* As the group moves arcs and nodes; NULL: each alone. There is none with limits. */
static int group_orbits(struct cost_parts *p, const struct topo_group *g, struct err *err)
{
	struct topo_action *x = NULL;
	int rc = topo_action_new(p->t, g, &x, err);

	if (rc) {
		return rc;
	}
	for (int a = 0; a < topo_m(p->t); a++) {
		p->class_of[a] = topo_action_first(x, topo_action_orbit(x, a));
	}
	for (int u = 0; u < topo_n(p->t); u++) {
		p->node_class[u] = u < topo_ranks(p->t) && g ? topo_group_first(g, u) : u;
	}
	for (int i = 0; i < topo_n_limits(p->t); i++) {
		p->limit_class[i] = i;
	}
	topo_action_free(x);
	return 0;
}

/* A group that moves terminals freely, as far as one is found; with limits none is used. */
static int find_group(const struct topo *t, struct topo_group **g, struct err *err)
{
	int rc = topo_group_find(t, g, err);

	if (topo_n_limits(t) > 0) {
		topo_group_free(*g);
		*g = NULL;
		return rc;
	}
	if (rc == 0 && !*g) {
		*g = topo_group_digits(t);
	}
	return rc;
}

static int find_orbits(struct cost_parts *p, enum cost_symmetry symmetry, int root,
		       struct topo_group **g, struct err *err)
{
	bool plain = p->n == 1 && root < 0 && symmetry != COST_NONE;
	int rc = 0;

	if (symmetry == COST_FREE && root < 0) {
		rc = find_group(p->t, g, err);
	} else if (plain && topo_n_limits(p->t) == 0) {
		rc = topo_group_find(p->t, g, err);
	}
	if (rc) {
		return rc;
	}
	if (symmetry == COST_ALL && !*g && (topo_n(p->t) + topo_m(p->t) <= NAUTY_MOST ||
					    p->n > 1)) {
		return all_orbits(p, root, err);
	}
	return group_orbits(p, *g, err);
}

/* ---- the digraph ---- */

/* So many parts are enough. */
static int parts_to_keep(const struct cost_parts *p)
{
	int holders = 0;

	for (int u = 0; u < topo_n(p->t); u++) {
		holders += p->part[u] == 0 &&
			   (topo_node_flags(p->t, u) & (TOPO_CAN_COPY | TOPO_CAN_REDUCE));
	}
	return p->n < 2 * holders + 2 ? p->n : 2 * holders + 2;
}

static void add_nodes(struct cost_net *net, const struct cost_parts *p, int32_t *copy)
{
	const struct topo *t = p->t;

	for (int u = 0; u < topo_n(t); u++) {
		int v = net->n;

		copy[u] = p->part[u] < net->parts ? v : -1;
		if (copy[u] < 0) {
			continue;
		}
		net->n++;
		net->node[v] = u;
		net->part[v] = p->part[u];
		net->place[v] = p->place[u];
		net->weight[v] = net->parts > 1 && p->part[u] == net->parts - 1
					 ? p->n - net->parts + 1 : 1;
		net->terminal[v] = topo_node_kind(t, u) == TOPO_TERMINAL;
		net->copies[v] = topo_node_flags(t, u) & TOPO_CAN_COPY;
		net->reduces[v] = topo_node_flags(t, u) & TOPO_CAN_REDUCE;
	}
}

static void index_arcs(struct cost_net *net)
{
	for (int a = 0; a < net->m; a++) {
		net->out_first[net->src[a] + 1]++;
		net->in_first[net->dst[a] + 1]++;
	}
	for (int u = 0; u < net->n; u++) {
		net->out_first[u + 1] += net->out_first[u];
		net->in_first[u + 1] += net->in_first[u];
	}
	for (int a = 0; a < net->m; a++) {
		net->out[net->out_first[net->src[a]]++] = a;
		net->in[net->in_first[net->dst[a]]++] = a;
	}
	for (int u = net->n; u > 0; u--) {
		net->out_first[u] = net->out_first[u - 1];
		net->in_first[u] = net->in_first[u - 1];
	}
	net->out_first[0] = net->in_first[0] = 0;
}

/* Rows of arcs and limits; row_of[a]: of the arc that names an orbit. */
static void add_rows(struct cost_net *net, const struct cost_parts *p, int32_t *row_of)
{
	const struct topo *t = p->t;

	for (int a = 0; a < topo_m(t); a++) {
		const struct topo_arc *arc = topo_arc(t, a);

		if (p->class_of[a] == a && arc->src != arc->dst) {
			row_of[a] = net->n_rows;
			net->rows[net->n_rows++] = (struct cost_row){ a, -1, 0, arc->cap };
		}
	}
	for (int a = 0; a < topo_m(t); a++) {
		if (topo_arc(t, a)->src != topo_arc(t, a)->dst) {
			net->arc_row[a] = row_of[p->class_of[a]];
			net->rows[net->arc_row[a]].alike++;
		}
	}
	for (int i = 0; i < topo_n_limits(t); i++) {
		if (p->limit_class[i] == i) {
			row_of[topo_m(t) + i] = net->n_rows;
			net->rows[net->n_rows++] = (struct cost_row){ -1, i, 0,
								      topo_limit(t, i)->cap };
		}
		net->rows[row_of[topo_m(t) + p->limit_class[i]]].alike++;
	}
}

static void add_arcs(struct cost_net *net, const struct cost_parts *p, const int32_t *copy,
		     const int32_t *row_of)
{
	const struct topo *t = p->t;
	int rows = 0;

	for (int a = 0; a < topo_m(t); a++) {
		const struct topo_arc *arc = topo_arc(t, a);
		const int32_t *limits;
		int n = topo_arc_limits(t, a, &limits);

		if (copy[arc->src] < 0 || copy[arc->dst] < 0 || arc->src == arc->dst) {
			continue;
		}
		net->src[net->m] = copy[arc->src];
		net->dst[net->m] = copy[arc->dst];
		net->cost[net->m] = arc->cost;
		net->origin[net->m] = a;
		net->row_first[net->m++] = rows;
		net->row[rows++] = row_of[p->class_of[a]];
		for (int i = 0; i < n; i++) {
			net->row[rows++] = row_of[topo_m(t) + p->limit_class[limits[i]]];
		}
	}
	net->row_first[net->m] = rows;
	index_arcs(net);
}

/* The root, or the first terminal of each orbit, all of which are in part 0. */
static void add_roots(struct cost_net *net, const struct cost_parts *p, const int32_t *copy,
		      int root, int32_t *at)
{
	for (int u = 0; u < topo_n(p->t); u++) {
		at[u] = -1;
	}
	for (int u = 0; u < topo_ranks(p->t); u++) {
		int c = p->node_class[u];

		if ((root < 0 || u == root) && p->part[u] == 0 && at[c] < 0) {
			at[c] = net->n_roots;
			net->roots[net->n_roots++] = copy[u];
		}
	}
	for (int u = 0; u < topo_ranks(p->t); u++) {
		/* Part 1 stands for all others. */
		if (p->part[u] <= 1 && at[p->node_class[u]] >= 0) {
			net->orbit[at[p->node_class[u]]] +=
				root < 0 && p->part[u] == 1 ? p->n - 1 : 1;
		}
	}
}

static void fill_net(struct cost_net *net, const struct cost_parts *p, int root)
{
	const struct topo *t = p->t;
	int n = topo_n(t), m = topo_m(t), limited = 0;
	int32_t *copy, *row_of;
	struct arrays room = { 0 };

	for (int i = 0; i < topo_n_limits(t); i++) {
		limited += topo_limit(t, i)->n;
	}
	arrays_add(&room, copy, n);
	arrays_add(&room, row_of, m + topo_n_limits(t));
	arrays_add(&net->arrays, net->node_at, n);
	arrays_add(&net->arrays, net->arc_at, m);
	arrays_add(&net->arrays, net->arc_part, m);
	arrays_add(&net->arrays, net->arc_place, m);
	arrays_add(&net->arrays, net->arc_row, m);
	arrays_add(&net->arrays, net->src, m);
	arrays_add(&net->arrays, net->dst, m);
	arrays_add(&net->arrays, net->cost, m);
	arrays_add(&net->arrays, net->origin, m);
	arrays_add(&net->arrays, net->out, m);
	arrays_add(&net->arrays, net->in, m);
	arrays_add(&net->arrays, net->row_first, m + 1);
	arrays_add(&net->arrays, net->row, m + limited);
	arrays_add(&net->arrays, net->rows, m + topo_n_limits(t));
	arrays_add(&net->arrays, net->out_first, n + 1);
	arrays_add(&net->arrays, net->in_first, n + 1);
	arrays_add(&net->arrays, net->node, n);
	arrays_add(&net->arrays, net->part, n);
	arrays_add(&net->arrays, net->place, n);
	arrays_add(&net->arrays, net->weight, n);
	arrays_add(&net->arrays, net->terminal, n);
	arrays_add(&net->arrays, net->copies, n);
	arrays_add(&net->arrays, net->reduces, n);
	arrays_add(&net->arrays, net->roots, n);
	arrays_add(&net->arrays, net->orbit, n);
	net->part_size = p->size;
	net->all_parts = p->n;
	net->part_arcs = p->arcs;
	memcpy(net->arc_at, p->at, (size_t)m * sizeof(*net->arc_at));
	memcpy(net->arc_part, p->arc_part, (size_t)m * sizeof(*net->arc_part));
	memcpy(net->arc_place, p->arc_place, (size_t)m * sizeof(*net->arc_place));
	for (int u = 0; u < n; u++) {
		if (p->part[u] >= 0) {
			net->node_at[p->part[u] * p->size + p->place[u]] = u;
		}
	}
	add_nodes(net, p, copy);
	add_rows(net, p, row_of);
	add_arcs(net, p, copy, row_of);
	add_roots(net, p, copy, root, row_of);
	arrays_fini(&room);
}

static void parts_init(struct cost_parts *p)
{
	int n = topo_n(p->t), m = topo_m(p->t);

	arrays_add(&p->arrays, p->part, n);
	arrays_add(&p->arrays, p->place, n);
	arrays_add(&p->arrays, p->up, n);
	arrays_add(&p->arrays, p->colour, n);
	arrays_add(&p->arrays, p->next, n + 1);
	arrays_add(&p->arrays, p->node_class, n);
	arrays_add(&p->arrays, p->arc_part, m);
	arrays_add(&p->arrays, p->arc_place, m);
	arrays_add(&p->arrays, p->at, m);
	arrays_add(&p->arrays, p->class_of, m);
	arrays_add(&p->arrays, p->limit_class, topo_n_limits(p->t));
}

int cost_net_new(const struct topo *t, enum cost_symmetry symmetry, int root,
		 struct cost_net **out, struct err *err)
{
	struct cost_parts p = { .t = t };
	struct cost_net *net = x_new(1, sizeof(*net));
	int rc;

	parts_init(&p);
	if (symmetry == COST_ALL && topo_n_limits(t) == 0) {
		find_parts(&p, root < 0 ? 0 : root);
	} else {
		one_part(&p);
	}
	rc = find_orbits(&p, symmetry, root, &net->group, err);
	if (rc == 0) {
		net->parts = parts_to_keep(&p);
		fill_net(net, &p, root);
	}
	arrays_fini(&p.arrays);
	if (rc) {
		cost_net_free(net);
		return rc;
	}
	*out = net;
	return 0;
}

int cost_net_set_group(struct cost_net *net, const struct topo *t, bool *same, struct err *err)
{
	struct topo_action *x = NULL;
	int rc, loops = 0;

	*same = false;
	topo_group_free(net->group);
	net->group = NULL;
	rc = find_group(t, &net->group, err);
	if (rc || !net->group || (rc = topo_action_new(t, net->group, &x, err))) {
		return rc;
	}
	for (int a = 0; a < topo_m(t); a++) {
		loops += topo_arc(t, a)->src == topo_arc(t, a)->dst;
	}
	*same = loops == 0 && topo_n_limits(t) == 0 && net->n_rows == topo_action_orbits(x) &&
		net->n_roots == topo_group_orbits(net->group);
	/* As many orbits, and each within one of the net's: they are the same. */
	for (int a = 0; a < topo_m(t) && *same; a++) {
		*same = net->arc_row[a] == net->arc_row[topo_action_first(x,
								topo_action_orbit(x, a))];
	}
	for (int r = 0; r < net->n_roots && *same; r++) {
		int root = net->node[net->roots[r]];

		*same = topo_group_first(net->group, root) == root;
	}
	topo_action_free(x);
	return 0;
}

void cost_net_free(struct cost_net *net)
{
	if (net) {
		topo_group_free(net->group);
		arrays_fini(&net->arrays);
		free(net);
	}
}
