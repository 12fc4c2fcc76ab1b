/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Configurations of a wavelength: what one channel can carry at once. The
 * linear program over all of them (Ramaswami and Sivarajan 1995; as a column
 * generation Jaumard, Meyer and Thiongane 2009) knows that a lightpath keeps
 * its channel, which the flow does not, so that its bound is never worse.
 *
 * Pricing is the heaviest set of lightpaths without a common slot: greedy
 * first, from random orders, and by an integer program when greedy finds
 * nothing, one flow for each source as those of one source can be told apart
 * afterwards. Only the integer program's own bound proves anything. The loss
 * budget is left out of it, which can only weaken the bound. Rounded, the
 * configurations are where the ejection search begins.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/order.h"
#include "lib/lp/colgen.h"
#include "rwa/mesh/private.h"

#define MAX_PAIRS 400
#define MAX_CELLS 12000		/* sources times arcs */
#define TRIES 12		/* random orders of a pricing */
#define MAX_ROUNDS 400
#define MAX_ITERATIONS 200000	/* of the simplex algorithm, for pricing */
#define IMPROVES 1e-6
#define ARC_COST 1e-6		/* so that flows have no circles */

/* A demand as a row of the master; count falls as rounding serves it. */
struct wanted {
	int32_t src, dst, demand, count;
};

/* Lightpaths of a configuration: paths[first .. first + n - 1]. */
struct config {
	int64_t first;
	int32_t n;
	double value;		/* in the last master */
};

/* The column generation. Configurations are columns of the master in the
 * order of all[], their paths and arcs stand one after the other in two
 * lists, so that forget() undoes the last. room, via, queue and order are
 * scratch for building one configuration; room[e] is what is left of arc
 * e's open fibres. */
struct configs {
	const struct rwa_mesh *m;
	struct mesh_paths router;
	struct wanted *pairs;	/* by source */
	int n_pairs;
	VEC(struct config) all;	/* a column of the master each */
	VEC(struct rwa_path) paths;	/* demand: number of the pair */
	VEC(int32_t) arcs;
	struct lp *master;
	struct rng rng;
	struct deadline deadline;
	int64_t work;		/* iterations of integer programs so far */
	const volatile bool *cancel;
	volatile bool over;	/* the work is done, or canceled */
	struct arrays arrays;	/* owns pairs and those that follow */
	/* of one configuration */
	int32_t *room, *via, *queue;
	struct { double key; int32_t pair; } *order;
};

ORDER_BY(by_ends, struct wanted, src, dst, demand)

static void list_pairs(struct configs *s)
{
	const struct rwa_mesh *m = s->m;

	arrays_add(&s->arrays, s->pairs, m->demands.n + 1);
	for (size_t d = 0; d < m->demands.n; d++) {
		const struct rwa_mesh_demand *x = &m->demands.v[d];

		s->pairs[s->n_pairs++] = (struct wanted){
			x->src, x->dst, (int32_t)d, x->count,
		};
	}
	qsort(s->pairs, (size_t)s->n_pairs, sizeof(*s->pairs), by_ends);
}

/* Everything but rows and columns, for configs_fini(). */
static void configs_init(struct configs *s, const struct rwa_mesh *m, uint64_t seed)
{
	*s = (struct configs){ .m = m };
	rng_seed(&s->rng, seed);
	mesh_paths_init(&s->router, m);
	arrays_add(&s->arrays, s->room, m->arcs.n + 1);
	arrays_add(&s->arrays, s->via, m->nodes.n);
	arrays_add(&s->arrays, s->queue, m->nodes.n);
	arrays_add(&s->arrays, s->order, m->demands.n + 1);
	list_pairs(s);
	s->master = lp_new();
}

static void configs_fini(struct configs *s)
{
	mesh_paths_fini(&s->router);
	arrays_fini(&s->arrays);
	vec_fini(&s->all);
	vec_fini(&s->paths);
	vec_fini(&s->arcs);
	lp_free(s->master);
}

/* ---- greedy ---- */

/* Shortest path by hops through arcs with room; s->via leads back. */
static bool find_path(struct configs *s, int32_t src, int32_t dst)
{
	int32_t head = 0, tail = 0;

	memset(s->via, 0xff, s->m->nodes.n * sizeof(*s->via));
	s->queue[tail++] = src;
	while (head < tail && s->via[dst] < 0) {
		int32_t v = s->queue[head++];

		for (int32_t k = s->router.out.first[v]; k < s->router.out.first[v + 1]; k++) {
			int32_t e = s->router.out.arc[k];
			int32_t w = s->m->arcs.v[e].dst;

			if (s->room[e] > 0 && w != src && s->via[w] < 0) {
				s->via[w] = e;
				s->queue[tail++] = w;
			}
		}
	}
	return s->via[dst] >= 0;
}

/* Takes the path that s->via leads back, unless it is beyond the budget. */
static void take_path(struct configs *s, int32_t pair, bool *taken)
{
	const struct wanted *p = &s->pairs[pair];
	struct rwa_path path = { .demand = pair,
				 .first = (int64_t)s->arcs.n };
	int32_t hops = 0, at;

	for (int32_t v = p->dst; v != p->src; v = s->m->arcs.v[s->via[v]].src) {
		hops++;
	}
	vec_reserve(&s->arcs, (size_t)hops);
	at = hops;
	for (int32_t v = p->dst; v != p->src; v = s->m->arcs.v[s->via[v]].src) {
		s->arcs.v[path.first + --at] = s->via[v];
	}
	*taken = mesh_path_loss(&s->router, p->src, s->arcs.v + path.first,
			       hops) <= s->router.budget;
	if (!*taken) {
		return;
	}
	path.hops = hops;
	s->arcs.n += (size_t)hops;
	for (int32_t i = 0; i < hops; i++) {
		s->room[s->arcs.v[path.first + i]]--;
	}
	vec_push(&s->paths, path);
}

static int by_key(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return *x > *y ? -1 : *x < *y;
}

/* Pairs by dual value, but for the first try each made up to twice as
 * attractive at random. */
static void shuffle(struct configs *s, const double *duals, int try)
{
	for (int i = 0; i < s->n_pairs; i++) {
		double noise = (double)rng_below(&s->rng, 1000) / 1000;

		s->order[i].pair = i;
		s->order[i].key = duals[i] * (1 + (try ? noise : 0));
	}
	qsort(s->order, (size_t)s->n_pairs, sizeof(*s->order), by_key);
}

/* A configuration at the end of the lists; *value by the duals. */
static void greedy(struct configs *s, const double *duals, int try, double *value)
{
	memcpy(s->room, s->router.fibres, s->m->arcs.n * sizeof(*s->room));
	shuffle(s, duals, try);
	*value = 0;
	for (int i = 0; i < s->n_pairs && s->order[i].key > 0; i++) {
		int32_t pair = s->order[i].pair;
		bool taken = true;

		for (int32_t k = 0; taken && k < s->pairs[pair].count; k++) {
			if (!find_path(s, s->pairs[pair].src, s->pairs[pair].dst)) {
				break;
			}
			take_path(s, pair, &taken);
			*value += taken ? duals[pair] : 0;
		}
	}
}

/* ---- exact ---- */

/* Rows: arcs, then (source, node). Columns: pairs, then (source, arc). */
static int build_pricing(struct configs *s, const double *duals, struct lp *lp, struct err *err)
{
	int arcs = (int)s->m->arcs.n, nodes = (int)s->m->nodes.n, row, col;
	int rc = 0, sources = 0;

	lp_maximise(lp);
	for (int e = 0; !rc && e < arcs; e++) {
		rc = lp_add_row(lp, LP_LE, s->router.fibres[e], &row, err);
	}
	for (int i = 0; !rc && i < s->n_pairs; i++) {
		const struct wanted *p = &s->pairs[i];
		const double one[2] = { 1, -1 };
		int rows[2];

		if (i == 0 || p->src != p[-1].src) {
			for (int v = 0; !rc && v < nodes; v++) {
				rc = lp_add_row(lp, LP_EQ, 0, &row, err);
			}
			sources++;
		}
		rows[0] = arcs + (sources - 1) * nodes + p->src;
		rows[1] = arcs + (sources - 1) * nodes + p->dst;
		if (!rc) {
			rc = lp_add_col(lp, duals[i], 0, p->count, true, 2, rows, one, &col, err);
		}
	}
	for (int k = 0; k < sources; k++) {
		for (int e = 0; !rc && e < arcs; e++) {
			int base = arcs + k * nodes;
			int rows[3] = { e, base + s->m->arcs.v[e].src,
					base + s->m->arcs.v[e].dst };
			const double one[3] = { 1, -1, 1 };

			rc = lp_add_col(lp, -ARC_COST, 0, s->router.fibres[e],
					true, 3, rows, one, &col, err);
		}
	}
	return rc;
}

/* The flow of one source, told apart: every pair's lightpaths by a search
 * through what is left of it. */
static void read_source(struct configs *s, const struct lp *lp, int source,
			int begin, int end, const double *duals, double *value)
{
	int arcs = (int)s->m->arcs.n;

	for (int e = 0; e < arcs; e++) {
		s->room[e] = (int32_t)lp_value(lp, s->n_pairs + source * arcs + e);
	}
	for (int i = begin; i < end; i++) {
		int n = (int)lp_value(lp, i);
		bool taken = true;

		while (taken && n-- > 0 && find_path(s, s->pairs[i].src, s->pairs[i].dst)) {
			take_path(s, i, &taken);
			*value += taken ? duals[i] : 0;
		}
	}
}

static void read_pricing(struct configs *s, const struct lp *lp, const double *duals, double *value)
{
	int source = 0;

	*value = 0;
	for (int i = 0, end; i < s->n_pairs; i = end, source++) {
		end = i + 1;
		while (end < s->n_pairs && s->pairs[end].src == s->pairs[i].src) {
			end++;
		}
		read_source(s, lp, source, i, end, duals, value);
	}
}

/* The heaviest configuration by an integer program. Its bound on that
 * weight is how far the duals have to be scaled down to be feasible
 * (proof->stretch), which holds even when the program is stopped early. */
static int exact(struct configs *s, const double *duals, double *value,
		 struct colgen_proof *proof, struct err *err)
{
	struct lp_options opt = { .deadline = s->deadline,
				  .cancel = s->cancel,
				  .max_iterations = s->over ? 1
					: MAX_ITERATIONS - s->work };
	struct lp_result res;
	struct lp *lp = NULL;
	double slots = 0;
	int rc = 0;

	lp = lp_new();
	*value = 0;
	for (size_t e = 0; e < s->m->arcs.n; e++) {
		slots += s->router.fibres[e];
	}
	if (!(rc = build_pricing(s, duals, lp, err))) {
		rc = lp_run(lp, &opt, &res, err);
	}
	s->work += rc ? 0 : res.iterations;
	s->over = s->work >= MAX_ITERATIONS || (s->cancel && *s->cancel);
	if (!rc && res.bound < LP_INF / 2) {
		double max = res.bound + slots * ARC_COST;

		proof->stretch = max > 1 ? max : 1;
	}
	if (!rc && (res.outcome == LP_OPTIMAL || res.outcome == LP_FEASIBLE)) {
		read_pricing(s, lp, duals, value);
	}
	lp_free(lp);
	return rc;
}

/* ---- the master ---- */

/* The paths from `first` on as a column. */
static int add_config(struct configs *s, int64_t first, struct lp *master, struct err *err)
{
	struct config c = { first, (int32_t)((int64_t)s->paths.n - first), 0 };
	double *count = x_new((size_t)s->n_pairs + 1, sizeof(*count));
	int *rows = x_new((size_t)s->n_pairs + 1, sizeof(*rows));
	int n = 0, col, rc = 0;

	vec_push(&s->all, c);
	for (int32_t i = 0; i < c.n; i++) {
		count[s->paths.v[first + i].demand]++;
	}
	for (int i = 0; i < s->n_pairs; i++) {
		if (count[i] > 0) {
			rows[n] = i;
			count[n++] = count[i];
		}
	}
	rc = lp_add_col(master, 1, 0, LP_INF, false, n, rows, count, &col, err);
	free(count);
	free(rows);
	return rc;
}

/* Drops what was appended to the lists after these lengths. */
static void forget(struct configs *s, size_t paths, size_t arcs)
{
	s->paths.n = paths;
	s->arcs.n = arcs;
}

/* A configuration worth more than 1 by the duals as a new column, by greedy
 * if it can. When not even the integer program finds one, no column
 * improves the master. */
static int price(void *ctx, const double *duals, struct lp *master,
		 struct colgen_proof *proof, struct err *err)
{
	struct configs *s = ctx;
	bool found = false;
	double value;
	int rc = 0;

	for (int try = 0; try < TRIES; try++) {
		size_t paths = s->paths.n, arcs = s->arcs.n;

		greedy(s, duals, try, &value);
		if (value > 1 + IMPROVES) {
			found = true;
			rc = add_config(s, (int64_t)paths, master, err);
			break;
		}
		forget(s, paths, arcs);
	}
	if (!rc && !found) {
		size_t paths = s->paths.n, arcs = s->arcs.n;

		rc = exact(s, duals, &value, proof, err);
		if (!rc && value > 1 + IMPROVES) {
			rc = add_config(s, (int64_t)paths, master, err);
		} else {
			forget(s, paths, arcs);
		}
	}
	return rc;
}

/* Every pair alone: the master is feasible. */
static int begin(struct configs *s, struct err *err)
{
	double *only = x_new((size_t)s->n_pairs + 1, sizeof(*only)), value;
	int rc = 0, row;

	for (int i = 0; !rc && i < s->n_pairs; i++) {
		rc = lp_add_row(s->master, LP_GE, s->pairs[i].count, &row, err);
	}
	for (int i = 0; !rc && i < s->n_pairs; i++) {
		int64_t first = (int64_t)s->paths.n;

		only[i] = 1;
		greedy(s, only, 0, &value);
		only[i] = 0;
		/* The shortest path may be beyond the budget. */
		if (value == 0) {
			rc = WEFT_ELIMIT;
		}
		if (!rc) {
			rc = add_config(s, first, s->master, err);
		}
	}
	free(only);
	return rc;
}

/* ---- rounding ---- */

static int by_value(const void *a, const void *b)
{
	const struct config *x = a, *y = b;

	if (x->value != y->value) {
		return x->value > y->value ? -1 : 1;
	}
	return x->first < y->first ? -1 : x->first > y->first;
}

/* One configuration on a channel, as far as it is still wanted. */
static void lay_config(struct configs *s, const struct config *c,
		       int32_t channel, struct rwa_assignment *out)
{
	memset(s->room, 0, s->m->arcs.n * sizeof(*s->room));
	for (int32_t i = 0; i < c->n; i++) {
		struct rwa_path p = s->paths.v[c->first + i];
		struct wanted *w = &s->pairs[p.demand];
		int64_t first = (int64_t)out->hops.n;

		if (w->count == 0) {
			continue;
		}
		w->count--;
		for (int32_t h = 0; h < p.hops; h++) {
			int32_t e = s->arcs.v[p.first + h];

			vec_push(&out->hops, (struct rwa_hop){ e, s->room[e]++, channel });
		}
		vec_push(&out->paths, (struct rwa_path){ w->demand, p.hops, first });
	}
}

/* Whole parts first, then what is nearest to one more. */
static void round_off(struct configs *s, int channels, struct rwa_assignment *out)
{
	int32_t next = 0;

	for (size_t i = 0; i < s->all.n; i++) {
		s->all.v[i].value = lp_value(s->master, (int)i);
	}
	qsort(s->all.v, s->all.n, sizeof(*s->all.v), by_value);
	for (size_t i = 0; i < s->all.n; i++) {
		struct config *c = &s->all.v[i];

		for (; c->value >= 1 - IMPROVES && next < channels; c->value--) {
			lay_config(s, c, next++, out);
		}
	}
	qsort(s->all.v, s->all.n, sizeof(*s->all.v), by_value);
	for (size_t i = 0; i < s->all.n && next < channels && s->all.v[i].value > IMPROVES; i++) {
		lay_config(s, &s->all.v[i], next++, out);
	}
}

/* Only where channels are alike, nothing converts and nothing is paired does
 * the program describe the problem; and it must be small. */
static bool is_suitable(const struct rwa_mesh *m)
{
	bool good = m->demands.n > 0 && m->demands.n <= MAX_PAIRS &&
		    m->nodes.n * m->arcs.n <= MAX_CELLS && !m->tunings.n &&
		    !m->guard.between && !m->guard.below && !m->guard.above;

	for (size_t v = 0; good && v < m->nodes.n; v++) {
		good = !m->nodes.v[v].convert;
	}
	for (size_t i = 0; good && i < m->demands.n; i++) {
		good = !m->demands.v[i].protect;
	}
	for (size_t i = 0; good && i < m->blocks.n; i++) {
		good = m->blocks.v[i].channel == RWA_MESH_ALL;
	}
	return good;
}

int mesh_configurations(const struct rwa_mesh *m, uint64_t seed, const struct deadline *end,
			const volatile bool *cancel, int *bound, struct rwa_assignment *start,
			struct err *err)
{
	struct colgen_options opt = { .deadline = *end, .max_rounds = MAX_ROUNDS };
	struct colgen cg = { .price = price };
	struct colgen_result res;
	struct configs s;
	int rc;

	*bound = 0;
	*start = (struct rwa_assignment){ 0 };
	if (!is_suitable(m)) {
		return 0;
	}
	configs_init(&s, m, seed);
	s.deadline = *end;
	s.cancel = cancel;
	rc = begin(&s, err);
	if (!rc) {
		cg.master = s.master;
		cg.ctx = &s;
		opt.cancel = &s.over;
		rc = colgen_run(&cg, &opt, &res, err);
	}
	if (!rc && res.bound > 0 && res.bound < RWA_MESH_MAX_CHANNELS) {
		*bound = (int)ceil(res.bound - 1e-4);
	}
	if (!rc && *bound) {
		round_off(&s, *bound, start);
	}
	/* Left out where single paths do not fit the budget. */
	rc = rc == WEFT_ELIMIT ? 0 : rc;
	configs_fini(&s);
	return rc;
}
