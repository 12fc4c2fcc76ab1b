/* SPDX-License-Identifier: Apache-2.0 */
/* Arcs as ranges of links: checks, loads, the numbering of colours, and the
 * loss of a path. */
#include <string.h>

#include "rwa/ring/private.h"

struct ring_span rwa_span(int n, const struct rwa_arc *arc)
{
	int32_t from = arc->dir == RWA_CW ? arc->src : arc->dst;
	int32_t to = arc->dir == RWA_CW ? arc->dst : arc->src;

	return (struct ring_span){ from, to > from ? to - from : to - from + n };
}

int rwa_check_sizes(const struct rwa_ring *ring, int64_t n_arcs, struct err *err)
{
	if (ring->n < 2 || ring->n > RWA_MAX_NODES) {
		return err_set(err, WEFT_EINVAL,
			       "a ring of %d nodes: 2 to %d are supported",
			       ring->n, RWA_MAX_NODES);
	}
	if (ring->fibres < 1 || ring->fibres > UINT8_MAX + 1) {
		return err_set(err, WEFT_EINVAL,
			       "%d fibres a direction: 1 to %d are supported",
			       ring->fibres, UINT8_MAX + 1);
	}
	if (ring->channels < 1 || ring->channels > UINT16_MAX + 1) {
		return err_set(err, WEFT_EINVAL,
			       "%d channels a fibre: 1 to %d are supported",
			       ring->channels, UINT16_MAX + 1);
	}
	if (n_arcs < 0 || n_arcs > RWA_MAX_ARCS) {
		return err_set(err, WEFT_ELIMIT,
			       "%lld lightpaths: at most %d are supported",
			       (long long)n_arcs, RWA_MAX_ARCS);
	}
	return 0;
}

int rwa_check_arc(const struct rwa_ring *ring, const struct rwa_arc *arc,
		  int64_t index, struct err *err)
{
	if (arc->src < 0 || arc->src >= ring->n || arc->dst < 0 ||
	    arc->dst >= ring->n || arc->src == arc->dst || arc->dir > RWA_CCW) {
		return err_set(err, WEFT_EINVAL,
			       "lightpath %lld: %d -> %d, direction %d, is not "
			       "an arc of a ring of %d nodes",
			       (long long)index, arc->src, arc->dst, arc->dir,
			       ring->n);
	}
	return 0;
}

void rwa_set_colour(const struct rwa_ring *ring, struct rwa_arc *arc, int32_t colour)
{
	int32_t width = ring->fibres * ring->channels;

	arc->slot = colour / width;
	arc->fibre = (uint8_t)(colour % width / ring->channels);
	arc->channel = (uint16_t)(colour % ring->channels);
}

void rwa_span_loads(const struct colouring *job, int32_t *load)
{
	int32_t now = 0;

	memset(load, 0, (size_t)job->n * sizeof(*load));
	for (int32_t i = 0; i < job->count; i++) {
		struct ring_span s = job->spans[i];

		load[s.lo]++;
		load[(s.lo + s.len) % job->n]--;
		now += s.lo + s.len >= job->n;
	}
	/* A span that ends just at node 0 was counted into `now` and leaves
	 * it again with its -1 there. */
	for (int v = 0; v < job->n; v++) {
		now += load[v];
		load[v] = now;
	}
}

/* ---- the optical budget of a path through micro-ring resonators ---- */

int64_t rwa_path_loss_mdb(const struct rwa_ring *ring, const struct rwa_loss *loss, int hops)
{
	int64_t rings = loss->rings_per_node ? loss->rings_per_node
					     : ring->channels;

	return (int64_t)loss->add_mdb + loss->drop_mdb +
	       (int64_t)hops * loss->span_mdb +
	       (int64_t)(hops - 1) * rings * loss->pass_mdb;
}

int rwa_reach_hops(const struct rwa_ring *ring, const struct rwa_loss *loss)
{
	int64_t budget = (int64_t)loss->launch_mdbm - loss->sensitivity_mdbm -
			 loss->margin_mdb;
	int lo = 0, hi = ring->n - 1;

	/* The loss never falls with the hops, so the reach can be bisected. */
	while (lo < hi) {
		int mid = lo + (hi - lo + 1) / 2;

		if (rwa_path_loss_mdb(ring, loss, mid) <= budget) {
			lo = mid;
		} else {
			hi = mid - 1;
		}
	}
	return lo;
}
