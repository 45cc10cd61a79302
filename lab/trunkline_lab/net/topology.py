"""What a data centre consists of: hosts in racks, routers and switches, links with rates and queues, who does what.

Each host hangs on a router or a switch. Routers and plain switches are bridges without a spanning-tree protocol, so
that a topology is a tree but for its OpenFlow switches: among those there may be several ways. They and their
controller have a management network beside the links, and so have bridges that mirror. `topology_file` reads it.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

CONTROLLER = "controller"  # the node that an OpenFlow controller runs on; only in the management network
MANAGEMENT = ipaddress.IPv4Network("172.31.77.0/24")
RESERVED = (CONTROLLER, "lo", "mgmt0", "ovs-netdev")  # names of a network with a controller that nodes can't have


class TopologyError(ValueError):
    """A topology file that can't be built; says where and how to mend it."""


@dataclass(frozen=True)
class LinkShape:
    """How fast a link is each way, and how much waits for it in the router or switch at its end."""

    rate_bit_s: int = 10**9
    queue_bytes: int = 256 << 10
    mtu: int = 1500


@dataclass(frozen=True)
class Link:
    """A cable between two nodes. `ends` are in the order of the file."""

    ends: tuple[str, str]
    shape: LinkShape

    @property
    def name(self) -> str:
        return "-".join(self.ends)

    def other(self, node: str) -> str:
        """The node at the far end."""
        return self.ends[1] if node == self.ends[0] else self.ends[0]


@dataclass(frozen=True)
class Roles:
    """Which hosts run what. A host may have several roles; without a `resourcemanager` there is no YARN."""

    namenode: str = ""
    datanodes: tuple[str, ...] = ()
    clients: tuple[str, ...] = ()
    resourcemanager: str = ""
    nodemanagers: tuple[str, ...] = ()
    historyserver: str = ""


@dataclass(frozen=True)
class Topology:
    """A checked topology. Addresses are of one subnet, in the order hosts, routers, switches; `openflow` are those of
    the switches that speak OpenFlow, in the order of the file. `bridges_mirror`: a controller has bridges mirror."""

    name: str
    about: str
    hosts: tuple[str, ...]
    routers: tuple[str, ...]
    switches: tuple[str, ...]
    links: tuple[Link, ...]
    racks: dict[str, str]  # host to rack
    roles: Roles
    network: ipaddress.IPv4Network
    _addresses: dict[str, str] = field(default_factory=dict)
    openflow: tuple[str, ...] = ()
    bridges_mirror: bool = False

    @property
    def nodes(self) -> tuple[str, ...]:
        return (*self.hosts, *self.routers, *self.switches)

    @property
    def bridges(self) -> tuple[str, ...]:
        """Routers and switches that the kernel bridges."""
        return tuple(node for node in (*self.routers, *self.switches) if node not in self.openflow)

    @property
    def controlled(self) -> tuple[str, ...]:
        """Switches of a controller; without any there is none."""
        return self.bridges if self.bridges_mirror else self.openflow

    @property
    def management(self) -> dict[str, str]:
        """Addresses in the management network, by node; empty where there is no controller.

        Beside the controller and its switches those hosts are in it that a controller asks about jobs, and those of
        DataNodes, which tell it of pipelines.
        """
        if not self.controlled:
            return {}
        roles = self.roles
        asked = dict.fromkeys(host for host in (roles.resourcemanager, roles.historyserver, *roles.datanodes) if host)
        return dict(zip((CONTROLLER, *self.controlled, *asked), map(str, MANAGEMENT.hosts()), strict=False))

    def address(self, node: str) -> str:
        """The IPv4 address of a host, router or switch; of one that speaks OpenFlow, that in the management network."""
        return self.management[node] if node in self.openflow else self._addresses[node]

    def dpid(self, switch: str) -> int:
        """The datapath id of an OpenFlow switch: 1 for the first of the file."""
        return self.openflow.index(switch) + 1

    def port(self, switch: str, link: Link) -> int:
        """The OpenFlow port number of a link's end at a switch: 1 for the first of its links."""
        return self.links_of(switch).index(link) + 1

    def links_of(self, node: str) -> list[Link]:
        """The links that end at a node."""
        return [link for link in self.links if node in link.ends]

    def path(self, start: str, end: str) -> list[Link]:
        """The links from one node to another, in order: the shortest way.

        Of several as short, the one whose links stand first in the file; a controller may take another.
        """
        before: dict[str, Link | None] = {start: None}
        queue = [start]
        for node in queue:
            for link in self.links_of(node):
                if (far := link.other(node)) not in before:
                    before[far] = link
                    queue.append(far)
        found, node = [], end
        while (link := before[node]) is not None:
            found.append(link)
            node = link.other(node)
        return found[::-1]

    def tree(self, source: str, targets: list[str]) -> set[tuple[str, str]]:
        """The (from, to) link directions that a packet from `source` takes to all of `targets`, each counted once."""
        used = set()
        for target in targets:
            node = source
            for link in self.path(source, target):
                used.add((node, link.other(node)))
                node = link.other(node)
        return used

    def router_of(self, node: str) -> str | None:
        """The nearest router of a node, itself not counted; None where there is none."""
        others = [router for router in self.routers if router != node]
        return min(others, key=lambda router: len(self.path(node, router)), default=None)

    def with_roles(self, roles: Roles) -> Topology:
        """The same with other roles, checked."""
        changed = replace(self, roles=roles)
        check_roles(changed, self.name)
        return changed

    def mirrored(self) -> Topology:
        """The same for mirrored replication: by its OpenFlow switches, or by its bridges where it has no others."""
        if self.openflow and self.bridges:
            raise TopologyError(
                f"{self.name}: the plane mirror needs switches of one kind: all with openflow = true, or none"
            )
        if self.openflow:
            return self
        check_management(self.nodes, self.network, self.name)
        return replace(self, bridges_mirror=True)

    def with_rates(self, hosts_bit_s: int, core_bit_s: int) -> Topology:
        """The same with hosts' links at one rate and those between routers or switches at another."""
        hosts = set(self.hosts)
        links = tuple(
            replace(link, shape=replace(link.shape, rate_bit_s=hosts_bit_s if hosts & set(link.ends) else core_bit_s))
            for link in self.links
        )
        return replace(self, links=links)


def check_management(nodes: Iterable[str], network: ipaddress.IPv4Network, where: str) -> None:
    """A controller has room beside these nodes; `where` is what errors name."""
    if taken := [node for node in nodes if node in RESERVED]:
        raise TopologyError(f"{where}: {taken[0]!r} is a name that the lab needs beside a controller; take another")
    if network.overlaps(MANAGEMENT):
        raise TopologyError(f"{where}: subnet {network} overlaps {MANAGEMENT}, the management network of the switches")


def check_roles(topology: Topology, where: str) -> None:
    """Every role is on a host that there is; `where` is what errors name."""
    roles = topology.roles
    for what, names in (
        ("namenode", (roles.namenode,) if roles.namenode else ()),
        ("datanodes", roles.datanodes),
        ("clients", roles.clients),
        ("resourcemanager", (roles.resourcemanager,) if roles.resourcemanager else ()),
        ("nodemanagers", roles.nodemanagers),
        ("historyserver", (roles.historyserver,) if roles.historyserver else ()),
    ):
        for host in names:
            if host not in topology.hosts:
                raise TopologyError(f"{where}: [roles] {what}: {host!r} is no host of this topology")
        if len(set(names)) != len(names):
            raise TopologyError(f"{where}: [roles] {what}: a host stands there twice")
    if roles.datanodes and not roles.namenode:
        raise TopologyError(f"{where}: [roles]: DataNodes need a namenode")
    if bool(roles.resourcemanager) != bool(roles.nodemanagers) or (roles.historyserver and not roles.resourcemanager):
        raise TopologyError(
            f"{where}: [roles]: YARN needs a resourcemanager and nodemanagers; a historyserver needs both"
        )
    if roles.resourcemanager and not roles.datanodes:
        raise TopologyError(f"{where}: [roles]: YARN needs a namenode and datanodes, where its jobs keep their files")
