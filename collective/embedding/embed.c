/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Embedding a schedule: its group, its transfers, then routes for the arcs that carry.
 *
 * Of a compact schedule's group those elements stay that are automorphisms of the physical
 * digraph too, or another group takes its place that keeps both. Of all transfers those
 * are then kept whose origin is the first of its orbit. Routes are made for the first
 * arc of every orbit that carries, as their images serve the rest. Where that makes more
 * than it saves the whole group stays, and every arc that carries gets routes.
 */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "collective/embedding/private.h"

struct embed_work {
	const struct coll_sched *s;
	struct coll_sched *out;
	/* Of the groups of both on the logical digraph, the schedules' own where they have one. */
	const struct topo_action *old, *kept;
	struct topo_action *none[2];
	enum coll_routing routing;
	bool *carries;			/* by orbit of arcs under `old` */
	bool each;			/* every arc has its own routes */
	struct embed_paths paths;
	struct embed_minimal minimal;
	struct embed_grid grid;
	json_t *file;			/* of explicit routes */
	struct arrays arrays;
};

static void end_work(struct embed_work *w)
{
	topo_action_free(w->none[0]);
	topo_action_free(w->none[1]);
	embed_paths_fini(&w->paths);
	embed_minimal_fini(&w->minimal);
	arrays_fini(&w->grid.arrays);
	arrays_fini(&w->arrays);
	json_decref(w->file);
}

static int check_schedule(const struct coll_sched *s, const struct topo *physical,
			  struct err *err)
{
	int64_t lights;

	(void)coll_lights(s, &lights);
	if (coll_is_embedded(s) || coll_part(s) >= 0 || lights > 0) {
		return err_set(err, WEFT_EUNSUPPORTED, "embedding a schedule that is embedded, has "
			       "light or is the part of one rank: not supported");
	}
	for (int a = 0; a < topo_m(physical); a++) {
		if (topo_arc(physical, a)->cap > COLL_MAX_CAP) {
			return err_set(err, WEFT_ELIMIT, "physical arc %d has a capacity above "
				       "%lld", a, (long long)COLL_MAX_CAP);
		}
	}
	return 0;
}

/* ---- the group ---- */

/* What extends of the group of s to the physical digraph, or a larger group that keeps
 * both. */
static int choose_group(struct embed_work *w, const struct topo *physical,
			struct topo_group **group, struct err *err)
{
	const struct topo_group *old = coll_group(w->s);
	struct topo_group *other = NULL;
	int rc = topo_group_extend(old, physical, group, err);

	if (rc || topo_group_order(*group) == topo_group_order(old)) {
		return rc;
	}
	rc = embed_other_group(w->s, w->old, physical, &other, err);
	if (!rc && topo_group_order(other) > topo_group_order(*group)) {
		topo_group_free(*group);
		*group = other;
		return 0;
	}
	topo_group_free(other);
	return rc;
}

/* Collects the routes of an arc. */
static int find_routes(struct embed_work *w, int arc, struct err *err)
{
	const struct topo_arc *a = topo_arc(coll_topo(w->s), arc);
	int first, rc = w->routing == COLL_ROUTING_DIMENSION_ORDER
				? embed_dimensions(&w->grid, &w->paths, a->src, a->dst, err)
				: embed_minimal(&w->minimal, &w->paths, a->src, a->dst, err);

	topo_out(coll_topo(w->s), a->src, &first);
	if (rc == 0) {
		rc = w->routing == COLL_ROUTING_MINIMAL_SINGLE ||
				     w->routing == COLL_ROUTING_MINIMAL_PARALLEL
			     ? embed_collect_kth(&w->paths, a->src, a->dst,
						 w->routing == COLL_ROUTING_MINIMAL_PARALLEL
							 ? -1 : arc - first, err)
			     : embed_collect(&w->paths, a->src, a->dst, 1, err);
	}
	if (rc) {
		err_wrap(err, "arc %d (%d -> %d)", arc, a->src, a->dst);
	}
	return rc;
}

static bool carries(const struct embed_work *w, int arc)
{
	return w->carries[topo_action_orbit(w->old, arc)];
}

/* What is kept, transfers and hops, with a part of the group, and with all of it. */
static int count_kept(struct embed_work *w, const struct topo_group *part, int64_t *with_part,
		      int64_t *with_all, struct err *err)
{
	struct topo_action *action;
	int rc = topo_action_new(coll_topo(w->s), part, &action, err);

	(void)coll_xfers(w->s, with_all);
	*with_part = *with_all * (topo_group_order(coll_group(w->s)) / topo_group_order(part));
	for (int o = 0; !rc && o < topo_action_orbits(action); o++) {
		if (carries(w, topo_action_first(action, o))) {
			rc = find_routes(w, topo_action_first(action, o), err);
			*with_part += (int64_t)w->paths.hops.n;
			*with_all += (int64_t)w->paths.hops.n * topo_action_size(action, o);
			w->paths.hops.n = w->paths.routes.n = 0;
		}
	}
	topo_action_free(action);
	return rc;
}

/* Whether arcs that a group takes to each other may have routes that it does not. */
static bool is_each(enum coll_routing routing)
{
	return routing >= COLL_ROUTING_EXPLICIT;
}

/* All of the group where that leaves less, or where each arc has its own routes. */
static int prefer_all(struct embed_work *w, struct topo_group **group, struct err *err)
{
	const struct topo_group *old = coll_group(w->s);
	int64_t with_part, with_all;
	int rc = 0;

	if (topo_group_order(*group) >= topo_group_order(old)) {
		return 0;
	}
	if (!is_each(w->routing)) {
		rc = count_kept(w, *group, &with_part, &with_all, err);
		if (rc || with_part <= with_all) {
			return rc;
		}
	}
	topo_group_free(*group);
	w->each = true;
	return topo_group_copy(old, group, err);
}

/* The group of what is made; NULL: none. */
static int keep_group(struct embed_work *w, const struct topo *physical,
		      struct topo_group **group, struct err *err)
{
	int rc = 0;

	*group = NULL;
	if (topo_ranks(physical) != coll_ranks(w->s) ||
	    topo_n(physical) < topo_n(coll_topo(w->s))) {
		return 0;	/* refused by coll_set_physical */
	}
	if (!is_each(w->routing) &&
	    (rc = choose_group(w, physical, group, err))) {
		return rc;
	}
	if (w->routing == COLL_ROUTING_DIMENSION_ORDER && !embed_keeps_digits(&w->grid, *group)) {
		topo_group_free(*group);
		*group = NULL;
	}
	return prefer_all(w, group, err);
}

/* An empty schedule like s, with this group and on this digraph, both taken over. */
static int begin(struct embed_work *w, struct topo *physical, struct topo_group *group, int ports,
		 struct err *err)
{
	struct topo *logical = NULL;
	int rc = topo_copy(coll_topo(w->s), &logical, err);

	if (rc || (rc = coll_new(coll_kind_of(w->s), logical, coll_chunks(w->s),
				 coll_ports(w->s), coll_root(w->s), &w->out, err))) {
		topo_group_free(group);
		topo_free(physical);
		return rc;
	}
	coll_set_topo_name(w->out, coll_topo_name(w->s));
	if ((rc = coll_set_group(w->out, group, err)) ||
	    (coll_is_alike(w->s) && (rc = coll_set_alike(w->out, err))) ||
	    (rc = coll_set_demands(w->out, coll_demands(w->s), err))) {
		topo_free(physical);
		return rc;
	}
	rc = coll_set_physical(w->out, physical, w->routing, ports, err);
	return rc || !w->each ? rc : coll_route_each(w->out, err);
}

/* ---- the transfers ---- */

/* The first terminals of the orbits of the group that is kept, sorted by the orbits
 * of the old one: those of terminal u's begin at begin[u] and end before
 * begin[u + 1] when u is the first of its old orbit. */
struct embed_firsts {
	int32_t *begin, *list;
	struct arrays arrays;
};

static void find_firsts(struct embed_work *w, struct embed_firsts *f)
{
	const struct topo_group *old = coll_group(w->s), *kept = coll_group(w->out);
	int ranks = coll_ranks(w->s), *end;

	*f = (struct embed_firsts){ .begin = NULL };
	arrays_add(&f->arrays, f->begin, ranks + 1);
	arrays_add(&f->arrays, f->list, ranks);
	arrays_add(&f->arrays, end, ranks);
	for (int u = 0; u < ranks; u++) {
		f->begin[topo_group_first(old, u) + 1] += topo_group_first(kept, u) == u;
	}
	for (int u = 0; u < ranks; u++) {
		f->begin[u + 1] += f->begin[u];
		end[u] = f->begin[u];
	}
	for (int u = 0; u < ranks; u++) {
		if (topo_group_first(kept, u) == u) {
			f->list[end[topo_group_first(old, u)]++] = u;
		}
	}
}

/* The images of a transfer that begin at first terminals. */
static int add_images(struct embed_work *w, const struct embed_firsts *f,
		      const struct coll_xfer *x, struct err *err)
{
	const struct topo_group *old = coll_group(w->s);
	int rc = 0;

	for (int i = f->begin[x->origin]; i < f->begin[x->origin + 1] && !rc; i++) {
		int by = topo_group_between(old, x->origin, f->list[i]);
		struct coll_xfer to = embed_moved(old, w->old, by, x);

		rc = coll_add(w->out, &to, err);
	}
	return rc;
}

static int add_transfers(struct embed_work *w, struct err *err)
{
	int64_t n, cosets = topo_group_order(coll_group(w->s));
	const struct coll_xfer *x = coll_xfers(w->s, &n);
	struct embed_firsts f;
	int rc = 0;

	if (n * cosets / topo_group_order(coll_group(w->out)) > COLL_MAX_XFERS) {
		return err_set(err, WEFT_ELIMIT, "with what the physical digraph leaves of its "
			       "symmetry, the schedule has more than %d transfers",
			       COLL_MAX_XFERS);
	}
	find_firsts(w, &f);
	for (int64_t i = 0; i < n && !rc; i++) {
		rc = add_images(w, &f, &x[i], err);
	}
	arrays_fini(&f.arrays);
	return rc;
}

/* ---- the routes ---- */

static int route_arc(struct embed_work *w, int arc, struct err *err)
{
	int rc = find_routes(w, arc, err);

	if (!rc && (rc = embed_add_routes(&w->paths, w->out, arc, err))) {
		const struct topo_arc *a = topo_arc(coll_topo(w->out), arc);

		err_wrap(err, "arc %d (%d -> %d)", arc, a->src, a->dst);
	}
	return rc;
}

static int add_routes(struct embed_work *w, struct err *err)
{
	int m = topo_m(coll_topo(w->out)), rc = 0;

	if (w->routing == COLL_ROUTING_EXPLICIT) {
		return embed_explicit(w->file, &w->paths, w->out, err);
	}
	for (int a = 0; a < m && !rc; a++) {
		bool first = topo_action_first(w->kept, topo_action_orbit(w->kept, a)) == a;

		rc = carries(w, a) && (first || w->each) ? route_arc(w, a, err) : 0;
	}
	return rc;
}

/* ---- all of it ---- */

/* Without a group it is made, and *own. */
static int action_of(const struct coll_sched *s, struct topo_action **own,
		     const struct topo_action **out, struct err *err)
{
	int rc = coll_action(s) ? 0 : topo_action_new(coll_topo(s), NULL, own, err);

	*out = coll_action(s) ? coll_action(s) : *own;
	return rc;
}

/* Finds the arcs that carry, and gets ready for their routes. */
static int prepare(struct embed_work *w, const struct topo *physical, struct err *err)
{
	int rc = check_schedule(w->s, physical, err);
	const struct coll_xfer *x;
	int64_t n;

	if (rc || (rc = action_of(w->s, &w->none[0], &w->old, err))) {
		return rc;
	}
	arrays_add(&w->arrays, w->carries, topo_action_orbits(w->old));
	x = coll_xfers(w->s, &n);
	for (int64_t i = 0; i < n; i++) {
		w->carries[topo_action_orbit(w->old, x[i].arc)] = true;
	}
	embed_paths_init(&w->paths, physical);
	if ((rc = embed_minimal_init(&w->minimal, physical, err))) {
		return rc;
	}
	return w->routing == COLL_ROUTING_DIMENSION_ORDER ? embed_grid_init(&w->grid, physical, err)
							  : 0;
}

static int fill(struct embed_work *w, struct err *err)
{
	int rc;

	if ((rc = action_of(w->out, &w->none[1], &w->kept, err)) ||
	    (rc = add_transfers(w, err)) || (rc = add_routes(w, err))) {
		return rc;
	}
	return coll_finish(w->out, err);
}

static int embed(struct embed_work *w, struct topo *physical, int ports, struct coll_sched **out,
		 struct err *err)
{
	struct topo_group *group = NULL;
	int rc = prepare(w, physical, err);

	*out = NULL;
	if (rc || (rc = keep_group(w, physical, &group, err))) {
		topo_group_free(group);
		topo_free(physical);
	} else if ((rc = begin(w, physical, group, ports, err)) == 0 &&
		   (rc = fill(w, err)) == 0) {
		*out = w->out;
		w->out = NULL;
	}
	coll_free(w->out);
	end_work(w);
	return rc;
}

int coll_embed(const struct coll_sched *s, struct topo *physical, enum coll_routing routing,
	       int ports, struct coll_sched **out, struct err *err)
{
	struct embed_work w = { .s = s, .routing = routing };

	return embed(&w, physical, ports, out, err);
}

int coll_embed_routes(const struct coll_sched *s, struct topo *physical, const char *json,
		      size_t len, int ports, struct coll_sched **out, struct err *err)
{
	struct embed_work w = { .s = s, .routing = COLL_ROUTING_EXPLICIT };
	int rc = embed_read_routes(json, len, &w.file, err);

	*out = NULL;
	if (rc) {
		topo_free(physical);
		return rc;
	}
	return embed(&w, physical, ports, out, err);
}

int coll_embed_in(const struct coll_fabric *f, const struct coll_sched *s, struct coll_sched **out,
		  struct err *err)
{
	struct topo *copy = NULL;
	int rc = topo_copy(f->topo, &copy, err);

	*out = NULL;
	if (rc) {
		return rc;
	}
	rc = f->routing == COLL_ROUTING_EXPLICIT
		     ? coll_embed_routes(s, copy, f->routes, f->routes_len, 0, out, err)
		     : coll_embed(s, copy, f->routing, 0, out, err);
	if (rc) {
		return err_wrap(err, "on %s", f->name);
	}
	coll_set_physical_name(*out, f->name);
	return 0;
}
