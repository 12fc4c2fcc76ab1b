/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The search's tables. Arcs get a base cost that grows with their price in the
 * bound, as lightpaths that do not need a priced arc had better leave it to
 * those that do. The distances at those costs, and the least losses, from all
 * nodes to every destination are what A* is guided by; a demand without a path,
 * or with none within the budget, is found here. Each lightpath is a unit.
 */
#include <limits.h>
#include <stdlib.h>

#include "lib/base/alloc.h"
#include "rwa/mesh/private.h"

/* ---- costs and plain distances ---- */

/* Arcs that the bound prices high are expensive, as all needs them. */
static void set_costs(struct mesh_search *s, const int64_t *prices)
{
	double sum = 0, mean;

	for (size_t e = 0; e < s->m->arcs.n; e++) {
		sum += (double)prices[e];
	}
	mean = sum > 0 ? sum / (double)s->m->arcs.n : 1;
	for (size_t e = 0; e < s->m->arcs.n; e++) {
		double expense = (double)prices[e] / mean;

		s->cost[e] = (int32_t)(COST_BASE * (1 + (expense < 8 ? expense : 8)));
	}
}

/* Improves both distances of the nodes before v; again[u]: u improved. */
static void relax_in(const struct mesh_search *s, int32_t v, const bool *open,
		     int32_t *dist, int64_t *min, int32_t dst, bool *again)
{
	for (int32_t k = s->in.first[v]; k < s->in.first[v + 1]; k++) {
		int32_t e = s->in.arc[k], u = s->m->arcs.v[e].src;
		int64_t pass = v == dst ? 0 : s->m->nodes.v[v].pass_mdb;

		if (!open[e]) {
			continue;
		}
		if (dist[v] < INT_MAX && dist[v] + s->cost[e] < dist[u]) {
			dist[u] = dist[v] + s->cost[e];
			again[u] = true;
		}
		if (min[v] < INT64_MAX && min[v] + pass + s->m->arcs.v[e].loss_mdb < min[u]) {
			min[u] = min[v] + pass + s->m->arcs.v[e].loss_mdb;
			again[u] = true;
		}
	}
}

/* Both distances to dst, by rounds of relaxation. */
static void distances_to(struct mesh_search *s, int32_t dst, const bool *open, bool *again)
{
	int32_t n = (int32_t)s->m->nodes.n;
	bool any = true;

	arrays_add(&s->arrays, s->dist[dst], n);
	arrays_add(&s->arrays, s->min[dst], n);
	for (int32_t v = 0; v < n; v++) {
		s->dist[dst][v] = INT_MAX;
		s->min[dst][v] = INT64_MAX;
		again[v] = false;
	}
	s->dist[dst][dst] = 0;
	s->min[dst][dst] = 0;
	again[dst] = true;
	while (any) {
		any = false;
		for (int32_t v = 0; v < n; v++) {
			if (again[v]) {
				again[v] = false;
				any = true;
				relax_in(s, v, open, s->dist[dst], s->min[dst], dst, again);
			}
		}
	}
}

/* Distances to every destination of a demand. O(destinations *
 * nodes * arcs) at worst. */
static void all_distances(struct mesh_search *s)
{
	size_t n = s->m->nodes.n;
	bool *again = x_new(n + 1, sizeof(*again));
	int32_t *fibres = x_new(s->m->arcs.n + 1, sizeof(*fibres));
	bool *open = x_new(s->m->arcs.n + 1, sizeof(*open));

	mesh_open_fibres(s->m, fibres);
	for (size_t e = 0; e < s->m->arcs.n; e++) {
		open[e] = fibres[e] > 0;
	}
	for (size_t i = 0; i < s->m->demands.n; i++) {
		int32_t dst = s->m->demands.v[i].dst;

		if (!s->dist[dst]) {
			distances_to(s, dst, open, again);
		}
	}
	free(again);
	free(fibres);
	free(open);
}

/* Every demand must have a path, within the loss budget. */
static int check_paths(const struct mesh_search *s, struct err *err)
{
	const struct rwa_mesh *m = s->m;
	int64_t budget = m->budget_mdb == RWA_MESH_NO_LIMIT
				 ? INT64_MAX
				 : m->budget_mdb - m->add_mdb - m->drop_mdb;

	for (size_t i = 0; i < m->demands.n; i++) {
		const struct rwa_mesh_demand *d = &m->demands.v[i];
		bool path = s->dist[d->dst][d->src] < INT_MAX;
		char from[16], to[16];

		if (!path || s->min[d->dst][d->src] > budget) {
			return err_set(err, WEFT_EINFEASIBLE,
				"demand %zu: no path leads from %s to %s%s", i,
				rwa_mesh_node_name(m, d->src, from,
						   sizeof(from)),
				rwa_mesh_node_name(m, d->dst, to, sizeof(to)),
				path ? " within the loss budget" : "");
		}
	}
	return 0;
}

/* ---- units ---- */

/* By distance, then by demand, which keeps pairs together. */
static int by_units(const void *a, const void *b, void *arg)
{
	const struct mesh_search *s = arg;
	const struct search_unit *x = a, *y = b;
	const struct rwa_mesh_demand *p = &s->m->demands.v[x->demand];
	const struct rwa_mesh_demand *q = &s->m->demands.v[y->demand];
	int32_t d = s->dist[p->dst][p->src], e = s->dist[q->dst][q->src];

	if (d != e) {
		return d < e ? -1 : 1;
	}
	return x->demand < y->demand ? -1 : x->demand > y->demand;
}

/* How many lightpaths of a demand its ends can still hold. */
static int32_t room_at_ends(const struct mesh_search *s, int64_t *adds,
			    int64_t *drops, const struct rwa_mesh_demand *d)
{
	const struct rwa_mesh_node *src = &s->m->nodes.v[d->src];
	const struct rwa_mesh_node *dst = &s->m->nodes.v[d->dst];
	int64_t n = d->count, each = d->protect ? 2 : 1;

	if (src->add_limit >= 0 && (src->add_limit - adds[d->src]) / each < n) {
		n = (src->add_limit - adds[d->src]) / each;
	}
	if (dst->drop_limit >= 0 && (dst->drop_limit - drops[d->dst]) / each < n) {
		n = (dst->drop_limit - drops[d->dst]) / each;
	}
	adds[d->src] += n * each;
	drops[d->dst] += n * each;
	return (int32_t)(n * each);
}

/* One unit for each lightpath, the longest last, where waiting begins. */
static void make_units(struct mesh_search *s)
{
	size_t n = (size_t)s->m->lightpaths + 1, nodes = s->m->nodes.n;
	int64_t *ends = x_new(2 * nodes, sizeof(*ends));

	arrays_add(&s->arrays, s->units, n);
	arrays_add(&s->arrays, s->wait, n);
	for (size_t i = 0; i < s->m->demands.n; i++) {
		int32_t count = room_at_ends(s, ends, ends + nodes, &s->m->demands.v[i]);

		for (int32_t k = 0; k < count; k++) {
			s->units[s->n_units++] = (struct search_unit){
				.demand = (int32_t)i,
			};
		}
	}
	qsort_r(s->units, (size_t)s->n_units, sizeof(*s->units), by_units, s);
	for (int32_t i = 0; i < s->n_units; i++) {
		struct search_unit *u = &s->units[i];

		u->partner = -1;
		if (i && s->m->demands.v[u->demand].protect &&
		    u[-1].demand == u->demand && u[-1].partner < 0) {
			u->partner = i - 1;
			u[-1].partner = i;
		}
	}
	free(ends);
}

/* ---- beginning and end ---- */

int search_new(const struct rwa_mesh *m, const int64_t *prices,
	       const struct mesh_routes *routes, uint64_t seed, bool fit, struct mesh_search **out,
		       struct err *err)
{
	struct mesh_search *s = x_new(1, sizeof(*s));
	size_t n = m->nodes.n, e = m->arcs.n + 1;
	int rc;

	*out = NULL;
	s->m = m;
	s->fit = fit;
	rng_seed(&s->rng, seed);
	arrays_add(&s->arrays, s->cost, e);
	arrays_add(&s->arrays, s->slot, e);
	arrays_add(&s->arrays, s->dist, n);
	arrays_add(&s->arrays, s->min, n);
	arrays_add(&s->arrays, s->changed, n);
	arrays_add(&s->arrays, s->link, e);
	arrays_add(&s->arrays, s->risk, e);
	arrays_add(&s->arrays, s->trouble, m->demands.n + 1);
	s->active = x_new(1, sizeof(*s->active));
	mesh_links(m, s->link);
	adjacency_init(&s->out, m, false);
	adjacency_init(&s->in, m, true);
	set_costs(s, prices);
	all_distances(s);
	rc = check_paths(s, err);
	if (rc) {
		search_free(s);
		return rc;
	}
	make_units(s);
	search_make_pools(s, routes);
	*out = s;
	return 0;
}

int64_t search_units(const struct mesh_search *s)
{
	return s->n_units;
}

void search_free(struct mesh_search *s)
{
	if (!s) {
		return;
	}
	for (int32_t i = 0; i < s->n_units; i++) {
		free(s->units[i].hop);
	}
	rwa_assignment_fini(&s->best);
	adjacency_fini(&s->out);
	adjacency_fini(&s->in);
	search_free_pools(s);
	free(s->owner);
	free(s->toll);
	free(s->sum);
	free(s->last);
	free(s->free);
	free(s->may);
	free(s->labels);
	free(s->active);
	free(s->tune);
	vec_fini(&s->heap);
	arrays_fini(&s->arrays);
	free(s);
}
