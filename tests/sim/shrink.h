/* SPDX-License-Identifier: Apache-2.0 */
/* What makes a run that fails short: faults are left out, and clients ask for less long, as long
 * as it fails in the same way. */
#ifndef WEFT_TESTS_SIM_SHRINK_H
#define WEFT_TESTS_SIM_SHRINK_H

#include "tests/sim/run.h"

/* *r, of no story, failed with this, and so it went; it becomes a shorter one. How many runs it
 * took. */
int shrink_run(struct run *r, const char *failure, const struct run_result *met);

#endif
