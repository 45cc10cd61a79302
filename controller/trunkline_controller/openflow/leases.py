"""Which of several controllers is master: the one that came first, as the switches themselves tell.

OpenFlow lets a controller take the role of master, but not ask whether there is another. So a master keeps a flow entry
on each switch that matches no packet, names it, and times out by itself if it is not renewed: its lease. Who finds the
lease of a controller that started earlier stands by, as slave, until there is none.

           no lease of a senior
    NONE ------------------------> MASTER
      |                             |  ^
      | a senior's lease            |  | no lease of a senior any more
      v                             v  |
    STANDBY <-----------------------   |
      |      a senior's lease          |
      +--------------------------------+

Pure: flow entries in, a decision out.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from ..flows.entry import FlowEntry, Match, Owner, Table, cookie

_ETH_TYPE = 0x88B5  # IEEE 802: for local experiments
_NOBODY = "02:74:72:6c:00:02"


class Role(StrEnum):
    NONE = "none"
    MASTER = "master"
    STANDBY = "standby"


@dataclass(frozen=True, order=True)
class Lease:
    """Of two, the smaller is the senior: it started earlier. `identity` is a MAC address of the controller's own."""

    started: int  # Unix time, seconds, 32 bits
    identity: str

    def entry(self) -> FlowEntry:
        match = Match(eth_src=self.identity, eth_dst=_NOBODY, eth_type=_ETH_TYPE)
        return FlowEntry(Table.ADMIT, 1, match, (), None, cookie(Owner.LEASE, self.started))

    @staticmethod
    def of(entry: FlowEntry) -> Lease | None:
        match = entry.match
        if match.eth_type != _ETH_TYPE or match.eth_dst != _NOBODY or match.eth_src is None:
            return None
        return Lease(entry.cookie & 0xFFFFFFFF, match.eth_src)


def new_identity() -> str:
    """A locally administered MAC address that no other controller has."""
    return (b"\x02" + secrets.token_bytes(5)).hex(":")


def senior(own: Lease, found: Iterable[Lease]) -> Lease | None:
    """The controller that goes before `own`, if there is one. A lease of its own identity is an earlier life's."""
    return min((lease for lease in found if lease.identity != own.identity and lease < own), default=None)
