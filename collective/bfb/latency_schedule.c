/* SPDX-License-Identifier: Apache-2.0 */
/* Breadth-first broadcast on links with latencies of their own: chunks by the
 * time at which each level is done. */
#include <stdlib.h>

#include "collective/bfb/private.h"
#include "lib/base/number/rat.h"

/* Numbers of chunks that are tried until the time is this near to the bound
 * that holds for any. */
static const int ladder[] = { 1, 2, 4, 12, 60, 720, COLL_BFB_MAX_CHUNKS };
#define NEAR_NUM 1001
#define NEAR_DEN 1000

/* The times of all levels, and what they cannot be below. */
static void sum_times(const struct bfb *b, mpq_t time, mpq_t bound)
{
	rat_set(time, 0, 1);
	rat_set(bound, 0, 1);
	for (int i = 0; i < b->n_sides; i++) {
		bfb_times_add(&b->sides[i].until, time);
		bfb_times_add(&b->sides[i].bounds, bound);
	}
}

/* True when the time is near the bound. */
static bool is_near(const mpq_t time, const mpq_t bound)
{
	mpq_t most;
	bool near;

	mpq_init(most);
	rat_set(most, NEAR_NUM, NEAR_DEN);
	mpq_mul(most, most, bound);
	near = mpq_cmp(time, most) <= 0;
	mpq_clear(most);
	return near;
}

/* Solves with so many chunks; raises the bound. */
static int time_cut(struct bfb *b, enum coll_kind kind, const struct topo *t, struct bfb_timing *p,
		    int chunks, mpq_t time, mpq_t bound, struct err *err)
{
	mpq_t least;
	int rc;

	mpq_init(least);
	bfb_fini(b);
	p->chunks = chunks;
	rc = bfb_solve(b, kind, t, p, err);
	if (!rc) {
		sum_times(b, time, least);
	}
	if (!rc && mpq_cmp(least, bound) > 0) {
		mpq_set(bound, least);
	}
	mpq_clear(least);
	return rc;
}

/* Solves in the finest cut, for the bound; then with more and more chunks, or
 * with those asked for. */
static int time_sides(struct bfb *b, enum coll_kind kind, const struct topo *t,
		      struct bfb_timing *p, int chunks, mpq_t bound, struct err *err)
{
	size_t rungs = sizeof(ladder) / sizeof(ladder[0]);
	bool near = false;
	mpq_t time;
	int rc;

	mpq_init(time);
	rc = time_cut(b, kind, t, p, COLL_BFB_MAX_CHUNKS, time, bound, err);
	if (!rc && chunks) {
		rc = time_cut(b, kind, t, p, chunks, time, bound, err);
		near = true;
	}
	for (size_t i = 0; i < rungs && !rc && !near; i++) {
		rc = time_cut(b, kind, t, p, ladder[i], time, bound, err);
		near = is_near(time, bound);
	}
	mpq_clear(time);
	return rc;
}

/* Time of a shard on a link of capacity one. */
static void shard_time(const struct coll_cost *c, int ranks, mpq_t ns)
{
	mpq_t f;

	mpq_init(f);
	rat_set(ns, c->size_bytes, ranks);
	rat_set(f, INT64_C(8000000000), c->link_bps);
	mpq_mul(ns, ns, f);
	mpq_clear(f);
}

/* bound + steps (alpha + hop + message), rounded up: over one arc in each. */
static int whole_bound(const struct bfb *b, const struct coll_cost *c,
		       mpq_t bound, int64_t *ns, struct err *err)
{
	mpq_t alpha, steps;
	mpz_t whole;
	int rc = 0;

	mpq_inits(alpha, steps, NULL);
	mpz_init(whole);
	rat_set(alpha, c->alpha_ns, 1);
	mpz_add_ui(mpq_numref(alpha), mpq_numref(alpha), (unsigned long)c->hop_ns);
	mpz_add_ui(mpq_numref(alpha), mpq_numref(alpha), (unsigned long)c->message_ns);
	rat_set(steps, bfb_steps(b), 1);
	mpq_mul(alpha, alpha, steps);
	mpq_add(alpha, alpha, bound);
	mpz_cdiv_q(whole, mpq_numref(alpha), mpq_denref(alpha));
	*ns = mpz_get_si(whole);
	if (!mpz_fits_slong_p(whole)) {
		rc = err_set(err, WEFT_ELIMIT, "the time does not fit 64 bits of nanoseconds");
	}
	mpq_clears(alpha, steps, NULL);
	mpz_clear(whole);
	return rc;
}

int coll_bfb_timed(enum coll_kind kind, struct topo *topo, int chunks, const struct coll_cost *cost,
		   struct coll_sched **out, int64_t *bound_ns, struct err *err)
{
	struct coll_sched *sched;
	struct bfb b = { .n_sides = 0 };
	struct bfb_timing p;
	mpq_t bound;
	int rc = bfb_begin(kind, topo, chunks, &sched, err);

	*out = NULL;
	mpq_inits(p.shard_ns, bound, NULL);
	if (!rc && (cost->alpha_ns < 0 || cost->hop_ns < 0 || cost->message_ns < 0 ||
		    cost->size_bytes < 1 || cost->link_bps < 1)) {
		rc = err_set(err, WEFT_EINVAL, "cost needs alpha, hop and message >= 0, a size "
			     "of at least a byte and a link rate of at least "
			     "1 bps");
	}
	if (!rc) {
		shard_time(cost, topo_n(topo), p.shard_ns);
		rc = time_sides(&b, kind, topo, &p, chunks, bound, err);
	}
	if (rc || (rc = whole_bound(&b, cost, bound, bound_ns, err))) {
		goto out;
	}
	rc = bfb_complete(&b, sched, p.chunks, err);
out:
	bfb_fini(&b);
	mpq_clears(p.shard_ns, bound, NULL);
	if (rc) {
		coll_free(sched);
		return rc;
	}
	*out = sched;
	return 0;
}
