#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Two switches of one login: what it adds on one leaves what it has on the other, at the same numbers too.
source "$(dirname "$0")/../lib.sh"
emulator ocs0 polatis-scpi 8x8 && emulator ocs1 polatis-scpi 8x8 || exit 1
cat >"$T/fabric.yaml" <<END
weft: 1
fabric: two
hosts:
  - { name: dut, ports: "p[0-7]", rate: 100Gbps, reactivation: 1ms }
  - { name: tg1, ports: "p[0-7]", rate: 100Gbps, reactivation: 1ms }
switches:
  - { name: ocs0, size: 8x8, driver: polatis-scpi, address: "${ADDR[ocs0]}" }
  - { name: ocs1, size: 8x8, driver: polatis-scpi, address: "${ADDR[ocs1]}" }
fibres:
  - { from: "dut.p[0-3]", to: "ocs0.[1-4]" }
  - { from: "tg1.p[0-3]", to: "ocs0.[5-8]" }
  - { from: "dut.p[4-7]", to: "ocs1.[1-4]" }
  - { from: "tg1.p[4-7]", to: "ocs1.[5-8]" }
END
daemon || exit 1
expect 0 "the fabric" weft apply -f "$T/fabric.yaml"
holds() { # OCS0 OCS1: their circuits
	[[ $(map ocs0 | paste -sd' ') == "$1" && $(map ocs1 | paste -sd' ') == "$2" ]]
}
login() { SSH_ORIGINAL_COMMAND=$2 weft ocs-shell --switch "$1" --group bed; }

expect 0 "add" login ocs0 "config ocs cross-connect add 1A-5B update"
expect 0 "the same on another switch" login ocs1 "config ocs cross-connect add 1A-5B update"
holds 0,4 0,4
tap "  are both there"
expect 0 "another output of one" login ocs1 "config ocs cross-connect add 1A-6B update"
holds 0,4 0,5
tap "  leaves the other"
expect 0 "its output for another input" login ocs1 "config ocs cross-connect add 2A-6B update"
holds 0,4 1,5
tap "  leaves the other"
expect 0 "delete" login ocs0 "config ocs cross-connect delete 1A-5B"
holds "" 1,5
tap "  leaves the other"
expect 0 "delete" login ocs1 "config ocs cross-connect delete 2A-6B"
SSH_ORIGINAL_COMMAND="config save" expect 64 "a name that is too long" \
	weft ocs-shell --switch ocs0 --group "$(printf 'x%.0s' {1..52})"
SSH_ORIGINAL_COMMAND="config save" expect 0 "one that is not" \
	weft ocs-shell --switch ocs0 --group "$(printf 'x%.0s' {1..51})"
finish
