/* Cutting flows into paths and paths into chunks; see flow_paths.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "collective/flow_paths.h"

/* What is left of a unit demand below this is rounding. */
#define CRUMB 1e-7
/* Rounds of exchanging single chunks. */
#define EXCHANGES 24

void flow_paths_fini(struct flow_paths *paths)
{
	vec_fini(&paths->v);
	vec_fini(&paths->arcs);
}

/* ---- widest paths ---- */

/* Binary heap of nodes by width, with lazy removal. */
struct entry {
	double width;
	int32_t node;
};

struct widest {
	const struct flow_net *net;
	double *width;		/* n */
	int32_t *parent;	/* n */
	struct entry *heap;	/* m + 1 */
	int size;
};

static void heap_push(struct widest *w, double width, int node)
{
	int i = w->size++;

	while (i > 0 && w->heap[(i - 1) / 2].width < width) {
		w->heap[i] = w->heap[(i - 1) / 2];
		i = (i - 1) / 2;
	}
	w->heap[i] = (struct entry){ width, node };
}

static struct entry heap_pop(struct widest *w)
{
	struct entry top = w->heap[0], last = w->heap[--w->size];
	int i = 0, child;

	while ((child = 2 * i + 1) < w->size) {
		if (child + 1 < w->size &&
		    w->heap[child + 1].width > w->heap[child].width) {
			child++;
		}
		if (w->heap[child].width <= last.width) {
			break;
		}
		w->heap[i] = w->heap[child];
		i = child;
	}
	w->heap[i] = last;
	return top;
}

/* Width of the widest path from s to t in the flow; parents are filled. */
static double find_widest(struct widest *w, const double *flow, int s, int t)
{
	const struct flow_net *net = w->net;

	for (int v = 0; v < net->n; v++) {
		w->width[v] = 0;
	}
	w->width[s] = HUGE_VAL;
	w->parent[s] = -1;
	w->size = 0;
	heap_push(w, HUGE_VAL, s);
	while (w->size > 0) {
		struct entry e = heap_pop(w);

		if (e.node == t) {
			return e.width;
		}
		if (e.width < w->width[e.node]) {
			continue;
		}
		for (int a = net->out_first[e.node];
		     a < net->out_first[e.node + 1]; a++) {
			double width = fmin(e.width, flow[a]);

			if (width > w->width[net->dst[a]]) {
				w->width[net->dst[a]] = width;
				w->parent[net->dst[a]] = a;
				heap_push(w, width, net->dst[a]);
			}
		}
	}
	return 0;
}

/* Takes the path found off the flow and keeps it. */
static int keep_path(struct widest *w, double *flow, int s, int t,
		     double weight, struct flow_paths *out)
{
	const struct flow_net *net = w->net;
	int n = 0;

	for (int v = t; v != s; v = net->src[w->parent[v]]) {
		n++;
	}
	if (vec_push(&out->v, (struct flow_path){ s * net->n + t, 0,
						  (int64_t)out->arcs.n, n,
						  weight }) ||
	    vec_reserve(&out->arcs, (size_t)n)) {
		return WEFT_ENOMEM;
	}
	out->arcs.n += (size_t)n;
	for (int v = t, i = 1; v != s; v = net->src[w->parent[v]], i++) {
		int a = w->parent[v];

		out->arcs.v[out->arcs.n - (size_t)i] = a;
		flow[a] = fmax(flow[a] - weight, 0);
	}
	return 0;
}

/* Paths of one pair: all of its unit, but for crumbs. */
static int cut_pair(struct widest *w, double *flow, int s, int t,
		    struct flow_paths *out)
{
	size_t first = out->v.n;
	double left = 1;

	while (left > CRUMB) {
		double width = fmin(find_widest(w, flow, s, t), left);

		if (width <= CRUMB && out->v.n > first) {
			break;
		}
		if (keep_path(w, flow, s, t, width, out)) {
			return WEFT_ENOMEM;
		}
		left -= width;
	}
	for (size_t i = first; i < out->v.n; i++) {
		out->v.v[i].weight /= 1 - left;
	}
	return 0;
}

static int cut_source(struct widest *w, double *flow, int s,
		      struct flow_paths *out)
{
	int rc = 0;

	for (int t = 0; t < w->net->n && rc == 0; t++) {
		if (t != s && w->net->terminal[t]) {
			rc = cut_pair(w, flow, s, t, out);
		}
	}
	return rc;
}

int flow_paths_cut(struct mcf *p, struct flow_paths *out, struct err *err)
{
	size_t n = (size_t)p->net.n, m = (size_t)p->net.m;
	struct widest w = { .net = &p->net };
	double *flow = malloc(m * sizeof(*flow));
	int rc;

	w.width = malloc(n * sizeof(*w.width));
	w.parent = malloc(n * sizeof(*w.parent));
	w.heap = malloc((m + 1) * sizeof(*w.heap));
	rc = flow && w.width && w.parent && w.heap ? 0 : WEFT_ENOMEM;
	for (int s = 0; s < p->n_sources && rc == 0; s++) {
		memcpy(flow, mcf_flow_of(p, s), m * sizeof(*flow));
		rc = cut_source(&w, flow, p->source[s], out);
	}
	free(flow);
	free(w.width);
	free(w.parent);
	free(w.heap);
	return rc ? err_nomem(err) : 0;
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
static double use_with(const struct rounding *r, const struct flow_path *q,
		       int by, int32_t stamp)
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
		place(r, q, (int)(q->weight * chunks + 1e-6));
	}
}

/* What is missing of a pair goes where it hurts least, one by one. */
static void place_rest(struct rounding *r, size_t from, size_t to, int chunks)
{
	int missing = chunks;

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

			if (j != i && use_with(r, o, 1, r->stamp) <
				      use_with(r, q, 0, 0) - 1e-9) {
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

double flow_paths_round(const struct flow_net *net, struct flow_paths *paths,
			int chunks)
{
	struct rounding r = { .net = net, .paths = paths };
	bool moved = true;
	double most = 0;

	r.use = malloc((size_t)net->m * sizeof(*r.use));
	r.mark = calloc((size_t)net->m, sizeof(*r.mark));
	if (!r.use || !r.mark) {
		free(r.use);
		free(r.mark);
		return WEFT_ENOMEM;
	}
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
