/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The least loads of the steps, and the sizes of the pieces.
 *
 * With the sizes and the largest load of each step given, every node has a program of
 * its own, a flow. Where a flow does not carry all, its minimum cut is a linear inequality in
 * loads and sizes that every schedule keeps. So the loads and sizes are the variables of a
 * linear program of a few columns, whose rows are found one after the other (Benders
 * 1962): it is solved, every node is asked, what is violated is added, until all fit.
 * Flows are in whole numbers: first in parts of 2^36 of a shard, then in chunks.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "collective/bfb/late.h"
#include "lib/base/alloc.h"
#include "lib/lp/lp.h"

#define PARTS (INT64_C(1) << 36)	/* of a shard, while solving */
#define SLACK 2e-7			/* of a load: what a solver's numbers may lack */
#define PARTS_OF_SLACK (1 << 24)	/* and of a shard */
#define ROUNDS_A_CHUNK 20
/* Of COLL_LATE_MAX_WORK a choice of slots that is asked about is 1, or a set of them. */
#define WORK_OF_ENTRY 10	/* a number in rows solved */
#define USES_OF_WORK 16		/* choices that are only looked at */
#define ARCS_OF_WORK 4		/* when a source has a piece, for as many arcs */
#define ENOUGH_ROWS 8
#define WHOLE_ROUNDS 20
#define WHOLE_ENTRIES 20000	/* of rows: more are too many for whole numbers */
#define WHOLE_ITERATIONS 5000
#define FIRST_MIX 0.5
#define LAST_MIX 0.1

static int width(const struct bfb_late *l)
{
	return l->p.steps + l->p.count;
}

void bfb_late_fini(struct bfb_late *l)
{
	for (int i = 0; l->takers && i < l->p.sources; i++) {
		bfb_taker_fini(&l->takers[i]);
	}
	free(l->takers);
	vec_fini(&l->rows);
	if (l->level) {
		bfb_level_fini(l->level);
		free(l->level);
	}
	bfb_pieces_fini(&l->p);
	arrays_fini(&l->arrays);
}

/* Of the first numbers, a step each. */
static double loads_of(const struct bfb_late *l, const double *x)
{
	double sum = 0;

	for (int t = 0; t < l->p.steps; t++) {
		sum += x[t];
	}
	return sum;
}

double bfb_late_loads(const struct bfb_late *l)
{
	return loads_of(l, l->x);
}

double bfb_late_ns(const struct bfb_late *l, double loads)
{
	return l->p.steps * l->goal.step_ns + loads * l->goal.load_ns + l->goal.also_ns;
}

double bfb_late_bound(const struct topo *t)
{
	int64_t unit = bfb_late_unit(t);
	double bound = 0;

	for (int v = 0; v < topo_n(t); v++) {
		const int32_t *arcs;
		int n = topo_in(t, v, &arcs);
		double cap = 0;

		for (int i = 0; i < n; i++) {
			const struct topo_arc *a = topo_arc(t, arcs[i]);

			cap += a->src == v ? 0 : (double)(a->cap / unit);
		}
		bound = fmax(bound, (topo_n(t) - 1) / cap);
	}
	return bound;
}

/* ---- rows ---- */

static bool has_row(const struct bfb_late *l, size_t from, const int64_t *row)
{
	size_t w = (size_t)width(l);

	for (size_t i = from; i < l->rows.n; i += w) {
		if (memcmp(l->rows.v + i, row, w * sizeof(*row)) == 0) {
			return true;
		}
	}
	return false;
}

static void add_row(struct bfb_late *l, size_t from, const int64_t *row)
{
	if (has_row(l, from, row)) {
		return;
	}
	for (int i = 0; i < width(l); i++) {
		vec_push(&l->rows, row[i]);
	}
}

/* Asks every node in turn whether load and sizes fit; *fits, or there are new rows. Those of a few
 * nodes are enough for the next point. */
static int ask_all(struct bfb_late *l, bool *fits, struct err *err)
{
	int64_t *row = x_alloc((size_t)width(l), sizeof(*row));
	int found = 0, most = l->goal.gap > 0 ? ENOUGH_ROWS : l->p.sources, rc = 0;
	size_t from = l->rows.n;

	*fits = true;
	for (int i = 0; i < l->p.sources && !rc && found < most; i++) {
		struct bfb_taker *k = &l->takers[l->asked];
		bool one;

		rc = bfb_taker_fit(k, l->p.steps, l->p.count, l->sizes, l->load,
				   k->sets ? NULL : l->share, row, &one, err);
		l->work += k->asked + (k->sets ? k->b.n_groups : k->b.n_use) / USES_OF_WORK;
		if (!rc && !one) {
			*fits = false;
			add_row(l, from, row);
			found++;
		}
		l->asked = (l->asked + 1) % l->p.sources;
	}
	free(row);
	return rc;
}

/* ---- the program of all ---- */

/* What the sizes may be. */
enum bfb_late_sizes {
	SIZES_FREE,	/* shares of one shard */
	SIZES_KEPT,	/* l->sizes, in chunks */
	SIZES_WHOLE,	/* whole chunks of pieces that x has, and so are the loads */
};

/* Column i of the rows, loads with a plus and sizes with a minus; the last row is the sum of
 * the sizes. */
static int add_column(const struct bfb_late *l, struct lp *lp, int i, enum bfb_late_sizes sizes,
		      int *rows, double *values, struct err *err)
{
	size_t w = (size_t)width(l);
	bool size = i >= l->p.steps;
	double from = 0, to = LP_INF;
	int n = 0, last = (int)(l->rows.n / w);

	for (int r = 0; r < last; r++) {
		int64_t v = l->rows.v[(size_t)r * w + (size_t)i];

		if (v != 0) {
			rows[n] = r;
			values[n++] = size ? -(double)v : (double)v;
		}
	}
	if (size) {
		rows[n] = last;
		values[n++] = 1;
	}
	if (size && sizes == SIZES_KEPT) {
		from = to = (double)l->sizes[i - l->p.steps];
	} else if (size && sizes == SIZES_WHOLE && l->x[i] < SLACK) {
		to = 0;
	}
	return lp_add_col(lp, size ? 0 : 1, from, to, sizes == SIZES_WHOLE, n, rows, values, NULL,
			  err);
}

static int build(const struct bfb_late *l, enum bfb_late_sizes sizes, int sum, struct lp *lp,
		 struct err *err)
{
	size_t n = l->rows.n / (size_t)width(l) + 1;
	int *rows = x_alloc(n, sizeof(*rows)), rc = 0;
	double *values = x_alloc(n, sizeof(*values));

	for (size_t r = 0; r < n && !rc; r++) {
		rc = lp_add_row(lp, r + 1 < n ? LP_GE : LP_EQ, r + 1 < n ? 0 : sum, NULL, err);
	}
	for (int i = 0; i < width(l) && !rc; i++) {
		rc = add_column(l, lp, i, sizes, rows, values, err);
	}
	free(rows);
	free(values);
	return rc;
}

/* The vertex by the rows so far, of sizes that add up to `sum`. *found is false when none was
 * in time, as only whole ones may not be. */
static int solve_rows(struct bfb_late *l, enum bfb_late_sizes sizes, int sum, bool *found,
		      struct err *err)
{
	const struct lp_options opt = { .max_iterations = WHOLE_ITERATIONS };
	struct lp_result res;
	struct lp *lp = lp_new();
	int rc;

	l->work += WORK_OF_ENTRY * (int64_t)l->rows.n;
	if ((rc = build(l, sizes, sum, lp, err)) ||
	    (rc = lp_run(lp, sizes == SIZES_WHOLE ? &opt : NULL, &res, err))) {
		lp_free(lp);
		return rc;
	}
	*found = res.outcome == LP_OPTIMAL || res.outcome == LP_FEASIBLE;
	if (!*found && sizes != SIZES_WHOLE) {
		rc = err_set(err, WEFT_EINTERNAL, "no least loads were found");
	}
	for (int i = 0; i < width(l) && *found; i++) {
		l->vertex[i] = fmax(0, lp_value(lp, i));
	}
	lp_free(lp);
	return rc;
}

/* ---- from numbers to parts ---- */

/* The sizes of x in so many parts, which they add up to: rounded down, and what is left goes
 * where most was lost. */
static void cut_sizes(struct bfb_late *l, int64_t parts)
{
	const double *f = l->x + l->p.steps;
	int64_t left = parts;

	for (int k = 0; k < l->p.count; k++) {
		int64_t most = (int64_t)floor(f[k] * (double)parts + 1e-6);

		l->sizes[k] = most < left ? most : left;
		left -= l->sizes[k];
	}
	for (; left > 0; left--) {
		int best = 0;

		for (int k = 1; k < l->p.count; k++) {
			if (f[k] * (double)parts - (double)l->sizes[k] >
			    f[best] * (double)parts - (double)l->sizes[best]) {
				best = k;
			}
		}
		l->sizes[best]++;
	}
}

static int init(struct bfb_late *l, const struct topo_group *g, struct err *err)
{
	int most = 0, rc = 0;

	l->takers = x_new((size_t)l->p.sources, sizeof(*l->takers));
	l->level = x_new(1, sizeof(*l->level));
	for (int i = 0; i < l->p.sources && !rc; i++) {
		rc = bfb_taker_init(&l->takers[i], l->t, g, &l->p, i, l->level, err);
		most = l->takers[i].b.n_use > most ? l->takers[i].b.n_use : most;
	}
	arrays_add(&l->arrays, l->x, width(l));
	arrays_add(&l->arrays, l->vertex, width(l));
	arrays_add(&l->arrays, l->inside, width(l));
	arrays_add(&l->arrays, l->load, l->p.steps);
	arrays_add(&l->arrays, l->sizes, l->p.count);
	arrays_add(&l->arrays, l->share, most);
	return rc;
}

/* Loads of x in parts, rounded up, and a little added, so that rows that a solver's numbers
 * keep only nearly do not come back. */
static void cut_loads(struct bfb_late *l)
{
	for (int t = 0; t < l->p.steps; t++) {
		l->load[t] = (int64_t)ceil(l->x[t] * (double)PARTS * (1 + SLACK)) +
			     PARTS / PARTS_OF_SLACK;
	}
}

/* The point asked about: so far from the vertex of the rows towards what is known to fit. */
static void mix(struct bfb_late *l, double towards)
{
	for (int i = 0; i < width(l); i++) {
		l->x[i] = l->vertex[i] + towards * (l->inside[i] - l->vertex[i]);
	}
}

/* Asks between the vertex and what is known to fit, nearer and nearer to the vertex until there
 * is a new row; *fits when the vertex itself does. */
static int ask_towards(struct bfb_late *l, bool *fits, struct err *err)
{
	int rc = 0;

	*fits = true;
	for (double by = FIRST_MIX; *fits && !rc; by = by > LAST_MIX ? by / 2 : 0) {
		mix(l, by);
		cut_sizes(l, PARTS);
		cut_loads(l);
		rc = ask_all(l, fits, err);
		if (!rc && *fits) {
			memcpy(l->inside, l->x, (size_t)width(l) * sizeof(*l->x));
		}
		if (by == 0) {
			break;
		}
	}
	return rc;
}

/* The piece that all nodes have when they have piece k of `other`; p.count: there is none. */
static int find_piece(const struct bfb_late *l, const struct bfb_late *other, int k)
{
	size_t due = (size_t)l->p.sources * (size_t)l->p.n;
	int same = 0;

	while (same < l->p.count && memcmp(l->p.due + due * (size_t)same,
					   other->p.due + due * (size_t)k, due) != 0) {
		same++;
	}
	return same;
}

/* A point that fits: all of the first piece, with loads that any node has room for; or that of
 * the level before, if all its pieces are there. */
static void begin_inside(struct bfb_late *l, const struct bfb_late *before)
{
	l->is_warm = before && l->goal.gap > 0;
	for (int k = 0; l->is_warm && k < before->p.count; k++) {
		double size = before->x[before->p.steps + k];
		int same = size > 0 ? find_piece(l, before, k) : 0;

		l->is_warm = same < l->p.count;
		if (l->is_warm && size > 0) {
			l->inside[l->p.steps + same] += size;
		}
	}
	for (int i = 0; i < width(l) && (!l->is_warm || i < l->p.steps); i++) {
		l->inside[i] = l->is_warm ? before->x[i]
					  : i < l->p.steps ? l->p.n : i == l->p.steps;
	}
}

/* What is known to fit is near enough to the optimum, or that is of no use. */
static bool is_settled(const struct bfb_late *l)
{
	double fits = loads_of(l, l->inside), least = fmax(loads_of(l, l->vertex), l->bound);

	return fits <= least * (1 + l->goal.gap) || bfb_late_ns(l, least) >= l->goal.below_ns ||
	       l->work > l->goal.work;
}

static int is_too_large(const struct bfb_late *l, struct err *err)
{
	return err_set(err, WEFT_ELIMIT, "late pieces: the linear program of %d nodes, %d steps "
		       "and %d pieces is too large", l->p.n, l->p.steps, l->p.count);
}

/* Rows and their vertex in turn, until it fits. Vertices alone would wander about a face of
 * optima for hundreds of rounds, so that it is asked on the way from a point that fits (in-out
 * separation, Ben-Ameur and Neto 2007). */
static int settle(struct bfb_late *l, struct err *err)
{
	bool fits = false, found;
	int rc = 0;

	while (!rc && !fits) {
		if (l->work > l->goal.work && !l->is_warm) {
			return is_too_large(l, err);
		}
		rc = solve_rows(l, SIZES_FREE, 1, &found, err);
		if (!rc && l->goal.gap > 0 && is_settled(l)) {
			memcpy(l->x, l->inside, (size_t)width(l) * sizeof(*l->x));
			break;
		}
		if (!rc) {
			rc = ask_towards(l, &fits, err);
		}
	}
	return rc;
}

/* Pieces of one level, after those of another. */
static int solve_level(struct bfb_late *l, const struct topo_group *g, int sources, int extra,
		       int level, const struct bfb_late *before, struct err *err)
{
	int rc = bfb_pieces_init(&l->p, l->t, sources, extra, level, err);

	if (rc) {
		return rc;
	}
	l->is_hopeless = bfb_late_ns(l, l->bound) >= l->goal.below_ns;
	l->work += l->goal.gap > 0
			   ? (int64_t)l->p.count * sources * topo_m(l->t) / ARCS_OF_WORK : 0;
	if (l->is_hopeless) {
		return 0;
	}
	if (l->work > l->goal.work) {
		return is_too_large(l, err);
	}
	if ((rc = init(l, g, err))) {
		return rc;
	}
	begin_inside(l, before);
	return settle(l, err);
}

/* The loads are as small as the links into some node allow; or no work is left, or hope. */
static bool is_done(const struct bfb_late *l, int64_t work)
{
	return l->is_hopeless || work > l->goal.work ||
	       bfb_late_loads(l) <= l->bound * (1 + fmax(SLACK, l->goal.gap));
}

int bfb_late_solve(struct bfb_late *l, const struct topo *t, const struct topo_group *g,
		   int sources, int extra, const struct bfb_late_goal *goal, struct err *err)
{
	static const struct bfb_late_goal exact = {
		.below_ns = HUGE_VAL, .work = COLL_LATE_MAX_WORK,
	};
	int levels = bfb_pieces_levels(extra), rc;
	int64_t work;

	*l = (struct bfb_late){ .t = t, .bound = bfb_late_bound(t), .goal = goal ? *goal : exact };
	rc = solve_level(l, g, sources, extra, 0, NULL, err);
	work = l->work;
	for (int level = 1; level < levels && !rc && !is_done(l, work); level++) {
		struct bfb_late next = { .t = t, .bound = l->bound, .goal = l->goal, .work = work };
		struct bfb_late worse;
		struct err why = { 0 };

		rc = solve_level(&next, g, sources, extra, level, l, &why);
		work = next.work;
		if (rc && rc != WEFT_ELIMIT && err) {
			*err = why;
		}
		worse = next;
		if (!rc && bfb_late_loads(&next) < bfb_late_loads(l) * (1 - SLACK)) {
			worse = *l;
			*l = next;
		}
		bfb_late_fini(&worse);
		if (rc == WEFT_ELIMIT) {
			return 0;
		}
	}
	return rc;
}

/* ---- whole chunks ---- */

int bfb_late_round(struct bfb_late *l, int chunks, bool *fits, struct err *err)
{
	cut_sizes(l, chunks);
	for (int t = 0; t < l->p.steps; t++) {
		l->load[t] = llround(l->x[t] * chunks);
	}
	return ask_all(l, fits, err);
}

int bfb_late_whole(struct bfb_late *l, int chunks, bool *fits, struct err *err)
{
	double most = bfb_late_loads(l) * chunks + 1e-3;
	int rc = 0;

	*fits = false;
	if (l->rows.n > WHOLE_ENTRIES) {
		return 0;
	}
	for (int round = 0; round < WHOLE_ROUNDS && !*fits && !rc; round++) {
		double sum = 0;
		bool found = false;

		rc = solve_rows(l, SIZES_WHOLE, chunks, &found, err);
		for (int i = 0; i < width(l) && found; i++) {
			int64_t v = llround(l->vertex[i]);

			*(i < l->p.steps ? &l->load[i] : &l->sizes[i - l->p.steps]) = v;
			sum += i < l->p.steps ? (double)v : 0;
		}
		if (rc || !found || sum > most) {
			break;
		}
		rc = ask_all(l, fits, err);
	}
	return rc;
}

int bfb_late_round_up(struct bfb_late *l, int chunks, struct err *err)
{
	bool fits = false, found;
	int rc = 0;

	cut_sizes(l, chunks);
	for (int round = 0; !rc && !fits; round++) {
		rc = solve_rows(l, SIZES_KEPT, chunks, &found, err);
		/* Rounding may miss a row for ever: then loads rise. */
		for (int t = 0; t < l->p.steps; t++) {
			l->load[t] = (int64_t)ceil(l->vertex[t] - 1e-6) + round / ROUNDS_A_CHUNK;
		}
		if (!rc) {
			rc = ask_all(l, &fits, err);
		}
	}
	return rc;
}
