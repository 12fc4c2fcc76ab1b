/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which parts of a ring that have failed are in a job's way, and how it does
 * without them.
 *
 * A job is planned as if nothing had failed; only if that schedule needs a part
 * which has (plan_ring_needs) is it planned without (plan_ring_rest): round the
 * ring on fibres that are whole, or as a line that begins behind a break, on
 * runs of channels that work at all of its nodes. Every detour that optree can
 * plan is compared by time, and the plan chosen is checked once more to need
 * nothing that has failed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/plan/private.h"
#include "lib/base/alloc.h"
#include "lib/base/vec.h"

/* ---- what a schedule needs ------------------------------------------------- */

/* A schedule's light against what has failed. */
struct needs {
	const struct model_job *job;
	const struct plan_job *pj;
	int n_ring;
	const struct ring_fault *dead;
	int n_dead;
	bool *needed;		/* [n_dead] */
	int first_span, end_span;	/* in dead, which is sorted by part */
};

/* Marks a part as needed if it is one of those that failed. O(log parts). */
static void need_part(struct needs *s, const struct ring_fault *key)
{
	const struct ring_fault *d = bsearch(key, s->dead, (size_t)s->n_dead,
					     sizeof(*key), ring_fault_cmp);

	if (d) {
		s->needed[d - s->dead] = true;
	}
}

/* A resonator is out of order by itself or with its whole node. */
static void need_resonator(struct needs *s, int node, const struct ring_fault *l)
{
	struct ring_fault key = *l;

	key.part = RING_RESONATOR;
	key.node = (uint16_t)node;
	need_part(s, &key);
	need_part(s, &(struct ring_fault){ .part = RING_NODE,
					   .node = (uint16_t)node });
}

/* Spans are counted by the end that clockwise light comes to first. */
static void need_spans(struct needs *s, int from, int to, const struct ring_fault *l)
{
	int begin = l->dir == OPTICS_CW ? from : to;
	int end = l->dir == OPTICS_CW ? to : from, n = s->n_ring;

	for (int i = s->first_span; i < s->end_span; i++) {
		const struct ring_fault *d = &s->dead[i];

		if (d->dir == l->dir && d->fibre == l->fibre &&
		    (d->node - begin + n) % n < (end - begin + n) % n) {
			s->needed[i] = true;
		}
	}
}

/* A lightpath needs the resonators at its ends and the spans between them, in
 * the numbers of the ring instead of the job's. */
static void need_light(struct needs *s, const struct topo_arc *arc, const struct coll_light *l)
{
	const struct ring_fault at = {
		.dir = l->dir,
		.fibre = l->fibre,
		.channel = (uint16_t)(s->pj->share.window.first_channel + l->channel),
	};
	int from = plan_ring_node(s->job, s->pj, arc->src);
	int to = plan_ring_node(s->job, s->pj, arc->dst);

	need_resonator(s, from, &at);
	need_resonator(s, to, &at);
	need_spans(s, from, to, &at);
}

int plan_ring_needs(const struct plan_ctx *ctx, const struct plan_job *pj,
		    const struct ring_fault *dead, int n_dead, int *which)
{
	const struct model_job *job = &ctx->fabric->jobs[pj->job];
	struct needs s = { job, pj, ctx->fabric->devices[job->device].ring.n,
			   dead, n_dead, NULL, 0, 0 };
	int64_t n;
	const struct coll_light *l = coll_lights(pj->sched, &n);
	int count = 0;

	s.needed = x_new((size_t)n_dead + 1, sizeof(*s.needed));
	while (s.first_span < n_dead && dead[s.first_span].part < RING_SPAN) {
		s.first_span++;
	}
	s.end_span = s.first_span;
	while (s.end_span < n_dead && dead[s.end_span].part == RING_SPAN) {
		s.end_span++;
	}
	for (int64_t i = 0; i < n; i++) {
		need_light(&s, topo_arc(coll_physical(pj->sched), l[i].arc), &l[i]);
	}
	for (int i = n_dead - 1; i >= 0; i--) {
		count += s.needed[i];
		*which = s.needed[i] ? i : *which;
	}
	free(s.needed);
	return count;
}

/* ---- detours -------------------------------------------------------------- */

/* A detour, as it is being tried. */
struct ring_detour {
	struct optree_params p;
	VEC(struct optree_fibre) light;
	int32_t *at;		/* as p.at, from rank `first` on; owned */
	int first;
};

struct rest {
	const struct plan_ctx *ctx;
	struct plan_job *pj;
	const struct model_job *job;
	const struct model_device *ring;
	const struct optree_params *whole;
	const struct ring_fault *dead;
	int n_dead;
	struct ring_detour best;
	struct optree_plan plan;	/* of best */
	bool found;
	struct err why;			/* of the first detour that failed */
};

static void path_fini(struct ring_detour *w)
{
	vec_fini(&w->light);
	free(w->at);
}

/* The rank that comes next clockwise behind a span. */
static int rank_behind(const struct rest *r, int span)
{
	const int32_t *at = r->pj->share.at;
	int n = r->job->n_hosts, ring = r->ring->ring.n, best = 0;
	int least = ring;

	for (int v = 0; v < n; v++) {
		int links = (at[v] - span - 1 + ring) % ring;

		if (links < least) {
			least = links;
			best = v;
		}
	}
	return best;
}

/* A job on a segment has no light beyond its ends. */
static bool is_outside(const struct rest *r, int span)
{
	return r->job->segment && rank_behind(r, span) == 0;
}

/* Whether a rank of the job is at this node of the ring. */
static bool has_rank_at(const struct rest *r, int node)
{
	for (int v = 0; v < r->job->n_hosts; v++) {
		if (r->pj->share.at[v] == node) {
			return true;
		}
	}
	return false;
}

/* gap: the rank that a line begins with, -1: there is none. */
static bool is_broken(const struct rest *r, int dir, int fibre, int gap)
{
	for (int i = 0; i < r->n_dead; i++) {
		const struct ring_fault *d = &r->dead[i];

		if (d->part == RING_SPAN && d->dir == dir &&
		    d->fibre == fibre && !is_outside(r, d->node) &&
		    (gap < 0 || rank_behind(r, d->node) != gap)) {
			return true;
		}
	}
	return false;
}

/* [channels of the window] those that some node of the job cannot use. */
static void mark_channels(const struct rest *r, int dir, int fibre, bool *bad)
{
	const struct ring_window *w = &r->pj->share.window;

	for (int i = 0; i < r->n_dead; i++) {
		const struct ring_fault *d = &r->dead[i];
		int channel = d->channel - w->first_channel;

		if (d->part == RING_RESONATOR && d->dir == dir && d->fibre == fibre &&
		    channel >= 0 && channel < w->channels && has_rank_at(r, d->node)) {
			bad[channel] = true;
		}
	}
}

/* Runs of channels that work, on one fibre of one direction. */
static void add_runs(struct ring_detour *w, int dir, int fibre, const bool *bad, int channels)
{
	for (int c = 0, first; c < channels; c++) {
		for (first = c; c < channels && !bad[c]; c++) {
		}
		if (c > first) {
			vec_push(&w->light, ((struct optree_fibre){
				.dir = (uint8_t)dir, .fibre = (uint8_t)fibre,
				.first = first, .channels = c - first }));
		}
	}
}

/* What works, as runs of channels on the fibres that are whole for this gap. */
static void collect_light(const struct rest *r, struct ring_detour *w, int gap)
{
	int channels = r->whole->channels;
	bool *bad = x_new((size_t)channels, sizeof(*bad));

	for (int i = 0; i < 2 * r->whole->fibres; i++) {
		int dir = i % 2, fibre = i / 2;

		if (!is_broken(r, dir, fibre, gap)) {
			memset(bad, 0, (size_t)channels * sizeof(*bad));
			mark_channels(r, dir, fibre, bad);
			add_runs(w, dir, fibre, bad, channels);
		}
	}
	free(bad);
}

/* Positions from rank `first` on, where the job is not on all nodes. */
static void turn_places(const struct rest *r, struct ring_detour *w)
{
	int n = r->job->n_hosts;

	w->p.at = NULL;
	if (!r->whole->at) {
		return;
	}
	w->at = x_new((size_t)n, sizeof(*w->at));
	for (int v = 0; v < n; v++) {
		w->at[v] = r->whole->at[(v + w->first) % n];
	}
	w->p.at = w->at;
}

/* Plans the detour, which it takes over; the fastest is kept. The root of a
 * broadcast is the job's rank 0. */
static void try_path(struct rest *r, struct ring_detour *w)
{
	struct optree_plan plan = { 0 };
	struct err why = { 0 };
	enum optree_algorithm how;
	int n = r->job->n_hosts, rc;

	w->p.light = w->light.v;
	w->p.n_light = (int)w->light.n;
	rc = optree_algorithm_parse(r->job->algorithm, &how, &why);
	if (rc == 0) {
		rc = optree_collective(&w->p, r->job->collective, (n - w->first) % n, how,
				       &plan, &why);
	}
	if (rc == 0 && (!r->found || plan.time_ns < r->plan.time_ns)) {
		optree_plan_fini(&r->plan);
		path_fini(&r->best);
		r->plan = plan;
		r->best = *w;
		r->found = true;
		return;
	}
	optree_plan_fini(&plan);
	path_fini(w);
	if (rc && !r->why.code) {
		r->why = why;
	}
}

/* On the light that is left: gap -1 round the ring, else on a line that begins
 * with that rank. */
static void try_light(struct rest *r, int gap)
{
	struct ring_detour w = { .p = *r->whole, .first = gap < 0 ? 0 : gap };

	collect_light(r, &w, gap);
	w.p.line = gap >= 0;
	turn_places(r, &w);
	if (w.light.n == 0) {
		path_fini(&w);
	} else {
		try_path(r, &w);
	}
}

/* Failed spans between the same two ranks leave the same line, which is tried
 * once. */
static bool is_first_of_gap(const struct rest *r, int i)
{
	int gap = rank_behind(r, r->dead[i].node);

	for (int k = 0; k < i; k++) {
		if (r->dead[k].part == RING_SPAN && rank_behind(r, r->dead[k].node) == gap) {
			return false;
		}
	}
	return true;
}

/* Round the ring, then as a line behind each break. A job on a segment is a
 * line anyway. */
static void try_parts(struct rest *r)
{
	if (r->job->segment) {
		try_light(r, 0);
		return;
	}
	try_light(r, -1);
	for (int i = 0; i < r->n_dead; i++) {
		if (r->dead[i].part == RING_SPAN && is_first_of_gap(r, i)) {
			try_light(r, rank_behind(r, r->dead[i].node));
		}
	}
}

/* The first part in the way, and why nothing was found without it. */
static int refuse(const struct rest *r, const struct ring_fault *d, struct err *err)
{
	char part[RING_FAULT_TEXT], more[32] = "";

	ring_fault_text(d, r->ring->n_members, r->ring->nodes, part);
	if (r->n_dead > 1) {
		snprintf(more, sizeof(more), " and %d more", r->n_dead - 1);
	}
	if (d->part == RING_NODE) {
		return err_set(err, WEFT_EINFEASIBLE, "%s: %s%s has failed, and "
			       "the job runs on it", r->ring->name, part, more);
	}
	return err_set(err, r->why.code == WEFT_EUNSUPPORTED ? WEFT_EUNSUPPORTED
							      : WEFT_EINFEASIBLE,
		       "%s: failed: %s%s; what is left of the ring does not do%s%s",
		       r->ring->name, part, more, r->why.code ? ": " : "",
		       r->why.code ? r->why.msg : "");
}

int plan_ring_rest(const struct plan_ctx *ctx, struct plan_job *pj, const struct ring_fault *dead,
		   int n_dead, struct optree_params *inout, struct optree_fibre **fibres,
		   int32_t **at, int *first, struct err *err)
{
	const struct model_job *job = &ctx->fabric->jobs[pj->job];
	struct rest r = { ctx, pj, job, &ctx->fabric->devices[job->device],
			  inout, dead, n_dead, .found = false };

	for (int i = 0; i < n_dead; i++) {
		if (dead[i].part == RING_NODE && has_rank_at(&r, dead[i].node)) {
			return refuse(&r, &dead[i], err);
		}
	}
	try_parts(&r);
	if (!r.found) {
		optree_plan_fini(&r.plan);
		path_fini(&r.best);
		return refuse(&r, &dead[0], err);
	}
	pj->ring = r.plan;
	*inout = r.best.p;
	*fibres = r.best.light.v;
	*at = r.best.at;
	*first = r.best.first;
	return 0;
}
