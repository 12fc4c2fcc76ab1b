#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# SONiC switches and robots by SSH, through OpenSSH's server to their emulators: a
# change, keys of hosts that are unknown, changed or revoked, users that are not let
# in, passwords, keys exchanged again, and a server that is killed in a change.
source "$(dirname "$0")/../lib.sh"
[[ -x /usr/sbin/sshd ]] || { echo "1..0 # SKIP no sshd"; exit 0; }

# server NAME [LINE...]: lets users through to the emulator NAME. The empty line is
# answered by its prompt, which a shell prints by itself.
server() {
	local name=$1
	shift
	mkdir -p "$T/$name.d"
	rm -f "$T/$name.d/log"
	"${WITHIN[@]}" "$TOP/tests/sshd" "$T/$name.d" \
		"stty raw -echo; { echo; exec cat; } | nc -N ${ADDR[$name]/:/ }" "$@" >"$T/$name.sshd" 2>&1 </dev/null &
	PID[sshd-$name]=$!
	wait_for 20 grep -q 'Server listening' "$T/$name.d/log" ||
		{ cat "$T/$name.sshd"; return 1; }
}
WITHIN=(env)
# cut_off NAME: ends the server with all of its sessions.
cut_off() {
	local sessions
	sessions=$(pgrep -P "${PID[sshd-$1]}")
	stop "sshd-$1" KILL
	# shellcheck disable=SC2086
	[[ -z $sessions ]] || kill -KILL $sessions 2>/dev/null
}
USER_NAME=$(id -un)
login() { # NAME [OPTIONS]
	local d=$T/$1.d
	echo "ssh: yes, user: $USER_NAME, known_hosts: ${KNOWN:-$d/known_hosts}, gap_ms: 0, ${2:-key: $d/id}"
}
config() { # FILE NODES
	cat >"$1" <<-END
	weft: 1
	fabric: shells
	hosts:
	  - { name: "s[0-3]", ports: p0, rate: 100Gbps, reactivation: 1ms }
	  - { name: "r[0-3]", ports: p0, rate: 100Gbps, reactivation: 1ms }
	  - { name: "t[0-3]", ports: p0, rate: 100Gbps, reactivation: 1ms }
	switches:
	  - { name: sonic, size: 4x4, driver: sonic-ocs, address: "$(cat "$T/sonic.d/address")",
	      options: { $(login sonic) } }
	  - { name: rome, size: 4x4, driver: rome-cli, address: "$(cat "$T/rome.d/address")",
	      options: { $(login rome), poll_ms: 20 } }
	  - { name: tele, size: 4x4, driver: telescent-cli, address: "$(cat "$T/tele.d/address")",
	      options: { $(login tele), poll_ms: 20 } }
	fibres:
	  - { from: "s[0-3].p0", to: "sonic.[1-4]" }
	  - { from: "r[0-3].p0", to: "rome.[1-4]" }
	  - { from: "t[0-3].p0", to: "tele.[1-4]" }
	jobs:
	END
	local j
	for j in s r t; do
		echo "  - { name: j$j, nodes: [${2//x/$j}], collective: allreduce, size: 1MiB, topology: 'UniRing(1,4)' }" >>"$1"
	done
}
# one FILE OPTIONS: the switch alone.
one() {
	cat >"$1" <<-END
	weft: 1
	fabric: alone
	hosts:
	  - { name: "s[0-3]", ports: p0, rate: 100Gbps }
	switches:
	  - { name: sonic, size: 4x4, driver: sonic-ocs, address: "$(cat "$T/sonic.d/address")",
	      options: { $2 } }
	fibres:
	  - { from: "s[0-3].p0", to: "sonic.[1-4]" }
	jobs:
	  - { name: js, nodes: "s[0-3]", collective: allreduce, size: 1MiB, topology: "UniRing(1,4)" }
	END
}
# tried WHAT OPTIONS EXIT [PATTERN]: a weftd of its own applies that.
tried() {
	STATE=$T/state.tried
	rm -rf "$STATE"
	one "$T/one.yaml" "$2"
	daemon || { tap "$1" 1; return; }
	expect "$3" "$1" weft apply --mode update -f "$T/one.yaml"
	[[ -z ${4:-} ]] || has err "$1: and it says so" "$4"
	stop weftd
}

emulator sonic sonic-ocs 4x4 || exit 1
emulator rome rome-cli 4x4 --fault move=20 || exit 1
emulator tele telescent-cli 4x4 --fault move=20 || exit 1
for d in sonic rome tele; do
	server $d || exit 1
done
config "$T/one.yaml.all" "x0, x1, x2, x3"
config "$T/two.yaml.all" "x3, x2, x1, x0"

DAEMON_OPTIONS=(--poll 0)
daemon || exit 1
expect 0 "three drivers change circuits by SSH" weft apply -f "$T/one.yaml.all"
expect 0 "and read them" weft verify
control sonic map >"$T/map"
[[ $(grep -c , "$T/map") == 4 ]]
tap "which the devices have"

# sshd dies within the moves of a robot: the light stays, and is read.
control rome "fault move=1500" >/dev/null
weft apply -f "$T/two.yaml.all" >"$T/cut.out" 2>&1 </dev/null &
PID[apply]=$!
sent() { [[ $(sets rome) -gt $1 ]]; }
before=$(sets rome)
wait_for 20 sent "$before"
tap "a robot moves"
cut_off rome
server rome || exit 1
wait "${PID[apply]}"
code=$?
unset "PID[apply]"
[[ $code == 0 || $code == 3 || $code == 4 ]] ||
	{ sed 's/^/# /' "$T/cut.out"; false; }
tap "a change whose server was killed ends with what was read ($code)"
control rome "fault move=20" >/dev/null
settled() { weft apply -f "$T/two.yaml.all" && weft verify; }
wait_for 60 settled
tap "and is made by the next one"
stop weftd

good="$(login sonic)"
D=$T/sonic.d
print=$(ssh-keygen -lf "$D/host_ed25519.pub" | awk '{ print $2 }')
: >"$T/no_keys"
KNOWN=$T/no_keys tried "an unknown host is refused" \
	"$(KNOWN=$T/no_keys login sonic)" 77 "not known: ssh-ed25519 ${print//+/\\+} .*ssh-keyscan -p"
port=$(sed 's/.*://' "$D/address")
ssh-keyscan -p "$port" -t ecdsa 127.0.0.1 >"$T/scanned" 2>/dev/null
tried "what ssh-keyscan says is taken, of any type" "$(KNOWN=$T/scanned login sonic)" 0
ssh-keygen -q -H -f "$T/scanned" >/dev/null 2>&1
tried "also as a hashed name" "$(KNOWN=$T/scanned login sonic)" 0
sed "s/^/[127.0.0.1]:$port /" "$T/rome.d"/host_ed25519.pub >"$T/other"
tried "a changed host is refused" "$(KNOWN=$T/other login sonic)" 77 'HOST KEY HAS CHANGED'
{ sed 's/^/@revoked * /' "$D"/host_ed25519.pub; cat "$D/known_hosts"; } >"$T/revoked"
tried "a revoked key is refused" "$(KNOWN=$T/revoked login sonic)" 77 'is revoked'
tried "a user with another key is not let in" "$(login sonic "key: $T/rome.d/id")" 77 \
	"user '$USER_NAME' is not let in.*was refused"
cp "$D/id" "$T/open_key" && chmod 644 "$T/open_key"
tried "a key that others may read is not used" "$(login sonic "key: $T/open_key")" 77 \
	'others may read it'
cp "$D/id" "$T/closed_key" && ssh-keygen -q -p -N secret -f "$T/closed_key" >/dev/null
tried "nor is one with a passphrase" "$(login sonic "key: $T/closed_key")" 77 'has a passphrase'
tried "options of SSH without it are refused" "key: $D/id" 65 "option 'key' needs ssh=yes"
tried "so is SSH with neither key nor password" "ssh: yes, user: x" 65 'one of the options key and'
stop sshd-sonic

server sonic "RekeyLimit 16K" || exit 1
tried "keys are exchanged again within a session" "$good" 0
stop sshd-sonic

# A password needs an account that has one: a shadow of ours, seen by sshd only.
if ((UID == 0)) && unshare -m true 2>/dev/null; then
	word=Tr0ub4dor-3
	awk -F: -v OFS=: -v w="$(openssl passwd -6 "$word")" '$1 == "root" { $2 = w } { print }' \
		/etc/shadow >"$T/shadow"
	printf 'auth required pam_unix.so\naccount required pam_permit.so\nsession required pam_permit.so\n' >"$T/pam"
	cat >"$T/within" <<-END
	#!/bin/bash
	mount --bind "$T/shadow" /etc/shadow && mount --bind "$T/pam" /etc/pam.d/sshd && exec "\$@"
	END
	chmod +x "$T/within"
	WITHIN=(unshare -m "$T/within")
	echo "$word" >"$T/password" && echo wrong >"$T/wrong" && chmod 600 "$T/password" "$T/wrong"
	server sonic "PasswordAuthentication yes" || exit 1
	tried "a password from a file" "$(login sonic "password_file: $T/password")" 0
	tried "a wrong one" "$(login sonic "password_file: $T/wrong")" 77 'the password was refused'
	stop sshd-sonic
	server sonic "UsePAM yes" "KbdInteractiveAuthentication yes" || exit 1
	tried "a password that is asked for" "$(login sonic "password_file: $T/password")" 0
	stop sshd-sonic
	grep -qF "$word" "$T/weftd.log" "$T"/out "$T"/err
	[[ $? == 1 ]]
	tap "no log has it"
	WITHIN=(env)
fi
# Whatever weftd wrote: no key either.
grep -qF "$(sed -n 3p "$D/id")" "$T/weftd.log"
[[ $? == 1 ]]
tap "nor a private key"
finish
