#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Flows of a schedule for simgrid_flows.cc, and schedules with routes for it.

  simgrid_flows.py flows FILE.json ALPHA HOP MESSAGE BPS SIZE [links]
      reads a schedule, compact or not, and writes its messages; times in ns. Latencies are delays of messages; with "links" they are those of links.
  simgrid_flows.py double TOPOLOGY.json
      reads a digraph and writes an all-gather by recursive doubling over its
      terminals, a power of two of them, on shortest paths that share the data.
  simgrid_flows.py swing SIDE
      writes the Swing all-reduce (De Sensi et al., NSDI 2024, bandwidth-optimal) on a
      square torus of a power of two nodes a side, compact, with its routes.

It follows docs/schedule.md and shares nothing with weft."""
import collections
import json
import sys


def rows(doc, table, defaults):
    """The rows of a table as dicts; defaults: of all its columns in order, None where
    a table without column names has them."""
    names = doc.get(table + "_columns") or [c for c in defaults if defaults[c] is None]
    return [{**defaults, **dict(zip(names, row))} for row in doc.get(table, [])]


def arcs_of(doc, table):
    return rows(doc, table, {"src": None, "dst": None, "cap": 1, "latency_ns": 0})


class Symmetry:
    """The elements of a schedule's group, what they do to arcs, and orbits of these. Of
    parallel arcs, which are alike, the k-th goes to the k-th. No memories."""

    def __init__(self, doc, logical, physical):
        orders = [row["order"] for row in rows(doc, "generators", {"order": None})]
        images = [row["node"] for row in rows(doc, "images", {"node": None})]
        self.n = len(images) // len(orders) if orders else 0
        self.perms = [tuple(range(self.n))]
        for i, order in enumerate(orders):
            image, turned = images[i * self.n:(i + 1) * self.n], self.perms
            for _ in range(order - 1):
                turned = [tuple(image[v] for v in p) for p in turned]
                self.perms = self.perms + turned
        self.logical, self.of_ends = logical, self.index(logical)
        self.physical, self.of_links = physical, self.index(physical)
        self.place = {}     # of an arc: the first of its orbit, and the element that leads to it
        self.members = collections.defaultdict(list)
        for a in range(len(logical)):
            if a not in self.place:
                for e in range(len(self.perms)):
                    self.place[self.move(e, a)] = a, e
                    self.members[a].append((self.move(e, a), e))

    def index(self, arcs):
        found = collections.defaultdict(list)
        for a, arc in enumerate(arcs):
            found[arc["src"], arc["dst"]].append(a)
        return found

    def move(self, e, arc, links=False):
        if e == 0:
            return arc
        p, ends = self.perms[e], (self.physical if links else self.logical)[arc]
        src, dst, found = ends["src"], ends["dst"], self.of_links if links else self.of_ends
        return found[p[src], p[dst]][found[src, dst].index(arc)]

    def back(self, e, arc):
        """Where what takes e to the identity takes an arc."""
        if e == 0:
            return arc
        p, ends = self.perms[e], self.logical[arc]
        k = self.of_ends[ends["src"], ends["dst"]].index(arc)
        return self.of_ends[p.index(ends["src"]), p.index(ends["dst"])][k]


def routes_of(doc, physical, symmetry):
    """{logical arc: [(weight, [physical arc, ...])]}"""
    if not physical:
        return {a: [(1, [a])] for a in range(len(doc["arcs"]))}
    hops = [row["arc"] for row in rows(doc, "hops", {"arc": None})]
    given, routes = collections.defaultdict(list), {}
    at = 0
    for row in rows(doc, "routes", {"arc": None, "hops": None, "weight": 1}):
        given[row["arc"]].append((row["weight"], hops[at:at + row["hops"]]))
        at += row["hops"]
    for first, members in symmetry.members.items():
        with_routes = [a for a, _ in members if a in given]
        if len(with_routes) == len(members):
            routes.update((a, given[a]) for a in with_routes)
        elif with_routes:
            assert with_routes == [first]
            routes.update((a, [(weight, [symmetry.move(e, hop, True) for hop in route])
                               for weight, route in given[first]]) for a, e in members)
    return routes


def brings(arcs, y):
    """Whose sum a transfer brings that reduces or forwards."""
    return arcs[y["arc"]]["src"] if y["op"] == 1 else y["dest"] if y["op"] == 2 else None


def messages_of(doc, symmetry):
    """{(step, arc): (chunks, messages it waits for)}, in order."""
    arcs, pairs = symmetry.logical, doc["collective"] == "all-to-all"
    transfers = sorted(rows(doc, "transfers", {"step": None, "arc": None, "origin": None, "dest": -1,
                                               "first": None, "last": None, "op": 0}),
                       key=lambda x: (x["step"], x["arc"]))
    came, chunks = collections.defaultdict(list), collections.Counter()
    needs = collections.defaultdict(set)    # of the first arc of an orbit
    for x in transfers:
        first, e = symmetry.place[x["arc"]]
        dest = x["dest"] if pairs else -1
        chunks[x["step"], first] += x["last"] - x["first"] + 1
        for y in came[arcs[x["arc"]]["src"], x["origin"], dest]:
            if (y["step"] < x["step"] and y["first"] <= x["last"] and x["first"] <= y["last"] and
                    (x["op"] != 2 or brings(arcs, y) == x["dest"])):
                needs[x["step"], first].add((y["step"], symmetry.back(e, y["arc"])))
        came[arcs[x["arc"]]["dst"], x["origin"], dest].append(x)
    found, last = {}, {}
    for (step, first), n in sorted(chunks.items()):
        for a, e in symmetry.members[first]:
            mine = {(s, symmetry.move(e, b)) for s, b in needs[step, first]}
            if a in last:
                mine.add((last[a], a))
            last[a] = step
            found[step, a] = n, mine
    return dict(sorted(found.items()))


def write_flows(path, alpha, hop, message, bps, size, in_links):
    with open(path) as f:
        doc = json.load(f)
    assert not doc.get("lightpaths")
    logical = arcs_of(doc, "arcs")
    physical = arcs_of(doc, "physical_arcs")
    symmetry = Symmetry(doc, logical, physical)
    routes, links = routes_of(doc, physical, symmetry), physical or logical
    ranks = sum(1 for k in range(doc["nodes"]) if k not in
                {r["node"] for r in rows(doc, "node_kinds", {"node": None, "kind": None})
                 if r["kind"]})
    chunk = size / ranks / doc["chunks"]
    of_arc = collections.defaultdict(list)
    for a, link in enumerate(links):
        latency = hop + link["latency_ns"] if in_links else 0
        print("link", repr(link["cap"] * bps / 8), repr(latency / 1e9))
        of_arc[a].append(a)
    for i, limit in enumerate(rows(doc, "limits", {"cap": None})):
        print("link", repr(limit["cap"] * bps / 8), 0)
        for row in rows(doc, "limit_arcs", {"limit": None, "arc": None}):
            if row["limit"] == i:
                of_arc[row["arc"]].append(len(links) + i)
    messages = messages_of(doc, symmetry)
    number = {m: i for i, m in enumerate(messages)}
    leaving = collections.Counter((step, route[0]) for step, arc in messages
                                  for _, route in routes[arc])
    for (step, arc), (chunks, need) in messages.items():
        print("message", step, *sorted(number[m] for m in need))
        weights = sum(w for w, _ in routes[arc])
        for weight, route in routes[arc]:
            delay = alpha + message * leaving[step, route[0]]
            if not in_links:
                delay += sum(hop + links[a]["latency_ns"] for a in route)
            print("part", repr(delay / 1e9), round(chunk * chunks * weight / weights),
                  *[link for a in route for link in of_arc[a]])


def shortest_paths(out, arcs, src, dst, most=4):
    """Up to `most` shortest paths, as lists of arcs."""
    dist, queue = {src: 0}, collections.deque([src])
    while queue:
        u = queue.popleft()
        for a in out[u]:
            v = arcs[a]["dst"]
            if v not in dist:
                dist[v] = dist[u] + 1
                queue.append(v)
    paths = []

    def back(v, tail):
        if v == src:
            paths.append(tail)
        for a, arc in enumerate(arcs):
            if len(paths) < most and arc["dst"] == v and dist.get(arc["src"], -2) + 1 == dist[v]:
                back(arc["src"], [a] + tail)

    back(dst, [])
    return paths[:most]


def write_doubling(path):
    with open(path) as f:
        doc = json.load(f)
    names = ["src", "dst", "cap", "latency_ns"]
    arcs = [dict(zip(names, arc)) for arc in doc["arcs"]]
    kinds = {u: part["kind"] for part in doc.get("kinds", []) for u in part["nodes"]}
    nodes = doc["nodes"]
    n = nodes - len(kinds)
    holders = n + sum(1 for kind in kinds.values() if kind == "memory")
    limits = doc.get("limits", [])
    out = collections.defaultdict(list)
    for a, arc in enumerate(arcs):
        if arc["src"] != arc["dst"]:
            out[arc["src"]].append(a)
    bits = n.bit_length() - 1
    assert n == 1 << bits
    logical = [[u, u ^ 1 << b] for u in range(n) for b in range(bits)]
    routes, hops, transfers = [], [], []
    for a, (u, v) in enumerate(logical):
        for i, route in enumerate(shortest_paths(out, arcs, u, v)):
            routes.append([a, len(route), 1 + i % 2])
            hops += [[hop] for hop in route]
        b = a % bits
        transfers += [[b, a, o, 0, 0] for o in range(n) if o >> b == u >> b]
    capacity = collections.Counter()
    for arc in arcs:
        capacity[arc["src"], 0] += arc["cap"]
        capacity[arc["dst"], 1] += arc["cap"]
    print(json.dumps({
        "format": "weft-schedule", "version": 2, "collective": "allgather", "nodes": holders,
        "chunks": 1, "ports": max(c for (u, _), c in capacity.items() if u < n),
        "arcs_columns": ["src", "dst"], "arcs": logical,
        "physical": doc.get("topology", ""), "physical_nodes": nodes,
        "physical_arcs_columns": names, "physical_arcs": [arc[:4] for arc in doc["arcs"]],
        "node_kinds_columns": ["node", "kind", "abilities"],
        "node_kinds": [[u, *({"switch": (1, 0), "memory": (2, 5)}[kind])]
                       for u, kind in sorted(kinds.items())],
        "limits_columns": ["cap"], "limits": [[limit["cap"]] for limit in limits],
        "limit_arcs_columns": ["limit", "arc"],
        "limit_arcs": [[i, arc] for i, limit in enumerate(limits) for arc in limit["arcs"]],
        "routing": "explicit",
        "routes_columns": ["arc", "hops", "weight"], "routes": routes,
        "hops_columns": ["arc"], "hops": hops,
        "transfers_columns": ["step", "arc", "origin", "first", "last"], "transfers": transfers,
    }))


# ---- Swing ----

def swing_peer(side, v, i, c):
    """Whom node v exchanges with in step i of collective c: 0 and 1 begin with
    either dimension, 2 and 3 are their mirrors."""
    at = list(divmod(v, side))
    e, rho = (c + i) % 2, (1 - (-2) ** (i // 2 + 1)) // 3
    at[e] = (at[e] + (rho if (at[e] % 2 == 0) == (c < 2) else -rho)) % side
    return at[0] * side + at[1]


def swing_route(side, u, v):
    """The arcs from u to v, which differ in one coordinate; node w has those to the
    next and the previous of its column, then of its row."""
    route, (uy, ux), (vy, vx) = [], divmod(u, side), divmod(v, side)
    stride, port, d = (side, 0, vy - uy) if uy != vy else (1, 2, vx - ux)
    forward = d % side <= side // 2
    for _ in range(d % side if forward else -d % side):
        route.append(4 * u + port + (not forward))
        y, x = divmod(u, side)
        step = 1 if forward else -1
        u = (y + step) % side * side + x if stride > 1 else y * side + (x + step) % side
    assert u == v
    return route


def write_swing(side):
    n, steps, firsts = side * side, 2 * (side.bit_length() - 1), (0, 1, side, side + 1)
    logical = sorted({(v, swing_peer(side, v, i, c)) for v in range(n)
                      for i in range(steps) for c in range(4)})
    number = {arc: a for a, arc in enumerate(logical)}
    routes = [(number[u, v], swing_route(side, u, v)) for u, v in logical if u in firsts]
    transfers = []
    for o in firsts:
        for c in range(4):
            holders = [o]
            for i in reversed(range(steps)):
                pairs = [(v, swing_peer(side, v, i, c)) for v in holders]
                transfers += [[2 * steps - 1 - i, number[v, w], o, c, c, 0] for v, w in pairs]
                transfers += [[i, number[w, v], o, c, c, 1] for v, w in pairs]
                holders += [w for _, w in pairs]
    nodes = [divmod(v, side) for v in range(n)]
    print(json.dumps({
        "format": "weft-schedule", "version": 2, "collective": "allreduce", "nodes": n,
        "chunks": 4, "ports": 4, "arcs_columns": ["src", "dst"], "arcs": logical,
        "physical": f"Torus({side},{side})", "physical_nodes": n,
        "physical_arcs_columns": ["src", "dst"],
        "physical_arcs": [(y * side + x, to) for y, x in nodes for to in
                          ((y + 1) % side * side + x, (y - 1) % side * side + x,
                           y * side + (x + 1) % side, y * side + (x - 1) % side)],
        "generators_columns": ["order"], "generators": [[side // 2]] * 2,
        "images_columns": ["node"],
        "images": [[(y + 2) % side * side + x] for y, x in nodes] +
                  [[y * side + (x + 2) % side] for y, x in nodes],
        "routing": "explicit", "routes_columns": ["arc", "hops"],
        "routes": [[arc, len(route)] for arc, route in routes],
        "hops_columns": ["arc"], "hops": [[hop] for _, route in routes for hop in route],
        "transfers_columns": ["step", "arc", "origin", "first", "last", "op"],
        "transfers": transfers,
    }))


if sys.argv[1] == "flows":
    write_flows(sys.argv[2], *(int(v) for v in sys.argv[3:8]), sys.argv[8:] == ["links"])
elif sys.argv[1] == "swing":
    write_swing(int(sys.argv[2]))
else:
    write_doubling(sys.argv[2])
