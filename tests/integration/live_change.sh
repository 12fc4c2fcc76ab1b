#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A change of a robot, as those see it who look meanwhile: jobs stay on show, and
# progress moves with every fibre. What a job gains is told before, meanwhile and
# in the history. `freeze --now` stops it.
source "$(dirname "$0")/../lib.sh"
emulator rome0 rome-cli 12x12 --fault move=20 || exit 1

# config FILE "NODES OF a" [MORE LINES OF jobs]
config() {
	cat >"$T/$1" <<-END
		weft: 1
		fabric: robotic
		hosts:
		  - { name: "h[0-5]", ports: "p0", rate: 100Gbps, reactivation: 100ms }
		panels:
		  - { name: rome0, size: 12x12, driver: rome-cli, address: "${ADDR[rome0]}", switch-time: 1s, options: { poll_ms: 10, gap_ms: 0 } }
		fibres:
		  - { from: "h[0-5].p0", to: "rome0.[1-6]" }
		jobs:
		  - { name: a, nodes: [$2], collective: allreduce, size: 1MB, topology: "UniRing(1,3)" }
		  $3
	END
}
B='- { name: b, nodes: [h3, h4], collective: allgather, size: 1MB, topology: "UniRing(1,2)" }'
config a.yaml "h0, h1, h2" "$B"
config back.yaml "h2, h1, h0" "$B"
config more.yaml "h0, h1, h2" '- { name: c, nodes: [h3, h4, h5], collective: allgather, size: 1MB, topology: "UniRing(1,3)" }'
DAEMON_OPTIONS=(--metrics 127.0.0.1:0)
daemon || exit 1
expect 0 "five fibres" weft apply -f "$T/a.yaml"
curl -s "http://127.0.0.1:$(sed -nE 's/.*metrics on 127.0.0.1 port ([0-9]+)$/\1/p' "$T/weftd.log")/metrics" >"$T/out"
has out "the robot's moves are counted, as it counts them" '^weft_robot_moves_total\{device="rome0"\} 5$'
before=$(weft status --format json | jq -c '[.jobs[] | {name, time_ns, topology}]')

# ---- before: what a job gains
expect 2 "the same light the other way round" weft plan -f "$T/back.yaml" --format json
jq -e '.jobs[0].gain as $g | $g.effect == "changes" and $g.before_ns == $g.after_ns and
	$g.before_ns == .jobs[0].time_ns and $g.down_ns > 0 and $g.payback == null and
	.jobs[1].gain.effect == "stays" and .jobs[1].gain.down_ns == 0' "$T/out" >/dev/null
tap "gains the job nothing"
has err "which is said" 'job a: an outage of .* is never paid back: a collective takes'
expect 2 "in words" weft plan -f "$T/back.yaml"
has out "as well" 'job a: .* before, .* after, an outage of .*, which is never paid back'
expect 2 "a job that ends, and one that begins" weft plan -f "$T/more.yaml" --format json
jq -e '[.ends[] | [.job, .effect, .before_ns > 0, .after_ns]] == [["b", "ends", true, null]] and
	[.jobs[].gain.effect] == ["stays", "begins"]' "$T/out" >/dev/null
tap "are told"
! grep -q 'never paid back' "$T/err"
tap "and no outage is called worthless"

# ---- meanwhile: what those see who look all the time
control rome0 clear >/dev/null
control rome0 "fault move=300" >/dev/null
weft apply -f "$T/back.yaml" >"$T/apply" 2>"$T/progress" </dev/null &
PID[client]=$!
while kill -0 "${PID[client]}" 2>/dev/null; do
	weft status --format json >>"$T/seen"
	weft status >>"$T/words"
	sleep 0.05
done
wait "${PID[client]}"
tap "the change is committed"
unset 'PID[client]'
# during FILTER: holds for each status of the change in its moves, and there are some.
during() {
	jq -s -e "[.[] | select(.progress.total == 6 and .progress.done < 6)] |
		length > 0 and all(.[]; $1)" "$T/seen" >/dev/null
}
jq -s -e '[.[].progress.done // 0] as $d | ($d | .[:-1]) == ($d | .[:-1] | sort) and
	([$d[] | select(. % 3 > 0)] | length > 0)' "$T/seen" >/dev/null
tap "progress moves in the middle of a batch"
during '.state == "changing" and .jobs_known and .progress.who != "" and .progress.started_at != null'
tap "it is told whose change it is"
jq -s -e 'any(.[]; .progress.eta_ns > 0 and .progress.device == "rome0" and .progress.done < 6)' \
	"$T/seen" >/dev/null
tap "and the time that is left"
during "[.jobs[] | {name, time_ns, topology}] == $before"
tap "the jobs stay on show"
during '[.jobs[] | [.name, .health, .gain.effect]] == [["a", "changing", "changes"], ["b", "up", null]] and
	.jobs[0].gain.after_ns == .jobs[0].time_ns'
tap "that which is changed with what is expected after, the other as before"
grep -qE '^changing +(delete|add): rome0: .*\([1-6]/6\), about' "$T/words" &&
	grep -qE '^job a: .* before, .* after' "$T/words"
tap "for people too"
weft status --format json | jq -e '.progress == null and ([.jobs[].gain] == [null, null])' >/dev/null
tap "then nothing changes any more"

# ---- afterwards
expect 0 "the history" weft history --format json
jq -e '.changes[0].jobs as $j | ($j | length) == 1 and $j[0].job == "a" and
	$j[0].effect == "changes" and $j[0].before_ns > 0 and $j[0].down_ns > 0 and
	[.changes[1].jobs[].effect] == ["begins", "begins"]' "$T/out" >/dev/null
tap "has what each job was to gain"
expect 0 "also for people" weft history
has out "job by job" 'change 2, job a: .* before, .* after'

# ---- stopped, and nothing after it
control rome0 map | grep , | sort >"$T/map"
rm "$T/progress"
weft apply -f "$T/a.yaml" >"$T/apply" 2>"$T/progress" </dev/null &
PID[client]=$!
wait_for 20 grep -q 'moves are over' "$T/progress"
expect 0 "a freeze that stops what runs" weft freeze --now -m "smoke in row 3" --format json
jq -e '.holds[0].reason == "smoke in row 3"' "$T/out" >/dev/null
tap "the fabric is frozen"
has err "and it is told how the change ends" 'change 3: rolled-back'
wait "${PID[client]}"
[[ $? == 3 ]]
tap "its own client is told too"
unset 'PID[client]'
control rome0 map | grep , | sort | cmp -s - "$T/map"
tap "all is as before"
expect 75 "no other change begins" weft apply -f "$T/a.yaml"
expect 0 "nothing to stop any more" weft freeze --now
! grep -q stopping "$T/err"
tap "and nothing is said of it"

# ---- another device: circuits that it lists as failed, and a job without a way out
stop weftd
rm -rf "$STATE"
emulator cal calient-tl1 8x8 || exit 1
cat >"$T/cal.yaml" <<END
weft: 1
fabric: failing
hosts:
  - { name: "h[0-3]", ports: "p[0-1]", rate: 100Gbps, reactivation: 1ms }
switches:
  - { name: cal, size: 8x8, driver: calient-tl1, address: "${ADDR[cal]}", options: { gap_ms: 0 } }
fibres:
  - { from: "h[0-3].p[0-1]", to: "cal.[1-8]" }
jobs:
  - { name: a, nodes: [h0, h1], collective: allreduce, size: 1MB, topology: "UniRing(2,2)" }
  - { name: b, nodes: [h2, h3], collective: allreduce, size: 1MB, topology: "UniRing(1,2)" }
END
daemon || exit 1
expect 0 "two jobs on a switch" weft apply -f "$T/cal.yaml"
xc=$(control cal map | awk -F, '/,/ && $1 >= 4 { print; exit }')
health() { [[ $(weft status --format json | jq -r ".jobs[] | select(.name == \"$1\").health") == "$2" ]]; }
control cal "fault conn-failed=i${xc%,*}" >/dev/null
weft verify >"$T/out" 2>&1
suffers() { health b degraded || health b down; }
wait_for 20 suffers
tap "a circuit that is listed as failed costs the job its rate"
expect 2 "an apply would make it again" weft plan -f "$T/cal.yaml" --format json
jq -e --arg in "$((${xc%,*} + 1))" '.devices[0].add == [.devices[0].add[0]] and
	.devices[0].add[0].in == ($in | tonumber) and .jobs[1].gain.effect == "changes"' "$T/out" >/dev/null
tap "and nothing else"
control cal "log 0" | grep -c ' session ' >"$T/lines"
expect 3 "it does, in vain" weft apply -f "$T/cal.yaml"
has err "and the reason is named" 'failed'
control cal "log $(cat "$T/lines")" | sed -n 's/^[0-9]* [0-9]* session //p' | paste -sd ' ' >"$T/moves"
[[ $(cat "$T/moves") == "gone $xc made $xc gone $xc" ]] || cat "$T/moves"
[[ $(cat "$T/moves") == "gone $xc made $xc gone $xc" ]]
tap "after it was taken away, as devices take what they list for made"
control cal clear >/dev/null
expect 0 "with the fault gone it is made" weft apply -f "$T/cal.yaml"
xc=$(control cal map | awk -F, '/,/ && $1 < 4 { print; exit }')
control cal "fault port-failed=i${xc%,*}" >/dev/null
weft verify >"$T/out" 2>&1
expect 0 "alone, a job without a way out is left as it is" weft apply -f "$T/cal.yaml"
has err "with the reason" 'job a: 1 of its 4 circuits cannot be brought back, and its .* round them: '
other=$(control cal map | awk -F, '/,/ && $1 >= 4 { print; exit }')
control cal "unset $other" >/dev/null
expect 0 "it keeps no other from being repaired" weft apply -f "$T/cal.yaml"
control cal map | grep -q , && wait_for 20 health b up && ! health a up
tap "the other is"
finish
