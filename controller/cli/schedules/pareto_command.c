/* SPDX-License-Identifier: Apache-2.0 */
/* weft schedule make --pareto: steps against T_B of all schedules that weft knows to make. */
#include "collective/make/make.h"
#include "controller/cli/core/private.h"
#include "controller/cli/schedules/find.h"
#include "lib/base/number/units.h"

static void out_from(const struct cli *c, struct out *o, int64_t from)
{
	char text[32];

	if (c->format == OUT_TABLE) {
		out_str(o, "fastest_from", from < 0 ? "-"
			: unit_human(UNIT_BYTES, (double)from, text,
								       sizeof(text)));
	} else if (from < 0) {
		out_null(o, "fastest_from_bytes");
	} else {
		out_int(o, "fastest_from_bytes", from);
	}
}

/* {steps, bandwidth_factor, bandwidth_gap, algorithm, batches, chunks, transfers}, with a cost
 * {time_ns, fastest_from_bytes} too. */
static void out_point(const struct cli *c, struct out *o, const struct coll_pareto *p, size_t i,
		      bool has_cost)
{
	const struct coll_pareto_point *x = &p->points.v[i];
	double bound = (double)p->bound_num / (double)p->bound_den;

	out_object(o, NULL);
	out_int(o, "steps", x->steps);
	find_out_ratio(o, "bandwidth_factor", x->num, x->den);
	cli_out_gap(c, o, "bandwidth_gap",
		    bound > 0 ? (double)x->num / (double)x->den / bound - 1 : 0);
	out_str(o, "algorithm", x->algorithm->name);
	out_int(o, "batches", x->batches);
	out_int(o, "chunks", x->chunks);
	out_int(o, "transfers", x->transfers);
	if (has_cost) {
		cli_out_ns(c, o, "time", x->time_ns);
		out_from(c, o, x->from_bytes);
	}
	out_end(o);
}

int cli_print_pareto(struct cli *c, const struct coll_make_query *q, const char *topology,
		     struct err *err)
{
	struct coll_pareto p;
	struct out *o;
	int r = coll_make_pareto(q, &p, err);

	if (r) {
		return r;
	}
	o = out_new(c->format);
	out_str(o, "collective", coll_kind_name(q->kind));
	out_str(o, "topology", topology);
	find_out_ratio(o, "bandwidth_bound", p.bound_num, p.bound_den);
	out_array(o, "points");
	for (size_t i = 0; i < p.points.n; i++) {
		out_point(c, o, &p, i, q->cost != NULL);
	}
	out_end(o);
	coll_pareto_fini(&p);
	return cli_print(o, err);
}
