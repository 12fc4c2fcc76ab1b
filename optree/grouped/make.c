/* A grouped plan as others see it: its counts and levels. */
#include <stdlib.h>

#include "optree/grouped/grouped.h"

/* What the lightpaths of a round add to its level. */
static void add_round(const struct optree_groups *g, const struct grouped_round *r,
		      struct optree_level *l)
{
	l->rounds++;
	l->steps += r->slots;
	for (size_t i = r->path; i < r->path + r->n_paths; i++) {
		int64_t items = g->paths.v[i].items;

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

static int check_ring(const struct optree_params *p, struct err *err)
{
	if (p->overlap) {
		return err_set(err, WEFT_EUNSUPPORTED,
			       "grouped with overlap of retuning: not supported");
	}
	return part_supports(p, OPTREE_GROUPED, err);
}

int grouped_make(const struct optree_params *p, int64_t limit_ns, struct optree_plan *out,
		 struct err *err)
{
	struct optree_groups g;
	int reach, rc;

	if ((rc = check_ring(p, err)) || (rc = make_reach(p, &reach, err)) ||
	    (rc = grouped_best(p, reach, limit_ns, &g, err))) {
		return rc;
	}
	out->groups = malloc(sizeof(*out->groups));
	rc = out->groups ? grouped_verify(&g, err) : err_nomem(err);
	if (rc) {
		free(out->groups);
		out->groups = NULL;
		grouped_fini(&g);
		return rc;
	}
	*out->groups = g;
	out->algorithm = OPTREE_GROUPED;
	out->rounds = (int)g.rounds.n;
	out->steps = (int)g.steps;
	out->chunks = g.chunks;
	out->lightpaths = g.lightpaths;
	out->time_ns = g.time_ns;
	out->worst_loss_mdb = p->loss ? rwa_path_loss_mdb(&(struct rwa_ring){
			p->n, p->fibres, p->channels }, p->loss, tree_span(p, g.max_len)) : 0;
	set_levels(&g, out);
	make_published(p, optree_best_depth(p->n), out);
	return 0;
}
