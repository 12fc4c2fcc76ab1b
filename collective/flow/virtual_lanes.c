/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Layers by incremental topological order. Each layer keeps
 * its arcs in an order that all its dependencies follow. A new dependency
 * that runs against it re-sorts only what lies between its ends, and fails
 * exactly when it closes a cycle.
 */
#include "collective/flow/private.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/vec.h"

struct dependency {
	int32_t to;		/* arc at the other end */
	int32_t next;		/* edge of the same arc, -1: last */
	int32_t count;		/* of an out edge: routes behind it */
};

struct layer {
	int32_t *rank;		/* an arc */
	int32_t *out, *in;	/* an arc: its first edge, -1: none */
	VEC(struct dependency) edges;	/* out and in alternate */
	int32_t spare;		/* pair of edges in no use, -1: none */
};

struct layer_set {
	int n;
	VEC(struct layer) layers;
	VEC(int32_t) forward, backward, ranks;
	bool *seen;
};

static void layer_fini(struct layer *l)
{
	free(l->rank);
	free(l->out);
	free(l->in);
	vec_fini(&l->edges);
}

static void open_layer(struct layer_set *w)
{
	size_t n = (size_t)w->n + 1;
	struct layer l = { .spare = -1 };

	l.rank = x_alloc(n, sizeof(*l.rank));
	l.out = x_alloc(n, sizeof(*l.out));
	l.in = x_alloc(n, sizeof(*l.in));
	vec_push(&w->layers, l);
	for (int a = 0; a < w->n; a++) {
		l.rank[a] = a;
		l.out[a] = l.in[a] = -1;
	}
}

/* The edge, or -1. */
static int32_t find_edge(const struct layer *l, int from, int to)
{
	int32_t e = l->out[from];

	while (e >= 0 && l->edges.v[e].to != to) {
		e = l->edges.v[e].next;
	}
	return e;
}

static void link_edge(struct layer *l, int from, int to)
{
	int32_t e = l->spare;

	if (e >= 0) {
		l->spare = l->edges.v[e].next;
	} else {
		e = (int32_t)l->edges.n;
		vec_reserve(&l->edges, 2);
		l->edges.n += 2;
	}
	l->edges.v[e] = (struct dependency){ to, l->out[from], 1 };
	l->edges.v[e + 1] = (struct dependency){ from, l->in[to], 0 };
	l->out[from] = e;
	l->in[to] = e + 1;
}

/* Takes edge e out of the list that begins at *at. */
static void unchain(struct layer *l, int32_t *at, int32_t e)
{
	while (*at != e) {
		at = &l->edges.v[*at].next;
	}
	*at = l->edges.v[e].next;
}

/* One route less behind an edge. */
static void drop_edge(struct layer *l, int from, int to)
{
	int32_t e = find_edge(l, from, to);

	if (--l->edges.v[e].count > 0) {
		return;
	}
	unchain(l, &l->out[from], e);
	unchain(l, &l->in[to], e + 1);
	l->edges.v[e].next = l->spare;
	l->spare = e;
}

/* Arcs reached from `at` forwards (or backwards) without passing the rank
 * `limit`, itself first; 1 when an arc of exactly that rank is among them. */
static int reach(struct layer_set *w, const struct layer *l, int at, bool forwards, int limit)
{
	size_t i = 0;
	int met = 0;

	if (forwards) {
		vec_push(&w->forward, at);
	} else {
		vec_push(&w->backward, at);
	}
	w->seen[at] = true;
	for (; i < (forwards ? w->forward.n : w->backward.n); i++) {
		int a = forwards ? w->forward.v[i] : w->backward.v[i];

		for (int e = forwards ? l->out[a] : l->in[a]; e >= 0; e = l->edges.v[e].next) {
			int b = l->edges.v[e].to;

			met |= l->rank[b] == limit;
			if (w->seen[b] || (forwards ? l->rank[b] >= limit : l->rank[b] <= limit)) {
				continue;
			}
			w->seen[b] = true;
			if (forwards) {
				vec_push(&w->forward, b);
			} else {
				vec_push(&w->backward, b);
			}
		}
	}
	return met;
}

/* qsort has no argument: sorted by insertion, as these lists are short. */
static void sort_by_rank(int32_t *v, size_t n, const int32_t *rank)
{
	for (size_t i = 1; i < n; i++) {
		int32_t a = v[i];
		size_t j = i;

		for (; j > 0 && (rank ? rank[v[j - 1]] > rank[a] : v[j - 1] > a); j--) {
			v[j] = v[j - 1];
		}
		v[j] = a;
	}
}

/* All that leads to `from` goes before all that `to` leads to, on the same
 * ranks. */
static void reorder(struct layer_set *w, struct layer *l)
{
	size_t k = 0;

	sort_by_rank(w->forward.v, w->forward.n, l->rank);
	sort_by_rank(w->backward.v, w->backward.n, l->rank);
	w->ranks.n = 0;
	vec_reserve(&w->ranks, w->forward.n + w->backward.n);
	for (size_t i = 0; i < w->backward.n; i++) {
		w->ranks.v[w->ranks.n++] = l->rank[w->backward.v[i]];
	}
	for (size_t i = 0; i < w->forward.n; i++) {
		w->ranks.v[w->ranks.n++] = l->rank[w->forward.v[i]];
	}
	sort_by_rank(w->ranks.v, w->ranks.n, NULL);
	for (size_t i = 0; i < w->backward.n; i++) {
		l->rank[w->backward.v[i]] = w->ranks.v[k++];
	}
	for (size_t i = 0; i < w->forward.n; i++) {
		l->rank[w->forward.v[i]] = w->ranks.v[k++];
	}
}

/* 0: done, 1: it would close a cycle. */
static int add_edge(struct layer_set *w, struct layer *l, int from, int to)
{
	int rc = 0;

	if (l->rank[from] > l->rank[to]) {
		w->forward.n = w->backward.n = 0;
		rc = reach(w, l, to, true, l->rank[from]);
		if (rc == 0) {
			rc = reach(w, l, from, false, l->rank[to]);
		}
		for (size_t i = 0; i < w->forward.n; i++) {
			w->seen[w->forward.v[i]] = false;
		}
		for (size_t i = 0; i < w->backward.n; i++) {
			w->seen[w->backward.v[i]] = false;
		}
		if (rc == 0) {
			reorder(w, l);
		}
	}
	if (rc) {
		return rc;
	}
	link_edge(l, from, to);
	return 0;
}

static void remove_route(struct layer *l, const int32_t *arcs, int64_t n)
{
	for (int64_t i = n - 1; i > 0; i--) {
		drop_edge(l, arcs[i - 1], arcs[i]);
	}
}

/* Puts a route into a layer, or leaves the layer's edges as they were. */
static int add_route(struct layer_set *w, struct layer *l,
		     const int32_t *arcs, int64_t n, int64_t *at)
{
	for (int64_t i = 1; i < n; i++) {
		int32_t e = find_edge(l, arcs[i - 1], arcs[i]);
		int rc = 0;

		if (e >= 0) {
			l->edges.v[e].count++;
		} else {
			rc = add_edge(w, l, arcs[i - 1], arcs[i]);
		}
		if (rc) {
			remove_route(l, arcs, i);
			if (at) {
				*at = i;
			}
			return rc;
		}
	}
	return 0;
}

static void set_fini(struct layer_set *w)
{
	for (size_t k = 0; k < w->layers.n; k++) {
		layer_fini(&w->layers.v[k]);
	}
	vec_fini(&w->layers);
	vec_fini(&w->forward);
	vec_fini(&w->backward);
	vec_fini(&w->ranks);
	free(w->seen);
}

/* ---- routes that come and go ---- */

struct layer_set *layer_set_new(int n_arcs, int n_layers)
{
	struct layer_set *this = x_new(1, sizeof(*this));

	this->n = n_arcs;
	this->seen = x_new((size_t)n_arcs + 1, sizeof(*this->seen));
	for (int k = 0; k < n_layers; k++) {
		open_layer(this);
	}
	return this;
}

void layer_set_free(struct layer_set *this)
{
	if (this) {
		set_fini(this);
		free(this);
	}
}

int layer_set_add(struct layer_set *this, int k, const int32_t *arcs, int64_t n, int64_t *at)
{
	return add_route(this, &this->layers.v[k], arcs, n, at);
}

void layer_set_remove(struct layer_set *this, int k, const int32_t *arcs, int64_t n)
{
	remove_route(&this->layers.v[k], arcs, n);
}

const int32_t *layer_set_rank(const struct layer_set *this, int k)
{
	return this->layers.v[k].rank;
}

/* ---- all routes at once ---- */

static int check_route(const struct layer_routes *routes, int64_t i, struct err *err)
{
	for (int64_t k = routes->first[i]; k < routes->first[i + 1]; k++) {
		int32_t a = routes->arcs[k];

		if (a < 0 || a >= routes->n_arcs) {
			return err_set(err, WEFT_EINVAL, "route %lld: arc %d "
				       "does not exist", (long long)i, a);
		}
		for (int64_t j = routes->first[i]; j < k; j++) {
			if (routes->arcs[j] == a) {
				return err_set(err, WEFT_EINVAL, "route %lld "
					       "uses arc %d twice",
					       (long long)i, a);
			}
		}
	}
	return 0;
}

static int place_route(struct layer_set *w, const struct layer_routes *routes, int64_t i,
		       int max_layers, int32_t *layer, struct err *err)
{
	int64_t first = routes->first[i], n = routes->first[i + 1] - first;
	int rc = 1, k;

	for (k = 0; rc == 1; k++) {
		if ((size_t)k == w->layers.n) {
			if (max_layers > 0 && k >= max_layers) {
				return err_set(err, WEFT_EINFEASIBLE,
					       "route %lld closes a cycle in "
					       "each of %d layers",
					       (long long)i, max_layers);
			}
			open_layer(w);
		}
		rc = add_route(w, &w->layers.v[k], routes->arcs + first, n, NULL);
	}
	layer[i] = k - 1;
	return 0;
}

static void copy_ranks(const struct layer_set *w, int32_t **rank)
{
	size_t n = (size_t)w->n;

	*rank = x_alloc(w->layers.n * n + 1, sizeof(**rank));
	for (size_t k = 0; k < w->layers.n; k++) {
		memcpy(*rank + k * n, w->layers.v[k].rank, n * sizeof(**rank));
	}
}

int layers_assign(const struct layer_routes *routes, int max_layers, int32_t *layer, int *n_layers,
		  int32_t **rank, struct err *err)
{
	struct layer_set w = { .n = routes->n_arcs };
	int rc = 0;

	*rank = NULL;
	w.seen = x_new((size_t)w.n + 1, sizeof(*w.seen));
	for (int64_t i = 0; i < routes->n && rc == 0; i++) {
		rc = check_route(routes, i, err);
		if (rc == 0) {
			rc = place_route(&w, routes, i, max_layers, layer, err);
		}
	}
	*n_layers = (int)w.layers.n;
	if (rc == 0) {
		copy_ranks(&w, rank);
	}
	set_fini(&w);
	return rc;
}

int layers_prove(const struct layer_routes *routes, const int32_t *layer,
		 int n_layers, int32_t **rank, struct err *err)
{
	struct layer_set *set = layer_set_new(routes->n_arcs, n_layers);
	int rc = 0;

	*rank = NULL;
	for (int64_t i = 0; i < routes->n && rc == 0; i++) {
		int64_t first = routes->first[i];

		if (layer_set_add(set, layer[i], routes->arcs + first,
				  routes->first[i + 1] - first, NULL)) {
			rc = err_set(err, WEFT_EVERIFY, "route %lld closes a "
				     "cycle in layer %d", (long long)i,
				     layer[i]);
		}
	}
	if (rc == 0) {
		copy_ranks(set, rank);
	}
	layer_set_free(set);
	return rc;
}

bool layers_proven(const struct layer_routes *routes, const int32_t *layer,
		   int n_layers, const int32_t *rank)
{
	for (int64_t i = 0; i < routes->n; i++) {
		const int32_t *r = rank + (size_t)layer[i] * routes->n_arcs;

		if (layer[i] < 0 || layer[i] >= n_layers) {
			return false;
		}
		for (int64_t k = routes->first[i] + 1; k < routes->first[i + 1]; k++) {
			if (r[routes->arcs[k - 1]] >= r[routes->arcs[k]]) {
				return false;
			}
		}
	}
	return true;
}
