/* SPDX-License-Identifier: Apache-2.0 */
/* `sim`: its troubles come when asked for and repeat with the seed; and the
 * state file that it shares with the emulators. */
#include "tests/unit/drivers/rig.h"

#include "drivers/core/xc_map.h"
#include "lib/base/file.h"

static struct rig *set_up(const char *key, const char *value)
{
	struct rig *r = test_calloc(1, sizeof(*r));

	rig_init(r, "sim", 8, 8, false);
	if (key) {
		rig_option(r, key, value);
	}
	rig_open(r);
	return r;
}

static void tear_down(struct rig *r)
{
	rig_fini(r);
	test_free(r);
}

static const struct drv_item three[] = { ADD(0, 0), ADD(1, 1), ADD(2, 2) };

static void refuses_a_port_when_told(void **state)
{
	struct rig *r = set_up("refuse", "o1");

	(void)state;
	assert_int_equal(rig_submit(r, DRV_SAFE, 3, three), WEFT_EDEVICE);
	rig_expect(r, 0, DRV_DONE);
	rig_expect(r, 1, DRV_REFUSED);
	rig_expect(r, 2, DRV_SKIPPED);
	rig_expect_map(r, "0-0");
	tear_down(r);
}

static void does_half_and_confirms_all(void **state)
{
	struct rig *r = set_up("half", "2");

	(void)state;
	assert_int_equal(rig_submit(r, DRV_SAFE, 3, three), 0);
	rig_expect_map(r, "0-0 1-1");
	tear_down(r);
}

static void restarts_after_an_operation(void **state)
{
	struct rig *r = set_up("restart", "2");

	(void)state;
	assert_int_equal(rig_submit(r, DRV_SAFE, 3, three), 0);
	rig_expect_map(r, "0-0 1-1 2-2");
	assert_string_equal(r->snap.epoch, "boot-1");
	rig_expect_map(r, "");
	assert_string_equal(r->snap.epoch, "boot-2");
	tear_down(r);
}

static void does_not_answer_at_first(void **state)
{
	struct rig *r = set_up("unavailable", "2");

	(void)state;
	assert_int_equal(rig_snapshot(r), WEFT_EUNAVAIL);
	assert_int_equal(rig_submit(r, DRV_SAFE, 3, three), WEFT_EUNAVAIL);
	rig_expect(r, 0, DRV_SKIPPED);
	rig_expect_map(r, "");
	tear_down(r);
}

static void another_user_comes_by(void **state)
{
	struct rig *r = set_up("external", "1");
	int n;

	(void)state;
	assert_int_equal(rig_submit(r, DRV_SAFE, 3, three), 0);
	assert_int_equal(rig_snapshot(r), 0);
	n = r->snap.n_xcs;
	for (int i = 0; i < 3 && i < n; i++) {
		n -= r->snap.xcs[i].xc.in == i && r->snap.xcs[i].xc.out == i;
	}
	/* Something is there that we did not make, or is gone. */
	assert_true(n > 0 || r->snap.n_xcs < 3);
	tear_down(r);
}

/* What went away and came back is in no map. */
static void the_log_has_every_move(void **state)
{
	static const struct drv_item again[] = {
		DEL(1, 1), ADD(1, 5), DEL(1, 5), ADD(1, 1),
	};
	char path[] = "/tmp/weft-sim-XXXXXX";
	int fd = mkstemp(path);
	struct rig *r = set_up("log", path);
	char *text;
	size_t len;

	(void)state;
	assert_true(fd >= 0 && close(fd) == 0);
	assert_int_equal(rig_submit(r, DRV_SAFE, 3, three), 0);
	assert_int_equal(rig_submit(r, DRV_SAFE, 4, again), 0);
	rig_expect_map(r, "0-0 1-1 2-2");
	assert_int_equal(file_read(path, 4096, &text, &len, NULL), 0);
	assert_string_equal(text, "made 0,0\nmade 1,1\nmade 2,2\ngone 1,1\n"
			    "made 1,5\ngone 1,5\nmade 1,1\n");
	free(text);
	unlink(path);
	tear_down(r);
}

/* All results of 60 random changes under chaos, as one string. */
static void run_chaos(const char *seed, char *text)
{
	struct rig *r = test_calloc(1, sizeof(*r));
	struct rng rng;

	rig_init(r, "sim", 8, 8, false);
	rig_option(r, "chaos", "500");
	rig_option(r, "seed", seed);
	rig_open(r);
	rng_seed(&rng, 5);
	for (int i = 0; i < 60; i++) {
		struct drv_item item = ADD((int)rng_below(&rng, 8),
					   (int)rng_below(&rng, 8));

		rig_submit(r, DRV_UPDATE, 1, &item);
		text[i] = "drus"[r->outcomes[0].result];
	}
	text[60] = '\0';
	tear_down(r);
}

static void chaos_repeats_with_the_seed(void **state)
{
	char a[64], b[64], c[64];

	(void)state;
	run_chaos("3", a);
	run_chaos("3", b);
	run_chaos("4", c);
	assert_string_equal(a, b);
	assert_string_not_equal(a, c);
	assert_non_null(strchr(a, 'u'));
	assert_non_null(strchr(a, 'r'));
}

static void refuses_bad_options(void **state)
{
	static const struct drv_option bad[] = {
		{ "seed", "x" }, { "delay_ms", "-1" }, { "fail_port", "i8" },
		{ "fail_port", "3" }, { "restart_map", "none" },
		{ "chaos", "1001" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct drv_config cfg = { .name = "dut", .n_in = 8, .n_out = 8,
					  .options = &bad[i], .n_options = 1 };
		struct err err = { 0 };
		struct drv *dev;
		uv_loop_t loop;

		uv_loop_init(&loop);
		assert_int_equal(drv_open(&loop, "sim", &cfg, &dev, &err),
				 WEFT_EINVAL);
		assert_non_null(strstr(err.msg, bad[i].key));
		assert_int_equal(uv_loop_close(&loop), 0);
	}
}

/* ---- the state file ------------------------------------------------------------ */

static void write_text(const char *path, const char *text)
{
	assert_int_equal(file_write_atomic(path, text, strlen(text), FILE_PRIVATE,
					   NULL), 0);
}

static void a_damaged_state_is_refused(void **state)
{
	static const char *const bad[] = {
		"", "weft device state 1\n", "weft device state 2\n",
		"weft device state 1\nspace 8 8 0\nboots 1\n",
		"weft device state 1\nspace 8 9 0\nboots 1\nend\n",
		"weft device state 1\nring 8 8 0\nboots 1\nend\n",
		"weft device state 1\nspace 8 8 0\nboots 1\nxc 8 0\nend\n",
		"weft device state 1\nspace 8 8 0\nboots 1\nxc 0 0\nxc 0 1\n"
		"end\n",
		"weft device state 1\nspace 8 8 0\nboots 1\nprogram 1\nend\n",
		"weft device state 1\nspace 8 8 0\nboots 1\nend\nend\n",
		"weft device state 1\nspace 8 8 0\nboots 1\nxc  1 1\nend\n",
	};
	struct rig *r = set_up(NULL, NULL);
	struct xc_map m;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		write_text(r->state, bad[i]);
		xc_map_init(&m, DRV_SPACE, 8, 8, false);
		assert_int_equal(xc_map_load(&m, r->state, NULL), WEFT_EINVAL);
		for (int port = 0; port < m.n_ports; port++) {
			assert_int_equal(m.peer[port], -1);
		}
		xc_map_fini(&m);
	}
	tear_down(r);
}

static void a_program_survives_its_state(void **state)
{
	static struct ring_setting v[] = {
		{ 0, 1, 2, OPTICS_CCW, 3, RESONATOR_ADD },
		{ 4, 7, 6, OPTICS_CW, 0, RESONATOR_ADD_DROP },
	};
	const struct ring_settings p = { 5, 2, v };
	struct rig *r = set_up(NULL, NULL);
	struct xc_map a, b;

	(void)state;
	xc_map_init(&a, DRV_RING, 8, 8, false);
	xc_map_init(&b, DRV_RING, 8, 8, false);
	a.programs = packed(8, 8, 4, &p);
	a.boots = 9;
	assert_int_equal(xc_map_save(&a, r->state, NULL), 0);
	assert_int_equal(xc_map_load(&b, r->state, NULL), 0);
	assert_int_equal(b.programs.n, 1);
	assert_int_equal(b.boots, 9);
	assert_true(ring_programs_equal(&a.programs, &b.programs));
	xc_map_fini(&a);
	xc_map_fini(&b);
	tear_down(r);
}

/* ---- the registry ----------------------------------------------------------------- */

static void drivers_are_sorted_and_found(void **state)
{
	const struct drv_class *const *all = drv_all();

	(void)state;
	for (int i = 0; all[i]; i++) {
		assert_ptr_equal(drv_find(all[i]->name), all[i]);
		assert_int_equal(all[i]->abi, DRV_ABI);
		assert_true(all[i]->summary[0] != '\0');
		if (i) {
			assert_true(strcmp(all[i - 1]->name, all[i]->name) < 0);
		}
	}
	assert_null(drv_find("nothing"));
}

static void an_unknown_driver_lists_the_known(void **state)
{
	struct drv_config cfg = { .name = "dut", .n_in = 1, .n_out = 1 };
	struct err err = { 0 };
	struct drv *dev;
	uv_loop_t loop;

	(void)state;
	uv_loop_init(&loop);
	assert_int_equal(drv_open(&loop, "nothing", &cfg, &dev, &err),
			 WEFT_ENOTFOUND);
	assert_non_null(strstr(err.msg, "polatis-scpi"));
	assert_int_equal(uv_loop_close(&loop), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(refuses_a_port_when_told),
		cmocka_unit_test(does_half_and_confirms_all),
		cmocka_unit_test(restarts_after_an_operation),
		cmocka_unit_test(does_not_answer_at_first),
		cmocka_unit_test(another_user_comes_by),
		cmocka_unit_test(the_log_has_every_move),
		cmocka_unit_test(chaos_repeats_with_the_seed),
		cmocka_unit_test(refuses_bad_options),
		cmocka_unit_test(a_damaged_state_is_refused),
		cmocka_unit_test(a_program_survives_its_state),
		cmocka_unit_test(drivers_are_sorted_and_found),
		cmocka_unit_test(an_unknown_driver_lists_the_known),
	};

	return cmocka_run_group_tests_name("drivers/sim", tests, NULL, NULL);
}
