/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scatter along the paths of a flow.
 *
 * The fullest cut says how many chunks a unit of capacity has to pass at least.
 * An integral flow with just that much room takes P chunks to every rank; its
 * costs make it one of fewest hops. On arcs of shortest paths a hop costs
 * nothing, so a maximum flow over these comes first and mostly is all. Then the
 * paths, with their chunks, are put into steps, in several ways, and the best is
 * kept.
 */
#include <stdlib.h>

#include "collective/tree/scatter.h"
#include "lib/base/alloc.h"
#include "lib/base/number/rat.h"

#define MAX_ROWS (INT64_C(1) << 22)	/* of one way to put chunks into steps */
#define MAX_CHUNKS 1024			/* a shard */
#define NEAR_SHARE 64			/* within 1/64 of the least T_B is near */
#define MAX_PARTS 64			/* about so many paths to a rank */
#define MAX_FINER 256			/* times as many chunks as the flow needs */

void tree_paths_fini(struct tree_paths *p)
{
	vec_fini(&p->list);
	vec_fini(&p->arcs);
}

/* ---- the flow ---- */

/* Hops that an arc adds to a shortest path; -1: it is not for flow. */
static int detour(const struct tree_net *net, int a)
{
	const struct graph_arc *arc = &net->arcs[a];

	if (arc->cap == 0 || arc->to == net->root || net->dist[arc->from] < 0) {
		return -1;
	}
	return 1 + net->dist[arc->from] - net->dist[arc->to];
}

/* A flow to be found. */
struct tree_flow {
	const struct tree_net *net;
	int chunks;		/* to every rank */
	int64_t *room;		/* n + 1: chunks over a unit of capacity, of arcs into
				 * each distance from the root on shortest paths;
				 * 0: of the other arcs, the most there is */
	int64_t *ranks, *caps;	/* n + 1: ranks at each distance, and the capacity
				 * of the arcs into it on shortest paths */
	int *edge;		/* m: the arc's edge of the network, -1 */
	struct arrays arrays;
};

/* A network with the sink n, which takes `chunks` from every rank but the root. */
static int new_network(const struct tree_net *net, int chunks, struct graph_flow **out,
		       struct err *err)
{
	int rc = 0;

	*out = graph_flow_new(net->n + 1);
	for (int v = 0; v < net->ranks && rc == 0; v++) {
		rc = v == net->root ? 0 : graph_flow_add(*out, v, net->n, chunks, 0, NULL, err);
	}
	return rc;
}

/* Adds the arcs of shortest paths, or (direct false) the others. */
static int add_arcs(struct tree_flow *w, bool direct, struct graph_flow *f, struct err *err)
{
	const struct tree_net *net = w->net;
	int rc = 0;

	for (int a = 0; a < net->m && rc == 0; a++) {
		const struct graph_arc *arc = &net->arcs[a];
		int hops = detour(net, a);

		if (hops >= 0 && direct == (hops == 0)) {
			int64_t room = w->room[direct ? net->dist[arc->to] : 0];

			rc = graph_flow_add(f, arc->from, arc->to, arc->cap * room, hops,
					    &w->edge[a], err);
		}
	}
	return rc;
}

/* Room on the arcs into each distance: `slack` eighths of what would be enough
 * for all that has to go so far or farther if it could be spread evenly, at most
 * room[0]. Arcs far from the root begin late and have to be done with less. */
static void share_room(const struct tree_flow *w, int slack)
{
	int64_t ranks = 0;

	for (int dist = w->net->n - 1; dist > 0; dist--) {
		int64_t cap = 8 * w->caps[dist], wanted;

		ranks += w->ranks[dist];
		wanted = cap > 0 ? (ranks * w->chunks * slack + cap - 1) / cap : 0;
		w->room[dist] = wanted < w->room[0] ? wanted : w->room[0];
	}
}

static void flow_init(struct tree_flow *w, int64_t room)
{
	const struct tree_net *net = w->net;

	arrays_add(&w->arrays, w->room, net->n + 1);
	arrays_add(&w->arrays, w->ranks, net->n + 1);
	arrays_add(&w->arrays, w->caps, net->n + 1);
	arrays_add(&w->arrays, w->edge, net->m);
	w->room[0] = room;
	for (int v = 0; v < net->ranks; v++) {
		w->ranks[net->dist[v]]++;
	}
	for (int a = 0; a < net->m; a++) {
		w->edge[a] = -1;
		if (detour(net, a) == 0) {
			w->caps[net->dist[net->arcs[a].to]] += net->arcs[a].cap;
		}
	}
}

/* A flow over shortest paths with w->room; *value: the chunks that it takes. f
 * is to be freed, also after an error. */
static int flow_direct(struct tree_flow *w, struct graph_flow **f, int64_t *value, struct err *err)
{
	int rc = new_network(w->net, w->chunks, f, err);

	if (rc || (rc = add_arcs(w, true, *f, err))) {
		return rc;
	}
	*value = graph_flow_max(*f, w->net->root, w->net->n, INT64_MAX);
	return 0;
}

/* flow[a]: the chunks over each arc when every rank gets `chunks` and a unit of
 * capacity passes at most `room`, which must suffice. *direct: on shortest paths
 * only. */
static int find_flow(const struct tree_net *net, int chunks, int64_t room, int64_t *flow,
		     bool *direct, struct err *err)
{
	static const int slacks[] = { 8, 9, 10, 12, 16, 24, 1 << 20 };
	struct tree_flow w = { .net = net, .chunks = chunks };
	int64_t wanted = (int64_t)(net->ranks - 1) * chunks, value = 0, more = 0;
	struct graph_flow *f = NULL;
	int rc = 0;

	flow_init(&w, room);
	for (size_t i = 0; rc == 0 && value < wanted && i < sizeof(slacks) / sizeof(*slacks); i++) {
		graph_flow_free(f);
		f = NULL;
		share_room(&w, slacks[i]);
		rc = flow_direct(&w, &f, &value, err);
	}
	*direct = value == wanted;
	if (rc == 0 && !*direct && (rc = add_arcs(&w, false, f, err)) == 0) {
		graph_flow_run(f, net->root, net->n, INT64_MAX, &more, NULL);
	}
	if (rc == 0 && value + more < wanted) {
		rc = err_set(err, WEFT_EINTERNAL, "a flow of %lld chunks fell short of the cut",
			     (long long)(value + more));
	}
	for (int a = 0; a < net->m && rc == 0; a++) {
		flow[a] = w.edge[a] < 0 ? 0 : graph_flow_on(f, w.edge[a]);
	}
	graph_flow_free(f);
	arrays_fini(&w.arrays);
	return rc;
}

/* ---- paths ---- */

/* One path that ends in v, over the fullest of the arcs that still have flow, for at
 * most `most` chunks. */
static void trace(const struct topo *t, const struct tree_net *net, int64_t *flow, int v,
		  struct tree_path *path, struct tree_paths *p)
{
	path->arcs = (int)p->arcs.n;
	while (v != net->root) {
		const int32_t *in;
		int n = topo_in(t, v, &in), best = in[0];

		for (int i = 1; i < n; i++) {
			best = flow[in[i]] > flow[best] ? in[i] : best;
		}
		path->n = flow[best] < path->n ? (int)flow[best] : path->n;
		vec_push(&p->arcs, best);
		v = net->arcs[best].from;
	}
	path->len = (int)p->arcs.n - path->arcs;
	for (int i = 0; i < path->len / 2; i++) {
		int *a = &p->arcs.v[path->arcs + i];
		int *b = &p->arcs.v[path->arcs + path->len - 1 - i], swap = *a;

		*a = *b;
		*b = swap;
	}
	for (int i = 0; i < path->len; i++) {
		flow[p->arcs.v[path->arcs + i]] -= path->n;
	}
}

/* The ranks but the root, the farthest first. */
static void sort_ranks(const struct tree_net *net, int *order)
{
	int longest = 0, n = 0;

	for (int v = 0; v < net->ranks; v++) {
		longest = net->dist[v] > longest ? net->dist[v] : longest;
	}
	for (int dist = longest; dist > 0; dist--) {
		for (int v = 0; v < net->ranks; v++) {
			if (net->dist[v] == dist) {
				order[n++] = v;
			}
		}
	}
}

/* All flow as paths. Far ranks choose first, and in small parts, so that what has
 * to leave early leaves on many arcs. */
static void find_paths(const struct topo *t, const struct tree_net *net, int64_t *flow,
		       struct tree_paths *p)
{
	int *order = x_new((size_t)net->ranks, sizeof(*order));
	int part = p->chunks > MAX_PARTS ? p->chunks / MAX_PARTS : 1;

	sort_ranks(net, order);
	for (int i = 0; i < net->ranks - 1; i++) {
		for (int done = 0; done < p->chunks;) {
			int left = p->chunks - done;
			struct tree_path path = {
				.dest = order[i], .first = done, .n = left < part ? left : part,
			};

			trace(t, net, flow, order[i], &path, p);
			vec_push(&p->list, path);
			done += path.n;
			p->longest = path.len > p->longest ? path.len : p->longest;
			p->hops += (int64_t)path.len * path.n;
		}
	}
	free(order);
}

/* Paths that pass at most `room` chunks a unit of capacity, as many as the
 * fullest cut num/den asks for when a shard has `chunks`. */
static int make_paths(const struct topo *t, const struct tree_net *net, const bool *only,
		      int chunks, int64_t num, int64_t den, struct tree_paths *p, struct err *err)
{
	int64_t *flow = x_new((size_t)net->m + 1, sizeof(*flow));
	struct tree_net part = *net;
	int rc;

	*p = (struct tree_paths){ .chunks = chunks, .room = (num * chunks + den - 1) / den };
	part.arcs = x_alloc((size_t)net->m + 1, sizeof(*part.arcs));
	for (int a = 0; a < net->m; a++) {
		part.arcs[a] = net->arcs[a];
		part.arcs[a].cap = only && !only[a] ? 0 : net->arcs[a].cap;
	}
	rc = find_flow(&part, chunks, p->room, flow, &p->direct, err);
	if (rc == 0) {
		find_paths(t, net, flow, p);
	}
	free(part.arcs);
	free(flow);
	return rc;
}

/* ---- candidates ---- */

/* The best schedule so far. */
struct tree_best {
	const struct topo *t;
	const struct tree_net *net;
	const struct coll_tree_options *opt;
	struct coll_sched *sched;
	struct coll_report report;
	int64_t time_ns;	/* with a cost */
	mpq_t least;		/* shard times that no schedule is below */
	mpq_t near;		/* a little more */
	bool is_near;		/* one had as little */
};

static bool is_better(const struct tree_best *b, const struct coll_report *r, int64_t time_ns)
{
	int cmp = mpq_cmp(r->bandwidth_factor, b->report.bandwidth_factor);

	if (!b->sched) {
		return true;
	}
	if (b->opt->cost && time_ns != b->time_ns) {
		return time_ns < b->time_ns;
	}
	return cmp ? cmp < 0 : r->steps < b->report.steps;
}

/* Takes s over. */
static int offer(struct tree_best *b, struct coll_sched *s, struct err *err)
{
	struct coll_report r;
	int64_t time_ns = 0;
	int rc;

	coll_report_init(&r);
	rc = coll_prove(s, &r, err);
	if (rc == 0 && b->opt->cost) {
		rc = coll_time(s, &r, b->opt->cost, &time_ns, NULL, err);
	}
	b->is_near |= rc == 0 && mpq_cmp(r.shard_times, b->near) <= 0;
	if (rc == 0 && is_better(b, &r, time_ns)) {
		struct coll_report worse = b->report;
		struct coll_sched *old = b->sched;

		b->report = r;
		b->sched = s;
		b->time_ns = time_ns;
		r = worse;
		s = old;
	}
	coll_report_fini(&r);
	coll_free(s);
	return rc;
}

/* quota 0: as few steps as the longest path has. */
static int try_steps(struct tree_best *b, const struct tree_paths *p, enum tree_order order,
		     int64_t quota, struct err *err)
{
	struct coll_sched *s = NULL;
	struct topo *copy = NULL;
	int rc;

	if (quota > 0 && p->room / quota + p->longest >= COLL_MAX_STEPS) {
		return 0;
	}
	(void)((rc = topo_copy(b->t, &copy, err)) ||
	       (rc = coll_new(COLL_SCATTER, copy, p->chunks, 0, b->net->root, &s, err)) ||
	       (rc = tree_add_steps(b->net, p, order, quota, s, err)) ||
		       (rc = coll_finish(s, err)));
	if (rc) {
		coll_free(s);
		return rc;
	}
	return offer(b, s, err);
}

/* What a shard to each rank needs at least, over all arcs or only some. */
static int min_time(const struct tree_net *net, const bool *only, struct graph_time *time,
		      struct err *err)
{
	struct graph_arc *arcs = x_alloc((size_t)net->m + 1, sizeof(*arcs));
	int rc;

	for (int a = 0; a < net->m; a++) {
		arcs[a] = net->arcs[a];
		arcs[a].cap = only && !only[a] ? 0 : arcs[a].cap;
	}
	rc = graph_scatter_time(net->n, arcs, net->m, net->root, net->ranks, time, err);
	free(arcs);
	return rc;
}

/* All arcs, or only some, with so many times the chunks that whole numbers need.
 * *direct: what was found uses shortest paths only. */
static int try_paths(struct tree_best *b, const bool *only, int finer, bool *direct,
		     struct err *err)
{
	struct tree_paths p = { 0 };
	struct graph_time time;
	int64_t chunks, most;
	int rc = min_time(b->net, only, &time, err);

	if (rc) {
		return rc;
	}
	if (!only) {
		rat_set(b->least, time.num, time.den);
		mpz_mul_si(mpq_denref(b->least), mpq_denref(b->least), b->net->unit);
		mpq_canonicalize(b->least);
		rat_set(b->near, NEAR_SHARE + 1, NEAR_SHARE);
		mpq_mul(b->near, b->near, b->least);
	}
	chunks = time.den < MAX_CHUNKS / finer ? time.den * finer : MAX_CHUNKS;
	if (finer > 1 && chunks * b->net->ranks > MAX_ROWS) {
		return 0;
	}
	rc = make_paths(b->t, b->net, only, (int)chunks, time.num, time.den, &p, err);
	*direct = p.direct;
	if (rc || (finer > 1 && p.hops > MAX_ROWS)) {
		goto out;
	}
	rc = try_steps(b, &p, TREE_FARTHEST, 0, err);
	/* A larger quota of smaller chunks was tried as a smaller one of larger. */
	most = finer > 1 ? 2 : p.room - 1;
	for (int64_t quota = 1; rc == 0 && (quota == 1 || quota <= most); quota *= 2) {
		rc = try_steps(b, &p, TREE_FARTHEST, quota, err);
		if (rc == 0 && !b->is_near) {
			rc = try_steps(b, &p, TREE_IN_TURN, quota, err);
		}
	}
out:
	tree_paths_fini(&p);
	return rc;
}

/* All arcs, then shortest paths only where that makes a difference, and both
 * again with more chunks until one is near the bound. */
static int try_all(struct tree_best *b, const bool *only, struct err *err)
{
	bool direct, other;
	int rc = try_paths(b, NULL, 1, &direct, err);

	for (int finer = 1; finer <= MAX_FINER && rc == 0; finer *= 4) {
		if (finer > 1 && b->is_near) {
			break;
		}
		if (finer > 1) {
			rc = try_paths(b, NULL, finer, &other, err);
		}
		if (rc == 0 && !direct) {
			rc = try_paths(b, only, finer, &other, err);
		}
	}
	return rc;
}

int tree_scatter(const struct topo *t, const struct tree_net *net,
		 const struct coll_tree_options *opt, struct coll_sched **out, struct err *err)
{
	struct tree_best b = { .t = t, .net = net, .opt = opt };
	bool *only = x_new((size_t)net->m + 1, sizeof(*only));
	int rc = 0;

	mpq_inits(b.least, b.near, NULL);
	coll_report_init(&b.report);
	for (int a = 0; a < net->m && rc == 0; a++) {
		only[a] = detour(net, a) == 0;
	}
	if (rc == 0) {
		rc = try_all(&b, only, err);
	}
	coll_report_fini(&b.report);
	mpq_clears(b.least, b.near, NULL);
	free(only);
	*out = b.sched;
	return rc;
}
