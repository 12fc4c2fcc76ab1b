/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weft topology find for what has to be scheduled to be compared: all-to-all with a cost, and
 * collectives with a root.
 */
#include <stdlib.h>

#include "controller/cli/schedules/find.h"

/* {steps, bandwidth_factor, algorithm, time_ns, ports, topology} */
static void out_choice(const struct cli *c, struct out *o, const struct coll_choice *x)
{
	out_int(o, "steps", x->steps);
	find_out_ratio(o, "bandwidth_factor", x->num, x->den);
	out_str(o, "algorithm", x->algorithm);
	cli_out_ns(c, o, "time", x->time_ns);
	out_int(o, "ports", x->ports);
	out_str(o, "topology", x->expr);
}

/* The fastest, and the others that were timed to find it. */
static int out_one(const struct cli *c, struct out *o, const struct coll_query *q,
		   const struct find_price *p, struct coll_choices *all, struct err *err)
{
	struct coll_choice x;
	int r = coll_choices_next(all, &x, err);

	if (r) {
		return r;
	}
	out_int(o, "nodes", q->n);
	out_int(o, "degree", q->degree);
	out_bool(o, "bidirectional", q->bidirectional);
	out_str(o, "collective", coll_kind_name(q->kind));
	find_out_forward(o, p);
	out_str(o, "best", x.expr);
	out_array(o, "points");
	do {
		out_object(o, NULL);
		out_choice(c, o, &x);
		out_end(o);
	} while (coll_choices_timed(all, &x));
	out_end(o);
	return 0;
}

/* The fastest of every query and size; queries for which nothing is known are left out. */
static int out_row(const struct cli *c, struct out *o, const struct coll_query *q,
		   const struct find_price *p, size_t size, struct coll_choices *all,
		   struct err *err)
{
	struct coll_choice x;
	int r = coll_choices_next(all, &x, err);

	if (r == WEFT_ENOTFOUND) {
		return 0;
	}
	if (r == 0) {
		out_object(o, NULL);
		out_int(o, "nodes", q->n);
		out_int(o, "degree", q->degree);
		out_int(o, "size_bytes", p->sizes.v[size]);
		out_choice(c, o, &x);
		out_end(o);
	}
	return r;
}

/* All sizes of one query share its frontier. */
static int rank(const struct cli *c, struct out *o, const struct coll_query *q,
		const struct find_price *p, bool is_sweep, struct err *err)
{
	struct coll_query gather = *q;
	struct coll_frontier f = { 0 };
	int r = 0;

	gather.kind = COLL_ALLGATHER;
	if (coll_has_root(q->kind)) {
		r = coll_find(&gather, true, &f, err);
		r = r == WEFT_EINFEASIBLE ? 0 : r;
	}
	for (size_t i = 0; i < p->sizes.n && r == 0 && !cli_interrupted; i++) {
		struct coll_choices *all;

		r = find_choices(p, i, q, &f, &all, err);
		if (r == 0) {
			r = is_sweep ? out_row(c, o, q, p, i, all, err)
				     : out_one(c, o, q, p, all, err);
		}
		coll_choices_free(all);
	}
	coll_frontier_fini(&f);
	return r;
}

static int rank_all(const struct cli *c, struct out *o, const struct find_queries *qs,
		    const struct find_price *p, struct err *err)
{
	int r = 0;

	if (!find_is_sweep(c) && p->sizes.n == 1) {
		return rank(c, o, qs->list.v, p, false, err);
	}
	out_bool(o, "bidirectional", qs->list.v[0].bidirectional);
	out_str(o, "collective", coll_kind_name(qs->list.v[0].kind));
	find_out_forward(o, p);
	out_array(o, "best");
	for (size_t i = 0; i < qs->list.n && r == 0 && !cli_interrupted; i++) {
		r = rank(c, o, &qs->list.v[i], p, true, err);
	}
	out_end(o);
	return r;
}

int find_ranked(const struct cli *c, const struct find_price *p, struct err *err)
{
	struct find_queries qs = { 0 };
	struct out *o = NULL;
	int r = find_queries_read(c, &qs, err);

	if (r == 0 && !p->asked) {
		r = err_set(err, WEFT_EUSAGE, "weft %s: %s: the best topology depends on the cost: "
			    "--alpha, --bandwidth and --size are missing", c->verb,
			    coll_kind_name(qs.list.v[0].kind));
	}
	if (r == 0) {
		o = out_new(c->format);
		r = rank_all(c, o, &qs, p, err);
	}
	r = cli_print_unless(r, o, err);
	vec_fini(&qs.list);
	return r;
}
