#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
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
signs() { grep -ao 'WATCHDOG=1' "$T/told" | wc -l; }
kill -STOP "${PID[weftd]}"
still() { local n; n=$(signs); sleep 1; [[ $(signs) == "$n" ]]; }
wait_for 10 still
tap "which cease when it hangs"
n=$(signs)
kill -CONT "${PID[weftd]}"
more() { (($(signs) > n)); }
wait_for 10 more
tap "and come again"
stop weftd
grep -q 'STOPPING=1' "$T/told"
tap "and that it stops"

: >"$T/told"
daemon NOTIFY_SOCKET="$T/notify" WATCHDOG_USEC=200000 WATCHDOG_PID=1
wait_for 10 grep -q 'READY=1' "$T/told"
stop weftd
! grep -aq 'WATCHDOG' "$T/told"
tap "no signs of life where another process is watched"
stop weftd

# ---- standing by: the service manager watches that one too -------------------

weftd --standby --lease 5 --socket "$T/first.sock" --state-dir "$T/shared" >"$T/first.log" 2>&1 &
PID[first]=$!
wait_for 10 weft status --socket "$T/first.sock"
: >"$T/told"
env NOTIFY_SOCKET="$T/notify" WATCHDOG_USEC=200000 weftd --standby --lease 5 \
	--socket "$T/second.sock" --state-dir "$T/shared" >"$T/second.log" 2>&1 &
PID[second]=$!
wait_for 10 grep -aq 'STATUS=standing by' "$T/told"
tap "it hears that a weftd stands by"
n=$(signs)
wait_for 10 more
tap "with signs of life"
stop second
stop first

# ---- a socket that the service manager holds -------------------------------

# activated COUNT COMMAND...: weftd with the socket of PATH as file descriptor 3, as
# systemd starts it; the socket stays, here in a process that sleeps.
cat >"$T/manager.py" <<'END'
import os, socket, sys
path, count, kind, pids = sys.argv[1:5]
s = socket.socket(socket.AF_UNIX, getattr(socket, kind))
s.bind(path)
if kind == "SOCK_STREAM":
    s.listen(16)
os.dup2(s.fileno(), 3)
os.set_inheritable(3, True)
for line in sys.stdin:
    pid = os.fork()
    if pid == 0:
        os.environ.update(LISTEN_FDS=count, LISTEN_PID=str(os.getpid()))
        os.execvp(sys.argv[5], sys.argv[5:])
    with open(pids, "w") as f:
        f.write(str(pid))
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    with open(pids + ".end", "a") as f:
        f.write(f"{code}\n")
END
mkfifo "$T/start"
HELD=$T/held.sock
/usr/bin/python3 "$T/manager.py" "$HELD" 1 SOCK_STREAM "$T/pid" weftd --socket "$T/not-this" \
	--state-dir "$T/held" <"$T/start" >"$T/held.log" 2>&1 &
PID[held]=$!
exec 7>"$T/start"
wait_for 10 test -S "$HELD"
weft status --socket "$HELD" --format json >"$T/early" 2>&1 &
early=$!
echo >&7
wait $early && jq -e '.state == "empty"' "$T/early" >/dev/null
tap "who connects before weftd runs is answered"
[[ ! -e $T/not-this ]]
tap "by the socket that was passed on, and no other"
kill "$(cat "$T/pid")"
wait_for 10 grep -qx 0 "$T/pid.end"
tap "weftd stops"
[[ -S $HELD ]]
tap "its socket stays"
weft status --socket "$HELD" --format json >"$T/early" 2>&1 &
early=$!
echo >&7
wait $early
tap "and the next weftd has it"
kill "$(cat "$T/pid")"
exec 7>&-
wait "${PID[held]}"
unset "PID[held]"
bad_socket() { # COUNT KIND
	rm -f "$T/bad.sock" "$T/pid.end"
	echo | /usr/bin/python3 "$T/manager.py" "$T/bad.sock" "$1" "$2" "$T/pid" weftd --state-dir "$T/held" \
		>"$T/err" 2>&1
	[[ $(cat "$T/pid.end") == 64 ]]
}
bad_socket 1 SOCK_DGRAM
tap "another kind of socket is refused"
has err "is said" 'file descriptor 3 is no unix stream socket that listens'
bad_socket 2 SOCK_STREAM
tap "as are several"
has err "is said" 'LISTEN_FDS is 2: weftd takes one socket'

# ---- a socket that another weftd listens on ---------------------------------

daemon
there=$(stat -c %i "$SOCK")
expect 75 "a second weftd on the same socket is refused" weftd --socket "$SOCK" --state-dir "$T/second"
has err "and told where the first one listens" "$SOCK.*process ${PID[weftd]}"
[[ $(stat -c %i "$SOCK") == "$there" ]]
tap "the socket is as it was"
expect 0 "and the first one answers there" weft status --format json
stop weftd KILL
daemon
tap "one that was killed leaves a file that the next one replaces"
stop weftd
[[ ! -e $SOCK && ! -e $SOCK.lock ]]
tap "one that stops leaves none"

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
