/* rwa_ring_colour: both directions by the first colouring that meets the
 * bound. */
#include <stdlib.h>
#include <string.h>

#include "rwa/ring/private.h"

static void job_free(struct colouring *job)
{
	free(job->spans);
	free(job->colour);
}

/* One colour holds no more than n / s arcs of s links or more, so that these
 * need as many colours as that takes, whatever s. O(count + n). */
static int bound_by_length(struct colouring *job)
{
	int32_t *of_length = calloc((size_t)job->n + 1, sizeof(*of_length));
	int32_t longer = 0;

	if (!of_length) {
		return WEFT_ENOMEM;
	}
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
	return 0;
}

/* The arcs of direction dir as a job. Also finds its load: *open is set when
 * some link has none. */
static int job_init(struct colouring *job, const struct rwa_ring *ring,
		    const struct rwa_arc *arcs, int64_t n_arcs, int dir,
		    bool *open)
{
	int32_t *rise = calloc((size_t)ring->n, sizeof(*rise));
	int32_t load = 0;

	*job = (struct colouring){ .n = ring->n, .method = "none" };
	for (int64_t i = 0; i < n_arcs; i++) {
		job->count += arcs[i].dir == dir;
	}
	job->spans = malloc(((size_t)job->count + 1) * sizeof(*job->spans));
	job->colour = malloc(((size_t)job->count + 1) * sizeof(*job->colour));
	if (!rise || !job->spans || !job->colour) {
		free(rise);
		return WEFT_ENOMEM;
	}
	for (int64_t i = 0, k = 0; i < n_arcs; i++) {
		struct span s = rwa_span(ring->n, &arcs[i]);

		if (arcs[i].dir != dir) {
			continue;
		}
		job->spans[k] = s;
		job->colour[k++] = -1;
		rise[s.lo]++;
		rise[(s.lo + s.len) % ring->n]--;
		load += s.lo + s.len >= ring->n;
	}
	*open = false;
	for (int v = 0; v < ring->n; v++) {
		load += rise[v];
		*open |= load == 0;
		job->bound = load > job->bound ? load : job->bound;
	}
	free(rise);
	return bound_by_length(job);
}

static void uncolour(struct colouring *job)
{
	memset(job->colour, 0xff, (size_t)job->count * sizeof(*job->colour));
	job->tiled = 0;
}

/* Whole turns first (or not), then cuts, from scratch. */
static int colour_from_scratch(struct colouring *job, bool tile)
{
	int rc = 0;

	uncolour(job);
	if (tile) {
		rc = rwa_colour_tiling(job);
	}
	if (!rc && (!tile || job->tiled < job->bound)) {
		rc = rwa_colour_cuts(job);
	}
	return rc;
}

/* From the bound up, as long as that is fewer colours than there are. */
static int tighten(struct colouring *job)
{
	bool found = false;
	int rc = 0;

	for (int w = job->bound; !rc && !found && w < job->colours; w++) {
		rc = rwa_colour_strands(job, w, &found);
	}
	return rc;
}

/* A ring without an uncovered link: turns first, then cuts; if they miss the
 * bound, lp_solve on a small instance, and strands where that is too large
 * or stops early. */
static int colour_closed(struct colouring *job, struct err *err)
{
	int rc = colour_from_scratch(job, true);

	if (!rc && job->colours > job->bound && job->tiled) {
		int tiled = job->colours;

		rc = colour_from_scratch(job, false);
		if (!rc && job->colours > tiled) {
			rc = colour_from_scratch(job, true);
		}
	}
	if (rc) {
		return err_nomem(err);
	}
	if (job->colours > job->bound && rwa_lp_is_small(job)) {
		rc = rwa_colour_lp(job, err);
	}
	if (!rc && job->colours > job->bound && tighten(job)) {
		rc = err_nomem(err);
	}
	return rc;
}

static void store(const struct rwa_ring *ring, struct rwa_arc *arcs,
		  int64_t n_arcs, int dir, const struct colouring *job)
{
	for (int64_t i = 0, k = 0; i < n_arcs; i++) {
		if (arcs[i].dir == dir) {
			rwa_set_colour(ring, &arcs[i], job->colour[k++]);
		}
	}
}

static int colour_direction(const struct rwa_ring *ring, struct rwa_arc *arcs,
			    int64_t n_arcs, int dir, struct rwa_result *res,
			    struct err *err)
{
	struct colouring job;
	bool open;
	int rc = job_init(&job, ring, arcs, n_arcs, dir, &open);

	if (!rc && job.count && open) {
		rc = rwa_colour_cuts(&job);
	}
	if (rc) {
		err_nomem(err);
		goto out;
	}
	if (job.count && !open) {
		rc = colour_closed(&job, err);
		if (rc) {
			goto out;
		}
	}
	store(ring, arcs, n_arcs, dir, &job);
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
