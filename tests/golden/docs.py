# SPDX-License-Identifier: Apache-2.0
"""The commands that README and docs show, and what is known of weft's verbs.

docs.py verbs WEFT PAGE...  every command's verb and options exist
docs.py files PAGE...       every file of the repository that is named exists
docs.py blocks PAGE...      the commands of code blocks, a line each
docs.py all PAGE...         all commands in order, those in running text as well
docs.py example PAGE START  the code block whose first line begins so
"""
import os
import re
import subprocess
import sys

SPAN = re.compile(r"`([^`]+)`")
# Names in capitals stand for others.
FILE = re.compile(r"`((?:configs|docs|tests|proto|drivers|lib|controller|"
                  r"collective|topology|optree|rwa)/[a-z0-9_./-]*)`")


def clean(text):
    """A command without comment, pipe, redirection and prompt."""
    text = re.sub(r"^(\$ |sudo )", "", text.strip())
    text = re.sub(r"\s+#.*", "", text)
    return re.sub(r"\s+(\||>|&).*", "", text).strip()


def commands(page, spans):
    """(line, command) of all that begins with weft; spans: also those in
    running text."""
    held = ""
    for number, line in enumerate(open(page, encoding="utf-8"), 1):
        line = line.rstrip("\n")
        if line.startswith(("    ", "\t")):
            held += " " + line.strip().removesuffix("\\")
            if not line.endswith("\\"):
                found, held = [held], ""
            else:
                continue
        else:
            found = SPAN.findall(line) if spans else []
        for text in map(clean, found):
            if re.match(r"weft [a-z]", text):
                yield number, text


def run(*command):
    return subprocess.run(command, capture_output=True, text=True,
                          check=True).stdout.split()


def check_verbs(weft, pages):
    verbs = set(subprocess.run([weft, "complete", "--all"],
                               capture_output=True, text=True,
                               check=True).stdout.splitlines())
    groups = {verb.split()[0] for verb in verbs}
    known, bad = {}, 0
    for page in pages:
        for number, text in commands(page, True):
            words = re.sub(r"[\[\](){}]", " ", text).split()[1:]
            verb = " ".join(words[:2])
            verb = verb if verb in verbs else words[0]
            if verb not in verbs and verb not in groups:
                if subprocess.run([weft, verb, "--help"], check=False,
                                  capture_output=True).returncode == 0:
                    continue    # another name of a verb
                print(f"# {page}:{number}: {text}: no such command")
                bad = 1
                continue
            if verb not in verbs:
                # "weft schedule" alone is a group; with a word, a mistake.
                if len(words) > 1 and re.match("[a-z]", words[1]):
                    print(f"# {page}:{number}: {text}: no such command")
                    bad = 1
                continue
            if verb not in known:
                known[verb] = set(run(weft, "complete", *verb.split(), "--"))
            for word in words:
                option = re.match(r"--[a-z][a-z-]*", word)
                if option and option.group() not in known[verb]:
                    print(f"# {page}:{number}: weft {verb} has no "
                          f"{option.group()}")
                    bad = 1
    return bad


def check_files(pages):
    bad = 0
    for page in pages:
        for number, line in enumerate(open(page, encoding="utf-8"), 1):
            for path in FILE.findall(line):
                if not os.path.exists(path):
                    print(f"# {page}:{number}: {path} does not exist")
                    bad = 1
    return bad


def blocks(page):
    """Code blocks, indented or fenced, without their indentation."""
    block, fenced = [], False
    for line in open(page, encoding="utf-8"):
        if line.startswith("```"):
            fenced = not fenced
        elif fenced or line.startswith("    "):
            block.append(line if fenced else line[4:])
            continue
        elif block and not line.strip():
            block.append("\n")
            continue
        if block:
            yield "".join(block)
        block = []
    if block:
        yield "".join(block)


def in_order(page):
    """Commands of make, weft and weftd as they are printed, without comments."""
    text = re.sub(r"^```.*?\n(.*?)^```$", lambda m: re.sub("^", "    ", m[1], flags=re.M),
                  open(page, encoding="utf-8").read(), flags=re.M | re.S)
    for block, span in re.findall(r"^(?: {4}|\t)(.*)$|`([^`]+)`", text, re.M):
        command = re.sub(r"\s+#.*", "", block) or span
        command = re.sub(r"\s+", " ", command).strip()
        if re.match(r"(weft|make) [a-z-]|weftd --", command):
            yield command


def main():
    what, rest = sys.argv[1], sys.argv[2:]
    if what == "verbs":
        return check_verbs(rest[0], rest[1:])
    if what == "files":
        return check_files(rest)
    if what == "example":
        found = [b for b in blocks(rest[0]) if b.startswith(rest[1])]
        print(found[0] if found else "", end="")
        return not found
    if what == "all":
        for page in rest:
            print("\n".join(in_order(page)))
        return 0
    for page in rest:
        for _, text in commands(page, False):
            print(text)
    return 0


sys.exit(main())
