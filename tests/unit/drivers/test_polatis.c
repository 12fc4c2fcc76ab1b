/* SPDX-License-Identifier: Apache-2.0 */
/* `polatis-scpi`: reply parsing, and the ways of a switch that answers
 * nothing to a command. */
#include "tests/unit/drivers/rig.h"

#include "drivers/scpi/scpi.h"

static struct rig *set_up(const char *fault)
{
	struct rig *r = test_calloc(1, sizeof(*r));

	rig_init(r, "polatis-scpi", 8, 8, false);
	rig_option(r, "gap_ms", "0");
	rig_option(r, "settle_ms", "0");
	rig_option(r, "complete_ms", "20");
	rig_start_emulator(r, "8x8", fault);
	rig_open(r);
	return r;
}

static void tear_down(struct rig *r)
{
	rig_fini(r);
	test_free(r);
}

static bool was_sent(const struct rig *r, const char *line)
{
	for (int i = 0; i < r->n_lines; i++) {
		if (r->lines[i][0] == '>' &&
		    strcmp(r->lines[i] + 2, line) == 0) {
			return true;
		}
	}
	return false;
}

/* ---- parsing ----------------------------------------------------------------- */

static void replies_lose_quotes_and_blanks(void **state)
{
	char quoted[] = "  \"18\" ", list[] = "\"a\",\"b\"", empty[] = "\"\"", crs[] = "0,1 \r";

	(void)state;
	assert_string_equal(scpi_plain(quoted), "18");
	assert_string_equal(scpi_plain(list), "\"a\",\"b\"");
	assert_string_equal(scpi_plain(empty), "");
	assert_string_equal(scpi_plain(crs), "0,1");
	assert_true(scpi_is_echo(" :oxc:swit:size?") && scpi_is_echo("*idn?"));
	assert_false(scpi_is_echo("(@),(@)") || scpi_is_echo("0, \"No error\""));
}

static void parses_maps(void **state)
{
	static const char *const bad[] = {
		"", "(@1)", "(@1),(@)", "(@1),(@17,18)", "(@0),(@1)",
		"(@1),(@17)x", "(@1,),(@17)", "(1),(@17)", "(@-1),(@1)",
		"(@99999),(@1)", "0, \"No error\"", "(@1),(@17",
	};
	struct scpi_pairs p;

	(void)state;
	assert_int_equal(scpi_parse_pairs("(@1,2,3),(@19,18,22)", &p, NULL), 0);
	assert_int_equal(p.n, 3);
	assert_int_equal(p.in[2], 3);
	assert_int_equal(p.out[2], 22);
	scpi_pairs_fini(&p);
	assert_int_equal(scpi_parse_pairs("(@),(@)", &p, NULL), 0);
	assert_int_equal(p.n, 0);
	scpi_pairs_fini(&p);
	assert_int_equal(scpi_parse_pairs("<none>", &p, NULL), 0);
	assert_int_equal(p.n, 0);
	assert_int_equal(scpi_parse_pairs("(@1, 2 ,3) , (@17,18,19 ) ", &p, NULL), 0);
	assert_int_equal(p.n, 3);
	assert_int_equal(p.out[2], 19);
	scpi_pairs_fini(&p);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(scpi_parse_pairs(bad[i], &p, NULL),
				 WEFT_EDEVICE);
	}
}

static void parses_errors(void **state)
{
	char text[32];
	int code;

	(void)state;
	assert_int_equal(scpi_parse_error("0, \"No error\"", &code, text,
					  sizeof(text), NULL), 0);
	assert_int_equal(code, 0);
	assert_int_equal(scpi_parse_error("-222,\"Data out of range\"", &code,
					  text, sizeof(text), NULL), 0);
	assert_int_equal(code, -222);
	assert_string_equal(text, "Data out of range");
	/* A code that merely begins like no error is one. */
	assert_int_equal(scpi_parse_error("00012,x", &code, text, sizeof(text),
					  NULL), 0);
	assert_int_equal(code, 12);
	assert_int_equal(scpi_parse_error("No error", &code, text,
					  sizeof(text), NULL), WEFT_EDEVICE);
	assert_int_equal(scpi_parse_error("0x", &code, text, sizeof(text),
					  NULL), WEFT_EDEVICE);
}

static void parses_identities(void **state)
{
	int n, m;
	bool any;

	(void)state;
	assert_int_equal(scpi_parse_identity(
		"Polatis,I-OST-24x25-LU1-DMHNS,002414,6.5.2.18", &n, &m, &any,
		NULL), 0);
	assert_int_equal(n, 24);
	assert_int_equal(m, 25);
	assert_false(any);
	assert_int_equal(scpi_parse_identity("POLATIS,N-VST-48xCC-L,1,2", &n,
					     &m, &any, NULL), 0);
	assert_int_equal(n, 48);
	assert_int_equal(m, 48);
	assert_true(any);
	assert_int_equal(scpi_parse_identity("ACME,I-OST-24x24,1,2", &n, &m,
					     &any, NULL), WEFT_EDEVICE);
	/* A size in the serial number is none. */
	assert_int_equal(scpi_parse_identity("Polatis,OST,24x24,2", &n, &m,
					     &any, NULL), WEFT_EDEVICE);
}

static void parses_powers_and_states(void **state)
{
	int32_t mdbm[3];
	char states[3];

	(void)state;
	assert_int_equal(scpi_parse_powers("(-29.55,-30.05,1)", 3, mdbm, NULL),
			 0);
	assert_int_equal(mdbm[0], -29550);
	assert_int_equal(mdbm[1], -30050);
	assert_int_equal(mdbm[2], 1000);
	assert_int_equal(scpi_parse_powers("(-29.55)", 2, mdbm, NULL),
			 WEFT_EDEVICE);
	assert_int_equal(scpi_parse_states("(D,E,F)", 3, states, NULL), 0);
	assert_memory_equal(states, "DEF", 3);
	assert_int_equal(scpi_parse_states("(D,E)", 3, states, NULL),
			 WEFT_EDEVICE);
	assert_int_equal(scpi_parse_states("(D,E,F,E)", 3, states, NULL),
			 WEFT_EDEVICE);
}

/* ---- commands ------------------------------------------------------------------ */

static void speaks_the_dialect(void **state)
{
	static const struct drv_item add[] = { ADD(0, 0), ADD(1, 1),
					       ADD(2, 5) };
	static const struct drv_item del[] = { DEL(1, 1), ADD(1, 7) };
	struct rig *r = set_up(NULL);

	(void)state;
	assert_int_equal(rig_submit(r, DRV_SAFE, 3, add), 0);
	assert_true(was_sent(r, ":oxc:swit:conn:add (@1,2,3),(@9,10,14);"
				":syst:err?"));
	assert_int_equal(rig_submit(r, DRV_SAFE, 2, del), 0);
	assert_true(was_sent(r, ":oxc:swit:conn:sub (@2),(@10);:syst:err?"));
	assert_true(was_sent(r, ":oxc:swit:conn:add (@2),(@16);:syst:err?"));
	assert_int_equal(rig_submit(r, DRV_REPLACE, 2, add), 0);
	assert_true(was_sent(r, ":oxc:swit:conn:only (@1,2),(@9,10);"
				":syst:err?"));
	assert_int_equal(rig_submit(r, DRV_REPLACE, 0, NULL), 0);
	assert_true(was_sent(r, ":oxc:swit:disc:all;:syst:err?"));
	tear_down(r);
}

static void repeating_sends_no_set_command(void **state)
{
	static const struct drv_item items[] = { ADD(0, 0), ADD(1, 1) };
	struct rig *r = set_up(NULL);
	int sets;

	(void)state;
	assert_int_equal(rig_submit(r, DRV_SAFE, 2, items), 0);
	sets = rig_stat(r, "sets");
	assert_int_equal(rig_submit(r, DRV_UPDATE, 2, items), 0);
	assert_int_equal(rig_stat(r, "sets"), sets);
	assert_int_equal(r->outcomes[0].evidence, DRV_READ_BACK);
	tear_down(r);
}

static void long_lists_go_in_chunks(void **state)
{
	static const struct drv_item items[] = {
		ADD(0, 0), ADD(1, 1), ADD(2, 2), ADD(3, 3), ADD(4, 4) };
	struct rig *r = test_calloc(1, sizeof(*r));

	(void)state;
	rig_init(r, "polatis-scpi", 8, 8, false);
	rig_option(r, "gap_ms", "0");
	rig_option(r, "chunk", "2");
	rig_start_emulator(r, "8x8", NULL);
	rig_open(r);
	assert_int_equal(rig_submit(r, DRV_SAFE, 5, items), 0);
	assert_int_equal(rig_stat(r, "sets"), 3);
	rig_expect_map(r, "0-0 1-1 2-2 3-3 4-4");
	tear_down(r);
}

/* ---- errors ---------------------------------------------------------------------- */

static void an_error_is_laid_at_the_right_door(void **state)
{
	static const struct drv_item items[] = {
		ADD(0, 0), ADD(1, 1), ADD(2, 2), DEL(0, 0) };
	struct rig *r = set_up("refuse-port=o1");

	(void)state;
	assert_int_equal(rig_submit(r, DRV_SAFE, 4, items), WEFT_EDEVICE);
	rig_expect(r, 0, DRV_DONE);
	rig_expect(r, 1, DRV_REFUSED);
	rig_expect(r, 2, DRV_DONE);
	rig_expect(r, 3, DRV_SKIPPED);
	assert_string_equal(r->outcomes[1].code, "-200");
	assert_string_equal(r->outcomes[1].text, "Execution error");
	assert_int_equal(r->outcomes[0].evidence, DRV_READ_BACK);
	rig_expect_map(r, "0-0 2-2");
	tear_down(r);
}

static void replace_reports_item_by_item(void **state)
{
	static const struct drv_item items[] = { ADD(0, 0), ADD(1, 1),
						 ADD(2, 2) };
	struct rig *r = set_up("refuse-port=i2");

	(void)state;
	assert_int_equal(rig_submit(r, DRV_REPLACE, 3, items), WEFT_EDEVICE);
	rig_expect(r, 0, DRV_DONE);
	rig_expect(r, 1, DRV_DONE);
	rig_expect(r, 2, DRV_REFUSED);
	tear_down(r);
}

static void stale_errors_are_not_ours(void **state)
{
	static const struct drv_item items[] = { ADD(0, 0) };
	struct rig *r = set_up(NULL);

	(void)state;
	/* Leaves an error in the queue of the next operation. */
	rig_control(r, "fault queue-full", NULL, 0);
	assert_int_equal(rig_submit(r, DRV_SAFE, 1, items), 0);
	rig_expect(r, 0, DRV_DONE);
	/* With the queue full of others' errors only the map could tell. */
	assert_int_equal(r->outcomes[0].evidence, DRV_READ_BACK);
	rig_expect_map(r, "0-0");
	tear_down(r);
}

/* The queue is everybody's. An error of another session is not laid at our
 * door; ours that another session reads away leaves no more than "confirmed",
 * and never "read back". */
static void the_error_queue_is_shared(void **state)
{
	static const struct drv_item one[] = { ADD(0, 0) };
	static const struct drv_item two[] = { ADD(1, 1), ADD(2, 2) };
	struct rig *r = set_up("refuse-port=o2");

	(void)state;
	rig_control(r, "fault others-error", NULL, 0);
	assert_int_equal(rig_submit(r, DRV_SAFE, 1, one), 0);
	assert_int_equal(r->outcomes[0].evidence, DRV_READ_BACK);
	rig_control(r, "fault taken-error", NULL, 0);
	assert_int_equal(rig_submit(r, DRV_SAFE, 2, two), 0);
	assert_int_equal(r->outcomes[1].evidence, DRV_ACKED);
	rig_expect_map(r, "0-0 1-1");
	tear_down(r);
}

static void a_list_done_by_half_shows_in_the_map(void **state)
{
	static const struct drv_item items[] = { ADD(0, 0), ADD(1, 1),
						 ADD(2, 2) };
	struct rig *r = set_up("half=1");

	(void)state;
	assert_int_equal(rig_submit(r, DRV_SAFE, 3, items), 0);
	assert_int_equal(r->outcomes[2].evidence, DRV_ACKED);
	rig_expect_map(r, "0-0");
	tear_down(r);
}

static void a_chain_that_stops_is_unknown(void **state)
{
	static const struct drv_item items[] = { ADD(0, 0), DEL(0, 0) };
	struct rig *r = set_up("chain-stop=2");

	(void)state;
	rig_close(r);
	r->cfg.timeout_ms = 1000;
	rig_open(r);
	assert_int_equal(rig_submit(r, DRV_SAFE, 2, items), WEFT_ETIMEOUT);
	rig_expect(r, 0, DRV_UNKNOWN);
	rig_expect(r, 1, DRV_SKIPPED);
	rig_expect_map(r, "0-0");
	tear_down(r);
}

static void a_command_eaten_is_unknown(void **state)
{
	static const struct drv_item items[] = { ADD(0, 0), DEL(0, 0) };
	struct rig *r = set_up("eat-set");

	(void)state;
	rig_close(r);
	r->cfg.timeout_ms = 1000;
	rig_open(r);
	assert_int_equal(rig_submit(r, DRV_SAFE, 2, items), WEFT_ETIMEOUT);
	rig_expect(r, 0, DRV_UNKNOWN);
	rig_expect_map(r, "");
	tear_down(r);
}

/* The answer to a timed-out command comes when the next one is out. */
static void a_late_answer_is_nobodys(void **state)
{
	static const struct drv_item items[] = { ADD(0, 0) };
	struct rig *r = set_up("late=1500");

	(void)state;
	rig_close(r);
	r->cfg.timeout_ms = 1000;
	rig_open(r);
	assert_int_equal(rig_submit(r, DRV_SAFE, 1, items), WEFT_ETIMEOUT);
	rig_close(r);
	r->cfg.timeout_ms = 10000;
	rig_open(r);
	assert_int_equal(rig_submit(r, DRV_SAFE, 1, items), 0);
	rig_expect_map(r, "0-0");
	tear_down(r);
}

/* Wherever a reply comes twice, no map may be misread. */
static void a_repeated_answer_never_deceives(void **state)
{
	static const struct drv_item add[] = { ADD(0, 0) };
	static const struct drv_item del[] = { DEL(0, 0) };
	char fault[32];

	(void)state;
	for (int k = 1; k <= 10; k++) {
		struct rig *r = set_up(NULL);

		assert_int_equal(rig_submit(r, DRV_SAFE, 1, add), 0);
		rig_expect_map(r, "0-0");
		snprintf(fault, sizeof(fault), "fault duplicate=%d", k);
		rig_control(r, fault, NULL, 0);
		for (int tries = 0; tries < 3; tries++) {
			rig_submit(r, DRV_SAFE, 1, del);
		}
		for (int tries = 0; tries < 6; tries++) {
			assert_true(rig_snapshot(r) != 0 || r->snap.n_xcs == 0);
		}
		rig_expect_map(r, "");
		tear_down(r);
	}
}

/* Devices want a pause between commands: of a thousand circuits it must not be most of the time. */
static void a_thousand_circuits_take_few_commands(void **state)
{
	static struct drv_item items[512];
	struct rig *r = test_calloc(1, sizeof(*r));

	(void)state;
	for (int i = 0; i < 512; i++) {
		items[i] = (struct drv_item)ADD(i, i);
	}
	rig_init(r, "polatis-scpi", 512, 512, false);
	rig_option(r, "gap_ms", "0");
	rig_start_emulator(r, "512x512", NULL);
	rig_open(r);
	assert_int_equal(rig_snapshot(r), 0);
	assert_int_equal(rig_n_lines(r, '>', ""), 1);
	r->n_lines = 0;
	assert_int_equal(rig_submit(r, DRV_SAFE, 512, items), 0);
	assert_int_equal(rig_n_lines(r, '>', ""), 4);
	tear_down(r);
}

static void nothing_is_sent_to_another_size(void **state)
{
	static const struct drv_item items[] = { ADD(0, 0) };
	struct rig *r = set_up(NULL);

	(void)state;
	rig_close(r);
	r->cfg.n_in = r->cfg.n_out = 4;
	rig_open(r);
	assert_int_equal(rig_submit(r, DRV_UPDATE, 1, items), WEFT_EVERIFY);
	rig_expect(r, 0, DRV_SKIPPED);
	assert_int_equal(rig_stat(r, "sets"), 0);
	tear_down(r);
}

static struct rig *set_up_monitored(const char *sides)
{
	struct rig *r = test_calloc(1, sizeof(*r));

	rig_init(r, "polatis-scpi", 8, 8, false);
	rig_option(r, "gap_ms", "0");
	rig_option(r, "power", sides);
	rig_start_emulator(r, "8x8", NULL);
	rig_open(r);
	return r;
}

/* Only where both ends are monitored and lit; what two monitors may be wrong
 * by is told with it. */
static void loss_is_reckoned_from_both_monitors(void **state)
{
	static const struct drv_item items[] = { ADD(0, 0), ADD(1, 5) };
	struct rig *r = set_up_monitored("both");
	int32_t before;

	(void)state;
	rig_close(r);
	rig_option(r, "dark_dbm", "-9");
	rig_option(r, "power_error_mdb", "200");
	rig_open(r);
	assert_int_equal(rig_submit(r, DRV_SAFE, 2, items), 0);
	assert_int_equal(rig_snapshot(r), 0);
	for (int i = 0; i < 2; i++) {
		assert_true(r->snap.xcs[i].has_loss);
		assert_in_range(r->snap.xcs[i].loss_mdb, 490, 1010);
		assert_int_equal(r->snap.xcs[i].loss_error_mdb, 400);
	}
	before = r->snap.xcs[1].loss_mdb;
	rig_control(r, "fault dim=o5", NULL, 0);
	assert_int_equal(rig_snapshot(r), 0);
	assert_int_equal(r->snap.xcs[1].loss_mdb, before + 3000);
	assert_false(r->snap.xcs[0].no_signal || r->snap.xcs[1].no_signal);
	/* A monitor that is all but dark has no loss to tell. */
	rig_control(r, "fault dim=i0", NULL, 0);
	rig_control(r, "fault dim=o0", NULL, 0);
	rig_close(r);
	r->options[2].value = "-6";
	rig_open(r);
	assert_int_equal(rig_snapshot(r), 0);
	assert_false(r->snap.xcs[0].has_loss);
	assert_true(r->snap.xcs[0].no_signal);
	tear_down(r);
	r = set_up_monitored("out");
	assert_int_equal(rig_submit(r, DRV_SAFE, 2, items), 0);
	assert_int_equal(rig_snapshot(r), 0);
	assert_false(r->snap.xcs[0].has_loss || r->snap.xcs[1].has_loss);
	tear_down(r);
}

static void a_model_without_monitors_is_said_to_be_one(void **state)
{
	struct rig *r = set_up_monitored("both");

	(void)state;
	rig_close(r);
	r->cfg.timeout_ms = 100;
	rig_open(r);
	rig_control(r, "fault no-monitors", NULL, 0);
	assert_int_equal(rig_snapshot(r), WEFT_ETIMEOUT);
	assert_non_null(strstr(r->err.msg, "has the switch monitors"));
	tear_down(r);
}

static void reads_power_where_there_are_monitors(void **state)
{
	static const struct drv_item items[] = { ADD(0, 0) };
	struct rig *r = set_up_monitored("out");

	(void)state;
	assert_int_equal(rig_submit(r, DRV_SAFE, 1, items), 0);
	assert_int_equal(rig_snapshot(r), 0);
	assert_int_equal(r->snap.n_ports, 8);
	for (int i = 0; i < 8; i++) {
		assert_true(r->snap.ports[i].is_out);
		assert_true(r->snap.ports[i].has_power);
		if (r->snap.ports[i].index == 0) {
			assert_true(r->snap.ports[i].power_mdbm > -5000);
		} else {
			assert_int_equal(r->snap.ports[i].power_mdbm, -60000);
		}
	}
	tear_down(r);
}

static void a_map_lost_later_shows_in_the_map(void **state)
{
	static const struct drv_item items[] = { ADD(0, 0) };
	struct rig *r = set_up("lost=1");

	(void)state;
	assert_int_equal(rig_submit(r, DRV_SAFE, 1, items), 0);
	while (rig_snapshot(r) == 0 && r->snap.n_xcs) {
	}
	assert_int_equal(r->rc, 0);
	tear_down(r);
}

static void restarts_with_the_map_of_old(void **state)
{
	static const struct drv_item items[] = { ADD(0, 0) };
	struct rig *r = set_up(NULL);

	(void)state;
	assert_int_equal(rig_submit(r, DRV_SAFE, 1, items), 0);
	rig_control(r, "restart kept", NULL, 0);
	rig_close(r);
	rig_open(r);
	rig_expect_map(r, "0-0");
	rig_control(r, "restart old", NULL, 0);
	rig_close(r);
	rig_open(r);
	rig_expect_map(r, "");
	tear_down(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(replies_lose_quotes_and_blanks),
		cmocka_unit_test(parses_maps),
		cmocka_unit_test(parses_errors),
		cmocka_unit_test(parses_identities),
		cmocka_unit_test(parses_powers_and_states),
		cmocka_unit_test(speaks_the_dialect),
		cmocka_unit_test(repeating_sends_no_set_command),
		cmocka_unit_test(long_lists_go_in_chunks),
		cmocka_unit_test(an_error_is_laid_at_the_right_door),
		cmocka_unit_test(replace_reports_item_by_item),
		cmocka_unit_test(stale_errors_are_not_ours),
		cmocka_unit_test(the_error_queue_is_shared),
		cmocka_unit_test(a_list_done_by_half_shows_in_the_map),
		cmocka_unit_test(a_chain_that_stops_is_unknown),
		cmocka_unit_test(a_command_eaten_is_unknown),
		cmocka_unit_test(a_late_answer_is_nobodys),
		cmocka_unit_test(a_repeated_answer_never_deceives),
		cmocka_unit_test(a_thousand_circuits_take_few_commands),
		cmocka_unit_test(nothing_is_sent_to_another_size),
		cmocka_unit_test(reads_power_where_there_are_monitors),
		cmocka_unit_test(a_model_without_monitors_is_said_to_be_one),
		cmocka_unit_test(loss_is_reckoned_from_both_monitors),
		cmocka_unit_test(a_map_lost_later_shows_in_the_map),
		cmocka_unit_test(restarts_with_the_map_of_old),
	};

	return cmocka_run_group_tests_name("drivers/polatis", tests, NULL,
					   NULL);
}
