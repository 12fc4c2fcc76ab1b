#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Two jobs on hosts of their own, started and released at random while ports
# fail and recover and weftd is killed: no circuit of the other job, or of the
# operator's, is ever touched: neither in the end nor, by the switch's own log of
# what moved, for a moment. WEFT_SEED, WEFT_ROUNDS (500).
source "$(dirname "$0")/../lib.sh"
RANDOM=${WEFT_SEED:=$((RANDOM + 1))}
emulator ocs0 polatis-scpi 16x16 || exit 1
cat >"$T/fabric.yaml" <<END
weft: 1
fabric: shared
hosts:
  - { name: "h[0-7]", ports: "p[0-1]", rate: 100Gbps, reactivation: 1ms }
switches:
  - { name: ocs0, size: 16x16, driver: polatis-scpi, address: "${ADDR[ocs0]}" }
fibres:
  - { from: "h[0-7].p[0-1]", to: "ocs0.[1-16]" }
jobs:
  - { name: own, nodes: "h[0-1]", collective: allreduce, size: 1MB }
END
daemon && weft apply -f "$T/fabric.yaml" >"$T/out" 2>&1 || exit 1
declare -A NODES=([x]="h[2-4]" [y]="h[5-7]") FIRST=([own]=0 [x]=4 [y]=10) LAST=([own]=3 [x]=9 [y]=15)
declare -A RUNS=([x]=no [y]=no)

# light JOB: its circuits, by the inputs of its hosts.
light() {
	control ocs0 map | grep , | awk -F, -v a="${FIRST[$1]}" -v b="${LAST[$1]}" '$1 >= a && $1 <= b' | sort
}

# moved FROM JOB: circuits of the job that moved since line FROM of the log.
moved() {
	tail -n "+$1" "$T/ocs0.log" | sed -n 's/^circuit \([0-9]*\),\([0-9]*\) \(made\|gone\)$/\1 \2/p' |
		awk -v a="${FIRST[$2]}" -v b="${LAST[$2]}" '($1 >= a && $1 <= b) || ($2 >= a && $2 <= b)' | wc -l
}

touched=0 failed=0 kills=0 starts=0 ends=0 moves=0 dead=0
for ((round = 1; round <= ${WEFT_ROUNDS:-500}; round++)); do
	me=x other=y
	((RANDOM % 2)) && me=y other=x
	light "$other" >"$T/other"
	light own >"$T/own"
	from=$(($(wc -l <"$T/ocs0.log") + 1))
	# A link of the other job dies, and everybody looks.
	if [[ ${RUNS[$other]} == yes ]] && ((RANDOM % 4 == 0)); then
		control ocs0 "fault port-failed=o$((${FIRST[$other]} + RANDOM % 6))" >"$T/ctl"
		weft verify >"$T/out" 2>&1
		dead=$((dead + 1))
	fi
	if ((RANDOM % 5 == 0)); then
		control ocs0 "fault refuse-port=o$((${FIRST[$me]} + RANDOM % 6))" >"$T/ctl"
	fi
	if [[ ${RUNS[$me]} == no ]]; then
		weft job request "$me" --nodes "${NODES[$me]}" -c allgather --size 1MB >"$T/out" 2>&1 &
		starts=$((starts + 1))
	else
		weft job release "$me" >"$T/out" 2>&1 &
		ends=$((ends + 1))
	fi
	client=$!
	if ((RANDOM % 25 == 0)); then
		sleep "0.0$((RANDOM % 9))"
		stop weftd KILL
		kills=$((kills + 1))
	fi
	wait "$client" || failed=$((failed + 1))
	control ocs0 clear >"$T/ctl"
	[[ -n ${PID[weftd]:-} ]] || daemon || exit 1
	# It comes to rest: running, or over.
	wait_for 60 bash -c "weft job list --format json $me | jq -e '[.jobs[] | select(.state != \"running\")] == []'" ||
		echo "# round $round: $(weft job list --format json "$me" | jq -c .)"
	RUNS[$me]=no
	[[ $(weft job list --format json "$me" | jq '.jobs | length') == 0 ]] || RUNS[$me]=yes
	moves=$((moves + $(moved "$from" "$me")))
	for job in "$other" own; do
		if (($(moved "$from" "$job") > 0)); then
			touched=$((touched + 1))
			echo "# round $round (seed $WEFT_SEED): $me ${RUNS[$me]}: light of $job moved"
		fi
		f=$T/other
		[[ $job == own ]] && f=$T/own
		if ! light "$job" | cmp -s - "$f"; then
			touched=$((touched + 1))
			echo "# round $round (seed $WEFT_SEED): $me ${RUNS[$me]}: the light of $job was touched"
			diff <(light "$job") "$f" | sed 's/^/#   /'
		fi
	done
done
echo "# seed $WEFT_SEED: $starts starts, $ends ends, $dead links died, $failed calls failed, $kills kills, $moves moves, $touched touched"
((touched == 0))
tap "no job's light is touched by another's"
((starts > 0 && ends > 0 && moves > 0 && dead > 0))
tap "jobs were started and released"
finish
