#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A job of a number of ports that moves to a spare host: the hosts that stay keep their ports.
source "$(dirname "$0")/../lib.sh"
emulator ocs0 polatis-scpi 16x16 || exit 1
cat >"$T/fabric.yaml" <<END
weft: 1
fabric: bed
hosts:
  - { name: "h[0-2]", ports: "p[0-3]", rate: 100Gbps, reactivation: 1ms }
switches:
  - { name: ocs0, size: 16x16, driver: polatis-scpi, address: "${ADDR[ocs0]}",
      timeout: 10s, options: { gap_ms: 1, settle_ms: 20 } }
fibres:
  - { from: "h[0-2].p[0-3]", to: "ocs0.[1-12]" }
END
daemon || exit 1
expect 0 "the fabric" weft apply -f "$T/fabric.yaml"
expect 0 "a group on the lowest ports" weft circuit add h0.p0 h1.p0 --name low
expect 0 "a job of two ports" weft job request two --count 2 --ports 2 --repair spare -c allreduce \
	--size 1MB -t "Multi(K(2),2)"
[[ $(map ocs0 | paste -sd ' ') == "0,4 1,5 2,6 4,0 5,1 6,2" ]]
tap "  has the next"
expect 0 "the group ends" weft circuit remove low
control ocs0 "fault port-failed=o6" >"$T/out"
weft verify >"$T/out" 2>"$T/err"
moved() {
	weft job list --format json | jq -e '.jobs[] | select(.name == "two" and .problem == "" and
		.state == "running" and .nodes == ["h0", "h2"])'
}
wait_for 60 moved
tap "a port of its second host fails, and it moves to a spare"
[[ $(map ocs0 | paste -sd ' ') == "1,8 2,9 8,1 9,2" ]]
tap "  and the first keeps its ports"
finish
