#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Circuits of the fabric file, from port to port: applied, read back, shown, lost, drained, and
# beside a collective on ports of the same hosts.
source "$(dirname "$0")/../lib.sh"
emulator ocs0 polatis-scpi 16x16 || exit 1
# The fabric with these circuits.
bed_with() { # CIRCUIT...
	bed "$T/fabric.yaml" jobs: \
		'  - { name: pair, nodes: [dut, tg1], ports: "p[6-7]", collective: allreduce, size: 1MB }' \
		circuits: "$(printf '  - { %s }\n' "$@")"
}
circuit() { # IN OUT: it is there; the emulator counts from 0
	map ocs0 | grep -qx "$(($1 - 1)),$(($2 - 1))"
}
bed_with 'group: bed, from: "dut.p[0-1]", to: "tg1.p[0-1]"' \
	'name: tap, from: dut.p2, to: tg1.p3, direction: one-way'
daemon || exit 1
expect 0 "applied" weft apply -f "$T/fabric.yaml"
map ocs0 >"$T/first"
circuit 1 9 && circuit 9 1 && circuit 2 10 && circuit 10 2 && circuit 3 12 && ! circuit 12 3
tap "port to port, and of one direction only that"
[[ $(wc -l <"$T/first") == 9 ]]
tap "beside a collective on two ports of each host"
expect 0 "status" weft status --format json
[[ $(jq -c '[.jobs[] | [.name, .collective, .circuits, .health]]' "$T/out") == \
	'[["pair","allreduce",4,"up"],["bed","circuits",4,"up"],["tap","circuits",1,"up"]]' ]]
tap "shows groups as jobs"
expect 65 "there is no schedule" weft schedule export --job bed --to json -o "$T/s"
has err "and that is why" 'job bed has circuits and no collective'
expect 0 "that of the collective" weft schedule verify --job pair

bed_with 'group: bed, from: "dut.p[0-1]", to: "tg1.p[0-1]"' 'name: tap, from: dut.p2, to: tg1.p4'
expect 0 "one circuit becomes another" weft apply -f "$T/fabric.yaml"
circuit 3 13 && circuit 13 3 && ! circuit 3 12
tap "which is made"
[[ $(comm -12 "$T/first" <(map ocs0) | wc -l) == 8 ]]
tap "and no other is moved"

# A port that is out of service, and one that fails.
expect 0 "a port is drained" weft drain dut.p5
bed_with 'name: late, from: dut.p5, to: tg1.p5'
expect 65 "no new circuit on it" weft plan -f "$T/fabric.yaml"
has err "and which" 'dut.p5'
weft undrain dut.p5 >"$T/out"
control ocs0 "fault port-failed=o1" >"$T/out"
weft verify >"$T/out" 2>"$T/err"
degraded() {
	weft status --format json >"$T/out" && [[ $(jq -r '.jobs[1].health' "$T/out") == degraded ]]
}
wait_for 10 degraded
tap "a port of a group fails, and status says so"
[[ $(jq -r '.jobs[1].reason' "$T/out") == *"of 4 circuits failed"*"dark until they are repaired"* ]]
tap "with what is dark"
control ocs0 clear >"$T/out"
finish
