"""From events and time to the topology: what switches report, whose LLDP comes in where, which hosts speak.

A machine without sockets or clock: `now` is in seconds, of any clock that does not go back. What it wants done, LLDP to
be sent and hosts to be asked, it returns. LLDP that it is told of has been authenticated before.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from .alarms import Alarms
from .hosts import HostTable, Probe
from .limits import Limits
from .ports import FLAP_WINDOW_S, FLAPPING, Kind, PortState
from .topology import Dpid, End, Host, Link, Mac, Port, PortNo, Switch, Topology, dpid_text

MISSED_S = 3600.0  # for so long an operator hears of a switch that is gone; then it has been taken away for good
NO_OPENFLOW = 0  # the version of a Linux bridge
EDGE_LLDP_EVERY = 10  # intervals; a switch may yet appear behind a port that seemed to lead to hosts


@dataclass
class _SwitchState:
    name: str
    version: int
    connected: bool
    connected_at: float
    left_at: float = 0.0
    ports: dict[PortNo, PortState] = field(default_factory=dict)


class Discovery:
    """Ask `topology()` after events; the same object comes back while nothing has changed."""

    def __init__(self, limits: Limits = Limits()) -> None:  # noqa: B008 (it is frozen)
        self.limits = limits
        self.alarms = Alarms()
        self.hosts = HostTable(limits, self.alarms, self._is_edge, self._is_connected, self.port_name)
        self._switches: dict[Dpid, _SwitchState] = {}
        self._waiting: dict[End, dict[Mac, str | None]] = {}  # hosts that speak at ports that are not known yet
        self._remembered: dict[End, set[Mac]] = {}  # hosts to which flows lead by such ports
        self._lldp: list[tuple[float, End]] = []  # a heap of when it is to be sent next
        self._lldp_at: dict[End, float] = {}
        self._topology = Topology()
        self._stale = False
        self._hosts_seen = 0

    # Events.

    def switch_connected(
        self,
        dpid: Dpid,
        name: str,
        ports: Iterable[Port],
        now: float,
        *,
        version: int = 4,
        linked: Collection[PortNo] = (),
    ) -> None:
        """Also when it was connected before; ports that are as they were keep what is known of them.

        By ports of `linked` its groups send to other switches, which may not be connected yet.
        """
        state = self._switches.get(dpid)
        if state is None:
            state = self._switches[dpid] = _SwitchState(name, version, True, now)
        state.name, state.version, state.connected, state.connected_at = name, version, True, now
        self._stale = True
        self.alarms.clear(f"switch {dpid}")
        present = {port.number: port for port in ports}
        for number in [number for number in state.ports if number not in present]:
            self.port_removed(End(dpid, number), now)
        for port in present.values():
            old = state.ports.get(port.number)
            if old is not None and old.port == port:
                for origin in old.heard:
                    old.heard[origin] = now
                self._schedule(End(dpid, port.number), now)
            else:
                self.port_changed(dpid, port, now)
            known = state.ports[port.number]
            if port.number in linked and known.kind is Kind.UNKNOWN:
                known.held_until = now + self.limits.adopt_hold_s

    def switch_gone(self, dpid: Dpid, now: float, alert: bool = True) -> None:
        """It lost its connection, or without `alert` has another master. It most likely forwards on, so it is reckoned
        with for a while.
        """
        state = self._switches.get(dpid)
        if state is not None and state.connected:
            state.connected, state.left_at = False, now
            if alert:
                self.alarms.sound(
                    f"switch {dpid}",
                    f"switch {state.name} ({dpid_text(dpid)}) is not connected",
                    "see that it runs and can reach this controller",
                    now,
                    MISSED_S,
                )

    def port_changed(self, dpid: Dpid, port: Port, now: float) -> None:
        """A port is new, or its switch says something new of it."""
        state = self._switches.get(dpid)
        if state is None:
            return
        end = End(dpid, port.number)
        known = state.ports.get(port.number)
        if known is None:
            known = state.ports[port.number] = PortState(replace(port, up=False), since=now)
        was_up, known_port = known.port.up, known.port
        if was_up and not port.up:
            known.goes_down(now)
            self._not_waiting(end)
            self._flapping(end, known, now)
        known.port = port
        if port.up and not was_up:
            known.comes_up(now)
            if known.usable_at <= now:
                known.becomes(Kind.UNKNOWN, now)
            self._schedule(end, known.usable_at)
        if port != known_port:
            self._stale = True

    def port_removed(self, end: End, now: float) -> None:
        state = self._switches.get(end.dpid)
        if state is not None and state.ports.pop(end.port, None) is not None:
            self._not_waiting(end)
            self._stale = True

    def lldp_heard(self, at: End, origin: End, now: float) -> None:
        """A frame that this controller had sent out of `origin` came in at `at`."""
        port = self._port(at)
        if port is None or port.kind is Kind.DOWN or self._port(origin) is None:
            return
        if at.dpid == origin.dpid:
            self.alarms.sound(
                f"loop {min(at, origin)}",  # hosts at n ports that hand on LLDP make n of them, not n * n
                f"ports {self.port_name(at)} and {self.port_name(origin)} of one switch are connected with each other",
                "unplug that cable; both ports are out of use meanwhile",
                now,
                10 * self.limits.lldp_timeout_s,
            )
        elif port.kind is Kind.EDGE and not self._outranks_hosts(at, port, origin):
            hosts = ", ".join(sorted(self.hosts.at(at))[:4])
            self.alarms.sound(
                f"lldp {at}",
                f"LLDP of port {self.port_name(origin)} came in at port {self.port_name(at)}, where host {hosts} is; "
                "it is not taken for a link",
                "a host hands on LLDP, or a switch was connected through one: find out which; if it is a switch, take "
                "the port down and up",
                now,
                10 * self.limits.lldp_timeout_s,
                of_hosts=True,
            )
            return
        elif len(port.heard) > 0 and origin not in port.heard:
            self.alarms.sound(
                f"hub {at}",
                f"port {self.port_name(at)} hears LLDP of {self.port_name(next(iter(port.heard)))} and of "
                f"{self.port_name(origin)}",
                "a link joins two ports: connect switches directly, not through a hub or a host",
                now,
                10 * self.limits.lldp_timeout_s,
                of_hosts=True,
            )
            return
        if origin not in port.heard:
            self._stale = True
        port.heard[origin] = now
        if port.kind is not Kind.LINK:
            port.becomes(Kind.LINK, now)
            self._not_waiting(at)
            self.hosts.gone(at)
            self._schedule(at, now)  # the other end may not have heard yet
            self._stale = True

    def host_seen(self, at: End, mac: Mac, address: str | None, now: float) -> list[Probe]:
        """A packet of a host came in. What comes in by a link says nothing of where its host is."""
        port = self._port(at)
        if port is None or port.kind in (Kind.LINK, Kind.DOWN):
            return []
        if port.kind is Kind.UNKNOWN:
            waiting = self._waiting.setdefault(at, {})
            if mac in waiting or len(waiting) < self.limits.max_hosts_per_port:
                waiting[mac] = address or waiting.get(mac)
            return []
        return self.hosts.seen(at, mac, address, now)

    def host_remembered(self, at: End, mac: Mac, now: float) -> None:
        """A switch's flows say that a host is at one of its ports, unless that turns out to be a link."""
        port = self._port(at)
        if port is None or port.kind is Kind.LINK:
            return
        if port.kind is Kind.EDGE:
            self.hosts.remembered(at, mac, now)
        else:
            remembered = self._remembered.setdefault(at, set())
            if len(remembered) < self.limits.max_hosts_per_port:
                remembered.add(mac)

    def tick(self, now: float) -> list[Probe]:
        """Time passes: links and switches expire, ports settle, claims are decided. Call it ten times a second."""
        probes: list[Probe] = []
        settled: list[End] = []
        for dpid, switch in list(self._switches.items()):
            if not switch.connected:
                if now - switch.left_at >= self.limits.switch_hold_s:
                    del self._switches[dpid]
                    self._stale = True
                continue
            for port in switch.ports.values():
                if port.kind is not Kind.EDGE:
                    end = End(dpid, port.port.number)
                    probes += self._port_tick(end, port, now)
                    if port.kind is Kind.EDGE:
                        settled.append(end)
        if settled:
            probes += self.hosts.sought(settled)
        probes += self.hosts.tick(now)
        self.alarms.tick(now)
        return probes

    def lldp_due(self, now: float) -> list[End]:
        """Ports out of which LLDP is to be sent now."""
        due = []
        while self._lldp and self._lldp[0][0] <= now:
            at, end = heapq.heappop(self._lldp)
            if self._lldp_at.get(end) != at:
                continue  # it was put at another time since
            del self._lldp_at[end]
            port = self._port(end)
            if port is None or not port.port.up or not self._switches[end.dpid].connected:
                continue
            interval = self.limits.lldp_interval_s
            if port.kind is Kind.DOWN and port.usable_at > now:
                self._schedule(end, port.usable_at)
                continue
            if port.kind is Kind.EDGE:
                interval *= EDGE_LLDP_EVERY
            elif port.kind is Kind.UNKNOWN or port.kind is Kind.DOWN:
                interval = self.limits.settle_s / 3
            self._schedule(end, now + interval)
            due.append(end)
        return due

    # Answers.

    def topology(self) -> Topology:
        if self._stale or self._hosts_seen != self.hosts.changes:
            network = self._network() if self._stale else self._topology
            hosts = self.hosts.hosts()
            known: Mapping[Mac, Host] = {mac: host for mac, host in hosts.items() if host.at.dpid in network.switches}
            self._topology = replace(network, hosts=MappingProxyType(known))
            self._stale, self._hosts_seen = False, self.hosts.changes
        return self._topology

    def settled(self) -> bool:
        """Nothing is being found out: each port that is up is known to lead to a switch or to hosts."""
        return all(
            switch.connected and all(self._is_settled(port) for port in switch.ports.values())
            for switch in self._switches.values()
        )

    def connected(self) -> frozenset[Dpid]:
        return frozenset(dpid for dpid, switch in self._switches.items() if switch.connected)

    def is_reachable(self, host: Host) -> bool:
        """Whether its port is still one toward hosts."""
        return self._is_edge(host.at)

    def port_name(self, end: End) -> str:
        """`<switch>/<port>`, for people."""
        port, switch = self._port(end), self._switches.get(end.dpid)
        return f"{switch.name if switch else dpid_text(end.dpid)}/{port.port.name if port else end.port}"

    # Inside.

    def _port(self, end: End) -> PortState | None:
        switch = self._switches.get(end.dpid)
        return switch.ports.get(end.port) if switch else None

    def _is_edge(self, end: End) -> bool:
        port = self._port(end)
        return port is not None and port.kind is Kind.EDGE

    def _outranks_hosts(self, at: End, port: PortState, origin: End) -> bool:
        """Whether LLDP of `origin` makes a link of a port toward hosts.

        Not while hosts are known there: one of them may hand it on. Hosts behind a switch are known there, too, where
        it forwards while it is not connected; they do not count if the port was a link with `origin` last, or if they
        were found before the switch of `origin` connected and could tell of itself.
        """
        if origin in port.led_to:
            return True
        switch = self._switches[origin.dpid]
        told_at = switch.connected_at + self.limits.settle_s if switch.connected else 0.0
        return all(placed <= told_at for placed in self.hosts.placed(at))

    def _is_connected(self, end: End) -> bool:
        return end.dpid in self._switches and self._switches[end.dpid].connected

    def _not_waiting(self, end: End) -> None:
        self._waiting.pop(end, None)
        self._remembered.pop(end, None)

    @staticmethod
    def _is_settled(port: PortState) -> bool:
        return port.kind in (Kind.EDGE, Kind.LINK) or not port.port.up or bool(port.led_to)

    def _schedule(self, end: End, at: float) -> None:
        self._lldp_at[end] = at
        heapq.heappush(self._lldp, (at, end))

    def _flapping(self, end: End, port: PortState, now: float) -> None:
        if (count := port.flaps(now)) >= FLAPPING:
            self.alarms.sound(
                f"flaps {end}",
                f"port {self.port_name(end)} went down {count} times or more in {FLAP_WINDOW_S:.0f} s; it is used "
                "again when it has been up for a while",
                "look at its cable and at what is at the other end",
                now,
                FLAP_WINDOW_S,
            )

    def _port_tick(self, end: End, port: PortState, now: float) -> list[Probe]:
        if not port.port.up:
            return []
        if port.kind is Kind.DOWN and now >= port.usable_at:
            port.becomes(Kind.UNKNOWN, now)
            self._schedule(end, now)
        elif port.kind is Kind.LINK:
            timeout = self.limits.lldp_timeout_s
            lost = [
                origin
                for origin, at in port.heard.items()
                if now - at >= timeout and (origin.dpid not in self._switches or self._switches[origin.dpid].connected)
            ]
            for origin in lost:
                del port.heard[origin]
                self._stale = True
            if not port.heard:
                port.becomes(Kind.UNKNOWN, now)
                port.led_to, port.held_until = frozenset(lost), now + self._hold_s(end.dpid)
                self._schedule(end, now)
        elif port.kind is Kind.UNKNOWN and now >= max(port.since + self.limits.settle_s, port.held_until):
            port.becomes(Kind.EDGE, now)
            self._stale = True
            probes = []
            for mac, address in self._waiting.pop(end, {}).items():
                probes += self.hosts.seen(end, mac, address, now)
            for mac in self._remembered.pop(end, ()):
                self.hosts.remembered(end, mac, now)
            return probes
        return []

    def _hold_s(self, dpid: Dpid) -> float:
        """How long a port of this switch that was a link is none toward hosts. One between bridges that has not gone
        down leads to a bridge for good: without an agent that forwards on, and drops copies that it knows nothing of.
        """
        return math.inf if self._switches[dpid].version == NO_OPENFLOW else self.limits.adopt_hold_s

    def _network(self) -> Topology:
        """Switches, links and edges; hosts are added by the caller."""
        switches, edges, links = {}, set(), set()
        for dpid, state in self._switches.items():
            ports = {number: port.port for number, port in sorted(state.ports.items())}
            switches[dpid] = Switch(dpid, state.name, MappingProxyType(ports), state.version)
            for number, port in state.ports.items():
                end = End(dpid, number)
                if port.kind is Kind.EDGE:
                    edges.add(end)
                for origin in port.heard if port.kind is Kind.LINK else ():
                    far = self._port(origin)
                    if far is not None and end in far.heard and origin.dpid != dpid:
                        links.add(Link.between(end, origin))
        return Topology(MappingProxyType(switches), frozenset(links), MappingProxyType({}), frozenset(edges))
