"""A policy: which traffic is told apart, which queue it belongs into, what a queue may take of a port."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType

MAX_NUMBER = 61_439  # of a queue, in Open vSwitch's linux-htb


class Role(StrEnum):
    """What a host does in a Hadoop cluster; a host may have several."""

    NAMENODE = "namenode"
    DATANODE = "datanode"
    RESOURCEMANAGER = "resourcemanager"
    NODEMANAGER = "nodemanager"
    CLIENT = "client"


class Category(StrEnum):
    """The categories of *Hadoop Acceleration in an OpenFlow-based Cluster*, section II; a policy may name more."""

    CLIENT_WRITE = "client-write"
    CLIENT_READ = "client-read"
    REPLICATION = "replication"
    SHUFFLE = "shuffle"
    SPLIT = "split"  # a task reads its input from HDFS
    RESULT = "result"  # a task writes its output to HDFS
    NAMENODE = "namenode"  # NameNode and DataNodes
    RESOURCEMANAGER = "resourcemanager"  # ResourceManager and NodeManagers
    OTHER = "other"


@dataclass(frozen=True)
class Queue:
    """A queue of each port. `number` is OpenFlow's queue id; `dscp` marks its packets where set_queue has no effect."""

    name: str
    number: int
    dscp: int
    priority: int = 4  # 0 is served first, 7 last


@dataclass(frozen=True)
class Share:
    """What a queue has of a port, in bits a second.

    Where the policy leaves the port's rate to the switch, `min_percent` and `max_percent` of that rate stand for what
    the policy gives as a percentage, and the number in bits a second is 0 (as is a maximum that is not given).
    """

    min_bit_s: int
    max_bit_s: int
    min_percent: float | None = None
    max_percent: float | None = None


class Toward(StrEnum):
    """What is at the other end of a port's cable."""

    HOSTS = "hosts"
    SWITCHES = "switches"


@dataclass(frozen=True)
class PortClass:
    """Ports that are treated alike: all `toward` hosts or switches, those in `ports`, or those that `glob` matches.

    A port is named `<switch>/<port>` or, where that is one port only, `<port>`. A class that names ports goes before
    one that does not.
    """

    name: str
    rate_bit_s: int  # 0: as the switch says
    shares: Mapping[str, Share]  # by queue
    toward: Toward | None = None
    ports: tuple[str, ...] = ()
    glob: str = ""  # as fnmatch has it
    line: int = 0  # of the policy's file


@dataclass(frozen=True)
class Rule:
    """Packets that belong to a category. None matches all; a role stands for all hosts that have it."""

    category: str
    protocol: str | None = None  # "tcp" or "udp"
    source_role: Role | None = None
    destination_role: Role | None = None
    source: str | None = None  # address or prefix
    destination: str | None = None
    source_port: int | None = None
    destination_port: int | None = None
    dscp: int | None = None
    trusted: bool = False  # of packets whose source is among the policy's `trusted` hosts only


@dataclass(frozen=True)
class Lift:
    """A category's connections that a host opened (a reducer's to fetch map outputs), both directions, put into another
    queue than the policy's for the time being.
    """

    category: str
    host: str  # address
    queue: str


@dataclass(frozen=True)
class Policy:
    """A checked policy. `categories` gives each category its queue; rules are tried in their order, each for packets of
    one direction. What no rule takes is of category `other`. `trusted` hosts' DSCP marks are believed.
    """

    name: str
    queues: Mapping[str, Queue]
    port_classes: Mapping[str, PortClass]
    categories: Mapping[str, str]  # category to queue
    rules: tuple[Rule, ...]
    roles: Mapping[Role, tuple[str, ...]] = field(default_factory=lambda: MappingProxyType({}))  # addresses
    default_queue: str = ""
    text: str = ""  # the file as it was written
    trusted: tuple[str, ...] = ()  # addresses and prefixes
    max_entries: int = 10_000  # flow entries that it may cost each switch
    warnings: tuple[Problem, ...] = ()
    lines: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}), compare=False)
    """Where the file has each key, and what stands in it: `queues`, `queues.q0`."""

    def line(self, *keys: str) -> int:
        """That of the first of these keys that the file has, else the file's first."""
        return next((self.lines[key] for key in keys if key in self.lines), 1)


@dataclass(frozen=True)
class Problem:
    """One thing wrong with a policy file; `line` counts from 1."""

    file: str
    line: int
    what: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.what}; {self.remedy}"


class PolicyError(ValueError):
    """A policy that is refused whole, with all that is wrong in it."""

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        super().__init__("\n".join(map(str, problems)))
        self.problems = problems
