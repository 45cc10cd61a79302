"""Queues of the switches' ports: what they should be, what agents report of them, and whether they have effect."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping

from .control import Alert, QueueMode
from .fabric import Fabric
from .flows.entry import Action
from .loop import LoopThread
from .net.topology import Dpid, End, PortNo, dpid_text
from .openflow import messages
from .openflow.leases import Role
from .policy.model import Policy
from .queues.planned import Planned
from .queues.probe import Prober
from .queues.probing import Probing
from .queues.reports import Reports
from .queues.wanted import QueuesReport, QueuesWanted


class PortQueues:
    """Ports are probed from `start` to `stop`. Keeps `queues.probe.ProbeEdge`."""

    def __init__(self, fabric: Fabric, loop: LoopThread) -> None:
        self._fabric = fabric
        self._loop = loop
        self._planned = Planned()
        self._reports = Reports()
        self._probing = Probing(
            Prober(self), lambda: self.wanted, lambda: fabric.role is Role.MASTER, lambda: fabric.sessions
        )
        self._watchers: list[Callable[[], None]] = []

    def start(self) -> None:
        self._probing.start()

    def stop(self) -> None:
        self._probing.stop()

    @property
    def wanted(self) -> QueuesWanted:
        return self._planned.wanted

    def mode(self, end: End) -> tuple[QueueMode, str]:
        """Of a port's queues, as `queues.modes.Modes.state` has it."""
        return self._probing.state(end)

    def update(self, policy: Policy | None) -> None:
        """On the loop's thread: the network, or the policy, may be another now."""
        if self._planned.update(policy, self._fabric.topology, self._fabric.sure()):
            for call in self._watchers:
                call()

    def when_changed(self, call: Callable[[], None]) -> Callable[[], None]:
        """As `control.AgentControl.when_queues_change`."""
        self._watchers = [*self._watchers, call]

        def end() -> None:
            self._watchers = [other for other in self._watchers if other is not call]

        return end

    def reported(self, report: QueuesReport) -> None:
        self._probing.reported(report)
        self._reports.take(report, self.wanted, time.time())

    def alerts(self) -> Iterator[Alert]:
        """What agents could not do."""
        switches = self._fabric.topology.switches
        for trouble in self._reports.troubles(self.wanted):
            switch = switches.get(trouble.dpid)
            where = f"port {switch.name if switch else dpid_text(trouble.dpid)}/{trouble.port}"
            what = f"queues of {where}: {trouble.problem}"
            yield Alert(trouble.since_s, what, f"look at the agent's log on {trouble.agent}")

    def packet_out(self, dpid: Dpid, data: bytes, actions: tuple[Action, ...]) -> None:
        session = self._fabric.sessions[dpid]
        message = messages.packet_out(session.version, data, actions)
        self._loop.call_soon(session.connection.send, message)

    def queue_packets(self, dpid: Dpid, port: PortNo, timeout_s: float) -> Mapping[int, int]:
        session = self._fabric.sessions[dpid]
        if port not in session.ports:
            raise KeyError(port)
        asked = self._loop.submit(session.queue_counts(port))
        try:
            found = asked.result(timeout_s)
        except TimeoutError:
            asked.cancel()
            raise
        except OSError as error:
            raise TimeoutError(str(error)) from error
        return {queue: counts.sent_packets for (_, queue), counts in found.items()}
