#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The programs in docs/examples, but for those for Slurm (slurm.sh), against a real
# weftd that is killed meanwhile.
source "$(dirname "$0")/../lib.sh"
mkdir "$T/certs" "$T/secrets" "$T/py" && "$TOP/tests/certs" "$T/certs" 2>"$T/openssl" || cat "$T/openssl"
emulator ocs0 polatis-scpi 16x16 || exit 1
cat >"$T/fabric.yaml" <<END
weft: 1
fabric: shared
hosts:
  - { name: "h[0-7]", ports: "p[0-1]", rate: 100Gbps, reactivation: 1ms }
switches:
  - { name: ocs0, size: 16x16, driver: polatis-scpi, address: "${ADDR[ocs0]}", options: { gap_ms: 1, settle_ms: 20 } }
fibres:
  - { from: "h[0-7].p[0-1]", to: "ocs0.[1-16]" }
END
printf '%s\n' 'operator user *' 'orchestrator certificate CN=jobs,O=Site' >"$T/access"
# The same port after each restart, as a service has.
port=$(/usr/bin/python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
DAEMON_OPTIONS=(--listen "127.0.0.1:$port" --tls-cert "$T/certs/server.pem" --tls-key "$T/certs/server.key"
	--tls-ca "$T/certs/ca.pem" --access "$T/access")
daemon || exit 1
expect 0 "a fabric" weft apply -f "$T/fabric.yaml"
map() { control ocs0 map | grep -c ,; }
protoc -I "$TOP/proto" --python_out="$T/py" weft/v1/{weft,jobs,schedule}.proto
tap "protoc makes messages"
export PYTHONPATH=$T/py:$TOP/docs/examples/client PYTHONDONTWRITEBYTECODE=1

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

# ---- an orchestrator in Python ----

# orchestrate NAME: 4 hosts, until $T/end-NAME is there; all it says to $T/NAME.log.
orchestrate() {
	/usr/bin/python3 "$TOP/docs/examples/client/orchestrator.py" --target "unix:$SOCK" --count 4 \
		--collective allreduce --size 1000000 --parts "$T/parts-$1" "$1" -- \
		bash -c "echo hosts \$WEFT_HOSTS; until [ -e $T/end-$1 ]; do sleep 0.05; done; exit 3" \
		>"$T/$1.log" 2>&1 &
	PID[$1]=$!
}
stop weftd KILL
orchestrate first
daemon || exit 1
wait_for 60 grep -q '^hosts h0,h1,h2,h3' "$T/first.log"
tap "an orchestrator that begins before weftd gets light"
[[ $(weft job list --format json | jq '.jobs | length') == 1 ]]
tap "for one job"
cat >"$T/parts.py" <<'END'
# The parts of all ranks together are the whole: each transfer is in its sender's
# and in its receiver's.
import collections
import math
import sys
from weft_client import Client
from weft.v1 import schedule_pb2

def rows(s):
    columns = [getattr(s.transfers, f.name) for f in s.transfers.DESCRIPTOR.fields]
    n = len(s.transfers.arc)
    return zip(*[list(c) or [0] * n for c in columns])

whole = Client(sys.argv[1]).schedule(sys.argv[2])
assert not whole.HasField("part") and whole.nodes == 4, whole
seen = collections.Counter()
for rank in range(whole.nodes):
    with open(f"{sys.argv[3]}/{rank}.pb", "rb") as f:
        part = schedule_pb2.Schedule.FromString(f.read())
    assert part.part.rank == rank
    for row in rows(part):
        arc = row[1]
        assert rank in (part.arcs.src[arc], part.arcs.dst[arc])
        seen[(row[0], part.arcs.src[arc], part.arcs.dst[arc], *row[2:])] += 1
# The whole is compact: its transfers stand for their images under a group.
images = math.prod(whole.generators.order)
want = [(r[0], whole.arcs.src[r[1]], whole.arcs.dst[r[1]], *r[2:]) for r in rows(whole)]
assert want and set(want) <= set(seen) and len(seen) == images * len(want)
assert set(seen.values()) == {2}, seen
END
expect 0 "it has each rank's part" /usr/bin/python3 "$T/parts.py" "unix:$SOCK" first "$T/parts-first"
weft drain h7 >/dev/null
wait_for 20 grep -q '^event .*h7' "$T/first.log"
tap "it follows events"
stop weftd KILL
touch "$T/end-first"
daemon || exit 1
wait "${PID[first]}"
[[ $? == 3 ]] && unset "PID[first]"
tap "it ends as its command does"
weft undrain h7 >/dev/null
[[ $(weft job list --format json | jq '.jobs | length') == 0 && $(map) == 0 ]] && grep -q '^job first ended' "$T/first.log"
tap "and gives its light back, over two crashes of weftd"
((TAP_BAD == 0)) || { weft job list; map; tail -3 "$T/first.log"; } 2>&1 | sed 's/^/# /'
sed -n 's/^event \([0-9]*\) .*/\1/p' "$T/first.log" >"$T/out"
sort -cun "$T/out" && (($(wc -l <"$T/out") >= 2))
tap "events are in order, none of them twice"
orchestrate second
wait_for 60 grep -q '^hosts' "$T/second.log"
kill -TERM "${PID[second]}"
touch "$T/end-second"
wait "${PID[second]}"
[[ $? == 143 ]] && unset "PID[second]" && [[ $(map) == 0 ]]
tap "one that is ended gives its light back too"

# ---- Kubernetes ----

echo weft >"$T/secrets/namespace"
cp "$T/certs/ca.pem" "$T/secrets/ca.crt"
mkdir "$T/tokens"
openssl rand -hex 20 | tee "$T/secrets/token" >"$T/tokens/controller"
openssl rand -hex 20 >"$T/tokens/admin"
/usr/bin/python3 "$TOP/tests/integration/kube_api.py" "$TOP/docs/examples/kubernetes/deploy.yaml" "$T/certs/server.pem" \
	"$T/certs/server.key" "$T/tokens" "$T/api" >"$T/api.log" 2>&1 &
PID[api]=$!
wait_for 20 test -s "$T/api" || { cat "$T/api.log"; exit 1; }
API=$(<"$T/api")
TOKEN=$(<"$T/tokens/admin")
controller() {
	/usr/bin/python3 "$TOP/docs/examples/kubernetes/controller.py" --server "$API" --secrets "$T/secrets" \
		--target "localhost:$port" --tls "$T/certs/ca.pem" "$T/certs/jobs.pem" "$T/certs/jobs.key" \
		--every 0.2 >>"$T/controller.log" 2>&1 &
	PID[controller]=$!
}
# api METHOD PATH [OBJECT]: as an administrator.
api() {
	curl -sS --cacert "$T/certs/ca.pem" -H "Authorization: Bearer $TOKEN" -X "$1" "$API$2" \
		${3:+-H "Content-Type: application/json" -d "$3"}
}
# await SECONDS COMMAND...: until the command succeeds, which is tried after each change of an object.
SEEN=0
await() {
	local end=$((SECONDS + $1 * 4))
	shift
	until "$@" >/dev/null 2>&1; do
		((SECONDS < end)) || return 1
		SEEN=$(api GET "/control/wait/$SEEN")
	done
}
LIGHTS=/apis/weft.example.com/v1/namespaces/weft/lights
light() { # NAME NODES [MORE]
	api POST $LIGHTS "{\"apiVersion\": \"weft.example.com/v1\", \"kind\": \"Light\", \"metadata\": {\"name\": \"$1\"},
		\"spec\": {\"nodes\": $2, \"collective\": \"allgather\", \"size\": 1000000, \"repair\": \"spare\"${3:-}}}" >"$T/out"
}
phase() { # NAME FACTS
	api GET "$LIGHTS/$1" | jq -e "$2"
}
none() { api GET $LIGHTS | jq -e '.items == []'; }
gone() { phase "$1" '.code == 404'; }
count() { api GET /control/counts | jq ".$1"; }

weft job request other --count 2 -c allgather --size 1MB >"$T/out" 2>&1
light train 4
light wrong 99
light wrong-too 98
controller
await 30 phase train '.status.phase == "Running" and (.status.nodes | length) == 4'
tap "an object gets light"
light more 4
await 20 phase more '.status.phase == "Queued" and (.status.message | test("4 hosts are wanted"))'
tap "one without room waits, and says why"
await 20 phase wrong-too '.status.phase == "Failed" and (.status.message | test("there are 8"))'
tap "what cannot be is told, also of the second page"

lists=$(count list)
api POST /control/drop >"$T/out"
api DELETE $LIGHTS/train >"$T/out"
await 30 gone train
tap "a watch that broke goes on: an object that is deleted goes when its light has"
await 30 phase more '.status.phase == "Running"'
tap "the next one gets the hosts"
api POST /control/bookmark >"$T/out"
api POST /control/compact >"$T/out"
api POST /control/drop >"$T/out"
light late 4
await 30 phase late '.status.phase == "Queued"'
tap "a bookmark is where it goes on"
[[ $(count list) == "$lists" && $(count gone) == 0 ]]
tap "without another list"

for how in '' as-event; do
	[[ -z $how ]] || api POST /control/as-event >"$T/out"
	missed=$(count gone)
	api POST /control/away >"$T/out"
	api DELETE $LIGHTS/late >"$T/out"
	light "after$how" 4
	api POST /control/compact >"$T/out"
	api POST /control/back >"$T/out"
	await 30 gone late && await 30 phase "after$how" '.status.phase == "Queued"' && (($(count gone) > missed))
	tap "changes that the server has forgotten are found by a list ${how:+(410 as an event)}"
	[[ -n $how ]] || light late 4
done

stop weftd KILL
api DELETE $LIGHTS/more >"$T/out"
light new 2
wait_for 20 grep -q '^weftd: ' "$T/controller.log" && phase more '.metadata.deletionTimestamp' >"$T/out"
tap "while weftd is away an object waits for its light to go"
daemon || exit 1
await 30 gone more && await 30 phase after '.status.phase == "Running"'
tap "and goes when weftd is back"
api POST /control/conflict >"$T/out"
light busy 2
await 30 phase busy '.status.phase == "Queued" or .status.phase == "Running"' && (($(count conflict) > 0))
tap "a status that came after another change of the object is written again"

stop controller KILL
api DELETE $LIGHTS/after >"$T/out"
controller
await 30 gone after
tap "what was deleted while the controller was away goes"
api POST "/control/force-delete/afteras-event" >"$T/out"
names() { weft job list --format json | jq -e "$1"; }
wait_for 30 names '[.jobs[].nodes | length] | sort == [2, 2, 2]'
tap "the light of an object without a finalizer goes too"
for name in wrong wrong-too new busy; do
	api DELETE $LIGHTS/$name >"$T/out"
done
wait_for 30 names '[.jobs[].name] == ["other"]' && await 20 none
tap "they are gone"
light leased 4 ', "lease": 4'
await 30 phase leased '.status.phase == "Running"'
light next 6 ', "lease": 4'
await 20 phase next '.status.phase == "Queued" and (.status.estimatedStart | test("^20.*Z$"))'
tap "an object that waits for one with a lease is told when it has light"
await 20 phase leased '.status.message | test("others were told")' ||
	await 20 phase next '.status.phase == "Running"'
await 30 phase next '.status.phase == "Running"' && phase leased '.status.phase == "Ended"' >"$T/out"
tap "and has it, though the other would have renewed its own"
sleep 6
phase next '.status.phase == "Running"' >"$T/out"
tap "which it does when no other waits"
api DELETE $LIGHTS/leased >"$T/out"
api DELETE $LIGHTS/next >"$T/out"
wait_for 30 names '[.jobs[].name] == ["other"]' && await 20 none && [[ $(map) == 4 ]]
tap "in the end there are no objects and no light, but that of others"

# ---- claims whose pods wait for light; this is their scheduler ----

CLAIMS=/apis/resource.k8s.io/v1/namespaces/weft/resourceclaims
/usr/bin/python3 - "$TOP/docs/examples/kubernetes/claims.yaml" >"$T/claims.json" <<'END'
import json, sys, yaml
json.dump({d["kind"]: d["spec"] for d in yaml.safe_load_all(open(sys.argv[1]))}, sys.stdout)
END
claim() { # NAME [PARAMETERS]
	jq "{apiVersion: \"resource.k8s.io/v1\", kind: \"ResourceClaim\", metadata: {name: \"$1\"}, spec: .ResourceClaimTemplate.spec} |
		.spec.devices.config[0].opaque.parameters |= ({group, nodes: 2, collective, size} + ${2:-{\}})" "$T/claims.json" >"$T/claim"
	api POST $CLAIMS "$(cat "$T/claim")" | jq -e .metadata.uid >"$T/out"
}
# set_status NAME FILTER: until no other change comes between.
set_status() {
	until api GET "$CLAIMS/$1" | jq --slurpfile all "$T/claims.json" --arg node "${3:-}" "$2" >"$T/claim" &&
		api PUT "$CLAIMS/$1/status" "$(cat "$T/claim")" | jq -e '.code != 409' >"$T/out"; do :; done
}
allocate() { # NAME NODE: to the slice's device, and to one of another driver
	set_status "$1" '$all[0].ResourceSlice as $slice | .status = {
		reservedFor: [{resource: "pods", name: .metadata.name, uid: .metadata.uid}],
		allocation: {allocationTimestamp: (now | todate),
			nodeSelector: {nodeSelectorTerms: [{matchFields: [{key: "metadata.name", operator: "In", values: [$node]}]}]},
			devices: {config: [.spec.devices.config[] + {source: "FromClaim"}], results: [
				({request: "light", driver: $slice.driver, pool: $node, device: "light"} +
					($slice.devices[0] | {bindingConditions, bindingFailureConditions})),
				{request: "gpu", driver: "gpu.example.com", pool: $node, device: "gpu-0"}]}},
		devices: [{driver: "gpu.example.com", pool: $node, device: "gpu-0",
			conditions: [{type: "Ready", status: "True", reason: "Ready", message: "", lastTransitionTime: (now | todate)}]}]}' "$2"
}
deallocate() { set_status "$1" 'del(.status)'; }
# condition NAME TYPE STATUS REASON [FACTS]: of the light's device.
condition() {
	api GET "$CLAIMS/$1" | jq -e "(.status.devices[1] | .driver == \"weft.example.com\" and .device == \"light\") and
		(.status.devices[1].conditions[] | select(.type == \"weft.example.com/Light$2\") |
		.status == \"$3\" and .reason == \"$4\" and ${5:-true})"
}
lit() { for name; do condition "$name" Ready True Running && condition "$name" Failed False Running || return; done; }
job_of() { api GET "$CLAIMS/$1" | jq -r '.status.devices[1].conditions[0].message | split(":")[0]'; }
all_jobs() { weft job list --all --format json | jq '[.jobs[].name] | length'; }

claim a
claim b
allocate a h2
await 20 condition a Ready False Incomplete '(.message | test("1 claims of 2 are allocated"))'
tap "a claim waits for the others of its group"
api POST /control/conflict >"$T/out"
allocate b h4
await 30 lit a b
tap "a group whose claims are allocated has the condition that its pods wait for"
weft job list "$(job_of a)" --format json | jq -e '.jobs[0].nodes == ["h2", "h4"]' >"$T/out"
tap "with light between their nodes"
api GET "$CLAIMS/a" | jq -e '(.status.devices[0].conditions | length) == 1 and (.status.allocation.devices.results | length) == 2 and
	.status.reservedFor[0].name == "a"' >"$T/out"
tap "what is of others stays"
claim c
allocate c h5
await 20 condition c Ready False Incomplete '(.message | test("3 claims of 2"))'
tap "one too many is told"
deallocate c
await 30 condition a Failed True Ended && await 30 condition b Failed True Ended
tap "which took the light of the others: they are to be placed again"
api DELETE "$CLAIMS/c" >"$T/out"
first=$(job_of a)
deallocate b
await 30 condition a Ready False Incomplete && wait_for 30 names '[.jobs[].name] == ["other"]'
tap "a claim that goes away releases its job"
stop controller KILL
allocate b h5
controller
await 30 lit a b && [[ $(job_of a) != "$first" ]]
tap "one that is allocated again, while the controller is away, gets another"
job=$(job_of a)
since=$(api GET "$CLAIMS/a" | jq .metadata.resourceVersion)
before=$(all_jobs)
stop controller KILL
stop weftd KILL
controller
daemon || exit 1
claim d '{group: "mark", nodes: 9}'
allocate d h6
await 30 condition d Ready False Incomplete
[[ $(all_jobs) == "$before" && $(api GET "$CLAIMS/a" | jq .metadata.resourceVersion) == "$since" ]] && lit a b >"$T/out"
tap "a controller and a weftd that start again change nothing"
weft job release "$job" >"$T/out" 2>&1
await 30 condition a Failed True Ended && await 30 condition b Failed True Ended && condition a Ready False Ended >"$T/out"
tap "a job that is over is the failure condition"
deallocate a
deallocate b
allocate a h2
allocate b h4
await 30 lit a b && [[ $(job_of a) != "$job" ]]
tap "its pods are placed again, and have light"
claim e '{group: "wrong", collective: "nothing"}'
claim f '{group: "wrong", collective: "nothing"}'
allocate e h5
allocate f h6
await 20 condition e Failed True Failed '(.message | test("unknown collective"))' &&
	await 20 condition f Failed True Failed
tap "what cannot be is the failure condition too"
for name in a b d e f; do
	api DELETE "$CLAIMS/$name" >"$T/out"
done
wait_for 30 names '[.jobs[].name] == ["other"]' && [[ $(map) == 4 ]]
tap "claims that are deleted leave no light"
! grep -E 'Unauthorized|Forbidden|Traceback' "$T/controller.log" "$T/api.log"
tap "within its role"
stop controller
stop api
finish
