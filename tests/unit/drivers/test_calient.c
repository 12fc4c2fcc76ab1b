/* SPDX-License-Identifier: Apache-2.0 */
/* `calient-tl1`: two phases, bulk commands, power. */
#include "tests/unit/drivers/tl1_switches.h"

#include "lib/base/buf.h"

static void circuits_are_made_and_ended_in_two_steps(void **state)
{
	static const struct drv_item add[] = { ADD(0, 7) };
	static const struct drv_item del[] = { DEL(0, 7) };
	struct rig *r = set_up_as("calient-tl1", NULL);

	(void)state;
	assert_int_equal(rig_submit(r, DRV_SAFE, 1, add), 0);
	assert_int_equal(r->outcomes[0].evidence, DRV_READ_BACK);
	assert_int_equal(rig_n_lines(r, '>', "ENT-CRS::1.1.1,1.1.8:"), 1);
	assert_int_equal(rig_n_lines(r, '>', "::1.1.1>1.1.8,WEFT;"), 1);
	assert_int_equal(rig_submit(r, DRV_SAFE, 1, del), 0);
	assert_int_equal(rig_n_lines(r, '>', "CANC-CRS:::"), 1);
	assert_int_equal(rig_n_lines(r, '>', "DLT-CRS:::"), 1);
	rig_expect_map(r, "");
	tear_down(r);
}

static void an_entered_circuit_is_blocked_and_resumed(void **state)
{
	static const struct drv_item items[] = { ADD(0, 0) };
	struct rig *r = set_up_as("calient-tl1", NULL);

	(void)state;
	rig_close(r);
	r->cfg.timeout_ms = 1000;
	rig_open(r);
	rig_control(r, "fault eat-set", NULL, 0);
	assert_int_equal(rig_submit(r, DRV_SAFE, 1, items), WEFT_ETIMEOUT);
	rig_expect(r, 0, DRV_UNKNOWN);
	assert_int_equal(rig_snapshot(r), 0);
	assert_int_equal(r->snap.n_xcs, 1);
	assert_int_equal(r->snap.xcs[0].state, DRV_BLOCKED);
	assert_int_equal(rig_submit(r, DRV_SAFE, 1, items), 0);
	assert_int_equal(rig_n_lines(r, '>', "ENT-CRS"), 1);
	rig_expect_map(r, "0-0");
	tear_down(r);
}

static void accepted_and_then_failed_is_said(void **state)
{
	static const struct drv_item items[] = { ADD(0, 0), ADD(1, 1) };
	struct rig *r = set_up_as("calient-tl1", "conn-failed=i1");

	(void)state;
	assert_int_equal(rig_submit(r, DRV_SAFE, 2, items), 0);
	assert_int_equal(r->outcomes[0].error, DRV_ERR_NONE);
	assert_int_equal(r->outcomes[1].evidence, DRV_READ_BACK);
	assert_int_equal(r->outcomes[1].error, DRV_ERR_TRAFFIC);
	assert_string_equal(r->outcomes[1].text, "OC=FAIL");
	assert_int_equal(rig_snapshot(r), 0);
	assert_int_equal(r->snap.xcs[1].state, DRV_FAILED);
	tear_down(r);
}

static void large_switches_answer_in_pages(void **state)
{
	static const struct drv_item items[] = { ADD(0, 99), ADD(99, 0),
						 ADD(64, 8) };
	struct rig *r = test_calloc(1, sizeof(*r));

	(void)state;
	rig_init(r, "calient-tl1", 100, 100, false);
	rig_option(r, "gap_ms", "0");
	rig_start_emulator(r, "100x100", NULL);
	rig_open(r);
	assert_int_equal(rig_submit(r, DRV_SAFE, 3, items), 0);
	rig_expect_map(r, "0-99 64-8 99-0");
	tear_down(r);
}

/* ---- many circuits at a time -------------------------------------------------- */

enum { N_BULK = 20 };

/* A switch of 32 x 32 with 0-0 .. 19-19, and a batch that has the same inputs
 * and other outputs. */
static struct rig *set_up_bulk(const char *bulk, struct drv_item *items)
{
	struct rig *r = test_calloc(1, sizeof(*r));

	rig_init(r, "calient-tl1", 32, 32, false);
	rig_option(r, "gap_ms", "0");
	rig_option(r, "settle_ms", "1");
	rig_option(r, "complete_ms", "100");
	rig_option(r, "bulk", bulk);
	rig_option(r, "bulk_ms", "2000");
	rig_start_emulator(r, "32x32", NULL);
	rig_open(r);
	for (int i = 0; i < N_BULK; i++) {
		items[i] = (struct drv_item){ DRV_ADD, { i, i } };
	}
	assert_int_equal(rig_submit(r, DRV_SAFE, N_BULK, items), 0);
	for (int i = 0; i < N_BULK; i++) {
		items[i].xc.out = (i + 1) % N_BULK;
	}
	r->only_sent = true;
	r->n_lines = 0;
	return r;
}

static int n_shown(struct rig *r, const struct drv_item *items)
{
	int n = 0;

	if (rig_snapshot(r)) {
		fail_msg("snapshot: %s", r->err.msg);
	}
	for (int k = 0; k < r->snap.n_xcs; k++) {
		for (int i = 0; i < N_BULK; i++) {
			n += optics_xc_cmp(&r->snap.xcs[k].xc,
					   &items[i].xc) == 0 &&
			     r->snap.xcs[k].state == DRV_TUNED;
		}
	}
	return n;
}

/* SAFE: the first circuit in the way is named, and nothing moves, although a
 * bulk would take all ports over. */
static void a_bulk_steals_only_when_told_to(void **state)
{
	struct drv_item items[N_BULK];
	struct rig *r = set_up_bulk("128", items);
	int sets = rig_stat(r, "sets");

	(void)state;
	assert_int_equal(rig_submit(r, DRV_SAFE, N_BULK, items), WEFT_EDEVICE);
	rig_expect(r, 0, DRV_REFUSED);
	assert_non_null(strstr(r->outcomes[0].text, "it would cut"));
	rig_expect(r, 1, DRV_SKIPPED);
	assert_int_equal(rig_stat(r, "sets"), sets);
	assert_int_equal(rig_submit(r, DRV_UPDATE, N_BULK, items), 0);
	assert_int_equal(rig_n_lines(r, '>', "DLT-CRS-BULK"), 1);
	assert_int_equal(rig_n_lines(r, '>', "ENT-CRS-BULK"), 1);
	assert_int_equal(rig_n_lines(r, '>', "RTRV-SAVERECALL"), 2);
	assert_int_equal(rig_n_lines(r, '>', "ACT-CRS"), 0);
	assert_int_equal(rig_stat(r, "sets"), sets + 2);
	for (int i = 0; i < N_BULK; i++) {
		rig_expect(r, i, DRV_DONE);
		assert_int_equal(r->outcomes[i].evidence, DRV_READ_BACK);
	}
	assert_int_equal(n_shown(r, items), N_BULK);
	tear_down(r);
}

static void a_bulk_is_cut_to_size(void **state)
{
	struct drv_item items[N_BULK];
	struct rig *r = set_up_bulk("8", items);

	(void)state;
	assert_int_equal(rig_submit(r, DRV_REPLACE, N_BULK, items), 0);
	/* Nothing stays, so one command ends everything. */
	assert_int_equal(rig_n_lines(r, '>', "DLT-CRS-ALL:::"), 1);
	assert_int_equal(rig_n_lines(r, '>', "DLT-CRS-BULK"), 0);
	assert_int_equal(rig_n_lines(r, '>', "ENT-CRS-BULK"), 3);
	assert_int_equal(n_shown(r, items), N_BULK);
	/* One stays: it is not touched. */
	for (int i = 1; i < N_BULK; i++) {
		items[i].xc.out = i == N_BULK - 1 ? 2 : i + 2;
	}
	r->n_lines = 0;
	assert_int_equal(rig_submit(r, DRV_REPLACE, N_BULK, items), 0);
	assert_int_equal(rig_n_lines(r, '>', "DLT-CRS-ALL"), 0);
	assert_int_equal(rig_n_lines(r, '>', "DLT-CRS-BULK"), 3);
	assert_int_equal(rig_n_lines(r, '>', "1.1.1>1.1.2"), 0);
	assert_int_equal(n_shown(r, items), N_BULK);
	tear_down(r);
}

/* checklist 27: a bulk that was done in part is told item by item. */
static void a_bulk_done_in_part_is_told_item_by_item(void **state)
{
	struct drv_item items[N_BULK];
	struct rig *r = set_up_bulk("128", items);

	(void)state;
	rig_control(r, "unset", NULL, 0);
	rig_control(r, "fault half=7", NULL, 0);
	assert_int_equal(rig_submit(r, DRV_SAFE, N_BULK, items), WEFT_EDEVICE);
	for (int i = 0; i < N_BULK; i++) {
		rig_expect(r, i, i < 7 ? DRV_DONE : DRV_REFUSED);
		assert_int_equal(r->outcomes[i].evidence, DRV_READ_BACK);
	}
	assert_string_equal(r->outcomes[7].code, "BULK");
	assert_non_null(strstr(r->outcomes[7].text, "13 connections failed"));
	assert_int_equal(n_shown(r, items), 7);
	/* The rest of it, once that is possible. */
	rig_control(r, "clear", NULL, 0);
	assert_int_equal(rig_submit(r, DRV_SAFE, N_BULK, items), 0);
	assert_int_equal(n_shown(r, items), N_BULK);
	tear_down(r);
}

/* What was cut for items that then could not be made is gone: they are not as
 * before, and no reply says so. */
static void a_take_over_in_bulk_done_in_part_is_unknown(void **state)
{
	struct drv_item items[N_BULK];
	struct rig *r = set_up_bulk("128", items);

	(void)state;
	rig_control(r, "fault refuse-port=o5", NULL, 0);
	assert_int_equal(rig_submit(r, DRV_UPDATE, N_BULK, items),
			 WEFT_EDEVICE);
	for (int i = 0; i < N_BULK; i++) {
		rig_expect(r, i, i == 4 ? DRV_UNKNOWN : DRV_DONE);
	}
	assert_int_equal(n_shown(r, items), N_BULK - 1);
	tear_down(r);
}

static void a_slow_bulk_is_waited_for(void **state)
{
	struct drv_item items[N_BULK];
	struct rig *r = set_up_bulk("128", items);

	(void)state;
	rig_control(r, "fault complete=60", NULL, 0);
	assert_int_equal(rig_submit(r, DRV_UPDATE, N_BULK, items), 0);
	assert_true(rig_n_lines(r, '>', "RTRV-SAVERECALL") > 4);
	assert_int_equal(n_shown(r, items), N_BULK);
	rig_close(r);
	r->options[4].value = "40";
	rig_open(r);
	rig_control(r, "unset", NULL, 0);
	rig_control(r, "clear", NULL, 0);
	rig_control(r, "fault complete=600", NULL, 0);
	assert_int_equal(rig_submit(r, DRV_SAFE, N_BULK, items),
			 WEFT_ETIMEOUT);
	for (int i = 0; i < N_BULK; i++) {
		rig_expect(r, i, DRV_UNKNOWN);
	}
	assert_non_null(strstr(r->outcomes[0].text, "In progress"));
	tear_down(r);
}

/* Entered in bulk and not active: each gets the command that activates it;
 * when that does not help either, it is done without light. */
static void what_a_bulk_leaves_inactive_is_activated(void **state)
{
	struct drv_item items[N_BULK];
	struct rig *r = set_up_bulk("128", items);

	(void)state;
	rig_control(r, "fault not-activated=i3", NULL, 0);
	assert_int_equal(rig_submit(r, DRV_UPDATE, N_BULK, items), 0);
	assert_int_equal(rig_n_lines(r, '>', "ACT-CRS"), 1);
	rig_expect(r, 3, DRV_DONE);
	assert_int_equal(r->outcomes[3].evidence, DRV_ACKED);
	assert_int_equal(r->outcomes[3].error, DRV_ERR_TRAFFIC);
	assert_string_equal(r->outcomes[3].text, "entered, not activated");
	assert_int_equal(n_shown(r, items), N_BULK - 1);
	rig_control(r, "clear", NULL, 0);
	assert_int_equal(rig_submit(r, DRV_UPDATE, N_BULK, items), 0);
	assert_int_equal(n_shown(r, items), N_BULK);
	tear_down(r);
}

static void a_lost_session_leaves_a_bulk_unknown(void **state)
{
	struct drv_item items[N_BULK];
	struct rig *r = set_up_bulk("128", items);

	(void)state;
	rig_control(r, "fault drop-set=2", NULL, 0);
	assert_int_equal(rig_submit(r, DRV_UPDATE, N_BULK, items),
			 WEFT_EUNAVAIL);
	for (int i = 0; i < N_BULK; i++) {
		rig_expect(r, i, DRV_UNKNOWN);
	}
	assert_int_equal(n_shown(r, items), N_BULK);
	tear_down(r);
}

static void explain_line(const char *device, const char *line, bool is_reply,
			 void *arg)
{
	struct buf *b = arg;

	(void)device;
	assert_false(is_reply);
	buf_printf(b, "%.30s|", line);
}

static void explains_the_bulk(void **state)
{
	static const struct drv_item items[] = { DEL(0, 0), ADD(0, 1),
						 ADD(1, 2) };
	const struct drv_batch batch = { .mode = DRV_UPDATE, .n_items = 3,
					 .items = items };
	struct rig *r = set_up_as("calient-tl1", NULL);
	struct buf b = { 0 };

	(void)state;
	drv_explain(r->dev, &batch, explain_line, &b);
	assert_string_equal(buf_cstr(&b), "RTRV-CRS:::1::ALL;|"
			    "CANC-CRS:::2::1.1.1>1.1.1;|"
			    "DLT-CRS:::3::1.1.1>1.1.1;|"
			    "ENT-CRS-BULK::1.1.1>1.1.2&1.1.|"
			    "RTRV-SAVERECALL:::5;|");
	buf_fini(&b);
	tear_down(r);
}

/* ---- power ---------------------------------------------------------------- */

/* No light is no reading; the loss of a circuit is computed from both its
 * monitors, with the error of both. */
static void power_and_loss_come_from_the_monitors(void **state)
{
	static const struct drv_item items[] = { ADD(0, 1), ADD(2, 3) };
	struct rig *r = set_up_as("calient-tl1", NULL);
	int32_t before;

	(void)state;
	assert_int_equal(rig_submit(r, DRV_SAFE, 2, items), 0);
	assert_int_equal(rig_snapshot(r), 0);
	assert_int_equal(r->snap.caps.power, DRV_POWER_BOTH);
	assert_int_equal(r->snap.n_ports, 4);
	for (int i = 0; i < 2; i++) {
		assert_true(r->snap.xcs[i].has_loss);
		assert_in_range(r->snap.xcs[i].loss_mdb, 500, 1000);
		assert_int_equal(r->snap.xcs[i].loss_error_mdb, 1000);
	}
	before = r->snap.xcs[0].loss_mdb;
	rig_control(r, "fault dim=i0", NULL, 0);
	rig_control(r, "fault conn-failed=i2", NULL, 0);
	assert_int_equal(rig_snapshot(r), 0);
	assert_int_equal(r->snap.xcs[0].loss_mdb, before + 3000);
	assert_false(r->snap.xcs[1].has_loss);
	tear_down(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(circuits_are_made_and_ended_in_two_steps),
		cmocka_unit_test(an_entered_circuit_is_blocked_and_resumed),
		cmocka_unit_test(accepted_and_then_failed_is_said),
		cmocka_unit_test(large_switches_answer_in_pages),
		cmocka_unit_test(a_bulk_steals_only_when_told_to),
		cmocka_unit_test(a_bulk_is_cut_to_size),
		cmocka_unit_test(a_bulk_done_in_part_is_told_item_by_item),
		cmocka_unit_test(a_take_over_in_bulk_done_in_part_is_unknown),
		cmocka_unit_test(a_slow_bulk_is_waited_for),
		cmocka_unit_test(what_a_bulk_leaves_inactive_is_activated),
		cmocka_unit_test(a_lost_session_leaves_a_bulk_unknown),
		cmocka_unit_test(explains_the_bulk),
		cmocka_unit_test(power_and_loss_come_from_the_monitors),
	};

	return cmocka_run_group_tests_name("drivers/calient", tests, NULL,
					   NULL);
}
