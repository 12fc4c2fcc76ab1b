/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Circulants of small diameter.
 *
 * All nodes are alike, so one search from node 0 gives diameter and distances. A
 * set of nodes is a row of n bits, written twice, so that what lies one offset
 * further is a window of it: a step of the search is an OR of shifted words for
 * every offset. Sets of offsets that are likely to be good (powers of a number,
 * which reach far in few steps, also roots of one modulo n) are tried first, then
 * neighbours and random ones; the best are improved by changing one offset at a
 * time. The search is deterministic: its random numbers are seeded by n.
 */
#include "collective/finder/private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collective/bfb/balance.h"
#include "collective/schedule/schedule.h"
#include "lib/base/alloc.h"
#include "lib/base/number/rng.h"
#include "lib/base/number/rat.h"

#define RANDOM_SETS 24
#define CHANGES 120
#define MAX_ROOT 40	/* powers of 2 .. this modulo n */

struct finder_circulant_pool {
	int n, ports, words;
	bool both;
	int n_offsets;
	uint64_t *reach;	/* bit v: v is reached; then once more from
				 * bit n on, so that any rotation is a window */
	uint64_t *next;
	struct finder_circulant *kept;
	int n_kept;
	struct rng rng;
};

/* ---- distances by sets of bits ---- */

/* Writes the n bits of `from` twice. */
static void write_twice(const struct finder_circulant_pool *s, const uint64_t *from)
{
	uint64_t *to = s->reach;
	int at = s->n / 64, by = s->n % 64;

	memset(to, 0, (2 * (size_t)s->words + 2) * sizeof(*to));
	memcpy(to, from, (size_t)s->words * sizeof(*to));
	for (int i = 0; i < s->words; i++) {
		to[at + i] |= from[i] << by;
		to[at + i + 1] |= by ? from[i] >> (64 - by) : 0;
	}
}

/* Adds to `next` what is one offset further. */
static void add_turned(const struct finder_circulant_pool *s, int offset)
{
	int at = (s->n - offset) / 64, by = (s->n - offset) % 64;
	const uint64_t *from = s->reach + at;

	for (int i = 0; i < s->words; i++) {
		s->next[i] |= by ? from[i] >> by | from[i + 1] << (64 - by)
				 : from[i];
	}
	if (s->n % 64) {
		s->next[s->words - 1] &= (UINT64_C(1) << s->n % 64) - 1;
	}
}

static int count_reached(const struct finder_circulant_pool *s)
{
	int sum = 0;

	for (int i = 0; i < s->words; i++) {
		sum += __builtin_popcountll(s->next[i]);
	}
	return sum;
}

/* The worst of those kept, when there is no room for more. */
static const struct finder_circulant *to_beat(const struct finder_circulant_pool *s)
{
	return s->n_kept == FINDER_CIRCULANT_KEPT ? &s->kept[s->n_kept - 1] : NULL;
}

/* Fills steps and distances; false when not connected or no better than what
 * is kept. */
static bool measure(const struct finder_circulant_pool *s, struct finder_circulant *c)
{
	const struct finder_circulant *worst = to_beat(s);
	int reached = 1, before = 0;

	memset(s->next, 0, (size_t)s->words * sizeof(*s->next));
	s->next[0] = 1;
	c->steps = 0;
	c->distances = 0;
	while (reached < s->n && reached > before) {
		c->distances += s->n - reached;
		if (worst && c->distances >= worst->distances && c->steps + 1 >= worst->steps) {
			return false;
		}
		write_twice(s, s->next);
		for (int k = 0; k < c->n_offsets; k++) {
			add_turned(s, c->offset[k]);
			if (s->both) {
				add_turned(s, s->n - c->offset[k]);
			}
		}
		before = reached;
		reached = count_reached(s);
		c->steps++;
	}
	return reached == s->n;
}

/* ---- sets of offsets ---- */

static bool better(const struct finder_circulant *a, const struct finder_circulant *b)
{
	return a->steps != b->steps ? a->steps < b->steps
				    : a->distances < b->distances;
}

static int cmp_int(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

/* Puts c among those kept, when it is one of the best and new. */
static void offer(struct finder_circulant_pool *s, struct finder_circulant *c)
{
	int k = 0;

	qsort(c->offset, (size_t)c->n_offsets, sizeof(*c->offset), cmp_int);
	for (int i = 1; i < c->n_offsets; i++) {
		if (c->offset[i] == c->offset[i - 1]) {
			return;
		}
	}
	if (!measure(s, c)) {
		return;
	}
	while (k < s->n_kept && !better(c, &s->kept[k])) {
		if (memcmp(c->offset, s->kept[k].offset,
			   (size_t)c->n_offsets * sizeof(*c->offset)) == 0) {
			return;
		}
		k++;
	}
	if (k == FINDER_CIRCULANT_KEPT) {
		return;
	}
	s->n_kept += s->n_kept < FINDER_CIRCULANT_KEPT;
	memmove(&s->kept[k + 1], &s->kept[k], (size_t)(s->n_kept - k - 1) * sizeof(*s->kept));
	s->kept[k] = *c;
}

/* Offsets that one can choose: with an odd number of ports in both directions, n/2 is
 * always among the set. */
static int n_free(const struct finder_circulant_pool *s)
{
	return s->both ? s->ports / 2 : s->ports;
}

static int largest(const struct finder_circulant_pool *s)
{
	return s->both ? (s->n - 1) / 2 : s->n - 1;
}

static struct finder_circulant empty(const struct finder_circulant_pool *s)
{
	struct finder_circulant c = { .n = s->n, .both = s->both,
			       .n_offsets = s->n_offsets };

	if (s->n_offsets > n_free(s)) {
		c.offset[s->n_offsets - 1] = s->n / 2;
	}
	return c;
}

/* The number, or when both directions count its negative, as an offset; 0: none. */
static int as_offset(const struct finder_circulant_pool *s, int64_t x)
{
	int v = (int)(x % s->n);

	v = s->both && v > s->n / 2 ? s->n - v : v;
	return v <= largest(s) ? v : 0;
}

/* 1, g, g^2, ... modulo n. */
static void offer_powers(struct finder_circulant_pool *s, int64_t g)
{
	struct finder_circulant c = empty(s);
	int64_t x = 1;

	for (int i = 0; i < n_free(s); i++, x = x * g % s->n) {
		c.offset[i] = as_offset(s, x);
		if (!c.offset[i]) {
			return;
		}
	}
	offer(s, &c);
}

static void offer_neighbours(struct finder_circulant_pool *s, int first)
{
	struct finder_circulant c = empty(s);

	for (int i = 0; i < n_free(s); i++) {
		c.offset[i] = first + i;
	}
	if (first + n_free(s) - 1 <= largest(s)) {
		offer(s, &c);
	}
}

static int draw(struct finder_circulant_pool *s)
{
	return 1 + (int)rng_below(&s->rng, (uint64_t)largest(s));
}

static void offer_random(struct finder_circulant_pool *s)
{
	struct finder_circulant c = empty(s);

	for (int i = 0; i < n_free(s); i++) {
		c.offset[i] = draw(s);
	}
	offer(s, &c);
}

/* One offset of one of the best changes. */
static void offer_change(struct finder_circulant_pool *s)
{
	struct finder_circulant c = s->kept[rng_below(&s->rng, (uint64_t)s->n_kept)];
	int k = (int)rng_below(&s->rng, (uint64_t)c.n_offsets);

	if (!c.both || c.offset[k] * 2 != c.n) {
		c.offset[k] = draw(s);
		offer(s, &c);
	}
}

/* As many as the numbers of so many offsets have within `steps` of 0, were
 * all sums different. */
static bool has_min_steps(const struct finder_circulant_pool *s, int steps)
{
	/* Of exactly so many steps, by the offsets so far. */
	int64_t within[FINDER_CIRCULANT_MAX_PORTS + 1] = { 0 }, sum;
	int k = s->n_offsets;

	steps--;
	if (steps > FINDER_CIRCULANT_MAX_PORTS) {
		return false;
	}
	within[0] = 1;
	for (int i = 0; i < k; i++) {
		sum = 0;
		for (int t = 0; t <= steps; t++) {
			int64_t old = within[t];

			within[t] += s->both ? 2 * sum : sum;
			within[t] = within[t] > s->n ? s->n : within[t];
			sum += old;
		}
	}
	sum = 0;
	for (int t = 0; t <= steps; t++) {
		sum += within[t];
	}
	return sum < s->n;
}

static void run(struct finder_circulant_pool *s)
{
	for (int g = 2; g <= MAX_ROOT && g < s->n; g++) {
		offer_powers(s, g);
	}
	for (int m = 1; m <= 8; m++) {
		offer_neighbours(s, m);
	}
	for (int i = 0; i < RANDOM_SETS; i++) {
		offer_random(s);
	}
	for (int i = 0; i < CHANGES && s->n_kept > 0; i++) {
		if (s->n_kept == FINDER_CIRCULANT_KEPT && i % 16 == 0 &&
		    has_min_steps(s, s->kept[FINDER_CIRCULANT_KEPT - 1].steps)) {
			break;
		}
		offer_change(s);
	}
}

int finder_circulant_search(int n, int ports, bool both, struct finder_circulant *out)
{
	struct finder_circulant_pool s = { .n = n, .ports = ports, .both = both,
			    .words = (n + 63) / 64, .kept = out };
	bool half = both && ports % 2;

	s.n_offsets = n_free(&s) + half;
	if (ports < 1 || ports > FINDER_CIRCULANT_MAX_PORTS ||
	    (half && n % 2) || n_free(&s) > largest(&s) || n_free(&s) < 1) {
		return 0;
	}
	rng_seed(&s.rng, (uint64_t)n << 32 | (uint64_t)ports << 1 | both);
	s.reach = x_alloc(2 * (size_t)s.words + 2, sizeof(*s.reach));
	s.next = x_alloc((size_t)s.words, sizeof(*s.next));
	run(&s);
	free(s.reach);
	free(s.next);
	return s.n_kept;
}

/* ---- what broadcast takes ---- */

struct finder_level {
	int32_t *queue, *dist;
	uint64_t *usable;
};

/* Offsets of the arcs out of a node. */
static int list_ports(const struct finder_circulant *c, int *port)
{
	int n = 0;

	for (int i = 0; i < c->n_offsets; i++) {
		port[n++] = c->offset[i];
		if (c->both && c->offset[i] * 2 != c->n) {
			port[n++] = c->n - c->offset[i];
		}
	}
	return n;
}

/* Breadth-first from 0, the arcs as they are: from a node that takes its
 * mirror image. A number can use the ports that may stand first. */
static void load_levels(const struct finder_circulant *c, const int *port, int ports,
			const struct finder_level *l)
{
	int tail = 1;

	for (int v = 0; v < c->n; v++) {
		l->dist[v] = -1;
	}
	l->dist[0] = 0;
	l->queue[0] = 0;
	for (int head = 0; head < tail; head++) {
		int x = l->queue[head];

		for (int i = 0; i < ports; i++) {
			int v = x + port[i] - (x + port[i] >= c->n ? c->n : 0);

			if (l->dist[v] < 0) {
				l->dist[v] = l->dist[x] + 1;
				l->queue[tail++] = v;
				l->usable[v] = 0;
			}
			if (l->dist[v] == l->dist[x] + 1) {
				l->usable[v] |= x ? l->usable[x]
						  : UINT64_C(1) << i;
			}
		}
	}
}

static struct bfb_ratio plus(struct bfb_ratio a, struct bfb_ratio b)
{
	int64_t den = a.den / rat_gcd(a.den, b.den) * b.den;
	int64_t num = a.num * (den / a.den) + b.num * (den / b.den);
	int64_t common = rat_gcd(den, num);

	return (struct bfb_ratio){ num / common, den / common };
}

/* The least load of the numbers queue[from .. to - 1]. */
static void solve_level(struct bfb_level *s, const struct finder_level *l, int from, int to,
			int ports, const int64_t *cap, struct bfb_ratio *load)
{
	int64_t common = rat_gcd(ports, to - from);
	bool fits = false;

	bfb_level_begin(s, ports, cap, to - from);
	*load = (struct bfb_ratio){ (to - from) / common, ports / common };
	for (int i = from; i < to; i++) {
		bfb_level_add(s, l->usable[l->queue[i]]);
	}
	while (!fits) {
		bfb_level_fits(s, load, &fits);
	}
}

struct bfb_ratio finder_circulant_factor(struct finder_circulant *c)
{
	size_t n = (size_t)c->n;
	struct finder_level l = { x_alloc(n, sizeof(*l.queue)),
				  x_alloc(n, sizeof(*l.dist)),
				  x_alloc(n, sizeof(*l.usable)) };
	struct bfb_level s = { 0 };
	int port[FINDER_CIRCULANT_MAX_PORTS], ports = list_ports(c, port), to;
	int64_t cap[FINDER_CIRCULANT_MAX_PORTS];
	struct bfb_ratio sum = { 0, 1 }, load;

	for (int i = 0; i < ports; i++) {
		cap[i] = 1;
	}
	load_levels(c, port, ports, &l);
	c->steps = l.dist[l.queue[c->n - 1]];
	for (int from = 1; from < c->n; from = to) {
		for (to = from; to < c->n && l.dist[l.queue[to]] == l.dist[l.queue[from]]; to++) {
		}
		solve_level(&s, &l, from, to, ports, cap, &load);
		sum = plus(sum, load);
	}
	free(l.queue);
	free(l.dist);
	free(l.usable);
	bfb_level_fini(&s);
	return plus((struct bfb_ratio){ sum.num * ports, sum.den * c->n },
		    (struct bfb_ratio){ 0, 1 });
}

bool finder_name_circulant(struct finder_candidate *k, const struct finder_circulant *c)
{
	size_t len;

	if (!finder_name(k, "%sC(%d,{", c->both ? "" : "Di", c->n)) {
		return false;
	}
	for (int i = 0; i < c->n_offsets; i++) {
		len = strlen(k->expr);
		snprintf(k->expr + len, sizeof(k->expr) - len, "%d%s",
			 c->offset[i], i + 1 < c->n_offsets ? "," : "})");
	}
	return strlen(k->expr) < FINDER_MAX_EXPR - 1;
}
