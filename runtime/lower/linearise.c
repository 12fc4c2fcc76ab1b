/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A schedule as a sequence of sends and receives of each rank.
 *
 * A synchronous step becomes rounds: in a round every pair of ranks passes
 * at most one piece, a run of chunks that is contiguous at both ends, and
 * all sends of a round come before its receives. So the sequence itself is
 * an execution with at most one piece on the way between two ranks, and
 * whatever keeps its order cannot lock up.
 *
 * Where a value is follows from the collective: a rank's own contribution
 * stays in its input until it is first added to, so no copy is made of it,
 * and the same program serves calls in place and out of place. A sum of another rank
 * that is forwarded later comes into scratch, and is added from there.
 */
#include <stdlib.h>
#include <string.h>

#include "lib/base/alloc.h"
#include "lib/base/map.h"
#include "lib/base/number/rat.h"
#include "runtime/lower/lower.h"

#define MAX_STEP_CHUNKS (1 << 24)

/* Where a chunk is in a rank. */
struct lower_place {
	int buf;		/* enum lower_buf */
	int64_t off;		/* in chunks */
};

/* Chunks id .. id + cnt - 1, all numbered origin * P + chunk or, in
 * all-to-all, (origin * N + destination) * P + chunk. */
struct lower_piece {
	int32_t src, dst;	/* ranks */
	int32_t id, cnt;
	int32_t round;
	bool reduce, urgent;	/* urgent: its source is written this step */
	int32_t of;		/* forwarded: whose sum */
	int64_t keep;		/* received: kept here in scratch too; or -1 */
	struct lower_place from, with, to;
};

/* A schedule being lowered, step by step. */
struct lower_walk {
	const struct coll_sched *s;
	const struct lower_bounds *bounds;
	enum coll_kind kind;
	int n, p;		/* ranks; chunks a shard, in units of `unit` */
	int unit;
	int64_t ids;		/* numbers of chunks, see struct lower_piece */
	struct lower *out;
	int64_t *count;		/* of ops by rank, those not kept included */
	bool over;		/* too many for the runtimes: only counts */
	uint8_t *got;		/* rank * ids + id: no longer in the input */
	int32_t *stamp;		/* 2 step + 1: written this step; + 2: done */
	int step;
	VEC(struct lower_piece) pieces;
	struct u64map cuts;	/* pieces must begin here, see key_of */
	bool cut;		/* this try has added to them */
	VEC(int64_t) undo;	/* what the step set in got */
	/* Sums that are forwarded, see sum_key: 0 until they have come, then their places in
	 * scratch, + 1. It holds copies of the vector, so many by rank * ids + id. */
	struct u64map forwarded;
	uint16_t *copies;
};

static bool sums(const struct lower_walk *w)
{
	return w->kind == COLL_ALLREDUCE || w->kind == COLL_REDUCE_SCATTER;
}

static int64_t at(const struct lower_walk *w, int rank, int64_t id)
{
	return rank * w->ids + id;
}

/* Where a rank keeps a value that came from elsewhere. */
static struct lower_place home(const struct lower_walk *w, int rank, int64_t id)
{
	int64_t origin = id / w->p, k = id % w->p;

	if (w->kind == COLL_ALLTOALL) {
		int64_t dest = origin % w->n;

		return dest == rank ? (struct lower_place){
				LOWER_OUT, origin / w->n * w->p + k }
			: (struct lower_place){ LOWER_SCRATCH, id };
	}
	if (w->kind == COLL_REDUCE_SCATTER) {
		return origin == rank ? (struct lower_place){ LOWER_OUT, k }
				      : (struct lower_place){ LOWER_SCRATCH, id };
	}
	return (struct lower_place){ LOWER_OUT, id };
}

/* Where a rank finds its present value. */
static struct lower_place value(const struct lower_walk *w, int rank, int64_t id)
{
	int64_t origin = id / w->p, k = id % w->p;

	switch (w->kind) {
	case COLL_ALLGATHER:
		if (origin == rank) {
			return (struct lower_place){ LOWER_IN, k };
		}
		break;
	case COLL_ALLTOALL:
		if (origin / w->n == rank) {
			return (struct lower_place){
				LOWER_IN, origin % w->n * w->p + k };
		}
		break;
	case COLL_BROADCAST:
		if (rank == coll_root(w->s)) {
			return (struct lower_place){ LOWER_IN, id };
		}
		break;
	case COLL_GATHER:
	case COLL_SCATTER:
	case COLL_REDUCE:
	case COLL_ALLREDUCE:
	case COLL_REDUCE_SCATTER:
		if (!w->got[at(w, rank, id)]) {
			return (struct lower_place){ LOWER_IN, id };
		}
		break;
	}
	return home(w, rank, id);
}

/* Chunk id of the sum of rank `of` at `rank`. */
static uint64_t sum_key(const struct lower_walk *w, int rank, int of, int64_t id)
{
	return ((uint64_t)rank * (uint64_t)w->n + (uint64_t)of) * (uint64_t)w->ids + (uint64_t)id;
}

/* Where a rank finds what it sends. */
static struct lower_place sent(const struct lower_walk *w, const struct lower_piece *q, int32_t k)
{
	uint64_t at = 0;

	if (q->of < 0) {
		return value(w, q->src, q->id + k);
	}
	u64map_get(&w->forwarded, sum_key(w, q->src, q->of, q->id + k), &at);
	return (struct lower_place){ LOWER_SCRATCH, (int64_t)at - 1 };
}

/* Where what it receives comes to. */
static struct lower_place arrival(const struct lower_walk *w, const struct lower_piece *q)
{
	return q->keep < 0 ? home(w, q->dst, q->id)
			   : (struct lower_place){ LOWER_SCRATCH, q->keep };
}

static bool follows(struct lower_place a, struct lower_place b, int64_t by)
{
	return a.buf == b.buf && a.off + by == b.off;
}

/* ---- the pieces of a step ---- */

static int32_t id_of(const struct lower_walk *w, const struct coll_xfer *x)
{
	int64_t shard = w->kind == COLL_ALLTOALL
				? (int64_t)x->origin * w->n + x->dest
				: x->origin;

	return (int32_t)(shard * w->p + x->first / w->unit);
}

static uint64_t key_of(const struct lower_walk *w, const struct lower_piece *q, int32_t k)
{
	uint64_t pair = (uint64_t)q->src * (uint64_t)w->n + (uint64_t)q->dst;

	return pair * (uint64_t)w->ids + (uint64_t)(q->id + k);
}

/* q, the next chunk for the same pair of ranks, may join p. */
static bool joins(const struct lower_walk *w, const struct lower_piece *p,
		  const struct lower_piece *q)
{
	return p->src == q->src && p->dst == q->dst && p->of == q->of &&
	       p->reduce == q->reduce && p->urgent == q->urgent &&
	       p->id + p->cnt == q->id && p->cnt < w->bounds->count &&
	       follows(sent(w, p, 0), sent(w, q, 0), p->cnt) &&
	       follows(arrival(w, p), arrival(w, q), p->cnt) &&
	       follows(home(w, p->dst, p->id), home(w, q->dst, q->id), p->cnt) &&
	       (!p->reduce || follows(value(w, p->dst, p->id),
				      value(w, q->dst, q->id), p->cnt)) &&
	       !u64map_get(&w->cuts, key_of(w, q, 0), NULL);
}

static int cmp_pair(const void *a, const void *b)
{
	const struct lower_piece *p = a, *q = b;

	if (p->src != q->src) {
		return p->src < q->src ? -1 : 1;
	}
	if (p->dst != q->dst) {
		return p->dst < q->dst ? -1 : 1;
	}
	if (p->urgent != q->urgent) {
		return p->urgent ? -1 : 1;
	}
	if (p->of != q->of) {
		return p->of < q->of ? -1 : 1;
	}
	return p->id < q->id ? -1 : p->id > q->id;
}

static int cmp_round(const void *a, const void *b)
{
	const struct lower_piece *p = a, *q = b;

	return p->round != q->round ? (p->round < q->round ? -1 : 1)
				    : cmp_pair(a, b);
}

/* Where q, a sum of rank `of`, is kept when it is forwarded later; a place is for one sum
 * only. */
static int find_keep(struct lower_walk *w, struct lower_piece *q, int of)
{
	uint64_t key = sum_key(w, q->dst, of, q->id), known;
	uint16_t *copies = &w->copies[at(w, q->dst, q->id)];

	if (!u64map_get(&w->forwarded, key, &known)) {
		return 0;
	}
	q->keep = known ? (int64_t)known - 1 : *copies * w->ids + q->id;
	if (known) {
		return 0;
	}
	if (q->keep + w->ids > INT32_MAX || *copies == UINT16_MAX) {
		return WEFT_ELIMIT;
	}
	(*copies)++;
	u64map_set(&w->forwarded, key, (uint64_t)q->keep + 1);
	return 0;
}

/* Chunk id of a transfer. */
static int add_piece(struct lower_walk *w, const struct coll_xfer *x, const struct topo_arc *a,
		     int32_t id)
{
	struct lower_piece q = { .src = a->src, .dst = a->dst, .id = id, .cnt = 1, .of = -1,
				 .keep = -1 };
	int rc = 0;

	q.reduce = sums(w) && x->op != COLL_OP_COPY;
	if (q.reduce) {
		w->stamp[at(w, a->dst, id)] = 2 * w->step + 1;
	}
	if (x->op == COLL_OP_FORWARD) {
		q.of = x->dest;
		rc = sent(w, &q, 0).off < 0 ? WEFT_EINVAL : 0;
	}
	if (q.reduce && w->copies && !rc) {
		rc = find_keep(w, &q, q.of < 0 ? a->src : q.of);
	}
	if (rc) {
		return rc;
	}
	vec_push(&w->pieces, q);
	return 0;
}

/* All chunks of transfers [from, to) as pieces of one chunk. */
static int single_pieces(struct lower_walk *w, const struct coll_xfer *x, int64_t from, int64_t to)
{
	int rc = 0;

	w->pieces.n = 0;
	for (int64_t i = from; i < to && !rc; i++) {
		if (w->pieces.n > MAX_STEP_CHUNKS) {
			return WEFT_ELIMIT;
		}
		const struct topo_arc *a = topo_arc(coll_topo(w->s), x[i].arc);
		int32_t id = id_of(w, &x[i]);
		int32_t end = id + (x[i].last + 1 - x[i].first) / w->unit;

		for (; id < end && !rc; id++) {
			rc = add_piece(w, &x[i], a, id);
		}
	}
	return rc;
}

/* Merges chunks to pieces, and deals the pieces of a pair to rounds. */
static void merge_pieces(struct lower_walk *w)
{
	struct lower_piece *v = w->pieces.v;
	size_t n = 0;

	for (size_t i = 0; i < w->pieces.n && sums(w); i++) {
		v[i].urgent = v[i].of < 0 &&
			      w->stamp[at(w, v[i].src, v[i].id)] == 2 * w->step + 1;
	}
	qsort(v, w->pieces.n, sizeof(*v), cmp_pair);
	for (size_t i = 0; i < w->pieces.n; i++) {
		if (n > 0 && joins(w, &v[n - 1], &v[i])) {
			v[n - 1].cnt++;
			continue;
		}
		v[i].round = n > 0 && v[n - 1].src == v[i].src && v[n - 1].dst == v[i].dst
				? v[n - 1].round + 1 : 0;
		v[n++] = v[i];
	}
	w->pieces.n = n;
	qsort(v, n, sizeof(*v), cmp_round);
}

/* ---- running a step ---- */

/* Where the values of a piece begin at `rank`. When they are in several
 * runs, the places where these meet are noted as cuts. */
static void one_run(struct lower_walk *w, const struct lower_piece *q, int rank,
		    struct lower_place *out)
{
	struct lower_place last = value(w, rank, q->id);

	*out = last;
	for (int32_t k = 1; k < q->cnt; k++) {
		struct lower_place next = value(w, rank, q->id + k);

		if (!follows(last, next, 1)) {
			u64map_set(&w->cuts, key_of(w, q, k), 1);
			w->cut = true;
		}
		last = next;
	}
}

static int try_send(struct lower_walk *w, struct lower_piece *q, struct err *err)
{
	for (int32_t k = 0; k < q->cnt && q->urgent; k++) {
		if (w->stamp[at(w, q->src, q->id + k)] == 2 * w->step + 2) {
			return err_set(err, WEFT_EUNSUPPORTED,
				       "step %d: rank %d sends a sum to rank "
				       "%d and adds to it in the same step, "
				       "in more than one piece: not "
				       "supported", w->step, q->src, q->dst);
		}
	}
	q->from = sent(w, q, 0);
	if (q->of < 0) {
		one_run(w, q, q->src, &q->from);
	}
	return 0;
}

static void try_receive(struct lower_walk *w, struct lower_piece *q)
{
	if (q->reduce) {
		one_run(w, q, q->dst, &q->with);
	}
	q->to = home(w, q->dst, q->id);
	for (int32_t k = 0; k < q->cnt && sums(w); k++) {
		int64_t i = at(w, q->dst, q->id + k);

		if (q->reduce) {
			w->stamp[i] = 2 * w->step + 2;
		}
		if (!w->got[i]) {
			w->got[i] = 1;
			vec_push(&w->undo, i);
		}
	}
}

/* End of the round that begins with piece i. */
static size_t round_end(const struct lower_walk *w, size_t i)
{
	size_t j = i;

	while (j < w->pieces.n && w->pieces.v[j].round == w->pieces.v[i].round) {
		j++;
	}
	return j;
}

static int try_step(struct lower_walk *w, struct err *err)
{
	int rc = 0;

	w->undo.n = 0;
	w->cut = false;
	for (size_t i = 0, j; i < w->pieces.n && !rc; i = j) {
		j = round_end(w, i);
		for (size_t k = i; k < j && !rc; k++) {
			rc = try_send(w, &w->pieces.v[k], err);
		}
		for (size_t k = i; k < j && !rc; k++) {
			try_receive(w, &w->pieces.v[k]);
		}
	}
	for (size_t i = 0; i < w->undo.n && w->cut; i++) {
		w->got[w->undo.v[i]] = 0;
	}
	return rc;
}

/* What a rank stores of a file at least: two ops are at best one step. */
static int64_t elements_of(const struct lower_walk *w, int rank)
{
	return (w->count[rank] + 1) / 2 + 1 + w->n;
}

static void emit(struct lower_walk *w, int rank, struct lower_op op)
{
	w->count[rank]++;
	if (w->bounds->elements && elements_of(w, rank) > w->bounds->elements) {
		w->over = true;
	}
	if (!w->over) {
		vec_push(&w->out->rank[rank].ops, op);
	}
}

/* After all steps, so that the error reports all that is needed. */
static int check_elements(const struct lower_walk *w, struct err *err)
{
	int most = 0;

	for (int r = 1; r < w->n; r++) {
		most = w->count[r] > w->count[most] ? r : most;
	}
	return w->over ? lower_elements_error(most, elements_of(w, most), w->n,
					      w->bounds->elements, err) : 0;
}

static void emit_send(struct lower_walk *w, const struct lower_piece *q)
{
	emit(w, q->src, (struct lower_op){
		.type = LOWER_SEND, .send = q->dst, .recv = -1,
		.src_buf = (uint8_t)q->from.buf, .src = (int32_t)q->from.off,
		.dst_buf = LOWER_OUT, .dst = -1, .cnt = q->cnt,
		.phase = w->out->phases + q->round, .id = q->id });
}

/* What comes to be kept, and its sum with what is there. */
static void emit_kept(struct lower_walk *w, const struct lower_piece *q)
{
	struct lower_op op = {
		.type = LOWER_RECV, .send = -1, .recv = q->src, .src_buf = LOWER_IN, .src = -1,
		.dst_buf = LOWER_SCRATCH, .dst = (int32_t)q->keep, .cnt = q->cnt,
		.phase = w->out->phases + q->round, .id = q->id };

	emit(w, q->dst, op);
	op.type = LOWER_ADD;
	op.recv = -1;
	op.near = q->src;
	op.scratch = (int32_t)q->keep;
	op.src_buf = (uint8_t)q->with.buf;
	op.src = (int32_t)q->with.off;
	op.dst_buf = (uint8_t)q->to.buf;
	op.dst = (int32_t)q->to.off;
	emit(w, q->dst, op);
}

static void emit_receive(struct lower_walk *w, const struct lower_piece *q)
{
	if (q->keep >= 0) {
		emit_kept(w, q);
		return;
	}
	emit(w, q->dst, (struct lower_op){
		.type = q->reduce ? LOWER_SUM : LOWER_RECV,
		.send = -1, .recv = q->src,
		.src_buf = q->reduce ? (uint8_t)q->with.buf : LOWER_IN,
		.src = q->reduce ? (int32_t)q->with.off : -1,
		.dst_buf = (uint8_t)q->to.buf, .dst = (int32_t)q->to.off,
		.cnt = q->cnt, .phase = w->out->phases + q->round,
		.id = q->id });
}

static void emit_step(struct lower_walk *w)
{
	int rounds = 0;

	for (size_t i = 0, j; i < w->pieces.n; i = j) {
		j = round_end(w, i);
		for (size_t k = i; k < j; k++) {
			emit_send(w, &w->pieces.v[k]);
		}
		for (size_t k = i; k < j; k++) {
			emit_receive(w, &w->pieces.v[k]);
		}
		rounds = w->pieces.v[i].round + 1;
	}
	w->out->phases += rounds;
}

/* Chunks that a step writes may differ in where their sums were; a piece
 * that mixes them is cut, and the step is dealt again. */
static int walk_step(struct lower_walk *w, const struct coll_xfer *x, int64_t from,
		     int64_t to, struct err *err)
{
	int rc;

	w->step = x[from].step;
	u64map_fini(&w->cuts);
	do {
		rc = single_pieces(w, x, from, to);
		if (rc == WEFT_EINVAL) {
			return err_set(err, rc, "step %d: a sum is forwarded before it has come",
				       w->step);
		}
		if (rc) {
			return err_set(err, WEFT_ELIMIT,
				       "step %d moves more than %d chunks, or a rank keeps more "
				       "than it has places for", w->step, MAX_STEP_CHUNKS);
		}
		merge_pieces(w);
		rc = try_step(w, err);
	} while (w->cut && !rc);
	if (rc) {
		return rc;
	}
	emit_step(w);
	return 0;
}

/* ---- what a rank copies for itself ---- */

static void emit_copies(struct lower_walk *w, int rank, int64_t from, int64_t to, int64_t n)
{
	for (int64_t k = 0; k < n; k += w->bounds->count) {
		int64_t left = n - k;

		emit(w, rank, (struct lower_op){
			.type = LOWER_COPY, .send = -1, .recv = -1,
			.src_buf = LOWER_IN, .src = (int32_t)(from + k),
			.dst_buf = LOWER_OUT, .dst = (int32_t)(to + k),
			.cnt = (int32_t)(left < w->bounds->count ? left : w->bounds->count) });
	}
}

static void own_copies(struct lower_walk *w, int rank)
{
	int64_t own = (int64_t)rank * w->p;

	switch (w->kind) {
	case COLL_ALLGATHER:
		emit_copies(w, rank, 0, own, w->p);
		break;
	case COLL_ALLTOALL:
		emit_copies(w, rank, own, own, w->p);
		break;
	case COLL_BROADCAST:
		if (rank == coll_root(w->s)) {
			emit_copies(w, rank, 0, 0, w->ids);
		}
		break;
	case COLL_ALLREDUCE:
	case COLL_REDUCE_SCATTER:
	case COLL_REDUCE:
	case COLL_GATHER:
	case COLL_SCATTER:
		break;
	}
}

/* ---- the whole ---- */

/* The largest number that divides every cut of a shard. */
static int unit_of(const struct coll_sched *s)
{
	int64_t n, g = coll_chunks(s);
	const struct coll_xfer *x = coll_xfers(s, &n);

	for (int64_t i = 0; i < n && g > 1; i++) {
		g = rat_gcd(rat_gcd(g, x[i].first), x[i].last + 1);
	}
	return (int)g;
}

static int check_size(const struct lower_walk *w, struct err *err)
{
	int64_t table = sums(w) ? w->ids * w->n : 0;

	if (coll_has_root(w->kind) && w->kind != COLL_BROADCAST) {
		return err_set(err, WEFT_EUNSUPPORTED, "programs of a %s: not supported",
			       coll_kind_name(w->kind));
	}
	if (w->n < 2) {
		return err_set(err, WEFT_EUNSUPPORTED,
			       "a single rank has nothing to send: not "
			       "supported");
	}
	if (w->n > w->bounds->ranks) {
		err_set(err, WEFT_ELIMIT, "%d ranks; at most %d can be "
			"lowered", w->n, w->bounds->ranks);
		err_hint(err, "fits: N up to %d", w->bounds->ranks);
		return err->code;
	}
	if (w->ids > INT32_MAX || table > LOWER_MAX_CELLS) {
		err_set(err, WEFT_ELIMIT,
			"%d ranks with %d chunks a shard are more chunks "
			"than weft lowers", w->n, w->p);
		err_hint(err, "fits: at most %d chunks on all ranks", LOWER_MAX_CELLS);
		return WEFT_ELIMIT;
	}
	return 0;
}

static int walk_init(struct lower_walk *w, const struct coll_sched *s,
		     const struct lower_bounds *bounds, struct lower *out, struct err *err)
{
	int unit = unit_of(s), n = coll_ranks(s), p = coll_chunks(s) / unit;
	int64_t pairs = coll_kind_of(s) == COLL_ALLTOALL ? n : 1;
	int rc;

	*w = (struct lower_walk){ .s = s, .bounds = bounds, .out = out,
				  .kind = coll_kind_of(s), .n = n, .p = p,
				  .unit = unit, .ids = pairs * n * p };
	rc = check_size(w, err);
	if (rc) {
		return rc;
	}
	w->count = x_new((size_t)n, sizeof(*w->count));
	if (sums(w)) {
		w->got = x_new((size_t)(w->ids * n), sizeof(*w->got));
		w->stamp = x_new((size_t)(w->ids * n), sizeof(*w->stamp));
	}
	return 0;
}

/* Notes which sums are forwarded. */
static void find_forwards(struct lower_walk *w)
{
	int64_t n;
	const struct coll_xfer *x = coll_xfers(w->s, &n);

	if (!coll_forwards(w->s)) {
		return;
	}
	w->copies = x_new((size_t)(w->ids * w->n), sizeof(*w->copies));
	for (int64_t i = 0; i < n; i++) {
		int32_t id = id_of(w, &x[i]), end = id + (x[i].last + 1 - x[i].first) / w->unit;
		int src = topo_arc(coll_topo(w->s), x[i].arc)->src;

		for (; id < end && x[i].op == COLL_OP_FORWARD; id++) {
			u64map_set(&w->forwarded, sum_key(w, src, x[i].dest, id), 0);
		}
	}
}

/* Scratch for all that a rank keeps. */
static void set_scratch(const struct lower_walk *w)
{
	for (int r = 0; r < w->n && w->copies; r++) {
		int64_t most = 0;

		for (int64_t id = 0; id < w->ids; id++) {
			int64_t copies = w->copies[at(w, r, id)];

			most = copies > most ? copies : most;
		}
		w->out->rank[r].chunks[LOWER_SCRATCH] = (int32_t)(most * w->ids);
	}
}

/* Refuses early what cannot fit however it is merged. */
static int check_arrivals(const struct lower_walk *w, struct err *err)
{
	int64_t n, *in = x_new((size_t)w->n, sizeof(*in)), elements;
	const struct coll_xfer *x = coll_xfers(w->s, &n);
	int rc = 0, count = w->bounds->count;

	for (int64_t i = 0; i < n; i++) {
		in[topo_arc(coll_topo(w->s), x[i].arc)->dst] +=
			(x[i].last + 1 - x[i].first) / w->unit;
	}
	for (int r = 0; r < w->n && !rc && w->bounds->elements; r++) {
		elements = (in[r] + count - 1) / count + 1 + w->n;
		if (elements > w->bounds->elements) {
			rc = lower_elements_error(r, elements, w->n, w->bounds->elements, err);
		}
	}
	free(in);
	return rc;
}

/* Head and buffers of the program. Values on their way are in scratch under
 * their id: it has holes. */
static void start_program(const struct lower_walk *w)
{
	int32_t shard = w->p, all = w->n * w->p;
	bool scatter = w->kind == COLL_REDUCE_SCATTER;
	bool scratch = scatter || w->kind == COLL_ALLTOALL;
	struct lower *l = w->out;

	l->rank = x_new((size_t)w->n, sizeof(*l->rank));
	l->ranks = w->n;
	l->root = coll_root(w->s);
	l->loop = all;
	for (int r = 0; r < w->n; r++) {
		int32_t *n = l->rank[r].chunks;

		n[LOWER_IN] = w->kind == COLL_ALLGATHER ? shard : all;
		n[LOWER_OUT] = scatter ? shard : all;
		n[LOWER_SCRATCH] = scratch ? (int32_t)w->ids : 0;
	}
}

/* The copies of all ranks, then step by step. */
static int walk_all(struct lower_walk *w, struct err *err)
{
	int64_t n;
	const struct coll_xfer *x = coll_xfers(w->s, &n);
	int rc;

	for (int r = 0; r < w->n; r++) {
		own_copies(w, r);
	}
	for (int64_t i = 0, j; i < n; i = j) {
		for (j = i; j < n && x[j].step == x[i].step;) {
			j++;
		}
		/* A stamp of the step before is never taken for one of this. */
		rc = walk_step(w, x, i, j, err);
		if (rc) {
			return rc;
		}
	}
	return check_elements(w, err);
}

int lower_schedule(const struct coll_sched *s, const struct lower_bounds *bounds, struct lower *out,
		   struct err *err)
{
	struct lower_walk w = { 0 };
	const struct coll_sched *flat;
	struct coll_sched *own = NULL;
	int rc;

	*out = (struct lower){ .kind = coll_kind_of(s) };
	if ((rc = coll_refuse_light_changes(s, "programs", err)) ||
	    (rc = coll_refuse_demands(s, "programs", err)) ||
	    (rc = coll_refuse_merges(s, "programs", err)) ||
	    (rc = coll_refuse_switches(s, "programs", err)) ||
	    (rc = coll_flat(s, &flat, &own, err)) || (rc = walk_init(&w, flat, bounds, out, err)) ||
	    (rc = check_arrivals(&w, err))) {
		goto out;
	}
	start_program(&w);
	find_forwards(&w);
	rc = walk_all(&w, err);
	set_scratch(&w);
out:
	coll_free(own);
	free(w.count);
	free(w.got);
	free(w.stamp);
	vec_fini(&w.pieces);
	u64map_fini(&w.cuts);
	u64map_fini(&w.forwarded);
	free(w.copies);
	vec_fini(&w.undo);
	return rc;
}
