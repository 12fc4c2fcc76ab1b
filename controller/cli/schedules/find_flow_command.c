/* SPDX-License-Identifier: Apache-2.0 */
/* weft topology find --collective all-to-all: by the rate of a flow; --joint: by that and by the
 * steps and bandwidth of an all-reduce. */
#include <stdlib.h>

#include "collective/finder/finder.h"
#include "controller/cli/schedules/find.h"

/* {flow_rate, flow_rate_bound, flow_gap, bandwidth_factor, gap, diameter,
 * sum_of_distances, topology}, with --joint steps and allreduce_factor first: gap is to the bound
 * of any digraph of that size, flow_gap to that of this one. */
static void out_flow_point(const struct cli *c, struct out *o, const struct coll_flow_query *q,
			   const struct coll_flow_list *l, size_t i)
{
	const struct coll_flow_point *p = &l->points.v[i];

	if (p->steps > 0) {
		out_int(o, "steps", p->steps);
		find_out_ratio(o, "allreduce_factor", p->num, p->den);
	}
	out_real(o, "flow_rate", 1 / p->flow.congestion);
	out_real(o, "flow_rate_bound", 1 / p->flow.bound);
	cli_out_gap(c, o, "flow_gap", p->flow.gap);
	out_real(o, "bandwidth_factor", p->flow.congestion * q->degree / q->n);
	cli_out_gap(c, o, "gap", p->flow.congestion / l->bound - 1);
	out_int(o, "diameter", p->diameter);
	out_int(o, "sum_of_distances", p->distance_sum);
	out_str(o, "topology", p->expr);
}

/* {nodes, degree, bidirectional, collective, rate_bound, considered, best,
 * points}: points best first. */
static void out_one(const struct cli *c, struct out *o, const struct coll_flow_query *q,
		    const struct coll_flow_list *l)
{
	out_int(o, "nodes", q->n);
	out_int(o, "degree", q->degree);
	out_bool(o, "bidirectional", q->bidirectional);
	out_str(o, "collective", l->points.v[0].steps ? "allreduce and all-to-all"
						     : coll_kind_name(COLL_ALLTOALL));
	out_real(o, "rate_bound", 1 / l->bound);
	out_int(o, "considered", l->considered);
	if (l->points.v[0].steps == 0) {
		out_str(o, "best", l->points.v[0].expr);
	}
	out_array(o, "points");
	for (size_t i = 0; i < l->points.n; i++) {
		out_object(o, NULL);
		out_flow_point(c, o, q, l, i);
		out_end(o);
	}
	out_end(o);
}

/* The best of each; sizes for which nothing is known are left out. */
static int out_sweep(const struct cli *c, struct out *o, const struct find_queries *qs,
		     struct coll_flow_query *q, struct err *err)
{
	int r = 0;

	out_bool(o, "bidirectional", cli_has(c, "bidirectional"));
	out_str(o, "collective", coll_kind_name(COLL_ALLTOALL));
	out_array(o, "best");
	for (size_t i = 0; i < qs->list.n && r == 0 && !cli_interrupted; i++) {
		struct coll_flow_list l;

		q->n = qs->list.v[i].n;
		q->degree = qs->list.v[i].degree;
		q->bidirectional = qs->list.v[i].bidirectional;
		r = coll_find_flow(q, &l, err);
		if (r == 0) {
			out_object(o, NULL);
			out_int(o, "nodes", q->n);
			out_int(o, "degree", q->degree);
			out_real(o, "rate_bound", 1 / l.bound);
			out_flow_point(c, o, q, &l, 0);
			out_end(o);
		}
		r = r == WEFT_EINFEASIBLE ? 0 : r;
		coll_flow_list_fini(&l);
	}
	out_end(o);
	return r;
}

/* A size for which nothing is known is an error here. */
static int find_one(const struct cli *c, struct out *o, const struct find_queries *qs,
		    struct coll_flow_query *q, struct err *err)
{
	struct coll_flow_list l;
	int r;

	q->n = qs->list.v[0].n;
	q->degree = qs->list.v[0].degree;
	q->bidirectional = qs->list.v[0].bidirectional;
	r = cli_has(c, "joint") ? coll_find_joint(q, &l, err) : coll_find_flow(q, &l, err);
	if (r == 0) {
		out_one(c, o, q, &l);
	}
	coll_flow_list_fini(&l);
	return r;
}

int find_flow(const struct cli *c, const struct find_price *p, struct err *err)
{
	struct coll_flow_query q = { .flow = p->flow, .most = p->most };
	struct find_queries qs = { 0 };
	struct out *o = NULL;
	int r = find_queries_read(c, &qs, err);

	if (r == 0 && (o = out_new(c->format))) {
		r = find_is_sweep(c) ? out_sweep(c, o, &qs, &q, err)
				     : find_one(c, o, &qs, &q, err);
	}
	r = cli_print_unless(r, o, err);
	vec_fini(&qs.list);
	return r;
}
