/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stories in the words of an operator: what is typed (the real command line, against the weftd of
 * a cluster), what is done to the devices meanwhile, and what has to come of it. Each case
 * has its words; those of one that does not hold are the rule that the story broke.
 *
 * One story a run. All of it is of the process that tells. Texts stay until the run ends.
 */
#ifndef WEFT_TESTS_SIM_TELL_H
#define WEFT_TESTS_SIM_TELL_H

#include <stdbool.h>
#include <stdint.h>

#include "tests/sim/cluster/cluster.h"

/* Starts the cluster and runs the story in it; to be called by a story's run(). */
void tell(const struct scenario *s, void (*story)(void));

/* Fails with these words unless it is so; returns it. */
bool check(bool ok, const char *words);
/* What is wrong at the end of a story, of several names: words with a number, say. */
bool check_of(const char *name, bool ok, const char *words);

/* Until it is so, for that many seconds, and a check of it. */
#define await(seconds, words, ...)                                              \
	do {                                                                    \
		const int64_t end_ = sim_now() + (int64_t)(seconds) * SIM_S;    \
		bool is_ = __VA_ARGS__;                                         \
		while (!is_ && sim_now() < end_) {                              \
			sim_sleep(50 * SIM_MS);                                 \
			is_ = __VA_ARGS__;                                      \
		}                                                               \
		check(is_, words);                                              \
	} while (0)

/* ---- the command line ---- */

/* Which weftd is asked from now on; 0 at first. */
void ask_weftd(int weftd);

/* Runs "weft COMMAND..." to its end; its exit status. Words are parted by blanks, '...' is one. */
int weft(const char *command, ...) __attribute__((format(printf, 1, 2)));
/* The same, and a check of the status. */
bool expect(int status, const char *words, const char *command, ...)
	__attribute__((format(printf, 3, 4)));

/* What the last of these printed. */
const char *said(void);
const char *said_wrong(void);	/* on standard error */
/* A check of it: an extended regular expression, line by line. */
bool has(const char *words, const char *pattern);
bool has_error(const char *words, const char *pattern);
/* No check: whether a text has a line that it matches. */
bool matches(const char *text, const char *pattern);

/* A value of what was printed as JSON: "jobs.-1.state", "devices.ocs0.missing.0" (where an array
 * is, its element of that name), "jobs.*.name" (all, joined by commas), "jobs.#" (how many).
 * What is not a string is JSON again; what is not there is "". */
const char *value(const char *path);
bool value_is(const char *words, const char *path, const char *wanted);
/* The same of "weft COMMAND --format json", asked now. */
const char *ask(const char *path, const char *command, ...)
	__attribute__((format(printf, 2, 3)));
bool same(const char *a, const char *b);

/* ---- commands that go on meanwhile ---- */

struct command;
struct command *begin(const char *command, ...) __attribute__((format(printf, 1, 2)));
/* As far as it has printed. */
const char *output_of(const struct command *c);
const char *errors_of(const struct command *c);
/* Waits for its end; then it is the last that was run. */
int finish(struct command *c);

/* ---- files and devices ---- */

/* A weftd that does not poll, a switch "ocs0" of 8x8 and a ring "ring1" of eight nodes. */
void small_scenario(struct scenario *s);
/* A fabric of these: four hosts h0 to h3 with two ports each and job "reduce" of that topology
 * (NULL: none); job "gather" on the ring, which depth changes. */
const char *small_fabric(const char *topology, int depth);
void write_small_fabric(const char *path, const char *topology, int depth);

void write_file(const char *path, const char *format, ...) __attribute__((format(printf, 2, 3)));
const char *read_text(const char *path);
/* A copy with each `from` made `to`. */
const char *with(const char *text, const char *from, const char *to);

/* A line to the control socket; what it answered. A device that does not answer is a failure. */
const char *control(const char *device, const char *line, ...)
	__attribute__((format(printf, 2, 3)));
/* Its circuits "in,out" from 0, sorted, a line each; the first of them. */
const char *map_of(const char *device);
const char *first_circuit(const char *device);
/* Lines of a that are not in b, both sorted. */
const char *without(const char *a, const char *b);
int lines_of(const char *text);
/* How many changing commands it has received. */
int sets_of(const char *device);
/* Nothing of it arrives and nothing reaches it, for so long from now on. */
void silence(const char *device, int64_t ns);
/* As SIGSTOP and SIGCONT: it is silent, and keeps what it is sent. */
void stop_device(const char *device);
void continue_device(const char *device);

/* ---- weftd ---- */

/* What it has printed on standard error, of all of them. */
const char *weftd_log(void);
/* Ends (SIGTERM, or SIGKILL as its manager starts it again at once) and starts; waits until it
 * answers. */
void restart_weftd(void);
void crash_weftd(void);

#endif
