/*
 * Swing and its relatives on digraphs whose ranks have coordinates.
 *
 * With a cost the number of exchanges, and the levels of mixed radices, are those of the least time. "auto"
 * takes the fastest of all, where it knows what time costs; algorithms whose partners are no neighbours only
 * where nodes forward, which is known by what a hop costs.
 */
#include <stdio.h>
#include <string.h>

#include "collective/make/private.h"

static const struct torus_row {
	const char *name;
	struct torus_spec spec;
} rows[] = {
	{ "swing", { .lines = TORUS_SWING, .rounds = -1 } },
	{ "swing-latency", { .lines = TORUS_SWING } },
	{ "hybrid", { .lines = TORUS_SWING, .rounds = TORUS_ANY_ROUNDS } },
	{ "mixed-radix", { .lines = TORUS_LEVELS, .rounds = TORUS_ANY_ROUNDS } },
	{ "recursive-doubling", { .lines = TORUS_DOUBLING, .one_port = true } },
	{ "rabenseifner", { .lines = TORUS_DOUBLING, .rounds = -1, .one_port = true } },
	{ "bucket", { .lines = TORUS_BUCKET, .rounds = -1, .in_step = true } },
	{ "ring", { .lines = TORUS_RING, .rounds = -1 } },
};

#define N_ROWS (sizeof(rows) / sizeof(rows[0]))

/* What the user fixed. */
static int read_spec(const struct coll_make_query *q, const char *name,
		     const struct torus_shape *shape, struct torus_spec *spec, struct err *err)
{
	const struct coll_make_torus *given = &q->torus;
	int rc = 0;

	for (size_t i = 0; i < N_ROWS; i++) {
		*spec = strcmp(rows[i].name, name) == 0 ? rows[i].spec : *spec;
	}
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
		       ? 0 : err_set(err, WEFT_EINVAL, "algorithm %s: without a cost it needs to be "
				     "told the %s", name,
				     spec->lines == TORUS_LEVELS ? "levels" : "rounds");
}

/* Whether something is left to be chosen. */
static bool is_open(const struct torus_spec *spec)
{
	return spec->rounds == TORUS_ANY_ROUNDS ||
	       (spec->lines == TORUS_LEVELS && spec->radices[0].n == 0);
}

static int make_spec(const struct coll_make_query *q, struct torus_shape *shape,
		     const struct torus_spec *spec, struct coll_made *made, struct err *err)
{
	struct buf levels = { 0 };
	int rc = torus_make(shape, spec, q->kind, q->root, &made->sched, err);

	if (rc) {
		return rc;
	}
	if (coll_is_embedded(made->sched) && q->links_only) {
		coll_free(made->sched);
		made->sched = NULL;
		return err_set(err, WEFT_EUNSUPPORTED, "algorithm %s: partners are not joined by links "
			       "that are alike", torus_name(spec));
	}
	if (coll_is_embedded(made->sched)) {
		coll_set_physical_name(made->sched, q->fabric ? q->fabric->name
							      : q->expr ? q->expr : "");
	}
	made->algorithm = torus_name(spec);
	made->is_physical = true;
	made->torus.is_made = true;
	made->torus.rounds = spec->rounds;
	torus_print_radices(shape, spec, &levels);
	snprintf(made->torus.levels, sizeof(made->torus.levels), "%s", buf_cstr(&levels));
	buf_fini(&levels);
	return 0;
}

int make_torus(const struct coll_make_query *q, const char *name, struct coll_made *made,
	       struct err *err)
{
	struct torus_spec fixed = { 0 }, spec;
	struct torus_shape *shape;
	int rc;

	if (q->batches > 1) {
		return err_set(err, WEFT_EUNSUPPORTED, "algorithm %s in batches: not supported", name);
	}
	rc = torus_shape_new(q->topo, q->fabric, true, &shape, err);
	if (rc) {
		return rc;
	}
	rc = read_spec(q, name, shape, &fixed, err);
	spec = fixed;
	if (rc == 0 && is_open(&fixed)) {
		rc = torus_choose(shape, q->kind, q->cost, &fixed, &spec, err);
	}
	if (rc == 0) {
		rc = make_spec(q, shape, &spec, made, err);
	}
	made->algorithm = name;
	torus_shape_free(shape);
	return rc;
}

/* The fastest, and its time; *shape is the caller's to free after no error. */
static int choose(const struct coll_make_query *q, struct torus_shape **shape,
		  struct torus_spec *spec, double *ns, struct err *err)
{
	int rc = torus_shape_new(q->topo, q->fabric, q->cost->hop_ns > 0, shape, err);

	if (rc) {
		return rc;
	}
	if ((rc = torus_choose(*shape, q->kind, q->cost, NULL, spec, err)) ||
	    (rc = torus_time(*shape, spec, q->kind, q->cost, ns, err))) {
		torus_shape_free(*shape);
	}
	return rc;
}

int make_fastest_torus(const struct coll_make_query *q, int64_t below_ns, struct coll_made *made,
		       struct err *err)
{
	struct torus_spec spec;
	struct torus_shape *shape;
	double ns;
	int rc = choose(q, &shape, &spec, &ns, err);

	if (rc) {
		return rc;
	}
	if (ns < (double)below_ns) {
		rc = make_spec(q, shape, &spec, made, err);
	}
	torus_shape_free(shape);
	return rc;
}

int coll_make_torus_time(const struct coll_make_query *q, double *time_ns, struct err *err)
{
	struct torus_spec spec;
	struct torus_shape *shape;
	int rc = choose(q, &shape, &spec, time_ns, err);

	if (rc == 0) {
		torus_shape_free(shape);
	}
	return rc;
}
