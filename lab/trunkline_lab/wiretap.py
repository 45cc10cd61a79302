"""What passes the loopback interface, as somebody sees it who may listen there; needs root."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from collections import defaultdict
from types import TracebackType

_ETH_P_IP = 0x0800
_PACKET_OUTGOING = 4  # each packet passes loopback twice: this time it is not looked at
_TCP = 6
_ROOM = 256 << 20

Flow = tuple[str, int, str, int]  # address and port of the sender, of the receiver


def payload(frame: bytes) -> tuple[Flow, bytes] | None:
    """Whose bytes an Ethernet frame of an IPv4 packet carries, and which; nothing where it is no TCP."""
    at = 14
    if len(frame) < at + 20 or frame[at] >> 4 != 4 or frame[at + 9] != _TCP:
        return None
    tcp = at + (frame[at] & 15) * 4
    length = struct.unpack_from("!H", frame, at + 2)[0]
    end = at + length if length else len(frame)  # none is told of what the kernel cuts into packets later
    if len(frame) < tcp + 20:
        return None
    source, target = struct.unpack_from("!HH", frame, tcp)
    sender, receiver = (socket.inet_ntoa(frame[at + n : at + n + 4]) for n in (12, 16))
    return (sender, source, receiver, target), frame[tcp + (frame[tcp + 12] >> 4) * 4 : end]


class Wiretap:
    """Keeps all TCP to and from addresses that begin with `prefix`, but what goes to or from `but`.

    A gap is possible where the machine is busy, so what it saw it saw; that it has not seen something means little
    unless it has seen as much as there was.
    """

    def __init__(self, prefix: str, but: tuple[str, ...] = ()) -> None:
        self._prefix = prefix
        self._but = but
        self._flows: defaultdict[Flow, bytearray] = defaultdict(bytearray)
        self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(_ETH_P_IP))
        # More than the kernel's limit for users: who may listen may have it.
        with contextlib.suppress(OSError):
            self._socket.setsockopt(socket.SOL_SOCKET, 33, _ROOM)  # SO_RCVBUFFORCE
        self._socket.bind(("lo", _ETH_P_IP))
        self._socket.settimeout(0.2)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._listen, name="wiretap", daemon=True)

    def _listen(self) -> None:
        while True:
            try:
                frame, about = self._socket.recvfrom(1 << 17)
            except TimeoutError:
                if self._over.is_set():
                    return
                continue
            if about[2] == _PACKET_OUTGOING:
                continue
            if found := payload(frame):
                flow, carried = found
                ends = {flow[0], flow[2]}
                if any(end.startswith(self._prefix) for end in ends) and ends.isdisjoint(self._but):
                    self._flows[flow] += carried

    def __enter__(self) -> Wiretap:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Hears what has been sent so far, and stops."""
        self._over.set()
        self._thread.join()
        self._socket.close()

    def passed(self) -> int:
        """Bytes of all connections."""
        return sum(len(flow) for flow in self._flows.values())

    def saw(self, wanted: bytes) -> bool:
        """Whether these bytes passed on some connection, one after the other."""
        return any(wanted in flow for flow in self._flows.values())
