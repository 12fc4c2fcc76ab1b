/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All-gathers told by the round in which each node is reached, from the nearest that hold the item
 * then. With few channels a round has room for few lengths, each of whole channels, so which
 * nodes come early is worth a search: one node is moved to another round, or two change places,
 * while the estimated time becomes less; then from a few moved at random once more.
 * Both sides of the item's origin are alike.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/number/rng.h"
#include "optree/spread/spread.h"

#define MAX_ROUNDS OPTREE_MAX_DEPTH
/* Nodes and lengths looked at in one search. */
#define WORK ((int64_t)1 << 23)
#define KICK 3		/* nodes that are moved at random */
#define HALVINGS 10	/* of the time of a round, for the widths that it needs */

struct when {
	const struct optree_params *p;
	int n, reach, rounds;
	int64_t *room;		/* links in one step of lengths up to this */
	double unit_ns;		/* half an item on a channel */
	double ns[MAX_ROUNDS];
	int8_t *round;		/* by offset from the origin, which has -1 */
	int8_t *best;
	int32_t *near[2];	/* links to the nearest holder behind, ahead */
	int32_t *load;		/* halves that lightpaths of a length carry, clockwise */
	int64_t work;
};

static void when_init(struct when *s, const struct optree_params *p, int reach)
{
	size_t n = (size_t)p->n;

	*s = (struct when){
		.p = p, .n = p->n, .reach = reach,
		.unit_ns = (double)p->shard_bytes * 4e9 / (double)p->channel_bps,
		.round = x_new(2 * n, 1), .near[0] = x_new(3 * n, sizeof(int32_t)),
		.room = x_new(n + 1, sizeof(*s->room)),
	};
	s->best = s->round + n;
	s->near[1] = s->near[0] + n;
	s->load = s->near[1] + n;
	for (int tile = p->n - 1; tile > 0; tile--) {
		int64_t room = tree_width(p, RWA_CW) / optree_sym_classes(p->n, tile) * tile;

		s->room[tile] = room > s->room[tile + 1] ? room : s->room[tile + 1];
	}
}

static void when_fini(struct when *s)
{
	free(s->room);
	free(s->near[0]);
	free(s->round);
}

/* ---- estimated times ---- */

/* Lengths behind each other without gaps. */
static double one_step_ns(struct when *s, int longest, double high)
{
	double room = (double)s->room[longest], low = 0;

	for (int len = 1; len <= longest; len++) {
		low += (double)s->load[len] * len / room;
	}
	s->work += HALVINGS * longest;
	for (int i = 0; i < HALVINGS; i++) {
		double t = i ? (low + high) / 2 : low, links = 0;

		for (int len = 1; len <= longest; len++) {
			links += len * ceil(s->load[len] / t - 1e-9);
		}
		*(links <= room ? &high : &low) = t;
	}
	return (double)s->p->alpha_ns + high * s->unit_ns;
}

static double loads_ns(struct when *s, int longest)
{
	int64_t classes = 0, links = 0, slots, w = tree_width(s->p, RWA_CW);
	double most = 0;

	for (int len = 1; len <= longest; len++) {
		if (s->load[len]) {
			classes += optree_sym_classes(s->n, len);
			links += len;
			most = fmax(most, s->load[len]);
		}
	}
	if (links <= s->room[longest]) {
		return one_step_ns(s, longest, most);
	}
	slots = (classes + w - 1) / w;
	most /= (double)(w / ((classes + slots - 1) / slots));
	return (double)slots * ((double)s->p->alpha_ns + most * s->unit_ns);
}

/* Links to the nearest nodes that hold the item when the round begins. */
static void find_nearest(struct when *s, int round)
{
	int32_t *behind = s->near[0], *ahead = s->near[1];

	for (int v = 1; v < s->n; v++) {
		behind[v] = s->round[v - 1] < round ? 1 : behind[v - 1] + 1;
		ahead[s->n - v] = v == 1 || s->round[s->n - v + 1] < round
					  ? 1 : ahead[s->n - v + 1] + 1;
	}
	s->work += s->n;
}

/* 0: none is reached. */
static double round_ns(struct when *s, int round)
{
	int longest = 0;

	find_nearest(s, round);
	memset(s->load, 0, ((size_t)s->n / 2 + 1) * sizeof(*s->load));
	for (int v = 1; v < s->n; v++) {
		int a = s->near[0][v], b = s->near[1][v];

		if (s->round[v] == round && a <= b) {
			s->load[a] += a < b ? 2 : 1;
			longest = a > longest ? a : longest;
		}
	}
	return longest > s->reach ? INFINITY : longest ? loads_ns(s, longest) : 0;
}

/* All of it, where these rounds are not as they were. */
static double estimate(struct when *s, int first, int last)
{
	double sum = 0;

	for (int r = 0; r < s->rounds; r++) {
		if (r >= first && r <= last) {
			s->ns[r] = round_ns(s, r);
		}
		sum += s->ns[r];
	}
	return sum;
}

/* ---- the search ---- */

static void put(struct when *s, int v, int round)
{
	s->round[v] = s->round[s->n - v] = (int8_t)round;
}

/* v and u get these rounds if that is faster than *ns. */
static bool try_rounds(struct when *s, int v, int to, int u, int other, double *ns)
{
	double before[MAX_ROUNDS], t;
	int was[2] = { s->round[v], s->round[u] };

	memcpy(before, s->ns, sizeof(before));
	put(s, u, other);
	put(s, v, to);
	t = estimate(s, was[0] < to ? was[0] : to, was[0] < to ? to : was[0]);
	if (t < *ns * (1 - 1e-9)) {
		*ns = t;
		return true;
	}
	put(s, u, was[1]);
	put(s, v, was[0]);
	memcpy(s->ns, before, sizeof(before));
	return false;
}

/* Until nothing is faster, or the work is done. */
static double descend(struct when *s)
{
	double ns = estimate(s, 0, s->rounds - 1);

	for (bool better = true; better;) {
		better = false;
		for (int v = 1; v <= s->n / 2 && s->work < WORK; v++) {
			for (int r = 0; r < s->rounds; r++) {
				better |= r != s->round[v] && try_rounds(s, v, r, v, r, &ns);
			}
			for (int u = v + 1; u <= s->n / 2 && s->work < WORK; u++) {
				better |= s->round[u] != s->round[v] &&
					  try_rounds(s, v, s->round[u], u, s->round[v], &ns);
			}
		}
	}
	return ns;
}

/* The best from here on, until so many kicks as there are nodes have gained nothing; returns its
 * time. */
static double improve(struct when *s)
{
	double best = INFINITY;
	struct rng rng;

	rng_seed(&rng, (uint64_t)s->n);
	for (int vain = 0; vain < s->n && s->work < WORK; vain++) {
		double ns = descend(s);

		if (ns < best) {
			best = ns;
			vain = 0;
			memcpy(s->best, s->round, (size_t)s->n);
		}
		memcpy(s->round, s->best, (size_t)s->n);
		for (int k = 0; k < KICK; k++) {
			put(s, 1 + (int)rng_below(&rng, (uint64_t)s->n / 2),
			    (int)rng_below(&rng, (uint64_t)s->rounds));
		}
	}
	memcpy(s->round, s->best, (size_t)s->n);
	return best;
}

/* ---- plans ---- */

/* In which round a plan's item reaches each node, both sides alike. */
static void rounds_of(struct when *s, const struct optree_sym *plan)
{
	s->rounds = (int)plan->rounds.n;
	for (int i = s->rounds; i-- > 0;) {
		const struct sym_round *r = &plan->rounds.v[i];

		for (size_t m = r->move; m < r->move + r->n_moves; m++) {
			const struct sym_move *move = &plan->moves.v[m];
			int len = move->dir == RWA_CW ? move->len : s->n - move->len;

			for (size_t h = move->hop; h < move->hop + move->n_hops; h++) {
				put(s, (plan->hops.v[h].at + len) % s->n, i);
			}
		}
	}
	s->round[0] = -1;
}

/* half: the first or second of an item, 0: all of it. */
static void add_hop(struct compose_records *rec, int n, int round, int v, int dir, int len,
		    int half)
{
	struct compose_record r = {
		.round = round, .len = len, .dir = (uint8_t)dir,
		.hop = { .at = (v + (dir == RWA_CW ? n - len : len)) % n, .dest = -1,
			 .first = half == 2, .last = half != 1 },
	};

	vec_push(rec, r);
}

/* What a round does, as the number-th. Returns the largest gap before. */
static int add_round(struct when *s, int round, int number, struct compose_records *rec)
{
	int gap = 0;

	find_nearest(s, round);
	for (int v = 1; v < s->n; v++) {
		int a = s->near[0][v], b = s->near[1][v];

		gap = s->round[v] >= round && a + b > gap ? a + b : gap;
		if (s->round[v] == round && a <= b) {
			add_hop(rec, s->n, number, v, RWA_CW, a, a == b ? 1 : 0);
		}
		if (s->round[v] == round && b <= a) {
			add_hop(rec, s->n, number, v, RWA_CCW, b, a == b ? 2 : 0);
		}
	}
	return gap;
}

static int build(struct when *s, struct compose_shape *shape, struct optree_sym *out,
		 struct err *err)
{
	struct compose_records rec = { 0 };
	int rc, used = 0;

	*shape = (struct compose_shape){ .units = 2, .uneven = true };
	for (int r = 0; r < s->rounds; r++) {
		size_t before = rec.n;
		int gap = add_round(s, r, used, &rec);

		if (rec.n > before) {
			shape->level[used++] = (struct compose_level){ .gap = gap, .stride = 1 };
		}
	}
	shape->levels = used;
	for (int r = 0; r + 1 < used; r++) {
		shape->level[r].stride = shape->level[r + 1].gap;
	}
	rc = spread_light(s->p, &rec, used, out, err);
	vec_fini(&rec);
	return rc;
}

int spread_rounds(const struct optree_params *p, int reach, const struct optree_sym *plan,
		  spread_take *take, void *data, struct err *err)
{
	struct when s;
	struct compose_shape shape;
	struct optree_sym out;
	int rc;

	if (plan->rounds.n > MAX_ROUNDS) {
		return 0;
	}
	when_init(&s, p, reach);
	rounds_of(&s, plan);
	rc = isinf(improve(&s)) ? WEFT_ELIMIT : build(&s, &shape, &out, err);
	when_fini(&s);
	return rc == 0 ? take(data, &shape, &out, err) : rc == WEFT_ELIMIT ? 0 : rc;
}
