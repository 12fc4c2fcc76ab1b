/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One path a pair: shortest paths that avoid loaded arcs, then a local search
 * on a steep function of the loads, then the integer program on the paths that
 * are worth having.
 *
 * The local search takes one pair out and puts it back on the path that raises
 * sum(load^power) least, for powers from 2 to 64: the low ones spread the
 * load, the high ones lower its maximum. With a limit of layers a path must
 * also fit in one of them (unsplittable_lanes.c); pairs that fit in none are
 * placed one after the other, in a layer that is searched for them.
 */
#include "collective/flow/private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"

/* Powers of the local search, and sweeps over all pairs with each. */
#define FIRST_POWER 2.0
#define LAST_POWER 64.0
#define SWEEPS 8

struct single_run {
	const struct topo *t;
	const struct single_options *opt;
	struct flow_limit limit;
	struct mcf *p;		/* the fractional optimum */
	struct single_routes r;
	struct single_lanes *lanes;	/* NULL: layers do not matter */
	int layers;		/* that routes are placed in at present */
	struct single_result *res;
	struct flow_paths best;
};

/* Which pair comes first decides much where layers are scarce, and something anywhere: so many
 * orders of few pairs are searched from; of more pairs, up to the maximum, only from that
 * which leads to the least load before the search. */
#define ORDERS 8
#define FEW_PAIRS 1024
#define MAX_ORDERED 4096
/* With more pairs, where a search takes long, fewer layers are not tried within so much of the
 * bound. */
#define NEAR_BOUND 1.05

static uint64_t order_seed(const struct single_run *run, int order)
{
	return run->opt->seed + (uint64_t)order * 7919;
}

/* ---- load-aware shortest paths ---- */

/* All pairs of terminals; shuffled by the seed. */
static int64_t *list_pairs(const struct flow_net *net, uint64_t seed, int64_t *n)
{
	int64_t *pairs = x_alloc((size_t)net->terminals * net->terminals, sizeof(*pairs));
	struct rng rng;

	*n = 0;
	for (int s = 0; s < net->n; s++) {
		for (int v = 0; v < net->n; v++) {
			if (s != v && net->terminal[s] && net->terminal[v]) {
				pairs[(*n)++] = (int64_t)s * net->n + v;
			}
		}
	}
	rng_seed(&rng, seed);
	for (int64_t i = *n - 1; i > 0; i--) {
		int64_t j = (int64_t)rng_below(&rng, (uint64_t)i + 1);
		int64_t swap = pairs[i];

		pairs[i] = pairs[j];
		pairs[j] = swap;
	}
	return pairs;
}

static void route_shortest(struct single_routes *r, const int64_t *pairs, int64_t n)
{
	r->flat = true;
	single_weigh_all(r);
	for (int64_t i = 0; i < n; i++) {
		size_t pair = (size_t)pairs[i];

		single_measure(r, (int)(pair / (size_t)r->net->n));
		/* No shortest path is longer than the diameter. */
		single_take(r, pair, (int)(pair % (size_t)r->net->n));
		single_count(r, pair, 1);
	}
	r->flat = false;
}

/* ---- local search ---- */

static void keep_best(struct single_run *run)
{
	const struct single_routes *r = &run->r;
	size_t pairs = (size_t)r->net->n * r->net->n;
	double now = single_congestion(r);

	if (run->best.v.n > 0 && now >= run->res->congestion) {
		return;
	}
	run->res->congestion = now;
	run->best.v.n = run->best.arcs.n = 0;
	for (size_t pair = 0; pair < pairs; pair++) {
		int n = r->len[pair];

		if (n == 0) {
			continue;
		}
		vec_push(&run->best.v, (struct flow_path){
			    (int32_t)pair, 1, (int64_t)run->best.arcs.n, n,
			    run->lanes ? single_lanes_layer(run->lanes, pair)
				       : 0, 1 });
		vec_reserve(&run->best.arcs, (size_t)n);
		for (int i = n - 1; i >= 0; i--) {
			run->best.arcs.v[run->best.arcs.n++] = single_arcs_of(r, pair)[i];
		}
	}
}

/* One pair to its best path; whether that is another. */
static bool reroute(struct single_run *run, size_t pair)
{
	struct single_routes *r = &run->r;
	int v = (int)(pair % (size_t)r->net->n);
	bool changed;

	if (run->lanes) {
		return single_lanes_move(run->lanes, pair);
	}
	single_count(r, pair, -1);
	single_measure(r, (int)(pair / (size_t)r->net->n));
	changed = r->dist[v] < single_cost(r, pair) * (1 - 1e-12) && single_take(r, pair, v);
	single_count(r, pair, 1);
	return changed;
}

static void search(struct single_run *run, const int64_t *pairs, int64_t n)
{
	struct single_routes *r = &run->r;

	for (double power = FIRST_POWER; power <= LAST_POWER; power *= 2) {
		bool moved = true;

		r->power = power;
		for (int sweep = 0; sweep < SWEEPS && moved; sweep++) {
			moved = false;
			r->scale = single_congestion(r);
			single_weigh_all(r);
			for (int64_t i = 0; i < n; i++) {
				bool did;

				if (i % 64 == 0 && flow_limit_over(&run->limit)) {
					keep_best(run);
					return;
				}
				did = reroute(run, (size_t)pairs[i]);
				run->res->moves += did;
				moved = moved || did;
			}
			keep_best(run);
			if (run->res->congestion <= run->res->bound) {
				return;
			}
		}
	}
}

/* ---- the integer program ---- */

static void add_paths(struct flow_paths *to, const struct flow_paths *from, size_t i)
{
	struct flow_path q = from->v.v[i];

	vec_reserve(&to->arcs, (size_t)q.n_arcs);
	memcpy(to->arcs.v + to->arcs.n, from->arcs.v + q.first,
	       (size_t)q.n_arcs * sizeof(*to->arcs.v));
	q.first = (int64_t)to->arcs.n;
	q.weight = q.chunks = 1;
	to->arcs.n += (size_t)q.n_arcs;
	vec_push(&to->v, q);
}

/* Both sorted by pair: merged, a pair's own first. */
static void merge_paths(const struct flow_paths *a, const struct flow_paths *b,
			struct flow_paths *out)
{
	size_t i = 0, j = 0;

	while (i < a->v.n || j < b->v.n) {
		bool first = j == b->v.n || (i < a->v.n && a->v.v[i].pair <= b->v.v[j].pair);

		if (first) {
			add_paths(out, a, i++);
		} else {
			add_paths(out, b, j++);
		}
	}
}

static int solve_integer(struct single_run *run, struct err *err)
{
	struct flow_paths pool = { 0 }, flow = { 0 }, chosen = { 0 };
	int64_t *index = x_alloc(run->best.v.n + 1, sizeof(*index));
	bool better = false;
	int rc;

	flow_paths_cut(run->p, &run->limit, &flow);
	merge_paths(&run->best, &flow, &pool);
	rc = single_integer(run->r.net, &pool, run->opt, &run->limit.deadline,
			    &run->res->congestion, &better, index, err);
	for (size_t i = 0; better && i < run->best.v.n && rc == 0; i++) {
		add_paths(&chosen, &pool, (size_t)index[i]);
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

static void set_bound(struct single_run *run)
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

/* Once more, in other orders. */
static void search_again(struct single_run *run, int64_t n)
{
	for (int i = 1; i < ORDERS && n <= FEW_PAIRS &&
			run->res->congestion > run->res->bound && !flow_limit_over(&run->limit);
	     i++) {
		int64_t *pairs = list_pairs(&run->p->net, order_seed(run, i), &n);

		memset(run->r.load, 0, (size_t)run->r.net->m * sizeof(*run->r.load));
		route_shortest(&run->r, pairs, n);
		search(run, pairs, n);
		free(pairs);
	}
}

/* The paths without regard to layers. */
static int solve(struct single_run *run, const int64_t *pairs, int64_t n, struct err *err)
{
	route_shortest(&run->r, pairs, n);
	keep_best(run);
	run->res->shortest = run->res->congestion;
	if (run->opt->effort >= SINGLE_SEARCH) {
		search(run, pairs, n);
		search_again(run, n);
	}
	return run->opt->effort < SINGLE_INTEGER ||
	       run->res->congestion <= run->res->bound || flow_limit_over(&run->limit)
		       ? 0 : solve_integer(run, err);
}

/* ---- with layers ---- */

/* Power of the weights by which paths without a layer are led. */
#define HOME_POWER 8

/* What a start begins with: the paths that were found without layers, or none.
 * Where layers are scarce the second is often better, as the first fill the
 * layers with what suits no other path. */
enum start { WITH_PATHS, FROM_NOTHING };

/* The paths given become the present ones. */
static void restore(struct single_run *run, const struct flow_paths *given)
{
	struct single_routes *r = &run->r;

	memset(r->load, 0, (size_t)r->net->m * sizeof(*r->load));
	for (size_t i = 0; i < given->v.n; i++) {
		const struct flow_path *q = &given->v.v[i];
		int32_t *arcs = single_arcs_of(r, (size_t)q->pair);

		r->len[q->pair] = q->n_arcs;
		for (int k = 0; k < q->n_arcs; k++) {
			arcs[q->n_arcs - 1 - k] = given->arcs.v[q->first + k];
			r->load[arcs[q->n_arcs - 1 - k]]++;
		}
	}
	r->flat = run->opt->effort < SINGLE_SEARCH;
	r->power = HOME_POWER;
	r->scale = single_congestion(r);
	single_weigh_all(r);
}

/* First those that fit as they are, unless the start is from nothing;
 * unplaced[] gets the others, whose paths no longer count. */
static void place_fitting(struct single_run *run, const int64_t *pairs, int64_t n, enum start start,
			  int64_t *unplaced, int64_t *n_unplaced)
{
	*n_unplaced = 0;
	for (int64_t i = 0; i < n; i++) {
		size_t pair = (size_t)pairs[i];

		if (start == FROM_NOTHING || !single_lanes_place(run->lanes, pair)) {
			single_count(&run->r, pair, -1);
			run->r.len[pair] = 0;
			unplaced[(*n_unplaced)++] = pairs[i];
		}
	}
}

/* A path and a layer for each pair without. */
static int place_remaining(struct single_run *run, const int64_t *unplaced,
			   int64_t n, struct err *err)
{
	int64_t nodes = run->r.net->n;

	for (int64_t i = 0; i < n; i++) {
		if (i % 64 == 0 && flow_limit_over(&run->limit)) {
			return err_set(err, WEFT_ETIMEOUT, "stopped before "
				       "%lld routes had a layer",
				       (long long)(n - i));
		}
		if (!single_lanes_move(run->lanes, (size_t)unplaced[i])) {
			return err_set(err, WEFT_ELIMIT, "%lld -> %lld: no "
				       "route was found that closes no cycle "
				       "in %d layer%s",
				       (long long)(unplaced[i] / nodes),
				       (long long)(unplaced[i] % nodes),
				       run->layers, run->layers == 1 ? "" : "s");
		}
	}
	return 0;
}

/* Every pair gets a layer; WEFT_ELIMIT when one did not. */
static int place_all(struct single_run *run, const struct flow_paths *given, const int64_t *pairs,
		     int64_t n, enum start start, bool escape, struct err *err)
{
	int64_t *unplaced = x_alloc((size_t)n + 1, sizeof(*unplaced));
	int64_t left = 0;
	int rc;

	single_lanes_free(run->lanes);
	run->lanes = NULL;
	rng_seed(&run->r.rng, run->opt->seed);
	restore(run, given);
	rc = single_lanes_new(&run->r, run->layers, escape, &run->lanes, err);
	if (rc == 0) {
		place_fitting(run, pairs, n, start, unplaced, &left);
		rc = place_remaining(run, unplaced, left, err);
	}
	free(unplaced);
	return rc;
}

/* With escape trees where there is no other way. */
static int place_somehow(struct single_run *run, const struct flow_paths *given,
			 const int64_t *pairs, int64_t n, enum start start, struct err *err)
{
	struct err none = { 0 };
	int rc = place_all(run, given, pairs, n, start, false, err);

	if (rc == WEFT_ELIMIT) {
		int again = place_all(run, given, pairs, n, start, true, &none);

		/* Where nothing is gained, the first one names the pair. */
		if (again != WEFT_ELIMIT && again != WEFT_EINFEASIBLE) {
			*err = none;
			rc = again;
		}
	}
	return rc;
}

/* The number of the best order, 0 where only one is tried. */
static int choose_order(struct single_run *run, const struct flow_paths *given, int64_t n,
			struct err *err)
{
	double least = HUGE_VAL;
	int best = 0;

	for (int i = 0; i < ORDERS && n <= MAX_ORDERED; i++) {
		int64_t *pairs = list_pairs(&run->p->net, order_seed(run, i), &n);

		if (flow_limit_over(&run->limit)) {
			free(pairs);
			break;
		}
		if (place_somehow(run, given, pairs, n, FROM_NOTHING, err) == 0 &&
		    single_congestion(&run->r) < least) {
			least = single_congestion(&run->r);
			best = i;
		}
		free(pairs);
	}
	return best;
}

/* One start, its search, and the best of it when it beats the others. */
static int solve_from(struct single_run *run, const struct flow_paths *given, const int64_t *pairs,
		      int64_t n, enum start start, struct err *err)
{
	int rc = place_somehow(run, given, pairs, n, start, err);

	if (rc) {
		return rc;
	}
	run->r.flat = false;
	keep_best(run);
	if (run->opt->effort >= SINGLE_SEARCH && single_congestion(&run->r) > run->res->bound) {
		search(run, pairs, n);
	}
	return 0;
}

static bool is_done(const struct single_run *run)
{
	return run->best.v.n > 0 && (flow_limit_over(&run->limit) ||
				     run->res->congestion <= run->res->bound);
}

static int solve_in_order(struct single_run *run, const struct flow_paths *given, int64_t n,
			  int order, struct err *err)
{
	int64_t *pairs = list_pairs(&run->p->net, order_seed(run, order), &n);
	int rc = solve_from(run, given, pairs, n, FROM_NOTHING, err);

	free(pairs);
	return rc;
}

/* All orders of few pairs, else the best of them. */
static int solve_from_nothing(struct single_run *run, const struct flow_paths *given, int64_t n,
			      struct err *err)
{
	int rc = 0;

	if (n > FEW_PAIRS) {
		return solve_in_order(run, given, n, choose_order(run, given, n, err), err);
	}
	for (int i = 0; i < ORDERS && !is_done(run); i++) {
		rc = solve_in_order(run, given, n, i, err);
	}
	return rc;
}

/* Whether fewer layers are still worth their search. */
static bool is_far(const struct single_run *run, int64_t n)
{
	return run->best.v.n == 0 || n <= MAX_ORDERED ||
	       run->res->congestion > run->res->bound * NEAR_BOUND;
}

/* Both starts with so many layers. What comes of it depends on nothing that was tried before. */
static int solve_with(struct single_run *run, const struct flow_paths *given,
		      const int64_t *pairs, int64_t n, int layers, struct err *err)
{
	int rc;

	run->layers = layers;
	rc = solve_from(run, given, pairs, n, WITH_PATHS, err);
	return is_done(run) ? rc : solve_from_nothing(run, given, n, err);
}

/* Layers that the paths given take, all of them; those allowed when that is not enough. */
static int count_layers(struct single_run *run, const struct flow_paths *given,
			const int64_t *pairs, int64_t n, int *layers, struct err *err)
{
	int64_t *unplaced = x_alloc((size_t)n + 1, sizeof(*unplaced)), left = 0;
	int rc, used = 0;

	restore(run, given);
	rc = single_lanes_new(&run->r, *layers, false, &run->lanes, err);
	if (rc == 0) {
		place_fitting(run, pairs, n, WITH_PATHS, unplaced, &left);
	}
	for (int64_t i = 0; i < n && rc == 0; i++) {
		int layer = single_lanes_layer(run->lanes, (size_t)pairs[i]);

		used = layer >= used ? layer + 1 : used;
	}
	run->res->unplaced = (int)left;
	*layers = left == 0 && rc == 0 ? used : *layers;
	free(unplaced);
	return rc;
}

/* Routes and layers together. What fewer layers lead to is tried as well, above the bound, so that
 * more layers are never worse; more than the paths take without a limit are no use. */
static int solve_layers(struct single_run *run, const int64_t *pairs, int64_t n, struct err *err)
{
	struct flow_paths given = run->best;
	struct err why = { 0 }, first = { 0 };
	int layers = run->opt->layers, rc;

	run->best = (struct flow_paths){ 0 };
	run->res->unlimited = run->res->congestion;
	rc = count_layers(run, &given, pairs, n, &layers, &first);
	for (int k = layers; k >= 1 && !is_done(run) && is_far(run, n); k--) {
		rc = solve_with(run, &given, pairs, n, k, k == layers ? &first : &why);
	}
	flow_paths_fini(&given);
	if (run->best.v.n == 0) {
		*err = first;
		return err->code ? err->code : rc;
	}
	return 0;
}

/* ---- all of it ---- */

static int solve_flow(struct single_run *run, struct err *err)
{
	double gap = run->opt->flow_gap;
	struct mcf_options flow = {
		.gap = gap > 0 ? gap : MCF_DEFAULT_GAP,
		.max_passes = run->opt->flow_passes,
		.deadline = flow_share(&run->opt->deadline, 0.25),
		.cancel = run->opt->cancel, .is_over = run->opt->is_over,
		.arg = run->opt->arg,
	};
	int rc = mcf_run(run->p, &flow, &run->res->flow, err);

	if (rc == 0) {
		set_bound(run);
	}
	return rc;
}

/* A path up and down the escape trees is longer than others. */
static int longest_path(const struct single_run *run)
{
	int diameter = topo_diameter(run->t), n = run->p->net.n;

	diameter = diameter < 0 ? n : diameter;
	return (run->opt->layers ? 3 : 1) * diameter + SINGLE_DETOUR;
}

static int run_all(struct single_run *run, struct err *err)
{
	const struct single_options *opt = run->opt;
	struct flow_limit whole = { .deadline = opt->deadline, .cancel = opt->cancel,
				    .is_over = opt->is_over, .arg = opt->arg };
	int64_t *pairs, n;
	int rc;

	run->limit = whole;
	if (opt->layers) {
		run->limit.deadline = flow_share(&opt->deadline, 0.5);
	}
	rc = solve_flow(run, err);
	if (rc) {
		return rc;
	}
	pairs = list_pairs(&run->p->net, opt->seed, &n);
	single_routes_init(&run->r, &run->p->net, longest_path(run));
	rng_seed(&run->r.rng, opt->seed);
	rc = solve(run, pairs, n, err);
	run->limit = whole;
	if (rc == 0 && opt->layers) {
		rc = solve_layers(run, pairs, n, err);
	}
	free(pairs);
	return rc;
}

int single_path(const struct topo *t, const struct single_options *opt, struct flow_paths *out,
		struct single_result *res, struct err *err)
{
	struct single_run run = { .t = t, .opt = opt, .res = res };
	int rc;

	memset(res, 0, sizeof(*res));
	memset(out, 0, sizeof(*out));
	if (!(opt->flow_gap >= 0 && opt->tolerance >= 0 && opt->layers >= 0)) {
		return err_set(err, WEFT_EINVAL, "gap, tolerance and layers must not be negative");
	}
	rc = mcf_new(t, false, &run.p, err);
	if (rc == 0) {
		rc = run_all(&run, err);
	}
	single_lanes_free(run.lanes);
	single_routes_fini(&run.r);
	mcf_free(run.p);
	if (rc) {
		flow_paths_fini(&run.best);
	} else {
		*out = run.best;
	}
	return rc;
}
