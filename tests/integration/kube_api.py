# SPDX-License-Identifier: Apache-2.0
"""An API server of Kubernetes for one kind of custom resource and ResourceClaims: what
a client sees of the real one, and can be made to do what the real one does on a bad day.

    kube_api.py MANIFEST CERTIFICATE KEY TOKENS ADDRESS_FILE

The manifest has the CustomResourceDefinition (its schema is enforced, unknown fields
are dropped, and status is a subresource) and the Role of the token "controller" in
the folder TOKENS; "admin" may do all. From the API's public documentation ("API
concepts", "Custom resources", "Finalizers"; the structure Status of meta/v1):

- every change has a resourceVersion; an update with an older one is a 409 Conflict,
  one without any a 422; what changes nothing makes no new version;
- list in pages (limit, continue), whose token expires; watch from a version, as
  newline-delimited JSON in chunks, with bookmarks when asked for, ended after
  timeoutSeconds; from a version before the oldest known change: 410, as an answer or
  as an ERROR event, as real servers do either;
- DELETE of an object with finalizers sets deletionTimestamp, and it goes when the
  last one is removed; none can be added meanwhile;
- PATCH is application/merge-patch+json or application/json-patch+json, else 415; a
  test that fails is a 422; PUT of /status changes nothing else, and all other
  writes leave the status as it is;
- ResourceClaims (resource.k8s.io/v1): who changes status.devices needs the verb
  arbitrary-node:update of resourceclaims/driver, who changes the allocation update of
  resourceclaims/binding; an entry is of a device that is allocated, and goes with it;
- 401 without a token, 403 beyond the role, and a Status as the body of every error.

POST /control/WHAT (admin): drop (watches break in the middle of a line), away and
back (503 to all but admin), compact (forgets old changes), as-event (410 as an
ERROR event), bookmark, conflict (an object changes before each of the next 3
updates of its status), force-delete/NAME; GET /control/counts; GET /control/wait/VERSION:
the newest one, as soon as it is another, or after a second.
"""
import copy
import datetime
import http.server
import json
import os
import pathlib
import random
import ssl
import sys
import threading
import urllib.parse
import uuid

import yaml

manifest, certificate, key, tokens, address_file = sys.argv[1:]
DOCUMENTS = list(yaml.safe_load_all(open(manifest)))
CRD = next(d for d in DOCUMENTS if d["kind"] == "CustomResourceDefinition")["spec"]
ROLE = next(d for d in DOCUMENTS if d["kind"] == "Role")
STRING = {"type": "string"}
# Of types.go of resource/v1 and meta/v1; without properties: anything.
CLAIM_SCHEMA = {"type": "object", "properties": {"spec": {"type": "object"}, "status": {
    "type": "object", "properties": {
        "allocation": {"type": "object"},
        "reservedFor": {"type": "array", "items": {"type": "object"}},
        "devices": {"type": "array", "items": {
            "type": "object", "required": ["driver", "pool", "device"], "properties": {
                "driver": STRING, "pool": STRING, "device": STRING, "shareID": STRING,
                "data": {"type": "object"}, "networkData": {"type": "object"},
                "conditions": {"type": "array", "items": {
                    "type": "object",
                    "required": ["type", "status", "lastTransitionTime", "reason", "message"],
                    "properties": {
                        "type": STRING, "lastTransitionTime": STRING, "message": STRING,
                        "reason": {"type": "string", "minLength": 1},
                        "status": {"type": "string", "enum": ["True", "False", "Unknown"]},
                    }}}}}}}}}}
NAMESPACE = ROLE["metadata"]["namespace"]


class Kind:
    def __init__(self, group, version, names, schema):
        self.group, self.version, self.names, self.schema = group, version, names, schema
        self.plural = names["plural"]
        self.where = ["apis", group, version, "namespaces", NAMESPACE, self.plural]
        self.objects = {}       # by name
        self.log = []           # (version, type, object)


KINDS = [
    Kind(CRD["group"], CRD["versions"][0]["name"], CRD["names"],
         CRD["versions"][0]["schema"]["openAPIV3Schema"]),
    Kind("resource.k8s.io", "v1", {"plural": "resourceclaims", "kind": "ResourceClaim",
                                   "listKind": "ResourceClaimList"}, CLAIM_SCHEMA)]
LIGHTS, CLAIMS = KINDS
TOKENS = {(pathlib.Path(tokens) / who).read_text().strip(): who
          for who in ("controller", "admin")}
TYPES = {"object": dict, "array": list, "string": str, "integer": int, "number": (int, float)}
PAGE = 2    # the most that a page holds here, so that there are several


class Problem(Exception):
    def __init__(self, code, reason, message):
        super().__init__(message)
        self.status = {"kind": "Status", "apiVersion": "v1", "metadata": {},
                       "status": "Failure", "message": message, "reason": reason,
                       "code": code}


def invalid(message):
    return Problem(422, "Invalid", message)


def conflict(kind, name):
    return Problem(409, "Conflict", f'Operation cannot be fulfilled on {kind.plural}.{kind.group} '
                   f'"{name}": the object has been modified; please apply your changes to the '
                   "latest version and try again")


def expired(version):
    return Problem(410, "Expired", f"too old resource version: {version}")


def check(value, schema, place):
    """Enforces the schema, and drops what it does not know."""
    if not isinstance(value, TYPES[schema["type"]]) or isinstance(value, bool):
        raise invalid(f"{place}: Invalid value: must be of type {schema['type']}")
    if "enum" in schema and value not in schema["enum"]:
        raise invalid(f"{place}: Unsupported value: {value!r}")
    if "minLength" in schema and len(value) < schema["minLength"]:
        raise invalid(f"{place}: Required value")
    if value is not None and "minimum" in schema and value < schema["minimum"]:
        raise invalid(f"{place}: Invalid value: {value}: should be greater")
    if schema["type"] == "object":
        for name in schema.get("required", []):
            if name not in value:
                raise invalid(f"{place}.{name}: Required value")
        for name in list(value):
            if "properties" not in schema:
                continue
            if name in schema["properties"]:
                check(value[name], schema["properties"][name], f"{place}.{name}")
            else:
                del value[name]
    for item in value if schema["type"] == "array" else []:
        check(item, schema["items"], place)


def device_ids(entries):
    return [tuple(e.get(k) for k in ("driver", "pool", "device", "shareID")) for e in entries]


def allocated(claim):
    return device_ids(claim.get("status", {}).get("allocation", {}).get("devices", {})
                      .get("results", []))


def check_claim(thing, old):
    """What validation and the strategy of the status do beyond the schema."""
    status = thing.get("status", {})
    gone = set(allocated(old)) - set(allocated(thing))
    entries = status.get("devices", [])
    status["devices"] = [e for e, i in zip(entries, device_ids(entries)) if i not in gone]
    if not status["devices"]:
        del status["devices"]
    entries = status.get("devices", [])
    ids = device_ids(entries)
    if len(set(ids)) != len(ids) or not set(ids) <= set(allocated(thing)):
        raise invalid("status.devices: must be an allocated device in the claim")
    for entry in entries:
        kinds = [c["type"] for c in entry.get("conditions", [])]
        if len(kinds) > 8 or len(set(kinds)) != len(kinds):
            raise invalid("status.devices.conditions: Too many, or twice")


# ---- the store ----------------------------------------------------------------

class Store:
    def __init__(self):
        self.changed = threading.Condition()
        self.version = 1000
        self.oldest = 1000      # changes after this one are known
        self.bookmarks = 0
        self.drops = 0
        self.away = False
        self.as_event = False
        self.conflicts = 0
        self.counts = {"list": 0, "watch": 0, "gone": 0, "conflict": 0}

    def emit(self, kind, what, thing):
        self.version += random.randint(1, 3)    # of other objects too
        thing["metadata"]["resourceVersion"] = str(self.version)
        kind.log.append((self.version, what, copy.deepcopy(thing)))
        self.changed.notify_all()
        return copy.deepcopy(thing)

    def get(self, kind, name):
        if name not in kind.objects:
            raise Problem(404, "NotFound", f'{kind.plural}.{kind.group} "{name}" not found')
        return kind.objects[name]

    def create(self, kind, thing):
        name = thing.get("metadata", {}).get("name")
        if name in kind.objects:
            raise Problem(409, "AlreadyExists", f'"{name}" already exists')
        thing = {k: thing[k] for k in ("apiVersion", "kind", "metadata", "spec")}
        thing["metadata"] |= {
            "namespace": NAMESPACE, "uid": str(uuid.uuid4()), "generation": 1,
            "creationTimestamp": now()}
        check({"spec": thing["spec"]}, kind.schema, name)
        kind.objects[name] = thing
        return self.emit(kind, "ADDED", thing)

    def delete(self, kind, name):
        thing = self.get(kind, name)
        if not thing["metadata"].get("finalizers"):
            del kind.objects[name]
            self.emit(kind, "DELETED", thing)
            return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
        if "deletionTimestamp" not in thing["metadata"]:
            thing["metadata"] |= {"deletionTimestamp": now(), "deletionGracePeriodSeconds": 0}
            thing["metadata"]["generation"] += 1
            self.emit(kind, "MODIFIED", thing)
        return copy.deepcopy(thing)

    def update(self, kind, name, fresh, part, allow):
        """fresh in the place of the object, or of its status only."""
        old = self.get(kind, name)
        meta, was = fresh["metadata"], old["metadata"]
        if meta.get("uid", was["uid"]) != was["uid"]:
            raise conflict(kind, name)
        if meta.get("resourceVersion") != was["resourceVersion"]:
            self.counts["conflict"] += 1
            raise conflict(kind, name)
        thing = copy.deepcopy(old)
        if part == "status":
            thing["status"] = fresh.get("status", {})
        else:
            thing["spec"] = fresh["spec"]
            for field in ("finalizers", "labels", "annotations"):
                thing["metadata"][field] = meta.get(field, [] if field == "finalizers" else {})
                if not thing["metadata"][field]:
                    del thing["metadata"][field]
        checked = {k: thing[k] for k in ("spec", "status") if k in thing}
        check(checked, kind.schema, name)
        if kind is CLAIMS and part == "status":
            new, was_status = thing["status"], old.get("status", {})
            for e in new.get("devices", []) + was_status.get("devices", []):
                if (e in new.get("devices", [])) != (e in was_status.get("devices", [])):
                    allow("arbitrary-node:update", "driver", e.get("driver"))
            if any(new.get(k) != was_status.get(k) for k in ("allocation", "reservedFor")):
                allow("update", "binding")
            check_claim(thing, old)
        if thing["spec"] != old["spec"]:
            rules = kind.schema["properties"]["spec"].get("x-kubernetes-validations")
            if rules:
                raise invalid("spec: " + rules[0]["message"])
            thing["metadata"]["generation"] += 1
        if "deletionTimestamp" in was and not set(
                thing["metadata"].get("finalizers", [])) <= set(was["finalizers"]):
            raise invalid("metadata.finalizers: Forbidden: no new finalizers can be added "
                          "if the object is being deleted")
        if thing == old:
            return copy.deepcopy(old)
        if "deletionTimestamp" in was and not thing["metadata"].get("finalizers"):
            del kind.objects[name]
            return self.emit(kind, "DELETED", thing)
        kind.objects[name] = thing
        return self.emit(kind, "MODIFIED", thing)


def now():
    return datetime.datetime.utcnow().strftime("%Y-%m-%dT%H:%M:%SZ")


def merge(target, patch):
    """RFC 7386."""
    if not isinstance(patch, dict):
        return patch
    target = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            target.pop(name, None)
        else:
            target[name] = merge(target.get(name), value)
    return target


def json_patch(thing, operations):
    """RFC 6902: test, add, remove, replace."""
    for op in operations:
        *way, last = [p.replace("~1", "/").replace("~0", "~") for p in op["path"].split("/")[1:]]
        try:
            at = thing
            for step in way:
                at = at[int(step) if isinstance(at, list) else step]
            last = len(at) if last == "-" else int(last) if isinstance(at, list) else last
            if op["op"] == "test" and at[last] != op["value"]:
                raise invalid(f"testing value {op['path']} failed")
            if op["op"] == "remove":
                del at[last]
            elif op["op"] == "add" and isinstance(at, list):
                at.insert(last, op["value"])
            elif op["op"] in ("add", "replace"):
                at[last] = op["value"]
        except (KeyError, IndexError, ValueError) as e:
            raise invalid(f"the path {op['path']} does not exist") from e
    return thing


store = Store()


# ---- HTTP ---------------------------------------------------------------------

class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def answer(self, code, thing):
        body = json.dumps(thing).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def allow(self, verb, part, of=None):
        scheme, _, token = self.headers.get("Authorization", "").partition(" ")
        who = TOKENS.get(token) if scheme == "Bearer" else None
        if who is None:
            raise Problem(401, "Unauthorized", "Unauthorized")
        resource = self.kind.plural + ("/" + part if part else "")
        if who != "admin" and not any(
                self.kind.group in r["apiGroups"] and resource in r["resources"] and verb in r["verbs"] and
                of in r.get("resourceNames", [of])
                for r in ROLE["rules"]):
            raise Problem(403, "Forbidden", f"{who} cannot {verb} resource {resource}")
        if who != "admin" and store.away:
            raise Problem(503, "ServiceUnavailable", "the server is currently unable")

    def serve(self):
        url = urllib.parse.urlsplit(self.path)
        self.query = dict(urllib.parse.parse_qsl(url.query))
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        way = url.path.strip("/").split("/")
        self.kind = next((k for k in KINDS if way[:6] == k.where), LIGHTS)
        try:
            if way[0] == "control":
                self.allow("control", "control")
                self.answer(200, control(*way[1:]))
                return
            if way[:6] != self.kind.where:
                raise Problem(404, "NotFound", "the server could not find the requested resource")
            name, part = (way[6:] + [None, None])[:2]
            verb = {"GET": "get" if name else "watch" if self.query.get("watch") in ("1", "true")
                    else "list", "POST": "create", "PUT": "update", "PATCH": "patch",
                    "DELETE": "delete"}[self.command]
            self.allow(verb, part)
            if verb == "watch":
                self.watch()
            else:
                with store.changed:
                    code, thing = getattr(self, verb)(name, part, json.loads(body or b"null"))
                self.answer(code, thing)
        except Problem as e:
            self.answer(e.status["code"], e.status)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = serve

    def get(self, name, part, body):
        return 200, store.get(self.kind, name)

    def create(self, name, part, body):
        return 201, store.create(self.kind, body)

    def delete(self, name, part, body):
        return 200, store.delete(self.kind, name)

    def update(self, name, part, body):
        if part == "status" and store.conflicts > 0:
            store.conflicts -= 1
            other = store.get(self.kind, name)
            other["metadata"].setdefault("annotations", {})["other"] = str(store.conflicts)
            store.emit(self.kind, "MODIFIED", other)
        if "resourceVersion" not in body["metadata"]:
            raise invalid("metadata.resourceVersion: Invalid value: 0x0: must be specified for an update")
        return 200, store.update(self.kind, name, body, part, self.allow)

    def patch(self, name, part, body):
        kinds = {"application/merge-patch+json": merge, "application/json-patch+json": json_patch}
        kind = kinds.get(self.headers.get("Content-Type"))
        if not kind:
            raise Problem(415, "UnsupportedMediaType", "the body of the request was in an unknown format")
        # A patch that names no version is of the newest.
        fresh = kind(copy.deepcopy(store.get(self.kind, name)), body)
        return 200, store.update(self.kind, name, fresh, part, self.allow)

    def list(self, name, part, body):
        """Pages are of one version: this server ends a list that changed meanwhile."""
        store.counts["list"] += 1
        names, first, version = sorted(self.kind.objects), 0, str(store.version)
        if "continue" in self.query:
            version, first = json.loads(self.query["continue"])
            if version != str(store.version):
                raise expired(version)
        limit = min(int(self.query.get("limit", 0)) or PAGE, PAGE)
        meta = {"resourceVersion": version}
        if first + limit < len(names):
            meta |= {"continue": json.dumps([version, first + limit]),
                     "remainingItemCount": len(names) - first - limit}
        return 200, {"kind": self.kind.names["listKind"],
                     "apiVersion": f"{self.kind.group}/{self.kind.version}", "metadata": meta,
                     "items": [self.kind.objects[n] for n in names[first:first + limit]]}

    def chunk(self, data):
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.flush()

    def event(self, kind, thing):
        """In two chunks: a line is not a chunk."""
        line = json.dumps({"type": kind, "object": thing}).encode() + b"\n"
        at = random.randint(1, len(line) - 1)
        self.chunk(line[:at])
        self.chunk(line[at:])

    def watch(self):
        at = int(self.query["resourceVersion"])
        ends = datetime.datetime.now() + datetime.timedelta(
            seconds=int(self.query.get("timeoutSeconds", 1800)))
        store.counts["watch"] += 1
        if at < store.oldest:
            store.counts["gone"] += 1
            if not store.as_event:
                raise expired(at)
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.close_connection = True
        if at < store.oldest:
            self.event("ERROR", expired(at).status)
            self.chunk(b"")
            return
        drops, bookmarks = store.drops, store.bookmarks
        while datetime.datetime.now() < ends:
            with store.changed:
                news = [e for e in self.kind.log if e[0] > at]
                if not news and store.drops == drops and store.bookmarks == bookmarks:
                    store.changed.wait(0.5)
                    continue
            for at, kind, thing in news:
                self.event(kind, thing)
            if store.bookmarks != bookmarks and "allowWatchBookmarks" in self.query:
                at = store.version
                self.event("BOOKMARK", {"kind": self.kind.names["kind"],
                                        "apiVersion": f"{self.kind.group}/{self.kind.version}",
                                        "metadata": {"resourceVersion": str(at)}})
            bookmarks = store.bookmarks
            if store.drops != drops:
                self.chunk(b'{"type": "MODIFIED", "object": {"meta')
                return
        self.chunk(b"")


def control(what, name=None):
    with store.changed:
        if what == "wait":
            store.changed.wait_for(lambda: store.version != int(name), 1)
            return store.version
        if what == "drop":
            store.drops += 1
        elif what == "bookmark":
            store.version += 5      # of objects that no client here watches
            store.bookmarks += 1
        elif what in ("away", "back"):
            store.away = what == "away"
            store.drops += store.away
        elif what == "compact":
            store.oldest = store.version
            for kind in KINDS:
                kind.log = []
        elif what == "as-event":
            store.as_event = True
        elif what == "conflict":
            store.conflicts = 3
        elif what == "force-delete":
            store.get(LIGHTS, name)["metadata"].pop("finalizers", None)
            store.delete(LIGHTS, name)
        elif what != "counts":
            raise Problem(404, "NotFound", what)
        store.changed.notify_all()
        return dict(store.counts)


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        if not isinstance(sys.exc_info()[1], OSError):     # a client that went away
            super().handle_error(request, client_address)


server = Server(("127.0.0.1", 0), Handler)
tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
tls.load_cert_chain(certificate, key)
server.socket = tls.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
with open(address_file + ".new", "w") as f:
    f.write("https://localhost:%d" % server.server_port)
os.rename(address_file + ".new", address_file)
server.serve_forever()
