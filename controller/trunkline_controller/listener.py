"""A listening socket whose connections are bounded in number, so that strangers keep nobody else out."""

from __future__ import annotations

import contextlib
import socket
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

SHARE = 4  # one address may have this part of all places


class Listener(socket.socket):
    """Turns connections away beyond a number, and beyond a quarter of it from one address.

    They are counted where they are accepted, so that those amid TLS's handshake count too. When all places are taken,
    one whose handshake is not over gives up its place: of the address that has most of these, the oldest.

    accepted --(handshake_over)--> known --> closed
        |
        +--(late, or its place is needed)--> closed
    """

    def __init__(
        self, address: str, port: int, max_connections: int, turned_away: Callable[[str], None] = lambda why: None
    ) -> None:
        """`turned_away` is called with why connections are. Raises OSError where the port can't be listened on."""
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        super().__init__(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        self.max_connections = max_connections
        self.max_of_address = max(1, max_connections // SHARE)
        self.open: dict[str, int] = {}  # by address, as far as they count for it
        self.taken = 0  # places
        self._handshaking: dict[int, _Accepted] = {}  # by file descriptor, oldest first
        self._turned_away = turned_away
        try:
            self.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if self.family == socket.AF_INET6:
                self.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            self.bind((address, port))
        except OSError:
            self.close()
            raise

    def accept(self) -> tuple[socket.socket, Any]:
        fd, peer = self._accept()  # type: ignore[attr-defined]
        refusal = self._refusal(peer[0])
        if refusal:
            socket.close(fd)
            self._turned_away(refusal)
            raise ConnectionAbortedError
        accepted = self._handshaking[fd] = _Accepted(self, peer[0], fd)
        accepted.setblocking(False)
        return accepted, peer

    def _refusal(self, host: str) -> str:
        if self.open.get(host, 0) >= self.max_of_address:
            return f"{host} has {self.max_of_address} connections, the most of one address; further ones are refused"
        if self.taken < self.max_connections:
            return ""
        full = f"there are {self.max_connections} connections, the limit"
        if not self._make_room():
            return f"{full}; further ones are refused"
        self._turned_away(f"{full}; each further one ends one whose handshake is not over")
        return ""

    def _make_room(self) -> bool:
        counted = Counter(accepted.host for accepted in self._handshaking.values())
        if not counted:
            return False
        host = max(counted, key=lambda host: counted[host])
        next(accepted for accepted in self._handshaking.values() if accepted.host == host).give_up()
        return True

    def handshake_over(self, fd: int, is_trusted: bool = False) -> None:
        """Of a connection: it keeps its place, and where it is trusted no longer counts for its address."""
        accepted = self._handshaking.pop(fd, None)
        if accepted is not None and is_trusted:
            accepted.count_no_more()

    def end_late(self, patience_s: float) -> None:
        """Ends connections whose handshake has taken longer."""
        until = time.monotonic() - patience_s
        for accepted in list(self._handshaking.values()):
            if accepted.since_s >= until:
                break
            accepted.give_up()

    def let_go(self, fd: int) -> None:
        """A connection's place is free."""
        self.taken -= 1
        self._handshaking.pop(fd, None)


class _Accepted(socket.socket):
    """A connection that tells its listener when it is closed."""

    def __init__(self, listener: Listener, host: str, fd: int) -> None:
        super().__init__(listener.family, listener.type, listener.proto, fileno=fd)
        self.host = host
        self.since_s = time.monotonic()
        self._listener: Listener | None = listener
        self._counts = True
        listener.taken += 1
        listener.open[host] = listener.open.get(host, 0) + 1

    def close(self) -> None:
        fd = self.fileno()
        super().close()
        self._let_go(fd)

    def give_up(self) -> None:
        """Whoever reads from it finds its end, and closes it."""
        with contextlib.suppress(OSError):
            self.shutdown(socket.SHUT_RDWR)
        self._let_go(self.fileno())

    def count_no_more(self) -> None:
        """For its address."""
        listener = self._listener
        if listener is not None and self._counts:
            self._counts = False
            left = listener.open.pop(self.host, 0) - 1
            if left > 0:
                listener.open[self.host] = left

    def _let_go(self, fd: int) -> None:
        self.count_no_more()
        listener, self._listener = self._listener, None
        if listener is not None:
            listener.let_go(fd)
