/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How an item reaches all nodes of a ring in a number of rounds at the least
 * cost: what a round adds, by the prices of links and nodes. All arrays by
 * numbers of nodes are convex, so that the last node reached from one end is
 * found by a queue of candidates, and gaps are filled by joining slopes in their
 * order. Where rounding were to make an array not convex, it is lowered to the
 * convex one below it, which keeps a bound a bound.
 */
#include <stdlib.h>

#include "lib/base/alloc.h"
#include "optree/spread/spread.h"

/* The largest convex function that is nowhere above v. Nothing where v is
 * convex. O(n). */
static void make_convex(int64_t *v, int n, struct spread_candidate *corner)
{
	int k = 0, bend = 1;

	while (bend + 1 < n && v[bend] - v[bend - 1] <= v[bend + 1] - v[bend]) {
		bend++;
	}
	if (bend + 1 >= n) {
		return;
	}
	for (int i = 0; i < n; i++) {
		while (k > 1) {
			int a = corner[k - 2].last, b = corner[k - 1].last;

			if ((__int128)(v[b] - v[a]) * (i - b) < (__int128)(v[i] - v[b]) * (b - a)) {
				break;
			}
			k--;
		}
		corner[k++].last = i;
	}
	for (int c = 0; c + 1 < k; c++) {
		int a = corner[c].last, b = corner[c + 1].last;
		__int128 rise = v[b] - v[a];

		for (int i = a + 1; i < b; i++) {
			v[i] = v[a] + (int64_t)(rise * (i - a) / (b - a));
		}
	}
}

/* The node `to` is reached last, the node `last` before it; without the
 * price of the former. */
static int64_t reach_last(const struct spread *s, const int64_t *gap, int last, int to)
{
	return s->side[last] + gap[to - last - 1];
}

/* Puts the node p into the queue, head..*tail, for the nodes after it. */
static void add_candidate(const struct spread *s, const int64_t *gap, int p, int head, int *tail)
{
	struct spread_candidate *q = s->queue;
	int low, high = s->n;

	while (*tail > head) {
		low = q[*tail - 1].since > p ? q[*tail - 1].since : p + 1;
		if (low >= s->n || reach_last(s, gap, p, low) >
					   reach_last(s, gap, q[*tail - 1].last, low)) {
			break;
		}
		high = low;
		(*tail)--;
	}
	if (*tail == head) {
		q[(*tail)++] = (struct spread_candidate){ p, p + 1 };
		return;
	}
	low = q[*tail - 1].since > p ? q[*tail - 1].since : p + 1;
	while (high - low > 1) {
		int mid = low + (high - low) / 2;

		if (reach_last(s, gap, p, mid) <= reach_last(s, gap, q[*tail - 1].last, mid)) {
			high = mid;
		} else {
			low = mid;
		}
	}
	if (high < s->n) {
		q[(*tail)++] = (struct spread_candidate){ p, high };
	}
}

/* s->side of a round at these prices, before others that leave `gap`. O(n log n). */
static void one_side(struct spread *s, const int64_t *gap, const struct spread_price *price)
{
	int head = 0, tail = 1;

	s->side[0] = 0;
	s->queue[0] = (struct spread_candidate){ 0, 1 };
	for (int p = 1; p < s->n; p++) {
		while (head + 1 < tail && s->queue[head + 1].since <= p) {
			head++;
		}
		s->before[p] = s->queue[head].last;
		s->side[p] = p > s->reach ? s->side[p - 1] + SPREAD_NEVER
					  : reach_last(s, gap, s->queue[head].last, p) +
						    price->link * p + price->node;
		add_candidate(s, gap, p, head, &tail);
	}
	make_convex(s->side, s->n, s->queue);
}

/* Joins `times` such sides and one `rest` in the order of their slopes: the least sum for each
 * number of nodes. */
static void join(const struct spread *s, int times, const int64_t *rest, int64_t *out)
{
	int sides = 0, rests = 0;

	out[0] = 0;
	for (int g = 1; g < s->n; g++) {
		int k = sides / times;
		int64_t a = k + 1 < s->n ? s->side[k + 1] - s->side[k] : SPREAD_NEVER;
		int64_t b = rests + 1 < s->n ? rest[rests + 1] - rest[rests] : SPREAD_NEVER;

		out[g] = out[g - 1] + (a <= b ? a : b);
		sides += a <= b;
		rests += a > b;
	}
}

void spread_round(struct spread *s, const struct spread_left *later,
		  const struct spread_price *price, struct spread_left *out)
{
	one_side(s, later->gap, price);
	join(s, 2, later->gap, out->gap);
	if (out->tail) {
		join(s, 1, later->tail, out->tail);
	}
}

void spread_init(struct spread *s, int n, int reach)
{
	*s = (struct spread){
		.n = n, .reach = reach,
		.side = x_new((size_t)n, sizeof(*s->side)),
		.before = x_new((size_t)n, sizeof(*s->before)),
		.queue = x_new((size_t)n + 1, sizeof(*s->queue)),
	};
}

void spread_fini(struct spread *s)
{
	free(s->side);
	free(s->before);
	free(s->queue);
}
