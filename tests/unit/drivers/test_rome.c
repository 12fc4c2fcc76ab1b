/* `rome-cli`: queues, text in passing, homing, wear. */
#include "tests/unit/drivers/rig.h"

#include "drivers/rome.h"

static struct rig *rig_of(const char *fault, const char *key,
			  const char *value)
{
	struct rig *r = test_calloc(1, sizeof(*r));

	assert_non_null(r);
	rig_init(r, "rome-cli", 8, 8, false);
	rig_option(r, "gap_ms", "0");
	rig_option(r, "poll_ms", "2");
	if (key) {
		rig_option(r, key, value);
	}
	rig_start_emulator(r, "8x8", fault);
	rig_open(r);
	return r;
}

static void tear_down(struct rig *r)
{
	rig_fini(r);
	test_free(r);
}

static void answers_are_found_among_other_text(void **state)
{
	static const char text[] =
		"08-18-2019 12:37 CONNECTING...\r\nport show\r\nE1 x\r\nROME[";

	(void)state;
	assert_non_null(rome_answer(text, "port show"));
	assert_null(rome_answer(text, "port sho"));
	assert_null(rome_answer(text, "show board"));
	assert_int_equal(rome_frame((const uint8_t *)"a\r\nROME[OPER]# b", 16),
			 15);
	assert_int_equal(rome_frame((const uint8_t *)"a ROME[OPER]# ", 14), 0);
	assert_int_equal(rome_frame((const uint8_t *)"\x07", 1), -1);
}

static void a_row_of_a_port_that_is_not_connected(void **state)
{
	char row[] = "E1[1AE1]  Unlocked  Enabled  Disconnected  2  "
		     "W2[1AW2]  A1";
	char other[] = "W131  Locked  Disabled  Connected  17  E4[1AE4]  A1";
	char heading[] = "Port Admin Oper Port Counter ConnectedTo Logical";
	struct rome_port p;

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

/* Checklist line 18: what a disconnected port names is no circuit. */
static void a_stale_peer_is_no_circuit(void **state)
{
	static const struct drv_item make[] = { ADD(0, 4) };
	static const struct drv_item end[] = { DEL(0, 4) };
	struct rig *r = rig_of(NULL, NULL, NULL);

	(void)state;
	assert_int_equal(rig_submit(r, DRV_SAFE, 1, make), 0);
	assert_int_equal(r->outcomes[0].evidence, DRV_READ_BACK);
	assert_int_equal(rig_submit(r, DRV_SAFE, 1, end), 0);
	rig_expect_map(r, "");
	tear_down(r);
}

static void slow_moves_are_waited_for(void **state)
{
	static const struct drv_item items[] = { ADD(0, 4), ADD(1, 5),
						 ADD(2, 6) };
	struct rig *r = rig_of("move=15", NULL, NULL);

	(void)state;
	assert_int_equal(rig_submit(r, DRV_SAFE, 3, items), 0);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(r->outcomes[i].evidence, DRV_READ_BACK);
	}
	rig_expect_map(r, "0-4 1-5 2-6");
	tear_down(r);
}

/* The second fibre of a duplex link fails: the first is told as done, so
 * that whoever asked can take it back. */
static void half_of_a_duplex_link_is_told(void **state)
{
	static const struct drv_item link[] = { ADD(0, 1), ADD(1, 0) };
	static const struct drv_item back[] = { DEL(0, 1) };
	struct rig *r = rig_of("conn-failed=i1", NULL, NULL);

	(void)state;
	assert_int_equal(rig_submit(r, DRV_SAFE, 1, link), 0);
	assert_int_equal(rig_submit(r, DRV_SAFE, 2, link), WEFT_EDEVICE);
	rig_expect(r, 0, DRV_DONE);
	rig_expect(r, 1, DRV_REFUSED);
	assert_string_equal(r->outcomes[1].code, "FAILED");
	assert_non_null(strstr(r->outcomes[1].text, "E2"));
	assert_int_equal(rig_submit(r, DRV_SAFE, 1, back), 0);
	rig_expect_map(r, "");
	tear_down(r);
}

/* A robot that waits for people: what is queued stays unknown, and nothing
 * is sent a second time. */
static void a_homing_run_is_left_to_people(void **state)
{
	static const struct drv_item items[] = { ADD(0, 4), ADD(1, 5) };
	struct rig *r = rig_of("homing", "move_ms", "10");
	int sets;

	(void)state;
	assert_int_equal(rig_submit(r, DRV_SAFE, 2, items), WEFT_ETIMEOUT);
	assert_non_null(strstr(r->err.msg, "homing run"));
	rig_expect(r, 1, DRV_UNKNOWN);
	sets = rig_stat(r, "sets");
	rig_expect_map(r, "");
	assert_int_equal(rig_stat(r, "sets"), sets);
	assert_int_equal(sets, 2);
	tear_down(r);
}

/* Checklist line 21. */
static void worn_ports_are_moved_no_more(void **state)
{
	static const struct drv_item make[] = { ADD(0, 4) };
	static const struct drv_item end[] = { DEL(0, 4) };
	struct rig *r = rig_of(NULL, "wear_limit", "2");

	(void)state;
	assert_int_equal(rig_submit(r, DRV_SAFE, 1, make), 0);
	assert_int_equal(rig_submit(r, DRV_SAFE, 1, end), 0);
	assert_int_equal(rig_submit(r, DRV_SAFE, 1, make), WEFT_EDEVICE);
	assert_string_equal(r->outcomes[0].code, "WEAR");
	assert_int_equal(rig_snapshot(r), 0);
	assert_int_equal(r->snap.n_ports, 2);
	assert_true(r->snap.ports[0].has_moves && r->snap.ports[0].enabled);
	assert_int_equal(r->snap.ports[0].moves, 2);
	tear_down(r);
}

static void a_victim_is_moved_out_of_the_way(void **state)
{
	static const struct drv_item first[] = { ADD(0, 4), ADD(1, 5) };
	static const struct drv_item steal[] = { ADD(0, 5) };
	struct rig *r = rig_of("move=3", NULL, NULL);

	(void)state;
	assert_int_equal(rig_submit(r, DRV_SAFE, 2, first), 0);
	assert_int_equal(rig_submit(r, DRV_UPDATE, 1, steal), 0);
	rig_expect_map(r, "0-5");
	tear_down(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(answers_are_found_among_other_text),
		cmocka_unit_test(a_row_of_a_port_that_is_not_connected),
		cmocka_unit_test(a_stale_peer_is_no_circuit),
		cmocka_unit_test(slow_moves_are_waited_for),
		cmocka_unit_test(half_of_a_duplex_link_is_told),
		cmocka_unit_test(a_homing_run_is_left_to_people),
		cmocka_unit_test(worn_ports_are_moved_no_more),
		cmocka_unit_test(a_victim_is_moved_out_of_the_way),
	};

	return cmocka_run_group_tests_name("drivers/rome", tests, NULL, NULL);
}
