/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Nodes of as many ports as others, or more: parallel arcs.
 *
 * Breadth-first broadcast takes one step where every node has an arc to every other, and then
 * the fewest parallel arcs between two nodes are what counts. So a frontier here is that of
 * digraphs of fewer ports, each arc as often as there is room for it; and of circulants some
 * of whose arcs are there more often than others. T_B is of all ports, used or not.
 */
#include <stdlib.h>

#include "collective/finder/private.h"
#include "lib/base/number/rat.h"

#define MAX_NODES 64	/* nodes, for other digraphs than K(n) */
#define MAX_SETS 4000	/* of offsets, that are gone through */

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

/* Circulants of all ports in which an arc is there `least` times or more. */
struct weighed {
	struct coll_finder *f;
	struct finder_candidates *set;
	struct finder_circulant c;
	int d, least;
	int room;	/* sets to go through */
};

/* Whether two steps could be worth it: all ports carry what is two hops away, and the first step is
 * as long as the arc there least often has for its neighbour. */
static bool may_win(const struct weighed *w)
{
	struct finder_candidate best = { .steps = 2, .exact = true };
	int d = w->d, fewest = d, times = 1, near = 0;

	for (int i = 0; i < w->c.n_offsets; i++, times++) {
		if (i + 1 == w->c.n_offsets || w->c.offset[i + 1] != w->c.offset[i]) {
			near += w->c.both && 2 * w->c.offset[i] != w->c.n ? 2 : 1;
			fewest = times < fewest ? times : fewest;
			times = 0;
		}
	}
	best.gather = best.scatter = finder_ratio(d + (int64_t)(w->c.n - 1 - near) * fewest,
						  (int64_t)w->c.n * fewest);
	for (size_t i = 0; i < w->set->list.n; i++) {
		if (finder_beats(w->f, &w->set->list.v[i], &best)) {
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

static void offer(struct weighed *w)
{
	struct finder_circulant *c = &w->c;
	struct finder_candidate found = { .exact = true };
	int64_t common = c->n;

	for (int i = 0; i < c->n_offsets; i++) {
		common = rat_gcd(common, c->offset[i]);
	}
	w->room--;
	if (common == 1 && may_win(w) && finder_name_circulant(&found, c)) {
		found.gather = found.scatter = finder_circulant_factor(c);
		found.steps = c->steps;
		if (!is_there(w, &found)) {
			finder_keep(w->f, w->set, &found);
		}
	}
}

/* All sets whose further offsets are `from` or more, of so many ports. */
static void add_offsets(struct weighed *w, int from, int ports)
{
	struct finder_circulant *c = &w->c;
	int before = c->n_offsets, largest = c->both ? c->n / 2 : c->n - 1;

	if (ports == 0) {
		offer(w);
	}
	for (int s = from; s <= largest && ports && w->room > 0; s++) {
		int each = c->both && 2 * s != c->n ? 2 : 1;

		for (int times = 1; times * each <= ports; times++) {
			c->offset[c->n_offsets++] = s;
			if (times >= w->least) {
				add_offsets(w, s + 1, ports - times * each);
			}
		}
		c->n_offsets = before;
	}
}

void finder_add_parallel(struct coll_finder *f, struct finder_candidates *set, int n, int d,
			 bool both)
{
	struct weighed w = { f, set, { .n = n, .both = both }, d, d / (n - 1) + 1, MAX_SETS };

	for (int k = n - 1; k > 0 && (k == n - 1 || n <= MAX_NODES); k--) {
		add_times(f, set, n, k, d, both);
	}
	/* With an arc less often than that they are no better than K(n) in one step. */
	if (n <= MAX_NODES && d <= FINDER_CIRCULANT_MAX_PORTS) {
		add_offsets(&w, 1, d);
	}
}
