"""The network as the controller steers it, with switches that only take note of what they are sent."""

from __future__ import annotations

import asyncio
import struct
from dataclasses import dataclass, field

import pytest

from trunkline_controller import fabric as module
from trunkline_controller.fabric import Fabric, FabricSettings
from trunkline_controller.flows.entry import Table
from trunkline_controller.net import frames
from trunkline_controller.net.limits import Limits
from trunkline_controller.net.topology import End, Port
from trunkline_controller.openflow.leases import Role
from trunkline_controller.openflow.session import Session

A, B, C = "02:00:00:00:00:0a", "02:00:00:00:00:0b", "02:00:00:00:00:0c"


@dataclass
class Connection:
    dpid: int
    sent: list[tuple[int, bytes]] = field(default_factory=list)  # packets sent out, and by which port
    version: int = 4

    def send(self, message: bytes) -> None:
        (size,) = struct.unpack_from("!H", message, 16)
        for offset in range(24, 24 + size, 16):
            self.sent.append((struct.unpack_from("!I", message, offset + 4)[0], message[24 + size :]))

    def send_all(self, messages: list[bytes]) -> None:
        for message in messages:
            self.send(message)


@dataclass
class Network:
    """Switches with three ports each; the first ports of the first two are connected with each other."""

    settings: FabricSettings
    switches: int
    now: float = 1000.0
    plans: int = 0

    async def start(self) -> None:
        self.fabric = Fabric(self.settings, self._planned)
        self.fabric.role_changed(Role.MASTER, "test")
        self.sessions = {dpid: Session(Connection(dpid), f"s{dpid}") for dpid in range(1, self.switches + 1)}
        for session in self.sessions.values():
            for number in (1, 2, 3):
                session.ports[number] = Port(number, f"p{number}", f"02:ff:00:00:{session.dpid:02x}:{number:02x}")
            self.fabric.switch_ready(session)
        for _ in range(30):
            await self.tick()

    def _planned(self) -> None:
        self.plans += 1

    async def tick(self) -> None:
        self.now += 0.1
        before = {dpid: len(session.connection.sent) for dpid, session in self.sessions.items()}
        self.fabric.tick(self.now)
        for dpid, far in ((1, 2), (2, 1)):
            for port, data in self.sessions[dpid].connection.sent[before[dpid] :]:
                if port == 1 and data[12:14] == b"\x88\xcc":
                    self.packet_in(End(far, 1), data, Table.ADMIT)
        await self.planned()

    async def planned(self) -> None:
        while self.fabric._plan_timer is not None:
            await asyncio.sleep(0.01)

    def packet_in(self, at: End, data: bytes, table: Table = Table.FORWARD) -> None:
        self.fabric.packet_in(self.sessions[at.dpid], table, at.port, data)

    def asks(self, at: End, mac: str, address: str, asks_for: str) -> None:
        """An ARP broadcast."""
        said = frames.arp_announcement(mac, address)
        self.packet_in(at, said[:38] + bytes(map(int, asks_for.split("."))), Table.ADMIT)

    def sent(self, end: End, mac: str) -> int:
        """How many packets of a host went out of a port."""
        raw = frames.mac_bytes(mac)
        return sum(port == end.port and data[6:12] == raw for port, data in self.sessions[end.dpid].connection.sent)

    @property
    def alarms(self) -> list[str]:
        return [alarm.what for alarm in self.fabric.alarms.all()]


@pytest.fixture
def running(monkeypatch):
    def run(test, switches=2, **settings):
        async def whole():
            net = Network(FabricSettings(Limits(max_hosts_per_port=5), **settings), switches)
            monkeypatch.setattr(module, "_now", lambda: net.now)
            await net.start()
            await test(net)

        asyncio.run(whole())

    return run


def test_lldp_and_packets_that_are_no_news_make_no_plan(running):
    async def test(net):
        assert len(net.fabric.topology.links) == 1
        net.asks(End(1, 2), A, "10.0.0.1", "10.0.0.2")
        net.asks(End(2, 2), B, "10.0.0.2", "10.0.0.1")
        await net.planned()
        assert set(net.fabric.topology.hosts) == {A, B}
        plans = net.plans
        for _ in range(100):
            net.asks(End(1, 2), A, "10.0.0.1", "10.0.0.2")
            net.asks(End(2, 2), B, "10.0.0.2", "10.0.0.9")
            await net.tick()
        assert net.plans == plans
        net.asks(End(1, 3), C, "10.0.0.3", "10.0.0.1")
        await net.planned()
        assert net.plans == plans + 1
        assert set(net.fabric.topology.hosts) == {A, B, C}

    running(test)


def test_a_host_that_makes_the_network_flood_takes_no_others_floods_and_no_announcements(running):
    async def test(net):
        net.asks(End(1, 2), A, "10.0.0.1", "10.0.0.9")
        net.asks(End(2, 2), B, "10.0.0.2", "10.0.0.9")
        await net.tick()
        flooded = net.sent(End(2, 3), A)
        for _ in range(10):
            for number in range(30):
                net.asks(End(1, 2), A, "10.0.0.1", f"10.0.1.{number}")
            await net.tick()
        # At most what one port may have saved up, and what came in since, both in floods of two frames.
        assert 1 <= net.sent(End(2, 3), A) - flooded <= (40 + 10) / 2 + 1
        assert any("port s1/p2 sends more packets to unknown destinations" in what for what in net.alarms)
        others = net.sent(End(1, 3), B)
        for _ in range(3):
            net.asks(End(2, 2), B, "10.0.0.2", "10.0.0.9")
        assert net.sent(End(1, 3), B) == others + 3

    running(test, flood_frames=100.0)


def test_what_is_flooded_for_all_ports_together_is_bounded_and_leaves_room_for_announcements(running):
    async def test(net):
        ports = [End(dpid, port) for dpid in range(1, 31) for port in (2, 3)]
        for end in ports:
            for number in range(10):
                net.asks(
                    end, f"06:00:00:00:{end.dpid:02x}:0{end.port}", f"10.1.{end.dpid}.{end.port}", f"10.2.0.{number}"
                )
        assert any("would cost more than 300 frames a second" in what for what in net.alarms)
        # B says to have A's address, and A answers no more: all are told.
        net.asks(End(1, 2), A, "10.0.0.1", "10.0.0.1")
        net.asks(End(2, 2), B, "10.0.0.1", "10.0.0.1")
        told = net.sent(End(3, 3), B)
        for _ in range(12):
            for end in ports:
                net.asks(end, f"06:00:00:00:{end.dpid:02x}:0{end.port}", f"10.1.{end.dpid}.{end.port}", "10.2.0.1")
            await net.tick()
        assert net.sent(End(3, 3), B) == told + 1

    running(test, switches=30, flood_frames=300.0)
