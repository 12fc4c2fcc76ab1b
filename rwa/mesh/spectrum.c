/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The channels of a fibre that may be active: guard channels and tuning
 * ranges, and what follows from them for the number of channels by counting
 * alone.
 *
 * The flow's prices know neither tuning ranges nor that all lightpaths of a
 * node leave through its own fibres on channels that it reaches. Counting the
 * usable slots at each node's ends does, and gives a bound of its own. It is
 * a theorem for any assignment, as every lightpath takes a slot out of its
 * source and one into its destination, whatever its route.
 */
#include <stdlib.h>

#include "lib/base/alloc.h"
#include "lib/base/order.h"
#include "rwa/mesh/private.h"

bool mesh_tunes(const struct rwa_mesh *m, int32_t node, int32_t channel)
{
	bool any = false;

	for (size_t i = 0; i < m->tunings.n; i++) {
		const struct rwa_mesh_tuning *t = &m->tunings.v[i];

		if (t->node != node) {
			continue;
		}
		if (channel >= t->first && channel <= t->last) {
			return true;
		}
		any = true;
	}
	return !any;
}

/* Active channels stand `between` + 1 apart at least, from `below` on. */
int64_t mesh_band_slots(const struct rwa_mesh *m, int64_t channels)
{
	int64_t room = channels - m->guard.below - m->guard.above;
	int64_t each = m->guard.between + 1;

	return room > 0 ? (room + each - 1) / each : 0;
}

int64_t mesh_band_min_channels(const struct rwa_mesh *m, int64_t slots)
{
	return slots > 0 ? m->guard.below + m->guard.above +
				   (slots - 1) * (m->guard.between + 1) + 1
			 : 0;
}

/* Appends the single slots of a block, on each of its fibres, unless the
 * whole fibre is closed or the slot was seen before. */
static void add_block_slots(const struct rwa_mesh *m, const struct rwa_mesh_block *b,
			    const struct u64map *shut, struct u64map *seen, struct mesh_slots *out)
{
	bool all = b->fibre == RWA_MESH_ALL;
	int32_t end = all ? m->arcs.v[b->arc].fibres : b->fibre + 1;

	for (int32_t f = all ? 0 : b->fibre; f < end; f++) {
		struct rwa_hop h = { b->arc, f, RWA_MESH_ALL };
		uint64_t key = mesh_slot_key(b->arc, f, b->channel);

		if (mesh_is_shut(shut, &h) || u64map_get(seen, key, NULL)) {
			continue;
		}
		h.channel = b->channel;
		u64map_set(seen, key, 1);
		vec_push(out, h);
	}
}

ORDER_BY(by_channel, struct rwa_hop, channel)

void mesh_used_slots(const struct rwa_mesh *m, struct mesh_slots *out)
{
	struct u64map shut = { 0 }, seen = { 0 };

	mesh_shut_init(m, &shut);
	for (size_t i = 0; i < m->blocks.n; i++) {
		const struct rwa_mesh_block *b = &m->blocks.v[i];

		if (b->channel != RWA_MESH_ALL) {
			add_block_slots(m, b, &shut, &seen, out);
		}
	}
	if (out->n) {
		qsort(out->v, out->n, sizeof(*out->v), by_channel);
	}
	u64map_fini(&shut);
	u64map_fini(&seen);
}

/* ---- slots at the ends of lightpaths ---- */

/* Slots and lightpaths at every node's two sides: 0 is leaving, 1 entering.
 * open[] and need[] point into one allocation, which open[0] owns; `used`
 * counts slots in use by others, by end_key(). */
struct ends {
	const struct rwa_mesh *m;
	int32_t *fibres;	/* open, by arc */
	int64_t *open[2];	/* open fibres out of (0) and into (1) a node */
	int64_t *need[2];	/* lightpaths that begin, end */
	struct u64map used;	/* (side, node, channel): slots in use */
};

/* A key for a channel at one side of a node. */
static uint64_t end_key(int side, int32_t node, int32_t channel)
{
	return (uint64_t)side << 63 | (uint64_t)node << 32 | (uint32_t)channel;
}

/* Counts a slot in use at both ends of its arc. */
static void add_used(struct ends *s, const struct rwa_hop *h)
{
	const struct rwa_mesh_arc *arc = &s->m->arcs.v[h->arc];

	for (int side = 0; side < 2; side++) {
		uint64_t at = end_key(side, side ? arc->dst : arc->src, h->channel), n = 0;

		u64map_get(&s->used, at, &n);
		u64map_set(&s->used, at, n + 1);
	}
}

/* Fills the counts, for ends_fini(). */
static void ends_init(struct ends *s, const struct rwa_mesh *m)
{
	struct mesh_slots slots = { 0 };
	int64_t *sums = x_new(4 * m->nodes.n, sizeof(*sums));

	*s = (struct ends){ .m = m };
	s->fibres = x_new(m->arcs.n + 1, sizeof(*s->fibres));
	s->open[0] = sums;
	s->open[1] = sums + m->nodes.n;
	s->need[0] = sums + 2 * m->nodes.n;
	s->need[1] = sums + 3 * m->nodes.n;
	mesh_open_fibres(m, s->fibres);
	for (size_t e = 0; e < m->arcs.n; e++) {
		s->open[0][m->arcs.v[e].src] += s->fibres[e];
		s->open[1][m->arcs.v[e].dst] += s->fibres[e];
	}
	for (size_t i = 0; i < m->demands.n; i++) {
		const struct rwa_mesh_demand *d = &m->demands.v[i];
		int64_t n = (int64_t)d->count * (d->protect ? 2 : 1);

		s->need[0][d->src] += n;
		s->need[1][d->dst] += n;
	}
	mesh_used_slots(m, &slots);
	for (size_t i = 0; i < slots.n; i++) {
		add_used(s, &slots.v[i]);
	}
	vec_fini(&slots);
}

static void ends_fini(struct ends *s)
{
	free(s->fibres);
	free(s->open[0]);
	u64map_fini(&s->used);
}

/* Channels, guards at the top included, until `need` slots of a node's side
 * are tunable (by both nodes: `other` of the far end, or -1). Guard
 * channels between active ones are skipped greedily from the lowest tunable
 * channel, which leaves the most. More than RWA_MESH_MAX_CHANNELS when no
 * number is enough. */
static int32_t channels_for(const struct ends *s, int side, int32_t node,
			    int32_t other, int64_t need)
{
	const struct rwa_mesh_guard *g = &s->m->guard;
	int64_t have = 0;
	int32_t c = g->below, last = -1;

	for (; have < need && c < RWA_MESH_MAX_CHANNELS; c++) {
		uint64_t used = 0;

		if (last >= 0 && c - last <= g->between) {
			continue;
		}
		if (s->m->tunings.n &&
		    (!mesh_tunes(s->m, node, c) ||
		     (other >= 0 && !mesh_tunes(s->m, other, c)))) {
			continue;
		}
		if (!g->between) {
			u64map_get(&s->used, end_key(side, node, c), &used);
		}
		have += s->open[side][node] - (int64_t)used;
		last = c;
	}
	return have < need ? RWA_MESH_MAX_CHANNELS + 1 : c + g->above;
}

/* Where nothing converts, both ends of a lightpath use the same channel. */
static bool any_converts(const struct rwa_mesh *m)
{
	for (size_t v = 0; v < m->nodes.n; v++) {
		if (m->nodes.v[v].convert) {
			return true;
		}
	}
	return false;
}

void mesh_ends_bound(const struct rwa_mesh *m, int *channels, int32_t *node)
{
	struct ends s;
	bool pairs = m->tunings.n && !any_converts(m);

	ends_init(&s, m);
	*channels = 0;
	*node = -1;
	for (size_t k = 0; k < 2 * m->nodes.n; k++) {
		int side = k >= m->nodes.n;
		int32_t v = (int32_t)(k % m->nodes.n), c;
		int64_t need = s.need[side][v];

		/* Without a fibre there is no path, which is for others to say. */
		if (!need || !s.open[side][v]) {
			continue;
		}
		c = channels_for(&s, side, v, -1, need);
		if (c > *channels) {
			*channels = c;
			*node = v;
		}
	}
	for (size_t i = 0; pairs && i < m->demands.n; i++) {
		const struct rwa_mesh_demand *d = &m->demands.v[i];
		int32_t c;

		if (!s.open[0][d->src]) {
			continue;
		}
		c = channels_for(&s, 0, d->src, d->dst, (int64_t)d->count * (d->protect ? 2 : 1));
		if (c > *channels) {
			*channels = c;
			*node = d->src;
		}
	}
	ends_fini(&s);
}
