#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The page that weftd serves: in a headless browser, and its server under bad
# manners. The browser's part is skipped where Chromium cannot be started.
cd "$(dirname "$0")" || exit 1
. ../lib.sh

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
	done < <(/usr/bin/python3 webui_client.py "$URL" "$T/browser" "$@" 2>&1)
	[[ $reached == $# ]] || tap "all of: $*" 1
}

client traversal methods rebinding headers huge_headers slow_client many_connections live_answer noise
client loads pictures wavelengths search player live hostile_names problems faults keyboard names \
	without_colour schemes narrow outside

# The port is known now, so that weftd comes back where it was.
PORT=${URL##*:}
DAEMON_OPTIONS=(--page "127.0.0.1:${PORT%/}")
client restart
expect 65 "only on loopback" weftd --socket "$T/s2" --state-dir "$T/state2" --page 0.0.0.0:0
has err "which is said" 'not a loopback address'
expect 64 "an address that is none" weftd --page 8080
# Over the gRPC listeners, where a viewer's certificate (or user) is needed.
stop weftd
mkdir "$T/certs" && ../certs "$T/certs" 2>"$T/openssl" || cat "$T/openssl"
cat >"$T/access" <<-END
	operator     user $(id -u)
	viewer       certificate CN=look,O=Site
	orchestrator certificate CN=jobs,O=Site
END
DAEMON_OPTIONS=(--listen 127.0.0.1:0 --tls-cert "$T/certs/server.pem"
	--tls-key "$T/certs/server.key" --tls-ca "$T/certs/ca.pem"
	--tls-crl "$T/certs/crl.pem" --access "$T/access")
daemon
port=$(sed -n 's/.*listening on 127.0.0.1 port \([0-9]*\).*/\1/p' "$T/weftd.log" | tail -n 1)

# get NAME PATH [OPTION...]: as this client over TLS; head and body to $T/out.
get() {
	curl -s -i -m 60 --http2 --cacert "$T/certs/ca.pem" --cert "$T/certs/$1.pem" \
		--key "$T/certs/$1.key" "${@:3}" "https://localhost:$port$2" >"$T/out" </dev/null
}
get look /
has out "a viewer has the page over TLS" '^HTTP/2 200'
has out "with its policy" "^content-security-policy: default-src 'none'"
get look /state.json
tr -d '\r' <"$T/out" | sed '1,/^$/d' | jq .status.devices >"$T/told"
weft status --format json | jq .devices | cmp - "$T/told"
tap "and the state that weft status tells"
get jobs /page.js
has out "an orchestrator may what a viewer may" '^HTTP/2 200'
get ops /state.json
has out "no role, no page" '^HTTP/2 403'
! grep -q generation "$T/out" && grep -q 'access.*the page refused to CN=ops,O=Site' "$T/weftd.log"
tap "the refusal is in the log"
get look /state.json -X PUT
has out "only GET" '^HTTP/2 405'
get look /../../etc/passwd --path-as-is
has out "no other files" '^HTTP/2 404'
! get alien / && [[ ! -s $T/out ]]
tap "a stranger's certificate"
unix() { curl -s -m 60 --http2-prior-knowledge --unix-socket "$SOCK" "http://localhost$1"; }
after=$(unix /state.json | jq .version)
unix "/live.json?after=$after" >"$T/news" &
PID[news]=$!
weft verify >"$T/out" 2>&1
wait "${PID[news]}"
unset 'PID[news]'
(($(jq .version "$T/news") > after))
tap "news over the unix socket"

stop weftd

# A large fabric.
STATE=$T/large
cat >"$T/fabric.yaml" <<-END
	weft: 1
	fabric: large
	hosts:
	  - { name: "h[0000-1023]", ports: "p[0-3]", rate: 100Gbps }
	switches:
	  - { name: "ocs[0-1]", size: 2048x2048, driver: sim }
	fibres:
	  - { from: "h[0000-1023].p[0-1]", to: "ocs0.[1-2048]" }
	  - { from: "h[0000-1023].p[2-3]", to: "ocs1.[1-2048]" }
	jobs:
	  - { name: low, nodes: "h[0000-0511]", collective: allgather, size: 1MiB, topology: "Torus(8,64)", alpha: 1us }
	  - { name: high, nodes: "h[0512-1023]", collective: allgather, size: 1MiB, topology: "Torus(16,32)", alpha: 1us }
END
DAEMON_OPTIONS=(--page "127.0.0.1:${PORT%/}")
daemon
expect 0 "a large fabric" weft apply -f "$T/fabric.yaml"
client large
finish
