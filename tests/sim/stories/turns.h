/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What stories of several weftd have in common, beside tell.h: who leads, one that is frozen, a
 * change that has come so far, and the rules, by which these stories are judged too.
 */
#ifndef WEFT_TESTS_SIM_TURNS_H
#define WEFT_TESTS_SIM_TURNS_H

#include <stdbool.h>
#include <stdint.h>

#include "tests/sim/stories/tell.h"

/* As tell(), and the rules hold all the time. */
void tell_by_rules(const struct scenario *s, void (*story)(void));
/* At the end of a story: a quiet minute passes, and then all is well. */
void all_settled(void);

/* What a weftd says that it is, "standby"; "": it does not answer. It is asked from now on. */
const char *state_of(int weftd);
bool leads(int weftd);		/* and knows its devices */
bool stands_by(int weftd);
/* Of a domain's: -1: none does. */
int leader(int domain);
/* The same, waited for, and a check of it. */
void await_leader(int seconds, const char *words, int weftd);
void await_standby(int seconds, const char *words, int weftd);
/* It has ended, with this status, so often as `starts` tells now or more. */
bool has_ended(int weftd, int starts, int status);

/* A weftd beside those of the scenario, on a machine; args end with NULL. */
struct sim_process *start_weftd(const char *machine, const char *const args[]);
/* SIGKILL, and its manager does not start it again (cluster_start does). */
void kill_for_good(int weftd);
/* Like SIGSTOP: at a moment when it has no lock of a shared store. For less than an hour. */
void freeze(int weftd);
void thaw(int weftd);

/* Begins a command at a device that is so slow that its `sets`-th changing command has been done,
 * and was not answered, when this returns. */
struct command *begin_until(const char *device, int sets, const char *command, ...)
	__attribute__((format(printf, 3, 4)));
/* The fabric of this file is there as it is meant, as devices are read. */
bool holds(int variant);

#endif
