#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A ring of namespaces: in every step of every job frames arrive by each
# lightpath of the schedule and by no other way, and what arrives is all that
# the collective promises; jobs step by themselves, beside a switch.
source "$(dirname "$0")/../lib.sh"
HERE=$(dirname "$0")
F=tr$$
testbed_of "$T/two.yaml"

# write FILE JOB...
write() {
	local file=$1 job
	shift
	cat >"$file" <<-END
	weft: 1
	fabric: $F
	hosts:
	  - { name: "n[0-7]", ports: "p[0-1]", rate: 1Gbps, reactivation: 10ms }
	switches:
	  - { name: ocs0, size: 16x16, driver: linux-tc, options: { fabric: $F } }
	rings:
	  - name: ring0
	    nodes: "n[0-7]"
	    fibres: 2
	    channels: 4
	    channel-rate: 1Gbps
	    driver: linux-ring
	    options: { fabric: $F, switch_ms: 1 }
	fibres:
	  - { from: "n[0-7].p[0-1]", to: "ocs0.[1-16]" }
	jobs:
	  - { name: round, nodes: "n[0-7]", collective: allreduce, size: 1MiB, topology: "Ring(8)", alpha: 10us }
	END
	for job in "$@"; do
		echo "  - { $job }" >>"$file"
	done
}
A='name: a, ring: ring0, collective: allgather, size: 1MiB, channels: 0-1'
B='name: b, ring: ring0, collective: allreduce, size: 1MiB, channels: 2-3'
write "$T/two.yaml" "$A" "$B"

weft testbed up "$T/two.yaml" >"$T/out" 2>"$T/err"
status=$?
if [[ $status == 77 ]] || grep -q 'network namespace: ' "$T/err"; then
	echo "ok 1 - rings in a testbed # SKIP $(head -n 1 "$T/err")"
	echo "1..1"
	exit 0
elif [[ $status != 0 ]]; then
	cat "$T/err"
	tap "testbed up" 1
	finish
fi
expect 0 "up again: nothing to do" weft testbed up "$T/two.yaml" --format json
[[ $(jq -c '[.built, .resonators]' "$T/out") == '[false,128]' ]]
tap "it says so"
expect 0 "bring-up walks the switch" weft bringup "$T/two.yaml" --format json
[[ $(jq -c '[.differences, .unseen]' "$T/out") == '[0,["ring0"]]' ]]
tap "and says that it does not walk the ring"
expect 0 "dark: nothing arrives" weft testbed probe "$T/two.yaml" --format json
[[ $(jq '.heard | length' "$T/out") == 0 ]]
tap "anywhere"
daemon || exit 1

# The light of one job as frames showed it, in the words of an emulator.
trace() { # FILE CHANNELS
	jq -r --argjson channels "$2" '.steps[] | .step as $step |
		.heard[] | select(.at == "rx") |
		(.from | capture("^n(?<n>.)\\.ring0(?<d>.)(?<f>.)\\.(?<c>.)$")) as $a |
		(.to | capture("^n(?<n>.)\\.ring0(?<d>.)(?<f>.)\\.(?<c>.)$")) as $b |
		select([$b.c | tonumber] | inside($channels)) |
		if $a.d != $b.d or $a.f != $b.f or $a.c != $b.c then "misrouted \(.from) \(.to)"
		else "drop \($step) node \($b.n) \(if $b.d == "+" then "cw" else "ccw" end) fibre \($b.f) channel \($b.c) from \($a.n)"
		end' "$1"
}

# show NAME CHANNELS FILE [NODE...]: all steps of a job, and the collective over their light.
show() {
	local name=$1 channels=$2 file=$3
	shift 3
	expect 0 "$name: every step passes its light and no other" \
		weft testbed step "$file" "$name" --all --format json
	cp "$T/out" "$T/$name.steps"
	trace "$T/$name.steps" "$channels" >"$T/$name.trace"
	expect 0 "$name: its schedule" weft schedule export --job "$name" \
		--to json -o "$T/$name.json"
	expect 0 "$name: all that it promises has arrived" \
		python3 "$HERE/ring_replay.py" "$T/$name.json" "$T/$name.trace" "$@"
}

expect 0 "two jobs on the ring and one on the switch" weft apply -f "$T/two.yaml"
expect 0 "plan: nothing to do" weft plan -f "$T/two.yaml"
show a '[0,1]' "$T/two.yaml"
show b '[2,3]' "$T/two.yaml"
expect 1 "a lightpath less is found out" python3 "$HERE/ring_replay.py" \
	"$T/b.json" <(sed 1d "$T/b.trace")
expect 0 "routes of the job on the switch" weft testbed route "$T/two.yaml"
expect 0 "it is pinged beside them" weft testbed ping "$T/two.yaml"
expect 64 "one of several jobs is not run" weft testbed run "$T/two.yaml"
has err "nor guessed" '--job NAME'
expect 65 "a job whose light changes is not run" weft testbed run "$T/two.yaml" --job a
has err "which is said" 'ring changes from step to step'

# Steps stay where they are when others come and go, and without weftd.
expect 0 "a goes to its step 2" weft testbed step "$T/two.yaml" a --to 2
write "$T/other.yaml" "$A" "${B/allreduce/all-to-all}"
expect 0 "b does something else" weft apply -f "$T/other.yaml"
show b '[2,3]' "$T/other.yaml"
expect 0 "the next step of a" weft testbed step "$T/other.yaml" a --format json
[[ $(jq .step "$T/out") == 3 ]]
tap "is step 3"
stop weftd KILL
expect 0 "weftd killed: a steps round" weft testbed step "$T/other.yaml" a --format json
[[ $(jq .step "$T/out") == 0 ]]
tap "to its first step"
expect 0 "light as it should be" weft testbed probe "$T/other.yaml"
daemon || exit 1
expect 0 "weftd finds all as it was" weft verify
expect 64 "no such step" weft testbed step "$T/other.yaml" a --to -1
expect 65 "nor this" weft testbed step "$T/other.yaml" a --to 60000
has err "the error says which there are" 'a has steps 0 to 3'
expect 65 "no such job" weft testbed step "$T/other.yaml" none

# Somebody takes a receiver down.
take_down() {
	nsenter --net="/run/netns/weft.$F.ring0" python3 - "$1" <<-END
		import fcntl, socket, struct, sys
		s, name = socket.socket(), sys.argv[1].encode()
		SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP = 0x8913, 0x8914, 1
		flags = fcntl.ioctl(s, SIOCGIFFLAGS, struct.pack("16s16x", name))
		flags = struct.unpack("16xh14x", flags)[0] & ~IFF_UP
		fcntl.ioctl(s, SIOCSIFFLAGS, struct.pack("16sh14x", name, flags))
	END
}
take_down r3+0.0
expect 2 "light is missing" weft testbed probe "$T/other.yaml" --format json
[[ $(jq -c .missing "$T/out") == '["n2.ring0+0.0 -> n3.ring0+0.0"]' ]]
tap "at that resonator and no other"
expect 2 "verify finds it" weft verify
has out "and names it" 'node 3 cw fibre 0 channel 0'
expect 0 "the step lit again" weft testbed step "$T/other.yaml" a --to 0
expect 0 "light as it should be" weft testbed probe "$T/other.yaml"
expect 0 "verify agrees" weft verify
take_down r3+0.0
expect 2 "verify finds it again" weft verify
expect 2 "a plan brings it back" weft plan -f "$T/other.yaml"
has out "by the ring's programs" '1 programs? to load'
expect 0 "so does the same configuration" weft apply -f "$T/other.yaml"
expect 0 "light as it should be" weft testbed probe "$T/other.yaml"
expect 0 "verify agrees" weft verify
expect 0 "then nothing is left to do" weft plan -f "$T/other.yaml"

# Jobs on segments of the ring share channels.
S='collective: allreduce, size: 1MiB, segment: true, channels: 0-3'
write "$T/parts.yaml" "name: west, ring: ring0, nodes: 'n[1-4]', $S" \
	"name: east, ring: ring0, nodes: 'n[6-7,0]', $S"
expect 0 "two jobs on parts of the ring" weft apply -f "$T/parts.yaml"
for job in west east; do
	expect 0 "$job: every step passes its light and no other" \
		weft testbed step "$T/parts.yaml" $job --all
done

stop weftd
expect 0 "down" weft testbed down "$T/two.yaml"
for path in /run/netns/weft."$F".* /run/weft-testbed/weft."$F".*; do
	[[ ! -e $path ]]
	tap "nothing is left of ${path##*/}"
done
sed 's/driver: linux-ring/driver: sim-ring/; s/^\( *\)options: { fabric: .*/\1timeout: 1s/' "$T/two.yaml" >"$T/sim.yaml"
expect 65 "a ring with another driver" weft testbed up "$T/sim.yaml"
has err "is named" 'ring0: its driver is sim-ring; in a testbed it must be linux-ring'
finish
