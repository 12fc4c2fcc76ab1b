#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# checklist 15: two weftd share one store: one leads and the other stands by. Real processes,
# SQLite's own locks and the kernel's timers: frozen in the middle of a change, the leader is
# followed by the other, and sends nothing more when it thaws; frozen with the store's lock, which
# all would wait for, it is ended; locked by another program, the store has no leader until it is
# free. What else can happen is told on virtual time (tests/sim/stories/turns_stories.c).
source "$(dirname "$0")/../lib.sh"
SHIM=$BUILD/release/tests/fault/crash_at_sync.so
emulators || exit 1
RING=no fabric "$T/f1.yaml" 'UniRing(2,4)'
RING=no fabric "$T/f2.yaml" 'Ring(4)'
map() { control ocs0 map | grep , | sort; }

# member NAME [ENV=VALUE...]: a weftd on the shared store, with its own socket.
member() {
	env "${@:2}" weftd --standby --lease 2 --socket "$T/$1.sock" --state-dir "$STATE" \
		>>"$T/$1.log" 2>&1 </dev/null &
	PID[$1]=$!
	wait_for 10 weft --socket "$T/$1.sock" status --format json || {
		echo "# weftd $1 did not start"
		cat "$T/$1.log"
		return 1
	}
}
at() { # NAME COMMAND...: asks that one
	local name=$1
	shift
	weft --socket "$T/$name.sock" "$@"
}
leads() { # NAME: it leads, and knows its devices
	at "$1" status --format json >"$T/leads" &&
		jq -e '.state != "standby" and .state != "reading"' "$T/leads"
}
ends() { # NAME CODE: the process has ended with this code
	local code
	wait "${PID[$1]}" 2>"$T/ended"	# bash says so when it was killed
	code=$?
	unset "PID[$1]"
	[[ $code == "$2" ]] || echo "# $1 ended with $code, not $2"
	[[ $code == "$2" ]]
}

is_stopped() { # NAME
	[[ $(cut -d ' ' -f 3 "/proc/${PID[$1]}/stat") == T ]]
}
has_lock() { # NAME: of the store; weftd has no other POSIX locks
	awk -v pid="${PID[$1]}" '$2 == "POSIX" && $5 == pid { found = 1 } END { exit !found }' /proc/locks
}
# freeze NAME: stops it at a moment when it has no lock of the store. It has one
# with each beat and each command, for as long as the disk takes.
freeze() {
	local tries
	for ((tries = 200; tries > 0; tries--)); do
		kill -STOP "${PID[$1]}"
		wait_for 20 is_stopped "$1" && ! has_lock "$1" && return 0
		kill -CONT "${PID[$1]}"
		sleep 0.01
	done
	echo "# $1 always has the lock of the store"
	return 1
}

member a && wait_for 20 leads a
tap "the first one leads at once"
member b
tap "the second one stands by"
expect 0 "the leader applies" at a apply -f "$T/f1.yaml"

expect 69 "the standby refuses a change" at b apply -f "$T/f2.yaml"
has err "and names the leader" "this weftd stands by: $T/a.sock leads"

# ---- frozen in the middle of a change ----
# after N COMMAND...: runs it, with a device so slow that the Nth command of
# the change has been done, and not yet answered, when this returns.
after() {
	local enough=$(($(sets ocs0) + $1))
	shift
	control ocs0 "fault slow=300" >/dev/null
	"$@" >"$T/client" 2>&1 &
	PID[client]=$!
	wait_for 20 bash -c "[[ \$(echo stats | nc -NU -w 5 '${CTL[ocs0]}' | awk '\$1 == \"sets\" { print \$2 }') -ge $enough ]]"
}
client_ends() {
	wait "${PID[client]}"
	unset 'PID[client]'
	control ocs0 clear >/dev/null
}

after 1 at a apply -f "$T/f2.yaml"
freeze a
control ocs0 clear >/dev/null
wait_for 30 leads b
tap "frozen between its commands: the other takes over"
expect 0 "it has read the devices" at b status --format json
jq -e '.state == "interrupted" and (.advice | test("is open .interrupted."))' "$T/out" >/dev/null
tap "and knows that the change is half done"
half=$(map) sets=$(sets ocs0)
kill -CONT "${PID[a]}"
ends a 75
tap "the old leader thaws and ends"
grep -q 'leads no more, and ends' "$T/a.log"
tap "and says why"
[[ $(sets ocs0) == "$sets" && $(map) == "$half" ]]
tap "before its next command"
client_ends
expect 0 "the new leader carries the change through" at b apply -f "$T/f2.yaml"
expect 0 "and all is as intended" at b verify

# ---- frozen with the store's lock ----
# In the middle of a beat, when the file has been written and can still be taken back.
member a LD_PRELOAD="$SHIM" WEFT_CRASH_AT=8 WEFT_CRASH_STOPS=1 WEFT_CRASH_ARM="$T/arm"
stop b
wait_for 5 leads a
tap "a leader that stops hands over at once"
member b
touch "$T/arm"
wait_for 10 is_stopped a && has_lock a
tap "the leader is frozen in the middle of a write"
before=$(map)
ends a 137
tap "which ends it"
wait_for 10 leads b
tap "and the other takes over"
at b status --format json | jq -e '.state == "ready"' >/dev/null && [[ $(map) == "$before" ]]
tap "with all as it was"

# ---- locked by someone else ----
member a
coproc sqlite3 -cmd '.timeout 2000' "$STATE/weft.db"
PID[locker]=$COPROC_PID
echo 'BEGIN EXCLUSIVE;' >&"${COPROC[1]}"
wait_for 5 has_lock locker
tap "another program locks the store"
refused() {
	at a status >"$T/out" 2>"$T/err"
	[[ $? == 75 ]]
}
wait_for 10 refused
tap "a standby has no status then"
has err "which says why" 'database is locked'
ends b 75
tap "the leader ends in time"
stop locker
wait_for 10 leads a
tap "and once the store is free, the other takes over"
stop a
tap "and the last one stops"
finish
