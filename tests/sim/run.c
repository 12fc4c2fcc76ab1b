/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A run in a child of the real kernel's. The parent has begun no simulation, so each child has
 * one that is new; and it has called nothing that would be one's own in each of two.
 */
#define _XOPEN_SOURCE 700
#include "tests/sim/run.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/sim/disk/disk.h"
#include "tests/sim/cluster/history.h"
#include "tests/sim/cluster/load.h"
#include "tests/sim/oracle/oracle.h"
#include "tests/sim/oracle/planted.h"

#define CPU_SECONDS 60
/* The longest that clients, who are patient, and the judgement take after all is over. */
#define ENDS_WITHIN (600 * SIM_S)

/* ---- in the child ---- */

static struct run_result *result;
static struct fault_list faults;

static int judge(int argc, char **argv)
{
	(void)argc, (void)argv;
	load_settle(faults_end(&faults));
	history_check();
	oracle_settled();
	result->judged = true;
	sim_stop();
	return 0;
}

/* Devices of a kind that is left out are of another. */
static void leave_out_devices(struct scenario *s, bool (*is_out)(const char *kind))
{
	for (int i = 0; is_out && i < s->n_devices; i++) {
		if (is_out(s->devices[i].dialect)) {
			s->devices[i].dialect = "polatis-scpi";
		}
	}
}

/* Faults are drawn for the whole load, so that those of a shorter one are the same. */
static void run_drawn(const struct run *r)
{
	struct scenario drawn, s;
	int64_t end;

	scenario_draw(&drawn);
	leave_out_devices(&drawn, r->leaves_out);
	if (r->lease_s > 0) {
		scenario_delay(&drawn, r->lease_s);
	}
	drawn.calm = r->calm > 1 ? r->calm : 1;
	drawn.load_ns *= drawn.calm;
	s = drawn;
	if (r->load_ns > 0 && r->load_ns < s.load_ns) {
		s.load_ns = r->load_ns;
	}
	scenario_tell(&s);
	oracle_begin(&s);
	cluster_begin(&s);
	faults_draw(&drawn, &faults);
	if (r->leaves_out) {
		faults_leave_out(&faults, r->leaves_out);
	}
	if (r->only) {
		faults_keep(&faults, r->numbers, r->n_numbers);
	}
	result->faults = faults;
	result->load_ns = s.load_ns;
	faults_tell(&faults);
	load_begin();
	faults_begin(&faults);
	sim_start("judge", judge, (const char *const[]){ "judge", NULL });
	end = faults_end(&faults) > s.load_ns ? faults_end(&faults) : s.load_ns;
	sim_run(end + LOAD_SETTLE_NS + ENDS_WITHIN);
	if (!result->judged) {
		sim_fail("run ends", "clients still wait, %.0f s after the last fault",
			 (double)(sim_now() - end) / SIM_S);
	}
}

static void note_result(void)
{
	result->n_broken = sim_failures() < RUN_RULES ? sim_failures() : RUN_RULES;
	for (int i = 0; i < result->n_broken; i++) {
		snprintf(result->broken[i], sizeof(result->broken[i]), "%s", sim_broken(i));
	}
	result->digest = sim_digest();
	result->virtual_ns = sim_now();
}

static void limit(int resource, rlim_t value)
{
	struct rlimit l = { value, value };

	setrlimit(resource, &l);
}

static void run_child(const struct run *r)
{
	limit(RLIMIT_CPU, CPU_SECONDS);
	limit(RLIMIT_CORE, 0);
	sim_begin(r->seed, r->trace);
	disk_begin();
	if (r->plant) {
		plant(r->plant);
	}
	if (r->story) {
		r->story->run();
		result->judged = true;
	} else {
		run_drawn(r);
	}
	note_result();
}

/* ---- in the parent ---- */

/* Those that run. When this process is told to end, they are ended, and their folders go. */
static struct run_child *children[RUNS_AT_A_TIME];
static volatile sig_atomic_t told_to_end;

static void end_all(int number)
{
	told_to_end = number;
	for (int i = 0; i < RUNS_AT_A_TIME; i++) {
		if (children[i]) {
			kill(children[i]->pid, SIGKILL);
		}
	}
}

/* In the place of another, or of none. */
static void note_child(const struct run_child *old, struct run_child *new)
{
	for (int i = 0; i < RUNS_AT_A_TIME; i++) {
		if (children[i] == old) {
			children[i] = new;
			return;
		}
	}
}

static void fail(const char *what)
{
	perror(what);
	exit(2);
}

static void go_into_folder(const struct run_child *c)
{
	if (chdir(c->folder) || (!c->run.trace && dup2(c->output, STDOUT_FILENO) < 0)) {
		fail(c->folder);
	}
	close(c->output);
}

/* In memory, unless told otherwise. */
static const char *find_place(void)
{
	const char *place = getenv("TMPDIR");

	return place ? place : access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
}

void run_start(struct run_child *c, const struct run *r)
{
	*c = (struct run_child){ .run = *r };
	snprintf(c->folder, sizeof(c->folder), "%.40s/weft-sim.XXXXXX", find_place());
	if (!mkdtemp(c->folder)) {
		fail(c->folder);
	}
	c->output = open(c->folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	c->result = mmap(NULL, sizeof(*c->result), PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (c->result == MAP_FAILED || c->output < 0) {
		fail("memory");
	}
	fflush(stdout);
	signal(SIGTERM, end_all);
	signal(SIGINT, end_all);
	c->pid = fork();
	if (c->pid < 0) {
		fail("fork");
	}
	if (c->pid == 0) {
		signal(SIGTERM, SIG_DFL);
		signal(SIGINT, SIG_DFL);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		go_into_folder(c);
		result = c->result;
		run_child(r);
		_exit(0);
	}
	note_child(NULL, c);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)st, (void)type, (void)at;
	remove(path);
	return 0;
}

static void clean_all(void)
{
	for (int i = 0; i < RUNS_AT_A_TIME; i++) {
		if (children[i]) {
			waitpid(children[i]->pid, NULL, 0);
			nftw(children[i]->folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
		}
	}
	exit(128 + told_to_end);
}

void run_ended(struct run_child *c, int status)
{
	if (told_to_end) {
		clean_all();
	}
	c->status = status;
	c->ended = true;
	nftw(c->folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	note_child(c, NULL);
}

void run_free(struct run_child *c)
{
	close(c->output);
	munmap(c->result, sizeof(*c->result));
}

void run_whole(struct run_child *c, const struct run *r)
{
	int status;

	run_start(c, r);
	if (waitpid(c->pid, &status, 0) != c->pid) {
		fail("wait");
	}
	run_ended(c, status);
}

const char *run_failure(const struct run_child *c, bool (*is_known)(const char *rule))
{
	const struct run_result *r = c->result;

	if (WIFSIGNALED(c->status) && WTERMSIG(c->status) == SIGXCPU) {
		return "it takes too long";
	}
	if (WIFSIGNALED(c->status)) {
		return strsignal(WTERMSIG(c->status));
	}
	if (c->status) {
		return "it ended by itself";
	}
	for (int i = 0; i < r->n_broken; i++) {
		if (!is_known || !is_known(r->broken[i])) {
			return r->broken[i];
		}
	}
	return NULL;
}

void run_print(const struct run_child *c)
{
	FILE *f = fdopen(dup(c->output), "r");
	char line[4096];

	rewind(f);
	while (fgets(line, sizeof(line), f)) {
		printf("%s%s", strncmp(line, "# ", 2) == 0 ? "" : "# ", line);
	}
	fclose(f);
}
