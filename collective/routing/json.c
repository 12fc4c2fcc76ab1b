/* Route tables out of JSON; see routes.h. */
#include <string.h>

#include "collective/routing/private.h"
#include "collective/schedule/json_root.h"

/* A whole number; -1, which no field allows, when it is none. */
static int64_t number(const json_t *object, const char *key)
{
	const json_t *v = json_object_get(object, key);

	return json_is_integer(v) ? json_integer_value(v) : -1;
}

static int read_route(struct routes_load *l, const json_t *route, size_t i,
		      struct err *err)
{
	const json_t *ports = json_object_get(route, "ports");
	struct routes_row row = {
		number(route, "origin"), number(route, "destination"),
		number(route, "chunks"), number(route, "layer"),
	};
	int rc = routes_load_row(l, &row, err);

	if (rc == 0 && !json_is_array(ports)) {
		rc = err_set(err, WEFT_EINVAL, "route %zu: ports: expected an "
			     "array", i);
	}
	for (size_t k = 0; rc == 0 && k < json_array_size(ports); k++) {
		const json_t *port = json_array_get(ports, k);

		rc = routes_load_port(l, json_is_integer(port)
						 ? json_integer_value(port)
						 : -1, err);
	}
	return rc;
}

static int read_root(struct routes_load *l, const json_t *root,
		     struct err *err)
{
	const json_t *routes = json_object_get(root, "routes");
	const char *rate = json_string_value(json_object_get(root, "rate"));
	struct routes_head head = {
		number(root, "weft_routes"), number(root, "nodes"),
		number(root, "chunks"), number(root, "layers"),
		rate ? rate : "",
	};
	int rc = routes_load_head(l, &head, err);

	if (rc == 0 && !json_is_array(routes)) {
		rc = err_set(err, WEFT_EINVAL, "routes: expected an array");
	}
	for (size_t i = 0; rc == 0 && i < json_array_size(routes); i++) {
		rc = read_route(l, json_array_get(routes, i), i, err);
	}
	return rc;
}

int routes_from_json(const char *text, size_t len, struct routes_load *l,
		     struct err *err)
{
	json_t *root = json_root(text, len, err);
	int rc;

	if (!root) {
		return WEFT_EINVAL;
	}
	rc = read_root(l, root, err);
	json_decref(root);
	return rc;
}
