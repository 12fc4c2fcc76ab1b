/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plans of a step: which units share a light. All partitions of the units are weighed where they
 * are few, each class by its best light; of more units, single ones move between classes until none
 * gains.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "collective/workload/private.h"
#include "lib/base/alloc.h"

/* Units by class, the first class 0. */
struct unit_classes {
	int n_classes;
	uint32_t units[WORKLOAD_MAX_OPS];
	int of[WORKLOAD_MAX_OPS];
};

struct plan_search {
	struct workload_planner *pl;
	struct unit_classes now, best;
	double best_ns, bound_ns;
	struct err *err;
};

static int64_t changes_of(const struct workload *w, const struct unit_classes *p)
{
	int64_t sum = 0;

	for (size_t i = 0; i < w->units.n; i++) {
		for (size_t k = 0; k < w->units.n; k++) {
			sum += p->of[i] != p->of[k] ? w->next[i * w->units.n + k] : 0;
		}
	}
	return sum;
}

/* Of a whole partition. */
static int weigh(struct plan_search *s)
{
	const struct workload_params *p = s->pl->p;
	int64_t changes = changes_of(s->pl->w, &s->now);
	double time = (double)changes * (double)p->change_ns, bound = time;

	if (changes > 0 && (p->change_ns < 0 ||
			    (p->max_changes >= 0 && changes > p->max_changes))) {
		return 0;
	}
	for (int i = 0; i < s->now.n_classes; i++) {
		const struct class_cost *c;
		int rc = class_of(s->pl, s->now.units[i], &c, s->err);

		if (rc) {
			return rc;
		}
		time += c->time_ns;
		bound += c->bound_ns;
	}
	s->bound_ns = fmin(s->bound_ns, bound);
	if (time < s->best_ns * (1 - 1e-12)) {
		s->best_ns = time;
		s->best = s->now;
	}
	return 0;
}

static void put(struct unit_classes *p, int unit, int class)
{
	p->of[unit] = class;
	p->units[class] |= UINT32_C(1) << unit;
}

/* All partitions that begin as `now` does up to this unit. */
static int try_partitions(struct plan_search *s, size_t unit)
{
	int n = s->now.n_classes, rc = 0;

	if (unit == s->pl->w->units.n) {
		return weigh(s);
	}
	for (int c = 0; c <= n && !rc; c++) {
		s->now.n_classes = c == n ? n + 1 : n;
		put(&s->now, (int)unit, c);
		rc = try_partitions(s, unit + 1);
		s->now.units[c] &= ~(UINT32_C(1) << unit);
	}
	s->now.n_classes = n;
	return rc;
}

/* The partition by class numbers, without empty ones. */
static void renumber(const int *of, size_t n, struct unit_classes *out)
{
	int seen[WORKLOAD_MAX_OPS + 1];

	*out = (struct unit_classes){ 0 };
	memset(seen, -1, sizeof(seen));
	for (size_t i = 0; i < n; i++) {
		if (seen[of[i]] < 0) {
			seen[of[i]] = out->n_classes++;
		}
		put(out, (int)i, seen[of[i]]);
	}
}

/* From all units in one class, and from each in its own, by moves of one. */
static int try_moves(struct plan_search *s, bool apart)
{
	size_t n = s->pl->w->units.n;
	int of[WORKLOAD_MAX_OPS], rc;
	bool better = true;

	for (size_t i = 0; i < n; i++) {
		of[i] = apart ? (int)i : 0;
	}
	renumber(of, n, &s->now);
	rc = weigh(s);
	while (better && !rc) {
		struct unit_classes from = s->best_ns < INFINITY ? s->best : s->now;
		double least = s->best_ns;

		for (size_t i = 0; i < n && !rc; i++) {
			for (int c = 0; c <= from.n_classes && !rc; c++) {
				memcpy(of, from.of, n * sizeof(*of));
				of[i] = c;
				renumber(of, n, &s->now);
				rc = weigh(s);
			}
		}
		better = s->best_ns < least;
	}
	return rc;
}

/* ---- the answer ---- */

static int refuse_ports(struct workload_planner *pl, struct err *err)
{
	int kinds = class_kinds(pl, all_units(pl->w)), most = 0;

	for (size_t u = 0; u < pl->w->units.n; u++) {
		int k = class_kinds(pl, UINT32_C(1) << u);

		most = k > most ? k : most;
	}
	if (most > pl->p->ports) {
		return err_set(err, WEFT_EINFEASIBLE, "circuits along %d kinds of axes at once, "
			       "where ranks have %d ports", most, pl->p->ports);
	}
	err_set(err, WEFT_EINFEASIBLE, "circuits along %d kinds of axes, where ranks have %d "
		"ports and light %s", kinds, pl->p->ports,
		pl->p->change_ns < 0 ? "stays still" : "may not change as often as needed");
	err_hint(err, "light of each collective's own needs %d", most);
	return WEFT_EINFEASIBLE;
}

static void add_uses(const struct workload_planner *pl, int light, struct workload_plan *plan)
{
	const struct workload_light *l = &plan->lights.v[light];
	uint32_t ops = 0;

	for (size_t u = 0; u < pl->w->units.n; u++) {
		ops |= l->units >> u & 1 ? pl->w->units.v[u].ops : 0;
	}
	for (size_t i = 0; i < pl->w->ops.n; i++) {
		const struct workload_op *op = &pl->w->ops.v[i];

		if (ops >> i & 1) {
			vec_push(&plan->uses, (struct workload_use){ (int)i, light,
					      op->min_bytes, op->bytes, use_time(pl, op, l),
					      call_bound(pl, op), NULL, false });
		}
	}
}

/* Lights are taken from the classes. */
static void take_best(struct workload_planner *pl, const struct plan_search *s,
		      struct workload_plan *plan)
{
	plan->changes = changes_of(pl->w, &s->best);
	plan->change_ns = pl->p->change_ns < 0 ? 0 : pl->p->change_ns;
	plan->time_ns = (int64_t)ceil(s->best_ns - 1e-6);
	for (int i = 0; i < s->best.n_classes; i++) {
		for (size_t k = 0; k < pl->classes.n; k++) {
			struct class_cost *c = &pl->classes.v[k];

			if (c->units == s->best.units[i]) {
				vec_push(&plan->lights, c->light);
				c->light = (struct workload_light){ 0 };
			}
		}
		add_uses(pl, i, plan);
	}
}

static int search(struct workload_planner *pl, struct workload_plan *plan, struct err *err)
{
	struct plan_search s = { .pl = pl, .best_ns = INFINITY, .bound_ns = INFINITY, .err = err };
	const struct class_cost *still;
	double y[WORKLOAD_MAX_OPS];
	size_t n = pl->w->units.n;
	int rc = class_of(pl, all_units(pl->w), &still, err);

	if (rc) {
		return rc;
	}
	plan->still_ns = still->time_ns < INFINITY ? (int64_t)ceil(still->time_ns - 1e-6) : -1;
	plan->bound.still_ns = (int64_t)still_bound(pl, still->units, y);
	for (size_t i = 0; i < pl->w->ops.n; i++) {
		vec_push(&plan->bound.weights, (struct workload_weight){ y[i] });
	}
	plan->bound.any_ns = (int64_t)any_bound(pl);
	plan->exhaustive = n <= WORKLOAD_EXACT_UNITS || pl->p->change_ns < 0;
	if (plan->exhaustive && pl->p->change_ns >= 0) {
		rc = try_partitions(&s, 0);
	} else {
		rc = try_moves(&s, false);
		rc = rc || pl->p->change_ns < 0 ? rc : try_moves(&s, true);
	}
	if (rc) {
		return rc;
	}
	if (s.best_ns == INFINITY) {
		return refuse_ports(pl, err);
	}
	for (size_t u = 0; !plan->exhaustive && u < n; u++) {
		s.bound_ns = u ? s.bound_ns : 0;
		s.bound_ns += still_bound(pl, UINT32_C(1) << u, NULL);
	}
	plan->bound.classes_ns = (int64_t)s.bound_ns;
	take_best(pl, &s, plan);
	return 0;
}

static int check(const struct workload *w, const struct workload_params *p, struct err *err)
{
	if (p->ports < 1 || p->link_bps < 1 || p->alpha_ns < 0 || w->units.n == 0) {
		return err_set(err, WEFT_EINVAL, "a step of %zu units on %d ports", w->units.n,
			       p->ports);
	}
	for (size_t i = 0; i < w->ops.n; i++) {
		if (p->both && w->ops.v[i].shift) {
			return err_set(err, WEFT_EUNSUPPORTED, "%s: sends, where a circuit is one "
				       "both ways", w->ops.v[i].name);
		}
	}
	return 0;
}

static void light_fini(struct workload_light *l)
{
	for (size_t i = 0; i < l->shares.n; i++) {
		free(l->shares.v[i].expr);
	}
	vec_fini(&l->shares);
	vec_fini(&l->gaps);
}

int workload_make_plan(const struct workload *w, const struct workload_params *p,
		       struct workload_plan **out, struct err *err)
{
	struct workload_planner pl = { .w = w, .p = p };
	struct workload_plan *plan;
	int rc = check(w, p, err);

	*out = NULL;
	if (rc) {
		return rc;
	}
	plan = x_new(1, sizeof(*plan));
	plan->params = *p;
	coll_finder_new(&pl.finder);
	rc = search(&pl, plan, err);
	coll_finder_free(pl.finder);
	digraphs_fini(&pl);
	for (size_t i = 0; i < pl.classes.n; i++) {
		light_fini(&pl.classes.v[i].light);
	}
	vec_fini(&pl.classes);
	if (rc) {
		workload_plan_free(plan);
	} else {
		*out = plan;
	}
	return rc;
}

void workload_plan_free(struct workload_plan *plan)
{
	if (!plan) {
		return;
	}
	for (size_t i = 0; i < plan->lights.n; i++) {
		light_fini(&plan->lights.v[i]);
	}
	vec_fini(&plan->lights);
	for (size_t i = 0; i < plan->uses.n; i++) {
		coll_free(plan->uses.v[i].sched);
	}
	vec_fini(&plan->uses);
	vec_fini(&plan->bound.weights);
	free(plan);
}

/* ---- light ---- */

/* Arcs of the share between the ranks of a rail. */
static int add_rail(const struct workload *w, const struct workload_share *s,
		     const struct topo *digraph, const int *ranks, struct topo *t, struct err *err)
{
	int n = workload_servers(w, s->axes), rc = 0;

	for (int i = 0; !digraph && i < n && !rc; i++) {
		for (int k = 0; k < s->ports && !rc; k++) {
			int to = i + s->shift;

			if (to >= 0 && to < n) {
				rc = topo_add_arc(t, ranks[i], ranks[to], 1, 0, err);
			}
			to = i - s->shift;
			if (s->paired && to >= 0 && to < n && !rc) {
				rc = topo_add_arc(t, ranks[i], ranks[to], 1, 0, err);
			}
		}
	}
	for (int a = 0; digraph && a < topo_m(digraph) && !rc; a++) {
		const struct topo_arc *arc = topo_arc(digraph, a);

		rc = topo_add_arc(t, ranks[arc->src], ranks[arc->dst], arc->cap, 0, err);
	}
	return rc;
}

static int add_share(const struct workload *w, const struct workload_share *s, struct topo *t,
		     struct err *err)
{
	int *ranks = x_new((size_t)workload_servers(w, s->axes), sizeof(*ranks));
	struct topo *digraph = NULL;
	int rc = s->expr ? topo_parse(s->expr, &digraph, NULL, err) : 0;

	if (!rc && digraph && topo_n(digraph) != workload_servers(w, s->axes)) {
		rc = err_set(err, WEFT_EINVAL, "%s is not of %d ranks", s->expr,
			     workload_servers(w, s->axes));
	}
	for (int r = 0; r < workload_ranks(w, WORKLOAD_ALL_AXES) && !rc; r++) {
		if (workload_rail(w, s->axes, r, ranks) == 0) {
			rc = add_rail(w, s, digraph, ranks, t, err);
		}
	}
	topo_free(digraph);
	free(ranks);
	return rc;
}

int workload_light_topo(const struct workload *w, const struct workload_light *l,
			struct topo **out, struct err *err)
{
	int rc = topo_new(workload_ranks(w, WORKLOAD_ALL_AXES), out, err);

	for (size_t i = 0; i < l->shares.n && !rc; i++) {
		rc = add_share(w, &l->shares.v[i], *out, err);
	}
	if (rc) {
		topo_free(*out);
		*out = NULL;
		return rc;
	}
	topo_freeze(*out);
	return l->gaps.n ? drop_gaps(out, l->gaps.v, l->gaps.n, err) : 0;
}
