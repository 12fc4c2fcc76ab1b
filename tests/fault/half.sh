#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A circuit of a device of two phases loses its light and stays in the list, as
# when a delete was cut short: status says what it is, and the next apply of the
# same configuration brings it to light and touches nothing else.
source "$(dirname "$0")/../lib.sh"
emulator ocs0 calient-tl1 8x8 || exit 1
cat >"$T/fabric.yaml" <<END
weft: 1
fabric: half
hosts:
  - { name: "h[0-3]", ports: "p[0-1]", rate: 100Gbps, reactivation: 1ms }
switches:
  - { name: ocs0, size: 8x8, driver: calient-tl1, address: "${ADDR[ocs0]}", options: { gap_ms: 0, settle_ms: 10 } }
fibres:
  - { from: "h[0-3].p[0-1]", to: "ocs0.[1-8]" }
jobs:
  - { name: j, nodes: "h[0-3]", collective: allreduce, size: 1MiB, topology: "Ring(4)", alpha: 1us }
END
# tl1 COMMANDS: as another session of the device.
tl1() {
	nc -N -w 2 "${ADDR[ocs0]%:*}" "${ADDR[ocs0]##*:}" <<<"ACT-USER::admin:1::admin;$1"
}
daemon || exit 1
expect 0 "a job" weft apply -f "$T/fabric.yaml"
control ocs0 map | grep , >"$T/map"
xc=$(head -n 1 "$T/map")
in=$((${xc%,*} + 1)) out=$((${xc#*,} + 1))

tl1 "CANC-CRS:::2::1.1.$in>1.1.$out;" >"$T/tl1"
control ocs0 map | grep -qx "$xc"
[[ $? == 1 ]]
tap "one circuit is made dark"
tl1 "RTRV-CRS:::3::ALL;" | grep -q "1.1.$in.*1.1.$out"
tap "and the device still lists it"
expect 2 "verify does not agree" weft verify --format json
jq -e ".devices[0] | .missing == [.missing[0]] and .missing[0].in == $in and .missing[0].out == $out and .proof == \"unverified\"" "$T/out" >"$T/jq"
tap "it is missing"
expect 0 "status" weft status --format json
jq -e ".devices[0].problem == \"in $in -> out $out is listed, but blocked: it has no light\"" "$T/out" >"$T/jq" ||
	jq -c '.devices[0].problem' "$T/out" | sed 's/^/# /;q1'
tap "says what it is"
expect 2 "a plan of the same configuration" weft plan -f "$T/fabric.yaml" --format json
jq -e '.add == 1 and .delete == 0 and .keep == 7' "$T/out" >"$T/jq"
tap "makes that one"
seen=$(control ocs0 log | grep -c ' session ')
expect 0 "apply" weft apply -f "$T/fabric.yaml"
[[ $(control ocs0 "log $seen" | sed -n 's/.* session //p' | paste -sd ' ') == "made $xc" ]]
tap "moves nothing else"
control ocs0 map | grep , | cmp -s - "$T/map"
tap "all light is there"
expect 0 "verify agrees" weft verify
finish
