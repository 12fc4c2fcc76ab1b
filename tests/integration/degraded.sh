#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Ports and circuits die under running jobs: the schedule on what remains is
# served at once, status tells the rate that is left, and the whole schedule
# returns with the light.
source "$(dirname "$0")/../lib.sh"
emulator ocs0 polatis-scpi 36x36 || exit 1
cat >"$T/a.yaml" <<-END
	weft: 1
	fabric: lossy
	hosts:
	  - { name: "h[0-7]", ports: "p[0-2]", rate: 100Gbps }
	  - { name: "g[0-3]", ports: "p[0-1]", rate: 100Gbps }
	  - { name: "u[0-3]", ports: "p0", rate: 100Gbps }
	switches:
	  - name: ocs0
	    size: 36x36
	    driver: polatis-scpi
	    address: ${ADDR[ocs0]}
	    options: { gap_ms: 1, settle_ms: 20 }
	    timeout: 1s
	fibres:
	  - { from: "h[0-7].p[0-2]", to: "ocs0.[1-24]" }
	  - { from: "g[0-3].p[0-1]", to: "ocs0.[25-32]" }
	  - { from: "u[0-3].p0", to: "ocs0.[33-36]" }
	jobs:
	  - { name: swap, nodes: 'h[0-7]', collective: all-to-all, size: 1MiB, topology: 'Hypercube(3)', alpha: 1us }
	  - { name: sum, nodes: 'g[0-3]', collective: allreduce, size: 1MiB, topology: 'Ring(4)', alpha: 1us }
	  - { name: line, nodes: 'u[0-3]', collective: allgather, size: 1MiB, topology: 'UniRing(1,4)', alpha: 1us }
END
daemon || exit 1
expect 0 "applied" weft apply -f "$T/a.yaml"

# job NAME: its row of status, as one line of JSON.
job() {
	weft status --format json 2>/dev/null |
		jq -ce ".jobs[] | select(.name == \"$1\")"
}
light() { # NAME LIGHT
	[[ $(job "$1" | jq -r .health) == "$2" ]]
}
# schedule NAME: the one that weftd serves is proven; its summary to $T/out.
schedule() {
	expect 0 "$1: a schedule is served" \
		weft schedule export --job "$1" --to proto -o "$T/$1.pb"
	cp "$T/err" "$T/note"
	expect 0 "$1: and proven" weft schedule verify "$T/$1.pb" --format json
}
arcs() {
	weft schedule export "$T/$1.pb" --to json | jq '.arcs | length'
}

wait_for 20 light swap up
tap "all light is there"
schedule swap
[[ $(jq -r .bandwidth_factor "$T/out") == 3/2 && $(arcs swap) == 24 ]]
tap "the best all-to-all of a cube"

# A port that failed takes one arc away; no circuit was moved.
control ocs0 "fault port-failed=o1" >"$T/answer"
before=$(sets ocs0)
weft verify >"$T/out" 2>"$T/err"
wait_for 20 light swap degraded
tap "a failed port: degraded"
job swap >"$T/job"
jq -e '.degradation.failed == 1 and .degradation.failed_arcs == 1 and
	.degradation.arcs == 24 and .degradation.out == 2 and .degradation.device == "ocs0" and
	.degradation.rate > 0.5 and .degradation.rate < 1' "$T/job" >/dev/null
tap "status tells what is dead, and the rate that is left"
expect 0 "status as a table" weft status
has out "names the circuit and the rate" \
	'job swap: 1 of 24 circuits failed \(ocs0, in [0-9]+ -> out 2 ...\).* % of the rate'
light sum up
tap "the other job is as it was"
schedule swap
[[ $(arcs swap) == 23 ]]
tap "without the dead arc"
grep -q 'this is the schedule on what remains' "$T/note"
tap "and says that it is not the whole"
[[ $(jq -r .bandwidth_factor "$T/out") == "$(jq -r .degradation.bandwidth_factor "$T/job")" ]]
tap "with the rate that status tells"
expect 0 "routes around it" weft schedule export --job swap \
	--to routes-proto -o "$T/routes"
expect 0 "proven on the job's digraph" weft routes verify "$T/routes" \
	--job swap
[[ $(sets ocs0) == "$before" ]]
tap "no light was moved"

# No port is spare: a plan cannot repair it, and says what is lost meanwhile.
for verb in plan apply; do
	expect 0 "$verb: no port to spare, and nothing to do" weft "$verb" -f "$T/a.yaml" --format json
	has err "names the ports that are missing" 'job swap: 1 of its 24 circuits cannot be brought back, and its schedule goes round them: topology .* 2 of 3 are usable'
	[[ $verb == apply ]] ||
		jq -e '.jobs[0].degradation | .rate == 0.75 and .failed == 1' "$T/out" >/dev/null
	tap "$verb: and the rate that is left"
done
light swap degraded
tap "the job goes on as it was"

# A circuit of another job is gone from the switch; it is made good by hand.
xc=$(control ocs0 map | awk -F'[ ,]+' '$1 > 24 && $1 <= 32 { print $1 "," $2; exit }')
control ocs0 "unset $xc" >"$T/answer"
expect 2 "verify finds the circuit that is gone" weft verify
wait_for 20 light sum degraded
tap "the all-reduce goes on without it"
schedule sum
[[ $(arcs sum) == 7 ]]
tap "on the arcs that are left"
job sum | jq -e '.degradation.rate > 0.3 and .degradation.rate < 1' >/dev/null
tap "at a lower rate"
[[ $(job sum | jq '.degradation.uneven_loss * 1000 | round') == "$(jq '.uneven_loss * 1000 | round' "$T/out")" ]]
tap "and what uneven links lose by theorem"

# A ring that is cut has no schedule.
xc=$(control ocs0 map | awk -F'[ ,]+' '$1 > 32 { print $1 "," $2; exit }')
control ocs0 "fault port-disabled=i${xc%,*}" >"$T/answer"
weft verify >"$T/out" 2>"$T/err"
wait_for 20 light line down
tap "a one-way ring is down"
expect 65 "it has no schedule" weft schedule export --job line --to json
has err "and the reason" 'job line: 1 of its circuits are dead, and what remains has no schedule: '

# What an apply would bring back is told: of what can be made again, and once a port is back whose
# circuit is gone.
advice() { # NAME PATTERN
	job "$1" | jq -e --arg like "$2" '.advice | test($like)'
}
wait_for 20 advice sum '^job sum: weft apply would bring back 1 circuit, and take it to .* from .*; it was designed for '
tap "what an apply would bring back"
advice swap '^$' >"$T/answer"
tap "nothing of what it cannot"
weft watch --format json >"$T/events" 2>"$T/watch.err" </dev/null &
PID[watch]=$!
wait_for 20 grep -q resync "$T/events"
xc=$(control ocs0 map | awk -F'[ ,]+' '$2 == 1 { print $1 "," $2 }')
control ocs0 "unset $xc" >"$T/answer"
control ocs0 clear >"$T/answer"
weft verify >"$T/out" 2>"$T/err"
wait_for 20 advice swap 'job swap: weft apply would bring back 1 circuit, and take it to'
tap "the port is back: now it can"
wait_for 20 grep -q 'job swap: weft apply would bring back 1 circuit' "$T/events"
tap "an event tells it"

# The light returns, and with it the whole schedules.
expect 0 "the circuit is made again" weft apply -f "$T/a.yaml"
weft verify >"$T/out" 2>"$T/err"
for name in swap sum line; do
	wait_for 20 light "$name" up
	tap "$name is whole again"
	job "$name" | jq -e 'has("loss") | not' >/dev/null
	tap "and has lost nothing"
done
schedule swap
[[ $(jq -r .bandwidth_factor "$T/out") == 3/2 && ! -s $T/note ]]
tap "the best all-to-all is served again"

# What was dead before weftd started is found at the start.
control ocs0 "fault port-failed=o1" >"$T/answer"
stop weftd
daemon || exit 1
wait_for 20 light swap degraded
tap "found by the first reading of a new weftd"

# A job that was first applied while a port had failed.
stop watch
stop weftd
emulator ocs1 polatis-scpi 12x12 || exit 1
sed -e '/name: [gu]/d; /"[gu]\[/d; /nodes: .[gu]/d; s/h\[0-7\]/h[0-3]/; s/1-24/1-12/; s/36x36/12x12/' \
	-e "s/ocs0/ocs1/; s/${ADDR[ocs0]}/${ADDR[ocs1]}/; /name: swap/s/topology.*/alpha: 1us }/" "$T/a.yaml" >"$T/b.yaml"
control ocs1 "fault port-failed=o1" >"$T/answer"
STATE=$T/state2
daemon || exit 1
expect 0 "applied without the port" weft apply -f "$T/b.yaml"
was=$(job swap | jq .expected_time_ns)
control ocs1 clear >"$T/answer"
weft verify >"$T/out" 2>"$T/err"
wait_for 20 advice swap 'job swap: weft apply --optimise would take it to'
tap "the port is back: another topology gains"
promised=$(job swap | jq .apply_time_ns)
expect 0 "it is taken" weft apply --optimise
[[ $promised -gt 0 && $promised -lt $was && $(job swap | jq .expected_time_ns) == "$promised" ]]
tap "and takes what was promised"
wait_for 20 advice swap '^$'
tap "there is nothing more to gain"

# A topology that is given, and lacks a port from the first apply on: its other circuits are made.
sed "/name: swap/s/alpha/topology: 'K(4)', alpha/" "$T/b.yaml" >"$T/c.yaml"
stop weftd
emulator ocs2 polatis-scpi 12x12 || exit 1
sed -i "s/ocs1/ocs2/; s/${ADDR[ocs1]}/${ADDR[ocs2]}/" "$T/c.yaml"
control ocs2 "fault port-failed=o1" >"$T/answer"
STATE=$T/state3
daemon || exit 1
expect 0 "a given topology without a port" weft apply -f "$T/c.yaml"
has err "is made but for one circuit" 'job swap: 1 of its 12 circuits cannot be brought back, .* goes round them'
[[ $(control ocs2 map | grep -c ,) == 11 ]] && light swap degraded
tap "the job is degraded"
expect 0 "once more there is nothing to do" weft apply
control ocs2 clear >"$T/answer"
weft verify >"$T/out" 2>"$T/err"
wait_for 20 advice swap 'job swap: weft apply would bring back 1 circuit'
tap "the port is back: an apply would make it whole"
expect 0 "and does" weft apply
light swap up
tap "the job is whole"
finish
