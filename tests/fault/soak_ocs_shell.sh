#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Scripts of 20 testbeds at once on the command lines of two switches of 1,024 ports, with the commands that
# sonic-mgmt's send, while weftd is killed every few seconds: BEDS testbeds (1000) of 1 to 6 pairs, each over either
# switch. The second has the CLI that is made from YANG. Judged by the emulators' own maps.
source "$(dirname "$0")/../lib.sh"
CLIENTS=20
BEDS=${BEDS:-1000}
emulator ocs0 sonic-ocs 1024x1024 && emulator ocs1 sonic-ocs 1024x1024 --form yang --fault complete=100 || exit 1
cat >"$T/fabric.yaml" <<END
weft: 1
fabric: bed
hosts:
  - { name: dut, ports: "p[0-1023]", rate: 100Gbps, reactivation: 1ms }
  - { name: tg1, ports: "p[0-1023]", rate: 100Gbps, reactivation: 1ms }
switches:
  - { name: ocs0, size: 1024x1024, driver: sonic-ocs, address: "${ADDR[ocs0]}", timeout: 2s,
      options: { gap_ms: 0, settle_ms: 1, factory_loss: "no" } }
  - { name: ocs1, size: 1024x1024, driver: sonic-ocs, address: "${ADDR[ocs1]}", timeout: 2s,
      options: { gap_ms: 0, settle_ms: 1, factory_loss: "no" } }
fibres:
  - { from: "dut.p[0-511]", to: "ocs0.[1-512]" }
  - { from: "tg1.p[0-511]", to: "ocs0.[513-1024]" }
  - { from: "dut.p[512-1023]", to: "ocs1.[1-512]" }
  - { from: "tg1.p[512-1023]", to: "ocs1.[513-1024]" }
END
daemon || exit 1
expect 0 "the fabric" weft apply -f "$T/fabric.yaml"

# login GROUP SWITCH COMMAND...: again until its outcome is known. 1: it is refused.
login() {
	local rc
	while :; do
		SSH_ORIGINAL_COMMAND="sudo ${*:3}" timeout 60 weft ocs-shell --switch "$2" --group "$1" \
			>"$T/out.$1" 2>"$T/err.$1"
		rc=$?
		((rc < 2)) && return $rc
		sleep 0.2
	done
}

client() { # NUMBER: a line of $T/said for each of what it did and saw
	local bed id a b n s ids made	# ids: "ocs1 1A-513B"
	for ((bed = 0; bed < BEDS / CLIENTS; bed++)); do
		ids=() made=()
		for ((n = RANDOM % 6 + 1; n > 0; n--)); do
			a=$((RANDOM % 512 + 1)) b=$((RANDOM % 512 + 513)) s=ocs$((RANDOM % 2))
			# Of one testbed no port twice: its own `update` would move the first.
			[[ " ${ids[*]} " == *" $s ${a}A-"* || " ${ids[*]} " == *" $s ${b}A-"* ]] ||
				ids+=("$s ${a}A-${b}B" "$s ${b}A-${a}B")
		done
		for id in "${ids[@]}"; do
			login "c$1" "${id% *}" config ocs cross-connect add "${id#* }" update && made+=("$id") || echo held
		done
		for s in ocs0 ocs1; do
			map $s >"$T/map.c$1"
			login "c$1" $s show ocs cross-connect config
			for id in "${made[@]}"; do
				[[ $id == "$s "* ]] || continue
				id=${id#* } a=${id%%A*} b=${id#*-} b=${b%B}
				grep -qx "$((a - 1)),$((b - 1))" "$T/map.c$1" || echo "false: $s $id of c$1"
				grep -q "^$id " "$T/out.c$1" || echo "changed: $s $id of c$1"
			done
		done
		for id in "${made[@]}"; do
			login "c$1" "${id% *}" config ocs cross-connect delete "${id#* }" || echo "gone: $id $(<"$T/err.c$1")"
		done
		echo bed
	done >>"$T/said"
}

clients=()
for ((k = 0; k < CLIENTS; k++)); do
	client $k &
	PID[client$k]=$!
	clients+=($!)
done
kills=0
while for p in "${clients[@]}"; do kill -0 "$p" 2>>"$T/ended" && break; done; do
	sleep "$((RANDOM % 3 + 1)).$((RANDOM % 10))"
	stop weftd KILL
	kills=$((kills + 1))
	daemon || break
done
echo "# $kills kills, $(grep -c ^bed "$T/said") testbeds, $(grep -c ^held "$T/said") held"
[[ $(grep -c ^bed "$T/said") == $((BEDS / CLIENTS * CLIENTS)) ]]
tap "all testbeds were made and removed"
for what in false changed; do
	! grep "^$what" "$T/said"
	tap "none is $what"
done
none() { [[ -z $(map ocs0)$(map ocs1) ]]; }
wait_for 60 none
tap "no circuit is stale"
finish
