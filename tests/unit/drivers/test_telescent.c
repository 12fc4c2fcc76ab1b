/* SPDX-License-Identifier: Apache-2.0 */
/* `telescent-cli`: its text, its locks; the rest is in test_robots.c. */
#include "tests/unit/drivers/robots.h"

#include "drivers/robot/robot.h"

static void rows_are_read(void **state)
{
	struct robot_port cells[TELESCENT_COLUMNS];

	(void)state;
	assert_int_equal(telescent_parse_row("R2#O  A123 U456  UL7 UF1055",
					     cells), 4);
	assert_true(cells[0].connected && !cells[0].locked);
	assert_int_equal(cells[0].index, 24);
	assert_int_equal(cells[0].peer, 123);
	assert_false(cells[1].connected);
	assert_true(cells[2].locked && !cells[2].disabled);
	assert_true(cells[3].disabled);
	assert_int_equal(cells[3].peer, 1055);
	assert_int_equal(telescent_parse_row("     C1  C2  C12", cells), 0);
	assert_int_equal(telescent_parse_row("R2", cells), 0);
	assert_int_equal(telescent_parse_row("R99999#O A1", cells), 0);
	assert_int_equal(telescent_parse_row("R0#O A1 B2 A3", cells), 1);
	assert_int_equal(telescent_parse_row("R0#O A99999", cells), 0);
}

static size_t prompt(const char *text)
{
	return telescent_prompt((const uint8_t *)text, strlen(text), NULL);
}

static void prompts_are_a_word(void **state)
{
	(void)state;
	assert_int_equal(prompt("telescent> "), 11);
	assert_int_equal(prompt("admin@ntm-2>x"), 12);
	assert_int_equal(prompt("ntm>"), 4);
	assert_int_equal(prompt("ntm"), 0);
	assert_int_equal(prompt("> x"), 0);
	assert_int_equal(prompt("R0#O  A1>"), 0);
}

static void the_message_of_an_error(void **state)
{
	(void)state;
	assert_string_equal(telescent_error("x\n=== error ===\n  no such port\n====\n"),
			    "no such port\n====\n");
	assert_string_equal(telescent_error("== error == busy =="), "busy ==");
	assert_string_equal(telescent_error("== error =="), "== error ==");
	assert_string_equal(telescent_error("ERROR: x"), "ERROR: x");
	assert_null(telescent_error("queued"));
}

static void what_is_said_in_passing(void **state)
{
	const struct optics_xc xc = { 1, 5 };

	(void)state;
	assert_int_equal(telescent_move_report("connect -in 1 -out 5: completed", xc,
					true), 1);
	assert_int_equal(telescent_move_report("unallocate -in 1: completed", xc,
					false), 1);
	/* What clears the way of a connect is not the connect. */
	assert_int_equal(telescent_move_report("unallocate -in 1: completed", xc,
					true), 0);
	assert_int_equal(telescent_move_report("connect -in 1 -out 55: completed",
					xc, true), 0);
	assert_int_equal(telescent_move_report("connect -in 11 -out 5: completed",
					xc, true), 0);
	assert_int_equal(telescent_move_report("== error == connect -in 1 -out 5: "
					"the move failed ==", xc, true), -1);
	assert_int_equal(telescent_move_report("connect -in 1 -out 5: started", xc,
					true), 0);
}

/* A fibre that is left in an output it was connected to is no circuit. */
static void what_is_not_allocated_is_no_circuit(void **state)
{
	static const struct drv_item make[] = { ADD(0, 4) };
	static const struct drv_item end[] = { DEL(0, 4) };
	struct rig *r = robot_rig("telescent-cli", NULL, NULL, NULL);

	(void)state;
	assert_int_equal(rig_submit(r, DRV_SAFE, 1, make), 0);
	assert_int_equal(r->outcomes[0].evidence, DRV_READ_BACK);
	assert_int_equal(rig_submit(r, DRV_SAFE, 1, end), 0);
	rig_expect_map(r, "");
	assert_non_null(strstr(r->snap.identity, "Telescent"));
	robot_tear_down(r);
}

/* An input that another user locked shows in its state only. */
static void a_reserved_input_is_not_taken(void **state)
{
	static const struct drv_item items[] = { ADD(0, 4), ADD(1, 5) };
	struct rig *r = robot_rig("telescent-cli", "port-disabled=i1", NULL,
				  NULL);

	(void)state;
	assert_int_equal(rig_submit(r, DRV_SAFE, 2, items), WEFT_EDEVICE);
	rig_expect(r, 0, DRV_DONE);
	rig_expect(r, 1, DRV_REFUSED);
	assert_non_null(strstr(r->outcomes[1].text, "locked"));
	assert_int_equal(rig_stat(r, "sets"), 1);
	robot_tear_down(r);
}

static void the_prompt_is_an_option(void **state)
{
	struct rig *r = robot_rig("telescent-cli", NULL, "prompt",
				  "telescent>");
	struct drv *dev;

	(void)state;
	assert_int_equal(rig_snapshot(r), 0);
	r->options[2].value = "a prompt of more than thirty-one characters> ";
	assert_int_equal(drv_open(&r->loop, r->driver, &r->cfg, &dev, NULL),
			 WEFT_EINVAL);
	r->options[2].value = "another# ";
	rig_close(r);
	r->cfg.timeout_ms = 50;
	rig_open(r);
	assert_int_equal(rig_snapshot(r), WEFT_ETIMEOUT);
	robot_tear_down(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_are_read),
		cmocka_unit_test(prompts_are_a_word),
		cmocka_unit_test(the_message_of_an_error),
		cmocka_unit_test(what_is_said_in_passing),
		cmocka_unit_test(what_is_not_allocated_is_no_circuit),
		cmocka_unit_test(a_reserved_input_is_not_taken),
		cmocka_unit_test(the_prompt_is_an_option),
	};

	return cmocka_run_group_tests_name("drivers/telescent", tests, NULL,
					   NULL);
}
