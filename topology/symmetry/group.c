/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Groups of automorphisms, and what they do to the arcs of a digraph.
 *
 * Only groups that move terminals freely are handled, of elements that are products of
 * powers of the generators: then an element is a vector of exponents, one of a
 * generator, and a terminal is an orbit and the element that brings the orbit's
 * first terminal there. Where the generators commute, moving a terminal is an addition of
 * exponents; else powers of the generators are looked up in tables of elements.
 * Switches, which may stay where they are, follow the generators' tables. Everything that a
 * file could get wrong is checked when a group is made, and that it keeps a digraph when
 * its action on that is.
 */
#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "topology/private.h"

struct topo_group {
	int n, n_free;		/* nodes, terminals: the first of them */
	int order, n_generators, n_orbits;
	bool abelian;
	int *orders;		/* of the generators: exponents are below */
	int32_t *images;	/* n of each generator */
	int32_t *orbit;		/* of a terminal */
	int32_t *element;	/* that brings its orbit's first terminal to it */
	int32_t *at;		/* orbit * order + element: the terminal */
	int32_t *powers;	/* not abelian: generator i to the 2^j after an element */
	int32_t *inverse;	/* not abelian: of an element */
	struct arrays arrays;	/* all of these */
};

void topo_group_free(struct topo_group *g)
{
	if (g) {
		arrays_fini(&g->arrays);
		free(g);
	}
}

int topo_group_nodes(const struct topo_group *g)
{
	return g ? g->n : 0;
}

int topo_group_order(const struct topo_group *g)
{
	return g ? g->order : 1;
}

int topo_group_orbits(const struct topo_group *g)
{
	return g->n_orbits;
}

int topo_group_generators(const struct topo_group *g)
{
	return g ? g->n_generators : 0;
}

const int32_t *topo_group_generator(const struct topo_group *g, int i, int *order)
{
	*order = g->orders[i];
	return g->images + (size_t)i * g->n;
}

int topo_group_element(const struct topo_group *g, int terminal)
{
	return g ? g->element[terminal] : 0;
}

int topo_group_first(const struct topo_group *g, int terminal)
{
	return g ? g->at[(size_t)g->orbit[terminal] * g->order] : terminal;
}

/* Powers that are kept of a generator: 1, 2, 4, .. below its order. */
static int n_powers(int order)
{
	int n = 1;

	while (order > 1 << n) {
		n++;
	}
	return n;
}

/* Element b, then element a, by tables. */
static int product(const struct topo_group *g, int a, int b)
{
	const int32_t *power = g->powers;

	for (int i = 0; i < g->n_generators; i++) {
		int n = n_powers(g->orders[i]);

		for (int j = 0; j < n; j++, power += g->order) {
			b = a % g->orders[i] >> j & 1 ? power[b] : b;
		}
		a /= g->orders[i];
	}
	return b;
}

/* The same by exponents, of a group that commutes. */
static int sum_of(const struct topo_group *g, int a, int b)
{
	int sum = 0, unit = 1;

	for (int i = 0; i < g->n_generators; i++) {
		int r = g->orders[i];

		sum += (a % r + b % r) % r * unit;
		unit *= r;
		a /= r;
		b /= r;
	}
	return sum;
}

int topo_group_product(const struct topo_group *g, int a, int b)
{
	return g->abelian ? sum_of(g, a, b) : product(g, a, b);
}

int topo_group_inverse(const struct topo_group *g, int a)
{
	int inverse = 0, unit = 1;

	if (!g->abelian) {
		return g->inverse[a];
	}

	for (int i = 0; i < g->n_generators; i++) {
		int r = g->orders[i];

		inverse += (r - a % r) % r * unit;
		unit *= r;
		a /= r;
	}
	return inverse;
}

int topo_group_between(const struct topo_group *g, int from, int to)
{
	if (from == to) {
		return 0;
	}
	if (!g || from >= g->n_free || to >= g->n_free || g->orbit[from] != g->orbit[to]) {
		return -1;
	}
	return topo_group_product(g, g->element[to], topo_group_inverse(g, g->element[from]));
}

int topo_group_move(const struct topo_group *g, int by, int node)
{
	if (!g) {
		return node;
	}
	if (node < g->n_free) {
		int element = topo_group_product(g, by, g->element[node]);

		return g->at[(size_t)g->orbit[node] * g->order + element];
	}
	for (int i = 0; i < g->n_generators; i++) {
		for (int k = by % g->orders[i]; k > 0; k--) {
			node = g->images[(size_t)i * g->n + node];
		}
		by /= g->orders[i];
	}
	return node;
}

/* ---- a group is what it is called ---- */

static int check_permutation(const int32_t *image, int n, int n_free, int i, struct err *err)
{
	bool *seen = x_new((size_t)n, sizeof(*seen));
	int rc = 0;

	for (int u = 0; u < n && !rc; u++) {
		int v = image[u];

		if (v < 0 || v >= n || seen[v] || (u < n_free) != (v < n_free)) {
			rc = err_set(err, WEFT_EINVAL, "generator %d takes node %d to %d: not a "
				     "permutation of %d terminals and %d other nodes", i, u, v,
				     n_free, n - n_free);
		} else {
			seen[v] = true;
		}
	}
	free(seen);
	return rc;
}

/* Numbers the terminals of the orbit of `first`: element e, whose highest digit
 * that is not zero belongs to generator i, is one power of i more than an
 * element before it. */
static int number_orbit(struct topo_group *g, int first, struct err *err)
{
	int32_t *at = g->at + (size_t)g->n_orbits * g->order;
	int i = 0, unit = 1;

	at[0] = first;
	for (int e = 0; e < g->order; e++) {
		while (i + 1 < g->n_generators && e >= unit * g->orders[i]) {
			unit *= g->orders[i++];
		}
		if (e > 0) {
			at[e] = g->images[(size_t)i * g->n + at[e - unit]];
		}
		if (g->orbit[at[e]] >= 0) {
			return err_set(err, WEFT_EINVAL, "two elements of the group take node %d "
				       "to node %d", first, at[e]);
		}
		g->orbit[at[e]] = g->n_orbits;
		g->element[at[e]] = e;
	}
	g->n_orbits++;
	return 0;
}

static int number_terminals(struct topo_group *g, struct err *err)
{
	int rc = 0;

	for (int u = 0; u < g->n_free; u++) {
		g->orbit[u] = -1;
	}
	for (int u = 0; u < g->n_free && !rc; u++) {
		if (g->orbit[u] < 0) {
			rc = number_orbit(g, u, err);
		}
	}
	return rc;
}

static int no_such_group(int generator, int node, struct err *err)
{
	return err_set(err, WEFT_EINVAL, "generator %d at node %d: the generators have other "
		       "orders, or generate more elements than the product of these",
		       generator, node);
}

/* Generator i adds one to digit i everywhere: so the generators commute on
 * terminals, have their orders there, and nothing else is generated. */
static bool commutes_on_terminals(const struct topo_group *g)
{
	for (int i = 0, unit = 1; i < g->n_generators; unit *= g->orders[i++]) {
		for (int u = 0; u < g->n_free; u++) {
			int want = sum_of(g, g->element[u], unit);
			int v = g->images[(size_t)i * g->n + u];

			if (g->orbit[v] != g->orbit[u] || g->element[v] != want) {
				return false;
			}
		}
	}
	return true;
}

/* The generator does the same to the elements of every orbit: to those of the first
 * one what `power` says. */
static int check_alike(const struct topo_group *g, int i, int32_t *power, struct err *err)
{
	const int32_t *image = g->images + (size_t)i * g->n;

	for (int e = 0; e < g->order; e++) {
		power[e] = g->element[image[g->at[e]]];
	}
	for (int u = 0; u < g->n_free; u++) {
		if (g->orbit[image[u]] != g->orbit[u] ||
		    g->element[image[u]] != power[g->element[u]]) {
			return no_such_group(i, u, err);
		}
	}
	return 0;
}

/* The powers of each generator as permutations of the elements. */
static int fill_powers(struct topo_group *g, struct err *err)
{
	int32_t *power = g->powers;

	for (int i = 0; i < g->n_generators; i++) {
		int n = n_powers(g->orders[i]), rc = check_alike(g, i, power, err);

		if (rc) {
			return rc;
		}
		for (int j = 1; j < n; j++, power += g->order) {
			for (int e = 0; e < g->order; e++) {
				power[g->order + e] = power[power[e]];
			}
		}
		power += g->order;
	}
	return 0;
}

/*
 * The generators, as they move the elements, generate a group that moves these
 * freely, and so has no other elements: what comes before an element, generator j, commutes
 * with whatever comes after it, and takes the first element to all others. after: room
 * for the elements, filled with x, then generator j first; back: the reverse. Also gives the
 * inverses of the elements whose highest generator is j, as those of lower ones are there.
 */
static int check_free(struct topo_group *g, int j, int unit, int32_t *after, int32_t *back,
		      struct err *err)
{
	const int32_t *power = g->powers;

	for (int e = 0; e < g->order; e++) {
		after[e] = product(g, e, unit);
		back[after[e]] = e;
	}
	for (int i = 0; i < g->n_generators; power += n_powers(g->orders[i++]) * g->order) {
		for (int e = 0; e < g->order; e++) {
			if (after[power[e]] != power[after[e]]) {
				return no_such_group(i, g->at[e], err);
			}
		}
	}
	for (int e = unit; e < unit * g->orders[j]; e++) {
		g->inverse[e] = back[g->inverse[e - unit]];
	}
	return 0;
}

/* Generators that do not commute. */
static int check_products(struct topo_group *g, struct err *err)
{
	int32_t *after, *back;
	size_t tables = 0;
	int rc = 0;

	g->abelian = false;
	if (g->n > g->n_free) {
		return err_set(err, WEFT_EUNSUPPORTED,
			       "generators that do not commute on a digraph "
			       "with other nodes than terminals: not supported");
	}
	for (int i = 0; i < g->n_generators; i++) {
		tables += (size_t)n_powers(g->orders[i]);
	}
	after = x_new((size_t)g->order, 2 * sizeof(*after));
	arrays_add(&g->arrays, g->powers, tables * (size_t)g->order);
	arrays_add(&g->arrays, g->inverse, g->order);
	back = after + g->order;
	rc = fill_powers(g, err);
	for (int j = 0, unit = 1; j < g->n_generators && !rc; unit *= g->orders[j++]) {
		rc = check_free(g, j, unit, after, back, err);
	}
	free(after);
	return rc;
}

static int check_terminals(struct topo_group *g, struct err *err)
{
	g->abelian = commutes_on_terminals(g);
	return g->abelian ? 0 : check_products(g, err);
}

/* The order of generator i brings what is no terminal back: it is a multiple of the
 * length of each of its cycles. seen: of the nodes, false. O(n). */
static int check_cycles(const struct topo_group *g, int i, bool *seen, struct err *err)
{
	const int32_t *image = g->images + (size_t)i * g->n;

	for (int u = g->n_free; u < g->n; u++) {
		int length = 0;

		for (int v = u; !seen[v]; v = image[v]) {
			seen[v] = true;
			length++;
		}
		if (length && g->orders[i] % length) {
			return no_such_group(i, u, err);
		}
	}
	return 0;
}

static int check_commute(const struct topo_group *g, int i, int j, struct err *err)
{
	const int32_t *a = g->images + (size_t)i * g->n, *b = g->images + (size_t)j * g->n;

	for (int u = g->n_free; u < g->n; u++) {
		if (a[b[u]] != b[a[u]]) {
			return no_such_group(i, u, err);
		}
	}
	return 0;
}

/* What check_terminals shows, of the other nodes. */
static int check_others(const struct topo_group *g, struct err *err)
{
	bool *seen = x_alloc((size_t)g->n + 1, sizeof(*seen));
	int rc = 0;

	for (int i = 0; i < g->n_generators && !rc; i++) {
		memset(seen, 0, (size_t)g->n * sizeof(*seen));
		rc = check_cycles(g, i, seen, err);
		for (int j = 0; j < i && !rc; j++) {
			rc = check_commute(g, i, j, err);
		}
	}
	free(seen);
	return rc;
}

static int check_orders(int n_generators, const int *orders, int n_free, int *order,
			struct err *err)
{
	int64_t product = 1;

	for (int i = 0; i < n_generators; i++) {
		product *= orders[i] > 1 && orders[i] <= n_free ? orders[i] : 0;
		if (product < 1 || n_free % product) {
			return err_set(err, WEFT_EINVAL, "generator %d: order %d: the orders must "
				       "be 2 or more and their product divide the %d terminals",
				       i, orders[i], n_free);
		}
	}
	*order = (int)product;
	return 0;
}

int topo_group_new(int n, int n_free, int n_generators, const int *orders, const int32_t *images,
		   struct topo_group **out, struct err *err)
{
	struct topo_group *g;
	int order = 1, rc = check_orders(n_generators, orders, n_free, &order, err);

	*out = NULL;
	for (int i = 0; i < n_generators && !rc; i++) {
		rc = check_permutation(images + (size_t)i * n, n, n_free, i, err);
	}
	if (rc) {
		return rc;
	}
	g = x_new(1, sizeof(*g));
	*g = (struct topo_group){ .n = n, .n_free = n_free, .order = order,
				  .n_generators = n_generators };
	arrays_add(&g->arrays, g->orders, n_generators);
	arrays_add(&g->arrays, g->images, (size_t)n_generators * n);
	arrays_add(&g->arrays, g->orbit, n_free);
	arrays_add(&g->arrays, g->element, n_free);
	arrays_add(&g->arrays, g->at, n_free);
	memcpy(g->orders, orders, (size_t)n_generators * sizeof(*orders));
	memcpy(g->images, images, (size_t)n_generators * n * sizeof(*images));
	if ((rc = number_terminals(g, err)) || (rc = check_terminals(g, err)) ||
	    (rc = check_others(g, err))) {
		topo_group_free(g);
		return rc;
	}
	*out = g;
	return 0;
}

int topo_group_copy(const struct topo_group *g, struct topo_group **out, struct err *err)
{
	*out = NULL;
	return g ? topo_group_new(g->n, g->n_free, g->n_generators, g->orders, g->images, out, err)
		 : 0;
}

bool topo_group_equal(const struct topo_group *a, const struct topo_group *b)
{
	if (!a || !b) {
		return a == b;
	}
	return a->n == b->n && a->n_free == b->n_free && a->n_generators == b->n_generators &&
	       memcmp(a->orders, b->orders, (size_t)a->n_generators * sizeof(*a->orders)) == 0 &&
	       memcmp(a->images, b->images,
		      (size_t)a->n_generators * a->n * sizeof(*a->images)) == 0;
}

/* ---- arcs ---- */

struct topo_action {
	const struct topo *t;
	const struct topo_group *g;	/* NULL: nothing moves */
	int n_orbits, n_limits;
	int32_t *sorted;	/* arcs of a node by head, capacity, latency, cost, number */
	int32_t *place;		/* of an arc in it */
	bool *twin;		/* an arc with another that is like it */
	int32_t *orbit;		/* of an arc */
	int32_t *first, *size;	/* of an orbit */
	int32_t *begin;		/* of an orbit of terminals' arcs in `at`, else -1 */
	int32_t *at;		/* begin + element of its tail: the arc */
	int32_t *limits;	/* shared limits, one an orbit */
	struct arrays arrays;	/* all of these */
};

void topo_action_free(struct topo_action *a)
{
	if (a) {
		arrays_fini(&a->arrays);
		free(a);
	}
}

int topo_arc_compare(const struct topo_arc *a, const struct topo_arc *b)
{
	if (a->src != b->src) {
		return a->src < b->src ? -1 : 1;
	}
	if (a->dst != b->dst) {
		return a->dst < b->dst ? -1 : 1;
	}
	if (a->cap != b->cap) {
		return a->cap < b->cap ? -1 : 1;
	}
	if (a->latency_ns != b->latency_ns) {
		return a->latency_ns < b->latency_ns ? -1 : 1;
	}
	return a->cost < b->cost ? -1 : a->cost > b->cost;
}

static int by_ends(const void *pa, const void *pb, void *arcs)
{
	int32_t a = *(const int32_t *)pa, b = *(const int32_t *)pb;
	int c = topo_arc_compare((const struct topo_arc *)arcs + a,
				 (const struct topo_arc *)arcs + b);

	return c ? c : a < b ? -1 : a > b;
}

static void sort_arcs(struct topo_action *x)
{
	const struct topo_arc *arcs = topo_arcs(x->t);
	int m = topo_m(x->t), first;

	/* They are in the order of their sources already. */
	for (int v = 0; v < topo_n(x->t); v++) {
		int n = topo_out(x->t, v, &first);
		bool sorted = true;

		for (int a = first; a < first + n; a++) {
			x->sorted[a] = a;
			sorted = sorted && (a == first ||
					    topo_arc_compare(&arcs[a - 1], &arcs[a]) <= 0);
		}
		if (!sorted) {
			qsort_r(x->sorted + first, (size_t)n, sizeof(*x->sorted), by_ends,
				(void *)arcs);
		}
	}
	for (int p = 0; p < m; p++) {
		x->place[x->sorted[p]] = p;
		if (p > 0 && topo_arc_compare(&arcs[x->sorted[p - 1]], &arcs[x->sorted[p]]) == 0) {
			x->twin[x->sorted[p - 1]] = x->twin[x->sorted[p]] = true;
		}
	}
}

/* Which of the arcs that have the ends, capacity and latency of arc a it is. */
static int rank_among_equals(const struct topo_action *x, int a)
{
	const struct topo_arc *arcs = topo_arcs(x->t);
	int k = 0;

	while (x->place[a] > k &&
	       topo_arc_compare(&arcs[x->sorted[x->place[a] - k - 1]], &arcs[a]) == 0) {
		k++;
	}
	return k;
}

/* The k-th arc that is like `want`, -1: there is none. O(log degree). */
static int find_arc(const struct topo_action *x, const struct topo_arc *want, int k)
{
	const struct topo_arc *arcs = topo_arcs(x->t);
	int lo, hi = topo_out(x->t, want->src, &lo), end;

	hi = end = lo + hi;
	while (lo < hi) {
		int mid = lo + (hi - lo) / 2;

		if (topo_arc_compare(&arcs[x->sorted[mid]], want) < 0) {
			lo = mid + 1;
		} else {
			hi = mid;
		}
	}
	return lo + k < end && topo_arc_compare(&arcs[x->sorted[lo + k]], want) == 0
		       ? x->sorted[lo + k] : -1;
}

static int move_ends(const struct topo_action *x, int arc, int src, int dst)
{
	struct topo_arc want = *topo_arc(x->t, arc);
	int from, to, n = topo_out(x->t, src, &to), at;

	topo_out(x->t, want.src, &from);
	want.src = src;
	want.dst = dst;
	/* Most digraphs list the arcs out of all nodes in the same order. */
	at = to + arc - from;
	if (arc - from < n && !x->twin[arc] && !x->twin[at] &&
	    topo_arc_compare(topo_arc(x->t, at), &want) == 0) {
		return at;
	}
	return find_arc(x, &want, rank_among_equals(x, arc));
}

int topo_action_move(const struct topo_action *x, int by, int arc)
{
	const struct topo_arc *a = topo_arc(x->t, arc);

	int begin = x->begin[x->orbit[arc]];

	if (!by) {
		return arc;
	}
	if (begin >= 0) {
		return x->at[begin + topo_group_product(x->g, by, x->g->element[a->src])];
	}
	return move_ends(x, arc, topo_group_move(x->g, by, a->src),
			 topo_group_move(x->g, by, a->dst));
}

static int image_under(const struct topo_action *x, int generator, int arc)
{
	const int32_t *image = x->g->images + (size_t)generator * x->g->n;
	const struct topo_arc *a = topo_arc(x->t, arc);

	return move_ends(x, arc, image[a->src], image[a->dst]);
}

static int check_nodes(const struct topo *t, const struct topo_group *g, struct err *err)
{
	if (g->n < topo_n(t)) {
		return err_set(err, WEFT_EINVAL, "the group moves %d nodes, the digraph has %d",
			       g->n, topo_n(t));
	}
	for (int i = 0; i < g->n_generators; i++) {
		for (int u = 0; u < topo_n(t); u++) {
			int v = g->images[(size_t)i * g->n + u];

			if (v >= topo_n(t) || topo_node_kind(t, u) != topo_node_kind(t, v) ||
			    topo_node_flags(t, u) != topo_node_flags(t, v)) {
				return err_set(err, WEFT_EINVAL, "generator %d takes node %d to "
					       "%d, of another kind", i, u, v);
			}
		}
	}
	return 0;
}

static int32_t root_of(int32_t *up, int32_t a)
{
	while (up[a] != a) {
		up[a] = up[up[a]];
		a = up[a];
	}
	return a;
}

/* Joins the orbits of the generators before i that generator i takes to each other. Where
 * it commutes with these, as they are automorphisms, looking at one arc of an
 * orbit is enough to know that all its arcs have images. n of them in `first`, and *n
 * remain. */
static int join_orbits(struct topo_action *x, int i, int *n, struct err *err)
{
	int32_t *up = x->orbit;
	int kept = 0;

	for (int k = 0; k < *n; k++) {
		int from = x->first[k], to = image_under(x, i, from);

		if (to < 0) {
			const struct topo_arc *a = topo_arc(x->t, from);

			return err_set(err, WEFT_EINVAL, "generator %d is no automorphism: arc %d "
				       "(%d -> %d) has no image", i, from, a->src, a->dst);
		}
		to = root_of(up, to);
		from = root_of(up, from);
		/* The smaller number becomes the root. */
		up[from > to ? from : to] = from > to ? to : from;
	}
	for (int k = 0; k < *n; k++) {
		if (up[x->first[k]] == x->first[k]) {
			x->first[kept++] = x->first[k];
		}
	}
	*n = kept;
	return 0;
}

/* Terminals' arcs move freely, as their tails do. */
static void list_by_tail(struct topo_action *x)
{
	const struct topo_arc *arcs = topo_arcs(x->t);
	int end = 0;

	for (int o = 0; o < x->n_orbits; o++) {
		x->begin[o] = -1;
		if (x->g && arcs[x->first[o]].src < x->g->n_free) {
			x->begin[o] = end;
			end += x->g->order;
		}
	}
	for (int a = 0; a < topo_m(x->t); a++) {
		if (x->begin[x->orbit[a]] >= 0) {
			x->at[x->begin[x->orbit[a]] + x->g->element[arcs[a].src]] = a;
		}
	}
}

static int number_orbits(struct topo_action *x, struct err *err)
{
	int m = topo_m(x->t), n = m, generators = topo_group_generators(x->g), rc = 0;

	for (int a = 0; a < m; a++) {
		x->orbit[a] = x->first[a] = a;
	}
	for (int i = 0; i < generators && !rc; i++) {
		for (int a = 0; a < m && !x->g->abelian; a++) {
			n = m;
			x->first[a] = a;
		}
		rc = join_orbits(x, i, &n, err);
	}
	/* Roots are the first of their orbits, and are numbered before the others. */
	for (int a = 0; a < m && !rc; a++) {
		int root = x->orbit[a] == a ? a : root_of(x->orbit, a);

		x->at[a] = root == a ? x->n_orbits++ : x->at[root];
	}
	for (int a = 0; a < m && !rc; a++) {
		x->orbit[a] = x->at[a];
		x->size[x->orbit[a]]++;
	}
	if (!rc) {
		list_by_tail(x);
	}
	return rc;
}

/* ---- shared limits ---- */

static int cmp_int(const void *a, const void *b)
{
	int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;

	return x < y ? -1 : x > y;
}

/* The shared limit that has the arcs of limit l under generator i and its
 * capacity, -1: none. room: for the arcs of any limit. */
static int limit_image(const struct topo_action *x, int i, int l, int32_t *room)
{
	const struct topo_limit *limit = topo_limit(x->t, l), *other;
	const int32_t *of_arc;
	int n;

	for (int k = 0; k < limit->n; k++) {
		room[k] = image_under(x, i, limit->arcs[k]);
	}
	qsort(room, (size_t)limit->n, sizeof(*room), cmp_int);
	n = topo_arc_limits(x->t, room[0], &of_arc);
	for (int k = 0; k < n; k++) {
		other = topo_limit(x->t, of_arc[k]);
		if (other->n == limit->n && other->cap == limit->cap &&
		    memcmp(other->arcs, room, (size_t)limit->n * sizeof(*room)) == 0) {
			return of_arc[k];
		}
	}
	return -1;
}

/* One limit of each orbit. */
static int number_limits(struct topo_action *x, struct err *err)
{
	int n = topo_n_limits(x->t), generators = x->g ? x->g->n_generators : 0, rc = 0;
	int32_t *room = x_alloc((size_t)topo_m(x->t) + 1, sizeof(*room));
	int32_t *queue = x_alloc((size_t)n + 1, sizeof(*queue));
	bool *seen = x_new((size_t)n + 1, sizeof(*seen));

	for (int l = 0; l < n; l++) {
		int end = 0;

		if (seen[l]) {
			continue;
		}
		x->limits[x->n_limits++] = l;
		seen[l] = true;
		queue[end++] = l;
		for (int k = 0; k < end * generators; k++) {
			int from = queue[k / generators], to;

			to = limit_image(x, k % generators, from, room);
			if (to < 0) {
				rc = err_set(err, WEFT_EINVAL, "generator %d is no automorphism: "
					     "shared limit %d has no image", k % generators, from);
				goto out;
			}
			if (!seen[to]) {
				seen[to] = true;
				queue[end++] = to;
			}
		}
	}
out:
	free(room);
	free(queue);
	free(seen);
	return rc;
}

int topo_action_new(const struct topo *t, const struct topo_group *g, struct topo_action **out,
		    struct err *err)
{
	struct topo_action *x = x_new(1, sizeof(*x));
	size_t m = (size_t)topo_m(t);
	int rc;

	*out = NULL;
	x->t = t;
	x->g = g;
	arrays_add(&x->arrays, x->sorted, m);
	arrays_add(&x->arrays, x->place, m);
	arrays_add(&x->arrays, x->twin, m);
	arrays_add(&x->arrays, x->orbit, m);
	arrays_add(&x->arrays, x->first, m);
	arrays_add(&x->arrays, x->size, m);
	arrays_add(&x->arrays, x->begin, m);
	arrays_add(&x->arrays, x->at, m);
	arrays_add(&x->arrays, x->limits, topo_n_limits(t));
	sort_arcs(x);
	if ((g && (rc = check_nodes(t, g, err))) || (rc = number_orbits(x, err)) ||
	    (rc = number_limits(x, err))) {
		topo_action_free(x);
		return rc;
	}
	*out = x;
	return 0;
}

int topo_action_orbits(const struct topo_action *x)
{
	return x->n_orbits;
}

int topo_action_orbit(const struct topo_action *x, int arc)
{
	return x->orbit[arc];
}

int topo_action_first(const struct topo_action *x, int orbit)
{
	return x->first[orbit];
}

int topo_action_size(const struct topo_action *x, int orbit)
{
	return x->size[orbit];
}

const int32_t *topo_action_limits(const struct topo_action *x, int *n)
{
	*n = x->n_limits;
	return x->limits;
}

/* ---- groups that are found ---- */

static void translate(const struct topo_translation *s, int unit, int n, int32_t *image)
{
	for (int u = 0; u < n; u++) {
		image[u] = topo_translate_node(s, u, unit);
	}
}

int topo_group_find(const struct topo *t, struct topo_group **out, struct err *err)
{
	struct topo_translation s;
	int32_t *images;
	bool found;
	int n = topo_n(t), unit = 1, rc;

	*out = NULL;
	if (t->group) {
		return topo_group_copy(t->group, out, err);
	}
	topo_find_translations(t, &s, &found);
	if (!found) {
		return 0;
	}
	images = x_alloc((size_t)s.n_digits * n, sizeof(*images));
	for (int i = 0; i < s.n_digits; i++) {
		translate(&s, unit, n, images + (size_t)i * n);
		unit *= s.radix[i];
	}
	rc = topo_group_new(n, n, s.n_digits, s.radix, images, out, err);
	free(images);
	return rc;
}
