#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Sets each fault of a table and compares what everyone says with it; see tests/data/faults.txt.

fault_table.py TABLE FOLDER FABRIC METRICS PAGE DEVICE=CONTROL...
With WEFT_SHARD=K/N every N-th row from the K-th on. With FAULTS=REGEX those that match. With
FAULTS_SHOW=1 prints the row that is seen, in the form of the table. Prints TAP lines.
"""
import json
import os
import re
import socket
import subprocess
import sys
import time
import urllib.request

TABLE, FOLDER, FABRIC, METRICS, PAGE = sys.argv[1:6]
CONTROL = dict(a.split("=", 1) for a in sys.argv[6:])
WAIT_S = 10
LEVELS = ["none", "unverified", "acked", "read-back", "settled", "measured", "neighbour", "error-free"]
COLUMNS = ["status", "diff", "metrics", "events", "page", "plan", "schedule"]
# Jobs whose schedules are asked for, with the arcs that they have.
ARCS = {"sum": 8, "swap": 8, "loss": 8, "made": 8, "power": 8, "links": 8, "left": None,
        "right": None}


def weft(*args):
    done = subprocess.run(["weft", *args], capture_output=True, text=True, timeout=60,
                          stdin=subprocess.DEVNULL)
    return done.returncode, done.stdout, done.stderr


def get(url):
    with urllib.request.urlopen(url, timeout=10) as answer:
        return answer.read().decode()


# ---- faults ----------------------------------------------------------------------

def control(device, line):
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(10)
        s.connect(CONTROL[device])
        s.sendall((line + "\n").encode())
        s.shutdown(socket.SHUT_WR)
        answer = b""
        while part := s.recv(65536):
            answer += part
    assert b"error" not in answer, (device, line, answer)
    return answer.decode()


def within(namespace, *command):
    subprocess.run(["nsenter", f"--net=/run/netns/weft.{FABRIC}.{namespace}", *command], check=True)


def wiring(find, put):
    path = f"{FOLDER}/plant/wiring"
    with open(path, encoding="ascii") as f:
        text = f.read()
    assert find in text, find
    with open(path + ".new", "w", encoding="ascii") as f:
        f.write(text.replace(find, put))
    os.rename(path + ".new", path)


def set_fault(step):
    """Does one step; returns what takes it back."""
    who, what = step.split(None, 1)
    words = what.split()
    if who == "link":       # link HOST NETDEV: goes down
        within(words[0], "ip", "link", "set", words[1], "down")
        return lambda: within(words[0], "ip", "link", "set", words[1], "up")
    if who == "misroute":   # misroute FROM TO: of net0, behind the driver's back
        out, to = (f"out{n}" for n in words)
        within("net0", "tc", "qdisc", "add", "dev", out, "clsact")
        within("net0", "tc", "filter", "add", "dev", out, "egress", "u32", "match", "u32", "0",
               "0", "action", "mirred", "egress", "redirect", "dev", to)
        return lambda: within("net0", "tc", "qdisc", "del", "dev", out, "clsact")
    if who == "wiring":     # wiring TEXT > TEXT
        find, put = (x.strip() for x in what.split(">"))
        wiring(find, put)
        return lambda: wiring(put, find)
    if who == "weft":       # weft COMMAND; undone by "undrain"
        weft(*words)
        return lambda: weft("un" + words[0], *words[1:])
    if who == "file":       # file KEY: VALUE: applied with it
        with open(f"{FOLDER}/f.yaml", encoding="utf-8") as f:
            text = f.read() + what + "\n"
        with open(f"{FOLDER}/more.yaml", "w", encoding="utf-8") as f:
            f.write(text)
        weft("apply", "-f", f"{FOLDER}/more.yaml")
        return lambda: weft("apply", "-f", f"{FOLDER}/f.yaml")
    if words[0] == "fault":
        control(who, what)
        if words[1] == "reset=1":
            return lambda: weft("apply")
        return lambda: control(who, "clear")
    before = [line.replace(" ", "") for line in control(who, "map").splitlines() if "," in line]
    control(who, what)

    def back():
        control(who, "unset")
        for circuit in before:
            control(who, "set " + circuit)
    return back


# ---- what is said ------------------------------------------------------------------

class Seen:
    """What all say now; each column as text in the table's form."""

    def __init__(self, since):
        self.diff_code, text, _ = weft("diff", "--format", "json")
        self.diff_json = json.loads(text)
        self.status_json = json.loads(weft("status", "--format", "json")[1])
        self.page_json = json.loads(get(PAGE + "state.json"))
        self.samples = []
        for line in get(f"http://{METRICS}/metrics").splitlines():
            m = re.match(r"(\w+)\{(\w+)=\"([^\"]*)\"\} ([0-9.e+-]+)$", line)
            if m:
                self.samples.append((m[1], m[3], float(m[4])))
        self.since = since
        self.bad = {j["name"]: j for j in self.status_json["jobs"] if j["health"] != "up"}

    @staticmethod
    def problem_texts(problems):
        names = []
        for p in problems:
            if not p["kind"].startswith("job-"):
                names.append(p["kind"] + (f"={p['count']}" if p["count"] > 1 else ""))
        return sorted(names)

    def status(self):
        jobs = [f"{n}:{j['health']}" + (f"@{100 * j['rate']:.0f}" if j["health"] != "unverified"
                                        else "") for n, j in sorted(self.bad.items())]
        return jobs + self.problem_texts(self.status_json["problems"])

    def diff(self):
        words = [str(self.diff_code)]
        for d in self.diff_json["devices"]:
            for what in ("missing", "unexpected", "dark"):
                if d[what]:
                    words.append(f"{d['name']}:{what}={len(d[what])}")
            program = d.get("program")
            if program and not program["equal"]:
                words.append(f"{d['name']}:program")
        return words

    def metric(self, name, short, labelled=True):
        return [f"{short}:{label}={value:g}" if labelled else f"{short}:{label}"
                for n, label, value in self.samples if n == name and value]

    def metrics(self):
        return (self.metric("weft_dark_circuits", "dark") + self.metric("weft_lossy_circuits", "lossy") +
                self.metric("weft_device_failed_ports", "ports") +
                self.metric("weft_ring_failed_parts", "parts") +
                sorted(self.metric("weft_job_degraded", "degraded", False)))

    def events(self):
        kinds = set()
        with open(f"{FOLDER}/events", encoding="utf-8") as f:
            f.seek(self.since)
            for line in f:
                try:
                    kinds.add(json.loads(line)["kind"])
                except ValueError:
                    break   # not written to its end yet
        return sorted(kinds - {"job", "resync", "external-change", "apply-started", "apply-ended"})

    def page(self):
        """Rates of jobs in the newest sample of the page's charts, in 1/1000."""
        words = []
        for s in json.loads(get(PAGE + "history.json"))["series"]:
            if s["what"] == "rate" and s["values"][-1] != 1000:
                words.append(f"{s['name']}={s['values'][-1]}")
        return sorted(words)

    @staticmethod
    def plan():
        code, text, _ = weft("plan", "--format", "json")
        words = [str(code)]
        if code in (0, 2):
            p = json.loads(text)
            words += [f"{key}={p[key]}" for key in ("add", "delete", "loads") if p[key]]
        return words

    @staticmethod
    def schedule():
        words = []
        for job, arcs in ARCS.items():
            code, text, _ = weft("schedule", "export", "--job", job, "--to", "json")
            if code:
                words.append(f"{job}:{code}")
            elif arcs and len(json.loads(text)["arcs"]) != arcs:
                words.append(f"{job}={len(json.loads(text)['arcs'])}")
        return words

    def contradictions(self):
        """What no table needs to say: all of these have the same from one place."""
        s, found = self.status_json, []
        if self.diff_json["problems"] != s["problems"]:
            found.append("diff lists other problems than status")
        if self.page_json["status"]["problems"] != s["problems"]:
            found.append("the page lists other problems than status")
        if [(j["name"], j["health"], j["rate"], j["proof"]) for j in self.page_json["status"]["jobs"]] != \
                [(j["name"], j["health"], j["rate"], j["proof"]) for j in s["jobs"]]:
            found.append("the page has other jobs than status")
        count = {}
        for p in s["problems"]:
            count[p["kind"]] = count.get(p["kind"], 0) + 1
        told = {label: int(v) for n, label, v in self.samples if n == "weft_problems" and v}
        if told != count:
            found.append(f"metrics count {told}, status {count}")
        low = sorted(j["name"] for j in s["jobs"] if j["health"] in ("degraded", "down"))
        listed = sorted(p["job"] for p in s["problems"] if p["job"])
        metric = sorted(label for n, label, v in self.samples if n == "weft_job_degraded" and v)
        if not low == listed == metric:
            found.append(f"degraded: {low}, as problems {listed}, in metrics {metric}")
        for j in s["jobs"]:
            if (j["rate"] < 1) != (j["health"] in ("degraded", "down")):
                found.append(f"{j['name']} is {j['health']} at a rate of {j['rate']}")
            if j["health"] != "up" and j["proof"] not in ("unverified", "none"):
                found.append(f"{j['name']} is {j['health']}, and proven: {j['proof']}")
        dark = sum(len(d["dark"]) + len(d["missing"]) for d in s["devices"])
        if int(sum(v for n, _, v in self.samples if n == "weft_dark_circuits")) != dark:
            found.append(f"metrics have not the {dark} dark circuits of status")
        return found


def compare(row, since, all_columns=True):
    """Columns that differ, as texts; or the first: plans and schedules, the last, cost most."""
    seen = Seen(since)
    bad = seen.contradictions()
    for name in COLUMNS:
        if bad and not all_columns:
            break
        want, has = row[name], sorted(getattr(seen, name)())
        if want != ["*"] and sorted(want) != has:
            bad.append(f"{name}: {' '.join(has) or '-'}, not {' '.join(sorted(want)) or '-'}")
    return bad


# ---- rows ---------------------------------------------------------------------------

def read_table():
    rows = []
    with open(TABLE, encoding="utf-8") as f:
        for line in f:
            if line.strip() and line[0] != "#":
                cells = [c.strip() for c in line.split("|")]
                assert len(cells) == 2 + len(COLUMNS), line
                row = {n: [w for w in c.split() if w != "-"] for n, c in zip(COLUMNS, cells[2:])}
                row.update(fault=cells[0], steps=[s.strip() for s in cells[1].split(";")])
                rows.append(row)
    return rows


def until(row, since):
    """What differs from the row in the end: nothing, or all of it after a while. Each tenth look
    is at all columns, as a plan reads the devices once more."""
    end, looks = time.monotonic() + WAIT_S, 0
    while True:
        looks += 1
        bad = compare(row, since, looks % 10 == 0)
        if not bad:
            return []
        if time.monotonic() > end:
            return compare(row, since)
        time.sleep(0.1)


def tap(good, text, why=()):
    print(("ok" if good else "not ok") + " - " + text)
    for line in why:
        print("# " + line)
    sys.stdout.flush()
    return good


WELL = {n: [] for n in COLUMNS}
WELL.update(diff=["0"], plan=["0"], events=["*"])


def proofs():
    jobs = json.loads(weft("status", "--format", "json")[1])["jobs"]
    return {j["name"]: j["proof"] for j in jobs}


def try_row(row):
    before, since = proofs(), os.path.getsize(f"{FOLDER}/events")
    back = [set_fault(step) for step in row["steps"]]
    weft("verify")
    bad = until(row, since)
    if os.environ.get("FAULTS_SHOW"):
        seen = Seen(since)
        print("SEEN " + " | ".join([row["fault"], "; ".join(row["steps"])] + [
            " ".join(getattr(seen, n)()) or "-" for n in COLUMNS]))
    touched = {w.split(":")[0] for w in row["status"]}
    for name, proof in proofs().items():
        if name not in touched and LEVELS.index(proof) < LEVELS.index(before[name]):
            bad.append(f"{name} was proven {before[name]}, and is {proof} by a fault of others")
    good = tap(not bad, row["fault"], bad)
    for undo in reversed(back):
        undo()
    weft("verify")
    bad = until(WELL, 0)
    good = tap(not bad, row["fault"] + ": and all is well without it", bad) and good
    if bad:
        weft("apply")
        weft("verify")
    return good


def main():
    part, parts = (int(n) for n in os.environ.get("WEFT_SHARD", "0/1").split("/"))
    rows = [r for i, r in enumerate(read_table()) if i % parts == part and
            re.search(os.environ.get("FAULTS", ""), r["fault"])]
    bad = until(WELL, 0)
    good = tap(not bad, "all is well", bad)
    for row in rows:
        good = try_row(row) and good
    sys.exit(not good)


main()
