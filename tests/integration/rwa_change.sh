#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What "weft rwa change" says can be done by someone who has only its output:
# random changes are carried out by a simulator of the network, which sees two
# lightpaths on one slot, a broken rule, and darkness without need.
# CHANGES, SEED: more of them, or others.
source "$(dirname "$0")/../lib.sh"
mkdir "$T/random"
expect 0 "random changes are carried out" python3 "$(dirname "$0")/rwa_change.py" \
	random "$BIN/weft" "$T/random" "${CHANGES:-12}" "${SEED:-1}"
sed 's/^/# /' "$T/out"
finish
