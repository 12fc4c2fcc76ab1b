#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# needs: outside network
# A standard client, @grpc/grpc-js, against a real weftd: it knows of the
# interface only what the .proto files say. It comes from the npm registry into
# the build folder; without Node or the registry this is skipped. From there comes buf, too,
# whose STANDARD lint the interface keeps.
cd "$(dirname "$0")" || exit 1
. ../lib.sh
MODULES=$BUILD/npm/node_modules

skip() {
	echo "ok 1 - grpc-js # SKIP $*"
	echo "1..1"
	exit 0
}
type node npm >/dev/null 2>&1 || skip "node and npm are not installed"
[[ -d $MODULES/@grpc/grpc-js ]] ||
	timeout 120 npm install --silent --no-audit --no-fund --ignore-scripts \
		--prefix "$BUILD/npm" '@grpc/grpc-js@~1.14' >"$T/npm" 2>&1 ||
	skip "it cannot be installed: $(tail -n 1 "$T/npm")"

[[ -x $MODULES/.bin/buf ]] ||
	timeout 120 npm install --silent --no-audit --no-fund --ignore-scripts \
		--prefix "$BUILD/npm" '@bufbuild/buf@^1.60' >"$T/npm" 2>&1
if [[ -x $MODULES/.bin/buf ]]; then
	(cd "$TOP/proto" && "$MODULES/.bin/buf" lint) | sed 's/^/# /' | tee "$T/buf"
	[[ ! -s $T/buf ]]
	tap "buf lint: STANDARD"
fi

mkdir "$T/certs" && ../certs "$T/certs" 2>"$T/openssl" || cat "$T/openssl"
export CERTS=$T/certs
cat >"$T/access" <<-END
	operator user $(id -u)
	operator certificate CN=ops,O=Site
	viewer   certificate CN=look,O=Site
END
emulators && fabric "$T/before.yaml" 'UniRing(1,4)' && fabric "$T/fabric.yaml" 'UniRing(2,4)'
tap "a fabric of emulators"
DAEMON_OPTIONS=(--listen 127.0.0.1:0 --tls-cert "$CERTS/server.pem"
	--tls-key "$CERTS/server.key" --tls-ca "$CERTS/ca.pem" --access "$T/access")
daemon
port=$(sed -n 's/.*listening on 127.0.0.1 port \([0-9]*\).*/\1/p' "$T/weftd.log")

# client WHO ADDRESS TEST...: WHO is "unix", a certificate, or "" for none.
client() {
	local status line
	NAME=$1 FABRIC=$T/fabric.yaml timeout 300 node grpc_client.js "$MODULES" "$TOP/proto" \
		"$2" "${@:3}" >"$T/js" 2>&1
	status=$?
	while read -r line; do
		case $line in
		"pass "*) tap "${1:-no certificate}: ${line#pass }" 0 ;;
		*) echo "# $line" ;;
		esac
	done <"$T/js"
	tap "grpc-js as ${1:-unknown_client}: ${*:3}" $status
}

for way in "unix $SOCK" "ops localhost:$port"; do
	expect 0 "a fabric before" weft apply -f "$T/before.yaml"
	# shellcheck disable=SC2086
	client $way changes questions requests health reflection complete errors deadlines \
		cancels many
done
client look "localhost:$port" viewer health
client jobs "localhost:$port" unknown_client health
client '' "localhost:$port" stranger
client alien "localhost:$port" stranger
finish
