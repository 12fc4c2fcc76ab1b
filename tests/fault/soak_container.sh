#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The container of configs/container, where there is buildah: built without a network, small, not
# root's, healthy or not as `weft status -q` says, and ended by SIGTERM as process 1.
cd "$(dirname "$0")" || exit 1
. ../lib.sh
skip() {
	echo "ok $((++TAP_N)) - the container # SKIP $1"
	finish
}
[[ $(id -u) == 0 ]] || skip "mounts need root"
type buildah >/dev/null 2>&1 || skip "no buildah"
expect 0 "make container" make -s -j2 -C "$TOP" BUILD="$BUILD" container
build=(buildah --root "$T/root" --runroot "$T/run" --storage-driver vfs)
unmount() {
	"${build[@]}" umount --all >"$T/out" 2>&1
	"${build[@]}" rm --all >"$T/out" 2>&1
	cleanup
}
trap unmount EXIT
expect 0 "an image is built without a network" unshare --net "${build[@]}" bud --isolation chroot \
	-f "$TOP/configs/container/Dockerfile" -t weft "$BUILD/container"
name=$("${build[@]}" from --pull-never weft) && root=$("${build[@]}" mount "$name")
tap "and a container made of it"
[[ -n ${root:-} ]] || finish
size=$(du -sb "$root" | cut -f1)
((size <= 12 << 20))
tap "of at most 12 MiB ($size bytes)"
[[ $("${build[@]}" inspect "$name" | jq -r .OCIv1.config.User) == 65532:65532 ]]
tap "not root's"

# weft in it; weftd as process 1 of its own.
inside=(chroot --userspec=65532:65532 "$root")
expect 69 "without weftd it is not healthy" "${inside[@]}" /usr/bin/weft status -q --socket /run/weft/weftd.sock
unshare --pid --fork --kill-child "${inside[@]}" /usr/bin/weftd --socket /run/weft/weftd.sock \
	--state-dir /var/lib/weft >"$T/weftd.log" 2>&1 </dev/null &
PID[weftd]=$!
wait_for 10 "${inside[@]}" /usr/bin/weft status -q --socket /run/weft/weftd.sock
tap "with it it is"
[[ -s $root/var/lib/weft/weft.db ]]
tap "its store is there"
kill -TERM "$(pgrep -P "${PID[weftd]}")"
wait "${PID[weftd]}"
tap "process 1 ends by SIGTERM, and well"
unset 'PID[weftd]'
finish
