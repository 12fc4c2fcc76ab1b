/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Transfers in other steps, where arcs have room.
 *
 * The fullest arc of every step sets its time. Shard by shard, in the order of
 * their steps, transfers move as early as what they send is there, then, in
 * the next round, as late as what needs them allows; never into a step where
 * their arc would become the fullest. So T_B only falls, and the rounds end
 * when it does not. Of a compact schedule the transfers that it keeps move, and all
 * that they stand for with them.
 */
#include <stdlib.h>
#include <string.h>

#include "collective/schedule/private.h"
#include "lib/base/order.h"

struct coll_tightening {
	const struct coll_sched *s;
	const struct topo *t;
	int n, steps, chunks;
	int m;			/* orbits of arcs */
	struct coll_xfer *x;	/* by origin, then step */
	size_t n_x;
	int64_t scale;		/* a chunk takes scale / capacity of an arc */
	int64_t *load;		/* step * m + orbit */
	int64_t *top;		/* of a step: its fullest arc */
	int32_t *bound;		/* of the shard at hand, node * chunks + chunk:
				 * the first step it can leave in, or the last
				 * it can arrive in */
	struct arrays arrays;	/* all of these */
};

static int64_t cost(const struct coll_tightening *o, const struct coll_xfer *x)
{
	return (x->last - x->first + 1) *
	       (o->scale / topo_arc(o->t, x->arc)->cap);
}

static int64_t *load_of(const struct coll_tightening *o, int step, int arc)
{
	return &o->load[(size_t)step * (size_t)o->m +
			(size_t)coll_orbit(o->s->action, arc)];
}

ORDER_BY(by_shard, struct coll_xfer, origin, step, arc, first)

/* The sum of the fullest arcs; sets them too. */
static int64_t find_tops(struct coll_tightening *o)
{
	int64_t sum = 0;

	for (int t = 0; t < o->steps; t++) {
		o->top[t] = 0;
		for (int a = 0; a < o->m; a++) {
			int64_t l = o->load[(size_t)t * (size_t)o->m + (size_t)a];

			o->top[t] = l > o->top[t] ? l : o->top[t];
		}
		sum += o->top[t];
	}
	return sum;
}

static int overlap_init(struct coll_tightening *o, const struct coll_sched *s, struct err *err)
{
	*o = (struct coll_tightening){ .s = s, .t = s->topo, .n = s->ranks, .steps = s->steps,
			       .chunks = s->chunks, .n_x = s->xfers.n,
			       .m = coll_orbits(s) };
	arrays_add(&o->arrays, o->x, o->n_x);
	arrays_add(&o->arrays, o->load, (size_t)o->steps * (size_t)o->m);
	arrays_add(&o->arrays, o->top, o->steps);
	arrays_add(&o->arrays, o->bound, (size_t)o->n * (size_t)o->chunks);
	if (o->n_x > 0) {
		memcpy(o->x, s->xfers.v, o->n_x * sizeof(*o->x));
	}
	return coll_common_scale(o->t, &o->scale, err);
}

static void fill_loads(struct coll_tightening *o)
{
	for (size_t i = 0; i < o->n_x; i++) {
		*load_of(o, o->x[i].step, o->x[i].arc) += cost(o, &o->x[i]);
	}
}

static void set_bounds(struct coll_tightening *o, int32_t value)
{
	for (size_t i = 0; i < (size_t)o->n * (size_t)o->chunks; i++) {
		o->bound[i] = value;
	}
}

static int32_t *bounds_at(const struct coll_tightening *o, int node)
{
	return o->bound + (size_t)node * (size_t)o->chunks;
}

/* Moves x to the first step of from, from + by, ... with room; its own has. */
static void move(struct coll_tightening *o, struct coll_xfer *x, int from, int by)
{
	int64_t need = cost(o, x);

	*load_of(o, x->step, x->arc) -= need;
	while (from != x->step && *load_of(o, from, x->arc) + need > o->top[from]) {
		from += by;
	}
	x->step = from;
	*load_of(o, x->step, x->arc) += need;
}

/* Where a shard's transfers, from..to - 1, were sorted by the steps they had:
 * all that a transfer needs has moved before. */
static void move_earlier(struct coll_tightening *o, size_t from, size_t to)
{
	set_bounds(o, 0);
	for (size_t i = from; i < to; i++) {
		struct coll_xfer *x = &o->x[i];
		const struct topo_arc *a = topo_arc(o->t, x->arc);
		const int32_t *have = bounds_at(o, a->src);
		int32_t *get = bounds_at(o, a->dst), ready = 0;

		for (int c = x->first; c <= x->last; c++) {
			ready = have[c] > ready ? have[c] : ready;
		}
		move(o, x, ready, 1);
		for (int c = x->first; c <= x->last; c++) {
			get[c] = x->step + 1 > get[c] ? x->step + 1 : get[c];
		}
	}
}

static void move_later(struct coll_tightening *o, size_t from, size_t to)
{
	set_bounds(o, o->steps - 1);
	for (size_t i = to; i-- > from;) {
		struct coll_xfer *x = &o->x[i];
		const struct topo_arc *a = topo_arc(o->t, x->arc);
		const int32_t *due_at = bounds_at(o, a->dst);
		int32_t *due = bounds_at(o, a->src), last = o->steps - 1;

		for (int c = x->first; c <= x->last; c++) {
			last = due_at[c] < last ? due_at[c] : last;
		}
		move(o, x, last, -1);
		for (int c = x->first; c <= x->last; c++) {
			due[c] = x->step - 1 < due[c] ? x->step - 1 : due[c];
		}
	}
}

/* All shards, earlier or later; returns T_B in units of loads. */
static int64_t move_all(struct coll_tightening *o, bool later)
{
	qsort(o->x, o->n_x, sizeof(*o->x), by_shard);
	for (size_t from = 0, to; from < o->n_x; from = to) {
		for (to = from; to < o->n_x && o->x[to].origin == o->x[from].origin; to++) {
		}
		if (later) {
			move_later(o, from, to);
		} else {
			move_earlier(o, from, to);
		}
	}
	return find_tops(o);
}

/* Leaves empty steps out: o->top becomes what a step is called now. */
static int emit(struct coll_tightening *o, struct coll_sched *out, struct err *err)
{
	int64_t kept = 0;
	int rc = 0;

	for (int t = 0; t < o->steps; t++) {
		bool empty = o->top[t] == 0;

		o->top[t] = kept;
		kept += !empty;
	}
	for (size_t i = 0; i < o->n_x && !rc; i++) {
		struct coll_xfer x = o->x[i];

		x.step = (int32_t)o->top[x.step];
		rc = coll_add(out, &x, err);
	}
	return rc;
}

static int check_kind(const struct coll_sched *s, struct err *err)
{
	int rc;

	if (s->kind == COLL_ALLTOALL || coll_has_root(s->kind) || s->lights.n > 0) {
		return err_set(err, WEFT_EUNSUPPORTED,
			       "overlap of %s: not supported",
			       s->lights.n > 0 ? "a schedule with light"
					       : coll_kind_name(s->kind));
	}
	rc = coll_refuse_forwards(s, "overlap", err);
	return rc ? rc : coll_refuse_embedded(s, "overlapping", err);
}

int coll_tighten_steps(const struct coll_sched *s, struct coll_sched **out, struct err *err)
{
	struct coll_sched *p = NULL;
	struct coll_tightening o = { 0 };
	int64_t best, now;
	int rc;

	*out = NULL;
	if ((rc = check_kind(s, err)) || (rc = overlap_init(&o, s, err))) {
		goto out;
	}
	fill_loads(&o);
	best = find_tops(&o);
	for (int k = 0; k < COLL_TIGHTEN_ROUNDS; k++) {
		now = move_all(&o, k % 2);
		if (k > 1 && now == best) {
			break;
		}
		best = now;
	}
	if ((rc = coll_new_with_group(s, s->kind, NULL, s->chunks, &p, err)) ||
	    (rc = emit(&o, p, err)) || (rc = coll_finish(p, err)) ||
		    (rc = coll_prove(p, NULL, err))) {
		goto out;
	}
	*out = p;
	p = NULL;
out:
	coll_free(p);
	arrays_fini(&o.arrays);
	return rc;
}
