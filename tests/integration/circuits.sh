#!/bin/bash
# checklist 19: what arrives at a switch is measured before light is led into a
# receiver, and a plan forecasts the power of each new lightpath by it, with
# the loss of circuits that were measured before.
source "$(dirname "$0")/../lib.sh"
mkdir "$T/light"
lasers() { # POWER of h0's
	printf 'laser pol.in1 %s\nlaser pol.in2 -1.2\n' "$1"
	printf 'laser pol.in3 -1.0\nlaser pol.in4 -1.0\n'
}
lasers -9.5 >"$T/light/wiring"
emulator pol polatis-scpi 4x4 --plant "$T/light" || exit 1
emulator ggn glimmerglass-tl1 4x4 || exit 1

config() { # FILE NODES
	cat >"$1" <<-END
	weft: 1
	fabric: light
	hosts:
	  - { name: "h[0-3]", ports: p0, rate: 100Gbps, launch: 0dBm,
	      receive-min: -12dBm, receive-max: 0dBm, reactivation: 2s }
	  - { name: "g[0-3]", ports: p0, rate: 100Gbps }
	switches:
	  - { name: pol, size: 4x4, driver: polatis-scpi, address: "${ADDR[pol]}",
	      loss: 2dB, switch-time: 20ms, options: { power: in, gap_ms: 0 } }
	  - { name: ggn, size: 4x4, driver: glimmerglass-tl1, address: "${ADDR[ggn]}",
	      loss: 5dB, options: { gap_ms: 0 } }
	fibres:
	  - { from: "h[0-3].p0", to: "pol.[1-4]", loss: 1dB }
	  - { from: "g[0-3].p0", to: "ggn.[1-4]" }
	jobs:
	  - { name: jh, nodes: [${2//x/h}], collective: allreduce, size: 1MiB, topology: "UniRing(1,4)" }
	  - { name: jg, nodes: [${2//x/g}], collective: allreduce, size: 1MiB, topology: "UniRing(1,4)" }
	END
}
config "$T/one.yaml" "x0, x1, x2, x3"
config "$T/two.yaml" "x3, x2, x1, x0"

# holds WHAT FILTER: of the JSON of the last command.
holds() {
	jq -e "$2" "$T/out" >/dev/null || {
		echo "# not so: $2"
		jq -c .lightpaths "$T/out" | head -c 3000
		echo
		false
	}
	tap "$1"
}

DAEMON_OPTIONS=(--poll 0)
daemon || exit 1
expect 65 "a laser that is too weak by its measure" weft apply -f "$T/one.yaml"
has err "is refused with what was measured and what is launched" \
	'h0\.p0 -> h1\.p0: -9\.5dBm measured at pol in 1 \(0dBm launched\), 3dB lost from there on: -12\.5dBm would reach the receiver, -12dBm is the least'
control pol map | grep -q ,
[[ $? == 1 ]]
tap "and nothing is connected"

lasers -5.5 >"$T/light/wiring"
expect 2 "one that is weaker than it should be" weft plan -f "$T/one.yaml" --lightpaths
has err "is told" 'warning: h0\.p0: -1dBm should arrive at pol in 1, -5\.5dBm is measured'
has out "with its forecast" \
	'h0\.p0 +h1\.p0 +-1 dBm +-5\.5 dBm +4 dB +-8\.5 dBm +3\.5 dB +1 \+ pol 2 \+ 1'
lasers -60 >"$T/light/wiring"
expect 2 "one that is off" weft plan -f "$T/one.yaml" --lightpaths
has err "is told as well" 'warning: h0\.p0: -1dBm should arrive at pol in 1, and no light does'
has out "and planned with by its launch" 'h0\.p0 +h1\.p0 +-1 dBm +no signal +4 dB +-4 dBm'

lasers -1.1 >"$T/light/wiring"
expect 2 "as JSON" weft plan -f "$T/one.yaml" --format json
holds "what is launched and measured" '.warnings == [] and (.lightpaths |
	map(select(.from == "h0.p0"))[0] | .measured_mdbm == -1100 and
	.launched_mdbm == -1000 and .expected_min_mdbm == -4100 and
	.expected_max_mdbm == -4000 and .margin_mdb == 4000)'
holds "and nothing goes dark" '.outages.links == [] and .outages.hosts == []'
expect 0 "applied" weft apply -f "$T/one.yaml"
expect 2 "the other way round" weft plan -f "$T/two.yaml" --lightpaths
has out "each receiver is dark for the switch and its transceiver" \
	'h0\.p0 +h1\.p0 +stage [12] +[0-9.]+ s'
has out "in all of a host" '^ *h2 +2 +[0-9.]+ s'
has out "and of a job" '^ *jh +4 +[0-9.]+ s'
expect 0 "applied too" weft apply -f "$T/two.yaml"
expect 2 "and back" weft plan -f "$T/one.yaml" --format json
holds "by what the circuits lost, where that was measured" '
	[.lightpaths[] | select(.job == "jg") | .elements[1] |
	 .source == "learned" and .loss_mdb < 1500] == [true, true, true, true]
	and ([.lightpaths[] | select(.job == "jh") | .elements[1] |
	      .source == "configured" and .loss_mdb == 2000] | all)'
holds "four links of each job go" '(.outages.links | length) == 8 and
	(.outages.jobs | map(.links)) == [4, 4]'
finish
