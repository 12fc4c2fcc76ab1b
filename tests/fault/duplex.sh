#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# checklist 12: a duplex link is two moves of a robot. The second one fails: the
# first is taken back, what was there before is there again, and the robot's own
# log shows that it was so.
source "$(dirname "$0")/../lib.sh"

# fabric NAME NODES: a link between two hosts by a robot.
fabric() {
	cat <<-END
	weft: 1
	fabric: duplex
	hosts:
	  - { name: "h[0-3]", ports: p0, rate: 100Gbps, reactivation: 1ms }
	switches:
	  - { name: panel, size: 4x4, driver: $1, address: "${ADDR[$1]}", timeout: 2s, options: { gap_ms: 0 } }
	fibres:
	  - { from: "h[0-3].p0", to: "panel.[1-4]" }
	jobs:
	  - { name: link, nodes: "$2", collective: allreduce, size: 1MiB, topology: "UniRing(1,2)", alpha: 1us }
	END
}
# moved DEVICE MOVES: what sessions moved since the last call.
moved() {
	local got
	control "$1" "log $SEEN" >"$T/log"
	SEEN=$((SEEN + $(grep -c ' session ' "$T/log")))
	got=$(sed -n 's/^[0-9]* [0-9]* session //p' "$T/log" | paste -sd ' ')
	[[ $got == "$2" ]] || echo "# moved: $got"
	[[ $got == "$2" ]]
}

for d in rome-cli telescent-cli; do
	SEEN=0
	emulator "$d" "$d" 4x4 || exit 1
	daemon || exit 1
	fabric "$d" "h[0-1]" >"$T/one.yaml"
	fabric "$d" "h[2-3]" >"$T/two.yaml"

	control "$d" "fault conn-failed=o0" >"$T/ctl"
	expect 3 "$d: half of a new link fails" weft apply -f "$T/one.yaml"
	has err "which is named" 'panel: in 2 -> out 1'
	moved "$d" "made 0,1 gone 0,1"
	tap "the other half was made and taken back"
	control "$d" clear >"$T/ctl"
	expect 0 "then the link is made" weft apply -f "$T/one.yaml"
	moved "$d" "made 0,1 made 1,0"
	tap "by two moves"

	control "$d" "fault conn-failed=o2" >"$T/ctl"
	expect 3 "half of another link in its place fails" weft apply -f "$T/two.yaml"
	moved "$d" "gone 0,1 gone 1,0 made 2,3 gone 2,3 made 1,0 made 0,1"
	tap "what went, and what was made of the other, is taken back"
	control "$d" map | grep , | sort | paste -sd ' ' >"$T/map"
	[[ $(cat "$T/map") == "0,1 1,0" ]] || sed 's/^/# /' "$T/map"
	[[ $(cat "$T/map") == "0,1 1,0" ]]
	tap "the old link is whole"
	control "$d" clear >"$T/ctl"
	expect 0 "as verify says" weft verify
	stop weftd
	rm -rf "$STATE"
done
finish
