/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tables of schedule files, shared by the JSON and the protobuf form.
 *
 * Both are a head and tables of whole numbers. The columns, with what a file may
 * say and what a missing column stands for, are described here once; writers ask
 * for rows as numbers, readers hand rows in, and all checks of values, with their
 * errors, are made on the way in, whatever the form. What a schedule is over,
 * digraphs, group and routes, is gathered until the first transfer and then
 * made at once.
 */
#include "collective/schedule/private.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"

#define ARC_COLUMNS { \
		{ "src", true, 0, INT32_MAX, 0 }, \
		{ "dst", true, 0, INT32_MAX, 0 }, \
		{ "cap", false, 1, COLL_MAX_CAP, 1 }, \
		{ "latency_ns", false, 0, INT64_MAX >> 20, 0 }, \
	}

#define ALL_FLAGS (TOPO_CAN_COPY | TOPO_CAN_REDUCE | TOPO_CAN_STORE)

const struct format_table format_tables[FORMAT_TABLES] = {
	[FORMAT_KINDS] = { "node_kinds", 3, {
		{ "node", true, 0, INT32_MAX, 0 },
		{ "kind", true, TOPO_TERMINAL, TOPO_MEMORY, 0 },
		{ "abilities", false, 0, ALL_FLAGS, 0 },
	}, false, 2 },
	[FORMAT_ARCS] = { "arcs", 4, ARC_COLUMNS, true, 1 },
	[FORMAT_PHYSICAL_ARCS] = { "physical_arcs", 4, ARC_COLUMNS, false, 2 },
	[FORMAT_LIMITS] = { "limits", 1, {
		{ "cap", true, 1, INT64_MAX, 0 },
	}, false, 2 },
	[FORMAT_LIMIT_ARCS] = { "limit_arcs", 2, {
		{ "limit", true, 0, INT32_MAX, 0 },
		{ "arc", true, 0, INT32_MAX, 0 },
	}, false, 2 },
	[FORMAT_GENERATORS] = { "generators", 1, {
		{ "order", true, 2, TOPO_MAX_NODES, 0 },
	}, false, 2 },
	[FORMAT_IMAGES] = { "images", 1, {
		{ "node", true, 0, INT32_MAX, 0 },
	}, false, 2 },
	[FORMAT_ROUTES] = { "routes", 3, {
		{ "arc", true, 0, INT32_MAX, 0 },
		{ "hops", true, 1, INT32_MAX, 0 },
		{ "weight", false, 1, COLL_MAX_WEIGHT, 1 },
	}, false, 2 },
	[FORMAT_HOPS] = { "hops", 1, {
		{ "arc", true, 0, INT32_MAX, 0 },
	}, false, 2 },
	[FORMAT_DEMANDS] = { "demands", 3, {
		{ "origin", true, 0, INT32_MAX, 0 },
		{ "dest", true, 0, INT32_MAX, 0 },
		{ "chunks", true, 1, COLL_MAX_CHUNKS, 0 },
	}, false, FORMAT_DEMANDED },
	[FORMAT_TRANSFERS] = { "transfers", 9, {
		{ "step", true, 0, INT32_MAX, 0 },
		{ "arc", true, 0, INT32_MAX, 0 },
		{ "origin", true, 0, INT32_MAX, 0 },
		{ "dest", false, 0, INT32_MAX, COLL_NO_DEST },
		{ "first", true, 0, INT32_MAX, 0 },
		{ "last", true, 0, INT32_MAX, 0 },
		{ "op", false, COLL_OP_COPY, COLL_OP_FORWARD, COLL_OP_COPY },
		{ "sum_of", false, 0, INT32_MAX, 0 },
		{ "kept_as", false, 0, UINT16_MAX, 0 },
	}, true, 1 },
	[FORMAT_LIGHTS] = { "lightpaths", 6, {
		{ "step", true, 0, INT32_MAX, 0 },
		{ "arc", true, 0, INT32_MAX, 0 },
		{ "channel", true, 0, UINT16_MAX, 0 },
		{ "dir", true, 0, 1, 0 },
		{ "fibre", false, 0, UINT8_MAX, 0 },
		{ "loss_mdb", false, INT32_MIN, INT32_MAX, 0 },
	}, false, 1 },
};

/* ---- rows of a schedule ---- */

static bool is_usual(const struct topo *t, int node)
{
	return topo_node_kind(t, node) == TOPO_TERMINAL && topo_node_flags(t, node) == ALL_FLAGS;
}

int format_version(const struct coll_sched *s)
{
	if (s->merges || s->alike) {
		return FORMAT_MERGED;
	}
	if (s->forwards) {
		return FORMAT_FORWARDED;
	}
	if (s->demands) {
		return FORMAT_DEMANDED;
	}
	if (s->placement) {
		return FORMAT_PLACED;
	}
	return s->group || s->embedding || !topo_is_plain(s->topo) ? 2 : 1;
}

/* Whether a row of the demands is written: the pair with number i, origin first. */
static bool is_demanded(const struct coll_sched *s, int64_t i)
{
	int u = (int)(i / s->ranks);

	return s->demands[i] > 0 && topo_group_first(s->group, u) == u;
}

static int64_t count_demands(const struct coll_sched *s)
{
	int64_t all = s->demands ? (int64_t)s->ranks * s->ranks : 0, n = 0;

	for (int64_t i = 0; i < all; i++) {
		n += is_demanded(s, i);
	}
	return n;
}

/* Nodes whose images are written: those of the digraph that the group keeps. */
static int moved_nodes(const struct coll_sched *s)
{
	return topo_n(coll_has_own_routes(s) ? s->topo : coll_physical(s));
}

int64_t format_n_rows(const struct coll_sched *s, enum format_which which)
{
	const struct topo *t = coll_physical(s);
	int generators = s->group ? topo_group_generators(s->group) : 0;
	int64_t n = 0;

	switch (which) {
	case FORMAT_KINDS:
		for (int u = 0; u < topo_n(t); u++) {
			n += !is_usual(t, u);
		}
		return n;
	case FORMAT_ARCS:
		return topo_m(s->topo);
	case FORMAT_PHYSICAL_ARCS:
		return s->embedding ? topo_m(t) : 0;
	case FORMAT_LIMITS:
		return topo_n_limits(t);
	case FORMAT_LIMIT_ARCS:
		for (int i = 0; i < topo_n_limits(t); i++) {
			n += topo_limit(t, i)->n;
		}
		return n;
	case FORMAT_GENERATORS:
		return generators;
	case FORMAT_IMAGES:
		return (int64_t)generators * moved_nodes(s);
	case FORMAT_ROUTES:
		return coll_n_arc_routes(s);
	case FORMAT_HOPS:
		return s->embedding ? (int64_t)s->embedding->hops.n : 0;
	case FORMAT_DEMANDS:
		return count_demands(s);
	case FORMAT_TRANSFERS:
		return (int64_t)s->xfers.n;
	case FORMAT_LIGHTS:
	case FORMAT_TABLES:
		break;
	}
	return (int64_t)s->lights.n;
}

struct format_rows format_rows(const struct coll_sched *s, enum format_which which)
{
	return (struct format_rows){ .s = s, .which = which };
}

static void next_kind(struct format_rows *r, int64_t *v)
{
	const struct topo *t = coll_physical(r->s);

	while (is_usual(t, (int)r->inner)) {
		r->inner++;
	}
	v[0] = r->inner;
	v[1] = topo_node_kind(t, (int)r->inner);
	v[2] = topo_node_flags(t, (int)r->inner);
	r->inner++;
}

static void get_arc(const struct topo_arc *a, int64_t *v)
{
	v[0] = a->src;
	v[1] = a->dst;
	v[2] = a->cap;
	v[3] = a->latency_ns;
}

static void next_limit_arc(struct format_rows *r, int64_t *v)
{
	const struct topo_limit *l = topo_limit(coll_physical(r->s), (int)r->outer);

	v[0] = r->outer;
	v[1] = l->arcs[r->inner++];
	if (r->inner == l->n) {
		r->outer++;
		r->inner = 0;
	}
}

static void next_hop(struct format_rows *r, int64_t *v)
{
	struct coll_arc_route route = coll_arc_route(r->s, r->outer);

	v[0] = route.hops[r->inner++];
	if (r->inner == route.n) {
		r->outer++;
		r->inner = 0;
	}
}

static void next_demand(struct format_rows *r, int64_t *v)
{
	const struct coll_sched *s = r->s;

	while (!is_demanded(s, r->inner)) {
		r->inner++;
	}
	v[0] = r->inner / s->ranks;
	v[1] = r->inner % s->ranks;
	v[2] = s->demands[r->inner++];
}

static void get_route(const struct coll_arc_route *r, int64_t *v)
{
	v[0] = r->arc;
	v[1] = r->n;
	v[2] = r->weight;
}

static void get_image(const struct coll_sched *s, int64_t row, int64_t *v)
{
	int n = moved_nodes(s), order;

	v[0] = topo_group_generator(s->group, (int)(row / n), &order)[row % n];
}

static void get_xfer(const struct coll_xfer *x, int64_t *v)
{
	v[0] = x->step;
	v[1] = x->arc;
	v[2] = x->origin;
	v[3] = x->op == COLL_OP_FORWARD ? COLL_NO_DEST : x->dest;
	v[4] = x->first;
	v[5] = x->last;
	v[6] = x->op;
	v[7] = x->op == COLL_OP_FORWARD ? x->dest : 0;
	v[8] = x->kept;
}

static void get_light(const struct coll_light *l, int64_t *v)
{
	v[0] = l->step;
	v[1] = l->arc;
	v[2] = l->channel;
	v[3] = l->dir;
	v[4] = l->fibre;
	v[5] = l->loss_mdb;
}

void format_next(struct format_rows *r, int64_t *values)
{
	const struct coll_sched *s = r->s;
	struct coll_arc_route route;
	int64_t row = r->row++;
	int order;

	switch (r->which) {
	case FORMAT_KINDS:
		next_kind(r, values);
		return;
	case FORMAT_ARCS:
		get_arc(topo_arc(s->topo, (int)row), values);
		return;
	case FORMAT_PHYSICAL_ARCS:
		get_arc(topo_arc(coll_physical(s), (int)row), values);
		return;
	case FORMAT_LIMITS:
		values[0] = topo_limit(coll_physical(s), (int)row)->cap;
		return;
	case FORMAT_LIMIT_ARCS:
		next_limit_arc(r, values);
		return;
	case FORMAT_GENERATORS:
		topo_group_generator(s->group, (int)row, &order);
		values[0] = order;
		return;
	case FORMAT_IMAGES:
		get_image(s, row, values);
		return;
	case FORMAT_ROUTES:
		route = coll_arc_route(s, row);
		get_route(&route, values);
		return;
	case FORMAT_HOPS:
		next_hop(r, values);
		return;
	case FORMAT_DEMANDS:
		next_demand(r, values);
		return;
	case FORMAT_TRANSFERS:
		get_xfer(&s->xfers.v[row], values);
		return;
	case FORMAT_LIGHTS:
	case FORMAT_TABLES:
		break;
	}
	get_light(&s->lights.v[row], values);
}

void format_present(const struct coll_sched *s, enum format_which which, bool *present)
{
	const struct format_table *t = &format_tables[which];
	struct format_rows rows = format_rows(s, which);
	int64_t n = format_n_rows(s, which), v[FORMAT_COLUMNS];

	for (int c = 0; c < t->n_columns; c++) {
		present[c] = t->columns[c].required;
	}
	for (int64_t i = 0; i < n; i++) {
		format_next(&rows, v);
		for (int c = 0; c < t->n_columns; c++) {
			present[c] |= v[c] != t->columns[c].absent;
		}
	}
}

/* ---- a schedule from rows ---- */

/* "field: 7 is not in 0 to 3"; code is for values above. */
static int check(const char *field, int64_t value, int64_t lo, int64_t hi,
		 enum weft_err code, struct err *err)
{
	if (value >= lo && value <= hi) {
		return 0;
	}
	return err_set(err, value > hi ? code : WEFT_EINVAL,
		       "%s: %lld is not in %lld to %lld", field,
		       (long long)value, (long long)lo, (long long)hi);
}

static int check_head(const struct format_head *h, struct err *err)
{
	int rc = check("nodes", h->nodes, 1, TOPO_MAX_NODES, WEFT_ELIMIT, err);

	if (rc ||
	    (rc = check("chunks", h->chunks, 1, COLL_MAX_CHUNKS, WEFT_ELIMIT,
			err)) ||
	    (rc = check("ports", h->ports, 0, COLL_MAX_PORTS, WEFT_ELIMIT,
			err)) ||
	    (rc = check("root", h->root, 0, h->nodes - 1, WEFT_EINVAL, err)) ||
	    (rc = check("part", h->part - 1, -1, h->nodes - 1, WEFT_EINVAL,
			err))) {
		return rc;
	}
	if (h->physical_nodes && (rc = check("physical_nodes", h->physical_nodes, h->nodes,
					     TOPO_MAX_NODES, WEFT_ELIMIT, err))) {
		return rc;
	}
	if ((rc = check("topology length", strlen(h->topology), 0, COLL_MAX_NAME, WEFT_ELIMIT,
			err))) {
		return rc;
	}
	return check("physical length", strlen(h->physical), 0, COLL_MAX_NAME, WEFT_ELIMIT, err);
}

int format_start(struct format_load *l, const struct format_head *head, struct err *err)
{
	int rc;

	*l = (struct format_load){ .head = *head };
	if (head->version < 1 || head->version > COLL_FORMAT_VERSION) {
		return err_set(err, WEFT_EUNSUPPORTED,
			       "version: schedule format %lld is not "
			       "supported, only 1 to %d", (long long)head->version,
			       COLL_FORMAT_VERSION);
	}
	if (head->alike && head->version < FORMAT_MERGED) {
		return err_set(err, WEFT_EINVAL, "alike: not in version %lld",
			       (long long)head->version);
	}
	if ((rc = check_head(head, err)) || (rc = topo_new((int)head->nodes, &l->graph, err))) {
		return rc;
	}
	return head->physical_nodes ? topo_new((int)head->physical_nodes, &l->physical, err) : 0;
}

static int64_t all_nodes(const struct format_load *l)
{
	return l->head.physical_nodes ? l->head.physical_nodes : l->head.nodes;
}

static int add_kind(struct format_load *l, const int64_t *v, struct err *err)
{
	int rc = check("node", v[0], 0, all_nodes(l) - 1, WEFT_EINVAL, err);

	if (rc) {
		return rc;
	}
	if (v[0] < l->head.nodes) {
		topo_set_node(l->graph, (int)v[0], (enum topo_kind)v[1], (unsigned)v[2]);
	}
	if (l->physical) {
		topo_set_node(l->physical, (int)v[0], (enum topo_kind)v[1], (unsigned)v[2]);
	}
	return 0;
}

/* Row numbers are arc numbers, so the rows must stand as the digraph would
 * sort them. */
static int add_arc_to(struct format_load *l, struct topo *graph, const int64_t *v, struct err *err)
{
	if (v[0] < l->last_src) {
		return err_set(err, WEFT_EINVAL,
			       "src: %lld after %lld: arcs are listed by "
			       "ascending source", (long long)v[0],
			       (long long)l->last_src);
	}
	l->last_src = v[0];
	return topo_add_arc(graph, (int)v[0], (int)v[1], v[2], v[3], err);
}

static int add_arc(struct format_load *l, const int64_t *v, struct err *err)
{
	return add_arc_to(l, l->graph, v, err);
}

static int add_physical_arc(struct format_load *l, const int64_t *v, struct err *err)
{
	if (!l->physical) {
		return err_set(err, WEFT_EINVAL, "physical_nodes are missing");
	}
	return add_arc_to(l, l->physical, v, err);
}

static int add_limit(struct format_load *l, const int64_t *v, struct err *err)
{
	(void)err;
	vec_push(&l->limits, v[0]);
	return 0;
}

static int add_limit_arc(struct format_load *l, const int64_t *v, struct err *err)
{
	int64_t last = l->limit_arcs.n ? l->limit_arcs.v[l->limit_arcs.n - 2] : 0;
	int rc = check("limit", v[0], last, (int64_t)l->limits.n - 1, WEFT_EINVAL, err);

	if (rc) {
		return rc;
	}
	vec_push(&l->limit_arcs, (int32_t)v[0]);
	vec_push(&l->limit_arcs, (int32_t)v[1]);
	return 0;
}

static int add_generator(struct format_load *l, const int64_t *v, struct err *err)
{
	(void)err;
	vec_push(&l->orders, (int32_t)v[0]);
	return 0;
}

static int add_image(struct format_load *l, const int64_t *v, struct err *err)
{
	(void)err;
	vec_push(&l->images, (int32_t)v[0]);
	return 0;
}

static int add_route(struct format_load *l, const int64_t *v, struct err *err)
{
	struct coll_path p = { .arc = (int32_t)v[0], .n = (int32_t)v[1], .weight = (int32_t)v[2] };

	(void)err;
	vec_push(&l->routes, p);
	return 0;
}

static int add_hop(struct format_load *l, const int64_t *v, struct err *err)
{
	(void)err;
	vec_push(&l->hops, (int32_t)v[0]);
	return 0;
}

static int add_demand(struct format_load *l, const int64_t *v, struct err *err)
{
	struct format_demand d = { (int32_t)v[0], (int32_t)v[1], (int32_t)v[2] };

	(void)err;
	vec_push(&l->demands, d);
	return 0;
}

static int add_xfer(struct format_load *l, const int64_t *v, struct err *err)
{
	struct coll_xfer x = {
		.step = (int32_t)v[0], .arc = (int32_t)v[1],
		.origin = (int32_t)v[2], .dest = (int32_t)v[3],
		.first = (int32_t)v[4], .last = (int32_t)v[5],
		.op = (uint8_t)v[6], .kept = (uint16_t)v[8],
	};

	if (v[8] && l->head.version < FORMAT_MERGED) {
		return err_set(err, WEFT_EINVAL, "merged sums are not in version %lld",
			       (long long)l->head.version);
	}
	if ((x.op == COLL_OP_FORWARD || v[7]) && l->head.version < FORMAT_FORWARDED) {
		return err_set(err, WEFT_EINVAL, "forwarded sums are not in version %lld",
			       (long long)l->head.version);
	}
	if (x.op == COLL_OP_FORWARD ? v[3] != COLL_NO_DEST : v[7] != 0) {
		return err_set(err, WEFT_EINVAL, "%s is not for operation %d",
			       v[7] ? "sum_of" : "dest", x.op);
	}
	if (x.op == COLL_OP_FORWARD) {
		x.dest = (int32_t)v[7];
	}
	return coll_add(l->sched, &x, err);
}

static int add_light(struct format_load *l, const int64_t *v, struct err *err)
{
	struct coll_light light = {
		.step = (int32_t)v[0], .arc = (int32_t)v[1],
		.channel = (uint16_t)v[2], .dir = (uint8_t)v[3],
		.fibre = (uint8_t)v[4], .loss_mdb = (int32_t)v[5],
	};

	return coll_add_light(l->sched, &light, err);
}

/* ---- what the transfers are over ---- */

static int set_limits(const struct format_load *l, struct err *err)
{
	struct topo *graph = l->physical ? l->physical : l->graph;
	VEC(int32_t) arcs = { 0 };
	size_t k = 0;
	int rc = 0;

	for (size_t i = 0; i < l->limits.n && !rc; i++) {
		arcs.n = 0;
		for (; k < l->limit_arcs.n && l->limit_arcs.v[k] == (int32_t)i; k += 2) {
			vec_push(&arcs, l->limit_arcs.v[k + 1]);
		}
		if (topo_add_limit(graph, arcs.v, (int)arcs.n, l->limits.v[i], err)) {
			rc = err_wrap(err, "limits[%zu]", i);
		}
	}
	vec_fini(&arcs);
	return rc;
}

static int set_group(struct format_load *l, int ranks, struct err *err)
{
	int64_t nodes = all_nodes(l);
	struct topo_group *g;
	int rc;

	if (l->images.n == l->orders.n * (size_t)l->head.nodes) {
		nodes = l->head.nodes;	/* the group keeps the logical digraph only */
	}
	if (l->images.n != l->orders.n * (size_t)nodes) {
		return err_set(err, WEFT_EINVAL, "images: %zu rows: expected one for each of %lld "
			       "nodes under each of %zu generators", l->images.n,
			       (long long)nodes, l->orders.n);
	}
	if (l->orders.n == 0) {
		return 0;
	}
	if ((rc = topo_group_new((int)nodes, ranks, (int)l->orders.n, l->orders.v, l->images.v, &g,
				 err)) || (rc = coll_set_group(l->sched, g, err))) {
		return err_wrap(err, "generators");
	}
	return 0;
}

/* Where several arcs of an orbit have routes, every arc has its own. */
static int choose_routes(const struct format_load *l, struct err *err)
{
	struct coll_sched *s = l->sched;
	int m = topo_m(s->topo), *with = x_new((size_t)coll_orbits(s) + 1, sizeof(*with));
	bool own = false;

	for (size_t i = 0; i < l->routes.n && s->group; i++) {
		int arc = l->routes.v[i].arc, *first;

		if (arc < m) {		/* else refused when it is added */
			first = &with[coll_orbit(s->action, arc)];
			own |= *first != 0 && *first != arc + 1;
			*first = arc + 1;
		}
	}
	free(with);
	return own ? coll_route_each(s, err) : 0;
}

static int set_routes(const struct format_load *l, struct err *err)
{
	int rc = choose_routes(l, err);
	size_t hop = 0;

	if (rc) {
		return rc;
	}
	for (size_t i = 0; i < l->routes.n; i++) {
		const struct coll_path *p = &l->routes.v[i];
		struct coll_arc_route r = { .arc = p->arc, .weight = p->weight, .n = p->n };

		if ((size_t)p->n > l->hops.n - hop) {
			return err_set(err, WEFT_EINVAL, "routes[%zu]: hops: %d are more than "
				       "are left", i, p->n);
		}
		r.hops = l->hops.v + hop;
		if (coll_add_route(l->sched, &r, err)) {
			return err_wrap(err, "routes[%zu]", i);
		}
		hop += (size_t)p->n;
	}
	return hop == l->hops.n ? 0 : err_set(err, WEFT_EINVAL, "hops: %zu rows more than the "
					      "routes have", l->hops.n - hop);
}

static int set_physical(struct format_load *l, struct err *err)
{
	struct topo *physical = l->physical;
	int rc;

	if (!physical) {
		return l->routes.n == 0 ? 0 : err_set(err, WEFT_EINVAL, "routes: physical_nodes "
						      "are missing");
	}
	topo_freeze(physical);
	l->physical = NULL;
	rc = coll_set_physical(l->sched, physical, l->head.routing, (int)l->head.ports, err);
	if (!rc) {
		coll_set_physical_name(l->sched, l->head.physical);
	}
	return rc;
}

/* A row and its images: the demand, which must not be there yet. */
static int spread_demand(const struct coll_sched *s, const struct format_demand *d,
			 int32_t *chunks, struct err *err)
{
	if (d->origin >= s->ranks || d->dest >= s->ranks) {
		return err_set(err, WEFT_EINVAL, "%d to %d: there are %d ranks", d->origin,
			       d->dest, s->ranks);
	}
	for (int by = 0; by < topo_group_order(s->group); by++) {
		int u = topo_group_move(s->group, by, d->origin);
		int32_t *c = &chunks[(size_t)u * s->ranks + topo_group_move(s->group, by, d->dest)];

		if (*c) {
			return err_set(err, WEFT_EINVAL, "%d to %d: given twice", d->origin,
				       d->dest);
		}
		*c = d->chunks;
	}
	return 0;
}

static int set_demands(const struct format_load *l, struct err *err)
{
	size_t n = (size_t)l->sched->ranks;
	int32_t *chunks;
	int rc = 0;

	if (l->demands.n == 0) {
		return 0;
	}
	if (n > COLL_MAX_DEMAND_RANKS) {
		return err_set(err, WEFT_ELIMIT, "demands: for at most %d ranks",
			       COLL_MAX_DEMAND_RANKS);
	}
	chunks = x_new(n * n, sizeof(*chunks));
	for (size_t i = 0; i < l->demands.n && rc == 0; i++) {
		rc = spread_demand(l->sched, &l->demands.v[i], chunks, err);
		if (rc) {
			err_wrap(err, "demands[%zu]", i);
		}
	}
	if (rc == 0) {
		rc = coll_set_demands(l->sched, chunks, err);
	}
	free(chunks);
	return rc;
}

/* An empty schedule of all that was read. */
static int make_schedule(struct format_load *l, struct err *err)
{
	struct topo *graph = l->graph;
	int rc;

	rc = set_limits(l, err);
	if (rc) {
		return rc;
	}
	topo_freeze(graph);
	l->graph = NULL;
	rc = coll_new(l->head.kind, graph, (int)l->head.chunks,
		      (int)l->head.ports, (int)l->head.root, &l->sched, err);
	if (!rc && l->head.topology[0]) {
		coll_set_topo_name(l->sched, l->head.topology);
	}
	if (rc || (rc = set_group(l, l->sched->ranks, err)) ||
	    (l->head.alike && (rc = coll_set_alike(l->sched, err))) || (rc = set_demands(l, err)) ||
	    (rc = set_physical(l, err))) {
		return rc;
	}
	return set_routes(l, err);
}

int format_begin(struct format_load *l, enum format_which which, int64_t rows, struct err *err)
{
	const struct format_table *t = &format_tables[which];

	if (rows > 0 && l->head.version < t->since) {
		return err_set(err, WEFT_EINVAL, "%s: not in version %lld", t->name,
			       (long long)l->head.version);
	}
	l->last_src = 0;
	return which == FORMAT_TRANSFERS ? make_schedule(l, err) : 0;
}

int format_add(struct format_load *l, enum format_which which, int64_t row,
	       const int64_t *values, struct err *err)
{
	static int (*const add[FORMAT_TABLES])(struct format_load *, const int64_t *,
					       struct err *) = {
		[FORMAT_KINDS] = add_kind, [FORMAT_ARCS] = add_arc,
		[FORMAT_PHYSICAL_ARCS] = add_physical_arc, [FORMAT_LIMITS] = add_limit,
		[FORMAT_LIMIT_ARCS] = add_limit_arc, [FORMAT_GENERATORS] = add_generator,
		[FORMAT_IMAGES] = add_image, [FORMAT_ROUTES] = add_route,
		[FORMAT_HOPS] = add_hop, [FORMAT_DEMANDS] = add_demand,
		[FORMAT_TRANSFERS] = add_xfer, [FORMAT_LIGHTS] = add_light,
	};
	const struct format_table *t = &format_tables[which];
	int rc = 0;

	for (int c = 0; c < t->n_columns && !rc; c++) {
		const struct format_column *col = &t->columns[c];

		if (values[c] != col->absent) {
			rc = check(col->name, values[c], col->lo, col->hi, WEFT_EINVAL, err);
		}
	}
	if (rc || add[which](l, values, err)) {
		return err_wrap(err, "%s[%lld]", t->name, (long long)row);
	}
	return 0;
}

int format_finish(struct format_load *l, struct coll_sched **out, struct err *err)
{
	int rc = coll_finish(l->sched, err);

	if (!rc) {
		l->sched->part = (int)l->head.part;
		*out = l->sched;
		l->sched = NULL;
	}
	return rc;
}

void format_abort(struct format_load *l)
{
	topo_free(l->graph);
	topo_free(l->physical);
	coll_free(l->sched);
	vec_fini(&l->limits);
	vec_fini(&l->limit_arcs);
	vec_fini(&l->orders);
	vec_fini(&l->images);
	vec_fini(&l->routes);
	vec_fini(&l->hops);
	vec_fini(&l->demands);
	l->graph = l->physical = NULL;
	l->sched = NULL;
}
