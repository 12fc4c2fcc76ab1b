#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Circuits that many ask for while a change is under way: they go together into the next one. What
# else becomes of requests is in circuits.sh.
source "$(dirname "$0")/../lib.sh"
emulator ocs0 polatis-scpi 16x16 || exit 1
bed "$T/fabric.yaml"
sed -i 's/timeout: 1s/timeout: 60s/' "$T/fabric.yaml"
daemon || exit 1
expect 0 "the fabric" weft apply -f "$T/fabric.yaml"
states() { weft job list --format json | jq -c '[.jobs[].state] | group_by(.) | map([.[0], length])'; }
are() { [[ $(states) == "$1" ]]; }
add() { # NUMBER: in the background
	weft circuit add "dut.p$1" "tg1.p$1" --name "g$1" >"$T/g$1" 2>&1 &
	PID[g$1]=$!
}
kill -STOP "${PID[ocs0]}"
add 0
wait_for 20 are '[["starting",1]]'
tap "one begins at once"
for k in {1..5}; do
	add "$k"
done
wait_for 20 are '[["queued",5],["starting",1]]'
tap "five come while its change is under way"
kill -CONT "${PID[ocs0]}"
bad=0
for k in {0..5}; do
	wait "${PID[g$k]}" || bad=1
	unset "PID[g$k]"
done
[[ $bad == 0 && $(map ocs0 | wc -l) == 12 ]]
tap "all are made"
weft history --format json >"$T/out"
[[ $(jq '[.changes[] | select(.comment | test("starts?$"))] | length' "$T/out") == 2 ]]
tap "in two changes"
jq -r '.changes[].comment' "$T/out" | grep -qE '^jobs g[1-5](, g[1-5]){4} start$'
tap "one of which has the five"
finish
