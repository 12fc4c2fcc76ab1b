/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Load: clients that ask at random, as many as the scenario says, and another user's hand at
 * the devices. What they do follows from SIM_LOAD alone; what comes of it is in the history.
 */
#ifndef WEFT_TESTS_SIM_LOAD_H
#define WEFT_TESTS_SIM_LOAD_H

#include <stdint.h>

#include "tests/sim/cluster/cluster.h"

/* How long all must be well again after the last fault. */
#define LOAD_SETTLE_NS (60 * SIM_S)

/* Starts them; the first applies the base fabric before others begin. They end by themselves
 * after cluster_scenario()->load_ns from now. */
void load_begin(void);
/* Of a process: waits for the end of load and faults (a moment, 0: none), then for
 * LOAD_SETTLE_NS, then reads the final state of all targets at those who lead. Then
 * history_check and the oracle may judge. */
void load_settle(int64_t last_fault);
/* Calls that were made, of all clients. */
int load_calls(void);

#endif
