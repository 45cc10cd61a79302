"""What a wiretap takes out of frames."""

from __future__ import annotations

import os
import socket
import struct

import pytest

from trunkline_lab.wiretap import Wiretap, payload


def frame(carried: bytes, protocol: int = 6, length: int | None = None, padding: bytes = b"") -> bytes:
    total = 40 + len(carried) if length is None else length
    ip = struct.pack("!BBHHHBBH4s4s", 0x45, 0, total, 0, 0, 64, protocol, 0, b"\x7f\0\0\1", b"\x7f\0\0\2")
    tcp = struct.pack("!HHIIBBHHH", 1000, 2000, 0, 0, 0x50, 0, 0, 0, 0)
    return bytes(12) + b"\x08\0" + ip + tcp + carried + padding


@pytest.mark.parametrize("given", [frame(b"hello"), frame(b"hello", padding=bytes(6)), frame(b"hello", length=0)])
def test_the_bytes_of_a_connection(given: bytes) -> None:
    assert payload(given) == (("127.0.0.1", 1000, "127.0.0.2", 2000), b"hello")


@pytest.mark.parametrize("given", [b"", bytes(33), frame(b"", protocol=17), bytes(12) + b"\x86\xdd" + b"\x60" * 60])
def test_what_is_no_tcp_by_ipv4(given: bytes) -> None:
    assert payload(given) is None


@pytest.mark.skipif(os.geteuid() != 0, reason="listening on an interface needs root")
def test_a_connection_is_heard_but_not_one_to_who_is_left_out() -> None:
    with Wiretap("127.71.", but=("127.71.0.1",)) as tap:
        for listens, said in (("127.71.0.3", b"a needle in a haystack"), ("127.71.0.1", b"another needle")):
            with socket.create_server((listens, 0)) as server:
                sender = socket.create_connection(server.getsockname()[:2], source_address=("127.0.0.1", 0))
                with sender, server.accept()[0] as accepted:
                    sender.sendall(said)
                    assert accepted.recv(100) == said
    assert tap.saw(b"needle in")
    assert not tap.saw(b"another")
    assert tap.passed() == len(b"a needle in a haystack")
