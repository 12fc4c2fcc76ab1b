/*
 * How many children at which level.
 *
 * A level of r children costs n/r * floor(r^2/4) wavelength-slots on lines
 * and half of it on the ring, so three children are cheapest for each bit on
 * a line and four or five on the ring: a tree with mixed radices beats the
 * closed form, which has the same real number n^(1/k) at every level.
 */
#include <string.h>

#include "optree/tree.h"

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

/* Cost to choose by: slots per node of the ring, all levels alike. */
static double cost_of(const struct tree_shape *s)
{
	double cost = quarter(s->radix[0]) / 2.0 / s->radix[0];

	for (int j = 1; j < s->levels; j++) {
		cost += (double)quarter(s->radix[j]) / s->radix[j];
	}
	return cost;
}

/* Links of the longest lightpath of r sets that share the ring. */
static int ring_hops(int n, int r)
{
	return r / 2 * ((n + r - 1) / r);
}

struct search {
	int n, reach;
	struct tree_shape now, best;
	double cost;
};

/* Level 0 has the children that the others leave to it, or one more, which
 * makes an even number odd and the longest way shorter. */
static void close_shape(struct search *this, int64_t product)
{
	struct tree_shape *s = &this->now;
	int least = (int)((this->n + product - 1) / product);

	for (int r = least; r <= least + 1 && r <= this->n; r++) {
		double cost;

		s->radix[0] = r;
		cost = cost_of(s);
		if (ring_hops(this->n, r) <= this->reach && cost < this->cost) {
			this->cost = cost;
			this->best = *s;
		}
	}
}

/* Fills levels j.. with radices up to `most`, then level 0. */
static void fill(struct search *this, int j, int most, int64_t product)
{
	if (j == this->now.levels) {
		close_shape(this, product);
		return;
	}
	for (int r = 2; r <= most && product * r < this->n; r++) {
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

/* A full set on the ring loads every link with floor(r^2/4)/2; on a line the
 * link in the middle carries at least n/r floor(r^2/4), however the items are
 * spread. */
static int64_t least_slots2(int n, const struct tree_shape *s)
{
	int64_t slots2 = (int64_t)(n / s->radix[0]) * quarter(s->radix[0]);
	int64_t product = s->radix[0];

	for (int j = 1; j < s->levels; j++) {
		int64_t size = (n + product - 1) / product;
		int r = size < s->radix[j] ? (int)size : s->radix[j];

		if (r > 1) {
			slots2 += 2 * (((int64_t)n * quarter(r) + r - 1) / r);
		}
		product *= s->radix[j];
	}
	return slots2;
}

void tree_shape(int n, int depth, int reach, struct tree_shape *shape,
		int64_t *slots2)
{
	int levels = depth < tree_max_depth(n) ? depth : tree_max_depth(n);
	struct search search = { .n = n, .reach = reach, .cost = 1e300 };
	int m = exact_root(n, levels);

	search.now.levels = levels;
	if (m && ring_hops(n, m) <= reach) {
		for (int j = 0; j < levels; j++) {
			search.now.radix[j] = m;
		}
		search.best = search.now;
	} else {
		fill(&search, 1, n, 1);
	}
	if (search.best.levels == 0) {
		/* Nothing is near enough: the caller's check says so. */
		search.reach = n;
		fill(&search, 1, n, 1);
	}
	*shape = search.best;
	*slots2 = least_slots2(n, shape);
}
