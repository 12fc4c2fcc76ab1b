/*
 * Cayley graphs whose breadth-first broadcast meets the bandwidth bound in few steps.
 *
 * Every node of a Cayley graph sees the same, so one search from the identity gives the levels of
 * all, and a level is balanced when Hall's condition holds for every set of arcs: not more of its
 * nodes may be reachable only over these than their share (eq. (3) of
 * direct-connect-topologies). For all-gathers the arcs are the last letters of the words
 * that lead to a node, for reduce-scatters the first ones, which are the last letters of the
 * digraph with inverse generators. Sets of generators are changed one at a time, towards fewer nodes
 * beyond the diameter that is aimed at and then towards less excess load, on groups that
 * reach far with random generators. How long is counted in nodes visited, not in time: the
 * answer is the same on any machine.
 */
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "collective/finder/private.h"
#include "lib/base/rng.h"
#include "lib/base/vec.h"

#define MAX_D FINDER_CAYLEY_MAX_PORTS
#define KEPT_GROUPS 16		/* that are searched, of those that are listed */
#define TRIES 4			/* random sets that a group is judged by */
#define STALE 80		/* changes without gain after which an episode ends */

/* A generator, or with inverses a pair of them, or an involution. */
struct finder_unit {
	int64_t letter;
	bool pair;
};

struct finder_cayley_search {
	int n, d;
	bool both, lines;	/* lines: a base for line graphs is looked for */
	int strict;		/* level on which no set of arcs may have all its share; -1 */
	struct rng rng;
	const struct topo_cayley_group *g;
	int64_t *involutions;
	int n_involutions;
	struct finder_unit unit[MAX_D], kept;	/* kept: the one that a change replaced */
	int units;
	int32_t *next[MAX_D], *back[MAX_D];	/* by generator: u times it; times its inverse */
	int16_t *level;
	uint16_t *letters;	/* of each node: the last letters of shortest words */
	int32_t *queue;
	int64_t *count;		/* of a level: nodes by set of letters */
	int deepest;		/* level of the evaluation before */
	int64_t visits, max_visits;
	struct arrays arrays;
};

/* ---- generators ---- */

static int64_t random_letter(struct finder_cayley_search *s)
{
	return 1 + (int64_t)rng_below(&s->rng, (uint64_t)s->n - 1);
}

/* The column of unit i in `next`: pairs take two. */
static int column_of(const struct finder_cayley_search *s, int i)
{
	int column = 0;

	for (int k = 0; k < i; k++) {
		column += 1 + s->unit[k].pair;
	}
	return column;
}

static void fill_column(struct finder_cayley_search *s, int i)
{
	int column = column_of(s, i);

	topo_cayley_times(s->g, s->unit[i].letter, s->next[column]);
	for (int u = 0; u < s->n; u++) {
		s->back[column][s->next[column][u]] = u;
	}
	if (s->unit[i].pair) {
		memcpy(s->next[column + 1], s->back[column], (size_t)s->n * sizeof(int32_t));
		memcpy(s->back[column + 1], s->next[column], (size_t)s->n * sizeof(int32_t));
	}
	s->visits += s->n;
}

static bool is_involution(const struct finder_cayley_search *s, int64_t letter)
{
	for (int i = 0; i < s->n_involutions; i++) {
		if (s->involutions[i] == letter) {
			return true;
		}
	}
	return false;
}

/* Whether a letter, or its inverse, is among the units but i. */
static bool taken(const struct finder_cayley_search *s, int64_t letter, int i)
{
	for (int k = 0; k < s->units; k++) {
		if (k != i && (s->unit[k].letter == letter ||
			       (s->unit[k].pair && s->back[column_of(s, k)][0] == letter))) {
			return true;
		}
	}
	return false;
}

/* Another letter for unit i: random, or that of another unit times it. False: none found. */
static bool choose_letter(struct finder_cayley_search *s, int i)
{
	for (int try = 0; try < 20; try++) {
		int64_t letter = random_letter(s);

		if (s->both && !s->unit[i].pair) {
			letter = s->involutions[rng_below(&s->rng, (uint64_t)s->n_involutions)];
		} else if (rng_below(&s->rng, 3) == 0) {
			int k = (int)rng_below(&s->rng, (uint64_t)s->units);

			letter = s->next[column_of(s, k)][letter];
		}
		if (letter != 0 && !taken(s, letter, i) &&
		    !(s->both && s->unit[i].pair && is_involution(s, letter))) {
			s->unit[i].letter = letter;
			return true;
		}
	}
	return false;
}

/* So many units are involutions that the rest are pairs. False: the group has too few. */
static bool deal_units(struct finder_cayley_search *s)
{
	int odd = s->d % 2, spare = (s->n_involutions < s->d ? s->n_involutions : s->d) - odd;
	int single = odd;

	if (!s->both) {
		s->units = s->d;
		return true;
	}
	if (spare < 0) {
		return false;
	}
	if (rng_below(&s->rng, 2)) {
		single += 2 * (int)rng_below(&s->rng, (uint64_t)(spare / 2) + 1);
	}
	s->units = single + (s->d - single) / 2;
	for (int i = 0; i < s->units; i++) {
		s->unit[i].pair = i >= single;
	}
	return true;
}

static bool random_units(struct finder_cayley_search *s)
{
	int units;

	memset(s->unit, 0, sizeof(s->unit));
	if (!deal_units(s)) {
		return false;
	}
	units = s->units;
	for (int i = 0; i < units; i++) {
		s->units = i + 1;
		memset(s->next[column_of(s, i)], 0, (size_t)s->n * sizeof(int32_t));
		if (!choose_letter(s, i)) {
			return false;
		}
		fill_column(s, i);
	}
	return true;
}

/* ---- what a set is worth ---- */

/* Breadth first from the identity, to a depth; returns the nodes reached. */
static int reach(struct finder_cayley_search *s, int32_t *const *next, int depth)
{
	int end = 1;

	memset(s->level, -1, (size_t)s->n * sizeof(*s->level));
	s->level[0] = 0;
	s->queue[0] = 0;
	s->deepest = 0;
	for (int k = 0; k < end; k++) {
		int u = s->queue[k], t = s->level[u] + 1;

		if (t > depth) {
			break;
		}
		for (int i = 0; i < s->d; i++) {
			int v = next[i][u];

			if (s->level[v] < 0) {
				s->level[v] = (int16_t)t;
				s->letters[v] = 0;
				s->queue[end++] = v;
				s->deepest = t;
			}
			if (s->level[v] == t) {
				s->letters[v] |= (uint16_t)(1 << i);
			}
		}
	}
	s->visits += (int64_t)end * s->d;
	return end;
}

/* What the fullest set of arcs carries above its share on a level of queue[from] to queue[to],
 * in nodes times d: 0 when the level is balanced. */
static int64_t excess_of_level(struct finder_cayley_search *s, int from, int to)
{
	bool strict = s->level[s->queue[from]] == s->strict;
	int sets = 1 << s->d;
	int64_t most = 0;

	memset(s->count, 0, (size_t)sets * sizeof(*s->count));
	for (int k = from; k < to; k++) {
		s->count[s->letters[s->queue[k]]]++;
	}
	for (int i = 0; i < s->d; i++) {
		for (int x = 0; x < sets; x++) {
			s->count[x] += x >> i & 1 ? s->count[x ^ 1 << i] : 0;
		}
	}
	for (int x = 1; x < sets; x++) {
		int64_t size = __builtin_popcount((unsigned)x);
		int64_t excess = s->count[x] * s->d - (to - from) * size +
				 (strict && x != sets - 1);

		excess = (excess + size - 1) / size;
		most = excess > most ? excess : most;
	}
	s->visits += sets;
	return most;
}

/* Of all levels, the last ones first: only those are ever unbalanced in good sets. */
static int64_t excess(struct finder_cayley_search *s, int end)
{
	int64_t sum = 0;

	for (int to = end, from; to > 1; to = from) {
		for (from = to; from > 0 &&
		     s->level[s->queue[from - 1]] == s->level[s->queue[to - 1]];) {
			from--;
		}
		sum += excess_of_level(s, from, to);
	}
	return sum;
}

/* The line graph is balanced as well when the inverses of all generators are on one level, and
 * that is balanced with something to spare: there the receiving arc itself is left out. Returns
 * how far the inverses are apart. */
static int64_t aim_at_lines(struct finder_cayley_search *s)
{
	int64_t apart = 0;

	s->strict = s->lines ? s->level[s->back[0][0]] : -1;
	for (int i = 1; i < s->d && s->lines; i++) {
		apart += abs(s->level[s->back[i][0]] - s->strict);
	}
	return apart * s->n;
}

/* 0: balanced in both phases within the depth. Nodes that it does not reach weigh most. */
static int64_t cost_of(struct finder_cayley_search *s, int depth)
{
	int reached = reach(s, s->next, depth), steps = s->deepest;
	int64_t sum;

	if (reached < s->n) {
		return (int64_t)(s->n - reached) << 32;
	}
	sum = aim_at_lines(s) + excess(s, reached);
	if (sum == 0 && !s->both) {
		reached = reach(s, s->back, depth);
		sum = excess(s, reached);
	}
	s->deepest = steps;
	return sum;
}

/* ---- the search ---- */

static bool change_unit(struct finder_cayley_search *s, int *i)
{
	*i = (int)rng_below(&s->rng, (uint64_t)s->units);
	s->kept = s->unit[*i];
	if (!choose_letter(s, *i)) {
		return false;
	}
	fill_column(s, *i);
	return true;
}

/* From a random set, change after change. True: a balanced one is there. */
static bool episode(struct finder_cayley_search *s, int depth)
{
	int64_t cost, changed;
	int i, stale = 0;

	if (!random_units(s)) {
		return false;
	}
	cost = cost_of(s, depth);
	while (cost > 0 && stale < STALE && s->visits < s->max_visits) {
		if (!change_unit(s, &i)) {
			return false;
		}
		changed = cost_of(s, depth);
		stale = changed < cost ? 0 : stale + 1;
		if (changed > cost) {
			s->unit[i] = s->kept;
			fill_column(s, i);
		} else {
			cost = changed;
		}
	}
	return cost == 0;
}

static void take_group(struct finder_cayley_search *s, const struct topo_cayley_group *g)
{
	s->g = g;
	s->n_involutions = 0;
	for (int u = 1; u < s->n && s->both; u++) {
		if (topo_cayley_inverse(g, u) == u) {
			s->involutions[s->n_involutions++] = u;
		}
	}
	s->visits += s->both ? 8 * s->n : 0;
}

static int cmp_score(const void *a, const void *b)
{
	const struct finder_group *x = a, *y = b;

	if (x->score != y->score) {
		return x->score > y->score ? -1 : 1;
	}
	return x->number - y->number;
}

/* Best first: by the nodes that random sets reach within a little more than the bound. */
static void judge_groups(struct finder_cayley_search *s, struct finder_groups *groups, int depth)
{
	for (size_t i = 0; i < groups->n; i++) {
		struct finder_group *g = &groups->v[i];

		g->number = (int)i;
		take_group(s, &g->g);
		for (int k = 0; k < TRIES && random_units(s); k++) {
			g->score += reach(s, s->next, depth);
		}
	}
	qsort(groups->v, groups->n, sizeof(*groups->v), cmp_score);
}

static void save(const struct finder_cayley_search *s, struct finder_cayley *out)
{
	out->g = *s->g;
	out->both = s->both;
	out->steps = s->deepest;
	out->n_letters = s->units;
	for (int i = 0; i < s->units; i++) {
		int k = i;

		for (; k > 0 && out->letter[k - 1] > s->unit[i].letter; k--) {
			out->letter[k] = out->letter[k - 1];
		}
		out->letter[k] = s->unit[i].letter;
	}
}

/* Depths between the bound and one less than what is there; groups by rank, the first ones
 * more often. */
static void search(struct finder_cayley_search *s, const struct finder_groups *groups, int bound,
		   struct finder_cayley *out)
{
	int kept = groups->n < KEPT_GROUPS ? (int)groups->n : KEPT_GROUPS;

	while (s->visits < s->max_visits && out->steps > bound && kept > 0) {
		int most = out->steps == INT_MAX ? bound + 6 : out->steps - 1;
		int depth = bound + (int)rng_below(&s->rng, (uint64_t)(most - bound) + 1);
		int rank = (int)rng_below(&s->rng, 1 + rng_below(&s->rng, (uint64_t)kept));

		s->visits++;
		take_group(s, &groups->v[rank].g);
		if (episode(s, depth)) {
			save(s, out);
		}
	}
}

static int make_room(struct finder_cayley_search *s)
{
	for (int i = 0; i < s->d; i++) {
		arrays_add(&s->arrays, s->next[i], s->n);
		arrays_add(&s->arrays, s->back[i], s->n);
	}
	arrays_add(&s->arrays, s->level, s->n);
	arrays_add(&s->arrays, s->letters, s->n);
	arrays_add(&s->arrays, s->queue, s->n);
	arrays_add(&s->arrays, s->involutions, s->n);
	arrays_add(&s->arrays, s->count, 1 << s->d);
	return s->arrays.failed ? WEFT_ENOMEM : 0;
}

int finder_cayley_search(int n, int ports, enum finder_cayley_aim aim, int bound, uint64_t seed,
			 int64_t max_visits, struct finder_cayley *out, struct err *err)
{
	struct finder_cayley_search s = { .n = n, .d = ports, .both = aim == FINDER_CAYLEY_BOTH,
					  .lines = aim == FINDER_CAYLEY_LINES,
					  .max_visits = max_visits };
	struct finder_groups groups = { 0 };
	int rc = 0;

	if (ports < 2 || ports > MAX_D || n < 6) {
		return 0;
	}
	rng_seed(&s.rng, ((uint64_t)n * 64 + (uint64_t)ports * 4 + aim) ^ rng_mix(seed));
	if (make_room(&s) || finder_list_groups(n, &s.rng, &groups)) {
		rc = err_nomem(err);
		goto out;
	}
	judge_groups(&s, &groups, bound + 1);
	search(&s, &groups, bound, out);
out:
	arrays_fini(&s.arrays);
	vec_fini(&groups);
	return rc;
}

/* ---- one set ---- */

/* Fills s->unit, and s->d with the arcs out of a node. */
static int take_letters(struct finder_cayley_search *s, const int64_t *letters, int n_letters,
			struct err *err)
{
	for (int i = 0; i < n_letters; i++) {
		int64_t x = letters[i];
		bool pair;

		if (x <= 0 || x >= s->n) {
			return err_set(err, WEFT_EINVAL, "generator %" PRId64 ": expected an "
				       "element from 1 to %d", x, s->n - 1);
		}
		pair = s->both && topo_cayley_inverse(s->g, x) != x;
		if (s->d + 1 + pair > MAX_D) {
			return err_set(err, WEFT_EINVAL, "more than %d arcs of a node", MAX_D);
		}
		s->unit[i] = (struct finder_unit){ x, pair };
		s->d += 1 + pair;
	}
	return 0;
}

int finder_cayley_check(const struct topo_cayley_group *g, bool both, const int64_t *letters,
			int n_letters, bool lines, int *steps, bool *balanced, struct err *err)
{
	struct finder_cayley_search s = { .n = (int)topo_cayley_order(g), .both = both,
					  .lines = lines, .g = g };
	int rc = take_letters(&s, letters, n_letters, err);

	if (rc) {
		return rc;
	}
	if (make_room(&s)) {
		rc = err_nomem(err);
		goto out;
	}
	for (int i = 0; i < n_letters; i++) {
		if (taken(&s, letters[i], i)) {
			rc = err_set(err, WEFT_EINVAL, "generator %" PRId64 " is there twice",
				     letters[i]);
			goto out;
		}
		s.units++;
		fill_column(&s, i);
	}
	if (reach(&s, s.next, INT16_MAX - 1) < s.n) {
		rc = err_set(err, WEFT_EINVAL, "these generators do not reach all nodes");
		goto out;
	}
	*steps = s.deepest;
	*balanced = cost_of(&s, s.deepest) == 0;
out:
	arrays_fini(&s.arrays);
	return rc;
}
