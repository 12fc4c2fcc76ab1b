# SPDX-License-Identifier: Apache-2.0
"""The page in a headless browser, and its server under bad manners.

webui_client.py URL FOLDER TEST...: runs the tests of these names and prints
"pass NAME" for each; exits with 1 at the first that fails, with 77 when
there is no browser here. Devices are the emulators of page.sh.
"""

import json
import os
import random
import re
import socket
import subprocess
import sys
import time
import traceback
import urllib.parse
import urllib.request

from webdriver import Browser, Missing

URL, FOLDER = sys.argv[1], sys.argv[2]
WHERE = urllib.parse.urlsplit(URL)
HOSTILE = "<script>window.bad=1</script><img src=x onerror=window.bad=1>&amp;\"'"
browser = None


def weft(*words, ok=(0,)):
    done = subprocess.run(["weft", *words], capture_output=True, text=True, check=False)
    assert done.returncode in ok, (words, done.returncode, done.stderr)
    return done.stdout


def status():
    return json.loads(weft("status", "--format", "json"))


def control(device, line):
    with socket.socket(socket.AF_UNIX) as s:
        s.connect(os.path.join(os.path.dirname(FOLDER), device + ".ctl"))
        s.sendall(line.encode() + b"\n")
        s.shutdown(socket.SHUT_WR)
        return s.makefile().read()


def configuration(this, that):
    """Of the fabric, with that instead of this; its path."""
    path = FOLDER + "/other.yaml"
    with open(os.path.dirname(FOLDER) + "/fabric.yaml", encoding="ascii") as f:
        config = f.read()
    assert this in config
    with open(path, "w", encoding="ascii") as f:
        f.write(config.replace(this, that))
    return path


def fetch(path="/", method="GET", host=None):
    request = urllib.request.Request(URL.rstrip("/") + path, method=method,
                                     headers={"Host": host} if host else {})
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, answer.headers, answer.read()
    except urllib.error.HTTPError as e:
        return e.code, e.headers, e.read()


# ---- the server --------------------------------------------------------------


def raw(data, wait=True):
    s = socket.create_connection((WHERE.hostname, WHERE.port), timeout=30)
    try:
        s.sendall(data)
        answer = b""
        while wait:
            more = s.recv(65536)
            answer += more
            if not more or b"\r\n\r\n" in answer:
                break
    except (ConnectionResetError, BrokenPipeError):
        pass
    return s, answer


HOST = b"Host: localhost\r\n"


def test_traversal():
    for path in (b"/../../etc/passwd", b"/%2e%2e/%2e%2e/etc/passwd", b"/page.js/../page.js",
                 b"//page.js", b"/./page.js", b"/page.js%00.html", b"/PAGE.JS", b"/page",
                 b"/state.json/", b"/" + b"a" * 3000, b"/%ff%fe", b"*", b"/..%5cweft.db"):
        s, answer = raw(b"GET " + path + b" HTTP/1.1\r\n" + HOST + b"\r\n")
        s.close()
        assert answer.split(b" ")[1] in (b"404", b"400"), (path, answer[:80])


def test_methods():
    for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"):
        for path in ("/", "/state.json"):
            code, headers, _ = fetch(path, method)
            assert code == 405, (method, path, code)
            assert headers["Allow"] == "GET"
    s, answer = raw(b"GET /state.json HTTP/1.1\r\nContent-Length: 9999999\r\n" + HOST + b"\r\n")
    s.close()
    assert b" 400 " in answer, answer[:80]


def test_rebinding():
    for host in ("evil.example", "evil.example:%d" % WHERE.port, "127.0.0.1.evil.example",
                 "localhost.evil.example"):
        for path in ("/", "/state.json", "/live.json"):
            code, _, body = fetch(path, host=host)
            assert code == 421 and b"generation" not in body, (host, path, code)
    assert fetch("/", host="localhost:1")[0] == 200


def test_headers():
    page = fetch()[2].decode()
    paths = re.findall(r'(?:href|src)="(/[^"]*)"', page) + ["/", "/state.json", "/nothing",
                                                           "/live.json?after=1"]
    assert len(paths) > 6
    for path in paths:
        _, headers, _ = fetch(path)
        policy = headers["Content-Security-Policy"]
        assert policy.startswith("default-src 'none'; script-src 'self';"), path
        assert "unsafe" not in policy and "frame-ancestors 'none'" in policy, path
        assert headers["X-Content-Type-Options"] == "nosniff", path
        assert headers["Referrer-Policy"] == "no-referrer", path
        assert headers["Cross-Origin-Resource-Policy"] == "same-origin", path
    assert "Access-Control-Allow-Origin" not in fetch()[1]


def test_huge_headers():
    for data in (b"X: " + b"a" * 30000, b"".join(b"X%d: y\r\n" % i for i in range(3000))):
        s, answer = raw(b"GET / HTTP/1.1\r\n" + HOST + data)
        s.close()
        assert b" 431 " in answer or answer == b"", answer[:80]
    s, answer = raw(b"GET /" + b"a" * 60000 + b" HTTP/1.1\r\n" + HOST + b"\r\n")
    s.close()
    assert answer == b"" or answer.split(b" ")[1] in (b"404", b"414", b"431"), answer[:80]
    assert fetch()[0] == 200


def test_slow_client():
    """One that never ends its request is cut off, and holds up no other client."""
    s = socket.create_connection((WHERE.hostname, WHERE.port), timeout=60)
    s.sendall(b"GET / HTTP/1.1\r\n" + HOST)
    s.settimeout(0.2)
    for i in range(300):
        try:
            s.sendall(b"X%d: y\r\n" % i)
            if s.recv(1) == b"":
                break
        except socket.timeout:
            pass
        except OSError:
            break
        if i % 10 == 0:
            assert fetch("/state.json")[0] == 200
    else:
        raise AssertionError("still connected")
    s.close()


def test_many_connections():
    """Idle connections use up the places; they are cut off, then it goes on."""
    idle = [socket.create_connection((WHERE.hostname, WHERE.port)) for _ in range(100)]
    assert fetch("/state.json")[0] == 200
    for s in idle:
        s.close()
    waiting = [raw(b"GET /live.json?after=%d HTTP/1.1\r\n" % json.loads(
        fetch("/state.json")[2])["version"] + HOST + b"\r\n", wait=False)[0] for _ in range(40)]
    for s in waiting:
        s.close()
    assert fetch("/")[0] == 200


def test_noise():
    """Requests with bytes changed, cut and doubled, always the same ones."""
    dice = random.Random(20261121)
    seeds = [b"GET /live.json?after=%d HTTP/1.1\r\n" % n + HOST + b"\r\n" for n in (0, 7)]
    seeds += [b"GET / HTTP/1.0\r\n\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
              b"GET http://localhost/ HTTP/1.1\r\n" + HOST + b"Connection: keep-alive\r\n\r\n",
              b"GET /page.js HTTP/1.1\r\n" + HOST + b"Range: bytes=0-1\r\n"
              b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"]
    for _ in range(400):
        data = bytearray(dice.choice(seeds))
        for _ in range(dice.randrange(1, 6)):
            at = dice.randrange(len(data))
            what = dice.randrange(3)
            if what == 0:
                data[at] = dice.randrange(256)
            elif what == 1:
                del data[at:at + dice.randrange(1, 9)]
            else:
                data[at:at] = data[at:at + 20] * dice.randrange(1, 4)
            data = data or bytearray(b"G")
        s, _ = raw(bytes(data), wait=False)
        s.settimeout(0.01)
        try:
            s.recv(4096)
        except OSError:
            pass
        s.close()
    assert fetch("/state.json")[0] == 200


def test_live_answer():
    """A question is held until there is news, and then answered."""
    before = json.loads(fetch("/state.json")[2])
    s, _ = raw(b"GET /live.json?after=%d HTTP/1.1\r\n" % before["version"] + HOST +
               b"Connection: close\r\n\r\n", wait=False)
    weft("verify", ok=(0, 2))
    answer = s.makefile("rb").read()
    s.close()
    news = json.loads(answer.split(b"\r\n\r\n", 1)[1])
    assert news["version"] > before["version"]
    assert "picture" not in news and news["picture_id"] == before["picture_id"]
    for odd in ("x", "-1", "99999999999999999999", ""):
        assert fetch("/live.json?after=" + odd)[0] == 200


# ---- the page ----------------------------------------------------------------


def open_page(width=1280, height=900, place=""):
    browser.size(width, height)
    browser.go("about:blank")
    browser.go(URL + place)
    assert browser.wait("return document.body.dataset.version"), browser.log("browser")


def text(selector):
    return browser.run("return document.querySelector(arguments[0])?.textContent ?? null",
                       selector)


def rows(section):
    return browser.run("""
        return [...document.querySelectorAll(`#${arguments[0]} .body table tbody tr`)].map(
            (tr) => Object.fromEntries([...tr.cells].map(
                (td) => [td.dataset.label, td.textContent])));""", section)


def wait_fact(name, value):
    got = browser.wait("""return document.querySelector(`[data-fact="${arguments[0]}"]`)
        ?.firstChild.textContent === arguments[1]""", name, str(value))
    assert got, (name, value, text('[data-fact="%s"]' % name))


def no_complaints():
    said = [m for m in browser.log("browser") if m["level"] in ("SEVERE", "WARNING")]
    assert not said, said


def test_loads():
    open_page()
    s = status()
    wait_fact("generation", s["generation"])
    wait_fact("devices", sum(d["reachable"] for d in s["devices"]))
    wait_fact("circuits", sum(d["circuits"] for d in s["devices"]))
    wait_fact("jobs", sum(j["health"] == "up" for j in s["jobs"]))
    assert text("#fabric-name") == s["fabric"]
    assert text("#state").endswith(s["state"]) and text("#link").endswith("live")
    shown = {r["Job"].split()[-1]: r for r in rows("jobs")}
    assert set(shown) == {j["name"] for j in s["jobs"]}
    for j in s["jobs"]:
        r = shown[j["name"]]
        assert r["Collective"] == j["collective"] and r["Algorithm"] == j["algorithm"]
        assert (r["Hosts"], r["Steps"]) == (str(j["nodes"]), str(j["steps"]))
        assert r["Gap"] == "%.1f %%" % (100 * j["gap"]), r
        assert r["Rate"] == "%.1f %%" % (100 * j["rate"]), r
        for name, field in (("Time now", "expected_time_ns"), ("When whole", "whole_time_ns"),
                            ("Bound", "bound_ns")):
            number, unit = r[name].split()
            ns = float(number) * {"ns": 1, "µs": 1e3, "ms": 1e6, "s": 1e9}[unit]
            exact = j[field]
            assert abs(ns - exact) <= 0.006 * exact, (r, exact)
    shown = {r["Device"]: r for r in rows("devices")}
    for d in s["devices"]:
        r = shown[d["name"]]
        assert r["Proof"].endswith(d["proof"]) and r["Circuits"] == str(d["circuits"])
        assert (r["Driver"], r["Address"]) == (d["driver"], d["address"])
    no_complaints()


def test_pictures():
    """Every circuit is in the picture, and in its table."""
    open_page()
    known = json.loads(fetch("/state.json")[2])
    assert known["status"]["devices"] == status()["devices"]
    circuits = known["picture"]["circuits"]
    assert circuits and len(circuits) == sum(d["circuits"] for d in status()["devices"])
    drawn = browser.run("""
        return [...document.querySelectorAll('svg.chords .place')].map(
            (p) => p.getAttribute('aria-label'));""")
    hosts = known["picture"]["hosts"]
    for name, first, n in hosts:
        mine = [c for c in circuits if first <= c[3] < first + n or first <= c[4] < first + n]
        if n:
            assert "%s, %d circuit%s" % (name, len(mine), "" if len(mine) == 1 else "s") in drawn
    listed = browser.run("""
        const d = document.querySelector('#fabric details'); d.open = true;
        return new Promise((done) => setTimeout(() => done([...d.querySelectorAll('tbody tr')]
            .map((tr) => [...tr.cells].slice(0, 4).map((td) => td.textContent))), 100));""")
    ports = known["picture"]["ports"]
    assert sorted(listed) == sorted([ports[c[3]], ports[c[4]], str(c[1]), str(c[2])]
                                    for c in circuits)
    no_complaints()


def test_wavelengths():
    open_page(place="#device/ring0")
    ring = [d for d in json.loads(fetch("/state.json")[2])["picture"]["devices"]
            if d["kind"] == "ring"][0]
    browser.run("document.querySelector('svg.grid').focus()")
    browser.press("down", "down", "right")
    told = text("#view svg.grid").strip() and text('#view [aria-label="Wavelengths"] .detail')
    run = [r for r in ring["lit"] if r[0] == 2 and r[1] <= 1 < r[1] + r[2]]
    assert told.startswith("clockwise channel 2, n1 – n2: "), told
    assert told.endswith("lit %.1f %% of its steps" % (run[0][4] / 10) if run else "dark"), told
    assert browser.run("return document.querySelectorAll('.run').length") == len(ring["lit"])
    no_complaints()


def test_live():
    """A change is followed from its beginning to its end, without a reload."""
    open_page()
    before = status()["generation"]
    browser.run("""
        window.seen = [];
        new MutationObserver(() => {
            const p = document.querySelector('#change progress');
            window.seen.push([document.querySelector('#change-status')?.textContent,
                p ? p.value : -1, document.querySelector('#state').textContent]);
        }).observe(document.querySelector('#change'), { childList: true, subtree: true });""")
    weft("apply", "-f", configuration("UniRing(2,4)", "UniRing(1,4)"), "-m", "followed")
    wait_fact("generation", before + 1)
    wait_fact("circuits", sum(d["circuits"] for d in status()["devices"]))
    assert browser.wait("return document.querySelector('#change-status').textContent"
                        ".includes('committed')")
    seen = browser.run("return window.seen")
    running = [s for s in seen if s[0] and "◐" in s[0]]
    assert running and any("changing" in s[2] for s in running), seen
    assert any(0 < s[1] for s in running), seen
    assert browser.run("return performance.getEntriesByType('navigation').length") == 1
    weft("apply", "-f", os.path.dirname(FOLDER) + "/fabric.yaml")
    wait_fact("generation", before + 2)
    no_complaints()


def test_hostile_names():
    """What others write is text: comments, reasons, whatever a device says."""
    path = configuration("name: reduce", "name: '<script>'")
    weft("apply", "-f", path, ok=(65,))
    weft("drain", "h0", "-m", HOSTILE)
    open_page()
    made = browser.run("""return [window.bad ?? null,
        document.querySelectorAll('main script, main img, body > img').length]""")
    assert made == [None, 0], made
    weft("undrain", "h0")
    path = configuration("UniRing(2,4)", "UniRing(1,4)")
    weft("apply", "-f", path, "-m", HOSTILE, "--confirm-within", "10min")
    assert browser.wait("return document.body.textContent.includes(arguments[0])", HOSTILE)
    assert browser.run("return window.bad ?? null") is None
    assert browser.run("return window.bad ?? null") is None
    assert browser.wait("return document.querySelector('#change .body').textContent"
                        ".includes('waits for confirmation')")
    weft("confirm")
    weft("apply", "-f", os.path.dirname(FOLDER) + "/fabric.yaml")
    no_complaints()


def problems():
    """Of weft status, as the page lists them: what is down first."""
    found = [(p["kind"].replace("-", " "), p["device"] or p["job"], p["text"])
             for p in status()["problems"]]
    return sorted(found, key=lambda p: p[0] not in ("job down", "device unreachable"))


def same_problems():
    """Tile, list and weft status tell the same, once what is left of jobs was planned."""
    end = time.monotonic() + 20
    while True:
        want = problems()
        wait_fact("problems", len(want))
        shown = [(r["What"].lstrip("▲✕"), r["Where"], r["Told"]) for r in rows("problems")]
        settled = not any("is being planned" in told for _, _, told in want)
        if (shown == want and settled) or time.monotonic() > end:
            break
        time.sleep(0.1)
    assert shown == want and settled, (shown, want)
    return want


def test_problems():
    """Two circuits are gone and two are there that no job asked for."""
    open_page()
    (_, in0, out0, *_), (_, in1, out1, *_) = json.loads(
        fetch("/state.json")[2])["picture"]["circuits"][:2]
    # The emulator counts ports from 0.
    for line in ("unset %d,%d" % (in0 - 1, out0 - 1), "unset %d,%d" % (in1 - 1, out1 - 1),
                 "set %d,%d" % (in0 - 1, out1 - 1), "set %d,%d" % (in1 - 1, out0 - 1)):
        control("ocs0", line)
    weft("verify", ok=(2,))
    assert browser.wait("return document.querySelector('svg.chords .missing .sign')")
    assert {"circuits dark", "circuits unexpected"} <= {p[0] for p in same_problems()}
    assert text("svg.chords .missing .sign") == "✕"
    assert text("svg.chords .unexpected .sign") == "!"
    health = {r["Device"]: r["Health"] for r in rows("devices")}
    assert health["ocs0"].lstrip("▲").startswith("circuits"), health
    visit("#device/ocs0")
    odd = browser.run("""
        return [...document.querySelectorAll('#view table')].flatMap((t) => t.caption.textContent
            .startsWith('Circuits that') ? [...t.tBodies[0].rows].map((r) =>
                [...r.cells].slice(0, 2).map((c) => c.textContent)) : []);""")
    assert sorted((what[1:].split()[0], circuit) for what, circuit in odd) == sorted(
        (what, "in %d → out %d" % xc) for what, xc in (
            ("missing", (in0, out0)), ("missing", (in1, out1)),
            ("unexpected", (in0, out1)), ("unexpected", (in1, out0)))), odd
    visit("#")
    weft("apply", "-f", os.path.dirname(FOLDER) + "/fabric.yaml", "--mode", "update")
    wait_fact("problems", 0)
    assert browser.wait("return document.querySelector('#problems .body').textContent"
                        ".includes('None')")
    no_complaints()


def test_faults():
    """A failed port and a cut fibre: banner, tile, list, tables and drawings agree, and the
    history shows the fall of the rates."""
    open_page()
    control("ocs0", "fault port-failed=o1")
    control("ring0", "fault cut-cw=2:0")
    weft("verify", ok=(2,))
    assert browser.wait("""
        return document.querySelectorAll('#fabric .place.failed').length === 1 &&
            document.querySelectorAll('#fabric .fault').length === 1 &&
            [...document.querySelectorAll('#jobs tbody .badge')].every((b) =>
                b.textContent.includes('degraded'))"""), text("#fabric")
    kinds = {p[0] for p in same_problems()}
    assert {"ports failed", "parts failed", "job degraded"} <= kinds, kinds
    assert text("#advice") == status()["advice"]
    rates = {r["Job"].split()[-1]: r["Rate"] for r in rows("jobs")}
    assert rates == {j["name"]: "%.1f %%" % (100 * j["rate"]) for j in status()["jobs"]}, rates
    assert all(float(r.split()[0]) < 100 for r in rates.values()), rates
    assert "clockwise cut between n2 and n3" in text("#fabric .faults")
    assert browser.run("""return [...document.querySelectorAll('#fabric .place')].some((p) =>
        p.getAttribute('aria-label').includes('✕ out 2'))""")
    visit("#job/gather")
    now = "%g %%" % (round(1000 * [j for j in status()["jobs"] if j["name"] == "gather"][0]["rate"]) / 10)
    assert browser.wait("""return document.querySelector('#view .chart svg')
        ?.getAttribute('aria-label').endsWith(arguments[0])""", "gather " + now), (
            now, browser.run("return document.querySelector('#view .chart svg')?.ariaLabel"))
    control("ocs0", "clear")
    control("ring0", "clear")
    weft("verify", ok=(0, 2))
    visit("#")
    weft("apply", "-f", os.path.dirname(FOLDER) + "/fabric.yaml", ok=(0, 2))
    wait_fact("problems", 0)
    no_complaints()


def visit(place):
    browser.run("location.hash = arguments[0]", place)
    assert browser.wait("""return document.querySelector('#view').hidden !==
        location.hash.includes('/')""")


def view_title():
    return browser.run("""const v = document.querySelector('#view');
        return v.hidden ? null : v.querySelector('h2').textContent""")


def test_search():
    """Devices, jobs, hosts and ports by name; the way back; all by keyboard."""
    open_page()
    known = json.loads(fetch("/state.json")[2])
    wanted = [("ocs0", "ocs0"), ("gather", "gather"), ("h2", "h2"), ("n5", "n5"),
              (known["picture"]["ports"][3], known["picture"]["hosts"][1][0])]
    browser.run("document.querySelector('#search').focus()")
    for word, title in wanted:
        browser.run("document.querySelector('#search').focus()")
        browser.press(*word)
        found = browser.run("""return [...document.querySelectorAll('#found [role=option] b')].map(
            (b) => b.textContent)""")
        assert found[0] == word, (word, found)
        active = browser.run("""return document.getElementById(document.activeElement
            .getAttribute('aria-activedescendant'))?.textContent""")
        assert active.startswith(word), active
        browser.press("enter")
        assert browser.wait("return document.querySelector('#view h2')?.textContent === arguments[0]",
                            title), (title, view_title())
        assert focused()[0] == "H2"
    for _, title in wanted[-2::-1]:
        browser.run("history.back()")
        assert browser.wait("return document.querySelector('#view h2')?.textContent === arguments[0]",
                            title), (title, view_title())
    browser.run("history.back()")
    assert browser.wait("return document.querySelector('#view').hidden")
    browser.run("document.querySelector('#search').focus()")
    browser.press(*"zzz")
    assert text("#found") == "Nothing has this name."
    browser.press("escape")
    assert browser.run("return document.querySelector('#found').hidden")
    visit("#device/" + urllib.parse.quote(HOSTILE, safe=""))
    assert view_title() == HOSTILE and browser.run("return window.bad ?? null") is None
    no_complaints()


def test_player():
    """The steps of a schedule, by key and by themselves, are those of the schedule."""
    steps = {j["name"]: j["steps"] for j in status()["jobs"]}
    for job, drawing in (("reduce", ".carries"), ("gather", ".run")):
        open_page(place="#job/" + job)
        assert browser.wait("return document.querySelector('#view input[type=range]')")
        n = browser.run("return Number(document.querySelector('#view input[type=range]').max) + 1")
        assert n == steps[job], (job, n, steps)
        assert text(".step-name") == "step 1 of %d" % n
        assert browser.run("return document.querySelectorAll('.stage %s').length" % drawing) > 0
        browser.run("document.querySelector('#view input[type=range]').focus()")
        browser.press("right")
        assert text(".step-name") == "step 2 of %d" % n
        browser.press("end")
        assert text(".step-name") == "step %d of %d" % (n, n)
        browser.press("home", "shift+tab")
        assert focused()[2] == "▶ play", focused()
        browser.press("enter")
        assert browser.wait("return document.querySelector('.step-name').textContent"
                            " !== arguments[0]", "step 1 of %d" % n)
        assert focused()[2] == "❚❚ pause", focused()
        browser.press("enter")
        assert text("#view .player button") == "▶ play"
    no_complaints()


def focused():
    return browser.run("""
        const e = document.activeElement;
        const seen = [e, ...e.querySelectorAll('.reach, .hit')].some((x) => {
            const s = getComputedStyle(x);
            return (s.outlineStyle !== 'none' && parseFloat(s.outlineWidth) > 0) ||
                (x !== e && s.stroke !== 'none' && s.strokeWidth !== '0px');
        });
        return [e.tagName, e.getAttribute('role') ?? '', e.getAttribute('aria-label')
            ?? e.textContent.slice(0, 40), e.closest('section')?.id ?? '', seen];""")


def walk(most=160):
    """All that Tab stops at, until it is where it began."""
    stops = []
    for _ in range(most):
        browser.press("tab")
        stop = focused()
        if stop[0] == "BODY" or (stops and stop == stops[0]):
            return stops
        assert stop[4], ("focus is not visible", stop)
        stops.append(stop)
    raise AssertionError(("no way out", stops[-4:]))


def test_keyboard():
    """Tab reaches everything and leaves it again, arrows move inside a picture, focus is seen."""
    open_page()
    stops = walk()
    reached = {(s[0].lower(), s[1], s[3]) for s in stops}
    for want in (("a", "", ""), ("input", "combobox", ""), ("g", "option", "fabric"),
                 ("summary", "", "fabric"), ("a", "", "jobs"), ("a", "", "devices"),
                 ("input", "", "history")):
        assert want in reached, (want, stops)
    pictures = browser.run("return document.querySelectorAll('#fabric [role=listbox]').length")
    assert len([s for s in stops if s[1] == "option"]) == pictures, stops
    browser.run("document.querySelector('svg.chords [role=option]').focus()")
    first = focused()[2]
    browser.press("right")
    assert focused()[2] != first
    assert focused()[2].split(",")[0] in text("#fabric .detail")
    browser.press("end", "right")
    assert focused()[2] == first
    browser.press("tab")
    assert focused()[0].lower() == "summary"
    browser.press("enter")
    assert browser.wait("return document.activeElement.parentElement"
                        ".querySelectorAll('tbody tr').length > 0")
    browser.run("document.querySelector('.skip').focus()")
    browser.press("enter")
    assert browser.run("return document.activeElement.id") == "main"
    for place, want in (("#device/ring0", ("svg", "application")), ("#job/gather", ("input", "")),
                        ("#host/h1", ("a", ""))):
        open_page(place=place)
        assert browser.wait("return !document.querySelector('#view [aria-label=Schedule]') ||"
                            " document.querySelector('#view input[type=range]')")
        assert want in {(s[0].lower(), s[1]) for s in walk()}, place
    no_complaints()


def test_names():
    """Whatever can be used has a name for those who do not see it."""
    open_page()
    tree = browser.cdp("Accessibility.getFullAXTree")["nodes"]
    value = lambda node, key: (node.get(key) or {}).get("value", "")
    used = [n for n in tree if not n.get("ignored") and value(n, "role") in (
        "link", "button", "option", "listbox", "searchbox", "textbox", "progressbar",
        "application", "navigation", "table", "DisclosureTriangle", "meter", "combobox",
        "slider", "radio")]
    assert len(used) > 20
    nameless = [value(n, "role") for n in used if not value(n, "name")]
    assert not nameless, nameless
    assert [n for n in tree if value(n, "role") == "main"]
    ids = browser.run("return [...document.querySelectorAll('[id]')].map((e) => e.id)")
    assert len(ids) == len(set(ids)), ids


def test_without_colour():
    """Each state is a shape and a word; jobs differ in letter and dash."""
    open_page()
    bare = browser.run("""
        return [...document.querySelectorAll('.badge')].filter((b) => !b.closest('[hidden]') &&
            !(b.querySelector('.shape') && b.textContent.replace(/[^a-z]/gi, ''))).length""")
    assert bare == 0, bare
    marks = browser.run("""
        return [...document.querySelectorAll('.legend li')].map((li) => [
            li.querySelector('.mark').textContent,
            getComputedStyle(li.querySelector('.dash path')).strokeDasharray])""")
    assert len(marks) == 2, marks
    assert len({m[0] for m in marks}) == len({m[1] for m in marks}) == len(marks), marks
    shapes = browser.run("""
        const by = {};
        for (const b of document.querySelectorAll('.badge')) {
            (by[b.querySelector('.shape').textContent] ??= new Set()).add(b.className);
        }
        return Object.values(by).every((kinds) => kinds.size === 1);""")
    assert shapes


CONTRAST = """
    const light = (c) => { const [r, g, b] = c.match(/[\\d.]+/g).map(Number).map((v) => {
        v /= 255; return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; });
        return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
    const ground = (e) => { for (; e; e = e.parentElement) {
        const c = getComputedStyle(e).backgroundColor;
        if (c !== 'rgba(0, 0, 0, 0)') { return c; } } return 'rgb(255, 255, 255)'; };
    return [...document.querySelectorAll('header *, main *')].filter((e) => e.checkVisibility() &&
        [...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim())).map((e) => {
        const svg = e.namespaceURI.endsWith('svg'), s = getComputedStyle(e);
        const a = light(svg ? s.fill : s.color), b = light(ground(e));
        return [(Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05), e.className.baseVal ??
            e.className, e.textContent.slice(0, 20)]; }).filter((x) => x[0] < 4.5);"""


def test_schemes():
    """Light and dark, both legible; nothing moves where that is not wanted."""
    grounds = set()
    open_page()
    for scheme in ("light", "dark"):
        browser.media(prefers_color_scheme=scheme, prefers_reduced_motion="reduce")
        faint = browser.run(CONTRAST)
        assert not faint, (scheme, faint[:5])
        grounds.add(browser.run("return getComputedStyle(document.body).backgroundColor"))
        assert browser.run("""return document.getAnimations().length +
            [...document.querySelectorAll('*')].filter((e) =>
                parseFloat(getComputedStyle(e).transitionDuration) > 0).length""") == 0
    assert len(grounds) == 2
    browser.media()


def test_narrow():
    """No sideways scrolling on a phone, nor at 200 % of a small window."""
    for width, height in ((360, 740), (320, 640), (640, 450), (1280, 900)):
        open_page(width, height)
        got = browser.run("return document.documentElement.scrollWidth")
        assert got <= width, (width, got)
    browser.cdp("Emulation.setEmulatedMedia", media="print")
    assert browser.run("return getComputedStyle(document.querySelector('nav')).display") == "none"
    browser.cdp("Emulation.setEmulatedMedia", media="")
    no_complaints()


def test_outside():
    """Nothing was asked of anybody else since the browser was started."""
    asked = set()
    for entry in browser.log("performance"):
        m = json.loads(entry["message"])["message"]
        if m["method"] == "Network.requestWillBeSent":
            asked.add(m["params"]["request"]["url"])
    outside = [u for u in asked if not u.startswith((URL, "data:", "chrome:", "about:"))]
    assert URL in asked and URL + "state.json" in asked, asked
    assert not outside, outside


def test_restart():
    """weftd goes and comes back: the page says so, and goes on."""
    open_page()
    version = int(browser.run("return document.body.dataset.version"))
    print("stop", flush=True)
    assert browser.wait("return document.querySelector('#link').textContent"
                        ".includes('connection lost')")
    print("start", flush=True)
    assert browser.wait("return document.querySelector('#link').textContent"
                        ".includes('live')", seconds=60)
    assert browser.wait("return Number(document.body.dataset.version) > arguments[0]", version)
    wait_fact("generation", status()["generation"])


def test_large():
    """1024 hosts: few elements, and every circuit to be found."""
    open_page()
    s = status()
    wait_fact("circuits", "{:,}".format(sum(d["circuits"] for d in s["devices"]))
              .replace(",", "\u202f"))
    assert browser.run("return document.querySelectorAll('svg.chords .place').length") <= 200
    browser.run("document.querySelector('#fabric summary').click()")
    assert browser.wait("return document.querySelector('#fabric .window')")
    drawn = browser.run("return document.querySelectorAll('*').length")
    assert drawn < 12000, drawn
    found = browser.wait("""
        const input = document.querySelector('#fabric input');
        input.value = 'h0777.p1';
        input.dispatchEvent(new Event('input'));
        return [...document.querySelectorAll('#fabric details tbody tr')].map(
            (tr) => tr.textContent);""")
    assert found and all("h0777.p1" in row for row in found), found[:3]
    box = browser.run("""
        const input = document.querySelector('#fabric input');
        input.value = '';
        input.dispatchEvent(new Event('input'));
        const w = document.querySelector('#fabric .window');
        w.scrollTop = w.scrollHeight;
        return new Promise((done) => setTimeout(() => done(
            [...w.querySelectorAll('tr[aria-rowindex]')].at(-1)?.getAttribute('aria-rowindex')),
            300));""")
    assert int(box) == s["devices"][0]["circuits"] + 1, box
    no_complaints()


BARE = {"traversal", "methods", "rebinding", "headers", "huge_headers", "slow_client",
        "many_connections", "live_answer", "noise"}


def main():
    global browser
    names = sys.argv[3:]
    try:
        if not set(names) <= BARE:
            browser = Browser(FOLDER, logs=("browser", "performance"))
        for name in names:
            globals()["test_" + name]()
            print("pass", name, flush=True)
    except Missing as e:
        print("missing", str(e).split("\n")[0], flush=True)
        return 77
    except Exception:
        traceback.print_exc(file=sys.stdout)
        if browser:
            browser.picture(FOLDER + "/failed.png")
        return 1
    finally:
        if browser:
            browser.close()
    return 0


sys.exit(main())
