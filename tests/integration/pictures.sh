#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Every kind of picture at 16, 128 and 1024 nodes: well-formed, the same each time, everything in
# its box, no text on text; by the boxes that Chromium measures too, light and dark, which is
# skipped where it cannot be started. Then the pictures of a fabric that differs.
cd "$(dirname "$0")" || exit 1
. ../lib.sh
mkdir "$T/svg" "$T/browser"

# draw NAME COMMAND...: to $T/svg/NAME.svg, twice.
draw() {
	local name=$1
	shift
	expect 0 "$name" "$@" "$T/svg/$name.svg"
	"$@" "$T/again.svg" >"$T/out" 2>&1
	cmp -s "$T/svg/$name.svg" "$T/again.svg"
	tap "$name is the same each time"
}
plan() { weft plan --offline -f "$1" --svg "$2" || [[ $? == 2 ]]; }

# A ring of links with a chord at each tenth node, and a demand from each to the tenth after it.
network() { # NODES
	printf 'nodes: %s\nlinks:\n' "$1"
	for ((v = 0; v < $1; v++)); do
		echo "- {from: $v, to: $(((v + 1) % $1))}"
		((v % 10)) || echo "- {from: $v, to: $(((v + $1 / 2) % $1))}"
	done
	echo 'demands:'
	for ((v = 0; v < $1; v++)); do
		echo "- {from: $v, to: $(((v + 10) % $1))}"
	done
}
fabric_of() { # HOSTS
	cat <<-END
		weft: 1
		fabric: hosts-of-$1
		hosts:
		  - { name: "a-host-with-a-name-[0000-$(printf %04d $(($1 - 1)))]", ports: "p[0-1]", rate: 100Gbps }
		switches:
		  - { name: "ocs[0-1]", size: $1x$1, driver: sim }
		fibres:
		  - { from: "a-host-with-a-name-[0000-$(printf %04d $(($1 - 1)))].p0", to: "ocs0.[1-$1]" }
		  - { from: "a-host-with-a-name-[0000-$(printf %04d $(($1 - 1)))].p1", to: "ocs1.[1-$1]" }
		jobs:
		  - { name: a-job, nodes: all, collective: allgather, size: 1MiB, topology: "UniRing(2,$1)" }
	END
}
for n in 16 128 1024; do
	draw "topology-$n" weft topology draw "C($n,{1,5})" -o
	weft schedule make -t "C($n,{1,5})" -c allgather -o "$T/$n.pb" >"$T/out"
	draw "schedule-$n" weft schedule draw "$T/$n.pb" -o
	draw "schedule-time-$n" weft schedule simulate "$T/$n.pb" --alpha 1us --size 1MB \
		--bandwidth 100Gbps --svg
	draw "ring-$n" weft ring plan -n "$n" -w 16 --size 1MB --svg
	network "$n" >"$T/net$n.yaml"
	draw "rwa-$n" weft rwa solve "$T/net$n.yaml" --work 2000 --svg
	fabric_of "$n" >"$T/fabric$n.yaml"
	draw "plan-$n" plan "$T/fabric$n.yaml"
done
draw ring-allreduce weft ring plan -n 16 -w 8 --size 1MB --collective allreduce --svg
draw rwa-ring weft rwa solve --ring 16 --channels 8 --svg
draw topology-layers weft topology draw "FatTree(4)" -o
draw topology-irregular weft topology draw "$TOP/tests/data/irregular.txt" -o
draw topology-lattice weft topology draw "Torus(4,4,4)" -o
sed -n '/<g class="halo">/,/<\/g>/p' "$T/svg/topology-lattice.svg" | grep -c '<text' | grep -qx 64
tap "whose numbers stand out from the arcs below"

# A fabric one of whose circuits is gone, another one there.
emulators && fabric "$T/fabric.yaml" 'UniRing(2,4)'
tap "a fabric of emulators"
expect 69 "no picture without weftd" weft status --svg "$T/svg/none.svg"
daemon
expect 69 "nor before anything was applied" weft diff --svg "$T/svg/none.svg"
has err "which is said" 'no picture yet: nothing was applied'
expect 0 "an apply" weft apply -f "$T/fabric.yaml"
draw status weft status --svg
weft device show ocs0 --format json | jq -r '.read[0:2][] | "\(.in) \(.out)"' >"$T/two"
{ read -r in1 out1 && read -r in2 out2; } <"$T/two"
control ocs0 "unset $((in1 - 1)),$((out1 - 1))" >"$T/said"
control ocs0 "unset $((in2 - 1)),$((out2 - 1))" >>"$T/said"
control ocs0 "set $((in1 - 1)),$((out2 - 1))" >>"$T/said"
weft verify >"$T/out" 2>&1
expect 2 "differences" weft diff --svg "$T/svg/diff.svg"
grep -q '2 missing, 1 unexpected' "$T/svg/diff.svg" && grep -q '>!</text>' "$T/svg/diff.svg" &&
	grep -q '>×</text>' "$T/svg/diff.svg"
tap "what is missing and unexpected is marked"
expect 2 "a plan of what comes back" weft plan --svg "$T/svg/plan-online.svg"
grep -q ', 1 new<' "$T/svg/plan-online.svg" && grep -q '>+</text>' "$T/svg/plan-online.svg"
tap "what is new is marked"
stop weftd
mkdir "$T/folder"
for where in "$T/none/a.svg" "$T/folder"; do
	expect 1 "no such place: $where" weft topology draw "K(4)" -o "$where"
done
expect 64 "another format" weft topology draw "K(4)" -o "$T/a.png"
has err "which is said" 'written as SVG, not as png'
expect 65 "no such topology" weft topology draw "Foo(4)" -o "$T/a.svg"
[[ ! -e $T/a.svg ]]
tap "and nothing is written"

# Verdicts of pictures.py as TAP.
verdicts() {
	local line
	while read -r line; do
		case $line in
		"pass "*) tap "$1: ${line#pass }" 0 ;;
		"fail "*) tap "$1: ${line#fail }" 1 ;;
		missing*) echo "ok $((++TAP_N)) - $1 # SKIP ${line#missing }" ;;
		*) echo "$line" ;;
		esac
	done
}
verdicts "as XML" < <(/usr/bin/python3 pictures.py files "$T"/svg/*.svg 2>&1)
verdicts "in a browser" < <(/usr/bin/python3 pictures.py browser "$T/browser" "$T"/svg/*.svg 2>&1)
finish
