# SPDX-License-Identifier: Apache-2.0
"""Replays a schedule over the light that an emulated ring made of it.

usage: ring_replay.py SCHEDULE.json TRACE [FIRST_NODE...]

TRACE is what the emulator said to `light` and then `step` for every step.
FIRST_NODE...: the position of each rank on the ring (rank r at r without). Where
hosts have ranks inside it is that of their host, and within hosts no light is needed.
Fails unless every lightpath of the schedule was there, no other light was,
and by it alone every node ends with all that its collective promises.
"""
import json
import re
import sys
from collections import Counter

DROP = re.compile(r"drop (\d+) node (\d+) (cw|ccw) fibre (\d+) "
                  r"channel (\d+) from (\d+)$")


def read_trace(path):
    """(step, from, to) -> lightpaths seen."""
    seen, stray = Counter(), []
    for line in open(path):
        m = DROP.match(line.strip())
        if m:
            step, to, _, _, _, origin = m.groups()
            seen[int(step), int(origin), int(to)] += 1
        elif not line.startswith(("step ", "ok")):
            stray.append(line.strip())
    return seen, stray


def wanted_light(s, at):
    want = Counter()
    columns = s["lightpaths_columns"]
    for row in s["lightpaths"]:
        light = dict(zip(columns, row))
        src, dst = s.get("physical_arcs", s["arcs"])[light["arc"]][:2]
        want[light["step"], at[src], at[dst]] += 1
    return want


def start(s):
    """holds[node][shard, piece, chunk]: bit set of the contributions in it.

    A piece is what a shard's owner has for one rank, in an all-to-all."""
    kind, n = s["collective"], s["nodes"]
    pieces = range(n) if kind == "all-to-all" else [-1]
    every = [(o, d, c) for o in range(n) for d in pieces
             for c in range(s["chunks"])]
    if kind in ("allgather", "all-to-all"):
        return [{k: 1 << v for k in every if k[0] == v} for v in range(n)]
    if kind in ("allreduce", "reduce-scatter"):
        return [{k: 1 << v for k in every} for v in range(n)]
    if kind == "broadcast":
        root = s.get("root", 0)
        return [{k: 1 for k in every} if v == root else {} for v in range(n)]
    sys.exit("no replay of " + kind)


def promised(s):
    """(node, shard, piece, contributions) that must be there at the end."""
    kind, n = s["collective"], s["nodes"]
    for v in range(n):
        for o in range(n):
            if kind == "allgather":
                yield v, o, -1, 1 << o
            elif kind == "all-to-all":
                if o != v:
                    yield v, o, v, 1 << o
            elif kind == "broadcast":
                yield v, o, -1, 1
            elif kind == "allreduce" or o == v:
                yield v, o, -1, (1 << n) - 1


def replay(s, seen, at):
    holds = start(s)
    columns = s["transfers_columns"]
    rows = [dict(zip(columns, row)) for row in s["transfers"]]
    for step in range(s["steps"]):
        before = [dict(h) for h in holds]
        for t in (t for t in rows if t["step"] == step):
            src, dst = s["arcs"][t["arc"]][:2]
            if at[src] != at[dst] and not seen[step, at[src], at[dst]]:
                continue        # no light, nothing arrives
            for c in range(t["first"], t["last"] + 1):
                key = t["origin"], t.get("dest", -1), c
                holds[dst][key] = (holds[dst].get(key, 0) |
                                   before[src].get(key, 0))
    for v, o, d, full in promised(s):
        for c in range(s["chunks"]):
            if holds[v].get((o, d, c), 0) != full:
                sys.exit(f"rank {v} lacks part {c} of shard {o}")


def main():
    s = json.load(open(sys.argv[1]))
    at = [int(a) for a in sys.argv[3:]] or list(range(s["nodes"]))
    if "physical_arcs" in s:
        at = s["placement"]["ring_nodes"]
    seen, stray = read_trace(sys.argv[2])
    if stray:
        sys.exit("light goes wrong: " + stray[0])
    replay(s, seen, at)
    want = wanted_light(s, at)
    if seen != want:
        key = next(iter((want - seen) or (seen - want)))
        sys.exit("step %d, node %d to %d: %d lightpaths, %d were planned" %
                 (*key, seen[key], want[key]))
    print(sum(seen.values()), "lightpaths")


main()
