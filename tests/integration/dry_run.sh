#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# checklist 23: what `weft plan --commands` shows is what `weft apply` sends, on
# a device of every driver: dry_run.py compares each dry run with the audit
# trail of the change that followed it. Two domains make two stages; the jobs
# come, change and go, so that circuits are added, replaced and deleted.
source "$(dirname "$0")/../lib.sh"
here=$(dirname "$0")
drivers=(polatis-scpi polatis-tl1 glimmerglass-tl1 calient-tl1 sonic-ocs
	rome-cli telescent-cli polatis-restconf)
for driver in "${drivers[@]}" mrr-reg; do
	size=10x10
	[[ $driver == mrr-reg ]] && size=8x4
	emulator "$driver" "$driver" $size || exit 1
done

# config FILE NODES: a job on each switch over these of its hosts, in this
# order ("": none), and one on the ring.
config() {
	local file=$1 nodes=$2 depth=$3 k driver list n
	{
		echo "weft: 1"
		echo "fabric: dry"
		echo "hosts:"
		for k in "${!drivers[@]}" 8; do
			echo "  - { name: 'h$k-[0-3]', ports: 'p[0-1]'," \
				"rate: 100Gbps, reactivation: 1ms }"
		done
		echo "  - { name: 'n[0-7]' }"
		echo "switches:"
		for k in "${!drivers[@]}"; do
			driver=${drivers[k]}
			echo "  - { name: $driver, size: 10x10," \
				"driver: $driver, domain: d$((k % 2))," \
				"address: '${ADDR[$driver]}'," \
				"timeout: 2s, options: { gap_ms: 0 } }"
		done
		echo "  - { name: sim, size: 10x10, driver: sim, domain: d0 }"
		echo "rings:"
		echo "  - { name: mrr-reg, nodes: 'n[0-7]', channels: 4," \
			"channel-rate: 40Gbps, retune: 25us, driver: mrr-reg," \
			"address: '${ADDR[mrr-reg]}', timeout: 2s }"
		echo "fibres:"
		for k in "${!drivers[@]}"; do
			echo "  - { from: 'h$k-[0-3].p[0-1]'," \
				"to: '${drivers[k]}.[1-8]' }"
		done
		echo "  - { from: 'h8-[0-3].p[0-1]', to: 'sim.[1-8]' }"
		echo "jobs:"
		for k in "${!drivers[@]}" 8; do
			[[ -z $nodes ]] && continue
			list=${nodes//h/h$k-} n=4
			# Robots say so much on the way that the trail of four
			# circuits would be cut.
			((k == 5 || k == 6)) && list=${list%,*,*} n=2
			echo "  - { name: j$k, nodes: [$list]," \
				"collective: allreduce, size: 1MiB," \
				"topology: 'UniRing(1,$n)', alpha: 1us }"
		done
		echo "  - { name: gather, ring: mrr-reg, nodes: all," \
			"collective: allgather, size: 1MiB, depth: $depth }"
	} >"$file"
}

config "$T/first.yaml" "h0, h1, h2, h3" 1
config "$T/second.yaml" "h0, h3, h2, h1" 2
config "$T/last.yaml" "" 2

weft plan -f "$T/first.yaml" --offline --commands --format json \
	>"$T/offline.json"
[[ $? == 2 ]]
tap "a dry run without weftd"
for driver in "${drivers[@]}" mrr-reg; do
	[[ $(control "$driver" stats | awk '$1 == "sessions" { print $2 }') == 0 ]] || break
done
tap "it connects to nothing"

daemon || exit 1
for name in first second last; do
	weft plan -f "$T/$name.yaml" --commands --format json >"$T/$name.json"
	[[ $? == 2 ]]
	tap "$name: a dry run"
	expect 0 "$name: applied" weft apply -f "$T/$name.yaml"
done
weft plan --commands --format json >"$T/none.json"
[[ $? == 0 ]] && python3 -c 'import json, sys
sys.exit(json.load(open(sys.argv[1]))["commands"] != [])' "$T/none.json"
tap "nothing to do, nothing to send"
# All its circuits are others, so that one command sets the whole map.
grep -q ":oxc:swit:conn:only " "$T/second.json"
tap "a whole map where that is what goes out"
expect 2 "for people" weft plan -f "$T/second.yaml" --commands
has out "a heading for each batch" '^stage [12], sonic-ocs, add: 4 circuits$'
has out "the commands below it" '^    :oxc:swit:conn:add \(@1,3,5,7\)'
stop weftd
python3 "$here/dry_run.py" "$STATE/weft.db" "$T" first second last
tap "each is what was sent"
finish
