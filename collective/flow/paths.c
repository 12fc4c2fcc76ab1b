/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cutting flows into paths, and paths into chunks.
 *
 * From the flow of one source the widest path to a sink is taken again and
 * again (Dijkstra's rule with widths for lengths, of equal widths the one with
 * fewer hops), until the sink has its unit. Sources are independent: they are
 * cut on several threads, and what each found is put together in the order of
 * sources, so that the number of threads changes nothing.
 *
 * Chunks: every path gets the whole chunks that its weight stands for, the
 * rest goes where it raises the congestion least, and single chunks change
 * between the paths of a pair as long as that helps.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "collective/flow/private.h"
#include "lib/base/alloc.h"
#include "lib/base/heap.h"
#include "lib/base/parallel.h"

/* What is left of a demand below this part of it is rounding. */
#define ROUNDING 1e-7
/* Rounds of exchanging single chunks. */
#define EXCHANGES 24

void flow_paths_fini(struct flow_paths *paths)
{
	vec_fini(&paths->v);
	vec_fini(&paths->arcs);
}

/* ---- widest paths ---- */

/* Node by width of its best path to the sink, then by hops of that path. */
struct width_entry {
	double width;
	int32_t hops, node;
};

HEAP(entry_heap, struct width_entry);

struct widest {
	const struct flow_net *net;
	double *width;		/* n; of nodes with the present stamp */
	int32_t *hops;		/* n */
	int32_t *next;		/* n: arc towards the sink */
	uint32_t *seen;		/* n: stamps */
	uint32_t stamp;
	struct entry_heap heap;	/* room for m + 1; removed lazily */
	struct arrays arrays;
};

static inline bool before(struct width_entry a, struct width_entry b)
{
	return a.width > b.width || (a.width == b.width && a.hops < b.hops);
}

HEAP_FUNCTIONS(entry_heap, struct width_entry, before)

/* Paths over one arc to a node whose best path is e. */
static void extend(struct widest *w, struct width_entry e, int a, double flow)
{
	struct width_entry f = { fmin(e.width, flow), e.hops + 1, w->net->src[a] };
	int u = f.node;

	if (w->seen[u] == w->stamp &&
	    !before(f, (struct width_entry){ w->width[u], w->hops[u], u })) {
		return;
	}
	w->seen[u] = w->stamp;
	w->width[u] = f.width;
	w->hops[u] = f.hops;
	w->next[u] = a;
	entry_heap_add(&w->heap, f);
}

/*
 * Width, at most `enough`, of the widest path from s to t over arcs with more
 * flow than `empty`, the shortest of these; w->next leads along it. Negative:
 * no path. Searched from the sink: what flows to it comes from few nodes.
 */
static double find_widest(struct widest *w, const double *flow, int s, int t,
			  double enough, double empty)
{
	const struct flow_net *net = w->net;

	w->stamp++;
	w->heap.n = 0;
	w->seen[t] = w->stamp;
	w->width[t] = enough;
	w->hops[t] = 0;
	entry_heap_add(&w->heap, (struct width_entry){ enough, 0, t });
	while (w->heap.n > 0) {
		struct width_entry e = entry_heap_pop(&w->heap);
		int v = e.node;

		if (v == s) {
			return e.width;
		}
		if (before((struct width_entry){ w->width[v], w->hops[v], v }, e)) {
			continue;
		}
		for (int i = net->in_first[v]; i < net->in_first[v + 1]; i++) {
			int a = net->in_arcs[i];

			if (flow[a] > empty) {
				extend(w, e, a, flow[a]);
			}
		}
	}
	return -1;
}

/* Takes the path found off the flow and keeps it. */
static void keep_path(struct widest *w, double *flow, int s, int t,
		      double weight, struct flow_paths *out)
{
	const struct flow_net *net = w->net;
	int64_t first = (int64_t)out->arcs.n;

	for (int v = s; v != t; v = net->dst[w->next[v]]) {
		int a = w->next[v];

		vec_push(&out->arcs, a);
		flow[a] = fmax(flow[a] - weight, 0);
	}
	vec_push(&out->v, (struct flow_path){
		s * net->n + t, 0, first,
		(int32_t)((int64_t)out->arcs.n - first), 0, weight });
}

/* Paths of one pair: all of its demand, but for crumbs. Each path but the last
 * empties an arc, so a source has at most sinks plus arcs of them. */
static void cut_pair(struct widest *w, double *flow, int s, int t, double demand,
		     struct flow_paths *out)
{
	size_t first = out->v.n;
	double left = demand, crumb = demand * ROUNDING;

	while (left > crumb) {
		double width = find_widest(w, flow, s, t, left, crumb);

		if (width < 0 && out->v.n > first) {
			break;
		}
		if (width < 0) {
			/* Rounding left nothing of its flow: any path. */
			find_widest(w, flow, s, t, left, -1);
			width = left;
		}
		keep_path(w, flow, s, t, width, out);
		left -= width;
	}
	for (size_t i = first; i < out->v.n; i++) {
		out->v.v[i].weight /= demand - left;
	}
}

static void cut_source(struct widest *w, double *flow, int s, const double *demand,
		       struct flow_paths *out)
{
	for (int t = 0; t < w->net->n; t++) {
		if (t != s && demand[t] > 0) {
			cut_pair(w, flow, s, t, demand[t], out);
		}
	}
}

/* One path to each sink, along the tree. */
static void take_tree(const struct mcf *p, int i, struct flow_paths *out)
{
	const struct flow_net *net = &p->net;
	const int32_t *parent = mcf_parent_of(p, i);
	int s = p->source[i];

	for (int t = 0; t < net->n; t++) {
		int64_t first = (int64_t)out->arcs.n;
		int n = 0;

		if (t == s || !(mcf_demand_of(p, i)[t] > 0)) {
			continue;
		}
		for (int v = t; v != s; v = net->src[parent[v]]) {
			n++;
		}
		vec_reserve(&out->arcs, (size_t)n);
		vec_push(&out->v, (struct flow_path){
			    s * net->n + t, 0, first, n, 0, 1 });
		out->arcs.n += (size_t)n;
		for (int v = t; v != s; v = net->src[parent[v]]) {
			out->arcs.v[first + --n] = parent[v];
		}
	}
}

static void widest_fini(struct widest *w)
{
	arrays_fini(&w->arrays);
	vec_fini(&w->heap);
}

static void widest_init(struct widest *w, const struct flow_net *net)
{
	size_t n = (size_t)net->n, m = (size_t)net->m;

	*w = (struct widest){ .net = net };
	arrays_add(&w->arrays, w->width, n);
	arrays_add(&w->arrays, w->hops, n);
	arrays_add(&w->arrays, w->next, n);
	arrays_add(&w->arrays, w->seen, n);
	vec_reserve(&w->heap, m + 1);
}

/* Consecutive sources, on one thread. */
struct path_cut {
	struct flow_limit limit;
	struct flow_paths out;
};

struct cuts {
	const struct mcf *p;
	int n;
	struct path_cut v[PARALLEL_MAX];
};

static void cut_part(void *arg, int i)
{
	struct cuts *all = arg;
	struct path_cut *mine = &all->v[i];
	const struct mcf *p = all->p;
	size_t m = (size_t)p->net.m;
	double *flow = x_alloc(m + 1, sizeof(*flow));
	struct widest w;
	int from, to;

	parallel_cut(p->n_sources, all->n, i, &from, &to);
	widest_init(&w, &p->net);
	for (int s = from; s < to; s++) {
		if (flow_limit_over(&mine->limit)) {
			take_tree(p, s, &mine->out);
			continue;
		}
		memcpy(flow, mcf_flow_of(p, s), m * sizeof(*flow));
		cut_source(&w, flow, p->source[s], mcf_demand_of(p, s), &mine->out);
	}
	widest_fini(&w);
	free(flow);
}

static void append(struct flow_paths *to, const struct flow_paths *from)
{
	int64_t by = (int64_t)to->arcs.n;

	vec_reserve(&to->arcs, from->arcs.n);
	vec_reserve(&to->v, from->v.n);
	for (size_t i = 0; i < from->v.n; i++) {
		to->v.v[to->v.n] = from->v.v[i];
		to->v.v[to->v.n++].first += by;
	}
	if (from->arcs.n > 0) {
		memcpy(to->arcs.v + to->arcs.n, from->arcs.v, from->arcs.n * sizeof(*to->arcs.v));
	}
	to->arcs.n += from->arcs.n;
}

void flow_paths_cut(struct mcf *p, const struct flow_limit *limit, struct flow_paths *out)
{
	struct cuts all = { .p = p, .n = parallel_width() };

	for (int i = 0; i < all.n; i++) {
		all.v[i].limit = limit ? *limit : (struct flow_limit){ 0 };
		/* The caller's deadline may be asked from this thread only. */
		all.v[i].limit.is_over = i ? NULL : all.v[i].limit.is_over;
	}
	out->demands = mcf_demands(p);
	parallel_run(all.n, cut_part, &all);
	for (int i = 0; i < all.n; i++) {
		append(out, &all.v[i].out);
		flow_paths_fini(&all.v[i].out);
	}
}

/* ---- chunks ---- */

struct rounding {
	const struct flow_net *net;
	struct flow_paths *paths;
	double *use;		/* a net arc: chunks a unit of capacity */
	int32_t *mark;		/* a net arc: stamp of the path at hand */
	int32_t stamp;
};

static void place(struct rounding *r, struct flow_path *q, int by)
{
	const int32_t *arcs = r->paths->arcs.v + q->first;

	q->chunks += by;
	for (int i = 0; i < q->n_arcs; i++) {
		r->use[arcs[i]] += by / (double)r->net->units[arcs[i]];
	}
}

/* Largest use of the path's arcs with `by` chunks more; arcs that carry the
 * stamp keep theirs. */
static double use_with(const struct rounding *r, const struct flow_path *q, int by, int32_t stamp)
{
	const int32_t *arcs = r->paths->arcs.v + q->first;
	double most = 0;

	for (int i = 0; i < q->n_arcs; i++) {
		int a = arcs[i];
		double extra = stamp && r->mark[a] == stamp
				       ? 0 : by / (double)r->net->units[a];

		most = fmax(most, r->use[a] + extra);
	}
	return most;
}

/* Whole parts of all shares first. */
static void place_floors(struct rounding *r, int chunks)
{
	memset(r->use, 0, (size_t)r->net->m * sizeof(*r->use));
	for (size_t i = 0; i < r->paths->v.n; i++) {
		struct flow_path *q = &r->paths->v.v[i];

		q->chunks = 0;
		place(r, q, (int)(q->weight * flow_pair_chunks(r->paths, q->pair, chunks) + 1e-6));
	}
}

/* What is missing of a pair goes where it hurts least, one by one. */
static void place_rest(struct rounding *r, size_t from, size_t to, int chunks)
{
	int missing = flow_pair_chunks(r->paths, r->paths->v.v[from].pair, chunks);

	for (size_t i = from; i < to; i++) {
		missing -= r->paths->v.v[i].chunks;
	}
	for (; missing != 0; missing += missing < 0 ? 1 : -1) {
		int by = missing > 0 ? 1 : -1;
		struct flow_path *best = NULL;
		double least = HUGE_VAL;

		for (size_t i = from; i < to; i++) {
			struct flow_path *q = &r->paths->v.v[i];
			double use = by * use_with(r, q, by, 0);

			if (use < least && q->chunks + by >= 0) {
				least = use;
				best = q;
			}
		}
		place(r, best, by);
	}
}

/* Moves single chunks of a pair to paths whose arcs are used less. */
static bool balance_pair(struct rounding *r, size_t from, size_t to)
{
	bool moved = false;

	for (size_t i = from; i < to; i++) {
		struct flow_path *q = &r->paths->v.v[i];
		const int32_t *arcs = r->paths->arcs.v + q->first;

		if (q->chunks == 0) {
			continue;
		}
		r->stamp++;
		for (int k = 0; k < q->n_arcs; k++) {
			r->mark[arcs[k]] = r->stamp;
		}
		for (size_t j = from; j < to && q->chunks > 0; j++) {
			struct flow_path *o = &r->paths->v.v[j];

			if (j != i && use_with(r, o, 1, r->stamp) < use_with(r, q, 0, 0) - 1e-9) {
				place(r, q, -1);
				place(r, o, 1);
				moved = true;
			}
		}
	}
	return moved;
}

/* The end of the pair that begins at path i. */
static size_t pair_end(const struct flow_paths *paths, size_t i)
{
	int32_t pair = paths->v.v[i].pair;

	while (i < paths->v.n && paths->v.v[i].pair == pair) {
		i++;
	}
	return i;
}

double flow_paths_round(const struct flow_net *net, struct flow_paths *paths, int chunks)
{
	struct rounding r = { .net = net, .paths = paths };
	bool moved = true;
	double most = 0;

	r.use = x_alloc((size_t)net->m, sizeof(*r.use));
	r.mark = x_new((size_t)net->m, sizeof(*r.mark));
	place_floors(&r, chunks);
	for (size_t i = 0, end; i < paths->v.n; i = end) {
		end = pair_end(paths, i);
		place_rest(&r, i, end, chunks);
	}
	for (int round = 0; round < EXCHANGES && moved; round++) {
		moved = false;
		for (size_t i = 0, end; i < paths->v.n; i = end) {
			end = pair_end(paths, i);
			moved |= end > i + 1 && balance_pair(&r, i, end);
		}
	}
	for (int a = 0; a < net->m; a++) {
		most = fmax(most, r.use[a]);
	}
	free(r.use);
	free(r.mark);
	return most;
}
