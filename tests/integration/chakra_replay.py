# SPDX-License-Identifier: Apache-2.0
"""Runs Chakra traces of sends and receives: chakra_replay.py PREFIX RANKS BYTES_PER_NS ALPHA_NS

A message begins when all that its send waits for has come, and has come alpha and its bytes later;
each waits for the one before it on its pair of ranks. Prints "TIME_NS SENT RECEIVED_LEAST RECEIVED_MOST":
when the last has come, and bytes in all and of a rank. Fails where a send or receive is without
its other half, where two have one tag, or where one waits for ever.
"""
import heapq
import sys

from chakra import chakra_pb2

SEND, RECEIVE = 5, 6


def read(path):
    with open(path, "rb") as f:
        data = f.read()
    at, kind, nodes = 0, chakra_pb2.GlobalMetadata, []
    while at < len(data):
        length = shift = 0
        while True:
            byte, at = data[at], at + 1
            length |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                break
        nodes.append(kind.FromString(data[at:at + length]))
        at, kind = at + length, chakra_pb2.Node
    return nodes[1:]


def value(node, name):
    a, = (a for a in node.attr if a.name == name)
    return getattr(a, a.WhichOneof("value"))


prefix, ranks, rate, alpha = sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), float(sys.argv[4])
traces = [read(f"{prefix}.{r}.et") for r in range(ranks)]
halves = ({}, {})   # of sends and receives: (from, to, tag) -> (rank, node)
for r, nodes in enumerate(traces):
    assert [n.id for n in nodes] == list(range(len(nodes)))
    for n in nodes:
        assert n.type in (SEND, RECEIVE) and value(n, "comm_type") == n.type
        ends = (r, value(n, "comm_dst")) if n.type == SEND else (value(n, "comm_src"), r)
        half = halves[n.type == RECEIVE]
        assert (*ends, value(n, "comm_tag")) not in half, "a tag twice"
        half[(*ends, value(n, "comm_tag"))] = (r, n)
assert halves[0].keys() == halves[1].keys(), "a half is missing"

waits = {(r, n.id): len(n.data_deps) for r, nodes in enumerate(traces) for n in nodes}
after, before = {}, {}
for r, nodes in enumerate(traces):
    for n in nodes:
        if n.type == SEND:
            link = (r, value(n, "comm_dst"))
            assert link not in before or before[link] in n.data_deps
            before[link] = n.id
        for d in n.data_deps:
            after.setdefault((r, d), []).append(n)
came, sent, received = 0, 0, [0] * ranks
ready = [(0, value(n, "comm_tag"), r, n.id) for r, nodes in enumerate(traces)
         for n in nodes if n.type == SEND and not n.data_deps]
heapq.heapify(ready)
while ready:
    now, tag, r, node = heapq.heappop(ready)
    n = traces[r][node]
    size, to = value(n, "comm_size"), value(n, "comm_dst")
    _, other = halves[1][(r, to, tag)]
    assert value(other, "comm_size") == size
    end = now + alpha + size / rate
    came = max(came, end)
    sent += 1
    received[to] += size
    for rank, done in ((r, node), (to, other.id)):
        for next_one in after.get((rank, done), []):
            waits[(rank, next_one.id)] -= 1
            if waits[(rank, next_one.id)] == 0:
                heapq.heappush(ready, (end, value(next_one, "comm_tag"), rank, next_one.id))
assert sent == len(halves[0]), "some wait for ever"
print(round(came), sum(received), min(received), max(received))
