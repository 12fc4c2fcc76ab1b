/* SPDX-License-Identifier: Apache-2.0 */
/* Faults of weft itself that are planted to see whether the rules find them. */
#ifndef WEFT_TESTS_SIM_PLANTED_H
#define WEFT_TESTS_SIM_PLANTED_H

#include <stdbool.h>
#include <stdio.h>

/* Switches one on, before anything is started. False: there is no such name. */
bool plant(const char *name);
/* "plant NAME: WHAT IT IS", a line each. */
void planted_list(FILE *to);

#endif
