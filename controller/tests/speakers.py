"""Many small OpenFlow 1.3 switches in one process, on sockets: they keep what they are given, and forward LLDP and ARP.

No packet of a host is forwarded; what a switch would do with one stands in its tables.
"""

from __future__ import annotations

import asyncio
import struct
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

HEADER = struct.Struct("!BBHI")
VERSION = 4
MATCH_AT = 48  # in a flow mod
ANY = 0xFFFFFFFF


def bare(kind: int, xid: int, body: bytes = b"") -> bytes:
    return HEADER.pack(VERSION, kind, 8 + len(body), xid) + body


@dataclass
class Fabric:
    """The switches, the cables between their ports, and the hosts at the others."""

    cables: dict[tuple[int, int], tuple[int, int]] = field(default_factory=dict)
    hosts: dict[tuple[int, int], str] = field(default_factory=dict)  # MAC address by (dpid, port)
    speakers: dict[int, Speaker] = field(default_factory=dict)
    flow_mods: int = 0
    first_at: float = 0.0  # when the first and the last of them came in
    last_at: float = 0.0

    def cable(self, one: tuple[int, int], other: tuple[int, int]) -> None:
        self.cables |= {one: other, other: one}

    def ports(self, dpid: int) -> list[int]:
        return sorted(port for at, port in (*self.cables, *self.hosts) if at == dpid)

    def counted(self) -> None:
        self.last_at = time.monotonic()
        self.first_at = self.first_at or self.last_at
        self.flow_mods += 1


def leaf_spine(leaves: int, spines: int, hosts: int) -> Fabric:
    """Spines have datapath ids from 1 on, leaves the next; hosts are spread over the leaves."""
    fabric = Fabric()
    for leaf in range(1, leaves + 1):
        for spine in range(1, spines + 1):
            fabric.cable((spine, leaf), (spines + leaf, spine))
    for number in range(hosts):
        port = spines + 1 + number // leaves
        mac = (b"\x02\x00\x00" + (number + 1).to_bytes(3)).hex(":")
        fabric.hosts[spines + 1 + number % leaves, port] = mac
    return fabric


def gratuitous_arp(mac: str, address: bytes) -> bytes:
    raw = bytes.fromhex(mac.replace(":", ""))
    return b"\xff" * 6 + raw + struct.pack("!HHHHH", 0x806, 1, 0x800, 0x604, 1) + raw + address + bytes(6) + address


class Speaker(asyncio.Protocol):
    """One switch. `flows` are by table, priority and match; `groups` by number; both as they came in."""

    def __init__(self, fabric: Fabric, dpid: int, changed: Callable[[], None] = lambda: None) -> None:
        self.fabric, self.dpid = fabric, dpid
        self.flows: dict[tuple[int, int, bytes], tuple[bytes, bytes]] = {}
        self.groups: dict[int, bytes] = {}
        self.role, self.generation = 1, (1 << 64) - 1
        self.forward = 0  # entries that send to a host
        self.barriers = 0
        self.transport: asyncio.Transport | None = None
        self.handlers = dict(_HANDLERS)  # a test may put its own in, by message type; None leaves it unanswered
        self._buffer = b""
        self._changed = changed
        fabric.speakers[dpid] = self

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        transport.write(bare(0, 1, struct.pack("!HHI", 1, 8, 1 << VERSION)))

    def data_received(self, data: bytes) -> None:
        buffer, offset, out = self._buffer + data, 0, []
        while len(buffer) - offset >= 8:
            _, kind, length, xid = HEADER.unpack_from(buffer, offset)
            if len(buffer) - offset < length:
                break
            handler = self.handlers.get(kind)
            if handler is not None:
                answer = handler(self, xid, buffer[offset : offset + length])
                if answer:
                    out.append(answer)
            offset += length
        self._buffer = buffer[offset:]
        if out and self.transport is not None:
            self.transport.write(b"".join(out))

    def connection_lost(self, exc: Exception | None) -> None:
        self.transport = None

    def packet_in(self, port: int, data: bytes, table: int = 0) -> None:
        if self.transport is not None and self.role != 3:
            match = struct.pack("!HHIIxxxx", 1, 12, 0x80000004, port)
            head = struct.pack("!IHBBQ", ANY, len(data), 0, table, 0)
            self.transport.write(bare(10, 0, head + match + b"\0\0" + data))

    def announce(self) -> None:
        """Each host that is not known yet says that it is there."""
        for (dpid, port), mac in self.fabric.hosts.items():
            if dpid == self.dpid and (4, 30, _to(mac)) not in self.flows:
                self.packet_in(port, gratuitous_arp(mac, b"\x0a" + bytes.fromhex(mac.replace(":", ""))[3:]))

    def _echo(self, xid: int, message: bytes) -> bytes:
        return bare(3, xid, message[8:])

    def _features(self, xid: int, _: bytes) -> bytes:
        return bare(6, xid, struct.pack("!QIBBHII", self.dpid, 0, 254, 0, 0, 0x4F, 0))

    def _role(self, xid: int, message: bytes) -> bytes:
        role, generation = struct.unpack_from("!I4xQ", message, 8)
        if role:
            self.role = role
        if role in (2, 3):
            self.generation = generation
        return bare(25, xid, struct.pack("!I4xQ", self.role, self.generation))

    def _barrier(self, xid: int, _: bytes) -> bytes:
        self.barriers += 1
        self._changed()
        return bare(21, xid)

    def _flow_mod(self, _: int, message: bytes) -> None:
        table, command = message[24], message[25]
        (priority,) = struct.unpack_from("!H", message, 30)
        length = struct.unpack_from("!H", message, MATCH_AT + 2)[0] + 7 & ~7
        key = table, priority, message[MATCH_AT : MATCH_AT + length]
        to_host = table == 4 and priority == 30
        if command == 0:
            self.forward += to_host and key not in self.flows
            self.flows[key] = message[8:MATCH_AT], message[MATCH_AT + length :]
        elif self.flows.pop(key, None) is not None:
            self.forward -= to_host
        if not (table == 0 and priority == 1):  # a lease
            self.fabric.counted()

    def _group_mod(self, _: int, message: bytes) -> None:
        command, number = struct.unpack_from("!H2xI", message, 8)
        if command == 2:
            self.groups.pop(number, None)
        else:
            self.groups[number] = message[10:11] + message[16:]
        self.fabric.counted()

    def _packet_out(self, _: int, message: bytes) -> None:
        (size,) = struct.unpack_from("!H", message, 16)
        data = message[24 + size :]
        for offset in range(24, 24 + size, 16):
            (port,) = struct.unpack_from("!I", message, offset + 4)
            far = self.fabric.cables.get((self.dpid, port))
            if far is not None and far[0] in self.fabric.speakers:
                self.fabric.speakers[far[0]].packet_in(far[1], data)

    def _multipart(self, xid: int, message: bytes) -> bytes:
        (kind,) = struct.unpack_from("!H", message, 8)
        make = {0: self._desc, 1: self._flow_stats, 2: self._aggregate, 4: self._port_stats, 7: self._group_desc}
        parts = make.get(kind, self._port_desc if kind == 13 else lambda _: [])(message)
        out, body = [], b""
        for part in parts:
            if len(body) + len(part) > 60_000:
                out.append(bare(19, xid, struct.pack("!HH4x", kind, 1) + body))
                body = b""
            body += part
        return b"".join([*out, bare(19, xid, struct.pack("!HH4x", kind, 0) + body)])

    def _desc(self, _: bytes) -> list[bytes]:
        return [bytes(256 * 3 + 32) + f"s{self.dpid}".encode().ljust(256, b"\0")]

    def _chosen(self, message: bytes) -> list[tuple[tuple[int, int, bytes], tuple[bytes, bytes]]]:
        table, cookie, mask = struct.unpack_from("!B15xQQ", message, 16)
        found = list(self.flows.items())
        if table != 0xFF:
            found = [(key, value) for key, value in found if key[0] == table]
        return [(key, value) for key, value in found if int.from_bytes(value[0][:8]) & mask == cookie & mask]

    def _flow_stats(self, message: bytes) -> list[bytes]:
        parts = []
        for (table, priority, match), (head, instructions) in self._chosen(message):
            idle, hard = struct.unpack_from("!HH", head, 18)
            length = 48 + len(match) + len(instructions)
            fixed = struct.pack("!HBxIIHHHH4xQQQ", length, table, 1, 0, priority, idle, hard, 0,
                                int.from_bytes(head[:8]), 0, 0)  # fmt: skip
            parts.append(fixed + match + instructions)
        return parts

    def _aggregate(self, message: bytes) -> list[bytes]:
        return [struct.pack("!QQI4x", 0, 0, len(self._chosen(message)))]

    def _port_stats(self, _: bytes) -> list[bytes]:
        return [struct.pack("!I4x", port) + bytes(104) for port in self.fabric.ports(self.dpid)]

    def _group_desc(self, _: bytes) -> list[bytes]:
        return [
            struct.pack("!HBxI", 8 + len(value) - 1, value[0], number) + value[1:]
            for number, value in self.groups.items()
        ]

    def _port_desc(self, _: bytes) -> list[bytes]:
        parts = []
        for port in self.fabric.ports(self.dpid):
            mac = b"\x06" + self.dpid.to_bytes(3) + port.to_bytes(2)
            parts.append(
                struct.pack("!I4x6s2x16s8I", port, mac, f"eth{port}".encode(), 0, 0, 0, 0, 0, 0, 10_000_000, 0)
            )
        return parts


def _to(mac: str) -> bytes:
    """The match of packets to a host."""
    return struct.pack("!HHI6s", 1, 14, 0x80000606, bytes.fromhex(mac.replace(":", ""))) + b"\0\0"


Handler = Callable[[Speaker, int, bytes], bytes | None]

_HANDLERS: Mapping[int, Handler] = {
    2: Speaker._echo,
    5: Speaker._features,
    13: Speaker._packet_out,
    14: Speaker._flow_mod,
    15: Speaker._group_mod,
    18: Speaker._multipart,
    20: Speaker._barrier,
    24: Speaker._role,
}


async def connect(fabric: Fabric, dpids: list[int], port: int) -> None:
    """All switches connect to a controller on the loopback."""
    loop = asyncio.get_running_loop()
    for dpid in dpids:
        await loop.create_connection(lambda dpid=dpid: Speaker(fabric, dpid), "127.0.0.1", port)
