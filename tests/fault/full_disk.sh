#!/bin/bash
# The disk under weftd's store has no space: before a change, at any of its
# writes, and while a change waits for its confirmation. Nothing is sent that
# could not be taken back, status goes on answering and says so, and all is
# well again when there is space, without a restart.
source "$(dirname "$0")/../lib.sh"
SHIM=$BUILD/release/tests/fault/full_disk.so
FULL=$T/full
emulators || exit 1
fabric "$T/a.yaml" 'UniRing(2,4)'
DEPTH=2 fabric "$T/b.yaml" 'Ring(4)'
daemon LD_PRELOAD="$SHIM" WEFT_FULL="$FULL" || exit 1

map() { # NAME: the circuits of the switch
	control ocs0 map | grep , | sort >"$T/$1"
}

holds() { # FILE: everything is as this configuration intends
	[[ $(weft status --format json | jq -r .config_sha256) == \
		"$(sha256sum <"$1" | cut -d ' ' -f 1)" ]] && weft verify >"$T/verify"
}

expect 0 "the second fabric" weft apply -f "$T/b.yaml"
expect 0 "the first fabric" weft apply -f "$T/a.yaml"
expect 0 "status" weft status --format json
jq -e '.advice == ""' "$T/out" >/dev/null
tap "has nothing to advise"

# From the beginning.
sent=$(sets ocs0).$(sets ring0)
echo 0 >"$FULL"
expect 1 "an apply while the disk is full" weft apply -f "$T/b.yaml"
has err "is refused" 'database or disk is full'
has err "with what to do" 'hint: check the disk and its free space'
[[ $(sets ocs0).$(sets ring0) == "$sent" ]]
tap "before anything is sent"
expect 1 "so is a drain" weft drain ocs0.3
expect 0 "status answers" weft status --format json
jq -e '.generation == 3 and .holds == [] and .last_change.id == 2 and
	(.advice | test("nothing can be recorded .write: .*disk is full"))' "$T/out" >/dev/null
tap "and says that nothing can be recorded"
expect 0 "devices are read and compared" weft verify
expect 2 "plans are made" weft plan -f "$T/b.yaml"
expect 0 "history is shown" weft history
rm "$FULL"
expect 0 "there is space again" weft verify
weft status --format json | jq -e '.advice == ""' >/dev/null
tap "and nothing to advise"
expect 0 "drained" weft drain ocs0.3
expect 0 "undrained" weft undrain ocs0.3

# At each write of a change.
for ((most = 1; most <= 400; most += 3)); do
	map map-a
	echo "$most" >"$FULL"
	weft apply -f "$T/b.yaml" >"$T/out" 2>"$T/err" </dev/null
	status=$?
	map map
	rm "$FULL"
	bad=0
	: >"$T/out2"
	case $status in
	0)	holds "$T/b.yaml" || bad=1 ;;
	1|3)	cmp -s "$T/map" "$T/map-a" || bad=1 ;;
	4)	weft status --format json | jq -e '.state == "interrupted" and
			([.devices[].unexpected[]] == [])' >/dev/null || bad=1 ;;
	*)	bad=1 ;;
	esac
	[[ $status == 0 ]] || grep -q 'disk is full' "$T/err" || bad=1
	weft apply -f "$T/b.yaml" >>"$T/out2" 2>&1 </dev/null && holds "$T/b.yaml" || bad=1
	weft apply -f "$T/a.yaml" >>"$T/out2" 2>&1 </dev/null && holds "$T/a.yaml" || bad=1
	((bad == 0)) || sed 's/^/# /' "$T/err" "$T/out2"
	((bad == 0))
	tap "full after $most writes: exit $status"
	[[ $status != 0 ]] || break
done
[[ $status == 0 && $most -gt 3 ]]
tap "the last of them was not needed"

# While a change waits.
expect 0 "applied, to be confirmed" weft apply -f "$T/b.yaml" --confirm-within 1h
echo 0 >"$FULL"
expect 1 "it cannot be confirmed" weft confirm
expect 1 "nor cancelled" weft cancel
holds "$T/b.yaml"
tap "and stays"
rm "$FULL"
expect 0 "until there is space" weft cancel
holds "$T/a.yaml"
tap "then it goes back"

# A start needs space, as each start is counted.
echo 0 >"$FULL"
stop weftd
LD_PRELOAD=$SHIM WEFT_FULL=$FULL expect 1 "no weftd starts on a full disk" \
	timeout 10 weftd --socket "$SOCK" --state-dir "$STATE"
has err "and says why" 'weft.db: .*disk'
rm "$FULL"
daemon || exit 1
holds "$T/a.yaml"
tap "nothing was lost"
finish
