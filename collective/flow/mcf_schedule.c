/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a flow to a schedule, in three steps that each lose a little of the
 * rate: weighted paths of every pair, whole chunks on the paths, and steps in
 * which the chunks cross their arcs. Each is tried with growing effort until
 * its loss is within what is allowed; the time limit is shared out between
 * them, and what is left over by one is there for the next.
 */
#include "collective/flow/private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"

/* Congestion that chunks and steps are measured by: of the shares, where
 * paths are disjoint. */
static double target_of(const struct mcf_sched_info *info)
{
	return fmax(info->flow.congestion, info->routed);
}

/* Chunks of all pairs with demands that are always worth it. */
#define FEW_CHUNKS 8192

/* The most chunks: with demands as many in all as the pairs of a uniform all-to-all have with
 * MCF_SCHED_CHUNKS each. */
static int max_chunks_for(const struct mcf_sched_options *opt)
{
	const struct flow_demands *d = opt->demands;
	double sum = 0, limit;

	if (opt->max_chunks || !d) {
		return opt->max_chunks ? opt->max_chunks : MCF_SCHED_CHUNKS;
	}
	for (int64_t i = 0; i < (int64_t)d->n * d->n; i++) {
		sum += (double)d->size[i];
	}
	limit = fmax(FEW_CHUNKS, MCF_SCHED_CHUNKS * (double)d->n * (d->n - 1)) *
		(double)d->largest / sum;
	return limit < COLL_MAX_CHUNKS ? (int)limit : COLL_MAX_CHUNKS;
}

/* Smallest P within the loss, else the best so far when time is over, else
 * the best. */
static void choose_chunks(const struct flow_net *net, struct flow_paths *paths, double congestion,
			  const struct mcf_sched_options *opt, const struct flow_limit *limit,
			  int *chunks)
{
	int max_chunks = max_chunks_for(opt);
	double min = HUGE_VAL, use;

	for (int p = 1; p <= max_chunks; p += 1 + p / 8) {
		use = flow_paths_round(net, paths, p);
		if (use / p < min * (1 - 1e-9)) {
			min = use / p;
			*chunks = p;
		}
		if (min <= congestion * (1 + opt->loss) || flow_limit_over(limit)) {
			break;
		}
	}
}

/* In hops, of the paths with chunks; of all before there are any. */
static int longest_path(const struct flow_paths *paths)
{
	int longest = 0, of_all = 0;

	for (size_t i = 0; i < paths->v.n; i++) {
		const struct flow_path *q = &paths->v.v[i];

		of_all = q->n_arcs > of_all ? q->n_arcs : of_all;
		if (q->chunks > 0 && q->n_arcs > longest) {
			longest = q->n_arcs;
		}
	}
	return longest > 0 ? longest : of_all;
}

/* Rounds to P chunks and chooses their steps; *use of an arc, and *sum of
 * the steps, both a unit of demand. net: what the paths are over. */
static int try_steps(const struct topo *t, const struct flow_net *net, struct flow_paths *paths,
		     int chunks, const struct flow_steps_options *opt, struct flow_steps **out,
		     double *use, double *sum, struct err *err)
{
	int rc;

	*out = NULL;
	*sum = HUGE_VAL;
	*use = flow_paths_round(net, paths, chunks);
	rc = flow_steps_new(t, net, paths, out, err);
	if (rc == 0) {
		rc = flow_steps_choose(*out, *use, opt, sum, err);
	}
	*sum /= chunks;
	*use /= chunks;
	return rc;
}

/* Hops of paths up to which more chunks are tried although the cost of steps decides. */
#define FEW_HOPS (1 << 18)

/* Multiples of P chunks, as long as steps lose more than they may: smaller
 * chunks fill the arcs sooner; where steps cost, as long as they gain. *best: the steps
 * chosen. */
static int choose_multiple(const struct topo *t, const struct flow_net *net,
			   struct flow_paths *paths,
			   const struct mcf_sched_options *opt, const struct flow_limit *limit,
			   struct mcf_sched_info *info, struct flow_steps **best, struct err *err)
{
	struct flow_steps_options steps = {
		.loss = opt->loss, .limit = *limit,
		.max_steps = opt->max_steps ? opt->max_steps : MCF_SCHED_STEPS,
	};
	double enough = target_of(info) * (1 + 2 * opt->loss) +
			longest_path(paths) * opt->step_cost;
	int max_chunks = max_chunks_for(opt);
	int first = info->chunks, rc = 0;
	double min = HUGE_VAL;

	for (int k = 1; k * first <= max_chunks && rc == 0; k *= 2) {
		double use, sum, before = min;
		struct flow_steps *st;

		steps.step_cost = opt->step_cost * k * first;
		rc = try_steps(t, net, paths, k * first, &steps, &st, &use, &sum, err);
		if (rc == 0 && sum < min * (1 - 1e-9)) {
			struct flow_steps *old = *best;

			*best = st;
			st = old;
			min = sum;
			info->chunks = k * first;
			info->chunked = use;
		}
		flow_steps_free(st);
		if (rc == WEFT_ELIMIT && k > 1) {
			rc = 0;	/* finer chunks are too many */
			break;
		}
		if (min <= enough || flow_limit_over(limit) ||
		    (opt->step_cost > 0 && (paths->arcs.n > FEW_HOPS ||
					    min > before * (1 - opt->loss)))) {
			break;
		}
	}
	return rc;
}

/* The chunks of every pair. */
static int set_demands(const struct flow_paths *paths, int chunks, struct coll_sched *s,
		       struct err *err)
{
	const struct flow_demands *d = paths->demands;
	size_t all = d ? (size_t)d->n * d->n : 0;
	int32_t *v;
	int rc;

	if (!d) {
		return 0;
	}
	v = x_alloc(all, sizeof(*v));
	for (size_t i = 0; i < all; i++) {
		v[i] = flow_pair_chunks(paths, (int32_t)i, chunks);
	}
	rc = coll_set_demands(s, v, err);
	free(v);
	return rc;
}

/* An empty schedule with the group of q and the demands of the paths. */
static int begin(const struct topo *t, const struct flow_quotient *q,
		 const struct flow_paths *paths, int chunks, struct coll_sched **out,
		 struct err *err)
{
	struct topo_group *group = NULL;
	struct topo *copy = NULL;
	int rc;

	if ((rc = topo_copy(t, &copy, err)) ||
	    (rc = coll_new(COLL_ALLTOALL, copy, chunks, 0, 0, out, err)) ||
	    (rc = topo_group_copy(q->group, &group, err)) ||
	    (rc = coll_set_group(*out, group, err))) {
		return rc;
	}
	return set_demands(paths, chunks, *out, err);
}

/* ---- hops in any order ---- */

/* Chunks up to which fewer steps are worth more of them. */
#define SHOP_CHUNKS 16

/* Steps of a quantum each. */
struct shop_choice {
	int chunks, steps;
	int64_t quantum;
	double sum;		/* steps x quantum, a unit of demand */
	double cost;		/* with that of the steps */
};

/* Steps from those of the longest path on to so many more whose sum and cost is at most
 * `enough`, else those with the least, when better than *best. */
static void try_shop(const struct flow_quotient *q, struct flow_paths *paths, int chunks,
		     double enough, int more, const struct mcf_sched_options *opt,
		     struct shop_choice *best)
{
	int longest, max_steps = opt->max_steps ? opt->max_steps : MCF_SCHED_STEPS;

	flow_paths_round(&q->net, paths, chunks);
	longest = longest_path(paths);
	for (int k = longest; k <= longest + more && k <= max_steps && best->cost > enough; k++) {
		int64_t quantum = flow_shop_quantum(q, paths, k);
		double sum = (double)quantum * k / chunks, cost = sum + k * opt->step_cost;

		if (cost < best->cost * (1 - 1e-9)) {
			*best = (struct shop_choice){ chunks, k, quantum, sum, cost };
		}
	}
}

/* As many steps as the longest path has hops, with the fewest chunks within the loss; else
 * more steps, up to twice as many; else the best. The paths have their chunks then. */
static int choose_shop(const struct flow_quotient *q, struct flow_paths *paths,
		       const struct mcf_sched_options *opt, const struct flow_limit *limit,
		       struct mcf_sched_info *info, struct shop_choice *best, struct err *err)
{
	int max_chunks = max_chunks_for(opt);
	int max_steps = opt->max_steps ? opt->max_steps : MCF_SCHED_STEPS;
	double enough = target_of(info) * (1 + opt->loss) + longest_path(paths) * opt->step_cost;

	*best = (struct shop_choice){ .cost = HUGE_VAL };
	for (int more = 0; more <= 1; more++) {
		int last = more || max_chunks < SHOP_CHUNKS ? max_chunks : SHOP_CHUNKS;

		for (int p = 1; p <= last && best->cost > enough; p += 1 + p / 8) {
			try_shop(q, paths, p, enough, more * longest_path(paths), opt, best);
			if (flow_limit_over(limit) && best->chunks) {
				more = 1;
				break;
			}
		}
	}
	if (!best->chunks) {
		return err_set(err, WEFT_ELIMIT, "all-to-all takes more than %d steps", max_steps);
	}
	info->chunked = flow_paths_round(&q->net, paths, best->chunks) / best->chunks;
	info->chunks = best->chunks;
	info->steps = best->steps;
	info->stepped = best->sum;
	return 0;
}

/* Proves the schedule that emit fills. */
static int make_shop(const struct topo *t, const struct flow_quotient *q,
		     struct flow_paths *paths, const struct mcf_sched_options *opt,
		     const struct flow_limit *limit, struct mcf_sched_info *info,
		     struct coll_sched **out, struct err *err)
{
	struct shop_choice best;
	int rc;

	if ((rc = choose_shop(q, paths, opt, limit, info, &best, err)) ||
	    (rc = begin(t, q, paths, info->chunks, out, err)) ||
	    (rc = flow_shop_emit(q, paths, best.steps, best.quantum, *out, err)) ||
	    (rc = coll_finish(*out, err))) {
		return rc;
	}
	return coll_prove(*out, NULL, err);
}

/* ---- hops in their order ---- */

static int make_steps(const struct topo *t, const struct flow_net *net,
		      const struct flow_quotient *q, const struct flow_paths *paths,
		      const struct flow_steps *st, struct mcf_sched_info *info,
		      struct coll_sched **out, struct err *err)
{
	int rc = begin(t, q, paths, info->chunks, out, err);

	if (rc == 0) {
		rc = flow_steps_emit(st, q, net, *out, &info->steps, &info->stepped, err);
	}
	info->stepped /= info->chunks;
	if (rc || (rc = coll_finish(*out, err))) {
		return rc;
	}
	return coll_prove(*out, NULL, err);
}

/* A chunk of every pair needs as many transfers as its hops, however it
 * goes; pairs of the first terminal of an orbit are kept. */
static int check_size(const struct topo *t, const struct topo_group *g,
		      const struct flow_demands *d, struct err *err)
{
	int n = topo_n(t);
	int32_t *dist = x_alloc((size_t)n, sizeof(*dist));
	int64_t hops = 0;

	for (int u = 0; u < n && hops <= COLL_MAX_XFERS; u++) {
		if (topo_group_first(g, u) != u) {
			continue;
		}
		topo_bfs(t, u, dist);
		for (int v = 0; v < n; v++) {
			hops += dist[v] > 0 && (!d || flow_demand(d, u, v) > 0) ? dist[v] : 0;
		}
	}
	free(dist);
	return hops <= COLL_MAX_XFERS
		       ? 0
		       : err_set(err, WEFT_ELIMIT, "an all-to-all on these %d "
				 "nodes takes more than %d transfers, the most "
				 "a schedule holds", n, COLL_MAX_XFERS);
}

/* Where single paths are searched for; beyond, the flow's are rounded. */
#define SINGLE_MOST 256

static bool is_single(const struct topo *t, const struct mcf_sched_options *opt)
{
	return opt->paths == MCF_PATHS_SHORTEST ||
	       (opt->paths == MCF_PATHS_SINGLE && topo_ranks(t) <= SINGLE_MOST);
}

/* Only flows know symmetry; what is chosen pair by pair, and what goes on from
 * an older flow, does not. */
static bool is_symmetric(const struct topo *t, const struct mcf_sched_options *opt)
{
	return !is_single(t, opt) && opt->paths != MCF_PATHS_DISJOINT && !opt->before;
}

static int find_single(const struct topo *t, const struct mcf_sched_options *opt,
		       const struct mcf_options *flow, struct flow_paths *paths,
		       struct mcf_sched_info *info, struct err *err)
{
	struct single_options one = {
		/* Without a limit the integer program may never end. */
		.effort = opt->paths == MCF_PATHS_SHORTEST ? SINGLE_SHORTEST
			: flow->deadline.at_ns ? SINGLE_INTEGER : SINGLE_SEARCH,
		.flow_gap = flow->gap, .flow_passes = flow->max_passes,
		.tolerance = opt->loss,
		.deadline = flow->deadline, .cancel = flow->cancel,
		.is_over = flow->is_over, .arg = flow->arg,
	};
	struct single_result single;
	int rc = single_path(t, &one, paths, &single, err);

	info->flow = single.flow;
	info->routed = single.congestion;
	info->routed_bound = single.bound;
	return rc;
}

static int find_disjoint(const struct mcf *p, const struct mcf_options *flow,
			 const struct flow_limit *limit, struct flow_paths *paths,
			 struct mcf_sched_info *info, struct err *err)
{
	struct balance_result res = { 0 };
	int rc = disjoint_paths(&p->net, paths, err);

	if (rc == 0) {
		balance_paths(&p->net, flow->gap, limit, paths, &res);
	}
	info->routed = res.congestion;
	info->routed_bound = res.bound;
	return rc;
}

/* The paths, and what is known of the flow behind them. */
static int find_paths(const struct topo *t, struct mcf *p, const struct mcf_sched_options *opt,
		      const struct flow_limit *limit, struct flow_paths *paths,
		      struct mcf_sched_info *info, struct err *err)
{
	struct mcf_options flow = opt->flow;
	int rc;

	flow.deadline = flow_share(&limit->deadline, MCF_SCHED_FLOW_TIME);
	if (is_single(t, opt)) {
		return find_single(t, opt, &flow, paths, info, err);
	}
	rc = mcf_solve_form(p, opt->form, &flow, &info->flow, err);
	if (rc) {
		return rc;
	}
	if (opt->paths == MCF_PATHS_DISJOINT) {
		return find_disjoint(p, &flow, limit, paths, info, err);
	}
	flow_paths_cut(p, limit, paths);
	return 0;
}

/* The flow of before without the arcs dropped; numbered as t, which has the
 * others in the same order. */
static int start_warm(const struct topo *t, const struct mcf_sched_options *opt, struct mcf **out,
		      struct err *err)
{
	struct flow_net net = { 0 };
	int rc = mcf_without(opt->before, opt->before_topo, opt->dropped, out, err);

	if (rc == 0) {
		rc = flow_net_from(t, NULL, &net, err);
	}
	if (rc == 0 && net.m != (*out)->net.m) {
		rc = err_set(err, WEFT_EINVAL, "the digraph is not what is "
			     "left of the one that was solved");
	}
	if (rc == 0) {
		struct flow_net old = (*out)->net;

		(*out)->net = net;
		net = old;
	}
	flow_net_fini(&net);
	return rc;
}

/* Hops may come in any order where a group that moves any terminal to any other is abelian. */
static bool any_order(const struct topo_group *g)
{
	int n = topo_group_generators(g), order;

	for (int i = 0; i < n; i++) {
		int a = topo_group_between(g, 0, topo_group_generator(g, i, &order)[0]);

		for (int k = 0; k < i; k++) {
			int b = topo_group_between(g, 0, topo_group_generator(g, k, &order)[0]);

			if (topo_group_product(g, a, b) != topo_group_product(g, b, a)) {
				return false;
			}
		}
	}
	return topo_group_orbits(g) == 1;
}

static int check_demands(const struct topo *t, const struct mcf_sched_options *opt,
			 struct err *err)
{
	if (opt->demands->n != topo_ranks(t)) {
		return err_set(err, WEFT_EINVAL, "demands of %d ranks on a digraph of %d",
			       opt->demands->n, topo_ranks(t));
	}
	return opt->paths == MCF_PATHS_FLOW && !opt->before
		       ? 0 : err_set(err, WEFT_EUNSUPPORTED, "unlike demands on chosen paths, or "
				     "after a failure: not supported");
}

int mcf_schedule(const struct topo *t, const struct mcf_sched_options *opt, struct coll_sched **out,
		 struct mcf_sched_info *info, struct err *err)
{
	struct mcf_sched_info mine = { 0 };
	struct flow_limit limit = flow_limit_of(&opt->flow);
	struct flow_quotient q = { 0 };
	struct flow_paths paths = { 0 };
	struct flow_steps *steps = NULL;
	const struct flow_net *net;
	struct mcf *p = NULL;
	int rc;

	*out = NULL;
	if (opt->kept) {
		*opt->kept = NULL;
	}
	if ((rc = topo_check_plain(t, "schedules of flows", err)) ||
	    (opt->demands && (rc = check_demands(t, opt, err))) ||
	    (is_symmetric(t, opt) && (rc = flow_quotient_init(&q, t, opt->demands, err))) ||
	    (rc = check_size(t, q.group, opt->demands, err)) ||
	    (rc = opt->before ? start_warm(t, opt, &p, err)
			      : mcf_new_under(t, q.group, opt->demands, &p, err)) ||
	    (rc = find_paths(t, p, opt, &limit, &paths, &mine, err))) {
		goto out;
	}
	if (q.group) {
		flow_quotient_paths(&q, &paths);
	}
	net = q.group ? &q.net : &p->net;
	mine.paths = (int64_t)paths.v.n * topo_group_order(q.group);
	if (q.group && any_order(q.group)) {
		rc = make_shop(t, &q, &paths, opt, &limit, &mine, out, err);
		mine.stop = mine.flow.stop;
		goto out;
	}
	choose_chunks(net, &paths, target_of(&mine), opt, &limit, &mine.chunks);
	rc = choose_multiple(t, net, &paths, opt, &limit, &mine, &steps, err);
	mine.stop = mine.flow.stop == MCF_REACHED ? flow_limit_stop(&limit) : mine.flow.stop;
	if (rc == 0) {
		rc = make_steps(t, &p->net, &q, &paths, steps, &mine, out, err);
	}
out:
	if (rc) {
		coll_free(*out);
		*out = NULL;
	} else if (info) {
		*info = mine;
		info->longest = longest_path(&paths);
	}
	flow_steps_free(steps);
	flow_paths_fini(&paths);
	flow_quotient_fini(&q);
	if (rc == 0 && opt->kept && !is_single(t, opt)) {
		*opt->kept = p;
	} else {
		mcf_free(p);
	}
	return rc;
}
