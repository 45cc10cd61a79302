"""LLDP (IEEE 802.1AB) by which the controller finds links, signed so that no host can make one up.

The controller's own TLV carries the sending port, the time and a MAC of both under a key that is drawn at each start.
A host that hands on a frame as it came can't be told from a cable by that; `net.discovery` takes no port for a link
while hosts are known there, and old frames are refused here.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import struct

from ..net.frames import mac_bytes
from ..net.topology import Dpid, End, PortNo, dpid_text

_DESTINATION = bytes.fromhex("0180c200000e")
_ETH_TYPE = b"\x88\xcc"
_OUI = b"\x02\x74\x72"  # locally administered
_SUBTYPE = 1
_BODY = struct.Struct("!QII")  # datapath id, port, tenths of a second
_MAC_BYTES = 16
VALID_S = 5.0  # LLDP travels one cable


def _tlv(kind: int, value: bytes) -> bytes:
    return struct.pack("!H", kind << 9 | len(value)) + value


class Lldp:
    """Makes and checks frames, which are good for `valid_s`; `now` is in seconds of the caller's clock."""

    def __init__(self, key: bytes | None = None, valid_s: float = VALID_S) -> None:
        self._key = key or secrets.token_bytes(32)
        self._valid_s = valid_s

    def _mac(self, body: bytes) -> bytes:
        return hmac.digest(self._key, body, hashlib.sha256)[:_MAC_BYTES]

    def frame(self, end: End, source: str, now: float) -> bytes:
        """To be sent out of `end`; `source` is the port's MAC address."""
        body = _BODY.pack(end.dpid, end.port, int(now * 10) & 0xFFFFFFFF)
        return b"".join(
            (
                _DESTINATION,
                mac_bytes(source),
                _ETH_TYPE,
                _tlv(1, b"\x07" + dpid_text(end.dpid).encode()),
                _tlv(2, b"\x07" + str(end.port).encode()),
                _tlv(3, struct.pack("!H", 120)),
                _tlv(127, _OUI + bytes([_SUBTYPE]) + body + self._mac(body)),
                _tlv(0, b""),
            )
        )

    def origin(self, frame: bytes, now: float) -> End | None:
        """The port out of which this controller sent the frame a moment ago; None for all others' LLDP."""
        offset = 14
        while offset + 2 <= len(frame):
            (head,) = struct.unpack_from("!H", frame, offset)
            kind, value = head >> 9, frame[offset + 2 : offset + 2 + (head & 0x1FF)]
            offset += 2 + (head & 0x1FF)
            if kind == 0:
                return None
            if kind == 127 and value[:4] == _OUI + bytes([_SUBTYPE]) and len(value) == 4 + _BODY.size + _MAC_BYTES:
                body, mac = value[4 : 4 + _BODY.size], value[4 + _BODY.size :]
                dpid, port, tenths = _BODY.unpack(body)
                age = (int(now * 10) - tenths) & 0xFFFFFFFF
                if age > self._valid_s * 10 or not hmac.compare_digest(mac, self._mac(body)):
                    return None
                return End(Dpid(dpid), PortNo(port))
        return None
