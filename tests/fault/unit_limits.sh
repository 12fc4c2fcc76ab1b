#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# needs: root
# Plans under the limits of the shipped unit, without a systemd: its filter of system calls, memory that is
# never written and executed, and MemoryMax= as a group of processes, of which the kernel ends one.
cd "$(dirname "$0")" || exit 1
. ../lib.sh
UNIT=$TOP/configs/systemd/weftd.service
GROUP=

skip() { echo "ok 1 - weftd under its unit's limits # SKIP $1"; TAP_N=1; finish; }
[[ $(id -u) == 0 ]] || skip "needs root"
command -v systemd-analyze >"$T/out" || skip "no systemd-analyze, which knows the groups of system calls"
remove_group() {
	[[ -z $GROUP ]] || rmdir "$GROUP"
}
trap 'cleanup; remove_group' EXIT

one_job "$T/small.yaml" 6
one_job "$T/large.yaml" 1000

# limited OPTION...: weftd under them.
limited() {
	/usr/bin/python3 unit_limits.py "$UNIT" "$(command -v weftd)" --socket "$SOCK" --state-dir "$STATE" "$@" \
		>>"$T/weftd.log" 2>&1 </dev/null &
	PID[weftd]=$!
	wait_for 20 weft status
}

limited --plan-memory 64
tap "weftd starts"
grep -q '^Seccomp:.*2' "/proc/${PID[weftd]}/status"
tap "with the filter"
expect 0 "it plans and applies" weft apply -f "$T/small.yaml"
expect 65 "a plan that eats memory ends" weft plan -f "$T/large.yaml"
has err "by its own limit" "planning needs more than 64 MiB of memory"
expect 0 "and weftd goes on" weft status
! grep -iE 'not permitted|setpriority|mprotect' "$T/weftd.log"
tap "nothing that it needs was refused"
stop weftd

# A control group, of version 2 or 1.
for folder in /sys/fs/cgroup /sys/fs/cgroup/memory; do
	[[ -z $GROUP && -e $folder/cgroup.procs ]] && mkdir "$folder/weft.$$" 2>>"$T/group" || continue
	GROUP=$folder/weft.$$
	{ echo 64M >"$GROUP/memory.max" || echo 64M >"$GROUP/memory.limit_in_bytes"; } 2>>"$T/group" ||
		{ remove_group; GROUP=; }
done
if [[ -n $GROUP ]]; then
	limited --plan-memory 0
	echo "${PID[weftd]}" >"$GROUP/cgroup.procs"
	tap "weftd in a group with a limit of memory"
	expect 69 "a plan that eats that ends alone" weft plan -f "$T/large.yaml"
	has err "and its client is told" "planning was killed, as where the machine has no more memory"
	expect 0 "weftd goes on" weft status
	expect 0 "and plans" weft apply -f "$T/small.yaml"
	stop weftd
else
	echo "ok $((++TAP_N)) - a group with a limit of memory # SKIP none can be made here"
fi
finish
