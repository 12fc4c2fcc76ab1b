/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of the room share. Include after cmocka.h. */
#ifndef WEFT_TESTS_UNIT_SCHEDULE_COMMON_H
#define WEFT_TESTS_UNIT_SCHEDULE_COMMON_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collective/bfb/bfb.h"
#include "collective/schedule/schedule.h"
#include "lib/base/number/rat.h"

static inline void must(int rc, const struct err *err)
{
	char text[ERR_MSG_MAX];

	if (rc) {
		fail_msg("%s: %s", err_name(rc),
			 err_str(err, text, sizeof(text)));
	}
}

static inline struct topo *graph_of(const char *expr)
{
	struct err err = { 0 };
	struct topo *t;

	must(topo_parse(expr, &t, NULL, &err), &err);
	return t;
}

/* Of an expression, or "X less U-V": without the links between two nodes. */
static inline struct topo *graph_less(const char *text)
{
	const char *less = strstr(text, " less ");
	char *expr = less ? strndup(text, (size_t)(less - text)) : strdup(text);
	struct topo *whole = graph_of(expr), *t;
	struct err err = { 0 };
	int u = -1, v = -1;

	free(expr);
	if (!less) {
		return whole;
	}
	assert_int_equal(sscanf(less, " less %d-%d", &u, &v), 2);
	must(topo_new(topo_n(whole), &t, &err), &err);
	for (int i = 0; i < topo_m(whole); i++) {
		const struct topo_arc *a = topo_arc(whole, i);

		if (!((a->src == u && a->dst == v) || (a->src == v && a->dst == u))) {
			must(topo_add_arc(t, a->src, a->dst, a->cap, a->latency_ns, &err), &err);
		}
	}
	assert_true(topo_find_arc(whole, u, v) >= 0);
	topo_free(whole);
	topo_freeze(t);
	return t;
}

/* A frozen digraph of unit arcs. */
static inline struct topo *graph_from(int n, int m, const int (*arcs)[2])
{
	struct err err = { 0 };
	struct topo *t;

	must(topo_new(n, &t, &err), &err);
	for (int i = 0; i < m; i++) {
		must(topo_add_arc(t, arcs[i][0], arcs[i][1], 1, 0, &err),
		     &err);
	}
	topo_freeze(t);
	return t;
}

static inline struct coll_sched *empty(enum coll_kind kind, const char *expr,
				       int chunks)
{
	struct err err = { 0 };
	struct coll_sched *s;

	must(coll_new(kind, graph_of(expr), chunks, 0, 0, &s, &err), &err);
	return s;
}

static inline struct coll_sched *bfb(enum coll_kind kind, const char *expr)
{
	struct err err = { 0 };
	struct coll_sched *s;

	must(coll_bfb(kind, graph_of(expr), &s, &err), &err);
	return s;
}

/* Adds chunks first..last of origin's shard over the first arc u -> v. */
static inline void send_part(struct coll_sched *s, int step, int u, int v,
			     int origin, int first, int last, enum coll_op op)
{
	struct err err = { 0 };
	struct coll_xfer x = {
		step, topo_find_arc(coll_topo(s), u, v), origin, COLL_NO_DEST,
		first, last, op, 0,
	};

	must(coll_add(s, &x, &err), &err);
}

static inline void send_to(struct coll_sched *s, int step, int u, int v,
			   int origin, int dest)
{
	struct err err = { 0 };
	struct coll_xfer x = {
		step, topo_find_arc(coll_topo(s), u, v), origin, dest, 0, 0,
		COLL_OP_COPY, 0,
	};

	must(coll_add(s, &x, &err), &err);
}

static inline void finish(struct coll_sched *s)
{
	struct err err = { 0 };

	must(coll_finish(s, &err), &err);
}

/* An empty schedule over an equal digraph, arc for arc. */
static inline struct coll_sched *blank_copy(const struct coll_sched *s)
{
	const struct topo *t = coll_topo(s);
	struct err err = { 0 };
	struct coll_sched *out;
	struct topo *copy;

	must(topo_new(topo_n(t), &copy, &err), &err);
	for (int i = 0; i < topo_m(t); i++) {
		const struct topo_arc *a = topo_arc(t, i);

		must(topo_add_arc(copy, a->src, a->dst, a->cap, a->latency_ns,
				  &err), &err);
	}
	topo_freeze(copy);
	must(coll_new(coll_kind_of(s), copy, coll_chunks(s), coll_ports(s),
		      coll_root(s), &out, &err), &err);
	return out;
}

/* The schedule is refused with this in the message. */
static inline void assert_refused(struct coll_sched *s, const char *what)
{
	struct err err = { 0 };

	finish(s);
	assert_int_equal(coll_verify(s, NULL, &err), WEFT_EVERIFY);
	if (!strstr(err.msg, what)) {
		fail_msg("\"%s\" is not in: %s", what, err.msg);
	}
}

/* The schedule is right; its T_B in M/B and the bound as text. */
static inline void assert_factor(const struct coll_sched *s, const char *tb,
				 const char *bound)
{
	struct err err = { 0 };
	struct coll_report r;
	char text[64];

	coll_report_init(&r);
	must(coll_verify(s, &r, &err), &err);
	assert_string_equal(rat_str(r.bandwidth_factor, text, sizeof(text)),
			    tb);
	assert_string_equal(rat_str(r.bandwidth_bound, text, sizeof(text)),
			    bound);
	assert_int_equal(r.bandwidth_optimal, strcmp(tb, bound) == 0);
	coll_report_fini(&r);
}

/* Every transfer written out. */
static inline struct coll_sched *unfolded(const struct coll_sched *s)
{
	struct coll_sched *out;
	struct err err = { 0 };

	must(coll_unfold(s, &out, &err), &err);
	return out;
}

/* Both without a group. */
static inline void assert_same_flat(const struct coll_sched *a, const struct coll_sched *b)
{
	const struct topo *ta = coll_topo(a), *tb = coll_topo(b);
	const struct coll_light *la, *lb;
	const struct coll_xfer *xa, *xb;
	int64_t na, nb;

	assert_int_equal(coll_kind_of(a), coll_kind_of(b));
	assert_int_equal(coll_chunks(a), coll_chunks(b));
	assert_int_equal(coll_ports(a), coll_ports(b));
	assert_int_equal(coll_root(a), coll_root(b));
	assert_int_equal(coll_steps(a), coll_steps(b));
	assert_string_equal(coll_topo_name(a), coll_topo_name(b));
	assert_int_equal(topo_n(ta), topo_n(tb));
	assert_int_equal(topo_m(ta), topo_m(tb));
	for (int i = 0; i < topo_m(ta); i++) {
		const struct topo_arc *p = topo_arc(ta, i);
		const struct topo_arc *q = topo_arc(tb, i);

		assert_true(p->src == q->src && p->dst == q->dst &&
			    p->cap == q->cap &&
			    p->latency_ns == q->latency_ns);
	}
	xa = coll_xfers(a, &na);
	xb = coll_xfers(b, &nb);
	assert_int_equal(na, nb);
	for (int64_t i = 0; i < na; i++) {
		assert_true(xa[i].step == xb[i].step &&
			    xa[i].arc == xb[i].arc &&
			    xa[i].origin == xb[i].origin &&
			    xa[i].dest == xb[i].dest &&
			    xa[i].first == xb[i].first &&
			    xa[i].last == xb[i].last && xa[i].op == xb[i].op);
	}
	la = coll_lights(a, &na);
	lb = coll_lights(b, &nb);
	assert_int_equal(na, nb);
	for (int64_t i = 0; i < na; i++) {
		assert_true(la[i].step == lb[i].step &&
			    la[i].arc == lb[i].arc &&
			    la[i].channel == lb[i].channel &&
			    la[i].dir == lb[i].dir &&
			    la[i].fibre == lb[i].fibre &&
			    la[i].loss_mdb == lb[i].loss_mdb);
	}
}

static inline void assert_same(const struct coll_sched *a, const struct coll_sched *b)
{
	struct coll_sched *flat_a = unfolded(a), *flat_b = unfolded(b);

	assert_same_flat(flat_a, flat_b);
	coll_free(flat_a);
	coll_free(flat_b);
}

/* Both verify, with the same figures and times. */
static inline void assert_same_reports(const struct coll_sched *a, const struct coll_sched *b)
{
	const struct coll_cost cost = { .alpha_ns = 1000, .hop_ns = 70, .message_ns = 11,
					.link_bps = 12500000000, .size_bytes = 1234567 };
	struct coll_report ra, rb;
	struct err err = { 0 };
	int64_t ta, tb, ba, bb;

	coll_report_init(&ra);
	coll_report_init(&rb);
	must(coll_verify(a, &ra, &err), &err);
	must(coll_verify(b, &rb, &err), &err);
	assert_int_equal(ra.transfers, rb.transfers);
	assert_int_equal(ra.chunk_hops, rb.chunk_hops);
	assert_int_equal(ra.steps, rb.steps);
	assert_true(mpq_equal(ra.shard_times, rb.shard_times));
	assert_true(mpq_equal(ra.bandwidth_factor, rb.bandwidth_factor));
	assert_true(mpq_equal(ra.bandwidth_bound, rb.bandwidth_bound));
	must(coll_time(a, &ra, &cost, &ta, &ba, &err), &err);
	must(coll_time(b, &rb, &cost, &tb, &bb, &err), &err);
	assert_int_equal(ta, tb);
	assert_int_equal(ba, bb);
	assert_true(ba <= ta);
	coll_report_fini(&ra);
	coll_report_fini(&rb);
}

/* hop[v] = the arc into v on a shortest path from src. */
static inline void tree_of(const struct topo *t, int src, int32_t *hop, int32_t *dist)
{
	topo_bfs(t, src, dist);
	for (int a = 0; a < topo_m(t); a++) {
		const struct topo_arc *arc = topo_arc(t, a);

		if (dist[arc->dst] == dist[arc->src] + 1) {
			hop[arc->dst] = a;
		}
	}
}

/* Every shard along one shortest path, all hops as early as can be. */
static inline struct coll_sched *paths(enum coll_kind kind, const char *expr,
				       int chunks, int root)
{
	struct err err = { 0 };
	struct coll_sched *s;
	const struct topo *t;
	int32_t hop[128], dist[128];
	int n;

	must(coll_new(kind, graph_of(expr), chunks, 0, root, &s, &err), &err);
	t = coll_topo(s);
	n = topo_n(t);
	for (int o = 0; o < n; o++) {
		tree_of(t, kind == COLL_BROADCAST ? root : o, hop, dist);
		for (int d = 0; d < n; d++) {
			for (int v = d; dist[v] > 0;
			     v = topo_arc(t, hop[v])->src) {
				struct coll_xfer x = {
					dist[v] - 1, hop[v], o,
					kind == COLL_ALLTOALL ? d
							      : COLL_NO_DEST,
					0, chunks - 1, COLL_OP_COPY, 0 };

				must(coll_add(s, &x, &err), &err);
				if (kind == COLL_BROADCAST) {
					break;
				}
			}
		}
	}
	finish(s);
	must(coll_verify(s, NULL, &err), &err);
	return s;
}

/* An all-gather round four nodes in three steps, each over all four arcs; the
 * light of step k is on channel[k]. */
static inline struct coll_sched *round_of_four(const int channel[3])
{
	static const int arcs[][2] = { { 0, 1 }, { 1, 2 }, { 2, 3 }, { 3, 0 } };
	struct err err = { 0 };
	struct coll_sched *s;

	must(coll_new(COLL_ALLGATHER, graph_from(4, 4, arcs), 1, 0, 0, &s, &err), &err);
	for (int step = 0; step < 3; step++) {
		for (int u = 0; u < 4; u++) {
			struct coll_light l = { .step = step, .arc = u,
						.channel = (uint16_t)channel[step] };

			send_part(s, step, u, (u + 1) % 4, (u - step + 4) % 4, 0, 0, COLL_OP_COPY);
			must(coll_add_light(s, &l, &err), &err);
		}
	}
	finish(s);
	return s;
}

#endif
