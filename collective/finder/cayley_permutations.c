/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Groups of permutations that Cayley graphs are searched on: those that no product of cyclic groups
 * has, PSL(2,p), PGL(2,p), A_m and S_m, also times a cyclic group; and of the many groups
 * whose order has small primes only, random subgroups of wreath products S_a wr S_b wr ..: of what
 * moves the leaves of a tree and keeps the tree. All 2-groups, for one, are among those.
 */
#include <string.h>

#include "collective/finder/private.h"
#include "lib/base/number/rat.h"

#define MAX_POINTS TOPO_CAYLEY_MAX_POINTS
#define SUBGROUPS 40		/* random ones of an order, at most */
#define ATTEMPTS 200		/* at them, each with another tree */
#define ELEMENTS 12		/* that an attempt adds, or tries to */
#define MAX_LEAVES 32
#define MAX_BRANCHES 7

/* A tree: so many branches at each node of a level, the leaves' first. */
struct finder_tree {
	int levels, leaves;
	int branches[8];
};

static struct topo_permutation identity(void)
{
	struct topo_permutation p;

	for (int i = 0; i < MAX_POINTS; i++) {
		p.image[i] = (uint8_t)i;
	}
	return p;
}

/* The points from `first`, so many, each to the next one. */
static struct topo_permutation cycle(int first, int length)
{
	struct topo_permutation p = identity();

	for (int i = 0; i < length; i++) {
		p.image[first + i] = (uint8_t)(first + (i + 1) % length);
	}
	return p;
}

/* Adds what n permutations generate, if it has `order` elements. There is room for one more:
 * a cycle on further points, for a product of `times` as many. */
static void add_product(int order, int points, struct topo_permutation *p, int n, int times,
			struct finder_groups *out)
{
	struct finder_group g = { .score = 0 };
	int rc;

	if (points + times > MAX_POINTS) {
		return;
	}
	if (times > 1) {
		p[n++] = cycle(points, times);
		points += times;
	}
	rc = topo_cayley_generate(&g.g, points, p, n);
	if (rc || topo_cayley_order(&g.g) != order) {
		return;
	}
	vec_push(out, g);
}

static int64_t power(int64_t a, int64_t times, int64_t p)
{
	int64_t r = 1;

	for (; times > 0; times--) {
		r = r * a % p;
	}
	return r;
}

/* A generator of the numbers modulo p, without 0. */
static int64_t primitive_root(int64_t p)
{
	for (int64_t g = 2; g < p; g++) {
		int64_t order = 1, x = g;

		for (; x != 1; x = x * g % p) {
			order++;
		}
		if (order == p - 1) {
			return g;
		}
	}
	return 1;
}

/* x -> x + 1, x -> a x and x -> -1/x on the numbers modulo p and infinity, which is point p:
 * PGL(2,p), or where a is a square PSL(2,p). */
static void linear(int64_t p, int64_t a, struct topo_permutation *out)
{
	out[0] = cycle(0, (int)p);
	out[1] = out[2] = identity();
	for (int64_t x = 1; x < p; x++) {
		out[1].image[x] = (uint8_t)(a * x % p);
		out[2].image[x] = (uint8_t)((p - power(x, p - 2, p)) % p);
	}
	out[2].image[0] = (uint8_t)p;
	out[2].image[p] = 0;
}

static void add_linear(int n, struct finder_groups *out)
{
	static const int primes[] = { 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47 };

	for (size_t i = 0; i < 2 * sizeof(primes) / sizeof(*primes); i++) {
		int p = primes[i / 2], half = 1 + (int)(i % 2), order = p * (p * p - 1) / half;
		struct topo_permutation room[4];
		int64_t root = primitive_root(p);

		if (n % order == 0) {
			linear(p, power(root, half, p), room);
			add_product(n, p + 1, room, 3, n / order, out);
		}
	}
}

/* S_m and A_m. */
static void add_symmetric(int n, struct finder_groups *out)
{
	for (int m = 5, order = 60; m <= 8; order *= ++m) {
		struct topo_permutation room[3] = { cycle(0, 3), cycle(1 - m % 2, m - 1 + m % 2) };

		if (n % order == 0) {
			add_product(n, m, room, 2, n / order, out);
		}
		room[0] = cycle(0, 2);
		room[1] = cycle(0, m);
		if (n % (2 * order) == 0) {
			add_product(n, m, room, 2, n / order / 2, out);
		}
	}
}

/* ---- subgroups of wreath products ---- */

static void shuffle(uint8_t *v, int n, struct rng *rng)
{
	for (int i = 0; i < n; i++) {
		v[i] = (uint8_t)i;
	}
	for (int i = n - 1; i > 0; i--) {
		int k = (int)rng_below(rng, (uint64_t)i + 1);
		uint8_t x = v[i];

		v[i] = v[k];
		v[k] = x;
	}
}

/* Numbers of branches without which there is no group of n elements more: primes of n, and 4
 * for S_4. */
static int list_branches(int n, int *out)
{
	static const int all[] = { 2, 3, 4, 5, MAX_BRANCHES };
	int found = 0;

	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
		if (n % (all[i] == 4 ? 12 : all[i]) == 0) {
			out[found++] = all[i];
		}
	}
	return found;
}

static struct finder_tree random_tree(const int *choice, int n, struct rng *rng)
{
	struct finder_tree tree = { .leaves = 1 };

	for (;;) {
		int branches = choice[rng_below(rng, (uint64_t)n)];

		if (tree.leaves * branches > MAX_LEAVES ||
		    (tree.levels > 1 && rng_below(rng, 4) == 0)) {
			return tree;
		}
		tree.branches[tree.levels++] = branches;
		tree.leaves *= branches;
	}
}

/* The subtree of so many levels and leaves at leaf `from` goes to that at `to`. */
static void move_subtree(const struct finder_tree *tree, int levels, int leaves, int from, int to,
			 struct rng *rng, struct topo_permutation *p)
{
	uint8_t branch[MAX_BRANCHES];
	int n;

	if (levels == 0) {
		p->image[from] = (uint8_t)to;
		return;
	}
	n = tree->branches[levels - 1];
	leaves /= n;
	shuffle(branch, n, rng);
	for (int i = 0; i < n; i++) {
		move_subtree(tree, levels - 1, leaves, from + i * leaves,
			     to + branch[i] * leaves, rng, p);
	}
}

static int order_of(const struct topo_permutation *p, int points)
{
	int64_t order = 1;

	for (int from = 0; from < points; from++) {
		int length = 1;

		for (int at = p->image[from]; at != from; at = p->image[at]) {
			length++;
		}
		order = order / rat_gcd(order, length) * length;
	}
	return (int)order;
}

/* Its least power whose order divides n. */
static struct topo_permutation tamed(const struct topo_permutation *p, int points, int n)
{
	struct topo_permutation power = *p;
	int order = order_of(p, points);

	for (int i = order / (int)rat_gcd(order, n); i > 1; i--) {
		for (int k = 0; k < points; k++) {
			power.image[k] = p->image[power.image[k]];
		}
	}
	return power;
}

/* Element after element, of those by which the group's order still divides n. */
static void attempt(int n, const struct finder_tree *tree, struct rng *rng,
		    struct finder_groups *out)
{
	struct topo_permutation p[ELEMENTS];
	struct finder_group g = { .score = 0 };
	int kept = 0;

	for (int i = 0; i < ELEMENTS; i++) {
		struct topo_permutation any = identity();
		int rc;

		move_subtree(tree, tree->levels, tree->leaves, 0, 0, rng, &any);
		p[kept] = tamed(&any, tree->leaves, n);
		rc = topo_cayley_generate(&g.g, tree->leaves, p, kept + 1);
		if (rc || n % topo_cayley_order(&g.g)) {
			continue;
		}
		kept++;
		if (topo_cayley_order(&g.g) == n) {
			vec_push(out, g);
			return;
		}
	}
}

/* n divides the order of the group of the tree. */
static bool is_possible(int n, const struct finder_tree *tree)
{
	int64_t rest = n;

	for (int i = tree->levels - 1, nodes = 1; i >= 0; nodes *= tree->branches[i--]) {
		for (int k = 0; k < nodes * tree->branches[i]; k++) {
			rest /= rat_gcd(rest, k % tree->branches[i] + 1);
		}
	}
	return rest == 1;
}

static void add_subgroups(int n, struct rng *rng, struct finder_groups *out)
{
	size_t most = out->n + SUBGROUPS;
	int choice[8], choices = list_branches(n, choice);

	for (int i = 0; i < ATTEMPTS && out->n < most && choices; i++) {
		struct finder_tree tree = random_tree(choice, choices, rng);

		if (is_possible(n, &tree)) {
			attempt(n, &tree, rng, out);
		}
	}
}

void finder_add_permutations(int n, struct rng *rng, struct finder_groups *out)
{
	add_linear(n, out);
	add_symmetric(n, out);
	if (!finder_add_small(n, out)) {
		add_subgroups(n, rng, out);
	}
}
