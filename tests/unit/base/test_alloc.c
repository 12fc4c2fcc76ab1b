/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that is there, and what happens where it ends. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/alloc.h"
#include "lib/base/buf.h"
#include "lib/base/vec.h"

static void test_there(void **state)
{
	static const char zeros[64];
	char *p = x_new(16, 4), *none = x_new(0, 8), *copy;

	(void)state;
	assert_memory_equal(p, zeros, 64);
	memset(p, 7, 64);
	p = x_grow(p, 1000, 4);
	assert_int_equal(p[63], 7);
	assert_non_null(none);
	free(none);
	none = x_grow(NULL, 0, 8);
	assert_non_null(none);
	copy = x_ndup("fabric", 3);
	assert_string_equal(copy, "fab");
	free(copy);
	copy = x_dup("");
	assert_string_equal(copy, "");
	free(copy);
	free(none);
	free(p);
}

/* More than there can be, without asking the C library, of which sanitizers know more. */
static void ask_too_much(void *arg)
{
	struct buf b = { 0 };
	VEC(int64_t) v = { 0 };

	switch (*(int *)arg) {
	case 0:
		free(x_new(SIZE_MAX / 4, 8));
		break;
	case 1:
		free(x_alloc(SIZE_MAX, 2));
		break;
	case 2:
		free(x_grow(NULL, SIZE_MAX / 2, 3));
		break;
	case 3:
		vec_reserve(&v, SIZE_MAX / 4);
		break;
	case 4:
		buf_char(&b, 'x');
		buf_extend(&b, SIZE_MAX);
		break;
	default:
		free(x_have(NULL));
	}
}

static void tell(const char *line)
{
	(void)!write(STDOUT_FILENO, line, strlen(line));
}

/* What a process says that runs out of memory in case `which`, and its exit code. */
static int end_of(int which, bool told, char *said, size_t size)
{
	int ends[2], status;
	ssize_t n;
	pid_t pid;

	assert_int_equal(pipe(ends), 0);
	pid = fork();
	if (pid == 0) {
		dup2(ends[1], told ? STDOUT_FILENO : STDERR_FILENO);
		if (told) {
			alloc_on_end("test", 75, tell);
		}
		ask_too_much(&which);
		_exit(0);
	}
	close(ends[1]);
	n = read(ends[0], said, size - 1);
	said[n > 0 ? n : 0] = '\0';
	close(ends[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void test_end(void **state)
{
	char said[200];

	(void)state;
	for (int which = 0; which <= 5; which++) {
		assert_int_equal(end_of(which, false, said, sizeof(said)), 71);
		assert_ptr_equal(strstr(said, "weft: out of memory"), said);
		assert_ptr_equal(strchr(said, '\n'), said + strlen(said) - 1);
	}
	assert_int_equal(end_of(0, true, said, sizeof(said)), 75);
	assert_ptr_equal(strstr(said, "out of memory"), said);
	assert_null(strchr(said, '\n'));
}

static void test_try(void **state)
{
	int which = 0, fine = -1;

	(void)state;
	assert_false(alloc_try(ask_too_much, &which));
	assert_true(alloc_try(free, NULL));
	assert_false(alloc_try(ask_too_much, &fine));
	/* Tried no more: the process would end. */
	assert_int_equal(end_of(0, false, (char[200]){ 0 }, 200), 71);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_there),
		cmocka_unit_test(test_end),
		cmocka_unit_test(test_try),
	};

	return cmocka_run_group_tests_name("base/alloc", tests, NULL, NULL);
}
