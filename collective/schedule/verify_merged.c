/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replay of sums that are merged on their way.
 *
 * Of each rank it is kept whose contributions it has, and of each number there whose came under
 * it. What a step sends is looked up in what was there before it, and only then added. A rank that
 * gets the whole sum loses its own contribution by that, and has to get it back.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collective/schedule/private.h"
#include "lib/base/alloc.h"

/* A contribution under a number of a rank, in a list. */
struct merge_entry {
	int32_t rank, next;	/* next: + 1, 0: the last */
};

/* One that a move of the step at hand brings. */
struct merge_arrival {
	const struct coll_move *by;
	int32_t rank;
};

/* Nothing yet; to the own contribution; in its place. */
enum merge_mode { MERGE_NONE, MERGE_ADDED, MERGE_WHOLE };

/* Contributions that are kept, of all ranks. */
#define MAX_ENTRIES (1u << 25)

struct merge_replay {
	int n;
	bool *has;		/* rank * n + contribution; of a whole sum not looked at */
	int32_t *count;		/* contributions of a rank */
	uint8_t *mode;		/* by which they come, enum merge_mode */
	int32_t *list;		/* rank * n + number: its first entry, + 1 */
	VEC(struct merge_entry) entries;
	VEC(struct merge_arrival) arrivals;
	VEC(const struct coll_move *) copies;
	struct coll_merge_fault *fault;
	struct arrays arrays;
};

static int fail(struct merge_replay *r, const struct coll_move *at, const char *what)
{
	r->fault->at = at;
	snprintf(r->fault->what, sizeof(r->fault->what), "%s", what);
	return WEFT_EVERIFY;
}

static void arrive(struct merge_replay *r, const struct coll_move *by, int rank)
{
	vec_push(&r->arrivals, (struct merge_arrival){ by, rank });
}

/* What a move sends of what its tail has. */
static int send(struct merge_replay *r, const struct coll_move *m)
{
	size_t from = (size_t)m->src * (size_t)r->n;
	int32_t at;

	if (m->op == COLL_OP_COPY) {
		vec_push(&r->copies, m);
		return r->count[m->src] == r->n ? 0 : fail(r, m, "copy of an incomplete sum");
	}
	if (m->op == COLL_OP_REDUCE) {
		for (int u = 0; u < r->n && r->count[m->src] < r->n; u++) {
			if (r->has[from + (size_t)u]) {
				arrive(r, m, u);
			}
		}
		return r->count[m->src] < r->n ? 0 : fail(r, m, "a contribution is summed twice");
	}
	at = r->list[from + (size_t)m->of];
	if (at == 0) {
		snprintf(r->fault->what, sizeof(r->fault->what),
			 "what is kept under number %d is forwarded before it has come", m->of);
		r->fault->at = m;
		return WEFT_EVERIFY;
	}
	for (; at > 0; at = r->entries.v[at - 1].next) {
		arrive(r, m, r->entries.v[at - 1].rank);
	}
	return 0;
}

/* What takes the place of a rank's own contribution, and what is added to that, do not mix. */
static int set_mode(struct merge_replay *r, const struct coll_move *m)
{
	enum merge_mode mode = coll_is_whole(r->n, m->kept) ? MERGE_WHOLE : MERGE_ADDED;

	if (r->mode[m->dst] == MERGE_NONE && mode == MERGE_WHOLE) {
		memset(&r->has[(size_t)m->dst * (size_t)r->n], 0, (size_t)r->n * sizeof(*r->has));
		r->count[m->dst] = 0;
	}
	if (r->mode[m->dst] != MERGE_NONE && r->mode[m->dst] != mode) {
		return fail(r, m, "sums are added to a rank's own, and take its place");
	}
	r->mode[m->dst] = (uint8_t)mode;
	return 0;
}

static int add(struct merge_replay *r, const struct merge_arrival *a)
{
	const struct coll_move *m = a->by;
	bool *has = &r->has[(size_t)m->dst * (size_t)r->n + (size_t)a->rank];
	int rc = r->count[m->dst] == r->n ? fail(r, m, "a contribution is summed twice")
					  : set_mode(r, m);

	if (rc) {
		return rc;
	}
	if (*has) {
		return fail(r, m, "a contribution is summed twice");
	}
	*has = true;
	r->count[m->dst]++;
	return 0;
}

static int receive(struct merge_replay *r, const struct merge_arrival *a)
{
	const struct coll_move *m = a->by;
	int number = m->kept ? coll_kept_number(r->n, m->kept)
		     : m->op == COLL_OP_FORWARD ? m->of : m->src;
	int32_t *list = &r->list[(size_t)m->dst * (size_t)r->n + (size_t)number];
	int rc = coll_is_apart(r->n, m->kept) ? 0 : add(r, a);

	if (rc || coll_is_whole(r->n, m->kept)) {
		return rc;
	}
	if (r->entries.n == MAX_ENTRIES) {
		return fail(r, m, "more than 2^25 contributions are kept");
	}
	vec_push(&r->entries, (struct merge_entry){ a->rank, *list });
	*list = (int32_t)r->entries.n;
	return 0;
}

/* Copies come last: a sum that comes beside one is twice there whichever is the faster. More than
 * the contributions of all to all do not come: memory is that of these. */
static int step(struct merge_replay *r, const struct coll_move *m, int n, int class)
{
	int rc = 0;

	r->arrivals.n = r->copies.n = 0;
	for (int i = 0; i < n && !rc; i++) {
		rc = coll_covers(&m[i], class) ? send(r, &m[i]) : 0;
		if (!rc && r->arrivals.n > (size_t)r->n * (size_t)r->n) {
			rc = fail(r, &m[i], "a contribution is summed twice");
		}
	}
	for (size_t i = 0; i < r->arrivals.n && !rc; i++) {
		rc = receive(r, &r->arrivals.v[i]);
	}
	for (size_t i = 0; i < r->copies.n && !rc; i++) {
		int32_t *count = &r->count[r->copies.v[i]->dst];

		rc = *count == r->n ? fail(r, r->copies.v[i], "delivered twice") : 0;
		*count = r->n;
	}
	return rc;
}

static int check_end(struct merge_replay *r)
{
	for (int u = 0; u < r->n; u++) {
		int v = 0;

		if (r->count[u] == r->n) {
			continue;
		}
		while (r->has[(size_t)u * (size_t)r->n + (size_t)v]) {
			v++;
		}
		r->fault->at = NULL;
		r->fault->at_rank = u;
		snprintf(r->fault->what, sizeof(r->fault->what),
			 "has %d of %d contributions: that of rank %d does not arrive",
			 r->count[u], r->n, v);
		return WEFT_EVERIFY;
	}
	return 0;
}

int coll_replay_merged(int n, const struct coll_move *moves, int n_moves, int class,
		       struct coll_merge_fault *fault)
{
	struct merge_replay r = { .n = n, .fault = fault };
	size_t all = (size_t)n * (size_t)n;
	int rc = 0;

	arrays_add(&r.arrays, r.has, all);
	arrays_add(&r.arrays, r.list, all);
	arrays_add(&r.arrays, r.count, n);
	arrays_add(&r.arrays, r.mode, n);
	for (int u = 0; u < n; u++) {
		r.has[(size_t)u * (size_t)(n + 1)] = true;
		r.count[u] = 1;
	}
	for (int i = 0, end; i < n_moves && !rc; i = end) {
		for (end = i; end < n_moves && moves[end].step == moves[i].step;) {
			end++;
		}
		rc = step(&r, &moves[i], end - i, class);
	}
	if (!rc) {
		rc = check_end(&r);
	}
	vec_fini(&r.entries);
	vec_fini(&r.arrivals);
	vec_fini(&r.copies);
	arrays_fini(&r.arrays);
	return rc;
}
