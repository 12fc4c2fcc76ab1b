#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Parts that the file marks as dead: light moves away from them, and plan,
# status and the page's JSON name them.
source "$(dirname "$0")/../lib.sh"
config() {
	cat <<-END
	weft: 1
	fabric: marked
	hosts:
	  - { name: "h[0-3]", ports: "p[0-2]", rate: 100Gbps, reactivation: 10ms }
	  - { name: "n[0-7]" }
	switches:
	  - { name: ocs0, size: 16x16, driver: sim }
	rings:
	  - { name: ring0, nodes: "n[0-7]", channels: 4, channel-rate: 40Gbps,
	      retune: 25us, driver: sim-ring }
	fibres:
	  - { from: "h[0-3].p[0-2]", to: "ocs0.[1-12]" }
	jobs:
	  - { name: reduce, nodes: "h[0-3]", collective: allreduce, size: 1MiB, topology: "Ring(4)" }
	  - { name: gather, ring: ring0, nodes: all, collective: allgather, size: 1MiB }
	END
}
config >"$T/whole.yaml"
{
	config
	echo 'dead:'
	echo '  - { port: [h1.p0, ocs0.out16] }'
	echo '  - { ring: ring0, span: 2, direction: cw }'
} >"$T/marked.yaml"
{
	config
	printf 'dead:\n  - { ring: ring0, node: 8 }\n'
} >"$T/bad.yaml"
expect 65 "a part that is not there" weft check "$T/bad.yaml"
has err "is refused with its place" 'bad\.yaml:17:26:.*node 8: ring ring0 has 0 to 7'
daemon || exit 1
expect 0 "all parts are used" weft apply -f "$T/whole.yaml"
expect 2 "with marks" weft plan -f "$T/marked.yaml" --full
has out "light leaves the port" '^- ocs0 .*h1\.p0'
has out "and does without the fibre" 'job gather: does without cw fibre 0 between n2 and n3'
expect 0 "applied" weft apply -f "$T/marked.yaml"
expect 0 "status" weft status
has out "names the ports" 'ocs0: marked as dead: in 4, out 4, out 16'
has out "and the parts" 'ring0: marked as dead: cw fibre 0 between n2 and n3'
expect 0 "as JSON" weft status --format json
jq -e '[.devices[] | .marked_dead] == [["in 4", "out 4", "out 16"],
	["cw fibre 0 between n2 and n3"]] and
	([.jobs[] | .health] == ["up", "up"])' "$T/out" >/dev/null
tap "with the jobs up"
jq -e '.problems == [] and (.jobs[] | select(.name == "gather") |
	.as_configured and .rate < 1 and .expected_time_ns > .whole_time_ns)' "$T/out" >/dev/null
tap "what the file knows is no problem, but the rate is told"
expect 0 "nor a difference" weft diff
expect 0 "a second time nothing is to do" weft plan -f "$T/marked.yaml"
expect 2 "without marks all is used again" weft plan -f "$T/whole.yaml" --format json
jq -e '(.jobs[] | select(.name == "gather") | .failed_parts) == []' "$T/out" >/dev/null
tap "also of the ring"
finish
