/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The driver contract by SSH, of the drivers that have it: the cases in which it
 * matters what carries the session. One OpenSSH server serves all: who logs in is
 * joined to the emulator of the case. integration/ssh.sh has keys and passwords.
 */
#include <pwd.h>
#include <sys/stat.h>

#include "tests/unit/drivers/rig.h"

#define SSHD "/usr/sbin/sshd"

/* The server, for all cases. In dir: `address` is where it listens, `target` what a
 * session is joined to, `id` the key that it lets in. */
static struct {
	char dir[32], address[96];
	pid_t pid;			/* 0: there is none */
} server;

/* ---- the server ------------------------------------------------------------ */

static void put_file(const char *name, const char *text)
{
	char path[128];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", server.dir, name);
	f = fopen(path, "w");
	assert_non_null(f);
	fputs(text, f);
	assert_int_equal(fclose(f), 0);
}

/* The first line of a file, or "". */
static void get_line(const char *name, char *line, int size)
{
	char path[128];
	FILE *f;

	line[0] = '\0';
	snprintf(path, sizeof(path), "%s/%s", server.dir, name);
	f = fopen(path, "r");
	if (f) {
		if (fgets(line, size, f)) {
			line[strcspn(line, "\n")] = '\0';
		}
		fclose(f);
	}
}

static int run(const char *format, const char *a)
{
	char command[256];

	snprintf(command, sizeof(command), format, a);
	return system(command);
}

/* Joins a terminal to the target. The empty line is answered by a prompt, which a
 * device prints by itself; the session ends when the target does. */
static const char join[] =
	"#!/bin/bash\n"
	"stty raw -echo\n"
	"read -r host port <\"${0%/*}/target\"\n"
	"exec 3<>\"/dev/tcp/$host/$port\" 4<&0\n"
	"{ echo; exec cat; } <&4 >&3 &\n"
	"exec cat <&3\n";

static int start_server(void **state)
{
	char command[64], line[256];

	(void)state;
	if (access(SSHD, X_OK) != 0) {
		print_message("no " SSHD ": make deps installs it\n");
		return 0;
	}
	snprintf(server.dir, sizeof(server.dir), "/tmp/weft-sshd-XXXXXX");
	assert_non_null(mkdtemp(server.dir));
	assert_int_equal(run("ssh-keygen -q -t ed25519 -N '' -f %s/other", server.dir), 0);
	put_file("no_hosts", "");
	put_file("join", join);
	snprintf(command, sizeof(command), "%s/join", server.dir);
	assert_int_equal(chmod(command, 0700), 0);
	fflush(NULL);
	server.pid = fork();
	assert_true(server.pid >= 0);
	if (server.pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		execl("tests/sshd", "tests/sshd", server.dir, command, NULL);
		_exit(127);
	}
	for (get_line("log", line, sizeof(line)); !strstr(line, "listening");
	     get_line("log", line, sizeof(line))) {
		assert_int_equal(waitpid(server.pid, NULL, WNOHANG), 0);
		usleep(10000);
	}
	get_line("address", server.address, sizeof(server.address));
	return 0;
}

static int stop_server(void **state)
{
	(void)state;
	if (server.pid) {
		kill(server.pid, SIGTERM);
		assert_int_equal(waitpid(server.pid, NULL, 0), server.pid);
		assert_int_equal(run("rm -r %s", server.dir), 0);
	}
	return 0;
}

/* ---- a device behind it ---------------------------------------------------- */

/* What a case has of its own: files in the server's folder, and how long to wait. */
struct entry {
	const char *known_hosts, *key;
	int timeout_ms;
};

static const struct entry welcome = { "known_hosts", "id", 10000 };

/* One session's place is taken by the next: the options live as long as the rig. */
struct ssh_rig {
	struct rig r;
	char emulator[96], known_hosts[64], key[64];
};

static void enter(struct ssh_rig *s, const struct entry *e)
{
	struct rig *r = &s->r;

	rig_close(r);
	r->cfg.n_options = 0;
	r->cfg.timeout_ms = e->timeout_ms;
	snprintf(s->known_hosts, sizeof(s->known_hosts), "%s/%s", server.dir, e->known_hosts);
	snprintf(s->key, sizeof(s->key), "%s/%s", server.dir, e->key);
	rig_option(r, "ssh", "yes");
	rig_option(r, "user", getpwuid(getuid())->pw_name);
	rig_option(r, "known_hosts", s->known_hosts);
	rig_option(r, "key", s->key);
	rig_option(r, "gap_ms", "0");
	if (strstr(r->driver, "-cli")) {
		rig_option(r, "poll_ms", "20");
	}
	rig_open(r);
}

static struct ssh_rig *set_up(void **state, const char *fault)
{
	struct ssh_rig *s;
	char target[96];

	if (!server.pid) {
		skip();
	}
	s = test_calloc(1, sizeof(*s));
	rig_init(&s->r, *state, 8, 8, false);
	rig_start_emulator(&s->r, "8x8", fault);
	snprintf(s->emulator, sizeof(s->emulator), "%s", s->r.address);
	snprintf(target, sizeof(target), "%s", s->emulator);
	*strchr(target, ':') = ' ';
	put_file("target", target);
	s->r.cfg.address = server.address;
	enter(s, &welcome);
	return s;
}

static void tear_down(struct ssh_rig *s)
{
	rig_fini(&s->r);
	test_free(s);
}

/* ---- the cases ------------------------------------------------------------- */

static const struct drv_item two[] = { ADD(0, 4), ADD(1, 6) };

static void reads_and_changes(void **state)
{
	static const struct drv_item del[] = { DEL(0, 4) };
	struct ssh_rig *s = set_up(state, NULL);
	struct rig *r = &s->r;

	rig_expect_map(r, "");
	assert_true(r->snap.identity[0] != '\0');
	assert_int_equal(rig_submit(r, DRV_SAFE, 2, two), 0);
	rig_expect_map(r, "0-4 1-6");
	assert_int_equal(rig_submit(r, DRV_SAFE, 1, del), 0);
	rig_expect_map(r, "1-6");
	tear_down(s);
}

static void waits_for_slow_answers(void **state)
{
	struct ssh_rig *s = set_up(state, "slow=20");

	assert_int_equal(rig_submit(&s->r, DRV_SAFE, 1, two), 0);
	rig_control(&s->r, "clear", NULL, 0);
	rig_control(&s->r, "fault bytewise", NULL, 0);
	rig_expect_map(&s->r, "0-4");
	tear_down(s);
}

/* Where a prompt comes first, that is what is waited for. Where none does, the limit is for the
 * log-in as well: one that was too short for it is doubled. */
static void times_out_on_silence(void **state)
{
	struct entry hurried = { "known_hosts", "id", 1000 };
	struct ssh_rig *s = set_up(state, "silence");
	bool asked = strcmp(*state, "sonic-ocs") == 0;
	int rc;

	enter(s, &hurried);
	for (rc = rig_snapshot(&s->r); asked && rc == WEFT_EUNAVAIL; rc = rig_snapshot(&s->r)) {
		assert_non_null(strstr(s->r.err.msg, " took too long"));
		hurried.timeout_ms *= 2;
		assert_true(hurried.timeout_ms < 60000);
		enter(s, &hurried);
	}
	assert_int_equal(rc, asked ? WEFT_ETIMEOUT : WEFT_EUNAVAIL);
	if (!asked) {
		assert_non_null(strstr(s->r.err.msg, " took too long"));
	}
	tear_down(s);
}

static void survives_a_session_cut_in_mid_reply(void **state)
{
	struct ssh_rig *s = set_up(state, "drop-reply");

	assert_int_equal(rig_snapshot(&s->r), WEFT_EUNAVAIL);
	assert_int_equal(rig_snapshot(&s->r), 0);
	tear_down(s);
}

static void a_session_lost_half_way_is_unknown(void **state)
{
	struct ssh_rig *s = set_up(state, "drop-set");
	struct rig *r = &s->r;

	assert_int_equal(rig_submit(r, DRV_UPDATE, 1, two), WEFT_EUNAVAIL);
	rig_expect(r, 0, DRV_UNKNOWN);
	rig_expect_map(r, "0-4");
	tear_down(s);
}

/* Nothing is said to a host that is not known, nor by a user who is not let in; the
 * same device answers who comes with the right key. */
static void is_let_in_by_its_key_alone(void **state)
{
	static const struct entry unknown = { "no_hosts", "id", 10000 };
	static const struct entry stranger = { "known_hosts", "other", 10000 };
	struct ssh_rig *s = set_up(state, NULL);
	struct rig *r = &s->r;

	enter(s, &unknown);
	assert_int_equal(rig_snapshot(r), WEFT_EDENIED);
	assert_non_null(strstr(r->err.msg, "not known"));
	enter(s, &stranger);
	assert_int_equal(rig_submit(r, DRV_SAFE, 2, two), WEFT_EDENIED);
	assert_non_null(strstr(r->err.msg, "is not let in"));
	assert_int_equal(rig_stat(r, "sets "), 0);
	enter(s, &welcome);
	rig_expect_map(r, "");
	tear_down(s);
}

static void closes_while_reading(void **state)
{
	struct ssh_rig *s = set_up(state, "silence");

	rig_begin_snapshot(&s->r);
	for (int turns = 0; turns < 5; turns++) {
		uv_run(&s->r.loop, UV_RUN_ONCE);
	}
	rig_close(&s->r);
	assert_int_equal(s->r.n_answers, 1);
	assert_int_equal(s->r.rc, WEFT_ECANCELED);
	tear_down(s);
}

#define CASE(driver, fn) { driver ": " #fn, fn, NULL, NULL, driver }
/* What carries the session is one for all; what they make of a session is not. */
#define EACH(driver) \
	CASE(driver, reads_and_changes), \
	CASE(driver, a_session_lost_half_way_is_unknown), \
	CASE(driver, is_let_in_by_its_key_alone)

int main(void)
{
	static const struct CMUnitTest all[] = {
		EACH("sonic-ocs"), EACH("rome-cli"), EACH("telescent-cli"),
		CASE("sonic-ocs", waits_for_slow_answers),
		CASE("sonic-ocs", times_out_on_silence),
		CASE("rome-cli", times_out_on_silence),
		CASE("telescent-cli", survives_a_session_cut_in_mid_reply),
		CASE("telescent-cli", closes_while_reading),
	};

	return cmocka_run_group_tests_name("drivers/conformance by SSH", all, start_server,
					   stop_server);
}
