#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What six plans without end of a viewer cost an operator: its plans and applies alone, and while
# they are under way. Needs root, for the viewer to be another user.
source "$(dirname "$0")/../lib.sh"
json=/dev/null
[[ ${1:-} == --json ]] && json=$2
runs=20
[[ $(id -u) == 0 ]] || { echo "needs root"; exit 0; }
chmod 711 "$T"
printf 'operator user root\nviewer user *\n' >"$T/access"
DAEMON_OPTIONS=(--socket-mode 0666 --access "$T/access" --plan-time 600)

one_job "$T/a.yaml" 6 allgather bfb
one_job "$T/b.yaml" 6 allreduce bfb
one_job "$T/endless.yaml" 48 all-to-all tsmcf

# measure NAME COMMAND: of runs times, on the two configurations in turn; median and greatest in
# NAME_ms and NAME_max_ms.
measure() {
	local files=("$T/a.yaml" "$T/b.yaml") took=() begun
	for ((i = 0; i < runs; i++)); do
		begun=$(date +%s%N)
		weft "$2" -f "${files[i % 2]}" >"$T/out" 2>&1
		took+=($((($(date +%s%N) - begun) / 1000000)))
	done
	mapfile -t took < <(printf '%s\n' "${took[@]}" | sort -n)
	declare -g "$1_ms=${took[runs / 2]}" "$1_max_ms=${took[runs - 1]}"
}
working() { (($(ps -o ni= --ppid "${PID[weftd]}" | grep -c 15) >= 1)); }

daemon || exit 1
weft apply -f "$T/b.yaml" >"$T/out" 2>&1
measure apply apply
measure plan plan
for i in 1 2 3 4 5 6; do
	setpriv --reuid 4001 --regid 4001 --clear-groups "$(command -v weft)" plan -f - \
		<"$T/endless.yaml" >/dev/null 2>&1 &
	PID[heavy$i]=$!
done
wait_for 10 working || { echo "no plan of a viewer is under way"; exit 1; }
measure apply_beside apply
measure plan_beside plan
for i in 1 2 3 4 5 6; do
	kill -0 "${PID[heavy$i]}" || { echo "a plan of the viewer has ended"; exit 1; }
done

printf '%-38s %8s %8s\n' "$runs of an operator" median greatest
printf '%-38s %5d ms %5d ms\n' 'plans, alone' "$plan_ms" "$plan_max_ms" \
	'plans, beside six of a viewer' "$plan_beside_ms" "$plan_beside_max_ms" \
	'applies, alone' "$apply_ms" "$apply_max_ms" \
	'applies, beside six of a viewer' "$apply_beside_ms" "$apply_beside_max_ms"
printf '{"bench": "shares", "plan_ms": %d, "plan_beside_ms": %d, "apply_ms": %d, "apply_beside_ms": %d}\n' \
	"$plan_ms" "$plan_beside_ms" "$apply_ms" "$apply_beside_ms" >>"$json"
