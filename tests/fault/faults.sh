#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The soak for two rounds on real sockets, with the proof that two of its counters
# count. A check repeats itself: the seed is fixed. Faults of devices at random are
# what the seeds of weft-sim draw; the soak explores here too.
cd "$(dirname "$0")" || exit 1
WEFT_SEED=${WEFT_SEED:-11} WEFT_SECONDS=${WEFT_SECONDS:-1} WEFT_FAULTS=${WEFT_FAULTS:-10} \
	WEFT_FORGE=${WEFT_FORGE:-lost,touched} exec ./soak_faults.sh
