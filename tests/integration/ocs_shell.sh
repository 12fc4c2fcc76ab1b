#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Scripts that manage a SONiC optical switch, on weftd: their commands as the forced command of an
# SSH login, and no port of others is taken.
source "$(dirname "$0")/../lib.sh"
emulator ocs0 polatis-scpi 16x16 || exit 1
bed "$T/fabric.yaml"
holds() { # IN,OUT...: just these, counted from 0
	[[ $(map ocs0) == "$(printf '%s\n' "$@" | sort)" ]]
}
# login GROUP COMMAND: as sshd runs it.
login() { SSH_ORIGINAL_COMMAND=$2 weft ocs-shell --switch ocs0 --group "$1"; }
daemon || exit 1
expect 0 "the fabric" weft apply -f "$T/fabric.yaml"

expect 0 "an empty switch" login bed "show ocs cross-connect config"
[[ $(wc -l <"$T/out") == 2 ]]
tap "  has two lines of heading"
expect 0 "add" login bed "sudo config ocs cross-connect add 9A-1B update"
has out "  says so" '^Add cross-connect succeeded$'
expect 0 "the other way" login bed "config ocs  cross-connect add 9B-1A"
holds 0,8 8,0
tap "  are there"
expect 0 "again" login bed "config ocs cross-connect add 9A-1B safe"
expect 0 "its circuits" login bed "show ocs cross-connect config"
[[ $(tail -n +3 "$T/out") == $'1A-9B  1A  9B\n9A-1B  9A  1B' ]]
tap "  are in the table"
expect 0 "their states" login bed "show ocs cross-connect status"
[[ $(grep -c 'tuned  tuned$' "$T/out") == 2 ]]
tap "  are tuned"
expect 0 "save" login bed "sudo config save -y"

expect 0 "another's group" weft circuit add dut.p1 tg1.p1 --name other
expect 1 "its port is not taken" login bed "config ocs cross-connect add 9A-2B update"
has err "  and its owner is told" 'dut.p1 is held by .*job other'
expect 1 "nor by another login" login second "config ocs cross-connect add 1A-10B update"
has err "  whose circuits are the first's" 'dut.p0 is held by .*job bed-1A-ocs0'
expect 1 "it is not deleted" login bed "config ocs cross-connect delete 2A-10B"
has err "  and its owner is told" '2A-10B: dut.p1 is held by .*job other'
expect 1 "nor another login's" login second "config ocs cross-connect delete 9A-1B"
expect 1 "what is not there" login bed "config ocs cross-connect delete 3A-12B"
has err "  is no cross-connect" 'no such cross-connect 3A-12B'
expect 1 "a port that is not there" login bed "config ocs cross-connect add 17A-1B"
has err "  is none" "ocs0.in17"
holds 0,8 8,0 1,9 9,1
tap "all is as it was"

expect 1 "a port of its own, safely" login bed "config ocs cross-connect add 9A-3B safe"
expect 0 "a port of its own" login bed "config ocs cross-connect add 9A-3B update"
holds 0,8 8,2 1,9 9,1
tap "  moves"
expect 0 "its output for another input" login bed "config ocs cross-connect add 11A-3B"
expect 1 "an output of another" login bed "config ocs cross-connect add 11A-2B update"
holds 0,8 10,2 1,9 9,1
tap "  is not taken, and its own stays"
control ocs0 "fault refuse-port=i11" >/dev/null
login bed "config ocs cross-connect add 12A-3B update" >"$T/out" 2>"$T/err"
[[ $? != 0 && ! -s $T/out ]]
tap "what the switch refuses"
holds 0,8 10,2 1,9 9,1
tap "  leaves what was to make way for it"
control ocs0 clear >/dev/null
expect 0 "its circuits" login bed "show ocs cross-connect config"
has out "  with that" '^11A-3B'

# A script that looks meanwhile takes neither for stale.
control ocs0 "fault slow=200" >/dev/null
is_now() { # STATE
	weft job list --format json bed-13A-ocs0 | jq -e --arg s "$1" '.jobs[-1].state == $s'
}
login bed "config ocs cross-connect add 13A-4B" >"$T/added" 2>&1 &
PID[add]=$!
wait_for 10 is_now starting
expect 0 "while one is being made" login bed "show ocs cross-connect config"
has out "  it is configured" '^13A-4B'
wait "${PID[add]}"
unset 'PID[add]'
login bed "config ocs cross-connect delete 13A-4B" >"$T/deleted" 2>&1 &
PID[del]=$!
wait_for 10 is_now ending
expect 0 "while it is being deleted" login bed "show ocs cross-connect config"
! grep '^13A-4B' "$T/out"
tap "  it is not configured any more"
expect 0 "and the other table" login bed "show ocs cross-connect status"
has out "  has it" '^13A-4B'
wait "${PID[del]}"
unset 'PID[del]'
control ocs0 clear >/dev/null

for bad in "" "sh" "show version; reboot" "show ocs cross-connect config; id" "config ocs cross-connect add 9A-3B;id" \
	"config ocs cross-connect add \$(id) update" "config ocs cross-connect add 1A-2B overwrite" "config ocs cross-connect add 1A-2A" \
	"config ocs cross-connect add 1A-2B update now" "config ocs cross-connect delete" "sudo" "config reload -y"; do
	login bed "$bad" >"$T/out" 2>"$T/err"
	[[ $? == 6[45] && ! -s $T/out ]]
	tap "refused: '$bad'"
done
expect 64 "a login without a command" weft ocs-shell --switch ocs0 --group bed
expect 0 "words after the options" weft ocs-shell --switch ocs0 --group bed -- config save -y
for id in 11A-3B 1A-9B; do
	expect 0 "delete" login bed "config ocs cross-connect delete $id"
	has out "  says so" '^Delete cross-connect succeeded$'
done
holds 1,9 9,1
tap "they are gone"
stop weftd KILL
expect 69 "without weftd" login bed "show ocs cross-connect config"
daemon || exit 1
wait_for 20 login bed "show ocs cross-connect status"
expect 0 "an end by the switch's port" weft circuit find ocs0.5
expect 0 "a circuit by them" weft circuit add ocs0.5 ocs0.16 --name ends
holds 1,9 9,1 4,15 15,4
tap "  is there"
expect 0 "ends" weft circuit remove ends
expect 0 "ends" weft circuit remove other

# ---- the module, with as much of Ansible as it uses ----

mkdir -p "$T/py/ansible/module_utils"
cat >"$T/py/ansible/module_utils/basic.py" <<'END'
import json, os, sys
class AnsibleModule:
    def __init__(self, argument_spec, supports_check_mode):
        given = json.loads(os.environ["ARGS"])
        self.check_mode = given.pop("check", False)
        assert supports_check_mode and not set(given) - set(argument_spec)
        self.params = {k: given.get(k, o.get("default")) for k, o in argument_spec.items()}
    def exit_json(self, **result):
        print(json.dumps(result, separators=(",", ":"), sort_keys=True))
        sys.exit(0)
    def fail_json(self, **result):
        print(json.dumps(result, separators=(",", ":"), sort_keys=True))
        sys.exit(1)
END
module() { # ARGS
	ARGS=$1 WEFT_SWITCH=ocs0 PYTHONPATH=$T/py PYTHONDONTWRITEBYTECODE=1 \
		/usr/bin/python3 "$TOP/docs/examples/ansible/ocs_cross_connect.py"
}
two='"cross_connects":{"1":9,"2":"10"}'
expect 0 "what it would do" module "{$two,\"group\":\"bed\",\"check\":true}"
has out "  is told" '"added":\["1A-9B","9A-1B","2A-10B","10A-2B"\],"changed":true'
holds ""
tap "  and not done"
expect 0 "two pairs" module "{$two,\"group\":\"bed\",\"verify\":true,\"lease\":\"1h\"}"
holds 0,8 8,0 1,9 9,1
tap "  are there"
expect 0 "again" module "{$two,\"group\":\"bed\"}"
has out "  is no change" '"added":\[\],"changed":false,"cleared_stale":\[\],'
expect 1 "another group" module '{"cross_connects":{"3":9},"group":"late"}'
has out "  hears who has the port" 'is held by .*job bed-ocs0'
expect 0 "one pair less" module '{"cross_connects":{"2":10},"group":"bed"}'
has out "  is told" '"removed":\["1A-9B","9A-1B"\]'
expect 0 "none" module '{"cross_connects":{},"group":"bed"}'
holds ""
tap "  are left"
finish
