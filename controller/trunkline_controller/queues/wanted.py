"""Which queues the ports of switches should have: what the controller tells the agents at the switches' hosts.

The JSON here is that of `GET /v1/agent/queues`; both ends use these functions.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ..net.topology import Dpid, PortNo, dpid_text

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
        """Two of these have the same version if and only if they want the same."""
        text = json.dumps(_json(self))
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


def _port_json(port: PortQueues) -> dict[str, Any]:
    return {
        "dpid": dpid_text(port.dpid),
        "port": port.port,
        "name": port.name,
        "rate_bit_s": port.rate_bit_s,
        "default": port.default,
        "queues": [vars(queue) for queue in port.queues],
    }


def _json(wanted: QueuesWanted) -> dict[str, Any]:
    return {
        "switches": [dpid_text(dpid) for dpid in sorted(wanted.switches)],
        "ports": [_port_json(port) for port in sorted(wanted.ports, key=lambda p: (p.dpid, p.port))],
        "undecided": [{"dpid": dpid_text(dpid), "name": name} for dpid, name in sorted(wanted.undecided)],
    }


def wanted_json(wanted: QueuesWanted) -> dict[str, Any]:
    return {"version": wanted.version, **_json(wanted)}


def wanted_of(value: Mapping[str, Any]) -> QueuesWanted:
    """The reverse of `wanted_json`. Raises ValueError."""
    try:
        return QueuesWanted(
            tuple(
                PortQueues(
                    Dpid(int(port["dpid"], 16)),
                    PortNo(int(port["port"])),
                    str(port["name"]),
                    int(port["rate_bit_s"]),
                    int(port["default"]),
                    tuple(
                        QueueWanted(
                            str(queue["name"]),
                            int(queue["number"]),
                            int(queue["dscp"]),
                            int(queue["priority"]),
                            int(queue["min_bit_s"]),
                            int(queue["max_bit_s"]),
                        )
                        for queue in port["queues"]
                    ),
                )
                for port in value["ports"]
            ),
            frozenset(Dpid(int(dpid, 16)) for dpid in value["switches"]),
            frozenset((Dpid(int(port["dpid"], 16)), str(port["name"])) for port in value["undecided"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"not a list of queues: {error!r}") from error


def report_json(report: QueuesReport) -> dict[str, Any]:
    return {
        "agent": report.agent,
        "version": report.version,
        "ports": [
            {"dpid": dpid_text(p.dpid), "name": p.name, "problem": p.problem[:MAX_PROBLEM]} for p in report.ports
        ],
    }


def report_of(value: Mapping[str, Any]) -> QueuesReport:
    """The reverse of `report_json`. Raises ValueError."""
    try:
        return QueuesReport(
            str(value["agent"])[:255],
            str(value["version"])[:64],
            tuple(
                PortReport(Dpid(int(port["dpid"], 16)), str(port["name"])[:255], str(port["problem"])[:MAX_PROBLEM])
                for port in value["ports"]
            ),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"not an agent's report: {error!r}") from error
