/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Preloaded into the ranks of MPI in tests, or linked to them: one that waits for another sleeps
 * (WAIT_US, default 100) instead of asking again at once. There are more ranks than processors, and
 * other tests beside them: those that asked took as much of these as those that worked.
 */
#include <stdlib.h>
#include <time.h>

__attribute__((visibility("default"))) int sched_yield(void);
int sched_yield(void)
{
	const char *us = getenv("WAIT_US");

	return nanosleep(&(struct timespec){ .tv_nsec = (us ? atol(us) : 100) * 1000 }, NULL);
}
