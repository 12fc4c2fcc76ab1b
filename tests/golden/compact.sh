#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Schedules of many ranks, from the command line: made, proven, written, cut and
# simulated without being written out, in the memory of a small board.
source "$(dirname "$0")/../lib.sh"
ulimit -v 1048576	# KiB; an expanded all-reduce of 4096 ranks takes twice that

compact() { # TOPOLOGY COLLECTIVE STEPS FACTOR MOST_BYTES
	local f=$T/s.pb got
	weft schedule make -t "$1" -c "$2" --objective bandwidth -o "$f" --format json >"$T/made" 2>"$T/err"
	got=$(jq -r '"\(.steps) \(.bandwidth_factor)"' "$T/made")
	[[ $got == "$3 $4" ]]
	tap "$1 $2: $3 steps, T_B $4; found $got"
	got=$(stat -c %s "$f")
	((got <= $5))
	tap "$1 $2: $got bytes, at most $5"
	weft schedule verify "$f" --format json >"$T/out" 2>"$T/err"
	[[ $(jq -r '"\(.valid) \(.steps) \(.bandwidth_factor)"' "$T/out") == "true $3 $4" ]]
	tap "$1 $2: verified as written"
	weft schedule export "$f" --rank 7 -o "$T/part.json" 2>"$T/err" &&
		[[ $(jq .part "$T/part.json") == 7 ]]
	tap "$1 $2: the part of rank 7"
}

compact 'Torus(64,64)' allreduce 128 4095/2048 200000
compact 'Torus(128,128)' allreduce 256 16383/8192 1000000
compact 'Torus(16,16,16)' all-to-all 24 24585/2048 3000000
compact 'Hypercube(12)' allgather 12 4095/4096 500000

weft schedule make -t 'Torus(128,128)' -c allreduce --objective bandwidth -o "$T/s.json" >/dev/null
(($(stat -c %s "$T/s.json") < 5000000))
tap "Torus(128,128): less than 5 MB of JSON"
expect 65 "every transfer of it is refused" weft schedule export "$T/s.json" --flat -o "$T/f.pb"
has err "the error says how many there are" '537001984 transfers'
expect 64 "a part of it is no compact schedule" weft schedule export "$T/s.json" --flat \
	--rank 1 -o "$T/f.pb"
has err "the error says why" 'a part is written out anyway'
weft schedule simulate "$T/s.json" --alpha 500ns --hop 400ns --size 2MiB --link-bandwidth 400Gbps \
	--format json >"$T/out" 2>"$T/err"
jq -e '.time_ns == .planned_ns' "$T/out" >/dev/null
tap "simulated as planned"

# What is written out is the same schedule, in version 1.
weft schedule make -t 'Torus(4,4)' -c allreduce -o "$T/c.json" >/dev/null
weft schedule export "$T/c.json" --flat -o "$T/f.json"
[[ $(jq .version "$T/c.json") == 2 && $(jq .version "$T/f.json") == 1 ]]
tap "version 2 compact, version 1 written out"
for f in c f; do
	weft schedule verify "$T/$f.json" --format json | jq 'del(.group_order)' >"$T/$f.out"
done
cmp -s "$T/c.out" "$T/f.out"
tap "both verify alike"
all=$(jq .transfers "$T/c.out")
[[ $(jq '.transfers | length' "$T/f.json") == "$all" &&
	$(jq '.transfers | length' "$T/c.json") == $((all / 16)) ]]
tap "$all transfers, a sixteenth of them when compact"
for to in msccl-xml mscclpp-json; do
	for f in c f; do
		weft schedule export "$T/$f.json" --to "$to" -o "$T/$f.x"
	done
	cmp -s "$T/c.x" "$T/f.x"
	tap "both are the same $to"
done

# The group exchanges the two ranks and leaves the arc between the memories where it is.
cat >"$T/m.json" <<'END'
{"format": "weft-schedule", "version": 2, "collective": "allgather", "nodes": 4, "chunks": 1,
 "node_kinds_columns": ["node", "kind", "abilities"], "node_kinds": [[2,2,5], [3,2,5]],
 "arcs": [[0,2], [1,2], [2,3], [3,0], [3,1]], "generators": [[2]], "images": [[1], [0], [2], [3]],
 "transfers": [[0,0,0,0,0], [1,2,0,0,0], [2,4,0,0,0]]}
END
weft schedule export "$T/m.json" --flat -o "$T/mf.json"
for f in m mf; do
	weft schedule show "$T/$f.json" --format json | jq -c '[.step_summary[].arcs]'
	weft schedule simulate "$T/$f.json" --alpha 1us --link-bandwidth 8Gbps --size 10kB \
		--format json | jq -c '[.time_ns, .step_times[].messages]'
done >"$T/out"
printf '%s\n' '[2,1,2]' '[23000,2,1,2]' '[2,1,2]' '[23000,2,1,2]' | cmp -s - "$T/out"
tap "an arc that stays counts once"

# Sums that go on along a ring of six: version 5, also written out.
cp "$TOP/tests/fuzz/corpus/schedule_json/chains-compact.json" "$T/c.json"
weft schedule export "$T/c.json" --flat -o "$T/f.json"
[[ $(jq .version "$T/f.json") == 5 && $(jq '.transfers | length' "$T/f.json") == 180 ]]
tap "forwarded sums, written out"
for f in c f; do
	weft schedule verify "$T/$f.json" --format json | jq 'del(.group_order)' >"$T/$f.out"
	for to in msccl-xml mscclpp-json; do
		weft schedule export "$T/$f.json" --to "$to" -o "$T/$f.$to" 2>"$T/err"
	done
done
jq -e '.valid and .bandwidth_factor == "6" and .steps == 3' "$T/c.out" >/dev/null &&
	cmp "$T/c.out" "$T/f.out" && cmp "$T/c.msccl-xml" "$T/f.msccl-xml" &&
	cmp "$T/c.mscclpp-json" "$T/f.mscclpp-json"
tap "both verify alike, and are the same programs"
weft schedule show "$T/f.json" --step 3 --format json |
	jq -c '[.transfers[] | select(.shard == 1 and .from == 2)][0] | [.to, .op, .sum_of]' >"$T/out"
[[ $(<"$T/out") == '[3,"forward",0]' ]]
tap "in step 3 rank 2 passes on to 3 what rank 0 has sent"
sed 's/"version": 5/"version": 4/' "$T/c.json" >"$T/old.json"
expect 65 "no version before has them" weft schedule verify "$T/old.json"
has err "the error says which" 'forwarded sums are not in version 4'
finish
