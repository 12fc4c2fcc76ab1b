#!/bin/sh
# PrologSlurmctld: gives a Slurm job the light that its comment asks for.
#
#   sbatch --comment=weft=allreduce:1GB ...
#
# slurm.conf: PrologSlurmctld=/etc/slurm/weft-prolog.sh, and the epilog. The
# user that slurmctld runs as needs the role orchestrator (weftd(8)). When this
# fails, Slurm requeues the job. The schedule goes to WEFT_SCHEDULES, which
# the job's hosts read too.
set -u
case ${SLURM_JOB_COMMENT:-} in
weft=*:*) ;;
*) exit 0 ;;			# it does not ask for light
esac
wish=${SLURM_JOB_COMMENT#weft=}
job=slurm-$SLURM_JOB_ID

# The id makes it one job however often Slurm runs this for one start of its
# own; a job that Slurm requeues asks again. Slurm has chosen the
# hosts, so that weft is given their names; it understands Slurm's lists.
weft job request "$job" --nodes "$SLURM_JOB_NODELIST" \
	--collective "${wish%%:*}" --size "${wish#*:}" \
	--request-id "$job.${SLURM_RESTART_CNT:-0}" >/dev/null || exit 1
weft schedule export --job "$job" --to "${WEFT_FORMAT:-json}" \
	-o "${WEFT_SCHEDULES:-/var/spool/weft}/$job.json"
