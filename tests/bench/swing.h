/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All-reduces on tori and their relatives, for benchmarks: the time of each algorithm on a
 * topology for a cost. By formula where there is one (torus_time), else of the schedule, made once.
 */
#ifndef WEFT_TESTS_BENCH_SWING_H
#define WEFT_TESTS_BENCH_SWING_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collective/torus/torus.h"

/* Of Swing and recursive doubling: the fewest steps (L), the least volume (B). The plain ones have
 * one port. In buckets, collectives go on to the next dimension together, as in the paper, or each
 * by itself. */
enum swing_algorithm {
	SWING_L, SWING_B, DOUBLING_L, DOUBLING_B, MIRRORED_L, MIRRORED_B, RING, BUCKET,
	BUCKET_FREE, AUTO, BOUND, SWING_ALGORITHMS,
};

static const struct {
	const char *key;
	struct torus_spec spec;
} swing_algorithms[AUTO] = {
	[SWING_L] = { "swing_l", { .lines = TORUS_SWING } },
	[SWING_B] = { "swing_b", { .lines = TORUS_SWING, .rounds = -1 } },
	[DOUBLING_L] = { "doubling_l", { .lines = TORUS_DOUBLING, .one_port = true } },
	[DOUBLING_B] = { "doubling_b",
			 { .lines = TORUS_DOUBLING, .rounds = -1, .one_port = true } },
	[MIRRORED_L] = { "mirrored_l", { .lines = TORUS_DOUBLING } },
	[MIRRORED_B] = { "mirrored_b", { .lines = TORUS_DOUBLING, .rounds = -1 } },
	[RING] = { "ring", { .lines = TORUS_RING, .rounds = -1 } },
	[BUCKET] = { "bucket", { .lines = TORUS_BUCKET, .rounds = -1, .in_step = true } },
	[BUCKET_FREE] = { "bucket_free", { .lines = TORUS_BUCKET, .rounds = -1 } },
};

static inline const char *swing_key(int algorithm)
{
	return algorithm == BOUND ? "bound" : algorithm == AUTO ? "auto"
								: swing_algorithms[algorithm].key;
}

#define SIZES 27		/* of vectors: 32 B, 64 B, ... 2 GiB */

static inline int64_t swing_size(int i)
{
	return INT64_C(32) << i;
}

/* A schedule of an algorithm that has no formula. */
struct swing_made {
	bool tried;
	struct coll_sched *sched;	/* NULL: it has none */
	struct coll_report report;
};

struct swing_case {
	struct topo *topo;		/* of terminals: what they see, where there are switches */
	struct coll_fabric fabric;	/* of the switches */
	struct torus_shape *shape;
	struct swing_made made[AUTO];
};

static inline void swing_close(struct swing_case *c)
{
	for (int a = 0; a < AUTO; a++) {
		coll_free(c->made[a].sched);
		coll_report_fini(&c->made[a].report);
	}
	torus_shape_free(c->shape);
	topo_free(c->fabric.topo);
	free(c->fabric.name);
	topo_free(c->topo);
}

/* 0, or 1 after saying what is wrong. swing_close, also then. */
static inline int swing_open(const char *expr, struct swing_case *c)
{
	struct topo *t = NULL;
	struct err err = { 0 };
	int rc;

	memset(c, 0, sizeof(*c));
	rc = topo_parse(expr, &t, &c->fabric.name, &err);
	if (rc == 0 && topo_ranks(t) < topo_n(t)) {
		c->fabric.topo = t;
		rc = coll_terminals_see(t, &c->topo, &err);
	} else {
		c->topo = t;
	}
	if (rc == 0) {
		rc = torus_shape_new(c->topo, c->fabric.topo ? &c->fabric : NULL,
				     TORUS_PLAIN, true, &c->shape, &err);
	}
	if (rc) {
		fprintf(stderr, "%s: %s\n", expr, err.msg);
	}
	return rc != 0;
}

/* Of the schedule; INFINITY: the shape has none. */
static inline double swing_made_time(struct swing_case *c, enum swing_algorithm a,
				     const struct coll_cost *cost)
{
	struct swing_made *m = &c->made[a];
	struct err err = { 0 };
	int64_t ns;
	int rc;

	if (!m->tried) {
		m->tried = true;
		coll_report_init(&m->report);
		rc = torus_make(c->shape, &swing_algorithms[a].spec, COLL_ALLREDUCE, 0, &m->sched,
				&err);
		if (rc == 0 && coll_prove(m->sched, &m->report, &err)) {
			coll_free(m->sched);
			m->sched = NULL;
		}
		if (!m->sched && rc != WEFT_EUNSUPPORTED) {
			fprintf(stderr, "%s: %s\n", swing_algorithms[a].key, err.msg);
		}
	}
	if (!m->sched || coll_time(m->sched, &m->report, cost, &ns, NULL, &err)) {
		return INFINITY;
	}
	return (double)ns;
}

static inline double swing_bound(struct swing_case *c, const struct coll_cost *cost)
{
	struct swing_made *m = &c->made[SWING_B];
	int64_t ns, bound_ns;

	swing_made_time(c, SWING_B, cost);
	return m->sched && coll_time(m->sched, &m->report, cost, &ns, &bound_ns, NULL) == 0
		       ? (double)bound_ns : INFINITY;
}

/* Rings through switches: in every step some block goes through one, in two hops, and no link has
 * more than one block. As the schedules have it that are small enough to be made. */
static inline double swing_switched_ring_time(const struct swing_case *c,
					      const struct coll_cost *cost)
{
	int n = topo_ranks(c->topo);
	double block_ns = (double)cost->size_bytes * 8e9 / (double)cost->link_bps / n / 4;

	return 2 * (n - 1.0) * ((double)(cost->alpha_ns + 2 * cost->hop_ns + cost->message_ns) +
				block_ns);
}

/* In ns; INFINITY: the shape has no such algorithm. */
static inline double swing_time(struct swing_case *c, enum swing_algorithm a,
				const struct coll_cost *cost)
{
	struct torus_spec spec;
	double ns;
	int rc;

	if (a == BOUND) {
		return swing_bound(c, cost);
	}
	if (a == AUTO) {
		return torus_choose(c->shape, COLL_ALLREDUCE, cost, NULL, &spec, NULL) == 0 &&
		       torus_time(c->shape, &spec, COLL_ALLREDUCE, cost, &ns, NULL) == 0
			       ? ns : INFINITY;
	}
	if (a == RING && c->fabric.topo) {
		return swing_switched_ring_time(c, cost);
	}
	rc = torus_time(c->shape, &swing_algorithms[a].spec, COLL_ALLREDUCE, cost, &ns, NULL);
	return rc == 0 ? ns : rc == WEFT_EUNSUPPORTED ? swing_made_time(c, a, cost) : INFINITY;
}

#endif
