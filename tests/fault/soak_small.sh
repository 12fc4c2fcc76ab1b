#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# `make small`: what is left out is said, and what is not gives the same plans as the full build's;
# a fabric is brought up. So also with less in it, without TLS, and linked statically, which
# needs no other file.
cd "$(dirname "$0")" || exit 1
. ../lib.sh
FULL=$BIN
SMALL=$BUILD/small

# Of a fabric the same bytes as the full build's, or that it is not in this build. Names the
# fabrics of which there are plans in $PLANNED.
plans() {
	local f name
	PLANNED=
	for f in "$TOP"/configs/fabrics/*.yaml "$T/lab.yaml"; do
		name=${f##*/}
		mkdir -p "$T/one" "$T/two"
		rm -f "$T"/{one,two}/*
		(cd "$T/one" && "$FULL/weft" plan --offline --full --commands -f "$f" -o out >text 2>&1)
		(cd "$T/two" && "$SMALL/weft" plan --offline --full --commands -f "$f" -o out >text 2>&1)
		if [[ $? == 65 ]]; then
			grep -q 'not in this build' "$T/two/text"
			tap "$1: no plan of $name, as it is not in this build"
		else
			cmp "$T/one/out" "$T/two/out" && cmp "$T/one/text" "$T/two/text"
			tap "$1: the same plan of $name"
			PLANNED+=" ${name%.yaml}"
		fi
	done
}

# planned WHAT NAME...: at least these.
planned() {
	local what=$1 name missing=
	shift
	for name; do
		[[ " $PLANNED " == *" $name "* ]] || missing+=" $name"
	done
	[[ -z $missing ]]
	tap "$what: what a board needs is planned${missing:+, but$missing}"
}

# refused WHAT PATTERN COMMAND...: with exit code 65, as it is not in this build.
refused() {
	expect 65 "$1" "${@:3}"
	has err "$1: says so" "$2: not in this build"
}

# A change on simulated devices, where the fabric's file is all there is.
brought_up() {
	expect 0 "$1: weft apply" "$SMALL/weft" apply -f "$T/lab.yaml"
	expect 0 "$1: weft verify" "$SMALL/weft" verify
	sed 's/BiRing(2,4)/C(4,{1})/' "$T/lab.yaml" >"$T/other.yaml"
	expect 0 "$1: another topology" "$SMALL/weft" apply -f "$T/other.yaml"
	expect 0 "$1: weft rollback" "$SMALL/weft" rollback
	expect 0 "$1: nothing is left to do" "$SMALL/weft" plan -f "$T/lab.yaml"
	echo "# $1: $(grep VmRSS "/proc/${PID[weftd]}/status")"
}

cat >"$T/lab.yaml" <<'END'
weft: 1
fabric: lab
hosts:
  - { name: "gpu[0-3]", ports: "p[0-1]", rate: 100Gbps }
switches:
  - { name: ocs0, size: 8x8, driver: sim }
fibres:
  - { from: "gpu[0-3].p[0-1]", to: "ocs0.[1-8]" }
jobs:
  - { name: sum, nodes: all, topology: "BiRing(2,4)", collective: allreduce, size: 1MiB }
END
sed 's/topology: "BiRing(2,4)", //' "$T/lab.yaml" >"$T/auto.yaml"
sed 's/allreduce/all-to-all/' "$T/lab.yaml" >"$T/pairs.yaml"

make_small() {
	expect 0 "make small $*" make -s -C "$TOP" small BUILD="$BUILD" "$@"
	sed 's/^/# /' "$T/out"
}

# ---- what is made by default -----------------------------------------------

make_small
plans small
planned small lab demo ring8 panel robots shared-ring any-to-any
refused "the best topology" 'topology: auto' "$SMALL/weft" plan --offline -f "$T/auto.yaml"
refused "all-to-all" 'schedules of all-to-all' "$SMALL/weft" plan --offline -f "$T/pairs.yaml"
refused "schedules" 'weft schedule' "$SMALL/weft" schedule make --topology 'Ring(4)'
refused "emulated devices" 'weft emulate' "$SMALL/weft" emulate "$T/lab.yaml"
refused "a picture" pictures "$SMALL/weft" plan --offline -f "$T/lab.yaml" --svg "$T/lab.svg"
refused "the page" --page "$SMALL/weftd" --socket "$T/s" --state-dir "$T/state" --page 127.0.0.1:0
expect 0 "weft --help" "$SMALL/weft" --help
has out "weft --help: what is not there" '^Not in this build: flow .* page\.$'
! grep -q '^  schedule' "$T/out"
tap "weft --help: and does not list it"
expect 0 "weftd --version" "$SMALL/weftd" --version
has out "weftd --version: without what" '^weftd [0-9.]*[^ ]* without flow .* page$'
PATH=$SMALL:$PATH
emulators
fabric "$T/fabric.yaml" 'Ring(4)'
daemon
expect 0 "weft apply on emulated devices" weft apply -f "$T/fabric.yaml"
expect 0 "weft verify" weft verify
stop weftd

# ---- less, without TLS -----------------------------------------------------

make_small WITHOUT="lp lab page" TLS=no
plans less
refused "a ring" 'jobs on rings' "$SMALL/weft" plan --offline -f "$TOP/configs/fabrics/ring8.yaml"
planned less lab panel robots any-to-any
refused "TLS" TLS "$SMALL/weft" status --server 127.0.0.1:1 --tls-cert "$T/lab.yaml" \
	--tls-key "$T/lab.yaml" --tls-ca "$T/lab.yaml"
! readelf -d "$SMALL/weftd" | grep -qE 'NEEDED.*lib(ssl|crypto|curl|ssh2)'
tap "no library of TLS is needed"

# ---- static ----------------------------------------------------------------

make_small TLS=no STATIC=yes
! readelf -d "$SMALL/weftd" | grep -q NEEDED
tap "no library is needed"
plans static
planned static lab demo ring8
refused "metrics" --metrics "$SMALL/weftd" --socket "$T/s" --state-dir "$T/state" \
	--metrics 127.0.0.1:0
# In a root folder that holds nothing else.
if [[ $UID == 0 ]]; then
	mkdir -p "$T/root/state"
	cp "$SMALL/weftd" "$T/root/weftd"
	chroot "$T/root" /weftd --socket /s --state-dir /state 2>"$T/weftd.log" </dev/null &
	PID[weftd]=$!
	export WEFT_SOCKET=$T/root/s
	wait_for 10 "$SMALL/weft" status --format json
	brought_up static
	stop weftd
fi
finish
