# SPDX-License-Identifier: Apache-2.0
"""What others ask of files about slices of cubes, and what machines of cubes ask of their switches.

slices.py slurm FILE       as Slurm's torus3d_record.c checks a topology
slices.py kubernetes FILE  as the schema of Slice objects says (kueue, v1alpha1)
slices.py rules DIR CUBES  the maps of 48 switches, DIR/x00 to DIR/z15, a line IN,OUT for each
                           cross-connect: cube c has its plus port at c, its minus port at CUBES + c
"""
import os
import re
import sys

import yaml


def check(what, why):
    if not what:
        sys.exit(f"{sys.argv[1]}: {why}")


def slurm(text):
    seen, names = set(), set()
    (topology,) = yaml.safe_load(text)
    check(list(topology)[0] == "topology", "topology is the first attribute")
    for torus in topology["torus3d"]["toruses"]:
        dims, nodes = torus["dims"], torus["nodes"].split(",")
        check(set(torus) <= {"name", "dims", "nodes", "placements", "regions"}, "unknown attribute")
        check(set(dims) == set("xyz") and min(dims.values()) > 0, "requires non-zero x,y,z")
        check(len(nodes) == dims["x"] * dims["y"] * dims["z"], "dims do not match node count")
        check(torus["name"] not in names and not seen & set(nodes), "already defined")
        check(len(set(nodes)) == len(nodes), "a node twice")
        for placement in torus["placements"]:
            check(all(0 < placement["dims"][a] <= dims[a] for a in "xyz"), "placement dims")
        names.add(torus["name"])
        seen |= set(nodes)
    print(len(names))


def kubernetes(text):
    n = 0
    for item in yaml.safe_load_all(text):
        spec = item["spec"]
        check(set(item) == {"apiVersion", "kind", "metadata", "spec", "status"}, "fields")
        check(set(spec) == {"type", "topology", "partitionIds"}, "fields of spec")
        check(spec["type"] in ("v6e", "tpu7x"), "type")
        check(re.fullmatch(r"\d+x\d+(x\d+)?", spec["topology"]), "topology")
        check(spec["partitionIds"] and all(isinstance(p, str) for p in spec["partitionIds"]),
              "partitionIds")
        for c in item["status"]["conditions"]:
            check(set(c) == {"type", "status", "reason", "message", "lastTransitionTime"},
                  "fields of a condition")
            check(c["status"] in ("True", "False", "Unknown"), "status")
            check(re.fullmatch(r"[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?", c["reason"]), "reason")
            check(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", str(c["lastTransitionTime"])),
                  "lastTransitionTime")
        n += 1
    print(n)


def read_axis(folder, axis, cubes):
    """Who is at the plus face of each cube, the same at all positions; 48 switches in all."""
    maps = []
    for position in range(16):
        with open(os.path.join(folder, f"{axis}{position:02}"), encoding="ascii") as f:
            pairs = [tuple(map(int, line.split(",")[:2])) for line in f if "," in line]
        there = dict(pairs)
        check(len(there) == len(pairs) == len(set(there.values())), "a port has two circuits")
        for port, other in pairs:
            check(0 <= port < 2 * cubes and 0 <= other < 2 * cubes, "light of no face")
            check(there.get(other) == port, "light one way only")
            check(port != other, "a face joined to itself")
        maps.append(there)
    check(all(m == maps[0] for m in maps), f"positions of {axis} differ")
    return {c: o - cubes for c, o in maps[0].items() if c < cubes and o >= cubes}


def rules(folder, cubes):
    """Slices: the sizes of what hangs together, each a torus, with the twist of the walk."""
    step = [read_axis(folder, axis, cubes) for axis in "xyz"]
    found, seen = [], set()
    for first in range(cubes):
        if first in seen or first not in step[0]:
            continue
        part, todo = {first}, [first]
        while todo:
            c = todo.pop()
            for s in step:
                check(c in s, "a ring that is open")
                if s[c] not in part:
                    part.add(s[c])
                    todo.append(s[c])
        for c in part:
            for a in step:
                for b in step:
                    check(a[b[c]] == b[a[c]], "no torus: steps along two axes do not commute")
        seen |= part
        found.append(len(part))
    print(*sorted(found))


if sys.argv[1] == "rules":
    rules(sys.argv[2], int(sys.argv[3]))
else:
    with open(sys.argv[2], encoding="utf-8") as file:
        {"slurm": slurm, "kubernetes": kubernetes}[sys.argv[1]](file.read())
