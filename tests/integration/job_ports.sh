#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Requested jobs on some ports of their hosts: a drained port keeps away only who would have it, and
# a name of digits is no number.
source "$(dirname "$0")/../lib.sh"
cat >"$T/fabric.yaml" <<END
weft: 1
fabric: bed
hosts:
  - { name: "h[0-1]", ports: "[1-4]", rate: 100Gbps, reactivation: 0ms }
switches:
  - { name: ocs0, size: 8x8, driver: sim }
fibres:
  - { from: "h0.[1-4]", to: "ocs0.[1-4]" }
  - { from: "h1.[1-4]", to: "ocs0.[5-8]" }
END
daemon || exit 1
expect 0 "the fabric" weft apply -f "$T/fabric.yaml"
request() { # NAME PORTS
	weft job request "$1" --nodes h0,h1 --ports "$2" -c allreduce --size 1MB --no-wait
}
state() { weft job list --format json | jq -e ".jobs[] | select(.name == \"$1\" and .state == \"$2\")"; }

expect 0 "a job on the port that is named 3" request third "[3]"
wait_for 10 state third running
tap "  runs"
expect 75 "  and has it" weft circuit add h0.3 h1.3
has err "  by its name" 'h0.3 is held by .*job third'
expect 0 "  and none beside it" weft circuit add h0.1 h1.1 h0.2 h1.2 h0.4 h1.4 --name rest
expect 0 "  which end" weft circuit remove rest

expect 0 "a port is drained" weft drain h0.1
expect 0 "a job that names it" request first "[1]"
expect 0 "one that names another" request second "[2]"
wait_for 10 state second running
tap "  runs"
wait_for 10 state first queued
tap "  but not the first"
expect 0 "nor does a job of a number" request number 1
wait_for 10 state number queued
tap "  as it would have any"
expect 0 "undrained" weft undrain h0.1
wait_for 10 state first running
tap "  the first runs"
wait_for 10 state number running
tap "  and the other"
finish
