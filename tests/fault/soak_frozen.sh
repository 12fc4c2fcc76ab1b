#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A leader that is stopped at random moments of its applies, every other time while it
# has the store's lock: the standby leads, nothing is lost, and it is said how long that took.
source "$(dirname "$0")/../lib.sh"
ROUNDS=${ROUNDS:-20}
emulators || exit 1
RING=no fabric "$T/f1.yaml" 'UniRing(2,4)'
RING=no fabric "$T/f2.yaml" 'Ring(4)'

at() { # NAME COMMAND...: asks that one
	local name=$1
	shift
	weft --socket "$T/$name.sock" "$@"
}
member() { # NAME
	weftd --standby --lease 2 --socket "$T/$1.sock" --state-dir "$STATE" >>"$T/$1.log" 2>&1 </dev/null &
	PID[$1]=$!
	wait_for 20 at "$1" status --format json
}
leads() { # NAME
	at "$1" status --format json >"$T/leads" 2>"$T/leads.err" &&
		jq -e '.state != "standby" and .state != "reading"' "$T/leads" >/dev/null
}
has_lock() { # NAME
	awk -v pid="${PID[$1]}" '$2 == "POSIX" && $5 == pid { found = 1 } END { exit !found }' /proc/locks
}
is_stopped() { # NAME
	[[ $(cut -d ' ' -f 3 "/proc/${PID[$1]}/stat") == T ]]
}
# freeze NAME WHERE: inside a transaction, or wherever it is.
freeze() {
	local tries
	for ((tries = 2000; tries > 0; tries--)); do
		kill -STOP "${PID[$1]}"
		wait_for 20 is_stopped "$1"
		[[ $2 == anywhere ]] || has_lock "$1" && return 0
		kill -CONT "${PID[$1]}"
	done
	return 1
}
ms() { echo $(($(date +%s%N) / 1000000)); }
# figures NAME TIMES...
figures() {
	local name=$1
	shift
	printf '%s\n' "$@" | sort -n | awk -v name="$name" '{ v[NR] = $1 } END {
		printf "# %s: n %d, median %d ms, most %d ms\n", name, NR, v[int((NR + 1) / 2)], v[NR] }'
}

member a && wait_for 20 leads a && member b
tap "two controllers"
at a apply -f "$T/f1.yaml" >"$T/out" 2>&1
tap "and a fabric"
leader=a other=b lost=0
inside=() anywhere=()
for ((round = 0; round < ROUNDS; round++)); do
	where=$([[ $((round % 2)) == 0 ]] && echo inside || echo anywhere)
	# Back and forth until it is stopped.
	(while at $leader apply -f "$T/f2.yaml" && at $leader apply -f "$T/f1.yaml"; do :; done) \
		>"$T/client" 2>&1 &
	PID[client]=$!
	sleep "0.$((RANDOM % 900 + 100))"
	freeze $leader $where || { tap "round $round: stopped" 1; break; }
	began=$(ms)
	until leads $other; do
		sleep 0.02
		(($(ms) - began < 60000)) || break
	done
	took=$(($(ms) - began))
	((took < 60000)) || lost=$((lost + 1))
	[[ $where == inside ]] && inside+=($took) || anywhere+=($took)
	kill -CONT "${PID[$leader]}" 2>"$T/gone"
	wait "${PID[$leader]}" 2>"$T/gone"
	stop client
	at $other apply -f "$T/f1.yaml" >"$T/out" 2>&1 && at $other verify >>"$T/out" 2>&1 ||
		{ sed 's/^/# /' "$T/out"; lost=$((lost + 1)); }
	member $leader || lost=$((lost + 1))
	next=$other other=$leader leader=$next
done
((lost == 0))
tap "the standby led each time, and applied"
figures "stopped in a transaction" "${inside[@]}"
figures "stopped anywhere" "${anywhere[@]}"
finish
