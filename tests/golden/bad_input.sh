#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What a user gets wrong, on every verb that plans: one clear error that names
# the place and the fact, the exit code of the contract, nothing on standard
# output and no file half written. A writer whose disk is full says so.
source "$(dirname "$0")/../lib.sh"
TOP_FABRICS=$TOP/configs/fabrics
cd "$T" || exit 1

# ---- the files ----

weft topology build 'Ring(4)' -o ring.json
weft schedule make -t 'K(4)' -c allgather -o gather.json >made
weft schedule make -t 'K(4)' -c all-to-all -o pairs.pb >made
weft routes make -t 'K(4)' -o routes.json >made
edit() { # FROM SCRIPT TO: a copy that differs
	sed "$2" "$1" >"$3"
	! cmp -s "$1" "$3" || echo "# $3 is no different"
}
edit ring.json 's/\[2, 1, 1/[2, 9, 1/' range.json
edit ring.json 's/\[2, 1, 1/[-2, 1, 1/' negative.json
edit ring.json 's/\[2, 1, 1/[2, 1, -1/' capacity.json
edit ring.json 's/\[2, 1, 1/[2, 1, 0/' dark.json
edit ring.json 's/\[2, 1, 1/[2, 1, 1.5/' half.json
edit ring.json 's/\[2, 1, 1, 0/[2, 1, 1, -5/' latency.json
edit ring.json 's/\[2, 1, 1, 0\]/{"src": 2}/' object.json
edit ring.json 's/"nodes": 4/"nodes": 4, "nodes": 5/' twice.json
edit ring.json 's/"nodes": 4/"nodes": 0/' none.json
edit ring.json 's/"nodes": 4/"nodes": 99999999999/' huge.json
edit ring.json 's/"nodes": 4/"nodes": NaN/' nan.json
edit ring.json 's/"nodes": 4/"nodes": 1e400/' inf.json
edit ring.json 's/"nodes": 4/"nodes": 4.5/' real.json
edit ring.json 's/"nodes": 4/"nodes": 5/' apart.json
edit ring.json 's/"nodes": 4/"nodes": 4, "switches": [3]/' switches.json
edit ring.json 's/"nodes": 4/"nodes": 4, "kinds": [{"kind": "switch", "nodes": [1]}]/' order.json
printf '0 1\n1 2 32 dram\n' >limit.txt
printf 'switch 1\n0 1\n1 2\n' >order.txt
printf '{"routes": [[0, 1, 1, [0, 2, 1]], [2, 0, 1, [2, 0]]]}' >paths.json
printf 'undirected\nswitch 2\n0 2\n1 2\n' >switch.txt
printf 'undirected\nlimit nic 1\n0 1 nic\n1 2 nic\n0 2\n' >shared.txt
edit gather.json 's/"chunks": 1/"chunks": 0/' chunks.json
edit gather.json 's/"chunks": 1/"chunks": 1e400/' chunks-inf.json
edit gather.json 's/"chunks": 1/"chunks": 1, "chunks": 1/' chunks-twice.json
edit gather.json 's/"nodes": 4/"nodes": 9999999/' nodes.json
edit gather.json 's/"allgather"/"dance"/' dance.json
printf '0 1\n1 2\n' >apart.txt
printf '0 1\n1 99999999\n' >range.txt
printf '0 1\n1 -2\n' >negative.txt
printf '0 1\n1 2 nan\n' >nan.txt
printf '0 1\n1 2 1e400\n' >inf.txt
printf '{"topology": "x", "nodes": 4, "arcs": []}\n' >degree0.json
printf '{"topology": "x", "nodes": 1, "arcs": []}\n' >one.json
printf '3 1\n1 99\n' >range.net
printf '2 2\n0 1\n1 0\n' >two.net
printf '1\n0 1 nan\n' >nan.trf
printf '?SNDlib native format; type: network; version: 1.0\nNODES (\na\nb\n)\nLINKS (\n' >two.sndlib
printf 'l ( a c )\n)\n' >>two.sndlib
printf 'x: [\n' >open.yaml
printf '{\n' >open.json
printf '\377\376\001\002binary' >binary
: >empty
mkdir folder
deep=$(printf 'L(%.0s' {1..10000})K'(3)'$(printf ')%.0s' {1..10000})

# ---- the table ----

# bad CODE PATTERN COMMAND...: fails with this code and one error that matches,
# says nothing else, and writes nothing.
bad() {
	local code=$1 pattern=$2 got why='' line lines matching=0 errors=0 others=0
	shift 2
	RAN=no
	mine || return 0
	RAN=yes
	[[ ! -e written ]] || rm written
	timeout 60 weft "$@" >"$T/out" 2>"$T/err" </dev/null
	got=$?
	mapfile -t lines <"$T/err"
	[[ $got == "$code" ]] || why="exit $got, expected $code"
	[[ ! -s $T/out ]] || why+="; standard output is not empty"
	[[ ! -e written ]] || why+="; a file was written"
	for line in "${lines[@]}"; do
		[[ $line =~ ^weft:\ .*$pattern ]] && ((matching++))
		[[ $line == "weft: "* ]] && ((errors++))
		[[ $line == "hint: "* ]] || ((others++))
	done
	((matching)) || why+="; no '$pattern'"
	((errors == 1)) || why+="; not one error"
	((others == 1)) || why+="; more than it"
	if [[ -n $why ]]; then
		echo "# $why"
		cut -c1-300 "$T/err" | sed 's/^/#   /'
	fi
	line="weft $*"
	[[ -z $why ]]
	tap "${line:0:70}"
}

# hint PATTERN: of the last one.
hint() {
	[[ $RAN == no ]] || has err "  and hints" "^hint: .*$1"
}

# Expressions.
for verb in 'topology info' 'topology build -o written' \
		'schedule make -c allgather -o written -t' \
		'routes make -o written -t'; do
	# shellcheck disable=SC2086
	{
		bad 65 "'K\(1\)': column 3: .* is 1: expected 2 or more" \
			$verb 'K(1)'
		bad 65 'column 66: nested deeper than 32' $verb "$deep"
		bad 65 'degree is 0: expected 1 or more' $verb 'GenKautz(0,8)'
		bad 65 'has 4294901760 arcs, more than' $verb 'K(65536)'
		bad 65 'range.json: arc 5: the destination 9 is none of the' \
			$verb range.json
		bad 65 'absent.json: No such file' $verb absent.json
	}
done
bad 65 "no family 'torus'" topology info 'torus(4,4)'
hint "did you mean 'Torus'"
bad 65 "no family 'Blob'" topology info 'Blob(4)'
hint '"weft topology info" lists'
bad 65 'the number is too large' topology info 'K(99999999999999999999)'
bad 65 'expected a number, found .-' topology info 'K(-3)'
bad 65 'expected a number, found .n' topology info 'K(nan)'
bad 65 "found 'e'" topology info 'K(1e400)'
bad 65 'found the end' topology info ''
bad 65 'found the end' topology info 'Torus(4,'
bad 65 'more than 65536 nodes' topology info 'Torus(65536,65536)'
bad 65 'takes other arguments: expected Jellyfish\(n,d,seed\)' \
	topology info 'Jellyfish(8,3)'

# Topology files.
bad 65 'arc 5: the source -2 is none' topology info negative.json
bad 65 'arc 5: the capacity -1 is negative' topology info capacity.json
bad 65 'has capacity 0' topology info dark.json
bad 65 'arc 5: the capacity is no whole number' topology info half.json
bad 65 'arc 5: the latency -5 is negative' topology info latency.json
bad 65 'arc 5: \[source, dest' topology info object.json
bad 65 'twice.json:1:[0-9]+: .*duplicate object key' topology info twice.json
bad 65 'nodes: 0 is not in 1 to 65536' topology info none.json
bad 65 'nodes: 99999999999 is not in 1' topology info huge.json
bad 65 'nan.json:1:[0-9]+: .*NaN' topology info nan.json
bad 65 'inf.json:1:[0-9]+: .*overflow' topology info inf.json
bad 65 '"nodes", a whole number' topology info real.json
bad 65 'open.json:2: not a topology' topology info open.json
bad 65 'range.txt:2: target 99999999' topology info range.txt
bad 65 "negative.txt:2: .*found '-2'" topology info negative.txt
bad 65 "nan.txt:2: .*found 'nan'" topology info nan.txt
bad 65 "inf.txt:2: .*found '1e400'" topology info inf.txt
bad 65 "switches.json: unknown key 'switches'" topology info switches.json
bad 65 'order.json: node 1 is a switch where a terminal is' topology info order.json
bad 65 "limit.txt:2: .*limit above, found 'dram'" topology info limit.txt
bad 65 'order.txt: node 1 is a switch where a terminal is' topology info order.txt
bad 65 'on Ring\(9\): the physical digraph has 9 terminals' schedule make -t 'Ring(8)' --on 'Ring(9)' -c allgather -o written
bad 65 'node 1 is a switch where a terminal is' schedule make -t 'Ring(8)' --on order.txt -c allgather -o written
bad 65 'dimension-order: the numbers of' schedule make -t 'K(16)' --on 'FatTree(4)' --routing dimension-order -c allgather -o written
bad 65 'arc [0-9]+ .*more than 1024 routes' schedule make -t 'K(64)' --on 'Multi(Torus(8,8),2)' -c allgather -a bfb -o written
bad 64 'needs --on' schedule make -t 'Ring(8)' --routing minimal-split -c allgather -o written
bad 65 'neither a rule nor a file' schedule make -t 'Ring(8)' --on 'Ring(8)' --routing absent -c allgather -o written
bad 65 "unknown key '" schedule make -t 'UniRing(1,3)' --on 'Ring(3)' --routing ring.json -c allgather -o written
weft schedule make -t 'Star(4)' -c all-to-all -o embedded.json >made
bad 65 'route tables of an embedded schedule' schedule export embedded.json --to routes-json -o written
bad 65 'arc 1 .*has no route' schedule make -t 'UniRing(1,3)' --on 'Ring(3)' --routing paths.json -c allgather -o written
bad 65 'all-to-all flows: shared limits' schedule make -t shared.txt -c all-to-all --rate
bad 65 'routes: node 2 is a switch' routes make -t switch.txt -o written
bad 65 'binary:1: ' topology info binary
bad 1 'folder: Is a directory' topology info folder

# Graphs on which nothing can be done.
for graph in apart.json apart.txt degree0.json; do
	bad 65 "(x|Ring.4.|$graph): .*rank . cannot reach rank ." \
		schedule make -t $graph -c allreduce -o written
	bad 65 "(x|Ring.4.|$graph): no path from node . to node ." \
		schedule make -t $graph -c all-to-all -o written
	bad 65 "(x|Ring.4.|$graph): no path from" routes make -t $graph \
		-o written
done
bad 65 'at least two terminals' routes make -t one.json -o written

# Schedule files.
for verb in verify show 'cost --alpha 1us --size 1MB --bandwidth 1Gbps' \
		'simulate --alpha 1us --size 1MB --bandwidth 1Gbps' \
		'run --size 1MB' 'export -o written'; do
	# shellcheck disable=SC2086
	{
		bad 65 'empty: the file is empty' schedule $verb empty
		bad 65 'binary: schedule: malformed' schedule $verb binary
		bad 65 'open.json:2: not valid JSON' schedule $verb open.json
		bad 65 'ring.json: schedule: it has no "format"' \
			schedule $verb ring.json
		bad 65 'chunks: 0 is not in' schedule $verb chunks.json
		bad 65 'nodes: 9999999 is not in' schedule $verb nodes.json
		bad 65 'unknown collective "dance"' schedule $verb dance.json
		bad 65 'chunks-inf.json:7:[0-9]+: ' schedule $verb \
			chunks-inf.json
		bad 65 'chunks-twice.json:7:.*duplicate' schedule $verb \
			chunks-twice.json
		bad 65 'absent: No such file' schedule $verb absent
		if [[ $verb == verify ]]; then	# that of a step
			bad 65 'folder/step.json: No such file' schedule verify folder
		else
			bad 1 'folder: Is a directory' schedule $verb folder
		fi
		bad 64 'give a schedule file or --job' schedule $verb
	}
done
bad 64 '--step: "nan" is not a whole number from 1 to 1' \
	schedule show gather.json --step nan
bad 64 '--to msccl: no such format' schedule export gather.json --to msccl
hint 'did you mean msccl-xml \(MSCCL\), .*mscclpp-json \(MSCCL\+\+\)'
bad 64 '--to xml: no such format' schedule export absent --to xml
hint 'did you mean msccl-xml .*, rccl-xml '
bad 64 '--to jsno: no such format' schedule export absent --to jsno
hint "did you mean 'json'"
bad 64 '--to yaml: no such format' schedule export absent --to yaml
hint 'expected json, proto, msccl-xml'
bad 64 '--bandwidth of a node or --link-bandwidth is missing' \
	schedule cost gather.json --alpha 1us --size 1MB
bad 64 'only one of them' schedule cost gather.json --alpha 1us --size 1MB \
	--bandwidth 1Gbps --link-bandwidth 1Gbps
bad 64 "--hop: time '1' has no unit" schedule simulate gather.json \
	--alpha 1us --size 1MB --bandwidth 1Gbps --hop 1
bad 1 'folder: Is a directory' schedule simulate gather.json --alpha 1us --size 1MB --bandwidth 1Gbps \
	--svg folder

bad 64 '--size SIZE is missing' schedule run gather.json
bad 64 '--repeat: "0" is not a whole number' schedule run gather.json --size 1MB --repeat 0
bad 65 'the schedule has 4 ranks, and --ranks allows 2' schedule run gather.json --size 1MB --ranks 2
bad 65 '--hosts: absent cannot be read' schedule run gather.json --size 1MB --hosts absent
bad 64 '--bandwidth of a node or --link-bandwidth is missing' \
	schedule run gather.json --size 1MB --alpha 1us

# Options of schedules.
make_k4() { # CODE PATTERN COLLECTIVE OPTIONS...
	bad "$1" "$2" schedule make -t 'K(4)' -o written -c "${@:3}"
}
bad 64 '--collective NAME is missing' schedule make -t 'K(4)'
bad 64 '--topology EXPR\|FILE is missing' schedule make -c allgather
bad 64 'weft schedule make takes options only' schedule make 'K(4)'
make_k4 64 'unknown collective "dance": expected' dance
make_k4 64 'unknown collective "all-gather"' all-gather
hint "did you mean 'allgather'"
make_k4 65 '--algorithm bfb: not supported for broadcast' broadcast -a bfb
hint 'supported: auto, trees'
make_k4 65 '--algorithm trees: not supported for scatter' scatter -a trees
make_k4 65 '--algorithm paths: not supported for allgather' allgather -a paths
make_k4 64 '--root is for broadcast, reduce, gather and scatter' allreduce --root 0
make_k4 64 '--root: "4" is not a whole number from 0 to 3' gather --root 4
make_k4 64 '--root: "-1" is not a whole number' broadcast --root -1
make_k4 64 '--batches is not for gather and scatter' scatter --batches 2
make_k4 64 '--batches: "0" is not a whole number' reduce --batches 0
make_k4 64 '--chunks is for allgather, reduce-scatter and allreduce' broadcast --chunks 2
make_k4 64 '--chunks is for --algorithm bfb' allgather -a late --chunks 2
make_k4 64 '--batches does not go with --chunks' allgather --chunks 2 --batches 2
make_k4 64 '--levels is for --algorithm mixed-radix' allgather --levels 4
make_k4 64 '--rounds is for --algorithm mixed-radix and hybrid' allreduce -a swing --rounds 1
make_k4 64 '--ports few: expected one of one all' allreduce -a swing --ports few
make_k4 64 '--steps is for --algorithm tsmcf' all-to-all -a mcf --steps 2
make_k4 64 '--demands is for --algorithm mcf, link-mcf, grouped, pmcf, tsmcf and auto' all-to-all -a disjoint \
	--demands two.net
make_k4 64 '--forward maybe: expected no or yes' allreduce --forward maybe
make_k4 64 '--forward no does not go with --hop' allreduce --forward no --hop 1us
make_k4 64 '--extra-steps is for allgather, reduce-scatter and allreduce' all-to-all --extra-steps 1
make_k4 64 '--extra-steps is for --algorithm late and auto' allgather -a bfb --extra-steps 1
make_k4 64 '--extra-steps: "9" is not a whole number from 0 to 8' allgather -a late --extra-steps 9
bad 65 '299 steps: late pieces take at most 200' schedule make -t 'UniRing(1,300)' -c allgather -a late
make_k4 64 '--output does not go with --rate' broadcast --rate
make_k4 64 'is missing' broadcast --alpha 1us
make_k4 65 '--algorithm magic: not supported' allgather -a magic
for n in 0 -1 nan 1e400 1.5 '' 99999999999999999999; do
	make_k4 64 "--chunks: \"$n\" is not a whole number from 1 to" \
		allgather --chunks "$n"
	make_k4 64 "--batches: \"$n\" is not" allreduce --batches "$n"
	make_k4 64 "--steps: \"$n\" is not" all-to-all -a tsmcf --steps "$n"
	bad 64 "--layers: \"$n\" is not" routes make -t 'K(4)' --layers "$n"
	bad 64 "--nodes: \"$n\" is not" ring plan -n "$n" -w 4 --size 1MB
	bad 64 "--ring: \"$n\" is not" rwa solve --ring "$n"
	bad 64 "--channels: \"$n\" is not" rwa solve two.net --demands all \
		--channels "$n"
done
for share in -1 nan 1e400 200% ''; do
	make_k4 64 '--gap .*: expected a share' all-to-all --gap "$share"
	make_k4 64 '--loss .*: expected a share' all-to-all --loss "$share"
	bad 64 '--gap .*: expected a share' routes make -t 'K(4)' \
		--gap "$share" -o written
done
for size in -1MB nan 1e400 1e400MB 0x10MB 99999999999TB 1XB ''; do
	make_k4 64 '--size: ' allgather --alpha 1us --bandwidth 1Gbps \
		--size "$size"
	bad 64 '--size: ' ring plan -n 16 -w 4 -o written --size "$size"
	bad 64 '--size: ' topology find -n 8 -d 2 --alpha 1us \
		--bandwidth 1Gbps --size "$size"
done
make_k4 64 "--alpha: time '-1us' is negative" allgather --alpha -1us \
	--size 1MB --bandwidth 1Gbps
make_k4 64 '--gap is for all-to-all' allgather --gap 1%
make_k4 64 '--output does not go with --rate' allreduce --rate
make_k4 64 '--batches is not for all-to-all' all-to-all --batches 2
make_k4 64 '--output does not go with --rate' all-to-all --rate
make_k4 64 '--host-bandwidth nan: expected' all-to-all --host-bandwidth nan

# Rings.
bad 64 '--nodes: "1" is not a whole number from 2' ring plan -n 1 -w 4 \
	--size 1MB
bad 64 '--rate must be positive' ring plan -n 16 -w 4 --size 1MB --rate 0Gbps
bad 64 '--fibres: "0" is not' ring plan -n 16 -w 4 --size 1MB --fibres 0
bad 64 '--use 5-2: FIRST-LAST' ring plan -n 16 -w 4 --size 1MB --use 5-2
bad 64 'magic is no algorithm for rings' ring plan -n 16 -w 4 --size 1MB \
	-a magic
bad 64 'unknown collective "dance"' ring plan -n 16 -w 4 --size 1MB \
	--collective dance
bad 64 "launch=nan: 'nan' is not a power" ring plan -n 16 -w 4 --size 1MB \
	--loss launch=nan
bad 64 '--nodes is given twice' ring plan -n 16 -n 17 -w 4 --size 1MB

# Wavelengths.
bad 64 'give a file of demands or --ring N' rwa solve
bad 64 '--ring beside a file' rwa solve two.net --ring 8
bad 64 '--output goes with a file' rwa solve --ring 8 -o written
bad 64 '--seed goes with a file' rwa solve --ring 8 --seed 2
bad 65 'empty:1:1: text: no network in it' rwa solve empty
bad 65 'binary:1:' rwa solve binary
bad 65 'open.yaml:2:1: ' rwa solve open.yaml
bad 65 'range.net:2: arc 1 -> 99: nodes are 0 to 2' rwa solve range.net
bad 65 "two.sndlib:7: l: no node is called 'c'" rwa solve two.sndlib
bad 64 '--unit: "0" is not a number above 0' rwa solve two.net --unit 0
bad 64 'two.net has no demands' rwa solve two.net
bad 65 'nan.trf:2: ' rwa solve two.net --demands nan.trf
bad 65 'absent: No such file' rwa solve two.net --demands absent
bad 1 'folder: Is a directory' rwa solve folder
bad 64 "--time-limit: time '-1s' is negative" rwa solve two.net \
	--demands all --time-limit -1s
bad 65 'empty:1:1: .*the file is empty' rwa solve two.net --demands all \
	--previous empty
bad 64 'an argument is missing' rwa change two.net

# Route tables.
bad 64 'give --topology or --job' routes verify routes.json
bad 65 'the table has 4, the topology 5' routes verify routes.json -t 'K(5)'
bad 65 'empty: route table: empty' routes verify empty -t 'K(4)'
bad 65 'binary: route table: malformed' routes verify binary -t 'K(4)'
bad 1 'folder: Is a directory' routes verify folder -t 'K(4)'
bad 64 '--to foo: no such format' routes make -t 'K(4)' --to foo
hint 'expected routes-json or routes-proto'
bad 64 '--to mscclpp-json: no such format' routes make -t 'K(4)' --to mscclpp-json
hint 'that is one of "weft schedule export"'

# Testbeds.
for verb in up down status route ping probe; do
	bad 64 'an argument is missing' testbed $verb
	bad 65 'absent: No such file' testbed $verb absent
	bad 1 'folder: Is a directory' testbed $verb folder
	bad 65 'empty:1:1: .*the file is empty' testbed $verb empty
	bad 65 'binary:1:1: .*not UTF-8' testbed $verb binary
	bad 65 'open.yaml:2:1: ' testbed $verb open.yaml
done

# Every verb: options that do not exist, formats that do not.
weft topology find -n 8 -d 2 >found
for verb in 'topology info' 'topology build' 'topology find' 'schedule make' \
		'schedule verify' 'schedule cost' 'schedule export' \
		'schedule simulate' 'schedule run' 'schedule show' 'routes make' 'routes verify' 'ring plan' \
		'rwa solve' 'rwa change' 'testbed up' 'export slurm'; do
	# shellcheck disable=SC2086
	{
		bad 64 "--frmat: no such option of weft $verb" $verb --frmat json
		hint 'did you mean --format'
		bad 64 "unknown format 'xml': expected" $verb --format xml
		bad 64 '--format needs F' $verb --format
		bad 64 'one argument too many|takes options only' $verb a b c d e f
	}
done
bad 64 'topology infoo: no such command' topology infoo
hint 'did you mean "weft topology info"'
bad 64 'a command is missing' schedule

# ---- writers ----

# One error, exit 1, for every way to write on a full disk; and to where
# nothing can be written.
writes() { # COMMAND...: the name of the file comes last
	bad 1 '/dev/full: No space left on device' "$@" /dev/full
	# The programs of an engine go into a folder that is there.
	[[ $* == *-xml* ]] || bad 1 'folder: Is a directory' "$@" folder
	bad 1 'nowhere/x: No such file or directory' "$@" nowhere/x
	bad 65 'the name of the file is empty' "$@" ''
}
writes topology build 'K(4)' -o
writes schedule make -t 'K(4)' -c allgather -o
writes schedule make -t 'K(4)' -c all-to-all -o
for to in json proto msccl-xml rccl-xml mscclpp-json; do
	writes schedule export gather.json --to $to -o
done
for to in routes-json routes-proto; do
	writes schedule export pairs.pb --to $to -o
	writes routes make -t 'K(4)' --to $to -o
done
writes schedule export pairs.pb --to proto -o
writes routes make -t 'K(4)' -o
writes ring plan -n 16 -w 4 --size 1MB -o
writes ring plan -n 16 -w 4 --size 1MB --svg
writes rwa solve two.net --demands all -o
writes rwa solve two.net --demands all --svg
writes export slurm "$TOP_FABRICS/trunks.yaml" -o

# full COMMAND...: standard output that takes nothing, and a reader that goes
# away. Neither is a success, and neither crashes.
full() {
	local got pipe
	mine || return 0
	weft "$@" >/dev/full 2>"$T/err" </dev/null
	got=$?
	[[ $got == 1 ]] && [[ $(wc -l <"$T/err") == 1 ]] && grep -q \
		'^weft: standard output: No space left' "$T/err"
	tap "full: $*"
	weft "$@" 2>"$T/err" </dev/null | true
	pipe=${PIPESTATUS[0]}
	# Whether the reader was still there is for the clock to say.
	[[ $pipe == 0 || $pipe == 141 ]] && [[ ! -s $T/err ]]
	tap "no reader: $*"
}
full topology info
full topology info 'K(4)'
full topology build 'K(4)' --format json
full topology find -n 8 -d 2
full schedule make -t 'K(4)' -c allgather
full schedule verify gather.json
full schedule show gather.json --full
full schedule cost gather.json --alpha 1us --size 1MB --bandwidth 1Gbps
full schedule simulate gather.json --alpha 1us --size 1MB --bandwidth 1Gbps
full schedule export gather.json --to msccl-xml
full routes make -t 'K(4)'
full routes verify routes.json -t 'K(4)'
full ring plan -n 16 -w 4 --size 1MB
full rwa solve --ring 8
full rwa solve two.net --demands all
full export slurm "$TOP_FABRICS/trunks.yaml"
full --help
full version

# What a plan refuses, check finds as well.
cat >"$T/overlap.yaml" <<'END'
weft: 1
fabric: x
hosts: [{name: "n[0-7]"}]
rings:
  - {name: r, nodes: "n[0-7]", channels: 4, channel-rate: 40Gbps, driver: sim-ring}
jobs:
  - {name: a, ring: r, nodes: all, collective: allgather, size: 1MiB, channels: 0-2}
  - {name: b, ring: r, nodes: all, collective: allgather, size: 1MiB, channels: 2-3}
END
for verb in check 'plan --offline'; do
	# shellcheck disable=SC2086
	bad 65 'overlap.yaml:8:.*: channels 2-3 of ring r: job a has channels 0-2 there' \
		$verb "$T/overlap.yaml"
done

# For programs: the error is text on standard error, also with --format json.
bad 65 'is 1: expected 2 or more' topology info 'K(1)' --format json
bad 65 'the file is empty' schedule verify empty --format json
finish
