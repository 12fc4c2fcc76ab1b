/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replay of a schedule.
 *
 * The transfers of one shard (in all-to-all: of one origin and destination)
 * touch no other shard, so shards are replayed one after the other; of a compact
 * schedule the shards of one origin an orbit, as the others' replays are images of
 * theirs. Chunks
 * of a shard that appear in the same transfers form a class and are replayed
 * once. What is sent must be held when the step begins: all of a step is
 * checked before any of it is applied.
 *
 * Where sums are forwarded, the sum that each rank sent last is kept, and who has it: no rank
 * can get two sums of a rank, as the later one includes the earlier.
 */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collective/schedule/private.h"
#include "lib/base/alloc.h"
#include "lib/base/parallel.h"

/* Transfers from which on shards are replayed on several threads. */
#define SHARED_XFERS 65536
#define MAX_SHARED_RANKS 16384	/* of sums: 64 MiB a thread */

/* Transfers of a shard lie far apart: so many ahead are fetched. */
#define FETCH_AHEAD 16

struct coll_replay {
	const struct coll_sched *s;
	int n;			/* nodes; of sums all are ranks */

	const uint32_t *order;	/* transfers by origin, destination, step */
	int64_t next;		/* first of the shards to come */
	int origin, dest;	/* the shard at hand */
	int lo, hi;		/* ranks lo..hi - 1 want it */
	struct coll_move *moves;	/* its transfers */
	int n_moves;
	size_t moves_cap;
	VEC(int32_t) begins;	/* sums: moves by their first class, */
	int32_t *begin;		/* of class c: begins.v[begin[c] .. begin[c + 1] - 1] */
	VEC(int32_t) now;	/* moves of the class at hand, ascending */

	uint64_t *marks;	/* bit c: a class begins at chunk c */
	int32_t *class_at;	/* the class that begins at a marked chunk */
	int32_t *class_first;	/* first chunk of a class, chunks at the end */
	int n_classes;

	uint64_t *have;		/* copies: bit = class of the block, a node */

	size_t words;		/* sums: words of a set of ranks */
	uint64_t *sum;		/* rows of contributions, a node; valid where
				 * 1 < count < n */
	uint64_t *sum_old;	/* the same as the step began, where it
				 * changes in this step */
	int *count, *count_old;	/* contributions at a node */
	int64_t *arrives;	/* stamp of the last step that changed a row */
	int64_t stamp;
	struct coll_sum_node *leaves;	/* of each node, while sums form a tree */
	struct coll_sent *sent;	/* of each node; NULL: nothing is forwarded */
	uint64_t *sent_sum;	/* rows as sum: what was sent; valid likewise */
	uint64_t *holders;	/* rows: who has what this node sent */
	struct arrays arrays;	/* all of these but the moves */
};

/* A node of a tree of sums. Steps; NEVER when not (yet). */
#define NEVER INT32_MAX
struct coll_sum_node {
	int32_t sent;		/* its sum */
	int32_t arrived;	/* the last sum to it; -1: none */
	int32_t whole;		/* the sum of all arrived */
};

/* The sum that a node sent last. */
struct coll_sent {
	int count;		/* contributions; 0: none was sent */
	bool changed;		/* the node's sum since then; also before the first */
};

static void replay_fini(struct coll_replay *r)
{
	free(r->moves);
	vec_fini(&r->begins);
	vec_fini(&r->now);
	arrays_fini(&r->arrays);
}

/* One stable counting-sort pass over the transfers' origin or destination.
 * from NULL: the transfers in their own order. */
static void sort_pass(const struct coll_sched *s, bool by_origin, const uint32_t *from,
		      uint32_t *to)
{
	const struct coll_xfer *x = s->xfers.v;
	size_t *start = x_new((size_t)s->ranks + 1, sizeof(*start));

	for (size_t i = 0; i < s->xfers.n; i++) {
		start[(by_origin ? x[i].origin : x[i].dest) + 1]++;
	}
	for (int u = 0; u < s->ranks; u++) {
		start[u + 1] += start[u];
	}
	for (size_t i = 0; i < s->xfers.n; i++) {
		uint32_t k = from ? from[i] : (uint32_t)i;

		to[start[by_origin ? x[k].origin : x[k].dest]++] = k;
	}
	free(start);
}

/* order: room for all transfers. */
static void sort_by_shard(const struct coll_sched *s, uint32_t *order)
{
	uint32_t *by_dest = NULL;

	if (s->kind != COLL_ALLTOALL) {
		sort_pass(s, true, NULL, order);
		return;
	}
	by_dest = x_alloc(s->xfers.n + 1, sizeof(*by_dest));
	sort_pass(s, false, NULL, by_dest);
	sort_pass(s, true, by_dest, order);
	free(by_dest);
}

static void replay_init(struct coll_replay *r, const struct coll_sched *s, const uint32_t *order)
{
	size_t n = (size_t)topo_n(s->topo), p = s->chunks;

	*r = (struct coll_replay){ .s = s, .n = topo_n(s->topo), .order = order };
	arrays_add(&r->arrays, r->marks, p / 64 + 1);
	arrays_add(&r->arrays, r->class_at, p + 1);
	arrays_add(&r->arrays, r->class_first, p + 1);
	if (coll_is_sum(s->kind)) {
		r->words = (n + 63) / 64;
		arrays_add(&r->arrays, r->begin, p + 2);
		arrays_add(&r->arrays, r->sum, n * r->words);
		arrays_add(&r->arrays, r->sum_old, n * r->words);
		arrays_add(&r->arrays, r->count, n);
		arrays_add(&r->arrays, r->count_old, n);
		arrays_add(&r->arrays, r->arrives, n);
		arrays_add(&r->arrays, r->leaves, n);
		if (s->forwards && !s->merges) {
			arrays_add(&r->arrays, r->sent, n);
			arrays_add(&r->arrays, r->sent_sum, n * r->words);
			arrays_add(&r->arrays, r->holders, n * r->words);
		}
	} else {
		arrays_add(&r->arrays, r->have, n);
	}
}

struct coll_chunk_name {
	char text[80];
};

/* "shard 2 chunk 5" or "shard 2 for rank 9 chunk 5". */
static struct coll_chunk_name chunk_name(const struct coll_replay *r, int class)
{
	struct coll_chunk_name p;
	char dest[32] = "";

	if (r->s->kind == COLL_ALLTOALL) {
		snprintf(dest, sizeof(dest), " for rank %d", r->dest);
	}
	snprintf(p.text, sizeof(p.text), "shard %d%s chunk %d", r->origin,
		 dest, r->class_first[class]);
	return p;
}

static int fault(const struct coll_replay *r, const struct coll_move *m, int class,
		 struct err *err, const char *what)
{
	return err_set(err, WEFT_EVERIFY,
		       "step %d: arc %d (%d -> %d): %s: %s", m->step, m->arc,
		       m->src, m->dst, chunk_name(r, class).text, what);
}

/* ---- one shard's transfers and classes ---- */

static void mark(struct coll_replay *r, int chunk)
{
	r->marks[chunk / 64] |= UINT64_C(1) << (chunk % 64);
}

/* Numbers the marked chunks in order and clears the marks. */
static void number_classes(struct coll_replay *r)
{
	int words = r->s->chunks / 64 + 1, k = 0;

	for (int w = 0; w < words; w++) {
		for (; r->marks[w]; r->marks[w] &= r->marks[w] - 1) {
			int chunk = w * 64 + __builtin_ctzll(r->marks[w]);

			r->class_at[chunk] = k;
			r->class_first[k++] = chunk;
		}
	}
	r->n_classes = k - 1;	/* the last mark ends the shard */
}

/* A transfer of shard (origin, dest); of others than all-to-all, dest is COLL_NO_DEST. */
static bool is_of(const struct coll_xfer *x, int origin, int dest)
{
	return x->origin == origin && (x->dest == dest || dest == COLL_NO_DEST);
}

/* Takes the transfers of shard (origin, dest) off the order and cuts the
 * shard into classes. */
static void load_shard(struct coll_replay *r, int origin, int dest)
{
	const struct coll_xfer *x = r->s->xfers.v;
	const struct topo_arc *arcs = topo_arcs(r->s->topo);
	int64_t end = r->next, total = (int64_t)r->s->xfers.n;

	r->origin = origin;
	r->dest = dest;
	while (end < total && is_of(&x[r->order[end]], origin, dest)) {
		end++;
	}
	r->n_moves = (int)(end - r->next);
	vec_grow((void **)&r->moves, &r->moves_cap, r->n_moves + 1, sizeof(*r->moves));
	mark(r, 0);
	mark(r, coll_chunks_of(r->s, origin, dest));
	for (int i = 0; i < r->n_moves; i++) {
		const struct coll_xfer *t = &x[r->order[r->next + i]];

		/* r->order has room for what is fetched beyond its end. */
		__builtin_prefetch(&x[r->order[r->next + i + FETCH_AHEAD]]);
		mark(r, t->first);
		mark(r, t->last + 1);
	}
	number_classes(r);
	for (int i = 0; i < r->n_moves; i++) {
		const struct coll_xfer *t = &x[r->order[r->next + i]];

		r->moves[i] = (struct coll_move){
			t->step, t->arc, arcs[t->arc].src, arcs[t->arc].dst,
			r->class_at[t->first], r->class_at[t->last + 1] - 1,
			t->dest, t->op, t->kept,
		};
	}
	r->next = end;
}

/* The end of the step that begins at move i. */
static int step_end(const struct coll_replay *r, int i)
{
	int step = r->moves[i].step;

	while (i < r->n_moves && r->moves[i].step == step) {
		i++;
	}
	return i;
}

/* ---- copies: all-gather, broadcast, all-to-all ---- */

/* Classes from..to as bits of the block that begins at class `base`. */
static uint64_t block_mask(int from, int to, int base)
{
	int lo = from > base ? from - base : 0;
	int hi = to - base < 63 ? to - base : 63;

	if (hi < lo || lo > 63) {
		return 0;
	}
	return (~UINT64_C(0) >> (63 - hi)) & (~UINT64_C(0) << lo);
}

/* Moves i..end are one step: all must hold what they send; in all-to-all
 * what is sent leaves its sender. Then all arrive. */
static int copy_step(struct coll_replay *r, int i, int end, int base, struct err *err)
{
	bool moving = r->s->kind == COLL_ALLTOALL;
	uint64_t bits, bad;

	for (int k = i; k < end; k++) {
		const struct coll_move *m = &r->moves[k];

		bits = block_mask(m->from, m->to, base);
		bad = bits & ~r->have[m->src];
		if (bad) {
			return fault(r, m, base + __builtin_ctzll(bad), err,
				     "sent before it is held");
		}
		r->have[m->src] &= moving ? ~bits : ~UINT64_C(0);
	}
	for (int k = i; k < end; k++) {
		const struct coll_move *m = &r->moves[k];

		bits = block_mask(m->from, m->to, base);
		bad = bits & r->have[m->dst];
		if (bad) {
			return fault(r, m, base + __builtin_ctzll(bad), err, "delivered twice");
		}
		r->have[m->dst] |= bits;
	}
	return 0;
}

static int missing(const struct coll_replay *r, int rank, int class, struct err *err)
{
	return err_set(err, WEFT_EVERIFY, "%s does not arrive at rank %d",
		       chunk_name(r, class).text, rank);
}

/* One block of up to 64 classes. In all-to-all a chunk is in one place only,
 * so when all are at their destination `have` is zero elsewhere. */
static int copy_block(struct coll_replay *r, int holder, int base, struct err *err)
{
	uint64_t full = block_mask(0, r->n_classes - 1, base);
	int lo = r->lo, hi = r->hi, rc = 0;

	r->have[holder] = full;
	for (int i = 0, end; i < r->n_moves && !rc; i = end) {
		end = step_end(r, i);
		rc = copy_step(r, i, end, base, err);
	}
	for (int v = lo; v < hi && !rc; v++) {
		if (r->have[v] != full) {
			rc = missing(r, v, base + __builtin_ctzll(full & ~r->have[v]), err);
		}
		r->have[v] = 0;
	}
	/* Others may hold copies of what only some want. */
	if (hi - lo < r->n && r->s->kind != COLL_ALLTOALL) {
		memset(r->have, 0, (size_t)r->n * sizeof(*r->have));
	}
	return rc;
}

static int copy_shard(struct coll_replay *r, struct err *err)
{
	enum coll_kind kind = r->s->kind;
	int holder = kind == COLL_BROADCAST || kind == COLL_SCATTER ? r->s->root : r->origin;
	int rc = 0;

	for (int base = 0; base < r->n_classes && !rc; base += 64) {
		rc = copy_block(r, holder, base, err);
	}
	return rc;
}

/* ---- sums: reduce-scatter, all-reduce ---- */

static uint64_t *row(const struct coll_replay *r, uint64_t *rows, int node)
{
	return rows + (size_t)node * r->words;
}

/* Keeps what the senders among moves i..end hold now, where it is about to
 * change in this step. A count of 1 means the rank's own contribution and
 * a full count all of them: neither has a row. */
static void keep_old(struct coll_replay *r, int i, int end, int class)
{
	r->stamp++;
	for (int k = i; k < end; k++) {
		if (coll_covers(&r->moves[k], class)) {
			r->arrives[r->moves[k].dst] = r->stamp;
		}
	}
	for (int k = i; k < end; k++) {
		int u = r->moves[k].src;

		r->count_old[u] = r->count[u];
		if (coll_covers(&r->moves[k], class) && r->moves[k].op != COLL_OP_FORWARD &&
		    r->arrives[u] == r->stamp && r->count[u] > 1 &&
		    r->count[u] < r->n) {
			memcpy(row(r, r->sum_old, u), row(r, r->sum, u),
			       r->words * sizeof(*r->sum));
		}
	}
}

/* Adds one rank to a node's sum; false when it is there already. */
static bool add_one(struct coll_replay *r, int node, int rank)
{
	uint64_t bit = UINT64_C(1) << (rank % 64);
	uint64_t *to = &row(r, r->sum, node)[rank / 64];
	bool fresh = !(*to & bit);

	*to |= bit;
	return fresh;
}

/* Adds n contributions to the sum of dst: all of them, or those in the row `from`, or that
 * of `rank` alone; false when some are there already. */
static bool add_row(struct coll_replay *r, int dst, const uint64_t *from, int n, int rank)
{
	uint64_t *to = row(r, r->sum, dst), common = 0;

	if (n == r->n || r->count[dst] == r->n) {
		return false;
	}
	if (r->count[dst] == 1) {
		memset(to, 0, r->words * sizeof(*to));
		add_one(r, dst, dst);
	}
	r->count[dst] += n;
	if (n == 1) {
		return add_one(r, dst, rank);
	}
	for (size_t w = 0; w < r->words; w++) {
		common |= to[w] & from[w];
		to[w] |= from[w];
	}
	return common == 0;
}

/* The contributions of a node as the step began. */
static const uint64_t *old_row(const struct coll_replay *r, int node)
{
	return row(r, r->arrives[node] == r->stamp ? r->sum_old : r->sum, node);
}

static bool add_sum(struct coll_replay *r, int src, int dst)
{
	return add_row(r, dst, old_row(r, src), r->count_old[src], src);
}

/* ---- sums that are forwarded ---- */

/* A node sends its sum: what others got of it before is out of date if it changed. */
static void send_sum(struct coll_replay *r, int node, int to)
{
	struct coll_sent *sent = &r->sent[node];

	if (sent->changed) {
		*sent = (struct coll_sent){ r->count_old[node], false };
		if (sent->count > 1 && sent->count < r->n) {
			memcpy(row(r, r->sent_sum, node), old_row(r, node),
			       r->words * sizeof(*r->sum));
		}
		memset(row(r, r->holders, node), 0, r->words * sizeof(*r->holders));
	}
	row(r, r->holders, node)[to / 64] |= UINT64_C(1) << (to % 64);
}

/* Why the tail of m does not have what it forwards. */
static int forward_fault(const struct coll_replay *r, const struct coll_move *m, int class,
			 struct err *err)
{
	bool sent = false, came = false;
	char what[96];

	for (int k = 0; r->moves[k].step < m->step; k++) {
		const struct coll_move *b = &r->moves[k];
		bool first = b->op == COLL_OP_REDUCE && b->src == m->of;
		bool again = b->op == COLL_OP_FORWARD && b->of == m->of;

		sent |= coll_covers(b, class) && first;
		came |= coll_covers(b, class) && (first || again) && b->dst == m->src;
	}
	snprintf(what, sizeof(what), "the sum of rank %d %s", m->of,
		 came   ? "has changed since it came"
		 : sent ? "is forwarded before it has come"
			: "is forwarded, which has not sent it");
	return fault(r, m, class, err, what);
}

/* Whether a node has the sum that rank `of` sent last. */
static bool has_sent(const struct coll_replay *r, int node, int of)
{
	return r->sent[of].count > 0 && (row(r, r->holders, of)[node / 64] >> (node % 64) & 1);
}

/* Sums go on from all that have them as the step begins. */
static int forward_sums(struct coll_replay *r, int i, int end, int class, struct err *err)
{
	for (int k = i; k < end; k++) {
		const struct coll_move *m = &r->moves[k];

		if (m->op == COLL_OP_FORWARD && coll_covers(m, class) &&
		    !has_sent(r, m->src, m->of)) {
			return forward_fault(r, m, class, err);
		}
	}
	for (int k = i; k < end; k++) {
		const struct coll_move *m = &r->moves[k];

		if (m->op != COLL_OP_FORWARD || !coll_covers(m, class)) {
			continue;
		}
		if (!add_row(r, m->dst, row(r, r->sent_sum, m->of), r->sent[m->of].count, m->of)) {
			return fault(r, m, class, err, "a contribution is summed twice");
		}
		row(r, r->holders, m->of)[m->dst / 64] |= UINT64_C(1) << (m->dst % 64);
	}
	return 0;
}

/* What is sent in the step may be forwarded from the next on: after forward_sums, which may
 * still bring what was sent before. */
static void send_sums(struct coll_replay *r, int i, int end, int class)
{
	for (int k = i; k < end; k++) {
		const struct coll_move *m = &r->moves[k];

		if (m->op == COLL_OP_REDUCE && coll_covers(m, class)) {
			send_sum(r, m->src, m->dst);
		}
	}
	for (int k = i; k < end; k++) {
		r->sent[r->moves[k].dst].changed |= coll_covers(&r->moves[k], class);
	}
}

/* ---- sums, a step after the other ---- */

/* Copies go first: a sum that arrives beside a copy counts twice whichever
 * is the faster. */
static int sum_step(struct coll_replay *r, int i, int end, int class, struct err *err)
{
	int rc;

	keep_old(r, i, end, class);
	for (int k = i; k < end; k++) {
		const struct coll_move *m = &r->moves[k];

		if (m->op != COLL_OP_COPY || !coll_covers(m, class)) {
			continue;
		}
		if (r->count_old[m->src] != r->n) {
			return fault(r, m, class, err, "copy of an incomplete sum");
		}
		if (r->count[m->dst] == r->n) {
			return fault(r, m, class, err, "delivered twice");
		}
		r->count[m->dst] = r->n;
	}
	if (r->sent) {
		rc = forward_sums(r, i, end, class, err);
		if (rc) {
			return rc;
		}
		send_sums(r, i, end, class);
	}
	for (int k = i; k < end; k++) {
		const struct coll_move *m = &r->moves[k];

		if (m->op == COLL_OP_REDUCE && coll_covers(m, class) &&
		    !add_sum(r, m->src, m->dst)) {
			return fault(r, m, class, err, "a contribution is summed twice");
		}
	}
	return 0;
}

/* Names the first rank whose contribution a node lacks. */
static int incomplete(struct coll_replay *r, int node, int class, struct err *err)
{
	const uint64_t *have = row(r, r->sum, node);
	int v = 0;

	if (r->count[node] == 1) {
		v = node == 0;
	} else {
		while (have[v / 64] >> (v % 64) & 1) {
			v++;
		}
	}
	return err_set(err, WEFT_EVERIFY,
		       "%s: the sum at rank %d has %d of %d contributions: "
		       "that of rank %d does not arrive",
		       chunk_name(r, class).text, node, r->count[node], r->n,
		       v);
}

static int replay_sums(struct coll_replay *r, int class, struct err *err)
{
	int rc = 0;

	for (int v = 0; v < r->n; v++) {
		r->count[v] = 1;
		if (r->sent) {
			r->sent[v] = (struct coll_sent){ 0, true };
		}
	}
	for (int i = 0, end; i < r->n_moves && !rc; i = end) {
		end = step_end(r, i);
		rc = sum_step(r, i, end, class, err);
	}
	for (int v = r->lo; v < r->hi && !rc; v++) {
		if (r->count[v] != r->n) {
			rc = incomplete(r, v, class, err);
		}
	}
	return rc;
}

/* Moves by the class that they begin with, so that those of a class need not be looked for. */
static void list_moves(struct coll_replay *r)
{
	memset(r->begin, 0, ((size_t)r->n_classes + 2) * sizeof(*r->begin));
	vec_reserve(&r->begins, r->n_moves);
	for (int i = 0; i < r->n_moves; i++) {
		r->begin[r->moves[i].from + 2]++;
	}
	for (int c = 0; c < r->n_classes; c++) {
		r->begin[c + 2] += r->begin[c + 1];
	}
	for (int i = 0; i < r->n_moves; i++) {
		r->begins.v[r->begin[r->moves[i].from + 1]++] = i;
	}
	r->now.n = 0;
}

/* The moves of the next class: of those of the one before that cover it, too, and those that begin
 * with it. Merged from the end. */
static void pick_moves(struct coll_replay *r, int class)
{
	int first = r->begin[class], k = r->begin[class + 1], kept = 0, at;
	int32_t *v;

	vec_reserve(&r->now, k - first);
	v = r->now.v;
	for (size_t i = 0; i < r->now.n; i++) {
		if (r->moves[v[i]].to >= class) {
			v[kept++] = v[i];
		}
	}
	at = kept + k - first;
	r->now.n = (size_t)at;
	while (k > first) {
		v[--at] = kept > 0 && v[kept - 1] > r->begins.v[k - 1] ? v[--kept]
									 : r->begins.v[--k];
	}
}

/* Every rank but one sends its sum once, after all that it gets: that is a
 * tree, and in its root every contribution arrives once. Returns the root, -1
 * when this is no such tree. */
static int sum_tree(struct coll_replay *r)
{
	int sent = 0, root = 0;

	for (int v = 0; v < r->n; v++) {
		r->leaves[v] = (struct coll_sum_node){ NEVER, -1, NEVER };
	}
	for (size_t i = 0; i < r->now.n; i++) {
		const struct coll_move *m = &r->moves[r->now.v[i]];
		struct coll_sum_node *from = &r->leaves[m->src];
		struct coll_sum_node *to = &r->leaves[m->dst];

		if (m->op == COLL_OP_COPY) {
			continue;
		}
		if (m->op == COLL_OP_FORWARD || from->sent != NEVER || from->arrived == m->step ||
		    to->sent != NEVER) {
			return -1;
		}
		from->sent = m->step;
		to->arrived = m->step;
		sent++;
	}
	while (root < r->n && r->leaves[root].sent != NEVER) {
		root++;
	}
	return sent == r->n - 1 ? root : -1;
}

/* What is sent of the sum of all is held, and comes once, and comes to every
 * rank that wants it. */
static bool sum_spreads(struct coll_replay *r, int root)
{
	r->leaves[root].whole = r->leaves[root].arrived;
	for (size_t i = 0; i < r->now.n; i++) {
		const struct coll_move *m = &r->moves[r->now.v[i]];
		struct coll_sum_node *to = &r->leaves[m->dst];

		if (m->op != COLL_OP_COPY) {
			continue;
		}
		if (r->leaves[m->src].whole >= m->step || to->whole != NEVER) {
			return false;
		}
		to->whole = m->step;
	}
	for (int v = r->lo; v < r->hi; v++) {
		if (r->leaves[v].whole == NEVER) {
			return false;
		}
	}
	return true;
}

static int merged_class(struct coll_replay *r, int class, struct err *err)
{
	struct coll_merge_fault f;
	int rc = coll_replay_merged(r->n, r->moves, r->n_moves, class, &f);

	if (rc && f.at) {
		return fault(r, f.at, class, err, f.what);
	}
	return rc ? err_set(err, rc, "%s: the sum at rank %d %s", chunk_name(r, class).text,
			    f.at_rank, f.what) : 0;
}

/* Trees are proven without a set of contributions for every node. Whatever is
 * none is replayed with these, which also names the fault. */
static int sum_class(struct coll_replay *r, int class, struct err *err)
{
	int root;

	if (r->s->merges) {
		return merged_class(r, class, err);
	}
	pick_moves(r, class);
	root = sum_tree(r);
	return root >= 0 && sum_spreads(r, root)
		       ? 0 : replay_sums(r, class, err);
}

static int sum_shard(struct coll_replay *r, struct err *err)
{
	int rc = 0;

	list_moves(r);
	for (int c = 0; c < r->n_classes && !rc; c++) {
		rc = sum_class(r, c, err);
	}
	return rc;
}

/* ---- the whole ---- */

/* What needs no replay: no transfer on a self-loop, and only the operations
 * that the collective knows. */
static int check_xfers(const struct coll_sched *s, struct err *err)
{
	const struct topo_arc *arcs = topo_arcs(s->topo);

	for (size_t i = 0; i < s->xfers.n; i++) {
		const struct coll_xfer *x = &s->xfers.v[i];
		const struct topo_arc *a = &arcs[x->arc];
		const char *what;

		if (a->src == a->dst && x->kept <= s->ranks) {
			what = "a self-loop carries nothing";
		} else if (x->op == COLL_OP_FORWARD && x->dest == a->src && !s->merges) {
			what = "a rank forwards the sums of others, not its own";
		} else if (x->op == COLL_OP_REDUCE && !coll_is_sum(s->kind)) {
			what = "this collective does not reduce";
		} else if (s->kind == COLL_ALLTOALL && x->origin == x->dest) {
			what = "the shard is at its destination already";
		} else {
			continue;
		}
		return err_set(err, WEFT_EVERIFY,
			       "step %d: arc %d (%d -> %d): shard %d chunk "
			       "%d: %s", x->step, x->arc, a->src, a->dst,
			       x->origin, x->first, what);
	}
	return 0;
}

static int check_lights(const struct coll_sched *s, struct err *err)
{
	for (size_t i = 1; i < s->lights.n; i++) {
		const struct coll_light *l = &s->lights.v[i], *k = l - 1;

		if (l->step == k->step && l->arc == k->arc && l->dir == k->dir &&
		    l->fibre == k->fibre && l->channel == k->channel) {
			return err_set(err, WEFT_EVERIFY,
				       "step %d: arc %d: light on channel %d "
				       "of fibre %d, direction %d, is counted "
				       "twice", l->step, l->arc, l->channel,
				       l->fibre, l->dir);
		}
	}
	return 0;
}

/* Who wants the shard at hand. */
static void set_wanted(struct coll_replay *r, int origin, int dest)
{
	const struct coll_sched *s = r->s;
	int to = dest;

	switch (s->kind) {
	case COLL_ALLGATHER:
	case COLL_ALLREDUCE:
	case COLL_BROADCAST:
		r->lo = 0;
		r->hi = s->ranks;
		return;
	case COLL_REDUCE_SCATTER:
	case COLL_SCATTER:
		to = origin;
		break;
	case COLL_REDUCE:
	case COLL_GATHER:
		to = s->root;
		break;
	case COLL_ALLTOALL:
		break;
	}
	r->lo = to;
	r->hi = to + 1;
}

/* Replays shard (origin, dest); rank to itself in all-to-all has nothing to
 * do. */
static int replay_shard(struct coll_replay *r, int origin, int dest, struct err *err)
{
	if (origin == dest || coll_chunks_of(r->s, origin, dest) == 0) {
		return 0;
	}
	set_wanted(r, origin, dest);
	load_shard(r, origin, dest);
	return coll_is_sum(r->s->kind) ? sum_shard(r, err) : copy_shard(r, err);
}

/* Shards of consecutive origins, on one thread; its first error. */
struct coll_replay_part {
	int rc;
	struct err err;
};

struct coll_replay_all {
	const struct coll_sched *s;
	uint32_t *order;
	int n_parts;
	struct coll_replay_part parts[PARALLEL_MAX];
};

/* The first transfer, in the order of shards, of an origin from `origin` on. */
static int64_t first_of(const struct coll_replay_all *w, int origin)
{
	const struct coll_xfer *x = w->s->xfers.v;
	int64_t lo = 0, hi = (int64_t)w->s->xfers.n;

	while (lo < hi) {
		int64_t mid = lo + (hi - lo) / 2;

		if (x[w->order[mid]].origin < origin) {
			lo = mid + 1;
		} else {
			hi = mid;
		}
	}
	return lo;
}

static void replay_part(void *arg, int i)
{
	struct coll_replay_all *w = arg;
	struct coll_replay_part *p = &w->parts[i];
	struct coll_replay r;
	bool pairs = w->s->kind == COLL_ALLTOALL;
	int lo = pairs ? 0 : COLL_NO_DEST, hi = pairs ? w->s->ranks : 0;
	int from, to;

	parallel_cut(w->s->ranks, w->n_parts, i, &from, &to);
	replay_init(&r, w->s, w->order);
	r.next = first_of(w, from);
	for (int origin = from; origin < to && !p->rc; origin++) {
		if (!coll_is_first(w->s, origin)) {
			continue;
		}
		for (int dest = lo; dest < hi && !p->rc; dest++) {
			p->rc = replay_shard(&r, origin, dest, &p->err);
		}
	}
	replay_fini(&r);
}

/* Threads gain nothing on small schedules; sums of very many ranks take too
 * much memory to have several at a time. */
static int count_parts(const struct coll_sched *s)
{
	bool large = s->xfers.n >= SHARED_XFERS && s->ranks >= PARALLEL_MAX;

	return large && !(coll_is_sum(s->kind) && s->ranks > MAX_SHARED_RANKS)
		       ? parallel_width() : 1;
}

/* The fault reported is that of the first shard, on any number of threads. */
static int replay_all(const struct coll_sched *s, struct err *err)
{
	struct coll_replay_all w = { .s = s, .n_parts = count_parts(s) };
	int rc = 0;

	w.order = x_new(s->xfers.n + FETCH_AHEAD, sizeof(*w.order));
	sort_by_shard(s, w.order);
	parallel_run(w.n_parts, replay_part, &w);
	for (int i = 0; i < w.n_parts && !rc; i++) {
		rc = w.parts[i].rc;
		if (rc && err) {
			*err = w.parts[i].err;
		}
	}
	free(w.order);
	return rc;
}

void coll_report_init(struct coll_report *r)
{
	memset(r, 0, sizeof(*r));
	mpq_inits(r->shard_times, r->bandwidth_factor, r->bandwidth_bound, NULL);
}

void coll_report_fini(struct coll_report *r)
{
	mpq_clears(r->shard_times, r->bandwidth_factor, r->bandwidth_bound, NULL);
}

int coll_verify(const struct coll_sched *s, struct coll_report *report, struct err *err)
{
	struct coll_report own;
	struct coll_report *r = report ? report : &own;
	int rc;

	assert(s->finished);
	if (s->part) {
		return err_set(err, WEFT_EVERIFY, "only the part of rank %d: "
			       "the whole schedule can be replayed",
			       coll_part(s));
	}
	coll_report_init(&own);
	own.has_bound = true;	/* not asked for */
	rc = check_xfers(s, err);
	if (!rc) {
		rc = check_lights(s, err);
	}
	if (!rc && !s->proven) {
		rc = replay_all(s, err);
	}
	if (!rc) {
		rc = coll_measure(s, r, err);
	}
	coll_report_fini(&own);
	return rc;
}

int coll_prove(struct coll_sched *s, struct coll_report *report, struct err *err)
{
	int rc = coll_verify(s, report, err);

	s->proven = rc == 0;
	return rc;
}
