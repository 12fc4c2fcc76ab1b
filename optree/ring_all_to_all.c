/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All-to-all on a ring: every item goes the shorter way round, or where one
 * direction has more channels the one that takes less time, on a line the
 * only one; in one hop or in hops whose lengths are levels, so that few
 * channels suffice where light cannot go the whole way at once. Candidates
 * of several level lengths are built within a budget of hops, and the
 * fastest is kept.
 */
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "optree/private.h"

/* Hops built in all candidates together, and in one of them. */
#define WORK ((int64_t)12 << 20)
#define WORK_EACH ((int64_t)5 << 19)

/* Pieces for the next cw nodes go clockwise, those for the last ccw the other
 * way; when `cut`, half of the one between each way. */
struct piece_split {
	int cw, ccw;
	bool cut;
};

/* Links that pieces for the next `links` nodes load one way, twice, for each
 * channel. */
static double load_of(int links, bool cut, int64_t width)
{
	double load = (double)links * (links + 1) + (cut ? links + 1 : 0);

	return load > 0 ? load / (double)width : 0;
}

static struct piece_split divide(const struct optree_params *p)
{
	int64_t w[2] = { tree_width(p, RWA_CW), tree_width(p, RWA_CCW) };
	struct piece_split best = { p->n - 1, p->n - 1, false };
	double least = INFINITY;

	for (int halves = 0; halves <= 2 * (p->n - 1) && !p->line; halves++) {
		struct piece_split x = { .cw = halves / 2, .cut = halves % 2 };
		double cw = load_of(x.cw, x.cut, w[RWA_CW]), ccw;

		x.ccw = p->n - 1 - x.cw - x.cut;
		ccw = load_of(x.ccw, x.cut, w[RWA_CCW]);
		cw = ccw > cw ? ccw : cw;
		if (cw < least) {
			least = cw;
			best = x;
		}
	}
	return best;
}

/* One piece's path of `links` links in direction dir. */
static void walk(const struct optree_params *p, const struct compose_shape *shape,
		 const int *begins, struct compose_record r, int links, struct compose_records *rec)
{
	int at = 0;

	for (int j = 0; j < shape->levels; j++) {
		const struct compose_level *l = &shape->level[j];
		int strides = links / l->stride;

		links %= l->stride;
		for (r.round = begins[j]; strides > 0; r.round++) {
			int hop = strides < l->jump ? strides : l->jump;

			r.len = hop * l->stride;
			r.hop.at = at;
			at = (at + (r.dir == RWA_CW ? r.len : p->n - r.len)) %
			     p->n;
			strides -= hop;
			vec_push(rec, r);
		}
	}
}

static void walk_direction(const struct optree_params *p, const struct compose_shape *shape,
			   const int *begins, int dir, int whole, bool cut,
			   struct compose_records *rec)
{
	for (int links = 1; links <= whole + cut; links++) {
		bool half = links > whole;
		struct compose_record r = {
			.dir = (uint8_t)dir,
			.hop = { .dest = dir == RWA_CW ? links : p->n - links,
				 .first = half && dir == RWA_CCW,
				 .last = !(half && dir == RWA_CW) },
		};

		walk(p, shape, begins, r, links, rec);
	}
}

static int build(const struct optree_params *p, const struct compose_shape *shape,
		 const struct piece_split *split, struct optree_sym *out, struct err *err)
{
	struct rwa_ring ring = { p->n, p->fibres, p->channels };
	struct compose_records rec = { 0 };
	int begins[COMPOSE_MAX_LEVELS], ends[COMPOSE_MAX_LEVELS], round = 0;
	int rc;

	optree_sym_init(out, COLL_ALLTOALL, &ring);
	for (int j = 0; j < shape->levels; j++) {
		const struct compose_level *l = &shape->level[j];
		int max = l->gap / l->stride;

		begins[j] = round;
		round += (max + l->jump - 1) / l->jump;
		ends[j] = round;
	}
	walk_direction(p, shape, begins, RWA_CW, split->cw, split->cut, &rec);
	walk_direction(p, shape, begins, RWA_CCW, split->ccw, split->cut, &rec);
	compose_gather(&rec, ends, out);
	optree_sym_place(out, p);
	rc = optree_sym_light(out, compose_max_chunks(p), err);
	vec_fini(&rec);
	if (rc) {
		optree_sym_fini(out);
	}
	return rc;
}

struct tries {
	const struct optree_params *p;
	int reach;
	struct piece_split split;
	int64_t work, best_ns;
	struct compose_shape now;
	struct compose_shape *shape;
	struct optree_sym *out;
};

/* About so many hops has the shape at hand. */
static int64_t hops_of(const struct tries *t)
{
	int64_t sum = 0;

	for (int j = 0; j < t->now.levels; j++) {
		const struct compose_level *l = &t->now.level[j];

		sum += l->gap / l->stride / l->jump / 2 + 1;
	}
	return sum * (t->split.cw + t->split.ccw + 1);
}

static int try_now(struct tries *t, struct err *err)
{
	struct optree_sym s;
	int64_t ns, hops = hops_of(t);
	int rc;

	if (t->best_ns >= 0 && (hops > WORK_EACH || t->work + hops > WORK)) {
		return 0;
	}
	t->work += hops;
	rc = build(t->p, &t->now, &t->split, &s, err);
	if (rc) {
		return rc == WEFT_ELIMIT ? 0 : rc;
	}
	ns = compose_times(t->p, &s);
	if (ns < 0 || !compose_may_light(t->p, &s) || (t->best_ns >= 0 && ns >= t->best_ns)) {
		optree_sym_fini(&s);
		return 0;
	}
	if (t->best_ns >= 0) {
		optree_sym_fini(t->out);
	}
	t->best_ns = ns;
	*t->shape = t->now;
	*t->out = s;
	return 0;
}

/* All jumps of levels j.. of the strides chosen. */
static int try_jumps(struct tries *t, int j, struct err *err)
{
	struct compose_level *l = &t->now.level[j];
	int max, rc = 0;

	if (j == t->now.levels) {
		return try_now(t, err);
	}
	max = l->gap / l->stride;
	max = max * l->stride > t->reach ? t->reach / l->stride : max;
	for (int jump = max; jump >= 1 && !rc; jump /= 2) {
		l->jump = jump;
		rc = try_jumps(t, j + 1, err);
	}
	return rc;
}

/* Chains of strides below `gap` (links that a path may still have). */
static int try_strides(struct tries *t, int j, int levels, int gap, struct err *err)
{
	int rc = 0, before = gap + 1;

	if (j == levels - 1) {
		t->now.levels = levels;
		t->now.level[j] = (struct compose_level){
			.gap = gap, .stride = 1, .jump = 1 };
		return try_jumps(t, 0, err);
	}
	for (int m = 2; m <= gap && !rc; m += 1 + m / 4) {
		int stride = (t->p->n + m - 1) / m;

		if (stride > 1 && stride < before && stride <= gap && stride <= t->reach) {
			t->now.level[j] = (struct compose_level){
				.gap = gap, .stride = stride, .jump = 1 };
			rc = try_strides(t, j + 1, levels, stride - 1, err);
			before = stride;
		}
	}
	return rc;
}

static int best_exchange(const struct optree_params *p, int reach, struct compose_shape *shape,
			 struct optree_sym *out, struct err *err)
{
	struct tries t = { .p = p, .reach = reach, .split = divide(p), .best_ns = -1,
			   .shape = shape, .out = out };
	int longest = t.split.cw > t.split.ccw ? t.split.cw : t.split.ccw, rc = 0;

	for (int levels = 1; levels <= 3 && !rc; levels++) {
		rc = try_strides(&t, 0, levels, longest + t.split.cut, err);
	}
	if (!rc && t.best_ns < 0) {
		rc = err_set(err, WEFT_ELIMIT, "no all-to-all found that "
			     "lasts less than 292 years or %d steps",
			     COLL_MAX_STEPS);
	} else if (rc && t.best_ns >= 0) {
		optree_sym_fini(out);
	}
	return rc;
}

int compose_exchange(const struct optree_params *p, int reach, struct compose_shape *shape,
		     struct optree_sym *out, struct err *err)
{
	return compose_overlapped(p, reach, best_exchange, shape, out, err);
}
