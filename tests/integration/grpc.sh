#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A standard client, Python's grpcio, against a real weftd: it knows of the
# interface only what the .proto files say.
cd "$(dirname "$0")" || exit 1
. ../lib.sh

# shellcheck disable=SC2046
protoc -I "$TOP/proto" --include_imports --descriptor_set_out="$T/set.pb" \
	$(cd "$TOP/proto" && echo weft/v1/*.proto grpc/*/*/*.proto)
tap "protoc reads the interface"
# What clients know of google.rpc, by the numbers of its fields.
cat >"$T/google.proto" <<-END
	syntax = "proto3";
	package google.rpc;
	message Any { string type_url = 1; bytes value = 2; }
	message Status { int32 code = 1; string message = 2; repeated Any details = 3; }
	message ResourceInfo { string resource_type = 1; string resource_name = 2; string owner = 3; string description = 4; }
	message ErrorInfo { string reason = 1; string domain = 2; map<string, string> metadata = 3; }
END
protoc -I "$T" --descriptor_set_out="$T/google.pb" "$T/google.proto" &&
	cat "$T/google.pb" >>"$T/set.pb"
tap "protoc reads google.rpc"
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

client unary brief stream errors details mistakes health deadline reflection watchers crowd
control ocs0 "fault refuse-port=o5" >/dev/null
fabric "$T/other.yaml" 'Ring(4)'
FABRIC=$T/other.yaml client failed_circuits
control ocs0 clear >/dev/null
client stopping
wait_for 20 sh -c "! kill -0 ${PID[weftd]}" && wait "${PID[weftd]}"
tap "weftd exits with 0"
stop weftd KILL
kill -STOP "${PID[ocs0]}"
daemon
client starting
kill -CONT "${PID[ocs0]}"
finish
