#!/bin/bash
# A change that goes back unless it is confirmed: confirmed, cancelled, not
# confirmed; with weftd killed while it waits, and a device away when its time
# is over.
source "$(dirname "$0")/../lib.sh"
emulators || exit 1
fabric "$T/a.yaml" 'UniRing(2,4)'
DEPTH=2 fabric "$T/b.yaml" 'Ring(4)'
daemon || exit 1

holds() { # FILE: everything is as this configuration intends
	[[ $(weft status --format json | jq -r .config_sha256) == \
		"$(sha256sum <"$1" | cut -d ' ' -f 1)" ]] && weft verify
}

lit() { # how many circuits and programs there are
	weft status --format json | jq "[.devices[] | .circuits + (.program.loaded_steps // 0)] | add // 0"
}
expect 0 "the first configuration, to be confirmed" weft apply -f "$T/a.yaml" --confirm-within 1h
weft status --format json | jq -e '.confirm.change == 1 and .confirm.rollback_to == 0' >/dev/null
tap "has none before it"
[[ $(lit) -gt 8 ]]
tap "it made light"
expect 0 "cancelled" weft cancel
wait_for 20 eval '[[ $(lit) == 0 ]]'
tap "its light is taken away"
weft status --format json | jq -e '.jobs == [] and (.devices | length) == 2 and .state == "ready"' >/dev/null
tap "and the fabric stays, without jobs"
stop weftd
rm -r "$STATE"
daemon || exit 1
expect 0 "the first configuration" weft apply -f "$T/a.yaml" --confirm-within 700ms
wait_for 20 eval '[[ $(lit) == 0 ]]'
tap "not confirmed, its light is taken away"
stop weftd
rm -r "$STATE"
daemon || exit 1
expect 0 "the first configuration" weft apply -f "$T/a.yaml"
expect 64 "a time that is none" weft apply -f "$T/b.yaml" --confirm-within soon
expect 65 "a time without end" weft apply -f "$T/b.yaml" --confirm-within 2200000h
has err "is refused before anything is sent" 'confirm_within_ns is .*, and may be 0 to .* \(a year\)'
expect 65 "nothing to confirm" weft confirm

expect 0 "applied, to be confirmed" weft apply -f "$T/b.yaml" --confirm-within 1h
expect 0 "status" weft status --format json
jq -e '.confirm.change == 2 and .confirm.rollback_to == 1 and
	(.advice | test("goes back unless it is confirmed"))' "$T/out" >/dev/null
tap "says what waits"
expect 75 "no other change meanwhile" weft apply -f "$T/a.yaml"
has err "and why" 'change 2 waits for its confirmation'
expect 75 "no rollback either" weft rollback
expect 65 "another change cannot be confirmed" weft confirm 1
expect 0 "confirmed" weft confirm 2
has out "by its number" 'confirmed +2'
holds "$T/b.yaml"
tap "it stays"
weft status --format json | jq -e '.confirm == null' >/dev/null
tap "nothing waits any more"

expect 0 "applied again" weft apply -f "$T/a.yaml" --confirm-within 1h
expect 0 "cancelled" weft cancel
holds "$T/b.yaml"
tap "it goes back at once"

expect 0 "applied, not confirmed" weft apply -f "$T/a.yaml" --confirm-within 700ms
wait_for 20 holds "$T/b.yaml"
tap "it goes back when the time is over"
weft history --format json | jq -e '.changes[0] | .who == "weftd" and
	.comment == "not confirmed in time"' >/dev/null
tap "and history says who and why"

expect 0 "applied, then weftd is killed" \
	weft apply -f "$T/a.yaml" --confirm-within 1500ms --request-id once
stop weftd KILL
daemon || exit 1
wait_for 20 holds "$T/b.yaml"
tap "the next weftd goes back"
expect 0 "the same request" \
	weft apply -f "$T/a.yaml" --confirm-within 1500ms --request-id once
has out "is answered by what became of it" 'verdict +committed'
holds "$T/b.yaml"
tap "and applies nothing"

expect 0 "applied, killed, and the time passes" \
	weft apply -f "$T/a.yaml" --confirm-within 200ms
stop weftd KILL
sleep 0.3
daemon || exit 1
wait_for 20 holds "$T/b.yaml"
tap "the next weftd goes back at its start"

expect 0 "applied, killed, and the clock is set back" \
	weft apply -f "$T/a.yaml" --confirm-within 700ms
stop weftd KILL
sqlite3 "$STATE/weft.db" 'UPDATE confirm SET by_ns = by_ns + 3600000000000'
daemon || exit 1
wait_for 20 holds "$T/b.yaml"
tap "the next weftd waits no longer than was asked for"

expect 0 "applied, and the switch goes away" \
	weft apply -f "$T/a.yaml" --confirm-within 1s
kill -STOP "${PID[ocs0]}"
wait_for 30 bash -c "weft history --format json | jq -e '.changes[0].comment == \"not confirmed in time\" and .changes[0].ended_at != null' || grep -q 'change of weftd: ' '$T/weftd.log'"
kill -CONT "${PID[ocs0]}"
wait_for 60 holds "$T/b.yaml"
tap "going back is tried again until the switch is there"
finish
