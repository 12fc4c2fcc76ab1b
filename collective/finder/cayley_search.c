/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cayley graphs whose breadth-first broadcast meets the bandwidth bound in few steps.
 *
 * Sets of generators are changed one at a time, towards fewer nodes beyond the diameter
 * that is aimed at and then towards less excess load (cayley_levels.c), on groups that reach far
 * with random generators. Diameters begin at what random sets have and end one below the best
 * that was found, or lower where some set came near. How long is counted in nodes visited, not
 * in time: the answer is the same on any machine.
 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "collective/finder/private.h"

#define MAX_D FINDER_CAYLEY_MAX_PORTS
#define KEPT_GROUPS 32		/* that are searched, of those that are listed, at most */
#define VISITS_OF_GROUP 800	/* that must be there for each of them, times its elements */
#define TRIES 6			/* random sets that a group is judged by */
#define VISITS_OF_CHOICE 20	/* that choosing a generator is like */
#define GENERATING 20		/* random sets of which one may generate the group */
#define STALE 80		/* changes without gain after which an episode ends */
#define MAX_DEPTH 64		/* diameters that `farthest` knows */
#define TABLE_BYTES (48 << 20)	/* of products with an element that are kept */

/* A generator, and with inverses its inverse where that is another. */
struct finder_unit {
	int64_t letter[2];
	int size;
	int column;		/* of the first */
};

struct finder_cayley_search {
	int n, d;
	bool both, lines;	/* lines: a base for line graphs is looked for */
	struct rng rng;
	const struct topo_cayley_group *g;
	int rank;		/* of the group */
	struct finder_levels levels;
	uint16_t *sorted;	/* the group's elements by size_of() */
	int start[4];		/* of those of each size in `sorted` */
	struct finder_unit unit[MAX_D], kept;	/* kept: the one that a change replaced */
	int units;
	uint16_t *column[MAX_D], *back[MAX_D];	/* by generator: u times it; times its inverse */
	int32_t *wide;
	uint16_t *inverse, *inverses;	/* of the group's elements; of those of all ranks */
	bool inverted[KEPT_GROUPS];	/* by rank: inverses are there */
	int failed[KEPT_GROUPS];	/* by rank: times that no set was found to generate it */
	uint16_t *tables;	/* u times an element, for some groups and elements */
	int64_t *owner;		/* of each table; 0: none */
	int slots;
	int farthest[MAX_DEPTH];	/* most nodes that a set reached within so many steps */
	int64_t other_visits, max_visits;
	struct finder_cayley *near;	/* of the fewest steps, balanced or not */
	struct arrays arrays;
};

static int64_t visits(const struct finder_cayley_search *s)
{
	return s->levels.visits + s->other_visits;
}

/* ---- products ---- */

static void fill(struct finder_cayley_search *s, int64_t letter, uint16_t *column)
{
	topo_cayley_times(s->g, letter, s->wide);
	for (int u = 0; u < s->n; u++) {
		column[u] = (uint16_t)s->wide[u];
	}
	s->other_visits += (s->g->chain.points > 0 ? 20 : 5) * s->n;
}

/* The same, from memory where it is there. Until the next call. */
static const uint16_t *table_of(struct finder_cayley_search *s, int64_t letter)
{
	int64_t key = (int64_t)s->rank << 32 | letter;
	size_t slot = (size_t)(rng_mix((uint64_t)key) % (uint64_t)s->slots);
	uint16_t *table = s->tables + slot * (size_t)s->n;

	if (s->owner[slot] != key) {
		s->owner[slot] = key;
		fill(s, letter, table);
	}
	return table;
}

/* The columns of unit i. */
static void fill_unit(struct finder_cayley_search *s, int i)
{
	const struct finder_unit *u = &s->unit[i];

	for (int k = 0; k < u->size; k++) {
		memcpy(s->column[u->column + k], table_of(s, u->letter[k]),
		       (size_t)s->n * sizeof(uint16_t));
		for (int m = 0; m < u->size && s->both; m++) {
			if (u->letter[m] == s->inverse[u->letter[k]]) {
				s->levels.back[u->column + k] = s->column[u->column + m];
			}
		}
	}
	s->other_visits += s->n / 8 * u->size;
}

/* The inverse columns of one-way sets, which only those that reach all nodes need. */
static void fill_back(struct finder_cayley_search *s)
{
	for (int i = 0; i < s->units && !s->both; i++) {
		const struct finder_unit *u = &s->unit[i];

		for (int k = 0; k < u->size; k++) {
			memcpy(s->back[u->column + k], table_of(s, s->inverse[u->letter[k]]),
			       (size_t)s->n * sizeof(uint16_t));
		}
	}
}

/* ---- generators ---- */

/* Letters of a unit that x is in; 0: the identity, which is in none. */
static int size_of(const struct finder_cayley_search *s, int64_t x)
{
	return x == 0 ? 0 : s->both && s->inverse[x] != x ? 2 : 1;
}

/* Whether a letter is among the units but i. */
static bool taken(const struct finder_cayley_search *s, int64_t letter, int i)
{
	for (int k = 0; k < s->units; k++) {
		for (int m = 0; m < s->unit[k].size && k != i; m++) {
			if (s->unit[k].letter[m] == letter) {
				return true;
			}
		}
	}
	return false;
}

/* Another letter for unit i: random, or its own times one of the set. False: none found. */
static bool choose_letter(struct finder_cayley_search *s, int i)
{
	struct finder_unit *u = &s->unit[i];
	int first = s->start[u->size], many = s->start[u->size + 1] - first;

	for (int try = 0; try < 20 && many > 0; try++) {
		int64_t letter = s->sorted[first + (int)rng_below(&s->rng, (uint64_t)many)];

		s->other_visits += VISITS_OF_CHOICE;
		if (u->letter[0] && rng_below(&s->rng, 3) == 0) {
			letter = s->column[rng_below(&s->rng, (uint64_t)s->d)][u->letter[0]];
		}
		if (size_of(s, letter) == u->size && !taken(s, letter, i)) {
			u->letter[0] = letter;
			u->letter[1] = s->inverse[letter];
			return true;
		}
	}
	return false;
}

/* Units of sizes that are d together and that the group has; half of the time as large as can
 * be. False: not found. */
static bool deal_units(struct finder_cayley_search *s)
{
	bool largest = rng_below(&s->rng, 2);
	int used[3] = { 0 };	/* elements by size */

	s->units = 0;
	s->other_visits += 4 * VISITS_OF_CHOICE;
	for (int left = s->d; left > 0;) {
		int sizes = 0, chosen = 0;

		for (int k = left < 2 ? left : 2; k > 0; k--) {
			if (s->start[k + 1] - s->start[k] > used[k] &&
			    (!chosen || !largest) && rng_below(&s->rng, (uint64_t)++sizes) == 0) {
				chosen = k;
			}
		}
		if (!chosen) {
			return false;
		}
		s->unit[s->units++] = (struct finder_unit){ .size = chosen,
							    .column = s->d - left };
		left -= chosen;
		used[chosen] += chosen;
	}
	return true;
}

static bool choose_units(struct finder_cayley_search *s)
{
	int units;

	if (!deal_units(s)) {
		return false;
	}
	units = s->units;
	for (int i = 0; i < units; i++) {
		s->units = i;
		if (!choose_letter(s, i)) {
			return false;
		}
		fill_unit(s, i);
	}
	s->units = units;
	return true;
}

/* A random set that generates the group, levels and all. False: none found. */
static bool random_units(struct finder_cayley_search *s)
{
	struct finder_levels *l = &s->levels;

	for (int try = 0; try < GENERATING; try++) {
		if (!choose_units(s) || finder_levels_reach(l, false, s->n, 0) < s->n) {
			continue;
		}
		for (int t = 0; t <= l->deepest && t < MAX_DEPTH; t++) {
			s->farthest[t] = l->start[t + 1] > s->farthest[t] ? l->start[t + 1] :
									    s->farthest[t];
		}
		return true;
	}
	s->failed[s->rank - 1]++;
	return false;
}

static void sort_elements(struct finder_cayley_search *s)
{
	int at[4] = { 0 };

	memset(s->start, 0, sizeof(s->start));
	for (int x = 0; x < s->n; x++) {
		s->start[size_of(s, x) + 1]++;
	}
	for (int k = 1; k < 4; k++) {
		s->start[k] += s->start[k - 1];
	}
	memcpy(at, s->start, sizeof(at));
	for (int x = 0; x < s->n; x++) {
		s->sorted[at[size_of(s, x)]++] = (uint16_t)x;
	}
	s->other_visits += 2 * s->n;
}

static void take_group(struct finder_cayley_search *s, const struct finder_groups *groups, int rank)
{
	s->g = &groups->v[groups->order[rank]].g;
	s->rank = rank + 1;
	s->inverse = s->inverses + (size_t)rank * (size_t)s->n;
	if (!s->inverted[rank]) {
		s->inverted[rank] = true;
		for (int u = 0; u < s->n; u++) {
			s->inverse[u] = (uint16_t)topo_cayley_inverse(s->g, u);
		}
		s->other_visits += 100 * s->n;
	}
	sort_elements(s);
}

/* ---- what a set is worth ---- */

/* 0: balanced in both phases within the depth. Nodes that it does not reach weigh most; where
 * those are more than of a set of cost `accepted`, it may be any cost above that. */
static int64_t cost_of(struct finder_cayley_search *s, int depth, int64_t accepted)
{
	int least = s->n - (int)(accepted >> 32);
	int reached = finder_levels_reach(&s->levels, false, depth, least);

	if (depth < MAX_DEPTH && reached > s->farthest[depth]) {
		s->farthest[depth] = reached;
	}
	if (reached < s->n) {
		return (int64_t)(s->n - reached) << 32;
	}
	fill_back(s);
	return finder_levels_imbalance(&s->levels, s->lines);
}

static bool change_unit(struct finder_cayley_search *s, int *i)
{
	*i = (int)rng_below(&s->rng, (uint64_t)s->units);
	s->kept = s->unit[*i];
	if (!choose_letter(s, *i)) {
		return false;
	}
	fill_unit(s, *i);
	return true;
}

static void save(const struct finder_cayley_search *s, struct finder_cayley *out)
{
	out->g = *s->g;
	out->both = s->both;
	out->steps = s->levels.deepest;
	out->n_letters = 0;
	for (int i = 0; i < s->units; i++) {
		for (int m = 0; m < s->unit[i].size; m++) {
			int64_t x = s->unit[i].letter[m];
			int k = out->n_letters;

			if (s->both && s->inverse[x] < x) {
				continue;
			}
			for (; k > 0 && out->letter[k - 1] > x; k--) {
				out->letter[k] = out->letter[k - 1];
			}
			out->letter[k] = x;
			out->n_letters++;
		}
	}
}

/* A set of all nodes within the depth that is not balanced may still be the one of the fewest
 * steps. One way line graphs are nearer to balance in as few. */
static void note_near(struct finder_cayley_search *s, int64_t cost)
{
	struct finder_cayley *near = s->near;
	int steps = s->levels.deepest;

	if (s->both && cost >> 32 == 0 &&
	    (steps < near->steps || (steps == near->steps && cost < near->excess))) {
		save(s, near);
		near->excess = cost;
	}
}

/* From a random set, change after change. True: a balanced one is there. */
static bool episode(struct finder_cayley_search *s, int depth)
{
	int64_t cost, changed;
	int i, stale = 0;

	if (!random_units(s)) {
		return false;
	}
	cost = cost_of(s, depth, (int64_t)s->n << 32);
	note_near(s, cost);
	while (cost > 0 && stale < STALE && visits(s) < s->max_visits) {
		if (!change_unit(s, &i)) {
			return false;
		}
		changed = cost_of(s, depth, cost);
		note_near(s, changed);
		stale = changed < cost ? 0 : stale + 1;
		if (changed > cost) {
			s->unit[i] = s->kept;
			fill_unit(s, i);
		} else {
			cost = changed;
		}
	}
	return cost == 0;
}

/* ---- groups ---- */

/* A random element, where asked one that is its own inverse; 0: none found. */
static int64_t random_element(struct finder_cayley_search *s, bool involution)
{
	for (int try = 0; try < 200; try++) {
		int64_t x = 1 + (int64_t)rng_below(&s->rng, (uint64_t)s->n - 1);

		s->other_visits += 50;
		if (!involution || topo_cayley_inverse(s->g, x) == x) {
			return x;
		}
	}
	return 0;
}

/* Random generators, not in units as searches have them: with inverses an involution if ports
 * are odd, and pairs. False: there is none. */
static bool random_columns(struct finder_cayley_search *s)
{
	for (int i = 0; i < s->d; i++) {
		bool odd = s->both && s->d % 2 && i == 0;
		int64_t letter = random_element(s, odd);

		if (letter == 0) {
			return false;
		}
		fill(s, letter, s->column[i]);
		if (s->both && !odd) {
			fill(s, topo_cayley_inverse(s->g, letter), s->column[++i]);
		}
	}
	return true;
}

static void sort_groups(struct finder_groups *groups)
{
	for (size_t i = 1; i < groups->n; i++) {
		int32_t moved = groups->order[i];
		size_t k = i;

		for (; k > 0 &&
		     groups->v[groups->order[k - 1]].score < groups->v[moved].score; k--) {
			groups->order[k] = groups->order[k - 1];
		}
		groups->order[k] = moved;
	}
}

/* Best first: by the most nodes that one of some random sets reaches within a depth. At most
 * an eighth of all visits goes into that. */
static void judge_groups(struct finder_cayley_search *s, struct finder_groups *groups, int depth)
{
	for (size_t i = groups->n; i-- > 1;) {
		size_t k = (size_t)rng_below(&s->rng, i + 1);
		int32_t moved = groups->order[i];

		groups->order[i] = groups->order[k];
		groups->order[k] = moved;
	}
	for (int try = 0; try < TRIES; try++) {
		for (size_t i = 0; i < groups->n && visits(s) < s->max_visits / 8; i++) {
			struct finder_group *g = &groups->v[groups->order[i]];
			int reached;

			s->g = &g->g;
			reached = random_columns(s) ?
				  finder_levels_reach(&s->levels, false, depth, 0) : 0;
			g->score = reached > g->score ? reached : g->score;
		}
	}
	sort_groups(groups);
}

/* The fewest steps that random sets take; INT_MAX when none of them reaches all nodes. */
static int easy_steps(struct finder_cayley_search *s, const struct finder_groups *groups,
		      int kept)
{
	int least = INT_MAX;

	for (int i = 0; i < (kept + 1) / 2; i++) {
		take_group(s, groups, i);
		for (int k = 0; k < 4 && visits(s) < s->max_visits; k++) {
			if (random_units(s) && s->levels.deepest < least) {
				least = s->levels.deepest;
			}
		}
	}
	return least;
}

/* ---- the search ---- */

/* A diameter to aim at, from one at which some set reached most nodes to `most`: the last half of
 * the time where these are few, else rather the first. */
static int choose_depth(struct finder_cayley_search *s, int bound, int most)
{
	int least = bound;

	while (least < most &&
	       s->farthest[least < MAX_DEPTH ? least : MAX_DEPTH - 1] < s->n / 10 * 8) {
		least++;
	}
	if (most - least <= 2 && rng_below(&s->rng, 2)) {
		return most;
	}
	if (most - least > 2) {
		most = least + (int)rng_below(&s->rng, (uint64_t)(most - least) + 1);
	}
	return least + (int)rng_below(&s->rng, (uint64_t)(most - least) + 1);
}

/* A group by rank, the first ones more often, but hardly one in which random sets were seen to
 * generate nothing. */
static int choose_rank(struct finder_cayley_search *s, int kept)
{
	int rank = 0;

	for (int try = 0; try < 8; try++) {
		rank = (int)rng_below(&s->rng, 1 + rng_below(&s->rng, (uint64_t)kept));
		if (s->failed[rank] < 3) {
			break;
		}
	}
	return rank;
}

/* Groups that there is time for. */
static int how_many(const struct finder_cayley_search *s, const struct finder_groups *groups)
{
	int64_t kept = 1 + s->max_visits / VISITS_OF_GROUP / s->n;

	kept = kept < KEPT_GROUPS ? kept : KEPT_GROUPS;
	return (size_t)kept < groups->n ? (int)kept : (int)groups->n;
}

/* Episodes until all visits are used, on any of the groups and again on the one that had the
 * best. */
static void search(struct finder_cayley_search *s, const struct finder_groups *groups, int bound,
		   struct finder_cayley *out)
{
	int kept = how_many(s, groups), best = -1, easy = easy_steps(s, groups, kept);

	easy = easy == INT_MAX ? bound + 6 : easy;
	while (visits(s) < s->max_visits && out->steps > bound) {
		int depth = choose_depth(s, bound, out->steps == INT_MAX ? easy : out->steps - 1);
		int rank = best >= 0 && rng_below(&s->rng, 4) == 0 ? best : choose_rank(s, kept);

		take_group(s, groups, rank);
		if (episode(s, depth)) {
			best = rank;
			save(s, out);
		} else if (out->steps == INT_MAX) {
			/* Where even what random sets have is not balanced. */
			easy += rng_below(&s->rng, 4) == 0;
		}
	}
}

/* ---- the least distances ---- */

/* Sum from a node to all; n^2, more than any has, where not all are reached. */
static int64_t distances(struct finder_cayley_search *s)
{
	const struct finder_levels *l = &s->levels;
	int64_t sum = 0;

	if (finder_levels_reach(&s->levels, false, s->n, 0) < s->n) {
		return (int64_t)s->n * s->n;
	}
	for (int t = 1; t <= l->deepest; t++) {
		sum += (int64_t)t * (l->start[t + 1] - l->start[t]);
	}
	return sum;
}

/* out[FINDER_NEAR_KEPT] stays in order. */
static void offer(const struct finder_cayley_search *s, int64_t sum, struct finder_cayley *out)
{
	int at = FINDER_NEAR_KEPT;

	for (; at > 0 && sum < out[at - 1].distances; at--) {
	}
	if (at < FINDER_NEAR_KEPT) {
		memmove(out + at + 1, out + at, (size_t)(FINDER_NEAR_KEPT - 1 - at) * sizeof(*out));
		out[at].distances = sum;
		save(s, &out[at]);
	}
}

/* From a random set, change after change that leaves no more distance. */
static void climb(struct finder_cayley_search *s, struct finder_cayley *out)
{
	int64_t sum, changed;
	int i;

	if (!random_units(s)) {
		return;
	}
	sum = distances(s);
	for (int stale = 0; stale < 2 * STALE && visits(s) < s->max_visits; stale++) {
		if (!change_unit(s, &i)) {
			break;
		}
		changed = distances(s);
		if (changed > sum) {
			s->unit[i] = s->kept;
			fill_unit(s, i);
			continue;
		}
		stale = changed < sum ? 0 : stale;
		sum = changed;
	}
	offer(s, sum, out);
}

/* ---- room, and the calls ---- */

static void make_room(struct finder_cayley_search *s)
{
	s->slots = TABLE_BYTES / (int)sizeof(uint16_t) / s->n;
	s->slots = s->slots / 2 / KEPT_GROUPS > s->n ? 2 * KEPT_GROUPS * s->n : s->slots;
	for (int i = 0; i < s->d; i++) {
		arrays_add(&s->arrays, s->column[i], s->n);
		arrays_add(&s->arrays, s->back[i], s->both ? 0 : s->n);
		s->levels.next[i] = s->column[i];
		s->levels.back[i] = s->back[i];
	}
	arrays_add(&s->arrays, s->wide, s->n);
	arrays_add(&s->arrays, s->inverses, s->n * KEPT_GROUPS);
	arrays_add(&s->arrays, s->tables, (size_t)s->slots * (size_t)s->n);
	arrays_add(&s->arrays, s->owner, s->slots);
	arrays_add(&s->arrays, s->sorted, s->n);
	finder_levels_room(&s->levels, s->n, s->d, s->both, &s->arrays);
}

static bool can_search(int n, int ports)
{
	return ports >= 2 && ports <= MAX_D && n >= 6 && n <= TOPO_MAX_NODES;
}

void finder_cayley_search(int n, int ports, enum finder_cayley_aim aim, int bound, uint64_t seed,
			  int64_t max_visits, struct finder_cayley *out,
			  struct finder_cayley *near)
{
	struct finder_cayley_search s = { .n = n, .d = ports, .both = aim == FINDER_CAYLEY_BOTH,
					  .lines = aim == FINDER_CAYLEY_LINES, .near = near,
					  .max_visits = max_visits };
	struct finder_groups groups = { 0 };

	if (!can_search(n, ports) || ports > FINDER_BALANCED_MAX_PORTS || out->steps <= bound) {
		return;
	}
	rng_seed(&s.rng, ((uint64_t)n * 64 + (uint64_t)ports * 4 + aim) ^ rng_mix(seed));
	make_room(&s);
	finder_list_groups(n, &s.rng, &groups);
	judge_groups(&s, &groups, bound + 1);
	search(&s, &groups, bound, out);
	arrays_fini(&s.arrays);
	finder_groups_fini(&groups);
}

void finder_cayley_near(int n, int ports, bool both, int bound, int64_t max_visits,
			struct finder_cayley *out)
{
	struct finder_cayley_search s = { .n = n, .d = ports, .both = both,
					  .max_visits = max_visits };
	struct finder_groups groups = { 0 };

	if (!can_search(n, ports)) {
		return;
	}
	rng_seed(&s.rng, (uint64_t)n * 64 + (uint64_t)ports * 4 + 3);
	make_room(&s);
	finder_list_groups(n, &s.rng, &groups);
	judge_groups(&s, &groups, bound + 1);
	while (visits(&s) < max_visits) {
		s.other_visits++;
		take_group(&s, &groups, choose_rank(&s, how_many(&s, &groups)));
		climb(&s, out);
	}
	arrays_fini(&s.arrays);
	finder_groups_fini(&groups);
}
