# SPDX-License-Identifier: Apache-2.0
"""Carries out what `weft rwa change` says on a network of its own.

usage: rwa_change.py simulate INSTANCE OLD NEW CHANGE    four JSON files
       rwa_change.py random WEFT FOLDER COUNT [SEED]     random changes

The simulator knows the rules of docs/rwa.md and nothing of weft: it lights what
OLD has, does each step as it is written, and looks at every moment for two
lightpaths on one slot, for a broken rule, and for a lightpath that is dark
without need. In the end exactly the lightpaths of NEW are active.
"""
import heapq
import json
import os
import random
import subprocess
import sys
from collections import Counter


class Broken(Exception):
    """A step that cannot be carried out, or should not."""


def need(good, *what):
    if not good:
        raise Broken(" ".join(str(w) for w in what))


def channels_of(text):
    """"0-7,9" as a set."""
    out = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        out |= set(range(int(first), int(last or first) + 1))
    return out


class Network:
    """What an instance says: fibres, losses, rules."""

    def __init__(self, instance):
        self.node = {n["name"]: n for n in instance["nodes"]}
        self.fibres, self.loss, self.domain = {}, {}, {}
        for link in instance["links"]:
            ends = [(link["from"], link["to"])]
            if link.get("duplex", True):
                ends.append((link["to"], link["from"]))
            for e in ends:
                self.fibres[e] = link.get("fibres", 1)
                self.loss[e] = link.get("loss_mdb", 0)
                self.domain[e] = link.get("domain", "-")
        guard = instance.get("guard", {})
        self.between = guard.get("between", 0)
        self.below, self.above = guard.get("below", 0), guard.get("above", 0)
        self.in_use = instance.get("in_use", [])
        self.budget = instance.get("budget_mdb")
        self.tune = {n: channels_of(v["tune"])
                     for n, v in self.node.items() if "tune" in v}

    def shut(self, arc, fibre, channel):
        """Others are there, or too near."""
        for b in self.in_use:
            if (b["from"], b["to"]) != arc or b.get("fibre", fibre) != fibre:
                continue
            if abs(b.get("channel", channel) - channel) <= self.between:
                return True
        return False

    def reaches(self, node, channel):
        return node not in self.tune or channel in self.tune[node]

    def converts(self, node):
        return self.node[node].get("convert", False)

    def passing(self, node):
        return self.node[node].get("pass_mdb", 0)


def slots(src, hops):
    """[(arc, fibre, channel)] of a route."""
    out = []
    for h in hops:
        out.append(((src, h["to"]), h["fibre"], h["channel"]))
        src = h["to"]
    return out


def links(route):
    return {frozenset(arc) for arc, _, _ in route}


class Lightpath:
    def __init__(self, src, dst):
        self.src, self.dst = src, dst
        self.now, self.goal = [], []    # slots; none: dark
        self.begun = self.rerouted = False
        self.partner = self.dark_since = None

    def waits(self):
        return self.now != self.goal


class Simulator:
    def __init__(self, instance, old, new, change):
        self.net = Network(instance)
        self.channels = change["channels"]
        self.by_old, self.by_new, self.cuts = {}, {}, []
        self.all = []
        self.read(old["lightpaths"], self.by_old, None, "now")
        self.join(change)
        self.read(new["lightpaths"], self.by_new, self.of_new, "goal")
        self.pair(old["lightpaths"], self.by_old)
        self.pair(new["lightpaths"], self.by_new)
        self.owner = {s: p for p in self.all for s in p.now}
        need(len(self.owner) == sum(len(p.now) for p in self.all), "OLD clashes")

    def read(self, file, ids, known, what):
        """Lightpaths of a file by id; known: those of the new ids that go on."""
        for k, light in enumerate(file):
            name = light.get("id", str(k))
            p = (known or {}).get(name)
            if p is None:
                p = Lightpath(light["from"], light["to"])
                self.all.append(p)
            need((p.src, p.dst) == (light["from"], light["to"]), name, "other ends")
            need(name not in ids, name, "twice")
            setattr(p, what, slots(p.src, light["hops"]))
            p.begun |= what == "now"
            ids[name] = p

    def join(self, change):
        """Which lightpath of OLD has which id in NEW: as the steps say, or kept,
        with its id or renamed."""
        self.of_new = {}
        new_of = {}
        for row in change["steps"] + change["renamed"]:
            if row["old_id"] is not None:
                need(new_of.setdefault(row["old_id"], row["new_id"]) == row["new_id"],
                     "two new ids of", row["old_id"])
        for old, p in self.by_old.items():
            new = new_of.get(old, old)
            need(new not in self.of_new, "two old ids of", new)
            if new is not None:
                self.of_new[new] = p

    def pair(self, file, ids):
        lights = [ids[light.get("id", str(k))] for k, light in enumerate(file)]
        for k, light in enumerate(file):
            if light.get("role") == "backup":
                for p, q in ((lights[k - 1], lights[k]), (lights[k], lights[k - 1])):
                    need(p.partner in (None, q), "a pair was parted")
                    p.partner = q

    # ---- rules ----

    def near(self, slot, others):
        arc, fibre, channel = slot
        return any((arc, fibre, channel + k) in others
                   for k in range(-self.net.between, self.net.between + 1))

    def free(self, slot):
        return not self.near(slot, self.owner)

    def may_begin(self, p):
        """Neither end has as many lightpaths as it can hold."""
        for node, key, end in ((p.src, "add", "src"), (p.dst, "drop", "dst")):
            limit = self.net.node[node].get(key)
            have = sum(q.begun and getattr(q, end) == node for q in self.all)
            if limit is not None and not p.begun and have >= limit:
                return False
        return True

    def meets_partner(self, p, route):
        return p.partner is not None and bool(links(route) & links(p.partner.now))

    def check_route(self, p, route):
        net, at, loss = self.net, p.src, 0
        for k, (arc, fibre, channel) in enumerate(route):
            need(arc[0] == at and fibre < net.fibres.get(arc, 0), "no such fibre")
            need(net.below <= channel < self.channels - net.above, "no such channel")
            need(not net.shut(arc, fibre, channel), "others are there")
            need(self.free((arc, fibre, channel)), "the slot is taken")
            need(not k or channel == route[k - 1][2] or net.converts(at),
                 "the channel changes")
            loss += net.loss[arc] + (net.passing(at) if k else 0)
            at = arc[1]
        need(at == p.dst, "the route ends elsewhere")
        need(net.reaches(p.src, route[0][2]) and net.reaches(at, route[-1][2]),
             "not reached by transceivers")
        need(net.budget is None or loss <= net.budget, "too much loss")
        need(not self.meets_partner(p, route), "meets its partner")
        for k, slot in enumerate(route):
            need(not self.near(slot, route[:k]), "too near to itself")

    def movable(self, p):
        return all(self.free(s) for s in p.goal) and self.may_begin(p) and \
            not self.meets_partner(p, p.goal)

    def spare(self, p):
        """Is there any route that is free and clear of the goal? Least loss over
        (node, channel); channels change only where there are no guards."""
        net, avoid = self.net, links(p.partner.now) if p.partner else set()
        heap = [(0, p.src, c) for c in range(net.below, self.channels - net.above)
                if net.reaches(p.src, c)]
        done = set()
        while heap:
            loss, at, c = heapq.heappop(heap)
            if (at, c) in done:
                continue
            done.add((at, c))
            if at == p.dst:
                if net.reaches(at, c):
                    return net.budget is None or loss <= net.budget
                continue
            cs = [c]
            if net.converts(at) and not net.between and at != p.src:
                cs = range(net.below, self.channels - net.above)
            for arc, fibres in net.fibres.items():
                if arc[0] != at or frozenset(arc) in avoid:
                    continue
                more = net.loss[arc] + (net.passing(at) if at != p.src else 0)
                for d in cs:
                    if any(self.free((arc, f, d)) and not net.shut(arc, f, d) and
                           not self.near((arc, f, d), p.goal) for f in range(fibres)):
                        heapq.heappush(heap, (loss + more, arc[1], d))
        return False

    def check_cut(self):
        """No one that there is could move, and no one who was not rerouted has a
        spare route."""
        for p in self.all:
            if p.waits() and p.begun:
                need(not self.movable(p), "a cut, and another could move")
                need(not p.now or p.rerouted or not self.spare(p),
                     "a cut, and", p.src, p.dst, "has a spare route")

    # ---- steps ----

    def find(self, step):
        if step["old_id"] is not None:
            return self.by_old[step["old_id"]]
        return self.by_new[step["new_id"]]

    def do(self, at, step):
        p = self.find(step)
        kind = step["do"]
        old, new = (slots(p.src, step[k]) for k in ("old_route", "new_route"))
        need(old == p.now, "it is not there")
        need((step["from"], step["to"]) == (p.src, p.dst), "other ends")
        need(bool(old) == (kind != "add"), "dark, or not")
        need(bool(new) == (kind not in ("drop", "cut")), "a route, or none")
        if kind == "drop":
            need(not p.goal, "it is wanted")
        if kind == "cut":
            need(p.goal, "it is not wanted")
            self.check_cut()
            p.dark_since = at
        if kind in ("add", "move"):
            need(new == p.goal, "it goes elsewhere")
            need(self.may_begin(p), "too many there")
        if kind == "add":
            need(not p.begun or p.dark_since is not None, "it was dark unasked")
            if p.dark_since is not None:
                self.cuts.append((p, p.dark_since, at - p.dark_since))
        if kind == "reroute":
            need(not any(self.near(s, p.goal) for s in new), "in its own way")
        if new:
            self.check_route(p, new)
        for s in old:
            del self.owner[s]
        for s in new:
            self.owner[s] = p
        p.now, p.begun = new, kind != "drop"
        p.rerouted |= kind == "reroute"

    def run(self, change):
        for at, step in enumerate(change["steps"]):
            try:
                need(step["step"] == at, "number")
                self.do(at, step)
            except Broken as e:
                raise Broken(f"step {at} ({step['do']} {step['old_id']} "
                             f"{step['new_id']}): {e}") from None
        need(all(not p.waits() for p in self.all), "the end is not NEW")
        told = [(self.find(c), c["after_step"], c["steps"])
                for c in change["interruptions"]]
        need(told == self.cuts, "interruptions")


def simulate(instance, old, new, change):
    sim = Simulator(instance, old, new, change)
    sim.run(change)
    return Counter(s["do"] for s in change["steps"])


# ---- random changes ----

def random_instance(r):
    """A ring with chords, with some of all that an instance may have."""
    n = r.randint(4, 8)
    names = [f"n{k}" for k in range(n)]
    nodes = [{"name": x} for x in names]
    pairs = {(k, (k + 1) % n) for k in range(n)}
    for _ in range(r.randint(0, n // 2)):
        a, b = sorted(r.sample(range(n), 2))
        if (b, a) not in pairs:
            pairs.add((a, b))
    out = {"nodes": nodes, "links": []}
    loss = r.random() < 0.3
    for a, b in sorted(pairs):
        link = {"from": names[a], "to": names[b], "fibres": r.choice((1, 1, 1, 2))}
        if loss:
            link["loss_mdb"] = r.randint(1, 6) * 500
        if r.random() < 0.8:
            link["domain"] = r.choice(("north", "south", "cellar"))
        out["links"].append(link)
    if loss:
        out["budget_mdb"] = 500 * r.randint(4 * n, 6 * n)
        for x in nodes:
            x["pass_mdb"] = r.choice((0, 500))
    if r.random() < 0.25:
        out["guard"] = {"between": r.randint(1, 2), "below": r.randint(0, 1),
                        "above": r.randint(0, 1)}
    for x in nodes:
        if r.random() < 0.3:
            x["convert"] = True
    return out


def random_demands(r, instance):
    names = [x["name"] for x in instance["nodes"]]
    out = []
    for _ in range(r.randint(len(names), 4 * len(names))):
        a, b = r.sample(names, 2)
        out.append({"from": a, "to": b, "protect": r.random() < 0.2})
    return out


def mutate(r, demands, instance):
    kept = [d for d in demands if r.random() < 0.85]
    return kept + random_demands(r, instance)[:len(demands) // 6]


def as_weft(instance, demands):
    """Quantities as the file wants them; same demands are one with a count."""
    out = json.loads(json.dumps(instance))
    for x in out["nodes"] + out["links"]:
        for key in ("loss", "pass"):
            if key + "_mdb" in x:
                x[key] = f"{x.pop(key + '_mdb') / 1000}dB"
    if "budget_mdb" in out:
        out["budget"] = {"launch": f"{out.pop('budget_mdb') / 1000}dBm",
                         "sensitivity": "0dBm"}
    out["demands"] = demands
    return out


def weft(*args):
    run = subprocess.run(args, capture_output=True, text=True, check=False)
    return run.returncode, run.stdout, run.stderr


def write(path, value):
    with open(path, "w", encoding="utf-8") as f:
        json.dump(value, f)


def read(path):
    with open(path, encoding="utf-8") as f:
        return json.load(f)


def strip_ids(r, path):
    """Some files have names of their own, or none."""
    file = read(path)
    how = r.choice(("as it is", "none", "names"))
    for k, light in enumerate(file["lightpaths"]):
        if how == "none":
            del light["id"]
        elif how == "names":
            light["id"] = f"circuit {7 * k % 1009} {light['from']}"
    write(path, file)
    return file


def restrict(r, instance, files):
    """Rules that both assignments happen to keep: limits, tuning ranges, fibres
    and channels that no one uses."""
    lights = [f["lightpaths"] for f in files]
    used = {s for v in lights for p in v for s in slots(p["from"], p["hops"])}
    top = 1 + max(c for _, _, c in used)
    for x in instance["nodes"]:
        ends = [(p["hops"][0 if p["from"] == x["name"] else -1]["channel"])
                for v in lights for p in v if x["name"] in (p["from"], p["to"])]
        if r.random() < 0.2 and ends:
            x["tune"] = f"{min(ends)}-{max(ends)}"
        for key, end in (("add", "from"), ("drop", "to")):
            if r.random() < 0.2:
                x[key] = max(sum(p[end] == x["name"] for p in v) for v in lights)
    arcs = Network(instance).fibres
    for arc, fibres in arcs.items():
        slot = (arc, r.randrange(fibres), r.randrange(top))
        reach = instance.get("guard", {}).get("between", 0)
        if r.random() < 0.2 and not any((*slot[:2], slot[2] + k) in used
                                        for k in range(-reach, reach + 1)):
            instance.setdefault("in_use", []).append(
                {"from": arc[0], "to": arc[1], "fibre": slot[1], "channel": slot[2]})
    return top


def one(r, program, folder):
    instance = random_instance(r)
    demands = random_demands(r, instance)
    paths = [os.path.join(folder, x) for x in ("i.json", "old.json", "new.json")]
    files = []
    for path in paths[1:]:
        write(paths[0], as_weft(instance, demands))
        code, _, err = weft(program, "rwa", "solve", paths[0], "-o", path, "--seed",
                            str(r.randrange(1000)), "--time-limit", "0s")
        if code:
            # A budget or pairs that leave no way.
            need(any(x in err for x in ("two paths without", "budget", "more would not help")),
                 "solve:", err)
            return None
        files.append(strip_ids(r, path))
        demands = mutate(r, demands, instance)
    top = restrict(r, instance, files)
    write(paths[0], as_weft(instance, []))
    args = [program, "rwa", "change", *paths, "--format", "json"]
    if r.random() < 0.5:
        args.append("--by-domain")
    if r.random() < 0.5:
        above = instance.get("guard", {}).get("above", 0)
        args += ["--channels", str(top + above + r.randint(0, 2))]
    code, out, err = weft(*args)
    need(code == 0, "change:", err)
    change = json.loads(out)
    kinds = simulate(instance, *files, change)
    if change["steps"]:
        see_faults(r, instance, files, change)
    return kinds


def see_faults(r, instance, files, change):
    """A simulator that takes everything shows nothing."""
    steps = change["steps"]
    at = r.randrange(len(steps))
    route = "new_route" if steps[at]["new_route"] else "old_route"
    other = json.loads(json.dumps(steps[at]))
    other[route][-1]["channel"] += 1
    dark = dict(steps[at], do="cut", new_route=[])
    for what, wrong in (("a step less", steps[:at] + steps[at + 1:]),
                        ("a step again", steps[:at + 1] + steps[at:]),
                        ("another channel", steps[:at] + [other] + steps[at + 1:]),
                        ("dark at first", steps[:at] + [dark] + steps[at:])):
        try:
            simulate(instance, *files, dict(change, steps=[
                dict(s, step=k) for k, s in enumerate(wrong)]))
        except Broken:
            continue
        raise Broken(f"{what}: not seen")


def random_changes(program, folder, count, seed=1):
    total, done, k = Counter(), 0, 0
    while done < int(count):
        r = random.Random(f"{seed}/{k}")
        k += 1
        try:
            kinds = one(r, program, folder)
        except Broken as e:
            print(f"random change {k - 1} of seed {seed}: {e}")
            return 1
        if kinds:
            total += kinds
            done += 1
    print(f"{done} changes:", ", ".join(f"{n} {x}" for x, n in sorted(total.items())))
    return 0


def main(argv):
    if argv[1:2] == ["random"]:
        return random_changes(*argv[2:])
    try:
        print(dict(simulate(*(read(x) for x in argv[2:6]))))
    except Broken as e:
        print(e)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
