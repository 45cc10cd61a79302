"""The distribution tree of a pipeline: which switch sends a client's segment where, so that each replica gets it once.

After "Extending TCP for Accelerating Replication on Cluster File Systems over SDNs", section IV-B and table I. Each
path is a shortest one from the client, and of those one that leaves the tree built so far as late as it can.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random

from ..net.paths import Neighbours, neighbours
from ..net.topology import Dpid, End, Host, Mac, PortNo, Topology

Sender = End | Mac  # one direction of a cable: the port of a switch, or the host, that sends into it


class NoTree(ValueError):
    """Some replica can't be reached from the client."""


@dataclass(frozen=True)
class Step:
    """What a switch of the tree does: the table's I_c is `in_port`, its forwarding interfaces are the others.

    `first` is the port toward the first replica, where this switch is on that path; `onward` lead to other switches;
    `replicas` are this switch's own, by position from 2, and their ports.
    """

    dpid: Dpid
    in_port: PortNo
    first: PortNo | None = None
    onward: tuple[PortNo, ...] = ()
    replicas: tuple[tuple[int, PortNo], ...] = ()

    @property
    def parts(self) -> bool:
        """Whether more than the first replica's segments leaves it."""
        return bool(self.onward or self.replicas)

    @property
    def forwarding(self) -> frozenset[PortNo]:
        """The table's last column."""
        own = () if self.first is None else (self.first,)
        return frozenset((*own, *self.onward, *(port for _, port in self.replicas)))


@dataclass(frozen=True)
class Tree:
    """Steps in order from the client; no switch comes twice."""

    client: Host
    replicas: tuple[Host, ...]
    steps: tuple[Step, ...]

    def senders(self) -> tuple[Sender, ...]:
        """Each direction of a cable that a segment crosses, once."""
        return (self.client.mac, *(End(step.dpid, port) for step in self.steps for port in sorted(step.forwarding)))


@dataclass(frozen=True)
class Route:
    """A packet's way from host to host: the ports that it leaves switches by."""

    source: Host
    target: Host
    ports: tuple[End, ...]

    def senders(self) -> tuple[Sender, ...]:
        return (self.source.mac, *self.ports)


@dataclass
class Paths:
    """Shortest paths of a network, kept for all trees of it."""

    topology: Topology
    graph: Neighbours = field(init=False)
    _distances: dict[Dpid, dict[Dpid, int]] = field(default_factory=dict)
    _far: dict[End, End] = field(init=False)

    def __post_init__(self) -> None:
        self.graph = neighbours(self.topology)
        self._far = self.topology.link_ends()

    def tree(self, client: Host, replicas: Sequence[Host], draw: int = 0) -> Tree:
        """`replicas` in the pipeline's order. Among equal paths `draw` decides, always alike. Raises NoTree."""
        chance = Random(draw)
        root = client.at.dpid
        came: dict[Dpid, End] = {}  # the port of the switch before, for each of the tree but the root
        for host in replicas:
            self._grow(came, root, host.at.dpid, chance)
        order = _in_order(came, root)
        trunk = {root, *_before(came, replicas[0].at.dpid)}
        return Tree(client, tuple(replicas), tuple(self._step(came, trunk, client, replicas, dpid) for dpid in order))

    def route(self, source: Host, target: Host, draw: int = 0) -> Route:
        """One of the shortest paths that stock forwarding takes. Raises NoTree."""
        came: dict[Dpid, End] = {}
        self._grow(came, source.at.dpid, target.at.dpid, Random(draw))
        return Route(source, target, (*(came[dpid] for dpid in _in_order(came, source.at.dpid)[1:]), target.at))

    def _grow(self, came: dict[Dpid, End], root: Dpid, to: Dpid, chance: Random) -> None:
        """Leads the tree to another switch."""
        if to == root or to in came:
            return
        distance = self._distance(root)
        if to not in distance:
            raise NoTree(f"no path leads to switch {to:016x}")
        # Backwards, a hop nearer to the client at a time, until the tree is met.
        layers = [[to]]
        while not (met := sorted(dpid for dpid in layers[-1] if dpid == root or dpid in came)):
            steps = distance[layers[-1][0]] - 1
            nearer = {near for dpid in layers[-1] for near in self.graph[dpid] if distance.get(near) == steps}
            layers.append(sorted(nearer))
        here = chance.choice(met)
        for layer in reversed(layers[:-1]):
            there = chance.choice([dpid for dpid in layer if dpid in self.graph[here]])
            came[there] = End(here, chance.choice(self.graph[here][there]))
            here = there

    def _distance(self, root: Dpid) -> dict[Dpid, int]:
        if root not in self._distances:
            if root not in self.graph:
                raise NoTree(f"switch {root:016x} is not connected")
            found = {root: 0}
            queue = deque([root])
            while queue:
                here = queue.popleft()
                for there in self.graph[here]:
                    if there not in found:
                        found[there] = found[here] + 1
                        queue.append(there)
            self._distances[root] = found
        return self._distances[root]

    def _step(
        self, came: Mapping[Dpid, End], trunk: set[Dpid], client: Host, replicas: Sequence[Host], dpid: Dpid
    ) -> Step:
        first, onward = None, []
        for there, end in came.items():
            if end.dpid == dpid:
                if there in trunk:
                    first = end.port
                else:
                    onward.append(end.port)
        if replicas[0].at.dpid == dpid:
            first = replicas[0].at.port
        own = [(position, host.at.port) for position, host in enumerate(replicas, 1) if host.at.dpid == dpid]
        in_port = self._far[came[dpid]].port if dpid in came else client.at.port
        others = tuple(replica for replica in own if replica[0] > 1)
        return Step(dpid, in_port, first, tuple(sorted(onward)), others)


def _before(came: Mapping[Dpid, End], dpid: Dpid) -> Iterable[Dpid]:
    """The switch and those between it and the root."""
    while dpid in came:
        yield dpid
        dpid = came[dpid].dpid


def _in_order(came: Mapping[Dpid, End], root: Dpid) -> list[Dpid]:
    """All switches, each after the one before it."""
    after: dict[Dpid, list[Dpid]] = {}
    for dpid, end in came.items():
        after.setdefault(end.dpid, []).append(dpid)
    found = [root]
    for dpid in found:
        found += sorted(after.get(dpid, ()))
    return found


def tiers(topology: Topology) -> dict[Dpid, int]:
    """How far each switch is from the nearest that has hosts: 0 at the edge. Unconnected ones are left out."""
    graph = neighbours(topology)
    found = {host.at.dpid: 0 for host in topology.hosts.values() if host.at.dpid in graph}
    queue = deque(sorted(found))
    while queue:
        here = queue.popleft()
        for there in graph[here]:
            if there not in found:
                found[there] = found[here] + 1
                queue.append(there)
    return found


def bytes_by_class(
    senders: Iterable[Sender], octets: int, topology: Topology, tier: Mapping[Dpid, int]
) -> Counter[str]:
    """What `octets` that cross these cost each class of links, in bytes. Classes: "host to switch", "switch to host",
    and between switches "tier 0 to 1" and so on.
    """
    far = topology.link_ends()
    found: Counter[str] = Counter()
    for sender in senders:
        if not isinstance(sender, End):
            found["host to switch"] += octets
        elif sender in far:
            found[f"tier {tier[sender.dpid]} to {tier[far[sender].dpid]}"] += octets
        else:
            found["switch to host"] += octets
    return found


def ascending(route: Route, tier: Mapping[Dpid, int]) -> int:
    """L of the paper's equation 5 from a host to where the way begins to descend: the links up, the host's own too."""
    if route.source.mac == route.target.mac:
        return 0
    heights = [tier[end.dpid] for end in route.ports]
    return 1 + heights.index(max(heights))


def equation_7(routes: Sequence[Route], tier: Mapping[Dpid, int]) -> float:
    """The paper's traffic saving ratio of a chain whose first route is from the client to the first replica.

    It counts all links up but the client's own as saved. A tree can't save those that its paths climb above the
    client's path to the first replica, so `saving` is less there.
    """
    return sum(ascending(route, tier) for route in routes[1:]) / sum(map(_links, routes))


def saving(tree: Tree, routes: Sequence[Route]) -> float:
    """The share of the chain's traffic that the tree saves, by links crossed."""
    return 1 - len(tree.senders()) / sum(map(_links, routes))


def _links(route: Route) -> int:
    return 0 if route.source.mac == route.target.mac else len(route.senders())
