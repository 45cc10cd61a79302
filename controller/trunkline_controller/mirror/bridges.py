"""Linux bridges whose agents mirror, beside OpenFlow switches as one more kind of switch: their ports, cables and hosts
go into discovery as those of OpenFlow switches do, and they are told which segments to copy when they poll.

    unknown --(it polls, and says all)--> there --(it polls again in time)--> there
                                            |
                                            +--(it leaves, is silent for a lease, OpenFlow switches connect)--> unknown

One controller has bridges or OpenFlow switches, as neither knows what the other forwards: a bridge learns by itself,
and has no way to flood what a controller would have flooded. All of it runs on the loop's thread, but for `all`.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Protocol

from ..control import NotNow
from ..flows.entry import FlowEntry
from ..net import frames
from ..net.alarms import Alarms
from ..net.floods import Floods
from ..net.hosts import Probe
from ..net.topology import Dpid, End, Mac, Port, PortNo, Topology, dpid_text
from ..openflow.lldp import Lldp
from .agents import TooMany
from .bridge import Bridge, BridgePoll, BridgeState, BridgeTold, Update
from .settings import MirrorSettings
from .waiting import Waiting

log = logging.getLogger(__name__)

MAX_BRIDGES = 1024
MAX_SENT = 64  # frames that wait to be sent by a bridge
LLDP_LEASES = 2  # LLDP is good for so many leases: from an answer to the report of who has heard it
NO_OPENFLOW = 0  # a switch's version of it
MIXED = "bridges and OpenFlow"  # an alarm's key
MIXED_KEPT_S = 60.0


class Network(Protocol):
    """What bridges tell of, and ask."""

    alarms: Alarms

    def switch_connected(
        self, dpid: Dpid, name: str, ports: Iterable[Port], now: float, *, version: int = 4
    ) -> None: ...

    def switch_gone(self, dpid: Dpid, now: float, alert: bool = True) -> None: ...

    def lldp_heard(self, at: End, origin: End, now: float) -> None: ...

    def host_seen(self, at: End, mac: Mac, address: str | None, now: float) -> list[Probe]: ...

    def topology(self) -> Topology: ...


class Mirroring(Protocol):
    """What wants copies of bridges."""

    settings: MirrorSettings

    def switch_ready(self, switch: Bridge) -> None: ...

    def answered(self, switch: Bridge) -> None: ...

    def holds(self, now: float) -> bool:
        """Whether switches are to keep what another master has left."""
        ...


@dataclass
class _There:
    """A bridge that is there, and what its polls are about. Times are of the loop's clock, in seconds."""

    bridge: Bridge
    polled_s: float
    polls: int = 0  # that may wait
    ports: tuple[Port, ...] = ()
    is_known: bool = False  # to discovery
    lldp_s: float = 0.0  # when LLDP was given to it last; 0: it needs some
    sends: list[tuple[tuple[PortNo, ...], bytes]] = field(default_factory=list)


class Bridges:
    """An agent that has not polled for `mirror.agent_lease_s` is taken for gone. `lldp_s`: who was heard is told of so
    often. `has_openflow()`: whether OpenFlow switches are connected. `changed()` is called when what there is has
    changed.
    """

    def __init__(
        self,
        lldp_s: float,
        network: Network,
        mirrors: Mirroring,
        floods: Floods,
        *,
        has_openflow: Callable[[], bool],
        changed: Callable[[], None],
    ) -> None:
        self.there: dict[Dpid, Bridge] = {}  # replaced as a whole
        self._lease_s = mirrors.settings.agent_lease_s
        self._lldp_every_s = lldp_s
        self._network = network
        self._mirrors = mirrors
        self._floods = floods
        self._has_openflow = has_openflow
        self._changed = changed
        self._all: dict[str, _There] = {}  # by agent's name
        self._polls = Waiting()
        self._lldp = Lldp(valid_s=LLDP_LEASES * self._lease_s)
        self._lldp_at = 0.0
        self._held = False

    # What agents ask.

    async def poll(self, poll: BridgePoll, wait_s: float) -> BridgeTold:
        """Takes what an agent says, and answers when it should be told something else than it has seen, or after
        `wait_s`, at most half of its lease. Raises TooMany or NotNow.
        """
        begun = time.monotonic()
        there = self._all.get(poll.name)
        if poll.leaving:
            if there is not None and there.bridge.run == poll.run:
                log.info("mirror: bridge %s leaves", poll.name)
                self._lose(there, alert=False)
            return BridgeTold(self._lease_s, Update(0, None))
        self._check(poll)
        if there is None or (there.bridge.run, there.bridge.dpid) != (poll.run, poll.dpid):
            if poll.ports is None:
                return BridgeTold(self._lease_s, Update(0, None), announce=True)
            there = self._begin(poll, there, begun)
        there.polled_s = begun
        if wait_s > 0:
            there.polls += 1
            self._polls.wake(poll.name)  # an earlier one of it
        polls = there.polls
        self._take(there, poll, begun)
        until = begun + min(wait_s, self._lease_s / 2)
        while True:
            if self._all.get(poll.name) is not there:
                raise NotNow(f"bridge {poll.name} has left meanwhile, or was begun anew", "poll again if it runs still")
            if there.polls != polls and wait_s > 0:
                raise NotNow(
                    f"bridge {poll.name} has polled again meanwhile",
                    "wait for one answer at a time, and give agents of two bridges two names",
                )
            now = time.monotonic()
            is_news = there.bridge.has_news(poll.seen, self._mirrors.holds(now))
            if is_news or there.sends or there.lldp_s <= 0.0 or now >= until:
                return self._answer(there, poll.seen, now)
            await self._polls.news(poll.name, until - now)

    def _check(self, poll: BridgePoll) -> None:
        if not self._mirrors.settings.enabled:
            raise NotNow("mirroring is off", "set mirror.enabled = true in the controller's configuration")
        if self._has_openflow():
            what, remedy = (
                f"bridge {poll.name} is not mirrored by: OpenFlow switches are connected, and one controller has "
                "switches of one kind",
                "end the bridge's agent (`trunkline mirror switch off`), give it a controller of its own, or "
                "disconnect the OpenFlow switches",
            )
            self._network.alarms.sound(MIXED, what, remedy, time.monotonic(), MIXED_KEPT_S)
            raise NotNow(what, remedy)
        other = self.there.get(poll.dpid)
        if other is not None and other.name != poll.name:
            raise NotNow(
                f"datapath id {dpid_text(poll.dpid)} is that of bridge {other.name}",
                "give each bridge an Ethernet address of its own, and one agent",
            )

    def _begin(self, poll: BridgePoll, before: _There | None, now: float) -> _There:
        if before is None and len(self._all) >= MAX_BRIDGES:
            raise TooMany(f"{MAX_BRIDGES} bridges are there already")
        if before is not None and before.bridge.dpid != poll.dpid:
            self._lose(before, alert=False)
        bridge = Bridge(poll.dpid, poll.name, poll.run, had=poll.copies_to)
        bridge.news = lambda: self._polls.wake(bridge.name)
        there = self._all[poll.name] = _There(bridge, now)
        self.there = {**self.there, poll.dpid: bridge}
        log.info("mirror: bridge %s (%s) is there, %d ports", poll.name, dpid_text(poll.dpid), len(poll.ports or ()))
        self._polls.wake(poll.name)
        self._mirrors.switch_ready(bridge)
        return there

    def _take(self, there: _There, poll: BridgePoll, now: float) -> None:
        """What the agent says, into discovery and to mirrors."""
        bridge, network = there.bridge, self._network
        if poll.ports is not None:
            before, there.ports, there.lldp_s = there.ports, poll.ports, 0.0
            if not there.is_known:
                there.is_known = True
                network.switch_connected(bridge.dpid, bridge.name, poll.ports, now, version=NO_OPENFLOW)
            else:  # it was there all the time: what is known of hosts and cables at other ports stays as old as it is
                self._ports_changed(bridge.dpid, before, poll.ports, now)
        if poll.heard is not None:
            origins = {port: self._lldp.origin(frame, now) for port, frame in poll.heard.items()}
            bridge.heard = {port: origin for port, origin in origins.items() if origin is not None}
            self._repeat_heard(bridge, now)
        for port, mac, address in poll.hosts:
            self.ask(network.host_seen(End(bridge.dpid, port), mac, address, now), now)
        if bridge.said(poll.seen, poll.failed):
            self._mirrors.answered(bridge)
        if poll.ports is not None or poll.heard is not None or poll.hosts:
            self._changed()

    def _ports_changed(self, dpid: Dpid, before: Iterable[Port], ports: Iterable[Port], now: float) -> None:
        present = {port.number for port in ports}
        for port in before:
            if port.number not in present:
                self._network.port_removed(End(dpid, port.number), now)
        known = set(before)
        for port in ports:
            if port not in known:
                self._network.port_changed(dpid, port, now)

    def _repeat_heard(self, bridge: Bridge, now: float) -> None:
        for port, origin in bridge.heard.items():
            self._network.lldp_heard(End(bridge.dpid, port), origin, now)

    def _answer(self, there: _There, seen: int, now: float) -> BridgeTold:
        bridge = there.bridge
        lldp = None
        if now - there.lldp_s >= self._lease_s / 3 or there.lldp_s <= 0.0:
            there.lldp_s = now
            lldp = {port.number: self._lldp.frame(End(bridge.dpid, port.number), port.mac, now) for port in there.ports}
        sends, there.sends = tuple(there.sends), []
        return BridgeTold(self._lease_s, bridge.tell(seen, self._mirrors.holds(now)), lldp, sends)

    # What the fabric says and asks.

    def want(self, entries: Callable[[Dpid], frozenset[FlowEntry]]) -> None:
        """All that each should have, from now on or as it is there now."""
        for dpid, bridge in self.there.items():
            bridge.want(entries(dpid))

    def ask(self, probes: Iterable[Probe], now: float) -> None:
        """Asks hosts at bridges whether they are there."""
        for probe in probes:
            bridge = self.there.get(probe.at.dpid)
            if bridge is not None:
                self._send(bridge, (probe.at.port,), frames.probe(_asker(bridge), probe.mac, probe.address))

    def seek(self, address: str, now: float) -> None:
        """Asks all hosts at bridges which of them has an IP address."""
        if not self.there or not self._floods.may_announce(len(self.there), now):
            return
        edges: dict[Dpid, list[PortNo]] = {}
        for end in self._network.topology().edges:
            edges.setdefault(end.dpid, []).append(end.port)
        for dpid, ports in edges.items():
            if (bridge := self.there.get(dpid)) is not None:
                frame = frames.probe(_asker(bridge), Mac(frames.BROADCAST), address)
                self._send(bridge, tuple(sorted(ports)), frame)

    def _send(self, bridge: Bridge, ports: tuple[PortNo, ...], frame: bytes) -> None:
        there = self._all[bridge.name]
        if len(there.sends) < MAX_SENT:
            there.sends.append((ports, frame))
            bridge.news()

    def tick(self, now: float) -> None:
        """What time alone brings about."""
        for there in list(self._all.values()):
            if there.polled_s + self._lease_s <= now:
                log.warning(
                    "mirror: bridge %s is silent for %g s; it copies on, and no new pipeline is mirrored through it",
                    there.bridge.name, self._lease_s,
                )  # fmt: skip
                self._lose(there, alert=True)
        if now >= self._lldp_at:
            self._lldp_at = now + self._lldp_every_s
            for bridge in self.there.values():
                self._repeat_heard(bridge, now)
        held, self._held = self._held, self._mirrors.holds(now)
        if held and not self._held:
            for bridge in self.there.values():
                bridge.news()

    def end(self) -> None:
        """OpenFlow switches are there now."""
        for there in list(self._all.values()):
            self._lose(there, alert=False)

    def _lose(self, there: _There, alert: bool) -> None:
        bridge = there.bridge
        del self._all[bridge.name]
        self.there = {dpid: other for dpid, other in self.there.items() if dpid != bridge.dpid}
        self._network.switch_gone(bridge.dpid, time.monotonic(), alert)
        self._polls.wake(bridge.name)
        self._changed()

    # What people ask.

    @property
    def is_planned(self) -> bool:
        """Each knows all that it should have."""
        return all(bridge.is_planned for bridge in self.there.values())

    @property
    def in_step(self) -> bool:
        """Each has what it should."""
        return all(bridge.in_step for bridge in list(self.there.values()))

    def all(self) -> tuple[BridgeState, ...]:
        now = time.monotonic()
        return tuple(
            BridgeState(
                there.bridge.name,
                there.bridge.dpid,
                len(there.ports),
                len(there.bridge.heard),
                there.bridge.entries,
                max(0.0, now - there.polled_s),
            )
            for there in self._all.copy().values()
        )


def _asker(bridge: Bridge) -> Mac:
    """The bridge's own address: what is sent there it takes, and does not flood."""
    return frames.mac_text(bridge.dpid.to_bytes(8, "big")[2:])
