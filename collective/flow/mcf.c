/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The flow problem: its passes and its certificates.
 *
 * A pass visits the sources in turn; each makes its tree of cheapest paths
 * again and moves flow onto it (reroute.c), at prices that follow the loads at
 * once. After a pass the multipliers go part of the way to the prices, and
 * the penalty changes when primal and dual are unequally far from their
 * optimum. Now and then distances in the prices prove a bound: what is proven
 * is the best so far, and so is the flow that is kept. After a failure the
 * flows of the old problem are the beginning (mcf_without).
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "collective/flow/private.h"
#include "lib/base/alloc.h"

/* First value of the penalty, relative to what turns a congestion into
 * prices that sum to one; its change a pass when primal and dual distances
 * are further apart than the balance. */
#define RHO_START 2.0
#define RHO_CHANGE 1.1
#define RHO_BALANCE 10.0
/* Part of the way that multipliers follow the prices after a pass: all of it
 * may cycle for ever where optimal flows abound, as on tori. */
#define TAU 0.5
/* Where a gap of so much will do, the penalty changes faster and multipliers go
 * all of the way, for so many passes: of changes of 1.1 to 2 and parts of 0.5 to
 * 1.3 these took the fewest to 1 % over GenKautz(4,1536), 1792, 2047, 2048, half
 * of those without; to a tenth of it they take a third more. */
#define ROUGH 5e-3
#define ROUGH_PASSES 30
#define RHO_ROUGH 1.5
#define TAU_ROUGH 1.0
/* Passes over means of trees cost a fifth of one, from so many sources on, and are twice as many at
 * a change of the penalty by 2: of 1.5, 2 and of first ones of 2 to 8 these took the fewest over
 * GenKautz(4,6144) and 8191. Where they are more, they do not get there. */
#define MEANS_SOURCES 64
#define MEANS_PASSES 100
#define RHO_MEANS 2.0
/* After a failure only a few arcs are far from their level, and the prices
 * around them have far to go: a larger penalty and steps beyond the whole
 * (below 2 they converge) bring them there; after so many passes as usual
 * again. Of penalties 1 to 8 and steps 1 to 1.9 these took the fewest passes
 * over fourteen links of GenKautz(4,1000). Steps that long make the loads
 * jump: once they are within so many gaps of the level, the flows of the
 * passes go by half into a mean, which is feasible as well and mostly better
 * than each. */
#define RHO_WARM 3.0
#define TAU_WARM 1.6
#define WARM_PASSES 40
#define MEAN_WITHIN 5.0

void mcf_free(struct mcf *p)
{
	if (!p) {
		return;
	}
	flow_net_fini(&p->net);
	flow_orbits_fini(&p->orbits);
	flow_demands_fini(&p->demands);
	graph_queue_fini(&p->queue);
	arrays_fini(&p->arrays);
	free(p);
}

static bool sends(const struct mcf *p, int u)
{
	bool any = !p->demands.n;

	for (int v = 0; v < p->demands.n && !any; v++) {
		any = flow_demand(&p->demands, u, v) > 0;
	}
	return any;
}

/* One representative of each orbit of terminals that send. */
static void choose_sources(struct mcf *p)
{
	const struct flow_net *net = &p->net;
	int32_t *index = x_alloc((size_t)net->n, sizeof(*index));

	arrays_add(&p->arrays, p->source, net->n);
	arrays_add(&p->arrays, p->weight, net->n);
	for (int u = 0; u < net->n; u++) {
		int r = p->orbits.orbit_of[u];

		if (!net->terminal[u] || !sends(p, u)) {
			continue;
		}
		if (r == u) {
			index[u] = p->n_sources;
			p->source[p->n_sources++] = u;
		}
		p->weight[index[r]]++;
	}
	free(index);
}

static void alloc_state(struct mcf *p)
{
	size_t n = (size_t)p->net.n, m = (size_t)p->net.m + 1;
	size_t k = (size_t)p->orbits.n_classes + 1, s = (size_t)p->n_sources;

	arrays_add(&p->arrays, p->class_cap, k);
	arrays_add(&p->arrays, p->demand, p->demands.n ? s * n : n);
	arrays_add(&p->arrays, p->flow, s * m);
	arrays_add(&p->arrays, p->parent, s * n);
	arrays_add(&p->arrays, p->order, s * n);
	arrays_add(&p->arrays, p->load, k);
	arrays_add(&p->arrays, p->mult, k);
	arrays_add(&p->arrays, p->price, k);
	arrays_add(&p->arrays, p->best_price, k);
	arrays_add(&p->arrays, p->dist, n);
	arrays_add(&p->arrays, p->arc_price, m);
	arrays_add(&p->arrays, p->walk, n + 1);
	arrays_add(&p->arrays, p->on_tree, n);
	arrays_add(&p->arrays, p->on_walk, n);
	arrays_add(&p->arrays, p->walk_pos, n);
	arrays_add(&p->arrays, p->coef, k);
	arrays_add(&p->arrays, p->touched, 2 * n + 2);
	graph_queue_init(&p->queue, p->net.n);
}

static void fill_demands(struct mcf *p)
{
	const struct flow_demands *d = &p->demands;

	for (int v = 0; v < p->net.n && !d->n; v++) {
		p->demand[v] = p->net.terminal[v];
	}
	for (int s = 0; s < p->n_sources && d->n; s++) {
		for (int v = 0; v < d->n; v++) {
			p->demand[(size_t)s * p->net.n + v] =
				(double)flow_demand(d, p->source[s], v) / (double)d->largest;
		}
	}
}

/* Hop trees of all sources; every terminal that gets something must be in each. */
static int plant_trees(struct mcf *p, struct err *err)
{
	for (int s = 0; s < p->n_sources; s++) {
		const int32_t *parent = mcf_parent_of(p, s);

		flow_tree_init(p, s);
		for (int v = 0; v < p->net.n; v++) {
			if (mcf_demand_of(p, s)[v] > 0 && parent[v] == -2) {
				return err_set(err, WEFT_EINFEASIBLE,
					       "no path from node %d to node "
					       "%d", p->source[s], v);
			}
		}
	}
	return 0;
}

static bool all_alike(const struct flow_demands *d)
{
	for (int u = 0; u < d->n; u++) {
		for (int v = 0; v < d->n; v++) {
			if (u != v && flow_demand(d, u, v) != d->largest) {
				return false;
			}
		}
	}
	return true;
}

/* Ranks must be the first nodes, as the rows of the matrix are. */
static int take_demands(struct mcf *p, const struct topo *t, const struct flow_demands *d,
			struct err *err)
{
	int rc;

	if (!d) {
		return 0;
	}
	if (d->n != p->net.terminals) {
		return err_set(err, WEFT_EINVAL, "demands of %d ranks on a digraph of %d",
			       d->n, p->net.terminals);
	}
	rc = topo_check_order(t, err);
	if (rc == 0 && !all_alike(d)) {
		flow_demands_copy(d, &p->demands);
	}
	return rc;
}

static int init(struct mcf *p, const struct topo *t, const struct flow_demands *demands,
		const bool *dropped, bool symmetry, const struct topo_group *g, struct err *err)
{
	int rc;

	if ((rc = flow_net_from(t, dropped, &p->net, err)) ||
	    (rc = take_demands(p, t, demands, err))) {
		return rc;
	}
	flow_orbits_find(&p->net, mcf_demands(p), symmetry, g, &p->orbits);
	if (!flow_orbits_check(&p->net, mcf_demands(p), &p->orbits)) {
		return err_set(err, WEFT_EVERIFY, "the symmetry that was found "
			       "is not one of this digraph");
	}
	choose_sources(p);
	if ((int64_t)p->n_sources * p->net.m > MCF_MAX_FLOWS) {
		return err_set(err, WEFT_ELIMIT,
			       "a flow of %d sources over %d arcs: not supported, "
			       "only up to %d sources times arcs", p->n_sources, p->net.m,
			       MCF_MAX_FLOWS);
	}
	alloc_state(p);
	for (int a = 0; a < p->net.m; a++) {
		p->class_cap[p->orbits.arc_class[a]] += (double)p->net.units[a];
	}
	fill_demands(p);
	return plant_trees(p, err);
}

static int new_problem(const struct topo *t, const struct flow_demands *demands, bool symmetry,
		       const struct topo_group *g, struct mcf **out, struct err *err)
{
	struct mcf *p = x_new(1, sizeof(*p));
	int rc;

	*out = NULL;
	rc = init(p, t, demands, NULL, symmetry, g, err);
	if (rc) {
		mcf_free(p);
		return rc;
	}
	*out = p;
	return 0;
}

int mcf_new(const struct topo *t, bool symmetry, struct mcf **out, struct err *err)
{
	return new_problem(t, NULL, symmetry, NULL, out, err);
}

int mcf_new_demands(const struct topo *t, bool symmetry, const struct flow_demands *demands,
		    struct mcf **out, struct err *err)
{
	return new_problem(t, demands, symmetry, NULL, out, err);
}

int mcf_new_under(const struct topo *t, const struct topo_group *g,
		  const struct flow_demands *demands, struct mcf **out, struct err *err)
{
	return new_problem(t, demands, false, g, out, err);
}

int mcf_sources(const struct mcf *p)
{
	return p->n_sources;
}

/* Depths of a tree of n nodes whose root has d children and the others `on`,
 * over d. */
static double depths_over(int n, int d, int on)
{
	double depths = 0, level = d;
	int64_t left = n - 1;

	for (int depth = 1; left > 0; depth++) {
		level = fmin(level, (double)left);
		depths += depth * level;
		left -= (int64_t)level;
		level *= on;
	}
	return depths / d;
}

double mcf_degree_bound(int n, int d)
{
	return depths_over(n, d, d);
}

double mcf_edge_bound(int n, int d)
{
	/* One edge a node joins no more than two. */
	return depths_over(n, d, d > 1 ? d - 1 : 1);
}

/* ---- passes ---- */

static double total_cap(const struct mcf *p)
{
	double sum = 0;

	for (int k = 0; k < p->orbits.n_classes; k++) {
		sum += p->class_cap[k];
	}
	return sum;
}

/* Equal prices a unit of capacity. */
static void set_equal_prices(struct mcf *p)
{
	double sum = total_cap(p);

	for (int k = 0; k < p->orbits.n_classes; k++) {
		p->mult[k] = p->price[k] = 1 / sum;
	}
}

/* Equal prices, all demands on their cheapest paths. */
static void start(struct mcf *p)
{
	set_equal_prices(p);
	for (int s = 0; s < p->n_sources; s++) {
		flow_tree_route(p, s);
	}
	flow_measure(p);
	p->rho = RHO_START / total_cap(p) / flow_congestion(p);
	p->started = true;
}

void mcf_prove(struct mcf *p, const double *price)
{
	const int32_t *class = p->orbits.arc_class;
	double sum = 0, scale = 0, bound;

	for (int k = 0; k < p->orbits.n_classes; k++) {
		scale += p->class_cap[k] * price[k];
	}
	for (int a = 0; a < p->net.m; a++) {
		p->arc_price[a] = price[class[a]];
	}
	for (int s = 0; s < p->n_sources; s++) {
		const double *demand = mcf_demand_of(p, s);
		double one = 0;

		flow_tree_update(p, s);
		for (int v = 0; v < p->net.n; v++) {
			one += demand[v] > 0 ? demand[v] * p->dist[v] : 0;
		}
		sum += p->weight[s] * one;
	}
	bound = sum / scale;
	p->last_bound = bound;
	if (bound > p->best_bound) {
		p->best_bound = bound;
		memcpy(p->best_price, price, (size_t)p->orbits.n_classes * sizeof(*p->best_price));
	}
}

/* Visits all sources; true when it was broken off. */
static bool pass(struct mcf *p, const struct flow_limit *limit, struct mcf_result *res)
{
	int every = p->n_sources / 8 + 1;

	for (int s = 0; s < p->n_sources; s++) {
		if (s % every == 0) {
			flow_price(p);
		}
		flow_improve(p, s);
		if (s % 16 == 0 && (res->stop = flow_limit_stop(limit)) != MCF_REACHED) {
			return true;
		}
	}
	return false;
}

static double largest_use(const struct mcf *p, const double *load)
{
	double worst = 0;

	for (int k = 0; k < p->orbits.n_classes; k++) {
		double use = load[k] / p->class_cap[k];

		worst = fmax(worst, isnan(use) ? HUGE_VAL : use);
	}
	return worst;
}

double flow_congestion(const struct mcf *p)
{
	return largest_use(p, p->load);
}

/* Of the flow or of the mean of flows, whichever is better. */
static double min_congestion(const struct mcf *p)
{
	double u = flow_congestion(p);

	return p->averages ? fmin(u, largest_use(p, p->mean_load)) : u;
}

void mcf_set_gap(struct mcf *p, struct mcf_result *res)
{
	double u = min_congestion(p);

	res->congestion = res->congestion > 0 ? fmin(res->congestion, u) : u;
	res->bound = p->best_bound;
	res->gap = res->bound > 0 ? res->congestion / res->bound - 1
				  : HUGE_VAL;
	res->gap = fmax(res->gap, 0);
	res->passes = p->passes;
}

/* A large penalty brings the flow below the level soon, a small one the
 * prices to their optimum: whichever is behind is helped. */
static void adapt(struct mcf *p, double change)
{
	double primal = flow_congestion(p) - p->level;
	double dual = p->level - p->last_bound;

	if (primal > RHO_BALANCE * dual) {
		p->rho *= change;
	} else if (dual > RHO_BALANCE * primal) {
		p->rho /= change;
	}
}

static bool is_warm(const struct mcf *p)
{
	return p->passes < p->warm_passes;
}

/* Takes the flow into the mean. */
static void average(struct mcf *p, double gap)
{
	size_t n = (size_t)p->n_sources * p->net.m;
	size_t k = (size_t)p->orbits.n_classes;

	if (flow_congestion(p) > p->level * (1 + MEAN_WITHIN * gap)) {
		p->averages = false;
		return;
	}
	if (!p->averages) {
		memcpy(p->mean, p->flow, n * sizeof(*p->mean));
		memcpy(p->mean_load, p->load, k * sizeof(*p->mean_load));
		p->averages = true;
		return;
	}
	for (size_t i = 0; i < n; i++) {
		p->mean[i] = (p->mean[i] + p->flow[i]) / 2;
	}
	for (size_t i = 0; i < k; i++) {
		p->mean_load[i] = (p->mean_load[i] + p->load[i]) / 2;
	}
}

/* The mean becomes the flow where it is better. */
static void adopt_mean(struct mcf *p)
{
	double *flow = p->flow;

	if (p->averages && min_congestion(p) < flow_congestion(p)) {
		p->flow = p->mean;
		p->mean = flow;
		flow_measure(p);
	}
	p->averages = false;
}

/* A proof costs a third of a pass. The level is no bound but near one, so
 * after a failure, where the penalty stays, proofs wait for the flow. */
static bool wants_proof(const struct mcf *p, double gap)
{
	return !is_warm(p) || min_congestion(p) <= p->level * (1 + gap);
}

/* Multipliers go a part of the way to the prices. */
static void follow(struct mcf *p, double tau)
{
	for (int k = 0; k < p->orbits.n_classes; k++) {
		p->mult[k] += tau * (p->price[k] - p->mult[k]);
	}
}

static void run_passes(struct mcf *p, const struct mcf_options *opt,
		       const struct flow_limit *limit, struct mcf_result *res)
{
	int max_passes = opt->max_passes > 0 ? opt->max_passes : MCF_MAX_PASSES;

	for (int i = 0; i < max_passes; i++) {
		bool over = pass(p, limit, res);
		bool rough = opt->gap >= ROUGH && p->passes < ROUGH_PASSES;
		double tau = is_warm(p) ? TAU_WARM : rough ? TAU_ROUGH : TAU;

		flow_measure(p);
		flow_price(p);
		if (is_warm(p) && p->mean && !over) {
			average(p, opt->gap);
		}
		if ((!over && wants_proof(p, opt->gap)) || p->best_bound == 0) {
			mcf_prove(p, p->price);
		}
		p->passes++;
		mcf_set_gap(p, res);
		if (res->gap <= opt->gap) {
			res->stop = MCF_REACHED;
			return;
		}
		if (over) {
			return;
		}
		follow(p, tau);
		if (!is_warm(p)) {
			adapt(p, rough ? RHO_ROUGH : RHO_CHANGE);
		}
	}
	mcf_prove(p, p->price);
	mcf_set_gap(p, res);
	res->stop = MCF_PASSES;
}

int mcf_run(struct mcf *p, const struct mcf_options *opt, struct mcf_result *res, struct err *err)
{
	struct flow_limit limit;

	if (!(opt->gap >= 0)) {
		return err_set(err, WEFT_EINVAL, "the gap must not be negative");
	}
	limit = flow_limit_of(opt);
	memset(res, 0, sizeof(*res));
	if (!p->started) {
		start(p);
		mcf_prove(p, p->price);
	}
	mcf_set_gap(p, res);
	if (res->gap > opt->gap) {
		run_passes(p, opt, &limit, res);
		adopt_mean(p);
	}
	return 0;
}

/* ---- without the flow ---- */

/* Loads of flows jump from pass to pass, and a mean of flows is one as well: in these the last one
 * has such shares, the others less and less. */
static const double shares[] = { 1, 0.5, 0.3, 0.2 };

#define MEANS ((int)(sizeof(shares) / sizeof(shares[0])))

/* The least congestion of the means, after they took in the loads of a pass. */
static double take_loads(const struct mcf *p, double *means, bool first)
{
	double best = HUGE_VAL;

	for (int i = 0; i < MEANS; i++, means += p->orbits.n_classes) {
		for (int k = 0; k < p->orbits.n_classes; k++) {
			means[k] += (first ? 1 : shares[i]) * (p->load[k] - means[k]);
		}
		best = fmin(best, largest_use(p, means));
	}
	return best;
}

/* Passes over means of trees, until they have reached the gap, a limit, or are too many: false. */
static bool run_means(struct mcf *p, const struct mcf_options *opt, struct mcf_result *res)
{
	struct flow_limit limit = flow_limit_of(opt);
	struct flow_means *f = flow_means_new(p);
	double *means = x_new((size_t)p->orbits.n_classes * MEANS + 1, sizeof(*means));
	int most = opt->max_passes > 0 && opt->max_passes < MEANS_PASSES ? opt->max_passes
									 : MEANS_PASSES;
	bool over = false;

	set_equal_prices(p);
	flow_means_pass(f);
	p->rho = RHO_START / total_cap(p) / flow_congestion(p);
	res->congestion = flow_congestion(p);
	res->stop = MCF_PASSES;
	for (int i = 0; i < most && res->stop == MCF_PASSES && !over; i++) {
		p->last_bound = flow_means_pass(f);
		flow_price(p);
		p->passes++;
		res->congestion = fmin(res->congestion, take_loads(p, means, i == 0));
		follow(p, TAU_ROUGH);
		adapt(p, RHO_MEANS);
		over = flow_limit_over(&limit);
		if (over || res->congestion <= p->last_bound * (1 + opt->gap)) {
			mcf_prove(p, p->price);
			mcf_set_gap(p, res);
			res->stop = res->gap <= opt->gap ? MCF_REACHED
				    : over ? flow_limit_stop(&limit) : MCF_PASSES;
		}
	}
	flow_means_free(f);
	free(means);
	return res->stop != MCF_PASSES;
}

int mcf_rate(const struct topo *t, const struct flow_demands *demands,
	     const struct mcf_options *opt, struct mcf_result *res, struct err *err)
{
	struct mcf *p = NULL;
	int rc = new_problem(t, demands, true, NULL, &p, err);

	memset(res, 0, sizeof(*res));
	if (rc == 0 && (!(opt->gap >= ROUGH) || p->n_sources < MEANS_SOURCES ||
			!run_means(p, opt, res))) {
		rc = mcf_run(p, opt, res, err);
	}
	mcf_free(p);
	return rc;
}

/* The flow of which only the bound is wanted: how near it comes, or after so many arcs of all
 * sources and passes is left. */
#define BOUND_GAP 1e-3
#define BOUND_WORK (INT64_C(1) << 26)
#define BOUND_PASSES 500

double mcf_bound(const struct topo *t)
{
	struct mcf_options opt = { .gap = BOUND_GAP };
	struct mcf_result res = { 0 };
	struct mcf *flow = NULL;
	int64_t most;

	if (topo_ranks(t) < 2 || mcf_new(t, true, &flow, NULL)) {
		return 0;
	}
	most = BOUND_WORK / ((int64_t)mcf_sources(flow) * (topo_n(t) + topo_m(t)));
	opt.max_passes = most < BOUND_PASSES ? (int)most : BOUND_PASSES;
	if (most == 0 || mcf_run(flow, &opt, &res, NULL)) {
		res.bound = 0;
	}
	mcf_free(flow);
	return res.bound;
}

/* ---- after a failure ---- */

/* Image of a flow under an automorphism. */
static void map_flow(const struct flow_net *net, const int32_t *g, const double *from, double *to)
{
	for (int a = 0; a < net->m; a++) {
		to[flow_net_arc(net, g[net->src[a]], g[net->dst[a]])] = from[a];
	}
}

/* Flows of all sources, solved or moved there by automorphisms, into
 * all[n][m] (zeroed; rows of nodes that are no terminals stay zero). */
static void expand_flow(const struct mcf *p, double *all)
{
	const struct flow_net *net = &p->net;
	size_t m = (size_t)net->m;
	int32_t *queue = x_alloc((size_t)net->n, sizeof(*queue));
	bool *known = x_new((size_t)net->n, sizeof(*known));
	int head = 0, tail = 0;

	for (int s = 0; s < p->n_sources; s++) {
		memcpy(all + p->source[s] * m, mcf_flow_of(p, s), m * sizeof(*all));
		known[p->source[s]] = true;
		queue[tail++] = p->source[s];
	}
	while (head < tail) {
		int u = queue[head++];

		for (size_t i = 0; i < p->orbits.gens.n; i++) {
			int v = p->orbits.gens.v[i][u];

			if (!known[v]) {
				known[v] = true;
				queue[tail++] = v;
				map_flow(net, p->orbits.gens.v[i], all + u * m, all + v * m);
			}
		}
	}
	free(queue);
	free(known);
}

/* Flow of q on the arcs that it still has; what went over the others is sent
 * to their heads along q's trees and withdrawn from their tails. */
static void inherit(const struct mcf *p, struct mcf *q, const double *all)
{
	const struct flow_net *old = &p->net, *net = &q->net;

	for (int s = 0; s < q->n_sources; s++) {
		const double *from = all + q->source[s] * (size_t)old->m;
		double *flow = mcf_flow_of(q, s);

		for (int a = 0; a < old->m; a++) {
			int b = flow_net_arc(net, old->src[a], old->dst[a]);

			if (b >= 0) {
				flow[b] = from[a];
			}
		}
		for (int pull = 0; pull < 2; pull++) {
			for (int a = 0; a < old->m; a++) {
				if (from[a] <= 0 || flow_net_arc(net, old->src[a],
								 old->dst[a]) >= 0) {
					continue;
				}
				if (pull) {
					flow_withdraw(q, s, old->src[a], from[a]);
				} else {
					flow_send(q, s, old->dst[a], from[a]);
				}
			}
		}
	}
}

static void inherit_prices(const struct mcf *p, struct mcf *q)
{
	const struct flow_net *old = &p->net;
	double sum = 0;

	for (int a = 0; a < old->m; a++) {
		int b = flow_net_arc(&q->net, old->src[a], old->dst[a]);

		if (b >= 0) {
			q->mult[b] = p->price[p->orbits.arc_class[a]];
			sum += q->mult[b] * q->class_cap[b];
		}
	}
	for (int b = 0; b < q->net.m; b++) {
		q->mult[b] = sum > 0 ? q->mult[b] / sum
				     : 1 / (total_cap(q) * q->net.m);
	}
	memcpy(q->price, q->mult, (size_t)q->net.m * sizeof(*q->price));
	q->rho = RHO_WARM * p->rho;
	q->warm_passes = WARM_PASSES;
	q->level = p->level;
}

static void warm_start(const struct mcf *p, struct mcf *q)
{
	double *all = x_new((size_t)p->net.n * p->net.m + 1, sizeof(*all));

	arrays_add(&q->arrays, q->mean, (size_t)q->n_sources * q->net.m + 1);
	arrays_add(&q->arrays, q->mean_load, q->orbits.n_classes + 1);
	expand_flow(p, all);
	inherit(p, q, all);
	free(all);
	inherit_prices(p, q);
	flow_measure(q);
	mcf_prove(q, q->price);
	q->started = true;
}

int mcf_without(const struct mcf *p, const struct topo *t, const bool *dropped,
		struct mcf **out, struct err *err)
{
	struct mcf *q = x_new(1, sizeof(*q));
	int rc;

	*out = NULL;
	rc = topo_n(t) == p->net.n && topo_m(t) == p->net.topo_arcs
		     ? init(q, t, mcf_demands(p), dropped, false, NULL, err)
		     : err_set(err, WEFT_EINVAL, "the digraph is not the one "
			       "that was solved");
	if (rc == 0 && p->started) {
		warm_start(p, q);
	}
	if (rc) {
		mcf_free(q);
		return rc;
	}
	*out = q;
	return 0;
}

/* ---- limits ---- */

struct flow_limit flow_limit_of(const struct mcf_options *opt)
{
	return (struct flow_limit){ .deadline = opt->deadline, .cancel = opt->cancel,
				    .is_over = opt->is_over, .arg = opt->arg };
}

struct deadline flow_share(const struct deadline *d, double share)
{
	return deadline_part(d, (int64_t)((double)deadline_left_ns(d) * share));
}

bool flow_limit_is_set(const struct flow_limit *limit)
{
	return limit->deadline.at_ns || limit->cancel || limit->is_over;
}

enum mcf_stop flow_limit_stop(const struct flow_limit *limit)
{
	if (limit->cancel && *limit->cancel) {
		return MCF_CANCELED;
	}
	if ((limit->is_over && limit->is_over(limit->arg)) ||
	    deadline_passed(&limit->deadline)) {
		return MCF_TIME;
	}
	return MCF_REACHED;
}

bool flow_limit_over(const struct flow_limit *limit)
{
	return flow_limit_stop(limit) != MCF_REACHED;
}
