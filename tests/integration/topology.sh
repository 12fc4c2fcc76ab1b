#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# weft topology from the command line: expressions, edge lists, the finder and
# its cache, which may be damaged but never be believed then.
source "$(dirname "$0")/../lib.sh"
export XDG_CACHE_HOME=$T/cache
mkdir "$XDG_CACHE_HOME"

# says WHAT PATTERN COMMAND...: fails with exit code 64 or 65 and that text.
says() {
	local what=$1 pattern=$2 status
	shift 2
	"$@" >"$T/out" 2>"$T/err"
	status=$?
	[[ $status == 64 || $status == 65 ]] && grep -q -- "$pattern" "$T/err"
	tap "$what"
}

got=$(weft topology info 'L3(C(16,{3,4}))' --format json |
	jq -c '[.nodes,.degree,.diameter]')
[[ $got == '[1024,4,6]' ]]
tap "a composed expression"

printf 'undirected\n0 1\n1 2 4\n2 0\n' >"$T/edges"
got=$(weft topology info "$T/edges" --format json | jq -c '[.nodes,.arcs]')
[[ $got == '[3,6]' ]]
tap "an edge list"
printf 'nodes 3\n0 1\n1 3\n' >"$T/bad"
says "an edge list with a node out of range" 'bad:3:.* out of range' \
	weft topology info "$T/bad"
says "nested too deep" 'nested deeper than 32' \
	weft topology info "$(printf 'L(%.0s' {1..10000})"
says "a product too large" 'Prod has more than 65536 nodes' \
	weft topology info 'Prod(Ring(1000),Ring(1000))'
says "one node" 'from 2 to' weft topology find -n 1 -d 2
says "no ports" 'from 1 to' weft topology find -n 8 -d 0

says "a list that is none" 'not a list' weft topology find -n 8-4 -d 2
says "a sweep too large" 'more than 65536' \
	weft topology find -n 2-2000 -d 1-2000
printf '0 1\n1 0\n1 2\n' >"$T/one-way"
says "a digraph that is not strongly connected" \
	'rank 2 cannot reach rank 0' \
	weft schedule make --topology "$T/one-way" --collective allgather
says "nodes times ports beyond the limit" '65536000000 arcs' \
	weft topology info 'UniRing(1000000,65536)'
says "a number beyond 64 bits" 'number is too large' \
	weft topology info 'Multi(K(4),99999999999999999999)'

[[ $(weft topology find -n 100 -d 4 --alpha 500ns --bandwidth 1600Gbps --size 4KiB) == \
	*"sizes are those of bfb in one batch; one-shot on GenKautz(4,100) is faster"* &&
	$(weft topology find -n 100 -d 4 --alpha 500ns --bandwidth 1600Gbps --size 4MiB \
		-c allgather) != *"sizes are those of bfb"* ]]
tap "sizes of broadcasts are said to be, where another algorithm is faster"

# What the table says of a large digraph without a group is believed, and said to be.
got=$(weft topology find -n 1000 -d 4 --format json | jq -c '[.source,(.points[]|.computed)]')
[[ $got == '["table",false,true]' &&
	$(weft topology find -n 1000 -d 4) == *"GenKautz(4,1000): steps and T_B are the table's"* &&
	$(weft topology find -n 100 -d 4 --format json | jq '[.points[].computed]|all') == true ]]
tap "the table's figures, computed again where that takes a moment"

# All-to-all is ranked by proven rates.
got=$(weft topology find -n 8 -d 4 -c all-to-all --format json |
	jq -c '[.best,.rate_bound,.points[0].flow_rate,.points[0].sum_of_distances]')
[[ $got == '["K(4,4)",0.4,0.4,80]' ]]
tap "the best topology for all-to-all"
got=$(weft topology find -n 9,10 -d 4 -c all-to-all --format json |
	jq -c '[.best[]|[.nodes,.topology]]')
[[ $got == '[[9,"Paley(9)"],[10,"C(10,{1,4})"]]' ]]
tap "a sweep for all-to-all"
says "half a price" '--bandwidth' \
	weft topology find -n 8 -d 4 -c all-to-all --alpha 1us
says "all-to-all too large" 'more than 268435456' \
	weft topology find -n 8000 -d 80 -c all-to-all

# Table 5 of the paper by one call, and the fastest for two sizes.
got=$(weft topology find -n 5-12 -d 4 --format json |
	jq -c '[.points[] | select(.bandwidth_factor == .bandwidth_bound)
		| [.nodes, .steps]]')
[[ $got == '[[5,2],[6,4],[7,4],[8,4],[9,4],[10,4],[11,4],[12,4]]' ]]
tap "a sweep over sizes"
got=$(weft topology find -n 1024 -d 4 --alpha 10us --bandwidth 100Gbps \
	--size 1KiB,100MB --format json | jq -r '.best[].topology')
for size in 1KiB 100MB; do
	weft topology find -n 1024 -d 4 --alpha 10us --bandwidth 100Gbps --size $size \
		--format json | jq -r .best
done >"$T/best"
[[ $got == "$(cat "$T/best")" && $got == 'GenKautz(4,1024)'* && $(uniq "$T/best" | wc -l) == 2 ]]
tap "the fastest for each message size, as for that size alone"

# By the time of the schedule that a job would get.
price=(--alpha 10us --bandwidth 100Gbps --size)
got=$(weft topology find -n 1000 -d 4 -c allgather "${price[@]}" 1MiB --format json |
	jq -c '[.best == .fastest[-1].topology,
		[.fastest[].topology] == [.points[].topology], .fastest[1].from_bytes]')
from=${got##*,}
from=${from%]}
[[ $got == '[true,true,'* && $from -gt 0 ]]
tap "from which size on another is the fastest"
for bytes in $((from - 1)) "$from"; do
	weft topology find -n 1000 -d 4 -c allgather "${price[@]}" "${bytes}B" --format json |
		jq '.best == .fastest[1].topology'
done >"$T/second"
[[ $(paste -sd ' ' "$T/second") == 'false true' ]]
tap "at that size it is, and one byte before it is not"
short=$(weft topology find -n 12 -d 2 "${price[@]}" 1MiB --format json | jq .best_time_ns)
hops=$(weft topology find -n 12 -d 2 "${price[@]}" 1MiB --hop 1us --format json |
	jq .best_time_ns)
((hops == short + 1000 * $(weft topology find -n 12 -d 2 "${price[@]}" 1MiB --format json |
	jq .best_steps)))
tap "a hop is as good as alpha"
got=$(weft topology find -n 13,11 -d 2 --format json | jq -c '.points | length > 1')
[[ $got == true && $(weft topology find -n 13 -d 2 --format json | jq -r .groups) == cyclic &&
	$(weft topology find -n 12 -d 2 --format json | jq -r .groups) == all ]] &&
	weft topology find -n 13 -d 2 | grep -q '13 nodes: no group but the cyclic one is known'
tap "which groups there are"
says "a broadcast without a price" 'depends on the cost' \
	weft topology find -n 8 -d 4 -c broadcast
for kind in all-to-all broadcast reduce; do
	got=$(weft topology find -n 8 -d 4 --bidirectional -c "$kind" "${price[@]}" 1MiB \
		--format json | jq -c '[.best, ([.points[].time_ns] | . == sort)]')
	[[ $got == '["K(4,4)",true]' ]]
	tap "by time: $kind"
	got=$(weft topology find -n 8,9 -d 4 --bidirectional -c "$kind" "${price[@]}" 1KiB,1MiB \
		--format json | jq '.best | length')
	[[ $got == 4 ]]
	tap "a sweep by time: $kind"
done

# A plan takes what is found for the same question.
for kind in allreduce all-to-all broadcast; do
	cat >"$T/fabric.yaml" <<-END
	weft: 1
	fabric: t
	hosts:
	  - { name: "h[0-7]", ports: "p[0-3]", rate: 25Gbps }
	switches:
	  - { name: ocs, ports: 32, any-to-any: true, driver: sim }
	fibres:
	  - { from: "h[0-7].p[0-3]", to: "ocs.[1-32]" }
	jobs:
	  - { name: j, nodes: all, collective: $kind, size: 1MiB, topology: auto, alpha: 10us }
	END
	want=$(weft topology find -n 8 -d 4 --bidirectional -c "$kind" "${price[@]}" 1MiB \
		--format json | jq -r '[.best, .best_time_ns // .points[0].time_ns] | @tsv')
	got=$(weft plan -f "$T/fabric.yaml" --offline --format json |
		jq -r '.jobs[0] | [.topology, .time_ns] | @tsv')
	[[ $got == "$want" && $got == K\(4,4\)* ]]
	tap "planned as found: $kind"
done
weft plan -f "$T/fabric.yaml" --offline >"$T/out"
grep -q 'job j: next best is ' "$T/out"
tap "the plan says what would be next"

got=$(weft schedule make --topology 'GenKautz(4,30)' --collective allreduce \
	--chunks 3 --format json | jq -c '[.chunks,.bandwidth_factor]')
[[ $got == '[3,"38/15"]' ]]
tap "a schedule of three chunks a shard"
says "chunks of an all-to-all" 'is for allgather, reduce-scatter and allreduce' weft schedule make \
	--topology 'K(4)' --collective all-to-all --chunks 3

find() {
	weft topology find -n 64 -d 5 --alpha 10us --bandwidth 100Gbps \
		--size 1MiB --format json "$@"
}
find >"$T/first" && file=$(ls "$XDG_CACHE_HOME"/weft/frontier-64-5-*)
tap "found, and kept"
[[ $(jq -r .source "$T/first") == search && $(weft topology find -n 64 -d 4 --format json |
	jq -r .source) == table ]]
tap "where an answer is from"
find >"$T/second" && cmp -s "$T/first" "$T/second"
tap "the same from the cache"
for damage in 's/^weft-frontier-9/weft-frontier-0/' '1s/ [^ ]* / 0.0.9 /' '3s/^[0-9]*/1/' '$d'; do
	cp "$file" "$T/whole"
	sed -i "$damage" "$file"
	! cmp -s "$T/whole" "$file"
	tap "a cache changed by $damage"
	find >"$T/second" && cmp -s "$T/first" "$T/second"
	tap "searched again after $damage"
done
: >"$file"
find >"$T/second" && cmp -s "$T/first" "$T/second"
tap "searched again after an empty file"
XDG_CACHE_HOME=/dev/null find >"$T/second" && cmp -s "$T/first" "$T/second"
tap "no cache is no failure"

# Every point is what the verifier replays.
jq -r '.points[] | "\(.steps) \(.bandwidth_factor) \(.topology)"' "$T/first" |
	while read -r steps factor topology; do
		got=$(weft schedule make --topology "$topology" \
			--collective allreduce --format json |
			jq -r '"\(.steps) \(.bandwidth_factor)"')
		[[ $got == "$steps $factor" ]] || echo "$topology: $got"
	done >"$T/wrong"
sed 's/^/#   /' "$T/wrong"
[[ ! -s $T/wrong ]]
tap "every point has a schedule with its figures"
finish
