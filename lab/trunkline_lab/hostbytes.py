"""Bytes over each emulated host's link, from the kernel's socket counters.

A host is a loopback address. A socket bound to a host's address is that host's; one that left its source address to
the kernel (127.0.0.1, as stock Hadoop's clients do) is told by the process that holds it. A connection between two
processes of one host never touches its link and is not counted. What counts is TCP payload, retransmissions not
included: loopback loses nothing, but a busy machine makes the kernel guess so.
"""

from __future__ import annotations

import ipaddress
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from .sockdiag import Monitor, TcpSocket
from .sockets import SETTLE_S, SocketWatch


@dataclass
class LinkBytes:
    """Bytes out of and into each host since the meter began; `unknown` could not be given to any host."""

    out: dict[str, int] = field(default_factory=dict)
    into: dict[str, int] = field(default_factory=dict)
    unknown: int = 0

    def total(self, hosts: list[str]) -> int:
        """Bytes over the links of `hosts`, both ways: what crosses two of them counts on both."""
        return sum(self.out.get(host, 0) + self.into.get(host, 0) for host in hosts)

    def carrying(self, out: dict[str, int], into: dict[str, int]) -> LinkBytes:
        """The same with bytes that no socket carried, by host."""

        def more(counted: dict[str, int], extra: dict[str, int]) -> dict[str, int]:
            return {host: counted.get(host, 0) + extra.get(host, 0) for host in {**counted, **extra}}

        return LinkBytes(more(self.out, out), more(self.into, into), self.unknown)

    def __sub__(self, earlier: LinkBytes) -> LinkBytes:
        def less(now: dict[str, int], before: dict[str, int]) -> dict[str, int]:
            return {host: count - before.get(host, 0) for host, count in now.items()}

        return LinkBytes(less(self.out, earlier.out), less(self.into, earlier.into), self.unknown - earlier.unknown)


class HostBytes:
    """Watches every TCP socket with an end in `network` (a /24 of 127/8) between `__enter__` and `__exit__`.

    `hosts` maps loopback address to host name; `processes` gives (pid, host) of those that run now, for sockets that
    were left unbound.
    """

    POLL_S = 0.1

    def __init__(self, network: str, hosts: dict[str, str], processes: Callable[[], list[tuple[int, str]]]) -> None:
        prefix = str(ipaddress.ip_network(network).network_address).rpartition(".")[0] + "."
        self._hosts = hosts
        self._watch = SocketWatch(
            Monitor(),
            wanted=lambda s: s.local[0].startswith(prefix) or s.remote[0].startswith(prefix),
            looked_up=lambda s: s.local[0] not in hosts,
            processes=processes,
        )
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._poll, name="hostbytes", daemon=True)

    def __enter__(self) -> HostBytes:
        self._watch.look()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        self._watch.close()

    @property
    def overruns(self) -> int:
        """Times the kernel had to drop word of ended sockets; counts are then too low."""
        return self._watch.overruns

    def _poll(self) -> None:
        while not self._stop.wait(self.POLL_S):
            with self._lock:
                self._watch.look()

    def read(self) -> LinkBytes:
        """The counts now; waits for the kernel's last word on sockets that are just being destroyed."""
        deadline = time.monotonic() + SETTLE_S
        while True:
            time.sleep(0.02)
            with self._lock:
                if self._watch.is_settled(self._watch.look(), deadline):
                    return self._sum()

    def _host(self, sock: TcpSocket) -> str | None:
        return self._hosts.get(sock.local[0]) or self._watch.owners.get(sock.cookie)

    def _sum(self) -> LinkBytes:
        far_end = {(s.local, s.remote): self._host(s) for s in self._watch.sockets.values()}
        count = LinkBytes()
        for sock in self._watch.sockets.values():
            host = self._host(sock)
            peer = far_end.get((sock.remote, sock.local)) or self._hosts.get(sock.remote[0])
            if host is None:
                count.unknown += sock.sent + sock.received
            elif host != peer:
                count.out[host] = count.out.get(host, 0) + sock.sent
                count.into[host] = count.into.get(host, 0) + sock.received
        return count
