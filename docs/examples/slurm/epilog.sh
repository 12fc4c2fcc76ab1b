#!/bin/sh
# EpilogSlurmctld: gives back what prolog.sh has asked for. Waits until the
# light is gone, or until its turn has come: weftd goes on by itself.
set -u
case ${SLURM_JOB_COMMENT:-} in
weft=*:*) ;;
*) exit 0 ;;
esac
job=slurm-$SLURM_JOB_ID
rm -f "${WEFT_SCHEDULES:-/var/spool/weft}/$job.json"
timeout "${WEFT_TIMEOUT:-60}" weft job release "$job" >/dev/null
case $? in
0 | 69 | 124) exit 0 ;;		# weftd is away: its jobs outlive that
*) weft job list --format json "$job" | grep -q '"jobs": *\[\]' ;;
esac
