/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading route tables. JSON and messages call the same three functions (head,
 * row, port), which check every number against the topology, so that an error is
 * the same whatever the form.
 */
#include <stdlib.h>
#include <string.h>

#include "collective/routing/private.h"
#include "lib/base/alloc.h"
#include "lib/base/number/rat.h"

#define MAX_LAYERS (1 << 16)

static int check_range(const char *what, int64_t value, int64_t min, int64_t max, struct err *err)
{
	if (value < min || value > max) {
		return err_set(err, WEFT_EINVAL, "%s: %lld is not from %lld "
			       "to %lld", what, (long long)value,
			       (long long)min, (long long)max);
	}
	return 0;
}

/* Of route number i of the table. */
static int check_field(const struct routes_load *l, const char *what, int64_t value, int64_t min,
		       int64_t max, struct err *err)
{
	int rc = check_range(what, value, min, max, err);

	return rc ? err_wrap(err, "route %zu", l->route.n) : 0;
}

int routes_load_head(struct routes_load *l, const struct routes_head *head, struct err *err)
{
	struct coll_routes *out = l->out;
	mpq_t rate;
	bool positive;
	int rc;

	if ((rc = check_range("version", head->version, ROUTES_VERSION, ROUTES_VERSION, err)) ||
	    (rc = check_range("chunks", head->chunks, 1, COLL_MAX_CHUNKS, err)) ||
	    (rc = check_range("layers", head->layers, 1, MAX_LAYERS, err))) {
		return rc;
	}
	if (head->nodes != topo_n(l->t)) {
		return err_set(err, WEFT_EINVAL, "nodes: the table has %lld, "
			       "the topology %d", (long long)head->nodes,
			       topo_n(l->t));
	}
	mpq_init(rate);
	positive = rat_parse(rate, head->rate) == 0 && mpq_sgn(rate) > 0;
	mpq_clear(rate);
	if (!positive) {
		return err_set(err, WEFT_EINVAL, "rate: \"%.64s\" is not a "
			       "fraction above 0", head->rate);
	}
	out->nodes = (int)head->nodes;
	out->chunks = (int)head->chunks;
	out->n_layers = (int)head->layers;
	out->rate = x_dup(head->rate);
	return 0;
}

int routes_load_row(struct routes_load *l, const struct routes_row *row, struct err *err)
{
	const struct coll_routes *out = l->out;
	int rc;

	if ((rc = check_field(l, "origin", row->origin, 0, out->nodes - 1, err)) ||
	    (rc = check_field(l, "destination", row->dest, 0, out->nodes - 1, err)) ||
	    (rc = check_field(l, "chunks", row->chunks, 1, out->chunks, err)) ||
	    (rc = check_field(l, "layer", row->layer, 0, out->n_layers - 1, err))) {
		return rc;
	}
	l->at = (int)row->origin;
	vec_push(&l->first, (int64_t)l->arcs.n);
	vec_push(&l->route, (struct coll_route){
		       (int32_t)row->origin, (int32_t)row->dest,
		       (int32_t)row->chunks, (int32_t)row->layer });
	return 0;
}

int routes_load_port(struct routes_load *l, int64_t port, struct err *err)
{
	int first, degree = topo_out(l->t, l->at, &first);

	if (port < 0 || port >= degree) {
		return err_set(err, WEFT_EINVAL, "route %zu: node %d has no "
			       "port %lld", l->route.n - 1, l->at,
			       (long long)port);
	}
	l->at = topo_arc(l->t, first + (int)port)->dst;
	vec_push(&l->arcs, first + (int32_t)port);
	return 0;
}

/* Hands the routes over, also those of a table that ended in an error. */
static void hand_over(struct routes_load *l)
{
	struct coll_routes *out = l->out;

	vec_push(&l->first, (int64_t)l->arcs.n);
	out->route = l->route.v;
	out->first = l->first.v;
	out->arcs = l->arcs.v;
	out->table = (struct layer_routes){
		topo_m(l->t), (int64_t)l->route.n, out->first, out->arcs,
	};
	out->layer = x_alloc(l->route.n + 1, sizeof(*out->layer));
	for (size_t i = 0; i < l->route.n; i++) {
		out->layer[i] = out->route[i].layer;
	}
}

int coll_routes_read(const void *data, size_t len, const struct topo *t,
		     struct coll_routes *out, struct err *err)
{
	const char *text = data;
	struct routes_load l = { .t = t, .out = out };
	int rc;

	memset(out, 0, sizeof(*out));
	if (len == 0) {
		return err_set(err, WEFT_EINVAL, "route table: empty");
	}
	/* A message begins with the tag of its version, byte 8. */
	if (text[0] == '{') {
		rc = routes_from_json(text, len, &l, err);
	} else {
		rc = routes_from_proto(data, len, &l, err);
	}
	hand_over(&l);
	if (rc) {
		return err_wrap(err, "route table");
	}
	return 0;
}
