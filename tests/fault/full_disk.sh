#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The disk under weftd's store has no space. Nothing is sent that could not be
# taken back, status goes on answering and says so, and all is well again when
# there is space, without a restart. Once with real files:
# tests/sim/stories/full_disk_stories.c has the disk full at each write of a change,
# while one waits for its confirmation, and at a start.
source "$(dirname "$0")/../lib.sh"
SHIM=$BUILD/release/tests/fault/full_disk.so
FULL=$T/full
emulators || exit 1
fabric "$T/a.yaml" 'UniRing(2,4)'
DEPTH=2 fabric "$T/b.yaml" 'Ring(4)'
daemon LD_PRELOAD="$SHIM" WEFT_FULL="$FULL" || exit 1
expect 0 "a fabric" weft apply -f "$T/a.yaml"

sent=$(sets ocs0).$(sets ring0)
echo 0 >"$FULL"
expect 1 "an apply while the disk is full" weft apply -f "$T/b.yaml"
has err "is refused" 'database or disk is full'
has err "with what to do" 'hint: check the disk and its free space'
[[ $(sets ocs0).$(sets ring0) == "$sent" ]]
tap "before anything is sent"
expect 0 "status answers" weft status --format json
jq -e '.advice | test("nothing can be recorded .write: .*disk is full")' "$T/out" >/dev/null
tap "and says that nothing can be recorded"
rm "$FULL"

control ocs0 map | sort >"$T/map-a"
echo 50 >"$FULL"
weft apply -f "$T/b.yaml" >"$T/out" 2>"$T/err" </dev/null
status=$?
[[ $status == 1 || $status == 3 ]]
tap "full in the middle of a change: refused or rolled back ($status)"
has err "and told" 'disk is full'
control ocs0 map | sort | cmp -s - "$T/map-a"
tap "with all as before"
rm "$FULL"
expect 0 "there is space again" weft apply -f "$T/b.yaml"
expect 0 "and it is true" weft verify

echo 0 >"$FULL"
stop weftd
LD_PRELOAD=$SHIM WEFT_FULL=$FULL expect 1 "no weftd starts on a full disk" \
	timeout 10 weftd --socket "$SOCK" --state-dir "$STATE"
has err "and says why" 'weft.db: .*disk'
finish
