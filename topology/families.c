/* Rings, tori, cubes, circulants, complete graphs; see topology.h. */
#include <stdlib.h>

#include "lib/base/buf.h"
#include "topology/private.h"

int topo_check_arg(const struct topo_arg *arg, const char *what,
		   int64_t least, int64_t most, struct err *err)
{
	if (arg->value < least) {
		return topo_err_at(err, arg->col, "%s is %lld: expected %lld "
				   "or more", what, (long long)arg->value,
				   (long long)least);
	}
	if (arg->value > most) {
		return topo_err_at(err, arg->col, "%s is %lld: expected at "
				   "most %lld", what, (long long)arg->value,
				   (long long)most);
	}
	return 0;
}

int topo_check_nodes(const struct topo_arg *arg, int64_t least,
		     struct err *err)
{
	return topo_check_arg(arg, "number of nodes", least, TOPO_MAX_NODES,
			      err);
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

int topo_link(struct topo *t, int64_t u, int64_t v, struct err *err)
{
	return topo_add_arc(t, (int)u, (int)v, 1, 0, err);
}

int topo_edge(struct topo *t, int64_t u, int64_t v, struct err *err)
{
	int rc = topo_link(t, u, v, err);

	return rc ? rc : topo_link(t, v, u, err);
}

/* n nodes with `degree` arcs out and in, no self-loops, all alike because
 * adding a constant (in the group that numbers them) keeps the arcs. */
static struct topo_size group_size(int64_t n, int64_t degree)
{
	return (struct topo_size){ n, n * degree, degree, true, true };
}

/* Adds n parallel arcs. */
static int link_times(struct topo *t, int64_t u, int64_t v, int64_t n,
		      struct err *err)
{
	int rc = 0;

	for (int64_t i = 0; i < n && rc == 0; i++) {
		rc = topo_link(t, u, v, err);
	}
	return rc;
}

/* ---- complete graphs ---- */

static int measure_complete(const struct topo_call *c, struct topo_size *s,
			    struct err *err)
{
	int64_t n = c->number[0].value;

	*s = group_size(n, n - 1);
	return topo_check_nodes(&c->number[0], 2, err);
}

static int build_complete(const struct topo_call *c,
			  const struct topo *const *parts, struct topo *t,
			  struct err *err)
{
	int64_t n = c->number[0].value;
	int rc = 0;

	(void)parts;
	for (int64_t u = 0; u < n && rc == 0; u++) {
		for (int64_t s = 1; s < n && rc == 0; s++) {
			rc = topo_link(t, u, (u + s) % n, err);
		}
	}
	return rc;
}

static int measure_bipartite(const struct topo_call *c, struct topo_size *s,
			     struct err *err)
{
	int64_t a = c->number[0].value, b = c->number[1].value;
	int rc = topo_check_nodes(&c->number[0], 1, err);

	*s = (struct topo_size){ a + b, 2 * a * b, a == b ? a : 0, a == b,
				 true };
	return rc ? rc : topo_check_nodes(&c->number[1], 1, err);
}

static int build_bipartite(const struct topo_call *c,
			   const struct topo *const *parts, struct topo *t,
			   struct err *err)
{
	int64_t a = c->number[0].value, b = c->number[1].value;
	int rc = 0;

	(void)parts;
	/* In an order that rotating both sides keeps. */
	for (int64_t u = 0; u < a && rc == 0; u++) {
		for (int64_t s = 0; s < b && rc == 0; s++) {
			rc = topo_link(t, u, a + (u + s) % b, err);
		}
	}
	for (int64_t v = 0; v < b && rc == 0; v++) {
		for (int64_t s = 0; s < a && rc == 0; s++) {
			rc = topo_link(t, a + v, (v + s) % a, err);
		}
	}
	return rc;
}

/* ---- rings and circulants ---- */

/* Every node u gets, for each offset s, `times` arcs to u + s, and to u - s
 * when both ways are wanted and differ. */
static int add_circulant(struct topo *t, int64_t n,
			 const struct topo_arg *offsets, int k, bool both,
			 int64_t times, struct err *err)
{
	int rc = 0;

	for (int64_t u = 0; u < n && rc == 0; u++) {
		for (int i = 0; i < k && rc == 0; i++) {
			int64_t s = offsets[i].value;

			rc = link_times(t, u, (u + s) % n, times, err);
			if (rc == 0 && both && 2 * s != n) {
				rc = link_times(t, u, (u + n - s) % n, times,
						err);
			}
		}
	}
	return rc;
}

static const struct topo_arg one = { .value = 1 };

static int measure_ring(const struct topo_call *c, struct topo_size *s,
			struct err *err)
{
	const struct topo_arg *n = &c->number[c->numbers - 1];
	int64_t degree = c->numbers == 2 ? c->number[0].value : 2;
	int rc = c->numbers == 1 ? 0
		: topo_check_arg(&c->number[0], "number of ports", 2,
				 TOPO_MAX_ARCS, err);

	rc = rc ? rc : topo_check_nodes(n, 3, err);
	if (rc && n->value == 2) {
		err_hint(err, "K(2) joins two nodes");
	}
	if (rc == 0 && degree % 2) {
		rc = topo_err_at(err, c->number[0].col, "number of ports is "
				 "%lld: expected an even one",
				 (long long)degree);
	}
	*s = group_size(n->value, degree);
	return rc;
}

static int build_ring(const struct topo_call *c,
		      const struct topo *const *parts, struct topo *t,
		      struct err *err)
{
	(void)parts;
	return add_circulant(t, c->size.n, &one, 1, true, c->size.degree / 2,
			     err);
}

static int measure_one_way(const struct topo_call *c, struct topo_size *s,
			   struct err *err)
{
	int rc = topo_check_arg(&c->number[0], "number of parallel arcs", 1,
				TOPO_MAX_ARCS, err);

	*s = group_size(c->number[1].value, c->number[0].value);
	return rc ? rc : topo_check_nodes(&c->number[1], 2, err);
}

static int build_one_way(const struct topo_call *c,
			 const struct topo *const *parts, struct topo *t,
			 struct err *err)
{
	(void)parts;
	return add_circulant(t, c->size.n, &one, 1, false, c->size.degree,
			     err);
}

/* Offsets are ascending: equal ones are neighbours. */
static int check_offsets(const struct topo_call *c, int64_t most,
			 struct err *err)
{
	for (int i = 0; i < c->members; i++) {
		int rc = topo_check_arg(&c->set[i], "offset", 1, most, err);

		if (rc) {
			return rc;
		}
		if (i > 0 && c->set[i].value == c->set[i - 1].value) {
			return topo_err_at(err, c->set[i].col,
					   "offset %lld stands there twice",
					   (long long)c->set[i].value);
		}
	}
	return 0;
}

static int measure_circulant(const struct topo_call *c, struct topo_size *s,
			     struct err *err)
{
	int64_t n = c->number[0].value, degree = 2 * c->members;
	int rc = topo_check_nodes(&c->number[0], 2, err);

	degree -= 2 * c->set[c->members - 1].value == n;
	*s = group_size(n, degree);
	return rc ? rc : check_offsets(c, n / 2, err);
}

static int build_circulant(const struct topo_call *c,
			   const struct topo *const *parts, struct topo *t,
			   struct err *err)
{
	(void)parts;
	return add_circulant(t, c->size.n, c->set, c->members, true, 1, err);
}

static int measure_directed(const struct topo_call *c, struct topo_size *s,
			    struct err *err)
{
	int64_t n = c->number[0].value;
	int rc = topo_check_nodes(&c->number[0], 2, err);

	*s = group_size(n, c->members);
	return rc ? rc : check_offsets(c, n - 1, err);
}

static int build_directed(const struct topo_call *c,
			  const struct topo *const *parts, struct topo *t,
			  struct err *err)
{
	(void)parts;
	return add_circulant(t, c->size.n, c->set, c->members, false, 1, err);
}

/* ---- tori, meshes, Hamming graphs ---- */

/* The product of the first `dimensions` numbers; *degree: ports of a torus,
 * *steps: arcs of a mesh out of all nodes, as a sum of (size - 1) / size. */
static int measure_sides(const struct topo_call *c, int dimensions,
			 int64_t *n, int64_t *degree, struct err *err)
{
	*n = 1;
	*degree = 0;
	for (int i = 0; i < dimensions; i++) {
		int64_t size = c->number[i].value;
		int rc = topo_check_arg(&c->number[i], "dimension", 2,
					TOPO_MAX_NODES, err);

		if (rc) {
			return rc;
		}
		*n *= size;
		*degree += size > 2 ? 2 : 1;
		if (*n > TOPO_MAX_NODES) {
			return topo_err_at(err, c->number[i].col,
					   "more than %d nodes",
					   TOPO_MAX_NODES);
		}
	}
	return 0;
}

static int measure_torus(const struct topo_call *c, struct topo_size *s,
			 struct err *err)
{
	int64_t n, degree;
	int rc = measure_sides(c, c->numbers, &n, &degree, err);

	*s = group_size(n, degree);
	return rc;
}

/* Neighbours along one dimension; `wrap` joins the ends. The last dimension
 * varies fastest. */
static int link_along(struct topo *t, int64_t u, int64_t size, int64_t stride,
		      bool wrap, struct err *err)
{
	int64_t x = u / stride % size, rest = u - x * stride;
	int rc = 0;

	if (wrap || x + 1 < size) {
		rc = topo_link(t, u, rest + (x + 1) % size * stride, err);
	}
	if (rc == 0 && (wrap ? size > 2 : x > 0)) {
		rc = topo_link(t, u, rest + (x + size - 1) % size * stride,
			       err);
	}
	return rc;
}

static int build_sides(const struct topo_call *c, struct topo *t, bool wrap,
		       struct err *err)
{
	int64_t n = c->size.n;
	int rc = 0;

	for (int64_t u = 0; u < n && rc == 0; u++) {
		int64_t stride = n;

		for (int i = 0; i < c->numbers && rc == 0; i++) {
			stride /= c->number[i].value;
			rc = link_along(t, u, c->number[i].value, stride, wrap,
					err);
		}
	}
	return rc;
}

static int build_torus(const struct topo_call *c,
		       const struct topo *const *parts, struct topo *t,
		       struct err *err)
{
	(void)parts;
	return build_sides(c, t, true, err);
}

static int measure_mesh(const struct topo_call *c, struct topo_size *s,
			struct err *err)
{
	int64_t n, degree;
	int rc = measure_sides(c, c->numbers, &n, &degree, err);

	*s = (struct topo_size){ n, 0, 0, false, true };
	for (int i = 0; i < c->numbers && rc == 0; i++) {
		s->m += 2 * (n / c->number[i].value) *
			(c->number[i].value - 1);
	}
	return rc;
}

static int build_mesh(const struct topo_call *c,
		      const struct topo *const *parts, struct topo *t,
		      struct err *err)
{
	(void)parts;
	return build_sides(c, t, false, err);
}

/* Twists follow the sizes: of the last dimension's wrap by the second (a,b,t)
 * or, in three dimensions, (a,b,c,t,u,v): leaving dimension a moves b by t
 * and c by u, leaving b moves c by v. */
static int measure_twisted(const struct topo_call *c, struct topo_size *s,
			   struct err *err)
{
	int dimensions = c->numbers == 3 ? 2 : 3;
	int64_t n, degree;
	int rc = measure_sides(c, dimensions, &n, &degree, err);

	for (int i = dimensions; i < c->numbers && rc == 0; i++) {
		const struct topo_arg *side = &c->number[i == 3 ? 1 : 2];

		side = dimensions == 2 ? &c->number[1] : side;
		rc = topo_check_arg(&c->number[i], "twist", 0,
				    side->value - 1, err);
	}
	*s = group_size(n, 2 * dimensions);
	return rc;
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

static int build_twisted(const struct topo_call *c,
			 const struct topo *const *parts, struct topo *t,
			 struct err *err)
{
	int dimensions = c->numbers == 3 ? 2 : 3, rc = 0;

	(void)parts;
	for (int64_t u = 0; u < c->size.n && rc == 0; u++) {
		int64_t at[3] = { 0 }, rest = u;

		for (int i = dimensions - 1; i >= 0; i--) {
			at[i] = rest % c->number[i].value;
			rest /= c->number[i].value;
		}
		for (int i = 0; i < 2 * dimensions && rc == 0; i++) {
			rc = topo_link(t, u,
				       twisted_step(c, dimensions, at, i / 2,
						    i % 2 ? -1 : 1), err);
		}
	}
	return rc;
}

static int measure_hamming(const struct topo_call *c, struct topo_size *s,
			   struct err *err)
{
	int64_t d = c->number[0].value, q = c->number[1].value;
	int rc = topo_check_arg(&c->number[0], "dimension", 1, 16, err);

	rc = rc ? rc : topo_check_arg(&c->number[1], "number of symbols", 2,
				      TOPO_MAX_NODES, err);
	*s = group_size(topo_power(q, d, TOPO_MAX_NODES), d * (q - 1));
	return rc;
}

static int build_hamming(const struct topo_call *c,
			 const struct topo *const *parts, struct topo *t,
			 struct err *err)
{
	int64_t q = c->number[1].value;
	int rc = 0;

	(void)parts;
	for (int64_t u = 0; u < c->size.n && rc == 0; u++) {
		for (int64_t k = 1; k < c->size.n && rc == 0; k *= q) {
			int64_t x = u / k % q, rest = u - x * k;

			for (int64_t s = 1; s < q && rc == 0; s++) {
				rc = topo_link(t, u, rest + (x + s) % q * k,
					       err);
			}
		}
	}
	return rc;
}

/* ---- cubes ---- */

static int measure_cube(const struct topo_call *c, struct topo_size *s,
			struct err *err)
{
	int64_t k = c->number[0].value;
	int rc = topo_check_arg(&c->number[0], "dimension", 1, 16, err);

	*s = group_size(topo_power(2, k, TOPO_MAX_NODES), k);
	return rc;
}

static int build_cube(const struct topo_call *c,
		      const struct topo *const *parts, struct topo *t,
		      struct err *err)
{
	int rc = 0;

	(void)parts;
	for (int64_t u = 0; u < c->size.n && rc == 0; u++) {
		for (int64_t bit = 1; bit < c->size.n && rc == 0; bit *= 2) {
			rc = topo_link(t, u, u ^ bit, err);
		}
	}
	return rc;
}

/* The cube with one square's edges 0-1 and 2-3 exchanged for its diagonals
 * 0-3 and 1-2: opposite corners come one hop nearer. */
static int measure_twisted_cube(const struct topo_call *c,
				struct topo_size *s, struct err *err)
{
	int rc = measure_cube(c, s, err);

	s->transitive = false;
	return rc ? rc : topo_check_arg(&c->number[0], "dimension", 3, 16,
					err);
}

static int build_twisted_cube(const struct topo_call *c,
			      const struct topo *const *parts, struct topo *t,
			      struct err *err)
{
	int rc = 0;

	(void)parts;
	for (int64_t u = 0; u < c->size.n && rc == 0; u++) {
		for (int64_t bit = 1; bit < c->size.n && rc == 0; bit *= 2) {
			int64_t v = u < 4 && bit == 1 ? 3 - u : u ^ bit;

			rc = topo_link(t, u, v, err);
		}
	}
	return rc;
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
	  "d ports", measure_one_way, build_one_way },
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
	topo_basic, topo_words, topo_regular, topo_random, topo_formation,
	topo_operators, NULL,
};
