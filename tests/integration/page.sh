#!/bin/bash
# The page that weftd serves: in a headless browser, and its server under bad
# manners. The browser's part is skipped where Chromium cannot be started.
cd "$(dirname "$0")" || exit 1
. ../lib.sh
asan_daemon

emulators && fabric "$T/fabric.yaml" 'UniRing(2,4)'
sed -i 's/settle_ms: 20/settle_ms: 700/' "$T/fabric.yaml"
tap "a fabric of emulators"
DAEMON_OPTIONS=(--page 127.0.0.1:0)
daemon
URL=$(sed -n 's/.*page on \(http.*\)$/\1/p' "$T/weftd.log")
[[ -n $URL ]]
tap "the log tells the address"
expect 0 "an apply" weft apply -f "$T/fabric.yaml"

# client TEST...: the tests of these names; weftd is stopped and started again
# when they say so.
client() {
	local line reached=0
	mkdir -p "$T/browser"
	while read -r line; do
		case $line in
		"pass "*)
			tap "${line#pass }" 0
			reached=$((reached + 1))
			;;
		missing*)
			echo "ok $((++TAP_N)) - in a browser # SKIP ${line#missing }"
			return 0
			;;
		stop) stop weftd ;;
		start) daemon ;;
		*) echo "# $line" ;;
		esac
	done < <(/usr/bin/python3 page_client.py "$URL" "$T/browser" "$@" 2>&1)
	[[ $reached == $# ]] || tap "all of: $*" 1
}

client traversal methods rebinding headers huge_headers slow_client many_connections live_answer
client loads pictures wavelengths live hostile_names differences keyboard names without_colour \
	schemes narrow outside

# The port is known now, so that weftd comes back where it was.
PORT=${URL##*:}
DAEMON_OPTIONS=(--page "127.0.0.1:${PORT%/}")
client restart
expect 65 "only on loopback" weftd --socket "$T/s2" --state-dir "$T/state2" --page 0.0.0.0:0
has err "which is said" 'not a loopback address'
expect 64 "an address that is none" weftd --page 8080
stop weftd
! grep -E 'ERROR: |runtime error' "$T/weftd.log"
tap "nothing was found by the sanitizers"
finish
