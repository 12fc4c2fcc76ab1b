#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# As tests/integration/slurm.sh, with 20 jobs more and weftd killed three times more
# meanwhile. WEFT_SEED, WEFT_JOBS, WEFT_KILLS.
export WEFT_JOBS=${WEFT_JOBS:-20} WEFT_KILLS=${WEFT_KILLS:-3}
exec "$(dirname "$0")/../integration/slurm.sh"
