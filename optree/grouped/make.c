/* SPDX-License-Identifier: Apache-2.0 */
/* A grouped plan as others see it: its counts and levels. */
#include <stdlib.h>

#include "lib/base/alloc.h"
#include "optree/baselines/baselines.h"
#include "optree/grouped/grouped.h"

/* What the lightpaths of a round add to its level. */
static void add_round(const struct optree_groups *g, const struct grouped_round *r,
		      struct optree_level *l)
{
	l->rounds++;
	l->steps += r->slots;
	for (size_t i = r->path; i < r->path + r->n_paths; i++) {
		int64_t items = (g->paths.v[i].items + g->units - 1) / g->units;

		l->items = items > l->items ? (int)items : l->items;
	}
}

static void set_gathering(const struct optree_groups *g, struct optree_level *level)
{
	for (int k = 1; k <= g->shape.stages; k++) {
		int before = g->stage[k - 1].count, count = g->stage[k].count;

		level[k - 1] = (struct optree_level){
			.gathers = true, .subsets = count, .members = (before + count - 1) / count,
			.stride = g->n / before };
		level[k - 1].jump = level[k - 1].members / 2;
	}
}

static void set_levels(const struct optree_groups *g, struct optree_plan *out)
{
	struct optree_level *level = out->level + g->shape.stages;
	int copies = 1;

	out->n_levels = g->shape.stages + g->shape.levels;
	set_gathering(g, out->level);
	for (int j = 0; j < g->shape.levels; j++) {
		const struct grouped_level *l = &g->shape.level[j];
		int before = copies;

		copies *= l->times ? l->times : 1;
		level[j] = (struct optree_level){
			.members = l->times ? l->times : (l->gap + l->stride - 1) / l->stride,
			.stride = l->times ? g->n / copies : l->stride, .jump = l->jump };
		level[j].subsets = l->times ? g->stage[g->shape.stages].count * before
					    : (g->n + level[j].members - 1) / level[j].members;
	}
	for (size_t i = 0; i < g->rounds.n; i++) {
		add_round(g, &g->rounds.v[i], &out->level[g->rounds.v[i].level]);
	}
}

/* Parts to their hubs, level by level to the owners, and back. */
static void set_owner_levels(const struct optree_groups *g, struct optree_plan *out)
{
	int levels = g->shape.owners, hubs = g->n, parts = 1;

	out->n_levels = 2 * levels;
	for (int k = 0; k < levels; k++) {
		const struct grouped_owner *o = &g->shape.owner[k];
		int members = (hubs + o->hubs - 1) / o->hubs;

		parts *= o->parts;
		out->level[k] = (struct optree_level){
			.gathers = true, .subsets = parts * o->hubs, .members = members,
			.stride = g->n / hubs, .jump = members / 2 };
		out->level[2 * levels - 1 - k] = out->level[k];
		out->level[2 * levels - 1 - k].gathers = false;
		hubs = o->hubs;
	}
	for (size_t i = 0; i < g->rounds.n; i++) {
		add_round(g, &g->rounds.v[i], &out->level[g->rounds.v[i].level]);
	}
}

/* The levels of sums or pieces: stages, exchange, stages back. */
static void set_sum_levels(const struct optree_groups *g, struct optree_plan *out)
{
	int stages = g->shape.stages, groups = g->stage[stages].count;

	if (g->shape.owners) {
		set_owner_levels(g, out);
		return;
	}
	out->n_levels = 2 * stages + 1;
	set_gathering(g, out->level);
	out->level[stages] = (struct optree_level){
		.subsets = 1, .members = groups, .stride = g->n / groups, .jump = groups / 2 };
	for (int k = 0; k < stages; k++) {
		out->level[2 * stages - k] = out->level[k];
		out->level[2 * stages - k].gathers = false;
	}
	for (size_t i = 0; i < g->rounds.n; i++) {
		add_round(g, &g->rounds.v[i], &out->level[g->rounds.v[i].level]);
	}
}

/* Proves *g and takes it over. */
static int make_plan(const struct optree_params *p, struct optree_groups *g,
		     struct optree_plan *out, struct err *err)
{
	struct rwa_ring ring = { p->n, p->fibres, p->channels };
	int rc = grouped_verify(g, err);

	if (rc) {
		grouped_fini(g);
		return rc;
	}
	out->groups = x_alloc(1, sizeof(*out->groups));
	*out->groups = *g;
	out->algorithm = OPTREE_GROUPED;
	out->rounds = (int)g->rounds.n;
	out->steps = (int)g->steps;
	out->chunks = g->chunks;
	out->lightpaths = g->lightpaths;
	out->time_ns = g->time_ns;
	out->worst_loss_mdb = p->loss ? rwa_path_loss_mdb(&ring, p->loss,
							  tree_span(p, g->max_len)) : 0;
	make_published(p, optree_best_depth(p->n), out);
	return 0;
}

int grouped_make(const struct optree_params *p, int64_t limit_ns, struct optree_plan *out,
		 struct err *err)
{
	struct optree_groups g;
	int reach, rc;

	if ((rc = part_supports(p, OPTREE_GROUPED, err)) || (rc = make_reach(p, &reach, err)) ||
	    (rc = grouped_best(p, reach, limit_ns, &g, err)) || (rc = make_plan(p, &g, out, err))) {
		return rc;
	}
	set_levels(&g, out);
	return 0;
}

int grouped_make_sums(const struct optree_params *p, enum coll_kind kind, int64_t limit_ns,
		      struct optree_plan *out, struct err *err)
{
	struct optree_groups g;
	int reach, rc;

	if ((rc = part_supports(p, OPTREE_GROUPED, err)) || (rc = make_reach(p, &reach, err)) ||
	    (rc = grouped_best_sums(p, kind, reach, limit_ns, &g, err)) ||
	    (rc = make_plan(p, &g, out, err))) {
		return rc;
	}
	set_sum_levels(&g, out);
	out->kind = kind;
	return 0;
}
