#!/bin/bash
# What weftd tells the service manager that started it.
cd "$(dirname "$0")" || exit 1
. ../lib.sh

nc -lukU "$T/notify" >"$T/told" 2>"$T/nc.log" </dev/null &
PID[manager]=$!
wait_for 10 test -S "$T/notify"
tap "a service manager listens"
daemon NOTIFY_SOCKET="$T/notify" WATCHDOG_USEC=200000
wait_for 10 grep -q 'READY=1' "$T/told"
tap "it hears that weftd is ready"
# Three signs of life, and the loop does other things between them.
wait_for 10 bash -c "(( \$(grep -o 'WATCHDOG=1' '$T/told' | wc -l) >= 3 ))"
tap "and signs of life"
stop weftd
grep -q 'STOPPING=1' "$T/told"
tap "and that it stops"

: >"$T/told"
daemon NOTIFY_SOCKET="$T/notify" WATCHDOG_USEC=200000 WATCHDOG_PID=1
wait_for 10 grep -q 'READY=1' "$T/told"
stop weftd
! grep -q 'WATCHDOG' "$T/told"
tap "no signs of life where another process is watched"
stop weftd

# ---- privileges ------------------------------------------------------------
unprivileged=nobody

expect 64 "no user of that name" weftd --user no-such-user
has err "is said" 'there is no user "no-such-user"'
if [[ $(id -u) != 0 ]]; then
	expect 77 "without root it cannot become another user" weftd --user $unprivileged \
		--socket "$T/x" --state-dir "$T/y"
	finish
fi
chmod 711 "$T"
mkdir -m 777 "$T/home"
SOCK=$T/home/run/weftd.sock STATE=$T/home/state
export WEFT_SOCKET=$SOCK

# status_of FIELD: of weftd's process.
status_of() {
	awk -v f="$1:" '$1 == f { print $2 }' "/proc/${PID[weftd]}/status"
}

DAEMON_OPTIONS=(--user $unprivileged)
daemon
[[ $(status_of Uid) == "$(id -u $unprivileged)" && $(status_of Gid) == "$(id -g $unprivileged)" ]]
tap "root becomes the user"
[[ $(status_of CapPrm) =~ ^0+$ && $(status_of NoNewPrivs) == 1 ]]
tap "and has nothing of root any more"
[[ $(stat -c %U "$STATE/weft.db") == "$unprivileged" ]]
tap "the store is the user's"
expect 0 "root is an operator" weft freeze
expect 0 "as before" weft unfreeze
stop weftd
DAEMON_OPTIONS=(--user $unprivileged --netlink)
daemon
[[ $(status_of Uid) == "$(id -u $unprivileged)" && $(status_of CapEff) =~ ^0+201000$ ]]
tap "only what network namespaces need is kept"
finish
