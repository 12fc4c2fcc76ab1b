/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Trees of cheapest paths, kept from pass to pass; and flows that are means of such trees.
 *
 * Where only the congestion is asked for, a flow need not be known arc by arc. Conditional
 * gradients (Frank and Wolfe 1956) move the flows of a block of sources (Lacoste-Julien et al.
 * 2013) to their trees of cheapest paths, all by the same part of the way: so the loads of a block
 * are a mean of the loads of trees, and are all that is kept. A tree takes one sweep, along arcs
 * from earlier to later nodes in the order of distances in the source's tree before: nearly the
 * cheapest, which is enough to move to. What is proven is proven by trees that are.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "collective/flow/private.h"
#include "lib/base/alloc.h"

/* Blocks of sources, with prices of their own in a pass: with fewer there are more passes. */
#define BLOCKS 128
/* Of distances, which are sorted by them. */
#define BUCKETS 2048

int flow_tree_init(struct mcf *p, int s)
{
	const struct flow_net *net = &p->net;
	int32_t *parent = mcf_parent_of(p, s), *order = mcf_order_of(p, s);
	int head = 0, tail = 0, reached;

	for (int v = 0; v < net->n; v++) {
		parent[v] = -2;
	}
	parent[p->source[s]] = -1;
	order[tail++] = p->source[s];
	while (head < tail) {
		int u = order[head++];

		for (int a = net->out_first[u]; a < net->out_first[u + 1]; a++) {
			int v = net->dst[a];

			if (parent[v] == -2) {
				parent[v] = a;
				order[tail++] = v;
			}
		}
	}
	reached = tail;
	for (int v = 0; v < net->n; v++) {
		if (parent[v] == -2) {
			order[tail++] = v;
		}
	}
	return reached;
}

/* Puts every node behind its parent again. */
static void reorder(struct mcf *p, int s)
{
	const struct flow_net *net = &p->net;
	const int32_t *parent = mcf_parent_of(p, s);
	int32_t *order = mcf_order_of(p, s), *stack = p->walk;
	uint32_t stamp = ++p->stamp;
	int tail = 0;

	for (int v = 0; v < net->n; v++) {
		int depth = 0, u = v;

		while (p->on_walk[u] != stamp) {
			stack[depth++] = u;
			if (parent[u] < 0) {
				break;
			}
			u = net->src[parent[u]];
		}
		while (depth > 0) {
			u = stack[--depth];
			p->on_walk[u] = stamp;
			order[tail++] = u;
		}
	}
}

/* Looks at the arcs out of u; true when one of them improved its head by more
 * than `before` and `after` together, which are added in this order. Heads
 * wait in q, the caller's copy of p->queue: this is the solver's innermost
 * loop, and what has no address outside stays in registers. */
static inline bool relax_arcs(struct mcf *p, int32_t *parent, struct graph_queue *q, int u,
			      double before, double after)
{
	const struct flow_net *net = &p->net;
	double *dist = p->dist;
	const double at_u = dist[u], from = at_u + before;	/* the net has no loops */
	bool improved = false;

	for (int a = net->out_first[u]; a < net->out_first[u + 1]; a++) {
		int v = net->dst[a];

		if (from + p->arc_price[a] + after < dist[v]) {
			dist[v] = at_u + p->arc_price[a];
			parent[v] = a;
			graph_queue_put(q, v);
			improved = true;
		}
	}
	return improved;
}

void flow_tree_update(struct mcf *p, int s)
{
	const struct flow_net *net = &p->net;
	int32_t *parent = mcf_parent_of(p, s);
	const int32_t *order = mcf_order_of(p, s);
	double largest = 0, slack;
	struct graph_queue queue = p->queue;
	bool improved = false;
	int u;

	p->dist[order[0]] = 0;
	for (int i = 1; i < net->n; i++) {
		int v = order[i], a = parent[v];

		/* Only nodes that need not be reached have no parent. */
		p->dist[v] = a < 0 ? HUGE_VAL
				   : p->dist[net->src[a]] + p->arc_price[a];
		largest = p->dist[v] > largest && a >= 0 ? p->dist[v]
							 : largest;
	}
	/* What rounding alone explains is no improvement; without this,
	 * arcs of price zero could close a cycle of parents. */
	slack = largest * 1e-14;
	for (u = 0; u < net->n; u++) {
		improved |= relax_arcs(p, parent, &queue, u, slack, 0);
	}
	while ((u = graph_queue_take(&queue)) >= 0) {
		relax_arcs(p, parent, &queue, u, 0, slack);
	}
	p->queue = queue;
	if (improved) {
		reorder(p, s);
	}
}

void flow_tree_route(struct mcf *p, int s)
{
	const struct flow_net *net = &p->net;
	const int32_t *parent = mcf_parent_of(p, s);
	const int32_t *order = mcf_order_of(p, s);
	double *flow = mcf_flow_of(p, s), *below = p->dist;

	memset(flow, 0, (size_t)net->m * sizeof(*flow));
	memcpy(below, mcf_demand_of(p, s), (size_t)net->n * sizeof(*below));
	for (int i = net->n - 1; i > 0; i--) {
		int v = order[i], a = parent[v];

		if (a >= 0) {
			flow[a] = below[v];
			below[net->src[a]] += below[v];
		}
	}
}

/* ---- means of trees ---- */

struct flow_means {
	struct mcf *p;
	int32_t *order;		/* n_sources x n: nodes by distance, what is not reached last */
	int32_t *src, *class;	/* of the arcs into nodes, as in_arcs of the net */
	float *price;		/* of these arcs */
	double *load;		/* BLOCKS x classes */
	int passes;		/* nodes are sorted in every second one, which is enough */

	/* scratch of a block, of a source */
	double *tree_load;	/* a class */
	float *label;		/* n: distances */
	int32_t *into;		/* by place in the order: arc of the tree, as above, or -1 */
	double *below;		/* n: what comes to a node */
	int32_t *bucket;	/* by place in the order */
	int32_t *sorted;	/* n */
	struct arrays arrays;
};

struct flow_means *flow_means_new(struct mcf *p)
{
	struct flow_means *f = x_new(1, sizeof(*f));
	size_t n = (size_t)p->net.n, m = (size_t)p->net.m + 1, all = n * (size_t)p->n_sources;
	size_t k = (size_t)p->orbits.n_classes + 1;

	f->p = p;
	arrays_add(&f->arrays, f->order, all);
	arrays_add(&f->arrays, f->src, m);
	arrays_add(&f->arrays, f->class, m);
	arrays_add(&f->arrays, f->price, m);
	arrays_add(&f->arrays, f->load, BLOCKS * k);
	arrays_add(&f->arrays, f->tree_load, k);
	arrays_add(&f->arrays, f->label, n);
	arrays_add(&f->arrays, f->into, n);
	arrays_add(&f->arrays, f->below, n);
	arrays_add(&f->arrays, f->bucket, n);
	arrays_add(&f->arrays, f->sorted, n);
	memcpy(f->order, p->order, all * sizeof(*f->order));
	for (int i = 0; i < p->net.m; i++) {
		f->src[i] = p->net.src[p->net.in_arcs[i]];
		f->class[i] = p->orbits.arc_class[p->net.in_arcs[i]];
	}
	memset(p->load, 0, k * sizeof(*p->load));
	return f;
}

void flow_means_free(struct flow_means *f)
{
	arrays_fini(&f->arrays);
	free(f);
}

/* Labels, and the arcs of the tree that a sweep along the order finds. */
static void sweep(struct flow_means *f, const int32_t *order)
{
	const int32_t *first = f->p->net.in_first, *src = f->src;
	const float *price = f->price;
	float *label = f->label;
	int n = f->p->net.n;

	for (int v = 0; v < n; v++) {
		label[v] = HUGE_VALF;
	}
	label[order[0]] = 0;
	for (int i = 1; i < n; i++) {
		int v = order[i], into = -1;
		float best = HUGE_VALF;

		for (int j = first[v]; j < first[v + 1]; j++) {
			float at = label[src[j]] + price[j];

			into = at < best ? j : into;
			best = at < best ? at : best;
		}
		label[v] = best;
		f->into[i] = into;
	}
}

/* Sends the demands along the tree. */
static void load_tree(struct flow_means *f, const int32_t *order, const double *demand,
		      double weight)
{
	const int32_t *into = f->into, *src = f->src, *class = f->class;
	double *below = f->below, *load = f->tree_load;

	memcpy(below, demand, (size_t)f->p->net.n * sizeof(*below));
	for (int i = f->p->net.n - 1; i > 0; i--) {
		int j = into[i];

		if (j >= 0) {
			double by = below[order[i]];

			below[src[j]] += by;
			load[class[j]] += weight * by;
		}
	}
}

/* Puts nodes into the order of their labels: those of a bucket stay as they are, so that every
 * node is behind its parent. */
static void sort_nodes(struct flow_means *f, int32_t *order)
{
	int32_t start[BUCKETS + 2] = { 0 }, *bucket = f->bucket;
	int n = f->p->net.n;
	float most = 0, scale;

	for (int i = 1; i < n; i++) {
		float at = f->label[order[i]];

		most = f->into[i] >= 0 && at > most ? at : most;
	}
	scale = most > 0 ? (BUCKETS - 1) / most : 0;
	for (int i = 0; i < n; i++) {
		bucket[i] = i == 0 ? 0 : f->into[i] < 0 ? BUCKETS
						     : (int)(f->label[order[i]] * scale);
		start[bucket[i] + 1]++;
	}
	for (int b = 0; b < BUCKETS; b++) {
		start[b + 1] += start[b];
	}
	for (int i = 0; i < n; i++) {
		f->sorted[start[bucket[i]]++] = order[i];
	}
	memcpy(order, f->sorted, (size_t)n * sizeof(*order));
}

/* Moves the loads of a block to those of its trees as far as pays, the first time all the way;
 * returns what the trees cost. */
static double move_block(struct flow_means *f, double *load)
{
	struct mcf *p = f->p;
	double cost = 0, gain = 0, curve = 0, part = 1;

	for (int k = 0; k < p->orbits.n_classes; k++) {
		double by = f->tree_load[k] - load[k];

		cost += f->tree_load[k] * p->price[k];
		gain -= by * p->price[k];
		curve += by * by / p->class_cap[k];
	}
	if (f->passes > 0) {
		part = curve > 0 ? fmax(fmin(gain / (p->rho * curve), 1), 0) : 0;
	}
	for (int k = 0; k < p->orbits.n_classes; k++) {
		double by = part * (f->tree_load[k] - load[k]);

		load[k] += by;
		p->load[k] += by;
	}
	return cost;
}

double flow_means_pass(struct flow_means *f)
{
	struct mcf *p = f->p;
	size_t classes = (size_t)p->orbits.n_classes;
	double cost = 0;

	for (int b = 0, s = 0; b < BLOCKS; b++) {
		int end = (int)((int64_t)p->n_sources * (b + 1) / BLOCKS);

		if (f->passes > 0) {
			flow_price(p);
		}
		for (int i = 0; i < p->net.m; i++) {
			f->price[i] = (float)p->price[f->class[i]];
		}
		memset(f->tree_load, 0, classes * sizeof(*f->tree_load));
		for (; s < end; s++) {
			int32_t *order = f->order + (size_t)s * p->net.n;

			sweep(f, order);
			load_tree(f, order, mcf_demand_of(p, s), p->weight[s]);
			if (f->passes % 2 == 0) {
				sort_nodes(f, order);
			}
		}
		cost += move_block(f, f->load + b * classes);
	}
	f->passes++;
	return cost;
}
