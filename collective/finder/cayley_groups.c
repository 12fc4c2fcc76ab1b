/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Groups of a given order that Cayley graphs are searched on: Z_m : Z_k with and without a
 * carry, Z_m : (Z_k x Z_l), and Z_p^j : Z_k by random matrices, for p a prime power. Of the
 * abelian ones, whose graphs grow slowly, only the cyclic one: for numbers that have no other.
 */
#include <stdlib.h>
#include <string.h>

#include "collective/finder/private.h"
#include "lib/base/alloc.h"
#include "lib/base/number/rat.h"

#define MAX_OF_ORDERS 12	/* groups of one form with the same n, k, l */
#define MAX_GROUPS 400
#define MAX_ORDER 1024		/* of matrices, as far as it has the primes of k */
#define MATRICES 24		/* random ones for an n^j and k */

static void add(struct finder_groups *out, const struct topo_cayley_group *g)
{
	if (out->n >= MAX_GROUPS || topo_cayley_fault(g)) {
		return;
	}
	vec_push(out, (struct finder_group){ .g = *g });
}

static int64_t power(int64_t r, int64_t times, int64_t m)
{
	int64_t p = 1 % m;

	for (; times > 0; times /= 2, r = r * r % m) {
		p = times % 2 ? p * r % m : p;
	}
	return p;
}

/* The least number of which r is a power by something prime to k: one for each subgroup. */
static bool is_canonical(int64_t r, int64_t k, int64_t m)
{
	for (int64_t j = 2, p = r * r % m; j < k; j++, p = p * r % m) {
		if (p < r && rat_gcd(j, k) == 1) {
			return false;
		}
	}
	return true;
}

/* Z_m : Z_k by every r, split and not. */
static void add_metacyclic(int64_t m, int64_t k, struct finder_groups *out)
{
	struct topo_cayley_group g = { .n = m, .k = k, .l = 1, .vectors = m, .j = 1, .q = { 1 } };
	int found = 0;

	for (int64_t r = 2; r < m && found < MAX_OF_ORDERS; r++) {
		if (power(r, k, m) != 1 || !is_canonical(r, k, m)) {
			continue;
		}
		found++;
		g.a[0] = r;
		g.w[0] = 0;
		add(out, &g);
		g.w[0] = m / rat_gcd(m, r - 1);
		if (g.w[0] < m) {
			add(out, &g);
		}
	}
}

/* Z_m : (Z_k x Z_l) by two numbers that both move. */
static void add_two(int64_t m, int64_t k, int64_t l, struct finder_groups *out)
{
	struct topo_cayley_group g = { .n = m, .k = k, .l = l, .vectors = m, .j = 1 };
	int found = 0;

	for (int64_t r = 1; r < m; r++) {
		if (power(r, k, m) != 1 || !is_canonical(r, k, m)) {
			continue;
		}
		for (int64_t q = 2; q < m && found < MAX_OF_ORDERS; q++) {
			if (power(q, l, m) == 1 && is_canonical(q, l, m)) {
				found++;
				g.a[0] = r;
				g.q[0] = q;
				add(out, &g);
			}
		}
	}
}

static int64_t first_prime(int64_t n)
{
	int64_t p = 2;

	while (n % p && p * p <= n) {
		p++;
	}
	return n % p ? n : p;
}

/* A random matrix, or one with ones on the diagonal and nothing below: then its order is a
 * power of the prime of n. */
static void random_matrix(struct topo_cayley_group *g, bool upper, struct rng *rng)
{
	for (int x = 0; x < g->j; x++) {
		for (int y = 0; y < g->j; y++) {
			int64_t value = (int64_t)rng_below(rng, (uint64_t)g->n);

			g->a[x * g->j + y] = !upper || y > x ? value : x == y;
		}
	}
}

/* Whether its determinant modulo the prime p is not 0: by elimination. */
static bool is_regular(const struct topo_cayley_group *g, int64_t p)
{
	int64_t m[TOPO_CAYLEY_MAX_J * TOPO_CAYLEY_MAX_J];
	int j = g->j;

	for (int i = 0; i < j * j; i++) {
		m[i] = g->a[i] % p;
	}
	for (int c = 0; c < j; c++) {
		int r = c;

		while (r < j && m[r * j + c] == 0) {
			r++;
		}
		if (r == j) {
			return false;
		}
		for (int x = 0; x < j; x++) {
			int64_t swapped = m[r * j + x];

			m[r * j + x] = m[c * j + x];
			m[c * j + x] = swapped;
		}
		for (r = c + 1; r < j; r++) {
			int64_t by = m[r * j + c] * power(m[c * j + c], p - 2, p) % p;

			for (int x = c; x < j; x++) {
				m[r * j + x] = (m[r * j + x] + (p - by) * m[c * j + x]) % p;
			}
		}
	}
	return true;
}

/* What is left of x without the primes of k. */
static int64_t prime_to(int64_t x, int64_t k)
{
	for (int64_t both = rat_gcd(x, k); both > 1; both = rat_gcd(x, k)) {
		x /= both;
	}
	return x;
}

/* Matrix A becomes a power of it that has an order of the primes of k: orders divide
 * a power of p, n being one of p, times the p^i - 1, i from 1 to j. */
static void keep_primes(struct topo_cayley_group *g, int64_t p)
{
	int64_t m[TOPO_CAYLEY_MAX_J * TOPO_CAYLEY_MAX_J], times = 1;

	for (int64_t most = g->n * g->j; times < most && g->k % p; times *= p) {
	}
	for (int64_t i = 0, q = 1; i <= g->j; i++, q *= p) {
		memcpy(m, g->a, sizeof(m));
		topo_cayley_power(g, m, i == 0 ? times : prime_to(q - 1, g->k), g->a);
	}
}

/* Whether a matrix of j rows has ones on its diagonal and zeros elsewhere. */
static bool is_identity(const int64_t *m, int j)
{
	for (int i = 0; i < j * j; i++) {
		if (m[i] != (i % (j + 1) == 0)) {
			return false;
		}
	}
	return true;
}

/* Makes a matrix one whose k-th power is 1, if it can: its power by its order less
 * what the order shares with k. */
static bool tame(struct topo_cayley_group *g)
{
	int64_t m[TOPO_CAYLEY_MAX_J * TOPO_CAYLEY_MAX_J], order = 1, p = first_prime(g->n);

	if (!is_regular(g, p)) {
		return false;
	}
	keep_primes(g, p);
	memcpy(m, g->a, sizeof(m));
	for (; order < MAX_ORDER && !is_identity(m, g->j); order++) {
		topo_cayley_multiply(g, g->a, m);
	}
	if (order == MAX_ORDER || rat_gcd(order, g->k) == 1) {
		return false;
	}
	memcpy(m, g->a, sizeof(m));
	topo_cayley_power(g, m, order / rat_gcd(order, g->k), g->a);
	return true;
}

/* A vector that A leaves where it is: the sum of a random one's images. */
static void carry(struct topo_cayley_group *g, struct rng *rng)
{
	struct topo_cayley_element e = { .b = 0 };

	for (int i = 0; i < g->j; i++) {
		e.v[i] = (int64_t)rng_below(rng, (uint64_t)g->n);
	}
	/* With b = 1 in front, a product moves v by A. */
	for (int64_t b = 0; b < g->k; b++) {
		struct topo_cayley_element moved;

		for (int i = 0; i < g->j; i++) {
			g->w[i] = (g->w[i] + e.v[i]) % g->n;
		}
		moved = topo_cayley_element(g, topo_cayley_product(g, g->vectors,
							topo_cayley_number(g, &e)));
		memcpy(e.v, moved.v, sizeof(e.v));
	}
}

static void add_matrices(int64_t n, int j, int64_t vectors, int64_t k, struct rng *rng,
			 struct finder_groups *out)
{
	for (int i = 0; i < MATRICES; i++) {
		struct topo_cayley_group g = { .n = n, .k = k, .l = 1, .vectors = vectors, .j = j };

		for (int x = 0; x < j; x++) {
			g.q[x * j + x] = 1;
		}
		random_matrix(&g, i % 2, rng);
		if (!tame(&g)) {
			continue;
		}
		if (i % 3 == 0) {
			struct topo_cayley_group with = g;

			carry(&with, rng);
			g = with;
		}
		add(out, &g);
	}
}

/* Every group of n elements is cyclic when n and phi(n) have nothing in common; every one is
 * abelian when n has no cube, and no prime of it divides p - 1, or p^2 - 1 where p^2 divides n. */
enum coll_groups finder_groups_of(int n)
{
	int64_t units = 1, images = 1;	/* phi(n); the product of all those p^i - 1 */
	bool cube = false;
	int64_t left = n;

	while (left > 1) {
		int64_t p = first_prime(left), power = 1;

		for (; left % p == 0; left /= p) {
			cube = cube || power == p * p;
			units = units * (power > 1 ? p : p - 1) % n;
			power *= p;
			images = images * (power - 1) % n;
		}
	}
	if (rat_gcd(units, n) == 1) {
		return COLL_GROUPS_CYCLIC;
	}
	return cube || rat_gcd(images, n) > 1 ? COLL_GROUPS_ALL : COLL_GROUPS_ABELIAN;
}

static bool is_prime_power(int64_t n)
{
	int64_t p = first_prime(n);

	while (n % p == 0) {
		n /= p;
	}
	return n == 1;
}

void finder_list_groups(int n, struct rng *rng, struct finder_groups *out)
{
	struct topo_cayley_group cyclic = { .n = n, .k = 1, .l = 1, .vectors = n, .j = 1,
					    .a = { 1 }, .q = { 1 } };

	add(out, &cyclic);
	for (int64_t base = 2; base * base * 2 <= n; base++) {
		int64_t vectors = base * base;

		for (int j = 2; vectors * 2 <= n && j <= TOPO_CAYLEY_MAX_J &&
		     is_prime_power(base); j++, vectors *= base) {
			if (n % vectors == 0) {
				add_matrices(base, j, vectors, n / vectors, rng, out);
			}
		}
	}
	for (int64_t m = n / 2; m >= 3; m--) {
		if (n % m == 0) {
			add_metacyclic(m, n / m, out);
		}
		for (int64_t k = 2; n % m == 0 && k * k <= n / m; k++) {
			if (n / m % k == 0) {
				add_two(m, k, n / m / k, out);
			}
		}
	}
	finder_add_permutations(n, rng, out);
	out->order = x_alloc(out->n, sizeof(*out->order));
	for (size_t i = 0; i < out->n; i++) {
		out->order[i] = (int32_t)i;
	}
}

void finder_groups_fini(struct finder_groups *groups)
{
	free(groups->order);
	vec_fini(groups);
}
