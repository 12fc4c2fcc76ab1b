/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Swing and its relatives on digraphs whose ranks have coordinates.
 *
 * With a cost the number of exchanges, and the levels of mixed radices, are those of the least
 * time. "auto" takes the fastest of all, where it knows what time costs; algorithms whose partners
 * are no neighbours only where nodes forward.
 */
#include <math.h>
#include <stdio.h>

#include "collective/make/private.h"

/* What the user fixed. */
static int read_spec(const struct coll_make_query *q, const struct torus_shape *shape,
		     struct torus_spec *spec, struct err *err)
{
	const struct coll_make_torus *given = &q->torus;
	int rc = 0;

	*spec = *q->algorithm->torus;
	spec->one_port = given->ports == COLL_ONE_PORT ||
			 (given->ports != COLL_ALL_PORTS && spec->one_port);
	spec->rounds = given->has_rounds ? given->rounds : spec->rounds;
	if (given->levels && (rc = torus_parse_radices(shape, given->levels, spec, err))) {
		return rc;
	}
	if (q->cost || (spec->rounds != TORUS_ANY_ROUNDS &&
			(spec->lines != TORUS_LEVELS || given->levels))) {
		return 0;
	}
	if (given->levels || q->kind != COLL_ALLREDUCE) {
		spec->rounds = -1;
	}
	return spec->rounds == -1 && (spec->lines != TORUS_LEVELS || given->levels)
		       ? 0 : err_set(err, WEFT_EINVAL,
				     "algorithm %s: without a cost it needs to be "
				     "told the %s", q->algorithm->name,
				     spec->lines == TORUS_LEVELS ? "levels" : "rounds");
}

/* Whether something is left to be chosen. */
static bool is_open(const struct torus_spec *spec)
{
	return spec->rounds == TORUS_ANY_ROUNDS ||
	       (spec->lines == TORUS_LEVELS && spec->radices[0].n == 0);
}

/* What was told over all shortest paths goes over fewer where these are too many. */
static int make_on_paths(const struct coll_make_query *q, struct torus_shape *shape,
			 const struct torus_spec *spec, struct coll_sched **out, struct err *err)
{
	bool may = !q->fabric || q->fabric->routing == COLL_ROUTING_MINIMAL_SPLIT;
	struct torus_spec fewer = *spec;
	int rc = torus_make(shape, spec, q->kind, q->root, out, err), first = rc;

	while (first == WEFT_ELIMIT && rc && may && fewer.paths < TORUS_SINGLE) {
		fewer.paths++;
		rc = torus_make(shape, &fewer, q->kind, q->root, out, NULL);
	}
	if (first && rc == 0) {
		err_clear(err);
	}
	return rc ? first : 0;
}

static int make_spec(const struct coll_make_query *q, struct torus_shape *shape,
		     const struct torus_spec *spec, struct coll_made *made, struct err *err)
{
	struct buf levels = { 0 };
	int rc = make_on_paths(q, shape, spec, &made->sched, err);

	if (rc) {
		return rc;
	}
	if (coll_is_embedded(made->sched)) {
		coll_set_physical_name(made->sched, q->fabric ? q->fabric->name
							      : q->expr ? q->expr : "");
	}
	made->algorithm = q->algorithm ? q->algorithm
				       : coll_algorithm_find(torus_name(spec), q->kind);
	made->is_physical = true;
	made->torus.is_made = true;
	made->torus.rounds = spec->rounds;
	torus_print_radices(shape, spec, &levels);
	snprintf(made->torus.levels, sizeof(made->torus.levels), "%s", buf_cstr(&levels));
	buf_fini(&levels);
	return 0;
}

/* That of the query's algorithm: what is not fixed is chosen by the cost. */
static int find_spec(const struct coll_make_query *q, struct torus_shape *shape,
		     struct torus_spec *spec, struct err *err)
{
	struct torus_spec fixed = { 0 };
	int rc = read_spec(q, shape, &fixed, err);

	*spec = fixed;
	return rc || !is_open(&fixed)
		       ? rc : torus_choose(shape, q->kind, q->cost, &fixed, spec, err);
}

/* An algorithm on a shape, and its time. */
struct make_on_shape {
	struct torus_shape *shape;	/* owned */
	struct torus_spec spec;
	double ns;		/* 0 without a cost; HUGE_VAL: known by its schedule only */
};

/* The query's algorithm, or the fastest of all, on a shape. */
static int choose_on(const struct coll_make_query *q, enum torus_digits digits,
		     struct make_on_shape *out, struct err *err)
{
	bool forwards = q->algorithm ? !q->links_only : q->cost->forwards;
	int rc = torus_shape_new(q->topo, q->fabric, digits, forwards, &out->shape, err);

	if (rc) {
		return rc;
	}
	rc = q->algorithm ? find_spec(q, out->shape, &out->spec, err)
			  : torus_choose(out->shape, q->kind, q->cost, NULL, &out->spec, err);
	if (rc) {
		torus_shape_free(out->shape);
		return rc;
	}
	out->ns = 0;
	if (q->cost && torus_time(out->shape, &out->spec, q->kind, q->cost, &out->ns, err)) {
		out->ns = HUGE_VAL;
		err_clear(err);
	}
	return 0;
}

/* The fastest of all shapes, the first one without a cost; out->shape is the caller's to free after
 * no error. */
static int choose(const struct coll_make_query *q, struct make_on_shape *out, struct err *err)
{
	int rc = choose_on(q, TORUS_PLAIN, out, err);

	for (int i = TORUS_FOURS; i <= TORUS_TWOS && (rc || q->cost); i++) {
		struct make_on_shape other;

		if (choose_on(q, (enum torus_digits)i, &other, NULL)) {
			continue;
		}
		if (rc == 0 && other.ns >= out->ns) {
			torus_shape_free(other.shape);
			continue;
		}
		if (rc == 0) {
			torus_shape_free(out->shape);
		}
		*out = other;
		rc = 0;
		err_clear(err);
	}
	return rc;
}

/* That one, nothing where it takes as long as below_ns. */
static int make_chosen(const struct coll_make_query *q, double below_ns, struct coll_made *made,
		       struct err *err)
{
	struct make_on_shape one;
	int rc = choose(q, &one, err);

	if (rc) {
		return rc;
	}
	if (q->algorithm || one.ns < below_ns) {
		rc = make_spec(q, one.shape, &one.spec, made, err);
	}
	torus_shape_free(one.shape);
	return rc;
}

/* Those that fold: their time is known by their schedule only. */
static const struct torus_spec folding[] = {
	{ .lines = TORUS_SWING }, { .lines = TORUS_SWING, .one_port = true },
	{ .lines = TORUS_DOUBLING, .one_port = true },
};

#define MAX_FOLDED 256		/* nodes */

/* Whether a fold may be the best: not where every size is a power of two, and only for vectors
 * that are short beside the steps. */
static bool may_fold(const struct coll_make_query *q, const struct coll_made *best)
{
	int n = topo_ranks(q->topo);

	return q->kind == COLL_ALLREDUCE && n <= MAX_FOLDED && (n & (n - 1)) && q->cost->forwards &&
	       (double)q->cost->size_bytes * 8e9 / (double)q->cost->link_bps <
		       (double)best->time_ns;
}

static int offer_folding(const struct coll_make_query *q, struct coll_made *best, struct err *err)
{
	struct torus_shape *shape;
	int rc = torus_shape_new(q->topo, q->fabric, TORUS_PLAIN, true, &shape, err);

	for (size_t i = 0; rc == 0 && i < sizeof(folding) / sizeof(folding[0]); i++) {
		struct coll_made one = { .batches = 1 };

		rc = make_spec(q, shape, &folding[i], &one, err);
		if (rc == WEFT_EUNSUPPORTED || rc == WEFT_ELIMIT) {
			err_clear(err);
			rc = 0;
		} else if (rc == 0) {
			rc = make_offer(q, &one, best, err);
		}
	}
	torus_shape_free(shape);
	return rc;
}

/* One on coordinates: of "auto" the fastest, where it gains on the best so far. */
int make_by_torus(const struct coll_make_query *q, const struct coll_algorithm *self,
		  struct coll_made *best, struct err *err)
{
	struct coll_make_query how = *q;
	struct coll_made one = { .batches = 1 };
	int rc;

	(void)self;
	if (q->algorithm && q->batches > 1) {
		return err_set(err, WEFT_EUNSUPPORTED, "algorithm %s in batches: not supported",
			       q->algorithm->name);
	}
	if (q->algorithm) {
		rc = make_chosen(q, HUGE_VAL, &one, err);
		return rc ? rc : make_offer(q, &one, best, err);
	}
	if (!q->cost || q->batches > 1) {
		return 0;
	}
	rc = make_chosen(q, best->sched ? (double)best->time_ns : HUGE_VAL, &one, err);
	if (rc) {
		err_clear(err);
		return 0;
	}
	how.links_only |= !q->cost->forwards && (!q->fabric || q->physical);
	rc = one.sched ? make_offer(&how, &one, best, err) : 0;
	if (rc == WEFT_EUNSUPPORTED) {	/* its messages would go through ranks */
		err_clear(err);
		return 0;
	}
	if (rc) {
		return rc;
	}
	return may_fold(q, best) ? offer_folding(q, best, err) : 0;
}

int coll_make_torus(const struct coll_make_query *q, struct coll_made *out, struct err *err)
{
	struct coll_make_query how = *q;
	struct coll_made one = { .batches = 1 };
	int rc;

	how.algorithm = NULL;
	rc = make_chosen(&how, HUGE_VAL, &one, err);
	*out = (struct coll_made){ 0 };
	if (rc == 0 && (rc = make_offer(q, &one, out, err))) {
		coll_made_fini(out);
	}
	return rc;
}

static int time_chosen(const struct coll_make_query *q, double *time_ns, struct err *err)
{
	struct make_on_shape one;
	int rc = choose(q, &one, err);

	if (rc == 0) {
		*time_ns = one.ns;
		torus_shape_free(one.shape);
	}
	return rc;
}

int coll_make_torus_time(const struct coll_make_query *q, double *time_ns, struct err *err)
{
	struct coll_make_query how = *q;

	how.algorithm = NULL;
	return time_chosen(&how, time_ns, err);
}

int make_predict_torus(const struct coll_make_query *q, struct coll_prediction *out,
		       struct err *err)
{
	int rc = time_chosen(q, &out->time_ns, err);

	return rc == 0 && out->time_ns == HUGE_VAL
		       ? err_set(err, WEFT_EUNSUPPORTED, "algorithm %s: its time is known by its "
				 "schedule only", q->algorithm->name) : rc;
}
