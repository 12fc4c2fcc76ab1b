#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Requested jobs whose light between switches has backups, on a ring of four switches and two
# wavelengths: backups of one are kept from another, and what has room has light.
source "$(dirname "$0")/../lib.sh"
cat >"$T/fabric.yaml" <<END
weft: 1
fabric: four
hosts:
  - { name: "h[0-3]", ports: "p[0-1]", rate: 100Gbps, reactivation: 0ms, channels: 0-1 }
switches:
  - { name: "s[0-3]", size: 8x8, driver: sim }
fibres:
  - { from: "h0.p[0-1],h1.p[0-1],h2.p[0-1],h3.p[0-1]", to: "s0.[1-2],s1.[1-2],s2.[1-2],s3.[1-2]" }
  - { from: "s0.[3-4]", to: "s1.[5-6]", channels: 0-1 }
  - { from: "s1.[3-4]", to: "s2.[5-6]", channels: 0-1 }
  - { from: "s2.[3-4]", to: "s3.[5-6]", channels: 0-1 }
  - { from: "s3.[3-4]", to: "s0.[5-6]", channels: 0-1 }
END
daemon || exit 1
expect 0 "the fabric" weft apply -f "$T/fabric.yaml"
request() { # NAME NODES [OPTIONS]
	weft job request "$1" --nodes "$2" --ports 1 -c allreduce --size 1MB "${@:3}"
}
expect 65 "a word that is none" request a h0,h2 --protect twice
has err "is named" 'protect: "twice" is not none, 1\+1 or shared'
expect 65 "a ring" request a h0,h2 --protect shared --ring s0
has err "has no backups" 'protect: only for jobs on switches'
expect 0 "a job across" request a h0,h2 --protect 1+1
expect 0 "another, the other way across" request b h1,h3 --protect 1+1
weft status --format json >"$T/status"
[[ $(jq -c '[.job_status[]? // .jobs[]? | .protected_lightpaths]' "$T/status") == "[2,2]" ]] || ! jq -c keys "$T/status" | sed 's/^/# /'
tap "both have backups for all of their light"
expect 65 "a third finds all fibres kept" request c h0,h2
weft job release a >/dev/null 2>&1
expect 0 "and light once one has ended" request c h0,h2
weft job release c >/dev/null 2>&1

sed 's/, channels: 0-1 }$/, channels: 0-1, protect: shared }/; /reactivation/s/, protect: shared//' "$T/fabric.yaml" >"$T/fibres.yaml"
weft job release b >/dev/null 2>&1
expect 0 "fibres that ask for backups" weft apply -f "$T/fibres.yaml"
expect 0 "a job that does not" request d h0,h2
weft status >"$T/out"
has out "has them" 'job d: 2 of 2 lightpaths between switches have a backup'
sed '/reactivation/s/ }$/, protect: shared }/' "$T/fabric.yaml" >"$T/bad.yaml"
sed 's/\(h3.p\[0-1\].*\) }$/\1, protect: shared }/' "$T/fabric.yaml" >"$T/bad2.yaml"
expect 65 "fibres of hosts with the key" weft check "$T/bad2.yaml"
has err "are refused" "only fibres between switches have 'protect'"
finish
