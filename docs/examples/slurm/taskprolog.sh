#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# TaskProlog: tells each task where the schedule of its job is.
file=${WEFT_SCHEDULES:-/var/spool/weft}/${WEFT_PREFIX:-slurm}-$SLURM_JOB_ID-${SLURM_RESTART_COUNT:-0}.json
if [ -r "$file" ]; then
	echo "export WEFT_SCHEDULE=$file"
fi
