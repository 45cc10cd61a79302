"""What each switch should have: from the topology, and from what policy and lifts say of classes of packets.

A host's packets are sent to its port by its own switch; the others send them to a group that stands for that switch, so
that entries by host are the same on all switches and a link that comes or goes changes groups alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ..net.paths import flood_tree, neighbours, next_hops
from ..net.topology import Dpid, End, Host, Mac, Topology
from .entry import CONTROLLER, FlowEntry, Match, Output, Owner, SelectGroup, Table, Tables, ToGroup, cookie

LLDP, ARP, IPV6 = 0x88CC, 0x0806, 0x86DD
ICMPV6 = 58
NEIGHBOUR_SOLICITATION, NEIGHBOUR_ADVERTISEMENT = 135, 136
BROADCAST = "ff:ff:ff:ff:ff:ff"
MULTICAST = "01:00:00:00:00:00/01:00:00:00:00:00"
BRIDGES_OWN = "01:80:c2:00:00:00/ff:ff:ff:ff:ff:f0"  # IEEE 802.1Q table 8-1: never forwarded
NEAREST_BRIDGE = "01:80:c2:00:00:0e"
CONTROLLER_MAC = Mac("02:74:72:6c:00:01")  # locally administered; hosts are asked from it

GROUPS = 0x74 << 24  # groups carry no cookie; ours are told by their numbers
GROUPS_MASK = 0xFF << 24

HEAD = 128  # bytes of a packet that tell who sent it


def group_numbers(dpids: Iterable[Dpid]) -> dict[Dpid, int]:
    """A group's number for each switch: its datapath id where that is short and nobody else's."""
    numbers: dict[Dpid, int] = {}
    taken: set[int] = set()
    for dpid in sorted(dpids):
        number = dpid & 0xFFFFFF
        while number in taken:
            number = (number + 1) & 0xFFFFFF
        taken.add(number)
        numbers[dpid] = GROUPS | number
    return numbers


def is_ours(group: int) -> bool:
    return group & GROUPS_MASK == GROUPS


def host_of(entry: FlowEntry) -> tuple[Mac, int] | None:
    """The host that an entry of `Desired` sends to by a port of its own switch, and the port."""
    match = entry.match
    if entry.table is not Table.FORWARD or match.eth_dst is None or match != Match(eth_dst=match.eth_dst):
        return None
    if entry.priority != _TO_HOST or len(entry.actions) != 1 or not isinstance(entry.actions[0], Output):
        return None
    return Mac(match.eth_dst), entry.actions[0].port


_FLOOD, _NO_FLOOD, _TO_HOST = 10, 20, 30


def _admit() -> frozenset[FlowEntry]:
    """What is the same on each switch: the controller's own packets, and ways from table to table."""
    ours, onward = cookie(Owner.ADMIT), Table(Table.ADMIT + 1)
    asks, looks = (Output(CONTROLLER),), (Output(CONTROLLER, HEAD),)

    def admit(priority: int, match: Match, actions: tuple[Output, ...] = (), goto: Table | None = None) -> FlowEntry:
        return FlowEntry(Table.ADMIT, priority, match, actions, goto, ours)

    entries = [
        admit(100, Match(eth_dst=NEAREST_BRIDGE, eth_type=LLDP), asks),
        admit(95, Match(eth_dst=BRIDGES_OWN)),
        admit(90, Match(eth_dst=CONTROLLER_MAC), asks),
        admit(80, Match(eth_dst=BROADCAST, eth_type=ARP), asks),
        # Answers and renewals go straight to their host, also while no controller is there; it only looks on.
        admit(70, Match(eth_type=ARP), looks, onward),
        *(
            admit(70, Match(eth_type=IPV6, ip_proto=ICMPV6, icmpv6_type=kind), looks, onward)
            for kind in (NEIGHBOUR_SOLICITATION, NEIGHBOUR_ADVERTISEMENT)
        ),
        FlowEntry(Table.FORWARD, 0, Match(), asks, None, cookie(Owner.FORWARD)),
    ]
    entries += [
        FlowEntry(table, 0, Match(), (), Table(table + 1), ours) for table in Table if table is not Table.FORWARD
    ]
    return frozenset(entries)


class Desired:
    """Keeps entries from one call to the next, so that what stays the same is the same object."""

    def __init__(self) -> None:
        self._admit = _admit()
        self._local: dict[tuple[Mac, End], FlowEntry] = {}
        self._remote: dict[tuple[Mac, int], FlowEntry] = {}
        self._topology: Topology | None = None
        self._network: tuple[object, ...] = ()
        self._paths: dict[Dpid, tuple[frozenset[FlowEntry], Mapping[int, SelectGroup]]] = {}
        self._forward: dict[Dpid, Tables] = {}

    def tables(self, topology: Topology, classify: frozenset[FlowEntry] = frozenset()) -> dict[Dpid, Tables]:
        """By switch. An entry of `classify` goes before one of this module's with the same key."""
        if topology is not self._topology:
            self._forward = self._forwarding(topology)
            self._topology = topology
        taken = {entry.key for entry in classify}
        replaced = frozenset(entry for entry in self._admit if entry.key in taken)
        fixed = (self._admit - replaced) | classify
        return {dpid: Tables(tables.flows | fixed, tables.groups) for dpid, tables in self._forward.items()}

    def _forwarding(self, topology: Topology) -> dict[Dpid, Tables]:
        network = (frozenset(topology.switches), topology.links, topology.edges)
        if network != self._network:
            self._paths = _paths(topology)
            self._network = network
        numbers = group_numbers(topology.switches)
        at: dict[Dpid, list[Host]] = {dpid: [] for dpid in topology.switches}
        for host in topology.hosts.values():
            at[host.at.dpid].append(host)
        local, remote = self._local, self._remote
        self._local, self._remote = {}, {}
        own: dict[Dpid, frozenset[FlowEntry]] = {}
        others: dict[Dpid, frozenset[FlowEntry]] = {}
        for dpid, hosts in at.items():
            for host in hosts:
                here, there = (host.mac, host.at), (host.mac, numbers[dpid])
                self._local[here] = local.get(here) or _to_host(host.mac, Output(host.at.port))
                self._remote[there] = remote.get(there) or _to_host(host.mac, ToGroup(numbers[dpid]))
            own[dpid] = frozenset(self._local[host.mac, host.at] for host in hosts)
            others[dpid] = frozenset(self._remote[host.mac, numbers[dpid]] for host in hosts)
        everyone = frozenset().union(*others.values())
        tables = {}
        for dpid, (floods, groups) in self._paths.items():
            unreachable = (others[far] for far in others if far == dpid or numbers[far] not in groups)
            tables[dpid] = Tables(everyone.difference(*unreachable) | own[dpid] | floods, groups)
        return tables


def _to_host(mac: Mac, action: Output | ToGroup) -> FlowEntry:
    return FlowEntry(Table.FORWARD, _TO_HOST, Match(eth_dst=mac), (action,), None, cookie(Owner.FORWARD))


def _paths(topology: Topology) -> dict[Dpid, tuple[frozenset[FlowEntry], Mapping[int, SelectGroup]]]:
    """By switch: entries that flood along the tree, and a group toward each other switch that can be reached."""
    graph, tree, numbers = neighbours(topology), flood_tree(topology), group_numbers(topology.switches)
    groups: dict[Dpid, dict[int, SelectGroup]] = {dpid: {} for dpid in topology.switches}
    for to, number in numbers.items():
        made: dict[tuple[int, ...], SelectGroup] = {}
        for dpid, ports in next_hops(graph, to).items():
            groups[dpid][number] = made.setdefault(ports, SelectGroup(number, ports))
    ports: dict[Dpid, list[int]] = {dpid: [] for dpid in topology.switches}
    off_tree: dict[Dpid, list[int]] = {dpid: [] for dpid in topology.switches}
    for end in topology.edges:
        ports[end.dpid].append(end.port)
    for link in topology.links:
        for end in (link.a, link.b):
            (ports if link in tree else off_tree)[end.dpid].append(end.port)
    ours = cookie(Owner.FORWARD)
    result = {}
    for dpid in topology.switches:
        outputs = tuple(Output(port) for port in sorted(ports[dpid]))
        floods = [FlowEntry(Table.FORWARD, _FLOOD, Match(eth_dst=MULTICAST), outputs, None, ours)]
        # The neighbour does not send there either, but for a moment it may have another tree.
        floods += [
            FlowEntry(Table.FORWARD, _NO_FLOOD, Match(in_port=port, eth_dst=MULTICAST), (), None, ours)
            for port in sorted(off_tree[dpid])
        ]
        result[dpid] = frozenset(floods), groups[dpid]
    return result
