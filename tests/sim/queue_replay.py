#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Replays what weftd's store took of jobs in a run of the story queue-random, and judges it.

Reads a trace (weft-sim --story queue-random --seed N --trace) on standard input. Shares no code
with weft. A rule that is broken is a line on standard output, and status 1:

  alone      no host or side of a port is two jobs' at once
  word       a start that was told moves later only while a host is drained, for a job of higher
             priority, for one that was away from its end (weftd was killed, a change hung), or
             for a change that took longer
  kept       who starts does so by the time that he was told last
  renewal    a lease that grows does not pass a start that was told to one of the same hosts
  preempted    only who is preemptible makes room, and for a higher priority
"""
import json
import sys

S = 1_000_000_000
SLACK = S // 2  # clocks of changes that run
KILLED = 30 * S  # until all that hung is over

jobs, drains, broken, reasons = {}, set(), [], {}
killed = [-KILLED]
undrained = -KILLED
told_first = kept = moved = starts = renewals = preempted = queued = 0


def lease_end(j):
    ends = [j["started"] + j["duration"]] if j["duration"] else []
    ends += [j["preempt"]] if j["preempt"] else []
    return min(ends) if ends else None


def fail(rule, j, why):
    broken.append(f"{rule}: job {j['name']} at {j['at'] / S:.3f}: {why}")


def excused(j):
    """Why a start may move later."""
    now = j["at"]
    if drains or now - undrained < S:
        return "drained"
    if now - killed[-1] < KILLED:
        return "killed"
    for o in jobs.values():
        if o["priority"] > j["priority"] and (
                o["state"] == "queued" or o["state"] in ("starting", "running") and o["told"]):
            return "priority"
        if o["state"] in ("running", "ending") and lease_end(o) and lease_end(o) + 2 * S < now + SLACK:
            return "late"
    return None


def take(j):
    global told_first, kept, moved, starts, renewals, preempted, queued
    was = jobs.get(j["id"])
    if was is None:
        queued += 1
        was = dict(j, state="", told=0, claims=[], duration=j["duration"], preempt=0)
    has = ("starting", "running", "ending")
    jobs[j["id"]] = j
    if j["state"] in has and was["state"] not in has:
        for o in jobs.values():
            both = set(o["claims"]) & set(j["claims"])
            if o is not j and o["state"] in has and both and j["name"] != o["name"]:
                fail("alone", j, f"{o['name']} has {sorted(both)}")
    if j["state"] == "queued":
        told_first += bool(j["told"] and not was["told"])
        if was["told"] and (not j["told"] or j["told"] > was["told"]):
            moved += 1
            why = excused(j)
            reasons[why] = reasons.get(why, 0) + 1
            if not why:
                fail("word", j, f"told {was['told'] / S:.3f}, then {j['told'] / S:.3f}")
    if j["state"] == "running" and was["state"] == "starting":
        starts += 1
        if j["told"]:
            kept += 1
            if j["started"] > j["told"] + SLACK and not excused(j):
                fail("kept", j, f"told {j['told'] / S:.3f}, runs at {j['started'] / S:.3f}")
    if j["state"] == was["state"] == "running" and j["duration"] > was["duration"]:
        renewals += 1
        for o in jobs.values():
            if (o["state"] == "queued" and o["told"] and set(o["needs"]) & set(j["claims"]) and
                    j["started"] + j["duration"] > o["told"] and
                    j["started"] + was["duration"] <= o["told"]):
                fail("renewal", j, f"until {(j['started'] + j['duration']) / S:.3f}, "
                     f"{o['name']} was told {o['told'] / S:.3f}")
    if j["state"] == "ending" and j["problem"].startswith("makes room"):
        preempted += was["state"] == "running"
        by = j["problem"].split()[-1]
        above = [o for o in jobs.values() if o["name"] == by and o["priority"] > j["priority"]]
        if not j["preemptible"] or not above:
            fail("preempted", j, j["problem"])


for line in sys.stdin:
    at = line.find("queue row ")
    if at >= 0:
        take(json.loads(line[at + 10:]))
    elif "queue kill " in line:
        killed.append(int(line.split("queue kill ")[1]))
    elif "queue drain " in line:
        drains.add(line.split()[-1])
    elif "queue undrain " in line:
        name, when = line.split()[-2:]
        drains.discard(name)
        undrained = int(when)
for b in broken:
    print(b)
waits = [j["started"] - j["asked"] for j in jobs.values() if j["started"]]
print(f"# {queued} requests, {starts} starts, {told_first} told, {kept} of these started, "
      f"{moved} moved later {reasons}, {renewals} renewals, {preempted} made room, {len(killed) - 1} kills, "
      f"longest wait {max(waits, default=0) / S:.0f} s, {len(broken)} broken")
sys.exit(1 if broken or not starts else 0)
