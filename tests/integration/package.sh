#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# needs: outside network
# The Debian package: built, looked into, and installed, started, removed and
# purged on a copy of this machine that keeps nothing.
cd "$(dirname "$0")" || exit 1
. ../lib.sh

# skip_rest WHY: what needs root and mounts cannot be shown here.
skip_rest() {
	echo "ok $((++TAP_N)) - the package installs # SKIP $1"
	finish
}

if ! dpkg-query -W debhelper >/dev/null 2>&1 && [[ $(id -u) != 0 ]]; then
	skip_rest "debhelper is missing, and installing it needs root"
fi
# Compressed for speed; what is in it is the same.
export DPKG_DEB_COMPRESSOR_TYPE=gzip DPKG_DEB_COMPRESSOR_LEVEL=1
expect 0 "make deb" make -s -C "$TOP" deb BUILD="$BUILD"
{ read -r MPI_DEB && read -r LAB_DEB && read -r DEB; } < <(tail -n 3 "$T/out")
[[ -f $DEB && -f $MPI_DEB && $DEB == */weft_* && $MPI_DEB == */weft-mpi_* && $LAB_DEB == */weft-lab_* ]]
tap "it names the packages"

version=$(weftd --version | awk '{ print $2 }')
[[ $(dpkg-deb -f "$DEB" Version) == "$version" ]]
tap "its version is that of the programs"
# What the Makefile installs to build with, but for the tests' own.
missing=0
for p in $(sed -n '/^PACKAGES :=/,/[^\\]$/p' "$TOP/Makefile" | grep -oE 'lib[a-z0-9.-]+-dev' |
	grep -vE '^(libc6|libclang-rt-14|libcmocka)-dev$'); do
	grep -qE "[ ,]$p(,|\$)" "$TOP/configs/debian/control" ||
		{ echo "# not in Build-Depends: $p" && missing=1; }
done
tap "what it is built with is named" $missing
dpkg-deb -c "$DEB" | awk '{ print $6 }' >"$T/files"
missing=0
for f in ./usr/bin/weft ./usr/sbin/weftd \
	./lib/systemd/system/weftd.service ./lib/systemd/system/weftd.socket ./usr/lib/sysusers.d/weft.conf \
	./usr/share/man/man1/weft.1.gz ./usr/share/man/man8/weftd.8.gz \
	./usr/share/bash-completion/completions/weft ./usr/share/zsh/vendor-completions/_weft \
	./usr/share/fish/vendor_completions.d/weft.fish ./etc/default/weftd ./usr/share/doc/weft/NOTICE \
	./usr/share/weft/proto/weft/v1/weft.proto ./usr/share/doc/weft/examples/fabrics/demo.yaml; do
	grep -qxF "$f" "$T/files" || { echo "# missing: $f" && missing=1; }
done
tap "it has programs, unit, user, man pages, completion, examples" $missing
! grep -E '/(usr/local|tests|build)/|mpi|emulator' "$T/files"
tap "and nothing else"
[[ $(dpkg-deb -f "$DEB" Static-Built-Using) == *"lp-solve (= "* ]]
tap "it says what is in its programs"
! dpkg-deb -f "$DEB" Depends | grep -i mpi
tap "it needs no MPI"
[[ $(dpkg-deb -c "$LAB_DEB") == *" ./usr/bin/weft-emulator"* ]]
tap "emulators are in a package of their own"
# One commit in four, and always by hand; soak_package.sh builds them from nothing, twice.
if ((${WEFT_TURN:-0} % 4 == 0)); then
	cp "$DEB" "$LAB_DEB" "$MPI_DEB" "$T"
	expect 0 "they are packed once more" make -s -C "$TOP" deb BUILD="$BUILD"
	cmp "$T/${DEB##*/}" "$DEB" && cmp "$T/${LAB_DEB##*/}" "$LAB_DEB" &&
		cmp "$T/${MPI_DEB##*/}" "$MPI_DEB"
	tap "to the same bytes"
fi
dpkg-deb -c "$MPI_DEB" | awk '{ print $6 }' | grep -v '/$' | sort >"$T/mpi-files"
for f in ./usr/bin/weft-mpi-run ./usr/lib/weft/libweft_mpi.so ./usr/share/man/man7/weft_mpi.7.gz; do
	grep -xF "$f" "$T/mpi-files"
done >"$T/expected"
[[ $(wc -l <"$T/expected") == 3 ]] && ! grep -vxFf "$T/expected" "$T/mpi-files" |
	grep -vE '^./usr/share/(doc|man)/'
tap "what runs on MPI is in a package of its own"
dpkg-deb -f "$MPI_DEB" Depends | grep -q 'openmpi-bin.*libopenmpi'
tap "which needs Open MPI"

# ---- a copy of this machine ------------------------------------------------

[[ $(id -u) == 0 ]] || skip_rest "needs root"
unshare -m --propagation private true 2>/dev/null ||
	skip_rest "no mounts of its own here"
mkdir "$T/over" "$T/root"
# The mounts are in a namespace of their own: they end with the script below.
# shellcheck disable=SC2016
inside='
mount -t tmpfs tmpfs "$1/over" && mkdir "$1/over/up" "$1/over/work" &&
mount -t overlay overlay -o "lowerdir=/,upperdir=$1/over/up,workdir=$1/over/work" \
	"$1/root" && mount -t tmpfs tmpfs "$1/root/tmp" &&
mkdir -p "$1/root/run" && mount -t tmpfs tmpfs "$1/root/run" || exit 77
mount --rbind /proc "$1/root/proc" && mount --rbind /dev "$1/root/dev" || exit 77
cp "$2" "$1/root/tmp/weft.deb" && cp "$3" "$1/root/tmp/inside" || exit 1
cp "$4" "$1/root/tmp/weft-mpi.deb" || exit 1
exec chroot "$1/root" bash /tmp/inside
'
unshare -m --propagation private bash -c "$inside" inside "$T" "$DEB" \
	"$TOP/tests/integration/package_inside" "$MPI_DEB" >"$T/out" 2>"$T/err" </dev/null
status=$?
[[ $status == 77 ]] && skip_rest "no overlay file system here"
if [[ $status != 0 ]]; then
	sed 's/^/# /' "$T/out" "$T/err"
fi
while read -r result what; do
	[[ $result == yes ]] || sed 's/^/# /' "$T/err"
	[[ $result == yes ]]
	tap "$what"
done < <(grep -E '^(yes|no) ' "$T/out")
[[ $status == 0 ]] && grep -q "purged, it leaves nothing" "$T/out"
tap "to the end"
finish
