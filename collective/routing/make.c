/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Route tables of single paths, as collective/flow chooses them. It sees parallel
 * arcs as one of their sum; here each route takes, of the parallel arcs along its
 * path, the one that is loaded least.
 */
#include <stdlib.h>
#include <string.h>

#include "collective/flow/flow.h"
#include "collective/routing/private.h"
#include "lib/base/alloc.h"

/* A table being made of chosen paths. */
struct routes_make {
	const struct topo *t;
	const struct flow_net *net;	/* t without parallel arcs */
	int64_t *load;		/* arc of the topology: routes */
};

/* The lane of an arc of the net that one route more fills least. */
static int pick_lane(const struct routes_make *m, int a)
{
	const int32_t *first = m->net->first_lane;
	int best = m->net->lanes[first[a]];

	for (int i = first[a] + 1; i < first[a + 1]; i++) {
		int b = m->net->lanes[i];

		if ((m->load[b] + 1) * topo_arc(m->t, best)->cap <
		    (m->load[best] + 1) * topo_arc(m->t, b)->cap) {
			best = b;
		}
	}
	return best;
}

/* One route a path; a shard is one chunk. */
static void alloc_table(const struct routes_make *m, const struct flow_paths *paths,
			struct coll_routes *out)
{
	size_t n = paths->v.n + 1;

	out->nodes = topo_n(m->t);
	out->chunks = 1;
	out->route = x_alloc(n, sizeof(*out->route));
	out->first = x_alloc(n, sizeof(*out->first));
	out->arcs = x_alloc(paths->arcs.n + 1, sizeof(*out->arcs));
	out->layer = x_alloc(n, sizeof(*out->layer));
}

static void fill_table(struct routes_make *m, const struct flow_paths *paths,
		       struct coll_routes *out)
{
	int64_t k = 0;

	for (size_t i = 0; i < paths->v.n; i++) {
		const struct flow_path *q = &paths->v.v[i];

		out->first[i] = k;
		out->layer[i] = q->layer;
		out->route[i] = (struct coll_route){
			q->pair / m->net->n, q->pair % m->net->n, 1, q->layer,
		};
		out->n_layers = q->layer >= out->n_layers ? q->layer + 1
							  : out->n_layers;
		for (int j = 0; j < q->n_arcs; j++, k++) {
			int a = pick_lane(m, paths->arcs.v[q->first + j]);

			m->load[a]++;
			out->arcs[k] = a;
		}
	}
	out->first[paths->v.n] = k;
	out->table = (struct layer_routes){
		m->net->topo_arcs, (int64_t)paths->v.n, out->first, out->arcs,
	};
}

static int make_table(const struct topo *t, const struct flow_paths *paths,
		      struct coll_routes *out, struct err *err)
{
	struct flow_net net = { 0 };
	struct routes_make m = { .t = t, .net = &net };
	int rc = flow_net_from(t, NULL, &net, err);

	if (rc) {
		return rc;
	}
	m.load = x_new((size_t)net.topo_arcs + 1, sizeof(*m.load));
	alloc_table(&m, paths, out);
	fill_table(&m, paths, out);
	routes_state_rate(out, t);
	free(m.load);
	flow_net_fini(&net);
	return 0;
}

static int prove_layers(struct coll_routes *r, struct err *err)
{
	int rc = layers_prove(&r->table, r->layer, r->n_layers, &r->rank, err);

	if (rc) {
		return rc;
	}
	if (!layers_proven(&r->table, r->layer, r->n_layers, r->rank)) {
		return err_set(err, WEFT_EINTERNAL, "layers of routes "
			       "without proof");
	}
	return 0;
}

int coll_routes_choose(const struct topo *t, const struct single_options *opt,
		       struct coll_routes *out, struct single_result *res, struct err *err)
{
	struct flow_paths paths = { 0 };
	int rc;

	memset(out, 0, sizeof(*out));
	rc = topo_check_plain(t, "routes", err);
	if (rc) {
		return rc;
	}
	rc = single_path(t, opt, &paths, res, err);
	if (rc == 0) {
		rc = make_table(t, &paths, out, err);
	}
	flow_paths_fini(&paths);
	if (rc) {
		return rc;
	}
	if (opt->layers) {
		return prove_layers(out, err);
	}
	free(out->layer);
	out->layer = NULL;
	return routes_assign_layers(out, 0, err);
}
