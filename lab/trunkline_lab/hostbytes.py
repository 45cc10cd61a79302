"""Bytes over each emulated host's link, from the kernel's socket counters.

A host is a loopback address. A socket bound to a host's address is that host's; one that left its source address to
the kernel (127.0.0.1, as stock Hadoop's clients do) is told by the process that holds it. A connection between two
processes of one host never touches its link and is not counted. What counts is TCP payload, retransmissions not
included: loopback loses nothing, but a busy machine makes the kernel guess so.
"""

from __future__ import annotations

import contextlib
import ipaddress
import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from .sockdiag import Monitor, TcpSocket


@dataclass
class LinkBytes:
    """Bytes out of and into each host since the meter began; `unknown` could not be given to any host."""

    out: dict[str, int] = field(default_factory=dict)
    into: dict[str, int] = field(default_factory=dict)
    unknown: int = 0

    def total(self, hosts: list[str]) -> int:
        """Bytes over the links of `hosts`, both ways: what crosses two of them counts on both."""
        return sum(self.out.get(host, 0) + self.into.get(host, 0) for host in hosts)

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
    SETTLE_S = 2.0

    def __init__(self, network: str, hosts: dict[str, str], processes: Callable[[], list[tuple[int, str]]]) -> None:
        self._prefix = str(ipaddress.ip_network(network).network_address).rpartition(".")[0] + "."
        self._hosts = hosts
        self._processes = processes
        self._monitor = Monitor()
        self._sockets: dict[int, TcpSocket] = {}
        self._unsettled: set[int] = set()  # seen alive, last word of the kernel not yet heard
        self._owner: dict[int, str] = {}
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._poll, name="hostbytes", daemon=True)

    def __enter__(self) -> HostBytes:
        self._look()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        self._monitor.close()

    @property
    def overruns(self) -> int:
        """Times the kernel had to drop word of ended sockets; counts are then too low."""
        return self._monitor.overruns

    def _poll(self) -> None:
        while not self._stop.wait(self.POLL_S):
            with self._lock:
                self._look()

    def _ours(self, found: list[TcpSocket]) -> list[TcpSocket]:
        return [s for s in found if s.local[0].startswith(self._prefix) or s.remote[0].startswith(self._prefix)]

    def _look(self) -> set[int]:
        """Takes in the kernel's counts; returns the cookies of the sockets alive now."""
        alive = self._ours(self._monitor.dump())
        ended = self._ours(self._monitor.ended())
        unowned = {
            s.inode: s.cookie
            for s in alive
            if s.inode and s.local[0] not in self._hosts and s.cookie not in self._owner
        }
        if unowned:
            self._find_owners(unowned)
        for sock in alive:
            self._sockets[sock.cookie] = sock
            self._unsettled.add(sock.cookie)
        for sock in ended:
            self._sockets[sock.cookie] = sock
            self._unsettled.discard(sock.cookie)
        return {s.cookie for s in alive}

    def _find_owners(self, unowned: dict[int, int]) -> None:
        """Gives each unbound socket (inode to cookie) to the host whose process holds its descriptor."""
        for pid, host in self._processes():
            with contextlib.suppress(OSError):
                for descriptor in os.listdir(f"/proc/{pid}/fd"):
                    with contextlib.suppress(OSError):
                        link = os.readlink(f"/proc/{pid}/fd/{descriptor}")
                        if link.startswith("socket:[") and (cookie := unowned.get(int(link[8:-1]))) is not None:
                            self._owner[cookie] = host

    def read(self) -> LinkBytes:
        """The counts now; waits for the kernel's last word on sockets that are just being destroyed.

        That word comes from a kernel work queue, a moment after `close`.
        """
        deadline = time.monotonic() + self.SETTLE_S
        while True:
            time.sleep(0.02)
            with self._lock:
                alive = self._look()
                if self._unsettled <= alive or time.monotonic() > deadline:
                    self._unsettled &= alive
                    return self._sum()

    def _host(self, sock: TcpSocket) -> str | None:
        return self._hosts.get(sock.local[0]) or self._owner.get(sock.cookie)

    def _sum(self) -> LinkBytes:
        far_end = {(s.local, s.remote): self._host(s) for s in self._sockets.values()}
        count = LinkBytes()
        for sock in self._sockets.values():
            host = self._host(sock)
            peer = far_end.get((sock.remote, sock.local)) or self._hosts.get(sock.remote[0])
            if host is None:
                count.unknown += sock.sent + sock.received
            elif host != peer:
                count.out[host] = count.out.get(host, 0) + sock.sent
                count.into[host] = count.into.get(host, 0) + sock.received
        return count
