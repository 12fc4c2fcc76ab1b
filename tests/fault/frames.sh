#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Real sessions with weftd, mutated: HTTP/2 frames, gRPC and protobuf messages.
# WEFT_SEED; WEFT_SECONDS (6).
cd "$(dirname "$0")" || exit 1
. ../lib.sh

emulators && fabric "$T/fabric.yaml" 'UniRing(2,4)'
tap "a fabric of emulators"
daemon
/usr/bin/python3 frames.py "$SOCK" "${PID[weftd]}" "${WEFT_SECONDS:=6}" \
	"${WEFT_SEED:=$RANDOM}" "$(command -v weft)" "$T/fabric.yaml" \
	>"$T/py" 2>&1 </dev/null
status=$?
while read -r line; do
	case $line in
	"pass "*) tap "${line#pass }" 0 ;;
	*) echo "# $line" ;;
	esac
done <"$T/py"
tap "to the end" $status
expect 0 "it applies a fabric" weft apply -f "$T/fabric.yaml"
expect 0 "and proves it" weft verify
kill -TERM "${PID[weftd]}"
wait "${PID[weftd]}"
tap "it stops without a leak"
finish
