#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Schedules of jobs run by Open MPI over circuits that weft switched, a namespace a
# host: right results, no frame lost in the hosts' own queues, and every arc carries
# its part, parallel ones as well; the same job again after its light has changed.
source "$(dirname "$0")/../lib.sh"
F=tr$$
testbed_of "$T/k22.yaml"

# write FILE TOPOLOGY
write() {
	cat >"$1" <<-END
	weft: 1
	fabric: $F
	hosts:
	  - { name: "h[0-3]", ports: "p[0-1]", rate: 20Mbps, reactivation: 10ms }
	switches:
	  - name: ocs0
	    size: 8x8
	    driver: linux-tc
	    options: { fabric: $F }
	fibres:
	  - { from: "h[0-3].p[0-1]", to: "ocs0.[1-8]" }
	jobs:
	  - { name: sum, nodes: "h[0-3]", collective: allreduce, size: 192KiB, topology: "$2", alpha: 10us }
	END
}
write "$T/k22.yaml" 'K(2,2)'
write "$T/uniring.yaml" 'UniRing(2,4)'
write "$T/ring.yaml" 'UniRing(1,4)'

weft testbed up "$T/k22.yaml" >"$T/out" 2>"$T/err"
status=$?
if [[ $status == 77 ]]; then
	echo "ok 1 - testbed # SKIP $(head -n 1 "$T/err")"
	echo "1..1"
	exit 0
elif [[ $status != 0 ]]; then
	cat "$T/err"
	tap "testbed up" 1
	finish
fi
expect 75 "no run without light" weft testbed run "$T/k22.yaml"
daemon || exit 1

# run WHAT FILE [OPTIONS]: all is right; times are told, not judged.
run() {
	local what=$1
	shift
	expect 0 "$what: runs" timeout 300 weft testbed run "$@" --repeat 2 --format json
	jq -r '"# planned \(.planned_ns / 1e6 | floor) ms, took \(.time_ns / 1e6 | floor) ms, by MPI \((.mpi_time_ns // 0) / 1e6 | floor) ms; an arc carried \(.min_arc_bytes) to \(.max_arc_bytes) bytes"' "$T/out"
	jq -e '.correct and .wrong_elements == 0 and .time_ns > 0' "$T/out" >/dev/null
	tap "$what: right"
	[[ $(jq .dropped_frames "$T/out") == 0 ]]
	tap "$what: nothing lost in queues"
	jq -e '.planned_ns > 0 and ([.steps[].planned_ns] | add) > 0 and
		all(.steps[]; .median_ns <= .worst_ns and (.worst_host | test("^h[0-3]$")))' \
		"$T/out" >/dev/null
	tap "$what: steps beside what is planned"
}

# Of parallel arcs, and of all in a topology where all are alike, none idles.
carries() { # WHAT ARCS
	jq -e --argjson n "$2" '(.arcs | length) == $n and
		.min_arc_bytes > .max_arc_bytes / 2' "$T/out" >/dev/null
	tap "$1: all $2 arcs carry"
}

expect 0 "K(2,2) is applied" weft apply -f "$T/k22.yaml"
run 'K(2,2)' "$T/k22.yaml" --job sum --compare
carries 'K(2,2)' 8
jq -e '.mpi_time_ns > 0' "$T/out" >/dev/null
tap "MPI's own collective beside it"
expect 0 "the light changes" weft apply -f "$T/uniring.yaml"
expect 75 "the schedule of other light does not run" weft testbed run "$T/k22.yaml"
run 'UniRing(2,4)' "$T/uniring.yaml" --barriers --size 96KiB
carries 'UniRing(2,4)' 8
expect 0 "and back" weft apply -f "$T/k22.yaml"
run 'K(2,2) again' "$T/k22.yaml"
carries 'K(2,2) again' 8
expect 0 "one arc from host to host" weft apply -f "$T/ring.yaml"
run 'UniRing(1,4)' "$T/ring.yaml"
carries 'UniRing(1,4)' 4

expect 65 "a job that is not there" weft testbed run "$T/ring.yaml" --job none
has err "is named" "no job 'none'"
expect 124 "a run that takes too long is ended" \
	weft testbed run "$T/ring.yaml" --size 64MiB --time-limit 3s
! grep -s "weft.$F" /tmp/weft-run.*/agent
tap "its files are gone"
within() { # how many processes are in the namespace of a host
	readlink /proc/[0-9]*/ns/net | grep -cxF "$(stat -Lc 'net:[%i]' "/run/netns/weft.$F.$1")"
}
[[ $(within h0) == 0 && $(within h3) == 0 ]]
tap "no process is left in a host"
weft testbed run "$T/ring.yaml" --size 64MiB >/dev/null 2>&1 &
PID[run]=$!
wait_for 20 eval '(( $(within h0) >= 2 ))'
tap "a run that is under way is in the hosts"
stop run INT
wait_for 20 eval '[[ $(within h0) == 0 ]]'
tap "and ends when it is stopped"
expect 0 "down" weft testbed down "$T/k22.yaml"
[[ -z $(compgen -G "/run/netns/weft.$F.*") ]]
tap "nothing is left"
finish
