#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# needs: root
# Plans are made in processes of their own: what one does to itself is its client's to hear, and
# viewers' plans hold up no operator.
cd "$(dirname "$0")" || exit 1
. ../lib.sh

[[ $(id -u) == 0 ]] || { echo "ok 1 - plans of other users # SKIP needs root"; TAP_N=1; finish; }
chmod 711 "$T"
cat >"$T/access" <<-END
	operator user root
	viewer   user *
END
DAEMON_OPTIONS=(--socket-mode 0666 --access "$T/access" --plan-time 2)

one_job "$T/small.yaml" 6 allgather bfb
one_job "$T/endless.yaml" 48 all-to-all tsmcf
one_job "$T/large.yaml" 1000 all-to-all mcf

daemon
tap "weftd starts"
expect 0 "a change" weft apply -f "$T/small.yaml"

# ---- limits ----------------------------------------------------------------

expect 124 "a plan without end is ended" weft plan -f "$T/endless.yaml"
has err "with the limit" "planning took more than 2 s"
has err "and what changes it" "plan-time"
expect 124 "so does a change" weft apply -f "$T/endless.yaml"
[[ $(weft status --format json | jq .generation) == 2 ]]
tap "and nothing was changed by any"

# at_work: processes that plan, of this niceness.
at_work() { ps -o ni=,pid= --ppid "${PID[weftd]}" | awk -v ni="$1" '$1 == ni { print $2 }'; }
working() { (($(at_work "$1" | wc -l) >= $2)); }
none() { ! working "$1" 1; }

stop weftd
DAEMON_OPTIONS=(--socket-mode 0666 --access "$T/access" --plan-time 600 --plan-memory 120)
daemon
tap "weftd with more time, and less memory"
expect 65 "one that needs too much memory ends" weft plan -f "$T/large.yaml"
has err "with the limit" "planning needs more than 120 MiB of memory"
has err "and what changes it" "plan-memory"
weft plan -f "$T/endless.yaml" >"$T/crash.out" 2>&1 </dev/null &
crash=$!
wait_for 10 working 5 1
kill -SEGV "$(at_work 5)"
wait $crash
[[ $? == 1 ]] && grep -q 'planning crashed: Segmentation fault' "$T/crash.out"
tap "a solver that crashes is told to its client" || cat "$T/crash.out"
weft plan -f "$T/endless.yaml" >/dev/null 2>&1 </dev/null &
gone=$!
wait_for 10 working 5 1
kill -KILL $gone
wait $gone 2>/dev/null
wait_for 10 none 5
tap "a plan ends with its client"
expect 0 "weftd goes on" weft status

# ---- shares ----------------------------------------------------------------

heavy=()
for _ in 1 2 3 4 5 6; do
	setpriv --reuid 4001 --regid 4001 --clear-groups "$(command -v weft)" plan -f - \
		<"$T/endless.yaml" >/dev/null 2>&1 &
	heavy+=($!)
done
wait_for 10 working 15 1
tap "a viewer has six plans under way, behind all others"
sed 's/allgather/allreduce/' "$T/small.yaml" >"$T/other.yaml"
expect 2 "an operator's plan is begun and ended meanwhile" weft plan -f "$T/other.yaml"
expect 0 "and its change" weft apply -f "$T/other.yaml"
alive=0
for p in "${heavy[@]}"; do
	kill -0 "$p" 2>/dev/null && alive=$((alive + 1))
done
[[ $alive == 6 ]]
tap "while the six still wait ($alive)"
# One that has planned, as for weftd's own advice, rests until there is another.
busy=$(ps -o ni=,stat= --ppid "${PID[weftd]}" | awk '$1 == 15 && $2 ~ /^R/' | wc -l)
((busy < $(nproc) || $(nproc) == 1))
tap "of which one processor is never theirs"
kill "${heavy[@]}"
wait "${heavy[@]}" 2>/dev/null
wait_for 10 none 15
tap "and end with their clients"
finish
