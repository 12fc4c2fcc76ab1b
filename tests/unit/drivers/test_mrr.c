/* SPDX-License-Identifier: Apache-2.0 */
/* `mrr-reg`: the wire format, and what can go wrong between shadow and
 * active bank. */
#include "tests/unit/drivers/rig.h"

#include "drivers/mrr/mrr_protocol.h"

static struct ring_setting tunes[] = {
	{ 0, 0, 1, OPTICS_CW, 0, RESONATOR_ADD },
	{ 0, 1, 1, OPTICS_CW, 0, RESONATOR_DROP },
	{ 1, 2, 3, OPTICS_CCW, 1, RESONATOR_ADD_DROP },
};
static struct ring_setting other_tunes[] = {
	{ 0, 4, 0, OPTICS_CCW, 1, RESONATOR_ADD },
};
static const struct ring_settings program = { 2, 3, tunes };
static const struct ring_settings other = { 1, 1, other_tunes };

static struct rig *set_up(const char *fault)
{
	struct rig *r = test_calloc(1, sizeof(*r));

	rig_init(r, "mrr-reg", 6, 4, false);
	rig_start_emulator(r, "6x4", fault);
	rig_open(r);
	return r;
}

static void tear_down(struct rig *r)
{
	rig_fini(r);
	test_free(r);
}

static void expect_active(struct rig *r, const struct ring_settings *want)
{
	rig_expect_program(r, want);
}

/* ---- the wire ------------------------------------------------------------- */

static void crc_is_the_ieee_one(void **state)
{
	uint8_t bytes[300];

	(void)state;
	assert_int_equal(mrr_crc32(0, "123456789", 9), 0xcbf43926u);
	assert_int_equal(mrr_crc32(0, "", 0), 0);
	for (size_t i = 0; i < sizeof(bytes); i++) {
		bytes[i] = (uint8_t)(i * 7);
	}
	for (size_t cut = 0; cut < sizeof(bytes); cut++) {
		uint32_t crc = mrr_crc32(0, bytes, cut);

		assert_int_equal(mrr_crc32(crc, bytes + cut,
					   sizeof(bytes) - cut),
				 mrr_crc32(0, bytes, sizeof(bytes)));
	}
}

static void frames_survive_the_wire(void **state)
{
	const struct mrr_frame f = { .op = MRR_WRITE, .seq = 0x12345678,
				     .page = 0x4001, .offset = 24, .len = 5,
				     .data = (const uint8_t *)"hello" };
	struct mrr_frame back;
	struct buf b = { 0 };
	uint8_t *bytes;

	(void)state;
	mrr_encode(&b, &f);
	bytes = (uint8_t *)b.data;
	for (size_t n = 0; n < b.len; n++) {
		assert_int_equal(mrr_frame_length(bytes, n, 0, NULL), 0);
	}
	assert_int_equal(mrr_frame_length(bytes, b.len + 0, 0, NULL), b.len);
	assert_true(mrr_decode(bytes, b.len, &back));
	assert_int_equal(back.seq, f.seq);
	assert_int_equal(back.page, f.page);
	assert_memory_equal(back.data, "hello", 5);
	for (size_t i = 0; i < b.len; i++) {
		bytes[i] ^= 0x10;
		assert_false(mrr_decode(bytes, b.len, &back));
		bytes[i] ^= 0x10;
	}
	bytes[0] = 'x';
	assert_true(mrr_frame_length(bytes, 1, 0, NULL) < 0);
	buf_fini(&b);
}

static void tunes_survive_the_wire(void **state)
{
	const struct ring_setting t = { 65535, 1023, 63, OPTICS_CCW, 255,
				      RESONATOR_ADD_DROP };
	struct ring_setting back = { 0 };
	uint8_t bytes[MRR_TUNE_BYTES];

	(void)state;
	mrr_put_tune(bytes, &t);
	mrr_get_tune(bytes, &back);
	assert_int_equal(ring_setting_cmp(&t, &back), 0);
	assert_int_equal(back.mode, t.mode);
}

/* ---- faults ----------------------------------------------------------------- */

static void done_means_read_back(void **state)
{
	struct rig *r = set_up(NULL);

	(void)state;
	assert_int_equal(rig_program(r, &program), 0);
	assert_int_equal(r->outcomes[0].evidence, DRV_READ_BACK);
	assert_int_equal(r->outcomes[0].error, DRV_ERR_NONE);
	assert_int_equal(rig_stat(r, "sets"), 1);
	tear_down(r);
}

/* A program is loaded, then another meets the fault and must leave it. */
static void old_program_stays(const char *fault, enum drv_class_of_error c,
			      const char *text)
{
	struct rig *r = set_up(NULL);
	char command[64];

	assert_int_equal(rig_program(r, &program), 0);
	snprintf(command, sizeof(command), "fault %s", fault);
	rig_control(r, command, NULL, 0);
	assert_int_equal(rig_program(r, &other), WEFT_EDEVICE);
	rig_expect(r, 0, DRV_REFUSED);
	assert_int_equal(r->outcomes[0].error, c);
	assert_non_null(strstr(r->outcomes[0].text, text));
	expect_active(r, &program);
	rig_control(r, "clear", NULL, 0);
	assert_int_equal(rig_program(r, &other), 0);
	expect_active(r, &other);
	tear_down(r);
}

/* checklist 20: a session that died of idleness costs a new one, and no
 * load. */
static void an_idle_session_costs_no_load(void **state)
{
	struct rig *r = set_up(NULL);

	(void)state;
	rig_close(r);
	r->cfg.timeout_ms = 300;
	rig_open(r);
	assert_int_equal(rig_snapshot(r), 0);
	rig_control(r, "fault idle-dead=400", NULL, 0);
	rig_be_idle(r, 550);
	assert_int_equal(rig_program(r, &program), 0);
	rig_expect(r, 0, DRV_DONE);
	assert_int_equal(rig_stat(r, "sessions"), 2);
	tear_down(r);
}

static void a_corrupt_shadow_is_not_committed(void **state)
{
	(void)state;
	old_program_stays("corrupt-shadow", DRV_ERR_TRANSPORT, "shadow");
}

static void a_nack_leaves_the_program(void **state)
{
	(void)state;
	old_program_stays("nack", DRV_ERR_STATE, "busy");
	old_program_stays("nack=2", DRV_ERR_STATE, "busy");
	old_program_stays("nack=3", DRV_ERR_STATE, "busy");
}

static void an_ignored_commit_is_noticed(void **state)
{
	(void)state;
	old_program_stays("ignore-commit", DRV_ERR_STATE, "still in effect");
}

static void an_open_interlock_refuses(void **state)
{
	(void)state;
	old_program_stays("interlock", DRV_ERR_STATE, "interlock");
}

static void a_bit_lost_in_the_swap_is_noticed(void **state)
{
	struct rig *r = set_up("corrupt-active");

	(void)state;
	assert_int_equal(rig_program(r, &program), WEFT_EVERIFY);
	rig_expect(r, 0, DRV_UNKNOWN);
	tear_down(r);
}

/* checklist 15: the device itself knows who is the newest writer. */
static void a_stale_writer_is_refused(void **state)
{
	struct rig *r = set_up(NULL);

	(void)state;
	rig_close(r);
	r->cfg.fence = 7;
	rig_open(r);
	assert_int_equal(rig_program(r, &program), 0);
	rig_close(r);
	r->cfg.fence = 6;
	rig_open(r);
	assert_int_equal(rig_program(r, &other), WEFT_EDEVICE);
	rig_expect(r, 0, DRV_REFUSED);
	assert_non_null(strstr(r->outcomes[0].text, "newer writer"));
	expect_active(r, &program);
	tear_down(r);
}

static void nothing_sent_before_the_commit_counts(void **state)
{
	struct rig *r = set_up(NULL);

	(void)state;
	assert_int_equal(rig_program(r, &program), 0);
	/* After registers and the slot in use comes a write of the shadow. */
	rig_control(r, "fault drop-reply=3", NULL, 0);
	assert_int_equal(rig_program(r, &other), WEFT_EUNAVAIL);
	rig_expect(r, 0, DRV_SKIPPED);
	expect_active(r, &program);
	tear_down(r);
}

static void a_session_lost_after_the_commit_is_unknown(void **state)
{
	struct rig *r = set_up(NULL);

	(void)state;
	/* registers, events, shadow, stage, registers, slot, mask, commit,
	 * registers */
	rig_control(r, "fault drop-reply=9", NULL, 0);
	assert_int_equal(rig_program(r, &program), WEFT_EUNAVAIL);
	rig_expect(r, 0, DRV_UNKNOWN);
	expect_active(r, &program);
	tear_down(r);
}

static void repeated_and_late_answers_do_no_harm(void **state)
{
	static const char *const faults[] = { "fault duplicate=1",
		"fault duplicate=2", "fault duplicate=5", "fault duplicate=6",
		"fault duplicate~500" };
	struct rig *r = set_up(NULL);

	(void)state;
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
		rig_control(r, faults[i], NULL, 0);
		assert_int_equal(rig_program(r, i % 2 ? &program : &other), 0);
		expect_active(r, i % 2 ? &program : &other);
	}
	tear_down(r);
}

/* The one resonator that is lost, as text. */
static void expect_lost(const struct rig *r, const char *want)
{
	char text[RING_FAULT_TEXT];

	assert_int_equal(r->snap.n_lost, 1);
	ring_fault_text(&r->snap.lost[0], 6, NULL, text);
	assert_string_equal(text, want);
}

static void reports_the_first_unlocked_setting(void **state)
{
	static const struct {
		const char *fault, *text;
	} kinds[] = {
		{ "no-wave=2:3", "no wave found" },
		{ "not-in-range=2:3", "wave not in tuning range" },
		{ "duplicate-lock=2:3", "duplicate lock" },
		{ "zero-lock=2:3", "zero lock" },
		{ "lol=2:3", "lock lost" },
		{ "lane-order=2:3", "wave of another lane" },
		{ "dac-clamp=2:3", "tuner at its limit" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		struct rig *r = set_up(kinds[i].fault);
		char want[128];

		snprintf(want, sizeof(want),
			 "step 1 node 2 ccw fibre 1 channel 3: %s",
			 kinds[i].text);
		assert_int_equal(rig_program(r, &program), 0);
		rig_expect(r, 0, DRV_DONE);
		assert_int_equal(r->outcomes[0].error, DRV_ERR_TRAFFIC);
		assert_string_equal(r->outcomes[0].text, want);
		assert_int_equal(rig_snapshot(r), 0);
		assert_int_equal(r->snap.n_unlocked, 1);
		assert_string_equal(r->snap.lock_detail, want);
		expect_lost(r, strstr(want, "node"));
		tear_down(r);
	}
}

/* ---- locks that get lost ------------------------------------------------------ */

/* Heat takes lock after lock, each told when it happens, and nothing else
 * changes; what is told and what is read name the same resonators. */
static void drift_takes_lock_after_lock(void **state)
{
	struct rig *r = set_up(NULL);
	char text[RING_FAULT_TEXT], told[3 * 256] = "";

	(void)state;
	assert_int_equal(rig_program(r, &program), 0);
	assert_int_equal(rig_snapshot(r), 0);
	assert_int_equal(r->snap.n_lost, 0);
	rig_control(r, "fault drift=5", NULL, 0);
	while (r->n_events < 3) {
		assert_true(uv_run(&r->loop, UV_RUN_ONCE));
	}
	rig_control(r, "clear", NULL, 0);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(r->events[i].ev.kind, DRV_EVENT_ALARM);
		strcat(told, r->events[i].text);
	}
	expect_active(r, &program);
	assert_int_equal(r->snap.n_lost, 3);
	assert_int_equal(r->snap.n_unlocked, 3);
	assert_int_equal(r->snap.n_dead, 0);
	for (int i = 0; i < 3; i++) {
		ring_fault_text(&r->snap.lost[i], 6, NULL, text);
		assert_non_null(strstr(text, ": lock lost"));
		assert_non_null(strstr(told, text));
	}
	assert_non_null(strstr(r->snap.lock_detail, ": lock lost"));
	tear_down(r);
}

/* What was lost without anybody listening is found by reading; a program that
 * is loaded again locks all it uses. */
static void lost_locks_are_found_by_reading(void **state)
{
	struct rig *r = set_up(NULL);
	int n = 0;

	(void)state;
	assert_int_equal(rig_program(r, &program), 0);
	rig_close(r);
	rig_control(r, "fault drift=1", NULL, 0);
	rig_open(r);
	for (int i = 0; i < 2000 && n < 3; i++) {
		assert_int_equal(rig_snapshot(r), 0);
		assert_true(r->snap.n_lost >= n);
		n = r->snap.n_lost;
	}
	assert_int_equal(n, 3);
	rig_control(r, "clear", NULL, 0);
	assert_int_equal(rig_program(r, &other), 0);
	assert_int_equal(rig_program(r, &program), 0);
	assert_int_equal(r->outcomes[0].error, DRV_ERR_NONE);
	assert_int_equal(rig_snapshot(r), 0);
	assert_int_equal(r->snap.n_lost, 0);
	tear_down(r);
}

static void an_open_interlock_is_told(void **state)
{
	struct rig *r = set_up(NULL);

	(void)state;
	assert_int_equal(rig_program(r, &program), 0);
	assert_string_equal(r->snap.alarm, "");
	rig_control(r, "fault interlock", NULL, 0);
	rig_wait_event(r, DRV_EVENT_ALARM);
	assert_non_null(strstr(r->events[0].text, "interlock"));
	assert_int_equal(rig_snapshot(r), 0);
	assert_string_equal(r->snap.alarm, "the laser interlock is open");
	assert_int_equal(r->snap.n_unlocked, 3);
	assert_int_equal(r->snap.n_dead, 0);
	assert_int_equal(r->snap.n_lost, 1);
	assert_int_equal(r->snap.lost[0].why, RESONATOR_NOT_STARTED);
	rig_control(r, "clear", NULL, 0);
	assert_int_equal(rig_snapshot(r), 0);
	assert_string_equal(r->snap.alarm, "");
	assert_int_equal(r->snap.n_unlocked, 0);
	assert_int_equal(r->snap.n_lost, 0);
	tear_down(r);
}

static void waits_until_resonators_have_locked(void **state)
{
	struct rig *r = set_up("lock-time=200");
	int before;

	(void)state;
	assert_int_equal(rig_program(r, &other), 0);
	before = rig_stat(r, "commands");
	assert_int_equal(rig_program(r, &program), 0);
	assert_int_equal(r->outcomes[0].error, DRV_ERR_NONE);
	/* It asked several times whether they have. */
	assert_true(rig_stat(r, "commands") > before + 14);
	tear_down(r);
}

/* A controller without tables and events is read as far as it goes. */
static void a_plain_controller_is_understood(void **state)
{
	struct rig *r = set_up("plain");

	(void)state;
	assert_int_equal(rig_program(r, &program), 0);
	rig_control(r, "fault zero-lock=2:3", NULL, 0);
	expect_active(r, &program);
	assert_int_equal(r->n_events, 0);
	expect_lost(r, "node 2 ccw fibre 1 channel 3: zero lock");
	assert_int_equal(r->snap.n_dead, 1);
	tear_down(r);
}

/* ---- the controller itself ------------------------------------------------------ */

static void a_silent_bus_changes_nothing(void **state)
{
	struct rig *r = set_up(NULL);

	(void)state;
	old_program_stays("bus-nack=2", DRV_ERR_TRANSPORT, "bus");
	assert_int_equal(rig_program(r, &program), 0);
	rig_control(r, "fault bus-nack", NULL, 0);
	assert_int_equal(rig_snapshot(r), WEFT_EDEVICE);
	assert_non_null(strstr(r->err.msg, "no answer from the resonators' "
			       "bus"));
	expect_active(r, &program);
	tear_down(r);
}

/* checklist 17: it restarts in the middle, at each of its frames, and goes dark. The
 * session stays, so only the controller's own registers tell. */
static void a_reset_in_the_middle_is_noticed(void **state)
{
	struct rig *r = set_up(NULL);
	const struct rig_event *e;
	char command[32];
	int n_unknown = 0, n_skipped = 0;

	(void)state;
	for (int k = 1; k <= 14; k++) {
		assert_int_equal(rig_program(r, &program), 0);
		r->n_events = 0;
		snprintf(command, sizeof(command), "fault reset=%d", k);
		rig_control(r, command, NULL, 0);
		if (rig_program(r, &other) == 0) {
			rig_control(r, "clear", NULL, 0);
			expect_active(r, &other);
			continue;
		}
		n_unknown += r->outcomes[0].result == DRV_UNKNOWN;
		n_skipped += r->outcomes[0].result == DRV_SKIPPED;
		assert_true(r->outcomes[0].result == DRV_UNKNOWN ||
			    r->outcomes[0].result == DRV_SKIPPED);
		assert_true(r->outcomes[0].result == DRV_UNKNOWN ||
			    strstr(r->err.msg, "restarted meanwhile, code 90: "
				   "powered up"));
		expect_active(r, NULL);
		e = rig_wait_event(r, DRV_EVENT_ALARM);
		assert_string_equal(e->text, "the controller restarted, code "
				    "90: powered up");
	}
	assert_true(n_unknown >= 2);
	assert_true(n_skipped >= 4);
	tear_down(r);
}

/* And it listens for events again afterwards. */
static void events_come_after_a_reset(void **state)
{
	struct rig *r = set_up(NULL);

	(void)state;
	assert_int_equal(rig_program(r, &program), 0);
	rig_control(r, "fault reset", NULL, 0);
	assert_int_equal(rig_snapshot(r), 0);
	assert_int_equal(rig_program(r, &program), 0);
	r->n_events = 0;
	rig_control(r, "fault lol=2:3", NULL, 0);
	assert_string_equal(rig_wait_event(r, DRV_EVENT_ALARM)->text,
			    "node 2 ccw fibre 1 channel 3: lock lost");
	tear_down(r);
}

/* What has failed is told whether a program uses it or not, and no longer when
 * it works again; what comes and goes is no failure. */
static void the_table_of_failures_is_read(void **state)
{
	static const char *const want[] = {
		"node 1 cw fibre 0 channel 0: zero lock",
		"node 1 cw fibre 1 channel 0: zero lock",
		"node 1 ccw fibre 0 channel 0: zero lock",
		"node 1 ccw fibre 1 channel 0: zero lock",
		"ccw fibre 1 between node 5 and node 0", "node 3" };
	struct rig *r = set_up("node-dead=3");
	char text[RING_FAULT_TEXT];

	(void)state;
	rig_control(r, "fault zero-lock=1:0", NULL, 0);
	rig_control(r, "fault zero-lock=1:0", NULL, 0);
	rig_control(r, "fault lol=4:0~500", NULL, 0);
	rig_control(r, "fault cut-ccw=5:1", NULL, 0);
	assert_int_equal(rig_snapshot(r), 0);
	assert_int_equal(r->snap.n_dead, 6);
	for (int i = 0; i < r->snap.n_dead; i++) {
		ring_fault_text(&r->snap.dead[i], 6, NULL, text);
		assert_string_equal(text, want[i]);
	}
	rig_control(r, "clear", NULL, 0);
	assert_int_equal(rig_snapshot(r), 0);
	assert_int_equal(r->snap.n_dead, 0);
	rig_control(r, "fault cut=2", NULL, 0);
	assert_int_equal(rig_snapshot(r), 0);
	assert_int_equal(r->snap.n_dead, 4);
	tear_down(r);
}

static void another_user_takes_the_program_away(void **state)
{
	struct rig *r = set_up(NULL);

	(void)state;
	assert_int_equal(rig_program(r, &program), 0);
	rig_control(r, "unset", NULL, 0);
	expect_active(r, NULL);
	tear_down(r);
}

/* Frames of every size, pages crossed, more frames than are on the way at a
 * time. */
static void moves_programs_larger_than_a_page(void **state)
{
	static const char *const windows[] = { "8", "24", "1000", "32768" };
	enum { N = 3 * 4096 + 5 };
	struct ring_setting *v = calloc(N, sizeof(*v));
	struct ring_settings p = { 1200, N, v };

	(void)state;
	assert_non_null(v);
	for (int i = 0; i < N; i++) {
		v[i] = (struct ring_setting){ (uint16_t)(i / 12),
			(uint16_t)(i / 2 % 6), (uint16_t)(i % 2), OPTICS_CW, 0,
			RESONATOR_ADD };
	}
	for (size_t i = 0; i < sizeof(windows) / sizeof(windows[0]); i++) {
		struct rig *r = test_calloc(1, sizeof(*r));

		rig_init(r, "mrr-reg", 6, 4, false);
		rig_option(r, "window", windows[i]);
		rig_start_emulator(r, "6x4", NULL);
		rig_open(r);
		assert_int_equal(rig_program(r, &p), 0);
		expect_active(r, &p);
		tear_down(r);
	}
	free(v);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(crc_is_the_ieee_one),
		cmocka_unit_test(frames_survive_the_wire),
		cmocka_unit_test(tunes_survive_the_wire),
		cmocka_unit_test(done_means_read_back),
		cmocka_unit_test(an_idle_session_costs_no_load),
		cmocka_unit_test(a_corrupt_shadow_is_not_committed),
		cmocka_unit_test(a_nack_leaves_the_program),
		cmocka_unit_test(an_ignored_commit_is_noticed),
		cmocka_unit_test(an_open_interlock_refuses),
		cmocka_unit_test(a_bit_lost_in_the_swap_is_noticed),
		cmocka_unit_test(a_stale_writer_is_refused),
		cmocka_unit_test(nothing_sent_before_the_commit_counts),
		cmocka_unit_test(a_session_lost_after_the_commit_is_unknown),
		cmocka_unit_test(repeated_and_late_answers_do_no_harm),
		cmocka_unit_test(reports_the_first_unlocked_setting),
		cmocka_unit_test(drift_takes_lock_after_lock),
		cmocka_unit_test(lost_locks_are_found_by_reading),
		cmocka_unit_test(an_open_interlock_is_told),
		cmocka_unit_test(waits_until_resonators_have_locked),
		cmocka_unit_test(a_plain_controller_is_understood),
		cmocka_unit_test(a_silent_bus_changes_nothing),
		cmocka_unit_test(a_reset_in_the_middle_is_noticed),
		cmocka_unit_test(events_come_after_a_reset),
		cmocka_unit_test(the_table_of_failures_is_read),
		cmocka_unit_test(another_user_takes_the_program_away),
		cmocka_unit_test(moves_programs_larger_than_a_page),
	};

	return cmocka_run_group_tests_name("drivers/mrr", tests, NULL,
					   NULL);
}
