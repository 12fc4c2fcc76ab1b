#!/bin/bash
# needs: outside network
# The Debian packages are the same bytes whenever and wherever they are built: two builds from
# nothing, in folders of different names, one after the other; and lintian finds nothing in them.
cd "$(dirname "$0")" || exit 1
. ../lib.sh
"$TOP/tests/deps" lintian >&2 || exit 1
for folder in one two/deeper; do
	mkdir -p "$T/$folder"
	tar -c -C "$TOP" --exclude=./build --exclude=./.git . | tar -x -C "$T/$folder"
	expect 0 "packages are built in $folder" env -u BUILD make -s -C "$T/$folder" deb BUILD=build
	(cd "$T/$folder/build" && sha256sum weft*_*.deb) >"$T/sums.${folder%/*}"
done
[[ $(wc -l <"$T/sums.one") == 3 ]] && diff "$T/sums.one" "$T/sums.two"
tap "both are the same bytes"
lintian "$T"/one/build/weft*_*.deb >"$T/out" 2>"$T/err"
! grep '^[EW]:' "$T/out"
tap "lintian finds nothing"
finish
