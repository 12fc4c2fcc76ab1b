#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Two weftd lead a fabric together, and what the devices of one of them hold is more than etcd takes in a value: the
# change is refused for both of them, and the next one is made.
source "$(dirname "$0")/../lib.sh"
SWITCHES=66	# of 4096 circuits each, of four bytes

etcd_alone
for row in 0 1; do
	"$BIN/weftd" --etcd "$ETCD" --domains "row$row" --lease 5 --socket "$T/w$row.sock" \
		--state-dir "$T/state$row" --poll 3600 >>"$T/w$row.log" 2>&1 </dev/null &
	PID[w$row]=$!
done
at() { # ROW COMMAND...
	timeout 60 weft --socket "$T/w$1.sock" "${@:2}"
}
# row1 leads, and no joint change is open. (The status of row0 would have all its circuits.)
is_quiet() {
	at 1 status --format json >"$T/status" 2>&1 &&
		jq -e '(.state | IN("reading", "standby", "changing") | not) and (.participants | length == 2 and all(.leader != "" and .state == ""))' \
			"$T/status" >>"$T/ready.out" 2>&1
}
fabric() { # SWITCHES of row0
	cat <<-END
	weft: 1
	fabric: large
	hosts:
	  - { name: "h[0-3]", ports: p0, rate: 100Gbps }
	switches:
	  - { name: small, domain: row1, size: 4x4, driver: sim }
	END
	for ((k = 0; k < $1; k++)); do
		echo "  - { name: large$k, domain: row0, size: 4096x4096, driver: sim, options: { state: \"$T/$k.map\" } }"
	done
	cat <<-END
	fibres:
	  - { from: "h[0-3].p0", to: "small.[1-4]" }
	END
}

{
	printf 'weft device state 1\nspace 4096 4096 0\nboots 1\n'
	seq 0 4095 | sed 's/.*/xc & &/'
	echo end
} >"$T/0.map"
for ((k = 1; k < SWITCHES; k++)); do
	cp "$T/0.map" "$T/$k.map"
done
fabric $SWITCHES >"$T/a.yaml"
fabric 1 >"$T/b.yaml"
wait_for 40 is_quiet
tap "two weftd lead, and know of each other"
expect 1 "a change whose base is more than etcd takes" at 1 apply -f "$T/a.yaml"
has err "says so" "nothing was sent: row0: [0-9]+ bytes for all participants, which may be 1048576 at most"
wait_for 20 is_quiet
expect 0 "the next one, with less" at 1 apply -f "$T/b.yaml"
finish
