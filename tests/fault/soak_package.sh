#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# needs: outside network
# The Debian packages are the same bytes whenever and wherever they are built: two builds from
# nothing, in folders of different names, one after the other; and lintian finds nothing in them.
cd "$(dirname "$0")" || exit 1
. ../lib.sh
"$TOP/tests/deps" lintian >&2 || exit 1
make -s -C "$TOP" dist BUILD="$BUILD" >"$T/dist"
tap "a tarball of the last commit"
for folder in one two/deeper; do
	mkdir -p "$T/$folder"
	tar -xz -C "$T/$folder" --strip-components=1 -f "$(tail -n 1 "$T/dist")"
	expect 0 "packages are built in $folder" env -u BUILD -u WEFT_VERSION make -s -C "$T/$folder" deb BUILD=build
	(cd "$T/$folder/build" && sha256sum weft*_*.deb) >"$T/sums.${folder%/*}"
done
[[ $(wc -l <"$T/sums.one") == 3 ]] && diff "$T/sums.one" "$T/sums.two"
tap "both are the same bytes"
lintian --display-info "$T"/one/build/weft*_*.deb >"$T/out" 2>"$T/err"
# Debian 12's dpkg knows the field, its lintian does not yet.
! grep -E '^[EW]:|hardening' "$T/out" | grep -v 'unknown-field Static-Built-Using'
tap "lintian finds nothing, nor what is not hardened"

# ---- the next build, which is another one and follows this one ----

read -r version seconds <"$T/one/VERSION"
next=$(sed -E 's/\+([0-9]+)\./ \1 /' <<<"$version" | awk '{ print $1 "+" $2 + 1 "." $3 }')
dpkg --compare-versions "$version" lt "$next"
tap "$next follows $version"
echo "$next $seconds" >"$T/one/VERSION"
expect 0 "the next is built" env -u BUILD -u WEFT_VERSION make -s -C "$T/one" deb BUILD=build
[[ $("$T/one/build/release/weft" --version) == "weft $next" &&
	$(dpkg-deb -f "$T/one/build/weft_${next}_"*.deb Version) == "$next" ]]
tap "both say so"
finish
