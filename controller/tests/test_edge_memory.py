"""What switches send costs the controller a bounded amount of memory, whatever they say."""

from __future__ import annotations

import asyncio
import os
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import edges
import pytest
import speakers

TESTS = Path(__file__).parent
LIMIT_MIB = 64
SERVER = f"""
import asyncio, sys
import edges

async def run():
    async with edges.world(max_memory_mib={LIMIT_MIB}) as world:
        print(world.edge.port, flush=True)
        while (line := await asyncio.to_thread(sys.stdin.readline)):
            print(max((len(s.ports) for s in world.edge.sessions.values()), default=0), flush=True)

asyncio.run(run())
"""
HOSTILE = 40
REPLY_BYTES = 20 << 20  # of each, 800 MiB of all
BUDGET_KIB = 3 * LIMIT_MIB * 1024  # a quarter of what is sent; what Python itself makes of what is counted is in it
MULTIPART, FLOW = 18, 1


class Process:
    """An edge in a process of its own, so that its memory is nobody else's."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None and process.stdin is not None
        self.process, self.port = process, int(process.stdout.readline())

    def peak_kib(self) -> int:
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        return int(next(line for line in lines if line.startswith("VmHWM:")).split()[1])

    def most_ports(self) -> int:
        """What the edge knows of the switch with most of them."""
        assert self.process.stdout is not None and self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline())


@pytest.fixture
def server() -> Iterator[Process]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(TESTS), str(TESTS.parent)))}
    pipe = subprocess.PIPE
    with subprocess.Popen(
        [sys.executable, "-c", SERVER], env=environment, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True
    ) as process:
        try:
            yield Process(process)
        finally:
            process.kill()


def entry(number: int, cookie: int) -> bytes:
    """A flow entry as a switch that is asked describes it."""
    match = struct.pack("!HHIHII6x", 1, 18, 0x80000A02, 0x800, 0x80001604, number)
    goto = struct.pack("!HHB3x", 1, 8, 4)
    fixed = struct.pack("!HBxIIHHHH4xQQQ", 48 + 24 + 8, 3, 1, 0, 100, 0, 0, 0, cookie, 0, 0)
    return fixed + match + goto


def parts(kind: int, xid: int, body: bytes, last: bool) -> bytes:
    """A multipart reply of whole entries of 80 bytes, or one that does not end."""
    size = 80 * 800
    ends = list(range(0, len(body), size))
    return b"".join(
        speakers.bare(19, xid, struct.pack("!HH4x", kind, not (last and at == ends[-1])) + body[at : at + size])
        for at in ends
    )


def lie(cookie: int, last: bool) -> Callable[[speakers.Speaker, int, bytes], bytes | None]:
    """Answers what is asked of all flow entries with very many."""
    bodies: dict[int, bytes] = {}

    def answer(this: speakers.Speaker, xid: int, message: bytes) -> bytes | None:
        (kind,) = struct.unpack_from("!H", message, 8)
        if kind != FLOW or message[16] != 0xFF:
            return speakers.Speaker._multipart(this, xid, message)
        if not bodies:
            bodies[0] = b"".join(entry(number, cookie) for number in range(REPLY_BYTES // 80))
        return parts(kind, xid, bodies[0], last)

    return answer


async def attack(server: Process, answer: Callable[[speakers.Speaker, int, bytes], bytes | None]) -> None:
    """An honest switch is served through all of it."""
    fabric = speakers.Fabric()
    honest = speakers.Speaker(fabric, 1)
    loop = asyncio.get_running_loop()
    await loop.create_connection(lambda: honest, "127.0.0.1", server.port)
    await edges.until("the honest switch is served", lambda: honest.flows)
    before = server.peak_kib()
    hostile = []
    for dpid in range(100, 100 + HOSTILE):
        speaker = speakers.Speaker(fabric, dpid)
        speaker.handlers[MULTIPART] = answer
        await loop.create_connection(lambda speaker=speaker: speaker, "127.0.0.1", server.port)
        hostile.append(speaker)
    await edges.until("most are sent away", lambda: sum(one.transport is None for one in hostile) > HOSTILE * 2 // 3)
    honest.flows.clear()
    await edges.until("the honest switch's lease is renewed", lambda: honest.flows)
    assert honest.transport is not None
    assert server.peak_kib() - before < BUDGET_KIB
    for one in hostile:
        if one.transport is not None:
            one.transport.abort()


@pytest.mark.parametrize(
    ("cookie", "last"),
    [(0x7472 << 48 | 2 << 32, True), (0, True), (0, False)],
    ids=["entries of ours", "entries of others", "replies without end"],
)
def test_switches_that_say_to_have_very_many_entries(server: Process, cookie: int, last: bool):
    asyncio.run(attack(server, lie(cookie, last)))


def test_a_switch_that_makes_up_ports(server: Process):
    async def run() -> None:
        fabric = speakers.Fabric()
        speaker = speakers.Speaker(fabric, 1)
        loop = asyncio.get_running_loop()
        await loop.create_connection(lambda: speaker, "127.0.0.1", server.port)
        await edges.until("it is served", lambda: speaker.flows)
        assert speaker.transport is not None
        before = server.peak_kib()
        for number in range(1, 200_001):
            port = struct.pack("!I4x6s2x16s8I", number, b"\2" * 6, b"made up", 0, 0, 0, 0, 0, 0, 0, 0)
            speaker.transport.write(speakers.bare(12, 0, struct.pack("!B7x", 0) + port))
        speaker.flows.clear()
        await edges.until("all of it was taken", lambda: speaker.flows)
        assert 0 < await asyncio.to_thread(server.most_ports) <= 2048
        assert server.peak_kib() - before < LIMIT_MIB * 1024

    asyncio.run(run())
