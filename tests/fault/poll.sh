#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What another user did to a switch is found by the slow poll: no client asks,
# and nothing is sent.
source "$(dirname "$0")/../lib.sh"
emulators || exit 1
fabric "$T/a.yaml" 'UniRing(1,4)'
DAEMON_OPTIONS=(--poll 1)
daemon || exit 1
expect 0 "a fabric is applied" weft apply -f "$T/a.yaml"
control ocs0 map >"$T/map-a"
before=$(sets ocs0)
control ocs0 "unset $(head -n 1 "$T/map-a")" >"$T/out"
wait_for 30 grep -q 'ocs0: .*1 missing' "$T/weftd.log"
tap "a circuit that another user removed is found"
expect 0 "status knows, without asking the device" weft status
has out "one circuit is missing" 'ocs0 +yes .* 1 missing'
control ocs0 "set $(head -n 1 "$T/map-a")" >"$T/out"
found() {
	weft status >"$T/status" 2>&1
	grep -qE 'ocs0 +yes' "$T/status" && ! grep -q missing "$T/status"
}
wait_for 30 found
tap "and so is its return"
[[ $(sets ocs0) == "$before" ]]
tap "nothing was sent"
stop ring0
gone() {
	weft status 2>&1 | grep -qE 'ring0 +NO'
}
wait_for 30 gone
tap "a device that went away is found"
stop weftd
DAEMON_OPTIONS=(--poll never)
"$BIN/weftd" "${DAEMON_OPTIONS[@]}" >"$T/out" 2>"$T/err" </dev/null
[[ $? == 64 ]]
tap "a round that is no number is refused"
has err "with its reason" 'number of seconds'
finish
