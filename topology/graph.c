/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Digraphs: building, indexes, copies, transposing.
 *
 * Arcs are appended in any order; freezing sorts them by source (stably, by
 * counting) and indexes them by target, in O(n + m), and the digraph never
 * changes after that, so threads share it without locks.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "topology/private.h"

int topo_new(int n, struct topo **out, struct err *err)
{
	struct topo *t;

	if (n < 1 || n > TOPO_MAX_NODES) {
		return err_set(err, WEFT_ELIMIT,
			       "a topology of %d nodes: expected 1 to %d", n,
			       TOPO_MAX_NODES);
	}
	t = x_new(1, sizeof(*t));
	t->nodes = x_alloc((size_t)n, sizeof(*t->nodes));
	t->n = n;
	for (int u = 0; u < n; u++) {
		topo_set_node(t, u, TOPO_TERMINAL, topo_usual_flags(TOPO_TERMINAL));
	}
	*out = t;
	return 0;
}

void topo_free(struct topo *t)
{
	if (t) {
		vec_fini(&t->arcs);
		free(t->nodes);
		free(t->out_first);
		free(t->in_first);
		free(t->in_arcs);
		vec_fini(&t->limits);
		vec_fini(&t->limit_arcs);
		free(t->arc_first_limit);
		free(t->arc_limits);
		topo_group_free(t->group);
		for (size_t i = 0; i < t->factors.n; i++) {
			topo_free(t->factors.v[i]);
		}
		vec_fini(&t->factors);
		free(t);
	}
}

int topo_add_arc(struct topo *t, int src, int dst, int64_t cap, int64_t latency_ns, struct err *err)
{
	const struct topo_arc like = { src, dst, cap, latency_ns, 1 };

	return topo_add_arc_like(t, src, dst, &like, err);
}

int topo_add_arc_like(struct topo *t, int src, int dst, const struct topo_arc *like,
		      struct err *err)
{
	assert(!t->frozen);
	if (src < 0 || src >= t->n || dst < 0 || dst >= t->n) {
		return err_set(err, WEFT_EINVAL,
			       "arc %d -> %d leaves the nodes 0 to %d", src,
			       dst, t->n - 1);
	}
	if (like->cap < 1 || like->latency_ns < 0) {
		return err_set(err, WEFT_EINVAL,
			       "arc %d -> %d has capacity %lld and latency "
			       "%lld ns: expected at least 1 and 0", src, dst,
			       (long long)like->cap, (long long)like->latency_ns);
	}
	if (like->cost < 0 || like->cost > TOPO_MAX_COST) {
		return err_set(err, WEFT_EINVAL, "arc %d -> %d has cost %lld: expected 0 to %d",
			       src, dst, (long long)like->cost, TOPO_MAX_COST);
	}
	if (t->arcs.n >= TOPO_MAX_ARCS) {
		return err_set(err, WEFT_ELIMIT, "a topology of more than %d arcs", TOPO_MAX_ARCS);
	}
	vec_push(&t->arcs,
		 (struct topo_arc){ src, dst, like->cap, like->latency_ns, like->cost });
	return 0;
}

void topo_set_node(struct topo *t, int node, enum topo_kind kind, unsigned flags)
{
	assert(!t->frozen && node >= 0 && node < t->n);
	t->nodes[node] = (struct topo_node){ (uint8_t)kind, (uint8_t)flags };
}

/* Turns counts at [u + 1] into the index of each u's first. */
static void sum_up(int32_t *first, int n)
{
	for (int u = 0; u < n; u++) {
		first[u + 1] += first[u];
	}
}

/* Stable counting sort of the arcs by source. */
static void sort_arcs(struct topo *t)
{
	struct topo_arc *sorted = x_alloc(t->arcs.n + 1, sizeof(*sorted));
	int32_t *next = x_alloc((size_t)t->n + 1, sizeof(*next));

	for (size_t a = 0; a < t->arcs.n; a++) {
		t->out_first[t->arcs.v[a].src + 1]++;
	}
	sum_up(t->out_first, t->n);
	memcpy(next, t->out_first, ((size_t)t->n + 1) * sizeof(*next));
	for (size_t a = 0; a < t->arcs.n; a++) {
		sorted[next[t->arcs.v[a].src]++] = t->arcs.v[a];
	}
	free(next);
	free(t->arcs.v);
	t->arcs.v = sorted;
	t->arcs.cap = t->arcs.n + 1;
}

/* Fills in_first and in_arcs; the arcs are sorted already. */
static void index_targets(struct topo *t)
{
	int32_t *first = t->in_first;

	for (size_t a = 0; a < t->arcs.n; a++) {
		first[t->arcs.v[a].dst + 1]++;
	}
	sum_up(first, t->n);
	/* Filling moves every first[v] to first[v + 1]; then shift back. */
	for (size_t a = 0; a < t->arcs.n; a++) {
		t->in_arcs[first[t->arcs.v[a].dst]++] = (int32_t)a;
	}
	memmove(first + 1, first, (size_t)t->n * sizeof(*first));
	first[0] = 0;
}

void topo_freeze(struct topo *t)
{
	assert(!t->frozen);
	t->out_first = x_new((size_t)t->n + 1, sizeof(*t->out_first));
	t->in_first = x_new((size_t)t->n + 1, sizeof(*t->in_first));
	t->in_arcs = x_new(t->arcs.n + 1, sizeof(*t->in_arcs));
	topo_freeze_limits(t);
	sort_arcs(t);
	index_targets(t);
	topo_count_kinds(t);
	t->frozen = true;
}

int topo_n(const struct topo *t)
{
	return t->n;
}

int topo_m(const struct topo *t)
{
	return (int)t->arcs.n;
}

const struct topo_arc *topo_arc(const struct topo *t, int arc)
{
	assert(arc >= 0 && (size_t)arc < t->arcs.n);
	return &t->arcs.v[arc];
}

const struct topo_arc *topo_arcs(const struct topo *t)
{
	return t->arcs.v;
}

int topo_out(const struct topo *t, int u, int *first)
{
	assert(t->frozen && u >= 0 && u < t->n);
	*first = t->out_first[u];
	return t->out_first[u + 1] - t->out_first[u];
}

int topo_in(const struct topo *t, int v, const int32_t **arcs)
{
	assert(t->frozen && v >= 0 && v < t->n);
	*arcs = t->in_arcs + t->in_first[v];
	return t->in_first[v + 1] - t->in_first[v];
}

enum topo_kind topo_node_kind(const struct topo *t, int u)
{
	assert(u >= 0 && u < t->n);
	return (enum topo_kind)t->nodes[u].kind;
}

unsigned topo_node_flags(const struct topo *t, int u)
{
	assert(u >= 0 && u < t->n);
	return t->nodes[u].flags;
}

int topo_find_arc(const struct topo *t, int u, int v)
{
	int first, n = topo_out(t, u, &first);

	for (int a = first; a < first + n; a++) {
		if (t->arcs.v[a].dst == v) {
			return a;
		}
	}
	return -1;
}

/* Adds t's limits to r, the arcs of which are those of t in the order of in_arcs. */
static int reverse_limits(const struct topo *t, struct topo *r, struct err *err)
{
	int32_t *place;
	int rc;

	if (t->limits.n == 0) {
		return 0;
	}
	place = x_alloc(t->arcs.n, sizeof(*place));
	for (int a = 0; a < topo_m(t); a++) {
		place[t->in_arcs[a]] = a;
	}
	rc = topo_copy_limits(t, place, r, err);
	free(place);
	return rc;
}

int topo_transpose(const struct topo *t, struct topo **out, int32_t *back, struct err *err)
{
	struct topo *r;
	int rc;

	assert(t->frozen);
	rc = topo_new(t->n, &r, err);
	if (rc) {
		return rc;
	}
	r->cayley = t->cayley;
	memcpy(r->nodes, t->nodes, (size_t)t->n * sizeof(*t->nodes));
	/* Arcs by their target are the reversed arcs by their source. */
	for (int a = 0; a < topo_m(t); a++) {
		const struct topo_arc *arc = topo_arc(t, t->in_arcs[a]);

		rc = topo_add_arc_like(r, arc->dst, arc->src, arc, err);
		if (rc) {
			goto fail;
		}
		if (back) {
			back[a] = t->in_arcs[a];
		}
	}
	if ((rc = reverse_limits(t, r, err)) || (rc = topo_group_copy(t->group, &r->group, err))) {
		goto fail;
	}
	topo_freeze(r);
	*out = r;
	return 0;
fail:
	topo_free(r);
	return rc;
}

/* n terminals and these arcs, not frozen. */
static int with_arcs(int n, const struct topo_arc *arcs, size_t m, struct topo **out,
		     struct err *err)
{
	int rc = topo_new(n, out, err);

	for (size_t a = 0; a < m && !rc; a++) {
		rc = topo_add_arc_like(*out, arcs[a].src, arcs[a].dst, &arcs[a], err);
		if (rc) {
			topo_free(*out);
		}
	}
	return rc;
}

int topo_copy(const struct topo *t, struct topo **out, struct err *err)
{
	struct topo *copy;
	int rc = with_arcs(t->n, t->arcs.v, t->arcs.n, &copy, err);

	if (rc) {
		return rc;
	}
	memcpy(copy->nodes, t->nodes, (size_t)t->n * sizeof(*t->nodes));
	rc = topo_copy_limits(t, NULL, copy, err);
	if (!rc) {
		rc = topo_group_copy(t->group, &copy->group, err);
	}
	if (rc) {
		topo_free(copy);
		return rc;
	}
	topo_freeze(copy);
	*out = copy;
	return 0;
}

int topo_copy_forwarding(const struct topo *t, enum topo_kind kind, struct topo **out,
			 struct err *err)
{
	int rc = topo_copy(t, out, err);

	for (int u = 0; u < t->n && !rc; u++) {
		if ((*out)->nodes[u].kind == kind) {
			(*out)->nodes[u] = (struct topo_node){ TOPO_SWITCH, 0 };
		}
	}
	return rc;
}

int topo_from_arcs(int n, const struct topo_arc *arcs, size_t m, struct topo **out, struct err *err)
{
	struct topo *t;
	int rc = with_arcs(n, arcs, m, &t, err);

	if (rc) {
		return rc;
	}
	topo_freeze(t);
	*out = t;
	return 0;
}
