/*
 * Vertex and arc transitivity by nauty.
 *
 * nauty knows neither parallel arcs nor weights. All arcs from u to v are one
 * bundle; bundles of equal content (the sorted capacities and latencies) form
 * a class. The largest class becomes plain arcs, and every other bundle a
 * path over a middle vertex that carries the colour of its class: the
 * automorphisms of that graph, seen on the nodes, are exactly ours.
 */
#include <stdlib.h>
#include <string.h>

#include "topology/nauty_graph.h"
#include "topology/private.h"

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
	return (x->latency_ns > y->latency_ns) -
	       (x->latency_ns < y->latency_ns);
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
static bool classify(struct topo_bundles *b)
{
	struct topo_bundle **order = malloc(((size_t)b->n + 1) * sizeof(*order));
	int size = 0, largest = 0;

	if (!order) {
		return false;
	}
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
	return true;
}

static bool make_bundles(const struct topo *t, struct topo_bundles *b)
{
	size_t room = (size_t)topo_m(t) + 1;

	b->arcs = malloc(room * sizeof(*b->arcs));
	b->v = malloc(room * sizeof(*b->v));
	if (!b->arcs || !b->v) {
		return false;
	}
	cut_into_bundles(t, b);
	return classify(b);
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

/* One cell for the nodes and one for each class of middle vertices. */
static void fill_colours(const struct topo *t, const struct topo_bundles *b, struct nauty_graph *p)
{
	int at = 0;

	for (; at < t->n; at++) {
		p->lab[at] = at;
		p->ptn[at] = 1;
	}
	p->ptn[at - 1] = 0;
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
static bool search_orbits(const struct topo *t, bool arcs)
{
	struct nauty_graph p = { 0 };
	struct topo_bundles b = { 0 };
	bool transitive = false;

	if (!make_bundles(t, &b) || (arcs && b.classes > 1)) {
		goto out;
	}
	if (arcs) {
		b.plain = -1;
		b.middles = b.n;
	}
	if (!nauty_graph_init(&p, t->n + b.middles, (size_t)b.n + (size_t)b.middles)) {
		fill_graph(t, &b, &p);
		fill_colours(t, &b, &p);
		nauty_graph_run(&p, b.middles == 0 && topo_is_symmetric(t), NULL);
		transitive = arcs ? is_one_orbit(&p, t->n, t->n + b.middles)
				  : is_one_orbit(&p, 0, t->n);
	}
out:
	nauty_graph_fini(&p);
	free_bundles(&b);
	return transitive;
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

bool topo_vertex_transitive(const struct topo *t)
{
	if (!are_nodes_alike(t) || topo_n_limits(t) > 0) {
		return false;
	}
	if (t->cayley || topo_m(t) == 0) {
		return true;
	}
	/* Degrees differ: cheap, and the common reason. */
	return topo_regular_degree(t) > 0 && search_orbits(t, false);
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

bool topo_arc_transitive(const struct topo *t)
{
	if (!are_nodes_alike(t) || topo_n_limits(t) > 0 || topo_m(t) == 0) {
		return false;
	}
	return are_arcs_alike(t) && search_orbits(t, true);
}
