/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An all-reduce by owners. Level by level the vector is cut into more parts and what is summed of
 * each part comes together at fewer nodes, its hubs, until each has one, its owner; then
 * the sums go back over the same lightpaths reversed. A level cuts every part into `parts`, of
 * which each has `hubs` of the hubs that the part had (at first: all nodes), evenly spaced, and
 * each hub of the whole part sends every other part to the nearest hub of it. So one
 * level with k owners is an all-reduce in two steps. From m hubs a part to M of them, G parts
 * afterwards, G m / 8M lightpaths cross a link each way, and carry 1/G of the vector.
 */
#include <stdlib.h>

#include "optree/grouped/grouped.h"

/* Parts there are before a level. */
static int parts_before(const struct grouped_shape *s, int level)
{
	int parts = 1;

	for (int k = 0; k < level; k++) {
		parts *= s->owner[k].parts;
	}
	return parts;
}

static int hubs_before(const struct optree_groups *g, int level)
{
	return level ? g->shape.owner[level - 1].hubs : g->n;
}

/* Of the hubs of the whole part which one is hub j (or any other number of turns on) of a part. */
static int64_t place(const struct optree_groups *g, int level, int64_t part, int64_t j)
{
	const struct grouped_owner *o = &g->shape.owner[level];
	int64_t before = parts_before(&g->shape, level), whole = part % before;
	int64_t all = before * o->parts * o->hubs, turn = j < 0 ? -1 : j / o->hubs;

	j -= turn * o->hubs;
	j = ((j * o->parts + part / before) * before + whole) * hubs_before(g, level) / all;
	return j + turn * hubs_before(g, level);
}

/* The node of hub x that a part has before a level. */
static int32_t node_of(const struct optree_groups *g, int level, int64_t part, int64_t x)
{
	while (level-- > 0) {
		x = place(g, level, part, x);
		part %= parts_before(&g->shape, level);
	}
	return (int32_t)x;
}

int grouped_pieces(const struct optree_groups *g)
{
	return parts_before(&g->shape, g->shape.owners);
}

int32_t grouped_owner(const struct optree_groups *g, int piece)
{
	return node_of(g, g->shape.owners, piece, 0);
}

/* Part `part` from hub x of the whole part to the nearest hub of its own, of which j is the last
 * that is not behind x; a length of 0: it is there. */
static struct grouped_hop hop_of(const struct optree_groups *g, int level, int part, int64_t x,
				 int64_t j)
{
	int hubs = hubs_before(g, level), whole = part % parts_before(&g->shape, level);
	int64_t left = x - place(g, level, part, j), right = place(g, level, part, j + 1) - x;
	bool cw = left == right ? (x + part) % 2 : right < left;
	struct grouped_hop h = { .group = part, .dir = cw ? RWA_CW : RWA_CCW,
				 .kind = (int)(cw ? right : left) };
	int32_t to = node_of(g, level, whole, (x + (cw ? right : -left) + hubs) % hubs);

	h.src = node_of(g, level, whole, x);
	h.len = ((cw ? to - h.src : h.src - to) + g->n) % g->n;
	for (int k = 0; k < level; k++) {
		h.group += parts_before(&g->shape, k + 1);
	}
	return h;
}

static int level_hops(const struct optree_groups *g, int level, grouped_hop_fn *f, void *data)
{
	int parts = parts_before(&g->shape, level + 1), hubs = hubs_before(g, level), rc = 0;

	for (int part = 0; part < parts && !rc; part++) {
		int64_t j = -1;

		for (int x = 0; x < hubs && !rc; x++) {
			struct grouped_hop h;

			while (place(g, level, part, j + 1) <= x) {
				j++;
			}
			h = hop_of(g, level, part, x, j);
			rc = h.kind ? f(data, &h) : 0;
		}
	}
	return rc;
}

int grouped_owner_hops(const struct optree_groups *g, int level, grouped_hop_fn *f, void *data)
{
	struct grouped_turned t = { g->n, f, data };
	int levels = g->shape.owners;

	return level < levels ? level_hops(g, level, f, data)
			      : level_hops(g, 2 * levels - 1 - level, grouped_turn, &t);
}

struct grouped_part grouped_part(const struct optree_groups *g, int group)
{
	int64_t first = 0, length = (int64_t)g->n * g->units;
	int level = 0, part = group, parts = g->shape.owner[0].parts;

	while (part >= parts) {
		part -= parts;
		parts *= g->shape.owner[++level].parts;
	}
	for (int k = 0; k <= level; k++) {
		length /= g->shape.owner[k].parts;
		first += part % g->shape.owner[k].parts * length;
		part /= g->shape.owner[k].parts;
	}
	return (struct grouped_part){ first, first + length };
}
