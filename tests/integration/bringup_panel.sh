#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A robotic panel between the lasers of hosts and a switch, and between that
# switch and another one: it measures nothing, and its moves take their time.
# Wiring that is not as written: two fibres exchanged, one dead on each side, a
# pair reversed, one that loses too much. Killed in a move, it goes on.
source "$(dirname "$0")/../lib.sh"

mkdir "$T/light"
# Lasers of h0..h7 end at inputs 1 to 8 of the panel, outputs 1 to 8 lead to
# ocs0. ocs0 goes back to the panel's inputs 9 to 12, whose outputs 9 to 12 lead
# to ocs1; outputs 13 to 16 lead to hosts.
good() {
	local i
	for i in 1 2 3 4 5 6 7 8; do
		echo "laser rome0.in$i -3.0"
		echo "fibre rome0.out$i ocs0.in$i 0.5"
	done
	for i in 9 10 11 12; do
		echo "fibre ocs0.out$i rome0.in$i 0.5"
		echo "fibre rome0.out$i ocs1.in$i 0.5"
	done
}
good >"$T/good"
cp "$T/good" "$T/light/wiring"
emulator rome0 rome-cli 16x16 --plant "$T/light" --fault move=40 || exit 1
emulator ocs0 polatis-scpi 12x12 --plant "$T/light" || exit 1
emulator ocs1 polatis-tl1 12x12 --plant "$T/light" || exit 1

cat >"$T/lab.yaml" <<END
weft: 1
fabric: panelled
hosts:
  - { name: "h[0-7]", ports: "p0", rate: 100Gbps, launch: -3dBm }
switches:
  - { name: ocs0, size: 12x12, driver: polatis-scpi, address: "${ADDR[ocs0]}", loss: 1.5dB, options: { power: both, gap_ms: 0 } }
  - { name: ocs1, size: 12x12, driver: polatis-tl1, address: "${ADDR[ocs1]}", loss: 1.5dB, options: { power: yes, gap_ms: 0 } }
panels:
  - { name: rome0, size: 16x16, driver: rome-cli, address: "${ADDR[rome0]}", options: { poll_ms: 20, gap_ms: 0, wear_limit: 100 } }
fibres:
  - { from: "h[0-7].p0.tx", to: "rome0.in[1-8]" }
  - { from: "rome0.out[1-8]", to: "ocs0.in[1-8]", loss: 0.5dB }
  - { from: "ocs0.out[9-12]", to: "rome0.in[9-12]", loss: 0.5dB }
  - { from: "rome0.out[9-12]", to: "ocs1.in[9-12]", loss: 0.5dB }
  - { from: "rome0.out[13-16]", to: "h[0-3].p0.rx" }
jobs: []
END
dark() {
	local s
	for s in rome0 ocs0 ocs1; do
		[[ $(control $s map) == ok ]] || return 1
	done
}
find_one() { # WHAT FILTER
	[[ $(jq "[.findings[] | select($2)] | length" "$T/out") == 1 ]]
	tap "$1"
}
B=(weft bringup "$T/lab.yaml" --format json)

expect 65 "robots move nothing unasked" "${B[@]}"
has err "how many moves, and how long" 'rome0: robots have to make 24 moves, which takes about 48'
has err "and how to let them" '--moves'
[[ $(sets rome0) == 0 ]]
tap "none was made"
expect 65 "less than it takes is not begun" "${B[@]}" --moves 23
[[ $(sets rome0) == 0 ]]
tap "none was made then either"
expect 0 "wired as written" "${B[@]}" --moves 24
[[ $(jq .differences "$T/out") == 0 && $(jq .moves "$T/out") == 24 && $(sets rome0) == 24 ]]
tap "nothing differs, and it took two moves for each pair of fibres"
[[ $(jq -c '[.unseen[]]' "$T/out") == '["h0.p0.rx","h1.p0.rx","h2.p0.rx","h3.p0.rx"]' ]]
tap "what nothing measures is unseen"
has err "the moves are counted, with the time that is left" '2 of 24 moves, .*left: '
dark
tap "no circuit is left"

# Out 5 and 6 of the panel exchanged, h2 dark, out 7 broken, out 8 laid to an
# output of ocs0, out 10 dirty, ocs0's 11 and 12 exchanged at the panel, out 9 split to
# a second input of ocs1, out 12 laid back to ocs0, whose light it is.
sed -e 's/rome0.out5 ocs0.in5/rome0.out5 ocs0.in6/;t' \
	-e 's/rome0.out6 ocs0.in6/rome0.out6 ocs0.in5/' \
	-e '/laser rome0.in3/d' -e '/rome0.out7/d' \
	-e 's/rome0.out8 ocs0.in8/rome0.out8 ocs0.out8/' \
	-e 's/rome0.out10 ocs1.in10 0.5/rome0.out10 ocs1.in10 4.5/' \
	-e 's/ocs0.out11 rome0.in11/ocs0.out11 rome0.in12/;t' \
	-e 's/ocs0.out12 rome0.in12/ocs0.out12 rome0.in11/' \
	-e 's/rome0.out12 ocs1.in12/rome0.out12 ocs0.in11/' \
	"$T/good" >"$T/light/wiring"
echo "fibre rome0.out9 ocs1.in1 3.5" >>"$T/light/wiring"
control rome0 clear >/dev/null
control rome0 "fault move=400" >/dev/null
"${B[@]}" --restart --moves 60 >"$T/out" 2>"$T/first" &
PID[bringup]=$!
wait_for 60 grep -q 'rome0.in4 -> out4' "$T/first"
stop bringup KILL
[[ $(control rome0 map) != *3,3* ]]
tap "killed while the robot moves"
control rome0 clear >/dev/null
control rome0 "fault move=40" >/dev/null
chmod 600 "$T/lab.yaml"
expect 2 "it goes on and finds differences" "${B[@]}" -v --moves 60
[[ $(stat -c %a "$T/lab.found.yaml" "$T/lab.bringup.json" | uniq) == 600 ]]
tap "what it writes is for readers of the fabric alone"
! grep -qE 'rome0.in2 -> out2( |$)' "$T/err"
tap "what was known is not moved again"
dark
tap "no circuit is left"
find_one "the exchanged fibres out of the panel are named" \
	'.kind == "swapped" and .fibre == "rome0.out5" and .with == "rome0.out6" and .found == "ocs0.in6"'
find_one "and those into it" \
	'.kind == "swapped" and .fibre == "ocs0.out11" and .with == "ocs0.out12" and .found == "rome0.in12"'
find_one "the dark host is named" \
	'.kind == "missing" and .fibre == "h2.p0.tx" and .written == "rome0.in3"'
find_one "the broken fibre is named" \
	'.kind == "missing" and .fibre == "rome0.out7" and .written == "ocs0.in7"'
find_one "the reversed one is named" \
	'.kind == "reversed" and .fibre == "rome0.out8" and .found == "ocs0.out8"'
find_one "the lossy one is named, with the loss of the way" \
	'.kind == "lossy" and .fibre == "rome0.out10" and .loss_db > 5 and .limit_db <= 3 and .found == "ocs1.in10"'
find_one "the splitter is named, with both of its ends" \
	'.kind == "split" and .fibre == "rome0.out9" and .with == "ocs1.in9" and .found == "ocs1.in1"'
find_one "and the way back" \
	'.kind == "moved" and .fibre == "rome0.out12" and .written == "ocs1.in12" and .found == "ocs0.in11"'
[[ $(jq .differences "$T/out") == 8 ]]
tap "and nothing else is"
expect 0 "the corrected file is a fabric" weft check "$T/lab.found.yaml"
fibres_of "$T/lab.found.yaml" >"$T/fibres"
grep -q 'rome0.out5".*ocs0.in6"' "$T/fibres" && grep -q 'ocs0.out11".*rome0.in12"' "$T/fibres" &&
	grep -q 'rome0.out13".*h0.p0.rx"' "$T/fibres" && ! grep -qE 'rome0.out[78]"|h2.p0.tx' "$T/fibres"
tap "with what was found, and what is unseen as it was"

# checklist 20, checklist 21: a robot that waits for people, circuits of others,
# and ports that are worn.
cp "$T/good" "$T/light/wiring"
control rome0 "fault homing=3" >/dev/null
sed 's/wear_limit: 100/wear_limit: 100, move_ms: 300/' "$T/lab.yaml" >"$T/slow.yaml"
S=(weft bringup "$T/slow.yaml" --format json --moves 40)
expect 1 "a move that fails ends it" "${S[@]}"
has err "in the robot's words" 'rome0: .*OPERATION FAILED:E2.*disconnect'
expect 124 "a robot that waits for people ends it" "${S[@]}"
has err "with the reason" 'homing run|moves are disabled'
{
	echo 'homing run'
	sleep 0.3
	echo 'connection set command-execution enable'
} | nc -q 1 "${ADDR[rome0]%:*}" "${ADDR[rome0]##*:}" >/dev/null
expect 0 "when they have been, it goes on" "${S[@]}"
dark
tap "no circuit is left"
control rome0 "set 3,3" >/dev/null
expect 75 "a circuit of another user is not touched" "${B[@]}" --restart --moves 40
has err "and named" 'rome0 holds in4 -> out4'
expect 0 "it may stay" "${B[@]}" --restart --moves 40 --around
[[ $(control rome0 map) == "3,3"* && $(jq .moves "$T/out") == 22 ]]
tap "it is still there, and its ports were not used"
[[ $(jq -c '[.unseen[]]' "$T/out") == *'"h3.p0.tx"'*'"rome0.out4"'* ]]
tap "what is joined to them is unseen"
control rome0 unset >/dev/null
sed 's/wear_limit: 100/wear_limit: 1/' "$T/lab.yaml" >"$T/worn.yaml"
moved=$(sets rome0)
expect 0 "worn ports are left alone" weft bringup "$T/worn.yaml" --format json
[[ $(sets rome0) == "$moved" && $(jq '.unseen | length' "$T/out") == 28 ]]
tap "what is joined to them is unseen"
finish
