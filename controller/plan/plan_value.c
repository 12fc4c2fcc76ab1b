/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The values of the room: the light of a device, what a job and a plan own, and
 * what is spoken for while jobs are planned. Nothing here plans: the files that do
 * stand above this one, and plan_make.c above them.
 */
#include "controller/plan/plan.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collective/flow/flow.h"
#include "controller/plan/private.h"
#include "lib/base/alloc.h"
#include "lib/base/vec.h"

/* ---- light ----------------------------------------------------------------- */

const struct plan_light *plan_observed(const struct plan_ctx *ctx, int device)
{
	static const struct plan_light dark;

	return ctx->base->observed ? &ctx->base->observed[device] : &dark;
}

const struct plan_light *plan_intent(const struct plan_ctx *ctx, int device)
{
	static const struct plan_light nothing;

	return ctx->base->intent ? &ctx->base->intent[device] : &nothing;
}

bool plan_light_has(const struct plan_light *light, struct optics_xc xc)
{
	return light->n_xcs > 0 &&
	       bsearch(&xc, light->xcs, light->n_xcs, sizeof(xc), optics_xc_cmp);
}

bool plan_is_lit(const struct plan_light *light, struct optics_xc xc)
{
	const struct plan_light dark = { .n_xcs = light->n_dark,
					 .xcs = light->dark };

	return plan_light_has(light, xc) && !plan_light_has(&dark, xc);
}

bool plan_is_own(const struct plan_ctx *ctx, int device, struct optics_xc xc)
{
	const struct plan_light *intent = plan_intent(ctx, device);
	const struct plan_light pending = { .n_xcs = intent->n_pending, .xcs = intent->pending };

	return plan_light_has(intent, xc) || plan_light_has(&pending, xc);
}

bool plan_is_external(const struct plan_ctx *ctx, int device, struct optics_xc xc)
{
	return plan_light_has(plan_observed(ctx, device), xc) && !plan_is_own(ctx, device, xc);
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

bool plan_works(const struct plan_light *seen, bool in, int port)
{
	return in ? !has_port(seen->n_bad_in, seen->bad_in, port) &&
			    !has_port(seen->n_evacuated_in, seen->evacuated_in, port)
		  : !has_port(seen->n_bad_out, seen->bad_out, port) &&
			    !has_port(seen->n_evacuated_out, seen->evacuated_out, port);
}

bool plan_must_go(const struct plan_light *seen, bool either, struct optics_xc xc)
{
	return !plan_works(seen, true, xc.in) || !plan_works(seen, false, xc.out) ||
	       (either && (!plan_works(seen, true, xc.out) || !plan_works(seen, false, xc.in)));
}

bool plan_may_light(const struct plan_light *seen, bool either, bool in, int port)
{
	bool open = true;

	if (in || either) {
		open = plan_works(seen, true, port) &&
		       !has_port(seen->n_held_in, seen->held_in, port);
	}
	if (!in || either) {
		open = open && plan_works(seen, false, port) &&
		       !has_port(seen->n_held_out, seen->held_out, port);
	}
	return open;
}

bool plan_has_died(const struct plan_light *seen, struct optics_xc xc)
{
	const struct plan_light no_light = { .n_xcs = seen->n_no_light, .xcs = seen->no_light };

	return !plan_is_lit(seen, xc) || plan_light_has(&no_light, xc);
}

/* ---- what a job has ---------------------------------------------------------- */

const char *plan_collective_name(const struct model_job *job)
{
	return job->kind == MODEL_CIRCUITS ? "circuits" :
	       job->kind == MODEL_STEP ? "step" : coll_kind_name(job->collective);
}

bool plan_has_port(const struct model_fabric *f, const struct model_job *job, int port)
{
	int index = (int)(job - f->jobs);

	return f->ports[port].tx_job == index || f->ports[port].rx_job == index;
}

/* ---- what is spoken for ------------------------------------------------------ */

void plan_ctx_init(struct plan_ctx *ctx, const struct model_fabric *fabric,
		   const struct plan_base *base)
{
	*ctx = (struct plan_ctx){ .fabric = fabric, .base = base, .failed = -1,
				  .fixed_device = -1 };
	ctx->trunk_taken = x_new(fabric->n_trunks + 1, sizeof(bool));
	ctx->tx_shut = x_new(fabric->n_ports + 1, sizeof(bool));
	ctx->rx_shut = x_new(fabric->n_ports + 1, sizeof(bool));
}

void plan_ctx_fini(struct plan_ctx *ctx)
{
	vec_fini(&ctx->trunk_jobs);
	free(ctx->trunk_taken);
	free(ctx->tx_shut);
	free(ctx->rx_shut);
	plan_choices_fini(ctx);
}

int plan_in_job(struct plan_ctx *ctx, const struct plan_job *pj, struct err *err)
{
	const struct model_job *job = &ctx->fabric->jobs[pj->job];
	int rc = err->code;

	/* Light over trunks is found for several at once, and the error is of one of them. */
	if (err->line > 0 && ctx->failed >= 0) {
		return rc;
	}
	rc = err_wrap(err, "job %s", job->name);

	err_at(err, ctx->fabric->config.name, job->place.line, job->place.col);
	ctx->failed = pj->job;
	return rc;
}

/* ---- jobs and plans -------------------------------------------------------- */

struct coll_sched *plan_take_schedule(struct plan_job *pj)
{
	struct coll_sched *s = pj->loss ? pj->loss->sched : pj->sched;

	if (pj->loss) {
		pj->loss->sched = NULL;
	} else {
		pj->sched = pj->ring.sched = NULL;
	}
	return s;
}

void plan_warn(struct plan *p, const char *fmt, ...)
{
	struct buf b = { 0 };
	va_list ap;

	va_start(ap, fmt);
	buf_vprintf(&b, fmt, ap);
	va_end(ap);
	p->warnings = x_grow(p->warnings, (size_t)p->n_warnings + 1, sizeof(*p->warnings));
	p->warnings[p->n_warnings++] = buf_steal(&b);
}

/* The name and the work of a job, as its line begins: of a step a hash in place of the size. */
static void put_work(const struct model_job *job, struct buf *out)
{
	int64_t size = job->workload ? (int64_t)(workload_hash(job->workload) >> 1)
				     : job->size_bytes;

	buf_printf(out, "%s\t%s\t%d\t%lld\t", job->name, plan_collective_name(job), job->n_hosts,
		   (long long)size);
}

/* The light of a step as it is recorded: a collective that it serves, and the time of a change. */
static void put_light(const struct model_job *job, const struct plan_job *pj, struct buf *out)
{
	const struct workload_plan *step = pj->step;

	for (size_t i = 0; i < step->uses.n; i++) {
		if (step->uses.v[i].light == pj->light) {
			put_work(job, out);
			buf_printf(out, "%d\t%s %lld\n", pj->light + 1,
				   job->workload->ops.v[step->uses.v[i].op].name,
				   (long long)step->change_ns);
			return;
		}
	}
}

char *plan_light_record(const struct plan *p, int job)
{
	const struct plan_job *pj = &p->jobs[job];
	const struct model_job *mj = &p->fabric->jobs[pj->job];
	struct buf b = { 0 };

	if (!pj->step || mj->light != MODEL_LIGHT_BY_COLLECTIVE) {
		return NULL;
	}
	put_work(mj, &b);
	buf_printf(&b, "%d\t", pj->light + 1);
	return buf_steal(&b);
}

void plan_put_topologies(const struct plan_base *base, struct plan *p)
{
	struct buf b = { 0 };

	for (int i = 0; i < p->n_jobs; i++) {
		const struct plan_job *pj = &p->jobs[i];
		const struct model_job *job = &p->fabric->jobs[pj->job];

		if (pj->choice) {
			put_work(job, &b);
			buf_printf(&b, "%d\t%s\n", pj->choice->ports, pj->topology);
		} else if (pj->step && job->light == MODEL_LIGHT_BY_COLLECTIVE) {
			put_light(job, pj, &b);
		}
	}
	if (base->restore && base->topologies) {
		buf_str(&b, base->topologies);
	}
	p->topologies = x_dup(buf_cstr(&b));
	buf_fini(&b);
}

/* Behind the work of the job in its line of the text; NULL: it has none. */
static const char *find_kept(const char *topologies, const struct model_job *job)
{
	const char *line = topologies;
	struct buf work = { 0 };

	put_work(job, &work);
	while (line && strncmp(line, buf_cstr(&work), work.len) != 0) {
		line = strchr(line, '\n');
		line = line && line[1] ? line + 1 : NULL;
	}
	line = line ? line + work.len : NULL;
	buf_fini(&work);
	return line;
}

char *plan_kept_topology(const struct plan_ctx *ctx, int job, int *ports)
{
	const char *kept = find_kept(ctx->base->topologies, &ctx->fabric->jobs[job]);
	char *expr = NULL, *end;

	if (kept) {
		*ports = (int)strtol(kept, &end, 10);
		if (*ports > 0 && *end == '\t') {
			expr = x_dup(end + 1);
			expr[strcspn(expr, "\n")] = '\0';
		}
	}
	return expr;
}

int plan_set_light(const struct model_fabric *f, const char *job, const char *collective,
		   char **topologies, struct err *err)
{
	const struct model_job *j = f->jobs;
	const char *kept, *op, *time;
	struct buf b = { 0 };

	while (j < f->jobs + f->n_jobs && strcmp(j->name, job) != 0) {
		j++;
	}
	if (j == f->jobs + f->n_jobs) {
		return err_set(err, WEFT_ENOTFOUND, "no job %s", job);
	}
	if (j->kind != MODEL_STEP || workload_find_op(j->workload, collective) < 0) {
		return err_set(err, WEFT_ENOTFOUND, "job %s is no step with a collective %s", job,
			       collective);
	}
	kept = find_kept(*topologies, j);
	op = kept ? strchr(kept, '\t') : NULL;
	time = op ? strchr(op, ' ') : NULL;
	if (!time) {
		return err_set(err, WEFT_EINVAL, "the light of job %s stays still: it is the same "
			       "for all its collectives", job);
	}
	buf_add(&b, *topologies, (size_t)(op + 1 - *topologies));
	buf_printf(&b, "%s%s", collective, time);
	free(*topologies);
	*topologies = buf_steal(&b);
	return 0;
}

bool plan_is_empty(const struct plan *p)
{
	return p->n_add == 0 && p->n_del == 0 && p->n_loads == 0;
}
