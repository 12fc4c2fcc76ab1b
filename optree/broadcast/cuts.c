/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What relaying costs a broadcast on a ring: a bound on the time of the data of
 * S rounds, whatever the lightpaths and however long each round is.
 *
 * A cut is a node v and, in each round k, an interval of nodes around v that
 * shrinks: what v has in the end came into the interval from outside, so the
 * whole vector crosses into it, over lightpaths from a node that was outside
 * when the round began to one that is inside when it has ended. From all nodes
 * but the root the interval shrinks to v, by a node at each end in a round,
 * beginning in round m. Take all cuts with v = 1..n-1 and m from 1 - E(v) to
 * S - 1, with E(v) = max(n - 3, 2 max(v, n - v) - 4), M in all, and ask how much
 * of the vector a lightpath can bring into them together.
 *
 * Clockwise, from one node to the next, it enters the interval of a cut whose
 * end lies there and stays there in round k. In every round from the first on
 * each v has v - 1 cuts whose end moves, so
 * all links together are such ends in M - (n - 1)(n - 2)/2 cuts. A longer lightpath
 * gains nothing: it also crosses into cuts whose end moves on within its
 * length, but not into those that ended short of its sink already, and E(v)
 * makes these as many (and one more for n < 5). In round 0 light comes from the root
 * only, whose link can be given the price of all links, as no node is in more
 * intervals of time 1 than that. The tests go through all lightpaths and cuts.
 *
 * So the data takes M / (M - (n - 1)(n - 2)/2) times as long as it takes to
 * receive it, about 1 + (n - 2)/(2S + 2n - 8).
 */
#include "optree/broadcast/broadcast.h"

int64_t broadcast_cut_rounds(int n, int v)
{
	int far = v > n - v ? v : n - v;
	int more = 2 * far - 4 > n - 3 ? 2 * far - 4 : n - 3;

	return more + (n < 5);
}

void broadcast_cuts(int n, int64_t rounds, int64_t *all, int64_t *still)
{
	*all = 0;
	for (int v = 1; v < n; v++) {
		*all += rounds - 1 + broadcast_cut_rounds(n, v);
	}
	*still = *all - (int64_t)(n - 1) * (n - 2) / 2;
}
