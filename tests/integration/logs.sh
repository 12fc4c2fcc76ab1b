#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What weftd logs, how much of it, in which form; and whose work it says it is.
cd "$(dirname "$0")" || exit 1
. ../lib.sh

TRACE=4bf92f3577b34da6a3ce929d0e0e4736
PARENT=00-$TRACE-00f067aa0ba902b7-01

emulators && fabric "$T/fabric.yaml" 'UniRing(2,4)'
tap "a fabric of emulators"

# ---- levels ----------------------------------------------------------------

DAEMON_OPTIONS=(--log-level warn,weftd=info --log-format json)
daemon
expect 0 "the levels are shown" weft log
has out "the one that was given" '^ *weftd +info'
has out "and the others" '^ *drivers +warn'
expect 0 "one is changed" weft log drivers=debug
has out "and shown" '^ *drivers +debug'
has out "the others stay" '^ *rpc +warn'
expect 65 "no such level" weft log loud
has err "is said" 'not error, warn, info or debug'
expect 65 "no such room" weft log warn,cellar=debug
has err "is said, and nothing is changed" 'no room that logs'
expect 0 "as" weft log
has out "one sees" '^ *drivers +debug'
expect 64 "weftd starts with no such level" weftd --log-level loud
has err "and says so" '^weftd: --log-level'

# ---- traces and fields -----------------------------------------------------

weft watch -n 3 --format json >"$T/events" 2>&1 </dev/null &
PID[watch]=$!
wait_for 10 grep -q resync "$T/events"
expect 0 "a change with a trace" env TRACEPARENT=$PARENT \
	weft apply -f "$T/fabric.yaml" -m first
expect 0 "its history" weft history --format json
[[ $(jq -r '.changes[0].trace_id' "$T/out") == "$TRACE" ]]
tap "has the trace"
wait_for 10 grep -q "\"trace_id\":\"$TRACE\"" "$T/events"
tap "events have it too"
expect 0 "a change without one" env TRACEPARENT=not-one \
	weft apply -f "$T/fabric.yaml"
expect 0 "its history" weft history --format json
grep -F '"outcome":"committed"' "$T/weftd.log" | grep -qF "\"trace\":\"$TRACE\""
tap "the log has outcome and trace"
[[ $(grep -c '"trace"' "$T/weftd.log") == 1 ]]
tap "what is no trace is none"
[[ $(jq -c 'has("time") and has("level") and has("room") and has("message")' \
	"$T/weftd.log" | sort -u) == true ]]
tap "every line is JSON"
stop ocs0
expect 69 "a dead device" weft verify
grep -qF '"device":"ocs0"' "$T/weftd.log"
tap "is a field of its line"
stop weftd

# ---- the journal -----------------------------------------------------------

# A journal of our own, in a namespace where no other process sees it.
inside='
mkdir -p /run/systemd && mount -t tmpfs tmpfs /run/systemd &&
mkdir /run/systemd/journal || exit 77
nc -lukU /run/systemd/journal/socket >"$1/journal" 2>/dev/null </dev/null &
listener=$!
for _ in $(seq 100); do [ -S /run/systemd/journal/socket ] && break; sleep 0.05; done
touch "$1/stderr"
export JOURNAL_STREAM=$(stat -c %d:%i "$1/stderr")
"$2" --socket "$1/j.sock" --state-dir "$1/j" 2>"$1/stderr" &
weftd=$!
for _ in $(seq 100); do grep -q listening "$1/journal" && break; sleep 0.05; done
kill $weftd && wait $weftd
kill $listener
'
if [[ $(id -u) == 0 ]] && unshare -m --propagation private \
	bash -c "$inside" inside "$T" "$(command -v weftd)" >"$T/out" 2>"$T/err"; then
	grep -aq '^MESSAGE=listening on ' "$T/journal"
	tap "the journal has the message"
	grep -aq '^PRIORITY=5' "$T/journal" && grep -aq '^WEFT_ROOM=weftd' "$T/journal"
	tap "with priority and room"
	[[ ! -s $T/stderr ]]
	tap "and standard error has nothing"
else
	echo "ok $((++TAP_N)) - the journal # SKIP needs root and mounts"
fi
finish
