/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Nodes of as many ports as others, or more: parallel arcs.
 *
 * Breadth-first broadcast takes one step where every node has an arc to every other, and then
 * the fewest parallel arcs between two nodes are what counts. So a frontier here is that of
 * digraphs of fewer ports, each arc as often as there is room; and of circulants and products
 * of complete graphs some of whose arcs are there more often than others. Of k neighbours two
 * steps cannot take less than bound_of(), so numbers of neighbours are tried in its order, and
 * what comes to the least of all is proven. T_B is of all ports, used or not.
 */
#include <stdlib.h>

#include "collective/finder/private.h"
#include "lib/base/number/rat.h"

#define MAX_NODES 64	/* nodes, for other digraphs than K(n) */
#define MAX_SETS 1000	/* of offsets, that are gone through for a number of neighbours */

/* Those of k ports, every arc d / k times. */
static void add_times(struct coll_finder *f, struct finder_candidates *set, int n, int k, int d,
			 bool both)
{
	struct finder_candidates known = { 0 };
	int times = d / k;
	size_t from;

	if (!finder_table_read(f, n, k, both, &known)) {
		finder_optimal_set(f, n, k, both, &from);
		for (size_t i = 0; i < f->optimal.v[from].list.n; i++) {
			finder_keep(f, &known, &f->optimal.v[from].list.v[i]);
		}
		finder_add_circulants(f, &known, n, k, both);
	}
	for (size_t i = 0; i < known.list.n; i++) {
		struct finder_candidate c = known.list.v[i];

		if (finder_name(&c, times > 1 ? "Multi(%s,%d)" : "%s", known.list.v[i].expr,
				times)) {
			finder_use_ports(&c, k * times, d);
			finder_keep(f, set, &c);
		}
	}
	vec_fini(&known.list);
}

/* ---- more than one step ---- */

/* What no breadth-first broadcast is below where a node has k neighbours, as far as ports go: its
 * first step is as long as the arc that is there least often has for its neighbour, and the others
 * bring what is farther away over all ports. */
static struct bfb_ratio bound_alike(int n, int d, int k)
{
	int64_t times = d / k;

	return finder_ratio(d + times * (n - 1 - k), times * n);
}

/* Both ways the sum of all ports is even, and of an odd number of nodes some has an even number of
 * neighbours. */
static struct bfb_ratio bound_of(int n, int d, bool both, int k)
{
	bool odd = both && n % 2;
	struct bfb_ratio least = bound_alike(n, d, odd && k % 2 && k > 1 ? k - 1 : k), dark;
	int fewer = (d - 1) / (d / k);

	if (!odd || d % 2 == 0 || fewer == 0) {
		return least;
	}
	/* One node has a port less. */
	dark = finder_ratio((__int128)d * (d - 1 + (int64_t)(d / k) * (n - 1 - fewer)),
			    (__int128)(d / k) * (d - 1) * n);
	return bfb_ratio_cmp(dark, least) > 0 ? dark : least;
}

/* The number of neighbours from which all are reached in at most so many steps, after `after` in
 * the order of bounds; 0: no other. */
static int next_neighbours(int n, int d, bool both, int most, int after)
{
	int best = 0;

	for (int k = 1; k < n - 1; k++) {
		struct bfb_ratio b = bound_of(n, d, both, k);
		int order = after ? bfb_ratio_cmp(bound_of(n, d, both, after), b) : -1;

		int steps = coll_moore_steps(n, k, both);

		if ((order < 0 || (order == 0 && k > after)) && steps > 1 && steps <= most &&
		    (!best || bfb_ratio_cmp(b, bound_of(n, d, both, best)) < 0)) {
			best = k;
		}
	}
	return best;
}

bool finder_is_min(int n, int d, bool both, int steps, struct bfb_ratio phase)
{
	int most = both && n % 2 && d % 2 && d > 1 ? d - 1 : d;	/* ports of some node */
	struct bfb_ratio bound = finder_ratio((__int128)(n - 1) * d, (__int128)n * most);
	int k;

	if (bfb_ratio_cmp(phase, bound) <= 0) {
		return true;
	}
	if (d < n - 1 || steps > 2) {
		return false;
	}
	k = next_neighbours(n, d, both, 2, 0);
	return steps == 1 || !k || bfb_ratio_cmp(phase, bound_of(n, d, both, k)) <= 0;
}

/* Circulants of k ports, each offset m times, and the ports that are left over. */
struct weighed {
	struct coll_finder *f;
	struct finder_candidates *set;
	struct finder_circulant c;
	int d, k;
	int room;	/* sets to go through */
};

/* Whether k neighbours could be worth it. */
static bool may_win(const struct weighed *w, int k)
{
	struct bfb_ratio bound = bound_of(w->c.n, w->d, w->c.both, k);
	int steps = coll_moore_steps(w->c.n, k, w->c.both);

	for (size_t i = 0; i < w->set->list.n; i++) {
		const struct finder_candidate *o = &w->set->list.v[i];

		if (o->steps <= steps && bfb_ratio_cmp(o->gather, bound) <= 0 &&
		    bfb_ratio_cmp(o->scatter, bound) <= 0) {
			return false;
		}
	}
	return true;
}

/* Of the same figures as another: then that one's name is plainer. */
static bool is_there(const struct weighed *w, const struct finder_candidate *c)
{
	for (size_t i = 0; i < w->set->list.n; i++) {
		const struct finder_candidate *o = &w->set->list.v[i];

		if (o->steps == c->steps && !finder_beats(w->f, c, o) &&
		    !finder_beats(w->f, o, c)) {
			return true;
		}
	}
	return false;
}

static int ports_of(const struct finder_circulant *c, int offset)
{
	return c->both && 2 * offset != c->n ? 2 : 1;
}

static void keep_circulant(struct weighed *w, struct finder_circulant *c)
{
	struct finder_candidate found = { .exact = true };
	int ports = 0;

	for (int i = 0; i < c->n_offsets; i++) {
		ports += ports_of(c, c->offset[i]);
	}
	if (!finder_name_circulant(&found, c)) {
		return;
	}
	found.gather = found.scatter = finder_circulant_factor(c);
	found.steps = c->steps;
	finder_use_ports(&found, ports, w->d);
	if (!is_there(w, &found)) {
		finder_keep(w->f, w->set, &found);
	}
}

/* The set as it is, each m times; what is left goes to offset `first` and those after it, to each
 * as often as it can or (`even`) once. */
static void offer(struct weighed *w, int first, bool even)
{
	struct finder_circulant c = { .n = w->c.n, .both = w->c.both };
	int times[FINDER_CIRCULANT_MAX_PORTS], left = w->d % w->k, n = w->c.n_offsets;

	for (int i = 0; i < n; i++) {
		int at = (first + i) % n, each = ports_of(&w->c, w->c.offset[at]);
		int more = even && left >= each ? 1 : left / each;

		times[at] = w->d / w->k + more;
		left -= more * each;
	}
	for (int i = 0; i < n; i++) {
		for (int k = 0; k < times[i]; k++) {
			c.offset[c.n_offsets++] = w->c.offset[i];
		}
	}
	w->room--;
	keep_circulant(w, &c);
}

/* All sets whose further offsets are `from` or more, of so many ports. */
static void add_offsets(struct weighed *w, int from, int ports)
{
	struct finder_circulant *c = &w->c;
	int largest = c->both ? c->n / 2 : c->n - 1;
	int64_t common = c->n;

	for (int i = 0; i < c->n_offsets && !ports; i++) {
		common = rat_gcd(common, c->offset[i]);
	}
	for (int i = 0; i < c->n_offsets && !ports && common == 1 && may_win(w, w->k); i++) {
		offer(w, i, false);
		if (w->d % w->k > 1) {
			offer(w, i, true);
		}
	}
	for (int s = from; s <= largest && ports && w->room > 0; s++) {
		if (ports_of(c, s) <= ports) {
			c->offset[c->n_offsets++] = s;
			add_offsets(w, s + 1, ports - ports_of(c, s));
			c->n_offsets--;
		}
	}
}

/* Products of complete graphs of unlike multiplicity. */
static void add_grids(struct weighed *w)
{
	int n = w->c.n, d = w->d;

	for (int a = 2; a < n; a++) {
		int b = n / a;

		for (int x = 1; n % a == 0 && x * (a - 1) + b - 1 <= d; x++) {
			int y = (d - x * (a - 1)) / (b - 1), ports = x * (a - 1) + y * (b - 1);
			struct finder_candidate c = { .steps = 2 };

			if (may_win(w, a + b - 2) &&
			    d / (a + b - 2) == (x < y ? x : y) &&
			    finder_name(&c, "Prod(Multi(K(%d),%d),Multi(K(%d),%d))", a, x, b, y) &&
			    finder_compute(w->f, &c) == 0) {
				finder_use_ports(&c, ports, d);
				finder_keep(w->f, w->set, &c);
			}
		}
	}
}

void finder_add_parallel(struct coll_finder *f, struct finder_candidates *set, int n, int d,
			 bool both)
{
	struct weighed w = { .f = f, .set = set, .c = { .n = n, .both = both }, .d = d };

	for (int k = n - 1; k > 0 && (k == n - 1 || n <= MAX_NODES); k--) {
		add_times(f, set, n, k, d, both);
	}
	if (n > MAX_NODES || d > FINDER_CIRCULANT_MAX_PORTS) {
		return;
	}
	add_grids(&w);
	/* With other multiplicities the same neighbours are no better. */
	for (w.k = 0; (w.k = next_neighbours(n, d, both, n, w.k)) > 0;) {
		w.room = may_win(&w, w.k) ? MAX_SETS : 0;
		if (w.room) {
			add_offsets(&w, 1, w.k);
		}
	}
}
