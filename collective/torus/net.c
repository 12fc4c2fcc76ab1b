/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The links of a line: what a message from one coordinate to another puts on which of them.
 *
 * Lines of a dimension share no link, and one stands for all: they are alike, or the shape says
 * that they are not, and it is one of those that most are like. Where shifting by a period keeps
 * the line and what is sent on it, links are counted once for all their images. Messages take all
 * shortest paths, and divide at every node by capacity, as coll_embed has them.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "collective/torus/net.h"
#include "lib/base/alloc.h"
#include "lib/base/number/rat.h"
#include "lib/base/number/rng.h"
#include "lib/base/order.h"

void torus_net_free(struct torus_net *n)
{
	if (n) {
		vec_fini(&n->hops);
		vec_fini(&n->routes);
		topo_free(n->line);
		arrays_fini(&n->arrays);
		free(n);
	}
}

/* ---- lines that are alike ---- */

struct line_key {
	uint64_t links;		/* of its terminals, in one number */
	int32_t base;		/* its terminal of coordinate 0 */
};

ORDER_BY(by_links, struct line_key, links, base)

static bool is_on_line_of(const struct torus_shape *s, int u, int e, int v)
{
	return v < topo_ranks(s->t) && v == torus_at(s, u, e, torus_digit(s, v, e));
}

/* Whether a switch has a link to another terminal of u's line. */
static bool leads_on(const struct torus_shape *s, int node, int u, int e)
{
	int first, n = topo_out(s->t, node, &first);
	bool any = false;

	for (int a = first; a < first + n && !any; a++) {
		int v = topo_arc(s->t, a)->dst;

		any = v != u && is_on_line_of(s, u, e, v);
	}
	return any;
}

/* Of an arc of u's line: between coordinates, or to a switch; 0: it is of another. */
static uint64_t key_of(const struct torus_shape *s, int u, int e, const struct topo_arc *arc)
{
	bool is_rank = arc->dst < topo_ranks(s->t);
	uint64_t x = (uint64_t)torus_digit(s, u, e), to = TORUS_MAX_SIZE;

	if (!(is_rank ? is_on_line_of(s, u, e, arc->dst) : leads_on(s, arc->dst, u, e))) {
		return 0;
	}
	to = is_rank ? (uint64_t)torus_digit(s, arc->dst, e) : to;
	return rng_mix(rng_mix(rng_mix(x << 32 | to) + (uint64_t)arc->cap) +
		       (uint64_t)arc->latency_ns);
}

/* The keys of all lines of a dimension, each where its base is; of others links is 0. */
static void find_keys(const struct torus_shape *s, int e, struct line_key *key)
{
	for (int u = 0; u < topo_ranks(s->t); u++) {
		struct line_key *k = &key[torus_at(s, u, e, 0)];
		int first, n = topo_out(s->t, u, &first);

		key[u].base = u;
		for (int a = first; a < first + n; a++) {
			k->links += key_of(s, u, e, topo_arc(s->t, a));
		}
	}
}

/* The first of the lines that most are like; whether all are, as far as links of terminals tell.
 * O(m degree of switches + n log n). */
static bool find_base(const struct torus_shape *s, int e, int *base)
{
	int ranks = topo_ranks(s->t), lines = 0, most = 0;
	struct line_key *key;

	*base = 0;
	if (s->n_dims == 1) {
		return true;
	}
	key = x_new((size_t)ranks, sizeof(*key));
	find_keys(s, e, key);
	for (int u = 0; u < ranks; u++) {
		if (torus_digit(s, u, e) == 0) {
			key[lines++] = key[u];
		}
	}
	qsort(key, (size_t)lines, sizeof(*key), by_links);
	for (int i = 0, end; i < lines; i = end) {
		for (end = i; end < lines && key[end].links == key[i].links; end++) {
		}
		if (end - i > most || (end - i == most && key[i].base < *base)) {
			most = end - i;
			*base = key[i].base;
		}
	}
	free(key);
	return most == lines;
}

/* ---- the line that stands for all ---- */

/* Numbers of the nodes on it: its terminals by coordinate, then what switches they reach. */
struct torus_numbering {
	int32_t *number;	/* of a node, -1: not on it */
	int32_t *node;
	int n;
};

static bool is_on(const struct torus_shape *s, int e, int node)
{
	return node >= topo_ranks(s->t) || is_on_line_of(s, s->base[e], e, node);
}

static void take(struct torus_numbering *m, int node)
{
	if (m->number[node] < 0) {
		m->number[node] = m->n;
		m->node[m->n++] = node;
	}
}

/* Takes switches that joined switches lead to, from number `from` on; returns whether they reach
 * another terminal of the line than this one. */
static bool follow(const struct torus_shape *s, int e, int terminal, int from,
		   struct torus_numbering *m)
{
	bool leads_on = false;

	for (int i = from; i < m->n; i++) {
		int first, n = topo_out(s->t, m->node[i], &first);

		for (int a = first; a < first + n; a++) {
			int v = topo_arc(s->t, a)->dst;

			if (v >= topo_ranks(s->t)) {
				take(m, v);
			} else {
				leads_on |= v != terminal && is_on(s, e, v);
			}
		}
	}
	return leads_on;
}

/* Switches that join a terminal with those of other lines only are not of this one. */
static void number_nodes(const struct torus_shape *s, int e, struct torus_numbering *m)
{
	for (int u = 0; u < topo_n(s->t); u++) {
		m->number[u] = -1;
	}
	for (int x = 0; x < s->size[e]; x++) {
		take(m, torus_at(s, s->base[e], e, x));
	}
	for (int x = 0; x < s->size[e]; x++) {
		int u = torus_at(s, s->base[e], e, x), first, n = topo_out(s->t, u, &first);

		for (int a = first; a < first + n; a++) {
			int v = topo_arc(s->t, a)->dst, from = m->n;

			if (v < topo_ranks(s->t) || m->number[v] >= 0) {
				continue;
			}
			take(m, v);
			if (!follow(s, e, u, from, m)) {
				while (m->n > from) {
					m->number[m->node[--m->n]] = -1;
				}
			}
		}
	}
}

static int line_digraph(const struct torus_shape *s, int e, struct topo **out, struct err *err)
{
	struct torus_numbering m = { 0 };
	struct arrays arrays = { 0 };
	int rc;

	arrays_add(&arrays, m.number, topo_n(s->t));
	arrays_add(&arrays, m.node, topo_n(s->t));
	number_nodes(s, e, &m);
	rc = topo_new(m.n, out, err);
	for (int i = 0; i < m.n && rc == 0; i++) {
		int first, n = topo_out(s->t, m.node[i], &first);

		for (int a = first; a < first + n && rc == 0; a++) {
			const struct topo_arc *arc = topo_arc(s->t, a);

			if (m.number[arc->dst] >= 0 && is_on(s, e, arc->dst)) {
				rc = topo_add_arc_like(*out, i, m.number[arc->dst], arc, err);
			}
		}
	}
	arrays_fini(&arrays);
	if (rc == 0) {
		topo_freeze(*out);
	}
	return rc;
}

/* ---- its period ---- */

/* Where shifting by a number takes a node of the line: switches stay. */
static int shifted(const struct torus_net *n, int node, int by)
{
	return node < n->d ? (node + by) % n->d : node;
}

/* The arc that shifting takes an arc to; -1: none. Of parallel ones that are alike the k-th to the
 * k-th. */
static int shifted_arc(const struct torus_net *n, int a, int by)
{
	struct topo_arc like = *topo_arc(n->line, a);
	int first, out = topo_out(n->line, like.src, &first), k = 0;

	for (int i = first; i < a; i++) {
		k += topo_arc_compare(topo_arc(n->line, i), &like) == 0;
	}
	like.src = shifted(n, like.src, by);
	like.dst = shifted(n, like.dst, by);
	out = topo_out(n->line, like.src, &first);
	for (int i = first; i < first + out; i++) {
		if (topo_arc_compare(topo_arc(n->line, i), &like) == 0 && k-- == 0) {
			return i;
		}
	}
	return -1;
}

static bool keeps(const struct torus_net *n, int by)
{
	for (int a = 0; a < topo_m(n->line); a++) {
		if (shifted_arc(n, a, by) < 0) {
			return false;
		}
	}
	return true;
}

void torus_net_classes(struct torus_net *n, int period)
{
	if (n->class_period == period) {
		return;
	}
	n->class_period = period;
	n->n_classes = 0;
	memset(n->class, 0xff, (size_t)topo_m(n->line) * sizeof(*n->class));
	memset(n->images, 0, (size_t)topo_m(n->line) * sizeof(*n->images));
	for (int a = 0; a < topo_m(n->line); a++) {
		if (n->class[a] >= 0) {
			continue;
		}
		for (int b = a; n->class[b] < 0;
		     b = period < n->d ? shifted_arc(n, b, period) : b) {
			n->class[b] = n->n_classes;
			n->images[n->n_classes]++;
		}
		n->n_classes++;
	}
}

/* The links of a dimension; torus_net_free also after an error. O(m + d divisors of d). */
static int net_new(const struct torus_shape *s, int e, struct torus_net **out, struct err *err)
{
	struct torus_net *n;
	int rc;

	if (s->size[e] > TORUS_MAX_SIZE) {
		return err_set(err, WEFT_EUNSUPPORTED, "a dimension of %d: not supported beyond %d",
			       s->size[e], TORUS_MAX_SIZE);
	}
	n = x_new(1, sizeof(*n));
	*out = n;
	n->d = s->size[e];
	n->forwards = s->forwards;
	n->splits = !s->fabric || s->fabric->routing == COLL_ROUTING_MINIMAL_SPLIT;
	rc = line_digraph(s, e, &n->line, err);
	if (rc) {
		return rc;
	}
	arrays_add(&n->arrays, n->class, topo_m(n->line));
	arrays_add(&n->arrays, n->images, topo_m(n->line));
	arrays_add(&n->arrays, n->load, topo_m(n->line));
	arrays_add(&n->arrays, n->messages, topo_m(n->line));
	arrays_add(&n->arrays, n->route, (size_t)n->d * (size_t)n->d);
	arrays_add(&n->arrays, n->message, (size_t)n->d * (size_t)n->d);
	arrays_add(&n->arrays, n->dist, topo_n(n->line));
	arrays_add(&n->arrays, n->queue, topo_n(n->line));
	arrays_add(&n->arrays, n->amount, topo_n(n->line));
	arrays_add(&n->arrays, n->latency_ns, topo_n(n->line));
	arrays_add(&n->arrays, n->paths, topo_n(n->line));
	for (int a = 1; a < topo_m(n->line); a++) {
		n->has_choice |= topo_arc_compare(topo_arc(n->line, a - 1),
						  topo_arc(n->line, a)) == 0;
	}
	n->period = 1;
	while (n->period < n->d && (n->d % n->period || !keeps(n, n->period))) {
		n->period++;
	}
	return 0;
}

int torus_nets(struct torus_shape *s, int *periods, struct err *err)
{
	for (int e = 0; e < s->n_dims; e++) {
		int rc = 0;

		if (!s->net[e]) {
			s->has_unlike |= !find_base(s, e, &s->base[e]);
			rc = net_new(s, e, &s->net[e], err);
		}
		if (rc) {
			return rc;
		}
		periods[e] = s->net[e]->period;
	}
	return 0;
}

/* ---- routes ---- */

#define MANY (COLL_MAX_ARC_ROUTES + 1)

/* Distances to a node, which are -1 where it cannot be reached from, and numbers of shortest paths,
 * up to MANY: all that lead to a node are counted before it is taken from the queue. */
static void measure_to(struct torus_net *n, int to)
{
	int end = 0;

	for (int u = 0; u < topo_n(n->line); u++) {
		n->dist[u] = -1;
		n->amount[u] = 0;
		n->latency_ns[u] = n->paths[u] = 0;
	}
	n->dist[to] = 0;
	n->paths[to] = 1;
	n->queue[end++] = to;
	for (int k = 0; k < end; k++) {
		const int32_t *in;
		int v = n->queue[k], degree = topo_in(n->line, v, &in);

		for (int i = 0; i < degree; i++) {
			int u = topo_arc(n->line, in[i])->src;

			if (n->dist[u] < 0) {
				n->dist[u] = n->dist[v] + 1;
				n->queue[end++] = u;
			}
			n->paths[u] += n->dist[u] == n->dist[v] + 1 ? n->paths[v] : 0;
			n->paths[u] = n->paths[u] > MANY ? MANY : n->paths[u];
		}
	}
}

/* Arcs out of a node that lead on. */
static int count_on(const struct torus_net *n, int u, double *cap)
{
	int first, degree = topo_out(n->line, u, &first), on = 0;

	*cap = 0;
	for (int a = first; a < first + degree; a++) {
		const struct topo_arc *arc = topo_arc(n->line, a);

		if (n->dist[arc->dst] == n->dist[u] - 1) {
			*cap += (double)arc->cap;
			on++;
		}
	}
	return on;
}

/* What comes to u leaves it by the arcs that lead on, or the k-th of them. */
static void divide(struct torus_net *n, int u, bool begins, int k)
{
	double total;
	int first, degree = topo_out(n->line, u, &first), on = count_on(n, u, &total), paths;

	for (int a = first, i = 0; a < first + degree; a++) {
		const struct topo_arc *arc = topo_arc(n->line, a);
		double share = n->amount[u] * (k < 0 ? (double)arc->cap / total : 1);

		if (n->dist[arc->dst] != n->dist[u] - 1 || (k >= 0 && i++ != k % on)) {
			continue;
		}
		n->amount[arc->dst] += share;
		if (n->latency_ns[arc->dst] < n->latency_ns[u] + arc->latency_ns) {
			n->latency_ns[arc->dst] = n->latency_ns[u] + arc->latency_ns;
		}
		paths = k < 0 ? n->paths[arc->dst] : 1;
		vec_push(&n->hops, (struct torus_hop){ a, begins ? paths : 0, share });
	}
}

/* The hops of a route, or of the part that begins with an arc: nodes by falling distance, those of
 * the queue from place `end` on. */
static int follow_down(struct torus_net *n, int from, double amount, int k, int end,
		       struct err *err)
{
	memset(n->amount, 0, (size_t)topo_n(n->line) * sizeof(*n->amount));
	n->amount[from] = amount;
	for (int i = end; i > 0; i--) {
		if (n->amount[n->queue[i]] > 0 && n->queue[i] < n->d && i < end && !n->forwards) {
			return err_set(err, WEFT_EUNSUPPORTED, "coordinate %d does not forward",
				       n->queue[i]);
		}
		if (n->amount[n->queue[i]] > 0) {
			divide(n, n->queue[i], n->queue[i] == from, k);
		}
	}
	return 0;
}

static int add_route(struct torus_net *n, int from, int to, int k, struct err *err)
{
	struct torus_route r = { .first = n->hops.n };
	int rc = 0, end = 0, lanes;
	double cap;

	measure_to(n, to);
	if (n->dist[from] < 0) {
		return err_set(err, WEFT_EINFEASIBLE, "no path on a line from coordinate %d to %d",
			       from, to);
	}
	if (k == NET_ALL && n->splits && n->paths[from] == MANY) {
		return err_set(err, WEFT_ELIMIT, "more than %d routes from coordinate %d to %d",
			       COLL_MAX_ARC_ROUTES, from, to);
	}
	while (n->queue[end] != from) {
		end++;
	}
	lanes = k == NET_PARALLEL ? count_on(n, from, &cap) : 1;
	for (int j = 0; j < lanes && rc == 0; j++) {
		rc = follow_down(n, from, 1.0 / lanes, k == NET_PARALLEL ? j : k, end, err);
	}
	if (rc) {
		return rc;
	}
	r.n = (int)(n->hops.n - r.first);
	r.length = n->dist[from];
	r.latency_ns = n->latency_ns[to];
	vec_push(&n->routes, r);
	return 0;
}

/* Where the number of a route is kept. */
static int32_t *number_of(struct torus_net *n, int from, int to, int k)
{
	size_t pairs = (size_t)n->d * (size_t)n->d, at = (size_t)from * (size_t)n->d + (size_t)to;

	if (k >= 0 && !n->single) {
		arrays_add(&n->arrays, n->single, (NET_PARALLEL + 1) * pairs);
	}
	return k < 0 ? &n->route[at] : &n->single[(size_t)k * pairs + at];
}

int torus_net_route(struct torus_net *n, int from, int to, int k, const struct torus_route **out,
		    struct err *err)
{
	int32_t *number = number_of(n, from, to, k);
	int rc = *number > 0 ? 0 : add_route(n, from, to, k, err);

	n->work += *number > 0 ? 0 : topo_m(n->line);
	if (rc) {
		return rc;
	}
	*number = *number > 0 ? *number : (int32_t)n->routes.n;
	*out = &n->routes.v[*number - 1];
	n->work += (*out)->n;
	return 0;
}
