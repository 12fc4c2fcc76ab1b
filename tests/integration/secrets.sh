#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A password is in its file and nowhere else: no plan, answer, log, export, store or etcd has it.
# tests/unit/drivers/test_secrets.c has all drivers.
cd "$(dirname "$0")" || exit 1
. ../lib.sh
WORD=Zq7xK-4kdW

emulator ocs0 glimmerglass-tl1 8x8
tap "a switch that asks for a password"
fabric_with() { # OPTION
	cat <<-END
	weft: 1
	fabric: secret
	hosts:
	  - { name: "h[0-3]", ports: "p0", rate: 100Gbps, reactivation: 10ms }
	switches:
	  - name: ocs0
	    size: 8x8
	    driver: glimmerglass-tl1
	    address: ${ADDR[ocs0]}
	    options: { user: noc, $1, gap_ms: 0, settle_ms: 1 }
	fibres:
	  - { from: "h[0-3].p0", to: "ocs0.[1-4]" }
	jobs:
	  - { name: reduce, nodes: all, collective: allreduce, size: 1MiB, topology: "UniRing(1,4)" }
	END
}
nowhere() { # WHAT FILE...: none of them has the word.
	! grep -rlaF "$WORD" "${@:2}" | sed 's/^/# it is in /' | grep .
	tap "$1"
}
echo "noc$WORD" >"$T/password" && chmod 600 "$T/password"
fabric_with "password_file: $T/password" >"$T/good.yaml"
fabric_with "password: noc$WORD" >"$T/bad.yaml"
fabric_with "password_file: password" >"$T/relative.yaml"
mkdir "$T/said"

expect 65 "a password in a fabric is refused" weft check "$T/bad.yaml"
has err "with its place" 'bad.yaml:10:27: switch ocs0: options: a password does not stand in a fabric'
has err "and what to write instead" 'hint: .* password_file: /PATH'
[[ $(wc -l <"$T/err") == 2 ]]
tap "and nothing beside it"
cp "$T/err" "$T/said/check"
DAEMON_OPTIONS=(--log-level debug --page 127.0.0.1:0 --metrics 127.0.0.1:0)
daemon
expect 65 "by weftd as well" weft apply "$T/bad.yaml"
cp "$T/err" "$T/said/apply"
expect 65 "a path that is relative is refused" weft apply "$T/relative.yaml"
has err "with its place" 'relative.yaml:6:11: device ocs0: option password_file: expected an absolute path'
chmod 640 "$T/password"
expect 77 "a file that others may read is not used" weft apply "$T/good.yaml"
has err "which is said" 'others may read it'
chmod 600 "$T/password"
expect 0 "a password in a file of its own" weft apply "$T/good.yaml"
(umask 022 && weft plan -o "$T/said/plan" "$T/good.yaml" >/dev/null)
[[ $(stat -c %a "$T/said/plan") == 600 ]]
tap "a plan is of mode 0600"
echo wrong"$WORD" >"$T/password"
control ocs0 "restart kept" >/dev/null
weft verify >"$T/said/verify" 2>&1
grep -q "log-in denied: PIUI" "$T/said/verify"
tap "a device that refuses a password, and says it back"
echo "noc$WORD" >"$T/password"
for verb in status history audit "history 1 --config" "status --format json" "audit --format json" "plan --full --commands $T/good.yaml"; do
	# shellcheck disable=SC2086
	weft $verb >>"$T/said/answers" 2>&1
done
curl -s "$(sed -n 's/.*page on \(.*\)/\1/p' "$T/weftd.log")state.json" >"$T/said/page"
weft store export --audit --state-dir "$STATE" -o "$T/said/export"
[[ -s $T/said/page && -s $T/said/export && $(wc -l <"$T/said/answers") -gt 100 ]]
tap "much was said"
nowhere "none of it has the password" "$T/said" "$T/weftd.log" "$STATE"

if type -P etcd >/dev/null && type -P etcdctl >/dev/null; then
	etcd_alone
	stop weftd
	export ETCDCTL_API=3
	DAEMON_OPTIONS=(--etcd "$ETCD" --lease 2)
	daemon
	ready() { weft status --format json | jq -e '.state == "ready" and .problems == []'; }
	wait_for 20 ready
	tap "with etcd, it leads"
	stop weftd
	etcdctl --endpoints "$ETCD" get --prefix /weft/ >"$T/etcd.keys"
	nowhere "etcd has no password" "$T/etcd.keys"
	# Written by an older weftd, and this one has had all of it.
	head=$(etcdctl --endpoints "$ETCD" get --print-value-only /weft/head)
	etcdctl --endpoints "$ETCD" put /weft/head "${head/format 25/format 24}" >/dev/null
	daemon
	wait_for 20 ready
	tap "after an upgrade it leads again"
	etcdctl --endpoints "$ETCD" get --prefix /weft/ | grep -q "format 25"
	tap "and etcd has what it writes"
fi
finish
