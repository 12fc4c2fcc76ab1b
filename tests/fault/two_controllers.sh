#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Two weftd with stores of their own apply different fabrics to the same devices at the
# same time. Nothing keeps them apart: each tells what the other did, none blames itself,
# and what a store intends that the devices do not hold is listed.
source "$(dirname "$0")/../lib.sh"
emulators || exit 1
RING=no fabric "$T/a.yaml" 'UniRing(2,4)'
RING=no fabric "$T/b.yaml" 'Ring(4)'
sed -i "s/gap_ms: 1, settle_ms: 20/gap_ms: 20, settle_ms: 100/" "$T/a.yaml" "$T/b.yaml"

at() { # NAME COMMAND...: asks that one
	local name=$1
	shift
	weft --socket "$T/$name.sock" "$@"
}
for name in a b; do
	weftd --socket "$T/$name.sock" --state-dir "$T/state-$name" --poll 0 >"$T/$name.log" 2>&1 </dev/null &
	PID[$name]=$!
	wait_for 10 at $name status --format json
	tap "weftd $name"
done
others="changed by others while this change ran: "
told=0 untold=0 codes=""
# Until they have met and one of them went on: when both take back what they did, neither sees the other.
went_on=no
for round in 1 2 3 4 5 6 7 8; do
	((told == 0)) || [[ $went_on == no ]] || break
	went_on=no
	for name in a b; do
		at $name apply -f "$T/$name.yaml" --mode update >"$T/$name.out" 2>&1 &
		PID[client$name]=$!
	done
	for name in a b; do
		wait "${PID[client$name]}"
		code=$?
		unset "PID[client$name]"
		codes="$codes $code"
		[[ $code == 3 ]] || went_on=yes
		[[ $code == 0 ]] || grep -q "$others" "$T/$name.out" || untold=$((untold + 1))
		grep -q "$others" "$T/$name.out" && told=$((told + 1))
		[[ $code == [034] || $code == 1 ]] || sed "s/^/# $round $name $code: /" "$T/$name.out"
	done
done
echo "# exit codes:$codes; told $told times, failed without it $untold times"
((told > 0))
tap "the other's changes are told while they happen"
for name in a b; do
	at $name verify >"$T/out" 2>&1
	at $name status --format json >"$T/status" && at $name diff >"$T/diff" 2>&1
	code=$?
	[[ $code == 0 || $code == 2 ]]
	tap "$name answers, and says what differs"
	at $name external-changes --format json >"$T/record-$name" 2>"$T/err"
	cp "$T/status" "$T/status-$name"
done
jq -es 'any(.[]; .changes | length > 0)' "$T"/record-[ab] >"$T/jq"
tap "the other's changes are on record"
jq -es '[.[].problems[] | select(.kind == "changed-by-others" and .count > 0 and .device != "" and
	(.text | test("others changed .* while weft changed it, since .*: let one controller change it")))] |
	length > 0' "$T/status-a" "$T/status-b" >"$T/jq"
tap "the device that another one changes is on the list of problems"
at a apply -f "$T/a.yaml" --mode update >"$T/out" 2>&1 && at a verify >"$T/out" 2>&1
tap "alone again, one of them has its fabric"
at b verify >"$T/out" 2>&1
at b diff >"$T/diff" 2>&1
[[ $? == 2 ]]
tap "and the other one names what differs from its own"
for name in a b; do
	stop $name
done
finish
