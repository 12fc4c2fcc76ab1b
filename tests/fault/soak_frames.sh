#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The same for ten minutes.
cd "$(dirname "$0")" || exit 1
export WEFT_SECONDS=${WEFT_SECONDS:-600}
exec ./frames.sh
