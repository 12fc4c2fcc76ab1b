#!/bin/bash
# checklist 16: what others do to light is found, attributed and on record
# until it is right again; and where the fabric says so it is brought back,
# but not against an owner, not by robots that were not told to, and not for
# ever.
source "$(dirname "$0")/../lib.sh"
emulator scpi polatis-scpi 8x8 &&
	emulator tl1 polatis-tl1 8x8 &&
	emulator gg glimmerglass-tl1 8x8 &&
	emulator ct calient-tl1 8x8 &&
	emulator sonic sonic-ocs 8x8 &&
	emulator rome rome-cli 8x8 &&
	emulator ring mrr-reg 4x4 || exit 1
ALL=(scpi tl1 gg ct sonic rome)

part() { # NAME DRIVER
	cat <<-END
	  - name: $1
	    size: 8x8
	    driver: $2
	    address: ${ADDR[$1]}
	    timeout: 2s
	    options: { gap_ms: 0 }
	    ${POLICY[$1]:-}
	END
}
fabric_of() { # CHANGES
	echo "weft: 1"
	echo "fabric: shared"
	echo "hosts:"
	for n in "${ALL[@]}"; do
		echo "  - { name: '$n-[0-3]', ports: 'p[0-1]', rate: 100Gbps }"
	done
	echo "  - { name: 'n[0-3]' }"
	echo "switches:"
	part scpi polatis-scpi
	part tl1 polatis-tl1
	part gg glimmerglass-tl1
	part ct calient-tl1
	part sonic sonic-ocs
	echo "panels:"
	part rome rome-cli
	cat <<-END
	rings:
	  - { name: ring, nodes: "n[0-3]", channels: 4, channel-rate: 40Gbps, driver: mrr-reg, address: "${ADDR[ring]}", timeout: 500ms }
	fibres:
	END
	for n in "${ALL[@]}"; do
		echo "  - { from: '$n-[0-3].p[0-1]', to: '$n.[1-8]' }"
	done
	echo "jobs:"
	for n in "${ALL[@]}"; do
		echo "  - { name: j$n, nodes: '$n-[0-3]', collective: allreduce, size: 1MiB, topology: 'UniRing(1,4)' }"
	done
	echo "  - { name: jring, ring: ring, nodes: all, collective: allgather, size: 1MiB }"
	echo "changes: { $1 }"
}
declare -A POLICY
fabric_of "external-changes: report" >"$T/report.yaml"
fabric_of "external-changes: restore, restore-after: 100ms" >"$T/restore.yaml"
POLICY[rome]="external-changes: restore"
fabric_of "external-changes: restore, restore-after: 100ms" >"$T/robots.yaml"
DAEMON_OPTIONS=(--poll 0)
daemon || exit 1
control rome "fault move=50" >"$T/out"
expect 0 "a fabric of seven devices" weft apply -f "$T/report.yaml"
weft watch --format json >"$T/watch" 2>"$T/watch.err" </dev/null &
PID[watch]=$!
wait_for 10 grep -q resync "$T/watch"
tap "a client watches"
for n in "${ALL[@]}"; do
	control $n map >"$T/map-$n"
done

first_circuit() { head -n 1 "$T/map-$1"; }
external() { # DEVICE: its newest record, on one line
	weft external-changes "$1" -n 1 --format json | tr -d '\n' | sed 's/  */ /g'
}
says() { # DEVICE PATTERN
	external "$1" | grep -qE "$2"
}

# Somebody takes a circuit away; devices that say nothing are read.
take() { # DEVICE
	control "$1" "unset $(first_circuit "$1")" >"$T/out"
	case $1 in scpi | sonic) weft verify >"$T/out" 2>"$T/err" ;; esac
}

# --- reported ---
for n in "${ALL[@]}"; do
	before=$(sets $n)
	take $n
	wait_for 10 says $n '"kind": "gone".*"outcome": "open"'
	tap "$n: a circuit that another user removed is on record"
	says $n '"detected_by": "(event|verify)"'
	tap "$n: with how it was noticed"
	[[ $(sets $n) == "$before" ]]
	tap "$n: nothing was sent"
done
says tl1 '"who": "the device says: REPT EVT' && says tl1 '"detected_by": "event"'
tap "the words of the device are there"
says rome '"who": "the device says: .*OP:disconnect'
tap "and those of the robot"
says scpi '"who": "unknown"'
tap "who cannot be known is unknown"
external scpi | python3 -c 'import json, sys
f = json.load(sys.stdin)["changes"][0]
assert f["last_good_at"] < f["detected_at"] and f["in"] > 0 and f["out"] > 0, f'
tap "it happened between two readings"
expect 2 "diff" weft diff
has out "names it" 'scpi +gone: in [0-9]+ -> out [0-9]+ +20.* to 20.* +(verify|event) +unknown +open'
expect 0 "status too" weft status
has out "by whom" 'the device says: REPT EVT'
expect 0 "and the device" weft device show tl1
has out "with the policy" 'external changes are +reported'
grep -qE '"kind":"external-change".*"device":"tl1"' "$T/watch"
tap "those who watch hear of it"
control gg "set $(first_circuit gg)" >"$T/out"
weft verify >"$T/out" 2>"$T/err"
wait_for 10 says gg '"outcome": "by itself"'
tap "what comes back by itself is over"
wait_for 10 grep -qE '"kind":"external-change-resolved".*"device":"gg"' "$T/watch"
tap "and told"
stop weftd
daemon
expect 0 "weftd starts again" weft wait --for ready --timeout 20s
says scpi '"outcome": "open"'
tap "and remembers"
control ct "set 5,5" >"$T/out"
weft verify >"$T/out" 2>"$T/err"
says ct '"kind": "appeared".*"in": 6.*"out": 6'
tap "a circuit that another user made is on record"
expect 0 "an operator applies" weft apply -f "$T/report.yaml"
id=$(weft history -n 1 --format json | sed -nE 's/.*"id": ([0-9]+).*/\1/p')
says scpi "\"outcome\": \"repaired\".*\"change\": $id"
tap "what was made right by a change names it"
says ct '"outcome": "open"'
tap "what a change left alone is still on record"
control ct "unset 5,5" >"$T/out"
weft verify >"$T/out" 2>"$T/err"

# --- restored ---
expect 0 "now they are to be restored" weft apply -f "$T/restore.yaml"
restored() { # DEVICE
	control "$1" map >"$T/now-$1"; sort "$T/now-$1" | diff -q - <(sort "$T/map-$1") && says "$1" '"outcome": "restored"'
}
for n in scpi tl1 gg ct sonic; do
	take $n
	wait_for 8 restored $n
	tap "$n: exactly what went is there again"
done
weft history -n 1 --format json >"$T/out"
has out "by a change of weftd's" '"who": "weftd"'
has out "that says why" '"comment": "restores [a-z0-9]+: 1 gone'
# Another one's circuit holds its ports.
in=$(first_circuit sonic)
control sonic "unset $in" >"$T/out"
control sonic "set ${in%%,*},7" >"$T/out"
weft verify >"$T/out" 2>"$T/err"
wait_for 20 restored sonic
tap "a circuit of no job is removed where it holds a port"
control scpi "set 5,5" >"$T/out"
weft verify >"$T/out" 2>"$T/err"
control scpi "unset $(first_circuit scpi)" >"$T/out"
weft verify >"$T/out" 2>"$T/err"
both() { control scpi map | sort | diff -q - <(sort "$T/map-scpi" <(echo 5,5)); }
wait_for 20 both
tap "and one that holds none is left alone"
control scpi "unset 5,5" >"$T/out"

# Another one's circuit, with an owner.
in=$(first_circuit gg)
expect 0 "hands in the rack" weft freeze
control gg "fault locked=o7" >"$T/out"
control gg "unset $in" >"$T/out"
control gg "set ${in%%,*},7" >"$T/out"
weft verify >"$T/out" 2>"$T/err"
before=$(sets gg)
expect 0 "that leave" weft unfreeze
wait_for 20 grep -q 'is in the way of .* and belongs to noc' "$T/weftd.log"
tap "the owner of what is in the way is named"
[[ $(sets gg) == "$before" ]] && control gg map | grep -qx "${in%%,*},7"
tap "and keeps it"
control gg clear >"$T/out"
weft verify >"$T/out" 2>"$T/err"
wait_for 20 restored gg
tap "until no one uses it any more"

control ring map >"$T/map-ring"
control ring unset >"$T/out"
weft verify >"$T/out" 2>"$T/err"
says ring '"kind": "program"'
tap "a ring's program that another user ended is on record"
wait_for 20 restored ring
tap "and loaded again"

before=$(sets rome)
control rome "unset $(first_circuit rome)" >"$T/out"
wait_for 10 says rome '"outcome": "open"'
tap "a robot"
sleep 1
[[ $(sets rome) == "$before" ]]
tap "is not moved by a policy that does not name its panel"

# --- not while it must not be ---
expect 0 "the fabric is frozen" weft freeze
control tl1 "unset $(first_circuit tl1)" >"$T/out"
wait_for 10 says tl1 '"outcome": "open"'
sleep 1
! control tl1 map | grep -qx "$(first_circuit tl1)"
tap "nothing is restored while it is"
expect 0 "until it is not" weft unfreeze
wait_for 20 restored tl1
tap "then it is"

# --- all dark after a loss of power ---
control ct "restart dark 100" >"$T/out"
noticed() { weft verify; says ct 'the map is empty|the device restarted'; }
wait_for 20 noticed
tap "a device that lost its map with its power is noticed"
wait_for 20 restored ct
tap "and has it again"

# --- a fight ---
undo() { # as a user would who wants it otherwise
	take gg
}
given_up() { says gg '"outcome": "open".*"given_up": true'; }
for ((i = 0; i < 40; i++)); do
	undo
	given_up && break
	sleep 0.3
done
given_up
tap "whoever undoes it each time wins"
grep -qE '"kind":"restore-given-up".*"device":"gg"' "$T/watch" || grep -q 'gg: restored 3 times' "$T/weftd.log"
tap "which is an alarm"
n=$(sets gg)
sleep 1
[[ $(sets gg) == "$n" ]]
tap "and only reported from then on"
expect 0 "status" weft status
has out "says so" 'gg is changed by another user again and again'
expect 0 "an operator's change" weft apply -f "$T/robots.yaml"
! given_up
tap "puts an end to it"
take gg
wait_for 20 restored gg
tap "and restoring begins again"

# The panel is named now.
control rome "unset $(first_circuit rome)" >"$T/out"
wait_for 20 restored rome
tap "a robot that was told to restores"
stop watch
finish
