/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules that every run is judged by. What breaks one fails the run (sim_fail), which goes on.
 *
 * Nothing of the product knows of them: functions that its objects call in each other are wrapped
 * when the program is linked (SIM_WRAPS in the Makefile). docs/simulation.md lists the rules and
 * says how to add one.
 */
#ifndef WEFT_TESTS_SIM_ORACLE_H
#define WEFT_TESTS_SIM_ORACLE_H

struct scenario;

/* After sim_begin, before anything is started. */
void oracle_begin(const struct scenario *sc);
/* Of a process, 60 s after the last fault and the last call of a client: what has to hold then. */
void oracle_settled(void);

/* The next so many states of jobs are refused by the store, as by a disk that fails. */
void oracle_refuse_jobs(int n);

#endif
