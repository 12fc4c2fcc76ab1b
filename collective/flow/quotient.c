/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The net with all arcs of an orbit as one.
 *
 * Where a group moves the terminals freely, the paths of the first terminal of each
 * orbit are enough: what the group makes of them loads all arcs of an orbit
 * alike. So chunks are rounded and steps chosen on a net whose arcs are the orbits, by
 * the same code as without symmetry; and the schedule of these paths is
 * compact.
 */
#include <stdlib.h>

#include "collective/flow/private.h"

void flow_quotient_fini(struct flow_quotient *q)
{
	topo_action_free(q->action);
	topo_group_free(q->group);
	vec_fini(&q->arcs);
	arrays_fini(&q->arrays);
	arrays_fini(&q->net.arrays);
}

/* Numbers the orbits of the net's arcs, by the first of each. */
static void number_orbits(struct flow_quotient *q, const struct flow_net *net)
{
	for (int a = 0; a < net->m; a++) {
		int src = net->src[a], first = topo_group_first(q->group, src);
		int by = topo_group_between(q->group, src, first);

		if (by == 0) {
			q->first[q->net.m] = a;
			q->orbit[a] = q->net.m++;
		} else {
			int b = flow_net_arc(net, first,
					     topo_group_move(q->group, by, net->dst[a]));

			q->orbit[a] = q->orbit[b];
		}
	}
}

/* Capacities and lanes of the orbits: those of their first arcs. */
static void fill_net(struct flow_quotient *q, const struct flow_net *net)
{
	int lanes = 0;

	arrays_add(&q->net.arrays, q->net.units, q->net.m);
	arrays_add(&q->net.arrays, q->net.first_lane, q->net.m + 1);
	arrays_add(&q->net.arrays, q->net.lanes, net->topo_arcs);
	q->net.n = net->n;
	for (int o = 0; o < q->net.m; o++) {
		int a = q->first[o];

		q->net.units[o] = net->units[a];
		for (int k = net->first_lane[a]; k < net->first_lane[a + 1]; k++) {
			q->net.lanes[lanes++] = net->lanes[k];
		}
		q->net.first_lane[o + 1] = lanes;
	}
}

static bool keeps_demands(const struct topo_group *g, const struct flow_demands *d)
{
	int order;

	for (int i = 0; i < topo_group_generators(g); i++) {
		if (!flow_demands_kept(d, topo_group_generator(g, i, &order))) {
			return false;
		}
	}
	return true;
}

int flow_quotient_init(struct flow_quotient *q, const struct topo *t,
		       const struct flow_demands *demands, struct err *err)
{
	struct flow_net net = { 0 };
	int rc;

	*q = (struct flow_quotient){ .t = t };
	if ((rc = topo_group_find(t, &q->group, err)) || !q->group) {
		return rc;
	}
	if (!keeps_demands(q->group, demands)) {
		topo_group_free(q->group);
		q->group = NULL;
		return 0;
	}
	if ((rc = topo_action_new(t, q->group, &q->action, err)) ||
	    (rc = flow_net_from(t, NULL, &net, err))) {
		return rc;
	}
	arrays_add(&q->arrays, q->orbit, net.m);
	arrays_add(&q->arrays, q->first, net.m);
	/* Arcs of the first terminals are numbered before all that move there. */
	number_orbits(q, &net);
	fill_net(q, &net);
	flow_net_fini(&net);
	return 0;
}

void flow_quotient_paths(struct flow_quotient *q, struct flow_paths *paths)
{
	vec_reserve(&q->arcs, paths->arcs.n);
	for (size_t i = 0; i < paths->arcs.n; i++) {
		q->arcs.v[i] = paths->arcs.v[i];
		paths->arcs.v[i] = q->orbit[paths->arcs.v[i]];
	}
	q->arcs.n = paths->arcs.n;
}

int flow_quotient_lane(const struct flow_quotient *q, const struct flow_net *net, int64_t at,
		       int lane)
{
	int from, to;

	if (!q || !q->group) {
		return lane;
	}
	from = topo_arc(q->t, lane)->src;
	to = net->src[q->arcs.v[at]];
	return topo_action_move(q->action, topo_group_between(q->group, from, to), lane);
}
