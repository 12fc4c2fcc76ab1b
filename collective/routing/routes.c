/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Route tables out of schedules, and writing them. The chunks of a pair are
 * followed through the steps; those that take the same arcs are one route.
 * Layers are then assigned to the routes in their order, and proven.
 */
#include "collective/routing/private.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/number/rat.h"
#include "lib/base/order.h"
#include "lib/base/vec.h"

/* The routes of a schedule that are being gathered, pair by pair. The three
 * vectors at the end become those of the table. */
struct gather {
	const struct coll_sched *s;
	struct coll_xfer *x;	/* n of them, by origin, destination, step */
	int64_t n;
	/* Of the present pair: the chunks where a range begins that the same
	 * transfers carry; the last is one behind the last chunk. */
	VEC(int32_t) cuts;
	VEC(struct coll_route) route;
	VEC(int64_t) first;	/* index in arcs of each route's first */
	VEC(int32_t) arcs;
};

void coll_routes_fini(struct coll_routes *r)
{
	free(r->route);
	free(r->first);
	free(r->arcs);
	free(r->layer);
	free(r->rank);
	free(r->rate);
	memset(r, 0, sizeof(*r));
}

ORDER_BY(by_pair, struct coll_xfer, origin, dest, step, arc)

static int by_number(const void *a, const void *b)
{
	const int32_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* The chunks at which some transfer of x[from..to) begins or has ended,
 * ascending. */
static void cut_chunks(struct gather *g, int64_t from, int64_t to)
{
	size_t kept = 0;

	g->cuts.n = 0;
	for (int64_t i = from; i < to; i++) {
		vec_push(&g->cuts, g->x[i].first);
		vec_push(&g->cuts, g->x[i].last + 1);
	}
	qsort(g->cuts.v, g->cuts.n, sizeof(*g->cuts.v), by_number);
	for (size_t i = 0; i < g->cuts.n; i++) {
		if (kept == 0 || g->cuts.v[kept - 1] != g->cuts.v[i]) {
			g->cuts.v[kept++] = g->cuts.v[i];
		}
	}
	g->cuts.n = kept;
}

/* Appends the arcs that this chunk of the pair x[from..to) crosses, in order of
 * steps. WEFT_EUNSUPPORTED when it is sent from a node it is not at: it would
 * take more than one path. */
static int follow(struct gather *g, int64_t from, int64_t to, int chunk, struct err *err)
{
	const struct topo *t = coll_topo(g->s);
	int at = g->x[from].origin;

	for (int64_t i = from; i < to; i++) {
		const struct coll_xfer *x = &g->x[i];
		const struct topo_arc *arc = topo_arc(t, x->arc);

		if (chunk < x->first || chunk > x->last) {
			continue;
		}
		if (arc->src != at) {
			return err_set(err, WEFT_EUNSUPPORTED, "shard %d for "
				       "rank %d chunk %d travels along more "
				       "than one path", x->origin, x->dest,
				       chunk);
		}
		vec_push(&g->arcs, x->arc);
		at = arc->dst;
	}
	if (at != g->x[from].dest) {
		return err_set(err, WEFT_EUNSUPPORTED, "shard %d for rank "
			       "%d chunk %d goes on after it has arrived",
			       g->x[from].origin, g->x[from].dest, chunk);
	}
	return 0;
}

/* The route among those from number `begin` on with the arcs from `tail` on,
 * or -1. */
static int64_t same_route(const struct gather *g, size_t begin, size_t tail)
{
	size_t n = g->arcs.n - tail;

	for (size_t i = begin; i < g->route.n; i++) {
		size_t end = i + 1 < g->route.n ? (size_t)g->first.v[i + 1]
						: tail;

		if (end - (size_t)g->first.v[i] == n &&
		    memcmp(g->arcs.v + g->first.v[i], g->arcs.v + tail,
			   n * sizeof(*g->arcs.v)) == 0) {
			return (int64_t)i;
		}
	}
	return -1;
}

/* Routes of the pair that x[from..to) belong to. */
static int gather_pair(struct gather *g, int64_t from, int64_t to, struct err *err)
{
	size_t begin = g->route.n;

	cut_chunks(g, from, to);
	for (size_t k = 0; k + 1 < g->cuts.n; k++) {
		int chunks = g->cuts.v[k + 1] - g->cuts.v[k];
		size_t tail = g->arcs.n;
		int rc = follow(g, from, to, g->cuts.v[k], err);
		int64_t same;

		if (rc) {
			return rc;
		}
		same = same_route(g, begin, tail);
		if (same >= 0) {
			g->route.v[same].chunks += chunks;
			g->arcs.n = tail;
		} else {
			vec_push(&g->first, (int64_t)tail);
			vec_push(&g->route, (struct coll_route){
					   g->x[from].origin, g->x[from].dest, chunks,
					   0 });
		}
	}
	return 0;
}

/* All pairs, in order of origin and destination. O(transfers log transfers). */
static int gather_all(struct gather *g, struct err *err)
{
	const struct coll_xfer *x = coll_xfers(g->s, &g->n);
	int rc = 0;

	g->x = x_alloc((size_t)g->n + 1, sizeof(*g->x));
	if (g->n > 0) {
		memcpy(g->x, x, (size_t)g->n * sizeof(*g->x));
		qsort(g->x, (size_t)g->n, sizeof(*g->x), by_pair);
	}
	for (int64_t i = 0, end; i < g->n && rc == 0; i = end) {
		for (end = i + 1; end < g->n &&
				  g->x[end].origin == g->x[i].origin &&
				  g->x[end].dest == g->x[i].dest; end++) {
		}
		rc = gather_pair(g, i, end, err);
	}
	if (rc == 0) {
		vec_push(&g->first, (int64_t)g->arcs.n);
	}
	return rc;
}

void routes_rate(const struct coll_routes *r, const struct topo *t, const int64_t *load, mpq_t rate)
{
	mpq_t q;

	mpq_init(q);
	mpq_set_ui(rate, 0, 1);
	for (int a = 0; a < topo_m(t); a++) {
		rat_set(q, load[a], topo_arc(t, a)->cap);
		if (mpq_cmp(q, rate) > 0) {
			mpq_set(rate, q);
		}
	}
	mpq_clear(q);
	if (mpq_sgn(rate)) {
		mpq_inv(rate, rate);
		mpz_mul_si(mpq_numref(rate), mpq_numref(rate), r->chunks);
		mpq_canonicalize(rate);
	}
}

void routes_state_rate(struct coll_routes *r, const struct topo *t)
{
	int64_t *load = x_new((size_t)topo_m(t) + 1, sizeof(*load));
	mpq_t rate;

	for (int64_t i = 0; i < r->table.n; i++) {
		for (int64_t k = r->first[i]; k < r->first[i + 1]; k++) {
			load[r->arcs[k]] += r->route[i].chunks;
		}
	}
	mpq_init(rate);
	routes_rate(r, t, load, rate);
	r->rate = mpq_get_str(NULL, 10, rate);
	mpq_clear(rate);
	free(load);
}

int routes_assign_layers(struct coll_routes *r, int max_layers, struct err *err)
{
	int rc;

	r->layer = x_alloc((size_t)r->table.n + 1, sizeof(*r->layer));
	rc = layers_assign(&r->table, max_layers, r->layer, &r->n_layers, &r->rank, err);
	if (rc) {
		err_hint(err, "without a limit they take as many layers as they "
			 "need; weft routes make --layers chooses routes that "
			 "fit");
		return rc;
	}
	if (!layers_proven(&r->table, r->layer, r->n_layers, r->rank)) {
		return err_set(err, WEFT_EINTERNAL, "layers of routes without "
			       "proof");
	}
	for (int64_t i = 0; i < r->table.n; i++) {
		r->route[i].layer = r->layer[i];
	}
	return 0;
}

int coll_routes_of(const struct coll_sched *s, int max_layers,
		   struct coll_routes *out, struct err *err)
{
	struct gather g = { 0 };
	struct coll_sched *own;
	int rc;

	memset(out, 0, sizeof(*out));
	if (coll_kind_of(s) != COLL_ALLTOALL) {
		return err_set(err, WEFT_EUNSUPPORTED, "routes of %s: not "
			       "supported, only of all-to-all",
			       coll_kind_name(coll_kind_of(s)));
	}
	if (coll_is_embedded(s)) {
		return err_set(err, WEFT_EUNSUPPORTED, "route tables of an embedded schedule: not "
			       "supported, as its arcs have routes of their own");
	}
	if ((rc = coll_refuse_light_changes(s, "routes", err)) ||
	    (rc = coll_refuse_demands(s, "routes", err)) ||
	    (rc = coll_flat(s, &g.s, &own, err))) {
		return rc;
	}
	rc = gather_all(&g, err);
	coll_free(own);
	free(g.x);
	vec_fini(&g.cuts);
	out->nodes = coll_ranks(s);
	out->chunks = coll_chunks(s);
	out->route = g.route.v;
	out->first = g.first.v;
	out->arcs = g.arcs.v;
	out->table = (struct layer_routes){
		topo_m(coll_topo(s)), (int64_t)g.route.n, g.first.v, g.arcs.v,
	};
	if (rc) {
		return rc;
	}
	routes_state_rate(out, coll_topo(s));
	return routes_assign_layers(out, max_layers, err);
}

/* ---- formats ---- */

int routes_port(const struct topo *t, int arc)
{
	int first;

	topo_out(t, topo_arc(t, arc)->src, &first);
	return arc - first;
}

/* Ports of route i, comma-separated. */
static void write_ports(const struct coll_routes *r, const struct topo *t,
			int64_t i, struct buf *out)
{
	for (int64_t k = r->table.first[i]; k < r->table.first[i + 1]; k++) {
		buf_printf(out, "%s%d", k > r->table.first[i] ? "," : "",
			   routes_port(t, r->table.arcs[k]));
	}
}

void coll_routes_to_json(const struct coll_routes *r, const struct topo *t, struct buf *out)
{
	buf_printf(out, "{\"weft_routes\":%d,\"nodes\":%d,\"chunks\":%d,"
		   "\"layers\":%d,\"rate\":\"%s\",\"routes\":[",
		   ROUTES_VERSION, r->nodes, r->chunks, r->n_layers, r->rate);
	for (int64_t i = 0; i < r->table.n; i++) {
		const struct coll_route *q = &r->route[i];

		buf_printf(out, "%s\n{\"origin\":%d,\"destination\":%d,"
			   "\"chunks\":%d,\"layer\":%d,\"ports\":[",
			   i > 0 ? "," : "", q->origin, q->dest, q->chunks,
			   q->layer);
		write_ports(r, t, i, out);
		buf_str(out, "]}");
	}
	buf_str(out, "\n]}\n");
}
