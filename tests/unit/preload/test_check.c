/* SPDX-License-Identifier: Apache-2.0 */
/* The files of a table: compared with their entries, proven, and, where every rank has its own,
 * found to be of one schedule. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/base/file.h"
#include "runtime/preload/table.h"
#include "tests/unit/schedule/common.h"

static char folder[256];

static const char *path_of(const char *name)
{
	static char path[512];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return path;
}

static void write_schedule(const char *name, const struct coll_sched *s)
{
	struct buf b = { 0 };
	struct err err = { 0 };

	coll_to_json(s, &b);
	must(file_write_atomic(path_of(name), b.data, b.len, FILE_PUBLIC, &err), &err);
	buf_fini(&b);
}

static struct preload_entry entry_of(const char *name)
{
	struct preload_entry e = { .max_bytes = INT64_MAX, .kind = -1, .ranks = -1, .root = -1,
				   .line = 7, .col = 3, .per_rank = strchr(name, '%') != NULL };

	strcpy(e.file, path_of(name));
	return e;
}

static void schedules_are_checked(void **state)
{
	struct coll_sched *s = bfb(COLL_ALLREDUCE, "Torus(3,4)");
	struct preload_entry e;
	struct err err = { 0 };
	char *data;
	size_t len;

	(void)state;
	write_schedule("all.json", s);
	e = entry_of("all.json");
	must(preload_entry_check(&e, "t.yaml", 12, &err), &err);
	assert_true(e.usable && e.digest);
	assert_int_equal(e.kind, COLL_ALLREDUCE);
	assert_int_equal(e.ranks, 12);
	assert_int_equal(e.root, 0);
	must(preload_entry_read(&e, 5, &data, &len, &err), &err);
	free(data);
	/* A byte more: it is another file now. */
	must(file_read(path_of("all.json"), 1 << 20, &data, &len, &err), &err);
	data[len] = '\n';
	must(file_write_atomic(path_of("all.json"), data, len + 1, FILE_PUBLIC, &err), &err);
	free(data);
	assert_int_equal(preload_entry_read(&e, 5, &data, &len, &err), WEFT_ESTALE);
	assert_null(data);
	/* More ranks than there are: not used, and no mistake. */
	e = entry_of("all.json");
	must(preload_entry_check(&e, "t.yaml", 11, &err), &err);
	assert_false(e.usable);
	e = entry_of("absent.json");
	e.ranks = 12;
	must(preload_entry_check(&e, "t.yaml", 11, &err), &err);
	assert_false(e.usable);
	coll_free(s);
}

static void refused(struct preload_entry e, int code, const char *what)
{
	struct err err = { 0 };

	assert_int_equal(preload_entry_check(&e, "t.yaml", 16, &err), code);
	if (!strstr(err.msg, what)) {
		fail_msg("%s: not %s", err.msg, what);
	}
	assert_string_equal(err.file, "t.yaml");
	assert_true(err.line == 7 && err.col == 3);
	assert_false(e.usable);
}

static void statements_are_compared(void **state)
{
	struct coll_sched *s = bfb(COLL_ALLGATHER, "C(7,{1,2})");
	struct preload_entry e;

	(void)state;
	write_schedule("gather.json", s);
	coll_free(s);
	e = entry_of("gather.json");
	e.kind = COLL_ALLTOALL;
	refused(e, WEFT_EINVAL, "of allgather, not of all-to-all");
	e = entry_of("gather.json");
	e.ranks = 8;
	refused(e, WEFT_EINVAL, "for 7 ranks, not for 8");
	refused(entry_of("absent.json"), WEFT_ENOTFOUND, "absent.json");
}

static void wrong_schedules_are_refused(void **state)
{
	static const char text[] = "{\"not\": \"a schedule\"}";
	struct coll_sched *s = empty(COLL_ALLGATHER, "K(3)", 1), *part;
	struct coll_sched *gather = empty(COLL_GATHER, "K(3)", 1);
	struct coll_xfer x = { .arc = 0, .origin = 0, .dest = COLL_NO_DEST };
	struct err err = { 0 };

	(void)state;
	must(coll_add(s, &x, &err), &err);
	must(coll_finish(s, &err), &err);
	write_schedule("half.json", s);
	refused(entry_of("half.json"), WEFT_EVERIFY, "half.json");
	must(coll_finish(gather, &err), &err);
	write_schedule("root.json", gather);
	refused(entry_of("root.json"), WEFT_EUNSUPPORTED, "gather");
	must(file_write_atomic(path_of("bad.json"), text, strlen(text), FILE_PUBLIC, &err), &err);
	refused(entry_of("bad.json"), WEFT_EINVAL, "bad.json");
	must(coll_part_of(s, 0, &part, &err), &err);
	write_schedule("part.json", part);
	refused(entry_of("part.json"), WEFT_EINVAL, "parts have %r");
	write_schedule("whole-0.json", s);
	refused(entry_of("whole-%r.json"), WEFT_EINVAL, "not its part");
	coll_free(part);
	coll_free(gather);
	coll_free(s);
}

/* ---- parts ---- */

static struct coll_sched *part_of(const struct coll_sched *s, int rank)
{
	struct coll_sched *part;
	struct err err = { 0 };

	must(coll_part_of(s, rank, &part, &err), &err);
	return part;
}

static void parts_go_together(void **state)
{
	static const char *const graphs[] = { "Torus(3,4)", "GenKautz(2,9)", "K(5)", "Mesh(2,3)" };
	static const enum coll_kind kinds[] = { COLL_ALLGATHER, COLL_ALLREDUCE,
						COLL_REDUCE_SCATTER };

	(void)state;
	for (int k = 0; k < 12; k++) {
		struct coll_sched *s = bfb(kinds[k % 3], graphs[k / 3]);
		uint64_t sum = 0, first = 0;

		for (int r = 0; r < coll_ranks(s); r++) {
			struct coll_sched *part = part_of(s, r);

			first = r ? first : preload_identity(part);
			assert_true(preload_identity(part) == first);
			sum += preload_balance(part, r);
			coll_free(part);
		}
		assert_true(sum == 0);
		coll_free(s);
	}
}

/* One rank has the part of another schedule on the same arcs. */
static void parts_of_two_schedules_do_not(void **state)
{
	struct coll_sched *s = bfb(COLL_ALLGATHER, "Torus(3,4)"), *other;
	struct err err = { 0 };
	uint64_t sum = 0;

	(void)state;
	must(coll_bfb_cut(COLL_ALLGATHER, graph_of("Torus(3,4)"), coll_chunks(s) * 2, &other, &err),
	     &err);
	for (int r = 0; r < 12; r++) {
		struct coll_sched *part = part_of(r == 4 ? other : s, r);

		sum += preload_balance(part, r);
		coll_free(part);
	}
	assert_true(sum != 0);
	assert_true(preload_identity(s) != preload_identity(other));
	coll_free(other);
	coll_free(s);
}

static void parts_are_of_their_rank(void **state)
{
	struct coll_sched *s = bfb(COLL_ALLREDUCE, "K(4)"), *part = part_of(s, 2), *out;
	struct preload_entry e = entry_of("p-%r.json");
	char name[PRELOAD_MAX_FILE];
	struct err err = { 0 };
	char *data;
	size_t len;

	(void)state;
	write_schedule("p-2.json", part);
	write_schedule("p-0.json", part);
	refused(e, WEFT_EINVAL, "for rank 0, the part of rank 2");
	coll_free(part);
	part = part_of(s, 0);
	write_schedule("p-0.json", part);
	must(preload_entry_check(&e, "t.yaml", 16, &err), &err);
	assert_true(e.usable && e.ranks == 4);
	must(preload_file_name(&e, 2, name, &err), &err);
	assert_string_equal(name, path_of("p-2.json"));
	must(preload_entry_read(&e, 2, &data, &len, &err), &err);
	must(preload_entry_schedule(&e, 2, data, len, &out, &err), &err);
	coll_free(out);
	assert_int_equal(preload_entry_schedule(&e, 3, data, len, &out, &err), WEFT_EINVAL);
	assert_null(out);
	free(data);
	coll_free(part);
	coll_free(s);
}

static int make_folder(void **state)
{
	const char *tmp = getenv("TMPDIR");

	(void)state;
	snprintf(folder, sizeof(folder), "%s/preload.XXXXXX", tmp ? tmp : "/tmp");
	return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
	static const char *const names[] = { "all.json", "gather.json", "half.json", "root.json",
					     "bad.json", "part.json", "whole-0.json", "p-2.json",
					     "p-0.json" };

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		unlink(path_of(names[i]));
	}
	return rmdir(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(schedules_are_checked),
		cmocka_unit_test(statements_are_compared),
		cmocka_unit_test(wrong_schedules_are_refused),
		cmocka_unit_test(parts_go_together),
		cmocka_unit_test(parts_of_two_schedules_do_not),
		cmocka_unit_test(parts_are_of_their_rank),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
