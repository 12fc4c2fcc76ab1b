/* SPDX-License-Identifier: Apache-2.0 */
/* Programs of single ranks: those of all ranks together, run here in a random
 * order on numbers, do what the collective promises; the same from compact schedules,
 * from parts and from all transfers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/rank/kinds.h"
#include "tests/unit/schedule/chains.h"
#include "tests/unit/schedule/merged.h"

/* ---- running all ranks ---- */

/* What is on its way over a link, in order. */
struct rank_queue {
	int src, dst, link;
	VEC(uint64_t) values;
	size_t taken;
};

struct rank_world {
	int n;
	int64_t total;
	struct rank_program *p;
	uint64_t **buf[3];
	bool in_place;		/* a sum's input is its output */
	int64_t *sent, *stored;
	VEC(struct rank_queue) queues;
};

/* Elements of a buffer: whole shards, or the vector where shards do not divide it. */
static int64_t size_of(const struct rank_world *w, int rank, int b)
{
	const struct rank_program *p = &w->p[rank];

	return rank_offset(p, w->total, (int64_t)p->shards[b] * p->chunks);
}

static void move(struct rank_world *w, int rank, const struct rank_copy *c)
{
	const struct rank_program *p = &w->p[rank];
	int64_t from = rank_offset(p, w->total, c->from.first);
	int64_t to = rank_offset(p, w->total, c->to.first);
	int64_t n = rank_offset(p, w->total, (int64_t)c->from.first + c->from.count) - from;

	for (int64_t k = 0; k < n; k++) {
		w->buf[c->to.buf][rank][to + k] = w->buf[c->from.buf][rank][from + k];
	}
}

static struct rank_queue *queue_of(struct rank_world *w, int src, int dst, int link)
{
	for (size_t i = 0; i < w->queues.n; i++) {
		struct rank_queue *q = &w->queues.v[i];

		if (q->src == src && q->dst == dst && q->link == link) {
			return q;
		}
	}
	vec_push(&w->queues, (struct rank_queue){ src, dst, link, { 0 }, 0 });
	return &w->queues.v[w->queues.n - 1];
}

static bool try_send(struct rank_world *w, int r)
{
	const struct rank_program *p = &w->p[r];
	const struct rank_message *m;
	struct rank_queue *q;

	if (w->sent[r] == (int64_t)p->sends.n || p->sends.v[w->sent[r]].after > w->stored[r]) {
		return false;
	}
	m = &p->sends.v[w->sent[r]++];
	q = queue_of(w, r, m->peer, m->link);
	for (int i = m->first_piece; i < m->first_piece + m->pieces; i++) {
		const struct rank_piece *x = &p->pieces.v[i];
		int64_t end = rank_offset(p, w->total, (int64_t)x->first + x->count);

		for (int64_t k = rank_offset(p, w->total, x->first); k < end; k++) {
			vec_push(&q->values, w->buf[x->buf][r][k]);
		}
	}
	return true;
}

/* What an element is added to. */
static uint64_t held(const struct rank_world *w, int r, const struct rank_piece *x, int64_t k)
{
	const struct rank_program *p = &w->p[r];
	int64_t own = rank_offset(p, w->total, rank_own_first(p, x)) -
		      rank_offset(p, w->total, x->first);

	if (!x->reduce) {
		return 0;
	}
	return x->fresh ? w->buf[RANK_IN][r][own + k] : w->buf[x->buf][r][k];
}

static bool try_store(struct rank_world *w, int r)
{
	const struct rank_program *p = &w->p[r];
	const struct rank_message *m;
	struct rank_queue *q;
	uint64_t *value;

	m = &p->receives.v[w->stored[r]];
	if (w->stored[r] == (int64_t)p->receives.n ||
	    (w->in_place ? m->in_place_after : m->after) > w->sent[r]) {
		return false;
	}
	q = queue_of(w, m->peer, r, m->link);
	if (q->taken + (size_t)elements_of(p, m, w->total) > q->values.n) {
		return false;
	}
	w->stored[r]++;
	for (int i = m->first_piece; i < m->first_piece + m->pieces; i++) {
		const struct rank_piece *x = &p->pieces.v[i];
		int64_t end = rank_offset(p, w->total, (int64_t)x->first + x->count);

		if (x->again) {
			q->taken -= (size_t)(end - rank_offset(p, w->total, x->first));
		}
		for (int64_t k = rank_offset(p, w->total, x->first); k < end; k++) {
			value = &w->buf[x->buf][r][k];
			if (x->keep) {
				w->buf[RANK_WORK][r][rank_offset(p, w->total, x->kept) + k -
						     rank_offset(p, w->total, x->first)] =
					q->values.v[q->taken];
			}
			*value = held(w, r, x, k) + q->values.v[q->taken++];
		}
	}
	return true;
}

/* Every rank as far as it likes, in a random order; then the results. */
static void run_world(struct rank_world *w, struct rng *rng)
{
	bool moved = true;

	for (int r = 0; r < w->n; r++) {
		for (int b = 0; b < 3; b++) {
			int64_t n = size_of(w, r, b);

			w->buf[b][r] = malloc((size_t)(n + 1) * sizeof(uint64_t));
			for (int64_t k = 0; k < n; k++) {
				w->buf[b][r][k] = b == RANK_IN ? token(r, k) : 77 + (uint64_t)k;
			}
		}
		if (w->in_place && size_of(w, r, RANK_OUT) > 0) {
			memcpy(w->buf[RANK_OUT][r], w->buf[RANK_IN][r],
			       (size_t)w->total * sizeof(uint64_t));
			free(w->buf[RANK_IN][r]);
			w->buf[RANK_IN][r] = w->buf[RANK_OUT][r];
		}
		for (int64_t k = 0; k < w->total && w->p[r].kind == COLL_BROADCAST &&
		     r == w->p[r].root; k++) {
			w->buf[RANK_OUT][r][k] = token(r, k);
		}
		move(w, r, &w->p[r].own);
	}
	while (moved) {
		moved = false;
		for (int i = 0; i < 4 * w->n; i++) {
			int r = (int)rng_below(rng, (uint64_t)w->n);

			while (rng_below(rng, 8) > 0 && try_send(w, r)) {
				moved = true;
			}
			while (rng_below(rng, 8) > 0 && try_store(w, r)) {
				moved = true;
			}
		}
		for (int r = 0; r < w->n && !moved; r++) {
			moved = try_send(w, r) || try_store(w, r);
		}
	}
}

static void check_world(struct rank_world *w)
{
	for (int r = 0; r < w->n; r++) {
		assert_int_equal(w->sent[r], w->p[r].sends.n);
		assert_int_equal(w->stored[r], w->p[r].receives.n);
		for (int64_t k = size_of(w, r, RANK_OUT); k-- > 0;) {
			assert_int_equal(w->buf[RANK_OUT][r][k], expected(&w->p[r], w->total, k));
		}
	}
	for (size_t i = 0; i < w->queues.n; i++) {
		assert_int_equal(w->queues.v[i].taken, w->queues.v[i].values.n);
	}
}

static void assert_world(const struct coll_sched *s, int64_t total, bool in_place, struct rng *rng)
{
	struct rank_world w = { .n = coll_ranks(s), .total = total, .in_place = in_place };
	struct err err = { 0 };

	w.p = calloc((size_t)w.n, sizeof(*w.p));
	w.sent = calloc((size_t)w.n, sizeof(*w.sent));
	w.stored = calloc((size_t)w.n, sizeof(*w.stored));
	for (int b = 0; b < 3; b++) {
		w.buf[b] = calloc((size_t)w.n, sizeof(*w.buf[b]));
	}
	for (int r = 0; r < w.n; r++) {
		must(rank_program_make(s, r, &w.p[r], &err), &err);
		assert_int_equal(w.p[r].steps, coll_steps(s));
	}
	run_world(&w, rng);
	check_world(&w);
	for (int r = 0; r < w.n; r++) {
		if (w.buf[RANK_IN][r] != w.buf[RANK_OUT][r]) {
			free(w.buf[RANK_IN][r]);
		}
		free(w.buf[RANK_OUT][r]);
		free(w.buf[RANK_WORK][r]);
		rank_program_fini(&w.p[r]);
	}
	for (size_t i = 0; i < w.queues.n; i++) {
		vec_fini(&w.queues.v[i].values);
	}
	vec_fini(&w.queues);
	free(w.p);
	free(w.sent);
	free(w.stored);
	for (int b = 0; b < 3; b++) {
		free(w.buf[b]);
	}
}

static void assert_runs(const struct coll_sched *s, int64_t total, struct rng *rng)
{
	enum coll_kind kind = coll_kind_of(s);

	assert_world(s, total, false, rng);
	if (kind == COLL_ALLREDUCE || kind == COLL_REDUCE) {
		assert_world(s, total, true, rng);
	}
}

/* ---- schedules ---- */

static const char *const graphs[] = {
	"Ring(5)", "UniRing(2,4)", "Hypercube(3)", "Torus(3,4)", "C(8,{1,3})", "K(4)",
	"GenKautz(2,9)", "Prod(Cap(Ring(3),2),Ring(4))", "Mesh(3,3)",
};

#define GRAPHS ((int)(sizeof(graphs) / sizeof(*graphs)))

static void test_all_kinds(void **state)
{
	struct rng rng;

	(void)state;
	rng_seed(&rng, 16);
	for (int g = 0; g < GRAPHS; g++) {
		for (int kind = 0; kind < COLL_KINDS; kind++) {
			struct coll_sched *s = schedule_of(kind, graphs[g], g % 3);
			int n = coll_ranks(s);

			for (int64_t shard = 0; shard < 9; shard += 1 + shard) {
				assert_runs(s, n * shard, &rng);
			}
			assert_runs(s, (int64_t)n * coll_chunks(s), &rng);
			coll_free(s);
		}
	}
}

/* The vector of an all-reduce or broadcast need not have equal shards. */
static void test_vectors_that_do_not_divide(void **state)
{
	struct coll_sched *s;
	struct rng rng;

	(void)state;
	rng_seed(&rng, 17);
	for (int g = 0; g < GRAPHS; g++) {
		for (int64_t total = 1; total < 60; total += 7) {
			s = schedule_of(COLL_ALLREDUCE, graphs[g], 0);
			assert_runs(s, total, &rng);
			coll_free(s);
		}
		s = schedule_of(COLL_BROADCAST, graphs[g], 1);
		assert_runs(s, 13, &rng);
		coll_free(s);
		s = schedule_of(COLL_REDUCE, graphs[g], 1);
		assert_runs(s, 13, &rng);
		coll_free(s);
	}
}

/* Sends of the same rank and step that others add to: recursive doubling. */
static void test_exchanged_sums(void **state)
{
	struct coll_sched *s = empty(COLL_ALLREDUCE, "Hypercube(3)", 1);
	struct rng rng;

	(void)state;
	rng_seed(&rng, 18);
	for (int step = 0; step < 3; step++) {
		for (int u = 0; u < 8; u++) {
			for (int origin = 0; origin < 8; origin++) {
				send_part(s, step, u, u ^ 1 << step, origin, 0, 0, COLL_OP_REDUCE);
			}
		}
	}
	finish(s);
	for (int i = 0; i < 20; i++) {
		assert_runs(s, 11 + i, &rng);
	}
	coll_free(s);
}

/* Sums that are merged on their way, also in ranks' parts, flat, and in batches. */
static void test_merged_sums(void **state)
{
	static const struct { const char *expr; int chunks; bool alike; } rows[] = {
		{ "Odd(3)", 1, true }, { "Odd(3)", 2, true }, { "Odd(3)", 2, false },
		{ "C(5,{1})", 1, true }, { "GenKautz(2,4)", 1, true },
		{ "GenKautz(2,4)", 2, false }, { "GenKautz(3,9)", 1, true },
		{ "UniRing(1,4)", 1, true }, { "UniRing(1,5)", 2, false },
	};
	struct err err = { 0 };
	struct rng rng;

	(void)state;
	rng_seed(&rng, 43);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char first = rows[i].expr[0];
		struct coll_sched *s = (first == 'G' ? merged_walks : first == 'U' ? merged_chain
				       : merged_moore)(rows[i].expr, rows[i].chunks,
						       rows[i].alike);
		struct coll_sched *two;

		must(coll_pipeline(s, 2, &two, &err), &err);
		for (int64_t total = 1; total < 100; total += 33) {
			assert_runs(s, total, &rng);
			assert_runs(two, total, &rng);
		}
		coll_free(two);
		coll_free(s);
	}
}

static const struct chain_plan chain_plans[] = {
	{ "Ring(4)", 1, { { 1, 4 } } }, { "Ring(7)", 1, { { 1, 7 } } },
	{ "C(8,{1,2})", 2, { { 1, 2 }, { 2, 4 } } }, { "C(15,{1,5})", 2, { { 1, 5 }, { 5, 3 } } },
};

/* Chains: what is kept to be forwarded is in a row as what it is a sum for, as long as it takes. */
static void test_forwarded_sums(void **state)
{
	static const int copies[] = { 1, 4, 1, 2 };	/* of the vector that are kept */
	struct rank_program p;
	struct err err = { 0 };
	struct rng rng;

	(void)state;
	rng_seed(&rng, 19);
	for (int i = 0; i < 4; i++) {
		struct coll_sched *s = chains(&chain_plans[i]), *batches;

		must(coll_pipeline(s, 3, &batches, &err), &err);
		for (int64_t total = 1; total < 60; total += 5) {
			assert_runs(s, total, &rng);
			assert_runs(batches, total, &rng);
		}
		must(rank_program_make(s, 1, &p, &err), &err);
		assert_int_equal(p.shards[RANK_WORK], copies[i] * coll_ranks(s));
		assert_int_equal(p.pieces.n, p.sends.n + p.receives.n);
		rank_program_fini(&p);
		coll_free(s);
		coll_free(batches);
	}
}

static void test_chains_on_tori(void **state)
{
	static const int sides[][2] = { { 3, 4 }, { 2, 3 }, { 5, 3 } };
	struct rng rng;

	(void)state;
	rng_seed(&rng, 21);
	for (int i = 0; i < 3; i++) {
		struct coll_sched *s = torus_chains(sides[i][0], sides[i][1]);

		for (int64_t total = 1; total < 200; total += 37) {
			assert_runs(s, total, &rng);
		}
		coll_free(s);
	}
}

static void test_random_forwards(void **state)
{
	static const char *const all[] = { "K(4)", "Ring(5)", "C(6,{1,2})", "Hypercube(3)" };
	struct rng rng;

	(void)state;
	rng_seed(&rng, 22);
	for (int i = 0; i < 40; i++) {
		struct coll_sched *s = random_forwards(all[i % 4], 3, i % 3 * 10, &rng);

		assert_runs(s, 5 + i, &rng);
		coll_free(s);
	}
}

/* Chunks of one message some of which go on, in two steps. */
static void test_forwards_of_a_part(void **state)
{
	struct coll_sched *s = empty(COLL_ALLREDUCE, "UniRing(1,3)", 4);
	static const int cuts[][3] = { { 1, 0, 0 }, { 2, 1, 1 }, { 1, 3, 3 }, { 2, 2, 2 } };
	struct err err = { 0 };
	struct rng rng;

	(void)state;
	rng_seed(&rng, 20);
	for (int origin = 0; origin < 3; origin++) {
		for (int u = 0; u < 3; u++) {
			int arc = topo_find_arc(coll_topo(s), u, (u + 1) % 3);

			send_part(s, 0, u, (u + 1) % 3, origin, 0, 3, COLL_OP_REDUCE);
			for (int i = 0; i < 4; i++) {
				struct coll_xfer x = { cuts[i][0], arc, origin, (u + 2) % 3,
						       cuts[i][1], cuts[i][2], COLL_OP_FORWARD, 0 };

				must(coll_add(s, &x, &err), &err);
			}
		}
	}
	finish(s);
	must(coll_verify(s, NULL, &err), &err);
	for (int64_t total = 1; total < 90; total += 11) {
		assert_runs(s, total, &rng);
	}
	coll_free(s);
}

static void test_forward_without_sum(void **state)
{
	struct coll_sched *s = empty(COLL_ALLREDUCE, "Ring(4)", 1);
	struct coll_xfer x = { .step = 1, .arc = topo_find_arc(coll_topo(s), 1, 2),
			       .op = COLL_OP_FORWARD };
	struct rank_program p;
	struct err err = { 0 };

	(void)state;
	must(coll_add(s, &x, &err), &err);
	finish(s);
	assert_int_equal(rank_program_make(s, 1, &p, &err), WEFT_EINVAL);
	assert_non_null(strstr(err.msg, "rank 1 forwards a sum that it does not have"));
	rank_program_fini(&p);
	coll_free(s);
}

static void assert_same_program(const struct rank_program *a, const struct rank_program *b)
{
	assert_int_equal(a->sends.n, b->sends.n);
	assert_int_equal(a->receives.n, b->receives.n);
	assert_int_equal(a->pieces.n, b->pieces.n);
	assert_memory_equal(a->shards, b->shards, sizeof(a->shards));
	assert_memory_equal(a->sends.v, b->sends.v, a->sends.n * sizeof(*a->sends.v));
	assert_memory_equal(a->receives.v, b->receives.v, a->receives.n * sizeof(*a->sends.v));
	for (size_t i = 0; i < a->pieces.n; i++) {
		assert_int_equal(a->pieces.v[i].buf, b->pieces.v[i].buf);
		assert_int_equal(a->pieces.v[i].reduce, b->pieces.v[i].reduce);
		assert_int_equal(a->pieces.v[i].fresh, b->pieces.v[i].fresh);
		assert_int_equal(a->pieces.v[i].keep, b->pieces.v[i].keep);
		assert_int_equal(a->pieces.v[i].kept, b->pieces.v[i].kept);
		assert_int_equal(a->pieces.v[i].first, b->pieces.v[i].first);
		assert_int_equal(a->pieces.v[i].count, b->pieces.v[i].count);
	}
}

/* A schedule, all its transfers and a rank's part of it give the same program. */
static void test_compact(void **state)
{
	(void)state;
	for (int g = 0; g < GRAPHS; g++) {
		for (int kind = 0; kind <= COLL_ALLTOALL; kind++) {
			struct coll_sched *s = schedule_of(kind, graphs[g], 0), *flat, *part;
			int rank = g % coll_ranks(s);
			struct rank_program a, b, c;
			struct err err = { 0 };

			must(coll_unfold(s, &flat, &err), &err);
			must(coll_part_of(s, rank, &part, &err), &err);
			must(rank_program_make(s, rank, &a, &err), &err);
			must(rank_program_make(flat, rank, &b, &err), &err);
			must(rank_program_make(part, rank, &c, &err), &err);
			assert_same_program(&a, &b);
			assert_same_program(&a, &c);
			rank_program_fini(&a);
			rank_program_fini(&b);
			rank_program_fini(&c);
			coll_free(s);
			coll_free(flat);
			coll_free(part);
		}
	}
}

static void test_compact_chains(void **state)
{
	(void)state;
	for (int i = 0; i < 4; i++) {
		struct coll_sched *s = chains(&chain_plans[i]), *flat = unfolded(s), *part;
		struct rank_program a, b, c;
		struct err err = { 0 };

		must(coll_part_of(s, i, &part, &err), &err);
		must(rank_program_make(s, i, &a, &err), &err);
		must(rank_program_make(flat, i, &b, &err), &err);
		must(rank_program_make(part, i, &c, &err), &err);
		assert_same_program(&a, &b);
		assert_same_program(&a, &c);
		rank_program_fini(&a);
		rank_program_fini(&b);
		rank_program_fini(&c);
		coll_free(s);
		coll_free(flat);
		coll_free(part);
	}
}

/* The first sum of a place, and no other, is added to what RANK_IN has; it waits for nothing, so it
 * may come to its place. Before it, RANK_IN is sent. */
static void assert_begins_with_nothing(const struct rank_program *p)
{
	int64_t size = (int64_t)p->ranks * p->chunks;
	bool *had = calloc((size_t)size, 1);	/* of OUT or, in a reduce, WORK: never both */

	assert_int_equal(p->own.from.count, 0);
	for (size_t i = 0; i < p->receives.n; i++) {
		const struct rank_message *m = &p->receives.v[i];
		bool first = true;

		for (int k = m->first_piece; k < m->first_piece + m->pieces; k++) {
			const struct rank_piece *q = &p->pieces.v[k];

			for (int c = q->first; c < q->first + q->count; c++) {
				assert_int_equal(q->fresh, q->reduce && !had[c]);
				first &= !had[c];
				had[c] = true;
			}
		}
		assert_true(!first || (m->after == 0 && m->behind == 0));
	}
	for (size_t i = 0; i < p->sends.n; i++) {
		const struct rank_message *m = &p->sends.v[i];

		for (int k = m->first_piece; k < m->first_piece + m->pieces; k++) {
			assert_true(m->after > 0 || p->pieces.v[k].buf == RANK_IN);
		}
	}
	free(had);
}

static void test_sums_begin_with_nothing(void **state)
{
	static const enum coll_kind kinds[] = { COLL_ALLREDUCE, COLL_REDUCE };

	(void)state;
	for (int i = 0; i < 2 * GRAPHS; i++) {
		struct coll_sched *s = schedule_of(kinds[i % 2], graphs[i / 2], 1);

		for (int r = 0; r < coll_ranks(s); r++) {
			struct rank_program p;
			struct err err = { 0 };

			must(rank_program_make(s, r, &p, &err), &err);
			assert_begins_with_nothing(&p);
			rank_program_fini(&p);
		}
		coll_free(s);
	}
}

/* In two steps a rank that has its output elsewhere waits with no receive for a send. */
static void test_two_ranks(void **state)
{
	struct coll_sched *s = bfb(COLL_ALLREDUCE, "K(2)");
	struct rank_program p;
	struct err err = { 0 };

	(void)state;
	must(rank_program_make(s, 0, &p, &err), &err);
	assert_int_equal(p.receives.n, 2);
	assert_true(p.pieces.v[p.receives.v[0].first_piece].fresh);
	assert_int_equal(p.receives.v[1].after, 0);
	assert_int_equal(p.receives.v[1].in_place_after, 1);
	rank_program_fini(&p);
	coll_free(s);
}

/* What is stored over a sum that was not sent may not come before that sum. */
static void test_behind(void **state)
{
	struct coll_sched *s = empty(COLL_ALLREDUCE, "K(3)", 1);
	struct rank_program p;
	struct err err = { 0 };

	(void)state;
	for (int origin = 0; origin < 3; origin++) {
		send_part(s, 0, 1, 0, origin, 0, 0, COLL_OP_REDUCE);
		send_part(s, 1, 2, 0, origin, 0, 0, COLL_OP_COPY);
	}
	finish(s);
	must(rank_program_make(s, 0, &p, &err), &err);
	assert_int_equal(p.receives.v[0].behind, 0);
	assert_int_equal(p.receives.v[1].behind, 1);
	rank_program_fini(&p);
	coll_free(s);
}

static void test_refused(void **state)
{
	struct coll_sched *s = bfb(COLL_ALLGATHER, "Ring(4)"), *part;
	struct rank_program p;
	struct err err = { 0 };

	(void)state;
	assert_int_equal(rank_program_make(s, 4, &p, &err), WEFT_EINVAL);
	rank_program_fini(&p);
	must(coll_part_of(s, 1, &part, &err), &err);
	assert_int_equal(rank_program_make(part, 2, &p, &err), WEFT_EINVAL);
	assert_non_null(strstr(err.msg, "rank 1"));
	rank_program_fini(&p);
	coll_free(s);
	coll_free(part);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_kinds),
		cmocka_unit_test(test_vectors_that_do_not_divide),
		cmocka_unit_test(test_exchanged_sums),
		cmocka_unit_test(test_forwarded_sums),
		cmocka_unit_test(test_merged_sums),
		cmocka_unit_test(test_chains_on_tori),
		cmocka_unit_test(test_random_forwards),
		cmocka_unit_test(test_forwards_of_a_part),
		cmocka_unit_test(test_forward_without_sum),
		cmocka_unit_test(test_sums_begin_with_nothing),
		cmocka_unit_test(test_two_ranks),
		cmocka_unit_test(test_behind),
		cmocka_unit_test(test_compact_chains),
		cmocka_unit_test(test_compact),
		cmocka_unit_test(test_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
