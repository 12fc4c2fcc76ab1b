/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weft-sim: runs of the whole controller on virtual time, each in a process of its own, and what
 * came of them in TAP. A run that fails prints itself, made short.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/alloc.h"
#include "tests/sim/oracle/planted.h"
#include "tests/sim/run.h"
#include "tests/sim/shrink.h"

#define JOBS_MAX (RUNS_AT_A_TIME / 2)	/* one more while one is made short */

static const struct story *const stories[] = {
	disk_stories, history_stories, etcd_cases_stories, etcd_stories, turns_stories,
	confirm_stories, divided_stories, external_stories, full_disk_stories, job_stories,
	device_stories, stage_stories, report_stories, oracle_stories, failover_stories,
	maintenance_stories, ring_stories, broken_ring_stories, found_stories,
	resume_stories, queue_stories, slice_stories,
};

#define N_TABLES (int)(sizeof(stories) / sizeof(stories[0]))

static struct {
	struct run run;			/* what all runs have */
	struct run_child *children;	/* in the order of their lines */
	int n, cap;
	int jobs;
	bool shrinks, repeats;
	int64_t for_s;			/* new seeds; 0: not */
	int64_t virtual_ns;		/* of all runs */
	char *known;			/* a file; NULL: there is none */
	int tests, failed;
} o = { .jobs = 1, .shrinks = true, .known = "tests/sim/known" };

static const char usage[] =
	"usage: weft-sim [OPTION...]\n"
	"  --seed N, --seeds A-B, --random N   what these seeds draw, or N new ones\n"
	"  --story NAME, --stories             a story, or all of them\n"
	"  --only 3,17 | --only none           only these faults of what is drawn\n"
	"  --seconds S                         clients ask for at most so long\n"
	"  --calm N                            all is N times as far apart\n"
	"  --late S                            by an etcd, lease S, and answers are late\n"
	"  --for S                             new seeds, for so many seconds of the real clock\n"
	"  --all-faults                        also those that known failures come of\n"
	"  --plant NAME                        with a fault of weft itself\n"
	"  --trace                             tells all that happens (one run)\n"
	"  --repeat                            twice, to see that nothing differs (one seed)\n"
	"  --jobs N                            runs at a time\n"
	"  --no-shrink                         failures stay as long as they are\n"
	"  --known FILE                        what is known to fail (tests/sim/known)\n"
	"  --list                              stories, kinds of faults, what can be planted\n";

/* ---- what is known to fail ---- */

/* "KIND NAME: WHY" in the file: WHY without its newline, for a while; else NULL. */
static const char *find_known(const char *kind, const char *name)
{
	static char line[400];
	const size_t k = strlen(kind), n = strlen(name);
	const char *why = NULL;
	FILE *f = o.known ? fopen(o.known, "r") : NULL;

	while (f && !why && fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = '\0';
		if (strncmp(line, kind, k) == 0 && line[k] == ' ' &&
		    strncmp(line + k + 1, name, n) == 0 &&
		    strncmp(line + k + 1 + n, ": ", 2) == 0) {
			why = line + k + n + 3;
		}
	}
	if (f) {
		fclose(f);
	}
	return why;
}

static bool is_known_rule(const char *rule)
{
	return find_known("rule", rule) != NULL;
}

static bool is_known_fault(const char *kind)
{
	return find_known("fault", kind) != NULL;
}

/* ---- lines ---- */

static void say(bool ok, const char *what, const char *why)
{
	o.failed += !ok;
	printf("%sok %d - %s%s%s\n", ok ? "" : "not ", ++o.tests, what, why ? ": " : "",
	       why ? why : "");
}

static void name_run(const struct run *r, char *out, size_t size)
{
	snprintf(out, size, r->story ? "story %s" : "seed %s%llu", r->story ? r->story->name : "",
		 (unsigned long long)r->seed);
}

/* As it is given to this program. */
static void print_command(const struct run *r)
{
	printf("# weft-sim --seed %llu", (unsigned long long)r->seed);
	if (r->story) {
		printf(" --story %s", r->story->name);
	}
	if (r->only) {
		printf(" --only %s", r->n_numbers == 0 ? "none" : "");
		for (int i = 0; i < r->n_numbers; i++) {
			printf("%s%d", i > 0 ? "," : "", r->numbers[i]);
		}
	}
	if (r->load_ns > 0) {
		printf(" --seconds %lld", (long long)(r->load_ns / SIM_S));
	}
	if (r->calm > 1) {
		printf(" --calm %d", r->calm);
	}
	if (r->lease_s > 0) {
		printf(" --late %d", r->lease_s);
	}
	if (!r->leaves_out) {
		printf(" --all-faults");
	}
	printf("%s%s --trace\n", r->plant ? " --plant " : "", r->plant ? r->plant : "");
}

/* Seeds are good on one commit only. */
static void print_commit(void)
{
	char line[100] = "";
	FILE *f = getenv("WEFT_COMMIT") ? NULL : popen("git describe --always --dirty 2>/dev/null",
						       "r");

	if (f && !fgets(line, sizeof(line), f)) {
		line[0] = '\0';
	}
	if (f) {
		pclose(f);
	}
	line[strcspn(line, "\n")] = '\0';
	printf("# of commit %s\n", getenv("WEFT_COMMIT") ? getenv("WEFT_COMMIT") :
	       line[0] ? line : "not known");
}

static void explain(const struct run_child *c, const char *failure)
{
	struct run r = c->run;
	int runs;

	run_print(c);
	print_commit();
	print_command(&r);
	if (r.story || !o.shrinks) {
		return;
	}
	runs = shrink_run(&r, failure, c->result);
	printf("# made short by %d runs:\n", runs);
	print_command(&r);
	for (int i = 0; i < c->result->faults.n; i++) {
		const struct planned_fault *f = &c->result->faults.v[i];

		for (int k = 0; k < r.n_numbers; k++) {
			if (r.numbers[k] == f->number) {
				printf("# fault %d at %.3f s: %s\n", f->number,
				       (double)f->at / SIM_S, f->words);
			}
		}
	}
}

static void say_story(const struct run_child *c, const char *name)
{
	const char *failure = run_failure(c, NULL);
	const char *why = find_known("story", c->run.story->name);

	if (!why) {
		say(!failure, name, failure);
	} else if (failure) {
		printf("# %s is known to fail: %s\n", name, why);
		say(true, name, "fails as is known");
		return;
	} else {
		say(false, name, "fails no more: take it off the list of what is known to fail");
	}
	if (failure) {
		explain(c, failure);
	}
}

static void say_result(const struct run_child *c)
{
	char name[80];
	const char *failure;

	o.virtual_ns += c->result->virtual_ns;
	name_run(&c->run, name, sizeof(name));
	if (c->run.story) {
		say_story(c, name);
		return;
	}
	failure = run_failure(c, is_known_rule);
	say(!failure, name, failure);
	if (failure) {
		explain(c, failure);
	}
}

/* ---- runs ---- */

static void add_run(const struct run *r)
{
	if (o.n == o.cap) {
		o.cap = o.cap ? 2 * o.cap : 16;
		o.children = x_grow(o.children, (size_t)o.cap, sizeof(*o.children));
	}
	o.children[o.n++] = (struct run_child){ .run = *r };
}

static void add_seed(uint64_t seed)
{
	struct run r = o.run;

	r.seed = seed;
	add_run(&r);
}

/* One of all ends. */
static void wait_for_one(void)
{
	int status;
	const pid_t pid = wait(&status);

	for (int i = 0; i < o.n; i++) {
		if (o.children[i].pid == pid && !o.children[i].ended) {
			run_ended(&o.children[i], status);
		}
	}
}

/* Lines come in the order of the runs, as soon as all before them are there. */
static void run_all(void)
{
	int begun = 0, running = 0, said = 0;

	while (said < o.n) {
		while (begun < o.n && running < o.jobs) {
			const struct run r = o.children[begun].run;

			run_start(&o.children[begun++], &r);
			running++;
		}
		wait_for_one();
		running--;
		for (; said < begun && o.children[said].ended; said++) {
			say_result(&o.children[said]);
			run_free(&o.children[said]);
			fflush(stdout);
		}
	}
}

/* ---- new seeds ---- */

/* Short numbers, as people type them. */
static void add_random(int n)
{
	FILE *f = fopen("/dev/urandom", "r");
	uint32_t seed;

	for (int i = 0; i < n && f && fread(&seed, sizeof(seed), 1, f) == 1; i++) {
		add_seed(seed);
	}
	if (f) {
		fclose(f);
	}
}

static void run_for(int64_t seconds)
{
	const int64_t end = sim_real_s() + seconds;

	while (sim_real_s() < end) {
		o.n = 0;
		add_random(8 * o.jobs);
		run_all();
	}
	printf("# %.1f hours on virtual time\n", (double)o.virtual_ns / SIM_S / 3600);
}

/* ---- twice ---- */

/* A process that is new, at other addresses. */
static FILE *trace_of(const char *seed)
{
	char command[200], path[200] = "";
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);

	snprintf(command, sizeof(command), "%.*s --no-shrink --trace --seed %s", (int)n, path,
		 seed);
	return popen(command, "r");
}

static void say_repeated(uint64_t seed)
{
	char number[32], a[4096], b[4096], name[80];
	FILE *x, *y;
	bool same = true, more = true;
	int lines = 0;

	snprintf(number, sizeof(number), "%llu", (unsigned long long)seed);
	x = trace_of(number);
	y = trace_of(number);
	while (x && y && same && more) {
		const char *p = fgets(a, sizeof(a), x), *q = fgets(b, sizeof(b), y);

		more = p && q;
		same = (p == NULL) == (q == NULL) && (!more || strcmp(a, b) == 0);
		lines++;
	}
	snprintf(name, sizeof(name), "seed %s is twice the same", number);
	say(same && lines > 10, name, NULL);
	if (!same) {
		printf("# line %d:\n# %s# %s", lines, a, b);
	}
	pclose(x);
	pclose(y);
}

/* One run with all that it tells, in this process's output. */
static void trace(const struct run *r)
{
	struct run_child c;
	struct run traced = *r;

	traced.trace = true;
	run_whole(&c, &traced);
	printf("# digest %016llx\n", (unsigned long long)c.result->digest);
	say_result(&c);
	run_free(&c);
}

/* ---- what is asked ---- */

static void list(void)
{
	for (int t = 0; t < N_TABLES; t++) {
		for (const struct story *s = stories[t]; s->name; s++) {
			printf("story %s: %s%s\n", s->name, s->words,
			       find_known("story", s->name) ? " (known to fail)" : "");
		}
	}
	for (int i = 0; fault_kind(i); i++) {
		printf("fault %s\n", fault_kind(i)->name);
	}
	planted_list(stdout);
}

static void bad(const char *what, const char *value)
{
	fprintf(stderr, "weft-sim: %s: '%s'\n%s", what, value, usage);
	exit(2);
}

/* By name; NULL: all. */
static void add_stories(const char *name)
{
	bool any = false;

	for (int t = 0; t < N_TABLES; t++) {
		for (const struct story *s = stories[t]; s->name; s++) {
			struct run r = o.run;

			r.story = s;
			if (!name || strcmp(s->name, name) == 0) {
				add_run(&r);
				any = true;
			}
		}
	}
	if (!any) {
		bad("no such story", name);
	}
}

static void read_numbers(char *text)
{
	struct run *r = &o.run;

	r->only = true;
	r->n_numbers = 0;
	if (strcmp(text, "none") == 0) {
		return;
	}
	for (char *word = strtok(text, ","); word; word = strtok(NULL, ",")) {
		if (atoi(word) <= 0 || r->n_numbers == FAULTS_MAX) {
			bad("no number of a fault", word);
		}
		r->numbers[r->n_numbers++] = atoi(word);
	}
}

static void add_seeds(const char *text)
{
	unsigned long long low, high;

	if (sscanf(text, "%llu-%llu", &low, &high) != 2 || low > high) {
		bad("no range of seeds", text);
	}
	for (; low <= high; low++) {
		add_seed(low);
	}
}

enum { SEED = 1, SEEDS, RANDOM, STORY, STORIES, ONLY, SECONDS, CALM, LATE, FOR, ALL_FAULTS, PLANT,
       TRACE, REPEAT, JOBS,
       NO_SHRINK, KNOWN, LIST, HELP };

static const struct option options[] = {
	{ "seed", required_argument, NULL, SEED }, { "seeds", required_argument, NULL, SEEDS },
	{ "random", required_argument, NULL, RANDOM }, { "story", required_argument, NULL, STORY },
	{ "stories", no_argument, NULL, STORIES }, { "only", required_argument, NULL, ONLY },
	{ "seconds", required_argument, NULL, SECONDS }, { "calm", required_argument, NULL, CALM },
	{ "late", required_argument, NULL, LATE }, { "for", required_argument, NULL, FOR },
	{ "all-faults", no_argument, NULL, ALL_FAULTS },
	{ "plant", required_argument, NULL, PLANT },
	{ "trace", no_argument, NULL, TRACE }, { "repeat", no_argument, NULL, REPEAT },
	{ "jobs", required_argument, NULL, JOBS }, { "no-shrink", no_argument, NULL, NO_SHRINK },
	{ "known", required_argument, NULL, KNOWN }, { "list", no_argument, NULL, LIST },
	{ "help", no_argument, NULL, HELP }, { 0 },
};

/* What the runs have in common; which runs, in a second look. */
static void read_option(int option)
{
	switch (option) {
	case SEED:
		o.run.seed = strtoull(optarg, NULL, 0);
		break;
	case ONLY:
		read_numbers(optarg);
		break;
	case SECONDS:
		o.run.load_ns = atoll(optarg) * SIM_S;
		break;
	case CALM:
		o.run.calm = atoi(optarg);
		break;
	case LATE:
		o.run.lease_s = atoi(optarg);
		break;
	case FOR:
		o.for_s = atoll(optarg);
		break;
	case ALL_FAULTS:
		o.run.leaves_out = NULL;
		break;
	case PLANT:
		o.run.plant = optarg;
		if (!plant(optarg)) {
			bad("nothing that can be planted", optarg);
		}
		break;
	case TRACE:
		o.run.trace = true;
		break;
	case REPEAT:
		o.repeats = true;
		break;
	case JOBS:
		o.jobs = atoi(optarg) > 0 && atoi(optarg) <= JOBS_MAX ? atoi(optarg) : 1;
		break;
	case NO_SHRINK:
		o.shrinks = false;
		break;
	case KNOWN:
		o.known = optarg;
		break;
	case LIST:
		list();
		exit(0);
	case HELP:
		printf("%s", usage);
		exit(0);
	case '?':
		bad("not understood", "");
	}
}

static void read_runs(int option)
{
	switch (option) {
	case SEEDS:
		add_seeds(optarg);
		break;
	case RANDOM:
		add_random(atoi(optarg));
		break;
	case STORY:
		add_stories(optarg);
		break;
	case STORIES:
		add_stories(NULL);
		break;
	}
}

static void read_arguments(int argc, char **argv, void (*take)(int option))
{
	int option;

	optind = 0;
	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		take(option);
	}
}

int main(int argc, char **argv)
{
	o.run.seed = 1;
	o.run.leaves_out = is_known_fault;
	read_arguments(argc, argv, read_option);
	o.known = realpath(o.known, NULL);	/* runs are in folders of their own */
	read_arguments(argc, argv, read_runs);
	if (o.repeats) {
		say_repeated(o.run.seed);
	} else if (o.for_s > 0) {
		run_for(o.for_s);
	} else {
		if (o.n == 0) {
			add_run(&o.run);
		}
		if (o.run.trace) {
			trace(&o.children[0].run);
		} else {
			run_all();
		}
	}
	printf("1..%d\n", o.tests);
	free(o.children);
	free(o.known);
	return o.failed > 0;
}
