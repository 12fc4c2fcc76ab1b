# SPDX-License-Identifier: Apache-2.0
"""weftd's interface for programs that go on while weftd is away.

    protoc -I proto --python_out=DIR weft/v1/jobs.proto weft/v1/weft.proto weft/v1/schedule.proto

    weft = Client()
    job = weft.request("train-7", count=4, collective="allreduce", size_bytes=10**9)
    schedule = weft.schedule(job.name, rank=0)
    weft.release(job.name)

A call that ends with UNAVAILABLE (no connection, a weftd that stops or stands by)
is made again, for `patience` seconds after the last answer. That is safe: a
request carries an id, by which weftd knows it again, and all others say what shall
be and not what shall change. Every other error is a grpc.RpcError for the caller.
"""
import random
import time

import grpc
from weft.v1 import jobs_pb2, schedule_pb2, weft_pb2

OVER = (jobs_pb2.JOB_STATE_ENDED, jobs_pb2.JOB_STATE_FAILED)


def state_name(job):
    return jobs_pb2.JobState.Name(job.state)[len("JOB_STATE_"):].lower()


def tls(ca, certificate, key):
    """Credentials for weftd's --listen, from files."""
    def read(path):
        with open(path, "rb") as f:
            return f.read()
    return grpc.ssl_channel_credentials(read(ca), read(key), read(certificate))


class Client:
    """One connection. target: unix:PATH, or HOST:PORT with tls()."""

    def __init__(self, target="unix:/run/weft/weftd.sock", credentials=None,
                 patience=60):
        # gRPC itself would wait up to two minutes before it connects again.
        options = [("grpc.initial_reconnect_backoff_ms", 100),
                   ("grpc.min_reconnect_backoff_ms", 5000),    # a handshake
                   ("grpc.max_reconnect_backoff_ms", 1000)]
        self.patience = patience
        self.channel = (
            grpc.secure_channel(target, credentials, options) if credentials
            else grpc.insecure_channel(target, options))

    def close(self):
        """Ends every call, so also watch() in another thread."""
        self.channel.close()

    def _call(self, method, request, response, streams):
        kind = self.channel.unary_stream if streams else self.channel.unary_unary
        return kind("/weft.v1." + method,
                    request_serializer=type(request).SerializeToString,
                    response_deserializer=response.FromString)

    def _wait(self, error, wait, since):
        """Before the next try; the time to wait before the one after it."""
        left = since + self.patience - time.monotonic()
        if error.code() != grpc.StatusCode.UNAVAILABLE or left <= 0:
            raise error
        time.sleep(wait * random.uniform(0.5, 1))
        # Not only asleep: gRPC connects while a call waits for it.
        ready = grpc.channel_ready_future(self.channel)
        try:
            ready.result(timeout=left)
        except grpc.FutureTimeoutError:
            raise error from None
        finally:
            ready.cancel()
        return min(2 * wait, 2)

    def _again(self, attempt):
        """What attempt() returns, as soon as it does."""
        wait, since = 0.1, time.monotonic()
        while True:
            try:
                return attempt()
            except grpc.RpcError as e:
                wait = self._wait(e, wait, since)

    def _unary(self, method, request, response):
        call = self._call(method, request, response, False)
        return self._again(lambda: call(request, timeout=20))

    def _stream(self, method, request, response):
        """All answers, from the first on again after each lost connection."""
        call = self._call(method, request, response, True)
        wait, since = 0.1, time.monotonic()
        while True:
            try:
                for answer in call(request):
                    wait, since = 0.1, time.monotonic()
                    yield answer
                return
            except grpc.RpcError as e:
                wait = self._wait(e, wait, since)

    def _follow(self, method, request, response, on_change):
        """The last state of a job that is streamed; told are only changes."""
        job = None
        for answer in self._stream(method, request, response):
            if on_change and answer.job != job:
                on_change(answer.job)
            job = answer.job
        return job

    def request(self, request_id, on_change=None, **fields):
        """The job when it runs (with no_wait=True: is queued). The id is the
        caller's: one that it finds again after a crash of its own. The fields are
        those of RequestJobRequest."""
        return self._follow(
            "JobsService/RequestJob",
            jobs_pb2.RequestJobRequest(request_id=request_id, **fields),
            jobs_pb2.RequestJobResponse, on_change)

    def release(self, name, on_change=None):
        """When the job's light is gone. Of one that was over, nothing."""
        try:
            return self._follow(
                "JobsService/ReleaseJob", jobs_pb2.ReleaseJobRequest(name=name),
                jobs_pb2.ReleaseJobResponse, on_change)
        except grpc.RpcError as e:
            if e.code() != grpc.StatusCode.NOT_FOUND:
                raise
            return None

    def begin_release(self, name):
        """As release(), without waiting: weftd goes on by itself."""
        try:
            answers = self._stream(
                "JobsService/ReleaseJob", jobs_pb2.ReleaseJobRequest(name=name),
                jobs_pb2.ReleaseJobResponse)
            next(answers, None)
            answers.close()
        except grpc.RpcError as e:
            if e.code() != grpc.StatusCode.NOT_FOUND:
                raise

    def renew(self, name, duration_ns):
        """The job, which ends no sooner than so long from now. FAILED_PRECONDITION:
        others were told that they run then."""
        return self._unary(
            "JobsService/RenewJob",
            jobs_pb2.RenewJobRequest(name=name, duration_ns=duration_ns),
            jobs_pb2.RenewJobResponse).job

    def jobs(self, include_ended=False):
        return list(self._unary(
            "JobsService/ListJobs",
            jobs_pb2.ListJobsRequest(include_ended=include_ended),
            jobs_pb2.ListJobsResponse).jobs)

    def status(self):
        return self._unary("FabricService/Status", weft_pb2.StatusRequest(),
                           weft_pb2.StatusResponse)

    def schedule(self, job, rank=None):
        """Of a running job, or the part of one rank; rank r is the job's nodes[r]."""
        request = weft_pb2.GetScheduleRequest(job=job)
        if rank is not None:
            request.rank.value = rank
        call = self._call("FabricService/GetSchedule", request,
                          weft_pb2.GetScheduleResponse, True)
        return schedule_pb2.Schedule.FromString(self._again(
            lambda: b"".join(piece.data for piece in call(request, timeout=60))))

    def watch(self, after=None):
        """Events, for ever, each once and in order, also over restarts of weftd.
        One of kind EVENT_KIND_RESYNC stands for some that are not to be had any
        more, and is the first one without `after`: call status() at each."""
        wait = 0.1
        while True:
            request = weft_pb2.WatchRequest()
            if after is not None:
                request.after.value = after
            try:
                for event in self._call("FabricService/Watch", request,
                                        weft_pb2.WatchResponse, True)(request):
                    wait, after = 0.1, event.sequence
                    yield event
            except grpc.RpcError as e:
                if e.code() != grpc.StatusCode.UNAVAILABLE:
                    raise
                try:
                    wait = self._wait(e, wait, time.monotonic())
                except grpc.RpcError:
                    pass    # events have no end of patience
