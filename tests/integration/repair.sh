#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Light dies under jobs of orchestrators: what remains is served at once, and
# who asked for spares is moved to hosts that are free; no other job is.
source "$(dirname "$0")/../lib.sh"
emulator ocs0 polatis-scpi 20x20 || exit 1
cat >"$T/fabric.yaml" <<END
weft: 1
fabric: shared
hosts:
  - { name: "h[0-9]", ports: "p[0-1]", rate: 100Gbps, reactivation: 1ms }
switches:
  - { name: ocs0, size: 20x20, driver: polatis-scpi, address: "${ADDR[ocs0]}", options: { gap_ms: 1, settle_ms: 20 } }
fibres:
  - { from: "h[0-9].p[0-1]", to: "ocs0.[1-20]" }
jobs:
  - { name: own, nodes: "h[0-1]", collective: allreduce, size: 1MB }
END
daemon || exit 1
expect 0 "the operator's configuration" weft apply -f "$T/fabric.yaml"
map() { control ocs0 map | grep , | sort -n; }
# light FIRST LAST: circuits of hosts with inputs so numbered.
light() { map | awk -F, -v a="$1" -v b="$2" '$1 >= a && $1 <= b'; }
job() { weft job list --all --format json "$1" | jq -c '.jobs[-1]'; }
is() { # NAME FILTER: true of its JSON
	[[ $(job "$1" | jq "$2") == true ]]
}
look() { weft verify >/dev/null 2>&1; }

expect 64 "a repair that is none" weft job request --count 2 -c allgather --size 1MB --repair perhaps
expect 0 "a job that may move" weft job request a --count 3 -c allgather --size 1MB --repair spare
expect 0 "one that named its hosts" weft job request n --nodes h5,h6 -c allgather --size 1MB --repair spare
expect 0 "one that is whole or nothing" weft job request w --nodes h7,h8 -c allgather --size 1MB --repair none
is a '.nodes == ["h2","h3","h4"] and .repair == "spare" and .rate == 1 and .repairs == 0'
tap "all its light is there"
light 0 3 >"$T/own"
light 10 17 >"$T/others"

# A link of h3 fails: only h9 is free.
weft watch --format json >"$T/watch" 2>/dev/null &
PID[watch]=$!
wait_for 10 test -s "$T/watch"
started=$(job a | jq -r .started_at)
control ocs0 "fault port-failed=o7" >"$T/ctl"
look
wait_for 10 is a '.rate < 1 and (.problem | test("^1 of 6 circuits failed"))' ||
	is a '.repairs == 1'
tap "a link dies: it is told at once what is left"
wait_for 20 is a '.nodes == ["h2","h9","h4"] and .rate == 1 and .state == "running" and .problem == ""'
tap "and the job moves to the host that is free, at the same rank"
expect 0 "its schedule is whole" weft schedule verify --job a --format json
[[ $(job a | jq -r .started_at) == "$started" ]]
tap "it has been running all the time"
wait_for 5 grep -q 'job a is running: 1 of 6 circuits failed' "$T/watch" &&
	grep -q 'job a is running: moves to h2 h9 h4' "$T/watch"
tap "those who watch were told both"
stop watch
light 0 3 | cmp -s - "$T/own" && light 10 17 | cmp -s - "$T/others"
tap "no other job's light was touched"
[[ -z $(light 6 7) ]]
tap "and the old host is dark"
weft status --format json | jq -e '.advice == "ocs0: 1 port failed: out 8" and ([.jobs[].health] | unique == ["up"])' >/dev/null
tap "nothing is left to do but at the port"

# Named hosts stay.
control ocs0 "fault port-failed=o11" >"$T/ctl"
look
wait_for 10 is n '.rate == 0 or .rate < 1'
tap "light of named hosts dies"
weft schedule export --job n --to json >"$T/n.json" 2>/dev/null
jq -e '.arcs | length == 3' "$T/n.json" >/dev/null
tap "its schedule is the one on what remains"
# Without repair there is no schedule but the whole one.
control ocs0 "fault port-failed=o15" >"$T/ctl"
look
wait_for 10 is w '.rate < 1'
tap "light of the last one dies"
expect 69 "it has no schedule then" weft schedule export --job w --to json
has err "and is told why" 'job w: 1 of its circuits are dead'

# No host is free: it waits for one, and survives a crash meanwhile.
control ocs0 "fault port-failed=o5" >"$T/ctl"
look
wait_for 10 is a '.rate < 1'
tap "it dies again, and there is no spare"
light 10 17 | cmp -s - "$T/others" && is n '.repairs == 0' && is w '.repairs == 0'
tap "no other job has moved"
stop weftd KILL
daemon || exit 1
wait_for 20 is a '.repairs == 1 and .rate < 1 and .nodes == ["h2","h9","h4"]'
tap "after a crash the job and its tries are remembered"
control ocs0 clear >"$T/ctl"
control ocs0 "fault port-failed=o5" >"$T/ctl"
expect 0 "one is given back" weft job release w
look
wait_for 60 is a '.rate == 1 and .repairs == 2'
tap "then it moves"
is a '(.nodes | index("h2")) == null and .nodes[1:] == ["h9","h4"]'
tap "the host that failed only"
light 0 3 | cmp -s - "$T/own"
tap "the operator's light was never touched"
wait_for 10 is n '.rate == 1 and .problem == ""'
tap "light that is back is told"
expect 0 "the light goes with the job" weft job release a
expect 0 "and the other" weft job release n
map | cmp -s - "$T/own"
tap "all is given back"
finish
