/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Planning: jobs in the order of the file, then the steps of the devices.
 *
 * Jobs that keep their circuits (all but those in plan_base.only) are planned
 * first, then the others, on switches before those on rings. Topologies are chosen
 * one after the other; light over fibres between switches is found for all of them
 * together. Parts that the file marks as failed are
 * merged with those that devices report before any job is planned
 * (plan_admin_down).
 */
#include "controller/plan/plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/plan/private.h"
#include "lib/base/alloc.h"
#include "lib/base/vec.h"

/* An empty plan with a row for each job and each device, in the order of the
 * file. */
static struct plan *plan_new(const struct model_fabric *fabric, const struct plan_base *base)
{
	struct plan *p = x_new(1, sizeof(*p));

	p->fabric = fabric;
	p->generation = base->generation;
	p->mode = base->mode;
	p->aim = base->aim;
	memcpy(p->evacuated, base->evacuated, sizeof(p->evacuated));
	p->is_rollback = base->is_rollback;
	snprintf(p->state_uuid, sizeof(p->state_uuid), "%s", base->state_uuid);
	p->jobs = x_new(fabric->n_jobs + 1, sizeof(*p->jobs));
	p->devices = x_new(fabric->n_devices + 1, sizeof(*p->devices));
	p->n_devices = fabric->n_devices;
	p->n_jobs = base->restore ? 0 : fabric->n_jobs;
	for (int i = 0; i < p->n_jobs; i++) {
		p->jobs[i].job = i;
		p->jobs[i].moves_bound = -1;
		p->jobs[i].is_ring = fabric->jobs[i].device >= 0;
		coll_report_init(&p->jobs[i].report);
	}
	return p;
}

/* With base->only all other jobs keep what they have, and those that cannot be
 * repaired do: their ports are out of bounds. */
static bool is_kept(const struct plan_ctx *ctx, int job)
{
	const char *const *only = ctx->base->only;
	bool among = !only;

	for (; only && *only && !among; only++) {
		among = strcmp(ctx->fabric->jobs[job].name, *only) == 0;
	}
	return !among || (ctx->stays && ctx->stays[job]);
}

/* Topologies and schedules: those that are given, and circuits, before those to be chosen,
 * which have to do with what light is left. */
static int choose(struct plan_ctx *ctx, struct plan *p, bool kept, struct err *err)
{
	for (int any = 0; any <= 1; any++) {
		for (int i = 0; i < p->n_jobs; i++) {
			const struct model_job *job = &ctx->fabric->jobs[i];
			struct plan_job *pj = &p->jobs[i];
			bool is_chosen = job->kind == MODEL_COLLECTIVE && !job->topo;

			if (pj->kept != kept || pj->is_ring || is_chosen != (any == 1)) {
				continue;
			}
			if (plan_switched_job(ctx, pj, err)) {
				return plan_in_job(ctx, pj, err);
			}
		}
	}
	return 0;
}

/* Light over trunks, of all that wait for it at once. */
static int find_light(struct plan_ctx *ctx, struct err *err)
{
	const struct plan_job *pj = ctx->trunk_jobs.n ? ctx->trunk_jobs.v[0] : NULL;
	int rc = plan_trunk_light(ctx, err);

	if (rc && ctx->trunk_jobs.n == 1) {
		return plan_in_job(ctx, pj, err);
	}
	ctx->trunk_jobs.n = 0;
	return rc;
}

/* What follows from the circuits of a job. */
static int finish(struct plan_ctx *ctx, struct plan_job *pj, struct err *err)
{
	const struct model_fabric *f = ctx->fabric;
	int rc = 0;

	for (int i = 0; i < pj->n_circuits; i++) {
		pj->n_moves += pj->circuits[i].moved;
	}
	if (!pj->is_ring && !pj->step && plan_host_with_ranks(f, &f->jobs[pj->job])) {
		rc = plan_server_schedule(ctx, pj, err);
	}
	if (rc == 0 && !pj->is_ring) {
		rc = plan_check_power(ctx, pj, err);
	}
	return rc ? rc : plan_place_job(f, pj, NULL, pj->sched, err);
}

/* Circuits that stay, and of which nothing arrives: the plan does not mend them. */
static void note_silent(const struct plan_ctx *ctx, struct plan *p, struct plan_job *pj)
{
	const struct plan_circuit *first = NULL;
	int n = 0;

	for (int i = 0; i < pj->n_circuits; i++) {
		struct plan_circuit *c = &pj->circuits[i];
		const struct plan_light *seen = plan_observed(ctx, c->device);
		bool either = ctx->fabric->devices[c->device].any_to_any;

		if (!c->moved && plan_is_lit(seen, c->xc) && plan_has_died(seen, c->xc) &&
		    !plan_must_go(seen, either, c->xc)) {
			first = first ? first : c;
			c->dark = true;
			n++;
		}
	}
	if (first) {
		plan_warn(p, "job %s: %s hears nothing of %s: in %d -> out %d, and %d circuit%s of "
			  "it would stay dark: repair the link, or drain the port and apply",
			  ctx->fabric->jobs[pj->job].name, ctx->fabric->ports[first->rx_port].name,
			  ctx->fabric->devices[first->device].name, first->xc.in + 1,
			  first->xc.out + 1, n, n == 1 ? "" : "s");
	}
}

/* A job of which not all can be brought back. WEFT_EINFEASIBLE: it is not what was applied. */
static int keep_some(const struct plan_ctx *ctx, struct plan_job *pj, struct err *err)
{
	if (!plan_keep_circuits(ctx, pj)) {
		return err_set(err, WEFT_EINFEASIBLE, "it was applied with other circuits");
	}
	pj->kept = false;
	pj->n_moves = 0;
	for (int i = 0; i < pj->n_circuits; i++) {
		pj->n_moves += pj->circuits[i].moved;
	}
	pj->moves_bound = -1;
	return plan_check_power(ctx, pj, err);
}

/* Those that stay come first, so that they have what they have: they are planned as
 * though all of their light were there, so that each arc has the circuits that it
 * got when it was applied. */
static int plan_switched_jobs(struct plan_ctx *ctx, struct plan *p, bool kept, struct err *err)
{
	const struct plan_base *base = ctx->base;
	struct plan_base applied = *base;
	int rc;

	applied.observed = base->intent;
	ctx->base = kept ? &applied : base;
	rc = choose(ctx, p, kept, err);
	if (rc == 0) {
		rc = find_light(ctx, err);
	}
	for (int i = 0; i < p->n_jobs && rc == 0; i++) {
		if (p->jobs[i].kept == kept && !p->jobs[i].is_ring &&
		    (rc = finish(ctx, &p->jobs[i], err))) {
			plan_in_job(ctx, &p->jobs[i], err);
		}
	}
	ctx->base = base;
	return rc;
}

/* What is dark of each, and stays so. */
static int settle_switched_jobs(struct plan_ctx *ctx, struct plan *p, struct err *err)
{
	for (int i = 0; i < p->n_jobs; i++) {
		struct plan_job *pj = &p->jobs[i];

		if (pj->is_ring) {
			continue;
		}
		if (ctx->stays && ctx->stays[i] && keep_some(ctx, pj, err)) {
			return plan_in_job(ctx, pj, err);
		}
		if (!pj->kept) {
			note_silent(ctx, p, pj);
			plan_assess(ctx, pj);
		}
	}
	return 0;
}

static int plan_jobs(struct plan_ctx *ctx, struct plan *p, struct err *err)
{
	int rc = plan_switched_jobs(ctx, p, true, err);

	if (rc == 0 && (rc = plan_switched_jobs(ctx, p, false, err)) == 0) {
		rc = settle_switched_jobs(ctx, p, err);
	}
	for (int i = 0; i < p->n_jobs && rc == 0; i++) {
		struct plan_job *pj = &p->jobs[i];

		if (pj->is_ring && ((rc = plan_ring_job(ctx, pj, err)) ||
				    (rc = finish(ctx, pj, err)))) {
			plan_in_job(ctx, pj, err);
		}
	}
	return rc;
}

/* A circuit that cannot be moved and stands against a plan; device -1: none. */
struct fixed_circuit {
	int device;
	struct optics_xc xc;
};

/* Plans all jobs; those of `stays` keep what they have. *failed: the job for which
 * there is no plan, or -1. */
static int plan_with(const struct model_fabric *fabric, const struct plan_base *base,
		     const bool *stays, int *failed, struct fixed_circuit *fixed,
		     struct plan **out, struct err *err)
{
	struct plan_ctx ctx;
	struct plan *p = plan_new(fabric, base);
	struct plan_base applied = *base;
	struct plan_admin_down marks;
	int rc = 0;

	applied.observed = base->intent;
	plan_admin_down_init(&marks, fabric, &applied);
	plan_ctx_init(&ctx, fabric, base);
	ctx.made = &applied;
	ctx.usable = &marks.base;
	ctx.stays = stays;
	if (!base->restore) {
		for (int i = 0; i < p->n_jobs; i++) {
			p->jobs[i].kept = is_kept(&ctx, i);
		}
		rc = plan_shares(&ctx, p, err);
		if (rc == 0) {
			rc = plan_jobs(&ctx, p, err);
		}
	}
	if (rc == 0 && (rc = plan_steps(&ctx, p, err)) == 0) {
		plan_warn_power(p);
		plan_warn_left(p);
		plan_put_topologies(base, p);
		plan_digest(p, p->digest);
	}
	*failed = ctx.failed;
	*fixed = (struct fixed_circuit){ ctx.fixed_device, ctx.fixed };
	plan_ctx_fini(&ctx);
	plan_admin_down_fini(&marks);
	if (rc) {
		plan_free(p);
	} else {
		*out = p;
	}
	return rc;
}

/* ---- circuits that are moved no more --------------------------------------- */

/* Puts a port behind a list, which is replaced. */
static void add_port(const int **list, int *n, int port, struct arrays *own)
{
	int *v;

	arrays_add(own, v, (size_t)*n + 1);
	if (*n > 0) {
		memcpy(v, *list, (size_t)*n * sizeof(*v));
	}
	v[(*n)++] = port;
	*list = v;
}

/* Plans around circuits with worn ports that a plan would move: their ports count as
 * bad, one circuit after the other. When there is no other way the first of them is the
 * error. */
static int plan_once(const struct model_fabric *fabric, const struct plan_base *base,
		     const bool *stays, int *failed, struct plan **out, struct err *err)
{
	struct plan_base around = *base;
	struct plan_light *seen;
	struct fixed_circuit x;
	struct arrays own = { 0 };
	int rc = plan_with(fabric, base, stays, failed, &x, out, err), most = 0;
	struct err first = *err;

	if (rc == 0 || x.device < 0) {
		return rc;
	}
	arrays_add(&own, seen, fabric->n_devices);
	for (int i = 0; i < fabric->n_devices; i++) {
		seen[i] = base->observed[i];
		most += seen[i].n_fixed;
	}
	around.observed = seen;
	while (rc && x.device >= 0 && most-- > 0) {
		struct plan_light *l = &seen[x.device];

		err_clear(err);
		add_port(&l->bad_in, &l->n_bad_in, x.xc.in, &own);
		add_port(&l->bad_out, &l->n_bad_out, x.xc.out, &own);
		rc = plan_with(fabric, &around, stays, failed, &x, out, err);
	}
	if (rc) {
		*err = first;
		rc = first.code;
	}
	arrays_fini(&own);
	return rc;
}

/* ---- jobs that cannot be repaired wholly ----------------------------------- */

/* The jobs of which only some circuits can be brought back, or nothing, and why. */
struct stayers {
	bool *stays;		/* [n_jobs] */
	struct err *why;	/* [n_jobs] */
};

/* Whether the program of a kept job is what was made for it. */
static bool is_as_made(const struct plan *p, const struct plan_base *base, int job)
{
	const struct model_job *mj = &p->fabric->jobs[job];

	for (int i = 0; i < p->n_devices; i++) {
		const struct plan_device *d = &p->devices[i];
		const struct ring_programs *made = base->intent[d->device].programs;
		const struct ring_program *was, *now;

		if (d->device == mj->device) {
			was = made ? ring_programs_find(made, mj->name) : NULL;
			now = ring_programs_find(&d->programs, mj->name);
			return was && now && ring_program_equal(was, now);
		}
	}
	return true;
}

/* True when the plan is of use although jobs on rings stay as they are: these have what
 * was made for them, and there is something to do for others. */
static bool is_of_use(const struct plan *p, const struct plan_base *base, const struct stayers *s)
{
	bool some = !plan_is_empty(p);

	for (int i = 0; i < p->n_jobs; i++) {
		if (s->stays[i] && p->jobs[i].is_ring && !is_as_made(p, base, i)) {
			return false;
		}
		some |= s->stays[i] && !p->jobs[i].is_ring;
	}
	return some;
}

/* What is dark of a job and stays so, or is not to be where it is, with the reason, which most
 * often begins with its name. */
static void warn_left(struct plan *p, const struct plan_job *pj, const char *why)
{
	const char *name = p->fabric->jobs[pj->job].name;
	size_t len = strlen(name);

	if (strncmp(why, "job ", 4) == 0 && strncmp(why + 4, name, len) == 0 &&
	    strncmp(why + 4 + len, ": ", 2) == 0) {
		why += 4 + len + 2;
	}
	if (pj->loss) {
		plan_warn(p, "job %s: %d of its %d circuits cannot be brought back%s: %s", name,
			  pj->loss->dead, pj->n_circuits, pj->loss->sched ?
			  ", and its schedule goes round them" : "", why);
	} else {
		plan_warn(p, "job %s: not all of its light can move away: %s", name, why);
	}
}

static void warn_stayers(struct plan *p, const struct stayers *s)
{
	for (int i = 0; i < p->n_jobs; i++) {
		if (s->stays[i] && p->jobs[i].is_ring) {
			plan_warn(p, "job %s cannot be repaired, and stays as it is: %s",
				  p->fabric->jobs[i].name, s->why[i].msg);
		} else if (s->stays[i]) {
			warn_left(p, &p->jobs[i], s->why[i].msg);
		}
	}
}

/* Job after job for which there is no plan keeps what it has. When that is of no use, the first
 * reason is the error. */
static int plan_others(const struct model_fabric *fabric, const struct plan_base *base,
		       int failed, struct plan **out, struct err *err)
{
	struct stayers s = { .stays = x_new((size_t)fabric->n_jobs + 1, sizeof(*s.stays)),
			     .why = x_new((size_t)fabric->n_jobs + 1, sizeof(*s.why)) };
	struct err why = *err;
	struct plan *p = NULL;
	int rc = why.code;

	while (rc && failed >= 0 && !s.stays[failed]) {
		s.stays[failed] = true;
		s.why[failed] = *err;
		err_clear(err);
		rc = plan_once(fabric, base, s.stays, &failed, &p, err);
	}
	if (rc == 0 && is_of_use(p, base, &s)) {
		warn_stayers(p, &s);
		*out = p;
		p = NULL;
	} else {
		rc = why.code;
		*err = why;
	}
	plan_free(p);
	free(s.stays);
	free(s.why);
	return rc;
}

int plan_make(const struct model_fabric *fabric, const struct plan_base *base,
	      struct plan **out, struct err *err)
{
	static const struct plan_base offline;
	struct err own = { 0 };
	struct plan_admin_down marks;
	int failed = -1, rc;

	err = err ? err : &own;
	plan_admin_down_init(&marks, fabric, base ? base : &offline);
	rc = plan_once(fabric, &marks.base, NULL, &failed, out, err);
	base = &marks.base;
	if (rc && failed >= 0 && base->intent && base->observed &&
	    (!base->only || base->partial) && !base->restore && !base->from_committed) {
		rc = plan_others(fabric, base, failed, out, err);
	}
	plan_admin_down_fini(&marks);
	return rc;
}
