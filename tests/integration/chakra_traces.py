# SPDX-License-Identifier: Apache-2.0
"""Chakra traces from lines: chakra_traces.py PREFIX RANKS <LINES, PREFIX.0.et and on.

RANKS: "*", one, or several apart by commas; the lines are in the traces of these:

    RANKS id TYPE [attribute=value]... [after=ID,...] [control=ID,...] [name=TEXT] [values=TEXT]

Values are int64, or have a type: is_cpu_op=bool:1, comm_group=int32:1, pg_name=string:1.
"""
import shlex
import sys

from chakra import chakra_pb2


def node(words):
    n = chakra_pb2.Node(id=int(words[0]), type=int(words[1]))
    for word in words[2:]:
        key, _, value = word.partition("=")
        numbers = value.split(",") if key in ("after", "control") else []
        if key == "after":
            n.data_deps.extend(map(int, numbers))
        elif key == "control":
            n.ctrl_deps.extend(map(int, numbers))
        elif key == "name":
            n.name = value
        elif key == "values":
            n.inputs.values = value
        else:
            kind, _, value = value.rpartition(":")
            a = n.attr.add(name=key)
            setattr(a, (kind or "int64") + "_val", value if kind == "string" else int(value))
    return n


def put(file, message):
    data = message.SerializeToString()
    length = len(data)
    while length > 127:
        file.write(bytes([length & 127 | 128]))
        length >>= 7
    file.write(bytes([length]) + data)


lines = [shlex.split(line) for line in sys.stdin if line.strip()]
for rank in range(int(sys.argv[2])):
    with open(f"{sys.argv[1]}.{rank}.et", "wb") as f:
        put(f, chakra_pb2.GlobalMetadata(version="0.0.4"))
        for ranks, *words in lines:
            if ranks == "*" or str(rank) in ranks.split(","):
                put(f, node(words))
