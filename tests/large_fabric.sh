#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# large_fabric.sh PODS HOSTS SWITCHES PORTS ADDRESS: prints a fabric of pods. Each
# has HOSTS hosts, a multiple of eight, with two ports on each of SWITCHES
# switches of PORTS ports; its jobs fill it: half of the hosts one job, the
# others jobs of eight. Switches have the addresses from ADDRESS, HOST:PORT, on.
# With OTHER_SMALL_JOBS set, half of the circuits of those are others.
# Every port of a host sends on one circuit: PODS * HOSTS * SWITCHES * 2 in all.
set -eu
pods=$1 hosts=$2 switches=$3 ports=$4 host=${5%:*} first=${5##*:}
big=$((hosts / 16 * 8))

echo "weft: 1"
echo "fabric: large"
echo "hosts:"
for ((p = 0; p < pods; p++)); do
	echo "  - { name: 'p$p-h[0-$((hosts - 1))]', ports: 'p[0-$((2 * switches - 1))]', rate: 100Gbps }"
done
echo "switches:"
for ((p = 0; p < pods; p++)); do
	port=$((first + p * switches))
	echo "  - { name: 'p$p-s[0-$((switches - 1))]', size: ${ports}x$ports, driver: polatis-scpi,"
	echo "      address: '$host:[$port-$((port + switches - 1))]', options: { gap_ms: 0, settle_ms: 1 },"
	echo "      timeout: 60s, domain: pod$p }"
done
echo "fibres:"
for ((p = 0; p < pods; p++)); do
	for ((s = 0; s < switches; s++)); do
		echo "  - { from: 'p$p-h[0-$((hosts - 1))].p[$((2 * s))-$((2 * s + 1))]', to: 'p$p-s$s.[1-$((2 * hosts))]' }"
	done
done
echo "jobs:"
small="BiRing($((2 * switches)),8)"
[[ -z ${OTHER_SMALL_JOBS:-} ]] || small="Multi(C(8,{1,3}),$((switches / 2)))"
steps=1
for ((s = 2; s <= switches && s < big / 2; s++)); do
	steps+=,$s
done
for ((p = 0; p < pods; p++)); do
	echo "  - { name: big$p, nodes: 'p$p-h[0-$((big - 1))]', collective: allgather,"
	echo "      size: 64MiB, topology: 'C($big,{$steps})' }"
	for ((h = big; h + 8 <= hosts; h += 8)); do
		echo "  - { name: small$p-$h, nodes: 'p$p-h[$h-$((h + 7))]', collective: allreduce,"
		echo "      size: 64MiB, topology: '$small' }"
	done
done
