/* SPDX-License-Identifier: Apache-2.0 */
/* Broadcast, reduce, gather and scatter. */
#include "collective/make/private.h"
#include "lib/base/number/rat.h"

static int offer_rooted(const struct coll_make_query *q, const struct coll_algorithm *self,
			const struct coll_cost *cost, struct coll_made *best, struct err *err)
{
	struct coll_tree_options opt = { q->kind, q->root, cost, q->batches };
	struct coll_made one = { .algorithm = self };
	int rc = coll_tree_make(q->topo, &opt, &one.sched, &one.tree, err);

	one.batches = one.tree.batches;
	return rc ? rc : make_offer(q, &one, best, err);
}

/* The cost with the rate that links of the logical digraph came to when they were embedded. */
static int embedded_cost(const struct coll_make_query *q, const struct coll_made *best,
			 struct coll_cost *cost, struct err *err)
{
	struct coll_report r;
	mpq_t rate;
	int rc;

	*cost = *q->cost;
	coll_report_init(&r);
	mpq_init(rate);
	rc = coll_verify(best->logical, &r, err);
	if (rc == 0 && mpq_sgn(best->report.shard_times) > 0) {
		mpq_div(rate, r.shard_times, best->report.shard_times);
		cost->link_bps = (int64_t)(mpq_get_d(rate) * (double)cost->link_bps);
		cost->link_bps = cost->link_bps > 0 ? cost->link_bps : 1;
	}
	mpq_clear(rate);
	coll_report_fini(&r);
	return rc;
}

/* Where switches copy or sum, the fewest steps, too: what the root sends to many, or gets of
 * them, may load its links once. */
static int offer_shallow(const struct coll_make_query *q, const struct coll_algorithm *self,
			 struct coll_made *best, struct err *err)
{
	struct coll_cost cost = *q->cost;

	if (!coll_switches_can(q->fabric->topo, TOPO_CAN_COPY | TOPO_CAN_REDUCE)) {
		return 0;
	}
	cost.size_bytes = 0;
	return offer_rooted(q, self, &cost, best, err);
}

/* The synthesiser chooses by the cost for itself; where links have other rates once they are
 * embedded, it chooses once more. */
int make_by_rooted(const struct coll_make_query *q, const struct coll_algorithm *self,
		   struct coll_made *best, struct err *err)
{
	struct coll_cost cost;
	int rc = q->min_cost ? make_by_forest(q, self, best, err)
			     : offer_rooted(q, self, q->cost, best, err);

	if (rc || q->min_cost || !q->cost || !q->fabric ||
	    (rc = offer_shallow(q, self, best, err)) || (rc = embedded_cost(q, best, &cost, err))) {
		return rc;
	}
	return offer_rooted(q, self, &cost, best, err);
}

int make_predict_trees(const struct coll_make_query *q, struct coll_prediction *out,
		       struct err *err)
{
	struct coll_tree_options opt = { .kind = q->kind, .root = q->root, .cost = q->cost };
	struct coll_tree_info info;
	int64_t gcd;
	int rc = coll_tree_figures(q->topo, &opt, &info, err);

	if (rc || info.load_den == 0) {
		return rc ? rc : WEFT_ELIMIT;
	}
	out->ports = topo_max_degree(q->topo);
	gcd = rat_gcd(out->ports, info.load_den);
	out->steps = info.steps;
	out->num = info.load_num * (out->ports / gcd);
	out->den = info.load_den / gcd;
	make_time_prediction(q->cost, out);
	return 0;
}
