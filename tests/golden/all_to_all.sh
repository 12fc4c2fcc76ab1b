#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Rates of all-to-all from the command line: as fractions, in every form, in
# steps, and when it is stopped before the end.
source "$(dirname "$0")/../lib.sh"

exact() { # TOPOLOGY RATE
	local got
	got=$(weft schedule make -t "$1" -c all-to-all --exact --gap 1% \
		--loss 50% --format json 2>"$T/err" |
		jq -r .flow_rate_exact)
	[[ $got == "$2" ]]
	tap "$1: F = $2, found $got"
}
exact 'K(4,4)' 2/5
exact 'Hypercube(4)' 1/8
exact 'Torus(5,5)' 1/15
exact 'GenKautz(4,16)' 7/53
exact 'GenKautz(4,36)' 8/187

form() { # TOPOLOGY RATE ALGORITHM...
	local topology=$1 rate=$2 a got
	shift 2
	for a in "$@"; do
		got=$(weft schedule make -t "$topology" -c all-to-all -a "$a" \
			--rate --gap 1e-6 --format json 2>"$T/err" |
			jq ".flow_rate / ($rate) - 1 | fabs < 2e-6")
		[[ $got == true ]]
		tap "$topology by $a: $rate"
	done
}
form 'K(4,4)' 2/5 mcf link-mcf grouped pmcf
form 'GenKautz(4,16)' 7/53 mcf link-mcf grouped pmcf
form 'Torus(3,3,3)' 1/9 mcf grouped pmcf

stepped() { # TOPOLOGY STEPS FACTOR
	weft schedule make -t "$1" -c all-to-all -a tsmcf -o "$T/s.json" \
		--loss 0 --format json >"$T/out" 2>"$T/err"
	[[ $(jq -r '"\(.steps) \(.bandwidth_factor)"' "$T/out") == "$2 $3" ]]
	tap "$1 in $2 steps, T_B $3"
	expect 0 "$1: verified" weft schedule verify "$T/s.json"
	expect 0 "$1: lowered" weft schedule export "$T/s.json" --to msccl-xml \
		-o "$T/s.xml"
}
stepped 'Hypercube(3)' 3 3/2
stepped 'TwistedHypercube(3)' 2 3/2
stepped 'K(4,4)' 2 5/4
stepped 'Torus(3,3,3)' 3 2
expect 65 "fewer steps than the diameter" weft schedule make \
	-t 'Hypercube(3)' -c all-to-all -a tsmcf --steps 2
has err "are named" 'fewer than the diameter, 3'
expect 64 "steps are for tsmcf" weft schedule make -t 'K(4)' \
	-c all-to-all -a mcf --steps 4

# Unlike demands: 4 from 0 to 2 half of them either way, beside 1 from 0 to 1 on a ring of 4.
printf '0 1 4 0\n0 0 0 0\n0 0 0 0\n0 0 0 0\n' >"$T/d"
demanded() { # RATE OPTION...
	local rate=$1
	shift
	weft schedule make -t 'Torus(4)' -c all-to-all --rate --exact \
		--demands "$T/d" "$@" --format json >"$T/out" 2>"$T/err"
	[[ $(jq -r .flow_rate_exact "$T/out") == "$rate" ]]
	tap "demands $*: F = $rate"
}
demanded 8/5
demanded 4/5 --host-bandwidth 1
sed 's/4/4GiB/; s/1/1GiB/' "$T/d" >"$T/sizes"
cp "$T/sizes" "$T/d"
demanded 8/5
expect 0 "a schedule of demands" weft schedule make -t 'Torus(4)' -c all-to-all \
	--demands "$T/d" -o "$T/d.json" --alpha 1us --link-bandwidth 100Gbps --format json
[[ $(jq '.size_bytes / (1024 * 1024 * 1024)' "$T/out") == 16 &&
	$(jq '.flow_rate / 1.6 - 1 | fabs < 1e-3' "$T/out") == true &&
	$(jq '[.demands[][2]] | .[1] / .[0]' "$T/d.json") == 4 ]]
tap "moves as many chunks as asked for"
expect 0 "is proven" weft schedule verify "$T/d.json"
for to in msccl-xml mscclpp-json routes-json; do
	expect 65 "$to knows no demands" weft schedule export "$T/d.json" --to $to -o "$T/x"
done
expect 64 "sizes are known" weft schedule make -t 'Torus(4)' -c all-to-all \
	--demands "$T/d" --alpha 1us --link-bandwidth 100Gbps --size 1MB
printf '[[0,1,4],[1,0,2],[1,1,-1]]' >"$T/d"
expect 65 "a demand that is none" weft schedule make -t 'Torus(3)' -c all-to-all --rate \
	--demands "$T/d"
has err "has its place" 'd: row 2, column 2: negative: -1'
expect 64 "demands are for all-to-all" weft schedule make -t 'Torus(3)' -c allgather \
	--demands "$T/d"
expect 64 "disjoint paths know none" weft schedule make -t 'Torus(3)' -c all-to-all \
	-a disjoint --demands "$T/d"

# Hosts slower than their links.
hosts() { # B RATE OPTION...
	local b=$1 rate=$2
	shift 2
	weft schedule make -t 'Hypercube(3)' -c all-to-all --rate --exact \
		--host-bandwidth "$b" "$@" --format json >"$T/out" 2>"$T/err"
	[[ $(jq -r .flow_rate_exact "$T/out") == "$rate" ]]
	tap "hosts of $b links $*: F = $rate"
}
hosts 3 1/4
hosts 1.5 1/8
hosts 1.5 3/14 --nic-forwards
hosts 0.5 1/14 --nic-forwards
expect 64 "no schedule is made for slow hosts" weft schedule make \
	-t 'Hypercube(3)' -c all-to-all --host-bandwidth 1

# Route tables: each form reads back and is proven.
expect 0 "a schedule of 64 nodes" weft schedule make -t 'GenKautz(4,64)' \
	-c all-to-all -a single-path -o "$T/r.pb"
for form in json proto; do
	expect 0 "routes as $form" weft schedule export "$T/r.pb" \
		--to "routes-$form" -o "$T/r.$form"
	weft routes verify "$T/r.$form" -t 'GenKautz(4,64)' --format json \
		>"$T/out" 2>"$T/err"
	[[ $(jq -r '"\(.valid) \(.routes)"' "$T/out") == "true 4032" ]]
	tap "proven"
done
[[ $(jq -c '[.nodes, .chunks, ([.routes[].chunks] | add)]' "$T/r.json") == \
	"[64,1,4032]" ]]
tap "a chunk for each pair"
expect 64 "another form of routes" weft schedule export "$T/r.pb" \
	--to routes-text -o "$T/r.text"
sed 's/"rate":"[^"]*"/"rate":"1\/2"/' "$T/r.json" >"$T/bad"
expect 1 "a rate that is not so" weft routes verify "$T/bad" \
	-t 'GenKautz(4,64)'
has err "is told" 'rate: 1/2 is stated, the loads give'
expect 65 "routes of another topology" weft routes verify "$T/r.json" \
	-t 'K(4)'
expect 65 "one layer is too few" weft schedule export "$T/r.pb" \
	--to routes-json --layers 1
# What staggering costs: steps beyond the longest path, and their time.
expect 0 "with a cost" weft schedule make -t 'GenKautz(4,16)' -c all-to-all -a mcf \
	--alpha 10us --link-bandwidth 100Gbps --size 1MB --format json
[[ $(jq '.steps == .longest_path + .steps_to_stagger and
	.latency_time_ns == 10000 * .steps and
	.time_ns == .latency_time_ns + .bandwidth_time_ns' "$T/out") == true ]]
tap "T_L and T_B are told"
# The fewest steps among equal T_B, and the least time with a cost.
took() { # STEPS OPTION...
	local steps=$1
	shift
	weft schedule make -t 'GenKautz(4,16)' -c all-to-all "$@" --format json >"$T/out" 2>"$T/err"
	[[ $(jq .steps "$T/out") == "$steps" ]]
	tap "auto $*: $steps steps"
}
took 3
took 2 --alpha 10us --link-bandwidth 100Gbps --size 64kB
# One path a pair and disjoint sets (the last), with what is proven of each.
for way in shortest-path disjoint; do
	expect 0 "$way" weft schedule make -t 'GenKautz(4,64)' \
		-c all-to-all -a "$way" --gap 0.1% -o "$T/w.pb" --format json
	[[ $(jq '.paths_rate <= .paths_rate_bound and
		.paths_rate <= .flow_rate_bound and .paths_rate > 0.017 and
		.paths_gap >= 0' "$T/out") == true ]]
	tap "within its bound"
	gap=$(jq .paths_gap "$T/out")
	expect 0 "a schedule" weft schedule verify "$T/w.pb"
done
[[ $(jq -n "$gap < 0.002") == true ]]
tap "disjoint paths are balanced"
expect 0 "routes and layers chosen together" weft routes make \
	-t 'GenKautz(4,64)' --layers 3 -o "$T/j.json" --format json
[[ $(jq -r '"\(.layers) \(.load) \(.bound) \(.rate)"' "$T/out") == \
	"3 47 47 1/47" ]]
tap "in three layers at the bound"
expect 0 "a table of three layers" weft routes verify "$T/j.json" \
	-t 'GenKautz(4,64)'
expect 0 "on standard output" weft routes make -t 'Torus(3,3,3)' \
	-a shortest-path --layers 1
has out "in one layer" '"nodes":27,"chunks":1,"layers":1,"rate":"1/13"'
expect 65 "one way, and too few layers" weft routes make -t 'UniRing(1,5)' \
	--layers 2
has err "is said of a pair" 'no route was found .* in 2 layers'
expect 64 "another form" weft routes make -t 'K(3)' --to json
expect 64 "layers are of routes" weft schedule export "$T/r.pb" --layers 1

# Stopped: the best so far, with its gap.
certified() { # WHAT WORD
	jq -e '.flow_rate > 0 and .flow_rate <= .flow_rate_bound and
		.flow_gap > 0' "$T/out" >/dev/null
	tap "$1: certified"
	has err "$1: told" "$2: the best flow so far is within"
}
expect 0 "a time limit" weft schedule make -t 'GenKautz(4,1000)' \
	-c all-to-all --rate --gap 0 --time-limit 1s --format json
certified "a time limit" "time limit"
[[ $(jq .deadline_met "$T/out") == true ]]
tap "a time limit: met, as it says"
# interrupt COMMAND...: after a second, or later where nothing was found until then.
interrupt() {
	local s rc
	for s in 1 2 4 8 16 32; do
		timeout --preserve-status -s INT $s "$@"
		rc=$?
		((rc == 130)) || break
	done
	return $rc
}
expect 0 "Ctrl-C" interrupt \
	weft schedule make -t 'GenKautz(4,1000)' -c all-to-all --rate \
	--gap 0 --format json
certified "Ctrl-C" interrupted
stops_with_schedule() { # WHAT WORD COMMAND...
	local what=$1 word=$2
	shift 2
	expect 0 "$what, with a schedule" "$@" weft schedule make \
		-t 'GenKautz(4,256)' -c all-to-all --gap 0 -o "$T/cut.pb" \
		--format json
	certified "$what" "$word"
	[[ $(jq -r .stopped_by "$T/out") == "$word" ]]
	tap "$what: said in the output"
	expect 0 "$what: the schedule is proven" weft schedule verify \
		"$T/cut.pb"
}
limited() { # COMMAND...: with a limit
	"$@" --time-limit 500ms
}
stops_with_schedule "a time limit" "time limit" limited
stops_with_schedule "Ctrl-C" interrupted interrupt

# Small and wrong.
printf '0 1 5\n1 0 5\n' >"$T/two"
printf '0 1\n1 2\n2 1\n' >"$T/cut"
printf '0 1 0\n1 0 1\n' >"$T/zero"
expect 0 "two nodes" weft schedule make -t "$T/two" -c all-to-all --exact \
	--format json
[[ $(jq -r .flow_rate_exact "$T/out") == 5/1 ||
	$(jq -r .flow_rate_exact "$T/out") == 5 ]]
tap "at the link's rate"
expect 65 "an unreachable pair" weft schedule make -t "$T/cut" -c all-to-all
has err "is named" 'no path from node [0-9] to node 0'
expect 65 "a link without capacity" weft schedule make -t "$T/zero" \
	-c all-to-all
has err "is named" 'zero:1:.* capacity 0 is out of range'

# Capacities over twelve orders of magnitude: node 1 is fed through node 0 and
# by a thread, and both ways are full at the optimum.
printf '%s\n' '0 1 1000000000000' '1 0 1000000000000' '1 2 1' '2 1 1' \
	'0 2 1000000' '2 0 1000000' >"$T/wide"
got=$(weft schedule make -t "$T/wide" -c all-to-all --exact --rate \
	--format json 2>"$T/err" | jq -r .flow_rate_exact)
[[ $got == 1000001/2 ]]
tap "capacities from 1 to 10^12: F = 1000001/2, found $got"
weft schedule make -t "$T/wide" -c all-to-all --exact --rate --format json \
	2>"$T/err" | jq -e '(.flow_rate - 500000.5 | fabs < 1e-6)
	and .flow_rate == .flow_rate_bound and .flow_gap == 0' >/dev/null
tap "the rate beside the fraction is that fraction"
form "$T/wide" 1000001/2 mcf grouped pmcf
expect 65 "a schedule of such links" weft schedule make -t "$T/wide" \
	-c all-to-all
has err "is refused, and the limit named" 'arc 0 .0 -> 1.: capacity above 4294967296'
finish
