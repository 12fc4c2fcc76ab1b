/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Graphs made of graphs: line graphs, products, expansions.
 *
 * An operator knows the sizes of its parts when it measures, and has them built
 * and frozen when it builds. Capacity and latency of the parts' arcs go on to the
 * arcs made from them. Sizes grow fast (a line graph of a line graph), so they
 * are computed with limits before anything is built. Groups by which parts were made, as
 * Cayley graphs are, go on to what is made of them, where no search would find them.
 */
#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "topology/private.h"

/* The number after the expressions: k, t or c of the usage. */
static int64_t last(const struct topo_make *mk)
{
	return topo_number(mk, mk->call->numbers - 1);
}

static void check_last(struct topo_make *mk, const char *what, int64_t min, int64_t max)
{
	topo_check_number(mk, mk->call->numbers - 1, what, min, max);
}

static const struct topo_size *part_size(const struct topo_make *mk)
{
	return &mk->call->part[0]->size;
}

/* ---- groups ---- */

/* Generators of the group that the new digraph has. */
struct topo_carried {
	int n;			/* nodes */
	VEC(int) orders;
	VEC(int32_t) images;	/* n of each */
	bool one_orbit;		/* of the dimensions so far */
};

/* Gives t the group. */
static int attach(const struct topo_carried *c, struct topo *t, struct err *err)
{
	if (c->orders.n == 0) {
		return 0;
	}
	return topo_group_new(c->n, c->n, (int)c->orders.n, c->orders.v, c->images.v, &t->group,
			      err);
}

static void carried_fini(struct topo_carried *c)
{
	vec_fini(&c->orders);
	vec_fini(&c->images);
}

/* Room for the images of one more generator. */
static int32_t *add_generator(struct topo_carried *c, int order)
{
	vec_push(&c->orders, order);
	vec_reserve(&c->images, (size_t)c->n);
	c->images.n += (size_t)c->n;
	return c->images.v + c->images.n - c->n;
}

/* The generators of x, as they move its arcs. */
static int add_arc_images(struct topo_carried *c, const struct topo *x, struct err *err)
{
	struct topo_action *action;
	int rc = topo_action_new(x, x->group, &action, err);

	if (rc) {
		return rc;
	}
	for (int i = 0, unit = 1, order; i < topo_group_generators(x->group); i++, unit *= order) {
		int32_t *images;

		topo_group_generator(x->group, i, &order);
		images = add_generator(c, order);
		for (int a = 0; a < c->n; a++) {
			images[a] = topo_action_move(action, unit, a);
		}
	}
	topo_action_free(action);
	return 0;
}

/* The group of the line graph t is that of x, on its arcs. */
static int carry_to_arcs(const struct topo *x, struct topo *t, struct err *err)
{
	struct topo_carried c = { .n = topo_m(x) };
	int rc = x->group ? add_arc_images(&c, x, err) : 0;

	if (!rc) {
		rc = attach(&c, t, err);
	}
	carried_fini(&c);
	return rc;
}

/* Lets g act on the digit of this stride and so many values. Only while the digits above have
 * one orbit: the first nodes of all orbits must be the first nodes. */
static void carry_digit(struct topo_carried *c, const struct topo_group *g, int stride, int size)
{
	for (int i = 0; i < topo_group_generators(g) && c->one_orbit; i++) {
		int order;
		const int32_t *image = topo_group_generator(g, i, &order);
		int32_t *images = add_generator(c, order);

		for (int u = 0; u < c->n; u++) {
			int digit = u / stride % size;

			images[u] = u + (image[digit] - digit) * stride;
		}
	}
	c->one_orbit = c->one_orbit && topo_group_order(g) == size;
}

static void keep_group(struct topo_make *mk)
{
	if (!mk->rc) {
		mk->rc = topo_group_copy(mk->parts[0]->group, &mk->t->group, mk->err);
	}
}

/* The nodes of the first part stay, and are what they were; so does its group. */
static void keep_nodes(struct topo_make *mk)
{
	const struct topo *x = mk->parts[0];

	mk->keeps_kinds = true;
	for (int u = 0; u < topo_n(x); u++) {
		topo_set_node(mk->t, u, topo_node_kind(x, u), topo_node_flags(x, u));
	}
	keep_group(mk);
}

/* ---- line graphs ---- */

/* n' = m, m' = sum of in-degree times out-degree, k times over. Of a graph
 * whose degrees differ only the first is known before it is built. */
static void measure_line(struct topo_make *mk)
{
	const struct topo_size *x = part_size(mk);

	check_last(mk, "repetition", 1, 16);
	mk->size = *x;
	mk->size.transitive = mk->size.loopless = false;
	for (int64_t i = 0; i < last(mk) && !mk->rc; i++) {
		mk->size.n = mk->size.m;
		if (mk->size.n > TOPO_MAX_NODES) {
			return;	/* the caller reports it */
		}
		mk->size.m = mk->size.n * (x->degree ? x->degree : 1);
	}
	if (x->degree == 0 && last(mk) > 1) {
		topo_refuse(mk, mk->call->col, "repeated line graph of a graph "
			    "whose degrees differ");
	}
}

/* Node a of the line graph is arc a; it keeps that arc's capacity for the
 * arcs that leave it. */
static int add_line(const struct topo *x, struct topo *t, struct err *err)
{
	int64_t total = 0;
	int rc;

	for (int v = 0; v < topo_n(x); v++) {
		const int32_t *in;
		int first;

		total += (int64_t)topo_in(x, v, &in) * topo_out(x, v, &first);
	}
	if (total > TOPO_MAX_ARCS) {
		return err_set(err, WEFT_ELIMIT, "a line graph of %lld arcs, "
			       "more than %d", (long long)total,
			       TOPO_MAX_ARCS);
	}
	for (int a = 0; a < topo_m(x); a++) {
		int first, n = topo_out(x, topo_arc(x, a)->dst, &first);

		for (int b = first; b < first + n; b++) {
			const struct topo_arc *arc = topo_arc(x, b);

			rc = topo_add_arc_like(t, a, b, arc, err);
			if (rc) {
				return rc;
			}
		}
	}
	return carry_to_arcs(x, t, err);
}

/* All but the last line graph need a graph of their own. */
static void build_line(struct topo_make *mk)
{
	const struct topo *x = mk->parts[0];
	struct topo *made = NULL;

	for (int64_t i = 1; i < last(mk) && !mk->rc; i++) {
		struct topo *next = NULL;

		mk->rc = topo_new(topo_m(x), &next, mk->err);
		if (!mk->rc) {
			mk->rc = add_line(x, next, mk->err);
		}
		if (!mk->rc) {
			topo_freeze(next);
		}
		topo_free(made);
		x = made = next;
	}
	if (!mk->rc) {
		mk->rc = add_line(x, mk->t, mk->err);
	}
	topo_free(made);
}

/* Undirected: one node for each pair of opposite arcs. */
static void measure_edges(struct topo_make *mk)
{
	const struct topo_size *x = part_size(mk);

	if (x->degree == 0 || !x->loopless || x->m % 2) {
		topo_refuse(mk, mk->call->col, "UL needs a graph of equal "
			    "degrees, no self-loops and arcs in opposite pairs");
	}
	mk->size.n = x->m / 2;
	mk->size.degree = 2 * (x->degree - 1);
	mk->size.m = mk->size.n * mk->size.degree;
	mk->size.loopless = true;
	if (mk->size.degree == 0) {
		topo_refuse(mk, mk->call->col, "UL of a graph of degree 1 has "
			    "no arcs");
	}
}

static void build_edges(struct topo_make *mk)
{
	const struct topo *x = mk->parts[0];
	int32_t *edge = x_alloc((size_t)topo_m(x) + 1, sizeof(*edge));
	int n = 0;

	if (!topo_is_symmetric(x)) {
		topo_refuse(mk, mk->call->col, "UL needs arcs in opposite "
			    "pairs");
	}
	for (int a = 0; a < topo_m(x) && !mk->rc; a++) {
		const struct topo_arc *arc = topo_arc(x, a);

		edge[a] = arc->src < arc->dst
			? n++ : edge[topo_find_arc(x, arc->dst, arc->src)];
	}
	for (int v = 0; v < topo_n(x) && !mk->rc; v++) {
		int first, d = topo_out(x, v, &first);

		for (int i = 0; i < d * d; i++) {
			int a = first + i / d, b = first + i % d;

			if (a != b) {
				topo_link(mk, edge[a], edge[b]);
			}
		}
	}
	free(edge);
}

/* ---- distances ---- */

static void measure_distance(struct topo_make *mk)
{
	/* They are at most all pairs. */
	mk->size = *part_size(mk);
	mk->size.m = TOPO_ARCS_UNKNOWN;
	mk->size.degree = 0;
	mk->size.loopless = true;
	check_last(mk, "distance", 1, TOPO_MAX_NODES);
}

static void build_distance(struct topo_make *mk)
{
	int n = (int)mk->size.n;
	int32_t *dist = x_alloc((size_t)n, sizeof(*dist));

	keep_group(mk);
	for (int u = 0; u < n; u++) {
		topo_bfs(mk->parts[0], u, dist);
		for (int v = 0; v < n; v++) {
			if (dist[v] == last(mk)) {
				topo_link(mk, u, v);
			}
		}
	}
	free(dist);
}

/* ---- products ---- */

static void measure_product(struct topo_make *mk)
{
	bool known = true;
	int64_t n = 1;

	mk->size = (struct topo_size){ 1, 0, 0, true, true };
	for (int i = 0; i < mk->call->parts; i++) {
		const struct topo_size *x = &mk->call->part[i]->size;

		n *= x->n;
		if (n > TOPO_MAX_NODES) {
			mk->size.n = n;
			mk->size.m = 0;
			return;	/* the caller reports it */
		}
		mk->size.m = mk->size.m * x->n + x->m * mk->size.n;
		mk->size.n = n;
		mk->size.degree += x->degree;
		known = known && x->degree > 0;
		mk->size.transitive = mk->size.transitive && x->transitive;
		mk->size.loopless = mk->size.loopless && x->loopless;
	}
	mk->size.degree = known ? mk->size.degree : 0;
}

static void measure_cartesian_power(struct topo_make *mk)
{
	const struct topo_size *x = part_size(mk);
	int64_t k = last(mk);

	check_last(mk, "exponent", 1, 16);
	mk->size = *x;
	mk->size.n = topo_power(x->n, k, TOPO_MAX_NODES);
	mk->size.degree = x->degree * k;
	mk->size.m = 0;
	if (mk->size.n <= TOPO_MAX_NODES && x->n > 0) {
		mk->size.m = mk->size.n / x->n * x->m * k;
	}
}

/* Arcs of x along a dimension of that size, at every place of the others;
 * the last dimension varies fastest. */
static void add_dimension(struct topo_make *mk, const struct topo *x, int64_t stride)
{
	int64_t size = topo_n(x);

	for (int64_t u = 0; u < mk->size.n; u++) {
		int64_t at = u / stride % size, rest = u - at * stride;
		int first, d = topo_out(x, (int)at, &first);

		for (int a = first; a < first + d; a++) {
			const struct topo_arc *arc = topo_arc(x, a);

			topo_copy_arc(mk, arc, u, rest + arc->dst * stride);
		}
	}
}

/* The groups of the parts, each on its dimension, so many times; where all of them are found by
 * search, so is this one. */
static void carry_product(struct topo_make *mk, int64_t times)
{
	struct topo_carried c = { .n = (int)mk->size.n, .one_orbit = true };
	int stride = (int)mk->size.n;
	bool known = false;

	mk->factor_times = (int)times;
	for (int i = 0; i < mk->call->parts; i++) {
		known = known || mk->parts[i]->group;
	}
	for (int64_t i = 0; i < times * mk->call->parts && known && !mk->rc; i++) {
		const struct topo *x = mk->parts[i % mk->call->parts];
		struct topo_group *g = NULL;

		stride /= topo_n(x);
		mk->rc = topo_group_find(x, &g, mk->err);
		if (!mk->rc) {
			carry_digit(&c, g, stride, topo_n(x));
		}
		topo_group_free(g);
	}
	if (!mk->rc) {
		mk->rc = attach(&c, mk->t, mk->err);
	}
	carried_fini(&c);
}

static void build_product(struct topo_make *mk)
{
	int64_t stride = mk->size.n;

	for (int i = 0; i < mk->call->parts; i++) {
		stride /= topo_n(mk->parts[i]);
		add_dimension(mk, mk->parts[i], stride);
	}
	carry_product(mk, 1);
}

static void build_cartesian_power(struct topo_make *mk)
{
	int64_t stride = mk->size.n;

	for (int64_t i = 0; i < last(mk); i++) {
		stride /= topo_n(mk->parts[0]);
		add_dimension(mk, mk->parts[0], stride);
	}
	carry_product(mk, last(mk));
}

/* ---- more ports ---- */

/* Definition 3 of the direct-connect topologies paper. */
static void measure_copies(struct topo_make *mk)
{
	const struct topo_size *x = part_size(mk);
	int64_t k = last(mk);

	check_last(mk, "number of copies", 1, TOPO_MAX_NODES);
	if (!x->loopless) {
		topo_refuse(mk, mk->call->part[0]->col, "Deg needs a graph "
			    "without self-loops");
	}
	mk->size = *x;
	mk->size.n = x->n * k;
	mk->size.degree = x->degree * k;
	mk->size.m = mk->size.n > TOPO_MAX_NODES ? 0 : x->m * k * k;
}

/* Copies go round, and the group of x moves each. */
static int carry_copies(const struct topo *x, int k, struct topo *t, struct err *err)
{
	struct topo_carried c = { .n = k * topo_n(x), .one_orbit = true };
	int rc;

	if (x->group && k > 1) {
		int32_t *images = add_generator(&c, k);

		for (int u = 0; u < c.n; u++) {
			images[u] = (u + topo_n(x)) % c.n;
		}
	}
	carry_digit(&c, x->group, 1, topo_n(x));
	rc = attach(&c, t, err);
	carried_fini(&c);
	return rc;
}

/* Copy i of node v is node i n + v. */
static void build_copies(struct topo_make *mk)
{
	const struct topo *x = mk->parts[0];
	int64_t k = last(mk), n = topo_n(x);

	for (int a = 0; a < topo_m(x); a++) {
		const struct topo_arc *arc = topo_arc(x, a);

		/* In an order that rotating the copies keeps. */
		for (int64_t i = 0; i < k * k; i++) {
			topo_copy_arc(mk, arc, i / k * n + arc->src,
				      (i / k + i) % k * n + arc->dst);
		}
	}
	if (!mk->rc) {
		mk->rc = carry_copies(x, (int)k, mk->t, mk->err);
	}
}

static void measure_both(struct topo_make *mk)
{
	mk->size = *part_size(mk);
	mk->size.m *= 2;
	mk->size.degree *= 2;
}

/* Appendix F: the graph and its transpose side by side. */
static void build_both(struct topo_make *mk)
{
	keep_nodes(mk);
	for (int a = 0; a < topo_m(mk->parts[0]); a++) {
		const struct topo_arc *arc = topo_arc(mk->parts[0], a);

		topo_copy_arc(mk, arc, arc->src, arc->dst);
		topo_copy_arc(mk, arc, arc->dst, arc->src);
	}
}

static void measure_same(struct topo_make *mk)
{
	mk->size = *part_size(mk);
	if (mk->call->numbers > 0) {
		check_last(mk, "value", mk->call->family->name[0] != 'L', 1000000000);
	}
}

static void build_reverse(struct topo_make *mk)
{
	keep_nodes(mk);
	for (int a = 0; a < topo_m(mk->parts[0]); a++) {
		const struct topo_arc *arc = topo_arc(mk->parts[0], a);

		topo_copy_arc(mk, arc, arc->dst, arc->src);
	}
}

static void measure_multiple(struct topo_make *mk)
{
	check_last(mk, "number of parallel arcs", 1, TOPO_MAX_ARCS);
	mk->size = *part_size(mk);
	mk->size.m *= last(mk);
	mk->size.degree *= last(mk);
}

static void build_multiple(struct topo_make *mk)
{
	keep_nodes(mk);
	for (int a = 0; a < topo_m(mk->parts[0]); a++) {
		const struct topo_arc *arc = topo_arc(mk->parts[0], a);

		for (int64_t i = 0; i < last(mk); i++) {
			topo_copy_arc(mk, arc, arc->src, arc->dst);
		}
	}
}

/* The same arcs with another capacity or latency. */
static void build_changed(struct topo_make *mk)
{
	bool capacity = strcmp(mk->call->family->name, "Cap") == 0;

	keep_nodes(mk);
	for (int a = 0; a < topo_m(mk->parts[0]); a++) {
		struct topo_arc arc = *topo_arc(mk->parts[0], a);

		*(capacity ? &arc.cap : &arc.latency_ns) = last(mk);
		topo_copy_arc(mk, &arc, arc.src, arc.dst);
	}
}

/* The same arcs; switches copy and sum, and those of "Sharp" keep their sums to copy them. */
static void build_helping(struct topo_make *mk)
{
	unsigned flags = TOPO_CAN_COPY | TOPO_CAN_REDUCE;

	flags |= strcmp(mk->call->family->name, "Sharp") == 0 ? TOPO_CAN_STORE : 0;
	keep_nodes(mk);
	for (int u = 0; u < topo_n(mk->t); u++) {
		if (topo_node_kind(mk->t, u) == TOPO_SWITCH) {
			topo_set_node(mk->t, u, TOPO_SWITCH, flags);
		}
	}
	for (int a = 0; a < topo_m(mk->parts[0]); a++) {
		const struct topo_arc *arc = topo_arc(mk->parts[0], a);

		topo_copy_arc(mk, arc, arc->src, arc->dst);
	}
}

const struct topo_family topo_operators[] = {
	{ "L", "xk", "L(X)", "line graph: a node an arc, same ports; L3(X) "
	  "three times", measure_line, build_line },
	{ "UL", "x", "UL(X)", "undirected line graph: a node an edge",
	  measure_edges, build_edges },
	{ "Prod", "xx+", "Prod(X,Y,...)", "Cartesian product, the ports of "
	  "all", measure_product, build_product },
	{ "Pow", "xn", "Pow(X,k)", "Cartesian power, k times the ports",
	  measure_cartesian_power, build_cartesian_power },
	{ "Deg", "xn", "Deg(X,k)", "k copies, every arc between all of them: "
	  "k times the nodes and ports", measure_copies, build_copies },
	{ "Bi", "x", "Bi(X)", "X and its transpose, twice the ports",
	  measure_both, build_both },
	{ "Reverse", "x", "Reverse(X)", "every arc the other way",
	  measure_same, build_reverse },
	{ "Multi", "xn", "Multi(X,k)", "k parallel arcs for each",
	  measure_multiple, build_multiple },
	{ "Dist", "xn", "Dist(X,k)", "arcs between nodes k hops apart",
	  measure_distance, build_distance },
	{ "Cap", "xn", "Cap(X,c)", "capacity c for every arc", measure_same,
	  build_changed },
	{ "Lat", "xn", "Lat(X,t)", "latency of t nanoseconds for every arc",
	  measure_same, build_changed },
	{ "Nvls", "x", "Nvls(X)", "switches copy, and sum for one rank each",
	  measure_same, build_helping },
	{ "Sharp", "x", "Sharp(X)", "switches sum, and copy their sums",
	  measure_same, build_helping },
	{ NULL, NULL, NULL, NULL, NULL, NULL },
};
