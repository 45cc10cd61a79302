"""An edge in the test's own process, with small switches on sockets, and what it told the network."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from dataclasses import replace

import openvswitch
import speakers

from trunkline_controller.flows.entry import Tables
from trunkline_controller.net.topology import Port, PortNo
from trunkline_controller.openflow.edge import Edge, EdgeSettings
from trunkline_controller.openflow.leases import Lease, Role, new_identity
from trunkline_controller.openflow.session import Session


class Network:
    """Notes what it is told; every switch is to have nothing at all."""

    def __init__(self) -> None:
        self.told: list[tuple[str, object]] = []
        self.ready: dict[int, Session] = {}
        self.wanted = Tables()
        self.plan_after_s = 0.0

    def switch_ready(self, session: Session) -> None:
        self.told.append(("ready", session.dpid))
        self.ready[session.dpid] = session
        wanted = self.wanted
        asyncio.get_running_loop().call_later(self.plan_after_s, lambda: session.want(wanted, frozenset()))

    def switch_gone(self, session: Session) -> None:
        self.told.append(("gone", session.dpid))
        self.ready.pop(session.dpid, None)

    def switch_released(self, session: Session) -> None:
        self.told.append(("released", session.dpid))
        self.ready.pop(session.dpid, None)

    def port_changed(self, session: Session, port: Port) -> None:
        self.told.append(("port", port.number))

    def port_removed(self, session: Session, number: PortNo) -> None:
        self.told.append(("no port", number))

    def packet_in(self, session: Session, table: int, in_port: int, data: bytes) -> None:
        self.told.append(("packet", in_port))

    def change_refused(self, session: Session) -> None:
        self.told.append(("refused", session.dpid))

    def role_changed(self, role: Role, why: str) -> None:
        self.told.append(("role", role))

    def stranger(self, key: str, what: str, remedy: str) -> None:
        self.told.append(("stranger", what))


class World:
    """An edge and its network."""

    def __init__(self, settings: EdgeSettings) -> None:
        self.network = Network()
        self.edge = Edge(settings, Lease(100, new_identity()), self.network)
        self.fabric = speakers.Fabric()

    async def speaker(self, dpid: int) -> speakers.Speaker:
        """A switch that is connecting."""
        loop = asyncio.get_running_loop()
        _, speaker = await loop.create_connection(
            lambda: speakers.Speaker(self.fabric, dpid), "127.0.0.1", self.edge.port
        )
        return speaker


@contextlib.asynccontextmanager
async def world(**settings: object) -> AsyncIterator[World]:
    """From start to stop; one second of lease unless said otherwise."""
    made = World(replace(EdgeSettings(port=0, lease_s=1), **settings))  # type: ignore[arg-type]
    await made.edge.start()
    try:
        yield made
    finally:
        await made.edge.stop()
        await asyncio.sleep(0)


async def until(what: str, holds: Callable[[], object]) -> None:
    """Gives up in the end."""
    try:
        async with asyncio.timeout(openvswitch.GIVE_UP_S):
            while not holds():
                await asyncio.sleep(0.01)
    except TimeoutError:
        raise AssertionError(f"not in {openvswitch.GIVE_UP_S:.0f} s: {what}") from None
