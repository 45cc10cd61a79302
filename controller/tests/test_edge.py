"""What one switch does wrong is felt by no other."""

import asyncio

import edges
import pytest
import speakers

from trunkline_controller.fabric import Fabric, FabricSettings
from trunkline_controller.monitor import Monitor

FLOW_MOD, ROLE = 14, 24


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

        def polled():
            polls.append(1)
            if failures:
                raise failures.pop()

        fabric = Fabric(FabricSettings())
        running = asyncio.create_task(Monitor(fabric, 0.01, lambda: False, polled).run())
        await edges.until("it asks again", lambda: len(polls) > 1)
        running.cancel()

    asyncio.run(run())
    assert "going on" in caplog.text
