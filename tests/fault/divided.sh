#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# checklist 15: four weftd lead a fabric together, each one switch, by an etcd: real ones. A job over all switches
# is changed, and one of the four is killed at one of its durable steps or messages. Whatever happens, the change is
# there on all switches and in all four states, or on none and in none. What else can happen is told on virtual time
# (tests/sim/stories/divided_stories.c).
#
# ROUNDS=N (1), SEED=N, LEASE=SECONDS (2)
source "$(dirname "$0")/../lib.sh"
ROUNDS=${ROUNDS:-1}
RANDOM=${SEED:-1}
SHIM=$BUILD/release/tests/fault/crash_at_sync.so
LEASE=${LEASE:-2}
ROWS=(0 1 2 3)

etcd_alone

# weftd_of ROW [ENV...]: that of a row.
weftd_of() {
	env "${@:2}" "$BIN/weftd" --etcd "$ETCD" --domains "row$1" --lease $LEASE --socket "$T/w$1.sock" \
		--state-dir "$T/state$1" --poll 3600 >>"$T/w$1.log" 2>&1 </dev/null &
	PID[w$1]=$!
}
at() { # ROW COMMAND...
	timeout 60 weft --socket "$T/w$1.sock" "${@:2}"
}
is_ready() { # ROW: it leads, knows its devices, and has heard of all others
	# One that has lost its lease on a busy machine has ended: a service manager starts it again.
	kill -0 "${PID[w$1]}" 2>>"$T/ready.out" || weftd_of "$1"
	at "$1" status --format json >"$T/ready$1" 2>&1 &&
		jq -e '.state != "reading" and .state != "standby" and (.participants | length == 4 and all(.leader != ""))' \
			"$T/ready$1" >>"$T/ready.out" 2>&1
}
all_ready() {
	local row
	for row in "${ROWS[@]}"; do
		is_ready "$row" || return
	done
}
# No joint change is open, as each of them has heard.
all_quiet() {
	local row
	for row in "${ROWS[@]}"; do
		is_ready "$row" && jq -e 'all(.participants[]; .state == "") and .state != "changing"' "$T/ready$row" >>"$T/ready.out" 2>&1 || return
	done
}
maps() {
	local row
	for row in "${ROWS[@]}"; do
		echo "ocs$row"
		control "ocs$row" map | grep , | sort
	done
}
lab() { # TOPOLOGY
	local row
	cat <<-END
	weft: 1
	fabric: divided
	hosts:
	  - { name: "h[0-7]", ports: "p[0-3]", rate: 100Gbps, reactivation: 10ms }
	switches:
	END
	for row in "${ROWS[@]}"; do
		echo "  - { name: ocs$row, domain: row$row, size: 8x8, driver: polatis-scpi, address: \"${ADDR[ocs$row]}\", timeout: 500ms, options: { gap_ms: 1, settle_ms: 5 } }"
	done
	echo "fibres:"
	for row in "${ROWS[@]}"; do
		echo "  - { from: \"h[0-7].p$row\", to: \"ocs$row.[1-8]\" }"
	done
	cat <<-END
	jobs:
	  - { name: reduce, nodes: "h[0-7]", collective: allreduce, size: 1MiB, topology: "$1", alpha: 10us }
	END
}

for row in "${ROWS[@]}"; do
	emulator "ocs$row" polatis-scpi 8x8 || exit 1
done
lab 'UniRing(4,8)' >"$T/a.yaml"
lab "DiC(8,{1,2,3,5})" >"$T/b.yaml"
for row in "${ROWS[@]}"; do
	weftd_of "$row"
done
wait_for 40 all_ready
tap "four weftd lead, and know of each other"
expect 0 "the first fabric, asked of row2" at 2 apply -f "$T/a.yaml" -m first
wait_for 10 all_quiet
maps >"$T/map-a"
expect 0 "the second one, asked of row0" at 0 apply -f "$T/b.yaml" -m second
wait_for 10 all_quiet
maps >"$T/map-b"
diff "$T/map-a" "$T/map-b" | grep -c '^[<>]' >"$T/moved"
for row in "${ROWS[@]}"; do
	diff <(grep -A8 "ocs$row" "$T/map-a") <(grep -A8 "ocs$row" "$T/map-b") >>"$T/moved" && echo "# ocs$row has not moved" >>"$T/moved"
done
! grep -q 'has not moved' "$T/moved"
tap "each switch has moved"

# The whole map and all states are of one of the two fabrics: its letter.
agreed() {
	local letter=- row texts
	maps >"$T/map"
	diff -q "$T/map" "$T/map-a" >>"$T/ready.out" && letter=a
	diff -q "$T/map" "$T/map-b" >>"$T/ready.out" && letter=b
	[[ $letter != - ]] || { echo "# the light is of neither fabric"; diff "$T/map" "$T/map-a" | head -3; return 1; }
	for row in "${ROWS[@]}"; do
		at "$row" status --format json >"$T/status" 2>&1 &&
			jq -e '[.devices[] | .missing[], .unexpected[], .pending[]] == [] and .state == "ready"' "$T/status" >>"$T/ready.out" ||
			{ echo "# row$row: $(jq -c '{state, devices: [.devices[] | {name, missing, unexpected, pending}]}' "$T/status")"; return 1; }
		at "$row" history --format json >"$T/history" 2>&1 || { echo "# row$row: no history"; return 1; }
		jq -r '[.changes[] | select(.outcome == "committed")][0].comment' "$T/history"
	done >"$T/last"
	grep '^#' "$T/last" && return 1
	[[ $(sort -u "$T/last" | wc -l) == 1 ]] || { echo "# the last changes are not the same: $(tr '\n' ' ' <"$T/last")"; return 1; }
	echo "$letter" >"$T/letter"
}
agreed
tap "all agree"

# round N ROW MOMENT: one change, in which the weftd of the row is killed at that moment.
round() { # N ROW MOMENT
	local n=$1 row=$2 moment=$3 asked=$((RANDOM % 4)) other=a before code
	before=$(cat "$T/letter")
	[[ $before == a ]] && other=b
	stop "w$row"
	rm -f "$T/arm" "$T/count"
	weftd_of "$row" LD_PRELOAD="$SHIM" WEFT_CRASH_AT="$moment" WEFT_CRASH_ARM="$T/arm" WEFT_CRASH_SENDS=1 WEFT_CRASH_COUNT="$T/count"
	wait_for 40 all_quiet || { echo "# $n: not all ready: $(tail -1 "$T/w$row.log")"; return 1; }
	touch "$T/arm"
	at "$asked" apply -f "$T/$other.yaml" -m "round $n" >"$T/out" 2>"$T/err" </dev/null
	code=$?
	rm -f "$T/arm"
	sleep 0.2
	killed=yes
	kill -0 "${PID[w$row]}" 2>>"$T/ready.out" && killed=no
	stop "w$row" KILL
	weftd_of "$row"
	wait_for 60 all_quiet || { echo "# $n: not settled"; for r in "${ROWS[@]}"; do at "$r" status | grep -A8 participants; tail -2 "$T/w$r.log"; done; return 1; }
	agreed || { echo "# $n: row$row at moment $moment, apply ended with $code: $(tail -1 "$T/err")"; return 1; }
	[[ $code != 0 || $(cat "$T/letter") == "$other" ]] || { echo "# $n: acknowledged, and not there"; return 1; }
	echo "# round $n: row$row killed ($killed) at moment $moment, row$asked was asked: apply ended with $code, $before -> $(cat "$T/letter")"
}

round 0 1 1000000
tap "a change that no one is killed in"
# Moments are syncs and messages; half of them are those of devices and of etcd.
total=$(cat "$T/count" 2>>"$T/ready.out" || echo 200)
bad=0
for ((n = 1; n <= ROUNDS; n++)); do
	round "$n" $((RANDOM % 4)) $(((n - 1) * total / ROUNDS + RANDOM % (total / ROUNDS + 1) + 1)) || bad=$((bad + 1))
done
tap "$ROUNDS rounds: committed or undone as one" $bad
finish
