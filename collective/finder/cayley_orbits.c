/*
 * Sets of generators that an automorphism of the group maps onto themselves.
 *
 * A digraph of such a set has the automorphism too, fixing the identity: a node is reached within
 * some steps just when all of its orbit are, and arcs of one orbit are loaded alike. So with an
 * automorphism of order k a random set must reach only a k-th as many things, which makes
 * small diameters far more likely, and the balance of levels as well. Conjugations serve
 * for every group; they and what a form of groups has besides are combined at random.
 */
#include <string.h>

#include "collective/finder/private.h"
#include "lib/base/rat.h"

#define MOST_TIMES 64		/* an automorphism is raised to */
#define UNKNOWN 0xff		/* size of an orbit that is yet to be listed */

int finder_orbits_room(struct finder_orbits *o, int n, struct arrays *arrays)
{
	o->n = n;
	arrays_add(arrays, o->image, n);
	arrays_add(arrays, o->other, n);
	arrays_add(arrays, o->size, n);
	arrays_add(arrays, o->sorted, n);
	arrays_add(arrays, o->seen, n);
	return arrays->failed ? WEFT_ENOMEM : 0;
}

/* The least common multiple of the cycles' lengths. */
static int64_t order_of(struct finder_orbits *o)
{
	int64_t order = 1;

	memset(o->seen, 0, (size_t)o->n);
	for (int x = 0; x < o->n; x++) {
		int64_t length = 0;

		for (int y = x; !o->seen[y]; y = o->image[y]) {
			o->seen[y] = 1;
			length++;
		}
		if (length > 1 && order % length) {
			order *= length / rat_gcd(order, length);
		}
	}
	return order;
}

/* The automorphism becomes its own power. */
static void raise(struct finder_orbits *o, int64_t times)
{
	for (int x = 0; x < o->n; x++) {
		o->other[x] = (uint16_t)x;
	}
	for (int64_t left = times; left > 0; left--) {
		for (int x = 0; x < o->n; x++) {
			o->other[x] = o->image[o->other[x]];
		}
	}
	memcpy(o->image, o->other, (size_t)o->n * sizeof(*o->image));
}

void finder_orbits_identity(struct finder_orbits *o)
{
	for (int x = 0; x < o->n; x++) {
		o->image[x] = (uint16_t)x;
	}
}

void finder_orbits_conjugate(struct finder_orbits *o, const uint16_t *times_inverse,
			     const uint16_t *inverse)
{
	for (int x = 0; x < o->n; x++) {
		int y = o->image[x];

		o->image[x] = inverse[times_inverse[inverse[times_inverse[y]]]];
	}
}

bool finder_orbits_reduce(struct finder_orbits *o, int most, struct rng *rng)
{
	int64_t order = order_of(o);
	int orders = 0, chosen = 1;

	for (int k = 2; k <= most; k++) {
		if (order % k == 0 && rng_below(rng, (uint64_t)++orders) == 0) {
			chosen = k;
		}
	}
	if (chosen == 1 || order / chosen > MOST_TIMES) {
		return false;
	}
	raise(o, order / chosen);
	return true;
}

int finder_orbits_list(const struct finder_orbits *o, int x, const uint16_t *inverse, bool both,
		       int most, int64_t *letters)
{
	int n = 0, y = x;

	do {
		if (n == most) {
			return 0;
		}
		letters[n++] = y;
		y = o->image[y];
	} while (y != x);
	for (int i = 0; both && i < n; i++) {
		if (letters[i] == inverse[x]) {
			return n;
		}
	}
	for (int i = 0, k = n; both && i < k; i++) {
		if (n == most) {
			return 0;
		}
		letters[n++] = inverse[letters[i]];
	}
	return n;
}

void finder_orbits_sort(struct finder_orbits *o, const uint16_t *inverse, bool both, int most)
{
	int64_t letters[FINDER_CAYLEY_MAX_PORTS];
	int start[FINDER_CAYLEY_MAX_PORTS + 2] = { 0 };

	memset(o->size, UNKNOWN, (size_t)o->n);
	o->size[0] = 0;
	for (int x = 1; x < o->n; x++) {
		int k;

		if (o->size[x] != UNKNOWN) {
			continue;
		}
		k = finder_orbits_list(o, x, inverse, both, most, letters);
		o->size[x] = (uint8_t)k;
		for (int i = 0; i < k; i++) {
			o->size[letters[i]] = (uint8_t)k;
		}
	}
	memset(o->start, 0, sizeof(o->start));
	for (int x = 0; x < o->n; x++) {
		o->start[o->size[x] + 1]++;
	}
	for (int k = 1; k <= FINDER_CAYLEY_MAX_PORTS + 1; k++) {
		o->start[k] += o->start[k - 1];
	}
	memcpy(start, o->start, sizeof(start));
	for (int x = 0; x < o->n; x++) {
		o->sorted[start[o->size[x]]++] = (uint16_t)x;
	}
}

/* A random matrix that commutes with A: of the sums of its powers. */
static void commuting(const struct topo_cayley_group *g, struct rng *rng, int64_t *c)
{
	int cells = g->j * g->j;
	int64_t power[TOPO_CAYLEY_MAX_J * TOPO_CAYLEY_MAX_J] = { 0 };

	memset(c, 0, (size_t)cells * sizeof(*c));
	for (int i = 0; i < cells; i += g->j + 1) {
		power[i] = 1;
	}
	for (int k = 0; k < g->j; k++) {
		int64_t times = (int64_t)rng_below(rng, (uint64_t)g->n);

		for (int i = 0; i < cells; i++) {
			c[i] = (c[i] + times * power[i]) % g->n;
		}
		topo_cayley_multiply(g, g->a, power);
	}
}

bool finder_orbits_scale(struct finder_orbits *o, const struct topo_cayley_group *g,
			 struct rng *rng)
{
	int64_t c[TOPO_CAYLEY_MAX_J * TOPO_CAYLEY_MAX_J];
	int reached = 0;

	if (g->chain.points > 0) {
		return false;
	}
	commuting(g, rng, c);
	memset(o->seen, 0, (size_t)o->n);
	for (int x = 0; x < g->vectors; x++) {
		struct topo_cayley_element e = topo_cayley_element(g, x), m = { .b = 0 };

		for (int i = 0; i < g->j; i++) {
			for (int k = 0; k < g->j; k++) {
				m.v[i] += c[i * g->j + k] * e.v[k];
			}
			m.v[i] %= g->n;
		}
		o->other[x] = (uint16_t)topo_cayley_number(g, &m);
		reached += !o->seen[o->other[x]];
		o->seen[o->other[x]] = 1;
		if (memcmp(e.v, g->w, (size_t)g->j * sizeof(*e.v)) == 0 && o->other[x] != x) {
			return false;
		}
	}
	if (reached < g->vectors) {
		return false;
	}
	for (int x = 0; x < o->n; x++) {
		int y = o->image[x];

		o->image[x] = (uint16_t)(y / g->vectors * g->vectors + o->other[y % g->vectors]);
	}
	return true;
}
