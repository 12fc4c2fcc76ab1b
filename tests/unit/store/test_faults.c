/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The store when the disk fails or the process ends at any moment. A script
 * of calls runs with a fault at the N-th write or sync, for every N; then
 * the file is opened again and must be exactly as after some prefix of the
 * script that is not shorter than what had succeeded.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <sys/wait.h>

#include "common.h"
#include "fault_vfs.h"
#include "tests/unit/world.h"

/* Faults at every operation, or with sanitizers at some. */
#define STRIDE ALL_OR_SOME(1, 7)

/* What the file says after a prefix of the script, in words. */
#define SUM_MAX 512

static int setup(void **state)
{
	struct place *p = calloc(1, sizeof(*p));

	fault_clear();
	place_make(p);
	*state = p;
	return 0;
}

static int teardown(void **state)
{
	fault_clear();
	place_remove(*state);
	free(*state);
	return 0;
}

/* ---- the script ---------------------------------------------------------- */

static int step_begin(struct store *s, int n_add, const char *hash,
		      struct err *err)
{
	struct store_journal j = journal_of(n_add, 1, 2);
	int rc = begin(s, &j, hash, err);

	store_journal_fini(&j);
	return rc;
}

static int step_mark(struct store *s, int64_t id, enum store_step_state st,
		     struct err *err)
{
	struct store_journal j = journal_of(20, 1, 2);
	int rc;

	j.change.id = id;
	for (int i = 0; i < j.works[0].n_steps; i++) {
		j.works[0].steps[i].state = st;
	}
	store_audit(s, id, "sw", STORE_COMMAND, "add 1-2");
	rc = store_mark(s, &j, 0, err);
	store_journal_fini(&j);
	return rc;
}

static int step_observe(struct store *s, int n, struct err *err)
{
	struct optics_xc xcs[40];
	struct store_observed o = { .device = (char *)"sw", .n_xcs = n,
				    .xcs = xcs };

	for (int i = 0; i < n; i++) {
		xcs[i] = (struct optics_xc){ i, i };
	}
	return store_observed_put(s, &o, 1, err);
}

#define N_STEPS 11

static int run_step(struct store *s, int i, struct err *err)
{
	switch (i) {
	case 0:
		return step_begin(s, 20, "aa", err);
	case 1:
		return step_mark(s, 1, STORE_SENT, err);
	case 2:
		return step_mark(s, 1, STORE_DONE, err);
	case 3:
		return store_commit(s, 1, "first", 3, err);
	case 4:
		return step_observe(s, 40, err);
	case 5:
		return step_begin(s, 20, "bb", err);
	case 6:
		return store_undoing(s, 2, err);
	case 7:
		return store_end(s, 2, STORE_STUCK, "second", err);
	case 8:
		return step_observe(s, 3, err);
	case 9:
		return step_begin(s, 30, "cc", err);
	default:
		return store_commit(s, 3, "third", 3, err);
	}
}

/* Runs steps from..N_STEPS-1 until one fails; how many succeeded in all. A
 * failed step must not show, neither now nor later. */
static int run_script(struct store *s, int from, struct err *err)
{
	for (int i = from; i < N_STEPS; i++) {
		if (run_step(s, i, err)) {
			return i;
		}
	}
	return N_STEPS;
}

/* ---- what it left -------------------------------------------------------- */

static void sum_up(struct store *s, char sum[SUM_MAX])
{
	struct store_light sw, ring;
	struct store_observed o = { 0 };
	struct store_change *h;
	struct store_journal *v;
	struct err err = { 0 };
	int n, n_open, at;

	assert_int_equal(store_intent(s, "sw", &sw, &err), 0);
	assert_int_equal(store_intent(s, "ring", &ring, &err), 0);
	assert_int_equal(store_history(s, 0, 10, &h, &n, &err), 0);
	assert_int_equal(store_open_changes(s, &v, &n_open, &err), 0);
	store_observed_get(s, "sw", &o, NULL);
	/* The two devices of a change change together. */
	assert_int_equal(sw.n_xcs > 0, ring.has_program);
	at = snprintf(sum, SUM_MAX, "gen %lld sw %d seen %d",
		      (long long)store_generation(s), sw.n_xcs, o.n_xcs);
	for (int i = 0; i < n; i++) {
		at += snprintf(sum + at, SUM_MAX - at, "; %lld %s %s %lld",
			       (long long)h[i].id,
			       store_verdict_name(h[i].verdict), h[i].summary,
			       (long long)h[i].superseded_by);
	}
	for (int i = 0; i < n_open; i++) {
		assert_int_equal(v[i].n_works, 2);
		assert_true(v[i].works[0].n_steps >= 22);
		assert_int_equal(v[i].works[1].n_steps, 1);
		at += snprintf(sum + at, SUM_MAX - at, "; open %lld %s %d",
			       (long long)v[i].change.id,
			       store_step_state_name(
				       v[i].works[0].steps[5].state),
			       v[i].change.undoing);
	}
	store_light_fini(&sw);
	store_light_fini(&ring);
	store_observed_fini(&o);
	store_history_free(h, n);
	store_journals_free(v, n_open);
}

static char expected[N_STEPS + 1][SUM_MAX];

/* The sums after every prefix, from runs without a fault. */
static void learn(void)
{
	struct place p;
	struct store *s;
	struct err err = { 0 };

	fault_clear();
	place_make(&p);
	s = must_open(&p);
	sum_up(s, expected[0]);
	for (int i = 0; i < N_STEPS; i++) {
		assert_int_equal(run_step(s, i, &err), 0);
		sum_up(s, expected[i + 1]);
		assert_string_not_equal(expected[i + 1], expected[i]);
	}
	store_free(s);
	place_remove(&p);
}

/* The number of steps whose result the file shows; fails for anything that
 * is not a prefix. */
static int prefix_of(struct store *s)
{
	char sum[SUM_MAX];

	sum_up(s, sum);
	for (int i = 0; i <= N_STEPS; i++) {
		if (strcmp(sum, expected[i]) == 0) {
			return i;
		}
	}
	fail_msg("half a change: %s", sum);
	return -1;
}

/* ---- faults -------------------------------------------------------------- */

static void assert_says_so(const struct err *err)
{
	assert_true(err->code == WEFT_EIO);
	assert_non_null(strstr(err->msg, "state"));
	assert_non_null(strstr(err->hint, "disk"));
}

/* One failing operation: the step fails as a whole, the connection goes on,
 * and the same step succeeds when tried again. */
static bool fail_once(enum fault_what what, int at)
{
	struct place p;
	struct store *s;
	struct err err = { 0 };
	bool hit;
	int n;

	place_make(&p);
	s = must_open(&p);
	fault_arm(what, at, false);
	n = run_script(s, 0, &err);
	hit = fault.hit;
	fault_clear();
	if (n < N_STEPS) {
		assert_true(hit);
		assert_says_so(&err);
		assert_int_equal(prefix_of(s), n);
		assert_int_equal(run_script(s, n, &err), N_STEPS);
	}
	assert_int_equal(prefix_of(s), N_STEPS);
	store_free(s);
	s = must_open(&p);
	assert_int_equal(prefix_of(s), N_STEPS);
	store_free(s);
	place_remove(&p);
	return hit;
}

/* The disk is gone from the N-th operation on, and comes back only after the
 * process ended. What was reported done is there; the step that failed may
 * be there as a whole (its last sync failed) or not at all. */
static bool fail_for_ever(enum fault_what what, int at)
{
	struct place p;
	struct store *s;
	struct err err = { 0 };
	bool hit;
	int n, found;

	place_make(&p);
	s = must_open(&p);
	fault_arm(what, at, true);
	n = run_script(s, 0, &err);
	hit = fault.hit;
	if (n < N_STEPS) {
		assert_says_so(&err);
		assert_int_equal(prefix_of(s), n);
	}
	store_free(s);
	fault_clear();
	s = must_open(&p);
	found = prefix_of(s);
	assert_true(found == n || found == n + 1);
	assert_int_equal(run_script(s, found, &err), N_STEPS);
	store_free(s);
	place_remove(&p);
	return hit;
}

static void every_operation(bool (*run)(enum fault_what, int),
			    enum fault_what what)
{
	int n = 1;

	while (run(what, n)) {
		n += STRIDE;
	}
	assert_true(n > N_STEPS);
}

static void test_disk_fails_once(void **state)
{
	(void)state;
	every_operation(fail_once, FAULT_IOERR);
}

static void test_disk_full_once(void **state)
{
	(void)state;
	every_operation(fail_once, FAULT_FULL);
}

static void test_disk_gone(void **state)
{
	(void)state;
	every_operation(fail_for_ever, FAULT_IOERR);
}

static void test_disk_full(void **state)
{
	(void)state;
	every_operation(fail_for_ever, FAULT_FULL);
}

/* What cannot be merged or copied for want of space is in the log all the same. */
static void test_full_while_copied(void **state)
{
	struct store *s = must_open(*state);
	struct err err = { 0 };

	assert_int_equal(store_defer_syncs(s, &err), 0);
	assert_int_equal(run_step(s, 0, &err), 0);
	fault_arm(FAULT_FULL, 2, false);	/* 1: a sync of the log */
	assert_int_equal(store_copy(s, &err), WEFT_EIO);
	assert_true(fault.hit);
	assert_int_equal(store_sync(s, &err), 0);
	fault_clear();
	store_free(s);
}

/* A sync that fails in a merge leaves nothing to the next one. */
static void test_sync_fails_in_copy(void **state)
{
	struct store *s = must_open(*state);
	struct err err = { 0 };

	assert_int_equal(store_defer_syncs(s, &err), 0);
	assert_int_equal(run_step(s, 0, &err), 0);
	fault_arm(FAULT_IOERR, 1, false);
	fault.syncs_only = true;
	assert_int_equal(store_copy(s, &err), WEFT_EIO);
	assert_true(fault.hit);
	fault_clear();
	assert_int_equal(store_sync(s, &err), WEFT_EIO);
	store_sync_ended(s, store_last(s), WEFT_EIO, &err, 0);
	assert_int_equal(store_sync(s, &err), 0);
	store_free(s);
}

/* ---- opening while the disk fails ---------------------------------------- */

static void test_open_fails(void **state)
{
	struct place *p = *state;
	bool hit = true;

	for (int at = 1; hit; at += STRIDE) {
		struct store *s = NULL;
		struct err err = { 0 };

		fault_arm(FAULT_IOERR, at, true);
		if (store_open(p->path, &s, &err)) {
			assert_int_equal(err.code, WEFT_EIO);
			assert_null(s);
		} else {
			store_free(s);
		}
		hit = fault.hit;
		fault_clear();
		s = must_open(p);
		assert_int_equal(prefix_of(s), 0);
		store_free(s);
	}
}

/* ---- the process ends ---------------------------------------------------- */

/* The child reports every step that succeeded by a byte. */
static int child_until_killed(const struct place *p, int at, bool syncs_only,
			      int *done)
{
	int fds[2], status;
	char byte;
	pid_t pid;

	assert_int_equal(pipe(fds), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		struct store *s = NULL;
		int rc;

		fault_arm(FAULT_KILL, at, false);
		fault.syncs_only = syncs_only;
		rc = store_open(p->path, &s, NULL);
		for (int i = 0; i < N_STEPS && rc == 0; i++) {
			rc = run_step(s, i, NULL);
			if (rc == 0 && write(fds[1], "x", 1) != 1) {
				_exit(2);
			}
		}
		_exit(rc ? 1 : 0);
	}
	close(fds[1]);
	for (*done = 0; read(fds[0], &byte, 1) == 1; ++*done) {
	}
	close(fds[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static void kill_at_every(bool syncs_only)
{
	const int stride = syncs_only ? 1 : STRIDE;
	int status = 1, runs = 0;

	for (int at = 1; status; at += stride, runs++) {
		struct place p;
		struct store *s;
		struct err err = { 0 };
		int done, found;

		place_make(&p);
		status = child_until_killed(&p, at, syncs_only, &done);
		if (status) {
			assert_true(WIFSIGNALED(status));
			assert_int_equal(WTERMSIG(status), SIGKILL);
		}
		s = must_open(&p);
		found = prefix_of(s);
		assert_true(found == done || found == done + 1);
		assert_int_equal(run_script(s, found, &err), N_STEPS);
		store_free(s);
		place_remove(&p);
	}
	assert_true(runs > N_STEPS);
}

static void test_killed_at_every_sync(void **state)
{
	(void)state;
	kill_at_every(true);
}

static void test_killed_at_every_write(void **state)
{
	(void)state;
	kill_at_every(false);
}

/* ---- stopped with a lock ------------------------------------------------- */

static void stop_us(void *arg)
{
	(void)arg;
	kill(getpid(), SIGSTOP);
}

#define HOLD_NS INT64_C(1500000000)

/* One that leads, and is stopped for ever at its first write of a beat. */
static void lead_until_stopped(const struct place *p)
{
	struct store *s = NULL;
	struct store_lease seen = { 0 };
	struct err err = { 0 };

	if (store_open_shared(p->path, &s, &err) || store_limit_hold(s, HOLD_NS, &err) ||
	    store_lease(s, &seen, &err) || store_lead(s, &seen, "child", &err)) {
		_exit(1);
	}
	fault_arm(FAULT_WATCH, 0, false);
	fault.watch = stop_us;
	store_beat(s, &err);
	_exit(2);
}

/* It is ended, and then another one leads over what was before the beat. */
static void test_stopped_with_lock(void **state)
{
	struct place p;
	struct store *s = NULL;
	struct store_lease seen = { 0 };
	struct err err = { 0 };
	int status = 0;
	pid_t pid;

	(void)state;
	place_make(&p);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		lead_until_stopped(&p);
	}
	assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
	assert_true(WIFSTOPPED(status));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGKILL);
	assert_int_equal(store_open_shared(p.path, &s, &err), 0);
	assert_int_equal(store_lease(s, &seen, &err), 0);
	assert_string_equal(seen.holder, "child");
	assert_int_equal(store_lead(s, &seen, "we", &err), 0);
	store_free(s);
	place_remove(&p);
}

/* Nothing ends one that holds no lock, however long it lives. */
static void test_limit_without_lock(void **state)
{
	struct place p;
	struct store *s = NULL;
	struct store_lease seen = { 0 };
	struct err err = { 0 };

	(void)state;
	place_make(&p);
	assert_int_equal(store_open_shared(p.path, &s, &err), 0);
	assert_int_equal(store_limit_hold(s, HOLD_NS, &err), 0);
	assert_int_equal(store_lease(s, &seen, &err), 0);
	assert_int_equal(store_lead(s, &seen, "we", &err), 0);
	sleep(2);
	assert_int_equal(store_beat(s, &err), 0);
	store_free(s);
	place_remove(&p);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(test_disk_fails_once), T(test_disk_full_once),
		T(test_disk_gone), T(test_disk_full), T(test_full_while_copied),
		T(test_sync_fails_in_copy), T(test_open_fails),
		T(test_killed_at_every_sync), T(test_killed_at_every_write),
		T(test_stopped_with_lock), T(test_limit_without_lock),
	};

	fault_install();
	learn();
	return cmocka_run_group_tests_name("store/faults", tests, NULL, NULL);
}
