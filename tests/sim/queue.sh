#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The queue of jobs, by chance and on virtual time: what the store took of each job is replayed by
# queue_replay.py. Runs of 250 requests each: with each commit another of the forty that --soak has.
#
#   --soak  10,000 requests
cd "$(dirname "$0")/../.." || exit 1
sim=${BUILD:-build}/release/weft-sim
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
first=$((3 + ${WEFT_TURN:-0} % 40))
runs=1
[[ ${1:-} == --soak ]] && runs=40
for ((seed = first; seed < first + runs; seed++)); do
	good=not
	if env -u TMPDIR "$sim" --story queue-random --seed "$seed" --trace >"$T/log" &&
		tests/sim/queue_replay.py <"$T/log" >"$T/said"; then
		good=
	fi
	sed 's/^\([^#]\)/# \1/' "$T/said"
	grep '^# .* s: ' "$T/log"
	echo "${good:+not }ok $((seed - first + 1)) - no rule of the queue is broken, seed $seed"
done
good=not
env -u TMPDIR "$sim" --story queue-renewed --seed 3 >"$T/said" && good=
sed -n 's/^not ok/# &/p' "$T/said"
echo "${good:+not }ok $((runs + 1)) - a job that starts is not taken to stay for ever, seed 3"
echo "1..$((runs + 1))"
