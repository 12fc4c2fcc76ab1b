#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# All-reduces by exchanges on tori whose dimensions are no products of small numbers: sums are passed on beside others,
# and the last of uneven levels is an exchange. Replayed by another program; and what auto takes.
source "$(dirname "$0")/../lib.sh"
here=$(cd "$(dirname "$0")" && pwd)
cost=(--alpha 1500ns --message 500ns --hop 400ns --link-bandwidth 400Gbps)

# whole DIMENSIONS LEVELS ROUNDS STEPS
whole() {
	weft schedule make -t "Torus($1)" -c allreduce -a mixed-radix --levels "$2" --rounds "$3" "${cost[@]}" \
		--size 8KiB -o "$T/s.json" >"$T/out" &&
		[[ $(python3 "$here/replay_allreduce.py" "$T/s.json") == "$4 "* ]]
	tap "Torus($1) by $2, $3 rounds of reduce-scatter"
}
whole 7 2x3+1 0 2
whole 53 3x3+2x4+3 0 3
whole 11,7 2x5+1,2x3+1 0 4
whole 13,3 3x4+1,3 1 4
whole 17 3x5 1 3
whole 5,7 2x3,3x3 2 6
whole 13 5cx3 1 5
whole 7,7 3x3,2x3+1 1 5

# taken DIMENSIONS SIZE: ns of what auto takes
taken() {
	weft schedule make -t "Torus($1)" -c allreduce "${cost[@]}" --size "$2" --format json | jq .time_ns
}
# No slower than a tenth above the worse of its neighbours in size.
[[ $(taken 31,3 2KiB) -lt $(($(taken 30,3 2KiB) * 11 / 10)) && $(taken 31 8KiB) -lt $(($(taken 32 8KiB) * 11 / 10)) &&
	$(taken 17,17 32KiB) -lt $(($(taken 16,16 32KiB) * 11 / 10)) ]]
tap "a prime is about as fast as the sizes beside it"
expect 65 "trees of levels that pass on sums" weft schedule make -t 'Torus(7)' -c allreduce -a mixed-radix \
	--levels 2x3+1 --rounds 1
has err "says so" 'reduce-scatter by levels that pass on sums beside others: not supported'
expect 65 "levels that join too few" weft schedule make -t 'Torus(9)' -c allreduce -a mixed-radix --levels 2x3+1
has err "says so" 'a dimension of 9: levels that join 7'
finish
