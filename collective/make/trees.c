/* SPDX-License-Identifier: Apache-2.0 */
/* Schedules along trees of all ranks: the forest for a collective, and its figures. */
#include "collective/cost/cost.h"
#include "collective/make/private.h"
#include "collective/tree/pack/pack.h"
#include "collective/tree/spanning.h"
#include "collective/tree/stagger/stagger.h"

/* An all-reduce sums inwards and copies outwards along trees of the same roots. */
static int pack_both(const struct topo *t, struct coll_forest *f, struct err *err)
{
	struct coll_pack_options out = { .kind = COLL_ALLGATHER };
	struct coll_pack_options in = { .kind = COLL_REDUCE_SCATTER };
	struct coll_forest inwards;
	int rc = coll_forest_pack(t, &out, f, err);

	if (rc) {
		return rc;
	}
	coll_forest_init(&inwards);
	(void)((rc = coll_forest_pack(t, &in, &inwards, err)) ||
	       (rc = coll_forest_join(f, &inwards, err)));
	coll_forest_fini(&inwards);
	return rc;
}

/* Roots times nodes times arcs up to which "auto" takes the program of least cost: where switches
 * make trees unlike, and where all are terminals. */
#define MAX_COST_SWITCHED 100000
#define MAX_COST_PLAIN 1000

/* All that reaches the best rate, by a program; min_cost: at the least cost. */
static int find_rate(const struct coll_make_query *q, bool min_cost, const struct topo *t,
		     struct coll_forest *f, struct err *err)
{
	struct coll_rate_demand demand = { q->kind, coll_has_root(q->kind) ? q->root : 0, 1 };
	struct coll_rate_options opt = { .min_cost = min_cost };
	struct coll_rate rate;
	int rc;

	if (min_cost && !q->algorithm) {
		opt.max_work = topo_ranks(t) < topo_n(t) ? MAX_COST_SWITCHED : MAX_COST_PLAIN;
	}
	coll_rate_init(&rate);
	rc = coll_rate_forest(t, &demand, &opt, &rate, f, err);
	coll_rate_fini(&rate);
	return rc;
}

/* Trees in and trees out that share links as the whole of an all-reduce needs them: spanning trees
 * used both ways where every arc has its reverse, else by a program where that is small, or of the
 * ranks with the thinnest links. */
#define MAX_PROGRAM (1 << 13)	/* nodes times arcs */
#define MAX_PROGRAM_SWITCHED (1 << 15)

static int pack_joint(const struct coll_make_query *q, const struct topo *t,
		      struct coll_forest *f, struct err *err)
{
	int most = topo_ranks(t) < topo_n(t) ? MAX_PROGRAM_SWITCHED : MAX_PROGRAM;
	int rc = coll_forest_allreduce(t, COLL_SPANNING_TREES, f, err);

	if (rc != WEFT_EUNSUPPORTED) {
		return rc;
	}
	err_clear(err);
	coll_forest_fini(f);
	coll_forest_init(f);
	return (int64_t)topo_n(t) * topo_m(t) <= most ? find_rate(q, false, t, f, err)
						      : coll_forest_few_roots(t, f, err);
}

static int pack(const struct coll_make_query *q, bool joint, const struct topo *t,
		struct coll_forest *f, struct err *err)
{
	struct coll_pack_options opt = { .kind = q->kind };

	if (q->min_cost) {
		return find_rate(q, true, t, f, err);
	}
	if (joint) {
		return pack_joint(q, t, f, err);
	}
	return q->kind == COLL_ALLREDUCE ? pack_both(t, f, err) : coll_forest_pack(t, &opt, f, err);
}

/* Trees are those of ranks: switches only forward to them, and may save loads afterwards; so do
 * memories, which cannot sum, where trees in and out are one program. */
int make_forest(const struct coll_make_query *q, bool joint, double below_ns,
		struct coll_made *made, struct err *err)
{
	const struct topo *t = q->physical ? q->physical : q->topo;
	struct topo *sums = NULL, *forwarding = NULL;
	struct coll_stagger_options opt = {
		.kind = q->kind, .cost = q->cost, .batches = q->batches,
		.max_transfers = q->max_transfers, .below_ns = below_ns,
		.steps_worth = q->steps_worth > 0 ? q->steps_worth : COLL_STEPS_WORTH,
	};
	struct coll_stagger_info info = { 0 };
	struct coll_forest f;
	int rc = 0;

	coll_forest_init(&f);
	if (joint && (rc = topo_copy_forwarding(t, TOPO_MEMORY, &sums, err)) == 0) {
		t = sums;
	}
	if (rc || (rc = topo_copy_forwarding(t, TOPO_SWITCH, &forwarding, err)) ||
	    (rc = pack(q, joint, forwarding, &f, err)) ||
	    (rc = coll_forest_schedule(&f, t, &opt, &made->sched, &info, err)) || !made->sched) {
		goto out;
	}
	if (coll_is_embedded(made->sched) && q->fabric) {
		coll_set_physical_name(made->sched, q->fabric->name);
	}
	made->is_physical = q->physical != NULL;
	made->tree_limit = mpq_get_d(f.time) * coll_ports(made->sched) / coll_ranks(made->sched);
	made->batches = info.batches;
	made->tree.trees = info.trees;
	made->tree.deepest = info.deepest;
	made->tree.batches = info.batches;
	made->tree.steps = info.steps;
out:
	topo_free(sums);
	topo_free(forwarding);
	coll_forest_fini(&f);
	return rc;
}
