/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What there is to choose from: schedules that no other known one beats in steps and in T_B.
 *
 * Everything on the list is made by its name, whole, with more and more steps, batches, or with
 * steps worth less and less; what is beaten in both is left out.
 */
#include <math.h>
#include <stdlib.h>

#include "collective/make/private.h"

#define MAX_BATCHES 64			/* that overlap, */
#define MAX_TREE_BATCHES 1024		/* and down trees */
#define MAX_EXTRA 2			/* steps, by late takers, */
#define MAX_EXTRA_SUMS 8		/* and by sums at few nodes */
#define MAX_TRANSFERS (INT64_C(1) << 20)	/* of what is made in more batches still */

void coll_pareto_fini(struct coll_pareto *p)
{
	vec_fini(&p->points);
}

static int add_point(const struct coll_make_query *q, const struct coll_made *m,
		     struct coll_pareto *out, struct err *err)
{
	mpz_srcptr num = mpq_numref(m->report.bandwidth_factor);
	mpz_srcptr den = mpq_denref(m->report.bandwidth_factor);
	struct coll_pareto_point p = {
		.algorithm = m->algorithm, .batches = m->batches, .steps = m->report.steps,
		.chunks = coll_chunks(m->sched), .transfers = m->report.transfers,
	};
	struct coll_cost empty = q->cost ? *q->cost : (struct coll_cost){ 0 };
	int rc = 0;

	empty.size_bytes = 0;
	if (q->cost &&
	    ((rc = coll_time(m->sched, &m->report, q->cost, &p.time_ns, NULL, err)) ||
	     (rc = coll_time(m->sched, &m->report, &empty, &p.latency_ns, NULL, err)))) {
		return rc;
	}
	if ( !mpz_fits_slong_p(num) || !mpz_fits_slong_p(den)) {
		return rc;
	}
	p.num = mpz_get_si(num);
	p.den = mpz_get_si(den);
	out->ports = coll_ports(m->sched);
	out->bound_num = mpz_get_si(mpq_numref(m->report.bandwidth_bound));
	out->bound_den = mpz_get_si(mpq_denref(m->report.bandwidth_bound));
	vec_push(&out->points, p);
	return 0;
}

/* One of the list by its name, if there is such a schedule of the digraph. *large: it has so
 * many transfers that more batches are not to be tried. */
static int add_one(const struct coll_make_query *q, const struct coll_make_query *how,
		   struct coll_pareto *out, bool *large, struct err *err)
{
	struct coll_made made;
	int rc = coll_make(how, &made, err);

	*large = rc != 0;
	if (rc) {
		err_clear(err);
		return 0;
	}
	*large = made.report.transfers > MAX_TRANSFERS;
	rc = add_point(q, &made, out, err);
	coll_made_fini(&made);
	return rc;
}

/* In 1, 2, 4, .. batches. */
static int add_batches(const struct coll_make_query *q, struct coll_make_query how, int most,
		       struct coll_pareto *out, struct err *err)
{
	bool large = false;
	int rc = 0;

	for (int b = 1; b <= most && !large && rc == 0; b *= 2) {
		how.batches = b;
		rc = add_one(q, &how, out, &large, err);
	}
	return rc;
}

/* Trees of all ranks, where steps are worth less and less. */
static int add_trees(const struct coll_make_query *q, struct coll_make_query how,
		     struct coll_pareto *out, struct err *err)
{
	bool large = false;
	int rc = 0;

	how.batches = 0;
	for (how.steps_worth = 3; how.steps_worth < 10000 && !large && rc == 0;
	     how.steps_worth *= 3) {
		rc = add_one(q, &how, out, &large, err);
	}
	return rc;
}

static int add_late(const struct coll_make_query *q, struct coll_make_query how,
		    struct coll_pareto *out, struct err *err)
{
	int most = how.algorithm->run == make_by_one_shot ? MAX_EXTRA_SUMS : MAX_EXTRA, rc = 0;
	bool large = false;

	for (how.extra_steps = 0; how.extra_steps <= most && !large && rc == 0;
	     how.extra_steps++) {
		rc = add_one(q, &how, out, &large, err);
	}
	return rc;
}

/* Algorithms on coordinates, each as it is the fastest for one size or another. */
static int add_sizes(const struct coll_make_query *q, struct coll_make_query how,
		     struct coll_pareto *out, struct err *err)
{
	struct coll_cost cost = *q->cost;
	bool large = false;
	int rc = 0;

	how.cost = &cost;
	for (cost.size_bytes = 32; cost.size_bytes <= INT64_C(1) << 32 && rc == 0;
	     cost.size_bytes *= 16) {
		rc = add_one(q, &how, out, &large, err);
	}
	return rc;
}

/* All that an algorithm may be asked for. */
static int add_all(const struct coll_make_query *q, const struct coll_algorithm *algorithm,
		   struct coll_pareto *out, struct err *err)
{
	struct coll_make_query how = *q;

	how.algorithm = algorithm;
	how.cost = NULL;
	how.batches = 1;
	switch (algorithm->vary) {
	case COLL_VARY_STEPS_WORTH:
		return add_trees(q, how, out, err);
	case COLL_VARY_EXTRA_STEPS:
		return add_late(q, how, out, err);
	case COLL_VARY_SIZE:
		if (q->cost) {
			return q->cost->forwards ? add_sizes(q, how, out, err) : 0;
		}
		break;
	case COLL_VARY_BATCHES:
		return add_batches(q, how, MAX_BATCHES, out, err);
	case COLL_VARY_TREE_BATCHES:
		return add_batches(q, how, MAX_TREE_BATCHES, out, err);
	case COLL_VARY_NONE:
		break;
	}
	return add_batches(q, how, 1, out, err);
}

static int by_steps(const void *pa, const void *pb)
{
	const struct coll_pareto_point *a = pa, *b = pb;
	__int128 x = (__int128)a->num * b->den, y = (__int128)b->num * a->den;

	if (a->latency_ns != b->latency_ns) {
		return a->latency_ns < b->latency_ns ? -1 : 1;
	}
	if (a->steps != b->steps) {
		return a->steps < b->steps ? -1 : 1;
	}
	if (x != y) {
		return x < y ? -1 : 1;
	}
	return a->transfers < b->transfers ? -1 : a->transfers > b->transfers;
}

/* Ascending latency, or steps: those whose T_B is below that of all before. */
static void keep_best(struct coll_pareto *p)
{
	size_t kept = 0;

	qsort(p->points.v, p->points.n, sizeof(*p->points.v), by_steps);
	for (size_t i = 0; i < p->points.n; i++) {
		const struct coll_pareto_point *x = &p->points.v[i];
		const struct coll_pareto_point *last = kept > 0 ? &p->points.v[kept - 1] : NULL;

		if (!last || (__int128)x->num * last->den < (__int128)last->num * x->den) {
			p->points.v[kept++] = *x;
		}
	}
	p->points.n = kept;
}

/* Size at which b, of more latency, is as fast as a, of larger T_B. */
static double crossing(const struct coll_make_query *q, int ports,
		       const struct coll_pareto_point *a, const struct coll_pareto_point *b)
{
	double saved = (double)a->num / (double)a->den - (double)b->num / (double)b->den;

	return (double)(b->latency_ns - a->latency_ns) * 1e-9 * (double)q->cost->link_bps / 8 *
	       ports / saved;
}

static void find_ranges(const struct coll_make_query *q, struct coll_pareto *p)
{
	for (size_t i = 0; i < p->points.n; i++) {
		struct coll_pareto_point *x = &p->points.v[i];
		double from = 0, to = HUGE_VAL;

		for (size_t j = 0; j < i; j++) {
			from = fmax(from, crossing(q, p->ports, &p->points.v[j], x));
		}
		for (size_t j = i + 1; j < p->points.n; j++) {
			to = fmin(to, crossing(q, p->ports, x, &p->points.v[j]));
		}
		x->from_bytes = from < to && from < 9e18 ? (int64_t)ceil(from) : -1;
	}
}

int coll_make_pareto(const struct coll_make_query *q, struct coll_pareto *out, struct err *err)
{
	const struct coll_algorithm *a;
	int rc = 0;

	*out = (struct coll_pareto){ 0 };
	if (q->kind == COLL_ALLTOALL) {
		return err_set(err, WEFT_EUNSUPPORTED,
			       "all-to-all: steps against T_B: not supported");
	}
	for (int i = 0; rc == 0 && (a = coll_algorithm(i)); i++) {
		rc = a->kinds & COLL_KIND_BIT(q->kind) ? add_all(q, a, out, err) : 0;
	}
	if (rc == 0 && out->points.n == 0) {
		rc = err_set(err, WEFT_EINFEASIBLE, "no schedule could be made");
	}
	if (rc) {
		coll_pareto_fini(out);
		return rc;
	}
	keep_best(out);
	if (q->cost) {
		find_ranges(q, out);
	}
	return 0;
}
