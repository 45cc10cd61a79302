"""What the controller tells the agents at the switches' hosts, and what they report: the JSON of `/v1/agent/queues`.

Both ends use these, and they need not be of one release: what one does not know it passes over, what it lacks or can't
use it refuses, by name.
"""

from __future__ import annotations

from pydantic import BaseModel, Field

from ...net.topology import Dpid, PortNo, dpid_text
from ...policy.model import MAX_NUMBER
from ...queues.wanted import MAX_PROBLEM, PortQueues, PortReport, QueuesReport, QueuesWanted, QueueWanted
from ...text import printable
from . import View
from .network import DpidText

MAX_PORTS = 10_000  # of one report
MAX_NAME = 255
MAX_VERSION = 64


class WantedQueueView(View):
    """A queue that a port should have."""

    name: str = Field(max_length=MAX_NAME)
    number: int = Field(ge=0, le=MAX_NUMBER, description="OpenFlow's queue id")
    dscp: int = Field(ge=0, le=63, description="Packets marked so belong into it")
    priority: int = Field(ge=0, le=7, description="0 is served first, 7 last")
    min_bit_s: int = Field(ge=0)
    max_bit_s: int = Field(ge=0)

    def wanted(self) -> QueueWanted:
        return QueueWanted(self.name, self.number, self.dscp, self.priority, self.min_bit_s, self.max_bit_s)


class WantedPortView(BaseModel):
    """A port's queues."""

    dpid: DpidText
    port: int = Field(ge=0, lt=1 << 32)
    name: str = Field(max_length=MAX_NAME)
    rate_bit_s: int = Field(ge=0)
    default: int = Field(ge=0, le=MAX_NUMBER, description="Number of the queue of packets that nothing else tells")
    queues: list[WantedQueueView]

    @staticmethod
    def of(port: PortQueues) -> WantedPortView:
        return WantedPortView(
            dpid=dpid_text(port.dpid),
            port=port.port,
            name=port.name,
            rate_bit_s=port.rate_bit_s,
            default=port.default,
            queues=[WantedQueueView.of(queue) for queue in port.queues],
        )

    def wanted(self) -> PortQueues:
        queues = tuple(queue.wanted() for queue in self.queues)
        return PortQueues(Dpid(int(self.dpid, 16)), PortNo(self.port), self.name, self.rate_bit_s, self.default, queues)


class UndecidedPortView(BaseModel):
    """A port of which the controller does not know yet where it leads."""

    dpid: DpidText
    name: str = Field(max_length=MAX_NAME)


class WantedView(BaseModel):
    """All ports of some switches that should have queues."""

    version: str = Field(max_length=MAX_VERSION, description="Another one when something else is wanted")
    switches: list[DpidText] = Field(
        description="Those asked for of which the controller is sure. Their other ports should have none of its "
        "queues; ports of switches that are not named should stay as they are"
    )
    ports: list[WantedPortView]
    undecided: list[UndecidedPortView] = Field(description="Ports of these switches that should stay as they are")
    controller: str = Field(
        "", max_length=MAX_VERSION, description="Which run of the controller says so: another has no report yet"
    )

    @staticmethod
    def of(wanted: QueuesWanted, controller: str) -> WantedView:
        return WantedView(
            controller=controller,
            version=wanted.version,
            switches=[dpid_text(dpid) for dpid in sorted(wanted.switches)],
            ports=[WantedPortView.of(port) for port in sorted(wanted.ports, key=lambda p: (p.dpid, p.port))],
            undecided=[UndecidedPortView(dpid=dpid_text(dpid), name=name) for dpid, name in sorted(wanted.undecided)],
        )

    def wanted(self) -> QueuesWanted:
        return QueuesWanted(
            tuple(port.wanted() for port in self.ports),
            frozenset(Dpid(int(dpid, 16)) for dpid in self.switches),
            frozenset((Dpid(int(port.dpid, 16)), port.name) for port in self.undecided),
        )


class PortReportView(BaseModel):
    """What became of a port's queues."""

    dpid: DpidText
    name: str = Field(max_length=MAX_NAME)
    problem: str = Field("", max_length=MAX_PROBLEM, description="Empty where they are as they should be")

    @staticmethod
    def of(port: PortReport) -> PortReportView:
        return PortReportView(dpid=dpid_text(port.dpid), name=port.name, problem=printable(port.problem, MAX_PROBLEM))

    def report(self) -> PortReport:
        return PortReport(Dpid(int(self.dpid, 16)), self.name, printable(self.problem, MAX_PROBLEM))


class ReportView(BaseModel):
    """What an agent has done of what was wanted; a long one comes in parts."""

    agent: str = Field(max_length=MAX_NAME, description="Its host's name")
    version: str = Field(max_length=MAX_VERSION, description="Of what was wanted")
    ports: list[PortReportView] = Field(max_length=MAX_PORTS)

    def report(self) -> QueuesReport:
        return QueuesReport(printable(self.agent, MAX_NAME), self.version, tuple(port.report() for port in self.ports))
