"""What the flow entries of mirrors mean to a Linux bridge, whose own program makes copies and hands nothing on: which
segments it copies, into what, and from which ports it takes marked frames.

The client's own segments are left to the bridge. It forwards along a tree, so they pass where `tree` has them pass.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ..flows.entry import FlowEntry, Output, SetField, Table
from ..net.topology import Mac, PortNo
from .entries import IN_PORT, MARKED, Connection

MAX_COPIES = 5  # to all replicas of a pipeline but the first; as MR_SW_COPIES of the program


@dataclass(frozen=True, order=True)
class Segments:
    """Those of a connection that come in at a port: the client's own, or marked ones, in transit."""

    port: PortNo
    marked: bool
    connection: Connection


@dataclass(frozen=True)
class Copy:
    """A copy that leaves by a port. With position 0 it stays in transit, with the header that it has; else it has that
    of `connection`, and goes to the replica's host.
    """

    port: PortNo
    position: int = 0
    to: Mac | None = None
    connection: Connection | None = None


@dataclass(frozen=True)
class Copies:
    """What is made of some segments, those in transit first."""

    of: Segments
    copies: tuple[Copy, ...]


def copies(entry: FlowEntry) -> Copies | None:
    """None where the entry has a bridge copy nothing."""
    match = entry.match
    if entry.table is not Table.FORWARD or match.in_port is None or match.ip_src is None or match.ip_dst is None:
        return None
    whole = Connection(match.ip_src, match.l4_src or 0, match.ip_dst, match.l4_dst or 0)
    of = Segments(PortNo(match.in_port), match.eth_src == MARKED, whole)
    made = []
    header: dict[str, int | str] = {}
    for action in entry.actions:
        if isinstance(action, SetField):
            header[action.field] = action.value
        elif isinstance(action, Output) and (of.marked or header):
            made.append(_copy(of.port if action.port == IN_PORT else PortNo(action.port), header))
    return Copies(of, tuple(made)) if made else None


def _copy(port: PortNo, header: dict[str, int | str]) -> Copy:
    if "eth_dst" not in header:
        return Copy(port)
    family = "ipv6" if "ipv6_src" in header else "ipv4"
    hop = Connection(
        str(header[f"{family}_src"]),
        int(header["tcp_src"]),
        str(header[f"{family}_dst"]),
        int(header["tcp_dst"]),
    )
    position = int(str(header["eth_src"]).rpartition(":")[2], 16)
    return Copy(port, position, Mac(str(header["eth_dst"])), hop)


def admitted(entries: Iterable[FlowEntry]) -> frozenset[PortNo]:
    """Ports toward other mirroring switches, from which marked frames are taken."""
    return frozenset(
        PortNo(entry.match.in_port)
        for entry in entries
        if entry.table is Table.ADMIT and entry.match.eth_src == MARKED and entry.match.in_port is not None
    )
