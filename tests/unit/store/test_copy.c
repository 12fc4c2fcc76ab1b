/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The second copy: a store that is gone, empty, damaged or without its log is replaced by it, and
 * nothing else is.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "lib/base/file.h"
#include "tests/unit/store/common.h"

#define OK(call) must(call, #call)

static struct err err;

static void must(int rc, const char *what)
{
	if (rc) {
		fail_msg("%s: %s", what, err.msg);
	}
}

static int setup(void **state)
{
	struct place *p = malloc(sizeof(*p));

	place_make(p);
	*state = p;
	err = (struct err){ 0 };
	return 0;
}

static int teardown(void **state)
{
	place_remove(*state);
	free(*state);
	return 0;
}

static const char *beside(const struct place *p, const char *end)
{
	static char path[2][128];
	static int next;

	next = !next;
	snprintf(path[next], sizeof(path[next]), "%s%s", p->path, end);
	return path[next];
}

/* A committed change of this text, and a drain by its name. */
static void change(struct store *s, const char *text)
{
	struct store_journal j = journal_of(3, -1, 7);

	OK(begin(s, &j, text, &err));
	OK(store_commit(s, j.change.id, "", 3, &err));
	store_journal_fini(&j);
	OK(store_drain(s, text, "uid 1", "", &err));
}

/* How many drains there are; `what` is one of them, if it is not NULL. */
static int drains(struct store *s, const char *what)
{
	struct store_drain *v = NULL;
	int n = 0;
	bool found = !what;

	OK(store_drains(s, &v, &n, &err));
	for (int i = 0; i < n; i++) {
		found = found || strcmp(v[i].what, what) == 0;
	}
	assert_true(found);
	store_drains_free(v, n);
	return n;
}

/* A store with a copy of two changes; returns its fence. */
static uint64_t make_with_copy(const struct place *p)
{
	struct store *s = must_open(p);
	const uint64_t fence = store_fence(s);

	change(s, "first");
	store_audit(s, 1, "sw", STORE_COMMAND, "set 1,2");
	change(s, "second");
	OK(store_copy(s, &err));
	store_free(s);
	return fence;
}

static struct store *open_again(const struct place *p, struct store_taken *taken)
{
	struct store *s = NULL;

	OK(store_open_or_copy(p->path, store_open, &s, taken, &err));
	return s;
}

/* It was replaced, with all that the copy had, and the fence has grown. */
static void assert_replaced(const struct place *p, uint64_t fence, const char *why)
{
	struct store_taken taken;
	struct store *s = open_again(p, &taken);
	struct store_config c;
	struct store_light l;

	assert_non_null(strstr(taken.why, why));
	assert_string_equal(taken.refused, "");
	assert_true(store_fence(s) > fence);
	assert_int_equal(drains(s, "second"), 2);
	OK(store_config(s, &c, &err));
	assert_string_equal(c.config.text, "second");
	store_config_fini(&c);
	OK(store_intent(s, "sw", &l, &err));
	assert_true(l.n_xcs > 0);
	store_light_fini(&l);
	assert_true(!taken.kept[0] || access(taken.kept, F_OK) == 0);
	change(s, "third");
	store_free(s);
	s = open_again(p, &taken);
	assert_string_equal(taken.why, "");
	store_free(s);
}

static void test_gone(void **state)
{
	struct place *p = *state;
	const uint64_t fence = make_with_copy(p);

	assert_int_equal(unlink(p->path), 0);
	assert_replaced(p, fence, "is gone");
}

/* As after a crash: the log that is left is not the copy's. */
static void test_gone_but_its_log(void **state)
{
	struct place *p = *state;
	const uint64_t fence = make_with_copy(p);
	struct store *s = must_open(p);
	char *log;
	size_t len;

	store_audit(s, 1, "sw", STORE_COMMAND, "set 3,4");
	OK(file_read(beside(p, "-wal"), 1 << 24, &log, &len, &err));
	assert_true(len > 0);
	store_free(s);
	OK(file_write_atomic(beside(p, "-wal"), log, len, FILE_PRIVATE, &err));
	free(log);
	assert_int_equal(unlink(p->path), 0);
	assert_replaced(p, fence, "is gone");
	assert_int_equal(access(beside(p, ".replaced-wal"), F_OK), 0);
}

static void test_empty(void **state)
{
	struct place *p = *state;
	const uint64_t fence = make_with_copy(p);

	assert_int_equal(truncate(p->path, 0), 0);
	assert_replaced(p, fence, "is empty");
}

/* A bit of each of its pages in turn. */
static void test_damaged(void **state)
{
	struct place *p = *state;
	uint64_t fence = make_with_copy(p);
	int taken_times = 0;
	char *good, *bad;
	size_t len;

	OK(file_read(p->path, 1 << 24, &good, &len, &err));
	bad = malloc(len);
	for (size_t at = 96; at < len; at += 4096) {
		struct store_taken taken;
		struct store *s;

		memcpy(bad, good, len);
		bad[at + 3999] ^= 8;
		OK(file_write_atomic(p->path, bad, len, FILE_PRIVATE, &err));
		s = open_again(p, &taken);
		taken_times += taken.why[0] != '\0';
		assert_true(store_fence(s) > fence);
		assert_int_equal(drains(s, "second"), 2);
		store_free(s);
	}
	assert_true(taken_times > 5);
	free(good);
	free(bad);
}

/* The file as it was without its log, which has the second change. */
static void test_lost_log(void **state)
{
	struct place *p = *state;
	struct store *s = must_open(p);
	const uint64_t fence = store_fence(s);
	char *bytes;
	size_t len;

	change(s, "first");
	OK(store_copy(s, &err));	/* merges the log */
	OK(file_read(p->path, 1 << 24, &bytes, &len, &err));
	change(s, "second");
	OK(store_copy(s, &err));
	store_free(s);
	OK(file_write_atomic(p->path, bytes, len, FILE_PRIVATE, &err));
	free(bytes);
	assert_replaced(p, fence, "its log was lost");
}

/* As after any crash. */
static void test_copy_is_older(void **state)
{
	struct place *p = *state;
	struct store_taken taken;
	struct store *s;

	make_with_copy(p);
	s = must_open(p);
	change(s, "third");
	store_free(s);
	s = open_again(p, &taken);
	assert_string_equal(taken.why, "");
	assert_int_equal(drains(s, "third"), 3);
	store_free(s);
}

static void flip(const char *path)
{
	char *bytes;
	size_t len;

	OK(file_read(path, 1 << 24, &bytes, &len, &err));
	for (size_t at = 4095; at < len; at += 4096) {
		bytes[at] ^= 8;	/* of its eight transactions none is left */
	}
	OK(file_write_atomic(path, bytes, len, FILE_PRIVATE, &err));
	free(bytes);
}

/* Nothing is begun again, and both files stay. */
static void test_both_damaged(void **state)
{
	struct place *p = *state;
	struct store_taken taken;
	struct store *s = NULL;

	make_with_copy(p);
	flip(beside(p, ".copy"));
	flip(p->path);
	assert_int_equal(store_open_or_copy(p->path, store_open, &s, &taken, &err), WEFT_EINVAL);
	assert_non_null(strstr(err.msg, "its copy: "));
	assert_int_equal(unlink(p->path), 0);
	assert_int_equal(store_open_or_copy(p->path, store_open, &s, &taken, &err), WEFT_EINVAL);
	assert_non_null(strstr(err.msg, "is gone; its copy: "));
	assert_int_equal(access(p->path, F_OK), -1);
	assert_int_equal(access(beside(p, ".copy"), F_OK), 0);
}

/* A damaged copy does not keep a good store from being opened, and is made again. */
static void test_copy_damaged(void **state)
{
	struct place *p = *state;
	struct store_taken taken;
	struct store *s;

	make_with_copy(p);
	flip(beside(p, ".copy"));
	s = open_again(p, &taken);
	assert_string_equal(taken.why, "");
	OK(store_copy(s, &err));
	store_free(s);
	assert_int_equal(truncate(p->path, 0), 0);
	s = open_again(p, &taken);
	assert_int_equal(drains(s, "second"), 2);
	store_free(s);
}

/* Rows that change while weftd runs are not copied. */
static void test_damage_is_not_copied(void **state)
{
	struct place *p = *state;
	struct store *s;
	char *before, *after, *bytes, *at;
	size_t len, n;
	int fd;

	make_with_copy(p);
	OK(file_read(beside(p, ".copy"), 1 << 24, &before, &len, &err));
	s = must_open(p);
	OK(file_read(p->path, 1 << 24, &bytes, &n, &err));
	at = memmem(bytes, n, "second", 6);
	assert_non_null(at);
	fd = open(p->path, O_WRONLY);
	assert_int_equal(pwrite(fd, "tecond", 6, at - bytes), 6);
	close(fd);
	assert_int_equal(store_copy(s, &err), WEFT_EINVAL);
	OK(file_read(beside(p, ".copy"), 1 << 24, &after, &n, &err));
	assert_int_equal(n, len);
	assert_memory_equal(before, after, len);
	store_free(s);
	free(before);
	free(after);
	free(bytes);
}

/* Another store that was put there is no loss; what replaces one keeps the copy out of the way. */
static void test_other_store(void **state)
{
	static const struct store_export all = { .history = true };
	struct place *p = *state;
	struct buf text = { 0 };
	struct store_import done;
	struct store_taken taken;
	struct store *s;

	make_with_copy(p);
	assert_int_equal(unlink(p->path), 0);
	store_free(must_open(p));
	s = open_again(p, &taken);
	assert_string_equal(taken.why, "");
	store_free(s);
	OK(store_export(beside(p, ".copy"), &all, &text, &err));
	OK(store_import(p->path, "text", text.data, text.len, true, &done, &err));
	buf_fini(&text);
	s = open_again(p, &taken);
	assert_string_equal(taken.why, "");
	assert_int_equal(drains(s, "second"), 2);
	store_free(s);
	assert_int_equal(access(beside(p, ".copy"), F_OK), -1);
	assert_int_equal(access(beside(p, ".copy.replaced"), F_OK), 0);
}

/* It has the newest changes only, no audit trail, and is of its owner alone. */
static void test_what_it_has(void **state)
{
	struct place *p = *state;
	struct store_audit_query all = { .limit = 10 };
	struct store_audit *lines;
	struct store_change *v;
	struct store_taken taken;
	struct store *s = must_open(p);
	struct stat st;
	int n;

	for (int i = 0; i < 130; i++) {
		struct store_journal j = journal_of(1, -1, 7);

		OK(begin(s, &j, "again", &err));
		store_audit(s, j.change.id, "sw", STORE_COMMAND, "set 1,2");
		OK(store_commit(s, j.change.id, "", 3, &err));
		store_journal_fini(&j);
	}
	OK(store_copy(s, &err));
	store_free(s);
	assert_int_equal(stat(beside(p, ".copy"), &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_int_equal(unlink(p->path), 0);
	s = open_again(p, &taken);
	OK(store_history(s, 0, 1000, &v, &n, &err));
	assert_int_equal(n, 100);
	assert_int_equal(v[0].id, 130);
	store_history_free(v, n);
	OK(store_audit_read(s, &all, &lines, &n, &err));
	assert_int_equal(n, 0);
	store_audit_free(lines, n);
	store_free(s);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(test_gone), T(test_gone_but_its_log),
		T(test_empty), T(test_damaged), T(test_lost_log),
		T(test_copy_is_older), T(test_both_damaged), T(test_copy_damaged),
		T(test_damage_is_not_copied), T(test_other_store), T(test_what_it_has),
	};

	return cmocka_run_group_tests_name("store/copy", tests, NULL, NULL);
}
