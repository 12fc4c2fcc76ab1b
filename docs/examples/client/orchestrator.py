#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs a command on light: asks weftd for hosts and circuits, writes each rank's
part of the schedule to a folder, runs the command, gives all back.

    orchestrator.py --count 4 --collective allreduce --size 1000000000 \\
        --parts DIR NAME -- mpirun ...

The command finds WEFT_HOSTS (in rank order) and WEFT_PARTS (DIR, with 0.pb, 1.pb,
...: messages weft.v1.Schedule). Changes of the job and events of weftd, one a line,
go to standard error. The name is the request's id too: who runs this again after a
crash goes on with the same job. weftd may come and go meanwhile (weft_client.py).
"""
import argparse
import os
import pathlib
import signal
import subprocess
import sys
import threading

import grpc
from weft.v1 import weft_pb2
from weft_client import OVER, Client, state_name, tls


def say(*words):
    # One write: lines of several threads do not mix.
    sys.stderr.write(" ".join(map(str, words)) + "\n")


def say_job(job):
    say("job", job.name, state_name(job), job.problem)


def follow_events(client):
    """What happens to the fabric, until the client is closed."""
    try:
        for event in client.watch():
            if event.kind == weft_pb2.EVENT_KIND_RESYNC:
                say("status", "generation", client.status().generation)
            say("event", event.sequence, event.text)
    except (grpc.RpcError, ValueError):     # closed
        return


def run(client, args):
    job = client.request(
        args.id or args.name, say_job, name=args.name, count=args.count,
        collective=args.collective, size_bytes=args.size,
        duration_ns=args.duration * 10**9)
    if job.state in OVER:
        say("job", job.name, "is over; another --id asks for another one")
        return 1
    args.parts.mkdir(parents=True, exist_ok=True)
    for rank in range(len(job.nodes)):
        part = client.schedule(job.name, rank)
        (args.parts / f"{rank}.pb").write_bytes(part.SerializeToString())
    return subprocess.run(args.command, env={
        **os.environ, "WEFT_HOSTS": ",".join(job.nodes),
        "WEFT_PARTS": str(args.parts)}).returncode


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--target", default="unix:/run/weft/weftd.sock",
                        help="or HOST:PORT, with --tls")
    parser.add_argument("--tls", nargs=3, metavar=("CA", "CERTIFICATE", "KEY"))
    parser.add_argument("--id", help="of the request; default: the name")
    parser.add_argument("--count", type=int, required=True, help="of hosts")
    parser.add_argument("--collective", required=True)
    parser.add_argument("--size", type=int, required=True, help="in bytes")
    parser.add_argument("--duration", type=int, default=0,
                        help="seconds after which weftd ends the job by itself")
    parser.add_argument("--parts", type=pathlib.Path, required=True)
    parser.add_argument("name")
    parser.add_argument("command", nargs="+")
    args = parser.parse_args()
    client = Client(args.target, tls(*args.tls) if args.tls else None)
    threading.Thread(target=follow_events, args=(client,), daemon=True).start()
    # As an exception, so that the job is given back.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        return run(client, args)
    except grpc.RpcError as e:
        say("weftd:", e.details())
        return 1
    finally:
        client.release(args.name, say_job)
        client.close()


if __name__ == "__main__":
    sys.exit(main())
