/* Arcs as ranges of links: checks, loads and the numbering of colours. */
#include <stdlib.h>

#include "rwa/ring/private.h"

struct span rwa_span(int n, const struct rwa_arc *arc)
{
	int32_t from = arc->dir == RWA_CW ? arc->src : arc->dst;
	int32_t to = arc->dir == RWA_CW ? arc->dst : arc->src;

	return (struct span){ from, to > from ? to - from : to - from + n };
}

int rwa_check_sizes(const struct rwa_ring *ring, int64_t n_arcs,
		    struct err *err)
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

void rwa_set_colour(const struct rwa_ring *ring, struct rwa_arc *arc,
		    int32_t colour)
{
	int32_t width = ring->fibres * ring->channels;

	arc->slot = colour / width;
	arc->fibre = (uint8_t)(colour % width / ring->channels);
	arc->channel = (uint16_t)(colour % ring->channels);
}

int rwa_max_load(const struct rwa_ring *ring, const struct rwa_arc *arcs,
		 int64_t n_arcs, int *bound, struct err *err)
{
	int n = ring->n;
	int32_t *rise = calloc(2 * (size_t)n, sizeof(*rise));
	int32_t load[2] = { 0, 0 };

	if (!rise) {
		return err_nomem(err);
	}
	for (int64_t i = 0; i < n_arcs; i++) {
		struct span s = rwa_span(n, &arcs[i]);
		int dir = arcs[i].dir;

		rise[2 * s.lo + dir]++;
		rise[2 * ((s.lo + s.len) % n) + dir]--;
		load[dir] += s.lo + s.len >= n; /* reaches node 0 */
	}
	*bound = 0;
	for (int v = 0; v < n; v++) {
		for (int dir = 0; dir < 2; dir++) {
			load[dir] += rise[2 * v + dir];
			*bound = load[dir] > *bound ? load[dir] : *bound;
		}
	}
	free(rise);
	return 0;
}
