/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shortest-path expanders: digraphs that form while commodities are routed
 * (all-to-all-mcf, appendix E); topology.h.
 *
 * Every arc of the complete digraph is offered at a small price. A commodity
 * takes the cheapest path there is; what it uses becomes an arc, at a higher price with
 * each use. A node whose ports are taken withdraws its other offers. When no
 * offer is left nothing more can change, so the rest need not be routed.
 */
#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/number/rng.h"
#include "lib/graph/graph.h"
#include "topology/private.h"

/* An offer; a use costs more than any path of offers alone. */
#define OFFER 1

/* A search looks at all nodes, and about one an arc is made. */
#define MAX_FORMED 4096
#define MAX_FORMED_ARCS 16384

/* How often a digraph that closed too early is begun again. */
#define MAX_DRAWS 64

struct topo_formation {
	int n, d;
	int64_t use;		/* what a use adds to the price of an arc */
	int32_t *to, *back;	/* n x d: heads of arcs so far, and tails */
	int64_t *price;		/* n x d */
	int32_t *outs, *ins;	/* n: ports taken */
	int64_t open;		/* arcs that are missing */

	/* of one commodity */
	struct graph_heap heap;	/* equally near: by number */
	int32_t *from;		/* n: the node before */
	bool *settled;		/* n */
	int32_t *queue;		/* n */
	int32_t *offered;	/* n: nodes that no offer has reached */
	int n_offered;
	uint32_t *mark, stamp;	/* n: heads of the node that offers */
	struct arrays arrays;	/* all of these */
};

static void forming_fini(struct topo_formation *f)
{
	graph_heap_fini(&f->heap);
	arrays_fini(&f->arrays);
}

static void forming_init(struct topo_formation *f, int64_t n, int64_t d)
{
	*f = (struct topo_formation){ .n = (int)n, .d = (int)d, .use = n + 1 };
	arrays_add(&f->arrays, f->to, n * d);
	arrays_add(&f->arrays, f->back, n * d);
	arrays_add(&f->arrays, f->price, n * d);
	arrays_add(&f->arrays, f->outs, n);
	arrays_add(&f->arrays, f->ins, n);
	arrays_add(&f->arrays, f->from, n);
	arrays_add(&f->arrays, f->settled, n);
	arrays_add(&f->arrays, f->queue, n);
	arrays_add(&f->arrays, f->offered, n);
	arrays_add(&f->arrays, f->mark, n);
	graph_heap_init(&f->heap, (int)n);
	f->heap.ties_by_node = true;
}

/* ---- the cheapest path ---- */

static void reach(struct topo_formation *f, int u, int v, double dist)
{
	if (dist < f->heap.dist[v]) {
		f->from[v] = u;
		graph_heap_put(&f->heap, v, dist);
	}
}

static int find_arc(const struct topo_formation *f, int u, int v)
{
	for (int i = 0; i < f->outs[u]; i++) {
		if (f->to[(size_t)u * f->d + i] == v) {
			return i;
		}
	}
	return -1;
}

/* The nearest node with an open port offers to all at the same price, so the
 * others have nothing better; but where it has an arc already, they may. */
static void offer(struct topo_formation *f, int u)
{
	int kept = 0;

	f->stamp++;
	for (int i = 0; i < f->outs[u]; i++) {
		f->mark[f->to[(size_t)u * f->d + i]] = f->stamp;
	}
	for (int i = 0; i < f->n_offered; i++) {
		int v = f->offered[i];

		if (f->mark[v] == f->stamp) {
			f->offered[kept++] = v;
		} else if (!f->settled[v]) {
			reach(f, u, v, f->heap.dist[u] + OFFER);
		}
	}
	f->n_offered = kept;
}

/* Dijkstra until t; false when it is cut off. */
static bool find_path(struct topo_formation *f, int s, int t)
{
	int u;

	f->n_offered = 0;
	graph_heap_reset(&f->heap);
	for (int v = 0; v < f->n; v++) {
		f->settled[v] = false;
		if (f->ins[v] < f->d) {
			f->offered[f->n_offered++] = v;
		}
	}
	reach(f, s, s, 0);
	while ((u = graph_heap_take(&f->heap)) >= 0) {
		size_t first = (size_t)u * f->d;

		f->settled[u] = true;
		if (u == t) {
			return true;
		}
		for (int i = 0; i < f->outs[u]; i++) {
			if (!f->settled[f->to[first + i]]) {
				reach(f, u, f->to[first + i],
				      f->heap.dist[u] + (double)f->price[first + i]);
			}
		}
		if (f->outs[u] == f->d) {
			continue;
		}
		/* Nothing is nearer than one offer from here. */
		if (f->ins[t] < f->d && find_arc(f, u, t) < 0) {
			reach(f, u, t, f->heap.dist[u] + OFFER);
			return true;
		}
		offer(f, u);
	}
	return false;
}

static void use_arc(struct topo_formation *f, int u, int v)
{
	int i = find_arc(f, u, v);

	if (i < 0) {
		i = f->outs[u]++;
		f->back[(size_t)v * f->d + f->ins[v]++] = u;
		f->open--;
		f->to[(size_t)u * f->d + i] = v;
		f->price[(size_t)u * f->d + i] = OFFER;
	}
	f->price[(size_t)u * f->d + i] += f->use;
}

/* ---- the digraph ---- */

static void shuffle(int32_t *a, int n, struct rng *rng)
{
	for (int i = 0; i < n; i++) {
		int j = (int)rng_below(rng, (uint64_t)i + 1);

		a[i] = a[j];
		a[j] = i;
	}
}

/* Routes commodities, source by source in random order, until every port is
 * taken. False when some are left: arcs closed around a part. */
static bool form(struct topo_formation *f, int32_t *sources, int32_t *sinks, struct rng *rng)
{
	memset(f->outs, 0, (size_t)f->n * sizeof(*f->outs));
	memset(f->ins, 0, (size_t)f->n * sizeof(*f->ins));
	f->open = (int64_t)f->n * f->d;
	shuffle(sources, f->n, rng);
	for (int i = 0; i < f->n && f->open > 0; i++) {
		shuffle(sinks, f->n, rng);
		for (int j = 0; j < f->n && f->open > 0; j++) {
			int s = sources[i], t = sinks[j];

			if (s == t) {
				continue;
			}
			if (!find_path(f, s, t)) {
				return false;
			}
			for (int v = t; v != s; v = f->from[v]) {
				use_arc(f, f->from[v], v);
			}
		}
	}
	return f->open == 0;
}

static void add_arcs(const struct topo_formation *f, struct topo_make *mk)
{
	for (int u = 0; u < f->n; u++) {
		for (int i = 0; i < f->d; i++) {
			topo_link(mk, u, f->to[(size_t)u * f->d + i]);
		}
	}
}

/* Node 0 reaches every node, along the arcs and against them. */
static bool is_strong(struct topo_formation *f)
{
	return topo_count_reached(f->to, f->n, f->d, f->queue, f->settled) ==
		       f->n &&
	       topo_count_reached(f->back, f->n, f->d, f->queue, f->settled) ==
		       f->n;
}

static void measure(struct topo_make *mk)
{
	int64_t n = topo_number(mk, 0), d = topo_number(mk, 1);

	topo_check_number(mk, 0, "nodes", 3, MAX_FORMED);
	topo_check_number(mk, 1, "degree", 2, n - 1);
	topo_check_number(mk, 2, "seed", 0, 1000000000);
	if (!mk->rc && n * d > MAX_FORMED_ARCS) {
		topo_refuse(mk, mk->call->number[1].col, "%lld arcs: expected "
			    "at most %d", (long long)(n * d), MAX_FORMED_ARCS);
	}
	mk->size = (struct topo_size){ n, n * d, d, false, true };
}

static void build(struct topo_make *mk)
{
	int64_t n = topo_number(mk, 0);
	int32_t *order = x_alloc(2 * (size_t)n, sizeof(*order));
	struct topo_formation f;
	struct rng rng;
	bool whole = false;

	forming_init(&f, n, topo_number(mk, 1));
	rng_seed(&rng, (uint64_t)topo_number(mk, 2));
	for (int k = 0; k < MAX_DRAWS && !whole; k++) {
		whole = form(&f, order, order + n, &rng) && is_strong(&f);
	}
	if (whole) {
		add_arcs(&f, mk);
	} else {
		mk->rc = err_set(mk->err, WEFT_EINFEASIBLE, "no shortest-path "
				 "expander in %d draws", MAX_DRAWS);
	}
	forming_fini(&f);
	free(order);
}

const struct topo_family topo_formation[] = {
	{ "PathExpander", "nnn", "PathExpander(n,d,seed)", "digraph of n "
	  "nodes, d ports, formed by routing commodities", measure, build },
	{ NULL, NULL, NULL, NULL, NULL, NULL },
};
