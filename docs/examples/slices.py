#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Slices of cubes as schedulers know them, from what weftd says of its jobs.

slices.py slurm            topology.yaml with a torus3d (Slurm 26.05) for each slice that runs
slices.py kubernetes TYPE  Slice objects of accelerator.gke.io, as of xpk and Kueue; TYPE: tpu7x

Calls `weft job list` and `weft schedule export`; names of cubes are those of nodes and partitions.
"""
import json
import re
import subprocess
import sys

import yaml

# How the state of a job reads as the reason of the condition Ready.
READY = {"starting": "ACTIVATING", "running": "ACTIVE", "ending": "DEACTIVATING",
         "ended": "INCOMPLETE", "failed": "FAILED"}


def weft(*args):
    return json.loads(subprocess.run(["weft", *args], check=True, capture_output=True).stdout)


def slices(every):
    """(job, shape in chips) of those that have cubes."""
    for job in weft("job", "list", *(["--all"] if every else []), "--format", "json")["jobs"]:
        topology = json.loads(job["spec"]).get("topology", "")
        shape = re.match(r"shape (\d+)x(\d+)x(\d+)", topology)
        if shape and job["nodes"]:
            yield job, tuple(int(n) for n in shape.groups())


def places(job, shape):
    """The cube at each place, by its coordinates, and how many there are along each axis."""
    hosts = weft("schedule", "export", "--job", job["name"], "--to", "json")["placement"]["hosts"]
    side = round((len(hosts) // len(set(hosts))) ** (1 / 3))
    dims = [n // side for n in shape]
    at = {}
    for rank, cube in enumerate(hosts):
        x, y, z = rank // (shape[1] * shape[2]), rank // shape[2] % shape[1], rank % shape[2]
        at[x // side, y // side, z // side] = cube
    return at, dims


def torus(job, shape):
    at, (x, y, z) = places(job, shape)
    nodes = [at[i, j, k] for k in range(z) for j in range(y) for i in range(x)]
    dims = {"x": x, "y": y, "z": z}
    # Of Slurm's the first coordinate is the fastest, of weft's the last.
    return {"name": job["name"], "dims": dims, "nodes": ",".join(nodes),
            "placements": [{"dims": dict(dims)}]}


def slurm():
    tori = [torus(job, shape) for job, shape in slices(False) if job["state"] == "running"]
    return yaml.safe_dump([{"topology": "slices", "cluster_default": True,
                            "torus3d": {"toruses": tori}}], sort_keys=False)


def condition(kind, status, reason, job):
    when = job["ended_at"] or job["started_at"] or job["requested_at"]
    return {"type": kind, "status": str(status), "reason": reason,
            "message": job["problem"], "lastTransitionTime": re.sub(r"\.\d+", "", when)}


def slice_object(job, shape, accelerator):
    runs = job["state"] == "running"
    reason = "ACTIVE_DEGRADED" if runs and job["rate"] < 1 else READY[job["state"]]
    cubes = list(places(job, shape)[0].values()) if runs else job["nodes"]
    failed = job["state"] == "failed"
    return {"apiVersion": "accelerator.gke.io/v1alpha1", "kind": "Slice",
            "metadata": {"name": job["name"]},
            "spec": {"type": accelerator, "topology": "x".join(map(str, shape)),
                     "partitionIds": cubes},
            "status": {"conditions": [
                condition("Ready", runs, reason, job),
                condition("SliceCreationFailed", failed, "FAILED" if failed else "NONE", job)]}}


if __name__ == "__main__":
    if sys.argv[1:] == ["slurm"]:
        print(slurm(), end="")
    elif len(sys.argv) == 3 and sys.argv[1] == "kubernetes":
        print(yaml.safe_dump_all([slice_object(job, shape, sys.argv[2])
                                  for job, shape in slices(True)], sort_keys=False), end="")
    else:
        sys.exit(__doc__)
