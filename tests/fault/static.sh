#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# checklist 2, 3, 4: what no operator asked for moves no light. A device of every
# dialect, and each keeps a log of what moved and who moved it: a second apply,
# the end of weftd however it comes, lost sessions and a start on maps that
# another user changed meanwhile leave no line in it.
source "$(dirname "$0")/../lib.sh"
DRIVERS="polatis-scpi polatis-tl1 glimmerglass-tl1 calient-tl1 sonic-ocs rome-cli telescent-cli"
{
	echo "weft: 1"
	echo "fabric: static"
	echo "hosts:"
	for d in $DRIVERS; do
		emulator "$d" "$d" 10x10 >&2 || exit 1
		echo "  - { name: '$d-[0-3]', ports: 'p[0-1]', rate: 100Gbps, reactivation: 1ms }"
	done
	emulator mrr-reg mrr-reg 8x4 >&2 || exit 1
	echo "  - { name: 'n[0-7]' }"
	echo "switches:"
	for d in $DRIVERS; do
		echo "  - { name: x-$d, size: 10x10, driver: $d, address: '${ADDR[$d]}', timeout: 2s, options: { gap_ms: 0 } }"
	done
	echo "rings:"
	echo "  - { name: x-mrr-reg, nodes: 'n[0-7]', channels: 4, channel-rate: 40Gbps, driver: mrr-reg, address: '${ADDR[mrr-reg]}' }"
	echo "fibres:"
	for d in $DRIVERS; do
		echo "  - { from: '$d-[0-3].p[0-1]', to: 'x-$d.[1-8]' }"
	done
	echo "jobs:"
	for d in $DRIVERS; do
		echo "  - { name: j-$d, nodes: '$d-[0-3]', collective: allreduce, size: 1MiB, topology: 'Ring(4)', alpha: 1us }"
	done
	echo "  - { name: j-ring, ring: x-mrr-reg, nodes: all, collective: allgather, size: 1MiB }"
} >"$T/fabric.yaml"

# Every line of every log that a session is to blame for.
moves() {
	local d
	for d in $DRIVERS mrr-reg; do
		control "$d" log | sed -n "s/^[0-9]* [0-9]* session /$d /p"
	done
}
still() { # WHAT
	moves | diff "$T/moves" - >"$T/diff"
	local same=$?
	sed 's/^/# /' "$T/diff"
	tap "$1" $same
}
# whole WHAT: all that is intended is there, and another user's light as well.
whole() {
	weft verify --format json >"$T/out"
	jq -e '.complete and ([.devices[].missing[]] | length) == 0 and ([.devices[].unexpected[]] | length) == 7' "$T/out" >"$T/jq"
}
ready() {
	wait_for 20 bash -c "weft status --format json | jq -e '.state != \"reading\"'"
}

daemon || exit 1
# Another user's, on ports that no fibre reaches.
for d in $DRIVERS; do
	control "$d" "set 8,9" >"$T/ctl"
done
expect 0 "a job on each device" weft apply -f "$T/fabric.yaml"
moves >"$T/moves"
[[ $(awk '{ print $1 }' "$T/moves" | sort -u | wc -l) == 8 ]]
tap "each tells what moved"

expect 0 "the same again" weft apply -f "$T/fabric.yaml" --format json
[[ $(jq -r .verdict "$T/out") == nothing-to-do ]] || jq -c . "$T/out" | sed 's/^/# /'
[[ $(jq -r .verdict "$T/out") == nothing-to-do ]]
tap "is nothing to do"
expect 0 "a plan has nothing" weft plan -f "$T/fabric.yaml"
still "and no light has moved"

for signal in KILL TERM; do
	stop weftd $signal
	still "$signal: light stays when weftd is gone"
	daemon && ready
	whole
	tap "$signal: all is as intended after the next start"
	still "$signal: and nothing was touched by it"
done

for d in $DRIVERS mrr-reg; do
	control "$d" "fault refuse" >"$T/ctl"
done
weft verify >"$T/out" 2>&1
weft status --format json >"$T/out"
[[ $(jq '[.devices[] | select(.reachable)] | length' "$T/out") == 0 ]]
tap "all sessions are lost"
jq -e '[.devices[] | select(.proof != "unverified")] == []' "$T/out" >"$T/jq"
tap "checklist 8: what cannot be read is called unverified"
still "light stays"
for d in $DRIVERS mrr-reg; do
	control "$d" clear >"$T/ctl"
done
wait_for 20 whole
tap "they are back, and all is as intended"
still "without a move"

# Somebody is at the devices while weftd is away.
stop weftd
for d in $DRIVERS; do
	control "$d" "unset $(control "$d" map | head -n 1)" >"$T/ctl"
done
control mrr-reg "restart dark" >"$T/ctl"
daemon && ready
weft status --format json >"$T/out"
[[ $(jq '[.devices[] | select(.kind == "switch" and (.missing | length) == 1 and (.unexpected | length) == 1)] | length' "$T/out") == 7 ]]
tap "the next start names what is missing, and another user's light"
jq -e '.devices[] | select(.kind == "ring") | .program | .wanted and (.loaded | not)' "$T/out" >"$T/jq"
tap "and the ring's program"
expect 2 "verify agrees" weft verify
still "nothing is restored before a client asks"
expect 0 "who asks" weft apply -f "$T/fabric.yaml"
whole
tap "gets it"
[[ $(for d in $DRIVERS; do control "$d" map | grep -x 8,9; done | wc -l) == 7 ]]
tap "and the other user's light was left alone"
moves | grep -q ' 8,9$'
[[ $? == 1 ]]
tap "at all times"
finish
