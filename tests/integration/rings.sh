#!/bin/bash
# Jobs on a ring: what the emulated resonators drop and add, step by step,
# carries every shard to every node; two jobs share a ring without touching
# each other's light; what does not fit or fails half way changes nothing.
source "$(dirname "$0")/../lib.sh"
HERE=$(dirname "$0")

ring_fabric() { # FILE JOB...
	local file=$1 job
	shift
	cat >"$file" <<-END
	weft: 1
	fabric: shared
	hosts:
	  - { name: "n[0-7]" }
	rings:
	  - name: ring0
	    nodes: "n[0-7]"
	    fibres: ${FIBRES:-1}
	    channels: 8
	    channel-rate: 40Gbps
	    driver: mrr-reg
	    address: ${ADDR[ring0]}
	    timeout: 2s
	    ${RING_KEYS:-}
	jobs:
	END
	for job in "$@"; do
		echo "  - { $job }" >>"$file"
	done
}

# Steps a program once round; what the light did goes to $T/NAME.trace.
play() { # NAME
	local steps
	control ring0 "light $1" >"$T/$1.trace"
	steps=$(awk 'NR == 1 { print $4 }' "$T/$1.trace")
	for ((i = 1; i < steps; i++)); do
		control ring0 "step $1" >>"$T/$1.trace"
	done
	control ring0 "step $1" >/dev/null	# back to the first
}

replay() { # WHAT NAME [RANKS...]
	local what=$1 name=$2
	shift 2
	play "$name"
	expect 0 "the schedule of $name" \
		weft schedule export --job "$name" --to json -o "$T/$name.json"
	expect 0 "$what" python3 "$HERE/ring_replay.py" "$T/$name.json" \
		"$T/$name.trace" "$@"
}

# "generation writes" of a program's slot.
touched() { # NAME
	control ring0 slots | awk -v p="$1" '$4 == p { print $6, $8 }'
}

A='name: a, ring: ring0, collective: allgather, size: 1MiB, channels: 3'
B='name: b, ring: ring0, collective: allreduce, size: 1MiB, channels: 4-7'

emulator ring0 mrr-reg 8x8 || exit 1
daemon || exit 1
ring_fabric "$T/two.yaml" "$A" "$B"
expect 0 "check: two jobs on one ring" weft check "$T/two.yaml"
expect 0 "apply" weft apply -f "$T/two.yaml"
expect 0 "plan again: nothing to do" weft plan -f "$T/two.yaml"
replay "all-gather: every node got every shard" a
replay "all-reduce: every node got every sum" b
grep -q ' channel [4-7] ' "$T/b.trace" && ! grep -q ' channel [0-3] ' "$T/b.trace"
tap "the light of b is on its channels only"
grep -q ' channel [0-2] ' "$T/a.trace" && ! grep -q ' channel [3-7] ' "$T/a.trace"
tap "and that of a on its own"

# A change of one job, its end and its return leave the other alone.
b=$(touched b)
a=$(touched a)
ring_fabric "$T/small.yaml" "${A/allgather/allreduce}" "$B"
expect 0 "job a does something else" weft apply -f "$T/small.yaml"
[[ -n $b && $(touched b) == "$b" ]]
tap "no register of b was written"
[[ $(touched a) != "$a" ]]
tap "those of a were"
replay "a is right again" a
ring_fabric "$T/b.yaml" "$B"
expect 0 "job a goes" weft apply -f "$T/b.yaml"
[[ $(touched b) == "$b" && -z $(touched a) ]]
tap "and only a"
expect 0 "plan: nothing to do" weft plan -f "$T/b.yaml"
ring_fabric "$T/late.yaml" "$B" "$A"
expect 0 "a comes back, later in the file" weft apply -f "$T/late.yaml"
[[ $(touched b) == "$b" ]]
tap "b was not touched"
ring_fabric "$T/first.yaml" \
	"name: c, ring: ring0, collective: broadcast, size: 1MiB, channels: 1" \
	"$A" "$B"
expect 0 "a third job, first in the file" weft apply -f "$T/first.yaml"
[[ $(touched b) == "$b" ]]
tap "b was not touched"
control ring0 map | grep -q '^program a .* channels 0+3 sha256 '
tap "a keeps the channels that it has"
control ring0 map | grep -q '^program c .* channels 3+1 sha256 '
tap "c takes what is free"
expect 0 "rollback" weft rollback
[[ $(touched b) == "$b" ]]
tap "b was not touched"

# The other collectives, one after the other.
C='ring: ring0, size: 1MiB, channels: 3'
for kind in reduce-scatter broadcast all-to-all; do
	ring_fabric "$T/$kind.yaml" "name: a, $C, collective: $kind" "$B"
	expect 0 "$kind instead" weft apply -f "$T/$kind.yaml"
	replay "$kind: what it promises is there" a
done

# What goes wrong half way.
expect 0 "two jobs" weft apply -f "$T/two.yaml"
a=$(control ring0 map | sort)
for fault in nack=1 nack=2 corrupt-shadow ignore-commit corrupt-active \
	drop-reply=9 drop-set silence-set; do
	control ring0 "fault $fault" >/dev/null
	weft apply -f "$T/small.yaml" >"$T/out" 2>"$T/err" </dev/null
	status=$?
	control ring0 clear >/dev/null
	# Refused, or taken back after a reading told what had happened.
	[[ $status != 0 && $(control ring0 map | sort) == "$a" &&
		$(touched b) == "$b" ]]
	tap "$fault during the load: all as before, b untouched"
	expect 0 "and the state knows it" weft plan -f "$T/two.yaml"
done

# One setting is not what was loaded.
control ring0 "flip b" >/dev/null
play b
expect 1 "the replay finds a setting that changed" \
	python3 "$HERE/ring_replay.py" "$T/b.json" "$T/b.trace"
expect 2 "verify finds it" weft verify
expect 0 "update puts it right" weft apply --mode update -f "$T/two.yaml"
replay "b is right again" b
expect 0 "verify agrees" weft verify

# What cannot be.
ring_fabric "$T/clash.yaml" "$B" "${A/channels: 3/channels: 2-4}"
expect 65 "overlapping channels" weft plan -f "$T/clash.yaml"
has err "one error names both jobs" \
	'clash.yaml:[0-9]+:[0-9]+: job a: channels 2-4 of ring ring0: job b has channels 4-7 there'
ring_fabric "$T/many.yaml" "$A" "${A/name: a/name: d}" "${B/4-7/3}"
expect 65 "more channels than there are" weft plan -f "$T/many.yaml"
has err "the error says who has them" 'job b: no 3 channels in a row are free on ring ring0: job a has 0-2, job d has 3-5'
RING_KEYS='program-memory: 50B' ring_fabric "$T/memory.yaml" "$A" "$B"
expect 65 "programs longer than the memory" weft plan -f "$T/memory.yaml"
has err "the error says both sizes" 'ring0: the programs of its jobs have [0-9]+ bytes, its program memory holds 50'
RING_KEYS='loss: { launch: 0dBm, sensitivity: -3dBm, add: 1dB, drop: 1dB, pass-by: 0.1dB, span: 2dB }' \
	ring_fabric "$T/dark.yaml" "$A"
expect 65 "a budget that no lightpath meets" weft plan -f "$T/dark.yaml"
has err "names lightpath, loss and budget" 'job a: lightpath 0 -> 1 over 1 hops loses 4.000 dB, and the budget is 0.000 dB'

# Jobs on some of the nodes: over the others, and on segments of the ring
# that may use the same channels.
S='collective: allreduce, size: 1MiB, segment: true, channels: 0-3'
ring_fabric "$T/parts.yaml" \
	"name: over, ring: ring0, nodes: 'n[1,2,6]', collective: allgather, size: 1MiB, channels: 4-7" \
	"name: west, ring: ring0, nodes: 'n[1-4]', $S" \
	"name: east, ring: ring0, nodes: 'n[6-7,0]', $S"
expect 0 "three jobs on parts of the ring" weft apply -f "$T/parts.yaml"
expect 0 "plan: nothing to do" weft plan -f "$T/parts.yaml"
replay "over other nodes" over 1 2 6
replay "on a segment" west 1 2 3 4
replay "on a segment over the seam of the count" east 6 7 0
ring_fabric "$T/cast.yaml" \
	"name: over, ring: ring0, nodes: 'n[1,2,6]', collective: broadcast, size: 64KiB, channels: 4-7" \
	"name: west, ring: ring0, nodes: 'n[1-4]', ${S/allreduce/broadcast}" \
	"name: east, ring: ring0, nodes: 'n[6-7,0]', ${S/allreduce/broadcast}"
expect 0 "three broadcasts on parts of the ring" weft apply -f "$T/cast.yaml"
replay "broadcast over other nodes" over 1 2 6
replay "broadcast on a segment" west 1 2 3 4
replay "broadcast on a segment over the seam of the count" east 6 7 0
ring_fabric "$T/meet.yaml" "name: west, ring: ring0, nodes: 'n[1-4]', $S" \
	"name: east, ring: ring0, nodes: 'n[4-7]', $S"
expect 65 "segments that share a node" weft plan -f "$T/meet.yaml"
has err "are refused by name" 'job east: channels 0-3 of ring ring0: job west has channels 0-3 there'

# Several fibres, and more than one ring.
stop weftd
stop ring0
rm -rf "$STATE"
ADDR=()
emulator ring0 mrr-reg 8x8 --fibres 2 || exit 1
emulator ring1 mrr-reg 8x8 --fibres 2 || exit 1
daemon || exit 1
FIBRES=2 ring_fabric "$T/fibres.yaml" "$A" "$B" \
	"name: e, ring: ring1, collective: allgather, size: 64MiB"
sed -n '/- name: ring0/,/^jobs/p' "$T/fibres.yaml" | sed '/^jobs/d' |
	sed "s/ring0/ring1/; s/${ADDR[ring0]}/${ADDR[ring1]}/" >"$T/ring1"
sed -i "/^rings:/r $T/ring1" "$T/fibres.yaml"
expect 0 "two rings of two fibres each way" weft apply -f "$T/fibres.yaml"
expect 0 "plan: nothing to do" weft plan -f "$T/fibres.yaml"
replay "all-gather on two fibres" a
replay "all-reduce on two fibres" b
grep -q ' fibre 1 ' "$T/a.trace"
tap "both fibres carry light"
CTL[ring0]=${CTL[ring1]}
replay "and on the second ring" e

# Retuning while others carry data, as the device says that it can.
stop weftd
stop ring0
stop ring1
rm -rf "$STATE"
ADDR=()
emulator ring0 mrr-reg 8x8 --overlap || exit 1
daemon || exit 1
for kind in broadcast all-to-all allreduce allgather; do
	RING_KEYS='conversion: 500ns' ring_fabric "$T/overlap.yaml" \
		"name: o, ring: ring0, size: 4KiB, channels: 2, collective: $kind"
	weft plan -f "$T/overlap.yaml" --format json >"$T/plan.json"
	expect 0 "$kind with overlap" weft apply -f "$T/overlap.yaml"
	replay "$kind: all is there" o
	control ring0 "tunings o" | grep -v '^ok$' >"$T/o.tunings"
	expect 0 "$kind: set in the dark, and in time" \
		python3 "$HERE/ring_overlap.py" "$T/o.json" "$T/o.trace" \
		"$T/o.tunings" "$T/plan.json" 25000 500 40000000000 8
done
expect 0 "plan: nothing to do" weft plan -f "$T/overlap.yaml"
near=$(jq '.jobs[0].time_ns' "$T/plan.json")
RING_KEYS='conversion: 500ns, span-delay: 300ns' ring_fabric "$T/far.yaml" \
	"name: o, ring: ring0, size: 4KiB, channels: 2, collective: allgather"
sed -i 's/500ns, span/500ns\n    span/' "$T/far.yaml"
weft plan -f "$T/far.yaml" --format json >"$T/plan.json"
jq -e ".jobs[0].time_ns >= $near + 300" "$T/plan.json" >"$T/err"
tap "light that takes time from node to node"
expect 0 "set in the dark, and in time" \
	python3 "$HERE/ring_overlap.py" "$T/o.json" "$T/o.trace" \
	"$T/o.tunings" "$T/plan.json" 25000 500 40000000000 8 300
weft status --format json >"$T/out"
jq -e '.jobs[0].retune_hidden_ns > 0' "$T/out" >"$T/err"
tap "status tells what is hidden"
# Once more for step 2, while step 1 has light on it.
sed -n '1s/^tune 0/tune 2/; 1s/after -1$/after 0/p' "$T/o.tunings" \
	>>"$T/o.tunings"
expect 1 "a resonator set under light is found" \
	python3 "$HERE/ring_overlap.py" "$T/o.json" "$T/o.trace" \
	"$T/o.tunings" "$T/plan.json" 25000 500 40000000000 8
RING_KEYS='overlap: false' ring_fabric "$T/overlap.yaml" \
	"name: o, ring: ring0, size: 4KiB, channels: 2, collective: allgather"
weft plan -f "$T/overlap.yaml" --format json >"$T/out"
jq -e '.jobs[0].retune_hidden_ns == 0' "$T/out" >"$T/err"
tap "overlap: false"
finish
