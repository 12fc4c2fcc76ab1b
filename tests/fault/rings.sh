#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Parts of a ring fail under running jobs: what failed is named, a plan brings
# light that does without, what the emulated resonators then drop and add still
# carries every shard, and the whole returns with the light. Once over real sockets:
# tests/sim/stories/broken_ring_stories.c has cables and fibres that are cut, and what
# cannot be repaired.
source "$(dirname "$0")/../lib.sh"
REPLAY=$(dirname "$0")/../integration/ring_replay.py
emulator ring0 mrr-reg 8x8 || exit 1
fabric() { # COLLECTIVE [MORE]
	cat >"$T/a.yaml" <<-END
	weft: 1
	fabric: broken
	hosts:
	  - { name: "n[0-7]" }
	rings:
	  - name: ring0
	    nodes: "n[0-7]"
	    channels: 8
	    channel-rate: 40Gbps
	    driver: mrr-reg
	    address: ${ADDR[ring0]}
	    timeout: 2s
	jobs:
	  - { name: a, ring: ring0, size: 16MiB, channels: 0-5, collective: $1 }
	  - { name: b, ring: ring0, size: 1MiB, channels: 6-7, collective: allgather, nodes: 'n[0-3]', segment: true }
	END
}
job() {
	weft status --format json 2>/dev/null |
		jq -ce ".jobs[] | select(.name == \"$1\")"
}
light() { # NAME LIGHT
	[[ $(job "$1" | jq -r .health) == "$2" ]]
}
fault() {
	control ring0 "fault $1" >"$T/answer"
	weft verify >"$T/out" 2>"$T/err"
}
replay() { # WHAT NAME [RANKS...]
	local what=$1 name=$2 steps
	shift 2
	control ring0 "light $name" >"$T/trace"
	steps=$(awk 'NR == 1 { print $4 }' "$T/trace")
	for ((i = 1; i < steps; i++)); do
		control ring0 "step $name" >>"$T/trace"
	done
	control ring0 "step $name" >/dev/null
	expect 0 "$what: its schedule is served" \
		weft schedule export --job "$name" --to json -o "$T/s.json"
	expect 0 "$what: all arrives" python3 "$REPLAY" "$T/s.json" \
		"$T/trace" "$@"
}
touched() { # NAME
	control ring0 slots | awk -v p="$1" '$4 == p { print $6, $8 }'
}

fabric allgather
daemon || exit 1
weft watch --format json >"$T/watch" 2>/dev/null </dev/null &
PID[watch]=$!
expect 0 "applied" weft apply -f "$T/a.yaml"
wait_for 20 light a up
tap "all light is there"
time_whole=$(job a | jq .time_ns)

# One resonator pair does not lock any more. Who is told of it is told what the job has lost, also
# while that is planned.
b=$(touched b)
fault lol=2:3
for ((i = 0; i < 10; i++)); do
	weft status --format json 2>/dev/null
done | jq -c 'select(.devices[0].program.failed) | .jobs[0].health' >"$T/out"
grep -q . "$T/out" && ! grep -v degraded "$T/out"
tap "a lock is lost: degraded"
weft status --format json >"$T/out"
jq -e '.devices[0].program.failed == [
	"n2 cw fibre 0 channel 3: lock lost",
	"n2 ccw fibre 0 channel 3: lock lost"]' "$T/out" >/dev/null
tap "status names the resonators"
jq -e '.devices[0].problem | test("^failed: n2 cw fibre 0 channel 3")' \
	"$T/out" >/dev/null
tap "and the device's problem"
job a | jq -e '.degradation.rate > 0.7 and .degradation.rate < 1 and .degradation.failed == 2
	and (.degradation.part | test("n2 cw .* channel 3"))' >/dev/null
tap "the job's loss"
rate=$(job a | jq .degradation.rate)
wait_for 10 grep -q '"part-failed"' "$T/watch"
tap "an event"
job b | jq -e 'has("degradation") | not' >/dev/null
tap "the other job needs none of it"
expect 69 "no schedule whose light is not loaded" \
	weft schedule export --job a --to json
has err "says what to do" 'weft apply.* loads one that does without, at [0-9.]+ %'
expect 2 "plan proposes the repair" weft plan -f "$T/a.yaml"
has out "and what it does without" 'job a: does without n2 .* 1 more.* % of the rate'
expect 0 "apply brings it" weft apply -f "$T/a.yaml"
wait_for 20 light a up
tap "all the light that it wants is there"
job a | jq -e "(.failed_parts | length) == 2 and .fault_free_time_ns == $time_whole and
	((.fault_free_time_ns / .time_ns - $rate) | fabs) < 1e-9" >/dev/null
tap "at the rate that was told"
[[ $(touched b) == "$b" ]]
tap "nothing of the other job was written"
replay "without a channel" a
! grep -q ' node 2 .* channel 3 ' "$T/trace"
tap "the resonator is not used"
expect 2 "verify names what failed" weft verify --format json
jq -e '[.problems[].kind] == ["parts-failed", "job-degraded"]' "$T/out" >/dev/null
tap "and that all the rest locks"
expect 0 "nothing more to do" weft plan -f "$T/a.yaml"

# It works again: the whole program is back with the next apply.
control ring0 clear >"$T/answer"
weft verify >"$T/out" 2>"$T/err"
wait_for 10 light a up
replay "meanwhile" a
expect 2 "plan proposes the whole" weft plan -f "$T/a.yaml"
expect 0 "apply" weft apply -f "$T/a.yaml"
wait_for 10 light a up
[[ $(job a | jq .time_ns) == "$time_whole" ]]
tap "as fast as before"

wait_for 10 grep -q '"part-recovered"' "$T/watch"
tap "and told"

fault cut=4
wait_for 20 light a degraded
tap "a cable is cut: degraded"
expect 0 "apply brings it" weft apply -f "$T/a.yaml"
wait_for 20 light a up
replay "a line of the same nodes" a
finish
