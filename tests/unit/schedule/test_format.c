/* SPDX-License-Identifier: Apache-2.0 */
/* JSON and protobuf: equal after a round trip, and what is refused. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "lib/base/number/rng.h"
#include "tests/unit/schedule/common.h"

/* Through both formats, also by the first byte alone. */
static void round_trip(const struct coll_sched *s)
{
	void (*const write[])(const struct coll_sched *, struct buf *) = { coll_to_json,
									   coll_to_proto };
	struct err err = { 0 };

	for (int i = 0; i < 2; i++) {
		struct buf first = { 0 }, second = { 0 };
		struct coll_sched *back;

		write[i](s, &first);
		must(coll_from_bytes(first.data, first.len, &back, &err),
		     &err);
		assert_same(s, back);
		write[i](back, &second);
		assert_int_equal(first.len, second.len);
		assert_memory_equal(first.data, second.data, first.len);
		coll_free(back);
		buf_fini(&first);
		buf_fini(&second);
	}
}

static void test_synthesised(void **state)
{
	static const char *const exprs[] = {
		"GenKautz(4,25)", "Torus(3,4)", "K(3,4)", "Hypercube(3)",
	};

	(void)state;
	for (int i = 0; i < 4; i++) {
		for (int k = COLL_ALLGATHER; k <= COLL_ALLREDUCE; k++) {
			struct coll_sched *s = bfb(k, exprs[i]);

			round_trip(s);
			coll_set_topo_name(s, exprs[i]);
			round_trip(s);
			coll_free(s);
		}
	}
}

static struct coll_sched *random_sched(struct rng *rng)
{
	enum coll_kind kind = rng_below(rng, COLL_BROADCAST + 1);
	int n = 1 + (int)rng_below(rng, 6), m = (int)rng_below(rng, 12);
	int chunks = 1 + (int)rng_below(rng, 70);
	struct err err = { 0 };
	struct coll_sched *s;
	struct topo *t;

	must(topo_new(n, &t, &err), &err);
	for (int i = 0; i < m; i++) {
		must(topo_add_arc(t, (int)rng_below(rng, n),
				  (int)rng_below(rng, n),
				  1 + (int64_t)rng_below(rng, 3),
				  (int64_t)rng_below(rng, 2) * 1000, &err),
		     &err);
	}
	topo_freeze(t);
	must(coll_new(kind, t, chunks, (int)rng_below(rng, 9),
		      (int)rng_below(rng, n), &s, &err), &err);
	for (int i = 0; m && i < 40; i++) {
		int first = (int)rng_below(rng, chunks);
		struct coll_xfer x = {
			(int)rng_below(rng, 9), (int)rng_below(rng, m),
			(int)rng_below(rng, n), COLL_NO_DEST, first,
			first + (int)rng_below(rng, chunks - first),
			(uint8_t)rng_below(rng, 2), 0,
		};
		struct coll_light l = {
			x.step, x.arc, (uint16_t)rng_below(rng, 65536),
			(uint8_t)rng_below(rng, 2),
			(uint8_t)rng_below(rng, 256),
			(int32_t)rng_below(rng, 10000) - 5000,
		};

		if (kind == COLL_ALLTOALL) {
			x.dest = (int)rng_below(rng, n);
		}
		must(coll_add(s, &x, &err), &err);
		if (chunks % 2) {
			must(coll_add_light(s, &l, &err), &err);
		}
	}
	finish(s);
	return s;
}

/* Reading does not verify, so nonsense survives the trip, too. */
static void test_random(void **state)
{
	struct rng rng;

	(void)state;
	rng_seed(&rng, 7);
	for (int i = 0; i < 400; i++) {
		struct coll_sched *s = random_sched(&rng);

		coll_set_topo_name(s, i % 2 ? "quote \" and \xc3\xa9\n" : "");
		round_trip(s);
		coll_free(s);
	}
}

/* ---- JSON by hand ---- */

#define HEAD "{\"format\":\"weft-schedule\",\"version\":1," \
	"\"collective\":\"allgather\",\"nodes\":2,\"chunks\":1,"
#define ARCS "\"arcs\":[[0,1],[1,0]],"
#define XFERS "\"transfers\":[[0,0,0,0,0],[0,1,1,0,0]]}"

static void test_json_defaults(void **state)
{
	const char *text = " \n" HEAD ARCS XFERS;
	struct err err = { 0 };
	struct coll_sched *s;

	(void)state;
	must(coll_from_bytes(text, strlen(text), &s, &err), &err);
	assert_int_equal(coll_ports(s), 1);
	assert_string_equal(coll_topo_name(s), "");
	assert_factor(s, "1/2", "1/2");
	coll_free(s);
}

/* Columns may stand in any order; steps is for people. */
static void test_json_columns(void **state)
{
	const char *text = HEAD "\"steps\":77,\"ports\":2,"
		"\"arcs_columns\":[\"cap\",\"dst\",\"src\"],"
		"\"arcs\":[[2,1,0],[2,0,1]],"
		"\"transfers_columns\":[\"last\",\"first\",\"origin\","
		"\"arc\",\"step\",\"op\"],"
		"\"transfers\":[[0,0,1,1,5,0],[0,0,0,0,0,0]]}";
	struct err err = { 0 };
	struct coll_sched *s;

	(void)state;
	must(coll_from_bytes(text, strlen(text), &s, &err), &err);
	assert_int_equal(coll_steps(s), 6);
	assert_factor(s, "1", "1/2");
	coll_free(s);
}

static void test_json_refuses(void **state)
{
	static const struct {
		const char *text;
		int rc;
		const char *what;
	} bad[] = {
		{ "{", WEFT_EINVAL, "not valid JSON" },
		{ "{\"a\":1,\"a\":1}", WEFT_EINVAL, "not valid JSON" },
		{ "{}", WEFT_EINVAL, "format" },
		{ "{\"format\":\"x\"}", WEFT_EINVAL, "weft-schedule" },
		{ "{\"format\":\"weft-schedule\",\"version\":7,"
		  "\"collective\":\"allgather\",\"nodes\":1,\"chunks\":1}",
		  WEFT_EUNSUPPORTED, "format 7" },
		{ "{\"format\":\"weft-schedule\",\"version\":1,"
		  "\"collective\":\"gossip\"}", WEFT_EINVAL, "gossip" },
		{ HEAD "\"nodes\":3," ARCS XFERS, WEFT_EINVAL, "JSON" },
		{ HEAD "\"colour\":3," ARCS XFERS, WEFT_EINVAL,
		  "unknown key 'colour'" },
		{ HEAD "\"transfers\":[]}", WEFT_EINVAL, "arcs" },
		{ HEAD ARCS "\"transfers\":3}", WEFT_EINVAL, "transfers" },
		{ HEAD "\"root\":2," ARCS XFERS, WEFT_EINVAL, "root" },
		{ HEAD "\"root\":-2," ARCS XFERS, WEFT_EINVAL, "root" },
		{ HEAD "\"ports\":1.5," ARCS XFERS, WEFT_EINVAL, "ports" },
		{ HEAD "\"ports\":99999999999," ARCS XFERS, WEFT_ELIMIT,
		  "ports" },
		{ HEAD "\"arcs\":[[1,0],[0,1]]," XFERS, WEFT_EINVAL,
		  "arcs[1]: src: 0 after 1" },
		{ HEAD "\"arcs\":[[0,2]]," XFERS, WEFT_EINVAL, "arcs[0]" },
		{ HEAD "\"arcs\":[[0,-1]]," XFERS, WEFT_EINVAL,
		  "arcs[0]: dst: -1" },
		{ HEAD "\"arcs\":[[0,1,2]]," XFERS, WEFT_EINVAL,
		  "arcs[0]: expected an array of 2" },
		{ HEAD "\"arcs\":[0]," XFERS, WEFT_EINVAL, "arcs[0]" },
		{ HEAD ARCS "\"transfers\":[[0,0,0,0,\"x\"]]}", WEFT_EINVAL,
		  "transfers[0]: last: expected a whole number" },
		{ HEAD ARCS "\"transfers\":[[0,0,0,0,0],[7,2,0,0,0]]}",
		  WEFT_EINVAL, "transfers[1]: step 7: arc 2 is missing" },
		{ HEAD ARCS "\"transfers\":[[0,0,2,0,0]]}", WEFT_EINVAL,
		  "origin is not a rank" },
		{ HEAD ARCS "\"transfers\":[[4294967296,0,0,0,0]]}",
		  WEFT_EINVAL, "step: 4294967296" },
		{ HEAD ARCS "\"transfers\":[[1048576,0,0,0,0]]}",
		  WEFT_ELIMIT, "steps" },
		{ HEAD ARCS "\"transfers_columns\":[\"step\"],"
		  "\"transfers\":[]}", WEFT_EINVAL, "\"arc\" is missing" },
		{ HEAD ARCS "\"transfers_columns\":[\"step\",\"step\"],"
		  "\"transfers\":[]}", WEFT_EINVAL, "given twice" },
		{ HEAD ARCS "\"transfers_columns\":[\"stop\"],"
		  "\"transfers\":[]}", WEFT_EINVAL, "no such column" },
		{ HEAD ARCS "\"lightpaths\":[[0,0,65536,0]],"
		  XFERS, WEFT_EINVAL, "lightpaths[0]: channel" },
		{ "[]", WEFT_EINVAL, "" },
	};
	struct coll_sched *s;
	struct err err;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		int rc = coll_from_json(bad[i].text, strlen(bad[i].text), &s,
					&err);

		assert_null(s);
		if (rc != bad[i].rc || !strstr(err.msg, bad[i].what)) {
			fail_msg("%s: %s %s", bad[i].text, err_name(rc),
				 err.msg);
		}
	}
}

static void test_json_names_the_place(void **state)
{
	const char *text = "{\n  \"format\" 1\n}\n";
	struct coll_sched *s;
	struct err err;

	(void)state;
	assert_int_equal(coll_from_json(text, strlen(text), &s, &err),
			 WEFT_EINVAL);
	assert_int_equal(err.line, 2);
}

/* ---- protobuf by hand ---- */

struct bytes {
	const char *text;
	size_t len;
	const char *what;
};

#define BYTES(t, what) { t, sizeof(t) - 1, what }
/* version 1, allgather, two nodes, one chunk */
#define P_HEAD "\x08\x01\x10\x01\x20\x02\x28\x01"
#define P_ARCS "\x42\x08\x0a\x02\x00\x01\x12\x02\x01\x00"

static void test_proto_refuses(void **state)
{
	static const struct bytes bad[] = {
		BYTES("", "collective"),
		BYTES("\x08", "malformed"),
		BYTES("\x08\x01\x10\x09\x20\x02\x28\x01", "collective: 9"),
		BYTES("\x08\x07\x10\x01\x20\x02\x28\x01", "format 7"),
		BYTES("\x08\x01\x10\x01\x28\x01", "nodes: 0"),
		BYTES("\x08\x01\x10\x01\x20\x02", "chunks: 0"),
		BYTES(P_HEAD "\x38\x02" P_ARCS, "root"),
		BYTES(P_HEAD "\x1a\x01\xff", "UTF-8"),
		BYTES(P_HEAD "\x42\x04\x0a\x02\x00\x01", "arcs.dst: 0 values"),
		BYTES(P_HEAD "\x42\x08\x0a\x02\x00\x01\x12\x02\x01\x02",
		      "arcs[1]"),
		BYTES(P_HEAD "\x42\x0b\x0a\x02\x00\x01\x12\x02\x01\x00\x1a"
		      "\x01\x05", "arcs.cap: 1 values in a table of 2"),
		BYTES(P_HEAD P_ARCS "\x4a\x0f\x0a\x01\x00\x12\x01\x02\x1a\x01"
		      "\x00\x2a\x01\x00\x32\x01\x00", "arc 2 is missing"),
		BYTES(P_HEAD P_ARCS "\x4a\x13\x0a\x05\xff\xff\xff\xff\x0f\x12"
		      "\x01\x00\x1a\x01\x00\x2a\x01\x00\x32\x01\x00",
		      "transfers[0]: step: 4294967295"),
	};
	struct coll_sched *s;
	struct err err;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		int rc = coll_from_proto(bad[i].text, bad[i].len, &s, &err);

		assert_null(s);
		if (rc >= 0 || !strstr(err.msg, bad[i].what)) {
			fail_msg("%zu: %s %s", i, err_name(rc), err.msg);
		}
	}
}

static void test_proto_by_hand(void **state)
{
	static const char text[] = P_HEAD P_ARCS
		"\x4a\x14\x0a\x02\x00\x00\x12\x02\x00\x01\x1a\x02\x00\x01"
		"\x2a\x02\x00\x00\x32\x02\x00\x00";
	struct err err = { 0 };
	struct coll_sched *s;

	(void)state;
	must(coll_from_bytes(text, sizeof(text) - 1, &s, &err), &err);
	assert_factor(s, "1/2", "1/2");
	coll_free(s);
}

/* What is written at once are the bytes of the part. */
static void must_write_alike(const struct coll_sched *s, int rank, const struct coll_sched *part)
{
	struct buf whole = { 0 }, once = { 0 };
	struct err err = { 0 };

	coll_to_proto(part, &whole);
	must(coll_part_to_proto(s, rank, &once, &err), &err);
	assert_int_equal(once.len, whole.len);
	assert_memory_equal(once.data, whole.data, whole.len);
	buf_fini(&whole);
	buf_fini(&once);
}

/* Every transfer is in the parts of the ranks at its ends, and in no other;
 * parts are written and read like the whole, but never pass for it. */
static void test_parts(void **state)
{
	struct coll_sched *s = bfb(COLL_ALLREDUCE, "GenKautz(2,9)"), *part;
	const struct coll_xfer *x;
	struct err err = { 0 };
	int64_t n, all = 0, whole;

	(void)state;
	assert_int_equal(coll_part(s), -1);
	coll_xfers(s, &whole);
	whole *= topo_group_order(coll_group(s));
	for (int rank = 0; rank < coll_ranks(s); rank++) {
		must(coll_part_of(s, rank, &part, &err), &err);
		assert_int_equal(coll_part(part), rank);
		x = coll_xfers(part, &n);
		for (int64_t i = 0; i < n; i++) {
			const struct topo_arc *a =
				topo_arc(coll_topo(part), x[i].arc);

			assert_true(a->src == rank || a->dst == rank);
		}
		all += n;
		round_trip(part);
		must_write_alike(s, rank, part);
		assert_int_equal(coll_verify(part, NULL, &err), WEFT_EVERIFY);
		coll_free(part);
	}
	assert_int_equal(all, 2 * whole);
	assert_int_equal(coll_part_of(s, -1, &part, &err), WEFT_EINVAL);
	assert_int_equal(coll_part_of(s, 9, &part, &err), WEFT_EINVAL);
	coll_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_synthesised),
		cmocka_unit_test(test_random),
		cmocka_unit_test(test_json_defaults),
		cmocka_unit_test(test_json_columns),
		cmocka_unit_test(test_json_refuses),
		cmocka_unit_test(test_json_names_the_place),
		cmocka_unit_test(test_proto_refuses),
		cmocka_unit_test(test_proto_by_hand),
		cmocka_unit_test(test_parts),
	};

	return cmocka_run_group_tests_name("schedule/format", tests, NULL,
					   NULL);
}
