#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Where circuits are seen: the commands of a plan that is not carried out, the page, pictures,
# metrics, history, and what a shell completes.
source "$(dirname "$0")/../lib.sh"
emulator ocs0 polatis-scpi 16x16 || exit 1
bed "$T/fabric.yaml" circuits: '  - { group: bed-1, from: "dut.p[6-7]", to: "tg1.p[6-7]" }'
DAEMON_OPTIONS=(--page 127.0.0.1:0 --metrics 127.0.0.1:0)
daemon || exit 1
METRICS=127.0.0.1:$(sed -nE 's/.*metrics on 127.0.0.1 port ([0-9]+)$/\1/p' "$T/weftd.log")
PAGE=$(sed -n 's/.*page on \(http.*\)$/\1/p' "$T/weftd.log")

expect 2 "what would be sent" weft plan -f "$T/fabric.yaml" --commands
has out "  has each circuit by its ports" '^\+ ocs0 +in 7 -> out 15 +dut.p6 -> tg1.p6$'
has out "  the group" '^ +bed-1 +4 +2 +ocs0$'
has out "  and the device's words" ':oxc:swit:conn:add \(@7,8,15,16\),\(@31,32,23,24\)'
[[ -z $(map ocs0) ]]
tap "  and nothing was sent"
expect 0 "applied" weft apply -f "$T/fabric.yaml"
expect 0 "a group on request" weft circuit add dut.p0 tg1.p0 --name bed --lease 2h

fetch() { curl -s -m 10 "${PAGE}state.json" >"$T/page"; }
drawn() { fetch && [[ $(jq '.picture.circuits | length' "$T/page") == 6 ]]; }
wait_for 10 drawn
tap "the page draws all of them"
[[ $(jq -c '[.status.jobs[] | [.name, .collective, .circuits, .health]]' "$T/page") == \
	'[["bed-1","circuits",4,"up"],["bed","circuits",2,"up"]]' ]]
tap "  and has a row for each group"
[[ $(jq -c '[.picture.circuits[] | select(.[5] == 1) | .[1:3]] | sort' "$T/page") == '[[1,9],[9,1]]' ]]
tap "  the picture says whose they are"
expect 0 "a picture" weft status --svg "$T/status.svg"
grep -q '>bed-1<' "$T/status.svg" && grep -q '>bed<' "$T/status.svg"
tap "  names both groups"

curl -s -m 10 "http://$METRICS/metrics" >"$T/metrics"
grep -qxF 'weft_job_rate_ratio{job_name="bed"} 1' "$T/metrics" &&
	grep -qxF 'weft_jobs{state="running"} 1' "$T/metrics"
tap "metrics have it"
[[ $(weft history --format json | jq -r '.changes[0].comment') == "job bed starts" ]]
tap "history says what it was"

# Arcs that are given, in the file itself.
sed '/^circuits:/,$d' "$T/fabric.yaml" >"$T/arcs.yaml"
echo 'jobs: [ { name: t, nodes: [dut, tg1], collective: allgather, size: 1MB, topology: "0 1, 1 0, 1 0" } ]' \
	>>"$T/arcs.yaml"
expect 2 "a topology of three arcs" weft plan --offline -f "$T/arcs.yaml" --format json
[[ $(jq '.jobs[0].circuits' "$T/out") == 3 ]]
tap "  is three circuits"

# typed WORD...: what bash offers for the last one.
typed() {
	# shellcheck disable=SC2016
	bash -c 'source "$1"; shift
		COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
		$(complete -p weft | sed "s/.*-F \([^ ]*\).*/\1/")
		printf "%s\n" "${COMPREPLY[@]}"' bash "$TOP/configs/completion/weft.bash" "$@" |
		sed 's/ *$//' | paste -sd ' '
}
[[ $(typed weft circuit re) == "remove renew" ]]
tap "bash completes the verbs"
[[ $(typed weft circuit renew "") == bed && $(typed weft circuit set b) == bed ]]
tap "  groups on request"
[[ $(typed weft circuit add dut.p0 tg1.p) == "$(printf 'tg1.p%d ' {0..7} | sed 's/ $//')" ]]
tap "  ports"
[[ $(typed weft circuit remove dut.p7) == dut.p7 && $(typed weft circuit add --pa) == --partial ]]
tap "  and options"
# How circuits are, and since when, outlives weftd: also before the first reading.
control ocs0 "fault port-failed=i6" >"$T/ctl"
expect 2 "a port of one fails" weft verify
ages() { weft device show ocs0 --format json | jq -c '[.read[] | [.in, .out, .signal.health, .since_at]]'; }
ages >"$T/before"
[[ $(jq -c '[.[] | .[2]] | [length, (map(select(. == "dark")) | length)]' "$T/before") == '[6,1]' ]]
tap "  it is dark, of six"
stop weftd
stop ocs0
daemon
ages | cmp - "$T/before"
tap "  which weftd knows after a restart, without an answer of the switch"
weft status --format json | jq -e '[.devices[0].dark[].in] == [7]' >"$T/out"
tap "  and lists"
stop weftd
emulator ocs0 polatis-scpi 16x16
while IFS=, read -r in out; do
	control ocs0 "set $in,$out" >"$T/ctl"
done < <(jq -r '.[] | "\(.[0] - 1),\(.[1] - 1)"' "$T/before")
control ocs0 "fault port-failed=i6" >"$T/ctl"
daemon
wait_for 20 weft wait --for ready --timeout 20s
expect 2 "and with it" weft verify
ages | cmp - "$T/before"
tap "  since the same times"
finish
