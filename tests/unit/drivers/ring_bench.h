/* SPDX-License-Identifier: Apache-2.0 */
/* A ring of resonators in a namespace, with both ends of all netdevs. */
#ifndef WEFT_TESTS_UNIT_DRIVERS_RING_BENCH_H
#define WEFT_TESTS_UNIT_DRIVERS_RING_BENCH_H

#include "drivers/linux/netns_ring.h"
#include "tests/unit/host/bench.h"

/* The far ends of t and r, the node's side, are ft and fr. */
static inline void bench_ring(struct host_net *net,
			      const struct ring_geometry *g)
{
	struct host_link *v;
	int n;

	assert_int_equal(netns_ring_wire(net, g, NULL), 0);
	for (size_t k = 0; k < 2 * netns_ring_count(g); k++) {
		struct ring_setting at = netns_ring_at(g, k / 2);
		char near[24], far[24];

		netns_ring_name(near, k % 2 ? "r" : "t", &at);
		netns_ring_name(far, k % 2 ? "fr" : "ft", &at);
		assert_int_equal(host_veth_add(net, near, NULL, net, far, NULL,
					       NULL), 0);
	}
	assert_int_equal(netns_ring_start(net, NULL), 0);
	assert_int_equal(host_links(net, &v, &n, NULL), 0);
	for (int i = 0; i < n; i++) {
		if (v[i].name[0] == 'f') {
			assert_int_equal(host_link_set(net, v[i].ifindex, true,
						       NULL), 0);
		}
	}
	free(v);
}

#endif
