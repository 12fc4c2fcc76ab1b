/* SPDX-License-Identifier: Apache-2.0 */
/* What people ask of devices beside their light: ports enabled and disabled,
 * recovery, moves that are cancelled. */
#include "tests/unit/drivers/rig.h"

#include <netinet/in.h>

static struct rig *set_up(const char *driver, const char *fault)
{
	struct rig *r = test_calloc(1, sizeof(*r));
	bool ring = strcmp(driver, "mrr-reg") == 0, yang = strcmp(driver, "sonic-ocs yang") == 0;

	r->extra[0] = yang ? "--form" : NULL;
	r->extra[1] = "yang";
	rig_init(r, yang ? "sonic-ocs" : driver, ring ? 6 : 8, ring ? 4 : 8, false);
	rig_option(r, ring ? "lock_ms" : "gap_ms", ring ? "500" : "0");
	rig_start_emulator(r, ring ? "6x4" : "8x8", fault);
	return r;
}

static void tear_down(struct rig *r)
{
	rig_fini(r);
	test_free(r);
}

/* ---- ports ------------------------------------------------------------------ */

/* As the last snapshot has it; those not listed are enabled. */
static bool is_enabled(const struct rig *r, bool is_out, int index)
{
	for (int i = 0; i < r->snap.n_ports; i++) {
		const struct drv_port *p = &r->snap.ports[i];

		if (p->is_out == is_out && p->index == index) {
			return p->enabled;
		}
	}
	return true;
}

static void expect_only(struct rig *r, bool is_out, int index, bool enabled)
{
	assert_int_equal(rig_snapshot(r), 0);
	for (int i = 0; i < 16; i++) {
		bool it = (i >= 8) == is_out && i % 8 == index;

		assert_int_equal(is_enabled(r, i >= 8, i % 8),
				 it ? enabled : true);
	}
}

/* One port, on either side, read back, and nothing else; done twice is done. */
static void a_port_is_disabled_and_enabled(void **state)
{
	struct rig *r = set_up(*state, NULL);

	rig_open(r);
	for (int side = 0; side < 2; side++) {
		for (int i = 0; i < 4; i++) {
			bool enable = i >= 2;

			assert_int_equal(rig_port(r, side, 2, enable), 0);
			rig_expect(r, 0, DRV_DONE);
			assert_int_equal(r->outcomes[0].evidence,
					 DRV_READ_BACK);
			expect_only(r, side, 2, enable);
		}
	}
	tear_down(r);
}

/* An any-to-any switch has one side; a port is the same whatever it is called. */
static void a_port_of_one_side(void **state)
{
	struct rig *r = test_calloc(1, sizeof(*r));

	rig_init(r, *state, 8, 8, true);
	rig_option(r, "gap_ms", "0");
	rig_start_emulator(r, "8xCC", NULL);
	rig_open(r);
	for (int side = 0; side < 2; side++) {
		assert_int_equal(rig_port(r, side, 5, false), 0);
		assert_int_equal(rig_snapshot(r), 0);
		assert_int_equal(r->snap.n_ports, 1);
		assert_false(r->snap.ports[0].enabled);
		assert_int_equal(r->snap.ports[0].index, 5);
		assert_int_equal(rig_port(r, side, 5, true), 0);
		assert_int_equal(rig_snapshot(r), 0);
		assert_int_equal(r->snap.n_ports, 0);
	}
	tear_down(r);
}

/* A failed port does not become enabled by a command. */
static void a_failed_port_stays_failed(void **state)
{
	struct rig *r = set_up(*state, "port-failed=i2");

	rig_open(r);
	assert_int_equal(rig_port(r, false, 2, true), WEFT_EDEVICE);
	rig_expect(r, 0, DRV_REFUSED);
	assert_non_null(strstr(r->err.msg, "failed"));
	tear_down(r);
}

/* The command was done or was lost and no answer comes: unknown, and the
 * next reading tells. */
static void without_an_answer_it_is_unknown(void **state)
{
	static const char *const faults[] = { "fault silence-set",
					      "fault eat-set" };
	struct rig *r = set_up(*state, NULL);

	/* Enough for all that is answered, on a busy machine. */
	r->cfg.timeout_ms = 600;
	rig_open(r);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(rig_snapshot(r), 0);
		rig_control(r, faults[i], NULL, 0);
		assert_int_equal(rig_port(r, false, 2, false), WEFT_ETIMEOUT);
		rig_expect(r, 0, DRV_UNKNOWN);
		assert_int_equal(rig_snapshot(r), 0);
		assert_int_equal(is_enabled(r, false, 2), i == 1);
		assert_int_equal(rig_port(r, false, 2, true), 0);
	}
	tear_down(r);
}

static void nothing_is_sent_without_a_session(void **state)
{
	struct rig *r = set_up(*state, "refuse");

	rig_open(r);
	assert_int_equal(rig_port(r, false, 2, false), WEFT_EUNAVAIL);
	rig_expect(r, 0, DRV_SKIPPED);
	tear_down(r);
}

static void what_cannot_be_is_said_at_once(void **state)
{
	struct rig *r = set_up("rome-cli", NULL);

	(void)state;
	rig_open(r);
	assert_int_equal(rig_port(r, false, 2, false), WEFT_EUNSUPPORTED);
	assert_non_null(strstr(r->err.msg, "rome-cli knows no way"));
	assert_int_equal(rig_recover(r, DRV_RELOCK), WEFT_EUNSUPPORTED);
	assert_non_null(strstr(r->err.msg, "knows no relock"));
	assert_int_equal(rig_stat(r, "commands"), 0);
	tear_down(r);
	r = set_up("polatis-scpi", NULL);
	rig_open(r);
	assert_int_equal(rig_port(r, true, 8, false), WEFT_EINVAL);
	assert_non_null(strstr(r->err.msg, "no port out 9"));
	tear_down(r);
}

/* ---- errors that wait --------------------------------------------------------- */

/* Another session says something, and waits for a line. */
static void by_another(struct rig *r, const char *words)
{
	struct sockaddr_in addr = { .sin_family = AF_INET };
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	char byte = 0;

	addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	addr.sin_port = htons((uint16_t)atoi(strrchr(r->address, ':') + 1));
	assert_int_equal(connect(fd, (struct sockaddr *)&addr, sizeof(addr)),
			 0);
	assert_int_equal(write(fd, words, strlen(words)), strlen(words));
	while (byte != '\n') {
		assert_int_equal(read(fd, &byte, 1), 1);
	}
	close(fd);
}

static void errors_are_cleared(void **state)
{
	struct rig *r = set_up("polatis-scpi", NULL);

	(void)state;
	rig_open(r);
	assert_int_equal(rig_recover(r, DRV_CLEAR), 0);
	assert_string_equal(r->outcomes[0].text, "0 errors waited");
	by_another(r, "nonsense\n:oxc:swit:conn:sub (@1),(@9)\n*idn?\n");
	assert_int_equal(rig_recover(r, DRV_CLEAR), 0);
	rig_expect(r, 0, DRV_DONE);
	assert_non_null(strstr(r->outcomes[0].text, "2 errors, the first: -"));
	assert_int_equal(rig_recover(r, DRV_CLEAR), 0);
	assert_string_equal(r->outcomes[0].text, "0 errors waited");
	tear_down(r);
}

/* ---- resonators ----------------------------------------------------------------- */

static struct ring_setting tunes[] = {
	{ 0, 0, 1, OPTICS_CW, 0, RESONATOR_ADD }, { 0, 1, 1, OPTICS_CW, 0, RESONATOR_DROP },
	{ 0, 2, 2, OPTICS_CW, 0, RESONATOR_ADD }, { 0, 3, 2, OPTICS_CW, 0, RESONATOR_DROP },
};
static const struct ring_settings program = { 1, 4, tunes };

static int searched(struct rig *r)
{
	char text[512];

	rig_control(r, "slots", text, sizeof(text));
	return atoi(strstr(text, "searched ") + strlen("searched "));
}

/* Those that lost their wave, and no other. */
static void lost_locks_are_found_again(void **state)
{
	struct rig *r = set_up("mrr-reg", "lock-time=10");
	char slots[512];
	int n_lost;

	(void)state;
	rig_open(r);
	assert_int_equal(rig_program(r, &program), 0);
	assert_int_equal(rig_recover(r, DRV_RELOCK), 0);
	assert_string_equal(r->outcomes[0].text, "all settings are locked");
	assert_int_equal(searched(r), 0);
	rig_control(r, "fault drift=5", NULL, 0);
	while (r->n_events < 2) {
		assert_true(uv_run(&r->loop, UV_RUN_ONCE));
	}
	rig_control(r, "clear", NULL, 0);
	rig_control(r, "fault lock-time=10", NULL, 0);
	assert_int_equal(rig_snapshot(r), 0);
	/* More may be lost until the device is told to lose no more. */
	n_lost = r->snap.n_lost;
	assert_in_range(n_lost, 2, 4);
	assert_int_equal(rig_recover(r, DRV_RELOCK), 0);
	rig_expect(r, 0, DRV_DONE);
	assert_int_equal(r->outcomes[0].evidence, DRV_READ_BACK);
	assert_int_equal(r->outcomes[0].error, DRV_ERR_NONE);
	assert_int_equal(searched(r), n_lost);
	rig_expect_program(r, &program);
	assert_int_equal(r->snap.n_lost, 0);
	/* One commit there was, and there is no other. */
	rig_control(r, "slots", slots, sizeof(slots));
	assert_non_null(strstr(slots, "generation 1 "));
	tear_down(r);
}

static void what_does_not_lock_is_told(void **state)
{
	struct rig *r = set_up("mrr-reg", NULL);

	(void)state;
	rig_open(r);
	assert_int_equal(rig_program(r, &program), 0);
	rig_control(r, "fault zero-lock=2:2", NULL, 0);
	assert_int_equal(rig_recover(r, DRV_RELOCK), 0);
	assert_int_equal(r->outcomes[0].error, DRV_ERR_TRAFFIC);
	assert_string_equal(r->outcomes[0].text, "1 settings are still not "
			    "locked: step 0 node 2 cw fibre 0 channel 2: zero "
			    "lock");
	tear_down(r);
}

/* Not without light, not for a writer of the past, not twice. */
static void relocking_is_refused(void **state)
{
	struct rig *r = set_up("mrr-reg", NULL);

	(void)state;
	r->cfg.fence = 7;
	rig_open(r);
	assert_int_equal(rig_program(r, &program), 0);
	rig_control(r, "fault interlock", NULL, 0);
	assert_int_equal(rig_recover(r, DRV_RELOCK), WEFT_EDEVICE);
	rig_expect(r, 0, DRV_REFUSED);
	assert_non_null(strstr(r->err.msg, "interlock is open"));
	rig_control(r, "clear", NULL, 0);
	rig_control(r, "fault zero-lock=2:2", NULL, 0);
	rig_close(r);
	r->cfg.fence = 6;
	rig_open(r);
	assert_int_equal(rig_recover(r, DRV_RELOCK), WEFT_EDEVICE);
	rig_expect(r, 0, DRV_REFUSED);
	assert_non_null(strstr(r->err.msg, "newer writer"));
	rig_control(r, "fault reset=4", NULL, 0);
	assert_int_equal(rig_recover(r, DRV_RELOCK), WEFT_EDEVICE);
	assert_true(r->outcomes[0].result != DRV_DONE);
	rig_control(r, "clear", NULL, 0);
	rig_control(r, "fault plain", NULL, 0);
	assert_int_equal(rig_recover(r, DRV_RELOCK), 0);
	tear_down(r);
}

/* ---- robots ------------------------------------------------------------------- */

/* checklist 20: a robot that asks for a homing run gets one from people, and
 * what waited in its queue is then made once. */
static void a_homing_run_is_made(void **state)
{
	static const struct drv_item items[] = { ADD(0, 4), ADD(1, 5) };
	struct rig *r = set_up("rome-cli", NULL);

	(void)state;
	rig_option(r, "poll_ms", "5");
	rig_option(r, "move_ms", "400");
	rig_open(r);
	rig_control(r, "fault move=20", NULL, 0);
	rig_control(r, "fault homing", NULL, 0);
	assert_int_equal(rig_submit(r, DRV_SAFE, 2, items), WEFT_ETIMEOUT);
	rig_expect(r, 1, DRV_UNKNOWN);
	assert_int_equal(rig_recover(r, DRV_HOMING), 0);
	rig_expect(r, 0, DRV_DONE);
	assert_int_equal(r->outcomes[0].evidence, DRV_READ_BACK);
	assert_int_equal(rig_stat(r, "sets"), 3);
	assert_int_equal(rig_submit(r, DRV_SAFE, 2, items), 0);
	rig_expect_map(r, "0-4 1-5");
	tear_down(r);
}

static void no_homing_run_while_moves_are_in_progress(void **state)
{
	static const struct drv_item items[] = { ADD(0, 4) };
	struct rig *r = set_up("rome-cli", "move=300");

	(void)state;
	rig_option(r, "poll_ms", "5");
	rig_option(r, "move_ms", "20");
	rig_open(r);
	assert_int_equal(rig_submit(r, DRV_SAFE, 1, items), WEFT_ETIMEOUT);
	assert_int_equal(rig_recover(r, DRV_HOMING), WEFT_EDEVICE);
	rig_expect(r, 0, DRV_REFUSED);
	assert_non_null(strstr(r->err.msg, "moves are under way"));
	tear_down(r);
}

/* checklist 22: moves that were not put into the queue yet are left out, those
 * in it are made, and each item says which it was. */
static void cancelled_moves_are_left_out(void **state)
{
	static const struct drv_item items[] = { ADD(0, 4), ADD(1, 5),
						 ADD(2, 6), ADD(3, 7) };
	const struct drv_batch batch = { .mode = DRV_SAFE, .n_items = 4,
					 .items = items };
	struct rig *r = set_up(*state, "move=60");
	int n_done = 0;

	rig_option(r, "poll_ms", "5");
	rig_option(r, "queue", "2");
	rig_open(r);
	rig_begin_submit(r, &batch);
	rig_wait_event(r, DRV_EVENT_PROGRESS);
	drv_cancel(r->dev);
	rig_wait(r);
	assert_int_equal(r->rc, WEFT_ECANCELED);
	for (int i = 0; i < 4; i++) {
		rig_expect(r, i, i < 2 ? DRV_DONE : DRV_SKIPPED);
		n_done += r->outcomes[i].result == DRV_DONE;
	}
	assert_int_equal(n_done, 2);
	assert_non_null(strstr(r->err.msg, "not sent"));
	rig_expect_map(r, "0-4 1-5");
	/* It was for that batch only. */
	assert_int_equal(rig_submit(r, DRV_SAFE, 2, items + 2), 0);
	tear_down(r);
}

#define CASE(fn, driver)                                                     \
	{ driver ": " #fn, fn, NULL, NULL, (void *)driver }
#define PORTS(driver)                                                        \
	CASE(a_port_is_disabled_and_enabled, driver),                        \
	CASE(without_an_answer_it_is_unknown, driver),                       \
	CASE(nothing_is_sent_without_a_session, driver)

int main(void)
{
	const struct CMUnitTest tests[] = {
		PORTS("polatis-scpi"),
		PORTS("polatis-tl1"),
		PORTS("sonic-ocs"),
		PORTS("sonic-ocs yang"),
		CASE(a_port_of_one_side, "polatis-scpi"),
		CASE(a_port_of_one_side, "polatis-tl1"),
		CASE(a_failed_port_stays_failed, "polatis-scpi"),
		CASE(a_failed_port_stays_failed, "polatis-tl1"),
		cmocka_unit_test(what_cannot_be_is_said_at_once),
		cmocka_unit_test(errors_are_cleared),
		cmocka_unit_test(lost_locks_are_found_again),
		cmocka_unit_test(what_does_not_lock_is_told),
		cmocka_unit_test(relocking_is_refused),
		cmocka_unit_test(a_homing_run_is_made),
		cmocka_unit_test(no_homing_run_while_moves_are_in_progress),
		CASE(cancelled_moves_are_left_out, "rome-cli"),
		CASE(cancelled_moves_are_left_out, "telescent-cli"),
	};

	return cmocka_run_group_tests_name("drivers/maintenance", tests, NULL, NULL);
}
