/*
 * The times and steps that the paper states, exactly rounded, and what no
 * all-gather on the ring can beat.
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
#include <gmp.h>
#include <math.h>
#include <stdlib.h>

#include "optree/private.h"

/* ---- the paper's formulas, Theorems 1 to 3 ---- */

/* (8 w s)^k >= (2k-1)^k n^(k+1), that is s >= (2k-1) n^(1+1/k) / (8w). */
static int enough(int64_t s, int n, int w, int k)
{
	mpz_t left, right, t;
	int result;

	mpz_inits(left, right, t, NULL);
	mpz_set_si(left, s);
	mpz_mul_si(left, left, 8);
	mpz_mul_si(left, left, w);
	mpz_pow_ui(left, left, (unsigned long)k);
	mpz_ui_pow_ui(right, (unsigned long)(2 * k - 1), (unsigned long)k);
	mpz_ui_pow_ui(t, (unsigned long)n, (unsigned long)k + 1);
	mpz_mul(right, right, t);
	result = mpz_cmp(left, right) >= 0;
	mpz_clears(left, right, t, NULL);
	return result;
}

int64_t optree_closed_form(int n, int w, int k)
{
	double x = (2 * k - 1) * pow(n, 1 + 1.0 / k) / (8.0 * w);
	int64_t s = (int64_t)x;

	/* The estimate is good to a few units in the last place; the integers
	 * decide. */
	while (s > 0 && enough(s - 1, n, w, k)) {
		s--;
	}
	while (!enough(s, n, w, k)) {
		s++;
	}
	return s;
}

int64_t optree_baseline_steps(enum optree_baseline what, int n, int w)
{
	switch (what) {
	case OPTREE_RING:
		return n - 1;
	case OPTREE_NE:
		return (n + 1) / 2;
	case OPTREE_WRHT:
		return 4 * (int64_t)w + 3;
	case OPTREE_ONE_STAGE:
		break;
	}
	return optree_closed_form(n, w, 1);
}

int optree_best_depth(int n)
{
	double l = log(n);
	double root = l * l - 2 * l;
	double k = (l + sqrt(root > 0 ? root : 0)) / 2;

	return k < 1 ? 1 : (int)lround(k);
}

int64_t tree_ceil_muldiv(int64_t a, int64_t b, int64_t c)
{
	unsigned __int128 q = (unsigned __int128)a * (unsigned __int128)b;

	q = (q + (unsigned __int128)c - 1) / (unsigned __int128)c;
	return q > INT64_MAX ? -1 : (int64_t)q;
}

int64_t tree_published_ns(const struct optree_params *p)
{
	int w = p->channels * p->fibres, depth = optree_best_depth(p->n);
	int64_t steps = optree_closed_form(p->n, w, depth), sending;

	steps = steps < depth ? depth : steps;
	sending = tree_ceil_muldiv(p->shard_bytes, steps * 8000000000, p->channel_bps);
	if (sending < 0 || p->alpha_ns > (INT64_MAX - sending) / steps) {
		return INT64_MAX;
	}
	return sending + steps * p->alpha_ns;
}

/* ---- the bound ---- */

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
static int64_t time_of(const struct optree_params *p, int64_t rounds, int64_t links)
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

static int64_t min_time(const struct optree_params *p, struct gaps *g)
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

int tree_bound_ns(const struct optree_params *p, int64_t *bound_ns, struct err *err)
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
		*bound_ns = min_time(p, &g);
	}
	free(g.before);
	free(g.now);
	free(g.side);
	free(g.both);
	return rc;
}
