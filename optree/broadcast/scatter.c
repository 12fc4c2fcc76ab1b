/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The root gives every other node a piece of its own: lightpaths from the root
 * to all of them, which share the channels of its two links, in one step or
 * several. And what follows for vectors of medium size, an all-gather.
 */
#include <stdlib.h>

#include "lib/base/alloc.h"
#include "lib/base/number/rat.h"
#include "optree/broadcast/broadcast.h"

#define MORE_STEPS 64	/* than there must be, that are looked at */

/* Nodes that the root sends to each way, as the channels are. */
static void receivers(const struct optree_params *p, int root, int to[2])
{
	int64_t cw = tree_width(p, RWA_CW), sum = cw + tree_width(p, RWA_CCW);

	broadcast_sides(p, root, to);
	if (!p->line) {
		to[0] = (int)(((p->n - 1) * cw + sum / 2) / sum);
		to[1] = p->n - 1 - to[0];
	}
}

/* Channels for each lightpath when each way takes so many steps. */
static int64_t width_of(const struct optree_params *p, int dir, int receivers, int slots)
{
	return tree_width(p, dir) / ((receivers + slots - 1) / slots);
}

bool broadcast_scatter_steps(const struct optree_params *p, int root, int reach, double piece_ns,
			     int *slots, double *ns)
{
	int to[2], most, least = 1;
	double alpha, best = -1;

	receivers(p, root, to);
	most = to[0] > to[1] ? to[0] : to[1];
	if (most > reach) {
		return false;
	}
	for (int dir = 0; dir < 2; dir++) {
		int64_t w = tree_width(p, dir);
		int need = to[dir] ? (int)((to[dir] + w - 1) / w) : 1;

		least = need > least ? need : least;
	}
	alpha = (double)p->alpha_ns;
	if (p->span_delay_ns) {
		alpha += (double)tree_span(p, most) * (double)p->span_delay_ns;
	}
	for (int k = least; k <= most && k < least + MORE_STEPS; k++) {
		double longest = 0, t;

		for (int dir = 0; dir < 2; dir++) {
			t = to[dir] ? piece_ns / (double)width_of(p, dir, to[dir], k) : 0;
			longest = t > longest ? t : longest;
		}
		t = k * (alpha + longest);
		if (best < 0 || t < best) {
			best = t;
			*slots = k;
		}
	}
	*ns = best;
	return true;
}

void broadcast_scatter(const struct optree_params *p, int root, int slots, const int64_t *first,
		       const int64_t *end, struct optree_broadcast *out)
{
	int to[2];

	receivers(p, root, to);
	for (int slot = 0; slot < slots; slot++) {
		for (int dir = 0; dir < 2; dir++) {
			int64_t width = to[dir] ? width_of(p, dir, to[dir], slots) : 0;

			for (int k = slot + 1; k <= to[dir]; k += slots) {
				int at = dir == RWA_CW ? k : p->n - k;
				struct broadcast_send x = {
					.step = slot, .to = at, .dir = (uint8_t)dir,
					.colour = (int32_t)((k - 1) / slots * width),
					.width = (int32_t)width,
					.first = first[at], .end = end[at],
				};

				if (x.first < x.end) {
					vec_push(&out->sends, x);
				}
			}
		}
	}
	out->send_steps = slots;
}

/* Every node the shard that has its number. */
static void scatter_shards(const struct optree_params *p, struct optree_broadcast *b)
{
	int64_t *first = x_new((size_t)p->n * 2, sizeof(*first)), *end = first + p->n;
	int slots;
	double ignored, piece_ns = broadcast_vector_ns(p) / p->n;

	for (int k = 1; k < p->n; k++) {
		first[k] = (int64_t)broadcast_rank(p, b->root, k) * b->chunks;
		end[k] = first[k] + b->chunks;
	}
	broadcast_scatter_steps(p, b->root, p->n, piece_ns, &slots, &ignored);
	broadcast_scatter(p, b->root, slots, first, end, b);
	free(first);
}

/* Cuts the all-gather's chunks so that the scatter's lightpaths carry as many on each channel,
 * if they may be so small. */
static void fit_chunks(const struct optree_params *p, int root, int slots,
		       struct optree_sym *gather)
{
	int64_t times = 1, most = compose_max_chunks(p) / gather->chunks;
	int to[2];

	receivers(p, root, to);
	for (int dir = 0; dir < 2; dir++) {
		int64_t width = to[dir] ? width_of(p, dir, to[dir], slots) : 1;

		times *= width / rat_gcd(width, gather->chunks * times);
	}
	optree_sym_refine(gather, (int)(times < most ? times : most < 1 ? 1 : most));
}

int broadcast_gather(const struct optree_params *p, int root, int reach,
		     struct optree_broadcast *out, struct err *err)
{
	struct optree_broadcast b = { .method = BROADCAST_GATHER, .root = root };
	struct compose_shape shape;
	struct err ignored;
	int64_t ns = 0;
	double scatter_ns;
	int slots, rc;

	if (!broadcast_scatter_steps(p, root, reach, broadcast_vector_ns(p) / p->n, &slots,
				     &scatter_ns) ||
	    (out->time_ns >= 0 && 2 * scatter_ns > 3 * (double)out->time_ns)) {
		return 0;
	}
	b.gather = x_new(1, sizeof(*b.gather));
	rc = compose_best(p, reach, &shape, b.gather, &ignored);
	if (rc) {
		free(b.gather);
		return 0;
	}
	fit_chunks(p, root, slots, b.gather);
	b.chunks = b.gather->chunks;
	ns = compose_times(p, b.gather);
	if ((rc = optree_sym_verify(b.gather, err))) {
		broadcast_fini(&b);
		return rc;
	}
	scatter_shards(p, &b);
	broadcast_time(p, ns, &b);
	broadcast_keep(out, &b);
	return 0;
}
