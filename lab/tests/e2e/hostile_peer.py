"""A malicious peer for a router, run as a user without rights; it needs nothing but Python.

    hostile_peer.py HOST:PORT

Each line of standard input is a command, a JSON object with `do`; each is answered by a line. It ends with its input.

    {"do": "answer", "prefix": "/a", "content": "…"}  answers all Interests under /a; without content: a forged segment
    {"do": "heard"}                                   names of the Interests that have come, and how many were answered
    {"do": "ask", "name": "/a/b", "ms": 1000}         asks by another face: the content in hex, null where nothing came
    {"do": "ask", …, "past": true}                    the same, and says that what there was till now is wrong
    {"do": "ask", …, "prefix": true}                  the same, and takes what has a longer name
    {"do": "quiet"}                                   answers nothing any more
    {"do": "replay", "name": "/a/b", "as": "/c/d"}    asks again as somebody did for /a/b, under a name like /c/d
    {"do": "listen", "host": "…"}                     takes connections in a DataNode's place; its port
    {"do": "told"}                                    how many came, and all that was said on them, in hex
"""

from __future__ import annotations

import hashlib
import json
import os
import socket
import sys
import threading
import time

INTEREST, DATA, NAME = 0x05, 0x06, 0x07
CAN_BE_PREFIX, MUST_BE_FRESH, NONCE, LIFETIME = 0x21, 0x12, 0x0A, 0x0C
ORDER = (CAN_BE_PREFIX, MUST_BE_FRESH, 0x1E, NONCE, LIFETIME, 0x22, 0x24)  # of an Interest's elements, the known ones
META_INFO, FRESHNESS, CONTENT, SIGNATURE_INFO, SIGNATURE_VALUE, SIGNATURE_TYPE = 0x14, 0x19, 0x15, 0x16, 0x17, 0x1B
LP_PACKET, FRAGMENT, PIT_TOKEN, NACK, REJECTED, MAX_PACKET_SIZE = 0x64, 0x50, 0x62, 0x320, 0x3A4, 0x3B0
NULL_SIGNATURE = 200
KINDS = {"params-sha256": 2, "seg": 50, "v": 54, "32": 32}
SEGMENT, CHUNK = 64512, 512  # data bytes of a block's segment, and under each CRC (docs/names.md)
WELCOME = b"TRKW" + bytes([7, 0, 0, 0])


def number(value: int) -> bytes:
    """A TLV's type or length."""
    if value < 253:
        return bytes([value])
    return b"\xfd" + value.to_bytes(2, "big") if value < 1 << 16 else b"\xfe" + value.to_bytes(4, "big")


def natural(value: int) -> bytes:
    return value.to_bytes(next(size for size in (1, 2, 4, 8) if value < 1 << 8 * size), "big")


def tlv(kind: int, value: bytes) -> bytes:
    return number(kind) + number(len(value)) + value


def elements(value: bytes) -> list[tuple[int, bytes]]:
    found, at = [], 0
    while at < len(value):
        kind, at = taken(value, at)
        length, at = taken(value, at)
        found.append((kind, value[at : at + length]))
        at += length
    return found


def taken(value: bytes, at: int) -> tuple[int, int]:
    size = {253: 2, 254: 4, 255: 8}.get(value[at], 0)
    return (int.from_bytes(value[at + 1 : at + 1 + size], "big") if size else value[at]), at + 1 + size


def name_of(uri: str) -> bytes:
    """The value of a name; hexadecimal behind `0x` where a component is not text."""
    components = b""
    for component in uri.strip("/").split("/"):
        before, equals, after = component.partition("=")
        kind, text = (KINDS.get(before, 8), after) if equals else (8, component)
        raw = bytes.fromhex(text[2:]) if text.startswith("0x") else text.encode()
        components += tlv(kind, natural(int(text)) if kind in (50, 54) and text.isdigit() else raw)
    return components


def uri_of(name: bytes) -> str:
    words = {kind: word for word, kind in KINDS.items()}
    parts = []
    for kind, value in elements(name):
        text = value.decode("ascii", "replace")
        text = text if text.isascii() and text.isprintable() and "/" not in text else f"0x{value.hex()}"
        if kind in (50, 54):
            text = str(int.from_bytes(value, "big"))
        parts.append(f"{words[kind]}={text}" if kind in words else text)
    return "/" + "/".join(parts)


def crc32c(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for octet in data:
        crc ^= octet
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def forged(segment: int) -> bytes:
    """A block's segment whose checksums are right, and whose bytes nobody wrote."""
    chunk = b"forged! " * (CHUNK // 8)
    chunks = SEGMENT // CHUNK
    head = b"TLB1" + bytes([2, 0, 0, 0]) + CHUNK.to_bytes(4, "big") + SEGMENT.to_bytes(4, "big")
    head += (segment * SEGMENT).to_bytes(8, "big")
    return head + crc32c(chunk).to_bytes(4, "big") * chunks + chunk * chunks


def data_packet(name: bytes, content: bytes, signed: bool) -> bytes:
    kind = natural(0 if signed else NULL_SIGNATURE)
    fresh = tlv(META_INFO, tlv(FRESHNESS, natural(3_600_000)))
    body = tlv(NAME, name) + fresh + tlv(CONTENT, content) + tlv(SIGNATURE_INFO, tlv(SIGNATURE_TYPE, kind))
    return tlv(DATA, body + tlv(SIGNATURE_VALUE, hashlib.sha256(body).digest() if signed else b""))


class Face:
    """A connection to the router that takes packets as large as our own faces do."""

    def __init__(self, host: str, port: int) -> None:
        self.socket = socket.create_connection((host, port))
        self.stream = self.socket.makefile("rb")
        self.send(tlv(LP_PACKET, tlv(MAX_PACKET_SIZE, (1 << 20).to_bytes(4, "big"))))

    def send(self, packet: bytes) -> None:
        self.socket.sendall(packet)

    def packets(self):
        """(type, value, PIT token) of each packet that comes; (NACK, …) for one that came back."""
        while True:
            try:
                kind, value = self._number(), self.stream.read(self._number())
            except OSError:
                return
            except IndexError:
                return  # closed by the other end
            if kind != LP_PACKET:
                yield kind, value, b""
                continue
            fields = dict(elements(value))
            if fragment := fields.get(FRAGMENT):
                inner = elements(fragment)[0]
                yield (NACK if NACK in fields else inner[0]), inner[1], fields.get(PIT_TOKEN, b"")

    def _number(self) -> int:
        first = self.stream.read(1)[0]
        size = {253: 2, 254: 4, 255: 8}.get(first, 0)
        return int.from_bytes(self.stream.read(size), "big") if size else first


def interest(name: bytes, ms: int, more: list[tuple[int, bytes]]) -> bytes:
    """`more` are its elements but for those that each Interest has of its own."""
    fields = [(NONCE, os.urandom(4)), (LIFETIME, natural(ms)), *more]
    fields.sort(key=lambda field: ORDER.index(field[0]) if field[0] in ORDER else len(ORDER))
    return tlv(INTEREST, tlv(NAME, name) + b"".join(tlv(kind, value) for kind, value in fields))


class Peer:
    def __init__(self, host: str, port: int) -> None:
        self.host, self.port = host, port
        self.face = Face(host, port)
        self.rules: list[tuple[bytes, bytes | None]] = []
        self.heard: dict[bytes, list[tuple[int, bytes]]] = {}
        self.answered = 0
        self.connections: list[bytearray] = []
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        for kind, value, token in self.face.packets():
            if kind != INTEREST:
                continue
            fields = elements(value)
            name = fields[0][1]
            self.heard[name] = fields[1:]
            for prefix, content in self.rules:
                if name.startswith(prefix):
                    self._answer(name, any(field == CAN_BE_PREFIX for field, _ in fields), token, content)
                    break

    def _answer(self, name: bytes, prefix: bool, token: bytes, content: bytes | None) -> None:
        last = elements(name)[-1]
        signed = content is not None or last[0] != 50
        if content is None:
            content = forged(int.from_bytes(last[1], "big") if last[0] == 50 else 0)
        if prefix:
            name += tlv(54, natural(time.time_ns() // 1000)) + tlv(50, b"\0")
        packet = data_packet(name, content, signed)
        if token:
            packet = tlv(LP_PACKET, tlv(PIT_TOKEN, token) + tlv(FRAGMENT, packet))
        self.face.send(packet)
        self.answered += 1

    def ask(self, packet: bytes, ms: int) -> str | None:
        face = Face(self.host, self.port)
        try:
            face.socket.settimeout(ms / 1000 + 0.5)
            time.sleep(0.1)  # so that both ends know which packets may pass
            face.send(packet)
            for kind, value, _ in face.packets():
                if kind == NACK:
                    return None
                if kind == DATA:
                    return dict(elements(value)).get(CONTENT, b"").hex()
        finally:
            face.socket.close()
        return None

    def replay(self, uri: str, other: str) -> str | None:
        """The parameters, and the digest of them in the name, stay as they were."""
        recorded = name_of(uri)
        kept = [(kind, value) for kind, value in self.heard[recorded] if kind not in (NONCE, LIFETIME)]
        return self.ask(interest(name_of(other), 2000, kept), 2000)

    def listen(self, host: str) -> int:
        server = socket.create_server((host, 0))
        threading.Thread(target=self._take, args=(server,), daemon=True).start()
        return int(server.getsockname()[1])

    def _take(self, server: socket.socket) -> None:
        while True:
            connection, _ = server.accept()
            told = bytearray()
            self.connections.append(told)
            threading.Thread(target=self._hear, args=(connection, told), daemon=True).start()

    @staticmethod
    def _hear(connection: socket.socket, told: bytearray) -> None:
        connection.settimeout(10)
        try:
            connection.sendall(WELCOME + os.urandom(16))
            while octets := connection.recv(1 << 16):
                told += octets
        except OSError:
            pass
        connection.close()

    def obey(self, command: dict[str, object]) -> object:  # noqa: PLR0911
        name, ms = str(command.get("name", "")), int(str(command.get("ms", 1000)))
        match command["do"]:
            case "answer":
                content = command.get("content")
                rule = (name_of(str(command["prefix"])), None if content is None else str(content).encode())
                self.rules.append(rule)
                return ":".join(map(str, self.face.socket.getsockname()))
            case "heard":
                return {"names": [uri_of(heard) for heard in list(self.heard)], "answered": self.answered}
            case "ask":
                asked = interest(name_of(name), ms, [(CAN_BE_PREFIX, b"")] if command.get("prefix") else [])
                if not command.get("past"):
                    return self.ask(asked, ms)
                asked = interest(name_of(name), ms, [(MUST_BE_FRESH, b"")])
                return self.ask(tlv(LP_PACKET, tlv(REJECTED, b"") + tlv(FRAGMENT, asked)), ms)
            case "quiet":
                self.rules.clear()
                return None
            case "replay":
                return self.replay(name, str(command["as"]))
            case "listen":
                return self.listen(str(command["host"]))
            case "told":
                return [told.hex() for told in self.connections]
        raise ValueError(command["do"])


def main(router: str) -> int:
    host, _, port = router.rpartition(":")
    peer = Peer(host, int(port))
    for line in sys.stdin:
        print(json.dumps(peer.obey(json.loads(line))), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
