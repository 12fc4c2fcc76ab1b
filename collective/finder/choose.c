/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Topologies by the time of the schedule that each would get, the fastest first.
 *
 * Every topology that could serve is an entry with a time: the exact one, or one that it
 * cannot be below, from the steps that its distances need and the bandwidth that each node
 * has. The entry of the least time is the answer if its time is exact; else it is looked into and
 * put back. So a schedule is only made where it may win, and a thousand tori cost nothing.
 * Algorithms on coordinates (collective/torus) are timed by formula where they may win, and made
 * where they do. `find`, its sweeps and `topology: auto` all ask here, which is why they agree.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collective/finder/finder.h"
#include "collective/finder/private.h"
#include "lib/base/alloc.h"
#include "lib/base/number/rat.h"

/* Flows of a source on an arc from which on a schedule of an all-to-all takes seconds. */
#define LARGE_FLOW (1 << 20)

/* What is known of a topology. */
enum entry_state {
	ENTRY_LOW,	/* its time is at least this */
	ENTRY_FIGURES,	/* as ENTRY_LOW; breadth-first broadcast on it is known: `other` */
	ENTRY_SUMS,	/* as ENTRY_FIGURES, and merged sums take this or more */
	ENTRY_FORMULA,	/* its time is this, but for rounding, by an algorithm on coordinates, or
			 * (one_shot) in as many steps as it is wide, or some more */
	ENTRY_PLAIN,	/* steps and T_B of breadth-first broadcast; something else that is made
			 * may be faster, and the time is what that cannot be below; with a root
			 * those of trees */
	ENTRY_TIMED,	/* it has this time */
	ENTRY_GIVEN,	/* was an answer already, or cannot be scheduled */
};

struct finder_entry {
	char *expr;		/* owned */
	enum entry_state state;
	int ports, diameter;
	/* Without coordinates, or merged sums. */
	struct { enum entry_state state; int64_t time_ns; } other;
	bool one_shot, no_one_shot;	/* that is the fastest without; it cannot be made */
	bool sums_only;		/* nothing else on it is worth a look */
	bool alike;		/* all-to-all: one node's part, moved, is the whole, made in a
				 * fraction of the time */
	int steps;
	int64_t num, den;	/* T_B in M/B of its ports */
	int64_t time_ns;
	const char *algorithm;
	struct coll_made made;	/* sched NULL: not made */
};

struct coll_choices {
	struct coll_want w;
	VEC(struct finder_entry) list;
	struct coll_frontier own;
	const struct coll_frontier *frontier;	/* NULL: none of steps and T_B */
	int last;		/* given last, -1: none */
};

/* ---- times ---- */

static int64_t step_ns(const struct coll_cost *c)
{
	return c->alpha_ns + c->hop_ns + c->message_ns;
}

/* ns of the vector over this many ports of a node. */
static void vector_ns(const struct coll_cost *c, int ports, mpq_t ns)
{
	mpq_t q;

	mpq_init(q);
	rat_set(ns, c->size_bytes, c->link_bps);
	rat_set(q, INT64_C(8000000000), ports);
	mpq_mul(ns, ns, q);
	mpq_clear(q);
}

static void exact_time(const struct coll_cost *c, int ports, int steps, int64_t num, int64_t den,
		       mpq_t ns)
{
	mpq_t q;

	mpq_init(q);
	vector_ns(c, ports, ns);
	rat_set(q, num, den);
	mpq_mul(ns, ns, q);
	rat_set(q, step_ns(c), 1);
	mpz_mul_si(mpq_numref(q), mpq_numref(q), steps);
	mpq_add(ns, ns, q);
	mpq_clear(q);
}

/* Rounded up as coll_time does. Beyond 64 bits: the largest. */
static int64_t time_of(const struct coll_cost *c, int ports, int steps, int64_t num, int64_t den)
{
	int64_t ns = INT64_MAX;
	mpq_t t;
	mpz_t up;

	mpq_init(t);
	mpz_init(up);
	exact_time(c, ports, steps, num, den, t);
	mpz_cdiv_q(up, mpq_numref(t), mpq_denref(t));
	if (mpz_fits_slong_p(up)) {
		ns = mpz_get_si(up);
	}
	mpz_clear(up);
	mpq_clear(t);
	return ns;
}

static int phases_of(enum coll_kind kind)
{
	return kind == COLL_ALLREDUCE ? 2 : 1;
}

/* No broadcast takes fewer steps than the farthest rank is away, and batches that follow one
 * another down trees at least as deep fill them one a step: b batches take diameter - 1 + b steps
 * of 1/b of the vector each, which is least at b = sqrt((diameter - 1) vector / step). */
static int64_t broadcast_low(const struct coll_cost *c, int ports, int diameter)
{
	double step = (double)step_ns(c), more = diameter - 1;
	double whole = (double)time_of(c, ports, 0, 1, 1) - 1;

	/* A millionth below, for what doubles round. */
	return (int64_t)((step * more + whole + 2 * sqrt(step * more * whole)) * (1 - 1e-6));
}

/* Whether shards go from or to a root, each once: timed by their schedules alone. */
static bool has_paths(enum coll_kind kind)
{
	return kind == COLL_GATHER || kind == COLL_SCATTER;
}

/* Whether algorithms on coordinates are asked for. */
static bool wants_coordinates(const struct coll_want *w)
{
	return !coll_has_root(w->q.kind) && w->q.kind != COLL_ALLTOALL && !w->algorithm;
}

/* Steps and hops that no algorithm on coordinates is below, nor one with a root: messages that
 * ranks forward go the whole distance in one step; an all-reduce by exchanges goes it once. */
static int64_t min_steps_ns(const struct coll_cost *c, int diameter)
{
	return c->forwards ? c->alpha_ns + c->message_ns + diameter * c->hop_ns
			   : diameter * step_ns(c);
}

/* What no schedule is below, by distance and bandwidth. */
static int64_t low_of(const struct coll_want *w, int ports, int diameter)
{
	int64_t n = w->q.n, phases = phases_of(w->q.kind);
	bool whole = coll_has_root(w->q.kind) && !has_paths(w->q.kind);

	if (whole && !w->cost.forwards) {
		return broadcast_low(&w->cost, ports, diameter);
	}
	if (wants_coordinates(w) || (coll_has_root(w->q.kind) && w->cost.forwards)) {
		int64_t ns = whole ? time_of(&w->cost, ports, 0, 1, 1)
				   : time_of(&w->cost, ports, 0, phases * (n - 1), n);

		return ns < INT64_MAX / 2 ? ns + min_steps_ns(&w->cost, diameter) : ns;
	}
	return time_of(&w->cost, ports, (int)phases * diameter, phases * (n - 1), n);
}

/* The algorithm that entries are timed by before anything is made; none for all-to-all. */
static const struct coll_algorithm *timed_by(enum coll_kind kind)
{
	return coll_algorithm_find(has_paths(kind) ? "paths"
				   : coll_has_root(kind) ? "trees" : "bfb", kind);
}

/* The algorithm of the fewest steps, for an all-reduce of a short vector. */
static const struct coll_algorithm *one_shot(void)
{
	return coll_algorithm_find("one-shot", COLL_ALLREDUCE);
}

/* Half the steps of an all-reduce by breadth-first broadcast, each with the vectors of all: N times
 * the T_B of its all-gather. */
static void may_be_one_shot(const struct coll_choices *c, struct finder_entry *e)
{
	int64_t ns = time_of(&c->w.cost, e->ports, e->steps / 2, e->num * c->w.q.n, 2 * e->den);

	if (ns < e->time_ns && !e->no_one_shot) {
		e->one_shot = true;
		e->time_ns = ns;
		e->state = ENTRY_FORMULA;
	}
}

/* The time of p's steps and T_B, or of one step more at the bandwidth bound where batches or
 * a construction could come near that. */
static void set_broadcast(const struct coll_choices *c, struct finder_entry *e, int steps,
			  int64_t num, int64_t den)
{
	const struct coll_want *w = &c->w;
	int64_t n = w->q.n, phases = phases_of(w->q.kind), better;
	bool is_bound = (__int128)num * n == (__int128)phases * (n - 1) * den;

	e->steps = steps;
	e->num = num;
	e->den = den;
	e->algorithm = timed_by(w->q.kind)->name;
	e->time_ns = time_of(&w->cost, e->ports, steps, num, den);
	e->state = ENTRY_TIMED;
	if (is_bound || w->algorithm ||
	    n * (n - 1) * phases * 2 > COLL_MAKE_TRANSFERS) {
		return;
	}
	better = time_of(&w->cost, e->ports, steps, phases * (n - 1), n);
	if (better < e->time_ns) {
		e->time_ns = better;
		e->state = ENTRY_PLAIN;
	}
}

static void set_plain(const struct coll_choices *c, struct finder_entry *e, int steps, int64_t num,
		      int64_t den)
{
	set_broadcast(c, e, steps, num, den);
	if (c->w.q.kind == COLL_ALLREDUCE && !c->w.algorithm) {
		may_be_one_shot(c, e);
	}
}

/* Where an algorithm on coordinates might take less time, that is looked into first. */
static void may_be_faster(const struct coll_choices *c, struct finder_entry *e)
{
	int64_t low;

	if (!wants_coordinates(&c->w)) {
		return;
	}
	low = low_of(&c->w, e->ports, e->steps / phases_of(c->w.q.kind));
	if (low < e->time_ns) {
		e->other.state = e->state;
		e->other.time_ns = e->time_ns;
		e->state = ENTRY_FIGURES;
		e->time_ns = low;
	}
}

/* ---- what there is ---- */

static bool is_known(const struct coll_choices *c, const char *expr)
{
	for (size_t i = 0; i < c->list.n; i++) {
		if (strcmp(c->list.v[i].expr, expr) == 0) {
			return true;
		}
	}
	return false;
}

/* Copies expr; e's other fields are set. */
static void push(struct coll_choices *c, struct finder_entry e, const char *expr)
{
	e.expr = x_dup(expr);
	vec_push(&c->list, e);
}

/* One that is not known yet, with what it cannot be below. */
static void add_low(struct coll_choices *c, const char *expr, int ports, int diameter)
{
	struct finder_entry e = { .ports = ports, .diameter = diameter };

	if (is_known(c, expr)) {
		return;
	}
	e.time_ns = low_of(&c->w, ports, diameter);
	push(c, e, expr);
}

static void add_families(struct coll_choices *c)
{
	const struct coll_query *q = &c->w.q;
	struct finder_families all = { 0 };

	finder_list_families(q->n, q->degree, q->bidirectional, &all);
	for (size_t i = 0; i < all.list.n; i++) {
		const struct finder_family *f = &all.list.v[i];

		add_low(c, f->expr, f->ports, f->diameter);
	}
	vec_fini(&all.list);
}

/* From rank 0, or towards it; -1: not all. */
static int root_depth(const struct coll_want *w, const struct topo *t, int *depth, struct err *err)
{
	int32_t *dist = x_alloc((size_t)w->q.n, sizeof(*dist));
	struct topo *back = NULL;
	int rc = 0;

	if (w->q.kind == COLL_REDUCE || w->q.kind == COLL_GATHER) {
		rc = topo_transpose(t, &back, NULL, err);
	}
	if (!rc) {
		topo_bfs(back ? back : t, 0, dist);
	}
	*depth = 0;
	for (int v = 0; v < w->q.n && !rc && *depth >= 0; v++) {
		*depth = dist[v] < 0 || dist[v] > *depth ? dist[v] : *depth;
	}
	topo_free(back);
	free(dist);
	return rc;
}

/* Unless it is no digraph for the want. */
static int add_rooted(struct coll_choices *c, const char *expr, struct err *err)
{
	const struct coll_query *q = &c->w.q;
	struct topo *t = NULL;
	int depth, rc = topo_parse(expr, &t, NULL, NULL);

	if (rc) {
		return 0;
	}
	if (topo_n(t) == q->n && topo_max_degree(t) <= q->degree &&
	    !(q->bidirectional && !topo_is_symmetric(t)) &&
	    (rc = root_depth(&c->w, t, &depth, err)) == 0 && depth >= 0) {
		add_low(c, expr, topo_max_degree(t), depth);
	}
	topo_free(t);
	return rc;
}

/* Which digraph packs the shallowest trees no distance tells: what is near in hops and not among
 * the frontier of all-gathers is tried as well. */
static int add_shallow(struct coll_choices *c, struct err *err)
{
	const struct coll_query *q = &c->w.q;
	char expr[5][FINDER_FAMILY_EXPR];
	int m = 1, side = 2, rc = 0;

	while (2 * m * m + 2 * m + 1 < q->n) {
		m++;
	}
	while (pow(side, q->degree) < q->n) {
		side++;
	}
	snprintf(expr[0], sizeof(expr[0]), "C(%d,{%d,%d})", q->n, m, m + 1);
	snprintf(expr[1], sizeof(expr[1]), "C(%d,{1,2})", q->n);
	snprintf(expr[2], sizeof(expr[2]), "GenKautz(%d,%d)", q->degree, q->n);
	snprintf(expr[3], sizeof(expr[3]), "Bi(GenKautz(%d,%d))", q->degree / 2, q->n);
	snprintf(expr[4], sizeof(expr[4]), "Pow(UniRing(1,%d),%d)", side, q->degree);
	for (int i = 0; i < 4 + (pow(side, q->degree) == q->n) && rc == 0; i++) {
		rc = add_rooted(c, expr[i], err);
	}
	return rc;
}

/* What merges sums best, though breadth-first broadcast may do better on others: paths from a node
 * that end there after the same number of arcs. */
static void add_merging(struct coll_choices *c)
{
	const struct coll_query *q = &c->w.q;
	struct finder_entry e = { .ports = q->degree, .sums_only = true };
	char expr[FINDER_FAMILY_EXPR];

	if (q->kind != COLL_ALLREDUCE || c->w.algorithm || q->degree < 2 || q->degree >= q->n) {
		return;
	}
	snprintf(expr, sizeof(expr), q->bidirectional ? "Bi(GenKautz(%d,%d))" : "GenKautz(%d,%d)",
		 q->bidirectional ? q->degree / 2 : q->degree, q->n);
	if (!is_known(c, expr)) {
		e.time_ns = low_of(&c->w, q->degree,
				   coll_min_hops(q->n, q->degree, q->bidirectional));
		push(c, e, expr);
	}
}

static int add_points(struct coll_choices *c, const struct coll_frontier *f, struct err *err)
{
	int rc = 0;

	for (size_t i = 0; i < f->points.n && rc == 0; i++) {
		const struct coll_point *p = &f->points.v[i];
		struct finder_entry e = { .ports = p->ports };
		struct bfb_ratio own = finder_ratio((__int128)p->num * p->ports,
						    (__int128)p->den * c->w.q.degree);

		if (coll_has_root(c->w.q.kind)) {
			rc = add_rooted(c, p->expr, err);
		} else {
			set_plain(c, &e, p->steps, own.num, own.den);
			may_be_faster(c, &e);
			push(c, e, p->expr);
		}
	}
	return rc;
}

static int add_frontier(struct coll_choices *c, const struct coll_frontier *known, struct err *err)
{
	bool rooted = coll_has_root(c->w.q.kind);
	struct coll_query q = c->w.q;
	struct err why = { 0 };
	int rc = 0;

	q.kind = rooted ? COLL_ALLGATHER : q.kind;
	if (!known || known->points.n == 0) {
		known = &c->own;
		rc = coll_find(&q, true, &c->own, &why);
	}
	if (rc && rc != WEFT_EINFEASIBLE) {
		if (err) {
			*err = why;
		}
		return rc;
	}
	c->frontier = rooted || rc ? NULL : known;
	return add_points(c, known, err);
}

/* A congestion is in shards over a port. */
static int64_t congestion_ns(const struct coll_want *w, int diameter, double congestion)
{
	double shard = (double)w->cost.size_bytes * 8e9 / (double)w->cost.link_bps / w->q.n;

	return (int64_t)((diameter * (double)step_ns(&w->cost) + congestion * shard) * (1 - 1e-6));
}

static int add_flows(struct coll_choices *c, struct err *err)
{
	const struct coll_want *w = &c->w;
	struct coll_flow_query q = { .n = w->q.n, .degree = w->q.degree,
				     .bidirectional = w->q.bidirectional,
				     .flow = w->flow, .most = w->most };
	struct coll_flow_list l;
	struct err why = { 0 };
	int rc;

	q.most = q.most ? q.most : COLL_WANT_FLOWS;
	q.alike_only = (int64_t)q.n * q.n * q.degree > FINDER_MANY_FLOWS;
	q.flow.gap = q.flow.gap > 0 ? q.flow.gap : COLL_WANT_GAP;
	q.flow.max_passes = q.flow.max_passes ? q.flow.max_passes : COLL_WANT_PASSES;
	rc = coll_find_flow(&q, &l, &why);
	for (size_t i = 0; i < l.points.n + l.rest.n && rc == 0; i++) {
		bool solved = i < l.points.n;
		const struct coll_flow_point *p = solved ? &l.points.v[i]
							 : &l.rest.v[i - l.points.n];
		struct finder_entry e = { .diameter = p->diameter, .alike = p->alike };

		e.time_ns = congestion_ns(w, p->diameter, solved ? p->flow.bound :
					  (double)p->distance_sum / w->q.n / w->q.degree);
		push(c, e, p->expr);
	}
	coll_flow_list_fini(&l);
	if (rc && rc != WEFT_EINFEASIBLE && err) {
		*err = why;
	}
	return rc == WEFT_EINFEASIBLE ? 0 : rc;
}

int coll_choices_new(const struct coll_want *w, const struct coll_frontier *known,
		     struct coll_choices **out, struct err *err)
{
	struct coll_choices *c = x_new(1, sizeof(*c));
	int rc;

	*out = c;
	c->w = *w;
	c->last = -1;
	if (w->algorithm && w->q.kind != COLL_ALLTOALL &&
		   w->algorithm != timed_by(w->q.kind)) {
		rc = err_set(err, WEFT_EUNSUPPORTED,
			     "topologies for algorithm %s are not searched, "
			     "only for %s", w->algorithm->name, timed_by(w->q.kind)->name);
	} else if (w->q.kind == COLL_ALLTOALL) {
		rc = add_flows(c, err);
	} else {
		rc = add_frontier(c, known, err);
		if (!rc && coll_has_root(w->q.kind)) {
			rc = add_shallow(c, err);
		}
		if (!rc) {
			add_families(c);
			add_merging(c);
		}
	}
	if (rc) {
		coll_choices_free(c);
		*out = NULL;
	}
	return rc;
}

void coll_choices_free(struct coll_choices *c)
{
	if (!c) {
		return;
	}
	for (size_t i = 0; i < c->list.n; i++) {
		free(c->list.v[i].expr);
		coll_made_fini(&c->list.v[i].made);
	}
	vec_fini(&c->list);
	coll_frontier_fini(&c->own);
	free(c);
}

const struct coll_frontier *coll_choices_frontier(const struct coll_choices *c)
{
	return c->frontier;
}

/* ---- which is next ---- */

/* Of two timed entries, within a ns. */
static int compare_exactly(const struct coll_cost *c, const struct finder_entry *a,
			   const struct finder_entry *b)
{
	mpq_t x, y;
	int order;

	mpq_inits(x, y, NULL);
	exact_time(c, a->ports, a->steps, a->num, a->den, x);
	exact_time(c, b->ports, b->steps, b->num, b->den, y);
	order = mpq_cmp(x, y);
	mpq_clears(x, y, NULL);
	return order;
}

/* Of equal times one that is known to have it goes first, then the one of fewer steps. */
static bool is_before(const struct coll_cost *c, const struct finder_entry *a,
		      const struct finder_entry *b)
{
	bool timed = a->state == ENTRY_TIMED, b_timed = b->state == ENTRY_TIMED;
	int order;

	if (a->time_ns != b->time_ns) {
		return a->time_ns < b->time_ns;
	}
	if (timed != b_timed || !timed) {
		return timed;
	}
	order = compare_exactly(c, a, b);
	if (order) {
		return order < 0;
	}
	if (a->steps != b->steps) {
		return a->steps < b->steps;
	}
	if (strlen(a->expr) != strlen(b->expr)) {
		return strlen(a->expr) < strlen(b->expr);
	}
	return strcmp(a->expr, b->expr) < 0;
}

/* -1: none. */
static int first_of(const struct coll_choices *c, bool timed_only)
{
	int best = -1;

	for (size_t i = 0; i < c->list.n; i++) {
		const struct finder_entry *e = &c->list.v[i];

		if (e->state != ENTRY_GIVEN && (!timed_only || e->state == ENTRY_TIMED) &&
		    (best < 0 || is_before(&c->w.cost, e, &c->list.v[best]))) {
			best = (int)i;
		}
	}
	return best;
}

/* Its schedule; the entry has its time then. */
static int make_entry(struct coll_choices *c, struct finder_entry *e, const struct topo *t,
		      struct err *err)
{
	struct coll_make_query q = coll_make_job(c->w.q.kind, c->w.algorithm, t, &c->w.cost);
	int rc;

	q.expr = e->expr;
	q.algorithm = e->one_shot ? one_shot() : q.algorithm;
	rc = e->state == ENTRY_FORMULA && !e->one_shot ? coll_make_torus(&q, &e->made, err)
						       : coll_make(&q, &e->made, err);
	if (rc) {
		return rc;
	}
	e->ports = coll_ports(e->made.sched);
	e->steps = e->made.report.steps;
	e->num = mpz_get_si(mpq_numref(e->made.report.bandwidth_factor));
	e->den = mpz_get_si(mpq_denref(e->made.report.bandwidth_factor));
	e->algorithm = e->made.algorithm->name;
	e->time_ns = e->made.time_ns;
	e->state = ENTRY_TIMED;
	return 0;
}

/* What is known of it before it is made. */
static int predict(const struct coll_choices *c, const struct topo *t, struct coll_prediction *p,
		   struct err *err)
{
	const struct coll_algorithm *by = timed_by(c->w.q.kind);
	struct coll_make_query q = coll_make_job(c->w.q.kind, by, t, &c->w.cost);

	*p = (struct coll_prediction){ 0 };
	return by->predict(&q, p, err);
}

static int time_trees(struct coll_choices *c, struct finder_entry *e, const struct topo *t,
		      struct err *err)
{
	const struct coll_want *w = &c->w;
	int64_t n = w->q.n, low = e->time_ns;
	struct coll_prediction p;
	int rc = predict(c, t, &p, err);

	if (rc) {
		return rc;
	}
	e->steps = p.steps;
	e->num = p.num;
	e->den = p.den;
	e->algorithm = timed_by(w->q.kind)->name;
	e->time_ns = time_of(&w->cost, e->ports, e->steps, e->num, e->den);
	e->state = ENTRY_TIMED;
	if (!w->algorithm && n * (n - 1) <= COLL_MAKE_TRANSFERS && low < e->time_ns) {
		e->time_ns = low;
		e->state = ENTRY_PLAIN;
	}
	return 0;
}

/* Breadth-first broadcast's own figures, and then whether these are the best. */
static int time_plain(struct coll_choices *c, struct finder_entry *e, const struct topo *t,
		      struct err *err)
{
	struct coll_prediction p;
	int rc = predict(c, t, &p, err);

	if (!rc) {
		set_plain(c, e, p.steps, p.num, p.den);
	}
	return rc;
}

static void take_other(struct finder_entry *e)
{
	e->state = e->other.state;
	e->time_ns = e->other.time_ns;
}

/* The time of the fastest algorithm on coordinates, where that is less than what others take; these
 * again otherwise. */
static void time_on_coordinates(struct coll_choices *c, struct finder_entry *e,
				const struct topo *t)
{
	struct coll_make_query q = coll_make_job(c->w.q.kind, c->w.algorithm, t, &c->w.cost);
	struct err why = { 0 };
	double ns = HUGE_VAL;
	int rc = coll_make_torus_time(&q, &ns, &why);

	if (rc == 0 && ns < (double)e->other.time_ns) {
		e->state = ENTRY_FORMULA;
		e->one_shot = false;
		e->time_ns = (int64_t)ns;
		return;
	}
	take_other(e);
}

/* Where merged sums might take less time than all else, that is looked into first. */
static void may_merge(struct coll_choices *c, struct finder_entry *e, const struct topo *t)
{
	struct coll_make_query q = coll_make_job(c->w.q.kind, one_shot(), t, &c->w.cost);
	double ns;

	if (c->w.q.kind == COLL_ALLREDUCE && !e->no_one_shot &&
	    coll_make_sums_min(&q, &ns, NULL) == 0 && ns < (double)e->time_ns) {
		e->other.state = e->state;
		e->other.time_ns = e->time_ns;
		e->state = ENTRY_SUMS;
		e->time_ns = (int64_t)ns;
	}
}

/* The time of merged sums, where that is less. */
static void time_sums(struct coll_choices *c, struct finder_entry *e, const struct topo *t)
{
	struct coll_make_query q = coll_make_job(c->w.q.kind, one_shot(), t, &c->w.cost);
	double ns;
	int rc = coll_make_sums_time(&q, (double)e->other.time_ns, &ns, NULL);

	take_other(e);
	if (rc == 0 && ns < (double)e->time_ns) {
		e->state = ENTRY_FORMULA;
		e->one_shot = true;
		e->time_ns = (int64_t)ns;
	}
}

/* From ENTRY_LOW, without a schedule: to what trees or breadth-first broadcast take, and to
 * ENTRY_FIGURES where an algorithm on coordinates might take less. */
static int take_figures(struct coll_choices *c, struct finder_entry *e, const struct topo *t)
{
	int rc;

	e->ports = topo_max_degree(t);
	if (e->sums_only) {
		e->state = ENTRY_GIVEN;
		e->time_ns = INT64_MAX;
		may_merge(c, e, t);
		return 0;
	}
	rc = coll_has_root(c->w.q.kind) ? time_trees(c, e, t, NULL) : time_plain(c, e, t, NULL);
	if (!rc) {
		may_be_faster(c, e);
	}
	return rc;
}

/* Its schedule in the fewest steps; the others are looked at again where that is too large. */
static int make_one_shot(struct coll_choices *c, struct finder_entry *e, const struct topo *t)
{
	int rc = make_entry(c, e, t, NULL);

	e->one_shot = false;
	if (rc == WEFT_ELIMIT) {
		e->no_one_shot = true;
		e->state = ENTRY_LOW;
		rc = 0;
	}
	return rc;
}

/* One state on. */
static int advance(struct coll_choices *c, struct finder_entry *e, const struct topo *t)
{
	switch (e->state) {
	case ENTRY_FIGURES:
		time_on_coordinates(c, e, t);
		may_merge(c, e, t);
		return 0;
	case ENTRY_SUMS:
		time_sums(c, e, t);
		return 0;
	case ENTRY_LOW:
		/* Of an all-to-all and of paths only the schedule tells more. */
		return c->w.q.kind == COLL_ALLTOALL || has_paths(c->w.q.kind)
			       ? make_entry(c, e, t, NULL) : take_figures(c, e, t);
	default:
		return e->one_shot ? make_one_shot(c, e, t) : make_entry(c, e, t, NULL);
	}
}

/* Looks further into an entry that is not timed. One that cannot be scheduled is passed over,
 * whatever the reason: no user named it. */
static void look_into(struct coll_choices *c, struct finder_entry *e)
{
	struct topo *t = NULL;
	int rc = topo_parse(e->expr, &t, NULL, NULL);

	if (!rc) {
		rc = advance(c, e, t);
	}
	topo_free(t);
	if (rc) {
		e->state = ENTRY_GIVEN;
	}
}

/* Whether an entry that is only bounded is worth the seconds that its schedule takes. With many
 * flows not for a hundredth of the time of one that is there, nor for a twentieth where nodes are
 * not alike. It is a trade: on 1000 hosts of 4 ports it saves 4 s, and the schedule takes 0.2 %
 * longer. */
static bool is_worth(const struct coll_choices *c, const struct finder_entry *e)
{
	const struct coll_query *q = &c->w.q;
	int timed = first_of(c, true), least = e->alike ? 99 : 95;

	return q->kind != COLL_ALLTOALL || timed < 0 ||
	       (int64_t)q->n * q->n * q->degree <= LARGE_FLOW ||
	       e->time_ns < c->list.v[timed].time_ns / 100 * least;
}

/* What could win and is quickly made, -1: nothing. */
static int next_alike(const struct coll_choices *c)
{
	int timed = first_of(c, true), at = -1;

	for (size_t i = 0; i < c->list.n; i++) {
		const struct finder_entry *e = &c->list.v[i];

		if (e->alike && e->state == ENTRY_LOW &&
		    (timed < 0 || e->time_ns < c->list.v[timed].time_ns) && is_worth(c, e) &&
		    (at < 0 || e->time_ns < c->list.v[at].time_ns)) {
			at = (int)i;
		}
	}
	return at;
}

/* Schedules that may be made for one answer beside these. */
static int max_tries(const struct coll_query *q)
{
	bool is_large = (int64_t)q->n * q->n * q->degree > LARGE_FLOW;

	return q->kind == COLL_ALLTOALL && is_large ? COLL_CHOICE_TRIES / 4 : COLL_CHOICE_TRIES;
}

/* Whether looking into it takes more than figures. */
static bool makes_schedule(const struct coll_choices *c, const struct finder_entry *e)
{
	bool figures = e->state == ENTRY_LOW || e->state == ENTRY_FIGURES ||
		       e->state == ENTRY_SUMS;

	return !figures || coll_has_root(c->w.q.kind) || c->w.q.kind == COLL_ALLTOALL;
}

static void give(struct coll_choices *c, int at, struct coll_choice *out)
{
	struct finder_entry *e = &c->list.v[at];
	struct bfb_ratio all;

	c->last = at;
	e->state = ENTRY_GIVEN;
	all = finder_ratio((__int128)e->num * c->w.q.degree, (__int128)e->den * e->ports);
	*out = (struct coll_choice){ e->expr, e->algorithm, e->steps, all.num, all.den, e->ports,
				     e->time_ns };
}

int coll_choices_next(struct coll_choices *c, struct coll_choice *out, struct err *err)
{
	int at;

	for (int i = 0; i < COLL_CHOICE_TRIES && (at = next_alike(c)) >= 0; i++) {
		look_into(c, &c->list.v[at]);
	}
	for (int tries = 0; (at = first_of(c, false)) >= 0 && c->list.v[at].state != ENTRY_TIMED;) {
		tries += makes_schedule(c, &c->list.v[at]);
		if ((tries > max_tries(&c->w.q) && first_of(c, true) >= 0) ||
		    !is_worth(c, &c->list.v[at])) {
			at = first_of(c, true);
			break;
		}
		look_into(c, &c->list.v[at]);
	}
	if (at < 0) {
		return err_set(err, WEFT_ENOTFOUND, "no %stopology for %d nodes with %d ports each",
			       c->last >= 0 ? "other " : "", c->w.q.n, c->w.q.degree);
	}
	give(c, at, out);
	return 0;
}

bool coll_choices_timed(struct coll_choices *c, struct coll_choice *out)
{
	int at = first_of(c, true);

	if (at >= 0) {
		give(c, at, out);
	}
	return at >= 0;
}

int coll_choices_make(struct coll_choices *c, const char *expr, struct coll_made *out,
		      struct err *err)
{
	struct finder_entry *e = c->list.v;
	struct topo *t = NULL;
	int rc = 0;

	while (e->expr != expr) {
		e++;
	}
	if (!e->made.sched && (rc = topo_parse(e->expr, &t, NULL, err)) == 0) {
		rc = make_entry(c, e, t, err);
		e->state = ENTRY_GIVEN;
	}
	topo_free(t);
	*out = e->made;
	e->made = (struct coll_made){ 0 };
	return rc;
}

/* ---- ranges of sizes ---- */

/* From how many bytes on b, of more steps and less T_B, is faster than a; INT64_MAX: never that
 * a size could be. */
static int64_t from_bytes(const struct coll_point *a, const struct coll_point *b,
			  const struct coll_cost *c, int ports)
{
	int64_t from = INT64_MAX;
	mpq_t less, x, q;
	mpz_t down;

	mpq_inits(less, x, q, NULL);
	mpz_init(down);
	rat_set(less, a->num, a->den);
	rat_set(q, b->num, b->den);
	mpq_sub(less, less, q);
	/* Steps that cost more, over what a byte gains. */
	rat_set(x, step_ns(c), 1);
	mpz_mul_si(mpq_numref(x), mpq_numref(x), b->steps - a->steps);
	rat_set(q, c->link_bps, INT64_C(8000000000));
	mpq_mul(x, x, q);
	rat_set(q, ports, 1);
	mpq_mul(x, x, q);
	mpq_div(x, x, less);
	mpz_fdiv_q(down, mpq_numref(x), mpq_denref(x));
	if (mpz_fits_slong_p(down) && mpz_get_si(down) < INT64_MAX) {
		from = mpz_get_si(down) + 1;
	}
	mpz_clear(down);
	mpq_clears(less, x, q, NULL);
	return from;
}

size_t coll_ranges(const struct coll_frontier *f, const bool *skip, const struct coll_cost *cost,
		   int ports, struct coll_range *out)
{
	size_t n = 0, at = 0, points = f->points.n;

	while (at < points && skip && skip[at]) {
		at++;
	}
	for (int64_t from = 0; at < points && from < INT64_MAX;) {
		size_t next = at;
		int64_t least = INT64_MAX;

		/* Within a byte several may take over: only the last has room. */
		n -= n > 0 && out[n - 1].from_bytes == from;
		out[n++] = (struct coll_range){ at, from };
		for (size_t i = at + 1; i < points; i++) {
			int64_t size = skip && skip[i] ? INT64_MAX
				: from_bytes(&f->points.v[at], &f->points.v[i], cost, ports);

			if (size < least) {
				least = size;
				next = i;
			}
		}
		/* Without a price of steps all sizes are the last one's. */
		least = least < from ? from : least;
		from = next == at ? INT64_MAX : step_ns(cost) == 0 ? 0 : least;
		at = next;
	}
	return n;
}
