/* Light between emulators: what arrives where, by wiring and maps. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "drivers/emulators/lab.h"
#include "lib/base/file.h"

static char folder[] = "/tmp/weft-lab-XXXXXX";

static void put(const char *name, const char *text)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	assert_int_equal(file_write_atomic(path, text, strlen(text), 0644,
					   NULL), 0);
}

static int make_folder(void **state)
{
	(void)state;
	return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
	static const char *const names[] = { "wiring", "a.map", "b.map" };
	char path[128];

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
		unlink(path);
	}
	return rmdir(folder);
}

static int32_t at(const char *place)
{
	int32_t mdbm = 1;

	assert_int_equal(lab_arriving(folder, place, &mdbm, NULL), 0);
	return mdbm;
}

static void losses_add_up(void **state)
{
	(void)state;
	put("wiring", "# two switches\nlaser a.in1 -3.25\n\n"
	    "fibre a.out3 b.in2 0.5\nfibre b.out1 a.in4 1.25\n");
	put("a.map", "1 3 700\n");
	put("b.map", "2 1 600\n");
	assert_int_equal(at("a.in1"), -3250);
	assert_int_equal(at("b.in2"), -4450);
	assert_int_equal(at("a.in4"), -6300);
	assert_int_equal(at("a.in2"), LAB_DARK_MDBM);
}

static void dark_without_circuit(void **state)
{
	(void)state;
	put("wiring", "laser a.in1 -3\nfibre a.out3 b.in2 0.5\n"
	    "fibre c.out1 b.in3 0\nfibre a.in1 b.in4 0\n");
	put("a.map", "1 2 700\n");
	assert_int_equal(at("b.in2"), LAB_DARK_MDBM);
	assert_int_equal(at("b.in3"), LAB_DARK_MDBM);
	assert_int_equal(at("b.in4"), LAB_DARK_MDBM);
}

static void a_ring_without_laser_is_dark(void **state)
{
	(void)state;
	put("wiring", "fibre a.out1 b.in1 0\nfibre b.out1 a.in1 0\n");
	put("a.map", "1 1 500\n");
	put("b.map", "1 1 500\n");
	assert_int_equal(at("a.in1"), LAB_DARK_MDBM);
}

static void wrong_lines_are_named(void **state)
{
	static const char *const wrong[] = {
		"laser a.in1", "laser a.in1 nan", "laser a.in1 1e9",
		"fibre a.out1 b.in1", "fibre a.out1 b.in1 -1",
		"fibre a.out1 b.in1 1 2", "light a.in1 0",
	};
	char text[128];

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct err err = { 0 };
		int32_t mdbm;

		snprintf(text, sizeof(text), "laser a.in2 0\n%s\n", wrong[i]);
		put("wiring", text);
		assert_int_equal(lab_arriving(folder, "a.in2", &mdbm, &err),
				 WEFT_EINVAL);
		assert_non_null(strstr(err.msg, "line 2"));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(losses_add_up),
		cmocka_unit_test(dark_without_circuit),
		cmocka_unit_test(a_ring_without_laser_is_dark),
		cmocka_unit_test(wrong_lines_are_named),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
