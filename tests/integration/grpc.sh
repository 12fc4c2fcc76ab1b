#!/bin/bash
# A standard client, Python's grpcio, against a real weftd: it knows of the
# interface only what the .proto files say.
cd "$(dirname "$0")" || exit 1
. ../lib.sh

# shellcheck disable=SC2046
protoc -I "$TOP/proto" --include_imports --descriptor_set_out="$T/set.pb" \
	$(cd "$TOP/proto" && echo weft/v1/*.proto grpc/*/*/*.proto)
tap "protoc reads the interface"
emulators && fabric "$T/fabric.yaml" 'UniRing(2,4)'
tap "a fabric of emulators"
daemon
expect 0 "weftd applies it" weft apply -f "$T/fabric.yaml" -m first

# client TEST...
client() {
	local status line
	/usr/bin/python3 grpc_client.py "$T/set.pb" "$SOCK" "${PID[weftd]}" \
		"$@" >"$T/py" 2>&1
	status=$?
	while read -r line; do
		case $line in
		"pass "*) tap "${line#pass }" 0 ;;
		*) echo "# $line" ;;
		esac
	done <"$T/py"
	tap "grpcio: $*" $status
}

client unary stream errors health deadline reflection stopping
wait "${PID[weftd]}"
tap "weftd exits with 0"
unset "PID[weftd]"
kill -STOP "${PID[ocs0]}"
daemon
client starting
kill -CONT "${PID[ocs0]}"
finish
