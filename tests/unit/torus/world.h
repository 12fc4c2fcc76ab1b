/* SPDX-License-Identifier: Apache-2.0 */
/* What tests of algorithms on coordinates share. */
#ifndef WEFT_TESTS_UNIT_TORUS_WORLD_H
#define WEFT_TESTS_UNIT_TORUS_WORLD_H

#include "collective/torus/torus.h"
#include "tests/unit/schedule/common.h"

/* The digraph of an expression, less a link maybe, and its coordinates. */
struct world {
	struct topo *t;
	struct torus_shape *shape;
};

static inline struct world world_of(const char *expr)
{
	struct world w;
	struct err err = { 0 };

	w.t = graph_less(expr);
	must(torus_shape_new(w.t, NULL, TORUS_PLAIN, true, &w.shape, &err), &err);
	return w;
}

static inline void world_end(struct world *w)
{
	torus_shape_free(w->shape);
	topo_free(w->t);
}

/* Makes and replays; its report. */
static inline struct coll_sched *make(const struct world *w, const struct torus_spec *spec,
			       enum coll_kind kind, struct coll_report *report)
{
	struct err err = { 0 };
	struct coll_sched *s;

	must(torus_make(w->shape, spec, kind, 0, &s, &err), &err);
	coll_report_init(report);
	must(coll_prove(s, report, &err), &err);
	return s;
}

#endif
