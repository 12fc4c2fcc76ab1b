/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Time-stepped flows and their schedules.
 *
 * The program has a variable for what a source sends over an arc in a step and
 * for what a node still holds of it after the step. Only one source an orbit
 * of the translations is in it, and arcs of one orbit share their capacity
 * row, which makes it smaller by the number of translations squared. Its flow
 * is cut into paths through time, the widest first, the paths get whole
 * chunks, and every translation of them is emitted. Steps are added until the
 * sum of the loads is as near to the flow's congestion as was asked for.
 */
#include "collective/flow/private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/lp/lp.h"

/* Less than this of a unit demand is the linear solver's rounding. */
#define ROUNDING 1e-7
/* Share of a time limit for the flow of any number of steps. */
#define MCF_STEPS_FLOW_TIME 0.25
/* How near to a bound is equal to it, as linear programs are solved. */
#define LP_TOLERANCE 1e-6

/* A path through time from a source to a sink. */
struct time_path {
	int32_t source, sink;
	double weight;		/* those of a pair sum to one */
	int32_t chunks;
	int64_t first;		/* in hops */
	int32_t n;
};

struct time_hop {
	int32_t arc, step;
};

struct stepped {
	const struct topo *t;
	const struct flow_demands *demands;	/* NULL: all alike */
	struct flow_net net;
	struct topo_group *group;	/* NULL: none but the identity */
	struct topo_action *action;	/* of it on t */
	int moves;		/* elements of the group */
	int n_sources;		/* sources 0 .. n_sources - 1 are solved */
	int32_t *class_of;	/* an arc's orbit */
	int n_classes;
	double *units;		/* capacity of one arc of a class */
	int32_t *dist;		/* n_sources x n: hops */
	int steps;
	struct lp *lp;
	double *sent;		/* n_sources x m x steps */
	double *held;		/* n_sources x n x steps: through step k */
	VEC(struct time_path) paths;
	VEC(struct time_hop) hops;
	double total, bound;
};

static void stepped_fini(struct stepped *st)
{
	topo_action_free(st->action);
	topo_group_free(st->group);
	free(st->sent);
	free(st->held);
	vec_fini(&st->paths);
	vec_fini(&st->hops);
	flow_net_fini(&st->net);
	free(st->class_of);
	free(st->units);
	free(st->dist);
}

/* What a pair sends, the largest demand being 1. */
static double demand_of(const struct stepped *st, int s, int v)
{
	const struct flow_demands *d = st->demands;

	return d ? (double)flow_demand(d, s, v) / (double)d->largest : s != v;
}

/* ---- symmetry ---- */

/* The arc moved to begin at one of the solved nodes. */
static int base_arc(const struct stepped *st, int a)
{
	int u = st->net.src[a], first = topo_group_first(st->group, u), by;

	if (!st->group || u == first) {
		return a;
	}
	by = topo_group_between(st->group, u, first);
	return flow_net_arc(&st->net, first, topo_group_move(st->group, by, st->net.dst[a]));
}

/* None with demands. */
static int find_symmetry(struct stepped *st, struct err *err)
{
	int rc = 0;

	if ((!st->demands && (rc = topo_group_find(st->t, &st->group, err))) ||
	    (rc = topo_action_new(st->t, st->group, &st->action, err))) {
		return rc;
	}
	st->moves = topo_group_order(st->group);
	st->n_sources = st->net.n / st->moves;
	st->class_of = x_alloc((size_t)st->net.m + 1, sizeof(int32_t));
	st->units = x_alloc((size_t)st->net.m + 1, sizeof(double));
	st->dist = x_alloc((size_t)st->n_sources * st->net.n, sizeof(*st->dist));
	/* Base arcs leave the first nodes, so they are numbered first. */
	for (int a = 0; a < st->net.m; a++) {
		int base = base_arc(st, a);

		if (base == a) {
			st->units[st->n_classes] = (double)st->net.units[a];
			st->class_of[a] = st->n_classes++;
		} else {
			st->class_of[a] = st->class_of[base];
		}
	}
	for (int s = 0; s < st->n_sources; s++) {
		topo_bfs(st->t, s, st->dist + (size_t)s * st->net.n);
	}
	return 0;
}

/* ---- the program ---- */

static bool is_there(const struct stepped *st, int s, int u, int step)
{
	return u == s || st->dist[(size_t)s * st->net.n + u] <= step;
}

/* Row of what node u has of source s after `step` steps; the source itself
 * has no row. rows[0] is the first. */
static int node_row(const struct stepped *st, const int32_t *rows, int u, int step)
{
	return rows[(size_t)u * (st->steps + 1) + step];
}

static int add_node_rows(struct stepped *st, int s, int32_t *rows, struct err *err)
{
	int rc = 0;

	for (int u = 0; u < st->net.n; u++) {
		for (int k = 0; k <= st->steps && rc == 0; k++) {
			int row = -1;

			if (u != s && is_there(st, s, u, k)) {
				double gets = k == st->steps ? demand_of(st, s, u) : 0;

				rc = lp_add_row(st->lp, LP_EQ, gets, &row, err);
			}
			rows[(size_t)u * (st->steps + 1) + k] = row;
		}
	}
	return rc;
}

/* A column that takes from (u, k) and gives to (v, k + 1). */
static int add_move(struct stepped *st, const int32_t *rows, int class, int u,
		    int v, int k, struct err *err)
{
	int row[3] = { node_row(st, rows, v, k + 1),
		       node_row(st, rows, u, k),
		       class < 0 ? -1 : class * st->steps + k };
	double value[3] = { 1, -1, 1 };
	int n = 0;

	for (int i = 0; i < 3; i++) {
		if (row[i] >= 0) {
			row[n] = row[i];
			value[n++] = value[i];
		}
	}
	return lp_add_col(st->lp, 0, 0, LP_INF, false, n, row, value, NULL, err);
}

/* Columns in the order in which read_source takes their values. */
static int add_source(struct stepped *st, int s, int32_t *rows, struct err *err)
{
	const struct flow_net *net = &st->net;
	int rc = add_node_rows(st, s, rows, err);

	for (int a = 0; a < net->m; a++) {
		for (int k = 0; k < st->steps && rc == 0; k++) {
			if (net->dst[a] != s && is_there(st, s, net->src[a], k)) {
				rc = add_move(st, rows, st->class_of[a], net->src[a], net->dst[a],
					      k, err);
			}
		}
	}
	for (int u = 0; u < net->n; u++) {
		for (int k = 0; k < st->steps && rc == 0; k++) {
			if (u != s && is_there(st, s, u, k)) {
				rc = add_move(st, rows, -1, u, u, k, err);
			}
		}
	}
	return rc;
}

static int make_program(struct stepped *st, struct err *err)
{
	int32_t *rows = x_alloc(((size_t)st->steps + 1) * st->net.n, sizeof(*rows));
	int *at = x_alloc((size_t)st->n_classes + 1, sizeof(*at));
	double *minus = x_alloc((size_t)st->n_classes + 1, sizeof(*minus));
	int rc = 0;

	st->lp = lp_new();
	for (int i = 0; i < st->n_classes * st->steps && rc == 0; i++) {
		rc = lp_add_row(st->lp, LP_LE, 0, NULL, err);
	}
	for (int k = 0; k < st->steps && rc == 0; k++) {
		for (int c = 0; c < st->n_classes; c++) {
			at[c] = c * st->steps + k;
			minus[c] = -st->units[c];
		}
		rc = lp_add_col(st->lp, 1, 0, LP_INF, false, st->n_classes, at, minus, NULL, err);
	}
	for (int s = 0; s < st->n_sources && rc == 0; s++) {
		rc = add_source(st, s, rows, err);
	}
	free(rows);
	free(at);
	free(minus);
	return rc;
}

static int read_source(struct stepped *st, int s, int col)
{
	const struct flow_net *net = &st->net;
	size_t steps = (size_t)st->steps;
	double *sent = st->sent + (size_t)s * net->m * steps;
	double *held = st->held + (size_t)s * net->n * steps;

	for (int a = 0; a < net->m; a++) {
		for (int k = 0; k < st->steps; k++) {
			if (net->dst[a] != s && is_there(st, s, net->src[a], k)) {
				sent[a * steps + k] = fmax(0, lp_value(st->lp, col++));
			}
		}
	}
	for (int u = 0; u < net->n; u++) {
		for (int k = 0; k < st->steps; k++) {
			if (u != s && is_there(st, s, u, k)) {
				held[u * steps + k] = fmax(0, lp_value(st->lp, col++));
			}
		}
	}
	return col;
}

/* Replaces the solution kept before. */
static void read_solution(struct stepped *st)
{
	size_t room = (size_t)st->n_sources * (size_t)st->steps;
	int col = st->steps;

	st->sent = x_new(room * st->net.m + 1, sizeof(*st->sent));
	st->held = x_new(room * st->net.n + 1, sizeof(*st->held));
	for (int s = 0; s < st->n_sources; s++) {
		col = read_source(st, s, col);
	}
}

static void keep_solution(struct stepped *st, struct stepped *of)
{
	free(st->sent);
	free(st->held);
	st->sent = of->sent;
	st->held = of->held;
	st->steps = of->steps;
	st->total = of->total;
	st->bound = of->bound;
	of->sent = of->held = NULL;
}

/* Solves with this many steps; st keeps what it has unless that succeeds.
 * *solved false: stopped. */
static int solve_steps(struct stepped *st, int steps, const struct flow_limit *limit, bool *solved,
		       struct err *err)
{
	double cols = (double)st->n_sources * steps *
		      (st->net.m + st->net.n);
	struct lp_options lopt = {
		.deadline = limit->deadline, .cancel = limit->cancel,
	};
	struct stepped one = *st;
	struct lp_result res;
	int rc;

	*solved = false;
	if (cols > MCF_FORM_MAX_COLS) {
		return err_set(err, WEFT_ELIMIT, "tsmcf of %d steps has %.0f "
			       "columns here, more than the %d that are "
			       "solved: use mcf", steps, cols,
			       MCF_FORM_MAX_COLS);
	}
	if (flow_limit_over(limit)) {
		return 0;
	}
	one.sent = one.held = NULL;
	one.lp = NULL;
	one.steps = steps;
	rc = make_program(&one, err);
	if (rc == 0) {
		rc = lp_run(one.lp, &lopt, &res, err);
	}
	if (rc == 0 && res.outcome == LP_OPTIMAL) {
		one.total = res.objective;
		one.bound = fmin(res.bound, res.objective);
		read_solution(&one);
		*solved = true;
	}
	if (*solved) {
		keep_solution(st, &one);
	}
	free(one.sent);
	free(one.held);
	lp_free(one.lp);
	return rc;
}

/* ---- paths through time ---- */

/* Removes rounds: a chunk that comes back to a node has just waited. */
static void cut_rounds(const struct flow_net *net, struct time_hop *hops, int *n)
{
	int kept = 0;

	for (int i = 0; i < *n; i++) {
		int head = net->dst[hops[i].arc];

		hops[kept++] = hops[i];
		for (int j = 0; j < kept; j++) {
			if (net->src[hops[j].arc] == head) {
				kept = j;
			}
		}
	}
	*n = kept;
}

/* The fullest path back from the sink to the source; its width, and its hops
 * appended from the source on. chosen[k]: arc into place at the end of step
 * k, or -1 when held. */
static double trace(const struct stepped *st, int s, int sink, int32_t *chosen, int *first)
{
	const struct flow_net *net = &st->net;
	size_t steps = (size_t)st->steps;
	const double *sent = st->sent + (size_t)s * net->m * steps;
	const double *held = st->held + (size_t)s * net->n * steps;
	double width = HUGE_VAL;
	int v = sink, k;

	for (k = st->steps - 1; k >= 0 && v != s; k--) {
		double best = held[v * steps + (size_t)k];
		int arc = -1;

		for (int i = net->in_first[v]; i < net->in_first[v + 1]; i++) {
			int a = net->in_arcs[i];

			if (sent[a * steps + (size_t)k] > best) {
				best = sent[a * steps + (size_t)k];
				arc = a;
			}
		}
		chosen[k] = arc;
		width = fmin(width, best);
		v = arc < 0 ? v : net->src[arc];
	}
	*first = k + 1;
	return v == s ? width : 0;
}

static void keep_path(struct stepped *st, int s, int sink,
		      const int32_t *chosen, int first, double weight)
{
	const struct flow_net *net = &st->net;
	size_t steps = (size_t)st->steps;
	struct time_path w = { s, sink, weight, 0, (int64_t)st->hops.n, 0 };
	int v = sink, n = 0;

	vec_reserve(&st->hops, steps);
	for (int k = st->steps - 1; k >= first; k--) {
		double *x = chosen[k] < 0
			? &st->held[((size_t)s * net->n + v) * steps + k]
			: &st->sent[((size_t)s * net->m + chosen[k]) * steps + k];

		*x -= weight;
		v = chosen[k] < 0 ? v : net->src[chosen[k]];
	}
	for (int k = first; k < st->steps; k++) {
		if (chosen[k] >= 0) {
			st->hops.v[st->hops.n + n++] =
				(struct time_hop){ chosen[k], k };
		}
	}
	cut_rounds(net, st->hops.v + st->hops.n, &n);
	st->hops.n += (size_t)n;
	w.n = n;
	vec_push(&st->paths, w);
}

/* What one sink gets; what rounding lost goes to the widest path. */
static int cut_sink(struct stepped *st, int s, int sink, int32_t *chosen)
{
	size_t begin = st->paths.n, widest = begin;
	double demand = demand_of(st, s, sink), left = demand;

	while (left > ROUNDING) {
		int first;
		double width = fmin(left, trace(st, s, sink, chosen, &first));

		if (width <= ROUNDING) {
			break;
		}
		keep_path(st, s, sink, chosen, first, width);
		left -= width;
		if (width > st->paths.v[widest].weight) {
			widest = st->paths.n - 1;
		}
	}
	if (st->paths.n == begin) {
		return demand == 0 ? 0 : WEFT_EUNSUPPORTED;
	}
	st->paths.v[widest].weight += left;
	for (size_t i = begin; i < st->paths.n; i++) {
		st->paths.v[i].weight /= demand;
	}
	return 0;
}

static int cut_paths(struct stepped *st, struct err *err)
{
	int32_t *chosen = x_alloc((size_t)st->steps, sizeof(*chosen));
	int rc = 0;

	for (int s = 0; s < st->n_sources; s++) {
		for (int v = 0; v < st->net.n && rc == 0; v++) {
			rc = v == s ? 0 : cut_sink(st, s, v, chosen);
		}
	}
	free(chosen);
	return rc ? err_set(err, rc, "tsmcf: a demand is less than a millionth of another: not "
				 "supported") : 0;
}

/* ---- chunks ---- */

/* Whole chunks for the paths first .. end-1 of a pair, largest remainders
 * first. */
static void apportion(struct stepped *st, size_t first, size_t end, int chunks)
{
	int left = chunks;

	for (size_t i = first; i < end; i++) {
		struct time_path *w = &st->paths.v[i];

		w->chunks = (int32_t)floor(w->weight * chunks + ROUNDING);
		left -= w->chunks;
	}
	while (left > 0) {
		double max = -HUGE_VAL;
		size_t at = first;

		for (size_t i = first; i < end; i++) {
			double lack = st->paths.v[i].weight * chunks -
				      st->paths.v[i].chunks;

			if (lack > max + ROUNDING) {
				max = lack;
				at = i;
			}
		}
		st->paths.v[at].chunks++;
		left--;
	}
}

/* Chunks of a pair, where the largest demand has `chunks`. */
static int pair_chunks(const struct stepped *st, int s, int v, int chunks)
{
	struct flow_paths all = { .demands = st->demands };

	return flow_pair_chunks(&all, s * st->net.n + v, chunks);
}

/* Sum over steps of the largest load of the rounded paths, a unit of demand. */
static double round_paths(struct stepped *st, int chunks)
{
	size_t cells = (size_t)st->n_classes * st->steps;
	double *load = x_new(cells + 1, sizeof(*load)), sum = 0;

	for (size_t i = 0, end; i < st->paths.n; i = end) {
		for (end = i; end < st->paths.n &&
			      st->paths.v[end].source == st->paths.v[i].source &&
			      st->paths.v[end].sink == st->paths.v[i].sink;
		     end++) {
		}
		apportion(st, i, end, pair_chunks(st, st->paths.v[i].source, st->paths.v[i].sink,
						  chunks));
	}
	for (size_t i = 0; i < st->paths.n; i++) {
		const struct time_path *w = &st->paths.v[i];

		for (int64_t h = w->first; h < w->first + w->n; h++) {
			const struct time_hop *hop = &st->hops.v[h];
			int c = st->class_of[hop->arc];

			load[(size_t)c * st->steps + hop->step] += w->chunks / st->units[c];
		}
	}
	for (int k = 0; k < st->steps; k++) {
		double max = 0;

		for (int c = 0; c < st->n_classes; c++) {
			max = fmax(max, load[(size_t)c * st->steps + k]);
		}
		sum += max;
	}
	free(load);
	return sum / chunks;
}

/* The paths have their chunks then. */
static int choose_chunks(struct stepped *st, const struct mcf_steps_options *opt,
			 const struct flow_limit *limit)
{
	int max_chunks = opt->max_chunks ? opt->max_chunks : MCF_STEPS_CHUNKS, chunks = 1;
	double min = HUGE_VAL;

	for (int p = 1; p <= max_chunks; p++) {
		double sum = round_paths(st, p);

		if (sum < min * (1 - 1e-9)) {
			min = sum;
			chunks = p;
		}
		if (min <= st->total * (1 + opt->loss + LP_TOLERANCE) || flow_limit_over(limit)) {
			break;
		}
	}
	round_paths(st, chunks);
	return chunks;
}

/* ---- the schedule ---- */

/* The lane u -> v that this step has used least for its capacity; used: chunks
 * on the arcs of an orbit. */
static int pick_lane(const struct stepped *st, const int32_t *used, int u, int v)
{
	const struct topo *t = st->t;
	double least = INFINITY;
	int first, n = topo_out(t, u, &first), best = -1;

	for (int a = first; a < first + n; a++) {
		double use = (double)used[topo_action_orbit(st->action, a)] / topo_arc(t, a)->cap;

		if (topo_arc(t, a)->dst == v && use < least) {
			best = a;
			least = use;
		}
	}
	return best;
}

/* All chunks of a path. used: a step's orbits of arcs. */
static int emit_path(const struct stepped *st, const struct time_path *w, int chunk,
		     int32_t *used, struct coll_sched *s, struct err *err)
{
	size_t m = (size_t)topo_m(st->t);
	int rc = 0;

	for (int64_t h = w->first; h < w->first + w->n; h++) {
		const struct time_hop *hop = &st->hops.v[h];
		int32_t *step = used + (size_t)hop->step * m;

		for (int i = 0; i < w->chunks && rc == 0; i++) {
			int a = pick_lane(st, step, st->net.src[hop->arc], st->net.dst[hop->arc]);

			step[topo_action_orbit(st->action, a)]++;
			rc = coll_add(s, &(struct coll_xfer){ hop->step, a, w->source, w->sink,
				      chunk + i, chunk + i, COLL_OP_COPY, 0 }, err);
		}
	}
	return rc;
}

/* The paths of the sources that were solved: the group moves them to all. */
static int emit(const struct stepped *st, struct coll_sched *s, struct err *err)
{
	int32_t *used = x_new((size_t)topo_m(st->t) * st->steps + 1, sizeof(*used));
	int chunk = 0, rc = 0;

	for (size_t i = 0; i < st->paths.n && rc == 0; i++) {
		const struct time_path *w = &st->paths.v[i];

		chunk = i > 0 && w->source == w[-1].source && w->sink == w[-1].sink ? chunk : 0;
		rc = emit_path(st, w, chunk, used, s, err);
		chunk += w->chunks;
	}
	free(used);
	return rc;
}

/* With the chunks of every pair. */
static int set_demands(const struct stepped *st, int chunks, struct coll_sched *s,
		       struct err *err)
{
	int n = st->net.n, rc;
	int32_t *v;

	if (!st->demands) {
		return 0;
	}
	v = x_alloc((size_t)n * (size_t)n, sizeof(*v));
	for (int uv = 0; uv < n * n; uv++) {
		v[uv] = pair_chunks(st, uv / n, uv % n, chunks);
	}
	rc = coll_set_demands(s, v, err);
	free(v);
	return rc;
}

static int make_schedule(const struct stepped *st, int chunks, struct coll_sched **out,
			 struct mcf_steps_info *info, struct err *err)
{
	struct coll_report rep;
	struct topo *copy = NULL;
	struct topo_group *group = NULL;
	int rc;

	coll_report_init(&rep);
	if ((rc = topo_copy(st->t, &copy, err)) == 0 &&
	    (rc = coll_new(COLL_ALLTOALL, copy, chunks, 0, 0, out, err)) == 0 &&
	    (rc = topo_group_copy(st->group, &group, err)) == 0 &&
	    (rc = coll_set_group(*out, group, err)) == 0 &&
	    (rc = set_demands(st, chunks, *out, err)) == 0 &&
	    (rc = emit(st, *out, err)) == 0 && (rc = coll_finish(*out, err)) == 0 &&
	    (rc = coll_prove(*out, &rep, err)) == 0) {
		info->chunks = chunks;
		info->stepped = mpq_get_d(rep.shard_times);
	}
	coll_report_fini(&rep);
	return rc;
}

/* ---- the number of steps ---- */

static int stopped(const struct mcf_options *opt, struct err *err)
{
	if (opt->cancel && *opt->cancel) {
		return err_set(err, WEFT_ECANCELED, "tsmcf: interrupted before "
			       "a first solution");
	}
	return err_set(err, WEFT_ETIMEOUT, "tsmcf: time limit before a first "
		       "solution");
}

/* Tries numbers of steps; leaves the solution of the last that was solved,
 * whose number is in st->steps, in st: the best, as more steps never cost
 * more. */
static int choose_steps(struct stepped *st, const struct mcf_steps_options *opt,
			const struct flow_limit *limit, struct mcf_steps_info *info,
			struct err *err)
{
	int min_steps = topo_diameter(st->t), last;

	if (opt->steps && opt->steps < min_steps) {
		return err_set(err, WEFT_EINVAL, "tsmcf: %d steps are fewer "
			       "than the diameter, %d", opt->steps, min_steps);
	}
	last = opt->steps ? opt->steps : min_steps + MCF_STEPS_MORE;
	for (int k = opt->steps ? opt->steps : min_steps; k <= last; k++) {
		bool solved;
		int rc = solve_steps(st, k, limit, &solved, err);

		if (rc) {
			return rc;
		}
		if (!solved) {
			info->flow.stop = limit->cancel && *limit->cancel
						? MCF_CANCELED : MCF_TIME;
			return st->steps ? 0 : stopped(&opt->flow, err);
		}
		if (st->total <= info->flow.bound * (1 + opt->flow.gap + LP_TOLERANCE)) {
			break;
		}
	}
	return 0;
}

int mcf_steps(const struct topo *t, const struct mcf_steps_options *opt, struct coll_sched **out,
	      struct mcf_steps_info *info, struct err *err)
{
	struct stepped st = { .t = t, .demands = opt->demands };
	struct flow_limit limit = flow_limit_of(&opt->flow);
	struct mcf_options flow = opt->flow;
	struct mcf_steps_info mine = { 0 };
	int rc;

	*out = NULL;
	rc = topo_check_plain(t, "tsmcf", err);
	if (rc) {
		return rc;
	}
	if (topo_diameter(t) < 0) {
		return err_set(err, WEFT_EINFEASIBLE, "tsmcf: the digraph does not connect all "
			       "ranks");
	}
	flow.deadline = flow_share(&flow.deadline, MCF_STEPS_FLOW_TIME);
	rc = mcf_rate(t, opt->demands, &flow, &mine.flow, err);
	if (rc == 0 &&
	    (rc = flow_net_from(t, NULL, &st.net, err)) == 0 &&
	    (rc = find_symmetry(&st, err)) == 0 &&
	    (rc = choose_steps(&st, opt, &limit, &mine, err)) == 0) {
		rc = cut_paths(&st, err);
	}
	mine.steps = st.steps;
	mine.total = st.total;
	mine.bound = st.bound;
	if (rc == 0) {
		rc = make_schedule(&st, choose_chunks(&st, opt, &limit), out, &mine, err);
	}
	if (rc) {
		coll_free(*out);
		*out = NULL;
	} else if (info) {
		*info = mine;
	}
	stepped_fini(&st);
	return rc;
}
