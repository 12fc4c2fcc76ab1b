#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Gives back the light of Slurm jobs that are gone, of which an epilog did not
# get through to weftd: by a timer, once a minute, and before prolog.sh asks for
# more. With the number of a job: all of its light, without asking Slurm.
#
# First what weft has, then what Slurm knows, so that nothing that starts in
# between is taken for gone; and when Slurm does not answer, nothing is gone.
#
#   WEFT_TIMEOUT, WEFT_SCHEDULES, WEFT_PREFIX  as for prolog.sh
set -u
prefix=${WEFT_PREFIX:-slurm}
end=$(($(date +%s) + ${WEFT_TIMEOUT:-60}))

# The jobs in weft that began as Slurm's and are not about to end, one a line.
held() {
	timeout 20 weft job list --format yaml >"$list" &&
		awk -v mine="^$prefix-[0-9]+-[0-9]+\$" '$1 == "name:" { name = $2 }
			$1 == "state:" && $2 != "ending" && name ~ mine { print name }' "$list"
}

# Those of them that are over in Slurm, were requeued, or are not known to it.
gone() { # JOB
	if [ -n "$1" ]; then
		awk "/^$prefix-$1-/" "$held"
		return
	fi
	squeue -a -t all -O 'JobID:20,RestartCnt:20,State:30' >"$list" &&
		awk 'NR == FNR { restarts[$1] = $2; state[$1] = $3; next } {
			n = split($1, part, "-"); id = part[n - 1]
			if (!(id in state) || restarts[id] > part[n] || state[id] ~ \
/^(PENDING|REQUEUE|SPECIAL_EXIT|COMPLETED|CANCELLED|FAILED|TIMEOUT|NODE_FAIL|PREEMPTED|BOOT_FAIL|DEADLINE|OUT_OF_MEMORY|REVOKED)/)
				print $1
		}' "$list" "$held"
}

list=$(mktemp) && held=$(mktemp) && gone=$(mktemp) || exit 1
trap 'rm -f "$list" "$held" "$gone"' EXIT
while :; do
	if held >"$held" && gone "${1:-}" >"$gone"; then
		[ -s "$gone" ] || break
		while read -r name; do
			rm -f "${WEFT_SCHEDULES:-/var/spool/weft}/$name.json"
			# Once it is asked for, weftd goes on by itself.
			timeout 5 weft job release "$name" >/dev/null </dev/null
		done <"$gone"
	fi
	[ "$(date +%s)" -lt "$end" ] || exit 1
	sleep 0.2
done
