/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who sums which piece of a vector, and how the others get copies of it.
 *
 * A piece is summed at the nodes of a colour, of which every node needs one near: colours are as
 * many sets of nodes that each dominate the digraph. They are searched for at random, with fewer
 * and fewer colours: a node that lacks one gets it from the neighbour by which others lose least.
 * On digraphs where walks of some length from different nodes end in the same sets, these are the
 * colours: then what goes to one set leaves each node over few arcs.
 *
 * Copies go over the arc that carries least in their step. Who has come by a whole sum though it
 * is no owner needs none, and gives copies as well.
 */
#include <stdlib.h>
#include <string.h>

#include "collective/make/merged.h"
#include "lib/base/alloc.h"
#include "lib/base/map.h"
#include "lib/base/number/rng.h"

#define MAX_COLOURS 256
#define PASSES 20	/* over all nodes, to give each all colours */
#define MAX_WORK (INT64_C(1) << 21)	/* looks at a node, for the colours of a radius */

void merged_owners_fini(struct merged_owners *o)
{
	free(o->colour);
	vec_fini(&o->copies);
	*o = (struct merged_owners){ 0 };
}

static int dist(const struct merged_graph *g, int from, int to)
{
	return g->dist[(size_t)from * (size_t)g->n + (size_t)to];
}

/* ---- copies ---- */

/* The arc of the fewest copies over which v gets a piece from who has it a step earlier. */
static int copy_arc(const struct merged_graph *g, const int32_t *into, int n, const int32_t *far,
		    int at, const double *load)
{
	int best = -1;

	for (int i = 0; i < n; i++) {
		if (far[topo_arc(g->t, into[i])->src] == at - 1 &&
		    (best < 0 || load[into[i]] < load[best])) {
			best = into[i];
		}
	}
	return best;
}

/* Arcs into each node, the first of parallel ones, by head: first_in[v] .. first_in[v + 1] - 1. */
static void list_into(const struct merged_graph *g, int32_t *into, int32_t *first_in)
{
	int m = topo_m(g->t), k = 0;
	int32_t *at = x_new((size_t)g->n + 1, sizeof(*at));

	for (int a = 0; a < m; a++) {
		at[topo_arc(g->t, a)->dst + 1] += g->twin[a] == a;
	}
	for (int v = 0; v < g->n; v++) {
		at[v + 1] += at[v];
	}
	memcpy(first_in, at, ((size_t)g->n + 1) * sizeof(*at));
	for (int a = 0; a < m; a++) {
		if (g->twin[a] == a) {
			into[at[topo_arc(g->t, a)->dst]++] = a;
			k++;
		}
	}
	free(at);
}

/* far[piece * n + v]: steps to v from the nearest that has the piece's sum. */
static void measure(const struct merged_graph *g, struct merged_owners *o, const bool *have,
		    int32_t *far)
{
	o->radius = 0;
	for (int i = 0; i < o->colours * g->n; i++) {
		far[i] = INT32_MAX;
	}
	for (int i = 0; i < o->colours * g->n; i++) {
		int32_t *row = &far[i / g->n * g->n];

		for (int v = 0; have[i] && v < g->n; v++) {
			row[v] = dist(g, i % g->n, v) < row[v] ? dist(g, i % g->n, v) : row[v];
		}
	}
	for (int i = 0; i < o->colours * g->n; i++) {
		o->radius = far[i] > o->radius ? far[i] : o->radius;
	}
}

/* The copies of a step, each over the arc that has carried least in it. */
static void copy_step(struct merged_graph *g, struct merged_owners *o, const int32_t *far,
		      const int32_t *into, const int32_t *first_in, int step)
{
	double *load = x_new((size_t)topo_m(g->t), sizeof(*load)), most = 0;

	for (int i = 0; i < o->colours * g->n; i++) {
		int piece = i / g->n, v = i % g->n, arc;

		if (far[i] != step + 1) {
			continue;
		}
		arc = copy_arc(g, &into[first_in[v]], first_in[v + 1] - first_in[v],
			       &far[(size_t)piece * (size_t)g->n], step + 1, load);
		load[arc] += 1 / (double)g->cap[arc] / o->colours;
		most = load[arc] > most ? load[arc] : most;
		vec_push(&o->copies, (struct merged_copy){ step, arc, piece });
	}
	o->vectors += most;
	free(load);
}

void merged_copy_sums(struct merged_graph *g, struct merged_owners *o, const bool *have)
{
	int32_t *far = x_alloc((size_t)o->colours * (size_t)g->n, sizeof(*far));
	int32_t *into = x_alloc((size_t)topo_m(g->t) + 1, sizeof(*into));
	int32_t *first_in = x_alloc((size_t)g->n + 1, sizeof(*first_in));

	list_into(g, into, first_in);
	measure(g, o, have, far);
	o->copies.n = 0;
	o->vectors = 0;
	for (int step = 0; step < o->radius; step++) {
		copy_step(g, o, far, into, first_in, step);
	}
	g->work += (int64_t)g->n * (g->n + (int64_t)o->colours * (o->radius + 1));
	free(far);
	free(into);
	free(first_in);
}

/* ---- all colours near every node ---- */

/* Nodes from which one is near, and those near to it, by node; colours that are near. */
struct colour_search {
	struct merged_graph *g;
	int radius, colours;
	int32_t *colour, *count;	/* count[v * colours + c] */
	int32_t *near, *first_near, *far, *first_far;
	struct rng rng;
	int64_t most;		/* of the work */
};

static void search_init(struct colour_search *s, struct merged_graph *g, int radius)
{
	size_t n = (size_t)g->n, all = 0;

	*s = (struct colour_search){ .g = g, .radius = radius };
	for (size_t i = 0; i < n * n; i++) {
		all += g->dist[i] <= radius;
	}
	s->near = x_alloc(all, sizeof(*s->near));
	s->far = x_alloc(all, sizeof(*s->far));
	s->first_near = x_new(n + 1, sizeof(*s->first_near));
	s->first_far = x_new(n + 1, sizeof(*s->first_far));
	s->colour = x_alloc(n, sizeof(*s->colour));
	for (int v = 0, k = 0, j = 0; v < g->n; v++) {
		for (int u = 0; u < g->n; u++) {
			if (dist(g, u, v) <= radius) {
				s->near[k++] = u;
			}
			if (dist(g, v, u) <= radius) {
				s->far[j++] = u;
			}
		}
		s->first_near[v + 1] = k;
		s->first_far[v + 1] = j;
	}
	g->work += (int64_t)(n * n);
}

static void search_fini(struct colour_search *s)
{
	free(s->near);
	free(s->far);
	free(s->first_near);
	free(s->first_far);
	free(s->colour);
}

/* By how many more nodes lack its colour than lacked the other, should u change. */
static int loss(struct colour_search *s, int u, int to)
{
	int lost = 0;

	if (s->colour[u] == to) {
		return INT32_MAX;
	}
	for (int i = s->first_far[u]; i < s->first_far[u + 1]; i++) {
		const int32_t *row = &s->count[s->far[i] * s->colours];

		lost += (row[s->colour[u]] == 1) - (row[to] == 0);
	}
	s->g->work += s->first_far[u + 1] - s->first_far[u];
	return lost;
}

/* v lacks a colour: the one near to it takes it by which least is lost. */
static void give(struct colour_search *s, int v, int colour)
{
	int n = s->first_near[v + 1] - s->first_near[v], best = -1, least = 0;
	int turn = (int)rng_below(&s->rng, (uint64_t)n);

	for (int i = 0; i < n; i++) {
		int u = s->near[s->first_near[v] + (i + turn) % n];
		int lost = loss(s, u, colour);

		if (best < 0 || lost < least) {
			best = u;
			least = lost;
		}
	}
	for (int i = s->first_far[best]; i < s->first_far[best + 1]; i++) {
		s->count[s->far[i] * s->colours + s->colour[best]]--;
		s->count[s->far[i] * s->colours + colour]++;
	}
	s->colour[best] = colour;
}

static bool search(struct colour_search *s, int colours)
{
	int n = s->g->n, lacks = 1;

	s->colours = colours;
	s->count = x_new((size_t)n * (size_t)colours, sizeof(*s->count));
	rng_seed(&s->rng, 43);
	for (int u = 0; u < n; u++) {
		s->colour[u] = (int32_t)rng_below(&s->rng, (uint64_t)colours);
		for (int i = s->first_far[u]; i < s->first_far[u + 1]; i++) {
			s->count[s->far[i] * colours + s->colour[u]]++;
		}
	}
	for (int pass = 0; pass < PASSES && lacks && s->g->work < s->most; pass++) {
		lacks = 0;
		for (int i = 0; i < n * colours && s->g->work < s->most; i++) {
			if (s->count[i] == 0) {
				give(s, i / colours, i % colours);
				lacks++;
			}
		}
	}
	lacks = 0;
	for (int i = 0; i < n * colours && !lacks; i++) {
		lacks += s->count[i] == 0;
	}
	free(s->count);
	return !lacks;
}

bool merged_colour(struct merged_graph *g, int radius, struct merged_owners *out)
{
	struct colour_search s;
	int most = MAX_COLOURS;
	bool found = false;

	*out = (struct merged_owners){ 0 };
	search_init(&s, g, radius);
	for (int v = 0; v < g->n; v++) {
		int n = s.first_near[v + 1] - s.first_near[v];

		most = n < most ? n : most;
	}
	s.most = g->work + MAX_WORK;
	for (int c = most; c > 1 && !found && g->work < s.most; c -= 1 + c / 8) {
		found = search(&s, c);
		out->colours = c;
	}
	if (found) {
		out->colour = s.colour;
		s.colour = NULL;
	}
	search_fini(&s);
	return found;
}

/* ---- colours by walks ---- */

static const uint64_t *walk(const struct merged_graph *g, int length, int from)
{
	return &g->walks[((size_t)length * (size_t)g->n + (size_t)from) * g->words];
}

/* Gives the nodes of a set a colour; false: one has another. */
static bool paint(struct merged_owners *o, const uint64_t *set, int n, int colour)
{
	for (int v = 0; v < n; v++) {
		if (set[v / 64] >> v % 64 & 1) {
			if (o->colour[v] >= 0 && o->colour[v] != colour) {
				return false;
			}
			o->colour[v] = colour;
		}
	}
	return true;
}

bool merged_colour_walks(struct merged_graph *g, int length, struct merged_owners *out)
{
	struct u64map sets = { 0 };
	bool apart = true;

	*out = (struct merged_owners){
		.colour = x_alloc((size_t)g->n, sizeof(*out->colour)),
	};
	memset(out->colour, 0xff, (size_t)g->n * sizeof(*out->colour));
	for (int u = 0; u < g->n && apart && out->colours <= MAX_COLOURS; u++) {
		const uint64_t *set = walk(g, length, u);
		uint64_t colour = (uint64_t)out->colours;
		uint64_t key = hash_bytes(set, g->words * sizeof(*set));

		if (!u64map_get(&sets, key, &colour)) {
			u64map_set(&sets, key, colour);
			out->colours++;
		}
		apart = paint(out, set, g->n, (int)colour);
		g->work += g->n;
	}
	for (int v = 0; v < g->n && apart; v++) {
		apart = out->colour[v] >= 0;
	}
	u64map_fini(&sets);
	if (!apart || out->colours < 2 || out->colours > MAX_COLOURS) {
		merged_owners_fini(out);
		return false;
	}
	return true;
}
