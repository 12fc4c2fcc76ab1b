/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All-reduce in as many steps as the digraph is wide, for vectors that are short beside a step.
 *
 * What every rank contributes, its whole vector, goes to all others as shards do in an all-gather
 * by breadth-first broadcast, and is summed wherever it comes by: a rank sends its own in the first
 * step and forwards those of others after that. That is half of the steps of a reduce-scatter and
 * an all-gather, and N times the T_B of the all-gather.
 *
 * The all-gather of a group's first terminals is moved by all of its elements, and of the sums
 * those of the first terminals are kept: so the schedule is compact where the all-gather is.
 */
#include "collective/bfb/bfb.h"
#include "collective/make/private.h"

/* Transfers that are kept: of a job's schedule, of one by name, and of one that "auto" makes. */
#define MAX_JOB (INT64_C(1) << 20)
#define MAX_NAMED (INT64_C(1) << 24)
#define MAX_AUTO (INT64_C(1) << 22)

/* An empty all-reduce on what the all-gather is on, compact by the same group. */
static int make_empty(const struct coll_sched *gather, struct coll_sched **out, struct err *err)
{
	struct topo_group *group = NULL;
	struct topo *copy = NULL;
	int rc = topo_copy(coll_topo(gather), &copy, err);

	if (rc || (rc = coll_new(COLL_ALLREDUCE, copy, coll_chunks(gather), coll_ports(gather), 0,
				 out, err)) ||
	    (rc = topo_group_copy(coll_group(gather), &group, err))) {
		return rc;
	}
	return coll_set_group(*out, group, err);
}

/* The transfers of sum `shard` that those of the all-gather become. */
static int add_sum(const struct coll_sched *all, int shard, struct coll_sched *out,
		   struct err *err)
{
	const struct topo_arc *arcs = topo_arcs(coll_topo(all));
	int64_t n;
	const struct coll_xfer *gather = coll_xfers(all, &n);
	int rc = 0;

	for (int64_t i = 0; i < n && rc == 0; i++) {
		struct coll_xfer x = gather[i];
		bool own = arcs[x.arc].src == x.origin;

		x.op = own ? COLL_OP_REDUCE : COLL_OP_FORWARD;
		x.dest = own ? COLL_NO_DEST : x.origin;
		x.origin = shard;
		rc = coll_add(out, &x, err);
	}
	return rc;
}

static int add_sums(const struct coll_sched *gather, struct coll_sched *out, struct err *err)
{
	struct coll_sched *all;
	int rc = coll_unfold(gather, &all, err);

	if (rc) {
		return rc;
	}
	for (int shard = 0; shard < coll_ranks(out) && rc == 0; shard++) {
		if (topo_group_first(coll_group(out), shard) == shard) {
			rc = add_sum(all, shard, out, err);
		}
	}
	coll_free(all);
	return rc ? rc : coll_finish(out, err);
}

/* Every transfer of the all-gather that is kept stands for one of each sum. */
static int check_size(const struct coll_make_query *q, const struct coll_sched *gather,
		      struct err *err)
{
	int64_t kept, most = q->max_transfers > 0 ? MAX_JOB : q->algorithm ? MAX_NAMED : MAX_AUTO;

	coll_xfers(gather, &kept);
	kept *= coll_ranks(gather);
	return kept <= most ? 0 : err_set(err, WEFT_ELIMIT, "algorithm one-shot: %lld transfers "
					  "are too many: at most %lld", (long long)kept,
					  (long long)most);
}

int make_predict_one_shot(const struct coll_make_query *q, struct coll_prediction *out,
			  struct err *err)
{
	mpq_t factor;
	int rc;

	mpq_init(factor);
	rc = coll_bfb_factor(COLL_ALLGATHER, q->topo, &out->steps, factor, err);
	if (rc == 0) {
		out->num = mpz_get_si(mpq_numref(factor)) * topo_ranks(q->topo);
		out->den = mpz_get_si(mpq_denref(factor));
		out->ports = make_ports(q->topo);
		make_time_prediction(q->cost, out);
	}
	mpq_clear(factor);
	return rc;
}

/* Whether it may take less time than the best so far: of what switches copy or sum nothing is
 * predicted. */
static bool may_gain(const struct coll_make_query *q, const struct coll_made *best)
{
	struct coll_prediction p = { .steps = 1, .num = topo_ranks(q->topo) - 1, .den = 1,
				     .ports = make_ports(q->topo) };

	if (!q->cost || q->batches > 1) {
		return false;
	}
	if (q->fabric && coll_switches_can(q->fabric->topo, TOPO_CAN_COPY | TOPO_CAN_REDUCE)) {
		return make_is_above(q, best);
	}
	make_time_prediction(q->cost, &p);
	return p.time_ns < (double)best->time_ns &&
	       (double)best->time_ns > (double)best->bound_ns * MET(q) &&
	       make_predict_one_shot(q, &p, NULL) == 0 && p.time_ns < (double)best->time_ns;
}

int make_by_one_shot(const struct coll_make_query *q, const struct coll_algorithm *self,
		     struct coll_made *best, struct err *err)
{
	struct coll_made one = { .algorithm = self };
	struct coll_sched *gather = NULL;
	struct topo *copy = NULL;
	int rc;

	if (!q->algorithm && best->sched && !may_gain(q, best)) {
		return 0;
	}
	(void)((rc = topo_copy(q->topo, &copy, err)) ||
	       (rc = coll_bfb_cut(COLL_ALLGATHER, copy, 0, &gather, err)) ||
	       (rc = check_size(q, gather, err)) || (rc = make_empty(gather, &one.sched, err)) ||
	       (rc = add_sums(gather, one.sched, err)));
	coll_free(gather);
	if (rc) {
		coll_free(one.sched);
		return rc;
	}
	return make_offer(q, &one, best, err);
}
