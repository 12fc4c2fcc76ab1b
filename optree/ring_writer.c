/* SPDX-License-Identifier: Apache-2.0 */
/* Schedules written lightpath by lightpath: their digraph, and the light of each. */
#include <stdio.h>
#include <stdlib.h>

#include "lib/base/order.h"
#include "optree/private.h"

ORDER_BY(by_ends, struct rwa_arc, src, dst, dir)

void ring_writer_add(struct ring_writer *w, int src, int dst, int dir)
{
	struct rwa_arc a = { .src = src, .dst = dst, .dir = (uint8_t)dir };

	vec_push(&w->arcs, a);
}

/* Each arc once, in the digraph's own order, so that their numbers are known. */
static int make_topo(struct ring_writer *w, struct topo **out, struct err *err)
{
	size_t kept = 0;
	int rc = topo_new(w->p->n, out, err);

	qsort(w->arcs.v, w->arcs.n, sizeof(*w->arcs.v), by_ends);
	for (size_t k = 0; k < w->arcs.n && !rc; k++) {
		if (kept == 0 || by_ends(&w->arcs.v[kept - 1], &w->arcs.v[k]) != 0) {
			w->arcs.v[kept++] = w->arcs.v[k];
			rc = topo_add_arc(*out, w->arcs.v[k].src, w->arcs.v[k].dst, 1, 0, err);
		}
	}
	w->arcs.n = kept;
	if (rc) {
		return rc;
	}
	topo_freeze(*out);
	return 0;
}

int ring_writer_begin(struct ring_writer *w, enum coll_kind kind, int chunks, int ports, int root,
		      struct err *err)
{
	struct topo *topo = NULL;
	char name[64];
	int rc = make_topo(w, &topo, err);

	if (rc) {
		topo_free(topo);
		return rc;
	}
	rc = coll_new(kind, topo, chunks, ports, root, &w->out, err);
	if (rc) {
		return rc;
	}
	snprintf(name, sizeof(name), w->p->line ? "segment of %d nodes" : "WDM ring of %d nodes",
		 w->p->n);
	coll_set_topo_name(w->out, name);
	return 0;
}

int32_t ring_writer_arc(const struct ring_writer *w, int src, int dst, int dir)
{
	struct rwa_arc key = { .src = src, .dst = dst, .dir = (uint8_t)dir };
	const struct rwa_arc *a = bsearch(&key, w->arcs.v, w->arcs.n, sizeof(key), by_ends);

	return (int32_t)(a - w->arcs.v);
}

int ring_writer_light(struct ring_writer *w, int32_t step, int32_t arc, int dir, int32_t colour,
		      int64_t count, struct err *err)
{
	const struct optree_params *p = w->p;
	const struct rwa_arc *a = &w->arcs.v[arc];
	struct rwa_ring ring = { p->n, p->fibres, p->channels };
	struct coll_light l = { .step = step, .arc = arc, .dir = a->dir };
	int rc = 0;

	if (p->loss) {
		l.loss_mdb = (int32_t)rwa_path_loss_mdb(&ring, p->loss,
							optree_links(p, a->src, a->dst, a->dir));
	}
	for (int64_t k = 0; k < count && !rc; k++) {
		part_colour(p->light, (size_t)p->n_light, p->channels, dir, colour + (int32_t)k,
			    &l.fibre, &l.channel);
		rc = coll_add_light(w->out, &l, err);
	}
	return rc;
}
