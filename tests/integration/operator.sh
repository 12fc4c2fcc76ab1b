#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A day of an operator: check, plan, apply, nothing to do, roll back, history,
# schedules, and every error with its place and exit code.
source "$(dirname "$0")/../lib.sh"
emulators || exit 1
fabric "$T/a.yaml" 'UniRing(2,4)'
DEPTH=2 fabric "$T/b.yaml" 'Ring(4)'

expect 0 "check accepts" weft check "$T/a.yaml"
expect 2 "plan without weftd is made against dark devices" \
	weft plan -f "$T/a.yaml"
has err "and says so" 'dark'
expect 69 "apply without weftd: unavailable" weft apply -f "$T/a.yaml"
has err "the socket is named" "$SOCK"

daemon || exit 1
expect 2 "plan: changes pending" weft plan -f "$T/a.yaml" -o "$T/a.plan"
has out "circuits by host names" '^\+ ocs0 +in [0-9]+ -> out [0-9]+ +h[0-9].p[0-9] -> h[0-9].p[0-9]'
has out "the ring's program" '^\+ ring0 +program of [0-9]+ steps'
has out "the summary" '^8 to add, 0 to delete, 0 kept, 1 program'
expect 0 "the plan file is applied" weft apply "$T/a.plan" -m first
expect 75 "the same plan file again is stale" weft apply "$T/a.plan"

before=$(sets ocs0).$(sets ring0)
expect 0 "plan again: nothing to do" weft plan -f "$T/a.yaml"
expect 0 "apply again: nothing to do" weft apply -f "$T/a.yaml"
[[ $(sets ocs0).$(sets ring0) == "$before" ]]
tap "and no command was sent to any device"

expect 0 "another fabric" weft apply -f "$T/b.yaml" -m second
control ocs0 map >"$T/map-b"
expect 0 "rollback" weft rollback
control ocs0 map | diff -q - "$T/map-b" >/dev/null
tap "the switch holds something else again" $((1 - $?))
expect 0 "and the first fabric is what it is" weft plan -f "$T/a.yaml"
expect 0 "history" weft history --format json
jq -e '[.changes[].outcome] == ["committed", "committed", "committed"]' "$T/out" >/dev/null
tap "has three committed changes"

expect 0 "a schedule over the socket" \
	weft schedule export --job reduce --to json -o "$T/reduce.json"
expect 0 "it verifies" weft schedule verify "$T/reduce.json" --format json
jq -e '.valid and .bandwidth_factor == "3/2" and .bandwidth_optimal' "$T/out" >/dev/null
tap "an all-reduce on four nodes at 3/2 M/B"
all=$(jq .transfers "$T/out")
expect 0 "and as protobuf" \
	weft schedule export --job gather --to proto -o "$T/gather.pb"
expect 0 "it verifies" weft schedule verify "$T/gather.pb"
# What each rank has to know, together, is every transfer at both its ends.
parts=0
for r in $(seq 0 $(($(jq .nodes "$T/reduce.json") - 1))); do
	weft schedule export --job reduce --rank "$r" --to json -o "$T/rank.json" &&
		[[ $(jq .part "$T/rank.json") == "$r" ]] || break
	parts=$((parts + $(jq '.transfers | length' "$T/rank.json")))
done
[[ $parts == $((2 * all)) ]]
tap "the parts of all ranks are the schedule, twice"
expect 1 "a part cannot be proven" weft schedule verify "$T/rank.json"
has err "and says so" 'only the part of rank'
expect 65 "a job that is not there" weft schedule export --job no-such-job --to json
has err "is named" no-such-job

# Formats agree.
for verb in status verify history; do
	weft $verb --format json 2>/dev/null | jq -S 'del(.. | .read_at?)' >"$T/json"
	[[ -s $T/json ]]
	tap "$verb --format json is JSON"
done
expect 0 "status as YAML" weft status --format yaml
has out "YAML" '^state: ready'

# Errors.
sed 's/channels: 4/channles: 4/; s/size: 8x8/size: 8x/' "$T/a.yaml" >"$T/bad.yaml"
expect 65 "two mistakes in one run" weft check "$T/bad.yaml"
has err "the unknown key with its place" "bad.yaml:[0-9]+:[0-9]+: .*channles"
has err "the bad size with its place" "bad.yaml:[0-9]+:[0-9]+: .*size"
expect 65 "apply refuses it too" weft apply -f "$T/bad.yaml"
expect 65 "a file that is not there" weft check "$T/none.yaml"
expect 64 "an unknown verb" weft aply
has err "the nearest is named" 'apply'
expect 64 "an unknown option" weft plan --fle x
printf '{"format": "weft-plan-1", "state": ' >"$T/cut.plan"
expect 65 "a plan file that was cut" weft apply "$T/cut.plan"
sed 's/UniRing(2,4)/Torus(3,3)/' "$T/a.yaml" >"$T/nodes.yaml"
expect 65 "a topology for other nodes" weft plan -f "$T/nodes.yaml"
has err "with its place" 'nodes.yaml:[0-9]+:[0-9]+:.*9 nodes'

# A second weftd on the same state is refused.
expect 75 "a second weftd" weftd --socket "$T/other.sock" --state-dir "$STATE"
has err "names the one that runs" "process ${PID[weftd]}"

# A restart changes nothing and sends nothing.
before=$(sets ocs0).$(sets ring0)
stop weftd
[[ ! -e $SOCK ]]
tap "the socket is gone after SIGTERM"
daemon || exit 1
wait_for 5 bash -c "weft status --format json | jq -e '.state == \"ready\"'"
tap "ready after a restart"
expect 0 "verify after a restart" weft verify
expect 0 "nothing to do after a restart" weft plan -f "$T/a.yaml"
[[ $(sets ocs0).$(sets ring0) == "$before" ]]
tap "and no command was sent"
finish
