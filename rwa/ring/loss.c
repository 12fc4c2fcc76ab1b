/* The optical budget of a path through micro-ring resonators. */
#include "rwa/ring/ring.h"

int64_t rwa_path_loss_mdb(const struct rwa_ring *ring,
			  const struct rwa_loss *loss, int hops)
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
