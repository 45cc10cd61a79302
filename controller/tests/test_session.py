"""What is done about changes that a switch refuses."""

import asyncio
import struct
from types import SimpleNamespace

import edges
import pytest
import speakers

from trunkline_controller.flows.entry import FlowEntry, Match, Output, Owner, SelectGroup, Table, Tables, cookie
from trunkline_controller.monitor import AUDIT_EVERY, Monitor
from trunkline_controller.openflow import session as sessions

FLOW_MOD, GROUP_MOD, BARRIER = 14, 15, 20
NUMBER = 0x74000001


@pytest.fixture(autouse=True)
def _no_second_try_by_the_clock(monkeypatch):
    monkeypatch.setattr(sessions, "RETRY_S", 86_400.0)


def flow(number):
    return FlowEntry(
        Table.FORWARD, 30, Match(eth_dst=f"02:00:00:00:00:{number:02x}"), (Output(1),), None, cookie(Owner.FORWARD)
    )


def flows(*numbers):
    return Tables(frozenset(map(flow, numbers)))


def has(speaker):
    """Numbers of the entries that are there."""
    return {key[2][13] for key in speaker.flows if key[:2] == (4, 30)}


def refusal(xid, kind, code, message):
    return speakers.bare(1, xid, struct.pack("!HH", kind, code) + message[:64])


def with_room_for(speaker, most):
    """Of entries; `most` may be changed."""
    flow_mod = speaker.handlers[FLOW_MOD]

    def limited(this, xid, message):
        if message[24] == 4 and message[25] == 0 and len(has(this)) >= most[0]:
            return refusal(xid, 5, 1, message)
        return flow_mod(this, xid, message)

    speaker.handlers[FLOW_MOD] = limited


async def served(world):
    speaker = await world.speaker(1)
    await edges.until("it is served", lambda: 1 in world.network.ready)
    return speaker, world.network.ready[1]


def test_what_had_no_room_is_tried_again_once_something_is_deleted():
    async def run():
        async with edges.world() as world:
            speaker, session = await served(world)
            with_room_for(speaker, [3])
            session.want(flows(1, 2, 3), frozenset())
            await edges.until("the table is full", lambda: has(speaker) == {1, 2, 3})
            session.want(flows(3, 4, 5), frozenset())
            await edges.until("it has the new ones", lambda: has(speaker) == {3, 4, 5} and session.in_step)
            assert not session.refusals

    asyncio.run(run())


def test_what_is_wanted_while_a_change_is_on_its_way_is_tried_at_once():
    async def run():
        async with edges.world() as world:
            speaker, session = await served(world)
            most = [1]
            with_room_for(speaker, most)
            barrier = speaker.handlers[BARRIER]

            def answer(this, xid, message):
                if most[0] == 1 and has(this):
                    most[0] = 3
                    session.want(flows(1, 2, 3), frozenset())
                return barrier(this, xid, message)

            speaker.handlers[BARRIER] = answer
            session.want(flows(1, 2), frozenset())
            await edges.until("it has all", lambda: has(speaker) == {1, 2, 3})

    asyncio.run(run())


def test_a_group_that_is_there_is_modified_one_that_is_not_is_added_and_each_is_looked_at():
    async def run():
        async with edges.world() as world:
            speaker, session = await served(world)
            group_mod = speaker.handlers[GROUP_MOD]

            def strict(this, xid, message):
                command, number = struct.unpack_from("!H2xI", message, 8)
                if command != 2 and (number in this.groups) == (command == 0):
                    return refusal(xid, 6, 0 if command == 0 else 8, message)
                return group_mod(this, xid, message)

            def wanted(*ports):
                return Tables(groups={NUMBER: SelectGroup(NUMBER, ports)})

            async def in_step(ports):
                await edges.until("it is in step", lambda: session.in_step and not session.refusals)
                assert await session.read_groups() == {NUMBER: SelectGroup(NUMBER, ports)}

            speaker.handlers[GROUP_MOD] = strict
            session.want(wanted(1), frozenset())
            await in_step((1,))
            # Away, and the controller does not know.
            speaker.groups.clear()
            session.want(wanted(1, 2), frozenset())
            await in_step((1, 2))
            # There, and the controller does not know.
            session.groups.clear()
            session.want(wanted(2, 3), frozenset())
            await in_step((2, 3))
            # Away, and nothing else is wanted.
            speaker.groups.clear()
            monitor = Monitor(SimpleNamespace(sessions={1: session}), 1.0, lambda: False)
            for _ in range(AUDIT_EVERY):
                await monitor.poll()
            await edges.until("it is back", lambda: speaker.groups)
            await in_step((2, 3))

    asyncio.run(run())


def test_an_entry_of_somebody_else_that_cannot_be_read_stays_in_the_place_of_ours():
    async def run():
        async with edges.world() as world:
            speaker, session = await served(world)
            session.want(flows(1), frozenset())
            await edges.until("it is there", lambda: has(speaker) == {1} and session.in_step)
            key = next(key for key in speaker.flows if key[:2] == (4, 30))
            head, _ = speaker.flows[key]
            dec_ttl = struct.pack("!HH4xHH4x", 4, 16, 24, 8)  # apply actions: none of ours has this one
            speaker.flows[key] = bytes(8) + head[8:], dec_ttl
            await session.read()
            assert session.flows == set()
            session.want(flows(1, 2), frozenset())
            await edges.until("the other one is there", lambda: has(speaker) == {1, 2} and session.in_step)
            assert speaker.flows[key] == (bytes(8) + head[8:], dec_ttl)

    asyncio.run(run())
