"""Where the hosts of pipelines are: from connections to the tree that their segments take."""

from __future__ import annotations

import ipaddress
import zlib
from dataclasses import dataclass, field

from ..flows.entry import FlowEntry
from ..net.topology import Dpid, Host, Topology
from .entries import Connection, guard
from .model import Pipeline, Refused, Why
from .tree import NoTree, Paths, Tree


@dataclass
class Places:
    """The network as pipelines need it. `most_unknown`: addresses of no known host that are remembered at once."""

    most_unknown: int
    guard: dict[Dpid, frozenset[FlowEntry]] = field(default_factory=dict)
    _topology: Topology | None = None
    _paths: Paths | None = None
    _hosts: dict[str, Host] = field(default_factory=dict)
    _unknown: set[str] = field(default_factory=set)

    def network(self, topology: Topology) -> bool:
        """It is now so; whether that may change trees. `guard` is then what keeps marks true, by switch."""
        if topology is self._topology:
            return False
        before, self._topology = self._topology, topology
        if before is None or (before.switches.keys(), before.links) != (topology.switches.keys(), topology.links):
            self._paths = Paths(topology)
            self.guard = guard(topology)
        elif before.hosts == topology.hosts:
            return False
        self._hosts = {address: host for host in topology.hosts.values() for address in host.addresses}
        return True

    def take_unknown(self) -> frozenset[str]:
        """Addresses of no known host that pipelines had, since it was last called."""
        unknown, self._unknown = self._unknown, set()
        return frozenset(unknown)

    def tree(self, pipeline: Pipeline) -> tuple[Tree, tuple[Connection, ...]]:
        """And the connections that are mirrored along it: without the first where it never leaves its host. All hops
        must be known. Raises Refused.
        """
        hops = [pipeline.hops[position] for position in range(1, pipeline.replicas + 1)]
        client: Host | None = None
        if not _is_within_a_host(hops[0]):
            client = self._host(hops[0].source)
        hosts = [self._host(hop.destination) for hop in hops[1:]]
        first = self._host(hops[1].source if client is None else hops[0].destination)
        replicas = [first, *hosts]
        for position, hop in enumerate(hops[1:], 1):
            if self._host(hop.source).mac != replicas[position - 1].mac:
                raise Refused(
                    Why.BROKEN_CHAIN,
                    f"hop {position + 1} comes from {hop.source}, which is not the host that hop {position} leads to, "
                    f"{hops[position - 1].destination}",
                )
        if len({host.mac for host in replicas}) < len(replicas):
            raise Refused(Why.SAME_HOST, "two replicas are on one host")
        if client is None or client.mac == first.mac:
            client, replicas, hops = first, replicas[1:], hops[1:]
            if len(replicas) == 1:
                raise Refused(Why.ONE_REPLICA, "only one replica is on another host than the client")
        if len({hop.is_ipv6 for hop in hops}) > 1:
            raise Refused(Why.MIXED_VERSIONS, "some of its connections are IPv4 and some IPv6")
        if self._paths is None:
            raise Refused(Why.NO_PATH, "no switch is connected")
        try:
            return self._paths.tree(client, replicas, number(pipeline)), tuple(hops)
        except NoTree as error:
            raise Refused(Why.NO_PATH, str(error)) from error

    def _host(self, address: str) -> Host:
        try:
            return self._hosts[address]
        except KeyError:
            if len(self._unknown) < self.most_unknown:
                self._unknown.add(address)
            raise Refused(Why.UNKNOWN_HOST, f"no host with address {address} is known at any switch") from None


def _is_within_a_host(connection: Connection) -> bool:
    return connection.source == connection.destination or ipaddress.ip_address(connection.destination).is_loopback


def number(pipeline: Pipeline) -> int:
    return number_of(pipeline.id)


def number_of(identity: str) -> int:
    """Of a pipeline's name alone, so that another controller finds its entries the same."""
    return zlib.crc32(identity.encode())
