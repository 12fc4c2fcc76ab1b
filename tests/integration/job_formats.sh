#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Jobs of orchestrators on a fabric in any form that YAML has: their values go
# beside the operator's text, not into it.
source "$(dirname "$0")/../lib.sh"
emulator ocs0 polatis-scpi 8x8 || exit 1

cat >"$T/block.yaml" <<END
weft: 1
fabric: shared
hosts:
  - { name: "h[0-3]", ports: "p[0-1]", rate: 100Gbps, reactivation: 1ms }
switches:
  - { name: ocs0, size: 8x8, driver: polatis-scpi, address: "${ADDR[ocs0]}", options: { gap_ms: 1, settle_ms: 20 } }
fibres:
  - { from: "h[0-3].p[0-1]", to: "ocs0.[1-8]" }
END
cat >"$T/flow.yaml" <<END
{ weft: 1, fabric: shared,
  hosts: [ { name: "h[0-3]", ports: "p[0-1]", rate: 100Gbps, reactivation: 1ms } ],
  switches: [ { name: ocs0, size: 8x8, driver: polatis-scpi, address: "${ADDR[ocs0]}", options: { gap_ms: 1, settle_ms: 20 } } ],
  fibres: [ { from: "h[0-3].p[0-1]", to: "ocs0.[1-8]" } ] }
END
cat >"$T/json.yaml" <<END
{"weft": 1, "fabric": "shared",
 "hosts": [{"name": "h[0-3]", "ports": "p[0-1]", "rate": "100Gbps", "reactivation": "1ms"}],
 "switches": [{"name": "ocs0", "size": "8x8", "driver": "polatis-scpi", "address": "${ADDR[ocs0]}",
   "options": {"gap_ms": 1, "settle_ms": 20}}],
 "fibres": [{"from": "h[0-3].p[0-1]", "to": "ocs0.[1-8]"}]}
END
{ echo "---"; cat "$T/block.yaml"; echo "..."; } >"$T/ended.yaml"
printf '%s' "$(cat "$T/block.yaml")" >"$T/unended.yaml"

nodes() { # NAME: where the job runs, with its state
	weft job list --all --format json "$1" |
		jq -r '.jobs[-1] | .state + " " + (.nodes | join(","))'
}

for form in flow json ended unended; do
	STATE=$T/state.$form
	daemon || exit 1
	file=$T/$form.yaml
	expect 0 "$form: a fabric" weft check "$file"
	expect 0 "$form: is applied" weft apply -f "$file"
	expect 0 "$form: a job" weft job request a --count 2 -c allreduce --size 1000001B
	[[ $(nodes a) == "running h0,h1" ]]
	tap "$form: runs"
	expect 0 "$form: its schedule" weft schedule verify --job a
	expect 0 "$form: a second one" weft job request b --nodes h3,h2 -c all-to-all --size 1MB
	[[ $(nodes b) == "running h3,h2" ]]
	tap "$form: runs on the hosts that were named"
	expect 0 "$form: the fabric again" weft apply -f "$file"
	has out "$form: changes nothing" 'nothing'
	expect 0 "$form: a plan" weft plan -f "$file" -o "$T/plan"
	[[ $(jq -c '[.jobs[].name]' "$T/plan") == '["a","b"]' ]] &&
		jq -j .config "$T/plan" | cmp -s - "$file"
	tap "$form: holds the text as it is, and the jobs beside it"
	expect 0 "$form: is applied from its file" weft apply "$T/plan"
	[[ $(weft status --format json | jq -r .config_sha256) == \
		"$(sha256sum "$file" | cut -d ' ' -f 1)" ]]
	tap "$form: the hash of the configuration is that of the file"
	stop weftd KILL
	daemon || exit 1
	[[ $(nodes a) == "running h0,h1" && $(nodes b) == "running h3,h2" ]]
	tap "$form: after a crash the jobs are what they were"
	expect 0 "$form: one is given back" weft job release a
	[[ $(nodes a) == "ended h0,h1" && $(nodes b) == "running h3,h2" ]]
	tap "$form: and only that one is over"
	expect 0 "$form: the way back" weft rollback
	[[ $(nodes b) == "running h3,h2" ]]
	tap "$form: leaves jobs as they are"
	expect 0 "$form: the last one is given back" weft job release b
	[[ $(weft status --format json | jq '[.jobs[]] | length') == 0 ]]
	tap "$form: no job is left"
	stop weftd
done
finish
