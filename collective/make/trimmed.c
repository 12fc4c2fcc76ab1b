/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives with a root as what those without have of them. */
#include "collective/make/private.h"

/* Nodes times arcs up to which "auto" trims, and the fastest there is, twice as many where breadth
 * first takes little more than the best; and transfers of these. */
#define MAX_TRIMMED (1 << 22)
#define MAX_FASTEST (1 << 13)
#define LITTLE_MORE 1.2
#define MAX_WHOLE (1 << 23)

/* Nothing where it is large, or not even half of its time, which one of two phases takes, is fast
 * enough. */
static int offer_trimmed(const struct coll_make_query *q, const struct coll_algorithm *self,
			 const struct coll_made *whole, struct coll_made *best, struct err *err)
{
	struct coll_made one = { .algorithm = self, .is_physical = true,
				 .batches = whole->batches };
	int64_t most = q->max_transfers > 0 ? q->max_transfers : MAX_WHOLE;
	int rc;

	if (best->sched && (whole->report.transfers > most ||
			    (q->cost && whole->time_ns / 2 >= best->time_ns))) {
		return 0;
	}
	rc = coll_trim(whole->sched, q->kind, q->root, &one.sched, err);
	return rc ? rc : make_offer(q, &one, best, err);
}

/* The i-th schedule to trim: by name the fastest, for "auto" breadth first, that on coordinates,
 * and the fastest. */
static int make_whole(const struct coll_make_query *q, int i, struct coll_made *whole,
		      struct err *err)
{
	struct coll_make_query how = *q;

	how.kind = coll_trimmed_from(q->kind);
	how.algorithm = i == 0 && !q->algorithm ? coll_algorithm_find("bfb", how.kind) : NULL;
	return i == 1 ? coll_make_torus(&how, whole, err) : coll_make(&how, whole, err);
}

/* "auto" out of those that take little work to make, where steps have a cost and the best so far is
 * above its bound. */
int make_by_trimmed(const struct coll_make_query *q, const struct coll_algorithm *self,
		    struct coll_made *best, struct err *err)
{
	bool tries = q->cost && q->batches == 0 && best->sched &&
		     (double)best->time_ns > (double)best->bound_ns * MET(q) &&
		     (int64_t)topo_n(q->topo) * topo_m(q->topo) <= MAX_TRIMMED;
	const struct topo *t = q->physical ? q->physical : q->topo;
	int64_t work = (int64_t)topo_n(t) * topo_m(t);
	int rc = 0, n = q->algorithm ? 1 : !tries ? 0 : work <= MAX_FASTEST ? 3 : 2;

	for (int i = 0; i < n; i++) {
		struct coll_made whole;

		rc = make_whole(q, i, &whole, err);
		if (rc == 0) {
			n += i == 0 && n == 2 && work <= 2 * MAX_FASTEST &&
			     (double)whole.time_ns < LITTLE_MORE * (double)best->time_ns;
			rc = offer_trimmed(q, self, &whole, best, err);
			coll_made_fini(&whole);
		}
		if (rc && !q->algorithm) {
			err_clear(err);
			rc = 0;
		}
	}
	return rc;
}
