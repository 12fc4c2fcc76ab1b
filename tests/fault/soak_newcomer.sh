#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# needs: outside network
# A new machine: Debian 12 with nothing but what README.md asks for. Its commands, word for word;
# ^C at a terminal while packages come, in the build, in the demonstration, and again; installed by
# make and by apt, upgraded, purged. (`make check` is left out: it is what runs this.)
cd "$(dirname "$0")" || exit 1
. ../lib.sh
skip() {
	echo "ok $((++TAP_N)) - a new machine # SKIP $1"
	finish
}
[[ $(id -u) == 0 ]] || skip "debootstrap needs root"
# Mounts of this script's own, which end with it.
[[ -n ${WEFT_MOUNTS:-} ]] || exec env WEFT_MOUNTS=1 unshare --mount --propagation private "$0"
"$TOP/tests/deps" debootstrap >&2 || exit 1
mirror=$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' 'Codename: bookworm' | head -n 1)
[[ -n $mirror ]] || skip "apt here has no source of Debian 12"

R=$T/root
expect 0 "debootstrap" debootstrap --variant=minbase bookworm "$R" "$mirror"
mount -t proc proc "$R/proc"
trap 'umount "$R/proc"; cleanup' EXIT
cp /etc/resolv.conf "$R/etc"
cp -r /etc/apt/sources.list* /etc/apt/apt.conf.d "$R/etc/apt"
cp -r /usr/share/keyrings "$R/usr/share"
git clone -q "$TOP" "$R/root/weft"
# What stands in README as a line of commands that begins so, without its comment.
readme() {
	sed -n "s/^    \($1[^#]*\)#.*/\1/p" "$TOP/README.md" | sed 's/ *$//'
}

# there COMMAND: in the folder of the clone, on that machine, as a user who has nothing set.
there() {
	chroot "$R" env -i HOME=/root TERM=dumb PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
		DEBIAN_FRONTEND=noninteractive bash -c "cd /root/weft && $1"
}

# interrupted PATTERN COMMAND: ends by ^C at its terminal as soon as it has printed PATTERN;
# nothing that it started is left.
interrupted() {
	export -f there
	R=$R python3 - "$1" "$2" >"$T/out" <<'END'
import os, pty, re, sys
pid, terminal = pty.fork()
if pid == 0:
    os.execvp("bash", ["bash", "-c", 'there "$0"', sys.argv[2]])
text, sent = b"", False
while True:
    try:
        more = os.read(terminal, 4096)
    except OSError:
        break
    if not more:
        break
    text += more
    if not sent and re.search(sys.argv[1].encode(), text):
        sent = True
        os.write(terminal, b"\x03")
print(text.decode(errors="replace")[-2000:])
code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
sys.exit(0 if sent and code != 0 else 1)
END
	local status=$?
	((status == 0)) || sed 's/^/# /' "$T/out"
	tap "^C at '$1' ends $2" $status
	sleep 1
	! for p in /proc/[0-9]*; do
		[[ $(readlink "$p/root") == "$R"* ]] && tr '\0' ' ' <"$p/cmdline"
	done | grep .
	tap "and nothing of it runs on"
}

# ---- README's two commands -------------------------------------------------

demo=$(readme 'make demo')
[[ -n $demo ]]
tap "README has it: $demo"
there "apt-get update && apt-get install -y git make systemd" >"$T/log" 2>&1
tap "the packages git and make (and systemd, as machines have)"
there "git config --global --add safe.directory /root/weft"
there "useradd --create-home visitor && cp -r /root/weft /home/visitor && chown -R visitor /home/visitor"
expect 2 "who is not root is told what comes first" chroot "$R" su -l visitor -c "make -C weft"
has err "in one line" '^weft: first, as root: make deps'
interrupted 'installing' "$demo"
interrupted 'CC .*rat\.o' "$demo"
interrupted 'The controller' "$demo"
for again in "" ", again"; do
	expect 0 "$demo$again" there "$demo"
	has out "to its end$again" 'the light is proven, the schedules are replayed'
done

# ---- by make ----------------------------------------------------------------

everything() {
	find "$R"/{etc,lib,usr,var} -path "$R/var/cache" -prune -o ! -type d -print | sort
}
everything >"$T/before"
expect 0 "make install" there "make -s install"
awk '/^    weft: 1/, !NF { sub(/^    /, ""); print }' "$TOP/README.md" >"$R/root/weft/lab.yaml"
readme_lab=$(grep -oE '`weft (check|plan)[^`]*lab.yaml`' "$TOP/README.md" | tr -d '`')
[[ $(wc -l <<<"$readme_lab") == 2 ]]
tap "README has two commands for lab.yaml"
expect 0 "a user of its own" chroot "$R" getent passwd weft
while read -r command; do
	expect "$([[ $command == *plan* ]] && echo 2 || echo 0)" "$command" there "$command"
done <<<"$readme_lab"
expect 0 "make uninstall" there "make -s uninstall"
everything | grep -vE 'etc/(passwd|group|shadow|gshadow)-?$|default/weftd' | diff <(grep -vE \
	'etc/(passwd|group|shadow|gshadow)-?$' "$T/before") - >"$T/out" ||
	{ sed 's/^/# /' "$T/out"; false; }
tap "and nothing is left but the settings"

# ---- by apt -----------------------------------------------------------------

# live COMMAND...: COMMAND with a weftd of the installed package beside it.
live() {
	there "set -e; install -d -o weft -g weft /run/weft /var/lib/weft
		setpriv --reuid weft --regid weft --init-groups weftd --socket /run/weft/weftd.sock \
			--state-dir /var/lib/weft >/tmp/weftd.log 2>&1 &
		for i in \$(seq 100); do weft status -q 2>/dev/null && break; sleep 0.1; done
		code=0; $1 || code=\$?; kill %1; wait %1; exit \$code"
}
rm -f "$R/etc/default/weftd"
expect 0 "make deb" there "make -s deb"
first=$(tail -n 1 "$T/out")
expect 0 "apt installs it" there "apt-get install -y ./$first"
expect 0 "a fabric is applied" live "weft apply -f lab.yaml"
there "git -c user.name=visitor -c user.email=visitor@example.org commit -q --allow-empty -m next"
expect 0 "make deb of the next commit" there "make -s deb"
second=$(tail -n 1 "$T/out")
[[ $first != "$second" ]]
tap "which is another"
expect 0 "apt upgrades to it" there "apt-get install -y ./$second"
has out "as an upgrade" '1 upgraded'
expect 0 "what was done is known" live "weft history"
has out "by whom and how it ended" 'committed'
expect 0 "apt purges it" there "apt-get purge -y weft"
! everything | grep -E 'weft' | grep -vE "$R/root|/var/lib/dpkg|/var/log"
tap "and nothing is left"
finish
