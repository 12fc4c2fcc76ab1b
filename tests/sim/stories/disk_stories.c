/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stories of the disk: weft's store loses power in each of its calls, one after the other, and
 * has every transaction that it said was durable, and no half of one, each time it comes back.
 * With each commit, in a third of them.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "controller/store/store.h"
#include "lib/base/alloc.h"
#include "tests/sim/disk/disk.h"
#include "tests/sim/kernel/sim.h"
#include "tests/sim/story.h"
#include "tests/unit/world.h"

#define STORE "a/weft.db"
#define ROUNDS_MAX 2000
#define FAILING_ROUNDS 300
#define TRANSACTIONS 6		/* of a kind, in a round without a fault */
#define LOSSES 40		/* rows of a transaction that is synced later: of all, or none */

/* What a store is opened as, and what a writer of it has done. */
static struct {
	bool shared, fails;		/* the disk may fail: what it refuses is no fault of ours */
	const char *drained[ROUNDS_MAX * TRANSACTIONS];	/* that is durable */
	int n_drained, n_names;
	int begun, durable;	/* values of the last rows that were written; were synced */
} w;

static int open_store(struct store **s, struct err *err)
{
	struct store_lease lease;
	int rc = w.shared ? store_open_shared(STORE, s, err) : store_open(STORE, s, err);

	if (rc || !w.shared) {
		return rc ? rc : store_defer_syncs(*s, err);
	}
	rc = store_lease(*s, &lease, err);
	return rc ? rc : store_lead(*s, &lease, "a", err);
}

/* All rows have one value, so that a half would be seen. */
static int put_losses(struct store *s, struct err *err)
{
	struct store_insertion_loss v[LOSSES];

	w.begun++;
	for (int i = 0; i < LOSSES; i++) {
		v[i] = (struct store_insertion_loss){ .xc = { i, i }, .mdb = w.begun };
	}
	return store_insertion_losses_put(s, "ocs0", v, LOSSES, err);
}

static int drain(struct store *s, struct err *err)
{
	char name[32];
	int rc;

	snprintf(name, sizeof(name), "h%d", w.n_names++);
	rc = store_drain(s, name, "operator", "story", err);
	if (rc == 0 && (rc = store_sync(s, err)) == 0) {
		w.drained[w.n_drained++] = x_dup(name);
		w.durable = w.shared ? w.durable : w.begun;	/* what came before it is, too */
	}
	return rc;
}

static int write_some(int argc, char **argv)
{
	struct store *s = NULL;
	struct err err = { 0 };
	int rc = open_store(&s, &err);

	(void)argc, (void)argv;
	for (int i = 0; i < TRANSACTIONS && rc == 0; i++) {
		const int begun = w.begun + 1;

		rc = put_losses(s, &err);
		if (rc == 0 && (w.shared || (i % 2 && store_sync(s, &err) == 0))) {
			w.durable = begun;
		}
		if (rc == 0 && i % 3 == 2) {
			rc = drain(s, &err);
		}
	}
	if (rc && !w.fails) {
		sim_fail("store works", "%s", err.msg);
	}
	store_free(s);
	return 0;
}

static void check_losses(struct store *s)
{
	struct store_insertion_loss *v = NULL;
	struct err err = { 0 };
	int n = 0, rc = store_insertion_losses(s, "ocs0", &v, &n, &err);

	if (rc) {
		sim_fail("store is whole", "%s", err.msg);
	} else if (n == 0 ? w.durable > 0 : v[0].mdb < w.durable) {
		sim_fail("durable stays", "transaction %d was durable, %d is there", w.durable,
			 n > 0 ? v[0].mdb : 0);
	}
	for (int i = 0; i < n; i++) {
		if (n != LOSSES || v[i].mdb != v[0].mdb) {
			sim_fail("all or nothing", "%d rows of transaction %d, one of %d", n,
				 v[0].mdb, v[i].mdb);
		}
	}
	w.durable = n > 0 ? v[0].mdb : 0;
	free(v);
}

static bool is_drained(const struct store_drain *v, int n, const char *what)
{
	for (int i = 0; i < n; i++) {
		if (strcmp(v[i].what, what) == 0) {
			return true;
		}
	}
	return false;
}

static void check_drains(struct store *s)
{
	struct store_drain *v = NULL;
	struct err err = { 0 };
	int n = 0, rc = store_drains(s, &v, &n, &err);

	if (rc) {
		sim_fail("store is whole", "%s", err.msg);
	}
	for (int i = 0; i < w.n_drained; i++) {
		if (!is_drained(v, n, w.drained[i])) {
			sim_fail("durable stays", "drain of %s was durable, and is gone",
				 w.drained[i]);
		}
	}
	store_drains_free(v, n);
}

static int read_all(int argc, char **argv)
{
	struct store *s = NULL;
	struct err err = { 0 };

	(void)argc, (void)argv;
	if (open_store(&s, &err)) {
		sim_fail("store opens", "%s", err.msg);
		return 1;
	}
	check_losses(s);
	check_drains(s);
	store_free(s);
	return 0;
}

static struct sim_process *start(const char *machine, sim_main main)
{
	const char *const argv[] = { "store", NULL };

	return sim_start(machine, main, argv);
}

static void lose_power(void)
{
	sim_power_off("a");
	disk_chance("a", sim_random(SIM_FAULTS));
	disk_power_loss("a");
	sim_power_on("a");
}

/* The store is a new one. */
static void forget_all(void)
{
	static const char *const names[] = { STORE, STORE "-wal", STORE "-journal" };

	for (int i = 0; i < 3; i++) {
		unlink(names[i]);
	}
	memset(&w, 0, sizeof(w));
}

/* One round a call: the machine falls in it, and what is durable is there when it is back. */
static int fall_at_each_call(int argc, char **argv)
{
	bool fell = true;

	(void)argc, (void)argv;
	sim_wait(start("a", write_some));
	for (int n = 1; fell && n < ROUNDS_MAX && sim_failures() == 0; n++) {
		struct sim_process *p;

		if (!in_turn((size_t)n, 3)) {
			continue;
		}
		p = start("a", write_some);
		sim_kill_at(p, n);
		fell = sim_wait(p) != 0;
		lose_power();
		sim_wait(start("a", read_all));
		if (!fell) {
			sim_tell("%d calls, %lld syncs", n, (long long)disk_syncs());
		}
	}
	return 0;
}

/* The machine falls while its store is made. */
static int fall_when_new(int argc, char **argv)
{
	bool fell = true;

	(void)argc, (void)argv;
	for (int n = 1; fell && sim_failures() == 0; n += 1 + (int)sim_between(SIM_FAULTS, 0, 6)) {
		struct sim_process *p;

		if (!in_turn((size_t)n, 3)) {
			continue;
		}
		forget_all();
		p = start("a", write_some);
		sim_kill_at(p, n);
		fell = sim_wait(p) != 0;
		lose_power();
		sim_wait(start("a", read_all));
	}
	return 0;
}

/* The disk fails now and then, or is full now and then; what was acknowledged stays. */
static int fail_often(int argc, char **argv)
{
	(void)argc, (void)argv;
	sim_wait(start("a", write_some));
	w.fails = true;
	for (int n = 0; n < FAILING_ROUNDS && sim_failures() == 0; n++) {
		struct sim_process *p;

		if (!in_turn((size_t)n, 3)) {
			continue;
		}
		p = start("a", write_some);
		disk_chance("a", sim_random(SIM_FAULTS));
		disk_errors("a", (int)sim_between(SIM_FAULTS, 0, 200));
		disk_full("a", sim_between(SIM_FAULTS, 0, 4) == 0);
		sim_kill_at(p, sim_between(SIM_FAULTS, 1, 400));
		sim_wait(p);
		disk_errors("a", 0);
		disk_full("a", false);
		if (sim_between(SIM_FAULTS, 0, 2)) {
			lose_power();
		}
		sim_wait(start("a", read_all));
	}
	return 0;
}

static int sync_as_loop(struct store *s)
{
	struct err err = { 0 };
	const int rc = store_sync(s, &err);

	store_sync_ended(s, store_last(s), rc, &err, 0);
	return rc;
}

/* What is written before and after a sync that fails; one that does not says that all is
 * durable. All calls may fail for a while. */
static int write_around_failure(int argc, char **argv)
{
	const bool for_long = sim_between(SIM_FAULTS, 0, 2);
	struct store *s = NULL;
	struct err err = { 0 };
	int tries = 0;

	(void)argc, (void)argv;
	if (open_store(&s, &err) || put_losses(s, &err)) {
		sim_fail("store works", "%s", err.msg);
		return 1;
	}
	disk_errors("a", for_long ? 1000 : 0);
	disk_fail_syncs("a", true);
	if (sync_as_loop(s) == 0) {
		sim_fail("a sync fails", "it does not");
	}
	disk_errors("a", 0);
	disk_fail_syncs("a", false);
	if (put_losses(s, &err)) {
		sim_fail("store works", "%s", err.msg);
	}
	while (sync_as_loop(s)) {
		if (++tries > 1) {
			sim_fail("store works", "syncs fail for ever");
			return 1;
		}
	}
	w.durable = w.begun;
	sim_kill_at(sim_self(), 1);	/* so that nothing is made good by closing it */
	store_free(s);
	return 0;
}

static int fail_one_sync(int argc, char **argv)
{
	(void)argc, (void)argv;
	sim_wait(start("a", write_some));
	disk_drops("a", true);
	for (int n = 0; n < FAILING_ROUNDS / 10 && sim_failures() == 0; n++) {
		sim_wait(start("a", write_around_failure));
		lose_power();
		sim_wait(start("a", read_all));
	}
	return 0;
}

static void run(sim_main what, bool shared)
{
	w.shared = shared;
	mkdir("a", 0700);
	start("story", what);
	sim_run(SIM_S * 100000);
}

static void fall_alone(void)
{
	run(fall_at_each_call, false);
}

static void fall_shared(void)
{
	run(fall_at_each_call, true);
}

static void fall_new(void)
{
	run(fall_when_new, false);
}

static void fail(void)
{
	run(fail_often, false);
}

static void fail_once(void)
{
	run(fail_one_sync, false);
}

const struct story disk_stories[] = {
	{ "disk-power", "the store loses power in each of its calls", fall_alone },
	{ "disk-power-new", "a store loses power while it is made", fall_new },
	{ "disk-power-shared", "a shared store loses power in each of its calls", fall_shared },
	{ "disk-errors", "the store's disk fails and is full now and then", fail },
	{ "disk-sync-fails", "a sync fails, the next one does not, and power is lost", fail_once },
	{ 0 },
};
