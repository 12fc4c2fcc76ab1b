/* SPDX-License-Identifier: Apache-2.0 */
/* Times of embedded schedules made by hand: hops, messages and shared routes, and
 * what does not fit 64 bits. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/unit/schedule/common.h"

/* beta = 0.02 ns a byte */
#define LINK_BPS INT64_C(400000000000)

static int64_t time_of(struct coll_sched *s, struct coll_cost c, int64_t *bound)
{
	struct coll_report r;
	struct err err = { 0 };
	int64_t ns;

	c.link_bps = c.link_bps ? c.link_bps : LINK_BPS;
	coll_report_init(&r);
	must(coll_verify(s, &r, &err), &err);
	must(coll_time(s, &r, &c, &ns, bound, &err), &err);
	coll_report_fini(&r);
	return ns;
}

static void assert_no_time(struct coll_sched *s, struct coll_cost c)
{
	struct coll_report r;
	struct err err = { 0 };
	int64_t ns;

	c.link_bps = LINK_BPS;
	coll_report_init(&r);
	must(coll_verify(s, &r, &err), &err);
	assert_int_equal(coll_time(s, &r, &c, &ns, NULL, &err), WEFT_ELIMIT);
	assert_non_null(strstr(err.msg, "does not fit 64 bits"));
	coll_report_fini(&r);
}

static void route(struct coll_sched *s, int u, int v, int weight, int n, const int *nodes)
{
	struct coll_arc_route r = { topo_find_arc(coll_topo(s), u, v), weight, NULL, n };
	struct err err = { 0 };
	int32_t hops[8];

	for (int i = 0; i < n; i++) {
		hops[i] = topo_find_arc(coll_physical(s), nodes[i], nodes[i + 1]);
	}
	r.hops = hops;
	must(coll_add_route(s, &r, &err), &err);
}

/* On a line 0 - 1 - 2, rank 0 sends its vector to both others at once: both
 * messages leave by the arc to 1. */
static struct coll_sched *line(void)
{
	static const int arcs[][2] = { { 0, 1 }, { 0, 2 } };
	struct err err = { 0 };
	struct coll_sched *s;

	must(coll_new(COLL_BROADCAST, graph_from(3, 2, arcs), 1, 0, 0, &s, &err), &err);
	must(coll_set_physical(s, graph_of("Mesh(3)"), COLL_ROUTING_EXPLICIT, 0, &err), &err);
	route(s, 0, 1, 1, 1, (int[]){ 0, 1 });
	route(s, 0, 2, 1, 2, (int[]){ 0, 1, 2 });
	for (int shard = 0; shard < 3; shard++) {
		send_part(s, 0, 0, 1, shard, 0, 0, COLL_OP_COPY);
		send_part(s, 0, 0, 2, shard, 0, 0, COLL_OP_COPY);
	}
	finish(s);
	return s;
}

/* a_step + 2 a_hop + 2 o + 2 n beta */
static void test_line(void **state)
{
	struct coll_cost c = { .alpha_ns = 500, .hop_ns = 400, .message_ns = 70,
			       .size_bytes = 1000 };
	struct coll_sched *s = line();
	int64_t bound;

	(void)state;
	assert_int_equal(time_of(s, c, &bound), 500 + 2 * 400 + 2 * 70 + 2 * 20);
	/* The far rank's two hops; the vector once over either of the two arcs is less. */
	assert_int_equal(bound, 500 + 2 * 400 + 70);
	coll_free(s);
}

/* Two thirds of the data go the long way round: the load of that route is the
 * larger, and so are its hops. Two messages, but on arcs of their own. */
static void test_split(void **state)
{
	static const char text[] = "switch 2-3\n0 1\n0 2\n2 3 2 50\n3 1\n1 0\n";
	static const int arcs[][2] = { { 0, 1 }, { 1, 0 } };
	struct coll_cost c = { .alpha_ns = 500, .hop_ns = 400, .message_ns = 70,
			       .size_bytes = 6000 };
	struct coll_sched *s;
	struct topo *t;
	struct err err = { 0 };

	(void)state;
	must(topo_from_edges(text, strlen(text), &t, &err), &err);
	must(coll_new(COLL_ALLGATHER, graph_from(2, 2, arcs), 1, 0, 0, &s, &err), &err);
	must(coll_set_physical(s, t, COLL_ROUTING_EXPLICIT, 0, &err), &err);
	route(s, 0, 1, 1, 1, (int[]){ 0, 1 });
	route(s, 0, 1, 2, 3, (int[]){ 0, 2, 3, 1 });
	route(s, 1, 0, 1, 1, (int[]){ 1, 0 });
	send_part(s, 0, 0, 1, 0, 0, 0, COLL_OP_COPY);
	send_part(s, 0, 1, 0, 1, 0, 0, COLL_OP_COPY);
	finish(s);
	/* 0 to 1: 3 hops, 50 ns, 2000 bytes at 0.02 ns; 1 to 0: one hop and 3000 bytes. */
	assert_int_equal(time_of(s, c, NULL), 500 + 70 + 3 * 400 + 50 + 40);
	c.size_bytes = 600000;
	assert_int_equal(time_of(s, c, NULL), 500 + 70 + 400 + 6000);
	coll_free(s);
}

/* ---- the latency-optimal Swing (swing 3.1) on a ring of eight ---- */

/* pi(r, s), mirrored or not. */
static int partner(int r, int step, bool mirrored)
{
	static const int rho[] = { 1, -1, 3 };

	return (r + ((r % 2 == 0) != mirrored ? rho[step] : -rho[step]) + 8) % 8;
}

static void add_exchange(struct coll_sched *s, int u, int v)
{
	int by = (v - u + 8) % 8 <= 4 ? 1 : -1, n = 0, nodes[8] = { u };

	while (nodes[n] != v) {
		nodes[n + 1] = (nodes[n] + by + 8) % 8;
		n++;
	}
	route(s, u, v, 1, n, nodes);
}

/* The vector in two halves: one plain, one mirrored. */
static struct coll_sched *swing(void)
{
	struct err err = { 0 };
	struct coll_sched *s;
	struct topo *t;

	must(topo_new(8, &t, &err), &err);
	for (int r = 0; r < 8; r++) {
		for (int step = 0; step < 3; step += 2) {
			must(topo_add_arc(t, r, partner(r, step, false), 1, 0, &err), &err);
			must(topo_add_arc(t, r, partner(r, step, true), 1, 0, &err), &err);
		}
	}
	topo_freeze(t);
	must(coll_new(COLL_ALLREDUCE, t, 2, 0, 0, &s, &err), &err);
	must(coll_set_physical(s, graph_of("Ring(8)"), COLL_ROUTING_EXPLICIT, 0, &err), &err);
	for (int a = 0; a < topo_m(coll_topo(s)); a++) {
		const struct topo_arc *arc = topo_arc(coll_topo(s), a);

		add_exchange(s, arc->src, arc->dst);
	}
	for (int i = 0; i < 3 * 8 * 8 * 2; i++) {
		int step = i / 128, r = i / 16 % 8, shard = i / 2 % 8, half = i % 2;

		send_part(s, step, r, partner(r, step, half), shard, half, half, COLL_OP_REDUCE);
	}
	finish(s);
	return s;
}

/* Hops 1 + 1 + 3; loads n/2 (1 + 1 + 3); in the last step an arc carries three
 * messages, of which two, or one, begin there. */
static void test_swing(void **state)
{
	struct coll_cost c = { .alpha_ns = 500, .hop_ns = 400, .size_bytes = 1 << 20 };
	struct coll_sched *s = swing();

	(void)state;
	/* 2.5 * 2^20 * 0.02 = 52428.8 */
	assert_int_equal(time_of(s, c, NULL), 3 * 500 + 5 * 400 + 52429);
	c.message_ns = 70;
	assert_int_equal(time_of(s, c, NULL), 3 * (500 + 70) + 5 * 400 + 52429);
	coll_free(s);
}

/* ---- memories under a group ---- */

/* Shards go by two memories, which the rotation of the three ranks leaves where they
 * are, to all. */
static struct coll_sched *by_memory(void)
{
	static const int32_t turn[] = { 1, 2, 0, 3, 4 };
	struct topo_group *g;
	struct coll_sched *s;
	struct err err = { 0 };
	struct topo *t;

	must(topo_new(5, &t, &err), &err);
	for (int u = 0; u < 3; u++) {
		must(topo_add_arc(t, u, 3, 1, 0, &err), &err);
		must(topo_add_arc(t, 4, u, 1, 0, &err), &err);
	}
	must(topo_add_arc(t, 3, 4, 1, 0, &err), &err);
	for (int u = 3; u < 5; u++) {
		topo_set_node(t, u, TOPO_MEMORY, TOPO_CAN_COPY | TOPO_CAN_STORE);
	}
	topo_freeze(t);
	must(coll_new(COLL_ALLGATHER, t, 1, 0, 0, &s, &err), &err);
	must(topo_group_new(5, 3, 1, (int[]){ 3 }, turn, &g, &err), &err);
	must(coll_set_group(s, g, &err), &err);
	send_part(s, 0, 0, 3, 0, 0, 0, COLL_OP_COPY);
	send_part(s, 1, 3, 4, 0, 0, 0, COLL_OP_COPY);
	send_part(s, 2, 4, 1, 0, 0, 0, COLL_OP_COPY);
	send_part(s, 2, 4, 2, 0, 0, 0, COLL_OP_COPY);
	return s;
}

/* What is kept stands for three transfers on the one arc between the memories. */
static void test_memories(void **state)
{
	struct coll_cost c = { .link_bps = 8000000000, .size_bytes = 3000 };
	struct coll_sched *s = by_memory(), *flat;

	(void)state;
	finish(s);
	flat = unfolded(s);
	assert_int_equal(time_of(flat, c, NULL), 1000 + 3000 + 2000);
	assert_int_equal(time_of(s, c, NULL), 1000 + 3000 + 2000);
	coll_free(flat);
	coll_free(s);
}

/* Three messages begin on the arc from a memory to the switch. */
static void test_messages_of_a_memory(void **state)
{
	static const int32_t turn[] = { 1, 2, 0, 3, 4 };
	struct coll_cost c = { .message_ns = 100, .size_bytes = 0 };
	struct topo_group *g;
	struct coll_sched *s, *flat;
	struct err err = { 0 };
	struct topo *t;

	(void)state;
	must(topo_new(4, &t, &err), &err);
	for (int u = 0; u < 3; u++) {
		must(topo_add_arc(t, u, 3, 1, 0, &err), &err);
		must(topo_add_arc(t, 3, u, 1, 0, &err), &err);
	}
	topo_set_node(t, 3, TOPO_MEMORY, TOPO_CAN_COPY | TOPO_CAN_STORE);
	topo_freeze(t);
	must(coll_new(COLL_ALLGATHER, t, 1, 0, 0, &s, &err), &err);
	must(topo_group_new(5, 3, 1, (int[]){ 3 }, turn, &g, &err), &err);
	must(coll_set_group(s, g, &err), &err);
	must(topo_new(5, &t, &err), &err);
	for (int u = 0; u < 3; u++) {
		must(topo_add_arc(t, u, 3, 1, 0, &err), &err);
		must(topo_add_arc(t, 4, u, 1, 0, &err), &err);
	}
	must(topo_add_arc(t, 3, 4, 1, 0, &err), &err);
	topo_set_node(t, 3, TOPO_MEMORY, TOPO_CAN_COPY | TOPO_CAN_STORE);
	topo_set_node(t, 4, TOPO_SWITCH, 0);
	topo_freeze(t);
	must(coll_set_physical(s, t, COLL_ROUTING_EXPLICIT, 0, &err), &err);
	route(s, 0, 3, 1, 1, (int[]){ 0, 3 });
	route(s, 3, 0, 1, 2, (int[]){ 3, 4, 0 });
	send_part(s, 0, 0, 3, 0, 0, 0, COLL_OP_COPY);
	send_part(s, 1, 3, 1, 0, 0, 0, COLL_OP_COPY);
	send_part(s, 1, 3, 2, 0, 0, 0, COLL_OP_COPY);
	finish(s);
	flat = unfolded(s);
	assert_int_equal(time_of(flat, c, NULL), 100 + 300);
	assert_int_equal(time_of(s, c, NULL), 100 + 300);
	coll_free(flat);
	coll_free(s);
}

/* ---- what does not fit ---- */

static void test_no_wrapping(void **state)
{
	struct coll_sched *s = line(), *two = bfb(COLL_ALLGATHER, "Ring(4)");

	(void)state;
	assert_no_time(s, (struct coll_cost){ .hop_ns = INT64_MAX });
	assert_no_time(s, (struct coll_cost){ .hop_ns = INT64_MAX / 2 + 1 });
	assert_no_time(s, (struct coll_cost){ .message_ns = INT64_MAX });
	assert_no_time(s, (struct coll_cost){ .hop_ns = INT64_MAX / 2, .message_ns = 1 });
	assert_no_time(s, (struct coll_cost){ .hop_ns = INT64_MAX / 2, .alpha_ns = 2 });
	assert_int_equal(time_of(s, (struct coll_cost){ .hop_ns = INT64_MAX / 2,
							.alpha_ns = 1 }, NULL), INT64_MAX);
	assert_no_time(two, (struct coll_cost){ .alpha_ns = INT64_MAX / 2 + 1 });
	assert_no_time(two, (struct coll_cost){ .message_ns = INT64_MAX });
	coll_free(s);
	coll_free(two);
}

/* Weights whose sums have no small common multiple, and capacities that are too
 * large for theirs. */
static void test_no_scale(void **state)
{
	static const int arcs[][2] = { { 0, 1 }, { 1, 0 } };
	struct coll_sched *s;
	struct err err = { 0 };
	struct topo *t;

	(void)state;
	must(topo_new(2, &t, &err), &err);
	must(topo_add_arc(t, 0, 1, COLL_MAX_CAP, 0, &err), &err);
	must(topo_add_arc(t, 1, 0, 1, 0, &err), &err);
	topo_freeze(t);
	must(coll_new(COLL_ALLGATHER, graph_from(2, 2, arcs), 1, 0, 0, &s, &err), &err);
	must(coll_set_physical(s, t, COLL_ROUTING_EXPLICIT, 2, &err), &err);
	for (int i = 0; i < 1 << 11; i++) {
		route(s, 0, 1, COLL_MAX_WEIGHT, 1, (int[]){ 0, 1 });
	}
	route(s, 1, 0, 1, 1, (int[]){ 1, 0 });
	send_part(s, 0, 0, 1, 0, 0, 0, COLL_OP_COPY);
	send_part(s, 0, 1, 0, 1, 0, 0, COLL_OP_COPY);
	finish(s);
	assert_int_equal(coll_verify(s, NULL, &err), WEFT_ELIMIT);
	assert_non_null(strstr(err.msg, "physical arc 0: its capacity times"));
	coll_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_line),
		cmocka_unit_test(test_split),
		cmocka_unit_test(test_swing),
		cmocka_unit_test(test_memories),
		cmocka_unit_test(test_messages_of_a_memory),
		cmocka_unit_test(test_no_wrapping),
		cmocka_unit_test(test_no_scale),
	};

	return cmocka_run_group_tests_name("schedule/embedded_cost", tests, NULL, NULL);
}
