#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A fabric of several pods, as tests/bench/bench_large.c has it, in small: six switches
# and 576 circuits. All of it is made by one change, changed in part, and found again
# by a weftd that starts; weftd answers while it changes.
source "$(dirname "$0")/../lib.sh"
PODS='3 48 2 128 127.0.0.1:17000'
# shellcheck disable=SC2086
"$TOP/tests/large_fabric.sh" $PODS >"$T/large.yaml"
# shellcheck disable=SC2086
OTHER_SMALL_JOBS=yes "$TOP/tests/large_fabric.sh" $PODS >"$T/other.yaml"

expect 0 "the fabric is checked" weft check "$T/large.yaml"
expect 2 "and planned without devices" weft plan --offline -f "$T/large.yaml"
has out "all circuits are to be made" "^576 to add, 0 to delete"

weft emulate "$T/large.yaml" >"$T/emulate.log" 2>&1 </dev/null &
PID[emulate]=$!
wait_for 20 grep -q '^ready' "$T/emulate.log"
tap "six emulators listen"
daemon || exit 1

# Answers that are kept while a change is under way must not outlive it.
committed() { weft status | grep -q "^generation  *$1$"; }

weft apply -f "$T/large.yaml" >"$T/apply" 2>&1 &
PID[apply]=$!
asked=0
while kill -0 "${PID[apply]}" 2>/dev/null; do
	weft status >/dev/null 2>&1 && asked=$((asked + 1))
done
wait "${PID[apply]}"
tap "one change makes all"
unset "PID[apply]"
[[ $asked -gt 0 ]]
tap "weftd answered meanwhile"
committed 2
tap "its status is that of the new generation at once"
expect 0 "nothing differs" weft diff
expect 0 "and all is as intended" weft verify
expect 0 "applying it again" weft apply -f "$T/large.yaml"
expect 0 "makes nothing to do" weft plan -f "$T/large.yaml"
has out "all is kept" "^0 to add, 0 to delete, 576 kept"

expect 0 "another topology of half of the jobs" weft apply -f "$T/other.yaml"
expect 0 "is there" weft diff
stop weftd
daemon || exit 1
wait_for 20 weft verify
tap "a weftd that starts finds all circuits"
expect 0 "and nothing that differs" weft diff
expect 0 "and has nothing to do" weft plan -f "$T/other.yaml"
has out "for any of them" "^0 to add, 0 to delete, 576 kept"
finish
