#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Hosts of weftd's machine: what arrives at their ports is asked over netlink,
# links are followed live, and their jobs' routes come and go with the jobs.
source "$(dirname "$0")/../lib.sh"
F=ho$$
testbed_of "$T/ring.yaml"

# write FILE JOBS [KEYS of the last two hosts]
write() {
	cat >"$1" <<-END
	weft: 1
	fabric: $F
	hosts:
	  - { name: "h[0-1]", ports: "p[0-1]", rate: 1Gbps, reactivation: 10ms, netns: weft.$F.% }
	  - { name: "h[2-3]", ports: "p[0-1]", rate: 1Gbps, reactivation: 10ms ${3-, netns: weft.$F.%} }
	switches:
	  - { name: ocs0, size: 8x8, driver: linux-tc, options: { fabric: $F } }
	fibres:
	  - { from: "h[0-3].p[0-1]", to: "ocs0.[1-8]" }
	jobs: [ $2 ]
	END
}
job() { # NODES TOPOLOGY
	echo "{ name: a, nodes: '$1', collective: allreduce, size: 1MiB, topology: '$2', alpha: 10us }"
}
write "$T/ring.yaml" "$(job 'h[0-3]' 'Ring(4)')"
write "$T/pair.yaml" "$(job 'h[0-1]' 'K(2)')"
write "$T/none.yaml" ""
write "$T/half.yaml" "$(job 'h[0-3]' 'Ring(4)')" ""

weft testbed up "$T/ring.yaml" >"$T/out" 2>"$T/err"
status=$?
if [[ $status == 77 ]] || grep -q 'network namespace: ' "$T/err"; then
	echo "ok 1 - hosts # SKIP $(head -n 1 "$T/err")"
	echo "1..1"
	exit 0
elif [[ $status != 0 ]]; then
	cat "$T/err"
	tap "testbed up" 1
	finish
fi

# looked FILTER: the last look, as status tells it, comes to be so.
looked() {
	weft status --format json >"$T/out" 2>"$T/err" &&
		jq -e "$1" "$T/out" >/dev/null
}
# link NAMESPACE NETDEV up|down
link() {
	nsenter --net="/run/netns/weft.$F.$1" python3 - "$2" "$3" <<-END
		import fcntl, socket, struct, sys
		s, name = socket.socket(), sys.argv[1].encode()
		SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP = 0x8913, 0x8914, 1
		flags = fcntl.ioctl(s, SIOCGIFFLAGS, struct.pack("16s16x", name))
		flags = struct.unpack("16xh14x", flags)[0] & ~IFF_UP
		flags |= IFF_UP if sys.argv[2] == "up" else 0
		fcntl.ioctl(s, SIOCSIFFLAGS, struct.pack("16sh14x", name, flags))
	END
}
routes() { # HOST: how many of weft's
	nsenter --net="/run/netns/weft.$F.$1" grep -c '^p' /proc/net/route
}

daemon || exit 1
expect 0 "a job on all hosts" weft apply -f "$T/ring.yaml"
wait_for 10 looked '.links | .layer == "neighbour" and .expected == 8 and .good == 8'
tap "status: each port has heard its neighbour"
[[ $(jq -c '[.links.hosts[].routes]' "$T/out") == '[3,3,3,3]' ]]
tap "and each host has its ways"
expect 0 "the arcs answer, and nothing else" weft testbed ping "$T/ring.yaml"
expect 0 "verify agrees" weft verify --format json
[[ $(jq '[.links.ports[] | select(.layer == "neighbour" and .neighbour == .from and .problem == "" and .carrier_changes > 0)] | length' "$T/out") == 8 ]]
tap "port by port"
jq -e '.links.ports[0].next_layer_error | startswith("module: ")' "$T/out" >/dev/null
tap "it says what better source did not answer"

# Somebody takes a link down.
weft watch >"$T/events" 2>/dev/null &
PID[watch]=$!
wait_for 10 grep -q resync "$T/events"
link ocs0 out1 down
wait_for 10 grep -q 'link  *h0.p0: no link' "$T/events"
tap "watch: the link is lost"
expect 2 "verify finds it" weft verify
has out "at the port" 'h0.p0 .*no link, the signal of h[0-9.p]+ is expected'
link ocs0 out1 up
wait_for 10 grep -q 'link  *h0.p0: link' "$T/events"
tap "watch: the link is back"
expect 0 "verify agrees" weft verify
stop watch INT

# Other jobs, other ways; nothing of them is left.
expect 0 "a job on two hosts" weft apply -f "$T/pair.yaml"
wait_for 10 looked '[.links.hosts[].routes] == [1,1,0,0]'
tap "its ways are those of two"
expect 0 "they answer, and no other host" weft testbed ping "$T/pair.yaml"
[[ $(routes h0) == 1 && $(routes h2) == 0 ]]
tap "the kernel has them and no other"
stop weftd KILL
[[ $(routes h0) == 1 ]]
tap "weftd killed: they stay"
daemon || exit 1
wait_for 10 looked '[.links.hosts[].routes] == [1,1,0,0]'
tap "started again, it knows them"
expect 0 "no job any more" weft apply -f "$T/none.yaml"
wait_for 10 looked '[.links.hosts[].routes] == [0,0,0,0]'
tap "no way any more"
[[ $(routes h0) == 0 && $(routes h1) == 0 ]]
tap "in the kernel neither"

# Half of the hosts are machines of their own.
expect 0 "half of them cannot be asked" weft apply -f "$T/half.yaml"
wait_for 10 looked '.links | .expected == 4 and .good == 4 and .layer == "ethtool"'
tap "what they send is known by the link only"
expect 0 "which is no difference" weft verify --format json
[[ $(jq -c '[.links.ports[] | select(.layer == "ethtool" and .neighbour == "")] | length' "$T/out") -gt 0 ]]
tap "and is told"

# Fibres that are not as written.
expect 0 "all of them again" weft apply -f "$T/ring.yaml"
stop weftd
rm -rf "$STATE"
weft testbed up "$T/ring.yaml" --swap h0.p0.tx,h2.p1.tx >/dev/null
daemon || exit 1
expect 0 "two fibres are exchanged" weft apply -f "$T/ring.yaml"
expect 2 "verify finds it" weft verify --format json
[[ $(jq -c '[.links.ports[] | select(.problem != "") | [.from, .neighbour]]' "$T/out") == '[["h0.p0","h2.p1"],["h2.p1","h0.p0"]]' ]]
tap "and names whose light arrives instead"
[[ $(jq -r '[.links.ports[].problem | select(. != "")][0]' "$T/out") == "frames of h2.p1 arrive, not of h0.p0" ]]
tap "in words"

stop weftd
weft testbed down "$T/ring.yaml" >/dev/null
daemon || exit 1
expect 69 "no daemon is there" weft verify
weft verify --format json >"$T/out" 2>"$T/err"
[[ $(jq '[.links.hosts[] | select(.problem != "")] | length' "$T/out") == 4 ]]
tap "each host says so"
finish
