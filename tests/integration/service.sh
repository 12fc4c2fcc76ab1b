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
finish
