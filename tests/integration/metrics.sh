#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Metrics for Prometheus, over plain HTTP on loopback.
cd "$(dirname "$0")" || exit 1
. ../lib.sh

emulators && fabric "$T/fabric.yaml" 'UniRing(2,4)'
tap "a fabric of emulators"
DAEMON_OPTIONS=(--metrics 127.0.0.1:0)
daemon
PORT=$(sed -nE 's/.*metrics on 127.0.0.1 port ([0-9]+)$/\1/p' "$T/weftd.log")
[[ -n $PORT ]]
tap "the log tells the port"

# ask REQUEST...: what the server answers to these bytes, to $T/out.
ask() {
	printf '%b' "$1" | nc -N -w 5 127.0.0.1 "$PORT" >"$T/out"
}

# value METRIC: its value in the last answer.
value() {
	tr -d '\r' <"$T/out" | awk -v m="$1" '$1 == m { print $2 }'
}

GET='GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n'
expect 0 "an apply" weft apply -f "$T/fabric.yaml"
ask "$GET"
has out "an answer" '^HTTP/1.1 200 OK'
has out "of the right kind" '^Content-Type: text/plain; version=0.0.4'
[[ $(value 'weft_apply_total{outcome="committed"}') == 1 ]]
tap "one change was committed"
[[ $(value 'weft_device_up{device="ocs0",driver="polatis-scpi"}') == 1 ]]
tap "the switch answers"
[[ $(value process_resident_memory_bytes) -gt 1000000 &&
	$(awk '/VmRSS/ { print $2 * 1024 }' "/proc/${PID[weftd]}/status") -gt \
	$(( $(value process_resident_memory_bytes) / 2 )) &&
	$(value process_start_time_seconds) -le $(date +%s) &&
	$(value process_start_time_seconds) -gt $(( $(date +%s) - 600 )) ]]
tap "weftd as a process"
used() { awk -v hz="$(getconf CLK_TCK)" '{ sub(/.*\) /, ""); print ($12 + $13) / hz }' "/proc/${PID[weftd]}/stat"; }
before=$(used)
ask "$GET"
awk -v from="$before" -v now="$(value process_cpu_seconds_total)" -v to="$(used)" \
	'BEGIN { exit !(now > 0 && now >= from - 0.03 && now <= to + 0.03) }'
tap "and its processor time is the kernel's"
[[ $(value weft_generation) == $(weft status --format json | jq .generation) ]]
tap "the generation is that of status"
[[ $(value 'weft_device_operation_duration_seconds_count{device="ocs0",op="change"}') -ge 1 ]]
tap "a change was sent to the switch"
[[ $(value 'weft_device_operation_failures_total{device="ocs0",op="change"}') == 0 ]]
tap "and none failed"
[[ $(value 'weft_circuits{device="ocs0",state="present"}') == "$(control ocs0 map | grep -c ,)" ]]
tap "its circuits are those of its map"
(($(value weft_plan_duration_seconds_count) >= 1 && $(value weft_store_commit_duration_seconds_count) >= 2))
tap "plans and transactions are counted"
[[ $(value 'grpc_server_handled_total{grpc_service="weft.v1.FabricService",grpc_method="Apply",grpc_code="OK"}') == 1 ]]
tap "answers are counted by status"
plans=$(value weft_plan_duration_seconds_count)
expect 65 "a job that is not there" weft schedule export --job other --to json
ask "$GET"
[[ $(value weft_plan_duration_seconds_count) == "$plans" ]]
tap "and no plan was made to tell so"
for rank in 0 1 2; do
	weft schedule export --job reduce --rank $rank --to proto -o "$T/part$rank.pb" &
	PID[part$rank]=$!
done
for rank in 0 1 2; do
	wait "${PID[part$rank]}"
	unset "PID[part$rank]"
done
ask "$GET"
[[ -s $T/part0.pb && -s $T/part1.pb && -s $T/part2.pb ]]
tap "all have their part"
[[ $(value weft_plan_duration_seconds_count) == $((plans + 1)) ]]
tap "one plan serves all ranks, who ask at a time"
[[ $(tr -d '\r' <"$T/out" | sed '1,/^$/d' | awk '$1 == "#" && $2 == "TYPE" { print $3 }' | sort | uniq -d) == "" ]]
tap "no metric is described twice"
tr -d '\r' <"$T/out" | sed '1,/^$/d' | awk '
	$1 == "#" && $2 == "TYPE" { known = $3; kind = $4; next }
	$1 == "#" { next }
	{ name = $1; sub(/\{.*/, "", name); base = name
	  if (kind == "histogram" || kind == "summary") sub(/_(sum|count|bucket)$/, "", base)
	  if (base != known) { print "# " name " stands under " known; bad = 1 }
	  if (kind == "counter" && name !~ /_total$/) { print "# counter " name; bad = 1 }
	  if (seen[$1]++) { print "# twice: " $1; bad = 1 } }
	END { exit bad }'
tap "every value stands under its own description, once"
[[ $(value weft_frozen) == 0 ]]
tap "not frozen"
body=$(tr -d '\r' <"$T/out" | sed '1,/^$/d' | wc -c)
[[ $body == $(tr -d '\r' <"$T/out" | sed -n 's/^Content-Length: //p') ]]
tap "the length is right"
! tr -d '\r' <"$T/out" | sed '1,/^$/d' |
	grep -vE '^(# (HELP|TYPE) [a-z_]+ .+|[a-z_]+(\{[a-z_]+="[^"]*"(,[a-z_]+="[^"]*")*\})? [-+0-9.e]+)$'
tap "every line has the form of the exposition format"

weft freeze >"$T/out"
stop ocs0
expect 69 "a dead switch" weft verify
ask "$GET"
[[ $(value 'weft_device_up{device="ocs0",driver="polatis-scpi"}') == 0 ]]
tap "is down"
[[ $(value weft_frozen) == 1 ]]
tap "frozen"
(($(value 'grpc_server_started_total{grpc_service="weft.v1.FabricService",grpc_method="Freeze"}') == 1))
tap "calls are counted"

ask 'GET / HTTP/1.1\r\nHost: localhost\r\n\r\n'
has out "another path" '^HTTP/1.1 404'
ask 'GET /metricsx HTTP/1.1\r\nHost: localhost\r\n\r\n'
has out "a longer path" '^HTTP/1.1 404'
ask 'POST /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n'
has out "another method" '^HTTP/1.1 405'
ask 'GET /metrics HTTP/1.1\r\nHost: example.com\r\n\r\n'
has out "another host's name" '^HTTP/1.1 421'
ask 'GET /metrics HTTP/1.1\r\nHost: localhost\r\nHost: example.com\r\n\r\n'
has out "two hosts" '^HTTP/1.1 400'
ask 'GET /metrics HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\nContent-Length: 9\r\n\r\n'
has out "two lengths" '^HTTP/1.1 400'
ask 'GET /metrics\0x HTTP/1.1\r\nHost: localhost\r\n\r\n'
has out "a NUL in the path" '^HTTP/1.1 400'
if ((EUID == 0)); then
	setpriv --reuid 4001 --clear-groups /usr/bin/python3 - "$PORT" <<-'END' >"$T/halves" &
	import socket, sys, time
	held = []
	while True:
	    c = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
	    c.sendall(b"GET /metrics HTTP/1.1\r\nHost: local")
	    held = held[-200:] + [c]
	    if len(held) == 80:
	        print("many", flush=True)
	    time.sleep(0.004)
	END
	PID[halves]=$!
	wait_for 10 grep -q many "$T/halves"
	tap "another user sends halves of requests without end"
	for ((i = 0; i < 10; i++)); do
		ask "$GET"
		grep -q '^HTTP/1.1 200' "$T/out" || break
	done
	((i == 10))
	tap "and keeps out no scrape of ten"
	stop halves
fi
ask "GET /metrics HTTP/1.1\r\nX: $(printf '%016400d' 0)"
has out "headers without end" '^HTTP/1.1 431'
head -c 65536 /dev/urandom | nc -N -w 5 127.0.0.1 "$PORT" >/dev/null 2>&1
ask "$GET"
has out "still there after noise" '^HTTP/1.1 200'
expect 65 "only on loopback" weftd --socket "$T/s2" --state-dir "$T/state2" \
	--metrics 0.0.0.0:0
has err "which is said" 'not a loopback address'

expect 64 "a log format that is none" weftd --log-format xml
stop weftd
: >"$T/weftd.log"
DAEMON_OPTIONS=(--log-format json)
daemon
jq -e 'select(.room == "weftd" and .level == "info" and (.time | endswith("Z")))
	| .message' "$T/weftd.log" >"$T/out"
tap "a log of JSON lines"
has out "that tells what happens" 'listening on'

# More jobs than have series of their own: those that lack something are told first.
stop weftd
{
	cat <<-END
	weft: 1
	fabric: many
	hosts:
	  - { name: "h[000-619]", ports: "p0", rate: 100Gbps }
	switches:
	  - { name: ocs0, size: 640x640, driver: sim, options: { state: "$T/map" } }
	fibres:
	  - { from: "h[000-619].p0", to: "ocs0.[1-620]" }
	jobs:
	END
	for ((i = 0; i < 620; i += 2)); do
		printf '  - { name: j%03d, nodes: "h[%03d-%03d]", collective: allgather, size: 1MiB, topology: "UniRing(1,2)" }\n' \
			$((i / 2)) $i $((i + 1))
	done
} >"$T/many.yaml"
STATE=$T/many
DAEMON_OPTIONS=(--metrics 127.0.0.1:0)
daemon
expect 0 "310 jobs" weft apply -f "$T/many.yaml"
stop weftd
sed -i '/^xc 619 618$/d' "$T/map"
: >"$T/weftd.log"
daemon
PORT=$(sed -nE 's/.*metrics on 127.0.0.1 port ([0-9]+)$/\1/p' "$T/weftd.log")
down() { curl -s -m 5 "http://127.0.0.1:$PORT/metrics" >"$T/out"; [[ $(value 'weft_problems{kind="job-down"}') == 1 ]]; }
wait_for 20 down
tap "the last one is cut"
[[ $(grep -c '^weft_job_rate_ratio' "$T/out") == 300 && $(value weft_jobs_without_series) == 10 &&
	$(value 'weft_job_rate_ratio{job_name="j309"}') == 0 ]]
tap "it is among the 300 that are told one by one"
! grep -q 'weft_job_expected_seconds{job_name="j309"}' "$T/out"
tap "and is expected to take no time"
finish
