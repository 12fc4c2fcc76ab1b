/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All-gather by flooding: in every step each node takes over each link what it lacks.
 *
 * A node asks of each neighbour for chunks that this one has and it has not, up to a quota for a
 * unit of capacity, first where there are fewest to choose from, any of them by chance. Nodes whose
 * links are the narrowest are then busy from the first step to the last, however irregular the
 * digraph is, and nothing is planned beyond a step: that makes it fast. How many chunks a shard and
 * which quota is best is tried, where runs are short with several seeds. Deterministic: chance is
 * seeded.
 */
#include <stdlib.h>
#include <string.h>

#include "collective/bfb/bfb.h"
#include "collective/bfb/private.h"
#include "lib/base/bits.h"
#include "lib/base/number/rat.h"
#include "lib/base/number/rng.h"

#define MAX_SEEDS 16
#define MAX_TRANSFERS (INT64_C(1) << 23)
#define WORK (INT64_C(1) << 28)		/* words looked at in all runs together, roughly */
#define MORE_WORK (INT64_C(1) << 21)	/* the same of seeds after the first */
#define STEP_SHARE 1000			/* without a cost a step costs this part of T_B's bound */

struct bfb_flood {
	const struct topo *t;
	int n, chunks, words;
	int64_t unit, quota;	/* of capacities; chunks of a unit in a step */
	uint64_t *have, *got;	/* by node: chunks before the step; with those of it */
	int64_t *used;		/* by arc, in this step */
	int64_t *choice;	/* by arc: chunks that it could bring */
	int seed;
	struct rng rng;
	struct arrays arrays;
	struct coll_sched *sched;	/* NULL: only figures */
	int steps;
	double load;		/* of all steps, in chunks a unit */
	int64_t work;
};

/* Of capacities. */
static int64_t unit_of(const struct topo *t)
{
	int64_t unit = 0;

	for (int a = 0; a < topo_m(t); a++) {
		unit = rat_gcd(unit, topo_arc(t, a)->cap);
	}
	return unit;
}

static void flood_init(struct bfb_flood *f, const struct topo *t, int chunks)
{
	int n = topo_n(t), words = (int)(((int64_t)n * chunks + 63) / 64);

	*f = (struct bfb_flood){ .t = t, .n = n, .chunks = chunks, .words = words };
	arrays_add(&f->arrays, f->have, (size_t)n * (size_t)words);
	arrays_add(&f->arrays, f->got, (size_t)n * (size_t)words);
	arrays_add(&f->arrays, f->used, topo_m(t));
	arrays_add(&f->arrays, f->choice, topo_m(t));
	f->unit = unit_of(t);
}

static void start(struct bfb_flood *f)
{
	memset(f->have, 0, (size_t)f->n * (size_t)f->words * sizeof(*f->have));
	for (int v = 0; v < f->n; v++) {
		for (int c = 0; c < f->chunks; c++) {
			bits_add(f->have + (size_t)v * (size_t)f->words, v * f->chunks + c);
		}
	}
	memcpy(f->got, f->have, (size_t)f->n * (size_t)f->words * sizeof(*f->have));
	rng_seed(&f->rng, (uint64_t)f->seed);
	f->steps = 0;
	f->load = 0;
}

static uint64_t *row(const struct bfb_flood *f, uint64_t *rows, int v)
{
	return rows + (size_t)v * (size_t)f->words;
}

/* ---- a step ---- */

static int64_t room(const struct bfb_flood *f, int a)
{
	return topo_arc(f->t, a)->cap / f->unit * f->quota - f->used[a];
}

static const uint64_t *sender_has(const struct bfb_flood *f, int a)
{
	return f->have + (size_t)topo_arc(f->t, a)->src * (size_t)f->words;
}

/* The link that should choose next: with the fewest chunks to choose from for the room that it
 * has; -1: none. */
static int next_link(struct bfb_flood *f, const int32_t *in, int n)
{
	int best = -1;

	for (int i = 0; i < n; i++) {
		int a = in[i];

		if (room(f, a) <= 0) {
			continue;
		}
		f->work += f->words;
		if (f->choice[a] > 0 && (best < 0 || f->choice[a] * room(f, best) <
							     f->choice[best] * room(f, a))) {
			best = a;
		}
	}
	return best;
}

/* One of the chunks that the arc could bring: the first from a place on that is left to chance. */
static int choose_chunk(struct bfb_flood *f, int a, const uint64_t *got)
{
	const uint64_t *have = sender_has(f, a);
	int at = (int)rng_below(&f->rng, (uint64_t)f->words), turn = (int)rng_below(&f->rng, 64);

	for (;; at = at + 1 < f->words ? at + 1 : 0) {
		/* In a word from bit `turn` on, else one of those below. */
		uint64_t word = have[at] & ~got[at], low = word & ((UINT64_C(1) << turn) - 1);

		if (word) {
			return at * 64 + __builtin_ctzll(word != low ? word & ~low : word);
		}
	}
}

static int take(struct bfb_flood *f, int a, int chunk, struct err *err)
{
	const struct coll_xfer x = {
		.step = f->steps, .arc = a, .origin = chunk / f->chunks, .dest = COLL_NO_DEST,
		.first = chunk % f->chunks, .last = chunk % f->chunks, .op = COLL_OP_COPY,
	};

	bits_add(row(f, f->got, topo_arc(f->t, a)->dst), chunk);
	f->used[a]++;
	return f->sched ? coll_add(f->sched, &x, err) : 0;
}

static int take_all(struct bfb_flood *f, int v, struct err *err)
{
	const uint64_t *got = row(f, f->got, v);
	const int32_t *in;
	int n = topo_in(f->t, v, &in), a, rc = 0;

	for (int i = 0; i < n; i++) {
		const uint64_t *have = sender_has(f, in[i]);

		f->used[in[i]] = 0;
		f->choice[in[i]] = bits_count(have, f->words) -
				   bits_count_and(have, got, f->words);
	}
	while (rc == 0 && (a = next_link(f, in, n)) >= 0) {
		int chunk = choose_chunk(f, a, got);

		rc = take(f, a, chunk, err);
		for (int i = 0; i < n; i++) {
			f->choice[in[i]] -= bits_has(sender_has(f, in[i]), chunk);
		}
	}
	return rc;
}

/* Ends the step; false: nothing has moved. */
static bool settle(struct bfb_flood *f)
{
	double top = 0;

	for (int a = 0; a < topo_m(f->t); a++) {
		double load = (double)f->used[a] / (double)(topo_arc(f->t, a)->cap / f->unit);

		top = load > top ? load : top;
	}
	memcpy(f->have, f->got, (size_t)f->n * (size_t)f->words * sizeof(*f->have));
	f->load += top;
	f->steps += top > 0;
	return top > 0;
}

static int run(struct bfb_flood *f, struct err *err)
{
	int64_t all = (int64_t)f->n * f->chunks, have = 0;
	int rc = 0;

	start(f);
	do {
		for (int v = 0; v < f->n && rc == 0; v++) {
			rc = take_all(f, v, err);
		}
	} while (rc == 0 && settle(f));
	for (int v = 0; v < f->n; v++) {
		have += bits_count(row(f, f->have, v), f->words);
	}
	return rc || have == all * f->n
		       ? rc : err_set(err, WEFT_EINFEASIBLE,
				      "the digraph does not connect all ranks");
}

/* ---- chunks and quotas ---- */

struct bfb_flood_best {
	int chunks;		/* 0: none yet */
	int64_t quota;
	int seed;
	double price;		/* shard times per unit of capacity in lowest terms */
};

/* What a step costs beside its load, in the same. */
static double price_step(const struct topo *t, int64_t unit, const struct coll_cost *c)
{
	if (!c || c->size_bytes == 0) {
		return (double)topo_n(t) / topo_max_degree(t) / STEP_SHARE;
	}
	return (double)(c->alpha_ns + c->hop_ns + c->message_ns) * (double)c->link_bps *
	       (double)unit * topo_n(t) / ((double)c->size_bytes * 8e9);
}

/* Larger quotas as long as that gains, for one number of chunks. */
static int try_quotas(struct bfb_flood *f, double step, struct bfb_flood_best *best, int64_t *work,
		      struct err *err)
{
	int idle = 0, rc = 0;

	for (f->quota = 1; rc == 0 && idle < 4 && *work > 0; f->quota += 1 + f->quota / 4) {
		double price;

		f->work = 0;
		rc = run(f, err);
		*work -= f->work;
		price = f->load / f->chunks + f->steps * step;
		if (rc == 0 && (best->chunks == 0 || price < best->price)) {
			*best = (struct bfb_flood_best){ f->chunks, f->quota, f->seed, price };
			idle = 0;
		} else {
			idle++;
		}
		if (f->quota > (int64_t)f->n * f->chunks) {
			break;
		}
	}
	return rc;
}

/* Numbers of chunks: the first few once, all of them with more seeds. */
static const int chunks_tried[] = { 1, 2, 4, 3, 6, 8 };
#define FIRST_CHUNKS 3
#define ALL_CHUNKS (int)(sizeof(chunks_tried) / sizeof(chunks_tried[0]))

/* Those from..to-1 with one seed. */
static int try_seed(const struct topo *t, double step, int seed, int from, int to,
		    struct bfb_flood_best *best, int64_t *work, struct err *err)
{
	int rc = 0;

	for (int i = from; i < to && rc == 0 && *work > 0; i++) {
		struct bfb_flood f;

		if ((int64_t)topo_n(t) * topo_n(t) * chunks_tried[i] > MAX_TRANSFERS) {
			continue;
		}
		flood_init(&f, t, chunks_tried[i]);
		f.seed = seed;
		rc = try_quotas(&f, step, best, work, err);
		arrays_fini(&f.arrays);
	}
	return rc;
}

static int search(const struct topo *t, const struct coll_cost *cost, struct bfb_flood_best *best,
		  struct err *err)
{
	int64_t work = WORK, more = MORE_WORK;
	double step = price_step(t, unit_of(t), cost);
	int rc;

	*best = (struct bfb_flood_best){ 0 };
	rc = try_seed(t, step, 1, 0, FIRST_CHUNKS, best, &work, err);
	for (int seed = 1; seed <= MAX_SEEDS && rc == 0; seed++) {
		rc = try_seed(t, step, seed, seed > 1 ? 0 : FIRST_CHUNKS, ALL_CHUNKS, best, &more,
			      err);
	}
	return rc;
}

/* ---- schedules ---- */

/* coll_gather_fn. */
static int allgather(const struct topo *t, const void *cost, struct coll_sched **out,
		     struct err *err)
{
	struct bfb_flood_best best;
	struct bfb_flood f = { 0 };
	struct topo *copy = NULL;
	int rc = search(t, cost, &best, err);

	if (rc == 0 && best.chunks == 0) {
		rc = err_set(err, WEFT_ELIMIT, "%d nodes: too many for flooding", topo_n(t));
	}
	if (rc || (rc = topo_copy(t, &copy, err)) ||
	    (rc = coll_new(COLL_ALLGATHER, copy, best.chunks, 0, 0, out, err))) {
		goto out;
	}
	flood_init(&f, t, best.chunks);
	f.quota = best.quota;
	f.seed = best.seed;
	f.sched = *out;
	if ((rc = run(&f, err)) == 0) {
		rc = coll_finish(*out, err);
	}
out:
	arrays_fini(&f.arrays);
	return rc;
}

int coll_flood(enum coll_kind kind, const struct topo *topo, const struct coll_cost *cost,
	       struct coll_sched **out, struct err *err)
{
	int rc = topo_check_plain(topo, "flooding", err);

	*out = NULL;
	return rc ? rc : coll_from_gathers(kind, topo, allgather, cost, out, err);
}
