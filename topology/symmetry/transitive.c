/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Vertex and arc transitivity, and orbits of nodes, arcs and limits, by nauty.
 *
 * nauty knows neither parallel arcs nor weights. All arcs from u to v are one
 * bundle; bundles of equal content (the sorted capacities, latencies and costs) form
 * a class. The largest class becomes plain arcs, and every other bundle a
 * path over a middle vertex that carries the colour of its class: the
 * automorphisms of that graph, seen on the nodes, are exactly ours.
 */
#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "topology/private.h"
#include "topology/symmetry/nauty_graph.h"

struct topo_bundle {
	const struct topo_arc *arcs;	/* sorted by target and content */
	int n;
	int class;
};

struct topo_bundles {
	struct topo_arc *arcs;		/* all, sorted within each source */
	struct topo_bundle *v;
	int n;
	int classes, plain;		/* plain: the largest class; -1: none */
	int middles;			/* bundles that are not plain */
};

static int compare_content(const struct topo_arc *x, const struct topo_arc *y)
{
	if (x->cap != y->cap) {
		return x->cap < y->cap ? -1 : 1;
	}
	if (x->latency_ns != y->latency_ns) {
		return x->latency_ns < y->latency_ns ? -1 : 1;
	}
	return (x->cost > y->cost) - (x->cost < y->cost);
}

static int compare_arcs(const void *a, const void *b)
{
	const struct topo_arc *x = a, *y = b;

	if (x->dst != y->dst) {
		return x->dst < y->dst ? -1 : 1;
	}
	return compare_content(x, y);
}

static int compare_bundles(const void *a, const void *b)
{
	const struct topo_bundle *x = *(struct topo_bundle *const *)a;
	const struct topo_bundle *y = *(struct topo_bundle *const *)b;

	if (x->n != y->n) {
		return x->n < y->n ? -1 : 1;
	}
	for (int i = 0; i < x->n; i++) {
		int c = compare_content(&x->arcs[i], &y->arcs[i]);

		if (c != 0) {
			return c;
		}
	}
	return 0;
}

static void free_bundles(struct topo_bundles *b)
{
	free(b->arcs);
	free(b->v);
}

static void cut_into_bundles(const struct topo *t, struct topo_bundles *b)
{
	int m = topo_m(t);

	memcpy(b->arcs, topo_arcs(t), (size_t)m * sizeof(*b->arcs));
	for (int u = 0; u < t->n; u++) {
		int first, n = topo_out(t, u, &first);

		qsort(b->arcs + first, (size_t)n, sizeof(*b->arcs), compare_arcs);
	}
	for (int a = 0; a < m; a++) {
		const struct topo_arc *arc = &b->arcs[a];

		if (a > 0 && arc[-1].src == arc->src && arc[-1].dst == arc->dst) {
			b->v[b->n - 1].n++;
		} else {
			b->v[b->n++] = (struct topo_bundle){ arc, 1, 0 };
		}
	}
}

/* Numbers the classes and finds the largest. */
static void classify(struct topo_bundles *b)
{
	struct topo_bundle **order = x_alloc((size_t)b->n + 1, sizeof(*order));
	int size = 0, largest = 0;

	for (int i = 0; i < b->n; i++) {
		order[i] = &b->v[i];
	}
	qsort(order, (size_t)b->n, sizeof(*order), compare_bundles);
	for (int i = 0; i < b->n; i++) {
		if (i == 0 || compare_bundles(&order[i - 1], &order[i])) {
			b->classes++;
			size = 0;
		}
		order[i]->class = b->classes - 1;
		if (++size > largest) {
			largest = size;
			b->plain = b->classes - 1;
		}
	}
	b->middles = b->n - largest;
	free(order);
}

static void make_bundles(const struct topo *t, struct topo_bundles *b)
{
	size_t room = (size_t)topo_m(t) + 1;

	b->arcs = x_alloc(room, sizeof(*b->arcs));
	b->v = x_alloc(room, sizeof(*b->v));
	cut_into_bundles(t, b);
	classify(b);
}

/* Adds the arcs; middle vertices are numbered in the order of bundles. */
static void fill_graph(const struct topo *t, const struct topo_bundles *b, struct nauty_graph *p)
{
	size_t e = 0;
	int middle = t->n, i = 0;

	for (int u = 0; u < t->n; u++) {
		p->sg.v[u] = e;
		for (; i < b->n && b->v[i].arcs->src == u; i++) {
			bool plain = b->v[i].class == b->plain;

			p->sg.e[e++] = plain ? b->v[i].arcs->dst : middle++;
		}
		p->sg.d[u] = (int)(e - p->sg.v[u]);
	}
	middle = t->n;
	for (i = 0; i < b->n; i++) {
		if (b->v[i].class != b->plain) {
			p->sg.v[middle] = e;
			p->sg.d[middle++] = 1;
			p->sg.e[e++] = b->v[i].arcs->dst;
		}
	}
}

/* One cell for each class of middle vertices, from place `at` on. */
static void fill_middle_colours(const struct topo *t, const struct topo_bundles *b,
				struct nauty_graph *p, int at)
{
	for (int c = 0; c < b->classes; c++) {
		int middle = t->n;

		if (c == b->plain) {
			continue;
		}
		for (int i = 0; i < b->n; i++) {
			if (b->v[i].class == c) {
				p->lab[at] = middle;
				p->ptn[at++] = 1;
			}
			middle += b->v[i].class != b->plain;
		}
		p->ptn[at - 1] = 0;
	}
}

/* One cell for the nodes and one for each class of middle vertices. */
static void fill_colours(const struct topo *t, const struct topo_bundles *b, struct nauty_graph *p)
{
	for (int u = 0; u < t->n; u++) {
		p->lab[u] = u;
		p->ptn[u] = u + 1 < t->n;
	}
	fill_middle_colours(t, b, p, t->n);
}

static bool is_one_orbit(const struct nauty_graph *p, int from, int to)
{
	for (int u = from; u < to; u++) {
		if (p->orbits[u] != p->orbits[from]) {
			return false;
		}
	}
	return true;
}

/* By nauty: the nodes are one orbit, or all arcs are, each bundle of them a middle vertex. */
static enum topo_answer search_orbits(const struct topo *t, bool arcs)
{
	struct nauty_graph p = { 0 };
	struct topo_bundles b = { 0 };
	enum topo_answer answer;

	make_bundles(t, &b);
	if (arcs && b.classes > 1) {
		answer = TOPO_NO;
		goto out;
	}
	if (arcs) {
		b.plain = -1;
		b.middles = b.n;
	}
	nauty_graph_init(&p, t->n + b.middles, (size_t)b.n + (size_t)b.middles);
	fill_graph(t, &b, &p);
	fill_colours(t, &b, &p);
	answer = nauty_graph_run(&p, b.middles == 0 && topo_is_symmetric(t), NULL)
			 ? TOPO_NO : TOPO_NOT_KNOWN;
	if (arcs ? is_one_orbit(&p, t->n, t->n + b.middles) : is_one_orbit(&p, 0, t->n)) {
		answer = TOPO_YES;
	}
out:
	nauty_graph_fini(&p);
	free_bundles(&b);
	return answer;
}

static bool are_nodes_alike(const struct topo *t)
{
	for (int u = 1; u < t->n; u++) {
		if (memcmp(&t->nodes[u], &t->nodes[0], sizeof(t->nodes[0]))) {
			return false;
		}
	}
	return true;
}

enum topo_answer topo_vertex_transitive(const struct topo *t)
{
	if (!are_nodes_alike(t) || topo_n_limits(t) > 0) {
		return TOPO_NO;
	}
	if (t->cayley || topo_m(t) == 0) {
		return TOPO_YES;
	}
	/* Degrees differ: cheap, and the common reason. */
	return topo_regular_degree(t) > 0 ? search_orbits(t, false) : TOPO_NO;
}

/* Of one capacity and latency; then parallel ones change places freely. */
static bool are_arcs_alike(const struct topo *t)
{
	const struct topo_arc *first = topo_arc(t, 0);

	for (int a = 1; a < topo_m(t); a++) {
		if (compare_content(first, topo_arc(t, a))) {
			return false;
		}
	}
	return true;
}

enum topo_answer topo_arc_transitive(const struct topo *t)
{
	if (!are_nodes_alike(t) || topo_n_limits(t) > 0 || topo_m(t) == 0) {
		return TOPO_NO;
	}
	return are_arcs_alike(t) ? search_orbits(t, true) : TOPO_NO;
}

/* ---- orbits ---- */

/* The middle vertices are in the order of their cells' bundles, and limits come last: one vertex
 * each, with an arc to the middle of each of its arcs. */
struct topo_orbit_search {
	const struct topo *t;
	const int32_t *colour;	/* of nodes; NULL: all alike */
	struct topo_bundles b;
	struct nauty_graph p;
	int32_t *bundle_of;	/* of an arc */
	int32_t *like;		/* of an arc: the first arc of its bundle with its content */
};

/* By kind, flags and colour, then number. */
static int by_node_colour(const void *pa, const void *pb, void *search)
{
	const struct topo_orbit_search *s = search;
	int a = *(const int *)pa, b = *(const int *)pb;
	int c = memcmp(&s->t->nodes[a], &s->t->nodes[b], sizeof(s->t->nodes[a]));

	if (c == 0 && s->colour && s->colour[a] != s->colour[b]) {
		c = s->colour[a] < s->colour[b] ? -1 : 1;
	}
	return c ? c : a < b ? -1 : a > b;
}

static bool is_node_like(const struct topo_orbit_search *s, int a, int b)
{
	return !memcmp(&s->t->nodes[a], &s->t->nodes[b], sizeof(s->t->nodes[a])) &&
	       (!s->colour || s->colour[a] == s->colour[b]);
}

static int by_limit_size(const void *pa, const void *pb, void *search)
{
	const struct topo_orbit_search *s = search;
	int first = s->t->n + s->b.n;
	const struct topo_limit *a = topo_limit(s->t, *(const int *)pa - first);
	const struct topo_limit *b = topo_limit(s->t, *(const int *)pb - first);

	return a->n != b->n ? (a->n < b->n ? -1 : 1) : a->cap < b->cap ? -1 : a->cap > b->cap;
}

static void colour_orbit_graph(struct topo_orbit_search *s)
{
	int n = s->t->n, limits = topo_n_limits(s->t), end = n + s->b.n;
	struct nauty_graph *p = &s->p;

	for (int u = 0; u < n; u++) {
		p->lab[u] = u;
	}
	qsort_r(p->lab, (size_t)n, sizeof(*p->lab), by_node_colour, s);
	for (int i = 0; i < n; i++) {
		p->ptn[i] = i + 1 < n && is_node_like(s, p->lab[i], p->lab[i + 1]);
	}
	fill_middle_colours(s->t, &s->b, p, n);
	for (int i = 0; i < limits; i++) {
		p->lab[end + i] = end + i;
	}
	qsort_r(p->lab + end, (size_t)limits, sizeof(*p->lab), by_limit_size, s);
	for (int i = end; i < end + limits; i++) {
		p->ptn[i] = i + 1 < end + limits &&
			    by_limit_size(&p->lab[i], &p->lab[i + 1], s) == 0;
	}
}

/* After fill_graph: the arcs of limits. */
static void fill_limits(struct topo_orbit_search *s)
{
	sparsegraph *sg = &s->p.sg;
	int at = s->t->n + s->b.n;
	size_t e = 2 * (size_t)s->b.n;

	for (int i = 0; i < topo_n_limits(s->t); i++, at++) {
		const struct topo_limit *l = topo_limit(s->t, i);

		sg->v[at] = e;
		sg->d[at] = l->n;
		for (int k = 0; k < l->n; k++) {
			sg->e[e++] = s->t->n + s->bundle_of[l->arcs[k]];
		}
	}
}

/* Which bundle each arc is in, and the arcs of it that are alike. False where arcs of
 * one bundle are under limits, which nauty would have to tell apart. */
static bool index_bundles(struct topo_orbit_search *s)
{
	const struct topo *t = s->t;
	bool told_apart = true;

	for (int i = 0; i < s->b.n; i++) {
		const struct topo_arc *head = s->b.v[i].arcs;
		int first, n = topo_out(t, head->src, &first);

		for (int a = first; a < first + n; a++) {
			const int32_t *limits;

			if (topo_arc(t, a)->dst == head->dst) {
				s->bundle_of[a] = i;
				s->like[a] = a;
				for (int o = a - 1; o >= first; o--) {
					if (topo_arc_compare(topo_arc(t, o), topo_arc(t, a)) == 0) {
						s->like[a] = o;
					}
				}
				told_apart = told_apart && (s->b.v[i].n == 1 ||
					topo_arc_limits(t, a, &limits) == 0);
			}
		}
	}
	return told_apart;
}

/* Names each orbit of arcs by its first one: arcs of like content in bundles of one orbit. */
static void read_arc_orbits(const struct topo_orbit_search *s, int32_t *arc)
{
	const struct topo *t = s->t;

	for (int a = 0; a < topo_m(t); a++) {
		/* The least bundle of the orbit, which was met before or is a's. */
		int of = s->p.orbits[t->n + s->bundle_of[a]] - t->n;
		const struct topo_arc *head = s->b.v[of].arcs;
		int first, n = topo_out(t, head->src, &first);

		arc[a] = s->like[a];
		for (int o = first; o < first + n; o++) {
			if (s->bundle_of[o] == of &&
			    compare_content(topo_arc(t, o), topo_arc(t, a)) == 0) {
				arc[a] = s->like[o];
				break;
			}
		}
	}
}

/* Bundles are sorted by target, so their first arc need not be the least. room: m. */
static void name_by_first(int32_t *arc, int32_t *room, int m)
{
	for (int a = 0; a < m; a++) {
		room[a] = -1;
	}
	for (int a = 0; a < m; a++) {
		if (room[arc[a]] < 0) {
			room[arc[a]] = a;
		}
		arc[a] = room[arc[a]];
	}
}

static void each_alone(const struct topo *t, int32_t *node, int32_t *arc, int32_t *limit)
{
	for (int u = 0; u < t->n; u++) {
		node[u] = u;
	}
	for (int a = 0; a < topo_m(t); a++) {
		arc[a] = a;
	}
	for (int i = 0; i < topo_n_limits(t); i++) {
		limit[i] = i;
	}
}

void topo_orbits(const struct topo *t, const int32_t *colour, int32_t *node, int32_t *arc,
		 int32_t *limit)
{
	struct topo_orbit_search s = { .t = t, .colour = colour };
	int limits = topo_n_limits(t);

	each_alone(t, node, arc, limit);
	s.bundle_of = x_new((size_t)topo_m(t) + 1, sizeof(*s.bundle_of));
	s.like = x_new((size_t)topo_m(t) + 1, sizeof(*s.like));
	make_bundles(t, &s.b);
	nauty_graph_init(&s.p, t->n + s.b.n + limits, 2 * (size_t)s.b.n + t->limit_arcs.n);
	s.b.plain = -1;
	if (!index_bundles(&s)) {
		goto out;
	}
	fill_graph(t, &s.b, &s.p);
	fill_limits(&s);
	colour_orbit_graph(&s);
	nauty_graph_run(&s.p, false, NULL);
	memcpy(node, s.p.orbits, (size_t)t->n * sizeof(*node));
	for (int i = 0; i < limits; i++) {
		limit[i] = s.p.orbits[t->n + s.b.n + i] - t->n - s.b.n;
	}
	read_arc_orbits(&s, arc);
	name_by_first(arc, s.bundle_of, topo_m(t));
out:
	nauty_graph_fini(&s.p);
	free_bundles(&s.b);
	free(s.bundle_of);
	free(s.like);
}
