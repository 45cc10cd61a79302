"""Which mode is in force at which port, and which ports are to be probed when. Pure: time comes in from outside."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ..control import QueueMode
from ..net.topology import Dpid, End
from .probe import PortProbe
from .wanted import PortQueues, QueuesReport, QueuesWanted

FIRST_AGAIN_S = 2.0  # after a probe that found no mode; twice as long each time
LAST_AGAIN_S = 120.0
RECHECK_S = 900.0  # after one that did
NOT_PROBED = "not yet probed"
PROVED = (QueueMode.SET_QUEUE, QueueMode.DSCP)


@dataclass
class _Known:
    port: PortQueues
    due_s: float
    again_s: float = FIRST_AGAIN_S  # until the next probe, where the last proved nothing
    mode: QueueMode = QueueMode.UNKNOWN
    why: str = NOT_PROBED


class Modes:
    """What is known of each port that should have queues."""

    def __init__(self) -> None:
        self._known: dict[End, _Known] = {}

    def want(self, now_s: float, wanted: QueuesWanted) -> None:
        """What ports should have. A port whose queues change is probed anew; until then its mode is believed."""
        ports = {End(port.dpid, port.port): port for port in wanted.ports}
        for end in self._known.keys() - ports.keys():
            del self._known[end]
        for end, port in ports.items():
            known = self._known.get(end)
            if known is None:
                self._known[end] = _Known(port, now_s)
            elif known.port != port:
                known.port, known.due_s, known.again_s = port, now_s, FIRST_AGAIN_S

    def reported(self, now_s: float, report: QueuesReport) -> None:
        """An agent has seen to its ports: they are probed at once."""
        names = {(port.dpid, port.name): port.problem for port in report.ports}
        for end, known in self._known.items():
            problem = names.get((end.dpid, known.port.name))
            if problem is not None:
                known.due_s, known.again_s = now_s, FIRST_AGAIN_S
            if problem:
                known.why = problem

    def connected(self, now_s: float, dpid: Dpid) -> None:
        """A switch is (again) here: what it does with its queues may be another thing now."""
        for end, known in self._known.items():
            if end.dpid == dpid:
                known.due_s, known.again_s = now_s, FIRST_AGAIN_S

    def due(self, now_s: float) -> tuple[PortQueues, ...]:
        """Ports to probe now."""
        return tuple(known.port for known in self._known.values() if known.due_s <= now_s)

    def found(self, now_s: float, probed: Iterable[PortQueues], results: Iterable[PortProbe]) -> None:
        """What a probe of these ports found; of a port whose queues changed meanwhile it is not believed."""
        ports = {End(port.dpid, port.port): port for port in probed}
        for result in results:
            known = self._known.get(result.end)
            if known is None or known.port != ports.get(result.end):
                continue
            known.why = result.why
            # A probe that could not tell does not disprove what an earlier one proved.
            if result.mode is not QueueMode.UNKNOWN or known.mode not in PROVED:
                known.mode = result.mode
            if result.mode in PROVED:
                known.due_s, known.again_s = now_s + RECHECK_S, FIRST_AGAIN_S
            else:
                known.due_s = now_s + known.again_s
                known.again_s = min(2 * known.again_s, LAST_AGAIN_S)

    def state(self, end: End) -> tuple[QueueMode, str]:
        """A port's mode; and why none is in force, in words, or why the last probe could not confirm the one that is,
        else empty.
        """
        known = self._known.get(end)
        return (known.mode, known.why) if known else (QueueMode.UNKNOWN, NOT_PROBED)
