"""What ports, queues and flow entries counted, as people and programs are shown it: snapshots, from any thread."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator

from .control import FlowState, FlowTotals, LinkLoad, QueueState
from .fabric import Fabric
from .flows.entry import FlowEntry, Output, ToGroup, owner_name
from .in_force import PolicyInForce
from .monitor import Monitor
from .net.topology import Dpid, End, Link
from .policy import classify
from .port_queues import PortQueues


class Counted:
    """Methods are as `control.Control` has them."""

    def __init__(self, fabric: Fabric, monitor: Monitor, queues: PortQueues, in_force: PolicyInForce) -> None:
        self._fabric = fabric
        self._monitor = monitor
        self._queues = queues
        self._in_force = in_force

    def loads(self) -> Iterator[LinkLoad]:
        measured = self._monitor.ports
        rates = {(port.dpid, port.port): port.rate_bit_s for port in self._queues.wanted.ports}
        for dpid, switch in self._fabric.topology.switches.items():
            for number, port in switch.ports.items():
                load = measured.get(End(dpid, number))
                if load is not None:
                    yield LinkLoad(
                        End(dpid, number),
                        load.sent_bit_s,
                        rates.get((dpid, number), port.speed_bit_s),
                        load.counts.dropped_packets,
                        load.received_bit_s,
                        load.counts.sent_bytes,
                        load.counts.received_bytes,
                    )

    def queues(self) -> Iterator[QueueState]:
        policy, measured = self._in_force.policy, self._monitor.queues
        categories: dict[str, list[str]] = {}
        for category, queue in policy.categories.items() if policy else ():
            categories.setdefault(queue, []).append(category)
        for port in self._queues.wanted.ports:
            end = End(port.dpid, port.port)
            mode, why = self._queues.mode(end)
            for queue in port.queues:
                load = measured.get((end, queue.number))
                yield QueueState(
                    end,
                    queue.name,
                    queue.number,
                    queue.dscp,
                    mode,
                    queue.min_bit_s,
                    queue.max_bit_s,
                    load.sent_bit_s if load else 0.0,
                    load.counts.sent_bytes if load else 0,
                    load.counts.dropped_packets if load else 0,
                    tuple(categories.get(queue.name, ())),
                    why,
                )

    def flows(self, dpid: Dpid) -> Iterator[FlowState]:
        """A bridge counts by itself; its entries are shown without."""
        if (bridge := self._fabric.bridges.there.get(dpid)) is not None:
            return self._states(dpid, bridge.flows.copy())
        entries = self._fabric.sessions[dpid].flows.copy()
        self._monitor.interest(dpid, time.monotonic())
        return self._states(dpid, entries)

    def flows_of(self, link: Link) -> Iterator[FlowState]:
        if link not in self._fabric.topology.links:
            raise KeyError(link)
        for end in (link.a, link.b):
            session = self._fabric.sessions.get(end.dpid)
            if session is not None:
                self._monitor.interest(end.dpid, time.monotonic())
                groups = {group.number for group in list(session.groups.values()) if end.port in group.ports}
                sends = [entry for entry in session.flows.copy() if _sends(entry, end.port, groups)]
                yield from self._states(end.dpid, sends)

    def flow_totals(self) -> Iterator[FlowTotals]:
        policy = self._in_force.policy
        for dpid, session in sorted(self._fabric.sessions.items()):
            entries: Counter[str] = Counter()
            octets: Counter[str] = Counter()
            counters = session.counters
            for cookie, same in _by_cookie(session.flows.copy()).items():
                entries[owner_name(cookie)] += len(same)
                category = classify.category_of(policy, cookie) if policy else ""
                if category:
                    octets[category] += sum(counters.get(entry, (0, 0))[1] for entry in same)
            yield FlowTotals(dpid, entries, octets)

    def _states(self, dpid: Dpid, entries: Iterable[FlowEntry]) -> Iterator[FlowState]:
        session, policy = self._fabric.sessions.get(dpid), self._in_force.policy
        counters = session.counters if session else {}
        for entry in sorted(entries, key=lambda entry: (entry.table, -entry.priority, str(entry.match))):
            packets, octets = counters.get(entry, (0, 0))
            category = classify.category_of(policy, entry.cookie) if policy else ""
            yield FlowState(dpid, entry, packets, octets, category)


def _by_cookie(entries: Iterable[FlowEntry]) -> dict[int, list[FlowEntry]]:
    found: dict[int, list[FlowEntry]] = {}
    for entry in entries:
        found.setdefault(entry.cookie, []).append(entry)
    return found


def _sends(entry: FlowEntry, port: int, groups: set[int]) -> bool:
    return any(
        (isinstance(action, Output) and action.port == port) or (isinstance(action, ToGroup) and action.group in groups)
        for action in entry.actions
    )
