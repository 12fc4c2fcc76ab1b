#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# PrologSlurmctld: gives a Slurm job the light that its comment asks for.
#
#   sbatch --comment=weft=allreduce:1GB ...
#
# Each start of a job in Slurm is one job in weft, slurm-JOB-START, whose time is
# that of Slurm's limit and a margin, so that nothing stays for ever. Slurm has
# chosen the hosts: weft is given their names, and understands Slurm's lists.
#
# What is refused holds the Slurm job; what may work later (weftd is away, hosts
# are in use, a device does not answer) requeues it, which Slurm tries again after
# two minutes. In both cases the reason is its AdminComment (scontrol show job),
# and srun and salloc print it. No node is drained.
#
#   WEFT_TIMEOUT    seconds to wait for light (60)
#   WEFT_MARGIN     seconds of light beyond Slurm's limit of time (900): more
#                   than KillWait, OverTimeLimit and what limits are extended by
#   WEFT_SCHEDULES  folder for schedules, which the job's hosts read too
#   WEFT_PREFIX     of names in weft, for several Slurms with one weft (slurm)
set -u
case ${SLURM_JOB_COMMENT:-} in
weft=*:*) ;;
*) exit 0 ;;			# it does not ask for light
esac
wish=${SLURM_JOB_COMMENT#weft=}
job=${WEFT_PREFIX:-slurm}-$SLURM_JOB_ID-${SLURM_JOB_RESTART_COUNT:-0}
end=$(($(date +%s) + ${WEFT_TIMEOUT:-60}))
# The number of an array's last task is also that of the whole array.
id=${SLURM_ARRAY_JOB_ID:+${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID}
id=${id:-$SLURM_JOB_ID}

# Runs a command of weft until it succeeds, fails, or has no time left; again
# while weftd is away, with what it has said in $said.
try() {
	while :; do
		left=$((end - $(date +%s)))
		said=$(timeout "$((left > 1 ? left : 1))" "$@" 2>&1 >/dev/null)
		code=$?
		if [ "$code" != 69 ] || [ "$left" -le 1 ]; then
			return "$code"
		fi
		sleep 1
	done
}

# Slurm's limit as [DAYS-]HOURS:MINUTES:SECONDS, or a word for none; and when the
# job was submitted, as Slurm may begin to count jobs from 1 again.
facts=$(squeue -h -j "$id" -o '%l %V') || exit 1
lease=$(echo "${facts% *}" | awk -v margin="${WEFT_MARGIN:-900}" '/^[0-9]/ {
	n = split($0, t, /[-:]/)
	print t[n] + 60 * t[n - 1] + 3600 * t[n - 2] + 86400 * t[n - 3] + margin "s"
}')

# Light of jobs that are gone may be on these hosts: not every epilog gets through.
"${0%/*}/reaper.sh"

# The id makes it one job however often this runs for one start.
try weft job request "$job" --nodes "$SLURM_JOB_NODELIST" \
	--collective "${wish%%:*}" --size "${wish#*:}" \
	${lease:+--duration "$lease"} --request-id "$job-${facts##* }" &&
	try weft schedule export --job "$job" --to "${WEFT_FORMAT:-json}" \
		-o "${WEFT_SCHEDULES:-/var/spool/weft}/$job.json" && exit 0

why=$(echo "$said" | grep -v 'no longer waiting' | sed -n 's/^weft: //p' | tail -n 1)
start=$(timeout 5 weft job list "$job" --format yaml 2>/dev/null |
	awk '$1 == "estimated_start_at:" && $2 ~ /^[0-9"]/ { gsub("\"", "", $2); print $2 }')
why=$why${start:+; by $start}
scontrol update "JobId=$id" "AdminComment=weft: $why"
scontrol notify "$id" "weft: $why"
case $code in
64 | 65 | 77)			# again would be the same again
	scontrol requeuehold "$id" && exit 0 ;;	# srun's cannot be, and ends
esac
exit 1
