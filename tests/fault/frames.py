# SPDX-License-Identifier: Apache-2.0
# Run by frames.sh: SOCKET PID SECONDS SEED WEFT FABRIC. Records what real
# clients say to weftd, and says it again with mutations: bytes, frames (type,
# flags, stream, length, order, number), gRPC messages and their lengths.
# weftd may refuse and close as it likes; it must not die, stop to answer, or
# grow. Prints "pass WHAT" lines; a failure names the seed.
import os
import random
import socket
import struct
import subprocess
import sys
import threading
import time

SOCKET, PID, SECONDS, SEED, WEFT, FABRIC = sys.argv[1:7]
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
MOST_BODY = 6 << 20  # of a mutated message
MOST_SAID = 8 << 20  # in a session
MOST_MIB = 700      # of an instrumented weftd that has seen everything

rng = random.Random(int(SEED))


# ---- recording --------------------------------------------------------------

def forward(source, sink, record):
    while data := source.recv(65536):
        record += data
        sink.sendall(data)
    try:
        sink.shutdown(socket.SHUT_WR)
    except OSError:
        pass


def record(*words):
    """What `weft WORDS` says to weftd."""
    path = SOCKET + ".tap"
    said = bytearray()
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(path)
        door.listen(1)
        client = subprocess.Popen(
            [WEFT, *words, "--socket", path], stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        door.settimeout(20)
        try:
            near, _ = door.accept()
        except TimeoutError:
            sys.exit("weft %s does not call weftd" % " ".join(words))
        far = connect()
        near.settimeout(60)
        far.settimeout(60)
        back = threading.Thread(target=forward, args=(far, near, bytearray()))
        back.start()
        forward(near, far, said)
        back.join()
        client.wait(60)
        near.close()
        far.close()
    os.unlink(path)
    return bytes(said)


def frames_of(said):
    """The frames after the preface: [type, flags, stream, payload]."""
    frames, at = [], len(PREFACE)
    while at + 9 <= len(said):
        length = int.from_bytes(said[at:at + 3], "big")
        stream = int.from_bytes(said[at + 5:at + 9], "big")
        frames.append([said[at + 3], said[at + 4], stream,
                       said[at + 9:at + 9 + length]])
        at += 9 + length
    return frames


def cut(frames):
    """Data in frames of a size that every server takes."""
    for kind, flags, stream, payload in frames:
        while kind == 0 and len(payload) > 16384:
            yield 0, 0, stream, payload[:16384]
            payload = payload[16384:]
        yield kind, flags, stream, payload


def bytes_of(frames):
    out = bytearray(PREFACE)
    for kind, flags, stream, payload in cut(frames):
        out += struct.pack(">I", len(payload))[1:]
        out += bytes([kind & 255, flags & 255])
        out += struct.pack(">I", stream & 0xffffffff) + payload
    return out


# ---- mutations --------------------------------------------------------------

def some_bytes(data):
    data = bytearray(data)
    for _ in range(rng.randint(1, 8)):
        at = rng.randrange(len(data) + 1)
        what = rng.randrange(4)
        if what == 0 and at < len(data):
            data[at] ^= 1 << rng.randrange(8)
        elif what == 1 and at < len(data):
            data[at] = rng.choice((0, 1, 0x7f, 0x80, 0xff))
        elif what == 2:
            data[at:at] = bytes(rng.randrange(256)
                                for _ in range(rng.randint(1, 9)))
        else:
            del data[at:at + rng.randint(1, 9)]
    return bytes(data)


def message(payload):
    """A gRPC message mutated inside, its length right again or not."""
    body = some_bytes(payload[5:])
    if rng.randrange(4) == 0:       # a message that says it is big, or many
        body = (body * rng.choice((2, 20, 20, 2000)))[:MOST_BODY]
    length = len(body) if rng.randrange(8) else rng.getrandbits(32)
    return payload[:1] + struct.pack(">I", length) + body


def strange_frame(frames):
    stream = rng.choice([f[2] for f in frames] + [0, 2, 3, 99, 2 ** 31 - 1])
    kind = rng.choice((0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 200))
    payload = {
        3: struct.pack(">I", rng.choice((0, 1, 8, 77))),
        4: b"".join(struct.pack(">HI", rng.randint(0, 9), rng.choice(
            (0, 1, 100, 16384, 2 ** 24, 2 ** 31, 2 ** 32 - 1)))
            for _ in range(rng.randint(0, 6))),
        6: os.urandom(8),
        8: struct.pack(">I", rng.choice((0, 1, 65535, 2 ** 31 - 1))),
    }.get(kind, bytes(rng.randrange(256)
                      for _ in range(rng.choice((0, 1, 4, 5, 8, 300)))))
    return [kind, rng.choice((0, 1, 4, 5, 8, 32, 255)), stream, payload]


def shortened(frames):
    room = MOST_SAID
    for i, f in enumerate(frames):
        room -= 9 + len(f[3])
        if room < 0:
            return frames[:i] or [[0, 0, 1, b""]]
    return frames


def mutate(session):
    frames = [list(f) for f in session]
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(frames))
        what = rng.randrange(10)
        if what == 0:
            frames[at][3] = some_bytes(frames[at][3])
        elif what == 1:
            frames[at][rng.randrange(2)] = rng.randrange(256)
        elif what == 2:
            frames[at][2] = rng.choice((0, 1, 2, 3, 5, 2 ** 31 - 1))
        elif what == 3:
            frames[at:at] = [strange_frame(frames)] * rng.choice((1, 1, 300))
        elif what == 4:
            frames[at:at] = [list(frames[at])] * rng.choice((1, 2, 200))
        elif what == 5 and len(frames) > 1:
            del frames[at]
        elif what == 6:
            rng.shuffle(frames)
        elif what == 7:             # headers that never end
            frames[at:at] = [[1, 0, 1, frames[at][3]]] + [
                [9, 0, 1, os.urandom(200)]] * rng.choice((1, 1, 100))
        else:                       # what a service is for
            data = [f for f in frames if f[0] == 0 and len(f[3]) >= 5]
            for f in data[:2]:
                f[3] = message(f[3])
        frames = shortened(frames)
    out = bytes_of(frames)
    if rng.randrange(6) == 0:
        out = PREFACE + some_bytes(out[len(PREFACE):])
    if rng.randrange(6) == 0:
        out = out[:rng.randrange(len(out) + 1)]
    return bytes(out)


# ---- the run ----------------------------------------------------------------

def connect():
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(10)
    s.connect(SOCKET)
    return s


def talk(data):
    """Says it in pieces, and hears a little or nothing of the answer."""
    with connect() as s:
        s.settimeout(0.003)
        try:
            for at in range(0, len(data), 1 << 16):
                s.sendall(data[at:at + (1 << 16)])
            if rng.randrange(3):
                s.recv(4096)
        except OSError:
            pass


def peak_mib():
    with open("/proc/%s/status" % PID) as f:
        for line in f:
            if line.startswith("VmHWM"):
                return int(line.split()[1]) >> 10
    return 0


def answers():
    return subprocess.run([WEFT, "status", "--socket", SOCKET],
                          stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL, timeout=60).returncode


def main():
    sessions = [frames_of(record(*words.split())) for words in (
        "status", "plan -f " + FABRIC, "apply -f " + FABRIC, "diff",
        "history", "watch -n 1", "log rpc=error", "job list",
        "job request x --count 2 --no-wait -c allgather --size 1MB", "job release x",
        "drain h0", "undrain h0", "rollback", "verify", "cancel")]
    assert all(any(f[0] == 0 for f in s) for s in sessions)
    print("pass %d sessions of real clients are recorded" % len(sessions))
    end = time.monotonic() + float(SECONDS)
    said = 0
    while time.monotonic() < end:
        data = mutate(rng.choice(sessions))
        try:
            talk(data)
        except OSError as e:
            sys.exit("seed %s, session %d: %s" % (SEED, said, e))
        said += 1
        if said % 500 == 0:
            assert answers() == 0, "seed %s, session %d" % (SEED, said)
            assert peak_mib() < MOST_MIB, (SEED, said, peak_mib())
    assert answers() == 0, SEED
    print("pass it answers after mutated sessions (seed %s)" % SEED)
    print("%d sessions, peak %d MiB" % (said, peak_mib()))
    assert peak_mib() < MOST_MIB
    print("pass its memory stays bounded")


main()
