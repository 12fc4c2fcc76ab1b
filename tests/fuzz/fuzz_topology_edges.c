/* SPDX-License-Identifier: Apache-2.0 */
/* Edge lists: whatever the bytes, a graph that keeps its promises or an
 * error that says something. */
#include <stdint.h>
#include <stdlib.h>

#include "topology/topology.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(int good)
{
	if (!good) {
		abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct err err = { 0 };
	struct topo *t;

	if (topo_from_edges((const char *)data, size, &t, &err)) {
		check(err.code != 0 && err.msg[0]);
		return 0;
	}
	check(topo_n(t) >= 1 && topo_m(t) >= 1);
	for (int a = 0; a < topo_m(t); a++) {
		const struct topo_arc *arc = topo_arc(t, a);

		check(arc->src < topo_n(t) && arc->dst < topo_n(t));
		check(arc->cap > 0 && arc->latency_ns >= 0);
	}
	check(topo_check_order(t, NULL) == 0);
	topo_free(t);
	return 0;
}
