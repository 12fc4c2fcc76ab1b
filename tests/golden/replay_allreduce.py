# SPDX-License-Identifier: Apache-2.0
"""Replays an all-reduce written as weft-schedule JSON (chunks for ranks' shards, copy 0, reduce 1, forward 2 of the sum
that came from a rank, or under a number) with sets of contributions, a bit a rank, and prints steps and the sum over
steps of the fullest arc, in vectors over its capacity. A compact one is written out first, by the products of its
generators, and one whose shards move alike for all shards. What is kept under one number at its head is one message;
numbers above the ranks are of sums that are only kept, the last takes the place of what the head contributed."""
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
columns = s["transfers_columns"]
kept_at = columns.index("kept_as") if "kept_as" in columns else None
shards = range(n) if s.get("alike") else [0]
for t in s["transfers"]:
    t, kept = (t[:kept_at], t[kept_at]) if kept_at is not None else (t, 0)
    for shard in shards:
        if kept or s.get("alike"):
            by_step.setdefault(t[0], []).append([t[0], t[1], t[2] + shard, *t[3:6], *(t[6:7] or [0]), kept])
    for e in elements if not kept and not s.get("alike") else []:
        arc = number[e[arcs[t[1]][0]], e[arcs[t[1]][1]]] if orders else t[1]
        by_step.setdefault(t[0], []).append([t[0], arc, e[t[2]], *t[3:6], *(e[v] for v in t[6:7])])
# Chunks that no transfer takes apart are one piece, which begins where one of these is.
cuts = sorted({0} | {m[2] * chunks + m[i] + i - 3 for moves in by_step.values() for m in moves for i in (3, 4)})
piece = {c: i for i, c in enumerate(cuts)}
pieces = len(cuts) - (cuts[-1] == n * chunks)
size = [b - a for a, b in zip(cuts, cuts[1:] + [n * chunks])]
held = [[1 << v] * pieces for v in range(n)]
given = set()
total = 0.0
for step in sorted(by_step):
    load, moves, messages = [0] * len(arcs), [], set()
    for _, arc, origin, first, last, op, *of in by_step[step]:
        kept = of[1] if len(of) > 1 else 0
        for c in range(piece[origin * chunks + first], piece[origin * chunks + last + 1]):
            load[arc] += 0 if kept and (arc, c, kept) in messages else size[c]
            messages.add((arc, c, kept))
            whose = of[0] if op == 2 else arcs[arc][0]
            moves.append((arcs[arc][0], arcs[arc][1], c, op, whose, (kept - 1) % n if kept else whose, kept))
    sent = [came[u, of, c] if op == 2 else held[u][c] for u, _, c, op, of, _, _ in moves]
    for (_, v, c, op, of, under, kept), what in zip(moves, sent):
        if kept == 2 * n + 1 and (v, c) not in given:
            given.add((v, c))
            held[v][c] = 0
        if kept <= 2 * n:
            before = came.get((v, under, c), 0) if kept else 0
            assert before & what == 0, "a contribution is kept twice"
            came[v, under, c] = what | before
        if n < kept <= 2 * n:
            continue
        assert not op or (kept > n) == ((v, c) in given), "own and whole mix"
        if op:
            assert held[v][c] & what == 0, "a contribution is summed twice"
        held[v][c] = held[v][c] | what if op else what
        assert op or what == (1 << n) - 1, "a copy that is not complete"
    total += max(x / (arcs[a][2] if len(arcs[a]) > 2 else 1) for a, x in enumerate(load))
full = (1 << n) - 1
assert all(x == full for row in held for x in row), "not everybody has all"
print(len(by_step), "%.6f" % (total / n / chunks))
