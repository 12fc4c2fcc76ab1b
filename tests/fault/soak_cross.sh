#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# needs: outside network
# The same program on another machine's processor: built for arm64 here, run by qemu, it makes the
# same bytes of plans and schedules, its unit tests pass, and it brings a fabric up.
cd "$(dirname "$0")" || exit 1
. ../lib.sh
MACHINE=aarch64-linux-gnu
X=$BUILD/$MACHINE
HERE=$BIN

# other PROGRAM [ARGS...]: one of that machine.
other() {
	timeout 900 qemu-aarch64 -L "$X/sysroot" "$@"
}

# alike WHAT ARGS...: weft of both machines with these arguments, in folders of their own where -o
# says "out": exit code, both streams and the file are the same.
alike() {
	local what=$1 here there
	shift
	mkdir -p "$T/here" "$T/there"
	rm -f "$T"/*here/out
	(cd "$T/here" && "$HERE/weft" "$@" -o out >../here.out 2>../here.err)
	here=$?
	(cd "$T/there" && other "$X/release/weft" "$@" -o out >../there.out 2>../there.err)
	there=$?
	[[ $here == "$there" && -e $T/here/out ]] && cmp "$T/here/out" "$T/there/out" &&
		cmp "$T/here.out" "$T/there.out" && cmp "$T/here.err" "$T/there.err"
	tap "$what"
}

unit=()
for t in "$TOP"/tests/unit/{base,store,rpc,model,plan}/test_*.c; do
	t=${t#"$TOP/"}
	unit+=("$X/release/${t%.c}")
done
expect 0 "make deps CROSS=$MACHINE" make -s -C "$TOP" BUILD="$BUILD" CROSS=$MACHINE deps
expect 0 "make CROSS=$MACHINE" make -s -j2 -C "$TOP" BUILD="$BUILD" CROSS=$MACHINE all "${unit[@]}"
for f in weft weftd weft-emulator weft-mpi-run libweft_mpi.so; do
	readelf -h "$X/release/$f" | grep -q 'Machine:.*AArch64'
	tap "$f is for that machine"
done

for f in "$TOP"/configs/fabrics/*.yaml; do
	alike "the same plan of ${f##*/}" plan --offline --full --commands --lightpaths -f "$f"
done
for expr in 'Torus(4,4)' 'GenKautz(3,14)' 'Jellyfish(12,4,1)' 'DgxA100(2,all)' 'HyperX(3,3)'; do
	alike "the same all-gather on $expr" schedule make --topology "$expr" --collective allgather
done
for algorithm in bfb trees swing rabenseifner; do
	alike "the same all-reduce by $algorithm" schedule make --topology 'Torus(4,4)' \
		--collective allreduce --algorithm "$algorithm"
done
for n in 8 13 64; do
	alike "the same collective on a ring of $n" ring plan -n $n -w 16 --size 1MiB \
		--collective allreduce --fibres 2
done

for t in "${unit[@]}"; do
	(cd "$TOP" && CMOCKA_MESSAGE_OUTPUT=TAP other "$t") >"$T/out" 2>&1 </dev/null ||
		{ grep -vE '^ *ok' "$T/out" | head -n 20; false; }
	tap "${t#"$X/release/tests/"}"
done

# Static programs need nothing of that machine but its processor.
expect 0 "make small CROSS=$MACHINE TLS=no STATIC=yes" make -s -C "$TOP" BUILD="$BUILD" \
	CROSS=$MACHINE small TLS=no STATIC=yes
! readelf -d "$X/small/weftd" | grep -q NEEDED
tap "weftd needs no library"
for f in demo ring8 robots; do
	mkdir -p "$T/alone" "$T/here"
	f=$TOP/configs/fabrics/$f.yaml
	(cd "$T/here" && "$HERE/weft" plan --offline --full --commands -f "$f" -o out >text)
	(cd "$T/alone" && qemu-aarch64 "$X/small/weft" plan --offline --full --commands -f "$f" -o out >text)
	cmp "$T/here/out" "$T/alone/out" && cmp "$T/here/text" "$T/alone/text"
	tap "small: the same plan of ${f##*/}"
done

# ---- weftd of its package, its devices and the command, all of that machine ----

expect 0 "make deb-small CROSS=$MACHINE" make -s -C "$TOP" BUILD="$BUILD" CROSS=$MACHINE deb-small
deb=$(tail -n 1 "$T/out")
[[ $(dpkg-deb -f "$deb" Architecture) == arm64 ]]
tap "a package for arm64"
dpkg-deb -x "$deb" "$T/board"
size=$(du -sb "$T/board" | cut -f1)
((size <= 3 << 20))
tap "of at most 3 MiB ($size bytes)"

mkdir "$T/bin"
QEMU=$(command -v qemu-aarch64)
export WEFT_QEMU=$QEMU QEMU_LD_PREFIX=$X/sysroot
expect 0 "what starts programs" "$MACHINE-gcc" --sysroot="$X/sysroot" -shared -fPIC \
	-o "$T/exec.so" "$TOP/tests/fault/qemu_exec.c"
# program NAME PATH: one of that machine, as though it were of this one.
program() {
	printf '#!/bin/sh\nexec %q -E LD_PRELOAD=%q %q "$@"\n' "$QEMU" "$T/exec.so" "$2" >"$T/bin/$1"
	chmod +x "$T/bin/$1"
}
program weft "$T/board/usr/bin/weft"
program weftd "$T/board/usr/sbin/weftd"
program weft-emulator "$X/release/weft-emulator"
PATH=$T/bin:$PATH
emulators
fabric "$T/fabric.yaml" 'Ring(4)'
daemon
expect 0 "weft apply" weft apply -f "$T/fabric.yaml"
expect 0 "weft verify" weft verify
expect 0 "and nothing is left to do" weft plan -f "$T/fabric.yaml"
finish
