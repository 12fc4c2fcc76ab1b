#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# An older weftd over the store of a newer one shows what there is and commands nothing.
cd "$(dirname "$0")" || exit 1
. ../lib.sh

emulators
tap "a switch and a ring"
fabric "$T/f.yaml" "UniRing(1,4)"
DAEMON_OPTIONS=(--poll 1)
daemon
expect 0 "applied" weft apply -f "$T/f.yaml"
stop weftd
sqlite3 "$STATE/weft.db" "PRAGMA user_version = 99; ALTER TABLE change ADD COLUMN hue TEXT" >"$T/out"
sum=$(sha256sum <"$STATE/weft.db")
control ocs0 "unset" >"$T/out"
before=$(sets ocs0)
daemon
expect 0 "weftd starts" weft wait --for ready --timeout 30s
expect 0 "status" weft status
has out "says that it only reads" 'read-only: the store was written by a newer weftd \(format 99, this one knows 25\)'
expect 0 "history is shown" weft history
has out "with the change" 'committed'
expect 2 "what the devices lost as well" weft diff
for verb in "apply -f $T/f.yaml" "rollback 1" "drain h3" freeze "device recover ocs0 --clear"; do
	# shellcheck disable=SC2086
	expect 69 "refused: $verb" weft $verb
	has err "with both formats" 'format 99, this one knows 25'
	has err "and the way on" 'weft store export'
done
stop weftd
[[ $(sets ocs0) == "$before" ]]
tap "nothing was commanded"
[[ $(sha256sum <"$STATE/weft.db") == "$sum" ]]
tap "nothing was written"
expect 65 "an older weft does not export it" weft store export --state-dir "$STATE" -o "$T/x"
sqlite3 "$STATE/weft.db" "ALTER TABLE change RENAME COLUMN verdict TO outcome" >"$T/out"
weftd --socket "$SOCK" --state-dir "$STATE" >"$T/err" 2>&1
[[ $? == 65 ]] && grep -q 'has format 99, this weft knows up to 25' "$T/err"
tap "what lacks a column that it needs is refused"
finish
