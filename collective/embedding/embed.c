/*
 * Embedding a schedule: its group, its transfers, then routes for the arcs that carry.
 *
 * Of a compact schedule's group those elements stay that are automorphisms of the physical
 * digraph too; the transfers are written out over the others, one of each coset. Routes
 * are made for the first arc of every orbit that carries, as their images serve the
 * rest.
 */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "collective/embedding/private.h"

struct embed_work {
	const struct coll_sched *s;
	struct coll_sched *out;
	struct topo_action *old, *kept;	/* of the groups of both on the logical digraph */
	bool *carries;			/* by orbit of arcs under `kept` */
	struct embed_paths paths;
	struct embed_minimal minimal;
	struct embed_grid grid;
	json_t *file;			/* of explicit routes */
	struct arrays arrays;
};

static void end_work(struct embed_work *w)
{
	topo_action_free(w->old);
	topo_action_free(w->kept);
	embed_paths_fini(&w->paths);
	arrays_fini(&w->minimal.arrays);
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

/* What stays of the group of s; NULL: nothing. */
static int keep_group(struct embed_work *w, const struct topo *physical,
		      enum coll_routing routing, struct topo_group **group, struct err *err)
{
	int rc = 0;

	*group = NULL;
	if (topo_ranks(physical) != coll_ranks(w->s)) {
		return 0;	/* refused by coll_set_physical */
	}
	if (routing == COLL_ROUTING_DIMENSION_ORDER &&
	    (rc = embed_grid_init(&w->grid, physical, err))) {
		return rc;
	}
	if (routing != COLL_ROUTING_EXPLICIT) {
		rc = topo_group_extend(coll_group(w->s), physical, group, err);
	}
	if (!rc && routing == COLL_ROUTING_DIMENSION_ORDER &&
	    !embed_keeps_digits(&w->grid, *group)) {
		topo_group_free(*group);
		*group = NULL;
	}
	return rc;
}

/* An empty schedule like s, with this group and on this digraph, both taken over. */
static int begin(struct embed_work *w, struct topo *physical, struct topo_group *group,
		 enum coll_routing routing, int ports, struct err *err)
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
	if ((rc = coll_set_group(w->out, group, err))) {
		topo_free(physical);
		return rc;
	}
	return coll_set_physical(w->out, physical, routing, ports, err);
}

/* ---- the transfers ---- */

/* All transfers moved by an element of the old group. */
static int add_moved(struct embed_work *w, int by, struct err *err)
{
	const struct topo_group *g = coll_group(w->s);
	int64_t n;
	const struct coll_xfer *x = coll_xfers(w->s, &n);
	int rc = 0;

	for (int64_t i = 0; i < n && !rc; i++) {
		struct coll_xfer to = x[i];

		if (by) {
			to.arc = topo_action_move(w->old, by, x[i].arc);
			to.origin = topo_group_move(g, by, x[i].origin);
			to.dest = x[i].dest < 0 ? x[i].dest : topo_group_move(g, by, x[i].dest);
		}
		w->carries[topo_action_orbit(w->kept, to.arc)] = true;
		rc = coll_add(w->out, &to, err);
	}
	return rc;
}

/* By one element of each coset of the group that stays: those that take the first
 * terminal to the first ones of their orbits. */
static int add_transfers(struct embed_work *w, struct err *err)
{
	const struct topo_group *old = coll_group(w->s), *kept = coll_group(w->out);
	int64_t n, cosets = topo_group_order(old) / topo_group_order(kept);
	int rc = 0;

	(void)coll_xfers(w->s, &n);
	if (n * cosets > COLL_MAX_XFERS) {
		return err_set(err, WEFT_ELIMIT, "with what the physical digraph leaves of its "
			       "symmetry, the schedule has %lld transfers: more than %d",
			       (long long)(n * cosets), COLL_MAX_XFERS);
	}
	for (int u = 0; u < coll_ranks(w->s) && !rc; u++) {
		int by = topo_group_between(old, 0, u);

		if (by >= 0 && topo_group_first(kept, u) == u) {
			rc = add_moved(w, by, err);
		}
	}
	return rc;
}

/* ---- the routes ---- */

static int route_arc(struct embed_work *w, enum coll_routing routing, int arc, struct err *err)
{
	const struct topo_arc *a = topo_arc(coll_topo(w->out), arc);
	int rc;

	rc = routing == COLL_ROUTING_MINIMAL_SPLIT
		     ? embed_minimal(&w->minimal, &w->paths, a->src, a->dst, err)
		     : embed_dimensions(&w->grid, &w->paths, a->src, a->dst, err);
	if (rc || (rc = embed_collect(&w->paths, a->src, a->dst, 1, err)) ||
	    (rc = embed_add_routes(&w->paths, w->out, arc, err))) {
		err_wrap(err, "arc %d (%d -> %d)", arc, a->src, a->dst);
	}
	return rc;
}

static int add_routes(struct embed_work *w, enum coll_routing routing, struct err *err)
{
	const struct topo *physical = coll_physical(w->out);
	int rc = embed_paths_init(&w->paths, physical, err);

	if (!rc && routing == COLL_ROUTING_EXPLICIT) {
		return embed_explicit(w->file, &w->paths, w->out, err);
	}
	if (!rc && routing == COLL_ROUTING_MINIMAL_SPLIT) {
		rc = embed_minimal_init(&w->minimal, physical, err);
	}
	for (int o = 0; o < topo_action_orbits(w->kept) && !rc; o++) {
		if (w->carries[o]) {
			rc = route_arc(w, routing, topo_action_first(w->kept, o), err);
		}
	}
	return rc;
}

/* ---- all of it ---- */

static int fill(struct embed_work *w, enum coll_routing routing, struct err *err)
{
	int rc;

	if ((rc = topo_action_new(coll_topo(w->s), coll_group(w->s), &w->old, err)) ||
	    (rc = topo_action_new(coll_topo(w->out), coll_group(w->out), &w->kept, err))) {
		return rc;
	}
	arrays_add(&w->arrays, w->carries, topo_action_orbits(w->kept));
	if (w->arrays.failed) {
		return err_nomem(err);
	}
	if ((rc = add_transfers(w, err)) || (rc = add_routes(w, routing, err))) {
		return rc;
	}
	return coll_finish(w->out, err);
}

static int embed(struct embed_work *w, struct topo *physical, enum coll_routing routing,
		 int ports, struct coll_sched **out, struct err *err)
{
	struct topo_group *group = NULL;
	int rc = check_schedule(w->s, physical, err);

	*out = NULL;
	if (rc || (rc = keep_group(w, physical, routing, &group, err))) {
		topo_free(physical);
	} else if ((rc = begin(w, physical, group, routing, ports, err)) == 0 &&
		   (rc = fill(w, routing, err)) == 0) {
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
	struct embed_work w = { .s = s };

	return embed(&w, physical, routing, ports, out, err);
}

int coll_embed_routes(const struct coll_sched *s, struct topo *physical, const char *json,
		      size_t len, int ports, struct coll_sched **out, struct err *err)
{
	struct embed_work w = { .s = s };
	int rc = embed_read_routes(json, len, &w.file, err);

	*out = NULL;
	if (rc) {
		topo_free(physical);
		return rc;
	}
	return embed(&w, physical, COLL_ROUTING_EXPLICIT, ports, out, err);
}
