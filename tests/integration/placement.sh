#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A job's schedule says where its ranks and arcs are, so that an engine can
# place ranks by the file alone: hosts by rank, ports by arc that are those of
# the circuits which the switch holds, nodes of a ring by rank; in both forms,
# in parts, in status, and in the schedule on what remains.
source "$(dirname "$0")/../lib.sh"
emulator ocs0 polatis-scpi 36x36 || exit 1
emulator ring0 mrr-reg 8x8 || exit 1
cat >"$T/a.yaml" <<-END
	weft: 1
	fabric: placed
	hosts:
	  - { name: "h[0-7]", ports: "p[0-2]", rate: 100Gbps }
	  - { name: "s[0-1]", ports: "p[0-3]", rate: 100Gbps, inside: "K(2)", port-at: [0, 1, 0, 1] }
	  - { name: "n[0-7]" }
	switches:
	  - name: ocs0
	    size: 36x36
	    driver: polatis-scpi
	    address: ${ADDR[ocs0]}
	    options: { gap_ms: 1, settle_ms: 20 }
	    timeout: 1s
	rings:
	  - name: ring0
	    nodes: "n[0-7]"
	    fibres: 1
	    channels: 8
	    channel-rate: 40Gbps
	    driver: mrr-reg
	    address: ${ADDR[ring0]}
	    timeout: 2s
	fibres:
	  - { from: "h[0-7].p[0-2]", to: "ocs0.[1-24]" }
	  - { from: "s[0-1].p[0-3]", to: "ocs0.[25-32]" }
	jobs:
	  - { name: cube, nodes: [h7, h6, h5, h4, "h[0-3]"], collective: all-to-all, size: 1MiB, topology: 'Hypercube(3)', alpha: 1us }
	  - { name: pair, nodes: "s[0-1]", collective: allgather, size: 1MiB, topology: 'UniRing(2,2)', alpha: 1us }
	  - { name: round, nodes: "n[2-5]", collective: allgather, size: 1MiB, ring: ring0 }
END
daemon || exit 1
expect 0 "applied" weft apply -f "$T/a.yaml"

# Ports of the fabric by their number on the switch, from 1.
jq -n '[range(8) as $h | range(3) as $p | {key: "h\($h).p\($p)", value: (3*$h+$p+1)}] +
	[range(2) as $h | range(4) as $p | {key: "s\($h).p\($p)", value: (25+4*$h+$p)}] |
	from_entries' >"$T/ports"

yes() { # FILTER FILE...
	[[ $(jq "$@") == true ]]
}

# The schedule of a job in JSON, in $T/JOB.json.
schedule() { # JOB
	expect 0 "$1: its schedule" weft schedule export --job "$1" --to json -o "$T/$1.json"
}

# Every arc with ports has them at the hosts of its ends, no port twice, and the
# switch holds a circuit between them.
ports_are_right() { # JOB
	weft device show ocs0 --format json |
		jq '[.. | objects | select(has("in") and has("out")) | {in, out}] | unique' >"$T/held"
	yes --slurpfile port "$T/ports" --slurpfile held "$T/held" '
		.placement as $p | (.physical_arcs // .arcs) as $arcs |
		[range($arcs | length) | select($p.tx_ports[.] != "") |
			{ tx: $p.tx_ports[.], rx: $p.rx_ports[.],
			  src: $p.hosts[$arcs[.][0]], dst: $p.hosts[$arcs[.][1]] }] |
		length > 0 and
		all(.[]; (.tx | split(".")[0]) == .src and (.rx | split(".")[0]) == .dst) and
		(map(.tx) | unique | length) == length and (map(.rx) | unique | length) == length and
		all(.[]; { in: $port[0][.tx], out: $port[0][.rx] } as $c | $held[0] | index($c))
		' "$T/$1.json"
}

schedule cube
[[ $(jq -c '.version, .placement.hosts' "$T/cube.json" | tr '\n' ' ') == \
	'3 ["h7","h6","h5","h4","h0","h1","h2","h3"] ' ]]
tap "hosts by rank, in the job's order"
[[ $(jq '.arcs | length' "$T/cube.json") == $(jq '.placement.tx_ports | length' "$T/cube.json") ]]
tap "a port at the source of every arc"
ports_are_right cube
tap "and the switch holds a circuit from each to the other end's"

# Both forms, and parts.
expect 0 "as protobuf" weft schedule export --job cube --to proto -o "$T/cube.pb"
expect 0 "and from it" weft schedule export "$T/cube.pb" --to json -o "$T/again.json"
cmp -s "$T/cube.json" "$T/again.json"
tap "the same"
expect 0 "a rank's part" weft schedule export --job cube --to json --rank 3 -o "$T/part.json"
[[ $(jq -c .placement.tx_ports "$T/part.json") == "[\"h7.p"* ]] &&
	[[ $(jq -c .placement "$T/part.json") == "$(jq -c .placement "$T/cube.json")" ]]
tap "has all of it"
expect 0 "shown" weft schedule show "$T/cube.pb" --format json
yes '.ranks[0].host == "h7" and (.arcs | length) == 24 and
	(.arcs[0].tx_port | startswith("h7."))' "$T/out"
tap "with hosts and ports"
expect 0 "as a table" weft schedule show --job cube
has out "names hosts" '^ *0 +h7'
has out "and ports" 'h7\.p[0-2] +h[0-9]\.p[0-2]'

weft status --format json >"$T/status"
yes --slurpfile s "$T/cube.json" '.jobs[] | select(.name == "cube") |
	[.ranks[].host] == $s[0].placement.hosts and
	[.arcs[].tx_port] == $s[0].placement.tx_ports and
	[.arcs[].rx_port] == $s[0].placement.rx_ports and
	[.arcs[] | [.from, .to]] == [$s[0].arcs[] | .[:2]]' "$T/status"
tap "status says the same"

# Two ranks a host: ports are of the arcs between hosts only.
schedule pair
[[ $(jq -c .placement.hosts "$T/pair.json") == '["s0","s0","s1","s1"]' ]] &&
	yes '[.placement.tx_ports[] | select(. == "")] | length == 4' "$T/pair.json"
tap "two ranks a host, whose own arcs have no ports"
ports_are_right pair
tap "the others have those of their circuits"

# On a ring the light of the schedule needs the node, not a port.
schedule round
[[ $(jq -c '.placement | .hosts, .ring_nodes, .tx_ports' "$T/round.json" | tr '\n' ' ') == \
	'["n2","n3","n4","n5"] [2,3,4,5] null ' ]]
tap "hosts and nodes of the ring by rank"
[[ $(jq -c '.jobs[] | select(.name == "round") | [.ranks[].ring_node]' "$T/status") == "[2,3,4,5]" ]]
tap "also in status"

# What remains when a port has failed: other numbers of arcs, the same circuits.
control ocs0 "fault port-failed=o1" >"$T/answer"
weft verify >"$T/out" 2>"$T/err"
degraded() {
	[[ $(weft status --format json | jq -r '.jobs[] | select(.name == "cube") | .health') == degraded ]]
}
wait_for 20 degraded
schedule cube
[[ $(jq '.arcs | length' "$T/cube.json") == 23 ]] && ports_are_right cube &&
	! jq -r '.placement.rx_ports[]' "$T/cube.json" | grep -qx h0.p1
tap "the schedule on what remains has the ports of the arcs that are left"
finish
