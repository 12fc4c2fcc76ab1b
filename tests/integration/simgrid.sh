#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# weft schedule simulate against SimGrid, another simulator of max-min fair flows:
# the same times for the same schedules, in lockstep and asynchronously, within
# 0.1 % (whole bytes and nanoseconds are all that is rounded). The flows are taken from
# the schedule's file by a program that shares nothing with weft.
#
# One rule differs, and is shown at the end: where flows of several latencies share
# a link, SimGrid's model CM02 gives those with the longer ones less, as TCP
# does; weft gives all the same. Everywhere else latencies are given to SimGrid as
# delays of the messages, which is what they are in weft.
#
# Skipped where SimGrid or g++ is missing.
. "$(dirname "$0")/../lib.sh"
cd "$T" || exit 1
flows=$TOP/tests/integration/simgrid_flows.py
if ! g++ -std=c++17 "$TOP/tests/integration/simgrid_flows.cc" -lsimgrid -o simgrid 2>log; then
	echo "ok 1 - weft and SimGrid agree # SKIP no SimGrid (libsimgrid-dev) or no g++"
	echo "1..1"
	exit 0
fi

# flows_of FILE [links]: its messages, for SimGrid.
flows_of() {
	python3 "$flows" flows "$1" 1000 150 400 8000000000 48000000 "${@:2}" >flows
}

# simgrid MODE: its time in ns for the last flows_of.
simgrid() {
	./simgrid "$1" --log=root.thres:error <flows
}

# simulated FILE MODE: weft's.
simulated() {
	local asynchronous=()
	[[ $2 == asynchronous ]] && asynchronous=(--asynchronous)
	weft schedule simulate "$1" --alpha 1us --hop 150ns --message 400ns \
		--link-bandwidth 8Gbps --size 48MB "${asynchronous[@]}" --format json | jq .time_ns
}

# near WEFT SIMGRID: within 0.1 %.
near() {
	awk -v a="$1" -v b="$2" 'BEGIN { d = a - b; exit !(a > 0 && d <= a / 1000 && -d <= a / 1000) }'
}

# agree WHAT FILE FLAT: in both modes; FLAT is FILE written out.
agree() {
	local mode ours theirs
	flows_of "$3"
	for mode in lockstep asynchronous; do
		ours=$(simulated "$2" "$mode")
		theirs=$(simgrid "$mode")
		near "$ours" "$theirs" || echo "# weft $ours ns, SimGrid $theirs ns"
		near "$ours" "$theirs"
		tap "$1, $mode"
	done
	return 0
}

# Schedules that weft makes, compact where they are symmetric, with routes where
# there are switches.
while read -r topology collective options; do
	mine || continue
	# shellcheck disable=SC2086
	weft schedule make -t "$topology" -c "$collective" $options -o made.json >/dev/null &&
		weft schedule export made.json --to json --flat -o flat.json >/dev/null &&
		agree "$collective on $topology" made.json flat.json ||
		tap "$collective on $topology: no schedule" 1
done <<-END
	Torus(4,4) allreduce
	Torus(3,5) allgather
	Mesh(3,4) allreduce
	Hypercube(4) allreduce
	C(12,{1,5}) reduce-scatter
	GenKautz(2,12) allreduce
	GenKautz(3,20) allgather
	Lat(Cap(Ring(7),3),900) allreduce
	Prod(UniRing(1,3),Lat(Ring(4),2000)) allreduce
	GenKautz(2,9) all-to-all
	Mesh(4,4) broadcast --batches 5
	Torus(3,4) gather --root 5
	HyperX(4,4) allreduce
	HyperX(2,3) all-to-all
	HammingMesh(2,2,2) allreduce
	HammingMesh(2,2,1) all-to-all
	DgxA100(2,all) reduce-scatter -a bfb
	DgxA100(1,all) all-to-all
	Rails(2,4) allgather
END

# All-gathers by recursive doubling, whose messages share the links of their
# routes; at the end one with shared limits.
while read -r topology; do
	mine || continue
	weft topology build "$topology" -o topology.json >/dev/null &&
		python3 "$flows" double topology.json >doubling.json &&
		weft schedule verify doubling.json >/dev/null &&
		agree "recursive doubling on $topology" doubling.json doubling.json ||
		tap "recursive doubling on $topology: no schedule" 1
done <<-END
	Torus(4,4)
	Torus(8,4)
	Mesh(4,4)
	GenKautz(2,16)
	Jellyfish(16,3,1)
	HyperX(4,4)
	HammingMesh(2,2,2)
	FatTree(4)
	Rails(2,4)
	DgxA100(2,all)
	DgxA100(2,pcie)
END

# All-reduces on tori and their relatives, read as they are: compact, some with a group that
# keeps partners but not links, so that every arc has its own routes.
while read -r topology algorithm options; do
	mine || continue
	# shellcheck disable=SC2086
	weft schedule make -t "$topology" -c allreduce -a "$algorithm" $options -o made.json >/dev/null &&
		agree "$algorithm on $topology" made.json made.json ||
		tap "$algorithm on $topology: no schedule" 1
done <<-END
	Torus(4,16) swing
	Torus(6,10) swing
	Torus(5,7) swing
	Torus(4,4,4) swing
	Torus(6,6) swing-latency
	Torus(3,5) mixed-radix --levels 3c,5c --rounds 0
	Torus(8,4) mixed-radix --levels 2x4c,4c --rounds 1
	Torus(4,8) rabenseifner
	Mesh(8,8) swing
	Mesh(4,6) bucket
	HyperX(4,6) swing
	HammingMesh(2,2,2) swing
END

# What SimGrid took on larger ones, which is more than these tests have time for.
while read -r topology algorithm want options; do
	mine || continue
	# shellcheck disable=SC2086
	weft schedule make -t "$topology" -c allreduce -a "$algorithm" $options -o made.json >/dev/null
	for mode in lockstep asynchronous; do
		got=$(simulated made.json "$mode")
		[[ $got == "$want" ]]
		tap "$algorithm on $topology, $mode: $got ns, as SimGrid once" $?
	done
done <<-END
	Torus(16,16) swing 27309650
	Torus(16,16) swing-latency 240014200
	Torus(16,16) recursive-doubling 1056015700
	Torus(8,8,8) swing 16435950
	Torus(8,8,8) swing-latency 120014850
	Torus(8,8,8) recursive-doubling 720015750
	HyperX(8,8) hybrid 25526100 --rounds 3
END

# Compact, with routes; in 2 MiB at 400 Gbit/s and 400 ns a hop SimGrid took
# 58.1146 us on 32 x 32 nodes, and 92.0371 us in 103 s on 64 x 64.
for side in 4 8; do
	mine || continue
	python3 "$flows" swing $side >swing.json &&
		weft schedule export swing.json --to json --flat -o flat.json >/dev/null &&
		agree "Swing on Torus($side,$side)" swing.json flat.json ||
		tap "Swing on Torus($side,$side): no schedule" 1
done
while read -r side want; do
	mine || continue
	python3 "$flows" swing "$side" >swing.json
	got=$(weft schedule simulate swing.json --alpha 0ns --hop 400ns --link-bandwidth 400Gbps \
		--size 2MiB --format json | jq .time_ns)
	[[ $got == "$want" ]]
	tap "Swing on Torus($side,$side): as SimGrid once"
done <<-END
	32 58115
	64 92038
END

# Servers, joined by circuits: the digraph of a job's ranks.
while read -r topology ports first second collective; do
	mine || continue
	cat >servers.yaml <<-YAML
		weft: 1
		fabric: servers
		hosts:
		  - { name: "a[0-1]", ports: "n[0-$((ports - 1))]", rate: 200Gbps, inside: "$first" }
		  - { name: "b[0-1]", ports: "n[0-$((ports - 1))]", rate: 200Gbps, inside: "$second" }
		switches:
		  - { name: ocs, size: 32x32, driver: sim }
		fibres:
		  - { from: "a[0-1].n[0-$((ports - 1))]", to: "ocs.[1-$((2 * ports))]" }
		  - { from: "b[0-1].n[0-$((ports - 1))]", to: "ocs.[17-$((16 + 2 * ports))]" }
		jobs:
		  - { name: j, nodes: all, collective: $collective, size: 48MB, topology: "$topology" }
	YAML
	weft topology build -f servers.yaml --job j -o topology.json >/dev/null &&
		weft schedule make -t topology.json -c "$collective" --alpha 1us --size 48MB \
			--link-bandwidth 8Gbps -o made.json >/dev/null &&
		weft schedule export made.json --to json --flat -o flat.json >/dev/null &&
		agree "$collective on servers of $first and $second" made.json flat.json ||
		tap "$collective on servers of $first and $second: no schedule" 1
done <<-END
	Multi(K(4),2) 6 dgx-a100-nvlink dgx-a100-nvlink allreduce
	Multi(Ring(4),2) 4 Cap(Star(4),300) Cap(Star(4),300) allreduce
	Ring(4) 2 Cap(Star(4),300) dgx-a100 allgather
END

if mine; then
	weft topology build 'Mesh(2,4)' -o mesh.json >/dev/null
	jq '.limits = [{"cap": 1, "arcs": [0, 1, 2, 3]}, {"cap": 2, "arcs": [3, 7, 11, 12]}]' \
		mesh.json >topology.json
	python3 "$flows" double topology.json >doubling.json
	jq 'del(.limits, .limits_columns, .limit_arcs, .limit_arcs_columns)' doubling.json >free.json
	agree "recursive doubling on a mesh with shared limits" doubling.json doubling.json
	(($(simulated doubling.json lockstep) > $(simulated free.json lockstep)))
	tap "which take their time"
fi

if mine; then
	weft topology build 'DgxA100(2,all)' -o topology.json >/dev/null
	python3 "$flows" double topology.json >doubling.json
	flows_of doubling.json links
	! near "$(simulated doubling.json lockstep)" "$(simgrid lockstep)"
	tap "with latencies of its own, SimGrid gives short routes more"
fi
finish
