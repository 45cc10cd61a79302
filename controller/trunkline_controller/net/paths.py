"""Where packets go: shortest paths with all their equal alternatives, and a tree for what goes to everybody.

All results depend on the topology alone, not on the order in which it was learned.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

from .topology import Dpid, End, Link, PortNo, Topology

Neighbours = Mapping[Dpid, Mapping[Dpid, tuple[PortNo, ...]]]


def neighbours(topology: Topology) -> Neighbours:
    """For each switch the switches next to it, and its own ports that lead there, in order."""
    ports: dict[Dpid, dict[Dpid, list[PortNo]]] = {dpid: {} for dpid in topology.switches}
    for link in topology.links:
        for near, far in ((link.a, link.b), (link.b, link.a)):
            if near.dpid in ports and far.dpid in ports and near.dpid != far.dpid:
                ports[near.dpid].setdefault(far.dpid, []).append(near.port)
    return {dpid: {far: tuple(sorted(ports[dpid][far])) for far in sorted(ports[dpid])} for dpid in sorted(ports)}


def next_hops(graph: Neighbours, to: Dpid) -> dict[Dpid, tuple[PortNo, ...]]:
    """For each other switch that can reach `to` its ports that begin a shortest path, in order; a hop counts one."""
    distance = {to: 0}
    queue = deque([to])
    hops: dict[Dpid, tuple[PortNo, ...]] = {}
    while queue:
        here = queue.popleft()
        for dpid in graph[here]:
            if dpid not in distance:
                distance[dpid] = distance[here] + 1
                queue.append(dpid)
    for dpid, steps in distance.items():
        if dpid != to:
            near = (ports for far, ports in graph[dpid].items() if distance.get(far) == steps - 1)
            hops[dpid] = tuple(sorted(port for ports in near for port in ports))
    return hops


def flood_tree(topology: Topology) -> frozenset[Link]:
    """Links of a tree that spans each connected part: breadth first from the smallest datapath id."""
    graph, far = neighbours(topology), topology.link_ends()
    reached: set[Dpid] = set()
    tree = set()
    for root in graph:
        queue = deque([root] if root not in reached else [])
        reached.add(root)
        while queue:
            here = queue.popleft()
            for dpid, ports in graph[here].items():
                if dpid not in reached:
                    reached.add(dpid)
                    queue.append(dpid)
                    end = End(here, ports[0])
                    tree.add(Link.between(end, far[end]))
    return frozenset(tree)
