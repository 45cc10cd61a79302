"""Ethernet frames that a controller reads and writes: ARP (RFC 826), IPv6 neighbour discovery (RFC 4861).

Reading never raises; what is malformed says nothing.
"""

from __future__ import annotations

import ipaddress
import struct
from dataclasses import dataclass

from .topology import Mac

ETH_ARP, ETH_IPV6 = 0x0806, 0x86DD
BROADCAST = Mac("ff:ff:ff:ff:ff:ff")
_ICMPV6 = 58
_NS, _NA = 135, 136
_REQUEST, _REPLY = 1, 2
_ANY4, _BROADCAST4 = bytes(4), b"\xff" * 4


def mac_text(raw: bytes) -> Mac:
    return Mac(raw.hex(":"))


def mac_bytes(mac: str) -> bytes:
    return bytes.fromhex(mac.replace(":", ""))


@dataclass(frozen=True)
class Frame:
    """What a frame says of its sender, and of whom it asks. Addresses that no host can have are None."""

    source: Mac
    destination: Mac
    eth_type: int
    address: str | None = None  # the sender says that it has it
    asks_for: str | None = None  # an ARP request's target

    @property
    def from_a_host(self) -> bool:
        """Whether the sender's MAC address is one that a host can have."""
        return not int(self.source[1], 16) & 1 and self.source != "00:00:00:00:00:00"


def read(data: bytes) -> Frame | None:
    """None for what is too short to be a frame."""
    if len(data) < 14:
        return None
    destination, source = mac_text(data[0:6]), mac_text(data[6:12])
    (eth_type,) = struct.unpack_from("!H", data, 12)
    address = asks_for = None
    if eth_type == ETH_ARP and len(data) >= 42:
        hardware, protocol, sizes, operation = struct.unpack_from("!HHHH", data, 14)
        # Whose hardware address is not the frame's speaks for another.
        if (hardware, protocol, sizes) == (1, 0x0800, 0x0604) and data[22:28] == data[6:12]:
            address = _ipv4(data[28:32])
            asks_for = _ipv4(data[38:42]) if operation == _REQUEST else None
    elif eth_type == ETH_IPV6 and len(data) >= 78 and data[20] == _ICMPV6 and data[21] == 255:  # hop limit, 7.1
        kind = data[54]
        if kind == _NS:
            address = _ipv6(data[22:38])
        elif kind == _NA:
            address = _ipv6(data[62:78])
    return Frame(source, destination, eth_type, address, asks_for)


def _ipv4(raw: bytes) -> str | None:
    if raw in (_ANY4, _BROADCAST4) or raw[0] in (0, 127) or raw[0] >= 224:
        return None
    return ".".join(map(str, raw))


def _ipv6(raw: bytes) -> str | None:
    address = ipaddress.IPv6Address(raw)
    return None if address.is_unspecified or address.is_multicast or address.is_loopback else str(address)


def _arp(destination: str, source: str, operation: int, *fields: bytes) -> bytes:
    head = mac_bytes(destination) + mac_bytes(source) + struct.pack("!H", ETH_ARP)
    return head + struct.pack("!HHHH", 1, 0x0800, 0x0604, operation) + b"".join(fields)


def arp_reply(asker: Mac, asker_address: str | None, target: Mac, target_address: str) -> bytes:
    """`target` says to `asker` that it has the address."""
    to = ipaddress.IPv4Address(asker_address or "0.0.0.0").packed
    fields = mac_bytes(target), ipaddress.IPv4Address(target_address).packed, mac_bytes(asker), to
    return _arp(asker, target, _REPLY, *fields)


def arp_announcement(mac: Mac, address: str) -> bytes:
    """Tells everybody that a host has an address now (RFC 5227, 2.3)."""
    packed = ipaddress.IPv4Address(address).packed
    return _arp(BROADCAST, mac, _REQUEST, mac_bytes(mac), packed, bytes(6), packed)


def probe(asker: Mac, host: Mac, address: str) -> bytes:
    """Asks one host whether it has an address: an ARP probe (RFC 5227, 2.1.1), or a neighbour solicitation."""
    wanted = ipaddress.ip_address(address)
    if isinstance(wanted, ipaddress.IPv4Address):
        return _arp(host, asker, _REQUEST, mac_bytes(asker), _ANY4, bytes(6), wanted.packed)
    own = link_local(asker).packed
    body = struct.pack("!BBHI", _NS, 0, 0, 0) + wanted.packed + b"\x01\x01" + mac_bytes(asker)
    pseudo = own + wanted.packed + struct.pack("!II", len(body), _ICMPV6)
    body = body[:2] + struct.pack("!H", _checksum(pseudo + body)) + body[4:]
    ip = struct.pack("!IHBB", 6 << 28, len(body), _ICMPV6, 255) + own + wanted.packed
    return mac_bytes(host) + mac_bytes(asker) + struct.pack("!H", ETH_IPV6) + ip + body


def link_local(mac: Mac) -> ipaddress.IPv6Address:
    """The address that a host gives itself, from its MAC address unless it is told to make up one (RFC 4862, 5.3)."""
    raw = mac_bytes(mac)
    return ipaddress.IPv6Address(b"\xfe\x80" + bytes(6) + bytes([raw[0] ^ 2]) + raw[1:3] + b"\xff\xfe" + raw[3:])


def _checksum(data: bytes) -> int:
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF
