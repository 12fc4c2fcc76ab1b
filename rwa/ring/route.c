/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which way round a ring every lightpath goes.
 *
 * Bound: take a clockwise link a and a counter-clockwise link b. A lightpath
 * whose clockwise way covers a and leaves out b uses one of the two whichever
 * way it goes, so that one of them carries at least half of these.
 *
 * Routing: one lightpath after the other takes the path on which the sum of
 * exp(beta * load) grows least, round after round with a growing beta, so
 * that in the end only the most loaded links count.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "rwa/ring/private.h"

#define ROUNDS 40
#define ATTEMPTS 3
#define BETA_FIRST 0.02
#define BETA_GROWTH 1.15

struct router {
	int n;
	struct rwa_arc *arcs;
	int64_t count;
	int32_t *load[2];	/* of link i clockwise, counter-clockwise */
	double *price[2];	/* exp(beta * (load - top)) */
	double up, down;	/* growth of a price by one more, or fewer */
	int64_t begin;		/* the lightpath to look at first */
	int32_t pair[2];	/* links of the bound */
};

/* Lightpaths whose clockwise way covers link a and not b, the most over all
 * b, which goes to *other. cover: scratch of n + 1. */
static int32_t max_forced(const struct router *r, int a, int32_t *cover, int32_t *other)
{
	int32_t through = 0, both = 0, min = INT32_MAX;

	for (int v = 0; v <= r->n; v++) {
		cover[v] = 0;
	}
	for (int64_t i = 0; i < r->count; i++) {
		struct rwa_arc cw = { .src = r->arcs[i].src,
				      .dst = r->arcs[i].dst };
		struct ring_span s = rwa_span(r->n, &cw);
		int32_t end = s.lo + s.len;

		if ((a - s.lo + r->n) % r->n >= s.len) {
			continue;
		}
		through++;
		cover[s.lo]++;
		cover[end < r->n ? end : r->n]--;
		if (end > r->n) {
			cover[0]++;
			cover[end - r->n]--;
		}
	}
	for (int b = 0; b < r->n; b++) {
		both += cover[b];
		if (both < min) {
			min = both;
			*other = b;
		}
	}
	return through - min;
}

static int pair_bound(struct router *r, int32_t *cover)
{
	int32_t max = 0;

	for (int a = 0; a < r->n; a++) {
		int32_t b = a, forced = max_forced(r, a, cover, &b);

		if (forced > max || a == 0) {
			max = forced;
			r->pair[RWA_CW] = a;
			r->pair[RWA_CCW] = b;
		}
	}
	return (max + 1) / 2;
}

static void set_prices(struct router *r, double beta)
{
	int32_t top = 0;

	for (int d = 0; d < 2; d++) {
		for (int v = 0; v < r->n; v++) {
			top = r->load[d][v] > top ? r->load[d][v] : top;
		}
	}
	for (int d = 0; d < 2; d++) {
		for (int v = 0; v < r->n; v++) {
			r->price[d][v] = exp(beta * (r->load[d][v] - top));
		}
	}
	r->up = exp(beta);
	r->down = exp(-beta);
}

/* Takes an arc off its path (by -1) or puts it on (by 1). */
static void put(struct router *r, const struct rwa_arc *arc, int by)
{
	struct ring_span s = rwa_span(r->n, arc);
	double factor = by > 0 ? r->up : r->down;

	for (int32_t k = 0, v = s.lo; k < s.len; k++) {
		r->load[arc->dir][v] += by;
		r->price[arc->dir][v] *= factor;
		v = v + 1 == r->n ? 0 : v + 1;
	}
}

static double path_price(const struct router *r, const struct rwa_arc *arc)
{
	struct ring_span s = rwa_span(r->n, arc);
	double sum = 0;

	for (int32_t k = 0, v = s.lo; k < s.len; k++) {
		sum += r->price[arc->dir][v];
		v = v + 1 == r->n ? 0 : v + 1;
	}
	return sum;
}

static void improve(struct router *r)
{
	for (int64_t i = 0; i < r->count; i++) {
		int64_t at = r->begin + i;
		struct rwa_arc *arc = &r->arcs[at % r->count], other = *arc;

		put(r, arc, -1);
		other.dir ^= 1;
		if (path_price(r, &other) < path_price(r, arc) * (1 - 1e-9)) {
			arc->dir = other.dir;
		}
		put(r, arc, 1);
	}
}

static int32_t top_load(const struct router *r)
{
	int32_t top = 0;

	for (int d = 0; d < 2; d++) {
		for (int v = 0; v < r->n; v++) {
			top = r->load[d][v] > top ? r->load[d][v] : top;
		}
	}
	return top;
}

/* Shortest paths first; opposite pairs take turns. */
static void balance(struct router *r, int bound)
{
	double beta = BETA_FIRST;

	for (int v = 0; v < r->n; v++) {
		r->load[RWA_CW][v] = r->load[RWA_CCW][v] = 0;
	}
	for (int64_t i = 0; i < r->count; i++) {
		struct rwa_arc *arc = &r->arcs[i];
		int32_t len;

		arc->dir = RWA_CW;
		len = rwa_span(r->n, arc).len;
		arc->dir = 2 * len > r->n || (2 * len == r->n && i % 2)
				   ? RWA_CCW : RWA_CW;
		put(r, arc, 1);
	}
	for (int k = 0; k < ROUNDS && top_load(r) > bound; k++) {
		set_prices(r, beta);
		improve(r);
		beta *= BETA_GROWTH;
	}
}

static int check_demands(const struct rwa_ring *ring, struct rwa_arc *arcs,
			 int64_t n, struct err *err)
{
	int rc = rwa_check_sizes(ring, n, err);

	for (int64_t i = 0; !rc && i < n; i++) {
		arcs[i].dir = RWA_CW;
		rc = rwa_check_arc(ring, &arcs[i], i, err);
	}
	return rc;
}

/* Routes and colours several times, beginning with another lightpath each
 * time, until the bound is met; keeps the best. `best`: room for all arcs. */
static int attempts(struct router *r, const struct rwa_ring *ring, int bound, struct rwa_arc *best,
		    struct rwa_result *res, struct err *err)
{
	size_t bytes = (size_t)r->count * sizeof(*best);
	int rc = 0;

	res->colours = -1;
	for (int k = 0; !rc && k < ATTEMPTS && res->colours != bound; k++) {
		struct rwa_result now;

		r->begin = r->count * k / ATTEMPTS;
		balance(r, bound);
		rc = rwa_ring_colour(ring, r->arcs, r->count, &now, err);
		if (!rc && (k == 0 || now.colours < res->colours)) {
			*res = now;
			if (bytes) {
				memcpy(best, r->arcs, bytes);
			}
		}
	}
	if (!rc && bytes) {
		memcpy(r->arcs, best, bytes);
	}
	res->bound = bound;
	memcpy(res->pair, r->pair, sizeof(res->pair));
	return rc;
}

int rwa_ring_route(const struct rwa_ring *ring, struct rwa_arc *arcs,
		   int64_t n_arcs, struct rwa_result *res, struct err *err)
{
	struct router r = { .n = ring->n, .arcs = arcs, .count = n_arcs };
	int rc = check_demands(ring, arcs, n_arcs, err);
	size_t n = rc ? 1 : (size_t)ring->n + 1;
	int32_t *cover = x_new(n, sizeof(*cover));
	struct rwa_arc *best = x_new(rc ? 1 : (size_t)n_arcs + 1, sizeof(*best));

	*res = (struct rwa_result){ .method = "none" };
	r.up = r.down = 1;
	for (int d = 0; d < 2; d++) {
		r.load[d] = x_new(n, sizeof(*r.load[d]));
		r.price[d] = x_new(n, sizeof(*r.price[d]));
	}
	if (!rc) {
		rc = attempts(&r, ring, pair_bound(&r, cover), best, res, err);
	}
	free(cover);
	free(best);
	for (int d = 0; d < 2; d++) {
		free(r.load[d]);
		free(r.price[d]);
	}
	return rc;
}
