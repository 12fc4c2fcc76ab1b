/* SPDX-License-Identifier: Apache-2.0 */
/* A plan as a value: made of a symmetric form, and freed. */
#include <stdlib.h>

#include "lib/base/alloc.h"
#include "optree/baselines/baselines.h"
#include "optree/grouped/grouped.h"

void make_levels_of(const struct optree_params *p,
		    const struct compose_shape *shape, struct optree_plan *out)
{
	const struct optree_sym *s = out->sym;

	out->n_levels = shape->levels;
	for (int j = 0; j < shape->levels; j++) {
		const struct compose_level *l = &shape->level[j];

		out->level[j] = (struct optree_level){
			.members = (l->gap + l->stride - 1) / l->stride,
			.items = (p->n + l->gap - 1) / l->gap,
			.stride = l->stride, .jump = l->jump, .uneven = shape->uneven,
		};
		out->level[j].subsets = (p->n + out->level[j].members - 1) /
					out->level[j].members;
	}
	for (size_t i = 0; i < s->rounds.n; i++) {
		out->level[s->rounds.v[i].level].rounds++;
		out->level[s->rounds.v[i].level].steps += s->rounds.v[i].slots;
	}
}

/* Classes beyond those that the lightpaths in them load a link with:
 * what rings cost whose size is no multiple of a stride, and whose tiles are not full. */
static int over_bound(const struct optree_sym *s)
{
	int sum = 0;

	for (size_t i = 0; i < s->moves.n && !s->line; i++) {
		const struct sym_move *m = &s->moves.v[i];

		for (size_t k = m->band; k < m->band + m->n_bands; k++) {
			const struct sym_band *b = &s->bands.v[k];

			sum += (b->at ? 0 : optree_sym_classes_of(s, b->tile)) - m->len;
		}
	}
	return sum;
}

static int set_times(const struct optree_params *p, const struct optree_sym *s,
		     struct optree_plan *out, struct err *err)
{
	int64_t plain = compose_time_ns(p, s);

	out->time_ns = compose_times(p, s);
	if (out->time_ns < 0) {
		return err_set(err, WEFT_ELIMIT, "%d steps last longer than 292 years", out->steps);
	}
	out->retune_hidden_ns = plain - out->time_ns;
	return 0;
}

int make_from_sym(const struct optree_params *p, enum optree_algorithm how, struct optree_sym *s,
		  struct optree_plan *out, struct err *err)
{
	int rc = optree_sym_verify(s, err);

	if (rc) {
		optree_sym_fini(s);
		return rc;
	}
	out->sym = x_alloc(1, sizeof(*out->sym));
	*out->sym = *s;
	out->algorithm = how;
	out->steps = (int)s->steps;
	out->rounds = (int)s->rounds.n;
	out->chunks = s->chunks;
	out->lightpaths = s->lightpaths;
	out->colours_over_bound = over_bound(s);
	out->worst_loss_mdb = p->loss ? rwa_path_loss_mdb(&s->ring, p->loss,
					tree_span(p, s->max_len)) : 0;
	rc = set_times(p, out->sym, out, err);
	if (!rc) {
		make_published(p, optree_best_depth(p->n), out);
	}
	return rc;
}

void optree_plan_fini(struct optree_plan *plan)
{
	coll_free(plan->sched);
	plan->sched = NULL;
	broadcast_free(plan->broadcast);
	plan->broadcast = NULL;
	if (plan->sym) {
		optree_sym_fini(plan->sym);
		free(plan->sym);
		plan->sym = NULL;
	}
	if (plan->groups) {
		grouped_fini(plan->groups);
		free(plan->groups);
		plan->groups = NULL;
	}
}
