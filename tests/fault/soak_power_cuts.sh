#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A thousand cuts of what power_cuts.sh tries a few times each.
CUTS=1000 SEED=${SEED:-$$} exec "$(dirname "$0")/power_cuts.sh"
