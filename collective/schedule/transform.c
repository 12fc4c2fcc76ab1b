/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Schedules made from schedules: reversed in time, one after the other, and with
 * other numbers for the nodes. Compact schedules stay so.
 *
 * A schedule names arcs by their numbers, and digraphs that are equal may
 * number parallel arcs and arcs out of a node differently (a digraph
 * transposed twice does). So each of these carries a map from the arcs of one
 * digraph to those of the other, and rows are only rewritten through it.
 */
#include <stdlib.h>
#include <string.h>

#include "collective/schedule/private.h"
#include "lib/base/alloc.h"
#include "lib/base/number/rat.h"
#include "lib/base/order.h"

int coll_new_like(const struct coll_sched *s, enum coll_kind kind, struct topo *graph, int chunks,
		  struct coll_sched **out, struct err *err)
{
	int rc;

	if (!graph && (rc = topo_copy(s->topo, &graph, err))) {
		return rc;
	}
	rc = coll_new(kind, graph, chunks, s->ports, s->root, out, err);
	if (!rc && s->topo_name) {
		coll_set_topo_name(*out, s->topo_name);
	}
	return rc;
}

int coll_new_with_group(const struct coll_sched *s, enum coll_kind kind, struct topo *graph,
			  int chunks, struct coll_sched **out, struct err *err)
{
	struct topo_group *g;
	int rc = coll_new_like(s, kind, graph, chunks, out, err);

	if (rc || (s->alike && (rc = coll_set_alike(*out, err))) ||
	    (rc = topo_group_copy(s->group, &g, err))) {
		return rc;
	}
	return coll_set_group(*out, g, err);
}

int coll_refuse_embedded(const struct coll_sched *s, const char *what, struct err *err)
{
	return s->embedding ? err_set(err, WEFT_EUNSUPPORTED, "%s an embedded schedule: not "
				      "supported; embed what comes of it instead", what) : 0;
}

/* ---- reversal ---- */

static int reversed_kind(enum coll_kind kind, enum coll_kind *out, struct err *err)
{
	switch (kind) {
	case COLL_ALLGATHER:
		*out = COLL_REDUCE_SCATTER;
		return 0;
	case COLL_REDUCE_SCATTER:
		*out = COLL_ALLGATHER;
		return 0;
	case COLL_ALLTOALL:
		*out = COLL_ALLTOALL;
		return 0;
	case COLL_GATHER:
		*out = COLL_SCATTER;
		return 0;
	case COLL_SCATTER:
		*out = COLL_GATHER;
		return 0;
	case COLL_BROADCAST:
		*out = COLL_REDUCE;
		return 0;
	case COLL_REDUCE:
		*out = COLL_BROADCAST;
		return 0;
	case COLL_ALLREDUCE:
		break;
	}
	return err_set(err, WEFT_EUNSUPPORTED,
		       "the reverse of %s is not supported",
		       coll_kind_name(kind));
}

static int reverse_xfers(const struct coll_sched *s, const int32_t *forth,
			 struct coll_sched *out, struct err *err)
{
	bool pairs = s->kind == COLL_ALLTOALL;
	int rc = 0;

	for (size_t i = 0; i < s->xfers.n && !rc; i++) {
		struct coll_xfer x = s->xfers.v[i];

		x.step = s->steps - 1 - x.step;
		x.arc = forth[x.arc];
		if (pairs) {
			x.origin = s->xfers.v[i].dest;
			x.dest = s->xfers.v[i].origin;
		} else if (coll_is_sum(s->kind) || coll_is_sum(out->kind)) {
			x.op = x.op == COLL_OP_COPY ? COLL_OP_REDUCE : COLL_OP_COPY;
		}
		rc = coll_add(out, &x, err);
	}
	return rc;
}

/* Light runs round the ring in the other direction. Light of steps after the last
 * transfer has no place in the reverse and carries nothing. */
static int reverse_lights(const struct coll_sched *s, const int32_t *forth,
			  struct coll_sched *out, struct err *err)
{
	int rc = 0;

	for (size_t i = 0; i < s->lights.n && !rc; i++) {
		struct coll_light l = s->lights.v[i];

		if (l.step < s->steps) {
			l.step = s->steps - 1 - l.step;
			l.arc = forth[l.arc];
			l.dir = !l.dir;
			rc = coll_add_light(out, &l, err);
		}
	}
	return rc;
}

/* The transposed digraph and, at *forth (free()), its arc for each arc of
 * t. */
static int transpose(const struct topo *t, struct topo **out, int32_t **forth, struct err *err)
{
	size_t m = topo_m(t);
	int32_t *back = x_alloc(m + 1, sizeof(*back));
	int rc;

	*forth = x_alloc(m + 1, sizeof(**forth));
	rc = topo_transpose(t, out, back, err);
	for (size_t a = 0; a < m && !rc; a++) {
		(*forth)[back[a]] = (int32_t)a;
	}
	free(back);
	return rc;
}

int coll_reverse(const struct coll_sched *s, struct coll_sched **out, struct err *err)
{
	struct coll_sched *r = NULL;
	struct topo *graph = NULL;
	int32_t *forth = NULL;
	enum coll_kind kind = s->kind;
	int rc;

	*out = NULL;
	if ((rc = coll_refuse_embedded(s, "reversing", err)) ||
	    (rc = reversed_kind(s->kind, &kind, err)) ||
	    (rc = transpose(s->topo, &graph, &forth, err)) ||
	    (rc = coll_new_with_group(s, kind, graph, s->chunks, &r, err)) ||
	    (rc = coll_set_demands_moved(r, s, NULL, true, err)) ||
	    (rc = reverse_xfers(s, forth, r, err)) ||
	    (rc = reverse_lights(s, forth, r, err))) {
		goto out;
	}
	rc = coll_finish(r, err);
out:
	free(forth);
	if (rc) {
		coll_free(r);
		return rc;
	}
	*out = r;
	return 0;
}

/* ---- sequence ---- */

static int cmp_arc(const void *pa, const void *pb, void *arcs)
{
	int32_t ia = *(const int32_t *)pa, ib = *(const int32_t *)pb;
	int c = topo_arc_compare((const struct topo_arc *)arcs + ia,
				 (const struct topo_arc *)arcs + ib);

	return c ? c : ia < ib ? -1 : ia > ib;
}

static int32_t *sorted_arcs(const struct topo *t)
{
	int m = topo_m(t);
	int32_t *order = x_alloc((size_t)m + 1, sizeof(*order));

	for (int a = 0; a < m; a++) {
		order[a] = a;
	}
	qsort_r(order, m, sizeof(*order), cmp_arc, (void *)topo_arcs(t));
	return order;
}

/* map[arc of b] = arc of a: equal digraphs may number the arcs out of a node
 * differently (a digraph transposed twice does). */
static int match_arcs(const struct topo *a, const struct topo *b, int32_t *map, struct err *err)
{
	int32_t *ia = sorted_arcs(a), *ib = sorted_arcs(b);
	bool equal = topo_n(a) == topo_n(b) && topo_m(a) == topo_m(b);

	for (int i = 0; i < topo_m(b) && equal; i++) {
		equal = topo_arc_compare(topo_arc(a, ia[i]), topo_arc(b, ib[i])) == 0;
		map[ib[i]] = ia[i];
	}
	free(ia);
	free(ib);
	return equal ? 0
		     : err_set(err, WEFT_EINVAL, "the two schedules are for different digraphs");
}

/* Appends s from step `base` on; map NULL: arcs keep their numbers. */
static int append(const struct coll_sched *s, int base, const int32_t *map,
		  struct coll_sched *out, struct err *err)
{
	int scale = out->chunks / s->chunks, rc = 0;

	for (size_t i = 0; i < s->xfers.n && !rc; i++) {
		struct coll_xfer x = s->xfers.v[i];

		x.step += base;
		x.arc = map ? map[x.arc] : x.arc;
		x.first *= scale;
		x.last = x.last * scale + scale - 1;
		rc = coll_add(out, &x, err);
	}
	for (size_t i = 0; i < s->lights.n && !rc; i++) {
		struct coll_light l = s->lights.v[i];

		l.step += base;
		l.arc = map ? map[l.arc] : l.arc;
		rc = l.step < base + s->steps ? coll_add_light(out, &l, err)
					      : 0;
	}
	return rc;
}

static int check_pair(const struct coll_sched *a, const struct coll_sched *b, struct err *err)
{
	if (a->kind != COLL_REDUCE_SCATTER || b->kind != COLL_ALLGATHER) {
		return err_set(err, WEFT_EUNSUPPORTED,
			       "%s followed by %s is not supported: expected "
			       "reduce-scatter and allgather",
			       coll_kind_name(a->kind),
			       coll_kind_name(b->kind));
	}
	if (a->ports != b->ports) {
		return err_set(err, WEFT_EINVAL,
			       "the two schedules have %d and %d ports",
			       a->ports, b->ports);
	}
	if ((a->lights.n == 0) != (b->lights.n == 0)) {
		return err_set(err, WEFT_EINVAL, "only one of the two schedules has light");
	}
	if (!topo_group_equal(a->group, b->group)) {
		return err_set(err, WEFT_EINVAL, "the two schedules have different groups");
	}
	return coll_refuse_embedded(a->embedding ? a : b, "following", err);
}

int coll_sequence(const struct coll_sched *first, const struct coll_sched *second,
		  struct coll_sched **out, struct err *err)
{
	struct coll_sched *s = NULL;
	int64_t chunks = first->chunks /
			 rat_gcd(first->chunks, second->chunks) *
			 (int64_t)second->chunks;
	size_t arcs = (size_t)topo_m(second->topo) + 1;
	int32_t *map = x_alloc(arcs, sizeof(*map));
	int rc = check_pair(first, second, err);

	*out = NULL;
	if (!rc) {
		rc = match_arcs(first->topo, second->topo, map, err);
	}
	if (!rc && chunks > COLL_MAX_CHUNKS) {
		rc = err_set(err, WEFT_ELIMIT,
			     "%d and %d chunks have no common multiple up to "
			     "%d", first->chunks, second->chunks,
			     COLL_MAX_CHUNKS);
	}
	if (rc || (rc = coll_new_with_group(first, COLL_ALLREDUCE, NULL, (int)chunks, &s, err)) ||
	    (rc = append(first, 0, NULL, s, err)) || (rc = append(second, first->steps, map, s,
								  err))) {
		goto out;
	}
	rc = coll_finish(s, err);
out:
	free(map);
	if (rc) {
		coll_free(s);
		return rc;
	}
	*out = s;
	return 0;
}

static int reduce_scatter(const struct topo *t, coll_gather_fn *gather, const void *arg,
			  struct coll_sched **out, struct err *err)
{
	struct coll_sched *s = NULL;
	struct topo *back = NULL;
	int rc = topo_transpose(t, &back, NULL, err);

	if (rc == 0 && (rc = gather(back, arg, &s, err)) == 0) {
		rc = coll_reverse(s, out, err);
	}
	coll_free(s);
	topo_free(back);
	return rc;
}

static int allreduce(const struct topo *t, coll_gather_fn *gather, const void *arg,
		     struct coll_sched **out, struct err *err)
{
	struct coll_sched *sums = NULL, *copies = NULL;
	int rc;

	(void)((rc = reduce_scatter(t, gather, arg, &sums, err)) ||
	       (rc = gather(t, arg, &copies, err)) ||
	       (rc = coll_sequence(sums, copies, out, err)));
	coll_free(sums);
	coll_free(copies);
	return rc;
}

int coll_from_gathers(enum coll_kind kind, const struct topo *topo, coll_gather_fn *gather,
		      const void *arg, struct coll_sched **out, struct err *err)
{
	int rc;

	*out = NULL;
	if (kind != COLL_ALLGATHER && kind != COLL_REDUCE_SCATTER && kind != COLL_ALLREDUCE) {
		return err_set(err, WEFT_EUNSUPPORTED, "%s: not supported, only allgather, "
			       "reduce-scatter and allreduce", coll_kind_name(kind));
	}
	rc = kind == COLL_ALLGATHER	    ? gather(topo, arg, out, err)
	     : kind == COLL_REDUCE_SCATTER ? reduce_scatter(topo, gather, arg, out, err)
					    : allreduce(topo, gather, arg, out, err);
	if (rc == 0) {
		rc = coll_prove(*out, NULL, err);
	}
	if (rc) {
		coll_free(*out);
		*out = NULL;
	}
	return rc;
}

/* ---- other numbers for the nodes ---- */

struct coll_moved_arc {
	struct topo_arc arc;
	int32_t old;
};

ORDER_BY(by_ends, struct coll_moved_arc, arc.src, arc.dst, old)

/* The digraph, and forth[a], what arc a is in it. Arcs are listed in the order
 * that they end up in. */
static int rename_graph(const struct topo *t, const int *to, int32_t *forth,
			struct topo **out, struct err *err)
{
	size_t m = (size_t)topo_m(t);
	struct coll_moved_arc *v = x_new(m + 1, sizeof(*v));
	struct topo_arc *arcs = x_new(m + 1, sizeof(*arcs));
	int rc;

	for (size_t a = 0; a < m; a++) {
		v[a] = (struct coll_moved_arc){ topo_arcs(t)[a], (int32_t)a };
		v[a].arc.src = to[v[a].arc.src];
		v[a].arc.dst = to[v[a].arc.dst];
	}
	qsort(v, m, sizeof(*v), by_ends);
	for (size_t a = 0; a < m; a++) {
		arcs[a] = v[a].arc;
		forth[v[a].old] = (int32_t)a;
	}
	rc = topo_from_arcs(topo_n(t), arcs, m, out, err);
	free(v);
	free(arcs);
	return rc;
}

static int rename_rows(const struct coll_sched *s, const int *to, const int32_t *forth,
		       struct coll_sched *out, struct err *err)
{
	/* Shards of the root's vector, and of sums of vectors, are no node's. */
	bool places = s->kind == COLL_BROADCAST || s->kind == COLL_REDUCE || s->alike;
	int rc = 0;

	for (size_t i = 0; i < s->xfers.n && !rc; i++) {
		struct coll_xfer x = s->xfers.v[i];

		x.arc = forth[x.arc];
		x.origin = places ? x.origin : to[x.origin];
		x.dest = x.dest >= 0 ? to[x.dest] : x.dest;
		if (x.kept && !coll_is_whole(s->ranks, x.kept)) {
			int number = coll_kept_number(s->ranks, x.kept);

			x.kept = (uint16_t)(x.kept + to[number] - number);
		}
		rc = coll_add(out, &x, err);
	}
	for (size_t i = 0; i < s->lights.n && !rc; i++) {
		struct coll_light l = s->lights.v[i];

		l.arc = forth[l.arc];
		rc = coll_add_light(out, &l, err);
	}
	return rc;
}

/* The group with other numbers for the nodes; *out NULL where there is none. */
static int rename_group(const struct coll_sched *s, const int *to, struct topo_group **out,
			struct err *err)
{
	int n = topo_n(s->topo), k, *orders, rc;
	int32_t *images;

	*out = NULL;
	if (!s->group) {
		return 0;
	}
	k = topo_group_generators(s->group);
	orders = x_new((size_t)k + 1, sizeof(*orders));
	images = x_new((size_t)k * n + 1, sizeof(*images));
	for (int i = 0; i < k; i++) {
		const int32_t *from = topo_group_generator(s->group, i, &orders[i]);

		for (int u = 0; u < n; u++) {
			images[(size_t)i * n + to[u]] = to[from[u]];
		}
	}
	rc = topo_group_new(n, s->ranks, k, orders, images, out, err);
	free(orders);
	free(images);
	return rc;
}

int coll_rename(const struct coll_sched *s, const int *to, struct coll_sched **out, struct err *err)
{
	struct coll_sched *renamed = NULL;
	struct topo_group *group = NULL;
	struct topo *graph = NULL;
	int32_t *forth;
	int rc;

	*out = NULL;
	if ((rc = coll_refuse_embedded(s, "renaming", err))) {
		return rc;
	}
	forth = x_new((size_t)topo_m(s->topo) + 1, sizeof(*forth));
	rc = rename_graph(s->topo, to, forth, &graph, err);
	if (rc || (rc = coll_new_like(s, s->kind, graph, s->chunks, &renamed, err))) {
		goto out;
	}
	renamed->root = coll_has_root(s->kind) ? to[s->root] : 0;
	if ((rc = rename_group(s, to, &group, err)) ||
	    (rc = coll_set_group(renamed, group, err)) ||
	    (s->alike && (rc = coll_set_alike(renamed, err))) ||
	    (rc = coll_set_demands_moved(renamed, s, to, false, err)) ||
	    (rc = rename_rows(s, to, forth, renamed, err)) || (rc = coll_finish(renamed, err))) {
		coll_free(renamed);
		renamed = NULL;
	}
out:
	free(forth);
	*out = renamed;
	return rc;
}
