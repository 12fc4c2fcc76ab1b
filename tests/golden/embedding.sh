#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Schedules on fabrics with switches, and on others than they are made for: steps,
# T_B and its bound, what stays of the symmetry; written, read and verified again.
source "$(dirname "$0")/../lib.sh"

# shellcheck disable=SC2053
# made PATTERN ARGUMENTS...: steps, T_B, its bound, group order and routes.
made() {
	local want=$1 got again file
	shift
	for file in "$T/s.json" "$T/s.pb"; do
		got=$(weft schedule make "$@" --objective bandwidth -o "$file" --format json 2>"$T/err" | jq -r \
			'"\(.steps) \(.bandwidth_factor) \(.bandwidth_bound) \(.group_order // 1) \(.routes)"')
		again=$(weft schedule verify "$file" --format json 2>>"$T/err" | jq -r \
			'"\(.steps) \(.bandwidth_factor) \(.bandwidth_bound) \(.group_order // 1) \(.routes)"')
		[[ $got == $want && $again == "$got" ]] || break
	done
	[[ $got == $want && $again == "$got" ]]
	tap "$* is $want" $?
	if [[ $got != $want || $again != "$got" ]]; then
		echo "# made '$got', verified '$again'"
		sed 's/^/#   /' "$T/err"
	fi
}

# One port to a switch: each takes in 7 shards, one after the other or at once.
made '1 7/8 7/8 8 7' -t 'Star(8)' -c allgather
made '2 7/8 7/8 8 4' -t 'K(4,4)' --on 'Star(8)' -c allgather
made '2 7/4 7/4 8 7' -t 'Star(8)' -c allreduce
# Straight to everyone on a ring of 16: 64 hops a node over 2 links, as any must.
made '1 4 4 *' -t 'K(16)' --on 'Ring(16)' -c all-to-all
# With ties to one side a link carries 36 instead of 32.
made '1 9/2 4 *' -t 'K(16)' --on 'Ring(16)' --routing dimension-order -c all-to-all
# A line's nodes are one switch apart: two hops for each of 32 x 3/2 shards over 128 links.
made '1 3/2 3/2 *' -t 'K(16)' --on 'HyperX(4,4)' -c all-to-all
made '2 15/16 15/16 16 24' -t 'HyperX(4,4)' -c allgather
# To the 8 GPUs of the other server half of the paths, by capacity 1/13 of the data,
# begin with the rail; it carries 8 shards at 25 of the GPU's 325.
made '1 13/2 15/16 16 22' -t 'K(16)' --on 'DgxA100(2,nvlink)' -c allgather
made '4 195/64 15/16 16 4' -t 'Hypercube(4)' --on 'DgxA100(2,nvlink)' -c allgather

# Pods, switches in a pod, hosts at a switch; a ring keeps the pods alone.
made '1 15/16 15/16 16 53' -t 'FatTree(4)' -c allgather
made '15 15/16 15/16 4 *' -t 'UniRing(1,16)' --on 'FatTree(4)' -c allgather

# Routes from a file, which the group of the ring does not keep: it moves transfers only.
cat >"$T/routes.json" <<'E'
{"routes": [[0, 1, 3, [0, 1]], [0, 1, 1, [0, 2, 1]], [1, 2, 1, [1, 2]], [2, 0, 1, [2, 0]]]}
E
made '2 4/3 2/3 3 4' -t 'UniRing(1,3)' --on 'Ring(3)' --routing "$T/routes.json" -c allgather

# What is shown, and the cost: two hops a step.
expect 0 "one to show" weft schedule make -t 'Star(8)' -c allgather -o "$T/star.json"
got=$(weft schedule show "$T/star.json" --format json | jq -r '"\(.topology), \(.physical), \(.routing)"')
[[ $got == "terminals of Star(8), Star(8), minimal-split" ]]
tap "show names both topologies: $got" $?
expect 0 "the cost of an embedded schedule" weft schedule cost "$T/star.json" --alpha 1us \
	--link-bandwidth 8Gbps --size 8KB --format json
[[ $(jq .time_ns "$T/out") == 8000 ]]
tap "its time is alpha and 7 KB at 1 GB/s" $?
finish
