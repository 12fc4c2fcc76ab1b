/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Levels of a Cayley graph, breadth first from the identity, and whether broadcast along
 * them meets the bandwidth bound. A level is balanced when Hall's condition holds for every set of
 * arcs: not more of its nodes may be reachable only over these than their share (eq. (3) of
 * direct-connect-topologies). For all-gathers the arcs of a node are the last letters of the
 * shortest words that lead to it; for reduce-scatters the first ones, which are the last letters in
 * the digraph of the inverse generators.
 *
 * Millions of sets of generators are measured, so the loops that go over nodes have no branch
 * that depends on them.
 */
#include <stdlib.h>
#include <string.h>

#include "collective/finder/private.h"

#define NONE UINT16_MAX

void finder_levels_room(struct finder_levels *l, int n, int d, bool both, struct arrays *arrays)
{
	l->n = n;
	l->d = d;
	l->both = both;
	arrays_add(arrays, l->level, l->n);
	arrays_add(arrays, l->queue, l->n + 1);
	arrays_add(arrays, l->start, l->n + 2);
	arrays_add(arrays, l->count, 1 << l->d);
}

/* Adds what one step by each generator reaches to the queue, whose nodes from `from` are of level
 * t - 1. Returns its end. */
static int step(struct finder_levels *l, const uint16_t *const *next, int from, int to, int t)
{
	uint16_t *level = l->level, *queue = l->queue;
	int end = to;

	for (int i = 0; i < l->d; i++) {
		const uint16_t *by = next[i];

		for (int k = from; k < to; k++) {
			int v = by[queue[k]], old = level[v];

			queue[end] = (uint16_t)v;
			end += old == NONE;
			level[v] = (uint16_t)(old == NONE ? t : old);
		}
	}
	l->visits += (int64_t)(to - from) * l->d;
	return end;
}

/* Whether so many nodes, the last `fresh` of them on a level, can become `least` in so many steps
 * more, were all further ones different. */
static bool can_reach(const struct finder_levels *l, int nodes, int fresh, int steps, int least)
{
	int64_t all = nodes, level = fresh;

	for (; steps > 0 && all < least && level > 0; steps--) {
		level *= l->both ? l->d - 1 : l->d;
		all += level;
	}
	return all >= least;
}

int finder_levels_reach(struct finder_levels *l, bool inverse, int depth, int least)
{
	int from = 0, to = 1, t = 0;

	memset(l->level, 0xff, (size_t)l->n * sizeof(*l->level));
	l->level[0] = 0;
	l->queue[0] = 0;
	l->start[0] = 0;
	l->start[1] = 1;
	while (t < depth && from < to && to < l->n && can_reach(l, to, to - from, depth - t,
								least)) {
		int end = step(l, inverse ? l->back : l->next, from, to, ++t);

		from = to;
		to = end;
		l->start[t + 1] = to;
	}
	l->deepest = from < to ? t : t - 1;
	return to;
}

/* The nodes of level t by the sets of letters that may be last. */
static void count_letters(struct finder_levels *l, const uint16_t *const *back, int t)
{
	memset(l->count, 0, sizeof(*l->count) << l->d);
	for (int k = l->start[t]; k < l->start[t + 1]; k++) {
		int v = l->queue[k];
		unsigned letters = 0;

		for (int i = 0; i < l->d; i++) {
			letters |= (unsigned)(l->level[back[i][v]] == t - 1) << i;
		}
		l->count[letters]++;
	}
	l->visits += (int64_t)(l->start[t + 1] - l->start[t]) * l->d;
}

/* What the fullest set of arcs carries above its share on level t, in nodes times d: 0 when it
 * is balanced. */
static int64_t excess_of_level(struct finder_levels *l, const uint16_t *const *back, int t,
			       bool strict)
{
	int nodes = l->start[t + 1] - l->start[t], sets = 1 << l->d;
	int64_t most = 0;

	count_letters(l, back, t);
	for (int i = 0; i < l->d; i++) {
		for (int x = 0; x < sets; x++) {
			l->count[x] += x >> i & 1 ? l->count[x ^ 1 << i] : 0;
		}
	}
	for (int x = 1; x < sets; x++) {
		int64_t size = __builtin_popcount((unsigned)x);
		int64_t excess = (int64_t)l->count[x] * l->d - nodes * size +
				 (strict && x != sets - 1);

		if (excess > 0) {
			excess = (excess + size - 1) / size;
			most = excess > most ? excess : most;
		}
	}
	l->visits += sets;
	return most;
}

/* A level of as many nodes as there are words is balanced: every word has its own. */
static bool is_full(const struct finder_levels *l, int t)
{
	int64_t words = l->d;

	for (int i = 1; i < t && words <= l->n; i++) {
		words *= l->both ? l->d - 1 : l->d;
	}
	return l->start[t + 1] - l->start[t] == words;
}

/* Of all levels, the last ones first: only those are ever unbalanced in good sets. On level
 * `strict` no set of arcs but all may have all its share; -1: on none. */
static int64_t excess(struct finder_levels *l, bool inverse, int strict)
{
	int64_t sum = 0;

	for (int t = l->deepest; t > 0; t--) {
		if (t == strict || !is_full(l, t)) {
			sum += excess_of_level(l, inverse ? l->next : l->back, t, t == strict);
		}
	}
	return sum;
}

int64_t finder_levels_imbalance(struct finder_levels *l, bool lines)
{
	int strict = lines ? l->level[l->back[0][0]] : -1, steps = l->deepest;
	int64_t sum = 0;

	/* The line graph is balanced as well when the inverses of all generators are on one level,
	 * and that is balanced with something to spare: there the receiving arc itself is left
	 * out. */
	for (int i = 1; i < l->d && lines; i++) {
		sum += (int64_t)abs(l->level[l->back[i][0]] - strict) * l->n;
	}
	sum += excess(l, false, strict);
	if (sum == 0 && !l->both) {
		finder_levels_reach(l, true, steps, l->n);
		sum = excess(l, true, strict);
		l->deepest = steps;
	}
	return sum;
}
