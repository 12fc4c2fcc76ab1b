#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What fails is told everywhere, and the same: a direction of a ring is cut, and
# ports of a switch fail. Status, diff, the page's data, metrics and events agree;
# a real Prometheus raises the alerts, and answers each query of the dashboard.
cd "$(dirname "$0")" || exit 1
. ../lib.sh
emulator ocs0 polatis-scpi 36x36 && emulator ring0 mrr-reg 8x8 || exit 1
cat >"$T/a.yaml" <<-END
	weft: 1
	fabric: watched
	hosts:
	  - { name: "h[0-7]", ports: "p[0-2]", rate: 100Gbps }
	  - { name: "g[0-3]", ports: "p[0-1]", rate: 100Gbps }
	  - { name: "n[0-7]" }
	switches:
	  - name: ocs0
	    size: 36x36
	    driver: polatis-scpi
	    address: ${ADDR[ocs0]}
	    options: { gap_ms: 1, settle_ms: 20 }
	    timeout: 2s
	rings:
	  - name: ring0
	    nodes: "n[0-7]"
	    channels: 8
	    channel-rate: 40Gbps
	    driver: mrr-reg
	    address: ${ADDR[ring0]}
	    timeout: 2s
	fibres:
	  - { from: "h[0-7].p[0-2]", to: "ocs0.[1-24]" }
	  - { from: "g[0-3].p[0-1]", to: "ocs0.[25-32]" }
	jobs:
	  - { name: swap, nodes: 'h[0-7]', collective: all-to-all, size: 1MiB, topology: 'Hypercube(3)', alpha: 1us }
	  - { name: sum, nodes: 'g[0-3]', collective: allreduce, size: 1MiB, topology: 'Ring(4)', alpha: 1us }
	  - { name: gather, ring: ring0, size: 16MiB, collective: allgather }
	END
DAEMON_OPTIONS=(--poll 0 --metrics 127.0.0.1:0 --page 127.0.0.1:0)
daemon || exit 1
METRICS=127.0.0.1:$(sed -nE 's/.*metrics on 127.0.0.1 port ([0-9]+)$/\1/p' "$T/weftd.log")
PAGE=$(sed -n 's/.*page on \(http.*\)$/\1/p' "$T/weftd.log")
expect 0 "applied" weft apply -f "$T/a.yaml"
weft watch --format json >"$T/watch" 2>/dev/null </dev/null &
PID[watch]=$!
wait_for 10 grep -q resync "$T/watch"

# metric NAME: the value of a sample, or the sum of all that are called so.
metric() {
	curl -s -m 10 "http://$METRICS/metrics" |
		awk -v m="$1" '$1 == m || index($1, m "{") == 1 { n += $2; seen = 1 } END { if (seen) print n }'
}
listed() { # KIND...: exactly these problems, in any order
	weft status --format json 2>/dev/null |
		jq -e --args '[.problems[].kind] | sort == ($ARGS.positional | sort)' "$@"
}
agree() { # WHAT
	local told
	told=$(weft status --format json 2>/dev/null | jq -c .problems)
	[[ $(weft diff --format json 2>/dev/null | jq -c .problems) == "$told" ]]
	tap "$1: diff lists what status lists"
	[[ $(curl -s -m 10 "${PAGE}state.json" | jq -c .status.problems) == "$told" ]]
	tap "$1: and so do the page's data"
	[[ $(metric weft_problems) == "$(jq length <<<"$told")" ]]
	tap "$1: and metrics count as many"
}
event() { # KIND FIELD NAME
	grep -F "\"kind\":\"$1\"" "$T/watch" | grep -qF "\"$2\":\"$3\""
}

# ---- Prometheus, which asks weftd four times a second ----
mkdir "$T/prometheus"
sed '/^ *for: /d' "$TOP/configs/prometheus/weft.rules.yml" >"$T/prometheus/weft.rules.yml"
cat >"$T/prometheus/prometheus.yml" <<-END
	global: { scrape_interval: 250ms, evaluation_interval: 250ms }
	rule_files: [weft.rules.yml]
	scrape_configs:
	  - job_name: weft
	    static_configs: [{ targets: ["$METRICS"] }]
	END
expect 0 "the rules are well formed" promtool check rules "$TOP/configs/prometheus/weft.rules.yml"
expect 0 "each alert fires where it should" \
	promtool test rules "$TOP/configs/prometheus/weft.rules.test.yml"
[[ $(grep -c 'alert:' "$TOP/configs/prometheus/weft.rules.yml") == \
	$(grep -c '^  - name: Weft' "$TOP/configs/prometheus/weft.rules.test.yml") ]]
tap "and none is left out"
curl -s "http://$METRICS/metrics" >"$T/metrics"
grep -oE '\b(weft|grpc_server)_[a-z_]+' "$TOP/configs/prometheus/weft.rules.yml" |
	sed -E 's/_(sum|count)$//' | sort -u | while read -r name; do
	grep -q "^# TYPE $name " "$T/metrics" || echo "# no metric: $name"
done | tee "$T/unknown"
[[ ! -s $T/unknown ]]
tap "weftd has every metric that an alert asks for"
promtool check metrics <"$T/metrics" >"$T/out" 2>&1
tap "the metrics follow Prometheus' conventions"
prometheus --config.file="$T/prometheus/prometheus.yml" --storage.tsdb.path="$T/prometheus/db" \
	--web.listen-address=127.0.0.1:0 >"$T/prometheus/log" 2>&1 </dev/null &
PID[prometheus]=$!
address() { sed -n 's/.*msg="Listening on" address=//p' "$T/prometheus/log"; }
ready() { [[ -n $(address) ]] && curl -sf -m 10 "http://$(address)/-/ready"; }
wait_for 60 ready
tap "Prometheus runs"
alert() { # NAME LABEL VALUE: fires
	curl -s -m 10 "http://$(address)/api/v1/alerts" |
		jq -e --arg n "$1" --arg l "$2" --arg v "$3" '.data.alerts[] |
			select(.labels.alertname == $n and .labels[$l] == $v and .state == "firing")'
}
quiet() { # none fires but that of the objective
	[[ $(curl -s -m 10 "http://$(address)/api/v1/alerts" |
		jq '[.data.alerts[] | select(.labels.alertname != "WeftJobObjective")] | length') == 0 ]]
}

# ---- all is well ----
wait_for 30 listed
tap "nothing is wrong"
agree "while all is well"
expect 0 "diff agrees" weft diff
[[ $(metric weft_job_rate_ratio) == 3 && $(metric weft_job_degraded) == 0 ]]
tap "three jobs have all of their rate"
expect 0 "status" weft status
has out "the time now is the fault-free one" 'swap .* 100 % +([0-9.]+ us) +\1'

# ---- a direction of the ring is cut, two ports fail: one of them is in use ----
control ocs0 "fault port-failed=o1" >"$T/answer"
control ocs0 "fault port-failed=o35" >"$T/answer"
control ring0 "fault cut-cw=6:0" >"$T/answer"
expect 2 "verify" weft verify
has out "names the ports" 'ocs0: 2 ports failed: out 2, out 36'
has out "and the circuit without light" '^ *ocs0 +dark +in [0-9]+ -> out 2 '
has out "and the part of the ring" 'ring0: 1 part failed: cw fibre 0 between n6 and n7'
has out "and what is not locked" '^ *ring0 +not locked +n7 cw '
wait_for 30 listed ports-failed circuits-dark parts-failed settings-unlocked \
	job-degraded job-degraded
tap "status lists all of it, and the jobs that it costs"
agree "with both faults"
expect 2 "diff has them too" weft diff
weft status --format json >"$T/status"
jq -e '.jobs[] | select(.name == "swap") | .rate == 0.75 and .reason != "" and
	.expected_time_ns > .whole_time_ns and .whole_time_ns == .time_ns' "$T/status" >/dev/null
tap "the job's rate, its time now and with nothing failed"
jq -e '[.devices[] | select(.name == "ocs0") | .failed_ports[]] == ["out 2", "out 36"]' \
	"$T/status" >/dev/null
tap "and the device's failed ports"
expect 0 "status as a table" weft status
has out "has the time beside the fault-free one" 'swap +degraded .* 75 % +59.9 us +44.9 us'
# told JOB METRIC FIELD SCALE: the metric is the field of the job's row.
told() {
	[[ $(jq -r --arg n "$1" ".jobs[] | select(.name == \$n) | .$3 / $4 * 1e12 | round" "$T/status") == \
		$(curl -s "http://$METRICS/metrics" | awk -v m="$2{job_name=\"$1\"}" '$1 == m { printf "%.0f\n", $2 * 1e12 }') ]]
}
for name in swap sum gather; do
	told $name weft_job_expected_seconds expected_time_ns 1e9 &&
		told $name weft_job_fault_free_seconds whole_time_ns 1e9
	tap "metrics have the times of $name"
done
[[ $(metric 'weft_device_failed_ports{device="ocs0"}') == 2 &&
	$(metric 'weft_dark_circuits{device="ocs0"}') == 1 &&
	$(metric 'weft_ring_failed_parts{device="ring0"}') == 1 &&
	$(metric 'weft_ring_unlocked_settings{device="ring0"}') -gt 0 &&
	$(metric 'weft_job_rate_ratio{job_name="swap"}') == 0.75 &&
	$(metric weft_job_degraded) == 2 ]]
tap "and the devices' counts"
wait_for 10 event port-failed port "out 2" && wait_for 10 event port-failed port "out 36"
tap "an event for each port"
wait_for 10 event part-failed device ring0
tap "for the ring"
wait_for 10 event job-degraded job swap && wait_for 10 event job-degraded job gather
tap "and for each job"
event job-degraded job sum
tap "none for the job that lost nothing" $((! $?))

# ---- alerts and queries ----
while read -r name label value; do
	wait_for 60 alert "$name" "$label" "$value"
	tap "$name fires for $value"
done <<-END
	WeftPortFailed device ocs0
	WeftCircuitsDark device ocs0
	WeftRingPartFailed device ring0
	WeftRingUnlocked device ring0
	WeftJobDegraded job_name swap
	WeftJobDegraded job_name gather
	WeftJobObjective job_name gather
END
alert WeftJobDegraded job_name sum >"$T/out"
tap "and not for the job that lost nothing" $((! $?))
/usr/bin/python3 problems_queries.py "$(address)" "$TOP/configs/grafana/weft.json" >"$T/out" 2>&1
tap "every query of the dashboard is answered"
sed 's/^/# /' "$T/out"
evaluated() {
	curl -s -m 10 "http://$(address)/api/v1/rules" |
		jq -e '[.data.groups[].rules[].health] | length > 20 and all(. == "ok")'
}
wait_for 60 evaluated
tap "and each rule's"

# ---- it works again ----
control ocs0 clear >"$T/answer"
control ring0 clear >"$T/answer"
expect 0 "all works again" weft verify
wait_for 30 listed
tap "status says so"
agree "after it"
wait_for 10 event port-recovered port "out 2" && event port-recovered port "out 36" &&
	wait_for 10 event part-recovered device ring0 &&
	wait_for 10 event job-restored job swap && wait_for 10 event job-restored job gather
tap "events tell what works again"
[[ $(metric weft_job_repair_duration_seconds_count) == 2 ]]
tap "how long two jobs lacked light is counted"
wait_for 60 quiet
tap "no alert is left, but that of the objective, which looks back"

# ---- random faults, counted from the emulator's side ----
# The emulator counts ports from 0, and its map lists circuits at broken ports too.
RANDOM=22
for round in 1 2 3; do
	: >"$T/broken"
	gone=$(control ocs0 map | sed -n "$((RANDOM % 32 + 1))p" | tr -d ' ')
	control ocs0 "unset $gone" >"$T/answer"
	for ((k = 0; k < 6; k++)); do
		what=$([[ $((RANDOM % 2)) == 0 ]] && echo failed || echo disabled)
		port=$([[ $((RANDOM % 2)) == 0 ]] && echo i || echo o)$((RANDOM % 36))
		control ocs0 "fault port-$what=$port" >"$T/answer"
		echo "$what $port" >>"$T/broken"
	done
	weft verify >"$T/out" 2>"$T/err"
	control ocs0 map | tr ',' ' ' | awk -v broken="$T/broken" '
		BEGIN { while ((getline line <broken) > 0) { split(line, f, " "); bad[f[2]] = 1 } }
		("i" $1) in bad || ("o" $2) in bad { dark++ }
		END { print dark + 1 }' >"$T/dark"
	awk '$1 == "failed" && !seen[$2]++ { n++ } END { print n + 0 }' "$T/broken" >"$T/failed"
	weft status --format json >"$T/status"
	jq -e --argjson dark "$(cat "$T/dark")" --argjson failed "$(cat "$T/failed")" '
		def told(k): [.problems[] | select(.kind == k) | .count] | add // 0;
		told("circuits-dark") == $dark and told("ports-failed") == $failed and
		(.devices[] | select(.name == "ocs0") | (.missing | length) == 1 and
		(.dark | length) == $dark - 1 and (.failed_ports | length) == $failed)' \
		"$T/status" >"$T/out" && [[ $(metric weft_dark_circuits) == $(cat "$T/dark") ]]
	tap "round $round: as many dark circuits and failed ports"
	control ocs0 clear >"$T/answer"
	control ocs0 "set $gone" >"$T/answer"
done
expect 0 "all works again" weft verify

# ---- what the file marks as dead is known ----
control ocs0 "fault port-failed=o35" >"$T/answer"
expect 2 "a port that nothing needs fails" weft verify
has out "is named" 'ocs0: 1 port failed: out 36'
weft status --format json | jq -e '.advice == "ocs0: 1 port failed: out 36"' >/dev/null
tap "and advised about"
printf 'dead:\n  - { port: ocs0.out36 }\n' >>"$T/a.yaml"
expect 0 "marked as dead" weft apply -f "$T/a.yaml"
expect 0 "it is no problem any more" weft diff
wait_for 30 listed
agree "with the mark"
finish
