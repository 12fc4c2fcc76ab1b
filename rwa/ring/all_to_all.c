/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All-to-all on a ring with as many colours as the load.
 *
 * The colouring grows by two opposite members at a time. Let x and y enter a
 * ring of i pairs, a members lying clockwise between x and y and b between y
 * and x. For members u between y and x and v between x and y, the four arcs
 * x -> v -> y -> u -> x make one turn of the ring: one colour, clockwise;
 * y -> v -> x -> u -> y does so the other way round. What is left when a and
 * b are even or one apart is x <-> y itself: with one more member u it makes
 * the turn x -> y -> u -> x, and without one x -> y -> x. An arc that was a
 * shortest path stays one, as it never covers both new members. So every
 * colour is a whole turn but for the last opposite pair of an odd number of
 * pairs, and the colours are exactly ceil(floor(m^2/4) / 2).
 *
 * Numbering the members 0..m-1 around the ring and h = m/2, pair i is
 * (i, h + i), and when m is odd member 2h stays alone.
 */
#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "rwa/ring/private.h"

/* Up to this many members the colours come from the lp_solve program, which
 * takes some 30 ms for 12 members and 5 ms for 10. */
#define LP_MEMBERS 12
#define LP_MEMBERS_OF_GROUPS 10

/* What becomes of the opposite pairs x <-> y when their number is odd. */
enum odd_pair { ODD_SPLIT, ODD_CW };

/* All-to-all among abstract members 0..m-1. */
struct pattern {
	int m;
	uint8_t *dir;		/* m * m, of arc i -> j at i * m + j */
	int32_t *colour;	/* same, per direction */
	int colours[2];
	const char *method;
};

static void pattern_free(struct pattern *p)
{
	free(p->dir);
	free(p->colour);
}

static void put(struct pattern *p, int from, int to, int dir, int colour)
{
	size_t at = (size_t)from * p->m + to;

	p->dir[at] = (uint8_t)dir;
	p->colour[at] = colour;
	if (colour >= p->colours[dir]) {
		p->colours[dir] = colour + 1;
	}
}

/* One turn x -> v -> y -> u -> x and its mirror image. */
static void put_turns(struct pattern *p, int x, int v, int y, int u, int colour)
{
	put(p, x, v, RWA_CW, colour);
	put(p, v, y, RWA_CW, colour);
	put(p, y, u, RWA_CW, colour);
	put(p, u, x, RWA_CW, colour);
	put(p, x, u, RWA_CCW, colour);
	put(p, u, y, RWA_CCW, colour);
	put(p, y, v, RWA_CCW, colour);
	put(p, v, x, RWA_CCW, colour);
}

/* Opposite pair i of an even m: both arcs go round the same path, the
 * directions taking turns; the last of an odd number may be split. */
static void put_opposite(struct pattern *p, int i, enum odd_pair odd)
{
	int h = p->m / 2, base = h * (h - 1) / 2 + i / 2;
	int dir = i % 2 ? RWA_CCW : RWA_CW;
	bool split = odd == ODD_SPLIT && h % 2 && i == h - 1;

	put(p, i, h + i, dir, base);
	put(p, h + i, i, split ? RWA_CCW : dir, base);
}

/* Pair i of an odd m with the single member 2h. */
static void put_single(struct pattern *p, int i)
{
	int h = p->m / 2, base = h * (h - 1) / 2 + i;

	put(p, i, h + i, RWA_CW, base);
	put(p, h + i, 2 * h, RWA_CW, base);
	put(p, 2 * h, i, RWA_CW, base);
	put(p, i, 2 * h, RWA_CCW, base);
	put(p, 2 * h, h + i, RWA_CCW, base);
	put(p, h + i, i, RWA_CCW, base);
}

static void pattern_init(struct pattern *p, int m, enum odd_pair odd)
{
	int h = m / 2;

	*p = (struct pattern){ .m = m, .method = "turns" };
	p->dir = x_new((size_t)m * m, sizeof(*p->dir));
	p->colour = x_new((size_t)m * m, sizeof(*p->colour));
	for (int i = 0; i < h; i++) {
		for (int t = 0; t < i; t++) {
			put_turns(p, i, h + t, h + i, t, i * (i - 1) / 2 + t);
		}
		if (m % 2) {
			put_single(p, i);
		} else {
			put_opposite(p, i, odd);
		}
	}
}

/* The arcs of one direction of the pattern as a job for lp_solve. */
static void job_from_pattern(struct colouring *job, const struct pattern *p, int dir)
{
	int m = p->m;

	*job = (struct colouring){ .n = m, .method = "none" };
	job->spans = x_alloc((size_t)m * m, sizeof(*job->spans));
	job->colour = x_alloc((size_t)m * m, sizeof(*job->colour));
	for (int at = 0; at < m * m; at++) {
		struct rwa_arc arc = { .src = at / m, .dst = at % m,
				       .dir = p->dir[at] };

		if (arc.src != arc.dst && arc.dir == dir) {
			job->spans[job->count] = rwa_span(m, &arc);
			job->colour[job->count++] = -1;
		}
	}
	job->bound = (m * m / 4 + 1) / 2;
	if (p->colours[dir] < job->bound) {
		job->bound = p->colours[dir];
	}
}

/* Colours one direction by lp_solve; the constructed colours stay when they
 * are better. */
static int solve_direction(struct pattern *p, int dir, struct err *err)
{
	struct colouring job;
	int rc;

	job_from_pattern(&job, p, dir);
	job.colours = p->colours[dir] + 1;
	rc = job.count ? rwa_colour_lp(&job, err) : 0;
	if (rc || !job.count || job.colours > p->colours[dir]) {
		goto out;
	}
	p->colours[dir] = job.colours;
	p->method = job.method;
	for (int at = 0, k = 0; at < p->m * p->m; at++) {
		if (at / p->m != at % p->m && p->dir[at] == dir) {
			p->colour[at] = job.colour[k++];
		}
	}
out:
	free(job.spans);
	free(job.colour);
	return rc;
}

static int pattern_solve(struct pattern *p, struct err *err)
{
	int rc = 0;

	for (int dir = RWA_CW; !rc && dir <= RWA_CCW; dir++) {
		rc = solve_direction(p, dir, err);
	}
	return rc;
}

/* Lifts the pattern to members of a ring from colour base[dir] on; mirrored:
 * member i plays m - 1 - i, and the directions change places. */
static void lift(const struct rwa_ring *ring, const struct pattern *p, const int32_t *members,
		 bool mirrored, int base[2], struct rwa_arc *arcs)
{
	int m = p->m;

	for (int i = 0; i < m; i++) {
		for (int j = 0; j < m; j++) {
			size_t at = mirrored ? (size_t)(m - 1 - i) * m +
						       (m - 1 - j)
					     : (size_t)i * m + j;
			int dir = p->dir[at] ^ (mirrored ? 1 : 0);

			if (i == j) {
				continue;
			}
			*arcs = (struct rwa_arc){ .src = members[i],
						  .dst = members[j],
						  .dir = (uint8_t)dir };
			rwa_set_colour(ring, arcs++, base[dir] + p->colour[at]);
		}
	}
	base[RWA_CW] += p->colours[mirrored ? RWA_CCW : RWA_CW];
	base[RWA_CCW] += p->colours[mirrored ? RWA_CW : RWA_CCW];
}

static int check_members(const struct rwa_ring *ring, const int32_t *members,
			 int m, int groups, struct err *err)
{
	int rc = m < 1 || groups < 1
			 ? err_set(err, WEFT_EINVAL,
				   "all-to-all among %d sets of %d members",
				   groups, m)
			 : rwa_check_sizes(ring, (int64_t)groups * m * (m - 1), err);

	for (int64_t k = 0; !rc && k < (int64_t)groups * m; k++) {
		if (members[k] < 0 || members[k] >= ring->n ||
		    (k % m && members[k] <= members[k - 1])) {
			rc = err_set(err, WEFT_EINVAL,
				     "member %lld at position %d: positions "
				     "must ascend within 0 to %d",
				     (long long)k, members[k], ring->n - 1);
		}
	}
	return rc;
}

/* Largest link load of either direction. O(arcs + n). */
static void max_load(const struct rwa_ring *ring, const struct rwa_arc *arcs,
		     int64_t n_arcs, int *bound)
{
	int n = ring->n;
	int32_t *rise = x_new(2 * (size_t)n, sizeof(*rise));
	int32_t load[2] = { 0, 0 };

	for (int64_t i = 0; i < n_arcs; i++) {
		struct ring_span s = rwa_span(n, &arcs[i]);
		int dir = arcs[i].dir;

		rise[2 * s.lo + dir]++;
		rise[2 * ((s.lo + s.len) % n) + dir]--;
		load[dir] += s.lo + s.len >= n; /* reaches node 0 */
	}
	*bound = 0;
	for (int v = 0; v < n; v++) {
		for (int dir = 0; dir < 2; dir++) {
			load[dir] += rise[2 * v + dir];
			*bound = load[dir] > *bound ? load[dir] : *bound;
		}
	}
	free(rise);
}

static void finish(const struct rwa_ring *ring, const struct rwa_arc *arcs, int64_t n_arcs,
		   int colours, const char *method, struct rwa_result *res)
{
	int width = ring->fibres * ring->channels;

	res->colours = colours;
	res->slots = (colours + width - 1) / width;
	res->method = method;
	max_load(ring, arcs, n_arcs, &res->bound);
}

/* Groups in pairs, one of each pair mirrored, so that what one direction has
 * too much of the other has too. */
static int lift_groups(const struct rwa_ring *ring, const int32_t *members, int m, int groups,
		       struct rwa_arc *arcs, struct rwa_result *res, struct err *err)
{
	struct pattern paired = { 0 }, alone = { 0 };
	int base[2] = { 0, 0 };
	int64_t step = (int64_t)m * (m - 1);
	int rc = 0;

	pattern_init(&paired, m, ODD_CW);
	pattern_init(&alone, m, ODD_SPLIT);
	if (m <= (groups > 1 ? LP_MEMBERS_OF_GROUPS : LP_MEMBERS)) {
		if (!(rc = groups > 1 ? pattern_solve(&paired, err) : 0)) {
			rc = pattern_solve(&alone, err);
		}
	}
	for (int g = 0; !rc && g < groups; g++) {
		bool last = g == groups - 1 && groups % 2;

		lift(ring, last ? &alone : &paired, members + (int64_t)g * m,
		     g % 2 == 1, base, arcs + g * step);
	}
	if (!rc) {
		finish(ring, arcs, groups * step, base[0] > base[1] ? base[0] : base[1],
		       alone.method, res);
	}
	pattern_free(&paired);
	pattern_free(&alone);
	return rc;
}

int rwa_all_to_all_groups(const struct rwa_ring *ring, const int32_t *members, int m, int groups,
			  struct rwa_arc *arcs, struct rwa_result *res, struct err *err)
{
	int rc = check_members(ring, members, m, groups, err);

	*res = (struct rwa_result){ .method = "none" };
	if (rc) {
		return rc;
	}
	return lift_groups(ring, members, m, groups, arcs, res, err);
}

int rwa_all_to_all(const struct rwa_ring *ring, const int32_t *members, int m, bool line,
		   struct rwa_arc *arcs, struct rwa_result *res, struct err *err)
{
	int64_t k = 0;
	int rc;

	if (!line) {
		return rwa_all_to_all_groups(ring, members, m, 1, arcs, res, err);
	}
	*res = (struct rwa_result){ .method = "none" };
	rc = check_members(ring, members, m, 1, err);
	for (int i = 0; !rc && i < m; i++) {
		for (int j = 0; j < m; j++) {
			if (i != j) {
				arcs[k++] = (struct rwa_arc){
					.src = members[i], .dst = members[j],
					.dir = i < j ? RWA_CW : RWA_CCW,
				};
			}
		}
	}
	if (rc) {
		return rc;
	}
	return rwa_ring_colour(ring, arcs, k, res, err);
}
