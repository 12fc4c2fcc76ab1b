# SPDX-License-Identifier: Apache-2.0
"""Replays an all-reduce written as weft-schedule JSON (chunks for ranks' shards, copy 0, reduce 1, forward 2 of the sum
that came from a rank) with sets of contributions, a bit a rank, and prints steps and the sum over steps of the fullest
arc, in vectors over its capacity. A compact one is written out first, by the products of its generators."""
import json
import sys

s = json.load(open(sys.argv[1]))
n, chunks = s["nodes"], s["chunks"]
arcs = s["arcs"]
came = {}
by_step = {}
orders = [g[0] for g in s.get("generators", [])]
images = [g[0] for g in s.get("images", [])]
elements = [list(range(n))]
for i, order in enumerate(orders):
    powers = [list(range(n))]
    for _ in range(order - 1):
        powers.append([images[i * n + v] for v in powers[-1]])
    elements = [[p[v] for v in e] for e in elements for p in powers]
number = {(a[0], a[1]): i for i, a in enumerate(arcs)}
for t in s["transfers"]:
    for e in elements:
        arc = number[e[arcs[t[1]][0]], e[arcs[t[1]][1]]] if orders else t[1]
        by_step.setdefault(t[0], []).append([t[0], arc, e[t[2]], *t[3:6], *(e[v] for v in t[6:7])])
# Chunks that no transfer takes apart are one piece, which begins where one of these is.
cuts = sorted({0} | {m[2] * chunks + m[i] + i - 3 for moves in by_step.values() for m in moves for i in (3, 4)})
piece = {c: i for i, c in enumerate(cuts)}
pieces = len(cuts) - (cuts[-1] == n * chunks)
held = [[1 << v] * pieces for v in range(n)]
total = 0.0
for step in sorted(by_step):
    load, moves = [0] * len(arcs), []
    for _, arc, origin, first, last, op, *of in by_step[step]:
        load[arc] += last - first + 1
        for c in range(piece[origin * chunks + first], piece[origin * chunks + last + 1]):
            moves.append((arcs[arc][0], arcs[arc][1], c, op, of[0] if op == 2 else arcs[arc][0]))
    sent = [came[u, of, c] if op == 2 else held[u][c] for u, _, c, op, of in moves]
    for (_, v, c, op, of), what in zip(moves, sent):
        came[v, of, c] = what
        if op:
            assert held[v][c] & what == 0, "a contribution is summed twice"
        held[v][c] = held[v][c] | what if op else what
        assert op or what == (1 << n) - 1, "a copy that is not complete"
    total += max(x / (arcs[a][2] if len(arcs[a]) > 2 else 1) for a, x in enumerate(load))
full = (1 << n) - 1
assert all(x == full for row in held for x in row), "not everybody has all"
print(len(by_step), "%.6f" % (total / n / chunks))
