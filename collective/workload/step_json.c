/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A step and its plan as JSON, out and in. Schedules have files of their own, and digraphs too:
 * lights are here as splits of ports.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "collective/workload/private.h"
#include "lib/base/alloc.h"
#include "lib/conf/conf.h"
#include "lib/output/writer.h"

/* ---- out ---- */

static void put_axes(struct out *o, const char *key, const struct workload *w, uint32_t axes)
{
	out_array(o, key);
	for (size_t i = 0; i < w->axes.n; i++) {
		if (axes >> i & 1) {
			out_str(o, NULL, w->axes.v[i].name);
		}
	}
	out_end(o);
}

static void put_ops(struct out *o, const struct workload *w, const struct workload_bound *b)
{
	out_array(o, "collectives");
	for (size_t i = 0; i < w->ops.n; i++) {
		const struct workload_op *op = &w->ops.v[i];

		out_object(o, NULL);
		out_str(o, "name", op->name);
		out_str(o, "collective", op->shift ? "send" : coll_kind_name(op->kind));
		put_axes(o, "over", w, op->axes);
		out_int(o, "shift", op->shift);
		out_int(o, "size_bytes", op->bytes);
		if (op->min_bytes < op->bytes) {
			out_int(o, "min_bytes", op->min_bytes);
		}
		out_real(o, "y", b->weights.v[i].y);
		out_end(o);
	}
	out_end(o);
}

/* From 1; 0: of no light. */
static int light_of_unit(const struct workload_plan *plan, size_t unit)
{
	for (size_t l = 0; l < plan->lights.n; l++) {
		if (plan->lights.v[l].units >> unit & 1) {
			return (int)l + 1;
		}
	}
	return 0;
}

static void put_units(struct out *o, const struct workload *w, const struct workload_plan *plan)
{
	out_array(o, "units");
	for (size_t u = 0; u < w->units.n; u++) {
		out_object(o, NULL);
		out_array(o, "collectives");
		for (size_t i = 0; i < w->ops.n; i++) {
			if (w->units.v[u].ops >> i & 1) {
				out_str(o, NULL, w->ops.v[i].name);
			}
		}
		out_end(o);
		out_int(o, "light", light_of_unit(plan, u));
		out_int(o, "calls", w->units.v[u].calls);
		out_array(o, "next");
		for (size_t k = 0; k < w->units.n; k++) {
			out_int(o, NULL, w->next[u * w->units.n + k]);
		}
		out_end(o);
		out_end(o);
	}
	out_end(o);
}

static void put_light(struct out *o, const struct workload *w, const struct workload_light *l)
{
	out_object(o, NULL);
	out_array(o, "shares");
	for (size_t i = 0; i < l->shares.n; i++) {
		const struct workload_share *s = &l->shares.v[i];

		out_object(o, NULL);
		put_axes(o, "over", w, s->axes);
		out_int(o, "shift", s->shift);
		out_bool(o, "paired", s->paired);
		out_int(o, "ports", s->ports);
		if (s->expr) {
			out_str(o, "topology", s->expr);
		}
		out_end(o);
	}
	out_end(o);
	if (l->gaps.n) {
		out_array(o, "gaps");
		for (size_t i = 0; i < l->gaps.n; i++) {
			out_object(o, NULL);
			out_int(o, "from", l->gaps.v[i].from);
			out_int(o, "to", l->gaps.v[i].to);
			out_end(o);
		}
		out_end(o);
	}
	out_end(o);
}

static void put_uses(struct out *o, const struct workload *w, const struct workload_plan *plan)
{
	out_array(o, "uses");
	for (size_t i = 0; i < plan->uses.n; i++) {
		const struct workload_use *u = &plan->uses.v[i];

		out_object(o, NULL);
		out_str(o, "name", w->ops.v[u->op].name);
		out_int(o, "light", u->light + 1);
		if (w->ops.v[u->op].min_bytes < w->ops.v[u->op].bytes) {
			out_int(o, "min_bytes", u->min_bytes);
			out_int(o, "max_bytes", u->max_bytes);
		}
		out_real(o, "time_ns", u->time_ns);
		out_real(o, "bound_ns", u->bound_ns);
		out_end(o);
	}
	out_end(o);
}

void workload_to_json(const struct workload *w, const struct workload_plan *plan, struct buf *out)
{
	const struct workload_params *p = &plan->params;
	struct out *o = out_new(OUT_JSON);

	out_int(o, "ports", p->ports);
	out_int(o, "link_bps", p->link_bps);
	out_int(o, "alpha_ns", p->alpha_ns);
	out_bool(o, "both", p->both);
	out_array(o, "mesh");
	for (size_t i = 0; i < w->axes.n; i++) {
		out_object(o, NULL);
		out_str(o, "name", w->axes.v[i].name);
		out_int(o, "size", w->axes.v[i].size);
		out_end(o);
	}
	out_end(o);
	if (w->server) {
		out_object(o, "server");
		out_str(o, "inside", w->server_expr);
		out_array(o, "ports_at");
		for (int r = 0; r < topo_ranks(w->server); r++) {
			out_int(o, NULL, w->port_at[r]);
		}
		out_end(o);
		out_end(o);
	}
	put_ops(o, w, &plan->bound);
	put_units(o, w, plan);
	out_array(o, "lights");
	for (size_t i = 0; i < plan->lights.n; i++) {
		put_light(o, w, &plan->lights.v[i]);
	}
	out_end(o);
	put_uses(o, w, plan);
	out_int(o, "changes", plan->changes);
	out_int(o, "change_ns", plan->change_ns);
	out_int(o, "time_ns", plan->time_ns);
	out_int(o, "still_ns", plan->still_ns);
	out_bool(o, "exhaustive", plan->exhaustive);
	out_int(o, "bound_still_ns", plan->bound.still_ns);
	out_int(o, "bound_changes_ns", plan->bound.classes_ns);
	out_int(o, "bound_any_ns", plan->bound.any_ns);
	out_render(o, out);
	out_free(o);
}

/* ---- in ---- */

/* As a fabric's servers have at most. */
#define MAX_SERVER_NODES 1024
#define MAX_SERVER_ARCS 65536
#define MAX_SERVER_RANKS 1024

/* Of ports. */
#define COUNT(name) { name, CONF_INT, .required = true, .min = 1, .max = 1024 }
#define INT(name, least) { name, CONF_INT, .required = true, .min = least, .max = INT64_MAX }
#define SMALL(name, least) { name, CONF_INT, .required = true, .min = least, .max = 1 << 20 }
#define SIZE(name) { name, CONF_INT, .min = 1, .max = INT64_MAX }
#define TEXT(name) { name, CONF_TEXT, .required = true }
#define NODE(name) { name, CONF_ANY, .required = true }
#define FLAG(name) { name, CONF_BOOL, .required = true }
#define SECTION(object, keys) \
	{ object, keys, (int)(sizeof(keys) / sizeof(*(keys))) }
#define LIST(name, of) { name, CONF_ENTRIES, .required = true, .section = of }

enum { AXIS_NAME, AXIS_SIZE, AXIS_KEYS };
static const struct conf_key axis_keys[] = {
	[AXIS_NAME] = { "name", CONF_NAME, .required = true }, [AXIS_SIZE] = SMALL("size", 1),
};
static const struct conf_section axis_section = SECTION("axis", axis_keys);

enum { SERVER_INSIDE, SERVER_PORTS, SERVER_KEYS };
static const struct conf_key server_keys[] = {
	[SERVER_INSIDE] = TEXT("inside"), [SERVER_PORTS] = NODE("ports_at"),
};
static const struct conf_section server_section = SECTION("server", server_keys);

enum { OP_NAME, OP_KIND, OP_OVER, OP_SHIFT, OP_BYTES, OP_MIN, OP_Y, OP_KEYS };
static const struct conf_key op_keys[] = {
	[OP_NAME] = { "name", CONF_NAME, .required = true }, [OP_KIND] = TEXT("collective"),
	[OP_OVER] = NODE("over"), [OP_SHIFT] = SMALL("shift", -(1 << 20)),
	[OP_BYTES] = INT("size_bytes", 1), [OP_MIN] = SIZE("min_bytes"), [OP_Y] = TEXT("y"),
};
static const struct conf_section op_section = SECTION("collective", op_keys);

enum { UNIT_OPS, UNIT_LIGHT, UNIT_CALLS, UNIT_NEXT, UNIT_KEYS };
static const struct conf_key unit_keys[] = {
	[UNIT_OPS] = NODE("collectives"), [UNIT_LIGHT] = SMALL("light", 1),
	[UNIT_CALLS] = { "calls", CONF_INT, .required = true, .min = 1, .max = WORKLOAD_MAX_CALLS },
	[UNIT_NEXT] = NODE("next"),
};
static const struct conf_section unit_section = SECTION("unit", unit_keys);

enum { SHARE_OVER, SHARE_SHIFT, SHARE_PAIRED, SHARE_PORTS, SHARE_EXPR, SHARE_KEYS };
static const struct conf_key share_keys[] = {
	[SHARE_OVER] = NODE("over"), [SHARE_SHIFT] = SMALL("shift", -(1 << 20)),
	[SHARE_PAIRED] = FLAG("paired"), [SHARE_PORTS] = COUNT("ports"),
	[SHARE_EXPR] = { "topology", CONF_TEXT, .required = false },
};
static const struct conf_section share_section = SECTION("share", share_keys);

enum { GAP_FROM, GAP_TO };
static const struct conf_key gap_keys[] = {
	[GAP_FROM] = SMALL("from", 0), [GAP_TO] = SMALL("to", 0),
};
static const struct conf_section gap_section = SECTION("gap", gap_keys);

enum { LIGHT_SHARES, LIGHT_GAPS };
static const struct conf_key light_keys[] = {
	[LIGHT_SHARES] = LIST("shares", &share_section),
	[LIGHT_GAPS] = { "gaps", CONF_ENTRIES, .section = &gap_section },
};
static const struct conf_section light_section = SECTION("light", light_keys);

enum { USE_NAME, USE_LIGHT, USE_MIN, USE_MAX, USE_TIME, USE_BOUND, USE_KEYS };
static const struct conf_key use_keys[] = {
	[USE_NAME] = TEXT("name"), [USE_LIGHT] = SMALL("light", 1), [USE_MIN] = SIZE("min_bytes"),
	[USE_MAX] = SIZE("max_bytes"), [USE_TIME] = TEXT("time_ns"),
	[USE_BOUND] = TEXT("bound_ns"),
};
static const struct conf_section use_section = SECTION("use", use_keys);

enum { PORTS, RATE, ALPHA, BOTH, MESH, SERVER, OPS, UNITS, LIGHTS, USES, CHANGES, CHANGE, TIME,
       STILL, EXHAUSTIVE, BOUND_STILL, BOUND_CHANGES, BOUND_ANY, STEP_KEYS };
static const struct conf_key step_keys[] = {
	[PORTS] = COUNT("ports"), [RATE] = INT("link_bps", 1), [ALPHA] = INT("alpha_ns", 0),
	[BOTH] = FLAG("both"), [MESH] = LIST("mesh", &axis_section),
	[SERVER] = { "server", CONF_MAP, .section = &server_section },
	[OPS] = LIST("collectives", &op_section), [UNITS] = LIST("units", &unit_section),
	[LIGHTS] = LIST("lights", &light_section), [USES] = LIST("uses", &use_section),
	[CHANGES] = INT("changes", 0), [CHANGE] = INT("change_ns", 0), [TIME] = INT("time_ns", 1),
	[STILL] = INT("still_ns", -1), [EXHAUSTIVE] = FLAG("exhaustive"),
	[BOUND_STILL] = INT("bound_still_ns", 0), [BOUND_CHANGES] = INT("bound_changes_ns", 0),
	[BOUND_ANY] = INT("bound_any_ns", 0),
};
static const struct conf_section step_section = SECTION("step", step_keys);

struct json_reader {
	struct conf_reader *r;
	struct workload *w;
	struct workload_plan *plan;
	size_t n_rows, n_lights;	/* so many were read */
};

static void refuse(struct json_reader *j, struct conf_place at, const char *what)
{
	conf_error(j->r, at, WEFT_EINVAL, "step: %s", what);
}

/* Told by a function of this room. */
static void pass_on(struct json_reader *j, const struct conf_node *node, struct err *err)
{
	conf_error(j->r, node->at, (enum weft_err)err->code, "step: %s", err->msg);
}

static double real_of(struct json_reader *j, const struct conf_value *v)
{
	char *end;
	double x = strtod(v->text, &end);

	if (!isfinite(x) || x < 0 || *end || end == v->text) {
		refuse(j, v->node->at, "a number from 0 on stands here");
		return 0;
	}
	return x;
}

/* A list of names as bits; find: which it is, or -1. */
static uint32_t bits_of(struct json_reader *j, const struct conf_value *v,
			int (*find)(const struct workload *w, const char *name))
{
	uint32_t bits = 0;

	for (const struct conf_node *n = v->node->first; n; n = n->next) {
		int i = v->node->kind == CONF_NODE_LIST ? find(j->w, n->text) : -1;

		if (i < 0) {
			refuse(j, n->at, "there is nothing of this name");
			return 0;
		}
		bits |= UINT32_C(1) << i;
	}
	return bits;
}

/* The values of an entry; false: it is refused, and that is reported. */
static bool read_entry(struct json_reader *j, const struct conf_section *s,
		       const struct conf_node *node, struct conf_value *v)
{
	bool ok = conf_read_section(j->r, s, s->object, node, v);

	for (int i = 0; i < s->n_keys; i++) {
		ok = ok && (!v[i].node || v[i].ok);
	}
	return ok;
}

static void add_axis(struct json_reader *j, const struct conf_node *node,
		     const struct conf_value *v)
{
	struct err err = { 0 };

	if (workload_add_axis(j->w, v[AXIS_NAME].text, (int)v[AXIS_SIZE].num, &err)) {
		pass_on(j, node, &err);
	}
}

/* Of so many ranks as there are nodes with their ports. */
static void read_server(struct json_reader *j, const struct conf_node *node)
{
	static const struct conf_key at = { "ports_at", CONF_INT, .max = 1 << 20 };
	struct conf_value v[CONF_MAX_KEYS], port;
	int port_at[MAX_SERVER_RANKS], n = 0;
	int64_t nodes, arcs;
	struct topo *t;
	struct err err = { 0 };

	if (!read_entry(j, &server_section, node, v)) {
		return;
	}
	for (const struct conf_node *c = v[SERVER_PORTS].node->first; c && n < MAX_SERVER_RANKS;
	     c = c->next) {
		if (conf_read_value(j->r, "step", &at, c, &port)) {
			port_at[n++] = (int)port.num;
		}
	}
	if (topo_parse_size(v[SERVER_INSIDE].text, &nodes, &arcs, &err) ||
	    (nodes > MAX_SERVER_NODES || arcs > MAX_SERVER_ARCS
	     ? err_set(&err, WEFT_ELIMIT, "a server of too many nodes")
	     : topo_parse(v[SERVER_INSIDE].text, &t, NULL, &err))) {
		pass_on(j, v[SERVER_INSIDE].node, &err);
		return;
	}
	for (int i = 0; i < n; i++) {
		nodes = port_at[i] < topo_n(t) ? nodes : -1;
	}
	if (n != topo_ranks(t) || v[SERVER_PORTS].node->n != n || nodes < 0) {
		refuse(j, v[SERVER_PORTS].node->at, "a node for each rank of a server stands here");
	} else if (workload_set_server(j->w, v[SERVER_INSIDE].text, port_at, &err)) {
		pass_on(j, node, &err);
	}
	topo_free(t);
}

static void add_op(struct json_reader *j, const struct conf_node *node, const struct conf_value *v)
{
	struct workload_op op = { .name = (char *)v[OP_NAME].text, .shift = (int)v[OP_SHIFT].num,
				  .bytes = v[OP_BYTES].num,
				  .min_bytes = v[OP_MIN].node ? v[OP_MIN].num : 0,
				  .axes = bits_of(j, &v[OP_OVER], workload_find_axis) };
	double y = real_of(j, &v[OP_Y]);
	struct err err = { 0 };

	if ((!op.shift && coll_kind_parse(v[OP_KIND].text, &op.kind, &err)) ||
	    workload_add_op(j->w, &op, &err)) {
		pass_on(j, node, &err);
		return;
	}
	vec_push(&j->plan->bound.weights, (struct workload_weight){ y });
}

static void add_unit(struct json_reader *j, const struct conf_node *node,
		     const struct conf_value *v)
{
	struct workload_unit u = { bits_of(j, &v[UNIT_OPS], workload_find_op), v[UNIT_CALLS].num };
	size_t light = (size_t)v[UNIT_LIGHT].num;

	if (!u.ops || j->w->units.n == WORKLOAD_MAX_OPS) {
		refuse(j, node->at, u.ops ? "more units than can be" : "a unit of nothing");
		return;
	}
	while (j->plan->lights.n < light && light <= WORKLOAD_MAX_OPS) {
		vec_push(&j->plan->lights, (struct workload_light){ 0 });
	}
	if (light > WORKLOAD_MAX_OPS) {
		refuse(j, v[UNIT_LIGHT].node->at, "there is no such light");
		return;
	}
	j->plan->lights.v[light - 1].units |= UINT32_C(1) << j->w->units.n;
	vec_push(&j->w->units, u);
}

/* The next row of the table, once all units are known. */
static void add_next(struct json_reader *j, const struct conf_node *entry,
		     const struct conf_value *unit)
{
	static const struct conf_key count = { "next", CONF_INT, .max = WORKLOAD_MAX_CALLS };
	const struct conf_node *node = unit[UNIT_NEXT].node;
	size_t n = j->w->units.n, k = 0, row = j->n_rows++;

	(void)entry;
	for (const struct conf_node *c = node->first; c && k < n; c = c->next, k++) {
		struct conf_value v;

		if (conf_read_value(j->r, "step", &count, c, &v)) {
			j->w->next[row * n + k] = v.num;
		}
	}
	if (node->kind != CONF_NODE_LIST || (size_t)node->n != n) {
		refuse(j, node->at, "one number a unit stands here");
	}
}

static void add_share(struct json_reader *j, struct workload_light *l, const struct conf_value *v)
{
	struct workload_share s = { .axes = bits_of(j, &v[SHARE_OVER], workload_find_axis),
				    .shift = (int)v[SHARE_SHIFT].num,
				    .paired = v[SHARE_PAIRED].num,
				    .ports = (int)v[SHARE_PORTS].num };

	if (!s.axes || (s.shift != 0) == (v[SHARE_EXPR].node != NULL)) {
		refuse(j, v[SHARE_OVER].node->at, "a share has axes, and a shift or a "
		       "topology");
		return;
	}
	s.expr = s.shift ? NULL : x_dup(v[SHARE_EXPR].text);
	vec_push(&l->shares, s);
}

static void add_gap(struct json_reader *j, struct workload_light *l, const struct conf_value *v)
{
	int n = workload_ranks(j->w, WORKLOAD_ALL_AXES);

	if (v[GAP_FROM].num >= n || v[GAP_TO].num >= n) {
		refuse(j, v[GAP_FROM].node->at, "there is no such rank");
		return;
	}
	vec_push(&l->gaps, (struct workload_gap){ (int)v[GAP_FROM].num, (int)v[GAP_TO].num });
}

static void add_use(struct json_reader *j, const struct conf_node *node,
		    const struct conf_value *v)
{
	struct workload_use u = { .op = workload_find_op(j->w, v[USE_NAME].text),
				  .light = (int)v[USE_LIGHT].num - 1,
				  .time_ns = real_of(j, &v[USE_TIME]),
				  .bound_ns = real_of(j, &v[USE_BOUND]) };

	if (u.op < 0 || (size_t)u.light >= j->plan->lights.n) {
		refuse(j, node->at, "a use of a collective or a light that there is not");
		return;
	}
	u.min_bytes = v[USE_MIN].node ? v[USE_MIN].num : j->w->ops.v[u.op].min_bytes;
	u.max_bytes = v[USE_MAX].node ? v[USE_MAX].num : j->w->ops.v[u.op].bytes;
	vec_push(&j->plan->uses, u);
}

/* All entries of a list, those that are refused left out. */
static void read_all(struct json_reader *j, const struct conf_value *list,
		     const struct conf_section *s,
		     void (*add)(struct json_reader *j, const struct conf_node *node,
				 const struct conf_value *v))
{
	struct conf_value v[CONF_MAX_KEYS];

	for (const struct conf_node *n = list->node->first; n; n = n->next) {
		if (read_entry(j, s, n, v)) {
			add(j, n, v);
		}
	}
}

/* Of the light of this number; others are of the same list. */
static void add_light(struct json_reader *j, const struct conf_node *node,
		      const struct conf_value *v)
{
	struct conf_value entry[CONF_MAX_KEYS];

	if (j->n_lights == j->plan->lights.n) {
		refuse(j, node->at, "a light without a unit");
		return;
	}
	for (const struct conf_node *s = v[LIGHT_SHARES].node->first; s; s = s->next) {
		if (read_entry(j, &share_section, s, entry)) {
			add_share(j, &j->plan->lights.v[j->n_lights], entry);
		}
	}
	for (const struct conf_node *g = v[LIGHT_GAPS].node ? v[LIGHT_GAPS].node->first : NULL; g;
	     g = g->next) {
		if (read_entry(j, &gap_section, g, entry)) {
			add_gap(j, &j->plan->lights.v[j->n_lights], entry);
		}
	}
	j->n_lights++;
}

/* The lists in the order in which they need each other. */
static void read_lists(struct json_reader *j, const struct conf_value *top)
{
	read_all(j, &top[MESH], &axis_section, add_axis);
	if (top[SERVER].node && !j->r->n_errors) {
		read_server(j, top[SERVER].node);
	}
	read_all(j, &top[OPS], &op_section, add_op);
	read_all(j, &top[UNITS], &unit_section, add_unit);
	j->w->next = x_new(j->w->units.n * j->w->units.n + 1, sizeof(*j->w->next));
	if (!j->r->n_errors) {
		read_all(j, &top[UNITS], &unit_section, add_next);
	}
	read_all(j, &top[LIGHTS], &light_section, add_light);
	if (j->n_lights < j->plan->lights.n) {
		refuse(j, top[LIGHTS].node->at, "a unit has a light that is not here");
	}
	read_all(j, &top[USES], &use_section, add_use);
}

static void read_step(struct json_reader *j, const struct conf_node *root)
{
	struct workload_plan *plan = j->plan;
	struct conf_value v[CONF_MAX_KEYS];

	if (!read_entry(j, &step_section, root, v)) {
		return;
	}
	plan->params = (struct workload_params){ .ports = (int)v[PORTS].num,
						 .link_bps = v[RATE].num, .alpha_ns = v[ALPHA].num,
						 .change_ns = v[CHANGE].num, .max_changes = -1,
						 .both = v[BOTH].num };
	plan->changes = v[CHANGES].num;
	plan->change_ns = v[CHANGE].num;
	plan->time_ns = v[TIME].num;
	plan->still_ns = v[STILL].num;
	plan->exhaustive = v[EXHAUSTIVE].num;
	plan->bound.still_ns = v[BOUND_STILL].num;
	plan->bound.classes_ns = v[BOUND_CHANGES].num;
	plan->bound.any_ns = v[BOUND_ANY].num;
	read_lists(j, v);
}

int workload_from_json(const char *name, const char *text, size_t len, struct workload **w,
		       struct workload_plan **plan, struct err_list *errs)
{
	const struct conf_node *root;
	struct conf_reader r;
	struct json_reader j = { .r = &r, .plan = x_new(1, sizeof(*j.plan)) };
	int code;

	workload_new(&j.w);
	conf_reader_init(&r, name, "step", NULL, errs);
	root = conf_read_yaml(&r, text, len);
	if (root) {
		read_step(&j, root);
	}
	code = r.n_errors == 0 ? 0 : errs->n > 0 ? errs->v[0].code : r.unkept.code;
	conf_reader_fini(&r);
	if (code) {
		err_list_sort(errs);
		workload_free(j.w);
		workload_plan_free(j.plan);
		return code;
	}
	*w = j.w;
	*plan = j.plan;
	return 0;
}
