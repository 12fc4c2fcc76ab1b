#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# needs: outside network
# The packages on a Debian 12 that boots, in a virtual machine without a network: its systemd holds
# weftd to the limits of its unit, while it plans, runs out of memory, is killed, and stops.
# (Not a container: in one, control groups of version 1 have no OOMPolicy=.)
cd "$(dirname "$0")" || exit 1
. ../lib.sh

# ---- on that machine ---------------------------------------------------------

value() { systemctl show --value -p "$1" weftd; }
asked() { weft status -q 2>>"$T/asked"; }
killed() { awk '$1 == "oom_kill" { print $2 }' "/sys/fs/cgroup$(value ControlGroup)/memory.events"; }

# setting LINE...: of the unit, beside the shipped ones.
setting() {
	mkdir -p /etc/systemd/system/weftd.service.d
	printf '%s\n' "[Service]" "$@" >/etc/systemd/system/weftd.service.d/soak.conf
	systemctl daemon-reload && systemctl restart weftd && wait_for 60 weft status -q
}

guest() {
	local demo=/usr/share/doc/weft/examples/fabrics/demo.yaml pid began
	export WEFT_SOCKET=/run/weft/weftd.sock
	one_job "$T/large.yaml" 1000
	expect 0 "apt installs the packages" apt-get install -y --no-install-recommends /root/weft{,-lab}_*.deb
	expect 0 "service and socket run" systemctl is-active weftd.service weftd.socket
	expect 0 "dpkg puts the same there again" dpkg -i /root/weft_*.deb
	expect 0 "service and socket run again" systemctl is-active weftd.service weftd.socket
	wait_for 60 weft status -q
	tap "weftd answers"
	echo "# $(systemctl --version | head -n 1), Linux $(uname -r), control groups: $(stat -fc %T /sys/fs/cgroup)"
	grep -q '^Seccomp:.*2' "/proc/$(value MainPID)/status"
	tap "with a filter of system calls"
	[[ $(value MemoryDenyWriteExecute) == yes && $(value OOMPolicy) == continue ]]
	tap "with the unit's limits"

	weft emulate $demo >"$T/emulate.log" 2>&1 </dev/null &
	PID[emulate]=$!
	wait_for 60 grep -q ready "$T/emulate.log"
	tap "devices are emulated"
	expect 2 "the demonstration is planned" weft plan -f $demo
	expect 0 "and applied" weft apply -f $demo
	expect 0 "and verified" weft verify
	pid=$(value MainPID)
	expect 0 "settings are read again" systemctl reload weftd
	expect 0 "it answers" weft status
	[[ $(value MainPID) == "$pid" ]]
	tap "as the same process"

	echo 'WEFTD_OPTIONS="--plan-memory 0"' >/etc/default/weftd
	setting MemoryMax=96M
	tap "MemoryMax= is set, and plans have no limit of their own"
	pid=$(value MainPID)
	expect 69 "a plan that eats that ends" weft plan -f "$T/large.yaml"
	has err "and its client is told" "planning was killed, as where the machine has no more memory"
	(($(killed) >= 1))
	tap "by the kernel"
	expect 0 "weftd answers" weft status
	expect 0 "and plans" weft plan -f $demo
	[[ $(value MainPID) == "$pid" && $(value NRestarts) == 0 && $(value ActiveState) == active ]]
	tap "as the same process, which systemd let be"

	began=${EPOCHREALTIME/./}
	expect 0 "weftd is killed with all that it runs" systemctl kill -s KILL weftd
	wait_for 60 asked
	tap "it answers again"
	echo "# after $(((${EPOCHREALTIME/./} - began) / 1000)) ms, of a processor that is emulated"
	! grep 'no weftd listens' "$T/asked"
	tap "and refused no client meanwhile"
	[[ $(value MainPID) != "$pid" && $(value NRestarts) == 1 ]]
	tap "by another process, started by systemd"
	expect 0 "what was applied is known" weft plan -f $demo

	expect 0 "it stops" systemctl stop weftd
	[[ $(value Result) == success && $(value ExecMainCode) == 1 && $(value ExecMainStatus) == 0 ]]
	tap "with 0" || systemctl show -p Result,ExecMainCode,ExecMainStatus weftd

	setting OOMPolicy=stop MemoryMax=96M
	pid=$(value MainPID)
	weft plan -f "$T/large.yaml" >"$T/out" 2>&1
	wait_for 60 weft status -q
	[[ $(value MainPID) != "$pid" ]]
	tap "with OOMPolicy=stop, a plan takes weftd along"
	systemctl stop weftd

	echo "# $(systemd-analyze security weftd --no-pager | tail -n 1)"
	! journalctl -u weftd -o cat | grep -iE 'not permitted|setpriority|mprotect' | sed 's/^/# /' | grep .
	tap "nothing that it needs was refused"
	finish
}

if [[ -n ${WEFT_GUEST:-} ]]; then
	TAP_N=$WEFT_GUEST
	guest
fi

# ---- on this one ---------------------------------------------------------------

skip() {
	echo "ok $((++TAP_N)) - weftd under systemd # SKIP $1"
	finish
}
[[ $(id -u) == 0 ]] || skip "debootstrap needs root"
# Mounts of this script's own, which end with it.
[[ -n ${WEFT_MOUNTS:-} ]] || exec env WEFT_MOUNTS=1 unshare --mount --propagation private "$0"
"$TOP/tests/deps" debootstrap qemu-system-x86 seabios e2fsprogs >&2 || exit 1
mirror=$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' 'Codename: bookworm' | head -n 1)
[[ -n $mirror ]] || skip "apt here has no source of Debian 12"

R=$T/root
expect 0 "debootstrap" debootstrap --variant=minbase \
	--include=systemd-sysv,udev,kmod,initramfs-tools,linux-image-cloud-amd64,jq,procps bookworm "$R" "$mirror"
expect 0 "make deb" make -s -C "$TOP" deb
cp "$BUILD"/weft{,-lab}_"$(weft --version | cut -d' ' -f2)"_amd64.deb "$R/root"
mkdir -p "$R/root/tests/fault"
cp "$TOP/tests/lib.sh" "$R/root/tests"
cp "$0" "$R/root/tests/fault"
chroot "$R" env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive bash -c \
	"apt-get install -y --no-install-recommends --download-only /root/*.deb" >"$T/log" 2>&1
tap "what the packages need is there"
cat >"$R/etc/systemd/system/soak.service" <<-END
[Unit]
SuccessAction=poweroff-immediate
FailureAction=poweroff-immediate
[Service]
Type=exec
Environment=BIN=/usr/bin WEFT_GUEST=$((TAP_N + 2)) DEBIAN_FRONTEND=noninteractive
ExecStart=/root/tests/fault/soak_systemd.sh
StandardOutput=file:/dev/ttyS1
[Install]
WantedBy=multi-user.target
END
chroot "$R" systemctl enable soak >"$T/log" 2>&1
tap "what is to be done there is too"
mkfs.ext4 -q -d "$R" "$T/disk" 3G
tap "a disk"
timeout 1200 qemu-system-x86_64 -accel tcg,thread=multi -cpu max -smp 2 -m 1024 -nic none \
	-display none -no-reboot -kernel "$(ls "$R"/boot/vmlinuz-*)" -initrd "$(ls "$R"/boot/initrd.img-*)" \
	-append "root=/dev/vda rw console=ttyS0 systemd.mask=serial-getty@ttyS0.service" \
	-drive "file=$T/disk,format=raw,if=virtio,cache=unsafe" \
	-serial "file:$T/console" -serial "file:$T/tap" 2>"$T/err" </dev/null
status=$?
tr -d '\r' <"$T/tap"
grep -q '^1\.\.' "$T/tap" || {
	tail -n 40 "$T/console" "$T/err" | sed 's/^/# /'
	tap "the machine ends by itself" $((status ? status : 1))
	finish
}
! grep -q '^not ok' "$T/tap" && ((TAP_BAD == 0))
