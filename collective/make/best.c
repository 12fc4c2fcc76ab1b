/* SPDX-License-Identifier: Apache-2.0 */
/* The best schedule of all algorithms that are asked for. */
#include "collective/make/private.h"

/* How near the flow of a job's all-to-all comes to its bound, or when it stops. */
#define JOB_GAP 1e-3
#define JOB_PASSES 500

/* What an algorithm offers. */
static int run(const struct coll_make_query *q, const struct coll_algorithm *a,
	       struct coll_made *best, struct err *err)
{
	return a->made_of == COLL_OF_GROUPS  ? make_by_hierarchy(q, a, best, err)
	       : a->made_of == COLL_OF_WHOLE ? make_by_trimmed(q, a, best, err)
					     : a->run(q, a, best, err);
}

/* One for "auto": what is too large for it may do for another; *first keeps the first such
 * error. */
static int try_one(const struct coll_make_query *q, const struct coll_algorithm *a,
		   struct coll_made *best, struct err *first, struct err *err)
{
	int rc = run(q, a, best, err);

	if (rc != WEFT_ELIMIT || q->algorithm || q->kind == COLL_ALLTOALL) {
		return rc;
	}
	if (first->code == 0) {
		err_set(first, rc, "%s", err ? err->msg : "");
	}
	err_clear(err);
	return 0;
}

/* All that are asked for. */
static int try_all(const struct coll_make_query *q, struct coll_made *best, struct err *err)
{
	const struct coll_algorithm *a;
	struct err first = { 0 };
	int rc;

	for (int i = 0; (a = coll_algorithm(i)); i++) {
		if ((a->kinds & COLL_KIND_BIT(q->kind)) == 0 ||
		    (q->algorithm ? a != q->algorithm
				  : a->by_name_only || (a->needs_expression && !q->expr))) {
			continue;
		}
		rc = try_one(q, a, best, &first, err);
		if (rc) {
			return rc;
		}
	}
	if (!best->sched && first.code) {
		return err_set(err, first.code, "%s", first.msg);
	}
	return best->sched ? 0 : err_set(err, WEFT_EUNSUPPORTED, "algorithm %s: not supported for "
					 "%s", q->algorithm ? q->algorithm->name : "auto",
					 coll_kind_name(q->kind));
}

int coll_make(const struct coll_make_query *q, struct coll_made *out, struct err *err)
{
	int rc;

	*out = (struct coll_made){ 0 };
	rc = try_all(q, out, err);
	if (rc) {
		coll_made_fini(out);
	}
	return rc;
}

struct coll_make_query coll_make_job(enum coll_kind kind,
				     const struct coll_algorithm *algorithm,
				     const struct topo *topo, const struct coll_cost *cost)
{
	bool trees = algorithm && algorithm->chooses_steps;
	bool whole = algorithm || (cost && cost->alpha_ns == 0);

	return (struct coll_make_query){
		.kind = kind, .algorithm = algorithm, .topo = topo, .cost = cost,
		.batches = whole && !coll_has_root(kind) && !trees,
		.max_transfers = COLL_MAKE_TRANSFERS,
		.pairs = { .flow = { .gap = JOB_GAP, .max_passes = JOB_PASSES },
			   .loss = MCF_SCHED_LOSS },
	};
}
