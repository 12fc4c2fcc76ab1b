/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs on a part of a ring: some of its channels, some of its nodes, or a
 * segment. */
#include "optree/private.h"

int optree_links(const struct optree_params *p, int src, int dst, int dir)
{
	int n = p->at && p->ring_nodes ? p->ring_nodes : p->n;
	int from = p->at ? p->at[src] : src, to = p->at ? p->at[dst] : dst;
	int links = dir == RWA_CW ? to - from : from - to;

	return links > 0 ? links : links + n;
}

bool part_keeps_light(const struct optree_params *p)
{
	return p->overlap && !p->shared;
}

int64_t tree_width(const struct optree_params *p, int dir)
{
	int64_t sum = 0;

	for (int k = 0; k < p->n_light; k++) {
		sum += p->light[k].dir == dir ? p->light[k].channels : 0;
	}
	return p->n_light ? sum : (int64_t)p->channels * p->fibres;
}

struct rwa_ring tree_ring(const struct optree_params *p)
{
	struct rwa_ring ring = { p->n, p->fibres, p->channels };
	int64_t cw = tree_width(p, RWA_CW), ccw = tree_width(p, RWA_CCW);
	int64_t min = cw < ccw ? cw : ccw;

	if (p->n_light) {
		ring.fibres = 1;
		ring.channels = min > UINT16_MAX + 1 ? UINT16_MAX + 1 : (int)min;
	}
	return ring;
}

void part_colour(const struct optree_fibre *light, size_t n_light, int channels, int dir,
		 int32_t colour, uint8_t *fibre, uint16_t *channel)
{
	*fibre = (uint8_t)(colour / channels);
	*channel = (uint16_t)(colour % channels);
	for (size_t k = 0; k < n_light; k++) {
		if (light[k].dir != dir) {
			continue;
		}
		if (colour < light[k].channels) {
			*fibre = light[k].fibre;
			*channel = (uint16_t)(light[k].first + colour);
			return;
		}
		colour -= light[k].channels;
	}
}

int tree_span(const struct optree_params *p, int len)
{
	int max = len;

	for (int v = 0; p->at && v < p->n - (p->line ? len : 0); v++) {
		int links = optree_links(p, v, (v + len) % p->n, RWA_CW);

		max = links > max ? links : max;
	}
	return max;
}
