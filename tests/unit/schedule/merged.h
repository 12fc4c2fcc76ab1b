/* SPDX-License-Identifier: Apache-2.0 */
/* An all-reduce whose sums are merged, by hand. Include after common.h. */
#ifndef WEFT_TESTS_UNIT_SCHEDULE_MERGED_H
#define WEFT_TESTS_UNIT_SCHEDULE_MERGED_H

#include "lib/base/number/rng.h"

static inline int neighbour(const struct topo *t, int u, int i)
{
	int first;

	topo_out(t, u, &first);
	return topo_arc(t, first + i)->dst;
}

static inline int place_of(const struct topo *t, int u, int v)
{
	int i = 0;

	while (neighbour(t, u, i) != v) {
		i++;
	}
	return i;
}

/* Two steps on a graph of diameter 2 without triangles and squares, such as Petersen's: every rank
 * sends its own, then to each neighbour the sum of what the others sent. What neighbour i sent is
 * kept under number i. */
static inline struct coll_sched *merged_moore(const char *expr, int chunks, bool alike)
{
	struct coll_sched *s = empty(COLL_ALLREDUCE, expr, chunks);
	const struct topo *t = coll_topo(s);
	struct err err = { 0 };
	int d = topo_max_degree(t);

	if (alike) {
		must(coll_set_alike(s, &err), &err);
	}
	for (int shard = 0; shard < (alike ? 1 : topo_n(t)); shard++) {
		for (int a = 0; a < topo_m(t); a++) {
			int u = topo_arc(t, a)->src, v = topo_arc(t, a)->dst;
			struct coll_xfer x = { .arc = a, .origin = shard, .dest = COLL_NO_DEST,
					       .last = chunks - 1, .op = COLL_OP_REDUCE };

			x.kept = (uint16_t)(place_of(t, v, u) + 1);
			must(coll_add(s, &x, &err), &err);
			x.step = 1;
			x.op = COLL_OP_FORWARD;
			x.kept = (uint16_t)topo_n(t);
			for (x.dest = 0; x.dest < d; x.dest++) {
				if (neighbour(t, u, x.dest) != v) {
					must(coll_add(s, &x, &err), &err);
				}
			}
		}
	}
	must(coll_finish(s, &err), &err);
	return s;
}

/* Two steps where exactly one walk of two arcs leads from each rank to each, as on GenKautz(2,4):
 * what came in the first goes on in the second, and a rank's own comes back to it. */
static inline struct coll_sched *merged_walks(const char *expr, int chunks, bool alike)
{
	struct coll_sched *s = empty(COLL_ALLREDUCE, expr, chunks);
	const struct topo *t = coll_topo(s);
	struct err err = { 0 };
	int n = topo_n(t);

	if (alike) {
		must(coll_set_alike(s, &err), &err);
	}
	for (int i = 0; i < (alike ? 1 : n) * topo_m(t); i++) {
		struct coll_xfer x = { .arc = i % topo_m(t), .origin = i / topo_m(t),
				       .dest = COLL_NO_DEST, .last = chunks - 1,
				       .op = COLL_OP_REDUCE, .kept = (uint16_t)(n + 1) };

		must(coll_add(s, &x, &err), &err);
		x.step = 1;
		x.op = COLL_OP_FORWARD;
		x.dest = 0;
		x.kept = (uint16_t)(2 * n + 1);
		must(coll_add(s, &x, &err), &err);
	}
	must(coll_finish(s, &err), &err);
	return s;
}

/* Along a ring, whose arcs are in the order of their tails: each rank adds its own to what came,
 * which it keeps apart, in one message; the last has the sum, and all others get copies. */
static inline struct coll_sched *merged_chain(const char *expr, int chunks, bool alike)
{
	struct coll_sched *s = empty(COLL_ALLREDUCE, expr, chunks);
	struct err err = { 0 };
	int n = topo_n(coll_topo(s));

	if (alike) {
		must(coll_set_alike(s, &err), &err);
	}
	for (int i = 0; i < (alike ? 1 : n) * (n - 1); i++) {
		int at = i % (n - 1);
		struct coll_xfer x = { .step = at, .arc = at, .origin = i / (n - 1),
				       .dest = COLL_NO_DEST, .last = chunks - 1,
				       .op = COLL_OP_REDUCE,
				       .kept = (uint16_t)(at < n - 2 ? n + 1 : 1) };

		must(coll_add(s, &x, &err), &err);
		x.op = COLL_OP_FORWARD;
		x.dest = 0;
		if (at > 0) {
			must(coll_add(s, &x, &err), &err);
		}
		x = (struct coll_xfer){ .step = n - 1 + at, .arc = (n - 1 + at) % n,
					.origin = x.origin, .dest = COLL_NO_DEST,
					.last = chunks - 1 };
		must(coll_add(s, &x, &err), &err);
	}
	must(coll_finish(s, &err), &err);
	return s;
}

#define MERGED_RANKS 8
#define MERGED_STEPS 12

/* Some chunks of a shard on their way, as sets of contributions. */
struct merged_plan {
	unsigned has[MERGED_RANKS], came[MERGED_RANKS][MERGED_RANKS];
	VEC(struct coll_xfer) rows;
};

static inline bool merged_take(struct merged_plan *p, unsigned set, unsigned free, unsigned *sum,
			       const struct coll_xfer *x, struct rng *rng)
{
	if (!set || set & ~free || set & *sum || rng_below(rng, 4) == 0) {
		return false;
	}
	*sum |= set;
	vec_push(&p->rows, *x);
	return true;
}

/* What an arc brings in a step: the tail's own sum and some that it keeps, merged. */
static inline unsigned merged_message(struct merged_plan *p, const struct topo_arc *a,
				      struct coll_xfer x, unsigned free, int n, struct rng *rng)
{
	unsigned sum = 0;
	int from = (int)(rng_below(rng, (uint64_t)n));

	x.op = COLL_OP_REDUCE;
	x.dest = COLL_NO_DEST;
	merged_take(p, p->has[a->src], free, &sum, &x, rng);
	x.op = COLL_OP_FORWARD;
	for (int k = 0; k < n; k++) {
		x.dest = (from + k) % n;
		merged_take(p, p->came[a->src][x.dest], free, &sum, &x, rng);
	}
	return sum;
}

/* Whoever has all gives it to those beside who have not. */
static inline void merged_copy(struct merged_plan *p, const struct topo *t, struct coll_xfer x,
			       unsigned all)
{
	unsigned next[MERGED_RANKS];

	memcpy(next, p->has, sizeof(next));
	for (x.arc = 0; x.arc < topo_m(t); x.arc++) {
		const struct topo_arc *a = topo_arc(t, x.arc);

		if (p->has[a->src] == all && next[a->dst] != all) {
			vec_push(&p->rows, x);
			next[a->dst] = all;
		}
	}
	memcpy(p->has, next, sizeof(next));
}

static inline void merged_step(struct merged_plan *p, const struct topo *t, struct coll_xfer x,
			       struct rng *rng)
{
	unsigned all = (1U << topo_n(t)) - 1, next[MERGED_RANKS], came[MERGED_RANKS][MERGED_RANKS];
	int n = topo_n(t);

	for (int u = 0; u < n; u++) {
		if (p->has[u] == all) {
			merged_copy(p, t, x, all);
			return;
		}
	}
	memcpy(next, p->has, sizeof(next));
	memcpy(came, p->came, sizeof(came));
	for (x.arc = 0; x.arc < topo_m(t); x.arc++) {
		const struct topo_arc *a = topo_arc(t, x.arc);
		unsigned sum;

		x.kept = (uint16_t)(1 + rng_below(rng, (uint64_t)n));
		sum = merged_message(p, a, x, all & ~next[a->dst], n, rng);
		next[a->dst] |= sum;
		came[a->dst][x.kept - 1] |= sum;
	}
	memcpy(p->has, next, sizeof(next));
	memcpy(p->came, came, sizeof(came));
}

/* Adds transfers that take chunks first..last of a shard everywhere; false: none were found. */
static inline bool merged_part(struct coll_sched *s, int shard, int first, int last,
			       struct rng *rng)
{
	const struct topo *t = coll_topo(s);
	struct merged_plan p = { .rows = { 0 } };
	struct err err = { 0 };
	bool whole = true;

	for (int u = 0; u < topo_n(t); u++) {
		p.has[u] = 1U << u;
	}
	for (int step = 0; step < MERGED_STEPS; step++) {
		struct coll_xfer x = { .step = step, .origin = shard, .dest = COLL_NO_DEST,
				       .first = first, .last = last };

		merged_step(&p, t, x, rng);
	}
	for (int u = 0; u < topo_n(t); u++) {
		whole = whole && p.has[u] == (1U << topo_n(t)) - 1;
	}
	for (size_t i = 0; i < p.rows.n && whole; i++) {
		must(coll_add(s, &p.rows.v[i], &err), &err);
	}
	vec_fini(&p.rows);
	return whole;
}

/* In no order at all, on at most MERGED_RANKS ranks: what a rank keeps comes in several steps,
 * is sent in some of them while more comes, and is merged with its own; chunks go apart. */
static inline struct coll_sched *random_merged(const char *expr, int chunks, bool alike,
					       struct rng *rng)
{
	struct coll_sched *s = empty(COLL_ALLREDUCE, expr, chunks);
	struct err err = { 0 };

	if (alike) {
		must(coll_set_alike(s, &err), &err);
	}
	for (int shard = 0; shard < (alike ? 1 : coll_ranks(s)); shard++) {
		for (int from = 0, end; from < chunks; from = end) {
			end = from + 1 + (int)rng_below(rng, (uint64_t)(chunks - from));
			while (!merged_part(s, shard, from, end - 1, rng)) {
			}
		}
	}
	must(coll_finish(s, &err), &err);
	must(coll_verify(s, NULL, &err), &err);
	return s;
}

#endif
