/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Potentials that prove how much volume few steps need, and how long they wait for it.
 *
 * F(j) is what has been charged, at least, to a pair that is j hops from where it began. A step of
 * messages of n hops that c pairs share takes it to
 *
 *	G(n) = min over c of charge(n, c) + the average of F over the c nearest nodes,
 *
 * where charge(n, c) is a pair's part of its message: n / c for volume, 2 x sqrt(n / c) - x^2 for
 * what is seen. Whoever is at j before the step is at j + n at most after it. So the next F is
 *
 *	F'(r) = min(F(r) + wait, min over n of max(G(n), F(r - n) - x^2)),
 *
 * and F' where c pairs go, less F where they come from, adds up to at most c charge(n, c). The
 * steps after the one in the middle are the same backwards in time. In that one a message of n hops
 * goes from j hops after the beginning to l hops before the end of its pairs, j + l >= D - n, and
 * c S - sum of F(j) + F(l) must be at most c charge(n, c): the sum is at least that over the c
 * nearest nodes for both, and c times the least for any j + l >= D - n.
 *
 * Between two balls the average over the c nearest is a - b / c, b >= 0. With that a charge is
 * concave in 1 / sqrt(c) or linear in 1 / c, and least at a ball; where the average is less than
 * what is least anyway, it is least where they meet.
 */
#include <math.h>

#include "collective/bound/bound.h"

/* Of a node, up to BOUND_FAR hops, where all that is farther counts as this far. */
struct bound_balls {
	int far;
	int longest;	/* hops of a message */
	double size[BOUND_FAR + 1];
	double over_root[BOUND_FAR + 1];	/* 1 / sqrt(size) */
	double wait;		/* what who waits is charged, where x > 0 */
};

struct bound_front {
	double f[BOUND_FAR + 1];	/* not decreasing */
};

#define FRONTS ((BOUND_STEPS + 1) / 2)

static void set_balls(struct bound_balls *b, int diameter, const int64_t *within, bool near)
{
	b->far = diameter < BOUND_FAR ? diameter : BOUND_FAR;
	b->longest = near ? 1 : b->far;
	for (int j = 0; j <= b->far; j++) {
		b->size[j] = (double)within[j < b->far ? j : diameter];
		b->over_root[j] = 1 / sqrt(b->size[j]);
	}
}

/* over_root: 1 / sqrt(c). x 0: of volume. */
static double charge(int n, double over_root, double x)
{
	return x > 0 ? 2 * x * sqrt(n) * over_root - x * x : n * over_root * over_root;
}

/* Of f + g over balls. */
static void average(const struct bound_balls *b, const struct bound_front *f,
		    const struct bound_front *g, double *mean)
{
	double sum = f->f[0] + g->f[0];

	mean[0] = sum;
	for (int j = 1; j <= b->far; j++) {
		if (b->size[j] > b->size[j - 1]) {
			sum += (b->size[j] - b->size[j - 1]) * (f->f[j] + g->f[j]);
		}
		mean[j] = sum / b->size[j];
	}
}

/* 1 / sqrt(c) where the average over the c nearest is so much, between ball j - 1 and ball j. */
static double root_at(const struct bound_balls *b, const double *mean, int j, double wanted)
{
	double more = (b->size[j] * mean[j] - b->size[j - 1] * mean[j - 1]) /
		      (b->size[j] - b->size[j - 1]);

	return sqrt((more - wanted) / (b->size[j - 1] * (more - mean[j - 1])));
}

/* The least over c of a charge and the average of the c nearest, or `least` where that is more:
 * of balls, and where the two are the same. */
static double min_charge(const struct bound_balls *b, const double *mean, double least, int n,
			   double x)
{
	double top = INFINITY;

	for (int j = 0; j <= b->far; j++) {
		if (j > 0 && mean[j - 1] < least && mean[j] > least && !isinf(mean[j])) {
			top = fmin(top, charge(n, root_at(b, mean, j, least), x) + least);
		}
		top = fmin(top, charge(n, b->over_root[j], x) + fmax(mean[j], least));
	}
	return top;
}

static void make_monotone(const struct bound_balls *b, double *f)
{
	for (int j = b->far - 1; j >= 0; j--) {
		f[j] = fmin(f[j], f[j + 1]);
	}
}

static void next_front(const struct bound_balls *b, double x, const struct bound_front *from,
		       struct bound_front *to)
{
	static const struct bound_front none;
	double mean[BOUND_FAR + 1], after[BOUND_FAR + 1];

	average(b, from, &none, mean);
	for (int n = 1; n <= b->longest; n++) {
		after[n] = min_charge(b, mean, -INFINITY, n, x);
	}
	for (int r = 0; r <= b->far; r++) {
		to->f[r] = from->f[r] + (x > 0 ? b->wait : 0);
		for (int n = 1; n <= r && n <= b->longest; n++) {
			to->f[r] = fmin(to->f[r], fmax(after[n], from->f[r - n] - x * x));
		}
	}
	make_monotone(b, to->f);
}

/* S of the steps before and after, and one of charge x between. */
static double join(const struct bound_balls *b, double x, const struct bound_front *f,
		   const struct bound_front *g)
{
	double mean[BOUND_FAR + 1], apart[BOUND_FAR + 1] = { 0 }, top;

	average(b, f, g, mean);
	for (int d = 0; d <= b->far; d++) {
		apart[d] = INFINITY;
		for (int j = 0; j <= d; j++) {
			apart[d] = fmin(apart[d], f->f[j] + g->f[d - j]);
		}
	}
	make_monotone(b, apart);
	top = apart[b->far] + (x > 0 ? b->wait : 0);
	for (int n = 1; n <= b->longest; n++) {
		top = fmin(top, min_charge(b, mean, apart[b->far - n], n, x));
	}
	return top;
}

/* No charge yet where pairs begin, and no pair anywhere else. */
static struct bound_front start_of(const struct bound_balls *b)
{
	struct bound_front f = { { 0 } };

	for (int j = 1; j <= b->far; j++) {
		f.f[j] = INFINITY;
	}
	return f;
}

/* Any charges prove something; these were found by search on tori, and their neighbours are tried
 * too. */
static const double outer[FRONTS] = { 1.1, 0.7, 0.5, 0.36, 0.26 };
static const double middle[BOUND_STEPS + 1] = { 0, 0, 0, 1.1, 0.45, 0.45, 0.3, 0.3, 0.2, 0.2 };

static void try_charges(const struct bound_balls *b, double by, double by_middle,
			struct bound_shares *out)
{
	struct bound_front f[FRONTS];
	double x = 0.6 * sqrt(b->far) * by;

	f[0] = start_of(b);
	next_front(b, x, &f[0], &f[1]);
	out->seen[2] = fmax(out->seen[2], join(b, x * by_middle, &f[1], &f[0]));
	for (int i = 1; i < FRONTS; i++) {
		next_front(b, outer[i - 1] * by, &f[i - 1], &f[i]);
	}
	for (int k = 3; k <= BOUND_STEPS; k++) {
		double s = join(b, middle[k] * by_middle, &f[k / 2], &f[(k - 1) / 2]);

		out->seen[k] = fmax(out->seen[k], s);
	}
}

void bound_find_shares(int diameter, const int64_t *within, bool near, double wait,
		       struct bound_shares *out)
{
	static const double by[] = { 0.8, 1, 1.25 };
	struct bound_front f[FRONTS];
	struct bound_balls b;

	*out = (struct bound_shares){ 0 };
	set_balls(&b, diameter, within, near);
	b.wait = wait;
	f[0] = start_of(&b);
	for (int i = 1; i < FRONTS; i++) {
		next_front(&b, 0, &f[i - 1], &f[i]);
	}
	for (int k = 2; k <= BOUND_STEPS; k++) {
		out->volume[k] = join(&b, 0, &f[k / 2], &f[(k - 1) / 2]);
	}
	for (int i = 0; i < 9; i++) {
		try_charges(&b, by[i / 3], by[i % 3] * by[i % 3], out);
	}
}
