#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A change that goes back unless it is confirmed: real processes, one of them killed while it
# waits. What else can happen is told on virtual time (tests/sim/stories/confirm_stories.c).
source "$(dirname "$0")/../lib.sh"
emulators || exit 1
fabric "$T/a.yaml" 'UniRing(2,4)'
DEPTH=2 fabric "$T/b.yaml" 'Ring(4)'
daemon || exit 1

holds() { # FILE: everything is as this configuration intends
	[[ $(weft status --format json | jq -r .config_sha256) == \
		"$(sha256sum <"$1" | cut -d ' ' -f 1)" ]] && weft verify >"$T/verify"
}

expect 0 "the first configuration" weft apply -f "$T/a.yaml"
expect 0 "applied, to be confirmed" weft apply -f "$T/b.yaml" --confirm-within 1h
expect 0 "confirmed" weft confirm 2
has out "by its number" 'confirmed +2'
holds "$T/b.yaml"
tap "it stays"

expect 0 "applied, then weftd is killed" weft apply -f "$T/a.yaml" --confirm-within 1500ms
stop weftd KILL
daemon || exit 1
wait_for 20 holds "$T/b.yaml"
tap "the next weftd goes back"
weft history --format json | jq -e '.changes[0] | .who == "weftd" and
	.comment == "not confirmed in time"' >/dev/null
tap "and history says who and why"
finish
