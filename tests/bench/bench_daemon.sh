#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# weftd on the demo fabric: time from start to ready (the socket answers),
# resident memory when idle, and a plan over the socket.
source "$(dirname "$0")/../lib.sh"
json=/dev/null
[[ ${1:-} == --json ]] && json=$2
FABRIC=$TOP/configs/fabrics/demo.yaml
runs=5

now_ms() { echo $(($(date +%s%N) / 1000000)); }

weft emulate "$FABRIC" >"$T/emulate.log" 2>&1 </dev/null &
PID[emulate]=$!
wait_for 10 grep -q listening "$T/emulate.log" || {
	cat "$T/emulate.log"
	exit 1
}
daemon || exit 1
weft apply -f "$FABRIC" --comment bench >"$T/out" 2>&1 || {
	cat "$T/out"
	exit 1
}
stop weftd

ready=()
for ((i = 0; i < runs; i++)); do
	start=$(now_ms)
	NOTIFY_SOCKET='' weftd --socket "$SOCK" --state-dir "$STATE" >>"$T/weftd.log" 2>&1 </dev/null &
	PID[weftd]=$!
	until weft status -q >/dev/null 2>&1; do sleep 0.005; done
	ready+=($(($(now_ms) - start)))
	((i < runs - 1)) && stop weftd
done
sleep 2
rss=$(awk '/^VmRSS/ {print $2}' "/proc/${PID[weftd]}/status")
start=$(now_ms)
weft plan -f "$FABRIC" >"$T/out" 2>&1
plan=$(($(now_ms) - start))
mapfile -t ready < <(printf '%s\n' "${ready[@]}" | sort -n)
mid=${ready[$((runs / 2))]}
printf '%-34s %8s   %s\n' figure value limit
printf '%-34s %5d ms   %s\n' 'start to first answer (median of 5)' "$mid" '200 ms'
printf '%-34s %5d MiB  %s\n' 'resident memory, idle' $((rss / 1024)) '32 MiB'
printf '%-34s %5d ms\n' 'plan of the demo, nothing to do' "$plan"
printf '{"bench": "daemon", "start_ms": %d, "rss_kib": %d, "plan_ms": %d}\n' \
	"$mid" "$rss" "$plan" >>"$json"
