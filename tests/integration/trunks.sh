#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A job over two switches that fibres join: planned, applied, verified; the
# same again moves nothing; a topology that needs more fibres is refused.
source "$(dirname "$0")/../lib.sh"
emulator left polatis-scpi 6x6 && emulator right polatis-scpi 6x6 || exit 1

# halves FILE TOPOLOGY
halves() {
	cat >"$1" <<-END
	weft: 1
	fabric: halves
	hosts:
	  - { name: "h[0-3]", ports: "p[0-1]", rate: 100Gbps, reactivation: 10ms }
	switches:
	  - name: left
	    size: 6x6
	    driver: polatis-scpi
	    address: ${ADDR[left]}
	    options: { gap_ms: 1, settle_ms: 20 }
	    timeout: 500ms
	  - name: right
	    size: 6x6
	    driver: polatis-scpi
	    address: ${ADDR[right]}
	    options: { gap_ms: 1, settle_ms: 20 }
	    timeout: 500ms
	fibres:
	  - { from: "h[0-1].p[0-1]", to: "left.[1-4]" }
	  - { from: "h[2-3].p[0-1]", to: "right.[1-4]" }
	  - { from: "left.[5-6]", to: "right.[5-6]" }
	jobs:
	  - { name: j, nodes: 'h[0-3]', collective: allreduce, size: 1MiB, topology: '$2', alpha: 10us }
	END
}

# The fibres between the switches carry one wavelength each.
coloured() {
	halves "$1" 'Ring(4)'
	sed -i -e '/"h\[0-3\]"/s/ }$/, channels: 2-3 }/' \
		-e "/right.\[5-6\]/s/ }\$/, channels: '$2' }/" "$1"
}

halves "$T/ring.yaml" 'Ring(4)'
coloured "$T/wdm.yaml" 3,2
coloured "$T/wrong.yaml" 4,5
halves "$T/one-way.yaml" 'UniRing(1,4)'
halves "$T/bipartite.yaml" 'K(2,2)'
daemon || exit 1
expect 2 "a ring over both halves" weft plan -f "$T/ring.yaml"
has out "the far end of a fibre between switches" '-> right\.[56]'
has out "four arcs on one switch, four on two" '^12 to add'
expect 0 "is applied" weft apply -f "$T/ring.yaml"
expect 0 "and verified" weft verify
[[ $(control left map | grep -c ,) == 6 && $(control right map | grep -c ,) == 6 ]]
tap "the switches hold six circuits each" $?
before=$(sets left).$(sets right)
expect 0 "planned again: nothing to do" weft plan -f "$T/ring.yaml"
[[ $(sets left).$(sets right) == "$before" ]]
tap "no command was sent" $?
expect 0 "one way round" weft apply -f "$T/one-way.yaml"
expect 0 "is verified, too" weft verify
expect 65 "eight arcs over two fibres each way" weft plan -f "$T/bipartite.yaml"
has err "the cut is named" '4 lightpaths must lead out of \{left\}, and the 2 fibres there carry 2'
expect 0 "wavelengths between the switches" weft apply -f "$T/wdm.yaml"
expect 0 "are verified" weft verify
expect 0 "what transmitters send" weft plan -f "$T/wdm.yaml" --full
has out "is said" 'h[0-3].p[01] sends channel 3'
expect 65 "a wavelength that no transceiver sends" weft plan -f "$T/wrong.yaml"
has err "is an error that says why" "the 0 fibres there carry 0"
has err "and what to do" "more 'channels' of hosts and fibres"

# ---- jobs are given light together ----

six=$TOP/configs/fabrics/six-sites.yaml
expect 2 "four jobs over six sites, with as few wavelengths as they need" weft plan --offline -f "$six"
has out "all of them" '^[0-9]+ to add, 0 to delete'
{ grep -v '{ name: j' "$six" && grep '{ name: j' "$six" | tac; } >"$T/six.yaml"
expect 2 "in another order" weft plan --offline -f "$T/six.yaml"
sed 's/2s, channels: 0-3/2s, channels: 0-2/' "$six" >"$T/three.yaml"
expect 65 "hosts that send three of the wavelengths" weft plan --offline -f "$T/three.yaml"
has err "the proof is named" 'jobs j0, j2, j3: 8 lightpaths must lead out of \{s0, s1\}, and the 2 fibres there carry 6'
finish
