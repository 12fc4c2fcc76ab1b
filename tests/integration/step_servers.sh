#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A training step on servers of several GPUs: what runs within them takes no port, circuits join
# ranks at the same place of two servers, and schedules of ranks in servers are replayed with what
# is inside; as a job of the file and on request.
source "$(dirname "$0")/../lib.sh"
emulator ocs0 polatis-scpi 64x64 || exit 1
# steps FILE INSIDE PORT-AT
fabric_of() {
	cat >"$1" <<-END
	weft: 1
	fabric: servers
	hosts:
	  - { name: "g[0-3]", ports: "p[0-15]", rate: 200Gbps, reactivation: 0s, inside: "$2", port-at: [ $3 ] }
	switches:
	  - { name: ocs0, size: 64x64, driver: polatis-scpi, address: "${ADDR[ocs0]}", options: { gap_ms: 1, settle_ms: 20 }, timeout: 1s }
	fibres: [ { from: "g[0-3].p[0-15]", to: "ocs0.[1-64]" } ]
	END
}
cat >"$T/step.yaml" <<-END
	mesh: { dp: 2, ep: 4, tp: 4 }
	collectives:
	  - { name: inside, collective: allgather, size: 128MiB, over: tp }
	  - { name: rails, collective: reduce-scatter, size: 64MiB, over: dp }
	  - { name: experts, collective: all-to-all, size: 64MiB, over: [ep, tp] }
	  - { name: sums, collective: allreduce, size: 64MiB, over: ep }
	step: [ { repeat: 16, do: [ inside, experts ] }, rails, sums ]
END
by_two=$(seq -s ", " 0 0.5 7.5 | sed 's/\.[0-9]//g')
fabric_of "$T/f.yaml" "Cap(Star(8),300)" "$by_two"
daemon || exit 1
{ cat "$T/f.yaml"; echo "jobs:"; echo "  - name: train"; echo '    nodes: "g[0-3]"'; sed 's/^/    /' "$T/step.yaml"; } >"$T/job.yaml"
expect 0 "applied" weft apply -f "$T/job.yaml"
weft status --format json >"$T/status"
jq -e '.jobs[0] | .health == "up" and (.step.uses | map(.ranks) == [4, 2, 16, 4]) and
	.step.bound_still_ns <= .time_ns' <"$T/status" >"$T/ok"
tap "status has the step"
# 128 MiB of 4 ranks: three quarters over the links inside, at 300 GB/s, and one step.
jq -e '.jobs[0].step.uses[0] | .name == "inside" and .time_ns == ((134217728 * 3 / 4 / 300 + 10000) | ceil)' <"$T/status" >"$T/ok"
tap "a collective within servers takes their links alone"
jq -e '.jobs[0].step.lights[0].shares | (map(.ports) | add) == 2 and (map(.axes) | sort) == ["dp", "ep"]' <"$T/status" >"$T/ok"
tap "the two ports of a rank are split over the axes between servers"
# Circuits by device port, two of each rank: in and out are of the same place in two servers.
map ocs0 | awk -F, '{ a = int(($1 % 16) / 2); b = int(($2 % 16) / 2); bad += a != b; n++ } END { exit !(n == 64 && bad == 0) }'
tap "all circuits are rails"
expect 0 "the step is exported" weft schedule export --job train -o "$T/train/"
expect 0 "and checked without the fabric" env WEFT_SOCKET=/nowhere weft schedule verify "$T/train/"
expect 0 "a schedule of ranks in servers alone" weft schedule export --job train/experts -o "$T/experts.json"
expect 0 "is replayed with what is inside" weft schedule verify "$T/experts.json"
has out "of the group's 16 ranks" "ranks *16|nodes *16"

# On request: servers that have as many ranks as the mesh, or those that are named.
expect 0 "without the job" weft apply -f "$T/f.yaml"
expect 0 "a step is asked for" weft job request wide --step "$T/step.yaml"
weft status --format json | jq -e '.jobs[0] | .name == "wide" and .health == "up" and (.step.uses | map(.ranks) == [4, 2, 16, 4])' >"$T/ok"
tap "and has four servers"
expect 0 "released" weft job release wide
sed 's/dp: 2/dp: 1/; /rails/d; s/, rails//' "$T/step.yaml" >"$T/half.yaml"
sed -i 's/step: .*/step: [ { repeat: 16, do: [ inside, experts ] }, sums ]/' "$T/half.yaml"
expect 0 "one of half the ranks" weft job request half --nodes "g[2-3]" --step "$T/half.yaml"
weft job list --format json | jq -e '.jobs[0].nodes == ["g2", "g3"]' >"$T/ok"
tap "on the servers that were named"
expect 65 "of too few ranks" weft job request more --nodes "g[0-1]" --step "$T/step.yaml"
has err "is refused" "step: mesh: of 32 ranks, the job has 16"
expect 0 "released" weft job release half

# refused WHAT INSIDE PORT-AT SED MESSAGE
refused() {
	fabric_of "$T/bad.yaml" "$2" "$3"
	{ cat "$T/bad.yaml"; echo "jobs:"; echo "  - name: train"; echo '    nodes: "g[0-3]"'; sed "$4" "$T/step.yaml" | sed 's/^/    /'; } >"$T/bad-job.yaml"
	expect "${6:-65}" "$1" weft plan --offline -f "$T/bad-job.yaml"
	has err "is refused" "$5"
}
refused "a mesh of the hosts alone" "Cap(Star(8),300)" "$by_two" 's/tp: 4/tp: 1/; s/ep: 4/ep: 2/' "mesh: of 4 ranks, the job has 32 of its hosts"
refused "a rank without ports" "Cap(Star(8),300)" "$(yes 0 | head -16 | paste -sd,)" 's/x/x/' "do not each have their ports at one place: g0"
refused "sends within servers" "Cap(Star(8),300)" "$by_two" 's/collective: allgather/collective: send/' "sends along an axis within servers"
refused "ranks that others are between" "Cap(Mesh(8),300)" "$by_two" 's/x/x/' "sums: the digraph is not strongly connected"
finish
