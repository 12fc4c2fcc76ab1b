#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Schedules as Chakra traces, run by a program of its own: every send has its receive, none waits for ever, ranks
# get what the collective brings them, and it takes no longer than weft's steps do.
source "$(dirname "$0")/../lib.sh"
mkdir "$T/py"
protoc -I "$TOP/proto" --python_out="$T/py" chakra/chakra.proto || exit 1
export PYTHONPATH=$T/py PYTHONDONTWRITEBYTECODE=1
# runs TOPOLOGY RANKS COLLECTIVE RECEIVED [OPTIONS...]: bytes that a rank gets, of 2520 kB in all.
runs() {
	local facts='' told time sent low high
	weft schedule make -t "$1" -c "$3" "${@:5}" --size 2520kB --alpha 1us --link-bandwidth 8Gbps --format json -o "$T/s.pb" >"$T/facts" &&
		weft schedule export "$T/s.pb" --to chakra --size 2520kB -o "$T/x" &&
		facts=$(/usr/bin/python3 "$TOP/tests/integration/chakra_replay.py" "$T/x" "$2" 1 1000)
	told=$(jq -c '[.time_ns, .bound_ns]' "$T/facts")
	read -r time sent low high <<<"$facts"
	[[ -n $facts && ! -e $T/x.$2.et ]] && ((low == $4 && high == $4 && sent == $2 * low)) &&
		jq -e --argjson t "$time" '.time_ns >= $t and .bound_ns * 0.9 < $t' "$T/facts" >"$T/out"
	tap "$3 on $1: $facts of $told"
	rm -f "$T"/x.*
}
runs 'Ring(4)' 4 allgather 1890000
runs 'UniRing(1,5)' 5 reduce-scatter 2016000
runs 'Torus(3,3)' 9 allreduce 4480000
runs 'GenKautz(2,8)' 8 allgather 2205000
runs 'K(6)' 6 all-to-all 2100000
runs 'C(12,{1,5})' 12 reduce-scatter 2310000
# A vector over each of three links, twice: sums that are merged go as one.
runs 'Odd(3)' 10 allreduce 15120000 -a one-shot

weft schedule make -t 'Ring(4)' -c allgather -o "$T/s.pb" >"$T/out" 2>&1
expect 64 "without a size" weft schedule export "$T/s.pb" --to chakra -o "$T/y"
has err "... it is asked for" '--size'
expect 64 "without a name" weft schedule export "$T/s.pb" --to chakra --size 1MB
has err "... it is asked for" '--output|-o'
expect 64 "a size for what has none" weft schedule export "$T/s.pb" --to json --size 1MB
has err "... is refused" 'size is for --to chakra'
expect 0 "a schedule of light that changes" weft schedule light --ranks 8 --ports 1 -c all-to-all --size 64MiB --alpha 1us --link-bandwidth 100Gbps --retune 1us -o "$T/l.pb"
expect 65 "... as traces" weft schedule export "$T/l.pb" --to chakra --size 1MB -o "$T/y"
has err "... is refused" 'light'
! compgen -G "$T/y*" >"$T/out"
tap "and nothing is written"
finish
