/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The disk under weftd's store has no space: before a change, at any of its writes, while a change
 * waits for its confirmation, at a start, and for what becomes of jobs. Nothing is sent that could
 * not be taken back, status goes on answering and says so, and all is well again when there is
 * space, without a restart.
 */
#include <stdio.h>
#include <string.h>

#include "lib/digest/sha256.h"
#include "tests/sim/disk/disk.h"
#include "tests/sim/oracle/oracle.h"
#include "tests/sim/story.h"
#include "tests/sim/stories/turns.h"

#define WRITES_MAX 1000

static char digest_a[SHA256_HEX_LEN], digest_b[SHA256_HEX_LEN];

static void read_digest(const char *path, char hex[SHA256_HEX_LEN])
{
	const char *text = read_text(path);
	uint8_t digest[SHA256_LEN];

	sha256(text, strlen(text), digest);
	sha256_hex(digest, hex);
}

/* The disk of weftd's machine takes so many more writes. */
static void full_after(int writes)
{
	disk_full_after("a", writes);
}

static void space(void)
{
	disk_full("a", false);
}

/* Everything is as the configuration of this digest intends. */
static bool is_as_in(const char *digest)
{
	return same(ask("config_sha256", "status"), digest) && weft("verify") == 0;
}

static int sent(void)
{
	return sets_of("ocs0") + sets_of("ring1");
}

static void both_fabrics(void)
{
	write_small_fabric("a.yaml", "UniRing(2,4)", 0);
	write_small_fabric("b.yaml", "Ring(4)", 2);
	read_digest("a.yaml", digest_a);
	read_digest("b.yaml", digest_b);
	expect(0, "the second fabric", "apply -f b.yaml");
	expect(0, "the first fabric", "apply -f a.yaml");
}

/* ---- from the beginning ---- */

static void tell_status(void)
{
	expect(0, "status answers", "status --format json");
	check(same(value("generation"), "3") && same(value("holds"), "[]") &&
	      same(value("last_change.id"), "2"), "with what was before");
	check(matches(value("advice"), "nothing can be recorded .write: .*disk is full"),
	      "and says that nothing can be recorded");
	expect(0, "devices are read and compared", "verify");
	expect(2, "plans are made", "plan -f b.yaml");
	expect(0, "history is shown", "history");
}

static void tell_begin(void)
{
	int before;

	both_fabrics();
	check(same(ask("advice", "status"), ""), "status has nothing to advise");
	before = sent();
	full_after(0);
	expect(1, "an apply while the disk is full", "apply -f b.yaml");
	has_error("is refused", "database or disk is full");
	has_error("with what to do", "hint: check the disk and its free space");
	check(sent() == before, "before anything is sent");
	expect(1, "so is a drain", "drain ocs0.3");
	tell_status();
	space();
	expect(0, "there is space again", "verify");
	check(same(ask("advice", "status"), ""), "and nothing to advise");
	expect(0, "drained", "drain ocs0.3");
	expect(0, "undrained", "undrain ocs0.3");
}

/* ---- at each write of a change ---- */

static bool is_explained(int status, const char *before, const char *after)
{
	switch (status) {
	case 0:
		return is_as_in(digest_b);
	case 1:
	case 3:
		return same(before, after);
	case 4:
		return same(ask("state", "status"), "interrupted") &&
		       !strpbrk(value("devices.*.unexpected"), "{0123456789");
	default:
		return false;
	}
}

static int full_at(int writes)
{
	const char *before = map_of("ocs0"), *after;
	char name[40];
	int status;
	bool told;

	snprintf(name, sizeof(name), "full after %d writes", writes);
	full_after(writes);
	status = weft("apply -f b.yaml");
	after = map_of("ocs0");
	space();
	told = status == 0 || strstr(said_wrong(), "disk is full");
	check_of(name, told, "it is told");
	check_of(name, is_explained(status, before, after), "what is left is as was said");
	check_of(name, weft("apply -f b.yaml") == 0 && is_as_in(digest_b), "forth");
	check_of(name, weft("apply -f a.yaml") == 0 && is_as_in(digest_a), "and back");
	return status;
}

static void tell_change(void)
{
	int writes = 1;

	both_fabrics();
	while (full_at(writes) != 0 && writes < WRITES_MAX) {
		writes += 2;
	}
	check(writes > 3 && writes < WRITES_MAX, "the last of them was not needed");
	sim_tell("a change has %d writes", writes);
}

/* ---- while a change waits, and at a start ---- */

static void tell_confirm(void)
{
	both_fabrics();
	expect(0, "applied, to be confirmed", "apply -f b.yaml --confirm-within 1h");
	full_after(0);
	expect(1, "it cannot be confirmed", "confirm");
	expect(1, "nor cancelled", "cancel");
	check(is_as_in(digest_b), "and stays");
	space();
	expect(0, "until there is space", "cancel");
	check(is_as_in(digest_a), "then it goes back");
}

/* Each start is counted. */
static void tell_start(void)
{
	int starts;

	both_fabrics();
	full_after(0);
	cluster_stop(0);
	cluster_wait_stopped(0);
	starts = cluster_starts(0);
	cluster_start(0);
	await(10, "no weftd starts on a full disk", cluster_starts(0) > starts + 3);
	check(cluster_last_status(0) == 1, "it ends");
	check(matches(weftd_log(), "weft.db: .*disk"), "and says why");
	space();
	await(10, "until there is space", weft("status") == 0);
	check(is_as_in(digest_a), "nothing was lost");
}

/* ---- while jobs come and go ---- */

static bool is_over(const char *job)
{
	return same(ask("jobs.-1.state", "job list --all %s", job), "ended");
}

static void end_refused(int puts)
{
	char name[16];

	snprintf(name, sizeof(name), "j%d", puts);
	check_of(name, weft("job request %s --count 4 -c allgather --size 1MB --duration 1s",
			    name) == 0, "has the hosts of the one before");
	oracle_refuse_jobs(puts);
	await(30, "it is over", is_over(name));
}

/* What the store could not take of one's end it has before another gets its hosts (rule "one job
 * a host"), and after a crash. */
static void tell_jobs(void)
{
	write_small_fabric("a.yaml", NULL, 0);
	expect(0, "a fabric", "apply -f a.yaml");
	for (int puts = 0; puts < 6; puts++) {
		end_refused(puts);
	}
	crash_weftd();
	check(same(ask("jobs.#", "job list"), "0"), "all are over");
}

/* ---- the table ---- */

static void begin_story(void (*words)(void))
{
	struct scenario s;

	small_scenario(&s);
	tell(&s, words);
}

static void run_begin(void)
{
	begin_story(tell_begin);
}

/* ---- a disk that is slow, or keeps nothing ---- */

/* That the loop does not wait for it is a rule. */
static void tell_slow(void)
{
	struct command *drain, *job;

	both_fabrics();
	disk_slow("a", 5 * SIM_S);
	drain = begin("drain h3");
	job = begin("job request j --count 2 -c allgather --size 1MB --no-wait");
	for (int i = 0; i < 8; i++) {
		expect(0, "status answers", "status --format json");
		sim_sleep(SIM_S / 2);
	}
	check(same(output_of(drain), "") && same(output_of(job), ""),
	      "nothing is acknowledged that the disk does not have");
	check(finish(drain) == 0 && finish(job) == 0, "it is when the disk has it");
	expect(0, "and that stays", "job release j");
	expect(0, "the host is back", "undrain h3");
	expect(0, "and a change is made", "apply -f b.yaml");
	disk_slow("a", 0);
}

static void tell_lost_sync(void)
{
	both_fabrics();
	disk_fail_syncs("a", true);
	expect(1, "a drain that the disk may not have is not acknowledged", "drain h3");
	has_error("it is told why", "not known whether the disk keeps it: .*disk I/O error");
	disk_fail_syncs("a", false);
	expect(0, "it can be asked for again", "drain h3");
	crash_weftd();
	check(same(ask("holds.#", "status"), "1"), "and is there");
}

static void run_slow(void)
{
	struct scenario s;

	small_scenario(&s);
	tell_by_rules(&s, tell_slow);
}

static void run_lost_sync(void)
{
	begin_story(tell_lost_sync);
}

static void run_change(void)
{
	begin_story(tell_change);
}

static void run_confirm(void)
{
	begin_story(tell_confirm);
}

static void run_jobs(void)
{
	begin_story(tell_jobs);
}

static void run_start(void)
{
	begin_story(tell_start);
}

const struct story full_disk_stories[] = {
	{ "full-disk", "a disk without space: nothing is sent, all else goes on", run_begin },
	{ "full-disk-change", "the disk is full at each write of a change", run_change },
	{ "full-disk-confirm", "the disk is full while a change waits", run_confirm },
	{ "full-disk-jobs", "the store takes nothing of jobs while they end", run_jobs },
	{ "slow-disk", "syncs take 5 s, and the loop does not wait for them", run_slow },
	{ "lost-sync", "a sync fails for what was asked for", run_lost_sync },
	{ "full-disk-start", "no weftd starts on a full disk, and none is lost", run_start },
	{ 0 },
};
