/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checklist 27: every switch driver under every common fault of its emulator:
 * whatever goes wrong, what is claimed of an item is true by the device's own account, and
 * when the fault is over a reading shows what the device holds.
 */
#include "tests/unit/drivers/rig.h"

/* A word behind a name is an option that makes its ways other ones, or the form of the
 * device. */
static const char *const drivers[] = {
	"polatis-scpi", "polatis-restconf", "polatis-tl1", "glimmerglass-tl1",
	"glimmerglass-tl1 opmode=async", "calient-tl1", "calient-tl1 bulk=0",
	"sonic-ocs", "sonic-ocs form=yang", "rome-cli", "telescent-cli",
};

static const char *const faults[] = {
	/* replies */
	"slow=3", "bytewise", "duplicate", "late=20", "late=200", "overrate=2",
	"garbage", "garbage=2", "garbage=3", "drop-reply", "drop-reply=2",
	"drop-reply=3", "endless", "lines", "noise", "huge=64",
	/* commands */
	"eat-set", "drop-set", "silence-set", "silence", "refuse",
	"wrong-ctag", "wrong-ctag=3", "log-out", "log-out=2", "autonomous",
	"page=1", "tid-required", "half=1", "chain-stop", "queue-full",
	"stale", "homing", "complete=8", "complete=300",
	/* ports */
	"port-failed=i1", "port-failed=o5", "port-disabled=i1",
	"port-disabled=o5", "refuse-port=o5", "busy=o5", "race",
	"ignore-port=i1", "others-error", "taken-error",
	"conn-failed=o5", "not-activated=o5", "locked=i1", "tuning=o5", "dim=i1",
	/* the device, and others */
	"@restart kept", "@restart old", "@restart dark", "@set 1,5",
	"@set 1,6", "@set 3,5",
};

#define N_DRIVERS (sizeof(drivers) / sizeof(drivers[0]))
#define N_FAULTS_TRIED (sizeof(faults) / sizeof(faults[0]))

static const struct drv_item first[] = { ADD(2, 6) };
static const struct drv_item batch[] = { ADD(0, 4), ADD(1, 5), DEL(2, 6) };

static bool speaks(const char *driver, const char *name)
{
	return strncmp(driver, name, strlen(name)) == 0;
}

/* `text` is a name, perhaps with an option; words is cut from it and lives as
 * long as the rig. */
static struct rig *set_up(const char *text, char words[64])
{
	struct rig *r = test_calloc(1, sizeof(*r));
	char *driver = words, *key, *value;

	assert_non_null(r);
	snprintf(words, 64, "%s", text);
	key = strchr(words, ' ');
	value = strchr(words, '=');
	if (key) {
		*key++ = *value++ = '\0';
	}
	rig_init(r, driver, 8, 8, false);
	if (key && strcmp(key, "form") == 0) {
		r->extra[0] = "--form";
		r->extra[1] = value;
	} else if (key) {
		rig_option(r, key, value);
	}
	r->cfg.timeout_ms = 150;
	rig_option(r, "gap_ms", "0");
	if (speaks(driver, "rome-cli") || speaks(driver, "telescent-cli")) {
		rig_option(r, "poll_ms", "1");
		rig_option(r, "move_ms", "50");
	} else {
		rig_option(r, "settle_ms", "1");
	}
	if (speaks(driver, "sonic-ocs")) {
		rig_option(r, "tune_ms", "20");
	} else if (!speaks(driver, "rome") && !speaks(driver, "telescent")) {
		rig_option(r, "complete_ms", "20");
	}
	if (speaks(driver, "calient")) {
		rig_option(r, "bulk_ms", "50");
	}
	rig_start_emulator(r, "8x8", NULL);
	rig_open(r);
	return r;
}

/* What the device really holds. */
static bool holds(struct rig *r, struct optics_xc xc)
{
	char map[512], line[32];
	const char *at;

	rig_control(r, "map", map, sizeof(map));
	snprintf(line, sizeof(line), "%d,%d\n", xc.in, xc.out);
	at = strstr(map, line);
	return at && (at == map || at[-1] == '\n');
}

/* Nothing else is going on: reads until the session is well, which may take
 * finding it dead, and compares. */
static void read_well(struct rig *r, const char *fault)
{
	char map[512];
	int n = 0, shown = 0;

	for (int i = 0; i < 6 && rig_snapshot(r); i++) {
		/* what is out of order ends a session each time */
	}
	if (r->rc) {
		fail_msg("%s, after %s: %s", r->driver, fault, r->err.msg);
	}
	rig_control(r, "map", map, sizeof(map));
	for (const char *p = map; (p = strchr(p, '\n')); p++) {
		n++;
	}
	for (int i = 0; i < r->snap.n_xcs; i++) {
		/* What is entered and not activated is no light. */
		if (r->snap.xcs[i].state != DRV_BLOCKED) {
			assert_true(holds(r, r->snap.xcs[i].xc));
			shown++;
		}
	}
	assert_int_equal(shown, n);
}

static void check_claims(struct rig *r, const char *fault)
{
	for (int i = 0; i < 3; i++) {
		const struct drv_outcome *o = &r->outcomes[i];
		bool as_asked = holds(r, batch[i].xc) ==
				(batch[i].op == DRV_ADD);
		bool wrong = o->result == DRV_DONE &&
			     o->evidence >= DRV_READ_BACK && !as_asked;

		/* A port that is there already was not refused. */
		wrong = wrong || (o->result == DRV_REFUSED && as_asked &&
				  batch[i].op == DRV_ADD);
		if (wrong) {
			fail_msg("%s, %s: item %d is %s (%s): %s", r->driver,
				 fault, i, drv_result_name(o->result),
				 drv_evidence_name(o->evidence), o->text);
		}
		if (o->result != DRV_DONE) {
			assert_true(o->text[0] || r->err.msg[0]);
		}
	}
	if (r->rc) {
		assert_non_null(strstr(r->err.msg, "dut"));
	}
}

/* Without a fault: a device on a busy machine may be late, and then begins again. */
static void submit_well(struct rig *r)
{
	for (int i = 0; i < 3 && rig_submit(r, DRV_SAFE, 1, first); i++) {
		rig_control(r, "unset", NULL, 0);
		read_well(r, "a late answer");
	}
	if (r->rc) {
		fail_msg("%s, without a fault: %s", r->driver, r->err.msg);
	}
}

static void run(struct rig *r, const char *fault)
{
	char command[64];

	rig_control(r, "clear", NULL, 0);
	rig_control(r, "unset", NULL, 0);
	read_well(r, "nothing");
	submit_well(r);
	snprintf(command, sizeof(command), "%s%s",
		 fault[0] == '@' ? "" : "fault ", fault + (fault[0] == '@'));
	rig_control(r, command, NULL, 0);
	rig_submit(r, DRV_SAFE, 3, batch);
	check_claims(r, fault);
	rig_control(r, "clear", NULL, 0);
	if (strcmp(fault, "homing") == 0) {
		rig_control(r, "restart kept", NULL, 0);
	}
	if (strcmp(fault, "stale") != 0) {
		read_well(r, fault);
	} else {
		rig_control(r, "restart dark", NULL, 0);
	}
}

static void claims_are_true_under_every_fault(void **state)
{
	char words[64];
	struct rig *r = set_up(*state, words);

	for (size_t i = 0; i < N_FAULTS_TRIED; i++) {
		run(r, faults[i]);
	}
	rig_fini(r);
	test_free(r);
}

int main(void)
{
	static struct CMUnitTest all[N_DRIVERS];

	for (size_t i = 0; i < N_DRIVERS; i++) {
		all[i].name = drivers[i];
		all[i].test_func = claims_are_true_under_every_fault;
		all[i].initial_state = (void *)drivers[i];
	}
	return cmocka_run_group_tests_name("drivers/faults", all, NULL, NULL);
}
