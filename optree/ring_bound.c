/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What no collective on the ring can beat, whatever its lightpaths.
 *
 * Rounds. An item that starts at one node reaches new nodes in every round,
 * each from a node that held it before, over as many links as lie between. The
 * nodes that hold it cut the ring into gaps. The least links to fill a gap of g
 * nodes from its two ends in r rounds are
 *
 *   F_r(g) = min over the nodes reached in the first of them of
 *            (sum of their distances to the end that they are reached from) +
 *            (sum of F_(r-1) of the gaps between),
 *
 * and T_r(g) is the same for g nodes beyond the only end, on a line. A round of
 * x seconds carries x B bits over each of the W channels (of both directions)
 * of each of the n links, so R rounds of an all-gather take
 * R a + F_R(n - 1) d / (W B) at least. spread/ computes F and T.
 *
 * Light of the first rounds. In its first round a node can send its own item
 * only, and what it sends to another takes a lightpath, of which the links hold
 * n W in all. A node ends at most W lightpaths, so it holds W + 1 items after
 * the first round, and each lightpath of the second carries so many: round r
 * carries items over n W (W + 1)^(r-1) links at most, however long it lasts. With a
 * price on each of the first two rounds (Lagrange), the cheapest spread at those
 * prices, less what the rounds can carry at them, is a bound. Reduce-scatter is
 * the same backwards in time. In a broadcast (W + 1)^(r-1) nodes at most send in
 * round r, each over W lightpaths, so that it lasts as long as the nodes that it
 * reaches need, or as the links do: any mean of both prices is a bound.
 *
 * Fewest rounds. A lightpath of round r of R carries items of at most
 * (W + 1)^(r-1) nodes, for (W + 1)^(R-r) nodes at most, and the pairs of nodes are
 * n floor(n^2 / 4) links apart in all: floor(n^2 / 4) <= R W (W + 1)^(R-1).
 *
 * All-reduce. A shard's sum at the first node that has it is a tree of transfers
 * into that node, of F_R(n - 1) links; every other node receives something
 * in that round or later, which is no part of this tree. Also: the contribution of
 * some node spreads to all, over F_R(n - 1) links, and what carries others to
 * that first node without it are trees into the R + 1 nodes at most on its way.
 * In one round every node hears from every other.
 *
 * Broadcast on a ring. What is relayed comes a round later, and what passes a
 * node is not received there: with R rounds its data takes longer by a factor than a
 * node needs to receive it, see broadcast/cuts.c. More rounds than nodes may be
 * best then.
 *
 * Other light. Cuts count as well: what a node receives, and what crosses the
 * middle of a line. Directions of unequal width count by their sum on a ring, by
 * the narrower one on a line. With overlap of retuning a round costs its
 * conversion only, and there is one retuning before the first. A span's delay is
 * paid once a round at least, and by the farthest node for all links of its way.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "optree/spread/spread.h"

/* The most that a link costs. */
#define WEIGHT_MAX ((int64_t)4096 * SPREAD_LINK)
#define PRICED 2		/* rounds that have a price */
#define TABLES (PRICED + 1 + 2)

/* ---- loads ---- */

struct bound_work {
	const struct optree_params *p;
	enum coll_kind kind;
	int root;
	int64_t width;		/* channels of both directions */
	int64_t links;		/* between neighbours */
	struct spread s;
	int64_t cuts;		/* of a broadcast on a ring in one round, as
				 * broadcast_cuts(); 0: others */
	int looked;		/* rounds whose links were counted, with cuts */
	int64_t *all;		/* the tables that follow */
	struct spread_left after[PRICED + 1], priced[2];
	int64_t weight[PRICED];	/* the best of the last number of rounds: what a link
				 * costs, or of a broadcast how much of SPREAD_LINK nodes cost */
};

/* What is left after r rounds, of the newest ones. */
static struct spread_left *rounds_left(struct bound_work *b, int r)
{
	return &b->after[r % (PRICED + 1)];
}

static void work_init(struct bound_work *b, int reach)
{
	size_t n = (size_t)b->p->n;

	spread_init(&b->s, b->p->n, reach);
	b->all = x_new(n * 2 * TABLES, sizeof(*b->all));
	for (size_t i = 0; i < TABLES; i++) {
		struct spread_left *l = i <= PRICED ? &b->after[i] : &b->priced[i - PRICED - 1];

		l->gap = b->all + 2 * i * n;
		l->tail = l->gap + n;
	}
}

static void work_fini(struct bound_work *b)
{
	free(b->all);
	spread_fini(&b->s);
}

/* Parts of links of an item of each node, or of all shards from one. */
static int64_t spread_load(const struct bound_work *b, const struct spread_left *l)
{
	int n = b->p->n;
	int64_t sum = 0;

	if (!b->p->line) {
		return n * l->gap[n - 1];
	}
	if (b->kind == COLL_BROADCAST) {
		return n * (l->tail[b->root] + l->tail[n - 1 - b->root]);
	}
	for (int g = 0; g < n; g++) {
		sum += 2 * l->tail[g];
	}
	return sum;
}

/* What brings the contributions of others than one to the nodes on its way. */
static int64_t beside_one(const struct bound_work *b, const struct spread_left *l, int rounds)
{
	int n = b->p->n, ways = rounds + 1;
	int lack = n - ways, each = lack / ways;

	if (b->p->line || lack <= 0) {
		return 0;
	}
	return (ways - lack % ways) * l->gap[each] + lack % ways * l->gap[each + 1];
}

static int64_t reduce_load(const struct bound_work *b, const struct spread_left *l, int rounds)
{
	int n = b->p->n;
	int64_t tree = INT64_MAX, every = 0, more = beside_one(b, l, rounds);

	for (int v = 0; v < n; v++) {
		int64_t one = b->p->line ? l->tail[v] + l->tail[n - 1 - v] : l->gap[n - 1];

		tree = one < tree ? one : tree;
		every += one;
	}
	if (rounds == 1) {
		return n * every;
	}
	more = more > (int64_t)SPREAD_LINK * (n - 1) ? more : (int64_t)SPREAD_LINK * (n - 1);
	return n * (tree + more);
}

/* Links times shards that any plan of so many rounds loads, in parts. */
static int64_t load_of(const struct bound_work *b, const struct spread_left *l, int rounds)
{
	int64_t n = b->p->n;

	switch (b->kind) {
	case COLL_ALLTOALL:
		return SPREAD_LINK * (b->p->line ? (n * n * n - n) / 3 : n * (n * n / 4));
	case COLL_ALLREDUCE:
		return reduce_load(b, l, rounds);
	default:
		return spread_load(b, l);
	}
}

/* The prices of round r (from 0) at this weight, and what it can carry for them
 * beyond what any round can. */
static struct spread_price price_of(const struct bound_work *b, int r, int64_t weight,
				    __int128 *carried)
{
	__int128 holders = 1;

	for (int i = 0; i < r; i++) {
		holders *= b->width + 1;
	}
	if (b->kind == COLL_BROADCAST) {
		return (struct spread_price){ SPREAD_LINK - weight,
					     (int64_t)(weight * b->links / holders) };
	}
	*carried += holders * b->links * b->width * (weight - SPREAD_LINK);
	return (struct spread_price){ weight, 0 };
}

/* The same where the first rounds can only carry so much, at the weights given. */
static int64_t priced_load(struct bound_work *b, int rounds, const int64_t *weight)
{
	int priced = rounds < PRICED ? rounds : PRICED;
	const struct spread_left *l = rounds_left(b, rounds - priced);
	__int128 carried = 0;

	for (int r = priced - 1; r >= 0; r--) {
		struct spread_price price = price_of(b, r, weight[r], &carried);

		spread_round(&b->s, l, &price, &b->priced[r % 2]);
		l = &b->priced[r % 2];
	}
	return carried > INT64_MAX / 2 ? 0 : load_of(b, l, rounds) - (int64_t)carried;
}

/* Weights begin where they change nothing. */
static int64_t start_weight(const struct bound_work *b)
{
	return b->kind == COLL_BROADCAST ? 0 : SPREAD_LINK;
}

/* A step up (or down) of `step` eighths. */
static int64_t next_weight(const struct bound_work *b, int64_t weight, int step, bool up)
{
	int64_t min = start_weight(b), max = b->kind == COLL_BROADCAST ? SPREAD_LINK : WEIGHT_MAX;
	int64_t more = (weight * step + 7) / 8 + (weight == 0);

	weight = up ? weight + more : weight * 8 / (8 + step);
	return weight < min ? min : weight > max ? max : weight;
}

/* The best weights are looked for by steps up and down, from those before: the
 * load is concave in them. */
static int64_t best_priced_load(struct bound_work *b, int rounds)
{
	int64_t best = priced_load(b, rounds, b->weight);

	for (int step = 8; step > 0; ) {
		bool better = false;

		for (int i = 0; i < 2 * PRICED; i++) {
			int64_t try[PRICED], load;

			memcpy(try, b->weight, sizeof(try));
			try[i / 2] = next_weight(b, try[i / 2], step, i % 2 == 0);
			load = priced_load(b, rounds, try);
			if (load > best) {
				best = load;
				better = true;
				memcpy(b->weight, try, sizeof(try));
			}
		}
		step = better ? step : step / 2;
	}
	return best;
}

/* ---- times ---- */

/* Shards that go over the channels of a cut, whatever the rounds: over one
 * direction in a line, into or out of a node in a ring. */
static int64_t cut_shards(const struct bound_work *b)
{
	int64_t n = b->p->n;

	switch (b->kind) {
	case COLL_ALLTOALL:
		return b->p->line ? n * n / 4 : n - 1;
	case COLL_ALLREDUCE:
		return b->p->line ? n : 2 * (n - 1);
	case COLL_BROADCAST:
		return n;
	default:
		return n - 1;
	}
}

/* The channels of that cut. */
static int64_t cut_width(const struct bound_work *b)
{
	int64_t cw = tree_width(b->p, RWA_CW), ccw = tree_width(b->p, RWA_CCW);

	if (!b->p->line) {
		return b->width;
	}
	if (b->kind == COLL_BROADCAST && (b->root == 0 || b->root == b->p->n - 1)) {
		return b->root ? ccw : cw;
	}
	return cw < ccw ? cw : ccw;
}

/* ns, rounded up, of so many shards over so many channels. */
static __int128 sending(const struct optree_params *p, __int128 shards, __int128 channels)
{
	__int128 bytes = shards * p->shard_bytes, rate = channels * p->channel_bps;

	return bytes / rate * 8000000000 + (bytes % rate * 8000000000 + rate - 1) / rate;
}

/* What crosses a cut, in ns; of a broadcast on a ring in so many rounds. */
static __int128 time_of_cut(const struct bound_work *b, int64_t rounds)
{
	__int128 n = b->p->n, all = b->cuts + (rounds - 1) * (n - 1);

	if (!b->cuts) {
		return sending(b->p, cut_shards(b), cut_width(b));
	}
	return sending(b->p, n * all, b->width * (all - (n - 1) * (n - 2) / 2));
}

/* Links of the ring that light crosses to the farthest node at least. */
static int farthest(const struct bound_work *b)
{
	int n = b->p->n, left = b->root, right = n - 1 - b->root;

	if (!b->p->line) {
		return n / 2;
	}
	return b->kind != COLL_BROADCAST ? n - 1 : left > right ? left : right;
}

static __int128 time_of_links(const struct bound_work *b, int64_t load)
{
	return sending(b->p, load, (__int128)b->links * b->width * SPREAD_LINK);
}

static __int128 time_of(const struct bound_work *b, int64_t rounds, int64_t load)
{
	const struct optree_params *p = b->p;
	__int128 once = p->overlap ? p->alpha_ns - p->convert_ns : 0;
	__int128 each = p->overlap ? p->convert_ns : p->alpha_ns;
	__int128 links = time_of_links(b, load), cut = time_of_cut(b, rounds);
	__int128 light = (__int128)p->span_delay_ns * rounds;
	__int128 way = (__int128)p->span_delay_ns * farthest(b);

	light += links > cut ? links : cut;
	return once + rounds * each + (light > way ? light : way);
}

/* The load that no number of rounds goes below. */
static int64_t min_load(const struct bound_work *b)
{
	int64_t n = b->p->n, each = b->kind == COLL_ALLREDUCE ? 2 * (n - 1) : n - 1;

	return b->kind == COLL_ALLTOALL ? load_of(b, NULL, 0) : SPREAD_LINK * n * each;
}

static int fewest_rounds(const struct bound_work *b)
{
	int64_t n = b->p->n, far = b->p->line ? n * (n + 1) / 3 : n * n / 4;
	__int128 most = 1;
	int rounds = 1;

	if (b->kind == COLL_BROADCAST) {
		for (most = b->width + 1; most < n; most *= b->width + 1) {
			rounds++;
		}
		return rounds;
	}
	while (b->width * most * rounds < far) {
		most *= b->width + 1;
		rounds++;
	}
	return rounds;
}

/* What sums carry is not bounded so. */
static bool has_prices(const struct bound_work *b)
{
	return b->kind != COLL_ALLREDUCE && b->kind != COLL_ALLTOALL;
}

/*
 * More rounds than `rounds` of a broadcast on a ring, by cuts alone. With x cuts
 * that stand still, data of X ns and m cuts that move, R rounds take
 * R a + X (1 + m/x) where x grows by n - 1 a round: the least at any real x,
 * x^2 = X m (n - 1)/a, is no more than that of whole rounds.
 */
static void try_more_rounds(const struct bound_work *b, int64_t rounds, struct ring_bound *out)
{
	const struct optree_params *p = b->p;
	double a = (double)((p->overlap ? p->convert_ns : p->alpha_ns) + p->span_delay_ns);
	double once = p->overlap ? (double)(p->alpha_ns - p->convert_ns) : 0;
	double n = p->n, moving = (n - 1) * (n - 2) / 2, first = (double)b->cuts - moving;
	double data = (double)sending(p, cut_shards(b), cut_width(b)) - 1;
	double min = first + (double)rounds * (n - 1), x, ns;

	if (a < 1) {
		ns = once + data;
		x = min;
	} else {
		x = sqrt(data * moving * (n - 1) / a);
		x = x > min ? x : min;
		ns = once + ((x - first) / (n - 1) + 1) * a + data * (1 + moving / x);
	}
	ns *= 1 - 1e-12;
	if (ns < (double)out->ns) {
		x = (x - first) / (n - 1) + 1;
		*out = (struct ring_bound){ (int64_t)ns, x < INT32_MAX ? (int)x : INT32_MAX };
	}
}

/* The least over all numbers of rounds, or of `only` so many (0: all), when
 * that is less than what is in *out. */
static void try_rounds(struct bound_work *b, bool priced, int only, struct ring_bound *out)
{
	int fewest = only ? only : fewest_rounds(b);
	struct spread_left *none = rounds_left(b, 0);
	int last = only ? only : b->p->n;

	for (int g = 0; g < b->p->n; g++) {
		none->gap[g] = none->tail[g] = g * SPREAD_NEVER;
	}
	for (int r = 1; r <= last && time_of(b, r, min_load(b)) < out->ns; r++) {
		const struct spread_left *l = rounds_left(b, r);
		int64_t load;

		spread_round(&b->s, rounds_left(b, r - 1), &(struct spread_price){ SPREAD_LINK, 0 },
			  rounds_left(b, r));
		if (r < fewest || l->gap[b->p->n - 1] >= SPREAD_NEVER) {
			continue;
		}
		load = load_of(b, l, r);
		if (priced && time_of(b, r, load) < out->ns) {
			load = best_priced_load(b, r);
		}
		if (time_of(b, r, load) < out->ns) {
			*out = (struct ring_bound){ (int64_t)time_of(b, r, load), r };
		}
		if (b->cuts && time_of_links(b, load) <= time_of_cut(b, r)) {
			last = r;
		}
	}
	if (b->cuts && !only) {
		b->looked = last;
		try_more_rounds(b, last, out);
	}
}

/* Prices are looked for where they may matter only: first for the number of
 * rounds that is best without. */
static void best_rounds(struct bound_work *b, struct ring_bound *out)
{
	struct ring_bound plain = *out;

	try_rounds(b, false, 0, &plain);
	if (plain.rounds == 0 || !has_prices(b) || (b->cuts && plain.rounds > b->looked)) {
		*out = plain;
		return;
	}
	try_rounds(b, true, plain.rounds, out);
	if (out->ns > plain.ns) {
		try_rounds(b, true, 0, out);
	}
}

int ring_bound(const struct optree_params *p, enum coll_kind kind, int root,
	       struct ring_bound *out, struct err *err)
{
	struct bound_work b = {
		.p = p, .kind = kind, .root = root,
		.width = tree_width(p, RWA_CW) + tree_width(p, RWA_CCW),
		.links = p->line ? p->n - 1 : p->n,
	};
	int reach, rc = make_reach(p, &reach, err);
	int64_t still;

	*out = (struct ring_bound){ .ns = INT64_MAX };
	if (kind == COLL_BROADCAST && !p->line && p->n > 2) {
		broadcast_cuts(p->n, 1, &b.cuts, &still);
	}
	for (int i = 0; i < PRICED; i++) {
		b.weight[i] = start_weight(&b);
	}
	if (!rc) {
		work_init(&b, p->at ? p->n : reach);
		best_rounds(&b, out);
	}
	work_fini(&b);
	return rc;
}

int ring_bound_set(const struct optree_params *p, int root, struct optree_plan *plan,
		   struct err *err)
{
	struct ring_bound b;
	int rc = ring_bound(p, plan->kind, root, &b, err);

	if (rc) {
		return rc;
	}
	plan->bound_ns = b.ns;
	plan->bound_rounds = b.rounds;
	plan->gap = (double)plan->time_ns / (double)b.ns - 1;
	return 0;
}
