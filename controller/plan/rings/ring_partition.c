/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which part of a ring each of its jobs has: positions and channels.
 *
 * Windows on the same nodes must not share channels. Jobs that name their
 * channels get those; the others keep what they have, and else get the first
 * range that is free.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/plan/private.h"
#include "lib/base/alloc.h"
#include "lib/base/buf.h"

struct ring_geometry plan_ring_geometry(const struct model_device *dev)
{
	return (struct ring_geometry){
		.nodes = (uint16_t)dev->ring.n,
		.channels = (uint16_t)dev->ring.channels,
		.fibres = (uint8_t)dev->ring.fibres };
}

static const struct model_job *job_of(const struct plan_ctx *ctx, const struct plan_job *pj)
{
	return &ctx->fabric->jobs[pj->job];
}

/* Where on the ring the ranks are, and the nodes that its light may touch:
 * those between the first and the last, or all. O(nodes + ranks). */
static void find_positions(const struct plan_ctx *ctx, struct plan_job *pj)
{
	const struct model_job *job = job_of(ctx, pj);
	const struct model_device *dev = &ctx->fabric->devices[job->device];
	struct ring_window *w = &pj->share.window;
	int n = dev->n_members, p = 0, first, last;

	pj->share.at = x_new((size_t)job->n_hosts, sizeof(*pj->share.at));
	/* The model has seen that ranks go round the ring once. */
	for (int r = 0; r < job->n_hosts; r++) {
		while (dev->members[p] != job->hosts[r]) {
			p = (p + 1) % n;
		}
		pj->share.at[r] = p;
	}
	first = pj->share.at[0];
	last = pj->share.at[job->n_hosts - 1];
	*w = (struct ring_window){ .nodes = (uint16_t)n };
	if (job->segment) {
		w->first_node = (uint16_t)first;
		w->nodes = (uint16_t)((last - first + n) % n + 1);
	}
	w->channels = (uint16_t)job->n_channels;
}

/* A job on the same ring, placed already, that has what the window wants. */
static const struct plan_job *holder(const struct plan_ctx *ctx, const struct plan *p,
				     const bool *placed, int job, const struct ring_window *w)
{
	int device = ctx->fabric->jobs[job].device;

	for (int j = 0; j < p->n_jobs; j++) {
		if (placed[j] && ctx->fabric->jobs[j].device == device &&
		    ring_windows_overlap(&p->jobs[j].share.window, w,
					 ctx->fabric->devices[device].ring.n)) {
			return &p->jobs[j];
		}
	}
	return NULL;
}

static int refuse_fixed(const struct plan_ctx *ctx, const struct model_job *job,
			const struct plan_job *other, struct err *err)
{
	const struct ring_window *w = &other->share.window;

	err_set(err, WEFT_EINVAL, "job %s: channels %d-%d of ring %s: job %s "
		"has channels %d-%d there", job->name, job->first_channel,
		job->first_channel + job->n_channels - 1,
		ctx->fabric->devices[job->device].name,
		job_of(ctx, other)->name, w->first_channel,
		w->first_channel + w->channels - 1);
	err_hint(err, "channels: gives each job its share");
	return WEFT_EINVAL;
}

static int refuse_count(const struct plan_ctx *ctx, const struct plan *p, const bool *placed,
			const struct model_job *job, struct err *err)
{
	struct buf others = { 0 };

	for (int j = 0; j < p->n_jobs; j++) {
		const struct ring_window *w = &p->jobs[j].share.window;

		if (placed[j] && ctx->fabric->jobs[j].device == job->device) {
			buf_printf(&others, "%s job %s has %d-%d",
				   others.len ? "," : "",
				   ctx->fabric->jobs[j].name, w->first_channel,
				   w->first_channel + w->channels - 1);
		}
	}
	err_set(err, WEFT_EINFEASIBLE, "job %s: no %d channels in a row are "
		"free on ring %s:%s", job->name, job->n_channels,
		ctx->fabric->devices[job->device].name, buf_cstr(&others));
	buf_fini(&others);
	return WEFT_EINFEASIBLE;
}

/* Where the job's program is now, when that is still right for it. */
static bool keep_place(const struct plan_ctx *ctx, const struct plan *p,
		       const bool *placed, int job, struct ring_window *w)
{
	const struct model_job *mj = &ctx->fabric->jobs[job];
	const struct plan_light *seen = plan_observed(ctx, mj->device);
	const struct ring_program *now =
		seen->programs ? ring_programs_find(seen->programs, mj->name) :
				 NULL;
	int first = now ? now->window.first_channel : 0;

	if (!now || now->window.channels != w->channels ||
	    first + w->channels > ctx->fabric->devices[mj->device].ring.channels) {
		return false;
	}
	w->first_channel = (uint16_t)first;
	return !holder(ctx, p, placed, job, w);
}

static int take_free(const struct plan_ctx *ctx, struct plan *p,
		     const bool *placed, int job, struct err *err)
{
	const struct model_job *mj = &ctx->fabric->jobs[job];
	struct ring_window *w = &p->jobs[job].share.window;
	int channels = ctx->fabric->devices[mj->device].ring.channels;

	for (int first = 0; first + w->channels <= channels;) {
		const struct plan_job *other;

		w->first_channel = (uint16_t)first;
		other = holder(ctx, p, placed, job, w);
		if (!other) {
			return 0;
		}
		first = other->share.window.first_channel +
			other->share.window.channels;
	}
	return refuse_count(ctx, p, placed, mj, err);
}

/* First those that name their channels, then those that can stay, then the
 * rest, each in the order of the file: no job moves for a later one. */
enum pass { FIXED, STAYING, NEW };

static int place(const struct plan_ctx *ctx, struct plan *p, bool *placed,
		 int job, enum pass pass, struct err *err)
{
	const struct model_job *mj = &ctx->fabric->jobs[job];
	struct ring_window *w = &p->jobs[job].share.window;
	const struct plan_job *other;
	int rc = 0;

	if (placed[job] || (pass == FIXED) != (mj->first_channel >= 0)) {
		return 0;
	}
	if (pass == FIXED) {
		w->first_channel = (uint16_t)mj->first_channel;
		other = holder(ctx, p, placed, job, w);
		rc = other ? refuse_fixed(ctx, mj, other, err) : 0;
	} else if (pass == STAYING) {
		placed[job] = keep_place(ctx, p, placed, job, w);
		return 0;
	} else {
		rc = take_free(ctx, p, placed, job, err);
	}
	if (rc) {
		err_at(err, ctx->fabric->config.name, mj->place.line, mj->place.col);
	}
	placed[job] = rc == 0;
	return rc;
}

int plan_shares(struct plan_ctx *ctx, struct plan *p, struct err *err)
{
	bool *placed = x_new((size_t)p->n_jobs + 1, sizeof(*placed));
	int rc = 0;

	for (int j = 0; j < p->n_jobs; j++) {
		if (p->jobs[j].is_ring) {
			find_positions(ctx, &p->jobs[j]);
		}
	}
	for (int pass = FIXED; pass <= NEW && rc == 0; pass++) {
		for (int j = 0; j < p->n_jobs && rc == 0; j++) {
			if (p->jobs[j].is_ring) {
				rc = place(ctx, p, placed, j, pass, err);
			}
		}
	}
	free(placed);
	return rc;
}
