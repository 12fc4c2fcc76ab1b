#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Keeps light in step with objects of Kubernetes: a controller in one file.

    apiVersion: weft.example.com/v1
    kind: Light
    metadata: {name: train}
    spec: {nodes: 4, collective: allreduce, size: 1000000000, lease: 3600}

A thread lists and watches the objects into a cache. Each round of the main loop
compares them with the jobs of weftd and takes one step for each object, so that it
does not matter what was missed while this, weftd or the API server was away:

- before a job is asked for, the object gets a finalizer, so that it does not go
  before its light has;
- the job's name and request id are the object's uid: it is one job however often it
  is asked for, and an object of the same name made later has another;
- a job with a lease, in seconds, is renewed when half of it is over: without this
  program its light goes, and others are told when;
- jobs of objects that are gone all the same are released, after one more list: the
  cache may be older than the job.

Pods whose ResourceClaims have devices that list the condition weft.example.com/LightReady
(claims.yaml) are bound to their nodes when there is light between these: claims of one
group that are allocated are one job, whose name is a hash of these allocations, so that
a claim that goes, or is allocated again, makes another set, and the job of the old one
goes as that of an object that is gone does.

Only this program's jobs (k8s-...) are touched. One replica is enough, as jobs run
on without it. deploy.yaml has the definition, the role and the deployment.
"""
import argparse
import copy
import datetime
import hashlib
import http.client
import json
import os
import pathlib
import ssl
import sys
import threading
import time
import urllib.parse

import grpc
from weft.v1 import jobs_pb2
from weft_client import OVER, Client, state_name, tls

GROUP = "weft.example.com"
LIGHTS = (GROUP, "v1", "lights")
CLAIMS = ("resource.k8s.io", "v1", "resourceclaims")
FINALIZER = GROUP + "/light"
# Of a device, in bindingConditions and bindingFailureConditions.
READY, FAILED = GROUP + "/LightReady", GROUP + "/LightFailed"
PREFIX = "k8s-"
WATCH_SECONDS = 300
SECOND = 10 ** 9
# What asking again does not change.
FINAL = (grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.UNIMPLEMENTED)


def say(*words):
    # One write: lines of several threads do not mix.
    sys.stderr.write(" ".join(map(str, words)) + "\n")


# ---- the API server ----------------------------------------------------------

class ApiError(Exception):
    """A Status that came in place of an object."""

    def __init__(self, code, status):
        super().__init__(f"{code} {status.get('reason')}: {status.get('message')}")
        self.code = code


class Api:
    """Objects of a kind in one namespace, by what a pod finds in its files."""

    def __init__(self, server, secrets, group, version, plural):
        url = urllib.parse.urlsplit(server)
        self.address = (url.hostname, url.port or 443)
        self.token = secrets / "token"
        self.tls = ssl.create_default_context(cafile=str(secrets / "ca.crt"))
        self.path = (f"/apis/{group}/{version}/namespaces/"
                     f"{(secrets / 'namespace').read_text().strip()}/{plural}")

    def _open(self, method, path, body, content, timeout):
        connection = http.client.HTTPSConnection(
            *self.address, context=self.tls, timeout=timeout)
        # Read each time: tokens are renewed every hour.
        connection.request(
            method, self.path + path, None if body is None else json.dumps(body),
            {"Authorization": "Bearer " + self.token.read_text().strip(),
             "Accept": "application/json", "Content-Type": content})
        answer = connection.getresponse()
        if answer.status >= 400:
            text = answer.read()
            connection.close()
            try:
                status = json.loads(text)
            except ValueError:
                status = {"message": text.decode(errors="replace")}
            raise ApiError(answer.status, status)
        return connection, answer

    def call(self, method, path, body=None, content="application/json"):
        connection, answer = self._open(method, path, body, content, 30)
        try:
            return json.loads(answer.read())
        finally:
            connection.close()

    def list(self):
        """All objects, and the version of the list: from there one may watch."""
        things, query = [], {"limit": 500}
        while True:
            page = self.call("GET", "?" + urllib.parse.urlencode(query))
            things += page["items"]
            rest = page["metadata"].get("continue")
            if not rest:
                return things, page["metadata"]["resourceVersion"]
            query["continue"] = rest

    def watch(self, version):
        """Events after that version, until the server ends the stream."""
        connection, answer = self._open("GET", "?" + urllib.parse.urlencode({
            "watch": 1, "resourceVersion": version, "allowWatchBookmarks": "true",
            "timeoutSeconds": WATCH_SECONDS}), None, "application/json",
            WATCH_SECONDS + 30)
        try:
            while line := answer.readline():
                event = json.loads(line)
                if event["type"] == "ERROR":
                    raise ApiError(event["object"].get("code"), event["object"])
                yield event["type"], event["object"]
        finally:
            connection.close()

    def add_finalizer(self, thing):
        """Refused with 409 when the object has changed meanwhile."""
        meta = thing["metadata"]
        return self.call("PATCH", "/" + meta["name"], {"metadata": {
            "resourceVersion": meta["resourceVersion"], "uid": meta["uid"],
            "finalizers": meta.get("finalizers", []) + [FINALIZER]}},
            "application/merge-patch+json")

    def remove_finalizer(self, thing):
        """Refused with 422 when it is not where it was."""
        meta = thing["metadata"]
        at = f"/metadata/finalizers/{meta['finalizers'].index(FINALIZER)}"
        self.call("PATCH", "/" + meta["name"], [
            {"op": "test", "path": "/metadata/uid", "value": meta["uid"]},
            {"op": "test", "path": at, "value": FINALIZER},
            {"op": "remove", "path": at}], "application/json-patch+json")

    def write_status(self, thing, status):
        """Refused with 409 when the object has changed meanwhile."""
        if thing.get("status") != status:
            self.call("PUT", f"/{thing['metadata']['name']}/status",
                      {**thing, "status": status})


class Cache(threading.Thread):
    """The objects by uid, as new as the watch is. `changed` is set at each event."""

    def __init__(self, api, changed):
        super().__init__(daemon=True)
        self.api = api
        self.lock = threading.Lock()
        self.changed = changed
        self.things = None          # not yet listed
        self.version = None

    def snapshot(self):
        with self.lock:
            return None if self.things is None else list(self.things.values())

    def _refill(self):
        things, self.version = self.api.list()
        with self.lock:
            self.things = {t["metadata"]["uid"]: t for t in things}
        self.changed.set()

    def _take(self, kind, thing):
        meta = thing["metadata"]
        if kind != "BOOKMARK":      # that is a version, and no object
            with self.lock:
                if kind == "DELETED":
                    self.things.pop(meta["uid"], None)
                else:
                    self.things[meta["uid"]] = thing
            self.changed.set()
        self.version = meta["resourceVersion"]

    def run(self):
        pause = threading.Event()
        while True:
            try:
                if self.version is None:
                    self._refill()
                for kind, thing in self.api.watch(self.version):
                    self._take(kind, thing)
            except ApiError as e:
                say("API server:", e)
                if e.code == 410:   # it has forgotten what came after
                    self.version = None
                    continue
                pause.wait(1)
            except (OSError, http.client.HTTPException, ValueError) as e:
                say("API server:", repr(e))     # goes on where it was
                pause.wait(0.5)


# ---- one step for each object ------------------------------------------------

def request(weft, uid, spec, **hosts):
    return weft.request(
        uid, name=PREFIX + uid, **hosts, collective=spec["collective"],
        size_bytes=spec["size"], priority=spec.get("priority", 0), no_wait=True,
        repair="JOB_REPAIR_" + spec.get("repair", "degraded").upper(),
        duration_ns=spec.get("lease", 0) * SECOND)


def renew(weft, job, lease):
    """Why it was not, if it had to be: others were told that they run then."""
    left = job.started_at_ns + job.duration_ns - time.time_ns()
    if job.state != jobs_pb2.JOB_STATE_RUNNING or not lease or left > lease / 2:
        return ""
    try:
        weft.renew(job.name, lease)
    except grpc.RpcError as e:
        if e.code() == grpc.StatusCode.UNAVAILABLE:
            raise
        return e.details()
    return ""


def status_of(job):
    status = {"phase": state_name(job).capitalize(), "job": job.name,
              "nodes": list(job.nodes), "message": job.problem, "rate": job.rate}
    if job.estimated_start_at_ns:
        at = datetime.datetime.fromtimestamp(job.estimated_start_at_ns // SECOND,
                                             datetime.timezone.utc)
        status["estimatedStart"] = at.strftime("%Y-%m-%dT%H:%M:%SZ")
    return status


def failure(phase, message):
    return {"phase": phase, "job": "", "nodes": [], "message": message, "rate": 0.0}


def end_object(api, weft, thing, job):
    """Its light first, then the finalizer."""
    if job is None or job.state in OVER:
        api.remove_finalizer(thing)
    elif job.state != jobs_pb2.JOB_STATE_ENDING:
        weft.begin_release(job.name)


def reconcile_object(api, weft, thing, job):
    meta = thing["metadata"]
    ours = FINALIZER in meta.get("finalizers", [])
    if "deletionTimestamp" in meta:
        if ours:
            end_object(api, weft, thing, job)
        return
    if not ours:
        thing = api.add_finalizer(thing)
    status = thing.get("status", {})
    if job:
        status = status_of(job)
        status["message"] = renew(weft, job, thing["spec"].get("lease", 0) * SECOND) or job.problem
    elif status.get("phase") not in ("Ended", "Failed"):
        try:
            spec = thing["spec"]
            status = status_of(request(weft, meta["uid"], spec, count=spec["nodes"]))
        except grpc.RpcError as e:
            if e.code() == grpc.StatusCode.UNAVAILABLE:
                raise
            status = failure("Failed" if e.code() in FINAL else "Pending", e.details())
        except (KeyError, TypeError, ValueError) as e:
            status = failure("Failed", f"spec: {e!r}")
    api.write_status(thing, status)


# ---- claims whose pods wait for light ------------------------------------------

def waiting(claim):
    """Its allocated devices whose binding is for this program to tell."""
    allocation = claim.get("status", {}).get("allocation", {})
    return [d for d in allocation.get("devices", {}).get("results", [])
            if READY in d.get("bindingConditions", [])]


def wish(claim):
    """What the claim, or its class, has as parameters for weft: the claim's are last."""
    all_of_it = claim["status"]["allocation"]["devices"].get("config", [])
    ours = [c["opaque"].get("parameters", {}) for c in all_of_it
            if c.get("opaque", {}).get("driver") == GROUP]
    return ours[-1] if ours else {}


def groups_of(claims):
    """Claims that wait for light, by all that they ask for."""
    groups = {}
    for claim in claims:
        if waiting(claim):
            groups.setdefault(json.dumps(wish(claim), sort_keys=True), []).append(claim)
    return groups


def name_of(members):
    """One for these allocations of these claims, whoever asks for it and when."""
    whole = sorted([m["metadata"]["uid"], m["status"]["allocation"]] for m in members)
    return hashlib.sha256(json.dumps(whole, sort_keys=True).encode()).hexdigest()[:32]


def node_of(claim):
    """The one that a device with bindsToNode is bound to."""
    term, = claim["status"]["allocation"]["nodeSelector"]["nodeSelectorTerms"]
    field, = term["matchFields"]
    node, = field["values"]
    return node


def write_conditions(api, claim, name, state, message):
    """Those of this program, of the devices that it tells of, and no others."""
    status = copy.deepcopy(claim["status"])
    entries = status.setdefault("devices", [])
    now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    for device in waiting(claim):
        key = {k: device.get(k) for k in ("driver", "pool", "device", "shareID")}
        entry = next((e for e in entries if all(e.get(k) == key[k] for k in key)), None)
        if entry is None:
            entry = {k: v for k, v in key.items() if v is not None}
            entries.append(entry)
        old = {c["type"]: c for c in entry.get("conditions", [])}
        for kind, true in ((READY, state == "Running"), (FAILED, state in ("Ended", "Failed"))):
            new = {"type": kind, "status": str(true), "reason": state,
                   "message": f"{name}: {message}"}
            was = old.get(kind, {})
            new["lastTransitionTime"] = (was["lastTransitionTime"]
                                         if was.get("status") == new["status"] else now)
            old[kind] = new
        entry["conditions"] = list(old.values())
    api.write_status(claim, status)


def failed_before(members, name):
    """Why there is no light for these allocations: it is not asked for again."""
    return next((c["message"].partition(": ")[2] for m in members
                 for e in m["status"].get("devices", []) for c in e.get("conditions", [])
                 if c["type"] == FAILED and c["status"] == "True" and
                 c["message"].startswith(name + ": ")), None)


def state_of_group(weft, spec, members, jobs):
    """A state, and words for it."""
    name = name_of(members)
    job, why = jobs.get(PREFIX + name), failed_before(members, PREFIX + name)
    if not job and why is not None:
        return "Failed", why
    try:
        if len(members) != spec["nodes"]:
            return "Incomplete", f"{len(members)} claims of {spec['nodes']} are allocated"
        if not job:
            job = request(weft, name, spec, nodes=sorted(map(node_of, members)))
        why = renew(weft, job, spec.get("lease", 0) * SECOND)
        return state_name(job).capitalize(), why or job.problem
    except grpc.RpcError as e:
        if e.code() == grpc.StatusCode.UNAVAILABLE:
            raise
        return "Failed" if e.code() in FINAL else "Pending", e.details()
    except (AttributeError, KeyError, TypeError, ValueError) as e:
        return "Failed", f"parameters: {e!r}"


def reconcile_claims(api, weft, claims, jobs):
    for text, members in groups_of(claims).items():
        state, why = state_of_group(weft, json.loads(text), members, jobs)
        for claim in members:
            tolerantly(write_conditions, api, claim, PREFIX + name_of(members), state, why)


# ---- all of them ---------------------------------------------------------------

def tolerantly(step, api, thing, *more):
    try:
        step(api, thing, *more)
    except ApiError as e:
        if e.code not in (404, 409, 422):   # else the watch brings what is new
            raise
        say(thing["metadata"]["name"] + ":", e)


def release_orphans(weft, jobs, things, claims, list_all):
    """Jobs without an object or a group of claims, also in lists of now."""
    def without(things, claims):
        named = {PREFIX + t["metadata"]["uid"] for t in things}
        named |= {PREFIX + name_of(members) for members in groups_of(claims).values()}
        return [j for j in jobs if j.name not in named and j.state not in OVER and
                j.state != jobs_pb2.JOB_STATE_ENDING]
    if without(things, claims):
        for job in without(*list_all()):
            say("job", job.name, "has no object any more")
            weft.begin_release(job.name)


def reconcile(apis, weft, things, claims):
    # In this order: an object's job is never asked for before this list of jobs.
    jobs = [j for j in weft.jobs(include_ended=True) if j.name.startswith(PREFIX)]
    by_name = {j.name: j for j in jobs}
    for thing in things:
        tolerantly(lambda api, t: reconcile_object(
            api, weft, t, by_name.get(PREFIX + t["metadata"]["uid"])), apis[0], thing)
    # First: hosts of a group that is no more are those of the one that takes its place.
    release_orphans(weft, jobs, things, claims,
                    lambda: ([api.list()[0] for api in apis] + [[]])[:2])
    for api in apis[1:]:
        reconcile_claims(api, weft, claims, by_name)


def main():
    host = os.environ.get("KUBERNETES_SERVICE_HOST", "kubernetes.default.svc")
    port = os.environ.get("KUBERNETES_SERVICE_PORT", "443")
    parser = argparse.ArgumentParser()
    parser.add_argument("--server", default=f"https://{host}:{port}")
    parser.add_argument("--secrets", type=pathlib.Path, default=pathlib.Path(
        "/var/run/secrets/kubernetes.io/serviceaccount"))
    parser.add_argument("--target", default="unix:/run/weft/weftd.sock")
    parser.add_argument("--tls", nargs=3, metavar=("CA", "CERTIFICATE", "KEY"))
    parser.add_argument("--no-claims", action="store_true",
                        help="of a Kubernetes before 1.34: no ResourceClaims are looked at")
    parser.add_argument("--every", type=float, default=1, help="seconds")
    parser.add_argument("--alive", type=pathlib.Path, help="a file that is touched each round")
    args = parser.parse_args()
    apis = [Api(args.server, args.secrets, *kind)
            for kind in [LIGHTS, CLAIMS][:1 if args.no_claims else 2]]
    # With little patience: the next round is the next try.
    weft = Client(args.target, tls(*args.tls) if args.tls else None, patience=1)
    changed = threading.Event()
    caches = [Cache(api, changed) for api in apis]
    for cache in caches:
        cache.start()
    while True:
        if args.alive:
            args.alive.touch()
        changed.wait(args.every)
        changed.clear()
        try:
            things = [cache.snapshot() for cache in caches]
            if None not in things:
                reconcile(apis, weft, *(things + [[]])[:2])
        except grpc.RpcError as e:
            say("weftd:", e.details())
        except (ApiError, OSError, http.client.HTTPException, ValueError) as e:
            say("API server:", repr(e))


if __name__ == "__main__":
    main()
