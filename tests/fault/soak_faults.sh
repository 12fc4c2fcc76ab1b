#!/bin/bash
# The loop of random.sh for a quarter of an hour, with a seed that it prints.
export WEFT_SEED=${WEFT_SEED:-$((RANDOM + 1))}
export WEFT_SECONDS=${WEFT_SECONDS:-900}
exec "$(dirname "$0")/random.sh"
