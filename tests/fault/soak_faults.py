# SPDX-License-Identifier: Apache-2.0
"""checklist 13: random jobs on a fabric of every driver, while faults fire and
weftd is killed. Called by soak_faults.sh, which has started the emulators.

Every round asks for other jobs, arms faults on the devices, applies, disturbs
the client or the daemon, and then counts, from what the emulators themselves
hold and not from what weftd says of them. Of a ring that is its programs, byte
by byte. Emulators and `sim` also keep a log of all that moved, and who moved it:
what was touched for a moment in the middle of a round is in there.

  lost         the store says that a configuration is in force, and the light
               of its jobs is not there: an apply that ended well, a change
               that a restart found done or undone, a change that was not
               confirmed
  unexplained  circuits that no plan named, that were not there before, and
               that no other user made
  touched      circuits that went away, if only for a moment, and that no plan
               named: other users', and such that were to stay; programs that
               a plan did not replace
  unresolved   after the faults a device still cannot be read, a change is
               left running, or no apply brings the light back

All choices come from the seed; what the clock decides (at which command a
signal hits) is not repeated."""
import argparse
import collections
import hashlib
import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import time

FOREIGN = (8, 9)        # of another user, on ports that no fibre reaches
SWITCHES = {
    "polatis-scpi": ("gap_ms: 0, settle_ms: 10",
                     "chain-stop queue-full half=1 overrate=1"),
    "polatis-tl1": ("gap_ms: 0, settle_ms: 10",
                    "autonomous log-out wrong-ctag page=2 tid-required"),
    "glimmerglass-tl1": ("gap_ms: 0, settle_ms: 10",
                         "autonomous log-out wrong-ctag page=2 locked=o3"),
    "calient-tl1": ("gap_ms: 0, settle_ms: 10",
                    "autonomous log-out wrong-ctag page=2 conn-failed=o5"),
    "sonic-ocs": ("gap_ms: 0, settle_ms: 10, tune_ms: 300",
                  "conn-failed=o5 tuning=o3"),
    # Nobody sends it on its homing run before the round is over.
    "rome-cli": ("gap_ms: 0, move_ms: 5000", "conn-failed=o5 homing"),
    "telescent-cli": ("gap_ms: 0, move_ms: 5000", "conn-failed=o5"),
}
COMMON = ("refuse silence silence-set eat-set drop-set drop-reply garbage "
          "duplicate late=500 slow=10 bytewise garbage=3 drop-set=2 "
          "drop-reply=4 eat-set=3 duplicate~300 garbage~40 drop-reply~40 "
          "late=30").split()
SPACE = "lost=5 port-failed=o5 port-disabled=i3 refuse-port=o5 ignore-port=o5"
RING = ("nack corrupt-shadow corrupt-active ignore-commit interlock "
        "no-wave=3:1 not-in-range=2:0 duplicate-lock=1:1 zero-lock=4:2 "
        "lol=5:0").split()
# The device itself loses light, or says that it is gone.
LOSES = ("lost", "half", "conn-failed", "tuning", "rules", "corrupt")
QUIET = "late=2~600"
TOPOLOGIES = {
    None: [],
    "UniRing(1,4)": [(i, (i + 1) % 4) for i in range(4)],
    "UniRing(2,4)": [(i, (i + 1) % 4) for i in range(4)] * 2,
    "Ring(4)": [(i, (i + k) % 4) for i in range(4) for k in (1, 3)],
}


class Device:
    """What the soak knows of any: how it is written in the fabric, what it
    holds by its own word, and what moved since it was last asked."""
    is_ring, address, options = False, "", ""

    def pairs(self):
        """Its circuits; of a ring, its programs as lines."""
        raise NotImplementedError

    def moved(self):
        """(who, "made" or "gone", circuit), oldest first."""
        return []

    def struck(self):
        return 0

    def make(self, pair, there=True):
        """Another user's."""

    def faults(self, rng, hard):
        return []

    def arm(self, spec):
        pass

    def clear(self):
        pass


class Emulator(Device):
    """A device in a program of its own, by its control socket."""

    def __init__(self, name, driver, address, control):
        self.name, self.driver = name, driver
        self.address = f"address: '{address}', timeout: 400ms, "
        self.endpoint, self.control = address, control
        self.is_ring = driver == "mrr-reg"
        self.options = "" if self.is_ring else SWITCHES[driver][0]
        self.waits_for_people = False
        self.n_moved = 0

    def ask(self, line):
        for _ in range(50):
            try:
                with socket.socket(socket.AF_UNIX) as s:
                    s.settimeout(5)
                    s.connect(self.control)
                    s.sendall(line.encode() + b"\n")
                    s.shutdown(socket.SHUT_WR)
                    text = b""
                    while chunk := s.recv(65536):
                        text += chunk
                    return text.decode()
            except OSError:
                time.sleep(0.05)
        raise SystemExit(f"Bail out! {self.name}: no answer to {line}")

    def pairs(self):
        lines = self.ask("map").split("\n")
        if self.is_ring:
            return set(l for l in lines if l and l != "ok")
        return set(tuple(map(int, l.split(","))) for l in lines if "," in l)

    def moved(self):
        lines = self.ask(f"log {self.n_moved}").split("\n")
        if lines[0].startswith("error"):
            raise SystemExit(f"Bail out! {self.name}: {lines[0]}")
        found = [l.split(" ")[2:] for l in lines if l and l != "ok"]
        self.n_moved += len(found)
        return [(who, what, tuple(map(int, light[0].split(","))))
                for who, what, *light in found if light[0] != "program"]

    def blink(self, pair):
        """A command ends a circuit, the next one makes it again: SCPI."""
        host, port = self.endpoint.rsplit(":", 1)
        ports = f"(@{pair[0] + 1}),(@{pair[1] + 11})"
        with socket.create_connection((host, int(port)), timeout=5) as s:
            for verb in ("sub", "add"):
                s.sendall(f":oxc:swit:conn:{verb} {ports};:syst:err?\n"
                          .encode())
                s.recv(256)

    def struck(self):
        return int(re.search(r"^faults (\d+)", self.ask("stats"), re.M)[1])

    def make(self, pair, there=True):
        self.ask(f"{'set' if there else 'unset'} {pair[0]},{pair[1]}")

    def faults(self, rng, hard):
        special = RING if self.is_ring else (
            SPACE + " " + SWITCHES[self.driver][1]).split()
        picked = []
        if hard:
            picked = [rng.choice(COMMON) for _ in range(rng.randint(1, 2))]
            picked += [rng.choice(special)] if rng.random() < 0.5 else []
        # One that costs little and strikes again and again.
        return picked + [QUIET]

    def arm(self, spec):
        self.ask("fault " + spec)
        self.waits_for_people |= spec == "homing"

    def clear(self):
        self.ask("clear")
        if self.waits_for_people:
            # The robot's operator starts it again.
            self.ask("restart kept")
            self.waits_for_people = False


class Namespace(Device):
    """A switch of packets: rules of the kernel, read by tc."""
    name, driver = "tc0", "linux-tc"

    def __init__(self, netns):
        self.netns = netns
        self.options = f"netns: {netns}"
        self.count = 0

    def tc(self, *words):
        return subprocess.run(["nsenter", "--net=/run/netns/" + self.netns, "tc",
                               *words],
                              capture_output=True, text=True).stdout

    def pairs(self):
        found = set()
        for i in range(10):
            text = self.tc("filter", "show", "dev", f"in{i + 1}", "ingress")
            for out in re.findall(r"to device out(\d+)", text):
                found.add((i, int(out) - 1))
        return found

    def struck(self):
        return self.count

    def make(self, pair, there=True):
        dev = f"in{pair[0] + 1}"
        if not there:
            self.tc("filter", "del", "dev", dev, "ingress")
        elif pair not in self.pairs():
            self.tc("filter", "add", "dev", dev, "ingress", "protocol", "all",
                    "prio", "1", "u32", "match", "u32", "0", "0", "action",
                    "mirred", "egress", "redirect", "dev",
                    f"out{pair[1] + 1}")

    def faults(self, rng, hard):
        return ["rules"] if hard else []

    def arm(self, spec):
        """Somebody flushes a rule: one circuit is gone."""
        ours = sorted(self.pairs() - {FOREIGN})
        if ours:
            self.make(ours[0], False)
            self.count += 1


class Sim(Device):
    """In weftd itself; its map and its log are files. Trouble comes by
    chance, and never stops."""
    name, driver, chaos = "sim0", "sim", 15

    def __init__(self, folder, seed):
        self.path = f"{folder}/{self.name}"
        self.options = (f"state: '{self.path}.map', log: '{self.path}.log', "
                        f"seed: {seed}, chaos: {self.chaos}")
        self.n_moved = self.count = 0

    def lines(self, kind):
        try:
            with open(f"{self.path}.{kind}") as f:
                return f.read().split("\n")
        except FileNotFoundError:
            return []

    def pairs(self):
        return set(tuple(map(int, l.split()[1:])) for l in self.lines("map")
                   if l.startswith("xc "))

    def moved(self):
        lines = self.lines("log")[:-1]
        news, self.n_moved = lines[self.n_moved:], len(lines)
        self.count += news.count("fault")
        if "lost" in news:
            raise SystemExit(f"Bail out! {self.name}: its log has a gap")
        return [("session", l[:4], tuple(map(int, l[5:].split(","))))
                for l in news if l != "fault"]

    def struck(self):
        return self.count


class SimRing(Sim):
    name, driver, chaos, is_ring = "simring0", "sim-ring", 150, True

    def pairs(self):
        return set(l for l in self.lines("map")
                   if l.startswith(("program ", "x ")))


class NamespaceRing(Device):
    """A ring of packets: what it keeps of its programs, and the rules that
    are in force."""
    name, driver, is_ring = "lr0", "linux-ring", True

    def __init__(self, fabric):
        self.netns = f"weft.{fabric}.{self.name}"
        self.options = f"fabric: {fabric}"
        self.count = 0

    def within(self, words, text=""):
        return subprocess.run(["nsenter", "--net=/run/netns/" + self.netns,
                               *words], input=text, capture_output=True,
                              text=True).stdout

    def struck(self):
        return self.count

    def faults(self, rng, hard):
        return ["rules"] if hard and rng.random() < 0.5 else []

    def arm(self, spec):
        """Somebody flushes the rules of a netdev that has some."""
        for dev in self.netdevs():
            if self.within(["tc", "filter", "show", "dev", dev, "ingress"]):
                self.within(["tc", "filter", "del", "dev", dev, "ingress"])
                self.count += 1
                return

    def netdevs(self):
        return re.findall(r"^\d+: ([^@:]+)", self.within(
            ["ip", "-o", "link"]), re.M)

    def pairs(self):
        rules = self.within(["tc", "-b", "-"], "".join(
            f"filter show dev {n} ingress\n" for n in self.netdevs()))
        try:
            with open(f"/run/weft-testbed/{self.netns}.ring", "rb") as f:
                kept = hashlib.sha256(f.read()).hexdigest()
        except FileNotFoundError:
            return set()
        return set([kept, *sorted(re.findall(r"to device (\S+)\)", rules))])


class Soak:
    def __init__(self, args):
        self.rng = random.Random(args.seed)
        self.args = args
        self.devices = []
        for spec in args.device:
            name, driver, address, control = spec.split(",")
            self.devices.append(Emulator(name, driver, address, control))
        if args.netns:
            self.devices.append(Namespace(args.netns))
        if args.testbed:
            self.devices.append(NamespaceRing(args.testbed))
        self.devices += [Sim(args.dir, args.seed), SimRing(args.dir,
                                                           args.seed)]
        self.programs = {}          # of a ring, by what was wished
        self.counts = collections.Counter(
            lost=0, unexplained=0, touched=0, unresolved=0)
        self.exits = collections.Counter()
        self.how = collections.Counter()
        self.rounds = 0
        self.weftd = None
        self.story = ""
        self.forge = None
        self.said = ""
        self.path_of = {}
        self.light = {}             # sha256 of a configuration: its topologies

    # ---- weft ----

    def start_weftd(self):
        with open(f"{self.args.dir}/weftd.log", "ab") as log:
            self.weftd = subprocess.Popen(
                ["weftd", "--socket", os.environ["WEFT_SOCKET"],
                 "--state-dir", self.args.state], stdout=log, stderr=log,
                stdin=subprocess.DEVNULL)

    def stop_weftd(self, sig):
        if self.weftd:
            self.weftd.send_signal(sig)
            self.weftd.wait()
            self.weftd = None

    def weft(self, *words, timeout=90):
        try:
            p = subprocess.run(["weft", *words], capture_output=True,
                               text=True, stdin=subprocess.DEVNULL,
                               timeout=timeout)
        except subprocess.TimeoutExpired:
            self.bad("unresolved", f"weft {words[0]} hangs")
            return 124, "", ""
        return p.returncode, p.stdout, p.stderr

    def json(self, *words):
        code, out, _ = self.weft(*words, "--format", "json")
        try:
            return json.loads(out)
        except ValueError:
            return {}

    def status(self):
        return self.json("status")

    def settle(self):
        """Waits until weftd has read all devices, and reads them again."""
        for _ in range(100):
            state = self.status().get("state")
            if state and state not in ("reading", "changing"):
                break
            time.sleep(0.1)
        for _ in range(12):
            if self.json("verify").get("complete"):
                return True
            time.sleep(0.2)
        return False

    # ---- fabrics ----

    def config(self, wish):
        """Writes a fabric with a job for each device that is to have one."""
        hosts, switches, fibres, rings, jobs = [], [], [], [], []
        for k, d in enumerate(self.devices):
            where = (f"driver: {d.driver}, {d.address}"
                     f"options: {{ {d.options} }}")
            if d.is_ring:
                hosts.append(f"  - {{ name: 'n{k}-[0-7]' }}")
                rings.append(
                    f"  - {{ name: {d.name}, nodes: 'n{k}-[0-7]', channels: 4, "
                    f"channel-rate: 40Gbps, retune: 25us, {where} }}")
                jobs.append(
                    f"  - {{ name: j-{d.name}, ring: {d.name}, nodes: all, "
                    f"collective: allgather, size: 1MiB, "
                    f"depth: {wish[d.name]} }}")
                continue
            # Devices of one domain are changed at the same time. Of some weftd
            # takes back what another user took; not of the first, which is
            # forged.
            policy = ", external-changes: restore" if k and k % 2 == 0 else ""
            hosts.append(f"  - {{ name: 'h{k}-[0-3]', ports: 'p[0-1]', "
                         f"rate: 100Gbps, reactivation: 1ms }}")
            switches.append(f"  - {{ name: {d.name}, size: 10x10, "
                            f"domain: d{k % 2}, {where}{policy} }}")
            fibres.append(f"  - {{ from: 'h{k}-[0-3].p[0-1]', "
                          f"to: '{d.name}.[1-8]' }}")
            if wish[d.name]:
                jobs.append(
                    f"  - {{ name: j-{d.name}, nodes: 'h{k}-[0-3]', "
                    f"collective: allreduce, size: 1MiB, "
                    f"topology: '{wish[d.name]}', alpha: 1us }}")
        text = "\n".join(
            ["weft: 1", "fabric: soak", "hosts:", *hosts, "switches:",
             *switches, "fibres:", *fibres, "rings:", *rings, "jobs:", *jobs,
             # What is missing after a commit is lost here, not to be repaired.
             "changes: { gate: 100%, restore-after: 100ms }", ""])
        path = f"{self.args.dir}/{'%04d' % self.rounds}.yaml"
        with open(path, "w") as f:
            f.write(text)
        sha = hashlib.sha256(text.encode()).hexdigest()
        self.light[sha] = wish
        self.path_of[sha] = path
        return path

    def wish(self):
        return {d.name: self.rng.choice([0, 1, 2] if d.is_ring else
                                        list(TOPOLOGIES))
                for d in self.devices}

    def learn_programs(self):
        """What a ring holds for each wish, without faults; what the plan says
        of it must be true of that."""
        for depth in (0, 1, 2):
            wish = {d.name: depth if d.is_ring else "UniRing(1,4)"
                    for d in self.devices}
            path = self.config(wish)
            plan = self.json("plan", "-f", path)
            if not self.commit(path):
                raise SystemExit("Bail out! nothing works without faults")
            for d in self.devices:
                if d.is_ring:
                    self.programs[d.name, depth] = d.pairs()
            for row in plan["devices"]:
                for p in row.get("programs", []):
                    line = (f"program {p['job']} steps {p['steps']} settings "
                            f"{p['settings']} bytes {p['bytes']} nodes "
                            f"{p['first_node']}+{p['nodes']} channels "
                            f"{p['first_channel']}+{p['channels']} ")
                    d = next(d for d in self.devices
                             if d.name == row["name"])
                    if d.driver == "mrr-reg" and not any(
                            l.startswith(line) for l in d.pairs()):
                        self.bad("lost", f"{d.name} is to have {line}, has "
                                 f"{d.pairs()}")

    @staticmethod
    def arcs(pairs):
        """Which hosts a switch joins; its ports 2i and 2i+1 are host i's."""
        return sorted((i // 2, o // 2) for i, o in pairs if i < 8 and o < 8)

    def has_light(self, device, pairs, wish):
        if device.is_ring:
            return pairs == self.programs[device.name, wish[device.name]]
        return self.arcs(pairs) == sorted(TOPOLOGIES[wish[device.name]])

    # ---- a round ----

    def bad(self, counter, text):
        self.counts[counter] += 1
        if not self.forge:
            print(f"# {counter} in round {self.rounds} (seed "
                  f"{self.args.seed}): {self.story}: {text}", flush=True)

    def named(self, path, *words):
        """What the plan deletes and makes, and whether it loads a program, by
        device."""
        plan = self.json("plan", *words, "-f", path)
        return {d["name"]: (*(
            set((c["in"] - 1, c["out"] - 1) for c in d.get(key, []))
            for key in ("delete", "add")), d.get("load_program"))
                for d in plan.get("devices", [])}

    @staticmethod
    def add_named(named, more):
        for name, (deletes, adds, loads) in more.items():
            was = named.get(name, (set(), set(), False))
            named[name] = (was[0] | deletes, was[1] | adds, was[2] or loads)

    def pick(self):
        """Faults by device. Drawn before the apply, as what comes of that is
        the clock's business too."""
        hard = self.rng.sample(self.devices, self.rng.choice([0, 1, 1, 2, 4]))
        return [] if self.forge else [
            (d, spec) for d in self.devices
            for spec in d.faults(self.rng, d in hard)]

    @staticmethod
    def arm(picked):
        """Those that change light by themselves, and the story."""
        for d, spec in picked:
            d.arm(spec)
        return (set(d.name for d, spec in picked if spec.startswith(LOSES)),
                [f"{d.name} {spec}" for d, spec in picked])

    def disturb(self, how, client, delay):
        if how in ("kill", "kill twice", "term", "interrupt"):
            time.sleep(delay)
        if how.startswith("kill"):
            self.stop_weftd(signal.SIGKILL)
        elif how == "term":
            self.stop_weftd(signal.SIGTERM)
        elif how == "interrupt" and client.poll() is None:
            client.send_signal(signal.SIGINT)

    def apply(self, path, how, picked, named):
        """The exit code, and what arm() said. Mostly the faults come when the
        change is in the journal and its first commands are on their way.
        Otherwise the plan may be another, as it does without ports that have
        failed; what that names is added to named."""
        words = ["weft", "apply", "-f", path]
        if how in ("confirm", "expire"):
            words += ["--confirm-within", "30s" if how == "confirm" else "3s"]
        late, delay = self.rng.random() < 0.7, self.rng.random() ** 2
        if not late and any(spec.startswith("port-") for _, spec in picked):
            for d, spec in picked:
                if spec.startswith("port-"):
                    d.arm(spec)
            self.add_named(named, self.named(path))
        client = subprocess.Popen(words, stdin=subprocess.DEVNULL,
                                  stdout=subprocess.DEVNULL,
                                  stderr=subprocess.PIPE, text=True)
        armed = None if late else self.arm(picked)
        while late and (line := client.stderr.readline()):
            self.said = line.strip()
            if "is in the journal" in line:
                armed = self.arm(picked)
                break
        self.disturb(how, client, delay)
        try:
            _, err = client.communicate(timeout=120)
        except subprocess.TimeoutExpired:
            client.kill()
            client.communicate()
            self.bad("unresolved", "the client hangs")
            return 124, armed or (set(), [])
        self.said = (err.strip() or self.said).split("\n")[-1]
        return client.returncode, armed or (set(), [])

    def end_confirmation(self, how, code, old_sha):
        if how == "confirm" and code == 0:
            self.weft("confirm")
        for _ in range(600 if how == "expire" and code == 0 else 0):
            s = self.status()
            if s.get("config_sha256") == old_sha and not s.get("confirm"):
                return
            time.sleep(0.1)
        if how == "expire" and code == 0:
            self.bad("lost", "was not confirmed, and is still in force")

    def forged(self, before):
        """Does what the counter at hand is to find."""
        d = self.devices[0]
        ours = sorted(d.pairs() - {FOREIGN})
        if self.forge == "lost":
            d.make(ours[0], False)
        elif self.forge == "unexplained":
            d.make((9, 8))
        elif self.forge == "touched":
            d.make(FOREIGN, False)
        elif self.forge == "touched for a moment":
            d.blink(FOREIGN)
        elif self.forge == "lost programs":
            next(d for d in self.devices if d.driver == "mrr-reg").ask(
                "restart dark")
        elif self.forge == "unresolved":
            d.arm("silence")

    @staticmethod
    def cut(device, named):
        """Circuits that went away by commands since this was last asked, and
        that the plan did not name. What a change makes it may take back."""
        deletes, adds, _ = named.get(device.name, (set(), set(), False))
        return set(xc for who, what, xc in device.moved()
                   if who == "session" and what == "gone") - deletes - adds

    def count_light(self, before, now, named, self_made):
        for d in self.devices:
            deletes, adds, loads = named.get(d.name, (set(), set(), False))
            brief = self.cut(d, named)
            if d.is_ring:
                if d.name not in self_made and not loads and \
                        now[d.name] != before[d.name]:
                    self.bad("touched", f"{d.name}: {before[d.name]} is "
                             f"{now[d.name]}")
                continue
            new = now[d.name] - before[d.name] - adds
            gone = before[d.name] - now[d.name] - deletes
            if new:
                self.bad("unexplained", f"{d.name}: {sorted(new)}")
            if gone and d.name not in self_made:
                self.bad("touched", f"{d.name}: {sorted(gone)}")
            elif brief:
                self.bad("touched", f"{d.name}, for a moment: "
                         f"{sorted(brief)}")

    def count_lost(self, now, status, self_made):
        """The light of the configuration in force, unless a change is open
        and says why it is not there."""
        wish = self.light.get(status.get("config_sha256"))
        if status.get("open_change") or not wish:
            return
        for d in self.devices:
            if d.name not in self_made and \
                    not self.has_light(d, now[d.name], wish):
                self.bad("lost", f"{d.name} is to have {wish[d.name]}, has "
                         f"{sorted(now[d.name])}")

    def commit(self, path):
        """Without faults, and naming what it touches."""
        for _ in range(8):
            named = self.named(path, "--mode", "update")
            code, _, self.err = self.weft("apply", "--mode", "update", "-f",
                                          path)
            for d in self.devices:
                brief = self.cut(d, named)
                if brief:
                    self.bad("touched", f"{d.name}, without faults: "
                             f"{sorted(brief)}")
            if code == 0:
                return True
            time.sleep(0.2)
        return False

    def meddle(self, device):
        """Another user ends a circuit of weft's, and a client looks: it comes
        back by itself, or with the next apply, which may meet that."""
        ours = sorted(device.pairs() - {FOREIGN})
        if ours and not device.is_ring:
            device.make(ours[-1], False)
            self.weft("verify")

    def heal(self, path, wish):
        """Without faults an apply must bring all light, and nothing else."""
        for d in self.devices:
            d.clear()
            if not d.is_ring:
                d.make((9, 8), False)
                d.make(FOREIGN)
        if not self.commit(path):
            self.bad("unresolved", "no apply succeeds without faults: " +
                     self.err.strip().split("\n")[-1])
            return
        for d in self.devices:
            now = d.pairs()
            if not self.has_light(d, now, wish):
                self.bad("lost", f"{d.name} after an apply without faults: "
                         f"{wish[d.name]} is not {sorted(now)}")
            if not d.is_ring and FOREIGN not in now and \
                    d.driver != "sim":
                self.bad("touched", f"{d.name}: another user's")

    def round(self):
        begin = time.monotonic()
        self.rounds += 1
        how = "" if self.forge else self.rng.choice(
            ["", "", "kill", "kill", "kill twice", "term", "interrupt",
             "confirm", "expire"])
        again = self.rng.random() * 0.3
        meddled = self.rng.choice(self.devices + [None] * 12)
        wish = self.wish()
        if self.forge:
            wish[self.devices[0].name] = "Ring(4)"
        path = self.config(wish)
        old_sha = self.status().get("config_sha256", "")
        named = self.named(path)
        before = {d.name: d.pairs() for d in self.devices}
        code, (self_made, story) = self.apply(path, how, self.pick(),
                                              named)
        self.story = f"{os.path.basename(path)} {how or 'apply'}: " + \
            ", ".join(s for s in story if QUIET not in s)
        self.exits[code] += 1
        self.how[how or "apply"] += 1
        for d in self.devices:
            d.clear()
        if not self.weftd:
            self.start_weftd()
        if how == "kill twice":
            # While it reads, and settles what the first end left open.
            time.sleep(again)
            self.stop_weftd(signal.SIGKILL)
            self.start_weftd()
        if how == "expire" and code == 0:
            # The way back has a plan of its own.
            self.add_named(named, self.named(self.path_of[old_sha]))
        self.end_confirmation(how, code, old_sha)
        if self.forge:
            # A forgery is of light that is there; `sim` may have refused it.
            if code and not self.commit(path):
                raise SystemExit("Bail out! nothing works without faults")
            self.forged(before)
        resolved = self.settle()
        if not resolved:
            self.bad("unresolved", "not all devices are read: " + ", ".join(
                f"{d['name']}: {d.get('problem')}" for d in
                self.status().get("devices", []) if not d["reachable"]))
        status = self.status()
        self.story += f" -> {code} ({self.said})"
        now = {d.name: d.pairs() for d in self.devices}
        self.count_light(before, now, named, self_made)
        self.count_lost(now, status, self_made)
        if code == 0 and how != "expire" and \
                self.light.get(status.get("config_sha256")) != wish:
            self.bad("lost", "the store holds another configuration")
        if meddled and not self.forge:
            self.meddle(meddled)
        self.heal(path, wish)
        if self.args.verbose:
            print(f"# {time.monotonic() - begin:.1f} s: {self.story}",
                  flush=True)

    # ---- all ----

    def first(self):
        wish = {d.name: 0 if d.is_ring else "UniRing(1,4)"
                for d in self.devices}
        self.start_weftd()
        for _ in range(100):
            if self.status():
                break
            time.sleep(0.1)
        for d in self.devices:
            if not d.is_ring:
                d.make(FOREIGN)
        self.learn_programs()
        self.heal(self.config(wish), wish)

    def prove_counters(self):
        """Each counter finds what it is there for."""
        proven = {}
        kept = collections.Counter(self.counts)
        for kind in self.args.forge.split(","):
            self.counts.clear()
            self.forge = kind
            self.round()
            proven[kind] = self.counts[kind.split()[0]] > 0
        self.forge = None
        self.counts = kept
        return proven

    def run(self):
        begin = time.monotonic()
        self.first()
        while time.monotonic() - begin < self.args.seconds or \
                self.rounds < self.args.rounds:
            self.round()
        faults = sum(d.struck() for d in self.devices)
        kills = (self.how["kill"] + 2 * self.how["kill twice"] +
                 self.how["term"])
        rounds = self.rounds
        proven = self.prove_counters()
        self.stop_weftd(signal.SIGTERM)
        for code, n in sorted(self.exits.items()):
            print(f"# exit {code}: {n} applies")
        c = self.counts
        print(f"# seed {self.args.seed}, {rounds} rounds on "
              f"{len(self.devices)} devices, {faults} faults, weftd ended "
              f"{kills} times")
        print(f"# lost intents {c['lost']}, unexplained circuits "
              f"{c['unexplained']}, circuits touched that no plan named "
              f"{c['touched']}, unknowns not resolved {c['unresolved']}",
              flush=True)
        return faults, proven


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--seed", type=int, required=True)
    p.add_argument("--seconds", type=float, required=True)
    p.add_argument("--rounds", type=int, default=2)
    p.add_argument("--least", type=int, default=1)
    p.add_argument("--dir", required=True)
    p.add_argument("--state", required=True)
    p.add_argument("--netns", default="")
    p.add_argument("--testbed", default="")
    p.add_argument("--device", action="append", default=[])
    p.add_argument("--forge", default="lost,lost programs,unexplained,"
                   "touched,touched for a moment,unresolved")
    p.add_argument("--verbose", action="store_true")
    args = p.parse_args()
    soak = Soak(args)
    n = 0

    def tap(ok, what):
        nonlocal n
        n += 1
        print(f"{'ok' if ok else 'not ok'} {n} - {what}", flush=True)
        return ok

    try:
        faults, proven = soak.run()
        good = [tap(soak.counts[k] == 0, f"no {what}") for k, what in (
            ("lost", "lost intents"), ("unexplained", "unexplained circuits"),
            ("touched", "circuits touched that no plan named"),
            ("unresolved", "unknowns that reading does not resolve"))]
        good += [tap(ok, f"the counter of {k} finds a forged one")
                 for k, ok in proven.items()]
        good.append(tap(faults >= args.least,
                        f"at least {args.least} faults ({faults})"))
    finally:
        soak.stop_weftd(signal.SIGTERM)
    with open(f"{args.dir}/weftd.log", errors="replace") as log:
        text = log.read()
    own = re.findall(r"change of weftd: (\w+)", text)
    print("# changes of weftd's own: " + (", ".join(
        f"{own.count(w)} {w}" for w in sorted(set(own))) or "none"))
    found = re.search(r"^.*(Sanitizer|runtime error: )(.*\n){,40}", text, re.M)
    if found:
        print("# " + found[0].replace("\n", "\n# "))
    good.append(tap(not found, "the sanitizers found nothing in weftd"))
    print(f"1..{n}")
    sys.exit(not all(good))


main()
