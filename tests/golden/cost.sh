#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Times with costs of hops, messages and changes of light.
source "$(dirname "$0")/../lib.sh"

cost() { # FILE OPTIONS...
	weft schedule cost "$@" --format json >"$T/out" 2>"$T/err" || sed 's/^/# /' "$T/err"
}

# Breadth-first broadcast on 64 x 64 nodes with links of 400 Gbit/s, 400 ns a hop.
expect 0 "64 x 64" weft schedule make -t 'Torus(64,64)' -c allreduce -a bfb --objective bandwidth \
	-o "$T/t.pb"
while read -r alpha size time; do
	cost "$T/t.pb" --alpha "$alpha" --hop 400ns --link-bandwidth 400Gbps --size "$size"
	[[ $(jq .time_ns "$T/out") == "$time" ]]
	tap "$size at $alpha a step"
done <<'END'
0ns 32B 51201
0ns 128KiB 52511
0ns 2MiB 72167
0ns 32MiB 386663
0ns 512MiB 5418599
500ns 32B 115201
500ns 128KiB 116511
500ns 2MiB 136167
500ns 32MiB 450663
500ns 512MiB 5482599
END
cost "$T/t.pb" --alpha 500ns --hop 400ns --message 70ns --link-bandwidth 400Gbps --size 32B
[[ $(jq -c '[.time_ns, .hop_ns, .message_ns, .latency_time_ns, .light_changes]' "$T/out") == \
	'[124161,400,70,64000,null]' ]]
tap "each step takes a hop and a message"
expect 64 "costs without a size" weft schedule make -t 'Ring(4)' -c allreduce --hop 400ns
has err "what is missing" "bandwidth of a node or --link-bandwidth is missing"
expect 64 "a negative cost" weft schedule cost "$T/t.pb" --alpha 0ns --link-bandwidth 1Gbps \
	--size 1KiB --message -1ns
has err "named" "--message: time '-1ns' is negative"

# Batches are chosen by all that a step takes.
batches() { # OPTIONS...
	weft schedule make -t 'Mesh(4,4)' -c allreduce -a trees --link-bandwidth 100Gbps \
		--size 16MiB "$@" --format json | jq -c '[.batches, .chunks, .steps]'
}
[[ $(batches --alpha 2us) == "$(batches --alpha 1us --hop 700ns --message 300ns)" &&
	$(batches --alpha 2us) != "$(batches --alpha 1us)" ]]
tap "batches by alpha, hop and message"

# Those asked for are the fewest that gain as much.
asked() { # TOPOLOGY BATCHES
	weft schedule make -t "$1" -c allreduce -a bfb --batches "$2" --objective bandwidth --format json |
		jq -c '[.batches, .batches_note, .steps, .bandwidth_factor]'
}
[[ $(asked 'GenKautz(4,64)' 8) == '[1,"8 batches gain nothing: made in one",6,"21/8"]' ]]
tap "batches that gain nothing are not made"
[[ $(asked 'GenKautz(2,24)' 8 | jq -c '.[:3]') == '[8,null,15]' ]]
tap "those that gain are"

# What is the best: by time, at a default cost where none is given; by T_B; by steps.
best() { # OPTIONS...
	weft schedule make -t 'GenKautz(4,16)' -c allreduce "$@" --format json
}
query='[.steps, .time_ns, .gap, .bandwidth_factor, .objective]'
[[ $(best | jq -c "$query") == "$(best --alpha 1us --size 1MiB --link-bandwidth 100Gbps \
	--objective time | jq -c "$query")" && $(best | jq -c '[.steps < 12, .cost, .bandwidth_gap]') == \
	'[true,"default",null]' ]]
tap "the default cost, which is told"
[[ $(best --objective bandwidth | jq -c \
	'[.objective, .steps > 50, .bandwidth_gap < 0.08, .time_ns, .gap, .cost]') == \
	'["bandwidth",true,true,null,null,null]' ]]
tap "the least T_B, in however many steps"
[[ $(best --objective steps --forward yes | jq -c '[.objective, .steps, .time_ns, .alpha_ns, .bandwidth_gap]') == \
	'["steps",1,null,null,null]' ]]
tap "the fewest steps"
[[ $(weft schedule make -t 'Jellyfish(14,3,2)' -c allgather --objective steps --format json |
	jq -c '[.steps, .bandwidth_factor]') == '[4,"117/98"]' ]]
tap "and of these the least T_B"
expect 64 "another objective" weft schedule make -t 'Ring(4)' -c allgather --objective rate
has err "what there is" 'expected bandwidth, steps or time'
expect 64 "a cost that is not looked at" weft schedule make -t 'Ring(4)' -c allgather \
	--objective steps --alpha 1us
has err "says so" 'only --objective time looks at'

# A ring's light changes: alpha includes its retuning, or --retune is what it takes.
weft ring plan -n 8 -w 2 --size 1MB -a ne --alpha 25us --rate 40Gbps -o "$T/r.json" \
	--format json >"$T/plan"
cost "$T/r.json" --alpha 25us --link-bandwidth 40Gbps --size 8MB
[[ $(jq .time_ns "$T/out") == "$(jq .time_ns "$T/plan")" ]]
tap "the ring's own time"
changes=$(jq .light_changes "$T/out") steps=$(jq .steps "$T/out")
cost "$T/r.json" --alpha 1us --retune 24us --link-bandwidth 40Gbps --size 8MB
((changes > 0 && changes < steps)) && [[ $(jq .time_ns "$T/out") == \
	$(($(jq .time_ns "$T/plan") - 24000 * (steps - changes))) &&
	$(jq .latency_time_ns "$T/out") == $((1000 * steps + 24000 * changes)) ]]
tap "only changes of light are retuned"
weft schedule simulate "$T/r.json" --alpha 1us --retune 24us --link-bandwidth 40Gbps \
	--size 8MB --format json >"$T/sim"
[[ $(jq -c '[.time_ns, .planned_ns]' "$T/sim") == "$(jq -c '[.time_ns, .time_ns]' "$T/out")" ]]
tap "and so it is simulated"

# Rank 1 gets the vector in one message over the slow link while three hops go on beside it:
# steps that overlap have a lower bound of their own.
rows() { # STEP ARC
	printf '[%d,%d,0,0,0], [%d,%d,1,0,0], [%d,%d,2,0,0], [%d,%d,3,0,0], [%d,%d,4,0,0]' \
		"$1" "$2" "$1" "$2" "$1" "$2" "$1" "$2" "$1" "$2"
}
cat >"$T/overlap.json" <<END
{"format": "weft-schedule", "version": 1, "collective": "broadcast", "nodes": 5, "chunks": 1,
 "arcs_columns": ["src", "dst", "cap"], "arcs": [[0,1,1], [0,2,10], [2,3,10], [3,4,10]],
 "transfers": [$(rows 0 0), $(rows 0 1), $(rows 1 2), $(rows 2 3)]}
END
weft schedule simulate "$T/overlap.json" --alpha 1us --link-bandwidth 8Gbps --size 10kB \
	--format json >"$T/out"
[[ $(jq -c '[.time_ns, .planned_ns, .bound_ns]' "$T/out") == '[15000,15000,13000]' ]]
tap "in lockstep every step has its alpha"
weft schedule simulate "$T/overlap.json" --alpha 1us --link-bandwidth 8Gbps --size 10kB \
	--asynchronous --format json >"$T/out"
[[ $(jq -c '[.time_ns, .planned_ns, .bound_ns]' "$T/out") == '[11000,15000,11000]' ]]
tap "asynchronously they overlap, and the bound allows for it"
for to in msccl-xml rccl-xml mscclpp-json; do
	expect 65 "$to of changing light" weft schedule export "$T/r.json" --to $to -o "$T/x"
	has err "names the step" 'light changes: not supported: step [0-9]+ needs other light than step'
	[[ ! -e $T/x ]]
	tap "and nothing is written"
done
expect 0 "as JSON" weft schedule export "$T/r.json" --to json -o "$T/same.json"

# Light that stays is there before the program begins: a relay's.
weft ring plan -n 8 -w 2 --size 1MB -a ring -o "$T/relay.pb" >/dev/null
cost "$T/relay.pb" --alpha 1us --retune 24us --link-bandwidth 40Gbps --size 8MB
[[ $(jq -c '[.light_changes, .latency_time_ns]' "$T/out") == '[null,7000]' ]]
tap "a relay is not retuned"
for to in msccl-xml rccl-xml mscclpp-json; do
	expect 0 "$to of light that stays" weft schedule export "$T/relay.pb" --to $to
done
# Two ranks of 64 with three links of four take a third longer for what all others send; sums go round them. What all ranks
# alike have is no loss.
{
	echo nodes 64
	weft topology build 'Torus(8,8)' --format json | jq -r '.arcs[] | "\(.src) \(.dst)"' | grep -vx -e '0 1' -e '1 0'
} >"$T/less"
loss() { # TOPOLOGY COLLECTIVE
	weft schedule make -t "$1" -c "$2" -a bfb -o "$T/loss.pb" >/dev/null &&
		weft schedule verify "$T/loss.pb" --format json | jq '.uneven_loss * 1000 | round'
}
[[ $(loss "$T/less" allgather) == 333 && $(loss "$T/less" reduce-scatter) == 333 && $(loss "$T/less" allreduce) == 8 ]]
tap "what a link less loses by theorem"
expect 0 "ranks alike" weft schedule make -t 'Torus(8,8)' -c allgather -a bfb --format json
[[ $(jq .uneven_loss "$T/out") == null ]]
tap "lose nothing"
finish
