/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Schedules that are not breadth-first: late takers and staggered pieces.
 *
 * Each direction is solved for the loads of its steps and the sizes of its pieces. Their
 * common denominator, where it is small enough, is the number of chunks, and the schedule
 * is as good as the program says; else sizes and loads are rounded. Then every node's flow is
 * in whole chunks, and is dealt out to the origins.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "collective/bfb/late.h"
#include "collective/bfb/private.h"
#include "lib/base/alloc.h"

#define NEAR 2e-3	/* to a whole number of chunks, by the solver's accuracy */
#define NEAR_SUM 1e-4	/* of all loads */
#define MAX_TRIES 8	/* numbers of chunks that may lose nothing */

struct bfb_late_sides {
	struct topo_group *group;
	struct topo *reversed;
	int32_t *back;		/* arcs of reversed to arcs of the digraph */
	struct bfb_late v[2];
	int n;
};

static void sides_fini(struct bfb_late_sides *s)
{
	for (int i = 0; i < s->n; i++) {
		bfb_late_fini(&s->v[i]);
	}
	topo_group_free(s->group);
	topo_free(s->reversed);
	free(s->back);
}

/* Solves what the kind asks for. sides_fini also after an error. */
static int solve_sides(struct bfb_late_sides *s, enum coll_kind kind, const struct topo *t,
		       int extra, struct err *err)
{
	int rc = topo_group_find(t, &s->group, err);
	int sources = s->group ? topo_group_orbits(s->group) : topo_n(t);

	if (!rc && kind != COLL_ALLGATHER) {
		s->back = x_alloc((size_t)topo_m(t) + 1, sizeof(*s->back));
		rc = topo_transpose(t, &s->reversed, s->back, err);
		if (!rc) {
			rc = bfb_late_solve(&s->v[s->n++], s->reversed, s->group, sources, extra,
					    err);
		}
	}
	if (!rc && kind != COLL_REDUCE_SCATTER) {
		rc = bfb_late_solve(&s->v[s->n++], t, s->group, sources, extra, err);
	}
	return rc;
}

/* ---- chunks ---- */

/* Largest distance of a load or size from whole chunks. */
static double miss(const struct bfb_late_sides *s, int chunks)
{
	double most = 0;

	for (int i = 0; i < s->n; i++) {
		const struct bfb_late *l = &s->v[i];

		for (int k = 0; k < l->p.steps + l->p.count; k++) {
			double x = l->x[k] * chunks;

			most = fmax(most, fabs(x - round(x)));
		}
	}
	return most;
}

/* The loads of all sides could be whole numbers of chunks. */
static bool may_be_whole(const struct bfb_late_sides *s, int chunks)
{
	bool may = true;

	for (int i = 0; i < s->n; i++) {
		double sum = bfb_late_loads(&s->v[i]) * chunks;

		may = may && fabs(sum - round(sum)) < NEAR_SUM;
	}
	return may;
}

typedef int bfb_late_cut(struct bfb_late *l, int chunks, bool *fits, struct err *err);

/* Tries to cut all sides into so many chunks without any loss. */
static int try_chunks(struct bfb_late_sides *s, bfb_late_cut *cut, int chunks, bool *fits,
		      struct err *err)
{
	int rc = 0;

	*fits = true;
	for (int i = 0; i < s->n && *fits && !rc; i++) {
		rc = cut(&s->v[i], chunks, fits, err);
	}
	return rc;
}

/* The fewest chunks that are found to lose nothing, or else as many as may be. */
static int choose_chunks(struct bfb_late_sides *s, int *chunks, struct err *err)
{
	int tries = 0, searches = 0, rc = 0;
	bool fits = false;

	for (*chunks = 1; *chunks <= COLL_BFB_MAX_CHUNKS; ++*chunks) {
		if (tries < MAX_TRIES && miss(s, *chunks) < NEAR) {
			tries++;
			rc = try_chunks(s, bfb_late_round, *chunks, &fits, err);
		} else if (searches < MAX_TRIES && may_be_whole(s, *chunks)) {
			searches++;
			rc = try_chunks(s, bfb_late_whole, *chunks, &fits, err);
		}
		if (rc || fits) {
			return rc;
		}
	}
	*chunks = COLL_BFB_MAX_CHUNKS;
	for (int i = 0; i < s->n && !rc; i++) {
		rc = bfb_late_round_up(&s->v[i], *chunks, err);
	}
	return rc;
}

/* ---- transfers ---- */

/* Where transfers of a side go. */
struct bfb_late_emission {
	struct coll_sched *sched;
	const struct bfb_late *l;
	const int32_t *back;	/* NULL: forwards */
	int *step;		/* of a step of l, from 1, by time; those without loads left out */
	int *offset;		/* of a piece in the shard */
};

static int emit(const struct bfb_late_emission *e, const struct bfb_taker *k, int slot, int origin,
		int first, int n, struct err *err)
{
	int arc = k->links[slot % k->n_links];
	struct coll_xfer x = {
		.step = e->step[slot / k->n_links], .arc = e->back ? e->back[arc] : arc,
		.origin = origin, .dest = COLL_NO_DEST, .first = first, .last = first + n - 1,
		.op = e->back ? COLL_OP_REDUCE : COLL_OP_COPY,
	};

	return coll_add(e->sched, &x, err);
}

/* Deals the slots of one group out to its origins, whole pieces as far as they go. */
static int deal(const struct bfb_late_emission *e, const struct bfb_taker *k, int group,
		const int32_t *origins, int64_t *share, struct err *err)
{
	const struct bfb_group *g = &k->b.groups[group];
	int piece = k->piece[group], use = g->first, rc = 0;
	int64_t size = e->l->sizes[piece];

	for (int i = 0; i < k->count[group]; i++) {
		for (int64_t from = 0; from < size && !rc;) {
			int64_t n;

			while (share[use] == 0) {
				use++;
			}
			n = share[use] < size - from ? share[use] : size - from;
			share[use] -= n;
			rc = emit(e, k, k->b.use[use], origins[i],
				  e->offset[piece] + (int)from, (int)n, err);
			from += n;
		}
	}
	return rc;
}

static int emit_taker(const struct bfb_late_emission *e, struct bfb_taker *k, struct err *err)
{
	const struct bfb_late *l = e->l;
	const int32_t *origins = k->origins;
	bool fits;
	int rc = bfb_taker_fit(k, l->p.steps, l->p.count, l->sizes, l->load, l->share, NULL, &fits,
			       err);

	for (int g = 0; g < k->b.n_groups && !rc; g++) {
		rc = deal(e, k, g, origins, l->share, err);
		origins += k->count[g];
	}
	return rc;
}

/* Adds a side's transfers from step `base`, and its steps to it. */
static int emit_side(struct bfb_late_emission *e, int *base, struct err *err)
{
	const struct bfb_late *l = e->l;
	int steps = 0, offset = 0, rc = 0;

	for (int t = 0; t < l->p.steps; t++) {
		e->step[t] = *base + steps;
		steps += l->load[t] > 0;
	}
	for (int t = 0; t < l->p.steps && e->back; t++) {
		e->step[t] = 2 * *base + steps - 1 - e->step[t];
	}
	for (int k = 0; k < l->p.count; k++) {
		e->offset[k] = offset;
		offset += (int)l->sizes[k];
	}
	for (int i = 0; i < l->p.sources && !rc; i++) {
		rc = emit_taker(e, &l->takers[i], err);
	}
	*base += steps;
	return rc;
}

static int emit_sides(const struct bfb_late_sides *s, struct coll_sched *sched, struct err *err)
{
	int base = 0, rc = 0;

	for (int i = 0; i < s->n && !rc; i++) {
		const struct bfb_late *l = &s->v[i];
		struct bfb_late_emission e = { sched, l, l->t == s->reversed ? s->back : NULL,
					       x_alloc((size_t)l->p.steps, sizeof(int)),
					       x_alloc((size_t)l->p.count, sizeof(int)) };

		rc = emit_side(&e, &base, err);
		free(e.step);
		free(e.offset);
	}
	return rc;
}

int coll_late(enum coll_kind kind, struct topo *topo, int extra, struct coll_sched **out,
	      struct err *err)
{
	struct bfb_late_sides s = { .n = 0 };
	struct coll_sched *sched = NULL;
	int chunks, rc = bfb_begin(kind, topo, 0, &sched, err);

	*out = NULL;
	if (rc) {
		return rc;
	}
	if (extra < 0 || extra > COLL_LATE_MAX_EXTRA) {
		rc = err_set(err, WEFT_EINVAL, "%d extra steps: expected 0 to %d", extra,
			     COLL_LATE_MAX_EXTRA);
		goto out;
	}
	if ((rc = solve_sides(&s, kind, topo, extra, err)) ||
	    (rc = choose_chunks(&s, &chunks, err))) {
		goto out;
	}
	coll_set_chunks(sched, chunks);
	rc = coll_set_group(sched, s.group, err);
	s.group = NULL;
	if (rc || (rc = emit_sides(&s, sched, err)) || (rc = coll_finish(sched, err)) ||
	    (rc = coll_prove(sched, NULL, err))) {
		goto out;
	}
	*out = sched;
	sched = NULL;
out:
	sides_fini(&s);
	coll_free(sched);
	return rc;
}
