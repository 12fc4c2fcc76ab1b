/* SPDX-License-Identifier: Apache-2.0 */
/* What kinds of faults share: how they are drawn and told, and where they are listed. */
#ifndef WEFT_TESTS_SIM_FAULT_DRAWS_H
#define WEFT_TESTS_SIM_FAULT_DRAWS_H

#include "tests/sim/faults/faults.h"

#define FAULT_SAY(f, ...) snprintf((f)->words, sizeof((f)->words), __VA_ARGS__)

/* low <= x < high, by the fault's own chance. */
int64_t fault_between(struct planned_fault *f, int64_t low, int64_t high);
/* The same, as likely short as long: of a range of several powers. */
int64_t fault_of_any_size(struct planned_fault *f, int64_t low, int64_t high);
/* One of them; from: its machine. */
void fault_draw_weftd(const struct scenario *s, struct planned_fault *f);

/* Those of faults.h: of etcd, and all else. Ended by a name of NULL. */
extern const struct fault_kind fault_kinds_etcd[], fault_kinds_other[];

#endif
