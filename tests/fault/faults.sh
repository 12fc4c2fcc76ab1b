#!/bin/bash
# The soak for a few rounds, with the proof that each of its counters counts.
# A check repeats itself: the seed is fixed. The soak explores.
cd "$(dirname "$0")" || exit 1
WEFT_SEED=${WEFT_SEED:-11} WEFT_SECONDS=${WEFT_SECONDS:-6} WEFT_FAULTS=${WEFT_FAULTS:-20} \
	exec ./soak_faults.sh
