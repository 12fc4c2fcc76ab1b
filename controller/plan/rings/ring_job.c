/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A job on a ring of micro-ring resonators: its schedule, the light of it, and
 * the step program that the ring's controller runs by itself.
 *
 * The schedule is optree's, on the window of positions and channels that the
 * job has (ring_partition.c). It numbers positions and channels from 0
 * within that window; the program names those of the ring, which is where the
 * two meet (set_ends). Jobs that keep their light do without what their program
 * did without, whatever has failed or recovered since.
 */
#include <stdlib.h>
#include <string.h>

#include "controller/plan/private.h"
#include "lib/base/alloc.h"
#include "lib/base/vec.h"

static int make_plan(const struct optree_params *p, const struct model_job *job,
		     struct optree_plan *out, struct err *err)
{
	enum optree_algorithm how;
	int rc = optree_algorithm_parse(job->algorithm, &how, err);

	if (rc == 0 && job->depth && how != OPTREE_AUTO && how != OPTREE_TREE) {
		rc = err_set(err, WEFT_EINVAL, "depth is of OpTree's tree, %s plans have none",
			     job->algorithm);
	}
	if (rc || (rc = optree_collective(p, job->collective, 0, how, out, err))) {
		return rc;
	}
	return optree_plan_expand(p, out, err);
}

/* As the fabric says, else as the device reports. */
static bool has_overlap(const struct plan_ctx *ctx, int device)
{
	const struct plan_light *seen = plan_observed(ctx, device);

	switch (ctx->fabric->devices[device].overlap) {
	case MODEL_OVERLAP_ON: return true;
	case MODEL_OVERLAP_OFF: return false;
	default: return seen->overlap;
	}
}

/* What a host owns; in an all-to-all what all of its ranks have for all of another's. */
static int64_t shard_bytes(const struct model_fabric *f, const struct model_job *job)
{
	int ranks = job->collective == COLL_ALLTOALL ? f->hosts[job->hosts[0]].ranks : 1;
	__int128 all = (__int128)job->size_bytes * ranks + job->n_hosts - 1;

	all /= job->n_hosts;
	return all < INT64_MAX ? (int64_t)all : INT64_MAX;
}

/* Light passes the resonators of all channels, not just the job's. */
static void fill_params(const struct plan_ctx *ctx, const struct plan_job *pj,
			struct optree_params *p, struct rwa_loss *loss)
{
	const struct model_job *job = &ctx->fabric->jobs[pj->job];
	const struct model_device *dev = &ctx->fabric->devices[job->device];
	const struct plan_share *share = &pj->share;

	*loss = dev->loss;
	if (loss->rings_per_node == 0) {
		loss->rings_per_node = dev->ring.channels;
	}
	*p = (struct optree_params){
		.n = job->n_hosts,
		.channels = share->window.channels,
		.fibres = dev->ring.fibres,
		.depth = job->depth,
		.shard_bytes = shard_bytes(ctx->fabric, job),
		.channel_bps = dev->channel_bps,
		.alpha_ns = job->alpha_ns >= 0
				    ? job->alpha_ns
				    : dev->retune_ns + dev->conversion_ns,
		.span_delay_ns = dev->span_delay_ns,
		.loss = dev->has_loss ? loss : NULL,
		.at = job->n_hosts < dev->n_members ? share->at : NULL,
		.ring_nodes = dev->n_members,
		.line = job->segment,
		.overlap = has_overlap(ctx, job->device),
		.max_lights = COLL_MAX_LIGHTS,
	};
	if (p->overlap) {
		p->convert_ns = dev->conversion_ns < p->alpha_ns
					? dev->conversion_ns : p->alpha_ns;
	}
}

/* What a plan says of its job. */
static int take_plan(const struct plan_ctx *ctx, struct plan_job *pj,
		     const struct optree_params *p, struct err *err)
{
	int rc = plan_host_with_ranks(ctx->fabric, &ctx->fabric->jobs[pj->job])
			 ? plan_ring_servers(ctx, pj, p, err) : 0;

	if (rc) {
		return rc;
	}
	pj->algorithm = optree_algorithm_name(pj->ring.algorithm);
	if (!pj->topology) {
		pj->topology = x_dup("");
	}
	pj->sched = pj->ring.sched;
	pj->time_ns = pj->ring.time_ns;
	pj->bound_ns = pj->ring.bound_ns;
	pj->gap = pj->ring.gap;
	return coll_verify(pj->sched, &pj->report, err);
}

/* Node v of the plan is rank (v + first) mod n of the job. */
static int turn_ranks(struct plan_job *pj, int n, int first, struct err *err)
{
	struct coll_sched *turned;
	int *to = x_new((size_t)n, sizeof(*to)), rc;

	for (int v = 0; v < n; v++) {
		to[v] = (v + first) % n;
	}
	rc = coll_rename(pj->ring.sched, to, &turned, err);
	free(to);
	if (rc == 0) {
		coll_free(pj->ring.sched);
		pj->ring.sched = turned;
	}
	return rc;
}

/* Remembers the parts that the plan does without, for the program and for
 * people. */
static void keep_without(struct plan_job *pj, const struct ring_fault *dead, int n_dead)
{
	pj->without = x_alloc((size_t)n_dead, sizeof(*dead));
	memcpy(pj->without, dead, (size_t)n_dead * sizeof(*dead));
	pj->n_without = n_dead;
}

/* The plan that does without; proven to need nothing of what is dead. */
static int plan_around(const struct plan_ctx *ctx, struct plan_job *pj,
		       const struct ring_fault *dead, int n_dead, struct err *err)
{
	struct optree_fibre *fibres = NULL;
	struct optree_params params;
	struct rwa_loss loss;
	int32_t *at = NULL;
	int first, which, rc;

	fill_params(ctx, pj, &params, &loss);
	rc = plan_ring_rest(ctx, pj, dead, n_dead, &params, &fibres, &at, &first, err);
	if (rc == 0) {
		rc = optree_plan_expand(&params, &pj->ring, err);
	}
	if (rc == 0 && first) {
		rc = turn_ranks(pj, params.n, first, err);
	}
	free(fibres);
	free(at);
	if (rc == 0 && (rc = take_plan(ctx, pj, &params, err)) == 0) {
		keep_without(pj, dead, n_dead);
	}
	if (rc == 0 && plan_ring_needs(ctx, pj, dead, n_dead, &which)) {
		rc = err_set(err, WEFT_EVERIFY, "the plan needs a part of the ring that has "
			     "failed");
	}
	return rc;
}

/* Drops a plan that needs what has failed; share and figures of the job stay.
 * */
static void forget_plan(struct plan_job *pj)
{
	optree_plan_fini(&pj->ring);
	coll_report_fini(&pj->report);
	coll_report_init(&pj->report);
	pj->sched = NULL;
}

int plan_ring_without(const struct plan_ctx *ctx, struct plan_job *pj,
		      const struct ring_fault *dead, int n_dead, struct err *err)
{
	const struct model_job *job = &ctx->fabric->jobs[pj->job];
	struct optree_params params;
	struct rwa_loss loss;
	int which, rc;

	fill_params(ctx, pj, &params, &loss);
	if ((rc = make_plan(&params, job, &pj->ring, err)) == 0) {
		rc = take_plan(ctx, pj, &params, err);
	}
	if (rc || n_dead == 0) {
		return rc;
	}
	if (plan_ring_needs(ctx, pj, dead, n_dead, &which) == 0) {
		return 0;
	}
	pj->fault_free_ns = pj->time_ns;
	forget_plan(pj);
	return plan_around(ctx, pj, dead, n_dead, err);
}

int plan_ring_job(struct plan_ctx *ctx, struct plan_job *pj, struct err *err)
{
	const struct model_job *job = &ctx->fabric->jobs[pj->job];
	const struct plan_light *seen = plan_observed(ctx, job->device);
	const struct plan_light *made = plan_intent(ctx, job->device);
	const struct ring_program *now;

	if (!pj->kept && !ctx->base->from_committed) {
		return plan_ring_without(ctx, pj, seen->dead, seen->n_dead, err);
	}
	now = made->programs ? ring_programs_find(made->programs, job->name)
			     : NULL;
	return plan_ring_without(ctx, pj, now ? now->without : NULL, now ? now->n_without : 0, err);
}

/* Light of a job on a segment that goes round its ends is another's. */
static int check_stays(const struct plan_job *pj, int n_ring,
		       const struct topo_arc *arc, int dir, struct err *err)
{
	if (pj->share.window.nodes < n_ring && (dir == OPTICS_CW) != (arc->src < arc->dst)) {
		return err_set(err, WEFT_EVERIFY, "light from rank %d to %d "
			       "leaves the job's segment", arc->src, arc->dst);
	}
	return 0;
}

/* What the resonators at both ends of a lightpath do. */
static int set_ends(const struct model_job *job, const struct plan_job *pj, int n_ring,
		    const struct coll_light *l, struct ring_setting tune[2], struct err *err)
{
	const struct topo_arc *arc = topo_arc(coll_physical(pj->sched), l->arc);

	tune[0] = (struct ring_setting){
		.step = (uint16_t)l->step,
		.node = (uint16_t)plan_ring_node(job, pj, arc->src),
		.channel = (uint16_t)(pj->share.window.first_channel + l->channel),
		.dir = l->dir,
		.fibre = l->fibre,
		.mode = RESONATOR_ADD,
	};
	tune[1] = tune[0];
	tune[1].node = (uint16_t)plan_ring_node(job, pj, arc->dst);
	tune[1].mode = RESONATOR_DROP;
	return check_stays(pj, n_ring, arc, l->dir, err);
}

/* The settings that make the light of the schedule, packed a step at a time:
 * of all steps together there may be more than memory for them. */
static int pack_steps(const struct model_job *job, const struct plan_job *pj, int n_ring,
		      struct ring_program_packer *packer, struct err *err)
{
	VEC(struct ring_setting) tunes = { 0 };
	int64_t n, i = 0;
	const struct coll_light *l = coll_lights(pj->sched, &n);
	int rc = 0;

	for (int step = 0; step < coll_steps(pj->sched) && !rc; step++) {
		for (tunes.n = 0; i < n && l[i].step == step && !rc; i++) {
			vec_reserve(&tunes, 2);
			rc = set_ends(job, pj, n_ring, &l[i], tunes.v + tunes.n, err);
			tunes.n += 2;
		}
		if (rc == 0) {
			rc = ring_program_packer_step(packer, tunes.v, tunes.n, err);
		}
	}
	vec_fini(&tunes);
	return rc;
}

int plan_ring_program(const struct plan_ctx *ctx, const struct plan_job *pj,
		      struct ring_program *out, struct err *err)
{
	const struct model_job *job = &ctx->fabric->jobs[pj->job];
	const struct ring_geometry ring = plan_ring_geometry(&ctx->fabric->devices[job->device]);
	struct ring_program_packer *packer = NULL;
	int rc = 0;

	if (coll_steps(pj->sched) > RING_MAX_STEPS) {
		rc = err_set(err, WEFT_ELIMIT, "%d steps, a ring program holds at most %d",
			     coll_steps(pj->sched), RING_MAX_STEPS);
	}
	if (rc == 0 &&
	    (rc = ring_program_packer_new(&pj->share.window, &ring, &packer, err)) == 0 &&
	    (rc = pack_steps(job, pj, ring.nodes, packer, err)) == 0) {
		rc = ring_program_packer_end(packer, job->name, out, err);
	}
	ring_program_packer_free(packer);
	if (rc == 0) {
		ring_program_set_without(out, pj->without, pj->n_without);
	}
	return rc ? err_wrap(err, "job %s", job->name) : 0;
}
