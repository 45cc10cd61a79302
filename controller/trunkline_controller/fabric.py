"""The network as this controller steers it: what switches say goes into discovery, what they should have follows.

Everything here runs on the loop's thread. `topology` and `sessions` may be read from any thread: they are replaced, or
grow and shrink by whole entries.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from .flows.desired import Desired, group_numbers, host_of, is_ours
from .flows.entry import FlowEntry, Table, Tables, owner_name
from .mirror.bridges import Bridges
from .mirror.mirrors import Mirrors
from .mirror.settings import MirrorSettings
from .net.discovery import Discovery
from .net.floods import Floods
from .net.limits import Limits
from .net.topology import Dpid, End, Port, PortNo, Topology
from .openflow.leases import Role
from .openflow.replies import canonical_match
from .openflow.session import Session
from .packets import Packets
from .refusals import RefusalAlarms

log = logging.getLogger(__name__)

TICK_S = 0.1
PLAN_AFTER_S = 0.01  # events that come together are answered together
CLASSIFYING = frozenset({Table.SOURCE_ROLES, Table.DESTINATION_ROLES, Table.CLASSIFY})
OTHERS_POLICY = "policy of others"  # an alarm's key


@dataclass(frozen=True)
class FabricSettings:
    """`per_port`: packets a second of one port that the controller looks at. `flood_frames`: packets a second that it
    has switches send for what is flooded, one a switch.
    """

    limits: Limits = field(default_factory=Limits)
    per_port: float = 200.0
    flood_frames: float = 2000.0
    mirror: MirrorSettings = field(default_factory=MirrorSettings)


class Fabric:
    """`changed` is called after each change of the topology, of the role, and of what is in step."""

    def __init__(self, settings: FabricSettings, changed: Callable[[], None] = lambda: None) -> None:
        self.settings = settings
        self.mirrors = Mirrors(settings.mirror, lambda: self.sessions or self.bridges.there)
        self.discovery = Discovery(settings.limits)
        self.alarms = self.discovery.alarms
        self.sessions: dict[Dpid, Session] = {}
        self.topology: Topology = self.discovery.topology()
        self.role = Role.NONE
        self._changed = changed
        self._desired = Desired()
        self._classify: frozenset[FlowEntry] | None = None
        self._knows_policy = False
        self._others_policy: frozenset[Dpid] = frozenset()  # which have entries of a policy that is not known here
        floods = Floods(settings.flood_frames, self.discovery)
        self._packets = Packets(self, self.discovery, settings.per_port, floods)
        self.bridges = Bridges(
            settings.limits.lldp_interval_s,
            self.discovery,
            self.mirrors,
            floods,
            has_openflow=lambda: self.role is not Role.NONE,
            changed=self._bridges_changed,
        )
        self._had_bridges = False  # since there was no OpenFlow switch
        self._refusals = RefusalAlarms(self.alarms)
        self._master_since = 0.0
        self._adopting = True
        self._plan_cost_s = 0.0
        self._plan_timer: asyncio.TimerHandle | None = None

    # What others ask.

    def classify(self, entries: frozenset[FlowEntry], knows_policy: bool = True) -> None:
        """What policy and lifts want of each switch, from now on. Until it is told, what is there stays there; so does
        what is there of a policy where this controller never had one.
        """
        self._classify, self._knows_policy = _canonical(entries), knows_policy
        if knows_policy:
            self._others_policy = frozenset()
            self.alarms.clear(OTHERS_POLICY)
        self._plan()

    def changes(self, entries: frozenset[FlowEntry]) -> int:
        """How many entries `classify` would change, on all switches."""
        wanted, had = _canonical(entries), self._classify or frozenset()
        return len({entry.key for entry in wanted ^ had}) * len(self.sessions)

    def converged(self) -> bool:
        """Each connected switch has what it should, as far as it does not refuse; nothing is being found out."""
        return (
            self._plan_timer is None
            and self.discovery.settled()
            and all(session.in_step for session in list(self.sessions.values()))
            and self.bridges.in_step
        )

    def sure(self) -> frozenset[Dpid]:
        """Switches of which it is known what they should have: connected with this controller as their master, which
        has its policy and has found again what there was before its start.
        """
        if self.role is not Role.MASTER or self._adopting or self._classify is None:
            return frozenset()
        return frozenset(self.sessions.keys() & self.topology.switches.keys()) - self._others_policy

    # Of `openflow.edge`.

    def role_changed(self, role: Role, why: str) -> None:
        log.info("role: %s (%s)", role, why)
        if role is not Role.MASTER:
            self.alarms.clear("standby")
        if role is Role.STANDBY:
            self.alarms.sound(
                "standby",
                f"this controller stands by: {why} of the same switches",
                "end one of the two, if that is not meant so; this one takes over when the other is gone",
                _now(),
            )
        if role is Role.MASTER:
            self.alarms.clear("standby")
            self._adopting, self._master_since = True, _now()
        self.role = role
        if role is not Role.NONE:
            self.bridges.end()
            self._had_bridges = False  # last, as each that ends tells of it
        self.mirrors.role_changed(role is Role.MASTER)
        self._changed()

    def _bridges_changed(self) -> None:
        """Of bridges nobody else is master: each agent asks one controller."""
        if self.bridges.there and not self._had_bridges:
            self._had_bridges = True
            self.mirrors.role_changed(True)
        if self.bridges.is_planned:
            self._plan_if_changed()
        else:
            self._plan_soon()

    def switch_ready(self, session: Session) -> None:
        now = _now()
        self.sessions = {**self.sessions, session.dpid: session}
        self.mirrors.switch_ready(session)
        session.answered = lambda: self.mirrors.answered(session)
        linked = {PortNo(port) for group in session.groups.values() for port in group.ports}
        self.discovery.switch_connected(
            session.dpid, session.name, session.ports.values(), now, version=session.version, linked=linked
        )
        remembered = 0
        for entry in session.flows:
            if (found := host_of(entry)) is not None:
                mac, port = found
                self.discovery.host_remembered(End(session.dpid, PortNo(port)), mac, now)
                remembered += 1
        if session.flows:
            log.info(
                "switch %s: has %d flow entries and %d groups of ours already, which lead to %d of its hosts",
                session.name, len(session.flows), len(session.groups), remembered,
            )  # fmt: skip
        # Without a policy there are some, too: packets only pass through.
        strange = session.flows - (self._classify or frozenset())
        if self._classify is not None and not self._knows_policy and any(map(_of_a_policy, strange)):
            self._others_policy |= {session.dpid}
            self.alarms.sound(
                OTHERS_POLICY,
                "flow entries of a policy that this controller does not know are in force; they stay as they are",
                "apply that policy here, or clear the policy (`trunkline qos clear`)",
                now,
            )
        self._plan_soon()

    def switch_gone(self, session: Session) -> None:
        self._lose(session, alert=True)

    def _lose(self, session: Session, alert: bool) -> None:
        if self.sessions.get(session.dpid) is session:
            self.sessions = {dpid: other for dpid, other in self.sessions.items() if dpid != session.dpid}
            self.discovery.switch_gone(session.dpid, _now(), alert)
            self._plan_soon()

    def switch_released(self, session: Session) -> None:
        self._lose(session, alert=False)

    def port_changed(self, session: Session, port: Port) -> None:
        self.discovery.port_changed(session.dpid, port, _now())
        self._plan_soon()

    def port_removed(self, session: Session, number: PortNo) -> None:
        self.discovery.port_removed(End(session.dpid, number), _now())
        self._plan_soon()

    def change_refused(self, session: Session) -> None:
        self._plan_soon()  # its alarm is sounded there

    def stranger(self, key: str, what: str, remedy: str) -> None:
        self.alarms.sound(key, what, remedy, _now(), 60.0)

    def packet_in(self, session: Session, table: int, in_port: int, data: bytes) -> None:
        if self._packets.taken_in(session, table, End(session.dpid, PortNo(in_port)), data, _now()):
            self._plan_if_changed()

    # Inside.

    def start(self) -> None:
        asyncio.get_running_loop().call_later(TICK_S, self._tick)

    def _tick(self) -> None:
        asyncio.get_running_loop().call_later(TICK_S, self._tick)
        self.tick(_now())

    def tick(self, now: float) -> None:
        """What time alone brings about."""
        probes = self.discovery.tick(now)
        self._packets.ask(probes)
        self.bridges.ask(probes, now)
        self._packets.tick(now)
        self.bridges.tick(now)
        if self.mirrors.tick(now) or self._adopting:
            self._plan_soon()
        for address in self.mirrors.take_sought():
            self._packets.seek(address, now)
            self.bridges.seek(address, now)
        self._plan_if_changed()
        self._refusals.look_again(self.sessions.values(), now)
        for what, alarm in self.alarms.news():
            if what == "began":
                log.warning("alert: %s; %s", alarm.what, alarm.remedy)
            else:
                log.info("alert over: %s", alarm.what)

    def _plan_if_changed(self) -> None:
        if self._plan_timer is None and self.discovery.topology() is not self.topology:
            self._plan_soon()

    def _plan_soon(self) -> None:
        if self._plan_timer is None:
            # Of a burst of events only a part of the time goes into plans.
            after = PLAN_AFTER_S + 2 * self._plan_cost_s
            self._plan_timer = asyncio.get_running_loop().call_later(after, self._plan)

    def _plan(self) -> None:
        if self._plan_timer is not None:
            self._plan_timer.cancel()
            self._plan_timer = None
        begun = time.perf_counter()
        topology = self.discovery.topology()
        was_adopting, self._adopting = self._adopting, self._adopting and not self._is_adopted(topology)
        keep = frozenset({Table.FORWARD} if self._adopting else ()) | (set() if self._knows_policy else CLASSIFYING)
        tables = self._desired.tables(topology, self._classify or frozenset()) if self.sessions else {}
        self.mirrors.network(topology)
        if topology is not self.topology or not self.bridges.is_planned:
            self.bridges.want(self.mirrors.entries)
        for dpid, session in self.sessions.items():
            wanted = tables.get(dpid)
            if wanted is not None and (mirrored := self.mirrors.entries(dpid)):
                wanted = Tables(wanted.flows | mirrored, wanted.groups)
            if wanted is not None and (wanted, keep) != session.wants():
                session.want(wanted, keep)
            self._refusals.look(session, _now())
        self._plan_cost_s = time.perf_counter() - begun
        if was_adopting and not self._adopting and self.sessions:
            log.info(
                "the network is known: %d switches, %d links, %d hosts",
                len(topology.switches), len(topology.links), len(topology.hosts),
            )  # fmt: skip
        self.topology = topology
        self._changed()

    def _is_adopted(self, topology: Topology) -> bool:
        """Whether all is found that flows from before the start speak of; they stay as they are until then."""
        if not self.sessions:
            return bool(self.bridges.there)
        if _now() - self._master_since >= self.settings.limits.adopt_hold_s:
            return True
        known = set(group_numbers(topology.switches).values())
        named = {number for session in self.sessions.values() for number in session.groups if is_ours(number)}
        return named <= known and self.discovery.settled()


def _now() -> float:
    return time.monotonic()


def _of_a_policy(entry: FlowEntry) -> bool:
    return owner_name(entry.cookie) in {"policy", "lift"}


def _canonical(entries: frozenset[FlowEntry]) -> frozenset[FlowEntry]:
    """As switches write them, so that they are known again."""
    return frozenset(
        entry if (match := canonical_match(entry.match)) == entry.match else replace(entry, match=match)
        for entry in entries
    )
