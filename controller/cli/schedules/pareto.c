/* weft schedule make --pareto: steps against T_B of all schedules that weft knows to make. */
#include <stdlib.h>

#include "collective/finder/finder.h"
#include "controller/cli/core/private.h"
#include "controller/cli/schedules/find.h"
#include "lib/base/units.h"

/* From which size on each point is the fastest, -1: for none; in the order of the points. */
static int find_ranges(const struct coll_pareto *p, const struct coll_cost *cost, int64_t *from,
		       struct err *err)
{
	struct coll_range *ranges = calloc(p->points.n + 1, sizeof(*ranges));
	struct coll_frontier f = { .bound_num = p->bound_num, .bound_den = p->bound_den };
	int rc = ranges ? 0 : err_nomem(err);

	for (size_t i = 0; i < p->points.n && rc == 0; i++) {
		const struct coll_pareto_point *x = &p->points.v[i];
		struct coll_point y = { .steps = x->steps, .num = x->num, .den = x->den };

		from[i] = -1;
		rc = vec_push(&f.points, y) ? err_nomem(err) : 0;
	}
	if (rc == 0) {
		size_t n = coll_ranges(&f, NULL, cost, p->ports, ranges);

		for (size_t i = 0; i < n; i++) {
			from[ranges[i].point] = ranges[i].from_bytes;
		}
	}
	vec_fini(&f.points);
	free(ranges);
	return rc;
}

static void out_from(const struct cli *c, struct out *o, int64_t from)
{
	char text[32];

	if (c->format == OUT_TABLE) {
		out_str(o, "fastest_from", from < 0 ? "-" : unit_human(UNIT_BYTES, (double)from, text,
								       sizeof(text)));
	} else if (from < 0) {
		out_null(o, "fastest_from_bytes");
	} else {
		out_int(o, "fastest_from_bytes", from);
	}
}

/* {steps, bandwidth_factor, bandwidth_gap, algorithm, batches, chunks, transfers, time_ns,
 * fastest_from_bytes}; from: NULL without a cost. */
static void out_point(const struct cli *c, struct out *o, const struct coll_pareto *p, size_t i,
		      const int64_t *from)
{
	const struct coll_pareto_point *x = &p->points.v[i];
	double bound = (double)p->bound_num / (double)p->bound_den;

	out_object(o, NULL);
	out_int(o, "steps", x->steps);
	find_out_ratio(o, "bandwidth_factor", x->num, x->den);
	cli_out_gap(c, o, "bandwidth_gap",
		    bound > 0 ? (double)x->num / (double)x->den / bound - 1 : 0);
	out_str(o, "algorithm", x->algorithm);
	out_int(o, "batches", x->batches);
	out_int(o, "chunks", x->chunks);
	out_int(o, "transfers", x->transfers);
	if (from) {
		cli_out_ns(c, o, "time", x->time_ns);
		out_from(c, o, from[i]);
	}
	out_end(o);
}

int cli_print_pareto(struct cli *c, const struct coll_make_query *q, const char *topology,
		     struct err *err)
{
	struct coll_pareto p;
	struct out *o = NULL;
	int64_t *from = NULL;
	int r = coll_make_pareto(q, &p, err);

	if (r) {
		return r;
	}
	from = calloc(p.points.n + 1, sizeof(*from));
	o = out_new(c->format);
	if (!from || !o) {
		r = err_nomem(err);
	} else if (q->cost) {
		r = find_ranges(&p, q->cost, from, err);
	}
	if (r == 0) {
		out_str(o, "collective", coll_kind_name(q->kind));
		out_str(o, "topology", topology);
		find_out_ratio(o, "bandwidth_bound", p.bound_num, p.bound_den);
		out_array(o, "points");
		for (size_t i = 0; i < p.points.n; i++) {
			out_point(c, o, &p, i, q->cost ? from : NULL);
		}
		out_end(o);
		r = cli_print(o, err);
	} else {
		out_free(o);
	}
	free(from);
	coll_pareto_fini(&p);
	return r;
}
