#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# EpilogSlurmctld: gives back what prolog.sh has asked for, also after a prolog
# that failed. While weftd is away it waits WEFT_TIMEOUT seconds (60); then
# reaper.sh does it. Slurm notes in its log that this failed, and nothing else.
case ${SLURM_JOB_COMMENT:-} in
weft=*:*) exec "${0%/*}/reaper.sh" "$SLURM_JOB_ID" ;;
esac
