#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# All-reduces along spanning trees, and in batches of unequal sizes, on graphs whose nodes have links of unlike number and
# capacity: replayed by another program, never below the bound by partitions, and near it.
source "$(dirname "$0")/../lib.sh"
here=$(cd "$(dirname "$0")" && pwd)

cat >"$T/torus" <<'END'
nodes 9
0 1
1 2 2
2 0
3 4
4 5
5 3
6 7 3
7 8
0 3
3 6 2
1 4
4 7
7 1
2 5
5 8
8 2
END

# A link of which one direction is dead.
{
	echo nodes 16
	weft topology build 'Torus(4,4)' --format json | jq -r '.arcs[] | "\(.src) \(.dst)"' | grep -vx '0 1'
} >"$T/one_direction"

# near GRAPH PERCENT [ALGORITHM MIB]: the time of a large vector is within so much of the bound, and is what the other
# program counts
near() {
	weft schedule make -t "$1" -c allreduce -a "${3:-trees}" --size "${4:-1024}MiB" --alpha 500ns \
		--link-bandwidth 400Gbps --format json -o "$T/s.json" >"$T/out" || return
	jq -e ".gap >= 0 and .gap <= $2 / 100" "$T/out" >/dev/null || return
	python3 "$here/replay_allreduce.py" "$T/s.json" >"$T/replayed" || return
	read -r steps factor <"$T/replayed"
	# 2^23 bit a MiB over 400 Gbit/s, and a step's 500 ns
	[[ $steps == $(jq .steps "$T/out") ]] &&
		[[ $(echo "d = $steps * 500 + $factor * ${4:-1024} * 2^23 / 400 - $(jq .time_ns "$T/out")
			d < 100 && d > -100" | bc -l | tail -1) == 1 ]]
}

near 'Mesh(3,4)' 3
tap "a mesh"
near "$T/torus" 4
tap "a torus with links out, some of them wider"
near "$T/one_direction" 5
tap "a torus of which a link goes one way only"
near 'Mesh(5)' 2
tap "a path, which is its only tree"
near "$T/one_direction" 9 steady 16
tap "unequal batches where a link goes one way only"
near 'Mesh(3,4)' 13 steady 16
tap "unequal batches on a mesh"
finish
