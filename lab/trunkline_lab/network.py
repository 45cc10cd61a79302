"""Where the parts of a cluster run; loopback addresses that stand for hosts, and ports on them that nobody holds."""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass

_PORTS = range(20000, 32000)  # below Linux's default range of ephemeral ports, so no outgoing connection takes them
_TAKEN = _PORTS.start - 1


Hosted = tuple[str, str]  # (name of a host, its address)


@dataclass(frozen=True)
class Site:
    """The hosts of a cluster. One host may have several parts; `near` is entered to speak to them from the lab."""

    namenode: Hosted
    datanodes: tuple[Hosted, ...]
    clients: tuple[Hosted, ...]
    port: Callable[[str, str], int]  # (address, Hadoop's name of the service) to a TCP port
    near: Callable[[], AbstractContextManager[None]] = contextlib.nullcontext


@dataclass(frozen=True)
class Loopback:
    """A /24 of 127/8 for one experiment, so that several can run beside each other."""

    prefix: str  # such as "127.87.12"

    @property
    def cidr(self) -> str:
        return f"{self.prefix}.0/24"

    def address(self, number: int) -> str:
        return f"{self.prefix}.{number}"

    def site(self, datanodes: int) -> Site:
        """Hosts "namenode", "dn1" … and "client", each an address of this network."""
        ports = Ports()
        return Site(
            ("namenode", self.address(10)),
            tuple((f"dn{n + 1}", self.address(11 + n)) for n in range(datanodes)),
            (("client", self.address(50)),),
            lambda address, service: ports.free(address),
        )


_taken: list[socket.socket] = []  # each holds a /24 for as long as this process lives


def pick_loopback() -> Loopback:
    """A /24 on which nothing listens or speaks now, and which no other process gets while this one lives.

    Which one depends on our process id.
    """
    used = {address.rpartition(".")[0] for address in _addresses_in_use()}
    for step in range(50 * 250):
        number = (os.getpid() + step) % (50 * 250)
        prefix = f"127.{100 + number // 250}.{1 + number % 250}"
        if prefix not in used and (held := _take(prefix)):
            _taken.append(held)
            return Loopback(prefix)
    raise RuntimeError("no unused /24 in 127.100.0.0 to 127.149.0.0")


def _take(prefix: str) -> socket.socket | None:
    """Listens on an address there that no host has; nothing where another process does."""
    held = socket.socket()
    try:
        held.bind((f"{prefix}.254", _TAKEN))
        held.listen()
    except OSError:
        held.close()
        return None
    return held


def _addresses_in_use() -> set[str]:
    found = set()
    with open("/proc/net/tcp") as table:
        for line in table.readlines()[1:]:
            for field in line.split()[1:3]:
                found.add(socket.inet_ntoa(bytes.fromhex(field.split(":")[0])[::-1]))
    return found


class Ports:
    """Hands out TCP ports of an address, each checked to be free and never given twice."""

    def __init__(self) -> None:
        self._next = iter(_PORTS)

    def free(self, address: str) -> int:
        for port in self._next:
            with socket.socket() as probe:
                try:
                    probe.bind((address, port))
                except OSError:
                    continue
            return port
        raise RuntimeError(f"no free TCP port on {address} between {_PORTS.start} and {_PORTS.stop}")
