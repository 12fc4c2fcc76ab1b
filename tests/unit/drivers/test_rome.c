/* SPDX-License-Identifier: Apache-2.0 */
/* `rome-cli`: its text, stale rows, wear; the rest is in test_robots.c. */
#include "tests/unit/drivers/robots.h"

#include "drivers/robot/robot.h"

static struct rig *rig_of(const char *key, const char *value)
{
	return robot_rig("rome-cli", NULL, key, value);
}

static int64_t frame(const char *text)
{
	return robot_frame((const uint8_t *)text, strlen(text), 0, rome_prompt,
			   NULL);
}

static void answers_are_found_among_other_text(void **state)
{
	static const char text[] =
		"08-18-2019 12:37 CONNECTING...\r\nport show\r\nE1 x\r\nROME[";

	(void)state;
	assert_non_null(robot_answer(text, "port show"));
	assert_null(robot_answer(text, "port sho"));
	assert_null(robot_answer(text, "show board"));
	assert_non_null(robot_answer("port show                 \r\nE1", "port show"));
	assert_int_equal(frame("a\r\nROME[OPER]# b"), 15);
	assert_int_equal(frame("ROME[TECH]#"), 11);
	assert_int_equal(frame("s53[OPER]# x"), 11);
	assert_int_equal(frame("E5[1AE5] x"), 0);
	assert_int_equal(frame("\x1b[0m"), -1);
	assert_int_equal(frame("a ROME[OPER]# "), 0);
	assert_int_equal(frame("\x07"), -1);
}

static void a_row_of_a_port_that_is_not_connected(void **state)
{
	char row[] = "E1[1AE1]  Unlocked  Enabled  Disconnected  2  "
		     "W2[1AW2]  A1";
	char other[] = "W131  Locked  Disabled  Connected  17  E4[1AE4]  A1";
	char heading[] = "Port Admin Oper Port Counter ConnectedTo Logical";
	struct robot_port p;

	(void)state;
	assert_true(rome_parse_row(row, &p));
	assert_false(p.connected || p.locked || p.disabled || p.is_out);
	assert_int_equal(p.peer, 1);
	assert_int_equal(p.moves, 2);
	assert_true(rome_parse_row(other, &p));
	assert_true(p.connected && p.locked && p.disabled && p.is_out);
	assert_int_equal(p.index, 130);
	assert_false(rome_parse_row(heading, &p));
}

static void rows_of_an_afm_are_numbers(void **state)
{
	char free_port[] = "E1      1      1      1      w1                       1      958";
	char used[] = "E5      2      2      2      w5      W6               1      765";
	char heading[] = "Port  Admin  Oper   HW Adm  Paired  Connected-port  Port";
	char cut[] = "E5      1      2      1      w5      W6               1";
	struct robot_port p;

	(void)state;
	assert_true(rome_parse_row(free_port, &p));
	assert_false(p.connected || p.locked || p.disabled || p.is_out);
	assert_int_equal(p.peer, -1);
	assert_int_equal(p.moves, 958);
	assert_true(rome_parse_row(used, &p));
	assert_true(p.connected && p.locked && p.disabled && !p.is_out);
	assert_int_equal(p.index, 4);
	assert_int_equal(p.peer, 5);
	assert_int_equal(p.moves, 765);
	assert_false(rome_parse_row(heading, &p));
	assert_false(rome_parse_row(cut, &p));
}

/* checklist 18: what a disconnected port names is no circuit. */
static void a_stale_peer_is_no_circuit(void **state)
{
	static const struct drv_item make[] = { ADD(0, 4) };
	static const struct drv_item end[] = { DEL(0, 4) };
	struct rig *r = rig_of(NULL, NULL);

	(void)state;
	assert_int_equal(rig_submit(r, DRV_SAFE, 1, make), 0);
	assert_int_equal(r->outcomes[0].evidence, DRV_READ_BACK);
	assert_int_equal(rig_submit(r, DRV_SAFE, 1, end), 0);
	rig_expect_map(r, "");
	robot_tear_down(r);
}

/* checklist 21: worn ports are not moved, and told to those who plan. */
static void worn_ports_are_moved_no_more(void **state)
{
	static const struct drv_item make[] = { ADD(0, 4) };
	static const struct drv_item end[] = { DEL(0, 4) };
	struct rig *r = rig_of("wear_limit", "2");

	(void)state;
	assert_int_equal(rig_submit(r, DRV_SAFE, 1, make), 0);
	assert_int_equal(rig_submit(r, DRV_SAFE, 1, end), 0);
	assert_int_equal(rig_submit(r, DRV_SAFE, 1, make), WEFT_EDEVICE);
	assert_string_equal(r->outcomes[0].code, "WEAR");
	assert_int_equal(rig_snapshot(r), 0);
	assert_int_equal(r->snap.n_ports, 2);
	assert_true(r->snap.ports[0].has_moves && r->snap.ports[0].enabled);
	assert_int_equal(r->snap.ports[0].moves, 2);
	assert_true(r->snap.ports[0].worn && r->snap.ports[1].worn);
	robot_tear_down(r);
}

/* What comes before a port that is spared is done. */
static void what_comes_before_a_worn_port_is_done(void **state)
{
	static const struct drv_item make[] = { ADD(0, 4), DEL(0, 4) };
	static const struct drv_item three[] = { ADD(1, 5), ADD(0, 6),
						 ADD(2, 7) };
	static const struct drv_item stay[] = { ADD(1, 5), ADD(3, 6) };
	struct rig *r = rig_of("wear_limit", "2");

	(void)state;
	assert_int_equal(rig_submit(r, DRV_SAFE, 2, make), 0);
	assert_int_equal(rig_submit(r, DRV_SAFE, 3, three), WEFT_EDEVICE);
	rig_expect(r, 0, DRV_DONE);
	rig_expect(r, 1, DRV_REFUSED);
	rig_expect(r, 2, DRV_SKIPPED);
	assert_string_equal(r->outcomes[1].code, "WEAR");
	rig_expect_map(r, "1-5");
	/* A replacement is all or nothing. */
	assert_int_equal(rig_submit(r, DRV_REPLACE, 3, three), WEFT_EDEVICE);
	rig_expect(r, 1, DRV_REFUSED);
	rig_expect_map(r, "1-5");
	assert_int_equal(rig_submit(r, DRV_REPLACE, 2, stay), 0);
	rig_expect_map(r, "1-5 3-6");
	robot_tear_down(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(answers_are_found_among_other_text),
		cmocka_unit_test(a_row_of_a_port_that_is_not_connected),
		cmocka_unit_test(rows_of_an_afm_are_numbers),
		cmocka_unit_test(a_stale_peer_is_no_circuit),
		cmocka_unit_test(worn_ports_are_moved_no_more),
		cmocka_unit_test(what_comes_before_a_worn_port_is_done),
	};

	return cmocka_run_group_tests_name("drivers/rome", tests, NULL, NULL);
}
