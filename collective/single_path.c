/* One path a pair; see single_path.h. */
#include "collective/single_path.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/rng.h"

/* Powers of the local search, and sweeps over all pairs with each. */
#define FIRST_POWER 2.0
#define LAST_POWER 64.0
#define SWEEPS 8
#define NOISE (1e-4 / 1024)

struct routes {
	const struct flow_net *net;
	int longest;		/* arcs of a path, at most */
	int32_t *arcs;		/* n x n x longest, from the sink back */
	int32_t *len;		/* n x n; 0: no such pair */
	int64_t *load;		/* m */
	double *weight;		/* m: of one path more */
	double power, scale;	/* of the weights */
	bool flat;		/* weights of the first heuristic */
	struct rng rng;

	double *dist;		/* n */
	int32_t *parent;	/* n */
	int32_t *queue;		/* n + 1 */
	bool *queued;		/* n */
};

struct run {
	const struct topo *t;
	const struct single_options *opt;
	struct flow_limit limit;
	struct mcf *p;		/* the fractional optimum */
	struct routes r;
	struct single_result *res;
	struct flow_paths best;
};

static void routes_fini(struct routes *r)
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

static int routes_init(struct routes *r, const struct flow_net *net,
		       int diameter)
{
	size_t n = (size_t)net->n, m = (size_t)net->m + 1;

	r->net = net;
	r->longest = diameter + SINGLE_DETOUR;
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

static int32_t *arcs_of(const struct routes *r, size_t pair)
{
	return r->arcs + pair * (size_t)r->longest;
}

static double use_of(const struct routes *r, int a)
{
	return (double)r->load[a] / (double)r->net->units[a];
}

static double congestion_of(const struct routes *r)
{
	double most = 0;

	for (int a = 0; a < r->net->m; a++) {
		most = fmax(most, use_of(r, a));
	}
	return most;
}

/* By how much one path more raises the function of the loads, a little of it
 * by chance: so that the search walks where nothing is better. */
static void weigh(struct routes *r, int a)
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

static void weigh_all(struct routes *r)
{
	for (int a = 0; a < r->net->m; a++) {
		weigh(r, a);
	}
}

/* Adds (+1) or removes (-1) the path of a pair. */
static void count(struct routes *r, size_t pair, int by)
{
	const int32_t *arcs = arcs_of(r, pair);

	for (int i = 0; i < r->len[pair]; i++) {
		r->load[arcs[i]] += by;
		weigh(r, arcs[i]);
	}
}

/* Cheapest paths from s by label correction; parents are filled. */
static void measure(struct routes *r, int s)
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

/* Takes the path to v just measured, when it is not too long. */
static bool take(struct routes *r, size_t pair, int v)
{
	int32_t *arcs = arcs_of(r, pair);
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

/* ---- load-aware shortest paths ---- */

/* All pairs of terminals; shuffled by the seed. */
static int64_t *list_pairs(const struct flow_net *net, uint64_t seed,
			   int64_t *n)
{
	int64_t *pairs = malloc((size_t)net->terminals * net->terminals *
				sizeof(*pairs));
	struct rng rng;

	*n = 0;
	for (int s = 0; pairs && s < net->n; s++) {
		for (int v = 0; v < net->n; v++) {
			if (s != v && net->terminal[s] && net->terminal[v]) {
				pairs[(*n)++] = (int64_t)s * net->n + v;
			}
		}
	}
	rng_seed(&rng, seed);
	for (int64_t i = *n - 1; pairs && i > 0; i--) {
		int64_t j = (int64_t)rng_below(&rng, (uint64_t)i + 1);
		int64_t swap = pairs[i];

		pairs[i] = pairs[j];
		pairs[j] = swap;
	}
	return pairs;
}

static void route_shortest(struct routes *r, const int64_t *pairs, int64_t n)
{
	r->flat = true;
	weigh_all(r);
	for (int64_t i = 0; i < n; i++) {
		size_t pair = (size_t)pairs[i];

		measure(r, (int)(pair / (size_t)r->net->n));
		/* No shortest path is longer than the diameter. */
		take(r, pair, (int)(pair % (size_t)r->net->n));
		count(r, pair, 1);
	}
	r->flat = false;
}

/* ---- local search ---- */

static int keep_best(struct run *run)
{
	const struct routes *r = &run->r;
	size_t pairs = (size_t)r->net->n * r->net->n;
	double now = congestion_of(r);

	if (run->best.v.n > 0 && now >= run->res->congestion) {
		return 0;
	}
	run->res->congestion = now;
	run->best.v.n = run->best.arcs.n = 0;
	for (size_t pair = 0; pair < pairs; pair++) {
		int n = r->len[pair];

		if (n == 0) {
			continue;
		}
		if (vec_push(&run->best.v, (struct flow_path){
			    (int32_t)pair, 1, (int64_t)run->best.arcs.n, n,
			    1 }) ||
		    vec_reserve(&run->best.arcs, (size_t)n)) {
			return WEFT_ENOMEM;
		}
		for (int i = n - 1; i >= 0; i--) {
			run->best.arcs.v[run->best.arcs.n++] =
				arcs_of(r, pair)[i];
		}
	}
	return 0;
}

static double path_cost(const struct routes *r, size_t pair)
{
	double sum = 0;

	for (int i = 0; i < r->len[pair]; i++) {
		sum += r->weight[arcs_of(r, pair)[i]];
	}
	return sum;
}

/* One pair to its best path; true when that is another. */
static bool reroute(struct routes *r, size_t pair)
{
	int v = (int)(pair % (size_t)r->net->n);
	bool changed;

	count(r, pair, -1);
	measure(r, (int)(pair / (size_t)r->net->n));
	changed = r->dist[v] < path_cost(r, pair) * (1 - 1e-12) &&
		  take(r, pair, v);
	count(r, pair, 1);
	return changed;
}

static int search(struct run *run, const int64_t *pairs, int64_t n)
{
	struct routes *r = &run->r;
	int rc = 0;

	for (double power = FIRST_POWER; power <= LAST_POWER && rc == 0;
	     power *= 2) {
		bool moved = true;

		r->power = power;
		for (int sweep = 0; sweep < SWEEPS && moved && rc == 0;
		     sweep++) {
			moved = false;
			r->scale = congestion_of(r);
			weigh_all(r);
			for (int64_t i = 0; i < n; i++) {
				if (i % 64 == 0 && flow_limit_over(&run->limit)) {
					return keep_best(run);
				}
				if (reroute(r, (size_t)pairs[i])) {
					run->res->moves++;
					moved = true;
				}
			}
			rc = keep_best(run);
			if (run->res->congestion <= run->res->bound) {
				return rc;
			}
		}
	}
	return rc;
}

/* ---- the integer program ---- */

static int add_paths(struct flow_paths *to, const struct flow_paths *from,
		     size_t i)
{
	struct flow_path q = from->v.v[i];

	if (vec_reserve(&to->arcs, (size_t)q.n_arcs)) {
		return WEFT_ENOMEM;
	}
	memcpy(to->arcs.v + to->arcs.n, from->arcs.v + q.first,
	       (size_t)q.n_arcs * sizeof(*to->arcs.v));
	q.first = (int64_t)to->arcs.n;
	q.weight = q.chunks = 1;
	to->arcs.n += (size_t)q.n_arcs;
	return vec_push(&to->v, q);
}

/* Both sorted by pair: merged, a pair's own first. */
static int merge_paths(const struct flow_paths *a, const struct flow_paths *b,
		       struct flow_paths *out)
{
	size_t i = 0, j = 0;
	int rc = 0;

	while ((i < a->v.n || j < b->v.n) && rc == 0) {
		bool first = j == b->v.n ||
			     (i < a->v.n && a->v.v[i].pair <= b->v.v[j].pair);

		rc = first ? add_paths(out, a, i++) : add_paths(out, b, j++);
	}
	return rc;
}

static int solve_integer(struct run *run, struct err *err)
{
	struct flow_paths pool = { 0 }, flow = { 0 }, chosen = { 0 };
	int64_t *index = malloc((run->best.v.n + 1) * sizeof(*index));
	bool better = false;
	int rc = index ? flow_paths_cut(run->p, &run->limit, &flow, err)
		       : err_nomem(err);

	if (rc == 0 && merge_paths(&run->best, &flow, &pool)) {
		rc = err_nomem(err);
	}
	rc = rc ? rc : single_integer(run->r.net, &pool, run->opt,
				      flow_limit_left_s(&run->limit),
				      &run->res->congestion, &better, index,
				      err);
	for (size_t i = 0; better && i < run->best.v.n && rc == 0; i++) {
		rc = add_paths(&chosen, &pool, (size_t)index[i])
			     ? err_nomem(err) : 0;
	}
	if (rc == 0 && better) {
		struct flow_paths old = run->best;

		run->best = chosen;
		chosen = old;
	}
	flow_paths_fini(&pool);
	flow_paths_fini(&flow);
	flow_paths_fini(&chosen);
	free(index);
	return rc;
}

/* ---- the whole ---- */

static void set_bound(struct run *run)
{
	double relaxed = run->res->flow.bound;
	const struct flow_net *net = &run->p->net;
	double unit = (double)net->units[0];
	bool equal = true;

	for (int a = 1; a < net->m; a++) {
		equal = equal && net->units[a] == net->units[0];
	}
	run->res->bound = equal ? ceil(relaxed * unit - 1e-6) / unit : relaxed;
}

static int solve(struct run *run, struct err *err)
{
	double gap = run->opt->flow_gap;
	struct mcf_options flow = {
		.gap = gap > 0 ? gap : MCF_DEFAULT_GAP,
		.time_limit_s = run->opt->time_limit_s / 4,
		.cancel = run->opt->cancel, .is_over = run->opt->is_over,
		.arg = run->opt->arg,
	};
	int64_t *pairs, n;
	int rc = mcf_run(run->p, &flow, &run->res->flow, err);

	if (rc) {
		return rc;
	}
	set_bound(run);
	pairs = list_pairs(&run->p->net, run->opt->seed, &n);
	if (!pairs ||
	    routes_init(&run->r, &run->p->net, topo_diameter(run->t) < 0
			? run->p->net.n : topo_diameter(run->t))) {
		free(pairs);
		return err_nomem(err);
	}
	rng_seed(&run->r.rng, run->opt->seed);
	route_shortest(&run->r, pairs, n);
	rc = keep_best(run);
	run->res->shortest = run->res->congestion;
	if (rc == 0 && run->opt->effort >= SINGLE_SEARCH) {
		rc = search(run, pairs, n);
	}
	free(pairs);
	if (rc) {
		return err_nomem(err);
	}
	return run->opt->effort < SINGLE_INTEGER ||
	       run->res->congestion <= run->res->bound || flow_limit_over(&run->limit)
		       ? 0 : solve_integer(run, err);
}

int single_path(const struct topo *t, const struct single_options *opt,
		struct flow_paths *out, struct single_result *res,
		struct err *err)
{
	struct mcf_options limits = {
		.time_limit_s = opt->time_limit_s, .cancel = opt->cancel,
		.is_over = opt->is_over, .arg = opt->arg,
	};
	struct run run = { .t = t, .opt = opt, .res = res };
	int rc;

	memset(res, 0, sizeof(*res));
	memset(out, 0, sizeof(*out));
	if (!(opt->flow_gap >= 0 && opt->tolerance >= 0 &&
	      opt->time_limit_s >= 0)) {
		return err_set(err, WEFT_EINVAL, "gap, tolerance and time "
			       "limit must not be negative");
	}
	run.limit = flow_limit_of(&limits, 1);
	rc = mcf_new(t, false, &run.p, err);
	rc = rc ? rc : solve(&run, err);
	routes_fini(&run.r);
	mcf_free(run.p);
	if (rc) {
		flow_paths_fini(&run.best);
	} else {
		*out = run.best;
	}
	return rc;
}
