/* SPDX-License-Identifier: Apache-2.0 */
/* How far light goes within the loss budget, and what is said where that is not enough. */
#include "optree/private.h"

int tree_out_of_reach(const struct optree_params *p, int src, int dst, int hops, struct err *err)
{
	struct rwa_ring ring = { p->at && p->ring_nodes ? p->ring_nodes : p->n,
				 p->fibres, p->channels };
	const struct rwa_loss *loss = p->loss;
	int64_t budget = (int64_t)loss->launch_mdbm - loss->sensitivity_mdbm -
			 loss->margin_mdb;
	int64_t lost = rwa_path_loss_mdb(&ring, loss, hops);

	return err_set(err, WEFT_EINFEASIBLE,
		       "lightpath %d -> %d over %d hops loses %.3f dB, and the "
		       "budget is %.3f dB (reach: %d hops)", src, dst, hops,
		       (double)lost / 1000, (double)budget / 1000,
		       rwa_reach_hops(&ring, loss));
}

/* Names the longest of the paths between neighbours. */
static int out_of_reach(const struct optree_params *p, struct err *err)
{
	int span = tree_span(p, 1), v = 0;

	while (optree_links(p, v, (v + 1) % p->n, RWA_CW) < span) {
		v++;
	}
	return tree_out_of_reach(p, v, (v + 1) % p->n, span, err);
}

int make_reach(const struct optree_params *p, int *reach, struct err *err)
{
	struct rwa_ring ring = { p->at && p->ring_nodes ? p->ring_nodes : p->n,
				 p->fibres, p->channels };
	int links, max = p->n - 1, min = 0;

	*reach = max;
	if (!p->loss) {
		return 0;
	}
	links = rwa_reach_hops(&ring, p->loss);
	while (min < max) {
		int mid = min + (max - min + 1) / 2;

		if (tree_span(p, mid) <= links) {
			min = mid;
		} else {
			max = mid - 1;
		}
	}
	*reach = min;
	return *reach < 1 ? out_of_reach(p, err) : 0;
}
