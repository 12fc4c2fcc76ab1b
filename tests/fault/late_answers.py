# SPDX-License-Identifier: Apache-2.0
# late_answers.py ADDRESS_FILE TARGET_PORT CONTROL_SOCKET: stands before an etcd, on a port of
# its own that it writes into ADDRESS_FILE, and lets one answer come late. An answer is a DATA frame
# of HTTP/2: of a call, a lease that is kept, or a watch. Lines on the control socket:
#   late N SECONDS   the N-th answer from now on, of all connections, and what comes behind it on its own
#   state            "waits" until then, "late" while it is kept back, "done" when it has gone on
import asyncio
import sys

ADDRESS_FILE, TARGET_PORT, CONTROL = sys.argv[1:4]
DATA = 0


class Late:
    left, seconds, state = 0, 0.0, "done"

    async def answer(self):
        if self.state != "waits":
            return
        self.left -= 1
        if self.left == 0:
            self.state = "late"
            await asyncio.sleep(self.seconds)
            self.state = "done"


late = Late()


async def frames(source, sink):
    while True:
        head = await source.readexactly(9)
        if head[3] == DATA:
            await late.answer()
        sink.write(head + await source.readexactly(int.from_bytes(head[:3], "big")))
        await sink.drain()


async def octets(source, sink):
    while data := await source.read(65536):
        sink.write(data)
        await sink.drain()


async def pipe(copy, source, sink):
    try:
        await copy(source, sink)
    except (OSError, EOFError):
        pass
    finally:
        sink.close()


async def client(near_in, near_out):
    try:
        far_in, far_out = await asyncio.open_connection("127.0.0.1", int(TARGET_PORT))
    except OSError:
        near_out.close()
        return
    await asyncio.gather(pipe(octets, near_in, far_out), pipe(frames, far_in, near_out))


async def control(lines, out):
    words = (await lines.readline()).decode().split()
    if words[0] == "late":
        late.left, late.seconds, late.state = int(words[1]), float(words[2]), "waits"
    out.write(late.state.encode() + b"\n")
    out.close()


async def main():
    server = await asyncio.start_server(client, "127.0.0.1", 0)
    await asyncio.start_unix_server(control, CONTROL)
    with open(ADDRESS_FILE, "w") as file:
        print("http://127.0.0.1:%d" % server.sockets[0].getsockname()[1], file=file)
    await server.serve_forever()


asyncio.run(main())
