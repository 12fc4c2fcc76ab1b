#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A testbed of twelve hosts whose wiring is not as written: two fibres
# exchanged, one broken, one pair reversed, and between its switches two
# exchanged and one broken. Bring-up finds and names them, goes on after it was
# killed, and writes the file as it should read.
source "$(dirname "$0")/../lib.sh"
F=bu$$
testbed_of "$T/lab.yaml"

cat >"$T/lab.yaml" <<END
weft: 1
fabric: $F
hosts:
  - { name: "h[00-11]", ports: "p[0-3]", rate: 10Gbps }
switches:
  - name: ocs[0-1]
    size: 26x26
    driver: linux-tc
    options: { fabric: $F }
fibres:        # two ports of each host to each switch
  - { from: "h[00-11].p[0-1]", to: "ocs0.[1-24]", loss: 0.2dB }
  - { from: "h[00-11].p[2-3]", to: "ocs1.[1-24]" }
  - { from: "ocs0.out[25-26]", to: "ocs1.in[25-26]" }
  - { from: "ocs1.out25", to: "ocs0.in25" }
# not of the fibres
jobs:
  - { name: j, nodes: "h[00-11]", collective: allreduce, size: 1MiB, topology: "C(12,{1})", alpha: 10us }
END
FAULTS=(--swap h01.p0.tx,h05.p1.tx --dead h07.p2.rx --reverse h09.p3)

sed -e 's/ocs1.in\[25-26\]/ocs1.in[26,25]/' -e '/ocs1.out25/d' "$T/lab.yaml" >"$T/wrong.yaml"
weft testbed up "$T/wrong.yaml" "${FAULTS[@]}" >"$T/out" 2>"$T/err"
status=$?
if [[ $status == 77 ]] || grep -q 'network namespace: ' "$T/err"; then
	echo "ok 1 - bringup # SKIP $(head -n 1 "$T/err")"
	echo "1..1"
	exit 0
elif [[ $status != 0 ]]; then
	cat "$T/err"
	tap "testbed up" 1
	finish
fi

weft -v bringup "$T/lab.yaml" >"$T/out" 2>"$T/first" &
PID[bringup]=$!
wait_for 30 grep -q 'ocs0.in8 ' "$T/first"
stop bringup KILL
grep -q 'ocs1' "$T/first"
tap "killed before the second switch" $((! $?))

expect 2 "it goes on and finds differences" weft -v bringup "$T/lab.yaml" --format json
! grep -q 'ocs0.in1 -> out1$' "$T/err"
tap "what was known is not lit again"
find_one() { # WHAT FILTER
	[[ $(jq "[.findings[] | select($2)] | length" "$T/out") == 1 ]]
	tap "$1"
}
find_one "the exchanged fibres are named" \
	'.kind == "swapped" and .fibre == "h01.p0.tx" and .with == "h05.p1.tx" and .written == "ocs0.in3" and .found == "ocs0.in12"'
find_one "the broken fibre is named" \
	'.kind == "missing" and .fibre == "h07.p2.rx" and .written == "ocs1.out15"'
find_one "the reversed pair is named" '.kind == "reversed" and .fibre == "h09.p3"'
find_one "so are exchanged fibres between switches" \
	'.kind == "swapped" and .fibre == "ocs0.out25" and .with == "ocs0.out26" and .written == "ocs1.in25" and .found == "ocs1.in26"'
find_one "and a broken one" \
	'.kind == "missing" and .fibre == "ocs1.out25" and .written == "ocs0.in25"'
[[ $(jq .differences "$T/out") == 5 ]]
tap "and nothing else is"
expect 0 "no circuit is left" weft testbed probe "$T/lab.yaml"
cp "$T/lab.found.yaml" "$T/found.yaml"
expect 0 "the corrected file is a fabric" weft check "$T/found.yaml"
fibres_of "$T/found.yaml" >"$T/fibres"
[[ $(grep -c 'h01.p0.tx.*ocs0.in12.*0.200dB' "$T/fibres") == 1 &&
	$(grep -c 'h05.p1.tx.*ocs0.in3".*0.200dB' "$T/fibres") == 1 ]]
tap "with the exchanged fibres where they are"
! grep -qE 'h07.p2.rx|h09.p3' "$T/fibres" && [[ $(wc -l <"$T/fibres") == 95 ]]
tap "without those that do not work"
grep -q 'ocs0.out25.*ocs1.in26' "$T/fibres" &&
	! grep -q 'ocs1.out25' "$T/fibres" && grep -q '^# not of the fibres' "$T/found.yaml"
tap "and the rest as it was"
(($(grep -c 'from:' "$T/found.yaml") < 20)) && grep -q '"h\[02-04\].p\[0-1\].tx", to: "ocs0.in\[5-10\]"' "$T/found.yaml"
tap "in ranges"
daemon || exit 1
expect 0 "it applies" weft apply -f "$T/found.yaml"
expect 0 "its light arrives where it says" weft testbed probe "$T/found.yaml" --format json
[[ $(jq '[.heard[] | select(.at == "rx")] | length' "$T/out") -ge 24 ]]
tap "on every arc of its job"
expect 75 "a fabric with light is not brought up" weft bringup --restart "$T/found.yaml"
expect 2 "but around it" weft bringup --restart --around "$T/found.yaml" --format json
[[ $(jq '.differences' "$T/out") == 1 ]]
tap "the reversed pair is told"
expect 0 "all circuits are there" weft verify
sed '/^jobs:/,$d' "$T/found.yaml" >"$T/dark.yaml"
echo 'jobs: []' >>"$T/dark.yaml"
expect 0 "dark again" weft apply -f "$T/dark.yaml"
stop weftd
rm "$T"/*.bringup.json
expect 2 "the corrected file: what is not in it is dark" \
	weft bringup "$T/found.yaml" --format json
[[ $(jq '.differences' "$T/out") == 1 ]]
tap "only the reversed pair is told again"

expect 0 "wired as written" weft testbed down "$T/lab.yaml"
weft testbed up "$T/lab.yaml" >/dev/null
expect 0 "nothing differs" weft bringup "$T/lab.yaml" --format json
sed 's/driver: linux-tc/driver: sim/; /options:/d' "$T/lab.yaml" >"$T/sim.yaml"
expect 65 "switches without netdevs are not supported" weft bringup "$T/sim.yaml"
has err "in one sentence" "ocs0 does not measure power at both sides"
echo '{' >"$T/lab.bringup.json"
expect 65 "a damaged state is refused" weft bringup "$T/lab.yaml"
finish
