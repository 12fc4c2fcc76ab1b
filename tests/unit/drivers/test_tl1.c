/* SPDX-License-Identifier: Apache-2.0 */
/* TL1: reading messages, and the ways of the switches that speak it. */
#include "tests/unit/drivers/tl1_switches.h"

#include "drivers/core/parse.h"
#include "drivers/tl1/tl1.h"

static struct rig *set_up(const char *fault)
{
	return set_up_as("polatis-tl1", fault);
}

/* ---- messages -------------------------------------------------------------- */

static void finds_the_end_of_a_frame(void **state)
{
	static const char reply[] = "\r\n\n   X 26-11-21 09:30:00\r\n"
		"M  1 COMPLD\r\n   \"a;b\"\r\n   /* c;d > e */\r\n;";
	size_t len = sizeof(reply) - 1;

	(void)state;
	for (size_t i = 0; i < len; i++) {
		assert_int_equal(tl1_frame((const uint8_t *)reply, i, 0, NULL),
				 0);
		/* The rest of it, later: the same frame. */
		assert_int_equal(tl1_frame((const uint8_t *)reply, len, i,
					   NULL), len);
	}
	assert_int_equal(tl1_frame((const uint8_t *)reply, len, 0, NULL), len);
	assert_true(tl1_frame((const uint8_t *)"\x07", 1, 0, NULL) < 0);
	assert_true(tl1_frame((const uint8_t *)"\xff\xfb", 2, 0, NULL) < 0);
}

static void parse(const char *text, struct tl1_message *m)
{
	struct err err = { 0 };

	if (tl1_parse((const uint8_t *)text, strlen(text), m, &err)) {
		fail_msg("%s", err.msg);
	}
}

static void reads_an_answer_behind_echo_and_prompt(void **state)
{
	struct tl1_message m;

	(void)state;
	parse("\r\nagent> RTRV-NE:::17;\r\n\r\n\n   CALIENT 01 16-10-31 "
	      "15:01:34\r\nM  17 COMPLD\r\n   \"a=\\\"b\\\",c\"\r\n"
	      "   /* all is well */\r\n;", &m);
	assert_int_equal(m.kind, TL1_RESPONSE);
	assert_string_equal(m.sid, "CALIENT 01");
	assert_int_equal(m.tag, 17);
	assert_false(m.denied);
	assert_false(m.more);
	assert_int_equal(m.n_lines, 1);
	assert_string_equal(m.lines[0].text, "a=\"b\",c");
	assert_string_equal(m.remark, "all is well");
	tl1_message_fini(&m);
}

/* Text over several lines, lines without quotes, comments of several lines. */
static void reads_what_is_written_otherwise(void **state)
{
	struct tl1_message m;

	(void)state;
	parse("\r\n   X 26-11-21 09:30:00\r\nM  7 COMPLD\r\n   \"GGN:A=1,\r\n    "
	      "B=\\\"x, y\\\",\r\n"
	      "    C=\"\r\n   /* all\r\n is well */\r\n   1 , 17\r\n   \"open,\r\n;", &m);
	assert_int_equal(m.n_lines, 3);
	assert_string_equal(m.lines[0].text, "GGN:A=1,B=\"x, y\",C=");
	assert_true(m.lines[0].quoted);
	assert_string_equal(m.lines[1].text, "1 , 17");
	assert_false(m.lines[1].quoted);
	assert_false(m.lines[2].quoted);
	assert_non_null(strstr(m.remark, "all is well"));
	tl1_message_fini(&m);
}

static void values_are_found_as_they_come(void **state)
{
	static const char line[] = "GGN:PORTID=10064,PORTNAME=\"to rack 7, A=2: #4\",A=3:4,Empty=";
	char value[32];

	(void)state;
	assert_true(tl1_value(line, "portid", value, sizeof(value)));
	assert_string_equal(value, "10064");
	assert_true(tl1_value(line, "PORTNAME", value, sizeof(value)));
	assert_string_equal(value, "to rack 7, A=2: #4");
	assert_true(tl1_value(line, "A", value, sizeof(value)));
	assert_string_equal(value, "3:4");
	assert_true(tl1_value(line, "EMPTY", value, sizeof(value)));
	assert_string_equal(value, "");
	assert_false(tl1_value(line, "ID", value, sizeof(value)));
}

static void reads_a_denial(void **state)
{
	struct tl1_message m;

	(void)state;
	parse("\r\n\n   X 26-11-21 09:30:00\r\nM  0 DENY\r\n   IICM\r\n"
	      "   /* Input, Invalid Command */\r\n;", &m);
	assert_true(m.denied);
	assert_int_equal(m.tag, 0);
	assert_string_equal(m.code, "IICM");
	assert_string_equal(m.remark, "Input, Invalid Command");
	assert_string_equal(tl1_code_words(m.code), "no such command");
	assert_int_equal(tl1_code_class(m.code), DRV_ERR_CONFIGURATION);
	assert_int_equal(tl1_code_class("SNVS"), DRV_ERR_STATE);
	assert_string_equal(tl1_code_words("XXXX"), "");
	tl1_message_fini(&m);
}

static void tells_reports_and_pages_apart(void **state)
{
	struct tl1_message m;

	(void)state;
	parse("\r\n\n   X 26-11-21 09:30:00\r\n*C 3 REPT ALM EQPT\r\n"
	      "   \"FAN-1:MJ\"\r\n;", &m);
	assert_int_equal(m.kind, TL1_AUTONOMOUS);
	assert_string_equal(m.report, "REPT ALM EQPT FAN-1:MJ");
	tl1_message_fini(&m);
	parse("\r\n\n   X 26-11-21 09:30:00\r\nM  4 COMPLD\r\n   \"a\"\r\n>",
	      &m);
	assert_true(m.more);
	tl1_message_fini(&m);
	parse("IP 4\r\n<", &m);
	assert_int_equal(m.kind, TL1_ACK);
	tl1_message_fini(&m);
}

static void refuses_what_is_no_message(void **state)
{
	static const char *const bad[] = {
		"", ";", "\r\n;", "M  1 COMPLD\r\n;",
		"   X 26-11-21 09:30:00\r\n;",
		"   X 26-11-21 09:30:00\r\nM  1 MAYBE\r\n;",
		"   X 26-11-21 09:30:00\r\nM  x COMPLD\r\n;",
		"   X 26-11-21 09:30:00\r\nM  99999999999999999999 COMPLD\r\n;",
		"   X 26-11-21\r\nM  1 COMPLD\r\n;",
	};
	struct tl1_message m;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(tl1_parse((const uint8_t *)bad[i],
					   strlen(bad[i]), &m, NULL),
				 WEFT_EDEVICE);
		assert_null(m.text);
	}
}

static void reads_values(void **state)
{
	char value[8];
	int32_t milli;

	(void)state;
	assert_true(tl1_value("GGN:A=1,BB=two,B=", "BB", value, sizeof(value)));
	assert_string_equal(value, "two");
	assert_true(tl1_value("GGN:A=1,BB=two,B=", "B", value, sizeof(value)));
	assert_string_equal(value, "");
	assert_true(tl1_value("A=0123456789", "A", value, sizeof(value)));
	assert_string_equal(value, "0123456");
	assert_false(tl1_value(",:,", "A", value, sizeof(value)));
	assert_true(parse_milli("-48.549", &milli));
	assert_int_equal(milli, -48549);
	assert_true(parse_milli("3.5", &milli));
	assert_int_equal(milli, 3500);
	assert_false(parse_milli("NONE", &milli));
	assert_false(parse_milli("12345678901", &milli));
	assert_false(parse_milli("1.2x", &milli));
}

/* ---- the session ------------------------------------------------------------- */

static void logs_in_and_out_and_hides_the_password(void **state)
{
	struct rig *r = set_up(NULL);

	(void)state;
	assert_int_equal(rig_snapshot(r), 0);
	assert_int_equal(rig_n_lines(r, '>', "ACT-USER::root:1::*;"), 1);
	assert_int_equal(rig_snapshot(r), 0);
	assert_int_equal(rig_n_lines(r, '>', "ACT-USER"), 1);
	r->n_lines = 0;
	rig_close(r);
	assert_int_equal(rig_n_lines(r, '>', "CANC-USER::root:"), 1);
	assert_int_equal(rig_n_lines(r, '<', "COMPLD"), 1);
	tear_down(r);
}

static void a_wrong_password_is_said(void **state)
{
	static const struct drv_item items[] = { ADD(0, 0) };
	struct rig *r = set_up(NULL);

	(void)state;
	rig_close(r);
	rig_option(r, "password_file", r->password);
	rig_password(r, "no\n");
	rig_open(r);
	assert_int_equal(rig_submit(r, DRV_SAFE, 1, items), WEFT_EDEVICE);
	assert_non_null(strstr(r->err.msg, "log-in denied: PIUI"));
	rig_expect(r, 0, DRV_SKIPPED);
	tear_down(r);
}

/* Wherever the device logs us out, the work gets done. */
static void logs_in_again_after_an_idle_log_out(void **state)
{
	static const struct drv_item add[] = { ADD(0, 0), ADD(1, 1) };
	static const struct drv_item del[] = { DEL(0, 0), DEL(1, 1) };
	char fault[32];

	(void)state;
	for (int k = 1; k <= 3; k++) {
		struct rig *r = set_up(NULL);

		assert_int_equal(rig_submit(r, DRV_SAFE, 2, add), 0);
		snprintf(fault, sizeof(fault), "fault log-out=%d", k);
		rig_control(r, fault, NULL, 0);
		assert_int_equal(rig_submit(r, DRV_SAFE, 2, del), 0);
		assert_int_equal(rig_n_lines(r, '>', "ACT-USER"), 2);
		rig_expect_map(r, "");
		tear_down(r);
	}
}

static void learns_the_name_of_the_device(void **state)
{
	static const struct drv_item items[] = { ADD(0, 0) };
	struct rig *r = set_up("tid-required");

	(void)state;
	assert_int_equal(rig_submit(r, DRV_SAFE, 1, items), 0);
	assert_int_equal(rig_n_lines(r, '>', "ENT-PATCH:\"emulator\":1,9:"), 1);
	assert_int_equal(rig_n_lines(r, '<', "IITA"), 1);
	tear_down(r);
}

static void reports_in_between_do_no_harm(void **state)
{
	static const struct drv_item items[] = { ADD(0, 0), ADD(1, 1),
						 ADD(2, 2) };
	struct rig *r = set_up("autonomous");

	(void)state;
	rig_control(r, "fault page=1", NULL, 0);
	assert_int_equal(rig_submit(r, DRV_SAFE, 3, items), 0);
	rig_expect_map(r, "0-0 1-1 2-2");
	assert_true(rig_n_lines(r, '<', "REPT ALM") > 3);
	tear_down(r);
}

/* What others do, and ports that fail, are heard of without asking. */
static void reports_are_handed_on(void **state)
{
	static const char *const drivers[] = { "polatis-tl1", "calient-tl1",
					       "glimmerglass-tl1" };

	(void)state;
	for (size_t i = 0; i < sizeof(drivers) / sizeof(drivers[0]); i++) {
		struct rig *r = set_up_as(drivers[i], NULL);
		const struct rig_event *e;

		assert_int_equal(rig_snapshot(r), 0);
		assert_int_equal(r->n_events, 0);
		rig_control(r, "set 2,6", NULL, 0);
		e = rig_wait_event(r, DRV_EVENT_CHANGED);
		assert_true(e->ev.has_port && !e->ev.is_out);
		assert_int_equal(e->ev.index, 2);
		assert_non_null(strstr(e->text, "noc"));
		rig_control(r, "fault port-failed=o5", NULL, 0);
		e = rig_wait_event(r, DRV_EVENT_ALARM);
		assert_true(e->ev.has_port);
		assert_int_equal(e->ev.index, 5);
		rig_expect_map(r, "2-6");
		tear_down(r);
	}
}

/* What we did ourselves is no news. */
static void our_own_changes_are_not_reported(void **state)
{
	static const struct drv_item items[] = { ADD(0, 0), ADD(1, 1) };
	struct rig *r = set_up(NULL);

	(void)state;
	assert_int_equal(rig_submit(r, DRV_SAFE, 2, items), 0);
	rig_expect_map(r, "0-0 1-1");
	assert_int_equal(r->n_events, 0);
	tear_down(r);
}

static void reads_answers_of_many_pages(void **state)
{
	static const struct drv_item items[] = { ADD(0, 0), ADD(1, 1),
						 ADD(2, 2) };
	struct rig *r = set_up("page=2");

	(void)state;
	assert_int_equal(rig_submit(r, DRV_SAFE, 3, items), 0);
	rig_expect_map(r, "0-0 1-1 2-2");
	rig_control(r, "fault bytewise", NULL, 0);
	rig_expect_map(r, "0-0 1-1 2-2");
	tear_down(r);
}

static void an_answer_of_another_tag_is_not_ours(void **state)
{
	static const struct drv_item items[] = { ADD(0, 0), ADD(1, 1) };
	struct rig *r = set_up(NULL);

	(void)state;
	assert_int_equal(rig_snapshot(r), 0);
	/* The map's answer is the first, the first command's the second. */
	rig_control(r, "fault wrong-ctag=2", NULL, 0);
	assert_int_equal(rig_submit(r, DRV_SAFE, 2, items), WEFT_EDEVICE);
	rig_expect(r, 0, DRV_UNKNOWN);
	rig_expect(r, 1, DRV_SKIPPED);
	rig_expect_map(r, "0-0");
	tear_down(r);
}

/* The tag tells: an answer that comes twice disturbs nothing. */
static void a_repeated_answer_is_passed_over(void **state)
{
	static const struct drv_item add[] = { ADD(0, 0), ADD(1, 1) };
	char fault[32];

	(void)state;
	for (int k = 1; k <= 6; k++) {
		struct rig *r = set_up(NULL);

		snprintf(fault, sizeof(fault), "fault duplicate=%d", k);
		rig_control(r, fault, NULL, 0);
		assert_int_equal(rig_submit(r, DRV_SAFE, 2, add), 0);
		rig_expect_map(r, "0-0 1-1");
		assert_int_equal(rig_stat(r, "sessions"), 1);
		tear_down(r);
	}
}

static void a_late_answer_is_nobodys(void **state)
{
	static const struct drv_item items[] = { ADD(0, 0) };
	struct rig *r = set_up("late=1500");

	(void)state;
	rig_close(r);
	r->cfg.timeout_ms = 1000;
	rig_open(r);
	assert_int_equal(rig_submit(r, DRV_SAFE, 1, items), WEFT_ETIMEOUT);
	assert_int_equal(rig_submit(r, DRV_SAFE, 1, items), 0);
	rig_expect_map(r, "0-0");
	tear_down(r);
}

/* ---- polatis-tl1 ---------------------------------------------------------------- */

static void a_denial_keeps_its_code_and_words(void **state)
{
	static const struct drv_item items[] = { ADD(0, 0), ADD(1, 1),
						 ADD(2, 2) };
	struct rig *r = set_up("refuse-port=o1");

	(void)state;
	assert_int_equal(rig_submit(r, DRV_SAFE, 3, items), WEFT_EDEVICE);
	rig_expect(r, 0, DRV_DONE);
	rig_expect(r, 1, DRV_REFUSED);
	rig_expect(r, 2, DRV_SKIPPED);
	assert_string_equal(r->outcomes[1].code, "SROF");
	assert_non_null(strstr(r->outcomes[1].text, "the operation failed"));
	assert_int_equal(r->outcomes[1].error, DRV_ERR_STATE);
	tear_down(r);
}

/* Done already, by another user or by us, is done. */
static void what_somebody_did_just_before_is_done(void **state)
{
	static const struct drv_item items[] = { ADD(0, 0), ADD(1, 1) };
	struct rig *r = set_up("race");

	(void)state;
	assert_int_equal(rig_submit(r, DRV_SAFE, 2, items), 0);
	assert_int_equal(rig_n_lines(r, '<', "SROU"), 1);
	rig_expect_map(r, "0-0 1-1");
	rig_control(r, "fault busy=o2", NULL, 0);
	assert_int_equal(rig_submit(r, DRV_SAFE, 1, &(struct drv_item)
			 ADD(2, 2)), WEFT_EDEVICE);
	rig_expect(r, 0, DRV_REFUSED);
	assert_string_equal(r->outcomes[0].code, "SARB");
	assert_int_equal(r->outcomes[0].error, DRV_ERR_STATE);
	tear_down(r);
}

/* Taking over is two commands; when the second is denied, the item is not as
 * before, and the driver may not believe so. */
static void a_take_over_done_by_half_is_unknown(void **state)
{
	static const struct drv_item first[] = { ADD(0, 0) };
	static const struct drv_item steal[] = { ADD(0, 1) };
	struct rig *r = set_up(NULL);

	(void)state;
	assert_int_equal(rig_submit(r, DRV_SAFE, 1, first), 0);
	rig_control(r, "fault refuse-port=o1", NULL, 0);
	assert_int_equal(rig_submit(r, DRV_UPDATE, 1, steal), WEFT_EDEVICE);
	rig_expect(r, 0, DRV_UNKNOWN);
	assert_string_equal(r->outcomes[0].code, "SROF");
	rig_expect_map(r, "");
	tear_down(r);
}

static void reads_power_when_told_to(void **state)
{
	static const struct drv_item items[] = { ADD(0, 0) };
	struct rig *r = set_up(NULL);

	(void)state;
	rig_close(r);
	rig_option(r, "power", "yes");
	rig_open(r);
	assert_int_equal(rig_submit(r, DRV_SAFE, 1, items), 0);
	assert_int_equal(rig_snapshot(r), 0);
	assert_int_equal(r->snap.caps.power, DRV_POWER_BOTH);
	assert_int_equal(r->snap.n_ports, 16);
	for (int i = 0; i < 16; i++) {
		assert_true(r->snap.ports[i].has_power);
		assert_int_equal(r->snap.ports[i].power_mdbm > -5000,
				 r->snap.ports[i].index == 0);
	}
	assert_true(r->snap.xcs[0].has_loss);
	assert_in_range(r->snap.xcs[0].loss_mdb, 490, 1010);
	assert_int_equal(r->snap.xcs[0].loss_error_mdb, 1000);
	tear_down(r);
}

static void repeating_a_full_map_sends_no_set_command(void **state)
{
	enum { N = 2000 };
	struct drv_item *items = test_calloc(N, sizeof(*items));
	struct rig *r = test_calloc(1, sizeof(*r));

	(void)state;
	for (int i = 0; i < N; i++) {
		items[i] = (struct drv_item){ DRV_ADD, { i, N - 1 - i } };
	}
	rig_init(r, "polatis-tl1", N, N, false);
	rig_option(r, "gap_ms", "0");
	rig_start_emulator(r, "2000x2000", NULL);
	rig_open(r);
	assert_int_equal(rig_submit(r, DRV_SAFE, N, items), 0);
	assert_int_equal(rig_stat(r, "sets"), N);
	assert_int_equal(rig_submit(r, DRV_SAFE, N, items), 0);
	assert_int_equal(rig_stat(r, "sets"), N);
	assert_int_equal(r->outcomes[N - 1].evidence, DRV_READ_BACK);
	tear_down(r);
	test_free(items);
}

/* The model's name decides; a size that fits does not help. */
static void an_any_to_any_model_is_known_by_its_name(void **state)
{
	static const struct drv_item items[] = { ADD(1, 5), ADD(0, 7) };
	struct rig *r = test_calloc(1, sizeof(*r));

	(void)state;
	rig_init(r, "polatis-tl1", 8, 8, false);
	rig_option(r, "gap_ms", "0");
	rig_start_emulator(r, "8xCC", NULL);
	rig_open(r);
	assert_int_equal(rig_snapshot(r), WEFT_EVERIFY);
	assert_non_null(strstr(r->err.msg, "any-to-any"));
	rig_close(r);
	r->cfg.any_to_any = true;
	r->cfg.n_out = 0;
	rig_open(r);
	assert_int_equal(rig_submit(r, DRV_SAFE, 2, items), 0);
	assert_int_equal(rig_n_lines(r, '>', "ENT-PATCH::2,6:"), 1);
	rig_expect_map(r, "0-7 1-5");
	assert_int_equal(r->snap.caps.numbering, DRV_ANY_TO_ANY);
	/* Not a two-sided one of that size either. */
	rig_stop_emulator(r);
	unlink(r->state);
	rig_start_emulator(r, "8x8", NULL);
	rig_snapshot(r);	/* finds that the session has ended */
	assert_int_equal(rig_submit(r, DRV_SAFE, 2, items), WEFT_EVERIFY);
	rig_expect(r, 0, DRV_SKIPPED);
	tear_down(r);
}

static void any_to_any_is_not_supported(void **state)
{
	struct drv_config cfg = { .name = "dut", .address = "127.0.0.1:1",
				  .n_in = 8, .any_to_any = true };
	struct err err = { 0 };
	struct drv *dev;
	uv_loop_t loop;

	(void)state;
	uv_loop_init(&loop);
	assert_int_equal(drv_open(&loop, "calient-tl1", &cfg, &dev, &err),
			 WEFT_EUNSUPPORTED);
	assert_int_equal(uv_loop_close(&loop), 0);
}

/* ---- glimmerglass-tl1 ------------------------------------------------------------ */

/* checklist 14: it is named, and not ended. */
static void honours_the_locks_of_others(void **state)
{
	static const struct drv_item first[] = { ADD(0, 0), ADD(1, 1) };
	static const struct drv_item del[] = { DEL(0, 0) };
	static const struct drv_item steal[] = { ADD(0, 1) };
	static const struct drv_item other[] = { ADD(1, 1) };
	struct rig *r = set_up_as("glimmerglass-tl1", NULL);
	int sets;

	(void)state;
	assert_int_equal(rig_submit(r, DRV_SAFE, 2, first), 0);
	sets = rig_stat(r, "sets");
	rig_control(r, "fault locked=i0", NULL, 0);
	assert_int_equal(rig_snapshot(r), 0);
	assert_string_equal(r->snap.xcs[0].owner, "noc");
	assert_string_equal(r->snap.xcs[1].owner, "");
	assert_int_equal(rig_submit(r, DRV_SAFE, 1, del), WEFT_EDEVICE);
	rig_expect(r, 0, DRV_REFUSED);
	assert_non_null(strstr(r->outcomes[0].text, "locked by noc"));
	assert_int_equal(r->outcomes[0].error, DRV_ERR_STATE);
	assert_int_equal(rig_submit(r, DRV_UPDATE, 1, steal), WEFT_EDEVICE);
	rig_expect(r, 0, DRV_REFUSED);
	assert_int_equal(rig_submit(r, DRV_REPLACE, 1, other), WEFT_EDEVICE);
	rig_expect(r, 0, DRV_REFUSED);
	assert_int_equal(rig_stat(r, "sets"), sets);
	rig_expect_map(r, "0-0 1-1");
	tear_down(r);
}

static void our_own_lock_is_no_obstacle(void **state)
{
	static const struct drv_item add[] = { ADD(0, 0) };
	static const struct drv_item del[] = { DEL(0, 0) };
	struct rig *r = set_up_as("glimmerglass-tl1", "locked=i0");

	(void)state;
	rig_close(r);
	rig_option(r, "user", "noc");
	rig_option(r, "password_file", r->password);
	rig_password(r, "noc\n");
	rig_open(r);
	assert_int_equal(rig_submit(r, DRV_SAFE, 1, add), 0);
	/* It goes out; this device has no exception for anybody. */
	assert_int_equal(rig_submit(r, DRV_SAFE, 1, del), WEFT_EDEVICE);
	assert_string_equal(r->outcomes[0].code, "SNVS");
	tear_down(r);
}

static void a_circuit_that_fails_is_done_without_light(void **state)
{
	static const struct drv_item items[] = { ADD(0, 0), ADD(1, 1) };
	struct rig *r = set_up_as("glimmerglass-tl1", "conn-failed=o1");

	(void)state;
	assert_int_equal(rig_submit(r, DRV_SAFE, 2, items), 0);
	assert_int_equal(r->outcomes[0].evidence, DRV_READ_BACK);
	assert_int_equal(r->outcomes[0].error, DRV_ERR_NONE);
	rig_expect(r, 1, DRV_DONE);
	assert_int_equal(r->outcomes[1].error, DRV_ERR_TRAFFIC);
	assert_non_null(strstr(r->outcomes[1].text, "timer_expired"));
	assert_int_equal(rig_snapshot(r), 0);
	assert_int_equal(r->snap.xcs[0].state, DRV_TUNED);
	assert_int_equal(r->snap.xcs[1].state, DRV_FAILED);
	/* Asking again changes nothing, and says so again. */
	assert_int_equal(rig_submit(r, DRV_SAFE, 2, items), 0);
	assert_int_equal(r->outcomes[1].error, DRV_ERR_TRAFFIC);
	tear_down(r);
}

/* Of ports without a circuit too, each told once. */
static void power_of_all_ports_when_told_to(void **state)
{
	static const struct drv_item items[] = { ADD(1, 2) };
	struct rig *r = set_up_as("glimmerglass-tl1", NULL);
	int lit = 0;

	(void)state;
	assert_int_equal(rig_snapshot(r), 0);
	assert_int_equal(r->snap.caps.power, DRV_POWER_NONE);
	rig_close(r);
	rig_option(r, "power", "yes");
	rig_open(r);
	assert_int_equal(rig_submit(r, DRV_SAFE, 1, items), 0);
	assert_int_equal(rig_snapshot(r), 0);
	assert_int_equal(r->snap.caps.power, DRV_POWER_BOTH);
	assert_int_equal(r->snap.n_ports, 16);
	for (int i = 0; i < 16; i++) {
		assert_true(r->snap.ports[i].has_power);
		lit += r->snap.ports[i].is_out &&
		       r->snap.ports[i].power_mdbm > -5000;
	}
	assert_int_equal(lit, 1);
	tear_down(r);
}

/* Confirmed at once, and without light when its timer has run out. */
static void an_async_circuit_may_fail_later(void **state)
{
	static const struct drv_item items[] = { ADD(0, 0), ADD(1, 1) };
	struct rig *r = set_up_as("glimmerglass-tl1", "conn-failed=o1");

	(void)state;
	rig_close(r);
	rig_option(r, "opmode", "async");
	rig_option(r, "complete_ms", "1000");
	r->options[1].value = "1";	/* settle_ms */
	rig_open(r);
	rig_control(r, "fault complete=60", NULL, 0);
	assert_int_equal(rig_submit(r, DRV_SAFE, 2, items), 0);
	assert_int_equal(rig_n_lines(r, '>', "opmode=async"), 2);
	assert_int_equal(r->outcomes[0].evidence, DRV_READ_BACK);
	assert_int_equal(r->outcomes[0].error, DRV_ERR_NONE);
	assert_int_equal(r->outcomes[1].error, DRV_ERR_TRAFFIC);
	assert_non_null(strstr(r->outcomes[1].text,
			       "initial_connection_timer_expired"));
	tear_down(r);
	/* Nobody waits for ever: what is then still going on is confirmed. */
	r = set_up_as("glimmerglass-tl1", "complete=5000");
	rig_close(r);
	rig_option(r, "complete_ms", "20");
	rig_open(r);
	assert_int_equal(rig_submit(r, DRV_SAFE, 2, items), 0);
	assert_int_equal(r->outcomes[0].evidence, DRV_ACKED);
	assert_int_equal(rig_snapshot(r), 0);
	assert_int_equal(r->snap.xcs[0].state, DRV_TUNING);
	tear_down(r);
}

static void loss_is_told_per_circuit(void **state)
{
	static const struct drv_item items[] = { ADD(0, 0) };
	struct rig *r = set_up_as("glimmerglass-tl1", NULL);
	int32_t in = 0, out = 0;

	(void)state;
	assert_int_equal(rig_submit(r, DRV_SAFE, 1, items), 0);
	assert_int_equal(rig_snapshot(r), 0);
	assert_int_equal(r->snap.n_ports, 2);
	for (int i = 0; i < 2; i++) {
		assert_true(r->snap.ports[i].has_power);
		*(r->snap.ports[i].is_out ? &out : &in) =
			r->snap.ports[i].power_mdbm;
	}
	assert_true(r->snap.xcs[0].has_loss);
	assert_true(r->snap.xcs[0].loss_mdb > 0);
	assert_int_equal(in - out, r->snap.xcs[0].loss_mdb);
	tear_down(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_the_end_of_a_frame),
		cmocka_unit_test(reads_an_answer_behind_echo_and_prompt),
		cmocka_unit_test(reads_what_is_written_otherwise),
		cmocka_unit_test(values_are_found_as_they_come),
		cmocka_unit_test(reads_a_denial),
		cmocka_unit_test(tells_reports_and_pages_apart),
		cmocka_unit_test(refuses_what_is_no_message),
		cmocka_unit_test(reads_values),
		cmocka_unit_test(logs_in_and_out_and_hides_the_password),
		cmocka_unit_test(a_wrong_password_is_said),
		cmocka_unit_test(logs_in_again_after_an_idle_log_out),
		cmocka_unit_test(learns_the_name_of_the_device),
		cmocka_unit_test(reports_in_between_do_no_harm),
		cmocka_unit_test(reports_are_handed_on),
		cmocka_unit_test(our_own_changes_are_not_reported),
		cmocka_unit_test(reads_answers_of_many_pages),
		cmocka_unit_test(an_answer_of_another_tag_is_not_ours),
		cmocka_unit_test(a_repeated_answer_is_passed_over),
		cmocka_unit_test(a_late_answer_is_nobodys),
		cmocka_unit_test(a_denial_keeps_its_code_and_words),
		cmocka_unit_test(what_somebody_did_just_before_is_done),
		cmocka_unit_test(a_take_over_done_by_half_is_unknown),
		cmocka_unit_test(reads_power_when_told_to),
		cmocka_unit_test(repeating_a_full_map_sends_no_set_command),
		cmocka_unit_test(an_any_to_any_model_is_known_by_its_name),
		cmocka_unit_test(any_to_any_is_not_supported),
		cmocka_unit_test(honours_the_locks_of_others),
		cmocka_unit_test(our_own_lock_is_no_obstacle),
		cmocka_unit_test(a_circuit_that_fails_is_done_without_light),
		cmocka_unit_test(power_of_all_ports_when_told_to),
		cmocka_unit_test(an_async_circuit_may_fail_later),
		cmocka_unit_test(loss_is_told_per_circuit),
	};

	return cmocka_run_group_tests_name("drivers/tl1", tests, NULL, NULL);
}
