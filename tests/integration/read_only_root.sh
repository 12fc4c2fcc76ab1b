#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A root folder that cannot be written to, as on a control board: weftd needs its state folder and
# its socket's, and leaves nothing anywhere else.
cd "$(dirname "$0")" || exit 1
. ../lib.sh

if [[ $(id -u) != 0 ]] || ! unshare -m --propagation private true 2>/dev/null; then
	echo "ok 1 - a root folder that is read only # SKIP no mounts of its own here"
	exit 0
fi
# All is read only but two folders, which is tried out before weftd starts.
# shellcheck disable=SC2016
inside='
mount --bind / "$1/root" && mount --rbind "$1/state" "$1/root$1/state" &&
mount --bind "$1/run" "$1/root$1/run" && mount -o remount,bind,ro "$1/root" || exit 77
mount --rbind /proc "$1/root/proc" && mount --rbind /dev "$1/root/dev" || exit 77
cd / && shift && exec chroot "$T/root" "$@"
'
mkdir "$T/root" "$T/state" "$T/run"
SOCK=$T/run/weftd.sock
export WEFT_SOCKET=$SOCK T
emulators
fabric "$T/fabric.yaml" 'Ring(4)'
unshare -m --propagation private bash -c "$inside" inside "$T" /bin/sh -c '
	touch /etc/weft-was-here 2>/dev/null && exit 1
	touch "$T/weft-was-here" 2>/dev/null && exit 1
	exec "$0" "$@"' "$(command -v weftd)" --socket "$SOCK" --state-dir "$STATE" \
	>"$T/weftd.log" 2>&1 </dev/null 8<"$TOP/Makefile" &
PID[weftd]=$!
started=no
for _ in $(seq 600); do
	weft status >/dev/null 2>&1 && started=yes && break
	kill -0 "${PID[weftd]}" 2>/dev/null || break
	sleep 0.05
done
if [[ $started == no ]]; then
	wait "${PID[weftd]}"
	if [[ $? == 77 ]]; then
		unset "PID[weftd]"
		echo "ok 1 - a root folder that is read only # SKIP no such mounts here"
		exit 0
	fi
	sed 's/^/# /' "$T/weftd.log"
fi
[[ $started == yes ]]
tap "weftd starts where all else is read only"
expect 0 "it applies" weft apply -f "$T/fabric.yaml"
expect 0 "and verifies" weft verify
find "/proc/${PID[weftd]}/fd" -lname '/*' -printf '%l\n' 2>/dev/null |
	sed "s|^$T/root||" | grep -vE "^(/dev/|/proc/|$T/weftd.log|$STATE/|$T/run/)" >"$T/open"
[[ ! -s $T/open ]] || { sed 's/^/# open: /' "$T/open"; false; }
tap "it has no file open elsewhere, nor what it inherited"
stop weftd
[[ -s $STATE/weft.db && $(ls "$T/root") == "" && ! -e /etc/weft-was-here && ! -e $T/weft-was-here ]]
tap "what it keeps is in its state folder"
! grep -i 'read-only' "$T/weftd.log"
tap "and it asked for nothing else"
finish
