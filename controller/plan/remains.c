/* What remains of a fabric as applied when light is dead; see plan_remains in
 * plan.h. */
#include <stdlib.h>
#include <string.h>

#include "collective/mcf.h"
#include "controller/plan/plan_private.h"

void plan_loss_free(struct plan_loss *loss)
{
	if (loss) {
		coll_free(loss->sched);
		coll_report_fini(&loss->report);
		free(loss);
	}
}

static bool has_port(int n, const int *ports, int port)
{
	for (int i = 0; i < n; i++) {
		if (ports[i] == port) {
			return true;
		}
	}
	return false;
}

bool plan_has_died(const struct plan_light *seen, bool either,
		   struct light_xc xc)
{
	return !plan_light_has(seen, xc) ||
	       has_port(seen->n_bad_in, seen->bad_in, xc.in) ||
	       has_port(seen->n_bad_out, seen->bad_out, xc.out) ||
	       (either && (has_port(seen->n_bad_in, seen->bad_in, xc.out) ||
			   has_port(seen->n_bad_out, seen->bad_out, xc.in)));
}

static bool is_dead(const struct plan_ctx *ctx, const struct plan_circuit *c)
{
	const struct plan_light *seen = plan_observed(ctx, c->device);

	return seen->known &&
	       plan_light_has(plan_intent(ctx, c->device), c->xc) &&
	       plan_has_died(seen, ctx->fabric->devices[c->device].any_to_any,
			     c->xc);
}

/* FNV-1a of one number. */
static uint64_t mix(uint64_t hash, int value)
{
	return (hash ^ (uint32_t)value) * UINT64_C(0x100000001b3);
}

uint64_t plan_dead_light(const struct model_fabric *fabric,
			 const struct plan_base *base)
{
	uint64_t hash = 0;

	for (int d = 0; d < fabric->n_devices; d++) {
		const struct plan_light *seen = &base->observed[d];
		const struct plan_light *intent = &base->intent[d];

		for (int i = 0; seen->known && i < intent->n_xcs; i++) {
			if (plan_has_died(seen, fabric->devices[d].any_to_any,
					  intent->xcs[i])) {
				hash = mix(hash + 1, d);
				hash = mix(hash, intent->xcs[i].in);
				hash = mix(hash, intent->xcs[i].out);
			}
		}
	}
	return hash;
}

/* Marks the arcs of dead circuits; what is lost goes to loss. */
static void mark_dead(const struct plan_ctx *ctx, const struct plan_job *pj,
		      bool *dead, struct plan_loss *loss)
{
	for (int i = 0; i < pj->n_circuits; i++) {
		const struct plan_circuit *c = &pj->circuits[i];

		if (!is_dead(ctx, c)) {
			continue;
		}
		if (loss->dead++ == 0) {
			loss->device = c->device;
			loss->xc = c->xc;
		}
		loss->dead_arcs += !dead[c->arc];
		dead[c->arc] = true;
	}
}

/* The digraph without the dead arcs: the same nodes, the others in their
 * order. */
static int copy_alive(const struct topo *t, const bool *dead,
		      struct topo **out, struct err *err)
{
	struct topo *copy = NULL;
	int rc = topo_new(topo_n(t), &copy, err);

	for (int u = 0; u < topo_n(t) && rc == 0; u++) {
		topo_set_node(copy, u, topo_node_kind(t, u),
			      topo_node_flags(t, u));
	}
	for (int a = 0; a < topo_m(t) && rc == 0; a++) {
		const struct topo_arc *x = topo_arc(t, a);

		rc = dead[a] ? 0 : topo_add_arc(copy, x->src, x->dst, x->cap,
						x->latency_ns, err);
	}
	rc = rc ? rc : topo_freeze(copy, err);
	if (rc) {
		topo_free(copy);
		return rc;
	}
	*out = copy;
	return 0;
}

static double load_ratio(const struct coll_report *before,
			 const struct coll_report *now)
{
	double after = mpq_get_d(now->shard_times);

	return after > 0 ? mpq_get_d(before->shard_times) / after : 0;
}

/* A fabric that is cut in two is no reason not to tell of it. */
static int schedule_rest(const struct plan_ctx *ctx, const struct plan_job *pj,
			 const bool *dead, struct plan_loss *loss,
			 struct err *err)
{
	const struct model_job *job = &ctx->fabric->jobs[pj->job];
	struct topo *rest;
	int rc = copy_alive(coll_topo(pj->sched), dead, &rest, err);

	if (rc) {
		return rc;
	}
	rc = plan_reschedule(job, pj, rest, dead, &loss->sched, &loss->why);
	if (rc == 0) {
		coll_set_topo_name(loss->sched, pj->topology);
		rc = plan_time(ctx, job, loss->sched, &loss->report,
			       &loss->time_ns, &loss->bound_ns, &loss->why);
	}
	if (rc == 0) {
		loss->rate = load_ratio(&pj->report, &loss->report);
		return 0;
	}
	coll_free(loss->sched);
	loss->sched = NULL;
	if (rc == WEFT_ENOMEM) {
		*err = loss->why;
		return rc;
	}
	return 0;
}

static int assess_job(const struct plan_ctx *ctx, struct plan_job *pj,
		      struct err *err)
{
	int m = topo_m(coll_topo(pj->sched)), rc;
	struct plan_loss *loss = calloc(1, sizeof(*loss));
	bool *dead = calloc((size_t)m + 1, sizeof(*dead));

	if (!loss || !dead) {
		free(loss);
		free(dead);
		return err_nomem(err);
	}
	coll_report_init(&loss->report);
	loss->arcs = m;
	mark_dead(ctx, pj, dead, loss);
	if (loss->dead == 0) {
		plan_loss_free(loss);
		free(dead);
		return 0;
	}
	pj->loss = loss;
	rc = schedule_rest(ctx, pj, dead, loss, err);
	free(dead);
	return rc;
}

int plan_remains(const struct model_fabric *fabric,
		 const struct plan_base *base, struct plan **out,
		 struct err *err)
{
	struct plan_base applied = *base;
	struct plan_ctx ctx = { .fabric = fabric, .base = base };
	int rc;

	/* As though every circuit were as it was made: each arc then has the
	 * circuits that it got when it was applied. */
	applied.observed = base->intent;
	applied.only = NULL;
	rc = plan_make(fabric, &applied, out, err);
	for (int i = 0; rc == 0 && i < (*out)->n_jobs; i++) {
		if (!(*out)->jobs[i].is_ring) {
			rc = assess_job(&ctx, &(*out)->jobs[i], err);
		}
		if (rc) {
			plan_free(*out);
			*out = NULL;
		}
	}
	return rc;
}
