# SPDX-License-Identifier: Apache-2.0
# Sourced by the scripts in tests/ and configs/demo: a scratch folder, real
# emulators and a real weftd on loopback, and TAP lines. Everything started
# is ended by its process id.
#
# BIN has the programs: those of the release build, which people run, but for what
# tests/builds says of the script; or all of one build, if it is in the environment.
# shellcheck shell=bash
set -u
TOP=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
BUILD=${BUILD:-$TOP/build}
T=$(mktemp -d)
SOCK=$T/weftd.sock
STATE=$T/state
export WEFT_SOCKET=$SOCK
unset COLUMNS
if [[ -z ${BIN:-} ]]; then
	BIN=$BUILD/release
	sanitized=$(awk -v name="$(basename "$(readlink -m "${BASH_SOURCE[0]%../lib.sh}.")")/$(basename "$0")" \
		'$1 == name && $2 != "release" { gsub(",", " ", $2); print $2 }' "$TOP/tests/builds")
	if [[ -n $sanitized ]]; then
		BIN=$T/bin
		mkdir "$BIN" && ln -s "$BUILD"/release/{weft*,lib*.so} "$BIN"
		for program in $sanitized; do
			ln -sf "$BUILD/asan/$program" "$BIN"
		done
	fi
fi
PATH=$BIN:$PATH
# Preloaded into ranks of MPI: those that wait leave the processors to others.
NAP=$BUILD/release/tests/fault/nap.so
declare -A PID ADDR CTL
TAP_N=0
TAP_BAD=0

stop() { # NAME [SIGNAL]
	local pid=${PID[$1]:-}
	[[ -z $pid ]] && return 0
	kill -"${2:-TERM}" "$pid" 2>/dev/null
	wait "$pid" 2>/dev/null
	unset "PID[$1]"
}

# testbed_of FILE: the testbed of this fabric goes with the script, if it was made.
testbed_of() { TESTBED=$1; }

cleanup() {
	local name
	[[ ! -f ${TESTBED:-} ]] || weft testbed down "$TESTBED" >/dev/null 2>&1
	for name in "${!PID[@]}"; do
		stop "$name"
	done
	rm -rf "$T"
}
trap cleanup EXIT
trap 'exit 143' TERM INT

# One TAP line from the last status: `cmd; tap "what"` or `tap "what" STATUS`.
tap() {
	local status=${2:-$?}
	TAP_N=$((TAP_N + 1))
	if [[ $status == 0 ]]; then
		echo "ok $TAP_N - $1"
	else
		echo "not ok $TAP_N - $1"
		TAP_BAD=1
	fi
}

# jq: of version 1.6, that finds nothing wrong with -e when nothing came in; this one does.
jq() {
	local out code
	if [[ ! " $* " =~ \ -[a-z]*e[a-z]*\  ]]; then
		command jq "$@"
		return
	fi
	out=$(command jq "$@")
	code=$?
	[[ -z $out ]] && return 4
	printf '%s\n' "$out"
	return $code
}

# finish: ends what runs, asks the logs for what sanitizers found, and prints the plan line; the
# exit status is that of the whole script.
finish() {
	local name
	for name in "${!PID[@]}"; do
		stop "$name"
	done
	if [[ $BIN != "$BUILD/release" ]]; then
		! grep -shE "ERROR: [A-Z][a-z]+Sanitizer|runtime error: " "$T"/*.log | sed 's/^/# /' | grep .
		tap "the sanitizers found nothing in what ran"
	fi
	echo "1..$TAP_N"
	exit $TAP_BAD
}

# mine: whether the next case belongs to this part of a script that runs in
# several (WEFT_SHARD=K/N: every N-th from the K-th on).
CASES_SEEN=0
mine() {
	local part=${WEFT_SHARD:-0/1}
	((CASES_SEEN++ % ${part#*/} == ${part%/*}))
}

# expect CODE WHAT COMMAND...: runs it, output to $T/out and $T/err, and
# prints both when the exit code is another.
expect() {
	local want=$1 what=$2 got
	shift 2
	"$@" >"$T/out" 2>"$T/err" </dev/null
	got=$?
	if [[ $got != "$want" ]]; then
		echo "# $*: exit $got, expected $want"
		sed 's/^/#   out: /' "$T/out" | head -n 40
		sed 's/^/#   err: /' "$T/err" | head -n 40
	fi
	[[ $got == "$want" ]]
	tap "$what"
}

# has FILE WHAT PATTERN: FILE (out or err of the last expect) matches.
has() {
	if ! grep -qE -- "$3" "$T/$1"; then
		echo "# no match for: $3"
		sed "s/^/#   $1: /" "$T/$1" | head -n 40
		tap "$2" 1
	else
		tap "$2" 0
	fi
}

# wait_for SECONDS COMMAND...: until the command succeeds; as on a quiet machine, so that it is given up only
# after four times as long.
wait_for() {
	local end=$((${EPOCHREALTIME/[.,]/} + $1 * 4000000)) ms=50
	shift
	while ! "$@" >/dev/null 2>&1; do
		((${EPOCHREALTIME/[.,]/} < end)) || return 1
		sleep ".$(printf %03d "$ms")"
		((ms += ms < 250 ? ms / 4 : 0))
	done
}

# emulator NAME DRIVER SIZE [OPTIONS...]: its address goes to ADDR[NAME], its
# control socket to CTL[NAME]. A given ADDR[NAME] is used again.
emulator() {
	local name=$1 driver=$2 size=$3
	shift 3
	rm -f "$T/$name.addr"
	CTL[$name]=$T/$name.ctl
	weft-emulator --driver "$driver" --size "$size" --name "$name" \
		--listen "${ADDR[$name]:-127.0.0.1:0}" \
		--address-file "$T/$name.addr" --control "${CTL[$name]}" "$@" \
		>"$T/$name.log" 2>&1 </dev/null &
	PID[$name]=$!
	wait_for 10 test -s "$T/$name.addr" || {
		echo "# emulator $name did not start"
		cat "$T/$name.log"
		return 1
	}
	ADDR[$name]=$(cat "$T/$name.addr")
}

# control NAME LINE: one line to an emulator's control socket, answer on
# standard output.
control() {
	echo "$2" | nc -NU -w 5 "${CTL[$1]}"
}

# daemon [ENV=VALUE...]: weftd on $SOCK with its state in $STATE, and with
# DAEMON_OPTIONS.
DAEMON_OPTIONS=()
daemon() {
	env "$@" weftd --socket "$SOCK" --state-dir "$STATE" \
		"${DAEMON_OPTIONS[@]}" \
		>>"$T/weftd.log" 2>&1 </dev/null &
	PID[weftd]=$!
	wait_for 10 weft status --format json || {
		echo "# weftd did not start"
		cat "$T/weftd.log"
		return 1
	}
}

# fabric FILE TOPOLOGY: a small fabric on the emulators "ocs0" (8x8) and
# "ring0" (8 nodes, 4 channels): four hosts with two ports each on the switch
# and one job, eight nodes on the ring and one job. TOPOLOGY "" leaves the
# switch without a job, RING=no the ring.
fabric() {
	cat >"$1" <<-END
	weft: 1
	fabric: small
	hosts:
	  - { name: "h[0-3]", ports: "p[0-1]", rate: 100Gbps, reactivation: 10ms }
	  - { name: "n[0-7]" }
	switches:
	  - name: ocs0
	    size: 8x8
	    driver: polatis-scpi
	    address: ${ADDR[ocs0]}
	    options: { gap_ms: 1, settle_ms: 20 }
	    timeout: 500ms
	rings:
	  - name: ring0
	    nodes: "n[0-7]"
	    channels: 4
	    channel-rate: 40Gbps
	    retune: 25us
	    driver: mrr-reg
	    address: ${ADDR[ring0]}
	    timeout: 500ms
	fibres:
	  - { from: "h[0-3].p[0-1]", to: "ocs0.[1-8]" }
	jobs:
	END
	if [[ -n $2 ]]; then
		echo "  - { name: reduce, nodes: 'h[0-3]', collective: allreduce, size: 1MiB, topology: '$2', alpha: 10us }" >>"$1"
	fi
	if [[ ${RING:-yes} == yes ]]; then
		echo "  - { name: gather, ring: ring0, nodes: all, collective: allgather, size: 1MiB, depth: ${DEPTH:-0} }" >>"$1"
	fi
}

# bed FILE [LINE...]: hosts "dut" and "tg1" with eight ports each on the emulator "ocs0" (16x16),
# ports 1 to 8 and 9 to 16, and these lines behind them.
bed() {
	cat >"$1" <<-END
	weft: 1
	fabric: bed
	hosts:
	  - { name: dut, ports: "p[0-7]", rate: 100Gbps, reactivation: 1ms }
	  - { name: tg1, ports: "p[0-7]", rate: 100Gbps, reactivation: 1ms }
	switches:
	  - { name: ocs0, size: 16x16, driver: polatis-scpi, address: "${ADDR[ocs0]}",
	      timeout: 1s, options: { gap_ms: 1, settle_ms: 20 } }
	fibres:
	  - { from: "dut.p[0-7]", to: "ocs0.[1-8]" }
	  - { from: "tg1.p[0-7]", to: "ocs0.[9-16]" }
	END
	(($# == 1)) || printf '%s\n' "${@:2}" >>"$1"
}

# map NAME: its circuits IN,OUT from 0, a line each, sorted.
map() { control "$1" map | grep , | tr -d ' ' | sort; }

# Both emulators of the small one.
emulators() {
	emulator ocs0 polatis-scpi 8x8 && emulator ring0 mrr-reg 8x4
}

# misroute NETNS FROM TO: behind the driver's back, what a switch of namespaces
# sends out of out<FROM> leaves by out<TO>: its map is as commanded.
# misroute NETNS FROM: no more.
misroute() {
	# Not `ip netns exec`: it mounts, which not every root folder allows.
	local within=(nsenter --net="/run/netns/$1")
	if [[ -n ${3:-} ]]; then
		"${within[@]}" tc qdisc add dev "out$2" clsact &&
			"${within[@]}" tc filter add dev "out$2" egress \
				u32 match u32 0 0 action mirred egress \
				redirect dev "out$3"
	else
		"${within[@]}" tc filter del dev "out$2" egress
	fi
}

# fibres_of FILE: its fibres (one entry a line), each pair of ends on a line of its own.
fibres_of() {
	/usr/bin/python3 - "$1" <<-'END'
	import itertools, re, sys
	def names(text):
	    parts = [[p] for p in re.split(r"\[(\d+-\d+)\]", text)]
	    for p in parts[1::2]:
	        lo, hi = p[0].split("-")
	        p[:] = [f"{n:0{len(lo)}}" for n in range(int(lo), int(hi) + 1)]
	    return ["".join(w) for w in itertools.product(*parts)]
	for line in open(sys.argv[1], encoding="utf-8"):
	    m = re.match(r'(.*from: ")(.*)(", to: ")(.*?)(".*)', line)
	    for a, b in zip(names(m[2]), names(m[4])) if m else ():
	        print(m[1] + a + m[3] + b + m[5])
	END
}

# sets NAME: how many changing commands an emulator has received.
sets() {
	control "$1" stats | awk '$1 == "sets" { print $2 }'
}

free_port() {
	local port
	while port=$((RANDOM % 20000 + 20000)); do
		(exec 3<>"/dev/tcp/127.0.0.1/$port") 2>>"$T/ports" || { echo "$port"; return; }
	done
}

# etcd_alone: an etcd of one member on loopback, at $ETCD.
etcd_alone() {
	local peer
	ETCD=http://127.0.0.1:$(free_port)
	peer=http://127.0.0.1:$(free_port)
	etcd --name one --data-dir "$T/etcd" --logger zap --log-level error --listen-client-urls "$ETCD" \
		--advertise-client-urls "$ETCD" --listen-peer-urls "$peer" --initial-advertise-peer-urls "$peer" \
		--initial-cluster "one=$peer" --heartbeat-interval 50 --election-timeout 500 >"$T/etcd.log" 2>&1 </dev/null &
	PID[etcd]=$!
}

# one_job FILE HOSTS [COLLECTIVE ALGORITHM]: a fabric of one job on a simulated switch; of 1,000 hosts its
# all-to-all is a heavy plan.
one_job() {
	local last=$(($2 - 1)) ports=$((4 * $2))
	cat >"$1" <<-END
	weft: 1
	fabric: heavy
	hosts:
	  - { name: "h[0-$last]", ports: "p[0-3]", rate: 100Gbps }
	switches:
	  - { name: ocs0, size: ${ports}x$ports, driver: sim }
	fibres:
	  - { from: "h[0-$last].p[0-3]", to: "ocs0.[1-$ports]" }
	jobs:
	  - { name: j, nodes: "h[0-$last]", collective: ${3:-all-to-all}, size: 1GiB, topology: "GenKautz(4,$2)", algorithm: ${4:-mcf}, alpha: 5us }
	END
}
