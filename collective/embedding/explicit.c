/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Routes from a file: {"routes": [[source, target, weight, [node, node, ...]], ...]}.
 *
 * Rows of one logical arc may stand anywhere. They are sorted by their ends, and
 * the paths of each logical arc, or of parallel ones, are collected together.
 */
#include <jansson.h>
#include <stdlib.h>

#include "collective/embedding/private.h"
#include "lib/base/alloc.h"
#include "lib/base/order.h"

int embed_read_routes(const char *text, size_t len, json_t **root, struct err *err)
{
	static const char *const known[] = { "routes", NULL };
	int rc;

	*root = coll_json_root(text, len, err);
	if (!*root) {
		return err ? err->code : WEFT_EINVAL;
	}
	rc = topo_json_keys(*root, known, err);
	if (rc == 0 && !json_is_array(json_object_get(*root, "routes"))) {
		rc = err_set(err, WEFT_EINVAL, "\"routes\", a list, is missing");
	}
	if (rc) {
		json_decref(*root);
	}
	return rc;
}

/* A row's numbers; `at` is where it stands. */
struct embed_row {
	int src, dst;
	int64_t weight;
	size_t at;
	json_t *path;
};

static bool whole(const json_t *x, int64_t lo, int64_t hi)
{
	return json_is_integer(x) && json_integer_value(x) >= lo && json_integer_value(x) <= hi;
}

static int read_row(const struct embed_paths *p, json_t *v, size_t at, struct embed_row *row,
		    struct err *err)
{
	json_t *src = json_array_get(v, 0), *dst = json_array_get(v, 1);
	json_t *weight = json_array_get(v, 2);
	int64_t last = topo_n(p->t) - 1;

	*row = (struct embed_row){ .at = at, .path = json_array_get(v, 3) };
	if (json_array_size(v) != 4 || !whole(src, 0, last) || !whole(dst, 0, last) ||
	    !whole(weight, 1, COLL_MAX_WEIGHT) || json_array_size(row->path) < 2) {
		return err_set(err, WEFT_EINVAL, "route %zu: [source, target, weight from 1 to %d, "
			       "[source, ..., target]] expected", at, COLL_MAX_WEIGHT);
	}
	row->src = (int)json_integer_value(src);
	row->dst = (int)json_integer_value(dst);
	row->weight = json_integer_value(weight);
	return 0;
}

ORDER_BY(by_ends, struct embed_row, src, dst, at)

/* Marks the nodes of a path, each with an arc to the next. */
static int mark_path(struct embed_paths *p, const struct embed_row *row, struct err *err)
{
	size_t n = json_array_size(row->path);
	int before = -1, rc = 0;

	for (size_t i = 0; i < n && !rc; i++) {
		json_t *x = json_array_get(row->path, i);
		int u = (int)json_integer_value(x);

		if (!whole(x, 0, topo_n(p->t) - 1) || p->level[u] >= 0 ||
		    (before >= 0 && topo_find_arc(p->t, before, u) < 0)) {
			rc = err_set(err, WEFT_EINVAL, "route %zu: place %zu of its path is no "
				     "node to which an arc leads from the one before, or one that "
				     "was there", row->at, i);
		} else {
			embed_mark(p, u, (int)i);
		}
		before = u;
	}
	if (!rc && (p->level[row->src] != 0 || p->level[row->dst] != (int)n - 1)) {
		rc = err_set(err, WEFT_EINVAL, "route %zu: its path does not lead from node %d to "
			     "node %d", row->at, row->src, row->dst);
	}
	return rc;
}

/* The routes of n rows for one logical arc. */
static int collect(struct embed_paths *p, const struct embed_row *row, size_t n, struct err *err)
{
	int rc = 0;

	for (size_t i = 0; i < n && !rc; i++) {
		if ((rc = mark_path(p, &row[i], err)) == 0 &&
		    (rc = embed_collect(p, row[i].src, row[i].dst, row[i].weight, err))) {
			err_wrap(err, "route %zu", row[i].at);
		}
	}
	return rc;
}

/* Every logical arc between the ends of these rows. */
static int add_arcs(struct embed_paths *p, struct coll_sched *s, const struct embed_row *row,
		    size_t n, struct err *err)
{
	const struct topo *logical = coll_topo(s);
	int first = 0, end = 0, rc = 0;
	bool any = false;

	if (row->src < topo_n(logical)) {
		end = topo_out(logical, row->src, &first) + first;
	}
	for (int arc = first; arc < end && !rc; arc++) {
		if (topo_arc(logical, arc)->dst != row->dst) {
			continue;
		}
		any = true;
		if ((rc = collect(p, row, n, err)) == 0 &&
		    (rc = embed_add_routes(p, s, arc, err))) {
			err_wrap(err, "route %zu", row->at);
		}
	}
	return rc || any ? rc : err_set(err, WEFT_EINVAL,
					"route %zu: the logical digraph has no arc "
					"%d -> %d", row->at, row->src, row->dst);
}

int embed_explicit(json_t *root, struct embed_paths *p, struct coll_sched *s, struct err *err)
{
	json_t *list = json_object_get(root, "routes");
	size_t n = json_array_size(list);
	struct embed_row *row = x_alloc(n + 1, sizeof(*row));
	int rc = 0;

	for (size_t i = 0; i < n && !rc; i++) {
		rc = read_row(p, json_array_get(list, i), i, &row[i], err);
	}
	if (!rc) {
		qsort(row, n, sizeof(*row), by_ends);
	}
	for (size_t i = 0, end; i < n && !rc; i = end) {
		for (end = i + 1; end < n && row[end].src == row[i].src &&
		     row[end].dst == row[i].dst; end++) {
		}
		rc = add_arcs(p, s, &row[i], end - i, err);
	}
	free(row);
	return rc;
}
