#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A training step on request: hosts for its mesh, light that the job changes, a restart, its end;
# and requests that can never be are refused with their place.
source "$(dirname "$0")/../lib.sh"
emulator ocs0 polatis-scpi 32x32 || exit 1
cat >"$T/fabric.yaml" <<-END
	weft: 1
	fabric: steps
	hosts: [ { name: "h[0-7]", ports: "p[0-3]", rate: 100Gbps, reactivation: 0s } ]
	switches:
	  - { name: ocs0, size: 32x32, driver: polatis-scpi, address: "${ADDR[ocs0]}", options: { gap_ms: 1, settle_ms: 20 }, timeout: 1s }
	fibres: [ { from: "h[0-7].p[0-3]", to: "ocs0.[1-32]" } ]
END
cat >"$T/step.yaml" <<-END
	mesh: { pp: 2, dp: 4 }
	collectives:
	  - { name: forward, collective: send, size: 1MiB, over: pp }
	  - { name: sync, collective: allreduce, size: 8GiB, over: dp }
	  - { name: mix, collective: all-to-all, size: 1GiB, over: [pp, dp] }
	step: [ { repeat: 3, do: [ forward, mix ] }, sync ]
	light: by-collective
END
chmod 711 "$T"
printf 'orchestrator user 4001\n' >"$T/access"
DAEMON_OPTIONS=(--metrics 127.0.0.1:0 --socket-mode 0666 --access "$T/access")
as() { setpriv --reuid "$1" --clear-groups "$(type -P weft)" "${@:2}"; }
daemon || exit 1
expect 0 "hosts without jobs" weft apply -f "$T/fabric.yaml"
expect 0 "a step is asked for" weft job request train --step "$T/step.yaml"
has out "and runs" "running"
weft status --format json >"$T/status"
jq -e '.jobs[0] | .name == "train" and .health == "up" and .collective == "step" and .step.lit == .step.uses[0].light and
	(.step.lights | length) > 1' <"$T/status" >"$T/ok"
tap "status has its lights"
weft job list --format json | jq -e '.jobs[0] | (.nodes | length) == 8 and (.spec | fromjson | .collective | startswith("mesh:"))' >"$T/ok"
tap "the list has its hosts, and what was asked for"
expect 0 "the job asks for the light of another collective" weft job light train sync
if ((EUID == 0)); then
	expect 77 "another user does not" as 4001 job light train mix
	has err "and is told why" "has the role orchestrator; .* needs operator"
fi
expect 0 "whose schedule it has" weft schedule export --job train/sync -o "$T/sync.json"
stop weftd; daemon || exit 1
kept() { weft status --format json | jq -e '.jobs[0] | .step.lit == (.step.uses[] | select(.name == "sync").light) and .health == "up"' >"$T/ok" 2>&1; }
wait_for 20 kept
tap "a restart keeps it, and its light"
port=$(sed -nE 's/.*metrics on 127.0.0.1 port ([0-9]+)$/\1/p' "$T/weftd.log" | tail -1)
curl -s "http://127.0.0.1:$port/metrics" | grep -q '^weft_job_light{job_name="train"} 2$'
tap "a metric tells of it"
expect 0 "the whole step is exported" weft schedule export --job train -o "$T/train/"
expect 0 "and checked" weft schedule verify "$T/train/"
expect 0 "it is released" weft job release train
[[ $(map ocs0 | wc -l) == 0 ]]
tap "and its light with it"
sed '/^mesh/d; s/over: pp/groups: stride 4/; s/over: dp/groups: blocks of 4/; s/over: .pp, dp./groups: blocks of 8/' "$T/step.yaml" >"$T/groups.yaml"
expect 65 "groups of ranks that are not counted" weft job request --step "$T/groups.yaml"
has err "ask for the hosts" "of how many ranks is not known"
expect 0 "of hosts that are named they are a mesh" weft job request groups --nodes "h[0-7]" --step "$T/groups.yaml"
weft status --format json | jq -e '[.jobs[0].step.lights[].shares[].axes] | length > 0 and all(test("^stride-[14]"))' >"$T/ok"
tap "whose axes are those of its groups"
expect 0 "and go" weft job release groups
# wrong NAME SED MESSAGE: such a step is refused at once.
wrong() {
	sed "$2" "$T/step.yaml" >"$T/bad.yaml"
	expect 65 "$1" weft job request --count 8 --step "$T/bad.yaml"
	has err "is refused" "$3"
}
wrong "a mesh of more ranks than hosts" 's/dp: 4/dp: 8/' "step: mesh: of 16 ranks, the job has 8"
wrong "an axis that there is not" 's/over: dp/over: tp/' "step:4:.*collectives: over: there is no axis 'tp'"
wrong "a key of a job" 's/^light.*/topology: K(8)/' "step:7:1: 'topology' is no key of a training step"
wrong "groups beside a mesh" 's/over: dp/groups: blocks of 4/' "step:4:.*sync: groups: only without a mesh"
wrong "no collectives" '/^mesh/,/^step/d' "step:1:8: step: light: only of a job with 'collectives'"
wrong "no mesh" '/^mesh/d' "step:[0-9:]* step: key 'mesh' is missing"
wrong "no YAML" 's/^mesh.*/mesh: {/' "step:[0-9]*:[0-9]*:"
wrong "a list" 's/^/- /' "step:[0-9]*:[0-9]*:"
expect 65 "a collective beside it" weft job request --count 8 -c allreduce --step "$T/step.yaml"
has err "is refused" "not beside a step"
expect 65 "more ranks than the fabric has" weft job request --step <(sed 's/dp: 4/dp: 8/' "$T/step.yaml")
has err "are never to be had" "16"
weft job list --format json | jq -e '.jobs | length == 0' >"$T/ok"
tap "none of them is there"
finish
