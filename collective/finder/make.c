/* The schedule that weft makes for a job on a given digraph. */
#include <stdlib.h>
#include <string.h>

#include "collective/bfb/bfb.h"
#include "collective/finder/finder.h"
#include "collective/tree/tree.h"

/* How near an all-to-all's flow comes to its bound, or when it stops. A count of passes is
 * the only limit: the same schedule anywhere. */
#define FLOW_GAP 1e-3
#define FLOW_PASSES 500

void coll_made_fini(struct coll_made *m)
{
	coll_free(m->sched);
	mcf_free(m->flow);
	if (m->algorithm) {
		coll_report_fini(&m->report);
	}
	*m = (struct coll_made){ 0 };
}

/* Takes s and flow over, also on error; they become *out when it is empty or slower. */
static int offer(const struct coll_make_query *q, const char *algorithm, struct coll_sched *s,
		 struct mcf *flow, struct coll_made *out, struct err *err)
{
	struct coll_made one = { .sched = s, .flow = flow, .algorithm = algorithm };
	int rc;

	coll_report_init(&one.report);
	if ((rc = coll_verify(s, &one.report, err)) == 0) {
		rc = coll_time(s, &one.report, &q->cost, &one.time_ns, &one.bound_ns, err);
	}
	if (rc == 0 && (!out->sched || one.time_ns < out->time_ns)) {
		struct coll_made slower = *out;

		*out = one;
		one = slower;
	}
	coll_made_fini(&one);
	return rc;
}

/* The construction, where the digraph is an expansion that has one. */
static int try_expansion(const struct coll_make_query *q, const char *expr,
			 struct coll_made *out, struct err *err)
{
	struct coll_sched *s = NULL;
	int rc = coll_expand(q->kind, expr, &s, NULL);

	if (rc) {
		return rc == WEFT_ENOMEM ? err_nomem(err) : 0;
	}
	return offer(q, "expand", s, NULL, out, err);
}

/* Batches that overlap, where links are idle and a step has its price: with
 * steps for nothing, more batches would always be better. */
static int try_batches(const struct coll_make_query *q, struct coll_made *out, struct err *err)
{
	struct coll_sched *s = NULL, *moved = NULL;
	int64_t n = 0, most;
	int batches, rc;

	coll_xfers(out->sched, &n);
	n *= topo_group_order(coll_group(out->sched));
	most = n > 0 ? COLL_MAKE_TRANSFERS / n : 0;
	if (q->cost.alpha_ns == 0 || out->report.bandwidth_optimal || most < 2) {
		return 0;
	}
	rc = coll_pipeline_best(out->sched, &q->cost,
				most < COLL_MAX_BATCHES ? (int)most : COLL_MAX_BATCHES,
				&batches, err);
	if (!rc && batches > 1) {
		rc = coll_pipeline(out->sched, batches, &s, err);
		if (rc == 0 && (rc = coll_tighten_steps(s, &moved, err)) == 0) {
			rc = offer(q, out->algorithm, moved, NULL, out, err);
		}
		coll_free(s);
	}
	/* Never an error of its own, but for memory. */
	return rc == WEFT_ENOMEM ? rc : 0;
}

static int make_breadth_first(const struct coll_make_query *q, struct topo *topo,
			      const char *expr, struct coll_made *out, struct err *err)
{
	struct coll_sched *s = NULL;
	int rc = coll_bfb(q->kind, topo, &s, err);

	if (rc || (rc = offer(q, "bfb", s, NULL, out, err)) || strcmp(q->algorithm, "bfb") == 0) {
		return rc;
	}
	if (expr && (rc = try_expansion(q, expr, out, err))) {
		return rc;
	}
	return try_batches(q, out, err);
}

static int make_rooted(const struct coll_make_query *q, struct topo *topo,
		       struct coll_made *out, struct err *err)
{
	bool is_tree = q->kind == COLL_BROADCAST || q->kind == COLL_REDUCE;
	struct coll_tree_options opt = { .kind = q->kind, .cost = &q->cost };
	struct coll_tree_info info;
	struct coll_sched *s = NULL;
	int rc = coll_tree_make(topo, &opt, &s, &info, err);

	topo_free(topo);
	return rc ? rc : offer(q, is_tree ? "trees" : "paths", s, NULL, out, err);
}

int coll_make_flow(const char *algorithm, const struct topo *topo,
		   const struct coll_flow_before *before, struct mcf **flow,
		   struct coll_sched **out, struct err *err)
{
	struct mcf_options limits = { .gap = FLOW_GAP, .max_passes = FLOW_PASSES };
	struct mcf_sched_options opt = { .flow = limits, .loss = MCF_SCHED_LOSS, .kept = flow };
	struct mcf_steps_options steps = { .flow = limits, .loss = MCF_SCHED_LOSS };
	struct mcf_steps_info info;

	if (strcmp(algorithm, "tsmcf") == 0) {
		return mcf_steps(topo, &steps, out, &info, err);
	}
	if (before) {
		opt.before = before->flow;
		opt.before_topo = before->topo;
		opt.dropped = before->dropped;
	}
	mcf_form_parse(algorithm, &opt.form);
	mcf_paths_parse(algorithm, &opt.paths);
	opt.max_chunks = opt.paths == MCF_PATHS_SINGLE || opt.paths == MCF_PATHS_SHORTEST;
	return mcf_schedule(topo, &opt, out, NULL, err);
}

static int make_all_to_all(const struct coll_make_query *q, struct topo *topo,
			   struct coll_made *out, struct err *err)
{
	const char *algorithm = strcmp(q->algorithm, "auto") == 0 ? "mcf" : q->algorithm;
	struct coll_sched *s = NULL;
	struct mcf *flow = NULL;
	int rc = coll_make_flow(algorithm, topo, NULL, &flow, &s, err);

	topo_free(topo);
	if (rc) {
		mcf_free(flow);
		return rc;
	}
	return offer(q, algorithm, s, flow, out, err);
}

int coll_make(const struct coll_make_query *q, struct topo *topo, const char *expr,
	      struct coll_made *out, struct err *err)
{
	int rc;

	*out = (struct coll_made){ 0 };
	rc = q->kind == COLL_ALLTOALL	? make_all_to_all(q, topo, out, err)
	     : coll_has_root(q->kind)	? make_rooted(q, topo, out, err)
					: make_breadth_first(q, topo, expr, out, err);
	if (rc) {
		coll_made_fini(out);
	}
	return rc;
}
