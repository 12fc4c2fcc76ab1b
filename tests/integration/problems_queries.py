#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Asks Prometheus at argv[1] every query of the Grafana dashboard argv[2], and fails
for one that it refuses, or that has no data though something of the kind has failed."""
import json
import re
import sys
import urllib.error
import urllib.parse
import urllib.request

FAILED = re.compile("weft_(problems|device_failed|dark|ring|job_rate|job_deg|job_dead|job_exp)")


def queries(node):
    """All "expr" of a tree of JSON, with what Grafana puts in for its variables."""
    if isinstance(node, dict):
        if "expr" in node:
            yield node["expr"].replace("$__rate_interval", "1m").replace("$device", ".*")
        node = list(node.values())
    if isinstance(node, list):
        for child in node:
            yield from queries(child)


def ask(address, query):
    """The samples that answer it; the server's error is raised."""
    url = f"http://{address}/api/v1/query?" + urllib.parse.urlencode({"query": query})
    with urllib.request.urlopen(url, timeout=30) as answer:
        return json.load(answer)["data"]["result"]


def main():
    asked = bad = 0
    with open(sys.argv[2], encoding="utf-8") as f:
        dashboard = json.load(f)
    for query in queries(dashboard):
        asked += 1
        try:
            if not ask(sys.argv[1], query) and FAILED.search(query):
                print("no data:", query)
                bad += 1
        except urllib.error.HTTPError as e:
            print(query, e.read().decode())
            bad += 1
    print(asked, "queries,", bad, "bad")
    return bad > 0 or asked < 40


sys.exit(main())
