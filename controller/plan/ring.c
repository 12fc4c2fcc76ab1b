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

/* The plan with its whole schedule. What auto finds may have more light than
 * a schedule can hold; OpTree has one light for each item and receiver. */
static int make_plan(const struct optree_params *p,
		     const struct model_job *job, struct optree_plan *out,
		     struct err *err)
{
	enum optree_algorithm how;
	int rc = optree_algorithm_parse(job->algorithm, &how, err);

	rc = rc ? rc : optree_collective(p, job->collective, 0, how, out, err);
	if (rc) {
		return rc;
	}
	rc = optree_plan_expand(p, out, err);
	if (rc == WEFT_ELIMIT && how == OPTREE_AUTO &&
	    job->collective != COLL_ALLTOALL) {
		optree_plan_fini(out);
		rc = optree_collective(p, job->collective, 0, OPTREE_TREE, out,
				       err);
	}
	return rc;
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
	};
	int rc = check_ring_job(ctx, job, err);

	if (rc) {
		return rc;
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

/* The settings that make the light of the schedule. */
static int collect_tunes(const struct plan_job *pj, int n_ring,
			 struct light_program *out, struct err *err)
{
	const struct topo *topo = coll_topo(pj->sched);
	const struct coll_light *lights;
	VEC(struct light_tune) tunes = { 0 };
	int64_t n;

	lights = coll_lights(pj->sched, &n);
	if (coll_steps(pj->sched) > LIGHT_MAX_STEPS) {
		return err_set(err, WEFT_ELIMIT,
			       "%d steps, a ring program holds at most %d",
			       coll_steps(pj->sched), LIGHT_MAX_STEPS);
	}
	if (vec_reserve(&tunes, 2 * (size_t)n)) {
		return err_nomem(err);
	}
	for (int64_t i = 0; i < n; i++) {
		const struct topo_arc *arc = topo_arc(topo, lights[i].arc);
		struct light_tune t = {
			.step = lights[i].step,
			.node = pj->share.at[arc->src],
			.channel = pj->share.window.first_channel +
				   lights[i].channel,
			.dir = lights[i].dir,
			.fibre = lights[i].fibre,
			.mode = LIGHT_ADD,
		};

		if (check_stays(pj, n_ring, arc, t.dir, err)) {
			vec_fini(&tunes);
			return WEFT_EVERIFY;
		}
		tunes.v[tunes.n++] = t;
		t.node = pj->share.at[arc->dst];
		t.mode = LIGHT_DROP;
		tunes.v[tunes.n++] = t;
	}
	*out = (struct light_program){ .steps = coll_steps(pj->sched),
				       .n = tunes.n,
				       .v = tunes.v };
	return light_program_normalise(out, err);
}

int plan_ring_program(const struct plan_ctx *ctx, const struct plan_job *pj,
		      struct light_pack *out, struct err *err)
{
	const struct model_job *job = &ctx->fabric->jobs[pj->job];
	const struct light_geometry ring =
		plan_ring_geometry(&ctx->fabric->devices[job->device]);
	struct light_program program = { 0 };
	int rc = collect_tunes(pj, ring.nodes, &program, err);

	rc = rc ? rc : light_pack_make(out, job->name, &pj->share.window, &ring,
				       &program, err);
	light_program_fini(&program);
	return rc ? err_wrap(err, "job %s", job->name) : 0;
}
