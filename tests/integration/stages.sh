#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# checklist 10: a floor of capacity: while all
# circuits of a switch move, its map is looked at all the time, and no host
# ever has less than it was promised. Once over real sockets:
# tests/sim/stories/stage_stories.c has plans, the way back, and weftd that is killed in
# the middle.
source "$(dirname "$0")/../lib.sh"
emulator ocs0 polatis-scpi 32x32 || exit 1

# config FILE TOPOLOGY KEEP
config() {
	cat >"$T/$1" <<-END
		weft: 1
		fabric: floor
		hosts:
		  - { name: "h[0-7]", ports: "p[0-3]", rate: 100Gbps }
		switches:
		  - name: ocs0
		    size: 32x32
		    driver: polatis-scpi
		    address: ${ADDR[ocs0]}
		    options: { gap_ms: 5, settle_ms: 20 }
		    timeout: 3s
		fibres:
		  - { from: "h[0-7].p[0-3]", to: "ocs0.[1-32]" }
		jobs:
		  - { name: sum, nodes: all, collective: allreduce, size: 1MiB, topology: '$2' }
		changes:
		  keep: $3
	END
}
config a.yaml 'C(8,{1,2})' 75%
config b.yaml 'C(8,{2,3})' 75%
config c.yaml 'C(8,{2,3})' 76%
daemon || exit 1
expect 0 "all dark: one stage" weft apply -f "$T/a.yaml"

# Looks at the map until $T/stop is there; one line a look, the circuits.
cat >"$T/look" <<END
import os, socket, time
while not os.path.exists("$T/stop"):
    with socket.socket(socket.AF_UNIX) as s:
        s.connect("${CTL[ocs0]}")
        s.sendall(b"map\n")
        s.shutdown(socket.SHUT_WR)
        circuits = [line for line in s.makefile() if "," in line]
    print(*map(str.strip, circuits), flush=True)
    time.sleep(0.005)
END
watch_map() {
	rm -f "$T/stop" "$T/maps"
	python3 "$T/look" >"$T/maps" &
	PID[look]=$!
	wait_for 10 test -s "$T/maps"
}
# The least circuits that a host sent or received by, and of looks the number
# that were not the first or the last.
least() {
	touch "$T/stop"
	wait "${PID[look]}"
	unset 'PID[look]'
	awk 'NF { if ($0 != last) seen++; last = $0
		delete n
		for (i = 1; i <= NF; i++) { split($i, p, ",")
			n["t" int(p[1] / 4)]++; n["r" int(p[2] / 4)]++ }
		for (h = 0; h < 8; h++) {
			if (min == "" || n["t" h] < min) min = n["t" h] + 0
			if (n["r" h] < min) min = n["r" h] + 0 } }
		END { print min + 0, seen - 2 }' "$T/maps"
}

expect 2 "the plan is cut into stages" weft plan -f "$T/b.yaml" --format json
stages=$(jq '.stages | length' "$T/out")
expect 65 "more cannot be kept" weft plan -f "$T/c.yaml"
has err "and says what" 'c.yaml:17:3: .*the floor cannot be kept in domain ocs0: keep: what h[0-7] (sends|receives) would fall to 300Gbps of 400Gbps, at least 304Gbps must stay'

watch_map
expect 0 "forth" weft apply -f "$T/b.yaml"
read -r min seen < <(least)
echo "# forth: at least $min circuits a host, $seen maps in between"
[[ $min == 3 && $seen -ge 2 ]]
tap "no host ever had less than three of its four circuits"
has err "stage by stage" "stage $stages of $stages"
finish
