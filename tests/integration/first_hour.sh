#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A new user's first hour: every command of README.md and docs/operating.md, as it is
# printed there and in that order, on a machine that has nothing yet, with emulators
# behind the fabric. The story below names each command and what the text says of
# it; one that is on a page and not in the story, or the other way round, fails.
# Files of the system, /run/weft and /var/lib/weft, lie in the scratch folder.
source "$(dirname "$0")/../lib.sh"
mkdir "$T/hour" "$T/bin" "$T/light"
ln -s "$TOP/configs" "$T/hour/configs"
cat >"$T/bin/weftd" <<END
#!/bin/bash
exec "$BIN/weftd" --state-dir "\${STATE_DIR:-$STATE}" "\$@"
END
chmod +x "$T/bin/weftd"
PATH=$T/bin:$PATH
cd "$T/hour" || exit 1
mapfile -t printed < <(python3 "$TOP/tests/golden/docs.py" all "$TOP/README.md" "$TOP/docs/operating.md")
at=0

# next COMMAND: the next one on the pages is this one. Where the pages say to look at
# the status once more than the story does, that is done.
next() {
	while [[ ${printed[at]:-} == 'weft status' && $1 != 'weft status' ]]; do
		expect 0 "${printed[at++]}" weft status
	done
	[[ ${printed[at]:-} == "$1" ]] || echo "# on the pages stands: ${printed[at]:-nothing}"
	[[ ${printed[at++]:-} == "$1" ]]
	tap "$1"
}
as_here() { # COMMAND [SED...]: it with the paths of this machine
	sed -e "s|/run/weft/weftd.sock|$SOCK|; s| &\$||" "${@:2}" <<<"$1"
}
# step CODE COMMAND [PATTERN [SED...]]: it ends with this code, and prints what matches.
step() {
	local code=$1 command=$2 pattern=${3:-}
	next "$command"
	expect "$code" "  ends with $code" bash -c "$(as_here "$command" "${@:4}")"
	cat "$T/err" >>"$T/out"
	[[ -z $pattern ]] || has out "  says what the page says" "$pattern"
}
# runs NAME COMMAND WAIT...: it goes on in the background, and does so until WAIT succeeds.
runs() {
	next "$2"
	rm -f "$T/$1.log"
	bash -c "exec $(as_here "$2")" >"$T/$1.log" 2>&1 </dev/null &
	PID[$1]=$!
	wait_for 20 "${@:3}"
	tap "  runs"
}
answers() { weft status --format json >"$T/now" && jq -e '.state != "reading"' "$T/now"; }

# ---- README ----------------------------------------------------------------

for target in demo check deb install uninstall deps help; do
	next "make $target"
	# shellcheck disable=SC2086
	make -n -C "$TOP" $target >"$T/out" 2>&1
	tap "  is there"
done
runs emulate 'weft emulate configs/fabrics/demo.yaml &' grep -q ready "$T/emulate.log"
runs weftd 'weftd --socket /run/weft/weftd.sock &' answers
step 0 'weft check configs/fabrics/demo.yaml' 'valid +yes'
step 2 'weft plan -f configs/fabrics/demo.yaml' '^\+ ocs0'
step 0 'weft apply -f configs/fabrics/demo.yaml' 'verdict +committed'
step 0 'weft status' 'PROOF'
step 0 'weft schedule export --job reduce --to json -o reduce.json'
step 0 'weft schedule run reduce.json --size 1MiB' 'correct +yes'
step 0 'weft plan --svg FILE.svg' '' -e 's/FILE/plan/'
step 0 'weft topology draw' '' -e "s/\$/ 'K(4)' -o topology.svg/"
step 0 'weft schedule draw' '' -e 's/$/ reduce.json -o schedule.svg/'
step 0 'weft ring plan --svg' '' -e 's/$/ ring.svg -n 16 -w 4 --size 1MB/'
step 0 'weft rwa solve --svg' '' -e "s|\$| light.svg $TOP/tests/data/rwa/NSF.net --demands all|"
drawn=0
for picture in plan topology schedule ring light; do
	grep -q '</svg>' $picture.svg || { echo "# $picture.svg is not drawn" && drawn=1; }
done
tap "  draw what the page says" $drawn
step 0 'weft ring plan -n 1024 -w 64 --size 64kB' '^time +632 us'
step 0 'weft --help' 'schedule'
python3 "$TOP/tests/golden/docs.py" example "$TOP/README.md" 'weft: 1' >lab.yaml
step 0 'weft check lab.yaml' 'valid +yes'
step 2 'weft plan --offline -f lab.yaml' '^sum|  sum '
stop weftd
stop emulate
rm -rf "$STATE"

# ---- a new fabric ----------------------------------------------------------

cat >pod.yaml <<END
weft: 1
fabric: pod
hosts:
  - { name: "h[0-3]", ports: "p[0-1]", rate: 100Gbps, reactivation: 10ms }
  - { name: "n[0-7]" }
switches:
  - { name: ocs0, size: 12x12, driver: polatis-scpi, address: "127.0.0.1:5025", options: { power: both, gap_ms: 0, settle_ms: 20 }, timeout: 500ms }
panels:
  - { name: rome0, size: 4x4, driver: rome-cli, address: "127.0.0.1:7023", options: { gap_ms: 0, poll_ms: 20, move_ms: 2000 }, timeout: 1s }
rings:
  - { name: ring0, nodes: "n[0-7]", channels: 4, channel-rate: 40Gbps, retune: 25us, driver: mrr-reg, address: "127.0.0.1:7700", timeout: 500ms }
fibres:
  - { from: "h[0-3].p[0-1]", to: "ocs0.[1-8]" }
jobs:
  - { name: reduce, nodes: "h[0-3]", collective: allreduce, size: 1MiB, topology: "UniRing(2,4)", alpha: 10us }
  - { name: gather, ring: ring0, nodes: all, collective: allgather, size: 1MiB }
END
hardware() { # what the emulators below stand for, with its light
	emulator ocs0 polatis-scpi 12x12 --plant "$T/light" && emulator rome0 rome-cli 4x4 &&
		emulator ring0 mrr-reg 8x4
}
ADDR=([ocs0]=127.0.0.1:5025 [rome0]=127.0.0.1:7023 [ring0]=127.0.0.1:7700)
# Every laser but that of h3.p1, whose fibre is broken.
for i in {1..7}; do echo "laser ocs0.in$i -3.0"; done >"$T/light/wiring"

step 69 'weft status' 'no weftd listens at'
runs emulate 'weft emulate pod.yaml' grep -q ready "$T/emulate.log"
kill "$(awk '$1 == "ocs0" { print $5 }' "$T/emulate.log")"
wait_for 10 grep -q '^weft: ocs0: .*; the others go on' "$T/emulate.log" && kill -0 "${PID[emulate]}" "$(awk '$1 == "rome0" { print $5 }' "$T/emulate.log")"
tap "  one that is ended leaves the others"
stop emulate
hardware || exit 1
step 0 'weft check pod.yaml' 'valid +yes'
runs weftd 'weftd --fabric pod.yaml' answers
[[ $(sets ocs0) == 0 ]]
tap "  sends nothing"
step 0 'weft device list' 'ocs0 .* yes '
step 0 'weft device show ocs0' 'power loss +dark'
step 2 'weft bringup pod.yaml' 'missing'
fibres_of pod.found.yaml >fibres
! grep -q 'h3.p1.tx' fibres && grep -q 'h3.p1.rx' fibres
tap "  writes pod.found.yaml"
echo "laser ocs0.in8 -3.0" >>"$T/light/wiring"
expect 0 "  and nothing once the fibre is repaired" weft bringup pod.yaml --restart
step 2 'weft plan -f pod.yaml' '^\+ ocs0'
expect 2 "  with --commands" weft plan -f pod.yaml --commands
has out "  every command" 'conn'
expect 2 "  with --lightpaths" weft plan -f pod.yaml --lightpaths
has out "  the power" 'RECEIVED'
step 0 'weft apply -f pod.yaml --confirm-within 10min' 'verdict +committed'
step 0 'weft confirm' 'confirmed +1'

# ---- every change ----------------------------------------------------------

sed -i 's/UniRing(2,4)/BiRing(2,4)/' pod.yaml
step 2 'weft plan -f pod.yaml -o pod.plan' '^- ocs0'
step 0 'weft apply pod.plan -m "ticket 4711"' 'verdict +committed'
expect 75 "  refused if anything has moved since" weft apply pod.plan
step 0 'weft verify' 'same +yes'
step 0 'weft history' 'root.*ticket 4711|ticket 4711'
step 0 'weft audit --change 12' 'conn' -e 's/12/2/'
step 0 'weft status' 'reduce +up'

# ---- something is not as it should be ----------------------------------------

control ocs0 "unset $(control ocs0 map | head -n 1)" >"$T/answer"
wait_for 20 eval 'weft verify >"$T/verify"; [[ $? == 2 ]]'
step 0 'weft status' 'ocs0 is not as intended'
step 2 'weft diff' 'missing +in'
step 0 'weft explain circuits-dark' 'weft apply'
step 2 'weft plan --svg FILE.svg' '' -e 's/FILE/missing/'
step 0 'weft apply' 'verdict +committed'
expect 0 "  makes it again" weft verify
control ocs0 "set 10,10" >"$T/answer"
wait_for 20 eval 'weft verify >"$T/verify"; grep -q unexpected "$T/verify"'
step 0 'weft apply --mode update' 'nothing-to-do'
step 0 'weft external-changes' 'ocs0 +appeared: in 11 -> out 11'
control ocs0 "unset 10,10" >"$T/answer"
step 0 'weft rollback' 'nothing-to-do'
step 0 'weft status' 'state +ready'
step 0 'weft apply' 'nothing-to-do'
step 0 'weft apply' 'nothing-to-do'
step 0 'weft apply' 'nothing-to-do'
stop ocs0
emulator ocs0 polatis-scpi 12x12 --plant "$T/light" || exit 1
wait_for 20 eval 'weft verify >"$T/verify"; [[ $? == 2 ]]'
step 2 'weft diff' 'missing'
expect 0 "  then apply" weft apply
step 0 'weft device recover NAME --homing' 'homing' -e 's/NAME/rome0/'
step 0 'weft device recover NAME --relock' 'locked' -e 's/NAME/ring0/'

# ---- work on the fabric ------------------------------------------------------

step 0 'weft drain h2' 'h2 +drained'
step 1 'weft drain h2 --evacuate' 'not all of its light can move away'
step 0 'weft undrain h2' 'weft apply would make 0 circuits'
[[ $(weft status --format json | jq '.holds | length') == 0 ]]
tap "  it is available again"
step 75 'weft device port ocs0 in3 disable --reason TEXT' '--force'
expect 0 "  with --force" weft device port ocs0 in3 disable --reason TEXT --force
expect 0 "  and enabled" weft device port ocs0 in3 enable
step 0 'weft freeze -m "swapping trays"' 'swapping trays'
expect 75 "  refuses every change" weft rollback
step 0 'weft unfreeze'
step 0 'weft freeze --now' 'frozen'
expect 0 "  until it is lifted" weft unfreeze
expect 0 "the fabric is whole" weft apply
step 1 'weft drain ocs0 --evacuate' 'not all of its light can move away'
step 0 'weft undrain ocs0' 'weft apply would make 0 circuits'
step 0 'weft plan'
step 0 'weft apply' 'nothing-to-do'
step 0 'weft verify' 'same +yes'
[[ $(weft complete device show "") == $'ocs0\nrome0\nring0' && $(weft complete drain h2.) == $'h2.p0\nh2.p1' &&
	$(weft complete schedule export --job r) == reduce ]]
tap "a shell completes the names of its parts"
stop weftd
runs weftd 'weftd --standby' answers
WEFT_SOCKET=$T/second.sock "$T/bin/weftd" --standby >"$T/second.log" 2>&1 </dev/null &
PID[second]=$!
wait_for 20 grep -q 'standing by' "$T/second.log"
tap "  on both: one leads, the other stands by"
stop second
step 0 'weft diff' 'same +yes'
stop weftd
metrics() { curl -sf -o "$T/metrics" http://127.0.0.1:9470/metrics; }
runs weftd 'weftd --metrics 127.0.0.1:9470' metrics
grep -q '^weft_problems' "$T/metrics"
tap "  counts the problems of the status"
next 'make install'
runs watch 'weft watch --format json' test -s "$T/watch.log"
weft freeze >"$T/out" && weft unfreeze >"$T/out"
wait_for 20 grep -q '"kind":"unfrozen"' "$T/watch.log"
tap "  streams events"
jq -e .kind <"$T/watch.log" >/dev/null
tap "  an object a line"
stop watch
stop weftd
runs weftd 'weftd --log-format json' answers
head -n 1 "$T/weftd.log" | jq -e . >/dev/null
tap "  its lines are JSON"
((at == ${#printed[@]}))
tap "nothing else is on the pages"
finish
