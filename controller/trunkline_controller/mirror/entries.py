"""Flow entries that mirror a pipeline: along its tree the client's segments, at each replica's switch its header.

    client --(its segment)--> switch where paths part --(its segment)--------------> first replica
                                      |
                                      +--(marked copy, same header)--> ... --> last switch --(marked, the header of
                                                                                D(j-1) to Dj)--> Dj

A copy is marked by its Ethernet source, which has a prefix that no host may use: copies in transit are told by it from
segments that go to the first replica, what no pipeline has announced is dropped, and a replica's host knows it by it.
The last three bytes are 0 in transit, then the replica's position. All is done in FORWARD, after CLASSIFY: a copy has
the queue and the DSCP of the segment that it is a copy of.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ..flows.entry import Action, FlowEntry, Match, Output, Owner, SetField, Table, cookie
from ..net.topology import Dpid, End, Host, PortNo, Topology
from .tree import Step, Tree

MARK = "02:4d:52"  # locally administered; as MR_MARK of the hosts' program
MARKED = f"{MARK}:00:00:00/ff:ff:ff:00:00:00"
IN_PORT = 0xFFFFFFF8  # OFPP_IN_PORT: a packet leaves by the port that it came in by only where this says so
MAX_REPLICAS = 6  # an entry that makes so many copies over IPv6 is as long as one may be to be read again

_IPV4, _IPV6, _TCP = 0x0800, 0x86DD, 6
_FROM_A_SWITCH, _FROM_ELSEWHERE = 97, 96  # in ADMIT, before all that looks at hosts' packets
_IN_TRANSIT, _NOT_ANNOUNCED, _FROM_THE_CLIENT = 46, 45, 44  # in FORWARD, before ways to hosts


@dataclass(frozen=True, order=True)
class Connection:
    """One direction of a TCP connection; addresses as `ipaddress` writes them."""

    source: str
    source_port: int
    destination: str
    destination_port: int

    @staticmethod
    def of(source: str, source_port: int, destination: str, destination_port: int) -> Connection:
        """From addresses however they are written, IPv4 in IPv6 as well. Raises ValueError."""
        return Connection(address_text(source), source_port, address_text(destination), destination_port)

    @property
    def is_ipv6(self) -> bool:
        return ":" in self.source


def address_text(text: str) -> str:
    """An IP address as `ipaddress` writes it, IPv4 in IPv6 as IPv4. Raises ValueError."""
    found = ipaddress.ip_address(text)
    if isinstance(found, ipaddress.IPv6Address):
        if found.scope_id is not None:
            raise ValueError(f"{text!r} has a zone")
        return str(found.ipv4_mapped or found)
    return str(found)


def entries(tree: Tree, connections: Sequence[Connection], number: int = 0) -> dict[Dpid, FlowEntry]:
    """By switch: `connections` are the client's to the first replica, and each replica's to the next; `number` goes
    into the cookie. Where nothing parts any more, and no header is rewritten, switches forward as ever.
    """
    found: dict[Dpid, FlowEntry] = {}
    needed = _needed(tree)
    for step in tree.steps:
        if step.dpid in needed:
            found[step.dpid] = _entry(step, tree.replicas, connections, number)
    return found


def _needed(tree: Tree) -> set[Dpid]:
    """All switches but those at the end of the first replica's path that only hand on."""
    trunk = [step for step in tree.steps if step.first is not None]
    while trunk and not trunk[-1].parts:
        trunk.pop()
    return {step.dpid for step in (*trunk, *(step for step in tree.steps if step.first is None))}


def _entry(step: Step, replicas: Sequence[Host], connections: Sequence[Connection], number: int) -> FlowEntry:
    def out(port: PortNo) -> Output:
        return Output(IN_PORT if port == step.in_port else port)

    whole = connections[0]
    marked = step.first is None
    does: list[Action] = []
    # In this order, as what is set stays set for the outputs that follow.
    if step.first is not None:
        does.append(out(step.first))
    if step.onward and not marked:
        does.append(SetField("eth_src", _mark(0)))
    does += map(out, step.onward)
    for position, port in step.replicas:
        does += _header(position, replicas[position - 1], connections[position - 1])
        does.append(out(port))
    match = Match(
        in_port=step.in_port,
        eth_src=MARKED if marked else None,
        eth_type=_IPV6 if whole.is_ipv6 else _IPV4,
        ip_proto=_TCP,
        ip_src=whole.source,
        ip_dst=whole.destination,
        l4_src=whole.source_port,
        l4_dst=whole.destination_port,
    )
    priority = _IN_TRANSIT if marked else _FROM_THE_CLIENT
    return FlowEntry(Table.FORWARD, priority, match, tuple(does), None, cookie(Owner.MIRROR, number))


def _mark(position: int) -> str:
    return f"{MARK}:00:00:{position:02x}"


def _header(position: int, host: Host, hop: Connection) -> Iterator[SetField]:
    family = "ipv6" if hop.is_ipv6 else "ipv4"
    yield SetField("eth_src", _mark(position))
    yield SetField("eth_dst", host.mac)
    yield SetField(f"{family}_src", hop.source)
    yield SetField(f"{family}_dst", hop.destination)
    yield SetField("tcp_src", hop.source_port)
    yield SetField("tcp_dst", hop.destination_port)


def guard(topology: Topology) -> dict[Dpid, frozenset[FlowEntry]]:
    """What keeps marks true, by switch: only another switch may send a marked packet, and only what a pipeline has
    announced goes on.
    """
    ours = cookie(Owner.MIRROR)
    marked = Match(eth_src=MARKED)
    dropped = {
        FlowEntry(Table.ADMIT, _FROM_ELSEWHERE, marked, (), None, ours),
        FlowEntry(Table.FORWARD, _NOT_ANNOUNCED, marked, (), None, ours),
    }
    ends: dict[Dpid, list[End]] = {dpid: [] for dpid in topology.switches}
    for link in topology.links:
        for end in (link.a, link.b):
            if end.dpid in ends:
                ends[end.dpid].append(end)
    return {
        dpid: frozenset(dropped | {_admitted(end.port, ours) for end in of_switch}) for dpid, of_switch in ends.items()
    }


def _admitted(port: PortNo, ours: int) -> FlowEntry:
    match = Match(in_port=port, eth_src=MARKED)
    return FlowEntry(Table.ADMIT, _FROM_A_SWITCH, match, (), Table.SOURCE_ROLES, ours)
