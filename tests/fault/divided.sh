#!/bin/bash
# checklist 15: four weftd lead a fabric together, each one switch, by an etcd. A job over all switches is
# changed, and one of the four is killed at one of its durable steps or messages. Whatever happens, the change is
# there on all switches and in all four states, or on none and in none.
#
# ROUNDS=N (3), SEED=N, LEASE=SECONDS (2)
source "$(dirname "$0")/../lib.sh"
ROUNDS=${ROUNDS:-3}
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
WEFTD1=w1
at() { # ROW COMMAND...
	local name=w$1
	[[ $1 != 1 ]] || name=$WEFTD1
	timeout 60 weft --socket "$T/$name.sock" "${@:2}"
}
is_ready() { # ROW: it leads, knows its devices, and has heard of all others
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
expect 0 "nothing is left to do" at 3 apply -f "$T/b.yaml"
wait_for 20 all_quiet

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

# ---- what stops a change in one place stops it everywhere ----
refused() { # CODE WHAT PATTERN: the change to b is, and all is as before
	wait_for 20 all_quiet
	expect "$1" "$2" at 0 apply -f "$T/b.yaml"
	has err "$2: and says why" "$3"
	wait_for 20 all_quiet && agreed && [[ $(cat "$T/letter") == a ]]
	tap "$2: all is as before"
}
wait_for 20 all_quiet
expect 0 "the first fabric" at 1 apply -f "$T/a.yaml" -m "first once more"
wait_for 10 all_quiet
# An input that the change moves.
moved=$(diff <(sed '1,/ocs3/d' "$T/map-a") <(sed '1,/ocs3/d' "$T/map-b") | sed -n 's/^> \([0-9]*\),.*/\1/p' | head -1)
control ocs3 "fault refuse-port=i$((moved + 1))" >"$T/fault.out"
expect 3 "a device of row3 refuses, and then to go back too" at 0 apply -f "$T/b.yaml"
has err "which is said, with the device" "undone: row3: .*ocs3"
wait_for 20 all_quiet
for row in 0 1 2; do
	diff <(control "ocs$row" map | grep , | sort) <(grep -A8 "ocs$row" "$T/map-a" | grep , | sort) || echo "# ocs$row"
done >"$T/moved"
[[ ! -s $T/moved ]]
tap "the others have gone back"
control ocs3 clear >"$T/fault.out"
expect 0 "row3 does once it can" at 3 apply -f "$T/a.yaml" -m "first again"
wait_for 20 all_quiet && agreed && [[ $(cat "$T/letter") == a ]]
tap "and all agree"
expect 0 "row2 is frozen" at 2 freeze -m "hands in the rack"
refused 1 "row2 is frozen: no change" "row2: .*frozen"
expect 0 "row2 is not frozen any more" at 2 unfreeze
expect 0 "a host is drained at row1" at 1 drain h3 -m "a board is replaced"
refused 1 "drained at row1: no change" "row1: .*h3"
expect 0 "and is back" at 1 undrain h3
expect 65 "a job on request" at 1 job request --nodes "h[0-1]" --collective allreduce --size 1MiB
has err "is not supported" "several weftd lead this fabric"
stop w1 KILL
expect 1 "without a weftd that leads row1" at 0 apply -f "$T/b.yaml"
has err "which is said" "row1: no weftd leads it"
weftd_of 1
wait_for 40 all_quiet && agreed && [[ $(cat "$T/letter") == a ]]
tap "when it is back all is as before"

expect 65 "a change that waits for its confirmation" at 0 apply -f "$T/b.yaml" --confirm-within 1h
has err "is not supported" "several weftd lead this fabric"

# ---- two at once: one of them is made ----
wait_for 20 all_quiet
at 2 apply -f "$T/b.yaml" -m "one of two" >"$T/two" 2>&1 &
PID[two]=$!
at 3 apply -f "$T/b.yaml" -m "the other" >"$T/out" 2>&1
one=$?
wait "${PID[two]}"
other=$?
unset 'PID[two]'
wait_for 20 all_quiet && agreed && [[ $(cat "$T/letter") == b && $one.$other =~ ^(0.75|75.0|0.0|1.0|0.1)$ ]]
tap "two changes at once, which end with $one and $other: one is made"

# ---- a weftd that stands by for row1 brings its part to the end ----
env "$BIN/weftd" --etcd "$ETCD" --domains row1 --lease $LEASE --socket "$T/w1s.sock" \
	--state-dir "$T/state1s" --poll 3600 >>"$T/w1s.log" 2>&1 </dev/null &
PID[w1s]=$!
stands_by() {
	at 1s status --format json >"$T/ready1s" 2>&1 && jq -e '.state == "standby" and .generation > 1' "$T/ready1s" >>"$T/ready.out"
}
wait_for 20 stands_by
tap "a second weftd of row1 stands by"
wait_for 20 all_quiet
control ocs1 "fault slow=300" >"$T/fault.out"
at 0 apply -f "$T/a.yaml" -m "taken over" >"$T/out" 2>"$T/err" &
PID[apply]=$!
wait_for 20 grep -q "stage 1 of" "$T/err"
stop w1 KILL
control ocs1 clear >"$T/fault.out"
wait "${PID[apply]}"
code=$?
unset 'PID[apply]'
WEFTD1=w1s
wait_for 30 all_quiet && agreed && [[ $code == 3 || $code == 1 || $code == 0 ]]
tap "its part is brought to an end by it: apply ended with $code"
stop w1s
WEFTD1=w1
weftd_of 1
wait_for 40 all_quiet && agreed
tap "and the first one leads again"

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
