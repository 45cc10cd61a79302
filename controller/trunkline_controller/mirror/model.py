"""A pipeline that is mirrored, its hops, and why one is not: values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from types import MappingProxyType

from ..flows.entry import FlowEntry
from ..net.topology import Dpid
from .entries import Connection
from .tree import Tree

# Hadoop's BlockConstructionStage: those after whose set-up a client's data flows down the pipeline.
WRITES = (
    "PIPELINE_SETUP_CREATE",
    "PIPELINE_SETUP_APPEND",
    "PIPELINE_SETUP_APPEND_RECOVERY",
    "PIPELINE_SETUP_STREAMING_RECOVERY",
)


class Why(StrEnum):
    """Why a pipeline is not mirrored."""

    ONE_REPLICA = "one_replica"
    TOO_MANY_REPLICAS = "too_many_replicas"
    NOT_A_WRITE = "not_a_write"  # a DataNode re-replicates, or nothing but a close follows
    OUTDATED = "outdated"  # a newer generation of the block is announced
    ALL_PIPELINES = "max_pipelines"
    HOST_PIPELINES = "max_pipelines_per_host"
    UNKNOWN_HOST = "unknown_host"
    SAME_HOST = "same_host"
    BROKEN_CHAIN = "broken_chain"
    MIXED_VERSIONS = "mixed_ip_versions"
    NO_PATH = "no_path"
    NO_AGENT = "no_agent"
    TWO_HEADS = "two_heads"
    AGENT = "agent_failed"
    SWITCH = "switch_refused"


OF_THE_NETWORK = (Why.UNKNOWN_HOST, Why.NO_PATH)  # tried again when it has changed


class Refused(ValueError):
    """A hop that is not taken; nothing is kept of it."""

    def __init__(self, why: Why, what: str) -> None:
        super().__init__(what)
        self.why = why
        self.what = what


class State(StrEnum):
    ANNOUNCED = "announced"
    ARMING = "arming"
    ARMED = "armed"
    REFUSED = "refused"


@dataclass(frozen=True)
class Limits:
    """`lease_s`: a pipeline of which a hop was not announced again for so long is removed."""

    pipelines: int = 1024
    per_host: int = 1024
    lease_s: float = 60.0


@dataclass(frozen=True)
class Hop:
    """One connection of a pipeline, as one of its ends announces it after the header has left, which does not wait.

    `position` is that of the replica it leads to, from 1; `generation` is the stamp that the write will have. `client`
    is Hadoop's name of the client, empty where a DataNode re-replicates.
    """

    pool: str
    block: int
    generation: int
    position: int
    replicas: int
    connection: Connection
    client: str
    stage: str = WRITES[0]


@dataclass(frozen=True)
class Head:
    """Where the stream begins in a connection that is copied: the sequence number of its first octet, as the agent at
    the connection's destination has read it there, for a pipeline.
    """

    id: str
    connection: Connection
    zero: int


@dataclass(frozen=True)
class MirroredFlow:
    """A pipeline as the host of one of its replicas has it. Copies arrive for `receive`, as if its source had sent
    them; at the lead it is the connection whose segments are copied. By `send` the host's own DataNode goes on to the
    next replica, which has copies too. `head` is where the stream begins in the copied connection, if that is known;
    the lead is never told.
    """

    id: str
    position: int
    receive: Connection
    send: Connection | None
    lead: bool
    head: int | None

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        """Kept: an agent is told all of its flows whenever one changes, and each is looked up by it."""
        return hash((self.id, self.position, self.receive, self.send, self.lead, self.head))


@dataclass(frozen=True)
class Pipeline:
    """What is known of one; `hops` by position. Times are of the caller's clock, in seconds.

    `lead` is the position of the first replica that the network's segments come to: the second where the client is on
    the first one's host.
    """

    pool: str
    block: int
    generation: int
    replicas: int
    announced_s: float
    hops: Mapping[int, Connection] = field(default_factory=lambda: MappingProxyType({}))
    leases: Mapping[int, float] = field(default_factory=lambda: MappingProxyType({}))  # of hops: until when
    state: State = State.ANNOUNCED
    why: Why | None = None
    what: str = ""  # of a refused one, for people
    complete_s: float | None = None  # when its last hop was announced, or what was in the way had ended
    armed_s: float | None = None  # when all switches had confirmed first
    tree: Tree | None = None
    entries: Mapping[Dpid, FlowEntry] = field(default_factory=lambda: MappingProxyType({}))
    waits_for: frozenset[Dpid] = frozenset()  # switches that have not confirmed
    lead: int = 1
    began: Head | None = None  # as said last of one of its connections

    @property
    def head(self) -> int | None:
        """The sequence number at which the stream begins in the present connection to the lead, if that is known."""
        if self.began is None or self.hops.get(self.lead) != self.began.connection:
            return None
        return self.began.zero

    @property
    def id(self) -> str:
        return pipeline_id(self.pool, self.block, self.generation)

    @property
    def until_s(self) -> float:
        """When it ends: as soon as the owner of one of its hops no longer announces it."""
        return min(self.leases.values())

    @property
    def missing(self) -> tuple[int, ...]:
        return tuple(position for position in range(1, self.replicas + 1) if position not in self.hops)

    @property
    def settled(self) -> bool:
        return self.state in (State.ARMED, State.REFUSED)

    @cached_property
    def flows(self) -> tuple[MirroredFlow, ...]:
        """What agents are told of it while it is live, by position."""
        lead, hops, head = self.lead, self.hops, self.head
        return tuple(
            MirroredFlow(
                self.id, position, hops[position], hops.get(position + 1), position == lead,
                None if position == lead else head,
            )
            for position in range(lead, self.replicas + 1)
        )  # fmt: skip

    @property
    def is_live(self) -> bool:
        """Switches have its entries, or are being given them."""
        return self.state in (State.ARMING, State.ARMED)

    @property
    def mirrored(self) -> Mapping[int, Connection]:
        """Connections to replicas whose hosts take copies, or the segments that are copied; by position."""
        return {position: hop for position, hop in self.hops.items() if position >= self.lead}


def pipeline_id(pool: str, block: int, generation: int) -> str:
    return f"{pool}~{block}~{generation}"


@dataclass
class Changes:
    """Flow entries to add and to remove, by switch. None is in both."""

    added: dict[Dpid, set[FlowEntry]] = field(default_factory=dict)
    removed: dict[Dpid, set[FlowEntry]] = field(default_factory=dict)

    def add(self, dpid: Dpid, entry: FlowEntry) -> None:
        self.removed.get(dpid, set()).discard(entry)
        self.added.setdefault(dpid, set()).add(entry)

    def remove(self, dpid: Dpid, entry: FlowEntry) -> None:
        self.added.get(dpid, set()).discard(entry)
        self.removed.setdefault(dpid, set()).add(entry)

    def __bool__(self) -> bool:
        return any(self.added.values()) or any(self.removed.values())


def parsed_id(identity: str) -> tuple[tuple[str, int], int]:
    """Raises KeyError."""
    pool, _, rest = identity.rpartition("~")[0].rpartition("~")
    try:
        return (pool, int(rest)), int(identity.rpartition("~")[2])
    except ValueError:
        raise KeyError(identity) from None
