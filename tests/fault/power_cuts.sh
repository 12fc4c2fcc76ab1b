#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The power fails at a random write of weftd, CUTS times: what was not synced is there or not, by
# sectors. After each what was acknowledged is there, and weftd goes on by itself.
cd "$(dirname "$0")" || exit 1
. ../lib.sh
CUTS=${CUTS:-4} SEED=${SEED:-$$}
SHIM=$BUILD/release/tests/fault/power_cut.so
RANDOM=$SEED
echo "# SEED=$SEED CUTS=$CUTS"
emulators || exit 1
fabric "$T/a.yaml" 'UniRing(2,4)'
DEPTH=2 fabric "$T/b.yaml" 'Ring(4)'
daemon || exit 1
expect 0 "a fabric" weft apply -f "$T/a.yaml"
stop weftd

# What was acknowledged: whether h3 is held, and the newest committed change; and what was asked
# for last, without an answer.
held=no last=1 asked=
ask() { # WHAT COMMAND...: false when there was no answer
	asked=$1
	shift
	"$@" >"$T/out" 2>"$T/err" </dev/null
	case $? in
	0) ;;
	69) return 1 ;;	# weftd is gone
	*) [[ $asked == apply ]] || { sed 's/^/# /' "$T/err"; return 1; } ;;
	esac
	case $asked in
	drain) held=yes ;;
	undrain) held=no ;;
	*) last=$(sed -nE 's/^change +([0-9]+)$/\1/p' "$T/out"); last=${last:-0} ;;
	esac
}

# What is there against what was told; `asked` may have been done or not.
check() {
	local now
	weft history --format json >"$T/history"
	[[ $last == 0 ]] || jq -e --argjson id "$last" '.changes[] | select(.id == $id and .outcome == "committed")' \
		"$T/history" >"$T/found" || { echo "# change $last was committed, they say"; return 1; }
	now=$(weft status --format json | jq -r 'if any(.holds[]?; .target == "h3") then "yes" else "no" end')
	[[ $now == "$held" || $asked == drain || $asked == undrain ]] || { echo "# drained: $now, told: $held"; return 1; }
	held=$now
}

lost=0 reached=0
for ((n = 1; n <= CUTS; n++)); do
	at=$((RANDOM % 250 + 1))
	env LD_PRELOAD="$SHIM" WEFT_CUT_DIR="$STATE/" WEFT_CUT_AT=$at WEFT_CUT_SEED=$RANDOM \
		weftd --socket "$SOCK" --state-dir "$STATE" >>"$T/weftd.log" 2>&1 </dev/null &
	pid=$!
	PID[weftd]=$pid
	wait_for 10 eval "weft wait --for ready --timeout 1s || ! kill -0 $pid" || true
	for ((k = 0; k < 40; k++)); do
		kill -0 "$pid" 2>/dev/null || break
		ask drain weft drain h3 && ask apply weft apply -f "$T/b.yaml" &&
			ask undrain weft undrain h3 && ask apply weft apply -f "$T/a.yaml" || break
	done
	wait "$pid" 2>/dev/null
	[[ $? == 137 ]] && ((reached++))
	unset 'PID[weftd]'
	daemon || { lost=1; break; }
	grep -n 'its copy is used' "$T/weftd.log" && { lost=1; break; }
	weft wait --for ready --timeout 30s >/dev/null 2>&1
	check || { echo "# cut $n, at write $at"; lost=1; break; }
	asked=
	stop weftd
done
[[ $lost == 0 ]]
tap "nothing that was acknowledged is lost"
((reached * 4 >= CUTS * 3))
tap "most cuts were reached ($reached of $CUTS)"
finish
