#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# checklist 11: the gate on an emulated switch:
# nineteen of twenty circuits are enough, status lists the other one with the
# reason, also after a restart of weftd, and the next apply makes it; eighteen
# are not enough for a gate of 95 %; and a job that lacks one says so at once.
source "$(dirname "$0")/../lib.sh"
emulator ocs0 polatis-scpi 20x20 || exit 1
cat >"$T/a.yaml" <<-END
	weft: 1
	fabric: gate
	hosts:
	  - { name: "h[0-19]", ports: p0, rate: 100Gbps }
	switches:
	  - name: ocs0
	    size: 20x20
	    driver: polatis-scpi
	    address: ${ADDR[ocs0]}
	    options: { gap_ms: 1, settle_ms: 20 }
	    timeout: 1s
	fibres:
	  - { from: "h[0-19].p0", to: "ocs0.[1-20]" }
	jobs:
	  - { name: sum, nodes: all, collective: allreduce, size: 1MiB, topology: 'UniRing(1,20)' }
	changes: { gate: 95% }
END
daemon || exit 1
count() { control ocs0 map | grep -c ,; }
repairs() { weft status --format json | jq -e "(.repairs // []) | length == $1"; }

control ocs0 "fault ignore-port=o4" >"$T/answer"
control ocs0 "fault ignore-port=o7" >"$T/answer"
expect 3 "two of twenty are under the gate" weft apply -f "$T/a.yaml"
[[ $(count) == 0 ]]
tap "and all goes back"
control ocs0 clear >"$T/answer"
control ocs0 "fault ignore-port=o4" >"$T/answer"
expect 0 "one of twenty is not" weft apply -f "$T/a.yaml" --request-id once
has err "it is said" 'left to be repaired: ocs0: in [0-9]+ -> out 5 was to be made'
has out "and counted" 'left +1'
[[ $(count) == 19 ]]
tap "the others are there"
expect 0 "status has a list" weft status
has out "with the circuit and the reason" 'ocs0 +in [0-9]+ -> out 5 +2 .* was to be made'
stop weftd
daemon || exit 1
wait_for 10 repairs 1
tap "also after a restart"
expect 0 "who asks again" weft apply -f "$T/a.yaml" --request-id once --format json
[[ $(jq -c '[.verdict, .change, .left]' "$T/out") == '["committed",2,1]' ]]
tap "is told the same"
control ocs0 clear >"$T/answer"
expect 0 "the next apply repairs it" weft apply -f "$T/a.yaml"
[[ $(count) == 20 ]] && repairs 0 >"$T/out"
tap "and nothing is left"
expect 0 "as it was meant to be" weft verify

# A job that begins without one of its circuits says so from the first moment.
sed '/^jobs:/,/^  - /d; s/95%/50%/' "$T/a.yaml" >"$T/b.yaml"
expect 0 "a gate of half" weft apply -f "$T/b.yaml"
control ocs0 "fault ignore-port=o4" >"$T/answer"
weft watch --format json >"$T/watch" 2>/dev/null &
PID[watch]=$!
wait_for 10 test -s "$T/watch"
expect 0 "a job of ten hosts" weft job request x --nodes 'h[0-9]' -c allgather --size 1MB --topology 'UniRing(1,10)'
told() { grep -c 'job x is running: 1 of 10 circuits failed' "$T/watch"; }
wait_for 10 told
grep 'job x is running' "$T/watch" | head -n 1 | grep -q 'running: 1 of 10 circuits failed'
tap "is never told to run without a word of the missing one"
finish
