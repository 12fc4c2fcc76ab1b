/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A command in a session of its own, with limits.
 *
 * mpirun puts each rank in a process group of its own, so ending its group would
 * leave them: all of them stay in its session. It is asked first, as it also ends what it has
 * started elsewhere; then whoever is left of the session is killed. For that time orphans become
 * children of this process: no dead ones stay where no other process takes them in.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "runtime/launch/private.h"

#define LOOK_MS 50		/* so often are the limits looked at */
#define END_MS 4000		/* for mpirun to end its ranks */
#define MAX_OUTPUT ((size_t)64 << 20)
#define ERRORS_KEPT ((size_t)16 << 10)

struct launch_child {
	pid_t pid;
	int out, errors;	/* to read from; -1: at its end */
};

/* ---- starting ---- */

/* The input as a file without a name. */
static int input_file(const struct launch_options *o, int *fd, struct err *err)
{
	const char *from = o->schedule;
	size_t left = o->schedule_len;

	*fd = memfd_create("schedule", MFD_CLOEXEC);
	if (*fd < 0) {
		return err_errno(err, WEFT_EIO, errno, "memory for the schedule");
	}
	while (left > 0) {
		ssize_t n = write(*fd, from, left);

		if (n < 0 && errno != EINTR) {
			return err_errno(err, WEFT_EIO, errno, "memory for the schedule");
		}
		from += n > 0 ? n : 0;
		left -= n > 0 ? (size_t)n : 0;
	}
	if (lseek(*fd, 0, SEEK_SET) != 0) {
		return err_errno(err, WEFT_EIO, errno, "memory for the schedule");
	}
	return 0;
}

/* In the child. Ends with its parent. */
static void become(char *const *argv, int in, int out, int errors)
{
	sigset_t none;

	prctl(PR_SET_PDEATHSIG, SIGTERM);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGINT, SIG_DFL);
	signal(SIGTERM, SIG_DFL);
	setsid();
	dup2(in, STDIN_FILENO);
	dup2(out, STDOUT_FILENO);
	dup2(errors, STDERR_FILENO);
	if (geteuid() == 0) {
		setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
		setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
	}
	/* PMIx's other store, in shared memory, ends ranks that start on a busy machine
	 * (open-mpi/ompi#6761). */
	setenv("PMIX_MCA_gds", "hash", 0);
	execv(argv[0], argv);
	fprintf(stderr, "%s: %s\n", argv[0], strerror(errno));
	_exit(127);
}

static int start(char *const *argv, int in, struct launch_child *c, struct err *err)
{
	int out[2], errors[2];

	if (pipe2(out, O_CLOEXEC) != 0) {
		return err_errno(err, WEFT_EIO, errno, "pipe");
	}
	if (pipe2(errors, O_CLOEXEC) != 0) {
		close(out[0]);
		close(out[1]);
		return err_errno(err, WEFT_EIO, errno, "pipe");
	}
	c->pid = fork();
	if (c->pid == 0) {
		become(argv, in, out[1], errors[1]);
	}
	close(out[1]);
	close(errors[1]);
	c->out = out[0];
	c->errors = errors[0];
	fcntl(c->out, F_SETFL, O_NONBLOCK);
	fcntl(c->errors, F_SETFL, O_NONBLOCK);
	return c->pid < 0 ? err_errno(err, WEFT_EIO, errno, "fork") : 0;
}

/* ---- ending ---- */

/* The session of a process by its entry in /proc, or -1. */
static int session_of(const char *pid)
{
	char path[64], text[512], *p;
	int session = -1;
	size_t n;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%.20s/stat", pid);
	f = fopen(path, "re");
	if (!f) {
		return -1;
	}
	n = fread(text, 1, sizeof(text) - 1, f);
	fclose(f);
	text[n] = '\0';
	/* pid (name) state parent group session: a name may hold anything. */
	p = strrchr(text, ')');
	if (!p || sscanf(p, ") %*c %*d %*d %d", &session) != 1) {
		return -1;
	}
	return session;
}

/* Once its first process has ended: the others are children of ours by then. */
static void kill_session(pid_t session)
{
	DIR *d = opendir("/proc");
	const struct dirent *e;

	while (d && (e = readdir(d))) {
		if (isdigit((unsigned char)e->d_name[0]) && session_of(e->d_name) == session) {
			kill((pid_t)atoi(e->d_name), SIGKILL);
			waitpid((pid_t)atoi(e->d_name), NULL, 0);
		}
	}
	if (d) {
		closedir(d);
	}
}

static bool has_ended(const struct launch_child *c, int *status)
{
	return waitpid(c->pid, status, WNOHANG) == c->pid;
}

static void end(const struct launch_child *c, int *status)
{
	int64_t until = clk_now_ns() + END_MS * INT64_C(1000000);
	bool ended = false;

	kill(c->pid, SIGTERM);
	while (!ended && clk_now_ns() < until) {
		poll(NULL, 0, LOOK_MS);
		ended = has_ended(c, status);
	}
	if (!ended) {
		kill(c->pid, SIGKILL);
		waitpid(c->pid, status, 0);
	}
}

/* ---- reading ---- */

/* What is there now; *fd becomes -1 at the end. */
static void read_some(int *fd, struct buf *b)
{
	char data[16384];
	ssize_t n = 0;

	while (*fd >= 0 && (n = read(*fd, data, sizeof(data))) > 0) {
		buf_add(b, data, (size_t)n);
	}
	if (*fd >= 0 && (n == 0 || (errno != EAGAIN && errno != EINTR))) {
		close(*fd);
		*fd = -1;
	}
}

static int read_all(struct launch_child *c, struct launch_output *out, struct err *err)
{
	struct pollfd fds[2] = { { c->out, POLLIN, 0 }, { c->errors, POLLIN, 0 } };

	poll(fds, 2, LOOK_MS);
	read_some(&c->out, &out->out);
	read_some(&c->errors, &out->errors);
	if (out->errors.len > ERRORS_KEPT) {
		buf_consume(&out->errors, out->errors.len - ERRORS_KEPT);
	}
	if (out->out.len > MAX_OUTPUT) {
		return err_set(err, WEFT_ELIMIT, "more than %zu bytes of results", MAX_OUTPUT);
	}
	return 0;
}

/* Until it has ended, or has to be. */
static int watch(struct launch_child *c, const struct launch_options *o,
		 struct launch_output *out, struct err *err)
{
	int64_t begin = clk_now_ns();
	bool ended = false;
	int rc = 0;

	while (!rc && !ended) {
		rc = read_all(c, out, err);
		ended = has_ended(c, &out->status);
		if (!rc && !ended && o->stop && *o->stop) {
			rc = err_set(err, WEFT_ECANCELED, "stopped, and all ranks ended");
		}
		if (!rc && !ended && o->limit_ns > 0 && clk_now_ns() - begin > o->limit_ns) {
			rc = err_set(err, WEFT_ETIMEOUT, "not done after %.3g s; all ranks were "
				     "ended", (double)o->limit_ns / 1e9);
		}
	}
	if (!ended) {
		end(c, &out->status);
	}
	kill_session(c->pid);
	if (!rc) {
		rc = read_all(c, out, err);
	}
	return rc;
}

int launch_process(char *const *argv, const struct launch_options *o, struct launch_output *out,
		   struct err *err)
{
	struct launch_child c = { .pid = -1, .out = -1, .errors = -1 };
	int in = -1, rc;

	*out = (struct launch_output){ 0 };
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	rc = input_file(o, &in, err);
	if (!rc) {
		rc = start(argv, in, &c, err);
	}
	if (!rc) {
		rc = watch(&c, o, out, err);
	}
	prctl(PR_SET_CHILD_SUBREAPER, 0);
	if (in >= 0) {
		close(in);
	}
	if (c.out >= 0) {
		close(c.out);
	}
	if (c.errors >= 0) {
		close(c.errors);
	}
	return rc;
}
