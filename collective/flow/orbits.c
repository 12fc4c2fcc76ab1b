/*
 * Orbits of nodes and arcs under the automorphism group.
 *
 * nauty knows no weights: arcs of the most frequent capacity are plain, every
 * other arc becomes a path over a middle vertex with the colour of its
 * capacity. Only the generators are taken from nauty; the orbits follow from
 * them here, so that a proof needs no trust in it (flow_orbits_check).
 */
#include <stdlib.h>
#include <string.h>

#include "collective/flow/private.h"
#include "topology/nauty_graph.h"

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
	bool failed;
} gather;

static void on_generator(int count, int *perm, int *orbits, int numorbits, int stabvertex, int nv)
{
	int32_t *g = malloc((size_t)gather.n * sizeof(*g));

	(void)count, (void)orbits, (void)numorbits, (void)stabvertex, (void)nv;
	for (int u = 0; g && u < gather.n; u++) {
		g[u] = perm[u];
	}
	if (!g || vec_push(&gather.to->gens, g)) {
		free(g);
		gather.failed = true;
	}
}

struct problem {
	struct nauty_graph graph;
	int64_t plain;		/* capacity of the plain arcs */
	int32_t *middles;	/* arcs that are not, by capacity */
	int n_middles;
	const struct flow_net *net;
};

static int by_units(const void *a, const void *b)
{
	const int64_t *x = a, *y = b;

	return x[0] != y[0] ? (x[0] < y[0] ? -1 : 1)
			    : (x[1] > y[1]) - (x[1] < y[1]);
}

/* Finds the most frequent capacity and lists the other arcs by capacity. */
static int split_arcs(const struct flow_net *net, struct problem *p)
{
	int64_t (*v)[2] = malloc(((size_t)net->m + 1) * sizeof(*v));
	int best = 0;

	p->middles = malloc(((size_t)net->m + 1) * sizeof(*p->middles));
	if (!v || !p->middles) {
		free(v);
		return WEFT_ENOMEM;
	}
	for (int a = 0; a < net->m; a++) {
		v[a][0] = net->units[a];
		v[a][1] = a;
	}
	qsort(v, (size_t)net->m, sizeof(*v), by_units);
	for (int a = 0, run = 0; a < net->m; a++) {
		run = a > 0 && v[a][0] == v[a - 1][0] ? run + 1 : 1;
		if (run > best) {
			best = run;
			p->plain = v[a][0];
		}
	}
	for (int a = 0; a < net->m; a++) {
		if (v[a][0] != p->plain) {
			p->middles[p->n_middles++] = (int32_t)v[a][1];
		}
	}
	free(v);
	return 0;
}

static int fill_graph(struct problem *p)
{
	const struct flow_net *net = p->net;
	int32_t *middle = calloc((size_t)net->m + 1, sizeof(*middle));
	size_t e = 0;

	if (!middle) {
		return WEFT_ENOMEM;
	}
	for (int i = 0; i < p->n_middles; i++) {
		middle[p->middles[i]] = net->n + i;
	}
	for (int u = 0; u < net->n; u++) {
		p->graph.sg.v[u] = e;
		for (int a = net->out_first[u]; a < net->out_first[u + 1]; a++) {
			p->graph.sg.e[e++] = middle[a] ? middle[a] : net->dst[a];
		}
		p->graph.sg.d[u] = (int)(e - p->graph.sg.v[u]);
	}
	for (int i = 0; i < p->n_middles; i++) {
		p->graph.sg.v[net->n + i] = e;
		p->graph.sg.d[net->n + i] = 1;
		p->graph.sg.e[e++] = net->dst[p->middles[i]];
	}
	free(middle);
	return 0;
}

/* Cells: terminals, other nodes, then the middles of each capacity. */
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
	for (int i = 0; i < p->n_middles; i++) {
		bool last = i + 1 == p->n_middles ||
			net->units[p->middles[i]] != net->units[p->middles[i + 1]];

		p->graph.lab[at] = net->n + i;
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

static int find_generators(const struct flow_net *net, struct flow_orbits *o)
{
	struct problem p = { .net = net };
	int rc = split_arcs(net, &p);

	if (rc == 0 && (rc = nauty_graph_init(&p.graph, net->n + p.n_middles,
					      (size_t)net->m + (size_t)p.n_middles)) == 0) {
		rc = fill_graph(&p);
	}
	if (rc == 0) {
		fill_colours(&p);
		gather.to = o;
		gather.n = net->n;
		gather.failed = false;
		nauty_graph_run(&p.graph, p.n_middles == 0 && is_undirected(net), on_generator);
		rc = gather.failed ? WEFT_ENOMEM : 0;
	}
	nauty_graph_fini(&p.graph);
	free(p.middles);
	return rc;
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

static int build_orbits(const struct flow_net *net, struct flow_orbits *o)
{
	int32_t *up = malloc(((size_t)net->m + 1) * sizeof(*up));

	o->arc_class = malloc(((size_t)net->m + 1) * sizeof(*o->arc_class));
	o->orbit_of = malloc((size_t)net->n * sizeof(*o->orbit_of));
	if (!up || !o->arc_class || !o->orbit_of) {
		free(up);
		return WEFT_ENOMEM;
	}
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
	return 0;
}

static int take_generators(const struct topo_group *g, int n, struct flow_orbits *o)
{
	for (int i = 0; g && i < topo_group_generators(g); i++) {
		int32_t *copy = malloc((size_t)n * sizeof(*copy));
		int order;

		if (!copy || vec_push(&o->gens, copy)) {
			free(copy);
			return WEFT_ENOMEM;
		}
		memcpy(copy, topo_group_generator(g, i, &order), (size_t)n * sizeof(*copy));
	}
	return 0;
}

int flow_orbits_find(const struct flow_net *net, bool symmetry, const struct topo_group *g,
		     struct flow_orbits *out, struct err *err)
{
	int rc = symmetry ? find_generators(net, out) : take_generators(g, net->n, out);

	if (rc == 0) {
		rc = build_orbits(net, out);
	}
	if (rc) {
		flow_orbits_fini(out);
		return err_nomem(err);
	}
	return 0;
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
bool flow_orbits_check(const struct flow_net *net, const struct flow_orbits *o)
{
	struct flow_orbits again = { 0 };
	bool *seen = malloc((size_t)net->n * sizeof(*seen));
	bool good = seen != NULL;

	for (size_t i = 0; i < o->gens.n && good; i++) {
		good = is_automorphism(net, o->gens.v[i], o, seen);
	}
	if (good) {
		again.gens.v = o->gens.v;
		again.gens.n = o->gens.n;
		good = build_orbits(net, &again) == 0 &&
		       again.n_classes == o->n_classes &&
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
