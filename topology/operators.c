/* Graphs made of graphs: line graphs, products, expansions; topology.h. */
#include <stdlib.h>
#include <string.h>

#include "topology/private.h"

static int copy_arc(struct topo *t, const struct topo_arc *a, int64_t u,
		    int64_t v, struct err *err)
{
	return topo_add_arc(t, (int)u, (int)v, a->cap, a->latency_ns, err);
}

/* ---- line graphs ---- */

static const struct topo_arg *last(const struct topo_call *c)
{
	return &c->number[c->numbers - 1];
}

/* n' = m, m' = sum of in-degree times out-degree, k times over. Of a graph
 * whose degrees differ only the first is known before it is built. */
static int measure_line(const struct topo_call *c, struct topo_size *s,
			struct err *err)
{
	const struct topo_size *x = &c->part[0]->size;
	int rc = topo_check_arg(last(c), "repetition", 1, 16, err);

	*s = *x;
	s->transitive = s->loopless = false;
	for (int64_t i = 0; i < last(c)->value && rc == 0; i++) {
		s->n = s->m;
		if (s->n > TOPO_MAX_NODES) {
			return 0;	/* the caller says so */
		}
		s->m = s->n * (x->degree ? x->degree : 1);
	}
	if (rc == 0 && x->degree == 0 && last(c)->value > 1) {
		rc = topo_err_at(err, c->col, "repeated line graph of a graph "
				 "whose degrees differ");
	}
	return rc;
}

/* Node a of the line graph is arc a; it keeps that arc's capacity for the
 * arcs that leave it. */
static int add_line(const struct topo *x, struct topo *t, struct err *err)
{
	int64_t total = 0;
	int rc = 0;

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
	for (int a = 0; a < topo_m(x) && rc == 0; a++) {
		int first, n = topo_out(x, topo_arc(x, a)->dst, &first);

		for (int b = first; b < first + n && rc == 0; b++) {
			rc = copy_arc(t, topo_arc(x, b), a, b, err);
		}
	}
	return rc;
}

/* All but the last line graph need a graph of their own. */
static int build_line(const struct topo_call *c,
		      const struct topo *const *parts, struct topo *t,
		      struct err *err)
{
	const struct topo *x = parts[0];
	struct topo *made = NULL;
	int rc = 0;

	for (int64_t i = 1; i < last(c)->value && rc == 0; i++) {
		struct topo *next = NULL;

		rc = topo_new(topo_m(x), &next, err);
		rc = rc ? rc : add_line(x, next, err);
		rc = rc ? rc : topo_freeze(next, err);
		topo_free(made);
		x = made = next;
	}
	rc = rc ? rc : add_line(x, t, err);
	topo_free(made);
	return rc;
}

/* Undirected: one node for each pair of opposite arcs. */
static int measure_edges(const struct topo_call *c, struct topo_size *s,
			 struct err *err)
{
	const struct topo_size *x = &c->part[0]->size;

	if (x->degree == 0 || !x->loopless || x->m % 2) {
		return topo_err_at(err, c->col, "UL needs a graph of equal "
				   "degrees, no self-loops and arcs in "
				   "opposite pairs");
	}
	s->n = x->m / 2;
	s->degree = 2 * (x->degree - 1);
	s->m = s->n * s->degree;
	s->loopless = true;
	return s->degree ? 0 : topo_err_at(err, c->col, "UL of a graph of "
					   "degree 1 has no arcs");
}

static int build_edges(const struct topo_call *c,
		       const struct topo *const *parts, struct topo *t,
		       struct err *err)
{
	const struct topo *x = parts[0];
	int32_t *edge = malloc(((size_t)topo_m(x) + 1) * sizeof(*edge));
	int n = 0, rc = edge ? 0 : err_nomem(err);

	if (rc == 0 && !topo_is_symmetric(x)) {
		rc = topo_err_at(err, c->col, "UL needs arcs in opposite "
				 "pairs");
	}
	for (int a = 0; a < topo_m(x) && rc == 0; a++) {
		const struct topo_arc *arc = topo_arc(x, a);

		edge[a] = arc->src < arc->dst
			? n++ : edge[topo_find_arc(x, arc->dst, arc->src)];
	}
	for (int v = 0; v < topo_n(x) && rc == 0; v++) {
		int first, d = topo_out(x, v, &first);

		for (int i = 0; i < d * d && rc == 0; i++) {
			int a = first + i / d, b = first + i % d;

			rc = a == b ? 0 : topo_link(t, edge[a], edge[b], err);
		}
	}
	free(edge);
	return rc;
}

/* ---- distances ---- */

static int measure_distance(const struct topo_call *c, struct topo_size *s,
			    struct err *err)
{
	/* They are at most all pairs. */
	*s = c->part[0]->size;
	s->m = TOPO_ARCS_UNKNOWN;
	s->degree = 0;
	s->loopless = true;
	return topo_check_arg(last(c), "distance", 1, TOPO_MAX_NODES, err);
}

static int build_distance(const struct topo_call *c,
			  const struct topo *const *parts, struct topo *t,
			  struct err *err)
{
	int n = topo_n(t), rc = 0;
	int32_t *dist = malloc((size_t)n * sizeof(*dist));

	if (!dist) {
		return err_nomem(err);
	}
	for (int u = 0; u < n && rc == 0; u++) {
		topo_bfs(parts[0], u, dist);
		for (int v = 0; v < n && rc == 0; v++) {
			if (dist[v] == last(c)->value) {
				rc = topo_link(t, u, v, err);
			}
		}
	}
	free(dist);
	return rc;
}

/* ---- products ---- */

static int measure_product(const struct topo_call *c, struct topo_size *s,
			   struct err *err)
{
	bool known = true;
	int64_t n = 1;

	(void)err;
	*s = (struct topo_size){ 1, 0, 0, true, true };
	for (int i = 0; i < c->parts; i++) {
		const struct topo_size *x = &c->part[i]->size;

		n *= x->n;
		if (n > TOPO_MAX_NODES) {
			s->n = n;
			s->m = 0;
			return 0;	/* the caller says so */
		}
		s->m = s->m * x->n + x->m * s->n;
		s->n = n;
		s->degree += x->degree;
		known = known && x->degree > 0;
		s->transitive = s->transitive && x->transitive;
		s->loopless = s->loopless && x->loopless;
	}
	s->degree = known ? s->degree : 0;
	return 0;
}

static int measure_cartesian_power(const struct topo_call *c,
				   struct topo_size *s, struct err *err)
{
	const struct topo_size *x = &c->part[0]->size;
	int64_t k = last(c)->value;
	int rc = topo_check_arg(last(c), "exponent", 1, 16, err);

	*s = *x;
	s->n = topo_power(x->n, k, TOPO_MAX_NODES);
	s->degree = x->degree * k;
	s->m = s->n > TOPO_MAX_NODES || x->n == 0 ? 0
						 : s->n / x->n * x->m * k;
	return rc;
}

/* Arcs of x along a dimension of that size, at every place of the others;
 * the last dimension varies fastest. */
static int add_dimension(const struct topo *x, int64_t stride, struct topo *t,
			 struct err *err)
{
	int64_t n = topo_n(t), size = topo_n(x);
	int rc = 0;

	for (int64_t u = 0; u < n && rc == 0; u++) {
		int64_t at = u / stride % size, rest = u - at * stride;
		int first, d = topo_out(x, (int)at, &first);

		for (int a = first; a < first + d && rc == 0; a++) {
			const struct topo_arc *arc = topo_arc(x, a);

			rc = copy_arc(t, arc, u, rest + arc->dst * stride,
				      err);
		}
	}
	return rc;
}

static int build_product(const struct topo_call *c,
			 const struct topo *const *parts, struct topo *t,
			 struct err *err)
{
	int64_t stride = topo_n(t);
	int rc = 0;

	for (int i = 0; i < c->parts && rc == 0; i++) {
		stride /= topo_n(parts[i]);
		rc = add_dimension(parts[i], stride, t, err);
	}
	return rc;
}

static int build_cartesian_power(const struct topo_call *c,
				 const struct topo *const *parts,
				 struct topo *t, struct err *err)
{
	int64_t stride = topo_n(t);
	int rc = 0;

	for (int64_t i = 0; i < last(c)->value && rc == 0; i++) {
		stride /= topo_n(parts[0]);
		rc = add_dimension(parts[0], stride, t, err);
	}
	return rc;
}

/* ---- more ports ---- */

/* Definition 3 of the direct-connect topologies paper. */
static int measure_copies(const struct topo_call *c, struct topo_size *s,
			  struct err *err)
{
	const struct topo_size *x = &c->part[0]->size;
	int64_t k = last(c)->value;
	int rc = topo_check_arg(last(c), "number of copies", 1,
				TOPO_MAX_NODES, err);

	if (rc == 0 && !x->loopless) {
		rc = topo_err_at(err, c->part[0]->col, "Deg needs a graph "
				 "without self-loops");
	}
	*s = *x;
	s->n = x->n * k;
	s->degree = x->degree * k;
	s->m = s->n > TOPO_MAX_NODES ? 0 : x->m * k * k;
	return rc;
}

/* Copy i of node v is node i n + v. */
static int build_copies(const struct topo_call *c,
			const struct topo *const *parts, struct topo *t,
			struct err *err)
{
	const struct topo *x = parts[0];
	int64_t k = last(c)->value, n = topo_n(x);
	int rc = 0;

	for (int a = 0; a < topo_m(x) && rc == 0; a++) {
		const struct topo_arc *arc = topo_arc(x, a);

		/* In an order that rotating the copies keeps. */
		for (int64_t i = 0; i < k * k && rc == 0; i++) {
			rc = copy_arc(t, arc, i / k * n + arc->src,
				      (i / k + i) % k * n + arc->dst, err);
		}
	}
	return rc;
}

static int measure_both(const struct topo_call *c, struct topo_size *s,
			struct err *err)
{
	(void)err;
	*s = c->part[0]->size;
	s->m *= 2;
	s->degree *= 2;
	return 0;
}

/* Appendix F: the graph and its transpose side by side. */
static int build_both(const struct topo_call *c,
		      const struct topo *const *parts, struct topo *t,
		      struct err *err)
{
	int rc = 0;

	(void)c;
	for (int a = 0; a < topo_m(parts[0]) && rc == 0; a++) {
		const struct topo_arc *arc = topo_arc(parts[0], a);

		rc = copy_arc(t, arc, arc->src, arc->dst, err);
		rc = rc ? rc : copy_arc(t, arc, arc->dst, arc->src, err);
	}
	return rc;
}

static int measure_same(const struct topo_call *c, struct topo_size *s,
			struct err *err)
{
	*s = c->part[0]->size;
	if (c->numbers == 0) {
		return 0;
	}
	return topo_check_arg(last(c), "value", c->family->name[0] != 'L',
			      1000000000, err);
}

static int build_reverse(const struct topo_call *c,
			 const struct topo *const *parts, struct topo *t,
			 struct err *err)
{
	int rc = 0;

	(void)c;
	for (int a = 0; a < topo_m(parts[0]) && rc == 0; a++) {
		const struct topo_arc *arc = topo_arc(parts[0], a);

		rc = copy_arc(t, arc, arc->dst, arc->src, err);
	}
	return rc;
}

static int measure_multiple(const struct topo_call *c, struct topo_size *s,
			    struct err *err)
{
	int rc = topo_check_arg(last(c), "number of parallel arcs", 1,
				TOPO_MAX_ARCS, err);

	*s = c->part[0]->size;
	s->m *= last(c)->value;
	s->degree *= last(c)->value;
	return rc;
}

static int build_multiple(const struct topo_call *c,
			  const struct topo *const *parts, struct topo *t,
			  struct err *err)
{
	int rc = 0;

	for (int a = 0; a < topo_m(parts[0]) && rc == 0; a++) {
		const struct topo_arc *arc = topo_arc(parts[0], a);

		for (int64_t i = 0; i < last(c)->value && rc == 0; i++) {
			rc = copy_arc(t, arc, arc->src, arc->dst, err);
		}
	}
	return rc;
}

/* The same arcs with another capacity or latency. */
static int build_changed(const struct topo_call *c,
			 const struct topo *const *parts, struct topo *t,
			 struct err *err)
{
	bool capacity = strcmp(c->family->name, "Cap") == 0;
	int rc = 0;

	for (int a = 0; a < topo_m(parts[0]) && rc == 0; a++) {
		struct topo_arc arc = *topo_arc(parts[0], a);

		*(capacity ? &arc.cap : &arc.latency_ns) = last(c)->value;
		rc = copy_arc(t, &arc, arc.src, arc.dst, err);
	}
	return rc;
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
	{ NULL, NULL, NULL, NULL, NULL, NULL },
};
