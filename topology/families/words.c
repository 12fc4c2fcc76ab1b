/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs of words, whose next symbol is chosen and whose first one goes: Kautz, de Bruijn and their
 * relatives, of few steps for their ports, and cycle prefixes, where no symbol stands twice; see
 * topology.h. */
#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "topology/private.h"

static void check_degree(struct topo_make *mk, int64_t min)
{
	topo_check_number(mk, 0, "degree", min, TOPO_MAX_NODES - 1);
}

/* Definition 16 in appendix E.2 of the direct-connect topologies paper. */
static void measure_general(struct topo_make *mk)
{
	int64_t d = topo_number(mk, 0), n = topo_number(mk, 1);

	check_degree(mk, 1);
	mk->size = (struct topo_size){ n, n * d, d, false,
				       !mk->rc && n % (d + 1) == 0 };
	topo_check_nodes(mk, 1, d + 1);
}

/* The arcs u -> -d u - a, a = 1..d, modulo the number of nodes. */
static void build_general(struct topo_make *mk)
{
	int64_t d = topo_number(mk, 0), n = mk->size.n;

	for (int64_t u = 0; u < n; u++) {
		for (int64_t a = 1; a <= d; a++) {
			topo_link(mk, u, (n - (d * u + a) % n) % n);
		}
	}
}

/* L^n(K(d+1)) has d^n (d+1) nodes and is the generalized Kautz graph of that
 * size. */
static void measure_kautz(struct topo_make *mk)
{
	int64_t d = topo_number(mk, 0), n;

	check_degree(mk, 1);
	topo_check_number(mk, 1, "exponent", 0, 16);
	n = topo_power(d, topo_number(mk, 1), TOPO_MAX_NODES) * (d + 1);
	mk->size = (struct topo_size){ n, n * d, d, false, true };
}

static void measure_words(struct topo_make *mk)
{
	int64_t d = topo_number(mk, 0), n;

	check_degree(mk, 1);
	topo_check_number(mk, 1, "length of words", 1, 16);
	n = topo_power(d, topo_number(mk, 1), TOPO_MAX_NODES);
	mk->size = (struct topo_size){ n, n * d, d, false, false };
}

static void build_de_bruijn(struct topo_make *mk)
{
	int64_t d = topo_number(mk, 0), n = mk->size.n;

	for (int64_t u = 0; u < n; u++) {
		for (int64_t a = 0; a < d; a++) {
			topo_link(mk, u, (d * u + a) % n);
		}
	}
}

static void measure_modified(struct topo_make *mk)
{
	measure_words(mk);

	check_degree(mk, 2);
	topo_check_number(mk, 1, "length of words", 2, 16);
	mk->size.loopless = true;
}

/* In which order the cycle visits the words of period 1 and 2: those that a
 * search found best by diameter, then T_B; the others in numeric order. */
static const struct {
	int64_t d, n;
	int16_t order[16];
} cycles[] = {
	{ 2, 3, { 0, 2, 5, 7 } },
	{ 2, 4, { 0, 10, 5, 15 } },
	{ 3, 2, { 0, 3, 6, 4, 7, 1, 8, 2, 5 } },
	{ 4, 2, { 0, 7, 3, 2, 15, 9, 1, 10, 5, 13, 12, 6, 4, 11, 8, 14 } },
};

/* Is u a word of period 1 or 2? There are d^2 of them. */
static bool is_on_cycle(int64_t u, int64_t d, int64_t n)
{
	int64_t word = 0, pair = u % (d * d);

	for (int64_t size = 1; size < n; size *= d) {
		pair = pair % d * d + pair / d;
		word += pair / d * size;
	}
	return word == u;
}

/* next[u] = where the single cycle goes from u, or -1. */
static void make_cycle(int64_t d, int64_t length, int64_t n, int64_t *next)
{
	int64_t first = -1, last = -1;
	int k = 0;

	for (; k < 4 && (cycles[k].d != d || cycles[k].n != length); k++) {
		continue;
	}
	for (int64_t u = 0; u < n; u++) {
		next[u] = -1;
	}
	if (k < 4) {
		for (int64_t i = 0; i < d * d; i++) {
			next[cycles[k].order[i]] = cycles[k].order[(i + 1) % (d * d)];
		}
		return;
	}
	for (int64_t u = 0; u < n; u++) {
		if (!is_on_cycle(u, d, n)) {
			continue;
		}
		first = first < 0 ? u : first;
		if (last >= 0) {
			next[last] = u;
		}
		last = u;
	}
	next[last] = first;
}

/* Words of period 1 and 2 lose one arc and get one: the degree stays. */
static void build_modified(struct topo_make *mk)
{
	int64_t d = topo_number(mk, 0), n = mk->size.n;
	int64_t *next = x_alloc((size_t)n, sizeof(*next));

	make_cycle(d, topo_number(mk, 1), n, next);
	for (int64_t u = 0; u < n; u++) {
		for (int64_t a = 0; a < d; a++) {
			int64_t v = (d * u + a) % n;

			/* No loop, and no arc from v back to u. */
			if (u != v && (d * v + u % d) % n != u) {
				topo_link(mk, u, v);
			}
		}
		if (next[u] >= 0) {
			topo_link(mk, u, next[u]);
		}
	}
	free(next);
}

/* Eight nodes in the place of the paper's Diamond, whose arcs are a figure:
 * u -> u + 1 and u + 3 modulo 8. Degree 2, diameter 3, bandwidth-optimal
 * (2, 4 and 1 nodes at distances 1, 2 and 3, each step balanced), and alike
 * to its own transpose by u -> -u. Found by search over all pairs of
 * permutations of which one is a single cycle. */
static void measure_diamond(struct topo_make *mk)
{
	mk->size = (struct topo_size){ 8, 16, 2, true, true };
}

static void build_diamond(struct topo_make *mk)
{
	for (int u = 0; u < 8; u++) {
		topo_link(mk, u, (u + 1) % 8);
		topo_link(mk, u, (u + 3) % 8);
	}
}

/* ---- cycle prefixes ---- */

#define MAX_PREFIX 9	/* 9! > TOPO_MAX_NODES */

/* Faber, Moore and Chen, Networks 23 (1993): words of k symbols out of d + 1, none twice. */
static void measure_prefixes(struct topo_make *mk)
{
	int64_t d = topo_number(mk, 0), k = topo_number(mk, 1), n = 1;

	check_degree(mk, 1);
	topo_check_number(mk, 1, "length of words", 1, d < MAX_PREFIX ? d : MAX_PREFIX);
	for (int64_t i = 0; i < k && n <= TOPO_MAX_NODES; i++) {
		n *= d + 1 - i;
	}
	mk->size = (struct topo_size){ n, n * d, d, true, true };
}

/* The digits of a word: how many symbols below each are left at its place. */
static int64_t number_of_word(const int *word, int k, int64_t d)
{
	int64_t number = 0;

	for (int i = 0; i < k; i++) {
		int digit = word[i];

		for (int j = 0; j < i; j++) {
			digit -= word[j] < word[i];
		}
		number = number * (d + 1 - i) + digit;
	}
	return number;
}

static void word_of_number(int64_t number, int k, int64_t d, int *word)
{
	for (int i = k - 1; i >= 0; i--) {
		word[i] = (int)(number % (d + 1 - i));
		number /= d + 1 - i;
	}
	/* From the back, a symbol left at its place becomes one left before those earlier. */
	for (int i = k - 1; i > 0; i--) {
		for (int j = i; j < k; j++) {
			word[j] += word[j] >= word[i - 1];
		}
	}
}

/* The word without symbol i, and `last` at its end. */
static void link_prefix(struct topo_make *mk, int64_t u, const int *word, int i, int last)
{
	int k = (int)topo_number(mk, 1), next[MAX_PREFIX];

	for (int j = 0; j < k; j++) {
		next[j] = j + 1 == k ? last : word[j + (j >= i)];
	}
	topo_link(mk, u, number_of_word(next, k, topo_number(mk, 0)));
}

/* A new symbol follows and the first goes, or one of the others but the last goes to the end. */
static void build_prefixes(struct topo_make *mk)
{
	int64_t d = topo_number(mk, 0);
	int k = (int)topo_number(mk, 1), word[MAX_PREFIX];

	for (int64_t u = 0; u < mk->size.n; u++) {
		word_of_number(u, k, d, word);
		for (int symbol = 0; symbol <= d; symbol++) {
			bool there = false;

			for (int i = 0; i < k; i++) {
				there = there || word[i] == symbol;
			}
			if (!there) {
				link_prefix(mk, u, word, 0, symbol);
			}
		}
		for (int i = 0; i + 1 < k; i++) {
			link_prefix(mk, u, word, i, word[i]);
		}
	}
}

const struct topo_family topo_words[] = {
	{ "GenKautz", "nn", "GenKautz(d,n)", "generalized Kautz, least "
	  "diameter, d ports", measure_general, build_general },
	{ "Kautz", "nn", "Kautz(d,n)", "L^n of K(d+1): d^n (d+1) nodes, d "
	  "ports", measure_kautz, build_general },
	{ "DeBruijn", "nn", "DeBruijn(d,n)", "d^n nodes, d ports, d of them "
	  "in self-loops", measure_words, build_de_bruijn },
	{ "DBJMod", "nn", "DBJMod(d,n)", "de Bruijn, its loops and 2-cycles "
	  "rewired into one cycle", measure_modified, build_modified },
	{ "CyclePrefix", "nn", "CyclePrefix(d,k)", "words of k of d+1 symbols: (d+1)!/(d+1-k)! "
	  "nodes, d ports, diameter k", measure_prefixes, build_prefixes },
	{ "Diamond", "", "Diamond", "8 nodes, 2 ports, diameter 3, "
	  "bandwidth-optimal", measure_diamond, build_diamond },
	{ NULL, NULL, NULL, NULL, NULL, NULL },
};
