/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a label takes of the arcs that are there when it crosses a logical arc.
 *
 * Where a group moves the trees, all arcs of an orbit carry the same in a step: an orbit is
 * one resource, and what crosses one of its arcs counts as often as the group has elements over
 * arcs of the orbit. A shared limit is a resource too, with all that its arcs carry.
 */
#include <stdlib.h>

#include "collective/tree/stagger/stagger_private.h"
#include "lib/base/number/rat.h"

#define MAX_SCALE (INT64_C(1) << 31)

static int orbit_of(const struct topo_action *x, int arc)
{
	return x ? topo_action_orbit(x, arc) : arc;
}

static int64_t images(const struct stagger *s, int orbit)
{
	return s->action ? topo_group_order(s->f->group) / topo_action_size(s->action, orbit) : 1;
}

/* The routes of an arc, or of another of its orbit: list.v[*first ..], so many. */
static int routes_of(const struct stagger *s, const int32_t *route, int arc, int *first)
{
	int orbit = orbit_of(s->logical_action, arc), n = 0;

	*first = route[orbit];
	while (*first >= 0 && *first + n < (int)s->f->routes.n &&
	       s->f->routes.v[*first + n].arc == s->f->routes.v[*first].arc) {
		n++;
	}
	return n;
}

/* Amounts are in parts of a label that all routes' shares are whole numbers of. */
static int find_scale(const struct stagger *s, int64_t *scale, struct err *err)
{
	const struct coll_forest *f = s->f;

	*scale = 1;
	for (size_t i = 0, next; i < f->routes.n; i = next) {
		int64_t total = 0;

		for (next = i; next < f->routes.n && f->routes.v[next].arc == f->routes.v[i].arc;
		     next++) {
			total += f->routes.v[next].weight;
		}
		*scale = *scale / rat_gcd(*scale, total) * total;
		if (*scale > MAX_SCALE) {
			return err_set(err, WEFT_ELIMIT, "weights of routes have no common "
				       "multiple below 2^31");
		}
	}
	return 0;
}

/* To the uses of a logical arc, which are the last in the list. */
static void add_use(struct stagger_loads *l, int logical, int resource, int64_t amount)
{
	struct stagger_use use = { resource, amount };

	for (size_t i = (size_t)l->first[logical]; i < l->uses.n; i++) {
		if (l->uses.v[i].resource == resource) {
			l->uses.v[i].amount += amount;
			return;
		}
	}
	vec_push(&l->uses, use);
}

/* A physical arc carries so much, and with it the limits that it is in: of those in one orbit the
 * one that stands for them, as often as it has arcs of the orbit. */
static void use_arc(struct stagger *s, int logical, int arc, int64_t amount)
{
	struct stagger_loads *l = &s->loads;
	int orbit = orbit_of(s->action, arc), n = topo_n_limits(s->physical);
	int orbits = s->action ? topo_action_orbits(s->action) : topo_m(s->physical);
	const int32_t *limits = s->action ? topo_action_limits(s->action, &n) : NULL;

	add_use(l, logical, orbit, amount * images(s, orbit));
	for (int i = 0; i < n; i++) {
		const struct topo_limit *limit = topo_limit(s->physical, limits ? limits[i] : i);
		int64_t of_orbit = 0;

		for (int k = 0; k < limit->n; k++) {
			of_orbit += orbit_of(s->action, limit->arcs[k]) == orbit;
		}
		if (of_orbit > 0) {
			add_use(l, logical, orbits + i, of_orbit * amount * images(s, orbit));
		}
	}
}

/* What crosses a logical arc that trees have. */
static int use_routes(struct stagger *s, const int32_t *route, int arc, int64_t scale,
		      struct err *err)
{
	const struct coll_forest *f = s->f;
	int64_t total = 0;
	int first, n;

	if (f->routes.n == 0) {
		use_arc(s, arc, arc, scale);
		return 0;
	}
	n = routes_of(s, route, arc, &first);
	if (n == 0) {
		return err_set(err, WEFT_EINVAL, "arc %d of a tree has no route", arc);
	}
	for (int i = first; i < first + n; i++) {
		total += f->routes.v[i].weight;
	}
	for (int i = first; i < first + n; i++) {
		const struct coll_forest_route *r = &f->routes.v[i];

		for (int k = r->first; k < r->first + r->n; k++) {
			use_arc(s, arc, f->hops.v[k], scale / total * r->weight);
		}
	}
	return 0;
}

static void fill_caps(struct stagger *s, int64_t scale)
{
	struct stagger_loads *l = &s->loads;
	int orbits = s->action ? topo_action_orbits(s->action) : topo_m(s->physical), n;
	const int32_t *limits = s->action ? topo_action_limits(s->action, &n) : NULL;

	for (int i = 0; i < l->n; i++) {
		int arc = i < orbits && s->action ? topo_action_first(s->action, i) : i;
		int limit = limits && i >= orbits ? limits[i - orbits] : i - orbits;
		int64_t cap = i < orbits ? topo_arc(s->physical, arc)->cap
					 : topo_limit(s->physical, limit)->cap;

		l->cap[i] = (double)cap * (double)scale;
	}
}

static void mark_arcs(const struct stagger *s, bool *used)
{
	for (int i = 0; i < s->n_trees; i++) {
		for (int v = 0; v < s->n; v++) {
			int arc = s->trees[i].t->via[v];

			if (arc >= 0) {
				used[arc] = true;
			}
		}
	}
}

/* Shard times of the fullest resource when the trees of a part have passed what they weigh. */
static void find_limit(struct stagger *s, enum stagger_part part)
{
	struct stagger_loads *l = &s->loads;
	double *load;

	arrays_add(&l->arrays, load, l->n);
	for (int i = 0; i < s->n_trees; i++) {
		const struct coll_forest_tree *t = s->trees[i].t;
		enum stagger_part of = t->inwards ? STAGGER_IN : STAGGER_OUT;

		for (int v = 0; v < s->n && (part == STAGGER_ALL || part == of); v++) {
			int arc = t->via[v];

			for (int k = arc >= 0 ? l->first[arc] : 0;
			     arc >= 0 && k < l->first[arc + 1]; k++) {
				load[l->uses.v[k].resource] += (double)t->weight *
							       (double)l->uses.v[k].amount;
			}
		}
	}
	for (int i = 0; i < l->n; i++) {
		double time = load[i] / l->cap[i] / s->share;

		s->limit[part] = time > s->limit[part] ? time : s->limit[part];
	}
}

int stagger_loads_init(struct stagger *s, struct err *err)
{
	struct stagger_loads *l = &s->loads;
	int orbits = s->logical_action ? topo_action_orbits(s->logical_action) : s->m, n_limits;
	int32_t *route = NULL;
	int64_t scale = 1;
	bool *used = NULL;
	int rc = find_scale(s, &scale, err);

	if (rc) {
		return rc;
	}
	n_limits = topo_n_limits(s->physical);
	if (s->action) {
		(void)topo_action_limits(s->action, &n_limits);
	}
	l->n = (s->action ? topo_action_orbits(s->action) : topo_m(s->physical)) + n_limits;
	arrays_add(&l->arrays, l->cap, l->n);
	arrays_add(&l->arrays, l->first, s->m + 1);
	arrays_add(&l->arrays, used, s->m);
	arrays_add(&l->arrays, route, orbits);
	for (int i = 0; i < orbits; i++) {
		route[i] = -1;
	}
	for (size_t i = s->f->routes.n; i-- > 0;) {
		route[orbit_of(s->logical_action, s->f->routes.v[i].arc)] = (int32_t)i;
	}
	fill_caps(s, scale);
	mark_arcs(s, used);
	for (int a = 0; a < s->m && rc == 0; a++) {
		l->first[a] = (int32_t)l->uses.n;
		rc = used[a] ? use_routes(s, route, a, scale, err) : 0;
	}
	l->first[s->m] = (int32_t)l->uses.n;
	for (int part = 0; part < STAGGER_PARTS && rc == 0; part++) {
		find_limit(s, (enum stagger_part)part);
	}
	return rc;
}

void stagger_loads_fini(struct stagger_loads *l)
{
	vec_fini(&l->uses);
	arrays_fini(&l->arrays);
}
