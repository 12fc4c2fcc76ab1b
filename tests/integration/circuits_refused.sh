#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Circuits that cannot be, in the file and on request: one error each, with the place and the fact,
# and nothing is made.
source "$(dirname "$0")/../lib.sh"

# The fabric with these lines behind it; ports 1 to 4 of the second switch are any to any.
fabric_with() { # LINE...
	cat >"$T/fabric.yaml" <<-END
	weft: 1
	fabric: bed
	hosts:
	  - { name: dut, ports: "p[0-7]", rate: 100Gbps, reactivation: 0ms, label: "Gerät 1" }
	  - { name: tg1, ports: "p[0-7]", rate: 100Gbps, reactivation: 0ms }
	  - { name: wide, ports: "q[0-1]", lanes: 2, rate: 100Gbps, reactivation: 0ms }
	  - { name: any, ports: "p[0-3]", rate: 100Gbps, reactivation: 0ms }
	switches:
	  - { name: ocs0, size: 32x32, driver: sim }
	  - { name: both, ports: 8, any-to-any: true, driver: sim }
	fibres:
	  - { from: "dut.p[0-7]", to: "ocs0.[1-8]" }
	  - { from: "tg1.p[0-7]", to: "ocs0.[9-16]" }
	  - { from: "wide.q0-[1-2]", to: "ocs0.[17-18]" }
	  - { from: "any.p[0-3]", to: "both.[1-4]" }
	dead: [ { port: dut.p3 } ]
	END
	printf '%s\n' "$@" >>"$T/fabric.yaml"
}

# in_file WHAT ERROR CIRCUIT...: refused with that, at the last line, as the only error.
in_file() {
	fabric_with circuits: "$(printf '  - { %s }\n' "${@:3}")"
	expect 65 "$1" weft check "$T/fabric.yaml"
	has err "  at its line" "fabric.yaml:$(wc -l <"$T/fabric.yaml"):[0-9]+: .*$2"
	[[ $(grep -c "fabric.yaml:" "$T/err") == 1 ]]
	tap "  once"
}
in_file "a port that is not there" "dut has no port 'p9'" 'name: a, from: dut.p9, to: tg1.p0'
in_file "one that is dead" 'dut.p3 is marked as dead' 'name: a, from: dut.p3, to: tg1.p0'
in_file "one way at a switch without sides" 'direction: one-way at both, which is any-to-any' \
	'name: a, from: any.p0, to: any.p1, direction: one-way'
in_file "lanes that differ" 'lanes differ: wide.q0 has 2, tg1.p0 has 1' \
	'name: a, from: wide.q0, to: tg1.p0'
in_file "a port to itself" 'dut.p0 cannot be joined to itself both ways' \
	'name: a, from: dut.p0, to: dut.p0'
in_file "a port of two groups" 'dut.p0 already sends light of a from line 18' \
	'name: a, from: dut.p0, to: tg1.p0' 'name: b, from: dut.p0, to: tg1.p1'
in_file "no fibre between" 'dut.p0 is on ocs0 and any.p0 on both, and no fibre joins' \
	'name: a, from: dut.p0, to: any.p0'

# labelled HOST LABEL ERROR: in place of the host's entry.
labelled() {
	fabric_with
	sed -i "s/name: $1, ports/name: $1, label: \"$2\", ports/" "$T/fabric.yaml"
	expect 65 "$4" weft check "$T/fabric.yaml"
	has err "  at its line" "fabric.yaml:5:[0-9]+: host tg1: label: $3"
}
labelled tg1 "Gerät 1" "'Gerät 1' is already another host's" "labels that fall together"
labelled tg1 any "'any' is another host's name" "a label that is a name"

# ---- on request ----

fabric_with
daemon || exit 1
expect 0 "the fabric" weft apply -f "$T/fabric.yaml"
# refused CODE WHAT ERROR ARGUMENT...
refused() {
	expect "$1" "$2" weft circuit add "${@:4}"
	has err "  and why" "$3"
	expect 0 "  nothing is held" weft circuit find "${4/dut.p9/dut.p0}"
	no_job
}
no_job() {
	[[ $(weft job list --all --format json | jq '.jobs | length') == 0 ]]
	tap "  no job was made"
}
# never WHAT ERROR ARGUMENT...: it does not wait either.
never() {
	refused 65 "$@"
	expect 65 "  nor by waiting" weft circuit add "${@:3}" --wait
	no_job
}
never "a port that is not there" "dut has no port 'p9'" dut.p9 tg1.p0
never "one that is dead" 'dut.p3 is marked as dead' dut.p3 tg1.p0
never "one way at a switch without sides" 'one-way at both, which is any-to-any' \
	any.p0 any.p1 --one-way
never "lanes that differ" 'lanes differ: wide.q0 has 2, tg1.p0 has 1' wide.q0 tg1.p0
never "a port twice in one group" 'dut.p0 sends light of two' dut.p0 tg1.p0 dut.p0 tg1.p1
never "a port to itself" 'dut.p0 cannot be joined to itself both ways' dut.p0 dut.p0
never "no fibre between" 'no fibre joins' dut.p0 any.p0
refused 65 "a lease of zero" 'a lease lasts longer than that' dut.p0 tg1.p0 --lease 0s
expect 0 "a port is drained" weft drain dut.p4
refused 65 "which gets no circuit" 'dut.p4 is drained by .*: no new circuit there' dut.p4 tg1.p0
weft circuit add dut.p4 tg1.p0 --name later --wait >"$T/later" 2>&1 &
PID[later]=$!
state() { weft job list --format json | jq -e ".jobs[] | select(.name == \"$1\" and .state == \"$2\")"; }
wait_for 10 state later queued
tap "  but by waiting"
expect 0 "undrained" weft undrain dut.p4
wait "${PID[later]}"
tap "  it is made"
unset "PID[later]"
expect 0 "  and removed" weft circuit remove later
[[ $(weft status --format json | jq -c '[.devices[].circuits]') == '[0,0]' ]]
tap "nothing was made"

# Who is named is who has the port, not who waits for it.
expect 0 "a group" weft circuit add dut.p0 tg1.p0 --name first
weft circuit add dut.p0 tg1.p1 --name second --wait >"$T/second" 2>&1 &
PID[second]=$!
wait_for 10 state second queued
tap "another waits for its port"
expect 75 "a third" weft circuit add dut.p0 tg1.p2 --name third
has err "  hears who has it" 'dut.p0 is held by .*job first'
expect 75 "and who asks for the other end" weft circuit add dut.p1 tg1.p1 --name third
has err "  who waits for it" 'tg1.p1 is held by .*job second'
expect 0 "the second is not wanted any more" weft circuit remove second
wait "${PID[second]}"
unset "PID[second]"
expect 0 "the first ends" weft circuit remove first

# A dead port is none that is left: who wants it waits.
expect 0 "a group on one of them" weft circuit add dut.p0 tg1.p0 --name first
expect 0 "all other ports but one" weft job request seven --nodes dut,tg1 --ports 7 -c allreduce \
	--size 1MB --no-wait
has err "  wait for it" 'job seven: queued'
weft circuit remove first >"$T/out" 2>&1
wait_for 10 state seven running
tap "  and are given when it ends"
finish
