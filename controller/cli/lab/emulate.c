/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weft emulate: the devices of a fabric as programs on their addresses, one
 * weft-emulator each, until a signal ends them all.
 *
 * Each emulator is a child whose standard output is a pipe: its first line
 * "listening ADDRESS" says that it accepts connections, so that the command
 * prints its list, and scripts go on, only when every device can be reached.
 * One that does not start ends the whole command. One that ends later is a device that
 * lost its power: it is told, the others go on, and the command ends with the last. Emulators die
 * with this process, even when it is killed (PR_SET_PDEATHSIG). Signals come
 * by signalfd into the one poll() that also watches the pipes, so nothing
 * runs in a handler.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "controller/cli/core/private.h"
#include "lib/base/alloc.h"
#include "lib/base/clock.h"

/* How long emulators may take, in ms, to listen and to end when asked to. */
#define START_MS 10000
#define STOP_MS 5000
/* Words of an emulator's command line, and the longest word that is made
 * up. */
#define MAX_ARGS 24
#define WORD 256
#define NS_PER_MS 1000000

struct emulator {
	const struct model_device *device;
	pid_t pid;		/* 0: not running */
	int fd;			/* its standard output */
	bool listening;
	char line[128];		/* what it said: "listening ADDRESS" */
	size_t len;
	char control[WORD];
};

/* All of them; n have an address and so an entry in v. */
struct emulators {
	int n;
	struct emulator *v;
	struct pollfd *polls;	/* [n + 1], the last for signals */
	int signals;
	char program[4096];
};

/* Beside this program, or wherever the path leads. */
static void find_program(struct emulators *f)
{
	const char *name = "weft-emulator";
	ssize_t n = readlink("/proc/self/exe", f->program, sizeof(f->program) - 32);
	char *slash;

	if (n > 0) {
		f->program[n] = '\0';
		slash = strrchr(f->program, '/');
		strcpy(slash ? slash + 1 : f->program, name);
		if (access(f->program, X_OK) == 0) {
			return;
		}
	}
	strcpy(f->program, name);
}

/* The command line of one emulator; words holds what has to be made up. */
static void make_args(struct emulators *f, struct emulator *e,
		      char words[2][WORD], char *argv[MAX_ARGS])
{
	const struct model_device *d = e->device;
	bool ring = d->kind == MODEL_RING;
	int n = 0;

	/* Nodes by channels of a ring, inputs by outputs of a switch. */
	snprintf(words[0], WORD, "%dx%d", ring ? d->ring.n : d->n_in,
		 ring ? d->ring.channels : d->n_out);
	snprintf(words[1], WORD, "%d", ring ? d->ring.fibres : 1);
	argv[n++] = f->program;
	argv[n++] = "--driver";
	argv[n++] = d->driver;
	argv[n++] = "--listen";
	argv[n++] = d->address;
	argv[n++] = "--name";
	argv[n++] = d->name;
	argv[n++] = "--size";
	argv[n++] = words[0];
	if (ring) {
		argv[n++] = "--fibres";
		argv[n++] = words[1];
	}
	if (d->any_to_any) {
		argv[n++] = "--any-to-any";
	}
	if (e->control[0]) {
		argv[n++] = "--control";
		argv[n++] = e->control;
	}
	argv[n] = NULL;
}

/* In the child: becomes the emulator. It ends when we do. */
static void become(struct emulators *f, struct emulator *e, int out)
{
	char words[2][WORD], *argv[MAX_ARGS];
	sigset_t none;

	prctl(PR_SET_PDEATHSIG, SIGTERM);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	dup2(out, STDOUT_FILENO);
	make_args(f, e, words, argv);
	execvp(argv[0], argv);
	fprintf(stderr, "weft: %s: %s%s\n", argv[0], strerror(errno),
		errno == ENOENT ? ": install weft-lab" : "");
	_exit(127);
}

/* Starts one; WEFT_EIO. Descriptors are close-on-exec, so that no emulator
 * holds another's pipe open. */
static int spawn(struct emulators *f, struct emulator *e, struct err *err)
{
	int pipes[2];

	if (pipe2(pipes, O_CLOEXEC) != 0) {
		return err_errno(err, WEFT_EIO, errno, "pipe");
	}
	e->pid = fork();
	if (e->pid == 0) {
		become(f, e, pipes[1]);
	}
	close(pipes[1]);
	e->fd = pipes[0];
	if (e->pid < 0) {
		e->pid = 0;
		return err_errno(err, WEFT_EIO, errno, "fork");
	}
	return 0;
}

/* What has an address of its own is emulated; the built-in simulators and
 * patch panels have none. */
static int gather(struct emulators *f, const struct model_fabric *fabric,
		  const char *control_dir, struct err *err)
{
	f->signals = -1;
	f->v = x_new((size_t)fabric->n_devices + 1, sizeof(*f->v));
	f->polls = x_new((size_t)fabric->n_devices + 1, sizeof(*f->polls));
	for (int i = 0; i < fabric->n_devices; i++) {
		const struct model_device *d = &fabric->devices[i];
		struct emulator *e = &f->v[f->n];

		if (!d->address[0]) {
			continue;
		}
		e->device = d;
		e->fd = -1;
		if (control_dir && snprintf(e->control, WORD, "%s/%s.ctl", control_dir,
					    d->name) >= WORD) {
			return err_set(err, WEFT_EINVAL, "--control-dir: too long");
		}
		f->n++;
	}
	if (f->n == 0) {
		return err_set(err, WEFT_EINVAL, "%s: no device has an address to emulate",
			       fabric->config.name);
	}
	return 0;
}

/* SIGINT, SIGTERM and SIGHUP become readable on f->signals. Children clear
 * the mask again before they exec. */
static int watch_signals(struct emulators *f, struct err *err)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, NULL);
	f->signals = signalfd(-1, &set, SFD_CLOEXEC);
	return f->signals < 0 ? err_errno(err, WEFT_EIO, errno, "signalfd")
			      : 0;
}

/* Reads what an emulator says; its first line is the address. False when it
 * has ended. */
static bool hear(struct emulator *e)
{
	char bytes[256];
	ssize_t n = read(e->fd, bytes, sizeof(bytes));

	for (ssize_t i = 0; i < n && !e->listening; i++) {
		if (bytes[i] == '\n') {
			e->line[e->len] = '\0';
			e->listening = strncmp(e->line, "listening ", 10) == 0;
			e->len = 0;
		} else if (e->len + 1 < sizeof(e->line)) {
			e->line[e->len++] = bytes[i];
		}
	}
	return n > 0 || (n < 0 && errno == EINTR);
}

/* Reaps one that ended by itself, and says how as an error. */
static int ended(struct emulator *e, struct err *err)
{
	int status = 0;

	waitpid(e->pid, &status, 0);
	e->pid = 0;
	close(e->fd);
	e->fd = -1;
	if (WIFSIGNALED(status)) {
		return err_set(err, WEFT_EUNAVAIL,
			       "%s: its emulator was ended by signal %d",
			       e->device->name, WTERMSIG(status));
	}
	return err_set(err, WEFT_EUNAVAIL,
		       "%s: its emulator at %s ended with exit code %d",
		       e->device->name, e->device->address,
		       WEXITSTATUS(status));
}

/* Waits once, at most wait_ms (-1: for ever). 1: a signal asks to stop; 0;
 * or the error of an emulator that ended, which is watched no more. */
static int watch(struct emulators *f, int wait_ms, struct err *err)
{
	for (int i = 0; i < f->n; i++) {
		f->polls[i] = (struct pollfd){ f->v[i].fd, POLLIN, 0 };
	}
	f->polls[f->n] = (struct pollfd){ f->signals, POLLIN, 0 };
	if (poll(f->polls, (nfds_t)f->n + 1, wait_ms) < 0 && errno != EINTR) {
		return err_errno(err, WEFT_EIO, errno, "poll");
	}
	if (f->polls[f->n].revents) {
		return 1;
	}
	for (int i = 0; i < f->n; i++) {
		if (f->polls[i].revents && !hear(&f->v[i])) {
			return ended(&f->v[i], err);
		}
	}
	return 0;
}

static int n_running(const struct emulators *f)
{
	int n = 0;

	for (int i = 0; i < f->n; i++) {
		n += f->v[i].pid > 0;
	}
	return n;
}

/* Until a signal (0) or until none is left, which is the error of the last. */
static int watch_all(const struct cli *c, struct emulators *f, struct err *err)
{
	int r = 0;

	while (r == 0) {
		r = watch(f, -1, err);
		if (r == WEFT_EUNAVAIL && n_running(f)) {
			cli_say(c, CLI_QUIET, "%s; the others go on", err->msg);
			r = 0;
		}
	}
	return r > 0 ? 0 : r;
}

static bool all_listen(const struct emulators *f)
{
	for (int i = 0; i < f->n; i++) {
		if (!f->v[i].listening) {
			return false;
		}
	}
	return true;
}

/* Starts all, then waits until all listen, at most START_MS. 1 when a signal
 * came first. */
static int start(struct emulators *f, struct err *err)
{
	int64_t end_ns = clk_now_ns() + (int64_t)START_MS * NS_PER_MS;
	int r = watch_signals(f, err);

	find_program(f);
	for (int i = 0; i < f->n && r == 0; i++) {
		r = spawn(f, &f->v[i], err);
	}
	while (r == 0 && !all_listen(f)) {
		int64_t left = (end_ns - clk_now_ns()) / NS_PER_MS;

		if (left <= 0) {
			return err_set(err, WEFT_ETIMEOUT, "an emulator does not start");
		}
		r = watch(f, (int)left, err);
	}
	return r;
}

/* Ends every emulator: SIGTERM, and SIGKILL after STOP_MS. */
static void stop(struct emulators *f)
{
	int64_t end_ns = clk_now_ns() + (int64_t)STOP_MS * NS_PER_MS;

	for (int i = 0; i < f->n; i++) {
		if (f->v[i].pid > 0) {
			kill(f->v[i].pid, SIGTERM);
		}
	}
	for (int i = 0; i < f->n; i++) {
		struct emulator *e = &f->v[i];

		while (e->pid > 0 && waitpid(e->pid, NULL, WNOHANG) == 0) {
			if (clk_now_ns() > end_ns) {
				kill(e->pid, SIGKILL);
			}
			poll(NULL, 0, 10);
		}
		e->pid = 0;
		if (e->fd >= 0) {
			close(e->fd);
		}
	}
}

/* {emulators: [{device, driver, state, address, pid, control}]}; the address
 * is the one that the emulator says, which may name a port that the system
 * chose. */
static int print_emulators(struct cli *c, const struct emulators *f, struct err *err)
{
	struct out *o = out_new(c->format);

	out_array(o, "emulators");
	for (int i = 0; i < f->n; i++) {
		const struct emulator *e = &f->v[i];

		out_object(o, NULL);
		out_str(o, "device", e->device->name);
		out_str(o, "driver", e->device->driver);
		out_str(o, "state", "listening");
		out_str(o, "address", e->line + strlen("listening "));
		out_int(o, "pid", e->pid);
		if (e->control[0]) {
			out_str(o, "control", e->control);
		}
		out_end(o);
	}
	out_end(o);
	out_note(o, "ready; they end with this command");
	return cli_print(o, err);
}

int cmd_emulate(struct cli *c, struct err *err)
{
	const char *dir = cli_opt(c, "control-dir");
	struct model_fabric *fabric = NULL;
	struct emulators f = { .signals = -1 };
	int r = cli_load_fabric(c->argv[0], &fabric, err);

	if (r || (r = gather(&f, fabric, dir, err))) {
		goto out;
	}
	if (dir && mkdir(dir, 0700) != 0 && errno != EEXIST) {
		r = err_errno(err, WEFT_EIO, errno, "%s", dir);
		goto out;
	}
	r = start(&f, err);
	if (r == 0) {
		r = print_emulators(c, &f, err);
	}
	if (r == 0) {
		r = watch_all(c, &f, err);
	}
	stop(&f);
	r = r > 0 ? 0 : r;
out:
	if (f.signals >= 0) {
		close(f.signals);
	}
	free(f.v);
	free(f.polls);
	model_free(fabric);
	return r;
}
