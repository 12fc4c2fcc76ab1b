/* SPDX-License-Identifier: Apache-2.0 */
/* Where a schedule's ranks and arcs are: through both formats, and what is refused. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/unit/schedule/common.h"

#define PLACED "{\"format\":\"weft-schedule\",\"version\":3," \
	"\"collective\":\"allgather\",\"nodes\":2,\"chunks\":1," \
	"\"arcs\":[[0,1],[1,0]],\"transfers\":[[0,0,0,0,0],[0,1,1,0,0]]"

/* Two hosts with a name for everything; what is not wanted is NULL. */
static struct coll_placement two_hosts(bool netns, bool ring, bool ports)
{
	static char *hosts[] = { "h0", "h1" }, *spaces[] = { "", "h1-ns" };
	static char *tx[] = { "h0.p0", "h1.p1" }, *rx[] = { "h1.p0", "h0.p1" };
	static int32_t nodes[] = { 5, 2 };

	return (struct coll_placement){ hosts, netns ? spaces : NULL, ring ? nodes : NULL,
					ports ? tx : NULL, ports ? rx : NULL };
}

static struct coll_sched *placed(const struct coll_placement *p)
{
	struct coll_sched *s = bfb(COLL_ALLGATHER, "K(2)");
	struct err err = { 0 };

	must(coll_set_placement(s, p, &err), &err);
	return s;
}

static void assert_names(char *const *a, char *const *b, int n)
{
	assert_int_equal(!a, !b);
	for (int i = 0; a && i < n; i++) {
		assert_string_equal(a[i], b[i]);
	}
}

static void assert_placed(const struct coll_sched *s, const struct coll_placement *want)
{
	const struct coll_placement *p = coll_placement(s);
	int n = topo_n(coll_physical(s)), m = topo_m(coll_physical(s));

	assert_non_null(p);
	assert_names(p->hosts, want->hosts, n);
	assert_names(p->netns, want->netns, n);
	assert_names(p->tx_ports, want->tx_ports, m);
	assert_names(p->rx_ports, want->rx_ports, m);
	assert_int_equal(!p->ring_nodes, !want->ring_nodes);
	if (p->ring_nodes) {
		assert_memory_equal(p->ring_nodes, want->ring_nodes, (size_t)n * sizeof(int32_t));
	}
}

/* Written and read in both forms; and as one rank's part, and unfolded. */
static void comes_back(const struct coll_sched *s, const struct coll_placement *want)
{
	void (*const write[])(const struct coll_sched *, struct buf *) = {
		coll_to_json, coll_to_proto };
	struct coll_sched *other;
	struct err err = { 0 };

	for (int i = 0; i < 2; i++) {
		struct buf b = { 0 };

		write[i](s, &b);
		must(coll_from_bytes(b.data, b.len, &other, &err), &err);
		assert_placed(other, want);
		coll_free(other);
		buf_fini(&b);
	}
	must(coll_part_of(s, 1, &other, &err), &err);
	assert_placed(other, want);
	coll_free(other);
	must(coll_unfold(s, &other, &err), &err);
	assert_placed(other, want);
	coll_free(other);
}

static void test_round_trip(void **state)
{
	(void)state;
	for (int k = 0; k < 8; k++) {
		struct coll_placement p = two_hosts(k & 1, k & 2, k & 4);
		struct coll_sched *s = placed(&p);

		comes_back(s, &p);
		coll_free(s);
	}
}

/* As in docs/schedule.md, read, and written letter by letter. */
static void test_by_hand(void **state)
{
	static const char written[] = "  \"steps\": 1,\n  \"placement\": {\n"
		"    \"hosts\": [\"h0\", \"h1\"],\n    \"netns\": [\"\", \"h1-ns\"],\n"
		"    \"ring_nodes\": [5, 2],\n    \"tx_ports\": [\"h0.p0\", \"h1.p1\"],\n"
		"    \"rx_ports\": [\"h1.p0\", \"h0.p1\"]\n  },\n  \"arcs_columns\"";
	static const char text[] = PLACED ",\"placement\":{\"hosts\":[\"h0\",\"h1\"],"
		"\"netns\":[\"\",\"h1-ns\"],\"ring_nodes\":[5,2],"
		"\"tx_ports\":[\"h0.p0\",\"h1.p1\"],"
		"\"rx_ports\":[\"h1.p0\",\"h0.p1\"]}}";
	struct coll_placement want = two_hosts(true, true, true);
	struct err err = { 0 };
	struct buf b = { 0 };
	struct coll_sched *s;

	(void)state;
	must(coll_from_json(text, strlen(text), &s, &err), &err);
	assert_placed(s, &want);
	coll_to_json(s, &b);
	assert_non_null(strstr(b.data, written));
	buf_fini(&b);
	coll_free(s);
}

/* Files without one are of the versions that they were. */
static void test_version(void **state)
{
	struct coll_placement p = two_hosts(false, false, false);
	struct coll_sched *s = bfb(COLL_ALLGATHER, "K(2)"), *flat = unfolded(s);
	struct err err = { 0 };
	struct buf b = { 0 };

	(void)state;
	coll_to_json(flat, &b);
	assert_non_null(strstr(b.data, "\"version\": 1,"));
	assert_null(strstr(b.data, "placement"));
	buf_fini(&b);
	must(coll_set_placement(flat, &p, &err), &err);
	coll_to_json(flat, &b);
	assert_non_null(strstr(b.data, "\"version\": 3,"));
	buf_fini(&b);
	coll_free(s);
	coll_free(flat);
}

/* Routes go over physical arcs, and those have the ports; a switch has none. */
static void test_embedded(void **state)
{
	static const char text[] = "{\"format\":\"weft-schedule\",\"version\":3,"
		"\"collective\":\"allgather\",\"nodes\":2,\"chunks\":1,\"ports\":1,"
		"\"physical\":\"star\",\"physical_nodes\":3,\"routing\":\"explicit\","
		"\"node_kinds\":[[2,1]],\"arcs\":[[0,1],[1,0]],"
		"\"physical_arcs\":[[0,2],[1,2],[2,0],[2,1]],"
		"\"routes\":[[0,2],[1,2]],\"hops\":[[0],[3],[1],[2]],"
		"\"transfers\":[[0,0,0,0,0],[0,1,1,0,0]],"
		"\"placement\":{\"hosts\":[\"a\",\"b\",\"b\"],"
		"\"tx_ports\":[\"a.p0\",\"\",\"b.p0\",\"\"],"
		"\"rx_ports\":[\"b.p0\",\"\",\"a.p0\",\"\"]}}";
	char *hosts[] = { "a", "b", "b" };
	char *tx[] = { "a.p0", "", "b.p0", "" }, *rx[] = { "b.p0", "", "a.p0", "" };
	struct coll_placement want = { hosts, NULL, NULL, tx, rx };
	struct err err = { 0 };
	struct coll_sched *s;

	(void)state;
	must(coll_from_json(text, strlen(text), &s, &err), &err);
	assert_placed(s, &want);
	comes_back(s, &want);
	coll_free(s);
}

static void test_refused(void **state)
{
	static const struct {
		const char *place, *what;
	} bad[] = {
		{ "3", "placement: expected an object" },
		{ "{}", "placement: hosts: 0 for 2 nodes" },
		{ "{\"hosts\":[\"a\"]}", "hosts: 1 for 2 nodes" },
		{ "{\"hosts\":[\"a\",\"b\",\"c\"]}", "hosts: 3 for 2 nodes" },
		{ "{\"hosts\":\"a\"}", "hosts: expected an array" },
		{ "{\"hosts\":[\"a\",7]}", "hosts[1]: expected a string" },
		{ "{\"hosts\":[\"a\",\"\"]}", "hosts[1]: expected one to 255" },
		{ "{\"hosts\":[\"a\",\"b c\"]}", "hosts[1]: expected one to 255" },
		{ "{\"hosts\":[\"a\",\"\\u00e9\"]}", "hosts[1]: expected one to 255" },
		{ "{\"hosts\":[\"a\",\"b\"],\"host\":[]}", "placement: unknown key 'host'" },
		{ "{\"hosts\":[\"a\",\"b\"],\"netns\":[\"x\"]}", "netns: 1 for 2 nodes" },
		{ "{\"hosts\":[\"a\",\"b\"],\"ring_nodes\":[1]}", "ring_nodes: 1 for 2 nodes" },
		{ "{\"hosts\":[\"a\",\"b\"],\"ring_nodes\":[1,-1]}", "ring_nodes[1]: expected" },
		{ "{\"hosts\":[\"a\",\"b\"],\"ring_nodes\":[1,65536]}",
		  "ring_nodes[1]: 65536 is not in 0 to 65535" },
		{ "{\"hosts\":[\"a\",\"b\"],\"tx_ports\":[\"x\",\"y\"]}", "rx_ports: missing" },
		{ "{\"hosts\":[\"a\",\"b\"],\"tx_ports\":[\"x\"],\"rx_ports\":[\"x\"]}",
		  "tx_ports: 1 for 2 arcs" },
		{ "{\"hosts\":[\"a\",\"b\"],\"tx_ports\":[\"x\",\"\"],\"rx_ports\":[\"x\",\"y\"]}",
		  "arc 1 has a port at one end only" },
	};
	struct coll_sched *s;
	struct err err;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		char text[1024];

		snprintf(text, sizeof(text), PLACED ",\"placement\":%s}", bad[i].place);
		err_clear(&err);
		assert_int_equal(coll_from_json(text, strlen(text), &s, &err), WEFT_EINVAL);
		assert_null(s);
		if (!strstr(err.msg, bad[i].what)) {
			fail_msg("%s: %s", bad[i].place, err.msg);
		}
	}
}

static void test_old_version(void **state)
{
	struct coll_placement p = two_hosts(false, false, true);
	struct coll_sched *s = placed(&p), *back;
	struct err err = { 0 };
	struct buf b = { 0 };

	(void)state;
	coll_to_proto(s, &b);
	assert_int_equal(b.data[0], 0x08);
	assert_int_equal(b.data[1], 3);
	b.data[1] = 2;
	assert_int_equal(coll_from_proto(b.data, b.len, &back, &err), WEFT_EINVAL);
	assert_non_null(strstr(err.msg, "placement: not in version 2"));
	buf_fini(&b);
	coll_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_by_hand),
		cmocka_unit_test(test_version),
		cmocka_unit_test(test_embedded),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_old_version),
	};

	return cmocka_run_group_tests_name("schedule/placement", tests, NULL, NULL);
}
