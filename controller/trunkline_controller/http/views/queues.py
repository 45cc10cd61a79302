"""Queues of ports, and their sums over all ports."""

from __future__ import annotations

from pydantic import BaseModel, Field

from ...control import QueueMode, QueueState
from ...net.topology import Topology
from .network import EndView


class QueueView(BaseModel):
    """A queue of a port: what it is meant to have, what it sent."""

    at: EndView
    queue: str
    number: int = Field(description="OpenFlow's queue id")
    dscp: int = Field(description="Mark of its packets where set_queue has no effect")
    mode: QueueMode = Field(description="How it takes effect, as the probe found it")
    min_bit_s: int
    max_bit_s: int
    bit_s: float
    sent_bytes: int
    dropped_packets: int
    categories: list[str]
    why: str = Field(
        description="Why it is none or unknown; beside another mode, why the last probe could not confirm it"
    )

    @staticmethod
    def of(state: QueueState, topology: Topology) -> QueueView:
        return QueueView.model_validate({**vars(state), "at": EndView.of(state.end, topology)})


class QueuesView(BaseModel):
    """Some of the queues that were asked for, those that send most first."""

    total: int
    queues: list[QueueView]


class QueueTotalView(BaseModel):
    """A queue summed over all ports that have it."""

    queue: str
    number: int
    dscp: int
    categories: list[str]
    ports: int
    modes: dict[QueueMode, int] = Field(description="Ports by how the queue takes effect there")
    bit_s: float
    sent_bytes: int
    dropped_packets: int
    busiest: EndView | None = Field(description="The port where it sends most; null where it sends nothing")
    busiest_bit_s: float


class QueueTotalsView(BaseModel):
    """All queues of the policy, each summed over all ports."""

    queues: list[QueueTotalView]

    @staticmethod
    def of(states: tuple[QueueState, ...], topology: Topology) -> QueueTotalsView:
        groups: dict[tuple[int, str], list[QueueState]] = {}
        for state in states:
            groups.setdefault((state.number, state.queue), []).append(state)
        totals = []
        for (number, name), group in sorted(groups.items()):
            busiest = max(group, key=lambda state: state.bit_s)
            modes: dict[QueueMode, int] = {}
            for state in group:
                modes[state.mode] = modes.get(state.mode, 0) + 1
            totals.append(
                QueueTotalView(
                    queue=name,
                    number=number,
                    dscp=busiest.dscp,
                    categories=sorted({category for state in group for category in state.categories}),
                    ports=len(group),
                    modes=modes,
                    bit_s=sum(state.bit_s for state in group),
                    sent_bytes=sum(state.sent_bytes for state in group),
                    dropped_packets=sum(state.dropped_packets for state in group),
                    busiest=EndView.of(busiest.end, topology) if busiest.bit_s > 0 else None,
                    busiest_bit_s=busiest.bit_s,
                )
            )
        return QueueTotalsView(queues=totals)
