"""What people and programs ask of a running controller: the seam between `http` and the rest.

`http` knows this module alone; `controller.Controller` keeps the promise. All methods may be called from any thread,
answer from a snapshot, and never wait for a switch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from .flows.entry import FlowEntry
from .mirror.agents import AgentState, Poll, Told
from .mirror.bridge import BridgePoll, BridgeState, BridgeTold
from .mirror.counts import MirrorCounts
from .mirror.model import Hop, Pipeline
from .net.topology import Dpid, End, Link, Topology
from .policy.model import Policy
from .queues.wanted import QueuesReport, QueuesWanted


class QueueMode(StrEnum):
    """How a port's queues take effect, as the probe found it."""

    SET_QUEUE = "set_queue"  # OpenFlow's own action
    DSCP = "dscp"  # a mark in the packet, told apart by the port's classes
    NONE = "none"  # neither: packets share the port's default queue
    UNKNOWN = "unknown"  # not yet probed, or no probe had a clear answer


@dataclass(frozen=True)
class LinkLoad:
    """What the port at `end` sent lately, and how much it may; what came in there, too."""

    end: End
    bit_s: float
    rate_bit_s: int  # 0: unknown
    dropped_packets: int
    received_bit_s: float = 0.0
    sent_bytes: int = 0  # since the switch counts
    received_bytes: int = 0


@dataclass(frozen=True)
class QueueState:
    """A queue of a port: what it is meant to have, what it sent."""

    end: End
    queue: str
    number: int
    dscp: int
    mode: QueueMode
    min_bit_s: int
    max_bit_s: int
    bit_s: float
    sent_bytes: int
    dropped_packets: int
    categories: tuple[str, ...]
    why: str = ""  # no mode is in force at the port, or the last probe could not confirm it; else empty


@dataclass(frozen=True)
class FlowState:
    """A flow entry of ours on a switch, and what it counted. `category` is empty for what is not a policy's."""

    dpid: Dpid
    entry: FlowEntry
    packets: int
    bytes: int
    category: str = ""


@dataclass(frozen=True)
class FlowTotals:
    """A switch's flow entries of ours, counted. `category_bytes` is what its present entries for a category counted."""

    dpid: Dpid
    entries: Mapping[str, int]  # by owner, as flows.entry.owner_name has it
    category_bytes: Mapping[str, int]


@dataclass(frozen=True)
class Applied:
    """A policy that was put in force. `at_s` is Unix time; `flows_changed` counts entries on all switches."""

    version: int
    name: str
    at_s: float
    by: str
    text: str
    flows_changed: int


@dataclass(frozen=True)
class Decision:
    """One decision of dynamic control: which reducer, why, from which queue to which."""

    at_s: float
    job: str
    reducer: str
    host: str
    why: str
    from_queue: str
    to_queue: str


@dataclass(frozen=True)
class Alert:
    """Something an operator should mend: a loop, two hosts with one address, a full table, a job API that is silent."""

    at_s: float
    what: str
    remedy: str


@dataclass(frozen=True)
class Status:
    """How the controller does. `role` is OpenFlow's: "master", "standby" (another controller is master) or "none"."""

    role: str
    started_s: float
    converged: bool  # every connected switch has what it should
    switches: int
    links: int
    hosts: int
    dynamic: bool
    alerts: tuple[Alert, ...]
    decisions: int = 0  # of dynamic control since the start, also those that are no longer kept


class NotNow(RuntimeError):
    """What was asked for is right, but this controller can't do it in its present state: it stands by, for one. `why`
    is the reason in a word, where programs are to tell it from others.
    """

    def __init__(self, what: str, remedy: str, *, why: str = "") -> None:
        super().__init__(f"{what}; {remedy}")
        self.why = why
        self.what = what
        self.remedy = remedy


class Control(Protocol):
    """A running controller."""

    def status(self) -> Status: ...

    def topology(self) -> Topology: ...

    def loads(self) -> tuple[LinkLoad, ...]: ...

    def queues(self) -> tuple[QueueState, ...]: ...

    def flows(self, dpid: Dpid) -> tuple[FlowState, ...]:
        """Raises KeyError where no such switch is connected."""
        ...

    def flows_of(self, link: Link) -> tuple[FlowState, ...]:
        """Entries at both ends that send over the link. Raises KeyError where there is no such link."""
        ...

    def flow_totals(self) -> tuple[FlowTotals, ...]:
        """Of all switches; has none of them asked for more than they are anyhow."""
        ...

    def check(self, text: str, name: str) -> Policy:
        """Raises PolicyError; `name` is the file's, for its messages. Checked against the switches connected too."""
        ...

    def apply(self, text: str, name: str, by: str) -> tuple[Policy, Applied]:
        """Puts it in force on all switches and writes it down; the policy has its warnings. Raises PolicyError or
        NotNow: nothing has changed.
        """
        ...

    def clear(self, by: str) -> Applied:
        """Back to no policy: everything in the default queue. Raises NotNow, and nothing has changed."""
        ...

    def policy(self) -> tuple[Policy, Applied] | None: ...

    def history(self) -> tuple[Applied, ...]:
        """Newest first."""
        ...

    def decisions(self) -> tuple[Decision, ...]:
        """Newest first."""
        ...


class AgentControl(Protocol):
    """What the agents at the switches' hosts ask of a running controller; `controller.Controller` keeps this too.

    `GET /v1/agent/queues?dpid=<16 hex digits>&dpid=…&seen=<version>&wait=<seconds>` answers what is wanted at once
    where `seen` is not its version, and else when it has changed or `wait` is over; `POST /v1/agent/queues` takes a
    report. Their JSON is that of `http.views.agent`.
    """

    def queues_wanted(self, dpids: tuple[Dpid, ...]) -> QueuesWanted:
        """Of those of these switches that it is sure of: connected, with this controller as their master, and what is
        at the other end of their cables found out. From a snapshot.
        """
        ...

    def when_queues_change(self, call: Callable[[], None]) -> Callable[[], None]:
        """Has `call` called, from any thread and quickly to return, after each change. Returns how to end that."""
        ...

    def queues_reported(self, report: QueuesReport) -> None: ...


class MirrorControl(Protocol):
    """What those who open the connections of a pipeline, agents at replicas' hosts, and operators ask of mirroring."""

    def mirror_announce(self, hop: Hop, wait_s: float) -> Future[Pipeline]:
        """Takes a hop, or renews its lease. The answer is there when the pipeline is armed or refused, or `wait_s`
        after all of its hops were known, or after `wait_s` where some are missing; it raises mirror.model.Refused where
        nothing is kept of the hop, or NotNow.
        """
        ...

    def mirror_close(self, identity: str) -> Future[None]:
        """Its switches copy nothing more. The answer raises KeyError or NotNow."""
        ...

    def mirror_poll(self, poll: Poll, wait_s: float) -> Future[Told]:
        """Takes what an agent says. The answer is there when the agent should be told something else than it has seen,
        or after `wait_s`, at most half of its lease; it raises mirror.agents.TooMany or NotTaken, or NotNow.
        """
        ...

    def mirror_bridge_poll(self, poll: BridgePoll, wait_s: float) -> Future[BridgeTold]:
        """Takes what a bridge's agent says. The answer is there when the bridge should have something else than it has,
        or after `wait_s`, at most half of its lease; it raises mirror.agents.TooMany or NotNow.
        """
        ...

    def mirror_bridges(self) -> tuple[BridgeState, ...]: ...

    def mirrors(self) -> tuple[Pipeline, ...]: ...

    def mirror_agents(self) -> tuple[AgentState, ...]: ...

    def mirror_lease_s(self) -> float:
        """After so long a hop is to be announced again."""
        ...

    def mirror_counts(self) -> MirrorCounts: ...
