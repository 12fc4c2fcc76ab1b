/* SPDX-License-Identifier: Apache-2.0 */
/* All collectives on rings: the entry of the room. A reduce-scatter is an all-gather with
 * time and arcs reversed, an all-reduce that followed by the all-gather. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "optree/baselines/baselines.h"
#include "optree/grouped/grouped.h"

/* Time of an all-reduce, from that of its all-gather: less what needs no
 * retuning where one half meets the other. */
static void set_both_halves(const struct optree_params *p, struct optree_plan *out)
{
	int64_t plain = 2 * (out->time_ns + out->retune_hidden_ns);

	out->time_ns *= 2;
	if (p->overlap && out->sym) {
		out->time_ns = overlap_time_ns(p, out->sym, COLL_ALLREDUCE, NULL);
	}
	out->retune_hidden_ns = plain - out->time_ns;
}

/* Reverses the written all-gather of *out. Reversed lightpaths go the other
 * way round, so of unequal light the one to reverse is that of a ring whose
 * directions have changed places. */
static int reverse_written(const struct optree_params *p, enum coll_kind kind,
			   enum optree_algorithm how, struct optree_plan *out, struct err *err)
{
	struct optree_params other = *p;
	struct optree_plan mirror = { 0 };
	VEC(struct optree_fibre) light = { 0 };
	int rc = 0;

	for (int k = 0; k < p->n_light; k++) {
		struct optree_fibre f = p->light[k];

		f.dir = !f.dir;
		vec_push(&light, f);
	}
	other.light = light.v;
	/* What composed has written out is a tree of one stage. */
	how = how == OPTREE_COMPOSED ? OPTREE_BY_ONE_STAGE : how;
	if (p->n_light) {
		rc = make_gather(&other, how, &mirror, err);
	}
	if (!rc) {
		rc = collectives_convert(p, kind, mirror.sched, &out->sched, err);
	}
	optree_plan_fini(&mirror);
	vec_fini(&light);
	return rc;
}

/* Reduce-scatter is an all-gather the other way round in time, all-reduce
 * one after the other. */
static int make_reduction(const struct optree_params *p, enum coll_kind kind,
			  enum optree_algorithm how, struct optree_plan *out, struct err *err)
{
	struct optree_params half = *p;
	int rc;

	half.both_halves = kind == COLL_ALLREDUCE;
	if (kind == COLL_ALLREDUCE && p->max_lights) {
		half.max_lights = p->max_lights / 2 + !(p->max_lights / 2);
	}
	rc = make_gather(&half, how, out, err);
	if (rc) {
		return rc;
	}
	out->kind = kind;
	if (out->sched) {
		rc = reverse_written(p, kind, out->algorithm, out, err);
	}
	if (!rc && kind == COLL_ALLREDUCE) {
		if (out->time_ns > INT64_MAX / 2 - out->retune_hidden_ns) {
			return err_set(err, WEFT_ELIMIT, "it lasts longer than 292 years");
		}
		set_both_halves(p, out);
		out->steps *= 2;
		out->rounds *= 2;
		out->lightpaths *= 2;
		out->closed_form_steps *= 2;
		out->optree_time_ns = out->optree_time_ns > INT64_MAX / 2
					      ? INT64_MAX
					      : 2 * out->optree_time_ns;
	}
	return rc;
}

/* An all-reduce, also of whole vectors where that is faster. */
static int make_allreduce(const struct optree_params *p, enum optree_algorithm how,
			  struct optree_plan *out, struct err *err)
{
	struct optree_plan sums = { 0 };
	int rc = make_reduction(p, COLL_ALLREDUCE, how, out, err);
	bool may = (how == OPTREE_AUTO && !p->depth) || how == OPTREE_GROUPED;

	if (rc || !may || grouped_make_sums(p, COLL_ALLREDUCE, out->time_ns, &sums,
					    &(struct err){ 0 })) {
		return rc;
	}
	/* The paper has two halves. */
	sums.closed_form_steps = out->closed_form_steps;
	sums.optree_time_ns = out->optree_time_ns;
	optree_plan_fini(out);
	*out = sums;
	return 0;
}

static int compose_all_to_all(const struct optree_params *p, struct optree_plan *out,
			      struct err *err)
{
	struct compose_shape shape;
	struct optree_sym s;
	int reach, rc = make_reach(p, &reach, err);

	if (rc || (rc = compose_exchange(p, reach, &shape, &s, err)) ||
	    (rc = make_from_sym(p, OPTREE_COMPOSED, &s, out, err))) {
		return rc;
	}
	out->kind = COLL_ALLTOALL;
	make_levels_of(p, &shape, out);
	for (int j = 0; j < out->n_levels; j++) {
		out->level[j].members = shape.level[j].gap /
					shape.level[j].stride + 1;
		out->level[j].items = 0;
		out->level[j].subsets = 0;
	}
	return 0;
}

/* An all-to-all: composed, or relayed by groups where that is faster. */
static int make_exchange(const struct optree_params *p, enum optree_algorithm how,
			 struct optree_plan *out, struct err *err)
{
	struct optree_plan groups = { 0 };
	int rc = how == OPTREE_GROUPED
			 ? grouped_make_sums(p, COLL_ALLTOALL, INT64_MAX, out, err)
			 : compose_all_to_all(p, out, err);

	if (!rc && how == OPTREE_AUTO && !grouped_make_sums(p, COLL_ALLTOALL, out->time_ns, &groups,
							    &(struct err){ 0 })) {
		optree_plan_fini(out);
		*out = groups;
	}
	/* As published, OpTree is an all-gather. */
	out->optree_time_ns = 0;
	out->closed_form_steps = 0;
	return rc;
}

#define AUTO_STEPS 10000

/* With overlap a stream is the better the more steps it has, each of which has to be stored and
 * sent to devices: very many are made for who names the algorithm. */
static int make_broadcast(const struct optree_params *p, int root, enum optree_algorithm how,
			  struct optree_plan *out, struct err *err)
{
	struct optree_params few = *p;
	int reach, rc = make_reach(p, &reach, err);

	few.max_steps = how == OPTREE_AUTO ? AUTO_STEPS : p->max_steps;
	return rc ? rc : broadcast_make(&few, root, reach, out, err);
}

#define TIMELINE_LINKS (1 << 22)	/* of all lightpaths */

/* What was written out with a retuning in every step takes less where channels are idle
 * meanwhile: as long as its resonators say, unless these are very many. */
static void set_overlapped(const struct optree_params *p, struct optree_plan *out)
{
	struct retune_timeline t;
	int64_t n, links = 0, plain = out->time_ns;
	const struct coll_light *l = coll_lights(out->sched, &n);
	__int128 unit = (__int128)p->channel_bps * coll_chunks(out->sched);

	for (int64_t k = 0; k < n && links <= TIMELINE_LINKS; k++) {
		const struct topo_arc *a = topo_arc(coll_topo(out->sched), l[k].arc);

		links += optree_links(p, a->src, a->dst, l[k].dir);
	}
	if (links > TIMELINE_LINKS) {
		return;
	}
	retune_timeline(p, out->sched, &t);
	out->time_ns = t.steps ? (int64_t)((t.end[t.steps - 1] + unit - 1) / unit) : plain;
	out->retune_hidden_ns += plain - out->time_ns;
	retune_fini(&t);
}

int optree_collective(const struct optree_params *p, enum coll_kind kind, int root,
		      enum optree_algorithm how, struct optree_plan *out, struct err *err)
{
	int rc = tree_check_params(p, err);

	memset(out, 0, sizeof(*out));
	if (rc) {
		return rc;
	}
	if (kind == COLL_ALLGATHER) {
		rc = make_gather(p, how, out, err);
	} else if (kind == COLL_REDUCE_SCATTER || kind == COLL_ALLREDUCE) {
		rc = kind == COLL_ALLREDUCE ? make_allreduce(p, how, out, err)
					    : make_reduction(p, kind, how, out, err);
	} else if (how != OPTREE_AUTO && how != OPTREE_COMPOSED &&
		   (how != OPTREE_GROUPED || kind != COLL_ALLTOALL)) {
		rc = err_set(err, WEFT_EUNSUPPORTED, "%s by %s: not supported, only composed%s",
			     coll_kind_name(kind), optree_algorithm_name(how),
			     kind == COLL_ALLTOALL ? " or grouped" : "");
	} else if (kind == COLL_ALLTOALL) {
		rc = make_exchange(p, how, out, err);
	} else {
		rc = make_broadcast(p, root, how, out, err);
	}
	if (!rc && p->overlap && out->sched) {
		set_overlapped(p, out);
	}
	if (!rc) {
		rc = ring_bound_set(p, root, out, err);
	}
	if (rc) {
		optree_plan_fini(out);
	}
	return rc;
}

int optree_make(const struct optree_params *p, enum optree_algorithm how,
		struct optree_plan *out, struct err *err)
{
	return optree_collective(p, COLL_ALLGATHER, 0, how, out, err);
}

int optree_plan(const struct optree_params *p, struct optree_plan *out, struct err *err)
{
	int rc = tree_plan(p, out, err);

	if (!rc && (rc = ring_bound_set(p, 0, out, err))) {
		optree_plan_fini(out);
	}
	return rc;
}
