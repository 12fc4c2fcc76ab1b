/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Balancing with latencies, eq. (13) of direct-connect-topologies.
 *
 * A link with latency l and capacity c has carried (until - l) c / shard_ns shards
 * by the time `until`, rounded down to whole chunks, and none before l. A flow
 * tells whether that is enough for all items. If not, its minimum cut is a set of
 * links with more items than it can carry; the time by which that set is done,
 * in fractions of items for the bound and in whole chunks for the schedule, is
 * the next to try. All times are exact rationals, so no rounding decides.
 */
#include "collective/bfb/private.h"

#include <stdlib.h>

#include "lib/base/number/rat.h"
#include "lib/base/vec.h"

/* ---- one link ---- */

/* Whole chunks that a link has carried by `until` (ns). */
static int64_t room_by(const struct bfb_timing *p, const mpq_t until, int64_t latency, int64_t cap)
{
	int64_t room = 0;
	mpq_t q, f;
	mpz_t whole;

	mpq_inits(q, f, NULL);
	mpz_init(whole);
	rat_set(q, latency, 1);
	mpq_sub(q, until, q);
	if (mpq_sgn(q) > 0) {
		rat_set(f, cap, 1);
		mpq_mul(q, q, f);
		rat_set(f, p->chunks, 1);
		mpq_mul(q, q, f);
		mpq_div(q, q, p->shard_ns);
		mpz_fdiv_q(whole, mpq_numref(q), mpq_denref(q));
		room = mpz_fits_slong_p(whole) ? mpz_get_si(whole)
					       : INT64_MAX;
	}
	mpq_clears(q, f, NULL);
	mpz_clear(whole);
	/* Sums over links stay in range. */
	return room < INT64_MAX >> 20 ? room : INT64_MAX >> 20;
}

/* When it has carried one chunk more than `room`. */
static void next_done(const struct bfb_timing *p, int64_t room, int64_t latency,
		      int64_t cap, mpq_t out)
{
	mpq_t f;

	mpq_init(f);
	rat_set(out, room + 1, cap);
	rat_set(f, 1, p->chunks);
	mpq_mul(out, out, f);
	mpq_mul(out, out, p->shard_ns);
	rat_set(f, latency, 1);
	mpq_add(out, out, f);
	mpq_clear(f);
}

/* ---- a set of links ---- */

/* Links of the set by latency; returns how many. */
static int sort_set(const bool *in, int n, const int64_t *latency, int *order)
{
	int count = 0;

	for (int w = 0; w < n; w++) {
		int k = count;

		if (!in[w]) {
			continue;
		}
		for (; k > 0 && latency[order[k - 1]] > latency[w]; k--) {
			order[k] = order[k - 1];
		}
		order[k] = w;
		count++;
	}
	return count;
}

/* When the first of the set, by latency, have carried so many items: as many
 * links as begin before that. */
static void finish_time(const struct bfb_timing *p, const struct bfb_program *b,
			const int64_t *latency, const int *order, int n, int64_t items, mpq_t out)
{
	mpq_t sum, caps, f;
	bool enough = false;

	mpq_inits(sum, caps, f, NULL);
	rat_set(f, items, 1);
	mpq_mul(sum, p->shard_ns, f);
	for (int i = 0; i < n && !enough; i++) {
		rat_set(f, b->cap[order[i]], 1);
		mpq_add(caps, caps, f);
		rat_set(out, latency[order[i]], 1);
		mpq_mul(f, f, out);
		mpq_add(sum, sum, f);
		mpq_div(out, sum, caps);
		if (i + 1 < n) {
			rat_set(f, latency[order[i + 1]], 1);
			enough = mpq_cmp(out, f) <= 0;
		}
	}
	mpq_clears(sum, caps, f, NULL);
}

/* Items of the groups that can use only these links. */
static int64_t items_inside(const struct bfb_program *b, const bool *in)
{
	int64_t items = 0;

	for (int g = 0; g < b->n_groups; g++) {
		const struct bfb_group *gr = &b->groups[g];
		bool inside = true;

		for (int i = gr->first; i < gr->first + gr->n; i++) {
			inside = inside && in[b->use[i]];
		}
		items += inside ? gr->items : 0;
	}
	return items;
}

/* Raises *until to when these links have carried so many whole chunks. */
static void wait_for(const struct bfb_timing *p, const struct bfb_program *b,
		     const int64_t *latency, const int *order, int n, int64_t chunks, mpq_t until)
{
	mpq_t done, first;

	mpq_inits(done, first, NULL);
	for (;;) {
		int64_t sum = 0;

		for (int i = 0; i < n; i++) {
			int w = order[i];
			int64_t room = room_by(p, until, latency[w], b->cap[w]);

			sum += room;
			next_done(p, room, latency[w], b->cap[w], done);
			if (i == 0 || mpq_cmp(done, first) < 0) {
				mpq_set(first, done);
			}
		}
		if (sum >= chunks) {
			break;
		}
		mpq_set(until, first);
	}
	mpq_clears(done, first, NULL);
}

static void raise_to(mpq_t to, const mpq_t q)
{
	if (mpq_cmp(q, to) > 0) {
		mpq_set(to, q);
	}
}

int bfb_timing_solve(const struct bfb_timing *p, const struct bfb_program *b,
		const int64_t *latency, mpq_t until, mpq_t bound,
		int64_t *share, struct err *err)
{
	struct arrays arrays = { 0 };
	int64_t *room;
	bool *cut, fits = false;
	int *order, rc;
	mpq_t done;

	mpq_init(done);
	arrays_add(&arrays, room, b->n_links);
	arrays_add(&arrays, cut, b->n_links);
	arrays_add(&arrays, order, b->n_links);
	while (true) {
		int64_t items;
		int count;

		for (int w = 0; w < b->n_links; w++) {
			room[w] = room_by(p, until, latency[w], b->cap[w]);
		}
		rc = bfb_program_fit(b, p->chunks, room, share, cut, &fits, err);
		if (rc || fits) {
			break;
		}
		items = items_inside(b, cut);
		count = sort_set(cut, b->n_links, latency, order);
		finish_time(p, b, latency, order, count, items, done);
		raise_to(bound, done);
		raise_to(until, done);
		wait_for(p, b, latency, order, count, items * p->chunks, until);
	}
	mpq_clear(done);
	arrays_fini(&arrays);
	return rc;
}

/* ---- lists of times ---- */

void bfb_times_need(struct bfb_times *l, size_t n)
{
	vec_grow((void **)&l->v, &l->cap, n, sizeof(*l->v));
	while (l->n < n) {
		mpq_init(l->v[l->n++]);
	}
}

void bfb_times_fini(struct bfb_times *l)
{
	for (size_t i = 0; i < l->n; i++) {
		mpq_clear(l->v[i]);
	}
	free(l->v);
	*l = (struct bfb_times){ 0 };
}

void bfb_times_add(const struct bfb_times *l, mpq_t sum)
{
	for (size_t i = 0; i < l->n; i++) {
		mpq_add(sum, sum, l->v[i]);
	}
}
