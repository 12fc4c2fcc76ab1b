/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All-to-all: from a flow, from paths that are searched for, or from a flow over steps.
 *
 * A flow divides at will, and its rate bounds all others, but it takes many steps and chunks;
 * single paths take few. A flow over steps is best where it is small enough to be solved. In a
 * fabric loads are known only once a schedule is embedded: there batches even out its steps.
 */
#include <math.h>
#include <stdlib.h>

#include "collective/make/private.h"
#include "lib/base/alloc.h"

/* Ranks up to which "auto" tries paths beside the flow's, and columns of a flow over steps: with
 * more, making them takes longer than what they may gain is worth. */
#define MAX_SEARCHED 64
#define MAX_SHORTEST 256
#define MAX_STEP_COLUMNS 8192

/* Transfers of batches. */
#define MAX_BATCHED (1 << 18)

void coll_raise_bound(const struct coll_sched *s, struct coll_report *r)
{
	int64_t lights;

	coll_lights(s, &lights);
	if (coll_kind_of(s) == COLL_ALLTOALL && !coll_demands(s) && lights == 0 &&
	    !r->bandwidth_optimal) {
		make_raise_bound(s, mcf_bound(coll_physical(s)), r);
	}
}

/* The bound of paths that one was made with: of an earlier offer where that is more. In a fabric
 * flows on what ranks see bound nothing, but its own. */
static void take_bound(const struct coll_make_query *q, const struct coll_made *best,
		       struct coll_made *one)
{
	struct mcf_result *flow = &one->pairs.info.flow;

	if (best->sched && (q->fabric || best->pairs.info.flow.bound > flow->bound)) {
		*flow = best->pairs.info.flow;
	} else if (q->fabric) {
		flow->bound = q->pairs.demands ? 0 : mcf_bound(q->fabric->topo);
	}
}

/* What a step takes beside its load, and a shard to cross a link. q has a cost. */
static double fixed_ns(const struct coll_make_query *q)
{
	return (double)(q->cost->alpha_ns + q->cost->hop_ns + q->cost->message_ns);
}

static double shard_ns(const struct coll_make_query *q)
{
	return (double)q->cost->size_bytes * 8e9 / (double)q->cost->link_bps / topo_ranks(q->topo);
}

/* The first in the time of the second. */
static double step_cost(const struct coll_make_query *q)
{
	return q->cost ? fixed_ns(q) / fmax(shard_ns(q), fixed_ns(q) * 1e-9 + 1e-9) : 0;
}

/* Whether a schedule of so many steps may be faster: its flow is not below the bound of all. */
static bool may_gain(const struct coll_make_query *q, const struct coll_made *best, int steps)
{
	double min = fmax(steps * fixed_ns(q) + best->pairs.info.flow.bound * shard_ns(q),
			    (double)best->bound_ns);

	return (double)best->time_ns > min * MET(q);
}

/* Nothing can be better than the best: with a cost it takes its bound, else it has the
 * bound's T_B in as many steps as a path has hops, which is then a shortest one. */
static bool is_best(const struct coll_make_query *q, const struct coll_made *m)
{
	return q->cost ? !may_gain(q, m, topo_diameter(q->topo))
		       : m->report.bandwidth_optimal && !m->pairs.stepped &&
				 m->report.steps == m->pairs.info.longest;
}

/* Whether "auto" tries more than the flow's schedule: not after a failure, where the flow goes on,
 * and where it is stopped, or is stopped by time, which would not be the same anywhere. */
static bool tries_more(const struct coll_make_query *q, const struct coll_made *best, int max_ranks)
{
	const struct mcf_options *flow = &q->pairs.flow;

	return !q->pairs.before.flow && !flow->deadline.at_ns &&
	       !(flow->cancel && *flow->cancel) && topo_ranks(q->topo) <= max_ranks &&
	       best->sched && !is_best(q, best);
}

/* Drops an offer that could not be made. */
static void pass_over(int rc, struct err *err)
{
	if (rc) {
		err_clear(err);
	}
}

static int offer_steps(const struct coll_make_query *q, const struct coll_algorithm *self,
		       int steps, struct coll_made *best, struct err *err)
{
	struct mcf_steps_options opt = { .steps = steps, .flow = q->pairs.flow,
					 .demands = q->pairs.demands, .loss = q->pairs.loss };
	struct coll_made one = { .algorithm = self, .pairs.stepped = true };
	int rc = mcf_steps(q->topo, &opt, &one.sched, &one.pairs.steps, err);

	one.pairs.info.flow = one.pairs.steps.flow;
	take_bound(q, best, &one);
	return rc ? rc : make_offer(q, &one, best, err);
}

/* From a flow over steps; "auto" takes as many as the diameter, and one more. */
int make_by_steps(const struct coll_make_query *q, const struct coll_algorithm *self,
		  struct coll_made *best, struct err *err)
{
	int least, orbits;
	double columns;

	if (q->algorithm) {
		return offer_steps(q, self, q->pairs.steps, best, err);
	}
	if (!tries_more(q, best, MAX_SEARCHED)) {
		return 0;
	}
	least = topo_diameter(q->topo);
	orbits = topo_ranks(q->topo) / topo_group_order(coll_group(best->sched));
	columns = (double)orbits * (topo_n(q->topo) + topo_m(q->topo));
	for (int k = least; k <= least + 1 && columns * k <= MAX_STEP_COLUMNS; k++) {
		if (q->cost && !may_gain(q, best, k)) {
			break;
		}
		pass_over(offer_steps(q, self, k, best, err), err);
	}
	return 0;
}

/* From a flow in the form of the algorithm, or from its paths. */
int make_by_flow(const struct coll_make_query *q, const struct coll_algorithm *self,
		 struct coll_made *best, struct err *err)
{
	const struct coll_flow_before *before = &q->pairs.before;
	struct coll_made one = { .algorithm = self };
	struct mcf_sched_options opt = {
		.flow = q->pairs.flow, .demands = q->pairs.demands, .loss = q->pairs.loss,
		.form = self->form, .paths = self->paths,
		.before = before->flow,
		.before_topo = before->topo, .dropped = before->dropped, .kept = &one.flow,
	};
	int rc;

	opt.step_cost = step_cost(q);
	/* A single path a pair needs one chunk for all. */
	opt.max_chunks = opt.paths == MCF_PATHS_SINGLE || opt.paths == MCF_PATHS_SHORTEST;
	rc = mcf_schedule(q->topo, &opt, &one.sched, &one.pairs.info, err);
	if (rc) {
		mcf_free(one.flow);
		return rc;
	}
	take_bound(q, best, &one);
	return q->fabric && !q->algorithm && !q->pairs.demands
		       ? make_offer_overlapped(q, &one, MAX_BATCHED, best, err)
		       : make_offer(q, &one, best, err);
}

/* Of "auto", for up to so many ranks. The flow behind paths of pairs only says when their search
 * may end: within the loss is near enough. */
static int make_by_paths(const struct coll_make_query *q, const struct coll_algorithm *self,
			 int max_ranks, struct coll_made *best, struct err *err)
{
	struct coll_make_query how = *q;

	if (q->algorithm) {
		return make_by_flow(q, self, best, err);
	}
	if (q->pairs.demands || !tries_more(q, best, max_ranks)) {
		return 0;
	}
	how.pairs.flow.gap = fmax(q->pairs.flow.gap, q->pairs.loss);
	pass_over(make_by_flow(&how, self, best, err), err);
	return 0;
}

static bool has_arc(const struct topo *t, int u, int v)
{
	int first, end = topo_out(t, u, &first) + first;

	while (first < end && topo_arc(t, first)->dst != v) {
		first++;
	}
	return first < end;
}

/* What ranks see without what goes over switches between those of a box, which links of their own
 * join: these switches are for what leaves it. NULL: no such boxes. */
static int see_boxes(const struct coll_make_query *q, struct topo **out, struct err *err)
{
	int n = topo_ranks(q->topo), rc = topo_new(n, out, err);
	int32_t *box = x_alloc((size_t)n, sizeof(*box));
	int boxes = make_join_ranks(q->fabric->topo, 0, box);

	for (int a = 0; a < topo_m(q->topo) && !rc; a++) {
		const struct topo_arc *arc = topo_arc(q->topo, a);

		if (box[arc->src] != box[arc->dst] ||
		    has_arc(q->fabric->topo, arc->src, arc->dst)) {
			rc = topo_add_arc_like(*out, arc->src, arc->dst, arc, err);
		}
	}
	free(box);
	if (rc || boxes == 1 || boxes == n) {
		topo_free(*out);
		*out = NULL;
		return rc;
	}
	topo_freeze(*out);
	return 0;
}

/* Paths that are searched for pair by pair; "auto" for few ranks only, and within boxes, too. */
int make_by_searched(const struct coll_make_query *q, const struct coll_algorithm *self,
		     struct coll_made *best, struct err *err)
{
	struct coll_make_query how = *q;
	struct topo *boxes = NULL;
	int rc = make_by_paths(q, self, MAX_SEARCHED, best, err);

	if (rc || q->algorithm || !q->fabric || self->paths != MCF_PATHS_SINGLE ||
	    (rc = see_boxes(q, &boxes, err)) || !boxes) {
		return rc;
	}
	how.topo = boxes;
	rc = make_by_paths(&how, self, MAX_SEARCHED, best, err);
	topo_free(boxes);
	return rc;
}

int make_by_shortest(const struct coll_make_query *q, const struct coll_algorithm *self,
		     struct coll_made *best, struct err *err)
{
	return make_by_paths(q, self, MAX_SHORTEST, best, err);
}
