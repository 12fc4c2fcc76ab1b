/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When each node has each piece of a shard.
 *
 * In breadth-first broadcast a node has a shard when as many steps are over as it is hops away.
 * That leaves two things undone. A node that forwards to no other could take the shard at
 * any later step, from any neighbour that has it. And with steps to spare a piece can be held
 * up at some distance, so that two pieces load what one of them leaves idle. Which nodes need
 * not forward is a choice, as most nodes can be reached through several others; here it is
 * made greedily, the farthest nodes first.
 */
#include <stdlib.h>
#include <string.h>

#include "collective/bfb/late.h"
#include "lib/base/alloc.h"

/* How many others a node must be left to take from before one need not forward: all, two,
 * or one; and whether the nodes of a distance are asked in the order of their numbers. */
static const struct {
	int spared;
	bool upwards;
} choices[] = {
	{ INT32_MAX, false }, { 2, false }, { 1, false }, { 2, true }, { 1, true },
};

#define CHOICES ((int)(sizeof(choices) / sizeof(choices[0])))

/* One source and piece at work. */
struct bfb_spread {
	const struct topo *t;
	int source, steps;
	const int32_t *dist;
	int32_t *downwards, *upwards;	/* nodes, the nearest first, to be asked from the end */
	uint8_t *due;
	int32_t *givers;	/* of a node: links from nodes that forward to it */
	bool *forwards;
};

/* A link that can bring the piece in time. */
static bool gives(const struct bfb_spread *s, const struct topo_arc *a)
{
	return a->src != a->dst && s->forwards[a->src] && s->due[a->src] < s->due[a->dst];
}

static void count_givers(struct bfb_spread *s, int node)
{
	const int32_t *arcs;
	int n = topo_in(s->t, node, &arcs);

	s->givers[node] = 0;
	for (int i = 0; i < n; i++) {
		s->givers[node] += gives(s, topo_arc(s->t, arcs[i]));
	}
}

/* Those whom the node forwards to have more than `keep` other links, of which this takes them
 * some. */
static bool can_spare(const struct bfb_spread *s, int node, int keep)
{
	int first, n = topo_out(s->t, node, &first);

	for (int a = first; a < first + n; a++) {
		const struct topo_arc *arc = topo_arc(s->t, a);
		int parallel = 0;

		for (int b = first; b < first + n; b++) {
			parallel += topo_arc(s->t, b)->dst == arc->dst;
		}
		if (gives(s, arc) && s->givers[arc->dst] - parallel < keep) {
			return false;
		}
	}
	return true;
}

static void spare(struct bfb_spread *s, int node)
{
	int first, n = topo_out(s->t, node, &first);

	for (int a = first; a < first + n; a++) {
		const struct topo_arc *arc = topo_arc(s->t, a);

		s->givers[arc->dst] -= gives(s, arc);
	}
	s->forwards[node] = false;
	s->due[node] = (uint8_t)s->steps;
	count_givers(s, node);
}

/* delay[d]: steps behind at distance d. */
static void make_piece(struct bfb_spread *s, const uint8_t *delay, int choice)
{
	int n = topo_n(s->t);

	for (int u = 0; u < n; u++) {
		s->due[u] = (uint8_t)(s->dist[u] + delay[s->dist[u]]);
		s->forwards[u] = true;
	}
	for (int u = 0; u < n; u++) {
		count_givers(s, u);
	}
	for (int i = n - 1; i > 0; i--) {
		int node = choices[choice].upwards ? s->upwards[i] : s->downwards[i];

		if (can_spare(s, node, choices[choice].spared)) {
			spare(s, node);
		}
	}
}

/* Nodes by distance, and within it by number, up or down. */
static void sort_nodes(struct bfb_spread *s)
{
	int n = topo_n(s->t), k = 0;

	for (int d = 0; k < n; d++) {
		int from = k;

		for (int u = 0; u < n; u++) {
			if (s->dist[u] == d) {
				s->downwards[k++] = u;
			}
		}
		for (int i = from; i < k; i++) {
			s->upwards[i] = s->downwards[from + k - 1 - i];
		}
	}
}

/* ---- which pieces there are ---- */

int bfb_pieces_levels(int extra)
{
	return extra > 0 ? 3 + extra : 2;
}

/* The next way to fall behind, by at most `extra` steps, on the way to the farthest nodes:
 * at any distances, or only at the source's neighbours. False after the last. */
static bool next_delay(uint8_t *delay, int diameter, int extra, bool anywhere)
{
	int d = anywhere ? diameter : 1;

	while (d > 0 && delay[d] == extra) {
		d--;
	}
	for (int k = diameter; k > 0 && k >= d; k--) {
		delay[k] = (uint8_t)(delay[d] + 1);
	}
	return d > 0;
}

/* So many there are, the one with none among them. */
static int count_delays(int diameter, int extra, bool anywhere)
{
	uint8_t delay[BFB_PIECES_MAX_STEPS + 1] = { 0 };
	int n = 1;

	while (n <= BFB_MAX_PIECES && next_delay(delay, diameter, extra, anywhere)) {
		n++;
	}
	return n;
}

/* All pieces of one source. */
static void make_pieces(struct bfb_pieces *p, struct bfb_spread *s)
{
	uint8_t delay[BFB_PIECES_MAX_STEPS + 1] = { 0 };
	int piece = 0;

	do {
		for (int c = 0; c < p->choices; c++, piece++) {
			s->due = p->due + ((size_t)piece * (size_t)p->sources +
					   (size_t)s->source) * (size_t)p->n;
			make_piece(s, delay, c);
		}
	} while (piece < p->count &&
		 next_delay(delay, p->diameter, p->behind, p->anywhere));
}

/* Distances from the sources; *diameter. */
static int find_distances(const struct topo *t, int sources, int32_t *dist, int *diameter,
			  struct err *err)
{
	int n = topo_n(t);

	*diameter = 0;
	for (int s = 0; s < sources; s++) {
		int32_t *d = dist + (size_t)s * (size_t)n;

		topo_bfs(t, s, d);
		for (int u = 0; u < n; u++) {
			if (d[u] < 0) {
				return err_set(err, WEFT_EINFEASIBLE, "the digraph is not strongly "
					       "connected: rank %d cannot reach rank %d", s, u);
			}
			*diameter = d[u] > *diameter ? d[u] : *diameter;
		}
	}
	return 0;
}

/* Counts the pieces of a level, and whether they are too many. */
static int count_pieces(struct bfb_pieces *p, const struct topo *t, int level, struct err *err)
{
	int64_t work = (int64_t)p->sources * topo_m(t);

	if (p->steps > BFB_PIECES_MAX_STEPS) {
		return err_set(err, WEFT_ELIMIT, "%d steps: late pieces take at most %d", p->steps,
			       BFB_PIECES_MAX_STEPS);
	}
	p->choices = level == 0 ? 1 : CHOICES;
	p->anywhere = level > 2;
	p->behind = level < 2 ? 0 : level == 2 ? p->steps - p->diameter : level - 2;
	p->count = p->choices * count_delays(p->diameter, p->behind, p->anywhere);
	if (p->count > BFB_MAX_PIECES || work * p->count > BFB_MAX_PIECE_WORK) {
		return err_set(err, WEFT_ELIMIT,
			       "late pieces: %d times %d sources times %d arcs is "
			       "more than %d", p->count, p->sources, topo_m(t),
			       BFB_MAX_PIECE_WORK);
	}
	return 0;
}

int bfb_pieces_init(struct bfb_pieces *p, const struct topo *t, int sources, int extra, int level,
		    struct err *err)
{
	struct bfb_spread s = { .t = t };
	struct arrays arrays = { 0 };
	size_t n = (size_t)topo_n(t);
	int32_t *dist;
	int rc;

	*p = (struct bfb_pieces){ .n = topo_n(t), .sources = sources, .count = 1 };
	if ((int64_t)sources * topo_m(t) > BFB_MAX_PIECE_WORK) {
		return count_pieces(p, t, 0, err);
	}
	arrays_add(&arrays, dist, (size_t)sources * n);
	arrays_add(&arrays, s.downwards, n);
	arrays_add(&arrays, s.upwards, n);
	arrays_add(&arrays, s.givers, n);
	arrays_add(&arrays, s.forwards, n);
	if ((rc = find_distances(t, sources, dist, &p->diameter, err))) {
		goto out;
	}
	p->steps = p->diameter + extra;
	if ((rc = count_pieces(p, t, level, err))) {
		goto out;
	}
	p->due = x_alloc((size_t)p->count * (size_t)sources * n + 1, 1);
	s.steps = p->steps;
	for (s.source = 0; s.source < sources; s.source++) {
		s.dist = dist + (size_t)s.source * n;
		sort_nodes(&s);
		make_pieces(p, &s);
	}
out:
	arrays_fini(&arrays);
	return rc;
}

void bfb_pieces_fini(struct bfb_pieces *p)
{
	free(p->due);
}
