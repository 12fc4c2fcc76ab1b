/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The schedule of a collective whose light changes: from the sequence of its lights, transfer by
 * transfer. A reduce-scatter is the all-gather backwards, from rank to rank the other way; an
 * all-reduce puts an all-gather in the mirror behind it, so that it goes on with the light at hand,
 * and exchanges between them. Then `alike` ranks, those `rest` apart, hold the same.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "collective/workload/call_private.h"
#include "lib/base/alloc.h"

struct call_writer {
	const struct call_query *q;
	const struct call_sequence *seq;
	int steps;		/* of the sequence, */
	int exchange_steps;	/* and of its exchanges */
	int alike, rest;	/* their product is the number of ranks */
	int n_offsets, *offset;	/* of the digraph: r -> r + offset[i] */
	int *nth;		/* [ranks]: which it is, -1: none */
	int32_t *arc;		/* [ranks x n_offsets] */
	struct coll_sched *out;
};

/* A generator as it is in the digraph: the other way where the schedule runs in the mirror. */
static int turned(const struct call_writer *w, int g)
{
	bool mirrored = coll_is_sum(w->q->kind);

	return mirrored && g ? w->q->ranks - g : g;
}

static const struct call_run *run_at(const struct call_writer *w, int step)
{
	const struct call_run *run = w->seq->runs;

	while (step >= run->steps) {
		step -= run->steps;
		run++;
	}
	return run;
}

static void add_offsets(struct call_writer *w, const struct call_run *run)
{
	for (int i = 0; i < w->q->ports; i++) {
		int g = turned(w, run->generators[i]);

		if (g && w->nth[g] < 0) {
			w->nth[g] = w->n_offsets;
			w->offset[w->n_offsets++] = g;
		}
	}
}

/* The digraph of all lights together. */
static int make_digraph(struct call_writer *w, struct topo **out, struct err *err)
{
	int n = w->q->ranks, rc = topo_new(n, out, err);

	for (int i = 0; i < n; i++) {
		w->nth[i] = -1;
	}
	for (int r = 0; r < w->seq->n_runs; r++) {
		add_offsets(w, &w->seq->runs[r]);
	}
	for (int k = 1; k <= w->seq->exchanges; k++) {
		const struct call_run run = call_exchange(w->q, w->seq, k);

		add_offsets(w, &run);
	}
	for (int r = 0; r < n && !rc; r++) {
		for (int i = 0; i < w->n_offsets && !rc; i++) {
			rc = topo_add_arc(*out, r, (r + w->offset[i]) % n, 1, 0, err);
		}
	}
	if (!rc) {
		topo_freeze(*out);
	}
	w->arc = x_new((size_t)n * (size_t)w->n_offsets + 1, sizeof(*w->arc));
	for (int a = 0; !rc && a < topo_m(*out); a++) {
		const struct topo_arc *arc = topo_arc(*out, a);
		int g = (arc->dst - arc->src + n) % n;

		w->arc[arc->src * w->n_offsets + w->nth[g]] = a;
	}
	return rc;
}

static int32_t arc_from(const struct call_writer *w, int rank, int offset)
{
	return w->arc[rank * w->n_offsets + w->nth[offset]];
}

static int add_light(const struct call_writer *w, int step, const struct call_run *run,
		     struct err *err)
{
	int rc = 0;

	for (int i = 0; i < w->q->ports; i++) {
		int g = turned(w, run->generators[i]);

		for (int r = 0; g && r < w->q->ranks && !rc; r++) {
			struct coll_light l = { .step = step, .arc = arc_from(w, r, g),
						.channel = (uint16_t)i };

			rc = coll_add_light(w->out, &l, err);
		}
	}
	return rc;
}

/* ---- gathers and sums ---- */

/* All ranks send what they have of a shard, the first of them that of rank `origin` (or the sum of
 * rank `dest`), along a generator, and so of all shards that are with it. */
static int add_all(const struct call_writer *w, struct coll_xfer x, int g, struct err *err)
{
	int n = w->q->ranks, origin = x.origin, dest = x.dest, rc = 0;

	for (int r = 0; r < n; r++) {
		x.dest = x.op == COLL_OP_FORWARD ? (dest + r) % n : COLL_NO_DEST;
		x.arc = arc_from(w, r, g);
		for (int k = 0; k < w->alike && !rc; k++) {
			x.origin = (origin + r + k * w->rest) % n;
			rc = coll_add(w->out, &x, err);
		}
	}
	return rc;
}

/* In this step of an all-gather along the generators, ranks get what the rank `far` before them
 * had; with the schedule that is wanted: as it is, in the mirror, or backwards. */
static int add_gathered(const struct call_writer *w, int step, int g, int far, struct err *err)
{
	int n = w->q->ranks, rc = 0;
	bool sum = coll_is_sum(w->q->kind);
	struct coll_xfer x = { .dest = COLL_NO_DEST, .step = step };

	if (sum) {
		/* Backwards: the sum for the rank `far` before goes to the one g before. */
		x.step = w->steps - 1 - step;
		x.op = COLL_OP_REDUCE;
		x.origin = n - far;
		rc = add_all(w, x, n - g, err);
		x.op = COLL_OP_COPY;
		x.step = w->steps + w->exchange_steps + step;
	}
	if (rc || w->q->kind == COLL_REDUCE_SCATTER) {
		return rc;
	}
	/* The tail is the head's rank less g, in the mirror more. */
	x.origin = sum ? far - g : n - far + g;
	return add_all(w, x, sum ? n - g : g, err);
}

/* Ranks have what the ranks `held` before them sent, each of which goes on once. */
static int add_gather(const struct call_writer *w, struct err *err)
{
	int n = w->rest, rc = 0;
	bool *held = x_new((size_t)n, sizeof(*held)), *got = x_new((size_t)n, sizeof(*got));

	held[0] = true;
	for (int step = 0; step < w->steps && !rc; step++) {
		const struct call_run *run = run_at(w, step);

		memcpy(got, held, (size_t)n * sizeof(*got));
		for (int i = 0; i < w->q->ports; i++) {
			int g = run->generators[i];

			/* No wrap: digits count up to the ranks. */
			for (int far = 0; g && far + g < n && !rc; far++) {
				if (held[far] && !got[far + g]) {
					got[far + g] = true;
					rc = add_gathered(w, step, g, far + g, err);
				}
			}
		}
		memcpy(held, got, (size_t)n * sizeof(*held));
	}
	free(held);
	free(got);
	return rc;
}

static int count_exchanges(const struct call_writer *w)
{
	int steps = 0;

	for (int k = 1; k <= w->seq->exchanges; k++) {
		steps += call_exchange(w->q, w->seq, k).steps;
	}
	return steps;
}

/* Step `step` of an exchange, `at` of the schedule: the rank i generators further sends its own sum
 * first, then that of the last one that it got. */
static int exchange(const struct call_writer *w, int k, const struct call_run *run, int step,
		    int at, struct err *err)
{
	int n = w->q->ranks, far = step * w->q->ports * run->generators[0], rc;
	struct coll_xfer x = { .step = at, .dest = far % n,
			       .op = step ? COLL_OP_FORWARD : COLL_OP_REDUCE };

	rc = add_light(w, at, run, err);
	for (int i = 0; i < w->q->ports && !rc; i++) {
		if (step * w->q->ports + i + 1 < w->seq->radix[k - 1]) {
			rc = add_all(w, x, turned(w, run->generators[i]), err);
		}
	}
	return rc;
}

static int add_exchanges(const struct call_writer *w, struct err *err)
{
	int rc = 0, at = w->steps;

	for (int k = 1; k <= w->seq->exchanges && !rc; k++) {
		const struct call_run run = call_exchange(w->q, w->seq, k);

		for (int step = 0; step < run.steps && !rc; step++) {
			rc = exchange(w, k, &run, step, at++, err);
		}
	}
	return rc;
}

/* ---- all-to-all ---- */

static int add_pairs(const struct call_writer *w, struct err *err)
{
	int n = w->q->ranks, rc = 0;
	int8_t *via = x_new((size_t)n * (size_t)w->steps, sizeof(*via));

	(void)call_paths(w->q, w->seq, via);
	for (int s = 1; s < n && !rc; s++) {
		int at = 0;

		for (int step = 0; step < w->steps && !rc; step++) {
			int port = via[s * w->steps + step];
			int g = port < 0 ? 0 : run_at(w, step)->generators[port];

			for (int r = 0; g && r < n && !rc; r++) {
				struct coll_xfer x = { .step = step, .origin = r,
						       .dest = (r + s) % n,
						       .arc = arc_from(w, (r + at) % n, g) };

				rc = coll_add(w->out, &x, err);
			}
			at = (at + g) % n;
		}
	}
	free(via);
	return rc;
}

/* ---- all ---- */

static int add_lights(const struct call_writer *w, struct err *err)
{
	bool sum = coll_is_sum(w->q->kind);
	int rc = 0;

	for (int step = 0; step < w->steps && !rc; step++) {
		const struct call_run *run = run_at(w, step);

		rc = add_light(w, sum ? w->steps - 1 - step : step, run, err);
		if (!rc && w->q->kind == COLL_ALLREDUCE) {
			rc = add_light(w, w->steps + w->exchange_steps + step, run, err);
		}
	}
	return rc;
}

static int write_schedule(struct call_writer *w, struct err *err)
{
	struct topo *t;
	int rc = make_digraph(w, &t, err);

	if (!rc) {
		rc = coll_new(w->q->kind, t, 1, w->q->ports, 0, &w->out, err);
	}
	(void)(rc || (rc = add_lights(w, err)) ||
	       (rc = w->q->kind == COLL_ALLTOALL ? add_pairs(w, err) : add_gather(w, err)) ||
	       (rc = add_exchanges(w, err)) ||
	       (rc = coll_finish(w->out, err)));
	return rc;
}

static int check(const struct call_query *q, struct err *err)
{
	const struct coll_cost *c = &q->cost;

	if (coll_has_root(q->kind)) {
		return err_set(err, WEFT_EUNSUPPORTED, "light that changes within a %s",
			       coll_kind_name(q->kind));
	}
	if (q->ranks < 2 || q->ranks > CALL_MAX_RANKS || q->ports < 1 ||
	    q->ports > CALL_MAX_PORTS || q->ports >= q->ranks) {
		return err_set(err, WEFT_EINVAL, "%d ranks of %d ports: 2 to %d ranks, 1 to %d "
			       "ports, fewer than ranks", q->ranks, q->ports, CALL_MAX_RANKS,
			       CALL_MAX_PORTS);
	}
	if (c->size_bytes < 1 || c->link_bps < 1 || c->alpha_ns < 0 || c->retune_ns < 0 ||
	    c->hop_ns || c->message_ns) {
		return err_set(err, WEFT_EINVAL, "a size, a rate, alpha and the time of a "
			       "change of light are known, and no other times");
	}
	return 0;
}

static int64_t bound_of(const struct call_query *q)
{
	double volume = (q->kind == COLL_ALLREDUCE ? 2 : 1) * (double)(q->ranks - 1) / q->ranks;
	int64_t reached = 1;
	int steps = 0;

	for (; reached < q->ranks; steps++) {
		reached *= q->ports + 1;
	}
	return q->cost.alpha_ns * steps + (int64_t)(volume * (double)q->cost.size_bytes * 8e9 /
						    ((double)q->cost.link_bps * q->ports));
}

int call_lights_make(const struct call_query *q, struct call_made *out, struct err *err)
{
	struct call_sequence seq = { 0 };
	struct call_writer w = { .q = q, .seq = &seq };
	struct coll_light_change changes;
	struct coll_report report;
	int64_t bound;
	int rc = check(q, err);

	*out = (struct call_made){ 0 };
	if (rc) {
		return rc;
	}
	if (q->kind == COLL_ALLTOALL) {
		call_search(q, &seq);
	} else {
		call_radices(q, &seq);
	}
	w.steps = call_steps(&seq);
	w.alike = call_alike(&seq, seq.exchanges);
	w.exchange_steps = count_exchanges(&w);
	w.rest = q->ranks / w.alike;
	w.nth = x_new((size_t)q->ranks, sizeof(*w.nth));
	w.offset = x_new((size_t)q->ranks, sizeof(*w.offset));
	coll_report_init(&report);
	(void)((rc = write_schedule(&w, err)) || (rc = coll_verify(w.out, &report, err)) ||
	       (rc = coll_time(w.out, &report, &q->cost, &out->time_ns, &bound, err)));
	if (rc) {
		coll_free(w.out);
	} else {
		coll_light_changes(w.out, &changes);
		out->sched = w.out;
		out->steps = coll_steps(w.out);
		out->changes = changes.steps;
		out->bound_ns = bound_of(q);
	}
	coll_report_fini(&report);
	free(w.nth);
	free(w.offset);
	free(w.arc);
	free(seq.runs);
	return rc;
}
