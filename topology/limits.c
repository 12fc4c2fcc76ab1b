/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared limits: sets of arcs with a capacity of their own; see topology.h.
 *
 * The arcs of all limits stand in one array, limit after limit. Until the
 * digraph is frozen they have the numbers of the order in which arcs were added,
 * and a limit knows only how many it has; freezing renames them, sorts each
 * limit's, and indexes limits by arc. A digraph without limits pays nothing.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "topology/private.h"

static int compare_numbers(const void *a, const void *b)
{
	const int32_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* The last n of limit_arcs, sorted, are different arcs of t. */
static int check_arcs(const struct topo *t, int n, struct err *err)
{
	const int32_t *arcs = t->limit_arcs.v + (t->limit_arcs.n - (size_t)n);

	for (int i = 0; i < n; i++) {
		if (arcs[i] < 0 || (size_t)arcs[i] >= t->arcs.n) {
			return err_set(err, WEFT_EINVAL, "a limit on arc %d: there are %zu arcs",
				       arcs[i], t->arcs.n);
		}
		if (i > 0 && arcs[i] == arcs[i - 1]) {
			return err_set(err, WEFT_EINVAL, "a limit names arc %d twice", arcs[i]);
		}
	}
	return 0;
}

int topo_add_limit(struct topo *t, const int32_t *arcs, int n, int64_t cap, struct err *err)
{
	int rc;

	assert(!t->frozen);
	if (n < 1 || cap < 1) {
		return err_set(err, WEFT_EINVAL, "a limit of %d arcs and capacity %lld: expected "
			       "at least one of each", n, (long long)cap);
	}
	if ((size_t)n > TOPO_MAX_ARCS - t->limit_arcs.n) {
		return err_set(err, WEFT_ELIMIT, "the limits name more than %d arcs",
			       TOPO_MAX_ARCS);
	}
	vec_reserve(&t->limit_arcs, (size_t)n);
	vec_reserve(&t->limits, 1);
	memcpy(t->limit_arcs.v + t->limit_arcs.n, arcs, (size_t)n * sizeof(*arcs));
	qsort(t->limit_arcs.v + t->limit_arcs.n, (size_t)n, sizeof(*arcs), compare_numbers);
	t->limit_arcs.n += (size_t)n;
	rc = check_arcs(t, n, err);
	if (rc) {
		t->limit_arcs.n -= (size_t)n;
		return rc;
	}
	t->limits.v[t->limits.n++] = (struct topo_limit){ NULL, n, cap };
	return 0;
}

/* The CSR numbers of the arcs, by the order in which they were added. */
static int32_t *places_of_arcs(const struct topo *t)
{
	int32_t *place = x_new(t->arcs.n + 1, sizeof(*place));
	int32_t *next = x_new((size_t)t->n + 1, sizeof(*next));

	for (size_t a = 0; a < t->arcs.n; a++) {
		next[t->arcs.v[a].src + 1]++;
	}
	for (int u = 0; u < t->n; u++) {
		next[u + 1] += next[u];
	}
	for (size_t a = 0; a < t->arcs.n; a++) {
		place[a] = next[t->arcs.v[a].src]++;
	}
	free(next);
	return place;
}

/* Gives every limit its arcs, renamed and ascending. */
static void rename_arcs(struct topo *t, const int32_t *place)
{
	int32_t *arcs = t->limit_arcs.v;

	for (size_t i = 0; i < t->limits.n; i++) {
		struct topo_limit *l = &t->limits.v[i];

		for (int k = 0; k < l->n; k++) {
			arcs[k] = place[arcs[k]];
		}
		qsort(arcs, (size_t)l->n, sizeof(*arcs), compare_numbers);
		l->arcs = arcs;
		arcs += l->n;
	}
}

/* Lists the limits of every arc. */
static void index_limits(struct topo *t)
{
	int32_t *first = t->arc_first_limit;
	size_t m = t->arcs.n;

	for (size_t i = 0; i < t->limit_arcs.n; i++) {
		first[t->limit_arcs.v[i] + 1]++;
	}
	for (size_t a = 0; a < m; a++) {
		first[a + 1] += first[a];
	}
	/* Filling moves every first[a] to first[a + 1]; then shift back. */
	for (size_t i = 0; i < t->limits.n; i++) {
		for (int k = 0; k < t->limits.v[i].n; k++) {
			t->arc_limits[first[t->limits.v[i].arcs[k]]++] = (int32_t)i;
		}
	}
	memmove(first + 1, first, m * sizeof(*first));
	first[0] = 0;
}

void topo_freeze_limits(struct topo *t)
{
	int32_t *place;

	if (t->limits.n == 0) {
		return;
	}
	place = places_of_arcs(t);
	t->arc_first_limit = x_new(t->arcs.n + 1, sizeof(*t->arc_first_limit));
	t->arc_limits = x_new(t->limit_arcs.n, sizeof(*t->arc_limits));
	rename_arcs(t, place);
	index_limits(t);
	free(place);
}

int topo_n_limits(const struct topo *t)
{
	return (int)t->limits.n;
}

const struct topo_limit *topo_limit(const struct topo *t, int i)
{
	assert(t->frozen && i >= 0 && (size_t)i < t->limits.n);
	return &t->limits.v[i];
}

int topo_arc_limits(const struct topo *t, int arc, const int32_t **limits)
{
	assert(t->frozen && arc >= 0 && (size_t)arc < t->arcs.n);
	if (t->limits.n == 0) {
		*limits = NULL;
		return 0;
	}
	*limits = t->arc_limits + t->arc_first_limit[arc];
	return t->arc_first_limit[arc + 1] - t->arc_first_limit[arc];
}

int topo_copy_limits(const struct topo *from, const int32_t *place, struct topo *to,
		     struct err *err)
{
	int32_t *arcs;
	int rc = 0;

	if (from->limits.n == 0) {
		return 0;
	}
	arcs = x_alloc(from->arcs.n, sizeof(*arcs));
	for (int i = 0; i < topo_n_limits(from) && !rc; i++) {
		const struct topo_limit *l = topo_limit(from, i);
		int n = 0;

		for (int k = 0; k < l->n; k++) {
			int32_t a = place ? place[l->arcs[k]] : l->arcs[k];

			if (a >= 0) {
				arcs[n++] = a;
			}
		}
		rc = n > 0 ? topo_add_limit(to, arcs, n, l->cap, err) : 0;
	}
	free(arcs);
	return rc;
}

/* By size, capacity, and arcs. */
static int compare_limits(const void *a, const void *b)
{
	const struct topo_limit *x = a, *y = b;

	if (x->n != y->n) {
		return x->n < y->n ? -1 : 1;
	}
	if (x->cap != y->cap) {
		return x->cap < y->cap ? -1 : 1;
	}
	for (int k = 0; k < x->n; k++) {
		if (x->arcs[k] != y->arcs[k]) {
			return x->arcs[k] < y->arcs[k] ? -1 : 1;
		}
	}
	return 0;
}

bool topo_maps_limits(const struct topo *t, const int32_t *image)
{
	size_t n = t->limits.n;
	int32_t *arcs = x_alloc(t->limit_arcs.n + 1, sizeof(*arcs)), *at = arcs;
	struct topo_limit *have = x_alloc(2 * n + 1, sizeof(*have));
	struct topo_limit *want = have + n;
	bool same = true;

	for (size_t i = 0; i < n; i++) {
		have[i] = want[i] = t->limits.v[i];
		for (int k = 0; k < have[i].n; k++) {
			at[k] = image[have[i].arcs[k]];
		}
		qsort(at, (size_t)want[i].n, sizeof(*at), compare_numbers);
		want[i].arcs = at;
		at += want[i].n;
	}
	qsort(have, n, sizeof(*have), compare_limits);
	qsort(want, n, sizeof(*want), compare_limits);
	for (size_t i = 0; same && i < n; i++) {
		same = compare_limits(&have[i], &want[i]) == 0;
	}
	free(arcs);
	free(have);
	return same;
}
