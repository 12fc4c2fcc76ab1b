#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Circuits that many ask for: 20 clients make and remove ADDS of them (1000) on eight ports a side,
# so that most hear that others have these, while weftd is killed every few seconds. Judged by the emulator's
# own map: a circuit that was said to be made is there until its client removes it, and at the end
# there is none.
source "$(dirname "$0")/../lib.sh"
CLIENTS=20
ADDS=${ADDS:-1000}
emulator ocs0 polatis-scpi 16x16 || exit 1
bed "$T/fabric.yaml"
daemon || exit 1
expect 0 "the fabric" weft apply -f "$T/fabric.yaml"

lit() { # IN OUT: both ways, in the emulator
	map ocs0 >"$T/map.$BASHPID"
	grep -qx "$1,$2" "$T/map.$BASHPID" && grep -qx "$2,$1" "$T/map.$BASHPID"
}

# settle COMMAND...: again until its outcome is known: neither weftd away nor a change that its end
# took back.
settle() {
	local rc
	while :; do
		timeout 60 "$@" >"$T/out.$BASHPID" 2>"$T/err.$BASHPID"
		rc=$?
		case $rc in
		0 | 65 | 75) return $rc ;;
		esac
		echo "$rc" >>"$T/unknown"
		sleep 0.2
	done
}

client() { # NUMBER: a line of $T/said for each of what it did and saw
	local a b name made=0
	for ((i = 0; made < ADDS / CLIENTS; i++)); do
		name=c$1-$i
		a=$((RANDOM % 8))
		b=$((RANDOM % 8))
		settle weft circuit add "dut.p$a" "tg1.p$b" --name "$name" --request-id "$name"
		case $? in
		0)
			made=$((made + 1))
			lit $a $((b + 8)) && echo made || echo "false success: $name $a $b"
			sleep "0.$((RANDOM % 3))"
			lit $a $((b + 8)) || echo "displaced: $name $a $b"
			settle weft circuit remove "$name"
			echo removed
			;;
		75)
			echo held
			sleep "0.$((RANDOM % 10))"
			;;
		*) echo "refused: $(<"$T/err.$BASHPID")" ;;
		esac
	done >>"$T/said"
}

clients=()
for ((k = 0; k < CLIENTS; k++)); do
	client $k &
	PID[client$k]=$!
	clients+=($!)
done
kills=0
started=0
while for p in "${clients[@]}"; do kill -0 "$p" 2>>"$T/gone" && break; done; do
	sleep "$((RANDOM % 3 + 1)).$((RANDOM % 10))"
	stop weftd KILL
	kills=$((kills + 1))
	daemon && started=$((started + 1))
done
[[ $kills == "$started" ]]
tap "weftd was killed $kills times, and started again"
count() { grep -c "^$1" "$T/said"; }
echo "# $(count made) made, $(count removed) removed, $(count held) held, $(count refused) refused;" \
	"$(wc -l <"$T/unknown" 2>/dev/null || echo 0) outcomes were asked for again"
[[ $(count made) == $((ADDS / CLIENTS * CLIENTS)) && $(count removed) == $(count made) ]]
tap "all were made and removed"
! grep '^false' "$T/said"
tap "no false success"
! grep '^displaced' "$T/said"
tap "no port was taken"
! grep '^refused' "$T/said"
tap "nothing else was refused"
none() { [[ -z $(map ocs0) && $(weft circuit list --format json | jq '.circuits | length') == 0 ]]; }
wait_for 60 none
tap "no circuit is left"
finish
