/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What to aim for once the number of channels is known: the longest loss as
 * short as possible; and the bound on lightpaths moved, which moved.c meets or
 * not.
 *
 * By the certificate's prices all lightpaths together pay at most what the
 * channels hold, and each at least its cheapest path. One that stays pays its
 * present path. So only so many can stay as the difference pays for, those
 * first whose path is hardly more expensive than the cheapest.
 */
#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/order.h"
#include "lib/graph/graph.h"
#include "rwa/mesh/private.h"

#define EFFORT_FIRST 20		/* lightpaths placed, for each there is */
#define EFFORT_FIRST_LEAST 4000

/* ---- bound ---- */

/* Paths of least cost: of arcs, and, when it is their loss, of nodes passed. */
struct min_paths {
	const struct rwa_mesh *m;
	const int64_t *prices;	/* of arcs; NULL: their loss */
	struct mesh_adjacency out;
	int64_t *dist;
	struct graph_queue queue;
};

/* Cost of an arc on a path from src: its price, or its loss and that of
 * passing the node before it. */
static int64_t step_cost(const struct min_paths *w, int32_t src, int32_t arc)
{
	const struct rwa_mesh_arc *a = &w->m->arcs.v[arc];

	if (w->prices) {
		return w->prices[arc];
	}
	return a->loss_mdb +
	       (a->src == src ? 0 : w->m->nodes.v[a->src].pass_mdb);
}

/* Distances from one node by Bellman-Ford with a queue; INT64_MAX where no
 * path leads. O(nodes * arcs). */
static void search_from_node(struct min_paths *w, int32_t src)
{
	int32_t v;

	for (size_t u = 0; u < w->m->nodes.n; u++) {
		w->dist[u] = INT64_MAX;
	}
	w->dist[src] = 0;
	graph_queue_put(&w->queue, src);
	while ((v = graph_queue_take(&w->queue)) >= 0) {
		for (int32_t k = w->out.first[v]; k < w->out.first[v + 1]; k++) {
			int32_t e = w->out.arc[k], to = w->m->arcs.v[e].dst;
			int64_t d = w->dist[v] + step_cost(w, src, e);

			if (d < w->dist[to]) {
				w->dist[to] = d;
				graph_queue_put(&w->queue, to);
			}
		}
	}
}

/* Cost of the cheapest path of every demand, INT64_MAX where there is none. */
static void cheapest_paths(const struct rwa_mesh *m, const int64_t *prices, int64_t *path)
{
	struct min_paths w = { .m = m, .prices = prices };

	w.dist = x_new(m->nodes.n + 1, sizeof(*w.dist));
	adjacency_init(&w.out, m, false);
	graph_queue_init(&w.queue, (int)m->nodes.n);
	for (int32_t v = 0; v < (int32_t)m->nodes.n; v++) {
		bool any = false;

		for (size_t d = 0; d < m->demands.n; d++) {
			if (m->demands.v[d].src == v) {
				if (!any) {
					search_from_node(&w, v);
				}
				any = true;
				path[d] = w.dist[m->demands.v[d].dst];
			}
		}
	}
	adjacency_fini(&w.out);
	free(w.dist);
	graph_queue_fini(&w.queue);
}

static int ascending(const void *a, const void *b)
{
	const int64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

/* What each path of `b` that fits pays beyond the cheapest path, for every demand
 * no more of them than it wants, the least first. Returns how many. */
static size_t excesses(const struct rwa_mesh *m, const struct rwa_assignment *b, const bool *fits,
		       const int64_t *prices, const int64_t *path, int64_t *excess)
{
	size_t n = 0, max;

	for (size_t i = 0, k; i < b->paths.n; i = k) {
		size_t first = n;

		for (k = i; k < b->paths.n && b->paths.v[k].demand == b->paths.v[i].demand; k++) {
			const struct rwa_path *p = &b->paths.v[k];

			excess[n] = -path[p->demand];
			for (int32_t h = 0; h < p->hops; h++) {
				excess[n] += prices[b->hops.v[p->first + h].arc];
			}
			n += fits[k];
		}
		qsort(excess + first, n - first, sizeof(*excess), ascending);
		max = (size_t)mesh_wanted(&m->demands.v[b->paths.v[i].demand]);
		n = n - first > max ? first + max : n;
	}
	qsort(excess, n, sizeof(*excess), ascending);
	return n;
}

/* Lightpaths that the demands of both have. */
static int64_t count_common(const struct rwa_mesh *m, const struct rwa_assignment *b)
{
	int64_t n = 0;

	for (size_t i = 0, k; i < b->paths.n; i = k) {
		int64_t wanted = mesh_wanted(&m->demands.v[b->paths.v[i].demand]);

		for (k = i; k < b->paths.n && b->paths.v[k].demand == b->paths.v[i].demand;) {
			k++;
		}
		n += (int64_t)(k - i) < wanted ? (int64_t)(k - i) : wanted;
	}
	return n;
}

/* The bound at the head of this file: slack is what the channels hold
 * beyond the cheapest paths of all demands, and is spent on the excesses of
 * those that stay, the least first. When not all are served, no one knows
 * whose cheapest paths are paid, and the prices say nothing. */
void mesh_bound_moved(const struct rwa_mesh *m, const struct rwa_assignment *before,
		      const bool *fits, struct rwa_mesh_result *res, int64_t *common)
{
	const struct rwa_certificate *c = &res->certificate;
	int64_t *path = x_new(m->demands.n + 1, sizeof(*path));
	int64_t *excess = x_new(before->paths.n + 1, sizeof(*excess));
	int64_t slack = c->denominator * res->channels;
	size_t n, stay = 0;

	cheapest_paths(m, c->prices, path);
	*common = count_common(m, before);
	for (size_t d = 0; d < m->demands.n; d++) {
		slack -= path[d] * mesh_wanted(&m->demands.v[d]);
	}
	/* No one knows who is served. */
	slack = (int64_t)res->assignment.paths.n < m->lightpaths ? INT64_MAX : slack;
	n = excesses(m, before, fits, c->prices, path, excess);
	for (; stay < n && excess[stay] <= slack; stay++) {
		slack -= excess[stay];
	}
	res->moved_bound = *common - (int64_t)stay;
	free(path);
	free(excess);
}

/* ---- loss ---- */

/* The largest loss of any lightpath, 0 when there is none. */
static int64_t longest_loss(const struct rwa_mesh *m, const struct rwa_assignment *a)
{
	int64_t longest = 0;

	for (size_t i = 0; i < a->paths.n; i++) {
		const struct rwa_path *p = &a->paths.v[i];
		int64_t loss = rwa_mesh_loss_mdb(m, a->hops.v + p->first, p->hops);

		longest = loss > longest ? loss : longest;
	}
	return longest;
}

/* Loss of a demand's best path, without add and drop, and its lightpaths. */
struct demand_loss {
	int64_t loss;
	int64_t count;
};

ORDER_BY(by_loss, struct demand_loss, loss)

/* Of as many lightpaths one at least loses this much: the least losses of all
 * demands, the shortest first. */
static void bound_loss(const struct rwa_mesh *m, int64_t lightpaths, int64_t *bound)
{
	size_t n = m->demands.n;
	struct demand_loss *v = x_new(n + 1, sizeof(*v));
	int64_t *path = x_new(n + 1, sizeof(*path));

	cheapest_paths(m, NULL, path);
	*bound = 0;
	for (size_t d = 0; d < n; d++) {
		const struct rwa_mesh_demand *x = &m->demands.v[d];

		v[d] = (struct demand_loss){
			path[d], mesh_wanted(x),
		};
	}
	qsort(v, n, sizeof(*v), by_loss);
	for (size_t d = 0; d < n && lightpaths > 0; d++) {
		lightpaths -= v[d].count;
		*bound = v[d].loss + m->add_mdb + m->drop_mdb;
	}
	free(v);
	free(path);
}

/* The search under a budget, at the channels of `res`. *done: as many are
 * served, and the answer has been taken over. */
static int within(const struct rwa_mesh *m, int64_t budget,
		  const struct rwa_mesh_options *opt, const struct mesh_stop *stop,
		  struct rwa_mesh_result *res, bool *done, struct err *err)
{
	struct rwa_mesh trial = *m;	/* borrows everything */
	int64_t effort = m->lightpaths * EFFORT_FIRST, served = 0;
	struct rwa_assignment now = { 0 };
	struct mesh_search *s;
	int rc;

	*done = false;
	trial.budget_mdb = budget;
	effort = effort < EFFORT_FIRST_LEAST ? EFFORT_FIRST_LEAST : effort;
	rc = search_new(&trial, res->certificate.prices, NULL, opt->seed, opt->channels > 0, &s,
			err);
	if (rc == WEFT_EINFEASIBLE) {
		return 0;	/* some demand has no path that short */
	}
	if (!rc && !(rc = search_set_channels(s, res->channels, err))) {
		served = search_run(s, (int64_t)res->assignment.paths.n, effort, stop);
	}
	if (!rc && served == (int64_t)res->assignment.paths.n) {
		search_best(s, &now);
	}
	if (!rc && now.paths.n == res->assignment.paths.n &&
	    rwa_mesh_check(&trial, &now, res->channels, false, NULL) == 0) {
		rwa_assignment_fini(&res->assignment);
		res->assignment = now;
		now = (struct rwa_assignment){ 0 };
		*done = true;
	}
	rwa_assignment_fini(&now);
	search_free(s);
	return rc;
}

/* Bisection between the bound and the longest loss so far. A budget that
 * the search can keep lowers the top to what was reached; any other raises
 * the bottom, although a search that fails proves nothing: loss_bound_mdb
 * stays what bound_loss() says. */
int mesh_min_max_loss(const struct rwa_mesh *m, const struct rwa_mesh_options *opt,
		      const struct mesh_stop *stop, struct rwa_mesh_result *res, struct err *err)
{
	int64_t low = 0;
	int rc = 0;

	bound_loss(m, (int64_t)res->assignment.paths.n, &low);
	res->loss_bound_mdb = low;
	res->loss_mdb = longest_loss(m, &res->assignment);
	while (!rc && low < res->loss_mdb && !stop_now(stop)) {
		int64_t budget = low + (res->loss_mdb - low) / 2;
		bool done;

		rc = within(m, budget, opt, stop, res, &done, err);
		if (done) {
			res->loss_mdb = longest_loss(m, &res->assignment);
		} else {
			low = budget + 1;
		}
	}
	return rc;
}

