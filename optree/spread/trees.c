/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All-gathers whose items spread by the trees that the bound counts: gaps of
 * unequal size, of which a lightpath skips no more than pays. On rings of a few dozen
 * nodes with channels enough for many lengths at once these load links less than
 * levels of one stride do. A tree whose directions differ may serve a half of each
 * item, and its mirror the other half. Prices on the links of the first rounds and on
 * nodes make trees with fewer and shorter far lightpaths; which of them has the
 * least time in whole channels is tried out.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "optree/spread/spread.h"

#define ROUNDS OPTREE_MAX_DEPTH
/* Entries of tables that are filled for one ring. */
#define WORK ((int64_t)1 << 20)
#define CLOSE 1.002	/* to what channels full of light take */

/* In eighths: of the first round's links, of the second's, and what a node
 * reached costs in links. */
static const int first_price[] = { 8, 12, 16, 24, 40, 64 };
static const int second_price[] = { 8, 12, 20 };
static const int node_price[] = { 0, 4, 8, 16, 32, 64 };

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

/* Of a number of rounds; tables by the rounds that are over. */
struct trees {
	const struct optree_params *p;
	int rounds;
	struct spread s;
	int64_t *memory;
	int64_t *gap[ROUNDS + 1], *side[ROUNDS];
	int32_t *before[ROUNDS];
	struct compose_records rec;
	struct compose_shape shape;
	bool halves;		/* one by the mirrored tree */
	int64_t work;
};

static void trees_init(struct trees *t, const struct optree_params *p, int reach)
{
	size_t n = (size_t)p->n;

	spread_init(&t->s, p->n, reach);
	t->p = p;
	t->memory = x_new(n * (3 * ROUNDS + 1), sizeof(*t->memory));
	for (size_t r = 0; r <= ROUNDS; r++) {
		t->gap[r] = t->memory + 3 * r * n;
		if (r < ROUNDS) {
			t->side[r] = t->gap[r] + n;
			t->before[r] = (int32_t *)(t->gap[r] + 2 * n);
		}
	}
}

static void trees_fini(struct trees *t)
{
	spread_fini(&t->s);
	vec_fini(&t->rec);
	free(t->memory);
}

/* The tables of t->rounds rounds at these prices. O(rounds n log n). */
static void set_tables(struct trees *t, int first, int second, int node)
{
	size_t n = (size_t)t->p->n;

	t->work += (int64_t)n * t->rounds;
	for (size_t g = 0; g < n; g++) {
		t->gap[t->rounds][g] = (int64_t)g * SPREAD_NEVER;
	}
	for (int r = t->rounds - 1; r >= 0; r--) {
		int eighths = r == 0 ? first : r == 1 ? second : 8;
		struct spread_left later = { .gap = t->gap[r + 1] }, out = { .gap = t->gap[r] };

		spread_round(&t->s, &later, &(struct spread_price){
			eighths * (SPREAD_LINK / 8),
			r + 1 < t->rounds ? node * (SPREAD_LINK / 8) : 0 }, &out);
		memcpy(t->side[r], t->s.side, n * sizeof(int64_t));
		memcpy(t->before[r], t->s.before, n * sizeof(int32_t));
	}
}

/* ---- from tables to transfers ---- */

static int mod(int v, int n)
{
	v %= n;
	return v < 0 ? v + n : v;
}

/* The item, or one half of it, goes `len` nodes on from the node at `at`, the other
 * half in the mirror. sign: clockwise or not. */
static void add_hop(struct trees *t, int round, int at, int sign, int len)
{
	struct compose_record r = {
		.round = round, .len = len, .dir = sign > 0 ? RWA_CW : RWA_CCW,
		.hop = { .at = mod(at, t->p->n), .dest = -1, .last = !t->halves },
	};
	struct compose_record mirror = r;

	mirror.dir = sign > 0 ? RWA_CCW : RWA_CW;
	mirror.hop.at = mod(-at, t->p->n);
	mirror.hop.first = mirror.hop.last = 1;
	vec_push(&t->rec, r);
	if (t->halves) {
		vec_push(&t->rec, mirror);
	}
}

static void fill(struct trees *t, int round, int at, int sign, int gap);

/* Reaches the nodes up to the p-th from the one at `at`, and what is between. */
static void fill_side(struct trees *t, int round, int at, int sign, int p)
{
	while (p > 0) {
		int q = t->before[round][p];

		add_hop(t, round, at, sign, p);
		fill(t, round + 1, at + sign * q, sign, p - q - 1);
		p = q;
	}
}

/* The gap after the node at `at`, from both of its ends. Levels say the largest
 * gaps. */
static void fill(struct trees *t, int round, int at, int sign, int gap)
{
	const int64_t *later, *side;
	struct compose_level *level;
	int sides = 0, rest = 0, far = at + sign * (gap + 1);

	if (gap == 0) {
		return;
	}
	later = t->gap[round + 1];
	side = t->side[round];
	level = &t->shape.level[round];
	level->gap = gap + 1 > level->gap ? gap + 1 : level->gap;
	for (int g = 0; g < gap; g++) {
		int k = sides / 2;

		if (side[k + 1] - side[k] <= later[rest + 1] - later[rest]) {
			sides++;
		} else {
			rest++;
		}
	}
	level->jump = sides > level->jump ? sides : level->jump;
	fill_side(t, round, at, sign, (sides + 1) / 2);
	fill_side(t, round, far, -sign, sides / 2);
	fill(t, round + 1, at + sign * ((sides + 1) / 2), sign, rest);
}

int spread_light(const struct optree_params *p, struct compose_records *rec, int rounds,
		 struct optree_sym *out, struct err *err)
{
	struct rwa_ring ring = { p->n, p->fibres, p->channels };
	int ends[ROUNDS + 1], rc;

	optree_sym_init(out, COLL_ALLGATHER, &ring);
	for (int r = 0; r < rounds; r++) {
		ends[r] = r + 1;
	}
	compose_gather(rec, ends, out);
	optree_sym_place(out, p);
	rc = optree_sym_light(out, compose_max_chunks(p), err);
	if (rc) {
		optree_sym_fini(out);
	}
	return rc;
}

/* The tables' tree as a plan. *out is initialised. */
static int build(struct trees *t, struct optree_sym *out, struct err *err)
{
	t->rec.n = 0;
	t->shape = (struct compose_shape){ .levels = t->rounds, .units = 2,
					       .uneven = true };
	fill(t, 0, 0, 1, t->p->n - 1);
	for (int r = 0; r < t->rounds; r++) {
		t->shape.level[r].stride = r + 1 < t->rounds ? t->shape.level[r + 1].gap : 1;
	}
	return spread_light(t->p, &t->rec, t->rounds, out, err);
}

/* ---- the search ---- */

/* ns that a plan of so many rounds takes at least, with such a tree. */
static double min_ns(const struct trees *t, int64_t links)
{
	const struct optree_params *p = t->p;
	double rate = (double)(tree_width(p, RWA_CW) + tree_width(p, RWA_CCW)) *
		      (double)p->channel_bps;

	return (double)(p->overlap ? p->convert_ns : p->alpha_ns) * t->rounds +
	       (double)links / SPREAD_LINK * (double)p->shard_bytes * 8e9 / rate;
}

static int try_tree(struct trees *t, spread_take *take, void *data, struct err *err)
{
	struct optree_sym s;
	int rc = build(t, &s, err);

	if (rc == 0) {
		return take(data, &t->shape, &s, err);
	}
	return rc == WEFT_ELIMIT ? 0 : rc;
}

/* The tables' trees at all prices. */
static int try_prices(struct trees *t, spread_take *take, void *data, struct err *err)
{
	size_t prices = COUNT(first_price) * COUNT(second_price) * COUNT(node_price);
	int rc = 0;

	for (size_t k = 0; rc == 0 && k < prices && t->work < WORK; k++) {
		size_t j = k / COUNT(first_price);

		set_tables(t, first_price[k % COUNT(first_price)],
			   second_price[j % COUNT(second_price)],
			   node_price[j / COUNT(second_price)]);
		t->halves = true;
		rc = try_tree(t, take, data, err);
		t->halves = false;
		if (rc == 0) {
			rc = try_tree(t, take, data, err);
		}
	}
	return rc;
}

int spread_trees(const struct optree_params *p, int reach, const int64_t *limit_ns,
		 const struct optree_sym *plan, spread_take *take, void *data, struct err *err)
{
	struct trees t = { 0 };
	double least = INFINITY;
	int rc = 0;

	trees_init(&t, p, reach);
	for (t.rounds = 1; rc == 0 && t.rounds <= ROUNDS; t.rounds++) {
		double ns;

		set_tables(&t, 8, 8, 0);
		ns = min_ns(&t, t.gap[0][p->n - 1]);
		least = fmin(least, ns);
		if (ns < (double)*limit_ns) {
			rc = try_prices(&t, take, data, err);
		}
	}
	trees_fini(&t);
	return rc || (double)*limit_ns < least * CLOSE ? rc
		     : spread_rounds(p, reach, plan, take, data, err);
}
