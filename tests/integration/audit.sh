#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# checklist 24: who had what said to which device, what it answered, and what
# became of it. Nothing that sets light on a switch is left out.
cd "$(dirname "$0")" || exit 1
. ../lib.sh

emulator ocs0 polatis-tl1 384x384 && emulator ocs1 polatis-scpi 8x8
tap "two switches"
fabric_of() { # TOPOLOGY
	cat <<-END
	weft: 1
	fabric: audited
	hosts:
	  - { name: "h[0-95]", ports: "p[0-3]", rate: 100Gbps }
	  - { name: "g[0-3]", ports: "p[0-1]", rate: 100Gbps }
	switches:
	  - { name: ocs0, size: 384x384, driver: polatis-tl1, address: "${ADDR[ocs0]}", options: { gap_ms: 0, settle_ms: 1 } }
	  - { name: ocs1, size: 8x8, driver: polatis-scpi, address: "${ADDR[ocs1]}", options: { gap_ms: 0, settle_ms: 1 }, timeout: 500ms }
	fibres:
	  - { from: "h[0-95].p[0-3]", to: "ocs0.[1-384]" }
	  - { from: "g[0-3].p[0-1]", to: "ocs1.[1-8]" }
	jobs:
	  - { name: big, nodes: "h[0-95]", collective: allreduce, size: 1MiB, topology: "UniRing(4,96)" }
	  - { name: small, nodes: "g[0-3]", collective: allreduce, size: 1MiB, topology: "$1" }
	END
}
fabric_of "UniRing(1,4)" >"$T/one.yaml"
fabric_of "UniRing(2,4)" >"$T/two.yaml"
daemon
expect 0 "a batch of 384 circuits" weft apply -f "$T/one.yaml" -m "first light"
expect 0 "is in the audit trail" weft audit --change 1 --format json
cp "$T/out" "$T/audit"
[[ $(sets ocs0) == 384 ]]
tap "the switch was told to make 384"
/usr/bin/python3 - "$T/audit" <<-'END'
	import json, sys
	lines = json.load(open(sys.argv[1]))["audit"]
	ocs0 = [l for l in lines if l["device"] == "ocs0"]
	said = [l["text"] for l in ocs0 if l["kind"] == "command" and "ENT-PATCH" in l["text"]]
	answers = [l for l in ocs0 if l["kind"] == "reply" and "COMPLD" in l["text"]]
	assert len(said) == len(set(said)) == 384, len(said)
	assert len(answers) >= 384, len(answers)
	for l in lines:
	    assert l["who"] and l["outcome"] == "committed", l
	    assert l["proof"] in ("settled", "measured"), l
	ids = [l["id"] for l in lines]
	assert ids == sorted(set(ids))
END
tap "each by a line of its own, with its answer, who asked, what became of it, and how well it is proven"
has audit "the caller as the transport knows him" 'change 1 is in the journal, asked for by '"$(id -un)"' \(weft, process [0-9]+\)'
has audit "and the end" '"text": "committed: '

expect 0 "a second change" weft apply -f "$T/two.yaml" --confirm-within 1min
expect 0 "that is confirmed" weft confirm
expect 0 "by change and device" weft audit --change 2 --device ocs1
has out "the command" 'command +:oxc:swit:conn:add'
has out "and its answer" 'reply'
! grep -q ocs0 "$T/out"
tap "nothing of another device"
expect 0 "the fabric as a whole" weft audit -n 1
has out "who confirmed" 'event +confirmed by '"$(id -un)"
expect 0 "frozen" weft freeze -m "smoke"
expect 0 "recent ones" weft audit --since 1min -n 1
has out "that is there too" 'smoke'
expect 0 "the last nanosecond" weft audit --since 1ns --format json
has out "had nothing" '"audit": \[\]'
expect 0 "unfrozen" weft unfreeze

# What a device refuses is there with its words.
expect 0 "fewer circuits" weft apply -f "$T/one.yaml"
for ((i = 0; i < 8; i++)); do
	control ocs1 "fault refuse-port=o$i" >"$T/out"
done
expect 3 "a device that refuses" weft apply -f "$T/two.yaml"
id=$(weft history -n 1 --format json | sed -nE 's/.*"id": ([0-9]+).*/\1/p')
expect 0 "its audit" weft audit --change "$id"
has out "what became of it, and its words" 'rolled-back .*reply +-?[0-9]+, "[A-Z]'
stop weftd
daemon
expect 0 "after a restart" weft audit --change 1 -n 5
has out "it is still there" 'committed'
finish
