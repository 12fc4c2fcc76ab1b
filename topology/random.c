/* Seeded random graphs, bidirectional: Xpander and Jellyfish; topology.h. */
#include <stdlib.h>
#include <string.h>

#include "lib/base/rng.h"
#include "topology/private.h"

/* How often a graph that came out in parts is drawn again. */
#define MAX_DRAWS 64

static int check_seed(const struct topo_arg *seed, struct err *err)
{
	return topo_check_arg(seed, "seed", 0, 1000000000, err);
}

/* ---- Xpander: a random lift of the complete graph ---- */

static int measure_xpander(const struct topo_call *c, struct topo_size *s,
			   struct err *err)
{
	int64_t d = c->number[0].value, k = c->number[1].value;
	int rc = topo_check_arg(&c->number[0], "degree", 2,
				TOPO_MAX_NODES - 1, err);

	rc = rc ? rc : topo_check_nodes(&c->number[1], 1, err);
	rc = rc ? rc : check_seed(&c->number[2], err);
	*s = (struct topo_size){ (d + 1) * k, (d + 1) * k * d, d, false,
				 true };
	return rc;
}

/* Each pair of the d + 1 groups of k nodes is joined by a random matching. */
static int build_xpander(const struct topo_call *c,
			 const struct topo *const *parts, struct topo *t,
			 struct err *err)
{
	int64_t d = c->number[0].value, k = c->number[1].value;
	int32_t *match = malloc((size_t)k * sizeof(*match));
	struct rng rng;
	int rc = match ? 0 : err_nomem(err);

	(void)parts;
	rng_seed(&rng, (uint64_t)c->number[2].value);
	for (int64_t pair = 0; pair < (d + 1) * (d + 1) && rc == 0; pair++) {
		int64_t a = pair / (d + 1), b = pair % (d + 1);

		for (int64_t i = 0; i < k && a < b; i++) {
			int64_t j = (int64_t)rng_below(&rng,
						       (uint64_t)i + 1);

			match[i] = match[j];
			match[j] = (int32_t)i;
		}
		for (int64_t i = 0; i < k && a < b && rc == 0; i++) {
			rc = topo_edge(t, a * k + i, b * k + match[i], err);
		}
	}
	free(match);
	return rc;
}

/* ---- Jellyfish: a random regular graph ---- */

struct jelly {
	int n, d;
	int32_t *at;	/* d neighbours a node */
};

static int measure_jellyfish(const struct topo_call *c, struct topo_size *s,
			     struct err *err)
{
	int64_t n = c->number[0].value, d = c->number[1].value;
	int rc = topo_check_nodes(&c->number[0], 3, err);

	rc = rc ? rc : topo_check_arg(&c->number[1], "degree", 2, n - 1, err);
	rc = rc ? rc : check_seed(&c->number[2], err);
	if (rc == 0 && n * d % 2) {
		rc = topo_err_at(err, c->number[1].col, "no graph of %lld "
				 "nodes has degree %lld: one of them must be "
				 "even", (long long)n, (long long)d);
	}
	*s = (struct topo_size){ n, n * d, d, false, true };
	return rc;
}

/* A circulant of that degree. */
static void start_jelly(struct jelly *j)
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

static int32_t *find_neighbour(struct jelly *j, int u, int v)
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
static void swap_edges(struct jelly *j, int u, int v, int x, int y)
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

static bool is_connected(const struct jelly *j, int32_t *queue, bool *seen)
{
	int tail = 1;

	memset(seen, 0, (size_t)j->n);
	queue[0] = 0;
	seen[0] = true;
	for (int head = 0; head < tail; head++) {
		const int32_t *to = j->at + (size_t)queue[head] * j->d;

		for (int i = 0; i < j->d; i++) {
			if (!seen[to[i]]) {
				seen[to[i]] = true;
				queue[tail++] = to[i];
			}
		}
	}
	return tail == j->n;
}

/* Ten times as many swaps as edges, until the graph is in one piece. */
static int shuffle(struct jelly *j, uint64_t seed, struct err *err)
{
	uint64_t ends = (uint64_t)j->n * (uint64_t)j->d;
	int32_t *queue = malloc((size_t)j->n * sizeof(*queue));
	bool *seen = malloc((size_t)j->n), whole = false;
	struct rng rng;
	int rc = queue && seen ? 0 : err_nomem(err);

	rng_seed(&rng, seed);
	for (int k = 0; k < MAX_DRAWS && rc == 0 && !whole; k++) {
		for (uint64_t i = 0; i < 5 * ends; i++) {
			uint64_t a = rng_below(&rng, ends);
			uint64_t b = rng_below(&rng, ends);

			swap_edges(j, (int)(a / (uint64_t)j->d), j->at[a],
				   (int)(b / (uint64_t)j->d), j->at[b]);
		}
		whole = is_connected(j, queue, seen);
	}
	if (rc == 0 && !whole) {
		rc = err_set(err, WEFT_EINFEASIBLE, "no connected Jellyfish "
			     "in %d draws", MAX_DRAWS);
	}
	free(queue);
	free(seen);
	return rc;
}

static int build_jellyfish(const struct topo_call *c,
			   const struct topo *const *parts, struct topo *t,
			   struct err *err)
{
	struct jelly j = { (int)c->number[0].value, (int)c->number[1].value,
			   NULL };
	int rc;

	(void)parts;
	j.at = malloc((size_t)j.n * (size_t)j.d * sizeof(*j.at));
	if (!j.at) {
		return err_nomem(err);
	}
	start_jelly(&j);
	rc = shuffle(&j, (uint64_t)c->number[2].value, err);
	for (int u = 0; u < j.n && rc == 0; u++) {
		for (int i = 0; i < j.d && rc == 0; i++) {
			rc = topo_link(t, u, j.at[(size_t)u * j.d + i], err);
		}
	}
	free(j.at);
	return rc;
}

const struct topo_family topo_random[] = {
	{ "Xpander", "nnn", "Xpander(d,k,seed)", "random lift of K(d+1): "
	  "(d+1) k nodes, d ports", measure_xpander, build_xpander },
	{ "Jellyfish", "nnn", "Jellyfish(n,d,seed)", "random graph of n "
	  "nodes, d ports", measure_jellyfish, build_jellyfish },
	{ NULL, NULL, NULL, NULL, NULL, NULL },
};
