#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A lab of 24 hosts on two switches and a robot's panel loses a port: an apply touches four
# circuits at most, the two of the port and two of a spare one, and none where there is none.
source "$(dirname "$0")/../lib.sh"
emulator ocs0 polatis-scpi 48x48 && emulator ocs1 polatis-scpi 48x48 &&
	emulator panel0 telescent-cli 48x48 --fault move=20 || exit 1
cat >"$T/lab.yaml" <<-END
	weft: 1
	fabric: lab
	hosts:
	  - { name: "gpu[00-23]", ports: "p[0-3]", rate: 100Gbps, reactivation: 500ms }
	switches:
	  - { name: ocs0, size: 48x48, driver: polatis-scpi, address: "${ADDR[ocs0]}", options: { gap_ms: 1 }, loss: 1.5dB }
	  - { name: ocs1, size: 48x48, driver: polatis-scpi, address: "${ADDR[ocs1]}", options: { gap_ms: 1 }, loss: 1.5dB }
	panels:
	  - { name: panel0, size: 48x48, driver: telescent-cli, address: "${ADDR[panel0]}" }
	fibres:
	  - { from: "gpu[00-23].p[0-1]", to: "ocs0.[1-48]", loss: 0.3dB }
	  - { from: "gpu[00-23].p2", to: "ocs1.[1-24]", loss: 0.3dB }
	  - { from: "gpu[00-23].p3", to: "panel0.[1-24]", loss: 0.3dB }
	  - { from: "ocs1.[25-48]", to: "panel0.[25-48]" }
	jobs:
	  - { name: train, nodes: "gpu[00-07]", collective: allreduce, size: 256MiB, topology: auto }
	  - { name: moe, nodes: "gpu[12-19]", collective: all-to-all, size: 64MiB, topology: auto }
	  - { name: small, nodes: "gpu[20-23]", collective: allgather, size: 1MiB, topology: "UniRing(1,4)" }
END
daemon || exit 1
expect 0 "the lab is applied" timeout 100 weft apply -f "$T/lab.yaml"

# touched: circuits that an apply would make or delete.
touched() {
	weft plan --format json 2>/dev/null | jq '[.devices[] | (.add, .delete)[]] | length'
}
# lose PORT: both ways, as the map counts it, and what that touches to $n.
lose() {
	control ocs0 "fault port-failed=i$1" >"$T/answer"
	control ocs0 "fault port-failed=o$1" >"$T/answer"
	weft verify >"$T/out" 2>"$T/err"
	n=$(touched)
	echo "# port $1: $n circuits"
}
for port in 0 30; do
	lose "$port"
	[[ $n == 0 ]]
	tap "port $port, and its host has no other: nothing is touched"
	control ocs0 clear >"$T/answer"
	weft verify >"$T/out" 2>"$T/err"
done
# small has one of four ports of each host.
port=$(control ocs0 map | awk -F'[ ,]+' '$1 >= 40 && $2 >= 40 { print $1; exit }')
lose "$port"
[[ $n -ge 1 && $n -le 4 ]]
tap "port $port, and its host has spare ones: at most 4 circuits"
# A terminal of 80 columns, with and without a job that lacks light.
narrow() {
	for what in status plan; do
		! COLUMNS=80 weft "$what" | grep -E '^.{81}'
		tap "$what takes 80 columns $1"
	done
}
narrow "with faults"
expect 0 "they are made" weft apply
narrow "when all is well"
[[ $(weft status --format json | jq -r '.jobs[] | select(.name == "small").health') == up ]]
tap "and the job is whole"

# To empty a port is no reason for another topology where that is slower than what is left.
control ocs0 clear >"$T/answer"
weft verify >"$T/out" 2>"$T/err"
expect 1 "a port whose light has no other way" weft drain ocs0.1 --evacuate --dry-run
has err "stays lit, and why" "no other topology is faster than it is without that light"
has out "and nothing is touched" "0 to add, 0 to delete"
expect 0 "a switch has another way" weft drain ocs0 --evacuate
expect 0 "and is given back" weft undrain ocs0
gains() { weft status --format json | jq -e '.jobs[] | select(.name == "train").advice | contains("weft apply --optimise")' >"$T/gain"; }
wait_for 10 gains
tap "status says what an apply would gain then"
finish
