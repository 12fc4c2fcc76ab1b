#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What hosts of weftd's machine say of light: a link without carrier, at either end, is dark
# everywhere, and to its job only; when it is back, so is the job.
source "$(dirname "$0")/../lib.sh"
F=dl$$
testbed_of "$T/f.yaml"

cat >"$T/f.yaml" <<-END
	weft: 1
	fabric: $F
	hosts:
	  - { name: "h[0-5]", ports: "p[0-1]", rate: 100Mbps, reactivation: 10ms, netns: weft.$F.% }
	switches:
	  - { name: ocs0, size: 12x12, driver: linux-tc, options: { fabric: $F } }
	fibres:
	  - { from: "h[0-5].p[0-1]", to: "ocs0.[1-12]" }
	changes: { verify: neighbour }
	jobs:
	  - { name: sum, nodes: "h[0-3]", collective: allreduce, size: 64KiB, topology: "Ring(4)", alpha: 10us }
	  - { name: pair, nodes: "h[4-5]", collective: allreduce, size: 1MiB, topology: "K(2)", alpha: 10us }
END

weft testbed up "$T/f.yaml" >"$T/out" 2>"$T/err"
status=$?
if [[ $status == 77 ]] || grep -q 'network namespace: ' "$T/err"; then
	echo "ok 1 - dark links # SKIP $(head -n 1 "$T/err")"
	echo "1..1"
	exit 0
elif [[ $status != 0 ]]; then
	cat "$T/err"
	tap "testbed up" 1
	finish
fi
DAEMON_OPTIONS=(--metrics 127.0.0.1:0)
daemon || exit 1
PORT=$(sed -nE 's/.*metrics on 127.0.0.1 port ([0-9]+)$/\1/p' "$T/weftd.log")
expect 0 "two jobs are applied" weft apply -f "$T/f.yaml"

link() { # HOST NETDEV up|down
	ip -n "weft.$F.$1" link set "$2" "$3"
}
scrape() { # PATTERN
	curl -s "http://127.0.0.1:$PORT/metrics" | grep -q "$1"
}
shown() { # JQ of status
	weft status --format json >"$T/status" && jq -e "$1" "$T/status" >/dev/null
}
whole='all(.jobs[]; .health == "up" and .rate == 1 and .proof == "neighbour")'
wait_for 10 shown "$whole"
tap "both are up, by their neighbours"
arcs_used() {
	jq '.arcs | length' "$T/out"
}
expect 0 "the schedule of all" weft schedule export --job sum --to json
before=$(arcs_used)
weft watch --after 1 --format json >>"$T/events" &
PID[watch]=$!
wait_for 5 test -s "$T/events"

# Each end says it of its own.
for dev in p0.rx p0.tx; do
	: >"$T/events"
	at=$(date -u +%FT%T.%N)
	link h1 "$dev" down
	wait_for 10 shown '.jobs[] | select(.name == "sum") | .health == "degraded" and .rate < 1 and
		.proof == "unverified"'
	tap "$dev: its job is degraded, unasked"
	jq -e '.jobs[] | select(.name == "pair") | .health == "up" and .proof == "neighbour"' \
		"$T/status" >/dev/null
	tap "$dev: the other is not"
	wait_for 5 grep -q 'job sum: 1 of [0-9]* circuits failed' "$T/events"
	tap "$dev: an event names it"
	expect 2 "$dev: verify finds it" weft verify --format json
	jq -e --arg at "$at" '[.devices[0].dark[] | .since_at >= $at] == [true]' \
		"$T/out" >/dev/null
	tap "$dev: one circuit is dark, since then"
	jq -e '[.problems[].kind] | index("circuits-dark") and index("job-degraded") and
		index("links-wrong")' "$T/out" >/dev/null
	tap "$dev: the problems are told"
	scrape '^weft_dark_circuits{device="ocs0"} 1$' && scrape '^weft_job_degraded{job_name="sum"} 1$'
	tap "$dev: metrics"
	expect 0 "$dev: its schedule" weft schedule export --job sum --to json
	[[ $(arcs_used) -lt $before ]]
	tap "$dev: goes round it"
	expect 0 "$dev: nothing can be made again" weft plan
	has err "$dev: which the plan says" 'job sum: .* nothing of ocs0: in [0-9]+ -> out [0-9]+'
	expect 69 "$dev: no run of the whole schedule" weft testbed run "$T/f.yaml" --job sum
	has err "$dev: and why" 'job sum: 1 of 8 arcs are dark: h[0-9].p[01] hears nothing of h'
	link h1 "$dev" up
	wait_for 10 shown 'all(.jobs[]; .health == "up" and .rate == 1)'
	tap "$dev: all is back when it is"
	wait_for 5 grep -q 'job sum: it has all of its rate again' "$T/events"
	tap "$dev: an event says so"
done
expect 0 "verify agrees" weft verify
finish
