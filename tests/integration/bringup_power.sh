#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Three switches that measure power, with wiring that is not as written: two
# fibres between switches exchanged, one broken, a pair reversed, one that
# loses too much, and a host that is dark. The third switch has no laser.
source "$(dirname "$0")/../lib.sh"

mkdir "$T/light"
# Hosts h0..h3 are on ocs0, h4..h7 on ocs1, in their ports 1 to 4. Trunks
# between ocs0 and ocs1 are in ports 5 to 8, to ocs2 in port 9 and 10.
good() {
	local i
	for i in 1 2 3 4; do
		echo "laser ocs0.in$i -3.$i"
		echo "laser ocs1.in$i -4.0"
	done
	for i in 5 6 7 8; do
		echo "fibre ocs0.out$i ocs1.in$i 0.5"
		echo "fibre ocs1.out$i ocs0.in$i 0.5"
	done
	echo "fibre ocs0.out9 ocs2.in1 0.5"
	echo "fibre ocs2.out1 ocs0.in9 0.5"
	echo "fibre ocs2.out2 ocs1.in9 0.5"
	echo "fibre ocs1.out9 ocs2.in2 0.5"
}
good >"$T/good"
cp "$T/good" "$T/light/wiring"
for s in ocs0 ocs1 ocs2; do
	emulator $s polatis-scpi 10x10 --plant "$T/light" || exit 1
done

write_fabric() {
	cat <<-END
	weft: 1
	fabric: power
	hosts:
	  - { name: "h[0-7]", ports: "p0", rate: 100Gbps }
	switches:
	  - { name: ocs0, size: 10x10, driver: polatis-scpi, address: "${ADDR[ocs0]}", loss: 1.5dB, options: { power: both, gap_ms: 0 } }
	  - { name: ocs1, size: 10x10, driver: polatis-scpi, address: "${ADDR[ocs1]}", loss: 1.5dB, options: { power: both, gap_ms: 0 } }
	  - { name: ocs2, size: 10x10, driver: polatis-scpi, address: "${ADDR[ocs2]}", loss: 1.5dB, options: { power: both, gap_ms: 0 } }
	fibres:        # as ordered
	  - { from: "h[0-3].p0", to: "ocs0.[1-4]" }
	  - { from: "h[4-7].p0", to: "ocs1.[1-4]" }
	  - { from: "ocs0.out[5-8]", to: "ocs1.in[5-8]", loss: 0.5dB }
	  - { from: "ocs1.out[5-8]", to: "ocs0.in[5-8]", loss: 0.5dB }
	  - { from: "ocs0.out9", to: "ocs2.in1", loss: 0.5dB }
	  - { from: "ocs2.out1", to: "ocs0.in9", loss: 0.5dB }
	  - { from: "ocs2.out2", to: "ocs1.in9", loss: 0.5dB }
	  - { from: "ocs1.out9", to: "ocs2.in2", loss: 0.5dB }
	# not of the fibres
	jobs: []
	END
}
write_fabric >"$T/lab.yaml"
dark() {
	local s
	for s in ocs0 ocs1 ocs2; do
		[[ $(control $s map) == ok ]] || return 1
	done
}
find_one() { # WHAT FILTER
	[[ $(jq "[.findings[] | select($2)] | length" "$T/out") == 1 ]]
	tap "$1"
}

expect 0 "wired as written" weft bringup "$T/lab.yaml" --format json
[[ $(jq .differences "$T/out") == 0 && ! -e $T/lab.found.yaml ]]
tap "nothing differs"
dark
tap "no circuit is left"

# Out 5 and 6 of ocs0 exchanged, out 7 broken, the pair in port 8 reversed, ocs2
# to ocs0 dirty, h2 off, the fibres of h5 exchanged.
sed -e 's/ocs0.out5 ocs1.in5/ocs0.out5 ocs1.in6/;t' \
	-e 's/ocs0.out6 ocs1.in6/ocs0.out6 ocs1.in5/' \
	-e '/ocs0.out7/d' \
	-e 's/ocs0.out8 ocs1.in8/ocs0.out8 ocs1.out8/' \
	-e 's/ocs1.out8 ocs0.in8/ocs1.out8 ocs0.out8/' \
	-e 's/ocs2.out1 ocs0.in9 0.5/ocs2.out1 ocs0.in9 4.5/' \
	-e '/laser ocs0.in3/d' \
	-e 's/laser ocs1.in2/laser ocs1.out2/' "$T/good" >"$T/light/wiring"

# Answers take 20 ms each, so that there is time to kill it.
for s in ocs0 ocs1 ocs2; do
	control $s "fault slow=20" >/dev/null
done
weft -v bringup --restart "$T/lab.yaml" >"$T/out" 2>"$T/first" &
PID[bringup]=$!
wait_for 60 grep -q 'ocs0.in1 -> out6' "$T/first"
wait_for 10 bash -c "echo map | nc -NU -w 5 ${CTL[ocs0]} | grep -q ,"
stop bringup KILL
for s in ocs0 ocs1 ocs2; do
	control $s clear >/dev/null
done
expect 2 "killed, it goes on and finds differences" weft -v bringup "$T/lab.yaml" --format json
! grep -q 'ocs0.in1 -> out1$' "$T/err"
tap "what was known is not lit again"
dark
tap "no circuit is left, of the killed one either"
find_one "the exchanged fibres are named" \
	'.kind == "swapped" and .fibre == "ocs0.out5" and .with == "ocs0.out6" and .written == "ocs1.in5" and .found == "ocs1.in6"'
find_one "the broken fibre is named" \
	'.kind == "missing" and .fibre == "ocs0.out7" and .written == "ocs1.in7"'
find_one "the reversed pair is named, from one end" \
	'.kind == "reversed" and .fibre == "ocs0.out8" and .found == "ocs1.out8"'
find_one "and from the other" \
	'.kind == "reversed" and .fibre == "ocs1.out8" and .found == "ocs0.out8"'
find_one "the lossy fibre is named, with its loss" \
	'.kind == "lossy" and .fibre == "ocs2.out1" and .loss_db > 4.47 and .loss_db < 4.53 and .limit_db == 1.5'
find_one "the dark host is named" \
	'.kind == "missing" and .fibre == "h2.p0.tx" and .written == "ocs0.in3"'
find_one "the host with its fibres exchanged is named" \
	'.kind == "reversed" and .fibre == "h5.p0" and .found == "ocs1.out2"'
[[ $(jq .differences "$T/out") == 7 ]]
tap "and nothing else is"

F=$T/lab.found.yaml
expect 0 "the corrected file is a fabric" weft check "$F"
fibres_of "$F" >"$T/fibres"
grep -q 'ocs0.out5".*ocs1.in6".*0.500dB' "$T/fibres" && grep -q 'ocs0.out6".*ocs1.in5"' "$T/fibres"
tap "with the exchanged fibres where they are"
! grep -qE 'ocs0.out[78]|ocs1.out8|h5.p0|h2.p0.tx' "$T/fibres"
tap "without those that do not work"
grep -qE 'ocs2.out1".*loss: 4.(4[7-9]|5[0-3])' "$T/fibres" && grep -q 'ocs2.out2".*loss: 0.500dB' "$T/fibres" &&
	grep -q '^# not of the fibres' "$F"
tap "with the loss that was measured, and the rest as it was"

# Three permuted, a loop to a port that another fibre has, and a splitter.
sed -e 's/ocs0.out5 ocs1.in5/ocs0.out5 ocs1.in6/;t' \
	-e 's/ocs0.out6 ocs1.in6/ocs0.out6 ocs1.in7/;t' \
	-e 's/ocs0.out7 ocs1.in7/ocs0.out7 ocs1.in5/' \
	-e '/ocs1.out5 ocs0.in5/d' -e 's/ocs0.out8 ocs1.in8/ocs0.out8 ocs0.in5/' "$T/good" >"$T/light/wiring"
echo "fibre ocs1.out6 ocs0.in10 3.5" >>"$T/light/wiring"
expect 2 "a loop, a splitter and three that are permuted" weft bringup --restart "$T/lab.yaml" --format json
find_one "the loop is named" \
	'.kind == "looped" and .fibre == "ocs0.out8" and .written == "ocs1.in8" and .found == "ocs0.in5"'
find_one "and the fibre that is not there for it" '.kind == "missing" and .fibre == "ocs1.out5"'
find_one "the splitter is named" \
	'.kind == "split" and .fibre == "ocs1.out6" and .with == "ocs0.in6" and .found == "ocs0.in10"'
for k in 5:6:6 6:7:7 7:5:5; do
	IFS=: read -r out in other <<<"$k"
	find_one "the fibre of out $out" \
		".kind == \"moved\" and .fibre == \"ocs0.out$out\" and .found == \"ocs1.in$in\" and .with == \"ocs0.out$other\""
done
[[ $(jq .differences "$T/out") == 6 ]]
tap "and nothing else is"
expect 0 "the found file is a fabric" weft check "$F"
fibres_of "$F" >"$T/fibres"
grep -q 'ocs0.out7".*ocs1.in5"' "$T/fibres" && ! grep -q 'ocs0.out8' "$T/fibres"
tap "without the loop"
dark
tap "no circuit is left"

control ocs1 "set 6,6" >/dev/null
expect 75 "a circuit of another user is not touched" weft bringup --restart "$T/lab.yaml"
has err "and named" 'ocs1 holds in7 -> out7'
[[ $(control ocs1 map) == "6,6"* && $(control ocs0 map) == ok ]]
tap "it is still there, and alone"

# Around it and one of a host and a fibre between switches, which lights ocs1.in5.
control ocs0 "set 0,4" >/dev/null
sed '/ocs1.out8/d' "$T/good" >"$T/light/wiring"
expect 2 "around circuits of others" weft -v bringup --restart --around "$T/lab.yaml" --format json
[[ $(control ocs1 map) == "6,6"* && $(control ocs0 map) == "0,4"* ]]
tap "which stay, alone"
! grep -qE 'ocs0.in1 |ocs0.*-> out[57]$|ocs1.in5 |ocs1.*-> out7$' "$T/err"
tap "nothing is sent into their ports"
find_one "what is wrong elsewhere is found" '.kind == "missing" and .fibre == "ocs1.out8"'
[[ $(jq .differences "$T/out") == 1 ]]
tap "and nothing else"
control ocs0 unset >/dev/null
control ocs1 unset >/dev/null
cp "$T/good" "$T/light/wiring"
expect 0 "when they are gone, the same command tries the rest" weft -v bringup --restart "$T/lab.yaml"

# A switch that nothing lights, and a path that is dim.
{ grep -v 'ocs2.in' "$T/good"; } >"$T/light/wiring"
[[ $(control ocs0 "fault dim=o2") == ok ]]
tap "a port is dim"
expect 2 "fibres from a switch without light" weft bringup --restart "$T/lab.yaml" --format json
find_one "are reported as untested" '.kind == "untested" and .fibre == "ocs2.out1"'
find_one "a path that loses too much is named" \
	'.kind == "lossy" and .fibre == "ocs0.in1 -> out3" and .loss_db > 3.4 and .limit_db == 2.5'
dark
tap "no circuit is left"

sed 's/, options: { power: both, gap_ms: 0 }//' "$T/lab.yaml" >"$T/none.yaml"
expect 65 "switches without power monitors are not supported" weft bringup "$T/none.yaml"
echo '{' >"$T/lab.bringup.json"
expect 65 "a damaged state is refused" weft bringup "$T/lab.yaml"
finish
