#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Nodes, ports and diameter of every family and operator, as the command tells
# them, beside their closed forms.
source "$(dirname "$0")/../lib.sh"

seen=
# graph EXPR NODES DEGREE DIAMETER
graph() {
	local got
	got=$(weft topology info "$1" --format json 2>"$T/err" |
		jq -r '"\(.nodes) \(.degree) \(.diameter)"')
	if [[ $got == "$2 $3 $4" ]]; then
		tap "$1: $2 nodes, degree $3, diameter $4" 0
	else
		echo "# $1: '$got', expected '$2 $3 $4'"
		sed 's/^/#   /' "$T/err"
		tap "$1" 1
	fi
	seen+=" ${1%%(*}"
}

graph 'K(17)' 17 16 1
graph 'K(6,6)' 12 6 2
graph 'Ring(101)' 101 2 50
graph 'BiRing(6,11)' 11 6 5
graph 'UniRing(3,12)' 12 3 11
# Rings, circulants and cycles under other names.
graph 'Cay(20:2,r=19,{(0,1),(1,1)})' 40 2 20
graph 'Cay(41:1,r=1,{(4,0),(5,0)})' 41 4 4
graph 'DiCay(1:6,r=0,{(0,1)})' 6 1 5
# Bubble-sort graphs n (n - 1) / 2, star graphs half of 3 (n - 1), cubes.
graph 'Cay((1,2),(2,3),(3,4),(4,5))' 120 4 10
graph 'Cay((1 2), (1 3), (1 4), (1 5), (1 6))' 720 5 7
graph 'Cay((1,2),(3,4),(5,6),(7,8))' 16 4 4
# Points beyond the 64th.
graph 'Cay((1,2),(71,72),(94,95,96))' 12 4 3
# The largest that are known of a diameter.
graph 'Cay(53:52,r=2,{(28,15),(20,21),(37,22),(20,26)})' 2756 7 5
graph 'Cay(254:9,r=37,{(116,1),(242,1),(189,3),(34,4),(140,4)})' 2286 10 4
# Half of each side.
graph 'Torus(3,4,5)' 60 6 5
graph 'Torus(4,8,16)' 512 6 14
graph 'Torus(50,50)' 2500 4 50
graph 'TwistedTorus(8,16,8)' 128 4 8
graph 'TwistedTorus(4,4,8,0,4,4)' 128 6 6
graph 'Mesh(4,6,3)' 72 6 10
graph 'Hypercube(10)' 1024 10 10
graph 'TwistedHypercube(6)' 64 6 5
graph 'Hamming(3,4)' 64 9 3
# Theorem 22: m for C(n,{m,m+1}) up to n = 2 m^2 + 2 m + 1.
graph 'C(25,{3,4})' 25 4 3
graph 'C(26,{4,5})' 26 4 4
graph 'C(41,{4,5})' 41 4 4
graph 'C(1013,{22,23})' 1013 4 22
graph 'C(1024,{23,24})' 1024 4 23
graph 'DiC(6,{1,2})' 6 2 3
graph 'DiC(17,{1,4,13,16})' 17 4 3
# Theorem 21: at most a step above the Moore bound.
graph 'GenKautz(4,1024)' 1024 4 5
graph 'GenKautz(16,2000)' 2000 16 3
graph 'GenKautz(2,6)' 6 2 2
graph 'Kautz(2,4)' 48 2 5
graph 'Kautz(4,2)' 80 4 3
graph 'DeBruijn(2,10)' 1024 2 10
graph 'DeBruijn(4,3)' 64 4 3
# (d + 1)! / (d + 1 - k)! nodes of diameter k.
graph 'CyclePrefix(4,3)' 60 4 3
graph 'CyclePrefix(5,4)' 360 5 4
graph 'CyclePrefix(8,2)' 72 8 2
graph 'CyclePrefix(4,4)' 120 4 4
graph 'DBJMod(2,4)' 16 2 4
graph 'DBJMod(3,2)' 9 3 2
graph 'Diamond' 8 2 3
# Distance-regular.
graph 'Johnson(4,2)' 6 4 2
graph 'Johnson(8,4)' 70 16 4
graph 'Odd(4)' 35 4 3
graph 'Odd(5)' 126 5 4
graph 'DoubledOdd(4)' 70 4 7
graph 'Crown(5)' 10 4 3
graph 'Paley(9)' 9 4 2
graph 'Paley(29)' 29 14 2
graph 'SlimFly(5)' 50 7 2
graph 'Polarity(5)' 31 6 2
graph 'PG(3)' 26 4 3
graph 'PG(7)' 114 8 3
graph 'AG(4)' 32 4 4
graph 'AG(8)' 128 8 4
graph 'GQ(3)' 80 4 4
graph 'GH(3)' 728 4 6
graph 'Dist(PG(2),3)' 14 4 3
graph 'UL(Odd(3))' 15 4 3
graph 'UL(PG(2))' 21 4 3
graph 'UL(GQ(2))' 45 4 4
graph 'UL(GH(2))' 189 4 6
# Operators: a line graph is a step longer, a product the sum of its parts.
graph 'L3(C(16,{3,4}))' 1024 4 6
graph 'L(Diamond)' 16 2 4
graph 'Prod(UniRing(1,4),UniRing(1,8))' 32 2 10
graph 'Pow(Diamond,2)' 64 4 6
graph 'Deg(K(3),2)' 6 4 2
graph 'Bi(GenKautz(2,24))' 24 4 4
graph 'Reverse(Diamond)' 8 2 3
graph 'Multi(Ring(9),3)' 9 6 4
graph 'Cap(Torus(3,3),4)' 9 4 2
graph 'Lat(Torus(3,3),500)' 9 4 2

# Terminals, their ports, distances between them; nodes with switches and memories.
graph 'Star(9)' 10 1 2
graph 'Nvls(Star(9))' 10 1 2
graph 'Sharp(FatTree(4))' 36 1 6
graph 'HyperX(64,64)' 4224 4 4
graph 'HyperX(3,4,5)' 107 6 6
graph 'HammingMesh(1,3,4)' 19 4 4
graph 'HammingMesh(2,8,8)' 288 4 4
graph 'HammingMesh(4,4,4)' 288 4 8
graph 'FatTree(8)' 208 1 6
graph 'Rails(4,8)' 44 2 4
graph 'DgxA100(4,nvlink)' 44 2 4
graph 'DgxA100(4,pcie)' 60 1 6
graph 'DgxA100(4,all)' 64 2 6

# Four ranks of 400 Gbps each inside a host, behind two ports of 200 Gbps.
cat >"$T/servers.yaml" <<'EOF'
weft: 1
fabric: pod
hosts:
  - { name: "n[0-2]", ports: "p[0-1]", rate: 200Gbps, inside: "Cap(Star(4),50)" }
switches:
  - { name: ocs0, size: 6x6, driver: sim }
fibres:
  - { from: "n[0-2].p[0-1]", to: "ocs0.[1-6]" }
jobs:
  - { name: train, nodes: "n[0-2]", collective: all-to-all, size: 1MB, topology: "Ring(3)" }
EOF
weft topology build -f "$T/servers.yaml" --job train -o "$T/train.json" 2>"$T/err" &&
	weft topology info "$T/train.json" --format json |
	jq -e '.topology == "train on pod, capacities in 200Gbps" and .terminals == 12 and
		.memories == 0 and .switches == 3 and .arcs == 30' >/dev/null
tap "a job of servers has their ranks" $?
# A host sends 4 x 8 shards through two ports of 200 Gbps.
weft schedule make -t "$T/train.json" -c all-to-all --rate --exact --format json 2>"$T/err" |
	jq -e '.flow_rate_exact == "1/16" and .flow_gap == 0' >/dev/null
tap "its all-to-all rate is exact" $?
# A twelfth of 1 MB for each pair at that rate takes 53.3 us at least.
weft plan -f "$T/servers.yaml" --offline --format json 2>"$T/err" </dev/null |
	jq -e '.jobs[0] | .circuits == 6 and .time_ns >= 53333' >/dev/null
tap "and its plan has a schedule" $?

# Random graphs: the same for the same seed, never below the Moore bound, and
# all of their ports in use.
# random FORM NODES DEGREE SYMMETRIC
random() {
	local expr seed
	for seed in 1 2 3; do
		expr=${1/SEED/$seed}
		weft topology info "$expr" --format json >"$T/a"
		weft topology info "$expr" --format json >"$T/b"
		jq -e --argjson n "$2" --argjson d "$3" --argjson both "$4" \
			'.nodes == $n and .degree == $d and .regular and
			.symmetric == $both and .diameter >= 3 and
			.diameter <= 8' "$T/a" >/dev/null && cmp -s "$T/a" "$T/b"
		tap "$expr: $2 nodes, degree $3, connected" $?
	done
	seen+=" ${1%%(*}"
}
random 'Xpander(4,20,SEED)' 100 4 true
random 'Xpander(7,16,SEED)' 128 7 true
random 'Jellyfish(100,4,SEED)' 100 4 true
random 'Jellyfish(128,7,SEED)' 128 7 true
random 'PathExpander(100,4,SEED)' 100 4 false

# No family without a row here.
missing=$(weft topology info | sed 's/[( ].*//' | sort -u |
	grep -vxFf <(tr ' ' '\n' <<<"$seen" | sed 's/^L[0-9]*$/L/'))
[[ -z $missing ]] || echo "# no row for: $missing"
[[ -z $missing ]]
tap "every family has a row" $?
expect 65 "a file without end" weft topology info /dev/zero
has err "... is too large" 'larger than the limit'
finish
