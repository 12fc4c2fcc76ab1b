#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A real etcd stands still (SIGSTOP), for less than its leader's lease: status, events and metrics are answered,
# and how fast is told. Then for longer: weftd ends, and as its unit starts it again it answers from its own
# store. FROZEN=SECONDS (3)
source "$(dirname "$0")/../lib.sh"
export FROZEN=${FROZEN:-3}

etcd_alone
emulators && fabric "$T/fabric.yaml" 'UniRing(2,4)' || exit 1
# There is a sign of life meanwhile, and two thirds of the lease are never over.
DAEMON_OPTIONS=(--etcd "$ETCD" --lease $((4 * FROZEN)) --metrics 127.0.0.1:0)
daemon && wait_for 30 weft apply -f "$T/fabric.yaml"
tap "a leader by etcd, with a fabric"
protoc -I "$TOP/proto" --include_imports --descriptor_set_out="$T/set.pb" "$TOP"/proto/weft/v1/weft.proto
METRICS=http://127.0.0.1:$(sed -n 's/.*metrics on 127.0.0.1 port //p' "$T/weftd.log" | tail -n 1)/metrics ETCD_PID=${PID[etcd]} \
	/usr/bin/python3 "$TOP/tests/integration/grpc_client.py" "$T/set.pb" "$SOCK" "${PID[weftd]}" frozen >"$T/py" 2>&1
status=$?
kill -CONT "${PID[etcd]}"
while read -r line; do
	case $line in
	"pass "*) tap "${line#pass }" 0 ;;
	*) echo "# $line" ;;
	esac
done <"$T/py"
tap "all of it" $status
! grep 'leads no more' "$T/weftd.log"
tap "and the same one leads"

stop weftd
DAEMON_OPTIONS=(--etcd "$ETCD" --lease 2)
is_ready() { weft status --format json | jq -e '.state == "ready"'; }
daemon && wait_for 30 is_ready
tap "again, with a lease of 2 s"
kill -STOP "${PID[etcd]}"
weft drain h2 >"$T/out" 2>"$T/err" &
PID[drain]=$!
wait "${PID[weftd]}"
[[ $? == 75 ]]
tap "who does not know what etcd has when the lease is over ends"
wait "${PID[drain]}"
[[ $? == 69 ]]
tap "what was asked for is not acknowledged"
unset 'PID[drain]'
ended=${EPOCHREALTIME/[.,]/}
delay=$(sed -n 's/^RestartSec=\([0-9]*\)ms$/\1/p' "$TOP/configs/systemd/weftd.service")
sleep "$(printf '0.%03d' "$delay")"
daemon
tap "its unit starts it again, and it answers"
echo "# $(((${EPOCHREALTIME/[.,]/} - ended) / 1000)) ms after its end"
expect 0 "from its own store" weft status --format json
jq -e '.state == "standby" and .generation == 2 and any(.holds[]; .target == "h3")' "$T/out" >"$T/found"
tap "as one that does not lead"
kill -CONT "${PID[etcd]}"
wait_for 30 is_ready
tap "it leads when etcd goes on"
finish
