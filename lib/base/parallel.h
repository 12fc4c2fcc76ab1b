/* SPDX-License-Identifier: Apache-2.0 */
/* Work in independent parts on several processors. */
#ifndef WEFT_LIB_BASE_PARALLEL_H
#define WEFT_LIB_BASE_PARALLEL_H

#define PARALLEL_MAX 16

/* Processors to use at a time: those that are online, 1..PARALLEL_MAX. How
 * work is cut may depend on it, its result must not. */
int parallel_width(void);

/*
 * Calls work(arg, i) once for every i in 0..n-1 (n <= PARALLEL_MAX), each on
 * a thread of its own and one on the caller's, and returns when all are done.
 * Parts that get no thread run one after the other: never an error.
 */
void parallel_run(int n, void (*work)(void *arg, int i), void *arg);

/* Part i of n parts of 0..items-1 that are as equal as can be:
 * *from .. *to - 1. */
void parallel_cut(int items, int n, int i, int *from, int *to);

#endif
