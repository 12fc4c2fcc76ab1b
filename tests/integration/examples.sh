#!/bin/bash
# What weft gives to schedulers, and the examples that use it, against a real
# weftd.
source "$(dirname "$0")/../lib.sh"
emulator ocs0 polatis-scpi 16x16 || exit 1
cat >"$T/fabric.yaml" <<END
weft: 1
fabric: shared
hosts:
  - { name: "h[0-7]", ports: "p[0-1]", rate: 100Gbps, reactivation: 1ms }
switches:
  - { name: ocs0, size: 16x16, driver: polatis-scpi, address: "${ADDR[ocs0]}" }
fibres:
  - { from: "h[0-7].p[0-1]", to: "ocs0.[1-16]" }
END
daemon || exit 1
expect 0 "a fabric" weft apply -f "$T/fabric.yaml"
map() { control ocs0 map | grep -c ,; }

# ---- the topology ----

read_yaml() { /usr/bin/python3 -c 'import json, sys, yaml; json.dump(yaml.safe_load(sys.stdin), sys.stdout)'; }
weft drain h3 >/dev/null
expect 0 "Slurm's topology of what weftd has" weft export slurm
has out "drained hosts are named" '^# h3 is drained in weft'
read_yaml <"$T/out" | jq -e '.[0].tree.switches == [{"switch": "ocs0", "nodes": "h0,h1,h2,h3,h4,h5,h6,h7"}]' >/dev/null
tap "one switch"
weft undrain h3 >/dev/null
expect 0 "topograph's model" weft export topograph -o "$T/model.yaml"
read_yaml <"$T/model.yaml" | jq -e '.blocks[0].nodes | length == 8' >/dev/null
tap "with all hosts"

# ---- Kubernetes ----

mkdir -p "$T/py" "$T/objects"
protoc -I "$TOP/proto" --python_out="$T/py" weft/v1/jobs.proto
tap "protoc makes messages"
object() { # NAME NODES
	echo "{\"metadata\": {\"name\": \"$1\", \"uid\": \"uid-$1\"}, \"spec\": {\"nodes\": $2, \"collective\": \"allgather\", \"size\": 1000000, \"repair\": \"spare\"}}" >"$T/objects/$1.json"
}
phase() { jq -e "$2" "$T/objects/$1.json"; }
PYTHONPATH=$T/py PYTHONDONTWRITEBYTECODE=1 /usr/bin/python3 "$TOP/docs/examples/kubernetes/controller.py" \
	--target "unix:$SOCK" --every 0.1 "$T/objects" >"$T/controller.log" 2>&1 &
PID[controller]=$!
weft job request other --count 2 -c allgather --size 1MB >"$T/out" 2>&1
object train 4
wait_for 20 phase train '.status.phase == "Running" and (.status.nodes | length) == 4'
tap "an object gets light"
object more 4
wait_for 20 phase more '.status.phase == "Queued" and (.status.message | test("4 hosts are wanted"))'
tap "one without room waits, and says why"
stop weftd KILL
daemon || exit 1
rm "$T/objects/train.json"
wait_for 30 phase more '.status.phase == "Running"'
tap "deleting one starts the other, over a crash of weftd"
object wrong 99
wait_for 20 phase wrong '.status.phase == "Failed" and (.status.message | test("there are 8"))'
tap "what cannot be is told"
rm "$T/objects/more.json"
wait_for 30 bash -c "weft job list --format json | jq -e '[.jobs[].name] == [\"other\"]'"
tap "jobs of others are left alone"
stop controller
finish
