#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The examples for Slurm in a real Slurm, beside a real weftd that is killed:
# Slurm reads the topology; jobs get light and a schedule, and give it back; what
# is refused holds the job, tells the user why and drains no node; and in the end
# nothing has leaked. WEFT_JOBS further jobs at random, and WEFT_KILLS kills, at the
# second of which Slurm is restarted too (tests/fault/soak_slurm.sh).
source "$(dirname "$0")/../lib.sh"
source "$TOP/tests/slurm.sh"
NODES=6
mkdir "$T/slurm"
emulator ocs0 polatis-scpi 12x12 || exit 1
cat >"$T/fabric.yaml" <<END
weft: 1
fabric: shared
hosts:
  - { name: "h[0-5]", ports: "p[0-1]", rate: 100Gbps, reactivation: 1ms }
switches:
  - { name: ocs0, size: 12x12, driver: polatis-scpi, address: "${ADDR[ocs0]}", options: { gap_ms: 1, settle_ms: 20 } }
fibres:
  - { from: "h[0-5].p[0-1]", to: "ocs0.[1-12]" }
END
daemon && weft apply -f "$T/fabric.yaml" >"$T/out" 2>&1 || exit 1

# example NAME SECONDS: as a site's own settings call it.
example() {
	cat >"$T/slurm/$1" <<-END
	#!/bin/sh
	export PATH=$PATH SLURM_CONF=$T/slurm/slurm.conf WEFT_SOCKET=$SOCK
	export WEFT_SCHEDULES=$T/slurm WEFT_TIMEOUT=$2
	exec $TOP/docs/examples/slurm/$1.sh "\$@" 2>>$T/slurm/$1.err
	END
	chmod +x "$T/slurm/$1"
}
example prolog 60
example epilog 2
example reaper 5
example taskprolog 1
slurm_conf $NODES "PrologSlurmctld=$T/slurm/prolog" "EpilogSlurmctld=$T/slurm/epilog" \
	"TaskProlog=$T/slurm/taskprolog" TopologyPlugin=topology/tree
expect 0 "topology.conf of the fabric that weftd has" \
	weft export slurm --to conf -o "$T/slurm/topology.conf"
slurm_start $NODES
tap "Slurm starts with it" || exit 1
expect 0 "Slurm shows it" scontrol show topology
has out "... as it is" 'SwitchName=ocs0 Level=0 .*Nodes=h\[0-5\]'

# ---- what jobs see -----------------------------------------------------------

jobs() { weft job list --format json "${@:2}" | jq -e "$1"; }
state() { # JOB STATE: Slurm's
	[[ $(squeue -h -t all -j "$1" -o %T) == "$2" ]]
}
# light HOSTS [SECONDS]: submits a job that says whether its schedule is good, and
# ends after so many seconds or when $T/end-JOB is there.
light() {
	local rest="sleep ${2:-}"
	[[ -n ${2:-} ]] || rest="while [ ! -e $T/end-\$SLURM_JOB_ID ]; do sleep 0.05; done"
	sbatch --parsable -N "$1" -t 1 -o "$T/slurm-%A.out" "${@:3}" --comment="${WISH:-weft=allgather:1MB}" <<-END
	#!/bin/bash
	srun -N 1 -n 1 bash -c 'weft schedule verify --format json "\$WEFT_SCHEDULE"' | jq .valid
	$rest
	END
}
a=$(light 3)
wait_for 40 grep -q true "$T/slurm-$a.out"
tap "a job has a schedule that is proven"
hosts=$(squeue -h -j "$a" -o %N)
jobs ".jobs[0] | .state == \"running\" and .duration_ns == 960e9 and
	(.nodes | join(\",\")) == \"$(scontrol show hostnames "$hosts" | paste -sd,)\"" \
	"slurm-$a-0" >"$T/out"
tap "light on its hosts, as long as Slurm lets it run and a margin"

# ---- what is refused ---------------------------------------------------------

held=$(WISH=weft=allgather:1XB light 2 0)
wait_for 40 bash -c "squeue -h -j $held -o %r | grep -q held"
tap "a wish that cannot be holds the job"
scontrol show job "$held" >"$T/out"
has out "... and says why" "AdminComment=weft: --size: size '1XB' has an unknown unit"
srun -N 2 -t 1 --comment=weft=nothing:1MB true >"$T/out" 2>"$T/err" </dev/null
[[ $? != 0 ]]
tap "one of srun ends"
has err "... and says why" 'srun: weft: collective: unknown collective "nothing"'
wait_for 20 all_nodes 3 idle
tap "no node is drained"

# ---- while weftd is away -----------------------------------------------------

stop weftd KILL
touch "$T/end-$a"
b=$(light 3 '' -w "$hosts")
wait_for 40 state "$a" COMPLETED && grep -q 'no weftd listens at' "$T/slurm/epilog.err"
tap "a job ends while weftd is away"
daemon || exit 1
wait_for 40 grep -q true "$T/slurm-$b.out"
tap "one that begins then on its hosts gets light when weftd is back"
jobs "[.jobs[].name] == [\"slurm-$b-0\"]" >"$T/out"
tap "and what was left there is gone"
touch "$T/end-$b"
# Corrected by its user, whose second start it is.
scontrol update "JobId=$held" Comment=weft=allgather:1MB StartTime=now && scontrol release "$held"
wait_for 60 grep -q true "$T/slurm-$held.out"
tap "a job that was held runs when its wish is put right"
[[ $(weft job list --all --format json | jq -r '.jobs[-1].name') == "slurm-$held-1" ]]
tap "... as a job of its own"

# ---- many, and kills at random ------------------------------------------------

over() { [[ -z $(squeue -h -o %i) ]]; }
RANDOM=${WEFT_SEED:=$((RANDOM + 1))}
for ((i = 0; i < ${WEFT_JOBS:-0}; i++)); do
	light $((2 + RANDOM % 3)) "0.$((RANDOM % 10))" --array=1 >/dev/null
done
for ((i = 0; i < ${WEFT_KILLS:-0}; i++)); do
	sleep "$((RANDOM % 4)).$((RANDOM % 10))"
	stop weftd KILL
	sleep "$((RANDOM % 4)).$((RANDOM % 10))"
	daemon || exit 1
	((i == 1)) || continue
	# Slurm is away as well: it runs prologs again, and nothing is taken for gone.
	stop slurmctld
	jobs '.jobs | map(select(.state != "ending") | .name)' >"$T/held"
	expect 1 "the reaper without Slurm" "$T/slurm/reaper"
	jobs '.jobs | map(.name)' | jq -e --slurpfile held "$T/held" '$held[0] - . == []' >"$T/out"
	tap "takes nothing for gone"
	slurm_daemon slurmctld slurmctld -D
done

# ---- nothing is lost ----------------------------------------------------------

# What was requeued would wait two minutes.
end() {
	"$T/slurm/reaper"
	squeue -h -t PENDING -o %i | while read -r id; do
		scontrol update "JobId=$id" StartTime=now
	done
	over
}
wait_for 300 end
tap "all jobs end"
bad=$(squeue -h -t all -o '%i %T' | awk '$2 != "COMPLETED"' | grep -vc CANCELLED)
[[ $bad == 0 ]] || squeue -t all -o '%i %T %r' | sed 's/^/# /'
[[ $bad == 0 ]]
tap "as Slurm wants them to"
"$T/slurm/reaper" && jobs '.jobs == []' >"$T/out"
tap "no job is left in weft"
[[ $(control ocs0 map | grep -c ,) == 0 ]] && ! compgen -G "$T/slurm/slurm-*.json" >"$T/out"
tap "no light, and no schedule"
wait_for 20 all_nodes $NODES idle
tap "no host is lost"
echo "# $((${WEFT_JOBS:-0} + 4)) jobs, $((${WEFT_KILLS:-0} + 1)) kills of weftd, seed $WEFT_SEED"
slurm_stop
finish
