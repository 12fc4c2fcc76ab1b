/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Orbits of nodes and arcs under the automorphism group.
 *
 * nauty knows no weights: arcs of the most frequent capacity are plain, every
 * other arc becomes a path over a middle vertex with the colour of its
 * capacity. Demands are the same: pairs of the most frequent demand are not there, every other
 * pair is such a path with the colour of its demand. Only the generators are taken from nauty; the
 * orbits follow from them here, so that a proof needs no trust in it (flow_orbits_check).
 */
#include <stdlib.h>
#include <string.h>

#include "collective/flow/private.h"
#include "lib/base/alloc.h"
#include "lib/base/order.h"
#include "topology/symmetry/nauty_graph.h"

void flow_orbits_fini(struct flow_orbits *o)
{
	for (size_t i = 0; i < o->gens.n; i++) {
		free(o->gens.v[i]);
	}
	vec_fini(&o->gens);
	free(o->arc_class);
	free(o->orbit_of);
	memset(o, 0, sizeof(*o));
}

/* ---- generators ---- */

/* nauty's callback has no argument of its own. */
static _Thread_local struct {
	struct flow_orbits *to;
	int n;
} gather;

static void on_generator(int count, int *perm, int *orbits, int numorbits, int stabvertex, int nv)
{
	int32_t *g = x_alloc((size_t)gather.n, sizeof(*g));

	(void)count, (void)orbits, (void)numorbits, (void)stabvertex, (void)nv;
	for (int u = 0; u < gather.n; u++) {
		g[u] = perm[u];
	}
	vec_push(&gather.to->gens, g);
}

/* With more ranks, or more pairs of uncommon demands, no symmetry is looked for. */
#define MAX_PAIR_RANKS 2048
#define MAX_PAIRS (1 << 19)

/* A middle vertex of the path from one node to another. */
struct orbit_middle {
	int64_t value;		/* its colour: arcs of one capacity, pairs of one demand */
	int32_t number;		/* of the arc, or of the pair (from x n + to) */
	int32_t from, to;
	bool is_pair;
};

struct problem {
	struct nauty_graph graph;
	int64_t plain;		/* capacity of the plain arcs */
	VEC(struct orbit_middle) middles;	/* by colour: arcs, then pairs */
	int32_t *by_tail;	/* the middles by `from` */
	const struct flow_net *net;
};

ORDER_BY(by_value, struct orbit_middle, value, number)

/* Sorts the middles from `first` on by value and drops the most frequent value, which is
 * returned; 0 when there are none. */
static int64_t drop_most_frequent(struct problem *p, size_t first)
{
	struct orbit_middle *v = p->middles.v + first;
	size_t n = p->middles.n - first, best = 0, kept = 0;
	int64_t plain = 0;

	if (n == 0) {
		return 0;
	}
	qsort(v, n, sizeof(*v), by_value);
	for (size_t i = 0, run = 0; i < n; i++) {
		run = i > 0 && v[i].value == v[i - 1].value ? run + 1 : 1;
		if (run > best) {
			best = run;
			plain = v[i].value;
		}
	}
	for (size_t i = 0; i < n; i++) {
		if (v[i].value != plain) {
			v[kept++] = v[i];
		}
	}
	p->middles.n = first + kept;
	return plain;
}

/* Finds the most frequent capacity and lists the other arcs by capacity. */
static void split_arcs(const struct flow_net *net, struct problem *p)
{
	for (int a = 0; a < net->m; a++) {
		vec_push(&p->middles, (struct orbit_middle){
				net->units[a], a, net->src[a], net->dst[a], false });
	}
	p->plain = drop_most_frequent(p, 0);
}

/* The same with the demands of pairs. */
static void split_pairs(const struct flow_demands *d, struct problem *p)
{
	size_t first = p->middles.n;

	for (int u = 0; d && u < d->n; u++) {
		for (int v = 0; v < d->n; v++) {
			if (u != v) {
				vec_push(&p->middles, (struct orbit_middle){
					flow_demand(d, u, v), u * d->n + v, u, v, true });
			}
		}
	}
	drop_most_frequent(p, first);
}

static int compare_sums(const void *a, const void *b)
{
	return memcmp(a, b, 2 * sizeof(int64_t));
}

/* Whether no two terminals send as much and get as much: then nothing can be moved. */
static bool all_differ(const struct flow_demands *d)
{
	int64_t (*sum)[2] = x_new((size_t)d->n, sizeof(*sum));
	bool differ = true;

	for (int u = 0; u < d->n; u++) {
		for (int v = 0; v < d->n; v++) {
			sum[u][0] += flow_demand(d, u, v);
			sum[v][1] += flow_demand(d, u, v);
		}
	}
	qsort(sum, (size_t)d->n, sizeof(*sum), compare_sums);
	for (int u = 1; u < d->n && differ; u++) {
		differ = compare_sums(sum[u - 1], sum[u]) != 0;
	}
	free(sum);
	return differ;
}

/* The middles by their tails: first[u] .. first[u + 1] - 1 of by_tail. */
static void sort_by_tail(struct problem *p, int32_t *first)
{
	p->by_tail = x_alloc(p->middles.n + 1, sizeof(*p->by_tail));
	for (size_t i = 0; i < p->middles.n; i++) {
		first[p->middles.v[i].from + 2]++;
	}
	for (int u = 0; u < p->net->n; u++) {
		first[u + 2] += first[u + 1];
	}
	for (size_t i = 0; i < p->middles.n; i++) {
		p->by_tail[first[p->middles.v[i].from + 1]++] = (int32_t)i;
	}
}

static void fill_graph(struct problem *p)
{
	const struct flow_net *net = p->net;
	int32_t *first = x_new((size_t)net->n + 3, sizeof(*first));
	size_t e = 0;

	sort_by_tail(p, first);
	for (int u = 0; u < net->n; u++) {
		p->graph.sg.v[u] = e;
		for (int a = net->out_first[u]; a < net->out_first[u + 1]; a++) {
			if (net->units[a] == p->plain) {
				p->graph.sg.e[e++] = net->dst[a];
			}
		}
		for (int i = first[u]; i < first[u + 1]; i++) {
			p->graph.sg.e[e++] = net->n + p->by_tail[i];
		}
		p->graph.sg.d[u] = (int)(e - p->graph.sg.v[u]);
	}
	for (size_t i = 0; i < p->middles.n; i++) {
		p->graph.sg.v[net->n + (int)i] = e;
		p->graph.sg.d[net->n + (int)i] = 1;
		p->graph.sg.e[e++] = p->middles.v[i].to;
	}
	free(first);
}

/* Cells: terminals, other nodes, then the middles of each capacity, and of each demand. */
static void fill_colours(struct problem *p)
{
	const struct flow_net *net = p->net;
	int at = 0;

	for (int kind = 1; kind >= 0; kind--) {
		for (int u = 0; u < net->n; u++) {
			if (net->terminal[u] == (kind == 1)) {
				p->graph.lab[at] = u;
				p->graph.ptn[at++] = 1;
			}
		}
		if (at > 0) {
			p->graph.ptn[at - 1] = 0;
		}
	}
	for (size_t i = 0; i < p->middles.n; i++) {
		const struct orbit_middle *m = &p->middles.v[i];
		bool last = i + 1 == p->middles.n || m[0].value != m[1].value ||
			m[0].is_pair != m[1].is_pair;

		p->graph.lab[at] = net->n + (int)i;
		p->graph.ptn[at++] = !last;
	}
}

static bool is_undirected(const struct flow_net *net)
{
	for (int a = 0; a < net->m; a++) {
		int b = flow_net_arc(net, net->dst[a], net->src[a]);

		if (b < 0 || net->units[b] != net->units[a]) {
			return false;
		}
	}
	return true;
}

static void search_generators(const struct flow_net *net, const struct flow_demands *demands,
			      struct flow_orbits *o)
{
	struct problem p = { .net = net };
	size_t arcs;

	split_arcs(net, &p);
	arcs = p.middles.n;
	split_pairs(demands, &p);
	if (p.middles.n - arcs <= MAX_PAIRS) {
		nauty_graph_init(&p.graph, net->n + (int)p.middles.n,
				 (size_t)net->m + 2 * p.middles.n - arcs);
		fill_graph(&p);
		fill_colours(&p);
		gather.to = o;
		gather.n = net->n;
		nauty_graph_run(&p.graph, p.middles.n == 0 && is_undirected(net), on_generator);
	}
	nauty_graph_fini(&p.graph);
	vec_fini(&p.middles);
	free(p.by_tail);
}

/* Of a small digraph underneath. */
static void search_alike(const struct flow_net *net, struct flow_orbits *o)
{
	search_generators(net, NULL, o);
}

static void find_generators(const struct flow_net *net, const struct flow_demands *demands,
			    struct flow_orbits *o)
{
	if (demands || !flow_line_generators(net, search_alike, o)) {
		search_generators(net, demands, o);
	}
}

/* ---- orbits ---- */

static int32_t root_of(int32_t *up, int32_t x)
{
	while (up[x] != x) {
		up[x] = up[up[x]];
		x = up[x];
	}
	return x;
}

/* The smaller number becomes the root. */
static void unite(int32_t *up, int32_t a, int32_t b)
{
	a = root_of(up, a);
	b = root_of(up, b);
	if (a < b) {
		up[b] = a;
	} else {
		up[a] = b;
	}
}

static void number_classes(const struct flow_net *net, struct flow_orbits *o, int32_t *up)
{
	o->n_classes = 0;
	for (int a = 0; a < net->m; a++) {
		int32_t r = root_of(up, a);

		/* Roots come first: the smallest arc of their class. */
		o->arc_class[a] = r == a ? o->n_classes++ : o->arc_class[r];
	}
}

static void build_orbits(const struct flow_net *net, struct flow_orbits *o)
{
	int32_t *up = x_alloc((size_t)net->m + 1, sizeof(*up));

	o->arc_class = x_alloc((size_t)net->m + 1, sizeof(*o->arc_class));
	o->orbit_of = x_alloc((size_t)net->n, sizeof(*o->orbit_of));
	for (int a = 0; a < net->m; a++) {
		up[a] = a;
	}
	for (int u = 0; u < net->n; u++) {
		o->orbit_of[u] = u;
	}
	for (size_t i = 0; i < o->gens.n; i++) {
		const int32_t *g = o->gens.v[i];

		for (int u = 0; u < net->n; u++) {
			unite(o->orbit_of, u, g[u]);
		}
		for (int a = 0; a < net->m; a++) {
			unite(up, a, flow_net_arc(net, g[net->src[a]], g[net->dst[a]]));
		}
	}
	for (int u = 0; u < net->n; u++) {
		o->orbit_of[u] = root_of(o->orbit_of, u);
	}
	number_classes(net, o, up);
	free(up);
}

static void take_generators(const struct topo_group *g, int n, struct flow_orbits *o)
{
	for (int i = 0; g && i < topo_group_generators(g); i++) {
		int32_t *copy = x_alloc((size_t)n, sizeof(*copy));
		int order;

		vec_push(&o->gens, copy);
		memcpy(copy, topo_group_generator(g, i, &order), (size_t)n * sizeof(*copy));
	}
}

void flow_orbits_find(const struct flow_net *net, const struct flow_demands *demands,
		      bool symmetry, const struct topo_group *g, struct flow_orbits *out)
{
	bool differ = demands && (demands->n > MAX_PAIR_RANKS || (symmetry && all_differ(demands)));

	if (symmetry && !differ) {
		find_generators(net, demands, out);
	} else {
		take_generators(g, net->n, out);
	}
	build_orbits(net, out);
}

static bool is_automorphism(const struct flow_net *net, const int32_t *g,
			    const struct flow_orbits *o, bool *seen)
{
	memset(seen, 0, (size_t)net->n * sizeof(*seen));
	for (int u = 0; u < net->n; u++) {
		if (g[u] < 0 || g[u] >= net->n || seen[g[u]] ||
		    net->terminal[u] != net->terminal[g[u]] ||
		    o->orbit_of[u] != o->orbit_of[g[u]]) {
			return false;
		}
		seen[g[u]] = true;
	}
	for (int a = 0; a < net->m; a++) {
		int b = flow_net_arc(net, g[net->src[a]], g[net->dst[a]]);

		if (b < 0 || net->units[a] != net->units[b] || o->arc_class[a] != o->arc_class[b]) {
			return false;
		}
	}
	return true;
}

/* Closed classes might still be unions of orbits; they are orbits when the
 * generators connect them, which building them again shows. */
bool flow_orbits_check(const struct flow_net *net, const struct flow_demands *demands,
		       const struct flow_orbits *o)
{
	struct flow_orbits again = { 0 };
	bool *seen = x_alloc((size_t)net->n, sizeof(*seen));
	bool good = true;

	for (size_t i = 0; i < o->gens.n && good; i++) {
		good = is_automorphism(net, o->gens.v[i], o, seen) &&
		       flow_demands_kept(demands, o->gens.v[i]);
	}
	if (good) {
		again.gens.v = o->gens.v;
		again.gens.n = o->gens.n;
		build_orbits(net, &again);
		good = again.n_classes == o->n_classes &&
		       !memcmp(again.arc_class, o->arc_class,
			       (size_t)net->m * sizeof(*o->arc_class)) &&
		       !memcmp(again.orbit_of, o->orbit_of,
			       (size_t)net->n * sizeof(*o->orbit_of));
		again.gens.v = NULL;
		again.gens.n = 0;
		flow_orbits_fini(&again);
	}
	free(seen);
	return good;
}
