"""Bytes over every link, each way, as the kernel's shapers count them: with all headers, retransmissions included."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..hostbytes import LinkBytes
from . import kernel
from .fabric import Fabric, interface
from .kernel import Count
from .topology import Topology


@dataclass
class LinkCounts:
    """Counts by (from, to); nodes that are joined by a link."""

    topology: Topology
    by_way: dict[tuple[str, str], Count] = field(default_factory=dict)

    def __sub__(self, earlier: LinkCounts) -> LinkCounts:
        return LinkCounts(
            self.topology, {way: count - earlier.by_way.get(way, Count()) for way, count in self.by_way.items()}
        )

    def out(self, node: str) -> int:
        """Bytes that left a node."""
        return sum(count.sent_bytes for (start, _), count in self.by_way.items() if start == node)

    def into(self, node: str) -> int:
        """Bytes sent toward a node."""
        return sum(count.sent_bytes for (_, end), count in self.by_way.items() if end == node)

    def both(self, node: str) -> int:
        """Bytes out of and into a node."""
        return self.out(node) + self.into(node)

    def total(self) -> int:
        """Bytes over all links and both ways; what crosses three links counts three times."""
        return sum(count.sent_bytes for count in self.by_way.values())

    def core(self) -> int:
        """The same of links between routers or switches alone."""
        hosts = set(self.topology.hosts)
        return sum(count.sent_bytes for way, count in self.by_way.items() if not hosts & set(way))

    def drops(self) -> int:
        """Packets that found a queue full."""
        return sum(count.drops for count in self.by_way.values())

    def of_hosts(self) -> LinkBytes:
        """The hosts' links alone, by host."""
        hosts = self.topology.hosts
        return LinkBytes({host: self.out(host) for host in hosts}, {host: self.into(host) for host in hosts})

    def as_json(self) -> list[dict[str, object]]:
        """A row for each way of each link."""
        return [
            {"from": start, "to": end, "bytes": count.sent_bytes, "packets": count.packets, "drops": count.drops}
            for (start, end), count in self.by_way.items()
        ]


class LinkMeter:
    """Reads the counters of a fabric that is up; keeps a netlink socket in each namespace until `close`."""

    def __init__(self, fabric: Fabric, topology: Topology) -> None:
        self._topology = topology
        self._spaces = {node: kernel.Namespace(fabric.namespace(node)) for node in topology.nodes}

    def close(self) -> None:
        for space in self._spaces.values():
            space.close()

    def read(self) -> LinkCounts:
        """The counts now."""
        counts = {node: space.counts() for node, space in self._spaces.items()}
        return LinkCounts(
            self._topology,
            {
                (node, link.other(node)): counts[node][interface(self._topology, node, link)]
                for link in self._topology.links
                for node in link.ends
            },
        )
