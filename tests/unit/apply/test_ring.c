/* SPDX-License-Identifier: Apache-2.0 */
/* Ring programs: loaded, read back, taken back. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "rig.h"
#include "tests/unit/packed.h"

static struct ring_programs red, blue;

/* Every node adds one channel in every step. */
static struct ring_programs program_of(uint32_t steps, uint16_t channel)
{
	struct ring_settings p = { .steps = steps, .n = steps * 4 };
	struct ring_programs r;

	p.v = calloc(p.n, sizeof(*p.v));
	for (size_t i = 0; i < p.n; i++) {
		p.v[i] = (struct ring_setting){
			.step = (uint16_t)(i / 4), .node = (uint16_t)(i % 4),
			.channel = channel, .mode = RESONATOR_ADD,
		};
	}
	r = packed(4, 8, 1, &p);
	ring_settings_fini(&p);
	return r;
}

static int setup(void **state)
{
	red = program_of(3, 1);
	blue = program_of(5, 2);
	return rig_setup(state);
}

static int teardown(void **state)
{
	ring_programs_fini(&red);
	ring_programs_fini(&blue);
	return rig_teardown(state);
}

/* A ring, changed after the switch a: devices in the order of the file. */
static void ring_fabric(struct rig *r, const char *switch_options,
			const char *ring_options)
{
	rig_fabric(r);
	rig_switch(r, "a", "east", switch_options);
	rig_ring(r, "loop", ring_options);
	rig_use(r);
	assert_int_equal(r->rc, 0);
}

static bool holds(struct rig *r, const struct ring_programs *p)
{
	const struct drv_snapshot *s = &rig_device(r, "loop")->snap;

	return program_same(snap_program(s), p);
}

static void test_load(void **state)
{
	struct rig *r = *state;
	const struct want w[] = { { "loop", 0, { { 0, 0 } }, &red } };
	const struct want v[] = { { "loop", 0, { { 0, 0 } }, &blue } };

	ring_fabric(r, "", "");
	assert_int_equal(rig_go(r, PLAN_SAFE, w, 1), APPLY_COMMITTED);
	assert_true(holds(r, &red));
	assert_int_equal(rig_device(r, "loop")->level, APPLY_SETTLED);
	assert_int_equal(rig_device(r, "loop")->n_missing, 0);
	rig_watch(r);
	assert_int_equal(rig_go(r, PLAN_SAFE, w, 1), APPLY_NOTHING_TO_DO);
	assert_int_equal(r->n_lines, 0);
	assert_int_equal(rig_go(r, PLAN_SAFE, v, 1), APPLY_COMMITTED);
	rig_read(r);
	assert_true(holds(r, &blue));
	/* wanted no more */
	assert_int_equal(rig_go(r, PLAN_SAFE, NULL, 0), APPLY_COMMITTED);
	rig_read(r);
	assert_true(holds(r, NULL));
	assert_int_equal(rig_device(r, "loop")->n_missing, 0);
	assert_int_equal(rig_device(r, "loop")->n_unexpected, 0);
}

/* Intent outlasts the engine, and is compared with what is found. */
static void test_intent_comes_back(void **state)
{
	struct rig *r = *state;
	const struct want w[] = { { "loop", 0, { { 0, 0 } }, &red } };

	ring_fabric(r, "", "");
	rig_go(r, PLAN_SAFE, w, 1);
	rig_down(r);
	rig_up(r);
	assert_int_equal(apply_set_fabric(r->apply, rig_parse(r), NULL), 0);
	assert_false(rig_device(r, "loop")->reachable);
	assert_true(rig_device(r, "loop")->ever_read);
	assert_int_equal(rig_device(r, "loop")->level, APPLY_UNVERIFIED);
	rig_read(r);
	assert_int_equal(rig_device(r, "loop")->level, APPLY_READ_BACK);
	assert_int_equal(rig_device(r, "loop")->n_missing, 0);
	assert_int_equal(rig_go(r, PLAN_SAFE, w, 1), APPLY_NOTHING_TO_DO);
}

/* The second ring refuses; the first gets its old program back. */
static void test_undo(void **state)
{
	static const char *const options[] = {
		", hang: 2", ", drop: 2", ", unlocked: 2",
	};

	for (int i = 0; i < 3; i++) {
		struct rig *r = *state;
		const struct want w[] = { { "a", 1, { { 0, 1 } }, NULL },
					  { "loop", 0, { { 0, 0 } }, &red } };
		const struct want v[] = { { "a", 1, { { 0, 2 } }, NULL },
					  { "loop", 0, { { 0, 0 } }, &blue } };

		rig_fini(r);
		rig_init(r);
		rig_up(r);
		ring_fabric(r, "", i == 2 ? "" : options[i]);
		assert_int_equal(rig_go(r, PLAN_SAFE, w, 2), APPLY_COMMITTED);
		ring_fabric(r, "", options[i]);
		assert_int_equal(rig_go(r, PLAN_SAFE, v, 2),
				 APPLY_ROLLED_BACK);
		assert_says(r->err.msg, i == 2 ? "loop: 2 settings are not "
						 "locked" : "loop: ");
		rig_read(r);
		assert_true(holds(r, &red));
		assert_true(rig_has(r, "a", 0, 1) && !rig_has(r, "a", 0, 2));
		if (i == 2) {
			assert_says(rig_device(r, "loop")->problem,
				    "not locked");
			assert_int_equal(rig_device(r, "loop")->level,
					 APPLY_UNVERIFIED);
		}
	}
}

static void test_external_program(void **state)
{
	struct rig *r = *state;
	const struct want w[] = { { "loop", 0, { { 0, 0 } }, &red } };
	const struct want v[] = { { "loop", 0, { { 0, 0 } }, &blue } };

	ring_fabric(r, "", "");
	rig_go(r, PLAN_SAFE, w, 1);
	/* Reading, then another user empties it, then the check. */
	ring_fabric(r, "", ", external: 1");
	rig_watch(r);
	assert_int_equal(rig_go(r, PLAN_SAFE, v, 1), APPLY_REFUSED);
	assert_int_equal(r->rc, WEFT_ESTALE);
	assert_says(r->err.msg, "loop: the program is gone");
	assert_int_equal(r->n_commands, 0);
	assert_int_equal(rig_device(r, "loop")->n_missing, 1);
}

static void test_restart_undone(void **state)
{
	struct rig *r = *state;
	const struct want w[] = { { "loop", 0, { { 0, 0 } }, &red } };
	const struct want v[] = { { "loop", 0, { { 0, 0 } }, &blue } };

	ring_fabric(r, "", "");
	rig_go(r, PLAN_SAFE, w, 1);
	ring_fabric(r, "", ", restart: 3");
	assert_int_equal(rig_go(r, PLAN_SAFE, v, 1), APPLY_ROLLED_BACK);
	assert_says(r->err.msg, "loop restarted during the change");
	rig_read(r);
	assert_true(holds(r, &red));
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(test_load), T(test_intent_comes_back), T(test_undo),
		T(test_external_program), T(test_restart_undone),
	};

	return cmocka_run_group_tests_name("apply/ring", tests, NULL, NULL);
}
