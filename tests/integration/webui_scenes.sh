#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The page's views as they are stored in tests/golden/page: headings, facts,
# tables, and the number of parts of each drawing, of a small fabric, of one
# with faults and during a change, of 16 and of 60 switches and of a ring of 128 hosts;
# no text over another at 1280 and at 400 pixels. With --update they are stored.
cd "$(dirname "$0")" || exit 1
. ../lib.sh
STORED=$TOP/tests/golden/page
UPDATE=()
[[ ${1:-} == --update ]] && UPDATE=(--update) && mkdir -p "$STORED"
mkdir "$T/browser"
mkfifo "$T/asked" "$T/told"
/usr/bin/python3 webui_scenes.py "$T/browser" "$STORED" "${UPDATE[@]}" <"$T/asked" >"$T/told" 2>&1 &
PID[browser]=$!
exec {ASK}>"$T/asked" {TOLD}<"$T/told"
DAEMON_OPTIONS=(--page 127.0.0.1:0 --poll 0)

# serve FABRIC.yaml: another weftd, with this fabric.
serve() {
	stop weftd
	STATE=$T/state.$((++SERVED))
	daemon
	URL=$(sed -n 's/.*page on \(http.*\)$/\1/p' "$T/weftd.log" | tail -n 1)
	expect 0 "an apply of $(basename "$1")" weft apply -f "$1"
	# A second sample, for the charts.
	expect "${2:-0}" "and a reading" weft verify
}
SERVED=0

# scenes NAME:HASH...: each is as stored.
scenes() {
	local line reached=0
	echo "$URL $*" >&"$ASK"
	while read -r -u "$TOLD" line; do
		case $line in
		"pass "*) tap "the page of ${line#pass }" 0 && reached=$((reached + 1)) ;;
		missing*)
			echo "ok $((++TAP_N)) - in a browser # SKIP ${line#missing }"
			reached=$#
			;;
		done) break ;;
		*) echo "# $line" ;;
		esac
	done
	[[ $reached == $# ]] || tap "all of: $*" 1
}

emulators && fabric "$T/small.yaml" 'UniRing(2,4)'
# The switch measures power, for the charts; a change may wait for long.
sed -i 's/timeout: 500ms/timeout: 60s/; s/settle_ms: 20/settle_ms: 20, power: both/' "$T/small.yaml"
serve "$T/small.yaml"
scenes small: small-switch:device/ocs0 small-ring:device/ring0 small-job:job/reduce \
	small-host:host/h2 small-unknown:device/none

control ocs0 "fault port-failed=o1" >"$T/ctl"
control ring0 "fault cut-cw=2:0" >"$T/ctl"
control ocs0 "fault dim=o4" >"$T/ctl"
expect 0 "the ring is drained" weft drain ring0
weft verify >"$T/out" 2>&1
jobs_know() { weft status --format json | jq -e "[.jobs[].health] == [\"$1\", \"$1\"]"; }
wait_for 20 jobs_know degraded
tap "both jobs are degraded"
scenes faults: faults-switch:device/ocs0 faults-ring:device/ring0 faults-job:job/reduce faults-host:host/h0 faults-ring-job:job/gather
weft undrain ring0 >"$T/out" 2>&1
control ocs0 clear >"$T/ctl"
control ring0 clear >"$T/ctl"
weft verify >"$T/out" 2>&1
wait_for 20 jobs_know up

# A change that waits for an answer of the switch.
sed 's/UniRing(2,4)/UniRing(1,4)/' "$T/small.yaml" >"$T/other.yaml"
control ocs0 "fault silence-set" >"$T/ctl"
weft apply -f "$T/other.yaml" >"$T/apply" 2>&1 &
PID[apply]=$!
changing() { curl -sf "${URL}state.json" | jq -e '.progress | .running and any(.lines[]; .device == "ocs0")'; }
wait_for 20 changing
tap "a change is under way"
scenes changing:
stop weftd KILL	# else both would wait for the answer
stop apply

cat >"$T/sixteen.yaml" <<-END
	weft: 1
	fabric: sixteen
	hosts:
	  - { name: "g[000-063]", ports: "p[00-15]", rate: 100Gbps }
	switches:
	  - { name: "ocs[00-07]", size: 64x64, driver: sim, domain: row0 }
	  - { name: "ocs[08-15]", size: 64x64, driver: sim, domain: row1 }
	fibres:
	$(for i in {00..15}; do
		printf '  - { from: "g[000-063].p%s", to: "ocs%s.[1-64]" }\n' "$i" "$i"
	done)
	jobs:
	  - { name: train, nodes: "g[000-031]", collective: allreduce, size: 64MiB, topology: "Torus(4,8)", alpha: 10us }
	  - { name: gather, nodes: "g[032-047]", collective: allgather, size: 16MiB, topology: "C(16,{1,4})", alpha: 10us }
END
serve "$T/sixteen.yaml"
scenes sixteen: sixteen-switch:device/ocs03 sixteen-job:job/train

# Sixty devices and 180 jobs, some of them with faults.
"$TOP/tests/large_fabric.sh" 15 168 4 336 127.0.0.1:17000 >"$T/sixty.yaml"
weft emulate --control-dir "$T" "$T/sixty.yaml" >"$T/emulate.log" 2>&1 </dev/null &
PID[emulate]=$!
wait_for 60 grep -q '^ready' "$T/emulate.log"
serve "$T/sixty.yaml"
for fault in p3-s1:i0 p3-s1:o20 p9-s0:i0 p9-s1:i3 p9-s2:o7 p9-s3:i9; do
	CTL[p]=$T/${fault%:*}.ctl
	control p "fault port-failed=${fault#*:}" >"$T/ctl"
done
weft drain p5-s0 >"$T/out" 2>&1
weft verify >"$T/out" 2>&1
two_jobs() { weft status --format json | jq -e '[.jobs[] | select(.health == "degraded")] | length == 2'; }
wait_for 20 two_jobs
tap "of 180 jobs on 60 devices two are degraded"
scenes sixty: sixty-switch:device/p3-s1 sixty-job:job/big9
stop emulate

cat >"$T/ring.yaml" <<-END
	weft: 1
	fabric: ring
	hosts: [{ name: "rack[000-127]" }]
	rings:
	$(for i in 0 1; do
		echo "  - { name: ring$i, nodes: 'rack[000-127]', channels: 16, channel-rate: 40Gbps, retune: 25us, driver: sim-ring }"
	done)
	jobs:
	  - { name: all, ring: ring0, nodes: all, collective: allgather, size: 4MB }
	  - { name: left, ring: ring1, nodes: "rack[000-063]", channels: 0-7, collective: allgather, size: 4MB }
	  - { name: right, ring: ring1, nodes: "rack[064-127]", channels: 8-15, collective: allgather, size: 4MB }
END
serve "$T/ring.yaml"
scenes ring: ring-device:device/ring1 ring-job:job/all
echo >&"$ASK"
wait "${PID[browser]}"
unset "PID[browser]"
finish
