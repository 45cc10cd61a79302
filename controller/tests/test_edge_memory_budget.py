"""What is counted against `openflow.max_memory_mib`: all that a connection takes, until it is gone."""

from __future__ import annotations

import asyncio
import struct

import edges
import speakers
import test_edge_memory as lies

from trunkline_controller.openflow import messages
from trunkline_controller.openflow.connection import Connection
from trunkline_controller.openflow.memory import Budget
from trunkline_controller.openflow.session import ENTRY_BYTES, SLICE, Session

OURS = 0x7472 << 48 | 2 << 32


def test_who_takes_most_gives_way_and_what_is_on_its_way_out_counts():
    too_much = []
    budget = Budget(100, too_much.append)
    small, large = budget.account(), budget.account()
    small.keep(10)
    large.keep(90)
    assert not too_much
    small.keep(5)
    assert too_much == [large]
    large.close()
    with large.holding() as held:
        held.set(50)
        assert (budget.held, too_much) == (155, [large])  # nobody gives way for what is about to go
        large.end()
        large.keep(70)
        assert (budget.held, large.held) == (65, 50)
    assert (budget.held, large.held) == (15, 0)


class Transport(asyncio.Transport):
    """A switch that does not read while `is_stuck`."""

    def __init__(self) -> None:
        super().__init__()
        self.sent, self.unsent, self.is_stuck = [], 0, False
        self._is_closing = False

    def get_extra_info(self, name, default=None):
        return ("192.0.2.1", 1) if name == "peername" else default

    def write(self, data):
        self.sent.append(bytes(data))
        if self.is_stuck:
            self.unsent += len(data)

    def get_write_buffer_size(self):
        return self.unsent

    def is_closing(self):
        return self._is_closing

    def abort(self):
        self._is_closing, self.unsent = True, 0


class Peer:
    """Whom a connection tells; all is well."""

    def __getattr__(self, name):
        return lambda *_, **__: True


def connected(budget):
    """A connection whose handshake is over."""
    connection, transport = Connection(Peer(), budget), Transport()
    connection.connection_made(transport)
    connection.data_received(speakers.bare(0, 1) + speakers.bare(6, 2, struct.pack("!QIBBHII", 1, 0, 254, 0, 0, 0, 0)))
    assert connection.dpid == 1
    return connection, transport


def test_what_a_switch_does_not_read_counts_and_is_counted_off_when_it_was_sent():
    async def run():
        budget = Budget(1 << 20, lambda account: connection.close("too much"))
        connection, transport = connected(budget)
        transport.is_stuck = True
        connection.data_received(speakers.bare(2, 3, bytes(1000)))  # an echo is asked for
        connection.send(messages.plain(4, 2))
        assert budget.held == transport.unsent == 1008 + 8
        transport.unsent = 0
        connection.resume_writing()
        assert budget.held == 0
        for _ in range(100):
            connection.data_received(speakers.bare(2, 3, bytes(60_000)))
            assert budget.held == transport.unsent <= 1 << 20
        assert not connection.is_open
        connection.connection_lost(None)
        assert budget.held == 0

    asyncio.run(run())


def test_half_a_message_counts():
    async def run():
        budget = Budget(1 << 20, lambda _: None)
        connection, _ = connected(budget)
        echo = speakers.bare(2, 3, bytes(60_000))
        connection.data_received(echo + echo[:50_000])
        assert budget.held == 50_000
        connection.data_received(echo[50_000:])
        assert budget.held == 0

    asyncio.run(run())


def test_what_is_read_of_a_connection_that_was_closed_counts_until_its_reader_is_gone():
    async def run():
        budget = Budget(1 << 30, lambda _: None)
        connection, transport = connected(budget)
        session = Session(connection)
        reading = asyncio.create_task(session.read())
        await asyncio.sleep(0)
        xid = int.from_bytes(transport.sent[-1][4:8])
        body = b"".join(lies.entry(number, OURS) for number in range(20 * SLICE))
        connection.data_received(lies.parts(1, xid, body, last=True))
        assert len(body) < budget.held < 1.1 * len(body)
        while budget.held - len(body) < 5 * SLICE * ENTRY_BYTES:
            await asyncio.sleep(0)
        connection.close("for a test")
        read = budget.held
        assert read % ENTRY_BYTES == 0  # of the reply nothing is left
        assert read >= 5 * SLICE * ENTRY_BYTES
        connection.connection_lost(None)
        assert budget.held == read
        await asyncio.wait([reading])
        assert isinstance(reading.exception(), OSError)
        assert budget.held == 0

    asyncio.run(run())


def test_of_a_switch_that_is_gone_nothing_is_kept_whoever_still_knows_it():
    async def run():
        async with edges.world() as world:
            fabric = world.fabric
            fabric.hosts[1, 1] = "02:00:00:00:00:01"
            speaker = await world.speaker(1)
            await edges.until("it is served", lambda: 1 in world.network.ready)
            session = world.network.ready[1]
            await edges.until("its lease is read", lambda: session.leases)
            assert session.ports
            assert world.edge.memory.held > 0
            speaker.transport.abort()
            await edges.until("it is gone", lambda: not world.edge.sessions)
            assert not session.ports
            await edges.until("nothing is counted for it", lambda: world.edge.memory.held == 0)

    asyncio.run(run())


def test_switches_that_do_not_read_take_no_more_than_the_budget():
    limit = 8 << 20

    async def run():
        async with edges.world(max_memory_mib=limit >> 20) as world:
            honest = await world.speaker(1)
            await edges.until("it is served", lambda: 1 in world.network.ready)
            deaf = [await world.speaker(dpid) for dpid in range(2, 8)]
            await edges.until("all are served", lambda: len(world.network.ready) == 7)
            for speaker in deaf:
                speaker.transport.pause_reading()
                for _ in range(150):  # of 9 MB each, that many of which stay with the kernel
                    speaker.transport.write(speakers.bare(2, 3, bytes(60_000)))
            said = "or do not read, takes 8 MiB of memory, the limit"
            await edges.until(
                "who takes most is sent away", lambda: any(said in str(what) for _, what in world.network.told)
            )
            assert world.edge.memory.held <= limit + (1 << 20)
            honest.flows.clear()
            await edges.until("the honest switch's lease is renewed", lambda: honest.flows)
            assert honest.transport is not None
            for speaker in deaf:
                speaker.transport.abort()

    asyncio.run(run())
