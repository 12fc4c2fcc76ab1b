/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bounds by steps against what tries to get below them: all ways to spread what nodes have in few
 * steps, searched through, for volume; schedules that are changed at random while they get faster,
 * for time. What nodes have is joined here as sets, which is easier than sums.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <math.h>

#include "collective/bound/bound.h"

#define MAX_N 16
#define MAX_STEPS 5
#define MAX_PIECES 4

/* A torus of up to two dimensions, or a mesh, or a ring of one direction, or all joined to all. */
struct world {
	const char *name;
	int n, x, y;	/* x * y = n */
	bool directed, complete, open;
	bool near;	/* messages go to neighbours only; else as far as one likes */
};

static int along(const struct world *w, int size, int from, int to)
{
	int up = (to - from + size) % size;

	if (w->open) {
		return abs(to - from);
	}
	return w->directed || up <= size - up ? up : size - up;
}

static int distance(const struct world *w, int u, int v)
{
	if (w->complete) {
		return u != v;
	}
	return along(w, w->x, u % w->x, v % w->x) + along(w, w->y, u / w->x, v / w->x);
}

static struct bound_net net_of(const struct world *w, int64_t *within)
{
	struct bound_net net = { .ranks = w->n, .within = within, .alike = true, .sums = true,
				 .widest = 1 };

	memset(within, 0, MAX_N * sizeof(*within));
	for (int v = 0; v < w->n; v++) {
		int d = distance(w, 0, v);

		net.diameter = d > net.diameter ? d : net.diameter;
		net.degree += d == 1;
		for (int j = d; j < MAX_N; j++) {
			within[j]++;
		}
	}
	net.capacity = (double)net.degree * w->n;
	return net;
}

/* Of a mesh, whose nodes are unlike: the largest balls, and the most hops that a permutation has
 * from every node, of all that add a number to its coordinates. */
static void set_pairs(const struct world *w, struct bound_net *net, int64_t *balls)
{
	net->alike = false;
	net->degree = (w->x > 2 ? 2 : 1) + (w->y > 2 ? 2 : w->y - 1);
	net->capacity = 2.0 * ((w->x - 1) * w->y + (w->y - 1) * w->x);
	for (int shift = 1; shift < w->n; shift++) {
		int least = MAX_N;

		for (int u = 0; u < w->n; u++) {
			int x = (u % w->x + shift % w->x) % w->x;
			int y = (u / w->x + shift / w->x) % w->y;
			int d = distance(w, u, y * w->x + x);

			least = d < least ? d : least;
		}
		net->pair_hops = least > net->pair_hops ? least : net->pair_hops;
	}
	memset(balls, 0, MAX_N * sizeof(*balls));
	for (int u = 0; u < w->n; u++) {
		int64_t ball[MAX_N] = { 0 };

		for (int v = 0; v < w->n; v++) {
			for (int j = distance(w, u, v); j < MAX_N; j++) {
				ball[j]++;
			}
		}
		for (int j = 0; j < MAX_N; j++) {
			balls[j] = ball[j] > balls[j] ? ball[j] : balls[j];
		}
	}
	balls[net->pair_hops] = w->n;
	net->pair_within = balls;
}

static const struct world worlds[] = {
	{ "ring of 3", 3, 3, 1, .near = false },
	{ "ring of 4", 4, 4, 1, .near = false },
	{ "directed ring of 3", 3, 3, 1, true, .near = false },
	{ "directed ring of 4", 4, 4, 1, true, .near = false },
	{ "complete of 4", 4, 4, 1, .complete = true },
	{ "ring of 5", 5, 5, 1, .near = false },
	{ "directed ring of 5", 5, 5, 1, true, .near = false },
	{ "ring of 6", 6, 6, 1, .near = false },
	{ "ring of 8", 8, 8, 1, .near = false },
	{ "torus 3x3", 9, 3, 3, .near = false },
	{ "torus 4x3", 12, 4, 3, .near = false },
	{ "torus 4x4", 16, 4, 4, .near = false },
};

#define WORLDS (sizeof(worlds) / sizeof(worlds[0]))

static const struct world unlike[] = {
	{ "path of 3", 3, 3, 1, .open = true }, { "path of 4", 4, 4, 1, .open = true },
	{ "path of 5", 5, 5, 1, .open = true }, { "path of 6", 6, 6, 1, .open = true },
	{ "mesh 3x3", 9, 3, 3, .open = true }, { "mesh 5x3", 15, 5, 3, .open = true },
	{ "mesh 4x4", 16, 4, 4, .open = true },
};

#define UNLIKE (sizeof(unlike) / sizeof(unlike[0]))

/* ---- volume ---- */

/* Hops to v from the nodes of a set; -1: not all can send to it. */
static int hops_from(const struct world *w, unsigned set, int v)
{
	int hops = 0;

	for (int u = 0; u < w->n; u++) {
		if (set >> u & 1) {
			if (w->near && distance(w, u, v) != 1) {
				return -1;
			}
			hops += distance(w, u, v);
		}
	}
	return hops;
}

/* What it takes at least that v gets all of what others have. */
static int last_step(const struct world *w, const unsigned *has, int v)
{
	unsigned all = (1U << w->n) - 1;
	int best = INT32_MAX;

	for (unsigned from = 0; from <= all; from++) {
		unsigned got = has[v];
		int hops = hops_from(w, from, v);

		for (int u = 0; u < w->n; u++) {
			got |= from >> u & 1 ? has[u] : 0;
		}
		best = got == all && hops >= 0 && hops < best ? hops : best;
	}
	return best;
}

static int min_volume(const struct world *w, const unsigned *has, int steps, int below);

/* Chooses who sends to nodes v, v + 1, .. in this step. */
static int choose(const struct world *w, const unsigned *has, unsigned *next, int v, int steps,
		  int below)
{
	int best = below;

	if (v == w->n) {
		return min_volume(w, next, steps - 1, below);
	}
	for (unsigned from = 0; from < 1U << w->n; from++) {
		int hops = hops_from(w, from, v), rest;

		if (from >> v & 1 || hops < 0) {
			continue;
		}
		next[v] = has[v];
		for (int u = 0; u < w->n; u++) {
			next[v] |= from >> u & 1 ? has[u] : 0;
		}
		if (hops < best) {
			rest = choose(w, has, next, v + 1, steps, best - hops);
			best = hops + rest < best ? hops + rest : best;
		}
	}
	return best;
}

/* Hops of all messages, at least, until every node has everything; `below` when it is no less. */
static int min_volume(const struct world *w, const unsigned *has, int steps, int below)
{
	unsigned next[MAX_N];
	int sum = 0;

	if (steps > 1) {
		return choose(w, has, next, 0, steps, below);
	}
	for (int v = 0; v < w->n && sum < below; v++) {
		int hops = last_step(w, has, v);

		sum = hops < below - sum ? sum + hops : below;
	}
	return sum;
}

static void check_volume(const struct world *w)
{
	struct bound_shares shares;
	int64_t within[MAX_N], balls[MAX_N];
	struct bound_net net = net_of(w, within);
	int hops = net.diameter;
	unsigned has[MAX_N];

	if (w->open) {
		set_pairs(w, &net, balls);
		hops = net.pair_hops;
	}
	for (int v = 0; v < w->n; v++) {
		has[v] = 1U << v;
	}
	bound_find_shares(hops, w->open ? balls : within, w->near, 0, &shares);
	for (int steps = net.diameter > 2 && w->near ? net.diameter : 2;
	     steps <= (w->n <= 3 ? 4 : w->n == 4 ? 3 : 2); steps++) {
		int least = min_volume(w, has, steps, w->n * w->n * net.diameter);

		assert_true(shares.volume[steps] > 0);
		if (shares.volume[steps] * w->n > least + 1e-9) {
			fail_msg("%s, near %d, %d steps: %g crossings a pair, %d do", w->name,
				 w->near, steps, shares.volume[steps], least);
		}
	}
}

static void volume_is_needed(void **state)
{
	(void)state;
	for (size_t i = 0; i < 2 * (WORLDS + UNLIKE); i++) {
		struct world w = i / 2 < WORLDS ? worlds[i / 2] : unlike[i / 2 - WORLDS];

		w.near = i % 2;
		if (w.n <= 5) {
			check_volume(&w);
		}
	}
}

/* With two steps nothing is shared: a first message, and a last. Then fewer and fewer crossings. */
static void shares_of_rings(void **state)
{
	static const int64_t within[] = { 1, 3, 5, 7, 9, 11, 13, 15, 16 };
	struct bound_shares shares;

	(void)state;
	bound_find_shares(8, within, false, 0, &shares);
	assert_true(fabs(shares.volume[2] - 8) < 1e-9);
	for (int k = 2; k <= BOUND_STEPS; k++) {
		assert_true(shares.seen[k] > 0 && shares.seen[k] < shares.volume[k] + 1e-9);
		assert_true(k == 2 || shares.volume[k] <= shares.volume[k - 1] + 1e-9);
	}
}

/* ---- time ---- */

/* send[k][piece][u] has v: piece goes from u to v in step k, by the k-th way round where there are
 * two. */
struct plan {
	int steps, pieces;
	bool from_root;		/* only what node 0 has counts: a broadcast */
	bool near;		/* messages go to neighbours only */
	unsigned send[MAX_STEPS][MAX_PIECES][MAX_N];
};

static bool is_complete(const struct world *w, const struct plan *p)
{
	for (int c = 0; c < p->pieces; c++) {
		unsigned has[MAX_N], next[MAX_N];

		for (int v = 0; v < w->n; v++) {
			next[v] = 1U << v;
		}
		for (int k = 0; k < p->steps; k++) {
			memcpy(has, next, sizeof(has));
			for (int u = 0; u < w->n; u++) {
				for (int v = 0; v < w->n; v++) {
					next[v] |= p->send[k][c][u] >> v & 1 ? has[u] : 0;
				}
			}
		}
		for (int v = 0; v < w->n; v++) {
			if (~next[v] & (p->from_root ? 1 : (1U << w->n) - 1)) {
				return false;
			}
		}
	}
	return true;
}

/* The next node from u to v, x first; arc: its number at u. Ties by where u and v are. */
static int hop_to(const struct world *w, int u, int v, int tie, int *arc)
{
	int x = u % w->x, y = u / w->x, up;

	if (w->complete) {
		*arc = v;
		return v;
	}
	if (x != v % w->x) {
		up = (v % w->x - x + w->x) % w->x;
		*arc = w->open ? v % w->x < x :
		       w->directed || 2 * up < w->x || (2 * up == w->x && tie) ? 0 : 1;
		return (x + (*arc ? w->x - 1 : 1)) % w->x + y * w->x;
	}
	up = (v / w->x - y + w->y) % w->y;
	*arc = w->open ? 2 + (v < u) : 2 * up < w->y || (2 * up == w->y && tie) ? 2 : 3;
	return x + (y + (*arc == 3 ? w->y - 1 : 1)) % w->y * w->x;
}

/* What a step waits for. */
static double wait(const struct world *w, const struct plan *p, int k, const struct bound_cost *c)
{
	int load[MAX_N][MAX_N] = { { 0 } }, messages[MAX_N][MAX_N] = { { 0 } };
	double most = 0;

	for (int pass = 0; pass < 2; pass++) {
		for (int uv = 0; uv < w->n * w->n; uv++) {
			int u = uv / w->n, v = uv % w->n, hops = 0, top = 0, first = -1, arc;
			int chunks = 0;
			double time;

			for (int i = 0; i < p->pieces; i++) {
				chunks += p->send[k][i][u] >> v & 1;
			}
			for (int at = u; at != v && chunks; hops++) {
				int next = hop_to(w, at, v, u % 2, &arc);

				first = first < 0 ? arc : first;
				load[at][arc] += pass ? 0 : chunks;
				top = load[at][arc] > top ? load[at][arc] : top;
				at = next;
			}
			if (!hops) {
				continue;
			}
			messages[u][first] += !pass;
			time = c->hop * hops + c->message * messages[u][first] +
			       c->vector * top / p->pieces;
			most = pass && time > most ? time : most;
		}
	}
	return most;
}

static double time_of(const struct world *w, const struct plan *p, const struct bound_cost *c)
{
	double sum = 0;

	for (int k = 0; k < p->steps; k++) {
		double waits = wait(w, p, k, c);

		sum += waits > 0 ? c->alpha + waits : 0;
	}
	return sum;
}

static uint64_t seed;

static int below(int n)
{
	seed = seed * 6364136223846793005U + 1442695040888963407U;
	return (int)((seed >> 33) % (uint64_t)n);
}

/* Some messages more, and then without those that no pair needs. */
static void change(const struct world *w, struct plan *p)
{
	for (int i = below(4); i >= 0; i--) {
		int u = below(w->n), v = below(w->n);

		if (u != v && (!p->near || distance(w, u, v) == 1)) {
			p->send[below(p->steps)][below(p->pieces)][u] |= 1U << v;
		}
	}
	for (int i = 4 * w->n; i > 0; i--) {
		unsigned *send = &p->send[below(p->steps)][below(p->pieces)][below(w->n)];
		unsigned was = *send;

		*send &= ~(1U << below(w->n));
		if (*send != was && !is_complete(w, p)) {
			*send = was;
		}
	}
}

static double fastest(const struct world *w, struct plan *p, const struct bound_cost *c, int tries)
{
	double best, now;

	for (int i = 0; i < p->pieces * w->n && !p->near && !p->from_root; i++) {
		p->send[below(p->steps)][i / w->n][i % w->n] =
			((1U << w->n) - 1) & ~(1U << i % w->n);
	}
	best = now = time_of(w, p, c);
	for (int i = 0; i < tries; i++) {
		struct plan other = *p;
		double time;

		change(w, &other);
		time = time_of(w, &other, c);
		if (time <= now * (1 + 0.1 * below(8) / 8 * (tries - i) / tries)) {
			*p = other;
			now = time;
			best = time < best ? time : best;
		}
	}
	return best;
}

#ifndef TRIES
#define TRIES 60
#endif

static void nothing_is_faster(void **state)
{
	static const struct bound_cost costs[] = {
		{ .alpha = 0, .hop = 1, .message = 0 }, { .alpha = 1, .hop = 1, .message = 0 },
		{ .alpha = 1, .hop = 1, .message = 1 }, { .alpha = 3, .hop = 1, .message = 2 },
		{ .alpha = 1, .hop = 0, .message = 0 },
	};
	double nearest = INFINITY;

	(void)state;
	for (size_t i = 0; i < (WORLDS + UNLIKE) * 5 * 12; i++) {
		size_t which = i % (WORLDS + UNLIKE), run = i / (WORLDS + UNLIKE);
		const struct world *w = which < WORLDS ? &worlds[which] : &unlike[which - WORLDS];
		struct bound_cost c = costs[run % 5];
		int64_t within[MAX_N], balls[MAX_N];
		struct bound_net net = net_of(w, within);
		struct plan p = { .steps = 1 + below(MAX_STEPS), .pieces = 1 + below(MAX_PIECES) };
		double time, bound;

		c.vector = exp2((double)(run / 5) - 3);
		if (w->open) {
			set_pairs(w, &net, balls);
		}
		c.load = 2.0 * (w->n - 1) / net.capacity * c.vector;
		time = fastest(w, &p, &c, TRIES);
		bound = bound_time(&net, &c);
		if (!is_complete(w, &p) || time < bound) {
			fail_msg("%s: %g in %d steps, below %g", w->name, time, p.steps, bound);
		}
		nearest = time / bound < nearest ? time / bound : nearest;
	}
	assert_true(nearest < 1.5);
}

/* A broadcast over routes, or (near) over neighbours: those are made that each node could begin
 * with in any step. */
static void start_broadcast(const struct world *w, struct plan *p)
{
	for (int i = 0; i < p->steps * p->pieces * w->n; i++) {
		int u = i % w->n;

		for (int v = 0; v < w->n; v++) {
			p->send[i / w->n / p->pieces][i / w->n % p->pieces][u] |=
				u != v && (!p->near || distance(w, u, v) == 1) ? 1U << v : 0;
		}
	}
}

static void no_broadcast_is_faster(void **state)
{
	static const struct bound_cost costs[] = {
		{ .alpha = 0, .hop = 1, .message = 0 }, { .alpha = 1, .hop = 1, .message = 0 },
		{ .alpha = 1, .hop = 1, .message = 1 }, { .alpha = 1, .hop = 0, .message = 0 },
	};
	double nearest = INFINITY;

	(void)state;
	for (size_t i = 0; i < WORLDS * 4 * 12 * 2; i++) {
		const struct world *w = &worlds[i % WORLDS];
		struct bound_cost c = costs[i / WORLDS % 4];
		int64_t within[MAX_N];
		struct bound_net net = net_of(w, within);
		struct plan p = { .steps = 1 + below(MAX_STEPS), .pieces = 1 + below(MAX_PIECES),
				  .from_root = true, .near = i / WORLDS / 4 / 12 };
		double time, bound;

		net.alike = net.sums = false;
		net.whole = true;
		net.routed = !p.near;
		net.port = net.degree;
		c.vector = exp2((double)(i / WORLDS / 4 % 12) - 3) * net.degree;
		c.load = c.vector / net.degree;
		start_broadcast(w, &p);
		if (!is_complete(w, &p)) {
			continue;
		}
		time = fastest(w, &p, &c, TRIES);
		bound = bound_time(&net, &c);
		if (!is_complete(w, &p) || time < bound) {
			fail_msg("%s: %g in %d steps, below %g", w->name, time, p.steps, bound);
		}
		nearest = time / bound < nearest ? time / bound : nearest;
	}
	assert_true(nearest < 1.1);
}

/* An all-reduce over neighbours, of which some may have less arcs than others. */
static void no_allreduce_of_neighbours_is_faster(void **state)
{
	static const struct world meshes[] = {
		{ "path of 3", 3, 3, 1, .open = true }, { "path of 4", 4, 4, 1, .open = true },
		{ "path of 5", 5, 5, 1, .open = true }, { "mesh 3x2", 6, 3, 2, .open = true },
		{ "mesh 3x3", 9, 3, 3, .open = true }, { "ring of 6", 6, 6, 1, .open = false },
		{ "directed ring of 4", 4, 4, 1, .directed = true },
	};
	double nearest = INFINITY;

	(void)state;
	for (int i = 0; i < 7 * 2 * 10; i++) {
		const struct world *w = &meshes[i % 7];
		struct bound_cost c = { .alpha = i / 7 % 2, .hop = 1 - i / 7 % 2 };
		int64_t within[MAX_N], balls[MAX_N];
		struct bound_net net = net_of(w, within);
		struct plan p = { .steps = net.diameter + below(MAX_STEPS + 1 - net.diameter),
				  .pieces = 1 + below(MAX_PIECES), .near = true };
		double time, bound;

		net.alike = false;
		net.pair = net.degree;
		net.narrow = w->y == 1 ? net.diameter / (w->open || w->directed ? 1.0 : 2.0) : 0;
		c.vector = exp2((double)(i / 14) - 3) * net.degree;
		c.load = c.vector / net.degree;
		if (w->open) {
			set_pairs(w, &net, balls);
		}
		start_broadcast(w, &p);
		assert_true(is_complete(w, &p));
		time = fastest(w, &p, &c, TRIES);
		bound = bound_time(&net, &c);
		if (!is_complete(w, &p) || time < bound) {
			fail_msg("%s: %g in %d steps, below %g", w->name, time, p.steps, bound);
		}
		nearest = time / bound < nearest ? time / bound : nearest;
	}
	assert_true(nearest < 1.3);
}

/* Schedules whose time is known: breadth first on rings, and two steps of one port a rank through a
 * switch, to r - 1 partners and then to r - 1 more. */
static void known_are_no_faster(void **state)
{
	static const int64_t four[] = { 1, 1, 4 }, nine[] = { 1, 1, 9 };

	(void)state;
	for (int i = 0; i < 16 * 9; i++) {
		struct bound_cost c = { .alpha = i % 3, .hop = 1, .message = i % 9 / 3,
					.vector = exp2(i / 9 - 4) };
		int64_t within[MAX_N];

		for (int n = 4; n <= MAX_N; n++) {
			struct world w = { "ring", n, n, 1, .near = false };
			struct bound_net net = net_of(&w, within);

			c.load = c.vector * (n - 1) / n;
			assert_true(bound_time(&net, &c) <=
				    n / 2 * 2 * (c.alpha + 1 + c.message) + c.load);
		}
		for (int r = 2; r <= 3; r++) {
			struct bound_net net = { .ranks = r * r, .diameter = 2, .near = 2,
						 .within = r == 2 ? four : nine, .degree = 1,
						 .capacity = 2 * r * r, .widest = 1, .routed = true,
						 .alike = true, .sums = true };

			c.message = 4 * (i % 9);
			c.load = c.vector;
			assert_true(bound_time(&net, &c) <= 2 * (c.alpha + 2 + (r - 1) *
							(c.message + c.vector)) + 1e-9);
			assert_true(r > 2 || i % 9 < 8 || bound_time(&net, &c) >
				    1.9 * (c.alpha + 2 + c.message));
		}
	}
}

/* Of a corner's vector all leaves before a step or comes after it, unless another step is full. */
static void corners_take_turns(void **state)
{
	struct bound_net net = { .ranks = 64, .diameter = 14, .steps = 14, .near = 1,
				 .capacity = 224, .pair = 2 };
	struct bound_cost c = { .alpha = 1, .vector = 2, .load = 1 };

	(void)state;
	/* 14 to 26 steps: 2 P; to 39: 3/2 P; to 52: 4/3 P. */
	assert_true(fabs(bound_time(&net, &c) - (14 + 2)) < 1e-6);
	c.vector = 84;
	assert_true(fabs(bound_time(&net, &c) - (27 + 63)) < 1e-6);
	net.narrow = 3;		/* of 14 steps 6 vectors, of 15 as before */
	c.vector = 2;
	assert_true(fabs(bound_time(&net, &c) - (15 + 2)) < 1e-6);
	net.narrow = 1.2;
	assert_true(fabs(bound_time(&net, &c) - (14 + 2.4)) < 1e-6);
	net.pair = 0;
	assert_true(fabs(bound_time(&net, &c) - 15) < 1e-6);
}

/* More of anything takes longer; where steps cost nothing there is no bound by them. */
static void more_takes_longer(void **state)
{
	int64_t within[MAX_N];

	(void)state;
	for (size_t i = 0; i < WORLDS; i++) {
		struct bound_net net = net_of(&worlds[i], within);
		struct bound_cost c = { .alpha = 5, .hop = 4, .message = 3 }, more;
		double before = 0;

		for (c.vector = 0.01; c.vector < 1e6; c.vector *= 1.7) {
			double least = bound_time(&net, &c);

			assert_true(least >= before);
			before = least;
			for (int what = 0; what < 4; what++) {
				more = c;
				*(what == 0 ? &more.alpha : what == 1 ? &more.hop :
				  what == 2 ? &more.message : &more.load) += 1;
				assert_true(bound_time(&net, &more) >= least * (1 - 1e-6));
			}
		}
		assert_true(bound_time(&net, &(struct bound_cost){ .vector = 7 }) == 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(volume_is_needed), cmocka_unit_test(shares_of_rings),
		cmocka_unit_test(nothing_is_faster), cmocka_unit_test(no_broadcast_is_faster),
		cmocka_unit_test(no_allreduce_of_neighbours_is_faster),
		cmocka_unit_test(known_are_no_faster),
		cmocka_unit_test(corners_take_turns),
		cmocka_unit_test(more_takes_longer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
