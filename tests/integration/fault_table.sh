#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# One truth about every arc: each fault of tests/data/faults.txt is set in one lab, and what
# status, diff, metrics, events, the page, a plan and the schedules say of it is compared with the
# table, and with each other. One weftd sees all of it, fault after fault; `make check` runs a part
# of the rows, others with each commit, and `make soak` all.
cd "$(dirname "$0")" || exit 1
. ../lib.sh
F=ft$$
testbed_of "$T/net.yaml"

mkdir "$T/plant"
for port in {1..8}; do
	echo "laser pow0.in$port -3.0"
done >"$T/plant/wiring"
emulator ocs0 polatis-scpi 18x18 && emulator ggn0 glimmerglass-tl1 12x12 &&
	emulator cal0 calient-tl1 8x8 && emulator pow0 polatis-scpi 8x8 --plant "$T/plant" &&
	emulator ring0 mrr-reg 12x8 || exit 1
net_hosts='  - { name: "e[0-3]", ports: "p[0-1]", rate: 100Mbps, reactivation: 10ms, netns: weft.'$F'.% }'
net_switch='  - { name: net0, size: 8x8, driver: linux-tc, options: { fabric: '$F' } }'
net_fibres='  - { from: "e[0-3].p[0-1]", to: "net0.[1-8]" }'
cat >"$T/net.yaml" <<-END
	weft: 1
	fabric: $F
	hosts:
	$net_hosts
	switches:
	$net_switch
	fibres:
	$net_fibres
END
cat >"$T/f.yaml" <<-END
	weft: 1
	fabric: $F
	hosts:
	$net_hosts
	  - { name: "a[0-3]", ports: "p[0-1]", rate: 100Gbps }
	  - { name: "b[0-3]", ports: "p[0-1]", rate: 100Gbps }
	  - { name: "c[0-3]", ports: "p[0-1]", rate: 100Gbps }
	  - { name: "d[0-3]", ports: "p[0-1]", rate: 100Gbps }
	  - { name: "l[0-3]", ports: "p[0-1]", rate: 100Gbps }
	  - { name: "n[0-11]" }
	switches:
	$net_switch
	  - { name: ocs0, size: 18x18, driver: polatis-scpi, address: "${ADDR[ocs0]}", timeout: 1s,
	      options: { gap_ms: 0, settle_ms: 1 } }
	  - { name: ggn0, size: 12x12, driver: glimmerglass-tl1, address: "${ADDR[ggn0]}", timeout: 1s,
	      loss: 2.5dB, options: { gap_ms: 0, settle_ms: 1 } }
	  - { name: cal0, size: 8x8, driver: calient-tl1, address: "${ADDR[cal0]}", timeout: 1s,
	      options: { gap_ms: 0, settle_ms: 1, power: "no" } }
	  - { name: pow0, size: 8x8, driver: polatis-scpi, address: "${ADDR[pow0]}", timeout: 1s,
	      options: { gap_ms: 0, settle_ms: 1, power: both } }
	rings:
	  - { name: ring0, nodes: "n[0-11]", channels: 8, channel-rate: 40Gbps, driver: mrr-reg,
	      address: "${ADDR[ring0]}", timeout: 1s }
	fibres:
	$net_fibres
	  - { from: "a[0-3].p[0-1]", to: "ocs0.[1-8]" }
	  - { from: "b[0-3].p[0-1]", to: "ocs0.[9-16]" }
	  - { from: "c[0-3].p[0-1]", to: "ggn0.[1-8]" }
	  - { from: "d[0-3].p[0-1]", to: "cal0.[1-8]" }
	  - { from: "l[0-3].p[0-1]", to: "pow0.[1-8]" }
	changes: { verify: neighbour }
	jobs:
	  - { name: sum, nodes: "a[0-3]", collective: allreduce, size: 1MiB, topology: "Ring(4)", alpha: 10us }
	  - { name: swap, nodes: "b[0-3]", collective: all-to-all, size: 1MiB, topology: "Ring(4)", alpha: 10us }
	  - { name: loss, nodes: "c[0-3]", collective: allreduce, size: 1MiB, topology: "Ring(4)", alpha: 10us }
	  - { name: made, nodes: "d[0-3]", collective: allreduce, size: 1MiB, topology: "Ring(4)", alpha: 10us }
	  - { name: power, nodes: "l[0-3]", collective: allreduce, size: 1MiB, topology: "Ring(4)", alpha: 10us }
	  - { name: links, nodes: "e[0-3]", collective: allreduce, size: 64KiB, topology: "Ring(4)", alpha: 10us }
	  - { name: left, ring: ring0, nodes: "n[0-5]", segment: true, size: 1MiB, collective: allgather }
	  - { name: right, ring: ring0, nodes: "n[6-11]", segment: true, size: 1MiB, collective: allgather }
END

weft testbed up "$T/net.yaml" >"$T/out" 2>"$T/err"
status=$?
if [[ $status == 77 ]] || grep -q 'network namespace: ' "$T/err"; then
	echo "ok 1 - faults # SKIP $(head -n 1 "$T/err")"
	echo "1..1"
	exit 0
elif [[ $status != 0 ]]; then
	cat "$T/err"
	tap "testbed up" 1
	finish
fi
DAEMON_OPTIONS=(--poll 0 --metrics 127.0.0.1:0 --page 127.0.0.1:0)
daemon || exit 1
expect 0 "eight jobs are applied" weft apply -f "$T/f.yaml"
weft watch --after 1 --format json >"$T/events" 2>"$T/watch.err" </dev/null &
PID[watch]=$!
controls=()
for name in "${!CTL[@]}"; do
	controls+=("$name=${CTL[$name]}")
done
/usr/bin/python3 fault_table.py "$TOP/tests/data/faults.txt" "$T" "$F" \
	"$(sed -nE 's/.*metrics on (127.0.0.1) port ([0-9]+)$/\1:\2/p' "$T/weftd.log")" \
	"$(sed -n 's/.*page on \(http.*\)$/\1/p' "$T/weftd.log")" "${controls[@]}" >"$T/rows"
TAP_BAD=$?
awk -v n=$TAP_N '/^(not )?ok / { sub(/ok /, "ok " ++n " ") } 1' "$T/rows"
TAP_N=$((TAP_N + $(grep -cE '^(not )?ok ' "$T/rows")))
finish
