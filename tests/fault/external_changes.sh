#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# checklist 16: what others do to light is found, attributed and on record
# until it is right again; and where the fabric says so it is brought back. Once
# over real sockets: tests/sim/stories/external_stories.c has all dialects and cases.
source "$(dirname "$0")/../lib.sh"
emulator tl1 polatis-tl1 8x8 && emulator scpi polatis-scpi 8x8 || exit 1

fabric_of() { # CHANGES
	cat <<-END
	weft: 1
	fabric: shared
	hosts:
	  - { name: 'tl1-[0-3]', ports: 'p[0-1]', rate: 100Gbps }
	  - { name: 'scpi-[0-3]', ports: 'p[0-1]', rate: 100Gbps }
	switches:
	  - { name: tl1, size: 8x8, driver: polatis-tl1, address: "${ADDR[tl1]}", timeout: 2s, options: { gap_ms: 0 } }
	  - { name: scpi, size: 8x8, driver: polatis-scpi, address: "${ADDR[scpi]}", timeout: 2s, options: { gap_ms: 0 } }
	fibres:
	  - { from: 'tl1-[0-3].p[0-1]', to: 'tl1.[1-8]' }
	  - { from: 'scpi-[0-3].p[0-1]', to: 'scpi.[1-8]' }
	jobs:
	  - { name: jtl1, nodes: 'tl1-[0-3]', collective: allreduce, size: 1MiB, topology: 'UniRing(1,4)' }
	  - { name: jscpi, nodes: 'scpi-[0-3]', collective: allreduce, size: 1MiB, topology: 'UniRing(1,4)' }
	changes: { $1 }
	END
}
fabric_of "external-changes: report" >"$T/report.yaml"
fabric_of "external-changes: restore, restore-after: 100ms" >"$T/restore.yaml"
DAEMON_OPTIONS=(--poll 0)
daemon || exit 1
expect 0 "a fabric of two devices" weft apply -f "$T/report.yaml"
weft watch --format json >"$T/watch" 2>"$T/watch.err" </dev/null &
PID[watch]=$!
wait_for 10 grep -q resync "$T/watch"
tap "a client watches"
for n in tl1 scpi; do
	control $n map | sort >"$T/map-$n"
done

says() { # DEVICE FILTER: of its newest record
	weft external-changes "$1" -n 1 --format json | jq -e ".changes[0] | $2"
}
take() { # DEVICE: another user takes a circuit away; scpi says nothing, and is read
	control "$1" "unset $(control "$1" map | head -n 1)" >"$T/out"
	[[ $1 != scpi ]] || weft verify >"$T/out" 2>"$T/err"
}
for n in tl1 scpi; do
	before=$(sets $n)
	take $n
	wait_for 10 says $n '.kind == "gone" and .outcome == "open"'
	tap "$n: a circuit that another user removed is on record"
	[[ $(sets $n) == "$before" ]]
	tap "$n: nothing was sent"
done
says tl1 '.detected_by == "event" and (.who | test("the device says: REPT EVT"))' >"$T/out"
tap "the words of the device are there"
expect 2 "diff" weft diff
has out "names it" 'scpi +gone: in [0-9]+ -> out [0-9]+ +20.* to 20.* +(verify|event) +unknown +open'
grep -qE '"kind":"external-change".*"device":"tl1"' "$T/watch"
tap "those who watch hear of it"

expect 0 "now they are to be restored" weft apply -f "$T/restore.yaml"
restored() { # DEVICE
	control "$1" map | sort | diff -q - "$T/map-$1" && says "$1" '.outcome == "restored"'
}
for n in tl1 scpi; do
	take $n
	wait_for 8 restored $n
	tap "$n: exactly what went is there again"
done
stop watch
finish
