"""The kernel's own count of every TCP socket's bytes, over NETLINK_SOCK_DIAG. Needs no privilege.

Two sources, both `struct inet_diag_msg` with a `struct tcp_info`: a dump of the sockets alive now, and the multicast
group on which the kernel tells each socket's last state as it is destroyed (linux/inet_diag.h, linux/sock_diag.h,
linux/tcp.h; bytes_sent and bytes_retrans are in tcp_info since Linux 4.19).
"""

from __future__ import annotations

import errno
import ipaddress
import socket
import struct
from collections.abc import Iterator
from dataclasses import dataclass

_NETLINK_SOCK_DIAG = 4
_SOCK_DIAG_BY_FAMILY = 20
_NLMSG_ERROR, _NLMSG_DONE = 2, 3
_NLM_F_REQUEST, _NLM_F_DUMP = 0x1, 0x300
_SOL_NETLINK, _NETLINK_ADD_MEMBERSHIP = 270, 1
_GROUPS_TCP_DESTROY = (1, 3)  # SKNLGRP_INET_TCP_DESTROY, SKNLGRP_INET6_TCP_DESTROY
_INET_DIAG_INFO = 2
# Full sockets only: SYN_RECV (3), TIME_WAIT (6), LISTEN (10) and NEW_SYN_RECV (12) carry no tcp_info of a connection.
_STATES = sum(1 << state for state in (1, 2, 4, 5, 7, 8, 9, 11))
_NLMSGHDR = struct.Struct("=IHHII")
_DIAG_HEAD = struct.Struct("=BBBB")
_DIAG_SIZE = 72
_SO_RCVBUFFORCE = 33


@dataclass(frozen=True, slots=True)
class TcpSocket:
    """One end of a TCP connection. `sent` counts payload bytes, each once however often it was retransmitted."""

    cookie: int
    local: tuple[str, int]
    remote: tuple[str, int]
    inode: int
    sent: int
    received: int


class Monitor:
    """Sockets alive now (`dump`) and those that ended since the last look (`ended`)."""

    def __init__(self) -> None:
        self._ask = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, _NETLINK_SOCK_DIAG)
        self._ask.bind((0, 0))
        self._ends = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, _NETLINK_SOCK_DIAG)
        self._ends.bind((0, 0))
        _grow(self._ends)
        for group in _GROUPS_TCP_DESTROY:
            self._ends.setsockopt(_SOL_NETLINK, _NETLINK_ADD_MEMBERSHIP, group)
        self._ends.setblocking(False)
        self.overruns = 0

    def close(self) -> None:
        self._ask.close()
        self._ends.close()

    def dump(self) -> list[TcpSocket]:
        """All TCP connections of this network namespace, as the kernel counts them at this moment."""
        found: list[TcpSocket] = []
        for family in (socket.AF_INET, socket.AF_INET6):
            body = struct.pack("=BBBBI48x", family, socket.IPPROTO_TCP, 1 << (_INET_DIAG_INFO - 1), 0, _STATES)
            header = _NLMSGHDR.pack(
                _NLMSGHDR.size + len(body), _SOCK_DIAG_BY_FAMILY, _NLM_F_REQUEST | _NLM_F_DUMP, 1, 0
            )
            self._ask.send(header + body)
            more = True
            while more:
                for kind, message in _messages(self._ask.recv(1 << 18)):
                    if kind == _NLMSG_DONE:
                        more = False
                    elif kind == _NLMSG_ERROR:
                        code = -struct.unpack_from("=i", message)[0]
                        raise OSError(code, f"sock_diag dump: {errno.errorcode.get(code, code)}")
                    elif parsed := _parse(message):
                        found.append(parsed)
        return found

    def ended(self) -> list[TcpSocket]:
        """Last counts of the sockets destroyed since the previous call. Lost messages are counted in `overruns`."""
        found: list[TcpSocket] = []
        while True:
            try:
                datagram = self._ends.recv(1 << 16)
            except BlockingIOError:
                return found
            except OSError as error:
                if error.errno != errno.ENOBUFS:
                    raise
                self.overruns += 1
                continue
            found.extend(parsed for _, message in _messages(datagram) if (parsed := _parse(message)))


def _grow(sock: socket.socket) -> None:
    try:
        sock.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, 8 << 20)
    except PermissionError:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 << 20)


def _messages(datagram: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at + _NLMSGHDR.size <= len(datagram):
        length, kind, _, _, _ = _NLMSGHDR.unpack_from(datagram, at)
        yield kind, datagram[at + _NLMSGHDR.size : at + length]
        at += (length + 3) & ~3


def _parse(message: bytes) -> TcpSocket | None:
    """`struct inet_diag_msg` and its INET_DIAG_INFO attribute; None when it carries none."""
    if len(message) < _DIAG_SIZE:
        return None
    family = _DIAG_HEAD.unpack_from(message)[0]
    sport, dport = struct.unpack_from("!HH", message, 4)
    cookie, inode = struct.unpack_from("=Q", message, 44)[0], struct.unpack_from("=I", message, 68)[0]
    at = _DIAG_SIZE
    while at + 4 <= len(message):
        length, kind = struct.unpack_from("=HH", message, at)
        if length < 4:
            return None
        if kind == _INET_DIAG_INFO:
            info = message[at + 4 : at + length]
            if len(info) < 216:
                raise RuntimeError("the kernel does not tell bytes sent by socket; Linux 4.19 or newer is needed")
            sent, retransmitted = struct.unpack_from("=QQ", info, 200)
            return TcpSocket(
                cookie,
                (_address(family, message[8:24]), sport),
                (_address(family, message[24:40]), dport),
                inode,
                sent=sent - retransmitted,
                received=struct.unpack_from("=Q", info, 128)[0],
            )
        at += (length + 3) & ~3
    return None


def _address(family: int, raw: bytes) -> str:
    if family == socket.AF_INET:
        return socket.inet_ntop(socket.AF_INET, raw[:4])
    address = ipaddress.IPv6Address(raw)
    return str(address.ipv4_mapped or address)
