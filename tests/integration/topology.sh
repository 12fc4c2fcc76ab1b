#!/bin/bash
# weft topology from the command line: expressions, edge lists, the finder and
# its cache, which may be damaged but never be believed then.
source "$(dirname "$0")/../lib.sh"
BIN=$BUILD/asan
PATH=$BIN:$PATH
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
says "a product too large" '1000000 nodes' \
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

# All-to-all is ranked by proven rates.
got=$(weft topology find -n 8 -d 4 -c all-to-all --format json |
	jq -c '[.best,.rate_bound,.points[0].flow_rate]')
[[ $got == '["K(4,4)",0.4,0.4]' ]]
tap "the best topology for all-to-all"
got=$(weft topology find -n 9,10 -d 4 -c all-to-all --format json |
	jq -c '[.best[]|[.nodes,.topology]]')
[[ $got == '[[9,"Paley(9)"],[10,"C(10,{2,3})"]]' ]]
tap "a sweep for all-to-all"
says "all-to-all at a price" 'best for all sizes' \
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
	--size 1MiB,100MB --format json | jq -c '[.best[].topology]')
[[ $got == '["L3(C(16,{3,4}))","L2(DiC(64,{35,50,59,62}))"]' ]]
tap "the fastest for each message size"

got=$(weft schedule make --topology 'GenKautz(4,30)' --collective allreduce \
	--chunks 3 --format json | jq -c '[.chunks,.bandwidth_factor]')
[[ $got == '[3,"38/15"]' ]]
tap "a schedule of three chunks a shard"
says "chunks of an all-to-all" 'only for --algorithm bfb' weft schedule make \
	--topology 'K(4)' --collective all-to-all --chunks 3

find() {
	weft topology find -n 64 -d 5 --alpha 10us --bandwidth 100Gbps \
		--size 1MiB --format json "$@"
}
find >"$T/first" && file=$(ls "$XDG_CACHE_HOME"/weft/frontier-64-5-*)
tap "found, and kept"
find >"$T/second" && cmp -s "$T/first" "$T/second"
tap "the same from the cache"
for damage in 's/^weft-frontier-4/weft-frontier-0/' '3s/^[0-9]*/1/' '$d'; do
	sed -i "$damage" "$file"
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
