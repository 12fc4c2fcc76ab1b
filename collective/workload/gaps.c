/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Light of which circuits are not there, as a port has failed: what is left of it, and schedules on
 * that. All groups of a collective run one schedule, at once, so it goes without what any of them
 * lacks; those that lack nothing would wait for the others anyway.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "collective/workload/private.h"
#include "lib/base/alloc.h"
#include "lib/base/order.h"

int drop_gaps(struct topo **t, const struct workload_gap *gaps, size_t n, struct err *err)
{
	struct topo *whole = *t, *left = NULL;
	bool *gone = x_new((size_t)topo_m(whole) + 1, sizeof(*gone));
	int rc = topo_new(topo_n(whole), &left, err);

	for (size_t i = 0; i < n; i++) {
		int a, degree = topo_out(whole, gaps[i].from, &a), end = a + degree;

		while (a < end && (gone[a] || topo_arc(whole, a)->dst != gaps[i].to)) {
			a++;
		}
		if (a < end) {
			gone[a] = true;
		}
	}
	for (int a = 0; a < topo_m(whole) && !rc; a++) {
		const struct topo_arc *x = topo_arc(whole, a);

		rc = gone[a] ? 0 : topo_add_arc(left, x->src, x->dst, x->cap, 0, err);
	}
	free(gone);
	topo_free(whole);
	*t = rc ? NULL : left;
	if (rc) {
		topo_free(left);
		return rc;
	}
	topo_freeze(left);
	return 0;
}

/* ---- what a group has left ---- */

/* A gap by positions in a rail, of the rail that begins with this rank. */
struct rail_gap {
	struct workload_gap at;
	int rail, again;	/* so many of that rail are the same */
};

ORDER_BY(by_rail, struct rail_gap, rail, at.from, at.to)

ORDER_BY(by_place, struct rail_gap, at.from, at.to, again)

/* Those of the light between two ranks of one rail; rail: the room of one. */
static size_t rail_gaps(const struct workload *w, const struct workload_light *l, uint32_t axes,
			int *rail, struct rail_gap *out)
{
	size_t n = 0;

	for (size_t i = 0; i < l->gaps.n; i++) {
		int to = workload_rail(w, axes, l->gaps.v[i].to, rail), first = rail[0], from;

		from = workload_rail(w, axes, l->gaps.v[i].from, rail);
		if (rail[0] == first) {
			out[n++] = (struct rail_gap){ { from, to }, first, 0 };
		}
	}
	return n;
}

void group_gaps(const struct workload *w, const struct workload_light *l, uint32_t axes,
		struct workload_light *out)
{
	struct rail_gap *v = x_new(l->gaps.n + 1, sizeof(*v));
	int *rail = x_new((size_t)workload_servers(w, axes), sizeof(*rail));
	size_t n = rail_gaps(w, l, axes, rail, v);

	qsort(v, n, sizeof(*v), by_rail);
	for (size_t i = 1; i < n; i++) {
		v[i].again = by_rail(&v[i - 1], &v[i]) == 0 ? v[i - 1].again + 1 : 0;
	}
	/* Of several rails that lack the same as often, one. */
	qsort(v, n, sizeof(*v), by_place);
	for (size_t i = 0; i < n; i++) {
		if (i == 0 || by_place(&v[i - 1], &v[i]) != 0) {
			vec_push(&out->gaps, v[i].at);
		}
	}
	free(v);
	free(rail);
}

/* ---- sends ---- */

int fewest_circuits(const struct workload *w, int op, const struct topo *light, int64_t *out,
		    struct err *err)
{
	const struct workload_op *o = &w->ops.v[op];
	int size = workload_ranks(w, o->axes), stride = 1;

	*out = INT64_MAX;
	for (size_t a = w->axes.n; !(o->axes >> --a & 1);) {
		stride *= w->axes.v[a].size;
	}
	for (int r = 0; r < topo_n(light); r++) {
		int at = r / stride % size + o->shift, to = r + o->shift * stride;
		int64_t n = at < 0 || at >= size ? INT64_MAX : circuits_between(light, r, to);

		if (n == 0) {
			return err_set(err, WEFT_EVERIFY, "%s: no circuit from rank %d to %d",
				       o->name, r, to);
		}
		*out = n < *out ? n : *out;
	}
	return 0;
}

int send_ns(const struct workload *w, const struct workload_params *p,
	    const struct workload_light *l, struct workload_use *use, struct err *err)
{
	struct topo *light;
	int64_t n;
	int rc = workload_light_topo(w, l, &light, err);

	if (!rc && (rc = fewest_circuits(w, use->op, light, &n, err)) == 0) {
		use->time_ns = (double)p->alpha_ns +
			       (double)use->max_bytes * byte_ns(p) / (double)n;
	}
	topo_free(light);
	return rc;
}

/* ---- schedules ---- */

/* All ranges of the collective from this use on become one again, without a schedule. */
static void join_ranges(const struct workload *w, struct workload_plan *plan, size_t at)
{
	struct workload_use *use = &plan->uses.v[at];
	size_t n = 1;

	for (; at + n < plan->uses.n && use[n].op == use->op && use[n].light == use->light; n++) {
		coll_free(use[n].sched);
	}
	coll_free(use->sched);
	use->sched = NULL;
	use->max_bytes = w->ops.v[use->op].bytes;
	memmove(use + 1, use + n, (plan->uses.n - at - n) * sizeof(*use));
	plan->uses.n -= n - 1;
}

/* Of the use and those of its ranges; *at is then the last of them. */
static int make_again(const struct workload *w, struct workload_plan *plan, size_t *at,
		      bool degraded, struct err *err)
{
	size_t first = *at;
	int rc;

	join_ranges(w, plan, first);
	rc = make_use(w, plan, at, err);
	for (size_t i = first; i <= *at; i++) {
		plan->uses.v[i].degraded = degraded;
	}
	return rc;
}

int workload_lose(const struct workload *w, struct workload_plan *plan, int light,
		  const struct workload_gap *gaps, size_t n, struct err *err)
{
	struct workload_light *l = &plan->lights.v[light], own = { 0 };
	int rc = 0;

	l->gaps.n = 0;
	for (size_t i = 0; i < n; i++) {
		vec_push(&l->gaps, gaps[i]);
	}
	for (size_t i = 0; i < plan->uses.n; i++) {
		const struct workload_use *use = &plan->uses.v[i];
		struct err why = { 0 };
		bool missing;

		if (use->light != light) {
			continue;
		}
		own.gaps.n = 0;
		group_gaps(w, l, w->ops.v[use->op].axes, &own);
		missing = own.gaps.n > 0;
		if ((missing || use->degraded) && make_again(w, plan, &i, missing, &why) && !rc) {
			*err = why;
			rc = why.code;
		}
	}
	plan->time_ns = rc ? 0 : step_ns(w, plan);
	vec_fini(&own.gaps);
	return rc;
}
