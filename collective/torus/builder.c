/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Building a schedule on coordinates: the digraph of partners, the group, and arcs by coordinate.
 *
 * Whoever sends along a dimension does so from every node with that coordinate, so the logical
 * digraph is told line by line; its arcs are numbered so that the one from a node to a coordinate
 * is found at once.
 */
#include <assert.h>
#include <stdlib.h>

#include "collective/torus/private.h"
#include "lib/base/alloc.h"
#include "lib/base/number/rat.h"

#define MAX_PARTS 64	/* of a chunk, for parallel links */

void torus_builder_init(struct torus_builder *b, const struct torus_shape *s, enum coll_kind kind)
{
	*b = (struct torus_builder){ .shape = s, .kind = kind };
	for (int e = 0; e < s->n_dims; e++) {
		arrays_add(&b->arrays, b->arc[e], (size_t)s->size[e] * (size_t)s->size[e]);
		arrays_add(&b->arrays, b->n_arcs[e], s->size[e]);
	}
}

static void join(struct torus_builder *b, int dimension, int x, int to)
{
	int16_t *arc = &b->arc[dimension][x * b->shape->size[dimension] + to];

	if (*arc == 0) {
		*arc = ++b->n_arcs[dimension][x];
	}
}

void torus_builder_join(struct torus_builder *b, int dimension, int x, int to)
{
	join(b, dimension, x, to);
	join(b, dimension, to, x);
}

/* Of each node the arcs in the order of how far ahead they lead, as torus_work_turns. */
static void number_by_offset(struct torus_builder *b)
{
	for (int e = 0; e < b->shape->n_dims; e++) {
		int d = b->shape->size[e];

		for (int x = 0; x < d; x++) {
			int16_t n = 0;

			for (int o = 1; o < d; o++) {
				int16_t *arc = &b->arc[e][x * d + (x + o) % d];

				*arc = *arc ? ++n : 0;
			}
		}
	}
}

/* The arcs of a node, in the order of their numbers. */
static int add_arcs(struct torus_builder *b, struct topo *t, int node, int *heads, struct err *err)
{
	const struct torus_shape *s = b->shape;
	int rc = 0, n = 0;

	for (int e = 0; e < s->n_dims; e++) {
		int x = torus_digit(s, node, e);

		for (int to = 0; to < s->size[e]; to++) {
			int number = b->arc[e][x * s->size[e] + to];

			if (number > 0) {
				heads[n + number - 1] = torus_at(s, node, e, to);
			}
		}
		n += b->n_arcs[e][x];
	}
	for (int i = 0; i < n && rc == 0; i++) {
		rc = topo_add_arc(t, node, heads[i], 1, 0, err);
	}
	return rc;
}

static int make_digraph(struct torus_builder *b, struct err *err)
{
	const struct torus_shape *s = b->shape;
	int ranks = topo_ranks(s->t), rc, *heads = x_alloc((size_t)ranks + 1, sizeof(*heads));

	rc = topo_new(ranks, &b->logical, err);
	for (int u = 0; u < ranks && rc == 0; u++) {
		topo_set_node(b->logical, u, TOPO_TERMINAL, topo_node_flags(s->t, u));
		rc = add_arcs(b, b->logical, u, heads, err);
	}
	free(heads);
	if (rc == 0) {
		topo_freeze(b->logical);
	}
	return rc;
}

/* Links from u to v, which have one capacity; 0: none, or not so. */
static int count_links(const struct topo *t, int u, int v)
{
	int first, n = topo_out(t, u, &first), like = topo_find_arc(t, u, v), links = 0;

	for (int a = first; a < first + n; a++) {
		if (topo_arc(t, a)->dst != v) {
			continue;
		}
		if (topo_arc(t, a)->cap != topo_arc(t, like)->cap) {
			return 0;
		}
		links++;
	}
	return links;
}

/* In how many parts a chunk goes, so that parallel links everywhere get as many of them each; 0:
 * some partners are not joined by links of one capacity. */
static int count_parts(const struct torus_builder *b)
{
	const struct torus_shape *s = b->shape;
	int parts = 1;

	for (int u = 0; u < topo_ranks(s->t); u++) {
		for (int e = 0; e < s->n_dims; e++) {
			int x = torus_digit(s, u, e);

			for (int to = 0; to < s->size[e]; to++) {
				int v = torus_at(s, u, e, to), links;

				if (b->arc[e][x * s->size[e] + to] == 0) {
					continue;
				}
				links = count_links(s->t, u, v);
				parts = links ? parts / (int)rat_gcd(parts, links) * links
					: MAX_PARTS + 1;
				if (parts > MAX_PARTS) {
					return 0;
				}
			}
		}
	}
	return s->fabric ? 0 : parts;
}

/* An empty schedule on a digraph, which becomes b's as the schedule's; g is taken over. */
static int begin_on(struct torus_builder *b, struct topo *t, int chunks, int root,
		    struct topo_group *g, struct err *err)
{
	int rc = coll_new(b->kind, t, chunks, 0, root, &b->sched, err);

	b->logical = rc ? NULL : t;
	if (rc) {
		topo_group_free(g);
		return rc;
	}
	return coll_set_group(b->sched, g, err);
}

/* On the links themselves, where these have the same symmetry. */
static int begin_direct(struct torus_builder *b, int chunks, int root,
			const struct topo_group *g, struct err *err)
{
	struct topo_group *own = NULL;
	struct topo *t;
	int rc = topo_copy(b->shape->t, &t, err);

	if (rc) {
		return rc;
	}
	if (g && (rc = topo_group_copy(g, &own, err))) {
		topo_free(t);
		return rc;
	}
	rc = begin_on(b, t, chunks * b->parts, root, own, err);
	b->is_direct = rc == 0;
	if (rc == WEFT_EINVAL) {
		err_clear(err);
		coll_free(b->sched);
		b->sched = NULL;
		b->logical = NULL;
		rc = 0;
	}
	return rc;
}

int torus_builder_begin(struct torus_builder *b, int chunks, int root, struct topo_group *g,
			struct err *err)
{
	int rc;

	if (b->paths == TORUS_SINGLE) {
		number_by_offset(b);
	}
	b->parts = count_parts(b);
	rc = b->parts ? begin_direct(b, chunks, root, g, err) : 0;
	if (rc || b->is_direct || (rc = make_digraph(b, err))) {
		topo_group_free(g);
		return rc;
	}
	return begin_on(b, b->logical, chunks, root, g, err);
}

/* Each of the links to a node carries as many parts of the chunks. */
static int add_on_links(struct torus_builder *b, int from, int to, const struct coll_xfer *like,
			struct err *err)
{
	int first, n = topo_out(b->logical, from, &first), rc = 0;
	int parts = (like->last - like->first + 1) * b->parts / count_links(b->logical, from, to);
	struct coll_xfer xfer = *like;

	xfer.first = like->first * b->parts;
	for (xfer.arc = first; xfer.arc < first + n && rc == 0; xfer.arc++) {
		if (topo_arc(b->logical, xfer.arc)->dst == to) {
			xfer.last = xfer.first + parts - 1;
			rc = coll_add(b->sched, &xfer, err);
			xfer.first += parts;
		}
	}
	return rc;
}

int torus_builder_add(struct torus_builder *b, int x, int dimension, int to,
		      const struct coll_xfer *like, struct err *err)
{
	const struct torus_shape *s = b->shape;
	struct coll_xfer xfer = *like;
	int at = torus_digit(s, x, dimension), first;

	if (b->is_direct) {
		return add_on_links(b, x, torus_at(s, x, dimension, to), like, err);
	}
	topo_out(b->logical, x, &first);
	for (int e = 0; e < dimension; e++) {
		first += b->n_arcs[e][torus_digit(s, x, e)];
	}
	assert(b->arc[dimension][at * s->size[dimension] + to] > 0);
	xfer.arc = first + b->arc[dimension][at * s->size[dimension] + to] - 1;
	return coll_add(b->sched, &xfer, err);
}

int torus_builder_end(struct torus_builder *b, struct coll_sched **out, struct err *err)
{
	static const enum coll_routing routing[] = {
		[TORUS_SPLIT] = COLL_ROUTING_MINIMAL_SPLIT,
		[TORUS_PARALLEL] = COLL_ROUTING_MINIMAL_PARALLEL,
		[TORUS_SINGLE] = COLL_ROUTING_MINIMAL_SINGLE,
	};
	struct topo *physical = NULL;
	int rc = coll_finish(b->sched, err);

	if (rc == 0 && b->is_direct) {
		*out = b->sched;
		b->sched = NULL;
		b->logical = NULL;
		return 0;
	}
	if (rc || (b->shape->fabric && b->paths == TORUS_SPLIT)) {
		return rc ? rc : coll_embed_in(b->shape->fabric, b->sched, out, err);
	}
	rc = topo_copy(b->shape->t, &physical, err);
	return rc ? rc : coll_embed(b->sched, physical, routing[b->paths], 0, out, err);
}

void torus_builder_fini(struct torus_builder *b)
{
	if (b->sched) {
		coll_free(b->sched);
	} else {
		topo_free(b->logical);
	}
	arrays_fini(&b->arrays);
}
