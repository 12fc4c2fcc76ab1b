/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Forests out of programs: the columns that are used are trees, with their weights as shares.
 *
 * The program is that of a group which moves terminals freely, so that trees and their images
 * load arcs as it says. Paths through switches become routes of logical arcs; where trees take
 * several for the same arc, all of them divide what they carry by what these take together, which
 * loads the switches just as much. One arc of each orbit has routes.
 */
#include <stdlib.h>
#include <string.h>

#include "collective/cost/private.h"
#include "collective/tree/forest.h"
#include "lib/base/alloc.h"
#include "lib/base/map.h"
#include "lib/base/number/rat.h"

/* Weights whose common denominator is larger are rounded to parts of this. */
#define MAX_SHARE (INT64_C(1) << 30)
#define ROUNDED_SHARE (INT64_C(1) << 20)
/* Routes of an arc share it in parts of this, so that all arcs have a common measure. */
#define ROUTE_PARTS 5040

/* A link of a tree on the arc that has the routes of its orbit. */
struct cost_use {
	int32_t arc;		/* logical */
	int32_t n;		/* hops */
	int32_t *hops;		/* of t; owned */
	int64_t weight;
};

/* A link of a tree on t. */
struct cost_walk {
	int32_t from, to, n;
	int32_t *hops;
	int64_t weight;
};

struct cost_forest {
	const struct topo *t;
	const struct cost_master *m;
	struct coll_forest *out;
	struct topo_action *action;	/* on t */
	int64_t *weight;	/* by column */
	int holders;
	bool plain;		/* arcs of t are the logical ones */
	struct u64map arc_of;	/* logical, by ends */
	VEC(struct cost_use) uses;
	struct coll_forest_tree tree;	/* that is being made */
};

typedef int on_walk(struct cost_forest *f, const struct cost_walk *w, struct err *err);

static void forest_fini(struct cost_forest *f)
{
	for (size_t i = 0; i < f->uses.n; i++) {
		free(f->uses.v[i].hops);
	}
	vec_fini(&f->uses);
	u64map_fini(&f->arc_of);
	topo_action_free(f->action);
	free(f->weight);
}

/* ---- weights ---- */

/* Whole weights of a block that add up to share, by largest remainders. */
static void round_block(struct cost_forest *f, int block, int64_t share)
{
	const struct cost_master *m = f->m;
	int64_t left = share;

	for (size_t j = 0; j < m->columns.n; j++) {
		if (m->columns.v[j]->block == block) {
			f->weight[j] = (int64_t)(mpq_get_d(m->weight[j]) * (double)share);
			left -= f->weight[j];
		}
	}
	while (left > 0) {
		double most = -1;
		size_t best = 0;

		for (size_t j = 0; j < m->columns.n; j++) {
			double rest = mpq_get_d(m->weight[j]) * (double)share -
				      (double)f->weight[j];

			if (m->columns.v[j]->block == block && rest > most) {
				most = rest;
				best = j;
			}
		}
		f->weight[best]++;
		left--;
	}
}

/* Whole weights, and what those of a block add up to. */
static int64_t find_weights(struct cost_forest *f)
{
	const struct cost_master *m = f->m;
	int64_t share;
	bool exact;
	mpz_t common;

	mpz_init_set_ui(common, 1);
	for (size_t j = 0; j < m->columns.n; j++) {
		mpz_lcm(common, common, mpq_denref(m->weight[j]));
	}
	exact = mpz_cmp_si(common, MAX_SHARE) <= 0;
	share = exact ? mpz_get_si(common) : ROUNDED_SHARE;
	mpz_clear(common);
	for (size_t j = 0; j < m->columns.n && exact; j++) {
		f->weight[j] = share / mpz_get_si(mpq_denref(m->weight[j])) *
			       mpz_get_si(mpq_numref(m->weight[j]));
	}
	for (size_t b = 0; b < m->blocks.n && !exact; b++) {
		round_block(f, (int)b, share);
	}
	return share;
}

/* Time of the weights as they are now. */
static void find_time(struct cost_forest *f, int64_t share, int64_t shards)
{
	const struct cost_net *net = f->m->net;
	mpq_t time;

	mpq_init(time);
	mpq_set_ui(f->out->time, 0, 1);
	for (int r = 0; r < net->n_rows; r++) {
		mpz_set_ui(mpq_numref(time), 0);
		for (size_t j = 0; j < f->m->columns.n; j++) {
			const struct cost_column *c = f->m->columns.v[j];
			mpz_t load;

			mpz_init_set_si(load, f->weight[j]);
			mpz_mul_si(load, load, c->uses[r] * f->m->blocks.v[c->block].times);
			mpz_add(mpq_numref(time), mpq_numref(time), load);
			mpz_clear(load);
		}
		mpz_set_si(mpq_denref(time), share);
		mpz_mul_si(mpq_denref(time), mpq_denref(time), cost_row_cap(net, r));
		mpz_mul_si(mpq_numref(time), mpq_numref(time), shards);
		mpq_canonicalize(time);
		if (mpq_cmp(time, f->out->time) > 0) {
			mpq_set(f->out->time, time);
		}
	}
	mpq_clear(time);
}

/* ---- logical arcs ---- */

static int move(const struct cost_forest *f, int by, int node)
{
	return by ? topo_group_move(f->m->net->group, by, node) : node;
}

static uint64_t ends(const struct cost_forest *f, int by, const struct cost_walk *w)
{
	return (uint64_t)move(f, by, w->from) * (uint64_t)topo_n(f->t) +
	       (uint64_t)move(f, by, w->to) + 1;
}

static int by_number(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* A node or arc of t; that of the last part which is searched as that of another part. */
static int node_in_part(const struct cost_net *net, int u, int part)
{
	return net->part[u] == net->parts - 1
		       ? net->node_at[(size_t)part * net->part_size + net->place[u]] : net->node[u];
}

static int arc_in_part(const struct cost_net *net, int a, int part)
{
	int of = net->origin[a];

	return net->arc_part[of] == net->parts - 1
		       ? net->arc_at[(size_t)part * net->part_arcs + net->arc_place[of]] : of;
}

/* Calls with a link, and with what the parts that are left out do instead of it. */
static int each_copy(struct cost_forest *f, const struct cost_column *c, const struct cost_link *l,
		     bool inwards, struct cost_walk *w, on_walk *call, struct err *err)
{
	const struct cost_net *net = f->m->net;
	int last = net->parts - 1, part = net->part[inwards ? l->from : l->to];
	int copies = net->parts > 1 && part == last ? net->all_parts - last : 1, rc = 0;

	for (int p = last; p < last + copies && rc == 0; p++) {
		w->n = l->n;
		w->from = node_in_part(net, l->from, p);
		w->to = node_in_part(net, l->to, p);
		for (int i = 0; i < l->n; i++) {
			w->hops[i] = arc_in_part(net, c->hops.v[l->first + i], p);
		}
		rc = call(f, w, err);
	}
	return rc;
}

/* Calls with all links of a column's tree. */
static int each_of_tree(struct cost_forest *f, const struct cost_column *c, bool inwards,
			int64_t weight, on_walk *call, struct err *err)
{
	const struct cost_link *l = inwards ? c->in.v : c->out.v;
	size_t n = inwards ? c->in.n : c->out.n;
	struct cost_walk w = { .weight = weight };
	int rc = 0;

	w.hops = x_alloc(c->hops.n + 1, sizeof(*w.hops));
	for (size_t i = 0; i < n && rc == 0; i++) {
		rc = each_copy(f, c, &l[i], inwards, &w, call, err);
	}
	free(w.hops);
	return rc;
}

/* Calls with all links of trees that weigh something. */
static int each_link(struct cost_forest *f, on_walk *call, struct err *err)
{
	int rc = 0;

	for (size_t j = 0; j < f->m->columns.n && rc == 0; j++) {
		if (f->weight[j] > 0) {
			(void)((rc = each_of_tree(f, f->m->columns.v[j], false, f->weight[j], call,
						  err)) ||
			       (rc = each_of_tree(f, f->m->columns.v[j], true, f->weight[j], call,
						  err)));
		}
	}
	return rc;
}

/* Where all links are between terminals, the logical digraph has no other nodes. */
static int see_holders(struct cost_forest *f, const struct cost_walk *w, struct err *err)
{
	int ranks = topo_ranks(f->t);

	if (w->from >= topo_holders(f->t) || w->to >= topo_holders(f->t)) {
		return err_set(err, WEFT_EUNSUPPORTED, "trees that copy or sum in switches are not "
			       "supported in schedules");
	}
	if (w->from >= ranks || w->to >= ranks) {
		f->holders = topo_holders(f->t);
	}
	return 0;
}

static int add_images(struct cost_forest *f, const struct cost_walk *w, struct err *err)
{
	int order = topo_group_order(f->m->net->group);

	(void)err;
	if (u64map_get(&f->arc_of, ends(f, 0, w), NULL)) {
		return 0;
	}
	for (int by = 0; by < order; by++) {
		u64map_set(&f->arc_of, ends(f, by, w), 1);
	}
	return 0;
}

/* The digraph of all ends in the map, which then has the numbers of arcs. */
static int make_logical(struct cost_forest *f, struct err *err)
{
	size_t n = 0, total = f->arc_of.n, size = (size_t)topo_n(f->t);
	uint64_t *all = x_alloc(total + 1, sizeof(*all));
	struct topo *t = NULL;
	int rc = topo_new(f->holders, &t, err);

	for (size_t u = 0; u < (size_t)f->holders && rc == 0; u++) {
		topo_set_node(t, (int)u, topo_node_kind(f->t, (int)u),
			      topo_node_flags(f->t, (int)u));
		for (size_t v = 0; v < (size_t)f->holders; v++) {
			if (u64map_get(&f->arc_of, u * size + v + 1, NULL)) {
				all[n++] = u * size + v + 1;
			}
		}
	}
	if (rc == 0 && n > 1) {
		qsort(all, n, sizeof(*all), by_number);
	}
	for (size_t i = 0; i < n && rc == 0; i++) {
		rc = topo_add_arc(t, (int)((all[i] - 1) / size), (int)((all[i] - 1) % size), 1, 0,
				  err);
		if (rc == 0) {
			u64map_set(&f->arc_of, all[i], i);
		}
	}
	free(all);
	if (rc) {
		topo_free(t);
		return rc;
	}
	topo_freeze(t);
	f->out->logical = t;
	return 0;
}

/* ---- routes ---- */

static void add_use(struct cost_forest *f, const struct cost_walk *w, int by)
{
	struct cost_use use = { .n = w->n, .weight = w->weight };
	uint64_t arc = 0;

	u64map_get(&f->arc_of, ends(f, by, w), &arc);
	use.arc = (int32_t)arc;
	use.hops = x_alloc((size_t)w->n, sizeof(*use.hops));
	for (int i = 0; i < w->n; i++) {
		use.hops[i] = by ? topo_action_move(f->action, by, w->hops[i]) : w->hops[i];
	}
	vec_push(&f->uses, use);
}

/* Moves a link to the arc of its orbit with the least ends, by all elements that do. */
static int add_uses(struct cost_forest *f, const struct cost_walk *w, struct err *err)
{
	const struct topo_group *g = f->m->net->group;
	int order = topo_group_order(g), ranks = topo_ranks(f->t);
	uint64_t least = UINT64_MAX;

	(void)err;
	if (w->from < ranks || w->to < ranks) {
		int end = w->from < ranks ? w->from : w->to;

		add_use(f, w, g ? topo_group_inverse(g, topo_group_element(g, end)) : 0);
		return 0;
	}
	for (int by = 0; by < order; by++) {
		least = ends(f, by, w) < least ? ends(f, by, w) : least;
	}
	for (int by = 0; by < order; by++) {
		if (ends(f, by, w) == least) {
			add_use(f, w, by);
		}
	}
	return 0;
}

static int by_arc(const void *a, const void *b)
{
	const struct cost_use *x = a, *y = b;

	if (x->arc != y->arc || x->n != y->n) {
		return x->arc != y->arc ? x->arc - y->arc : x->n - y->n;
	}
	return memcmp(x->hops, y->hops, (size_t)x->n * sizeof(*x->hops));
}

/* Weights in ROUTE_PARTS, the rest to the first; each has at least one. */
static void round_routes(struct cost_use *u, size_t n, int64_t total)
{
	int64_t left = ROUTE_PARTS;

	for (size_t i = n; i-- > 1;) {
		double parts = (double)u[i].weight / (double)total * ROUTE_PARTS;

		u[i].weight = parts < 1 ? 1 : (int64_t)(parts + 0.5);
		left -= u[i].weight;
	}
	u[0].weight = left > 0 ? left : 1;
}

/* Uses of the same route become one; returns how many there are of the arc of the first. */
static size_t join_uses(struct cost_use *u, size_t n, size_t *end)
{
	size_t routes = 1;
	int64_t total = 0, common = 0;

	for (*end = 1; *end < n && u[*end].arc == u[0].arc; ++*end) {
		if (by_arc(&u[routes - 1], &u[*end]) == 0) {
			u[routes - 1].weight += u[*end].weight;
		} else {
			struct cost_use other = u[routes];

			u[routes++] = u[*end];
			u[*end] = routes - 1 == *end ? u[*end] : other;
		}
	}
	for (size_t i = 0; i < routes; i++) {
		common = rat_gcd(common, u[i].weight);
		total += u[i].weight;
	}
	for (size_t i = 0; i < routes && common > 0; i++) {
		u[i].weight /= common;
	}
	total /= common;
	if (ROUTE_PARTS % total != 0) {
		round_routes(u, routes, total);
	}
	return routes;
}

static void make_routes(struct cost_forest *f)
{
	struct coll_forest *out = f->out;
	size_t end;

	qsort(f->uses.v, f->uses.n, sizeof(*f->uses.v), by_arc);
	for (size_t at = 0; at < f->uses.n; at += end) {
		size_t routes = join_uses(f->uses.v + at, f->uses.n - at, &end);

		for (size_t i = at; i < at + routes; i++) {
			const struct cost_use *u = &f->uses.v[i];
			struct coll_forest_route r = { u->arc, (int32_t)u->weight,
						       (int32_t)out->hops.n, u->n };

			vec_push(&out->routes, r);
			for (int k = 0; k < u->n; k++) {
				vec_push(&out->hops, u->hops[k]);
			}
		}
	}
}

/* ---- trees ---- */

static int32_t depth_of(const struct coll_forest *f, const struct coll_forest_tree *tree, int n)
{
	int32_t deepest = 0;

	for (int v = 0; v < n; v++) {
		int32_t depth = 0;

		for (int u = v; tree->via[u] >= 0; depth++) {
			const struct topo_arc *a = topo_arc(f->logical, tree->via[u]);

			u = tree->inwards ? a->dst : a->src;
		}
		deepest = depth > deepest ? depth : deepest;
	}
	return deepest;
}

/* The arc of a link goes into the tree that is being made. */
static int add_via(struct cost_forest *f, const struct cost_walk *w, struct err *err)
{
	uint64_t arc = 0;

	(void)err;
	if (!f->plain) {
		u64map_get(&f->arc_of, ends(f, 0, w), &arc);
	}
	f->tree.via[f->tree.inwards ? w->from : w->to] = f->plain ? w->hops[0] : (int32_t)arc;
	return 0;
}

static int add_tree(struct cost_forest *f, const struct cost_column *c, bool inwards,
		    int64_t weight, struct err *err)
{
	struct coll_forest_tree *tree = &f->tree;
	const struct cost_net *net = f->m->net;
	int rc;

	if ((inwards ? c->in.n : c->out.n) == 0 || weight == 0) {
		return 0;
	}
	*tree = (struct coll_forest_tree){ net->node[net->roots[c->root]], inwards, weight, NULL,
					   0 };
	tree->via = x_alloc((size_t)f->holders, sizeof(*tree->via));
	memset(tree->via, 0xff, (size_t)f->holders * sizeof(*tree->via));
	rc = each_of_tree(f, c, inwards, weight, add_via, err);
	tree->depth = rc ? 0 : depth_of(f->out, tree, f->holders);
	if (rc) {
		free(tree->via);
		return rc;
	}
	vec_push(&f->out->trees, *tree);
	return 0;
}

static int fill(struct cost_forest *f, enum coll_kind kind, struct err *err)
{
	const struct topo_group *g = f->m->net->group;
	int64_t share = find_weights(f), times = 1, shards = 1;
	int rc;

	if (kind == COLL_ALLREDUCE) {
		/* All roots together carry N shards; images share a column's weight. */
		times = g ? topo_group_orbits(g) : topo_ranks(f->t);
		shards = topo_ranks(f->t);
	}
	find_time(f, share, shards);
	f->out->share = share;
	f->plain = topo_is_plain(f->t);
	if (f->plain) {
		rc = topo_copy(f->t, &f->out->logical, err);
	} else {
		(void)((rc = each_link(f, see_holders, err)) ||
		       (rc = each_link(f, add_images, err)) || (rc = make_logical(f, err)) ||
		       (rc = each_link(f, add_uses, err)));
		if (rc == 0) {
			make_routes(f);
		}
	}
	for (size_t j = 0; j < f->m->columns.n && rc == 0; j++) {
		const struct cost_column *c = f->m->columns.v[j];

		(void)((rc = add_tree(f, c, false, f->weight[j] * times, err)) ||
		       (rc = add_tree(f, c, true, f->weight[j] * times, err)));
	}
	return rc || !g ? rc : topo_group_copy(g, &f->out->group, err);
}

int cost_make_forest(const struct topo *t, const struct cost_master *m, enum coll_kind kind,
		     struct coll_forest *out, struct err *err)
{
	struct cost_forest f = { .t = t, .m = m, .out = out, .holders = topo_ranks(t) };
	int rc;

	f.weight = x_new(m->columns.n + 1, sizeof(*f.weight));
	rc = topo_action_new(t, m->net->group, &f.action, err);
	if (rc == 0) {
		rc = fill(&f, kind, err);
	}
	forest_fini(&f);
	return rc;
}
