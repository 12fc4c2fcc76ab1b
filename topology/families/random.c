/* SPDX-License-Identifier: Apache-2.0 */
/* Seeded random graphs, bidirectional: Xpander and Jellyfish; topology.h. */
#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/number/rng.h"
#include "topology/private.h"

/* How often a graph that came out in parts is drawn again. */
#define MAX_DRAWS 64

static void check_seed(struct topo_make *mk)
{
	topo_check_number(mk, 2, "seed", 0, 1000000000);
}

/* ---- Xpander: a random lift of the complete graph ---- */

static void measure_xpander(struct topo_make *mk)
{
	int64_t d = topo_number(mk, 0), k = topo_number(mk, 1);

	topo_check_number(mk, 0, "degree", 2, TOPO_MAX_NODES - 1);
	topo_check_nodes(mk, 1, 1);
	check_seed(mk);
	mk->size = (struct topo_size){ (d + 1) * k, (d + 1) * k * d, d, false,
				       true };
}

/* Each pair of the d + 1 groups of k nodes is joined by a random matching. */
static void build_xpander(struct topo_make *mk)
{
	int64_t d = topo_number(mk, 0), k = topo_number(mk, 1);
	int32_t *match = x_alloc((size_t)k, sizeof(*match));
	struct rng rng;

	rng_seed(&rng, (uint64_t)topo_number(mk, 2));
	for (int64_t pair = 0; pair < (d + 1) * (d + 1); pair++) {
		int64_t a = pair / (d + 1), b = pair % (d + 1);

		for (int64_t i = 0; i < k && a < b; i++) {
			int64_t j = (int64_t)rng_below(&rng, (uint64_t)i + 1);

			match[i] = match[j];
			match[j] = (int32_t)i;
		}
		for (int64_t i = 0; i < k && a < b; i++) {
			topo_edge(mk, a * k + i, b * k + match[i]);
		}
	}
	free(match);
}

/* ---- Jellyfish: a random regular graph ---- */

struct topo_jellyfish {
	int n, d;
	int32_t *at;	/* d neighbours a node */
};

static void measure_jellyfish(struct topo_make *mk)
{
	int64_t n = topo_number(mk, 0), d = topo_number(mk, 1);

	topo_check_nodes(mk, 0, 3);
	topo_check_number(mk, 1, "degree", 2, n - 1);
	check_seed(mk);
	if (!mk->rc && n * d % 2) {
		topo_refuse(mk, mk->call->number[1].col, "no graph of %lld "
			    "nodes has degree %lld: one of them must be even",
			    (long long)n, (long long)d);
	}
	mk->size = (struct topo_size){ n, n * d, d, false, true };
}

/* A circulant of that degree. */
static void start_jelly(struct topo_jellyfish *j)
{
	for (int u = 0; u < j->n; u++) {
		int32_t *to = j->at + (size_t)u * j->d;

		for (int i = 0; i < j->d; i++) {
			int s = i / 2 + 1;

			if (i == j->d - 1 && j->d % 2) {
				s = j->n / 2;
			}
			to[i] = (i % 2 ? u + j->n - s : u + s) % j->n;
		}
	}
}

static int32_t *find_neighbour(struct topo_jellyfish *j, int u, int v)
{
	int32_t *to = j->at + (size_t)u * j->d;

	for (int i = 0; i < j->d; i++) {
		if (to[i] == v) {
			return &to[i];
		}
	}
	return NULL;
}

/* Edges u-v and x-y become u-x and v-y, unless one is there already. */
static void swap_edges(struct topo_jellyfish *j, int u, int v, int x, int y)
{
	if (u == x || u == y || v == x || v == y || find_neighbour(j, u, x) ||
	    find_neighbour(j, v, y)) {
		return;
	}
	*find_neighbour(j, u, v) = x;
	*find_neighbour(j, v, u) = y;
	*find_neighbour(j, x, y) = u;
	*find_neighbour(j, y, x) = v;
}

int topo_count_reached(const int32_t *next, int n, int d, int32_t *queue, bool *seen)
{
	int tail = 1;

	memset(seen, 0, (size_t)n * sizeof(*seen));
	queue[0] = 0;
	seen[0] = true;
	for (int head = 0; head < tail; head++) {
		const int32_t *to = next + (size_t)queue[head] * d;

		for (int i = 0; i < d; i++) {
			if (!seen[to[i]]) {
				seen[to[i]] = true;
				queue[tail++] = to[i];
			}
		}
	}
	return tail;
}

/* Ten times as many swaps as edges, until the graph is in one piece. */
static int shuffle(struct topo_jellyfish *j, uint64_t seed, struct err *err)
{
	uint64_t ends = (uint64_t)j->n * (uint64_t)j->d;
	int32_t *queue = x_alloc((size_t)j->n, sizeof(*queue));
	bool *seen = x_alloc((size_t)j->n, 1), whole = false;
	struct rng rng;
	int rc = 0;

	rng_seed(&rng, seed);
	for (int k = 0; k < MAX_DRAWS && !whole; k++) {
		for (uint64_t i = 0; i < 5 * ends; i++) {
			uint64_t a = rng_below(&rng, ends);
			uint64_t b = rng_below(&rng, ends);

			swap_edges(j, (int)(a / (uint64_t)j->d), j->at[a],
				   (int)(b / (uint64_t)j->d), j->at[b]);
		}
		whole = topo_count_reached(j->at, j->n, j->d, queue, seen) == j->n;
	}
	if (!whole) {
		rc = err_set(err, WEFT_EINFEASIBLE, "no connected Jellyfish "
			     "in %d draws", MAX_DRAWS);
	}
	free(queue);
	free(seen);
	return rc;
}

static void build_jellyfish(struct topo_make *mk)
{
	struct topo_jellyfish j = { (int)topo_number(mk, 0), (int)topo_number(mk, 1),
			   NULL };

	j.at = x_alloc((size_t)j.n * (size_t)j.d, sizeof(*j.at));
	start_jelly(&j);
	mk->rc = shuffle(&j, (uint64_t)topo_number(mk, 2), mk->err);
	for (int u = 0; u < j.n; u++) {
		for (int i = 0; i < j.d; i++) {
			topo_link(mk, u, j.at[(size_t)u * j.d + i]);
		}
	}
	free(j.at);
}

const struct topo_family topo_random[] = {
	{ "Xpander", "nnn", "Xpander(d,k,seed)", "random lift of K(d+1): "
	  "(d+1) k nodes, d ports", measure_xpander, build_xpander },
	{ "Jellyfish", "nnn", "Jellyfish(n,d,seed)", "random graph of n "
	  "nodes, d ports", measure_jellyfish, build_jellyfish },
	{ NULL, NULL, NULL, NULL, NULL, NULL },
};
