#!/bin/bash
# The same for ten minutes.
cd "$(dirname "$0")" || exit 1
export WEFT_SECONDS=${WEFT_SECONDS:-600}
exec ./frames.sh
