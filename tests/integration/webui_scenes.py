# SPDX-License-Identifier: Apache-2.0
"""Views of the page as they are stored: what they consist of, and that no text
lies over another.

webui_scenes.py FOLDER STORED [--update]: for each line of standard input, URL SCENE:HASH..., each
view must be as STORED/SCENE.txt says, at 1280 pixels; texts are looked at there and at 400.
Prints "pass SCENE" for each, "missing" without a browser, and "done" after each line; an empty line
is the last. One browser looks at all, as to start it takes longest.
"""

import difflib
import os
import sys
import time
import traceback

from webdriver import Browser, Missing

# Where devices are a map, the page takes four screens of a phone at most.
MAP = "return document.querySelector('#overview:not([hidden]) .map') !== null"
HERE = os.path.dirname(os.path.abspath(__file__))
OVERLAP_BY_FORCE = """
    const p = document.querySelector('main h2:not([hidden] *)');
    const q = p.cloneNode(true);
    const box = p.getBoundingClientRect();
    document.body.append(q);
    Object.assign(q.style, { position: 'fixed', margin: 0, left: `${box.left}px`,
        top: `${box.top}px` });"""


def script(name):
    with open(os.path.join(HERE, name), encoding="utf-8") as f:
        return f.read()


def look(browser, url, width):
    """All is there: what is asked for after the state, and at least two samples."""
    browser.size(width, 900)
    browser.go("about:blank")
    browser.go(url)
    assert browser.wait("return document.body.dataset.version"), browser.log("browser")
    assert browser.wait("""
        const view = location.hash.includes('/') ? '#view' : '#overview';
        const player = document.querySelector(`${view} [aria-label="Schedule"]`);
        const history = document.querySelector(`${view} [data-history]`);
        return (!player || player.querySelector('input')) &&
            (!history || history.querySelector('.chart, .nothing'));"""), url


def check_text(browser, name, stored, update):
    """The page is as stored before long: the newest sample may come a second later."""
    path = os.path.join(stored, name + ".txt")
    structure = script("webui_structure.js")
    if update:
        time.sleep(2)
        with open(path, "w", encoding="utf-8") as f:
            f.write(browser.run(structure))
        return
    with open(path, encoding="utf-8") as f:
        want = f.read()
    end = time.monotonic() + 20
    while (got := browser.run(structure)) != want and time.monotonic() < end:
        time.sleep(0.1)
    if got != want:
        print("\n".join(difflib.unified_diff(want.splitlines(), got.splitlines(), "stored", "now",
                                             lineterm="", n=1)))
        raise AssertionError(name + " is not as stored")


def check_scene(browser, url, stored, name, update):
    for width in (1280, 400):
        look(browser, url, width)
        if width == 1280:
            check_text(browser, name, stored, update)
        n, found = browser.run(script("webui_overlap.js"))
        assert n > 2 and not found, (name, width, found)
        wide = browser.run("return document.documentElement.scrollWidth")
        assert wide <= width, (name, width, wide)
        high = browser.run("return document.documentElement.scrollHeight")
        assert high <= 4 * 900 or not browser.run(MAP), (name, width, high)
    said = [m for m in browser.log("browser") if m["level"] in ("SEVERE", "WARNING")]
    assert not said, said


def check_detector(browser):
    """Texts that do lie over each other are found."""
    browser.run(OVERLAP_BY_FORCE)
    assert browser.run(script("webui_overlap.js"))[1], "an overlap is not seen"


def look_at(browser, line, stored, update):
    url, *scenes = line.split()
    try:
        for scene in scenes:
            name, place = scene.split(":", 1)
            check_scene(browser, url + "#" + place, stored, name, update)
            print("pass", name, flush=True)
        check_detector(browser)
    finally:
        # A page whose weftd ends would complain to the next one's, also where it was not as stored.
        browser.go("about:blank")
        browser.log("browser")


def main():
    folder, stored, *options = sys.argv[1:]
    browser = None
    while (line := sys.stdin.readline().strip()):
        try:
            browser = browser or Browser(folder)
            look_at(browser, line, stored, options == ["--update"])
        except Missing as e:
            print("missing", str(e).split("\n")[0], flush=True)
        except Exception:
            traceback.print_exc(file=sys.stdout)
        print("done", flush=True)
    if browser:
        browser.close()


main()
