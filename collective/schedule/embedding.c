/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Embeddings: the routes of logical arcs over a physical digraph.
 *
 * Routes are kept as rows of (arc, weight, hops), of a compact schedule one set an
 * orbit of logical arcs: the others' routes are their images. Where the group is none of
 * the physical digraph, recursive doubling on a torus, every arc has its own. They are checked
 * when they are added, so whoever counts loads or simulates only follows them.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "collective/schedule/private.h"
#include "lib/base/alloc.h"
#include "lib/base/order.h"

static const char *const routing_names[COLL_ROUTINGS] = {
	[COLL_ROUTING_MINIMAL_SPLIT] = "minimal-split",
	[COLL_ROUTING_DIMENSION_ORDER] = "dimension-order",
	[COLL_ROUTING_EXPLICIT] = "explicit",
	[COLL_ROUTING_MINIMAL_SINGLE] = "minimal-single",
	[COLL_ROUTING_MINIMAL_PARALLEL] = "minimal-parallel",
};

const char *coll_routing_name(enum coll_routing routing)
{
	return routing_names[routing];
}

int coll_routing_parse(const char *name, enum coll_routing *routing, struct err *err)
{
	for (int i = 0; i < COLL_ROUTINGS; i++) {
		if (strcmp(name, routing_names[i]) == 0) {
			*routing = i;
			return 0;
		}
	}
	return err_set(err, WEFT_EINVAL, "unknown routing \"%.64s\": expected minimal-split, "
		       "minimal-parallel, minimal-single, dimension-order or explicit", name);
}

void coll_embedding_free(struct coll_embedding *e)
{
	if (!e) {
		return;
	}
	topo_action_free(e->action);
	topo_group_free(e->symmetry);
	topo_free(e->physical);
	free(e->name);
	vec_fini(&e->paths);
	vec_fini(&e->hops);
	free(e);
}

/* The nodes of the logical digraph are those of the physical one that hold
 * data, or the terminals among them: then memories only forward. */
static int check_holders(const struct topo *logical, const struct topo *physical, struct err *err)
{
	int n = topo_n(logical), rc = topo_check_order(physical, err);

	if (rc) {
		return err_wrap(err, "physical digraph");
	}
	if (topo_ranks(physical) != topo_ranks(logical) ||
	    (topo_holders(physical) != n && topo_ranks(logical) != n)) {
		return err_set(err, WEFT_EINVAL, "the physical digraph has %d terminals and %d "
			       "memories, the logical one %d and %d", topo_ranks(physical),
			       topo_holders(physical) - topo_ranks(physical), topo_ranks(logical),
			       n - topo_ranks(logical));
	}
	for (int u = 0; u < n; u++) {
		if (topo_node_flags(logical, u) != topo_node_flags(physical, u)) {
			return err_set(err, WEFT_EINVAL, "node %d: the logical and the physical "
				       "digraph disagree on what it can do", u);
		}
	}
	return 0;
}

/* What is known of the physical digraph without the schedule's group. */
static int find_symmetry(struct coll_embedding *e, struct err *err)
{
	int rc = topo_group_find(e->physical, &e->symmetry, err);

	if (rc == 0 && !e->symmetry) {
		e->symmetry = topo_group_digits(e->physical);
	}
	return rc;
}

/* A group that is none of the physical digraph moves transfers only. */
static int set_action(struct coll_sched *s, struct coll_embedding *e, struct err *err)
{
	int rc = s->group ? topo_action_new(e->physical, s->group, &e->action, NULL) : 0;

	if (rc == WEFT_EINVAL) {
		return find_symmetry(e, err);
	}
	return rc;
}

int coll_route_each(struct coll_sched *s, struct err *err)
{
	struct coll_embedding *e = s->embedding;

	assert(e->paths.n == 0);
	if (!e->action) {
		return 0;
	}
	topo_action_free(e->action);
	e->action = NULL;
	return find_symmetry(e, err);
}

int coll_set_physical(struct coll_sched *s, struct topo *physical, enum coll_routing routing,
		      int ports, struct err *err)
{
	struct coll_embedding *e = x_new(1, sizeof(*e));
	int64_t counted = ports;
	int rc;

	assert(!s->embedding && !s->placement && s->lights.n == 0);
	*e = (struct coll_embedding){ .physical = physical, .routing = routing };
	if ((rc = check_holders(s->topo, physical, err)) ||
	    (!ports && (rc = coll_count_ports(physical, &counted, err))) ||
	    (rc = set_action(s, e, err))) {
		coll_embedding_free(e);
		return rc;
	}
	if (counted > COLL_MAX_PORTS) {
		coll_embedding_free(e);
		return err_set(err, WEFT_ELIMIT, "%lld ports: at most %d", (long long)counted,
			       COLL_MAX_PORTS);
	}
	s->ports = (int)counted;
	s->embedding = e;
	s->finished = s->proven = false;
	return 0;
}

/* The hops lead from the tail of the logical arc to its head, through no node
 * twice, and none of them is a self-loop. */
static int check_path(const struct coll_sched *s, const struct coll_arc_route *r, struct err *err)
{
	const struct topo *t = s->embedding->physical;
	const struct topo_arc *a;
	int at;

	if (r->arc < 0 || r->arc >= topo_m(s->topo)) {
		return err_set(err, WEFT_EINVAL, "arc %d is missing: the logical digraph has %d "
			       "arcs", r->arc, topo_m(s->topo));
	}
	a = topo_arc(s->topo, r->arc);
	if (r->weight < 1 || r->weight > COLL_MAX_WEIGHT) {
		return err_set(err, WEFT_EINVAL, "arc %d (%d -> %d): weight %d is not in 1 to %d",
			       r->arc, a->src, a->dst, r->weight, COLL_MAX_WEIGHT);
	}
	at = a->src;
	for (int i = 0; i < r->n; i++) {
		int hop = r->hops[i];

		if (hop < 0 || hop >= topo_m(t) || topo_arc(t, hop)->src != at ||
		    topo_arc(t, hop)->dst == at) {
			return err_set(err, WEFT_EINVAL, "arc %d (%d -> %d): hop %d, physical arc "
				       "%d, does not leave node %d", r->arc, a->src, a->dst, i, hop,
				       at);
		}
		at = topo_arc(t, hop)->dst;
	}
	if (at != a->dst || r->n < 1 || r->n >= topo_n(t)) {
		return err_set(err, WEFT_EINVAL, "arc %d (%d -> %d): its route of %d hops ends at "
			       "node %d", r->arc, a->src, a->dst, r->n, at);
	}
	return 0;
}

/* Memories at both ends may stay where they are, and do not tell: then the elements are
 * tried. */
int coll_element_to(const struct coll_sched *s, int arc, int first)
{
	const struct topo_arc *from = topo_arc(s->topo, arc), *to = topo_arc(s->topo, first);
	int by = 0;

	if (from->src < s->ranks) {
		return topo_group_between(s->group, from->src, to->src);
	}
	if (from->dst < s->ranks) {
		return topo_group_between(s->group, from->dst, to->dst);
	}
	while (topo_action_move(s->action, by, arc) != first) {
		by++;
	}
	return by;
}

int coll_add_route(struct coll_sched *s, const struct coll_arc_route *r, struct err *err)
{
	struct coll_embedding *e = s->embedding;
	struct coll_path p = { .arc = r->arc, .weight = r->weight, .n = r->n };
	int by = 0, rc = check_path(s, r, err);

	if (rc) {
		return rc;
	}
	p.first = (int64_t)e->hops.n;
	if (e->action) {
		p.arc = topo_action_first(s->action, topo_action_orbit(s->action, r->arc));
		by = coll_element_to(s, r->arc, p.arc);
	}
	if (e->hops.n + (size_t)r->n > COLL_MAX_XFERS) {
		return err_set(err, WEFT_ELIMIT, "routes of more than %d hops", COLL_MAX_XFERS);
	}
	for (int i = 0; i < r->n; i++) {
		int hop = by ? topo_action_move(e->action, by, r->hops[i]) : r->hops[i];

		vec_push(&e->hops, hop);
	}
	s->finished = s->proven = false;
	vec_push(&e->paths, p);
	return 0;
}

ORDER_BY(by_arc, struct coll_path, arc, first)

/* By arc; mostly they come so. */
static void sort_routes(struct coll_embedding *e)
{
	for (size_t i = 1; i < e->paths.n; i++) {
		if (by_arc(&e->paths.v[i - 1], &e->paths.v[i]) > 0) {
			qsort(e->paths.v, e->paths.n, sizeof(*e->paths.v), by_arc);
			return;
		}
	}
}

int coll_finish_routes(struct coll_sched *s, struct err *err)
{
	struct coll_embedding *e = s->embedding;
	struct arrays arrays = { 0 };
	bool *routed, *carries;
	int rc = 0;

	if (!e) {
		return 0;
	}
	sort_routes(e);
	arrays_add(&arrays, routed, topo_m(s->topo));
	arrays_add(&arrays, carries, coll_orbits(s));
	for (size_t i = 0; i < e->paths.n; i++) {
		routed[coll_orbit(coll_senders(s), e->paths.v[i].arc)] = true;
	}
	for (size_t i = 0; i < s->xfers.n; i++) {
		carries[coll_orbit(s->action, s->xfers.v[i].arc)] = true;
	}
	for (int arc = 0; arc < topo_m(s->topo) && !rc; arc++) {
		const struct topo_arc *a = topo_arc(s->topo, arc);

		if (carries[coll_orbit(s->action, arc)] &&
		    !routed[coll_orbit(coll_senders(s), arc)]) {
			rc = err_set(err, WEFT_EINVAL, "arc %d (%d -> %d) carries and has no "
				     "route", arc, a->src, a->dst);
		}
	}
	arrays_fini(&arrays);
	return rc;
}

const struct topo *coll_physical(const struct coll_sched *s)
{
	return s->embedding ? s->embedding->physical : s->topo;
}

void coll_set_physical_name(struct coll_sched *s, const char *name)
{
	bool keep = name[0] && strlen(name) <= COLL_MAX_NAME;

	free(s->embedding->name);
	s->embedding->name = keep ? x_dup(name) : NULL;
}

const char *coll_physical_name(const struct coll_sched *s)
{
	return s->embedding && s->embedding->name ? s->embedding->name : "";
}

bool coll_is_embedded(const struct coll_sched *s)
{
	return s->embedding != NULL;
}

bool coll_through_ranks(const struct coll_sched *s)
{
	const struct coll_embedding *e = s->embedding;

	for (size_t k = 0; e && k < e->paths.n; k++) {
		const struct coll_path *p = &e->paths.v[k];

		for (int i = 1; i < p->n; i++) {
			if (topo_arc(e->physical, e->hops.v[p->first + i])->src < s->ranks) {
				return true;
			}
		}
	}
	return false;
}

enum coll_routing coll_routing(const struct coll_sched *s)
{
	return s->embedding->routing;
}

int64_t coll_n_arc_routes(const struct coll_sched *s)
{
	return s->embedding ? (int64_t)s->embedding->paths.n : 0;
}

struct coll_arc_route coll_arc_route(const struct coll_sched *s, int64_t i)
{
	const struct coll_path *p = &s->embedding->paths.v[i];

	return (struct coll_arc_route){ p->arc, p->weight, s->embedding->hops.v + p->first, p->n };
}
