"""Watches the TCP sockets of a network namespace over time, ended ones included, and which process held them."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable

from .sockdiag import Monitor, TcpSocket

SETTLE_S = 2.0


class SocketWatch:
    """Every socket that is `wanted`, with its newest counts.

    `looked_up` says for which of them the owner is needed; `processes` gives (pid, owner) of those that run now. A
    socket's owner is found while it lives or not at all.
    """

    def __init__(
        self,
        monitor: Monitor,
        wanted: Callable[[TcpSocket], bool],
        looked_up: Callable[[TcpSocket], bool],
        processes: Callable[[], list[tuple[int, str]]],
    ) -> None:
        self._monitor = monitor
        self._wanted, self._looked_up, self._processes = wanted, looked_up, processes
        self.sockets: dict[int, TcpSocket] = {}  # by the kernel's cookie
        self.owners: dict[int, str] = {}
        self._unsettled: set[int] = set()  # seen alive, last word of the kernel not yet heard

    def close(self) -> None:
        self._monitor.close()

    @property
    def overruns(self) -> int:
        """Times the kernel had to drop word of ended sockets; counts are then too low."""
        return self._monitor.overruns

    def look(self) -> set[int]:
        """Takes in the kernel's counts; returns the cookies of the sockets alive now."""
        alive = [sock for sock in self._monitor.dump() if self._wanted(sock)]
        ended = [sock for sock in self._monitor.ended() if self._wanted(sock)]
        unowned = {s.inode: s.cookie for s in alive if s.inode and s.cookie not in self.owners and self._looked_up(s)}
        if unowned:
            self._find_owners(unowned)
        for sock in alive:
            self.sockets[sock.cookie] = sock
            self._unsettled.add(sock.cookie)
        for sock in ended:
            self.sockets[sock.cookie] = sock
            self._unsettled.discard(sock.cookie)
        return {s.cookie for s in alive}

    def is_settled(self, alive: set[int], deadline: float) -> bool:
        """Whether the last word on every ended socket has come, or is no longer waited for.

        That word comes from a kernel work queue, a moment after `close`.
        """
        if self._unsettled <= alive or time.monotonic() > deadline:
            self._unsettled &= alive
            return True
        return False

    def _find_owners(self, unowned: dict[int, int]) -> None:
        """Gives each socket (inode to cookie) to the process that holds its descriptor."""
        for pid, owner in self._processes():
            with contextlib.suppress(OSError):
                for descriptor in os.listdir(f"/proc/{pid}/fd"):
                    with contextlib.suppress(OSError):
                        link = os.readlink(f"/proc/{pid}/fd/{descriptor}")
                        if link.startswith("socket:[") and (cookie := unowned.get(int(link[8:-1]))) is not None:
                            self.owners[cookie] = owner
