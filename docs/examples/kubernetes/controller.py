#!/usr/bin/env python3
"""Keeps light in step with objects, as a Kubernetes controller does.

An object is a JSON file in a folder, in the place of the API server:

    {"metadata": {"name": "train", "uid": "..."},
     "spec": {"nodes": 4, "collective": "allreduce", "size": 1000000000,
              "repair": "spare"},
     "status": {}}

Each round compares what is wanted with what weftd has and takes one step
towards it, so that it does not matter what was missed: requests carry the
object's uid, which makes them one job however often they are sent. Nothing
but weft.v1.JobsService is used. Jobs of others are left alone.

    protoc -I proto --python_out=DIR weft/v1/jobs.proto
    PYTHONPATH=DIR controller.py --target unix:/run/weft/weftd.sock FOLDER
"""
import argparse
import json
import os
import pathlib
import time

import grpc
from weft.v1 import jobs_pb2 as pb

PREFIX = "k8s-"


class Weft:
    """The three calls of weft.v1.JobsService."""

    def __init__(self, target):
        self.channel = grpc.insecure_channel(target)

    def _call(self, kind, name, request, response):
        return getattr(self.channel, kind)(
            "/weft.v1.JobsService/" + name,
            request_serializer=request.SerializeToString,
            response_deserializer=response.FromString)

    def list(self):
        call = self._call("unary_unary", "ListJobs", pb.ListJobsRequest,
                          pb.ListJobsResponse)
        jobs = call(pb.ListJobsRequest(include_ended=True), timeout=10).jobs
        # Of several with one name, the newest.
        return {job.name: job for job in jobs if job.name.startswith(PREFIX)}

    def request(self, name, uid, spec):
        call = self._call("unary_stream", "RequestJob", pb.RequestJobRequest,
                          pb.RequestJobResponse)
        repair = pb.JobRepair.Value(
            "JOB_REPAIR_" + spec.get("repair", "degraded").upper())
        request = pb.RequestJobRequest(
            name=name, count=spec["nodes"], collective=spec["collective"],
            size_bytes=spec["size"], priority=spec.get("priority", 0),
            repair=repair, no_wait=True, request_id=uid)
        return list(call(request, timeout=10))[-1].job

    def release(self, name):
        call = self._call("unary_stream", "ReleaseJob", pb.ReleaseJobRequest,
                          pb.ReleaseJobResponse)
        # One answer is enough: the job ends whether we listen or not.
        stream = call(pb.ReleaseJobRequest(name=name), timeout=10)
        next(stream)
        stream.cancel()


def is_over(job):
    return job.state in (pb.JOB_STATE_ENDED, pb.JOB_STATE_FAILED)


def status_of(job):
    return {
        "phase": pb.JobState.Name(job.state)[len("JOB_STATE_"):].capitalize(),
        "nodes": list(job.nodes),
        "message": job.problem,
        "rate": job.rate,
    }


def write_status(path, thing, status):
    if thing.get("status") == status:
        return
    thing["status"] = status
    fresh = path.with_suffix(".new")
    fresh.write_text(json.dumps(thing, indent=1))
    os.replace(fresh, path)


def reconcile_object(weft, jobs, path):
    thing = json.loads(path.read_text())
    name = PREFIX + thing["metadata"]["name"]
    job = jobs.get(name)
    try:
        # A job that is over has answered this object; one of an older object
        # of the same name has not, and its uid is another.
        if job is None or (is_over(job) and not thing.get("status")):
            job = weft.request(name, thing["metadata"]["uid"], thing["spec"])
        write_status(path, thing, status_of(job))
    except grpc.RpcError as e:
        if e.code() == grpc.StatusCode.UNAVAILABLE:
            raise
        write_status(path, thing, {"phase": "Failed", "message": e.details(),
                                   "nodes": [], "rate": 0.0})
    return name


def reconcile(weft, folder):
    jobs = weft.list()
    wanted = {reconcile_object(weft, jobs, path)
              for path in sorted(folder.glob("*.json"))}
    for name, job in jobs.items():
        if name not in wanted and not is_over(job) and \
                job.state != pb.JOB_STATE_ENDING:
            weft.release(name)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--target", default="unix:/run/weft/weftd.sock")
    parser.add_argument("--every", type=float, default=1)
    parser.add_argument("folder", type=pathlib.Path)
    args = parser.parse_args()
    weft = Weft(args.target)
    while True:
        try:
            reconcile(weft, args.folder)
        except grpc.RpcError as e:
            print("weftd:", e.details(), flush=True)    # the next round tries
        time.sleep(args.every)


if __name__ == "__main__":
    main()
