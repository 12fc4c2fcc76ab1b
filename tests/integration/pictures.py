# SPDX-License-Identifier: Apache-2.0
"""Pictures: SVG files as any reader takes them, and as a browser shows them.

pictures.py files FILE...            well-formed, said what they are, inside their box, no text on text
pictures.py browser FOLDER FILE...   the same by the boxes that a browser measures, light and dark
"""

import os
import re
import sys
import xml.etree.ElementTree as xml

SVG = "{http://www.w3.org/2000/svg}"
ASCENT, DESCENT = 0.9, 0.22
NARROW = set("iljtfrI1.,:;|!'()[] -")


def overlaps(boxes):
    """Pairs of (left, top, right, bottom, text) that cover each other."""
    boxes.sort(key=lambda b: b[1])
    found = []
    for i, a in enumerate(boxes):
        for b in boxes[i + 1:]:
            if b[1] >= a[3]:
                break
            if a[0] < b[2] and b[0] < a[2] and a[1] < b[3]:
                found.append(f"'{a[4]}' and '{b[4]}'")
    return found


def text_boxes(root):
    for e in root.iter(SVG + "text"):
        text = "".join(e.itertext()) if e.find(SVG + "title") is None else e.find(
            SVG + "title").tail
        size = float(e.get("font-size", "12"))
        wide = size * sum(0.33 if c in NARROW else 0.56 for c in text)
        x, y = float(e.get("x")), float(e.get("y"))
        style = e.get("class", "").split()
        x -= wide if "end" in style else wide / 2 if "mid" in style else 0
        yield [x, y - ASCENT * size, x + wide, y + DESCENT * size, text]


def check_file(path):
    root = xml.parse(path).getroot()
    _, _, width, height = map(float, root.get("viewBox").split())
    bad = [f"{what} is missing" for what in ("title", "desc", "style")
           if not root.findtext(SVG + what)]
    boxes = list(text_boxes(root))
    bad += [f"'{b[4]}' is outside" for b in boxes
            if b[0] < 0 or b[1] < 0 or b[2] > width or b[3] > height]
    bad += overlaps(boxes)
    for e in root.iter():
        numbers = [float(e.get(k, "0")) for k in ("x", "y", "cx", "cy")]
        numbers += [float(n) for n in re.findall(r"M(-?[\d.]+)", e.get("d", ""))]
        if "pattern" not in e.tag and (min(numbers) < -8 or max(numbers) > max(width, height)):
            bad.append(f"{e.tag[len(SVG):]} at {numbers} is outside")
    if os.path.getsize(path) > 1 << 20:
        bad.append("more than 1 MiB")
    if not boxes:
        bad.append("no text")
    return bad


MEASURE = """
    const view = document.documentElement.viewBox.baseVal;
    const found = [...document.querySelectorAll("text")].map((e) => {
        const b = e.getBBox();
        return [b.x, b.y, b.x + b.width, b.y + b.height, e.lastChild.textContent];
    });
    const part = document.querySelector("rect.fill.card");
    return { width: view.width, height: view.height, texts: found,
        ground: getComputedStyle(document.querySelector("rect.ground")).fill,
        ink: getComputedStyle(document.querySelector("text")).fill };
"""


def check_shown(browser, path):
    bad = []
    grounds = set()
    for scheme in ("light", "dark"):
        browser.media(prefers_color_scheme=scheme)
        browser.go("file://" + path)
        shown = browser.run(MEASURE)
        bad += [f"{scheme}: '{b[4]}' is outside" for b in shown["texts"]
                if b[0] < 0 or b[1] < 0 or b[2] > shown["width"] or b[3] > shown["height"]]
        bad += [f"{scheme}: {pair}" for pair in overlaps(shown["texts"])]
        # Far apart in grey, whatever the colours.
        ground, ink = (sum(map(int, re.findall(r"\d+", shown[k])[:3])) for k in ("ground", "ink"))
        if abs(ground - ink) < 300:
            bad.append(f"{scheme}: {shown['ink']} on {shown['ground']}")
        grounds.add(shown["ground"])
    if len(grounds) != 2:
        bad.append("light and dark are the same")
    return bad


def report(path, bad):
    for line in bad[:10]:
        print(f"# {os.path.basename(path)}: {line}")
    print(f"{'fail' if bad else 'pass'} {os.path.basename(path)}")


def main():
    if sys.argv[1] == "files":
        for path in sys.argv[2:]:
            report(path, check_file(path))
        return
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    from webdriver import Browser, Missing
    try:
        browser = Browser(sys.argv[2])
    except Missing as e:
        print(f"missing {e}")
        return
    try:
        for path in sys.argv[3:]:
            report(path, check_shown(browser, path))
    finally:
        browser.close()


main()
