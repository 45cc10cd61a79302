"""Switches, ports, links and hosts as they are known at one moment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NewType

Dpid = NewType("Dpid", int)  # datapath id, 64 bits
PortNo = NewType("PortNo", int)
Mac = NewType("Mac", str)  # six lower-case pairs of hex digits with colons


def dpid_text(dpid: Dpid) -> str:
    """A datapath id as Open vSwitch writes it: 16 hex digits."""
    return f"{dpid:016x}"


@dataclass(frozen=True, order=True)
class End:
    """A port of a switch."""

    dpid: Dpid
    port: PortNo


@dataclass(frozen=True)
class Port:
    """A port as its switch describes it. `speed_bit_s` is 0 where the switch does not say."""

    number: PortNo
    name: str
    mac: Mac
    up: bool = True
    speed_bit_s: int = 0


@dataclass(frozen=True)
class Switch:
    """A connected switch. `name` is for people: the datapath's description, or its bridge port's name."""

    dpid: Dpid
    name: str
    ports: Mapping[PortNo, Port] = field(default_factory=lambda: MappingProxyType({}))
    version: int = 4  # OpenFlow wire version: 4 is 1.3, 6 is 1.5; 0 of a Linux bridge


@dataclass(frozen=True, order=True)
class Link:
    """A cable between two switches; `a` is the smaller end."""

    a: End
    b: End

    @staticmethod
    def between(one: End, other: End) -> Link:
        return Link(*sorted((one, other)))

    def far(self, dpid: Dpid) -> End:
        """The end that is not at `dpid`."""
        return self.b if self.a.dpid == dpid else self.a

    def near(self, dpid: Dpid) -> End:
        """The end at `dpid`."""
        return self.a if self.a.dpid == dpid else self.b


@dataclass(frozen=True)
class Host:
    """A machine at a switch's port, and the IP addresses it was seen with."""

    mac: Mac
    at: End
    addresses: tuple[str, ...] = ()


@dataclass(frozen=True)
class Topology:
    """All that is known of the network; a change makes a new one.

    `edges` are ports that are known to lead to no other switch of ours: hosts are behind them, or nothing. A port that
    is neither there nor the end of a link is down, or not yet known.
    """

    switches: Mapping[Dpid, Switch] = field(default_factory=lambda: MappingProxyType({}))
    links: frozenset[Link] = frozenset()
    hosts: Mapping[Mac, Host] = field(default_factory=lambda: MappingProxyType({}))
    edges: frozenset[End] = frozenset()

    def link_ends(self) -> dict[End, End]:
        """Each end of a link, and the one that it leads to."""
        return {one: other for link in self.links for one, other in ((link.a, link.b), (link.b, link.a))}
