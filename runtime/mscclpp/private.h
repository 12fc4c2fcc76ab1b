/* SPDX-License-Identifier: Apache-2.0 */
/* What the files that prove execution plans share. */
#ifndef WEFT_RUNTIME_MSCCLPP_PRIVATE_H
#define WEFT_RUNTIME_MSCCLPP_PRIVATE_H

#include "runtime/mscclpp/mscclpp.h"

#define MSCCLPP_MAX_ALL_TBS 32768 /* of all ranks that weft proves */

struct mscclpp_at {
	char text[64];
};

/* "rank 0 threadblock 1 op 2" */
struct mscclpp_at mscclpp_at(int rank, int tb, int op);

/* Runs a plan of which every number is known to be good: deadlock, order of
 * accesses, results, and that nothing is left behind. */
int mscclpp_run(const struct mscclpp *p, struct err *err);

#endif
