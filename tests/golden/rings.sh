#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Plans on WDM rings from the command line: the numbers of OpTree's paper and
# of the composed plans, the narrowest and oddest rings, and what is refused.
source "$(dirname "$0")/../lib.sh"

# plan WHAT JQ ARGUMENTS...: the jq program is true of the plan.
plan() {
	local what=$1 query=$2
	shift 2
	if weft ring plan "$@" --format json >"$T/out" 2>"$T/err" &&
	   jq -e "$query" "$T/out" >/dev/null; then
		tap "$what" 0
	else
		echo "# $*: $query"
		sed 's/^/#   /' "$T/err" "$T/out"
		tap "$what" 1
	fi
}

# refused WHAT STATUS REGEX ARGUMENTS...: one line that says why.
refused() {
	local what=$1 status=$2 why=$3
	shift 3
	expect "$status" "$what" weft ring plan "$@"
	has err "said why: $what" "$why"
}

# Theorem 1 at the depth of Theorem 2 (figure 4), and the baselines.
plan "best depth of 512 nodes" ".closed_form_steps == 32" -n 512 -w 64 --size 4KB
plan "best depth of 2048 nodes" ".closed_form_steps == 155" -n 2048 -w 64 --size 4KB
plan "Ring" '.closed_form_steps == 1023 and .steps == 1023' \
	-n 1024 -w 64 --size 4MB -a ring
plan "neighbour exchange" '.closed_form_steps == 64 and .steps == 64' \
	-n 128 -w 64 --size 4MB -a ne
plan "Wrht" '.closed_form_steps == 35' -n 128 -w 8 --size 4MB -a wrht
plan "one stage" '.closed_form_steps == 16 and .steps == 16' \
	-n 16 -w 2 --size 4MB -a one-stage

# What composed plans must reach against OpTree's T = S (d/B + a).
plan "4 MB at 1024 nodes: 4 times" '.closed_form_steps == 70 and .optree_time_ns >= 4 * .time_ns and
	.optree_time_ns == 57750000' -n 1024 -w 64 --size 4MB
plan "128 MB at 1024 nodes: 8 times, 7 % from the bound" \
	'.optree_time_ns >= 8 * .time_ns and .gap < 0.07 and
	 .time_ns <= 1.07 * .bound_ns' -n 1024 -w 64 --size 128MB
plan "128 MB at 4096 nodes: 9 times" '.closed_form_steps == 340 and .optree_time_ns >= 9 * .time_ns and
	(.levels | length) == 1 and .levels[0].rounds == .rounds' \
	-n 4096 -w 64 --size 128MB

# The fields of the contract.
plan "fields" '[has("steps", "rounds", "time_ns", "bound_ns", "gap",
	"optree_time_ns", "levels")] | all' -n 100 -w 8 --size 4KB

# Odd sizes, narrow rings.
odd() { # NODES AND CHANNELS
	# shellcheck disable=SC2086
	plan "$1" '.time_ns >= .bound_ns and .time_ns <= .optree_time_ns' $1 --size 64KB
}
for ring in "-n 1021 -w 64" "-n 1000 -w 64" "-n 1021 -w 1" "-n 1021 -w 7"; do
	odd "$ring"
done
for ring in "-n 101 -w 7" "-n 16 -w 1" "-n 16 -w 7" "-n 2 -w 1" "-n 2 -w 64" "-n 3 -w 1" \
	"-n 3 -w 64"; do
	odd "$ring"
done
plan "two nodes: the bound" '.time_ns == .bound_ns' -n 2 -w 4 --size 4KB
plan "a reach of one link" '[.levels[] | .stride == 1 and .jump == 1] | all' \
	-n 60 -w 8 --size 4KB \
	--loss launch=-17dBm,sensitivity=-20dBm,margin=0dB,span=1dB

# Retuning behind others' data; fibres that differ; parts of a ring.
plan "overlap meets the bound" '.gap < 0.01 and .time_ns + .retune_hidden_ns
	== 32 * 25000 + 31500' -n 64 -w 8 --size 40KB --overlap
plan "costly conversion: still hidden" '.retune_hidden_ns > 0 and
	.time_ns >= .bound_ns' \
	-n 1024 -w 64 --size 64KB --overlap --conversion 5us
plan "unequal fibres" '.clockwise_channels == 96 and
	.counter_clockwise_channels == 48 and .gap < 0.05' \
	-n 64 --fibres 64,32/48 --size 1GB
plan "one way only" '.counter_clockwise_channels == 0 and .gap < 0.05' \
	-n 64 --fibres 64/ --size 1GB
plan "some channels of each fibre" '.clockwise_channels == 32' \
	-n 64 -w 64 --fibres 2 --use 16-31 --size 4MB
plan "OpTree on unequal fibres: as many channels as the narrower way" '.steps == 4' \
	-n 20 --fibres 8,2/20 --size 100kB -a optree
plan "a list of equal fibres is the whole ring" '.optree_time_ns == 225000 and .steps == 4' \
	-n 20 --fibres 8/8 --size 100kB -a optree
plan "all-to-all on a segment" '.segment and .gap < 0.1' \
	-n 20 -w 4 --segment --size 4MB --collective all-to-all
plan "links that take time" '.time_ns == 63 * (2000 + 100 + 300)' \
	-n 64 -w 1 -a ring --size 500B --alpha 2us --span-delay 300ns
plan "a segment" '.segment and .gap < 0.05' -n 64 -w 8 --segment --size 1GB
expect 0 "a drawing" weft ring plan -n 64 -w 8 --size 40KB --svg "$T/a.svg"
expect 0 "it is XML" python3 -c '
import sys, xml.dom.minidom
assert xml.dom.minidom.parse(sys.argv[1]).getElementsByTagName("rect")' \
	"$T/a.svg"
expect 0 "a segment's schedule" weft ring plan -n 20 --fibres 8,4 --segment \
	--size 4KB -o "$T/s.json"
expect 0 "it verifies" weft schedule verify "$T/s.json"

refused "w = 0" 64 'channels' -n 8 -w 0 --size 1MB
refused "size 0" 65 'sizes and rates are positive' -n 8 -w 4 --size 0B
refused "one node" 64 'nodes' -n 1 -w 4 --size 1MB
refused "a budget that forbids every lightpath" 65 \
	'loses 1.100 dB, and the budget is -16.000 dB \(reach: 0 hops\)' \
	-n 8 -w 4 --size 1MB --loss launch=-30dBm
refused "fibres that are none" 64 'no list of channels' \
	-n 8 --fibres 64,32x --size 1MB
refused "channels twice" 64 'does not go' -n 8 -w 3 --fibres 2,4 --size 1MB
refused "channels that are not there" 64 'channels 0 to 3' \
	-n 8 -w 4 --use 2-7 --size 1MB
refused "OpTree one way round" 65 'not supported, it sends both ways round' \
	-n 8 --fibres 64/0 --size 1MB -a optree
refused "neighbour exchange on a segment" 65 'ends have one neighbour' \
	-n 8 -w 4 --segment --size 1MB -a ne
refused "conversion without overlap" 64 'is of --overlap' \
	-n 8 -w 4 --conversion 1us --size 1MB
finish
