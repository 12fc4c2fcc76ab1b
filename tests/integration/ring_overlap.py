"""Proves that a ring retuned while others carried data, and in time.

usage: ring_overlap.py SCHEDULE.json TRACE TUNINGS PLAN.json RETUNE CONVERSION
       RATE NODES [SPAN_DELAY]

TRACE is what the emulator said to `light` and then `step` for every step,
TUNINGS what it said to `tunings`; PLAN.json the job as `weft plan` printed
it; times in ns, RATE in bit/s, NODES those of the ring, SPAN_DELAY of light
from a node to the next. Fails unless every
resonator is as the light of its step wants it, none was set while light was
on it, and the steps end no later than the plan says.
"""
import json
import re
import sys
from collections import defaultdict
from fractions import Fraction

DROP = re.compile(r"drop (\d+) node (\d+) (cw|ccw) fibre (\d+) "
                  r"channel (\d+) from (\d+)$")
TUNE = re.compile(r"tune (\d+) node (\d+) (cw|ccw) fibre (\d+) "
                  r"channel (\d+) (add|drop) (on|off) after (-?\d+)$")


def lightpaths(path, nodes):
    """step -> {resonator: on} that its light needs."""
    need = defaultdict(dict)
    for m in filter(None, (DROP.match(x.strip()) for x in open(path))):
        step, to, way, fibre, channel, origin = m.groups()
        node, by = int(origin), 1 if way == "cw" else -1
        place = way, int(fibre), int(channel)
        wants = need[int(step)]
        wants[(node, "add") + place] = True
        node = (node + by) % nodes
        while node != int(to):
            wants[(node, "drop") + place] = False
            wants[(node, "add") + place] = False
            node = (node + by) % nodes
        wants[(node, "drop") + place] = True
    return need


def tunings(path):
    """step -> [(resonator, on, after)]."""
    sets = defaultdict(list)
    for line in open(path):
        m = TUNE.match(line.strip())
        if not m:
            sys.exit("not understood: " + line)
        step, node, way, fibre, channel, kind, on, after = m.groups()
        sets[int(step)].append(((int(node), kind, way, int(fibre),
                                 int(channel)), on == "on", int(after)))
    return sets


def data_times(s, shard_ns, nodes, delay):
    """How long each step's data takes until it has arrived, exactly."""
    load, lights, links = defaultdict(int), defaultdict(int), {}
    ends = [dict(zip(s["arcs_columns"], a)) for a in s["arcs"]]
    for row in s["transfers"]:
        t = dict(zip(s["transfers_columns"], row))
        load[t["step"], t["arc"]] += t["last"] - t["first"] + 1
    for row in s["lightpaths"]:
        t = dict(zip(s["lightpaths_columns"], row))
        lights[t["step"], t["arc"]] += 1
        arc = ends[t["arc"]]
        way = -1 if t["dir"] else 1
        links[t["step"], t["arc"]] = way * (arc["dst"] - arc["src"]) % nodes
    most = defaultdict(int)
    for (step, arc), chunks in load.items():
        share = -(-chunks // lights[step, arc])
        most[step] = max(most[step], share * shard_ns / s["chunks"] +
                         links[step, arc] * delay)
    return [most[k] for k in range(s["steps"])]


def main():
    schedule, trace, tuned, plan = sys.argv[1:5]
    retune, conversion, rate, nodes = map(int, sys.argv[5:9])
    s = json.load(open(schedule))
    job = json.load(open(plan))["jobs"][0]
    shard = -(-job["size_bytes"] // s["nodes"])
    delay = int(sys.argv[9]) if len(sys.argv) > 9 else 0
    data = data_times(s, Fraction(8 * 10**9 * shard, rate), nodes, delay)
    need, sets = lightpaths(trace, nodes), tunings(tuned)
    ends, mode, lit, hidden = [], {}, {}, 0
    for step in range(s["steps"]):
        begin = ends[-1] if ends else Fraction(0)
        for which, on, after in sets[step]:
            if after < lit.get(which, -1) or after >= step:
                sys.exit(f"step {step}: {which} set under light")
            hidden += after < step - 1
            ready = (ends[after] if after >= 0 else 0) + retune
            begin = max(begin, ready)
            mode[which] = on
        for which, on in need[step].items():
            if mode.get(which) != on:
                sys.exit(f"step {step}: {which} is not as light wants it")
            lit[which] = step
        ends.append(begin + data[step] + conversion)
    if ends[-1] > job["time_ns"]:
        sys.exit(f"takes {float(ends[-1])} ns, planned {job['time_ns']}")
    plain = sum(data) + s["steps"] * (retune + conversion)
    if not job["retune_hidden_ns"] or ends[-1] >= plain:
        sys.exit("nothing was hidden")
    print(float(ends[-1]), "ns,", hidden, "set while others carried data")


main()
