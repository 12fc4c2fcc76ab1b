#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Faults that are planted in weft are found, each by the rules that are there for it: by seeds, or
# where these take hundreds, by a story; --soak: not-read-back by seeds as well. Which seed it is
# differs from commit to commit.
#
# BUILD=FOLDER of the programs (build)
cd "$(dirname "$0")/../../.." || exit 1
SIM=${BUILD:-build}/release/weft-sim
n=0
bad=0

# broken NAME RULES ARGUMENT...: by which of the rules, an expression, that run fails
broken() {
	timeout 100 "$SIM" --plant "$1" --no-shrink --known /dev/null "${@:3}" | grep -aE "^# [0-9.]+ s: ($2): "
}
# says NAME WHERE WHAT: nothing was found when WHAT is ""
says() {
	n=$((n + 1))
	[[ -n $3 ]] || bad=1
	echo "$([[ -n $3 ]] || echo 'not ')ok $n - planted: $1 is found, $2"
	[[ -z $3 ]] || echo "$3"
}
# by_seeds LAST NAME RULES [ARGUMENT...]: by one of the seeds from 1; FIRST, which found it lately, is the
# first to be asked
by_seeds() {
	local seed said
	for seed in ${FIRST:-} $(seq "$1"); do
		said=$(broken "$2" "$3" --seed "$seed" "${@:4}") && break
	done
	says "$2" "seed $seed" "$said"
}
by_story() { # STORY NAME RULES
	says "$2" "story $1" "$(broken "$2" "$3" --story "$1")"
}

by_seeds 20 late-journal "journal first" --seconds 25
by_seeds 20 no-sync "journal first" --seconds 25
FIRST=5 by_seeds 20 light-of-others "journal first|light of others" --seconds 25
by_seeds 20 told-early "behind|copies differ" --seconds 25
by_seeds 20 skipped-entry "copies differ|no copy|behind" --seconds 25
by_seeds 20 host-twice "one job a host" --seconds 25
by_seeds 20 lost-event "events" --seconds 25
by_seeds 60 lost-on-resume "events" --seconds 25
FIRST=12 by_seeds 60 no-undo "unexplained light" --seconds 25
by_story turns-frozen-in-change no-lease "one leader"
by_story slow-disk sync-at-once "loop syncs"
by_story ignored-port not-read-back "committed dark"
if [[ ${1:-} == --soak ]]; then
	by_seeds 1000 not-read-back "committed dark"
fi
echo "1..$n"
exit "$bad"
