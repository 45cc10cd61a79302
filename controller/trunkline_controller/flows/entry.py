"""Flow entries and groups as values, without any library's classes; `openflow.messages` puts them on the wire.

One table after the other: ADMIT takes what is the controller's own (LLDP, ARP) and hands on to SOURCE_ROLES;
SOURCE_ROLES and DESTINATION_ROLES write into the packet's metadata what its hosts do in the cluster (so that rules by
role cost as many entries as there are hosts, not pairs of hosts); CLASSIFY gives a packet its queue or mark and never
decides where it goes; FORWARD decides where it goes, mirrored copies with their headers too, and nothing else. Cookies
tell whose an entry is, so that entries which somebody else made are left alone and a restarted controller knows its own
again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from functools import cached_property
from types import MappingProxyType


class Table(IntEnum):
    """The pipeline."""

    ADMIT = 0
    SOURCE_ROLES = 1
    DESTINATION_ROLES = 2
    CLASSIFY = 3
    FORWARD = 4


class Owner(IntEnum):
    """Bits 32 to 47 of a cookie: which part of the controller an entry serves."""

    ADMIT = 1
    POLICY = 2
    LIFT = 3  # a straggling reducer's
    FORWARD = 4
    PROBE = 5
    MIRROR = 6
    LEASE = 7  # says which controller is master


COOKIE = 0x7472 << 48  # "tr"
COOKIE_MASK = 0xFFFF << 48


def cookie(owner: Owner, number: int = 0) -> int:
    """A cookie; `number` is the owner's own 32 bits, such as which category."""
    return COOKIE | owner << 32 | number & 0xFFFFFFFF


def owner_name(of_cookie: int) -> str:
    """Which part of the controller an entry with this cookie serves, in lower case; "other" where it is not ours."""
    try:
        return Owner(of_cookie >> 32 & 0xFFFF).name.lower() if of_cookie & COOKIE_MASK == COOKIE else "other"
    except ValueError:
        return "other"


@dataclass(frozen=True)
class Match:
    """OXM fields, named and written as OpenFlow 1.3 does; None matches all.

    IP addresses may carry a prefix length, MAC addresses a mask after a slash. `l4_src` and `l4_dst` are ports of the
    protocol in `ip_proto`.
    """

    in_port: int | None = None
    eth_dst: str | None = None
    eth_src: str | None = None
    eth_type: int | None = None
    ip_proto: int | None = None
    ip_dscp: int | None = None
    ip_src: str | None = None  # IPv4 or IPv6, as `eth_type` says
    ip_dst: str | None = None
    l4_src: int | None = None
    l4_dst: int | None = None
    metadata: int | None = None  # as `metadata_mask` leaves it
    metadata_mask: int | None = None
    icmpv6_type: int | None = None

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        """Kept, as tables are compared after each change."""
        return hash(tuple(self.__dict__[name] for name in self.__match_args__))


CONTROLLER = 0xFFFFFFFD  # OFPP_CONTROLLER


@dataclass(frozen=True)
class Output:
    port: int
    max_len: int = 0xFFFF  # bytes, toward the controller alone


@dataclass(frozen=True)
class ToGroup:
    group: int


@dataclass(frozen=True)
class SetQueue:
    queue: int


@dataclass(frozen=True)
class SetField:
    """`field` is an OXM name as os-ken writes it: ip_dscp, eth_src, ipv4_dst, tcp_dst …"""

    field: str
    value: int | str


Action = Output | ToGroup | SetQueue | SetField


@dataclass(frozen=True)
class FlowEntry:
    """An entry; (table, priority, match) tells it from others. No actions and no `goto` drop the packet.

    `write_metadata` is OpenFlow's instruction: a value and the mask of the bits that it sets.
    """

    table: Table
    priority: int
    match: Match
    actions: tuple[Action, ...] = ()
    goto: Table | None = None
    cookie: int = 0
    idle_timeout_s: int = 0
    write_metadata: tuple[int, int] | None = None

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        """Kept: one entry is in the tables of hundreds of switches."""
        return hash((self.table, self.priority, self.match, self.actions, self.cookie))

    @cached_property
    def key(self) -> tuple[int, int, Match]:
        return self.table, self.priority, self.match


@dataclass(frozen=True)
class SelectGroup:
    """Each flow takes one of `ports`, all alike (ECMP): type SELECT, or INDIRECT where there is but one."""

    number: int
    ports: tuple[int, ...]


@dataclass(frozen=True)
class Tables:
    """Everything that a switch has, or should have, of ours."""

    flows: frozenset[FlowEntry] = frozenset()
    groups: Mapping[int, SelectGroup] = field(default_factory=lambda: MappingProxyType({}))
