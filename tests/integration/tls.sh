#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# weftd over TCP: certificates, roles, reading both again.
cd "$(dirname "$0")" || exit 1
. ../lib.sh

mkdir "$T/certs" && ../certs "$T/certs" 2>"$T/openssl" || cat "$T/openssl"
export CERTS=$T/certs
cat >"$T/access" <<-END
	operator certificate CN=ops,O=Site
	viewer   certificate CN=look,O=Site
END
# shellcheck disable=SC2046
protoc -I "$TOP/proto" --include_imports --descriptor_set_out="$T/set.pb" \
	$(cd "$TOP/proto" && echo weft/v1/*.proto grpc/*/*/*.proto)
emulators && fabric "$T/fabric.yaml" 'UniRing(2,4)'
tap "a fabric of emulators"
DAEMON_OPTIONS=(--listen 127.0.0.1:0 --tls-cert "$CERTS/server.pem"
	--tls-key "$CERTS/server.key" --tls-ca "$CERTS/ca.pem"
	--tls-crl "$CERTS/crl.pem" --access "$T/access")
daemon
port=$(sed -n 's/.*listening on 127.0.0.1 port \([0-9]*\).*/\1/p' "$T/weftd.log")
[[ -n $port ]]
tap "weftd says which port it has"

# as NAME ARGUMENT...: weft over TCP with that certificate.
as() {
	local name=$1
	shift
	weft --server "localhost:$port" --tls-cert "$CERTS/$name.pem" \
		--tls-key "$CERTS/$name.key" --tls-ca "$CERTS/ca.pem" "$@"
}

expect 0 "an operator applies over TCP" as ops apply -f "$T/fabric.yaml"
expect 0 "a viewer plans" as look plan -f "$T/fabric.yaml"
sed -i 's/UniRing(2,4)/UniRing(1,4)/' "$T/fabric.yaml"
expect 77 "a viewer may not apply" as look apply -f "$T/fabric.yaml"
has err "and is told why" 'CN=look,O=Site has the role viewer; this needs operator'
grep -q 'access.*Apply refused to CN=look,O=Site' "$T/weftd.log"
tap "the refusal is in the log"
expect 77 "a revoked certificate" as gone status
has err "is named so" 'certificate revoked'
expect 77 "an authority that weftd does not know" as alien status
expect 64 "no certificate" weft --server "localhost:$port" status
expect 65 "a certificate that is not there" as nothing status
expect 69 "no server listens" as ops --server localhost:1 status

# agrees OPTION...: whether TLS is agreed on so.
agrees() {
	timeout 20 openssl s_client -connect "localhost:$port" -alpn h2 -cert "$CERTS/ops.pem" \
		-key "$CERTS/ops.key" -CAfile "$CERTS/ca.pem" "$@" </dev/null >"$T/agreed" 2>&1
	grep -qE '^New, TLSv1\.[23], Cipher is [A-Z]' "$T/agreed"
}

good='ECDHE+AESGCM:ECDHE+CHACHA20'
agrees -tls1_3 && agrees -tls1_2 -cipher "$good"
tap "TLS 1.3, and 1.2 with AEAD suites and forward secrecy"
! agrees -tls1_2 -cipher "ALL:!AESGCM:!CHACHA20:!AESCCM@SECLEVEL=0"
tap "no suites with CBC"
! agrees -tls1_1 -cipher "ALL@SECLEVEL=0"
tap "no TLS 1.1"

client() { # NAME TEST...
	local status line
	NAME=$1 /usr/bin/python3 grpc_client.py "$T/set.pb" "localhost:$port" \
		"${PID[weftd]}" "${@:2}" >"$T/py" 2>&1
	status=$?
	while read -r line; do
		case $line in
		"pass "*) tap "$1: ${line#pass }" 0 ;;
		*) [[ $status == 0 ]] || echo "# $line" ;;
		esac
	done <"$T/py"
	tap "grpcio as $1: ${*:2}" $status
}

client look viewer
client jobs unknown_client
client alien stranger
client gone stranger
client ops unary stream errors health deadline reflection crowd

# The access file and the certificates change under a stream.
NAME=ops /usr/bin/python3 - "$port" >"$T/stream" 2>&1 <<-'END' &
	import os, sys, grpc
	certs = os.environ["CERTS"]
	read = lambda name: open(os.path.join(certs, name), "rb").read()
	channel = grpc.secure_channel("localhost:" + sys.argv[1],
	    grpc.ssl_channel_credentials(read("ca.pem"), read("ops.key"),
	                                 read("ops.pem")))
	for answer in channel.unary_stream("/grpc.health.v1.Health/Watch")(b""):
	    print("told", answer.hex(), flush=True)
END
PID[stream]=$!
wait_for 20 grep -q 'told 0801' "$T/stream"
tap "a stream is open"
echo "operator certificate CN=jobs,O=Site" >"$T/access"
echo "no certificate" >"$CERTS/server.pem"
kill -HUP "${PID[weftd]}"
wait_for 10 grep -q 'certificates: .*server.pem: certificate: .*stays in use' "$T/weftd.log"
tap "a certificate that is no good is refused, and the old one used"
expect 77 "a grant that is gone" as ops status
expect 0 "a grant that is new" as jobs status
kill -0 "${PID[stream]}"
tap "the stream goes on"
stop weftd
wait "${PID[stream]}" 2>/dev/null
unset "PID[stream]"
grep -q 'told 0802' "$T/stream"
tap "and hears that weftd stops"
finish
