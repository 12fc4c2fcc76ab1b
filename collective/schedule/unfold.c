/* SPDX-License-Identifier: Apache-2.0 */
/* A compact schedule written out: all of it, or the part of one rank. Either has
 * no group; its digraph stays whole. */
#include <stdlib.h>
#include <string.h>

#include "collective/schedule/private.h"
#include "lib/base/alloc.h"

/* An empty schedule like s, embedded and placed as s is, without routes and group. */
static int begin(const struct coll_sched *s, enum coll_kind kind, struct coll_sched **out,
		 struct err *err)
{
	struct topo *physical;
	int rc = coll_new_like(s, kind, NULL, s->chunks, out, err);

	if (!rc) {
		rc = coll_set_demands(*out, s->demands, err);
	}
	if (!rc && s->embedding && (rc = topo_copy(s->embedding->physical, &physical, err)) == 0) {
		rc = coll_set_physical(*out, physical, s->embedding->routing, s->ports, err);
	}
	if (!rc && s->embedding) {
		coll_set_physical_name(*out, coll_physical_name(s));
	}
	return rc || !s->placement ? rc : coll_set_placement(*out, s->placement, err);
}

static int add_moved_route(const struct coll_sched *s, const struct coll_arc_route *r, int by,
			   struct coll_sched *out, struct err *err)
{
	struct coll_arc_route moved = *r;
	int32_t *hops;
	int rc = 0;

	if (!by || !s->embedding->action) {
		return coll_add_route(out, r, err);
	}
	hops = x_alloc((size_t)r->n, sizeof(*hops));
	for (int i = 0; i < r->n; i++) {
		hops[i] = topo_action_move(s->embedding->action, by, r->hops[i]);
	}
	moved.hops = hops;
	moved.arc = topo_action_move(s->action, by, r->arc);
	rc = coll_add_route(out, &moved, err);
	free(hops);
	return rc;
}

/* The images of all routes under one element. */
static int add_routes(const struct coll_sched *s, int by, struct coll_sched *out, struct err *err)
{
	int rc = 0;

	for (int64_t i = 0; i < coll_n_arc_routes(s) && !rc; i++) {
		struct coll_arc_route r = coll_arc_route(s, i);

		rc = add_moved_route(s, &r, by, out, err);
	}
	return rc;
}

int coll_new_flat(const struct coll_sched *s, enum coll_kind kind, struct coll_sched **out,
		  struct err *err)
{
	int rc = begin(s, kind, out, err);

	return rc ? rc : add_routes(s, 0, *out, err);
}

static int add_images(const struct coll_sched *s, int by, struct coll_sched *out, struct err *err)
{
	int rc = by && coll_has_own_routes(s) ? 0 : add_routes(s, by, out, err);

	for (size_t i = 0; i < s->xfers.n && !rc; i++) {
		struct coll_xfer x = coll_moved(s, by, &s->xfers.v[i]);

		rc = coll_add(out, &x, err);
	}
	return rc;
}

/* Of those of shard 0, where all move alike. */
static int add_shard(const struct coll_sched *s, int shard, struct coll_sched *out, struct err *err)
{
	int rc = 0;

	for (size_t i = 0; i < s->xfers.n && !rc; i++) {
		struct coll_xfer x = s->xfers.v[i];

		x.origin = shard;
		rc = coll_add(out, &x, err);
	}
	return rc;
}

static int add_lights(const struct coll_sched *s, struct coll_sched *out, struct err *err)
{
	int rc = 0;

	for (size_t i = 0; i < s->lights.n && !rc; i++) {
		rc = coll_add_light(out, &s->lights.v[i], err);
	}
	return rc;
}

int coll_unfold(const struct coll_sched *s, struct coll_sched **out, struct err *err)
{
	int64_t transfers = (int64_t)s->xfers.n * coll_images(s);
	struct coll_sched *all = NULL;
	int rc;

	*out = NULL;
	if (transfers > COLL_MAX_XFERS) {
		return err_set(err, WEFT_ELIMIT, "the compact schedule stands for %lld transfers: "
			       "more than %d cannot be written out", (long long)transfers,
			       COLL_MAX_XFERS);
	}
	rc = begin(s, s->kind, &all, err);
	for (int by = 0; by < topo_group_order(s->group) && !rc; by++) {
		rc = add_images(s, by, all, err);
	}
	for (int shard = 1; s->alike && shard < s->ranks && !rc; shard++) {
		rc = add_shard(s, shard, all, err);
	}
	if (rc || (rc = add_lights(s, all, err)) || (rc = coll_finish(all, err))) {
		coll_free(all);
		return rc;
	}
	all->part = s->part;
	*out = all;
	return 0;
}

int coll_flat(const struct coll_sched *s, const struct coll_sched **flat, struct coll_sched **own,
	      struct err *err)
{
	bool whole = !s->group && !s->alike;
	int rc = whole ? 0 : coll_unfold(s, own, err);

	if (rc || whole) {
		*own = NULL;
	}
	*flat = *own ? *own : s;
	return rc;
}

/* ---- the part of one rank ---- */

/* The image of x that leaves the rank, and the one that enters it: at most one
 * of each. */
static int add_at(const struct coll_sched *s, const struct coll_xfer *x, int rank,
		  struct coll_sched *part, struct err *err)
{
	const struct topo_arc *a = topo_arc(s->topo, x->arc);
	int out = topo_group_between(s->group, a->src, rank);
	int in = topo_group_between(s->group, a->dst, rank);
	struct coll_xfer image;
	int rc = 0;

	if (out >= 0) {
		image = coll_moved(s, out, x);
		rc = coll_add(part, &image, err);
	}
	if (in >= 0 && in != out && !rc) {
		image = coll_moved(s, in, x);
		rc = coll_add(part, &image, err);
	}
	return rc;
}

static bool is_of(const struct coll_sched *s, int arc, int rank)
{
	const struct topo_arc *a = topo_arc(s->topo, arc);

	return a->src == rank || a->dst == rank;
}

/* [physical arcs] those that what the rank sends and receives goes over; the caller's. */
static bool *carriers(const struct coll_sched *s, int rank)
{
	bool *carries = x_new((size_t)topo_m(coll_physical(s)) + 1, sizeof(*carries));

	for (int a = 0; !s->embedding && a < topo_m(s->topo); a++) {
		carries[a] = is_of(s, a, rank);
	}
	for (int64_t i = 0; s->embedding && i < coll_n_arc_routes(s); i++) {
		struct coll_arc_route r = coll_arc_route(s, i);

		for (int k = 0; is_of(s, r.arc, rank) && k < r.n; k++) {
			carries[r.hops[k]] = true;
		}
	}
	return carries;
}

static int copy_rows(const struct coll_sched *s, int rank, struct coll_sched *part, struct err *err)
{
	bool *carries = s->lights.n ? carriers(s, rank) : NULL;
	int rc = 0;

	for (size_t i = 0; i < s->xfers.n && !rc; i++) {
		rc = add_at(s, &s->xfers.v[i], rank, part, err);
	}
	for (size_t i = 0; i < s->lights.n && !rc; i++) {
		if (carries[s->lights.v[i].arc]) {
			rc = coll_add_light(part, &s->lights.v[i], err);
		}
	}
	free(carries);
	return rc;
}

/* Of the routes of all arcs those of the rank's. */
static int pick_routes(const struct coll_sched *s, int rank, struct coll_sched *part,
		       struct err *err)
{
	int rc = 0;

	for (int64_t i = 0; i < coll_n_arc_routes(s) && !rc; i++) {
		struct coll_arc_route r = coll_arc_route(s, i);

		rc = is_of(s, r.arc, rank) ? coll_add_route(part, &r, err) : 0;
	}
	return rc;
}

/* The routes of the rank's arcs: of their orbits' routes the images. */
static int copy_routes(const struct coll_sched *s, int rank, struct coll_sched *part,
		       struct err *err)
{
	int rc = 0;

	if (coll_has_own_routes(s)) {
		return pick_routes(s, rank, part, err);
	}
	for (int64_t i = 0; i < coll_n_arc_routes(s) && !rc; i++) {
		struct coll_arc_route r = coll_arc_route(s, i);
		const struct topo_arc *a = topo_arc(s->topo, r.arc);
		int out = topo_group_between(s->group, a->src, rank);
		int in = topo_group_between(s->group, a->dst, rank);

		if (out >= 0) {
			rc = add_moved_route(s, &r, out, part, err);
		}
		if (in >= 0 && in != out && !rc) {
			rc = add_moved_route(s, &r, in, part, err);
		}
	}
	return rc;
}

/* Of an empty part: what is the rank's. */
static int fill_part(const struct coll_sched *s, int rank, struct coll_sched *part, struct err *err)
{
	int rc = copy_routes(s, rank, part, err);

	if (rc || (rc = copy_rows(s, rank, part, err)) || (rc = coll_finish(part, err))) {
		return rc;
	}
	part->part = rank + 1;
	return 0;
}

static int check_rank(const struct coll_sched *s, int rank, struct err *err)
{
	return rank >= 0 && rank < s->ranks ? 0 :
		err_set(err, WEFT_EINVAL, "rank %d: there are 0 to %d", rank, s->ranks - 1);
}

int coll_part_of(const struct coll_sched *s, int rank, struct coll_sched **out, struct err *err)
{
	struct coll_sched *part = NULL;
	int rc = check_rank(s, rank, err);

	*out = NULL;
	if (rc || (rc = begin(s, s->kind, &part, err)) ||
	    (s->alike && (rc = coll_set_alike(part, err))) ||
	    (rc = fill_part(s, rank, part, err))) {
		coll_free(part);
		return rc;
	}
	*out = part;
	return 0;
}

int coll_part_to_proto(const struct coll_sched *s, int rank, struct buf *out, struct err *err)
{
	/* Digraphs, names and places are those of s, which stays as it is. */
	struct coll_embedding routes = { 0 };
	struct coll_sched part = *s;
	int rc = check_rank(s, rank, err);

	if (rc) {
		return rc;
	}
	part.group = NULL;
	part.action = NULL;
	memset(&part.xfers, 0, sizeof(part.xfers));
	memset(&part.lights, 0, sizeof(part.lights));
	if (s->embedding) {
		routes.physical = s->embedding->physical;
		routes.routing = s->embedding->routing;
		routes.name = s->embedding->name;
		part.embedding = &routes;
	}
	rc = fill_part(s, rank, &part, err);
	if (rc == 0) {
		coll_to_proto(&part, out);
	}
	vec_fini(&part.xfers);
	vec_fini(&part.lights);
	vec_fini(&routes.paths);
	vec_fini(&routes.hops);
	return rc;
}
