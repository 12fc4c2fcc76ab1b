#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# checklist 17: whoever plans light is told beforehand which devices forget it
# with their power, and a restart that took it is noticed as one.
cd "$(dirname "$0")" || exit 1
. ../lib.sh

emulator dark polatis-scpi 8x8 && emulator kept polatis-scpi 8x8 --state "$T/kept.state"
tap "a switch that forgets, and one that does not"
cat >"$T/f.yaml" <<END
weft: 1
fabric: powerless
hosts:
  - { name: "a[0-3]", ports: "p[0-1]", rate: 100Gbps }
  - { name: "b[0-3]", ports: "p[0-1]", rate: 100Gbps }
switches:
  - { name: dark, size: 8x8, driver: polatis-scpi, address: "${ADDR[dark]}", options: { gap_ms: 0, settle_ms: 1 }, timeout: 500ms }
  - { name: kept, size: 8x8, driver: polatis-scpi, address: "${ADDR[kept]}", options: { gap_ms: 0, settle_ms: 1 }, timeout: 500ms }
fibres:
  - { from: "a[0-3].p[0-1]", to: "dark.[1-8]" }
  - { from: "b[0-3].p[0-1]", to: "kept.[1-8]" }
jobs:
  - { name: ja, nodes: "a[0-3]", collective: allreduce, size: 1MiB, topology: "UniRing(1,4)" }
  - { name: jb, nodes: "b[0-3]", collective: allreduce, size: 1MiB, topology: "UniRing(1,4)" }
END
sed 's/, timeout: 500ms }/, timeout: 500ms, external-changes: restore }/' "$T/f.yaml" >"$T/g.yaml"
DAEMON_OPTIONS=(--poll 1)
daemon
expect 2 "a plan" weft plan -f "$T/f.yaml"
has out "warns of the one" 'dark.* forgets its map when it loses power'
! grep -q 'kept.* map when' "$T/out"
tap "and not of the other"
expect 2 "for programs" weft plan -f "$T/f.yaml" --format json
has out "too" '"power_loss": "dark"'
has out "both" '"power_loss": "last map"'
expect 0 "applied" weft apply -f "$T/f.yaml"
expect 0 "status" weft status
has out "keeps saying so" 'dark forgets its map when it loses power: "weft apply" restores it'
expect 0 "the device too" weft device show kept
has out "in its own words" 'power loss +last map'

control dark map >"$T/map-dark"
control kept map >"$T/map-kept"
control dark "restart dark 50" >"$T/out"
control kept "restart kept 50" >"$T/out"
lost() { [[ $(weft external-changes dark --format json | grep -c '"kind": "gone"') == 4 ]]; }
wait_for 20 lost
tap "a loss of power is found"
expect 0 "its record" weft external-changes dark
has out "says what it looked like" 'the map is empty, as after a loss of power'
control kept map | diff -q - "$T/map-kept" && ! weft external-changes kept | grep -q gone
tap "the other one lost nothing"
expect 0 "applied with a policy" weft apply -f "$T/g.yaml"
expect 0 "status" weft status
has out "knows who restores it" 'dark forgets its map when it loses power: weftd restores it'
control dark "restart dark 50" >"$T/out"
again() {
	control dark map >"$T/now"
	sort "$T/now" | diff -q - <(sort "$T/map-dark") &&
		[[ $(weft external-changes dark --format json | grep -c '"outcome": "restored"') == 4 ]]
}
wait_for 20 again
tap "and weftd does"
finish
