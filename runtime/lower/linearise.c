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

#include "lib/base/alloc.h"
#include "lib/base/number/rat.h"
#include "lib/base/order.h"
#include "runtime/lower/private.h"

#define MAX_STEP_CHUNKS (1 << 24)

ORDER_BY(by_place, struct lower_addition, rank, to, id)

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

/* Chunk id in a copy of scratch. */
static struct lower_place in_copy(const struct lower_walk *w, int32_t copy, int64_t id)
{
	return (struct lower_place){ LOWER_SCRATCH, copy * w->ids + id };
}

/* Where a rank finds what it sends. */
static struct lower_place sent(const struct lower_walk *w, const struct lower_piece *q)
{
	return q->copy < 0 ? value(w, q->src, q->id) : in_copy(w, q->copy, q->id);
}

/* Where what it receives comes to. */
static struct lower_place arrival(const struct lower_walk *w, const struct lower_piece *q)
{
	return q->keep < 0 ? home(w, q->dst, q->id) : in_copy(w, q->keep, q->id);
}

static bool follows(struct lower_place a, struct lower_place b, int64_t by)
{
	return a.buf == b.buf && a.off + by == b.off;
}

/* ---- the pieces of a step ---- */

int lower_neighbour(const struct lower_walk *w, int rank)
{
	int first, n = topo_out(coll_topo(w->s), rank, &first);

	for (int a = first; a < first + n; a++) {
		if (topo_arc(coll_topo(w->s), a)->dst != rank) {
			return topo_arc(coll_topo(w->s), a)->dst;
		}
	}
	return -1;
}

int32_t lower_id(const struct lower_walk *w, const struct coll_xfer *x)
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
	return p->src == q->src && p->dst == q->dst && p->number == q->number &&
	       p->reduce == q->reduce && p->urgent == q->urgent &&
	       p->id + p->cnt == q->id && p->cnt < w->bounds->count &&
	       follows(sent(w, p), sent(w, q), p->cnt) &&
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
	if ((p->copy < 0) != (q->copy < 0)) {
		return p->copy < 0 ? -1 : 1;
	}
	if (p->copy >= 0 && p->number != q->number) {
		return p->number < q->number ? -1 : 1;
	}
	return p->id < q->id ? -1 : p->id > q->id;
}

static int cmp_round(const void *a, const void *b)
{
	const struct lower_piece *p = a, *q = b;

	return p->round != q->round ? (p->round < q->round ? -1 : 1)
				    : cmp_pair(a, b);
}

/* Each chunk of a transfer as parts of its message. */
static int add_parts(struct lower_walk *w, const struct coll_xfer *x, int64_t row)
{
	const struct topo_arc *a = topo_arc(coll_topo(w->s), x->arc);
	int32_t id = lower_id(w, x), end = id + (x->last + 1 - x->first) / w->unit;
	struct lower_piece q = { .src = a->src, .dst = a->dst, .cnt = 1, .keep = -1,
				 .reduce = sums(w) && x->op != COLL_OP_COPY, .message = -row - 1 };
	int rc = 0;

	q.number = x->op == COLL_OP_FORWARD ? x->dest : q.reduce ? a->src : -1;
	if (x->kept) {
		q.number = coll_is_whole(w->n, x->kept) ? 2 * w->n : x->kept - 1;
		q.message = (int64_t)x->arc << 16 | x->kept;
	}
	for (q.id = id; q.id < end && !rc; q.id++) {
		rc = lower_sums_parts(w, x, q);
	}
	return rc;
}

/* All chunks of transfers [from, to) as pieces of one chunk. */
static int single_pieces(struct lower_walk *w, const struct coll_xfer *x, int64_t from, int64_t to)
{
	int rc = 0;

	w->pieces.n = 0;
	w->sums.try++;
	for (int64_t i = from; i < to && !rc; i++) {
		rc = w->pieces.n > MAX_STEP_CHUNKS ? WEFT_ELIMIT : add_parts(w, &x[i], i);
	}
	if (!rc && coll_merges(w->s)) {
		rc = lower_sums_join(w);
	}
	for (size_t i = 0; i < w->pieces.n && !rc; i++) {
		struct lower_piece *q = &w->pieces.v[i];

		rc = lower_sums_saved(w, q);
		if (q->reduce && !rc) {
			w->stamp[at(w, q->dst, q->id)] = 2 * w->step + 1;
			rc = lower_sums_keep(w, q);
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
		v[i].urgent = v[i].copy < 0 &&
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

static void try_send(struct lower_walk *w, struct lower_piece *q)
{
	for (int32_t k = 0; k < q->cnt && q->urgent; k++) {
		if (w->stamp[at(w, q->src, q->id + k)] == 2 * w->step + 2) {
			lower_sums_save(w, q->src, q->id + k);
			w->cut = true;
		}
	}
	q->from = sent(w, q);
	if (q->copy < 0) {
		one_run(w, q, q->src, &q->from);
	}
}

/* What is kept is first, or last, of its arrivals with all its chunks, or cut. */
static void try_keep(struct lower_walk *w, struct lower_piece *q)
{
	lower_sums_meet(w, q, 0, &q->first, &q->last);
	for (int32_t k = 1; k < q->cnt; k++) {
		bool first, last;

		lower_sums_meet(w, q, k, &first, &last);
		if (first != q->first || last != q->last) {
			u64map_set(&w->cuts, key_of(w, q, k), 1);
			w->cut = true;
		}
	}
}

static void try_receive(struct lower_walk *w, struct lower_piece *q)
{
	q->last = true;
	if (q->keep >= 0) {
		try_keep(w, q);
	}
	if (!q->last || (q->keep >= 0 && q->number >= w->n)) {
		return;
	}
	if (q->reduce) {
		one_run(w, q, q->dst, &q->with);
	}
	if (q->number == 2 * w->n) {
		q->first = q->with.buf == LOWER_IN;
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

static void try_step(struct lower_walk *w)
{
	w->undo.n = 0;
	w->cut = false;
	for (size_t i = 0, j; i < w->pieces.n; i = j) {
		j = round_end(w, i);
		for (size_t k = i; k < j; k++) {
			try_send(w, &w->pieces.v[k]);
		}
		for (size_t k = i; k < j; k++) {
			try_receive(w, &w->pieces.v[k]);
		}
	}
	for (size_t i = 0; i < w->undo.n && w->cut; i++) {
		w->got[w->undo.v[i]] = 0;
	}
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
	if (q->src == q->dst) {
		return;
	}
	emit(w, q->src, (struct lower_op){
		.type = LOWER_SEND, .send = q->dst, .recv = -1,
		.src_buf = (uint8_t)q->from.buf, .src = (int32_t)q->from.off,
		.dst_buf = LOWER_OUT, .dst = -1, .cnt = q->cnt,
		.phase = w->out->phases + q->round, .id = q->id });
}

static struct lower_place addend(const struct lower_walk *w, const struct lower_addition *x)
{
	return x->a >= 0    ? in_copy(w, x->a, x->id)
	       : x->a == -1 ? (struct lower_place){ LOWER_IN, x->id }
			    : home(w, x->rank, x->id);
}

/* Sums of what came before, for messages of this step, and what is saved for them. */
static void emit_additions(struct lower_walk *w)
{
	const struct lower_addition *v = w->sums.additions.v;
	size_t n = w->sums.additions.n;

	if (n > 0) {
		qsort(w->sums.additions.v, n, sizeof(*v), by_place);
	}
	for (size_t i = 0, j; i < n; i = j) {
		const struct lower_addition *x = &v[i];
		struct lower_place from = addend(w, x);
		int32_t cnt = 1;

		for (j = i + 1; j < n && v[j].rank == x->rank && v[j].to == x->to &&
		     v[j].a == x->a && v[j].b == x->b && v[j].id == x->id + cnt &&
		     cnt < w->bounds->count && follows(from, addend(w, &v[j]), cnt); j++) {
			cnt++;
		}
		emit(w, x->rank, (struct lower_op){
			.type = x->b < 0 ? LOWER_SAVE : LOWER_ADD, .send = -1, .recv = -1,
			.src_buf = (uint8_t)from.buf, .src = (int32_t)from.off,
			.dst_buf = LOWER_SCRATCH, .dst = (int32_t)in_copy(w, x->to, x->id).off,
			.cnt = cnt, .near = x->near,
			.scratch = x->b < 0 ? 0 : (int32_t)in_copy(w, x->b, x->id).off,
			.phase = w->out->phases, .id = x->id });
	}
}

/* What comes is stored, or added to what is at `with`; from the rank itself within it. */
static void emit_arrival(struct lower_walk *w, const struct lower_piece *q, bool adds,
			 struct lower_place with, struct lower_place to)
{
	bool self = q->src == q->dst;
	struct lower_op op = {
		.type = adds ? LOWER_SUM : LOWER_RECV, .send = -1, .recv = self ? -1 : q->src,
		.src_buf = adds ? (uint8_t)with.buf : LOWER_IN,
		.src = adds ? (int32_t)with.off : -1, .dst_buf = (uint8_t)to.buf,
		.dst = (int32_t)to.off, .cnt = q->cnt, .phase = w->out->phases + q->round,
		.id = q->id };

	if (self) {
		op.type = adds ? LOWER_ADD : LOWER_SAVE;
		op.near = lower_neighbour(w, q->dst);
		op.scratch = adds ? (int32_t)q->from.off : 0;
	}
	if (self && !adds) {
		op.src_buf = (uint8_t)q->from.buf;
		op.src = (int32_t)q->from.off;
	}
	emit(w, q->dst, op);
}

/* What comes to be kept, and then the sum of all that came with what is there, if it is not
 * apart. */
static void emit_kept(struct lower_walk *w, const struct lower_piece *q)
{
	struct lower_place keep = in_copy(w, q->keep, q->id);

	emit_arrival(w, q, !q->first, keep, keep);
	if (!q->last || q->number >= w->n) {
		return;
	}
	emit(w, q->dst, (struct lower_op){
		.type = LOWER_ADD, .send = -1, .recv = -1, .scratch = (int32_t)keep.off,
		.near = q->src == q->dst ? lower_neighbour(w, q->dst) : q->src,
		.src_buf = (uint8_t)q->with.buf, .src = (int32_t)q->with.off,
		.dst_buf = (uint8_t)q->to.buf, .dst = (int32_t)q->to.off, .cnt = q->cnt,
		.phase = w->out->phases + q->round, .id = q->id });
}

static void emit_receive(struct lower_walk *w, const struct lower_piece *q)
{
	if (q->keep >= 0) {
		emit_kept(w, q);
		return;
	}
	emit_arrival(w, q, q->reduce && !(q->number == 2 * w->n && q->first), q->with, q->to);
}

static void emit_step(struct lower_walk *w)
{
	int rounds = 0;

	emit_additions(w);
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
 * that mixes them is cut, what is sent and written before is saved, and the step is dealt
 * again. */
static int walk_step(struct lower_walk *w, const struct coll_xfer *x, int64_t from,
		     int64_t to, struct err *err)
{
	int rc;

	w->step = x[from].step;
	u64map_fini(&w->cuts);
	lower_sums_step(w);
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
		try_step(w);
	} while (w->cut);
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
	int64_t shards = coll_is_alike(s) ? 1 : n;
	int64_t pairs = coll_kind_of(s) == COLL_ALLTOALL ? n : 1;
	int rc;

	*w = (struct lower_walk){ .s = s, .bounds = bounds, .out = out,
				  .kind = coll_kind_of(s), .n = n, .p = p,
				  .unit = unit, .ids = pairs * shards * p };
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

/* Scratch for all that a rank keeps. */
static void set_scratch(const struct lower_walk *w)
{
	for (int r = 0; r < w->n && w->sums.copies; r++) {
		int64_t most = 0;

		for (int64_t id = 0; id < w->ids; id++) {
			int64_t copies = w->sums.copies[at(w, r, id)];

			most = copies > most ? copies : most;
		}
		w->out->rank[r].chunks[LOWER_SCRATCH] = (int32_t)(most * w->ids);
	}
}

/* Refuses early what cannot fit however it is merged; not where sums are. */
static int check_arrivals(const struct lower_walk *w, struct err *err)
{
	int64_t n, *in = x_new((size_t)w->n, sizeof(*in)), elements;
	const struct coll_xfer *x = coll_xfers(w->s, &n);
	int rc = 0, count = w->bounds->count;

	for (int64_t i = 0; i < n; i++) {
		in[topo_arc(coll_topo(w->s), x[i].arc)->dst] +=
			(x[i].last + 1 - x[i].first) / w->unit;
	}
	for (int r = 0; r < w->n && !rc && w->bounds->elements && !coll_merges(w->s); r++) {
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
	int32_t shard = w->p, all = (coll_is_alike(w->s) ? 1 : w->n) * w->p;
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

/* Written out, but for shards that move alike: they are lowered as one. */
static int flatten(const struct coll_sched *s, const struct coll_sched **flat,
		   struct coll_sched **own, struct err *err)
{
	*flat = s;
	return coll_is_alike(s) ? 0 : coll_flat(s, flat, own, err);
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
	    (rc = coll_refuse_switches(s, "programs", err)) ||
	    (rc = flatten(s, &flat, &own, err)) || (rc = walk_init(&w, flat, bounds, out, err)) ||
	    (rc = check_arrivals(&w, err))) {
		goto out;
	}
	start_program(&w);
	lower_sums_init(&w);
	rc = walk_all(&w, err);
	set_scratch(&w);
out:
	coll_free(own);
	free(w.count);
	free(w.got);
	free(w.stamp);
	vec_fini(&w.pieces);
	u64map_fini(&w.cuts);
	lower_sums_fini(&w.sums);
	vec_fini(&w.undo);
	return rc;
}
