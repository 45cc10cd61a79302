"""A running controller: what `control.Control` promises, kept by discovery, policy and the switches together.

One thread runs the loop for the switches. Other threads read snapshots, and have the loop do what changes the network.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

from .control import Alert, Applied, Decision, FlowState, FlowTotals, LinkLoad, QueueState, Status
from .counted import Counted
from .fabric import Fabric, FabricSettings
from .flows.entry import FlowEntry
from .in_force import PolicyInForce
from .loop import LoopThread
from .mirror.agents import AgentState, Poll, Told
from .mirror.bridge import BridgePoll, BridgeState, BridgeTold
from .mirror.counts import MirrorCounts
from .mirror.model import Hop, Pipeline
from .monitor import Monitor
from .net.topology import Dpid, Link, Topology
from .openflow.edge import Edge, EdgeSettings
from .openflow.leases import Lease, Role
from .policy.file import parse
from .policy.model import Lift, Policy, PolicyError, Problem
from .policy.store import PolicyStore
from .port_queues import PortQueues
from .queues import plan
from .queues.wanted import QueuesReport, QueuesWanted
from .state import StateDirectory

log = logging.getLogger(__name__)

SNAPSHOT_S = 0.1


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


class Controller:
    """From `start` to `stop`. `dynamic` is set by who runs dynamic control."""

    def __init__(self, settings: ControllerSettings) -> None:
        """Raises StateError."""
        self.settings = settings
        self.dynamic: Deciding | None = None
        self._state = StateDirectory(settings.state)
        self._started_s = time.time()
        self._loop = LoopThread()
        self._fabric = Fabric(settings.fabric, self._refresh)
        self._in_force = PolicyInForce(PolicyStore(settings.state), _OnLoop(self._loop, self._fabric))
        self._queues = PortQueues(self._fabric, self._loop)
        self._monitor = Monitor(self._fabric, settings.poll_s, lambda: bool(self._queues.wanted.ports))
        self._counted = Counted(self._fabric, self._monitor, self._queues, self._in_force)
        lease = Lease(int(self._started_s), self._state.identity)
        self._edge = Edge(settings.edge, lease, self._fabric)
        self._tasks: list[asyncio.Task[None]] = []
        self._converged = False
        self._alerts: tuple[Alert, ...] = ()

    # Life.

    def start(self) -> None:
        """Returns when switches may connect. Raises OSError where the port can't be listened on."""
        self._in_force.load()
        self._loop.start()
        try:
            self._loop.do(self._begin())
        except OSError:
            self.stop()
            raise
        self._queues.start()

    def stop(self) -> None:
        """Flows stay in the switches; another controller may take them at once."""
        self._queues.stop()
        if self._loop.is_alive:
            self._loop.do(self._end())
            self._loop.stop()
        self._state.close()

    @property
    def openflow_port(self) -> int:
        return self._edge.port

    async def _begin(self) -> None:
        await self._edge.start()
        self._fabric.start()
        self._tasks = [asyncio.create_task(work) for work in (self._monitor.run(), self._snapshots())]

    async def _end(self) -> None:
        for task in self._tasks:
            task.cancel()
        await self._edge.stop()
        await asyncio.sleep(0)

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
        self._queues.update(self._in_force.policy)
        self._alerts = (*alerts, *self._queues.alerts())

    # What people see.

    def status(self) -> Status:
        topology, dynamic = self._fabric.topology, self.dynamic
        return Status(
            role=str(self._fabric.role),
            started_s=self._started_s,
            converged=self._converged,
            switches=len(self._fabric.sessions) + len(self._fabric.bridges.there),
            links=len(topology.links),
            hosts=len(topology.hosts),
            dynamic=dynamic is not None,
            alerts=(*self._alerts, *(dynamic.alerts() if dynamic else ())),
            decisions=dynamic.decided if dynamic else 0,
        )

    def topology(self) -> Topology:
        return self._fabric.topology

    def loads(self) -> tuple[LinkLoad, ...]:
        return tuple(self._counted.loads())

    def queues(self) -> tuple[QueueState, ...]:
        return tuple(self._counted.queues())

    def flows(self, dpid: Dpid) -> tuple[FlowState, ...]:
        return tuple(self._counted.flows(dpid))

    def flows_of(self, link: Link) -> tuple[FlowState, ...]:
        return tuple(self._counted.flows_of(link))

    def flow_totals(self) -> tuple[FlowTotals, ...]:
        return tuple(self._counted.flow_totals())

    def policy(self) -> tuple[Policy, Applied] | None:
        now = self._in_force.now
        return (now.policy, now.applied) if now else None

    def history(self) -> tuple[Applied, ...]:
        return self._in_force.history

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
        return policy, self._in_force.put(policy, text, by)

    def clear(self, by: str) -> Applied:
        return self._in_force.put(None, "", by)

    def lift(self, lifts: frozenset[Lift]) -> int:
        """Of `hooks.Lifting`."""
        return self._in_force.lift(lifts)

    # Of pipelines that are mirrored.

    def mirror_announce(self, hop: Hop, wait_s: float) -> Future[Pipeline]:
        return self._loop.submit(self._fabric.mirrors.announce(hop, wait_s))

    def mirror_close(self, identity: str) -> Future[None]:
        return self._loop.submit_call(lambda: self._fabric.mirrors.close(identity))

    def mirror_poll(self, poll: Poll, wait_s: float) -> Future[Told]:
        return self._loop.submit(self._fabric.mirrors.poll(poll, wait_s))

    def mirror_bridge_poll(self, poll: BridgePoll, wait_s: float) -> Future[BridgeTold]:
        return self._loop.submit(self._fabric.bridges.poll(poll, wait_s))

    def mirror_bridges(self) -> tuple[BridgeState, ...]:
        return self._fabric.bridges.all()

    def mirrors(self) -> tuple[Pipeline, ...]:
        return self._fabric.mirrors.all()

    def mirror_agents(self) -> tuple[AgentState, ...]:
        return self._fabric.mirrors.agents()

    def mirror_lease_s(self) -> float:
        return self._fabric.mirrors.settings.lease_s

    def mirror_counts(self) -> MirrorCounts:
        return self._fabric.mirrors.counts()

    # What agents ask.

    def queues_wanted(self, dpids: tuple[Dpid, ...]) -> QueuesWanted:
        return self._queues.wanted.of(dpids)

    def when_queues_change(self, call: Callable[[], None]) -> Callable[[], None]:
        return self._queues.when_changed(call)

    def queues_reported(self, report: QueuesReport) -> None:
        self._queues.reported(report)


class _OnLoop:
    """The fabric as `in_force.Switches`: what concerns the switches is done on their thread, once it runs."""

    def __init__(self, loop: LoopThread, fabric: Fabric) -> None:
        self._loop = loop
        self._fabric = fabric

    def stands_by(self) -> bool:
        return self._fabric.role is Role.STANDBY

    def changes(self, entries: frozenset[FlowEntry]) -> int:
        return self._loop.call(lambda: self._fabric.changes(entries))

    def classify(self, entries: frozenset[FlowEntry], knows_policy: bool = True) -> None:
        self._loop.call(lambda: self._fabric.classify(entries, knows_policy))

    def sound(self, key: str, what: str, remedy: str) -> None:
        self._loop.call(lambda: self._fabric.alarms.sound(key, what, remedy, time.monotonic()))

    def quiet(self, key: str) -> None:
        self._loop.call(lambda: self._fabric.alarms.clear(key))
