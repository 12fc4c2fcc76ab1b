/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files as the kernels run them at a size: what weft writes, and small files
 * by hand that lock up, race or go wrong only from some size on, which show
 * that the simulator tells them apart.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "runtime/msccl/msccl.h"
#include "tests/unit/msccl/kernel_sim.h"
#include "tests/unit/msccl/lowered.h"

#define KIB 1024
#define MIB (1024 * 1024)

/* ---- files by hand ---- */

#define ALGO(coll, proto, ranks, loop) "<algo proto=\"" proto "\" nchannels=\"1\" " \
	"nchunksperloop=\"" #loop "\" ngpus=\"" #ranks "\" coll=\"" coll "\" inplace=\"0\" " \
	"outofplace=\"1\" minBytes=\"0\" maxBytes=\"0\">"
#define GPU(id, i, o, s) "<gpu id=\"" #id "\" i_chunks=\"" #i "\" o_chunks=\"" #o \
	"\" s_chunks=\"" #s "\">"
#define TB(id, send, recv) "<tb id=\"" #id "\" send=\"" #send "\" recv=\"" #recv "\" chan=\"0\">"
#define STEP(s, type, from, src, to, dst, cnt, tb, step, flag) "<step s=\"" #s "\" type=\"" \
	#type "\" srcbuf=\"" #from "\" srcoff=\"" #src "\" dstbuf=\"" #to "\" dstoff=\"" #dst \
	"\" cnt=\"" #cnt "\" depid=\"" #tb "\" deps=\"" #step "\" hasdep=\"" #flag "\"/>"
#define END_TB "</tb>"
#define END_GPU "</gpu>"
#define END "</algo>"

/* A call of a file ends as told: NULL well, else with this said. */
static void call_ends(const char *text, struct kern_call c, const char *said)
{
	struct kern_file f;
	char why[512];
	bool ok;

	if (!kern_read(text, &f)) {
		fail_msg("%s", f.why);
	}
	ok = kern_run(&f, &c, why);
	if (ok != !said || (said && !strstr(why, said))) {
		fail_msg("%s at %lld bytes: expected \"%s\", found \"%s\"",
			 c.proto ? c.proto : f.proto, (long long)c.bytes, said ? said : "", why);
	}
	kern_free(&f);
}

static void size_ends(const char *text, const char *proto, int64_t bytes, const char *said)
{
	call_ends(text, (struct kern_call){ .bytes = bytes, .proto = proto }, said);
}

/* Operations are as long as msccl_setup.cc has it. */
static void test_counts(void **state)
{
	static const struct {
		const char *coll, *proto;
		int64_t bytes;
		bool rccl;
		int count;
	} want[] = {
		{ "allreduce", "Simple", 64, false, 71 },
		{ "allreduce", "Simple", 8 * MIB, false, 2 },
		{ "allreduce", "Simple", 8 * MIB + 8, false, 1 },
		{ "allreduce", "Simple", 800 * MIB, false, 1 },
		{ "broadcast", "Simple", 2 * MIB, false, 2 },
		{ "allreduce", "LL", 64 * KIB, false, 4 },
		{ "allreduce", "LL", 64 * KIB, true, 2 },
		{ "broadcast", "LL", 64 * KIB, false, 4 },
		{ "allreduce", "LL128", 8 * 57600, false, 10 },
		{ "allreduce", "LL128", 8 * 50176, true, 1 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
		struct kern_file f = { .loop = 8 };
		struct kern_call c = { .bytes = want[i].bytes, .rccl = want[i].rccl };

		snprintf(f.coll, sizeof(f.coll), "%s", want[i].coll);
		snprintf(f.proto, sizeof(f.proto), "%s", want[i].proto);
		assert_int_equal(kern_max_count(&f, &c), want[i].count);
	}
}

/* Two ranks that send six chunks in one step each before they take any. */
static const char crossing[] =
	ALGO("alltoall", "Simple", 2, 12)
	GPU(0, 12, 12, 0) TB(0, 1, 1)
	STEP(0, s, i, 6, o, 0, 6, -1, -1, 0) STEP(1, r, i, 0, o, 6, 6, -1, -1, 0)
	STEP(2, cpy, i, 0, o, 0, 6, -1, -1, 0) END_TB END_GPU
	GPU(1, 12, 12, 0) TB(0, 0, 0)
	STEP(0, s, i, 0, o, 0, 6, -1, -1, 0) STEP(1, r, i, 0, o, 0, 6, -1, -1, 0)
	STEP(2, cpy, i, 6, o, 6, 6, -1, -1, 0) END_TB END_GPU END;

/* It is one operation when chunks are small, and six when they are large. */
static void test_room(void **state)
{
	(void)state;
	size_ends(crossing, NULL, 12 * 4, NULL);
	size_ends(crossing, NULL, 12LL * 699048, NULL);
	size_ends(crossing, NULL, 12LL * MIB, "locks up at 12582912 bytes, 2 chunks an operation: "
		  "rank 0, threadblock 0 (iteration 0, step 0, s), which waits for room of rank 1, "
		  "threadblock 0 (iteration 0, step 0, s), which waits for room of the first");
	size_ends(crossing, NULL, 12LL * 16 * MIB, "locks up");
	size_ends(crossing, "LL", 12LL * 16 * MIB, NULL);
	size_ends(crossing, "LL128", 12LL * 16 * MIB, NULL);
}

/* A broadcast of two ranks by way of scratch; wait: of the copy for the
 * receive. */
#define RELAY(wait, flag) ALGO("broadcast", "Simple", 2, 2) \
	GPU(0, 2, 2, 0) TB(0, 1, -1) STEP(0, s, i, 0, o, 0, 2, -1, -1, 0) END_TB \
	TB(1, -1, -1) STEP(0, cpy, i, 0, o, 0, 2, -1, -1, 0) END_TB END_GPU \
	GPU(1, 2, 2, 2) TB(0, -1, 0) STEP(0, r, i, 0, s, 0, 2, -1, -1, flag) END_TB \
	TB(1, -1, -1) STEP(0, cpy, s, 0, o, 0, 2, wait, wait, 0) END_TB END_GPU END

static void test_flags(void **state)
{
	(void)state;
	for (int64_t bytes = 8; bytes <= 24 * MIB; bytes *= 3) {
		size_ends(RELAY(0, 1), NULL, bytes, NULL);
		size_ends(RELAY(-1, 0), NULL, bytes, "race on rank 1");
		size_ends(RELAY(0, 0), NULL, bytes,
			  "rank 1, threadblock 1 (iteration 0, step 0, cpy), which waits for the "
			  "flag of rank 1, threadblock 0, which has ended");
	}
}

/* What waits by a nop and by itself, for flags that have gone further. */
static void test_nops(void **state)
{
	static const char text[] = ALGO("broadcast", "Simple", 2, 4)
		GPU(0, 4, 4, 0) TB(0, 1, -1) STEP(0, s, i, 0, o, 0, 2, -1, -1, 0)
		STEP(1, s, i, 2, o, 0, 2, -1, -1, 0) END_TB
		TB(1, -1, -1) STEP(0, cpy, i, 0, o, 0, 4, -1, -1, 0) END_TB END_GPU
		GPU(1, 4, 4, 4) TB(0, -1, 0) STEP(0, r, i, 0, s, 0, 2, -1, -1, 0)
		STEP(1, r, i, 0, s, 2, 2, -1, -1, 1) END_TB
		TB(1, -1, -1) STEP(0, nop, i, -1, o, -1, 0, 0, 0, 0)
		STEP(1, cpy, s, 0, o, 0, 2, 0, 1, 1) END_TB
		TB(2, -1, -1) STEP(0, nop, i, -1, o, -1, 0, 0, 1, 0)
		STEP(1, cpy, s, 2, o, 2, 2, 1, 1, 0) END_TB END_GPU END;
	static const char alone[] = ALGO("broadcast", "Simple", 2, 2) GPU(0, 2, 2, 0)
		TB(0, -1, -1) STEP(0, cpy, i, 0, o, 0, 2, -1, -1, 1) END_TB
		TB(1, -1, -1) STEP(0, nop, i, -1, o, -1, 0, 0, 0, 0)
		STEP(1, cpy, i, 0, o, 0, 2, -1, -1, 0) END_TB END_GPU END;
	struct kern_file f;

	(void)state;
	size_ends(text, NULL, 16, NULL);
	size_ends(text, NULL, 100LL * MIB, NULL);
	assert_false(kern_read(alone, &f));
	assert_non_null(strstr(f.why, "waits for nothing"));
	kern_free(&f);
}

/* Two sums into one place are one transmission; its flag has the last number. */
static void test_fused_sums(void **state)
{
	static const char text[] = ALGO("allreduce", "Simple", 2, 2)
		GPU(0, 2, 2, 4) TB(0, 1, 1) STEP(0, s, i, 0, o, 0, 2, -1, -1, 0)
		STEP(1, r, i, 0, s, 0, 2, -1, -1, 1) END_TB
		TB(1, -1, -1) STEP(0, cpy, i, 0, s, 2, 2, -1, -1, 0)
		STEP(1, re, s, 0, o, 0, 2, 0, 1, 0) STEP(2, re, s, 2, o, 0, 2, -1, -1, 1)
		STEP(3, cpy, o, 0, s, 0, 2, -1, -1, 0) END_TB END_GPU
		GPU(1, 2, 2, 2) TB(0, 0, 0) STEP(0, s, i, 0, o, 0, 2, -1, -1, 0)
		STEP(1, r, i, 0, o, 0, 2, -1, -1, 0) END_TB END_GPU END;
	struct kern_file f;
	char why[512];

	(void)state;
	assert_true(kern_read(text, &f));
	assert_int_equal(f.tbs.v[1].trans.n, 3);
	assert_int_equal(f.tbs.v[1].trans.v[1].n_srcs, 2);
	assert_int_equal(f.tbs.v[1].trans.v[1].step, 2);
	assert_int_equal(f.tbs.v[1].trans.v[2].step, 3);
	/* The output's first contents are in the sum. */
	assert_false(kern_run(&f, &(struct kern_call){ .bytes = 4096 }, why));
	assert_non_null(strstr(why, "rank 0: chunk 0 of the output is wrong"));
	kern_free(&f);
}

/* Rank 1 passes on at once what rank 0 sends, and rank 0 stores it over what
 * another threadblock still sends: two chunks from `from`, stored at `to`. */
#define AROUND(from, to) ALGO("allreduce", "Simple", 2, 4) \
	GPU(0, 4, 4, 4) TB(0, 1, -1) STEP(0, s, s, from, s, 0, 2, -1, -1, 0) END_TB \
	TB(1, -1, 1) STEP(0, r, s, 0, s, to, 2, -1, -1, 0) END_TB END_GPU \
	GPU(1, 4, 4, 4) TB(0, 0, 0) STEP(0, rcs, s, 0, s, 0, 2, -1, -1, 0) END_TB END_GPU END

/* The same chunk has been read when its line comes back. With Simple, so have
 * those of its slice and of slices before; large operations have two. */
static void test_lines(void **state)
{
	(void)state;
	for (int64_t bytes = 64; bytes <= 32 * KIB; bytes *= 8) {
		size_ends(AROUND(0, 0), "LL", bytes, "is wrong");
		size_ends(AROUND(0, 1), "LL", bytes, "race on rank 0");
		size_ends(AROUND(1, 0), "LL", bytes, "race on rank 0");
		size_ends(AROUND(1, 0), "LL128", bytes, "race on rank 0");
		size_ends(AROUND(0, 0), "Simple", bytes, "is wrong");
		size_ends(AROUND(0, 1), "Simple", bytes, "is wrong");
		size_ends(AROUND(1, 0), "Simple", bytes, "is wrong");
	}
	/* In one operation each, chunk 1 is read before any comes back to it. */
	size_ends(AROUND(0, 1), "LL", 16 * MIB, "race on rank 0");
	size_ends(AROUND(1, 0), "LL", 16 * MIB, "is wrong");
	size_ends(AROUND(1, 0), "Simple", 4 * MIB, "is wrong");
	size_ends(AROUND(0, 1), "Simple", 4 * MIB, "race on rank 0");
}

/* Rank 0 sends two chunks of scratch; then another threadblock, which waits for
 * that, or the same one by a receive, writes from chunk `to` on. */
#define SENT_THEN_COPIED ALGO("broadcast", "LL", 2, 2) \
	GPU(0, 2, 2, 2) TB(0, 1, -1) STEP(0, s, s, 0, o, 0, 2, -1, -1, 1) END_TB \
	TB(1, -1, -1) STEP(0, cpy, i, 0, s, 0, 2, 0, 0, 0) END_TB END_GPU \
	GPU(1, 2, 2, 0) TB(0, -1, 0) STEP(0, r, i, 0, o, 0, 2, -1, -1, 0) END_TB END_GPU END
#define SENT_THEN_RECEIVED(to) ALGO("alltoall", "LL", 2, 4) \
	GPU(0, 4, 4, 4) TB(0, 1, 1) STEP(0, s, s, 0, o, 0, 2, -1, -1, 0) \
	STEP(1, r, i, 0, s, to, 2, -1, -1, 0) END_TB END_GPU \
	GPU(1, 4, 4, 4) TB(0, 0, 0) STEP(0, s, i, 0, o, 0, 2, -1, -1, 0) \
	STEP(1, r, i, 0, o, 0, 2, -1, -1, 0) END_TB END_GPU END

/* On RCCL a send of LL may still read when its flag is there, and while what is
 * received next is written by other threads. */
static void test_open_sends(void **state)
{
	const struct kern_call azure = { .bytes = 64 }, rccl = { .bytes = 64, .rccl = true };
	const struct kern_call simple = { .bytes = 64, .rccl = true, .proto = "Simple" };

	(void)state;
	call_ends(SENT_THEN_COPIED, azure, "is wrong");
	call_ends(SENT_THEN_COPIED, simple, "is wrong");
	call_ends(SENT_THEN_COPIED, rccl, "race on rank 0");
	call_ends(SENT_THEN_RECEIVED(1), azure, "is wrong");
	call_ends(SENT_THEN_RECEIVED(1), simple, "is wrong");
	call_ends(SENT_THEN_RECEIVED(1), rccl, "race on rank 0");
	call_ends(SENT_THEN_RECEIVED(0), rccl, "is wrong");
}

/* Ends of a connection that disagree, and steps that do not exist. */
static void test_mismatch(void **state)
{
	static const char halves[] = ALGO("broadcast", "Simple", 2, 2)
		GPU(0, 2, 2, 0) TB(0, 1, -1) STEP(0, s, i, 0, o, 0, 2, -1, -1, 0) END_TB END_GPU
		GPU(1, 2, 2, 0) TB(0, -1, 0) STEP(0, r, i, 0, o, 0, 1, -1, -1, 0)
		STEP(1, r, i, 0, o, 1, 1, -1, -1, 0) END_TB END_GPU END;
	static const char left[] = ALGO("broadcast", "Simple", 2, 1)
		GPU(0, 1, 1, 0) TB(0, 1, -1) STEP(0, s, i, 0, o, 0, 1, -1, -1, 0)
		STEP(1, s, i, 0, o, 0, 1, -1, -1, 0) STEP(2, cpy, i, 0, o, 0, 1, -1, -1, 0) END_TB
		END_GPU
		GPU(1, 1, 1, 0) TB(0, -1, 0) STEP(0, r, i, 0, o, 0, 1, -1, -1, 0) END_TB END_GPU
		END;

	(void)state;
	size_ends(halves, NULL, 64, "takes 1 chunks, and 2 come");
	size_ends(halves, NULL, 2 * 2 * MIB, "rank 0: chunk 0 of the output is wrong");
	size_ends(left, NULL, 64, "data is left in its connection");
}

/* ---- what weft writes ---- */

/* An all-reduce of so many bytes, in both dialects. */
static void allreduce_ends(const char *expr, int64_t bytes)
{
	for (int d = 0; d < 2; d++) {
		struct coll_sched *s = bfb(COLL_ALLREDUCE, expr);
		struct err err = { 0 };
		struct buf b = { 0 };
		struct kern_file f;

		must(msccl_export(s, d ? MSCCL_RCCL : MSCCL_AZURE, &b, &err), &err);
		assert_true(kern_read(buf_cstr(&b), &f));
		assert_true(kern_serves(&f, bytes));
		call_ends(buf_cstr(&b), (struct kern_call){ .bytes = bytes, .rccl = d }, NULL);
		kern_free(&f);
		buf_fini(&b);
		coll_free(s);
	}
}

static void test_ring_32_mib(void **state)
{
	(void)state;
	allreduce_ends("Ring(8)", 32 * MIB);
}

static void test_hypercube_32_mib(void **state)
{
	(void)state;
	allreduce_ends("Hypercube(3)", 24 * 1398100);
}

static void test_torus_128_mib(void **state)
{
	(void)state;
	allreduce_ends("Torus(4,4)", 128 * MIB);
}

static void test_circulant_128_mib(void **state)
{
	(void)state;
	allreduce_ends("C(16,{1,4})", 128 * MIB);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_counts),
		cmocka_unit_test(test_room),
		cmocka_unit_test(test_flags),
		cmocka_unit_test(test_nops),
		cmocka_unit_test(test_fused_sums),
		cmocka_unit_test(test_lines),
		cmocka_unit_test(test_open_sends),
		cmocka_unit_test(test_mismatch),
		cmocka_unit_test(test_ring_32_mib),
		cmocka_unit_test(test_hypercube_32_mib),
		cmocka_unit_test(test_torus_128_mib),
		cmocka_unit_test(test_circulant_128_mib),
	};

	return cmocka_run_group_tests_name("msccl/kernel", tests, NULL, NULL);
}
