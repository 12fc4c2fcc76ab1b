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

#define GAP 2e-4	/* of loads, where a step costs time */
#define LOSS 3e-4	/* of loads, by rounding them to chunks, likewise */
#define FEW 60		/* chunks, of which all are looked at on small digraphs */
#define SMALL (1 << 13)	/* nodes times arcs */

struct bfb_late_sides {
	const struct coll_late_aim *aim;	/* or NULL */
	struct topo_group *group;
	struct topo *reversed;
	int32_t *back;		/* arcs of reversed to arcs of the digraph */
	int32_t *same;		/* and to those that are alike, where each has its reverse */
	struct bfb_late v[2];
	int n;			/* solved: one serves both ways with `same` */
};

static void sides_fini(struct bfb_late_sides *s)
{
	for (int i = 0; i < s->n; i++) {
		bfb_late_fini(&s->v[i]);
	}
	topo_group_free(s->group);
	topo_free(s->reversed);
	free(s->back);
	free(s->same);
}

/* An arc of t like arc a of r that is not taken yet; -1: none. */
static int find_like(const struct topo *t, const struct topo *r, int a, const bool *taken)
{
	const struct topo_arc *arc = topo_arc(r, a);
	int first, n = topo_out(t, arc->src, &first);

	for (int b = first; b < first + n; b++) {
		if (!taken[b] && topo_arc(t, b)->dst == arc->dst &&
		    topo_arc(t, b)->cap == arc->cap) {
			return b;
		}
	}
	return -1;
}

/* Pairs the arcs of the reversed digraph off with those of t, if they are the same. O(m d). */
static void match_sides(struct bfb_late_sides *s, const struct topo *t)
{
	bool *taken = x_new((size_t)topo_m(t) + 1, sizeof(*taken));

	s->same = x_alloc((size_t)topo_m(t) + 1, sizeof(*s->same));
	for (int a = 0; a < topo_m(t) && s->same; a++) {
		s->same[a] = find_like(t, s->reversed, a, taken);
		if (s->same[a] < 0) {
			free(s->same);
			s->same = NULL;
		} else {
			taken[s->same[a]] = true;
		}
	}
	free(taken);
}

/* What a side is solved for, of a collective of so many, with `loads` for the other. */
static struct bfb_late_goal goal_of(const struct bfb_late_sides *s, const struct topo *t,
				    int phases, double loads)
{
	const struct coll_cost *c = s->aim->cost;
	double step_ns = (double)(c->alpha_ns + c->hop_ns + c->message_ns);
	double load_ns = (double)c->size_bytes / topo_n(t) * 8e9 / (double)c->link_bps /
			 (double)bfb_late_unit(t);
	int alike = s->same ? 2 : 1;

	return (struct bfb_late_goal){
		.gap = GAP, .step_ns = phases * step_ns, .load_ns = alike * load_ns,
		.also_ns = loads * load_ns, .work = s->aim->work,
		.below_ns = s->aim->below_ns > 0 ? s->aim->below_ns : HUGE_VAL,
	};
}

static int solve_side(struct bfb_late_sides *s, const struct topo *t, int extra, int phases,
		      double loads, struct err *err)
{
	int sources = s->group ? topo_group_orbits(s->group) : topo_n(t);
	struct bfb_late_goal goal;

	if (s->aim) {
		goal = goal_of(s, t, phases, loads);
	}
	return bfb_late_solve(&s->v[s->n++], t, s->group, sources, extra, s->aim ? &goal : NULL,
			      err);
}

/* Solves what the kind asks for. sides_fini also after an error. */
static int solve_sides(struct bfb_late_sides *s, enum coll_kind kind, const struct topo *t,
		       int extra, struct err *err)
{
	int phases = kind == COLL_ALLREDUCE ? 2 : 1, rc = topo_group_find(t, &s->group, err);
	double other = 0;

	if (!rc && kind != COLL_ALLGATHER) {
		s->back = x_alloc((size_t)topo_m(t) + 1, sizeof(*s->back));
		if ((rc = topo_transpose(t, &s->reversed, s->back, err))) {
			return rc;
		}
		if (phases == 2) {
			match_sides(s, t);
			other = s->same ? 0 : bfb_late_bound(t);
		}
		rc = solve_side(s, s->reversed, extra, phases, other, err);
		if (rc || s->v[0].is_hopeless) {
			return rc;
		}
		other = bfb_late_loads(&s->v[0]);
	}
	if (!rc && kind != COLL_REDUCE_SCATTER && !s->same) {
		rc = solve_side(s, t, extra, phases, other, err);
	}
	return rc;
}

/* Whether what was found takes less than it has to. */
static bool is_of_use(const struct bfb_late_sides *s)
{
	const struct bfb_late *last = &s->v[s->n - 1];

	return !s->aim || (!last->is_hopeless &&
			   bfb_late_ns(last, bfb_late_loads(last)) < last->goal.below_ns);
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

/* All sides in so many chunks; *loss: the largest, of their loads. */
static int round_up(struct bfb_late_sides *s, int chunks, double *loss, struct err *err)
{
	int rc = 0;

	*loss = 0;
	for (int i = 0; i < s->n && !rc; i++) {
		struct bfb_late *l = &s->v[i];
		double sum = 0;

		rc = bfb_late_round_up(l, chunks, err);
		for (int t = 0; t < l->p.steps && !rc; t++) {
			sum += (double)l->load[t] / chunks;
		}
		*loss = fmax(*loss, sum / bfb_late_loads(l) - 1);
	}
	return rc;
}

/* Loads in so many chunks are whole numbers: their sums may lose next to nothing. */
static bool may_lose_little(const struct bfb_late_sides *s, int chunks)
{
	bool may = true;

	for (int i = 0; i < s->n; i++) {
		double sum = bfb_late_loads(&s->v[i]) * chunks;

		may = may && ceil(sum * (1 - GAP)) <= sum * (1 + LOSS);
	}
	return may;
}

/* Few chunks that lose next to nothing: those up to FEW that may, on small digraphs;
 * else what so many lose tells how many that takes. */
static int choose_few(struct bfb_late_sides *s, int *chunks, struct err *err)
{
	static const int numbers[] = { 12, 24, 60, 120, 360, 840, 2520, COLL_BFB_MAX_CHUNKS };
	int64_t size = (int64_t)topo_n(s->v[0].t) * topo_m(s->v[0].t);
	double loss = 1, need = 0;
	int rc = 0, tries = size <= SMALL ? MAX_TRIES : 0;

	for (*chunks = 0; *chunks < FEW && tries > 0 && loss > LOSS && !rc;) {
		if (may_lose_little(s, ++*chunks)) {
			rc = round_up(s, *chunks, &loss, err);
			tries--;
		}
	}
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]) && loss > LOSS && !rc; i++) {
		*chunks = numbers[i];
		if (*chunks >= need || *chunks == COLL_BFB_MAX_CHUNKS) {
			rc = round_up(s, *chunks, &loss, err);
			need = *chunks * loss / LOSS / 2;
		}
	}
	return rc;
}

/* The fewest chunks that are found to lose nothing, or else as many as may be. */
static int choose_chunks(struct bfb_late_sides *s, int *chunks, struct err *err)
{
	int tries = 0, searches = 0, rc = 0;
	bool fits = false;
	double loss;

	if (s->aim) {
		return choose_few(s, chunks, err);
	}
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
	return round_up(s, *chunks, &loss, err);
}

/* ---- transfers ---- */

/* Where transfers of a side go. */
struct bfb_late_emission {
	struct coll_sched *sched;
	const struct bfb_late *l;
	const int32_t *arcs;	/* of l's digraph to those of the schedule; NULL: the same */
	bool reduces;		/* backwards */
	int *step;		/* of a step of l, from 1, by time; those without loads left out */
	int *offset;		/* of a piece in the shard */
};

static int emit(const struct bfb_late_emission *e, const struct bfb_taker *k, int slot, int origin,
		int first, int n, struct err *err)
{
	int arc = k->links[slot % k->n_links];
	struct coll_xfer x = {
		.step = e->step[slot / k->n_links], .arc = e->arcs ? e->arcs[arc] : arc,
		.origin = origin, .dest = COLL_NO_DEST, .first = first, .last = first + n - 1,
		.op = e->reduces ? COLL_OP_REDUCE : COLL_OP_COPY,
	};

	return coll_add(e->sched, &x, err);
}

/* Deals the slots of one group out to its origins, whole pieces as far as they go. */
static int deal(const struct bfb_late_emission *e, const struct bfb_taker *k, int group,
		const int32_t *origins, int64_t *share, struct err *err)
{
	const struct bfb_group *g = &k->b.groups[group];
	int piece = k->groups.v[group].piece, use = g->first, rc = 0;
	int64_t size = e->l->sizes[piece];

	for (int i = 0; i < k->groups.v[group].count; i++) {
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
		origins += k->groups.v[g].count;
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
	for (int t = 0; t < l->p.steps && e->reduces; t++) {
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

	for (int i = 0; i < (s->same ? 2 : s->n) && !rc; i++) {
		const struct bfb_late *l = &s->v[i < s->n ? i : 0];
		bool reduces = l->t == s->reversed && i == 0;
		const int32_t *arcs = reduces ? s->back : s->same;
		struct bfb_late_emission e = { sched, l, arcs, reduces,
					       x_alloc((size_t)l->p.steps, sizeof(int)),
					       x_alloc((size_t)l->p.count, sizeof(int)) };

		rc = emit_side(&e, &base, err);
		free(e.step);
		free(e.offset);
	}
	return rc;
}

int coll_late(enum coll_kind kind, struct topo *topo, int extra, const struct coll_late_aim *aim,
	      struct coll_sched **out, struct err *err)
{
	struct bfb_late_sides s = { .aim = aim };
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
	if ((rc = solve_sides(&s, kind, topo, extra, err)) || !is_of_use(&s) ||
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
