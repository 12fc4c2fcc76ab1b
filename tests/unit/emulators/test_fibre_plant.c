/* SPDX-License-Identifier: Apache-2.0 */
/* Light between emulators: what arrives where, by wiring and maps. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "drivers/emulators/core/fibre_plant.h"
#include "lib/base/file.h"

static char folder[] = "/tmp/weft-lab-XXXXXX";

static void put(const char *name, const char *text)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	assert_int_equal(file_write_atomic(path, text, strlen(text), FILE_PUBLIC,
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

	assert_int_equal(plant_arriving_mdbm(folder, place, &mdbm, NULL), 0);
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
	assert_int_equal(at("a.in2"), PLANT_DARK_MDBM);
}

static void dark_without_circuit(void **state)
{
	(void)state;
	put("wiring", "laser a.in1 -3\nfibre a.out3 b.in2 0.5\n"
	    "fibre c.out1 b.in3 0\nfibre a.in1 b.in4 0\n");
	put("a.map", "1 2 700\n");
	assert_int_equal(at("b.in2"), PLANT_DARK_MDBM);
	assert_int_equal(at("b.in3"), PLANT_DARK_MDBM);
	assert_int_equal(at("b.in4"), PLANT_DARK_MDBM);
}

static void a_ring_without_laser_is_dark(void **state)
{
	(void)state;
	put("wiring", "fibre a.out1 b.in1 0\nfibre b.out1 a.in1 0\n");
	put("a.map", "1 1 500\n");
	put("b.map", "1 1 500\n");
	assert_int_equal(at("a.in1"), PLANT_DARK_MDBM);
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
		assert_int_equal(plant_arriving_mdbm(folder, "a.in2", &mdbm, &err),
				 WEFT_EINVAL);
		assert_non_null(strstr(err.msg, "line 2"));
	}
}

/* ---- what a switch writes ---- */

static bool input_1_is_dark(struct emu *e, struct optics_xc xc)
{
	(void)e;
	return xc.in == 1;
}

static bool one_is_stale(const struct emu *e, size_t i, struct optics_xc *xc)
{
	(void)e;
	*xc = (struct optics_xc){ 2, 0 };
	return i == 0;
}

static const struct emu_dialect own = { .name = "own", .kind = DRV_SPACE,
					.dark = input_1_is_dark,
					.stale = one_is_stale };

static void begin(struct emu *e)
{
	*e = (struct emu){ .conf = { .name = "a", .plant = folder },
			   .dialect = &own };
	xc_map_init(&e->mem, DRV_SPACE, 4, 4, false);
	e->faults.mem = &e->mem;
	for (int i = 0; i < 2; i++) {
		xc_map_connect(&e->mem, (struct optics_xc){ i, i + 1 });
	}
	put("wiring", "laser a.in1 -3\nlaser a.in2 -3\nlaser a.in3 -4\n"
	    "fibre a.out1 b.in1 0\nfibre a.out2 b.in2 0\n"
	    "fibre a.out3 b.in3 0\nfibre a.out4 b.in4 0\n");
	assert_int_equal(plant_publish(e, NULL), 0);
}

static void end(struct emu *e)
{
	xc_map_fini(&e->mem);
	faults_fini(&e->faults);
}

/* Light is where the hardware has it: not by a circuit that failed, and by one
 * that is deleted as text only. */
static void light_that_is_not_the_map(void **state)
{
	struct emu e;

	(void)state;
	begin(&e);
	assert_true(at("b.in2") > PLANT_DARK_MDBM);
	assert_int_equal(plant_port_mdbm(&e, 4 + 1), at("b.in2"));
	assert_int_equal(at("b.in3"), PLANT_DARK_MDBM);
	assert_int_equal(plant_port_mdbm(&e, 4 + 2), PLANT_DARK_MDBM);
	assert_true(at("b.in1") < -4000 && at("b.in1") > -5500);
	end(&e);
}

/* The fault `misrouted`: the map is as commanded, the light elsewhere. */
static void light_goes_astray(void **state)
{
	struct emu e;

	(void)state;
	begin(&e);
	assert_int_equal(faults_add(&e.faults, "misrouted=i0:o3", NULL), 0);
	assert_int_equal(plant_publish(&e, NULL), 0);
	assert_true(xc_map_has(&e.mem, (struct optics_xc){ 0, 1 }));
	assert_int_equal(at("b.in2"), PLANT_DARK_MDBM);
	assert_int_equal(plant_port_mdbm(&e, 4 + 1), PLANT_DARK_MDBM);
	assert_true(at("b.in4") > PLANT_DARK_MDBM);
	assert_int_equal(plant_port_mdbm(&e, 4 + 3), at("b.in4"));
	assert_int_equal(plant_port_mdbm(&e, 0), -3000);
	xc_map_clear(&e.mem);
	assert_int_equal(plant_publish(&e, NULL), 0);
	assert_int_equal(at("b.in4"), PLANT_DARK_MDBM);
	end(&e);
}

/* Without a lab there is light at every circuit, also then. */
static void astray_without_a_lab(void **state)
{
	struct emu e;

	(void)state;
	begin(&e);
	e.conf.plant = NULL;
	assert_true(plant_port_mdbm(&e, 4 + 1) > PLANT_DARK_MDBM);
	assert_int_equal(plant_port_mdbm(&e, 4 + 3), PLANT_DARK_MDBM);
	assert_int_equal(faults_add(&e.faults, "misrouted=i0:o3", NULL), 0);
	assert_int_equal(plant_port_mdbm(&e, 4 + 1), PLANT_DARK_MDBM);
	assert_true(plant_port_mdbm(&e, 4 + 3) > PLANT_DARK_MDBM);
	assert_true(plant_port_mdbm(&e, 0) > PLANT_DARK_MDBM);
	end(&e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(losses_add_up),
		cmocka_unit_test(dark_without_circuit),
		cmocka_unit_test(a_ring_without_laser_is_dark),
		cmocka_unit_test(wrong_lines_are_named),
		cmocka_unit_test(light_that_is_not_the_map),
		cmocka_unit_test(light_goes_astray),
		cmocka_unit_test(astray_without_a_lab),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
