#!/bin/bash
# Random faults during applies, by a seed: devices misbehave, weftd is killed
# or stopped, the client is interrupted, and clients race. After each apply
# four things are counted, and all must be 0:
#
#   lost         intent is neither the old nor the new generation, or an
#                apply that succeeded is not what the store then holds
#   unexplained  circuits that neither intent nor an open change knows
#   touched      circuits gone that no plan named: of another user, or
#                common to the old and the new fabric
#   false        an apply that succeeded and the switch or ring disagrees
#
# WEFT_SEED chooses the run (printed; random if unset), WEFT_SECONDS its length
# (900).
source "$(dirname "$0")/../lib.sh"
BIN=$BUILD/asan
PATH=$BIN:$PATH
RANDOM=${WEFT_SEED:=$((RANDOM + 1))}
emulator ocs0 polatis-scpi 10x10 && emulator ring0 mrr-reg 8x4 || exit 1
fabric "$T/a.yaml" 'UniRing(1,4)'
DEPTH=2 fabric "$T/b.yaml" 'Ring(4)'
fabric "$T/c.yaml" 'UniRing(2,4)'
sed -i 's/size: 8x8/size: 10x10/' "$T"/[abc].yaml
daemon || exit 1
weft apply -f "$T/a.yaml" >"$T/out" 2>&1 || { cat "$T/out"; exit 1; }
# Somebody else's circuit, on ports that no fibre of the fabric reaches.
FOREIGN=8,9
control ocs0 "set $FOREIGN" >"$T/out"

SWITCH_FAULTS=(refuse silence silence-set eat-set drop-set drop-reply garbage
	duplicate late=700 slow=30 bytewise lost=5 port-failed=o5
	port-disabled=i3 refuse-port=o5 ignore-port=o5 half=1 chain-stop
	queue-full drop-set=2 garbage=3 drop-reply=4)
RING_FAULTS=(refuse silence silence-set eat-set drop-set drop-reply garbage
	duplicate late=700 slow=5 bytewise nack corrupt-shadow corrupt-active
	ignore-commit interlock no-wave=3:1 not-in-range=2:0
	duplicate-lock=1:1 zero-lock=4:2 lol=5:0)

pairs() { control ocs0 map | grep , | sort; }

settled() {
	weft status --format json >"$T/status" 2>/dev/null &&
		jq -e '.state != "reading" and .state != "changing"' "$T/status"
}

# Back to a fabric without faults, whatever the last round left.
heal() {
	control ocs0 clear >"$T/ctl"
	control ring0 clear >"$T/ctl"
	control ocs0 "set $FOREIGN" >"$T/ctl"
	wait_for 10 weft apply --mode update -f "$1"
}

lost=0 unexplained=0 touched=0 false=0 stuck=0 rounds=0
declare -A EXITS
# bad COUNTER TEXT: counts and says how to see it again.
bad() {
	local -n counter=$1
	counter=$((counter + 1))
	echo "# $1 in round $rounds (seed $WEFT_SEED): $story: ${*:2}"
	sed 's/^/#   err: /' "$T/err" | tail -n 5
}

# disturb HOW: the client or the daemon, while an apply runs.
disturb() {
	sleep "0.0$((RANDOM % 9))"
	case $1 in
	kill) stop weftd KILL ;;
	term) stop weftd TERM ;;
	interrupt) kill -INT "$client" 2>/dev/null ;;
	race) weft apply -f "$T/a.yaml" >"$T/race" 2>&1 ;;
	esac
}

round() {
	local target how old fault device generation now got
	target=$T/$(echo "a b c" | cut -d ' ' -f $((RANDOM % 3 + 1))).yaml
	if ((RANDOM % 2)); then
		device=ocs0 fault=${SWITCH_FAULTS[RANDOM % ${#SWITCH_FAULTS[@]}]}
	else
		device=ring0 fault=${RING_FAULTS[RANDOM % ${#RING_FAULTS[@]}]}
	fi
	how=$(echo "- - - kill term interrupt race" | cut -d ' ' -f $((RANDOM % 7 + 1)))
	story="$(basename "$target"), $device $fault, $how"
	generation=$(weft status --format json | jq .generation)
	old=$(pairs)
	weft plan -f "$target" --format json >"$T/plan" 2>/dev/null
	jq -r '.devices[] | select(.kind == "switch") | .delete[] |
		"\(.in - 1),\(.out - 1)"' "$T/plan" | sort >"$T/deletes"
	control "$device" "fault $fault" >"$T/ctl"
	weft apply -f "$target" >"$T/out" 2>"$T/err" </dev/null &
	client=$!
	disturb "$how"
	wait "$client"
	got=$?
	EXITS[$got]=$((${EXITS[$got]:-0} + 1))
	now=$(pairs)
	control ocs0 clear >"$T/ctl"
	control ring0 clear >"$T/ctl"
	[[ -n ${PID[weftd]:-} ]] || daemon || exit 1
	wait_for 10 settled || bad stuck "weftd does not settle"
	wait_for 3 weft verify || [[ $? == 1 ]]
	weft status --format json >"$T/status" 2>/dev/null

	jq -e --argjson g "$generation" --arg how "$how" \
		'.generation >= $g and .generation <= $g + (if $how == "race" then 2 else 1 end)' \
		"$T/status" >/dev/null || bad lost "generation $(jq .generation "$T/status") after $generation"
	if [[ $got == 0 && $how != race && $fault != lost* ]]; then
		weft diff >"$T/diff" 2>&1
		[[ $(jq -r .last_change.config "$T/status") == "$target" ||
			$(jq .nothing_to_do "$T/plan") == true ]] ||
			bad lost "the store holds $(jq -c .last_change "$T/status")"
		jq -e '[.devices[].missing[]] == [] and
			all(.devices[]; .program == null or .program.equal)' \
			"$T/status" >/dev/null || bad false "$(cat "$T/diff")"
	fi
	jq -e '[.devices[].unexpected[] | "\(.in - 1),\(.out - 1)"] - ["'$FOREIGN'"] == []' \
		"$T/status" >/dev/null ||
		bad unexplained "$(jq -c '[.devices[].unexpected]' "$T/status")"
	# A race has two plans, and a lost map is the switch's own doing.
	if [[ $how != race && $fault != lost* ]]; then
		comm -23 <(echo "$old") <(echo "$now") | comm -23 - "$T/deletes" \
			>"$T/gone"
		[[ -s $T/gone ]] && bad touched "$(tr '\n' ' ' <"$T/gone")"
	fi
	heal "$target" || bad stuck "no apply succeeds without faults"
}

while ((SECONDS < ${WEFT_SECONDS:-900} || rounds < 4)); do
	rounds=$((rounds + 1))
	round
done
for code in "${!EXITS[@]}"; do
	echo "# exit $code: ${EXITS[$code]} applies"
done
echo "# seed $WEFT_SEED, $rounds applies: lost $lost, unexplained $unexplained, touched $touched, false $false, stuck $stuck"
for count in lost unexplained touched false stuck; do
	((${!count} == 0))
	tap "no $count in applies under random faults"
done
((rounds > 0 && ${#EXITS[@]} > 1))
tap "applies both succeeded and failed"
stop weftd
grep -q 'ERROR: \|runtime error' "$T/weftd.log"
[[ $? == 1 ]]
tap "the sanitizers found nothing in weftd"
finish
