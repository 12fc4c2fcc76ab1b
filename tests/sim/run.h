/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One run in a real process of its own: a seed, or a story. It has its own folder, which is
 * removed; what ends badly ends only itself.
 */
#ifndef WEFT_TESTS_SIM_RUN_H
#define WEFT_TESTS_SIM_RUN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "tests/sim/faults/faults.h"
#include "tests/sim/story.h"

#define RUN_RULES 8
#define RUNS_AT_A_TIME 64

struct run {
	const struct story *story;	/* NULL: what the seed draws */
	uint64_t seed;
	bool only;			/* only the faults of these numbers */
	int n_numbers, numbers[FAULTS_MAX];
	int64_t load_ns;		/* clients ask at most so long; 0: as drawn */
	int calm;			/* all is so many times as far apart; 0: 1 */
	int lease_s;			/* by an etcd, and only answers are late; 0: as drawn */
	/* Kinds of faults, and dialects, that are left out; NULL: none. */
	bool (*leaves_out)(const char *kind);
	const char *plant;		/* a fault of weft itself; NULL: none */
	bool trace;			/* on standard output */
};

/* What came of it: the child writes, in memory that both have. */
struct run_result {
	bool judged;			/* it came to its end */
	int n_broken;
	char broken[RUN_RULES][48];	/* rules */
	uint64_t digest;
	int64_t virtual_ns, load_ns;	/* how long it was; clients asked */
	struct fault_list faults;	/* that it met; kinds and words only */
};

/* One that runs, or has run. */
struct run_child {
	struct run run;
	struct run_result *result;
	pid_t pid;
	int status;		/* of waitpid */
	bool ended;
	char folder[64];
	int output;		/* a file with what it printed */
};

void run_start(struct run_child *c, const struct run *r);
/* It has ended with that status: its folder goes; run_free frees the rest. */
void run_ended(struct run_child *c, int status);
void run_free(struct run_child *c);
/* run_start, and waits for the end. */
void run_whole(struct run_child *c, const struct run *r);
/* What is wrong, in a few words; NULL: nothing. Rules for which is_known says so may be broken. */
const char *run_failure(const struct run_child *c, bool (*is_known)(const char *rule));
/* What it printed, to standard output; it is all comment. */
void run_print(const struct run_child *c);

#endif
