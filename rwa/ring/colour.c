/* SPDX-License-Identifier: Apache-2.0 */
/* rwa_ring_colour: both directions by the first colouring that meets the
 * bound. */
#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "rwa/ring/private.h"

static void job_free(struct colouring *job)
{
	free(job->spans);
	free(job->colour);
}

/* One colour holds no more than n / s arcs of s links or more, so that these
 * need as many colours as that takes, whatever s. O(count + n). */
static void bound_by_length(struct colouring *job)
{
	int32_t *of_length = x_new((size_t)job->n + 1, sizeof(*of_length));
	int32_t longer = 0;

	for (int32_t i = 0; i < job->count; i++) {
		of_length[job->spans[i].len]++;
	}
	for (int32_t s = job->n - 1; s > 0; s--) {
		int32_t fit = job->n / s, need;

		longer += of_length[s];
		need = (longer + fit - 1) / fit;
		job->bound = need > job->bound ? need : job->bound;
	}
	free(of_length);
}

/* The arcs of direction dir as a job, with the bounds by load and length. */
static void job_init(struct colouring *job, const struct rwa_ring *ring,
		     const struct rwa_arc *arcs, int64_t n_arcs, int dir)
{
	int32_t *load = x_alloc((size_t)ring->n, sizeof(*load));

	*job = (struct colouring){ .n = ring->n, .method = "none" };
	for (int64_t i = 0; i < n_arcs; i++) {
		job->count += arcs[i].dir == dir;
	}
	job->spans = x_alloc((size_t)job->count + 1, sizeof(*job->spans));
	job->colour = x_alloc((size_t)job->count + 1, sizeof(*job->colour));
	for (int64_t i = 0, k = 0; i < n_arcs; i++) {
		if (arcs[i].dir == dir) {
			job->spans[k++] = rwa_span(ring->n, &arcs[i]);
		}
	}
	memset(job->colour, 0xff, (size_t)job->count * sizeof(*job->colour));
	rwa_span_loads(job, load);
	for (int v = 0; v < ring->n; v++) {
		job->bound = load[v] > job->bound ? load[v] : job->bound;
	}
	free(load);
	bound_by_length(job);
}

/* From the bound up, as long as that is fewer colours than there are. */
static void tighten(struct colouring *job)
{
	for (int w = job->bound; w < job->colours && !rwa_colour_cycles(job, w); w++) {
	}
}

/* Cuts first; where they miss the bound, lp_solve on a small instance, and a
 * cycle cover where that is too large or stops early. A ring with an uncovered
 * link always meets its load. */
static int colour_all(struct colouring *job, struct err *err)
{
	int rc;

	rwa_colour_cuts(job);
	if (job->colours > job->bound && rwa_lp_is_small(job) && (rc = rwa_colour_lp(job, err))) {
		return rc;
	}
	if (job->colours > job->bound) {
		tighten(job);
	}
	return 0;
}

static int colour_direction(const struct rwa_ring *ring, struct rwa_arc *arcs, int64_t n_arcs,
			    int dir, struct rwa_result *res, struct err *err)
{
	struct colouring job;
	int rc = 0;

	job_init(&job, ring, arcs, n_arcs, dir);
	if (job.count && (rc = colour_all(&job, err))) {
		goto out;
	}
	for (int64_t i = 0, k = 0; i < n_arcs; i++) {
		if (arcs[i].dir == dir) {
			rwa_set_colour(ring, &arcs[i], job.colour[k++]);
		}
	}
	if (job.colours > res->colours) {
		res->colours = job.colours;
		res->method = job.method;
	}
	res->bound = job.bound > res->bound ? job.bound : res->bound;
out:
	job_free(&job);
	return rc;
}

int rwa_ring_colour(const struct rwa_ring *ring, struct rwa_arc *arcs,
		    int64_t n_arcs, struct rwa_result *res, struct err *err)
{
	int rc = rwa_check_sizes(ring, n_arcs, err);

	*res = (struct rwa_result){ .method = "none" };
	for (int64_t i = 0; !rc && i < n_arcs; i++) {
		rc = rwa_check_arc(ring, &arcs[i], i, err);
	}
	for (int dir = RWA_CW; !rc && dir <= RWA_CCW; dir++) {
		rc = colour_direction(ring, arcs, n_arcs, dir, res, err);
	}
	if (!rc) {
		int width = ring->fibres * ring->channels;

		res->slots = (res->colours + width - 1) / width;
	}
	return rc;
}
