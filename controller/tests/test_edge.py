"""What one switch does wrong is felt by no other."""

import asyncio

import edges
import pytest
import speakers

from trunkline_controller.fabric import Fabric, FabricSettings
from trunkline_controller.flows.entry import FlowEntry, Match, Output, Owner, Table, Tables, cookie
from trunkline_controller.monitor import Monitor
from trunkline_controller.openflow.leases import Role

FLOW_MOD, MULTIPART, ROLE = 14, 18, 24
PORT_DESC = 13


def renewals(speaker: speakers.Speaker) -> list[int]:
    """Counts the times that its lease is renewed from here on, in the list's one place."""
    count, flow_mod = [0], speaker.handlers[FLOW_MOD]

    def counting(this, xid, message):
        count[0] += message[24] == 0 and message[25] == 0 and message[30:32] == b"\0\1"
        return flow_mod(this, xid, message)

    speaker.handlers[FLOW_MOD] = counting
    return count


def no_role(_this, xid, _message):
    return speakers.bare(25, xid)


def test_a_role_reply_without_a_role_ends_that_connection_and_the_others_leases_go_on():
    async def run():
        async with edges.world() as world:
            good, bad = await world.speaker(1), await world.speaker(2)
            await edges.until("both are served", lambda: set(world.network.ready) == {1, 2})
            bad.handlers[ROLE] = no_role
            await edges.until("the bad one is sent away", lambda: bad.transport is None)
            count = renewals(good)
            await edges.until("the good one's lease is renewed", lambda: count[0] > 2)
            assert set(world.edge.sessions) == {1}

    asyncio.run(run())


@pytest.mark.parametrize("after", [0, 1], ids=["greeting", "becoming its master"])
def test_a_connection_that_is_not_served_is_not_left_open(after):
    async def run():
        async with edges.world() as world:
            fabric = world.fabric
            seen = []

            class Bad(speakers.Speaker):
                def __init__(self):
                    super().__init__(fabric, 2)
                    role = self.handlers[ROLE]

                    def answer(this, xid, message):
                        seen.append(xid)
                        return no_role(this, xid, message) if len(seen) > after else role(this, xid, message)

                    self.handlers[ROLE] = answer

            loop = asyncio.get_running_loop()
            _, bad = await loop.create_connection(Bad, "127.0.0.1", world.edge.port)
            await edges.until("it is sent away", lambda: len(seen) > after and bad.transport is None)
            assert not world.network.ready

    asyncio.run(run())


def test_counters_are_asked_for_again_after_an_unexpected_failure(caplog):
    async def run():
        failures = [KeyError("unexpected")]
        polls = []

        class Failing(Monitor):
            async def poll(self):
                polls.append(1)
                if failures:
                    raise failures.pop()
                await super().poll()

        running = asyncio.create_task(Failing(Fabric(FabricSettings()), 0.01, lambda: False).run())
        await edges.until("it asks again", lambda: len(polls) > 1)
        running.cancel()

    asyncio.run(run())
    assert "going on" in caplog.text


def test_a_switch_that_hangs_keeps_no_lease_of_the_others_from_being_renewed():
    async def run():
        async with edges.world() as world:
            good, hung = await world.speaker(1), await world.speaker(2)
            await edges.until("both are served", lambda: set(world.network.ready) == {1, 2})
            hung.handlers[ROLE] = hung.handlers[MULTIPART] = lambda *_: None
            count = renewals(good)
            await edges.until("the good one's lease is renewed", lambda: count[0] > 5)
            assert hung.transport is not None
            other = await world.speaker(3)
            await edges.until("another one is served", lambda: 3 in world.network.ready)
            assert hung.transport is not None
            assert other.transport is not None

    asyncio.run(run())


def test_what_a_port_says_while_the_switch_is_greeted_is_not_lost():
    async def run():
        async with edges.world() as world:
            fabric = world.fabric
            fabric.hosts[1, 1], fabric.hosts[1, 2] = "02:00:00:00:00:01", "02:00:00:00:00:02"

            def status(speaker, reason, port):
                return speakers.bare(12, 0, bytes([reason]) + bytes(7) + port)

            class Changing(speakers.Speaker):
                def __init__(self):
                    super().__init__(fabric, 1)
                    multipart = self.handlers[MULTIPART]

                    def answer(this, xid, message):
                        reply = multipart(this, xid, message)
                        if message[9] != PORT_DESC:
                            return reply
                        first, second = this._port_desc(b"")
                        new = (7).to_bytes(4) + first[4:]
                        return reply + status(this, 0, new) + status(this, 1, second)

                    self.handlers[MULTIPART] = answer

            await asyncio.get_running_loop().create_connection(Changing, "127.0.0.1", world.edge.port)
            await edges.until("it is served", lambda: 1 in world.network.ready)
            assert set(world.network.ready[1].ports) == {1, 7}

    asyncio.run(run())


def flow(number):
    return FlowEntry(
        Table.FORWARD, 30, Match(eth_dst=f"02:00:00:00:00:{number:02x}"), (Output(1),), None, cookie(Owner.FORWARD)
    )


def sent_to(speaker):
    """Addresses whose entries it has."""
    return {key[2][8:14].hex(":") for key in speaker.flows if key[:2] == (4, 30)}


def lease_key(speaker):
    return next(key for key in speaker.flows if key[:2] == (0, 1))


def test_a_master_that_was_demoted_and_is_master_again_sends_nothing_of_before():
    async def run():
        async with edges.world() as world:
            speaker = await world.speaker(1)
            world.network.wanted = Tables(frozenset({flow(1)}))
            await edges.until("it has its entry", lambda: sent_to(speaker))
            # Another controller's lease, which started earlier.
            key = lease_key(speaker)
            head, instructions = speaker.flows[key]
            senior = cookie(Owner.LEASE, 1).to_bytes(8) + head[8:]
            mac = bytes.fromhex(world.edge.lease.identity.replace(":", ""))
            other = key[0], key[1], key[2].replace(mac, b"\2other")
            assert other != key
            speaker.flows[other] = senior, instructions
            await edges.until("it is released", lambda: ("released", 1) in world.network.told)
            assert ("gone", 1) not in world.network.told
            await edges.until("it is let go of", lambda: key not in speaker.flows and speaker.role == 3)
            # What the other one does: away with the entry. Then it ends.
            speaker.flows.clear()
            world.network.wanted, world.network.plan_after_s = Tables(frozenset({flow(2)})), 0.3
            seen, flow_mod = set(), speaker.handlers[FLOW_MOD]

            def noting(this, xid, message):
                flow_mod(this, xid, message)
                seen.update(sent_to(this))

            speaker.handlers[FLOW_MOD] = noting
            await edges.until("it has what is wanted now", lambda: seen)
            assert seen == {"02:00:00:00:00:02"}
            assert world.edge.role is Role.MASTER

    asyncio.run(run())


def test_a_master_that_stood_still_puts_right_what_a_junior_has_changed_meanwhile():
    async def run():
        async with edges.world() as world:
            speaker = await world.speaker(1)
            world.network.wanted = Tables(frozenset({flow(1)}))
            await edges.until("it has its entry", lambda: sent_to(speaker))
            # A junior has taken the switch, and has another entry there. It has ended, and its lease with it.
            key = next(key for key in speaker.flows if key[:2] == (4, 30))
            speaker.role = 3
            speaker.flows[key[0], key[1], key[2].replace(b"\2\0\0\0\0\1", b"\2\0\0\0\0\2")] = speaker.flows.pop(key)
            assert sent_to(speaker) == {"02:00:00:00:00:02"}
            await edges.until("it is the first one's again", lambda: sent_to(speaker) == {"02:00:00:00:00:01"})
            assert speaker.role == 2
            assert world.edge.role is Role.MASTER

    asyncio.run(run())
