#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Devices that send events unasked: what another user did to them is
# found at once, without a round of readings; watchers hear their words; and a
# robot tells how far it is. Once over real sockets: tests/sim/stories/report_stories.c has
# another robot, alarms, and a device that never stops talking.
source "$(dirname "$0")/../lib.sh"
emulator tl1 polatis-tl1 8x8 || exit 1
emulator rome rome-cli 8x8 || exit 1

part() { # NAME DRIVER OPTIONS: a switch or panel with four hosts of its own
	cat <<-END
	  - name: $1
	    size: 8x8
	    driver: $2
	    address: ${ADDR[$1]}
	    timeout: 10s
	    options: { gap_ms: 0$3 }
	END
}
cat >"$T/f.yaml" <<END
weft: 1
fabric: talkative
hosts:
  - { name: "a[0-3]", ports: "p[0-1]", rate: 100Gbps }
  - { name: "b[0-3]", ports: "p[0-1]", rate: 100Gbps }
switches:
$(part tl1 polatis-tl1 "")
panels:
$(part rome rome-cli ", poll_ms: 20")
fibres:
  - { from: "a[0-3].p[0-1]", to: "tl1.[1-8]" }
  - { from: "b[0-3].p[0-1]", to: "rome.[1-8]" }
jobs:
  - { name: ja, nodes: "a[0-3]", collective: allreduce, size: 1MiB, topology: "UniRing(1,4)" }
  - { name: jb, nodes: "b[0-3]", collective: allreduce, size: 1MiB, topology: "UniRing(1,4)" }
END
DAEMON_OPTIONS=(--poll 0)
daemon || exit 1
control rome "fault move=120" >"$T/out"
expect 0 "a robot and a switch are patched" weft apply -f "$T/f.yaml"
has err "the robot tells how far it is" \
	'rome: .*[1-3] of 4 moves are over, about [0-9]+ s left'
weft watch --format json >"$T/watch" 2>"$T/watch.err" </dev/null &
PID[watch]=$!
wait_for 10 grep -q resync "$T/watch"
tap "a client watches"

told() { # DEVICE PATTERN
	grep -E "\"kind\":\"device-report\".*\"device\":\"$1\".*\"port\":\"in [0-9]+\"" \
		"$T/watch" | grep -qE "$2"
}
drifted() { # DEVICE
	grep -F '"kind":"drift-found"' "$T/watch" | grep -F "\"device\":\"$1\"" |
		grep -qF '1 missing'
}
healed() { # DEVICE
	grep -qE "\"kind\":\"drift-resolved\".*\"device\":\"$1\"" "$T/watch"
}
declare -A WORDS=([tl1]='REPT EVT.*noc' [rome]='OP:disconnect')
for name in tl1 rome; do
	before=$(sets $name)
	circuit=$(control $name map | head -n 1)
	control $name "unset $circuit" >"$T/out"
	wait_for 20 told $name "${WORDS[$name]}"
	tap "$name: its words reach those who watch, with the port"
	wait_for 20 drifted $name
	tap "$name: the missing circuit is found without a round of readings"
	control $name "set $circuit" >"$T/out"
	wait_for 20 healed $name
	tap "$name: and so is its return"
	[[ $(sets $name) == "$before" ]]
	tap "$name: nothing was sent"
done
finish
