#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Jobs of orchestrators: placed, started, queued, pushed out, released, over a
# crash; none touches the light of another. Once over real sockets:
# tests/sim/stories/job_stories.c has those that are timed, drained, dead, and switches
# that are away.
source "$(dirname "$0")/../lib.sh"
emulator ocs0 polatis-scpi 20x20 || exit 1
# Eight hosts with two ports each; h0 and h1 belong to the operator's own job. Two servers.
cat >"$T/fabric.yaml" <<END
weft: 1
fabric: shared
hosts:
  - { name: "h[0-7]", ports: "p[0-1]", rate: 100Gbps, reactivation: 1ms }
  - { name: "g[0-1]", ports: "p[0-1]", rate: 100Gbps, reactivation: 1ms, inside: "Cap(Star(4),50)" }
switches:
  - { name: ocs0, size: 20x20, driver: polatis-scpi, address: "${ADDR[ocs0]}",
      timeout: 1s, options: { gap_ms: 1, settle_ms: 20 } }
fibres:
  - { from: "h[0-7].p[0-1]", to: "ocs0.[1-16]" }
  - { from: "g[0-1].p[0-1]", to: "ocs0.[17-20]" }
jobs:
  - { name: own, nodes: "h[0-1]", collective: allreduce, size: 1MB }
END
daemon || exit 1
expect 65 "nothing was ever applied" weft job request --count 2 -c allgather --size 1MB
expect 0 "the operator's configuration" weft apply -f "$T/fabric.yaml"
map() { control ocs0 map | grep , | sort; }
map >"$T/own"

job() { # NAME: its JSON
	weft job list --all --format json "$1" | jq -c '.jobs[-1]'
}
state() { # NAME STATE
	[[ $(job "$1" | jq -r .state) == "$2" ]]
}

expect 0 "a job of four hosts" weft job request a --count 4 -c allreduce --size 1MB --format json
[[ $(jq -r '.state + " " + (.nodes | join(","))' "$T/out") == "running h2,h3,h4,h5" ]]
tap "runs on hosts that are free"
map >"$T/with-a"
[[ $(comm -23 "$T/own" "$T/with-a") == "" && $(wc -l <"$T/with-a") == $(($(wc -l <"$T/own") + 8)) ]]
tap "its light is beside that of the others"
expect 0 "its schedule" weft schedule verify --job a
expect 0 "status shows both" weft status --format json
[[ $(jq -c '[.jobs[].name]' "$T/out") == '["own","a"]' ]]
tap "the operator's and the orchestrator's"
expect 0 "the operator's configuration again" weft apply -f "$T/fabric.yaml"
has out "changes nothing" 'nothing'
map | cmp -s - "$T/with-a"
tap "and does not touch the job"

expect 65 "more hosts than there are" weft job request --count 9 -c allgather --size 1MB
has err "says how many there are" 'there are 8 with enough ports'

# Servers, by all their ranks.
expect 0 "eight ranks" weft job request g --ranks 8 -c allreduce --size 1MB --format json
[[ $(jq -r '.state + " " + (.nodes | join(","))' "$T/out") == "running g0,g1" ]]
tap "are two servers of four"
expect 0 "their schedule" weft schedule verify --job g --format json
[[ $(jq .nodes "$T/out") == 8 ]]
tap "has all of them"
expect 0 "eight more wait" weft job request g2 --ranks 8 -c allreduce --size 1MB --no-wait
state g2 queued && [[ $(job g2 | jq -r .problem) == "2 hosts are wanted, and 0 of 2 with enough ports are free" ]]
tap "for the servers"
expect 0 "these are given back" weft job release g
wait_for 10 state g2 running
tap "and taken"
expect 0 "at the end, too" weft job release g2
expect 64 "one count is enough" weft job request --count 2 --ranks 8 -c allgather --size 1MB

# No room: the queue.
weft job request b --count 4 -c allgather --size 1MB >"$T/b" 2>&1 &
PID[b]=$!
wait_for 10 state b queued
tap "a job that does not fit waits"
[[ $(job b | jq -r .problem) == "4 hosts are wanted, and 2 of 8 with enough ports are free" ]]
tap "and says for what"
expect 0 "a smaller one passes it" weft job request c --count 2 -c allgather --size 1MB --preemptible --priority -1
stop weftd KILL
daemon || exit 1
wait_for 10 state c running && state b queued && state a running
tap "after a crash the jobs are what they were"
map >"$T/three"
comm -23 "$T/with-a" "$T/three" | cmp -s - /dev/null
tap "and their light"
wait "${PID[b]}"
unset 'PID[b]'
expect 0 "one is given back" weft job release a
wait_for 20 state b running
tap "the one that waited starts"
comm -23 "$T/own" <(map) | cmp -s - /dev/null
tap "the operator's light was never touched"

# A more important job; c has agreed to go, b has not.
expect 0 "an important job pushes out who agreed" \
	weft job request d --count 2 -c allgather --size 1MB --priority 5
state c ended && state b running && state d running
tap "and no other job"
[[ $(job c | jq -r .problem) == "makes room for job d" ]]
tap "who is told why"
map >"$T/with-b"
sed 's/collective: allreduce, size: 1MB }/collective: allreduce, size: 1MB, topology: "UniRing(1,2)" }/' \
	"$T/fabric.yaml" >"$T/other.yaml"
expect 0 "the operator changes his own job" weft apply -f "$T/other.yaml"
! map | cmp -s - "$T/with-b" && comm -23 "$T/with-b" <(map) | comm -23 - "$T/own" | cmp -s - /dev/null
tap "which moves his light only"
expect 0 "and goes back" weft rollback
expect 0 "a job is given back" weft job release d
expect 0 "and the last one" weft job release b
map | cmp -s - "$T/own"
tap "what is left is the operator's light"
finish
