/* SPDX-License-Identifier: Apache-2.0 */
/* The program of a test with a weftd in it is what that plans in, too. */
#ifndef WEFT_TESTS_UNIT_DAEMON_PLAN_PROGRAM_H
#define WEFT_TESTS_UNIT_DAEMON_PLAN_PROGRAM_H

#include <string.h>
#include <unistd.h>

#include "controller/daemon/core/plan_process.h"

/* Before main, and in its place where weftd has started it. */
static __attribute__((constructor)) void be_plan_process(int argc, char **argv)
{
	if (argc > 1 && strcmp(argv[1], PLAN_PROCESS_MODE) == 0) {
		_exit(plan_process_main(argc, argv));
	}
}

#endif
