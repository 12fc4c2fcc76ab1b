#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What operators ask of devices beside light: ports enabled and disabled,
# waves that were lost found again, a homing run, moves cancelled. Who, why and
# every command is in the audit trail; nothing of it while a change runs or
# the fabric is frozen. Once over real sockets: tests/sim/stories/maintenance_stories.c
# has the rest.
cd "$(dirname "$0")" || exit 1
. ../lib.sh

emulators && emulator rome0 rome-cli 8x8 && fabric "$T/a.yaml" 'UniRing(1,4)'
tap "a fabric of emulators"
sed -i "s|^rings:|  - name: rome0\n    size: 8x8\n    driver: rome-cli\n    address: ${ADDR[rome0]}\n    options: { gap_ms: 0, poll_ms: 20, move_ms: 2000, queue: 2 }\n    timeout: 1s\n&|" "$T/a.yaml"
sed -i 's|^hosts:|&\n  - { name: "r[0-7]", ports: p0, rate: 100Gbps, reactivation: 10ms }|' "$T/a.yaml"
sed -i 's|^jobs:|  - { from: "r[0-7].p0", to: "rome0.[1-8]" }\n&|' "$T/a.yaml"
{
	cat "$T/a.yaml"
	echo "  - { name: slow, nodes: 'r[0-7]', collective: allreduce, size: 1MiB, topology: 'UniRing(1,8)', alpha: 10us }"
} >"$T/b.yaml"
daemon
expect 0 "applied" weft apply -f "$T/a.yaml"
weft watch --format json >"$T/watch" 2>/dev/null </dev/null &
PID[watch]=$!

# ---- ports
circuit=$(control ocs0 map | head -n 1)
in=$((${circuit%,*} + 1))
expect 75 "light that is meant to be there is not taken" \
	weft device port ocs0 "in$in" disable --reason "dirty"
has err "its circuit, ends and job are named" \
	"that interrupts circuit in $in -> out [0-9]+ \(h[0-3]\.p[01] to h[0-3]\.p[01], job reduce\)"
has err "and what does it" 'force'
[[ $(control ocs0 map | head -n 1) == "$circuit" ]]
tap "nothing was sent"
expect 0 "by force" weft device port ocs0 "in$in" disable --reason "dirty connector" --force --format json
jq -e ".device == \"ocs0\" and .done == \"in $in disabled\" and .evidence == \"read-back\"
	and (.interrupted | length) == 1" "$T/out" >/dev/null
tap "what was done, in JSON"
expect 2 "the light that went is a difference" weft diff
has out "beside the port that is out of use" "^ocs0: out of use: in $in disabled"
expect 0 "the device" weft device show ocs0 --format json
jq -e ".unusable == [\"in $in disabled\"] and .unusable_count == 1" "$T/out" >/dev/null
tap "tells it too"
expect 0 "the audit trail" weft audit --device ocs0
has out "has the command" ":oxc:swit:port:dis \(@$in\)"
has out "who asked, and why" "in $in disabled by .*, dirty connector: done, read back"
wait_for 10 grep -q '"device-maintenance".*dirty connector' "$T/watch"
tap "who watches is told"
expect 0 "a plan goes around the port" weft apply -f "$T/a.yaml"
! control ocs0 map | grep -q "^${circuit%,*},"
tap "the port has no light"
expect 0 "all is as intended" weft diff
expect 0 "enabled again" weft device port ocs0 "in$in" enable
expect 0 "and plans use it" weft apply -f "$T/a.yaml"
expect 0 "errors are forgotten" weft device recover ocs0 --clear
has out "in words" '0 errors waited'

# ---- rings: checklist 16, lost locks are differences that name resonators.
control ring0 "fault drift=20" >/dev/null
wait_for 10 eval 'weft status --format json | jq -e ".devices[] | select(.name == \"ring0\").program.lost_count >= 2"'
tap "weftd hears of lost locks"
control ring0 clear >/dev/null
weft verify >/dev/null 2>&1
expect 2 "which are differences" weft diff --format json
jq -e '.devices[] | select(.name == "ring0").program |
	.lost_count == (.lost | length) and .unlocked > 0 and .failed_count == 0 and
	all(.lost[]; test("^n[0-9] c?cw fibre 0 channel [0-9]: lock lost$"))' "$T/out" >/dev/null
tap "host, direction, fibre, channel and kind"
expect 2 "in the table too" weft diff
has out "one a line" '^ *ring0 +not locked +n[0-9] c?cw fibre 0 channel [0-9]: lock lost'
grep -qE '"device-report".*alarm: n[0-9] c?cw fibre 0 channel [0-9]: lock lost' "$T/watch"
tap "each was told when it happened"
sets=$(sets ring0)
generation=$(control ring0 slots | awk '$4 == "gather" { print $6 }')
expect 0 "they search again" weft device recover ring0 --relock --reason "after the heat" --format json
jq -e '.done == "relock" and .text == "all settings are locked"' "$T/out" >/dev/null
tap "and find it"
expect 0 "no difference is left" weft verify
[[ $(sets ring0) == "$sets" && $(control ring0 slots | awk '$4 == "gather" { print $6 }') == "$generation" ]]
tap "without a commit"

# ---- robots: checklist 22, a change is cancelled; moves that were not put into
# the robot's queue are left out, those in it end, and what was made goes back.
control rome0 "fault move=400" >/dev/null
weft apply -f "$T/b.yaml" >"$T/apply" 2>&1 </dev/null &
PID[apply]=$!
wait_for 10 eval '(($(sets rome0) >= 2))'
expect 75 "no port is set in the middle" weft device port ocs0 in8 disable --reason test
has err "as a change runs" 'a change is under way'
weft cancel >"$T/cancel" 2>&1
wait "${PID[apply]}"
[[ $? == 3 ]]
tap "cancelled: rolled back"
unset 'PID[apply]'
! control rome0 map | grep -q ,
tap "the robot's circuits are gone"
moves=$(control rome0 stats | awk '$1 == "sets" { print $2 }')
((moves <= 4))
tap "of eight moves two were made, and taken back ($moves)"
control rome0 clear >/dev/null
finish
