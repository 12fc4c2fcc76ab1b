#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Devices that mean harm, one of every kind that is spoken to over a wire,
# beside a healthy one of the same kind: lines and bytes without end, a reply
# of 1 GB, a byte a second, replies to sessions that are over. Whatever they
# send, the healthy ones are read, each bad one has one clear error with its
# name, and the memory stays where it was.
source "$(dirname "$0")/../lib.sh"
DRIVERS=(polatis-scpi polatis-tl1 glimmerglass-tl1 calient-tl1 sonic-ocs
	rome-cli telescent-cli polatis-restconf mrr-reg)
size() {
	[[ $1 == mrr-reg ]] && echo 8x4 || echo 8x8
}
switch() { # NAME DRIVER: its place in the fabric
	if [[ $2 == mrr-reg ]]; then
		cat >>"$T/rings" <<-END
		  - { name: $1, nodes: "n[0-7]", channels: 4, channel-rate: 40Gbps,
		      retune: 25us, driver: $2, address: "${ADDR[$1]}", timeout: 1s }
		END
	else
		cat >>"$T/switches" <<-END
		  - { name: $1, size: 8x8, driver: $2, address: "${ADDR[$1]}",
		      timeout: 1s, options: { gap_ms: 0 } }
		END
	fi
}
for d in "${DRIVERS[@]}"; do
	for sort in good bad; do
		emulator "$sort-$d" "$d" "$(size "$d")" || exit 1
		switch "$sort-$d" "$d"
	done
done
{
	cat <<-END
	weft: 1
	fabric: hostile
	hosts:
	  - { name: "n[0-7]" }
	  - { name: h0, ports: p0, rate: 100Gbps }
	switches:
	END
	cat "$T/switches"
	echo "rings:"
	cat "$T/rings"
	cat <<-END
	fibres:
	  - { from: h0.p0, to: good-polatis-scpi.1 }
	END
} >"$T/f.yaml"

# What ASan keeps aside of freed memory would hide what weftd keeps.
DAEMON_OPTIONS=(--poll 0 --fabric "$T/f.yaml")
daemon ASAN_OPTIONS=detect_leaks=1:quarantine_size_mb=8 || exit 1

# look: reads all devices and writes NAME REACHABLE READ_AT PROBLEM lines.
look() {
	weft verify >"$T/verify" 2>&1 </dev/null
	weft status --format json >"$T/status" 2>"$T/err" </dev/null
	python3 - "$T/status" >"$T/devices" <<-'END'
	import json, sys
	for d in json.load(open(sys.argv[1]))["devices"]:
	    print(d["name"], d["reachable"], d.get("read_at", "-"),
	          d.get("problem", ""))
	END
}
good_read_at() {
	awk '$1 ~ /^good-/ { print $1, $3 }' "$T/devices"
}
# healthy: the good ones are reachable, and all were read again.
healthy() {
	[[ $(grep -c '^good-.* True ' "$T/devices") == "${#DRIVERS[@]}" ]] &&
		! comm -12 <(sort "$T/before") <(sort "$T/after") | grep -q .
}
peak_kib() {
	awk '$1 == "VmHWM:" { print $2 }' "/proc/${PID[weftd]}/status"
}

look
[[ $(grep -c ' True ' "$T/devices") == $((2 * ${#DRIVERS[@]})) ]]
tap "all are read while nothing is wrong"
start=$(peak_kib)

for fault in endless lines noise huge=1024 drip=1000 after-close; do
	good_read_at >"$T/before"
	for d in "${DRIVERS[@]}"; do
		control "bad-$d" "fault $fault" >"$T/out"
	done
	# On a busy machine a healthy one may be late as well: once more.
	for _ in 1 2 3; do
		look
		good_read_at >"$T/after"
		healthy && break
	done
	healthy
	tap "$fault: the healthy ones are read all the same"
	wrong=0
	for d in "${DRIVERS[@]}"; do
		if ! grep -qE "^bad-$d False .*bad-$d" "$T/devices"; then
			echo "# $(grep "^bad-$d " "$T/devices")"
			wrong=1
		fi
	done
	tap "$fault: each bad one is away, with an error that names it" $wrong
	for d in "${DRIVERS[@]}"; do
		control "bad-$d" clear >"$T/out"
	done
	sleep 0.1
	for i in 1 2 3 4 5 6 7 8; do
		look
		[[ $(grep -c ' True ' "$T/devices") == $((2 * ${#DRIVERS[@]})) ]] &&
			break
	done
	[[ $(grep -c ' True ' "$T/devices") == $((2 * ${#DRIVERS[@]})) ]]
	tap "$fault: when it is over all are read again"
done
grew=$(($(peak_kib) - start))
[[ $grew -lt $((128 * 1024)) ]]
tap "the peak of memory has grown by less than 128 MiB ($((grew / 1024)))"
kill -0 "${PID[weftd]}"
tap "weftd runs"
finish
