/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The messages of one rank, step by step; see rank.h.
 *
 * Within a step what is sent is read before what comes is stored. Every chunk that a rank
 * holds remembers the receive that wrote it last and the send that read it last:
 * so each message knows what it has to wait for. Shards that only pass through have
 * slots in the work buffer, used again once all that came has gone on. So have sums of
 * others that are forwarded (kept.c): as they come they are added to the rank's own, and kept.
 */
#include <stdlib.h>
#include <string.h>

#include "lib/base/number/rat.h"
#include "runtime/rank/private.h"

/* How many receives there were when a chunk was written, and sends when it was read, or RANK_IN's
 * in its stead; and receives when RANK_IN's was last added to a sum elsewhere. */
struct rank_cell {
	int64_t written, read, own_read, added;
};

/* A shard that passes through: chunks that came, and that went on. */
struct rank_slot {
	uint64_t key;
	int64_t came, went;
};

struct rank_walk {
	const struct coll_sched *s;	/* the part */
	struct rank_program *out;
	int unit;		/* chunks of the schedule that make one of the program */
	VEC(struct rank_cell) cells[3];	/* of each buffer, as far as it is used */
	struct u64map slot_of;	/* by key: its slot + 1, or 0 */
	VEC(struct rank_slot) slots;
	VEC(int32_t) free, emptied;	/* slots; emptied: in this step */
	struct rank_kept kept;
	struct rank_merged merged;
	struct coll_xfer before;	/* of merged ones, whose chunks are sent up to there */
	int32_t sent;
};

/* ---- places ---- */

/* The slot of a shard that passes through; a new one when it is not there. */
static int32_t slot_for(struct rank_walk *w, uint64_t key)
{
	uint64_t slot = 0;

	if (u64map_get(&w->slot_of, key, &slot) && slot > 0) {
		return (int32_t)slot - 1;
	}
	if (w->free.n > 0) {
		slot = (uint64_t)w->free.v[--w->free.n];
	} else {
		vec_push(&w->slots, (struct rank_slot){ 0 });
		slot = w->slots.n - 1;
	}
	w->slots.v[slot] = (struct rank_slot){ .key = key };
	u64map_set(&w->slot_of, key, slot + 1);
	return (int32_t)slot;
}

/* Some chunks of a slot go on; it is free once this empties it. */
static void leave_slot(struct rank_walk *w, int32_t slot, int32_t count)
{
	struct rank_slot *x = &w->slots.v[slot];

	x->went += count;
	if (x->went < x->came) {
		return;
	}
	u64map_set(&w->slot_of, x->key, 0);
	vec_push(&w->emptied, slot);
}

/* Which shard of which buffer a transfer reads or writes; shard -1: it passes through. */
static struct rank_piece shard_of(const struct rank_program *p, const struct coll_xfer *x)
{
	switch (p->kind) {
	case COLL_ALLGATHER:
	case COLL_ALLREDUCE:
	case COLL_BROADCAST:
		return (struct rank_piece){ .buf = RANK_OUT, .first = x->origin };
	case COLL_REDUCE_SCATTER:
		if (x->origin == p->rank) {
			return (struct rank_piece){ .buf = RANK_OUT, .first = 0 };
		}
		return (struct rank_piece){ .buf = RANK_WORK, .first = x->origin };
	case COLL_REDUCE:
		return (struct rank_piece){ .buf = p->root == p->rank ? RANK_OUT : RANK_WORK,
					    .first = x->origin };
	case COLL_ALLTOALL:
		if (x->origin == p->rank) {
			return (struct rank_piece){ .buf = RANK_IN, .first = x->dest };
		}
		if (x->dest == p->rank) {
			return (struct rank_piece){ .buf = RANK_OUT, .first = x->origin };
		}
		break;
	case COLL_GATHER:
		if (p->root == p->rank) {
			return (struct rank_piece){ .buf = RANK_OUT, .first = x->origin };
		}
		if (x->origin == p->rank) {
			return (struct rank_piece){ .buf = RANK_IN, .first = 0 };
		}
		break;
	case COLL_SCATTER:
		if (p->root == p->rank) {
			return (struct rank_piece){ .buf = RANK_IN, .first = x->origin };
		}
		if (x->origin == p->rank) {
			return (struct rank_piece){ .buf = RANK_OUT, .first = 0 };
		}
		break;
	}
	return (struct rank_piece){ .buf = RANK_WORK, .first = -1 };
}

/* The chunks of a transfer in the rank's buffers. */
static int place(struct rank_walk *w, const struct coll_xfer *x, bool sends, struct rank_piece *out)
{
	const struct rank_program *p = w->out;
	uint64_t key = (uint64_t)x->origin * (uint64_t)p->ranks + (uint64_t)(x->dest + 1);
	int64_t first;

	*out = shard_of(p, x);
	out->count = (x->last + 1 - x->first) / w->unit;
	if (out->first < 0) {
		out->first = slot_for(w, key);
		if (sends) {
			leave_slot(w, out->first, out->count);
		} else {
			w->slots.v[out->first].came += out->count;
		}
	}
	first = (int64_t)out->first * p->chunks + x->first / w->unit;
	if (first + out->count > INT32_MAX) {
		return WEFT_ELIMIT;
	}
	out->first = (int32_t)first;
	out->reduce = !sends && x->op != COLL_OP_COPY && coll_is_sum(p->kind);
	return 0;
}

/* ---- messages ---- */

static struct rank_cell *cell_of(struct rank_walk *w, uint8_t buf, int64_t chunk)
{
	while ((int64_t)w->cells[buf].n <= chunk) {
		vec_push(&w->cells[buf], (struct rank_cell){ 0 });
	}
	return &w->cells[buf].v[chunk];
}

static int64_t largest(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

/* What a send has to wait for, or a receive; and notes that it was there. own: RANK_IN has what is
 * sent. */
static void touch(struct rank_walk *w, const struct rank_piece *q, bool sends, bool own,
		  struct rank_message *m)
{
	int64_t n = (int64_t)(sends ? w->out->sends.n : w->out->receives.n);

	for (int64_t k = q->first; k < (int64_t)q->first + q->count; k++) {
		struct rank_cell *c = cell_of(w, q->buf, k);

		if (sends) {
			m->after = largest(m->after, c->written);
			*(own ? &c->own_read : &c->read) = n;
		} else {
			m->after = largest(m->after, c->read);
			m->in_place_after = largest(m->in_place_after,
						    largest(c->read, c->own_read));
			m->behind = largest(m->behind, largest(c->written, c->added));
			c->written = n;
		}
	}
}

/* Adds chunks to a message; joined to its last piece where they follow it. */
static void add_piece(struct rank_program *p, struct rank_message *m, const struct rank_piece *q)
{
	struct rank_piece *last = m->pieces > 0 ? &p->pieces.v[p->pieces.n - 1] : NULL;

	m->chunks += q->again ? 0 : q->count;
	if (last && !last->again && !q->again && !(q->fresh && q->buf == RANK_WORK) &&
	    last->buf == q->buf && last->reduce == q->reduce &&
	    last->fresh == q->fresh && last->keep == q->keep &&
	    (!q->keep || last->kept + last->count == q->kept) &&
	    last->first + last->count == q->first) {
		last->count += q->count;
		return;
	}
	m->pieces++;
	vec_push(&p->pieces, *q);
}

/* Chunks alike: RANK_IN stands for all of them, or for none. */
static void add_alike(struct rank_walk *w, struct rank_piece q, bool own, bool sends,
		      struct rank_message *m)
{
	const struct rank_piece kept = { .buf = RANK_WORK, .first = q.kept, .count = q.count };

	touch(w, &q, sends, own, m);
	if (q.keep) {
		touch(w, &kept, sends, false, m);
	}
	q.fresh = own && q.reduce;
	for (int32_t k = 0; q.fresh && q.buf == RANK_WORK && coll_merges(w->s) && k < q.count;
	     k++) {
		cell_of(w, RANK_OUT, rank_own_first(w->out, &q) + k)->added =
			(int64_t)w->out->receives.n;
	}
	if (own && sends) {
		q.first = rank_own_first(w->out, &q);
		q.buf = RANK_IN;
	}
	add_piece(w->out, m, &q);
}

/* RANK_IN stands for a chunk of a sum until something comes. */
static bool is_own(struct rank_walk *w, const struct rank_piece *q, int32_t k)
{
	return coll_is_sum(w->out->kind) && !cell_of(w, q->buf, (int64_t)q->first + k)->written;
}

static void add_whole(struct rank_walk *w, const struct rank_piece *q, bool sends,
		      struct rank_message *m)
{
	for (int32_t from = 0, to; from < q->count; from = to) {
		struct rank_piece part = *q;
		bool own = is_own(w, q, from);

		for (to = from + 1; to < q->count && is_own(w, q, to) == own;) {
			to++;
		}
		part.first += from;
		part.count = to - from;
		add_alike(w, part, own, sends, m);
	}
}

/* Chunk k of the vector, as a transfer of the sum of rank `of` sends or brings it. WEFT_EINVAL when
 * what is forwarded is not there. */
static int piece_of(struct rank_walk *w, const struct coll_xfer *x, bool sends, int of,
		    struct rank_piece *q)
{
	int64_t at = -1;

	if (sends && x->op == COLL_OP_FORWARD) {
		at = rank_kept_find(&w->kept, q->first, of);
		q->buf = RANK_WORK;
		q->first = (int32_t)at;
		return at < 0 ? WEFT_EINVAL : at < INT32_MAX ? 0 : WEFT_ELIMIT;
	}
	if (!sends && x->op != COLL_OP_COPY) {
		at = rank_kept_take(&w->kept, q->first, of, x->step);
		q->keep = at >= 0;
		q->kept = q->keep ? (int32_t)at : 0;
	}
	return at < INT32_MAX ? 0 : WEFT_ELIMIT;
}

/* One after the other, as some may be kept, each in its place. */
static int add_chunks(struct rank_walk *w, const struct coll_xfer *x, const struct rank_piece *all,
		      bool sends, struct rank_message *m)
{
	int of = x->op == COLL_OP_FORWARD ? x->dest : m->peer, rc = 0;

	for (int32_t k = 0; k < all->count && !rc; k++) {
		struct rank_piece q = { .buf = all->buf, .reduce = all->reduce,
					.first = all->first + k, .count = 1 };

		rc = piece_of(w, x, sends, of, &q);
		if (!rc) {
			add_whole(w, &q, sends, m);
		}
	}
	return rc;
}

/* ---- merged sums ---- */

static bool is_written(struct rank_walk *w, uint8_t buf, int64_t chunk)
{
	return cell_of(w, buf, chunk)->written > 0;
}

/* Chunk k of a piece may go where chunk 0 goes, in one piece each. */
static bool goes_along(struct rank_walk *w, const struct rank_piece *q, int32_t k, size_t row,
		       size_t end)
{
	int64_t a = q->first, b = a + k;

	if (is_own(w, q, k) != is_own(w, q, 0)) {
		return false;
	}
	for (; row < end; row++) {
		const struct rank_merge_row *r = &w->merged.rows.v[row];
		int64_t copy = r->message * w->merged.vector;
		bool covers = rank_merged_covers(&w->merged, r, a);

		if (rank_merged_covers(&w->merged, r, b) != covers ||
		    (covers && is_written(w, RANK_WORK, copy + a) !=
				       is_written(w, RANK_WORK, copy + b))) {
			return false;
		}
	}
	return true;
}

/* What comes is added to the rank's own, or takes its place, but for what is kept apart; and to
 * each message that it goes into, but for whole sums. */
static int receive_merged(struct rank_walk *w, const struct coll_xfer *x, struct rank_piece q,
			  int number, struct rank_message *m)
{
	bool apart = coll_is_apart(w->out->ranks, x->kept);
	bool whole = coll_is_whole(w->out->ranks, x->kept);
	size_t end, first = rank_merged_find(&w->merged, number, &end);

	end = whole || x->op == COLL_OP_COPY ? first : end;
	while (q.count > 0) {
		struct rank_piece part = q;
		bool own = is_own(w, &q, 0), again = !apart;

		for (part.count = 1; part.count < q.count &&
				     goes_along(w, &q, part.count, first, end);) {
			part.count++;
		}
		part.reduce = part.reduce && !(whole && own);
		if (!apart) {
			add_alike(w, part, own, false, m);
		}
		for (size_t row = first; row < end; row++) {
			int64_t at = w->merged.rows.v[row].message * w->merged.vector + q.first;
			bool first_there = !is_written(w, RANK_WORK, at);
			bool with_own = first_there && w->merged.rows.v[row].own;
			struct rank_piece more = { .buf = RANK_WORK, .first = (int32_t)at,
						   .count = part.count, .again = again,
						   .reduce = !first_there || with_own };

			if (rank_merged_covers(&w->merged, &w->merged.rows.v[row], q.first)) {
				add_alike(w, more, with_own, false, m);
				again = true;
			}
		}
		if (!again) {
			return WEFT_EUNSUPPORTED;	/* it goes nowhere */
		}
		q.first += part.count;
		q.count -= part.count;
	}
	return 0;
}

/* What came for a message, the own beside it where that belongs to it, or only the own. */
static int send_merged(struct rank_walk *w, const struct coll_xfer *x, struct rank_piece q,
		       struct rank_message *m)
{
	int64_t copy = x->kept ? rank_merged_copy(&w->merged, x) : -1;
	int64_t first = copy * w->merged.vector + q.first;

	while (q.count > 0) {
		struct rank_piece part = q;
		bool came = copy >= 0 && is_written(w, RANK_WORK, first);

		for (part.count = 1; part.count < q.count &&
				     (copy >= 0 && is_written(w, RANK_WORK, first + part.count)) ==
					     came;) {
			part.count++;
		}
		if (came) {
			part.buf = RANK_WORK;
			part.first = (int32_t)first;
			add_alike(w, part, false, true, m);
		} else if (x->op == COLL_OP_FORWARD) {
			return WEFT_EINVAL;
		} else {
			add_whole(w, &part, true, m);
		}
		first += part.count;
		q.first += part.count;
		q.count -= part.count;
	}
	return 0;
}

/* A transfer of one shard, or (count) of several whole ones in a row. */
static int add_merged(struct rank_walk *w, const struct coll_xfer *x, struct rank_piece q,
		      bool sends, struct rank_message *m)
{
	int number = x->kept ? coll_kept_number(w->out->ranks, x->kept)
		     : x->op == COLL_OP_FORWARD ? x->dest : m->peer;

	if ((w->merged.n_messages + 1) * w->merged.vector > INT32_MAX) {
		return WEFT_ELIMIT;
	}
	if (sends) {
		return send_merged(w, x, q, m);
	}
	return receive_merged(w, x, q, number, m);
}

/* Of the transfers of a message, which stand together, each chunk once; of shards that move alike
 * all of them. */
static int add_merged_shards(struct rank_walk *w, const struct coll_xfer *x, bool sends,
			     struct rank_piece q, struct rank_message *m)
{
	const struct coll_xfer *b = &w->before;
	bool same = x->kept && x->kept == b->kept && x->step == b->step && x->arc == b->arc &&
		    x->origin == b->origin;
	int32_t from = same && w->sent > x->first ? w->sent : x->first;
	int rc = 0, shards = coll_is_alike(w->s) ? w->out->ranks : 1;

	w->before = *x;
	w->sent = same && w->sent > x->last + 1 ? w->sent : x->last + 1;
	q.first += (from - x->first) / w->unit;
	q.count = (x->last + 1 - from) / w->unit;
	if (q.count == w->out->chunks) {
		q.count *= shards;
		shards = 1;
	}
	for (int i = 0; i < shards && q.count > 0 && !rc; i++) {
		rc = add_merged(w, x, q, sends, m);
		q.first += w->out->chunks;
	}
	return rc;
}

/* Arcs between the same ends that come before this one. */
static int32_t link_of(const struct topo *t, int arc)
{
	const struct topo_arc *a = topo_arc(t, arc);
	int32_t link = 0;

	while (link < arc && a[-link - 1].src == a->src && a[-link - 1].dst == a->dst) {
		link++;
	}
	return link;
}

static int add_transfer(struct rank_walk *w, const struct coll_xfer *x, bool sends)
{
	struct rank_program *p = w->out;
	const struct topo_arc *a = topo_arc(coll_topo(w->s), x->arc);
	struct rank_piece q;
	struct rank_message *m;
	size_t n = sends ? p->sends.n : p->receives.n;
	int rc = place(w, x, sends, &q);

	if (rc) {
		return rc;
	}
	m = n == 0 ? NULL : sends ? &p->sends.v[n - 1] : &p->receives.v[n - 1];
	if (!m || m->step != x->step || m->arc != x->arc) {
		struct rank_message next = {
			.step = x->step, .arc = x->arc, .link = link_of(coll_topo(w->s), x->arc),
			.peer = sends ? a->dst : a->src, .first_piece = (int32_t)p->pieces.n };

		if (sends) {
			vec_push(&p->sends, next);
		} else {
			vec_push(&p->receives, next);
		}
		m = sends ? &p->sends.v[n] : &p->receives.v[n];
	}
	if (coll_merges(w->s) || coll_is_alike(w->s)) {
		return add_merged_shards(w, x, sends, q, m);
	}
	if (coll_forwards(w->s)) {
		return add_chunks(w, x, &q, sends, m);
	}
	add_whole(w, &q, sends, m);
	return 0;
}

/* What the rank sends, or receives, of transfers [from, to), all of one step. */
static int walk_half(struct rank_walk *w, const struct coll_xfer *x, int64_t from, int64_t to,
		     bool sends)
{
	int rc = 0;

	w->before.kept = 0;
	for (int64_t i = from; i < to && !rc; i++) {
		const struct topo_arc *a = topo_arc(coll_topo(w->s), x[i].arc);

		if ((sends ? a->src : a->dst) == w->out->rank) {
			rc = add_transfer(w, &x[i], sends);
		}
	}
	return rc;
}

static int walk_steps(struct rank_walk *w)
{
	int64_t n;
	const struct coll_xfer *x = coll_xfers(w->s, &n);
	int rc = 0;

	for (int64_t i = 0, j; i < n; i = j) {
		for (j = i; j < n && x[j].step == x[i].step;) {
			j++;
		}
		if ((rc = walk_half(w, x, i, j, true)) || (rc = walk_half(w, x, i, j, false))) {
			break;
		}
		while (w->emptied.n > 0) {
			vec_push(&w->free, w->emptied.v[--w->emptied.n]);
		}
	}
	return rc;
}

/* ---- the whole ---- */

static struct rank_copy copy_of(enum rank_buf from, int64_t at, enum rank_buf to, int64_t there,
				int64_t count)
{
	return (struct rank_copy){
		{ .buf = from, .first = (int32_t)at, .count = (int32_t)count },
		{ .buf = to, .first = (int32_t)there, .count = (int32_t)count },
	};
}

/* Shards of each buffer, and what is copied of the own data. */
static void lay_out(struct rank_program *p, int64_t through)
{
	int64_t n = p->ranks, c = p->chunks, own = p->rank * c;
	bool root = p->rank == p->root;

	memcpy(p->shards, (int32_t[3]){ (int32_t)n, (int32_t)n, (int32_t)through },
	       sizeof(p->shards));
	switch (p->kind) {
	case COLL_ALLGATHER:
		p->shards[RANK_IN] = 1;
		p->own = copy_of(RANK_IN, 0, RANK_OUT, own, c);
		break;
	case COLL_REDUCE_SCATTER:
		p->shards[RANK_OUT] = 1;
		p->shards[RANK_WORK] = (int32_t)n;
		p->own = copy_of(RANK_IN, 0, RANK_OUT, 0, n == 1 ? c : 0);
		break;
	case COLL_ALLREDUCE:
		p->own = copy_of(RANK_IN, 0, RANK_OUT, 0, n == 1 ? c : 0);
		break;
	case COLL_ALLTOALL:
		p->own = copy_of(RANK_IN, own, RANK_OUT, own, c);
		break;
	case COLL_BROADCAST:
		p->shards[RANK_IN] = 0;
		break;
	case COLL_REDUCE:
		p->shards[RANK_OUT] = root ? (int32_t)n : 0;
		p->shards[RANK_WORK] = root ? 0 : (int32_t)n;
		p->own = copy_of(RANK_IN, 0, RANK_OUT, 0, n == 1 ? c : 0);
		break;
	case COLL_GATHER:
		p->shards[RANK_IN] = 1;
		p->shards[RANK_OUT] = root ? (int32_t)n : 0;
		p->own = copy_of(RANK_IN, 0, RANK_OUT, own, root ? c : 0);
		break;
	case COLL_SCATTER:
		p->shards[RANK_IN] = root ? (int32_t)n : 0;
		p->shards[RANK_OUT] = 1;
		p->own = copy_of(RANK_IN, own, RANK_OUT, 0, root ? c : 0);
		break;
	}
}

/* What leaves first need not wait until the own shard is in its place. */
static void send_out_of_input(struct rank_program *p)
{
	for (size_t i = 0; i < p->sends.n && p->kind == COLL_ALLGATHER; i++) {
		const struct rank_message *m = &p->sends.v[i];

		for (int32_t k = 0; k < m->pieces && m->after == 0; k++) {
			p->pieces.v[m->first_piece + k].buf = RANK_IN;
			p->pieces.v[m->first_piece + k].first -= p->own.to.first;
		}
	}
}

/* The largest number that divides every cut of a shard in the part. */
static int unit_of(const struct coll_sched *s)
{
	int64_t n, g = coll_chunks(s);
	const struct coll_xfer *x = coll_xfers(s, &n);

	for (int64_t i = 0; i < n && g > 1; i++) {
		g = rat_gcd(rat_gcd(g, x[i].first), x[i].last + 1);
	}
	return (int)g;
}

static int make(struct rank_walk *w, int rank, struct err *err)
{
	const struct coll_sched *s = w->s;
	struct rank_program *p = w->out;
	int rc;

	w->unit = unit_of(s);
	p->kind = coll_kind_of(s);
	p->ranks = coll_ranks(s);
	p->rank = rank;
	p->root = coll_root(s);
	p->chunks = coll_chunks(s) / w->unit;
	rc = (int64_t)p->ranks * p->chunks > INT32_MAX ? WEFT_ELIMIT : 0;
	if (!rc && coll_merges(s)) {
		if ((rc = rank_merged_make(&w->merged, s, rank, w->unit, err))) {
			return rc;
		}
	} else if (!rc) {
		rank_kept_make(&w->kept, s, rank, w->unit);
	}
	if (!rc) {
		rc = walk_steps(w);
	}
	if (rc == WEFT_EINVAL) {
		return err_set(err, rc, "rank %d forwards a sum that it does not have", rank);
	}
	if (rc == WEFT_ELIMIT || p->pieces.n > INT32_MAX) {
		return err_set(err, WEFT_ELIMIT, "rank %d: a buffer of more than %d chunks, or as "
			       "many pieces of them", rank, INT32_MAX);
	}
	lay_out(p, (int64_t)w->slots.n + (int64_t)w->kept.cells.n / p->chunks +
		   (int64_t)w->merged.n_messages * p->ranks);
	send_out_of_input(p);
	return 0;
}

int rank_program_make(const struct coll_sched *s, int rank, struct rank_program *out,
		      struct err *err)
{
	struct coll_sched *part = NULL;
	struct rank_walk w = { .s = s, .out = out };
	int rc = 0;

	*out = (struct rank_program){ 0 };
	if (coll_part(s) >= 0 && coll_part(s) != rank) {
		return err_set(err, WEFT_EINVAL, "the part of rank %d is not that of rank %d",
			       coll_part(s), rank);
	}
	if (topo_holders(coll_topo(s)) > coll_ranks(s)) {
		return err_set(err, WEFT_EUNSUPPORTED, "messages through memories: not supported");
	}
	if ((rc = coll_refuse_light_changes(s, "messages", err)) ||
	    (rc = coll_refuse_demands(s, "messages", err)) ||
	    (coll_part(s) < 0 && (rc = coll_part_of(s, rank, &part, err)))) {
		return rc;
	}
	w.s = part ? part : s;
	rc = make(&w, rank, err);
	out->steps = coll_steps(s);	/* a part ends with its own last */
	coll_free(part);
	for (int b = 0; b < 3; b++) {
		vec_fini(&w.cells[b]);
	}
	rank_kept_fini(&w.kept);
	rank_merged_fini(&w.merged);
	u64map_fini(&w.slot_of);
	vec_fini(&w.slots);
	vec_fini(&w.free);
	vec_fini(&w.emptied);
	return rc;
}

void rank_program_fini(struct rank_program *p)
{
	vec_fini(&p->receives);
	vec_fini(&p->sends);
	vec_fini(&p->pieces);
}

int64_t rank_offset(const struct rank_program *p, int64_t total, int64_t k)
{
	int64_t cells = (int64_t)p->ranks * p->chunks, product;

	if (k == 0) {
		return 0;
	}
	/* The usual case: longer numbers take much longer to divide. */
	return __builtin_mul_overflow(k, total, &product) ? (int64_t)((__int128)k * total / cells)
							  : product / cells;
}

int32_t rank_own_first(const struct rank_program *p, const struct rank_piece *q)
{
	bool own_shard = p->kind == COLL_REDUCE_SCATTER && q->buf == RANK_OUT;

	return own_shard ? p->rank * p->chunks + q->first
	       : q->buf == RANK_WORK ? q->first % (p->ranks * p->chunks) : q->first;
}
