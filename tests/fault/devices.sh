#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# checklist 5, 8: devices that misbehave during an apply: each fault is named, nothing is
# committed that was not read back, and what is left is what the message says. Once over real
# sockets: tests/sim/stories/device_stories.c has the other faults.
source "$(dirname "$0")/../lib.sh"
emulators || exit 1
# The first fabric leaves every second port of the switch dark; the other two use all ports.
fabric "$T/a.yaml" 'UniRing(1,4)'
DEPTH=2 fabric "$T/b.yaml" 'Ring(4)'
fabric "$T/full.yaml" 'UniRing(2,4)'
daemon || exit 1
expect 0 "the first fabric is applied" weft apply -f "$T/a.yaml"
control ocs0 map >"$T/map-a"

# after DEVICE FAULT WHAT PATTERN: an apply under this fault is rolled back (3) and
# the message matches.
after() {
	control "$1" "fault $2" >"$T/out"
	expect 3 "$3: rolled back" weft apply -f "$T/b.yaml"
	has err "$3: named" "$4"
	control "$1" clear >"$T/out"
	control ocs0 map | diff "$T/map-a" - >"$T/out"
	tap "$3: the switch holds what it held"
	expect 0 "$3: verify agrees" weft verify
}
after ocs0 refuse-port=o5 "a connection that is refused with an error" 'ocs0.*out 6'
after ocs0 drop-set=1 "a session that ends half way" 'ocs0.*session'
after ring0 corrupt-shadow "a program that does not arrive whole" ring0

# Another user's change between plan and apply.
expect 2 "a plan is made" weft plan -f "$T/b.yaml" -o "$T/b.plan"
control ocs0 "unset $(head -n 1 "$T/map-a")" >"$T/out"
before=$(sets ocs0)
weft apply "$T/b.plan" >"$T/out" 2>"$T/err" </dev/null
got=$?
[[ $got == 75 || $got == 1 ]]
tap "a map changed by another user: the plan is refused ($got)"
has err "named" 'no longer as they were'
[[ $(sets ocs0) == "$before" ]]
tap "no command was sent"
expect 0 "apply repairs it" weft apply -f "$T/a.yaml"
control ocs0 "set 1,7" >"$T/out"
expect 65 "mode safe does not take the ports of another user's circuit" weft apply -f "$T/full.yaml"
expect 0 "mode update takes them" weft apply --mode update -f "$T/full.yaml"

# A device that is gone.
stop ocs0
expect 69 "a switch that does not answer: nothing changes" weft apply -f "$T/b.yaml"
has err "it is named" ocs0
weft status >"$T/out" 2>"$T/err"
has out "status does not call it proven" 'ocs0 .* NO +unverified'
finish
