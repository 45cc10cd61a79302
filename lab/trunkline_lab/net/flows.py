"""Which kind of traffic the bytes on a link were: told by TCP ports and, on Hadoop's data port, by who opened it.

Each connection is counted once, at the end that opened it, by the kernel's own count of its payload in both ways; a
topology is a tree, so that the two ends tell which links it crossed. Headers and what is no TCP are the difference to
the link's own counter.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from ..sockdiag import Monitor, TcpSocket
from ..sockets import SETTLE_S, SocketWatch
from . import namespaces
from .fabric import Fabric
from .ports import CONTROL, DATA, FACES, RPC, SHUFFLE, WEB
from .topology import Topology

CLIENT = "client"  # what the owner of a client's socket is called

CATEGORIES = (
    "client write",
    "replication",
    "read",
    "shuffle",
    "rpc",
    "named data",
    "control of named writes",
    "web",
    "other",
)


@dataclass(frozen=True)
class Flow:
    """Payload of one category between two nodes: from who opened the connections, and back."""

    start: str
    end: str
    category: str
    sent: int
    received: int


def category(sock: TcpSocket, by_client: bool) -> str:
    """Of a connection, seen from the end that opened it."""
    port = sock.remote[1]
    if port == DATA:
        if sock.sent <= sock.received:
            return "read"
        return "client write" if by_client else "replication"
    for ports, name in (
        (RPC, "rpc"),
        (SHUFFLE, "shuffle"),
        (FACES, "named data"),
        (CONTROL, "control of named writes"),
        (WEB, "web"),
    ):
        if port in ports:
            return name
    return "other"


class FlowMeter:
    """Watches the sockets of some nodes of a fabric until `close`. `processes` gives (pid, owner) of those alive."""

    POLL_S = 0.2

    def __init__(
        self,
        fabric: Fabric,
        topology: Topology,
        nodes: list[str],
        processes: Callable[[], list[tuple[int, str]]],
    ) -> None:
        self._names = {topology.address(node): node for node in topology.nodes}
        self._watches = {}
        for node in nodes:
            with namespaces.inside(fabric.namespace(node)):
                monitor = Monitor()
            self._watches[node] = SocketWatch(
                monitor,
                wanted=self._crosses_a_link,
                looked_up=lambda sock: sock.remote[1] == DATA,
                processes=processes,
            )
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._poll, name="flows", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._stop.set()
        self._thread.join()
        for watch in self._watches.values():
            watch.close()

    @property
    def overruns(self) -> int:
        """Times the kernel had to drop word of ended sockets; counts are then too low."""
        return sum(watch.overruns for watch in self._watches.values())

    def _crosses_a_link(self, sock: TcpSocket) -> bool:
        return sock.remote[0] in self._names and sock.remote[0] != sock.local[0]

    def _poll(self) -> None:
        while not self._stop.wait(self.POLL_S):
            with self._lock:
                for watch in self._watches.values():
                    watch.look()

    def read(self) -> dict[tuple[str, str, str], Flow]:
        """All flows since the meter began, by (start, end, category)."""
        deadline = time.monotonic() + SETTLE_S
        with self._lock:
            for watch in self._watches.values():
                while not watch.is_settled(watch.look(), deadline):
                    time.sleep(0.02)
        total: dict[tuple[str, str, str], Flow] = {}
        for node, watch in self._watches.items():
            for sock in watch.sockets.values():
                if sock.local[1] in (DATA, *FACES, *RPC, *SHUFFLE, *CONTROL, *WEB):
                    continue  # the end that was called
                end = self._names[sock.remote[0]]
                kind = category(sock, watch.owners.get(sock.cookie) == CLIENT)
                before = total.get((node, end, kind), Flow(node, end, kind, 0, 0))
                total[node, end, kind] = Flow(node, end, kind, before.sent + sock.sent, before.received + sock.received)
        return total


def less(now: dict[tuple[str, str, str], Flow], before: dict[tuple[str, str, str], Flow]) -> list[Flow]:
    """What was added since `before`."""
    added = []
    for key, flow in now.items():
        earlier = before.get(key)
        sent, received = (earlier.sent, earlier.received) if earlier else (0, 0)
        added.append(Flow(flow.start, flow.end, flow.category, flow.sent - sent, flow.received - received))
    return [flow for flow in added if flow.sent or flow.received]


def by_way(topology: Topology, flows: list[Flow]) -> dict[tuple[str, str], dict[str, int]]:
    """Payload bytes of each category over each (from, to) of a link."""

    @cache
    def ways(start: str, end: str) -> tuple[tuple[str, str], ...]:
        return tuple(topology.tree(start, [end]))

    found: dict[tuple[str, str], dict[str, int]] = {}
    for flow in flows:
        for start, end, count in ((flow.start, flow.end, flow.sent), (flow.end, flow.start, flow.received)):
            for way in ways(start, end):
                kinds = found.setdefault(way, {})
                kinds[flow.category] = kinds.get(flow.category, 0) + count
    return found


def by_category(flows: list[Flow]) -> dict[str, int]:
    """Payload bytes of each category, each connection counted once however many links it crossed."""
    total: dict[str, int] = {}
    for flow in flows:
        total[flow.category] = total.get(flow.category, 0) + flow.sent + flow.received
    return total
