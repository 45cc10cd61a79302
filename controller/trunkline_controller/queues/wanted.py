"""Which queues the ports of switches should have: what the controller tells the agents at the switches' hosts."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass

from ..net.topology import Dpid, PortNo

MAX_PROBLEM = 1000  # characters that a report says of a port


@dataclass(frozen=True)
class QueueWanted:
    """A queue of a port. `number` is OpenFlow's; packets marked `dscp` belong into it."""

    name: str
    number: int
    dscp: int
    priority: int  # 0 is served first, 7 last
    min_bit_s: int
    max_bit_s: int


@dataclass(frozen=True)
class PortQueues:
    """A port's queues. `name` is the port's on its switch; what no entry and no mark tells goes to queue `default`."""

    dpid: Dpid
    port: PortNo
    name: str
    rate_bit_s: int
    default: int
    queues: tuple[QueueWanted, ...]


@dataclass(frozen=True)
class QueuesWanted:
    """Ports that should have queues. Of `switches` it says all: their other ports should have none of ours, but for
    `undecided` ones (switch and name), which stay as they are. So do the ports of switches that it does not name: a
    controller that has just started, or stands by, knows nothing of them.
    """

    ports: tuple[PortQueues, ...]
    switches: frozenset[Dpid] = frozenset()
    undecided: frozenset[tuple[Dpid, str]] = frozenset()

    @property
    def version(self) -> str:
        """Two of these have the same version if and only if they want the same. Of this release alone: to an agent the
        version is a word that it hands back.
        """
        ports = sorted(self.ports, key=lambda port: (port.dpid, port.port))
        text = repr((ports, sorted(self.switches), sorted(self.undecided)))
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def of(self, dpids: Iterable[Dpid]) -> QueuesWanted:
        """What it says of these switches, as far as it says all of them."""
        switches = self.switches.intersection(dpids)
        return QueuesWanted(
            tuple(port for port in self.ports if port.dpid in switches),
            switches,
            frozenset(port for port in self.undecided if port[0] in switches),
        )

    def over(self, before: QueuesWanted) -> QueuesWanted:
        """This, and what `before` says of switches that this does not name."""
        others = before.of(before.switches - self.switches)
        return QueuesWanted(
            (*self.ports, *others.ports), self.switches | others.switches, self.undecided | others.undecided
        )


@dataclass(frozen=True)
class PortReport:
    """What became of a port's queues at its switch. `problem` is empty where they are as they should be."""

    dpid: Dpid
    name: str
    problem: str = ""


@dataclass(frozen=True)
class QueuesReport:
    """An agent's answer: it has done what `version` wanted, as far as `ports` have no problem."""

    agent: str  # its host's name
    version: str
    ports: tuple[PortReport, ...]
