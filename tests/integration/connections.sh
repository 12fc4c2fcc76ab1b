#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Who has a connection when others hold many: root always, users by turns. Needs
# root, as connections are held by other users.
cd "$(dirname "$0")" || exit 1
. ../lib.sh

if ((EUID != 0)); then
	echo "ok 1 - connections # SKIP those of other users need root"
	echo 1..1
	exit 0
fi
chmod 711 "$T"
cat >"$T/access" <<-END
	operator user 4001
	viewer   user *
END
DAEMON_OPTIONS=(--socket-mode 0666 --access "$T/access")
daemon
tap "a daemon for all users"
memory() { awk '/^VmRSS/ { print $2 }' "/proc/${PID[weftd]}/status"; }
before=$(memory)

# hold NAME UID N: as that user N connections over which one call was made;
# $T/NAME has how many of them are open, and a line for each that is refused.
hold() {
	: >"$T/$1"
	python3 -u - "$SOCK" "$2" "$3" >"$T/$1" 2>&1 <<-'END' &
		import os, selectors, socket, sys
		path, uid, n = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
		os.setgroups([])
		os.setuid(uid)
		greeting = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])
		greeting += bytes([0, 0, 3, 1, 5, 0, 0, 0, 1, 0x83, 0x86, 0x84])  # POST /
		s = selectors.DefaultSelector()
		for _ in range(n):
		    c = socket.socket(socket.AF_UNIX)
		    c.connect(path)
		    c.sendall(greeting)
		    s.register(c, selectors.EVENT_READ, bytearray())
		open_now, told = n, 0
		while True:
		    for key, _ in s.select(0.2):
		        data = key.fileobj.recv(65536)
		        key.data.extend(data)
		        if not data:
		            s.unregister(key.fileobj)
		            key.fileobj.close()
		            open_now -= 1
		            if b"too many connections of" in key.data:
		                told += 1
		    print("open", open_now, "refused", told)
	END
	PID[$1]=$!
}

# holds NAME OPEN [REFUSED]: what the last line of that says.
holds() {
	tail -n 1 "$T/$1" | grep -qx "open $2 refused ${3:-0}"
}

# as UID ARGUMENT...: weft as that user.
as() {
	setpriv --reuid "$1" --clear-groups "$(type -P weft)" "${@:2}"
}

for uid in 5001 5002 5003 5004; do
	hold u$uid $uid 100
done
wait_for 30 holds u5001 100 && wait_for 30 holds u5002 100 &&
	wait_for 30 holds u5003 100 && wait_for 30 holds u5004 100
tap "400 connections of others are held"
expect 0 "root is served" weft status
expect 0 "so is an operator" as 4001 status
expect 0 "and one who may look" as 5005 status
holds u5001 100 && holds u5004 100
tap "without loss for those who hold them"

hold greedy 5006 600
wait_for 30 holds greedy 112 488
tap "there are 512: more of one user are refused, and told why"
expect 69 "so is another connection of that user" as 5006 status
has err "with the numbers" 'too many connections of user uid 5006 \(112 of 512\)'
has err "and what helps" 'hint: end some of them'
! grep -q 'no weftd listens' "$T/err"
tap "which is not whether weftd runs"
expect 0 "root is served from the reserve" weft status
expect 0 "an operator too" as 4001 status
expect 0 "and another user in the place of who has most" as 5005 status
(($(grep -c refused "$T/weftd.log") < 100))
tap "the log has few lines of all that"
wait_for 20 grep -q 'more connections were refused in the last' "$T/weftd.log"
tap "and how many there were"
for name in u5001 u5002 u5003 u5004 greedy; do
	stop $name
done
wait_for 20 as 5006 status
tap "once they are gone there is room again"
given_back() { (($(memory) < 2 * before)); }
wait_for 20 given_back
tap "and memory is under twice of the $before KiB before"
finish
