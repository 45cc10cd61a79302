"""Connections that cost a bounded amount: how many there are, and how long a client may keep one waiting."""

from __future__ import annotations

import asyncio
import json
import socket
from http import HTTPStatus
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from .problem import MEDIA_TYPE

MAX_HEADER_BYTES = 16 * 1024
"""Of a request's line and headers together."""


class Connection(H11Protocol):
    """HTTP/1.1 on one connection. It knows since when it waits for its client.

    waiting --(request is whole)--> working --(answer is sent)--> waiting
                                    working --(client takes no more of it)--> waiting --(it does)--> working
    """

    waiting_since_s: float | None = None  # by the loop's clock; None while the client waits for us

    def connection_made(self, transport: asyncio.Transport) -> None:
        self.waiting_since_s = self.loop.time()
        super().connection_made(transport)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if not self._is_waiting():
            self.waiting_since_s = None

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._moved_on()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._moved_on()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._moved_on()

    def _moved_on(self) -> None:
        self.waiting_since_s = self.loop.time() if self._is_waiting() else None

    def _is_waiting(self) -> bool:
        """For the rest of a request, or until the client takes what it was sent."""
        cycle = self.cycle
        return self.flow.write_paused or cycle is None or cycle.more_body or cycle.response_complete

    def end_if_stalled(self, patience_s: float) -> None:
        """Ends the connection of a client that has kept us waiting for longer."""
        if self.waiting_since_s is not None and self.loop.time() - self.waiting_since_s > patience_s:
            self.transport.abort()

    def send_400_response(self, msg: str) -> None:
        """The answer to what is no HTTP, or has too long a header."""
        said = {
            "type": "about:blank",
            "title": HTTPStatus.BAD_REQUEST.phrase,
            "status": 400,
            "detail": "that is no HTTP/1.1 request, or its headers are too long",
            "remedy": f"send HTTP/1.1 with headers of {MAX_HEADER_BYTES} bytes at most",
        }
        body = json.dumps(said).encode()
        headers = [
            (b"content-type", MEDIA_TYPE.encode()),
            (b"content-length", str(len(body)).encode()),
            (b"connection", b"close"),
        ]
        if self.conn.our_state not in {h11.IDLE, h11.SEND_RESPONSE}:  # an answer is under way
            self.transport.abort()
            return
        answer = h11.Response(status_code=400, headers=headers, reason=said["title"].encode())
        for event in (answer, h11.Data(data=body), h11.EndOfMessage()):
            self.transport.write(self.conn.send(event))
        self.transport.close()


class Listener(socket.socket):
    """A listening socket that turns connections away beyond a number, and beyond a quarter of it from one address.

    They are counted here, and not once they speak HTTP, so that those still amid TLS's handshake count too.
    """

    def __init__(self, address: str, port: int, max_connections: int) -> None:
        super().__init__(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_STREAM)
        self.max_connections = max_connections
        self.open: dict[str, int] = {}
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
        host = peer[0]
        full = sum(self.open.values()) >= self.max_connections
        if full or self.open.get(host, 0) >= self.max_connections // 4:
            socket.close(fd)
            raise ConnectionAbortedError
        accepted = _Accepted(self, host, fd)
        accepted.setblocking(False)
        return accepted, peer

    def closed(self, host: str) -> None:
        """A connection from this address is no more."""
        left = self.open.pop(host, 0) - 1
        if left > 0:
            self.open[host] = left


class _Accepted(socket.socket):
    """A connection that tells its listener when it is closed."""

    def __init__(self, listener: Listener, host: str, fd: int) -> None:
        super().__init__(listener.family, listener.type, listener.proto, fileno=fd)
        self._listener: Listener | None = listener
        self._host = host
        listener.open[host] = listener.open.get(host, 0) + 1

    def close(self) -> None:
        super().close()
        listener, self._listener = self._listener, None
        if listener is not None:
            listener.closed(self._host)
