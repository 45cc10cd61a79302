"""Mirrors as switches have them, from announcement to flow table: with small switches on sockets, and a real edge."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass, field

import edges
import speakers
from test_edge import lease_key
from test_mirror_pipelines import at, hops

from trunkline_controller.fabric import Fabric, FabricSettings
from trunkline_controller.flows.entry import Owner, cookie
from trunkline_controller.mirror.agents import Poll
from trunkline_controller.mirror.model import State
from trunkline_controller.mirror.settings import MirrorSettings
from trunkline_controller.net.limits import Limits
from trunkline_controller.openflow.edge import Edge, EdgeSettings
from trunkline_controller.openflow.leases import Lease, Role, new_identity

QUICK = Limits(lldp_interval_s=0.2, settle_s=0.2, switch_hold_s=60.0, adopt_hold_s=2.0)
HOSTS = 4


@dataclass
class World:
    """Two switches with a cable between their first ports, and two hosts each: 1 and 3, 2 and 4."""

    mirror: MirrorSettings
    switches: speakers.Fabric = field(default_factory=speakers.Fabric)

    async def start(self) -> None:
        self.fabric = Fabric(FabricSettings(QUICK, mirror=self.mirror))
        self.edge = Edge(EdgeSettings(port=0, lease_s=1), Lease(100, new_identity()), self.fabric)
        await self.edge.start()
        self.fabric.start()
        self.fabric.classify(frozenset())
        self.switches.cable((1, 1), (2, 1))
        for number in range(1, HOSTS + 1):
            self.switches.hosts[2 - number % 2, 1 + (number + 1) // 2] = f"02:00:00:00:00:{number:02x}"
        await speakers.connect(self.switches, [1, 2], self.edge.port)
        await edges.until("all is known", self._known)

    def _known(self) -> bool:
        topology = self.fabric.topology
        if len(topology.links) == 1:
            for speaker in self.switches.speakers.values():
                speaker.announce()
        return len(topology.hosts) == HOSTS and self.fabric.converged()

    async def announce(self, pipeline, wait_s=60.0):
        """With an agent everywhere."""
        await self.fabric.mirrors.poll(Poll("everywhere", "1", at(*range(1, HOSTS + 1))), 0.0)
        for hop in pipeline[:-1]:
            await self.fabric.mirrors.announce(hop, 0.0)
        return await self.fabric.mirrors.announce(pipeline[-1], wait_s)

    def carried(self) -> dict[tuple[int, tuple], tuple]:
        """Entries of pipelines, as switches have them; those that keep marks true have no number."""
        ours = cookie(Owner.MIRROR)
        found = {}
        for dpid, speaker in self.switches.speakers.items():
            for key, (head, instructions) in speaker.flows.items():
                number = int.from_bytes(head[:8])
                if number >> 32 == ours >> 32 and number != ours:
                    found[dpid, key] = head[:8], instructions
        return found


@contextlib.asynccontextmanager
async def world(**mirror):
    made = World(MirrorSettings(enabled=True, **mirror))
    await made.start()
    try:
        yield made
    finally:
        await made.edge.stop()
        await asyncio.sleep(0)


def test_a_controller_that_loses_its_role_leaves_mirrors_in_switches():
    async def run():
        async with world() as net:
            assert (await net.announce(hops([1, 2, 3, 4]))).state is State.ARMED
            had = net.carried()
            assert {dpid for dpid, _ in had} == {1, 2}
            # Another controller, which started earlier, has taken the role.
            speaker = net.switches.speakers[1]
            key = lease_key(speaker)
            head, instructions = speaker.flows[key]
            identity = bytes.fromhex(net.edge.lease.identity.replace(":", ""))
            speaker.flows[key[0], key[1], key[2].replace(identity, b"\2other")] = (
                cookie(Owner.LEASE, 1).to_bytes(8) + head[8:],
                instructions,
            )
            await edges.until("it stands by", lambda: net.fabric.role is Role.STANDBY)
            await edges.until(
                "switches are let go of",
                lambda: all(
                    speaker.role == 3 and not any(key[2].find(identity) > 0 for key in speaker.flows)
                    for speaker in net.switches.speakers.values()
                ),
            )
            assert net.carried() == had

    asyncio.run(run())


def test_what_nobody_renews_is_gone_from_switches_and_from_one_that_was_away_when_it_is_back():
    async def run():
        async with world(lease_s=1.0) as net:
            await net.announce(hops([1, 2, 3, 4]))
            away = net.switches.speakers[2]
            had = dict(away.flows)
            away.transport.abort()
            await edges.until("it is away", lambda: 2 not in net.fabric.sessions)
            await edges.until("it is swept", lambda: not net.fabric.mirrors.all())
            await edges.until("the other switch has none", lambda: {dpid for dpid, _ in net.carried()} == {2})
            back = speakers.Speaker(net.switches, 2)
            back.flows = had
            await asyncio.get_running_loop().create_connection(lambda: back, "127.0.0.1", net.edge.port)
            await edges.until("it has none any more", lambda: not net.carried())

    asyncio.run(run())
