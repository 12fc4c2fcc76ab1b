/* One path of each pair and the loads they make; see unsplittable_private.h. */
#include "collective/flow/unsplittable_private.h"

#include <math.h>
#include <stdlib.h>

/* Share of a weight that is chance. */
#define NOISE (1e-4 / 1024)

void single_routes_fini(struct single_routes *r)
{
	free(r->arcs);
	free(r->len);
	free(r->load);
	free(r->weight);
	free(r->dist);
	free(r->parent);
	free(r->queue);
	free(r->queued);
}

int single_routes_init(struct single_routes *r, const struct flow_net *net,
		       int longest)
{
	size_t n = (size_t)net->n, m = (size_t)net->m + 1;

	r->net = net;
	r->longest = longest;
	r->arcs = malloc(n * n * (size_t)r->longest * sizeof(*r->arcs));
	r->len = calloc(n * n, sizeof(*r->len));
	r->load = calloc(m, sizeof(*r->load));
	r->weight = calloc(m, sizeof(*r->weight));
	r->dist = malloc(n * sizeof(*r->dist));
	r->parent = malloc(n * sizeof(*r->parent));
	r->queue = malloc((n + 1) * sizeof(*r->queue));
	r->queued = calloc(n, sizeof(*r->queued));
	return r->arcs && r->len && r->load && r->weight && r->dist &&
	       r->parent && r->queue && r->queued ? 0 : WEFT_ENOMEM;
}

static double use_of(const struct single_routes *r, int a)
{
	return (double)r->load[a] / (double)r->net->units[a];
}

double single_congestion(const struct single_routes *r)
{
	double most = 0;

	for (int a = 0; a < r->net->m; a++) {
		most = fmax(most, use_of(r, a));
	}
	return most;
}

/* By how much one path more raises the function of the loads, a little of it
 * by chance: so that the search walks where nothing is better. */
static void weigh(struct single_routes *r, int a)
{
	double unit = 1 / (double)r->net->units[a], use = use_of(r, a);

	if (r->flat) {
		r->weight[a] = (double)r->net->n * r->net->n + use;
	} else {
		r->weight[a] = (pow((use + unit) / r->scale, r->power) -
				pow(use / r->scale, r->power)) *
			       (1 + NOISE * (double)rng_below(&r->rng, 1024));
	}
}

void single_weigh_all(struct single_routes *r)
{
	for (int a = 0; a < r->net->m; a++) {
		weigh(r, a);
	}
}

void single_count(struct single_routes *r, size_t pair, int by)
{
	const int32_t *arcs = single_arcs_of(r, pair);

	for (int i = 0; i < r->len[pair]; i++) {
		r->load[arcs[i]] += by;
		weigh(r, arcs[i]);
	}
}

void single_measure(struct single_routes *r, int s)
{
	const struct flow_net *net = r->net;
	int head = 0, tail = 0, size = net->n + 1;

	for (int v = 0; v < net->n; v++) {
		r->dist[v] = HUGE_VAL;
	}
	r->dist[s] = 0;
	r->parent[s] = -1;
	r->queue[tail++] = s;
	while (head != tail) {
		int u = r->queue[head];

		head = head + 1 == size ? 0 : head + 1;
		r->queued[u] = false;
		for (int a = net->out_first[u]; a < net->out_first[u + 1];
		     a++) {
			int v = net->dst[a];
			double d = r->dist[u] + r->weight[a];

			/* Rounding alone must not close a cycle. */
			if (d >= r->dist[v] * (1 - 1e-12)) {
				continue;
			}
			r->dist[v] = d;
			r->parent[v] = a;
			if (!r->queued[v]) {
				r->queued[v] = true;
				r->queue[tail] = v;
				tail = tail + 1 == size ? 0 : tail + 1;
			}
		}
	}
}

bool single_take(struct single_routes *r, size_t pair, int v)
{
	int32_t *arcs = single_arcs_of(r, pair);
	int n = 0;

	for (int u = v; r->parent[u] >= 0; u = r->net->src[r->parent[u]]) {
		if (++n > r->longest) {
			return false;
		}
	}
	r->len[pair] = 0;
	for (int u = v; r->parent[u] >= 0; u = r->net->src[r->parent[u]]) {
		arcs[r->len[pair]++] = r->parent[u];
	}
	return true;
}

double single_cost(const struct single_routes *r, size_t pair)
{
	double sum = 0;

	for (int i = 0; i < r->len[pair]; i++) {
		sum += r->weight[single_arcs_of(r, pair)[i]];
	}
	return sum;
}
