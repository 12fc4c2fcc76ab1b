#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# One answer of a real etcd comes late: the N-th of an apply, a campaign, a drain, a release of a job. Then
# whoever leads is killed. Both stores have the same rows before and after, both weftd follow, and whatever
# a client was told is done is there. The same at all moments, and with more that goes wrong, is told on virtual
# time (tests/sim/stories/etcd_stories.c).
#
# NTH="N..." (5), KINDS, LEASE=SECONDS (2)
source "$(dirname "$0")/../lib.sh"
NTH=${NTH:-5}
LEASE=${LEASE:-2}
mapfile -t TABLES < <(sed -n '/replicated\[\] = {/,/};/p' "$TOP/controller/store/replicate.c" | grep -o '"[a-z_]*"' | tr -d '"')

# between NAME: what stands before the etcd for that one.
between() {
	CTL[$1]=$T/$1.ctl
	/usr/bin/python3 "$TOP/tests/fault/late_answers.py" "$T/$1.url" "${ETCD##*:}" "${CTL[$1]}" >"$T/$1.between" 2>&1 </dev/null &
	PID[$1.between]=$!
	wait_for 10 test -s "$T/$1.url"
}
weftd_of() { # NAME
	weftd --etcd "$(cat "$T/$1.url")" --lease "$LEASE" --socket "$T/$1.sock" --state-dir "$T/state-$1" --poll 3600 \
		>>"$T/$1.log" 2>&1 </dev/null &
	PID[$1]=$!
}
at() { # NAME COMMAND...
	timeout 60 weft --socket "$T/$1.sock" "${@:2}" </dev/null
}
is_alive() { # NAME
	[[ -n ${PID[$1]:-} ]] && kill -0 "${PID[$1]}" 2>/dev/null
}
other() { [[ $1 == a ]] && echo b || echo a; }
# leader [EXCEPT]: the one that leads, and knows its devices
leader() {
	local one
	for one in a b; do
		[[ $one != "${1:-}" ]] && is_alive $one && at $one status --format json >"$T/status" 2>&1 &&
			grep -qE '"state": "(ready|empty|interrupted)"' "$T/status" && echo $one && return
	done
	return 1
}
# start_ended [EXCEPT]: as a service manager does.
start_ended() {
	local one
	for one in a b; do
		[[ $one == "${1:-}" ]] || is_alive $one || { [[ -n ${PID[$one]:-} ]] && wait "${PID[$one]}"; weftd_of $one; }
	done
}
# Both are there, one leads, and the other has all that it has.
both_up() {
	start_ended
	leader >"$T/leader" && jq -e '.leadership | .unconfirmed == 0 and (.standbys | length == 1 and .[0].behind == 0)' "$T/status" >>"$T/up"
}
rows() { # NAME
	sqlite3 -readonly "$T/state-$1/weft.db" ".dump ${TABLES[*]}"
}
same_rows() {
	rows a >"$T/rows-a" && rows b >"$T/rows-b" && grep -q '^INSERT INTO state' "$T/rows-a" && cmp -s "$T/rows-a" "$T/rows-b"
}
now_ms() { echo $((${EPOCHREALTIME/[.,]/} / 1000)); }
late() { control "$1" "${2:-state}"; }	# NAME [LINE]

# What clients were told: h7 is drained, the job x is there ("?": no answer), and changes by their comments.
drained=no job=no
acknowledged=()
turn=0
ask() { # KIND LEADER
	case $1 in
	apply)
		((turn++))
		at "$2" apply -f "$T/f$((turn % 2)).yaml" -m "turn $turn" && acknowledged+=("turn $turn")
		;;
	drain)
		if [[ $drained == yes ]]; then
			drained='?'
			at "$2" undrain h7 && drained=no
		else
			drained='?'
			at "$2" drain h7 && drained=yes
		fi
		;;
	release)
		if [[ $job == yes ]]; then
			job='?'
			at "$2" job release x && job=no
		else
			job='?'
			at "$2" job request x --nodes "h[4-6]" -c allgather --size 1MB && job=yes
		fi
		;;
	esac >>"$T/asked" 2>&1
}
told() { # LEADER: what was acknowledged is there, and what was not is one of both
	local has_drain has_job
	at "$1" status --format json >"$T/status" 2>"$T/err" && at "$1" job list --format json >"$T/jobs" 2>"$T/err" &&
		at "$1" history --limit 1000 --format json >"$T/history" 2>"$T/err" || { echo "# no answer: $(cat "$T/err")"; return 1; }
	has_drain=$(jq -r 'if any(.holds[]?; .target == "h7") then "yes" else "no" end' "$T/status")
	has_job=$(jq -r 'if any(.jobs[]?; .name == "x" and (.state | test("^(ended|failed)$") | not)) then "yes" else "no" end' "$T/jobs")
	[[ $drained == '?' || $has_drain == "$drained" ]] || { echo "# drained: $has_drain, told: $drained"; return 1; }
	[[ $job == '?' || $has_job == "$job" ]] || { echo "# job: $has_job, told: $job"; return 1; }
	drained=$has_drain job=$has_job
	diff <(printf '%s\n' "${acknowledged[@]}" | sort) <(jq -r '.changes[] | select(.outcome == "committed") | .comment' "$T/history" | sort) |
		grep '^<' | sed 's/^/# acknowledged, and not there: /' | { ! grep .; }
}
other_leads() { # EXCEPT
	start_ended "$1"
	leader "$1"
}
# leads_in WHAT EXCEPT: another leads; notes how long that took since `begun`.
leads_in() {
	wait_for 30 other_leads "$2" || { echo "# $1: no one leads"; return 1; }
	echo "$(($(now_ms) - begun)) $1" >>"$T/took"
}

# late_one KIND N SECONDS
late_one() {
	local what="$1, answer $2 by $3 s" first watched begun led=no tries=0
	wait_for 30 both_up || { echo "# $what: not both up"; tail -n 3 "$T"/[ab].log; return 1; }
	first=$(cat "$T/leader")
	watched=$first
	if [[ $1 == campaign ]]; then
		watched=$(other "$first")
	elif [[ $1 == release && $job != yes ]]; then
		ask release "$first"
	fi
	late "$watched" "late $2 $3" >"$T/out"
	begun=$(now_ms)
	[[ $1 == campaign ]] && stop "$first"
	while [[ $(late "$watched") == waits ]] && ((tries++ < 40)); do
		[[ $1 == campaign ]] || ask "$1" "$first"
		[[ $1 == campaign ]] && sleep 0.3 && leader "$first" >"$T/out" && led=yes
		# Beats have answers, too; who does not lead any more is not asked again.
		is_alive "$watched" && [[ $1 == campaign || $(leader) == "$first" ]] || sleep 0.3
	done
	wait_for 10 eval "[[ \$(late $watched) == done ]]" || { echo "# $what: it did not come"; return 1; }
	[[ $1 == campaign && $led == no ]] || begun=$(now_ms)
	leads_in "$what" "$([[ $1 == campaign ]] && echo "$first")" && wait_for 30 both_up || { echo "# $what: not both up again"; tail -n 3 "$T"/[ab].log; return 1; }
	same_rows || { echo "# $what: other rows"; diff "$T/rows-a" "$T/rows-b" | head -n 5; return 1; }
	first=$(cat "$T/leader")
	begun=$(now_ms)
	stop "$first" KILL
	leads_in "$what, and a kill" "$first" && told "$(other "$first")" || { echo "# $what: after failover"; return 1; }
}

etcd_alone
emulator ocs0 polatis-scpi 16x16 || exit 1
for n in 0 1; do
	topologies=('UniRing(2,4)' 'Ring(4)')
	cat >"$T/f$n.yaml" <<-END
	weft: 1
	fabric: late
	hosts:
	  - { name: "h[0-7]", ports: "p[0-1]", rate: 100Gbps, reactivation: 1ms }
	switches:
	  - { name: ocs0, size: 16x16, driver: polatis-scpi, address: "${ADDR[ocs0]}", timeout: 500ms, options: { gap_ms: 1, settle_ms: 5 } }
	fibres:
	  - { from: "h[0-7].p[0-1]", to: "ocs0.[1-16]" }
	jobs:
	  - { name: reduce, nodes: "h[0-3]", collective: allreduce, size: 1MiB, topology: "${topologies[n]}", alpha: 10us }
	END
done
between a && between b && wait_for 30 both_up
tap "two weftd, each with something between it and etcd"
ask apply "$(cat "$T/leader")"
bad=0 cases=0
for kind in ${KINDS:-apply campaign drain release}; do
	for n in $NTH; do
		late_one $kind "$n" "$([[ $((n % 2)) == 0 ]] && echo 1.8 || echo 0.9)" || bad=$((bad + 1))
		cases=$((cases + 1))
	done
done
[[ $bad == 0 ]]
tap "$cases late answers: the same rows in both, both follow, and what was acknowledged is there after failover"
# Times are told, not asserted: the machine may be busy.
sort -n "$T/took" | awk -v lease="$LEASE" '{ v[NR] = $1 } $1 > (lease + 2) * 1000 { late++; print "# " $0 } END {
	printf "# someone leads: %d times, median %d ms, at most %d ms; %d after more than the lease and 2 s\n", NR, v[int((NR + 1) / 2)], v[NR], late + 0 }'
finish
