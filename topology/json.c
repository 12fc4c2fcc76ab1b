/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Topology files: JSON that programs write; see topo_from_json() in topology.h.
 *
 * The reader knows every key: one that it would pass over could change the
 * meaning, as a list of switches does. The writer leaves out what is as usual,
 * so that the file of a plain digraph has nodes and arcs only.
 */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/output/writer.h"
#include "topology/private.h"

/* ---- writing ---- */

/* {"kind": "switch", "nodes": [8, 9], "can": ["copy"]} */
static void write_nodes(struct buf *b, const struct topo *t, struct topo_node like, bool *first)
{
	const char *comma = "";

	buf_printf(b, "%s\n  {\"kind\": \"%s\", \"nodes\": [", *first ? ", \"kinds\": [" : ",",
		   topo_kind_name((enum topo_kind)like.kind));
	*first = false;
	for (int u = 0; u < t->n; u++) {
		if (t->nodes[u].kind == like.kind && t->nodes[u].flags == like.flags) {
			buf_printf(b, "%s%d", comma, u);
			comma = ", ";
		}
	}
	buf_char(b, ']');
	if (like.flags != topo_usual_flags((enum topo_kind)like.kind)) {
		comma = "";
		buf_str(b, ", \"can\": [");
		for (int i = 0; i < TOPO_ABILITIES; i++) {
			if (like.flags & 1U << i) {
				buf_printf(b, "%s\"%s\"", comma, topo_ability_name(i));
				comma = ", ";
			}
		}
		buf_char(b, ']');
	}
	buf_char(b, '}');
}

/* Nodes that are alike together, in the order of their first. */
static void write_kinds(struct buf *b, const struct topo *t)
{
	bool seen[TOPO_KINDS][1 << TOPO_ABILITIES] = { { false } }, first = true;

	seen[TOPO_TERMINAL][topo_usual_flags(TOPO_TERMINAL)] = true;
	for (int u = 0; u < t->n; u++) {
		bool *done = &seen[t->nodes[u].kind][t->nodes[u].flags];

		if (!*done) {
			*done = true;
			write_nodes(b, t, t->nodes[u], &first);
		}
	}
	buf_str(b, first ? "" : "\n]");
}

/* {"capacity": 50, "arcs": [0, 3]} */
static void write_limits(struct buf *b, const struct topo *t)
{
	for (int i = 0; i < topo_n_limits(t); i++) {
		const struct topo_limit *l = topo_limit(t, i);

		buf_printf(b, "%s\n  {\"capacity\": %lld, \"arcs\": [",
			   i ? "," : ", \"limits\": [", (long long)l->cap);
		for (int k = 0; k < l->n; k++) {
			buf_printf(b, "%s%d", k ? ", " : "", l->arcs[k]);
		}
		buf_str(b, "]}");
	}
	buf_str(b, topo_n_limits(t) > 0 ? "\n]" : "");
}

void topo_to_json(const struct topo *t, const char *name, struct buf *b)
{
	buf_str(b, "{\"topology\": ");
	out_json_quote(b, name);
	buf_printf(b, ", \"nodes\": %d", topo_n(t));
	write_kinds(b, t);
	buf_str(b, ", \"arcs\": [");
	for (int i = 0; i < topo_m(t); i++) {
		const struct topo_arc *a = topo_arc(t, i);

		buf_printf(b, "%s\n  [%d, %d, %lld, %lld", i ? "," : "", a->src, a->dst,
			   (long long)a->cap, (long long)a->latency_ns);
		if (a->cost != 1) {
			buf_printf(b, ", %lld", (long long)a->cost);
		}
		buf_char(b, ']');
	}
	buf_str(b, "\n]");
	write_limits(b, t);
	buf_str(b, "}\n");
}

/* ---- reading ---- */

static int wrong(struct err *err, const char *where, size_t i, const char *expected)
{
	return err_set(err, WEFT_EINVAL, "%s %zu: %s expected", where, i, expected);
}

int topo_json_keys(json_t *object, const char *const *known, struct err *err)
{
	const char *key;
	json_t *value;

	if (!json_is_object(object)) {
		return err_set(err, WEFT_EINVAL, "expected an object");
	}
	json_object_foreach(object, key, value) {
		struct nearest near;
		int i = 0;

		nearest_init(&near, key);
		while (known[i] && strcmp(known[i], key) != 0) {
			nearest_try(&near, known[i++]);
		}
		if (!known[i]) {
			err_set(err, WEFT_EINVAL, "unknown key '%s'", key);
			if (err) {
				nearest_hint(&near, err);
			}
			return WEFT_EINVAL;
		}
	}
	return 0;
}

/* One arc: [source, destination, capacity, latency in ns, cost], the last three
 * optional. */
static int add_arc(struct topo *t, json_t *row, size_t i, struct err *err)
{
	static const char *const fields[] = { "source", "destination",
					      "capacity", "latency", "cost" };
	json_int_t v[5] = { 0, 0, 1, 0, 1 };
	struct topo_arc like;
	size_t n = json_array_size(row);

	if (!json_is_array(row) || n < 2 || n > 5) {
		return wrong(err, "arc", i, "[source, destination, capacity, latency_ns, cost]");
	}
	for (size_t k = 0; k < n; k++) {
		json_t *x = json_array_get(row, k);

		v[k] = json_integer_value(x);
		if (!json_is_integer(x)) {
			return err_set(err, WEFT_EINVAL, "arc %zu: the %s is "
				       "no whole number", i, fields[k]);
		}
		if (k < 2 && (v[k] < 0 || v[k] >= topo_n(t))) {
			return err_set(err, WEFT_EINVAL, "arc %zu: the %s %lld "
				       "is none of the nodes 0 to %d", i,
				       fields[k], (long long)v[k],
				       topo_n(t) - 1);
		}
		if (v[k] < 0) {
			return err_set(err, WEFT_EINVAL, "arc %zu: the %s %lld "
				       "is negative", i, fields[k],
				       (long long)v[k]);
		}
	}
	like = (struct topo_arc){ .cap = v[2], .latency_ns = v[3], .cost = v[4] };
	return topo_add_arc_like(t, (int)v[0], (int)v[1], &like, err);
}

/* The flags of "can", or the usual ones without it. */
static int read_can(json_t *can, enum topo_kind kind, size_t i, unsigned *flags, struct err *err)
{
	*flags = can ? 0 : topo_usual_flags(kind);
	if (can && !json_is_array(can)) {
		return wrong(err, "kind", i, "\"can\", a list,");
	}
	for (size_t k = 0; k < json_array_size(can); k++) {
		const char *name = json_string_value(json_array_get(can, k));
		unsigned flag = name ? topo_find_ability(name) : 0;

		if (flag == 0) {
			return wrong(err, "kind", i, "in \"can\": \"copy\", \"reduce\" or "
				     "\"store\"");
		}
		*flags |= flag;
	}
	return 0;
}

/* {"kind": K, "nodes": [...], "can": [...]}, the last optional. has_kind: of the
 * nodes that were named before. */
static int set_kind(struct topo *t, json_t *row, size_t i, bool *has_kind, struct err *err)
{
	static const char *const keys[] = { "kind", "nodes", "can", NULL };
	const char *name = json_string_value(json_object_get(row, "kind"));
	json_t *nodes = json_object_get(row, "nodes");
	int rc, kind = name ? topo_find_kind(name) : -1;
	unsigned flags;

	if (kind < 0 || !json_is_array(nodes)) {
		return wrong(err, "kind", i, "\"kind\": \"terminal\", \"memory\" or \"switch\", "
			     "and \"nodes\", a list,");
	}
	if ((rc = topo_json_keys(row, keys, err))) {
		return err_wrap(err, "kind %zu", i);
	}
	rc = read_can(json_object_get(row, "can"), (enum topo_kind)kind, i, &flags, err);
	for (size_t k = 0; !rc && k < json_array_size(nodes); k++) {
		json_t *x = json_array_get(nodes, k);
		json_int_t u = json_integer_value(x);

		if (!json_is_integer(x) || u < 0 || u >= topo_n(t)) {
			return err_set(err, WEFT_EINVAL, "kind %zu: its node %zu is none of the "
				       "nodes 0 to %d", i, k, topo_n(t) - 1);
		}
		if (has_kind[u]) {
			return err_set(err, WEFT_EINVAL, "kind %zu: node %lld has its kind already",
				       i, (long long)u);
		}
		has_kind[u] = true;
		topo_set_node(t, (int)u, (enum topo_kind)kind, flags);
	}
	return rc;
}

/* {"capacity": C, "arcs": [...]}; room for the arcs of the digraph in arcs. */
static int add_limit(struct topo *t, json_t *row, size_t i, int32_t *arcs, struct err *err)
{
	static const char *const keys[] = { "capacity", "arcs", NULL };
	json_t *cap = json_object_get(row, "capacity"), *list = json_object_get(row, "arcs");
	size_t n = json_array_size(list), m = (size_t)topo_m(t);
	int rc;

	if (!json_is_integer(cap) || !json_is_array(list)) {
		return wrong(err, "limit", i, "\"capacity\", a whole number, and \"arcs\", a "
			     "list,");
	}
	if (n > m) {
		return err_set(err, WEFT_EINVAL, "limit %zu: %zu arcs of %zu", i, n, m);
	}
	for (size_t k = 0; k < n; k++) {
		json_t *x = json_array_get(list, k);

		if (!json_is_integer(x) || json_integer_value(x) < 0 ||
		    json_integer_value(x) >= (json_int_t)m) {
			return err_set(err, WEFT_EINVAL, "limit %zu: its arc %zu is none of the "
				       "arcs 0 to %d", i, k, (int)m - 1);
		}
		arcs[k] = (int32_t)json_integer_value(x);
	}
	if ((rc = topo_json_keys(row, keys, err)) ||
	    (rc = topo_add_limit(t, arcs, (int)n, json_integer_value(cap), err))) {
		err_wrap(err, "limit %zu", i);
	}
	return rc;
}

static int read_kinds(struct topo *t, json_t *rows, struct err *err)
{
	bool *has_kind;
	int rc = 0;

	if (rows && !json_is_array(rows)) {
		return err_set(err, WEFT_EINVAL, "\"kinds\": a list expected");
	}
	has_kind = x_new((size_t)topo_n(t), sizeof(*has_kind));
	for (size_t i = 0; !rc && i < json_array_size(rows); i++) {
		rc = set_kind(t, json_array_get(rows, i), i, has_kind, err);
	}
	free(has_kind);
	return rc;
}

static int read_limits(struct topo *t, json_t *rows, struct err *err)
{
	int32_t *arcs;
	int rc = 0;

	if (rows && !json_is_array(rows)) {
		return err_set(err, WEFT_EINVAL, "\"limits\": a list expected");
	}
	arcs = x_alloc((size_t)topo_m(t) + 1, sizeof(*arcs));
	for (size_t i = 0; !rc && i < json_array_size(rows); i++) {
		rc = add_limit(t, json_array_get(rows, i), i, arcs, err);
	}
	free(arcs);
	return rc;
}

/* Of a digraph that has its nodes. */
static int read_parts(struct topo *t, json_t *root, struct err *err)
{
	json_t *arcs = json_object_get(root, "arcs");
	int rc = read_kinds(t, json_object_get(root, "kinds"), err);

	for (size_t i = 0; !rc && i < json_array_size(arcs); i++) {
		rc = add_arc(t, json_array_get(arcs, i), i, err);
	}
	if (rc || (rc = read_limits(t, json_object_get(root, "limits"), err))) {
		return rc;
	}
	topo_freeze(t);
	return topo_check_order(t, err);
}

/* *nodes, once the keys and their types are right. */
static int check_root(json_t *root, int *nodes, struct err *err)
{
	static const char *const keys[] = {
		"topology", "nodes", "kinds", "arcs", "limits", NULL,
	};
	json_t *said = json_object_get(root, "topology");
	json_int_t n = json_integer_value(json_object_get(root, "nodes"));

	if (!json_is_integer(json_object_get(root, "nodes")) ||
	    !json_is_array(json_object_get(root, "arcs"))) {
		return err_set(err, WEFT_EINVAL,
			       "not a topology: \"nodes\", a whole number, and "
			       "\"arcs\", a list, expected");
	}
	if (said && !json_is_string(said)) {
		return err_set(err, WEFT_EINVAL, "\"topology\": text expected");
	}
	if (n < 1 || n > TOPO_MAX_NODES) {
		return err_set(err, WEFT_EINVAL, "nodes: %lld is not in 1 to "
			       "%d", (long long)n, TOPO_MAX_NODES);
	}
	*nodes = (int)n;
	return topo_json_keys(root, keys, err);
}

static int from_root(json_t *root, struct topo **out, char **name, struct err *err)
{
	const char *said = json_string_value(json_object_get(root, "topology"));
	struct topo *t = NULL;
	int n = 0, rc = check_root(root, &n, err);

	if (rc || (rc = topo_new(n, &t, err)) || (rc = read_parts(t, root, err))) {
		topo_free(t);
		return rc;
	}
	*name = x_dup(said ? said : "");
	*out = t;
	return 0;
}

int topo_from_json(const char *text, size_t len, struct topo **out, char **name, struct err *err)
{
	json_error_t je;
	json_t *root = json_loadb(text, len, JSON_REJECT_DUPLICATES, &je);
	int rc;

	if (!root) {
		err_set(err, WEFT_EINVAL, "not a topology: %s", je.text);
		if (err) {
			err_at(err, NULL, je.line, je.column);
		}
		return WEFT_EINVAL;
	}
	rc = from_root(root, out, name, err);
	json_decref(root);
	return rc;
}
