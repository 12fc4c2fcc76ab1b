#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# weftd with few file descriptors, and with its standard ones closed.
source "$(dirname "$0")/../lib.sh"
emulators || exit 1
fabric "$T/a.yaml" 'UniRing(2,4)'

# Closed: nothing of weftd's own may get the numbers that lines are written to.
weftd --socket "$SOCK" --state-dir "$STATE" <&- >&- 2>&- &
PID[weftd]=$!
wait_for 10 weft status --format json
tap "weftd starts with its standard files closed"
for fd in 0 1 2; do
	[[ $(readlink "/proc/${PID[weftd]}/fd/$fd") == /dev/null ]]
	tap "descriptor $fd is nothing of weftd's own"
done
expect 0 "and works" weft apply -f "$T/a.yaml"
stop weftd
daemon || exit 1
weft status >&- 2>"$T/err"
[[ $? == 1 ]]
tap "a client without standard output fails"
has err "and says why" 'standard output: Bad file descriptor'
stop weftd

# As many connections as there are descriptors.
(ulimit -n 40 && exec weftd --socket "$SOCK" --state-dir "$STATE" \
	>>"$T/weftd.log" 2>&1 </dev/null) &
PID[weftd]=$!
wait_for 10 weft status --format json
tap "weftd starts with 40 descriptors"
mkfifo "$T/hold"
exec {hold}<>"$T/hold"
for i in {1..60}; do
	nc -U "$SOCK" <"$T/hold" >"$T/flood" 2>&1 {hold}>&- &
	PID[flood$i]=$!
done
wait_for 20 weft status
tap "one more than there are descriptors for is served: idle ones make room for it"
exec {hold}>&-
for i in {1..60}; do
	stop "flood$i"
done
wait_for 10 weft status
tap "until they go"
expect 0 "then devices are read" weft verify
expect 0 "and changed" weft apply -f "$T/a.yaml"
finish
