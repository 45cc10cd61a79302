"""Packets between switches and this controller: LLDP by which links are found, and hosts' packets that are sent here
instead of on their way.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

from .flows.desired import CONTROLLER_MAC
from .flows.entry import Output, Table
from .net import frames
from .net.discovery import Discovery
from .net.floods import Floods
from .net.hosts import Probe
from .net.topology import Dpid, End, Mac, PortNo, Topology
from .openflow import messages
from .openflow.lldp import Lldp
from .openflow.session import Session
from .rates import Buckets

LLDP_PER_PORT = 50.0  # at least; links send it ten times a second at most


class Switches(Protocol):
    """The connected switches, and the network of them, as they are now."""

    @property
    def sessions(self) -> Mapping[Dpid, Session]: ...

    @property
    def topology(self) -> Topology: ...


class Packets:
    """`per_port`: packets a second of one port that are looked at."""

    def __init__(self, switches: Switches, discovery: Discovery, per_port: float, floods: Floods) -> None:
        self._switches = switches
        self._discovery = discovery
        self._lldp = Lldp()
        self._looked_at = Buckets(per_port, 2 * per_port)
        lldp = max(per_port, LLDP_PER_PORT)
        self._lldp_looked_at = Buckets(lldp, 2 * lldp)  # its own: a link stays one whatever hosts send
        self._floods = floods

    def taken_in(self, session: Session, table: int, at: End, data: bytes, now: float) -> bool:
        """A packet that came in at a port. Whether it may have told something of the network."""
        if data[12:14] == b"\x88\xcc":
            # A host can send as much of it, and each costs a look at its signature.
            if not self._lldp_looked_at.take(at, now):
                return False
            origin = self._lldp.origin(data, now)
            if origin is not None:
                self._discovery.lldp_heard(at, origin, now)
            return origin is not None
        if not self._looked_at.take(at, now):
            return False
        frame = frames.read(data)
        if frame is None or not frame.from_a_host or frame.source == CONTROLLER_MAC:
            return False
        self.ask(self._discovery.host_seen(at, frame.source, frame.address, now))
        if table == Table.FORWARD or frame.destination == frames.BROADCAST:
            self._deliver(session, at, frame, data, now)
        return True

    def tick(self, now: float) -> None:
        """Sends LLDP out of the ports where it is due, and tells all of addresses that have changed hands."""
        self._send_lldp(now)
        for address, mac in self._discovery.hosts.taken():
            if "." in address and self._floods.may_announce(len(self._switches.sessions), now):
                self._flood(frames.arp_announcement(mac, address))
        self._looked_at.forget(now)
        self._lldp_looked_at.forget(now)
        self._floods.forget(now)

    def ask(self, probes: Iterable[Probe]) -> None:
        """Asks hosts whether they are there."""
        for probe in probes:
            session = self._switches.sessions.get(probe.at.dpid)
            if session is not None:
                frame = frames.probe(CONTROLLER_MAC, probe.mac, probe.address)
                _send(session, frame, [probe.at.port])

    def seek(self, address: str, now: float) -> None:
        """Asks all hosts which of them has an IP address."""
        if self._floods.may_announce(len(self._switches.sessions), now):
            self._flood(frames.probe(CONTROLLER_MAC, Mac(frames.BROADCAST), address))

    def _send_lldp(self, now: float) -> None:
        sessions = self._switches.sessions
        due: dict[Dpid, list[bytes]] = {}
        for end in self._discovery.lldp_due(now):
            session = sessions.get(end.dpid)
            port = session.ports.get(end.port) if session else None
            if session is not None and port is not None:
                frame = self._lldp.frame(end, port.mac, now)
                due.setdefault(end.dpid, []).append(messages.packet_out(session.version, frame, (Output(end.port),)))
        for dpid, wanted in due.items():
            sessions[dpid].connection.send_all(wanted)

    def _deliver(self, session: Session, at: End, frame: frames.Frame, data: bytes, now: float) -> None:
        """A packet that the switch sent here instead of on its way: an ARP broadcast, or of an unknown destination."""
        hosts = self._discovery.hosts
        if frame.address is not None:
            holder = hosts.holder(frame.address)
            if holder is not None and holder.mac != frame.source:
                return  # it claims what another has, and must not tell others so
        target = hosts.holder(frame.asks_for) if frame.asks_for is not None else None
        if target is not None and self._discovery.is_reachable(target) and target.mac != frame.source:
            reply = frames.arp_reply(frame.source, frame.address, target.mac, frame.asks_for)
            _send(session, reply, [at.port])
            return
        known = hosts.host(frame.destination)
        if known is not None and self._discovery.is_reachable(known):
            # Known since the packet was sent here, or not to be reached.
            there = self._switches.sessions.get(known.at.dpid)
            if there is not None and known.at != at:
                _send(there, data, [known.at.port])
            return
        # An announcement of what is known is no news; where an address changes hands, `tick` tells all.
        is_news = frame.asks_for is None or frame.asks_for != frame.address
        if is_news and self._floods.may_flood(at, len(self._switches.sessions), now):
            self._flood(data, at)

    def _flood(self, data: bytes, but: End | None = None) -> None:
        """Out of all ports toward hosts but one; each of these is at the end of the tree."""
        sessions = self._switches.sessions
        edges: dict[Dpid, list[PortNo]] = {}
        for end in self._switches.topology.edges:
            if end != but:
                edges.setdefault(end.dpid, []).append(end.port)
        for dpid, ports in edges.items():
            if dpid in sessions:
                _send(sessions[dpid], data, sorted(ports))


def _send(session: Session, frame: bytes, ports: list[PortNo]) -> None:
    outputs = tuple(Output(port) for port in ports)
    session.connection.send(messages.packet_out(session.version, frame, outputs))
