#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# checklist 22: draining and freezing: no new light where it is not wanted, over a restart
# of weftd too.
cd "$(dirname "$0")" || exit 1
. ../lib.sh

export RING=no
emulators && fabric "$T/one.yaml" 'UniRing(1,4)' &&
	fabric "$T/two.yaml" 'UniRing(2,4)' &&
	RING=yes fabric "$T/three.yaml" 'UniRing(1,4)'
tap "a fabric of emulators"
DAEMON_OPTIONS=(--fabric "$T/one.yaml")
daemon

expect 65 "nothing of that name" weft drain h9
expect 0 "a host's port is drained" weft drain h0.p0 -m "dirty fibre" --format json
has out "it is listed" '"reason": "dirty fibre"'
expect 0 "once more is no error" weft drain h0.p0
expect 0 "a plan goes around it" weft apply -f "$T/one.yaml"
expect 0 "what was made" weft status --format json
control ocs0 map >"$T/map"
grep -q , "$T/map" && ! grep -E '(^|,)0(,|$)' "$T/map"
tap "the first port of the switch has no light"
expect 65 "what cannot go around is refused" weft plan -f "$T/two.yaml"
has err "with a hint" 'parts of the fabric are drained'

expect 0 "the whole switch is drained" weft drain ocs0
expect 0 "what has light keeps it" weft apply -f "$T/one.yaml"
expect 0 "the port is no longer drained" weft undrain h0.p0
expect 65 "nothing new comes to the switch" weft apply -f "$T/two.yaml"
control ocs0 map | diff "$T/map" -
tap "its light is as it was"
expect 0 "no longer" weft undrain ocs0
expect 65 "there is nothing more to undrain" weft undrain ocs0

# What is lit at a drained host stays, what is dark there stays dark, and its job is planned.
weft drain h1 >/dev/null
expect 0 "a drained host's light: nothing to do" weft plan
xc=$(grep -m 1 '^2,\|^3,' "$T/map")
control ocs0 "unset $xc" >/dev/null
grep -v "^$xc" "$T/map" >"$T/less"
expect 0 "a circuit of it is lost: it is not made" weft apply
has err "and the job is named with the reason" 'job .*: 1 of its 4 circuits cannot be brought back'
control ocs0 map | diff "$T/less" -
tap "the others are as they were"
weft undrain h1 >/dev/null
expect 2 "undrained, it would be" weft plan --format json
[[ $(jq '[.devices[].add[]] | length' "$T/out") == 1 ]]
tap "and nothing else"
expect 0 "and is" weft apply
control ocs0 map | diff "$T/map" -
tap "all is as before"

# Light moves away only when it is asked to, and the cost is told first.
sets() { control ocs0 "log 0" | grep -c ' session made '; }
expect 64 "a dry run of a drain" weft drain h1.p0 --dry-run
port=$(grep -m 1 '^2,\|^3,' "$T/map" | cut -d, -f1)
part=h1.p$((port - 2))
made=$(sets)
expect 2 "what would move, and its cost" weft drain $part --evacuate --dry-run
has out "is told" '2 to add, 2 to delete, 2 kept'
[[ $(sets) == "$made" && $(weft status --format json | jq '.holds | length') == 0 ]]
tap "nothing is drained or moved by it"
is_drained() { weft status --format json | jq -e --arg part "$1" 'any(.holds[]; .target == $part)' >"$T/drained"; }
weft freeze -m stop >/dev/null
expect 75 "a change that is refused" weft drain $part --evacuate
weft unfreeze >/dev/null
control ocs0 "fault refuse-port=o$((5 - port))" >/dev/null
expect 3 "and one that is rolled back" weft drain $part --evacuate
! is_drained $part
tap "drain nothing"
control ocs0 clear >/dev/null
made=$(sets)
expect 0 "the port is emptied" weft drain $part --evacuate -m lens
is_drained $part
tap "and drained"
has out "what it costs is told" '2 to add, 2 to delete, 2 kept'
control ocs0 map >"$T/now"
! grep -q "^$port,\|,$port$" "$T/now" && [[ $(grep -c , "$T/now") == 4 && $(sets) == $((made + 2)) ]]
tap "it has no light, and 2 circuits were made elsewhere"
expect 1 "what cannot move" weft drain h1 --evacuate --format json
has err "stays, and is named" 'job .*: not all of its light can move away: .* h1'
has err "and so are the circuits" 'h1 is not empty: 2 circuits'
expect 0 "what has no light is empty" weft drain $part --evacuate
control ocs0 map | diff "$T/now" -
tap "as it was"
weft undrain h1 >/dev/null
expect 0 "it is given back" weft undrain $part
has err "and what comes back with it" 'weft apply would make 0 circuits'

expect 0 "a host is drained" weft drain n3
expect 75 "no new job on its ring" weft apply -f "$T/three.yaml"
has err "which says why" 'n3 is drained by .*: no program of job gather'
expect 0 "the host is back" weft undrain n3
expect 0 "its job too" weft apply -f "$T/three.yaml"
expect 1 "its light cannot move away" weft drain n3 --evacuate --dry-run
has err "and the job is named" 'job gather: its light cannot move away from n3: it stays on its'

expect 0 "the emergency freeze" weft freeze -m "smoke in row 3"
expect 75 "no change" weft apply -f "$T/two.yaml"
has err "and why" 'smoke in row 3'
expect 75 "not back either" weft rollback
stop weftd
daemon
expect 0 "status after a restart" weft status
has out "says that it is frozen" 'frozen'
expect 75 "still no change" weft apply -f "$T/two.yaml"
expect 0 "released" weft unfreeze
expect 0 "changes again" weft apply -f "$T/two.yaml"
expect 0 "what happened" weft watch --after 1 -n 1 --format json
has out "begins with a resync" '"kind":"resync"'
expect 0 "waiting for what is so" weft wait --for device=ocs0:reachable --timeout 5s
expect 124 "waiting for what is not" weft wait --for generation=99 --timeout 100ms
expect 64 "waiting for nothing" weft wait --for sunshine
finish
