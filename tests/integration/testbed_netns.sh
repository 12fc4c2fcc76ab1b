#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Namespaces of weft and of ip(8) side by side, in a mount namespace with a /run of
# its own, as on a machine that has just started: whoever makes the first one,
# the other's go away again.
source "$(dirname "$0")/../lib.sh"
F=tn$$

if [[ ${1:-} != inside ]]; then
	if ! unshare --mount mount -t tmpfs none /run 2>"$T/err"; then
		echo "ok 1 - testbed # SKIP $(head -n 1 "$T/err")"
		echo "1..1"
		exit 0
	fi
	exec unshare --mount "$0" inside
fi

mount -t tmpfs none /run || exit 1
cat >"$T/f.yaml" <<-END
	weft: 1
	fabric: $F
	hosts:
	  - { name: "h[0-1]", ports: "p0", rate: 10Gbps }
	switches:
	  - { name: ocs0, size: 2x2, driver: linux-tc, options: { fabric: $F } }
	fibres:
	  - { from: "h[0-1].p0", to: "ocs0.[1-2]" }
END
names() { # in /run/netns, sorted
	find /run/netns -mindepth 1 -printf '%f\n' | sort | tr '\n' ' '
}

expect 0 "weft's namespaces are the first" weft testbed up "$T/f.yaml"
expect 0 "one more, by ip" ip netns add theirs
expect 0 "weft's go" weft testbed down "$T/f.yaml"
[[ $(names) == 'theirs ' ]]
tap "and no other"
expect 0 "weft's beside that of ip" weft testbed up "$T/f.yaml"
expect 0 "that of ip goes" ip netns del theirs
expect 0 "weft's go again" weft testbed down "$T/f.yaml"
[[ $(names) == '' ]]
tap "nothing is left"
[[ $(grep -c ' /run/netns .* tmpfs ' /proc/self/mountinfo) == 1 ]]
tap "the folder is mounted once"
finish
