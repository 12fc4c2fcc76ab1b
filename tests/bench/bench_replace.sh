#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# All 384 circuits of a switch replaced by 384 others: weftd plans, sends, reads
# back, waits for what it was told to wait for, reads again and commits. The
# emulators answer at once, so what is left is weft's own time. "change" is from
# the record of intent in the journal to the commit, "apply" what the operator
# waits for, with the plan.
source "$(dirname "$0")/../lib.sh"
json=/dev/null
[[ ${1:-} == --json ]] && json=$2
DRIVERS=(polatis-scpi polatis-tl1 glimmerglass-tl1 calient-tl1 sonic-ocs)

options_of() { [[ $1 == sonic-ocs ]] && echo 1 || echo 0; }

fabric_of() { # DRIVER TOPOLOGY
	cat <<-END
	weft: 1
	fabric: replaced
	hosts:
	  - { name: "h[0-95]", ports: "p[0-3]", rate: 100Gbps, reactivation: 10ms }
	switches:
	  - { name: ocs, size: 384x384, driver: $1, address: "${ADDR[ocs]}",
	      options: { gap_ms: 0, settle_ms: $(options_of "$1") } }
	fibres:
	  - { from: "h[0-95].p[0-3]", to: "ocs.[1-384]" }
	jobs:
	  - { name: big, nodes: "h[0-95]", collective: allreduce, size: 1MiB, topology: "$2" }
	END
}

# Milliseconds of the newest change, which must have replaced everything.
change_ms() {
	weft history -n 1 --format json | /usr/bin/python3 -c '
import datetime, json, sys
c = json.load(sys.stdin)["changes"][0]
assert c["outcome"] == "committed" and "384 deleted, 384 made" in c["summary"], c
start, end = (datetime.datetime.fromisoformat(c[k].replace("Z", "+00:00"))
              for k in ("started_at", "ended_at"))
print(round((end - start).total_seconds() * 1000))'
}

printf '%-18s %10s %10s %6s   %s\n' driver change,ms apply,ms sets limit
for driver in "${DRIVERS[@]}"; do
	unset "ADDR[ocs]"
	emulator ocs "$driver" 384x384 || exit 1
	DAEMON_OPTIONS=(--poll 0)
	daemon || exit 1
	fabric_of "$driver" "UniRing(4,96)" >"$T/one.yaml"
	fabric_of "$driver" "DiC(96,{2,3,5,7})" >"$T/two.yaml"
	weft apply -f "$T/one.yaml" >"$T/out" 2>&1 || { cat "$T/out"; exit 1; }
	before=$(sets ocs)
	start=$(date +%s%N)
	weft apply -f "$T/two.yaml" >"$T/out" 2>&1 || { cat "$T/out"; exit 1; }
	apply=$((($(date +%s%N) - start) / 1000000))
	change=$(change_ms) || exit 1
	sets=$(($(sets ocs) - before))
	printf '%-18s %10d %10d %6d   %s\n' "$driver" "$change" "$apply" "$sets" \
		'300 ms and the device'
	printf '{"bench": "replace", "driver": "%s", "change_ms": %d, "apply_ms": %d, "sets": %d}\n' \
		"$driver" "$change" "$apply" "$sets" >>"$json"
	stop weftd
	stop ocs
	rm -rf "$STATE"
done
