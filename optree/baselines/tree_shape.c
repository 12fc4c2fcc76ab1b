/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many children at which level.
 *
 * A level of r children costs n/r * floor(r^2/4) wavelength-slots on lines
 * and half of it on the ring, so three children are cheapest for each bit on
 * a line and four or five on the ring: a tree with mixed radices beats the
 * closed form, which has the same real number n^(1/k) at every level.
 */
#include <string.h>

#include "optree/baselines/baselines.h"

int tree_max_depth(int n)
{
	int k = 1;

	while ((1 << k) < n) {
		k++;
	}
	return k;
}

static int quarter(int r)
{
	return r * r / 4;
}

/*
 * Twice the slots that no colouring of level j goes below: a full set on the
 * ring loads every link with floor(r^2/4)/2; on a line the link in the middle
 * carries at least n/r floor(r^2/4), however the items are spread. `above`:
 * product of the radices before j.
 */
static int64_t level_slots2(const struct tree_shape *s, int n, int j, int64_t above)
{
	int64_t size = (n + above - 1) / above;
	int r = s->radix[j];

	if (j == 0 && !s->line) {
		return (int64_t)(n / r) * quarter(r);
	}
	r = size < r ? (int)size : r;
	return 2 * (((int64_t)n * quarter(r) + r - 1) / r);
}

static void count(struct tree_shape *s, int n, int64_t width)
{
	int64_t above = 1, sum = 0;

	s->rounded_steps = 0;
	for (int j = 0; j < s->levels; j++) {
		int64_t slots2 = level_slots2(s, n, j, above);

		sum += slots2;
		s->rounded_steps += (slots2 + 2 * width - 1) / (2 * width);
		above *= s->radix[j];
	}
	s->slots2 = sum;
	s->min_steps = (sum + 2 * width - 1) / (2 * width);
}

/* Links of the longest lightpath of level one: of r sets that share the ring,
 * or between the outer children of a line. */
static int first_hops(const struct tree_request *w, int r)
{
	return (w->line ? r - 1 : r / 2) * ((w->n + r - 1) / r);
}

/* Shapes by two measures: with light loads each level's steps are rounded up
 * for themselves, with heavy ones the levels share steps. */
enum { BY_SLOTS, BY_STEPS, MEASURES };

struct shape_search {
	struct tree_request request;
	struct tree_shape now;
	struct tree_shape best[MEASURES][TREE_SHAPES];
	int n_best[MEASURES];
};

static int better(int measure, const struct tree_shape *a, const struct tree_shape *b)
{
	if (measure == BY_STEPS && a->rounded_steps != b->rounded_steps) {
		return a->rounded_steps < b->rounded_steps;
	}
	return a->slots2 < b->slots2;
}

static void keep(struct shape_search *this, int measure)
{
	struct tree_shape *list = this->best[measure];
	int *n = &this->n_best[measure], k = *n;

	if (k == TREE_SHAPES) {
		if (!better(measure, &this->now, &list[k - 1])) {
			return;
		}
		k--;
	} else {
		(*n)++;
	}
	for (; k > 0 && better(measure, &this->now, &list[k - 1]); k--) {
		list[k] = list[k - 1];
	}
	list[k] = this->now;
}

/* Level 0 has the children that the others leave to it, or one more, which
 * makes an even number odd and the longest path shorter. */
static void close_shape(struct shape_search *this, int64_t product)
{
	int min = (int)((this->request.n + product - 1) / product);

	for (int r = min; r <= min + 1 && r <= this->request.n; r++) {
		this->now.radix[0] = r;
		if (first_hops(&this->request, r) <= this->request.reach) {
			count(&this->now, this->request.n, this->request.width);
			keep(this, BY_SLOTS);
			keep(this, BY_STEPS);
		}
	}
}

/* Fills levels j.. with radices up to `most`, then level 0. */
static void fill(struct shape_search *this, int j, int max, int64_t product)
{
	if (j == this->now.levels) {
		close_shape(this, product);
		return;
	}
	for (int r = 2; r <= max && product * r < this->request.n; r++) {
		this->now.radix[j] = r;
		fill(this, j + 1, r, product * r);
	}
}

/* m with m^levels = n, or 0. */
static int exact_root(int n, int levels)
{
	for (int m = 2; m <= n; m++) {
		int64_t power = 1;

		for (int j = 0; j < levels && power <= n; j++) {
			power *= m;
		}
		if (power >= n) {
			return power == n ? m : 0;
		}
	}
	return 0;
}

/* The paper's tree, when there is one and its light reaches. */
static int uniform(struct shape_search *this, struct tree_shape *out)
{
	int m = exact_root(this->request.n, this->now.levels);

	if (!m || first_hops(&this->request, m) > this->request.reach) {
		return 0;
	}
	*out = this->now;
	for (int j = 0; j < out->levels; j++) {
		out->radix[j] = m;
	}
	count(out, this->request.n, this->request.width);
	return 1;
}

int tree_shapes(const struct tree_request *request, int depth, struct tree_shape *out)
{
	int n = request->n, levels = depth < tree_max_depth(n) ? depth : tree_max_depth(n);
	struct shape_search search = { .request = *request };
	int found;

	search.now.levels = levels;
	search.now.depth = depth;
	search.now.line = request->line;
	found = uniform(&search, out);
	if (found && !request->mixed) {
		return found;
	}
	fill(&search, 1, n, 1);
	if (!found && !search.n_best[BY_SLOTS]) {
		/* Nothing is near enough: the caller's check says so. */
		search.request.reach = n;
		fill(&search, 1, n, 1);
	}
	for (int measure = 0; measure < MEASURES; measure++) {
		for (int k = 0; k < search.n_best[measure]; k++) {
			out[found++] = search.best[measure][k];
		}
	}
	return found;
}
