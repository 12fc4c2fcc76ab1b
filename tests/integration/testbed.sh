#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Twelve hosts of four ports in network namespaces: K4,4 and C(12,{2,3}) are
# applied through weftd, every arc of a job and no other pair answers, the
# change from one to the other interrupts the circuits that move and no other,
# and nothing is left behind, whatever was killed.
source "$(dirname "$0")/../lib.sh"
F=tb$$

left() { # how many namespaces of ours there are
	local n=0 path
	for path in /run/netns/weft."$F".*; do
		[[ -e $path ]] && n=$((n + 1))
	done
	echo $n
}
testbed_of "$T/k44.yaml"

# write FILE NODES TOPOLOGY
write() {
	cat >"$1" <<-END
	weft: 1
	fabric: $F
	hosts:
	  - { name: "h[00-11]", ports: "p[0-3]", rate: 10Gbps, reactivation: 10ms }
	switches:
	  - name: ocs0
	    size: 48x48
	    driver: linux-tc
	    options: { fabric: $F, switch_ms: 20 }
	fibres:
	  - { from: "h[00-11].p[0-3]", to: "ocs0.[1-48]" }
	jobs:
	  - { name: j, nodes: "$2", collective: allreduce, size: 1MiB, topology: "$3", alpha: 10us }
	END
}
write "$T/k44.yaml" 'h[00-07]' 'K(4,4)'
write "$T/c12.yaml" 'h[00-11]' 'C(12,{2,3})'
write "$T/one-way.yaml" 'h[00-11]' 'UniRing(1,12)'

weft testbed up "$T/k44.yaml" >"$T/out" 2>"$T/err"
status=$?
if [[ $status == 77 ]] || grep -q 'network namespace: ' "$T/err"; then
	echo "ok 1 - testbed # SKIP $(head -n 1 "$T/err")"
	echo "1..1"
	exit 0
elif [[ $status != 0 ]]; then
	cat "$T/err"
	tap "testbed up" 1
	finish
fi
[[ $(left) == 14 ]]
tap "a namespace for each of twelve hosts and one switch, and for managing"
expect 0 "up again: nothing to do" weft testbed up "$T/k44.yaml" --format json
[[ $(jq .built "$T/out") == false ]]
tap "it says so"
expect 75 "routes need light" weft testbed route "$T/k44.yaml"
daemon || exit 1

# arcs FILE: the pairs of hosts by number that heard one another, sorted.
arcs() {
	jq -r '.heard[] | select(.at == "rx") | "\(.from[1:3]) \(.to[1:3])"' \
		"$1" | sort
}

# show NAME FILE RULE: apply, and compare what arrives where with an awk RULE
# over hosts a and b.
show() {
	expect 0 "$1 is applied" weft apply -f "$2"
	expect 0 "$1: light arrives as lit" weft testbed probe "$2" --format json
	arcs "$T/out" >"$T/arcs"
	awk 'BEGIN { for (a = 0; a < 12; a++) for (b = 0; b < 12; b++)
		if ('"$3"') printf "%02d %02d\n", a, b }' | sort >"$T/want"
	diff "$T/arcs" "$T/want" | sed 's/^/# /'
	cmp -s "$T/arcs" "$T/want"
	tap "$1: on every arc of the topology and no other"
	expect 0 "$1: routes from the plan" weft testbed route "$2"
	expect 0 "$1: pings over one hop" weft testbed ping "$2" --format json
	[[ $(jq '.neighbours' "$T/out") == "$(wc -l <"$T/want")" &&
		$(jq '.answered' "$T/out") == "$(wc -l <"$T/want")" ]]
	tap "$1: every arc answers and no other pair"
}

show K4,4 "$T/k44.yaml" 'a < 8 && b < 8 && int(a / 4) != int(b / 4)'

# From one to the other, while every port sends a frame each 5 ms.
before() { jq -r '.ports[] | "\(.port) \(.light_from) \(.carrier_changes)"' "$1" | sort; }
weft testbed status "$T/k44.yaml" --format json >"$T/status1"
weft testbed probe "$T/k44.yaml" --duration 60s --interval 5ms \
	--format json >"$T/probe" 2>/dev/null &
PID[probe]=$!
weft testbed status "$T/k44.yaml" --watch >"$T/events" 2>/dev/null &
PID[watch]=$!
sleep 0.5
show 'C(12,{2,3})' "$T/c12.yaml" \
	'(b - a + 12) % 12 == 2 || (b - a + 12) % 12 == 3 || (a - b + 12) % 12 == 2 || (a - b + 12) % 12 == 3'
stop probe INT
stop watch INT
weft testbed status "$T/c12.yaml" --format json >"$T/status2"
join <(before "$T/status1") <(before "$T/status2") >"$T/both"
# port from1 changes1 from2 changes2
awk '$2 != "null" && $2 == $4' "$T/both" >"$T/stayed"
awk '$2 != $4' "$T/both" >"$T/moved"
echo "# $(wc -l <"$T/stayed") circuits stayed, $(wc -l <"$T/moved") ports have other light"
[[ -s $T/stayed && -s $T/moved ]]
tap "some circuits stay and some move"
[[ -z $(awk '$3 != $5' "$T/stayed") ]]
tap "ports whose circuit stayed: not one carrier change"
[[ -z $(awk '$3 == $5' "$T/moved") ]]
tap "ports with other light: the carrier changed at each"
cut -d ' ' -f 1 "$T/events" | sort -u >"$T/seen"
[[ -s $T/seen ]] && diff "$T/seen" <(cut -d ' ' -f 1 "$T/moved") | sed 's/^/# /'
cmp -s "$T/seen" <(cut -d ' ' -f 1 "$T/moved")
tap "link events came live, from those ports and no other"
while read -r port from _; do
	jq -r --arg to "$port" --arg from "$from" '.heard[] |
		select(.to == $to and .from == $from) |
		"\(.sent) \(.lost)"' "$T/probe"
done <"$T/stayed" >"$T/lost"
echo "# frames sent and lost over circuits that stayed: $(awk '{ s += $1; l += $2 } END { print s, l }' "$T/lost")"
[[ $(wc -l <"$T/lost") == "$(wc -l <"$T/stayed")" ]] &&
	awk '$1 < 50 || $2 { exit 1 }' "$T/lost"
tap "circuits that stayed lost no frame"
jq -e '[.heard[] | select(.lost > 0)] | length > 0' "$T/probe" >/dev/null
tap "those that moved were interrupted"

# No arc has its reverse here: answers come back over eleven other hosts.
show 'a ring one way' "$T/one-way.yaml" '(a + 1) % 12 == b'

# Light that leaves by another port than the map says.
weft testbed probe "$T/one-way.yaml" --format json >"$T/paths"
out_of() { # the output that leads to the N-th that hears
	jq -r --argjson n "$1" '[.heard[] | select(.at == "rx")][$n].to |
		capture("^h(?<h>..)\\.p(?<p>.)$") | (.h | tonumber) * 4 + (.p | tonumber) + 1' "$T/paths"
}
from=$(out_of 0)
misroute "weft.$F.ocs0" "$from" "$(out_of 1)"
tap "a circuit's light is misrouted"
expect 0 "the map is read back as commanded" weft verify
expect 2 "but frames tell" weft testbed probe "$T/one-way.yaml" --format json
[[ $(jq -c '[(.missing, .unexpected | length)]' "$T/out") == '[1,1]' ]]
tap "which arc is missing, and which is not to be"
misroute "weft.$F.ocs0" "$from"
expect 0 "no more: light as lit" weft testbed probe "$T/one-way.yaml"

stop weftd KILL
expect 0 "weftd killed: the light stays" weft testbed probe "$T/one-way.yaml"
expect 0 "down" weft testbed down "$T/c12.yaml"
[[ $(left) == 0 ]]
tap "nothing is left"
expect 0 "down again: nothing to do" weft testbed down "$T/c12.yaml"
for ms in 0.01 0.03 0.06 0.1; do
	weft testbed up "$T/k44.yaml" >/dev/null 2>&1 &
	PID[up]=$!
	sleep $ms
	stop up KILL
done
expect 0 "down after builds that were killed" weft testbed down "$T/k44.yaml"
[[ $(left) == 0 ]]
tap "nothing is left of those"
expect 69 "status says that it is not up" weft testbed status "$T/k44.yaml"

# What cannot be built is said before anything is.
sed 's/driver: linux-tc/driver: sim/; /options/d' "$T/k44.yaml" >"$T/sim.yaml"
expect 65 "a switch with another driver" weft testbed up "$T/sim.yaml"
has err "is named" 'ocs0: its driver is sim'
expect 64 "a fibre that is not there" weft testbed up --dead h99.p0.tx "$T/k44.yaml"
[[ $(left) == 0 ]]
tap "nothing was built"
finish
