/* A job on a ring of micro-ring resonators: its schedule, the light of it,
 * and the step program that the ring's controller runs by itself. */
#include <stdlib.h>
#include <string.h>

#include "controller/plan/plan_private.h"
#include "lib/base/vec.h"

static int check_ring_job(const struct plan_ctx *ctx,
			  const struct model_job *job, struct err *err)
{
	const struct model_device *dev = &ctx->fabric->devices[job->device];

	if (strcmp(job->algorithm, "auto") != 0 &&
	    strcmp(job->algorithm, "composed") != 0 &&
	    strcmp(job->algorithm, "optree") != 0) {
		return err_set(err, WEFT_EUNSUPPORTED,
			       "algorithm %s on ring %s: not supported, "
			       "only auto, composed and optree",
			       job->algorithm, dev->name);
	}
	if (job->depth && strcmp(job->algorithm, "composed") == 0) {
		return err_set(err, WEFT_EINVAL,
			       "depth is of OpTree's tree, composed plans "
			       "have none");
	}
	return 0;
}

static int make_plan(const struct optree_params *p,
		     const struct model_job *job, struct optree_plan *out,
		     struct err *err)
{
	enum optree_algorithm how;
	int rc = optree_algorithm_parse(job->algorithm, &how, err);

	rc = rc ? rc : optree_collective(p, job->collective, 0, how, out, err);
	return rc ? rc : optree_plan_expand(p, out, err);
}

static bool has_overlap(const struct plan_ctx *ctx, int device)
{
	const struct plan_light *seen = plan_observed(ctx, device);

	switch (ctx->fabric->devices[device].overlap) {
	case MODEL_OVERLAP_ON: return true;
	case MODEL_OVERLAP_OFF: return false;
	default: return seen->overlap;
	}
}

int plan_ring_job(struct plan_ctx *ctx, struct plan_job *pj, struct err *err)
{
	const struct model_job *job = &ctx->fabric->jobs[pj->job];
	const struct model_device *dev = &ctx->fabric->devices[job->device];
	const struct plan_share *share = &pj->share;
	struct rwa_loss loss = dev->loss;
	struct optree_params params = {
		.n = job->n_hosts,
		.channels = share->window.channels,
		.fibres = dev->ring.fibres,
		.depth = job->depth,
		.shard_bytes = (job->size_bytes + job->n_hosts - 1) /
			       job->n_hosts,
		.channel_bps = dev->channel_bps,
		.alpha_ns = job->alpha_ns >= 0
				    ? job->alpha_ns
				    : dev->retune_ns + dev->conversion_ns,
		.loss = dev->has_loss ? &loss : NULL,
		.at = job->n_hosts < dev->n_members ? share->at : NULL,
		.ring_nodes = dev->n_members,
		.line = job->segment,
		.overlap = has_overlap(ctx, job->device),
		.max_lights = COLL_MAX_LIGHTS,
	};
	int rc = check_ring_job(ctx, job, err);

	if (rc) {
		return rc;
	}
	if (params.overlap) {
		params.convert_ns = dev->conversion_ns < params.alpha_ns
					    ? dev->conversion_ns
					    : params.alpha_ns;
	}
	/* Light passes the resonators of all channels, not just the job's. */
	if (loss.rings_per_node == 0) {
		loss.rings_per_node = dev->ring.channels;
	}
	rc = make_plan(&params, job, &pj->ring, err);
	if (rc) {
		return rc;
	}
	pj->algorithm = optree_algorithm_name(pj->ring.algorithm);
	pj->topology = strdup("");
	if (!pj->topology) {
		return err_nomem(err);
	}
	pj->sched = pj->ring.sched;
	pj->time_ns = pj->ring.time_ns;
	pj->bound_ns = pj->ring.bound_ns;
	pj->gap = pj->ring.gap;
	return coll_verify(pj->sched, &pj->report, err);
}

/* Light of a job on a segment that goes round its ends is another's. */
static int check_stays(const struct plan_job *pj, int n_ring,
		       const struct topo_arc *arc, int dir, struct err *err)
{
	if (pj->share.window.nodes < n_ring &&
	    (dir == LIGHT_CW) != (arc->src < arc->dst)) {
		return err_set(err, WEFT_EVERIFY, "light from rank %d to %d "
			       "leaves the job's segment", arc->src, arc->dst);
	}
	return 0;
}

/* What the resonators at both ends of a lightpath do. */
static int set_ends(const struct plan_job *pj, int n_ring,
		    const struct coll_light *l, struct light_tune tune[2],
		    struct err *err)
{
	const struct topo_arc *arc = topo_arc(coll_topo(pj->sched), l->arc);

	tune[0] = (struct light_tune){
		.step = (uint16_t)l->step,
		.node = (uint16_t)pj->share.at[arc->src],
		.channel = (uint16_t)(pj->share.window.first_channel +
				      l->channel),
		.dir = l->dir,
		.fibre = l->fibre,
		.mode = LIGHT_ADD,
	};
	tune[1] = tune[0];
	tune[1].node = (uint16_t)pj->share.at[arc->dst];
	tune[1].mode = LIGHT_DROP;
	return check_stays(pj, n_ring, arc, l->dir, err);
}

/* The settings that make the light of the schedule, packed a step at a time:
 * of all steps together there may be more than memory for them. */
static int pack_steps(const struct plan_job *pj, int n_ring,
		      struct light_packer *packer, struct err *err)
{
	VEC(struct light_tune) tunes = { 0 };
	int64_t n, i = 0;
	const struct coll_light *l = coll_lights(pj->sched, &n);
	int rc = 0;

	for (int step = 0; step < coll_steps(pj->sched) && !rc; step++) {
		for (tunes.n = 0; i < n && l[i].step == step && !rc; i++) {
			rc = vec_reserve(&tunes, 2) ? err_nomem(err) : 0;
			rc = rc ? rc : set_ends(pj, n_ring, &l[i],
						tunes.v + tunes.n, err);
			tunes.n += 2;
		}
		rc = rc ? rc : light_packer_step(packer, tunes.v, tunes.n,
						err);
	}
	vec_fini(&tunes);
	return rc;
}

int plan_ring_program(const struct plan_ctx *ctx, const struct plan_job *pj,
		      struct light_pack *out, struct err *err)
{
	const struct model_job *job = &ctx->fabric->jobs[pj->job];
	const struct light_geometry ring =
		plan_ring_geometry(&ctx->fabric->devices[job->device]);
	struct light_packer *packer = NULL;
	int rc = 0;

	if (coll_steps(pj->sched) > LIGHT_MAX_STEPS) {
		rc = err_set(err, WEFT_ELIMIT,
			     "%d steps, a ring program holds at most %d",
			     coll_steps(pj->sched), LIGHT_MAX_STEPS);
	}
	rc = rc ? rc : light_packer_new(&pj->share.window, &ring, &packer, err);
	rc = rc ? rc : pack_steps(pj, ring.nodes, packer, err);
	rc = rc ? rc : light_packer_end(packer, job->name, out, err);
	light_packer_free(packer);
	return rc ? err_wrap(err, "job %s", job->name) : 0;
}
