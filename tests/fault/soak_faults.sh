#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Random jobs on a fabric with a device of every driver, while faults fire and
# weftd is killed: soak_faults.py says what is counted. The run is chosen by
# WEFT_SEED (printed; random if unset) and lasts WEFT_SECONDS (600), in which
# at least WEFT_FAULTS (5000) must have struck; WEFT_FORGE names what is forged, to
# see that its counter counts (all). With WEFT_VERBOSE every round is told.
# linux-tc and linux-ring take part where network namespaces can be made.
source "$(dirname "$0")/../lib.sh"
SEED=${WEFT_SEED:-$((RANDOM * 32768 + RANDOM + 1))}
devices=()
for driver in polatis-scpi polatis-tl1 glimmerglass-tl1 calient-tl1 sonic-ocs \
	rome-cli telescent-cli mrr-reg; do
	size=10x10
	[[ $driver == mrr-reg ]] && size=8x4
	emulator "x-$driver" "$driver" $size --seed "$SEED" || exit 1
	devices+=(--device "x-$driver,$driver,${ADDR[x-$driver]},${CTL[x-$driver]}")
done
emulator x-yang sonic-ocs 10x10 --seed "$SEED" --form yang || exit 1
devices+=(--device "x-yang,sonic-ocs,${ADDR[x-yang]},${CTL[x-yang]}")
netns=weft-soak.$$
# Not `ip -n`: it mounts, which not every root folder allows.
within() {
	nsenter --net="/run/netns/$netns" "$@"
}
if ip netns add "$netns" 2>"$T/netns"; then
	trap 'ip netns del "$netns"; cleanup' EXIT
	for i in {1..10}; do
		within ip link add "in$i" type veth peer name "a$i" &&
			within ip link set "in$i" up &&
			within tc qdisc add dev "in$i" ingress &&
			within ip link add "out$i" type veth \
				peer name "b$i" || exit 1
	done
	devices+=(--netns "$netns")
else
	echo "# no namespaces here: without linux-tc"
fi
testbed=s$$
cat >"$T/ring.yaml" <<END
weft: 1
fabric: $testbed
hosts:
  - { name: "l[0-7]" }
rings:
  - { name: lr0, nodes: "l[0-7]", channels: 4, channel-rate: 40Gbps, retune: 25us, driver: linux-ring, options: { fabric: $testbed } }
END
if weft testbed up "$T/ring.yaml" >"$T/testbed" 2>&1; then
	trap 'weft testbed down "$T/ring.yaml" >"$T/testbed"; ip netns del "$netns"; cleanup' EXIT
	devices+=(--testbed "$testbed")
else
	echo "# no testbed here: without linux-ring"
fi
python3 "$(dirname "$0")/soak_faults.py" --seed "$SEED" --dir "$T" \
	--state "$STATE" --seconds "${WEFT_SECONDS:-600}" \
	--least "${WEFT_FAULTS:-5000}" ${WEFT_VERBOSE:+--verbose} \
	${WEFT_FORGE:+--forge "$WEFT_FORGE"} \
	"${devices[@]}" &
PID[soak]=$!
wait "${PID[soak]}"
status=$?
unset 'PID[soak]'
exit $status
