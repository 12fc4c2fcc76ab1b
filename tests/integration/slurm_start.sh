#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What prolog.sh of the Slurm example tells a job whose hosts have no light yet: when they have
# it, as far as that is known. Slurm's commands are stand-ins; weftd and weft are real.
source "$(dirname "$0")/../lib.sh"
mkdir "$T/bin" "$T/slurm"
emulator ocs0 polatis-scpi 8x8 || exit 1
cat >"$T/fabric.yaml" <<END
weft: 1
fabric: shared
hosts:
  - { name: "h[0-3]", ports: "p[0-1]", rate: 100Gbps, reactivation: 1ms }
switches:
  - { name: ocs0, size: 8x8, driver: polatis-scpi, address: "${ADDR[ocs0]}", options: { gap_ms: 1, settle_ms: 20 } }
fibres:
  - { from: "h[0-3].p[0-1]", to: "ocs0.[1-8]" }
END
daemon && weft apply -f "$T/fabric.yaml" >"$T/out" 2>&1 || exit 1

# Slurm says the limit and when the job was submitted; what it is told goes to a file.
printf '#!/bin/sh\necho "1:00:00 2026-01-01T00:00:00"\n' >"$T/bin/squeue"
printf '#!/bin/sh\nprintf "%%s\\n" "$*" >>%s/told\n' "$T" >"$T/bin/scontrol"
chmod +x "$T/bin/squeue" "$T/bin/scontrol"
# prolog ID HOSTS: the exit of the script for a job of these hosts.
prolog() {
	rm -f "$T/told"
	env PATH="$T/bin:$PATH" WEFT_SOCKET="$SOCK" WEFT_SCHEDULES="$T/slurm" WEFT_TIMEOUT=2 \
		SLURM_JOB_ID="$1" SLURM_JOB_NODELIST="$2" SLURM_JOB_COMMENT=weft=allgather:1MB \
		"$TOP/docs/examples/slurm/prolog.sh" >"$T/out" 2>&1
}
weft job request lease --nodes 'h[0-1]' -c allgather --size 1MB --duration 1h >"$T/out" 2>&1
ends=$(weft job list lease --format json | jq -r '.jobs[0].started_at | sub("[.].*"; "Z") | fromdate + 3600 | todate')
prolog 7 'h[0-2]'
[[ $? == 1 ]]
tap "a job whose hosts have another's light is not started"
told=$(sed -n 's/^update JobId=7 AdminComment=weft: .*in use; by \(20[-0-9]*T[0-9:.]*Z\)$/\1/p' "$T/told")
expected=$(weft job list slurm-7-0 --format json | jq -r '.jobs[0].estimated_start_at')
[[ -n $told && $told == "$expected" && ! $told < $ends ]] || { sed 's/^/# /' "$T/told"; echo "# $expected, $ends"; false; }
tap "its AdminComment says by when they have light: after the other's lease"
grep -q "^notify 7 weft: .*; by $told\$" "$T/told"
tap "and so it tells srun"
tap "it is not held: Slurm starts it again"

weft job release lease >"$T/out" 2>&1
weft job release slurm-7-0 >"$T/out" 2>&1
weft job request forever --nodes 'h[0-1]' -c allgather --size 1MB >"$T/out" 2>&1
prolog 8 'h[0-2]'
grep -q '^update JobId=8 AdminComment=weft: ' "$T/told" && ! grep -q '; by' "$T/told"
tap "where that is not known nothing is said of it"
prolog 9 'h[2-3]' && [[ ! -e $T/told ]] && weft schedule verify "$T/slurm/slurm-9-0.json" >"$T/out"
tap "a job whose hosts are free has light and a schedule"
finish
