# SPDX-License-Identifier: Apache-2.0
"""Replays an all-reduce written as weft-schedule JSON (chunks for ranks' shards, copy 0, reduce 1) with sets of
contributions, a bit a rank, and prints steps and the sum over steps of the fullest arc, in vectors over its capacity."""
import json
import sys

s = json.load(open(sys.argv[1]))
n, chunks = s["nodes"], s["chunks"]
arcs = s["arcs"]
held = [[1 << v] * (n * chunks) for v in range(n)]
by_step = {}
for t in s["transfers"]:
    by_step.setdefault(t[0], []).append(t)
total = 0.0
for step in sorted(by_step):
    load, moves = [0] * len(arcs), []
    for _, arc, origin, first, last, op in by_step[step]:
        load[arc] += last - first + 1
        for c in range(origin * chunks + first, origin * chunks + last + 1):
            moves.append((arcs[arc][0], arcs[arc][1], c, op))
    sent = [held[u][c] for u, _, c, _ in moves]
    for (_, v, c, op), what in zip(moves, sent):
        if op:
            assert held[v][c] & what == 0, "a contribution is summed twice"
        held[v][c] = held[v][c] | what if op else what
        assert op or what == (1 << n) - 1, "a copy that is not complete"
    total += max(x / (arcs[a][2] if len(arcs[a]) > 2 else 1) for a, x in enumerate(load))
full = (1 << n) - 1
assert all(x == full for row in held for x in row), "not everybody has all"
print(len(by_step), "%.6f" % (total / n / chunks))
