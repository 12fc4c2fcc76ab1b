#!/bin/bash
# Jobs of orchestrators: placed, started, queued, timed, pushed out, released,
# over restarts; none touches the light of another.
source "$(dirname "$0")/../lib.sh"
emulator ocs0 polatis-scpi 16x16 || exit 1
# Eight hosts with two ports each; h0 and h1 belong to the operator's own job.
cat >"$T/fabric.yaml" <<END
weft: 1
fabric: shared
hosts:
  - { name: "h[0-7]", ports: "p[0-1]", rate: 100Gbps, reactivation: 1ms }
switches:
  - { name: ocs0, size: 16x16, driver: polatis-scpi, address: "${ADDR[ocs0]}",
      timeout: 1s, options: { gap_ms: 1, settle_ms: 20 } }
fibres:
  - { from: "h[0-7].p[0-1]", to: "ocs0.[1-16]" }
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
expect 65 "a host that is not there" weft job request --nodes h9,h0 -c allgather --size 1MB
expect 65 "a name that is taken" weft job request own --count 2 -c allgather --size 1MB
expect 65 "a collective that is none" weft job request --count 2 -c gossip --size 1MB
expect 65 "a topology that does not fit" weft job request bad --count 2 -c allgather --size 1MB -t 'Torus(9,9)'
state bad failed
tap "is a job that failed"
expect 64 "hosts and a count" weft job request --count 2 --nodes h0,h1 -c allgather --size 1MB

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
weft job request e --count 4 -c allgather --size 1MB --priority 9 --no-wait >/dev/null 2>&1
wait_for 5 state e queued
tap "no other job goes, however important"
expect 0 "it is given back while it waits" weft job release e
state e ended
tap "and is over"

# Time.
expect 0 "d is given back" weft job release d
expect 0 "a job for a second" weft job request f --count 2 -c allgather --size 1MB --duration 1s
wait_for 20 state f ended
tap "ends by itself"
[[ $(job f | jq -r .problem) == "its time is over" ]]
tap "and says so"

# Requests are remembered.
expect 0 "a request with an id" weft job request g --count 2 -c allgather --size 1MB --request-id r1
expect 0 "the same again" weft job request g --count 2 -c allgather --size 1MB --request-id r1
expect 65 "the same id with other arguments is refused" weft job request g --count 3 -c allgather --size 1MB --request-id r1
[[ $(weft job list --format json | jq '[.jobs[] | select(.name == "g")] | length') == 1 ]]
tap "is one job"

# A switch that goes away while a job ends.
kill -STOP "${PID[ocs0]}"
weft job release g >"$T/g" 2>&1 &
PID[g]=$!
wait_for 30 bash -c "weft job list --format json g | jq -e '.jobs[0].problem != \"\"'"
tap "a job whose switch is away says that it cannot end"
kill -CONT "${PID[ocs0]}"
# Who reads finds it back, and what waited for it goes on at once.
weft verify >"$T/verify" 2>&1
wait_for 60 state g ended
tap "and ends when the switch is back"
wait "${PID[g]}"
unset 'PID[g]'
# A circuit that the switch silently does not make: read back, and taken back.
map >"$T/before"
control ocs0 "fault ignore-port=o13" >"$T/ctl"
expect 65 "a circuit that is silently ignored" weft job request m --nodes h6,h7 -c allgather --size 1MB
state m failed && job m | jq -r .problem | grep -q 'was to be made, but the device does not have it'
tap "fails the job, and says which"
control ocs0 clear >"$T/ctl"
map | cmp -s - "$T/before"
tap "and leaves no light of it"

# Given back while it starts: it is over once it has started.
control ocs0 "fault slow=50" >"$T/ctl"
weft job request s --nodes h6,h7 -c allgather --size 1MB --no-wait >/dev/null 2>&1
wait_for 10 state s starting
tap "a job on a slow switch is starting"
expect 0 "it is given back meanwhile" weft job release s
control ocs0 clear >"$T/ctl"
state s ended && map | cmp -s - "$T/before"
tap "and is over, without light"

# Its time is over while the switch is away.
expect 0 "a job for two seconds" weft job request t --nodes h6,h7 -c allgather --size 1MB --duration 2s
kill -STOP "${PID[ocs0]}"
wait_for 30 bash -c "weft job list --format json t | jq '.jobs[0] | .state == \"ending\" and .problem != \"its time is over\"' | grep -q true"
tap "its time is over while its switch is away"
kill -CONT "${PID[ocs0]}"
weft verify >"$T/verify" 2>&1
wait_for 60 state t ended
map | cmp -s - "$T/before"
tap "it ends when the switch is back, with its light"
# Another configuration of the operator, and back: jobs stay.
map >"$T/with-b"
sed 's/collective: allreduce, size: 1MB }/collective: allreduce, size: 1MB, topology: "UniRing(1,2)" }/' \
	"$T/fabric.yaml" >"$T/other.yaml"
expect 0 "the operator changes his own job" weft apply -f "$T/other.yaml"
! map | cmp -s - "$T/with-b" && comm -23 "$T/with-b" <(map) | comm -23 - "$T/own" | cmp -s - /dev/null
tap "which moves his light only"
expect 0 "and goes back" weft rollback
map | cmp -s - "$T/with-b" && state b running
tap "the job has been left alone"
expect 0 "the last one" weft job release b
# Light that has died under one job is none of the others' business.
expect 0 "a job of three hosts" weft job request k --nodes h2,h3,h4 -c allgather --size 1MB -t 'UniRing(2,3)'
control ocs0 "fault port-failed=o5" >"$T/ctl"
gone=$(control ocs0 map | awk -F, '$2 == 6')
control ocs0 "unset $gone" >"$T/ctl"
expect 2 "its light dies, one circuit is gone" weft verify
map >"$T/dead"
expect 0 "another starts" weft job request l --count 2 -c allgather --size 1MB --format json
[[ $(jq -r '.nodes | join(",")' "$T/out") == h5,h6 ]]
tap "beside it"
comm -23 "$T/dead" <(map) | cmp -s - /dev/null && ! map | grep -qx "$gone"
tap "and neither moves nor mends what is dead"
expect 0 "the other ends" weft job release l
map | cmp -s - "$T/dead"
tap "and leaves the rest as it is"
weft status --format json | jq -e '.jobs[] | select(.name == "k" and .health == "degraded")' >/dev/null
tap "it is still known what is dead"
expect 0 "the dead one is given back" weft job release k
control ocs0 clear >"$T/ctl"
weft verify >/dev/null 2>&1
map | cmp -s - "$T/own"
tap "whole or not"
# Drained hosts get no new job.
expect 0 "a host is drained" weft drain h3
expect 0 "a job goes elsewhere" weft job request h --count 5 -c allgather --size 1MB --format json
[[ $(jq -r '.nodes | join(",")' "$T/out") == h2,h4,h5,h6,h7 ]]
tap "to all others that are free"
expect 0 "and is given back" weft job release h
weft job request i --count 6 -c allgather --size 1MB --no-wait >/dev/null 2>&1
state i queued
tap "a job for all waits"
weft watch -n 4 --format json >"$T/watch" 2>/dev/null &
PID[watch]=$!
wait_for 10 test -s "$T/watch"
expect 0 "the host is undrained" weft undrain h3
wait_for 20 state i running
tap "and starts then"
wait "${PID[watch]}"
unset 'PID[watch]'
grep -q 'job i is starting' "$T/watch"
tap "as those who watch hear"
expect 0 "it is given back" weft job release i
map | cmp -s - "$T/own"
tap "what is left is the operator's light"
finish
