#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Whether nodes pass on messages for others is said apart from what a hop costs: on the command
# line and of hosts in a fabric file.
source "$(dirname "$0")/../lib.sh"

# made ARGUMENTS...: [algorithm, steps, time, bound, forward] of an all-reduce of 64 KiB
made() {
	weft schedule make -t 'Torus(2,8)' -c allreduce --alpha 10us --link-bandwidth 100Gbps \
		--size 64KiB --format json "$@" 2>"$T/err" |
		jq -c '[.algorithm, .steps, .time_ns, .bound_ns, .forward]'
}

none=$(made)
[[ $none == '["mixed-radix",5,'*',false]' ]]
tap "by itself no node forwards"
[[ $(made --hop 0ns) == "$none" && $(made --forward no) == "$none" ]]
tap "hops that take no time say nothing"
free=$(made --forward yes)
[[ $free == '["mixed-radix",3,45729,28738,true]' && $(made --forward yes --hop 0ns) == "$free" ]]
tap "nodes forward where it is said, and hops may cost nothing"
[[ $(made --hop 1ns) == '["mixed-radix",3,45'*',true]' &&
	$(made --hop 1ns --forward yes) == "$(made --hop 1ns)" ]]
tap "nodes forward where a hop takes time"
[[ $(made -a swing) == '["swing",'*',true]' && $(made -a bfb) == '["bfb",'*',false]' ]]
tap "nodes forward where the algorithm needs it"
expect 65 "an algorithm that needs it" weft schedule make -t 'Torus(2,8)' -c allreduce -a swing \
	--forward no
has err "says so" 'algorithm swing: ranks would have to forward'
[[ $(weft schedule make -t 'Torus(4,4)' -c allreduce -a swing --forward no \
	--objective bandwidth --format json | jq -c '[.steps, .forward]') == '[8,null]' ]]
tap "the same algorithm between neighbours"
expect 64 "a hop's time where nothing hops" weft schedule make -t 'Torus(2,8)' -c allreduce \
	--forward no --hop 400ns
[[ $(weft schedule make -t 'Torus(2,8)' -c allreduce -a swing \
	--objective bandwidth --format json | jq .forward) == true ]]
tap "also told without a cost"

expect 0 "a schedule that forwards" weft schedule make -t 'Torus(2,8)' -c allreduce -a swing \
	-o "$T/s.pb"
cost=(--alpha 10us --link-bandwidth 100Gbps --size 64KiB)
for verb in cost simulate; do
	[[ $(weft schedule $verb "$T/s.pb" "${cost[@]}" --format json | jq .forward) == true ]]
	tap "$verb tells it"
	expect 64 "$verb with --forward no" weft schedule $verb "$T/s.pb" "${cost[@]}" --forward no
	has err "says why" 'messages of this schedule go through other ranks'
done
expect 0 "one that does not" weft schedule make -t 'Torus(2,8)' -c allreduce -a bfb -o "$T/b.pb"
bound() {
	weft schedule cost "$T/b.pb" "${cost[@]}" "$@" --format json | jq -c '[.bound_ns, .forward]'
}
# Five steps take all shortest paths from (0, 0) to (1, 4): 1/3 + 1/6 + 1/6 + 1/6 + 1/3 of the vector over a link.
[[ $(bound) == '[56116,false]' && $(bound --forward yes) == '[28738,true]' ]]
tap "what others could do is another bound"

# 1,287 shortest paths lead from 0 to 88: fewer are taken, by name and by "auto", also without a cost.
many() {
	weft schedule make -t 'C(256,{1,16})' --alpha 1500ns --hop 400ns --bandwidth 400Gbps --size 32B \
		--format json "$@" 2>"$T/err" | jq -c '[.algorithm, .time_ns]'
}
[[ $(many -c allreduce -a mixed-radix) == '["mixed-radix",8811]' &&
	$(many -c allgather) == '["mixed-radix",7506]' ]]
tap "too many shortest paths"

found() {
	weft topology find -n 16 -d 4 --alpha 10us --bandwidth 400Gbps --size 1KiB --format json "$@" |
		jq -c '[.forward, .best_steps, .best_algorithm]'
}
[[ $(found) == '[false,'* && $(found --forward yes) == '[true,1,"mixed-radix"]' ]]
tap "topologies for nodes that forward"

# job FORWARDS ALGORITHM: the job of the demo with hosts that say so
job() {
	sed -e "s/reactivation: 5.67s .*/reactivation: 5.67s\n    $1/" -e 's/size: 1MiB/size: 64KiB/' \
		-e "s/topology: .*/topology: \"Torus(2,8)\"\n    $2/" configs/fabrics/demo.yaml >"$T/f.yaml"
	weft plan --offline "$T/f.yaml" --format json 2>"$T/err" |
		jq -c '.jobs[] | select(.name == "reduce") | [.algorithm, .steps, .time_ns, (.arcs | length)]'
}
[[ $(job '' '') == '["mixed-radix",5,69661,48]' && $(job 'forwards: no' '') == "$(job '' '')" ]]
tap "hosts do not forward by themselves"
[[ $(job 'forwards: yes' '') == '["mixed-radix",3,45729,48]' ]]
tap "hosts that forward"
[[ $(job '' 'algorithm: swing') == '["swing",8,85571,48]' ]]
tap "an algorithm that needs hosts to forward is named"
[[ -z $(job 'forwards: no' 'algorithm: swing') ]] &&
	grep -q 'f.yaml:.*job reduce: .*algorithm swing: ranks would have to forward' "$T/err"
tap "and they do not"
job 'forwards: maybe' '' >/dev/null
grep -q "forwards: 'maybe' is none of no, yes" "$T/err"
tap "no other word"

finish
