# SPDX-License-Identifier: Apache-2.0
"""Compares dry runs with what was sent: DATABASE FOLDER NAME...

FOLDER/NAME.json is the dry run of the n-th change. Its lines must be among the
commands to each device, in this order and all of them; what else was sent must
be a reading: a command that was also sent before some change had begun. The
frames of mrr-reg go to slots that are chosen when they are sent: there the
bytes of programs are compared."""
import json
import re
import sqlite3
import sys

DB, FOLDER, NAMES = sys.argv[1], sys.argv[2], sys.argv[3:]


def plain(line):
    """Without the tag of a TL1 command."""
    return re.sub(r"(?i)^([A-Z-]+(?::[^:]*){2}:)[0-9]+(?=[:;])", r"\1TAG", line)


def sent(db, change, device):
    """Commands before the check was over, and those after it."""
    rows = db.execute(
        "SELECT kind, text FROM audit WHERE change = ? AND device = ? "
        "AND kind != 'reply' ORDER BY id", (change, device)).fetchall()
    at = next((i for i, r in enumerate(rows)
               if r == ("event", "as the plan expects")), 0)
    return ([plain(t) for k, t in rows[:at] if k == "command"],
            [plain(t) for k, t in rows[at:] if k == "command"])


def shadow_bytes(lines, pattern):
    return sum(int(m[1]) for m in map(re.compile(pattern).match, lines) if m)


def compare_ring(device, dry, commands):
    shown = shadow_bytes(dry, r"a slot for .* (\d+) bytes, CRC")
    wrote = shadow_bytes(commands, r"write page [4-7].* bytes (\d+)$")
    return [] if shown == wrote > 0 else [
        f"{device}: programs of {shown} bytes shown, {wrote} written"]


def compare(device, dry, reads, commands):
    """What is wrong, as texts."""
    bad, at = [], 0
    for line in commands:
        if at < len(dry) and line == dry[at]:
            at += 1
        elif line not in reads:
            bad.append(f"{device}: sent and not shown: {line}")
    if at < len(dry):
        bad.append(f"{device}: shown and not sent: {dry[at]}")
    return bad


def main():
    db = sqlite3.connect(DB)
    changes = [r[0] for r in db.execute("SELECT id FROM change ORDER BY id")]
    bad, plans = [], []
    if len(changes) != len(NAMES):
        bad.append(f"{len(changes)} changes, not {len(NAMES)}")
    for name in NAMES:
        with open(f"{FOLDER}/{name}.json") as f:
            plans.append(json.load(f))
    for d in plans[0]["devices"]:
        reads = {line for c in changes for line in sent(db, c, d["name"])[0]}
        for name, change, plan in zip(NAMES, changes, plans):
            moves = next(m["add"] or m["delete"] or m["load_program"]
                         for m in plan["devices"] if m["name"] == d["name"])
            dry = [plain(line) for b in plan["commands"]
                   if b["device"] == d["name"] for line in b["lines"]]
            if bool(dry) != bool(moves):
                bad.append(f"{name}: {d['name']}: {len(dry)} lines shown")
                continue
            commands = sent(db, change, d["name"])[1]
            bad += [name + ": " + b for b in (
                compare_ring(d["name"], dry, commands) if d["kind"] == "ring"
                and dry else compare(d["name"], dry, reads, commands))]
    for text in bad:
        print("#", text)
    return 1 if bad or not changes else 0


sys.exit(main())
