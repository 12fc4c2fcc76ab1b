#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The fabric as Slurm and topograph want it.
source "$(dirname "$0")/../lib.sh"
cd "$TOP/configs/fabrics" || exit 1

# gives WHAT COMMAND...: prints exactly standard input.
gives() {
	local what=$1
	shift
	cat >"$T/want"
	"$@" >"$T/out" 2>"$T/err"
	diff -u "$T/want" "$T/out" | sed 's/^/# /'
	cmp -s "$T/want" "$T/out"
	tap "$what"
}
gives "two switches joined by fibres" weft export slurm trunks.yaml <<'END'
# The fabric trunks, written by weft export.
- topology: optical
  cluster_default: true
  tree:
    switches:
      - switch: "joined.ocs0"
        children: "ocs0,ocs1"
      - switch: "ocs0"
        nodes: "gpu0,gpu1,gpu2,gpu3"
      - switch: "ocs1"
        nodes: "gpu4,gpu5,gpu6,gpu7"
END
gives "as topology.conf" weft export slurm --to conf trunks.yaml <<'END'
# The fabric trunks, written by weft export.
SwitchName=ocs0 Nodes=gpu[0-3]
SwitchName=joined.ocs0 Switches=ocs0,ocs1
SwitchName=ocs1 Nodes=gpu[4-7]
END
gives "as blocks" weft export slurm --plugin block trunks.yaml <<'END'
# The fabric trunks, written by weft export.
- topology: optical
  cluster_default: true
  block:
    block_sizes:
      - 4
    blocks:
      - block: "ocs0"
        nodes: "gpu0,gpu1,gpu2,gpu3"
      - block: "ocs1"
        nodes: "gpu4,gpu5,gpu6,gpu7"
END
gives "as topograph's model" weft export topograph trunks.yaml <<'END'
# The fabric trunks, written by weft export.
switches:
  "joined.ocs0":
    switches: ["ocs0", "ocs1"]
blocks:
  - switch: "ocs0"
    nodes: ["gpu0", "gpu1", "gpu2", "gpu3"]
  - switch: "ocs1"
    nodes: ["gpu4", "gpu5", "gpu6", "gpu7"]
END
# Hosts on one switch, on both, alike but on others, on a ring, and dark: light
# joins the first four kinds only through what they share.
cat >"$T/mixed.yaml" <<'END'
weft: 1
fabric: mixed
hosts:
  - { name: 'a[0-1]', ports: p0, rate: 100Gbps }
  - { name: 'b[0-1]', ports: p0, rate: 100Gbps }
  - { name: 'c[0-1]', ports: 'p[0-1]', rate: 100Gbps }
  - { name: 'x[0-1]', ports: p0, rate: 100Gbps }
  - { name: dark, ports: p0, rate: 100Gbps }
  - { name: 'r[0-2]' }
switches:
  - { name: s0, size: 8x8, driver: sim }
  - { name: s1, size: 8x8, driver: sim }
  - { name: s2, size: 8x8, driver: sim }
rings:
  - { name: ring, nodes: 'r[0-2]', channels: 4, channel-rate: 10Gbps, retune: 1us, driver: sim-ring }
fibres:
  - { from: 'a[0-1].p0', to: 's0.[1-2]' }
  - { from: 'b[0-1].p0', to: 's1.[1-2]' }
  - { from: 'c[0-1].p0', to: 's0.[5-6]' }
  - { from: 'c[0-1].p1', to: 's1.[7-8]' }
  - { from: 'x[0-1].p0', to: 's2.[1-2]' }
END
gives "parts that no light joins" weft export slurm "$T/mixed.yaml" <<'END'
# The fabric mixed, written by weft export.
- topology: optical
  cluster_default: true
  tree:
    switches:
      - switch: "joined.s0"
        children: "s0,s1,s0.s1"
      - switch: "s0"
        nodes: "a0,a1"
      - switch: "s1"
        nodes: "b0,b1"
      - switch: "s0.s1"
        nodes: "c0,c1"
      - switch: "s2"
        nodes: "x0,x1"
      - switch: "dark"
        nodes: "dark"
      - switch: "ring"
        nodes: "r0,r1,r2"
END
# Names that Slurm's ranges stand for, and those that they do not.
cat >"$T/names.yaml" <<'END'
weft: 1
fabric: names
hosts:
  - { name: 'a[08-11]', ports: p0, rate: 100Gbps }
  - { name: 'a[8-9]', ports: p0, rate: 100Gbps }
  - { name: 'b7', ports: p0, rate: 100Gbps }
  - { name: 'b9', ports: p0, rate: 100Gbps }
  - { name: 'b[1-2]x', ports: p0, rate: 100Gbps }
  - { name: 'c1234567890123', ports: p0, rate: 100Gbps }
  - { name: 'c1234567890124', ports: p0, rate: 100Gbps }
  - { name: 'd[9-10]', ports: p0, rate: 100Gbps }
END
gives "names in ranges" weft export slurm --to conf "$T/names.yaml" <<'END'
# The fabric names, written by weft export.
SwitchName=dark Nodes=a[08-11],a[8-9],b7,b9,b1x,b2x,c1234[567890123-567890124],d[9-10]
END
expect 64 "a file that is none" weft export slurm --to ini trunks.yaml
expect 64 "blocks in topology.conf" weft export slurm --to conf --plugin block trunks.yaml
expect 64 "a plugin that is none" weft export slurm --plugin ring trunks.yaml
expect 65 "a fabric with mistakes" weft export slurm ../broken/names.yaml

# ---- on a terminal ----

# terminal CODE WHAT COMMAND: its standard output and error are a pseudo terminal; what it shows
# is in $T/shown.
terminal() {
	local got
	script -qec "$3" "$T/typescript" >"$T/shown" 2>&1 </dev/null
	got=$?
	[[ $got == "$1" ]] || { echo "# $3: exit $got" && sed 's/^/#   /' "$T/shown" | head; }
	[[ $got == "$1" ]]
	tap "$2"
}
cd "$T" || exit 1
weft schedule make -t 'Torus(3,3)' -c allreduce -o made.pb >/dev/null
terminal 64 "hundreds of lines are not printed" "weft schedule export made.pb --to msccl-xml"
has shown "... which says so" 'weft: [0-9]+ lines, and standard output is a terminal'
has shown "... and what to do" 'hint: give -o FILE, or -o - to print them'
(($(wc -l <shown) == 2))
tap "... and nothing else"
mkfifo held.yaml
(sleep 2.5; cat made.pb) >held.yaml &
terminal 0 "a command that takes long says for how long" "weft schedule verify held.yaml"
has shown "... in seconds, from the third on" 'weft schedule verify: 2 s'
wait $!
terminal 64 "nor protobuf" "weft schedule export made.pb --to proto"
has shown "... which is no text" 'bytes that are no text'
terminal 64 "nor a route table" "weft routes make -t 'K(24)' -a shortest-path"
terminal 0 "with -o - they are" "weft schedule export made.pb --to msccl-xml -o -"
(($(wc -l <shown) > 100))
tap "... all of them"
terminal 0 "a few lines are printed" "weft export slurm $TOP/configs/fabrics/trunks.yaml"
has shown "... as they are" 'cluster_default: true'
weft schedule export made.pb --to msccl-xml >piped 2>err && weft schedule export made.pb \
	--to msccl-xml -o written 2>err && cmp piped written
tap "pipes and files get the same"
finish
