"""The plan that is in force: kept up with policy and topology, and of which switches it may be told."""

from __future__ import annotations

from dataclasses import replace

from ..net.topology import Dpid, Topology
from ..policy.model import Policy
from . import plan
from .wanted import PortQueues, QueuesWanted

MAX_AWAY = 10_000  # ports of switches that are gone: what they had is remembered


class Planned:
    """`update` is for one thread; `wanted` may be read from any."""

    def __init__(self) -> None:
        self.wanted = QueuesWanted(())
        self._for: tuple[object, object] = (None, None)
        self._away: tuple[PortQueues, ...] = ()

    def update(self, policy: Policy | None, topology: Topology, sure: frozenset[Dpid]) -> bool:
        """Whether something else is wanted now. The same objects come while policy and topology are the same; `sure`
        are switches of which it is known what they should have.
        """
        wanted = self.wanted
        if policy is not self._for[0] or topology is not self._for[1]:
            # A cable that is out, or a switch that is away, keeps its ports' queues, though not through a change of
            # policy.
            before = (*self._away, *wanted.ports) if policy is self._for[0] else ()
            self._for = policy, topology
            self._away = tuple(port for port in before if port.dpid not in topology.switches)[-MAX_AWAY:]
            wanted = plan.wanted(policy, topology, QueuesWanted(before))
        wanted = replace(wanted, switches=sure)
        changed = wanted != self.wanted
        self.wanted = wanted
        return changed
