#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What circuits lose, where the device measures it: shown one by one, compared
# with the fabric's figure and with what was when all was well.
source "$(dirname "$0")/../lib.sh"
emulator ggn glimmerglass-tl1 8x8 || exit 1
emulator pol polatis-scpi 8x8 || exit 1
fabric_of() { # FILE LOSS
	cat >"$1" <<-END
	weft: 1
	fabric: lossy
	hosts:
	  - { name: "a[0-3]", ports: "p[0-1]", rate: 100Gbps, reactivation: 10ms }
	  - { name: "b[0-3]", ports: "p[0-1]", rate: 100Gbps, reactivation: 10ms }
	switches:
	  - { name: ggn, size: 8x8, driver: glimmerglass-tl1, address: "${ADDR[ggn]}",
	      loss: $2, options: { gap_ms: 0 } }
	  - { name: pol, size: 8x8, driver: polatis-scpi, address: "${ADDR[pol]}",
	      options: { gap_ms: 0 } }
	fibres:
	  - { from: "a[0-3].p[0-1]", to: "ggn.[1-8]" }
	  - { from: "b[0-3].p[0-1]", to: "pol.[1-8]" }
	jobs:
	  - { name: ja, nodes: "a[0-3]", collective: allreduce, size: 1MiB, topology: "UniRing(1,4)" }
	  - { name: jb, nodes: "b[0-3]", collective: allreduce, size: 1MiB, topology: "UniRing(1,4)" }
	END
}
fabric_of "$T/wide.yaml" 9dB
fabric_of "$T/tight.yaml" 1.6dB
DAEMON_OPTIONS=(--poll 0)
daemon || exit 1
expect 0 "a switch that measures loss is applied" weft apply -f "$T/wide.yaml"
expect 0 "its circuits are shown" weft device show ggn
has out "with what they lose, beside the fabric's figure" \
	'tuned +[01](\.[0-9]+)? dB +9 dB +[01](\.[0-9]+)? dB +-'
expect 0 "and as JSON" weft device show ggn --format json
python3 - "$T/out" <<'END'
import json, sys
d = json.load(open(sys.argv[1]))
assert len(d["read"]) == 4 and d["lossy"] == 0, d
for x in d["read"]:
    x = x["signal"]
    assert 500 <= x["loss_mdb"] < 1500 and x["limit_mdb"] == 9000, x
    assert x["baseline_loss_mdb"] == x["loss_mdb"], x
    assert x["factory_loss_mdb"] is None, x
    assert not x["over_limit"] and not x["degraded"], x
END
tap "with the numbers in milli-dB"
jq -e '[.read[] | .signal.health == "lit" and .signal.proof == "measured"] | all' "$T/out" >/dev/null
tap "and with their health, and how far it is proven"
expect 0 "one that does not measure it says so" weft device show pol
has out "with a dash" 'tuned +- +2 dB +- +-'
expect 65 "a device that is not there" weft device show no-such-device
has err "is named" 'no-such-device'

# A circuit that gets worse, but not as bad as the fabric says.
port=$(control ggn map | head -n 1)
at=$(date -u +%FT%T.%N)
control ggn "fault dim=i${port%,*}" >"$T/out"
weft verify >"$T/out" 2>&1
expect 0 "a circuit that loses 3 dB more" weft device show ggn
has out "is marked" "^ +$((${port%,*} + 1)) .* lossy .*DEGRADED"
expect 0 "since when, as JSON" weft device show ggn --format json
jq -e --arg at "$at" '[.read[] | (.signal.health == "lossy") == (.since_at >= $at)] | all and
	length == 4' "$T/out" >/dev/null
tap "is that of the fault, of others before"
expect 0 "status" weft status
has out "says what it was" \
	"ggn: in $((${port%,*} + 1)) -> out .* loses [34]\.[0-9]{2} dB, was [01]\.[0-9]{2} dB"
stop weftd
daemon || exit 1
weft verify >"$T/out" 2>&1
expect 0 "weftd was away" weft device show ggn
has out "and knows what it was" 'DEGRADED'
control ggn clear >"$T/out"
weft verify >"$T/out" 2>&1
expect 0 "repaired" weft status
grep -q 'loses [0-9]' "$T/out"
tap "nothing is said any more" $((! $?))

# A limit that is not kept.
expect 0 "the fabric says less" weft apply -f "$T/tight.yaml"
control ggn "fault dim=i${port%,*}" >"$T/out"
weft verify >"$T/out" 2>&1
expect 0 "a circuit over the fabric's figure" weft status --format json
python3 - "$T/out" <<'END'
import json, sys
s = json.load(open(sys.argv[1]))
d = {x["name"]: x for x in s["devices"]}
assert d["ggn"]["lossy"] == 1 and d["pol"]["lossy"] == 0
told = [p["text"] for p in s["problems"] if p["kind"] == "circuits-lossy"]
assert len(told) == 1 and "the fabric says 1.60 dB" in told[0], s["problems"]
END
tap "is counted and explained"

# Where the fabric says so, such a circuit is no part of a change (checklist 7).
sed '/^  - { name: j/d' "$T/tight.yaml" >"$T/dark.yaml"
sed -i 's/^jobs:/jobs: []/' "$T/dark.yaml"
sed 's/^jobs:/changes: { verify: measured }\njobs:/' "$T/tight.yaml" >"$T/measured.yaml"
control ggn clear >"$T/out"
expect 0 "no jobs" weft apply -f "$T/dark.yaml"
control ggn "fault dim=i${port%,*}" >"$T/out"
expect 3 "new light that loses too much is taken back" weft apply -f "$T/measured.yaml"
has err "and the circuit is named" \
	"ggn: in $((${port%,*} + 1)) -> out [0-9]+ loses [34]\.[0-9]{2} dB, the fabric says 1.60 dB"
control ggn clear >"$T/out"
expect 0 "repaired" weft apply -f "$T/measured.yaml"
expect 0 "what measures it is proven so far" weft status --format json
python3 - "$T/out" <<'END'
import json, sys
d = {x["name"]: x for x in json.load(open(sys.argv[1]))["devices"]}
assert d["ggn"]["proof"] == "measured" and d["pol"]["proof"] == "settled", d
END
tap "what does not is not"
finish
