#!/bin/bash
# checklist 5, 8: devices that misbehave during an apply: each fault is named, nothing is
# committed that was not read back, and what is left is what the message says.
source "$(dirname "$0")/../lib.sh"
emulators || exit 1
# The first fabric leaves every second port of the switch dark.
fabric "$T/a.yaml" 'UniRing(1,4)'
DEPTH=2 fabric "$T/b.yaml" 'Ring(4)'
# These two use all ports, and each has circuits that the other has not.
fabric "$T/full.yaml" 'UniRing(2,4)'
daemon || exit 1
expect 0 "the first fabric is applied" weft apply -f "$T/a.yaml"
control ocs0 map >"$T/map-a"

# unchanged WHAT: both the switch and weft's record are as they were.
unchanged() {
	control ocs0 map | diff "$T/map-a" - >"$T/out"
	tap "$1: the switch holds what it held"
	expect 0 "$1: verify agrees" weft verify
}

# after FAULT WHAT PATTERN: an apply under this fault is rolled back (3) and
# the message matches.
after() {
	control ocs0 "fault $1" >"$T/out"
	expect 3 "$2: rolled back" weft apply -f "$T/b.yaml"
	has err "$2: named" "$3"
	control ocs0 clear >"$T/out"
	unchanged "$2"
}

after ignore-port=o5 "a connection that is silently refused" \
	'ocs0.*(in [0-9]+ -> out 6|out 6)'
after refuse-port=o5 "a connection that is refused with an error" \
	'ocs0.*out 6'
after drop-set=1 "a session that ends half way" 'ocs0.*session'
after half=1 "half of a list is done" 'ocs0: .*in [0-9]+ -> out [0-9]+'
after eat-set=1 "a command that is never answered" 'ocs0.*in [0-9]+'

# A port that is needed to go back and does not work any more.
expect 0 "a fabric that uses all ports" weft apply -f "$T/full.yaml"
control ocs0 map >"$T/map-a"
control ocs0 "fault ignore-port=o5" >"$T/out"
weft apply -f "$T/b.yaml" >"$T/out" 2>"$T/err" </dev/null
got=$?
[[ $got == 3 || $got == 4 ]]
tap "a port in use that stops working: rolled back or stuck, not committed ($got)"
has err "it is named" 'ocs0.*out 6'
control ocs0 map | diff -q "$T/map-a" - >/dev/null
same=$?
[[ ($got == 3 && $same == 0) || ($got == 4 && $same == 1) ]]
tap "the exit code tells whether the switch holds what it held"
control ocs0 clear >"$T/out"
expect 0 "with the port repaired, apply brings it back" weft apply -f "$T/full.yaml"
unchanged "repaired"

# Light that goes away after it was there.
control ocs0 "fault lost=5" >"$T/out"
expect 3 "a map lost after the OK: rolled back" weft apply -f "$T/b.yaml"
has err "a map lost after the OK: named" 'ocs0'
control ocs0 clear >"$T/out"
unchanged "a map lost after the OK"

# Somebody else's change between plan and apply.
weft apply -f "$T/a.yaml" >"$T/out" 2>&1
control ocs0 map >"$T/map-a"
weft apply -f "$T/a.yaml" >"$T/out" 2>&1
expect 2 "a plan is made" weft plan -f "$T/b.yaml" -o "$T/b.plan"
circuit=$(head -n 1 "$T/map-a")
control ocs0 "unset $circuit" >"$T/out"
before=$(sets ocs0)
weft apply "$T/b.plan" >"$T/out" 2>"$T/err" </dev/null
got=$?
[[ $got == 75 || $got == 1 ]]
tap "a map changed by another user: the plan is refused ($got)"
has err "a map changed by another user: named" 'no longer as they were'
[[ $(sets ocs0) == "$before" ]]
tap "a map changed by another user: no command was sent"
expect 2 "verify names the missing circuit" weft verify
has out "the circuit by ports and hosts" 'missing +in 1 -> out'
expect 0 "apply repairs it" weft apply -f "$T/a.yaml"
unchanged "after the repair"

# A circuit that weft was not asked for.
expect 0 "a fabric without the switch's job" \
	bash -c "RING=yes; $(declare -f fabric); $(declare -p ADDR); fabric '$T/c.yaml' ''; weft apply -f '$T/c.yaml'"
control ocs0 "set 0,7" >"$T/out"
expect 2 "verify shows the external circuit" weft verify
has out "as unexpected" 'unexpected +in 1 -> out 8'
expect 65 "mode safe does not take its ports" weft apply -f "$T/full.yaml"
has err "and says who is in the way" 'h0|in 1'
control ocs0 map | grep -qx 0,7
tap "the external circuit is still there"
expect 0 "mode update takes them" weft apply --mode update -f "$T/full.yaml"
expect 0 "and verify agrees" weft verify

# A device that is gone.
stop ocs0
expect 69 "a switch that does not answer: nothing changes" \
	weft apply -f "$T/b.yaml"
has err "it is named" ocs0
weft status >"$T/out" 2>"$T/err"
has out "status does not call it proven" 'ocs0 .* NO +unverified'

# The ring: a program that does not arrive whole is never active.
emulator ocs0 polatis-scpi 8x8 || exit 1
weft apply -f "$T/a.yaml" >"$T/out" 2>&1
tap "a dark switch that came back is filled again"
for fault in corrupt-shadow ignore-commit; do
	control ring0 "fault $fault" >"$T/out"
	expect 3 "ring, $fault: rolled back" weft apply -f "$T/b.yaml"
	has err "ring, $fault: named" ring0
	control ring0 clear >"$T/out"
	expect 0 "ring, $fault: verify agrees" weft verify
done

# What became of a job's program on the way in is taken back.
control ring0 "fault corrupt-active" >"$T/out"
expect 3 "ring, corrupted while it was swapped in: rolled back" \
	weft apply -f "$T/b.yaml"
expect 0 "verify agrees" weft verify

# An unknown program is never overwritten unless that is requested.
control ring0 "flip gather" >"$T/out"
expect 2 "a setting flips: verify does not agree" weft verify
expect 65 "mode safe leaves the unknown program" weft apply -f "$T/b.yaml"
has err "and says why" 'ring0: holds a program'
expect 0 "mode update replaces it" weft apply --mode update -f "$T/a.yaml"
expect 0 "then verify agrees" weft verify
finish
