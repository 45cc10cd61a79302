"""A running controller: what `control.Control` promises, kept by discovery, policy and the switches together.

One thread runs the loop for the switches. Other threads read snapshots, and have the loop do what changes the network.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol, TypeVar

from .control import (
    Alert,
    Applied,
    Decision,
    FlowState,
    FlowTotals,
    LinkLoad,
    NotNow,
    QueueState,
    Status,
)
from .fabric import Fabric, FabricSettings
from .flows.entry import Action, FlowEntry, Output, ToGroup, owner_name
from .monitor import Monitor
from .net.topology import Dpid, End, Link, PortNo, Topology, dpid_text
from .openflow import messages
from .openflow.edge import Edge, EdgeSettings
from .openflow.leases import Lease, Role
from .policy import classify
from .policy.file import parse
from .policy.model import Lift, Policy, PolicyError, Problem
from .policy.store import MAX_HISTORY, PolicyStore, StoreError
from .queues import plan
from .queues.planned import Planned
from .queues.probe import Prober, passing_by
from .queues.probing import Probing
from .queues.reports import Reports
from .queues.wanted import QueuesReport, QueuesWanted
from .state import StateDirectory

log = logging.getLogger(__name__)

T = TypeVar("T")

SNAPSHOT_S = 0.1
RETRY_POLICY_S = 30.0
WAIT_S = 30.0  # for the loop's thread; it never blocks, so this ends only what would hang for ever


class Deciding(Protocol):
    """Dynamic control, as far as people see it."""

    def decisions(self) -> tuple[Decision, ...]: ...

    @property
    def decided(self) -> int: ...

    def alerts(self) -> Iterable[Alert]: ...

    def warnings(self, policy: Policy, file: str) -> tuple[Problem, ...]:
        """What keeps it from doing anything under a policy."""
        ...


@dataclass(frozen=True)
class ControllerSettings:
    state: Path
    edge: EdgeSettings = field(default_factory=EdgeSettings)
    fabric: FabricSettings = field(default_factory=FabricSettings)
    poll_s: float = 1.0


@dataclass(frozen=True)
class _InForce:
    policy: Policy
    applied: Applied


class Controller:
    """From `start` to `stop`. `dynamic` is set by who runs dynamic control."""

    def __init__(self, settings: ControllerSettings) -> None:
        """Raises StateError."""
        self.settings = settings
        self.dynamic: Deciding | None = None
        self._state = StateDirectory(settings.state)
        self._store = PolicyStore(settings.state)
        self._started_s = time.time()
        self._lock = threading.Lock()  # who changes policy or lifts
        self._in_force: _InForce | None = None
        self._history: tuple[Applied, ...] = ()
        self._next_version = 1
        self._lifts: frozenset[Lift] = frozenset()
        self._planned = Planned()
        self._watchers: list[Callable[[], None]] = []
        self._reports = Reports()
        self._fabric = Fabric(settings.fabric, self._refresh)
        self._monitor = Monitor(self._fabric, settings.poll_s, lambda: bool(self._planned.wanted.ports))
        lease = Lease(int(self._started_s), self._state.identity)
        self._edge = Edge(settings.edge, lease, self._fabric)
        self._probing = Probing(
            Prober(self),
            lambda: self._planned.wanted,
            lambda: self._fabric.role is Role.MASTER,
            lambda: self._fabric.sessions,
        )
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="openflow", daemon=True)
        self._tasks: list[asyncio.Task[None]] = []
        self._converged = False
        self._alerts: tuple[Alert, ...] = ()

    # Life.

    def start(self) -> None:
        """Returns when switches may connect. Raises OSError where the port can't be listened on."""
        self._load()
        self._thread.start()
        try:
            self._do(self._begin())
        except OSError:
            self.stop()
            raise
        self._probing.start()

    def stop(self) -> None:
        """Flows stay in the switches; another controller may take them at once."""
        self._probing.stop()
        if self._thread.is_alive():
            self._do(self._end())
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(WAIT_S)
        self._state.close()

    @property
    def openflow_port(self) -> int:
        return self._edge.port

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()

    async def _begin(self) -> None:
        await self._edge.start()
        self._fabric.start()
        self._tasks = [self._loop.create_task(work) for work in (self._monitor.run(), self._snapshots())]

    async def _end(self) -> None:
        for task in self._tasks:
            task.cancel()
        await self._edge.stop()
        await asyncio.sleep(0)

    def _do(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(WAIT_S)

    def _on_loop(self, work: Callable[[], T]) -> T:
        """What concerns the switches is done on their thread, once it runs."""

        async def done() -> T:
            return work()

        return self._do(done()) if self._thread.is_alive() else work()

    def _load(self) -> None:
        """The policy that was in force goes on; where it can't be read now, its flow entries do."""
        stored = self._store.load()
        self._history, self._next_version = stored.history, stored.next_version
        if stored.problem:
            self._sound("policy store", stored.problem, "apply the policy that should be in force")
        if stored.policy is None:
            if not stored.problem:
                # Without a history it is another controller's policy that may be in force, so that is left alone.
                self._fabric.classify(_entries(None, ()), knows_policy=bool(stored.history))
        elif not self._restore(stored.policy):
            threading.Thread(target=self._restoring, args=(stored.policy,), name="policy", daemon=True).start()

    def _restore(self, applied: Applied) -> bool:
        try:
            policy = parse(applied.text, applied.name)
        except PolicyError as error:
            first = error.problems[0]
            self._sound(
                "policy restore",
                f"policy {applied.name}, in force before the start, can't be read now: {first}",
                "its flow entries stay; it is tried again every 30 s, or apply another",
            )
            return False
        with self._lock:
            if self._in_force is None and self._history[:1] == (applied,):
                self._in_force = _InForce(policy, applied)
                self._on_loop(self._classify)
        self._quiet("policy restore")
        log.info("policy %s, version %d, is in force again", applied.name, applied.version)
        return True

    def _restoring(self, applied: Applied) -> None:
        while self._in_force is None and self._history[:1] == (applied,):
            time.sleep(RETRY_POLICY_S)
            if self._restore(applied):
                return

    # What people see.

    def status(self) -> Status:
        topology, dynamic = self._fabric.topology, self.dynamic
        return Status(
            role=str(self._fabric.role),
            started_s=self._started_s,
            converged=self._converged,
            switches=len(self._fabric.sessions),
            links=len(topology.links),
            hosts=len(topology.hosts),
            dynamic=dynamic is not None,
            alerts=(*self._alerts, *(dynamic.alerts() if dynamic else ())),
            decisions=dynamic.decided if dynamic else 0,
        )

    def topology(self) -> Topology:
        return self._fabric.topology

    def loads(self) -> tuple[LinkLoad, ...]:
        topology, measured = self._fabric.topology, self._monitor.ports
        rates = {(port.dpid, port.port): port.rate_bit_s for port in self._planned.wanted.ports}
        found = []
        for dpid, switch in topology.switches.items():
            for number, port in switch.ports.items():
                load = measured.get(End(dpid, number))
                if load is not None:
                    found.append(
                        LinkLoad(
                            End(dpid, number),
                            load.sent_bit_s,
                            rates.get((dpid, number), port.speed_bit_s),
                            load.counts.dropped_packets,
                            load.received_bit_s,
                            load.counts.sent_bytes,
                            load.counts.received_bytes,
                        )
                    )
        return tuple(found)

    def queues(self) -> tuple[QueueState, ...]:
        in_force, measured = self._in_force, self._monitor.queues
        categories: dict[str, list[str]] = {}
        for category, queue in in_force.policy.categories.items() if in_force else ():
            categories.setdefault(queue, []).append(category)
        found = []
        for port in self._planned.wanted.ports:
            end = End(port.dpid, port.port)
            mode, why = self._probing.state(end)
            for queue in port.queues:
                load = measured.get((end, queue.number))
                found.append(
                    QueueState(
                        end,
                        queue.name,
                        queue.number,
                        queue.dscp,
                        mode,
                        queue.min_bit_s,
                        queue.max_bit_s,
                        load.sent_bit_s if load else 0.0,
                        load.counts.sent_bytes if load else 0,
                        load.counts.dropped_packets if load else 0,
                        tuple(categories.get(queue.name, ())),
                        why,
                    )
                )
        return tuple(found)

    def flows(self, dpid: Dpid) -> tuple[FlowState, ...]:
        session = self._fabric.sessions[dpid]
        self._monitor.interest(dpid, time.monotonic())
        return tuple(self._flow_states(dpid, session.flows.copy()))

    def flows_of(self, link: Link) -> tuple[FlowState, ...]:
        topology = self._fabric.topology
        if link not in topology.links:
            raise KeyError(link)
        found: list[FlowState] = []
        for end in (link.a, link.b):
            session = self._fabric.sessions.get(end.dpid)
            if session is not None:
                self._monitor.interest(end.dpid, time.monotonic())
                groups = {group.number for group in list(session.groups.values()) if end.port in group.ports}
                sends = [entry for entry in session.flows.copy() if _sends(entry, end.port, groups)]
                found += self._flow_states(end.dpid, sends)
        return tuple(found)

    def flow_totals(self) -> tuple[FlowTotals, ...]:
        policy = self._in_force.policy if self._in_force else None
        found = []
        for dpid, session in sorted(self._fabric.sessions.items()):
            entries: Counter[str] = Counter()
            octets: Counter[str] = Counter()
            counters = session.counters
            for cookie, same in _by_cookie(session.flows.copy()).items():
                entries[owner_name(cookie)] += len(same)
                category = classify.category_of(policy, cookie) if policy else ""
                if category:
                    octets[category] += sum(counters.get(entry, (0, 0))[1] for entry in same)
            found.append(FlowTotals(dpid, entries, octets))
        return tuple(found)

    def _flow_states(self, dpid: Dpid, entries: Iterable[FlowEntry]) -> Iterable[FlowState]:
        session, in_force = self._fabric.sessions.get(dpid), self._in_force
        counters = session.counters if session else {}
        for entry in sorted(entries, key=lambda entry: (entry.table, -entry.priority, str(entry.match))):
            packets, octets = counters.get(entry, (0, 0))
            category = classify.category_of(in_force.policy, entry.cookie) if in_force else ""
            yield FlowState(dpid, entry, packets, octets, category)

    def policy(self) -> tuple[Policy, Applied] | None:
        in_force = self._in_force
        return (in_force.policy, in_force.applied) if in_force else None

    def history(self) -> tuple[Applied, ...]:
        return self._history

    def decisions(self) -> tuple[Decision, ...]:
        return self.dynamic.decisions() if self.dynamic else ()

    # What people change.

    def check(self, text: str, name: str) -> Policy:
        policy = parse(text, name)
        problems = plan.check(policy, self._fabric.topology, name)
        if problems:
            raise PolicyError(problems)
        lacking = self.dynamic.warnings(policy, name) if self.dynamic else ()
        return replace(policy, warnings=(*policy.warnings, *lacking))

    def apply(self, text: str, name: str, by: str) -> tuple[Policy, Applied]:
        policy = self.check(text, name)
        return policy, self._put_in_force(policy, policy.name, text, by)

    def clear(self, by: str) -> Applied:
        return self._put_in_force(None, "", "", by)

    def _put_in_force(self, policy: Policy | None, name: str, text: str, by: str) -> Applied:
        if self._fabric.role is Role.STANDBY:
            raise NotNow("this controller stands by, another one is master", "ask the master, or end it first")
        with self._lock:
            lifts = frozenset(lift for lift in self._lifts if policy is not None and _has(policy, lift))
            entries = _entries(policy, lifts)
            changed = self._on_loop(lambda: self._fabric.changes(entries))
            applied = Applied(self._next_version, name, time.time(), by, text, changed)
            history = (applied, *self._history)[:MAX_HISTORY]
            try:
                self._store.save(policy is not None, history)
            except StoreError as error:
                raise NotNow("the policy could not be written down", str(error)) from error
            self._next_version += 1
            self._history = history
            self._in_force = _InForce(policy, applied) if policy else None
            self._lifts = lifts
            self._on_loop(lambda: self._fabric.classify(entries))
        for key in ("policy store", "policy restore"):
            self._quiet(key)
        what = f"policy {name}, version {applied.version}, is" if policy else f"version {applied.version}: no policy is"
        log.info("%s in force, by %s; %d flow entries change", what, by, changed)
        return applied

    def lift(self, lifts: frozenset[Lift]) -> int:
        """Of `hooks.Lifting`."""
        with self._lock:
            policy = self._in_force.policy if self._in_force else None
            if policy is None:
                if lifts:
                    raise KeyError(next(iter(lifts)).queue)
                return 0
            entries = _entries(policy, lifts)
            changed = self._on_loop(lambda: self._fabric.changes(entries))
            self._lifts = lifts
            self._on_loop(lambda: self._fabric.classify(entries))
        return changed

    def _classify(self) -> None:
        """On the loop's thread, or before it runs."""
        policy = self._in_force.policy if self._in_force else None
        self._fabric.classify(_entries(policy, self._lifts))

    # Of queues: their agents, and the probe.

    def queues_wanted(self, dpids: tuple[Dpid, ...]) -> QueuesWanted:
        return self._planned.wanted.of(dpids)

    def when_queues_change(self, call: Callable[[], None]) -> Callable[[], None]:
        self._watchers = [*self._watchers, call]

        def end() -> None:
            self._watchers = [other for other in self._watchers if other is not call]

        return end

    def queues_reported(self, report: QueuesReport) -> None:
        self._probing.reported(report)
        self._reports.take(report, self._planned.wanted, time.time())

    def packet_out(self, dpid: Dpid, data: bytes, actions: tuple[Action, ...]) -> None:
        """Of `queues.probe.ProbeEdge`."""
        session = self._fabric.sessions[dpid]
        message = messages.packet_out(session.version, data, actions)
        self._loop.call_soon_threadsafe(session.connection.send, message)

    def queue_packets(self, dpid: Dpid, port: PortNo, timeout_s: float) -> Mapping[int, int]:
        """Of `queues.probe.ProbeEdge`."""
        session = self._fabric.sessions[dpid]
        if port not in session.ports:
            raise KeyError(port)
        asked = asyncio.run_coroutine_threadsafe(session.queue_counts(port), self._loop)
        try:
            found = asked.result(timeout_s)
        except TimeoutError:
            asked.cancel()
            raise
        except OSError as error:
            raise TimeoutError(str(error)) from error
        return {queue: counts.sent_packets for (_, queue), counts in found.items()}

    # Snapshots.

    async def _snapshots(self) -> None:
        while True:
            try:
                self._refresh()
            except Exception:
                log.exception("a snapshot for status and queues failed; going on")
            await asyncio.sleep(SNAPSHOT_S)

    def _refresh(self) -> None:
        """On the loop's thread."""
        self._converged = self._fabric.converged()
        shift = time.time() - time.monotonic()
        alerts = [Alert(alarm.since + shift, alarm.what, alarm.remedy) for alarm in self._fabric.alarms.all()]
        in_force, sure = self._in_force, self._fabric.sure()
        if self._planned.update(in_force.policy if in_force else None, self._fabric.topology, sure):
            for call in self._watchers:
                call()
        for trouble in self._reports.troubles(self._planned.wanted):
            switch = self._fabric.topology.switches.get(trouble.dpid)
            where = f"port {switch.name if switch else dpid_text(trouble.dpid)}/{trouble.port}"
            what = f"queues of {where}: {trouble.problem}"
            alerts.append(Alert(trouble.since_s, what, f"look at the agent's log on {trouble.agent}"))
        self._alerts = tuple(alerts)

    def _sound(self, key: str, what: str, remedy: str) -> None:
        self._on_loop(lambda: self._fabric.alarms.sound(key, what, remedy, time.monotonic()))

    def _quiet(self, key: str) -> None:
        self._on_loop(lambda: self._fabric.alarms.clear(key))


def _entries(policy: Policy | None, lifts: Iterable[Lift]) -> frozenset[FlowEntry]:
    return classify.entries(policy, lifts) | {passing_by()}


def _has(policy: Policy, lift: Lift) -> bool:
    return lift.category in policy.categories and lift.queue in policy.queues


def _by_cookie(entries: Iterable[FlowEntry]) -> dict[int, list[FlowEntry]]:
    found: dict[int, list[FlowEntry]] = {}
    for entry in entries:
        found.setdefault(entry.cookie, []).append(entry)
    return found


def _sends(entry: FlowEntry, port: int, groups: set[int]) -> bool:
    return any(
        (isinstance(action, Output) and action.port == port) or (isinstance(action, ToGroup) and action.group in groups)
        for action in entry.actions
    )
