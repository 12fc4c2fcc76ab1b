/* SPDX-License-Identifier: Apache-2.0 */
/* Route tables out of JSON: types are checked here, values by routes_load_*. */
#include <jansson.h>
#include <string.h>

#include "collective/routing/private.h"
#include "collective/schedule/schedule.h"

static const char *const type_names[] = {
	[JSON_OBJECT] = "an object", [JSON_ARRAY] = "an array",
	[JSON_STRING] = "a string", [JSON_INTEGER] = "a whole number",
	[JSON_REAL] = "a number with a fraction", [JSON_TRUE] = "true",
	[JSON_FALSE] = "false", [JSON_NULL] = "null",
};

/* v, which stands at `what`, is of that type. */
static int check_type(const json_t *v, json_type type, const char *what, struct err *err)
{
	if (!v) {
		return err_set(err, WEFT_EINVAL, "%s: missing", what);
	}
	if (json_typeof(v) != type) {
		return err_set(err, WEFT_EINVAL, "%s: expected %s, not %s",
			       what, type_names[type],
			       type_names[json_typeof(v)]);
	}
	return 0;
}

/* A whole number of an object; 0 on error. */
static int take_number(const json_t *object, const char *key, int64_t *out, struct err *err)
{
	const json_t *v = json_object_get(object, key);

	*out = json_integer_value(v);
	return check_type(v, JSON_INTEGER, key, err);
}

static int read_ports(struct routes_load *l, const json_t *ports, size_t i, struct err *err)
{
	int rc = 0;

	if (check_type(ports, JSON_ARRAY, "ports", err)) {
		return err_wrap(err, "route %zu", i);
	}
	for (size_t k = 0; rc == 0 && k < json_array_size(ports); k++) {
		const json_t *port = json_array_get(ports, k);

		if (check_type(port, JSON_INTEGER, "port", err)) {
			return err_wrap(err, "route %zu", i);
		}
		rc = routes_load_port(l, json_integer_value(port), err);
	}
	return rc;
}

static int read_route(struct routes_load *l, const json_t *route, size_t i, struct err *err)
{
	struct routes_row row;
	int rc;

	if ((rc = check_type(route, JSON_OBJECT, "entry", err)) ||
	    (rc = take_number(route, "origin", &row.origin, err)) ||
	    (rc = take_number(route, "destination", &row.dest, err)) ||
	    (rc = take_number(route, "chunks", &row.chunks, err)) ||
	    (rc = take_number(route, "layer", &row.layer, err))) {
		return err_wrap(err, "route %zu", i);
	}
	rc = routes_load_row(l, &row, err);
	if (rc) {
		return rc;
	}
	return read_ports(l, json_object_get(route, "ports"), i, err);
}

static int read_root(struct routes_load *l, const json_t *root, struct err *err)
{
	const json_t *routes = json_object_get(root, "routes");
	const json_t *rate = json_object_get(root, "rate");
	struct routes_head head = { .rate = json_string_value(rate) };
	int rc;

	if ((rc = take_number(root, "weft_routes", &head.version, err)) ||
	    (rc = take_number(root, "nodes", &head.nodes, err)) ||
	    (rc = take_number(root, "chunks", &head.chunks, err)) ||
	    (rc = take_number(root, "layers", &head.layers, err)) ||
	    (rc = check_type(rate, JSON_STRING, "rate", err)) ||
	    (rc = routes_load_head(l, &head, err)) ||
	    (rc = check_type(routes, JSON_ARRAY, "routes", err))) {
		return rc;
	}
	for (size_t i = 0; rc == 0 && i < json_array_size(routes); i++) {
		rc = read_route(l, json_array_get(routes, i), i, err);
	}
	return rc;
}

int routes_from_json(const char *text, size_t len, struct routes_load *l, struct err *err)
{
	json_t *root = coll_json_root(text, len, err);
	int rc;

	if (!root) {
		return WEFT_EINVAL;
	}
	rc = read_root(l, root, err);
	json_decref(root);
	return rc;
}
