"""The lab's meter: links by the kernel's shapers, and categories by its sockets, read together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from ..hostbytes import LinkBytes
from . import flows
from .fabric import Fabric
from .flows import Flow, FlowMeter
from .links import LinkCounts, LinkMeter
from .topology import Topology


@dataclass
class LabBytes(LinkBytes):
    """Bytes over the hosts' links with all headers; `links` has every link, `flows` the payload by category."""

    links: LinkCounts = field(kw_only=True)
    flows: dict[tuple[str, str, str], Flow] = field(kw_only=True)

    def __sub__(self, earlier: LinkBytes) -> LabBytes:
        assert isinstance(earlier, LabBytes)
        hosts = super().__sub__(earlier)
        added = {(f.start, f.end, f.category): f for f in flows.less(self.flows, earlier.flows)}
        return LabBytes(hosts.out, hosts.into, links=self.links - earlier.links, flows=added)


class LabMeter:
    """Counts until `close`; `processes` gives (pid, owner) of those alive now."""

    def __init__(self, fabric: Fabric, topology: Topology, processes: Callable[[], list[tuple[int, str]]]) -> None:
        roles = topology.roles
        daemons = (roles.namenode, *roles.datanodes, roles.resourcemanager, *roles.nodemanagers, roles.historyserver)
        busy = dict.fromkeys((*daemons, *roles.clients, *topology.routers))
        self._links = LinkMeter(fabric, topology)
        self._flows = FlowMeter(fabric, topology, [node for node in busy if node], processes)

    def close(self) -> None:
        self._flows.close()
        self._links.close()

    @property
    def overruns(self) -> int:
        """Times the kernel had to drop word of ended sockets; categories are then too low."""
        return self._flows.overruns

    def read(self) -> LabBytes:
        """The counts now."""
        found, links = self._flows.read(), self._links.read()
        hosts = links.of_hosts()
        return LabBytes(hosts.out, hosts.into, links=links, flows=found)
