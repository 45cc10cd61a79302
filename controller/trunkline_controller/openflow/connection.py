"""One switch's connection: OpenFlow's handshake, messages apart, requests with their answers. An asyncio protocol.

os-ken's own connections are not used: with native threads they notice a switch that is gone only when they next write,
accept any number of strangers, and can't be stopped. Here a stranger has a moment for its hello, messages and replies
are bounded, and all runs on one thread.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import struct
from collections import deque
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from typing import Protocol

from ..net.topology import Dpid
from . import messages
from .memory import Budget, Holding
from .messages import HEADER

HANDSHAKE_S = 5.0
ANSWER_S = 10.0  # a switch that leaves a request open for so long is taken for dead
ECHO_EVERY_S = 5.0
SILENT_S = 15.0
MAX_REPLY_BYTES = 1 << 20  # to one multipart request, unless it is for a long reply
MAX_LONG_REPLY_BYTES = 32 << 20  # about 300,000 flow entries
PART_BYTES = 64  # what a message of a reply takes besides its body
MAX_UNSENT_BYTES = 16 << 20  # what a switch that does not read may leave in memory


class OpenFlowError(OSError):
    """A switch refused a request. `kind` and `code` are OpenFlow's (1.3.5, 7.4.4)."""

    def __init__(self, kind: int, code: int) -> None:
        super().__init__(f"OpenFlow error type {kind} code {code}")
        self.kind = kind
        self.code = code


class Gone(OSError):
    """The connection ended before the answer."""


class Peer(Protocol):
    """Who uses connections. All calls are on the loop's thread."""

    def connected(self, connection: Connection) -> None:
        """The handshake is over; `dpid` and `version` are known."""
        ...

    def disconnected(self, connection: Connection, why: str) -> None:
        """Of one that had been connected."""
        ...

    def refused(self, connection: Connection, why: str) -> None:
        """Of one that never was."""
        ...

    def packet_in(self, connection: Connection, table: int, in_port: int, data: bytes) -> None: ...

    def port_status(self, connection: Connection, description: bytes, removed: bool) -> None: ...

    def failed(self, connection: Connection, xid: int, error: OpenFlowError) -> None:
        """A message that nobody waits for."""
        ...

    def role_lost(self, connection: Connection) -> None: ...

    def began(self, connection: Connection) -> None:
        """It is open; the handshake begins."""
        ...


@dataclass
class _Request:
    """`answered` is done when `parts` is complete: one message, or the bodies of a multipart reply."""

    answered: asyncio.Future[None]
    most_bytes: int
    memory: Holding
    parts: deque[bytes] = field(default_factory=deque)

    def add(self, part: bytes) -> None:
        self.parts.append(part)
        self.memory.set(self.memory.octets + len(part) + PART_BYTES)

    def take(self) -> bytes:
        part = self.parts.popleft()
        self.memory.set(self.memory.octets - len(part) - PART_BYTES)
        return part

    def clear(self) -> None:
        self.parts.clear()
        self.memory.set(0)


class Connection(asyncio.Protocol):
    """`request` and `long_reply` wait for the switch; `send` does not."""

    def __init__(self, peer: Peer, budget: Budget) -> None:
        self.peer = peer
        self.memory = budget.account()  # what it decides the size of
        self.dpid = Dpid(0)
        self.version = 0  # negotiated
        self.address = ""
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._buffer = bytearray()
        self._buffered = self._unsent = 0  # bytes, as counted
        self._xids = itertools.cycle(range(1, 1 << 32))
        self._waiting: dict[int, _Request] = {}
        self._barriers: dict[int, tuple[asyncio.Future[None], asyncio.TimerHandle]] = {}
        self._heard_at = 0.0
        self._is_connected = False
        self._why = "the switch closed the connection"
        self._timer: asyncio.TimerHandle | None = None

    # Of asyncio.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        name = transport.get_extra_info("peername")
        self.address = f"{name[0]}:{name[1]}" if isinstance(name, tuple) else "a Unix socket"
        self.peer.began(self)
        self._heard_at = self._loop.time()
        self._timer = self._loop.call_later(HANDSHAKE_S, self._handshake_late)
        self.send(messages.hello())

    def data_received(self, data: bytes) -> None:
        self._heard_at = self._loop.time()
        buffer = self._buffer
        buffer += data
        offset = 0
        try:
            while len(buffer) - offset >= 8 and self.is_open:
                version, kind, length, xid = HEADER.unpack_from(buffer, offset)
                if length < 8:
                    raise ValueError(f"a message of {length} bytes")
                if len(buffer) - offset < length:
                    break
                message = bytes(memoryview(buffer)[offset : offset + length])
                offset += length
                self._message(version, kind, xid, message)
        except (ValueError, struct.error, IndexError) as error:
            self.close(f"it sent what is not OpenFlow: {error}")
        if self.is_open:
            del buffer[:offset]
            more, self._buffered = len(buffer) - self._buffered, len(buffer)
            self.memory.keep(more)

    def resume_writing(self) -> None:
        self._count_unsent()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._timer:
            self._timer.cancel()
        if exc is not None:
            self._why = str(exc)
        self._transport = None
        self._let_go()
        for request in self._waiting.values():
            if not request.answered.done():
                request.answered.set_exception(Gone(self._why))
        for xid in list(self._barriers):
            self._barred(xid, Gone(self._why))
        if self._is_connected:
            self._is_connected = False
            self.peer.disconnected(self, self._why)
        else:
            self.peer.refused(self, self._why)
        self.memory.end()

    # For who uses it.

    def fileno(self) -> int:
        """Of the socket, while it is open."""
        assert self._transport is not None
        return self._transport.get_extra_info("socket").fileno()

    @property
    def is_open(self) -> bool:
        return self._transport is not None and not self._transport.is_closing()

    def close(self, why: str) -> None:
        self._why = why
        if self._transport is not None:
            self._transport.abort()
        self._let_go()

    def _let_go(self) -> None:
        """What was read of it, or not sent yet, is gone at once."""
        self.memory.close()
        self._buffer.clear()
        for request in self._waiting.values():
            request.clear()
        counted, self._buffered, self._unsent = self._buffered + self._unsent, 0, 0
        self.memory.keep(-counted)

    def send(self, message: bytes) -> int:
        """Returns the message's transaction id."""
        xid = next(self._xids)
        self._write(messages.with_xid(message, xid))
        return xid

    def send_all(self, wanted: list[bytes]) -> list[int]:
        """Many messages in one write; their transaction ids."""
        xids = [next(self._xids) for _ in wanted]
        self._write(b"".join(map(messages.with_xid, wanted, xids)))
        return xids

    def send_barred(self, wanted: list[bytes]) -> tuple[list[int], asyncio.Future[None]]:
        """Many messages with a barrier after them, in one write: their transaction ids, and what is done when the
        switch has done them. It fails with Gone; a switch that does not get there is given up.
        """
        done: asyncio.Future[None] = self._loop.create_future()
        xids = [next(self._xids) for _ in wanted]
        if not self.is_open:
            done.set_exception(Gone(self._why))
            return xids, done
        barrier = next(self._xids)
        self._barriers[barrier] = done, self._loop.call_later(ANSWER_S, self._barrier_late)
        after = messages.with_xid(messages.plain(self.version, messages.BARRIER_REQUEST), barrier)
        self._write(b"".join(map(messages.with_xid, wanted, xids)) + after)
        return xids, done

    def _barred(self, xid: int, error: OSError | None = None) -> bool:
        """A barrier is answered; whether this was one of these."""
        if (found := self._barriers.pop(xid, None)) is None:
            return False
        done, late = found
        late.cancel()
        if not done.done():
            done.set_result(None) if error is None else done.set_exception(error)
        return True

    def _barrier_late(self) -> None:
        self.close(f"it did not answer a barrier in {ANSWER_S:.0f} s")

    def _write(self, octets: bytes) -> None:
        if self.is_open and self._transport is not None:
            self._transport.write(octets)
            self._count_unsent()

    def _count_unsent(self) -> None:
        """Counted when more is written, and when it is sent at last: at no time less than there is."""
        if self.is_open and self._transport is not None:
            unsent = self._transport.get_write_buffer_size()
            more, self._unsent = unsent - self._unsent, unsent
            self.memory.keep(more)
            if unsent > MAX_UNSENT_BYTES:
                self.close(f"it does not read; {MAX_UNSENT_BYTES >> 20} MiB wait for it")

    async def request(self, message: bytes, give_up_s: float = ANSWER_S) -> bytes:
        """The answer: a message, or all bodies of a multipart reply. Raises OpenFlowError, Gone, or TimeoutError."""
        with self._asking(message, MAX_REPLY_BYTES) as request:
            async with asyncio.timeout(give_up_s):
                await request.answered
            return b"".join(request.parts)

    async def long_reply(self, message: bytes) -> AsyncIterator[bytes]:
        """The bodies of a multipart reply, each of whole entries (1.3.5, 7.3.5), once all of them are there. Raises as
        `request` does.
        """
        with self._asking(message, MAX_LONG_REPLY_BYTES) as request:
            async with asyncio.timeout(ANSWER_S):
                await request.answered
            while request.parts:
                yield request.take()
                if not self.is_open:
                    raise Gone(self._why)

    @contextlib.contextmanager
    def _asking(self, message: bytes, most_bytes: int) -> Iterator[_Request]:
        if not self.is_open:
            raise Gone(self._why)
        xid = next(self._xids)
        with self.memory.holding() as held:
            request = self._waiting[xid] = _Request(self._loop.create_future(), most_bytes, held)
            try:
                self._write(messages.with_xid(message, xid))
                yield request
            finally:
                # An exception knows the frames that it came through, and they know it: nothing large is left in them.
                del self._waiting[xid]
                request.clear()

    async def barrier(self) -> None:
        """All messages before it are done when this returns; a switch that does not get there is given up."""
        try:
            await self.request(messages.plain(self.version, messages.BARRIER_REQUEST))
        except TimeoutError:
            self._barrier_late()
            raise Gone(self._why) from None

    # Messages.

    def _message(self, version: int, kind: int, xid: int, message: bytes) -> None:
        if kind == messages.ECHO_REQUEST:
            self._reply(xid, messages.plain(version, messages.ECHO_REPLY, message[8:]))
        elif self.version == 0:
            self._hello(kind, message)
        elif version != self.version:
            raise ValueError(f"a message of version {version} where {self.version} was agreed on")
        elif kind == messages.FEATURES_REPLY and not self._is_connected:
            self.dpid = Dpid(struct.unpack_from("!Q", message, 8)[0])
            self._is_connected = True
            if self._timer:
                self._timer.cancel()
            self._timer = self._loop.call_later(ECHO_EVERY_S, self._echo)
            self.peer.connected(self)
        elif not self._is_connected:
            if kind == messages.ERROR:
                raise ValueError("an error in the handshake")
        else:
            self._of_switch(kind, xid, message)

    def _of_switch(self, kind: int, xid: int, message: bytes) -> None:
        if kind == messages.PACKET_IN:
            self._packet_in(message)
        elif kind == messages.MULTIPART_REPLY:
            self._multipart_reply(xid, message)
        elif kind == messages.BARRIER_REPLY and self._barred(xid):
            pass
        elif kind in (messages.BARRIER_REPLY, messages.ROLE_REPLY):
            self._answer(xid, message)
        elif kind == messages.ERROR:
            error = OpenFlowError(*struct.unpack_from("!HH", message, 8))
            if self._barred(xid, error):
                return
            request = self._waiting.get(xid)
            if request is None:
                self.peer.failed(self, xid, error)
            elif not request.answered.done():
                request.answered.set_exception(error)
        elif kind == messages.PORT_STATUS:
            self.peer.port_status(self, message[16:], removed=message[8] == 1)
        elif kind == messages.ROLE_STATUS:
            self.peer.role_lost(self)

    def _hello(self, kind: int, message: bytes) -> None:
        if kind != messages.HELLO:
            raise ValueError(f"message type {kind} before a hello")
        version = messages.negotiated(message)
        if version is None:
            error = struct.pack("!HH", 0, 0) + b"OpenFlow 1.3 or 1.5 is needed"
            self.send(messages.plain(message[0], messages.ERROR, error))
            self.close("it speaks neither OpenFlow 1.3 nor 1.5; set its protocols to OpenFlow13 or OpenFlow15")
            return
        self.version = version
        self.send(messages.plain(version, messages.FEATURES_REQUEST))

    def _packet_in(self, message: bytes) -> None:
        """1.3.5, 7.4.1; the input port is the one field of the match that is of use."""
        table = message[15]
        match_length = struct.unpack_from("!H", message, 26)[0]
        in_port, offset, end = 0, 28, 24 + match_length
        while offset + 4 <= end:
            header, size = struct.unpack_from("!HxB", message, offset)
            if header == 0x8000 and message[offset + 2] >> 1 == 0 and size == 4:
                (in_port,) = struct.unpack_from("!I", message, offset + 4)
                break
            offset += 4 + size
        data = message[24 + (match_length + 7 & ~7) + 2 :]
        self.peer.packet_in(self, table, in_port, data)

    def _multipart_reply(self, xid: int, message: bytes) -> None:
        request = self._waiting.get(xid)
        if request is None or request.answered.done():
            return
        flags = struct.unpack_from("!H", message, 10)[0]
        if len(message) > 16:
            request.add(message[16:])
        if request.memory.octets > request.most_bytes:
            self.close(f"it answers a request with more than {request.most_bytes >> 20} MiB")
        elif not flags & 1 and self.is_open:  # OFPMPF_REPLY_MORE
            request.answered.set_result(None)

    def _answer(self, xid: int, body: bytes) -> None:
        request = self._waiting.get(xid)
        if request is not None and not request.answered.done():
            request.add(body)
            request.answered.set_result(None)

    def _reply(self, xid: int, message: bytes) -> None:
        self._write(messages.with_xid(message, xid))

    def _handshake_late(self) -> None:
        self.close(f"no OpenFlow handshake in {HANDSHAKE_S:.0f} s")

    def _echo(self) -> None:
        silent = self._loop.time() - self._heard_at
        if silent > SILENT_S:
            self.close(f"it was silent for {silent:.0f} s")
            return
        self._count_unsent()
        if silent > ECHO_EVERY_S / 2:
            self.send(messages.plain(self.version, messages.ECHO_REQUEST))
        self._timer = self._loop.call_later(ECHO_EVERY_S, self._echo)
