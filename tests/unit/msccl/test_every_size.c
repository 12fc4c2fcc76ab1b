/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every file that weft writes for twelve families of digraphs of 8 to 64
 * ranks, five collectives and both dialects, at every size that the kernels
 * tell apart: it ends, without a race, with the right result, or its maxBytes
 * excludes the size.
 */
#include <malloc.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "runtime/msccl/msccl.h"
#include "tests/unit/msccl/kernel_sim.h"
#include "tests/unit/msccl/lowered.h"
#include "tests/unit/world.h"

/* What was found, for the line at the end. */
static struct {
	int files, calls, excluded, too_large, bad;
} seen;

static void call(const struct kern_file *f, const char *expr, bool rccl, const char *proto,
		 int count)
{
	struct kern_call c = { .rccl = rccl, .proto = proto };
	char why[512];

	c.bytes = kern_bytes(f, &c, count);
	if (count > 0 && kern_max_count(f, &c) != count) {
		fail_msg("%d chunks an operation, not %d", kern_max_count(f, &c), count);
	}
	if (!kern_serves(f, c.bytes)) {
		seen.excluded++;
		return;
	}
	seen.calls++;
	if (!kern_run(f, &c, why)) {
		seen.bad++;
		print_message("# %s of %s, %s, %s: %s\n", f->coll, expr, rccl ? "RCCL" : "Azure",
			      proto ? proto : f->proto, why);
	}
}

/* As the file says at every length of operations; and as a file of LL would on
 * Azure's executor, whose connections hold eight, at the longest and the shortest. */
static void file_of(const char *text, const char *expr, bool rccl)
{
	struct kern_file f;

	if (!kern_read(text, &f)) {
		fail_msg("%s: %s", expr, f.why);
	}
	seen.files++;
	for (int count = 0; count <= f.max_count; count++) {
		call(&f, expr, rccl, NULL, count);
	}
	if (strcmp(f.proto, "Simple") == 0 && !rccl) {
		call(&f, expr, rccl, "LL", 1);
		call(&f, expr, rccl, "LL", f.max_count);
	}
	kern_free(&f);
}

/* In both dialects; once where both get the same file. Frees s. */
static void schedule_of(struct coll_sched *s, const char *expr)
{
	struct buf text[2] = { 0 };
	struct err err = { 0 };

	for (int d = 0; d < 2; d++) {
		int rc = msccl_export(s, d ? MSCCL_RCCL : MSCCL_AZURE, &text[d], &err);

		if (rc == WEFT_ELIMIT) {
			seen.too_large++;
			continue;
		}
		must(rc, &err);
		if (d == 0 || text[0].len != text[1].len ||
		    memcmp(text[0].data, text[1].data, text[0].len) != 0) {
			file_of(buf_cstr(&text[d]), expr, d);
		}
	}
	buf_fini(&text[0]);
	buf_fini(&text[1]);
	coll_free(s);
}

static void sizes_of(enum coll_kind kind)
{
	memset(&seen, 0, sizeof(seen));
	for (int f = 0; f < 12; f++) {
		for (int n = 0; n < ALL_OR_SOME(4, 1); n++) {
			schedule_of(of_family(kind, families[f][n]), families[f][n]);
		}
	}
	print_message("# %s: %d files, %d calls, %d above a file's maxBytes, %d files above a "
		      "runtime's limits\n", coll_kind_name(kind), seen.files, seen.calls,
		      seen.excluded, seen.too_large);
	assert_int_equal(seen.bad, 0);
	assert_true(seen.files >= ALL_OR_SOME(40, 10) && seen.calls >= 3 * seen.files);
}

/* By the other protocols, and in several copies side by side. */
static void variants_of(enum coll_kind kind, const char *expr)
{
	struct coll_sched *s = of_family(kind, expr);
	struct err err = { 0 };

	for (int i = 0; i < 8; i++) {
		struct msccl_options o = { .dialect = i & 1 ? MSCCL_RCCL : MSCCL_AZURE,
					   .proto = i / 2 < MSCCL_PROTOS ? i / 2 : MSCCL_SIMPLE,
					   .instances = i % 3 + 1 + i / 6 };
		struct buf text = { 0 };
		struct msccl p;
		int rc = msccl_lower_as(s, &o, &p, &err);

		if (rc == WEFT_ELIMIT) {
			seen.too_large++;
			continue;
		}
		must(rc, &err);
		msccl_write(&p, &text);
		file_of(buf_cstr(&text), expr, o.dialect == MSCCL_RCCL);
		msccl_fini(&p);
		buf_fini(&text);
	}
	coll_free(s);
}

static void test_variants(void **state)
{
	(void)state;
	memset(&seen, 0, sizeof(seen));
	for (int kind = COLL_ALLGATHER; kind <= COLL_BROADCAST; kind++) {
		for (int f = 0; f < 12; f++) {
			for (int n = 0; n < ALL_OR_SOME(2, f % 4 == 0); n++) {
				variants_of((enum coll_kind)kind, families[f][n]);
			}
		}
	}
	print_message("# variants: %d files, %d calls, %d above a file's maxBytes, %d files above "
		      "a runtime's limits\n", seen.files, seen.calls, seen.excluded,
		      seen.too_large);
	assert_int_equal(seen.bad, 0);
	assert_true(seen.files > seen.too_large);
}

static void construction(struct coll_sched *s)
{
	schedule_of(s, "a construction");
}

/* Constructions, and the same in batches that overlap. */
static void test_made_otherwise(void **state)
{
	(void)state;
	memset(&seen, 0, sizeof(seen));
	for_each_construction(construction);
	assert_int_equal(seen.bad, 0);
	assert_true(seen.calls > 20);
}

/* By LL of RCCL, where nothing can wait for a send to be over. */
static void by_ll(struct coll_sched *s)
{
	struct msccl_options o = { .dialect = MSCCL_RCCL, .proto = MSCCL_LL, .instances = 1 };
	struct buf text = { 0 };
	struct err err = { 0 };
	struct msccl p;

	must(msccl_lower_as(s, &o, &p, &err), &err);
	assert_true(p.max_bytes == 0);
	msccl_write(&p, &text);
	file_of(buf_cstr(&text), "an exchange", true);
	msccl_fini(&p);
	buf_fini(&text);
	coll_free(s);
}

/* Partners send each other a sum to which they add in the same round. */
static void test_exchanges_by_ll(void **state)
{
	(void)state;
	memset(&seen, 0, sizeof(seen));
	for_each_on_coordinates(by_ll);
	assert_int_equal(seen.bad, 0);
	assert_true(seen.calls > 20);
}

static void test_allgather(void **state)
{
	(void)state;
	sizes_of(COLL_ALLGATHER);
}

static void test_reduce_scatter(void **state)
{
	(void)state;
	sizes_of(COLL_REDUCE_SCATTER);
}

static void test_allreduce(void **state)
{
	(void)state;
	sizes_of(COLL_ALLREDUCE);
}

static void test_alltoall(void **state)
{
	(void)state;
	sizes_of(COLL_ALLTOALL);
}

static void test_broadcast(void **state)
{
	(void)state;
	sizes_of(COLL_BROADCAST);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_allgather),
		cmocka_unit_test(test_reduce_scatter),
		cmocka_unit_test(test_allreduce),
		cmocka_unit_test(test_alltoall),
		cmocka_unit_test(test_broadcast),
		cmocka_unit_test(test_variants),
		cmocka_unit_test(test_made_otherwise),
		cmocka_unit_test(test_exchanges_by_ll),
	};

	/* Clocks are made again for every call; the pages stay. */
	mallopt(M_TRIM_THRESHOLD, 1 << 30);
	mallopt(M_MMAP_THRESHOLD, 1 << 30);
	return cmocka_run_group_tests_name("msccl/every_size", tests, NULL, NULL);
}
