/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A schedule as Chakra traces, one for each rank, which ASTRA-sim runs in place of a collective of
 * its own: all that a rank sends another in a step is one send and one receive, whose tag is the
 * step. A send waits for the receives of earlier steps that brought any of it; sums take no time.
 */
#ifndef WEFT_RUNTIME_LOWER_CHAKRA_H
#define WEFT_RUNTIME_LOWER_CHAKRA_H

#include "collective/schedule/schedule.h"
#include "lib/base/buf.h"

/* Writes out[rank], one for each of coll_ranks(s), for a vector of so many bytes; a message of a
 * part of a byte has one more. WEFT_EUNSUPPORTED: light that changes between steps, or nodes that
 * hold data and are no ranks; errors of coll_unfold. O(transfers log transfers). */
int lower_chakra(const struct coll_sched *s, int64_t bytes, struct buf *out, struct err *err);

#endif
