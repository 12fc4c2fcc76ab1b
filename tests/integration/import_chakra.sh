#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Chakra traces as the step of a job: what writers of traces differ in is one step, each mistake is told with
# file and node, and what is written is a job that is planned.
source "$(dirname "$0")/../lib.sh"
mkdir "$T/py"
protoc -I "$TOP/proto" --python_out="$T/py" chakra/chakra.proto || exit 1
export PYTHONPATH=$T/py PYTHONDONTWRITEBYTECODE=1
# traces RANKS <LINES: $T/t.0.et and on.
traces() {
	rm -f "$T"/t.*
	/usr/bin/python3 "$TOP/tests/integration/chakra_traces.py" "$T/t" "$1"
}
# gives WHAT YAML [OPTIONS]: the step of the traces.
gives() {
	expect 0 "$1" weft import chakra "$T/t" "${@:3}"
	diff <(printf '%s\n' "$2") "$T/out" >"$T/diff" || { sed 's/^/# /' "$T/diff"; false; }
	tap "... is that step"
}
# refused WHAT PATTERN
refused() {
	expect 65 "$1" weft import chakra "$T/t"
	has err "... and told" "$2"
}
# one KIND SIZE: a step of one collective of all four ranks.
one() {
	printf 'mesh: { a: 4 }\ncollectives:\n  - { name: %s-a, collective: %s, size: %s, over: [a] }\nstep:\n  - %s-a' \
		"$1" "$1" "$2" "$1"
}

# ---- what writers differ in ----

traces 4 <<<'* 0 7 comm_type=2 comm_size=1048576 involved_dim=bool:1'
gives "an all-gather, of which a trace has one rank's part" "$(one allgather 4194304B)"
traces 4 <<<'* 0 7 comm_type=uint64:0 comm_size=uint64:1048576 pg_name=string:0'
gives "an all-reduce of all ranks by name, in unsigned numbers" "$(one allreduce 1048576B)"
traces 4 <<<'* 0 7 comm_type=int32:8 comm_size=sfixed64:4096 pg_name=string:'
gives "a reduce-scatter in blocks" "$(one reduce-scatter 4096B)"
traces 4 <<'END'
* 0 7 comm_type=6 comm_size=4096 is_cpu_op=bool:1
* 1 7 comm_size=4096 is_cpu_op=int32:0
* 2 7 comm_type=6 comm_size=8192 is_cpu_op=int32:0
* 3 7 comm_type=9 comm_size=0
* 4 4
END
gives "calls but for the host's side of them" "$(one all-to-all 8192B)"
has err "what has no bytes is named" 't\.0\.et: node 3: passed over, as others like it: a barrier without bytes'

traces 4 <<'END'
* 1 7 comm_type=0 comm_size=100 pg_name=string:1 after=9
* 2 7 comm_type=0 comm_size=200 pg_name=string:1 control=1
* 9 4 after=10
* 10 7 comm_type=0 comm_size=300 pg_name=string:2
END
echo '{"1": [0, 1, 2, 3], "2": [0, 1, 2, 3], "3": [3, 1], "4": []}' >"$T/t.json"
gives "the order of both kinds of dependence, not of ids" 'mesh: { a: 4 }
collectives:
  - { name: allreduce-a, collective: allreduce, size: 300B, over: [a] }
  - { name: allreduce-a-2, collective: allreduce, size: 100B, over: [a] }
  - { name: allreduce-a-3, collective: allreduce, size: 200B, over: [a] }
step:
  - allreduce-a
  - allreduce-a-2
  - allreduce-a-3'

# mesh GROUPS-ATTRIBUTE: 2 x 2 x 2, ranks of one node together, sends between the halves; one group of one rank.
mesh() {
	traces 8 <<-END
	0,1 1 7 comm_type=2 comm_size=10 $1:1
	2,3 1 7 comm_type=2 comm_size=10 $1:2
	4,5 1 7 comm_type=2 comm_size=10 $1:3
	6,7 1 7 comm_type=2 comm_size=10 $1:4
	0,1 2 7 comm_type=2 comm_size=10 after=1 $1:1
	2,3 2 7 comm_type=2 comm_size=10 after=1 $1:2
	4,5 2 7 comm_type=2 comm_size=10 after=1 $1:3
	6,7 2 7 comm_type=2 comm_size=10 after=1 $1:4
	0 3 5 comm_dst=int32:4 comm_size=50 comm_tag=int32:1 after=2
	1 3 5 comm_dst=int32:5 comm_size=50 comm_tag=int32:1 after=2
	2 3 5 comm_dst=int32:6 comm_size=50 comm_tag=int32:1 after=2
	3 3 5 comm_dst=int32:7 comm_size=50 comm_tag=int32:1 after=2
	4 3 6 comm_src=int32:0 comm_size=50 comm_tag=int32:1 after=2
	5 3 6 comm_src=int32:1 comm_size=50 comm_tag=int32:1 after=2
	6 3 6 comm_src=int32:2 comm_size=50 comm_tag=int32:1 after=2
	7 3 6 comm_src=int32:3 comm_size=50 comm_tag=int32:1 after=2
	0,1,2,3 4 7 comm_type=0 comm_size=70 after=3 $1:5
	4,5,6,7 4 7 comm_type=0 comm_size=70 after=3 $1:6
	0 5 7 comm_type=0 comm_size=90 after=4 $1:7
	4 5 7 comm_type=0 comm_size=1 after=4 $1:8
	${2:-}
	END
}
STEP='mesh: { a: 2, b: 2, c: 2 }
collectives:
  - { name: allgather-c, collective: allgather, size: 20B, over: [c] }
  - { name: send-a-up1, collective: send, size: 50B, over: [a], shift: 1 }
  - { name: allreduce-bc, collective: allreduce, size: 70B, over: [b, c] }
step:
  - repeat: 2
    do:
      - allgather-c
  - send-a-up1
  - allreduce-bc'
GROUPS_='{"1": [0, 1], "2": [2, 3], "3": [4, 5], "4": [6, 7], "5": [0, 1, 2, 3], "6": [4, 5, 6, 7], "7": [0], "8": [4], "9": [7, 2]}'
mesh pg_name=string
echo "$GROUPS_" >"$T/t.json"
gives "groups in a file beside, one of them of no call" "$STEP"
mesh comm_group=int32
echo "$GROUPS_" >"$T/other.json"
gives "groups by number, in another file" "$STEP" --groups "$T/other.json"
metadata=$(jq -c '[to_entries[] | {pg_name: .key, pg_desc: "x", ranks: .value, group_size: 2}]' <<<"$GROUPS_")
mesh pg_name=string "* 6 1 'name=## process_group:init ##' 'values=[\"$metadata\"]'"
gives "groups in the traces" "$STEP"
traces 4 <<'END'
* 0 7 comm_type=0 comm_size=100 pg_name=string:7
* 1 1 'name=## process_group:init ##' 'values=["[{"pg_name": "7", "ranks": []}]"]'
END
gives "a group of no ranks in a trace is all ranks" "$(one allreduce 100B)"

# ---- what it is good for ----

cat >"$T/fabric.yaml" <<'END'
weft: 1
fabric: shared
hosts:
  - { name: "h[0-7]", ports: "p[0-5]", rate: 100Gbps, reactivation: 1ms }
switches:
  - { name: ocs0, size: 48x48, driver: sim }
fibres:
  - { from: "h[0-7].p[0-5]", to: "ocs0.[1-48]" }
jobs:
  - name: train
    nodes: "h[0-7]"
END
mesh pg_name=string
echo "$GROUPS_" >"$T/t.json"
weft import chakra "$T/t" | sed 's/^/    /' >>"$T/fabric.yaml"
expect 2 "it is a job that is planned" weft plan -f "$T/fabric.yaml"
has out "with light for each collective" 'allreduce-bc'

# ---- mistakes ----

traces 4 <<<'* 3 7 comm_type=0 comm_size=100 pg_name=string:1'
refused "a group that is not there" "t\.0\.et: node 3: there is no group '1'"
echo '{"1": [0, 2, 1, 3]}' >"$T/t.json"
refused "ranks in another order" "the group of ranks 0 2 1 3 is not of axes of a mesh of ranks in order"
echo '{"1": [0, 1, 2]}' >"$T/t.json"
refused "a rank outside of its group" "t\.3\.et: node 3: the rank is not in group '1', ranks 0 1 2"
echo '{"1": [0, 4]}' >"$T/t.json"
refused "a rank that is not there" "t\.json: group '1': expected a list of ranks below 4, each once"
traces 6 <<'END'
0,1,2 1 7 comm_type=0 comm_size=100 pg_name=string:1
3,4,5 1 7 comm_type=0 comm_size=100 pg_name=string:2
0,1 2 7 comm_type=0 comm_size=100 pg_name=string:3
2,3 2 7 comm_type=0 comm_size=100 pg_name=string:4
4,5 2 7 comm_type=0 comm_size=100 pg_name=string:5
END
echo '{"1": [0, 1, 2], "2": [3, 4, 5], "3": [0, 1], "4": [2, 3], "5": [4, 5]}' >"$T/t.json"
refused "groups that meet in unlike numbers" "no mesh has axes for both ranks 0 1 and ranks 0 1 2"
traces 4 <<'END'
* 1 7 comm_type=0 comm_size=100
0,1,3 2 7 comm_type=0 comm_size=200
2 2 7 comm_type=0 comm_size=201
END
refused "a call that others make otherwise" "t\.2\.et: node 2: call 2 on ranks 0 1 2 3 is another than that of rank 0"
traces 4 <<'END'
* 1 7 comm_type=0 comm_size=100
0,1,2 2 7 comm_type=0 comm_size=200
END
refused "a call that one does not make" "t\.3\.et: 1 calls on ranks 0 1 2 3, of rank 0 2"
traces 4 <<<'* 1 5 comm_size=100 pg_name=string:0'
refused "a send without a partner, as PyTorch writes" "t\.0\.et: node 1: a send or receive of 100 bytes without a partner"
traces 4 <<<'* 1 7 comm_type=5 comm_size=100'
refused "a collective with a root" "node 1: a step with a broadcast is not supported"
traces 4 <<<'* 1 7 comm_type=10 comm_size=100'
refused "a kind that is not known" "node 1: comm_type 10 is not known"
traces 4 <<<'* 1 7 comm_type=2 comm_size=4611686018427387904'
refused "too many bytes" "node 1: comm_size 4611686018427387904 is too large"
traces 4 <<<'* 1 7 comm_type=2 comm_size=1 after=2'
refused "a dependence on nothing" "node 1: it depends on a node that is not there"
traces 4 <<'END'
* 1 7 comm_type=2 comm_size=1 after=2
* 2 4 after=1
END
refused "a dependence round" "node 1: it depends on itself, by others"
traces 4 <<'END'
* 1 4
* 1 4
END
refused "an id twice" "node 1: the id is another's, too"
refused_first=$(wc -c <"$T/t.2.et")
truncate -s $((refused_first - 1)) "$T/t.2.et"
refused "a trace that ends in a node" 't\.2\.et: it is no trace from byte [0-9]+ on'
traces 4 <<<'* 1 7 comm_type=0 comm_size=100'
gzip "$T/t.1.et" && mv "$T/t.1.et.gz" "$T/t.1.et"
refused "a compressed trace" 't\.1\.et: it is compressed: gunzip it first'
traces 4 <<<'* 1 4'
refused "traces without calls" 't\.0\.et: no rank calls another one'
expect 65 "no traces" weft import chakra "$T/none"
has err "... and told" 'none\.0\.et'
finish
