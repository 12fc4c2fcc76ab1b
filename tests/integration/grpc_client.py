# SPDX-License-Identifier: Apache-2.0
# Run by grpc.sh: SET ADDRESS PID TEST... One "pass WHAT" line a check; an
# assertion that fails ends it. ADDRESS is a socket's path, or HOST:PORT of TLS
# with CERTS/$NAME.{pem,key} as the own certificate.
import os
import signal
import sys
import time
import urllib.request

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

files = descriptor_pb2.FileDescriptorSet.FromString(
    open(sys.argv[1], "rb").read())
pool = descriptor_pool.DescriptorPool()
for f in files.file:
    pool.Add(f)
factory = message_factory.MessageFactory(pool)


def open_channel(options=()):
    if sys.argv[2].startswith("/"):
        return grpc.insecure_channel("unix:" + sys.argv[2], options=options)

    def read(name):
        with open(os.path.join(os.environ["CERTS"], name), "rb") as f:
            return f.read()

    own = os.environ["NAME"]
    return grpc.secure_channel(sys.argv[2], grpc.ssl_channel_credentials(
        read("ca.pem"), read(own + ".key"), read(own + ".pem")),
        options=options)


channel = open_channel()


def message(_type, **fields):
    return factory.GetPrototype(pool.FindMessageTypeByName(_type))(**fields)


def method(service, name):
    """The callable of a method, of the kind its descriptor says."""
    s = descriptor_pb2.ServiceDescriptorProto()
    pool.FindServiceByName(service).CopyToProto(s)
    m = next(m for m in s.method if m.name == name)
    kind = getattr(channel, "%s_%s" % (
        "stream" if m.client_streaming else "unary",
        "stream" if m.server_streaming else "unary"))
    reply = factory.GetPrototype(
        pool.FindMessageTypeByName(m.output_type.lstrip(".")))
    return kind("/%s/%s" % (service, name),
                request_serializer=lambda r: r.SerializeToString(),
                response_deserializer=reply.FromString)


def code_of(f):
    try:
        f()
    except grpc.RpcError as e:
        return e.code()
    return grpc.StatusCode.OK


def passed(what):
    print("pass " + what, flush=True)


FABRIC = "weft.v1.FabricService"
HEALTH = "grpc.health.v1.Health"
status = method(FABRIC, "Status")
ask = message("weft.v1.StatusRequest")


def unary():
    assert status(ask, timeout=10).ByteSize() > 0
    calls = [status.future(ask, timeout=60) for _ in range(500)]
    assert all(c.result().ByteSize() > 0 for c in calls)
    passed("unary, and 500 at a time on one connection")


def brief():
    less = message("weft.v1.StatusRequest", brief=True)
    whole = status(ask, timeout=10)
    assert sum(len(j.arcs) for j in whole.jobs) > 0
    for job in whole.jobs:
        del job.arcs[:], job.ranks[:]
    short = status(less, timeout=10)
    assert short == whole, "brief status differs by more than ranks and arcs"
    assert status(ask, timeout=10).ByteSize() > short.ByteSize()
    passed("a brief status is a whole one without ranks and arcs")


def stream():
    parts = list(method(FABRIC, "Plan")(
        message("weft.v1.PlanRequest"), timeout=30))
    assert len(parts) >= 1
    passed("a stream of %d parts" % len(parts))


def errors():
    assert code_of(lambda: method(HEALTH, "Check")(
        message(HEALTH[:-6] + "HealthCheckRequest", service="no.such"),
        timeout=10)) == grpc.StatusCode.NOT_FOUND
    unknown = channel.unary_unary("/weft.v1.FabricService/NoSuch")
    assert code_of(lambda: unknown(b"", timeout=10)) == \
        grpc.StatusCode.UNIMPLEMENTED
    passed("errors carry their status")


def details():
    try:
        list(method(FABRIC, "Plan")(message(
            "weft.v1.PlanRequest", name="a b.yaml",
            config=b"weft: 1\nfabric: x\nhosts: 7\n"), timeout=10))
        raise AssertionError("planned")
    except grpc.RpcError as e:
        trailers = dict(e.trailing_metadata())
        got = message("google.rpc.Status")
        got.ParseFromString(trailers["grpc-status-details-bin"])
        assert got.code == e.code().value[0] == 3
        assert got.message == e.details() and "hosts" in got.message
        kind, = got.details
        assert kind.type_url == "type.googleapis.com/google.rpc.ErrorInfo"
        info = message("google.rpc.ErrorInfo")
        info.ParseFromString(kind.value)
        assert (info.reason, info.domain) == ("EINVAL", "weft")
        assert info.metadata["place"] == "a b.yaml:3:8", info
        passed("details: google.rpc.Status with the place")


def mistakes():
    """All mistakes of a file, of whatever kind; and which number is not one."""
    config = b"weft: 1\nfabric: x\nhosts:\n" + b"".join(
        b"  - { name: h%d, rate: 1 }\n" % i for i in range(7))
    config += (b"switches:\n  - { name: s, size: 4x4, driver: nobodys }\n"
               b"  - { name: t, size: 4x4, driver: sim, options: { colour: red } }\n"
               b"  - { name: u, size: 4x4, driver: polatis-scpi, address: 'x:1' }\n"
               b"  - { name: v, size: 4x4, driver: polatis-scpi, address: 'x:1' }\n")
    try:
        list(method(FABRIC, "Plan")(message(
            "weft.v1.PlanRequest", name="m.yaml", config=config), timeout=10))
        raise AssertionError("planned")
    except grpc.RpcError as e:
        got = message("google.rpc.Status")
        got.ParseFromString(dict(e.trailing_metadata())["grpc-status-details-bin"])
        found = []
        for d in got.details:
            r = message("google.rpc.ResourceInfo")
            r.ParseFromString(d.value)
            found.append((r.resource_type, r.resource_name, r.description))
        mistakes = [m for m in found if m[0] == "mistake"]
        assert len(mistakes) >= 17, found
        assert mistakes[0][1].startswith("m.yaml:4:"), mistakes
        for words in "nobodys", "colour", "v: address: x:1 is that of u":
            assert any(words in m[2] for m in mistakes), (words, mistakes)
    for name in "History", "Audit", "ExternalChanges":
        f = method(FABRIC, name)
        assert code_of(lambda: f(message(f"weft.v1.{name}Request", limit=-3), timeout=10)) == \
            grpc.StatusCode.INVALID_ARGUMENT
    for field in "size_bytes", "min_ports", "channels", "duration_ns":
        fields = {"name": "j", "count": 2, "size_bytes": 1 << 20, "collective": "allreduce"}
        fields[field] = -1
        try:
            list(method("weft.v1.JobsService", "RequestJob")(
                message("weft.v1.RequestJobRequest", **fields), timeout=10))
            raise AssertionError("requested")
        except grpc.RpcError as e:
            assert e.details().startswith(field + ": "), e.details()
    passed("all mistakes are told, and which field is out of range")
    held = message("weft.v1.RequestJobRequest", name="c", no_queue=True,
                   circuits=[{"from": "h0.p0", "to": "h1.p0"}])
    assert code_of(lambda: list(method("weft.v1.JobsService", "RequestJob")(held, timeout=10))) \
        == grpc.StatusCode.ABORTED
    passed("a port that is held is ABORTED")


def failed_circuits():
    """The fabric of the file $FABRIC on a switch that refuses port 5."""
    with open(os.environ["FABRIC"], "rb") as f:
        config = f.read()
    events = method(FABRIC, "Apply")(
        message("weft.v1.ApplyRequest", config=config), timeout=30)
    try:
        for event in events:
            pass
        raise AssertionError("applied")
    except grpc.RpcError as e:
        assert event.event.result.verdict in (4, 5), event
        got = message("google.rpc.Status")
        got.ParseFromString(
            dict(e.trailing_metadata())["grpc-status-details-bin"])
        found = [d.value for d in got.details
                 if d.type_url.endswith("/google.rpc.ResourceInfo")]
        assert found, got
        for value in found:
            r = message("google.rpc.ResourceInfo")
            r.ParseFromString(value)
            assert r.resource_type == "circuit", r
            assert r.resource_name.startswith("ocs0: "), r
            assert "refused" in r.description, r
        passed("details: the circuits that failed")


def health():
    check = method(HEALTH, "Check")
    for name in "", FABRIC:
        r = check(message("grpc.health.v1.HealthCheckRequest", service=name),
                  timeout=10)
        assert r.status == 1, (name, r)
    passed("health: process and fabric serve")


def deadline():
    watch = method(HEALTH, "Watch")
    call = watch(message("grpc.health.v1.HealthCheckRequest",
                         service="no.such"), timeout=0.5)
    assert next(call).status == 3
    assert code_of(lambda: next(call)) == grpc.StatusCode.DEADLINE_EXCEEDED
    passed("a deadline ends a stream")
    call = watch(message("grpc.health.v1.HealthCheckRequest"))
    assert next(call).status == 1
    call.cancel()
    assert status(ask, timeout=10) is not None
    passed("a cancelled stream leaves the connection alone")


def peak_mib(pid):
    """The most memory that a process has had."""
    with open("/proc/%s/status" % pid) as f:
        return next(int(line.split()[1]) for line in f
                    if line.startswith("VmHWM:")) / 1024


def watchers():
    """1000 watch; nearly all of them sleep while much happens."""
    global channel
    first, calls, channels = channel, [], []
    for _ in range(12):
        channel = grpc.insecure_channel(
            "unix:" + sys.argv[2],
            options=[("grpc.use_local_subchannel_pool", 1),
                     ("grpc.http2.bdp_probe", 0),
                     ("grpc.http2.lookahead_bytes", 16384)])
        channels.append(channel)
        watch = method(FABRIC, "Watch")
        calls += [watch(message("weft.v1.WatchRequest"), timeout=120)
                  for _ in range(84)]
    channel = first
    assert len(calls) >= 1000
    assert all(next(c).kind == 1 for c in calls)
    bad = message("weft.v1.ApplyRequest", config=b"weft: 1\n")
    refused = method(FABRIC, "Apply")
    for _ in range(1500):
        assert code_of(lambda: list(refused(bad, timeout=10))) == \
            grpc.StatusCode.INVALID_ARGUMENT
    for call in calls[::250]:
        last = next(call).sequence
        for _ in range(10000):
            event = next(call)
            if event.kind == 1:
                break
            assert event.sequence == last + 1, (event, last)
            last = event.sequence
        assert event.kind == 1 and event.sequence > last
        assert event.text.startswith("resync from generation")
    peak = peak_mib(sys.argv[3])
    assert peak < 128, peak
    for call in calls:
        call.cancel()
    passed("%d watchers, nearly all asleep: weftd takes %d MiB" %
           (len(calls), peak))


def crowd():
    """2000 calls at a time on 25 connections: streams that wait, a tenth of
    them called off, a tenth with a deadline that passes; status for all."""
    global channel
    first, streams, late, plain = channel, [], [], []
    for n in range(25):
        channel = open_channel([("grpc.use_local_subchannel_pool", 1)])
        watch = method(HEALTH, "Watch")
        asked = message("grpc.health.v1.HealthCheckRequest")
        streams += [(channel, watch(asked, timeout=120)) for _ in range(36)]
        late += [(channel, watch(asked, timeout=3)) for _ in range(4)]
        state = method(FABRIC, "Status")
        plain += [(channel, state.future(message("weft.v1.StatusRequest"),
                                         timeout=120)) for _ in range(40)]
    channel = first
    assert len(streams) + len(late) + len(plain) == 2000
    generation = {call.result().generation for _, call in plain}
    assert len(generation) == 1, generation
    assert all(next(call).status == 1 for _, call in streams)
    for _, call in streams[::9]:
        call.cancel()
    for _, call in late:
        assert code_of(lambda: [m for m in call]) == \
            grpc.StatusCode.DEADLINE_EXCEEDED
    for i, (_, call) in enumerate(streams):
        if i % 9:
            assert call.is_active(), call.code()
            call.cancel()
        else:
            assert call.code() == grpc.StatusCode.CANCELLED
    assert status(ask, timeout=10) is not None
    passed("2000 calls at a time, cancelled, late and answered")


# What a viewer may call; whatever else there is must be refused to him.
LOOKING = {"Plan", "Status", "Diff", "Verify", "History", "Audit", "ExternalChanges", "GetSchedule", "GetPicture",
           "Watch", "ListJobs"}
SERVICES = FABRIC, "weft.v1.JobsService"


def service_methods(name):
    s = descriptor_pb2.ServiceDescriptorProto()
    pool.FindServiceByName(name).CopyToProto(s)
    return s.method


def first_answer(service, m, timeout):
    answer = method(service, m.name)(message(m.input_type[1:]),
                                    timeout=timeout)
    return next(iter(answer)) if m.server_streaming else answer


def viewer():
    codes = {m.name: code_of(lambda s=s, m=m: first_answer(s, m, 30))
             for s in SERVICES for m in service_methods(s)}
    for name, code in codes.items():
        assert (code == grpc.StatusCode.PERMISSION_DENIED) == (
            name not in LOOKING), (name, code)
    passed("a viewer may look, and nothing else")


def unknown_client():
    for s in SERVICES:
        for m in service_methods(s):
            assert code_of(lambda: first_answer(s, m, 30)) == \
                grpc.StatusCode.PERMISSION_DENIED, m.name
    health()
    passed("without a role there is health and nothing else")


def stranger():
    assert code_of(lambda: status(ask, timeout=10)) == \
        grpc.StatusCode.UNAVAILABLE
    passed("no connection without a good certificate")


def reflection():
    """All that a client needs, from the service alone."""
    for version in "v1", "v1alpha":
        package = "grpc.reflection." + version
        ask_for = method(package + ".ServerReflection",
                         "ServerReflectionInfo")

        def asked(**fields):
            return message(package + ".ServerReflectionRequest", **fields)

        names, whole, nested, bad, none, empty = ask_for(iter([
            asked(list_services=""),
            asked(file_containing_symbol=FABRIC),
            asked(file_containing_symbol="grpc.health.v1."
                  "HealthCheckResponse.ServingStatus"),
            asked(file_containing_symbol="weft.v1.NoSuch"),
            asked(),
            asked(all_extension_numbers_of_type="weft.v1.PlanRequest"),
        ]), timeout=10)
        services = {s.name for s in names.list_services_response.service}
        assert {FABRIC, HEALTH, package + ".ServerReflection"} <= services
        got = whole.file_descriptor_response.file_descriptor_proto
        own = descriptor_pool.DescriptorPool()
        for data in reversed(got):
            own.AddSerializedFile(data)
        assert own.FindMethodByName(FABRIC + ".Plan") is not None
        assert nested.HasField("file_descriptor_response")
        assert nested.original_request.file_containing_symbol
        assert bad.error_response.error_code == 5, bad
        assert none.error_response.error_code == 3, none
        assert not empty.all_extension_numbers_response.extension_number
        for f in files.file:
            if f.package == "google.rpc":
                continue
            r, = ask_for(iter([asked(file_by_filename=f.name)]), timeout=10)
            data = r.file_descriptor_response.file_descriptor_proto[0]
            assert descriptor_pb2.FileDescriptorProto.FromString(data) == f
        passed("reflection %s: every file of %d services" % (
            version, len(services)))


def stopping():
    """Ends the daemon."""
    call = method(HEALTH, "Watch")(
        message("grpc.health.v1.HealthCheckRequest", service=FABRIC),
        timeout=30)
    assert next(call).status == 1
    os.kill(int(sys.argv[3]), signal.SIGTERM)
    assert next(call).status == 2
    assert code_of(lambda: next(call)) == grpc.StatusCode.UNAVAILABLE
    passed("health: a daemon that stops says so first")


def starting():
    call = method(HEALTH, "Watch")(
        message("grpc.health.v1.HealthCheckRequest", service=FABRIC),
        timeout=60)
    first = next(call).status
    assert first == 1 or (first == 2 and next(call).status == 1)
    passed("health: a dead device does not keep the fabric from serving")


def frozen():
    """An etcd, ETCD_PID, stands still for FROZEN seconds: all is answered meanwhile, and told."""
    watch = method(FABRIC, "Watch")
    told = watch(message("weft.v1.WatchRequest"), timeout=120)
    next(told)

    def first_event():
        call = watch(message("weft.v1.WatchRequest"), timeout=30)
        next(call)
        call.cancel()

    asked = {
        "status": lambda: status(message("weft.v1.StatusRequest"), timeout=30),
        "events": first_event,
        "metrics": lambda: urllib.request.urlopen(os.environ["METRICS"], timeout=30).read(),
    }
    took = {name: [] for name in asked}
    os.kill(int(os.environ["ETCD_PID"]), signal.SIGSTOP)
    drained = method(FABRIC, "Drain").future(
        message("weft.v1.DrainRequest", target="h3"), timeout=60)
    end = time.monotonic() + float(os.environ["FROZEN"])
    while time.monotonic() < end:
        for name, ask in asked.items():
            begun = time.monotonic()
            ask()
            took[name].append(1000 * (time.monotonic() - begun))
        time.sleep(0.02)
    assert not drained.done()
    os.kill(int(os.environ["ETCD_PID"]), signal.SIGCONT)
    for name, ms in took.items():
        ms.sort()
        print("%s: %d answers, p50 %.1f ms, p99 %.1f ms, at most %.1f ms" % (
            name, len(ms), ms[len(ms) // 2], ms[len(ms) * 99 // 100], ms[-1]))
        passed("while etcd stands still, all is answered: %s" % name)
    drained.result()
    passed("a drain that was asked for meanwhile is answered once it goes on")
    kinds = []
    while 33 not in kinds:
        kinds.append(next(told).kind)
    assert 32 in kinds, kinds
    passed("events say that it stood still, and that this is over")


for test in sys.argv[4:]:
    globals()[test]()
