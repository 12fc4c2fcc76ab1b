# SPDX-License-Identifier: Apache-2.0
"""Plans collectives on random rings and replays the files, light first: knows weft's formats only.

usage: ring_sweep.py FIRST END

Of plans FIRST..END-1: no two lightpaths of a step share a channel of a link, lightpaths lead from
their arcs' sources to their sinks, what is sent was held when its step began, nothing is summed
twice, all arrives, and it takes the time that was said.
"""
import json
import random
import subprocess
import sys
import tempfile
from bisect import bisect_left
from collections import Counter
from fractions import Fraction

ALPHA, RATE = 25000, 40                 # ns, bits a ns
KINDS = "allgather", "reduce-scatter", "allreduce", "all-to-all", "broadcast"


def rows(s, name):
    return [dict(zip(s[name + "_columns"], row)) for row in s[name]]


def check_light(s, n):
    """Channels of each (step, arc)."""
    taken, width = set(), Counter()
    for light in rows(s, "lightpaths"):
        at, dst = s["arcs"][light["arc"]][:2]
        slot = light["step"], light["dir"], light.get("fibre", 0), light["channel"]
        while at != dst:
            before, at = at, (at + (-1 if light["dir"] else 1)) % n
            link = slot + (at if light["dir"] else before,)
            assert link not in taken, f"two lightpaths on {link}"
            taken.add(link)
        width[light["step"], light["arc"]] += 1
    return width


def initial(s, n):
    """holds[node][shard, piece]: contributions, one for each stretch of chunks."""
    kind, full = s["collective"], (1 << n) - 1
    pieces = range(n) if kind == "all-to-all" else [-1]
    keys = [(o, d) for o in range(n) for d in pieces]
    has = {"allgather": lambda v, o: (o == v) << o, "all-to-all": lambda v, o: (o == v) << o,
           "broadcast": lambda v, o: full * (v == s.get("root", 0))}
    return [{k: has.get(kind, lambda v, o: 1 << v)(v, k[0]) for k in keys} for v in range(n)]


def check_end(s, holds, n):
    kind, full = s["collective"], (1 << n) - 1
    for v, held in enumerate(holds):
        for (o, d), has in held.items():
            if kind in ("allgather", "all-to-all"):
                want = 1 << o if d in (-1, v) and (kind == "allgather" or d != o) else None
            else:
                want = full if kind != "reduce-scatter" or o == v else None
            assert want is None or all(x == want for x in has), f"{v} lacks {o} for {d}"


def replay(s):
    n, width = s["nodes"], check_light(s, s["nodes"])
    sent = sorted(rows(s, "transfers"), key=lambda t: t["step"])
    cuts = sorted({0} | {t["first"] for t in sent} | {t["last"] + 1 for t in sent})
    holds = [{k: [x] * (len(cuts) - 1) for k, x in h.items()} for h in initial(s, n)]
    chunks = Counter()
    while sent:
        step = [t for t in sent if t["step"] == sent[0]["step"]]
        sent, new = sent[len(step):], []
        for t in step:
            src, dst = s["arcs"][t["arc"]][:2]
            key = t["origin"], t.get("dest", -1)
            chunks[t["step"], t["arc"]] += t["last"] + 1 - t["first"]
            for c in range(bisect_left(cuts, t["first"]), bisect_left(cuts, t["last"] + 1)):
                assert holds[src][key][c], f"step {t['step']}: {src} does not hold {key}"
                new.append((dst, key, c, holds[src][key][c], t.get("op", 0)))
        for dst, key, c, x, adds in new:
            assert not adds or not holds[dst][key][c] & x, f"{key} is summed twice at {dst}"
            holds[dst][key][c] = holds[dst][key][c] | x if adds else x
    check_end(s, holds, n)
    longest = Counter()
    for (step, arc), count in chunks.items():
        longest[step] = max(longest[step], -(-count // width[step, arc]))
    return sum(longest.values()), s["steps"]


def one(number, folder):
    rng = random.Random(number)
    kind = KINDS[number % len(KINDS)]
    n, w = rng.randint(2, 20 if kind == "all-to-all" else 40), rng.choice((1, 2, 3, 8, 16, 64))
    size = rng.choice((1, 64, 1000, 4000, 64000, 1000000))
    line = rng.random() < 0.2
    loss = ["--loss", f"launch=0dBm,sensitivity=-{rng.randint(8, 30)}dBm,pass-by=0.1dB"]
    call = ["weft", "ring", "plan", "-n", str(n), "-w", str(w), "--size", f"{size}B",
            "--collective", kind, "--format", "json", "-o", folder + "/s.json"]
    call += ["--segment"] * line + (loss if rng.random() < 0.2 else [])
    done = subprocess.run(call, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          check=False)
    if "reach: 0 hops" in done.stderr:
        return False
    assert done.returncode == 0, done.stderr
    plan, s = json.loads(done.stdout), json.load(open(folder + "/s.json"))
    longest, steps = replay(s)
    time = steps * ALPHA + Fraction(longest * size * 8, s["chunks"] * RATE)
    said = plan["time_ns"]
    assert time <= said < time * (Fraction(11, 10) if line else 1) + 2, f"{float(time)}, not {said}"
    assert plan["bound_ns"] <= said and plan["steps"] == steps
    return True


def main():
    replayed = 0
    with tempfile.TemporaryDirectory() as folder:
        for number in range(int(sys.argv[1]), int(sys.argv[2])):
            try:
                replayed += one(number, folder)
            except AssertionError as e:
                sys.exit(f"plan {number}: {e}")
    print(replayed, "replayed")


main()
