/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weft topology find for many sizes at once, and what time a point takes.
 *
 * A sweep is a query for each pair of --nodes and --degree; coll_sweep()
 * shares the work among them and among the processors. Without a cost every
 * point of every frontier is printed; with one, the fastest topology a size,
 * degree and message size. The cost is that of the papers: steps times alpha
 * and hop, and the bandwidth factor times M/B.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "controller/cli/schedules/find.h"
#include "lib/base/alloc.h"
#include "lib/base/number/rat.h"

/* Sizes of --size, and pairs of a sweep, at most. */
#define MAX_SIZES 64
#define MAX_QUERIES 65536

/* ---- prices ---- */

/* "1MB,64MB"; at least one. */
static int read_sizes(const struct cli *c, struct find_price *p, struct err *err)
{
	char *text = x_dup(cli_opt(c, "size")), *save = NULL;
	int r = 0;

	for (char *word = strtok_r(text, ",", &save); word && !r;
	     word = strtok_r(NULL, ",", &save)) {
		int64_t bytes;

		r = unit_parse(UNIT_BYTES, word, &bytes, err);
		if (r) {
			r = err_set(err, WEFT_EUSAGE, "--size: \"%s\" is "
				    "not a size such as 64KiB or 1MB", word);
		} else if (p->sizes.n == MAX_SIZES) {
			r = err_set(err, WEFT_EUSAGE, "--size: more than %d sizes", MAX_SIZES);
		} else {
			vec_push(&p->sizes, bytes);
		}
	}
	if (!r && p->sizes.n == 0) {
		r = err_set(err, WEFT_EUSAGE, "--size: expected a size");
	}
	free(text);
	return r;
}

/* --gap and --candidates. */
static int read_flow(const struct cli *c, struct find_price *p, struct err *err)
{
	int64_t most = COLL_WANT_FLOWS;
	int r;

	p->flow = (struct mcf_options){ .gap = COLL_WANT_GAP, .max_passes = COLL_WANT_PASSES,
					.cancel = &cli_interrupted };
	(void)((r = cli_opt_share(c, "gap", &p->flow.gap, err)) ||
	       (r = cli_opt_int(c, "candidates", 1, 1000, &most, err)));
	p->most = (int)most;
	return r;
}

int find_price_read(const struct cli *c, struct find_price *p, struct err *err)
{
	int r;

	memset(p, 0, sizeof(*p));
	r = read_flow(c, p, err);
	if (r) {
		return r;
	}
	p->asked = cli_has(c, "alpha") || cli_has(c, "bandwidth") || cli_has(c, "size") ||
		   cli_has(c, "hop") || cli_has(c, "forward");
	if (!p->asked) {
		return 0;
	}
	if ((r = cli_need(c, "alpha", err)) ||
	    (r = cli_need(c, "bandwidth", err)) ||
	    (r = cli_need(c, "size", err)) ||
	    (r = cli_read_latency(c, &p->cost, err)) ||
	    (r = cli_opt_unit(c, "bandwidth", UNIT_BPS, &p->node_bps, err)) ||
	    (r = read_sizes(c, p, err))) {
		return r;
	}
	return p->node_bps > 0 ? 0
		: err_set(err, WEFT_EUSAGE, "weft %s: --bandwidth is zero", c->verb);
}

/* In ns; bytes to bits is the 8, seconds to ns the 1e9. */
static double time_of(const struct find_price *p, size_t i, int steps, int64_t num, int64_t den)
{
	return (double)steps * (double)(p->cost.alpha_ns + p->cost.hop_ns) +
	       (double)num / (double)den * (double)p->sizes.v[i] * 8e9 /
		       (double)p->node_bps;
}

int64_t find_time(const struct find_price *p, size_t i, int steps, int64_t num, int64_t den)
{
	return (int64_t)(time_of(p, i, steps, num, den) + 0.5);
}

struct coll_cost find_cost(const struct find_price *p, size_t i, const struct coll_query *q)
{
	struct coll_cost cost = p->cost;

	cost.link_bps = p->node_bps >= q->degree ? p->node_bps / q->degree : 1;
	cost.size_bytes = p->sizes.v[i];
	return coll_cost_of(cost);
}

int find_choices(const struct find_price *p, size_t i, const struct coll_query *q,
		 const struct coll_frontier *known, struct coll_choices **out, struct err *err)
{
	struct coll_want w = { .q = *q, .cost = find_cost(p, i, q),
			       .flow = p->flow, .most = p->most };

	return coll_choices_new(&w, known, out, err);
}

void find_out_ratio(struct out *o, const char *key, int64_t num, int64_t den)
{
	char text[64];
	mpq_t q;

	mpq_init(q);
	rat_set(q, num, den);
	out_str(o, key, rat_str(q, text, sizeof(text)));
	mpq_clear(q);
}

void find_out_forward(struct out *o, const struct find_price *p)
{
	if (p->asked) {
		out_bool(o, "forward", coll_cost_of(p->cost).forwards);
	}
}

/* ---- lists of numbers ---- */

struct numbers {
	VEC(int) list;
};

static int bad_list(const char *name, const char *text, int min, int max, struct err *err)
{
	return err_set(err, WEFT_EUSAGE, "--%s: \"%s\" is not a list of whole "
		       "numbers from %d to %d, such as 8,16,32-64", name, text,
		       min, max);
}

/* "8", "2-2000", "2,4,8-10" */
static int read_numbers(const struct cli *c, const char *name, int min,
			int max, struct numbers *out, struct err *err)
{
	const char *text = cli_opt(c, name), *at = text;
	char *end;

	for (;;) {
		long from, to;

		errno = 0;
		from = to = strtol(at, &end, 10);
		if (end != at && *end == '-') {
			at = end + 1;
			to = strtol(at, &end, 10);
		}
		if (end == at || errno || from < min || to > max ||
		    to < from || (*end && *end != ',')) {
			return bad_list(name, text, min, max, err);
		}
		for (; from <= to; from++) {
			vec_push(&out->list, (int)from);
		}
		if (!*end) {
			return 0;
		}
		at = end + 1;
	}
}

/* A list or range, by its commas and dashes. */
static bool is_list(const char *text)
{
	/* A minus in front is for read_query to refuse. */
	return text && text[0] && strpbrk(text + 1, ",-");
}

bool find_is_sweep(const struct cli *c)
{
	return is_list(cli_opt(c, "nodes")) || is_list(cli_opt(c, "degree"));
}

/* ---- the sweep ---- */

/* Sizes first, then degrees. */
static int make_queries(const struct cli *c, const struct numbers *nodes,
			const struct numbers *degrees, struct find_queries *out, struct err *err)
{
	struct coll_query q = { .kind = COLL_ALLREDUCE,
				.bidirectional = cli_has(c, "bidirectional") };
	int64_t sets = 0;
	int r = cli_opt_kind(c, &q.kind, err);

	if (!r) {
		r = cli_opt_int(c, "sets", 1, INT_MAX, &sets, err);
		q.sets = (int)sets;
	}
	if (!r && nodes->list.n * degrees->list.n > MAX_QUERIES) {
		r = err_set(err, WEFT_ELIMIT, "%zu sizes times %zu degrees "
			    "are more than %d", nodes->list.n,
			    degrees->list.n, MAX_QUERIES);
	}
	for (size_t i = 0; i < nodes->list.n && !r; i++) {
		for (size_t k = 0; k < degrees->list.n; k++) {
			q.n = nodes->list.v[i];
			q.degree = degrees->list.v[k];
			vec_push(&out->list, q);
		}
	}
	return r;
}

int find_queries_read(const struct cli *c, struct find_queries *out, struct err *err)
{
	struct numbers nodes = { 0 }, degrees = { 0 };
	int r;

	(void)((r = cli_need(c, "nodes", err)) ||
	       (r = cli_need(c, "degree", err)) ||
	       (r = read_numbers(c, "nodes", 2, COLL_FINDER_MAX_NODES, &nodes, err)) ||
	       (r = read_numbers(c, "degree", 1, COLL_FINDER_MAX_NODES - 1, &degrees, err)) ||
	       (r = make_queries(c, &nodes, &degrees, out, err)));
	vec_fini(&nodes.list);
	vec_fini(&degrees.list);
	return r;
}

/* A row: {nodes, degree, steps, steps_bound, bandwidth_factor,
 * bandwidth_bound, ports, topology} and, with a cost, size_bytes, time_ns and
 * bound_ns. */
static void out_point(const struct cli *c, struct out *o, const struct coll_query *q,
		      const struct coll_frontier *f, const struct coll_choice *x,
		      const struct find_price *p, size_t size)
{
	out_object(o, NULL);
	out_int(o, "nodes", q->n);
	out_int(o, "degree", q->degree);
	out_int(o, "steps", x->steps);
	out_int(o, "steps_bound", f->steps_bound);
	find_out_ratio(o, "bandwidth_factor", x->num, x->den);
	find_out_ratio(o, "bandwidth_bound", f->bound_num, f->bound_den);
	if (p->asked) {
		out_int(o, "size_bytes", p->sizes.v[size]);
		cli_out_ns(c, o, "time", x->time_ns);
		cli_out_ns(c, o, "bound", find_time(p, size, f->steps_bound, f->bound_num,
						    f->bound_den));
	}
	out_int(o, "ports", x->ports);
	out_str(o, "topology", x->expr);
	out_end(o);
}

/* The fastest for every message size. */
static int out_best(const struct cli *c, struct out *o, const struct coll_query *q,
		    const struct coll_frontier *f, const struct find_price *p, struct err *err)
{
	int r = 0;

	for (size_t k = 0; k < p->sizes.n && f->points.n > 0 && r == 0; k++) {
		struct coll_choices *all;
		struct coll_choice best;

		r = find_choices(p, k, q, f, &all, err);
		if (r == 0 && (r = coll_choices_next(all, &best, err)) == 0) {
			out_point(c, o, q, f, &best, p, k);
		}
		coll_choices_free(all);
	}
	return r;
}

static int out_sweep(const struct cli *c, struct out *o, const struct find_queries *qs,
		     const struct coll_frontier *fs, const struct find_price *p, struct err *err)
{
	int r = 0;

	out_bool(o, "bidirectional", qs->list.v[0].bidirectional);
	out_str(o, "collective", coll_kind_name(qs->list.v[0].kind));
	find_out_forward(o, p);
	out_array(o, p->asked ? "best" : "points");
	for (size_t i = 0; i < qs->list.n && r == 0; i++) {
		const struct coll_frontier *f = &fs[i];

		for (size_t k = 0; !p->asked && k < f->points.n; k++) {
			const struct coll_point *x = &f->points.v[k];

			out_point(c, o, &qs->list.v[i], f, &(struct coll_choice){
				.expr = x->expr, .steps = x->steps, .num = x->num,
				.den = x->den, .ports = x->ports }, p, 0);
		}
		r = out_best(c, o, &qs->list.v[i], f, p, err);
	}
	out_end(o);
	return r;
}

/* Threads that a sweep is worth. */
static int processors(void)
{
	long n = sysconf(_SC_NPROCESSORS_ONLN);

	return n < 1 ? 1 : n > 64 ? 64 : (int)n;
}

/* One query, with several sizes, is searched as long as usual. */
static int search_all(const struct find_queries *qs, struct coll_frontier *fs, struct err *err)
{
	int r;

	if (qs->list.n > 1) {
		return coll_sweep(qs->list.v, qs->list.n, true, processors(), fs, err);
	}
	r = coll_find(qs->list.v, true, fs, err);
	return r == WEFT_EINFEASIBLE ? 0 : r;
}

int find_sweep(const struct cli *c, const struct find_price *p, struct err *err)
{
	struct find_queries qs = { 0 };
	struct coll_frontier *fs = NULL;
	struct out *o = NULL;
	int r = find_queries_read(c, &qs, err);

	if (!r) {
		fs = x_new(qs.list.n, sizeof(*fs));
		r = search_all(&qs, fs, err);
	}
	if (!r) {
		o = out_new(c->format);
		r = out_sweep(c, o, &qs, fs, p, err);
	}
	r = cli_print_unless(r, o, err);
	for (size_t i = 0; fs && i < qs.list.n; i++) {
		coll_frontier_fini(&fs[i]);
	}
	free(fs);
	vec_fini(&qs.list);
	return r;
}
