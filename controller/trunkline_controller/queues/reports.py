"""What agents could not do at which port, until it is done or no longer wanted."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass

from ..net.topology import Dpid
from .wanted import QueuesReport, QueuesWanted


@dataclass(frozen=True)
class Trouble:
    """A port's problem, in an agent's words; `since_s` is Unix time."""

    dpid: Dpid
    port: str
    since_s: float
    agent: str
    problem: str


class Reports:
    """From any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._troubles: dict[tuple[Dpid, str], Trouble] = {}

    def take(self, report: QueuesReport, wanted: QueuesWanted, now_s: float) -> None:
        """Of ports that should have no queues it is not heeded."""
        known = _ports(wanted)
        with self._lock:
            for port in report.ports:
                key = port.dpid, port.name
                before = self._troubles.pop(key, None)
                if port.problem and key in known:
                    since_s = before.since_s if before else now_s
                    self._troubles[key] = Trouble(port.dpid, port.name, since_s, report.agent, port.problem)

    def troubles(self, wanted: QueuesWanted) -> Iterator[Trouble]:
        """Those at ports that should have queues now; the others are forgotten."""
        with self._lock:
            if self._troubles:
                known = _ports(wanted)
                self._troubles = {key: trouble for key, trouble in self._troubles.items() if key in known}
            return iter(tuple(self._troubles.values()))


def _ports(wanted: QueuesWanted) -> frozenset[tuple[Dpid, str]]:
    return frozenset((port.dpid, port.name) for port in wanted.ports)
