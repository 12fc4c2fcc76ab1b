#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What exceeds the limits of a runtime: the error tells which, by how much and
# what would fit, and --fit writes just that.
source "$(dirname "$0")/../lib.sh"

make_it() { # TOPOLOGY COLLECTIVE [OPTIONS...]
	weft schedule make -t "$1" -c "$2" -a bfb -o "$T/s.pb" "${@:3}" \
		>"$T/out" 2>"$T/err" || sed 's/^/# /' "$T/err"
}

make_it 'Mesh(8,8)' allreduce --batches 32
expect 65 "too many elements" weft schedule export "$T/s.pb" --to msccl-xml \
	-o "$T/s.xml"
has err "the figure and the limit" \
	'needs at least 5264 elements .*, and the runtimes hold 4095'
has err "what fits instead" \
	'^hint: fits: 2 chunks a shard, in 28 steps and 17/4 M/B instead of 59'
[[ ! -e $T/s.xml ]]
tap "nothing is written"
for to in msccl-xml rccl-xml; do
	expect 0 "--fit for $to" weft schedule export "$T/s.pb" --to $to \
		--fit -o "$T/s.xml"
	has err "says what it did" 'exported in 2 chunks a shard, in 28 steps'
	grep -q ' nchunksperloop="128" ' "$T/s.xml"
	tap "in two chunks a shard"
done
expect 64 "the runtime that is gone" weft schedule export "$T/s.pb" \
	--to msccl-legacy-xml -o "$T/legacy.xml"
has err "is no format" 'msccl-legacy-xml: no such format'
[[ ! -e $T/legacy.xml ]]
tap "and nothing is written"
expect 0 "no limit of MSCCL++" weft schedule export "$T/s.pb" \
	--to mscclpp-json --fit -o "$T/s.json"
[[ ! -s $T/err ]]
tap "so nothing is said"
expect 64 "--fit is for runtimes" weft schedule export "$T/s.pb" --fit

make_it 'K(65)' allgather
expect 65 "too many threadblocks" weft schedule export "$T/s.pb" \
	--to rccl-xml --fit
has err "the figure and the limit" 'threadblocks: 65, RCCL takes 64'
has err "what fits instead" 'fits: threadblocks up to 64; take fewer ranks'
make_it 'K(64)' allgather
expect 0 "that many fit, with peers on two channels" weft schedule export \
	"$T/s.pb" --to rccl-xml
has out "two channels" '<algo .* nchannels="2" '

make_it 'GenKautz(2,64)' allreduce --batches 32
expect 65 "many batches" weft schedule export "$T/s.pb" --to rccl-xml
# What the hint promises is true.
chunks=$(sed -n 's/^hint: fits: \([0-9]*\) chunk.*/\1/p' "$T/err")
if [[ -n $chunks ]]; then
	make_it 'GenKautz(2,64)' allreduce --chunks "$chunks"
	expect 0 "the hint is true" weft schedule export "$T/s.pb" \
		--to rccl-xml
else
	cat "$T/err"
	tap "the hint is true" 1
fi
finish
