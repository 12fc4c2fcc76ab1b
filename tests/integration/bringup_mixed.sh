#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Light over devices of five makers: lasers end at a SONiC switch, which measures
# nothing and is quick; from there a Glimmerglass switch, a robotic panel of
# Telescent, and a CALIENT switch, each behind the one before.
source "$(dirname "$0")/../lib.sh"

mkdir "$T/light"
for i in 1 2 3; do
	echo "laser sonic0.in$i -3.0"
	echo "fibre sonic0.out$i gg0.in$i 0.5"
	echo "fibre gg0.out$i ntm0.in$i 0.5"
	echo "fibre ntm0.out$i cal0.in$i 0.5"
done >"$T/good"
cp "$T/good" "$T/light/wiring"
emulator sonic0 sonic-ocs 4x4 --plant "$T/light" || exit 1
emulator gg0 glimmerglass-tl1 4x4 --plant "$T/light" || exit 1
emulator ntm0 telescent-cli 12x12 --plant "$T/light" --fault move=20 || exit 1
emulator cal0 calient-tl1 4x4 --plant "$T/light" || exit 1
cat >"$T/lab.yaml" <<END
weft: 1
fabric: mixed
hosts:
  - { name: "h[0-2]", ports: "p0", rate: 100Gbps, launch: -3dBm }
switches:
  - { name: sonic0, size: 4x4, driver: sonic-ocs, address: "${ADDR[sonic0]}" }
  - { name: gg0, size: 4x4, driver: glimmerglass-tl1, address: "${ADDR[gg0]}", options: { power: yes, gap_ms: 0, settle_ms: 0 } }
  - { name: cal0, size: 4x4, driver: calient-tl1, address: "${ADDR[cal0]}", options: { gap_ms: 0, settle_ms: 0 } }
panels:
  - { name: ntm0, size: 12x12, driver: telescent-cli, address: "${ADDR[ntm0]}", options: { poll_ms: 20, gap_ms: 0 } }
fibres:
  - { from: "h[0-2].p0.tx", to: "sonic0.in[1-3]" }
  - { from: "sonic0.out[1-3]", to: "gg0.in[1-3]", loss: 0.5dB }
  - { from: "gg0.out[1-3]", to: "ntm0.in[1-3]", loss: 0.5dB }
  - { from: "ntm0.out[1-3]", to: "cal0.in[1-3]", loss: 0.5dB }
jobs: []
END
B=(weft bringup "$T/lab.yaml" --format json --moves 20)
dark() {
	local s
	for s in sonic0 gg0 ntm0 cal0; do
		[[ $(control $s map) == ok ]] || return 1
	done
}
expect 0 "wired as written" "${B[@]}"
[[ $(jq -c '[.differences, .moves, .unseen]' "$T/out") == '[0,6,null]' ]]
tap "all is seen, and only the panel's moves are of a robot"
dark
tap "no circuit is left"
sed -e 's/gg0.out2 ntm0.in2/gg0.out2 ntm0.in3/;t' -e 's/gg0.out3 ntm0.in3/gg0.out3 ntm0.in2/' \
	-e '/sonic0.out1 /d' "$T/good" >"$T/light/wiring"
expect 2 "wired otherwise" "${B[@]}" --restart
[[ $(jq -c '[.findings[] | [.kind, .fibre, .found]] | sort' "$T/out") == \
	'[["missing","sonic0.out1",null],["swapped","gg0.out2","ntm0.in3"]]' ]]
tap "a broken fibre, and two that are exchanged, are named"
dark
tap "no circuit is left"

# What a circuit lets through is misrouted: the light is seen where it is.
cp "$T/good" "$T/light/wiring"
control ntm0 "fault misrouted=i0:o1" >/dev/null
expect 2 "misrouted light" "${B[@]}" --restart
jq -e '[.findings[] | select(.fibre == "ntm0.out1" and .found == "cal0.in2")] | length == 1' "$T/out" >/dev/null
tap "is named where it arrives"
finish
