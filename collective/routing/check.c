/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Proving a route table. Nothing here is shared with what assigns layers or
 * follows chunks: a layer is free of deadlock when taking away arcs that wait
 * for no other empties it (Kahn's topological sort).
 *
 * A packet that holds one arc's buffer while it asks for the next makes the
 * first wait for the second. Without a cycle of such waits among the routes of
 * a layer, which has buffers of its own, packets cannot block each other for
 * ever (Dally and Seitz 1987).
 */
#include <stdlib.h>
#include <string.h>

#include "collective/routing/private.h"
#include "lib/base/alloc.h"
#include "lib/base/number/rat.h"
#include "lib/base/order.h"

/* A route of this layer holds one arc while it asks for the other. */
struct arc_wait {
	int32_t layer, from, to;
};

/* A table being proven; m: arcs of the topology. */
struct routes_check {
	const struct coll_routes *r;
	const struct topo *t;
	int64_t *load;		/* m: chunks */
	int64_t *used_by;	/* m: 1 + the last route that used the arc */
	VEC(struct arc_wait) waits;
	int32_t *degree;	/* m: waits of the present layer */
	/* m + 2: of the present layer, the arcs that wait for arc a are
	 * in[in_first[a]] up to in[in_first[a + 1] - 1]. */
	int32_t *in_first;
	int32_t *in;		/* waits.n */
	VEC(int32_t) ready;	/* arcs that wait for none any more */
};

/* ---- pairs ---- */

static int wrong_sum(int origin, int dest, int64_t sum, int chunks, struct err *err)
{
	return err_set(err, WEFT_EVERIFY, "%d -> %d: routes carry %lld of %d "
		       "chunks", origin, dest, (long long)sum, chunks);
}

/* All pairs in order, each with all its chunks. */
static int check_pairs(const struct routes_check *c, struct err *err)
{
	const struct coll_routes *r = c->r;
	int64_t i = 0;

	for (int s = 0; s < r->nodes; s++) {
		for (int t = 0; t < r->nodes; t++) {
			int64_t sum = 0;

			for (; s != t && i < r->table.n &&
			       r->route[i].origin == s &&
			       r->route[i].dest == t; i++) {
				sum += r->route[i].chunks;
			}
			if (s != t && sum != r->chunks) {
				return wrong_sum(s, t, sum, r->chunks, err);
			}
		}
	}
	if (i < r->table.n) {
		return err_set(err, WEFT_EVERIFY, "route %lld, %d -> %d: "
			       "out of order", (long long)i,
			       r->route[i].origin, r->route[i].dest);
	}
	return 0;
}

/* ---- paths ---- */

/* Route i is a path of its pair over arcs that are there, none of them twice.
 * Adds its loads and its waits. */
static int check_path(struct routes_check *c, int64_t i, struct err *err)
{
	const struct coll_routes *r = c->r;
	const struct coll_route *q = &r->route[i];
	int at = q->origin;

	for (int64_t k = r->first[i]; k < r->first[i + 1]; k++) {
		int32_t arc = r->arcs[k];

		if (topo_arc(c->t, arc)->src != at) {
			return err_set(err, WEFT_EVERIFY, "route %lld: breaks "
				       "off at node %d", (long long)i, at);
		}
		if (c->used_by[arc] == i + 1) {
			return err_set(err, WEFT_EVERIFY, "route %lld: uses "
				       "the arc %d -> %d twice", (long long)i,
				       at, topo_arc(c->t, arc)->dst);
		}
		if (k > r->first[i]) {
			vec_push(&c->waits, (struct arc_wait){ q->layer,
						       r->arcs[k - 1], arc });
		}
		c->used_by[arc] = i + 1;
		c->load[arc] += q->chunks;
		at = topo_arc(c->t, arc)->dst;
	}
	if (at != q->dest) {
		return err_set(err, WEFT_EVERIFY, "route %lld: ends at node "
			       "%d, not %d", (long long)i, at, q->dest);
	}
	return 0;
}

/* The stated rate is that of the loads counted here, as exact fractions. */
static int check_rate(const struct routes_check *c, struct err *err)
{
	mpq_t stated, found;
	char *text;
	int rc = 0;

	mpq_inits(stated, found, NULL);
	rat_parse(stated, c->r->rate);
	routes_rate(c->r, c->t, c->load, found);
	if (!mpq_equal(stated, found)) {
		text = mpq_get_str(NULL, 10, found);
		rc = err_set(err, WEFT_EVERIFY, "rate: %.64s is stated, the "
			     "loads give %.64s", c->r->rate, text);
		free(text);
	}
	mpq_clears(stated, found, NULL);
	return rc;
}

/* ---- layers ---- */

ORDER_BY(by_wait, struct arc_wait, layer, from, to)

/* Sorts the waits by layer; each stays once. */
static void keep_distinct(struct routes_check *c)
{
	size_t kept = 0;

	if (c->waits.n > 0) {
		qsort(c->waits.v, c->waits.n, sizeof(*c->waits.v), by_wait);
	}
	for (size_t i = 0; i < c->waits.n; i++) {
		if (kept == 0 || by_wait(&c->waits.v[kept - 1], &c->waits.v[i]) != 0) {
			c->waits.v[kept++] = c->waits.v[i];
		}
	}
	c->waits.n = kept;
}

/* Counts what each arc waits for, and lists those that wait for it. */
static void index_waits(struct routes_check *c, const struct arc_wait *w, size_t n)
{
	int m = topo_m(c->t);

	memset(c->degree, 0, (size_t)m * sizeof(*c->degree));
	memset(c->in_first, 0, ((size_t)m + 2) * sizeof(*c->in_first));
	for (size_t i = 0; i < n; i++) {
		c->degree[w[i].from]++;
		c->in_first[w[i].to + 2]++;
	}
	for (int a = 0; a < m; a++) {
		c->in_first[a + 2] += c->in_first[a + 1];
	}
	for (size_t i = 0; i < n; i++) {
		c->in[c->in_first[w[i].to + 1]++] = w[i].from;
	}
}

/* Takes away arcs that wait for none until none is left; what then still
 * waits has a cycle in it. */
static int check_layer(struct routes_check *c, const struct arc_wait *w, size_t n, struct err *err)
{
	int m = topo_m(c->t), left = m;

	index_waits(c, w, n);
	c->ready.n = 0;
	vec_reserve(&c->ready, (size_t)m);
	for (int a = 0; a < m; a++) {
		if (c->degree[a] == 0) {
			c->ready.v[c->ready.n++] = a;
		}
	}
	while (c->ready.n > 0) {
		int32_t a = c->ready.v[--c->ready.n];

		left--;
		for (int k = c->in_first[a]; k < c->in_first[a + 1]; k++) {
			if (--c->degree[c->in[k]] == 0) {
				c->ready.v[c->ready.n++] = c->in[k];
			}
		}
	}
	if (left > 0) {
		return err_set(err, WEFT_EVERIFY, "layer %d: %d arcs wait "
			       "for each other in a cycle, or for those "
			       "that do", w->layer, left);
	}
	return 0;
}

static int check_layers(struct routes_check *c, struct err *err)
{
	int rc = 0;

	keep_distinct(c);
	c->in = x_alloc(c->waits.n + 1, sizeof(*c->in));
	for (size_t i = 0, end; i < c->waits.n && rc == 0; i = end) {
		for (end = i; end < c->waits.n &&
			      c->waits.v[end].layer == c->waits.v[i].layer;
		     end++) {
		}
		rc = check_layer(c, c->waits.v + i, end - i, err);
	}
	return rc;
}

int coll_routes_verify(const struct coll_routes *r, const struct topo *t, struct err *err)
{
	size_t m = (size_t)topo_m(t) + 2;
	struct routes_check c = { .r = r, .t = t };
	int rc = topo_check_plain(t, "routes", err);

	if (rc) {
		return rc;
	}
	c.load = x_new(m, sizeof(*c.load));
	c.used_by = x_new(m, sizeof(*c.used_by));
	c.degree = x_new(m, sizeof(*c.degree));
	c.in_first = x_new(m, sizeof(*c.in_first));
	rc = check_pairs(&c, err);
	for (int64_t i = 0; i < r->table.n && rc == 0; i++) {
		rc = check_path(&c, i, err);
	}
	if (rc || (rc = check_rate(&c, err))) {
		goto out;
	}
	rc = check_layers(&c, err);
out:
	free(c.load);
	free(c.used_by);
	free(c.degree);
	free(c.in_first);
	free(c.in);
	vec_fini(&c.waits);
	vec_fini(&c.ready);
	return rc;
}
