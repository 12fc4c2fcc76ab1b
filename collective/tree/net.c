/* SPDX-License-Identifier: Apache-2.0 */
/* The digraph as the trees and paths of this room see it. */
#include <stdlib.h>

#include "collective/tree/private.h"
#include "lib/base/number/rat.h"

int tree_net_init(struct tree_net *net, const struct topo *t, int root, struct err *err)
{
	int rc;

	*net = (struct tree_net){
		.n = topo_n(t), .m = topo_m(t), .ranks = topo_ranks(t), .root = root,
	};
	if (root < 0 || root >= net->ranks) {
		return err_set(err, WEFT_EINVAL, "root %d is not one of the %d ranks", root,
			       net->ranks);
	}
	arrays_add(&net->arrays, net->arcs, net->m);
	arrays_add(&net->arrays, net->dist, net->n);
	rc = coll_cut_arcs(t, net->arcs, &net->unit, err);
	topo_bfs(t, root, net->dist);
	for (int v = 0; v < net->ranks && rc == 0; v++) {
		if (net->dist[v] < 0) {
			rc = err_set(err, WEFT_EINFEASIBLE, "no path between root %d and rank %d",
				     root, v);
		}
	}
	return rc;
}

void tree_net_fini(struct tree_net *net)
{
	arrays_fini(&net->arrays);
}
