/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rings, tori, cubes, circulants, complete graphs; and what builders of all
 * families share.
 *
 * A family is a row of a table with two functions. The first measures: it checks
 * the arguments and gives nodes, arcs and degree before any memory is spent. The
 * second builds: it adds the arcs. Both get a struct topo_make, whose first error
 * stays, so they need not look at errors. The order in which the arcs of a node
 * are added is part of the result: arcs are numbered by it, and where a
 * translation moves nodes it should move their arcs in order, too.
 */
#include <stdlib.h>

#include "lib/base/buf.h"
#include "topology/private.h"

void topo_check_arg(struct topo_make *mk, const struct topo_arg *arg,
		    const char *what, int64_t min, int64_t max)
{
	if (arg->value < min) {
		topo_refuse(mk, arg->col, "%s is %lld: expected %lld or more",
			    what, (long long)arg->value, (long long)min);
	} else if (arg->value > max) {
		topo_refuse(mk, arg->col, "%s is %lld: expected at most %lld",
			    what, (long long)arg->value, (long long)max);
	}
}

void topo_check_number(struct topo_make *mk, int i, const char *what, int64_t min, int64_t max)
{
	topo_check_arg(mk, &mk->call->number[i], what, min, max);
}

void topo_check_nodes(struct topo_make *mk, int i, int64_t min)
{
	topo_check_number(mk, i, "number of nodes", min, TOPO_MAX_NODES);
}

int64_t topo_power(int64_t base, int64_t exponent, int64_t limit)
{
	int64_t p = 1;

	for (int64_t i = 0; i < exponent && base > 1; i++) {
		if (p > limit / base) {
			return limit + 1;
		}
		p *= base;
	}
	return base == 0 && exponent > 0 ? 0 : p;
}

void topo_link(struct topo_make *mk, int64_t u, int64_t v)
{
	if (!mk->rc) {
		mk->rc = topo_add_arc(mk->t, (int)u, (int)v, 1, 0, mk->err);
	}
}

void topo_edge(struct topo_make *mk, int64_t u, int64_t v)
{
	topo_link(mk, u, v);
	topo_link(mk, v, u);
}

void topo_copy_arc(struct topo_make *mk, const struct topo_arc *a, int64_t u, int64_t v)
{
	if (!mk->rc) {
		mk->rc = topo_add_arc_like(mk->t, (int)u, (int)v, a, mk->err);
	}
}

struct topo_size topo_group_size(int64_t n, int64_t degree)
{
	return (struct topo_size){ n, n * degree, degree, true, true };
}

/* Adds n parallel arcs. */
static void link_times(struct topo_make *mk, int64_t u, int64_t v, int64_t n)
{
	for (int64_t i = 0; i < n; i++) {
		topo_link(mk, u, v);
	}
}

/* ---- complete graphs ---- */

static void measure_complete(struct topo_make *mk)
{
	int64_t n = topo_number(mk, 0);

	mk->size = topo_group_size(n, n - 1);
	topo_check_nodes(mk, 0, 2);
}

static void build_complete(struct topo_make *mk)
{
	int64_t n = topo_number(mk, 0);

	for (int64_t u = 0; u < n; u++) {
		for (int64_t s = 1; s < n; s++) {
			topo_link(mk, u, (u + s) % n);
		}
	}
}

static void measure_bipartite(struct topo_make *mk)
{
	int64_t a = topo_number(mk, 0), b = topo_number(mk, 1);
	topo_check_nodes(mk, 0, 1);

	mk->size = (struct topo_size){ a + b, 2 * a * b, a == b ? a : 0, a == b,
				 true };
	topo_check_nodes(mk, 1, 1);
}

static void build_bipartite(struct topo_make *mk)
{
	int64_t a = topo_number(mk, 0), b = topo_number(mk, 1);

	/* In an order that rotating both sides keeps. */
	for (int64_t u = 0; u < a; u++) {
		for (int64_t s = 0; s < b; s++) {
			topo_link(mk, u, a + (u + s) % b);
		}
	}
	for (int64_t v = 0; v < b; v++) {
		for (int64_t s = 0; s < a; s++) {
			topo_link(mk, a + v, (v + s) % a);
		}
	}
}

/* ---- rings and circulants ---- */

/* Every node u gets, for each offset s, `times` arcs to u + s, and to u - s
 * when both directions are wanted and differ. */
static void add_circulant(struct topo_make *mk, const struct topo_arg *offsets,
			  int k, bool both, int64_t times)
{
	int64_t n = mk->size.n;

	for (int64_t u = 0; u < n; u++) {
		for (int i = 0; i < k; i++) {
			int64_t s = offsets[i].value;

			link_times(mk, u, (u + s) % n, times);
			if (both && 2 * s != n) {
				link_times(mk, u, (u + n - s) % n, times);
			}
		}
	}
}

static const struct topo_arg one = { .value = 1 };

static void measure_ring(struct topo_make *mk)
{
	int last = mk->call->numbers - 1;
	int64_t degree = last > 0 ? topo_number(mk, 0) : 2;

	if (last > 0) {
		topo_check_number(mk, 0, "number of ports", 2, TOPO_MAX_ARCS);
	}
	topo_check_nodes(mk, last, 3);
	if (mk->rc && topo_number(mk, last) == 2) {
		err_hint(mk->err, "K(2) joins two nodes");
	}
	if (degree % 2) {
		topo_refuse(mk, mk->call->number[0].col, "number of ports is "
			    "%lld: expected an even one", (long long)degree);
	}
	mk->size = topo_group_size(topo_number(mk, last), degree);
}

static void build_ring(struct topo_make *mk)
{
	add_circulant(mk, &one, 1, true, mk->size.degree / 2);
}

static void measure_unidirectional(struct topo_make *mk)
{
	topo_check_number(mk, 0, "number of parallel arcs", 1, TOPO_MAX_ARCS);

	mk->size = topo_group_size(topo_number(mk, 1), topo_number(mk, 0));
	topo_check_nodes(mk, 1, 2);
}

static void build_unidirectional(struct topo_make *mk)
{
	add_circulant(mk, &one, 1, false, mk->size.degree);
}

/* Equal ones are parallel arcs. */
static void check_offsets(struct topo_make *mk, int64_t max)
{
	const struct topo_arg *offset = mk->call->set;

	for (int i = 0; i < mk->call->members; i++) {
		topo_check_arg(mk, &offset[i], "offset", 1, max);
	}
}

static void measure_circulant(struct topo_make *mk)
{
	int64_t n = topo_number(mk, 0), degree = 2 * mk->call->members;
	topo_check_nodes(mk, 0, 2);

	for (int i = 0; i < mk->call->members; i++) {
		degree -= 2 * mk->call->set[i].value == n;
	}
	mk->size = topo_group_size(n, degree);
	check_offsets(mk, n / 2);
}

static void build_circulant(struct topo_make *mk)
{
	add_circulant(mk, mk->call->set, mk->call->members, true, 1);
}

static void measure_directed(struct topo_make *mk)
{
	int64_t n = topo_number(mk, 0);
	topo_check_nodes(mk, 0, 2);

	mk->size = topo_group_size(n, mk->call->members);
	check_offsets(mk, n - 1);
}

static void build_directed(struct topo_make *mk)
{
	add_circulant(mk, mk->call->set, mk->call->members, false, 1);
}

/* ---- tori, meshes, Hamming graphs ---- */

/* The product of the first `dimensions` numbers; *degree: ports of a torus. */
static int64_t measure_sides(struct topo_make *mk, int dimensions, int64_t *degree)
{
	int64_t n = 1;

	*degree = 0;
	for (int i = 0; i < dimensions && !mk->rc; i++) {
		int64_t size = topo_number(mk, i);

		topo_check_number(mk, i, "dimension", 2, TOPO_MAX_NODES);
		n *= size;
		*degree += size > 2 ? 2 : 1;
		if (n > TOPO_MAX_NODES) {
			topo_refuse(mk, mk->call->number[i].col,
				    "more than %d nodes", TOPO_MAX_NODES);
		}
	}
	return n;
}

static void measure_torus(struct topo_make *mk)
{
	int64_t degree, n = measure_sides(mk, mk->call->numbers, &degree);

	mk->size = topo_group_size(n, degree);
}

/* Neighbours along one dimension; `wrap` joins the ends. The last dimension
 * varies fastest. */
static void link_along(struct topo_make *mk, int64_t u, int64_t size, int64_t stride, bool wrap)
{
	int64_t x = u / stride % size, rest = u - x * stride;

	if (wrap || x + 1 < size) {
		topo_link(mk, u, rest + (x + 1) % size * stride);
	}
	if (wrap ? size > 2 : x > 0) {
		topo_link(mk, u, rest + (x + size - 1) % size * stride);
	}
}

static void build_sides(struct topo_make *mk, bool wrap)
{
	for (int64_t u = 0; u < mk->size.n; u++) {
		int64_t stride = mk->size.n;

		for (int i = 0; i < mk->call->numbers; i++) {
			stride /= topo_number(mk, i);
			link_along(mk, u, topo_number(mk, i), stride, wrap);
		}
	}
}

static void build_torus(struct topo_make *mk)
{
	build_sides(mk, true);
}

static void measure_mesh(struct topo_make *mk)
{
	int64_t degree, n = measure_sides(mk, mk->call->numbers, &degree);

	mk->size = (struct topo_size){ n, 0, 0, false, true };
	for (int i = 0; i < mk->call->numbers && !mk->rc; i++) {
		mk->size.m += 2 * (n / topo_number(mk, i)) *
			      (topo_number(mk, i) - 1);
	}
}

static void build_mesh(struct topo_make *mk)
{
	build_sides(mk, false);
}

/* Twists follow the sizes: of the last dimension's wrap by the second (a,b,t)
 * or, in three dimensions, (a,b,c,t,u,v): leaving dimension a moves b by t
 * and c by u, leaving b moves c by v. */
static void measure_twisted(struct topo_make *mk)
{
	int dimensions = mk->call->numbers == 3 ? 2 : 3;
	int64_t degree, n = measure_sides(mk, dimensions, &degree);

	for (int i = dimensions; i < mk->call->numbers; i++) {
		int side = dimensions == 2 || i == 3 ? 1 : 2;

		topo_check_number(mk, i, "twist", 0, topo_number(mk, side) - 1);
	}
	mk->size = topo_group_size(n, 2 * dimensions);
}

/* The node one step (or one back) from x along dimension i. */
static int64_t twisted_step(const struct topo_call *c, int dimensions,
			    const int64_t *at, int i, int step)
{
	int64_t x[3] = { at[0], at[1], at[2] }, wrap = 0, v = 0;
	const struct topo_arg *size = c->number;
	const struct topo_arg *twist = c->number + dimensions;

	x[i] += step;
	if (x[i] < 0 || x[i] == size[i].value) {
		wrap = x[i] < 0 ? -1 : 1;
		x[i] -= wrap * size[i].value;
	}
	if (i == 0) {
		x[1] += wrap * twist[0].value;
		x[2] += dimensions == 3 ? wrap * twist[1].value : 0;
	} else if (i == 1 && dimensions == 3) {
		x[2] += wrap * twist[2].value;
	}
	/* A twist may carry dimension b over its own end, which moves c. */
	if (x[1] < 0 || x[1] >= size[1].value) {
		wrap = x[1] < 0 ? -1 : 1;
		x[1] -= wrap * size[1].value;
		x[2] += dimensions == 3 ? wrap * twist[2].value : 0;
	}
	for (int k = 0; k < dimensions; k++) {
		int64_t m = size[k].value;

		v = v * m + (x[k] % m + m) % m;
	}
	return v;
}

static void build_twisted(struct topo_make *mk)
{
	int dimensions = mk->call->numbers == 3 ? 2 : 3;

	for (int64_t u = 0; u < mk->size.n; u++) {
		int64_t at[3] = { 0 }, rest = u;

		for (int i = dimensions - 1; i >= 0; i--) {
			at[i] = rest % topo_number(mk, i);
			rest /= topo_number(mk, i);
		}
		for (int i = 0; i < 2 * dimensions; i++) {
			topo_link(mk, u, twisted_step(mk->call, dimensions, at,
						      i / 2, i % 2 ? -1 : 1));
		}
	}
}

static void measure_hamming(struct topo_make *mk)
{
	int64_t d = topo_number(mk, 0), q = topo_number(mk, 1);
	topo_check_number(mk, 0, "dimension", 1, 16);

	topo_check_number(mk, 1, "number of symbols", 2, TOPO_MAX_NODES);
	mk->size = topo_group_size(topo_power(q, d, TOPO_MAX_NODES), d * (q - 1));
}

static void build_hamming(struct topo_make *mk)
{
	int64_t q = topo_number(mk, 1);

	for (int64_t u = 0; u < mk->size.n; u++) {
		for (int64_t k = 1; k < mk->size.n; k *= q) {
			int64_t x = u / k % q, rest = u - x * k;

			for (int64_t s = 1; s < q; s++) {
				topo_link(mk, u, rest + (x + s) % q * k);
			}
		}
	}
}

/* ---- cubes ---- */

static void measure_cube(struct topo_make *mk)
{
	int64_t k = topo_number(mk, 0);
	topo_check_number(mk, 0, "dimension", 1, 16);

	mk->size = topo_group_size(topo_power(2, k, TOPO_MAX_NODES), k);
}

static void build_cube(struct topo_make *mk)
{
	for (int64_t u = 0; u < mk->size.n; u++) {
		for (int64_t bit = 1; bit < mk->size.n; bit *= 2) {
			topo_link(mk, u, u ^ bit);
		}
	}
}

/* The cube with one square's edges 0-1 and 2-3 exchanged for its diagonals
 * 0-3 and 1-2: opposite corners come one hop nearer. */
static void measure_twisted_cube(struct topo_make *mk)
{
	measure_cube(mk);

	mk->size.transitive = false;
	topo_check_number(mk, 0, "dimension", 3, 16);
}

static void build_twisted_cube(struct topo_make *mk)
{
	for (int64_t u = 0; u < mk->size.n; u++) {
		for (int64_t bit = 1; bit < mk->size.n; bit *= 2) {
			int64_t v = u < 4 && bit == 1 ? 3 - u : u ^ bit;

			topo_link(mk, u, v);
		}
	}
}

const struct topo_family topo_basic[] = {
	{ "K", "n", "K(n)", "complete digraph, n-1 ports a node",
	  measure_complete, build_complete },
	{ "K", "nn", "K(a,b)", "complete bipartite, b and a ports",
	  measure_bipartite, build_bipartite },
	{ "Ring", "n", "Ring(n)", "bidirectional ring, 2 ports", measure_ring,
	  build_ring },
	{ "BiRing", "nn", "BiRing(d,n)", "bidirectional ring of parallel "
	  "arcs, d ports (even)", measure_ring, build_ring },
	{ "UniRing", "nn", "UniRing(d,n)", "one-way ring of d parallel arcs, "
	  "d ports", measure_unidirectional, build_unidirectional },
	{ "Torus", "n+", "Torus(a,b,...)", "2 ports a dimension, 1 when it "
	  "is 2", measure_torus, build_torus },
	{ "TwistedTorus", "nnn", "TwistedTorus(a,b,t)", "the wrap of a moves "
	  "b by t, 4 ports", measure_twisted, build_twisted },
	{ "TwistedTorus", "nnnnnn", "TwistedTorus(a,b,c,t,u,v)", "the wrap "
	  "of a moves b by t and c by u, that of b moves c by v, 6 ports",
	  measure_twisted, build_twisted },
	{ "Mesh", "n+", "Mesh(a,b,...)", "a torus without wraps",
	  measure_mesh, build_mesh },
	{ "Hypercube", "n", "Hypercube(k)", "2^k nodes, k ports",
	  measure_cube, build_cube },
	{ "TwistedHypercube", "n", "TwistedHypercube(k)", "2^k nodes, k "
	  "ports, one square twisted: diameter k-1", measure_twisted_cube,
	  build_twisted_cube },
	{ "Hamming", "nn", "Hamming(n,q)", "words of n symbols of q, one "
	  "apart: n(q-1) ports", measure_hamming, build_hamming },
	{ "C", "ns", "C(n,{s,...})", "bidirectional circulant, 2 ports an "
	  "offset, 1 for n/2", measure_circulant, build_circulant },
	{ "DiC", "ns", "DiC(n,{s,...})", "directed circulant, 1 port an "
	  "offset", measure_directed, build_directed },
	{ NULL, NULL, NULL, NULL, NULL, NULL },
};

const struct topo_family *const topo_family_lists[] = {
	topo_basic, topo_words, topo_regular, topo_cayley, topo_random, topo_formation,
	topo_switched, topo_operators, NULL,
};
