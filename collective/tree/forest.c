/* SPDX-License-Identifier: Apache-2.0 */
/* Forests: see forest.h. */
#include <stdlib.h>

#include "collective/tree/forest.h"
#include "lib/base/alloc.h"
#include "lib/base/number/rat.h"
#include "lib/base/order.h"

void coll_forest_init(struct coll_forest *f)
{
	*f = (struct coll_forest){ 0 };
	mpq_init(f->time);
}

void coll_forest_fini(struct coll_forest *f)
{
	for (size_t i = 0; i < f->trees.n; i++) {
		free(f->trees.v[i].via);
	}
	vec_fini(&f->trees);
	vec_fini(&f->routes);
	vec_fini(&f->hops);
	topo_free(f->logical);
	topo_group_free(f->group);
	mpq_clear(f->time);
}

/* ---- two in one ---- */

/* Both shares become their least common multiple. */
static int scale(struct coll_forest *f, int64_t by, struct err *err)
{
	for (size_t i = 0; i < f->trees.n; i++) {
		if (__builtin_mul_overflow(f->trees.v[i].weight, by, &f->trees.v[i].weight)) {
			return err_set(err, WEFT_ELIMIT, "weights of trees do not fit 64 bits");
		}
	}
	return __builtin_mul_overflow(f->share, by, &f->share)
		       ? err_set(err, WEFT_ELIMIT, "a share does not fit 64 bits") : 0;
}

/* Arcs of f, then those of g: *out, and where each is there, f's first. */
static int join_arcs(const struct topo *f, const struct topo *g, struct topo **out,
		     int32_t *place, struct err *err)
{
	int n = topo_n(f), at = 0, rc = topo_new(n, out, err);

	for (int a = 0; a < topo_m(f) + topo_m(g) && rc == 0; a++) {
		const struct topo_arc *x = a < topo_m(f) ? topo_arc(f, a)
							 : topo_arc(g, a - topo_m(f));

		rc = topo_add_arc(*out, x->src, x->dst, x->cap, x->latency_ns, err);
	}
	for (int v = 0; v < n && rc == 0; v++) {
		int first, k = topo_out(f, v, &first);

		topo_set_node(*out, v, topo_node_kind(f, v), topo_node_flags(f, v));
		for (int i = 0; i < k; i++) {
			place[first + i] = at++;
		}
		k = topo_out(g, v, &first);
		for (int i = 0; i < k; i++) {
			place[topo_m(f) + first + i] = at++;
		}
	}
	if (rc == 0) {
		topo_freeze(*out);
	}
	return rc;
}

/* Arcs of trees and routes get the numbers that place gives them. */
static void renumber(struct coll_forest *f, const int32_t *place)
{
	for (size_t i = 0; i < f->trees.n; i++) {
		int32_t *via = f->trees.v[i].via;

		for (int v = 0; v < topo_n(f->logical); v++) {
			via[v] = via[v] >= 0 ? place[via[v]] : -1;
		}
	}
	for (size_t i = 0; i < f->routes.n; i++) {
		f->routes.v[i].arc = place[f->routes.v[i].arc];
	}
}

ORDER_BY(by_arc, struct coll_forest_route, arc, first)

static void join_routes(struct coll_forest *f, const struct coll_forest *g)
{
	int32_t hops = (int32_t)f->hops.n;

	vec_reserve(&f->routes, g->routes.n);
	vec_reserve(&f->hops, g->hops.n);
	for (size_t i = 0; i < g->routes.n; i++) {
		struct coll_forest_route r = g->routes.v[i];

		r.first += hops;
		f->routes.v[f->routes.n++] = r;
	}
	for (size_t i = 0; i < g->hops.n; i++) {
		f->hops.v[f->hops.n++] = g->hops.v[i];
	}
	qsort(f->routes.v, f->routes.n, sizeof(*f->routes.v), by_arc);
}

/* Where arcs are links both have the same; else each keeps its own, beside the other's. */
static int join_digraphs(struct coll_forest *f, struct coll_forest *g, struct err *err)
{
	int m = topo_m(f->logical);
	struct topo *both = NULL;
	int32_t *place;
	int rc;

	if (f->routes.n == 0) {
		return 0;
	}
	place = x_new((size_t)m + (size_t)topo_m(g->logical) + 1, sizeof(*place));
	rc = join_arcs(f->logical, g->logical, &both, place, err);
	if (rc == 0) {
		renumber(f, place);
		renumber(g, place + m);
		join_routes(f, g);
	}
	free(place);
	if (rc) {
		topo_free(both);
		return rc;
	}
	topo_free(f->logical);
	f->logical = both;
	return 0;
}

int coll_forest_join(struct coll_forest *f, struct coll_forest *other, struct err *err)
{
	int64_t gcd = rat_gcd(f->share, other->share), by = other->share / gcd;
	int rc;

	if (topo_n(f->logical) != topo_n(other->logical) ||
	    (f->routes.n == 0) != (other->routes.n == 0) ||
	    !topo_group_equal(f->group, other->group)) {
		return err_set(err, WEFT_EINVAL, "forests of two digraphs, or of two groups");
	}
	vec_reserve(&f->trees, other->trees.n);
	if ((rc = scale(other, f->share / gcd, err)) || (rc = scale(f, by, err)) ||
	    (rc = join_digraphs(f, other, err))) {
		return rc;
	}
	for (size_t i = 0; i < other->trees.n; i++) {
		f->trees.v[f->trees.n++] = other->trees.v[i];
	}
	other->trees.n = 0;
	mpq_add(f->time, f->time, other->time);
	return 0;
}
