#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# needs: root
# COUNT connections (10,000) of another user to each listener, 300 at a time: calls over the socket and over TCP
# with certificates, halves of requests to page and metrics. All listeners answer meanwhile, and
# weftd's memory afterwards is under twice of what it was.
cd "$(dirname "$0")" || exit 1
. ../lib.sh
COUNT=${COUNT:-10000}

mkdir "$T/certs" && ../certs "$T/certs" 2>"$T/openssl" || cat "$T/openssl"
printf 'operator certificate CN=ops,O=Site\noperator user *\n' >"$T/access"
[[ $(id -u) == 0 ]] || { echo "ok 1 - connections of another user # SKIP needs root"; TAP_N=1; finish; }
chmod 711 "$T" && chmod 755 "$T/certs" && chmod 644 "$T/certs"/ops.* "$T/certs/ca.pem"
DAEMON_OPTIONS=(--socket-mode 0666 --listen 127.0.0.1:0 --tls-cert "$T/certs/server.pem" --tls-key "$T/certs/server.key"
	--tls-ca "$T/certs/ca.pem" --access "$T/access" --page 127.0.0.1:0 --metrics 127.0.0.1:0)
daemon
tap "weftd with all its listeners"
# port WORDS: of the listener that the log names so.
port() { sed -nE "s|.*$1[^0-9]*127.0.0.1[^0-9]*([0-9]+).*|\1|p" "$T/weftd.log" | tail -n 1; }
tls=$(port 'listening on') page=$(port 'page on') metrics=$(port 'metrics on')

# connect KIND ADDRESS: opens them, and says how many an answer was read of.
connect() {
	setpriv --reuid 4001 --regid 4001 --clear-groups /usr/bin/python3 - "$1" "$2" "$COUNT" "$T/certs" <<-'END'
	import collections, socket, ssl, sys
	kind, address, count, certs = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
	call = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])
	call += bytes([0, 0, 3, 1, 5, 0, 0, 0, 1, 0x83, 0x86, 0x84])  # POST /
	half = b"GET /metrics HTTP/1.1\r\nHost: local"
	if kind == "tls":
	    context = ssl.create_default_context(cafile=certs + "/ca.pem")
	    context.load_cert_chain(certs + "/ops.pem", certs + "/ops.key")
	    context.set_alpn_protocols(["h2"])
	held, answered = collections.deque(), 0
	for _ in range(count):
	    if kind == "socket":
	        c = socket.socket(socket.AF_UNIX)
	        c.connect(address)
	    else:
	        c = socket.create_connection(("127.0.0.1", int(address)))
	    if kind == "tls":
	        c = context.wrap_socket(c, server_hostname="localhost")
	    c.sendall(half if kind == "half" else call)
	    held.append(c)
	    if len(held) > 300:
	        c = held.popleft()
	        c.settimeout(10)
	        try:
	            answered += len(c.recv(64)) > 0
	        except ConnectionResetError:
	            pass
	        c.close()
	print(answered)
	END
}
memory() { awk '/^VmRSS/ { print $2 }' "/proc/${PID[weftd]}/status"; }
is_back() { (($(memory) < 2 * before)); }
answers() {
	weft status && curl -sf -m 5 "http://127.0.0.1:$metrics/metrics" && curl -sf -m 5 "http://127.0.0.1:$page/"
}

before=$(memory)
while read -r kind address what; do
	connect "$kind" "$address" >"$T/connect" 2>&1 &
	PID[connect]=$!
	answered=0 asked=0
	while kill -0 "${PID[connect]}" 2>/dev/null; do
		answers >"$T/out" 2>"$T/err" && ((answered++))
		((asked++))
		sleep 0.2
	done
	wait "${PID[connect]}"
	tap "$COUNT connections $what"
	sed 's/^/# answers: /' "$T/connect"
	unset "PID[connect]"
	((answered == asked && asked > 0))
	tap "others are answered meanwhile ($answered of $asked times by all)"
	wait_for 30 is_back
	tap "and memory is back"
	echo "# $(memory) KiB of $before before"
done <<-END
	socket $SOCK with calls over the socket
	tls $tls with calls over TLS
	half $page with halves of requests to the page
	half $metrics with halves of requests to metrics
END
finish
