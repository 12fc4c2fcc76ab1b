#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# checklist 1, 2, 12, 13: weftd is killed at every durable step of an apply. After each restart every
# circuit is explained, intent is the old or the new one, nothing was sent by
# starting, and the next apply ends well.
source "$(dirname "$0")/../lib.sh"
SHIM=$BUILD/release/tests/fault/crash_at_sync.so
emulators || exit 1
fabric "$T/a.yaml" 'UniRing(2,4)'
DEPTH=2 fabric "$T/b.yaml" 'Ring(4)'
daemon || exit 1
expect 0 "the first fabric" weft apply -f "$T/a.yaml"
control ocs0 map | grep , >"$T/map-a"
expect 0 "the second fabric" weft apply -f "$T/b.yaml"
control ocs0 map | grep , >"$T/map-b"
expect 0 "and back" weft apply -f "$T/a.yaml"
stop weftd
sort -u "$T/map-a" "$T/map-b" >"$T/known"

# check WHAT FILTER FILE: a jq condition on the status.
check() {
	jq -e "$2" "$3" >/dev/null || {
		echo "# $1: $2"
		jq -c '{state, generation, devices: [.devices[] | {name, missing, unexpected, pending, pending_count, program}], last_change}' "$3" | sed 's/^/#   /'
		return 1
	}
}

moment=0
while :; do
	moment=$((moment + 1))
	((moment <= 400)) || { tap "the loop ends" 1; break; }
	rm -f "$T/arm"
	daemon LD_PRELOAD="$SHIM" WEFT_CRASH_AT=$moment WEFT_CRASH_ARM="$T/arm" || exit 1
	generation=$(weft status --format json | jq .generation)
	touch "$T/arm"
	weft apply -f "$T/b.yaml" >"$T/out" 2>"$T/err" </dev/null
	status=$?
	rm -f "$T/arm"
	# The client may hear of the end before the shell does.
	[[ $status == 0 ]] || wait_for 5 bash -c "! kill -0 ${PID[weftd]}"
	if kill -0 "${PID[weftd]}" 2>/dev/null; then
		[[ $status == 0 && $moment -gt 1 ]] || sed 's/^/# /' "$T/err"
		[[ $status == 0 && $moment -gt 1 ]]
		tap "moment $moment is past the end: the apply succeeds"
		break
	fi
	wait "${PID[weftd]}" 2>/dev/null
	unset 'PID[weftd]'
	sent=$(sets ocs0).$(sets ring0)

	bad=0
	# What was read after the commit goes to the disk when the client has its answer.
	told=$generation
	[[ $status == 0 ]] && told=$((generation + 1))
	[[ $status == 69 || $status == 0 ]] || { echo "# weft apply: exit $status, expected 69"; bad=1; }
	daemon || exit 1
	wait_for 5 bash -c "weft status --format json | jq -e '.state != \"reading\"'"
	weft status --format json >"$T/status" 2>"$T/err" || bad=1
	check "nothing unexplained" '[.devices[].unexpected[]] == []' "$T/status" || bad=1
	check "missing only while a change is open" \
		'.state == "interrupted" or [.devices[].missing[]] == []' "$T/status" || bad=1
	check "intent is the old or the new one, and the new one if the client was told so" \
		".generation >= $told and .generation <= $generation + 1" "$T/status" || bad=1
	check "an open change says what to do" \
		'.state != "interrupted" or (.advice | length) > 0' "$T/status" || bad=1
	[[ $(sets ocs0).$(sets ring0) == "$sent" ]] || { echo "# starting sent commands"; bad=1; }
	control ocs0 map | grep , | sort | comm -23 - "$T/known" | grep -q . &&
		{ echo "# a circuit of neither fabric"; bad=1; }
	# On, on every other moment; back, on the others.
	if ((moment % 2)); then
		weft apply -f "$T/b.yaml" >"$T/out" 2>"$T/err" </dev/null || { cat "$T/err"; bad=1; }
		control ocs0 map | grep , | diff -q - "$T/map-b" >/dev/null || { echo "# not the second fabric"; bad=1; }
	fi
	weft apply -f "$T/a.yaml" >"$T/out" 2>"$T/err" </dev/null || { cat "$T/err"; bad=1; }
	control ocs0 map | grep , | diff -q - "$T/map-a" >/dev/null || { echo "# not the first fabric"; bad=1; }
	weft plan -f "$T/a.yaml" >"$T/out" 2>&1 </dev/null || { echo "# something left to do"; cat "$T/out"; bad=1; }
	weft verify >"$T/out" 2>&1 || { cat "$T/out"; bad=1; }
	tap "killed at moment $moment: $(jq -r .state "$T/status")" $bad
	stop weftd
done
finish
