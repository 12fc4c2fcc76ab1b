#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What stands in for what `make small` leaves out has all that others call: without all that may be
# left out, of the release build's objects, it is linked.
cd "$(dirname "$0")" || exit 1
. ../lib.sh
expect 0 "linked" make -s -C "$TOP" MODE=release LINKS=yes BUILD="$BUILD" \
	WITHOUT="lp page tls http" links
expect 0 "and runs" "$BUILD/release/links/weft" --version
rm -rf "$BUILD/release/links"
expect 2 "what is not there cannot be left out" make -s -C "$TOP" small BUILD="$BUILD" WITHOUT=hue
has err "and is named" 'WITHOUT: hue: there are lp '
finish
