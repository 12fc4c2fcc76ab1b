#!/bin/bash
# checklist 15: two weftd share one store: one leads and the other stands by. Frozen, killed
# or told to stop, the leader is followed by the other, which reads before it
# does anything; a leader that thaws sends nothing more. One that is frozen with
# the store's lock would be waited for by all: it is ended.
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

# ---- what a standby answers ----
expect 0 "the standby has a status" at b status --format json
jq -e --arg a "$T/a.sock" '.state == "standby" and .generation == 2 and (.advice | startswith($a + " leads"))' "$T/out" >/dev/null
tap "that names the leader"
expect 0 "and the history" at b history --format json
jq -e '.changes | length == 1' "$T/out" >/dev/null
tap "of the leader's changes"
for verb in "apply -f $T/f2.yaml" "rollback" "job request --count 2 -c allgather --size 1MB" "plan" "verify"; do
	# shellcheck disable=SC2086
	expect 69 "it refuses: ${verb%% *}" at b $verb
	has err "and names the leader" "this weftd stands by: $T/a.sock leads"
done
weftd --socket "$T/c.sock" --state-dir "$STATE" >"$T/c.log" 2>&1
[[ $? == 75 ]]
tap "a weftd that wants the store for itself is refused"

# ---- the leader is frozen ----
freeze a && wait_for 30 leads b
tap "the leader is frozen: the other takes over"
expect 0 "it knows the fabric" at b status --format json
jq -e '.state == "ready" and .generation == 2' "$T/out" >/dev/null ||
	jq -c '[.state, .generation, .advice]' "$T/out" | sed 's/^/# /;q1'
tap "and that nothing was changed"
before=$(map)
kill -CONT "${PID[a]}"
ends a 75
tap "the old leader thaws, finds out and ends"
grep -q 'leads no more, and ends' "$T/a.log"
tap "and says why"
[[ $(map) == "$before" ]]
tap "it has moved no light"
member a
at a status --format json | jq -e --arg b "$T/b.sock" '.advice | startswith($b + " leads")' >/dev/null
tap "started again it stands by"

# ---- frozen in the middle of a change ----
# How many commands a change takes, there and back.
begin=$(sets ocs0)
expect 0 "a change" at b apply -f "$T/f2.yaml"
there=$(($(sets ocs0) - begin))
expect 0 "and back" at b apply -f "$T/f1.yaml"
back=$(($(sets ocs0) - begin - there))
((there >= 2 && back >= 2))
tap "take several commands"

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

after 1 at b apply -f "$T/f2.yaml"
freeze b
control ocs0 clear >/dev/null
wait_for 30 leads a
tap "frozen between its commands: the other takes over"
expect 0 "it has read the devices" at a status --format json
jq -e '.state == "interrupted" and (.advice | test("is open .interrupted."))' "$T/out" >/dev/null
tap "and knows that the change is half done"
half=$(map) sets=$(sets ocs0)
kill -CONT "${PID[b]}"
ends b 75
tap "the old leader thaws and ends"
[[ $(sets ocs0) == "$sets" && $(map) == "$half" ]]
tap "before its next command"
client_ends
expect 0 "the new leader carries the change through" at a apply -f "$T/f2.yaml"
expect 0 "and all is as intended" at a verify

# ---- killed while a change waits for its confirmation ----
member b
expect 0 "a change that is to be confirmed" at a apply -f "$T/f1.yaml" --confirm-within 6s
one=$(map)
stop a KILL
wait_for 30 leads b
tap "the leader is killed: the other takes over"
went_back() { # NAME
	at "$1" history --format json >"$T/history" && jq -e '.changes[0] | .comment == "not confirmed in time" and .outcome == "committed"' "$T/history"
}
wait_for 30 went_back b
tap "and the change goes back in time"
[[ $(map) != "$one" ]]
tap "with the light of before"

# ---- killed in the middle of a change that is to be confirmed ----
member a
was=$(map)
after "$back" at b apply -f "$T/f1.yaml" --confirm-within 6s
stop b KILL
client_ends
[[ $(map) == "$one" ]]
tap "killed when all has been sent, and nothing answered"
wait_for 30 leads a
tap "the other takes over"
at a history --format json | jq -e '[.changes[] | select(.comment != "not confirmed in time")][0].summary | test("settled by reading the devices: all as planned")' >/dev/null
tap "reads, and finds that the change has happened"
wait_for 30 went_back a
tap "whose timer still fires"
[[ $(map) == "$was" ]]
tap "and brings the light of before"

# ---- told to stop ----
member b
stop a
wait_for 5 leads b
tap "a leader that stops hands over at once"

# ---- frozen with the store's lock ----
# In the middle of a beat, when the file has been written and can still be taken back.
member a LD_PRELOAD="$SHIM" WEFT_CRASH_AT=8 WEFT_CRASH_STOPS=1 WEFT_CRASH_ARM="$T/arm"
stop b
wait_for 5 leads a
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
