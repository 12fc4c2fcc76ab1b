/*
 * What no all-gather on the ring can beat.
 *
 * Every node receives n-1 items over 2w wavelengths after one retuning. With
 * R rounds more can be said: in each round an item reaches new nodes, each
 * from the nearest node that held it before, over as many links as lie
 * between. The nodes that hold it cut the ring into gaps; the least number of
 * links times items to fill a gap of g nodes in r rounds,
 *
 *   G_r(g) = min over the nodes reached in the first of them of
 *            (sum of their distances to the nearer end) +
 *            (sum of G_(r-1) of the gaps between),
 *
 * gives R alpha + G_R(n-1) / (2w) d/B for R rounds, as the n items load
 * 2n links on average.
 *
 * With overlap of retuning a round costs its conversion only, and there is
 * one retuning before the first. Directions of unequal width count by their
 * sum: items that go one way more than the other are allowed. On a line each
 * end has one neighbour, and receives n-1 items over the channels from there.
 */
#include <stdlib.h>

#include "optree/tree.h"

#define WORK ((int64_t)64 << 20)	/* operations; more rounds go unsplit */
#define MANY ((int64_t)1 << 40)

struct gaps {
	int n;
	int64_t *before;	/* G_(r-1)(0..n-1) */
	int64_t *now;		/* G_r */
	int64_t *side;		/* cost up to a last node reached from one end */
	int64_t *both;		/* from both ends, by nodes up to the last ones */
};

/* One more round for all gaps. O(n^2). */
static void next_round(struct gaps *g)
{
	int n = g->n;

	g->side[0] = 0;
	for (int p = 1; p < n; p++) {
		g->side[p] = MANY;
		for (int q = 0; q < p; q++) {
			int64_t c = g->side[q] + p + g->before[p - q - 1];

			g->side[p] = c < g->side[p] ? c : g->side[p];
		}
	}
	for (int s = 0; s < n; s++) {
		g->both[s] = MANY;
		for (int p = 0; 2 * p <= s; p++) {
			int64_t c = g->side[p] + g->side[s - p];

			g->both[s] = c < g->both[s] ? c : g->both[s];
		}
	}
	for (int gap = 0; gap < n; gap++) {
		g->now[gap] = MANY;
		for (int s = 0; s <= gap; s++) {
			int64_t c = g->both[s] + g->before[gap - s];

			g->now[gap] = c < g->now[gap] ? c : g->now[gap];
		}
	}
}

/* Time of `rounds` rounds with `links` links times items for each item. */
static int64_t time_of(const struct optree_params *p, int64_t rounds,
		       int64_t links)
{
	__int128 bits = (__int128)p->shard_bytes * 8 * 1000000000;
	int64_t cw = tree_width(p, 0), ccw = tree_width(p, 1);
	int64_t w = p->line ? (cw < ccw ? cw : ccw) : cw + ccw;
	__int128 rate = (__int128)w * p->channel_bps;
	int64_t retune = p->alpha_ns - p->convert_ns;
	__int128 t = (links * bits + rate - 1) / rate +
		     (p->overlap ? retune + (__int128)rounds * p->convert_ns
				 : (__int128)rounds * p->alpha_ns);

	return t > INT64_MAX ? INT64_MAX : (int64_t)t;
}

static int64_t least_time(const struct optree_params *p, struct gaps *g)
{
	int n = p->n;
	int64_t best = INT64_MAX;
	int64_t rounds_max = 1 + WORK / ((int64_t)2 * n * n);

	g->n = n;
	for (int k = 1; k < n; k++) {
		g->before[k] = MANY;
	}
	g->before[0] = 0;
	for (int64_t r = 1; r <= rounds_max; r++) {
		int64_t *t = g->before, more;

		next_round(g);
		more = time_of(p, r, g->now[n - 1]);
		best = more < best ? more : best;
		if (time_of(p, r + 1, n - 1) >= best) {
			return best;
		}
		g->before = g->now;
		g->now = t;
	}
	/* All that is known of more rounds: each node receives each item. */
	return time_of(p, rounds_max + 1, n - 1);
}

int tree_bound_ns(const struct optree_params *p, int64_t *bound_ns,
		  struct err *err)
{
	size_t bytes = (size_t)(p->line ? 1 : p->n) * sizeof(int64_t);
	struct gaps g = { .before = malloc(bytes), .now = malloc(bytes),
			  .side = malloc(bytes), .both = malloc(bytes) };
	int rc = 0;

	if (!g.before || !g.now || !g.side || !g.both) {
		rc = err_nomem(err);
	} else if (p->line) {
		/* The last node of a line has one neighbour. */
		*bound_ns = time_of(p, 1, p->n - 1);
	} else {
		*bound_ns = least_time(p, &g);
	}
	free(g.before);
	free(g.now);
	free(g.side);
	free(g.both);
	return rc;
}
