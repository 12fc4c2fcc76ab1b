#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A rack loses its power, weftd's board with it: what the switches forgot is restored
# where the file says `at-boot: restore`, and nothing that others made goes for it.
cd "$(dirname "$0")" || exit 1
. ../lib.sh

for name in back told late; do
	emulator $name polatis-scpi 16x16
	tap "a switch that forgets: $name"
done
emulator ring0 mrr-reg 8x4
tap "and a ring"
one() { # NAME MORE
	echo "  - { name: $1, size: 16x16, driver: polatis-scpi, address: '${ADDR[$1]}', options: { gap_ms: 0, settle_ms: 1 }, timeout: 500ms$2 }"
}
{
	cat <<-END
	weft: 1
	fabric: powerless
	changes: { restore-after: 100ms }
	hosts:
	  - { name: "a[0-3]", ports: "p[0-1]", rate: 100Gbps }
	  - { name: "b[0-3]", ports: "p[0-1]", rate: 100Gbps }
	  - { name: "c[0-3]", ports: "p[0-1]", rate: 100Gbps }
	  - { name: "n[0-7]" }
	switches:
	END
	one back ", at-boot: restore"
	one told ""
	one late ", at-boot: restore"
	cat <<-END
	rings:
	  - { name: ring0, nodes: "n[0-7]", channels: 4, channel-rate: 40Gbps, retune: 25us, driver: mrr-reg, address: "${ADDR[ring0]}", timeout: 500ms, at-boot: restore }
	fibres:
	  - { from: "a[0-3].p[0-1]", to: "back.[1-8]" }
	  - { from: "b[0-3].p[0-1]", to: "told.[1-8]" }
	  - { from: "c[0-3].p[0-1]", to: "late.[1-8]" }
	jobs:
	  - { name: ja, nodes: "a[0-3]", collective: allreduce, size: 1MiB, topology: "UniRing(1,4)" }
	  - { name: jb, nodes: "b[0-3]", collective: allreduce, size: 1MiB, topology: "UniRing(1,4)" }
	  - { name: jc, nodes: "c[0-3]", collective: allreduce, size: 1MiB, topology: "UniRing(1,4)" }
	  - { name: jr, ring: ring0, nodes: all, collective: allgather, size: 1MiB }
	END
} >"$T/f.yaml"
DAEMON_OPTIONS=(--poll 1)
daemon
expect 0 "applied" weft apply -f "$T/f.yaml"
expect 0 "a device" weft device show back
has out "says its policy" 'at boot they are +restored'
expect 0 "status" weft status
has out "knows who restores it" 'back,late: each forgets its map when it loses power: weftd restores it when it starts'
for name in back told late ring0; do
	control $name map | sort >"$T/map-$name"
done

# While weftd runs the other policy holds.
control back "unset $(head -n 1 "$T/map-back")" >"$T/out"
external() { # DEVICE PATTERN
	weft external-changes "$1" --format json | tr -d '\n' | sed 's/  */ /g' | grep -qE -- "$2"
}
wait_for 20 external back '"kind": "gone"'
tap "while weftd runs it only reports"
expect 0 "an operator restores it" weft apply -f "$T/f.yaml"

# The power goes; one switch comes back later than weftd. On "back" others take a
# port meanwhile, and one of no job.
stop weftd KILL
for name in back told ring0; do
	control $name "restart dark 20" >"$T/out"
done
stop late KILL
lost() { [[ $(control "$1" map) == ok ]]; }
wait_for 10 lost back && wait_for 10 lost told
tap "the power fails"
first=$(head -n 1 "$T/map-back")
free="${first%%,*},12"
control back "set $free" >"$T/out"
control back "set 13,13" >"$T/out"
before=$(sets told)
daemon
expect 0 "weftd starts" weft wait --for ready --timeout 30s
same() { control "$1" map | sort | diff -q - "${2:-$T/map-$1}"; }
{ tail -n +2 "$T/map-back"; echo "$free"; echo 13,13; } | sort >"$T/map-shared"
wait_for 30 same back "$T/map-shared"
tap "what the switch lost is back, but for a circuit whose port others use"
external back "\"kind\": \"gone\".*\"outcome\": \"open\""
tap "which is reported"
wait_for 30 same ring0
tap "the ring has its program"
weft history -n 5 --format json >"$T/out"
has out "by a change that says so" '"comment": ".*back restored at boot: 4 gone'
has out "of weftd's" '"who": "weftd"'
[[ $(sets told) == "$before" ]] && lost told
tap "a switch without the policy is left as it is"
external told '"detected_by": "at start".*"outcome": "open"'
tap "and reported"
emulator late polatis-scpi 16x16
tap "a switch comes back after weftd"
wait_for 60 same late
tap "and is restored as well"

# Not what a start finds the second time.
control back "unset 13,13" >"$T/out"
control back "unset $free" >"$T/out"
wait_for 60 same back
tap "when the others go, the last one comes back"
expect 0 "an operator freezes the fabric" weft freeze
stop weftd
control back "restart dark 20" >"$T/out"
wait_for 10 lost back
daemon
expect 0 "weftd starts" weft wait --for ready --timeout 30s
again() { external back '("outcome": "open".*){4}'; }
wait_for 20 again && lost back
tap "while it is frozen nothing is restored"
expect 0 "no longer" weft unfreeze
wait_for 30 same back
tap "then it is"
finish
