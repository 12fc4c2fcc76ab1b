#!/bin/bash
# `make small`: the same plans as the full build's, and a fabric is brought up.
cd "$(dirname "$0")" || exit 1
. ../lib.sh
FULL=$BIN
expect 0 "make small" make -s -C "$TOP" small BUILD="$BUILD"
sed 's/^/# /' "$T/out"
mkdir "$T/one" "$T/two"
for f in "$TOP"/configs/fabrics/*.yaml; do
	for side in one two; do
		programs=$FULL
		[[ $side == two ]] && programs=$BUILD/small
		(cd "$T/$side" && "$programs/weft" plan --offline --full --commands -f "$f" -o out >text 2>&1)
	done
	[[ -s $T/one/out ]] && cmp "$T/one/out" "$T/two/out" && cmp "$T/one/text" "$T/two/text"
	tap "the same plan of ${f##*/}"
done
PATH=$BUILD/small:$PATH
emulators
fabric "$T/fabric.yaml" 'Ring(4)'
daemon
echo "# idle: $(grep VmRSS "/proc/${PID[weftd]}/status")"
expect 0 "weft apply" weft apply -f "$T/fabric.yaml"
expect 0 "weft verify" weft verify
finish
