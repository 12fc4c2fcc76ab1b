#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# checklist 15: two weftd take turns by an etcd of three members, each in a network
# namespace of its own, by TLS: real ones. In each round one of them is killed or cut off, in
# the middle of a change; with more rounds one is frozen, a member of etcd is killed or cut off,
# or a clock jumps. Whatever happens, a device gets commands from one weftd at a time, what was
# acknowledged is not lost, and no circuit is there that is not accounted for. All kinds, at
# moments all over a change, are told on virtual time (tests/sim/stories/failover_stories.c).
#
# ROUNDS=N (2; 7: each kind once), SEED=N, LEASE=SECONDS (5: a busy machine keeps to it)
source "$(dirname "$0")/../lib.sh"
ROUNDS=${ROUNDS:-2}
RANDOM=${SEED:-1}
SHIM=$BUILD/release/tests/fault/clock_jump.so
NS=weft-fo.$$
NODES=(e1 e2 e3 a b)
LEASE=${LEASE:-5}

within() { # NODE COMMAND...
	nsenter --net="/run/netns/$NS.$1" "${@:2}"
}

remove_net() {
	local node
	for node in hub "${NODES[@]}"; do
		ip netns del "$NS.$node"
	done
}

# A hub with the devices, at 10.77.0.1, and a wire from it to each node, at 10.77.N.2.
make_net() {
	local n=0 node
	ip netns add "$NS.hub" || return
	within hub ip link set lo up
	within hub ip address add 10.77.0.1/32 dev lo
	within hub sh -c 'echo 1 >/proc/sys/net/ipv4/ip_forward'
	for node in "${NODES[@]}"; do
		n=$((n + 1))
		IP[$node]=10.77.$n.2
		ip netns add "$NS.$node" || return
		ip link add "up$n" netns "$NS.hub" type veth peer name wire netns "$NS.$node" || return
		within hub ip address add "10.77.$n.1/24" dev "up$n"
		within hub ip link set "up$n" up
		within "$node" ip link set lo up
		within "$node" ip address add "10.77.$n.2/24" dev wire
		within "$node" ip link set wire up
		within "$node" ip route add default via "10.77.$n.1"
	done
}
declare -A IP

certificate() { # NAME ADDRESS...
	local names=
	printf -v names ',IP:%s' "${@:2}"
	openssl ecparam -genkey -name prime256v1 -noout -out "$T/$1.key" &&
		openssl req -new -key "$T/$1.key" -subj "/CN=$1" -out "$T/$1.csr" &&
		openssl x509 -req -in "$T/$1.csr" -CA "$T/ca.pem" -CAkey "$T/ca.key" -CAcreateserial \
			-days 2 -out "$T/$1.pem" -extfile <(echo "subjectAltName=${names#,}") 2>"$T/openssl"
}

etcd_member() { # NAME
	local ip=${IP[$1]}
	nsenter --net="/run/netns/$NS.$1" etcd --name "$1" --data-dir "$T/$1" --logger zap --log-level error \
		--listen-client-urls "https://$ip:2379" --advertise-client-urls "https://$ip:2379" \
		--listen-peer-urls "https://$ip:2380" --initial-advertise-peer-urls "https://$ip:2380" \
		--initial-cluster "e1=https://${IP[e1]}:2380,e2=https://${IP[e2]}:2380,e3=https://${IP[e3]}:2380" \
		--client-cert-auth --trusted-ca-file "$T/ca.pem" --cert-file "$T/etcd.pem" --key-file "$T/etcd.key" \
		--peer-client-cert-auth --peer-trusted-ca-file "$T/ca.pem" \
		--peer-cert-file "$T/etcd.pem" --peer-key-file "$T/etcd.key" \
		--heartbeat-interval 50 --election-timeout 500 >>"$T/$1.log" 2>&1 </dev/null &
	PID[$1]=$!
}

weftd_member() { # NAME
	local shim=
	[[ $1 == a ]] && shim=$SHIM
	nsenter --net="/run/netns/$NS.$1" env LD_PRELOAD="$shim" WEFT_CLOCK_OFFSET="$T/offset" weftd --etcd "$ETCD" --lease $LEASE \
		--etcd-cert "$T/client.pem" --etcd-key "$T/client.key" --etcd-ca "$T/ca.pem" \
		--socket "$T/$1.sock" --state-dir "$T/state-$1" --poll 3600 >>"$T/$1.log" 2>&1 </dev/null &
	PID[$1]=$!
}

at() { # NAME COMMAND...
	timeout 60 weft --socket "$T/$1.sock" "${@:2}"
}
# state NAME: what it says it is; nothing when it does not answer
state() {
	local told
	told=$(timeout 5 weft --socket "$T/$1.sock" status --format json 2>>"$T/leads.err") &&
		[[ $told =~ \"state\":\ \"([a-z]+)\" ]] && echo "${BASH_REMATCH[1]}"
}
leads() { # NAME: and knows its devices
	[[ $(state "$1") =~ ^(ready|empty|changing|interrupted)$ ]]
}
# leader [EXCEPT]: the one that leads
leader() {
	local one
	for one in a b; do
		[[ $one != "${1:-}" ]] && leads "$one" && echo "$one" && return
	done
	return 1
}
# some_leader: the one that leads, within half a minute
some_leader() {
	local tries
	for ((tries = 0; tries < 150; tries++)); do
		leader && return
		sleep 0.2
	done
	return 1
}
standing_by() { # NAME
	[[ $(state "$1") == standby ]]
}
now_ms() {
	echo $(($(date +%s%N) / 1000000))
}
is_alive() { # NAME
	[[ -n ${PID[$1]:-} ]] && kill -0 "${PID[$1]}" 2>/dev/null
}

# ---- faults: begin and end, of the one that leads ($1) ----
cut_from_etcd() { # NODE
	local e
	for e in e1 e2 e3; do
		[[ $e == "$1" ]] || within "$1" ip route add blackhole "${IP[$e]}/32"
	done
}
join_etcd() { # NODE
	local e
	for e in e1 e2 e3; do
		[[ $e == "$1" ]] || within "$1" ip route del blackhole "${IP[$e]}/32"
	done
}
KINDS=(kill partition freeze member member_partition unplug clock)
fault_begin() {
	case $1 in
	kill) kill -KILL "${PID[$2]}" ;;
	freeze) kill -STOP "${PID[$2]}" ;;
	member) stop "$3" KILL ;;
	partition) cut_from_etcd "$2" ;;
	member_partition) cut_from_etcd "$3" ;;
	unplug) within "$2" ip link set wire down ;;
	clock) echo $(((RANDOM % 2 * 2 - 1) * 86400)) >"$T/offset" ;;
	esac
}
fault_end() {
	case $1 in
	freeze) kill -CONT "${PID[$2]}" ;;
	member) etcd_member "$3" ;;
	partition) join_etcd "$2" ;;
	member_partition) join_etcd "$3" ;;
	unplug)
		within "$2" ip link set wire up
		within "$2" ip route add default via "${IP[$2]%.2}.1"
		;;
	esac
}

# Who leaves a role ends, and is started again.
restart_ended() {
	local one
	for one in a b; do
		if ! is_alive "$one"; then
			[[ -n ${PID[$one]:-} ]] && wait "${PID[$one]}" 2>/dev/null
			weftd_member "$one"
		fi
	done
}
both_up() {
	local one=
	restart_ended
	one=$(leader) && standing_by "$([[ $one == a ]] && echo b || echo a)"
}

# Runs one round; what is wrong is printed.
round() { # N KIND
	local n=$1 kind=$2 old new=none begun took=- code member=e$((RANDOM % 3 + 1)) file speakers
	wait_for 60 both_up || { echo "# $n: not both up"; return 1; }
	old=$(some_leader) || { echo "# $n: no one leads"; return 1; }
	file=$T/f$((n % 2 + 1)).yaml
	: >"$T/ocs0.log"
	at "$old" apply -f "$file" -m "round $n" >"$T/client" 2>&1 &
	PID[client]=$!
	sleep "0.$((RANDOM % 40 + 10))"
	begun=$(now_ms)
	fault_begin "$kind" "$old" "$member"
	case $kind in
	kill | freeze | partition | unplug)
		wait_for 40 leader "$old" >"$T/new" || { echo "# $n $kind: the other does not lead"; return 1; }
		took=$(($(now_ms) - begun))
		echo "$took" >>"$T/took"
		;;
	*) sleep 2 ;;
	esac
	fault_end "$kind" "$old" "$member"
	wait "${PID[client]}"
	code=$?
	unset 'PID[client]'
	wait_for 60 both_up || { echo "# $n $kind: not both up again"; tail -3 "$T/a.log" "$T/b.log"; return 1; }
	new=$(some_leader) || { echo "# $n $kind: no one leads at the end"; return 1; }
	if [[ $code == 0 ]]; then
		at "$new" history --format json >"$T/history" &&
			jq -e --arg c "round $n" 'any(.changes[]; .comment == $c and .outcome == "committed")' "$T/history" >>"$T/leads.out" ||
			{ echo "# $n $kind: an acknowledged change is not in the history"; return 1; }
	fi
	settle "$file" || { echo "# $n $kind: not settled: $(tail -2 "$T/settle" | tr '\n' ' ')"; return 1; }
	# One after the other, never one in between.
	speakers=$(grep -c '^commands from' "$T/ocs0.log")
	((speakers <= 2)) || { echo "# $n $kind: commands of two at a time"; return 1; }
	echo "# round $n $kind: $old -> $(leader), taken over in $took ms, apply ended with $code"
}
# The fabric of file is there, and nothing else.
settle() { # FILE
	local try one
	for ((try = 0; try < 20; try++)); do
		one=$(some_leader)
		at "$one" apply -f "$1" -m settle >"$T/settle" 2>&1 && at "$one" verify >>"$T/settle" 2>&1 &&
			at "$one" diff >>"$T/settle" 2>&1 && return 0
		sleep 0.3
	done
	return 1
}

trap 'cleanup; remove_net' EXIT
make_net
tap "five nodes in namespaces of their own"
openssl ecparam -genkey -name prime256v1 -noout -out "$T/ca.key" &&
	openssl req -x509 -new -key "$T/ca.key" -subj /CN=ca -days 2 -out "$T/ca.pem" &&
	certificate etcd "${IP[e1]}" "${IP[e2]}" "${IP[e3]}" && certificate client 127.0.0.1
tap "certificates"
for member in e1 e2 e3; do
	etcd_member $member
done
ETCD=https://${IP[e1]}:2379,https://${IP[e2]}:2379,https://${IP[e3]}:2379
etcd_ready() {
	within hub env ETCDCTL_API=3 etcdctl --endpoints "$ETCD" --cacert "$T/ca.pem" --cert "$T/client.pem" \
		--key "$T/client.key" endpoint health >"$T/health" 2>&1
}
wait_for 60 etcd_ready
tap "an etcd of three members, by TLS"
# The device is in the hub; what it prints is its log.
ADDR[ocs0]=10.77.0.1:0
CTL[ocs0]=$T/ocs0.ctl
nsenter --net="/run/netns/$NS.hub" weft-emulator --driver polatis-scpi --size 8x8 --name ocs0 --listen 10.77.0.1:0 --address-file "$T/ocs0.addr" \
	--control "${CTL[ocs0]}" --fault slow=20 >>"$T/ocs0.log" 2>&1 </dev/null &
PID[ocs0]=$!
wait_for 10 test -s "$T/ocs0.addr"
ADDR[ocs0]=$(cat "$T/ocs0.addr")
lab() { # TOPOLOGY
	cat <<-END
	weft: 1
	fabric: small
	hosts:
	  - { name: "h[0-3]", ports: "p[0-1]", rate: 100Gbps, reactivation: 10ms }
	switches:
	  - { name: ocs0, size: 8x8, driver: polatis-scpi, address: "${ADDR[ocs0]}", timeout: 500ms,
	      options: { gap_ms: 1, settle_ms: 20 } }
	fibres:
	  - { from: "h[0-3].p[0-1]", to: "ocs0.[1-8]" }
	jobs:
	  - { name: reduce, nodes: "h[0-3]", collective: allreduce, size: 1MiB, topology: "$1", alpha: 10us }
	END
}
lab 'UniRing(2,4)' >"$T/f1.yaml"
lab 'Ring(4)' >"$T/f2.yaml"

weftd_member a
wait_for 40 leads a
tap "the first one leads"
weftd_member b
wait_for 40 standing_by b
tap "the second one stands by"
expect 0 "the leader applies" at a apply -f "$T/f1.yaml" -m first
has_it() {
	at b history --format json >"$T/history" 2>&1 && jq -e '.changes | length == 1 and .[0].comment == "first"' "$T/history" >>"$T/leads.out" 2>&1
}
wait_for 20 has_it
tap "the standby has the change"
bad=0
for ((n = 1; n <= ROUNDS; n++)); do
	round "$n" "${KINDS[(n - 1) % ${#KINDS[@]}]}" || bad=$((bad + 1))
	((bad >= 1)) && break
done
[[ $bad == 0 ]]
tap "$ROUNDS rounds: no change lost, no circuit without a reason, no two leaders' commands"
sort -n "$T/took" | awk '{ v[NR] = $1 } END { if (NR) printf "# taken over %d times: median %d ms, at most %d ms (lease %d s)\n", NR, v[int((NR + 1) / 2)], v[NR], '$LEASE' }'

# ---- no etcd at all: the light stays, and the reason is told ----
one=$(some_leader) map=$(control ocs0 map)
[[ -n $one ]] || { echo "# no one leads"; exit 1; }
for member in e1 e2 e3; do
	stop $member
done
ended() {
	! is_alive "$one"
}
wait_for 40 ended
tap "without etcd the leader ends in time"
wait "${PID[$one]}"
[[ $? == 75 ]]
tap "with exit code 75"
unset "PID[$one]"
weftd_member "$one"
knows_nothing() {
	at "$one" status --format json >"$T/out" 2>"$T/err" && jq -e '.leadership.problem | test("etcd")' "$T/out" >>"$T/leads.out"
}
wait_for 40 knows_nothing
tap "started again, its status says that etcd does not answer"
[[ $(control ocs0 map) == "$map" ]]
tap "and the light is as it was"
for member in e1 e2 e3; do
	etcd_member $member
done
wait_for 60 both_up
tap "once etcd is there again, one leads"
settle "$T/f1.yaml"
tap "and applies"

finish
