"""Connections whose clients may keep them waiting for a while, and no longer."""

from __future__ import annotations

import asyncio
import json
from http import HTTPStatus
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from ..listener import Listener
from .problem import MEDIA_TYPE

MAX_HEADER_BYTES = 16 * 1024
"""Of a request's line and headers together."""


class Connection(H11Protocol):
    """HTTP/1.1 on one connection. It knows since when it waits for its client.

    waiting --(request is whole)--> working --(answer is sent)--> waiting
                                    working --(client takes no more of it)--> waiting --(it does)--> working
    """

    waiting_since_s: float | None = None  # by the loop's clock; None while the client waits for us

    def __init__(self, listener: Listener, **uvicorns: Any) -> None:  # noqa: ANN401 (uvicorn's own)
        super().__init__(**uvicorns)
        self._listener = listener

    def connection_made(self, transport: asyncio.Transport) -> None:
        self._listener.handshake_over(transport.get_extra_info("socket").fileno())
        self.waiting_since_s = self.loop.time()
        super().connection_made(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        if self.timeout_keep_alive_task is not None:
            # For the five seconds that it waits for another request it would keep all of this one in memory.
            self.timeout_keep_alive_task.cancel()
            self.timeout_keep_alive_task = None

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
