#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Circuits on request: the commands of docs/circuits.md, and what is refused.
source "$(dirname "$0")/../lib.sh"
emulator ocs0 polatis-scpi 16x16 || exit 1
bed "$T/fabric.yaml"
holds() { # IN,OUT...: just these, counted from 0
	[[ $(map ocs0) == "$(printf '%s\n' "$@" | sort)" ]]
}
daemon || exit 1
expect 0 "the fabric" weft apply -f "$T/fabric.yaml"
mapfile -t printed < <(sed -n 's/^    \(weft [^#]*[^ #]\) *\(#.*\)\?$/\1/p' "$TOP/docs/circuits.md")
[[ ${#printed[@]} == 7 ]]
tap "the page has seven commands, four of them for a bed"
# shellcheck disable=SC2086
expect 0 "${printed[0]}" ${printed[0]}
holds 0,8 8,0 1,9 9,1
tap "  are made"
# shellcheck disable=SC2086
expect 2 "${printed[1]}" ${printed[1]}
has out "  says which group" 'bed'
# shellcheck disable=SC2086
expect 0 "${printed[2]}" ${printed[2]}

expect 0 "the same again" weft circuit add dut.p0 tg1.p0 dut.p1 tg1.p1 --name bed --lease 2h
holds 0,8 8,0 1,9 9,1
tap "  changes nothing"
expect 75 "a port that is held" weft circuit add dut.p0 tg1.p5 --name other --format json
has out "  with the reason" '"reason": "held"'
cat "$T/err" >>"$T/out"
has out "  and the group" 'bed'
expect 65 "a port that is not there" weft circuit add dut.p0 tg1.p9 --name x
has err "  by its name" "tg1 has no port 'p9'"
expect 65 "a lease of zero" weft circuit add dut.p4 tg1.p4 --name x --lease 0s
expect 0 "one way" weft circuit add dut.p2 tg1.p3 --name tap --one-way
holds 0,8 8,0 1,9 9,1 2,11
tap "  is one cross-connect"
echo 'dut.p0 tg1.p0
dut.p4 tg1.p4' >"$T/bed"
expect 0 "a group becomes what a file says" weft circuit set bed "$T/bed"
holds 0,8 8,0 4,12 12,4 2,11
tap "  and no other is moved"
expect 0 "twice is once" weft circuit set bed "$T/bed"
expect 65 "there is no schedule" weft schedule export --job bed --to json -o "$T/s"
has err "  and why" 'circuits and no collective'
expect 75 "a group is made whole or not at all" weft circuit add dut.p5 tg1.p5 dut.p6 tg1.p4 --name late
holds 0,8 8,0 4,12 12,4 2,11
tap "  nothing of it is there"
expect 0 "hosts by ports" weft job request pair --nodes dut,tg1 --ports "p[6-7]" -c allreduce \
	--size 1MB -t "Multi(K(2),2)"
holds 0,8 8,0 4,12 12,4 2,11 6,14 14,6 7,15 15,7
tap "  beside circuits of the same hosts"
expect 75 "a port of that job" weft circuit add dut.p6 tg1.p5 --name late
has err "  which says so" 'pair'
expect 2 "which is not free" weft circuit find dut.p6
has out "  says who has it" 'held .*dut.p6 is held by .*job pair'
expect 0 "one that is" weft circuit find tg1.p5
expect 65 "one that is not there" weft circuit find tg1.p9
expect 0 "ends" weft job release pair
control ocs0 "fault ignore-port=o13" >"$T/out"
expect 2 "in part" weft circuit add dut.p5 tg1.p5 dut.p7 tg1.p7 --name part --partial
control ocs0 clear >"$T/out"
expect 0 "ends" weft circuit remove part
kill -9 "${PID[weftd]}"
wait "${PID[weftd]}" 2>"$T/killed"
unset "PID[weftd]"
daemon || exit 1
known() { weft circuit list --format json | grep -q tap; }
wait_for 20 known
tap "groups outlive weftd"
holds 0,8 8,0 4,12 12,4 2,11
tap "  as they were"
expect 0 "by a port of it" weft circuit remove dut.p2
# shellcheck disable=SC2086
expect 0 "${printed[3]}" ${printed[3]}
holds ""
tap "  are gone"

# A job of a number of ports keeps those that it has.
expect 0 "a group on the lowest ports" weft circuit add dut.p0 tg1.p0 --name low
expect 0 "a job of two ports" weft job request two --nodes dut,tg1 --ports 2 -c allreduce \
	--size 1MB -t "Multi(K(2),2)"
holds 0,8 8,0 1,9 9,1 2,10 10,2
tap "  has the next"
weft job list --format json >"$T/out"
[[ $(jq -c '[.jobs[] | select(.name == "two") | .ports][0]' "$T/out") == '["2"]' ]]
tap "  and is listed as it was asked for"
expect 0 "the group ends" weft circuit remove low
expect 0 "one of its ports is drained" weft drain dut.p1
expect 0 "another begins" weft circuit add dut.p5 tg1.p5 --name high
holds 1,9 9,1 2,10 10,2 5,13 13,5
tap "  and the job has the ports that it had"
weft undrain dut.p1 >"$T/out"
expect 0 "nothing is to be done" weft plan -f "$T/fabric.yaml"
kill -9 "${PID[weftd]}"
wait "${PID[weftd]}" 2>"$T/killed"
unset "PID[weftd]"
daemon || exit 1
wait_for 20 weft plan -f "$T/fabric.yaml"
expect 0 "nor after a restart" weft apply -f "$T/fabric.yaml"
expect 0 "the other ends" weft circuit remove high
expect 0 "a second job of two ports" weft job request more --nodes dut,tg1 --ports 2 -c allreduce \
	--size 1MB -t "Multi(K(2),2)"
holds 0,8 8,0 1,9 9,1 2,10 10,2 3,11 11,3
tap "  has the lowest of the others"
expect 0 "the first ends" weft job release two
expect 0 "a third" weft job request later --nodes dut,tg1 --ports 1 -c allreduce --size 1MB
holds 0,8 8,0 1,9 9,1 3,11 11,3
tap "  moves none of them"
finish
