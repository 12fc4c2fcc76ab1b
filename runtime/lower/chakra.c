/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sends and receives of ASTRA-sim's custom collectives; see chakra.h. Each transfer is a part of a
 * message of its sender and of one of its receiver. Sorted by rank, step, direction and peer, the
 * parts of a message lie together, and messages are numbered as they come. Of sums that are merged
 * on their way those that one arc brings under one number are sent once.
 */
#include <stdlib.h>

#include "chakra/chakra.pb-c.h"
#include "lib/base/alloc.h"
#include "lib/base/order.h"
#include "lib/base/vec.h"
#include "runtime/lower/chakra.h"

enum { NODE_SEND = 5, NODE_RECEIVE = 6 };

/* A transfer as one of its ranks sees it. */
struct chakra_part {
	int rank, step, peer;
	bool sends;
	int64_t shard;		/* of all-to-alls also for whom */
	int first, last;	/* chunks */
	int number;		/* of a sum: under which it is kept; sent: which it is, -1: the
				 * rank's own. Else -1 */
	int64_t merged;		/* parts that are one sum have the same; else of each its own */
	int node;		/* of the rank's trace */
};

struct chakra_writer {
	const struct coll_sched *s;
	int64_t bytes;
	VEC(struct chakra_part) parts;
	VEC(uint64_t) deps;
	int *seen;		/* [node of a rank] 1 + the last send that waits for it */
	int *sent;		/* [ranks] 1 + the node of a rank that sent to each last */
};

/* By rank, then messages in the order of steps. */
static int by_message(const void *a, const void *b)
{
	const struct chakra_part *p = a, *q = b;

	if (p->rank != q->rank) {
		return p->rank < q->rank ? -1 : 1;
	}
	if (p->step != q->step) {
		return p->step < q->step ? -1 : 1;
	}
	if (p->sends != q->sends) {
		return p->sends ? -1 : 1;
	}
	return p->peer < q->peer ? -1 : p->peer > q->peer;
}

/* Of a message, those together that are one sum. */
static int by_part(const void *a, const void *b)
{
	const struct chakra_part *p = a, *q = b;
	const int d = by_message(a, b);

	if (d) {
		return d;
	}
	if (p->merged != q->merged) {
		return p->merged < q->merged ? -1 : 1;
	}
	if (p->shard != q->shard) {
		return p->shard < q->shard ? -1 : 1;
	}
	return p->first < q->first ? -1 : p->first > q->first;
}

/* Receives by what they bring, the earliest first. */
ORDER_BY(by_shard, struct chakra_part, shard, node)

/* Both halves of a transfer, which is the i-th. */
static void take_part(struct chakra_writer *w, const struct coll_xfer *x, int64_t i)
{
	const int64_t ranks = coll_ranks(w->s);
	const struct topo_arc *a = topo_arc(coll_topo(w->s), x->arc);
	struct chakra_part p = { .rank = a->src, .step = x->step, .peer = a->dst, .sends = true,
				 .first = x->first, .last = x->last, .number = -1,
				 .shard = x->origin, .merged = -i - 1 };

	if (coll_kind_of(w->s) == COLL_ALLTOALL) {
		p.shard = x->origin * ranks + x->dest;
	}
	if (x->kept) {
		p.merged = (int64_t)x->arc << 16 | x->kept;
	}
	if (x->op == COLL_OP_FORWARD) {
		p.number = x->dest;
	}
	vec_push(&w->parts, p);
	p.rank = a->dst;
	p.peer = a->src;
	p.sends = false;
	if (x->kept) {
		p.number = coll_is_whole(coll_ranks(w->s), x->kept)
				   ? -2 : coll_kept_number(coll_ranks(w->s), x->kept);
	} else if (x->op == COLL_OP_REDUCE) {
		p.number = a->src;
	}
	vec_push(&w->parts, p);
}

static int take_parts(struct chakra_writer *w, struct err *err)
{
	const int ranks = coll_ranks(w->s);
	int64_t n;
	const struct coll_xfer *x = coll_xfers(w->s, &n);

	for (int64_t i = 0; i < n; i++) {
		const struct topo_arc *a = topo_arc(coll_topo(w->s), x[i].arc);

		if (a->src == a->dst) {
			return err_set(err, WEFT_EUNSUPPORTED, "traces of sums over self-loops: "
				       "not supported");
		}
		if (a->src >= ranks || a->dst >= ranks) {
			return err_set(err, WEFT_EUNSUPPORTED, "chakra: node %d holds data and is "
				       "no rank", a->src >= ranks ? a->src : a->dst);
		}
		take_part(w, &x[i], i);
	}
	qsort(w->parts.v, w->parts.n, sizeof(*w->parts.v), by_part);
	return 0;
}

/* Nodes of these parts, of one rank: a message each. Returns how many. */
static int number_nodes(struct chakra_part *p, size_t n)
{
	int node = -1;

	for (size_t i = 0; i < n; i++) {
		node += i == 0 || by_message(&p[i - 1], &p[i]) != 0;
		p[i].node = node;
	}
	return node + 1;
}

/* Adds the receives that a part of a send waits for. */
static void wait_for(struct chakra_writer *w, const struct chakra_part *p,
		     const struct chakra_part *got, size_t n)
{
	size_t low = 0, high = n;

	while (low < high) {
		const size_t mid = (low + high) / 2;

		*(got[mid].shard < p->shard ? &low : &high) = mid + (got[mid].shard < p->shard);
	}
	for (; low < n && got[low].shard == p->shard && got[low].step < p->step; low++) {
		const int node = got[low].node;

		if (got[low].first <= p->last && got[low].last >= p->first &&
		    (p->number < 0 || p->number == got[low].number) &&
		    w->seen[node] != p->node + 1) {
			w->seen[node] = p->node + 1;
			vec_push(&w->deps, (uint64_t)node);
		}
	}
}

/* Messages of one link go one after the other, in the order of steps: those that wait for nothing
 * would else be sent in any. */
static void wait_for_link(struct chakra_writer *w, const struct chakra_part *p)
{
	if (w->sent[p->peer]) {
		vec_push(&w->deps, (uint64_t)w->sent[p->peer] - 1);
	}
	w->sent[p->peer] = p->node + 1;
}

static void put_message(const ProtobufCMessage *m, struct buf *out)
{
	size_t len = protobuf_c_message_get_packed_size(m), rest = len;
	uint8_t *data = x_new(len + 1, 1);

	for (; rest > 127; rest >>= 7) {
		buf_char(out, (char)(rest | 128));
	}
	buf_char(out, (char)rest);
	protobuf_c_message_pack(m, data);
	buf_add(out, data, len);
	free(data);
}

static void put_node(struct chakra_writer *w, const struct chakra_part *p, int64_t chunks,
		     struct buf *out)
{
	const int64_t shards = coll_is_alike(w->s) ? 1 : coll_ranks(w->s);
	const int64_t all = shards * coll_chunks(w->s);
	const int type = p->sends ? NODE_SEND : NODE_RECEIVE;
	Chakra__Attribute attrs[4], *list[4];
	Chakra__Node node = CHAKRA__NODE__INIT;

	for (int i = 0; i < 4; i++) {
		chakra__attribute__init(&attrs[i]);
		attrs[i].value_case = i < 2 ? CHAKRA__ATTRIBUTE__VALUE_INT64_VAL
					    : CHAKRA__ATTRIBUTE__VALUE_INT32_VAL;
		list[i] = &attrs[i];
	}
	attrs[0].name = "comm_type";
	attrs[0].int64_val = type;
	attrs[1].name = "comm_size";
	attrs[1].int64_val = (int64_t)(((__int128)chunks * w->bytes + all - 1) / all);
	attrs[2].name = p->sends ? "comm_dst" : "comm_src";
	attrs[2].int32_val = p->peer;
	attrs[3].name = "comm_tag";
	attrs[3].int32_val = p->step;
	node.id = (uint64_t)p->node;
	node.name = p->sends ? "send" : "receive";
	node.type = type;
	node.n_data_deps = w->deps.n;
	node.data_deps = w->deps.v;
	node.n_attr = 4;
	node.attr = list;
	put_message(&node.base, out);
}

/* Chunks that part `i` of a message has beyond the parts before it. */
static int64_t count_chunks(const struct chakra_part *p, size_t i, int *until)
{
	const bool joined = i > 0 && p[i - 1].node == p[i].node && p[i].merged == p[i - 1].merged &&
			    p[i].shard == p[i - 1].shard;
	const int from = joined && *until > p[i].first ? *until : p[i].first;
	const int end = p[i].last + 1 > from ? p[i].last + 1 : from;

	*until = joined && *until > end ? *until : end;
	return end - from;
}

static void write_rank(struct chakra_writer *w, struct chakra_part *p, size_t n, struct buf *out)
{
	Chakra__GlobalMetadata head = CHAKRA__GLOBAL_METADATA__INIT;
	const int nodes = number_nodes(p, n);
	VEC(struct chakra_part) got = { 0 };
	int until = 0;

	for (size_t i = 0; i < n; i++) {
		if (!p[i].sends) {
			vec_push(&got, p[i]);
		}
	}
	if (got.n > 0) {
		qsort(got.v, got.n, sizeof(*got.v), by_shard);
	}
	w->seen = x_new((size_t)nodes + 1, sizeof(*w->seen));
	w->sent = x_new((size_t)coll_ranks(w->s), sizeof(*w->sent));
	head.version = "0.0.4";
	put_message(&head.base, out);
	for (size_t i = 0, end; i < n; i = end) {
		int64_t chunks = 0;

		w->deps.n = 0;
		if (p[i].sends) {
			wait_for_link(w, &p[i]);
		}
		for (end = i; end < n && p[end].node == p[i].node; end++) {
			chunks += count_chunks(p, end, &until);
			if (p[end].sends) {
				wait_for(w, &p[end], got.v, got.n);
			}
		}
		put_node(w, &p[i], chunks, out);
	}
	free(w->seen);
	free(w->sent);
	vec_fini(&got);
}

int lower_chakra(const struct coll_sched *s, int64_t bytes, struct buf *out, struct err *err)
{
	struct chakra_writer w = { .bytes = bytes };
	struct coll_sched *flat = NULL;
	int r = coll_refuse_light_changes(s, "traces", err);

	w.s = s;
	if (r || (r = coll_refuse_switches(s, "traces", err)) ||
	    (!coll_is_alike(s) && (r = coll_flat(s, &w.s, &flat, err)))) {
		return r;
	}
	r = take_parts(&w, err);
	for (size_t rank = 0, first = 0, end; rank < (size_t)coll_ranks(s) && r == 0; rank++) {
		for (end = first; end < w.parts.n && w.parts.v[end].rank == (int)rank; end++) {
		}
		write_rank(&w, w.parts.v + first, end - first, &out[rank]);
		first = end;
	}
	vec_fini(&w.parts);
	vec_fini(&w.deps);
	coll_free(flat);
	return r;
}
