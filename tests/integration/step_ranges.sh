#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A step of collectives with calls of several sizes, and of one that runs under two lights: a
# schedule for each, by number, in the folder and in the table; and folders that do not say so are
# found.
source "$(dirname "$0")/../lib.sh"
emulator ocs0 polatis-scpi 32x32 || exit 1
cat >"$T/step.yaml" <<-END
	weft: 1
	fabric: ranges
	hosts: [ { name: "h[0-7]", ports: "p[0-3]", rate: 100Gbps, reactivation: 0s } ]
	switches:
	  - { name: ocs0, size: 32x32, driver: polatis-scpi, address: "${ADDR[ocs0]}", options: { gap_ms: 1, settle_ms: 20 }, timeout: 1s }
	fibres: [ { from: "h[0-7].p[0-3]", to: "ocs0.[1-32]" } ]
	jobs:
	  - name: train
	    nodes: "h[0-7]"
	    mesh: { pp: 2, dp: 4 }
	    collectives:
	      - { name: sync, collective: allreduce, size: 1KiB-64GiB, over: dp }
	      - { name: pass, collective: allgather, size: 32GiB, over: pp }
	    step: [ sync, { together: [ sync, pass ] } ]
	    light: by-collective
END
daemon || exit 1
expect 0 "applied" weft apply -f "$T/step.yaml"
weft status --format json >"$T/status"
jq -e '[.jobs[0].step.uses[] | select(.name == "sync")] | (map(.light) | unique == [1, 2]) and length > 2 and
	.[0].min_bytes == 1024 and (map(select(.size_bytes == 68719476736)) | length == 2) and
	([group_by(.light)[] | . as $l | range(1; length) | $l[.].min_bytes == $l[. - 1].size_bytes + 1] | all)' <"$T/status" >"$T/ok"
tap "status has the ranges of both lights"
n=$(jq '[.jobs[0].step.uses[] | select(.name == "sync")] | length' <"$T/status")
expect 65 "one of them has no name" weft schedule export --job train/sync -o "$T/s.json"
has err "and is told how" "train/sync has $n schedules, by light and size"
expect 65 "nor is there one beyond" weft schedule export --job "train/sync/$((n + 1))" -o "$T/s.json"
expect 0 "the first" weft schedule export --job train/sync/1 -o "$T/s.json"
expect 0 "is replayed" weft schedule verify "$T/s.json"
expect 0 "all as a folder" weft schedule export --job train -o "$T/train/"
has out "are $((n + 1)) schedules" "schedules *$((n + 1))$"
expect 0 "that is checked" weft schedule verify "$T/train/"
cmp "$T/s.json" "$T/train/sync-1.json"
tap "by their numbers"
[[ ! -e $T/train/sync.json && -e $T/train/pass.json && -e $T/train/sync-$n.json ]]
tap "but for what has one"
[[ $(grep -c '# light [12]: - { file: sync-' "$T/train/table.yaml") == "$n" ]] && grep -q '^  - { file: pass.json' "$T/train/table.yaml"
tap "the table leaves out those of which a call does not say the light"
# broken NAME FILTER MESSAGE: such a step.json is found.
broken() {
	cp -r "$T/train" "$T/bad" && jq "$2" "$T/train/step.json" >"$T/bad/step.json"
	expect "${4:-1}" "$1" weft schedule verify "$T/bad/"
	has err "is found" "$3"
	rm -r "$T/bad"
}
broken "a range that ends too early" '(.uses[] | select(.name == "sync") | .max_bytes) |= . - 1' "sync: its ranges of sizes"
broken "one that is missing" '.uses |= (del(.[0]))' "sync"
broken "a range of other sizes" '(.collectives[0].min_bytes) = 2048' "sync: its ranges of sizes"
broken "a range from large to small" '(.collectives[0].min_bytes) = 98719476736' "sizes from a larger one" 65

# Still light: one table.
sed -i 's/    light: by-collective/    light: still/' "$T/step.yaml"
expect 0 "light that stays still" weft apply -f "$T/step.yaml"
expect 0 "has a folder, too" weft schedule export --job train -o "$T/still/"
expect 0 "which is checked" weft schedule verify "$T/still/"
grep 'file: sync-' "$T/still/table.yaml" >"$T/table"
n=$(wc -l <"$T/table")
[[ $n -gt 1 ]] && head -1 "$T/table" | grep -qv min-bytes && tail -1 "$T/table" | grep -qv max-bytes && [[ $(grep -c min-bytes "$T/table") == $((n - 1)) ]]
tap "the table has its ranges, and all sizes an entry"
for one in "1MiB-1KiB:sync: sizes from a larger one to a smaller" "1KiB-:job train: size: expected" "1KiB-1MiB-1GiB:job train: size '1MiB-1GiB'" "0B-1KiB:job train: size: 0B is less"; do
	sed "s/1KiB-64GiB/${one%%:*}/" "$T/step.yaml" >"$T/bad.yaml"
	expect 65 "size: ${one%%:*}" weft plan --offline -f "$T/bad.yaml"
	has err "is refused" "bad.yaml:.*${one#*:}"
done
finish
