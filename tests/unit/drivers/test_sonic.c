/* SPDX-License-Identifier: Apache-2.0 */
/* `sonic-ocs`: its rows, its states and what is particular to its tables. */
#include "tests/unit/drivers/rig.h"

#include <netinet/in.h>

#include "drivers/sonic/sonic.h"

static struct rig *rig_in(const char *form, const char *fault)
{
	struct rig *r = test_calloc(1, sizeof(*r));

	assert_non_null(r);
	rig_init(r, "sonic-ocs", 8, 8, false);
	r->extra[0] = form ? "--form" : NULL;
	r->extra[1] = form;
	rig_option(r, "gap_ms", "0");
	rig_option(r, "settle_ms", "5");
	rig_option(r, "tune_ms", "40");
	rig_option(r, "chunk", "3");
	rig_start_emulator(r, "8x8", fault);
	rig_open(r);
	return r;
}

static struct rig *rig_of(const char *fault)
{
	return rig_in(NULL, fault);
}

static void tear_down(struct rig *r)
{
	rig_fini(r);
	test_free(r);
}

static bool was_sent(const struct rig *r, const char *line)
{
	for (int i = 0; i < r->n_lines; i++) {
		if (r->lines[i][0] == '>' && strcmp(r->lines[i] + 2, line) == 0) {
			return true;
		}
	}
	return false;
}

/* A line of another user's shell, whose output comes back. */
static void as_another(const struct rig *r, const char *line)
{
	struct sockaddr_in addr = { .sin_family = AF_INET, .sin_addr.s_addr =
				    htonl(INADDR_LOOPBACK) };
	const char *port = strrchr(r->address, ':');
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	char byte;

	assert_non_null(port);
	addr.sin_port = htons((uint16_t)atoi(port + 1));
	assert_int_equal(connect(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	assert_int_equal(write(fd, line, strlen(line)), strlen(line));
	assert_int_equal(read(fd, &byte, 1), 1);
	close(fd);
}

static int status_of(const char *text, struct optics_xc *xc,
		     enum drv_state *state)
{
	char line[96];

	snprintf(line, sizeof(line), "%s", text);
	return sonic_parse_status(line, xc, state, NULL);
}

static void rows_are_read(void **state)
{
	struct optics_xc xc;
	enum drv_state s;

	(void)state;
	assert_int_equal(status_of("12A-32B  12A  32B  tuned  tuned", &xc, &s),
			 1);
	assert_int_equal(xc.in, 11);
	assert_int_equal(xc.out, 31);
	assert_int_equal(s, DRV_TUNED);
	assert_int_equal(status_of("1A-1B 1A 1B tuned failed", &xc, &s), 1);
	assert_int_equal(s, DRV_FAILED);
	assert_int_equal(status_of("1A-1B 1A 1B tuning tuned", &xc, &s), 1);
	assert_int_equal(s, DRV_TUNING);
	assert_int_equal(status_of("id  a_side  b_side", &xc, &s), 0);
	assert_int_equal(status_of("-----  ----", &xc, &s), 0);
	assert_int_equal(status_of("3b-2a  2a  3b  extra column  Tuned  TUNED", &xc, &s), 1);
	assert_int_equal(xc.in, 1);
	assert_int_equal(xc.out, 2);
	assert_int_equal(s, DRV_TUNED);
	assert_true(sonic_is_heading("ID  A_SIDE") && sonic_is_heading(" \r"));
	assert_false(sonic_is_heading("Root privileges are required"));
	assert_int_equal(status_of("1A-1A 1A 1A tuned tuned", &xc, &s),
			 WEFT_EDEVICE);
	assert_int_equal(status_of("0A-1B 0A 1B tuned tuned", &xc, &s),
			 WEFT_EDEVICE);
	assert_int_equal(status_of("1A-1B 1A 1B tuned shiny", &xc, &s),
			 WEFT_EDEVICE);
}

static void modes_are_the_devices_own(void **state)
{
	static const struct drv_item one[] = { ADD(0, 4), ADD(1, 5) };
	static const struct drv_item two[] = { ADD(2, 5) };
	static const struct drv_item all[] = { ADD(3, 6), ADD(2, 5) };
	struct rig *r = rig_of(NULL);

	(void)state;
	assert_int_equal(rig_submit(r, DRV_SAFE, 2, one), 0);
	assert_true(was_sent(r, "sudo config ocs cross-connect add "
			     "1A-5B,2A-6B safe"));
	assert_int_equal(r->outcomes[0].evidence, DRV_READ_BACK);
	assert_int_equal(rig_submit(r, DRV_UPDATE, 1, two), 0);
	assert_true(was_sent(r, "sudo config ocs cross-connect add 3A-6B "
			     "update"));
	rig_expect_map(r, "0-4 2-5");
	r->n_lines = 0;
	/* What stays is not touched. */
	assert_int_equal(rig_submit(r, DRV_REPLACE, 2, all), 0);
	assert_true(was_sent(r, "sudo config ocs cross-connect delete 1A-5B"));
	assert_true(was_sent(r, "sudo config ocs cross-connect add 4A-7B safe"));
	rig_expect_map(r, "2-5 3-6");
	tear_down(r);
}

static int count_sent(const struct rig *r, const char *word)
{
	int n = 0;

	for (int i = 0; i < r->n_lines; i++) {
		n += r->lines[i][0] == '>' && strstr(r->lines[i], word);
	}
	return n;
}

/* Lists, as long as `chunk` lets them be; one that is in the hardware alone goes by itself, since
 * to configure it ends what is configured at its ports. */
static void what_is_replaced_goes_in_lists(void **state)
{
	static const struct drv_item odd[] = { ADD(0, 4) }, gone[] = { DEL(0, 4) };
	static const struct drv_item all[] = { ADD(0, 7), ADD(2, 6), ADD(6, 4) };
	struct rig *r = rig_of("stale");

	(void)state;
	assert_int_equal(rig_submit(r, DRV_SAFE, 1, odd), 0);
	assert_int_equal(rig_submit(r, DRV_SAFE, 1, gone), 0);
	as_another(r, "config ocs cross-connect add 1A-6B,2A-5B,3A-7B,4A-8B,5A-1B,6A-2B; echo a\n");
	rig_expect_map(r, "0-4 0-5 1-4 2-6 3-7 4-0 5-1");
	r->n_lines = 0;
	assert_int_equal(rig_submit(r, DRV_REPLACE, 3, all), 0);
	assert_true(was_sent(r, "sudo config ocs cross-connect delete 1A-6B,2A-5B,4A-8B"));
	assert_true(was_sent(r, "sudo config ocs cross-connect delete 5A-1B,6A-2B"));
	assert_true(was_sent(r, "sudo config ocs cross-connect add 1A-5B update && "
			     "sudo config ocs cross-connect delete 1A-5B"));
	assert_int_equal(count_sent(r, " delete "), 3);
	rig_expect_map(r, "0-7 2-6 6-4");
	tear_down(r);
}

static void a_replacement_cancelled_in_time_changes_nothing(void **state)
{
	static const struct drv_item first[] = { ADD(0, 4), ADD(1, 5) };
	static const struct drv_item other[] = { ADD(0, 5) };
	const struct drv_batch batch = { .mode = DRV_REPLACE, .n_items = 1, .items = other };
	struct rig *r = rig_of(NULL);

	(void)state;
	assert_int_equal(rig_submit(r, DRV_SAFE, 2, first), 0);
	rig_begin_submit(r, &batch);
	drv_cancel(r->dev);
	rig_wait(r);
	assert_int_equal(r->rc, WEFT_ECANCELED);
	rig_expect(r, 0, DRV_SKIPPED);
	rig_expect_map(r, "0-4 1-5");
	tear_down(r);
}

static void a_circuit_that_never_tunes_is_said(void **state)
{
	static const struct drv_item items[] = { ADD(0, 4), ADD(1, 5) };
	struct rig *r = rig_of("tuning=i1");

	(void)state;
	assert_int_equal(rig_submit(r, DRV_SAFE, 2, items), 0);
	assert_int_equal(r->outcomes[0].evidence, DRV_READ_BACK);
	assert_int_equal(r->outcomes[0].error, DRV_ERR_NONE);
	assert_int_equal(r->outcomes[1].evidence, DRV_ACKED);
	assert_int_equal(r->outcomes[1].error, DRV_ERR_TRAFFIC);
	assert_string_equal(r->outcomes[1].text, "tuning");
	assert_int_equal(rig_snapshot(r), 0);
	assert_int_equal(r->snap.xcs[1].state, DRV_TUNING);
	tear_down(r);
}

static void accepted_by_configuration_failed_in_hardware(void **state)
{
	static const struct drv_item items[] = { ADD(0, 4) };
	struct rig *r = rig_of("conn-failed=o4");

	(void)state;
	assert_int_equal(rig_submit(r, DRV_SAFE, 1, items), 0);
	assert_int_equal(r->outcomes[0].error, DRV_ERR_TRAFFIC);
	assert_int_equal(rig_snapshot(r), 0);
	assert_int_equal(r->snap.xcs[0].state, DRV_FAILED);
	tear_down(r);
}

/* checklist 18: it is only in the hardware's table. */
static void a_stale_circuit_is_flagged_and_cleared(void **state)
{
	static const struct drv_item first[] = { ADD(0, 4), ADD(1, 5) };
	static const struct drv_item gone[] = { DEL(0, 4) };
	static const struct drv_item other[] = { ADD(0, 6) };
	struct rig *r = rig_of("stale");

	(void)state;
	assert_int_equal(rig_submit(r, DRV_SAFE, 2, first), 0);
	assert_int_equal(rig_submit(r, DRV_SAFE, 1, gone), 0);
	assert_int_equal(r->outcomes[0].evidence, DRV_ACKED);
	rig_expect_map(r, "0-4 1-5");
	assert_string_equal(r->snap.xcs[0].owner, "stale");
	assert_string_equal(r->snap.xcs[1].owner, "");
	/* It is in the way like any other. */
	assert_int_equal(rig_submit(r, DRV_SAFE, 1, other), WEFT_EDEVICE);
	assert_non_null(strstr(r->outcomes[0].text, "0-4"));
	assert_int_equal(rig_submit(r, DRV_UPDATE, 1, other), 0);
	rig_expect_map(r, "0-6 1-5");
	tear_down(r);
}

static void a_stale_circuit_can_be_deleted_or_adopted(void **state)
{
	static const struct drv_item make[] = { ADD(0, 4) };
	static const struct drv_item gone[] = { DEL(0, 4) };
	struct rig *r = rig_of("stale");

	(void)state;
	assert_int_equal(rig_submit(r, DRV_SAFE, 1, make), 0);
	assert_int_equal(rig_submit(r, DRV_SAFE, 1, gone), 0);
	rig_expect_map(r, "0-4");
	assert_int_equal(rig_submit(r, DRV_SAFE, 1, make), 0);
	rig_expect_map(r, "0-4");
	assert_string_equal(r->snap.xcs[0].owner, "");
	rig_control(r, "fault stale", NULL, 0);
	assert_int_equal(rig_submit(r, DRV_SAFE, 1, gone), 0);
	rig_expect_map(r, "0-4");
	assert_int_equal(rig_submit(r, DRV_SAFE, 1, gone), 0);
	rig_expect_map(r, "");
	tear_down(r);
}

static void factory_losses_are_told_apart(void **state)
{
	static const struct drv_item items[] = { ADD(0, 4) };
	struct rig *r = rig_of(NULL);

	(void)state;
	assert_int_equal(rig_submit(r, DRV_SAFE, 1, items), 0);
	assert_int_equal(rig_snapshot(r), 0);
	assert_true(r->snap.xcs[0].has_factory_loss);
	assert_in_range(r->snap.xcs[0].factory_loss_mdb, 1500, 1990);
	assert_false(r->snap.xcs[0].has_loss);
	tear_down(r);
}

static void a_blocked_port_is_reported(void **state)
{
	struct rig *r = rig_of("port-disabled=i2");

	(void)state;
	assert_int_equal(rig_snapshot(r), 0);
	assert_int_equal(r->snap.n_ports, 1);
	assert_false(r->snap.ports[0].enabled);
	assert_int_equal(r->snap.ports[0].index, 2);
	tear_down(r);
}

static void half_of_a_list_is_told_item_by_item(void **state)
{
	static const struct drv_item items[] = { ADD(0, 4), ADD(1, 5),
						 ADD(2, 6) };
	struct rig *r = rig_of("half=1");

	(void)state;
	/* Then one by one, which the fault has nothing against. */
	assert_int_equal(rig_submit(r, DRV_SAFE, 3, items), 0);
	rig_expect_map(r, "0-4 1-5 2-6");
	tear_down(r);
}

/* ---- a CLI made from YANG -------------------------------------------------- */

static void its_rows_are_read(void **state)
{
	struct optics_xc xc;
	enum drv_state s;

	(void)state;
	assert_int_equal(status_of("1A-16B  enabled  1A, panel IN 1, panel OUT 16", &xc, &s), 1);
	assert_int_equal(xc.in, 0);
	assert_int_equal(xc.out, 15);
	assert_int_equal(s, DRV_TUNED);
	assert_int_equal(status_of("1A-16B  disabled", &xc, &s), 1);
	assert_int_equal(s, DRV_BLOCKED);
	assert_int_equal(status_of("1A-16B  invalid  N/A", &xc, &s), 1);
	assert_int_equal(s, DRV_FAILED);
	assert_int_equal(status_of("1A-16B  shiny  1A", &xc, &s), WEFT_EDEVICE);
	assert_true(sonic_is_heading("CROSS CONNECT ID    STATUS    PHYSICAL PATH") &&
		    sonic_is_heading("SIMPLEX PORT ID    LABEL           CONFIG STATUS"));
}

/* The words are found out, one circuit goes in a command, and `safe` is kept by the driver, as
 * the device would take a second circuit of a port. */
static void its_words_are_spoken(void **state)
{
	static const struct drv_item two[] = { ADD(0, 4), ADD(1, 5) };
	static const struct drv_item steal[] = { ADD(0, 5) };
	struct rig *r = rig_in("yang", NULL);

	(void)state;
	assert_int_equal(rig_submit(r, DRV_SAFE, 2, two), 0);
	assert_true(was_sent(r, "show ocs-cross-connect-table"));
	assert_true(was_sent(r, "sudo config ocs-cross-connect add 1A-5B --a-side 1A --b-side 5B"));
	assert_true(was_sent(r, "sudo config ocs-cross-connect add 2A-6B --a-side 2A --b-side 6B"));
	assert_int_equal(r->outcomes[1].evidence, DRV_READ_BACK);
	assert_int_equal(rig_submit(r, DRV_SAFE, 1, steal), WEFT_EDEVICE);
	rig_expect_map(r, "0-4 1-5");
	r->n_lines = 0;
	assert_int_equal(rig_submit(r, DRV_UPDATE, 1, steal), 0);
	assert_true(was_sent(r, "sudo config ocs-cross-connect delete 1A-5B && "
			     "sudo config ocs-cross-connect delete 2A-6B && "
			     "sudo config ocs-cross-connect add 1A-6B --a-side 1A --b-side 6B"));
	rig_expect_map(r, "0-5");
	tear_down(r);
}

/* How far it is is told after each circuit; what was not sent yet can be left out. */
static void its_batch_is_told_and_cancelled(void **state)
{
	static const struct drv_item items[] = { ADD(0, 4), ADD(1, 5), ADD(2, 6), ADD(3, 7) };
	const struct drv_batch batch = { .mode = DRV_SAFE, .n_items = 4, .items = items };
	struct rig *r = rig_in("yang", NULL);
	const struct drv_event *ev;

	(void)state;
	rig_begin_submit(r, &batch);
	ev = &rig_wait_event(r, DRV_EVENT_PROGRESS)->ev;
	assert_int_equal(ev->done, 1);
	assert_int_equal(ev->total, 4);
	drv_cancel(r->dev);
	rig_wait(r);
	assert_int_equal(r->rc, WEFT_ECANCELED);
	rig_expect(r, 0, DRV_DONE);
	rig_expect(r, 3, DRV_SKIPPED);
	rig_expect_map(r, r->outcomes[1].result == DRV_DONE ? "0-4 1-5" : "0-4");
	tear_down(r);
}

/* The session ends when the first of two commands of a line is done: what was in the way is gone,
 * nothing is claimed, and the same batch goes on from there. */
static void a_session_lost_between_two_commands_is_unknown(void **state)
{
	static const struct drv_item first[] = { ADD(0, 4), ADD(2, 6) };
	static const struct drv_item steal[] = { ADD(0, 5), DEL(2, 6) };
	struct rig *r = rig_in("yang", NULL);

	(void)state;
	assert_int_equal(rig_submit(r, DRV_SAFE, 2, first), 0);
	rig_control(r, "fault drop-set", NULL, 0);
	assert_int_equal(rig_submit(r, DRV_UPDATE, 2, steal), WEFT_EUNAVAIL);
	rig_expect(r, 0, DRV_UNKNOWN);
	rig_expect(r, 1, DRV_SKIPPED);
	rig_expect_map(r, "2-6");
	assert_int_equal(rig_submit(r, DRV_UPDATE, 2, steal), 0);
	rig_expect_map(r, "0-5");
	tear_down(r);
}

/* Another user's second circuit of a port is `invalid`: it is shown as failed, before or after
 * the one that has the port, and takes nothing from it. */
static void a_second_circuit_of_a_port_is_told(void **state)
{
	static const struct drv_item lit[] = { ADD(1, 5) };
	static const struct drv_item busy[] = { ADD(3, 5) };
	struct rig *r = rig_in("yang", NULL);

	(void)state;
	assert_int_equal(rig_submit(r, DRV_SAFE, 1, lit), 0);
	as_another(r, "config ocs-cross-connect add 1A-6B --a-side 1A --b-side 6B; echo a\n");
	as_another(r, "config ocs-cross-connect add 2A-7B --a-side 2A --b-side 7B; echo a\n");
	assert_int_equal(rig_snapshot(r), 0);
	assert_int_equal(r->snap.n_xcs, 3);
	for (int i = 0; i < 3; i++) {
		bool is_lit = optics_xc_cmp(&r->snap.xcs[i].xc, &lit[0].xc) == 0;

		assert_int_equal(r->snap.xcs[i].state, is_lit ? DRV_TUNED : DRV_FAILED);
	}
	assert_int_equal(rig_submit(r, DRV_SAFE, 1, busy), WEFT_EDEVICE);
	assert_non_null(strstr(r->outcomes[0].text, "1-5"));
	tear_down(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_are_read),
		cmocka_unit_test(modes_are_the_devices_own),
		cmocka_unit_test(what_is_replaced_goes_in_lists),
		cmocka_unit_test(a_replacement_cancelled_in_time_changes_nothing),
		cmocka_unit_test(a_circuit_that_never_tunes_is_said),
		cmocka_unit_test(accepted_by_configuration_failed_in_hardware),
		cmocka_unit_test(a_stale_circuit_is_flagged_and_cleared),
		cmocka_unit_test(a_stale_circuit_can_be_deleted_or_adopted),
		cmocka_unit_test(factory_losses_are_told_apart),
		cmocka_unit_test(a_blocked_port_is_reported),
		cmocka_unit_test(half_of_a_list_is_told_item_by_item),
		cmocka_unit_test(its_rows_are_read),
		cmocka_unit_test(its_words_are_spoken),
		cmocka_unit_test(its_batch_is_told_and_cancelled),
		cmocka_unit_test(a_session_lost_between_two_commands_is_unknown),
		cmocka_unit_test(a_second_circuit_of_a_port_is_told),
	};

	return cmocka_run_group_tests_name("drivers/sonic", tests, NULL, NULL);
}
