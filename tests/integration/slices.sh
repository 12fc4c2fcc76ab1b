#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Slices of cubes on 48 switches: requested, told apart by the switches' own maps, ended and found
# again, a cube that fails and the spare in its place, a switch that fails.
source "$(dirname "$0")/../lib.sh"
cat >"$T/cubes.yaml" <<END
weft: 1
fabric: cubes
cubes:
  - { name: "cube[0-8]", rate: 400Gbps, reactivation: 1ms, switches: "x[00-15],y[00-15],z[00-15]" }
switches:
  - { name: "x[00-15],y[00-15],z[00-15]", driver: sonic-ocs, size: 64x64, domain: ocs,
      address: "127.0.0.1:[17400-17447]" }
END
mkdir "$T/ctl"
weft emulate --control-dir "$T/ctl" "$T/cubes.yaml" >"$T/emulate.log" 2>&1 </dev/null &
PID[emulate]=$!
wait_for 20 grep -q '^ready' "$T/emulate.log"
tap "48 emulators listen"
for s in {x,y,z}{00..15}; do CTL[$s]=$T/ctl/$s.ctl; done
daemon || exit 1
map() { control "$1" map | grep , | sort; }
# The maps of all switches by the rules of such machines: sizes of what hangs together.
rules() {
	mkdir -p "$T/maps"
	for s in {x,y,z}{00..15}; do map "$s" >"$T/maps/$s"; done
	/usr/bin/python3 "$TOP/tests/integration/slices.py" rules "$T/maps" 9 >"$T/rules" 2>&1
	grep -qx "$1" "$T/rules" || ! sed 's/^/# /' "$T/rules"
}
job() { weft job list --all --format json "$1" | jq -c '.jobs[-1]'; }
is() { [[ $(job "$1" | jq "$2") == true ]]; }

expect 0 "a fabric of cubes without jobs" weft apply -f "$T/cubes.yaml"
expect 65 "a shape that is no whole cubes" weft job request n --shape 4x4x6 -c allreduce --size 1MiB
has err "says so" 'there are no cubes that 4x4x6 is made of'
expect 65 "one of more cubes than there are" weft job request n --shape 8x8x12 -c allreduce --size 1MiB
has err "says how many" '12 hosts are wanted, and there are 9 cubes'
expect 65 "a twist of a cube" weft job request n --shape 8x8x8 --twist -c allreduce --size 1MiB
has err "is none" 'twist: 8x8x8 is not k x k x 2k or k x 2k x 2k'
expect 64 "a shape that is none" weft job request n --shape 8x8 -c allreduce --size 1MiB
expect 65 "spares of no shape" weft job request n --count 2 --spares 1 -c allreduce --size 1MiB
expect 65 "hosts that are cubes" weft job request n --count 2 -c allreduce --size 1MiB

expect 0 "a slice of four cubes with a spare" weft job request a --shape 4x8x8 --spares 1 -c allreduce --size 1MiB
is a '.nodes == ["cube0","cube1","cube2","cube3","cube4"]'
tap "has five"
expect 0 "a twisted one" weft job request b --shape 4x4x8 --twist -c allreduce --size 1MiB
expect 0 "its schedule" weft schedule verify --job b --format json
[[ $(jq .nodes "$T/out") == 128 ]]
tap "is of all chips"
weft schedule export --job a --to json -o "$T/a.json" &&
	[[ $(jq -r '[.placement.hosts[0,8,64]] | join(" ")' "$T/a.json" 2>/dev/null) == *cube* ]]
tap "the exported schedule names the cubes"
# Inputs of plus faces are 0 to 8, of minus faces 9 to 17; outputs likewise.
map x00 >"$T/x"
[[ $(wc -l <"$T/x") == 12 ]] && grep -qx 0,9 "$T/x"
tap "a cube alone on an axis meets itself, plus to minus"

expect 2 "a plan for 48 switches" weft plan -f "$TOP/configs/fabrics/cubes.yaml" --offline
(($(wc -l <"$T/out") < 80))
tap "fits on a page"
has out "counts the rest" 'and [0-9]* more devices: [0-9]* to add, 0 to delete'

rules "2 4"
tap "the maps of all switches are two tori, of whole cubes"
slices() { /usr/bin/python3 "$TOP/docs/examples/slices.py" "$@"; }
checks() { /usr/bin/python3 "$TOP/tests/integration/slices.py" "$@"; }
slices slurm >"$T/topology.yaml" && [[ $(checks slurm "$T/topology.yaml") == 2 ]]
tap "as Slurm's tori"
grep -q 'nodes: cube0,cube2,cube1,cube3$' "$T/topology.yaml"
tap "whose first coordinate is the fastest"
slices kubernetes tpu7x >"$T/slices.yaml" && [[ $(checks kubernetes "$T/slices.yaml") == 2 ]]
tap "as Slice objects"
grep -q '^  topology: 4x4x8' "$T/slices.yaml" && grep -q 'reason: ACTIVE$' "$T/slices.yaml"
tap "which are active"

expect 0 "it ends" weft job release b
map z15 >"$T/z"
expect 0 "the same again" weft job request c --shape 4x4x8 --twist -c allreduce --size 1MiB
map z15 | cmp -s - "$T/z"
tap "finds its light as it was"
weft status | grep -q 'job c starts; no light changed'
tap "and nothing was changed"

# A port of cube2's plus face of x: the spare is cube4.
map z15 | grep -v '^[0-4],\|^9,\|^1[0-3],' >"$T/others"

control x00 "fault port-failed=i2" >"$T/ctl.out"
weft verify >/dev/null 2>&1
wait_for 20 is a '.repairs == 1 and .rate == 1 and .problem == ""'
tap "a port fails, and its cube is replaced by the spare"
weft schedule export --job a --to json -o "$T/b.json"
[[ $(jq -r '.placement.hosts[]' "$T/b.json" | sort -u | tr '\n' ' ') == "cube0 cube1 cube3 cube4 " ]]
tap "the schedule is of the others and the spare"
map z15 | grep -v '^[0-4],\|^9,\|^1[0-3],' | cmp -s - "$T/others"
tap "no circuit of the other slice was touched"

rules "2 4"
tap "the maps are two tori still"
map z15 >"$T/z"
for p in $(seq 0 17); do control x05 "fault port-failed=i$p" >"$T/ctl.out"; done
weft verify >/dev/null 2>&1
wait_for 20 is c '.rate < 1'
tap "a switch fails: the slices are degraded"
sleep 1
map z15 | cmp -s - "$T/z"
tap "and no cube moves for it"
finish
