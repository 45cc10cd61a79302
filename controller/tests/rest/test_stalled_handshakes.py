"""Clients that connect by TLS and never finish its handshake keep nobody else out."""

from __future__ import annotations

import contextlib
import socket
import ssl
from collections.abc import Callable
from pathlib import Path

import pytest
import trustme
from client import PATIENCE_S, TOKEN, Client

HELLO = b"\x16\x03\x01"  # a TLS record begins


@pytest.fixture
def secured(serve: Callable[..., Client], tmp_path: Path, token_file: Path) -> Callable[..., Client]:
    """Starts servers that speak TLS."""
    authority = trustme.CA()
    made = authority.issue_cert("localhost", "127.0.0.1")
    certificate, key = tmp_path / "certificate.pem", tmp_path / "key.pem"
    certificate.write_bytes(b"".join(blob.bytes() for blob in made.cert_chain_pems))
    key.write_bytes(made.private_key_pem.bytes())
    key.chmod(0o600)

    def start(**settings: object) -> Client:
        client = serve(certificate=certificate, key=key, token_file=token_file, **settings)
        client.headers["Authorization"] = f"Bearer {TOKEN}"
        client.tls = ssl.create_default_context()
        authority.configure_trust(client.tls)
        return client

    return start


def connect(client: Client, host: str) -> socket.socket:
    return socket.create_connection(("127.0.0.1", client.server.port), PATIENCE_S, (host, 0))


def test_a_handshake_that_never_ends_is_ended(secured: Callable[..., Client]):
    client = secured(patience_s=0.5)
    for said in (b"", HELLO):
        with connect(client, "127.0.0.2") as connection:
            connection.sendall(said)
            connection.settimeout(30)
            with contextlib.suppress(ConnectionResetError):
                assert connection.recv(1) == b""
    assert client.get("/v1/status").status == 200


def test_handshakes_that_stall_give_way_when_all_places_are_taken(secured: Callable[..., Client]):
    client = secured(max_connections=8, patience_s=3600.0)
    with contextlib.ExitStack() as stack:
        for host in range(2, 6):
            for _ in range(2):
                stack.enter_context(connect(client, f"127.0.0.{host}")).sendall(HELLO)
        for _ in range(3):
            assert client.get("/v1/status").status == 200
