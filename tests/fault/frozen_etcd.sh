#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A real etcd stands still (SIGSTOP), for less than its leader's lease: status, events and metrics are answered,
# and how fast is told. FROZEN=SECONDS (3)
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
finish
