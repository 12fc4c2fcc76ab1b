#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The numbers that the papers print, from the command line: exact step counts
# and bandwidth factors. And schedules with one thing wrong are refused.
source "$(dirname "$0")/../lib.sh"

# field WHAT JQ WANT COMMAND...
field() {
	local what=$1 query=$2 want=$3 got
	shift 3
	got=$("$@" --format json 2>"$T/err" | jq -r "$query")
	if [[ $got != "$want" ]]; then
		echo "# $*: $query is '$got', expected '$want'"
		sed 's/^/#   /' "$T/err"
		tap "$what" 1
	else
		tap "$what" 0
	fi
}

# OpTree, Theorem 1 and the depths of figure 4.
closed() { # N W K STEPS
	field "OpTree closed form N=$1 w=$2 k=$3" .closed_form_steps "$4" \
		weft ring plan -n "$1" -w "$2" --depth "$3" --size 4KB \
		--algorithm optree
}
closed 16 2 1 16
closed 16 2 2 12
closed 256 64 1 128

# BFB: steps and T_B in M/B (direct-connect-topologies, tables 4, 5, 7).
bfb() { # TOPOLOGY COLLECTIVE STEPS FACTOR
	weft schedule make --topology "$1" --collective "$2" --algorithm bfb --objective bandwidth \
		-o "$T/s.json" >"$T/out" 2>"$T/err" || cat "$T/err"
	field "$2 on $1: steps" .steps "$3" weft schedule verify "$T/s.json"
	field "$2 on $1: T_B" .bandwidth_factor "$4" \
		weft schedule verify "$T/s.json"
}
bfb 'Hypercube(3)' allgather 3 7/8
bfb 'Hypercube(4)' allreduce 8 15/8
bfb 'Torus(3,3)' allgather 2 8/9
bfb 'Torus(4,4)' allreduce 8 15/8
bfb 'K(4,4)' allgather 2 7/8
bfb 'C(16,{3,4})' allgather 3 15/16
bfb 'GenKautz(4,25)' allgather 3 92/75
bfb 'GenKautz(4,25)' reduce-scatter 3 32/25

# Late takers: the bound where breadth-first broadcast is not balanced.
late() { # TOPOLOGY COLLECTIVE EXTRA_STEPS STEPS FACTOR
	weft schedule make --topology "$1" --collective "$2" --algorithm late --extra-steps "$3" \
		--objective bandwidth \
		-o "$T/s.json" >"$T/out" 2>"$T/err" || cat "$T/err"
	field "$2 on $1, $3 extra steps" '"\(.steps) \(.bandwidth_factor) \(.bandwidth_optimal)"' \
		"$4 $5 true" weft schedule verify "$T/s.json"
}
late 'DiCay(16:4,r=3,{(9,3),(4,3),(9,0)})' allgather 0 5 63/64
late 'DiCay(5:20,r=2,{(1,11),(1,17),(4,16),(2,7)})' reduce-scatter 1 6 99/100
late 'Jellyfish(32,4,1)' allreduce 1 10 31/16
chosen() { # TOPOLOGY OPTIONS...
	weft schedule make -t "$1" -c allgather "${@:2}" --format json | jq -c '[.algorithm, .steps]'
}
[[ $(chosen 'Jellyfish(32,4,1)' --objective bandwidth) == '["trees",5]' && $(chosen 'DiCay(5:4,r=2,{(1,0),(0,1)})' --objective bandwidth) == '["late",4]' ]]
tap "trees and late takers are taken when they are better"
cost=(--alpha 1us --bandwidth 100Gbps --size)
[[ $(chosen 'Jellyfish(32,4,1)' "${cost[@]}" 1MB) == '["trees",5]' &&
	$(chosen 'Jellyfish(32,4,1)' "${cost[@]}" 1KB) == '["late",4]' ]]
tap "in more when that is faster"
[[ $(chosen 'Mesh(10,10)' "${cost[@]}" 100MB) == '["flood",34]' ]]
tap "flooding where that is faster"
[[ $(chosen 'GenKautz(4,256)' --extra-steps 2 --objective bandwidth) == '["bfb",4]' ]]
tap "not where links are full"
[[ $(chosen 'Mesh(2,250)' --extra-steps 2 --objective bandwidth) == '["bfb",250]' ]]
tap "nor beyond its limits"

# Trees of all ranks: within a hundredth of what cuts allow, also through switches; of an
# all-reduce along spanning trees used both ways, where a reduce-scatter and an all-gather take 19/10 as long.
trees() { # TOPOLOGY COLLECTIVE GAP OPTIONS...
	weft schedule make -t "$1" -c "$2" -a trees "${@:4}" -o "$T/s.json" --format json \
		>"$T/out" 2>"$T/err" || cat "$T/err"
	[[ $(jq "[.trees > 0, .tree_depth > 0, (.bandwidth_gap // .gap) <= $3] | all" "$T/out") == true ]]
	tap "$2 on $1: near the bound"
	field "... and replayed" .valid true weft schedule verify "$T/s.json"
}
trees 'Xpander(4,8,1)' allgather 0.01 --objective bandwidth
trees 'Jellyfish(14,3,2)' reduce-scatter 0.01 --alpha 1us --size 1GiB --link-bandwidth 100Gbps
trees 'Prod(Cap(Ring(4),2),Ring(3))' allreduce 0.02 --objective bandwidth
trees 'DgxA100(2,nvlink)' allgather 0.01 --objective bandwidth
trees 'Mesh(4,4)' allreduce 0.05 --alpha 1us --size 1GiB --link-bandwidth 100Gbps
trees 'DeBruijn(2,4)' allreduce 0.05 --alpha 1us --size 1GiB --link-bandwidth 100Gbps

# Two boxes of sixteen dies (MI250), 1 MiB: batches by the links that carry them.
boxes() { # COLLECTIVE MOST_NS
	weft schedule make -t "$TOP/tests/data/two_boxes.txt" -c "$1" --alpha 0.5us --size 1MiB \
		--link-bandwidth 8Gbps --format json >"$T/out" && (($(jq .time_ns "$T/out") <= $2))
	tap "$1 of two boxes"
}
boxes allgather 9900
boxes allreduce 19500
weft schedule make -t 'Jellyfish(10,3,2)' -c allgather --pareto --format json \
	--alpha 1us --size 1MiB --link-bandwidth 100Gbps >"$T/pareto"
[[ $(jq '[.points | (map(.steps) | . == (sort | unique)), (map(.bandwidth_gap) | . == (sort | reverse | unique | reverse)),
	(.[0].steps == 3), (.[0].fastest_from_bytes == 0), (last.algorithm == "trees")] | all' \
	"$T/pareto") == true ]]
tap "more steps for less T_B, from the fewest to trees"
expect 64 "one or all" weft schedule make -t 'K(4)' -c allgather --pareto -a bfb
expect 64 "a list and an objective" weft schedule make -t 'K(4)' -c allgather --pareto --objective time
expect 64 "tables and rates" weft schedule make -t 'K(4)' -c allgather --pareto --rate
expect 65 "not of pairs" weft schedule make -t 'K(4)' -c all-to-all --pareto

# Switches that copy and sum: T_B of an all-reduce of 1 GiB on one box of eight, and its gap.
helped() { # TOPOLOGY FACTOR TIME
	field "switches of $1" '"\(.bandwidth_factor) \(.time_ns)"' "$2 $3" weft schedule make -t "$1" \
		-c allreduce --alpha 1us --link-bandwidth 8Gbps --size 1GiB -o "$T/s.json"
}
helped 'Cap(Star(8),450)' 7/4 4177663
helped 'Cap(Nvls(Star(8)),450)' 57/56 2471702
expect 65 "no program for it" weft schedule export "$T/s.json" --to msccl-xml -o "$T/s.xml"
helped 'Cap(Sharp(Star(8)),450)' 1 2387093
# Collectives with a root: T_B in M/B, and the bound of the digraph's cuts.
rooted() { # TOPOLOGY COLLECTIVE ROOT STEPS FACTOR BOUND
	weft schedule make --topology "$1" --collective "$2" --root "$3" \
		--objective bandwidth \
		-o "$T/s.json" >"$T/out" 2>"$T/err" || cat "$T/err"
	field "$2 on $1 from $3" '"\(.root) \(.steps) \(.bandwidth_factor) \(.bandwidth_bound)"' \
		"$3 $4 $5 $6" weft schedule verify "$T/s.json"
}
rooted 'Hypercube(4)' broadcast 3 68 17/16 1
rooted 'UniRing(1,5)' reduce 4 51 17/16 1
rooted 'Torus(4,4)' scatter 5 4 15/16 15/16
rooted 'Hypercube(6)' gather 63 6 63/64 63/64
rooted 'Mesh(4,4)' gather 0 6 15/8 15/8

# The best rate and the least cost (thesis, tables 6.3 to 6.8), and what they hang on.
rate() { # TOPOLOGY COLLECTIVE QUERY WANT OPTIONS...
	local topology=$1 collective=$2 query=$3 want=$4
	shift 4
	field "rate of $collective on $topology $*" "$query" "$want" \
		weft schedule make --topology "$topology" --collective "$collective" --rate "$@"
}
rate 'DgxA100(4,nvlink)' allgather '.rate + " " + .shard_time + " " + .bound' '25/3 3/25 3/25'
rate 'DgxA100(4,nvlink)' allgather '.cost + " " + .cost_bound' '2176 2176' --least-cost
rate 'DgxA100(2,all)' allgather '.cost' 41904/83 --least-cost
rate 'DgxA100(1,pcie)' all-to-all '.shard_time + " " + .cost' '3/8 112' --least-cost
rate 'DgxA100(2,nvlink)' broadcast .shard_time 1/200 --root 3
rate 'Ring(4)' allgather '.sensitivity | map(.alike * .share) | add | . >= 1' true --sensitivity
rate 'UniRing(1,4)' allgather .shard_time 9 --also reduce-scatter:2
# Schedules along trees of least cost, within 1 % of the rate, also through memories that copy.
cheap() { # TOPOLOGY COLLECTIVE
	weft schedule make -t "$1" -c "$2" --least-cost --objective bandwidth -o "$T/s.pb" --format json >"$T/made" 2>"$T/err" ||
		cat "$T/err"
	field "least cost of $2 on $1 verifies" .valid true weft schedule verify "$T/s.pb"
	jq -e '.bandwidth_gap < 0.01 and .algorithm == "trees"' "$T/made" >"$T/out"
	tap "least cost of $2 on $1 is near the rate" $?
}
cheap 'DgxA100(4,nvlink)' allgather
cheap 'DgxA100(2,pcie)' allgather
cheap 'DgxA100(2,pcie)' reduce-scatter
cheap 'FatTree(4)' allreduce
expect 64 "--sensitivity without --rate" weft schedule make -t 'Ring(4)' -c allgather --sensitivity
expect 64 "least cost of paths" weft schedule make -t 'Ring(4)' -c scatter --least-cost
expect 64 "--rate with a schedule's option" weft schedule make -t 'Ring(4)' -c allgather --rate \
	--chunks 2

# Schedules with one thing wrong.
expect 0 "a schedule to break" weft schedule make --topology 'C(8,{1,2})' \
	--collective allgather -o "$T/good.json"
expect 0 "it verifies" weft schedule verify "$T/good.json"
# broken WHAT JQ: the schedule changed by the jq program is refused.
broken() {
	jq "$2" "$T/good.json" >"$T/bad.json"
	if weft schedule verify "$T/bad.json" >"$T/out" 2>"$T/err"; then
		tap "refused: $1" 1
	else
		tap "refused: $1" 0
	fi
	has err "said why: $1" 'step|shard|arc|transfer'
}
broken "one transfer removed" 'del(.transfers[5])'
broken "one transfer twice" '.transfers += [.transfers[5]]'
# Columns are step, arc, origin, ...: a late transfer moved to the start.
broken "sent before held" \
	'(.transfers | map(.[0]) | max) as $last |
	 (.transfers | map(.[0] == $last) | index(true)) as $i |
	 .transfers[$i][0] = 0'
broken "on a missing arc" '.transfers[3][1] = 9999'
# Slices of cubes: the best rates of all-to-alls on tori and their twists, and of the digraph that
# a job of twisted cubes has.
rate() { # RATE TOPOLOGY
	field "all-to-all on $2: rate" .flow_rate_exact "$1" \
		weft schedule make -t "$2" -c all-to-all --rate --exact
}
rate 1/128 'Torus(4,4,8)'
rate 3/220 'TwistedTorus(4,4,8,0,4,4)'
rate 1/256 'Torus(4,8,8)'
rate 1/184 'TwistedTorus(4,8,8,4,4,0)'
weft topology build -f "$TOP/configs/fabrics/cubes.yaml" --job experts -o "$T/experts.txt" >"$T/out"
rate 3/220 "$T/experts.txt"
finish
