#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A store goes from one weft to another as text: there weftd finds nothing to do.
cd "$(dirname "$0")" || exit 1
. ../lib.sh

emulators
tap "a switch and a ring"
fabric "$T/f.yaml" "UniRing(1,4)"
daemon
expect 0 "applied" weft apply -f "$T/f.yaml"
expect 0 "a part is drained" weft drain h3
expect 0 "exported while weftd runs" weft store export --state-dir "$STATE" -o "$T/a.json"
[[ $(stat -c %a "$T/a.json") == 600 ]]
tap "readable by its owner"
expect 0 "once more" weft store export --state-dir "$STATE" -o "$T/b.json"
cmp "$T/a.json" "$T/b.json"
tap "the same bytes"
expect 0 "without history" weft store export --state-dir "$STATE" --no-history -o "$T/short.json"
jq -e '.changes | length == 1' "$T/short.json" >"$T/out"
tap "the change in force is still there"
! jq -e '.audit[0]' "$T/a.json" >"$T/out"
tap "the audit trail is not"
expect 75 "no import under a weftd that runs" weft store import "$T/a.json" --state-dir "$STATE" --replace
has err "which is named" "${PID[weftd]}"
stop weftd

mkdir "$T/other"
expect 0 "imported elsewhere" weft store import "$T/a.json" --state-dir "$T/other"
expect 64 "not over a store" weft store import "$T/a.json" --state-dir "$T/other"
has err "says how" 'replace keeps it'
expect 0 "exported there" weft store export --state-dir "$T/other" -o "$T/c.json"
cmp "$T/a.json" "$T/c.json"
tap "the same bytes again"
before=$(sets ocs0)
STATE=$T/other
daemon
expect 0 "weftd starts there" weft wait --for ready --timeout 30s
expect 0 "finds nothing to do" weft diff
expect 0 "verifies" weft verify
expect 0 "a fabric that is in force changes nothing" weft plan -f "$T/f.yaml"
expect 0 "status" weft status
has out "knows what is drained" 'h3'
[[ $(sets ocs0) == "$before" ]]
tap "and has sent nothing"
stop weftd

sed 's/"fence"/"fense"/' "$T/a.json" >"$T/bad.json"
sum=$(sha256sum <"$STATE/weft.db")
expect 65 "a mistake" weft store import "$T/bad.json" --state-dir "$STATE" --replace
has err "is named" 'unknown field state.fense'
[[ $(sha256sum <"$STATE/weft.db") == "$sum" && $(ls "$STATE") == $'weft.db\nweft.db.copy\nweft.db.lock' ]]
tap "and leaves all as it was"
expect 0 "a store is replaced" weft store import "$T/a.json" --state-dir "$STATE" --replace
[[ $(sha256sum <"$STATE/weft.db.replaced-1") == "$sum" ]]
tap "and kept"
expect 0 "a store is checked" weft store check --state-dir "$STATE"
has out "and has its transactions" 'transactions|TRANSACTIONS'
sqlite3 "$STATE/weft.db" "UPDATE drain SET what = 'h2'" >"$T/out"
expect 65 "what weft did not write" weft store check --state-dir "$STATE"
has err "is told" 'weft.db is damaged: it does not hold what was written'
weftd --socket "$SOCK" --state-dir "$STATE" >"$T/err" 2>&1
[[ $? == 65 ]] && grep -q 'is damaged: it does not hold what was written' "$T/err"
tap "and is not in force"
finish

rm -f "$STATE"/weft.db*
weft store import "$T/a.json" --state-dir "$STATE" >"$T/out"
daemon
stop weftd
: >"$STATE/weft.db"
daemon
expect 0 "a store that is empty is its copy" weft wait --for ready --timeout 30s
expect 0 "and status" weft status --format json
jq -e '.problems[] | select(.kind == "store") | .text | test("weft.db is empty: its copy is used")' \
	"$T/out" >"$T/found"
tap "says so"
expect 0 "nothing is missing" weft diff
expect 0 "it is told until the next change" weft apply -f "$T/f.yaml" --comment again
stop weftd
