/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Steps where hops may come in any order.
 *
 * When an abelian group moves any terminal to any other, a path is a sum of arcs' orbits, and
 * its hops may be taken in any order. Then each step can be filled to the last place:
 * chunks and orbits are the two sides of a bipartite multigraph with an edge a
 * hop, steps are colours of its edges, and such a graph has an edge colouring
 * with as many colours as its largest degree (Koenig 1916). A chunk has as many edges as its
 * path has hops; an orbit counts as one vertex for each chunk that it carries a step. So
 * `steps` steps of `quantum` chunks a unit of capacity suffice whenever no path is longer
 * and no orbit carries more: a shop without idle time, and without a search.
 *
 * Edges are coloured one after the other; where the two ends have no free colour in common, two
 * colours change places along the path that alternates between them.
 */
#include <stdlib.h>

#include "collective/flow/private.h"
#include "lib/base/alloc.h"

struct shop {
	const struct flow_quotient *q;
	const struct flow_paths *paths;
	int steps;
	int64_t quantum;
	int32_t *left;		/* chunk * steps + step: its edge + 1, 0: none */
	int32_t *right;		/* the same of an orbit's place */
	int32_t *chunk, *place;	/* of an edge */
	int32_t *hop;		/* of an edge: its orbit */
	int64_t *begin;		/* of an orbit: its first place */
	int64_t *taken;		/* of an orbit: edges so far */
	int32_t *used;		/* step * orbits + orbit: chunks on lanes so far */
	int edges, chunks;
	struct arrays arrays;
};

static int count_edges(const struct flow_paths *paths, int64_t *edges, int64_t *chunks,
		       struct err *err)
{
	*edges = *chunks = 0;
	for (size_t i = 0; i < paths->v.n; i++) {
		*edges += (int64_t)paths->v.v[i].chunks * paths->v.v[i].n_arcs;
		*chunks += paths->v.v[i].chunks;
	}
	return *edges <= COLL_MAX_XFERS ? 0 : err_set(err, WEFT_ELIMIT, "%lld hops of chunks: a "
			"schedule holds at most %d transfers", (long long)*edges, COLL_MAX_XFERS);
}

static int shop_init(struct shop *s, struct err *err)
{
	const struct flow_net *net = &s->q->net;
	int64_t edges, chunks, places = 0;
	int rc = count_edges(s->paths, &edges, &chunks, err);

	if (rc) {
		return rc;
	}
	arrays_add(&s->arrays, s->begin, net->m + 1);
	arrays_add(&s->arrays, s->taken, net->m);
	for (int o = 0; o < net->m; o++) {
		s->begin[o] = places;
		places += s->quantum * net->units[o];
	}
	arrays_add(&s->arrays, s->left, chunks * s->steps);
	arrays_add(&s->arrays, s->right, places * s->steps);
	arrays_add(&s->arrays, s->chunk, edges);
	arrays_add(&s->arrays, s->place, edges);
	arrays_add(&s->arrays, s->hop, edges);
	arrays_add(&s->arrays, s->used, (size_t)s->steps * net->m);
	return 0;
}

static int free_colour(const struct shop *s, const int32_t *row)
{
	int k = 0;

	while (row[k] && k < s->steps - 1) {
		k++;
	}
	return k;
}

/* Of the edges on the path from `place` that has colours a and b in turn, each
 * takes the other colour: then a is free at the place. */
static void swap_colours(struct shop *s, int place, int a, int b)
{
	int32_t *row = s->right + (int64_t)place * s->steps;
	int32_t edge = row[a];
	bool at_place = true;

	row[a] = 0;
	while (edge) {
		/* `edge` changes from a to b; at its other end that drives out one of b. */
		int other = at_place ? s->chunk[edge - 1] : s->place[edge - 1];
		int32_t *near = row, *far;
		int32_t next;
		int t = a;

		far = (at_place ? s->left : s->right) + (int64_t)other * s->steps;
		near[b] = edge;
		next = far[b];
		far[b] = edge;
		far[a] = 0;
		row = far;
		edge = next;
		at_place = !at_place;
		/* The edge that is driven out had b there and takes a. */
		a = b;
		b = t;
	}
}

static void colour_edge(struct shop *s, int32_t edge)
{
	int32_t *left = s->left + (int64_t)s->chunk[edge - 1] * s->steps;
	int32_t *right = s->right + (int64_t)s->place[edge - 1] * s->steps;
	int a = free_colour(s, left), b = free_colour(s, right);

	if (right[a]) {
		swap_colours(s, s->place[edge - 1], a, b);
	}
	left[a] = right[a] = edge;
}

static void colour_all(struct shop *s)
{
	for (size_t i = 0; i < s->paths->v.n; i++) {
		const struct flow_path *p = &s->paths->v.v[i];

		for (int c = 0; c < p->chunks; c++, s->chunks++) {
			for (int k = 0; k < p->n_arcs; k++) {
				int o = s->paths->arcs.v[p->first + k];

				s->chunk[s->edges] = s->chunks;
				s->hop[s->edges] = o;
				s->place[s->edges] = (int32_t)(s->begin[o] +
							       s->taken[o]++ / s->steps);
				colour_edge(s, ++s->edges);
			}
		}
	}
}

/* The lane of an orbit that has room left in a step. */
static int pick_lane(const struct shop *s, int step, int orbit)
{
	const struct flow_net *net = &s->q->net;
	int64_t before = s->used[(size_t)step * net->m + orbit]++;
	int k = net->first_lane[orbit];

	while (before >= s->quantum * topo_arc(s->q->t, net->lanes[k])->cap) {
		before -= s->quantum * topo_arc(s->q->t, net->lanes[k])->cap;
		k++;
	}
	return net->lanes[k];
}

/* A chunk's hops in the order of their steps, from its source on. */
static int emit_chunk(struct shop *s, int chunk, const struct coll_xfer *like,
		      struct coll_sched *out, struct err *err)
{
	const int32_t *row = s->left + (int64_t)chunk * s->steps;
	struct coll_xfer x = *like;
	int at = x.origin, rc = 0;

	for (int step = 0; step < s->steps && !rc; step++) {
		int lane, from;

		if (!row[step]) {
			continue;
		}
		lane = pick_lane(s, step, s->hop[row[step] - 1]);
		from = topo_arc(s->q->t, lane)->src;
		x.step = step;
		x.arc = topo_action_move(s->q->action, topo_group_between(s->q->group, from, at),
					 lane);
		at = topo_arc(s->q->t, x.arc)->dst;
		rc = coll_add(out, &x, err);
	}
	return rc;
}

static int emit_all(struct shop *s, struct coll_sched *out, struct err *err)
{
	int32_t pair = -1;
	int first = 0, chunk = 0, n = coll_ranks(out), rc = 0;

	for (size_t i = 0; i < s->paths->v.n && !rc; i++) {
		const struct flow_path *p = &s->paths->v.v[i];

		first = p->pair == pair ? first : 0;
		pair = p->pair;
		for (int c = 0; c < p->chunks && !rc; c++, first++, chunk++) {
			rc = emit_chunk(s, chunk, &(struct coll_xfer){
				.origin = pair / n, .dest = pair % n, .first = first,
				.last = first, .op = COLL_OP_COPY }, out, err);
		}
	}
	return rc;
}

int64_t flow_shop_quantum(const struct flow_quotient *q, const struct flow_paths *paths, int steps)
{
	int64_t *load = x_new((size_t)q->net.m + 1, sizeof(*load)), quantum = 0;

	for (size_t i = 0; i < paths->v.n; i++) {
		const struct flow_path *p = &paths->v.v[i];

		for (int k = 0; k < p->n_arcs; k++) {
			load[paths->arcs.v[p->first + k]] += p->chunks;
		}
	}
	for (int o = 0; o < q->net.m; o++) {
		int64_t room = q->net.units[o] * steps, need = (load[o] + room - 1) / room;

		quantum = need > quantum ? need : quantum;
	}
	free(load);
	return quantum;
}

int flow_shop_emit(const struct flow_quotient *q, const struct flow_paths *paths, int steps,
		   int64_t quantum, struct coll_sched *out, struct err *err)
{
	struct shop s = { .q = q, .paths = paths, .steps = steps, .quantum = quantum };
	int rc = shop_init(&s, err);

	if (!rc) {
		colour_all(&s);
		rc = emit_all(&s, out, err);
	}
	arrays_fini(&s.arrays);
	return rc;
}
