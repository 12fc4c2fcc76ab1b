#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# All-reduces in as many steps as the digraph is wide, whose sums are merged on their way: replayed by another program,
# what auto and jobs take, and their programs.
source "$(dirname "$0")/../lib.sh"
here=$(cd "$(dirname "$0")" && pwd)
cost=(--alpha 500ns --link-bandwidth 400Gbps)

# whole TOPOLOGY STEPS VECTORS [SIZE]: that cross the fullest link, added up over the steps
whole() {
	weft schedule make -t "$1" -c allreduce -a one-shot "${cost[@]}" --size "${4-4KiB}" -o "$T/s.json" >"$T/out" &&
		[[ $(python3 "$here/replay_allreduce.py" "$T/s.json") == "$2 $3" ]]
	tap "$1: $2 steps, $3 vectors over a link"
}
whole 'Mesh(4,4)' 6 6.000000
whole 'GenKautz(4,64)' 3 3.000000
whole 'GenKautz(4,64)' 4 1.000000 32KiB
whole 'GenKautz(4,100)' 4 4.000000
whole 'Jellyfish(32,4,1)' 6 2.625000 16KiB
whole 'Mesh(8,8)' 15 7.500000 16KiB
whole 'Kautz(4,2)' 4 0.800000 16KiB
whole 'Multi(Jellyfish(12,3,1),2)' 6 1.250000 64KiB
whole 'Jellyfish(32,4,1)' 4 8.000000
whole 'SlimFly(5)' 2 2.000000
whole 'Multi(Mesh(3,3),2)' 4 2.000000

weft schedule make -t 'Jellyfish(32,4,1)' -c allreduce "${cost[@]}" --size 2KiB -o "$T/s.pb" --format json >"$T/out"
[[ $(jq -r .algorithm "$T/out") == one-shot && $(jq .steps "$T/out") == 4 ]]
tap "auto takes one where messages are short"
weft schedule export "$T/s.pb" --to json -o "$T/j.json" && weft schedule export "$T/s.pb" --to json --flat -o "$T/flat.json" &&
	[[ $(jq .version "$T/j.json") == 6 && $(jq .alike "$T/j.json") == true && $(jq .alike "$T/flat.json") == null ]] &&
	[[ $(python3 "$here/replay_allreduce.py" "$T/flat.json") == $(python3 "$here/replay_allreduce.py" "$T/j.json") ]]
tap "written out it is the same"
weft schedule make -t 'GenKautz(2,8)' --on 'Torus(4,2)' -c allreduce -a one-shot "${cost[@]}" --size 4KiB --format json >"$T/out" &&
	[[ $(jq .time_ns "$T/out") == 1992 ]]
tap "embedded it does without self-loops, which have no routes"
for to in msccl-xml rccl-xml mscclpp-json; do
	expect 0 "a program: $to" weft schedule export "$T/s.pb" --to $to -o "$T/m.$to"
done
grep -q ' nchunksperloop="1" ' "$T/m.msccl-xml"
tap "for calls of any number of elements"

# A job takes them as the command line does, in a step more than the digraph is wide here.
sed -e 's/size: 1MiB/size: 128KiB/' -e 's/topology: .*/topology: "GenKautz(4,16)"/' "$TOP/configs/fabrics/demo.yaml" >"$T/f.yaml"
job=$(weft plan --offline "$T/f.yaml" --format json | jq -c '.jobs[] | select(.name == "reduce") | [.algorithm, .steps, .time_ns]')
made=$(weft schedule make -t 'GenKautz(4,16)' -c allreduce --alpha 10us --link-bandwidth 100Gbps --size 128KiB --format json -o "$T/m.pb" |
	jq -c '[.algorithm, .steps, .time_ns]')
[[ $job == "$made" && $job == '["one-shot",3,'* && $(weft schedule export "$T/m.pb" --to json | jq .alike) == true ]]
tap "a job as the command line: $job"
finish
