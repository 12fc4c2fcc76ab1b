/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Breadth-first-broadcast schedules.
 *
 * A program belongs to the node that takes the shards: at step t node u
 * takes the shard of every rank at distance t, over the links that end
 * shortest paths. First all programs are solved; their loads decide the
 * chunks P; then each is split into whole chunks.
 */
#include <stdlib.h>
#include <string.h>

#include "collective/bfb/private.h"
#include "lib/base/alloc.h"
#include "lib/base/number/rat.h"

void bfb_fini(struct bfb *b)
{
	for (int i = 0; i < b->n_sides; i++) {
		bfb_side_fini(&b->sides[i]);
	}
	topo_group_free(b->group);
	topo_free(b->reversed);
	free(b->back);
}

/* Every shard comes to all other nodes, or from them: so many transfers at least. */
static int check_size(enum coll_kind kind, int sources, int nodes, struct err *err)
{
	int64_t least = (int64_t)sources * (nodes - 1) * (kind == COLL_ALLREDUCE ? 2 : 1);

	return least <= COLL_MAX_XFERS ? 0 : err_set(err, WEFT_ELIMIT, "breadth-first broadcast on "
						     "%d nodes, of which %d differ: %lld transfers "
						     "or more, at most %d are supported", nodes,
						     sources, (long long)least, COLL_MAX_XFERS);
}

int bfb_solve(struct bfb *b, enum coll_kind kind, const struct topo *t,
	      const struct bfb_timing *timed, struct err *err)
{
	int sources, rc;

	memset(b, 0, sizeof(*b));
	rc = topo_group_find(t, &b->group, err);
	sources = b->group ? topo_group_orbits(b->group) : topo_n(t);
	if (rc || (rc = check_size(kind, sources, topo_n(t), err))) {
		return rc;
	}
	if (kind != COLL_ALLGATHER) {
		b->back = x_alloc((size_t)topo_m(t) + 1, sizeof(*b->back));
		rc = topo_transpose(t, &b->reversed, b->back, err);
		if (!rc) {
			rc = bfb_side_solve(&b->sides[b->n_sides++], b->reversed, sources, timed,
					    err);
		}
	}
	if (kind != COLL_REDUCE_SCATTER && !rc) {
		rc = bfb_side_solve(&b->sides[b->n_sides++], t, sources, timed, err);
	}
	return rc;
}

int bfb_steps(const struct bfb *b)
{
	int steps = 0;

	for (int i = 0; i < b->n_sides; i++) {
		steps += b->sides[i].diameter;
	}
	return steps;
}

/* ---- chunks ---- */

/* Sum over the levels of the largest load when rounded up to whole chunks
 * of P, as numerator over P. */
static int64_t rounded(const struct bfb_side *sides, int n, int64_t p)
{
	int64_t sum = 0;

	for (int i = 0; i < n; i++) {
		for (size_t t = 0; t < sides[i].tops.n; t++) {
			sum += bfb_ratio_ceil_mul(sides[i].tops.v[t], p);
		}
	}
	return sum;
}

/* Least common denominator of all tops, 0 when above the limit. */
static int64_t common_chunks(const struct bfb_side *sides, int n)
{
	int64_t p = 1;

	for (int i = 0; i < n; i++) {
		for (size_t t = 0; t < sides[i].tops.n; t++) {
			int64_t den = sides[i].tops.v[t].den;

			p *= den / rat_gcd(den, p);
			if (p > COLL_BFB_MAX_CHUNKS) {
				return 0;
			}
		}
	}
	return p;
}

static int choose_chunks(const struct bfb_side *sides, int n)
{
	int64_t best = common_chunks(sides, n);
	struct bfb_ratio least, r;

	if (best) {
		return (int)best;
	}
	best = 1;
	least = (struct bfb_ratio){ rounded(sides, n, 1), 1 };
	for (int64_t p = 2; p <= COLL_BFB_MAX_CHUNKS; p++) {
		r = (struct bfb_ratio){ rounded(sides, n, p), p };
		if (bfb_ratio_cmp(r, least) < 0) {
			least = r;
			best = p;
		}
	}
	return (int)best;
}

/* ---- the schedule ---- */

static int bfb_emit(const struct bfb *b, struct coll_sched *sched, struct err *err)
{
	struct bfb_target to = { .base = 0 };
	int rc = 0;

	for (int i = 0; i < b->n_sides && !rc; i++) {
		const struct bfb_side *s = &b->sides[i];

		to.back = s->t == b->reversed ? b->back : NULL;
		rc = bfb_side_emit(s, &to, sched, err);
		to.base += s->diameter;
	}
	return rc;
}

int bfb_begin(enum coll_kind kind, struct topo *topo, int chunks,
	      struct coll_sched **out, struct err *err)
{
	int rc;

	*out = NULL;
	if (chunks < 0 || chunks > COLL_MAX_CHUNKS) {
		topo_free(topo);
		return err_set(err, WEFT_EINVAL, "%d chunks: expected 1 to %d",
			       chunks, COLL_MAX_CHUNKS);
	}
	if (kind == COLL_ALLTOALL || coll_has_root(kind)) {
		topo_free(topo);
		return err_set(err, WEFT_EUNSUPPORTED,
			       "breadth-first broadcast makes no %s",
			       coll_kind_name(kind));
	}
	rc = topo_check_plain(topo, "breadth-first broadcast", err);
	if (rc) {
		topo_free(topo);
		return rc;
	}
	return coll_new(kind, topo, 1, 0, 0, out, err);
}

int bfb_complete(struct bfb *b, struct coll_sched *sched, int chunks, struct err *err)
{
	int rc;

	coll_set_chunks(sched, chunks);
	rc = coll_set_group(sched, b->group, err);
	b->group = NULL;
	if (!rc) {
		rc = bfb_emit(b, sched, err);
	}
	if (!rc) {
		rc = coll_finish(sched, err);
	}
	if (!rc && coll_prove(sched, NULL, err)) {
		rc = err_wrap(err, "breadth-first broadcast");
	}
	return rc;
}

int coll_bfb(enum coll_kind kind, struct topo *topo, struct coll_sched **out, struct err *err)
{
	return coll_bfb_cut(kind, topo, 0, out, err);
}

int coll_bfb_cut(enum coll_kind kind, struct topo *topo, int chunks,
		 struct coll_sched **out, struct err *err)
{
	struct coll_sched *sched;
	struct bfb b = { .n_sides = 0 };
	int rc = bfb_begin(kind, topo, chunks, &sched, err);

	*out = NULL;
	if (!rc) {
		rc = bfb_solve(&b, kind, topo, NULL, err);
	}
	if (!rc) {
		chunks = chunks ? chunks : choose_chunks(b.sides, b.n_sides);
		rc = bfb_complete(&b, sched, chunks, err);
	}
	bfb_fini(&b);
	if (rc) {
		coll_free(sched);
		return rc;
	}
	*out = sched;
	return 0;
}

/* ---- figures alone ---- */

/* *factor = sum of the tops * ports / N. */
static void sum_tops(const struct bfb *b, int64_t ports, int64_t n, mpq_t factor)
{
	mpq_t part;

	mpq_init(part);
	mpq_set_ui(factor, 0, 1);
	for (int i = 0; i < b->n_sides; i++) {
		for (size_t t = 0; t < b->sides[i].tops.n; t++) {
			rat_set(part, b->sides[i].tops.v[t].num, b->sides[i].tops.v[t].den);
			mpq_add(factor, factor, part);
		}
	}
	rat_set(part, ports, n);
	mpq_mul(factor, factor, part);
	mpq_clear(part);
}

int64_t bfb_count_ports(const struct topo *t)
{
	int64_t most = 0;

	for (int u = 0; u < topo_n(t); u++) {
		int64_t out = 0, into = 0;
		const int32_t *arcs;
		int first, n = topo_out(t, u, &first);

		for (int a = first; a < first + n; a++) {
			out += topo_arc(t, a)->cap;
		}
		n = topo_in(t, u, &arcs);
		for (int i = 0; i < n; i++) {
			into += topo_arc(t, arcs[i])->cap;
		}
		out = into > out ? into : out;
		most = out > most ? out : most;
	}
	return most;
}

int coll_bfb_factor(enum coll_kind kind, const struct topo *topo, int *steps,
		    mpq_t factor, struct err *err)
{
	struct bfb b = { .n_sides = 0 };
	int rc;

	if (kind == COLL_ALLTOALL || coll_has_root(kind)) {
		return err_set(err, WEFT_EUNSUPPORTED,
			       "breadth-first broadcast makes no %s",
			       coll_kind_name(kind));
	}
	rc = topo_check_plain(topo, "breadth-first broadcast", err);
	if (!rc) {
		rc = bfb_solve(&b, kind, topo, NULL, err);
	}
	if (!rc) {
		*steps = bfb_steps(&b);
		sum_tops(&b, bfb_count_ports(topo), topo_n(topo), factor);
	}
	bfb_fini(&b);
	return rc;
}
