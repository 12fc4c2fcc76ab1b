#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Jobs on a ring: what the emulated resonators drop and add, step by step,
# carries every shard to every node; two jobs share a ring without touching
# each other's light; what fails half way changes nothing. Once over real sockets:
# tests/sim/stories/ring_stories.c has the other collectives, faults, parts of rings, retuning
# while others carry data, and what cannot be.
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
	    channels: 8
	    channel-rate: 40Gbps
	    driver: mrr-reg
	    address: ${ADDR[ring0]}
	    timeout: 2s
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

b=$(touched b)
a=$(touched a)
ring_fabric "$T/small.yaml" "${A/allgather/allreduce}" "$B"
expect 0 "job a does something else" weft apply -f "$T/small.yaml"
[[ -n $b && $(touched b) == "$b" ]]
tap "no register of b was written"
[[ $(touched a) != "$a" ]]
tap "those of a were"
replay "a is right again" a

a=$(control ring0 map | sort)
control ring0 "fault corrupt-shadow" >/dev/null
expect 3 "a load that fails half way" weft apply -f "$T/two.yaml"
control ring0 clear >/dev/null
[[ $(control ring0 map | sort) == "$a" && $(touched b) == "$b" ]]
tap "all as before, b untouched"

# Servers of two ranks: light is that of hosts, and what is inside them needs none.
ring_fabric "$T/servers.yaml" "$A" 'name: c, ring: ring0, collective: allreduce, size: 1MiB, channels: 4-7'
sed -i 's/"n\[0-7\]" }/"n[0-7]", inside: "K(2)" }/' "$T/servers.yaml"
expect 0 "hosts get ranks inside" weft apply -f "$T/servers.yaml"
replay "all-gather of 16 ranks on 8 nodes" a
replay "all-reduce of 16 ranks on 8 nodes" c
[[ $(weft status --format json | jq -c '[.jobs[] | .ranks | length]') == '[16,16]' ]]
tap "status has all ranks"
{ echo dead:; echo '  - { ring: ring0, node: 3, direction: cw, fibre: 0, channel: 5 }'; } \
	>>"$T/servers.yaml"
expect 0 "a resonator that is not to be used" weft apply -f "$T/servers.yaml"
replay "all-reduce without it" c
! grep -q 'node 3 cw fibre 0 channel 5 ' "$T/c.trace"
tap "no light there"
finish
