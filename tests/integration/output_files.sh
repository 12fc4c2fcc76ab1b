#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Files that weft writes: the umask and an existing file's mode hold, symbolic
# links are followed, and a plan is for its owner.
source "$(dirname "$0")/../lib.sh"
cp "$TOP/configs/fabrics/ring8.yaml" "$T/ring.yaml"
chmod 644 "$T/ring.yaml"

# mode FILE MODE WHAT: FILE itself, not what it leads to, is of this mode.
mode() {
	local got
	got=$(stat -c %a "$T/$1")
	[[ $got == "$2" ]] || echo "# $1: mode $got, expected $2"
	[[ $got == "$2" ]]
	tap "$3"
}
plan() { # UMASK FILE
	(umask "$1" && weft plan --offline -f "$T/ring.yaml" -o "$T/$2")
}
make_schedule() { # UMASK FILE
	(umask "$1" && weft schedule make --topology 'Ring(4)' \
		--collective allgather -o "$T/$2")
}

expect 2 "a plan under umask 077" plan 077 plan
mode plan 600 "its mode is 0600"
expect 0 "a schedule under umask 077" make_schedule 077 schedule
mode schedule 600 "its mode is 0600"
expect 0 "a schedule under umask 022" make_schedule 022 open
mode open 644 "its mode is 0644"

expect 0 "over a schedule of mode 0600" make_schedule 022 schedule
mode schedule 600 "it keeps its mode"
chmod 664 "$T/open"
expect 0 "over a schedule of mode 0664" make_schedule 077 open
mode open 664 "it keeps its mode"

ln -s schedule "$T/link"
echo old >"$T/schedule"
expect 0 "through a symbolic link" make_schedule 022 link
[[ -L $T/link && $(readlink "$T/link") == schedule ]]
tap "the link stays"
cmp -s "$T/schedule" "$T/open"
tap "the file that it leads to is replaced"
mode schedule 600 "and keeps its mode"
ln -s "$T/made" "$T/ahead"
expect 0 "a link that leads nowhere yet" make_schedule 022 ahead
[[ -L $T/ahead ]] && cmp -s "$T/made" "$T/open"
tap "makes its file"
[[ -z $(find "$T" -name '*.????????' -newer "$T/link" ! -name 'weft*') ]]
tap "no temporary file is left"

if ((EUID == 0)); then
	chmod 711 "$T" && mkdir -m 1777 "$T/public" && echo old >"$T/mine"
	ln -s "$T/mine" "$T/public/trap" && chown -h 4001 "$T/public/trap"
	expect 77 "a link of another user where everybody may make one" make_schedule 022 public/trap
	has err "is not followed" 'a link that another user has made'
	[[ $(cat "$T/mine") == old ]]
	tap "what it leads to is as it was"
	(umask 022 && setpriv --reuid 4002 --clear-groups "$(type -P weft)" schedule make --topology 'Ring(4)' \
		--collective allgather -o "$T/public/trap" >"$T/out" 2>"$T/err")
	[[ $? == 77 ]]
	tap "nor by a user who is not root"
fi

expect 2 "a plan of a fabric of mode 0644" plan 022 secret
mode secret 600 "is of mode 0600"
chmod 644 "$T/plan"
expect 2 "also over one of mode 0644" plan 022 plan
mode plan 600 "which is closed"
(umask 022 && weft plan --offline -f - -o "$T/piped" <"$T/ring.yaml" >/dev/null 2>&1)
mode piped 600 "of a fabric from standard input, 0600"
finish
